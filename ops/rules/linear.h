/* Whether a value of a graph is linear in some of its inputs. The answer follows from .linear of
 * primitives and scalar functions; composites are expanded; bodies are followed until their carried
 * values settle. */
#ifndef WEFT_OPS_RULES_LINEAR_H
#define WEFT_OPS_RULES_LINEAR_H

#include "ir/op/op.h"

typedef enum {
	LIN_ZERO,   /* zero for all inputs: linear, and independent of them */
	LIN_FREE,   /* independent of the inputs */
	LIN_LINEAR, /* linear in all inputs together */
	LIN_NOT     /* neither, or unknown: also the sum of an independent and a linear value */
} Lin;

typedef struct LinearTable LinearTable;

/* Begins the analysis of a graph, which the caller does not need afterwards: the analysis adds the
 * expansions of composites to the graph and to its bodies. The table is in the scratch arena. */
LinearTable *linear_new(Graph *);
/* States the answer for all results of an input or a constant, before linear_of looks at the node.
 * Without a statement they are LIN_FREE, constant zeros LIN_ZERO. */
void linear_set(LinearTable *, Node, Lin);
/* Returns the answer for result k of a node of the graph; k is 0 unless the node is a tuple. Takes
 * time in proportion to the nodes that no call has looked at yet. */
Lin linear_of(LinearTable *, Node, uint32_t k);
/* Returns the answer for the sum of two values with these answers. */
Lin linear_sum(Lin, Lin);

#endif
