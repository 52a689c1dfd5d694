/* The LLVM back end as a table of functions. The back end is a library of its own, which is loaded
 * when first needed, because loading LLVM takes longer than most uses of the compiler without
 * it. */
#ifndef WEFT_CODEGEN_PRINT_LLVM_BACKEND_H
#define WEFT_CODEGEN_PRINT_LLVM_BACKEND_H

#include "codegen/print/llvm/llvm.h"

/* The functions of llvm.h: emit_llvm, emit_llvm_select, llvm_version, jit_link, jit_find,
 * jit_free. */
typedef struct {
	bool (*emit)(Program *, const Target *, const EmitOptions *, LlvmKind, uint32_t jobs,
		     LlvmFiles *out);
	bool (*select)(Ctx *, const EmitSelect *, const Target *least, LlvmKind, LlvmFiles *out);
	const char *(*version)(Arena *);
	Jit *(*link)(Ctx *, const LlvmFiles *, const JitSymbol *symbol, uint32_t n);
	void *(*find)(Ctx *, Jit *, const char *name);
	void (*free)(Jit *);
	/* Called once, before the others, on the thread that loaded the library: sets the function
	 * to call, from any thread, when LLVM cannot go on. That function must not return. */
	void (*on_fatal)(void (*)(const char *why));
} LlvmBackend;

#define LLVM_BACKEND_SYMBOL "weft_llvm_backend"
/* The ELF note with WEFT_INTERFACE_ID (interface_id.h): a hash of the headers with which the
 * library was built. */
#define LLVM_BACKEND_NOTE "weft"
/* The table, which the library exports as LLVM_BACKEND_SYMBOL. */
extern const LlvmBackend weft_llvm_backend __attribute__((visibility("default")));

#endif
