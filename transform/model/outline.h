/* Outlining: nodes of a graph become a graph of their own. */
#ifndef WEFT_TRANSFORM_MODEL_OUTLINE_H
#define WEFT_TRANSFORM_MODEL_OUTLINE_H

#include "base/array.h"
#include "ir/graph/graph.h"

/* The nodes from handle `first` on, inputs and constants apart, that compute out[]. */
typedef struct {
	Graph *from;
	const char *name; /* of the new graph */
	uint32_t first;
	const Node *in; /* of these nodes, at least one, in program order and before the others:
			   those that become the first inputs of the new graph */
	const Node *out;
	uint32_t nin, nout;
} Outline;
typedef ARRAY(Node) NodeList;

/* Returns a graph, in from's scope, that computes out[]; its outputs are called "x0", "x1" ... Its
 * inputs stand for in[], then for the nodes outside that it reads, which are added to the empty
 * list *captured, in the scratch arena. Leaves `from` as it is. */
Graph *graph_outline(const Outline *, NodeList *captured);
/* Erases the nodes that an Outline is about, those that compute out[] and others. Returns false if
 * something outside reads one of them: the graph must not be used then. */
bool graph_erase_outlined(const Outline *);

#endif
