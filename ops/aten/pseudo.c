/* What is built on eigenvalues and singular values: pseudo-inverses, ranks, condition numbers,
 * norms, and square roots of matrices. */
#include "ops/aten/spectral.h"
#include "ops/rules/batch.h"

#include <math.h>
#include <string.h>

/* ---- singular values ---- */

static Node values(Build *b, Node x)
{
	return x.i ? b_call(b, OP_aten_linalg_svdvals, &x, 1, NULL, 0) : x;
}

/* Returns |eigenvalues| of a Hermitian x, or singular values. */
static Node magnitudes(Build *b, Node x, bool hermitian)
{
	if (!hermitian)
		return values(b, x);
	return x.i ? aten_abs(b, b_call(b, OP_aten_linalg_eigvalsh, &x, 1, NULL, 0)) : x;
}

static uint32_t last_dim(const Build *b, Node x)
{
	return 1u << (aten_rank(b, x) - 1);
}

Node spectral_norm(Build *b, Node x, uint32_t row, uint32_t column, int p, bool keep)
{
	const uint32_t rank = aten_rank(b, x);
	uint32_t perm[MAX_RANK], at = 0;
	if (!x.i)
		return x;
	for (uint32_t k = 0; k < rank; k++)
		if (k != row && k != column)
			perm[at++] = k;
	perm[at++] = row;
	perm[at] = column;
	Node s = values(b, b_permute(b, x, perm)), y;
	if (!s.i)
		return s;
	/* the greatest of none is 0 */
	if (p == 1 || (p == 2 && sym_is(b_syms(b), b_dim(b, s, -1), 0))) {
		y = aten_sum(b, s, last_dim(b, s), false);
	} else {
		aten_require_elements(b, s, last_dim(b, s),
				      "a matrix of this norm has rows and columns");
		y = aten_reduce(b, p > 0 ? REDUCE_MAX : REDUCE_MIN, s, last_dim(b, s), false);
	}
	if (keep)
		y = b_unsqueeze(b, b_unsqueeze(b, y, (int)(row < column ? row : column)),
				(int)(row < column ? column : row));
	return y;
}

static Node build_nuclear(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	const uint32_t rank = aten_rank(b, x);
	int64_t d[2] = {0, 1};
	if (op_arg_index(node_op(b->g, n), "dim") >= 0 && !aten_ints(b, n, "dim", 2, 0, d))
		return (Node){0};
	if (rank < 2 || (op_arg_index(node_op(b->g, n), "dim") < 0 && rank != 2))
		return b_error(b, "nuclear_norm: expected a matrix, got rank %u", rank);
	const uint32_t row = b_wrap_dim(b, d[0], rank), column = b_wrap_dim(b, d[1], rank);
	if (row == column)
		return b_error(b, "nuclear_norm: the dims of a matrix are the same one twice");
	return spectral_norm(b, x, row, column, 1, node_bool(b->g, n, "keepdim"));
}
OP(aten_nuclear_norm){
	.schema = "aten.nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_nuclear,
	.sample = "f32[3, 4] in -4..5; f32[3, 3], keepdim=true",
	.overloads = (const Overload[]){
		{.schema = "aten.nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> "
			   "Tensor",
		 .sample = "f32[3, 2, 4] in -4..5, dim=[2, 0]"},
	},
};

/* ---- tolerances ---- */

static double epsilon(DType d)
{
	return dtype_real(d) == DT_f64 ? 0x1p-52 : 0x1p-23;
}

/* Returns a tolerance of the call, as a tensor; no node if it is not given. */
static Node tolerance(Build *b, Node n, const char *name)
{
	const int k = op_arg_index(node_op(b->g, n), name);
	if (k < 0)
		return (Node){0};
	if (op_schema(node_op(b->g, n))->arg[k].kind == ARG_tensor)
		return arg(b, n, name);
	return aten_has(b, n, name) ? b_scalar(b, DT_f64, node_float(b->g, n, name)) : (Node){0};
}

/* Returns [..., 1], of the dtype of s [..., k]: max(atol, rtol * the greatest of s). Without
 * rtol it is eps times the greater extent, but 0 where atol is above 0. */
