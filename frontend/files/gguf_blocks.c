/* Kinds of blocks of GGUF files. Where each bit lies is that of ggml's structures block_q4_0,
 * block_q4_K and so on (ggml-common.h of llama.cpp). d, m: the scale and the offset in f16. */
#include <math.h>
#include <string.h>

#include "frontend/files/gguf.h"

enum {
	SMALL = 32,  /* weights of the kinds with one scale */
	LARGE = 256, /* of those whose scales are quantised, too */
	HALF_BYTE = 15
};

static float half_at(const uint8_t *p)
{
	return f16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

/* ---- blocks of 32 ---- */

/* Unpacks 32 integers of 4 bits: the low bits of bytes are the first 16. */
static void half_bytes(const uint8_t *p, int8_t *q)
{
	for (uint32_t i = 0; i < SMALL / 2; i++) {
		q[i] = (int8_t)(p[i] & HALF_BYTE);
		q[i + SMALL / 2] = (int8_t)(p[i] >> 4);
	}
}

/* Adds a fifth bit to 32 integers: bit i of four bytes. */
static void fifth_bits(const uint8_t *high, int8_t *q)
{
	for (uint32_t i = 0; i < SMALL; i++)
		q[i] = (int8_t)(q[i] | (high[i / 8] >> i % 8 & 1) << 4);
}

static void lower(int8_t *q, uint32_t n, int8_t by)
{
	for (uint32_t i = 0; i < n; i++)
		q[i] = (int8_t)(q[i] - by);
}

static void q4_0(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	g->scale[0] = half_at(p);
	half_bytes(p + 2, q);
	lower(q, SMALL, 8);
}

static void q4_1(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	g->scale[0] = half_at(p);
	g->offset[0] = -half_at(p + 2);
	half_bytes(p + 4, q);
}

static void q5_0(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	g->scale[0] = half_at(p);
	half_bytes(p + 6, q);
	fifth_bits(p + 2, q);
	lower(q, SMALL, 16);
}

static void q5_1(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	g->scale[0] = half_at(p);
	g->offset[0] = -half_at(p + 2);
	half_bytes(p + 8, q);
	fifth_bits(p + 4, q);
}

static void q8_0(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	g->scale[0] = half_at(p);
	memcpy(q, p + 2, SMALL);
}

/* Replaces integers of 4 bits by the numbers of a table. */
static void look_up(const int8_t table[16], int8_t *q, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		q[i] = table[q[i]];
}

static const int8_t iq4_table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
				     1,    13,   25,  38,  53,  69,  89,  113};
