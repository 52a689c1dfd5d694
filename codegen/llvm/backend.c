#include "codegen/llvm/backend.h"

#include "weft.h"

const LlvmBackend weft_llvm_backend = {
	.compiler = WEFT_VERSION,
	.emit = emit_llvm,
	.select = emit_llvm_select,
	.version = llvm_version,
	.link = jit_link,
	.find = jit_find,
	.free = jit_free,
};
