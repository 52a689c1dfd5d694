/* Triangular systems and Cholesky's factorisation. */
#include "ops/aten/solve.h"

/* ---- triangular systems ---- */

/* Returns X of A X = B, or of X A = B; batches are broadcast. */
static Node solve_side(Build *b, Node a, Node x, Triangle t, bool left, const char *name)
{
	if (!solve_takes(b, a, name) || !x.i)
		return (Node){0};
	if (node_dtype(b->g, x) != node_dtype(b->g, a))
		return b_error(b, "%s: A is %s, B is %s", name, dtype_name(node_dtype(b->g, a)),
			       dtype_name(node_dtype(b->g, x)));
	if (!left) {
		a = b_transpose(b, a, -1, -2);
		x = node_rank(b->g, x) < 2 ? x : b_transpose(b, x, -1, -2);
		t.upper = !t.upper;
	}
	if (node_rank(b->g, x) < 2 || sym_eq(b_syms(b), b_dim(b, x, -2), b_dim(b, a, -1)) == NO)
		return b_error(b, "%s: A and B have different numbers of %s", name,
			       left ? "rows" : "columns");
	if (!solve_broadcast(b, &a, &x))
		return (Node){0};
	Node y = solve_triangle(b, a, x, t);
	return left ? y : b_transpose(b, y, -1, -2);
}

static Node build_solve_triangular(Build *b, Node n)
{
	Triangle t = {node_bool(b->g, n, "upper"), node_bool(b->g, n, "unitriangular")};
	return solve_side(b, arg(b, n, "self"), arg(b, n, "B"), t, node_bool(b->g, n, "left"),
			  "linalg.solve_triangular");
}

static Node call_triangular(Build *b, Node a, Node x, Triangle t, bool left)
{
	Attr attr[] = {attr_none(), attr_none(), attr_bool(t.upper), attr_bool(left),
		       attr_bool(t.unit)};
	return b_call(b, OP_aten_linalg_solve_triangular, (Node[]){a, x}, 2, attr, 5);
}

OP(aten_linalg_solve_triangular){
	.schema = "aten.linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool "
		  "left=True, bool unitriangular=False) -> Tensor",
	.build = build_solve_triangular,
	.sample = "f32[3, 3] of 2 9 9 1 0.5 9 3 1 -2, f32[3, m=2], upper=false; "
		  "f32[2, n=2, n] of 4 1 9 2 1 1 9 3, f32[n, 3], upper=true; "
		  "f32[2, 2] of 4 1 -1 2, f32[2, 3, 2], upper=true, left=false; "
		  "f32[2, 2] of 9 1 -1 9, f32[2, 2], upper=false, unitriangular=true; "
		  "c64[2, 2] of 0.5 1 2 0 1 -1 3 0.5, c64[2, 2], upper=false; "
		  "f32[0, 0], f32[0, 2], upper=true",
};

/* Builds the older form, whose arguments stand the other way round. */
static Node build_triangular_solve(Build *b, Node n)
{
	Node x = arg(b, n, "self"), a = arg(b, n, "A");
	Triangle t = {node_bool(b->g, n, "upper"), node_bool(b->g, n, "unitriangular")};
	if (!a.i || !x.i || !solve_takes(b, a, "triangular_solve"))
		return (Node){0};
	bool transposed = node_bool(b->g, n, "transpose");
	Node y = call_triangular(b, transposed ? b_transpose(b, a, -1, -2) : a, x,
				 (Triangle){t.upper != transposed, t.unit}, true);
	if (!y.i)
		return y;
	Shape s = aten_shape(b, a), sy = aten_shape(b, y);
	Shape full = shape_insert(
		shape_insert(shape_of(sy.rank - 2, sy.dim), sy.rank - 2, s.dim[s.rank - 2]),
		sy.rank - 1, s.dim[s.rank - 1]);
	return b_tuple(b, (Node[]){y, aten_expand_shape(b, a, &full)}, 2);
}
OP(aten_triangular_solve){
	.schema = "aten.triangular_solve(Tensor self, Tensor A, bool upper=True, bool "
		  "transpose=False, bool unitriangular=False) -> (Tensor solution, "
		  "Tensor cloned_coefficient)",
	.autocast = AUTOCAST_F32,
	.build = build_triangular_solve,
	.sample = "f32[3, 2], f32[3, 3] of 2 1 -1 9 0.5 3 9 9 -2; f32[2, 2, 2], "
		  "f32[2, 2] of 4 1 -1 2, upper=false, transpose=true",
};

