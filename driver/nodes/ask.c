/* Nodes of graphs, for users: visiting and asking. */
#include "driver/nodes/nodes.h"
#include "ir/build/text.h"
#include "ops/user/userop.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the boundary ---- */

typedef struct {
	NodeStep *s;
	bool (*f)(NodeStep *);
} StepCall;

static bool call(void *arg)
{
	StepCall *c = arg;
	return c->f(c->s);
}

bool step(NodeStep *s, bool (*f)(NodeStep *))
{
	StepCall c = {s, f};
	if (!s->w || s->w->dead)
		return false;
	CtxMark mark = ctx_mark(s->w->ctx);
	ArenaMark scratch = arena_mark(s->w->ctx->scratch);
	bool ok = boundary(s->w, call, &c);
	if (s->w->dead)
		return false;
	if (!ok && s->w->ctx->nerror == mark.nerror)
		step_error(s, "this cannot be done");
	ok &= ctx_first_only(s->w->ctx, mark);
	arena_release(s->w->ctx->scratch, scratch);
	return ok;
}

bool(step_error)(const NodeStep *s, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return ctx_error(s->w->ctx, s->function, "%s", text);
}

/* ---- graphs and bodies ---- */

WeftGraph *graph_of_body(WeftGraph *owner, Node n, Graph *body)
{
	WeftGraph *root = graph_root(owner);
	Arena *arena = weft_arena(root->w);
	for (uint32_t k = 0; k < root->body.n; k++)
		if (root->body.data[k]->g == body)
			return root->body.data[k];
	WeftGraph *out = graph_wrap(root->w, body, root->path);
	out->owner = owner;
	out->owner_node = n;
	array_push(arena, &root->body, out);
	return out;
}

static bool enter_graph(NodeStep *s, WeftGraph *graph)
{
	if (graph->w != s->w)
		return step_error(s, "the graph belongs to another Weft");
	if (!graph->g)
		return step_error(s, "several graphs were joined, expected one of them");
	if (!body_is_there(graph))
		return step_error(s, "the graph is the body of a node that was erased");
	s->graph = graph;
	s->g = graph->g;
	s->w->ctx->file = graph->path;
	return true;
}

bool step_graph(NodeStep *s)
{
	return given(s->w, s->function, "the graph", s->graph) && enter_graph(s, s->graph);
}

/* ---- nodes ---- */

bool step_node(NodeStep *s)
{
	if (!s->node.index)
		return step_error(s, "the node is missing: no node");
	TRY(given(s->w, s->function, "the graph of the node", s->node.graph) &&
	    enter_graph(s, s->node.graph));
	s->n = (Node){s->node.index};
	if (s->n.i >= s->g->node.n)
		return step_error(s, "the graph has no node %u", s->n.i);
	return node_op(s->g, s->n) != OP_none || step_error(s, "the node was erased");
}

bool step_value(const NodeStep *s, const char *what, WeftNode v, Node *out)
{
	*out = (Node){v.index};
	if (!v.index)
		return step_error(s, "%s is missing: no node", what);
	if (v.graph != s->graph)
		return step_error(s, "%s is a node of another graph", what);
	if (v.index >= s->g->node.n)
		return step_error(s, "%s: the graph has no node %u", what, v.index);
	if (node_op(s->g, *out) == OP_none)
		return step_error(s, "%s was erased", what);
	return node_type_id(s->g, *out).i ||
	       step_error(s, "%s is a node without a value: %s", what, step_name(s, *out));
}

WeftNode step_give(const NodeStep *s, Node n)
{
	return n.i ? (WeftNode){s->graph, n.i} : (WeftNode){NULL, 0};
}

const char *step_name(const NodeStep *s, Node n)
{
	const char *line = ir_loc_text(s->g->ir, node_data(s->g, n)->loc);
	const char *name = graph_last_name(s->g, n);
	return *line ? arena_printf(s->w->ctx->scratch, "%s (%s)", name, line) : name;
}

void step_changed(const NodeStep *s)
{
	graph_root(s->graph)->changed = true;
}

/* Returns a text that lasts as long as the Weft, once. */
static const char *lasting(const NodeStep *s, const char *text)
{
	return intern_str(&s->g->ir->strings, text);
}

/* ---- visit ---- */

static bool find_first(NodeStep *s)
{
	TRY(step_graph(s));
	s->found = step_give(s, s->after ? s->g->last : s->g->first);
	return true;
}

WeftNode weft_node_first(Weft *w, WeftGraph *g)
{
	NodeStep s = {.w = w, .function = "weft_node_first", .graph = g};
	step(&s, find_first);
	return s.found;
}

