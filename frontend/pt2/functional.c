/* Memory while importing. Values that share memory are views of one base; each knows the node that
 * made it from its parent. A write through a view computes the new parent, and so on down to the
 * base, and raises the version of the storage; any other view of it is made again from its parent
 * when it is next read.
 *
 *   y = slice(x, 0, 2); z = view(x, [6]); add_(y, 1); read z
 *   %y = slice(%x); %y2 = add(%y, 1); %x2 = update_slice(%x, %y2, 0); %z2 = view(%x2)
 */
#include "frontend/pt2/priv.h"

#include <string.h>

static Arena *arena(const State *st)
{
	return st->im->ctx->arena;
}

uint32_t value_new(State *st, Node n, const Meta *m)
{
	uint32_t id = st->value.n;
	array_push(arena(st), &st->storage,
		   (Storage){.base = id, .spec = -1, .history = !st->no_grad});
	array_push(arena(st), &st->value,
		   (FileValue){.node = n, .storage = st->storage.n - 1, .elem = -1, .meta = *m});
	return id;
}

uint32_t value_view(State *st, uint32_t parent, Node view, uint32_t self, int32_t elem, Node n,
		    const Meta *m)
{
	uint32_t storage = st->value.data[parent].storage;
	FileValue v = {.node = n,
		       .storage = storage,
		       .version = st->storage.data[storage].version,
		       .parent = parent,
		       .view = view,
		       .self = self,
		       .no_grad = st->no_grad && st->storage.data[storage].history,
		       .elem = elem,
		       .meta = *m};
	array_push(arena(st), &st->value, v);
	return st->value.n - 1;
}

static TypeId with_dtype(Ir *ir, TypeId type, DType d)
{
	Type t = *ir_type_of(ir, type);
	if (t.dtype != DT_none)
		return ir_type(ir, d, t.n, arena_dup(ir->ctx->scratch, t.dim, sizeof *t.dim * t.n));
	TypeId *elem = ARENA_ARRAY(ir->ctx->scratch, TypeId, t.n);
	memcpy(elem, t.elem, sizeof *elem * t.n);
	for (uint32_t k = 0; k < t.n; k++)
		elem[k] = with_dtype(ir, elem[k], d);
	return ir_tuple(ir, t.n, elem);
}

Node view_replay(State *st, const FileValue *v, Node parent, DType d)
{
	Graph *g = st->g;
	FileValue copy = *v;
	if (!copy.view.i)
		return parent;
	NodeData old = *node_data(g, copy.view);
	Node *in = ARENA_ARRAY(st->im->ctx->scratch, Node, old.nin);
	for (uint32_t k = 0; k < old.nin; k++)
		in[k] = k == copy.self ? parent : node_in(g, copy.view, k);
	TypeId type = old.type;
	if (d != copy.meta.dtype)
		type = with_dtype(st->im->ir, type, d);
	Node made = graph_add(g, (Node){0}, old.op, in, old.nin, old.attr, type, old.loc);
	Build b = {.g = g, .loc = old.loc};
	return copy.elem < 0 ? made : b_get(&b, made, (uint32_t)copy.elem);
}

Node value_read(State *st, Build *b, uint32_t id)
{
	FileValue v = st->value.data[id];
	uint32_t version = st->storage.data[v.storage].version;
	if (v.version != version) {
		v.node = view_replay(st, &v, value_read(st, b, v.parent), v.meta.dtype);
		st->value.data[id].node = v.node;
		st->value.data[id].version = version;
	}
	return v.node;
}

/* ---- histories ---- */

static bool may_have_history(const Build *b, Node n)
{
	return n.i && dtype_is_inexact(node_dtype(b->g, n));
}

static Node without_history(Build *b, Node n)
{
	return may_have_history(b, n) ? b_un(b, OP_without_cotangent, n) : n;
}

Node value_with_history(Build *b, Node value, Node old)
{
	return may_have_history(b, value) && old.i ? b_bin(b, OP_straight_through, value, old)
						   : value;
}

/* Returns the value after a write. Autograd does not see a write under torch.no_grad(): the
 * history stays what it was. */
static Node written(State *st, Build *b, uint32_t id, Node n)
{
	if (!st->no_grad || !st->storage.data[st->value.data[id].storage].history ||
	    !may_have_history(b, n))
		return n;
	return b_bin(b, OP_replaced, value_read(st, b, id), n);
}

/* Cuts the history of memory that was made in the region: all of its views are made again of
 * contents without a history. */
static bool cut_storage(State *st, Build *b, uint32_t storage)
{
	uint32_t base = st->storage.data[storage].base;
	Node n = without_history(b, value_read(st, b, base));
	Storage *s = &st->storage.data[storage];
	s->history = true; /* from now on */
	st->rewrote = true;
	st->value.data[base].node = n;
	st->value.data[base].version = ++s->version;
	return n.i;
}

