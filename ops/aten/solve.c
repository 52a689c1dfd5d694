/* Inverses, linear systems and determinants by factors with partial pivoting, and exponentials of
 * matrices. */
#include "ops/aten/solve.h"
#include "ops/rules/batch.h"

#include <math.h>
#include <string.h>

/* ---- arguments ---- */

bool solve_takes_dtype(Build *b, DType d, const char *name)
{
	if (dtype_is_inexact(d) && dtype_size(dtype_real(d)) >= 4)
		return true;
	b_error(b, "%s: expected f32, f64, c64 or c128, got %s", name, dtype_name(d));
	return false;
}

bool solve_takes_matrices(Build *b, Node x, const char *name)
{
	if (!x.i)
		return false;
	if (node_rank(b->g, x) < 2) {
		b_error(b, "%s: expected batches of matrices", name);
		return false;
	}
	return solve_takes_dtype(b, node_dtype(b->g, x), name);
}

bool solve_takes(Build *b, Node x, const char *name)
{
	Shape s = aten_shape(b, x);
	if (!x.i)
		return false;
	if (s.rank < 2 || sym_eq(b_syms(b), s.dim[s.rank - 1], s.dim[s.rank - 2]) == NO) {
		b_error(b, "%s: expected batches of square matrices", name);
		return false;
	}
	return solve_takes_dtype(b, node_dtype(b->g, x), name);
}

Node solve_on_diagonal(Build *b, Node x)
{
	Shape s = aten_shape(b, x);
	return b_bin(b, OP_eq, aten_iota_dim(b, &s, s.rank - 2, DT_i64),
		     aten_iota_dim(b, &s, s.rank - 1, DT_i64));
}

Node solve_identity(Build *b, Node x)
{
	return b_convert(b, solve_on_diagonal(b, x), node_dtype(b->g, x));
}

void solve_require(Build *b, Node cond, const char *message)
{
	cond = aten_reduce(b, REDUCE_AND, cond, (1u << aten_rank(b, cond)) - 1, false);
	b_node(b, OP_assert, &cond, 1, (Attr[]){attr_none(), attr_str(b->g->ir, message)}, 2);
}

/* What info that is not 0 means, by a part of the function's name. The first row that fits, as
 * torch.linalg's _linalg_check_errors has it. */
static const struct {
	const char *part, *why;
} failures[] = {
	{"inv", "The diagonal element {code} is zero, the inversion could not be completed because "
		"the input matrix is "
		"singular."},
	{"solve", "The solver failed because the input matrix is singular."},
	{"cholesky", "The factorization could not be completed because the input is not "
		     "positive-definite (the leading minor "
		     "of order {code} is not positive-definite)."},
	{"eig", "The algorithm failed to converge because the input matrix is ill-conditioned or "
		"has too many repeated "
		"eigenvalues (error code: {code})."},
	{"svd", "The algorithm failed to converge because the input matrix is ill-conditioned or "
		"has too many repeated "
		"singular values (error code: {code})."},
	{"lstsq", "The least squares solution could not be computed because the input matrix does "
		  "not have full rank (error "
		  "code: {code})."},
	{"lu_factor", "U[{code},{code}] is zero and using it on lu_solve would result in a "
		      "division by zero. If you still want "
		      "to perform the factorization, consider calling linalg.lu(A, pivot) or "
		      "linalg.lu_factor_ex(A, pivot)"},
	{"", "Unknown error code: {code}."},
};

void solve_require_info(Build *b, Node info, const char *name)
{
	size_t k = 0;
	if (!info.i)
		return;
	while (!strstr(name, failures[k].part))
		k++;
	const char *message =
		arena_printf(b->g->ir->ctx->arena, "%s: {place}%s", name, failures[k].why);
	b_node(b, OP_assert_zero, &info, 1, (Attr[]){attr_none(), attr_str(b->g->ir, message)}, 2);
}