WeftNode weft_node_last(Weft *w, WeftGraph *g)
{
	NodeStep s = {.w = w, .function = "weft_node_last", .graph = g, .after = true};
	step(&s, find_first);
	return s.found;
}

static bool find_next(NodeStep *s)
{
	TRY(step_node(s));
	s->found = step_give(s, s->after ? node_next(s->g, s->n) : node_prev(s->g, s->n));
	return true;
}

WeftNode weft_node_next(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_next", .node = n, .after = true};
	step(&s, find_next);
	return s.found;
}

WeftNode weft_node_prev(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_prev", .node = n};
	step(&s, find_next);
	return s.found;
}

static bool find_named(NodeStep *s)
{
	TRY(step_graph(s) && given_text(s->w, s->function, "the name", s->text));
	for (Node n = s->g->first; n.i && !s->found.index; n = node_next(s->g, n))
		if (!strcmp(graph_name(s->g, n), s->text))
			s->found = step_give(s, n);
	return true;
}

WeftNode weft_node_find(Weft *w, WeftGraph *g, const char *name)
{
	NodeStep s = {.w = w, .function = "weft_node_find", .graph = g, .text = name};
	step(&s, find_named);
	return s.found;
}

static bool find_input(NodeStep *s)
{
	uint32_t k = 0;
	TRY(step_graph(s));
	for (uint32_t i = 0; i < s->g->input.n && !s->found.index; i++)
		if ((s->g->input.data[i].kind == INPUT_USER) != s->after && k++ == s->k)
			s->found = step_give(s, s->g->input.data[i].node);
	return s->found.index ||
	       step_error(s, "there is no %s %u", s->after ? "state" : "input", s->k);
}

WeftNode weft_node_of_input(Weft *w, WeftGraph *g, uint32_t k)
{
	NodeStep s = {.w = w, .function = "weft_node_of_input", .graph = g, .k = k};
	step(&s, find_input);
	return s.found;
}

WeftNode weft_node_of_state(Weft *w, WeftGraph *g, uint32_t k)
{
	NodeStep s = {.w = w, .function = "weft_node_of_state", .graph = g, .k = k, .after = true};
	step(&s, find_input);
	return s.found;
}

static bool find_output(NodeStep *s)
{
	uint32_t k = 0;
	TRY(step_graph(s));
	for (uint32_t i = 0; i < s->g->output.n && !s->found.index; i++)
		if (s->g->output.data[i].writes < 0 && k++ == s->k)
			s->found = step_give(s, s->g->output.data[i].node);
	return s->found.index || step_error(s, "there is no output %u", s->k);
}

WeftNode weft_node_of_output(Weft *w, WeftGraph *g, uint32_t k)
{
	NodeStep s = {.w = w, .function = "weft_node_of_output", .graph = g, .k = k};
	step(&s, find_output);
	return s.found;
}

static bool find_written(NodeStep *s)
{
	TRY(step_node(s));
	if (node_op(s->g, s->n) != OP_input)
		return step_error(s, "node %s is no input or state", step_name(s, s->n));
	for (uint32_t i = 0; i < s->g->output.n; i++) {
		int32_t in = s->g->output.data[i].writes;
		if (in >= 0 && s->g->input.data[in].node.i == s->n.i)
			s->found = step_give(s, s->g->output.data[i].node);
	}
	return true;
}

WeftNode weft_node_written(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_written", .node = n};
	step(&s, find_written);
	return s.found;
}

/* ---- what a node is ---- */

const UserOp *step_user(const NodeStep *s)
{
	return userop_called(s->g, s->n);
}

const Schema *step_schema(const NodeStep *s)
{
	const UserOp *user = step_user(s);
	return user ? &user->schema : op_schema(node_op(s->g, s->n));
}

int step_arg_index(const NodeStep *s, const char *name)
{
	const Schema *schema = step_schema(s);
	for (uint32_t k = 0; k < schema->narg; k++)
		if (!strcmp(schema->arg[k].name, name))
			return (int)k;
	return -1;
}

static const GraphInput *input_of(const Graph *g, Node n)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].node.i == n.i)
			return &g->input.data[k];
	return NULL;
}

static bool ask_kind(NodeStep *s)
{
	TRY(step_node(s));
	Op op = node_op(s->g, s->n);
	s->count = op == OP_constant ? WEFT_NODE_CONSTANT : WEFT_NODE_CALL;
	if (op == OP_input)
		s->count = input_of(s->g, s->n)->kind == INPUT_USER ? WEFT_NODE_INPUT
								    : WEFT_NODE_STATE;
	return true;
}

WeftNodeKind weft_node_kind(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_kind", .node = n};
	return step(&s, ask_kind) ? (WeftNodeKind)s.count : WEFT_NODE_NONE;
}

