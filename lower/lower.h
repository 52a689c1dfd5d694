/* Lowering: a graph of primitives becomes kernels over buffers. */
#ifndef WEFT_LOWER_LOWER_H
#define WEFT_LOWER_LOWER_H

#include "ir/kernel/kernel.h"

typedef struct {
	const struct Target *target; /* the target whose costs decide; NULL: portable C */
	bool no_fusion; /* one kernel for each node that is no index map: the baseline `op by op` */
	const Lowered *after; /* a graph of the same program that was lowered before: its messages
	                         keep their numbers. NULL: this graph is the first */
} LowerOptions;

/* Makes kernels, control flow and buffer layouts of a graph. The graph must consist of primitives,
 * as the passes leave it, and must outlive the result. Returns NULL after errors; one for each
 * operator without a schedule. */
Lowered *lower_graph(Graph *, const LowerOptions *);

#endif
