/* The list of graph passes and their driver. */
#ifndef WEFT_PASSES_PIPELINE_H
#define WEFT_PASSES_PIPELINE_H

#include "ir/graph/graph.h"

typedef struct {
	const char *dump; /* print the graph after this pass; "all": after every pass; NULL:
	                     never */
	Text *dump_to;
	const char *skip; /* skip the pass of this name; NULL: none */
	bool keep_params; /* parameters are replaceable: values that depend on them become constants
	                     with recipes (Const.recipe) */
	const struct Target *target; /* the target whose costs decide; NULL: portable C */
	const Op *keep;   /* composites that stay nodes */
	uint32_t nkeep;
	/* Called after every pass; may be NULL. */
	void (*after)(void *user, const char *pass, const Graph *, bool changed);
	void *user;
} PipelineOptions;

/* Runs all passes: from an imported graph to simplified primitives (and kept composites). Debug
 * builds verify the graph and its text form after every pass. Returns false after errors. */
bool pipeline_run(Graph *, const PipelineOptions *);
/* Runs the cleaning passes (simplify, cse, fold, ..., dce) until nothing changes. Transforms run
 * them on their results. */
bool pipeline_clean(Graph *, const PipelineOptions *);
/* Runs one pass by name. Returns false after an error: no such pass, bad input. */
bool pipeline_run_one(Graph *, const char *pass);
/* The names of all passes, in order, followed by NULL. */
const char *const *pipeline_names(void);

#endif