static bool ask_op(NodeStep *s)
{
	TRY(step_node(s));
	const UserOp *user = step_user(s);
	s->answer = user ? lasting(s, user->name) : op_name(node_op(s->g, s->n));
	return true;
}

const char *weft_node_op(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_op", .node = n};
	return step(&s, ask_op) ? s.answer : NULL;
}

const char *weft_node_overload(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_overload", .node = n};
	if (!step(&s, ask_op))
		return NULL;
	const char *dot = strchr(s.answer, '.');
	if (dot && !strstr(s.answer, "::"))
		dot = strchr(dot + 1, '.');
	return dot ? dot + 1 : "";
}

static bool ask_is(NodeStep *s)
{
	TRY(step_node(s) && given_text(s->w, s->function, "the name of the operator", s->text));
	Op op = op_find(s->text);
	const UserOp *user = op ? NULL : userop_find(s->g->ir, s->text);
	s->count = user ? user == step_user(s) : op == node_op(s->g, s->n);
	return op || user || step_error(s, "there is no operator %s", s->text);
}

bool weft_node_is(Weft *w, WeftNode n, const char *op)
{
	NodeStep s = {.w = w, .function = "weft_node_is", .node = n, .text = op};
	return step(&s, ask_is) && s.count;
}

static bool ask_name(NodeStep *s)
{
	TRY(step_node(s));
	s->answer = lasting(s, graph_name(s->g, s->n));
	return true;
}

const char *weft_node_name(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_name", .node = n};
	return step(&s, ask_name) ? s.answer : NULL;
}

static bool set_name(NodeStep *s)
{
	TRY(step_node(s) && given_text(s->w, s->function, "the name", s->text));
	graph_set_name(s->g, s->n, s->text);
	return true;
}

bool weft_node_set_name(Weft *w, WeftNode n, const char *name)
{
	NodeStep s = {.w = w, .function = "weft_node_set_name", .node = n, .text = name};
	return step(&s, set_name);
}

static bool ask_user_name(NodeStep *s)
{
	TRY(step_node(s));
	ConstId c = node_const(s->g, s->n);
	s->answer = node_op(s->g, s->n) == OP_input ? input_of(s->g, s->n)->name
		    : c.i                           ? ir_const_of(s->g->ir, c)->name
						    : "";
	return true;
}

const char *weft_node_user_name(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_user_name", .node = n};
	return step(&s, ask_user_name) ? s.answer : NULL;
}

static bool ask_line(NodeStep *s)
{
	TRY(step_node(s));
	s->answer = ir_loc_text(s->g->ir, node_data(s->g, s->n)->loc);
	return true;
}

const char *weft_node_line(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_line", .node = n};
	return step(&s, ask_line) ? s.answer : NULL;
}

static bool ask_text(NodeStep *s)
{
	Text text;
	TRY(step_node(s));
	text_init(&text, s->w->ctx->scratch);
	graph_print_node(s->g, s->n, &text);
	while (text.n && text.data[text.n - 1] == '\n')
		text.data[--text.n] = 0;
	s->answer = lasting(s, text.data + strspn(text.data, " "));
	return true;
}

const char *weft_node_text(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_text", .node = n};
	return step(&s, ask_text) ? s.answer : NULL;
}

/* ---- types ---- */

bool types_are_equal(const Ir *ir, TypeId a, TypeId b, bool loose)
{
	if (a.i == b.i)
		return true;
	const Type *s = ir_type_of(ir, a), *t = ir_type_of(ir, b);
	if (!a.i || !b.i || s->dtype != t->dtype || s->n != t->n)
		return false;
	for (uint32_t k = 0; k < s->n; k++) {
		if (s->dtype == DT_none) {
			TRY(types_are_equal(ir, s->elem[k], t->elem[k], loose));
			continue;
		}
		bool data = loose && sym_uses_kind(ir->syms, s->dim[k], SYMVAR_UNBACKED) &&
			    sym_uses_kind(ir->syms, t->dim[k], SYMVAR_UNBACKED);
		TRY(data || sym_eq(ir->syms, s->dim[k], t->dim[k]) == YES);
	}
	return true;
}

TypeId step_type(const NodeStep *s)
{
	uint32_t n = node_nresult(s->g, s->n);
	if (s->k < n)
		return node_result_type(s->g, s->n, s->k);
	step_error(s, "node %s has %u results, no result %u", step_name(s, s->n), n, s->k);
	return (TypeId){0};
}

static bool ask_nresult(NodeStep *s)
{
	TRY(step_node(s));
	s->count = node_nresult(s->g, s->n);
	return true;
}

