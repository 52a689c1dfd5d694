/* Whether graphs are as their operators say, and what calls have to check. */
#ifndef WEFT_IR_BUILD_VERIFY_H
#define WEFT_IR_BUILD_VERIFY_H

#include "ir/graph/graph.h"

/* Checks structure, use lists, inputs, outputs, and that operands, attributes and types are as the
 * operators say, of the graph and its subgraphs. Returns true if all is well, false after
 * errors. */
bool graph_verify(Graph *);
/* Whether the node's tensor may have less than 2^48 bytes, so that sizes and their sums fit 64
 * bits. Each extent counts with the least value in its range; the program checks the real value at
 * run time. A node that only views another value counts with its own type. Returns true for a tuple
 * and for a node without a value. */
bool node_fits(const Graph *, Node);
/* Adds a guard to a verified graph, and to the bodies in it, for each condition on sizes that the
 * types of their nodes need and that is not certain: that a slice fits, that paired extents are
 * equal. Code that is made of the graph relies on these conditions. */
void graph_require(Graph *);

#endif
