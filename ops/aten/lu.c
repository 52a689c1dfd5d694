/* Factors with partial pivoting, and what is made of them. */
#include "ops/aten/solve.h"

/* ---- factors ---- */

static SolveLu factors_of(Build *b, Node n, const char *name)
{
	Node x = node_in(b->g, n, 0);
	if (!solve_takes_matrices(b, x, name))
		return (SolveLu){0};
	if (!node_bool(b->g, n, "pivot")) {
		b_error(b, "%s: LU without pivoting is not implemented on the CPU", name);
		return (SolveLu){0};
	}
	return solve_lu(b, x);
}

static Node build_lu_factor(Build *b, Node n)
{
	SolveLu f = factors_of(b, n, "linalg.lu_factor");
	solve_require_info(b, f.info, "torch.linalg.lu_factor");
	return f.factors.i ? b_tuple(b, (Node[]){f.factors, f.pivots}, 2) : f.factors;
}

static Node build_lu_factor_ex(Build *b, Node n)
{
	SolveLu f = factors_of(b, n, "linalg.lu_factor_ex");
	if (!f.factors.i)
		return f.factors;
	if (node_bool(b->g, n, "check_errors"))
		solve_require_info(b, f.info, "torch.linalg.lu_factor_ex");
	return b_tuple(b, (Node[]){f.factors, f.pivots, f.info}, 3);
}

OP(aten_linalg_lu_factor){
	.schema = "aten.linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor "
		  "pivots)",
	.build = build_lu_factor,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, n=2, n] of 4 1 -1 2 0 1 2 3; "
		  "f32[3, 2] of 1 2 0 3 4 1; f32[2, 4] of 1 2 0 3 4 1 2 2; "
		  "c64[2, 2] of 0 1 2 0 1 -1 3 0.5",
	.overloads = (const Overload[]){
		{.schema = "aten.linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool "
			   "check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
		 .build = build_lu_factor_ex,
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, 2, 2] of 4 1 -1 2 1 1 1 1; "
			   "f32[2, 3] of 1 2 0 3 4 1, check_errors=true"},
		{.schema = "aten._lu_with_info(Tensor self, bool pivot=True, bool "
			   "check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
		 .build = build_lu_factor_ex,
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, 2, 2] of 4 1 -1 2 1 1 1 1, "
			   "check_errors=false"},
	},
};

/* ---- what run_decompositions() makes of functions that factor ---- */

/* Returns the factors that PyTorch keeps of a determinant, for its derivatives: of A^T where A
 * is real and row-major. */
static SolveLu kept_factors(Build *b, Node n, Node a)
{
	bool transposed = node_bool(b->g, n, "row_major") && !solve_is_complex(b, a);
	return solve_lu(b, transposed ? b_transpose(b, a, -1, -2) : a);
}

static Node build_det_factors(Build *b, Node n)
{
	Node a = arg(b, n, "A"), y = b_call(b, OP_aten_linalg_det, &a, 1, NULL, 0);
	if (!y.i)
		return y;
	SolveLu f = kept_factors(b, n, a);
	return b_tuple(b, (Node[]){y, f.factors, f.pivots}, 3);
}

static Node build_slogdet_factors(Build *b, Node n)
{
	Node a = arg(b, n, "A"), y = b_call(b, OP_aten_linalg_slogdet, &a, 1, NULL, 0);
	if (!y.i)
		return y;
	SolveLu f = kept_factors(b, n, a);
	return b_tuple(b, (Node[]){b_get(b, y, 0), b_get(b, y, 1), f.factors, f.pivots}, 4);
}

