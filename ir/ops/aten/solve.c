/* Inverses, linear systems and determinants by elimination with partial pivoting, and exponentials
 * of matrices. For small matrices, of any batch: the elimination is a loop over columns, each step
 * of which reads and writes the whole matrix. */
#include "ir/ops/aten/solve.h"
#include "ir/ops/batch.h"

#include <math.h>

/* ---- elimination ---- */

Node solve_picked(Build *b, Node x, uint32_t dim, Node index)
{
	Shape s = aten_shape(b, x);
	for (uint32_t k = node_rank(b->g, index); k && k < s.rank; k++)
		index = b_unsqueeze(b, index, -1);
	Node here = b_bin(b, OP_eq, aten_iota_dim(b, &s, dim, DT_i64), index);
	return aten_sum(b, b_select(b, here, x, aten_like(b, x, 0)), 1u << dim, false);
}

/* What pivots are compared by: |x|, of complex numbers |re| + |im|, as LAPACK does. */
static Node pivot_size(Build *b, Node x)
{
	if (!dtype_is_complex(node_dtype(b->g, x)))
		return b_un(b, OP_abs, x);
	return b_bin(b, OP_add, b_un(b, OP_abs, b_part(b, x, false)), b_un(b, OP_abs, b_part(b, x, true)));
}

/* NULL after ctx_error. One column: (matrix), k -> (matrix), pivot. Row k and the one with the
 * largest element of column k, from row k on, change places; row k is divided by that element, the
 * pivot, and taken off every other row so often that their column k is 0. The pivot has a minus
 * where rows were exchanged; by one that is 0 nothing is divided. */
static Graph *column_body(Build *outer, TypeId type)
{
	Graph *g = graph_new(outer->g->ir, "column");
	Build in = {.g = g, .loc = outer->loc, .where = outer->where}, *b = &in;
	Node x = graph_add_input(g, "x", INPUT_USER, type);
	Node k = graph_add_input(g, "k", INPUT_USER, ir_type(g->ir, DT_i64, 0, NULL));
	Shape s = aten_shape(b, x), sc = shape_remove(s, s.rank - 1);
	uint32_t row = s.rank - 2, column = s.rank - 1;
	Node at = aten_iota_dim(b, &sc, row, DT_i64), c = solve_picked(b, x, column, k);
	Node size = pivot_size(b, c);
	Node p = b_arg_reduce(b, true, b_select(b, b_bin(b, OP_ge, at, k), size, aten_like(b, size, -1)), row);
	if (!p.i)
		return NULL;
	Node best = solve_picked(b, x, row, p), mine = solve_picked(b, x, row, k), pivot = solve_picked(b, best, row, k);
	Node one = aten_like(b, x, 1), zero = b_bin(b, OP_eq, pivot, aten_like(b, x, 0));
	Node unit = b_bin(b, OP_div, best, b_unsqueeze(b, b_select(b, zero, one, pivot), -1));
	Node is_p = b_bin(b, OP_eq, at, b_unsqueeze(b, p, -1)), is_k = b_bin(b, OP_eq, at, k);
	Node swapped = b_select(b, b_unsqueeze(b, is_p, -1), b_unsqueeze(b, mine, row), x);
	Node factor = b_select(b, is_p, b_unsqueeze(b, solve_picked(b, mine, row, k), -1), c);
	Node rest = b_bin(b, OP_sub, swapped, b_bin(b, OP_mul, b_unsqueeze(b, factor, -1), b_unsqueeze(b, unit, row)));
	graph_add_output(g, "x", b_select(b, b_unsqueeze(b, is_k, -1), b_unsqueeze(b, unit, row), rest), -1);
	graph_add_output(g, "pivot", b_select(b, b_bin(b, OP_eq, p, k), pivot, b_un(b, OP_neg, pivot)), -1);
	return g;
}

/* [.., n, n + m]: a square matrix and what stands beside it, which becomes the inverse times it.
 * The pivots [n, ..]. */
