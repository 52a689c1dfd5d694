/* Private to transform/: making a graph for a batch (batch.c), and nodes with graphs in it
 * (batch_control.c). */
#ifndef WEFT_TRANSFORM_BATCH_PRIV_H
#define WEFT_TRANSFORM_BATCH_PRIV_H

#include "transform/derive_priv.h"
#include "transform/transform.h"

/* One graph. In a body that only some members of the batch execute (a branch, the body of a loop),
 * these members are `active`: checks of other members are left out, and loops end when no member is
 * active. */
typedef struct {
	Graph *g;
	Sym size;
	uint32_t n;     /* the number of its nodes at the beginning */
	Node *to;       /* by node: the node with the batch; none: the value is the same for all
	                   members */
	Node **element; /* by tuple whose results differ in this: the same for each result; else
	                   NULL */
	bool *gone;     /* by node: another node is read in its place */
	Randomness randomness;
	Node active;    /* [B] of bool; none: all members are active */
	Node any;       /* whether a member is active */
} Batch;

/* Changes graph g, a body, in place: input k has the batch if in[k], output k if want[k] (at least
 * those of batch_spread). masked: a further input says which members are active. */
bool batch_body(Graph *g, Sym size, const bool *in, const bool *want, bool masked);
/* Sets out[k] if output k of a body differs between members, given in[] for inputs. */
void batch_spread(const Graph *body, const bool *in, bool *out);

/* Something is checked in it, or it may go on for ever, which must not be where no member is
 * active. */
bool node_needs_mask(const Graph *, Node);

/* ---- nodes with graphs: batch_control.c; the rules of each operator, which control.c lists ---- */

void spread_scan(const Graph *, Node n, bool *in, bool *out);
void spread_while(const Graph *, Node n, bool *in, bool *out);
void spread_cond(const Graph *, Node n, bool *in, bool *out);
void spread_invertible(const Graph *, Node n, bool *in, bool *out);
bool batch_scan(Batch *, Build *, Node n, const Node *in, const bool *batched);
bool batch_while(Batch *, Build *, Node n, const Node *in, const bool *batched);
bool batch_cond(Batch *, Build *, Node n, const Node *in, const bool *batched);
bool batch_invertible(Batch *, Build *, Node n, const Node *in, const bool *batched);

/* Which results of n differ, from its operands. */
void control_spread(const Graph *, Node n, const bool *in, bool *out);
bool control_needs_mask(const Graph *, Node n);
/* n of the operands in[k]: with the batch where batched[k], the others its own. Its results are in
 * v->element. */
bool control_batch(Batch *v, Build *b, Node n, const Node *in, const bool *batched);

#endif
