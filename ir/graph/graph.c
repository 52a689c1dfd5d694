#include "ir/graph/graph.h"

#include <assert.h>
#include <string.h>

#include "oplist.h"

static Arena *graph_arena(const Graph *g)
{
	return g->ir->ctx->arena;
}

Graph *graph_new(Ir *ir, const char *name)
{
	Graph *g = ARENA_NEW(ir->ctx->arena, Graph);
	g->ir = ir;
	g->scope = sym_scope(ir->syms);
	g->name = intern_str(&ir->strings, name ? name : "");
	intern_init(&g->names, ir->ctx->arena);
	array_push(ir->ctx->arena, &g->node, (NodeData){0});
	array_push(ir->ctx->arena, &g->use, (UseData){0});
	array_push(ir->ctx->arena, &g->node_name, NULL);
	array_push(ir->ctx->arena, &g->nread, 0);
	array_push(ir->ctx->arena, &g->nout, 0);
	array_push(ir->ctx->arena, &g->name_uses, 0);
	return g;
}

Graph *graph_beside(const Graph *other, const char *name)
{
	Graph *g = graph_new(other->ir, name);
	g->scope = other->scope;
	return g;
}

/* ---- use lists ---- */

static void use_unlink(Graph *g, Use u)
{
	UseData *d = &g->use.data[u.i];
	if (d->def.i)
		g->nread.data[d->def.i]--;
	if (d->prev.i)
		g->use.data[d->prev.i].next = d->next;
	else if (d->def.i)
		g->node.data[d->def.i].first_use = d->next;
	if (d->next.i)
		g->use.data[d->next.i].prev = d->prev;
	d->def = (Node){0};
	d->prev = d->next = (Use){0};
}

/* Makes u read def, and adds it to def's readers. u must be unlinked. */
static void use_link(Graph *g, Use u, Node def)
{
	UseData *d = &g->use.data[u.i];
	d->def = def;
	if (!def.i)
		return;
	g->nread.data[def.i]++;
	d->prev = (Use){0};
	d->next = g->node.data[def.i].first_use;
	if (d->next.i)
		g->use.data[d->next.i].prev = u;
	g->node.data[def.i].first_use = u;
}

/* ---- nodes ---- */

static void node_link(Graph *g, Node n, Node before)
{
	NodeData *d = &g->node.data[n.i];
	d->next = before;
	d->prev = before.i ? g->node.data[before.i].prev : g->last;
	if (d->prev.i)
		g->node.data[d->prev.i].next = n;
	else
		g->first = n;
	if (before.i)
		g->node.data[before.i].prev = n;
	else
		g->last = n;
}

static void node_unlink(Graph *g, Node n)
{
	NodeData *d = &g->node.data[n.i];
	if (d->prev.i)
		g->node.data[d->prev.i].next = d->next;
	else
		g->first = d->next;
	if (d->next.i)
		g->node.data[d->next.i].prev = d->prev;
	else
		g->last = d->prev;
}

Node graph_add(Graph *g, Node before, Op op, const Node *in, uint32_t nin, AttrId attr, TypeId type,
	       LocId loc)
{
	if (nin > UINT16_MAX)
		ctx_bug(g->ir->ctx, "a node with %u operands", nin);
	NodeData d = {.op = op, .nin = (uint16_t)nin, .in = g->use.n};
	d.type = type;
	d.attr = attr;
	d.loc = loc;
	array_push(graph_arena(g), &g->node, d);
	array_push(graph_arena(g), &g->node_name, NULL);
	array_push(graph_arena(g), &g->nread, 0);
	array_push(graph_arena(g), &g->nout, 0);
	Node n = {g->node.n - 1};
	for (uint32_t k = 0; k < nin; k++) {
		array_push(graph_arena(g), &g->use, (UseData){.user = n});
		use_link(g, (Use){g->use.n - 1}, in[k]);
	}
	node_link(g, n, before);
	g->numbered = false;
	return n;
}

void graph_set_order(Graph *g, const Node *order, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		node_unlink(g, order[k]);
		node_link(g, order[k], (Node){0});
	}
	g->numbered = false;
}

/* Skips the inputs. They come first, in the order of the list, so that any node may read a new
 * one. */
Node graph_behind_inputs(const Graph *g)
{
	Node n = g->input.n ? g->input.data[g->input.n - 1].node : g->first;
	while (n.i && node_op(g, n) == OP_input)
		n = node_next(g, n);
	return n;
}

Node graph_add_input(Graph *g, const char *name, InputKind kind, TypeId type)
{
	Node n = graph_add(g, graph_behind_inputs(g), OP_input, NULL, 0, (AttrId){0}, type,
			   (LocId){0});
	GraphInput in = {n, kind, intern_str(&g->ir->strings, name ? name : ""), {0}};
	array_push(graph_arena(g), &g->input, in);
	if (name && *name)
		graph_set_name(g, n, name);
	return n;
}

void graph_add_output(Graph *g, const char *name, Node n, int32_t writes)
{
	GraphOutput out = {n, intern_str(&g->ir->strings, name ? name : ""), writes};
	array_push(graph_arena(g), &g->output, out);
	g->nout.data[n.i]++;
}

