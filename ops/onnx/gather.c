/* Elements by index. */
#include "ops/onnx/priv.h"

#include <string.h>

static Node build_gather(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	return aten_take_dim(b, x, onnx_axis(b, n, "axis", x), arg(b, n, "indices"), "check");
}

OP(onnx_Gather_1){
	.schema = "onnx.Gather.1(Tensor data, Tensor indices, *, int axis=0) -> Tensor",
	.build = build_gather,
	.no_sample = NODE_TESTS,
};

static Node build_gather_elements(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	return aten_gather_dim_as(b, x, onnx_axis(b, n, "axis", x), arg(b, n, "indices"), "check");
}

OP(onnx_GatherElements_11){
	.schema = "onnx.GatherElements.11(Tensor data, Tensor indices, *, int axis=0) -> Tensor",
	.build = build_gather_elements,
	.no_sample = NODE_TESTS,
};

/* Reads positions along the dimensions first, first + 1, ... in the last dimension of index, as
 * i64. Sets *naxes and axes[]. */
static Node positions(Build *b, Node x, Node index, uint32_t first, uint32_t *naxes,
		      uint32_t axes[MAX_RANK])
{
	uint32_t rank = aten_rank(b, index);
	int64_t count;
	if (!x.i || !index.i)
		return (Node){0};
	if (!rank)
		return b_error(b, "indices without dimensions, expected positions in the last one");
	if (!aten_const(b, b_dim(b, index, -1), &count))
		return (Node){0};
	if (count < 1 || first + count > aten_rank(b, x))
		return b_error(b, "indices with %lld positions for a tensor of rank %u",
			       (long long)count, aten_rank(b, x));
	*naxes = (uint32_t)count;
	for (uint32_t k = 0; k < *naxes; k++)
		axes[k] = first + k;
	return aten_index(b, index);
}

static Node build_gather_nd(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	int64_t batch = aten_int(b, n, "batch_dims");
	uint32_t naxes, axes[MAX_RANK];
	if (batch < 0 || batch >= (int64_t)aten_rank(b, x))
		return b_error(b, "batch_dims %lld for a tensor of rank %u", (long long)batch,
			       aten_rank(b, x));
	Node index = positions(b, x, arg(b, n, "indices"), (uint32_t)batch, &naxes, axes);
	return index.i ? b_gather(b, x, index, (uint32_t)batch, axes, naxes, "check") : index;
}

OP(onnx_GatherND_11){
	.schema = "onnx.GatherND.11(Tensor data, Tensor indices, *, int batch_dims=0) -> Tensor",
	.aliases = "com_microsoft.GatherND.1",
	.build = build_gather_nd,
	.no_sample = NODE_TESTS,
};

/* ---- scattering ---- */

static const char *combine_of(Build *b, Node n)
{
	if (!aten_check_word(b, n, "reduction", "none add mul max min"))
		return NULL;
	return aten_is(b, n, "reduction", "none") ? "set" : node_str(b->g, n, "reduction");
}

static Node build_scatter_nd(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	uint32_t naxes, axes[MAX_RANK];
	const char *combine = combine_of(b, n);
	Node index = positions(b, x, arg(b, n, "indices"), 0, &naxes, axes);
	return combine && index.i
		       ? b_scatter(b, x, index, arg(b, n, "updates"), 0, axes, naxes, combine)
		       : (Node){0};
}

OP(onnx_ScatterND_11){
	.schema = "onnx.ScatterND.11(Tensor data, Tensor indices, Tensor updates, *, str "
		  "reduction=\"none\") -> Tensor",
	.build = build_scatter_nd,
	.no_sample = NODE_TESTS,
};

/* Returns indices as i64, where negative ones count from the end of `extent` elements: ATen's
 * scatter has none of these. */
static Node counted_from_start(Build *b, Node index, Sym extent)
{
	index = aten_index(b, index);
	if (!index.i)
		return index;
	return b_select(b, b_bin_scalar(b, OP_lt, index, 0),
			b_bin(b, OP_add, index, aten_size(b, extent, DT_i64)), index);
}

