/* A graph that is becoming one for a batch (batch.c), and what its nodes with graphs become
 * (batch_control.c). */
#ifndef WEFT_TRANSFORM_BATCH_PRIV_H
#define WEFT_TRANSFORM_BATCH_PRIV_H

#include "transform/derive_priv.h"
#include "transform/transform.h"

/* One graph. In one that only some members of the batch execute, a branch or what a loop repeats,
 * those are `active`: nothing is checked for others, and nothing goes on for ever. */
typedef struct {
	Graph *g;
	Sym size;
	uint32_t n;     /* nodes that it had */
	Node *to;       /* by node: with the batch; none: it is the same for all members */
	Node **element; /* by tuple, where results differ in that: the same of each; else NULL */
	bool *gone;     /* by node: something else is read in its place */
	Randomness randomness;
	Node active;    /* [B] of bool; none: all are */
	Node any;       /* whether one is */
} Batch;

/* Graph g, in place, as a body: input k has the batch where in[k], output k where want[k], which
 * batch_spread has said to be so at least. masked: one more input says who is active. */
bool batch_body(Graph *g, Sym size, const bool *in, const bool *want, bool masked);
/* Which outputs of a body differ between members, from its inputs. */
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
