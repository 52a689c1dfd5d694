/* Values in place of values whose types a file states. */
#include "ir/build/adopt.h"

Truth adopt_compare(const Graph *g, TypeId x, TypeId y)
{
	if (x.i == y.i)
		return YES;
	const Type a = *ir_type_of(g->ir, x), b = *ir_type_of(g->ir, y);
	Truth all = YES;
	if (a.dtype != b.dtype || a.n != b.n)
		return NO;
	for (uint32_t k = 0; k < a.n; k++) {
		Truth t = a.dtype == DT_none ? adopt_compare(g, a.elem[k], b.elem[k])
					     : graph_same_extent(g, a.dim[k], b.dim[k]);
		if (t == NO)
			return NO;
		all = t == MAYBE ? MAYBE : all;
	}
	return all;
}

Node adopt_type(Build *b, Node x, TypeId file)
{
	const Type t = *ir_type_of(b->g->ir, file);
	if (node_type_id(b->g, x).i == file.i)
		return x;
	if (t.dtype == DT_none) {
		Node *part = arena_calloc(b->g->ir->ctx->scratch, t.n, sizeof *part);
		for (uint32_t k = 0; k < t.n; k++)
			part[k] = adopt_type(b, b_get(b, x, k), t.elem[k]);
		return b_tuple(b, part, t.n);
	}
	for (uint32_t k = 0; k < t.n; k++)
		graph_guard(b->g, GUARD_EQ, node_dim(b->g, x, k), t.dim[k],
			    "a size inferred here and the one in the file");
	return b_reshape(b, x, t.n, t.dim);
}
