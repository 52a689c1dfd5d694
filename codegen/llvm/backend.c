#include "codegen/llvm/backend.h"

#include <stdint.h>

#include "interface_id.h"

const LlvmBackend weft_llvm_backend = {
	.emit = emit_llvm,
	.select = emit_llvm_select,
	.version = llvm_version,
	.link = jit_link,
	.find = jit_find,
	.free = jit_free,
};

/* Read from the file before it is loaded: a library of another build is refused. */
static const struct {
	uint32_t name_bytes, content_bytes, type;
	char name[(sizeof LLVM_BACKEND_NOTE + 3) / 4 * 4], content[sizeof WEFT_INTERFACE_ID - 1];
} note __attribute__((section(".note.weft"), used, aligned(4))) = {
	sizeof LLVM_BACKEND_NOTE, sizeof WEFT_INTERFACE_ID - 1, 1, LLVM_BACKEND_NOTE, WEFT_INTERFACE_ID,
};
