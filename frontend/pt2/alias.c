/* Which results are views, as the op table says, and what a write through such a view does to the
 * operand. */
#include <string.h>

#include "frontend/pt2/priv.h"
#include "ops/rules/rules.h"

/* Whether two sizes are equal, or equal at the values seen while exporting: the file's own sizes
 * and strides. */
static bool agrees(SymTab *t, Sym a, Sym b)
{
	Truth e = sym_eq(t, a, b);
	return e == YES || (e == MAYBE && sym_hint(t, a) == sym_hint(t, b));
}

static bool same_strides(SymTab *t, const Meta *a, const Meta *b)
{
	if (a->rank != b->rank || a->dtype != b->dtype)
		return false;
	for (uint32_t k = 0; k < a->rank; k++) {
		if (!agrees(t, a->size[k], b->size[k]))
			return false;
		if (!sym_is(t, a->size[k], 1) && !agrees(t, a->stride[k], b->stride[k]))
			return false;
	}
	return true;
}

/* Whether `to` can be had from `from` by strides alone. Both are walked from the last dimension;
 * where a run of dimensions of `from` that is dense in itself ends, `to` must have a boundary
 * too. */
static bool is_viewable(SymTab *t, const Meta *from, const Meta *to)
{
	Sym one = sym_int(t, 1), run = one, have = one;
	uint32_t left = to->rank;
	Sym base = from->rank ? from->stride[from->rank - 1] : one;
	for (uint32_t k = from->rank; k-- > 0;) {
		run = sym_mul(t, run, from->size[k]);
		if (k > 0 && (agrees(t, from->size[k - 1], one) ||
			      agrees(t, from->stride[k - 1], sym_mul(t, run, base))))
			continue;
		while (left > 0 &&
		       (sym_hint(t, have) < sym_hint(t, run) || agrees(t, to->size[left - 1], one)))
			have = sym_mul(t, have, to->size[--left]);
		if (!agrees(t, have, run))
			return false;
		base = k > 0 ? from->stride[k - 1] : one;
		run = have = one;
	}
	return true;
}

/* Whether a conversion, whose result may be the tensor itself, asks for a copy. */
static bool asks_for_copy(const Graph *g, Node made)
{
	return op_arg_index(node_op(g, made), "copy") >= 0 && node_bool(g, made, "copy");
}

ViewKind alias_kind(State *st, Node made, const Meta *in, const Meta *out)
{
	const Graph *g = st->g;
	SymTab *t = st->im->syms;
	const OpInfo *info = op_info(node_op(g, made));
	bool is_view = true;
	switch (info->view_if) {
	case VIEW_ALWAYS:
		break;
	case VIEW_IF_STRIDES:
		is_view = is_viewable(t, in, out);
		break;
	case VIEW_IF_UNCHANGED:
		is_view = !asks_for_copy(g, made) && same_strides(t, in, out);
		break;
	case VIEW_IF_COMPLEX:
		return dtype_is_complex(in->dtype) ? info->view : VIEW_SAME;
	case VIEW_IF_IDLE:
		is_view = !node_bool(g, made, "train") || node_float(g, made, "p") == 0;
		break;
	}
	return is_view ? info->view : VIEW_NONE;
}

bool alias_is_itself(const State *st, Node made, ViewKind kind, const Meta *in, const Meta *out)
{
	const OpInfo *info = op_info(node_op(st->g, made));
	bool may = info->itself || (info->view_if != VIEW_ALWAYS && kind == VIEW_SAME);
	return may && in->dtype == out->dtype && meta_shapes_agree(in, out);
}

/* ---- writing through a view ---- */

/* Sets *out to a dimension of something of this rank, negative ones from the end. Returns false
 * after an error. */
static bool wrap_dim(State *st, Build *b, Sym dim, uint32_t rank, uint32_t *out)
{
	int64_t d;
	bool ok = sym_is_const(st->im->syms, dim, &d) && d >= -(int64_t)rank && d < (int64_t)rank;
	*out = ok ? (uint32_t)(d < 0 ? d + (int64_t)rank : d) : 0;
	if (!ok)
		b_error(b, "bad dimension for rank %u", rank);
	return ok;
}

static bool view_dim(State *st, Build *b, Node view, const char *name, uint32_t rank, uint32_t *out)
{
	return wrap_dim(st, b, node_sym(st->g, view, name), rank, out);
}

