/* Passes: functions that rewrite a graph in place, each with a row in the pipeline (pipeline.h).
 * Those that have several files have a folder and a header of their own, included here. Every pass
 * works on subgraphs too, and returns true if anything changed. A pass cannot fail on a graph that
 * graph_verify accepts; canon, decompose and pad may find bad input: they record an error and set
 * PassCtx.failed. Composites, primitives, expansion: ir/op/op.h. */
#ifndef WEFT_PASSES_PASS_H
#define WEFT_PASSES_PASS_H

#include "passes/common/pass_ctx.h"
#include "passes/fold/fold.h"
#include "passes/quantize/quantize.h"
#include "passes/simplify/simplify.h"

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
/* Copies nodes without operands (constants, splats, iotas) into the subgraphs that get them as
 * inputs, and removes inputs that no subgraph reads. Leaves what loops carry or slice alone. */
bool pass_sink(Graph *, PassCtx *);
/* Inlines the branch of a cond whose condition is constant; replaces a cond by both branches and
 * selects if both are element-wise, cannot fail, and cost less than a cond. */
bool pass_branch(Graph *, PassCtx *);
/* Keeps the first of equal nodes (common subexpressions), which readers of the others then read.
 * Leaves nodes with effects and nodes whose operator says so (OpInfo.apart) alone. */
bool pass_cse(Graph *, PassCtx *);
/* Moves slices, and gathers along one dimension, in front of products, reductions and element-wise
 * nodes of which nothing else is read, where a product or a reduction becomes smaller by that. */
bool pass_rows(Graph *, PassCtx *);
/* Rewrites the sum over keys of p * (g v') as the sum over columns of g * (p v), where the graph
 * computes p v before and there are no fewer keys than columns. Other last bits than before. */
bool pass_row_sums(Graph *, PassCtx *);
/* Removes nodes without readers and effects, except inputs. */
bool pass_dce(Graph *, PassCtx *);
/* Removes what is written to state with itself, and with the last operator that draws random
 * numbers the state "weft.rng" (random.c). Other state stays, read or not. */
bool pass_state(Graph *, PassCtx *);
/* Replaces a sum of products of one size, each of few terms, by a product of all their terms. Other
 * last bits than before. */
bool pass_sum_products(Graph *, PassCtx *);
/* Replaces convolutions by Winograd's transforms around a product of matrices, where the target's
 * costs say so (winograd_choose). Does nothing for a GPU. */
bool pass_winograd(Graph *, PassCtx *);
/* Makes the padding of a convolution, and the dilation of its operand, a node of its own (OP_pad),
 * and removes nodes as pass_dce does. The last pass. Fails if a padded operand has 2^48 bytes or
 * more. */
bool pass_pad(Graph *, PassCtx *);


#endif
