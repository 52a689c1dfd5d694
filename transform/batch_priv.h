/* Private to transform/: making a graph for a batch (batch.c), and nodes with graphs in it
 * (batch_control.c). */
#ifndef WEFT_TRANSFORM_BATCH_PRIV_H
#define WEFT_TRANSFORM_BATCH_PRIV_H

#include "transform/derive_priv.h"
#include "transform/transform.h"

/* The batching of one graph, in place: for each node that differs between members of the batch, a
 * node is added that has the batch as first dimension. In a body that only some members execute (a
 * branch, the body of a loop), these members are `active`: checks of other members are left out,
 * and loops end when no member is active. */
typedef struct {
	Graph *g;
	Sym size;
	uint32_t n;     /* nodes with handles below n are those of the graph before */
	Node *to;       /* by node: the node with the batch; none: the value is the same for all
	                   members */
	Node **element; /* by node with a tuple type: by result, as `to`. NULL: use `to`, or no
	                   result differs */
	bool *gone;     /* by node: another node is read in its place */
	Randomness randomness;
	Node active;    /* [B] of bool; none: all members are active */
	Node any;       /* whether a member is active */
} Batch;

/* Changes graph g, a body, in place: input k gets the batch as dimension 0 if in[k], output k if
 * want[k] (at least the outputs for which batch_spread says true; else an internal error). masked:
 * adds a last input, bool [size], that says which members are active. Returns false after an error:
 * a value has no dimension left for the batch. */
bool batch_body(Graph *g, Sym size, const bool *in, const bool *want, bool masked);
/* Sets out[k] to whether output k of a body differs between members, if the inputs with in[k]
 * do. */
void batch_spread(const Graph *body, const bool *in, bool *out);

/* Whether the node needs to know which members are active: it, or a node in its graphs, checks an
 * operand, or may execute its graphs without end. */
bool node_needs_mask(const Graph *, Node);

/* ---- nodes with graphs: batch_control.c; contracts of spread and batch: Control in control.h ----
 */

/* Sets out[k] to whether result k of a scan differs between members, if the operands with in[k]
 * do. Also sets in[k] of a carry that differs after the first round. Control.spread of a scan. */
void spread_scan(const Graph *, Node n, bool *in, bool *out);
/* Sets out[k] to whether result k of a while loop differs between members, if the operands with
 * in[k] do; all results differ if the condition does. Also sets in[k] of a carry that differs
 * after the first round. Control.spread of a while loop. */
void spread_while(const Graph *, Node n, bool *in, bool *out);
/* Sets out[k] to whether result k of a cond differs between members, if the operands with in[k]
 * do: in one of the branches, or because the condition does. Control.spread of a cond. */
void spread_cond(const Graph *, Node n, bool *in, bool *out);
/* Sets out[k] to in[k] for each result k of an invertible block. Control.spread of an invertible
 * block. */
void spread_invertible(const Graph *, Node n, bool *in, bool *out);
/* Adds a scan whose body has the batch. Returns false after an error. Control.batch of a scan. */
bool batch_scan(Batch *, Build *, Node n, const Node *in, const bool *batched);
/* Adds a while loop whose graphs have the batch. If the condition differs between members, those
 * that are done keep their values; a loop whose body cannot be executed for members that are
 * done (calls and effects of the user) is executed for one member after the other. Returns false
 * after an error. Control.batch of a while loop. */
bool batch_while(Batch *, Build *, Node n, const Node *in, const bool *batched);
/* Adds a cond whose branches have the batch. If the condition differs between members, both
 * branches are executed and results selected; branches that cannot be executed for members that
 * do not take them (calls and effects of the user) are executed for one member after the other.
 * Returns false after an error. Control.batch of a cond. */
bool batch_cond(Batch *, Build *, Node n, const Node *in, const bool *batched);
/* Adds a block whose inverse has the batch; only the ends of the block's checkpoints where some
 * members only execute it (v->active). Returns false after an error. Control.batch of an
 * invertible block. */
bool batch_invertible(Batch *, Build *, Node n, const Node *in, const bool *batched);

/* Calls n's row of control.c: sets out[k] to whether result k of n differs between members, if the
 * operands with in[k] do. */
void control_spread(const Graph *, Node n, const bool *in, bool *out);
/* Returns what node_needs_mask answers of a node that has graphs: whether the operator may
 * execute them without end (.endless), or, unless it only marks values (.marks), a node in them
 * needs the mask. */
bool control_needs_mask(const Graph *, Node n);
/* Calls n's row of control.c: adds, by b, nodes that compute n for the batch. in[k]: operand k,
 * with the batch if batched[k]. Sets v->element[n][k] to result k if that differs between members;
 * else readers of result k read the new one. Returns false after an error. */
bool control_batch(Batch *v, Build *b, Node n, const Node *in, const bool *batched);

#endif
