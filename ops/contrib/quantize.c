/* Quantised operators: of ONNX's QLinear family what ONNX does not have. */
#include "ops/contrib/priv.h"

Node contrib_dequantised(Build *b, Node x, Node scale, Node zero)
{
	Node v = zero.i ? b_bin(b, OP_sub, b_convert(b, x, DT_i32), b_convert(b, zero, DT_i32)) : x;
	return b_bin(b, OP_mul, b_convert(b, v, DT_f32), aten_wide(b, scale));
}

Node contrib_quantised(Build *b, Node v, Node scale, Node zero, DType d)
{
	int64_t low, high;
	dtype_limits(d, &low, &high);
	v = b_un(b, OP_round, b_bin(b, OP_div, v, aten_wide(b, scale)));
	if (zero.i)
		v = b_bin(b, OP_add, v, b_convert(b, zero, DT_f32));
	v = b_bin_scalar(b, OP_minimum, b_bin_scalar(b, OP_maximum, v, (double)low), (double)high);
	return v.i ? b_convert(b, v, d) : v;
}

/* Returns one number, which the file may hold with a dimension. */
static Node number(Build *b, Node v)
{
	return v.i ? b_reshape(b, v, 0, NULL) : v;
}

static Node dequantised(Build *b, Node n, const char *x, const char *scale, const char *zero)
{
	Node zero_point = number(b, arg(b, n, zero));
	return contrib_dequantised(b, arg(b, n, x), number(b, arg(b, n, scale)), zero_point);
}

static Node quantised(Build *b, Node n, Node v, const char *scale, const char *zero,
		      const char *like)
{
	Node zero_point = number(b, arg(b, n, zero));
	return contrib_quantised(b, v, number(b, arg(b, n, scale)), zero_point,
				 aten_dtype(b, arg(b, n, like)));
}

/* ---- element by element ---- */

static Node build_binary(Build *b, Node n, int op)
{
	Node x = dequantised(b, n, "A", "A_scale", "A_zero_point"),
	     y = dequantised(b, n, "B", "B_scale", "B_zero_point");
	return quantised(b, n, b_bin(b, (Op)op, x, y), "C_scale", "C_zero_point", "A");
}


OP(com_microsoft_QLinearAdd_1){
	.schema = "com_microsoft.QLinearAdd.1(Tensor A, Tensor A_scale, Tensor? A_zero_point, "
		  "Tensor B, Tensor B_scale, Tensor? B_zero_point, Tensor C_scale, "
		  "Tensor? C_zero_point) -> Tensor",
	.build_as = {build_binary, OP_add},
	.no_sample = CONTRIB_CASES,
};
OP(com_microsoft_QLinearMul_1){
	.schema = "com_microsoft.QLinearMul.1(Tensor A, Tensor A_scale, Tensor? A_zero_point, "
		  "Tensor B, Tensor B_scale, Tensor? B_zero_point, Tensor C_scale, "
		  "Tensor? C_zero_point) -> Tensor",
	.build_as = {build_binary, OP_mul},
	.no_sample = CONTRIB_CASES,
};

static Node build_leaky_relu(Build *b, Node n)
{
	Node x = dequantised(b, n, "X", "X_scale", "X_zero_point");
	x = b_select(b, b_bin_scalar(b, OP_ge, x, 0), x,
		     b_bin_scalar(b, OP_mul, x, node_float(b->g, n, "alpha")));
	return quantised(b, n, x, "Y_scale", "Y_zero_point", "X");
}

static Node build_sigmoid(Build *b, Node n)
{
	return quantised(b, n,
			 b_un(b, OP_sigmoid, dequantised(b, n, "X", "X_scale", "X_zero_point")),
			 "Y_scale", "Y_zero_point", "X");
}