static Node bound(Build *b, Node n, Node x, Node s, Node atol, Node rtol)
{
	const DType d = aten_dtype(b, s);
	if (!s.i)
		return s;
	if (!rtol.i) {
		Sym most = sym_max(b_syms(b), b_dim(b, x, -2), b_dim(b, x, -1));
		rtol = b_bin_scalar(b, OP_mul, b_convert(b, b_from_size(b, most), DT_f64),
				    epsilon(d));
		if (atol.i)
			rtol = b_select(b, b_bin_scalar(b, OP_gt, atol, 0), b_scalar(b, DT_f64, 0),
					rtol);
	}
	(void)n;
	Node most = aten_reduce(b, REDUCE_MAX, s, last_dim(b, s), true);
	Node y = b_bin(b, OP_mul,
		       aten_rank(b, rtol) ? b_unsqueeze(b, b_convert(b, rtol, d), -1)
					  : b_convert(b, rtol, d),
		       most);
	if (atol.i)
		y = b_bin(b, OP_maximum,
			  aten_rank(b, atol) ? b_unsqueeze(b, b_convert(b, atol, d), -1)
					     : b_convert(b, atol, d),
			  y);
	return y;
}

/* ---- rank ---- */

static bool has_elements(Build *b, Node x)
{
	return !sym_is(b_syms(b), b_dim(b, x, -1), 0) && !sym_is(b_syms(b), b_dim(b, x, -2), 0);
}

static Node rank_of(Build *b, Node n, Node x, Node atol, Node rtol)
{
	Shape s = aten_shape(b, x);
	if (!spectral_takes(b, x, "linalg.matrix_rank"))
		return (Node){0};
	if (!has_elements(b, x))
		return b_full_int(b, DT_i64, 0, s.rank - 2, s.dim);
	Node m = magnitudes(b, x, node_bool(b->g, n, "hermitian")),
	     most = bound(b, n, x, m, atol, rtol);
	return most.i ? aten_sum(b, b_convert(b, b_bin(b, OP_gt, m, most), DT_i64), last_dim(b, m),
				 false)
		      : most;
}

static Node build_rank(Build *b, Node n)
{
	Node rtol = tolerance(b, n, "rtol"), atol = tolerance(b, n, "atol");
	return rank_of(b, n, node_in(b->g, n, 0), atol, rtol);
}

static Node build_older_rank(Build *b, Node n)
{
	Node rtol = b_scalar(b, DT_f64, 0);
	return rank_of(b, n, node_in(b->g, n, 0), tolerance(b, n, "tol"), rtol);
}
OP(aten_linalg_matrix_rank_atol_rtol_float){
	.schema = "aten.linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, "
		  "float? rtol=None, bool hermitian=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_rank,
	.sample = "f32[2, 2] of 1 2 2 4; f32[n=2, 2, 3] of 1 2 3 2 4 6 1 0 0 0 1 0, rtol=0.1; "
		  "f32[2, 2] of 1 2 2 4, hermitian=true; c128[2, 2] of 1 1 2 2 2 2 4 4.5, "
		  "atol=0.5; f64[0, 3]",
	.overloads = (const Overload[]){
		{.schema = "aten.linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? "
			   "atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
		 .sample = "f32[2, 2, 2] of 1 2 2 4 1 0 0 2, f32[2] of 0.5 1.5, none; "
			   "f32[2, 2] of 1 2 2 4, none, f64[] of 0.1, hermitian=true"},
		{.schema = "aten.linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) "
			   "-> Tensor",
		 .build = build_older_rank,
		 .sample = "f32[2, 2] of 1 2 2 5, tol=0.5; "
			   "f32[2, 2] of 1 2 2 5, tol=6, hermitian=true"},
		{.schema = "aten.linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool "
			   "hermitian=False) -> Tensor",
		 .build = build_older_rank,
		 .sample = "f32[2, 2, 2] of 1 2 2 4 1 0 0 2, f32[2] of 0.5 1.5"},
	},
};

/* ---- pseudo-inverse ---- */

/* Returns 1 / s where |s| is above the bound, else 0. */
static Node inverted(Build *b, Node s, Node size, Node most)
{
	Node zero = aten_like(b, s, 0), large = most.i ? b_bin(b, OP_gt, size, most) : most;
	return large.i ? b_select(b, large, b_un(b, OP_reciprocal, s), zero) : large;
}

