/* ATen functions of one operand. */
#include "ops/aten/priv.h"

#include <math.h>

/* ---- functions of one float operand ---- */

OP(aten_exp){
	.schema = "aten.exp(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.exp",
	.promote = PROMOTE_FLOAT,
	.expand = "exp(self)",
	.sample = "f32[n=3, 4] in -3..3; i32[4] in -3..3; f32[5] of nan inf -inf 89 -104",
};
OP(aten_exp2){
	.schema = "aten.exp2(Tensor self) -> Tensor",
	.aliases = "prims.exp2",
	.promote = PROMOTE_FLOAT,
	.expand = "exp2(self)",
	.sample = "f32[n=3, 4] in -3..3; i32[4] in -3..3; f32[5] of nan inf -inf 89 -104",
	.overloads = (const Overload[]){
		{.schema = "aten.special_exp2(Tensor self) -> Tensor"},
	},
};
OP(aten_expm1){
	.schema = "aten.expm1(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.expm1",
	.promote = PROMOTE_FLOAT,
	.expand = "expm1(self)",
	.sample = "f32[n=3, 4] in -3..3; i32[4] in -3..3; f32[5] of nan inf -inf 89 -104",
	.overloads = (const Overload[]){
		{.schema = "aten.special_expm1(Tensor self) -> Tensor"},
	},
};
OP(aten_log){
	.schema = "aten.log(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.log",
	.promote = PROMOTE_FLOAT,
	.expand = "log(self)",
	.sample = "f32[n=3, 4] in 0.0625..4; i32[4] in 1..9; f32[4] of 0 -1 inf nan",
};
OP(aten_log2){
	.schema = "aten.log2(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.log2",
	.promote = PROMOTE_FLOAT,
	.expand = "log2(self)",
	.sample = "f32[n=3, 4] in 0.0625..4; i32[4] in 1..9; f32[4] of 0 -1 inf nan",
};
OP(aten_log10){
	.schema = "aten.log10(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.log10",
	.promote = PROMOTE_FLOAT,
	.expand = "log10(self)",
	.sample = "f32[n=3, 4] in 0.0625..4; i32[4] in 1..9; f32[4] of 0 -1 inf nan",
};
OP(aten_log1p){
	.schema = "aten.log1p(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.log1p",
	.promote = PROMOTE_FLOAT,
	.expand = "log1p(self)",
	.sample = "f32[n=3, 4] in -0.9..4; i32[4] in 0..9",
	.overloads = (const Overload[]){
		{.schema = "aten.special_log1p(Tensor self) -> Tensor"},
	},
};
OP(aten_sin){
	.schema = "aten.sin(Tensor self) -> Tensor",
	.aliases = "prims.sin",
	.promote = PROMOTE_FLOAT,
	.expand = "sin(self)",
	.sample = "f32[n=3, 4] in -8..8; i32[4] in -9..9; f32[3] of 1000.5 -77777 1e10",
};
OP(aten_cos){
	.schema = "aten.cos(Tensor self) -> Tensor",
	.aliases = "prims.cos",
	.promote = PROMOTE_FLOAT,
	.expand = "cos(self)",
	.sample = "f32[n=3, 4] in -8..8; i32[4] in -9..9; f32[3] of 1000.5 -77777 1e10",
};
OP(aten_tan){
	.schema = "aten.tan(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.tan",
	.promote = PROMOTE_FLOAT,
	.expand = "tan(self)",
	.sample = "f32[n=3, 4] in -8..8; i32[4] in -9..9; f32[3] of 1000.5 -77777 1e10",
};
OP(aten_asin){
	.schema = "aten.asin(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.asin",
	.promote = PROMOTE_FLOAT,
	.expand = "asin(self)",
	.sample = "f32[n=3, 4] in -1..1; f32[2] of 1.5 -2",
	.overloads = (const Overload[]){
		{.schema = "aten.arcsin(Tensor self) -> Tensor"},
	},
};
OP(aten_acos){
	.schema = "aten.acos(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.acos",
	.promote = PROMOTE_FLOAT,
	.expand = "acos(self)",
	.sample = "f32[n=3, 4] in -1..1; f32[2] of 1.5 -2",
	.overloads = (const Overload[]){
		{.schema = "aten.arccos(Tensor self) -> Tensor"},
	},
};
OP(aten_atan){
	.schema = "aten.atan(Tensor self) -> Tensor",
	.aliases = "prims.atan",
	.promote = PROMOTE_FLOAT,
	.expand = "atan(self)",
	.sample = "f32[n=3, 4] in -4..4; f32[4] of 0.001 -30 30 inf",
	.overloads = (const Overload[]){
		{.schema = "aten.arctan(Tensor self) -> Tensor"},
	},
};
OP(aten_sinh){
	.schema = "aten.sinh(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.sinh",
	.promote = PROMOTE_FLOAT,
	.expand = "sinh(self)",
	.sample = "f32[n=3, 4] in -4..4; f32[4] of 0.001 -30 30 inf",
};
OP(aten_cosh){
	.schema = "aten.cosh(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.cosh",
	.promote = PROMOTE_FLOAT,
	.expand = "cosh(self)",
	.sample = "f32[n=3, 4] in -4..4; f32[4] of 0.001 -30 30 inf",
};
OP(aten_tanh){
	.schema = "aten.tanh(Tensor self) -> Tensor",
	.aliases = "prims.tanh",
	.promote = PROMOTE_FLOAT,
	.expand = "tanh(self)",
	.sample = "f32[n=3, 4] in -4..4; f32[4] of 0.001 -30 30 inf",
};
OP(aten_asinh){
	.schema = "aten.asinh(Tensor self) -> Tensor",
	.aliases = "prims.asinh",
	.promote = PROMOTE_FLOAT,
	.expand = "asinh(self)",
	.sample = "f32[n=3, 4] in -4..4; f32[4] of 0.001 -30 30 inf",
	.overloads = (const Overload[]){
		{.schema = "aten.arcsinh(Tensor self) -> Tensor"},
	},
};
OP(aten_acosh){
	.schema = "aten.acosh(Tensor self) -> Tensor",
	.aliases = "prims.acosh",
	.promote = PROMOTE_FLOAT,
	.expand = "acosh(self)",
	.sample = "f32[n=3, 4] in 1..8; f32[3] of 0.5 1 1e10",
	.overloads = (const Overload[]){
		{.schema = "aten.arccosh(Tensor self) -> Tensor"},
	},
};
OP(aten_atanh){
	.schema = "aten.atanh(Tensor self) -> Tensor",
	.aliases = "prims.atanh",
	.promote = PROMOTE_FLOAT,
	.expand = "atanh(self)",
	.sample = "f32[n=3, 4] in -0.9..0.9; f32[3] of 1 -1 2",
	.overloads = (const Overload[]){
		{.schema = "aten.arctanh(Tensor self) -> Tensor"},
	},
};
OP(aten_erf){
	.schema = "aten.erf(Tensor self) -> Tensor",
	.aliases = "prims.erf",
	.promote = PROMOTE_FLOAT,
	.expand = "erf(self)",
	.sample = "f32[n=3, 4] in -3..3; f32[4] of 0.001 -6 9 inf",
	.overloads = (const Overload[]){
		{.schema = "aten.special_erf(Tensor self) -> Tensor"},
	},
};
OP(aten_erfc){
	.schema = "aten.erfc(Tensor self) -> Tensor",
	.aliases = "prims.erfc",
	.promote = PROMOTE_FLOAT,
	.expand = "erfc(self)",
	.sample = "f32[n=3, 4] in -3..3; f32[4] of 0.001 -6 9 inf",
	.overloads = (const Overload[]){
		{.schema = "aten.special_erfc(Tensor self) -> Tensor"},
	},
};
OP(aten_special_erfcx){
	.schema = "aten.special_erfcx(Tensor self) -> Tensor",
	.aliases = "prims.erfcx",
	.promote = PROMOTE_FLOAT,
	.expand = "erfcx(self)",
	.sample = "f32[n=3, 4] in -3..3; f32[4] of 0.7 -6 9 40",
};
OP(aten_erfinv){
	.schema = "aten.erfinv(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.erf_inv",
	.promote = PROMOTE_FLOAT,
	.expand = "erfinv(self)",
	.sample = "f32[n=3, 4] in -0.98..0.98; f32[4] of 1 -1 2 0.999",
	.overloads = (const Overload[]){
		{.schema = "aten.special_erfinv(Tensor self) -> Tensor"},
	},
};
OP(aten_lgamma){
	.schema = "aten.lgamma(Tensor self) -> Tensor",
	.aliases = "prims.lgamma",
	.promote = PROMOTE_FLOAT,
	.expand = "lgamma(self)",
	.sample = "f32[n=3, 4] in 0.125..8; f32[5] of -0.5 -2.5 1e6 0 -3; f32[4] of 12.5 40 1e-6 3",
	.overloads = (const Overload[]){
		{.schema = "aten.special_gammaln(Tensor self) -> Tensor"},
	},
};
OP(aten_digamma){
	.schema = "aten.digamma(Tensor self) -> Tensor",
	.deviates = "left of 0 the derivative of f32 is the exact one, from which PyTorch is off",
	.aliases = "prims.digamma",
	.promote = PROMOTE_FLOAT,
	.expand = "digamma(self)",
	.sample = "f32[n=3, 4] in 0.125..8; f32[5] of -0.5 -2.5 1e6 0 -0.25; "
		  "f32[4] of 12.5 40 1e-6 3",
	.overloads = (const Overload[]){
		{.schema = "aten.special_digamma(Tensor self) -> Tensor"},
		{.schema = "aten.special_psi(Tensor self) -> Tensor"},
	},
};
OP(aten_sigmoid){
	.schema = "aten.sigmoid(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "sigmoid(self)",
	.sample = "f32[n=3, 4] in -8..8; i32[4] in -3..3; f32[3] of -100 100 nan",
	.overloads = (const Overload[]){
		{.schema = "aten.special_expit(Tensor self) -> Tensor"},
	},
};
OP(aten_sqrt){
	.schema = "aten.sqrt(Tensor self) -> Tensor",
	.aliases = "prims.sqrt",
	.promote = PROMOTE_FLOAT,
	.expand = "sqrt(self)",
	.sample = "f32[n=3, 4] in 0.25..8; f32[4] of 0 -1 inf 1e-40",
};
OP(aten_rsqrt){
	.schema = "aten.rsqrt(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.rsqrt",
	.promote = PROMOTE_FLOAT,
	.expand = "rsqrt(self)",
	.sample = "f32[n=3, 4] in 0.25..8; f32[4] of 0 -1 inf 1e-40",
};
OP(aten_reciprocal){
	.schema = "aten.reciprocal(Tensor self) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "prims.reciprocal",
	.promote = PROMOTE_FLOAT,
	.expand = "reciprocal(self)",
	.sample = "f32[n=3, 4] in 0.25..8; f32[3] of 0 -1 inf; i32[2] of 2 -4",
};
OP(aten_deg2rad){
	.schema = "aten.deg2rad(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "mul(self, 0.017453292519943295)",
	.sample = "f32[n=3, 4] in -180..180; i32[2] of 90 -45",
};
OP(aten_rad2deg){
	.schema = "aten.rad2deg(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "mul(self, 57.29577951308232)",
	.sample = "f32[n=3, 4] in -180..180; i32[2] of 90 -45",
};
/* Of complex numbers the derivative is that of the expansion. */
#define SINC                                                                                       \
	"p = self * 3.141592653589793; zero = self == 0; select(zero, 1, sin(p) / select(zero, "   \
	"1, p))"