Node solve_checked(Build *b, Node n, Node y, Node info, const char *name)
{
	if (!y.i || !info.i)
		return (Node){0};
	if (node_bool(b->g, n, "check_errors"))
		solve_require_info(b, info, name);
	const bool vectors = node_rank(b->g, y) == node_rank(b->g, info) + 1;
	Node regular = b_unsqueeze(b, b_bin_scalar(b, OP_eq, info, 0), -1);
	regular = vectors ? regular : b_unsqueeze(b, regular, -1);
	Shape all = aten_shape(b, y);
	regular = aten_expand_shape(b, regular, &all);
	return b_tuple(b, (Node[]){b_select(b, regular, y, aten_like(b, y, (double)NAN)), info}, 2);
}

/* ---- complex matrices as pairs ---- */

bool solve_is_complex(const Build *b, Node x)
{
	return x.i && dtype_is_complex(node_dtype(b->g, x));
}

Node solve_pairs(Build *b, Node x)
{
	return solve_is_complex(b, x) ? b_node(b, OP_view_real, &x, 1, NULL, 0) : x;
}

Node solve_whole(Build *b, Node x, bool pairs)
{
	return pairs && x.i ? b_node(b, OP_view_complex, &x, 1, NULL, 0) : x;
}

Node solve_adjoint(Build *b, Node x)
{
	return x.i ? b_transpose(b, aten_conj(b, x), -1, -2) : x;
}

Node solve_triangle(Build *b, Node a, Node x, Triangle t)
{
	bool pairs = solve_is_complex(b, a);
	x = solve_pairs(b, x);
	return solve_whole(b, factor_solve(b, solve_pairs(b, a), x, t, pairs), pairs);
}

Node solve_rows(Build *b, Node x, Node order)
{
	bool pairs = solve_is_complex(b, x);
	return solve_whole(b, factor_rows(b, solve_pairs(b, x), order, pairs), pairs);
}

SolveLu solve_lu(Build *b, Node x)
{
	bool pairs = solve_is_complex(b, x);
	Node y = factor_lu(b, solve_pairs(b, x), pairs);
	if (!y.i)
		return (SolveLu){0};
	return (SolveLu){.factors = solve_whole(b, b_get(b, y, 0), pairs),
			 .pivots = b_get(b, y, 1),
			 .order = b_get(b, y, 2),
			 .info = b_get(b, y, 3)};
}

Node solve_by_lu(Build *b, SolveLu f, Node x)
{
	if (!f.factors.i || !x.i)
		return (Node){0};
	Node y = solve_triangle(b, f.factors, solve_rows(b, x, f.order),
				(Triangle){.upper = false, .unit = true});
	return solve_triangle(b, f.factors, y, (Triangle){.upper = true, .unit = false});
}

/* ---- inverses ---- */

static Node inverse(Build *b, Node x, Node *info)
{
	SolveLu f = solve_lu(b, x);
	*info = f.info;
	return solve_by_lu(b, f, solve_identity(b, x));
}

static Node build_inv(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0), info;
	if (!solve_takes(b, x, "linalg.inv"))
		return (Node){0};
	Node y = inverse(b, x, &info);
	solve_require_info(b, info, "linalg.inv");
	return y;
}

Node solve_batch_matrices(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	(void)batched;
	const NodeData d = *node_data(b->g, n);
	return graph_add(b->g, b->before, d.op, in, 1, d.attr, batch_type(b->g->ir, d.type, size),
			 b->loc);
}

/* Computes -y^T g y^T. */
static bool adjoint_inv(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node y = b_transpose(b, node_dtype(b->g, n) == DT_none ? b_get(b, n, 0) : n, -1, -2);
	g[0] = ct[0].i ? b_un(b, OP_neg, b_matmul(b, b_matmul(b, y, ct[0]), y)) : ct[0];
	return true;
}