static Node inverse_of_values(Build *b, Node n, Node x, Node atol, Node rtol)
{
	if (op_arg_index(node_op(b->g, n), "hermitian") >= 0 && node_bool(b->g, n, "hermitian")) {
		Node y = b_call(b, OP_aten_linalg_eigh, &x, 1, NULL, 0);
		if (!y.i)
			return y;
		Node w = b_get(b, y, 0), v = b_get(b, y, 1), size = aten_abs(b, w);
		Node d = inverted(b, w, size, bound(b, n, x, size, atol, rtol));
		return d.i ? b_matmul(b, spectral_scale_columns(b, v, d), solve_adjoint(b, v)) : d;
	}
	Node y = b_call(b, OP_aten_linalg_svd, &x, 1, (Attr[]){attr_none(), attr_bool(false)}, 2);
	if (!y.i)
		return y;
	Node s = b_get(b, y, 1), d = inverted(b, s, s, bound(b, n, x, s, atol, rtol));
	return d.i ? b_matmul(b, solve_adjoint(b, b_get(b, y, 2)),
			      spectral_scale_rows(b, solve_adjoint(b, b_get(b, y, 0)), d))
		   : d;
}

static Node pinv(Build *b, Node n, Node atol, Node rtol)
{
	Node x = node_in(b->g, n, 0);
	Shape s = aten_shape(b, x), t = s;
	if (!spectral_takes(b, x, "linalg.pinv"))
		return (Node){0};
	t.dim[s.rank - 1] = s.dim[s.rank - 2];
	t.dim[s.rank - 2] = s.dim[s.rank - 1];
	return has_elements(b, x) ? inverse_of_values(b, n, x, atol, rtol)
				  : b_full(b, aten_dtype(b, x), 0, t.rank, t.dim);
}

static Node build_pinv(Build *b, Node n)
{
	Node rtol = tolerance(b, n, "rtol");
	return pinv(b, n, tolerance(b, n, "atol"), rtol);
}

static Node build_older_pinv(Build *b, Node n)
{
	return pinv(b, n, (Node){0}, tolerance(b, n, "rcond"));
}

static Node product(Build *b, Node x, Node y)
{
	return x.i && y.i ? b_matmul(b, x, y) : (Node){0};
}

/* Returns x - y. */
static Node less(Build *b, Node x, Node y)
{
	return x.i && y.i ? b_bin(b, OP_sub, x, y) : (Node){0};
}

/* Computes with y = pinv x: - y^H g y^H + (1 - x y) g^H y y^H + y^H y g^H (1 - y x). */
static bool adjoint_pinv(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node x = node_in(b->g, n, 0), y = n, yh = solve_adjoint(b, y), gh = solve_adjoint(b, ct[0]);
	if (!want[0])
		return true;
	Node right = product(b, product(b, gh, y), yh), left = product(b, yh, product(b, y, gh));
	right = less(b, right, product(b, x, product(b, y, right)));
	left = less(b, left, product(b, product(b, left, y), x));
	Node middle = product(b, product(b, yh, ct[0]), yh);
	g[0] = less(b, b_add(b, right, left), middle);
	return g[0].i;
}

/* Computes - y dx y + y y^H dx^H (1 - x y) + (1 - y x) dx^H y^H y. */
static bool tangent_pinv(Build *b, Node n, const Node *t, Node *ty)
{
	Node x = node_in(b->g, n, 0), y = n, yh = solve_adjoint(b, y), dh = solve_adjoint(b, t[0]);
	if (!t[0].i)
		return true;
	Node right = product(b, product(b, y, yh), dh), left = product(b, product(b, dh, yh), y);
	right = less(b, right, product(b, product(b, right, x), y));
	left = less(b, left, product(b, y, product(b, x, left)));
	Node middle = product(b, product(b, y, t[0]), y);
	ty[0] = less(b, b_add(b, right, left), middle);
	return ty[0].i;
}

/* Batches tolerances, too: they get as many dimensions as there are matrices. */
static Node batch_pinv(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	const NodeData d = *node_data(b->g, n);
	Node *x = batch_all_wide(b, n, in, batched, size);
	const uint32_t rank = aten_rank(b, x[0]);
	for (uint32_t k = 1; k < d.nin; k++)
		while (x[k].i && aten_rank(b, x[k]) + 2 < rank)
			x[k] = b_unsqueeze(b, x[k], 1);
	return graph_add(b->g, b->before, d.op, x, d.nin, d.attr,
			 batch_type(b->g->ir, d.type, size), b->loc);
}

