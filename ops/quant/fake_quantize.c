/* Fake quantisation: values rounded to the grid of a quantised dtype, which stay floats, as
 * training that knows of quantisation has them. What is rounded where follows the kernels of
 * PyTorch 2.15 for CPUs (QuantizedOpKernels.cpp): the scale is f32 and inverted in f32, halves go
 * to even. The derivative passes where no value was clamped. */
#include <math.h>

#include "ops/quant/quantized_priv.h"

/* n's quant_min and quant_max, and the dtype in which they and differences of them have no error.
 */
typedef struct {
	double low, high;
	DType d;
} Bounds;

/* Reads the bounds, and the dtype in which they are exact. Returns false after b_error. */
static bool bounds_of(Build *b, Node n, DType x, Bounds *r)
{
	const double exact = 1 << 24; /* as far as f32 has every integer */
	r->low = (double)aten_int(b, n, "quant_min");
	r->high = (double)aten_int(b, n, "quant_max");
	r->d = x == DT_f64 || r->low < -exact || r->high > exact ? DT_f64 : DT_f32;
	if (r->low > r->high)
		b_error(b, "quant_min is %g, expected at most quant_max, %g", r->low, r->high);
	return r->low <= r->high;
}

/* Returns x / scale, of floats; in f64 if x is, else in f32. */
static Node in_steps(Build *b, Node x, Node scale)
{
	x = aten_wide(b, x);
	Node inv = quant_inverse(b, b_convert(b, scale, DT_f32));
	return x.i && inv.i ? b_bin(b, OP_mul, x, b_convert(b, inv, node_dtype(b->g, x))) : inv;
}

/* Returns low <= v <= high, between numbers of v's dtype. */
static Node inside(Build *b, Node v, const Bounds *r)
{
	return b_bin(b, OP_bit_and, b_bin_scalar(b, OP_ge, v, r->low),
		     b_bin_scalar(b, OP_le, v, r->high));
}

/* The operands of one fake quantisation; scale and zero point have x's rank or are 0-d. */
typedef struct {
	Node x, scale, zero;
	Bounds r;
} Fake;

/* Returns v, but for a number that is no 64-bit integer the least of these, by which PyTorch's
 * kernel for channels goes. */
static Node as_int64(Build *b, Node v)
{
	return b_select(b, b_bin_scalar(b, OP_lt, v, 0x1p63), v, aten_like(b, v, -0x1p63));
}

/* Returns (the values, where none was clamped). The derivative is that of x times the mask. */
static Node faked(Build *b, const Fake *f, Node q, Node mask, DType product)
{
	DType d = node_dtype(b->g, f->x);
	q = b_bin_scalar(b, OP_minimum, q, f->r.high);
	Node y = b_bin(b, OP_sub, q, b_convert(b, f->zero, f->r.d));
	y = b_bin(b, OP_mul, b_convert(b, y, product), b_convert(b, f->scale, product));
	Node passed = b_bin(b, OP_mul, f->x, b_convert(b, mask, d));
	y = b_bin(b, OP_straight_through, b_convert(b, y, d), passed);
	return y.i ? b_tuple(b, (Node[]){y, mask}, 2) : y;
}

static bool fake_begin(Build *b, Node n, Fake *f)
{
	f->x = arg(b, n, "self");
	if (!f->x.i || !f->scale.i || !f->zero.i)
		return false;
	DType d = node_dtype(b->g, f->x);
	if (!dtype_is_float(d)) {
		b_error(b, "fake quantisation of %s, expected floats", dtype_name(d));
		return false;
	}
	f->scale = b_convert(b, f->scale, DT_f32);
	return bounds_of(b, n, d, &f->r);
}

/* Quantises with one scale and one zero point. NaN becomes quant_min. */
static Node fake_per_tensor(Build *b, Node n, Node scale, Node zero)
{
	Fake f = {.scale = scale, .zero = zero};
	if (!fake_begin(b, n, &f))
		return (Node){0};
	Node v = b_un(b, OP_round, in_steps(b, f.x, f.scale));
	v = b_bin(b, OP_add, b_convert(b, f.zero, node_dtype(b->g, v)), v);
	Node mask = inside(b, v, &f.r);
	Node q = b_convert(b, v, f.r.d);
	return faked(b, &f, b_bin(b, OP_fmax, q, aten_like(b, q, f.r.low)), mask, DT_f32);
}

