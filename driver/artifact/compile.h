/* Private to the driver: a compilation, from graph to files. */
#ifndef WEFT_DRIVER_ARTIFACT_COMPILE_H
#define WEFT_DRIVER_ARTIFACT_COMPILE_H

#include "codegen/print/c/emit.h"
#include "ir/target/target.h"
#include "driver/api/driver_priv.h"
#include "lower/lower.h"

/* The program for one level of an artifact. */
typedef struct {
	const Target *target;
	Program *program;
	const char *suffix; /* the suffix of its names; "" if there is one level */
} TargetLevel;

typedef struct {
	Weft *w;
	Ctx *ctx;
	const WeftGraph *from;
	Graph **g; /* by entry: the graph after the passes */
	WeftOptions o;
	const char *name;        /* the model's name, an identifier */
	const char *source_hash; /* hash of graph and weights */
	const char *weights_symbol;
	const char *out_path; /* the output file, as the caller named it; NULL: several files, or
	                         none */
	const char *weights_hash; /* section_hash, if the weights are a file */
	const struct Backend *backend;
	bool plain; /* programs are not legalised, for their text only */
	const char *fallback; /* the note that a back end is used because another is not there;
	                         NULL: none */
	ARRAY(TargetLevel) level; /* by increasing capability, of one triple and with one weight
	                             section */
	TargetLevel prepare;      /* the program that computes replaceable constants (recipes.h),
	                             for the least level; program NULL: none */
	bool computed;            /* constants with recipes have contents */
	const Target *target; /* the target of the last level */
	Program *program;
	EmitFiles files;
} Compilation;

/* Begins a compilation: checks the options, clears the report. Returns false after errors. */
bool compile_begin(Compilation *, Weft *, const WeftGraph *, const WeftOptions *);
/* After compile_begin, for code in this process: keeps the best level that runs here. Returns false
 * after an error: none runs here. */
bool compile_for_here(Compilation *);
/* Runs passes, lowering and schedules, and makes the programs. Returns false after errors. */
bool compile_lower(Compilation *);
/* Sets out[] to all programs to emit: the levels, then `prepare` if there is one. Returns their
 * number. */
uint32_t compile_programs(const Compilation *, const TargetLevel **out);
/* The options for either emitter. weights_file: NULL if weights are embedded. */
EmitOptions compile_emit_options(const Compilation *, const TargetLevel *, const char *weights_file);
/* The options for the choice between several levels. */
EmitSelect compile_select(const Compilation *);
/* Fills in the report. */
void compile_report(Compilation *);
/* Adds the time since the last call to the phase of that name. */
void phase_end(Compilation *, const char *name);

/* Compiles c->files and links them with the runtime. Returns false after errors. */
bool build_shared(Compilation *, const char *folder, const char *weights_object, const char *out);
/* Writes a folder with everything that is needed to build the model elsewhere. */
bool write_sources(Compilation *, const char *folder);

#endif
