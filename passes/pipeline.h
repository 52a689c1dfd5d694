/* The list of graph passes and their driver. The passes are canon, decompose, split_complex,
 * quantize (once); sink, branch, simplify, cse, row_sums, rows, fold, fold_scale, dce, state (the
 * cleaning passes, until nothing changes); sum_products, winograd, pad (once). pass.h says what
 * each does. */
#ifndef WEFT_PASSES_PIPELINE_H
#define WEFT_PASSES_PIPELINE_H

#include "ir/graph/graph.h"

typedef struct {
	const char *dump; /* the name of the pass after which the graph is printed; "all": after
	                     every pass, as one line if the pass changed nothing; NULL: never */
	Text *dump_to;    /* where the graph is printed to; NULL: nowhere */
	const char *skip; /* the name of a pass that does not run; NULL: none */
	bool keep_params; /* parameters are replaceable: values that depend on them become constants
	                     with recipes (Const.recipe) */
	const struct Target *target; /* the target whose costs decide; NULL: "generic-c" */
	Text *floats;     /* PassCtx.floats */
	const Op *keep;   /* composites that neither canon nor decompose expands */
	uint32_t nkeep;
	/* Called after every run of a pass; may be NULL. */
	void (*after)(void *user, const char *pass, const Graph *, bool changed);
	void *user;
} PipelineOptions;

/* Runs all passes on the graph, in place: an imported graph becomes one of simplified primitives
 * (and kept composites). The options are not NULL. Debug builds verify the graph and its text form
 * after each pass that changed the graph. Returns false after an error: bad input; the graph must
 * not be used then. What a pass allocates in the scratch arena is released after it. */
bool pipeline_run(Graph *, const PipelineOptions *);
/* Runs one of the two parts of pipeline_run: up to split_complex, whose result no target
 * changes; the others, on the graph or a clone of it. Each returns false after an error. */
bool pipeline_expand(Graph *, const PipelineOptions *);
bool pipeline_finish(Graph *, const PipelineOptions *);
/* Runs the cleaning passes only, until nothing changes: for results of transforms. The options are
 * not NULL. No cleaning pass can fail. */
void pipeline_clean(Graph *, const PipelineOptions *);
/* Runs one pass by name, once, with options of zeros; but "quantize" makes integer products whether
 * they pay or not (PassCtx.integers). Returns false after an error: no such pass, which leaves the
 * graph as it was, or bad input, after which the graph must not be used. */
bool pipeline_run_one(Graph *, const char *pass);
/* Returns the names of all passes, in order, followed by NULL. */
const char *const *pipeline_names(void);
/* Returns what stands behind "no pass NAME": the pass that may be meant, or where all are listed.
 */
const char *pipeline_hint(Arena *, const char *name);

#endif
