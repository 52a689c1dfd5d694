/* ATen arithmetic of two operands. */
#include "ops/aten/priv.h"

#include <math.h>

/* ---- sums and products ---- */

/* Returns the dtype in which ATen computes on x, y and z (if any): results are rounded to *d at
 * the end. */
static DType computed_in(const Build *b, Node x, Node y, Node z, DType *d)
{
	*d = b_promote(b, (Node[]){x, y, z}, 3);
	return dtype_compute(*d);
}

/* Returns an operand of dtype d, computed with in c. */
static Node operand(Build *b, Node x, DType d, DType c)
{
	return b_convert(b, b_convert(b, x, d), c);
}

static bool alpha_fits(Build *b, const Attr *a, DType d)
{
	bool complex = a->kind == ATTR_complex, real = a->kind == ATTR_float;
	bool bad = (real && !dtype_is_inexact(d)) || (complex && !dtype_is_complex(d));
	if (bad)
		b_error(b, "alpha is a %s number, the tensors are %s",
			complex ? "complex" : "floating-point", dtype_name(d));
	return !bad;
}

static Attr negated(Build *b, Attr a)
{
	switch (a.kind) {
	case ATTR_float:
		return attr_float(-a.f);
	case ATTR_complex:
		return attr_complex(-a.z.re, -a.z.im);
	case ATTR_bool:
		return attr_int(b->g->ir, -(int64_t)a.b);
	default:
		return attr_sym(sym_muli(b_syms(b), a.s, -1));
	}
}

/* Returns x + alpha y, or x - alpha y: of floats a product and a sum that are rounded once, as
 * PyTorch's kernel computes them. */
static Node add_scaled(Build *b, Node n, Node x, Node y, bool minus)
{
	DType d, c;
	if (!x.i || !y.i)
		return (Node){0};
	c = computed_in(b, x, y, (Node){0}, &d);
	if (minus && (aten_dtype(b, x) == DT_bool || aten_dtype(b, y) == DT_bool))
		return b_error(b, "a bool tensor in a subtraction");
	if (aten_scalar_is(b, n, "alpha", 1))
		return minus ? b_bin(b, OP_sub, x, y) : aten_add(b, x, y);
	Attr a = *node_attr(b->g, n, "alpha");
	if (!alpha_fits(b, &a, d))
		return (Node){0};
	if (minus)
		a = negated(b, a);
	Node in[] = {b_convert(b, aten_scalar_factor(b, &a, d), c), operand(b, y, d, c),
		     operand(b, x, d, c)};
	bool negative = aten_scalar_is(b, n, "alpha", -1);
	if (dtype_is_float(c) && !negative)
		return b_convert(b, b_pointwise(b, OP_fma, in, 3), d);
	return b_convert(b, aten_add(b, in[2], aten_mul(b, in[1], in[0])), d);
}

static Node build_add(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return add_scaled(b, n, x, aten_arg_beside(b, n, "other", x), false);
}
OP(aten_add_Tensor){
	.schema = "aten.add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
	.aliases = "prims.add",
	.promote = PROMOTE_DEFAULT,
	.build = build_add,
	.sample = "f32[n=3, 4], f32[4]; f32[n=3, 4], f32[4], alpha=2.5; "
		  "i32[n=3, 4] in -9..9, i32[4] in -9..9, alpha=3; i64[3], f32[]; "
		  "c64[n=3, 4], c64[4], alpha=complex(2.5, -1)",
	.overloads = (const Overload[]){
		{.schema = "aten.add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
		 .narrow_scalars = true,
		 .sample = "f32[n=3, 4], other=1.25, alpha=3; i32[3] in -9..9, other=7, alpha=2; "
			   "i64[3] in -9..9, other=0.5; bf16[2] of 1 -1, other=0.00391"},
	},
};

static Node build_sub(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return add_scaled(b, n, x, aten_arg_beside(b, n, "other", x), true);
}

