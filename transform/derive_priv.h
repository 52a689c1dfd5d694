/* Private to transform/: the walk of cotangents against the order of nodes, the walk of tangents
 * along it, and both for bodies of control flow. Cotangents, tangents and rules: ir/op/op.h. */
#ifndef WEFT_TRANSFORM_DERIVE_PRIV_H
#define WEFT_TRANSFORM_DERIVE_PRIV_H

#include "transform/transform.h"

/* An array of n zeroed T in the scratch arena, with room for one more. */
#define ZEROED(g, T, n) ((T *)arena_calloc((g)->ir->ctx->scratch, (size_t)(n) + 1, sizeof(T)))

/* Returns a copy in which composites are expanded, except nodes with graphs, and nodes for whose
 * operator has_rule is true and which have no complex operand, or whose operator is `.whole`
 * (ir/op/op.h), also with complex operands; then complex values are split (pass_split_complex).
 * Returns NULL after an error of these passes. */
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
 * dtypes of the constants. Returns false after an error: an input in the Wrt whose dtype is neither
 * float nor complex. */
bool roots_of(Graph *, const Wrt *, Roots *out);

/* ---- cotangents ---- */

/* Cotangents of the nodes with handles first .. first + n - 1. A node is active if it depends on a
 * value by which the graph is differentiated. */
typedef struct {
	Graph *g;
	Build b; /* adds nodes behind all nodes that rules read */
	uint32_t first, n;
	bool *active;
	Node *ct;       /* of a node that is no tuple; none: zero */
	Node **element; /* of a tuple: by result; NULL: all zero */
} Reverse;

/* Use: mark the values by which to differentiate, spread, add the cotangents of the outputs, run,
 * then ask for the cotangents of the values. */

/* Returns a Reverse for the nodes with handles first .. first + n - 1 (first > 0), none of them
 * active and all cotangents zero. The Build adds the nodes that compute cotangents. The arrays lie
 * in the scratch arena. */
Reverse reverse_new(Graph *, Build, uint32_t first, uint32_t n);
/* Whether the node is in the range and active; false of no node. */
bool reverse_active(const Reverse *, Node);
/* Makes a node active, if it is in the range. */
void reverse_mark(Reverse *, Node);
/* Goes from node `from` to `last`, in program order, and makes each node of the range active that
 * reads an active node and has a float, complex or tuple type. */
void reverse_spread(Reverse *, Node from, Node last);
/* Adds ct (none: zero) to the cotangent of a node that is no tuple, if the node is active. */
void reverse_add(Reverse *, Node value, Node ct);
/* Returns the cotangent, as added so far, of a node that is no tuple; none means zero, also for a
 * node that is outside of the range or not active. */
Node reverse_cotangent(const Reverse *, Node value);
/* Walks from `last` back to the node behind `before` (none: to the first), and adds the cotangents
 * of the operands of each active node, by its rule. A rule may replace a node with graphs. Returns
 * false after an error. */
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
/* Sets the tangent (none: zero) of a node with a handle below f->n, which is no tuple. */
void forward_set(Forward *, Node value, Node tangent);
/* Returns the tangent of a node with a handle below f->n, which is no tuple; none means zero. */
Node forward_tangent(const Forward *, Node value);
/* Walks from `first` (none: does nothing) to the node that is the last one at the call, and adds
 * behind each node the nodes that compute its tangent, by its rule. Returns false after an
 * error. */
bool forward_run(Forward *, Node first);
/* Replaces each node of f->replaced, a node with graphs, by the one that its rule has made, which
 * computes tangents too. Ends the use of the Forward. */
void forward_end(Forward *);

/* ---- bodies (derive_body.c) ---- */

/* Sets out[k] to whether result k of a body may have a derivative other than zero by one of the
 * inputs j with in[j]. Inputs that are neither float nor complex do not count. */
void body_activity(const Graph *, const bool *in, bool *out);
/* Does as body_activity, for the body of a loop, whose first ncarry results are the first inputs
 * of the next round: also sets in[k] of a carry if its out[k] is true, until nothing changes.
 * Afterwards out[k] of each carry is in[k]. */
void body_carries(const Graph *, uint32_t ncarry, bool *in, bool *out);
/* Sets in[k] to whether a result j with out[j] depends on input k of the body. */
void body_readers(const Graph *, const bool *out, bool *in);

