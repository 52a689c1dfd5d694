/* Lowering: a graph of primitives becomes kernels over buffers (ir/kernel/kernel.h). */
#ifndef WEFT_LOWER_LOWER_H
#define WEFT_LOWER_LOWER_H

#include "ir/kernel/kernel.h"

typedef struct {
	const struct Target *target; /* the target whose costs decide; NULL: "generic-c" */
	bool no_fusion; /* one kernel for each node that is no index map: the baseline `op by op` */
	const Lowered *after; /* the graph of the same program that was lowered before: the result
	                         has its messages, with the same numbers (lowered_check_after).
	                         NULL: this graph is the first */
} LowerOptions;

/* Returns kernels, control flow and buffer layouts of a graph, in the arena of the Ir's context.
 * The options are not NULL. The graph must consist of primitives, as the passes leave it, must not
 * change any more, and must outlive the result; lower_graph adds guards to it, for what operators
 * require of sizes. Returns NULL after one error: operators that are no primitives (all are named);
 * an operator on complex numbers; a size that has no value; an output that is none; state without
 * first contents. */
Lowered *lower_graph(Graph *, const LowerOptions *);

#endif
