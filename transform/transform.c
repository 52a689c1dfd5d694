/* What all transforms begin with: a copy of the graph whose nodes have rules. */
#include "transform/derive_priv.h"

static bool has_complex_operand(const Graph *g, Node n)
{
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		if (node_in(g, n, k).i && dtype_is_complex(node_dtype(g, node_in(g, n, k))))
			return true;
	return false;
}

typedef struct {
	bool (*has_rule)(Op);
} Stay;

static bool stays(const Graph *g, Node n, void *user)
{
	const Stay *s = user;
	if (node_has_graph(g, n)) /* control_of, and marks of regions */
		return true;
	return s->has_rule(node_op(g, n)) &&
	       (op_info(node_op(g, n))->whole || !has_complex_operand(g, n));
}

Graph *transform_begin(const Graph *src, bool (*has_rule)(Op))
{
	Graph *g = graph_clone(src);
	Stay s = {has_rule};
	PassCtx c = {.stays = stays, .stays_user = &s};
	pass_canon(g, &c);
	if (!c.failed)
		pass_decompose(g, &c);
	if (!c.failed)
		pass_split_complex(g, &c);
	return c.failed ? NULL : g;
}
