/* Lowering: a graph of primitives becomes kernels over buffers. */
#ifndef WEFT_LOWER_LOWER_H
#define WEFT_LOWER_LOWER_H

#include "ir/kernel/kernel.h"

typedef struct {
	const struct Target *target; /* whose costs decide; NULL: portable C */
	bool no_fusion; /* one kernel per structural node: the baseline `op by op` */
	const Lowered *after; /* another graph of the same program: checks are numbered after its.
	                         NULL: this is the first */
} LowerOptions;

/* Partition the graph into kernels and loops, build their stages, choose buffer layouts. The graph
 * holds primitives only, as the passes leave it, and must outlive the result. NULL after ctx_error,
 * which lists every operator without a schedule. */
Lowered *lower_graph(Graph *, const LowerOptions *);

#endif