static Node inverse_permute(State *st, Build *b, Node view, Node update)
{
	const Graph *g = st->g;
	uint32_t rank = node_rank(g, update), n = 0, inverse[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++)
		inverse[k] = k;
	if (op_arg_index(node_op(g, view), "dim0") >= 0) {
		uint32_t i, k;
		if (rank == 0)
			return update;
		if (!view_dim(st, b, view, "dim0", rank, &i) ||
		    !view_dim(st, b, view, "dim1", rank, &k))
			return (Node){0};
		inverse[i] = k;
		inverse[k] = i;
		return b_permute(b, update, inverse);
	}
	const char *name = op_arg_index(node_op(g, view), "perm") >= 0 ? "perm" : "dims";
	if (op_arg_index(node_op(g, view), name) < 0) { /* t: at most two dimensions */
		for (uint32_t k = 0; k < rank; k++)
			inverse[k] = rank - 1 - k;
		return b_permute(b, update, inverse);
	}
	const Sym *perm = node_ints(g, view, name, &n);
	uint32_t d, seen = 0;
	for (uint32_t k = 0; k < n && k < rank; k++) {
		if (!wrap_dim(st, b, perm[k], rank, &d))
			return (Node){0};
		inverse[d] = k;
		seen |= 1u << d;
	}
	if (n != rank || seen != (1u << rank) - 1)
		return b_error(b, "bad permutation");
	return b_permute(b, update, inverse);
}

/* Overwrites a range of one dimension; the others are whole. */
static Node insert(State *st, Build *b, Node parent, Node update, uint32_t dim, Sym start)
{
	uint32_t rank = node_rank(st->g, parent);
	Node at[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++)
		at[k] = b_from_size(b, k == dim ? start : sym_int(st->im->syms, 0));
	return b_update_slice(b, parent, update, at);
}

/* Returns an index as Python counts, within [0, size]. */
static Sym attr_start(State *st, Build *b, Node view, const char *name, Sym size)
{
	SymTab *t = st->im->syms;
	const Attr *a = node_attr(st->g, view, name);
	Sym start = a->kind == ATTR_int ? b_index_from_end(b, a->s, size) : sym_int(t, 0);
	return sym_min(t, sym_max(t, start, sym_int(t, 0)), size);
}