#define SINC_SLOPE                                                                                 \
	"p = self * 3.141592653589793; q = p * p; near = lt(abs(p), 0.5); select(near, "           \
	"p * 3.141592653589793 * (q * (q * (q * (q / 3991680 - 1 / 45360) + 1 / 840) - 1 / 30) * " \
	"-1 - 1 / 3), "                                                                            \
	"(cos(p) * p - sin(p)) / select(near, 1, p * self))"
OP(aten_sinc){
	.schema = "aten.sinc(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = SINC,
	.deriv = {SINC_SLOPE},
	.sample = "f32[n=3, 4] in -3..3",
	.overloads = (const Overload[]){
		{.schema = "aten.special_sinc(Tensor self) -> Tensor"},
	},
};
OP(aten_special_entr){
	.schema = "aten.special_entr(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "select(eq(self, 0), 0, select(lt(self, 0), -inf, neg(mul(self, log(self)))))",
	.deriv = {"-(1 + log(self))"},
	.sample = "f32[n=3, 4] in -1..4; f32[4] of 0 -1 nan 0.5",
};

/* ---- rounding and sign: ints are their own floor ---- */

static Node build_round(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	DType d = aten_dtype(b, x);
	Op op = node_op(b->g, n);
	if (dtype_is_int(d))
		return x;
	return b_un(b,
		    op == OP_aten_floor   ? OP_floor
		    : op == OP_aten_ceil  ? OP_ceil
		    : op == OP_aten_round ? OP_round
					  : OP_trunc,
		    x);
}

