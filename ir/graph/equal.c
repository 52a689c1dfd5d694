/* Whether graphs are equal, node by node. */
#include "ir/graph/graph.h"

#include <string.h>

#include "oplist.h"

static bool names_equal(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool attrs_equal(const Graph *a, Node n, const Graph *b, Node m)
{
	AttrId i = node_data(a, n)->attr, j = node_data(b, m)->attr;
	if (i.i == j.i)
		return true;
	const uint32_t narg =
		ir_nattr(a->ir, i) > ir_nattr(b->ir, j) ? ir_nattr(a->ir, i) : ir_nattr(b->ir, j);
	for (uint32_t k = 0; k < narg; k++) {
		const Attr *x = ir_attr(a->ir, i, k), *y = ir_attr(b->ir, j, k);
		bool graphs = x->kind == ATTR_graph && y->kind == ATTR_graph;
		if (graphs ? !graph_equal(x->graph, y->graph) : !attr_equal(x, y))
			return false;
	}
	return true;
}

/* Whether both nodes are equal. map: the nodes of a before n to those of b. */
static bool nodes_equal(const Graph *a, Node n, const Graph *b, Node m, const Node *map)
{
	const NodeData *x = node_data(a, n), *y = node_data(b, m);
	if (x->op != y->op || x->nin != y->nin || x->type.i != y->type.i ||
	    !names_equal(ir_loc_text(a->ir, x->loc), ir_loc_text(b->ir, y->loc)))
		return false;
	for (uint32_t k = 0; k < x->nin; k++)
		if (map[node_in(a, n, k).i].i != node_in(b, m, k).i)
			return false;
	return names_equal(a->node_name.data[n.i], b->node_name.data[m.i]) &&
	       attrs_equal(a, n, b, m);
}

static bool inputs_equal(const Graph *a, const Graph *b, Node *map)
{
	if (a->input.n != b->input.n)
		return false;
	for (uint32_t k = 0; k < a->input.n; k++) {
		const GraphInput *x = &a->input.data[k], *y = &b->input.data[k];
		if (x->kind != y->kind || x->init.i != y->init.i || strcmp(x->name, y->name) != 0 ||
		    !nodes_equal(a, x->node, b, y->node, map))
			return false;
		map[x->node.i] = y->node;
	}
	return true;
}

static bool outputs_equal(const Graph *a, const Graph *b, const Node *map)
{
	if (a->output.n != b->output.n)
		return false;
	for (uint32_t k = 0; k < a->output.n; k++) {
		const GraphOutput *x = &a->output.data[k], *y = &b->output.data[k];
		if (map[x->node.i].i != y->node.i || x->writes != y->writes ||
		    strcmp(x->name, y->name) != 0)
			return false;
	}
	return true;
}

static bool guards_equal(const Graph *a, const Graph *b)
{
	if (a->guard.n != b->guard.n)
		return false;
	for (uint32_t k = 0; k < a->guard.n; k++) {
		const GraphGuard *x = &a->guard.data[k], *y = &b->guard.data[k];
		if (x->kind != y->kind || x->a.i != y->a.i || x->b.i != y->b.i ||
		    strcmp(x->why, y->why) != 0)
			return false;
	}
	return true;
}

static Node skip_inputs(const Graph *g, Node n)
{
	while (n.i && node_op(g, n) == OP_input)
		n = node_next(g, n);
	return n;
}

bool graph_equal(const Graph *a, const Graph *b)
{
	Node *map = ARENA_ARRAY(a->ir->ctx->scratch, Node, a->node.n);
	if (a->ir != b->ir || strcmp(a->name, b->name) != 0 || !inputs_equal(a, b, map))
		return false;
	Node n = skip_inputs(a, a->first), m = skip_inputs(b, b->first);
	while (n.i && m.i) {
		if (!nodes_equal(a, n, b, m, map))
			return false;
		map[n.i] = m;
		n = skip_inputs(a, node_next(a, n));
		m = skip_inputs(b, node_next(b, m));
	}
	return !n.i && !m.i && outputs_equal(a, b, map) && guards_equal(a, b);
}