/* Returns v[channels] along that axis of x. */
static Node along_axis(Build *b, int64_t axis, Node v, Node x)
{
	uint32_t rank = aten_rank(b, x);
	if (!v.i || !x.i)
		return (Node){0};
	if (axis < 0 || axis >= rank)
		return b_error(b, "axis is %lld, expected one of %u dimensions", (long long)axis,
			       rank);
	if (node_rank(b->g, v) != 1)
		return b_error(b, "scales or zero points of rank %u, expected 1",
			       node_rank(b->g, v));
	aten_require_equal(b, b_dim(b, v, 0), b_dim(b, x, (int)axis),
			   "one scale and zero point for each channel");
	return aten_per_dim(b, v, x, (uint32_t)axis);
}

/* Requires that zero points that are integers lie between the bounds, as in PyTorch, when the
 * program runs. */
static void require_zero_points(Build *b, Node zero, const Bounds *r)
{
	static const char why[] =
		"fake quantisation: a zero point is not between quant_min and quant_max";
	if (dtype_is_float(node_dtype(b->g, zero)))
		return;
	Node good = inside(b, b_convert(b, zero, DT_f64), r);
	b_node(b, OP_assert, &good, 1, (Attr[]){attr_none(), attr_str(b->g->ir, why)}, 2);
}

/* Quantises with a scale and a zero point for each channel. With zero points that are floats,
 * the sum is rounded, not the quotient. NaN and what is no 64-bit integer become quant_min. */
static Node fake_per_channel(Build *b, Node n, Node scale, Node zero, int64_t axis)
{
	Node x = arg(b, n, "self");
	Fake f = {.scale = along_axis(b, axis, scale, x), .zero = along_axis(b, axis, zero, x)};
	if (!fake_begin(b, n, &f))
		return (Node){0};
	require_zero_points(b, zero, &f.r);
	bool floats = dtype_is_float(node_dtype(b->g, zero));
	Node v = in_steps(b, f.x, f.scale);
	if (!floats)
		v = b_un(b, OP_round, v);
	v = b_bin(b, OP_add, b_convert(b, f.zero, aten_dtype(b, v)), v);
	if (floats) {
		v = b_un(b, OP_round, b_convert(b, v, DT_f32));
		f.r.d = DT_f64;
	}
	v = as_int64(b, b_convert(b, v, f.r.d));
	Node q = b_bin_scalar(b, OP_maximum, v, f.r.low);
	return faked(b, &f, q, inside(b, v, &f.r), f.r.d);
}

/* ---- one scale for all ---- */

static Node build_per_tensor_cachemask(Build *b, Node n)
{
	double zero = (double)aten_int(b, n, "zero_point");
	double low = (double)aten_int(b, n, "quant_min"),
	       high = (double)aten_int(b, n, "quant_max");
	if (low <= high && (zero < low || zero > high))
		return b_error(b, "zero_point is %g, expected one between quant_min and quant_max",
			       zero);
	Node zero_point = quant_parameter(b, n, "zero_point", DT_f64);
	return fake_per_tensor(b, n, quant_parameter(b, n, "scale", DT_f32), zero_point);
}

/* Does as fake_per_tensor, by tensors of one element. */
static Node fake_by_numbers(Build *b, Node n, Node scale, Node zero)
{
	zero = b_reshape(b, zero, 0, NULL);
	return fake_per_tensor(b, n, b_reshape(b, scale, 0, NULL), zero);
}

/* Returns the values without the mask. */
static Node values_of(Build *b, Node pair)
{
	return pair.i ? b_get(b, pair, 0) : pair;
}

static Node build_per_tensor(Build *b, Node n)
{
	return values_of(b, build_per_tensor_cachemask(b, n));
}

/* Returns the pair where `on` holds, else x, of which nothing was clamped. */
static Node fake_if(Build *b, Node on, Node pair, Node x)
{
	if (!on.i || !pair.i || !x.i)
		return (Node){0};
	Node y = b_select(b, on, b_get(b, pair, 0), x);
	Node mask = b_bin(b, OP_bit_or, b_get(b, pair, 1), b_un(b, OP_bit_not, on));
	return b_tuple(b, (Node[]){y, mask}, 2);
}

