/* Affine quantisation: the operators of torch.ao (quantized_decomposed, which PT2E writes). Which
 * dtypes meet, and where values are rounded, follows PyTorch's decompositions exactly: a value
 * halfway between two integers tells every difference. */
#include "ops/quant/quantized_priv.h"

#include <math.h>

Node quant_step(Build *b, Op op, Node x, Node y)
{
	if (!x.i || !y.i)
		return (Node){0};
	DType d = b_promote(b, (Node[]){x, y}, 2);
	Node v = b_bin(b, op, aten_wide(b, x), aten_wide(b, y));
	return v.i ? b_convert(b, v, d) : v;
}

Node quant_step_scalar(Build *b, Op op, Node x, double v)
{
	Node y = b_bin_scalar(b, op, aten_wide(b, x), v);
	return y.i ? b_convert(b, y, node_dtype(b->g, x)) : y;
}

/* Returns a bound of the quantised values as 0-d: an int, a Scalar or a tensor; absent:
 * `otherwise`. */
static Node bound(Build *b, Node n, const char *name, double otherwise, DType d)
{
	Node given = arg(b, n, name);
	if (given.i)
		return b_convert(b, b_reshape(b, given, 0, NULL), d);
	if (!aten_has(b, n, name))
		return b_scalar(b, d, otherwise);
	return aten_scalar_as(b, node_attr(b->g, n, name), d);
}

bool quant_bounds(Build *b, DType d, double *low, double *high)
{
	if (!dtype_is_int(d) && !(dtype_is_narrow(d) && dtype_size(d) == 1)) {
		b_error(b, "quantised values cannot be %s", dtype_name(d));
		return false;
	}
	if (dtype_is_float(d)) {
		*high = dtype_max(d);
		*low = -*high;
		return true;
	}
	double half = (double)(UINT64_C(1) << (8 * dtype_size(d) - 1));
	*low = dtype_is_signed(d) ? -half : 0;
	*high = (dtype_is_signed(d) ? half : 2 * half) - 1;
	return true;
}

/* Returns v between quant_min and quant_max, as the dtype. */
static Node store(Build *b, Node n, Node v, DType d)
{
	double low, high;
	if (!v.i || !quant_bounds(b, d, &low, &high))
		return (Node){0};
	v = b_bin(b, OP_maximum, v, bound(b, n, "quant_min", low, node_dtype(b->g, v)));
	if (!v.i)
		return v;
	v = b_bin(b, OP_minimum, v, bound(b, n, "quant_max", high, node_dtype(b->g, v)));
	return v.i ? b_convert(b, v, d) : v;
}

Node quant_inverse(Build *b, Node scale)
{
	return quant_step(b, OP_div, aten_like(b, scale, 1), scale);
}

Node quantize(Build *b, Node n, Node x, Node inv_scale, Node zero_point, DType d)
{
	Node v = b_un(b, OP_round, quant_step(b, OP_mul, x, inv_scale));
	return store(b, n, zero_point.i ? quant_step(b, OP_add, v, zero_point) : v, d);
}

Node dequantize(Build *b, Node x, Node scale, Node zero_point, DType d)
{
	if (zero_point.i)
		x = quant_step(b, OP_sub, x, zero_point);
	x = quant_step(b, OP_mul, x, scale);
	return x.i ? b_convert(b, x, d) : x;
}

Node quant_parameter(Build *b, Node n, const char *name, DType d)
{
	Node given = arg(b, n, name);
	if (!given.i)
		return aten_scalar_as(b, node_attr(b->g, n, name), d);
	if (!sym_is(b_syms(b), type_numel(b->g->ir, node_type_id(b->g, given)), 1))
		return b_error(b, "%s has several elements, expected one", name);
	return b_convert(b, b_reshape(b, given, 0, NULL), d);
}

