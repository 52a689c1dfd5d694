/* The list of graph passes and their driver. */
#ifndef WEFT_PASSES_PIPELINE_H
#define WEFT_PASSES_PIPELINE_H

#include "ir/graph/graph.h"

typedef struct {
	const char *dump; /* print the graph after this pass, or after "all"; NULL: none */
	Text *dump_to;
	const char *skip; /* leave out the pass of this name; NULL: none */
	bool keep_params; /* parameters are replaceable: what depends on them becomes a recipe
	                     (Const), no value is looked at */
	const struct Target *target; /* whose costs decide; NULL: portable C */
	const Op *keep;   /* composites to keep as nodes */
	uint32_t nkeep;
	/* Called after every pass that ran; may be NULL. */
	void (*after)(void *user, const char *pass, const Graph *, bool changed);
	void *user;
} PipelineOptions;

/* From an imported graph to simplified primitives (and kept composites). Debug builds verify the
 * graph and its text form after every pass. False after ctx_error. */
bool pipeline_run(Graph *, const PipelineOptions *);
/* The cleaning passes alone (simplify, cse, fold, ..., dce) to a fixed point: what transforms run
 * on their results. */
bool pipeline_clean(Graph *, const PipelineOptions *);
/* One pass by name. False after ctx_error (no such pass, bad input). */
bool pipeline_run_one(Graph *, const char *pass);
/* The names in order, NULL-terminated. */
const char *const *pipeline_names(void);

#endif