/* Quantises with parameters that are tensors. A zero point is truncated to an integer. */
static Node fake_tensor_qparams(Build *b, Node n)
{
	Node zero = quant_parameter(b, n, "zero_point", aten_dtype(b, arg(b, n, "zero_point")));
	zero = b_convert(b, zero, DT_i32);
	return fake_per_tensor(b, n, quant_parameter(b, n, "scale", DT_f32), zero);
}

/* Builds the operator with a switch: where fake_quant_enabled is 0, x stays. */
static Node build_tensor_qparams_cachemask(Build *b, Node n)
{
	Node on = aten_truth(b, quant_parameter(b, n, "fake_quant_enabled", DT_i64));
	return fake_if(b, on, fake_tensor_qparams(b, n), arg(b, n, "self"));
}

static Node build_tensor_qparams(Build *b, Node n)
{
	return values_of(b, fake_tensor_qparams(b, n));
}

/* ---- a scale for each channel ---- */

static Node build_per_channel_cachemask(Build *b, Node n)
{
	return fake_per_channel(b, n, arg(b, n, "scale"), arg(b, n, "zero_point"),
				aten_int(b, n, "axis"));
}

static Node build_per_channel(Build *b, Node n)
{
	return values_of(b, build_per_channel_cachemask(b, n));
}
OP(aten_fake_quantize_per_tensor_affine_cachemask){
	.schema = "aten.fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int "
		  "zero_point, int "
		  "quant_min, int quant_max) -> (Tensor output, Tensor mask)",
	.autocast = AUTOCAST_F32,
	.build = build_per_tensor_cachemask,
	.sample = "f32[n=2, 8] in -2..2, scale=0.0625, zero_point=3, quant_min=-20, quant_max=19; "
		  "f32[3, 5] in -4..4, scale=0.375, zero_point=7, quant_min=0, quant_max=15; "
		  "f32[8] of 0.75 1.25 -0.75 -1.25 1e30 -1e30 3e9 -0.0, scale=0.5, zero_point=1, "
		  "quant_min=-2147483648, "
		  "quant_max=2147483647; "
		  "f32[5] of nan inf -inf 2 -3, scale=0.5, zero_point=0, quant_min=-8, quant_max=7",
	.overloads = (const Overload[]){
		{.schema = "aten.fake_quantize_per_tensor_affine(Tensor self, float scale, int "
			   "zero_point, int quant_min, int "
			   "quant_max) -> Tensor",
		 .build = build_per_tensor,
		 .sample = "f32[n=2, 8] in -2..2, scale=0.0625, zero_point=3, quant_min=-20, "
			   "quant_max=19; f32[3, 5] in -4..4, scale=0.375, zero_point=7, "
			   "quant_min=0, quant_max=15"},
		{.schema = "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor "
			   "self, Tensor scale, Tensor "
			   "zero_point, Tensor fake_quant_enabled, int quant_min, "
			   "int quant_max) -> (Tensor output, Tensor mask)",
		 .build = build_tensor_qparams_cachemask,
		 .sample = "f32[n=2, 8] in -2..2, f32[1] of 0.0625, i32[1] of 3, i64[1] of 1, "
			   "quant_min=-20, quant_max=19; "
			   "f32[n=2, 8] in -2..2, f32[1] of 0.3, i32[1] of 3, i64[1] of 0, "
			   "quant_min=-20, quant_max=19"},
		{.schema = "aten.fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, "
			   "Tensor scale, Tensor zero_point, int "
			   "quant_min, int quant_max) -> Tensor",
		 .build = build_tensor_qparams,
		 .sample = "f32[n=2, 8] in -2..2, f32[1] of 0.0625, i32[1] of 3, quant_min=-20, "
			   "quant_max=19; f32[3, 5] in -4..4, f32[] of 0.375, i32[] of 7, "
			   "quant_min=0, quant_max=15"},
		{.schema = "aten.fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor "
			   "scale, Tensor zero_point, int axis, "
			   "int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
		 .build = build_per_channel_cachemask,
		 .sample = "f32[n=2, 8] in -2..2, f32[8] in 0.0625..0.5, i32[8] in -3..3, axis=1, "
			   "quant_min=-8, quant_max=7; "
			   "f32[n=3, 4] in -2..2, f32[n] in 0.0625..0.5, i32[n] in -3..3, axis=0, "
			   "quant_min=-8, quant_max=7; "
			   "f32[2, 8] in -2..2, f32[8] in 0.0625..0.5, f32[8] in -3..3, axis=1, "
			   "quant_min=-8, quant_max=7; "
			   "f32[1, 8] of 0.75 1.25 -0.75 -1.25 1e30 -1e30 nan inf, f32[1] of 0.5, "
			   "i32[1] of 1, axis=0, quant_min=-8, "
			   "quant_max=7"},
		{.schema = "aten.fake_quantize_per_channel_affine(Tensor self, Tensor scale, "
			   "Tensor zero_point, int axis, int "
			   "quant_min, int quant_max) -> Tensor",
		 .build = build_per_channel,
		 .sample = "f32[n=2, 8] in -2..2, f32[8] in 0.0625..0.5, i32[8] in -3..3, axis=1, "
			   "quant_min=-8, quant_max=7; "
			   "f32[n=3, 4, 2] in -2..2, f32[n] in 0.0625..0.5, i32[n] in -3..3, "
			   "axis=0, quant_min=0, quant_max=15"},
	},
};