static Node build_rsub(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return add_scaled(b, n, aten_arg_beside(b, n, "other", x), x, true);
}
OP(aten_sub_Tensor){
	.schema = "aten.sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
	.aliases = "prims.sub aten.subtract.Tensor",
	.promote = PROMOTE_DEFAULT,
	.build = build_sub,
	.sample = "f32[n=3, 4], f32[4]; f32[n=3, 4], f32[4], alpha=2.5; "
		  "i32[n=3, 4] in -9..9, i32[4] in -9..9, alpha=3; i64[3], f32[]; "
		  "c64[n=3, 4], c64[4], alpha=complex(2.5, -1)",
	.overloads = (const Overload[]){
		{.schema = "aten.sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
		 .aliases = "aten.subtract.Scalar",
		 .narrow_scalars = true,
		 .sample = "f32[n=3, 4], other=1.25, alpha=3; i32[3] in -9..9, other=7, alpha=2; "
			   "i64[3] in -9..9, other=0.5; bf16[2] of 1 -1, other=0.00391"},
		{.schema = "aten.rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> "
			   "Tensor",
		 .build = build_rsub,
		 .sample = "f32[n=3, 4], f32[4]; f32[n=3, 4], f32[4], alpha=2.5; "
			   "i32[n=3, 4] in -9..9, i32[4] in -9..9, alpha=3; i64[3], f32[]"},
		{.schema = "aten.rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
		 .build = build_rsub,
		 .narrow_scalars = true,
		 .sample = "f32[n=3, 4], other=1.25, alpha=3; i32[3] in -9..9, other=7, alpha=2; "
			   "i64[3] in -9..9, other=0.5; bf16[2] of 1 -1, other=0.00391; "
			   "c64[n=3], other=complex(1, 2), alpha=complex(0, 1)"},
	},
};

static Node build_mul(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return aten_mul(b, x, aten_arg_beside(b, n, "other", x));
}
OP(aten_mul_Tensor){
	.schema = "aten.mul.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.mul aten.multiply.Tensor",
	.unrounded_other = true,
	.promote = PROMOTE_DEFAULT,
	.build = build_mul,
	.sample = "f32[n=3, 4], f32[4]; i32[n=3, 4] in -9..9, i32[4] in -9..9; "
		  "bool[4] of 0 0 1 1, bool[4] of 0 1 0 1; u8[4] in 0..255, i8[4] in -128..127; "
		  "f16[4] of 1 3 7 11, f32[] of 0.1; f32[] of 0.1, f16[4] of 1 3 7 11",
	.overloads = (const Overload[]){
		{.schema = "aten.mul.Scalar(Tensor self, Scalar other) -> Tensor",
		 .aliases = "aten.multiply.Scalar",
		 .sample = "f32[n=3, 4], other=-1.75; i32[3] in -9..9, other=7; "
			   "i64[3] in -9..9, other=0.5; f64[n=3, 4], other=complex(0.5, -1); "
			   "i32[3], other=complex(0.5, -1)"},
	},
};

OP(aten_div_Tensor){
	.schema = "aten.div.Tensor(Tensor self, Tensor other) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.unrounded_other = true,
	.expand = "div(self, other)",
	.sample = "f32[n=3, 4], f32[4] of 0.5 -1.5 2 3.25; i32[n=3, 4] in -9..9, "
		  "i32[4] of 2 -3 4 1; bf16[4] of 1 3 7 11, f32[] of 0.3",
	.overloads = (const Overload[]){
		{.schema = "aten.divide.Tensor(Tensor self, Tensor other) -> Tensor"},
		{.schema = "aten.true_divide.Tensor(Tensor self, Tensor other) -> Tensor"},
		{.schema = "aten.div.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4], other=-1.75; i32[3] in -9..9, other=4; "
			   "c64[n=3, 4], other=complex(0.5, -1)"},
		{.schema = "aten.divide.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4], other=-1.75; i32[3] in -9..9, other=4"},
		{.schema = "aten.true_divide.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4], other=-1.75; i32[3] in -9..9, other=4"},
	},
};

/* Tells whether integers are divided by a constant 0, which ATen refuses where there are
 * elements. */
static bool divides_by_zero(Build *b, Node x, Node y)
{
	Attr v;
	int64_t i;
	DType d = x.i && y.i ? b_promote(b, (Node[]){x, y}, 2) : DT_none;
	if (d == DT_none || dtype_is_inexact(d) || aten_is_empty(b, x) || aten_is_empty(b, y) ||
	    !b_splat(b, y, &v))
		return false;
	bool zero = v.kind == ATTR_bool ? !v.b : sym_is_const(b_syms(b), v.s, &i) && i == 0;
	if (zero)
		b_error(b, "integers are divided by zero");
	return zero;
}

/* Builds floordiv, remainder, fmod of two tensors or of a tensor and a scalar on either side. */
static Node int_divide(Build *b, Node n, int op)
{
	uint32_t first;
	Node x = node_args(b->g, n, "self", &first) ? arg(b, n, "self") : (Node){0};
	Node y = node_args(b->g, n, "other", &first) ? arg(b, n, "other") : (Node){0};
	if (!x.i && y.i)
		x = aten_scalar_arg(b, n, "self", y);
	else if (!y.i && x.i)
		y = aten_scalar_arg(b, n, "other", x);
	return divides_by_zero(b, x, y) ? (Node){0} : b_bin(b, (Op)op, x, y);
}

/* Divides towards zero. ATen's kernels round the quotient of two tensors of a storage type
 * first, that by a scalar or by a tensor of one element not. */
