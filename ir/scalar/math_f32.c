/* Elementary functions in f32, at most 2 ULP over all finite inputs. The hot ones compute in
 * f32 alone. */
#include "ir/scalar/math_priv.h"

/* Rarely hot, so through the f64 function: rounds correctly but for ties within its error. */
#define VIA_F64(name) {name, LIB_F32, "x", 0, "convert[f32](" name "(convert[f64](x)))"}

/* exp(x) = p * 2**n, t = n + 1.5 * 2**23, but 0 where `none`. */
#define EXP_PARTS                                                                                  \
	"none = lt(x, -104.0); c = min(90.0, select(none, 0.0, x)); "                              \
	"t = fma(c, 1.44269502, 0x1.8p23); n = t - 0x1.8p23; "                                     \
	"r = fma(n, -1.42860677e-06, fma(n, -0x1.62e4p-1, c)); "                                   \
	"p = fma(r * r, poly(r, 0.49999994, 0.16666517, 0.041668106, 0.008369095, "                \
	"0.0013835239), r) + 1.0; "

const LibDef lib_f32[] = {
	/* As in f64 (math_f64.c): 2**n in two halves, n in the low bits of t. */
	{"exp_scale", LIB_F32, "p, t, bias", EXPAND,
		"i = bitcast[u32](t) + (convert[u32](bias) - 0x4b400000); j = shr(i, 1); "
		"p * bitcast[f32](shl(j, 23)) * bitcast[f32](shl(i - j, 23))"},
	/* Below -104 the result is 0. Those lanes compute something harmless instead: results
	 * that underflow cost a hundred cycles, and masked scores are -inf. */
	{"exp", LIB_F32, "x", 0, EXP_PARTS "select(none, 0.0, scale(p, t))"},
	{"exp_half", LIB_F32, "x", 0, EXP_PARTS "select(none, 0.0, exp_scale(p, t, 253.0))"},
	{"exp2", LIB_F32, "x", 0,
		"c = max(-151.0, min(129.0, x)); t = c + 0x1.8p23; r = c - (t - 0x1.8p23); "
		"scale(fma(r, poly(r, 0.6931472, 0.24022594, 0.055503663, 0.00962546, "
		"0.0013387777, 0.00013319663), 1.0), t)"},
	{"expm1", LIB_F32, "x", 0,
		"c = max(-20.0, min(88.9, x)); t = fma(c, 1.44269502, 0x1.8p23); "
		"n = t - 0x1.8p23; r = fma(n, -1.42860677e-06, fma(n, -0x1.62e4p-1, c)); "
		"p = fma(r * r, poly(r, 0.49999994, 0.16666517, 0.041668106, 0.008369095, "
		"0.0013835239), r); s = bitcast[f32](shl(bitcast[u32](t) + 126, 23)); "
		"y = 2.0 * fma(p, s, s - 0.5); select(lt(abs(x), 0x1p-25), x, y)"},
	{"sigmoid", LIB_F32, "x", 0,
		"e = exp(-abs(x)); s = select(lt(x, 0.0), e, 1.0); fma(-s, e / (1.0 + e), s)"},

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
		"e = log_exponent(v) - select(tiny, 23.0, 0.0); "
		"log_special(x, log_poly(log_mantissa(v) - 1.0, e))"},
	/* u + c = 1 + x exactly. */
	{"log1p", LIB_F32, "x", 0,
		"u = 1.0 + x; t = u - 1.0; c = (1.0 - (u - t)) + (x - t); "
		"scale = bitcast[f32](shl(127 - min(shr(log_bits(u), 23), 127), 23)); "
		"y = log_poly(fma(c, scale, log_mantissa(u) - 1.0), log_exponent(u)); "
		"select(lt(abs(x), 0x1p-25), x, log_special(u, y))"},
	/* log(m) = f + rest, times the constant l + ll. */
	{"log_scaled", LIB_F32, "f, l, ll", EXPAND,
		"rest = f * f * fma(f, poly(f, 0.3333324, -0.24999711, 0.20009327, -0.16684616, "
		"0.140217, -0.121253505, 0.13913149, -0.1315232), -0.5); "
		"fma(f, l, fma(rest, l, f * ll))"},
	{"log_normal", LIB_F32, "x", EXPAND, "select(lt(x, 0x1p-126), x * 0x1p23, x)"},
	{"log_shift", LIB_F32, "x", EXPAND,
		"log_exponent(log_normal(x)) - select(lt(x, 0x1p-126), 23.0, 0.0)"},
	{"log2", LIB_F32, "x", 0,
		"f = log_mantissa(log_normal(x)) - 1.0; "
		"log_special(x, log_shift(x) + log_scaled(f, 1.44269502, 1.92596303e-08))"},
	{"log10", LIB_F32, "x", 0,
		"f = log_mantissa(log_normal(x)) - 1.0; e = log_shift(x); "
		"y = fma(e, -1.4320989e-08, log_scaled(f, 0.434294492, -1.01030394e-08)); "
		"log_special(x, fma(e, 0.30103001, y))"},

	/* ---- trigonometric. Below 2**17 the first difference, `a`, is exact, for it has no bits
	 * below 2**-23; `trig_low` is what its sum with the second product lost, exactly (D.
	 * Knuth's two-sum), and the third product. Beyond, the remainder in f64, where the first
	 * difference is exact below 2**40. ---- */
	{"trig_turn", LIB_F32, "x", EXPAND, "fma(x, 0.63661977, 0x1.8p23)"},
	{"trig_low", LIB_F32, "n, a, p, h", EXPAND,
		"b = h - a; (a - (h - b)) + (p - b) + fma(n, 1.71512451e-15, fma(n, "
		"4.37113883e-08, -p))"},
	{"trig_rest", LIB_F32, "x", EXPAND,
		"n = trig_turn(x) - 0x1.8p23; a = fma(n, -1.57079637, x); p = n * 4.37113883e-08; "
		"h = a + p; select(lt(abs(x), 0x1p17), h + trig_low(n, a, p, h), far_high(x))"},
	{"trig_quadrant", LIB_F32, "x", EXPAND,
		"select(lt(abs(x), 0x1p17), bitcast[i32](trig_turn(x)), far_quadrant(x))"},
	{"far_turn", LIB_F32, "x", EXPAND, "fma(convert[f64](x), 0.6366197723675814, 0x1.8p52)"},
	{"far_rest", LIB_F32, "x", EXPAND,
		"n = far_turn(x) - 0x1.8p52; "
		"r = fma(n, -6.123233995736766e-17, fma(n, -1.5707963267948966, "
		"convert[f64](x))); select(lt(abs(x), 0x1p40), r, large_rest(x))"},
	{"far_high", LIB_F32, "x", 0, "convert[f32](far_rest(x))"},
	{"far_low", LIB_F32, "x", 0, "r = far_rest(x); "
				     "convert[f32](r - convert[f64](convert[f32](r)))"},
	{"far_quadrant", LIB_F32, "x", 0,
		"select(lt(abs(x), 0x1p40), convert[i32](bitcast[i64](far_turn(x))), "
		"large_quadrant(x))"},
	/* |x| / (pi/2) mod 4 in units of 2**-62, as in f64. */
	{"large_phase", LIB_F32, "x", 0,
		"b = bitcast[u32](x); at = convert[i32](and(shr(b, 23), 0xff)) - 88; "
		"k = max(convert[i32](0), at); "
		"m = convert[u64](or(and(b, 0x007fffff), 0x00800000)); "
		"m * two_over_pi(k) + shr(m * shr(two_over_pi(k + 64), 32), 32)"},
	{"large_rest", LIB_F32, "x", 0,
		"p = large_phase(x); q = shr(p + 0x2000000000000000, 62); "
		"r = convert[f64](bitcast[i64](p - shl(q, 62))) * 3.4061215800304112e-19; "
		"s = select(lt(x, 0.0), -r, r); select(lt(abs(x), inf), s, convert[f64](nan))"},
	{"large_quadrant", LIB_F32, "x", 0,
		"q = convert[i32](shr(large_phase(x) + 0x2000000000000000, 62)); "
		"select(lt(x, 0.0), -q, q)"},
	{"sin_poly", LIB_F32, "r", EXPAND,
		"z = r * r; fma(z * r, poly(z, -0.16666655, 0.008332191, -0.000195186), r)"},
	{"cos_poly", LIB_F32, "r", EXPAND,
		"z = r * r; "
		"fma(z, fma(z, poly(z, 0.041666646, -0.0013887301, 2.4430661e-05), -0.5), 1.0)"},
	{"sin", LIB_F32, "x", 0,
		"r = convert[f32](trig_rest(x)); q = trig_quadrant(x); "
		"y = select(eq(and(q, 1), 0), sin_poly(r), cos_poly(r)); "
		"select(eq(x, 0.0), x, select(eq(and(q, 2), 0), y, -y))"},
	{"cos", LIB_F32, "x", 0,
		"r = convert[f32](trig_rest(x)); q = trig_quadrant(x) + 1; "
		"y = select(eq(and(q, 1), 0), sin_poly(r), cos_poly(r)); "
		"select(eq(and(q, 2), 0), y, -y)"},
	/* t = tan(r + low) by a polynomial, as an odd quadrant -1/t. The low part counts 1 + t*t
	 * times, of which 1 + z is near enough. */
	{"tan", LIB_F32, "x", 0,
		"near = lt(abs(x), 0x1p17); n = trig_turn(x) - 0x1.8p23; "
		"a = fma(n, -1.57079637, x); p = n * 4.37113883e-08; h = a + p; "
		"r = select(near, h, far_high(x)); "
		"low = select(near, trig_low(n, a, p, h), far_low(x)); z = r * r; "
		"t = r + fma(z * r, poly(z, 0.333333498, 0.133326623, 0.0540600357, 0.0212815562, "
		"0.0108374885, 8.73633372e-05, 0.00437737016), fma(z, low, low)); "
		"select(eq(x, 0.0), x, select(ne(and(trig_quadrant(x), 1), 0), -1.0 / t, t))"},
	{"asin_poly", LIB_F32, "z", EXPAND,
		"z * poly(z, 0.16666946, 0.07487605, 0.046408776, 0.01971357, 0.049438324)"},
	{"asin", LIB_F32, "x", 0,
		"a = abs(x); big = gt(a, 0.55); z = select(big, 0.5 * (1.0 - a), a * a); "
		"s = select(big, sqrt(z), a); y = fma(s, asin_poly(z), s); "
		"copysign(select(big, 1.57079637 - (2.0 * y + 4.37113883e-08), y), x)"},
	{"acos", LIB_F32, "x", 0,
		"a = abs(x); big = gt(a, 0.55); z = select(big, 0.5 * (1.0 - a), a * a); "
		"s = select(big, sqrt(z), x); y = fma(s, asin_poly(z), s); "
		"low = select(lt(x, 0.0), 3.14159274 - (2.0 * y + 8.74227766e-08), 2.0 * y); "
		"select(big, low, 1.57079637 - (y + 4.37113883e-08))"},
	{"atan_poly", LIB_F32, "t", EXPAND,
		"z = t * t; "
		"fma(t * z, poly(z, -0.33333302, 0.19998626, -0.14265092, 0.10956658, "
		"-0.084164605, 0.058178056, -0.03139444, 0.011028954, -0.0018187113), t)"},
	{"atan", LIB_F32, "x", 0,
		"a = abs(x); big = gt(a, 1.0); y = atan_poly(select(big, 1.0 / a, a)); "
		"copysign(select(big, 1.57079637 - (y + 4.37113883e-08), y), x)"},
	{"atan2", LIB_F32, "y, x", 0,
		"ax = abs(x); ay = abs(y); hi = max(ax, ay); lo = min(ax, ay); "
		"t = select(eq(lo, hi), select(eq(hi, 0.0), 0.0, 1.0), lo / hi); "
		"a = atan_poly(t); "
		"b = select(gt(ay, ax), 1.57079637 - (a + 4.37113883e-08), a); "
		"c = select(signbit(x), 3.14159274 - (b + 8.74227766e-08), b); "
		"select(ne(t, t), t, copysign(c, y))"},

	/* ---- hyperbolic ---- */
	{"sinh", LIB_F32, "x", 0,
		"a = abs(x); h = exp_half(a); z = x * x; "
		"small = fma(x * z, poly(z, 0.16666667, 0.008333311, 0.00019842635, "
		"2.7839303e-06), x); select(lt(a, 1.0), small, copysign(h - 0.25 / h, x))"},
	{"cosh", LIB_F32, "x", 0, "h = exp_half(abs(x)); h + 0.25 / h"},
	/* 1 - 2/(exp(2|x|) + 1), or near 0 x + x**3 P(x*x). Where the exponential is used its
	 * error is damped, so a short reduction does: r is one fma. The order of the comparison
	 * lets NaN take the second. */
	{"tanh", LIB_F32, "x", 0,
		"a = min(9.1, abs(x)); t = fma(a, 2.88539004, 0x1.8p23); "
		"r = fma(a, 2.88539004, 0x1.8p23 - t); "
		"p = fma(r, poly(r, 0.6931472, 0.24022594, 0.055503663, 0.00962546, "
		"0.0013387777, 0.00013319663), 1.0); "
		"e = bitcast[f32](bitcast[u32](p) + shl(bitcast[u32](t), 23)); "
		"y = 1.0 - 2.0 / (e + 1.0); z = x * x; "
		"small = fma(x * z, poly(z, -0.33333296, 0.13331833, -0.05377433, 0.020758733, "
		"-0.005846414), x); copysign(select(ge(a, 0.6), y, small), x)"},
	/* log(h + l) for h >= l >= 0: u + c = h + l exactly. */
	{"log_sum", LIB_F32, "h, l", EXPAND,
		"u = h + l; c = l - (u - h); scale = bitcast[f32](shl(127 - min(shr(log_bits(u), "
		"23), 127), 23)); log_poly(fma(c, scale, log_mantissa(u) - 1.0), log_exponent(u))"},
	{"asinh", LIB_F32, "x", 0,
		"a = abs(x); z = x * x; "
		"near = fma(x * z, poly(z, -0.166666567, 0.0749952421, -0.0445652418, "
		"0.0297706556, -0.0197028015, 0.0104536908, -0.00298302481), x); "
		"s = sqrt(fma(a, a, 1.0)); big = gt(a, 0x1p13); "
		"far = log_sum(select(big, a, s), select(big, 0.0, a)) + select(big, 0.693147182, "
		"0.0); copysign(select(lt(a, 0.75), near, select(lt(a, inf), far, x)), x)"},
	/* Near 1 the root of 2 (x - 1) and its product with a polynomial. */
	{"acosh", LIB_F32, "x", 0,
		"t = x - 1.0; s = sqrt(2.0 * t); "
		"near = fma(s * t, poly(t, -0.0833332166, 0.0187466089, -0.00554794725, "
		"0.00176030979, -0.000413469766), s); big = gt(x, 0x1p13); "
		"far = log_sum(x, select(big, 0.0, sqrt(fma(x, x, -1.0)))) + select(big, "
		"0.693147182, 0.0); select(lt(x, 1.5), near, select(lt(x, inf), far, x))"},
	{"atanh", LIB_F32, "x", 0,
		"a = abs(x); z = x * x; "
		"near = fma(x * z, poly(z, 0.333333015, 0.2000245, 0.142238632, 0.118156746, "
		"0.0516320765, 0.176339507), x); q = (1.0 + a) / (1.0 - a); "
		"far = 0.5 * log_poly(log_mantissa(q) - 1.0, log_exponent(q)); "
		"select(lt(a, 0.5), near, select(lt(a, 1.0), copysign(far, x), select(eq(a, 1.0), "
		"copysign(inf, x), nan)))"},
	/* Squares of operands that are scaled by a power of two neither overflow nor vanish. */
	{"hypot", LIB_F32, "x, y", 0,
		"a = abs(x); b = abs(y); m = max(a, b); n = min(a, b); big = gt(m, 0x1p60); "
		"small = lt(m, 0x1p-40); up = select(big, 0x1p-70, select(small, 0x1p90, 1.0)); "
		"down = select(big, 0x1p70, select(small, 0x1p-90, 1.0)); "
		"p = m * up; q = n * up; r = sqrt(fma(p, p, q * q)) * down; "
		"select(eq(a, inf), a, select(eq(b, inf), b, r))"},
	/* 1 - 2**Q(|x|), or near 0 x + x P(x*x). */
	{"erf", LIB_F32, "x", 0,
		"a = min(3.95, abs(x)); "
		"q = poly(a, -0.0037787668, -1.6123863, -0.94386923, -0.12811078, 0.021397829, "
		"-0.0016695241); t = q + 0x1.8p23; r = q - (t - 0x1.8p23); "
		"p = fma(r, poly(r, 0.693147, 0.24022222, 0.055506483, 0.009672537, "
		"0.0013298179), 1.0); "
		"y = 1.0 - bitcast[f32](bitcast[u32](p) + shl(bitcast[u32](t), 23)); z = x * x; "
		"small = fma(x, poly(z, 0.12837912, -0.3761232, 0.11280113, -0.026709171, "
		"0.004914826, -0.0005619421), x); copysign(select(ge(a, 1.0), y, small), x)"},
	/* Up to 3/4 1 - x - x P(x*x), of which 1 - x is exact from 1/2 on. Beyond, exp(-a*a) h (1 +
	 * P(h)), h = 3/4 / (a + 2). a*a is reduced before it is rounded. What the quotient lost by
	 * rounding, which fma knows, is added to the exponential's argument, where it costs no
	 * rounding of its own. */
	{"erfc", LIB_F32, "x", 0,
		"a = abs(x); none = gt(a, 10.1); c = select(none, 0.0, a); d = c + 2.0; "
		"h = 0.75 / d; rest = fma(-h, c - (d - 2.0), fma(-h, d, 0.75)); "
		"v = fma(h, rest, h - 0.1875); "
		"w = poly(v, 0.362110287, 4.88647556, 10.5992107, 7.37163687, -23.1909733, "
		"-37.3762703, 91.9494476, 142.558395, -359.974091); "
		"t = fma(c * c, -1.44269502, 0x1.8p23); n = t - 0x1.8p23; "
		"r = fma(rest, 1.33333337, fma(n, -1.42860677e-06, fma(-c, c, n * -0x1.62e4p-1))); "
		"q = fma(r * r, poly(r, 0.49999994, 0.16666517, 0.041668106, 0.008369095, "
		"0.0013835239), r); far = select(none, 0.0, scale(fma(h, fma(q, 1.0 + w, w), h), "
		"t)); "
		"near = fma(-x, poly(x * x, 0.128379151, -0.376125723, 0.112829357, -0.0268172584, "
		"0.00508414861, -0.000655754004), 1.0 - x); "
		"select(lt(a, 0.75), near, select(lt(x, 0.0), 2.0 - far, far))"},
	/* As M. Giles, "Approximating the erfinv function", 2010, in single precision: x + x P(l),
	 * l = -log(1 - x*x), beyond l = 6 x Q(sqrt(l)). */
	{"erfinv", LIB_F32, "x", 0,
		"a = abs(x); m = fma(-a, a, 1.0); l = -log_poly(log_mantissa(m) - 1.0, "
		"log_exponent(m)); near = fma(a, poly(l - 2.9, 0.599322438, 0.24275218, "
		"-0.00547548011, -0.000915483048, 0.000201184419, "
		"-1.15466819e-05, -2.0903708e-06, 4.60886611e-07, -1.35795606e-08, "
		"-6.09382278e-09, 6.43865961e-10), a); far = a * poly(sqrt(l) - 3.1875, "
		"3.02107882, 1.00454104, 0.0061382046, -0.00444413722, 0.00306662545, "
		"-0.00207920652, 0.00115379994, -0.000347827736, -0.000100753867, 9.8578741e-05); "
		"copysign(select(lt(a, 1.0), select(lt(l, 6.0), near, far), select(eq(a, 1.0), "
		"inf, nan)), x)"},
	/* exp2(y log2|x|) in f64, to some 2**-29: s = f/(2+f), log2(m) = 2 s log2(e) (1 + z
	 * P(z)), z = s*s. */
	{"pow", LIB_F32, "x, y", 0,
		"a = convert[f64](abs(x)); f = log_mantissa(a) - 1.0; s = f / (2.0 + f); "
		"z = s * s; "
		"l = fma(s * 2.8853900817779268, fma(z, poly(z, 0.33333333333690773, "
		"0.19999999395110252, 0.14285877958534812, 0.11095658071472762, "
		"0.09682126826757691), 1.0), log_exponent(a)); "
		"yc = convert[f64](max(-0x1p60, min(0x1p60, y))); "
		"h = max(-200.0, min(200.0, l * yc)); t = h + 0x1.8p52; r = h - (t - 0x1.8p52); "
		"p = fma(r, poly(r, 0.6931472029825092, 0.24022637573259972, "
		"0.05550329520224145, 0.009619826355645109, 0.001340026694377602, "
		"0.0001494509860942712), 1.0); "
		"pow_special(x, y, convert[f32](bitcast[f64](bitcast[u64](p) + "
		"shl(bitcast[u64](t), 52))))"},
	VIA_F64("erfcx"),
	VIA_F64("lgamma"),
	VIA_F64("digamma"),
	VIA_F64("trigamma"),
	{NULL, 0, NULL, 0, NULL},
};