static Node build_round_decimals(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (!dtype_is_float(aten_dtype(b, x)))
		return x;
	int64_t decimals = aten_int(b, n, "decimals");
	const int64_t infinite = 400; /* that power of ten is */
	int64_t power = decimals < -infinite || decimals > infinite ? infinite
			: decimals < 0                              ? -decimals
								    : decimals;
	double scale = 1;
	for (int64_t k = 0; k < power; k++)
		scale *= 10;
	if (decimals < 0)
		return b_bin_scalar(b, OP_mul, b_un(b, OP_round, b_bin_scalar(b, OP_div, x, scale)),
				    scale);
	return b_bin_scalar(b, OP_div, b_un(b, OP_round, b_bin_scalar(b, OP_mul, x, scale)), scale);
}
OP(aten_floor){
	.schema = "aten.floor(Tensor self) -> Tensor",
	.aliases = "prims.floor",
	.build = build_round,
	.sample = "f32[n=2, 6] of -2.5 -1.5 -0.75 -0.5 -0.25 0 0.25 0.5 0.75 1.5 2.5 3.5; "
		  "f32[3] of nan inf -1e10; i32[3] in -9..9",
	.overloads = (const Overload[]){
		{.schema = "aten.ceil(Tensor self) -> Tensor",
		 .aliases = "prims.ceil"},
		{.schema = "aten.round(Tensor self) -> Tensor",
		 .aliases = "prims.round"},
		{.schema = "aten.trunc(Tensor self) -> Tensor",
		 .aliases = "prims.trunc"},
		{.schema = "aten.fix(Tensor self) -> Tensor"},
		{.schema = "aten.round.decimals(Tensor self, *, int decimals) -> Tensor",
		 .build = build_round_decimals,
		 .sample = "f32[n=2, 4] of 1.2345 -2.375 0.5 12.55 -0.04 3.25 7.125 99.99, "
			   "decimals=2; f32[3] of 1250 -1350 1449, decimals=-2"},
		{.schema = "aten.special_round(Tensor self, *, int decimals=0) -> Tensor",
		 .build = build_round_decimals,
		 .sample = "f32[n=2, 4] of 1.2345 -2.5 0.5 1.5 -0.04 3.25 7.125 99.99; "
			   "f32[4] of 1.25 -1350 1449 0.125, decimals=2"},
	},
};