static Node shaped_like(Build *b, Node v, Node like)
{
	Shape s = aten_shape(b, like);
	return b_convert(b, aten_reshape(b, v, &s), node_dtype(b->g, like));
}

/* ---- scales and zero points that are learnt: floats ---- */

/* Makes a zero point an integer between the bounds: rounded, halves to even; in the derivative
 * by one scale half a step is added and the fraction dropped. */
static Node learnt_zero(Build *b, Node zero, const Bounds *r, bool truncated)
{
	zero = b_convert(b, zero, DT_f32);
	zero = truncated ? b_bin_scalar(b, OP_add, zero, 0.5) : b_un(b, OP_round, zero);
	zero = b_bin_scalar(b, OP_minimum, b_bin_scalar(b, OP_maximum, zero, r->low), r->high);
	return truncated ? b_un(b, OP_trunc, zero) : zero;
}

/* Reads the operands, of x's rank or 0-d; the zero point is an integer, in f32. Returns false
 * after b_error. */
static bool learnt_begin(Build *b, Node n, Fake *f, uint32_t *dims)
{
	bool channels = op_arg_index(node_op(b->g, n), "axis") >= 0;
	Node x = arg(b, n, "self"), scale = arg(b, n, "scale"), zero = arg(b, n, "zero_point");
	uint32_t rank = aten_rank(b, x);
	*f = (Fake){.x = x};
	if (!x.i || !scale.i || !zero.i || !bounds_of(b, n, node_dtype(b->g, x), &f->r))
		return false;
	int64_t axis = channels ? aten_int(b, n, "axis") : 0;
	f->scale =
		channels ? along_axis(b, axis, scale, x) : quant_parameter(b, n, "scale", DT_f32);
	f->zero = channels ? along_axis(b, axis, zero, x)
			   : quant_parameter(b, n, "zero_point", DT_f32);
	f->zero = learnt_zero(b, f->zero, &f->r, !channels);
	*dims = ((1u << rank) - 1) & (channels ? ~(1u << axis) : ~0u);
	return fake_begin(b, n, f);
}

/* Computes what each element says of the scale and of the zero point (fake_quantize_core.cpp,
 * "Learned Step Size Quantization", Esser et al. 2020): one that is clamped moves with the end
 * of the range, another one by its error of rounding. *in: none is clamped. */