OP(com_microsoft_QLinearLeakyRelu_1){
	.schema = "com_microsoft.QLinearLeakyRelu.1(Tensor X, Tensor X_scale, Tensor? "
		  "X_zero_point, Tensor Y_scale, Tensor? Y_zero_point, *, "
		  "float alpha=0.01) -> Tensor",
	.build = build_leaky_relu,
	.no_sample = CONTRIB_CASES,
};
OP(com_microsoft_QLinearSigmoid_1){
	.schema = "com_microsoft.QLinearSigmoid.1(Tensor X, Tensor X_scale, Tensor? X_zero_point, "
		  "Tensor Y_scale, Tensor? Y_zero_point) -> Tensor",
	.build = build_sigmoid,
	.no_sample = CONTRIB_CASES,
};

static Node build_where(Build *b, Node n)
{
	Node x = dequantised(b, n, "X", "x_scale", "x_zero_point"),
	     y = dequantised(b, n, "Y", "y_scale", "y_zero_point");
	return quantised(b, n, b_select(b, arg(b, n, "condition"), x, y), "z_scale", "z_zero_point",
			 "X");
}

OP(com_microsoft_QLinearWhere_1){
	.schema = "com_microsoft.QLinearWhere.1(Tensor condition, Tensor X, Tensor x_scale, Tensor "
		  "x_zero_point, Tensor Y, Tensor y_scale, Tensor y_zero_point, Tensor z_scale, "
		  "Tensor z_zero_point) -> Tensor",
	.build = build_where,
	.no_sample = CONTRIB_CASES,
};

/* ---- along dimensions ---- */

/* Normalises, before opset 13, over all dimensions from the axis on. */
static Node build_softmax(Build *b, Node n)
{
	Node x = dequantised(b, n, "X", "X_scale", "x_zero_point");
	uint32_t axis = onnx_axis(b, n, "axis", x), rank = aten_rank(b, x);
	Shape s = aten_shape(b, x);
	if (!x.i)
		return x;
	if (aten_int(b, n, "opset") < 13)
		x = aten_reshape(b, aten_softmax(b, aten_flatten(b, x, axis, rank - 1), axis), &s);
	else
		x = aten_softmax(b, x, axis);
	return quantised(b, n, x, "y_scale", "y_zero_point", "X");
}

OP(com_microsoft_QLinearSoftmax_1){
	.schema = "com_microsoft.QLinearSoftmax.1(Tensor X, Tensor X_scale, Tensor? x_zero_point, "
		  "Tensor y_scale, Tensor y_zero_point, *, int axis=-1, int opset) -> Tensor",
	.build = build_softmax,
	.no_sample = CONTRIB_CASES,
};

static Node to_channels_first(Build *b, Node x)
{
	return aten_rank(b, x) > 2 ? aten_move_dim(b, x, aten_rank(b, x) - 1, 1) : x;
}

static Node to_channels_last(Build *b, Node x)
{
	return aten_rank(b, x) > 2 ? aten_move_dim(b, x, 1, aten_rank(b, x) - 1) : x;
}

static Node build_average_pool(Build *b, Node n)
{
	static const char *const names[] = {
		"kernel_shape", "auto_pad", "ceil_mode", "count_include_pad",
		"dilations",    "pads",     "strides"};
	Node x = dequantised(b, n, "X", "x_scale", "x_zero_point");
	bool last = node_bool(b->g, n, "channels_last");
	Op pool = op_find("onnx.AveragePool.1");
	Attr attr[MAX_ARGS] = {0};
	for (uint32_t k = 0; k < sizeof names / sizeof *names; k++)
		attr[op_arg_index(pool, names[k])] = op_arg_index(node_op(b->g, n), names[k]) >= 0
							     ? *node_attr(b->g, n, names[k])
							     : attr_none();
	x = last ? to_channels_first(b, x) : x;
	x = b_node(b, pool, &x, 1, attr, 1 + sizeof names / sizeof *names);
	return quantised(b, n, last ? to_channels_last(b, x) : x, "y_scale", "y_zero_point", "X");
}

OP(com_microsoft_QLinearAveragePool_1){
	.schema = "com_microsoft.QLinearAveragePool.1(Tensor X, Tensor x_scale, Tensor? "
		  "x_zero_point, Tensor y_scale, Tensor? y_zero_point, *, "
		  "int[] kernel_shape, str auto_pad=\"NOTSET\", bool ceil_mode=False, "
		  "bool channels_last=False, bool count_include_pad=False, int[]? pads=None, "
		  "int[]? strides=None) -> Tensor",
	.build = build_average_pool,
	.no_sample = CONTRIB_CASES,
};

