/* Triangular systems and Cholesky's factorisation: loops over columns, for batches, with rules for
 * derivatives that solve triangular systems again, so that no step is kept. */
#include "ir/ops/aten/solve.h"
#include "ir/ops/batch.h"

#include <math.h>

/* ---- triangular systems ---- */

/* Which triangle is read, and that its diagonal counts as ones. */
typedef struct {
	bool upper, unit;
} Triangle;

/* Row k of the solution is known: it is taken off those that are to come. */
static Graph *row_body(Build *outer, TypeId type, TypeId matrix, Triangle t)
{
	Graph *g = graph_new(outer->g->ir, "row");
	Build in = {.g = g, .loc = outer->loc, .where = outer->where}, *b = &in;
	Node x = graph_add_input(g, "x", INPUT_USER, type), k = graph_add_input(g, "k", INPUT_USER, ir_type(g->ir, DT_i64, 0, NULL));
	Node a = graph_add_input(g, "a", INPUT_USER, matrix);
	uint32_t rank = aten_rank(b, x);
	Node row = solve_picked(b, x, rank - 2, k), column = solve_picked(b, a, rank - 1, k);
	Shape s = aten_shape(b, column);
	Node at = aten_iota_dim(b, &s, rank - 2, DT_i64);
	if (!t.unit)
		row = b_bin(b, OP_div, row, b_unsqueeze(b, solve_picked(b, column, rank - 2, k), -1));
	Node later = b_bin(b, t.upper ? OP_lt : OP_gt, at, k), mine = b_unsqueeze(b, b_bin(b, OP_eq, at, k), -1);
	Node factor = b_select(b, later, column, aten_like(b, column, 0));
	row = b_unsqueeze(b, row, rank - 2);
	Node rest = b_bin(b, OP_sub, x, b_bin(b, OP_mul, b_unsqueeze(b, factor, -1), row));
	graph_add_output(g, "x", b_select(b, mine, row, rest), -1);
	return g;
}

/* X of A X = B for a [.., n, n] and x = B [.., n, m] of equal batches. */
static Node substitute(Build *b, Node a, Node x, Triangle t)
{
	Ir *ir = b->g->ir;
	Sym n = b_dim(b, x, -2);
	if (sym_is(b_syms(b), n, 0))
		return x;
	Node in[] = {x, b_iota(b, DT_i64, n), a};
	Attr attr[] = {attr_int(ir, 1), attr_int(ir, 1), attr_int(ir, 1),
		       attr_graph(row_body(b, node_type_id(b->g, x), node_type_id(b->g, a), t)), attr_sym(n), attr_bool(t.upper)};
	return b_get(b, b_node(b, OP_scan, in, 3, attr, 6), 0);
}

/* X of A X = B, or of X A = B; batches are broadcast. */
static Node solve_triangle(Build *b, Node a, Node x, Triangle t, bool left, const char *name)
{
	if (!solve_takes(b, a, name) || !x.i)
		return (Node){0};
	if (node_dtype(b->g, x) != node_dtype(b->g, a))
		return b_error(b, "%s: A is %s, B is %s", name, dtype_name(node_dtype(b->g, a)), dtype_name(node_dtype(b->g, x)));
	if (!left) {
		a = b_transpose(b, a, -1, -2);
		x = node_rank(b->g, x) < 2 ? x : b_transpose(b, x, -1, -2);
		t.upper = !t.upper;
	}
	Shape sa = aten_shape(b, a), sx = aten_shape(b, x), lead;
	if (sx.rank < 2 || sym_eq(b_syms(b), sx.dim[sx.rank - 2], sa.dim[sa.rank - 1]) == NO)
		return b_error(b, "%s: A and B have different numbers of %s", name, left ? "rows" : "columns");
	Shape la = shape_of(sa.rank - 2, sa.dim), lx = shape_of(sx.rank - 2, sx.dim);
	if (!aten_broadcast_shape(b, &la, &lx, &lead))
		return (Node){0};
	uint32_t r = lead.rank;
	Sym n = sa.dim[sa.rank - 1], m = sx.dim[sx.rank - 1];
	Shape fa = shape_insert(shape_insert(lead, r, n), r + 1, n), fx = shape_insert(shape_insert(lead, r, n), r + 1, m);
	Node y = substitute(b, aten_expand_shape(b, a, &fa), aten_expand_shape(b, x, &fx), t);
	return left ? y : b_transpose(b, y, -1, -2);
}

