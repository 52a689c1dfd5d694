/* Private to driver/nodes: the functions of include/weft_graph.h. Each one fills in a NodeStep,
 * calls step() with a function of its own, and returns the step's answer. "After an error" means:
 * recorded once in the context, beginning with the name of the API's function. */
#ifndef WEFT_DRIVER_NODES_NODES_H
#define WEFT_DRIVER_NODES_NODES_H

#include "driver/api/given.h"
#include "frontend/trace.h"
#include "ir/op/op.h"
#include "weft_graph.h"

/* One call of the API: its arguments, and its answer. Each function uses some of the fields. */
typedef struct NodeStep {
	Weft *w;
	const char *function; /* of the API */
	WeftGraph *graph;
	WeftNode node, by;
	uint32_t k, d;
	const char *text, *type;
	const WeftAttr *attr;
	WeftAttr *out;
	const WeftTensor *tensor;
	WeftTensor *tensor_out;
	bool after;
	/* Set by step_graph and step_node: the graph and the node of the IR. */
	Graph *g;
	Node n;
	/* The answer. */
	WeftNode found;
	WeftGraph *body;
	const char *answer;
	const void *list;
	uint32_t count;
} NodeStep;

/* Calls f(step) within the Weft's boundary, and resets scratch memory behind it. Returns what f
 * returns; false also if f recorded an error, or the Weft is NULL or dead. Exactly one error is
 * recorded if the result is false and the Weft is alive. */
bool step(NodeStep *, bool (*f)(NodeStep *));
/* Records an error "FUNCTION: text", the text as of printf, at most 1,023 bytes. Returns false. */
bool step_error(const NodeStep *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define step_error(...) ctx_false(step_error(__VA_ARGS__))
/* Sets s->g to the graph of s->graph, which may be a body, and need not be correct: nothing is
 * verified. Messages are about this graph then. Returns false after an error: s->graph is NULL, of
 * another Weft, several joined graphs, or the body of a node that was erased. */
bool step_graph(NodeStep *);
/* Sets s->graph and s->g to the graph of s->node, which may be any graph or body of the Weft, and
 * s->n to the node, as step_graph does; what s->graph was before has no effect. Returns false after
 * an error: no node, an index that the graph does not have, a node that was erased, or a graph that
 * step_graph refuses. */
bool step_node(NodeStep *);
/* Sets *out to the node of s->g that v names. Call it after step_graph or step_node. what: for
 * messages, "the new value". Returns false after an error: v is no node, a node of a graph other
 * than s->graph, one that was erased, or one without a value. */
bool step_value(const NodeStep *, const char *what, WeftNode v, Node *out);
/* Returns a node of s->g as the API's WeftNode, of the graph s->graph; no node for no node. */
WeftNode step_give(const NodeStep *, Node);
/* Returns the name and the source line of a node of s->g, "relu_3 (net.py:12)", in the scratch
 * arena. */
const char *step_name(const NodeStep *, Node);
/* Notes that s->graph was changed: the next function of the API that takes it verifies it. */
void step_changed(const NodeStep *);
/* Returns the WeftGraph of a body, which node n of `owner` has: a new one at the first call, the
 * same object later. It lives as long as the Weft. */
WeftGraph *graph_of_body(WeftGraph *owner, Node n, Graph *body);
/* Whether both types have the same dtype, rank and, provably, extents; of tuples, whether their
 * elements do. loose: extents that depend on data are equal to each other. */
bool types_are_equal(const Ir *, TypeId, TypeId, bool loose);
/* Returns the type of result s->k of s->n, after step_node: of a node whose value is a tuple the
 * type of element s->k, which may be a tuple again; of another node the type of its value, if s->k
 * is 0. Returns no type (i 0) after an error: there is no such result. */
TypeId step_type(const NodeStep *);

/* Returns the operator of the user that s->n calls; NULL of other nodes. */
const struct UserOp *step_user(const NodeStep *);
/* Returns the schema of what s->n calls: of an operator of the user its own. */
const Schema *step_schema(const NodeStep *);
/* Returns the index of the argument in the schema; -1 if it has no such argument. */
int step_arg_index(const NodeStep *, const char *name);
/* Converts the arguments s->attr[s->k] of the API to arguments of trace_call (frontend/trace.h):
 * out[s->k], zeros before. Operands must be nodes of s->g. A size must be one of the inputs of the
 * outermost graph, or occur in the type of an operand: of one among the arguments, or of s->n.
 * Lists are in scratch memory. Returns false after an error. */
bool attr_take(const NodeStep *, TraceArg *out);
/* Sets *out to argument k of the schema of s->n, or to its default if the node does not say; lists
 * and texts belong to the Weft. Returns false after an error: there is no argument k. */
bool attr_give(const NodeStep *, uint32_t k, WeftAttr *out);

#endif