static Node build_global_pool(Build *b, Node n)
{
	Node x = dequantised(b, n, "X", "x_scale", "x_zero_point");
	uint32_t rank = aten_rank(b, x), all = aten_dims_from(b, x, 2);
	if (!x.i || rank < 3)
		return b_error(b, "an operand of rank %u, expected 3 or more", rank);
	x = aten_mean(b, x, node_bool(b->g, n, "channels_last") ? all >> 1 : all, true);
	return quantised(b, n, x, "y_scale", "y_zero_point", "X");
}

OP(com_microsoft_QLinearGlobalAveragePool_1){
	.schema = "com_microsoft.QLinearGlobalAveragePool.1(Tensor X, Tensor x_scale, Tensor "
		  "x_zero_point, Tensor y_scale, Tensor y_zero_point, *, "
		  "bool channels_last=False) -> Tensor",
	.build = build_global_pool,
	.no_sample = CONTRIB_CASES,
};

/* Joins operands that are (tensor, scale, zero point), one behind the other. */
static Node build_concat(Build *b, Node n)
{
	uint32_t count;
	Node *in = onnx_list(b, n, "inputs", &count), zero = arg(b, n, "Y_zero_point");
	if (!count || count % 3)
		return b_error(b,
			       "%u operands, expected a tensor, a scale and a zero point of each",
			       count);
	for (uint32_t k = 0; k < count / 3; k++) {
		Node its_zero = number(b, in[3 * k + 2]), its_scale = number(b, in[3 * k + 1]);
		in[k] = contrib_dequantised(b, in[3 * k], its_scale, its_zero);
	}
	Node x = b_concat(b, in, count / 3, (int)onnx_axis(b, n, "axis", in[0]));
	zero = number(b, zero);
	return contrib_quantised(b, x, number(b, arg(b, n, "Y_scale")), zero, aten_dtype(b, zero));
}

OP(com_microsoft_QLinearConcat_1){
	.schema = "com_microsoft.QLinearConcat.1(Tensor Y_scale, Tensor Y_zero_point, Tensor[] "
		  "inputs, *, int axis) -> Tensor",
	.build = build_concat,
	.no_sample = CONTRIB_CASES,
};

static Node build_nhwc_max_pool(Build *b, Node n)
{
	static const char *const names[] = {"kernel_shape", "auto_pad", "ceil_mode",
					    "dilations",    "pads",     "strides"};
	Node x = to_channels_first(b, arg(b, n, "x"));
	Op pool = op_find("onnx.MaxPool.1");
	Attr attr[MAX_ARGS] = {0};
	for (uint32_t k = 0; k < sizeof names / sizeof *names; k++)
		attr[op_arg_index(pool, names[k])] = *node_attr(b->g, n, names[k]);
	attr[op_arg_index(pool, "outputs")] = attr_int(b->g->ir, 1);
	Node y = b_node(b, pool, &x, 1, attr, op_schema(pool)->narg);
	return y.i ? to_channels_last(b, node_is_tensor(b->g, y) ? y : b_get(b, y, 0)) : y;
}

OP(com_microsoft_NhwcMaxPool_1){
	.schema = "com_microsoft.NhwcMaxPool.1(Tensor x, *, int[] kernel_shape, str "
		  "auto_pad=\"NOTSET\", bool ceil_mode=False, int[]? dilations=None, "
		  "int[]? pads=None, int[]? strides=None) -> Tensor",
	.build = build_nhwc_max_pool,
	.no_sample = CONTRIB_CASES,
};

/* ---- products ---- */

