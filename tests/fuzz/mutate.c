#include "tests/fuzz/mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long count[2];
bool fuzz_only_reads;

static void print_share(void)
{
	unsigned long all = count[0] + count[1];
	fprintf(stderr, "stat::loaded: %lu of %lu, %.0f %%\n", count[1], all,
		all ? 100.0 * (double)count[1] / (double)all : 0);
}

void fuzz_count(bool loaded)
{
	if (!count[0] && !count[1])
		atexit(print_share);
	count[loaded]++;
}

unsigned long fuzz_loaded(unsigned long *all)
{
	*all = count[0] + count[1];
	return count[1];
}

int fuzz_run(const uint8_t *data, size_t size, size_t nul,
	     void (*read)(Ctx *, uint8_t *copy, size_t size))
{
	uint8_t *copy = calloc(size + nul ? size + nul : 1, 1);
	if (size)
		memcpy(copy, data, size);
	Ctx *ctx = ctx_new();
	int unwound = setjmp(ctx->unwind);
	if (!unwound)
		read(ctx, copy, size);
	if (unwound == UNWIND_BUG)
		abort();
	ctx_free(ctx);
	free(copy);
	return 0;
}

uint32_t fuzz_below(unsigned *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return n ? (uint32_t)((uint64_t)(*state >> 8) * n >> 24) : 0;
}

size_t fuzz_splice(uint8_t *data, size_t size, size_t max, size_t at, size_t drop, const char *text,
		   size_t n)
{
	if (size - drop + n > max)
		return size;
	memmove(data + at + n, data + at + drop, size - at - drop);
	memcpy(data + at, text, n);
	return size - drop + n;
}