/* Returns v[channels] along the axis of x. */
static Node along(Build *b, Node n, Node v, Node x)
{
	uint32_t rank = aten_rank(b, x), axis = b_wrap_dim(b, aten_int(b, n, "axis"), rank);
	if (!v.i || axis >= rank || node_rank(b->g, v) != 1)
		return v.i ? b_error(b, "parameters of rank %u along axis %u of rank %u",
				     aten_rank(b, v), axis, rank)
			   : v;
	return aten_per_dim(b, v, x, axis);
}

/* Checks that quant_min and quant_max are values of the dtype, as far as they are known. */
static bool bounds_fit(Build *b, Node n, DType d)
{
	double low, high;
	TRY(quant_bounds(b, d, &low, &high));
	return (arg(b, n, "quant_min").i || aten_check_arg_within(b, n, "quant_min", low, high)) &&
	       (arg(b, n, "quant_max").i || aten_check_arg_within(b, n, "quant_max", low, high));
}

/* ---- one scale for all ---- */

/* Quantises. The scale is inverted as a Python number, in double. */
static Node build_quantize_per_tensor(Build *b, Node n)
{
	Node x = aten_wide(b, arg(b, n, "input"));
	Node scale = quant_inverse(b, quant_parameter(b, n, "scale", DT_f64));
	DType to = aten_dtype_or(b, n, "dtype", DT_none);
	if (!x.i || !scale.i || !bounds_fit(b, n, to))
		return (Node){0};
	DType d = node_dtype(b->g, x);
	Node zero = quant_parameter(b, n, "zero_point", d);
	return quantize(b, n, x, b_convert(b, scale, d), zero, to);
}

/* Dequantises. The integers, the zero point and their difference are rounded to the result's
 * dtype; the scale is not. */
static Node build_dequantize_per_tensor(Build *b, Node n)
{
	DType d = aten_dtype_or(b, n, "out_dtype", DT_f32);
	Node x = aten_wide(b, b_convert(b, arg(b, n, "input"), d));
	if (!x.i)
		return x;
	DType wide = node_dtype(b->g, x);
	x = b_bin(b, OP_sub, x, aten_wide(b, quant_parameter(b, n, "zero_point", d)));
	x = b_bin(b, OP_mul, aten_wide(b, b_convert(b, x, d)),
		  quant_parameter(b, n, "scale", wide));
	return b_convert(b, x, d);
}

/* ---- a scale for each channel ---- */

static Node build_quantize_per_channel(Build *b, Node n)
{
	Node x = aten_wide(b, arg(b, n, "input")), zero = arg(b, n, "zero_points");
	if (!bounds_fit(b, n, aten_dtype_or(b, n, "dtype", DT_none)))
		return (Node){0};
	zero = along(b, n, zero, x);
	Node inverse = along(b, n, quant_inverse(b, arg(b, n, "scales")), x);
	return quantize(b, n, x, inverse, zero, aten_dtype_or(b, n, "dtype", DT_none));
}

static Node build_dequantize_per_channel(Build *b, Node n)
{
	Node x = arg(b, n, "input"), zero = arg(b, n, "zero_points");
	if (!bounds_fit(b, n, aten_dtype_or(b, n, "dtype", DT_none)))
		return (Node){0};
	zero = along(b, n, zero, x);
	return dequantize(b, x, along(b, n, arg(b, n, "scales"), x), zero,
			  aten_dtype_or(b, n, "out_dtype", DT_f32));
}

/* ---- a scale for each row of the last dim: [..., 1] ---- */

static Node build_quantize_per_token(Build *b, Node n)
{
	Node scale = quant_inverse(b, arg(b, n, "scales"));
	Node v = quant_step(b, OP_mul, arg(b, n, "input"), scale);
	v = b_un(b, OP_round, quant_step(b, OP_add, v, arg(b, n, "zero_points")));
	if (!bounds_fit(b, n, aten_dtype_or(b, n, "dtype", DT_none)))
		return (Node){0};
	return store(b, n, v, aten_dtype_or(b, n, "dtype", DT_none));
}

