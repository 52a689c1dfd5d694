#include "passes/common/pass_ctx.h"

Build pass_build(Graph *g, Node before)
{
	return (Build){.g = g, .before = before, .loc = node_data(g, before)->loc};
}

void pass_replace(Graph *g, Node old, Node new)
{
	if (old.i == new.i)
		return;
	if (node_nuses(g, old))
		graph_replace(g, old, new);
	if (!node_has_effect(g, old))
		graph_erase(g, old);
}

bool pass_subgraphs(Graph *g, PassCtx *c, bool (*run)(Graph *, PassCtx *))
{
	bool changed = false;
	for (Node n = g->first; n.i && !c->failed; n = node_next(g, n)) {
		Graph *body;
		for (uint32_t k = 0; !c->failed && (body = node_next_body(g, n, &k));) {
			body->unrounded = g->unrounded;
			body->activations = g->activations;
			changed |= run(body, c);
		}
	}
	return changed;
}
