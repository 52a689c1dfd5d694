#include "ir/graph/graph.h"

#include "oplist.h"

uint32_t node_nuses(const Graph *g, Node n)
{
	return g->nread.data[n.i] + g->nout.data[n.i];
}

bool node_is_output(const Graph *g, Node n)
{
	return g->nout.data[n.i] != 0;
}

Graph *node_next_body(const Graph *g, Node n, uint32_t *k)
{
	const AttrId id = node_data(g, n)->attr;
	for (uint32_t narg = ir_nattr(g->ir, id); *k < narg;) {
		const Attr *a = ir_attr(g->ir, id, (*k)++);
		if (a->kind == ATTR_graph && a->graph)
			return a->graph;
	}
	return NULL;
}

AttrId node_clone_attrs(const Graph *g, Node n)
{
	Attr copy[MAX_ARGS];
	uint32_t k = 0;
	if (!node_next_body(g, n, &k))
		return node_data(g, n)->attr;
	const AttrId id = node_data(g, n)->attr;
	const uint32_t narg = ir_nattr(g->ir, id);
	for (k = 0; k < narg; k++) {
		copy[k] = *ir_attr(g->ir, id, k);
		if (copy[k].kind == ATTR_graph && copy[k].graph)
			copy[k].graph = graph_clone(copy[k].graph);
	}
	return ir_attrs(g->ir, narg, copy);
}

uint32_t node_nresult(const Graph *g, Node n)
{
	const Type *t = node_type_id(g, n).i ? node_type(g, n) : NULL;
	return !t ? 0 : t->dtype == DT_none ? t->n : 1;
}

TypeId node_result_type(const Graph *g, Node n, uint32_t k)
{
	const Type *t = node_type(g, n);
	return t->dtype == DT_none ? t->elem[k] : node_type_id(g, n);
}

static bool has_data_size(const Ir *ir, TypeId id)
{
	const Type *t = ir_type_of(ir, id);
	bool found = false;
	for (uint32_t k = 0; k < t->n && !found; k++)
		found = t->dtype == DT_none ? has_data_size(ir, t->elem[k])
		                            : sym_uses_kind(ir->syms, t->dim[k], SYMVAR_UNBACKED);
	return found;
}

bool node_has_data_size(const Graph *g, Node n)
{
	return node_type_id(g, n).i && has_data_size(g->ir, node_type_id(g, n));
}

Node node_element(const Graph *g, Node n, uint32_t k)
{
	return node_op(g, n) == OP_tuple ? node_in(g, n, k) : (Node){0};
}
