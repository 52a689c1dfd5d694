/* The LLVM back end: a Program to LLVM IR, assembly, object files or code in this process, through
 * the LLVM C API. Decides nothing; walks loop IR, as the C emitter does, and computes the same
 * bits. */
#ifndef WEFT_CODEGEN_PRINT_LLVM_LLVM_H
#define WEFT_CODEGEN_PRINT_LLVM_LLVM_H

#include "codegen/print/emit.h"

typedef enum { LLVM_OBJECT, LLVM_ASM, LLVM_TEXT /* IR, before optimisation */ } LlvmKind;

typedef struct {
	const char *name; /* "model.o", "kernels_0.o": .s, .ll for the other kinds */
	const char *data;
	size_t n;
} LlvmFile;

typedef struct {
	ARRAY(LlvmFile) file;
} LlvmFiles;

/* Compile units in `jobs` threads (0: one per processor). What the objects need from outside: the
 * runtime (runtime.h), memcpy and friends, libm, and the weights symbol. Everything lives in the
 * program's arena; the bytes do not depend on jobs. False after ctx_error. Unrolls loops in
 * place. */
bool emit_llvm(Program *, const Target *, const EmitOptions *, LlvmKind, uint32_t jobs, LlvmFiles *out);
/* The unit "select" that chooses between programs emitted before, for the least of the targets; as
 * emit_llvm. */
bool emit_llvm_select(Ctx *, const EmitSelect *, const Target *least, LlvmKind, LlvmFiles *out);
/* One kernel by itself as IR text, for tests and `weft show`. */
bool emit_llvm_kernel(LoopFn *, const Target *, Text *out);
/* Version of the library, "19.1.7"; for manifests. */
const char *llvm_version(Arena *);

/* Objects linked into this process. */
typedef struct Jit Jit;
typedef struct {
	const char *name;
	const void *address;
} JitSymbol;
/* symbols: what is defined from outside, in addition to what the process exports (libc, libm). The
 * files' data need not outlive the call. NULL after ctx_error. */
Jit *jit_link(Ctx *, const LlvmFiles *, const JitSymbol *symbol, uint32_t n);
/* NULL after ctx_error: no such symbol. */
void *jit_find(Ctx *, Jit *, const char *name);
void jit_free(Jit *); /* unmaps the code; NULL is allowed */

#endif