static Node inverse_pieces(State *st, Build *b, const FileValue *v, Node parent, Node update)
{
	const Graph *g = st->g;
	uint32_t rank = node_rank(g, parent), dim;
	if (!view_dim(st, b, v->view, "dim", rank, &dim))
		return (Node){0};
	Sym start = sym_int(st->im->syms, 0);
	const TypeId *elem = node_type(g, v->view)->elem;
	for (int32_t k = 0; k < v->elem; k++) {
		const Type *t = ir_type_of(st->im->ir, elem[k]);
		if (t->n != rank)
			return b_error(b, "piece %d has another rank", k);
		start = sym_add(st->im->syms, start, t->dim[dim]);
	}
	return insert(st, b, parent, update, dim, start);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Whether two elements of the view lie in the same place, those of one dimension or of two. */
static bool overlaps_itself(SymTab *t, const Meta *m)
{
	for (uint32_t i = 0; i < m->rank; i++)
		for (uint32_t k = 0; k <= i; k++) {
			int64_t a = sym_hint(t, m->stride[i]), b = sym_hint(t, m->stride[k]),
				d = common_divisor(a, b);
			int64_t na = sym_hint(t, m->size[i]), nb = sym_hint(t, m->size[k]);
			if (i == k ? a == 0 && na > 1 : d > 0 && b / d < na && a / d < nb)
				return true;
		}
	return false;
}

/* Writes through a view of any kind: the view of an array of indices says where in the parent
 * each element lies. */
static Node inverse_scatter(State *st, Build *b, const FileValue *v, Node parent, Node update)
{
	SymTab *t = st->im->syms;
	Ir *ir = st->im->ir;
	Meta p = st->value.data[v->parent].meta;
	if (overlaps_itself(t, &v->meta))
		return b_error(
			b,
			"writing to a part of a view whose elements share memory is not supported");
	Sym n = sym_int(t, 1), m = n;
	for (uint32_t k = 0; k < p.rank; k++)
		n = sym_mul(t, n, p.size[k]);
	for (uint32_t k = 0; k < v->meta.rank; k++)
		m = sym_mul(t, m, v->meta.size[k]);
	Node iota = b_reshape(b, b_iota(b, DT_i64, n), p.rank, p.size);
	Node index = view_replay(st, v, iota, DT_i64);
	Sym column[2] = {m, sym_int(t, 1)}, zero = sym_int(t, 0);
	Node in[3] = {b_reshape(b, parent, 1, &n), b_reshape(b, index, 2, column),
		      b_reshape(b, update, 1, &m)};
	Attr attr[9] = {[3] = attr_sym(zero),    attr_ints(&zero, 1), attr_str(ir, "set"),
			attr_str(ir, "promise"), attr_bool(false),    attr_bool(false)};
	return b_reshape(b, b_node(b, OP_scatter, in, 3, attr, 9), p.rank, p.size);
}

static Node inverse_adjoint(State *st, Build *b, const Meta *p, Node update)
{
	Node n = b_transpose(b, update, -2, -1);
	return n.i ? graph_add(st->g, b->before, OP_aten_conj_physical, &n, 1, (AttrId){0},
			       meta_type(st->im, p), b->loc)
		   : n;
}

/* Writes through a view of the same bytes under another dtype. Autograd sees a write through
 * view(dtype) as little as that view. */
static Node inverse_bits(State *st, Build *b, const FileValue *v, Node parent, Node update)
{
	const Meta *p = &st->value.data[v->parent].meta;
	Op viewed = node_op(st->g, v->view);
	const char *undo = op_info(viewed)->view_undo;
	Op op = undo ? op_find(undo) : OP_none;
	if (op == OP_none)
		return b_error(b, "writing through %s is not supported", op_name(viewed));
	Attr attr[2] = {attr_none(), attr_dtype(p->dtype)};
	bool has_dtype = op_arg_index(op, "dtype") == 1;
	AttrId attrs = has_dtype ? ir_attrs(st->im->ir, 2, attr) : (AttrId){0};
	Node n = graph_add(st->g, b->before, op, &update, 1, attrs, meta_type(st->im, p), b->loc);
	return has_dtype ? value_with_history(b, n, parent) : n;
}

/* Writes one part of complex numbers; the other stays as it is. */
static Node inverse_part(Build *b, Node parent, Node update, bool imaginary)
{
	Node other = b_part(b, parent, !imaginary);
	return imaginary ? b_complex(b, other, update) : b_complex(b, update, other);
}

Node alias_inverse(State *st, Build *b, const FileValue *v, Node parent, Node update)
{
	SymTab *t = st->im->syms;
	const Meta *p = &st->value.data[v->parent].meta;
	if (!v->view.i)
		return update;
	if (node_op(st->g, v->view) == OP_gather) /* as_strided */
		return inverse_scatter(st, b, v, parent, update);
	uint32_t dim = 0;
	Sym at;
	switch (alias_kind(st, v->view, p, &v->meta)) {
	case VIEW_NONE:
	case VIEW_SAME:
		return update;
	case VIEW_DETACHED:
		return value_with_history(b, update, parent);
	case VIEW_RESHAPE:
		return b_reshape(b, update, p->rank, p->size);
	case VIEW_PERMUTE:
		return inverse_permute(st, b, v->view, update);
	case VIEW_SLICE:
		if (!view_dim(st, b, v->view, "dim", p->rank, &dim))
			return (Node){0};
		if (op_arg_index(node_op(st->g, v->view), "step") >= 0 &&
		    !sym_is(t, node_sym(st->g, v->view, "step"), 1))
			return inverse_scatter(st, b, v, parent, update);
		return insert(st, b, parent, update, dim,
			      attr_start(st, b, v->view, "start", p->size[dim]));
	case VIEW_SELECT:
		if (!view_dim(st, b, v->view, "dim", p->rank, &dim))
			return (Node){0};
		at = attr_start(st, b, v->view, "index", p->size[dim]);
		return insert(st, b, parent, b_unsqueeze(b, update, (int)dim), dim, at);
	case VIEW_PIECES:
		return inverse_pieces(st, b, v, parent, update);
	case VIEW_ADJOINT:
		if (dtype_is_complex(p->dtype))
			return inverse_adjoint(st, b, p, update);
		break;
	case VIEW_BITS:
		return inverse_bits(st, b, v, parent, update);
	case VIEW_REAL:
	case VIEW_IMAG:
		return inverse_part(b, parent, update,
				    op_info(node_op(st->g, v->view))->view == VIEW_IMAG);
	case VIEW_OTHER:
		break;
	}
	return inverse_scatter(st, b, v, parent, update);
}
