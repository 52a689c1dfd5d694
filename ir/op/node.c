#include "ir/op/node.h"

#include <math.h>

#include "ir/op/op.h"

static bool graph_has_effect(const Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_has_effect(g, n))
			return true;
	return false;
}

bool node_has_effect(const Graph *g, Node n)
{
	const OpInfo *info = op_info(node_op(g, n));
	const Graph *body;
	if (info->effect || (info->has_effect && info->has_effect(g, n)))
		return true;
	for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
		if (graph_has_effect(body))
			return true;
	return false;
}

const char *graph_collective(const Graph *g)
{
	const char *name = NULL;
	for (Node n = g->first; n.i && !name; n = node_next(g, n)) {
		const OpInfo *info = op_info(node_op(g, n));
		const Graph *body;
		if (info->collective && info->collective(g, n))
			return op_name(node_op(g, n));
		for (uint32_t k = 0; !name && (body = node_next_body(g, n, &k));)
			name = graph_collective(body);
	}
	return name;
}

bool graph_dce(Graph *g)
{
	bool *kept = ARENA_ARRAY(g->ir->ctx->scratch, bool, g->node.n), changed = false;
	for (uint32_t k = 0; k < g->output.n; k++)
		kept[g->output.data[k].node.i] = true;
	for (Node n = g->last, prev; n.i; n = prev) {
		prev = node_prev(g, n);
		const NodeData *d = node_data(g, n);
		if (kept[n.i] || d->first_use.i || d->op == OP_input || node_has_effect(g, n))
			continue;
		graph_erase(g, n);
		changed = true;
	}
	return changed;
}

bool node_has_graph(const Graph *g, Node n)
{
	const Schema *s = op_schema(node_op(g, n));
	for (uint32_t k = 0; k < s->narg; k++)
		if (s->arg[k].kind == ARG_graph)
			return true;
	return false;
}

uint32_t node_copy_attrs(const Graph *g, Node n, Attr *attr)
{
	const uint32_t narg = op_schema(node_op(g, n))->narg;
	for (uint32_t k = 0; k < narg; k++)
		attr[k] = *ir_attr(g->ir, node_data(g, n)->attr, k);
	return narg;
}

/* Adds what has a size, and where the model says so. */
static void add_size_owner(const Graph *g, Node n, Text *text)
{
	const char *line = ir_loc_text(g->ir, node_data(g, n)->loc);
	text_format(text, node_str(g, n, "what"));
	if (*line) {
		text_add(text, " (");
		text_format(text, line);
		text_add(text, ")");
	}
}

const char *node_size_differs(const Graph *g, Node n, const Graph *bound)
{
	const SymTab *syms = graph_syms(g);
	Sym size = node_sym(g, n, "size");
	uint32_t input, dim;
	Text text;
	text_init(&text, g->ir->ctx->arena);
	if (!bound || sym_kind(syms, size) != SYM_VAR ||
	    !graph_symbol_input(bound, size, &input, &dim)) {
		add_size_owner(g, n, &text);
		text_printf(&text, ": the size %s is %%lld, expected %%lld", sym_str(syms, size));
		return text.data;
	}
	Sym extent = node_dim(bound, bound->input.data[input].node, dim);
	const char *name = sym_name(syms, size);
	text_add(&text, "input \"");
	text_format(&text, bound->input.data[input].name);
	text_printf(&text, "\" dimension %u: expected %s", dim, sym_str(syms, extent));
	text_printf(&text, "%s%s = %%lld (", extent.i == size.i ? "" : " for ",
		    extent.i == size.i ? "" : name);
	add_size_owner(g, n, &text);
	text_printf(&text, "), got %s%s%%lld", extent.i == size.i ? "" : name,
		    extent.i == size.i ? "" : " = ");
	return text.data;
}

const char *node_size_message(const Graph *g, Node n)
{
	const SymTab *syms = graph_syms(g);
	Sym size = node_sym(g, n, "size");
	int64_t lo, hi;
	Text text;
	text_init(&text, g->ir->ctx->arena);
	sym_range(syms, size, &lo, &hi);
	add_size_owner(g, n, &text);
	text_printf(&text, ": the size%s%s is %%lld, expected ", lo == hi ? "" : " ",
		    lo == hi ? "" : sym_str(syms, size));
	if (lo == hi)
		text_printf(&text, "%lld", (long long)lo);
	else if (hi == SYM_INF)
		text_printf(&text, "at least %lld", (long long)lo);
	else if (lo == -SYM_INF)
		text_printf(&text, "at most %lld", (long long)hi);
	else
		text_printf(&text, "%lld to %lld", (long long)lo, (long long)hi);
	return text.data;
}

Node node_next_get(const Graph *g, Use *u, uint32_t k)
{
	while (u->i) {
		Node user = g->use.data[u->i].user;
		*u = g->use.data[u->i].next;
		if (user.i && node_op(g, user) == OP_get && node_int(g, user, "index") == k)
			return user;
	}
	return (Node){0};
}

ConstId node_const(const Graph *g, Node n)
{
	return node_op(g, n) == OP_constant ? node_attr(g, n, "value")->c : (ConstId){0};
}

/* ---- attributes by name ---- */

static uint32_t arg_slot(const Graph *g, Node n, const char *name)
{
	int k = op_arg_index(node_op(g, n), name);
	if (k < 0)
		ctx_bug(g->ir->ctx, "%s has no argument \"%s\"", op_name(node_op(g, n)), name);
	return (uint32_t)k;
}