OP(aten_linalg_pinv_atol_rtol_tensor){
	.schema = "aten.linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? "
		  "rtol=None, bool hermitian=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expands = EXPANDS_IN_DECOMPOSE,
	.whole = true,
	.build = build_pinv,
	.adjoint = adjoint_pinv,
	.tangent = tangent_pinv,
	.batch = batch_pinv,
	.sample = "f32[3, 2] of 1 2 3 -1 0.5 4, none, none; f32[2, n=2, n] of 4 1 1 -2 1 3, "
		  "f32[2] of 0.5 0.1, none; c128[2, 2] of 4 0 1 1 1 -1 3 2, none, f64[] of 0.01; "
		  "f64[0, 2], none, none",
	.overloads = (const Overload[]){
		{.schema = "aten.linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, "
			   "float? rtol=None, bool hermitian=False) -> Tensor",
		 .sample = "f32[3, 2] of 1 2 3 -1 0.5 4; f32[2, 2, 2] of 4 1 1 -2 1 0.5 0.5 3, "
			   "rtol=0.01, hermitian=true; f32[2, 2] of 1 2 2 4, atol=0.5"},
		{.schema = "aten.linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> "
			   "Tensor",
		 .build = build_older_pinv,
		 .sample = "f32[3, 2] of 1 2 3 -1 0.5 4, rcond=0.01"},
		{.schema = "aten.linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool "
			   "hermitian=False) -> Tensor",
		 .build = build_older_pinv,
		 .sample = "f32[3, 2] of 1 2 3 -1 0.5 4, f32[] of 0.01"},
		{.schema = "aten.pinverse(Tensor self, float rcond=1e-15) -> Tensor",
		 .build = build_older_pinv,
		 .sample = "f32[3, 2] of 1 2 3 -1 0.5 4"},
	},
};

/* ---- condition ---- */

static Node norm_by(Build *b, Node x, const Attr *p, bool text)
{
	Attr attr[] = {attr_none(), *p};
	return x.i ? b_node(b,
			    text ? OP_aten_linalg_matrix_norm_str_ord : OP_aten_linalg_matrix_norm,
			    &x, 1, attr, 2)
		   : x;
}

/* Returns the norm of x times that of its inverse, infinite where there is none. */
static Node by_inverse(Build *b, Node x, const Attr *p, bool text)
{
	if (!solve_takes(b, x, "linalg.cond"))
		return (Node){0};
	Node y = b_call(b, OP_aten_linalg_inv_ex, &x, 1, NULL, 0);
	if (!y.i)
		return y;
	Node whole = b_bin_scalar(b, OP_eq, b_get(b, y, 1), 0), inverse = b_get(b, y, 0);
	Node all = b_unsqueeze(b, b_unsqueeze(b, whole, -1), -1);
	inverse = norm_by(b, b_select(b, all, inverse, aten_like(b, inverse, 0)), p, text);
	Node product = inverse.i ? b_bin(b, OP_mul, norm_by(b, x, p, text), inverse) : inverse;
	return product.i ? b_select(b, whole, product, aten_like(b, product, INFINITY)) : product;
}

/* Returns the sum of singular values times that of their reciprocals: of singular matrices what
 * their rounding gives, as in PyTorch. */
static Node by_nuclear(Build *b, Node x)
{
	Node s = solve_takes(b, x, "linalg.cond") ? values(b, x) : (Node){0};
	if (!s.i)
		return s;
	return b_bin(b, OP_mul, aten_sum(b, s, last_dim(b, s), false),
		     aten_sum(b, b_un(b, OP_reciprocal, s), last_dim(b, s), false));
}

static Node no_condition(Build *b, Node x)
{
	Shape s = aten_shape(b, x);
	return b_full(b, dtype_real(aten_dtype(b, x)), 0, s.rank - 2, s.dim);
}