static Node build_dequantize_per_token(Build *b, Node n)
{
	return dequantize(b, arg(b, n, "input"), arg(b, n, "scales"), arg(b, n, "zero_points"),
			  aten_dtype_or(b, n, "output_dtype", DT_f32));
}

/* ---- a scale for each group of a row ---- */

/* Returns [M, N] as [M * N / group, group]. */
static Node grouped(Build *b, Node n, Node x)
{
	Shape s = aten_shape(b, x), scales = aten_shape(b, arg(b, n, "scales"));
	if (!x.i || s.rank != 2 || scales.rank == 0)
		return b_error(b, "groups of an operand of rank %u, expected 2", s.rank);
	Sym size = node_sym(b->g, n, "group_size");
	bool whole = sym_is(b_syms(b), scales.dim[scales.rank - 1], 1);
	if (whole && sym_lt(b_syms(b), s.dim[1], size) == YES)
		size = s.dim[1];
	int64_t group;
	if (!aten_const(b, size, &group))
		return (Node){0};
	if (group < 1 || !sym_divides(b_syms(b), group, s.dim[1]))
		return b_error(b, "rows of %s in groups of %lld", sym_str(b_syms(b), s.dim[1]),
			       (long long)group);
	Sym rows = sym_mul(b_syms(b), s.dim[0], sym_divi(b_syms(b), s.dim[1], group));
	return b_reshape(b, x, 2, (Sym[]){rows, size});
}

static Node column(Build *b, Node v)
{
	if (!v.i)
		return v;
	Sym count = type_numel(b->g->ir, node_type_id(b->g, v));
	return b_reshape(b, v, 2, (Sym[]){count, b_int(b, 1)});
}

static Node build_quantize_per_channel_group(Build *b, Node n)
{
	Node x = arg(b, n, "input"), v = grouped(b, n, x);
	v = quant_step(b, OP_mul, v, quant_inverse(b, column(b, arg(b, n, "scales"))));
	v = b_un(b, OP_round, quant_step(b, OP_add, v, column(b, arg(b, n, "zero_points"))));
	v = store(b, n, v, aten_dtype_or(b, n, "dtype", DT_none));
	Shape s = aten_shape(b, x);
	return v.i ? aten_reshape(b, v, &s) : v;
}
OP(quantized_decomposed_quantize_per_tensor){
	.schema = "quantized_decomposed.quantize_per_tensor(Tensor input, float scale, int "
		  "zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
	.build = build_quantize_per_tensor,
	.sample = "f32[n=2, 8] in -2..2, scale=0.0625, zero_point=3, quant_min=-20, quant_max=19, "
		  "dtype=i8; f32[n=2, 8] in -2..2, scale=0.3, zero_point=7, quant_min=0, "
		  "quant_max=255, dtype=u8",
	.overloads = (const Overload[]){
		{.schema = "quantized_decomposed.quantize_per_tensor.tensor(Tensor input, Tensor "
			   "scale, Tensor zero_point, int quant_min, int quant_max, "
			   "ScalarType dtype) -> Tensor",
		 .sample = "f32[n=2, 8] in -2..2, f32[1] of 0.0625, i64[1] of 3, quant_min=-20, "
			   "quant_max=19, dtype=i8"},
		{.schema = "quantized_decomposed.quantize_per_tensor.tensor2(Tensor input, Tensor "
			   "scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, "
			   "ScalarType dtype) -> "
			   "Tensor",
		 .sample = "f32[n=2, 8] in -2..2, f32[1] of 0.0625, i64[1] of 3, i64[1] of -20, "
			   "i64[1] of 19, dtype=i8"},
		{.schema = "quantized_decomposed.quantize_per_channel(Tensor input, Tensor scales, "
			   "Tensor zero_points, int axis, int quant_min, int quant_max, "
			   "ScalarType dtype) -> "
			   "Tensor",
		 .build = build_quantize_per_channel,
		 .sample = "f32[n=2, 8] in -2..2, f32[8] in 0.0625..0.5, i64[8] in -3..3, axis=1, "
			   "quant_min=-8, quant_max=7, dtype=i8"},
		{.schema = "quantized_decomposed.quantize_per_token(Tensor input, Tensor scales, "
			   "Tensor zero_points, int quant_min, int quant_max, "
			   "ScalarType dtype) -> Tensor",
		 .build = build_quantize_per_token,
		 .sample = "f32[n=2, 8] in -2..2, f32[n, 1] in 0.0625..0.5, i64[n, 1] in -3..3, "
			   "quant_min=-8, quant_max=7, dtype=i8"},
		{.schema = "quantized_decomposed.quantize_per_channel_group(Tensor input, Tensor "
			   "scales, Tensor zero_points, int quant_min, int quant_max, "
			   "ScalarType dtype, int "
			   "group_size) -> Tensor",
		 .build = build_quantize_per_channel_group,
		 .sample = "f32[n=2, 8] in -2..2, f32[n, 2] in 0.0625..0.5, i64[n, 2] in -3..3, "
			   "quant_min=-8, quant_max=7, dtype=i8, group_size=4"},
	},
};

