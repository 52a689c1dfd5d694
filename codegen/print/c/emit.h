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
	bool is_cpp; /* C++17 */
	double cost; /* an estimate, by which long compilations start first */
} EmitFile;

typedef struct {
	ARRAY(EmitFile) file;
} EmitFiles;

/* Adds an empty file for the target and returns it; the pointer is valid until the next file.
 * Keeps the name's pointer; the text lies in the arena. */
EmitFile *emit_add_file(EmitFiles *out, Arena *, const Target *, const char *name);

/* Adds the files of a legal program to *out, to be compiled with runtime.h and weft_model.h in the
 * include path. Their texts lie in the arena of the Ir's context. An operation without a C form,
 * which a legal program has not, is an internal error. */
void emit_c(Program *, const Target *, const EmitOptions *, EmitFiles *out);

/* Adds the file "select.c", whose text lies in the arena and whose function chooses between
 * programs emitted before, to be compiled for the least of their targets. */
void emit_c_select(Arena *, const EmitSelect *, const Target *least, EmitFiles *out);

/* Appends the C function of a legal kernel of a processor's program, without the helpers that it
 * calls. The kernel stays unchanged. */
void emit_c_function(const LoopFn *, const Target *, const char *name, Text *out);

/* Legalises the kernel in place, and appends a complete C file to `out`, which exports the kernel
 * under the C identifier of its name. An operation without a C form is an internal error. For
 * tests. */
void emit_c_kernel(LoopFn *, const Target *, Text *out);

#endif
