#include "ir/graph/dtype.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { CAT_BOOL = 1, CAT_UINT, CAT_INT, CAT_FLOAT, CAT_COMPLEX };

static const struct {
	const char *name;
	uint8_t size, category;
	DType real;
} info[DT_COUNT] = {
	[DT_none] = {"none", 0, 0, DT_none},
	[DT_bool] = {"bool", 1, CAT_BOOL, DT_bool},
	[DT_u8] = {"u8", 1, CAT_UINT, DT_u8},
	[DT_i8] = {"i8", 1, CAT_INT, DT_i8},
	[DT_i16] = {"i16", 2, CAT_INT, DT_i16},
	[DT_i32] = {"i32", 4, CAT_INT, DT_i32},
	[DT_i64] = {"i64", 8, CAT_INT, DT_i64},
	[DT_u16] = {"u16", 2, CAT_UINT, DT_u16},
	[DT_u32] = {"u32", 4, CAT_UINT, DT_u32},
	[DT_u64] = {"u64", 8, CAT_UINT, DT_u64},
	[DT_f16] = {"f16", 2, CAT_FLOAT, DT_f16},
	[DT_bf16] = {"bf16", 2, CAT_FLOAT, DT_bf16},
	[DT_f32] = {"f32", 4, CAT_FLOAT, DT_f32},
	[DT_f64] = {"f64", 8, CAT_FLOAT, DT_f64},
	[DT_c32] = {"c32", 4, CAT_COMPLEX, DT_f16},
	[DT_c64] = {"c64", 8, CAT_COMPLEX, DT_f32},
	[DT_c128] = {"c128", 16, CAT_COMPLEX, DT_f64},
	[DT_f8e4m3] = {"f8e4m3", 1, CAT_FLOAT, DT_f8e4m3},
	[DT_f8e5m2] = {"f8e5m2", 1, CAT_FLOAT, DT_f8e5m2},
};

static bool known(DType d)
{
	return (unsigned)d < DT_COUNT && d != DT_none;
}

const char *dtype_name(DType d)
{
	return known(d) ? info[d].name : "?";
}

DType dtype_parse(const char *s, uint32_t n)
{
	for (int d = DT_none + 1; d < DT_COUNT; d++)
		if (strlen(info[d].name) == n && memcmp(info[d].name, s, n) == 0)
			return (DType)d;
	return DT_none;
}

uint32_t dtype_size(DType d)
{
	return known(d) ? info[d].size : 0;
}

static int category(DType d)
{
	return known(d) ? info[d].category : 0;
}

bool dtype_is_float(DType d)
{
	return category(d) == CAT_FLOAT;
}

bool dtype_is_int(DType d)
{
	return category(d) == CAT_INT || category(d) == CAT_UINT;
}

bool dtype_is_signed(DType d)
{
	return category(d) >= CAT_INT;
}

double dtype_max(DType d)
{
	switch (d) {
	case DT_f16: return 65504;
	case DT_bf16: return 0x1.fep127;
	case DT_f8e4m3: return 448;
	case DT_f8e5m2: return 57344;
	case DT_f64: return DBL_MAX;
	default: return (double)FLT_MAX;
	}
}

bool dtype_is_complex(DType d)
{
	return category(d) == CAT_COMPLEX;
}

bool dtype_is_inexact(DType d)
{
	return dtype_is_float(d) || dtype_is_complex(d);
}

DType dtype_real(DType d)
{
	return known(d) ? info[d].real : DT_none;
}

DType dtype_complex(DType d)
{
	for (int c = DT_none + 1; c < DT_COUNT; c++)
		if (category((DType)c) == CAT_COMPLEX && info[c].real == d)
			return (DType)c;
	return DT_none;
}

DType dtype_compute(DType d)
{
	if (dtype_is_float(d) && d != DT_f64)
		return DT_f32;
	return d == DT_c32 ? DT_c64 : d;
}

DType dtype_raw(DType d)
{
	switch (d) {
	case DT_f16: case DT_bf16: return DT_u16;
	case DT_bool: case DT_f8e4m3: case DT_f8e5m2: return DT_u8;
	default: return d;
	}
}

/* ---- which values they have ---- */

static uint32_t mantissa(DType d)
{
	switch (d) {
	case DT_f64:
		return 53;
	case DT_f32:
		return 24;
	case DT_f16:
		return 11;
	case DT_bf16:
		return 8;
	default:
		return 0;
	}
}

static uint32_t exponent(DType d)
{
	return d == DT_f64 ? 11 : d == DT_f32 || d == DT_bf16 ? 8 : d == DT_f16 ? 5 : 0;
}

bool dtype_keeps(DType from, DType to)
{
	if (from == to)
		return true;
	if (from == DT_bool)
		return !dtype_is_complex(to) && to != DT_f8e4m3 && to != DT_f8e5m2;
	if (dtype_is_int(from)) {
		uint32_t bits = 8 * dtype_size(from) - dtype_is_signed(from);
		if (dtype_is_int(to))
			return (!dtype_is_signed(from) || dtype_is_signed(to)) &&
			       bits <= 8 * dtype_size(to) - dtype_is_signed(to);
		return bits <= mantissa(to) && to != DT_f16;
	}
	return mantissa(from) && mantissa(to) && mantissa(from) <= mantissa(to) &&
	       exponent(from) <= exponent(to);
}

