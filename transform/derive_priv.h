/* Private to transform/: the walk of cotangents against the order of nodes, the walk of tangents
 * along it, and both for bodies of control flow. Cotangents, tangents and rules: ir/ops/op.h. */
#ifndef WEFT_TRANSFORM_DERIVE_PRIV_H
#define WEFT_TRANSFORM_DERIVE_PRIV_H

#include "transform/transform.h"

/* An array of n zeroed T in the scratch arena, with room for one more. */
#define ZEROED(g, T, n) ((T *)arena_calloc((g)->ir->ctx->scratch, (size_t)(n) + 1, sizeof(T)))

/* Returns a copy in canonical form: composites without a rule (`has_rule`), or with complex
 * operands, are expanded; complex values are pairs, except inputs, outputs and constants. Returns
 * NULL after errors. */
Graph *transform_begin(const Graph *, bool (*has_rule)(Op));

/* ---- the values by which a graph is differentiated (derive_roots.c) ---- */

typedef struct {
	uint32_t n;     /* the number of inputs and constants, in this order */
	Node *node;     /* none: a constant that the graph does not read */
	TypeId *type;
	const char **name;
} Roots;

/* Sets *out to the nodes of the inputs and constants in the Wrt; its arrays lie in the scratch
 * arena. Changes the graph: each of these constants becomes one node, and bodies that read it get
 * an input for it, so the nodes that have these bodies are replaced. The caller has checked the
 * dtypes of the constants. Returns false after an error: an input without a derivative. */
bool roots_of(Graph *, const Wrt *, Roots *out);

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

/* Use: mark the values by which to differentiate, spread, add the cotangents of the outputs, run,
 * then ask for the cotangents of the values. */

/* Returns a Reverse for the nodes with handles first .. first + n - 1, none of them active. Its
 * arrays lie in the scratch arena. */
Reverse reverse_new(Graph *, Build, uint32_t first, uint32_t n);
/* Whether the node is in the range and active; false of no node. */
bool reverse_active(const Reverse *, Node);
/* Makes a node active, if it is in the range. */
void reverse_mark(Reverse *, Node);
/* Makes each node from `from` to `last` active that reads an active node and has a float, complex
 * or tuple type. */
void reverse_spread(Reverse *, Node from, Node last);
/* Adds ct (none: zero) to the cotangent of a node, if the node is active. */
void reverse_add(Reverse *, Node value, Node ct);
/* Returns the cotangent of a node as added so far; none means zero. */
Node reverse_cotangent(const Reverse *, Node value);
/* Walks from `last` back to the node behind `before` (none: to the first), and adds the cotangents
 * of the operands of each active node, by its rule. Returns false after errors. */
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

/* Use: set the tangents of inputs, run, ask for the tangents of outputs, end. */

/* Returns a Forward in which all tangents are zero. Its arrays lie in the scratch arena. */
Forward forward_new(Graph *);
/* Sets the tangent of a node with a handle below f->n, which is no tuple. */
void forward_set(Forward *, Node value, Node tangent);
/* Returns the tangent of a node with a handle below f->n, which is no tuple; none means zero. */
Node forward_tangent(const Forward *, Node value);
/* Walks from `first` to the node that is the last one at the call, and adds behind each node the
 * nodes that compute its tangent, by its rule. Returns false after errors. */
bool forward_run(Forward *, Node first);
/* Replaces each node with graphs by the one that its rule has made, which computes tangents too. */
void forward_end(Forward *);

/* ---- bodies (derive_body.c) ---- */

/* Sets out[k] to whether result k may have a derivative other than zero by an input with in[]. */
void body_activity(const Graph *, const bool *in, bool *out);
/* body_activity of the body of a loop, whose first ncarry results are the first inputs of the next
 * round: also sets in[k] of a carry if its out[k] is true, until nothing changes. Afterwards out[k]
 * of each carry is in[k]. */
void body_carries(const Graph *, uint32_t ncarry, bool *in, bool *out);
/* Sets in[k] to whether a result j with out[j] depends on input k of the body. */
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

/* Sets *l to a copy of the body with cotangents. at: location and place for errors. active[k]:
 * input k is to get a cotangent; has_ct[k]: result k has one; step[k]: input k differs between
 * executions of the body. Returns false after errors. */
bool body_linearize(const Graph *body, const Build *at, const bool *active, const bool *has_ct, const bool *step, Linearized *l);
/* Returns the body with the kept values as further results, and sets l->kept_at; a kept value that
 * is a result with number >= shared already is not added again. */
Graph *body_forward(Linearized *l, uint32_t shared);
/* Adds, at b's position, the nodes that compute the cotangents of the inputs, from the values of
 * the inputs in[] (none where l->reads is false), of the results' cotangents ct[] and of kept[].
 * Sets grad[k] for each input; none means zero. Uses up l: call it once, after body_forward. */
void body_backward(Linearized *l, Build *b, const Node *in, const Node *ct, const Node *kept, Node *grad);
/* Inlines the body at the end of b's graph, with inputs in[], and adds the nodes that compute its
 * tangents from t[], those of the inputs (none: zero). Sets out[] to the results, ty[] to their
 * tangents (none: zero). Returns false after errors. */
bool body_tangents(const Graph *body, Build *b, const Node *in, const Node *t, Node *out, Node *ty);

/* Sets body[] to the graphs that are attributes of a node. Returns their number, 0 to 2. */
uint32_t bodies_of(const Graph *, Node n, Graph *body[2]);

/* ---- nodes that execute graphs: scan, cond (derive_control.c), while (derive_while.c) ----
 * Contracts of op_vjp and op_jvp. A node may be replaced by one that has more results. */

/* The op_vjp of a scan: sets g[k] to the cotangent of operand k, if want[k], from those of the
 * results, ct[]. Returns false after errors. */
bool scan_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* The op_vjp of a cond: sets g[k] to the cotangent of operand k, if want[k], from those of the
 * results, ct[]. Returns false after errors. */
bool cond_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* The op_vjp of a while loop: sets g[k] to the cotangent of operand k, if want[k], from those of
 * the results, ct[]. Returns false after errors. */
bool while_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* The op_jvp of a scan: sets ty[k] to the tangent of result k from those of the operands, t[].
 * Returns false after errors. */
bool scan_jvp(Forward *, Build *, Node n, const Node *t, Node *ty);
/* The op_jvp of a cond: sets ty[k] to the tangent of result k from those of the operands, t[].
 * Returns false after errors. */
bool cond_jvp(Forward *, Build *, Node n, const Node *t, Node *ty);
/* The op_jvp of a while loop: sets ty[k] to the tangent of result k from those of the operands,
 * t[]. Returns false after errors. */
bool while_jvp(Forward *, Build *, Node n, const Node *t, Node *ty);

/* Replaces a node by one whose first results are those of the node, and erases it. */
void replace_tuple(Graph *, Node old, Node by);

#endif
