/* Affine quantisation. */
#include "ops/onnx/common/window.h"
#include "ops/onnx/priv.h"

#include <math.h>

/* ---- scales and zero points ---- */

/* Returns v for x: one number, one for each position along the axis, or one for each block of
 * positions. */
static Node spread(Build *b, Node v, Node x, uint32_t axis, int64_t block)
{
	if (!v.i || !x.i)
		return (Node){0};
	if (block <= 0 && sym_is(b_syms(b), type_numel(b->g->ir, node_type_id(b->g, v)), 1))
		return b_reshape(b, v, 0, NULL);
	if (block <= 0)
		return aten_per_dim(b, v, x, axis);
	if (node_rank(b->g, v) != node_rank(b->g, x))
		return b_error(b, "blocks of a tensor of rank %u, expected rank %u",
			       node_rank(b->g, v), node_rank(b->g, x));
	Shape s = shape_insert(aten_shape(b, v), axis + 1, b_int(b, block));
	v = aten_flatten(b, aten_expand_shape(b, b_unsqueeze(b, v, (int)axis + 1), &s), axis,
			 axis + 1);
	return b_slice(b, v, (int)axis, b_int(b, 0), b_dim(b, x, (int)axis), b_int(b, 1));
}

/* Returns the axis, which one number needs not. */
static uint32_t axis_of(Build *b, Node n, Node x)
{
	int64_t axis = aten_int(b, n, "axis"), rank = aten_rank(b, x);
	axis += axis < 0 ? rank : 0;
	return axis >= 0 && axis < rank ? (uint32_t)axis : rank ? (uint32_t)rank - 1 : 0;
}

/* Gives the bounds of integers of a dtype, or of a data type of fewer bits that is kept in it. */
static void limits(DType d, int64_t elem, double *low, double *high)
{
	int64_t lo, hi;
	dtype_limits(d, &lo, &hi);
	*low = (double)lo;
	*high = (double)hi;
	if (elem == 21 || elem == 22 || elem == 25 || elem == 26) {
		double n = elem <= 22 ? 16 : 4;
		*low = elem == 22 || elem == 26 ? -n / 2 : 0;
		*high = *low + n - 1;
	}
}

/* Returns whole numbers v plus the zero point, within the bounds. */
static Node store(Build *b, Node v, Node zero, DType d, int64_t elem)
{
	double low, high;
	limits(d, elem, &low, &high);
	if (zero.i)
		v = b_bin(b, OP_add, v, b_convert(b, zero, aten_dtype(b, v)));
	v = b_bin_scalar(b, OP_minimum, b_bin_scalar(b, OP_maximum, v, low), high);
	return v.i ? b_convert(b, v, d) : v;
}

static Node build_quantize(Build *b, Node n)
{
	Node x = arg(b, n, "x"), scale = arg(b, n, "y_scale"), zero = arg(b, n, "y_zero_point");
	uint32_t axis = axis_of(b, n, x);
	int64_t block = aten_int(b, n, "block_size"),
		elem = zero.i ? aten_int(b, n, "elem2") : aten_int(b, n, "elem");
	DType d = zero.i ? aten_dtype(b, zero) : aten_dtype_or(b, n, "output_dtype", DT_u8);
	bool saturate = node_bool(b->g, n, "saturate");
	Node v = b_bin(b, OP_div, aten_wide(b, aten_to_float(b, x)),
		       aten_wide(b, spread(b, scale, x, axis, block)));
	if (dtype_is_float(d) || elem == 23) {
		if (zero.i)
			v = b_bin(b, OP_add, v,
				  b_convert(b, spread(b, zero, x, axis, block), aten_dtype(b, v)));
		return elem ? onnx_to_stored(b, v, elem, saturate, "up")
			    : onnx_to_f8(b, v, d, saturate);
	}
	zero = zero.i ? spread(b, zero, x, axis, block) : zero;
	return store(b, b_un(b, OP_round, v), zero, d, elem);
}

OP(onnx_QuantizeLinear_10){
	.schema = "onnx.QuantizeLinear.10(Tensor x, Tensor y_scale, Tensor? y_zero_point, *, int "
		  "axis=1, int block_size=0, ScalarType? output_dtype=None, int precision=0, "
		  "bool saturate=True, int elem=0, int elem2=0) -> Tensor",
	.build = build_quantize,
	.no_sample = NODE_TESTS,
};

