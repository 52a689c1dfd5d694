/* Private to the passes: what a rule of simplify sees and how it answers; questions about nodes. */
#ifndef WEFT_PASSES_RULES_H
#define WEFT_PASSES_RULES_H

#include "passes/pass.h"

/* A rule gives a node of the same type that may stand for n, or none. It may add nodes through b,
 * which inserts before n, but only if it then succeeds. */
typedef struct {
	const char *name; /* "add_zero" */
	Op op;            /* of the root; OP_none: any */
	Node (*apply)(Build *b, Node n);
} Rule;

/* end with a NULL name */
extern const Rule scalar_rules[], shape_rules[], reduce_rules[], conv_rules[];

/* Is n a splat of this value? -0 is not 0. */
bool is_splat(const Graph *, Node, double v);
static inline bool is_op(const Graph *g, Node n, Op op)
{
	return n.i && node_op(g, n) == op;
}
/* The tensor whose trailing dimensions are the nsp spatial ones of x, an operand of a convolution,
 * under reshapes of the others. */
Node below_reshape(const Graph *, Node x, uint32_t nsp);
bool same_dim(const Graph *, Sym, Sym); /* provably */
bool is_one(const Graph *, Sym);
/* A constant list of ints; false when one is symbolic. */
bool const_list(const Graph *, Node, const char *name, int64_t *out, uint32_t *n);

#endif