static Node build_inv_ex(Build *b, Node n)
{
	Node x = arg(b, n, "A"), info;
	if (!solve_takes(b, x, "linalg.inv_ex"))
		return (Node){0};
	Node y = inverse(b, x, &info);
	return solve_checked(b, n, y, info, "linalg.inv_ex");
}
OP(aten_linalg_inv){
	.schema = "aten.linalg_inv(Tensor A) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_inv,
	.adjoint = adjoint_inv, /* not through the elimination, all of whose steps would be kept */
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, n=2, n] of 4 1 -1 2 0 1 2 3; "
		  "c64[2, 2] of 0 1 2 0 1 -1 3 0.5; f32[0, 0]",
	.overloads = (const Overload[]){
		{.schema = "aten.inverse(Tensor self) -> Tensor",
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2"},
		{.schema = "aten.linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor "
			   "inverse, Tensor info)",
		 .build = build_inv_ex,
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, 2, 2] of 4 1 -1 2 0 1 2 3"},
	},
};

/* ---- systems ---- */

/* Tells whether x is a batch of vectors: where it has A's shape without the last dim, as PyTorch
 * decides. */
static bool is_vector(Build *b, Node a, Node x)
{
	Shape sa = aten_shape(b, a), sx = aten_shape(b, x);
	bool vector = sx.rank + 1 == sa.rank || sx.rank == 1;
	for (uint32_t k = 0; k < sx.rank && sx.rank > 1; k++)
		vector = vector && sym_eq(b_syms(b), sx.dim[k], sa.dim[k]) == YES;
	return vector;
}

bool solve_broadcast(Build *b, Node *a, Node *x)
{
	if (!a->i || !x->i)
		return false;
	Shape sa = aten_shape(b, *a), sx = aten_shape(b, *x), lead;
	Shape la = shape_of(sa.rank - 2, sa.dim), lx = shape_of(sx.rank - 2, sx.dim);
	if (!aten_broadcast_shape(b, &la, &lx, &lead))
		return false;
	Shape fa = lead, fx = lead;
	for (uint32_t k = 0; k < 2; k++) {
		fa = shape_insert(fa, lead.rank + k, sa.dim[sa.rank - 2 + k]);
		fx = shape_insert(fx, lead.rank + k, sx.dim[sx.rank - 2 + k]);
	}
	*a = aten_expand_shape(b, *a, &fa);
	*x = aten_expand_shape(b, *x, &fx);
	return a->i && x->i;
}

/* Returns the order [.., n] for the batch of `like` [.., n, m]. */
static Node expand_order(Build *b, Node order, Node like)
{
	Shape s = shape_remove(aten_shape(b, like), node_rank(b->g, like) - 1);
	return aten_expand_shape(b, order, &s);
}

/* Returns X of A X = B, of matrices; batches are broadcast, and each matrix of A is factored
 * once. */
static Node solve_left(Build *b, Node a, Node x, const char *name, Node *info)
{
	if (aten_rank(b, x) < 2 || sym_eq(b_syms(b), b_dim(b, x, -2), b_dim(b, a, -1)) == NO)
		return b_error(b, "%s: A and B have different numbers of rows", name);
	SolveLu f = solve_lu(b, a);
	*info = f.info;
	if (!solve_broadcast(b, &f.factors, &x))
		return (Node){0};
	f.order = expand_order(b, f.order, f.factors);
	return solve_by_lu(b, f, x);
}

/* Returns X of A X = B, or of X A = B. */
static Node solve(Build *b, Node n, const char *name, Node *info)
{
	Node a = arg(b, n, "A"), x = arg(b, n, "B");
	if (!solve_takes(b, a, name) || !x.i)
		return (Node){0};
	bool left = node_bool(b->g, n, "left"), vector = is_vector(b, a, x);
	if (node_dtype(b->g, x) != node_dtype(b->g, a))
		return b_error(b, "%s: A is %s, B is %s", name, dtype_name(node_dtype(b->g, a)),
			       dtype_name(node_dtype(b->g, x)));
	if (vector && !left)
		return b_error(b, "%s: vectors on the right of which A stands", name);
	if (vector)
		return b_squeeze(b, solve_left(b, a, b_unsqueeze(b, x, -1), name, info), -1);
	if (left)
		return solve_left(b, a, x, name, info);
	a = b_transpose(b, a, -1, -2);
	return b_transpose(b, solve_left(b, a, b_transpose(b, x, -1, -2), name, info), -1, -2);
}