static Node build_solve_factors(Build *b, Node n)
{
	Node in[] = {arg(b, n, "A"), arg(b, n, "B")};
	Attr attr[] = {attr_none(), attr_none(), *node_attr(b->g, n, "left"),
		       *node_attr(b->g, n, "check_errors")};
	Node y = b_call(b, op_find("aten.linalg_solve_ex"), in, 2, attr, 4);
	if (!y.i)
		return y;
	SolveLu f = solve_lu(b, in[0]);
	return b_tuple(b, (Node[]){b_get(b, y, 0), f.factors, f.pivots, b_get(b, y, 1)}, 4);
}
OP(aten__linalg_det){
	.doc = "row_major: whether A is so in PyTorch, whose LU is then of A^T",
	.schema = "aten._linalg_det(Tensor A, *, bool row_major=True) -> (Tensor result, Tensor "
		  "LU, Tensor pivots)",
	.build = build_det_factors,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, 2, 2] of 4 1 -1 2 0 1 2 3; "
		  "c64[2, 2] of 0 1 2 0 1 -1 3 0.5",
	.overloads = (const Overload[]){
		{.schema = "aten._linalg_slogdet(Tensor A, *, bool row_major=True) -> (Tensor "
			   "sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
		 .build = build_slogdet_factors,
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, 2, 2] of 4 1 -1 2 0 1 2 3"},
		{.schema = "aten._linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool "
			   "check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, "
			   "Tensor info)",
		 .build = build_solve_factors,
		 .sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2, f32[3, m=2]; "
			   "f32[2, 2] of 4 1 -1 2, f32[3, 2], left=false"},
	},
};

static Node build_check_errors(Build *b, Node n)
{
	solve_require_info(b, arg(b, n, "info"), node_attr(b->g, n, "api_name")->str);
	return b_tuple(b, NULL, 0);
}
OP(aten__linalg_check_errors){
	.schema = "aten._linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
	.build = build_check_errors,
	.effect = true,
	.sample = "i32[] of 0, api_name=\"linalg.inv\", is_matrix=true; "
		  "i32[2] of 0 0, api_name=\"linalg.cholesky\", is_matrix=false",
};

/* ---- the matrices P, L and U ---- */

/* Returns columns 0 .. k - 1 of the factors below the diagonal, with ones on it. */
static Node left_of(Build *b, Node f, Sym k)
{
	Node x = b_slice(b, f, -1, b_int(b, 0), k, b_int(b, 1));
	Shape s = aten_shape(b, x);
	Node i = aten_iota_dim(b, &s, s.rank - 2, DT_i64),
	     j = aten_iota_dim(b, &s, s.rank - 1, DT_i64);
	Node on = b_select(b, b_bin(b, OP_eq, i, j), aten_like(b, x, 1), aten_like(b, x, 0));
	return b_select(b, b_bin(b, OP_gt, i, j), x, on);
}

static Node right_of(Build *b, Node f, Sym k)
{
	Node x = b_slice(b, f, -2, b_int(b, 0), k, b_int(b, 1));
	Shape s = aten_shape(b, x);
	Node i = aten_iota_dim(b, &s, s.rank - 2, DT_i64),
	     j = aten_iota_dim(b, &s, s.rank - 1, DT_i64);
	return b_select(b, b_bin(b, OP_le, i, j), x, aten_like(b, x, 0));
}

/* Returns P with P (L U) in the old order: one where the row is order[column]. */
static Node permutation(Build *b, Node order, DType d)
{
	Node i = b_unsqueeze(b, b_iota(b, DT_i64, b_dim(b, order, -1)), -1);
	return b_convert(b, b_bin(b, OP_eq, i, b_unsqueeze(b, order, -2)), d);
}

static Node plu(Build *b, Node factors, Node order)
{
	SymTab *t = b_syms(b);
	Sym k = sym_min(t, b_dim(b, factors, -2), b_dim(b, factors, -1));
	Node part[] = {permutation(b, order, node_dtype(b->g, factors)), left_of(b, factors, k),
		       right_of(b, factors, k)};
	return b_tuple(b, part, 3);
}

static Node build_lu(Build *b, Node n)
{
	SolveLu f = factors_of(b, n, "linalg.lu");
	return f.factors.i ? plu(b, f.factors, f.order) : f.factors;
}

OP(aten_linalg_lu){
	.schema = "aten.linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
	.build = build_lu,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, n=2, n] of 4 1 -1 2 1 1 1 1; "
		  "f32[3, 2] of 1 2 0 3 4 1; f32[2, 4] of 1 2 0 3 4 1 2 2; "
		  "c64[2, 2] of 0 1 2 0 1 -1 3 0.5",
};

/* ---- the order that pivots make ---- */

/* Makes the body (order), k, pivots of all members -> order with elements k and pivots - 1
 * exchanged. */
