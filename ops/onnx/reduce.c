/* Reductions, softmax, running sums, the greatest elements. */
#include "ops/onnx/priv.h"

/* ---- reductions ---- */

/* Reads the dimensions in the argument axes; all without axes, none if noop_with_empty_axes says
 * so. Returns false after b_error. */
static bool reduced(Build *b, Node n, Node x, uint32_t *dims)
{
	uint32_t axes[MAX_RANK], count = 0, rank = aten_rank(b, x);
	if (aten_has(b, n, "axes"))
		(void)node_ints(b->g, n, "axes", &count);
	*dims = 0;
	if (!count) {
		*dims = node_bool(b->g, n, "noop_with_empty_axes") ? 0 : (1u << rank) - 1;
		return true;
	}
	TRY(onnx_axes(b, n, "axes", rank, axes, &count));
	for (uint32_t k = 0; k < count; k++)
		*dims |= 1u << axes[k];
	return true;
}

static Node reduce(Build *b, Node n, ReduceKind kind, Node x)
{
	uint32_t dims;
	bool keep = node_bool(b->g, n, "keepdims");
	DType d = aten_dtype(b, x);
	if (!x.i || !reduced(b, n, x, &dims))
		return (Node){0};
	Node y = aten_reduce(b, kind, x, dims, keep);
	return y.i ? b_convert(b, y, d) : y;
}

static Node build_reduce_sum(Build *b, Node n)
{
	return reduce(b, n, REDUCE_SUM, arg(b, n, "data"));
}

static Node build_reduce_prod(Build *b, Node n)
{
	return reduce(b, n, REDUCE_PROD, arg(b, n, "data"));
}

/* Reduces bools as u8, whose order is theirs. */
static Node build_extreme(Build *b, Node n, int kind)
{
	Node x = arg(b, n, "data");
	if (aten_dtype(b, x) != DT_bool)
		return reduce(b, n, kind, x);
	return b_convert(b, reduce(b, n, kind, b_convert(b, x, DT_u8)), DT_bool);
}

static Node build_reduce_mean(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	uint32_t dims;
	DType d = aten_dtype(b, x);
	if (!x.i || !reduced(b, n, x, &dims))
		return (Node){0};
	if (!dtype_is_int(d))
		return aten_mean(b, x, dims, node_bool(b->g, n, "keepdims"));
	Node sum = aten_reduce(b, REDUCE_SUM, b_convert(b, x, DT_i64), dims,
			       node_bool(b->g, n, "keepdims"));
	Attr attr[] = {attr_none(), attr_none(), attr_str(b->g->ir, "trunc")};
	return b_convert(b,
			 onnx_call(b, "aten.div.Tensor_mode",
				   (Node[]){sum, aten_size(b, aten_count(b, x, dims), DT_i64)}, 2,
				   attr, 3),
			 d);
}

static Node build_reduce_l1(Build *b, Node n)
{
	return reduce(b, n, REDUCE_SUM, aten_abs(b, arg(b, n, "data")));
}

static Node build_reduce_sum_square(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	return reduce(b, n, REDUCE_SUM, b_bin(b, OP_mul, x, x));
}

/* Builds the length; of zeros its derivative is 0. */
static Node build_reduce_l2(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	DType d = aten_dtype(b, x);
	uint32_t dims;
	if (dtype_is_float(d))
		return reduced(b, n, x, &dims)
			       ? b_convert(b,
					   aten_length(b, aten_wide(b, x), 2, dims,
						       node_bool(b->g, n, "keepdims")),
					   d)
			       : (Node){0};
	return b_convert(b, b_un(b, OP_sqrt, reduce(b, n, REDUCE_SUM, b_bin(b, OP_mul, x, x))), d);
}

static Node build_reduce_log_sum(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	DType d = aten_dtype(b, x);
	return b_convert(b, b_un(b, OP_log, reduce(b, n, REDUCE_SUM, x)), d);
}

static Node build_reduce_log_sum_exp(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	uint32_t dims;
	DType d = aten_dtype(b, x);
	if (!x.i || !reduced(b, n, x, &dims))
		return (Node){0};
	if (!dims)
		return x;
	Sym dim[MAX_RANK];
	uint32_t count = 0;
	for (uint32_t k = 0; k < node_rank(b->g, x); k++)
		if (dims & 1u << k)
			dim[count++] = b_int(b, k);
	Attr attr[] = {attr_none(), attr_ints(dim, count),
		       attr_bool(node_bool(b->g, n, "keepdims"))};
	return b_convert(b, onnx_call(b, "aten.logsumexp", &x, 1, attr, 3), d);
}