/* Differentiates by B: the solution with A^T; by A: - that times y^T. */
static bool adjoint_solve(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	if (!ct[0].i)
		return true;
	Node a = arg(b, n, "A"), y = node_dtype(b->g, n) == DT_none ? b_get(b, n, 0) : n;
	bool left = node_bool(b->g, n, "left"), vector = is_vector(b, a, arg(b, n, "B"));
	Node in[] = {b_transpose(b, a, -1, -2), vector ? b_unsqueeze(b, ct[0], -1) : ct[0]};
	Node gx = b_call(b, OP_aten_linalg_solve, in, 2,
			 (Attr[]){attr_none(), attr_none(), attr_bool(left)}, 3);
	if (!gx.i)
		return false;
	y = b_transpose(b, vector ? b_unsqueeze(b, y, -1) : y, -1, -2);
	if (want[0])
		g[0] = b_un(b, OP_neg, left ? b_matmul(b, gx, y) : b_matmul(b, y, gx));
	g[1] = vector ? b_squeeze(b, gx, -1) : gx;
	return true;
}

/* Returns info of each member of a batch, which A's batch has if it is batched, with dims of 1
 * in it; one: that of a member. */
static Node batched_info(Build *b, Node info, Node one, bool batched, Sym size)
{
	const Shape own = aten_shape(b, one), all = shape_insert(own, 0, size);
	info = b_reshape(b, info, batched ? all.rank : own.rank, batched ? all.dim : own.dim);
	return aten_expand_shape(b, info, &all);
}

/* Makes vectors matrices of one column, and gives both operands as many dims, so that none is
 * taken for vectors. */
static Node batch_solve(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Node x[] = {in[0], in[1]};
	bool vector = is_vector(b, node_in(b->g, n, 0), node_in(b->g, n, 1));
	uint32_t rank[2], most = 0;
	if (vector)
		x[1] = b_unsqueeze(b, x[1], -1);
	for (uint32_t k = 0; k < 2; k++) {
		rank[k] = node_rank(b->g, x[k]) - batched[k];
		most = rank[k] > most ? rank[k] : most;
	}
	for (uint32_t k = 0; k < 2; k++)
		for (rank[k] -= !batched[k]; rank[k] < most; rank[k]++)
			x[k] = b_unsqueeze(b, x[k], batched[k]);
	Op op = node_op(b->g, n);
	Node y = b_call(b, op, x, 2, batch_attrs(b, n), op_schema(op)->narg);
	if (!y.i)
		return y;
	if (node_dtype(b->g, n) != DT_none)
		return vector ? b_squeeze(b, y, -1) : y;
	Node z = b_get(b, y, 0);
	z = vector ? b_squeeze(b, z, -1) : z;
	Node one = b_get(b, n, 1), info = b_get(b, y, 1);
	return b_tuple(b, (Node[]){z, batched_info(b, info, one, batched[0], size)}, 2);
}

static Node build_solve(Build *b, Node n)
{
	Node info = {0}, y = solve(b, n, "linalg.solve", &info);
	if (y.i)
		solve_require_info(b, info, "torch.linalg.solve");
	return y;
}

static Node build_solve_ex(Build *b, Node n)
{
	Node info = {0}, y = solve(b, n, "linalg.solve_ex", &info);
	return solve_checked(b, n, y, info, "torch.linalg.solve_ex");
}
OP(aten_linalg_solve){
	.autocast = AUTOCAST_F32,
	.linear_in = 2, /* B, which is eliminated beside A */
	.schema = "aten.linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
	.build = build_solve,
	.adjoint = adjoint_solve,
	.batch = batch_solve,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2, f32[3, m=2]; f32[2, 2, 2] of 4 1 -1 2 0 1 2 "
		  "3, f32[2, 2]; f32[2, 2] of 4 1 -1 2, f32[3, 2], left=false; "
		  "c64[2, 2] of 0 1 2 0 1 -1 3 0.5, c64[2]",
	.overloads = (const Overload[]){
		{.schema = "aten.linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool "
			   "check_errors=False) -> (Tensor result, Tensor info)",
		 .build = build_solve_ex,
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2, f32[3, m=2]; "
			   "f32[2, 2, 2] of 4 1 -1 2 1 2 2 5, f32[3, 2, 2, 1]; "
			   "f32[2, 2, 2] of 4 1 -1 2 0 1 2 3, f32[2]"},
	},
};

