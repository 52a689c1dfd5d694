/* Private to lowering: operators that are more than a value at each point, LOWER_ROOT of the op
 * table. Each has one function. */
#ifndef WEFT_LOWER_ROOTS_H
#define WEFT_LOWER_ROOTS_H

#include "lower/trace.h"

/* One of the two. */
typedef struct {
	/* The value at an index of the root axes, after pushing the stages that it needs; what it
	 * reads may be computed in the same kernel. None: the last stage pushed stores it. */
	Kx (*value)(Trace *, const Sym *idx);
	/* Steps for a node, whose operands are stored. False after ctx_error. */
	bool (*steps)(Lower *, Node);
} RootFn;

const RootFn *root_fn(Op); /* NULL where the operator is none */

#endif
