/* Rows of a table, of which few are read and written. What a gradient adds to rows, which an index
 * may name several times, becomes one sum for each of them:
 *
 *   index  4 1 4   value  a b c   ->   at  1 4 4   to  1 4 R   sum  b a+c 0
 *
 * R is the number of rows, where nothing is written. An update reads the rows `at`, and writes
 * those of `to`; its time does not depend on R. */
#include "ops/aten/priv.h"

/* Returns where each run of equal elements begins: its place. */
static Node run_heads(Build *b, Node sorted, Node *begins)
{
	Node k = b_iota(b, DT_i64, b_dim(b, sorted, 0));
	Node last = b_bin_scalar(b, OP_maximum, b_bin_scalar(b, OP_sub, k, 1), 0);
	Node differs = b_bin(b, OP_ne, sorted, aten_take_dim(b, sorted, 0, last, "promise"));
	*begins = b_bin(b, OP_bit_or, differs, b_bin_scalar(b, OP_eq, k, 0));
	return b_cumulative(b, "max", b_select(b, *begins, k, aten_like(b, k, 0)), 0, false);
}

static Node build_rows_sum(Build *b, Node n)
{
	Node index = arg(b, n, "index"), value = arg(b, n, "value"), begins;
	uint32_t axis = 0;
	if (aten_rank(b, index) != 1 || aten_rank(b, value) < 1)
		return b_error(b,
			       "an index of rank %u and values of rank %u, expected 1 and at "
			       "least 1",
			       aten_rank(b, index), aten_rank(b, value));
	Node sorted = b_sort(b, aten_index(b, index), 0, false, true);
	Node at = b_get(b, sorted, 0), from = b_get(b, sorted, 1);
	if (!at.i || !from.i)
		return (Node){0};
	Node head = run_heads(b, at, &begins),
	     each = aten_wide(b, aten_take_dim(b, value, 0, from, "promise"));
	Node zero = b_zeros_like(b, each), place = b_unsqueeze(b, head, -1);
	Node sum = b_scatter_as(b, zero, place, each, 0, &axis, 1, "add", "promise");
	Node none = aten_size(b, node_sym(b->g, n, "rows"), DT_i64);
	Node to = b_select(b, begins, at, none);
	return sum.i && to.i ? b_tuple(b, (Node[]){at, to, sum}, 3) : (Node){0};
}
OP(rows_sum){
	.schema = "rows_sum(Tensor index, Tensor value, SymInt rows) -> (Tensor at, Tensor to, "
		  "Tensor sum)",
	.doc = "the sums of values that belong to equal rows: at: the rows, sorted; to: each of "
	       "them once, `rows` instead of others; sum: of row `to`",
	.build = build_rows_sum,
	.sample = "i64[n=5] of 4 1 4 0 1, f32[n=5, 3], rows=6; i32[3] of 2 2 2, f32[3], rows=3; "
		  "i64[0], f32[0, 2], rows=4",
};

static Node build_rows_take(Build *b, Node n)
{
	return aten_take_dim(b, arg(b, n, "x"), 0, arg(b, n, "at"), "fill");
}
OP(rows_take){
	.schema = "rows_take(Tensor x, Tensor at) -> Tensor",
	.doc = "rows of x; of one that x does not have, 0",
	.build = build_rows_take,
	.sample = "f32[5, 3], i64[n=4] of 4 0 5 0; f32[5], i64[2] of 1 1",
};

static Node build_rows_put(Build *b, Node n)
{
	Node x = arg(b, n, "x"), to = arg(b, n, "to"), value = arg(b, n, "value");
	uint32_t axis = 0;
	to = b_unsqueeze(b, to, -1);
	value = b_convert(b, value, aten_dtype(b, x));
	return b_scatter_as(b, x, to, value, 0, &axis, 1, "set", "fill");
}
OP(rows_put){
	.schema = "rows_put(Tensor x, Tensor to, Tensor value) -> Tensor",
	.doc = "x with other rows; one that x does not have is written nowhere",
	.build = build_rows_put,
	.sample = "f32[5, 3], i64[n=4] of 4 0 5 5, f32[n=4, 3]; f32[5], i64[2] of 1 3, f32[2]",
};
