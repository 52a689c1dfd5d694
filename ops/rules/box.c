/* What reads and replaces boxes. */
#include "ops/rules/box.h"

#include "ir/build/build.h"

bool node_is_box(const Graph *g, Node n, Sym start[MAX_RANK])
{
	uint32_t len;
	if (node_op(g, n) != OP_slice)
		return false;
	const Sym *from = node_ints(g, n, "start", &len), *step = node_ints(g, n, "step", &len);
	for (uint32_t k = 0; k < len; k++) {
		TRY(sym_is(graph_syms(g), step[k], 1));
		start[k] = from[k];
	}
	return true;
}

bool node_replaces_box(const Graph *g, Node n, Sym start[MAX_RANK])
{
	SymTab *t = graph_syms(g);
	if (node_op(g, n) != OP_update_slice)
		return false;
	for (uint32_t k = 0; k < node_rank(g, n); k++) {
		Attr at;
		if (!node_splat(g, node_in(g, n, k + 2), &at) || at.kind != ATTR_int)
			return false;
		start[k] = at.s;
		Sym end = sym_add(t, at.s, node_dim(g, node_in(g, n, 1), k));
		TRY(sym_le(t, sym_int(t, 0), at.s) == YES &&
		    sym_le(t, end, node_dim(g, n, k)) == YES);
	}
	return true;
}
