/* The C emitter: a Program to readable C11. Decides nothing; walks loop IR. */
#ifndef WEFT_CODEGEN_PRINT_C_EMIT_H
#define WEFT_CODEGEN_PRINT_C_EMIT_H

#include "codegen/print/emit.h"

typedef struct {
	const char *name; /* "model.c", "kernels_0.c", "kernels.h"; with a suffix
	                     "model_x86_64_v3.c" */
	Text text;
	const char *flags; /* of the C compiler, for this file's target */
	bool is_header;
	double cost; /* rough, to start long compilations first */
} EmitFile;

typedef struct {
	ARRAY(EmitFile) file;
} EmitFiles;

/* Files to compile with runtime.h and weft_model.h in the include path. Everything lives in the
 * program's arena. False after ctx_error (an operation the target cannot express). Unrolls loops in
 * place. */
bool emit_c(Program *, const Target *, const EmitOptions *, EmitFiles *out);

/* The file "select.c" that chooses between programs emitted before, for the least of the
 * targets. */
void emit_c_select(Arena *, const EmitSelect *, const Target *least, EmitFiles *out);

/* One kernel by itself, for tests and `weft show`: a complete C file that exports it under its
 * name. */
bool emit_c_kernel(LoopFn *, const Target *, Text *out);

#endif
