/* Embedding bags: rows of a table, summed, averaged or their maximum over runs of a list of
 * indices. */
#include <math.h>

#include "ops/aten/priv.h"

enum { BAG_SUM, BAG_MEAN, BAG_MAX };

typedef struct {
	Build *b;
	Node index; /* i64 [N] */
	Node bag;   /* i64 [N]: which bag each index is in */
	Node skip;  /* bool [N, 1]: indices that do not count; none: all do */
	Node count; /* i64 [bags]: of those that count */
	Sym n, bags;
	Sym length; /* of each bag, where all are equal and cover the list; none: not known */
} Bags;

static Node scatter_rows(const Bags *r, Node to, Node rows, const char *combine)
{
	uint32_t axis = 0;
	return b_scatter(r->b, to, b_unsqueeze(r->b, r->bag, -1), rows, 0, &axis, 1, combine);
}

/* Reduces the rows [N, ...] of each bag. start: of bags [bags, ...], what an empty one gives. */
static Node combine_rows(const Bags *r, Node start, Node rows, ReduceKind kind)
{
	if (!r->length.i || !rows.i)
		return scatter_rows(r, start, rows, reduce_name_for(kind, COMBINES_WRITES));
	Shape s = aten_shape(r->b, rows), apart = shape_insert(s, 0, r->bags);
	apart.dim[1] = r->length;
	return b_reduce(r->b, kind, b_reshape(r->b, rows, apart.rank, apart.dim), 1u << 1, DT_none);
}

/* Makes one column of v, broadcast over rows. */
static Node column(const Bags *r, Node v)
{
	return b_unsqueeze(r->b, v, -1);
}

/* Returns the number that all elements of an integer tensor are; none: not known. */
static Sym number_of(const Graph *g, Node v)
{
	while (node_op(g, v) == OP_broadcast || node_op(g, v) == OP_convert)
		v = node_in(g, v, 0);
	const Attr *a = node_op(g, v) == OP_full || node_op(g, v) == OP_from_size
				? node_attr(g, v, "value")
				: NULL;
	return a && a->kind == ATTR_int ? a->s : (Sym){0};
}

/* Returns the step of offsets 0, step, 2 step, ..., as arange makes them; none: they are not
 * known to be such. */
static Sym step_of(Build *b, Node offsets)
{
	const Graph *g = b->g;
	while (node_op(g, offsets) == OP_convert)
		offsets = node_in(g, offsets, 0);
	Sym start = node_op(g, offsets) == OP_add ? number_of(g, node_in(g, offsets, 1)) : (Sym){0};
	if (start.i && sym_is(b_syms(b), start, 0))
		offsets = node_in(g, offsets, 0);
	bool steps = node_op(g, offsets) == OP_mul && node_op(g, node_in(g, offsets, 0)) == OP_iota;
	if (node_op(g, offsets) == OP_iota)
		return b_int(b, 1);
	return steps ? number_of(g, node_in(g, offsets, 1)) : (Sym){0};
}

/* Requires that nothing lies behind the last offset: PyTorch adds that up in some modes and not
 * in others. */
static void require_all_in_bags(const Bags *r, Node offsets)
{
	Build *b = r->b;
	Node end = b_convert(b, aten_slice(b, offsets, 0, -1, INT64_MAX), DT_i64);
	Node all = b_bin(b, OP_eq, end, aten_size(b, r->n, DT_i64));
	b_node(b, OP_assert, &all, 1,
	       (Attr[]){attr_none(),
			attr_str(b->g->ir,
				 "embedding_bag: the last offset is not the number of indices")},
	       2);
}

static bool bags_of(Build *b, Node n, Bags *r)
{
	Node index = arg(b, n, "indices"), offsets = arg(b, n, "offsets");
	if (aten_rank(b, index) != 1 || aten_rank(b, offsets) != 1) {
		b_error(b, "indices of rank %u and offsets of rank %u, expected 1",
			aten_rank(b, index), aten_rank(b, offsets));
		return false;
	}
	*r = (Bags){.b = b, .index = b_convert(b, index, DT_i64), .n = b_dim(b, index, 0)};
	Sym step = step_of(b, offsets);
	const Node ends = offsets;
	const bool ends_last = node_bool(b->g, n, "include_last_offset");
	if (ends_last)
		offsets = aten_slice(b, offsets, 0, 0, -1);
	r->bags = b_dim(b, offsets, 0);
	if (step.i && sym_eq(b_syms(b), sym_mul(b_syms(b), r->bags, step), r->n) == YES)
		r->length = step;
	else if (ends_last)
		require_all_in_bags(r, ends);
	Node in[] = {b_iota(b, DT_i64, r->n), b_convert(b, offsets, DT_i64)};
	Attr attr[] = {attr_none(), attr_none(), attr_bool(false), attr_bool(true)};
	r->bag = b_bin_scalar(b, OP_sub, b_node(b, OP_aten_bucketize_Tensor, in, 2, attr, 4), 1);
	Node one = b_full_int(b, DT_i64, 1, 1, &r->n);
	bool pads = op_arg_index(node_op(b->g, n), "padding_idx") >= 0;
	int64_t padding = pads ? aten_int_or(b, n, "padding_idx", -1) : -1;
	bool wraps = node_op(b->g, n) == OP_aten_embedding_bag_padding_idx &&
		     aten_has(b, n, "padding_idx");
	if (padding >= 0 || wraps) {
		Sym at = b_int(b, padding), rows = b_dim(b, arg(b, n, "weight"), 0);
		aten_require_le(b, padding < 0 ? b_int(b, -padding) : b_int(b, padding + 1), rows,
				"padding_idx is a row of the table");
		Node row = aten_size(b, padding < 0 ? sym_add(b_syms(b), at, rows) : at, DT_i64);
		Node skip = b_bin(b, OP_eq, r->index, row);
		one = b_select(b, skip, aten_like(b, one, 0), one);
		r->skip = column(r, skip);
	}
	r->count = combine_rows(r, b_full_int(b, DT_i64, 0, 1, &r->bags), one, REDUCE_SUM);
	return r->count.i;
}