static Node eliminate(Build *b, Node x, Node *pivots)
{
	if (!x.i)
		return x;
	Ir *ir = b->g->ir;
	Sym n = b_dim(b, x, -2);
	if (sym_is(b_syms(b), n, 0)) {
		Shape s = aten_shape(b, x), sp = shape_insert(shape_of(s.rank - 2, s.dim), 0, n);
		*pivots = b_full(b, node_dtype(b->g, x), 1, sp.rank, sp.dim);
		return x;
	}
	Graph *body = column_body(b, node_type_id(b->g, x));
	if (!body)
		return (Node){0};
	Node in[] = {x, b_iota(b, DT_i64, n)};
	Attr attr[] = {attr_int(ir, 1), attr_int(ir, 1), attr_int(ir, 0), attr_graph(body), attr_sym(n), attr_bool(false)};
	Node y = b_node(b, OP_scan, in, 2, attr, 6);
	*pivots = b_get(b, y, 1);
	return b_get(b, y, 0);
}

/* ---- arguments ---- */

bool solve_takes(Build *b, Node x, const char *name)
{
	Shape s = aten_shape(b, x);
	if (!x.i)
		return false;
	if (s.rank < 2 || sym_eq(b_syms(b), s.dim[s.rank - 1], s.dim[s.rank - 2]) == NO) {
		b_error(b, "%s: expected batches of square matrices", name);
		return false;
	}
	DType d = node_dtype(b->g, x);
	if (!dtype_is_inexact(d) || dtype_size(dtype_real(d)) < 4) {
		b_error(b, "%s: expected f32, f64, c64 or c128, got %s", name, dtype_name(d));
		return false;
	}
	return true;
}

Node solve_identity(Build *b, Node x)
{
	Shape s = aten_shape(b, x);
	Node on = b_bin(b, OP_eq, aten_iota_dim(b, &s, s.rank - 2, DT_i64), aten_iota_dim(b, &s, s.rank - 1, DT_i64));
	return b_convert(b, on, node_dtype(b->g, x));
}

void solve_require(Build *b, Node cond, const char *message)
{
	cond = aten_reduce(b, REDUCE_AND, cond, (1u << aten_rank(b, cond)) - 1, false);
	b_node(b, OP_assert, &cond, 1, (Attr[]){attr_none(), attr_str(b->g->ir, message)}, 2);
}

static Node are_regular(Build *b, Node pivots)
{
	return b_bin(b, OP_ne, pivots, aten_like(b, pivots, 0));
}

static void require_regular(Build *b, Node pivots, const char *message)
{
	solve_require(b, are_regular(b, pivots), message);
}

/* The number of the first that is not, from 1 on; 0: none. */
static Node first_wrong(Build *b, Node good)
{
	Shape s = aten_shape(b, good);
	Node zero = b_un(b, OP_bit_not, good), k = b_bin_scalar(b, OP_add, aten_iota_dim(b, &s, 0, DT_i64), 1);
	Node never = b_full_int(b, DT_i64, INT64_MAX, 0, NULL);
	Node first = aten_reduce(b, REDUCE_MIN, b_select(b, zero, k, never), 1, false);
	first = b_select(b, b_bin(b, OP_eq, first, never), b_full_int(b, DT_i64, 0, 0, NULL), first);
	return b_convert(b, first, DT_i32);
}

Node solve_checked(Build *b, Node n, Node y, Node good, const char *message)
{
	if (node_bool(b->g, n, "check_errors"))
		solve_require(b, good, message);
	Node info = first_wrong(b, good), regular = b_bin_scalar(b, OP_eq, info, 0);
	for (uint32_t k = node_rank(b->g, info); k < node_rank(b->g, y); k++)
		regular = b_unsqueeze(b, regular, -1);
	return b_tuple(b, (Node[]){b_select(b, regular, y, aten_like(b, y, (double)NAN)), info}, 2);
}

/* ---- inverses ---- */

#define SINGULAR_INV "linalg.inv: the inversion could not be completed because the input matrix is singular"

static Node inverse(Build *b, Node x, Node *pivots)
{
	uint32_t rank = aten_rank(b, x);
	Node both = b_concat(b, (Node[]){x, solve_identity(b, x)}, 2, -1);
	Node y = eliminate(b, both, pivots);
	Sym n = b_dim(b, x, -1);
	return y.i ? b_slice(b, y, (int)rank - 1, n, sym_muli(b_syms(b), n, 2), b_int(b, 1)) : y;
}

static Node build_inv(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0), pivots;
	if (!solve_takes(b, x, "linalg.inv"))
		return (Node){0};
	Node y = inverse(b, x, &pivots);
	if (y.i)
		require_regular(b, pivots, SINGULAR_INV);
	return y;
}

Node solve_batch_matrices(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	(void)batched;
	const NodeData d = *node_data(b->g, n);
	return graph_add(b->g, b->before, d.op, in, 1, d.attr, batch_type(b->g->ir, d.type, size), b->loc);
}