static bool learnt_slopes(Build *b, Node n, const Fake *f, Node *in, Node *by_scale, Node *by_zero)
{
	double factor = node_float(b->g, n, "grad_factor");
	Node v = b_bin(b, OP_add, b_un(b, OP_round, in_steps(b, f->x, f->scale)), f->zero);
	Node error = b_bin(b, OP_sub, b_bin(b, OP_mul, b_bin(b, OP_sub, v, f->zero), f->scale),
			   aten_wide(b, f->x));
	Node end = b_select(b, b_bin_scalar(b, OP_lt, v, f->r.low), aten_like(b, v, f->r.low),
			    aten_like(b, v, f->r.high));
	*in = inside(b, v, &f->r);
	Node slope = b_select(b, *in, b_bin(b, OP_mul, error, quant_inverse(b, f->scale)),
			      b_bin(b, OP_sub, end, f->zero));
	*by_scale = b_bin_scalar(b, OP_mul, slope, factor);
	*by_zero = b_bin_scalar(
		b, OP_mul, b_select(b, *in, aten_like(b, v, 0), b_un(b, OP_neg, f->scale)), factor);
	return by_scale->i && by_zero->i;
}

/* Builds the operator whose derivative is what the operator's own backward gives. */
static Node build_learnable(Build *b, Node n)
{
	bool channels = op_arg_index(node_op(b->g, n), "axis") >= 0;
	Node scale = arg(b, n, "scale"), zero = arg(b, n, "zero_point"), in, ds, dz, y, passed;
	Fake f;
	uint32_t dims;
	if (!learnt_begin(b, n, &f, &dims) || !learnt_slopes(b, n, &f, &in, &ds, &dz))
		return (Node){0};
	Node whole = b_convert(b, learnt_zero(b, zero, &f.r, false), DT_i32);
	if (channels)
		y = values_of(b, fake_per_channel(b, n, scale, whole, aten_int(b, n, "axis")));
	else
		y = values_of(b, fake_by_numbers(b, n, scale, whole));
	if (!y.i)
		return y;
	DType d = node_dtype(b->g, y);
	zero = channels ? along_axis(b, aten_int(b, n, "axis"), zero, f.x)
			: b_reshape(b, zero, 0, NULL);
	passed = b_bin(b, OP_mul, f.x, b_convert(b, in, d));
	passed = b_bin(b, OP_add, passed,
		       b_convert(b, b_bin(b, OP_mul, f.scale, aten_detached(b, ds)), d));
	passed = b_bin(b, OP_add, passed,
		       b_convert(b,
				 b_bin(b, OP_mul, b_convert(b, zero, DT_f32), aten_detached(b, dz)),
				 d));
	return b_bin(b, OP_straight_through, y, passed);
}

static Node build_learnable_backward(Build *b, Node n)
{
	Fake f;
	uint32_t dims;
	Node in, gs, gz;
	if (!learnt_begin(b, n, &f, &dims) || !learnt_slopes(b, n, &f, &in, &gs, &gz))
		return (Node){0};
	Node g = aten_wide(b, arg(b, n, "grad"));
	gs = aten_sum(b, b_bin(b, OP_mul, g, gs), dims, false);
	gz = aten_sum(b, b_bin(b, OP_mul, g, gz), dims, false);
	if (!gs.i || !gz.i)
		return (Node){0};
	DType d = dtype_compute(node_dtype(b->g, f.x));
	Shape one = {1, {b_int(b, 1)}};
	if (node_rank(b->g, gs) == 0) {
		gs = aten_reshape(b, gs, &one);
		gz = aten_reshape(b, gz, &one);
	}
	Node gx = b_select(b, in, g, aten_like(b, g, 0));
	return b_tuple(b, (Node[]){b_convert(b, gx, d), b_convert(b, gs, d), b_convert(b, gz, d)},
		       3);
}

