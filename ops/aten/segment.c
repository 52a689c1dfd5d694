/* Reductions of segments of a dimension, given by their lengths or where they begin. */
#include <math.h>
#include <string.h>

#include "ops/aten/priv.h"

static const struct {
	const char *name;
	ReduceKind kind;
	double identity;
} kinds[] = {{"sum", REDUCE_SUM, 0}, {"mean", REDUCE_SUM, 0}, {"prod", REDUCE_PROD, 1},
	     {"max", REDUCE_MAX, -(double)INFINITY}, {"min", REDUCE_MIN, (double)INFINITY}};

/* Finds where segments begin and end: [..., segments]. */
static bool bounds(Build *b, Node n, uint32_t axis, Node *start, Node *end)
{
	Node lengths = arg(b, n, "lengths"), offsets = arg(b, n, "offsets"),
	     given = lengths.i ? lengths : offsets;
	if (!given.i || node_rank(b->g, given) != axis + 1)
		return b_error(b, "segment_reduce: expected lengths or offsets of %u dimensions",
			       axis + 1)
			.i;
	given = b_convert(b, given, DT_i64);
	if (lengths.i) {
		*end = b_cumulative(b, "sum", given, axis, false);
		*start = b_bin(b, OP_sub, *end, given);
	} else {
		*start = aten_slice(b, given, axis, 0, -1);
		*end = aten_slice(b, given, axis, 1, INT64_MAX);
	}
	return start->i && end->i;
}

/* Returns x [..., N, rest] read by every segment, [..., S, N, rest], where `inside` [..., S, N]
 * holds. */
static Node segments_of(Build *b, Node x, Node inside, uint32_t axis, double otherwise)
{
	Shape s = aten_shape(b, x), wide = shape_insert(s, axis, b_dim(b, inside, (int)axis));
	uint32_t from[MAX_RANK], mask[MAX_RANK];
	for (uint32_t k = 0; k < s.rank; k++)
		from[k] = k < axis ? k : k + 1;
	for (uint32_t k = 0; k < axis + 2; k++)
		mask[k] = k;
	x = b_broadcast_in_dim(b, x, wide.rank, wide.dim, from);
	inside = b_broadcast_in_dim(b, inside, wide.rank, wide.dim, mask);
	return x.i && inside.i ? b_select(b, inside, x, aten_like(b, x, otherwise)) : (Node){0};
}

/* Returns the mean: of what is there by how many there are; of nothing NaN, or the initial
 * value. */
static Node by_count(Build *b, Node y, Node inside, uint32_t axis, bool initial)
{
	Node count =
		aten_reduce(b, REDUCE_SUM, b_convert(b, inside, DT_i64), 1u << (axis + 1), false);
	Shape s = aten_shape(b, y);
	uint32_t map[MAX_RANK];
	for (uint32_t k = 0; k <= axis; k++)
		map[k] = k;
	count = b_broadcast_in_dim(b, count, s.rank, s.dim, map);
	Node none = b_bin_scalar(b, OP_eq, count, 0),
	     one = b_select(b, none, aten_like(b, count, 1), count);
	y = b_bin(b, OP_div, y, b_convert(b, one, aten_dtype(b, y)));
	return initial ? y : b_select(b, none, aten_like(b, y, (double)NAN), y);
}

static Node build_segment_reduce(Build *b, Node n)
{
	Node x = arg(b, n, "data"), start, end;
	const char *reduce = node_str(b->g, n, "reduce");
	const Attr *initial = node_attr(b->g, n, "initial");
	uint32_t k = 0, rank = aten_rank(b, x);
	while (k < 5 && strcmp(kinds[k].name, reduce) != 0)
		k++;
	if (!x.i || k == 5)
		return b_error(b, "segment_reduce: expected sum, mean, prod, max or min, got %s",
			       reduce);
	uint32_t axis = b_wrap_dim(b, aten_int(b, n, "axis"), rank);
	if (!dtype_is_float(node_dtype(b->g, x)) || !bounds(b, n, axis, &start, &end))
		return b_error(b, "segment_reduce of %s", dtype_name(node_dtype(b->g, x)));
	Shape s = aten_shape(b, start);
	s = shape_insert(s, axis + 1, b_dim(b, x, (int)axis));
	Node at = aten_iota_dim(b, &s, axis + 1, DT_i64);
	Node inside = b_bin(b, OP_bit_and, b_bin(b, OP_ge, at, b_unsqueeze(b, start, -1)),
			    b_bin(b, OP_lt, at, b_unsqueeze(b, end, -1)));
	Node y = aten_reduce(b, kinds[k].kind, segments_of(b, x, inside, axis, kinds[k].identity),
			     1u << (axis + 1), false);
	bool has = initial->kind != ATTR_none, is_mean = !strcmp(reduce, "mean");
	if (has && y.i) {
		static const Op with[] = {OP_add, OP_add, OP_mul, OP_maximum, OP_minimum};
		y = b_bin(b, with[k], y, aten_scalar_factor(b, initial, node_dtype(b->g, y)));
	}
	return is_mean ? by_count(b, y, inside, axis, has) : y;
}
OP(aten_segment_reduce){
	.schema = "aten.segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? "
		  "indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, "
		  "Scalar? initial=None) -> Tensor",
	.build = build_segment_reduce,
	.sample = "f32[5, 2], i64[3] of 2 0 3, none, none, reduce=\"sum\"; "
		  "f32[5], i64[3] of 2 0 3, none, none, reduce=\"mean\"; "
		  "f32[5], i64[3] of 2 0 3, none, none, reduce=\"mean\", initial=1; "
		  "f32[2, 4, 2], i64[2, 2] of 1 3 4 0, none, none, reduce=\"max\", axis=1; "
		  "f32[5], none, none, i64[3] of 0 2 5, reduce=\"prod\", initial=2; "
		  "f32[5], none, none, i64[3] of 0 2 5, reduce=\"min\"",
};
