/* Private to the transforms: the walk of cotangents against the order of nodes, and what it needs of control flow. */
#ifndef WEFT_PASSES_DERIVE_PRIV_H
#define WEFT_PASSES_DERIVE_PRIV_H

#include "passes/transform.h"

/* Copy and canonicalise: composites for which `has_rule` is false, or with complex operands, expand; complex values become pairs
 * but for inputs, outputs and constants. NULL after ctx_error. */
Graph *transform_begin(const Graph *, bool (*has_rule)(Op));

/* ---- cotangents ---- */

/* Of the nodes with handles first, first + 1, ... first + n - 1: what is active depends on a value that is differentiated by. */
typedef struct {
	Graph *g;
	Build b; /* where nodes are added: behind all that are read */
	uint32_t first, n;
	bool *active;
	Node *ct;       /* none: zero */
	Node **element; /* of tuples: by result; NULL: all zero */
} Reverse;

/* Nothing is active. Arrays live in the scratch arena. */
Reverse reverse_new(Graph *, Build, uint32_t first, uint32_t n);
/* Is the value within, of a dtype that has derivatives (tuples: always), and marked? */
bool reverse_active(const Reverse *, Node);
void reverse_mark(Reverse *, Node); /* nodes that depend on it, and are walked by reverse_spread, are active too */
/* From `from` to `last` in program order: what reads an active value and can have a derivative is active. */
void reverse_spread(Reverse *, Node from, Node last);
/* Adds to the cotangent of a value; none adds nothing, what is not active takes nothing. */
void reverse_add(Reverse *, Node value, Node ct);
Node reverse_cotangent(const Reverse *, Node value); /* none: zero */
/* From `last` back to the first node within. False after ctx_error. */
bool reverse_run(Reverse *, Node last);

/* Is it float or complex? */
bool is_differentiable(DType);

/* ---- nodes with graphs (scan, while, cond): derive_control.c ---- */

bool control_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool control_jvp(Build *, Node n, const Node *t, Node *ty);

#endif
