/* libFuzzer: the bytes are a .gguf file. What is read is unpacked to its last value. Seeds:
 * tests/data/gguf. */
#include <stdlib.h>

#include "frontend/files/gguf.h"
#include "tests/fuzz/mutate.h"

static volatile double seen; /* what is read must be read */

/* Every number lies in memory and can be looked at. */
static double sum_of(Ctx *ctx, const GgufTensor *t)
{
	Tensor x = t->tensor;
	double sum = 0;
	if (t->blocks) {
		const GgufUnpacked u = gguf_unpack(ctx->arena, t);
		x = u.q;
		const Tensor *const part[] = {&u.scale, &u.offset, &u.scale_unit, &u.offset_unit};
		for (uint32_t k = 0; k < 4; k++)
			for (int64_t i = 0; part[k]->data && i < tensor_numel(part[k]); i++)
				sum += tensor_f64(part[k], i);
	}
	for (int64_t i = 0, n = tensor_numel(&x); i < n; i++)
		sum += tensor_f64(&x, i);
	return sum;
}

static void read_all(Ctx *ctx, uint8_t *data, size_t size)
{
	GgufFile f;
	const bool loaded = gguf_open_bytes(ctx, "fuzz", data, size, &f);
	double sum = 0;
	fuzz_count(loaded);
	if (!loaded && !ctx->nerror)
		abort(); /* refused without saying why */
	for (uint32_t k = 0; loaded && k < f.n; k++)
		sum += sum_of(ctx, &f.tensor[k]);
	seen = sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_run(data, size, 0, read_all);
}