/* Axes are an attribute in old opsets, and an input in new ones. */
OP(onnx_ReduceSum_1){
	.schema = "onnx.ReduceSum.1(Tensor data, int[]? axes, *, bool keepdims=True, bool "
		  "noop_with_empty_axes=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_reduce_sum,
	.no_sample = NODE_TESTS,
};
OP(onnx_ReduceProd_1){
	.schema = "onnx.ReduceProd.1(Tensor data, int[]? axes, *, bool keepdims=True, bool "
		  "noop_with_empty_axes=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_reduce_prod,
	.no_sample = NODE_TESTS,
};
OP(onnx_ReduceMax_1){
	.schema = "onnx.ReduceMax.1(Tensor data, int[]? axes, *, bool keepdims=True, bool "
		  "noop_with_empty_axes=False) -> Tensor",
	.build_as = {build_extreme, REDUCE_MAX},
	.no_sample = NODE_TESTS,
};
OP(onnx_ReduceMin_1){
	.schema = "onnx.ReduceMin.1(Tensor data, int[]? axes, *, bool keepdims=True, bool "
		  "noop_with_empty_axes=False) -> Tensor",
	.build_as = {build_extreme, REDUCE_MIN},
	.no_sample = NODE_TESTS,
};
OP(onnx_ReduceMean_1){
	.schema = "onnx.ReduceMean.1(Tensor data, int[]? axes, *, bool keepdims=True, bool "
		  "noop_with_empty_axes=False) -> Tensor",
	.build = build_reduce_mean,
	.no_sample = NODE_TESTS,
};
OP(onnx_ReduceL1_1){
	.schema = "onnx.ReduceL1.1(Tensor data, int[]? axes, *, bool keepdims=True, bool "
		  "noop_with_empty_axes=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_reduce_l1,
	.no_sample = NODE_TESTS,
};
OP(onnx_ReduceL2_1){
	.schema = "onnx.ReduceL2.1(Tensor data, int[]? axes, *, bool keepdims=True, bool "
		  "noop_with_empty_axes=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_reduce_l2,
	.no_sample = NODE_TESTS,
};
OP(onnx_ReduceSumSquare_1){
	.schema = "onnx.ReduceSumSquare.1(Tensor data, int[]? axes, *, bool keepdims=True, bool "
		  "noop_with_empty_axes=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_reduce_sum_square,
	.no_sample = NODE_TESTS,
};
OP(onnx_ReduceLogSum_1){
	.schema = "onnx.ReduceLogSum.1(Tensor data, int[]? axes, *, bool keepdims=True, bool "
		  "noop_with_empty_axes=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_reduce_log_sum,
	.no_sample = NODE_TESTS,
};
OP(onnx_ReduceLogSumExp_1){
	.schema = "onnx.ReduceLogSumExp.1(Tensor data, int[]? axes, *, bool keepdims=True, bool "
		  "noop_with_empty_axes=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_reduce_log_sum_exp,
	.no_sample = NODE_TESTS,
};

/* ---- places of the greatest and least ---- */

static Node arg_extreme(Build *b, Node n, int max)
{
	Node x = arg(b, n, "data");
	uint32_t axis = onnx_axis(b, n, "axis", x);
	bool last = node_bool(b->g, n, "select_last_index");
	if (!x.i)
		return x;
	Node y = b_arg_reduce(b, max, last ? b_reverse(b, x, (int)axis) : x, axis);
	if (last)
		y = b_bin(b, OP_sub,
			  aten_size(b, sym_addi(b_syms(b), b_dim(b, x, (int)axis), -1), DT_i64), y);
	return node_bool(b->g, n, "keepdims") ? b_unsqueeze(b, y, (int)axis) : y;
}


OP(onnx_ArgMax_1){
	.schema = "onnx.ArgMax.1(Tensor data, *, int axis=0, bool keepdims=True, bool "
		  "select_last_index=False) -> Tensor",
	.build_as = {arg_extreme, true},
	.no_sample = NODE_TESTS,
};
OP(onnx_ArgMin_1){
	.schema = "onnx.ArgMin.1(Tensor data, *, int axis=0, bool keepdims=True, bool "
		  "select_last_index=False) -> Tensor",
	.build_as = {arg_extreme, false},
	.no_sample = NODE_TESTS,
};

static Node build_top_k(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	return x.i ? b_sort_first(b, x, onnx_axis(b, n, "axis", x), node_bool(b->g, n, "largest"),
				  node_sym(b->g, n, "K"))
		   : x;
}

OP(onnx_TopK_1){
	.schema = "onnx.TopK.1(Tensor X, SymInt K, *, int axis=-1, bool largest=True, bool "
		  "sorted=True) -> (Tensor, Tensor)",
	.build = build_top_k,
	.no_sample = NODE_TESTS,
};

/* ---- softmax ---- */

