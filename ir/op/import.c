/* A graph of one Ir, made again in another: what is interned there or numbered is translated, data
 * is shared. */
#include "ir/op/import.h"
#include "ir/op/node.h"
#include "ir/op/op.h"

typedef struct {
	Ir *to;
	const Ir *from;
	SymImport *syms;
	TypeId *type;      /* by TypeId of `from`; none: not yet */
	ConstId *constant; /* the same */
} GraphImport;

static const Sym *import_syms(GraphImport *m, const Sym *e, uint32_t n)
{
	Sym *made = ARENA_ARRAY(m->to->ctx->arena, Sym, n);
	for (uint32_t k = 0; k < n; k++)
		made[k] = sym_import(m->syms, e[k]);
	return made;
}

static TypeId import_type(GraphImport *m, TypeId id)
{
	const Type *t = ir_type_of(m->from, id);
	if (!id.i || m->type[id.i].i)
		return m->type[id.i];
	TypeId *elem = ARENA_ARRAY(m->to->ctx->scratch, TypeId, t->n);
	for (uint32_t k = 0; t->dtype == DT_none && k < t->n; k++)
		elem[k] = import_type(m, t->elem[k]);
	return m->type[id.i] = t->dtype == DT_none ? ir_tuple(m->to, t->n, elem)
						   : ir_type(m->to, t->dtype, t->n,
							     import_syms(m, t->dim, t->n));
}

static ConstId import_const(GraphImport *m, ConstId id)
{
	if (id.i && !m->constant[id.i].i) {
		Const c = *ir_const_of(m->from, id);
		c.holder = c.view_of = (ConstId){0}; /* which may not come along */
		c.same_as = import_const(m, c.same_as);
		m->constant[id.i] = ir_const(m->to, c);
	}
	return m->constant[id.i];
}

/* Imports the other names of constants that came along: no graph reads them. */
static void import_names(GraphImport *m)
{
	for (uint32_t k = 1; k < m->from->constant.n; k++) {
		ConstId first = ir_const_of(m->from, (ConstId){k})->same_as;
		if (first.i && m->constant[first.i].i)
			import_const(m, (ConstId){k});
	}
}

static Graph *import(GraphImport *m, const Graph *src);

static AttrId import_attrs(GraphImport *m, AttrId id)
{
	const uint32_t narg = ir_nattr(m->from, id);
	Attr copy[MAX_ARGS];
	for (uint32_t k = 0; k < narg; k++) {
		Attr *a = &copy[k];
		*a = *ir_attr(m->from, id, k);
		if (a->kind == ATTR_int)
			a->s = sym_import(m->syms, a->s);
		else if (a->kind == ATTR_ints)
			a->ints = import_syms(m, a->ints, a->n);
		else if (a->kind == ATTR_const)
			a->c = import_const(m, a->c);
		else if (a->kind == ATTR_graph && a->graph)
			a->graph = import(m, a->graph);
	}
	return id.i ? ir_attrs(m->to, narg, copy) : id;
}

static Node import_node(GraphImport *m, Graph *g, const Graph *src, Node n, const Node *map)
{
	const NodeData *d = node_data(src, n);
	Node *in = ARENA_ARRAY(m->to->ctx->scratch, Node, d->nin);
	for (uint32_t k = 0; k < d->nin; k++)
		in[k] = map[node_in(src, n, k).i];
	LocId loc = ir_loc(m->to, ir_loc_text(m->from, d->loc));
	AttrId attr = import_attrs(m, d->attr);
	Node made = graph_add(g, (Node){0}, d->op, in, d->nin, attr, import_type(m, d->type), loc);
	if (src->node_name.data[n.i])
		graph_set_name(g, made, src->node_name.data[n.i]);
	if (d->op == OP_to_size && node_attr(g, made, "most")->kind == ATTR_int &&
	    sym_kind(m->to->syms, node_sym(g, made, "size")) == SYM_VAR)
		sym_set_most(m->to->syms, node_sym(g, made, "size"), node_sym(g, made, "most"));
	return made;
}

static Graph *import(GraphImport *m, const Graph *src)
{
	Arena *arena = m->to->ctx->arena;
	Graph *g = graph_new(m->to, src->name);
	g->decomposed = src->decomposed;
	g->exported = src->exported;
	g->unrounded = src->unrounded;
	g->activations = src->activations;
	g->other_mode = src->other_mode ? intern_str(&m->to->strings, src->other_mode) : NULL;
	Node *map = ARENA_ARRAY(arena, Node, src->node.n);
	for (Node n = src->first; n.i; n = node_next(src, n))
		map[n.i] = import_node(m, g, src, n, map);
	for (uint32_t k = 0; k < src->input.n; k++) {
		GraphInput in = src->input.data[k];
		in.node = map[in.node.i];
		in.name = intern_str(&m->to->strings, in.name);
		in.init = import_const(m, in.init);
		array_push(arena, &g->input, in);
	}
	for (uint32_t k = 0; k < src->output.n; k++) {
		const GraphOutput *o = &src->output.data[k];
		graph_add_output(g, o->name, map[o->node.i], o->writes);
	}
	for (uint32_t k = 0; k < src->guard.n; k++) {
		GraphGuard guard = src->guard.data[k];
		guard.a = sym_import(m->syms, guard.a);
		guard.b = sym_import(m->syms, guard.b);
		guard.why = intern_str(&m->to->strings, guard.why);
		array_push(arena, &g->guard, guard);
	}
	return g;
}

static Graph *import_with(Ir *to, const Graph *src, SymImport *syms, ConstId *constant)
{
	GraphImport m = {.to = to, .from = src->ir, .syms = syms, .constant = constant};
	m.type = ARENA_ARRAY(to->ctx->arena, TypeId, m.from->type.n);
	Graph *g = import(&m, src);
	import_names(&m);
	return g;
}

Graph *graph_import(Ir *to, const Graph *src)
{
	SymImport *syms = sym_import_new(to->syms, graph_syms(src));
	return import_with(to, src, syms,
			   ARENA_ARRAY(to->ctx->arena, ConstId, src->ir->constant.n));
}

Graph *graph_import_at(const Graph *to, const Graph *src, const Sym *size, const Sym *by,
		       uint32_t n, ConstId *constant)
{
	SymImport *syms = sym_import_at(graph_syms(to), graph_syms(src), size, by, n);
	return import_with(to->ir, src, syms, constant);
}