static Node build_dequantize_per_channel_group(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	Node zero = column(b, arg(b, n, "zero_points")), scale = column(b, arg(b, n, "scales"));
	Node v = dequantize(b, grouped(b, n, x), scale, zero,
			    aten_dtype_or(b, n, "output_dtype", DT_f32));
	Shape s = aten_shape(b, x);
	return v.i ? aten_reshape(b, v, &s) : v;
}
OP(quantized_decomposed_dequantize_per_tensor){
	.schema = "quantized_decomposed.dequantize_per_tensor(Tensor input, float scale, int "
		  "zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? "
		  "out_dtype=None) -> Tensor",
	.build = build_dequantize_per_tensor,
	.sample = "i8[n=2, 8] in -8..7, scale=0.3, zero_point=3, quant_min=-8, quant_max=7, "
		  "dtype=i8; i8[n=2, 8] in -8..7, scale=0.3, zero_point=3, quant_min=-8, "
		  "quant_max=7, dtype=i8, out_dtype=f16",
	.overloads = (const Overload[]){
		{.schema = "quantized_decomposed.dequantize_per_tensor.tensor(Tensor input, Tensor "
			   "scale, Tensor zero_point, int quant_min, int quant_max, "
			   "ScalarType dtype, *, "
			   "ScalarType? out_dtype=None) -> Tensor",
		 .sample = "i8[n=2, 8] in -8..7, f32[1] of 0.3, i64[1] of 3, quant_min=-8, "
			   "quant_max=7, dtype=i8"},
		{.schema = "quantized_decomposed.dequantize_per_tensor.tensor2(Tensor input, "
			   "Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, "
			   "ScalarType "
			   "dtype, *, ScalarType? out_dtype=None) -> Tensor",
		 .sample = "i8[n=2, 8] in -8..7, f32[1] of 0.3, i64[1] of 3, i64[1] of -8, "
			   "i64[1] of 7, dtype=i8"},
		{.schema = "quantized_decomposed.dequantize_per_channel(Tensor input, Tensor "
			   "scales, Tensor? zero_points, int axis, int quant_min, int quant_max, "
			   "ScalarType dtype, "
			   "*, ScalarType? out_dtype=None) -> Tensor",
		 .build = build_dequantize_per_channel,
		 .sample = "i8[n=2, 8] in -8..7, f32[8] in 0.0625..0.5, i64[8] in -3..3, axis=1, "
			   "quant_min=-8, quant_max=7, dtype=i8; i8[n=2, 8] in -8..7, "
			   "f32[8] in 0.0625..0.5, none, axis=1, quant_min=-8, quant_max=7, "
			   "dtype=i8"},
		{.schema = "quantized_decomposed.dequantize_per_token(Tensor input, Tensor scales, "
			   "Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, "
			   "ScalarType "
			   "output_dtype) -> Tensor",
		 .build = build_dequantize_per_token,
		 .sample = "i8[n=2, 8] in -8..7, f32[n, 1] in 0.0625..0.5, i64[n, 1] in -3..3, "
			   "quant_min=-8, quant_max=7, dtype=i8, output_dtype=f32"},
		{.schema = "quantized_decomposed.dequantize_per_channel_group(Tensor input, Tensor "
			   "scales, Tensor? zero_points, int quant_min, int quant_max, "
			   "ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor",
		 .build = build_dequantize_per_channel_group,
		 .sample = "i8[n=2, 8] in -8..7, f32[n, 2] in 0.0625..0.5, i64[n, 2] in -3..3, "
			   "quant_min=-8, quant_max=7, dtype=i8, group_size=4, output_dtype=f32"},
	},
};