void graph_remove_output(Graph *g, uint32_t k)
{
	assert(k < g->output.n);
	g->nout.data[g->output.data[k].node.i]--;
	g->output.n--;
	memmove(&g->output.data[k], &g->output.data[k + 1],
		(g->output.n - k) * sizeof g->output.data[0]);
}

void graph_clear_outputs(Graph *g)
{
	for (uint32_t k = 0; k < g->output.n; k++)
		g->nout.data[g->output.data[k].node.i]--;
	g->output.n = 0;
}

void graph_set_output(Graph *g, uint32_t k, Node n)
{
	g->nout.data[g->output.data[k].node.i]--;
	g->nout.data[n.i]++;
	g->output.data[k].node = n;
}

/* Moves a name along, so that what replaces a model's value is still called like it. */
static void name_move(Graph *g, Node old, Node new)
{
	if (!g->node_name.data[new.i] && node_op(g, old) != OP_input) {
		g->node_name.data[new.i] = g->node_name.data[old.i];
		g->node_name.data[old.i] = NULL;
		g->numbered = false;
	}
}

void graph_replace(Graph *g, Node old, Node new)
{
	assert(old.i != new.i);
	for (Use u = g->node.data[old.i].first_use, next; u.i; u = next) {
		next = g->use.data[u.i].next;
		use_unlink(g, u);
		use_link(g, u, new);
	}
	for (uint32_t k = 0; g->nout.data[old.i] && k < g->output.n; k++)
		if (g->output.data[k].node.i == old.i)
			graph_set_output(g, k, new);
	if (new.i)
		name_move(g, old, new);
}

void graph_set_type(Graph *g, Node n, TypeId type)
{
	g->node.data[n.i].type = type;
}

void graph_set_attrs(Graph *g, Node n, AttrId attr)
{
	g->node.data[n.i].attr = attr;
}

void graph_erase(Graph *g, Node n)
{
	NodeData *d = &g->node.data[n.i];
	if (d->first_use.i || d->op == OP_none)
		ctx_bug(g->ir->ctx, "erasing %s %s",
			d->op ? "a node with readers:" : "an erased node", graph_name(g, n));
	for (uint32_t k = 0; k < d->nin; k++)
		use_unlink(g, (Use){d->in + k});
	node_unlink(g, n);
	*d = (NodeData){0};
	g->node_name.data[n.i] = NULL;
	g->nout.data[n.i] = 0;
	g->numbered = false;
}

void graph_set_operand(Graph *g, Node user, uint32_t k, Node def)
{
	assert(k < node_nin(g, user));
	Use u = {g->node.data[user.i].in + k};
	use_unlink(g, u);
	use_link(g, u, def);
}

/* ---- names ---- */

static bool name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == '$';
}

/* Returns the name with printable characters only, and never a number alone: those are unnamed
 * nodes. */
static char *name_clean(Graph *g, const char *name)
{
	bool digits = *name >= '0' && *name <= '9';
	char *s = arena_printf(g->ir->ctx->scratch, "%s%s", digits ? "_" : "", name);
	for (char *p = s; *p; p++)
		if (!name_char(*p))
			*p = '_';
	return s;
}

static uint32_t *name_count(Graph *g, const char *s, bool *fresh)
{
	uint32_t id = intern(&g->names, s, (uint32_t)strlen(s) + 1, fresh);
	if (*fresh)
		array_push(graph_arena(g), &g->name_uses, 0);
	return &g->name_uses.data[id];
}

void graph_set_name(Graph *g, Node n, const char *name)
{
	g->numbered = false;
	g->node_name.data[n.i] = NULL;
	if (!name || !*name)
		return;
	char *clean = name_clean(g, name), *s = clean;
	bool fresh;
	name_count(g, s, &fresh);
	while (!fresh) {
		bool ignored;
		uint32_t k = ++*name_count(g, clean, &ignored);
		s = arena_printf(g->ir->ctx->scratch, "%s_%u", clean, k);
		name_count(g, s, &fresh);
	}
	g->node_name.data[n.i] = arena_strdup(graph_arena(g), s);
}

static void graph_number(Graph *g)
{
	if (g->node.n > g->number_room) {
		g->number_room = 2 * g->node.n;
		g->number = ARENA_ARRAY(graph_arena(g), uint32_t, g->number_room);
	}
	g->nnumber = g->node.n;
	memset(g->number, 0, g->nnumber * sizeof *g->number);
	uint32_t count = 0;
	for (uint32_t k = 0; k < g->input.n; k++)
		if (!g->node_name.data[g->input.data[k].node.i])
			g->number[g->input.data[k].node.i] = ++count;
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (!g->node_name.data[n.i] && node_op(g, n) != OP_input)
			g->number[n.i] = ++count;
	g->numbered = true;
}