/* -y^T g y^T */
static bool adjoint_inv(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node y = b_transpose(b, node_dtype(b->g, n) == DT_none ? b_get(b, n, 0) : n, -1, -2);
	g[0] = ct[0].i ? b_un(b, OP_neg, b_matmul(b, b_matmul(b, y, ct[0]), y)) : ct[0];
	return true;
}

static Node build_inv_ex(Build *b, Node n)
{
	Node x = arg(b, n, "A"), pivots;
	if (!solve_takes(b, x, "linalg.inv_ex"))
		return (Node){0};
	Node y = inverse(b, x, &pivots);
	return y.i ? solve_checked(b, n, y, are_regular(b, pivots), SINGULAR_INV) : y;
}
OP(aten_linalg_inv){
	.schema = "aten.linalg_inv(Tensor A) -> Tensor",
	.build = build_inv,
	.adjoint = adjoint_inv, /* not through the elimination, all of whose steps would be kept */
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, n=2, n] of 4 1 -1 2 0 1 2 3; c64[2, 2] of 0 1 2 0 1 -1 3 0.5; f32[0, 0]",
	.overloads = (const Overload[]){
		{.schema = "aten.inverse(Tensor self) -> Tensor",
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2"},
		{.schema = "aten.linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
		 .build = build_inv_ex,
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, 2, 2] of 4 1 -1 2 0 1 2 3"},
	},
};

/* ---- systems ---- */

/* A batch of vectors where it has A's shape without the last dim, as PyTorch decides. */
static bool is_vector(Build *b, Node a, Node x)
{
	Shape sa = aten_shape(b, a), sx = aten_shape(b, x);
	bool vector = sx.rank + 1 == sa.rank || sx.rank == 1;
	for (uint32_t k = 0; k < sx.rank && sx.rank > 1; k++)
		vector = vector && sym_eq(b_syms(b), sx.dim[k], sa.dim[k]) == YES;
	return vector;
}

/* X of A X = B, of matrices; batches are broadcast. */
static Node solve_left(Build *b, Node a, Node x, const char *name, Node *pivots)
{
	Shape sa = aten_shape(b, a), sx = aten_shape(b, x), lead;
	if (sx.rank < 2 || sym_eq(b_syms(b), sx.dim[sx.rank - 2], sa.dim[sa.rank - 1]) == NO)
		return b_error(b, "%s: A and B have different numbers of rows", name);
	Shape la = shape_of(sa.rank - 2, sa.dim), lx = shape_of(sx.rank - 2, sx.dim);
	if (!aten_broadcast_shape(b, &la, &lx, &lead))
		return (Node){0};
	uint32_t r = lead.rank;
	Sym n = sa.dim[sa.rank - 1], m = sx.dim[sx.rank - 1];
	Shape fa = shape_insert(shape_insert(lead, r, n), r + 1, n), fx = shape_insert(shape_insert(lead, r, n), r + 1, m);
	Node both = b_concat(b, (Node[]){aten_expand_shape(b, a, &fa), aten_expand_shape(b, x, &fx)}, 2, -1);
	Node y = eliminate(b, both, pivots);
	return y.i ? b_slice(b, y, (int)r + 1, n, sym_add(b_syms(b), n, m), b_int(b, 1)) : y;
}

/* X of A X = B, or of X A = B. */
static Node solve(Build *b, Node n, const char *name, Node *pivots)
{
	Node a = arg(b, n, "A"), x = arg(b, n, "B");
	if (!solve_takes(b, a, name) || !x.i)
		return (Node){0};
	bool left = node_bool(b->g, n, "left"), vector = is_vector(b, a, x);
	if (node_dtype(b->g, x) != node_dtype(b->g, a))
		return b_error(b, "%s: A is %s, B is %s", name, dtype_name(node_dtype(b->g, a)), dtype_name(node_dtype(b->g, x)));
	if (vector && !left)
		return b_error(b, "%s: vectors on the right of which A stands", name);
	if (vector)
		return b_squeeze(b, solve_left(b, a, b_unsqueeze(b, x, -1), name, pivots), -1);
	if (left)
		return solve_left(b, a, x, name, pivots);
	a = b_transpose(b, a, -1, -2);
	return b_transpose(b, solve_left(b, a, b_transpose(b, x, -1, -2), name, pivots), -1, -2);
}