_Noreturn static void attr_bug(const Graph *g, Node n, const char *name, const char *expected)
{
	ctx_bug(g->ir->ctx, "%s: argument \"%s\" is not %s", op_name(node_op(g, n)), name,
		expected);
}

const Attr *node_attr(const Graph *g, Node n, const char *name)
{
	return ir_attr(g->ir, node_data(g, n)->attr, arg_slot(g, n, name));
}

void graph_set_attr(Graph *g, Node n, const char *name, Attr value)
{
	Attr attr[MAX_ARGS];
	const uint32_t narg = node_copy_attrs(g, n, attr);
	attr[arg_slot(g, n, name)] = value;
	graph_set_attrs(g, n, ir_attrs(g->ir, narg, attr));
}

Sym node_sym(const Graph *g, Node n, const char *name)
{
	const Attr *a = node_attr(g, n, name);
	if (a->kind == ATTR_bool)
		return sym_int(graph_syms(g), a->b);
	if (a->kind != ATTR_int)
		attr_bug(g, n, name, "an integer");
	return a->s;
}

int64_t node_int(const Graph *g, Node n, const char *name)
{
	int64_t v;
	if (!sym_is_const(graph_syms(g), node_sym(g, n, name), &v))
		attr_bug(g, n, name, "a constant");
	return v;
}

bool node_bool(const Graph *g, Node n, const char *name)
{
	const Attr *a = node_attr(g, n, name);
	if (a->kind == ATTR_int)
		return node_int(g, n, name) != 0;
	if (a->kind != ATTR_bool)
		attr_bug(g, n, name, "a bool");
	return a->b;
}

double node_float(const Graph *g, Node n, const char *name)
{
	const Attr *a = node_attr(g, n, name);
	if (a->kind == ATTR_float)
		return a->f;
	if (a->kind == ATTR_complex) {
		ctx_error(g->ir->ctx, node_near((Graph *)(uintptr_t)g, n),
			  "argument %s: expected a real number, got a complex one", name);
		return NAN;
	}
	return (double)node_int(g, n, name);
}

const char *node_str(const Graph *g, Node n, const char *name)
{
	const Attr *a = node_attr(g, n, name);
	if (a->kind != ATTR_str)
		attr_bug(g, n, name, "a string");
	return a->str;
}

const Sym *node_ints(const Graph *g, Node n, const char *name, uint32_t *count)
{
	const Attr *a = node_attr(g, n, name);
	if (a->kind != ATTR_ints && a->kind != ATTR_none)
		attr_bug(g, n, name, "a list of integers");
	*count = a->kind == ATTR_ints ? a->n : 0;
	return *count ? a->ints : NULL;
}

uint32_t node_dim_bits(const Graph *g, Node n, const char *name)
{
	uint32_t count, bits = 0;
	const Sym *dim = node_ints(g, n, name, &count);
	for (uint32_t k = 0; k < count; k++)
		bits |= 1u << sym_const(graph_syms(g), dim[k]);
	return bits;
}

/* ---- operands by name ---- */

/* Returns how many operands argument k of the schema takes. */
static uint32_t arg_width(const Graph *g, Node n, uint32_t k)
{
	const Arg *a = &op_schema(node_op(g, n))->arg[k];
	if (a->kind == ARG_tensor)
		return 1;
	const Attr *attr = ir_attr(g->ir, node_data(g, n)->attr, k);
	if (a->kind != ARG_tensors || attr->kind != ATTR_int)
		return 0;
	return (uint32_t)sym_const_or(graph_syms(g), attr->s, 0);
}

uint32_t node_args(const Graph *g, Node n, const char *name, uint32_t *first)
{
	uint32_t slot = arg_slot(g, n, name), at = 0;
	for (uint32_t k = 0; k < slot; k++)
		at += arg_width(g, n, k);
	*first = at;
	return arg_width(g, n, slot);
}

Node node_arg(const Graph *g, Node n, const char *name)
{
	uint32_t first, count = node_args(g, n, name, &first);
	return count && first < node_nin(g, n) ? node_in(g, n, first) : (Node){0};
}

static const char *where(Graph *g, Node n, const char *name)
{
	const Ctx *ctx = g->ir->ctx;
	const char *file = ctx->file ? ctx->file : "",
		   *loc = n.i < g->node.n ? ir_loc_text(g->ir, node_data(g, n)->loc) : "";
	Text t;
	text_init(&t, ctx->scratch);
	text_add(&t, file);
	text_add(&t, ctx->file ? ": node " : "node ");
	text_add(&t, name);
	if (*loc) {
		text_add(&t, " (");
		text_add(&t, loc);
		text_add(&t, ")");
	}
	return t.data;
}

const char *graph_last_name(Graph *g, Node n)
{
	bool known = n.i && n.i < g->node.n &&
		     (g->node_name.data[n.i] || (n.i < g->nnumber && g->number[n.i]));
	if (!g->number)
		return graph_name(g, n);
	if (!known)
		return n.i && n.i < g->node.n ? op_name(node_op(g, n)) : "none";
	return g->node_name.data[n.i] ? g->node_name.data[n.i]
				      : arena_printf(g->ir->ctx->scratch, "%u", g->number[n.i]);
}

const char *node_where(Graph *g, Node n)
{
	return where(g, n, graph_name(g, n));
}

const char *node_near(Graph *g, Node n)
{
	return where(g, n, graph_last_name(g, n));
}
