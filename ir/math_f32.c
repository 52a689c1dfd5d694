/* Elementary functions in f32, at most 2 ULP over all finite inputs. The hot ones compute in f32 alone. */
#include "ir/math_priv.h"

/* Rarely hot, so through the f64 function: rounds correctly but for ties within its error. */
#define VIA_F64(name) {name, LIB_F32, "x", 0, "convert[f32](" name "(convert[f64](x)))"}
#define VIA_F64_2(name) {name, LIB_F32, "a, b", 0, "convert[f32](" name "(convert[f64](a), convert[f64](b)))"}

const LibDef lib_f32[] = {
	/* As in f64 (math_f64.c): 2**n in two halves, n in the low bits of t. */
	{"exp_scale", LIB_F32, "p, t, bias", EXPAND,
		"i = bitcast[u32](t) + (convert[u32](bias) - 0x4b400000); j = shr(i, 1); "
		"p * bitcast[f32](shl(j, 23)) * bitcast[f32](shl(i - j, 23))"},
	{"exp_biased", LIB_F32, "x, bias", EXPAND,
		"c = max(-104.0, min(90.0, x)); t = fma(c, 1.44269502, 0x1.8p23); n = t - "
		"0x1.8p23; "
		"r = fma(n, 1.90465421e-09, fma(n, -0.693147182, c)); "
		"p = fma(r * r, poly(r, 0.49999994, 0.16666517, 0.041668106, 0.008369095, "
		"0.0013835239), r) + 1.0; exp_scale(p, t, bias)"},
	{"exp", LIB_F32, "x", 0, "exp_biased(x, 254.0)"},
	{"exp_half", LIB_F32, "x", 0, "exp_biased(x, 253.0)"},
	{"exp2", LIB_F32, "x", 0,
		"c = max(-151.0, min(129.0, x)); t = c + 0x1.8p23; r = c - (t - 0x1.8p23); "
		"exp_scale(fma(r, poly(r, 0.6931472, 0.24022594, 0.055503663, 0.00962546, "
		"0.0013387777, 0.00013319663), 1.0), t, 254.0)"},
	{"expm1", LIB_F32, "x", 0,
		"c = max(-20.0, min(90.0, x)); t = fma(c, 1.44269502, 0x1.8p23); n = t - 0x1.8p23; "
		"r = fma(n, 1.90465421e-09, fma(n, -0.693147182, c)); "
		"p = fma(r * r, poly(r, 0.49999994, 0.16666517, 0.041668106, 0.008369095, "
		"0.0013835239), r); "
		"s = bitcast[f32](shl(bitcast[u32](t) + 126, 23)); y = 2.0 * fma(p, s, s - 0.5); "
		"select(lt(abs(x), 0x1p-25), x, y)"},
	{"sigmoid", LIB_F32, "x", 0,
		"e = exp(-abs(x)); select(lt(x, 0.0), e, convert[f32](1.0)) / (1.0 + e)"},

	/* x = m 2**e with m in [2/3, 4/3), f = m - 1: log(m) = f + f*f (-1/2 + f P(f)) */
	{"log_bits", LIB_F32, "x", EXPAND, "bitcast[i32](x) - 0x3f2aaaab"},
	{"log_mantissa", LIB_F32, "x", EXPAND,
		"bitcast[f32](and(log_bits(x), 0x007fffff) + 0x3f2aaaab)"},
	{"log_exponent", LIB_F32, "x", EXPAND, "convert[f32](shr(log_bits(x), 23))"},
	{"log_poly", LIB_F32, "f, e", EXPAND,
		"y = fma(f * f, fma(f, poly(f, 0.3333324, -0.24999711, 0.20009327, -0.16684616, "
		"0.140217, -0.121253505, 0.13913149, -0.1315232), -0.5), f); "
		"fma(e, 0.693147182, fma(e, -1.90465421e-09, y))"},
	{"log_special", LIB_F32, "x, y", EXPAND,
		"select(lt(x, inf), select(lt(x, 0.0), nan, select(eq(x, 0.0), -inf, y)), x)"},
	{"log", LIB_F32, "x", 0,
		"tiny = lt(x, 0x1p-126); v = select(tiny, x * 0x1p23, x); "
		"e = log_exponent(v) - select(tiny, 23.0, convert[f32](0.0)); "
		"log_special(x, log_poly(log_mantissa(v) - 1.0, e))"},
	/* u + c = 1 + x exactly. */
	{"log1p", LIB_F32, "x", 0,
		"u = 1.0 + x; t = u - 1.0; c = (1.0 - (u - t)) + (x - t); "
		"scale = bitcast[f32](shl(127 - min(shr(log_bits(u), 23), 127), 23)); "
		"y = log_poly(fma(c, scale, log_mantissa(u) - 1.0), log_exponent(u)); "
		"select(lt(abs(x), 0x1p-25), x, log_special(u, y))"},
	VIA_F64("log2"),
	VIA_F64("log10"),
	VIA_F64("sin"),
	VIA_F64("cos"),
	VIA_F64("tan"),
	VIA_F64("asin"),
	VIA_F64("acos"),
	VIA_F64("atan"),
	VIA_F64("sinh"),
	VIA_F64("cosh"),
	VIA_F64("tanh"),
	VIA_F64("asinh"),
	VIA_F64("acosh"),
	VIA_F64("atanh"),
	VIA_F64("erf"),
	VIA_F64("erfc"),
	VIA_F64("erfinv"),
	VIA_F64("lgamma"),
	VIA_F64("digamma"),
	VIA_F64_2("atan2"),
	VIA_F64_2("hypot"),
	VIA_F64_2("pow"),
	{NULL, 0, NULL, 0, NULL},
};
