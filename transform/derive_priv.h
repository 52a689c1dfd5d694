/* Private to transform/: the walk of cotangents against the order of nodes, tangents, and bodies of
 * control flow. */
#ifndef WEFT_TRANSFORM_DERIVE_PRIV_H
#define WEFT_TRANSFORM_DERIVE_PRIV_H

#include "transform/transform.h"

/* An array of n zeroed T in the scratch arena, with room for one more. */
#define ZEROED(g, T, n) ((T *)arena_calloc((g)->ir->ctx->scratch, (size_t)(n) + 1, sizeof(T)))

/* Returns a copy in canonical form: composites without a rule (`has_rule`), or with complex
 * operands, are expanded; complex values are pairs, except inputs, outputs and constants. Returns
 * NULL after errors. */
Graph *transform_begin(const Graph *, bool (*has_rule)(Op));

/* ---- what is differentiated by (derive_roots.c) ---- */

typedef struct {
	uint32_t n;     /* the number of inputs and constants, in this order */
	Node *node;     /* none: a constant that the graph does not read */
	TypeId *type;
	const char **name;
} Roots;

/* False after ctx_error. */
bool roots_of(Graph *, const Wrt *, Roots *);

/* ---- cotangents ---- */

/* Cotangents of the nodes with handles first .. first + n - 1. A node is active if it depends on a
 * value by which the graph is differentiated. */
typedef struct {
	Graph *g;
	Build b; /* adds nodes behind all nodes that rules read */
	uint32_t first, n;
	bool *active;
	Node *ct;       /* none: zero */
	Node **element; /* of a tuple: by result; NULL: all zero */
} Reverse;

/* Begins with no active node. Arrays are in the scratch arena. */
Reverse reverse_new(Graph *, Build, uint32_t first, uint32_t n);
/* Whether the value is in the range, active, and of a dtype with derivatives (or a tuple). */
bool reverse_active(const Reverse *, Node);
void reverse_mark(Reverse *, Node); /* marks a value as active; reverse_spread marks nodes that
                                       depend on it */
/* Marks nodes from `from` to `last` that read an active value and can have a derivative. */
void reverse_spread(Reverse *, Node from, Node last);
/* Adds ct (none: zero) to the cotangent of a value, if the value is active. */
void reverse_add(Reverse *, Node value, Node ct);
Node reverse_cotangent(const Reverse *, Node value); /* none: zero */
/* Walks from `last` back to the node behind `before` (none: to the first), and adds cotangents of
 * operands. Returns false after errors. */
bool reverse_run(Reverse *, Node last, Node before);

/* ---- tangents ---- */

/* A node that is replaced by another with more results, when no tangent is needed any more. */
typedef struct {
	Node old, by;
	uint32_t first, shift; /* result k from `first` on is result k + shift of `by` */
} Replaced;

typedef struct {
	Graph *g;
	uint32_t n;     /* nodes with smaller handles may have a tangent */
	Node *t;        /* none: zero */
	Node **element; /* of tuples: by result */
	ARRAY(Replaced) replaced;
} Forward;

/* Begins with all tangents zero. Arrays are in the scratch arena. */
Forward forward_new(Graph *);
void forward_set(Forward *, Node value, Node tangent);
Node forward_tangent(const Forward *, Node value); /* none: zero */
/* Walks from `first` to the present last node. Returns false after errors. */
bool forward_run(Forward *, Node first);
/* Replaces loops by those that compute tangents, too. */
void forward_end(Forward *);

/* ---- bodies (derive_body.c) ---- */

/* Sets out[k] if result k has a derivative by an input with in[k]. */
void body_activity(const Graph *, const bool *in, bool *out);
/* The same for a loop's body whose first ncarry results are the first inputs of the next round:
 * iterates until in[] and out[] no longer change. */
void body_carries(const Graph *, uint32_t ncarry, bool *in, bool *out);
/* Sets in[k] if a result with out[] may read input k. */
void body_readers(const Graph *, const bool *out, bool *in);

/* A body with the cotangents of its inputs added behind it. */
typedef struct {
	Graph *g;           /* inputs: the body's, then the cotangents of its results */
	uint32_t nin, nout; /* of the body */
	Node *in, *out;     /* the body's inputs and results */
	Node *ct;           /* by result; none: zero */
	Node *grad;         /* by input; none: zero */
	bool *reads;        /* by input: whether `grad` reads it */
	uint32_t nkept;     /* values of the body that `grad` reads, except those that are cheap to
	                       compute again */
	Node *kept;
	uint32_t *kept_at; /* by kept value: its result of body_forward */
} Linearized;

/* Makes a Linearized. active[k]: input k gets a cotangent; has_ct[k]: result k has one; step[k]:
 * input k differs between executions of the body. Returns false after errors. */
bool body_linearize(const Graph *body, const Build *at, const bool *active, const bool *has_ct, const bool *step, Linearized *);
/* The body with further results for the kept values, unless a result from `shared` on has the value
 * already. */
Graph *body_forward(Linearized *, uint32_t shared);
/* Adds, at b's position, the nodes that compute grad[], the cotangents of inputs, from in[] (none
 * if not `reads`), ct[] and kept[]. Call it once, after body_forward. */
void body_backward(Linearized *, Build *b, const Node *in, const Node *ct, const Node *kept, Node *grad);
/* Adds the body at b's position, with tangents t[] of its inputs (none: zero). Returns false after
 * errors. */
bool body_tangents(const Graph *body, Build *b, const Node *in, const Node *t, Node *out, Node *ty);

/* Sets body[] to the graphs of a node; returns their number, at most 2. */
uint32_t bodies_of(const Graph *, Node n, Graph *body[2]);

/* ---- nodes that execute graphs: scan, cond (derive_control.c), while (derive_while.c) ----
 * Contracts of op_vjp and op_jvp. A node may be replaced by one that has more results. */

bool scan_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool cond_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool while_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool scan_jvp(Forward *, Build *, Node n, const Node *t, Node *ty);
bool cond_jvp(Forward *, Build *, Node n, const Node *t, Node *ty);
bool while_jvp(Forward *, Build *, Node n, const Node *t, Node *ty);

/* Replaces a node by one whose first results are the node's. */
void replace_tuple(Graph *, Node old, Node by);

#endif