static Node build_scatter_elements(Build *b, Node n)
{
	Node x = arg(b, n, "data"), update = arg(b, n, "updates");
	uint32_t axis = onnx_axis(b, n, "axis", x);
	Ir *ir = b->g->ir;
	Node in[] = {x, counted_from_start(b, arg(b, n, "indices"), b_dim(b, x, (int)axis)),
		     update};
	const char *combine = combine_of(b, n);
	if (!combine)
		return (Node){0};
	Attr attr[] = {attr_none(), attr_int(ir, axis), attr_none(), attr_none(), attr_none()};
	if (!strcmp(combine, "set"))
		return onnx_call(b, "aten.scatter.src", in, 3, attr, 4);
	attr[4] = attr_str(ir, combine[0] == 'a'   ? "sum"
			       : combine[1] == 'u' ? "prod"
			       : combine[1] == 'a' ? "amax"
						   : "amin");
	return onnx_call(b, "aten.scatter_reduce.two", in, 3, attr, 5);
}

OP(onnx_Scatter_9){
	.schema = "onnx.Scatter.9(Tensor data, Tensor indices, Tensor updates, *, int axis=0, str "
		  "reduction=\"none\") -> Tensor",
	.build = build_scatter_elements,
	.no_sample = NODE_TESTS,
	.overloads = (const Overload[]){
		{.schema = "onnx.ScatterElements.11(Tensor data, Tensor indices, Tensor updates, "
			   "*, int axis=0, str reduction=\"none\") -> Tensor"},
	},
};

/* ---- by condition ---- */

static Node build_non_zero(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	return b_transpose(b, onnx_call(b, "aten.nonzero", &x, 1, NULL, 0), 0, 1);
}

OP(onnx_NonZero_9){
	.schema = "onnx.NonZero.9(Tensor X) -> Tensor",
	.build = build_non_zero,
	.no_sample = NODE_TESTS,
};

/* Takes, without an axis, elements of the flattened operand. The condition may be shorter than
 * the axis. */
static Node build_compress(Build *b, Node n)
{
	Node x = arg(b, n, "input"), condition = arg(b, n, "condition");
	bool flat = !aten_has(b, n, "axis");
	uint32_t axis = flat ? 0 : onnx_axis(b, n, "axis", x);
	if (flat)
		x = b_ravel(b, x);
	Node at = onnx_call(b, "aten.nonzero", &condition, 1, NULL, 0);
	return aten_take_dim(b, x, axis, b_select_dim(b, at, 1, b_int(b, 0)), "check");
}

OP(onnx_Compress_9){
	.schema = "onnx.Compress.9(Tensor input, Tensor condition, *, int? axis=None) -> Tensor",
	.build = build_compress,
	.no_sample = NODE_TESTS,
};

/* Reverses the first elements along time_axis, as many as sequence_lens says. */
static Node build_reverse_sequence(Build *b, Node n)
{
	Node x = arg(b, n, "input"), length = arg(b, n, "sequence_lens");
	uint32_t batch = onnx_axis(b, n, "batch_axis", x), time = onnx_axis(b, n, "time_axis", x);
	Shape s = aten_shape(b, x);
	if (!x.i || batch == time)
		return b_error(b, "batch_axis and time_axis are one axis");
	Node t = aten_iota_dim(b, &s, time, DT_i64),
	     len = aten_per_dim(b, b_convert(b, length, DT_i64), x, batch);
	Node back = b_bin_scalar(b, OP_sub, b_bin(b, OP_sub, len, t), 1);
	return aten_gather_dim(b, x, time, b_select(b, b_bin(b, OP_lt, t, len), back, t));
}

OP(onnx_ReverseSequence_10){
	.schema = "onnx.ReverseSequence.10(Tensor input, Tensor sequence_lens, *, int "
		  "batch_axis=1, int time_axis=0) -> Tensor",
	.build = build_reverse_sequence,
	.no_sample = NODE_TESTS,
};