OP(aten_frac){
	.schema = "aten.frac(Tensor self) -> Tensor",
	.expand = "sub(self, trunc(self))",
	.deriv = {"1"},
	.sample = "f32[n=2, 6] of -2.5 -1.5 -0.75 -0.5 -0.25 0 0.25 0.5 0.75 1.5 2.5 3.5",
};
OP(aten_neg){
	.schema = "aten.neg(Tensor self) -> Tensor",
	.aliases = "prims.neg",
	.expand = "neg(self)",
	.sample = "f32[n=3, 4]; i32[3] in -9..9",
	.overloads = (const Overload[]){
		{.schema = "aten.negative(Tensor self) -> Tensor"},
	},
};

static Node build_square(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (aten_dtype(b, x) == DT_bool)
		x = b_convert(b, x, DT_i64);
	return b_bin(b, OP_mul, x, x);
}
OP(aten_square){
	.schema = "aten.square(Tensor self) -> Tensor",
	.build = build_square,
	.sample = "f32[n=3, 4]; i32[3] in -9..9; f32[4] of nan -inf 0 -0.0; u8[3] in 0..255",
};

Node aten_abs(Build *b, Node x)
{
	DType d = aten_dtype(b, x);
	if (dtype_is_complex(d)) {
		Node pairs = b_node(b, OP_view_real, &x, 1, NULL, 0);
		Node part[] = {b_select_dim(b, pairs, -1, b_int(b, 0)),
			       b_select_dim(b, pairs, -1, b_int(b, 1))};
		return b_node(b, OP_magnitude, part, 2, NULL, 0);
	}
	return d == DT_bool || (dtype_is_int(d) && !dtype_is_signed(d)) ? x : b_un(b, OP_abs, x);
}

