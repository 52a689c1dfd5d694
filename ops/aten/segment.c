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

static const uint32_t NO_KIND = sizeof kinds / sizeof *kinds;

/* What a segment_reduce, or its derivative, is asked for. */
typedef struct {
	Node data, offset; /* [..., n, rest], i64 [..., segments + 1] */
	uint32_t axis, kind;
	const Attr *initial; /* of kind ATTR_none: none */
} Segments;

/* Returns where segments begin, and the last one ends: [..., segments + 1]. */
static Node offsets_of(Build *b, Node lengths, Node offsets, uint32_t axis)
{
	if (!lengths.i)
		return b_convert(b, offsets, DT_i64);
	Node end = b_cumulative(b, "sum", b_convert(b, lengths, DT_i64), axis, false);
	Shape s = aten_shape(b, lengths);
	s.dim[axis] = b_int(b, 1);
	Node begin = b_full_int(b, DT_i64, 0, s.rank, s.dim);
	return b_concat(b, (Node[]){begin, end}, 2, (int)axis);
}

/* Whether an initial value of that kind is the one that changes nothing: sums of +0 are no -0. */
static bool is_identity(const Build *b, const Attr *initial, uint32_t kind)
{
	const double want = kinds[kind].identity;
	int64_t v;
	if (initial->kind == ATTR_int)
		return sym_is_const(b_syms(b), initial->s, &v) && (double)v == want;
	return initial->kind == ATTR_float && initial->f == want;
}

static bool segments_of(Build *b, Node n, Segments *s)
{
	Node lengths = arg(b, n, "lengths"), offsets = arg(b, n, "offsets"),
	     given = lengths.i ? lengths : offsets;
	const char *reduce = node_str(b->g, n, "reduce");
	*s = (Segments){.data = arg(b, n, "data"), .initial = node_attr(b->g, n, "initial")};
	while (s->kind < NO_KIND && strcmp(kinds[s->kind].name, reduce) != 0)
		s->kind++;
	if (!s->data.i || s->kind == NO_KIND)
		return b_error(b, "segment_reduce: expected sum, mean, prod, max or min, got %s",
			       reduce)
			.i;
	s->axis = b_wrap_dim(b, aten_int(b, n, "axis"), aten_rank(b, s->data));
	if (!dtype_is_float(node_dtype(b->g, s->data)))
		return b_error(b, "segment_reduce of %s", dtype_name(node_dtype(b->g, s->data))).i;
	if (!given.i || node_rank(b->g, given) != s->axis + 1)
		return b_error(b, "segment_reduce: expected lengths or offsets of %u dimensions",
			       s->axis + 1)
			.i;
	s->offset = offsets_of(b, lengths, offsets, s->axis);
	return s->offset.i;
}

static Node reduced(Build *b, const Segments *s)
{
	Attr attr[] = {attr_none(), attr_none(),
		       attr_str(b->g->ir, reduce_name_for(kinds[s->kind].kind, COMBINES_DIMS)),
		       attr_int(b->g->ir, s->axis)};
	return b_node(b, OP_segment_reduce, (Node[]){s->data, s->offset}, 2, attr, 4);
}

/* Returns how many elements each segment has, for every element of y. */
static Node counts_for(Build *b, const Segments *s, Node y)
{
	Node start = aten_slice(b, s->offset, s->axis, 0, -1),
	     end = aten_slice(b, s->offset, s->axis, 1, INT64_MAX);
	Node count = b_bin(b, OP_sub, end, start);
	Shape shape = aten_shape(b, y);
	uint32_t map[MAX_RANK];
	for (uint32_t k = 0; k <= s->axis; k++)
		map[k] = k;
	return b_broadcast_in_dim(b, count, shape.rank, shape.dim, map);
}