/* ---- determinants ---- */

/* Returns the pivots, [.., n]; the first one with a minus if an odd number of rows changed
 * places. */
static Node pivots_of(Build *b, SolveLu f)
{
	if (!f.factors.i)
		return (Node){0};
	Shape s = aten_shape(b, f.factors);
	uint32_t last = s.rank - 1;
	Node i = aten_iota_dim(b, &s, last - 1, DT_i64), j = aten_iota_dim(b, &s, last, DT_i64);
	Node pivots = aten_sum(
		b, b_select(b, b_bin(b, OP_eq, i, j), f.factors, aten_like(b, f.factors, 0)),
		1u << last, false);
	Node own = b_bin_scalar(b, OP_add, b_iota(b, DT_i64, s.dim[last]), 1);
	Node swapped = b_bin(b, OP_ne, b_convert(b, f.pivots, DT_i64), own);
	return b_select(b, swapped, b_un(b, OP_neg, pivots), pivots);
}

static Node det_operand(Build *b, Node n)
{
	return arg(b, n, op_arg_index(node_op(b->g, n), "A") >= 0 ? "A" : "self");
}

/* Computes it by factors of the transposed matrix, which the rule for cotangents and
 * aten._linalg_det read, too: they are computed once. */
static Node build_det(Build *b, Node n)
{
	Node x = det_operand(b, n);
	Node p = solve_takes(b, x, "linalg.det")
			 ? pivots_of(b, solve_lu(b, b_transpose(b, x, -1, -2)))
			 : (Node){0};
	return p.i ? b_reduce(b, REDUCE_PROD, p, 1u << (node_rank(b->g, p) - 1), DT_none) : p;
}

/* Computes the solution Y of A^T Y = det ct: where A is singular that is 0, by factors in which
 * pivots that are 0 are small instead, as PyTorch has it. */
static bool adjoint_det(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node x = node_in(b->g, n, 0), by = b_bin(b, OP_mul, ct[0], n);
	SolveLu f = solve_lu(b, b_transpose(b, x, -1, -2));
	Shape s = aten_shape(b, x);
	Node i = aten_iota_dim(b, &s, s.rank - 2, DT_i64),
	     j = aten_iota_dim(b, &s, s.rank - 1, DT_i64), on = b_bin(b, OP_eq, i, j);
	double least = node_dtype(b->g, x) == DT_f32 ? 0x1p-23 : 0x1p-52;
	Node none = b_bin(b, OP_bit_and, on, b_bin_scalar(b, OP_eq, f.factors, 0));
	f.factors = b_select(b, none, aten_like(b, x, least), f.factors);
	Node scaled =
		b_select(b, on, b_unsqueeze(b, b_unsqueeze(b, by, -1), -1), aten_like(b, x, 0));
	g[0] = solve_by_lu(b, f, scaled);
	return g[0].i;
}
OP(aten_linalg_det){
	.schema = "aten.linalg_det(Tensor A) -> Tensor",
	.build = build_det,
	.adjoint = adjoint_det,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, 2, 2] of 4 1 -1 2 0 1 2 3; "
		  "f32[2, 2] of 1 2 2 4; c64[2, 2] of 0 1 2 0 1 -1 3 0.5; f64[0, 0]",
	.overloads = (const Overload[]){
		{.schema = "aten.det(Tensor self) -> Tensor",
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2"},
	},
};