static Node build_dequantize(Build *b, Node n)
{
	Node x = arg(b, n, "x"), scale = arg(b, n, "x_scale"), zero = arg(b, n, "x_zero_point");
	uint32_t axis = axis_of(b, n, x);
	int64_t block = aten_int(b, n, "block_size");
	DType d = aten_dtype_or(b, n, "output_dtype", aten_dtype(b, scale));
	if (!x.i || !scale.i)
		return (Node){0};
	Node v = x;
	if (zero.i && dtype_is_int(node_dtype(b->g, x))) {
		DType wide = node_dtype(b->g, x) == DT_i32 ? DT_i64 : DT_i32;
		v = b_bin(b, OP_sub, b_convert(b, x, wide),
			  b_convert(b, spread(b, zero, x, axis, block), wide));
	} else if (zero.i) {
		v = b_bin(b, OP_sub, b_convert(b, x, DT_f32),
			  b_convert(b, spread(b, zero, x, axis, block), DT_f32));
	}
	v = b_bin(b, OP_mul, b_convert(b, v, DT_f32),
		  aten_wide(b, spread(b, scale, x, axis, block)));
	return v.i ? b_convert(b, v, d) : v;
}

OP(onnx_DequantizeLinear_10){
	.schema = "onnx.DequantizeLinear.10(Tensor x, Tensor x_scale, Tensor? x_zero_point, *, int "
		  "axis=1, int block_size=0, ScalarType? output_dtype=None) -> Tensor",
	.build = build_dequantize,
	.no_sample = NODE_TESTS,
};

/* Quantises so that the range of x, widened to 0, becomes 0 .. 255; of zeros alone the scale is
 * 1. */
static Node build_dynamic_quantize(Build *b, Node n)
{
	Node x = arg(b, n, "x");
	uint32_t dims = (1u << aten_rank(b, x)) - 1;
	if (!x.i)
		return x;
	Node low = b_bin_scalar(b, OP_minimum, aten_reduce(b, REDUCE_MIN, x, dims, false), 0);
	Node high = b_bin_scalar(b, OP_maximum, aten_reduce(b, REDUCE_MAX, x, dims, false), 0);
	Node range = b_bin(b, OP_sub, high, low);
	range = b_select(b, b_bin_scalar(b, OP_eq, range, 0), aten_like(b, range, 255), range);
	Node scale = b_bin_scalar(b, OP_div, range, 255);
	Node zero = b_un(b, OP_neg, b_bin(b, OP_div, low, scale));
	zero = b_un(b, OP_round,
		    b_bin_scalar(b, OP_minimum, b_bin_scalar(b, OP_maximum, zero, 0), 255));
	Node y = store(b, b_un(b, OP_round, b_bin(b, OP_div, x, scale)), zero, DT_u8, 0);
	return b_tuple(b, (Node[]){y, scale, b_convert(b, zero, DT_u8)}, 3);
}

OP(onnx_DynamicQuantizeLinear_11){
	.schema = "onnx.DynamicQuantizeLinear.11(Tensor x) -> (Tensor, Tensor, Tensor)",
	.build = build_dynamic_quantize,
	.no_sample = NODE_TESTS,
};

/* ---- products ---- */

Node onnx_centred(Build *b, Node x, Node zero, bool rows)
{
	x = b_convert(b, x, DT_i32);
	if (!zero.i || !x.i)
		return x;
	if (rows && node_rank(b->g, zero) == 1 && !sym_is(b_syms(b), b_dim(b, zero, 0), 1))
		zero = b_unsqueeze(b, zero, -1);
	return b_bin(b, OP_sub, x, b_convert(b, zero, DT_i32));
}

/* Returns a scale for each row, or for each column. */
static Node row_scale(Build *b, Node v)
{
	bool rows = aten_rank(b, v) == 1 && !sym_is(b_syms(b), b_dim(b, v, 0), 1);
	return aten_wide(b, rows ? b_unsqueeze(b, v, -1) : v);
}

static Node build_matmul_integer(Build *b, Node n)
{
	Node x = onnx_centred(b, arg(b, n, "A"), arg(b, n, "a_zero_point"), true),
	     y = onnx_centred(b, arg(b, n, "B"), arg(b, n, "b_zero_point"), false);
	return b_matmul(b, x, y);
}