Node contrib_integer_product(Build *b, Node x, Node x_scale, Node x_zero, Node y, Node y_scale,
			     Node y_zero, Node bias)
{
	Node r = b_convert(
		b, b_matmul(b, onnx_centred(b, x, x_zero, true), onnx_centred(b, y, y_zero, false)),
		DT_f32);
	if (aten_rank(b, x_scale) == 1 && !sym_is(b_syms(b), b_dim(b, x_scale, 0), 1))
		x_scale = b_unsqueeze(b, x_scale, -1);
	r = b_bin(b, OP_mul, r, b_bin(b, OP_mul, x_scale, y_scale));
	return bias.i ? b_bin(b, OP_add, r, bias) : r;
}

static Node build_integer_to_float(Build *b, Node n)
{
	return contrib_integer_product(
		b, arg(b, n, "A"), arg(b, n, "a_scale"), arg(b, n, "a_zero_point"), arg(b, n, "B"),
		arg(b, n, "b_scale"), arg(b, n, "b_zero_point"), arg(b, n, "bias"));
}

OP(com_microsoft_MatMulIntegerToFloat_1){
	.schema = "com_microsoft.MatMulIntegerToFloat.1(Tensor A, Tensor B, Tensor a_scale, Tensor "
		  "b_scale, Tensor? a_zero_point, Tensor? b_zero_point, Tensor? bias) -> Tensor",
	.build = build_integer_to_float,
	.no_sample = CONTRIB_CASES,
};

static Node build_dynamic_matmul(Build *b, Node n)
{
	Node q =
		onnx_call(b, "onnx.DynamicQuantizeLinear.11", (Node[]){arg(b, n, "A")}, 1, NULL, 0);
	if (!q.i)
		return q;
	Node zero = b_get(b, q, 2), scale = b_get(b, q, 1), x = b_get(b, q, 0);
	return contrib_integer_product(b, x, scale, zero, arg(b, n, "B"), arg(b, n, "b_scale"),
				       arg(b, n, "b_zero_point"), arg(b, n, "bias"));
}

OP(com_microsoft_DynamicQuantizeMatMul_1){
	.schema = "com_microsoft.DynamicQuantizeMatMul.1(Tensor A, Tensor B, Tensor b_scale, "
		  "Tensor? b_zero_point, Tensor? bias) -> Tensor",
	.build = build_dynamic_matmul,
	.no_sample = CONTRIB_CASES,
};

/* Multiplies A by B; C has the scale a_scale * b_scale. Without y_scale the result is not
 * quantised. */
static Node build_qgemm(Build *b, Node n)
{
	Node x = onnx_centred(b, arg(b, n, "A"), number(b, arg(b, n, "a_zero_point")), false),
	     y = arg(b, n, "B"), zero = arg(b, n, "b_zero_point"), c = arg(b, n, "C");
	Node y_scale = arg(b, n, "y_scale"), y_zero = arg(b, n, "y_zero_point");
	double alpha = node_float(b->g, n, "alpha");
	if (aten_rank(b, x) != 2 || aten_rank(b, y) != 2)
		return b_error(b, "operands of rank %u and %u, expected matrices", aten_rank(b, x),
			       aten_rank(b, y));
	x = node_bool(b->g, n, "transA") ? b_transpose(b, x, 0, 1) : x;
	y = onnx_centred(b, node_bool(b->g, n, "transB") ? b_transpose(b, y, 0, 1) : y, zero,
			 false);
	Node r = b_matmul(b, x, y);
	if (c.i)
		r = b_bin(b, OP_add, r, c);
	Node scale = b_bin(b, OP_mul, number(b, arg(b, n, "a_scale")), arg(b, n, "b_scale"));
	scale = alpha == 1 ? scale : b_bin_scalar(b, OP_mul, scale, alpha);
	r = b_bin(b, OP_mul, b_convert(b, r, DT_f32), scale);
	if (!y_scale.i)
		return r;
	y_zero = number(b, y_zero);
	return contrib_quantised(b, r, number(b, y_scale), y_zero, aten_dtype(b, y_zero));
}

