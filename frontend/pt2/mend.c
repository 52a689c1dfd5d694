/* Results whose shapes files describe wrongly, because torch.export did: they get the right shapes,
 * and so does all that is computed of them. */
#include <string.h>

#include "frontend/pt2/priv.h"

static const Sym *row_major(Import *im, const Sym *size, uint32_t rank)
{
	Sym *stride = ARENA_ARRAY(im->ctx->arena, Sym, rank), step = sym_int(im->syms, 1);
	for (uint32_t k = rank; k-- > 0;) {
		stride[k] = step;
		step = sym_mul(im->syms, step, size[k]);
	}
	return stride;
}

static void set_shape(Import *im, Result *r, const Sym *size, uint32_t rank)
{
	r->meta.rank = rank;
	r->meta.size = arena_dup(im->ctx->arena, size, rank * sizeof *size);
	r->meta.stride = row_major(im, r->meta.size, rank);
	r->meta.offset = sym_int(im->syms, 0);
	r->mended = true;
}

/* Mends unique_consecutive along a dimension, which torch.export of 2.15 describes wrongly:
 * elements as [n, u, n, n], counts as [n]. They are the operand with another extent, which it
 * names rightly, and a count for each of these. */
static void mend_unique(Scope *s, const NodeCall *c, Results *r)
{
	uint32_t self = c->value.n ? c->value.data[0] : 0;
	if (!self || r->n != 3)
		return;
	const Meta *x = &s->st->value.data[self].meta, *y = &r->data[0].meta;
	const Attr *dim = &c->attr[op_arg_index(c->op, "dim")];
	int64_t d =
		dim->kind == ATTR_int ? sym_const_or(s->st->im->syms, dim->s, x->rank) : x->rank;
	d += d < 0 ? x->rank : 0;
	if (d < 0 || d >= x->rank || y->rank <= x->rank)
		return;
	Sym *size = arena_dup(s->st->im->ctx->arena, x->size, x->rank * sizeof *size),
	    *count = arena_dup(s->st->im->ctx->arena, &y->size[d], sizeof *count);
	size[d] = *count;
	r->data[0].meta.rank = x->rank;
	r->data[0].meta.size = size;
	r->data[0].meta.stride = x->stride;
	r->data[2].meta.rank = 1;
	r->data[2].meta.size = count;
}

/* Mends the last states of an LSTM, which torch.export of 2.5 to 2.12 describes as [layers, 1,
 * batch, size]. They have the shapes of the first ones. */
static void mend_lstm(Scope *s, const NodeCall *c, Results *r)
{
	for (uint32_t k = 1; k < 3 && r->n == 3 && c->value.n > k; k++) {
		const Meta *first = &s->st->value.data[c->value.data[k]].meta;
		if (c->value.data[k] && r->data[k].meta.rank == first->rank + 1)
			set_shape(s->st->im, &r->data[k], first->size, first->rank);
	}
}

/* Gives the results the shapes that the operator gives for its operands. */
static bool infer_again(Scope *s, const NodeCall *c, Results *r)
{
	Import *im = s->st->im;
	Graph *g = s->st->g;
	const Node last = g->last;
	AttrId attr = ir_attrs(im->ir, op_schema(c->op)->narg, c->attr);
	TypeId type = b_type(&s->b, c->op, call_operands(s, c), c->in.n, attr);
	while (g->last.i != last.i)
		graph_erase(g, g->last);
	TRY(type.i);
	const Type t = *ir_type_of(im->ir, type);
	const TypeId *elem = t.dtype == DT_none ? t.elem : &type;
	for (uint32_t k = 0; k < r->n && (t.dtype != DT_none || k < t.n); k++) {
		const Type *one = ir_type_of(im->ir, elem[k]);
		const Meta *m = &r->data[k].meta;
		bool same = one->n == m->rank;
		for (uint32_t d = 0; d < m->rank && same; d++)
			same = sym_eq(im->syms, one->dim[d], m->size[d]) == YES;
		if (!same)
			set_shape(im, &r->data[k], one->dim, one->n);
	}
	return true;
}

bool results_mend(Scope *s, const NodeCall *c, Results *r)
{
	const char *name = op_schema(c->op)->name;
	if (!strcmp(name, "aten.unique_consecutive"))
		mend_unique(s, c, r);
	if (!strcmp(name, "aten.lstm.input"))
		mend_lstm(s, c, r);
	for (uint32_t k = 0; k < c->value.n; k++)
		if (c->value.data[k] && s->st->value.data[c->value.data[k]].mended)
			return infer_again(s, c, r);
	return true;
}
