/* Activations with what stands before them. */
#include <string.h>

#include "ops/contrib/priv.h"

OP(com_microsoft_Gelu_1){
	.schema = "com_microsoft.Gelu.1(Tensor X) -> Tensor",
	.expand = "gelu(X)",
	.no_sample = CONTRIB_CASES,
};
OP(com_microsoft_BiasGelu_1){
	.schema = "com_microsoft.BiasGelu.1(Tensor A, Tensor B) -> Tensor",
	.expand = "gelu(A + B)",
	.no_sample = CONTRIB_CASES,
};
OP(com_microsoft_QuickGelu_1){
	.schema = "com_microsoft.QuickGelu.1(Tensor X, *, float alpha=1.7020000219345093) -> "
		  "Tensor",
	.expand = "X * sigmoid(X * alpha)",
	.no_sample = CONTRIB_CASES,
};
OP(com_microsoft_BiasAdd_1){
	.schema = "com_microsoft.BiasAdd.1(Tensor X, Tensor bias, Tensor skip) -> Tensor",
	.expand = "X + bias + skip",
	.no_sample = CONTRIB_CASES,
};

static Node build_fast_gelu(Build *b, Node n)
{
	Node x = arg(b, n, "X"), bias = arg(b, n, "bias");
	if (bias.i)
		x = b_bin(b, OP_add, x, bias);
	return onnx_call(b, "aten.gelu", &x, 1, (Attr[]){attr_none(), attr_str(b->g->ir, "tanh")},
			 2);
}

OP(com_microsoft_FastGelu_1){
	.schema = "com_microsoft.FastGelu.1(Tensor X, Tensor? bias) -> Tensor",
	.build = build_fast_gelu,
	.no_sample = CONTRIB_CASES,
};

Node contrib_activation(Build *b, Node n, const char *name, Node x, double alpha, double beta)
{
	if (!aten_has(b, n, name) || aten_is(b, n, name, ""))
		return x;
	if (!aten_check_word(b, n, name, "Relu Sigmoid Tanh LeakyRelu HardSigmoid Clip"))
		return (Node){0};
	if (aten_is(b, n, name, "Relu"))
		return onnx_call(b, "aten.relu", &x, 1, NULL, 0);
	if (aten_is(b, n, name, "Sigmoid") || aten_is(b, n, name, "Tanh"))
		return b_un(b, aten_is(b, n, name, "Tanh") ? OP_tanh : OP_sigmoid, x);
	if (aten_is(b, n, name, "LeakyRelu"))
		return b_select(b, b_bin_scalar(b, OP_lt, x, 0), b_bin_scalar(b, OP_mul, x, alpha),
				x);
	bool clip = aten_is(b, n, name, "Clip");
	if (!clip)
		x = b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_mul, x, alpha), beta);
	return onnx_clamp(b, x, clip ? alpha : 0, clip ? beta : 1);
}
