/* Private to lowering: operators with role LOWER_ROOT. Each has one of two functions. */
#ifndef WEFT_LOWER_ROOTS_H
#define WEFT_LOWER_ROOTS_H

#include "lower/trace.h"

/* One of the two is not NULL. */
typedef struct RootFn {
	/* Builds one kernel, whose root is t->root: adds the stages that the operator needs, and
	 * returns the value of the root at index idx[] of the root axes. Operands may be computed
	 * in the same kernel (trace_value). Returns none if the last stage stores the value
	 * itself. */
	Kx (*value)(Trace *t, const Sym *idx);
	/* Adds steps for a node, whose operands are stored, at the end of s->steps, and sets the
	 * places of its results. */
	void (*steps)(Lower *, Node);
	/* NULL, or asked first: does what `steps` does in another way, or nothing and returns
	 * false. */
	bool (*instead)(Lower *, Node);
} RootFn;

/* lower.c: does as lower_graph (lower/graph/graph.h), by root_fn of there. */
Lowered *lower_by_roots(Graph *, const LowerOptions *, const RootFn *(*root_fn)(Op));

#endif