static Node build_solve_triangular(Build *b, Node n)
{
	Triangle t = {node_bool(b->g, n, "upper"), node_bool(b->g, n, "unitriangular")};
	return solve_triangle(b, arg(b, n, "self"), arg(b, n, "B"), t, node_bool(b->g, n, "left"), "linalg.solve_triangular");
}

static Node call_triangular(Build *b, Node a, Node x, Triangle t, bool left)
{
	Attr attr[] = {attr_none(), attr_none(), attr_bool(t.upper), attr_bool(left), attr_bool(t.unit)};
	return b_call(b, OP_aten_linalg_solve_triangular, (Node[]){a, x}, 2, attr, 5);
}

/* x in a triangle, 0 outside. */
static Node triangle_of(Build *b, Node x, Triangle t)
{
	Shape s = aten_shape(b, x);
	Node i = aten_iota_dim(b, &s, s.rank - 2, DT_i64), j = aten_iota_dim(b, &s, s.rank - 1, DT_i64);
	Node in = b_bin(b, t.upper ? (t.unit ? OP_gt : OP_ge) : (t.unit ? OP_lt : OP_le), j, i);
	return b_select(b, in, x, aten_like(b, x, 0));
}

/* Of B: the solution with A^T; of A: - that times y^T, in the triangle that is read. */
static bool adjoint_solve_triangular(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Triangle t = {node_bool(b->g, n, "upper"), node_bool(b->g, n, "unitriangular")};
	bool left = node_bool(b->g, n, "left");
	Node a = b_transpose(b, arg(b, n, "self"), -1, -2), y = b_transpose(b, n, -1, -2);
	g[1] = call_triangular(b, a, ct[0], (Triangle){!t.upper, t.unit}, left);
	if (want[0] && g[1].i)
		g[0] = triangle_of(b, b_un(b, OP_neg, left ? b_matmul(b, g[1], y) : b_matmul(b, y, g[1])), t);
	return g[1].i;
}

/* Batches stand in front of as many dims of both. */
static Node batch_solve_triangular(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	(void)size;
	Node x[] = {in[0], in[1]};
	uint32_t rank[2], most = 0;
	for (uint32_t k = 0; k < 2; k++) {
		rank[k] = node_rank(b->g, x[k]) - batched[k];
		most = rank[k] > most ? rank[k] : most;
	}
	for (uint32_t k = 0; k < 2; k++)
		for (; batched[k] && rank[k] < most; rank[k]++)
			x[k] = b_unsqueeze(b, x[k], 1);
	return b_call(b, OP_aten_linalg_solve_triangular, x, 2, batch_attrs(b, n), 5);
}
OP(aten_linalg_solve_triangular){
	.schema = "aten.linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
	.build = build_solve_triangular,
	.adjoint = adjoint_solve_triangular,
	.batch = batch_solve_triangular,
	.sample = "f32[3, 3] of 2 9 9 1 0.5 9 3 1 -2, f32[3, m=2], upper=false; f32[2, n=2, n] of 4 1 9 2 1 1 9 3, f32[n, 3], upper=true; "
		  "f32[2, 2] of 4 1 -1 2, f32[2, 3, 2], upper=true, left=false; f32[2, 2] of 9 1 -1 9, f32[2, 2], upper=false, unitriangular=true; "
		  "c64[2, 2] of 0.5 1 2 0 1 -1 3 0.5, c64[2, 2], upper=false; f32[0, 0], f32[0, 2], upper=true",
};