const char *graph_name(Graph *g, Node n)
{
	if (n.i >= g->node.n || !n.i)
		return "none";
	if (g->node_name.data[n.i])
		return g->node_name.data[n.i];
	if (!g->numbered)
		graph_number(g);
	return arena_printf(g->ir->ctx->scratch, "%u", g->number[n.i]);
}

/* ---- guards ---- */

static Truth guard_holds(const SymTab *t, GuardKind kind, Sym a, Sym b)
{
	if (kind == GUARD_LE)
		return sym_le(t, a, b);
	Truth eq = sym_eq(t, a, b);
	return kind == GUARD_EQ ? eq : eq == YES ? NO : eq == NO ? YES : MAYBE;
}

static bool has_guard(const Graph *g, GuardKind kind, Sym a, Sym b)
{
	for (uint32_t k = 0; k < g->guard.n; k++) {
		const GraphGuard *o = &g->guard.data[k];
		bool swapped = kind != GUARD_LE && o->a.i == b.i && o->b.i == a.i;
		if (o->kind == kind && ((o->a.i == a.i && o->b.i == b.i) || swapped))
			return true;
	}
	return false;
}

bool graph_requires_equal(const Graph *g, Sym a, Sym b)
{
	return has_guard(g, GUARD_EQ, a, b);
}

void graph_guard(Graph *g, GuardKind kind, Sym a, Sym b, const char *why)
{
	if (guard_holds(graph_syms(g), kind, a, b) == YES || has_guard(g, kind, a, b))
		return;
	GraphGuard new = {kind, a, b, intern_str(&g->ir->strings, why ? why : "")};
	array_push(graph_arena(g), &g->guard, new);
}

/* ---- whole graphs ---- */

bool graph_is_given(const Graph *g, Sym var)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		if (type_uses(g->ir, node_type_id(g, g->input.data[k].node), var))
			return true;
	return false;
}

bool graph_symbol_input(const Graph *g, Sym var, uint32_t *input, uint32_t *dim)
{
	for (*input = 0; *input < g->input.n; ++*input) {
		Node x = g->input.data[*input].node;
		for (*dim = 0; *dim < node_rank(g, x); ++*dim)
			if (sym_uses(graph_syms(g), node_dim(g, x, *dim), var))
				return true;
	}
	return false;
}

const char *graph_symbol_origin(const Graph *g, Sym var)
{
	uint32_t input, dim;
	if (!graph_symbol_input(g, var, &input, &dim))
		return "";
	return arena_printf(g->ir->ctx->scratch, " (input \"%s\" dimension %u)",
			    g->input.data[input].name, dim);
}

Node graph_copy_node(Graph *dst, Node before, const Graph *src, Node n, const Node *map)
{
	const NodeData d = *node_data(src, n);
	Node *in = ARENA_ARRAY(src->ir->ctx->scratch, Node, d.nin);
	for (uint32_t k = 0; k < d.nin; k++)
		in[k] = map[node_in(src, n, k).i];
	AttrId attr = node_clone_attrs(src, n);
	Node made = graph_add(dst, before, d.op, in, d.nin, attr, d.type, d.loc);
	if (src->node_name.data[n.i])
		graph_set_name(dst, made, src->node_name.data[n.i]);
	return made;
}

Graph *graph_clone(const Graph *src)
{
	Graph *g = graph_beside(src, src->name);
	g->decomposed = src->decomposed;
	g->exported = src->exported;
	g->other_mode = src->other_mode;
	g->unrounded = src->unrounded;
	g->activations = src->activations;
	Node *map = ARENA_ARRAY(src->ir->ctx->scratch, Node, src->node.n);
	for (Node n = src->first; n.i; n = node_next(src, n)) {
		map[n.i] = graph_copy_node(g, (Node){0}, src, n, map);
	}
	for (uint32_t k = 0; k < src->input.n; k++) {
		GraphInput in = src->input.data[k];
		in.node = map[in.node.i];
		array_push(graph_arena(g), &g->input, in);
	}
	for (uint32_t k = 0; k < src->output.n; k++) {
		const GraphOutput *o = &src->output.data[k];
		graph_add_output(g, o->name, map[o->node.i], o->writes);
	}
	for (uint32_t k = 0; k < src->guard.n; k++)
		array_push(graph_arena(g), &g->guard, src->guard.data[k]);
	return g;
}

void graph_inline(Graph *dst, Node before, const Graph *src, const Node *arg, Node *out)
{
	Node *map = ARENA_ARRAY(src->ir->ctx->scratch, Node, src->node.n);
	for (uint32_t k = 0; k < src->input.n; k++)
		map[src->input.data[k].node.i] = arg[k];
	for (Node n = src->first; n.i; n = node_next(src, n)) {
		if (node_op(src, n) == OP_input)
			continue;
		map[n.i] = graph_copy_node(dst, before, src, n, map);
	}
	for (uint32_t k = 0; k < src->output.n; k++)
		out[k] = map[src->output.data[k].node.i];
	for (uint32_t k = 0; k < src->guard.n; k++) {
		const GraphGuard *o = &src->guard.data[k];
		graph_guard(dst, o->kind, o->a, o->b, o->why);
	}
}
