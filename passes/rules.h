/* Private to passes/: rules of simplify, and questions about nodes. */
#ifndef WEFT_PASSES_RULES_H
#define WEFT_PASSES_RULES_H

#include "passes/pass.h"

/* A rule replaces node n: `apply` returns a node of the same type with the same value, or none. It
 * may add nodes by b, which adds in front of n, but only if it then returns one. */
typedef struct {
	const char *name; /* "add_zero" */
	Op op;            /* the operator of n; OP_none: any */
	Node (*apply)(Build *b, Node n);
} Rule;

/* Lists of rules; the last has a NULL name. */
extern const Rule scalar_rules[], shape_rules[], reduce_rules[], conv_rules[];

/* Whether all elements of n provably have this value. -0 is not 0. */
bool is_splat(const Graph *, Node, double v);
static inline bool is_op(const Graph *g, Node n, Op op)
{
	return n.i && node_op(g, n) == op;
}
/* Is x, an operand of n, of n's operator? */
static inline bool is_nested(const Graph *g, Node n, Node x)
{
	return is_op(g, x, node_op(g, n));
}
/* Looks through reshapes at x, an operand of a convolution, that keep its nsp spatial dimensions:
 * returns the tensor before these reshapes. */
Node below_reshape(const Graph *, Node x, uint32_t nsp);
bool same_dim(const Graph *, Sym, Sym); /* whether both extents are provably equal */
bool is_one(const Graph *, Sym);
/* Reads a list of constant integers; returns false if an element is symbolic. */
bool const_list(const Graph *, Node, const char *name, int64_t *out, uint32_t *n);

#endif