static Graph *exchange_body(Build *outer, TypeId type, TypeId pivots)
{
	Graph *g = graph_beside(outer->g, "exchange");
	Build in = {.g = g, .loc = outer->loc, .where = outer->where}, *b = &in;
	Node x = graph_add_input(g, "order", INPUT_USER, type),
	     k = graph_add_input(g, "k", INPUT_USER, ir_type(g->ir, DT_i64, 0, NULL));
	Node p = b_bin_scalar(
		b, OP_sub,
		b_unsqueeze(b,
			    b_convert(b, graph_add_input(g, "pivot", INPUT_USER, pivots), DT_i64),
			    -1),
		1);
	Node i = b_iota(b, DT_i64, b_dim(b, x, -1)), is_k = b_bin(b, OP_eq, i, k),
	     is_p = b_bin(b, OP_eq, i, p);
	uint32_t last = 1u << (node_rank(g, x) - 1);
	Node at_k = aten_sum(b, b_select(b, is_k, x, aten_like(b, x, 0)), last, true);
	Node at_p = aten_sum(b, b_select(b, is_p, x, aten_like(b, x, 0)), last, true);
	graph_add_output(g, "order", b_select(b, is_k, at_p, b_select(b, is_p, at_k, x)), -1);
	return g;
}

/* Returns the order [.., rows] of rows that pivots [.., k], from 1 on, make by exchanges. */
static Node order_of(Build *b, Node pivots, Sym rows)
{
	if (!pivots.i)
		return pivots;
	Ir *ir = b->g->ir;
	Shape s = aten_shape(b, pivots);
	Sym k = s.dim[s.rank - 1];
	Shape lead = shape_of(s.rank - 1, s.dim), all = shape_insert(lead, s.rank - 1, rows);
	Node start = aten_iota_dim(b, &all, s.rank - 1, DT_i64);
	start = aten_expand_shape(b, start, &all);
	if (!start.i || sym_is(b_syms(b), k, 0))
		return start;
	TypeId one = ir_type(ir, node_dtype(b->g, pivots), lead.rank, lead.dim);
	Node in[] = {start, b_iota(b, DT_i64, k), aten_move_dim(b, pivots, s.rank - 1, 0)};
	Attr attr[] = {
		attr_int(ir, 1), attr_int(ir, 2),
		attr_int(ir, 0), attr_graph(exchange_body(b, node_type_id(b->g, start), one)),
		attr_sym(k),     attr_bool(false)};
	return b_get(b, b_node(b, OP_scan, in, 3, attr, 6), 0);
}

static bool check_pivots(Build *b, Node pivots, const char *name)
{
	if (!pivots.i)
		return false;
	if (node_dtype(b->g, pivots) != DT_i32 || node_rank(b->g, pivots) < 1) {
		b_error(b, "%s: expected pivots of i32, as lu_factor returns them", name);
		return false;
	}
	return true;
}

static Node build_lu_unpack(Build *b, Node n)
{
	Node f = arg(b, n, "LU_data"), pivots = arg(b, n, "LU_pivots");
	if (!f.i || !check_pivots(b, pivots, "lu_unpack"))
		return (Node){0};
	if (node_rank(b->g, f) < 2)
		return b_error(b, "lu_unpack: expected batches of matrices");
	bool data = node_bool(b->g, n, "unpack_data"), order = node_bool(b->g, n, "unpack_pivots");
	DType d = node_dtype(b->g, f);
	Sym k = sym_min(b_syms(b), b_dim(b, f, -2), b_dim(b, f, -1)), zero = b_int(b, 0);
	Node none = b_full(b, d, 0, 1, &zero);
	Node part[] = {order ? permutation(b, order_of(b, pivots, b_dim(b, f, -2)), d) : none,
		       data ? left_of(b, f, k) : none, data ? right_of(b, f, k) : none};
	return b_tuple(b, part, 3);
}

OP(aten_lu_unpack){
	.schema = "aten.lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool "
		  "unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
	.build = build_lu_unpack,
	.sample = "f32[3, 3], i32[3] of 2 3 3; f32[2, n=2, n], i32[2, n] of 2 2 1 2; "
		  "f32[3, 2], i32[2] of 3 2; f32[2, 4], i32[2] of 1 2; "
		  "c64[2, 2], i32[2] of 2 2; f32[2, 2], i32[2] of 2 2, unpack_data=false; "
		  "f32[2, 2], i32[2] of 2 2, unpack_pivots=false; f32[0, 0], i32[0]",
};

