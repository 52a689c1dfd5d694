/* What passes share: the row a pass has in the pipeline, and what the driver gives it. */
#ifndef WEFT_PASSES_PASS_H
#define WEFT_PASSES_PASS_H

#include "ir/graph/build.h"
#include "ir/graph/graph.h"
#include "ir/ops/op.h"

typedef struct PassCtx {
	bool failed; /* set by the passes that find bad input (canon, decompose, pad); reported in
	                ctx */
	bool keep_params; /* parameters are replaceable: what depends on them becomes a recipe, no
	                     value is looked at */
	const struct Target *target; /* whose costs decide */
	const Op *keep;   /* composites that decompose leaves alone */
	uint32_t nkeep;
	/* In a transform: the composites that canon and decompose leave alone; NULL: decompose asks
	 * `keep`, and canon leaves those that have rules (op_is_kept). */
	bool (*stays)(const Graph *, Node, void *user);
	void *stays_user;
} PassCtx;

typedef struct {
	const char *name;                /* --dump=simplify */
	bool (*run)(Graph *, PassCtx *); /* true if anything changed */
} Pass;

/* Composites of LEVEL_CANON become what they mean; types are compared with the file's. */
bool pass_canon(Graph *, PassCtx *);
/* The other composites, except the kept ones. */
bool pass_decompose(Graph *, PassCtx *);
/* Complex values become pairs of real ones, but for inputs and outputs and what no rule splits. */
bool pass_split_complex(Graph *, PassCtx *);
/* Constants and splats that bodies read are made in them. */
bool pass_sink(Graph *, PassCtx *);
/* Branches whose condition is known, or that cost less than deciding. */
bool pass_branch(Graph *, PassCtx *);
/* Identities; the result has no more nodes and costs no more. */
bool pass_simplify(Graph *, PassCtx *);
/* Equal nodes become one. */
bool pass_cse(Graph *, PassCtx *);
/* What depends on constants alone becomes a constant, where that is not larger than its sources. */
bool pass_fold(Graph *, PassCtx *);
/* Constant scales behind convolutions and contractions move into their weights. */
bool pass_fold_scale(Graph *, PassCtx *);
bool pass_dce(Graph *, PassCtx *);
/* Padding of convolutions becomes a node of its own, once the graph is clean. */
bool pass_pad(Graph *, PassCtx *);

/* Run a pass on the subgraphs of every node too. True if anything changed. */
bool pass_subgraphs(Graph *, PassCtx *, bool (*run)(Graph *, PassCtx *));

/* A builder in front of a node, with its location. */
Build pass_build(Graph *, Node before);
/* Readers of `old` read `new`; `old` goes if nothing else holds it. */
void pass_replace(Graph *, Node old, Node new);

#endif