/* ---- scales and zero points from the values ---- */

void quant_range(Build *b, Node x, uint32_t dims, Node *low, Node *high)
{
	Node zero = aten_like(b, x, 0);
	*low = *high = (Node){0};
	if (!x.i)
		return;
	*low = b_bin(b, OP_minimum, b_reduce_keep(b, REDUCE_MIN, x, dims, node_dtype(b->g, x)),
		     zero);
	*high = b_bin(b, OP_maximum, b_reduce_keep(b, REDUCE_MAX, x, dims, node_dtype(b->g, x)),
		      zero);
}

/* Returns both as vectors of one element, f64 and i64. */
static Node one_pair(Build *b, Node scale, Node zero_point)
{
	Sym one = b_int(b, 1);
	scale = b_reshape(b, scale, 1, &one);
	zero_point = b_reshape(b, zero_point, 1, &one);
	if (!scale.i || !zero_point.i)
		return (Node){0};
	return b_tuple(b, (Node[]){b_convert(b, scale, DT_f64), b_convert(b, zero_point, DT_i64)},
		       2);
}

/* Returns max(x / by, eps) in f32, in which eps comes. */
static Node scale_of(Build *b, Node n, Node x, double by)
{
	Node scale = quant_step_scalar(b, OP_div, x, by);
	Node eps = b_scalar(b, DT_f32, node_float(b->g, n, "eps"));
	return scale.i ? b_bin(b, OP_maximum, b_convert(b, scale, DT_f32), eps) : scale;
}

/* Checks that the range that parameters are chosen for has 0 in it, and more than 0. */
static bool range_fits(Build *b, int64_t least, int64_t most)
{
	return aten_check_within(b, "quant_min", (double)least, -INFINITY, 0) &&
	       aten_check_within(b, "quant_max", (double)most, least < 0 ? 0 : 1, INFINITY);
}

/* Returns floats as i32: what i32 does not hold, and NaN, is its smallest, as processors of x86
 * have it. */
static Node as_i32(Build *b, Node x)
{
	Node fits = b_bin(b, OP_bit_and, b_bin_scalar(b, OP_ge, x, -0x1p31),
			  b_bin_scalar(b, OP_lt, x, 0x1p31));
	Node i = b_convert(b, b_select(b, fits, x, aten_like(b, x, 0)), DT_i32);
	return b_select(b, fits, i, aten_like(b, i, INT32_MIN));
}

static Node build_choose_qparams(Build *b, Node n)
{
	Node x = arg(b, n, "input"), low, high;
	int64_t least = aten_int(b, n, "quant_min"), most = aten_int(b, n, "quant_max");
	if (!range_fits(b, least, most))
		return (Node){0};
	quant_range(b, x, (1u << aten_rank(b, x)) - 1, &low, &high);
	Node scale = scale_of(b, n, quant_step(b, OP_sub, high, low), (double)(most - least));
	if (!scale.i)
		return scale;
	Node at = as_i32(
		b, b_un(b, OP_round, quant_step(b, OP_div, b_convert(b, low, DT_f32), scale)));
	Node zero = b_bin(b, OP_sub, aten_like(b, at, (double)least), at);
	zero = b_bin_scalar(b, OP_maximum, zero, (double)least);
	return one_pair(b, scale, b_bin_scalar(b, OP_minimum, zero, (double)most));
}