/* Returns 1 at the first of the greatest elements, else 0. */
static Node hardmax(Build *b, Node x, uint32_t axis)
{
	if (!x.i || !node_rank(b->g, x)) /* onnx_axis has said so */
		return (Node){0};
	Shape s = aten_shape(b, x);
	Node at = b_unsqueeze(b, b_arg_reduce(b, true, x, axis), (int)axis);
	return b_convert(b, b_bin(b, OP_eq, at, aten_iota_dim(b, &s, axis, DT_i64)),
			 node_dtype(b->g, x));
}

enum { SOFTMAX, LOG_SOFTMAX, HARDMAX };

static Node softmax_along(Build *b, Node x, uint32_t axis, int kind)
{
	return kind == HARDMAX   ? hardmax(b, x, axis)
	       : kind == SOFTMAX ? aten_softmax(b, x, axis)
				 : aten_log_softmax(b, x, axis);
}

/* Computes a softmax as before opset 13: all dimensions from the axis on are one. */
static Node flat_softmax(Build *b, Node n, int kind)
{
	Node x = arg(b, n, "input");
	uint32_t rank = aten_rank(b, x);
	int64_t axis = aten_int(b, n, "axis");
	axis += axis < 0 ? rank : 0;
	if (axis < 0 || axis > rank)
		return b_error(b, "axis %lld of a tensor of rank %u", (long long)axis, rank);
	Shape s = aten_shape(b, x), flat = {2, {b_int(b, 1), b_int(b, 1)}};
	for (uint32_t k = 0; k < rank; k++)
		flat.dim[k >= axis] = sym_mul(b_syms(b), flat.dim[k >= axis], s.dim[k]);
	return aten_reshape(b, softmax_along(b, aten_reshape(b, x, &flat), 1, kind), &s);
}

static Node softmax(Build *b, Node n, int kind)
{
	Node x = arg(b, n, "input");
	return softmax_along(b, x, onnx_axis(b, n, "axis", x), kind);
}

OP(onnx_Softmax_1){
	.schema = "onnx.Softmax.1(Tensor input, *, int axis=1) -> Tensor",
	.build_as = {flat_softmax, SOFTMAX},
	.no_sample = NODE_TESTS,
};
OP(onnx_Softmax_13){
	.schema = "onnx.Softmax.13(Tensor input, *, int axis=-1) -> Tensor",
	.build_as = {softmax, SOFTMAX},
	.no_sample = NODE_TESTS,
};

OP(onnx_LogSoftmax_1){
	.schema = "onnx.LogSoftmax.1(Tensor input, *, int axis=1) -> Tensor",
	.build_as = {flat_softmax, LOG_SOFTMAX},
	.no_sample = NODE_TESTS,
};
OP(onnx_LogSoftmax_13){
	.schema = "onnx.LogSoftmax.13(Tensor input, *, int axis=-1) -> Tensor",
	.build_as = {softmax, LOG_SOFTMAX},
	.no_sample = NODE_TESTS,
};

OP(onnx_Hardmax_1){
	.schema = "onnx.Hardmax.1(Tensor input, *, int axis=1) -> Tensor",
	.build_as = {flat_softmax, HARDMAX},
	.no_sample = NODE_TESTS,
};
OP(onnx_Hardmax_13){
	.schema = "onnx.Hardmax.13(Tensor input, *, int axis=-1) -> Tensor",
	.build_as = {softmax, HARDMAX},
	.no_sample = NODE_TESTS,
};

/* ---- running ---- */

/* Combines each element with those before it; exclusive: those before it alone. */
static Node running(Build *b, Node n, int combine)
{
	const bool sum = combine == REDUCE_SUM;
	Node x = arg(b, n, "x");
	uint32_t axis = onnx_axis(b, n, "axis", x), rank = aten_rank(b, x);
	bool reverse = node_bool(b->g, n, "reverse");
	if (!x.i)
		return x;
	Node y = b_cumulative(b, sum ? "sum" : "prod", x, axis, reverse);
	if (!node_bool(b->g, n, "exclusive"))
		return y;
	Sym low[MAX_RANK], high[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++)
		low[k] = high[k] = b_int(b, 0);
	low[axis] = b_int(b, reverse ? -1 : 1);
	high[axis] = b_int(b, reverse ? 1 : -1);
	return b_pad(b, y, low, high, aten_like(b, x, !sum));
}

OP(onnx_CumSum_11){
	.schema = "onnx.CumSum.11(Tensor x, int axis, *, bool exclusive=False, bool reverse=False) "
		  "-> Tensor",
	.autocast = AUTOCAST_F32,
	.build_as = {running, REDUCE_SUM},
	.no_sample = NODE_TESTS,
};
OP(onnx_CumProd_26){
	.schema = "onnx.CumProd.26(Tensor x, int axis, *, bool exclusive=False, bool "
		  "reverse=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build_as = {running, REDUCE_PROD},
	.no_sample = NODE_TESTS,
};
