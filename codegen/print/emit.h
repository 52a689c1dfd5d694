/* Options of the emitters (C and LLVM), and the division of kernels into units that are compiled in
 * parallel. The emitters write the code of a Program, a manifest (texts that describe the
 * artifact), and tables (weft_model.h) that a function of the artifact returns. */
#ifndef WEFT_CODEGEN_PRINT_EMIT_H
#define WEFT_CODEGEN_PRINT_EMIT_H

#include "ir/target/target.h"
#include "ir/loop/program.h"

/* A cache of objects. key: texts that together say all that an object is made from; the last is
 * NULL. Called on the thread of the emitter only. */
typedef struct {
	void *user;
	/* Sets *data and *n to the object, in the context's arena. Returns false if there is
	 * none. */
	bool (*take)(void *user, const char *const *key, const char **data, size_t *n);
	/* Keeps the object. A failure is ignored. */
	void (*keep)(void *user, const char *const *key, const char *data, size_t n);
} ObjectCache;

typedef struct {
	uint32_t nunits;             /* the most translation units of kernels; 0: one */
	const char *export_name;     /* the name of the function that returns the table; NULL:
	                                "weft_model" */
	const char *suffix;          /* appended to names of files and to all names that units have
	                                in common, so that several programs fit into one artifact;
	                                NULL: "" */
	bool hidden;                 /* the function is visible within the artifact only */
	const char *weights_symbol;  /* the symbol of the embedded weight section; NULL: weights are
	                                a file */
	const char *weights_file;    /* the name of that file, beside the artifact */
	const char *weights_hash;    /* section_hash of that file; NULL: no file */
	const char *version, *source_hash, *compiler; /* for the manifest; NULL: "" */
	const char *recipes_export;  /* with replaceable weights: the name of the function of
	                                Program.recipes's program */
	bool launched;               /* kernels of blocks of threads are defined by another file */
	bool here;                   /* for this process: WeftOpDef.user has an address, of the
	                                symbol userop_user_symbol */
	const ObjectCache *cache;    /* of LLVM's objects; NULL: none */
	/* As WeftOptions.progress, called with "llvm" and the units compiled so far; NULL: none. */
	void (*progress)(void *user, const char *phase, uint32_t done, uint32_t total);
	void *progress_user;
} EmitOptions;

/* The choice between programs of one model, one for each level of a family. Each was emitted with a
 * suffix and a hidden function; the artifact's function returns the answer of weft_rt_select. */
typedef struct {
	const char *export_name;         /* see EmitOptions */
	const char *const *level_export; /* the names of the programs' functions, best level
	                                    first */
	uint32_t n;
} EmitSelect;

/* Returns the names of the distinct kernels in emitted code, by index in Program.fn: unique C
 * identifiers "k_NAME" with the suffix (NULL: none), in the arena of the Ir's context. */
const char *const *kernel_names(const Program *, const char *suffix);
/* Divides the kernels into nunits >= 1 units of about equal cost. Returns the unit of each kernel,
 * by index in Program.fn, in the context's arena. Adds the cost of each unit to load[0 .. nunits -
 * 1], which the caller has zeroed. The result depends only on the program and nunits. */
const uint32_t *kernel_units(const Program *, uint32_t nunits, double *load);

#endif