/* ---- solutions ---- */

/* Returns X of A X = B, or of A^H X = B. */
static Node solve_factors(Build *b, Node f, Node pivots, Node x, bool adjoint)
{
	Node order = order_of(b, pivots, b_dim(b, f, -1));
	if (!solve_broadcast(b, &f, &x) || !order.i)
		return (Node){0};
	Shape s = aten_shape(b, f), so = shape_of(s.rank - 1, s.dim);
	order = aten_expand_shape(b, order, &so);
	if (!adjoint)
		return solve_by_lu(b, (SolveLu){.factors = f, .order = order}, x);
	Node h = solve_adjoint(b, f);
	Node y = solve_triangle(b, h, x, (Triangle){.upper = false, .unit = false});
	y = solve_triangle(b, h, y, (Triangle){.upper = true, .unit = true});
	/* row order[i] of the result is row i */
	Node back = aten_expand_shape(b, aten_iota_dim(b, &so, so.rank - 1, DT_i64), &so);
	back = order.i && back.i ? factor_place(b, b_zeros_like(b, order), order, back, so.rank - 1)
				 : back;
	return solve_rows(b, y, back);
}

static Node lu_solved(Build *b, Node f, Node pivots, Node x, bool left, bool adjoint)
{
	if (!solve_takes(b, f, "linalg.lu_solve") || !check_pivots(b, pivots, "linalg.lu_solve") ||
	    !x.i)
		return (Node){0};
	if (node_dtype(b->g, x) != node_dtype(b->g, f))
		return b_error(b, "linalg.lu_solve: LU is %s, B is %s",
			       dtype_name(node_dtype(b->g, f)), dtype_name(node_dtype(b->g, x)));
	if (node_rank(b->g, x) < 2 ||
	    sym_eq(b_syms(b), b_dim(b, x, left ? -2 : -1), b_dim(b, f, -1)) == NO)
		return b_error(b, "linalg.lu_solve: LU and B have different numbers of %s",
			       left ? "rows" : "columns");
	if (left)
		return solve_factors(b, f, pivots, x, adjoint);
	Node y = solve_factors(b, f, pivots, solve_adjoint(b, x), !adjoint);
	return y.i ? solve_adjoint(b, y) : y;
}

static Node build_lu_solve(Build *b, Node n)
{
	return lu_solved(b, arg(b, n, "LU"), arg(b, n, "pivots"), arg(b, n, "B"),
			 node_bool(b->g, n, "left"), node_bool(b->g, n, "adjoint"));
}

static Node build_lu_solve_older(Build *b, Node n)
{
	return lu_solved(b, arg(b, n, "LU_data"), arg(b, n, "LU_pivots"), arg(b, n, "self"), true,
			 false);
}

OP(aten_linalg_lu_solve){
	.schema = "aten.linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, "
		  "bool adjoint=False) -> Tensor",
	.build = build_lu_solve,
	.sample = "f32[3, 3] of 3 1 2 0.5 2 1 0.25 -0.5 4, i32[3] of 3 2 3, f32[3, m=2]; "
		  "f32[2, 2, 2] of 4 1 0.5 2 3 1 0.25 2, i32[2, 2] of 2 2 1 2, f32[2, 3]; "
		  "f32[2, 2] of 4 1 0.5 2, i32[2] of 2 2, f32[3, 2], left=false; "
		  "f32[2, 2] of 4 1 0.5 2, i32[2] of 2 2, f32[2, 2], adjoint=true; "
		  "c64[2, 2] of 4 1 0.5 2 1 1 3 -1, i32[2] of 2 2, c64[3, 2], left=false, "
		  "adjoint=true",
};
OP(aten_lu_solve){
	.schema = "aten.lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_lu_solve_older,
	.sample = "f32[3, m=2], f32[3, 3] of 3 1 2 0.5 2 1 0.25 -0.5 4, i32[3] of 3 2 3",
};

/* ---- systems of tensors ---- */