/* E2M1, doubled */
static const int8_t e2m1_table[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static void iq4_nl(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	g->scale[0] = half_at(p);
	half_bytes(p + 2, q);
	look_up(iq4_table, q, SMALL);
}

static void mxfp4(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	enum { BIAS = 127 };
	g->scale[0] = ldexpf(1, (int)p[0] - BIAS - 1); /* half: the table is doubled */
	half_bytes(p + 1, q);
	look_up(e2m1_table, q, SMALL);
}

/* ---- blocks of 256 ---- */

/* Sets scales and offsets of 6 bits of eight groups, which lie in 12 bytes. */
static void six_bits(const uint8_t *p, GgufGroups *g)
{
	for (uint32_t k = 0; k < 8; k++) {
		const uint32_t more = k < 4 ? 0 : (uint32_t)(p[k - 4] >> 6) << 4,
			       low = k < 4 ? p[k] & 63 : (p[k + 4] & HALF_BYTE) | more,
			       high = k < 4 ? p[k + 4] & 63 : p[k + 4] >> 4 | p[k] >> 6 << 4;
		g->scale[k] = (float)low;
		g->offset[k] = (float)high;
	}
}

/* Sets the units, which lie side by side. */
static void two_units(const uint8_t *p, GgufGroups *g)
{
	g->scale_unit = half_at(p);
	g->offset_unit = half_at(p + 2);
}

/* Unpacks 256 integers of 4 bits, of which 32 low and 32 high halves of the same bytes follow each
 * other. */
static void large_halves(const uint8_t *p, int8_t *q)
{
	for (uint32_t i = 0; i < LARGE; i++)
		q[i] = (int8_t)(p[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & HALF_BYTE);
}

static void q4_k(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	two_units(p, g);
	six_bits(p + 4, g);
	large_halves(p + 16, q);
}

static void q5_k(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	two_units(p, g);
	six_bits(p + 4, g);
	large_halves(p + 48, q);
	for (uint32_t i = 0; i < LARGE; i++)
		q[i] = (int8_t)(q[i] | (p[16 + i % 32] >> i / 32 & 1) << 4);
}

static void q6_k(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	const uint8_t *low = p, *high = p + 128, *by = p + 192;
	g->scale_unit = half_at(p + 208);
	for (uint32_t i = 0; i < LARGE; i++) {
		const uint32_t half = i / 128, part = i / 32 % 4, k = i % 32,
			       l = low[half * 64 + part % 2 * 32 + k] >> part / 2 * 4 & HALF_BYTE,
			       h = high[half * 32 + k] >> part * 2 & 3;
		q[i] = (int8_t)((int)(l | h << 4) - 32);
	}
	for (uint32_t k = 0; k < LARGE / 16; k++)
		g->scale[k] = (float)(int8_t)by[k];
}

/* Unpacks 256 integers of 2 bits: 32 neighbours lie in the same bits of 32 bytes. */
static void quarters(const uint8_t *p, int8_t *q)
{
	for (uint32_t i = 0; i < LARGE; i++)
		q[i] = (int8_t)(p[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3);
}

static void q2_k(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	two_units(p + 80, g);
	for (uint32_t k = 0; k < LARGE / 16; k++) {
		g->scale[k] = (float)(p[k] & HALF_BYTE);
		g->offset[k] = (float)(p[k] >> 4);
	}
	quarters(p + 16, q);
}

static void q3_k(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	const uint8_t *high = p, *by = p + 96;
	g->scale_unit = half_at(p + 108);
	quarters(p + 32, q);
	for (uint32_t i = 0; i < LARGE; i++)
		q[i] = (int8_t)(q[i] - (high[i % 32] >> i / 32 & 1 ? 0 : 4));
	for (uint32_t k = 0; k < LARGE / 16; k++) {
		const uint32_t four = by[k % 8] >> k / 8 * 4 & HALF_BYTE,
			       two = by[8 + k % 4] >> k / 4 * 2 & 3;
		g->scale[k] = (float)((int)(four | two << 4) - 32);
	}
}

static void iq4_xs(const uint8_t *p, int8_t *q, GgufGroups *g)
{
	g->scale_unit = half_at(p);
	for (uint32_t k = 0; k < LARGE / SMALL; k++) {
		const uint32_t four = p[4 + k / 2] >> k % 2 * 4 & HALF_BYTE,
			       two = (uint32_t)(p[2] | p[3] << 8) >> 2 * k & 3;
		g->scale[k] = (float)((int)(four | two << 4) - 32);
		half_bytes(p + 8 + (size_t)k * 16, q + (size_t)k * SMALL);
	}
	look_up(iq4_table, q, LARGE);
}

static const GgufBlocks kinds[] = {
	{"Q4_0", 2, SMALL, 18, 32, false, false, DT_f16, q4_0},
	{"Q4_1", 3, SMALL, 20, 32, true, false, DT_f16, q4_1},
	{"Q5_0", 6, SMALL, 22, 32, false, false, DT_f16, q5_0},
	{"Q5_1", 7, SMALL, 24, 32, true, false, DT_f16, q5_1},
	{"Q8_0", 8, SMALL, 34, 32, false, false, DT_f16, q8_0},
	{"Q2_K", 10, LARGE, 84, 16, true, true, DT_u8, q2_k},
	{"Q3_K", 11, LARGE, 110, 16, false, true, DT_i8, q3_k},
	{"Q4_K", 12, LARGE, 144, 32, true, true, DT_u8, q4_k},
	{"Q5_K", 13, LARGE, 176, 32, true, true, DT_u8, q5_k},
	{"Q6_K", 14, LARGE, 210, 16, false, true, DT_i8, q6_k},
	{"IQ4_NL", 20, SMALL, 18, 32, false, false, DT_f16, iq4_nl},
	{"IQ4_XS", 23, LARGE, 136, 32, false, true, DT_i8, iq4_xs},
	{"MXFP4", 39, SMALL, 17, 32, false, false, DT_bf16, mxfp4},
};

const GgufBlocks *gguf_blocks(uint32_t id)
{
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		if (kinds[k].id == id)
			return &kinds[k];
	return NULL;
}

/* Returns a tensor of numbers that each `per` weights of t have one of. */
static Tensor one_for(Arena *arena, const Tensor *t, int64_t per, DType d)
{
	Tensor x = *t;
	x.dtype = d;
	x.dim[x.rank - 1] /= per;
	x.data = arena_alloc(arena, tensor_bytes(&x));
	return x;
}

GgufUnpacked gguf_unpack(Arena *arena, const GgufTensor *t)
{
	const GgufBlocks *kind = t->blocks;
	const int64_t all = tensor_numel(&t->tensor), groups = kind->weights / kind->group;
	GgufUnpacked u = {.q = one_for(arena, &t->tensor, 1, DT_i8),
			  .scale = one_for(arena, &t->tensor, kind->group, kind->stored)};
	GgufGroups g;
	if (kind->offsets)
		u.offset = one_for(arena, &t->tensor, kind->group, kind->stored);
	if (kind->units)
		u.scale_unit = one_for(arena, &t->tensor, kind->weights, DT_f16);
	if (kind->units && kind->offsets)
		u.offset_unit = one_for(arena, &t->tensor, kind->weights, DT_f16);
	for (int64_t k = 0; k < all / kind->weights; k++) {
		kind->unpack((const uint8_t *)t->tensor.data + k * kind->bytes,
			     (int8_t *)u.q.data + k * kind->weights, &g);
		for (int64_t i = 0; i < groups; i++) {
			tensor_set_f64(&u.scale, k * groups + i, (double)g.scale[i]);
			if (u.offset.data)
				tensor_set_f64(&u.offset, k * groups + i, (double)g.offset[i]);
		}
		if (u.scale_unit.data)
			tensor_set_f64(&u.scale_unit, k, (double)g.scale_unit);
		if (u.offset_unit.data)
			tensor_set_f64(&u.offset_unit, k, (double)g.offset_unit);
	}
	return u;
}