static Node divide_trunc(Build *b, Node x, Node y, bool by_scalar)
{
	DType d = node_dtype(b->g, x), wide = dtype_compute(d);
	if (wide == d || by_scalar ||
	    sym_eq(b_syms(b), type_numel(b->g->ir, node_type_id(b->g, y)), b_int(b, 1)) == YES)
		x = b_bin(b, OP_div, b_convert(b, x, wide), b_convert(b, y, wide));
	else
		x = b_convert(b, b_bin(b, OP_div, x, y), wide);
	return b_convert(b, b_un(b, OP_trunc, x), d);
}

static Node build_div_mode(Build *b, Node n)
{
	const bool by_scalar = !aten_is_tensor(b, n, "other");
	Node x = arg(b, n, "self"), y = aten_arg_beside(b, n, "other", x);
	bool rounds = aten_has(b, n, "rounding_mode");
	if (!aten_check_word(b, n, "rounding_mode", "floor trunc"))
		return (Node){0};
	if (rounds && divides_by_zero(b, x, y))
		return (Node){0};
	if (aten_is(b, n, "rounding_mode", "floor"))
		return b_bin(b, OP_floordiv, x, y);
	bool trunc = aten_is(b, n, "rounding_mode", "trunc");
	DType d = aten_dtype(b, x), e = aten_dtype(b, y);
	if (trunc && !dtype_is_float(d) && !dtype_is_float(e)) {
		Node r = b_bin(b, OP_fmod, x, y);
		return b_bin(b, OP_floordiv, b_bin(b, OP_sub, x, r), y);
	}
	if (!x.i || !y.i)
		return (Node){0};
	DType common = dtype_to_float(b_promote(b, (Node[]){x, y}, 2));
	y = b_convert(b, y, common);
	x = b_convert(b, x, common);
	return trunc ? divide_trunc(b, x, y, by_scalar) : b_bin(b, OP_div, x, y);
}

OP(aten_div_Tensor_mode){
	.schema = "aten.div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> "
		  "Tensor",
	.aliases = "aten.divide.Tensor_mode",
	.unrounded_other = true,
	.promote = PROMOTE_DEFAULT,
	.build = build_div_mode,
	.sample = "f32[n=3, 4], f32[4] of 0.5 -1.5 2 3.25, rounding_mode=\"floor\"; "
		  "i32[n=3, 4] in -9..9, i32[4] of 2 -3 4 1, rounding_mode=\"trunc\"; "
		  "f32[n=3, 4], f32[4] of 0.5 -1.5 2 3.25, rounding_mode=\"trunc\"; "
		  "i32[n=3, 4] in -9..9, i32[4] of 2 -3 4 1, rounding_mode=\"floor\"; "
		  "f32[n=3, 4], f32[4] of 0.5 -1.5 2 3.25, rounding_mode=none",
	.overloads = (const Overload[]){
		{.schema = "aten.div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) "
			   "-> Tensor",
		 .aliases = "aten.divide.Scalar_mode",
		 .sample = "f32[n=3, 4], other=-0.75, rounding_mode=\"floor\"; "
			   "i32[4] in -9..9, other=4, rounding_mode=\"trunc\"; "
			   "i32[4] in -9..9, other=-4, rounding_mode=\"floor\""},
	},
};