OP(com_microsoft_QGemm_1){
	.schema = "com_microsoft.QGemm.1(Tensor A, Tensor a_scale, Tensor a_zero_point, Tensor B, "
		  "Tensor b_scale, Tensor b_zero_point, Tensor? C, Tensor? y_scale, "
		  "Tensor? y_zero_point, *, float alpha=1.0, int transA=0, int transB=0) -> Tensor",
	.build = build_qgemm,
	.no_sample = CONTRIB_CASES,
};

/* ---- conversions ---- */

/* Returns v as one number, or one for each position along dimension dim of x. */
static Node for_dim(Build *b, Node v, Node x, uint32_t dim)
{
	if (!v.i || !x.i || sym_is(b_syms(b), type_numel(b->g->ir, node_type_id(b->g, v)), 1))
		return number(b, v);
	return aten_per_dim(b, v, x, dim);
}

/* Returns v for the axis of the node; one that no node names is 1, as in ONNX. */
static Node along(Build *b, Node n, Node v, Node x)
{
	return for_dim(b, v, x, aten_has(b, n, "axis") ? onnx_axis(b, n, "axis", x) : 1);
}

static Node build_quantize(Build *b, Node n)
{
	Node x = arg(b, n, "x"), zero = arg(b, n, "y_zero_point");
	zero = along(b, n, zero, x);
	Node scale = along(b, n, arg(b, n, "y_scale"), x);
	return contrib_quantised(b, aten_wide(b, x), scale, zero,
				 zero.i ? aten_dtype(b, zero) : DT_u8);
}

static Node build_dequantize(Build *b, Node n)
{
	Node x = arg(b, n, "x"), scale = arg(b, n, "x_scale");
	Node zero = along(b, n, arg(b, n, "x_zero_point"), x);
	Node v = contrib_dequantised(b, x, along(b, n, scale, x), zero);
	return v.i ? b_convert(b, v, aten_dtype(b, scale)) : v;
}

OP(com_microsoft_QuantizeLinear_1){
	.schema = "com_microsoft.QuantizeLinear.1(Tensor x, Tensor y_scale, Tensor? y_zero_point, "
		  "*, int? axis=None) -> Tensor",
	.build = build_quantize,
	.no_sample = CONTRIB_CASES,
};
OP(com_microsoft_DequantizeLinear_1){
	.schema = "com_microsoft.DequantizeLinear.1(Tensor x, Tensor x_scale, Tensor? "
		  "x_zero_point, *, int? axis=None) -> Tensor",
	.build = build_dequantize,
	.no_sample = CONTRIB_CASES,
};

static Node build_qlinear_conv(Build *b, Node n)
{
	bool last = node_bool(b->g, n, "channels_last");
	Node x = onnx_centred(b, arg(b, n, "x"), number(b, arg(b, n, "x_zero_point")), false),
	     w = arg(b, n, "w"), zero = arg(b, n, "y_zero_point");
	w = onnx_centred(b, w, for_dim(b, arg(b, n, "w_zero_point"), w, 0), false);
	Node y = b_convert(
		b, onnx_conv(b, n, last ? to_channels_first(b, x) : x, w, arg(b, n, "B")), DT_f32);
	y = b_bin(b, OP_mul, y,
		  b_bin(b, OP_mul, number(b, arg(b, n, "x_scale")),
			for_dim(b, arg(b, n, "w_scale"), y, 1)));
	zero = number(b, zero);
	Node scale = number(b, arg(b, n, "y_scale"));
	return contrib_quantised(b, last ? to_channels_last(b, y) : y, scale, zero,
				 aten_dtype(b, zero));
}

OP(com_microsoft_QLinearConv_1){
	.schema = "com_microsoft.QLinearConv.1(Tensor x, Tensor x_scale, Tensor x_zero_point, "
		  "Tensor w, Tensor w_scale, Tensor w_zero_point, Tensor y_scale, "
		  "Tensor y_zero_point, Tensor? B, *, str auto_pad=\"NOTSET\", "
		  "bool channels_last=False, int[]? dilations=None, int group=1, "
		  "int[]? kernel_shape=None, int[]? pads=None, int[]? strides=None) -> Tensor",
	.build = build_qlinear_conv,
	.no_sample = CONTRIB_CASES,
};
