/* Factors Q R by reflectors, as LAPACK has them. */
#include "ops/aten/solve.h"

static Node build_geqrf(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (!solve_takes_matrices(b, x, "geqrf"))
		return (Node){0};
	bool pairs = solve_is_complex(b, x);
	Node y = factor_geqrf(b, solve_pairs(b, x), pairs);
	return y.i ? b_tuple(b,
			     (Node[]){solve_whole(b, b_get(b, y, 0), pairs),
				      solve_whole(b, b_get(b, y, 1), pairs)},
			     2)
		   : y;
}
OP(aten_geqrf){
	.schema = "aten.geqrf(Tensor self) -> (Tensor a, Tensor tau)",
	.autocast = AUTOCAST_F32,
	.build = build_geqrf,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, n=2, n] of 4 1 -1 2 0 1 2 3; "
		  "f32[3, 2] of 1 2 0 3 4 1; f32[2, 4] of 1 2 0 3 4 1 2 2; "
		  "c64[2, 2] of 0 1 2 0 1 -1 3 0.5; f32[0, 2]; f32[3, 2] of -0 1 2 3 4 1",
};

/* Returns Q C, Q^H C, C Q or C Q^H. c no node: columns of Q. */
static Node reflected(Build *b, Node a, Node tau, Node c, Sym columns, bool left, bool conjugate)
{
	bool pairs = solve_is_complex(b, a);
	if (c.i && !left)
		c = solve_adjoint(b, c);
	Node q = solve_pairs(b, a), t = solve_pairs(b, tau), y;
	y = c.i ? factor_reflect(b, q, t, solve_pairs(b, c), columns, conjugate != !left, pairs)
		: factor_columns(b, q, t, columns, pairs);
	y = solve_whole(b, y, pairs);
	return left || !y.i ? y : solve_adjoint(b, y);
}

static bool check_reflectors(Build *b, Node a, Node tau, const char *name)
{
	if (!solve_takes_matrices(b, a, name) || !tau.i)
		return false;
	SymTab *t = b_syms(b);
	const char *wrong = NULL;
	if (node_rank(b->g, tau) + 1 != node_rank(b->g, a))
		wrong = "expected tau to have one dimension less than the matrices";
	else if (node_dtype(b->g, tau) != node_dtype(b->g, a))
		wrong = "the matrices and tau differ in dtype";
	else if (sym_lt(t, b_dim(b, a, -1), b_dim(b, tau, -1)) == YES)
		wrong = "tau has more elements than the matrices have columns";
	if (wrong)
		b_error(b, "%s: %s", name, wrong);
	return !wrong;
}

static Node build_householder(Build *b, Node n)
{
	Node a = node_in(b->g, n, 0), tau = node_in(b->g, n, 1);
	if (!check_reflectors(b, a, tau, "linalg.householder_product"))
		return (Node){0};
	if (sym_lt(b_syms(b), b_dim(b, a, -2), b_dim(b, a, -1)) == YES)
		return b_error(
			b, "linalg.householder_product: the matrices have more columns than rows");
	return reflected(b, a, tau, (Node){0}, b_dim(b, a, -1), true, false);
}
OP(aten_linalg_householder_product){
	.schema = "aten.linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_householder,
	.sample = "f32[3, 2] of 2 1 0.5 -1 0.25 3, f32[2] of 1.5 0.2; "
		  "f32[2, 3, 3], f32[2, n=2] of 1.5 0 0.5 1; c64[2, 2] of 2 1 0.5 -1 0.25 3 1 0, "
		  "c64[2] of 1.5 0.5 0.25 -0.5; f32[2, 0], f32[0]",
	.overloads = (const Overload[]){
		{.schema = "aten.orgqr(Tensor self, Tensor input2) -> Tensor",
		 .sample = "f32[3, 2] of 2 1 0.5 -1 0.25 3, f32[2] of 1.5 0.2"},
	},
};

