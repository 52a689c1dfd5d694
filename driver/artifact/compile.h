/* Private to the driver: a compilation on its way from graph to files. */
#ifndef WEFT_DRIVER_ARTIFACT_COMPILE_H
#define WEFT_DRIVER_ARTIFACT_COMPILE_H

#include "codegen/print/c/emit.h"
#include "ir/target/target.h"
#include "driver/api/driver_priv.h"
#include "lower/lower.h"

/* The program for one of the processors that an artifact is for. */
typedef struct {
	const Target *target;
	Program *program;
	const char *suffix; /* of its names: "" when there is only one */
} TargetLevel;

typedef struct {
	Weft *w;
	Ctx *ctx;
	const WeftGraph *from;
	Graph **g; /* by entry: after the passes */
	WeftOptions o;
	const char *name;        /* of the model, an identifier */
	const char *source_hash; /* of graph and weights */
	const char *weights_symbol;
	const char *out_path; /* the file that is written, as the caller named it; NULL: several, or
	                         none */
	const char *weights_hash; /* where the weights are a file of their own: section_hash */
	bool llvm; /* which back end */
	bool plain; /* programs are not legalised: for their text only */
	bool fallback; /* the C compiler is used because the LLVM back end of this build is not
	                  found */
	ARRAY(TargetLevel) level; /* by increasing capability; one triple, one weight section */
	TargetLevel prepare;      /* what computes weights that are replaceable (recipes.h), for the
	                             least level; no program: nothing does */
	bool computed;            /* the constants with recipes have contents */
	const Target *target; /* of the last level */
	Program *program;
	EmitFiles files;
} Compilation;

/* Begin: check the options, clear the report. */
bool compile_begin(Compilation *, Weft *, const WeftGraph *, const WeftOptions *);
/* After it: of several levels keep the best that runs in this process. False after ctx_error: none
 * does. */
bool compile_for_here(Compilation *);
/* Passes, lowering, schedules: up to the programs. */
bool compile_lower(Compilation *);
/* What is emitted: the levels, and what computes weights; `out` has room for one more than there
 * are levels. Returns how many. */
uint32_t compile_programs(const Compilation *, const TargetLevel **out);
/* For either emitter, with weights embedded or in the file of that name. */
EmitOptions compile_emit_options(const Compilation *, const TargetLevel *, const char *weights_file);
/* What chooses between several levels. */
EmitSelect compile_select(const Compilation *);
/* The C files, for weights embedded or in the file of that name. */
bool compile_print(Compilation *, const char *weights_file);
/* Fill the report from what there is. */
void compile_report(Compilation *);
/* The time since the last call belongs to this phase. */
void phase_end(Compilation *, const char *name);

/* Compile c->files and link them with the runtime. False after ctx_error. */
bool build_shared(Compilation *, const char *folder, const char *weights_object, const char *out);
/* Write everything needed to build the model elsewhere. */
bool write_sources(Compilation *, const char *folder);

#endif
