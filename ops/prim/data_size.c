#include "ops/prim/data_size.h"

#include <stdio.h>
#include <string.h>

Sym data_size_new(Build *b)
{
	SymTab *t = b_syms(b);
	char name[24];
	for (uint32_t k = sym_nvars(t);; k++) {
		snprintf(name, sizeof name, "u%u", k);
		if (!sym_find(t, name, (uint32_t)strlen(name)).i)
			return sym_var(t, name, SYMVAR_UNBACKED, 0, SYM_INF);
	}
}

Sym data_size(Build *b, Node n, uint32_t k, uint32_t dim)
{
	TypeId id = node_type_id(b->g, n);
	const Type *t = id.i ? ir_type_of(b->g->ir, id) : NULL;
	if (t && t->dtype == DT_none)
		t = k < t->n ? ir_type_of(b->g->ir, t->elem[k]) : NULL;
	return t && dim < t->n ? t->dim[dim] : data_size_new(b);
}

bool data_size_effect(const Graph *g, Node n)
{
	return node_has_data_size(g, n);
}

/* Scatters. Index -1 is none: nothing is stored for it. */
static Node scatter_some(Build *b, Node x, Node index, Node update)
{
	Sym zero = b_int(b, 0);
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_none(),
		       attr_int(b->g->ir, 0),
		       attr_ints(&zero, 1),
		       attr_str(b->g->ir, "set"),
		       attr_str(b->g->ir, "fill"),
		       attr_bool(true),
		       attr_bool(false)};
	index = b_unsqueeze(b, index, -1);
	if (!x.i || !index.i || !update.i)
		return (Node){0};
	return b_node(b, OP_scatter, (Node[]){x, index, update}, 3, attr, 9);
}

static TrueElements places(Build *b, Node flat, Node one, Sym n, Sym size, int64_t absent)
{
	Node before = b_bin_scalar(b, OP_sub, b_cumulative(b, "sum", one, 0, false), 1);
	Node to = b_select(b, flat, before, b_full_int(b, DT_i64, -1, 0, NULL));
	Node number = b_iota(b, DT_i64, n);
	Node place = scatter_some(b, b_full_int(b, DT_i64, absent, 1, &size), to, number);
	return (TrueElements){place, before};
}

TrueElements first_true_elements(Build *b, Node mask, Sym size, int64_t absent)
{
	Shape s = aten_shape(b, mask);
	Sym n = shape_numel(b, &s);
	if (!mask.i)
		return (TrueElements){0};
	Node flat = b_ravel(b, mask);
	return places(b, flat, b_convert(b, flat, DT_i64), n, size, absent);
}

TrueElements true_elements(Build *b, Node mask, Sym size, const char *what)
{
	Shape s = aten_shape(b, mask);
	Sym n = shape_numel(b, &s);
	if (!mask.i)
		return (TrueElements){0};
	Node flat = b_ravel(b, mask), one = b_convert(b, flat, DT_i64);
	b_to_size(b, aten_reduce(b, REDUCE_SUM, one, 1, false), size, n, what);
	return places(b, flat, one, n, size, 0);
}

Node place_along(Build *b, Node place, const Shape *s, uint32_t k)
{
	Sym step = b_int(b, 1);
	for (uint32_t d = k + 1; d < s->rank; d++)
		step = sym_mul(b_syms(b), step, s->dim[d]);
	if (!sym_is(b_syms(b), step, 1))
		place = b_bin(b, OP_floordiv, place, aten_size(b, step, DT_i64));
	return k ? b_bin(b, OP_remainder, place, aten_size(b, s->dim[k], DT_i64)) : place;
}