OP(aten__fake_quantize_learnable_per_tensor_affine){
	.schema = "aten._fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, "
		  "Tensor zero_point, int quant_min, int "
		  "quant_max, float grad_factor=1.) -> Tensor",
	.build = build_learnable,
	.sample = "f32[n=2, 8] in -2..2, f32[1] of 0.0625, f32[1] of 2.6, quant_min=-20, "
		  "quant_max=19; "
		  "f32[3, 5] in -4..4, f32[1] of 0.375, f32[1] of -3.7, quant_min=-8, quant_max=7, "
		  "grad_factor=0.5; "
		  "f32[3] of 1 -2 0.3, f32[1] of 0.375, f32[1] of 99, quant_min=-8, quant_max=7",
	.overloads = (const Overload[]){
		{.schema = "aten._fake_quantize_learnable_per_channel_affine(Tensor self, Tensor "
			   "scale, Tensor zero_point, int axis, int quant_min, "
			   "int quant_max, float grad_factor=1.) -> Tensor",
		 .sample = "f32[n=2, 8] in -2..2, f32[8] in 0.0625..0.5, f32[8] in -3..3, axis=1, "
			   "quant_min=-8, quant_max=7; "
			   "f32[n=3, 4] in -2..2, f32[n] in 0.0625..0.5, f32[n] in -9..9, axis=0, "
			   "quant_min=-8, quant_max=7, grad_factor=0.5"},
	},
};
OP(aten__fake_quantize_learnable_per_tensor_affine_backward){
	.schema = "aten._fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor "
		  "self, Tensor scale, Tensor zero_point, "
		  "int quant_min, int quant_max, float grad_factor=1.) -> (Tensor, Tensor, Tensor)",
	.build = build_learnable_backward,
	.sample = "f32[n=2, 8] in 1..2, f32[n, 8] in -2..2, f32[1] of 0.0625, f32[1] of 2.6, "
		  "quant_min=-20, quant_max=19; "
		  "f32[3, 5], f32[3, 5] in -4..4, f32[1] of 0.375, f32[1] of -3.7, quant_min=-8, "
		  "quant_max=7, grad_factor=0.5",
	.overloads = (const Overload[]){
		{.schema = "aten._fake_quantize_learnable_per_channel_affine_backward(Tensor grad, "
			   "Tensor self, Tensor scale, Tensor zero_point, "
			   "int axis, int quant_min, int quant_max, "
			   "float grad_factor=1.) -> (Tensor, Tensor, Tensor)",
		 .sample = "f32[n=2, 8] in 1..2, f32[n, 8] in -2..2, f32[8] in 0.0625..0.5, "
			   "f32[8] in -3..3, axis=1, quant_min=-8, quant_max=7; "
			   "f32[n=3, 4], f32[n, 4] in -2..2, f32[n] in 0.0625..0.5, "
			   "f32[n] in -9..9, axis=0, quant_min=-8, quant_max=7, "
			   "grad_factor=0.5"},
	},
};

/* ---- with an observer: scale and zero point follow a moving range ---- */

/* Moves the range towards that of x, where the observer is on; an infinite one takes it. In f32. */
static Node moved(Build *b, Node n, Node running, ReduceKind kind, uint32_t dims, Node on)
{
	Node x = arg(b, n, "self"), now = b_reduce(b, kind, x, dims, node_dtype(b->g, x));
	Shape s = aten_shape(b, running);
	if (!now.i || !running.i)
		return (Node){0};
	now = b_convert(b, aten_reshape(b, now, &s), DT_f32);
	double by = (double)(float)node_float(b->g, n, "averaging_const");
	Node next = b_bin(b, OP_add, running,
			  b_bin_scalar(b, OP_mul, b_bin(b, OP_sub, now, running), by));
	Node infinite = b_bin_scalar(b, OP_eq, b_un(b, OP_abs, running), INFINITY);
	next = b_convert(b, b_select(b, infinite, now, next), node_dtype(b->g, running));
	return b_select(b, on, next, running);
}

/* What ChooseQuantizationParams of FBGEMM (QuantUtils.cc) makes of a range: f32 and i32. */
typedef struct {
	Node low, high; /* f32 values, in f64 */
	double qmin, qmax;
	bool symmetric;
	Node both; /* low < 0 < high */
} QuantRange;

static Node f32_of(Build *b, Node v) /* rounded to f32, in f64 */
{
	return b_convert(b, b_convert(b, v, DT_f32), DT_f64);
}

static void make_symmetric(Build *b, QuantRange *r)
{
	double half = trunc((r->qmax - r->qmin) / 2);
	Node low = f32_of(b, b_bin_scalar(b, OP_div, r->low, -(half + 1))),
	     high = f32_of(b, b_bin_scalar(b, OP_div, r->high, half));
	Node most = b_bin(b, OP_maximum, b_un(b, OP_abs, low), b_un(b, OP_abs, high));
	r->low =
		b_select(b, r->both, f32_of(b, b_bin_scalar(b, OP_mul, most, -(half + 1))), r->low);
	r->high = b_select(b, r->both, f32_of(b, b_bin_scalar(b, OP_mul, most, half)), r->high);
}

