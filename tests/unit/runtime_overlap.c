/* Calls of many tensors: which overlap is told by sorting their ranges, and what is told is what
 * comparing each with each tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime_model.h"

enum { INPUTS = 60, OUTPUTS = 40, BYTES = 1 << 16, ROUNDS = 4000 };

static int sizes_fn(const int64_t *extent, int64_t *slot, WeftStatus *status)
{
	(void)status;
	for (uint32_t k = 0; k < OUTPUTS; k++)
		slot[k] = extent[k];
	slot[OUTPUTS] = 64;
	return WEFT_OK;
}

static int run_fn(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	(void)r;
	(void)buf;
	(void)slot;
	return WEFT_OK;
}

typedef struct {
	WeftDim dim[INPUTS];
	WeftTensorInfo in[INPUTS], out[OUTPUTS];
	char name[INPUTS + OUTPUTS][8];
	WeftTensor x[INPUTS], y[OUTPUTS];
	int64_t extent[INPUTS];
	uint64_t random;
} Case;

static uint32_t below(Case *c, uint32_t n)
{
	c->random = c->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(c->random >> 33) % n;
}

/* Output k has the extent of input k; some replace it. */
static void draw_entry(Case *c)
{
	static const WeftTensorInfo bytes = {.dtype = {WEFT_UINT, 8, 1}, .rank = 1, .donates = -1};
	for (uint32_t k = 0; k < INPUTS; k++) {
		c->extent[k] = below(c, 8) ? 1 + below(c, 40) : 0;
		c->dim[k] = (WeftDim){c->extent[k], -1, "n"};
		c->in[k] = bytes;
		c->in[k].dim = &c->dim[k];
		snprintf(c->name[k], sizeof c->name[k], "x%u", k);
		c->in[k].name = c->name[k];
	}
	for (uint32_t k = 0; k < OUTPUTS; k++) {
		c->out[k] = c->in[k];
		c->out[k].donates = below(c, 2) ? (int32_t)k : -1;
		snprintf(c->name[INPUTS + k], sizeof c->name[0], "y%u", k);
		c->out[k].name = c->name[INPUTS + k];
	}
}

/* Tensors that mostly lie apart, in a drawn order; now and then one lies anywhere. */
static void draw_memory(Case *c, char *memory)
{
	uint32_t at[INPUTS + OUTPUTS];
	for (uint32_t k = 0; k < INPUTS + OUTPUTS; k++)
		at[k] = 64 * k;
	for (uint32_t k = INPUTS + OUTPUTS; k-- > 1;) {
		const uint32_t other = below(c, k + 1), t = at[k];
		at[k] = at[other];
		at[other] = t;
	}
	const bool wrong = below(c, 2);
	for (uint32_t k = 0; k < INPUTS + OUTPUTS; k++) {
		WeftTensor *t = k < INPUTS ? &c->x[k] : &c->y[k - INPUTS];
		uint32_t place = at[k];
		if (k >= INPUTS && c->out[k - INPUTS].donates >= 0 && below(c, 4))
			place = (uint32_t)((char *)c->x[k - INPUTS].data - memory);
		if (wrong && !below(c, 60))
			place = below(c, 64 * (INPUTS + OUTPUTS));
		if (k < INPUTS && !below(c, 20)) /* inputs may lie in each other */
			place = at[below(c, INPUTS)];
		*t = (WeftTensor){.data = memory + place,
				  .device = {.type = WEFT_CPU},
				  .dtype = {WEFT_UINT, 8, 1},
				  .ndim = 1,
				  .shape = &c->extent[k < INPUTS ? k : k - INPUTS]};
	}
}

static bool meet(const WeftTensor *a, const WeftTensor *b)
{
	const char *p = a->data, *q = b->data;
	const int64_t n = a->shape[0], m = b->shape[0];
	return n && m && p < q + m && q < p + n;
}

/* Whether output k overlaps what it may not. */
static bool is_wrong(const Case *c, uint32_t k)
{
	for (uint32_t i = 0; i < INPUTS; i++)
		if (meet(&c->y[k], &c->x[i]) &&
		    !((int32_t)i == c->out[k].donates && c->y[k].data == c->x[i].data))
			return true;
	for (uint32_t i = 0; i < OUTPUTS; i++)
		if (i != k && meet(&c->y[k], &c->y[i]))
			return true;
	return false;
}

/* Whether the message names an output that overlaps what it may not. */
static bool names_wrong(const Case *c, const char *message)
{
	uint32_t k;
	return sscanf(message, "output y%u overlaps another tensor or the workspace", &k) == 1 &&
	       k < OUTPUTS && is_wrong(c, k);
}

static void test_many(void **state)
{
	(void)state;
	static Case c;
	static _Alignas(64) char memory[BYTES], work[1024], kept[1 << 14];
	static const WeftManifest manifest = MANIFEST("many");
	uint32_t fine = 0;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		c.random = i;
		draw_entry(&c);
		draw_memory(&c, memory);
		const WeftEntry e = {ENTRY("main", OUTPUTS + 1, INPUTS, sizes_fn, run_fn),
				     .ninput = INPUTS, .input = c.in, .noutput = OUTPUTS,
				     .output = c.out};
		const WeftEntry *const entries[] = {&e};
		const WeftModel m = {MODEL(manifest), COUNTED(nentry, entry, entries)};
		WeftStatus status = {0};
		WeftInstance *inst;
		assert_true(e.sizes_bytes <= sizeof kept);
		WeftSizes *s = (WeftSizes *)(void *)kept;
		if (m.open(&m, NULL, &inst, &status) != WEFT_OK)
			fail_msg("%s", status.message);
		if (m.sizes(inst, 0, c.x, s, &status) != WEFT_OK)
			fail_msg("%s", status.message);
		bool wrong = false;
		for (uint32_t k = 0; k < OUTPUTS; k++)
			wrong = wrong || is_wrong(&c, k);
		const int code = m.run(inst, s, c.x, c.y, work, NULL, &status);
		if (!wrong && code != WEFT_OK)
			fail_msg("round %u: %s", i, status.message);
		if (wrong && (code != WEFT_ERR_ARGUMENT || !names_wrong(&c, status.message)))
			fail_msg("round %u: %d, %s", i, code, status.message);
		fine += !wrong;
		m.close(inst);
	}
	assert_in_range(fine, ROUNDS / 4, ROUNDS - ROUNDS / 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_many)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
