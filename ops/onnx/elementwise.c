/* Element-wise operators with one operand or two, and comparisons. */
#include "ops/onnx/priv.h"

OP(onnx_Abs_1){
	.schema = "onnx.Abs.1(Tensor X) -> Tensor",
	.expand = "abs(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Neg_1){
	.schema = "onnx.Neg.1(Tensor X) -> Tensor",
	.expand = "neg(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Exp_1){
	.schema = "onnx.Exp.1(Tensor X) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expand = "exp(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Log_1){
	.schema = "onnx.Log.1(Tensor X) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expand = "log(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Sqrt_1){
	.schema = "onnx.Sqrt.1(Tensor X) -> Tensor",
	.expand = "sqrt(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Reciprocal_1){
	.schema = "onnx.Reciprocal.1(Tensor X) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expand = "reciprocal(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Floor_1){
	.schema = "onnx.Floor.1(Tensor X) -> Tensor",
	.expand = "floor(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Ceil_1){
	.schema = "onnx.Ceil.1(Tensor X) -> Tensor",
	.expand = "ceil(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Round_11){
	.schema = "onnx.Round.11(Tensor X) -> Tensor",
	.expand = "round(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Sign_9){
	.schema = "onnx.Sign.9(Tensor X) -> Tensor",
	.expand = "sign(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Erf_9){
	.schema = "onnx.Erf.9(Tensor X) -> Tensor",
	.expand = "erf(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_IsNaN_9){
	.schema = "onnx.IsNaN.9(Tensor X) -> Tensor",
	.expand = "isnan(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Sin_7){
	.schema = "onnx.Sin.7(Tensor X) -> Tensor",
	.expand = "sin(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Cos_7){
	.schema = "onnx.Cos.7(Tensor X) -> Tensor",
	.expand = "cos(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Tan_7){
	.schema = "onnx.Tan.7(Tensor X) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expand = "tan(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Asin_7){
	.schema = "onnx.Asin.7(Tensor X) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expand = "asin(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Acos_7){
	.schema = "onnx.Acos.7(Tensor X) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expand = "acos(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Atan_7){
	.schema = "onnx.Atan.7(Tensor X) -> Tensor",
	.expand = "atan(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Sinh_9){
	.schema = "onnx.Sinh.9(Tensor X) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expand = "sinh(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Cosh_9){
	.schema = "onnx.Cosh.9(Tensor X) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expand = "cosh(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Tanh_1){
	.schema = "onnx.Tanh.1(Tensor X) -> Tensor",
	.expand = "tanh(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Asinh_9){
	.schema = "onnx.Asinh.9(Tensor X) -> Tensor",
	.expand = "asinh(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Acosh_9){
	.schema = "onnx.Acosh.9(Tensor X) -> Tensor",
	.expand = "acosh(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Atanh_9){
	.schema = "onnx.Atanh.9(Tensor X) -> Tensor",
	.expand = "atanh(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Sigmoid_1){
	.schema = "onnx.Sigmoid.1(Tensor X) -> Tensor",
	.expand = "sigmoid(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Relu_1){
	.schema = "onnx.Relu.1(Tensor X) -> Tensor",
	.expand = "relu(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Not_1){
	.schema = "onnx.Not.1(Tensor X) -> Tensor",
	.expand = "logical_not(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_BitwiseNot_18){
	.schema = "onnx.BitwiseNot.18(Tensor X) -> Tensor",
	.expand = "bitwise_not(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Softsign_1){
	.schema = "onnx.Softsign.1(Tensor X) -> Tensor",
	.expand = "X / (1 + abs(X))",
	.no_sample = NODE_TESTS,
};
OP(onnx_Softplus_1){
	.schema = "onnx.Softplus.1(Tensor X) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expand = "softplus(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_HardSwish_14){
	.schema = "onnx.HardSwish.14(Tensor X) -> Tensor",
	.expand = "hardswish(X)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Mish_18){
	.schema = "onnx.Mish.18(Tensor X) -> Tensor",
	.expand = "mish(X)",
	.no_sample = NODE_TESTS,
};

/* ---- two operands ---- */

OP(onnx_Add_7){
	.schema = "onnx.Add.7(Tensor A, Tensor B) -> Tensor",
	.expand = "add(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Sub_7){
	.schema = "onnx.Sub.7(Tensor A, Tensor B) -> Tensor",
	.expand = "sub(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Mul_7){
	.schema = "onnx.Mul.7(Tensor A, Tensor B) -> Tensor",
	.expand = "mul(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Equal_7){
	.schema = "onnx.Equal.7(Tensor A, Tensor B) -> Tensor",
	.expand = "eq(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Greater_7){
	.schema = "onnx.Greater.7(Tensor A, Tensor B) -> Tensor",
	.expand = "gt(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_GreaterOrEqual_12){
	.schema = "onnx.GreaterOrEqual.12(Tensor A, Tensor B) -> Tensor",
	.expand = "ge(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Less_7){
	.schema = "onnx.Less.7(Tensor A, Tensor B) -> Tensor",
	.expand = "lt(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_LessOrEqual_12){
	.schema = "onnx.LessOrEqual.12(Tensor A, Tensor B) -> Tensor",
	.expand = "le(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_And_7){
	.schema = "onnx.And.7(Tensor A, Tensor B) -> Tensor",
	.expand = "logical_and(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Or_7){
	.schema = "onnx.Or.7(Tensor A, Tensor B) -> Tensor",
	.expand = "logical_or(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_Xor_7){
	.schema = "onnx.Xor.7(Tensor A, Tensor B) -> Tensor",
	.expand = "logical_xor(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_BitwiseAnd_18){
	.schema = "onnx.BitwiseAnd.18(Tensor A, Tensor B) -> Tensor",
	.expand = "bitwise_and.Tensor(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_BitwiseOr_18){
	.schema = "onnx.BitwiseOr.18(Tensor A, Tensor B) -> Tensor",
	.expand = "bitwise_or.Tensor(A, B)",
	.no_sample = NODE_TESTS,
};
OP(onnx_BitwiseXor_18){
	.schema = "onnx.BitwiseXor.18(Tensor A, Tensor B) -> Tensor",
	.expand = "bitwise_xor.Tensor(A, B)",
	.no_sample = NODE_TESTS,
};

/* Divides integers with truncation. */
static Node build_div(Build *b, Node n)
{
	Node in[] = {arg(b, n, "A"), arg(b, n, "B")};
	if (!dtype_is_int(aten_dtype(b, in[0])))
		return b_bin(b, OP_div, in[0], in[1]);
	Attr attr[] = {attr_none(), attr_none(), attr_str(b->g->ir, "trunc")};
	return onnx_call(b, "aten.div.Tensor_mode", in, 2, attr, 3);
}

OP(onnx_Div_7){
	.schema = "onnx.Div.7(Tensor A, Tensor B) -> Tensor",
	.build = build_div,
	.no_sample = NODE_TESTS,
};

static Node build_mod(Build *b, Node n)
{
	return b_bin(b, node_bool(b->g, n, "fmod") ? OP_fmod : OP_remainder, arg(b, n, "A"),
		     arg(b, n, "B"));
}

OP(onnx_Mod_10){
	.schema = "onnx.Mod.10(Tensor A, Tensor B, *, bool fmod=False) -> Tensor",
	.build = build_mod,
	.no_sample = NODE_TESTS,
};

/* Returns the power in the dtype of the base, computed in the common one. */
static Node build_pow(Build *b, Node n)
{
	Node in[] = {arg(b, n, "X"), arg(b, n, "Y")};
	Node y = onnx_call(b, "aten.pow.Tensor_Tensor", in, 2, NULL, 0);
	return y.i ? b_convert(b, y, node_dtype(b->g, in[0])) : y;
}

OP(onnx_Pow_7){
	.schema = "onnx.Pow.7(Tensor X, Tensor Y) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_pow,
	.no_sample = NODE_TESTS,
};

static Node build_bit_shift(Build *b, Node n)
{
	if (!aten_check_word(b, n, "direction", "LEFT RIGHT"))
		return (Node){0};
	return b_bin(b, aten_is(b, n, "direction", "LEFT") ? OP_shift_left : OP_shift_right,
		     arg(b, n, "X"), arg(b, n, "Y"));
}

OP(onnx_BitShift_11){
	.schema = "onnx.BitShift.11(Tensor X, Tensor Y, *, str direction) -> Tensor",
	.build = build_bit_shift,
	.no_sample = NODE_TESTS,
};

/* Returns B as before opset 7: it is broadcast if `broadcast` is set, its dimensions from `axis`
 * on, the last ones without it. */
static Node legacy_operand(Build *b, Node n)
{
	Node x = arg(b, n, "A"), y = arg(b, n, "B");
	if (!x.i || !y.i || !aten_has(b, n, "axis"))
		return y;
	uint32_t axis = onnx_axis(b, n, "axis", x), rank = node_rank(b->g, y),
		 total = node_rank(b->g, x);
	if (axis + rank > total)
		return b_error(b, "axis %u for an operand of rank %u beside one of rank %u", axis,
			       rank, total);
	for (uint32_t k = axis + rank; k < total; k++)
		y = b_unsqueeze(b, y, -1);
	return y;
}

static Node legacy(Build *b, Node n, int op)
{
	return b_bin(b, (Op)op, arg(b, n, "A"), legacy_operand(b, n));
}

static Node legacy_logical(Build *b, Node n, int op)
{
	const char *name = op == OP_bit_and  ? "aten.logical_and"
			   : op == OP_bit_or ? "aten.logical_or"
					     : "aten.logical_xor";
	Node x = arg(b, n, "A"), y = legacy_operand(b, n);
	return onnx_call(b, name, (Node[]){x, y}, 2, NULL, 0);
}

OP(onnx_Add_1){
	.schema = "onnx.Add.1(Tensor A, Tensor B, *, int? axis=None, bool broadcast=False) -> "
		  "Tensor",
	.build_as = {legacy, OP_add},
	.no_sample = NODE_TESTS,
};

OP(onnx_Sub_1){
	.schema = "onnx.Sub.1(Tensor A, Tensor B, *, int? axis=None, bool broadcast=False) -> "
		  "Tensor",
	.build_as = {legacy, OP_sub},
	.no_sample = NODE_TESTS,
};

OP(onnx_Mul_1){
	.schema = "onnx.Mul.1(Tensor A, Tensor B, *, int? axis=None, bool broadcast=False) -> "
		  "Tensor",
	.build_as = {legacy, OP_mul},
	.no_sample = NODE_TESTS,
};

OP(onnx_Div_1){
	.schema = "onnx.Div.1(Tensor A, Tensor B, *, int? axis=None, bool broadcast=False) -> "
		  "Tensor",
	.build_as = {legacy, OP_div},
	.no_sample = NODE_TESTS,
};

OP(onnx_Pow_1){
	.schema = "onnx.Pow.1(Tensor A, Tensor B, *, int? axis=None, bool broadcast=False) -> "
		  "Tensor",
	.autocast = AUTOCAST_F32,
	.build_as = {legacy, OP_pow},
	.no_sample = NODE_TESTS,
};

OP(onnx_And_1){
	.schema = "onnx.And.1(Tensor A, Tensor B, *, int? axis=None, bool broadcast=False) -> "
		  "Tensor",
	.build_as = {legacy_logical, OP_bit_and},
	.no_sample = NODE_TESTS,
};

OP(onnx_Or_1){
	.schema = "onnx.Or.1(Tensor A, Tensor B, *, int? axis=None, bool broadcast=False) -> "
		  "Tensor",
	.build_as = {legacy_logical, OP_bit_or},
	.no_sample = NODE_TESTS,
};

OP(onnx_Xor_1){
	.schema = "onnx.Xor.1(Tensor A, Tensor B, *, int? axis=None, bool broadcast=False) -> "
		  "Tensor",
	.build_as = {legacy_logical, OP_bit_xor},
	.no_sample = NODE_TESTS,
};

OP(onnx_Equal_1){
	.schema = "onnx.Equal.1(Tensor A, Tensor B, *, int? axis=None, bool broadcast=False) -> "
		  "Tensor",
	.build_as = {legacy, OP_eq},
	.no_sample = NODE_TESTS,
};

OP(onnx_Less_1){
	.schema = "onnx.Less.1(Tensor A, Tensor B, *, int? axis=None, bool broadcast=False) -> "
		  "Tensor",
	.build_as = {legacy, OP_lt},
	.no_sample = NODE_TESTS,
};

OP(onnx_Greater_1){
	.schema = "onnx.Greater.1(Tensor A, Tensor B, *, int? axis=None, bool broadcast=False) -> "
		  "Tensor",
	.build_as = {legacy, OP_gt},
	.no_sample = NODE_TESTS,
};