/* A body with the cotangents of its inputs added behind it. */
typedef struct {
	Graph *g;           /* inputs: the body's, then the cotangents of those results that have
	                       one */
	uint32_t nin, nout; /* of the body */
	Node *in, *out;     /* the body's inputs and results */
	Node *ct;           /* by result; none: zero */
	Node *grad;         /* by input; none: zero */
	bool *reads;        /* by input: whether `grad` reads it */
	uint32_t nkept;     /* values of the body that `grad` reads, except those that are cheap to
	                       compute again */
	Node *kept;        /* room for all nodes of g: callers may add inputs of the body */
	uint32_t *kept_at; /* by kept value: the number of the result of body_forward that is it */
} Linearized;

/* Sets *l to a copy of the body with cotangents. at: location and place for errors. active[k]:
 * input k is to get a cotangent; has_ct[k]: result k has one; step[k]: input k differs between
 * executions of the body. Returns false after an error: an operator without a derivative, or a size
 * that depends on data. */
bool body_linearize(const Graph *body, const Build *at, const bool *active, const bool *has_ct,
		    const bool *step, Linearized *l);
/* Returns a new graph: the body, with the kept values as further results; sets l->kept_at. A kept
 * value that is a result with number >= shared already is not added again. */
Graph *body_forward(Linearized *l, uint32_t shared);
/* Adds, at b's position, the nodes that compute the cotangents of the inputs, from the values of
 * the inputs in[] (none where l->reads is false), the results' cotangents ct[] (read where has_ct
 * was true) and the kept values kept[]. Sets grad[k] for each input; none means zero. Uses up l:
 * call it once, after body_forward. */
void body_backward(Linearized *l, Build *b, const Node *in, const Node *ct, const Node *kept,
		   Node *grad);
/* Inlines the body at the end of b's graph, with inputs in[], and adds the nodes that compute its
 * tangents from t[], those of the inputs (none: zero). Sets out[] to the results, ty[] to their
 * tangents (none: zero). Returns false after an error: an operator without a derivative. */
bool body_tangents(const Graph *body, Build *b, const Node *in, const Node *t, Node *out, Node *ty);

/* ---- nodes that execute graphs: scan, cond (derive_control.c), while (derive_while.c) ----
 * Contracts of op_vjp and op_jvp. In ct[], g[], t[] and ty[] none means zero. Cotangents: a node
 * may be replaced, before the function returns, by one that has more results. Tangents: forward_end
 * replaces the node. */

/* Adds, by the Build, the nodes that compute the cotangents of a scan's operands from those of its
 * results, ct[]: sets g[k] if want[k]. May replace n by a scan with more results, and erase n.
 * Returns false after an error of body_linearize. */
bool scan_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Adds, by the Build, the nodes that compute the cotangents of a cond's operands from those of its
 * results, ct[]: sets g[k] if want[k]. May replace n by a cond with more results, and erase n.
 * Returns false after an error of body_linearize. */
bool cond_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Adds, by the Build, the nodes that compute the cotangents of a while loop's operands from those
 * of its results, ct[]: sets g[k] if want[k]. Replaces n by a while loop with more results, or by a
 * scan if the number of rounds is known. Returns false after an error of body_linearize, or if
 * nothing bounds the number of rounds. */
bool while_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Adds, by the Build, a scan that computes the results of n and their tangents, from the tangents
 * of the operands, t[]. Sets ty[k] to the tangent of result k. forward_end replaces n by the new
 * scan. Returns false after an error: an operator of the body without a derivative. */
bool scan_jvp(Forward *, Build *, Node n, const Node *t, Node *ty);
/* Adds, by the Build, a cond that computes the results of n and their tangents, from the tangents
 * of the operands, t[]. Sets ty[k] to the tangent of result k. forward_end replaces n by the new
 * cond. Returns false after an error: an operator of a branch without a derivative. */
bool cond_jvp(Forward *, Build *, Node n, const Node *t, Node *ty);
/* Adds, by the Build, a while loop that computes the results of n and their tangents, from the
 * tangents of the operands, t[]. Sets ty[k] to the tangent of result k. forward_end replaces n by
 * the new loop. Returns false after an error: an operator of the body without a derivative. */
bool while_jvp(Forward *, Build *, Node n, const Node *t, Node *ty);

/* Makes readers of `old` read `by`, whose first results are those of `old`, and erases `old`. */
void replace_tuple(Graph *, Node old, Node by);

#endif
