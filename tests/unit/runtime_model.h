/* Models written by hand, as the compiler would emit them: what all of them say. More follows in
 * the same initialiser. */
#ifndef WEFT_TESTS_RUNTIME_MODEL_H
#define WEFT_TESTS_RUNTIME_MODEL_H

#include "runtime/instance_priv.h"

#define F32 {WEFT_FLOAT, 32, 1}
#define F64 {WEFT_FLOAT, 64, 1}
#define I16 {WEFT_INT, 16, 1}
#define I64 {WEFT_INT, 64, 1}
#define C128 {WEFT_COMPLEX, 128, 1}
#define TENSOR(n, d, r, dims) {.name = n, .dtype = d, .rank = r, .dim = dims, .donates = -1}

#define COUNTED(count, field, x) .count = sizeof x / sizeof *x, .field = x
#define IN(x) COUNTED(ninput, input, x)
#define OUT(x) COUNTED(noutput, output, x)
/* `sizes` fills in that many slots, of which some are dimensions of outputs. */
#define ENTRY(text, slots, ndim, sizes, run)                                                       \
	.size = sizeof(WeftEntry), .name = text, .nslot = slots,                                   \
	.sizes_bytes = WEFT_SIZES_BYTES(slots, ndim), .sizes_fn = sizes, .run_fn = run
#define MODEL(about)                                                                               \
	.size = sizeof(WeftModel), .abi = WEFT_ABI_VERSION, .manifest = &about,                    \
	WEFT_RUNTIME_FUNCTIONS
#define MANIFEST(name) {name, "0", "generic-c", "", "abc", "cc"}

#endif
