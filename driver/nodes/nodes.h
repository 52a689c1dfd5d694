/* Private to driver/nodes: one call of weft_graph.h on its way through the boundary. */
#ifndef WEFT_DRIVER_NODES_NODES_H
#define WEFT_DRIVER_NODES_NODES_H

#include "driver/api/given.h"
#include "frontend/trace.h"
#include "ir/ops/op.h"
#include "weft_graph.h"

/* What a function takes and gives, and where it works. */
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
	/* Found by step_graph and step_node. */
	Graph *g;
	Node n;
	/* The answer. */
	WeftNode found;
	WeftGraph *body;
	const char *answer;
	const void *list;
	uint32_t count;
} NodeStep;

/* Calls f within the boundary. Exactly one error is recorded if it returns false. */
bool step(NodeStep *, bool (*f)(NodeStep *));
/* Records an error "FUNCTION: text". Returns false. */
bool step_error(const NodeStep *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define step_error(...) ctx_false(step_error(__VA_ARGS__))
/* s->g: the graph of s->graph, which may be a body or a graph that is not correct. */
bool step_graph(NodeStep *);
/* s->g and s->n: the graph and the node of s->node. */
bool step_node(NodeStep *);
/* A node of s->g that has a value; *out is that node. `what`: "the new value". */
bool step_value(const NodeStep *, const char *what, WeftNode, Node *out);
/* The node, or no node, in terms of the API. */
WeftNode step_give(const NodeStep *, Node);
/* "relu_3 (net.py:12)". In the scratch arena. */
const char *step_name(const NodeStep *, Node);
/* Notes that the graph has changed. */
void step_changed(const NodeStep *);
/* The body as a WeftGraph, the same at every call. */
WeftGraph *graph_of_body(WeftGraph *owner, Node, Graph *body);
/* Whether both types have the same dtype, rank and, provably, extents. loose: extents that depend
 * on data are equal to each other. */
bool types_are_equal(const Ir *, TypeId, TypeId, bool loose);
/* Whether an extent of the type, a tuple's too, has the size. */
bool type_uses(const Ir *, TypeId, Sym var);
/* Type k of a node with results, 0 after step_error. */
TypeId step_type(const NodeStep *);

/* An argument of a new node, as trace_call takes it. Sizes that depend on data must be those of
 * `near`, a node, or of nodes in the arguments. False after step_error. */
bool attr_take(const NodeStep *, const WeftAttr *, uint32_t n, TraceArg *out);
/* Argument k of the schema of s->n, as the user sees it. */
bool attr_give(const NodeStep *, uint32_t k, WeftAttr *out);

#endif