OP(aten_floor_divide){
	.schema = "aten.floor_divide(Tensor self, Tensor other) -> Tensor",
	.aliases = "aten.floor_divide.Tensor", /* x //= y, without its underscore */
	.unrounded_other = true,
	.promote = PROMOTE_DEFAULT,
	.build_as = {int_divide, OP_floordiv},
	.sample = "f32[n=3, 4], f32[4] of 0.5 -1.5 2 3.25; i32[n=3, 4] in -9..9, "
		  "i32[4] of 2 -3 4 1; f16[4] of 1 3 7 11, f32[] of 0.1; "
		  "bf16[4] of 1 3 7 11, f16[] of 0.3",
	.overloads = (const Overload[]){
		{.schema = "aten.floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4], other=-0.75; i32[4] in -9..9, other=-4; "
			   "bf16[2] of 4 9, other=1.1"},
	},
};
OP(aten_remainder_Tensor){
	.schema = "aten.remainder.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.remainder",
	.promote = PROMOTE_DEFAULT,
	.build_as = {int_divide, OP_remainder},
	.sample = "f32[n=3, 4], f32[4] of 0.5 -1.5 2 3.25; i32[n=3, 4] in -9..9, "
		  "i32[4] of 2 -3 4 1",
	.overloads = (const Overload[]){
		{.schema = "aten.remainder.Scalar(Tensor self, Scalar other) -> Tensor",
		 .narrow_scalars = true,
		 .sample = "f32[n=3, 4], other=-0.75; i32[4] in -9..9, other=-4; "
			   "bf16[2] of 4 9, other=1.1"},
		{.schema = "aten.remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
		 .narrow_scalars = true,
		 .sample = "self=7.25, f32[n=4] of 0.5 -1.5 2 3.25; self=-7, i32[4] of 2 -3 4 1; "
			   "self=9.01, bf16[2] of 1.1015625 2"},
	},
};
OP(aten_fmod_Tensor){
	.schema = "aten.fmod.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.fmod",
	.promote = PROMOTE_DEFAULT,
	.build_as = {int_divide, OP_fmod},
	.sample = "f32[n=3, 4], f32[4] of 0.5 -1.5 2 3.25; i32[n=3, 4] in -9..9, "
		  "i32[4] of 2 -3 4 1",
	.overloads = (const Overload[]){
		{.schema = "aten.fmod.Scalar(Tensor self, Scalar other) -> Tensor",
		 .narrow_scalars = true,
		 .sample = "f32[n=3, 4], other=-0.75; i32[4] in -9..9, other=-4; "
			   "bf16[2] of 4 9, other=1.1"},
	},
};
OP(aten_atan2){
	.schema = "aten.atan2(Tensor self, Tensor other) -> Tensor",
	.autocast_gpu = AUTOCAST_WIDEST,
	.aliases = "prims.atan2",
	.promote = PROMOTE_FLOAT,
	.expand = "atan2(self, other)",
	.sample = "f32[n=2, 6] of -1 -1 -1 0 0 1 1 1 2 -3 0.5 4, f32[6] of -1 0 1 1 -1 0.5; "
		  "i32[4] in -3..3, i32[4] in 1..5",
	.overloads = (const Overload[]){
		{.schema = "aten.arctan2(Tensor self, Tensor other) -> Tensor"},
	},
};
OP(aten_hypot){
	.schema = "aten.hypot(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.hypot",
	.promote = PROMOTE_DEFAULT,
	.expand = "hypot(self, other)",
	.sample = "f32[n=3, 4], f32[4]",
};
OP(aten_copysign_Tensor){
	.schema = "aten.copysign.Tensor(Tensor self, Tensor other) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "copysign(self, other)",
	.sample = "f32[n=2, 4] of 1 -2 0 -0 3 -4 5 -6, f32[4] of -1 1 -0.0 0; "
		  "i32[4] in -4..4, i32[4] in -4..4",
	.overloads = (const Overload[]){
		{.schema = "aten.copysign.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4], other=-2.0; i32[4] in -4..4, other=1"},
	},
};

/* Finds the next number of types that numbers are stored in: bits as an integer grow with the
 * magnitude. */
static Node next_bits(Build *b, Node x, Node y, DType d)
{
	Node up = b_bin(b, OP_lt, x, y), positive = b_bin_scalar(b, OP_gt, x, 0);
	Node step = b_select(b, b_bin(b, OP_eq, up, positive), b_scalar(b, DT_i16, 1),
			     b_scalar(b, DT_i16, -1));
	Node r = b_bin(b, OP_add, aten_bitcast(b, x, DT_i16), step);
	r = b_select(b, b_bin_scalar(b, OP_eq, x, 0),
		     b_select(b, up, b_scalar(b, DT_i16, 1), b_scalar(b, DT_i16, INT16_MIN + 1)),
		     r);
	r = b_select(b, b_bin(b, OP_eq, x, y), y, aten_bitcast(b, r, d));
	Node none = b_bin(b, OP_bit_or, b_un(b, OP_isnan, x), b_un(b, OP_isnan, y));
	return b_select(b, none, b_bin(b, OP_add, x, y), r);
}

