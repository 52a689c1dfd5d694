#include "ir/graph/dtype.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { CAT_BOOL = 1, CAT_UINT, CAT_INT, CAT_FLOAT, CAT_COMPLEX };

/* How a narrow float stores infinity and NaN. */
typedef enum {
	TOP_INF, /* the top exponent is infinity and NaN */
	TOP_NAN, /* no infinity, all ones is NaN; what is too large becomes the greatest number */
	FNUZ     /* no infinity and no -0, whose bits are NaN, and what is too large becomes NaN */
} Special;

/* A narrow float: its bits of exponent and mantissa. */
typedef struct {
	int e, m;
	Special special;
} NarrowFloat;

static const struct {
	const char *name;
	uint8_t size, category;
	DType real;
	NarrowFloat small;
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
	[DT_f16] = {"f16", 2, CAT_FLOAT, DT_f16, {5, 10, TOP_INF}},
	[DT_bf16] = {"bf16", 2, CAT_FLOAT, DT_bf16, {8, 7, TOP_INF}},
	[DT_f32] = {"f32", 4, CAT_FLOAT, DT_f32},
	[DT_f64] = {"f64", 8, CAT_FLOAT, DT_f64},
	[DT_c32] = {"c32", 4, CAT_COMPLEX, DT_f16},
	[DT_c64] = {"c64", 8, CAT_COMPLEX, DT_f32},
	[DT_c128] = {"c128", 16, CAT_COMPLEX, DT_f64},
	[DT_f8e4m3] = {"f8e4m3", 1, CAT_FLOAT, DT_f8e4m3, {4, 3, TOP_NAN}},
	[DT_f8e5m2] = {"f8e5m2", 1, CAT_FLOAT, DT_f8e5m2, {5, 2, TOP_INF}},
	[DT_f8e4m3fnuz] = {"f8e4m3fnuz", 1, CAT_FLOAT, DT_f8e4m3fnuz, {4, 3, FNUZ}},
	[DT_f8e5m2fnuz] = {"f8e5m2fnuz", 1, CAT_FLOAT, DT_f8e5m2fnuz, {5, 2, FNUZ}},
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

bool dtype_is_narrow(DType d)
{
	return known(d) && info[d].small.e;
}

uint32_t dtype_digits(DType d)
{
	if (dtype_is_narrow(d))
		return (uint32_t)info[d].small.m + 1;
	return d == DT_f64 ? 53 : d == DT_f32 ? 24 : 0;
}

bool dtype_is_int(DType d)
{
	return category(d) == CAT_INT || category(d) == CAT_UINT;
}

bool dtype_is_signed(DType d)
{
	return category(d) >= CAT_INT;
}

/* Returns the bits of the greatest number. */
static uint32_t greatest(NarrowFloat k)
{
	uint32_t ones = (1u << (k.e + k.m)) - 1;
	return k.special == FNUZ ? ones : k.special == TOP_NAN ? ones - 1 : ones - (1u << k.m);
}

double dtype_max(DType d)
{
	if (dtype_is_narrow(d))
		return (double)narrow_to_f32(d, greatest(info[d].small));
	return d == DT_f64 ? DBL_MAX : (double)FLT_MAX;
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
	if (dtype_is_narrow(d))
		return dtype_size(d) == 2 ? DT_u16 : DT_u8;
	return d == DT_bool ? DT_u8 : d;
}

/* ---- which values they have ---- */

static bool is_f8(DType d)
{
	return dtype_is_narrow(d) && dtype_size(d) == 1;
}

static uint32_t mantissa(DType d)
{
	return is_f8(d) ? 0 : dtype_digits(d);
}

static int exponent(DType d)
{
	return d == DT_f64 ? 11 : d == DT_f32 ? 8 : info[d].small.e;
}

bool dtype_keeps(DType from, DType to)
{
	if (from == to)
		return true;
	if (from == DT_bool)
		return !dtype_is_complex(to) && !is_f8(to);
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

/* Returns the smallest signed type that holds both; i64 if there is none. */
static DType promote_int(DType a, DType b)
{
	if (category(a) == category(b))
		return info[a].size >= info[b].size ? a : b;
	DType u = category(a) == CAT_UINT ? a : b, s = category(a) == CAT_UINT ? b : a;
	if (info[s].size > info[u].size)
		return s;
	return info[u].size == 1 ? DT_i16 : info[u].size == 2 ? DT_i32 : DT_i64;
}

/* Returns the float dtype that both become. ATen has no promotion of f8 kinds; here they behave
 * as narrow floats. */
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

static int bias_of(NarrowFloat k)
{
	return (1 << (k.e - 1)) - (k.special != FNUZ);
}

/* Returns the bits of NaN; of two, those without a sign. */
static uint32_t nan_of(NarrowFloat k)
{
	return k.special == FNUZ      ? 1u << (k.e + k.m)
	       : k.special == TOP_NAN ? greatest(k) + 1
				      : greatest(k) + 1 + (1u << (k.m - 1));
}

/* Returns what the bits v (without the sign) above those of the greatest number mean: infinity
 * or NaN. */
static float beyond(NarrowFloat k, uint32_t v)
{
	return float_of(k.special == TOP_INF && v == greatest(k) + 1 ? 0x7f800000u : 0x7fc00000u);
}

static float small_to_f32(NarrowFloat k, uint32_t v)
{
	uint32_t sign = 1u << (k.e + k.m), a = v & (sign - 1), exp = a >> k.m;
	uint32_t man = a & ((1u << k.m) - 1);
	if (k.special == FNUZ && v == sign)
		return float_of(0x7fc00000u);
	float f = a > greatest(k) ? beyond(k, a)
		  : exp           ? ldexpf((float)(man | 1u << k.m), (int)exp - bias_of(k) - k.m)
				  : ldexpf((float)man, 1 - bias_of(k) - k.m);
	return v & sign ? -f : f;
}

/* Returns the bits of the number nearest to the float with the bits a, which is neither negative
 * nor NaN, as if exponents had no end. */
static uint32_t nearest(NarrowFloat k, uint32_t a)
{
	int bias = bias_of(k), drop = 23 - k.m;
	if (a < (uint32_t)(128 - bias) << 23) /* subnormal result: count units of the last place */
		return (uint32_t)lrintf(ldexpf(float_of(a), bias - 1 + k.m));
	uint32_t r = (a + ((1u << (drop - 1)) - 1) + (a >> drop & 1)) >> drop;
	return r - ((uint32_t)(127 - bias) << k.m);
}

static uint32_t f32_to_small(NarrowFloat k, float f)
{
	uint32_t u = bits_of(f), a = u & 0x7fffffffu, sign = u >> 31 << (k.e + k.m);
	bool none = a > 0x7f800000u;
	uint32_t v = none ? nan_of(k) : nearest(k, a);
	if (k.special == FNUZ)
		return none || v > greatest(k) ? nan_of(k) : v ? sign | v : 0;
	uint32_t top = greatest(k) + (k.special == TOP_INF);
	return sign | (!none && v > top ? top : v);
}

float f16_to_f32(uint16_t v)
{
	return small_to_f32(info[DT_f16].small, v);
}

uint16_t f32_to_f16(float f)
{
	return (uint16_t)f32_to_small(info[DT_f16].small, f);
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

float narrow_to_f32(DType d, uint32_t bits)
{
	return d == DT_f16    ? f16_to_f32((uint16_t)bits)
	       : d == DT_bf16 ? bf16_to_f32((uint16_t)bits)
			      : small_to_f32(info[d].small, bits);
}

uint32_t f32_to_narrow(DType d, float f)
{
	return d == DT_f16    ? f32_to_f16(f)
	       : d == DT_bf16 ? f32_to_bf16(f)
			      : f32_to_small(info[d].small, f);
}

float narrow_round(DType d, float f)
{
	return narrow_to_f32(d, f32_to_narrow(d, f));
}
