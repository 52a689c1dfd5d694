/* Questions about nodes that passes ask. */
#ifndef WEFT_PASSES_COMMON_QUESTIONS_H
#define WEFT_PASSES_COMMON_QUESTIONS_H

#include "ir/graph/graph.h"
#include "ir/op/op.h"
#include "ir/scalar/scalar.h"

/* Whether n is a splat (node_splat) of the number v. False if n is none, or if its number is an
 * expression of symbols. A bool true is 1. -0 is not 0, NaN is no number, and a
 * complex splat is none, also with an imaginary part 0. */
bool is_splat(const Graph *, Node, double v);
/* Whether n is a node (not none) of that operator. */
static inline bool is_op(const Graph *g, Node n, Op op)
{
	return n.i && node_op(g, n) == op;
}
/* Whether n is element-wise and applies that one operation to its operands. */
bool is_scalar(const Graph *, Node n, ScOp op);
/* Whether x, an operand of n, has the same operator as n. */
static inline bool is_nested(const Graph *g, Node n, Node x)
{
	return is_op(g, x, node_op(g, n));
}
/* Goes back from x through reshapes as long as each keeps the last nsp extents, provably, and has
 * an operand with further dimensions. Returns the node that it comes to; x if x is no such reshape.
 * (The last nsp dimensions are the spatial ones of an operand of a convolution.) */
Node below_reshape(const Graph *, Node x, uint32_t nsp);

/* Whether two nodes have one shape, provably. */
bool same_shape(const Graph *, Node x, Node y);
/* Whether the extent is the constant 1. */
bool is_one(const Graph *, Sym);
/* Sets out[] (room for MAX_RANK) and *n to the elements and the length of the named int[] argument
 * of a node. Returns false if an element is symbolic. */
bool const_list(const Graph *, Node, const char *name, int64_t *out, uint32_t *n);

#endif
