/* Equal nodes become one.
 *
 *   %2 = exp(%x)
 *   %3 = exp(%x)        ->   readers of %3 read %2
 *
 * Program order is topological, so the first of equals stands before every reader of the others.
 * One sweep suffices. Nodes with effects stay, and those whose block says so (.apart): inputs, and
 * barriers, which keep recomputation apart. */
#include <string.h>

#include "passes/pass.h"

typedef struct {
	uint32_t op, nin, type, attr, in[];
} NodeKey;

static bool unique(const Graph *g, Node n)
{
	return op_info(node_op(g, n))->apart || node_has_effect(g, n);
}

bool pass_cse(Graph *g, PassCtx *c)
{
	bool changed = false;
	Arena *scratch = g->ir->ctx->scratch;
	Intern seen;
	ARRAY(Node) first = {0}; /* by key id, which starts at 1 */
	intern_init(&seen, scratch);
	array_push(scratch, &first, (Node){0});
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		const NodeData *d = node_data(g, n);
		if (unique(g, n))
			continue;
		size_t size = sizeof(NodeKey) + d->nin * sizeof(uint32_t);
		NodeKey *k = arena_alloc(scratch, size);
		*k = (NodeKey){d->op, d->nin, d->type.i, d->attr.i};
		for (uint32_t i = 0; i < d->nin; i++)
			k->in[i] = node_in(g, n, i).i;
		bool fresh;
		uint32_t id = intern(&seen, k, size, &fresh);
		if (fresh) {
			array_push(scratch, &first, n);
			continue;
		}
		pass_replace(g, n, first.data[id]);
		changed = true;
	}
	return pass_subgraphs(g, c, pass_cse) || changed;
}