static Node build_nextafter(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "other");
	if (!x.i || !y.i)
		return (Node){0};
	DType d = b_promote(b, (Node[]){x, y}, 2);
	x = b_convert(b, x, d);
	y = b_convert(b, y, d);
	return d == DT_f16 || d == DT_bf16 ? next_bits(b, x, y, d) : b_bin(b, OP_nextafter, x, y);
}
OP(aten_nextafter){
	.schema = "aten.nextafter(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.nextafter",
	.rounds_each = true,
	.build = build_nextafter,
	.deriv = {"select(eq(self, other), 0.0, 1.0)", "0"}, /* as PyTorch has it */
	.sample = "f32[n=2, 4] of 1 -2 0 3 1 -2 0 5, f32[4] of -1 1 2 5; "
		  "bf16[8] of 1 -2 0 0 3 -1 inf nan, bf16[8] of -1 1 2 -5 3 -7 1 1; "
		  "f16[4] of 1 -2 0 65504, f32[] of 0.1",
};
OP(aten_fmax){
	.schema = "aten.fmax(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.fmax",
	.promote = PROMOTE_DEFAULT,
	.expand = "fmax(self, other)",
	.sample = "f32[n=2, 4] of 1 -2 nan -0.5 3 -4 5 nan, f32[4] of -1 1 2 nan; "
		  "i32[n=3, 4] in -9..9, i32[4] in -9..9",
};
OP(aten_fmin){
	.schema = "aten.fmin(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.fmin",
	.promote = PROMOTE_DEFAULT,
	.expand = "fmin(self, other)",
	.sample = "f32[n=2, 4] of 1 -2 nan -0.5 3 -4 5 nan, f32[4] of -1 1 2 nan; "
		  "i32[n=3, 4] in -9..9, i32[4] in -9..9",
};
OP(aten_maximum){
	.schema = "aten.maximum(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.maximum",
	.promote = PROMOTE_DEFAULT,
	.expand = "maximum(self, other)",
	.sample = "f32[n=2, 4] of 1 -2 nan -0.5 3 -4 5 nan, f32[4] of -1 1 2 nan; "
		  "i32[n=3, 4] in -9..9, i32[4] in -9..9",
	.overloads = (const Overload[]){
		{.schema = "aten.max.other(Tensor self, Tensor other) -> Tensor"},
	},
};
OP(aten_minimum){
	.schema = "aten.minimum(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.minimum",
	.promote = PROMOTE_DEFAULT,
	.expand = "minimum(self, other)",
	.sample = "f32[n=2, 4] of 1 -2 nan -0.5 3 -4 5 nan, f32[4] of -1 1 2 nan; "
		  "i32[n=3, 4] in -9..9, i32[4] in -9..9",
	.overloads = (const Overload[]){
		{.schema = "aten.min.other(Tensor self, Tensor other) -> Tensor"},
	},
};

static Node log_of_sum(Build *b, Op exp, Op log, Node x, Node y)
{
	DType d = b_promote(b, (Node[]){x, y}, 2);
	bool complex = dtype_is_complex(d);
	x = b_convert(b, x, d);
	y = b_convert(b, y, d);
	Node first =
		complex ? b_bin(b, OP_ge, b_part(b, x, false), b_part(b, y, false)) : (Node){0};
	Node high = complex ? b_select(b, first, x, y) : b_bin(b, OP_maximum, x, y);
	Node low = complex ? b_select(b, first, y, x) : b_bin(b, OP_minimum, x, y);
	Node e = b_un(b, exp, b_bin(b, OP_sub, low, high));
	Node sum = b_un(b, OP_log1p, e);
	if (log == OP_log2)
		sum = b_bin_scalar(b, OP_mul, sum, 1.4426950408889634);
	/* Equal infinities would give inf - inf; equal numbers share the slope, which is that of
	 * the sum. */
	Node same = b_bin(b, OP_eq, low, high);
	if (complex)
		same = b_bin(
			b, OP_bit_and, same,
			b_bin_scalar(b, OP_eq, b_un(b, OP_abs, b_part(b, high, false)), HUGE_VAL));
	Node twice = b_bin_scalar(b, OP_add, high, log == OP_log ? 0.6931471805599453 : 1);
	return b_select(b, same, twice, b_bin(b, OP_add, high, sum));
}

static Node build_logaddexp(Build *b, Node n)
{
	return log_of_sum(b, OP_exp, OP_log, arg(b, n, "self"), arg(b, n, "other"));
}
OP(aten_logaddexp){
	.schema = "aten.logaddexp(Tensor self, Tensor other) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.build = build_logaddexp,
	.deriv = {"sigmoid(self - other)", "sigmoid(other - self)"},
	.sample = "f32[n=2, 4] of 1 -2 3 -0.5 300 -inf -inf 5, f32[4] of -1 1 -inf 4",
};

static Node build_logaddexp2(Build *b, Node n)
{
	return log_of_sum(b, OP_exp2, OP_log2, arg(b, n, "self"), arg(b, n, "other"));
}
OP(aten_logaddexp2){
	.schema = "aten.logaddexp2(Tensor self, Tensor other) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.build = build_logaddexp2,
	.deriv = {"sigmoid((self - other) * 0.6931471805599453)", "sigmoid((other - self) * "
								  "0.6931471805599453)"},
	.sample = "f32[n=2, 4] of 1 -2 3 -0.5 300 -inf -inf 5, f32[4] of -1 1 -inf 4",
};

