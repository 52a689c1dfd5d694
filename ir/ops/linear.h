/* Is a value of a graph linear in some of its inputs? The answer follows from what the op table
 * says of primitives and scalar functions (.linear); composites are what they expand into, and
 * regions are followed until their carried values settle. */
#ifndef WEFT_IR_LINEAR_H
#define WEFT_IR_LINEAR_H

#include "ir/ops/op.h"

typedef enum {
	LIN_ZERO,   /* zero whatever the inputs are: linear, and free of them */
	LIN_FREE,   /* does not depend on them */
	LIN_LINEAR, /* linear in all of them together */
	LIN_NOT     /* neither, or not known to be: of a sum of the two kinds above, too */
} Lin;

typedef struct LinearTable LinearTable;

/* Of a graph that exists for this question only: composites of it are expanded in place as they are
 * met. In the scratch arena. */
LinearTable *linear_new(Graph *);
/* What an input or a constant is; those that nobody tells of are free. Before linear_of. */
void linear_set(LinearTable *, Node, Lin);
/* Of result k of a node; 0: of a node that is no tuple. */
Lin linear_of(LinearTable *, Node, uint32_t k);
/* Of a sum of two. */
Lin linear_sum(Lin, Lin);

#endif
