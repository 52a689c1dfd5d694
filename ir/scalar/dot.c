/* Dot products of groups on values: what the texts of math.c say (scalar_dot), in C. */
#include <math.h>
#include <string.h>

#include "ir/scalar/priv.h"

static float flush(float x)
{
	return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* Returns the bf16 in the high half of the bits. */
static float of_bits(uint32_t u)
{
	float x;
	u &= 0xffff0000;
	memcpy(&x, &u, sizeof x);
	return flush(x);
}

/* Returns fma(a, b, c) of normal numbers, with a zero for a tiny result: for what would be below
 * 2**-126 if rounded with any exponent. */
static float flush_fma(float a, float b, float c)
{
	const float r = fmaf(a, b, c), s = fmaf(a * 0x1p64f, b, c * 0x1p64f);
	return fabsf(s) < 0x1p-62f ? r * 0 : r;
}

static float dot_bf16(uint32_t a, uint32_t b, float c)
{
	const float high = flush_fma(of_bits(a), of_bits(b), flush(c));
	return flush_fma(of_bits(a << 16), of_bits(b << 16), high);
}

/* Returns element k of the group, of so many bits. */
static uint32_t element(uint32_t group, uint32_t k, uint32_t bits, bool is_signed)
{
	const uint32_t low = group >> k * bits & ((1u << bits) - 1), sign = 1u << (bits - 1);
	return is_signed ? (low ^ sign) - sign : low;
}

/* Returns |b| times a with the sign of b, as 8 bits hold it. */
static int32_t by_sign(int32_t a, int32_t b)
{
	return b < 0 ? -b * (int8_t)-a : b * a;
}

/* Returns the sum of elements 2 half and 2 half + 1, as 16 bits hold it, or the nearest number that
 * they hold. */
static int32_t pair(ScOp op, uint32_t a, uint32_t b, uint32_t half)
{
	int32_t sum = 0;
	for (uint32_t k = 2 * half; k < 2 * half + 2; k++) {
		const int32_t x = (int32_t)element(a, k, 8, op == SC_pairs_s8s8),
			      y = (int32_t)element(b, k, 8, true);
		sum += op == SC_pairs_s8s8 ? by_sign(x, y) : x * y;
	}
	return sum < INT16_MIN ? INT16_MIN : sum > INT16_MAX ? INT16_MAX : sum;
}

static uint32_t dot_pairs(ScOp op, uint32_t a, uint32_t b, uint32_t c)
{
	const uint32_t low = c + (uint32_t)pair(op, a, b, 0),
		       high = (c >> 16) + (uint32_t)pair(op, a, b, 1);
	return (low & UINT16_MAX) | high << 16;
}

static uint32_t dot_int(ScOp op, uint32_t a, uint32_t b, uint32_t c)
{
	if (op == SC_pairs_u8s8 || op == SC_pairs_s8s8)
		return dot_pairs(op, a, b, c);

	const uint32_t bits = op == SC_dot2_s16 ? 16 : 8;
	for (uint32_t k = 0; k < 32 / bits; k++)
		c += element(a, k, bits, op != SC_dot4_u8s8) * element(b, k, bits, true);
	return c;
}

void scalar_dot_step(ScOp op, void *out, const void *const *in, uint32_t n)
{
	const uint32_t *a = in[0], *b = in[1];
	if (op == SC_dot2_bf16)
		for (uint32_t i = 0; i < n; i++)
			((float *)out)[i] = dot_bf16(a[i], b[i], ((const float *)in[2])[i]);
	else
		for (uint32_t i = 0; i < n; i++)
			((uint32_t *)out)[i] =
				dot_int(op, a[i], b[i], ((const uint32_t *)in[2])[i]);
}