/* Returns x log(y), or x log(1 + y): 0 for x = 0 unless y is NaN. Either may be a scalar. */
static Node xlogy(Build *b, Node n, int plus_one)
{
	const Attr *sx = node_attr(b->g, n, "self"), *sy = node_attr(b->g, n, "other");
	uint32_t first;
	Node x = node_args(b->g, n, "self", &first) ? arg(b, n, "self") : (Node){0};
	Node y = node_args(b->g, n, "other", &first) ? arg(b, n, "other") : (Node){0};
	if (!x.i && !y.i)
		return (Node){0};
	DType d = b_promote(b, (Node[]){x, y}, 2);
	d = dtype_to_float(aten_scalar_dtype(d, !x.i ? sx : sy));
	x = x.i ? b_convert(b, x, d) : aten_scalar_factor(b, sx, d);
	y = y.i ? b_convert(b, y, d) : aten_scalar_factor(b, sy, d);
	Node l = b_un(b, plus_one ? OP_log1p : OP_log, y);
	Node p = b_bin(b, OP_mul, x, l);
	Node zero = b_bin_scalar(b, OP_eq, x, 0);
	Node r = b_select(b, zero, aten_like(b, p, 0), p);
	Node is_nan = b_un(b, OP_isnan, y);
	return b_select(b, is_nan, aten_like(b, p, (double)NAN), r);
}

OP(aten_xlogy_Tensor){
	.schema = "aten.xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "aten.special_xlogy",
	.promote = PROMOTE_FLOAT,
	.build_as = {xlogy, false},
	.deriv = {"select(bit_and(eq(self, 0), le(other, 0)), 0, log(other))", "self / other"},
	.sample = "f32[n=2, 4] of 0 -2 1.5 -0.5 0 3 0.25 0, f32[4] of 0 1 0.75 4; "
		  "f32[2] of 0 1, f32[2] of nan 2",
};
OP(aten_xlogy_Scalar_Other){
	.schema = "aten.xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
	.aliases = "aten.special_xlogy.other_scalar",
	.build_as = {xlogy, false},
	.deriv = {"select(bit_and(eq(self, 0), le(other, 0)), 0, log(other))"},
	.sample = "f32[n=3, 4], other=2.5; f32[n=3, 4], other=0",
};
OP(aten_xlogy_Scalar_Self){
	.schema = "aten.xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
	.aliases = "aten.special_xlogy.self_scalar",
	.build_as = {xlogy, false},
	.deriv = {"self / other"},
	.sample = "self=1.5, f32[n=2, 3] in 0.5..4; self=0, f32[3] of 0 nan 2",
};
OP(aten_special_xlog1py){
	.schema = "aten.special_xlog1py(Tensor self, Tensor other) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.build_as = {xlogy, true},
	.deriv = {"select(bit_and(eq(self, 0), le(other, -1)), 0, log1p(other))", "self / (other + 1)"},
	.sample = "f32[n=2, 4] of 0 -2 1.5 -0.5 0 3 0.25 0, f32[4] of 0 1 0.75 4; "
		  "f32[3] of 0 1 0, f32[3] of nan 2 -1",
};
OP(aten_special_xlog1py_other_scalar){
	.schema = "aten.special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor",
	.build_as = {xlogy, true},
	.deriv = {"select(bit_and(eq(self, 0), le(other, -1)), 0, log1p(other))"},
	.sample = "f32[n=3, 4], other=2.5",
};
OP(aten_special_xlog1py_self_scalar){
	.schema = "aten.special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor",
	.build_as = {xlogy, true},
	.deriv = {"self / (other + 1)"},
	.sample = "self=1.5, f32[n=2, 3] in -0.5..4",
};

/* ---- powers ---- */

static Node pow_scalar(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	const Attr *a = node_attr(b->g, n, "exponent");
	Node y = aten_scalar_as(b, a, aten_scalar_dtype(aten_dtype(b, x), a));
	int64_t e = 0;
	if (!x.i || !y.i)
		return (Node){0};
	DType d = node_dtype(b->g, y);
	Shape s = aten_shape(b, x);
	x = b_convert(b, x, d);
	bool whole = a->kind == ATTR_int && sym_is_const(b_syms(b), a->s, &e);
	if (!dtype_is_inexact(d) && whole && e < 0)
		return b_error(b, "integers to the power %lld", (long long)e);
	if (!dtype_is_float(d) && whole && e > 0)
		return b_power(b, x, e);
	for (e = 1; e <= 3; e++)
		if (aten_scalar_is(b, n, "exponent", (double)e))
			return b_power(b, x, e);
	if (aten_scalar_is(b, n, "exponent", 0))
		return dtype_is_float(d) ? b_full(b, d, 1, s.rank, s.dim)
					 : b_full_int(b, d, 1, s.rank, s.dim);
	if (dtype_is_inexact(d)) {
		/* which are not pow at -inf and -0; of f16 PyTorch takes pow there */
		bool roots = d != DT_f16;
		if (roots && aten_scalar_is(b, n, "exponent", 0.5))
			return b_un(b, OP_sqrt, x);
		if (roots && aten_scalar_is(b, n, "exponent", -0.5))
			return b_un(b, OP_rsqrt, x);
		if (aten_scalar_is(b, n, "exponent", -1))
			return b_un(b, OP_reciprocal, x);
		if (aten_scalar_is(b, n, "exponent", -2))
			/* whose derivative at 0 is no product of 0 and infinity */
			return b_power(b, b_un(b, OP_reciprocal, x), 2);
	}
	return b_bin(b, OP_pow, x, y);
}
/* Returns bools as i64 where the file has that, by which what follows goes; eager PyTorch gives
 * bools. */
