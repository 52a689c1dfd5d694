/* The context in which a pass runs, and functions by which passes rewrite graphs. */
#ifndef WEFT_PASSES_COMMON_PASS_CTX_H
#define WEFT_PASSES_COMMON_PASS_CTX_H

#include "ir/build/build.h"
#include "ir/graph/graph.h"
#include "ir/op/op.h"

typedef struct PassCtx {
	bool failed;      /* result: the pass found bad input and recorded an error */
	bool keep_params; /* parameters are replaceable: values that depend on them become constants
			     with recipes (Const.recipe), and no pass computes with their data,
			     except to check indices (gather_is_in_range) */
	bool integers;    /* quantize makes integer products whether they pay or not */
	const struct Target *target; /* the target whose costs decide; branch, quantize and winograd
					read it, which need one */
	Text *floats;   /* where quantize writes, a line each, products of dequantised values that
			   stay products of floats, and why; NULL: nowhere */
	const Op *keep; /* composites that neither canon nor decompose expands; ignored if `stays`
			   is set */
	uint32_t nkeep;
	/* For transforms: whether canon and decompose leave a composite node as it is; called with
	 * stays_user. NULL: decompose leaves those in `keep`, canon those and all with
	 * op_is_kept. */
	bool (*stays)(const Graph *, Node, void *user);
	void *stays_user;
} PassCtx;

/* Gives each subgraph of each node the graph's `unrounded` and runs `run` on it, until `run`
 * sets PassCtx.failed. Subgraphs of subgraphs are left to `run`. Returns whether a `run`
 * returned true. */
bool pass_subgraphs(Graph *, PassCtx *, bool (*run)(Graph *, PassCtx *));
/* Returns a builder that adds nodes in front of `before`, a node of the graph, with its
 * location. */
Build pass_build(Graph *, Node before);
/* Makes readers of `old` and outputs read `new`, and erases `old` unless it has an effect. Does
 * nothing if both are the same node. `new` must not depend on `old`. */
void pass_replace(Graph *, Node old, Node new);

#endif