static Node build_choose_qparams_symmetric(Build *b, Node n)
{
	Node x = arg(b, n, "input"), low, high;
	int64_t least = aten_int(b, n, "quant_min"), most = aten_int(b, n, "quant_max");
	if (!range_fits(b, least, most))
		return (Node){0};
	quant_range(b, x, (1u << aten_rank(b, x)) - 1, &low, &high);
	high = b_bin(b, OP_maximum, b_un(b, OP_neg, low), high);
	Node scale = scale_of(b, n, high, (double)(most - least) / 2);
	bool is_u8 = aten_dtype_or(b, n, "dtype", DT_none) == DT_u8;
	return one_pair(b, scale, b_scalar(b, DT_i64, is_u8 ? 128 : 0));
}

/* Builds parameters per token. The files say f64 and i64, eager PyTorch returns f32 for both:
 * values are f32's. */
static Node build_choose_qparams_per_token(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	uint32_t rank = aten_rank(b, x);
	if (!x.i || rank == 0 || aten_dtype_or(b, n, "dtype", DT_none) != DT_i8)
		return b_error(b, "per token parameters of rank %u, expected i8 rows", rank);
	Node top = b_reduce_keep(b, REDUCE_MAX, b_un(b, OP_abs, x), 1u << (rank - 1),
				 node_dtype(b->g, x));
	if (node_dtype(b->g, x) == DT_f16)
		top = b_convert(b, top, DT_f32);
	Node scale = quant_step_scalar(b, OP_div, b_bin_scalar(b, OP_maximum, top, 1e-5), 127);
	Shape s = aten_shape(b, scale);
	Node zero = b_full_int(b, DT_i64, 0, s.rank, s.dim);
	return scale.i ? b_tuple(b, (Node[]){b_convert(b, scale, DT_f64), zero}, 2) : scale;
}

