/* ATen's unique elements: equal ones are neighbours after sorting; the first of each run is kept.
 *
 *   x       2  7  2  2  7      first   1  0  0  1  0      values   2  7     counts   3  2
 *   sorted  2  2  2  7  7      run     0  0  0  1  1      inverse  0  1  0  0  1 */
#include "ops/aten/priv.h"
#include "ops/prim/data_size.h"

/* Finds neighbours that differ: row i of [n] or [n, m] from the row before it; the first one
 * does. NaN differs from itself. */
static Node run_begins(Build *b, Node x)
{
	Node k = b_iota(b, DT_i64, b_dim(b, x, 0));
	Node last = b_bin_scalar(b, OP_maximum, b_bin_scalar(b, OP_sub, k, 1), 0);
	Node differs = b_bin(b, OP_ne, x, aten_take_dim(b, x, 0, last, "promise"));
	if (aten_rank(b, x) == 2)
		differs = aten_reduce(b, REDUCE_OR, differs, 2, false);
	return b_bin(b, OP_bit_or, differs, b_bin_scalar(b, OP_eq, k, 0));
}

/* How a result is asked for. */
typedef struct {
	bool inverse, counts;
	const char *what;
} UniqueAsk;

/* Gives the three results: x is [n] or [n, m], in an order in which equal rows are neighbours;
 * order: where row i came from, none: that is its own order. kept: the first rows of runs. */
static void unique_runs(Build *b, Node x, Node order, Sym size, UniqueAsk ask, Node *kept,
			Node *inverse, Node *counts)
{
	Sym n = b_dim(b, x, 0), none = b_int(b, 0);
	uint32_t axis = 0;
	TrueElements runs = true_elements(b, run_begins(b, x), size, ask.what);
	*kept = runs.place;
	*inverse = *counts = b_full_int(b, DT_i64, 0, 1, &none);
	if (ask.inverse && order.i) {
		Node index = b_unsqueeze(b, order, -1), zeros = b_full_int(b, DT_i64, 0, 1, &n);
		*inverse = b_scatter(b, zeros, index, runs.before, 0, &axis, 1, "set");
	} else if (ask.inverse) {
		*inverse = runs.before;
	}
	if (ask.counts) {
		Node one = b_full_int(b, DT_i64, 1, 1, &n);
		Node index = b_unsqueeze(b, runs.before, -1),
		     zeros = b_full_int(b, DT_i64, 0, 1, &size);
		*counts = b_scatter(b, zeros, index, one, 0, &axis, 1, "add");
	}
}

/* Reads which results the node asks for. */
static UniqueAsk asked(const Build *b, Node n)
{
	return (UniqueAsk){node_bool(b->g, n, "return_inverse"),
			   node_bool(b->g, n, "return_counts"), op_name(node_op(b->g, n))};
}

/* Finds the different ones of all elements as one row, sorted or as they stand. */
static Node unique_elements(Build *b, Node n, int sorts)
{
	Node x = arg(b, n, "self"), r[3], kept, order = {0};
	Shape s = aten_shape(b, x);
	UniqueAsk ask = asked(b, n);
	Node row = b_ravel(b, x);
	if (sorts) {
		Node sorted = b_sort(b, row, 0, false, true);
		row = b_get(b, sorted, 0);
		order = b_get(b, sorted, 1);
	}
	if (!row.i)
		return row;
	unique_runs(b, row, order, data_size(b, n, 0, 0), ask, &kept, &r[1], &r[2]);
	r[0] = aten_take_dim(b, row, 0, kept, "promise");
	if (ask.inverse)
		r[1] = aten_reshape(b, r[1], &s);
	return b_tuple(b, r, 3);
}

/* ---- along a dimension ---- */

/* Makes one step of sorting rows by their columns, from the last to the first: (order, column)
 * to the next order. */
static Graph *sort_step(Build *b, DType d, Sym n)
{
	Graph *g = graph_beside(b->g, "by_column");
	Build in = {.g = g, .loc = b->loc, .where = b->where};
	Node order = graph_add_input(g, "order", INPUT_USER, ir_type(g->ir, DT_i64, 1, &n));
	Node column = graph_add_input(g, "column", INPUT_USER, ir_type(g->ir, d, 1, &n));
	Node key = aten_take_dim(&in, column, 0, order, "promise");
	Node place = b_get(&in, b_sort(&in, key, 0, false, true), 1);
	graph_add_output(g, "order", aten_take_dim(&in, order, 0, place, "promise"), -1);
	return g;
}

