/* Private to the driver: a compilation, from graph to files. Order of calls: compile_begin,
 * compile_for_here (for code in this process), compile_lower, recipes_compute
 * (driver/jit/compute.h), a back end (backend.h), compile_report. An artifact is what a compilation
 * makes. It has a level for each target of WeftOptions.target, and an entry for each graph that was
 * joined. "After errors" means that errors were recorded in the context. */
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
	uint64_t own_bytes; /* the weight section's first bytes: what the level's kernels read */
} TargetLevel;

typedef struct {
	Weft *w;
	Ctx *ctx;
	const WeftGraph *from;
	Graph **g; /* by entry: the graph after the passes, in a file for GPUs and CPUs for CPUs */
	Graph **gpu_g; /* for GPUs; g if all levels are GPUs or all are CPUs */
	WeftOptions o;           /* fields that the caller's structure lacks are 0 */
	const char *name;        /* the model's name, an identifier */
	const char *floats;      /* WeftReport.floats */
	const char *source_hash; /* hash of graph and weights */
	const char *weights_symbol; /* the symbol of the weight section, if it is linked */
	const char *out_path; /* the output file, as the caller named it; NULL: several files, or
	                         none */
	const char *weights_hash; /* section_hash, if the weights are a file */
	const struct Backend *backend;
	bool plain; /* programs are not legalised, for their text only */
	const char *fallback; /* the note that a back end is used because another is not there;
	                         NULL: none */
	ARRAY(TargetLevel) level; /* GPUs, then CPUs of one family and triple, each by increasing
	                             capability; all have one weight section */
	TargetLevel recipes;      /* the program that computes replaceable constants (recipes.h),
	                             for the least level, of GPUs in generic C;
	                             program NULL: none */
	bool computed;            /* constants with recipes have contents */
	const Target *target;     /* of the last level, the most capable one: of a CPU if there is
	                             one */
	Program *program;         /* likewise */
	EmitFiles files;          /* the printed C files */
	const char *images;       /* of a model for GPUs: the object with its images, to link with a
	                             runtime for devices; NULL: the model is for CPUs */
} Compilation;

/* Begins a compilation of a graph, which may be joined: fills in *c, checks graph and options
 * (NULL: all 0), clears the Weft's report and dump, reads the targets into c->level, chooses
 * c->backend (backend_choose). Graphs after passes, programs and hashes stay NULL. Texts and lists
 * of the options are not copied: they must stay valid until the compilation ends. Returns false
 * after errors. */
bool compile_begin(Compilation *c, Weft *, const WeftGraph *, const WeftOptions *);
/* Returns the number of levels that are GPUs, which are the first ones. */
uint32_t compile_gpus(const Compilation *);
/* Keeps only the most capable level that this machine runs, with suffix "". Called before
 * compile_lower. Returns false after an error: this machine runs none. */
bool compile_for_here(Compilation *);
/* Runs passes, lowering and schedules on a copy of the graph: sets c->g, the programs of all
 * levels, c->recipes (recipes_lower) and the hashes. Sets the Weft's dump. Ends the phases "hash",
 * "passes", "lower", "schedule" and, with WeftOptions.replaceable, "recipes". Returns false after
 * errors. */
bool compile_lower(Compilation *);
/* Sets out[], room for level.n + 1, to all programs to emit: the levels, then `recipes` if there
 * is one. Returns their number. Called after compile_lower. */
uint32_t compile_programs(const Compilation *, const TargetLevel **out);
/* Returns the options with which an emitter prints the program of a level, one of
 * compile_programs. weights_file: the name of the weight file; NULL: weights are embedded, or
 * there are none. Called after compile_lower. */
EmitOptions compile_emit_options(const Compilation *, const TargetLevel *,
				 const char *weights_file);
/* Returns the options with which an emitter prints the function that chooses between several
 * levels, the most capable one first. Needed if their n is above 1. */
EmitSelect compile_select(const Compilation *);
/* Fills in the Weft's report (WeftReport) from the program of the most capable level. Fields
 * about objects and phases stay. Called after compile_lower. */
void compile_report(Compilation *);
/* Tells WeftOptions.progress that a phase of that name begins. */
void phase_begin(const Compilation *, const char *name);
/* Ends a phase of that name (a text that is kept, not copied): adds the phase to the report, with
 * the time since the last call or compile_begin, and calls WeftOptions.progress. */
void phase_end(Compilation *, const char *name);

/* Compiles c->files, which a back end has printed, by the C compiler of the options (cc; by default
 * TRIPLE-gcc for another machine, else $CC or cc), several files at once. Links the objects with
 * the runtime into the shared object `out`, which is overwritten: with the object of it that this
 * build has for GPUs or for the target's triple; else the runtime's sources are compiled, too.
 * Objects come from the cache and go into it, unless no_cache. folder: an existing one for
 * temporary files, which the caller removes. weights_object: an object file with the weights, to
 * link; NULL: none. Links the libraries of WeftOptions.link and the images of GPUs (c->images),
 * too. Counts WeftReport.objects anew, and adds to WeftReport.cached. Ends the phases "cc" and
 * "link". Returns false after errors. After compile_lower. */
bool build_shared(Compilation *, const char *folder, const char *weights_object, const char *out);
/* Writes c->files, the sources of the runtime that the model needs, a Makefile and a README into a
 * folder, which is made if it is missing; replaces files of these names. If the model has weights,
 * weights.bin (SECTION_RAW of section.h) is what the caller must add. Returns false after
 * errors. */
bool write_sources(Compilation *, const char *folder);

#endif