static Node build_ormqr(Build *b, Node n)
{
	Node a = arg(b, n, "self"), tau = arg(b, n, "input2"), c = arg(b, n, "input3");
	if (!check_reflectors(b, a, tau, "ormqr") || !solve_takes_matrices(b, c, "ormqr"))
		return (Node){0};
	bool left = node_bool(b->g, n, "left");
	if (node_dtype(b->g, c) != node_dtype(b->g, a) || node_rank(b->g, c) != node_rank(b->g, a))
		return b_error(b, "ormqr: the matrices differ in dtype or rank");
	if (sym_eq(b_syms(b), b_dim(b, c, left ? -2 : -1), b_dim(b, a, -2)) == NO)
		return b_error(b, "ormqr: the reflectors and input3 have different numbers of %s",
			       left ? "rows" : "columns");
	if (sym_eq(b_syms(b), b_dim(b, tau, -1),
		   sym_min(b_syms(b), b_dim(b, c, left ? -2 : -1), b_dim(b, a, -1))) == NO)
		return b_error(b,
			       "ormqr: tau.shape[-1] must be equal to min(other.shape[%d], "
			       "input.shape[-1])",
			       left ? -2 : -1);
	return reflected(b, a, tau, c, b_int(b, 0), left, node_bool(b->g, n, "transpose"));
}
OP(aten_ormqr){
	.schema = "aten.ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool "
		  "transpose=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_ormqr,
	.sample = "f32[3, 2] of 2 1 0.5 -1 0.25 3, f32[2] of 1.5 0.2, f32[3, m=2]; "
		  "f32[3, 2], f32[2] of 1.5 0.2, f32[2, 3], left=false; "
		  "f32[2, 2, 2], f32[2, 2] of 1.5 0 0.5 1, f32[2, 2, 3], transpose=true; "
		  "c64[2, 2] of 2 1 0.5 -1 0.25 3 1 0, c64[2] of 1.5 0.5 0.25 -0.5, c64[3, 2], "
		  "left=false, transpose=true",
};

/* ---- qr ---- */

static Node qr_of(Build *b, Node x)
{
	bool pairs = solve_is_complex(b, x);
	Node in = solve_pairs(b, x);
	Node y = b_node(b, OP_qr, &in, 1, (Attr[]){attr_none(), attr_bool(pairs)}, 2);
	return y.i ? b_tuple(b,
			     (Node[]){solve_whole(b, b_get(b, y, 0), pairs),
				      solve_whole(b, b_get(b, y, 1), pairs)},
			     2)
		   : y;
}

/* Returns R in the first rows of a. */
static Node triangle_of(Build *b, Node a, Sym rows)
{
	Node x = b_slice(b, a, -2, b_int(b, 0), rows, b_int(b, 1));
	Shape s = aten_shape(b, x);
	Node i = aten_iota_dim(b, &s, s.rank - 2, DT_i64),
	     j = aten_iota_dim(b, &s, s.rank - 1, DT_i64);
	return b_select(b, b_bin(b, OP_le, i, j), x, aten_like(b, x, 0));
}

static Node build_qr_mode(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	if (!solve_takes_matrices(b, x, "linalg.qr"))
		return (Node){0};
	bool complete = aten_is(b, n, "mode", "complete"),
	     reduced = aten_is(b, n, "mode", "reduced");
	if (!complete && !reduced && !aten_is(b, n, "mode", "r"))
		return b_error(b, "linalg.qr: expected mode \"reduced\", \"complete\" or \"r\"");
	SymTab *t = b_syms(b);
	Sym rows = b_dim(b, x, -2), columns = b_dim(b, x, -1), least = sym_min(t, rows, columns),
	    zero = b_int(b, 0);
	if (reduced || (complete && sym_le(t, rows, columns) == YES))
		return qr_of(b, x);
	bool pairs = solve_is_complex(b, x);
	Node y = factor_geqrf(b, solve_pairs(b, x), pairs),
	     a = y.i ? solve_whole(b, b_get(b, y, 0), pairs) : y;
	if (!a.i)
		return a;
	if (!complete)
		return b_tuple(b,
			       (Node[]){b_full(b, node_dtype(b->g, x), 0, 1, &zero),
					triangle_of(b, a, least)},
			       2);
	Node tau = solve_whole(b, b_get(b, y, 1), pairs);
	return b_tuple(b,
		       (Node[]){reflected(b, a, tau, (Node){0}, rows, true, false),
				triangle_of(b, a, rows)},
		       2);
}
OP(aten_linalg_qr){
	.schema = "aten.linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
	.autocast = AUTOCAST_F32,
	.build = build_qr_mode,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, n=2, n] of 4 1 -1 2 0 1 2 3; "
		  "f32[3, 2] of 1 2 0 3 4 1; f32[2, 4] of 1 2 0 3 4 1 2 2, mode=\"complete\"; "
		  "f32[3, 2] of 1 2 0 3 4 1, mode=\"complete\"; "
		  "f32[3, 2] of 1 2 0 3 4 1, mode=\"r\"; c64[2, 2] of 0 1 2 0 1 -1 3 0.5; "
		  "f32[0, 2]",
};
