/* Numbers of nodes, by which what passes make of a node tells where it comes from. */
#include "ir/graph/graph.h"

typedef struct {
	void (*visit)(void *user, Graph *, Node, uint32_t around);
	void *user;
	uint32_t n;
} Visit;

static void visit_graph(Visit *v, Graph *g, uint32_t around)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		const uint32_t own = ++v->n;
		uint32_t k = 0;
		v->visit(v->user, g, n, around);
		for (Graph *body; (body = node_next_body(g, n, &k));)
			visit_graph(v, body, own);
	}
}

uint32_t graph_visit(Graph *g, void (*visit)(void *user, Graph *, Node, uint32_t around),
		     void *user)
{
	Visit v = {visit, user, 0};
	visit_graph(&v, g, 0);
	return v.n;
}

static void number(void *user, Graph *g, Node n, uint32_t around)
{
	uint32_t *last = user;
	NodeData *d = &g->node.data[n.i];
	(void)around;
	d->loc = ir_loc_of_node(g->ir, d->loc, ++*last);
}

void graph_number_nodes(Graph *g)
{
	uint32_t last = 0;
	graph_visit(g, number, &last);
}