static Node build_slogdet(Build *b, Node n)
{
	Node x = det_operand(b, n),
	     p = solve_takes(b, x, "linalg.slogdet") ? pivots_of(b, solve_lu(b, x)) : (Node){0};
	if (!p.i)
		return p;
	uint32_t last = 1u << (node_rank(b->g, p) - 1);
	Node sign = b_node(b, OP_aten_sgn, &p, 1, NULL, 0);
	sign = sign.i ? b_reduce(b, REDUCE_PROD, sign, last, DT_none) : sign;
	return b_tuple(b, (Node[]){sign, aten_sum(b, b_un(b, OP_log, aten_abs(b, p)), last, false)},
		       2);
}
/* Returns by times the transposed inverse of x. */
static Node transposed_inverse(Build *b, Node x, Node by)
{
	Node y = b_call(b, OP_aten_linalg_inv_ex, &x, 1, NULL, 0);
	if (!y.i)
		return y;
	by = b_unsqueeze(b, b_unsqueeze(b, by, -1), -1);
	return b_bin(b, OP_mul, by, b_transpose(b, b_get(b, y, 0), -1, -2));
}

/* Differentiates by the logarithm alone: a sign has no derivative. */
static bool adjoint_slogdet(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	if (!ct[1].i)
		return true;
	g[0] = transposed_inverse(b, node_in(b->g, n, 0), ct[1]);
	return g[0].i;
}
OP(aten_linalg_slogdet){
	.schema = "aten.linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
	.build = build_slogdet,
	.adjoint = adjoint_slogdet,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, 2, 2] of 4 1 -1 2 0 1 2 3; "
		  "c64[2, 2] of 0 1 2 0 1 -1 3 0.5; f32[2, 2] of 1 2 2 4",
	.overloads = (const Overload[]){
		{.schema = "aten.slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2"},
	},
};

/* Builds the logarithm, of a real matrix NaN where the determinant is negative. */
static Node build_logdet(Build *b, Node n)
{
	Node x = det_operand(b, n), y = x.i ? b_call(b, OP_aten_linalg_slogdet, &x, 1, NULL, 0) : x;
	if (!y.i)
		return y;
	Node sign = b_get(b, y, 0), size = b_get(b, y, 1);
	if (solve_is_complex(b, x))
		return b_bin(b, OP_add, b_un(b, OP_log, sign),
			     b_convert(b, size, node_dtype(b->g, sign)));
	return b_select(b, b_bin_scalar(b, OP_eq, sign, -1), aten_like(b, size, (double)NAN), size);
}

/* Gives 0 where the value is NaN because the determinant is negative. */
static bool adjoint_logdet(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node x = node_in(b->g, n, 0), by = ct[0];
	(void)want;
	if (!by.i)
		return true;
	if (!solve_is_complex(b, x)) {
		Node y = b_call(b, OP_aten_linalg_slogdet, &x, 1, NULL, 0);
		by = y.i ? b_select(b, b_bin_scalar(b, OP_eq, b_get(b, y, 0), -1),
				    aten_like(b, by, 0), by)
			 : y;
	}
	g[0] = by.i ? transposed_inverse(b, x, by) : by;
	return g[0].i;
}
OP(aten_logdet){
	.schema = "aten.logdet(Tensor self) -> Tensor",
	.build = build_logdet,
	.adjoint = adjoint_logdet,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, 2] of 4 1 -1 2",
};

/* ---- exp ---- */

/* More squarings than this are not done: NaN where the largest sum of a column's magnitudes asks
 * for more. */
enum { MOST_SQUARINGS = 24, BLOCK = 4, TERMS = 20 };

/* Makes the body (y), i, squarings -> (y * y) of the matrices that have more than i. */
static Graph *square_body(Build *outer, TypeId type, TypeId count)
{
	Graph *g = graph_beside(outer->g, "square");
	Build in = {.g = g, .loc = outer->loc, .where = outer->where}, *b = &in;
	Node y = graph_add_input(g, "y", INPUT_USER, type),
	     i = graph_add_input(g, "i", INPUT_USER, ir_type(g->ir, DT_i64, 0, NULL));
	Node more = b_bin(b, OP_lt, i, graph_add_input(g, "squarings", INPUT_USER, count));
	more = b_unsqueeze(b, b_unsqueeze(b, more, -1), -1);
	graph_add_output(g, "y", b_select(b, more, b_matmul(b, y, y), y), -1);
	return g;
}

