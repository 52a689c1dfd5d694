/* Private to passes/: rules of simplify, and questions about nodes that rules and passes ask. */
#ifndef WEFT_PASSES_RULES_H
#define WEFT_PASSES_RULES_H

#include "passes/pass.h"

/* A rule replaces node n: `apply` returns a node of the same type with the same value, or none if
 * the rule does not match. It may add nodes by b, which adds them in front of n, but only if it
 * then returns a node. */
typedef struct {
	const char *name; /* "add_zero" */
	Op op;            /* the operator of n; OP_none: any */
	Node (*apply)(Build *b, Node n);
} Rule;

/* Lists of rules; the last has a NULL name. */
extern const Rule scalar_rules[], shape_rules[], reduce_rules[], conv_rules[];

/* Whether n is a splat (OP_full) of this value. n may be none. -0 is not 0. */
bool is_splat(const Graph *, Node, double v);
/* Whether n is a node (not none) of that operator. */
static inline bool is_op(const Graph *g, Node n, Op op)
{
	return n.i && node_op(g, n) == op;
}
/* Whether x, an operand of n, has the same operator as n. */
static inline bool is_nested(const Graph *g, Node n, Node x)
{
	return is_op(g, x, node_op(g, n));
}
/* Returns the tensor from which x is made by reshapes that keep its last nsp dimensions (the
 * spatial ones of an operand of a convolution); x if it is no such reshape. */
Node below_reshape(const Graph *, Node x, uint32_t nsp);
/* Whether both extents are provably equal. */
bool same_dim(const Graph *, Sym, Sym);
/* Whether the extent is the constant 1. */
bool is_one(const Graph *, Sym);
/* Sets out[] (room for MAX_RANK) and *n to the elements of an int[] argument. Returns false if an
 * element is symbolic. */
bool const_list(const Graph *, Node, const char *name, int64_t *out, uint32_t *n);

#endif
