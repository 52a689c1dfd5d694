/* The C emitter: prints a Program as readable C11. Decides nothing. */
#ifndef WEFT_CODEGEN_PRINT_C_EMIT_H
#define WEFT_CODEGEN_PRINT_C_EMIT_H

#include "codegen/print/emit.h"

typedef struct {
	const char *name; /* "model.c", "kernels_0.c", "kernels.h"; with a suffix
	                     "model_x86_64_v3.c" */
	Text text;
	const char *flags; /* flags of the C compiler for this file's target */
	bool is_header;
	double cost; /* an estimate, by which long compilations start first */
} EmitFile;

typedef struct {
	ARRAY(EmitFile) file;
} EmitFiles;

/* Prints the files of a program, to be compiled with runtime.h and weft_model.h in the include
 * path. They live in the program's arena. Unrolls loops of the program in place. Returns false
 * after an error: an operation that the target cannot express. */
bool emit_c(Program *, const Target *, const EmitOptions *, EmitFiles *out);

/* Prints "select.c", which chooses between programs emitted before; compiled for the least of the
 * targets. */
void emit_c_select(Arena *, const EmitSelect *, const Target *least, EmitFiles *out);

/* Prints one kernel as a complete C file that exports the kernel by its name, for tests and `weft
 * show`. */
bool emit_c_kernel(LoopFn *, const Target *, Text *out);

#endif