/* Raises a scale that is too small, and the range with it. */
static Node raise_scale(Build *b, QuantRange *r, Node scale)
{
	const double least = (double)6.1e-5f;
	Node narrow = f32_of(b, scale), small = b_bin_scalar(b, OP_lt, scale, least),
	     zero = aten_like(b, scale, 0);
	Node ratio = f32_of(b, b_bin(b, OP_div, aten_like(b, scale, least), narrow));
	Node width = aten_like(b, scale, (double)(6.1e-5f * (float)(r->qmax - r->qmin)));
	Node no_low = b_bin(b, OP_eq, r->low, zero), no_high = b_bin(b, OP_eq, r->high, zero);
	Node low = b_select(b, no_low, r->low,
			    b_select(b, no_high, b_un(b, OP_neg, width),
				     f32_of(b, b_bin(b, OP_mul, r->low, ratio))));
	Node high = b_select(
		b, no_low, width,
		b_select(b, no_high, r->high, f32_of(b, b_bin(b, OP_mul, r->high, ratio))));
	r->low = b_select(b, small, low, r->low);
	r->high = b_select(b, small, high, r->high);
	return b_select(b, small, aten_like(b, scale, least), scale);
}

static Node range_scale(Build *b, QuantRange *r)
{
	r->low = b_bin_scalar(b, OP_minimum, r->low, 0);
	r->high = b_bin_scalar(b, OP_maximum, r->high, 0);
	Node scale = b_bin_scalar(b, OP_div, b_bin(b, OP_sub, r->high, r->low), r->qmax - r->qmin);
	Node inverse = quant_inverse(b, b_convert(b, scale, DT_f32));
	Node none = b_bin_scalar(b, OP_eq, b_un(b, OP_abs, inverse), INFINITY);
	return raise_scale(b, r, b_select(b, none, aten_like(b, scale, 0.1), scale));
}

/* Returns the zero point from the end of the range whose error is smaller, an integer of the
 * quantised ones. */
static Node range_zero(Build *b, const QuantRange *r, Node scale)
{
	Node low = b_bin(b, OP_div, r->low, scale), high = b_bin(b, OP_div, r->high, scale);
	Node low_error = b_bin(b, OP_sub, aten_like(b, low, fabs(r->qmin)), b_un(b, OP_abs, low));
	Node high_error =
		b_bin(b, OP_sub, aten_like(b, high, fabs(r->qmax)), b_un(b, OP_abs, high));
	Node zero = b_select(b, b_bin(b, OP_lt, low_error, high_error),
			     b_bin(b, OP_sub, aten_like(b, low, r->qmin), low),
			     b_bin(b, OP_sub, aten_like(b, high, r->qmax), high));
	if (r->symmetric)
		zero = b_select(b, r->both, aten_like(b, zero, (r->qmin + r->qmax) / 2), zero);
	zero = b_bin_scalar(b, OP_minimum, b_bin_scalar(b, OP_maximum, zero, r->qmin), r->qmax);
	return b_convert(b, b_un(b, OP_round, zero), DT_i32);
}

static bool range_params(Build *b, Node n, Node low, Node high, Node *scale, Node *zero)
{
	QuantRange r = {.low = b_convert(b, low, DT_f64), .high = b_convert(b, high, DT_f64)};
	r.qmin = (double)aten_int(b, n, "quant_min");
	r.qmax = (double)aten_int(b, n, "quant_max");
	r.symmetric = node_bool(b->g, n, "symmetric_quant");
	r.both = b_bin(b, OP_bit_and, b_bin_scalar(b, OP_lt, r.low, 0),
		       b_bin_scalar(b, OP_gt, r.high, 0));
	if (r.symmetric)
		make_symmetric(b, &r);
	Node wide = range_scale(b, &r);
	*zero = range_zero(b, &r, wide);
	*scale = b_convert(b, wide, DT_f32);
	return scale->i && zero->i;
}

