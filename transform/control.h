/* What transforms do with operators that execute graphs: their rules need the transforms
 * themselves, so they stand here and not in the op table. A new operator with graphs is a row of
 * control.c. */
#ifndef WEFT_TRANSFORM_CONTROL_H
#define WEFT_TRANSFORM_CONTROL_H

#include "transform/batch_priv.h"

typedef struct {
	Op op;
	/* As op_vjp and op_jvp. NULL: the block has the rule. */
	bool (*vjp)(Build *, Node n, const Node *ct, const bool *want, Node *g);
	bool (*jvp)(Forward *, Build *, Node n, const Node *t, Node *ty);
	/* Which results of n differ between members of a batch: out[k], if operands with in[k] do.
	 * in[] is the callee's to change. */
	void (*spread)(const Graph *, Node n, bool *in, bool *out);
	/* n of the operands in[k], with the batch where batched[k], otherwise n's own. The results
	 * go to v->element. False after ctx_error. */
	bool (*batch)(Batch *v, Build *b, Node n, const Node *in, const bool *batched);
} Control;

/* NULL: the node executes no graphs. */
const Control *control_of(const Graph *, Node);

#endif