/* Returns the lexicographic order of the rows of [n, m]: stable sorts by one column after the
 * other. */
static Node row_order(Build *b, Node x)
{
	Ir *ir = b->g->ir;
	Sym n = b_dim(b, x, 0), m = b_dim(b, x, 1);
	Attr attr[] = {attr_int(ir, 1), attr_int(ir, 1),
		       attr_int(ir, 0), attr_graph(sort_step(b, node_dtype(b->g, x), n)),
		       attr_sym(m),     attr_bool(true)};
	Node in[] = {b_iota(b, DT_i64, n), b_transpose(b, x, 0, 1)};
	return b_get(b, b_node(b, OP_scan, in, 2, attr, 6), 0);
}

static Node unique_slices(Build *b, Node n, uint32_t dim, bool sorts)
{
	Node x = arg(b, n, "self"), r[3], kept, order = {0};
	Shape s = aten_shape(b, x);
	if (dim >= s.rank)
		return b_error(b, "unique along dimension %u of an operand of rank %u", dim,
			       s.rank);
	Node rows = aten_move_dim(b, x, dim, 0);
	Shape sr = aten_shape(b, rows), flat_rows = shape_remove(sr, 0);
	rows = b_reshape(b, rows, 2, (Sym[]){s.dim[dim], shape_numel(b, &flat_rows)});
	if (sorts && rows.i) {
		order = row_order(b, rows);
		rows = aten_take_dim(b, rows, 0, order, "promise");
	}
	if (!rows.i)
		return rows;
	/* PyTorch gives them whether asked or not */
	UniqueAsk all = {true, true, op_name(node_op(b->g, n))};
	unique_runs(b, rows, order, data_size(b, n, 0, dim), all, &kept, &r[1], &r[2]);
	r[0] = aten_take_dim(
		b, x, dim, order.i ? aten_take_dim(b, order, 0, kept, "promise") : kept, "promise");
	return b_tuple(b, r, 3);
}

static Node build_unique_dim(Build *b, Node n)
{
	return unique_slices(
		b, n, b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, arg(b, n, "self"))), true);
}

static Node build_unique_dim_consecutive(Build *b, Node n)
{
	return unique_slices(
		b, n, b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, arg(b, n, "self"))), false);
}

static Node build_unique_consecutive(Build *b, Node n)
{
	if (!aten_has(b, n, "dim"))
		return unique_elements(b, n, false);
	return unique_slices(
		b, n, b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, arg(b, n, "self"))), false);
}
OP(aten__unique2){
	.schema = "aten._unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool "
		  "return_counts=False) -> (Tensor, Tensor, Tensor)",
	.build_as = {unique_elements, true},
	.has_effect = data_size_effect,
	.sample = "i64[n=3, 4] in 0..4, return_inverse=true, return_counts=true; "
		  "f32[6] of 1 nan -2 1 nan 0; i32[0], return_inverse=true, return_counts=true; "
		  "f32[5] of 3, return_counts=true; bool[4] of 1 0, return_inverse=true",
	.overloads = (const Overload[]){
		{.schema = "aten.unique_dim(Tensor self, int dim, bool sorted=True, bool "
			   "return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, "
			   "Tensor)",
		 .build = build_unique_dim,
		 .sample = "i64[n=6, 2] in 0..2, dim=0, return_inverse=true, return_counts=true; "
			   "f32[2, 5] of 1 0 1 0 0 1 0 1, dim=-1, return_inverse=true; "
			   "i32[3, 2, 2] of 1, dim=1, return_counts=true"},
		{.schema = "aten.unique_dim_consecutive(Tensor self, int dim, bool "
			   "return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, "
			   "Tensor)",
		 .build = build_unique_dim_consecutive,
		 .sample = "i32[4, 2] of 1 2 1 2 3 3 3 3, dim=0, return_inverse=true, "
			   "return_counts=true"},
		{.schema = "aten.unique_consecutive(Tensor self, bool return_inverse=False, bool "
			   "return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
		 .build = build_unique_consecutive,
		 .sample = "i64[n=3, 4] of 1 1 2 2 2 1, return_inverse=true, return_counts=true; "
			   "f32[5] of nan nan 1 1 0; i32[4, 2] of 1 2 1 2 3 3 3 3, dim=0, "
			   "return_inverse=true, return_counts=true; i32[0]"},
	},
};
