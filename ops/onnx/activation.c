/* Activations and clipping. */
#include "ops/onnx/priv.h"

OP(onnx_LeakyRelu_1){
	.schema = "onnx.LeakyRelu.1(Tensor X, *, float alpha=0.01) -> Tensor",
	.expand = "select(lt(X, 0), X * alpha, X)",
	.deriv = {"select(gt(X, 0), 1, alpha)"}, /* PyTorch's at 0, here and below */
	.no_sample = NODE_TESTS,
};
OP(onnx_PRelu_7){
	.schema = "onnx.PRelu.7(Tensor X, Tensor slope) -> Tensor",
	.expand = "select(lt(X, 0), X * slope, X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Elu_1){
	.schema = "onnx.Elu.1(Tensor X, *, float alpha=1.0) -> Tensor",
	.expand = "select(lt(X, 0), expm1(X) * alpha, X)",
	.deriv = {"select(gt(X, 0), 1, alpha * exp(select(ge(X, 0), 0, X)))"},
	.no_sample = NODE_TESTS,
};
OP(onnx_Celu_12){
	.schema = "onnx.Celu.12(Tensor X, *, float alpha=1.0) -> Tensor",
	.expand = "maximum(X, 0) + minimum(expm1(X / alpha) * alpha, 0)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Selu_1){
	.schema = "onnx.Selu.1(Tensor X, *, float alpha=1.67326319217681884765625, float "
		  "gamma=1.05070102214813232421875) -> Tensor",
	.expand = "select(gt(X, 0), X, expm1(X) * alpha) * gamma",
	.no_sample = NODE_TESTS,
};
OP(onnx_ThresholdedRelu_10){
	.schema = "onnx.ThresholdedRelu.10(Tensor X, *, float alpha=1.0) -> Tensor",
	.expand = "select(gt(X, alpha), X, 0)",
	.no_sample = NODE_TESTS,
};
OP(onnx_HardSigmoid_1){
	.schema = "onnx.HardSigmoid.1(Tensor X, *, float alpha=0.2, float beta=0.5) -> Tensor",
	.expand = "maximum(minimum(X * alpha + beta, 1), 0)",
	.deriv = {"select(gt(y, 0), select(lt(y, 1), alpha, 0), 0)"},
	.no_sample = NODE_TESTS,
};
OP(onnx_Shrink_9){
	.schema = "onnx.Shrink.9(Tensor input, *, float bias=0.0, float lambd=0.5) -> Tensor",
	.expand = "select(lt(input, -lambd), input + bias, select(gt(input, lambd), input - bias, "
		  "0))",
	.no_sample = NODE_TESTS,
};
OP(onnx_Swish_24){
	.schema = "onnx.Swish.24(Tensor X, *, float alpha=1.0) -> Tensor",
	.expand = "X * sigmoid(X * alpha)",
	.no_sample = NODE_TESTS,
};

static Node build_gelu(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	if (!aten_check_word(b, n, "approximate", "none tanh"))
		return (Node){0};
	return onnx_call(b, "aten.gelu", &x, 1,
			 (Attr[]){attr_none(), *node_attr(b->g, n, "approximate")}, 2);
}

OP(onnx_Gelu_20){
	.schema = "onnx.Gelu.20(Tensor X, *, str approximate=\"none\") -> Tensor",
	.build = build_gelu,
	.no_sample = NODE_TESTS,
};

/* Returns min(max(x, low), high), so that `high` wins; an absent bound, and NaN in x, are kept. */
static Node build_clip(Build *b, Node n)
{
	Node x = arg(b, n, "input"), low = arg(b, n, "min"), high = arg(b, n, "max");
	Attr bound[] = {attr_none(), attr_none(), attr_none()};
	bool numbers =
		(!low.i || b_splat(b, low, &bound[1])) && (!high.i || b_splat(b, high, &bound[2]));
	if (numbers && (low.i || high.i)) /* with PyTorch's derivative at the bounds */
		return onnx_call(b, "aten.clamp", &x, 1, bound, 3);
	if (low.i)
		x = b_bin(b, OP_maximum, x, low);
	if (high.i)
		x = b_bin(b, OP_minimum, x, high);
	return x;
}

OP(onnx_Clip_1){
	.schema = "onnx.Clip.1(Tensor input, Tensor? min, Tensor? max) -> Tensor",
	.build = build_clip,
	.no_sample = NODE_TESTS,
};

static Node build_is_inf(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	bool low = node_bool(b->g, n, "detect_negative"),
	     high = node_bool(b->g, n, "detect_positive");
	Shape s = aten_shape(b, x);
	if (!low && !high)
		return b_full(b, DT_bool, 0, s.rank, s.dim);
	return onnx_call(b,
			 low && high ? "aten.isinf"
			 : low       ? "aten.isneginf"
				     : "aten.isposinf",
			 &x, 1, NULL, 0);
}

OP(onnx_IsInf_10){
	.schema = "onnx.IsInf.10(Tensor X, *, bool detect_negative=True, bool "
		  "detect_positive=True) -> Tensor",
	.build = build_is_inf,
	.no_sample = NODE_TESTS,
};

OP(onnx_Where_9){
	.schema = "onnx.Where.9(Tensor condition, Tensor X, Tensor Y) -> Tensor",
	.expand = "select(condition, X, Y)",
	.no_sample = NODE_TESTS,
};

/* ---- any number of operands ---- */

static Node build_list(Build *b, Node n, int op)
{
	uint32_t first, count = node_args(b->g, n, "data", &first);
	if (!count)
		return b_error(b, "no operand, expected one at least");
	Node y = node_in(b->g, n, first);
	for (uint32_t k = 1; k < count; k++)
		y = b_bin(b, (Op)op, y, node_in(b->g, n, first + k));
	return y;
}

static Node build_mean(Build *b, Node n)
{
	uint32_t first, count = node_args(b->g, n, "data", &first);
	Node y = build_list(b, n, OP_add);
	return y.i ? b_bin_scalar(b, OP_div, y, count) : y;
}

OP(onnx_Max_1){
	.schema = "onnx.Max.1(Tensor[] data) -> Tensor",
	.build_as = {build_list, OP_maximum},
	.no_sample = NODE_TESTS,
};
OP(onnx_Min_1){
	.schema = "onnx.Min.1(Tensor[] data) -> Tensor",
	.build_as = {build_list, OP_minimum},
	.no_sample = NODE_TESTS,
};
OP(onnx_Sum_1){
	.schema = "onnx.Sum.1(Tensor[] data) -> Tensor",
	.build_as = {build_list, OP_add},
	.no_sample = NODE_TESTS,
};
OP(onnx_Mean_1){
	.schema = "onnx.Mean.1(Tensor[] data) -> Tensor",
	.build = build_mean,
	.no_sample = NODE_TESTS,
};
