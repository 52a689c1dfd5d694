#include "ir/loop/frag.h"

#include <math.h>
#include <string.h>

static const FragRow row[FRAG_OPS] = {
	[FRAG_TILE_BF16] = {"tile_bf16", DT_bf16, DT_bf16, DT_f32, 2, 16, 16, 32, 8},
	[FRAG_TILE_S8S8] = {"tile_s8s8", DT_i8, DT_i8, DT_i32, 4, 16, 16, 64, 8},
	[FRAG_TILE_U8S8] = {"tile_u8s8", DT_u8, DT_i8, DT_i32, 4, 16, 16, 64, 8},
	[FRAG_TILE_S8U8] = {"tile_s8u8", DT_i8, DT_u8, DT_i32, 4, 16, 16, 64, 8},
};

const FragRow *frag_row(FragOp op)
{
	return &row[op];
}

static float flush(float x)
{
	return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* Returns fma(a, b, c) with a zero for a subnormal result. Rounded at a scale where the result
 * is normal, a result below the scaled limit is what would be subnormal; too large at that
 * scale, it is not. */
static float flush_fma(float a, float b, float c)
{
	float r = fmaf(a, b, c), scaled = fmaf(a * 0x1p64f, b, c * 0x1p64f);
	return fabsf(scaled) < 0x1p-62f ? copysignf(0, r) : r;
}

static float operand(const void *from, uint32_t k)
{
	uint16_t h;
	memcpy(&h, (const char *)from + 2 * (size_t)k, sizeof h);
	return flush(bf16_to_f32(h));
}

static void dot_bf16(float *c, const char *a, const char *b, uint32_t n, uint32_t k)
{
	float sum[2] = {0};
	for (uint32_t i = 0; i < k; i++)
		sum[i % 2] =
			flush_fma(operand(a, i), operand(b, i / 2 * 2 * n + i % 2), sum[i % 2]);
	*c = flush(flush(*c) + flush(sum[0] + sum[1]));
}

static int32_t byte_of(DType d, char x)
{
	return d == DT_u8 ? (uint8_t)x : (int8_t)x;
}

static void dot_int8(FragOp op, int32_t *c, const char *a, const char *b, uint32_t n, uint32_t k)
{
	for (uint32_t i = 0; i < k; i++) {
		const int32_t x = byte_of(row[op].a, a[i]),
			      y = byte_of(row[op].b, b[i / 4 * 4 * n + i % 4]);
		*c = (int32_t)((uint32_t)*c + (uint32_t)(x * y));
	}
}

void frag_dot(FragOp op, uint32_t m, uint32_t n, uint32_t k, void *c, const void *a, const void *b)
{
	const uint32_t size = dtype_size(row[op].a);
	for (uint32_t i = 0; i < m; i++)
		for (uint32_t j = 0; j < n; j++) {
			const char *row_a = (const char *)a + (size_t)i * k * size;
			const char *column = (const char *)b + (size_t)j * row[op].group * size;
			if (op == FRAG_TILE_BF16)
				dot_bf16((float *)c + (size_t)i * n + j, row_a, column, n, k);
			else
				dot_int8(op, (int32_t *)c + (size_t)i * n + j, row_a, column, n, k);
		}
}