/* ---- Cholesky ---- */

/* Returns L with L L^H = x, or U with U^H U. */
static Node cholesky(Build *b, Node n, Node *info)
{
	Node x = arg(b, n, "self");
	*info = (Node){0};
	if (!solve_takes(b, x, "linalg.cholesky"))
		return (Node){0};
	bool upper = node_bool(b->g, n, "upper"), pairs = solve_is_complex(b, x);
	Node y = factor_cholesky(b, solve_pairs(b, upper ? x : solve_adjoint(b, x)), pairs);
	if (!y.i)
		return y;
	*info = b_get(b, y, 1);
	y = solve_whole(b, b_get(b, y, 0), pairs);
	return upper ? y : solve_adjoint(b, y);
}

static Node build_cholesky(Build *b, Node n)
{
	Node info, y = cholesky(b, n, &info);
	solve_require_info(b, info, "linalg.cholesky");
	return y;
}

static Node build_cholesky_ex(Build *b, Node n)
{
	Node info, y = cholesky(b, n, &info);
	return solve_checked(b, n, y, info, "linalg.cholesky_ex");
}

OP(aten_linalg_cholesky){
	.schema = "aten.linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.aliases = "aten.cholesky",
	.build = build_cholesky,
	.sample = "f32[3, 3] of 4 2 1 2 5 3 1 3 6; f32[2, n=2, n] of 4 1 1 2 1 0.5 0.5 3, "
		  "upper=true; "
		  "c64[2, 2] of 4 0 1 1 1 -1 3 0; c64[2, 2] of 4 0 1 1 1 -1 3 0, upper=true",
	.overloads = (const Overload[]){
		{.schema = "aten.linalg_cholesky_ex(Tensor self, *, bool upper=False, bool "
			   "check_errors=False) -> (Tensor L, Tensor info)",
		 .build = build_cholesky_ex,
		 .sample = "f32[3, 3] of 4 2 1 2 5 3 1 3 6; f32[2, 2, 2] of 4 1 1 2 1 0.5 0.5 3, "
			   "upper=true"},
	},
};

/* Returns the solution of L L^H X = B. */
static Node solve_factored(Build *b, Node x, Node l, bool upper)
{
	if (!x.i || !l.i || !solve_takes(b, l, "cholesky_solve"))
		return (Node){0};
	if (upper)
		l = solve_adjoint(b, l);
	Node half = call_triangular(b, l, x, (Triangle){false, false}, true);
	return half.i ? call_triangular(b, solve_adjoint(b, l), half, (Triangle){true, false}, true)
		      : half;
}

static Node build_cholesky_solve(Build *b, Node n)
{
	return solve_factored(b, arg(b, n, "self"), arg(b, n, "input2"),
			      node_bool(b->g, n, "upper"));
}
OP(aten_cholesky_solve){
	.schema = "aten.cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_cholesky_solve,
	.sample = "f32[3, m=2], f32[3, 3] of 2 9 9 1 0.5 9 3 1 -2; f32[2, 2, 3], f32[2, 2] of 4 1 "
		  "-1 2, upper=true; "
		  "c64[2, 3], c64[2, 2] of 2 0 9 9 1 1 0.5 0.25; c64[2, 2, 1], c64[2, 2] of 2 1 1 "
		  "-1 9 9 3 0.5, upper=true",
};

static Node build_cholesky_inverse(Build *b, Node n)
{
	Node l = arg(b, n, "self");
	if (!solve_takes(b, l, "cholesky_inverse"))
		return (Node){0};
	return solve_factored(b, solve_identity(b, l), l, node_bool(b->g, n, "upper"));
}
OP(aten_cholesky_inverse){
	.schema = "aten.cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_cholesky_inverse,
	.sample = "f32[3, 3] of 2 9 9 1 0.5 9 3 1 -2; f32[2, 2] of 4 1 -1 2, upper=true",
};