/* Returns the norm up to which the series is taken: as far as the dtype's precision goes, since
 * every squaring doubles the error. */
static double series_norm(DType d)
{
	return dtype_real(d) == DT_f64 ? 1 : 3;
}

/* Returns the sum of x^k / k! for k < TERMS: within norm^TERMS / TERMS!. BLOCK powers, and
 * Horner's rule over blocks. */
static Node exp_series(Build *b, Node x)
{
	Node power[BLOCK + 1] = {solve_identity(b, x), x}, y = {0};
	double factor[TERMS] = {1};
	for (int k = 1; k < TERMS; k++)
		factor[k] = factor[k - 1] / k;
	for (int k = 2; k <= BLOCK; k++)
		power[k] = b_matmul(b, power[k - 1], x);
	for (int k = TERMS - BLOCK; k >= 0; k -= BLOCK) {
		Node block = b_bin_scalar(b, OP_mul, power[0], factor[k]);
		for (int i = 1; i < BLOCK; i++)
			block = b_bin(b, OP_add, block,
				      b_bin_scalar(b, OP_mul, power[i], factor[k + i]));
		y = y.i ? b_bin(b, OP_add, b_matmul(b, y, power[BLOCK]), block) : block;
	}
	return y;
}

/* Builds exp(x / 2^s) squared s times, s of each matrix such that the norm, the largest sum of a
 * column, is small after scaling. */
static Node build_matrix_exp(Build *b, Node n)
{
	DType d = aten_dtype(b, arg(b, n, "self"));
	Node x = aten_wide(b, arg(b, n, "self"));
	if (!solve_takes(b, x, "matrix_exp"))
		return (Node){0};
	Ir *ir = b->g->ir;
	uint32_t rank = node_rank(b->g, x);
	Node norm = aten_sum(b, aten_abs(b, x), 1u << (rank - 2), false);
	norm = aten_reduce(b, REDUCE_MAX, norm, 1u << (rank - 2), false);
	norm = b_bin_scalar(b, OP_div, norm, series_norm(node_dtype(b->g, x)));
	Node s = b_un(b, OP_ceil, b_un(b, OP_log2, b_bin_scalar(b, OP_maximum, norm, 1)));
	Node many = b_un(b, OP_bit_not, b_bin_scalar(b, OP_le, s, MOST_SQUARINGS));
	s = b_select(b, many, aten_like(b, s, 0), s);
	Node scale = b_select(b, many, aten_like(b, s, (double)NAN),
			      b_un(b, OP_exp2, b_un(b, OP_neg, s)));
	scale = b_convert(b, b_unsqueeze(b, b_unsqueeze(b, scale, -1), -1), node_dtype(b->g, x));
	Node y = exp_series(b, b_bin(b, OP_mul, x, scale)), count = b_convert(b, s, DT_i64);
	if (!y.i)
		return y;
	Node in[] = {y, b_iota(b, DT_i64, b_int(b, MOST_SQUARINGS)), count};
	Attr attr[] = {attr_int(ir, 1),
		       attr_int(ir, 1),
		       attr_int(ir, 1),
		       attr_graph(square_body(b, node_type_id(b->g, y), node_type_id(b->g, count))),
		       attr_int(ir, MOST_SQUARINGS),
		       attr_bool(false)};
	y = b_get(b, b_node(b, OP_scan, in, 3, attr, 6), 0);
	return y.i ? b_convert(b, y, d) : y;
}
OP(aten_matrix_exp){
	.schema = "aten.matrix_exp(Tensor self) -> Tensor",
	.aliases = "aten.linalg_matrix_exp",
	.build = build_matrix_exp,
	.sample = "f32[3, 3] in -1..1; f32[2, n=2, n] in -4..4; f32[2, 2] of 0 1000 0 0; "
		  "c64[2, 2] in -2..2; f32[1, 1] of 5",
};