/* Of B: the solution with A^T; of A: - that times y^T. */
static bool adjoint_solve(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	if (!ct[0].i)
		return true;
	Node a = arg(b, n, "A"), y = node_dtype(b->g, n) == DT_none ? b_get(b, n, 0) : n;
	bool left = node_bool(b->g, n, "left"), vector = is_vector(b, a, arg(b, n, "B"));
	Node in[] = {b_transpose(b, a, -1, -2), vector ? b_unsqueeze(b, ct[0], -1) : ct[0]};
	Node gx = b_call(b, OP_aten_linalg_solve, in, 2, (Attr[]){attr_none(), attr_none(), attr_bool(left)}, 3);
	if (!gx.i)
		return false;
	y = b_transpose(b, vector ? b_unsqueeze(b, y, -1) : y, -1, -2);
	if (want[0])
		g[0] = b_un(b, OP_neg, left ? b_matmul(b, gx, y) : b_matmul(b, y, gx));
	g[1] = vector ? b_squeeze(b, gx, -1) : gx;
	return true;
}

/* Vectors become matrices of one column, and both operands get as many dims, so that none is taken
 * for vectors. */
static Node batch_solve(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	(void)size;
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
	if (!y.i || !vector)
		return y;
	if (node_dtype(b->g, n) != DT_none)
		return b_squeeze(b, y, -1);
	return b_tuple(b, (Node[]){b_squeeze(b, b_get(b, y, 0), -1), b_get(b, y, 1)}, 2);
}

#define SINGULAR "linalg.solve: The solver failed because the input matrix is singular."

static Node build_solve(Build *b, Node n)
{
	Node pivots, y = solve(b, n, "linalg.solve", &pivots);
	if (y.i)
		require_regular(b, pivots, SINGULAR);
	return y;
}

static Node build_solve_ex(Build *b, Node n)
{
	Node pivots, y = solve(b, n, "linalg.solve_ex", &pivots);
	return y.i ? solve_checked(b, n, y, are_regular(b, pivots), SINGULAR) : y;
}
OP(aten_linalg_solve){
	.linear_in = 2, /* B, which is eliminated beside A */
	.schema = "aten.linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
	.build = build_solve,
	.adjoint = adjoint_solve,
	.batch = batch_solve,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2, f32[3, m=2]; f32[2, 2, 2] of 4 1 -1 2 0 1 2 3, f32[2, 2]; "
		  "f32[2, 2] of 4 1 -1 2, f32[3, 2], left=false; c64[2, 2] of 0 1 2 0 1 -1 3 0.5, c64[2]",
	.overloads = (const Overload[]){
		{.schema = "aten.linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
		 .build = build_solve_ex,
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2, f32[3, m=2]"},
	},
};

/* ---- determinants ---- */

static Node pivots_of(Build *b, Node x, const char *name)
{
	Node pivots = {0};
	return solve_takes(b, x, name) && eliminate(b, x, &pivots).i ? pivots : (Node){0};
}

static Node build_det(Build *b, Node n)
{
	Node p = pivots_of(b, arg(b, n, op_arg_index(node_op(b->g, n), "A") >= 0 ? "A" : "self"), "linalg.det");
	return p.i ? b_reduce(b, REDUCE_PROD, p, 1, DT_none) : p;
}
OP(aten_linalg_det){
	.schema = "aten.linalg_det(Tensor A) -> Tensor",
	.build = build_det,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, 2, 2] of 4 1 -1 2 0 1 2 3; f32[2, 2] of 1 2 2 4; c64[2, 2] of 0 1 2 0 1 -1 3 0.5; "
		  "f64[0, 0]",
	.overloads = (const Overload[]){
		{.schema = "aten.det(Tensor self) -> Tensor",
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2"},
	},
};

static Node build_slogdet(Build *b, Node n)
{
	Node p = pivots_of(b, arg(b, n, op_arg_index(node_op(b->g, n), "A") >= 0 ? "A" : "self"), "linalg.slogdet");
	if (!p.i)
		return p;
	Node sign = b_node(b, OP_aten_sgn, &p, 1, NULL, 0);
	sign = sign.i ? b_reduce(b, REDUCE_PROD, sign, 1, DT_none) : sign;
	return b_tuple(b, (Node[]){sign, aten_sum(b, b_un(b, OP_log, aten_abs(b, p)), 1, false)}, 2);
}
/* The transposed inverse; a sign has no derivative. */
static bool adjoint_logdet(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node x = node_in(b->g, n, 0), by = ct[node_dtype(b->g, n) == DT_none];
	if (!by.i)
		return true;
	Node y = b_call(b, OP_aten_linalg_inv_ex, &x, 1, NULL, 0);
	if (!y.i)
		return false;
	by = b_unsqueeze(b, b_unsqueeze(b, by, -1), -1);
	g[0] = b_bin(b, OP_mul, by, b_transpose(b, b_get(b, y, 0), -1, -2));
	return true;
}
OP(aten_linalg_slogdet){
	.schema = "aten.linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
	.build = build_slogdet,
	.adjoint = adjoint_logdet,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, 2, 2] of 4 1 -1 2 0 1 2 3; c64[2, 2] of 0 1 2 0 1 -1 3 0.5; f32[2, 2] of 1 2 2 4",
	.overloads = (const Overload[]){
		{.schema = "aten.slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2"},
	},
};
OP(aten_logdet){
	.schema = "aten.logdet(Tensor self) -> Tensor",
	.expand = "log(linalg_det(self))",
	.adjoint = adjoint_logdet,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, 2] of 4 1 -1 2",
};