static Node build_pow_scalar(Build *b, Node n)
{
	Node y = pow_scalar(b, n);
	bool as_i64 = aten_dtype(b, y) == DT_bool && aten_result_dtype(b, n, 0, DT_bool) == DT_i64;
	return as_i64 ? b_convert(b, y, DT_i64) : y;
}
OP(aten_pow_Tensor_Scalar){
	.schema = "aten.pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_pow_scalar,
	.narrow_scalars = true,
	.sample = "f32[n=3, 4], exponent=3; f32[n=4] in 0.5..4, exponent=-1.5; "
		  "f32[4] in 0.5..4, exponent=0.5; f32[n=3, 4], exponent=2; "
		  "f32[4] in 0.5..4, exponent=-0.5; i32[4] in -4..4, exponent=3; "
		  "f32[n=3, 4], exponent=0; f32[4] in 0.5..4, exponent=-1; "
		  "c64[n=3] of 1 1 -2 0.5, exponent=-2; c64[3] of 0 0 1 1 -2 0.5, exponent=0.25; "
		  "f16[4] of -inf -0 inf 4, exponent=0.5; f16[4] of -inf -0 inf 4, exponent=-0.5",
};
OP(aten_pow_Tensor_Tensor){
	.schema = "aten.pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.promote = PROMOTE_DEFAULT,
	.expand = "pow(self, exponent)",
	.sample = "f32[n=3, 4] in 0.25..4, f32[4] of -1.5 0 2 3.5; f32[4] of -2 0 -1 0, "
		  "f32[4] of 3 0 -2 2; i32[4] in -4..4, i32[4] in 0..4",
	.overloads = (const Overload[]){
		{.schema = "aten.pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
		 .narrow_scalars = true,
		 .sample = "self=2.5, f32[n=3, 4]; self=3, i32[4] in 0..5; "
			   "self=1.1, bf16[2] of 3 5"},
	},
};

static Node build_float_power(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "exponent");
	if (!x.i || !y.i)
		return (Node){0};
	bool complex =
		dtype_is_complex(node_dtype(b->g, x)) || dtype_is_complex(node_dtype(b->g, y));
	DType d = complex ? DT_c128 : DT_f64;
	return b_bin(b, OP_pow, b_convert(b, x, d), b_convert(b, y, d));
}

static Node build_float_power_scalar(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Attr attr[] = {attr_none(), *node_attr(b->g, n, "exponent")};
	x = b_convert(b, x, DT_f64);
	return x.i ? b_node(b, OP_aten_pow_Tensor_Scalar, &x, 1, attr, 2) : x;
}

static Node build_float_power_base(Build *b, Node n)
{
	Node x = aten_scalar_as(b, node_attr(b->g, n, "self"), DT_f64), y = arg(b, n, "exponent");
	return y.i ? b_bin(b, OP_pow, x, b_convert(b, y, DT_f64)) : y;
}
OP(aten_float_power_Tensor_Tensor){
	.schema = "aten.float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
	.build = build_float_power,
	.sample = "f32[n=3, 4] in 0.25..4, f32[4] of -1.5 0 2 3.5; f32[4] of -2 0 -1 0, "
		  "f32[4] of 3 0 -2 2; i32[4] in -4..4, i32[4] in 0..4",
	.overloads = (const Overload[]){
		{.schema = "aten.float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
		 .build = build_float_power_scalar,
		 .sample = "f32[n=3, 4], exponent=3; f32[n=4] in 0.5..4, exponent=-1.5; "
			   "f32[4] in 0.5..4, exponent=0.5; f32[n=3, 4], exponent=2; "
			   "f32[4] in 0.5..4, exponent=-0.5; i32[4] in -4..4, exponent=3; "
			   "f32[n=3, 4], exponent=0; f32[4] in 0.5..4, exponent=-1"},
		{.schema = "aten.float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
		 .build = build_float_power_base,
		 .sample = "self=2.5, f32[n=3, 4]; self=3, i32[4] in 0..5; "
			   "self=1.1, bf16[2] of 3 5"},
	},
};

/* Returns x * 2^y. An integer y changes the exponent alone: in two steps, because 2^y itself may
 * be out of range. */
