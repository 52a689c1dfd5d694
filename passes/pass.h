/* Passes: functions that rewrite a graph in place, each with a row in the pipeline (pipeline.h).
 * Every pass_ function works on subgraphs too and returns true if anything changed. A pass cannot
 * fail on a graph that graph_verify accepts; canon, decompose and pad may find bad input, which
 * they report and say in PassCtx.failed. Composites, primitives, expansion: ir/ops/op.h. */
#ifndef WEFT_PASSES_PASS_H
#define WEFT_PASSES_PASS_H

#include "ir/graph/build.h"
#include "ir/graph/graph.h"
#include "ir/ops/op.h"

typedef struct PassCtx {
	bool failed; /* result: the pass found bad input and recorded an error */
	bool keep_params; /* parameters are replaceable: values that depend on them become constants
	                     with recipes (Const.recipe), and no pass reads their data */
	const struct Target *target; /* the target whose costs decide; NULL: "generic-c" */
	const Op *keep;   /* composites that decompose does not expand */
	uint32_t nkeep;
	/* For transforms: whether canon and decompose leave a composite node as it is; called with
	 * stays_user. NULL: decompose expands all but `keep`, and canon all but those with
	 * op_is_kept. */
	bool (*stays)(const Graph *, Node, void *user);
	void *stays_user;
} PassCtx;

typedef struct {
	const char *name;                /* --dump=simplify */
	bool (*run)(Graph *, PassCtx *); /* returns true if anything changed */
} Pass;

/* Expands composites, but not those that are kept (op_is_kept). Fails if the type of a result
 * contradicts the type that the file says. */
bool pass_canon(Graph *, PassCtx *);
/* Expands the remaining composites, except those in PassCtx.keep. */
bool pass_decompose(Graph *, PassCtx *);
/* Replaces complex values by their real and imaginary parts (ir/ops/parts.h), except inputs,
 * outputs, and values for which there is no rule. */
bool pass_split_complex(Graph *, PassCtx *);
/* Copies constants and splats into the subgraphs that get them as inputs, and removes inputs that
 * no subgraph reads. Leaves what loops carry or slice alone. */
bool pass_sink(Graph *, PassCtx *);
/* Inlines the branch of a cond whose condition is constant; replaces a cond by both branches and
 * selects if that costs less. */
bool pass_branch(Graph *, PassCtx *);
/* Applies the algebraic identities of rules.h. The result has no more nodes and costs no more. */
bool pass_simplify(Graph *, PassCtx *);
/* Common subexpressions: of equal nodes without effects keeps the first. */
bool pass_cse(Graph *, PassCtx *);
/* Computes nodes that depend on constants only, unless the result is larger than its sources. */
bool pass_fold(Graph *, PassCtx *);
/* Multiplies constant scales, and adds constant biases, that follow convolutions and contractions
 * into their weights and biases. */
bool pass_fold_scale(Graph *, PassCtx *);
/* Removes nodes without readers and effects. */
bool pass_dce(Graph *, PassCtx *);
/* Makes the padding of a convolution a node of its own (OP_pad). The last pass. */
bool pass_pad(Graph *, PassCtx *);

/* For passes: runs `run` on each subgraph of each node, until it fails. Returns true if it changed
 * anything. */
bool pass_subgraphs(Graph *, PassCtx *, bool (*run)(Graph *, PassCtx *));

/* For passes: returns a builder that adds nodes in front of `before`, with its location. */
Build pass_build(Graph *, Node before);
/* For passes: makes readers of `old` and outputs read `new`, and erases `old` unless it has an
 * effect. Does nothing if both are the same node. */
void pass_replace(Graph *, Node old, Node new);

#endif
