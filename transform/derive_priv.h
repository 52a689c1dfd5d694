/* Private to the transforms: the walk of cotangents against the order of nodes, and what it needs
 * of control flow. */
#ifndef WEFT_TRANSFORM_DERIVE_PRIV_H
#define WEFT_TRANSFORM_DERIVE_PRIV_H

#include "transform/transform.h"

/* n of T in the scratch arena, and room for one more. */
#define ZEROED(g, T, n) ((T *)arena_calloc((g)->ir->ctx->scratch, (size_t)(n) + 1, sizeof(T)))

/* Copy and canonicalise: composites for which `has_rule` is false, or with complex operands,
 * expand; complex values become pairs but for inputs, outputs and constants. NULL after
 * ctx_error. */
Graph *transform_begin(const Graph *, bool (*has_rule)(Op));

/* ---- what is differentiated by (derive_roots.c) ---- */

typedef struct {
	uint32_t n;     /* inputs, then constants */
	Node *node;     /* none: a constant that is not read */
	TypeId *type;
	const char **name;
} Roots;

/* False after ctx_error. */
bool roots_of(Graph *, const Wrt *, Roots *);

/* ---- cotangents ---- */

/* Of the nodes with handles first, first + 1, ... first + n - 1: what is active depends on a value
 * that is differentiated by. */
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
void reverse_mark(Reverse *, Node); /* nodes that depend on it, and are walked by reverse_spread,
                                       are active too */
/* From `from` to `last` in program order: what reads an active value and can have a derivative is
 * active. */
void reverse_spread(Reverse *, Node from, Node last);
/* Adds to the cotangent of a value; none adds nothing, what is not active takes nothing. */
void reverse_add(Reverse *, Node value, Node ct);
Node reverse_cotangent(const Reverse *, Node value); /* none: zero */
/* From `last` back to the one behind `before` (none: to the first). False after ctx_error. */
bool reverse_run(Reverse *, Node last, Node before);

/* ---- tangents ---- */

/* A node whose results the first results of another are: to be replaced when no tangent is asked
 * for any more. */
typedef struct {
	Node old, by;
	uint32_t first, shift; /* results from `first` on are `shift` further on */
} Replaced;

typedef struct {
	Graph *g;
	uint32_t n;     /* nodes with handles below it may have one */
	Node *t;        /* none: zero */
	Node **element; /* of tuples: by result */
	ARRAY(Replaced) replaced;
} Forward;

/* All tangents are zero. Arrays live in the scratch arena. */
Forward forward_new(Graph *);
void forward_set(Forward *, Node value, Node tangent);
Node forward_tangent(const Forward *, Node value); /* none: zero */
/* From `first` to the node that is the last one now. False after ctx_error. */
bool forward_run(Forward *, Node first);
/* The loops that compute tangents too take the place of those that did not. */
void forward_end(Forward *);

/* ---- bodies (derive_body.c) ---- */

/* Which results depend on which inputs: out[k] becomes true where result k has derivatives by an
 * input with in[k]. */
void body_activity(const Graph *, const bool *in, bool *out);
/* The same of a loop's body, whose first results are its first inputs in the next round: in[] is
 * changed to what they are in the last one, and so are their out[]. */
void body_carries(const Graph *, uint32_t ncarry, bool *in, bool *out);
/* in[k]: a result with out[k] may read input k. */
void body_readers(const Graph *, const bool *out, bool *in);

/* A body with the cotangents of its inputs behind it. */
typedef struct {
	Graph *g;           /* inputs: the body's, then the cotangents of results */
	uint32_t nin, nout; /* of the body */
	Node *in, *out;     /* its inputs and results */
	Node *ct;           /* by result; none: zero */
	Node *grad;         /* by input; none: zero */
	bool *reads;        /* by input: what computes `grad` reads it */
	uint32_t nkept;     /* and what was computed forwards that it reads: not what is cheap to
	                       compute again */
	Node *kept;
	uint32_t *kept_at; /* which result of body_forward it is */
} Linearized;

/* active[k]: input k has a cotangent; has_ct[k]: result k does; step[k]: input k differs from one
 * execution of the body that is differentiated to the next. False after ctx_error. */
bool body_linearize(const Graph *body, const Build *at, const bool *active, const bool *has_ct, const bool *step, Linearized *);
/* The body with further results for what is kept, unless that is a result already, of those from
 * `shared` on. */
Graph *body_forward(Linearized *, uint32_t shared);
/* What computes the cotangents of inputs, at b's position, from inputs (by input, none where
 * `reads` is not set), cotangents (by result) and what was kept. Once, and after body_forward. */
void body_backward(Linearized *, Build *b, const Node *in, const Node *ct, const Node *kept, Node *grad);
/* The body at b's position, with tangents t[] of its inputs (none: zero). False after ctx_error. */
bool body_tangents(const Graph *body, Build *b, const Node *in, const Node *t, Node *out, Node *ty);

/* The graphs of a node, at most two; how many. */
uint32_t bodies_of(const Graph *, Node n, Graph *body[2]);

/* ---- nodes that execute graphs: scan, cond (derive_control.c), while (derive_while.c) ----
 * Contracts of op_vjp and op_jvp. A node may be replaced by one that has more results. */

bool scan_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool cond_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool while_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool scan_jvp(Forward *, Build *, Node n, const Node *t, Node *ty);
bool cond_jvp(Forward *, Build *, Node n, const Node *t, Node *ty);
bool while_jvp(Forward *, Build *, Node n, const Node *t, Node *ty);

/* What they share: n in the place of old, whose results are its first ones. */
void replace_tuple(Graph *, Node old, Node by);

#endif