uint32_t weft_node_nresult(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_nresult", .node = n};
	return step(&s, ask_nresult) ? s.count : 0;
}

static bool ask_type(NodeStep *s)
{
	TRY(step_node(s));
	TypeId t = step_type(s);
	s->list = t.i ? ir_type_of(s->g->ir, t) : NULL;
	s->answer = t.i ? lasting(s, type_str(s->g->ir, t)) : NULL;
	return t.i != 0;
}

const char *weft_node_type(Weft *w, WeftNode n, uint32_t k)
{
	NodeStep s = {.w = w, .function = "weft_node_type", .node = n, .k = k};
	return step(&s, ask_type) ? s.answer : NULL;
}

static bool ask_tensor_type(NodeStep *s)
{
	TRY(ask_type(s));
	return ((const Type *)s->list)->dtype != DT_none ||
	       step_error(s, "result %u of node %s is several", s->k, step_name(s, s->n));
}

int32_t weft_node_shape(Weft *w, WeftNode n, uint32_t k, WeftDType *dtype, int64_t shape[12])
{
	NodeStep s = {.w = w, .function = "weft_node_shape", .node = n, .k = k};
	if (!step(&s, ask_tensor_type))
		return -1;
	const Type *t = s.list;
	if (dtype)
		*dtype = dtype_to_api(t->dtype);
	for (uint32_t d = 0; shape && d < t->n; d++)
		if (!sym_is_const(graph_syms(s.g), t->dim[d], &shape[d]))
			shape[d] = -1;
	return (int32_t)t->n;
}

static bool ask_extent(NodeStep *s)
{
	TRY(ask_tensor_type(s));
	const Type *t = s->list;
	if (s->d >= t->n)
		return step_error(s, "node %s has rank %u, no dimension %u", step_name(s, s->n),
				  t->n, s->d);
	s->answer = lasting(s, sym_str(graph_syms(s->g), t->dim[s->d]));
	return true;
}

const char *weft_node_extent(Weft *w, WeftNode n, uint32_t k, uint32_t d)
{
	NodeStep s = {.w = w, .function = "weft_node_extent", .node = n, .k = k, .d = d};
	return step(&s, ask_extent) ? s.answer : NULL;
}

/* ---- operands and readers ---- */

static bool ask_noperand(NodeStep *s)
{
	TRY(step_node(s));
	s->count = node_nin(s->g, s->n);
	return true;
}

uint32_t weft_node_noperand(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_noperand", .node = n};
	return step(&s, ask_noperand) ? s.count : 0;
}

static bool ask_operand(NodeStep *s)
{
	TRY(step_node(s));
	if (s->k >= node_nin(s->g, s->n))
		return step_error(s, "node %s has %u operands, no operand %u", step_name(s, s->n),
				  node_nin(s->g, s->n), s->k);
	s->found = step_give(s, node_in(s->g, s->n, s->k));
	return true;
}

WeftNode weft_node_operand(Weft *w, WeftNode n, uint32_t k)
{
	NodeStep s = {.w = w, .function = "weft_node_operand", .node = n, .k = k};
	step(&s, ask_operand);
	return s.found;
}

static int by_index(const void *a, const void *b)
{
	uint32_t x = ((const WeftNode *)a)->index, y = ((const WeftNode *)b)->index;
	return (x > y) - (x < y);
}

static bool ask_users(NodeStep *s)
{
	TRY(step_node(s));
	uint32_t n = 0, kept = 0;
	WeftNode *list = ARENA_ARRAY(weft_arena(s->w), WeftNode, s->g->nread.data[s->n.i]);
	for (Use u = node_data(s->g, s->n)->first_use; u.i; u = s->g->use.data[u.i].next)
		list[n++] = step_give(s, s->g->use.data[u.i].user);
	if (n)
		qsort(list, n, sizeof *list, by_index);
	for (uint32_t k = 0; k < n; k++)
		if (!kept || list[kept - 1].index != list[k].index)
			list[kept++] = list[k];
	s->list = list;
	s->count = kept;
	return true;
}

const WeftNode *weft_node_users(Weft *w, WeftNode node, uint32_t *n)
{
	NodeStep s = {.w = w, .function = "weft_node_users", .node = node};
	bool ok = step(&s, ask_users);
	if (n)
		*n = ok ? s.count : 0;
	return ok ? s.list : NULL;
}

static bool ask_nread(NodeStep *s)
{
	TRY(step_node(s));
	s->count = node_nuses(s->g, s->n);
	return true;
}

uint32_t weft_node_nread(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_nread", .node = n};
	return step(&s, ask_nread) ? s.count : 0;
}
