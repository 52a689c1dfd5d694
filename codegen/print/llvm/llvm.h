/* The LLVM back end: makes LLVM IR, assembly, object files or code in this process of a Program, by
 * LLVM's C API. Decides nothing, and computes the same bits as the C emitter. */
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

/* Compiles the units of a legal program with `jobs` threads (0: one per processor), and adds a file
 * for each to *out; the unit with the tables is "model". Objects need the runtime (runtime.h),
 * memcpy and the like, libm, and the weights symbol. The files lie in the arena of the Ir's
 * context, by name, and do not depend on jobs. Returns false after an error: LLVM lacks the target.
 * What LLVM refuses otherwise is an internal error. */
bool emit_llvm(Program *, const Target *, const EmitOptions *, LlvmKind, uint32_t jobs,
	       LlvmFiles *out);
/* Adds the file "select", whose function chooses between programs emitted before, compiled for the
 * least of their targets. Returns false after an error, as emit_llvm. */
bool emit_llvm_select(Ctx *, const EmitSelect *, const Target *least, LlvmKind, LlvmFiles *out);
/* Returns the version of LLVM, "LLVM 19.1.7", for manifests. */
const char *llvm_version(Arena *);

/* Objects that are linked into this process. */
typedef struct Jit Jit;
typedef struct {
	const char *name;
	const void *address;
} JitSymbol;
/* Takes object files (LLVM_OBJECT) into this process, to be linked by jit_find. symbol[0 .. n - 1]:
 * definitions besides those that the process exports (libc, libm). The files may be freed
 * afterwards. Returns NULL after an error. The caller frees the result by jit_free. */
Jit *jit_link(Ctx *, const LlvmFiles *, const JitSymbol *symbol, uint32_t n);
/* Returns the address of a symbol of the objects, which it links as far as the symbol needs them.
 * Returns NULL after an error: there is no such symbol, or one that the objects need is not
 * defined. */
void *jit_find(Ctx *, Jit *, const char *name);
/* Unmaps the code, which nobody executes any more. NULL is allowed. */
void jit_free(Jit *);

#endif