static Node reduce_rows(const Bags *r, Node rows, int64_t mode)
{
	Build *b = r->b;
	Node start = aten_like(b, rows, mode == BAG_MAX ? -(double)INFINITY : 0);
	if (r->skip.i)
		rows = b_select(b, r->skip, start, rows);
	Shape s = {2, {r->bags, b_dim(b, rows, 1)}};
	Node y = combine_rows(r, aten_expand_shape(b, start, &s), rows,
			      mode == BAG_MAX ? REDUCE_MAX : REDUCE_SUM);
	Node count = column(r, r->count);
	if (mode == BAG_MAX) /* an empty bag has nothing */
		y = b_select(b, b_bin_scalar(b, OP_eq, count, 0), aten_like(b, y, 0), y);
	if (mode == BAG_MEAN && y.i)
		y = b_bin(b, OP_div, y,
			  b_convert(b, b_bin_scalar(b, OP_maximum, count, 1), node_dtype(b->g, y)));
	return y;
}

/* Finds the first row that has the maximum, by column; r->n: none. */
static Node first_of_max(const Bags *r, Node rows, Node y)
{
	Build *b = r->b;
	Shape s = aten_shape(b, rows), t = aten_shape(b, y);
	Node at = aten_iota_dim(b, &s, 0, DT_i64), none = aten_size(b, r->n, DT_i64);
	Node hit = b_bin(b, OP_eq, rows, aten_take_dim(b, y, 0, r->bag, "check"));
	at = b_select(b, hit, at, none);
	if (r->skip.i)
		at = b_select(b, r->skip, none, at);
	return combine_rows(r, aten_expand_shape(b, none, &t), at, REDUCE_MIN);
}

/* Gives the maximum y the derivative of the first row that has it. */
static Node with_first_row(const Bags *r, Node rows, Node first, Node y)
{
	Build *b = r->b;
	Shape s = aten_shape(b, rows);
	s.dim[0] = b_int(b, 1);
	Node nothing = b_full(b, node_dtype(b->g, rows), 0, 2, s.dim);
	Node all = b_concat(b, (Node[]){rows, nothing}, 2, 0);
	return b_bin(b, OP_straight_through, y, aten_gather_dim(b, all, 0, first));
}

static Node max_indices(const Bags *r, Node first)
{
	Build *b = r->b;
	Node no_row = b_full_int(b, DT_i64, 0, 1, (Sym[]){b_int(b, 1)}); /* what `none` finds */
	return aten_take_dim(b, b_concat(b, (Node[]){r->index, no_row}, 2, 0), 0, first, "check");
}

/* Returns what only gradients read: PyTorch leaves elements out or adds some that mean nothing,
 * and its files say how many there are. */
static Node for_gradients(Build *b, Node n, uint32_t k, Node v)
{
	SymTab *t = b_syms(b);
	v = b_convert(b, v, aten_result_dtype(b, n, k, aten_dtype(b, arg(b, n, "indices"))));
	const Type *all = node_type(b->g, n);
	if (!node_type_id(b->g, n).i || all->dtype != DT_none || k >= all->n)
		return v;
	const Type *file = ir_type_of(b->g->ir, all->elem[k]);
	if (file->dtype == DT_none || file->n == 0 ||
	    sym_eq(t, file->dim[0], b_dim(b, v, 0)) == YES)
		return v;
	Sym low[MAX_RANK], high[MAX_RANK];
	for (uint32_t j = 0; j < MAX_RANK; j++)
		low[j] = high[j] = b_int(b, 0);
	high[0] = sym_sub(t, file->dim[0], b_dim(b, v, 0));
	return b_pad(b, v, low, high, aten_like(b, v, 0));
}