uint32_t value_enter(State *st, Build *b, uint32_t id)
{
	uint32_t storage = st->value.data[id].storage;
	if (st->no_grad)
		return id;
	if (!st->storage.data[storage].history)
		return cut_storage(st, b, storage) ? id : 0;
	if (!st->value.data[id].no_grad)
		return id;
	Node n = without_history(b, value_read(st, b, id));
	if (!n.i)
		return 0;
	const Meta m = st->value.data[id].meta;
	return n.i == value_read(st, b, id).i ? id : value_view(st, id, n, 0, -1, n, &m);
}

bool value_write(State *st, Build *b, uint32_t id, Node n)
{
	uint32_t storage = st->value.data[id].storage;
	uint32_t version = st->storage.data[storage].version + 1;
	if (st->storage.data[storage].by_mode && !st->g->other_mode)
		st->g->other_mode = arena_strdup(arena(st), b->where ? b->where : "");
	n = n.i ? written(st, b, id, n) : n;
	while (n.i) {
		uint32_t parent = st->value.data[id].parent;
		Node before = parent ? value_read(st, b, parent) : (Node){0};
		FileValue v = st->value.data[id];
		st->value.data[id].node = n;
		st->value.data[id].version = version;
		if (!parent) {
			st->storage.data[storage].version = version;
			return true;
		}
		st->rewrote = true;
		n = alias_inverse(st, b, &v, before, n);
		id = parent;
	}
	return false;
}

/* ---- memory as one dimension ---- */

/* Sets order[] to the dimensions from the outermost in memory to the innermost. Returns false
 * unless they fill it without gaps. */
static bool memory_order(State *st, const Meta *m, uint32_t *order)
{
	SymTab *t = st->im->syms;
	for (uint32_t k = 0; k < m->rank; k++) {
		uint32_t at = k;
		for (; at > 0 && sym_hint(t, m->stride[order[at - 1]]) < sym_hint(t, m->stride[k]);
		     at--)
			order[at] = order[at - 1];
		order[at] = k;
	}
	Sym expect = sym_int(t, 1);
	for (uint32_t k = m->rank; k-- > 0;) {
		uint32_t d = order[k];
		if (sym_is(t, m->size[d], 1))
			continue;
		if (sym_eq(t, m->stride[d], expect) != YES)
			return false;
		expect = sym_mul(t, expect, m->size[d]);
	}
	return true;
}

/* Adds a node that is replayed. Not through b_reshape and b_permute, which may look through
 * their operand. */
static Node map_node(State *st, Build *b, Op op, uint32_t value, const Sym *list, uint32_t n)
{
	Node x = value_read(st, b, value);
	Attr attr[2] = {attr_none(), attr_ints(list, n)};
	return b_node(b, op, &x, 1, attr, 2);
}

uint32_t value_flat(State *st, Build *b, uint32_t id)
{
	SymTab *t = st->im->syms;
	uint32_t base = st->storage.data[st->value.data[id].storage].base, order[MAX_RANK];
	Meta m = st->value.data[base].meta;
	if (!memory_order(st, &m, order)) {
		b_error(b, "as_strided of a tensor whose memory has gaps is not supported");
		return 0;
	}
	bool sorted = true;
	for (uint32_t k = 0; k < m.rank; k++)
		sorted &= order[k] == k;
	if (!sorted) {
		Sym *size = ARENA_ARRAY(arena(st), Sym, m.rank),
		    *stride = ARENA_ARRAY(arena(st), Sym, m.rank);
		for (uint32_t k = 0; k < m.rank; k++) {
			size[k] = m.size[order[k]];
			stride[k] = m.stride[order[k]];
		}
		Sym perm[MAX_RANK];
		for (uint32_t k = 0; k < m.rank; k++)
			perm[k] = sym_int(t, order[k]);
		Node n = map_node(st, b, OP_permute, base, perm, m.rank);
		if (!n.i)
			return 0;
		m.size = size;
		m.stride = stride;
		base = value_view(st, base, n, 0, -1, n, &m);
	}
	if (m.rank == 1)
		return base;
	Sym *one = ARENA_ARRAY(arena(st), Sym, 2);
	one[0] = one[1] = sym_int(t, 1);
	for (uint32_t k = 0; k < m.rank; k++)
		one[0] = sym_mul(t, one[0], m.size[k]);
	Node n = map_node(st, b, OP_reshape, base, one, 1);
	if (!n.i)
		return 0;
	m.rank = 1;
	m.size = one;
	m.stride = one + 1;
	return value_view(st, base, n, 0, -1, n, &m);
}