OP(onnx_MatMulInteger_10){
	.schema = "onnx.MatMulInteger.10(Tensor A, Tensor B, Tensor? a_zero_point, Tensor? "
		  "b_zero_point) -> Tensor",
	.build = build_matmul_integer,
	.no_sample = NODE_TESTS,
};

static Node build_qlinear_matmul(Build *b, Node n)
{
	Node x = onnx_centred(b, arg(b, n, "a"), arg(b, n, "a_zero_point"), true),
	     y = onnx_centred(b, arg(b, n, "b"), arg(b, n, "b_zero_point"), false);
	Node zero = arg(b, n, "y_zero_point"),
	     scale = b_bin(b, OP_mul, row_scale(b, arg(b, n, "a_scale")),
			   aten_wide(b, arg(b, n, "b_scale")));
	scale = b_bin(b, OP_div, scale, row_scale(b, arg(b, n, "y_scale")));
	Node v = b_bin(b, OP_mul, b_convert(b, b_matmul(b, x, y), DT_f32), scale);
	return store(b, b_un(b, OP_round, v), zero, aten_dtype(b, zero), 0);
}

OP(onnx_QLinearMatMul_10){
	.schema = "onnx.QLinearMatMul.10(Tensor a, Tensor a_scale, Tensor a_zero_point, Tensor b, "
		  "Tensor b_scale, Tensor b_zero_point, Tensor y_scale, "
		  "Tensor y_zero_point) -> Tensor",
	.build = build_qlinear_matmul,
	.no_sample = NODE_TESTS,
};

/* Returns weights w[out, ...] minus a zero point for each channel. */
static Node centred_weights(Build *b, Node w, Node zero)
{
	w = b_convert(b, w, DT_i32);
	return zero.i ? b_bin(b, OP_sub, w, b_convert(b, spread(b, zero, w, 0, 0), DT_i32)) : w;
}

static Node build_conv_integer(Build *b, Node n)
{
	Node x = onnx_centred(b, arg(b, n, "x"), arg(b, n, "x_zero_point"), false);
	return onnx_conv(b, n, x, centred_weights(b, arg(b, n, "w"), arg(b, n, "w_zero_point")),
			 (Node){0});
}

OP(onnx_ConvInteger_10){
	.schema = "onnx.ConvInteger.10(Tensor x, Tensor w, Tensor? x_zero_point, Tensor? "
		  "w_zero_point, *, str auto_pad=\"NOTSET\", int[]? dilations=None, int group=1, "
		  "int[]? kernel_shape=None, int[]? pads=None, int[]? strides=None) -> Tensor",
	.build = build_conv_integer,
	.no_sample = NODE_TESTS,
};

static Node build_qlinear_conv(Build *b, Node n)
{
	Node x = onnx_centred(b, arg(b, n, "x"), arg(b, n, "x_zero_point"), false),
	     w = centred_weights(b, arg(b, n, "w"), arg(b, n, "w_zero_point"));
	Node y = onnx_conv(b, n, x, w, arg(b, n, "B")), zero = arg(b, n, "y_zero_point");
	Node scale = b_bin(b, OP_div,
			   b_bin(b, OP_mul, aten_wide(b, arg(b, n, "x_scale")),
				 aten_wide(b, arg(b, n, "w_scale"))),
			   aten_wide(b, arg(b, n, "y_scale")));
	Node v = b_bin(b, OP_mul, b_convert(b, y, DT_f32), spread(b, scale, y, 1, 0));
	return store(b, b_un(b, OP_round, v), zero, aten_dtype(b, zero), 0);
}

OP(onnx_QLinearConv_10){
	.schema = "onnx.QLinearConv.10(Tensor x, Tensor x_scale, Tensor x_zero_point, Tensor w, "
		  "Tensor w_scale, Tensor w_zero_point, Tensor y_scale, "
		  "Tensor y_zero_point, Tensor? B, *, str auto_pad=\"NOTSET\", "
		  "int[]? dilations=None, int group=1, int[]? kernel_shape=None, int[]? pads=None, "
		  "int[]? strides=None) -> Tensor",
	.build = build_qlinear_conv,
	.no_sample = NODE_TESTS,
};