/* Returns (result, offset2bag, bag_size, max_indices). */
static Node build_embedding_bag(Build *b, Node n)
{
	Node w = arg(b, n, "weight"), scale = arg(b, n, "per_sample_weights");
	int64_t mode = aten_int(b, n, "mode");
	Bags r;
	if (aten_rank(b, w) != 2 || mode < BAG_SUM || mode > BAG_MAX)
		return b_error(b, "a table of rank %u in mode %lld, expected 2 in 0 .. 2",
			       aten_rank(b, w), (long long)mode);
	if (scale.i && mode != BAG_SUM)
		return b_error(b, "per_sample_weights in mode %lld, expected those of sums: 0",
			       (long long)mode);
	if (!bags_of(b, n, &r))
		return (Node){0};
	Node rows = aten_wide(b, aten_take_dim(b, w, 0, r.index, "within"));
	if (scale.i)
		rows = b_bin(b, OP_mul, rows, column(&r, aten_wide(b, scale)));
	Node y = reduce_rows(&r, rows, mode);
	if (!y.i)
		return y;
	/* of sums, PyTorch does not count */
	Node count = mode == BAG_SUM ? b_full_int(b, DT_i64, 0, 1, &r.bags) : r.count;
	Node first = mode == BAG_MAX ? first_of_max(&r, rows, y) : (Node){0};
	Node most = mode == BAG_MAX ? max_indices(&r, first) : count;
	y = mode == BAG_MAX ? with_first_row(&r, rows, first, y) : y;
	Node out[] = {b_convert(b, y, node_dtype(b->g, w)), r.bag, count, most};
	for (uint32_t k = 1; k < 4; k++)
		out[k] = for_gradients(b, n, k, out[k]);
	return b_tuple(b, out, 4);
}
OP(aten_embedding_bag){
	.schema = "aten.embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool "
		  "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? "
		  "per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, "
		  "Tensor, Tensor)",
	.build = build_embedding_bag,
	.sample = "f32[6, 3], i64[7] of 0 2 5 2 1 1 4, i64[4] of 0 2 2 5, mode=0 -> 0; "
		  "f32[6, 3], i64[7] of 0 2 5 2 1 1 4, i64[4] of 0 2 2 5, mode=1; "
		  "f32[6, 3], i64[7] of 0 2 5 2 1 1 4, i64[5] of 0 2 2 5 7, mode=2, "
		  "include_last_offset=true; f32[6, 3], i64[7] of 0 2 5 2 1 1 4, "
		  "i64[4] of 0 2 2 5, mode=0, f32[7] -> 0",
	.overloads = (const Overload[]){
		{.schema = "aten.embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor "
			   "offsets, bool scale_grad_by_freq, int mode, bool sparse, "
			   "Tensor? per_sample_weights, "
			   "bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, "
			   "Tensor, Tensor)",
		 .sample = "f32[6, 3], i64[7] of 0 2 5 2 1 1 4, i64[4] of 0 2 2 5, "
			   "scale_grad_by_freq=false, mode=0, sparse=false, f32[7], "
			   "include_last_offset=false, padding_idx=2 -> 0; "
			   "f32[6, 3], i64[7] of 0 2 5 2 1 1 4, i64[4] of 0 2 2 5, "
			   "scale_grad_by_freq=false, mode=1, sparse=false, "
			   "include_last_offset=false, padding_idx=-5 -> 0; "
			   "f32[6, 3], i64[7] of 0 2 5 2 1 1 4, i64[4] of 0 2 2 5, "
			   "scale_grad_by_freq=false, mode=2, sparse=false, "
			   "include_last_offset=false, padding_idx=2; "
			   "f32[6, 3], i64[7] of 0 2 5 2 1 1 4, i64[4] of 0 2 2 5, "
			   "scale_grad_by_freq=false, mode=1, sparse=false, "
			   "include_last_offset=false, padding_idx=none"},
		{.schema = "aten._embedding_bag(Tensor weight, Tensor indices, Tensor offsets, "
			   "bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? "
			   "per_sample_weights=None, bool include_last_offset=False, "
			   "int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
		 .aliases = "aten._embedding_bag_forward_only",
		 .sample = "f32[6, 3], i64[7] of 0 2 5 2 1 1 4, i64[4] of 0 2 2 5, mode=0 -> 0; "
			   "f32[6, 3], i64[7] of 0 2 5 2 1 1 4, i64[4] of 0 2 2 5, mode=1, "
			   "padding_idx=1; f32[6, 3], i64[7] of 0 2 5 2 1 1 4, i64[4] of 0 2 2 5, "
			   "mode=0, padding_idx=0 -> 0; "
			   "f32[6, 3], i64[7] of 0 2 5 2 1 1 4, i64[4] of 0 2 2 5, mode=2, "
			   "padding_idx=2"},
	},
};
