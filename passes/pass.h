/* Passes: the row of a pass in the pipeline, and the context that the driver gives it. */
#ifndef WEFT_PASSES_PASS_H
#define WEFT_PASSES_PASS_H

#include "ir/graph/build.h"
#include "ir/graph/graph.h"
#include "ir/ops/op.h"

typedef struct PassCtx {
	bool failed; /* set by passes that find bad input (canon, decompose, pad), after
	                ctx_error */
	bool keep_params; /* parameters are replaceable: values that depend on them become constants
	                     with recipes, and no pass reads them */
	const struct Target *target; /* the target whose costs decide */
	const Op *keep;   /* composites that decompose does not expand */
	uint32_t nkeep;
	/* For transforms: the composites that canon and decompose do not expand. NULL: decompose
	 * reads `keep`, and canon does not expand composites with rules (op_is_kept). */
	bool (*stays)(const Graph *, Node, void *user);
	void *stays_user;
} PassCtx;

typedef struct {
	const char *name;                /* --dump=simplify */
	bool (*run)(Graph *, PassCtx *); /* returns true if anything changed */
} Pass;

/* Expands composites of EXPANDS_IN_CANON; compares inferred types with those of the file. */
bool pass_canon(Graph *, PassCtx *);
/* Expands all other composites, except the kept ones. */
bool pass_decompose(Graph *, PassCtx *);
/* Replaces complex values by pairs of real ones, except inputs, outputs, and values that no rule
 * splits. */
bool pass_split_complex(Graph *, PassCtx *);
/* Moves constants and splats into the bodies that read them. */
bool pass_sink(Graph *, PassCtx *);
/* Removes branches whose condition is known; turns branches into selects if that costs less. */
bool pass_branch(Graph *, PassCtx *);
/* Applies identities. The result has no more nodes and costs no more. */
bool pass_simplify(Graph *, PassCtx *);
/* Merges equal nodes. */
bool pass_cse(Graph *, PassCtx *);
/* Computes nodes that depend on constants only, unless the result is larger than its sources. */
bool pass_fold(Graph *, PassCtx *);
/* Multiplies constant scales behind convolutions and contractions into the weights. */
bool pass_fold_scale(Graph *, PassCtx *);
/* Removes nodes without readers and effects. */
bool pass_dce(Graph *, PassCtx *);
/* Makes padding of convolutions a node of its own; the last pass. */
bool pass_pad(Graph *, PassCtx *);

/* Runs a pass on the subgraphs of every node. Returns true if anything changed. */
bool pass_subgraphs(Graph *, PassCtx *, bool (*run)(Graph *, PassCtx *));

/* Returns a builder that adds nodes in front of `before`, with its location. */
Build pass_build(Graph *, Node before);
/* Makes readers of `old` read `new`; removes `old` if it has no readers left. */
void pass_replace(Graph *, Node old, Node new);

#endif