/* The older form, whose arguments stand the other way round. */
static Node build_triangular_solve(Build *b, Node n)
{
	Node x = arg(b, n, "self"), a = arg(b, n, "A");
	Triangle t = {node_bool(b->g, n, "upper"), node_bool(b->g, n, "unitriangular")};
	if (!a.i || !x.i || !solve_takes(b, a, "triangular_solve"))
		return (Node){0};
	bool transposed = node_bool(b->g, n, "transpose");
	Node y = call_triangular(b, transposed ? b_transpose(b, a, -1, -2) : a, x, (Triangle){t.upper != transposed, t.unit}, true);
	if (!y.i)
		return y;
	Shape s = aten_shape(b, a), sy = aten_shape(b, y);
	Shape full = shape_insert(shape_insert(shape_of(sy.rank - 2, sy.dim), sy.rank - 2, s.dim[s.rank - 2]), sy.rank - 1, s.dim[s.rank - 1]);
	return b_tuple(b, (Node[]){y, aten_expand_shape(b, a, &full)}, 2);
}
OP(aten_triangular_solve){
	.schema = "aten.triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
		  "(Tensor solution, Tensor cloned_coefficient)",
	.build = build_triangular_solve,
	.sample = "f32[3, 2], f32[3, 3] of 2 1 -1 9 0.5 3 9 9 -2; f32[2, 2, 2], f32[2, 2] of 4 1 -1 2, upper=false, transpose=true",
};

/* ---- Cholesky ---- */

/* Column k of the factor; what it stands for is taken off the matrix, of which the lower triangle
 * is read. */
static Graph *cholesky_body(Build *outer, TypeId type)
{
	Graph *g = graph_new(outer->g->ir, "column");
	Build in = {.g = g, .loc = outer->loc, .where = outer->where}, *b = &in;
	Node x = graph_add_input(g, "x", INPUT_USER, type), k = graph_add_input(g, "k", INPUT_USER, ir_type(g->ir, DT_i64, 0, NULL));
	uint32_t rank = aten_rank(b, x);
	DType d = node_dtype(b->g, x);
	Node c = solve_picked(b, x, rank - 1, k);
	Shape s = aten_shape(b, c);
	Node at = aten_iota_dim(b, &s, rank - 2, DT_i64), pivot = solve_picked(b, c, rank - 2, k);
	if (dtype_is_complex(d))
		pivot = b_part(b, pivot, false);
	Node root = b_unsqueeze(b, b_convert(b, b_un(b, OP_sqrt, pivot), d), -1);
	c = b_select(b, b_bin(b, OP_gt, at, k), b_bin(b, OP_div, c, root), aten_like(b, c, 0));
	c = b_select(b, b_bin(b, OP_eq, at, k), root, c);
	Node product = b_bin(b, OP_mul, b_unsqueeze(b, c, -1), b_unsqueeze(b, aten_conj(b, c), rank - 2));
	graph_add_output(g, "x", b_bin(b, OP_sub, x, product), -1);
	graph_add_output(g, "column", c, -1);
	graph_add_output(g, "good", b_bin(b, OP_gt, pivot, aten_like(b, pivot, 0)), -1);
	return g;
}

static Node adjoint_of(Build *b, Node x)
{
	return b_transpose(b, aten_conj(b, x), -1, -2);
}

/* L L^H = x, or U^H U; good: [n, ..], whether each pivot is positive. */
static Node cholesky(Build *b, Node n, Node *good)
{
	Node x = arg(b, n, "self");
	if (!solve_takes(b, x, "linalg.cholesky"))
		return (Node){0};
	Ir *ir = b->g->ir;
	Sym size = b_dim(b, x, -1);
	Shape s = aten_shape(b, x), lead = shape_insert(shape_of(s.rank - 2, s.dim), 0, size);
	bool upper = node_bool(b->g, n, "upper");
	*good = b_full(b, DT_bool, 1, lead.rank, lead.dim);
	if (sym_is(b_syms(b), size, 0))
		return x;
	Node in[] = {upper ? adjoint_of(b, x) : x, b_iota(b, DT_i64, size)};
	Attr attr[] = {attr_int(ir, 1), attr_int(ir, 1), attr_int(ir, 0), attr_graph(cholesky_body(b, node_type_id(b->g, x))), attr_sym(size),
		       attr_bool(false)};
	Node y = b_node(b, OP_scan, in, 2, attr, 6), factor = aten_move_dim(b, b_get(b, y, 1), 0, s.rank - 1);
	*good = b_get(b, y, 2);
	return upper ? adjoint_of(b, factor) : factor;
}

