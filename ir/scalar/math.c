/* The function library: what scalar texts call besides basic operations, as texts themselves.
 * This file has what works on any dtype, and the tables; math_f32.c, math_f64.c and
 * math_special.c have the elementary and special functions. All are straight-line code over
 * selects, so every lane computes the same instructions and emitters and interpreter agree bit
 * for bit.
 *
 * * In texts, T is the compute dtype, I and U the signed and unsigned integer of its size;
 * poly(x, c0, c1, ...) is Horner's scheme in fma. Coefficients come from scripts/minimax.py. */
#include "ir/scalar/math_priv.h"

#include <string.h>

static const LibDef generic[] = {
	{"sign", LIB_INT | LIB_FLOAT, "x", 0, "convert[T](gt(x, 0)) - convert[T](lt(x, 0))"},
	{"sign", LIB_BOOL, "x", 0, "x"},

	/* What the basic conversion to i32 and i64 leaves: PyTorch's on x86-64. u8 from f32 has the
	 * same bits either way, because beyond 2**31 its low ones are 0. */
	{"to_i8", LIB_FLOAT, "x", EXPAND, "convert[i8](convert[i32](x))"},
	{"to_i16", LIB_FLOAT, "x", EXPAND, "convert[i16](convert[i32](x))"},
	{"to_u16", LIB_FLOAT, "x", EXPAND, "convert[u16](convert[i32](x))"},
	{"to_u8", LIB_F32, "x", EXPAND, "convert[u8](convert[i32](x))"},
	{"to_u8", LIB_F64, "x", EXPAND, "convert[u8](convert[i64](x))"},
	{"to_u32", LIB_FLOAT, "x", EXPAND, "convert[u32](convert[i64](x))"},
	{"to_u64", LIB_FLOAT, "x", EXPAND,
		"big = ge(x, 0x1p63); i = convert[u64](convert[i64](select(big, x - 0x1p63, x))); "
		"select(big, xor(i, 0x8000000000000000), i)"},

	/* Rounding to a storage dtype without leaving f32. By integer addition where the result is
	 * normal; where not, by adding the number whose last place is that of subnormals. */
	{"round_f16", LIB_F32, "x", EXPAND, "convert[f32](convert[f16](x))"},
	{"round_bf16", LIB_F32, "x", EXPAND,
		"u = bitcast[u32](x); r = and(u + 0x7fff + and(shr(u, 16), 1), 0xffff0000); "
		"bitcast[f32](select(ne(x, x), or(u, 0x400000), r))"},
	{"round_f8e5m2", LIB_F32, "x", EXPAND,
		"i = bitcast[i32](x); a = and(i, 0x7fffffff); "
		"low = bitcast[i32](bitcast[f32](a) + 128.0 - 128.0); "
		"high = and(a + 0xfffff + and(shr(a, 21), 1), 0xffe00000); "
		"r = select(lt(a, 0x38800000), low, select(ge(high, 0x47800000), 0x7f800000, "
		"high)); bitcast[f32](or(xor(i, a), select(gt(a, 0x7f800000), 0x7fc00000, r)))"},
	{"round_f8e4m3", LIB_F32, "x", EXPAND,
		"i = bitcast[i32](x); a = and(i, 0x7fffffff); "
		"low = bitcast[i32](bitcast[f32](a) + 16384.0 - 16384.0); "
		"high = and(a + 0x7ffff + and(shr(a, 20), 1), 0xfff00000); "
		"r = select(lt(a, 0x3c800000), low, select(gt(high, 0x43e00000), 0x43e00000, "
		"high)); bitcast[f32](or(xor(i, a), select(gt(a, 0x7f800000), 0x7fc00000, r)))"},
	{"round_f8e4m3fnuz", LIB_F32, "x", EXPAND,
		"i = bitcast[i32](x); a = and(i, 0x7fffffff); "
		"low = bitcast[i32](bitcast[f32](a) + 8192.0 - 8192.0); "
		"high = and(a + 0x7ffff + and(shr(a, 20), 1), 0xfff00000); "
		"r = select(lt(a, 0x3c000000), low, high); "
		"n = select(eq(r, 0), 0, or(xor(i, a), r)); "
		"bitcast[f32](select(ge(a, 0x43780000), 0x7fc00000, n))"},
	{"round_f8e5m2fnuz", LIB_F32, "x", EXPAND,
		"i = bitcast[i32](x); a = and(i, 0x7fffffff); "
		"low = bitcast[i32](bitcast[f32](a) + 64.0 - 64.0); "
		"high = and(a + 0xfffff + and(shr(a, 21), 1), 0xffe00000); "
		"r = select(lt(a, 0x38000000), low, high); "
		"n = select(eq(r, 0), 0, or(xor(i, a), r)); "
		"bitcast[f32](select(ge(a, 0x47700000), 0x7fc00000, n))"},
	/* What instruction sets may lack (codegen/legal/library.c). Between small floats and f32:
	 * a multiplication moves the exponent, of subnormals too; narrowing rounds by integer
	 * addition where the result is normal, else by adding the number whose last place is that
	 * of subnormals. Too large gives infinity, or the largest number where there is none. */
	{"from_bf16", LIB_UINT, "h", 0, "bitcast[f32](shl(convert[u32](h), 16))"},
	{"to_bf16", LIB_F32, "x", 0,
		"u = bitcast[u32](x); r = shr(u + 0x7fff + and(shr(u, 16), 1), 16); "
		"convert[u16](select(ne(x, x), or(shr(u, 16), 0x40), r))"},
	{"from_f16", LIB_UINT, "h", 0,
		"u = convert[u32](h); a = and(u, 0x7fff); v = bitcast[u32](bitcast[f32](shl(a, "
		"13)) * 0x1p112); t = select(ge(a, 0x7c00), 0x7f800000, v); "
		"n = select(gt(a, 0x7c00), 0x7fc00000, t); "
		"bitcast[f32](or(n, shl(and(u, 0x8000), 16)))"},
	{"to_f16", LIB_F32, "x", 0,
		"u = bitcast[u32](x); a = and(u, 0x7fffffff); low = bitcast[u32](bitcast[f32](a) + "
		"0.5) - 0x3f000000; high = min(shr(a + 0xfff + and(shr(a, 13), 1), 13) - 0x1c000, "
		"0x7c00); "
		"r = select(gt(a, 0x7f800000), 0x7e00, select(lt(a, 0x38800000), low, high)); "
		"convert[u16](or(r, and(shr(u, 16), 0x8000)))"},
	{"from_f8e5m2", LIB_UINT, "h", 0,
		"u = convert[u32](h); a = and(u, 0x7f); v = bitcast[u32](bitcast[f32](shl(a, 21)) "
		"* 0x1p112); t = select(ge(a, 0x7c), 0x7f800000, v); "
		"n = select(gt(a, 0x7c), 0x7fc00000, t); "
		"bitcast[f32](or(n, shl(and(u, 0x80), 24)))"},
	{"to_f8e5m2", LIB_F32, "x", 0,
		"u = bitcast[u32](x); a = and(u, 0x7fffffff); low = bitcast[u32](bitcast[f32](a) + "
		"128.0) - 0x43000000; high = min(shr(a + 0xfffff + and(shr(a, 21), 1), 21) - "
		"0x1c0, 0x7c); "
		"r = select(gt(a, 0x7f800000), 0x7e, select(lt(a, 0x38800000), low, high)); "
		"convert[u8](or(r, and(shr(u, 24), 0x80)))"},
	{"from_f8e4m3", LIB_UINT, "h", 0,
		"u = convert[u32](h); a = and(u, 0x7f); v = bitcast[u32](bitcast[f32](shl(a, 20)) "
		"* 0x1p120); bitcast[f32](or(select(gt(a, 0x7e), 0x7fc00000, v), shl(and(u, 0x80), "
		"24)))"},
	{"to_f8e4m3", LIB_F32, "x", 0,
		"u = bitcast[u32](x); a = and(u, 0x7fffffff); low = bitcast[u32](bitcast[f32](a) + "
		"16384.0) - 0x46800000; high = min(shr(a + 0x7ffff + and(shr(a, 20), 1), 20) - "
		"0x3c0, 0x7e); "
		"r = select(gt(a, 0x7f800000), 0x7f, select(lt(a, 0x3c800000), low, high)); "
		"convert[u8](or(r, and(shr(u, 24), 0x80)))"},
	{"from_f8e4m3fnuz", LIB_UINT, "h", 0,
		"u = convert[u32](h); v = bitcast[u32](bitcast[f32](shl(and(u, 0x7f), 20)) * "
		"0x1p119); bitcast[f32](select(eq(u, 0x80), 0x7fc00000, or(v, shl(and(u, 0x80), "
		"24))))"},
	{"to_f8e4m3fnuz", LIB_F32, "x", 0,
		"u = bitcast[u32](x); a = and(u, 0x7fffffff); low = bitcast[u32](bitcast[f32](a) + "
		"8192.0) - 0x46000000; high = shr(a + 0x7ffff + and(shr(a, 20), 1), 20) - 0x3b8; "
		"r = select(lt(a, 0x3c000000), low, high); "
		"n = select(eq(r, 0), 0, or(r, and(shr(u, 24), 0x80))); "
		"convert[u8](select(gt(r, 0x7f), 0x80, n))"},
	{"from_f8e5m2fnuz", LIB_UINT, "h", 0,
		"u = convert[u32](h); v = bitcast[u32](bitcast[f32](shl(and(u, 0x7f), 21)) * "
		"0x1p111); bitcast[f32](select(eq(u, 0x80), 0x7fc00000, or(v, shl(and(u, 0x80), "
		"24))))"},
	{"to_f8e5m2fnuz", LIB_F32, "x", 0,
		"u = bitcast[u32](x); a = and(u, 0x7fffffff); low = bitcast[u32](bitcast[f32](a) + "
		"64.0) - 0x42800000; high = shr(a + 0xfffff + and(shr(a, 21), 1), 21) - 0x1bc; "
		"r = select(lt(a, 0x38000000), low, high); "
		"n = select(eq(r, 0), 0, or(r, and(shr(u, 24), 0x80))); "
		"convert[u8](select(gt(r, 0x7f), 0x80, n))"},
	/* The product is exact in f64; the sum is rounded to odd, so that rounding it to f32 is
	 * rounding once (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums",
	 * 2008). */
	{"fma_exact", LIB_F32, "a, b, c", 0,
		"p = convert[f64](a) * convert[f64](b); z = convert[f64](c); s = p + z; t = s - p; "
		"err = (p - (s - t)) + (z - t); bits = bitcast[i64](s); "
		"inexact = and(or(lt(err, 0.0), gt(err, 0.0)), eq(and(bits, 1), 0)); "
		"step = select(eq(gt(err, 0.0), gt(s, 0.0)), convert[i64](1), -1); "
		"convert[f32](bitcast[f64](bits + select(inexact, step, 0)))"},
	{"flush_bf16", LIB_F32, "x", 0, "to_bf16(flush(x))"},
	/* Dot products of groups (scalar_dot). */
	{"dot2_bf16", LIB_F32, "a, b, c", 0,
		"ah = flush(bitcast[f32](and(a, 0xffff0000))); bh = flush(bitcast[f32](and(b, "
		"0xffff0000))); al = flush(bitcast[f32](shl(a, 16))); "
		"bl = flush(bitcast[f32](shl(b, 16))); "
		"flush_fma(al, bl, flush_fma(ah, bh, flush(c)))"},
	{"dot2_s16", LIB_SINT, "a, b, c", 0,
		"x = bitcast[i32](a); y = bitcast[i32](b); "
		"c + shr(shl(x, 16), 16) * shr(shl(y, 16), 16) + shr(x, 16) * shr(y, 16)"},
	/* Elements 0 and 2, or 1 and 3, of a group of four as a group of two. */
	{"even_u8", LIB_UINT, "a", EXPAND, "and(a, 0xff00ff)"},
	{"odd_u8", LIB_UINT, "a", EXPAND, "and(shr(a, 8), 0xff00ff)"},
	{"even_s8", LIB_UINT, "a", EXPAND, "e = and(a, 0xff00ff); s = and(a, 0x800080); "
					   "or(e, shl(s, 9) - shl(s, 1))"},
	{"odd_s8", LIB_UINT, "a", EXPAND, "even_s8(shr(a, 8))"},
	{"clamp_s16", LIB_SINT, "x", EXPAND, "min(max(x, -32768), 32767)"},
	/* Of a group of four the sums of two products each, which saturate, added to the halves of
	 * c, which wrap. */
	{"pairs_u8s8", LIB_SINT, "a, b, c", 0,
		"y = bitcast[i32](b); "
		"l = clamp_s16(bitcast[i32](and(a, 255)) * shr(shl(y, 24), 24) + "
		"bitcast[i32](and(shr(a, 8), 255)) * shr(shl(y, 16), 24)); "
		"h = clamp_s16(bitcast[i32](and(shr(a, 16), 255)) * shr(shl(y, 8), 24) + "
		"bitcast[i32](shr(a, 24)) * shr(y, 24)); "
		"or(and(c + l, 0xffff), shl(shr(c, 16) + h, 16))"},
	/* The same of |b| by a with the sign of b: of a b, where that fits. */
	{"signed_of", LIB_SINT, "a, b", EXPAND,
		"select(lt(b, 0), shr(shl(0 - a, 24), 24), select(eq(b, 0), 0, a))"},
	{"pairs_s8s8", LIB_SINT, "a, b, c", 0,
		"x = bitcast[i32](a); y = bitcast[i32](b); "
		"p = shr(shl(y, 24), 24); q = shr(shl(y, 16), 24); r = shr(shl(y, 8), 24); "
		"s = shr(y, 24); "
		"l = clamp_s16(abs(p) * signed_of(shr(shl(x, 24), 24), p) + "
		"abs(q) * signed_of(shr(shl(x, 16), 24), q)); "
		"h = clamp_s16(abs(r) * signed_of(shr(shl(x, 8), 24), r) + "
		"abs(s) * signed_of(shr(x, 24), s)); "
		"or(and(c + l, 0xffff), shl(shr(c, 16) + h, 16))"},
	{"dot4_u8s8", LIB_SINT, "a, b, c", 0,
		"y = bitcast[i32](b); "
		"c + bitcast[i32](and(a, 255)) * shr(shl(y, 24), 24) + bitcast[i32](and(shr(a, 8), "
		"255)) * shr(shl(y, 16), 24) + bitcast[i32](and(shr(a, 16), 255)) * shr(shl(y, 8), "
		"24) + bitcast[i32](shr(a, 24)) * shr(y, 24)"},
	{"dot4_s8s8", LIB_SINT, "a, b, c", 0,
		"x = bitcast[i32](a); y = bitcast[i32](b); "
		"c + shr(shl(x, 24), 24) * shr(shl(y, 24), 24) + shr(shl(x, 16), 24) * shr(shl(y, "
		"16), 24) + shr(shl(x, 8), 24) * shr(shl(y, 8), 24) + shr(x, 24) * shr(y, 24)"},
	/* The elements of a table of eight bytes at four indices. */
	{"byte_of8", LIB_UINT, "i, b, c", EXPAND,
		"select(lt(i, 8), and(shr(select(lt(i, 4), b, c), shl(and(i, 3), 3)), 255), 0)"},
	{"lookup8", LIB_UINT, "a, b, c", 0,
		"or(or(byte_of8(and(a, 255), b, c), shl(byte_of8(and(shr(a, 8), 255), b, c), 8)), "
		"or(shl(byte_of8(and(shr(a, 16), 255), b, c), 16), "
		"shl(byte_of8(shr(a, 24), b, c), 24)))"},
	{"scale", LIB_F32, "a, b", 0, "exp_scale(a, b, 254.0)"},
	{"scale", LIB_F64, "a, b", 0, "exp_scale(a, b, 2046.0)"},
	/* What dot products and tiles of bf16 do to subnormal numbers (ir/loop/frag.h). Tiny is
	 * what would be below 2**-126 if rounded with any exponent. */
	{"flush", LIB_F32, "x", 0, "select(lt(abs(x), 0x1p-126), x * 0.0, x)"},
	{"flush_fma", LIB_F32, "a, b, c", 0,
		"r = fma(a, b, c); s = fma(a * 0x1p64, b, c * 0x1p64); "
		"select(lt(abs(s), 0x1p-62), r * 0.0, r)"},
	/* By zero 0, and the remainder is the dividend; the smallest value by -1 wraps. */
	{"divide", LIB_UINT, "a, b", 0, "none = eq(b, 0); q = quot(a, select(none, 1, b)); "
					"select(none, 0, q)"},
	{"divide", LIB_SINT, "a, b", 0,
		"none = eq(b, 0); minus = eq(b, -1); d = select(or(none, minus), 1, b); "
		"away = and(ne(mod(a, d), 0), lt(xor(a, d), 0)); "
		"q = quot(a, d) - convert[T](away); select(none, 0, select(minus, -a, q))"},
	{"remainder", LIB_UINT, "a, b", 0, "none = eq(b, 0); r = mod(a, select(none, 1, b)); "
					   "select(none, a, r)"},
	{"remainder", LIB_SINT, "a, b", 0,
		"none = eq(b, 0); r = mod(a, select(or(none, eq(b, -1)), 1, b)); "
		"select(none, a, r)"},
	/* NaN wins; of two zeros the second: with an instruction that picks, and without. */
	{"min_pick", LIB_FLOAT, "a, b", 0, "select(eq(a, a), lesser(a, b), a)"},
	{"max_pick", LIB_FLOAT, "a, b", 0, "select(eq(a, a), greater(a, b), a)"},
	{"min_nan", LIB_FLOAT, "a, b", 0, "select(or(lt(a, b), ne(a, a)), a, b)"},
	{"max_nan", LIB_FLOAT, "a, b", 0, "select(or(gt(a, b), ne(a, a)), a, b)"},

	{"isnan", LIB_FLOAT, "x", 0, "ne(x, x)"},
	{"isinf", LIB_FLOAT, "x", 0, "eq(abs(x), inf)"},
	{"isfinite", LIB_FLOAT, "x", 0, "lt(abs(x), inf)"},
	{"signbit", LIB_FLOAT, "x", 0, "lt(bitcast[I](x), 0)"},
	{"isnan", LIB_ANY, "x", 0, "ne(x, x)"},
	{"isinf", LIB_ANY, "x", 0, "ne(x, x)"},
	{"isfinite", LIB_ANY, "x", 0, "eq(x, x)"},
	{"signbit", LIB_ANY, "x", 0, "lt(x, 0)"},

	{"fmax", LIB_FLOAT, "a, b", 0, "select(eq(b, b), select(ge(a, b), a, b), a)"},
	{"fmin", LIB_FLOAT, "a, b", 0, "select(eq(b, b), select(le(a, b), a, b), a)"},
	{"fmax", LIB_ANY, "a, b", 0, "max(a, b)"},
	{"fmin", LIB_ANY, "a, b", 0, "min(a, b)"},

	/* The sign bit of s on the magnitude of x. */
	{"copysign", LIB_F32, "x, s", EXPAND,
		"bitcast[T](or(and(bitcast[I](x), 0x7fffffff), and(bitcast[I](s), 0x80000000)))"},
	{"copysign", LIB_F64, "x, s", EXPAND,
		"bitcast[T](or(and(bitcast[I](x), 0x7fffffffffffffff), and(bitcast[I](s), "
		"0x8000000000000000)))"},

	/* One step in the order of bit patterns; from zero to the smallest denormal of b's sign. */
	{"nextafter", LIB_FLOAT, "a, b", 0,
		"i = bitcast[I](a); away = convert[I](eq(lt(a, b), lt(0, i))); "
		"step = bitcast[T](i + away * 2 - 1); "
		"zero = copysign(bitcast[T](convert[I](1)), b); "
		"r = select(eq(a, 0), zero, step); "
		"select(ne(a, a), a, select(ne(b, b), b, select(eq(a, b), b, r)))"},

	/* floor_div: quotient towards minus infinity; floor_mod: sign of b; trunc_mod: sign of
	 * a. */
	{"trunc_mod", LIB_INT, "a, b", 0, "rem(a, b)"},
	{"floor_div", LIB_INT, "a, b", 0, "floordiv(a, b)"},
	{"floor_mod", LIB_UINT, "a, b", 0, "rem(a, b)"},
	{"floor_mod", LIB_SINT, "a, b", 0,
		"r = rem(a, b); select(and(ne(r, 0), ne(lt(r, 0), lt(b, 0))), r + b, r)"},
	{"floor_mod", LIB_FLOAT, "a, b", 0,
		"r = trunc_mod(a, b); "
		"select(eq(r, 0), copysign(r, b), select(ne(lt(r, 0), lt(b, 0)), r + b, r))"},
	{"floor_div", LIB_FLOAT, "a, b", 0,
		"r = trunc_mod(a, b); q = (a - r) / b; "
		"adjust = and(ne(r, 0), ne(lt(r, 0), lt(b, 0))); p = select(adjust, q - 1, q); "
		"f = floor(p); g = select(gt(p - f, 0.5), f + 1, f); "
		"s = select(eq(p, 0), copysign(0, a / b), g); select(eq(b, 0), a / b, s)"},
	/* In each step the quotient, rounded to 53 bits, takes a multiple of b from a without
	 * rounding. f32 needs at most six; f64 is exact while |a/b| < 2**200. */
	{"mod_step", LIB_F64, "a, b", EXPAND, "fma(-trunc(a / b), b, a)"},
	{"trunc_mod", LIB_F64, "a, b", 0,
		"x = abs(a); y = abs(b); r1 = mod_step(x, y); r2 = mod_step(r1, y); "
		"r3 = mod_step(r2, y); r4 = mod_step(r3, y); "
		"r5 = select(lt(r4, 0), r4 + y, r4); r = select(ge(r5, y), r5 - y, r5); "
		"select(eq(x, inf), nan, copysign(select(lt(x, y), x, r), a))"},
	{"far_mod", LIB_F32, "a, b", 0,
		"x = convert[f64](abs(a)); y = convert[f64](abs(b)); r1 = mod_step(x, y); "
		"r2 = mod_step(r1, y); r3 = mod_step(r2, y); r4 = mod_step(r3, y); "
		"r5 = mod_step(r4, y); r6 = mod_step(r5, y); "
		"r7 = select(lt(r6, 0), r6 + y, r6); "
		"r = convert[f32](select(ge(r7, y), r7 - y, r7)); "
		"select(eq(x, inf), nan, copysign(select(lt(x, y), abs(a), r), a))"},
	/* A quotient below 2**22 may be rounded up to the next integer, no further. */
	{"trunc_mod", LIB_F32, "a, b", 0,
		"x = abs(a); y = abs(b); q = x / y; r = fma(-trunc(q), y, x); "
		"near = select(lt(r, 0), r + y, r); "
		"select(lt(q, 0x1p22), copysign(select(lt(x, y), x, near), a), far_mod(a, b))"},

	/* a to the power of the low byte of b; wraps. */
	{"pow_byte", LIB_INT, "a, b", 0,
		"p0 = select(eq(and(b, 1), 0), convert[T](1), a); s0 = a; s1 = s0 * s0; "
		"p1 = select(eq(and(shr(b, 1), 1), 0), p0, p0 * s1); s2 = s1 * s1; "
		"p2 = select(eq(and(shr(b, 2), 1), 0), p1, p1 * s2); s3 = s2 * s2; "
		"p3 = select(eq(and(shr(b, 3), 1), 0), p2, p2 * s3); s4 = s3 * s3; "
		"p4 = select(eq(and(shr(b, 4), 1), 0), p3, p3 * s4); s5 = s4 * s4; "
		"p5 = select(eq(and(shr(b, 5), 1), 0), p4, p4 * s5); s6 = s5 * s5; "
		"p6 = select(eq(and(shr(b, 6), 1), 0), p5, p5 * s6); s7 = s6 * s6; "
		"p7 = select(eq(and(shr(b, 7), 1), 0), p6, p6 * s7); p7"},
	{"pow_256", LIB_INT, "a", 0,
		"s1 = a * a; s2 = s1 * s1; s3 = s2 * s2; s4 = s3 * s3; "
		"s5 = s4 * s4; s6 = s5 * s5; s7 = s6 * s6; s7 * s7"},
	/* The bytes of b of narrower types end early: a shift by all bits gives 0. */
	{"pow_bits", LIB_INT, "a, b", 0,
		"a1 = pow_256(a); a2 = pow_256(a1); a3 = pow_256(a2); a4 = pow_256(a3); "
		"a5 = pow_256(a4); a6 = pow_256(a5); a7 = pow_256(a6); "
		"p1 = pow_byte(a, b) * pow_byte(a1, shr(b, 8)); "
		"p3 = pow_byte(a2, shr(b, 16)) * pow_byte(a3, shr(b, 24)); "
		"p5 = pow_byte(a4, shr(b, 32)) * pow_byte(a5, shr(b, 40)); "
		"p7 = pow_byte(a6, shr(b, 48)) * pow_byte(a7, shr(b, 56)); (p1 * p3) * (p5 * p7)"},
	{"pow", LIB_UINT, "a, b", 0, "pow_bits(a, b)"},
	{"pow", LIB_SINT, "a, b", 0,
		"parity = select(eq(and(b, 1), 0), convert[T](1), a); "
		"unit = or(eq(a, 1), eq(a, -1)); "
		"select(unit, parity, select(lt(b, 0), 0, pow_bits(a, b)))"},
	{NULL, 0, NULL, 0, NULL},
};

const LibDef *const lib_lists[] = {generic,    lib_f32,        lib_f64,    lib_special,
				   lib_bessel, lib_igamma,     lib_random, lib_aes,
				   lib_euclid, lib_bessel_jyk, NULL};

/* 2/pi as a string of bits: word 0 and 1 are the integer part, all zero. */
static const uint32_t two_over_pi[] = {
	0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599,
	0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c,
	0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639,
	0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f,
	0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7,
	0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d,
};

const ScTable *lib_table(const char *name)
{
	static const ScTable table = {"two_over_pi", DT_u32, sizeof two_over_pi / sizeof(uint32_t),
	                              two_over_pi};
	return strcmp(name, table.name) ? NULL : &table;
}
