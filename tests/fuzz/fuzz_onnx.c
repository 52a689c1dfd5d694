/* libFuzzer: the bytes are an ONNX model. Seeds: ../shared/onnx-node and models written here. */
#include <stdlib.h>
#include <string.h>

#include "frontend/onnx/onnx.h"
#include "ir/build/verify.h"
#include "tests/fuzz/mutate.h"

static void read_all(Ctx *ctx, uint8_t *data, size_t size)
{
	Graph *g = onnx_load_bytes(ir_new(ctx), "fuzz.onnx", data, size, NULL);
	fuzz_count(g);
	if (!g != (ctx->nerror != 0) || ctx->nerror > 1)
		abort(); /* refused without saying why, or with several reasons */
	if (g && !graph_verify(g))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_run(data, size, 0, read_all);
}

/* A byte of a text or a small number becomes another of its kind: lengths stay right. */
static size_t change_byte(uint8_t *data, size_t size, unsigned *state)
{
	for (int tries = 0; tries < 64; tries++) {
		uint8_t *p = &data[fuzz_below(state, (uint32_t)size)];
		if (*p >= 'a' && *p <= 'z')
			*p = (uint8_t)('a' + fuzz_below(state, 26));
		else if (*p >= '0' && *p <= '9')
			*p = (uint8_t)('0' + fuzz_below(state, 10));
		else if (*p < 32)
			*p = (uint8_t)fuzz_below(state, 32);
		else
			continue;
		return size;
	}
	return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	unsigned state = seed;
	if (!size || fuzz_below(&state, 4) == 0)
		return LLVMFuzzerMutate(data, size, max);
	return change_byte(data, size, &state);
}