/* Returns the mean: the sum by how many there are; of nothing NaN, or the initial value. */
static Node by_count(Build *b, const Segments *s, Node y)
{
	Node count = counts_for(b, s, y), none = b_bin_scalar(b, OP_eq, count, 0);
	Node one = b_bin_scalar(b, OP_maximum, count, 1);
	y = b_bin(b, OP_div, y, b_convert(b, one, aten_dtype(b, y)));
	return s->initial->kind != ATTR_none ? y
					     : b_select(b, none, aten_like(b, y, (double)NAN), y);
}

static Node with_initial(Build *b, const Segments *s, Node y)
{
	static const Op with[] = {OP_add, OP_add, OP_mul, OP_maximum, OP_minimum};
	if (s->initial->kind == ATTR_none || is_identity(b, s->initial, s->kind) || !y.i)
		return y;
	return b_bin(b, with[s->kind], y, aten_scalar_factor(b, s->initial, node_dtype(b->g, y)));
}

static Node build_segment_reduce(Build *b, Node n)
{
	Segments s;
	if (!segments_of(b, n, &s))
		return (Node){0};
	Node y = with_initial(b, &s, reduced(b, &s));
	return y.i && !strcmp(kinds[s.kind].name, "mean") ? by_count(b, &s, y) : y;
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

/* Returns the cotangent of what is reduced without the initial value. y: the result without it. */
static Node without_initial(Build *b, const Segments *s, Node y, Node ct)
{
	static const Op stays[] = {OP_none, OP_none, OP_none, OP_ge, OP_le};
	if (!strcmp(kinds[s->kind].name, "mean")) {
		Node count = b_bin_scalar(b, OP_maximum, counts_for(b, s, y), 1);
		return b_bin(b, OP_div, ct, b_convert(b, count, node_dtype(b->g, ct)));
	}
	if (s->initial->kind == ATTR_none || is_identity(b, s->initial, s->kind))
		return ct;
	Node initial = aten_scalar_factor(b, s->initial, node_dtype(b->g, y));
	if (kinds[s->kind].kind == REDUCE_PROD)
		return b_bin(b, OP_mul, ct, initial);
	return stays[s->kind] == OP_none
		       ? ct
		       : b_select(b, b_bin(b, stays[s->kind], y, initial), ct, aten_like(b, ct, 0));
}

static Node build_segment_backward(Build *b, Node n)
{
	Segments s;
	const bool want[] = {true, false};
	Node g[2] = {{0}, {0}}, grad = arg(b, n, "grad");
	if (!grad.i || !segments_of(b, n, &s))
		return (Node){0};
	Node y = reduced(b, &s);
	Shape shape = aten_shape(b, y);
	if (!y.i || !aten_require_shape(b, grad, &shape, "the gradient has the result's shape"))
		return (Node){0};
	Node ct = without_initial(b, &s, y, b_convert(b, grad, node_dtype(b->g, y)));
	return ct.i && op_vjp(b, y, &ct, want, g) ? g[0] : (Node){0};
}
OP(aten__segment_reduce_backward){
	.schema = "aten._segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str "
		  "reduce, *, Tensor? lengths=None, Tensor? offsets=None, int axis=0, "
		  "Scalar? initial=None) -> Tensor",
	.deviates = "equal maxima or minima share a negative cotangent, too; in PyTorch each gets "
		    "all of it",
	.build = build_segment_backward,
	.sample = "f32[3, 2], f32[3, 2], f32[5, 2], i64[3] of 2 0 3, none, reduce=\"sum\"; "
		  "f32[2, 2], f32[2, 2], f32[5, 2], none, i64[3] of 0 2 5, reduce=\"mean\", "
		  "initial=0; "
		  "f32[2] of 3 -2, f32[2] of 5 3, f32[4] of 1 5 2 3, none, i64[3] of 0 2 4, "
		  "reduce=\"max\"; "
		  "f32[2] of 3 -2, f32[2] of 12 80, f32[5] of 2 3 4 2 5, none, i64[3] of 0 2 5, "
		  "reduce=\"prod\", initial=2; "
		  "f32[2] of 3 -2, f32[2] of 1 2, f32[4] of 1 5 2 3, i64[2] of 2 2, none, "
		  "reduce=\"min\", initial=9",
};