/* ---- exp ---- */

/* More squarings than this are not done: NaN where the largest sum of a column's magnitudes asks
 * for more. */
enum { MOST_SQUARINGS = 24, BLOCK = 4, TERMS = 20 };

/* (y), i, squarings -> (y * y) of the matrices that have more than i */
static Graph *square_body(Build *outer, TypeId type, TypeId count)
{
	Graph *g = graph_new(outer->g->ir, "square");
	Build in = {.g = g, .loc = outer->loc, .where = outer->where}, *b = &in;
	Node y = graph_add_input(g, "y", INPUT_USER, type), i = graph_add_input(g, "i", INPUT_USER, ir_type(g->ir, DT_i64, 0, NULL));
	Node more = b_bin(b, OP_lt, i, graph_add_input(g, "squarings", INPUT_USER, count));
	more = b_unsqueeze(b, b_unsqueeze(b, more, -1), -1);
	graph_add_output(g, "y", b_select(b, more, b_matmul(b, y, y), y), -1);
	return g;
}

/* The norm up to which the series is taken: as far as the dtype's precision goes, since every
 * squaring doubles the error. */
static double series_norm(DType d)
{
	return dtype_real(d) == DT_f64 ? 1 : 3;
}

/* The sum of x^k / k! for k < TERMS: within norm^TERMS / TERMS!. BLOCK powers, and Horner's rule
 * over blocks. */
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
			block = b_bin(b, OP_add, block, b_bin_scalar(b, OP_mul, power[i], factor[k + i]));
		y = y.i ? b_bin(b, OP_add, b_matmul(b, y, power[BLOCK]), block) : block;
	}
	return y;
}

/* exp(x / 2^s) squared s times, s of each matrix such that the norm, the largest sum of a column,
 * is small after scaling. */
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
	Node scale = b_select(b, many, aten_like(b, s, (double)NAN), b_un(b, OP_exp2, b_un(b, OP_neg, s)));
	scale = b_convert(b, b_unsqueeze(b, b_unsqueeze(b, scale, -1), -1), node_dtype(b->g, x));
	Node y = exp_series(b, b_bin(b, OP_mul, x, scale)), count = b_convert(b, s, DT_i64);
	if (!y.i)
		return y;
	Node in[] = {y, b_iota(b, DT_i64, b_int(b, MOST_SQUARINGS)), count};
	Attr attr[] = {attr_int(ir, 1), attr_int(ir, 1), attr_int(ir, 1),
		       attr_graph(square_body(b, node_type_id(b->g, y), node_type_id(b->g, count))), attr_int(ir, MOST_SQUARINGS), attr_bool(false)};
	y = b_get(b, b_node(b, OP_scan, in, 3, attr, 6), 0);
	return y.i ? b_convert(b, y, d) : y;
}
OP(aten_matrix_exp){
	.schema = "aten.matrix_exp(Tensor self) -> Tensor",
	.aliases = "aten.linalg_matrix_exp",
	.build = build_matrix_exp,
	.sample = "f32[3, 3] in -1..1; f32[2, n=2, n] in -4..4; f32[2, 2] of 0 1000 0 0; c64[2, 2] in -2..2; f32[1, 1] of 5",
};