#define NOT_POSITIVE "linalg.cholesky: The factorization could not be completed because the input is not positive-definite"

static Node build_cholesky(Build *b, Node n)
{
	Node good, y = cholesky(b, n, &good);
	if (y.i)
		solve_require(b, good, NOT_POSITIVE);
	return y;
}

static Node build_cholesky_ex(Build *b, Node n)
{
	Node good, y = cholesky(b, n, &good);
	return y.i ? solve_checked(b, n, y, good, NOT_POSITIVE) : y;
}

/* Of symmetric matrices, as PyTorch has it: L^-T (P + P^T) L^-1 / 2 with P the lower triangle of
 * L^T g, its diagonal halved. */
static bool adjoint_cholesky(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	if (!ct[0].i)
		return true;
	bool upper = node_bool(b->g, n, "upper");
	Node l = node_dtype(b->g, n) == DT_none ? b_get(b, n, 0) : n, by = ct[0];
	if (upper) {
		l = b_transpose(b, l, -1, -2);
		by = b_transpose(b, by, -1, -2);
	}
	Node lt = b_transpose(b, l, -1, -2), p = b_matmul(b, lt, by);
	Node low = triangle_of(b, p, (Triangle){false, false}), below = triangle_of(b, p, (Triangle){false, true});
	Node both = b_bin_scalar(b, OP_mul, b_bin(b, OP_add, low, b_transpose(b, below, -1, -2)), 0.5);
	Node half = call_triangular(b, lt, both, (Triangle){true, false}, true);
	g[0] = half.i ? call_triangular(b, l, half, (Triangle){false, false}, false) : half;
	return g[0].i;
}

OP(aten_linalg_cholesky){
	.schema = "aten.linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
	.aliases = "aten.cholesky",
	.build = build_cholesky,
	.adjoint = adjoint_cholesky,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 4 2 1 2 5 3 1 3 6; f32[2, n=2, n] of 4 1 1 2 1 0.5 0.5 3, "
		  "upper=true; "
		  "c64[2, 2] of 4 0 1 1 1 -1 3 0; c64[2, 2] of 4 0 1 1 1 -1 3 0, upper=true",
	.overloads = (const Overload[]){
		{.schema = "aten.linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
		 .build = build_cholesky_ex,
		 .sample = "f32[3, 3] of 4 2 1 2 5 3 1 3 6; f32[2, 2, 2] of 4 1 1 2 1 0.5 0.5 3, upper=true"},
	},
};

/* The solution of L L^H X = B. */
static Node solve_factored(Build *b, Node x, Node l, bool upper)
{
	if (!x.i || !l.i || !solve_takes(b, l, "cholesky_solve"))
		return (Node){0};
	if (upper)
		l = adjoint_of(b, l);
	Node half = call_triangular(b, l, x, (Triangle){false, false}, true);
	return half.i ? call_triangular(b, adjoint_of(b, l), half, (Triangle){true, false}, true) : half;
}

static Node build_cholesky_solve(Build *b, Node n)
{
	return solve_factored(b, arg(b, n, "self"), arg(b, n, "input2"), node_bool(b->g, n, "upper"));
}
OP(aten_cholesky_solve){
	.schema = "aten.cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
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
	.build = build_cholesky_inverse,
	.sample = "f32[3, 3] of 2 9 9 1 0.5 9 3 1 -2; f32[2, 2] of 4 1 -1 2, upper=true",
};