static Node build_abs(Build *b, Node n)
{
	return aten_abs(b, arg(b, n, "self"));
}
OP(aten_abs){
	.schema = "aten.abs(Tensor self) -> Tensor",
	.aliases = "prims.abs aten.absolute",
	.build = build_abs,
	.sample = "f32[n=3, 4]; i32[3] in -9..9; f32[4] of nan -inf 0 -0.0; u8[3] in 0..255",
};

static Node build_sign(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return aten_dtype(b, x) == DT_bool ? x : b_un(b, OP_sign, x);
}
OP(aten_sign){
	.schema = "aten.sign(Tensor self) -> Tensor",
	.aliases = "prims.sign",
	.build = build_sign,
	.sample = "f32[n=3, 4]; i32[3] in -9..9; f32[4] of nan -inf 0 -0.0; u8[3] in 0..255",
	.overloads = (const Overload[]){
		{.schema = "aten.sgn(Tensor self) -> Tensor"},
	},
};

static Node build_positive(Build *b, Node n)
{
	return arg(b, n, "self");
}
OP(aten_positive){
	.schema = "aten.positive(Tensor(a) self) -> Tensor(a)",
	.view = VIEW_SAME,
	.itself = true,
	.build = build_positive,
	.sample = "f32[n=3, 4]",
};

/* ---- float classes; ints are never special ---- */

static Node build_class(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Op op = node_op(b->g, n);
	Shape s = aten_shape(b, x);
	if (op == OP_aten_signbit && dtype_is_int(aten_dtype(b, x)))
		return b_bin_scalar(b, OP_lt, x, 0);
	if (!dtype_is_float(aten_dtype(b, x)))
		return x.i ? b_full_int(b, DT_bool, op == OP_aten_isfinite, s.rank, s.dim) : x;
	switch (op) {
	case OP_aten_isnan:
		return b_un(b, OP_isnan, x);
	case OP_aten_isinf:
		return b_un(b, OP_isinf, x);
	case OP_aten_isfinite:
		return b_un(b, OP_isfinite, x);
	case OP_aten_isposinf:
		return b_bin_scalar(b, OP_eq, x, (double)INFINITY);
	case OP_aten_isneginf:
		return b_bin_scalar(b, OP_eq, x, -(double)INFINITY);
	default:
		return b_un(b, OP_signbit, x);
	}
}
OP(aten_isnan){
	.schema = "aten.isnan(Tensor self) -> Tensor",
	.build = build_class,
	.sample = "f32[n=2, 4] of nan inf -inf 0 1 -1 -0 1e38; i32[3] of -1 0 1",
	.overloads = (const Overload[]){
		{.schema = "aten.isinf(Tensor self) -> Tensor"},
		{.schema = "aten.isfinite(Tensor self) -> Tensor",
		 .aliases = "prims.isfinite"},
		{.schema = "aten.isposinf(Tensor self) -> Tensor"},
		{.schema = "aten.isneginf(Tensor self) -> Tensor"},
		{.schema = "aten.signbit(Tensor self) -> Tensor",
		 .aliases = "prims.signbit"},
	},
};

static Node build_nan_to_num(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	DType d = aten_dtype(b, x);
	if (!dtype_is_float(d))
		return x;
	double max = dtype_max(d);
	double nan = aten_has(b, n, "nan") ? node_float(b->g, n, "nan") : 0;
	double pos = aten_has(b, n, "posinf") ? node_float(b->g, n, "posinf") : max;
	double neg = aten_has(b, n, "neginf") ? node_float(b->g, n, "neginf") : -max;
	Node low = b_bin_scalar(b, OP_eq, x, -(double)INFINITY);
	Node y = b_select(b, low, aten_like(b, x, neg), x);
	Node high = b_bin_scalar(b, OP_eq, x, (double)INFINITY);
	y = b_select(b, high, aten_like(b, x, pos), y);
	Node is_nan = b_un(b, OP_isnan, x);
	return b_select(b, is_nan, aten_like(b, x, nan), y);
}
OP(aten_nan_to_num){
	.schema = "aten.nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? "
		  "neginf=None) -> Tensor",
	.build = build_nan_to_num,
	.deriv = {"select(isfinite(self), 1, 0)"},
	.sample = "f32[n=2, 4] of nan inf -inf 0 1 -1 -0 1e38; "
		  "f32[n=2, 4] of nan inf -inf 0 1 -1 -0 1e38, nan=0.5, posinf=2.25, neginf=-7; "
		  "i32[3] of -1 0 1",
};