/* Builds (values, mask, running_min, running_max, scale, zero_point). */
static Node build_fused_observed(Build *b, Node n)
{
	Node x = arg(b, n, "self"), low = arg(b, n, "running_min"), high = arg(b, n, "running_max");
	Node scale = arg(b, n, "scale"), zero = arg(b, n, "zero_point"), s, z;
	bool rows = node_bool(b->g, n, "per_row_fake_quant");
	uint32_t rank = aten_rank(b, x);
	if (!x.i || !low.i || !high.i || !scale.i || !zero.i)
		return (Node){0};
	int64_t axis = aten_int(b, n, "ch_axis");
	if (axis >= rank || (rows && axis != 0))
		return b_error(b,
			       "ch_axis is %lld of %u dimensions, expected the first for channels",
			       (long long)axis, rank);
	if (rows && aten_is_empty(b, low))
		return b_error(b, "running_min has no elements, expected one for each channel: run "
				  "the module before it is exported");
	uint32_t all = (1u << rank) - 1, dims = rows ? all & ~1u : all;
	Node observe = aten_truth(b, quant_parameter(b, n, "observer_on", DT_i64));
	Node on = aten_truth(b, quant_parameter(b, n, "fake_quant_on", DT_i64));
	low = aten_detached(b, moved(b, n, low, REDUCE_MIN, dims, observe));
	high = aten_detached(b, moved(b, n, high, REDUCE_MAX, dims, observe));
	if (!low.i || !high.i || !range_params(b, n, low, high, &s, &z))
		return (Node){0};
	Node pair = rows ? fake_per_channel(b, n, s, z, 0) : fake_by_numbers(b, n, s, z);
	pair = fake_if(b, on, pair, x);
	if (!pair.i)
		return pair;
	s = b_select(b, on, shaped_like(b, s, scale), scale);
	z = b_select(b, on, shaped_like(b, z, zero), zero);
	return b_tuple(b, (Node[]){b_get(b, pair, 0), b_get(b, pair, 1), low, high, s, z}, 6);
}
OP(aten__fused_moving_avg_obs_fq_helper_functional){
	.schema = "aten._fused_moving_avg_obs_fq_helper_functional(Tensor self, Tensor "
		  "observer_on, Tensor fake_quant_on, Tensor "
		  "running_min, Tensor running_max, Tensor scale, Tensor zero_point, float "
		  "averaging_const, int quant_min, int "
		  "quant_max, int ch_axis, bool per_row_fake_quant=False, bool "
		  "symmetric_quant=False) -> (Tensor output, Tensor "
		  "mask, Tensor running_min_out, Tensor running_max_out, Tensor scale_out, Tensor "
		  "zero_point_out)",
	.build = build_fused_observed,
	.sample = "f32[n=2, 8] in -2..2, i64[1] of 1, i64[1] of 1, f32[] of -0.7, f32[] of 1.3, "
		  "f32[1], i32[1], averaging_const=0.01, "
		  "quant_min=0, quant_max=255, ch_axis=-1; "
		  "f32[n=2, 8] in -2..3, i64[1] of 1, i64[1] of 1, f32[] of inf, f32[] of -inf, "
		  "f32[1], i32[1], averaging_const=0.01, "
		  "quant_min=-128, quant_max=127, ch_axis=-1, per_row_fake_quant=false, "
		  "symmetric_quant=true; "
		  "f32[2, 8] in -2..3, i64[1] of 1, i64[1] of 0, f32[] of -1, f32[] of 1, f32[1], "
		  "i32[1], averaging_const=0.01, "
		  "quant_min=-128, quant_max=127, ch_axis=-1; "
		  "f32[2, 8] in 0..3, i64[1] of 0, i64[1] of 1, f32[] of 0, f32[] of 0.001, "
		  "f32[1], i32[1], averaging_const=0.01, "
		  "quant_min=0, quant_max=255, ch_axis=-1; "
		  "f32[2, 8] in 0..3, i64[1] of 0, i64[1] of 1, f32[] of 0, f32[] of 0, f32[1], "
		  "i32[1], averaging_const=0.01, "
		  "quant_min=0, quant_max=255, ch_axis=-1; "
		  "f32[2, 8] in -3..2, i64[1] of 1, i64[1] of 1, f32[2] of -1 -0.5, f32[2] of 1 "
		  "0.25, f32[2], i32[2], "
		  "averaging_const=0.25, quant_min=-128, quant_max=127, ch_axis=0, "
		  "per_row_fake_quant=true, symmetric_quant=true",
};