/* ---- promotion ---- */

/* The smallest signed type that holds both; i64 when there is none. */
static DType promote_int(DType a, DType b)
{
	if (category(a) == category(b))
		return info[a].size >= info[b].size ? a : b;
	DType u = category(a) == CAT_UINT ? a : b, s = category(a) == CAT_UINT ? b : a;
	if (info[s].size > info[u].size)
		return s;
	return info[u].size == 1 ? DT_i16 : info[u].size == 2 ? DT_i32 : DT_i64;
}

/* f8 kinds have no promotion in ATen; here they behave as narrow floats. */
static DType promote_float(DType a, DType b)
{
	if (info[a].size != info[b].size)
		return info[a].size > info[b].size ? a : b;
	return info[a].size == 2 ? DT_f32 : DT_f16; /* f16 with bf16; f8 with f8 */
}

static DType promote_complex(DType a, DType b)
{
	DType ra = dtype_real(a), rb = dtype_real(b);
	DType r = ra == rb              ? ra
		  : !dtype_is_float(ra) ? rb
		  : !dtype_is_float(rb) ? ra
					: promote_float(ra, rb);
	return r == DT_f64 ? DT_c128 : r == DT_f32 ? DT_c64 : DT_c32;
}

DType dtype_promote(DType a, DType b)
{
	if (a == b || !known(b))
		return a;
	if (!known(a))
		return b;
	int ca = category(a), cb = category(b);
	if (ca == CAT_COMPLEX || cb == CAT_COMPLEX)
		return promote_complex(a, b);
	if (ca == CAT_FLOAT && cb == CAT_FLOAT)
		return promote_float(a, b);
	if (ca == CAT_FLOAT || cb == CAT_FLOAT)
		return ca == CAT_FLOAT ? a : b;
	if (ca == CAT_BOOL || cb == CAT_BOOL)
		return ca == CAT_BOOL ? b : a;
	return promote_int(a, b);
}

/* ---- storage conversions ---- */

static uint32_t bits_of(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	return u;
}

static float float_of(uint32_t u)
{
	float f;
	memcpy(&f, &u, 4);
	return f;
}

/* A float with `e` exponent and `m` mantissa bits; the top exponent is inf/NaN unless fn, where
 * only all ones is NaN. */
typedef struct {
	int e, m;
	bool fn;
} Small;

static float small_to_f32(Small k, uint32_t v)
{
	uint32_t sign = v >> (k.e + k.m) & 1, exp = v >> k.m & ((1u << k.e) - 1);
	uint32_t man = v & ((1u << k.m) - 1), top = (1u << k.e) - 1;
	int bias = (1 << (k.e - 1)) - 1;
	if (k.fn ? (exp == top && man == (1u << k.m) - 1) : (exp == top && man))
		return float_of(sign << 31 | 0x7fc00000u);
	if (!k.fn && exp == top)
		return float_of(sign << 31 | 0x7f800000u);
	float f = exp ? ldexpf((float)(man | 1u << k.m), (int)exp - bias - k.m)
		      : ldexpf((float)man, 1 - bias - k.m);
	return sign ? -f : f;
}

static uint32_t f32_to_small(Small k, float f)
{
	uint32_t u = bits_of(f), a = u & 0x7fffffffu, sign = u >> 31 << (k.e + k.m);
	uint32_t inf = ((1u << k.e) - 1) << k.m;
	uint32_t nan = inf | (k.fn ? (1u << k.m) - 1 : 1u << (k.m - 1));
	int bias = (1 << (k.e - 1)) - 1, drop = 23 - k.m;
	if (a > 0x7f800000u)
		return sign | nan;
	if (a < (uint32_t)(128 - bias) << 23) /* subnormal result: count units of the last place */
		return sign | (uint32_t)lrintf(ldexpf(float_of(a), bias - 1 + k.m));
	uint32_t r = (a + ((1u << (drop - 1)) - 1) + (a >> drop & 1)) >> drop;
	uint32_t v = r - ((uint32_t)(127 - bias) << k.m);
	uint32_t top = k.fn ? nan - 1 : inf; /* without infinities the largest number stands for
	                                        them */
	return sign | (v > top ? top : v);
}

static const Small F16 = {5, 10, false}, F8E4M3 = {4, 3, true}, F8E5M2 = {5, 2, false};

float f16_to_f32(uint16_t v)
{
	return small_to_f32(F16, v);
}

uint16_t f32_to_f16(float f)
{
	return (uint16_t)f32_to_small(F16, f);
}

float bf16_to_f32(uint16_t v)
{
	return float_of((uint32_t)v << 16);
}

uint16_t f32_to_bf16(float f)
{
	uint32_t u = bits_of(f);
	if ((u & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float f8e4m3_to_f32(uint8_t v)
{
	return small_to_f32(F8E4M3, v);
}

uint8_t f32_to_f8e4m3(float f)
{
	return (uint8_t)f32_to_small(F8E4M3, f);
}

float f8e5m2_to_f32(uint8_t v)
{
	return small_to_f32(F8E5M2, v);
}

uint8_t f32_to_f8e5m2(float f)
{
	return (uint8_t)f32_to_small(F8E5M2, f);
}
