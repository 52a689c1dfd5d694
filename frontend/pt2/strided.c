/* Views by sizes and strides of the memory that a value lies in: as_strided, resize_, weights that
 * share storage. */
#include <string.h>

#include "frontend/pt2/priv.h"

/* Returns where element (i, k, ...) of a strided view lies in memory: offset + i * stride[0] +
 * ... */
static Node strided_index(Scope *s, uint32_t rank, const Sym *size, const Sym *stride, Sym offset)
{
	Build *b = &s->b;
	Node at = b_from_size(b, offset);
	for (uint32_t k = 0; k < rank; k++) {
		uint32_t map = k;
		Node step = b_bin(b, OP_mul, b_iota(b, DT_i64, size[k]), b_from_size(b, stride[k]));
		step = b_broadcast_in_dim(b, step, rank, size, &map);
		at = b_bin(b, OP_add, at, step);
	}
	return b_unsqueeze(b, at, -1);
}

/* Returns the elements that follow one another in memory, from the start-th on. */
static uint32_t dense_view(Scope *s, uint32_t flat, const Meta *m, Sym start, const char *name)
{
	State *st = s->st;
	SymTab *t = st->im->syms;
	Meta run = {.dtype = m->dtype, .rank = 1, .offset = m->offset};
	Sym *one = ARENA_ARRAY(st->im->ctx->arena, Sym, 2);
	one[0] = one[1] = sym_int(t, 1);
	for (uint32_t k = 0; k < m->rank; k++)
		one[0] = sym_mul(t, one[0], m->size[k]);
	run.size = one;
	run.stride = one + 1;
	Node x = value_read(st, &s->b, flat);
	Attr attr[5] = {attr_none(), attr_int(st->im->ir, 0), attr_sym(start),
			attr_sym(sym_add(t, start, one[0])), attr_int(st->im->ir, 1)};
	Node n = graph_add(st->g, (Node){0}, OP_aten_slice_Tensor, &x, 1,
			   ir_attrs(st->im->ir, 5, attr), meta_type(st->im, &run), s->b.loc);
	uint32_t v = value_view(st, flat, n, 0, -1, n, &run);
	Attr shape[2] = {attr_none(), attr_ints(m->size, m->rank)};
	n = b_node(&s->b, OP_reshape, &n, 1, shape, 2);
	if (!n.i)
		return 0;
	graph_set_name(st->g, n, name);
	return value_view(st, v, n, 0, -1, n, m);
}

uint32_t strided_view(Scope *s, uint32_t self, const Meta *m, Sym offset, const char *name)
{
	State *st = s->st;
	Import *im = st->im;
	uint32_t base = st->storage.data[st->value.data[self].storage].base;
	uint32_t flat = value_flat(st, &s->b, self);
	if (!flat)
		return 0;
	offset = sym_sub(im->syms, offset, st->value.data[base].meta.offset);
	if (meta_is_contiguous(im, m))
		return dense_view(s, flat, m, offset, name);
	Node in[2] = {value_read(st, &s->b, flat),
		      strided_index(s, m->rank, m->size, m->stride, offset)};
	Sym zero = sym_int(im->syms, 0);
	Attr attr[5] = {[2] = attr_sym(zero), attr_ints(&zero, 1), attr_str(im->ir, "check")};
	Node n = in[1].i ? b_node(&s->b, OP_gather, in, 2, attr, 5) : in[1];
	if (!n.i)
		return 0;
	if (meta_type(im, m).i != node_type_id(st->g, n).i)
		return ctx_error(im->ctx, s->where, "the result has another shape");
	graph_set_name(st->g, n, name);
	return value_view(st, flat, n, 0, -1, n, m);
}

/* Reads the sizes or strides of a call. */
static bool list_argument(Scope *s, const json_t *node, const char *name, size_t k, const Sym **out,
			  uint32_t *n)
{
	const char *tag;
	json_t *v = arg_find(node, name, k, &tag);
	if (!tag)
		return ctx_error(s->st->im->ctx, s->where, "argument %s is missing", name);
	return arg_syms(s, tag, v, out, n);
}

/* Returns the value that the call views, 0 after ctx_error. */
static uint32_t viewed(Scope *s, const json_t *node)
{
	uint32_t self = arg_value(s, node, "self", 0);
	if (!self)
		ctx_error(s->st->im->ctx, s->where, "no operand to view");
	return self;
}

bool import_as_strided(Scope *s, const json_t *node)
{
	State *st = s->st;
	Import *im = st->im;
	const char *tag;
	Results r;
	uint32_t nstride, self = viewed(s, node);
	TRY(self && read_results(s, node, &r));
	if (r.n != 1 || !r.data[0].name)
		return ctx_error(im->ctx, s->where, "expected one result");
	Meta m = r.data[0].meta;
	TRY(list_argument(s, node, "size", 1, &m.size, &m.rank) &&
	    list_argument(s, node, "stride", 2, &m.stride, &nstride));
	if (m.rank != nstride || m.rank > MAX_RANK)
		return ctx_error(im->ctx, s->where, "%u sizes, %u strides", m.rank, nstride);
	Sym offset = st->value.data[self].meta.offset;
	json_t *v = arg_find(node, "storage_offset", 3, &tag);
	if (tag && strcmp(tag, "as_none"))
		TRY(arg_sym(s, tag, v, &offset));
	if (!meta_shapes_agree(&m, &r.data[0].meta))
		return ctx_error(im->ctx, s->where, "the result has another shape");
	uint32_t view = strided_view(s, self, &m, offset, r.data[0].name);
	return view && scope_bind(s, r.data[0].name, view);
}

/* Imports resize_ and resize_as_, which lay the shape of the result over the memory of the
 * operand, and resize and resize_as, over a copy. What lies beyond that memory has no value in
 * PyTorch. */
bool import_resize(Scope *s, const json_t *node, const CallTarget *target)
{
	State *st = s->st;
	SymTab *t = st->im->syms;
	Results r;
	uint32_t self = viewed(s, node);
	TRY(self && read_results(s, node, &r));
	if (r.n != 1 || !r.data[0].name)
		return ctx_error(st->im->ctx, s->where, "expected one result");
	const Result *out = &r.data[0];
	Sym offset = st->value.data[self].meta.offset;
	const Meta *base =
		&st->value.data[st->storage.data[st->value.data[self].storage].base].meta;
	Sym have = sym_int(t, 1), last = sym_sub(t, offset, base->offset), none = sym_int(t, 0);
	for (uint32_t k = 0; k < base->rank; k++)
		have = sym_mul(t, have, base->size[k]);
	bool empty = false;
	for (uint32_t k = 0; k < out->meta.rank; k++) {
		last = sym_add(t, last,
			       sym_mul(t, sym_addi(t, out->meta.size[k], -1), out->meta.stride[k]));
		empty |= sym_eq(t, out->meta.size[k], none) == YES;
	}
	if (!empty && sym_le(t, have, last) == YES)
		return ctx_error(
			st->im->ctx, s->where,
			"resize to more elements than the %s in memory: the others have no value",
			sym_str(t, have));
	uint32_t view = strided_view(s, self, &out->meta, offset, out->name);
	TRY(view);
	if (target->name[strlen(target->name) - 1] == '_')
		scope_rebind(s, self, view);
	else
		view = value_new(st, value_read(st, &s->b, view), &out->meta);
	return scope_bind(s, out->name, view);
}