/* Builds parameters per token whose zero point is the end of the range whose error is smaller. */
static Node build_choose_qparams_per_token_asymmetric(Build *b, Node n)
{
	Node x = arg(b, n, "input"), low, high;
	uint32_t rank = aten_rank(b, x);
	if (!x.i || rank == 0)
		return b_error(b, "per token parameters of a tensor without dims");
	quant_range(b, x, 1u << (rank - 1), &low, &high);
	Node scale = quant_step_scalar(b, OP_div, quant_step(b, OP_sub, high, low), 255);
	scale = b_bin_scalar(b, OP_maximum, scale, 1.1920928955078125e-07);
	low = quant_step(b, OP_div, low, scale);
	high = quant_step(b, OP_div, high, scale);
	Node above = quant_step_scalar(b, OP_add, high, 127),
	     below = quant_step_scalar(b, OP_add, low, -128);
	Node error = quant_step(b, OP_add, below, above);
	Node zero = b_select(b, b_bin_scalar(b, OP_gt, error, 0),
			     quant_step(b, OP_sub, aten_like(b, low, -128), low),
			     quant_step(b, OP_sub, aten_like(b, high, 127), high));
	zero = b_bin_scalar(b, OP_minimum, b_bin_scalar(b, OP_maximum, zero, -128), 127);
	zero = b_un(b, OP_round, zero);
	if (!zero.i)
		return zero;
	return b_tuple(b, (Node[]){b_convert(b, scale, DT_f64), b_convert(b, zero, DT_i64)}, 2);
}
OP(quantized_decomposed_choose_qparams_tensor){
	.schema = "quantized_decomposed.choose_qparams.tensor(Tensor input, int quant_min, int "
		  "quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)",
	.build = build_choose_qparams,
	.sample = "f32[n=2, 8] in -2..2, quant_min=-128, quant_max=127, eps=1e-05, dtype=i8; "
		  "f32[4] of 0.5 1.25 3 2, quant_min=0, quant_max=255, eps=0.125, dtype=u8; "
		  "f32[3] of 1 -inf 2, quant_min=-128, quant_max=127, eps=1e-05, dtype=i8; "
		  "f32[3] of 1 nan 2, quant_min=-128, quant_max=127, eps=1e-05, dtype=i8",
	.overloads = (const Overload[]){
		{.schema = "quantized_decomposed.choose_qparams_symmetric.tensor(Tensor input, int "
			   "quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, "
			   "Tensor)",
		 .build = build_choose_qparams_symmetric,
		 .sample = "f32[n=2, 8] in -2..2, quant_min=-127, quant_max=127, eps=1e-05, "
			   "dtype=i8"},
		{.schema = "quantized_decomposed.choose_qparams_per_token(Tensor input, ScalarType "
			   "dtype) -> (Tensor, Tensor)",
		 .build = build_choose_qparams_per_token,
		 .sample = "f32[n=2, 8] in -2..2, dtype=i8"},
		{.schema = "quantized_decomposed.choose_qparams_per_token_asymmetric(Tensor input, "
			   "ScalarType dtype) -> (Tensor, Tensor)",
		 .aliases = "quantized_decomposed._choose_qparams_per_token_asymmetric_impl",
		 .build = build_choose_qparams_per_token_asymmetric,
		 .sample = "f32[n=2, 8] in -2..2, dtype=i8; f32[2, 3] of 0.5 1.25 3 2 -0.25 -7, "
			   "dtype=i8"},
	},
};

/* ---- quantised and back ---- */

static Node build_fake_quant_per_channel(Build *b, Node n)
{
	Node x = arg(b, n, "input"), scale = arg(b, n, "scales"), zero = arg(b, n, "zero_points");
	if (!x.i || !scale.i || !zero.i)
		return (Node){0};
	scale = b_convert(b, scale, DT_f32);
	Node at = along(b, n, b_convert(b, zero, DT_i32), x);
	Node v = quant_step(b, OP_mul, x, along(b, n, quant_inverse(b, scale), x));
	v = quant_step(b, OP_add, b_un(b, OP_round, v), at);
	v = b_bin(b, OP_maximum, v, bound(b, n, "quant_min", 0, DT_f32));
	v = b_bin(b, OP_minimum, v, bound(b, n, "quant_max", 0, DT_f32));
	return dequantize(b, v, along(b, n, scale, x), at, DT_f32);
}
OP(quantized_decomposed_fake_quant_per_channel){
	.schema = "quantized_decomposed.fake_quant_per_channel(Tensor input, Tensor scales, "
		  "Tensor zero_points, int axis, int quant_min, int quant_max) -> Tensor",
	.build = build_fake_quant_per_channel,
	.sample = "f32[n=2, 8] in -2..2, f32[8] in 0.0625..0.5, i64[8] in -3..3, axis=1, "
		  "quant_min=-8, quant_max=7",
};

static Node build_convert_element_type(Build *b, Node n)
{
	Node x = arg(b, n, op_arg_index(node_op(b->g, n), "a") >= 0 ? "a" : "input");
	return x.i ? b_convert(b, x, aten_dtype_or(b, n, "dtype", node_dtype(b->g, x))) : x;
}
OP(quantized_decomposed_convert_element_type_no_fuse){
	.schema = "quantized_decomposed.convert_element_type.no_fuse(Tensor input, ScalarType "
		  "dtype) -> Tensor",
	.build = build_convert_element_type,
	.sample = "f32[n=3, 4], dtype=f16",
	.overloads = (const Overload[]){
		{.schema = "prims.convert_element_type(Tensor a, ScalarType dtype) -> Tensor"},
	},
};
