/* Rules of transforms for operators that have graphs as attributes (scan, while, cond, invertible).
 * They call the transforms themselves, so they stand here and not in the op table. A new operator
 * with graphs is a row of control.c. */
#ifndef WEFT_TRANSFORM_CONTROL_H
#define WEFT_TRANSFORM_CONTROL_H

#include "transform/batch_priv.h"

typedef struct {
	Op op;
	/* As op_vjp and op_jvp (ir/op/op.h). NULL: the operator's block has the rule. */
	bool (*vjp)(Build *, Node n, const Node *ct, const bool *want, Node *g);
	bool (*jvp)(Forward *, Build *, Node n, const Node *t, Node *ty);
	/* Sets out[k] to whether result k of n differs between members of a batch, if the operands
	 * with in[k] do. May change in[]. */
	void (*spread)(const Graph *, Node n, bool *in, bool *out);
	/* Adds, by b, nodes that compute n for the batch. Sets v->element[n][k] to result k with
	 * the batch if that differs between members; else makes readers of result k read the new
	 * one. v->element[n] is an array of none. in[k]: operand k, with the batch if batched[k],
	 * else n's own. Returns false after ctx_error. */
	bool (*batch)(Batch *v, Build *b, Node n, const Node *in, const bool *batched);
} Control;

/* Returns the row of the node's operator; NULL if it has none. */
const Control *control_of(const Graph *, Node);

#endif