static Node build_cond(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	const double p = aten_has(b, n, "p") ? node_float(b->g, n, "p") : 2;
	if (!spectral_takes(b, x, "linalg.cond"))
		return (Node){0};
	if (!has_elements(b, x))
		return no_condition(b, x);
	if (fabs(p) != 2)
		return by_inverse(b, x, node_attr(b->g, n, "p"), false);
	Node s = values(b, x);
	if (!s.i)
		return s;
	Node first = b_select_dim(b, s, -1, b_int(b, 0));
	Node last = b_select_dim(b, s, -1, sym_addi(b_syms(b), b_dim(b, s, -1), -1));
	return p > 0 ? b_bin(b, OP_div, first, last) : b_bin(b, OP_div, last, first);
}

static Node build_cond_str(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (!spectral_takes(b, x, "linalg.cond") || !aten_check_word(b, n, "p", "fro nuc"))
		return (Node){0};
	if (!has_elements(b, x))
		return no_condition(b, x);
	return aten_is(b, n, "p", "nuc") ? by_nuclear(b, x)
					 : by_inverse(b, x, node_attr(b->g, n, "p"), true);
}
OP(aten_linalg_cond){
	.schema = "aten.linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_cond,
	.sample = "f32[3, 2] of 1 2 3 -1 0.5 4; f32[2, n=2, n] of 4 1 1 -2 1 3, p=-2; "
		  "f32[2, 2] of 4 1 1 -2, p=1; c128[2, 2] of 4 0 1 1 1 -1 3 2, p=2; "
		  "f32[2, 2] of 1 2 2 4, p=inf; f64[2, 0, 0]",
	.overloads = (const Overload[]){
		{.schema = "aten.linalg_cond.p_str(Tensor self, str p) -> Tensor",
		 .build = build_cond_str,
		 .sample = "f32[2, 2] of 4 1 1 -2 3 0.5 2 5, p=\"fro\"; "
			   "f32[2, 2] of 4 1 1 -2 3 0.5 2 5, p=\"nuc\""},
	},
};

/* ---- square roots of Hermitian matrices ---- */

/* Returns the roots of eigenvalues; of those below 0, which rounding may make, 0. */
static Node roots(Build *b, Node y)
{
	return y.i ? b_un(b, OP_sqrt, b_bin_scalar(b, OP_maximum, b_get(b, y, 0), 0)) : y;
}

/* Returns V M V^H, or V (M / (r[i] + r[j])) V^H. */
static Node in_basis(Build *b, Node y, Node m, bool inverse)
{
	Node v = b_get(b, y, 1), vh = solve_adjoint(b, v);
	if (inverse) {
		Node r = roots(b, y);
		m = product(b, product(b, vh, m), v);
		m = m.i ? b_bin(b, OP_div, m,
				b_bin(b, OP_add, b_unsqueeze(b, r, -2), b_unsqueeze(b, r, -1)))
			: m;
	}
	return product(b, product(b, v, m), vh);
}

static Node eigh_of(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	return x.i ? b_call(b, OP_aten_linalg_eigh, &x, 1, NULL, 0) : x;
}

static Node build_sqrth(Build *b, Node n)
{
	Node y = eigh_of(b, n);
	if (!y.i)
		return y;
	Node v = b_get(b, y, 1);
	Node vh = solve_adjoint(b, v);
	return product(b, spectral_scale_columns(b, v, roots(b, y)), vh);
}

static bool adjoint_sqrth(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node y = eigh_of(b, n);
	(void)want;
	g[0] = y.i ? in_basis(b, y, spectral_hermitian(b, ct[0]), true) : y;
	return g[0].i;
}

static bool tangent_sqrth(Build *b, Node n, const Node *t, Node *ty)
{
	return !t[0].i || adjoint_sqrth(b, n, t, NULL, ty);
}
OP(aten_linalg_matrix_sqrth){
	.schema = "aten.linalg_matrix_sqrth(Tensor self) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expands = EXPANDS_IN_DECOMPOSE,
	.whole = true,
	.build = build_sqrth,
	.adjoint = adjoint_sqrth,
	.tangent = tangent_sqrth,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 4 2 1 2 5 3 1 3 7; f32[2, n=2, n] of 4 1 1 2 1 0.5 0.5 3; "
		  "c128[2, 2] of 4 0 1 1 1 -1 3 0; f64[0, 0]",
};
