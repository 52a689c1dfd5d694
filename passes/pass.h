/* Passes: functions that rewrite a graph in place, each with a row in the pipeline (pipeline.h).
 * Every pass works on subgraphs too, and returns true if anything changed. A pass cannot fail on a
 * graph that graph_verify accepts; canon, decompose and pad may find bad input: they record an
 * error and set PassCtx.failed. Composites, primitives, expansion: ir/op/op.h. */
#ifndef WEFT_PASSES_PASS_H
#define WEFT_PASSES_PASS_H

#include "ir/build/build.h"
#include "ir/graph/graph.h"
#include "ir/op/op.h"

typedef struct PassCtx {
	bool failed; /* result: the pass found bad input and recorded an error */
	bool keep_params; /* parameters are replaceable: values that depend on them become constants
	                     with recipes (Const.recipe), and no pass computes with their data,
	                     except to check indices (gather_is_in_range) */
	bool integers;    /* quantize makes integer products whether they pay or not */
	const struct Target *target; /* the target whose costs decide; branch, quantize and winograd
	                                read it, which need one */
	Text *floats;     /* where quantize writes, a line each, products of dequantised values that
	                     stay products of floats, and why; NULL: nowhere */
	const Op *keep;   /* composites that neither canon nor decompose expands; ignored if `stays`
	                     is set */
	uint32_t nkeep;
	/* For transforms: whether canon and decompose leave a composite node as it is; called with
	 * stays_user. NULL: decompose leaves those in `keep`, canon those and all with
	 * op_is_kept. */
	bool (*stays)(const Graph *, Node, void *user);
	void *stays_user;
} PassCtx;

typedef struct {
	const char *name;                /* --dump=simplify */
	bool (*run)(Graph *, PassCtx *); /* returns true if anything changed */
} Pass;

/* Expands composites, except those with op_is_kept and those in PassCtx.keep; if PassCtx.stays is
 * set, it alone says which stay. Fails if a composite has no expansion for its operands, or if the
 * type of a result contradicts the type that the file says. */
bool pass_canon(Graph *, PassCtx *);
/* Expands all composites except those in PassCtx.keep; if PassCtx.stays is set, it alone says which
 * stay. Fails as pass_canon does. */
bool pass_decompose(Graph *, PassCtx *);
/* Replaces complex values by their real and imaginary parts (ops/rules/parts.h), except inputs,
 * outputs, and values for which there is no rule. */
bool pass_split_complex(Graph *, PassCtx *);
/* Makes products and convolutions of dequantised integers of 8 bits sums of integer products, whose
 * zero points and scales follow them (quantize.c), where that is faster or
 * PassCtx.integers. */
bool pass_quantize(Graph *, PassCtx *);
/* Copies nodes without operands (constants, splats, iotas) into the subgraphs that get them as
 * inputs, and removes inputs that no subgraph reads. Leaves what loops carry or slice alone. */
bool pass_sink(Graph *, PassCtx *);
/* Inlines the branch of a cond whose condition is constant; replaces a cond by both branches and
 * selects if both are element-wise, cannot fail, and cost less than a cond. */
bool pass_branch(Graph *, PassCtx *);
/* Applies the rules of rules.h to each node that has readers, and to each node that a rule adds.
 * Erases the nodes that it replaces; other nodes that lose their readers are left to dce. */
bool pass_simplify(Graph *, PassCtx *);
/* Keeps the first of equal nodes (common subexpressions), which readers of the others then read.
 * Leaves nodes with effects and nodes whose operator says so (OpInfo.apart) alone. */
bool pass_cse(Graph *, PassCtx *);
/* Moves slices, and gathers along one dimension, in front of products, reductions and element-wise
 * nodes of which nothing else is read, where a product or a reduction becomes smaller by that. */
bool pass_rows(Graph *, PassCtx *);
/* Replaces nodes that depend on constants only, have constant shapes and whose operators fold
 * (OpInfo.folds) by constants: if the value has no more bytes than the constants that it comes
 * from, or at most 64 KB, and no value on the way has more than 64 MB and more than eight times the
 * bytes of its constants. Nodes whose evaluation fails (an index out of range) stay, and no error
 * is recorded. */
bool pass_fold(Graph *, PassCtx *);
/* Multiplies constant scales that follow convolutions and contractions into their constant weights,
 * and adds constant biases that follow each other. Floating-point results may round differently. */
bool pass_fold_scale(Graph *, PassCtx *);
/* Removes nodes without readers and effects, except inputs. */
bool pass_dce(Graph *, PassCtx *);
/* Removes what is written to state with itself, and with the last operator that draws random
 * numbers the state "weft.rng" (random.c). Other state stays, read or not. */
bool pass_state(Graph *, PassCtx *);
/* Replaces convolutions by Winograd's transforms around a product of matrices, where the target's
 * costs say so (winograd_choose). Does nothing for a GPU. */
bool pass_winograd(Graph *, PassCtx *);
/* Makes the padding of a convolution, and the dilation of its operand, a node of its own (OP_pad),
 * and removes nodes as pass_dce does. The last pass. Fails if a padded operand has 2^48 bytes or
 * more. */
bool pass_pad(Graph *, PassCtx *);

/* Gives each subgraph of each node the graph's `unrounded` and runs `run` on it, until `run`
 * sets PassCtx.failed. Subgraphs of subgraphs are left to `run`. Returns whether a `run`
 * returned true. For passes. */
bool pass_subgraphs(Graph *, PassCtx *, bool (*run)(Graph *, PassCtx *));

/* Returns a builder that adds nodes in front of `before`, a node of the graph, with its
 * location. For passes. */
Build pass_build(Graph *, Node before);
/* Replaces a node that is computed of constants in a few steps, and has a constant shape, by a
 * constant, whatever its size: as pass_fold does, by its value or by a recipe. Returns the node
 * of the constant; n itself if its evaluation fails. For passes. */
Node fold_node(Graph *, PassCtx *, Node n);
/* Makes readers of `old` and outputs read `new`, and erases `old` unless it has an effect. Does
 * nothing if both are the same node. `new` must not depend on `old`. For passes. */
void pass_replace(Graph *, Node old, Node new);

#endif
