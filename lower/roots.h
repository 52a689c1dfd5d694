/* Private to lowering: operators with role LOWER_ROOT. Each has one of two functions. */
#ifndef WEFT_LOWER_ROOTS_H
#define WEFT_LOWER_ROOTS_H

#include "lower/trace.h"

/* One of the two is not NULL. */
typedef struct {
	/* Adds the stages that the operator needs and returns its value at an index of the root
	 * axes. Values that it reads may be computed in the same kernel. Returns none if the last
	 * stage stores the value. */
	Kx (*value)(Trace *, const Sym *idx);
	/* Adds steps for a node, whose operands are stored. Returns false after errors. */
	bool (*steps)(Lower *, Node);
} RootFn;

const RootFn *root_fn(Op); /* NULL for other operators */

#endif
