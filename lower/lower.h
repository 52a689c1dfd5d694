/* Lowering: a graph of primitives becomes kernels over buffers (ir/kernel/kernel.h), by
 * lower_graph (lower/graph/graph.h). */
#ifndef WEFT_LOWER_LOWER_H
#define WEFT_LOWER_LOWER_H

#include "ir/kernel/kernel.h"

typedef struct {
	const struct Target *target; /* the target whose costs decide; NULL: "generic-c" */
	bool no_fusion; /* one kernel for each node that is no index map: the baseline `op by op` */
	bool cancellable;     /* a call may end early before each step: it keeps what it replaces of
				 state */
	const Lowered *after; /* the graph of the same program that was lowered before: the result
	                         has its messages, with the same numbers (lowered_check_after).
	                         NULL: this graph is the first */
} LowerOptions;

#endif
