/* Sizes that depend on data: which nodes use them, and which find them. */
#include "ir/op/node.h"
#include "ir/op/op.h"

static bool attr_uses(const SymTab *t, const Attr *a, Sym var)
{
	for (uint32_t k = 0; a->kind == ATTR_ints && k < a->n; k++)
		if (sym_uses(t, a->ints[k], var))
			return true;
	return a->kind == ATTR_int && sym_uses(t, a->s, var);
}

static bool graph_uses(const Graph *g, Sym var)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_uses(g, n, var))
			return true;
	return false;
}

static bool attrs_use(const Graph *g, Node n, Sym var, bool bodies)
{
	for (uint32_t k = 0; k < ir_nattr(g->ir, node_data(g, n)->attr); k++) {
		const Attr *a = ir_attr(g->ir, node_data(g, n)->attr, k);
		bool body = bodies && a->kind == ATTR_graph && a->graph;
		if (body ? graph_uses(a->graph, var) : attr_uses(graph_syms(g), a, var))
			return true;
	}
	return false;
}

bool node_uses(const Graph *g, Node n, Sym var)
{
	return type_uses(g->ir, node_type_id(g, n), var) || attrs_use(g, n, var, true);
}

bool node_uses_itself(const Graph *g, Node n, Sym var)
{
	return type_uses(g->ir, node_type_id(g, n), var) || attrs_use(g, n, var, false);
}

bool node_finds(const Graph *g, Node n, Sym var)
{
	if (node_op(g, n) == OP_to_size)
		return sym_uses(graph_syms(g), node_sym(g, n, "size"), var);
	if (node_op(g, n) == OP_input || !type_uses(g->ir, node_type_id(g, n), var) ||
	    attrs_use(g, n, var, true))
		return false;
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		if (type_uses(g->ir, node_type_id(g, node_in(g, n, k)), var))
			return false;
	return true;
}

bool graph_finds(const Graph *g, Sym var)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_finds(g, n, var))
			return true;
	return false;
}
