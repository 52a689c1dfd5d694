/* What the emitters of a Program share: options, and the division of kernels into units that are
 * compiled side by side. */
#ifndef WEFT_CODEGEN_PRINT_EMIT_H
#define WEFT_CODEGEN_PRINT_EMIT_H

#include "ir/target/target.h"
#include "ir/loop/program.h"

typedef struct {
	uint32_t nunits;             /* kernel translation units wanted; 0: one */
	const char *export_name;     /* the function that returns the table; NULL: "weft_model" */
	const char *suffix;          /* of files and of every other name that units share; NULL: "".
	                                Makes several programs fit into one artifact */
	bool hidden;                 /* the function is for other objects of the artifact only */
	const char *weights_symbol;  /* of the embedded weight section; NULL: weights are a file */
	const char *weights_file;    /* its name, beside the artifact */
	const char *weights_hash;    /* of what stands where in it; NULL: no such file */
	const char *version, *source_hash, *compiler; /* for the manifest; NULL: "" */
	const char *prepare_export;  /* where weights may be replaced by set_weights: the function
	                                of Program.prepare's program */
} EmitOptions;

/* Programs of one model, each for another level of one family of processors, in one artifact: each
 * was emitted with a suffix and a hidden function of its own; the artifact's is weft_rt_select's
 * answer. */
typedef struct {
	const char *export_name;         /* as above */
	const char *const *level_export; /* of the programs' functions, best first */
	uint32_t n;
} EmitSelect;

/* Names of the distinct kernels, by index into Program.fn: identifiers, unique. */
const char *const *kernel_names(const Program *, const char *suffix);
/* Kernels in at most nunits units of about equal cost: the unit of every kernel, and their costs in
 * load. Depends on the program only, so that the output does. */
const uint32_t *kernel_units(const Program *, uint32_t nunits, double *load);

#endif
