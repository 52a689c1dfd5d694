/* libFuzzer: the bytes are a .pt2 archive, an .npz archive, or a .safetensors file. Seeds:
 * tests/data. clang -fsanitize=fuzzer,address,undefined ... tests/fuzz/fuzz_archive.c, linked with
 * frontend, ir, base */
#include <stdlib.h>
#include <string.h>

#include "frontend/files/npy.h"
#include "frontend/pt2/priv.h"
#include "tests/fuzz/mutate.h"

static void read_all(Ctx *ctx, uint8_t *data, size_t size)
{
	Archive a;
	StFile st;
	Tensor t;
	st_open_bytes(ctx, "fuzz", data, size, &st);
	npy_parse(ctx, "fuzz", data, size, &t);
	if (!archive_open_bytes(ctx, "fuzz", data, size, &a))
		return;
	a.unchecked = true; /* or the fuzzer would have to find checksums */
	pt2_load_archive(ir_new(ctx), &a, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_run(data, size, 0, read_all);
}