static Node build_ldexp(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "other");
	DType e = aten_dtype(b, y), d = dtype_to_float(aten_dtype(b, x));
	if (e != DT_bool && !dtype_is_int(e))
		return b_bin(b, OP_mul, x, b_un(b, OP_exp2, y));
	y = b_convert(b, y, DT_i64);
	y = b_bin_scalar(b, OP_minimum, b_bin_scalar(b, OP_maximum, y, -2200), 2200);
	Node half = b_bin_scalar(b, OP_shift_right, y, 1), rest = b_bin(b, OP_sub, y, half);
	x = b_convert(b, x, DT_f64);
	x = b_bin(b, OP_mul, x, b_un(b, OP_exp2, b_convert(b, half, DT_f64)));
	x = b_bin(b, OP_mul, x, b_un(b, OP_exp2, b_convert(b, rest, DT_f64)));
	return b_convert(b, x, d);
}
OP(aten_ldexp_Tensor){
	.schema = "aten.ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
	.unrounded_other = true,
	.build = build_ldexp,
	.sample = "f32[n=3, 4], i32[4] of -3 0 2 5; f32[2], f32[2] of 1.5 -2; "
		  "f32[4] of 1e-38 1e38 3 5e-40, i64[4] of 200 -160 -130 140; "
		  "i64[2], f16[2] of 1.5 -2",
};

/* ---- fused arithmetic ---- */

/* Returns self + value * tensor1 * tensor2, or / tensor2, in that order and in one dtype. */
static Node add_combined(Build *b, Node n, int op)
{
	Node x = arg(b, n, "self"), t1 = arg(b, n, "tensor1"), t2 = arg(b, n, "tensor2");
	DType d, c;
	if (!x.i || !t1.i || !t2.i)
		return (Node){0};
	c = computed_in(b, x, t1, t2, &d);
	Node p = aten_scaled(b, operand(b, t1, d, c), n, "value");
	t2 = operand(b, t2, d, c);
	p = (Op)op == OP_mul ? aten_mul(b, p, t2) : b_bin(b, (Op)op, p, t2);
	return b_convert(b, aten_add(b, operand(b, x, d, c), p), d);
}

OP(aten_addcmul){
	.schema = "aten.addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) "
		  "-> Tensor",
	.autocast_gpu = AUTOCAST_WIDEST,
	.build_as = {add_combined, OP_mul},
	.sample = "f32[n=3, 4], f32[n, 1], f32[4]; f32[n=3, 4], f32[n, 1], f32[4], value=2.5; "
		  "i32[4] in -9..9, i32[4] in -9..9, i32[4] in -9..9, value=3",
	.overloads = (const Overload[]){
		{.schema = "aten.addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar "
			   "value=1) -> Tensor",
		 .build_as = {add_combined, OP_div},
		 .sample = "f32[n=3, 4], f32[n, 1], f32[4] of 0.5 -1.5 2 3.25; "
			   "f32[n=3, 4], f32[n, 1], f32[4] of 0.5 -1.5 2 3.25, value=2.5"},
	},
};

/* Tells where |w| < 1/2. */
static Node is_small(Build *b, Node w)
{
	if (!dtype_is_complex(aten_dtype(b, w)))
		return b_bin_scalar(b, OP_lt, b_un(b, OP_abs, w), 0.5);
	Node re = b_part(b, w, false), im = b_part(b, w, true);
	return b_bin_scalar(b, OP_lt,
			    b_bin(b, OP_add, b_bin(b, OP_mul, re, re), b_bin(b, OP_mul, im, im)),
			    0.25);
}

/* Computes the form that is exact at the nearer end, as ATen. */
static Node build_lerp(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "end"), w = aten_arg_beside(b, n, "weight", x);
	Node d = b_bin(b, OP_sub, y, x);
	Node low = b_bin(b, OP_mul, w, d);
	low = b_bin(b, OP_add, x, low);
	Node rest = b_bin(b, OP_sub, aten_like(b, w, 1), w);
	Node high = b_bin(b, OP_sub, y, b_bin(b, OP_mul, d, rest));
	return b_select(b, is_small(b, w), low, high);
}

OP(aten_lerp_Tensor){
	.schema = "aten.lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
	.build = build_lerp,
	.sample = "f32[n=3, 4], f32[n, 1], f32[4] of 0.25 0.5 0.75 -2",
	.overloads = (const Overload[]){
		{.schema = "aten.lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
		 .sample = "f32[n=3, 4], f32[n, 1], weight=0.25; "
			   "f32[n=3, 4], f32[n, 1], weight=0.75; "
			   "c64[n=3, 4], c64[n, 1], weight=complex(0.25, -0.375); "
			   "c64[n=3, 4], c64[n, 1], weight=complex(0.25, 0.5)"},
	},
};