static Sym count_of(Build *b, const Shape *s, uint32_t first, uint32_t end)
{
	Sym n = b_int(b, 1);
	for (uint32_t k = first; k < end; k++)
		n = sym_mul(b_syms(b), n, s->dim[k]);
	return n;
}

static Node build_tensorinv(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Shape s = aten_shape(b, x), back = {.rank = s.rank};
	int64_t ind = aten_int(b, n, "ind");
	if (!x.i)
		return x;
	if (ind <= 0 || ind > (int64_t)s.rank)
		return b_error(b,
			       "linalg.tensorinv: expected ind to be positive and at most the "
			       "rank, got %lld",
			       (long long)ind);
	uint32_t at = (uint32_t)ind;
	Sym rows = count_of(b, &s, 0, at), columns = count_of(b, &s, at, s.rank);
	if (sym_eq(b_syms(b), rows, columns) == NO)
		return b_error(b,
			       "linalg.tensorinv: expected as many elements before dimension %u as "
			       "behind it",
			       at);
	for (uint32_t k = 0; k < s.rank; k++)
		back.dim[k] = s.dim[(k + at) % s.rank];
	Node y = b_reshape(b, x, 2, (Sym[]){rows, rows});
	return aten_reshape(b, y.i ? b_node(b, OP_aten_linalg_inv, &y, 1, NULL, 0) : y, &back);
}
OP(aten_linalg_tensorinv){
	.schema = "aten.linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_tensorinv,
	.sample = "f32[2, 3, 6] of 1 2 0 1 3 0 2 1 1 0 0 1 0 1 3 1 0 2 1 0 2 4 1 0 0 1 1 2 5 1 3 0 "
		  "1 0 2 1; f32[4, 2, 2] of 4 1 0 1 1 3 1 0 0 1 5 1 1 0 2 6, ind=1",
};

static Node build_tensorsolve(Build *b, Node n)
{
	Node a = arg(b, n, "self"), x = arg(b, n, "other");
	if (!a.i || !x.i)
		return (Node){0};
	uint32_t rank = node_rank(b->g, a), other = node_rank(b->g, x), ndim = 0, perm[MAX_RANK],
		 at = 0;
	const Sym *dims = aten_has(b, n, "dims") ? node_ints(b->g, n, "dims", &ndim) : NULL;
	bool moved[MAX_RANK] = {false};
	for (uint32_t k = 0; k < ndim; k++) {
		uint32_t d = b_wrap_dim(b, sym_const_or(b_syms(b), dims[k], MAX_RANK), rank);
		perm[rank - ndim + k] = d;
		moved[d] = true;
	}
	for (uint32_t k = 0; k < rank; k++)
		if (!moved[k] && at < rank - ndim)
			perm[at++] = k;
	if (at != rank - ndim || other > rank)
		return b_error(b, "linalg.tensorsolve: dims name a dimension twice, or self has "
				  "fewer dimensions than other");
	a = ndim ? b_permute(b, a, perm) : a;
	Shape s = aten_shape(b, a), result = shape_of(rank - other, s.dim + other),
	      sx = aten_shape(b, x);
	Sym rows = shape_numel(b, &sx), columns = shape_numel(b, &result);
	if (!a.i || sym_eq(b_syms(b), rows, columns) == NO)
		return b_error(b, "linalg.tensorsolve: expected self to be as a square matrix for "
				  "the elements of other");
	Node in[] = {b_reshape(b, a, 2, (Sym[]){rows, rows}), b_reshape(b, x, 1, &rows)};
	Node y = in[0].i && in[1].i ? b_node(b, OP_aten_linalg_solve, in, 2, NULL, 0) : (Node){0};
	return aten_reshape(b, y, &result);
}
OP(aten_linalg_tensorsolve){
	.schema = "aten.linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_tensorsolve,
	.sample = "f32[2, 3, 6] of 1 2 0 1 3 0 2 1 1 0 0 1 0 1 3 1 0 2 1 0 2 4 1 0 0 1 1 2 5 1 3 0 "
		  "1 0 2 1, f32[2, 3]; f32[2, 4, 2] of 4 1 0 1 1 3 1 0 0 1 5 1 1 0 2 6, f32[4], "
		  "dims=[0]",
};
