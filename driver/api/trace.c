/* The tracing API: weft_trace.h's calls become nodes. */
#include "weft_trace.h"

#include <string.h>

#include "driver/api/given.h"
#include "driver/api/user_ops.h"
#include "frontend/trace.h"
#include "ir/ops/op.h"

struct WeftTrace {
	Weft *w;
	Graph *g;
	const char *name;
	uint32_t id; /* in its values */
	uint32_t ncall;
	bool failed, ended;
};

/* One call of the API, and what it gives. */
typedef struct {
	WeftTrace *t;
	const char *function; /* of the API */
	const char *name, *type;
	const void *data;
	int64_t lo, hi;
	InputKind kind;
	WeftValue value, to;
	const WeftArg *arg;
	uint32_t n;
	int64_t *shape;
	int32_t rank;
	WeftGraph *graph;
} TraceStep;

static bool error(const TraceStep *s, const char *what)
{
	return ctx_error(s->t->w->ctx, s->t->name, "%s: %s", s->name, what);
}

static bool perform(TraceStep *s, bool (*f)(void *))
{
	WeftTrace *t = s->t;
	if (t->failed)
		return false;
	CtxMark mark = ctx_mark(t->w->ctx);
	t->w->ctx->file = t->name;
	t->failed = !boundary(t->w, f, s);
	t->failed |= !t->w->dead && !ctx_first_only(t->w->ctx, mark);
	return !t->failed;
}

static bool ready(const TraceStep *s)
{
	graph_enter(s->t->g);
	return !s->t->ended || ctx_error(s->t->w->ctx, s->t->name, "%s: the trace has ended", s->name ? s->name : s->function);
}

/* The same where the caller gives a name. */
static bool ready_named(const TraceStep *s)
{
	TRY(ready(s));
	if (s->name && *s->name)
		return true;
	return ctx_error(s->t->w->ctx, s->t->name, "%s: the name is %s", s->function, s->name ? "empty" : "missing: NULL");
}

/* ---- beginning and end ---- */

typedef struct {
	Weft *w;
	const char *name;
	WeftTrace *out;
} Begin;

static bool begin(void *arg)
{
	Begin *b = arg;
	Arena *arena = weft_arena(b->w);
	TRY(given_text(b->w, "weft_trace_new", "the name", b->name));
	WeftTrace *t = ARENA_NEW(arena, WeftTrace);
	*t = (WeftTrace){.w = b->w, .name = arena_strdup(arena, b->name), .id = ++b->w->ntrace};
	t->g = graph_new(user_ir(b->w), "main");
	b->out = t;
	return true;
}

WeftTrace *weft_trace_new(Weft *w, const char *name)
{
	Begin b = {.w = w, .name = name};
	return boundary(w, begin, &b) ? b.out : NULL;
}

static bool end(void *arg)
{
	TraceStep *s = arg;
	TRY(ready(s));
	s->t->ended = true;
	if (!s->t->g->output.n)
		return ctx_error(s->t->w->ctx, s->t->name, "the model has no output");
	TRY(graph_verify(s->t->g));
	s->graph = graph_wrap(s->t->w, s->t->g, s->t->name);
	return true;
}

WeftGraph *weft_trace_end(WeftTrace *t)
{
	TraceStep s = {.t = t, .name = "weft_trace_end"};
	return t && perform(&s, end) ? s.graph : NULL;
}

/* ---- inputs ---- */

static WeftValue value_of(const WeftTrace *t, Node n)
{
	return (WeftValue){n.i, t->id};
}

static bool node_of(const TraceStep *s, WeftValue v, Node *out)
{
	const WeftTrace *t = s->t;
	*out = (Node){v.node};
	if (!v.node)
		return error(s, "no value");
	if (v.trace != t->id || v.node >= t->g->node.n)
		return error(s, "a value of another trace");
	return node_op(t->g, *out) != OP_none || error(s, "a value of an inverse, which is there in that only");
}

static bool add_symbol(void *arg)
{
	TraceStep *s = arg;
	SymTab *syms = s->t->g->ir->syms;
	TRY(ready_named(s));
	if (!text_is_identifier(s->name))
		return error(s, "a size's name must be an identifier");
	if (sym_find(syms, s->name, (uint32_t)strlen(s->name)).i)
		return error(s, "there is a size of that name already");
	if (s->lo < 0 || s->hi < s->lo)
		return error(s, "a size's range begins at 0 or more and is not empty");
	sym_var(syms, arena_strdup(weft_arena(s->t->w), s->name), SYMVAR_SIZE, s->lo, s->hi);
	return true;
}

void weft_trace_symbol(WeftTrace *t, const char *name, int64_t lo, int64_t hi)
{
	TraceStep s = {.t = t, .function = "weft_trace_symbol", .name = name, .lo = lo, .hi = hi};
	if (t)
		perform(&s, add_symbol);
}

/* Inputs, parameters and state have names of one kind: gradients go by them. */
static bool is_free(const TraceStep *s)
{
	const Graph *g = s->t->g;
	for (uint32_t k = 0; k < g->input.n; k++)
		if (!strcmp(g->input.data[k].name, s->name))
			return ctx_error(s->t->w->ctx, s->t->name, "%s: there is %s of that name already", s->name,
					 g->input.data[k].kind == INPUT_USER ? "an input" : "a parameter");
	for (uint32_t k = 1; k < g->ir->constant.n; k++)
		if (g->ir->constant.data[k].is_param && !strcmp(g->ir->constant.data[k].name, s->name))
			return error(s, "there is a parameter of that name already");
	return true;
}

static bool read_type(const TraceStep *s, TypeId *out)
{
	Ir *ir = s->t->g->ir;
	if (!s->type)
		return error(s, "its type is missing: NULL");
	*out = type_parse(ir, s->type, arena_printf(ir->ctx->scratch, "%s: type of %s", s->t->name, s->name));
	return out->i && (ir_type_of(ir, *out)->dtype != DT_none || error(s, "its type is several"));
}

static bool add_input(void *arg)
{
	TraceStep *s = arg;
	Graph *g = s->t->g;
	TypeId type;
	TRY(ready_named(s) && is_free(s) && read_type(s, &type));
	Node n = graph_add_input(g, arena_strdup(weft_arena(s->t->w), s->name), INPUT_USER, type);
	s->value = value_of(s->t, n);
	return true;
}

WeftValue weft_trace_input(WeftTrace *t, const char *name, const char *type)
{
	TraceStep s = {.t = t, .function = "weft_trace_input", .name = name, .type = type};
	return t && perform(&s, add_input) ? s.value : (WeftValue){0};
}

static bool make_constant(const TraceStep *s, ConstId *out)
{
	Ir *ir = s->t->g->ir;
	Arena *arena = weft_arena(s->t->w);
	TypeId id;
	TRY(read_type(s, &id));
	const Type t = *ir_type_of(ir, id);
	int64_t *dim = ARENA_ARRAY(arena, int64_t, t.n), numel;
	for (uint32_t k = 0; k < t.n; k++)
		if (!sym_is_const(ir->syms, t.dim[k], &dim[k]))
			return error(s, "its extents must be numbers");
	if (!sym_is_const(ir->syms, type_numel(ir, id), &numel) || numel > INT64_MAX / 16)
		return error(s, "it is too large");
	uint64_t bytes = (uint64_t)numel * dtype_size(t.dtype);
	*out = ir_const(ir, (Const){.name = arena_strdup(arena, s->name), .dtype = t.dtype, .rank = t.n, .dim = dim, .bytes = bytes,
				    .data = s->data ? s->data : arena_calloc(arena, bytes + 1, 1), .is_param = true,
				    .is_buffer = s->kind == INPUT_BUFFER});
	return true;
}

static bool add_constant(void *arg)
{
	TraceStep *s = arg;
	Graph *g = s->t->g;
	ConstId c = {0};
	TRY(ready_named(s) && is_free(s) && make_constant(s, &c));
	if (s->kind == INPUT_USER) {
		s->value = value_of(s->t, b_const(&(Build){.g = g}, c));
		return true;
	}
	const Const *k = ir_const_of(g->ir, c);
	Node n = graph_add_input(g, k->name, s->kind, ir_type_ints(g->ir, k->dtype, k->rank, k->dim));
	g->input.data[g->input.n - 1].init = c;
	s->value = value_of(s->t, n);
	return true;
}

static WeftValue constant(WeftTrace *t, const char *name, const char *type, const void *data, InputKind kind)
{
	TraceStep s = {.t = t, .function = "weft_trace_param", .name = name, .type = type, .data = data, .kind = kind};
	return t && perform(&s, add_constant) ? s.value : (WeftValue){0};
}

WeftValue weft_trace_param(WeftTrace *t, const char *name, const char *type, const void *data)
{
	return constant(t, name, type, data, INPUT_USER);
}

WeftValue weft_trace_variable(WeftTrace *t, const char *name, const char *type, const void *data)
{
	return constant(t, name, type, data, INPUT_PARAM);
}

WeftValue weft_trace_buffer(WeftTrace *t, const char *name, const char *type, const void *data)
{
	return constant(t, name, type, data, INPUT_BUFFER);
}

/* ---- outputs ---- */

static bool is_tensor(const TraceStep *s, Node n)
{
	TypeId t = node_type_id(s->t->g, n);
	return (t.i && ir_type_of(s->t->g->ir, t)->dtype != DT_none) || error(s, "it is no tensor, but several or none");
}

static bool add_output(void *arg)
{
	TraceStep *s = arg;
	Graph *g = s->t->g;
	Node n;
	TRY(ready_named(s) && node_of(s, s->value, &n) && is_tensor(s, n));
	for (uint32_t k = 0; k < g->output.n; k++)
		if (!strcmp(g->output.data[k].name, s->name))
			return error(s, "there is an output of that name already");
	graph_add_output(g, arena_strdup(weft_arena(s->t->w), s->name), n, -1);
	return true;
}

void weft_trace_output(WeftTrace *t, const char *name, WeftValue v)
{
	TraceStep s = {.t = t, .function = "weft_trace_output", .name = name, .value = v};
	if (t)
		perform(&s, add_output);
}

static bool add_assign(void *arg)
{
	TraceStep *s = arg;
	Graph *g = s->t->g;
	Node state, to;
	TRY(ready(s) && node_of(s, s->value, &state) && node_of(s, s->to, &to));
	for (uint32_t k = 0; k < g->input.n; k++) {
		const GraphInput *in = &g->input.data[k];
		if (in->node.i != state.i || in->kind == INPUT_USER)
			continue;
		s->name = in->name;
		for (uint32_t o = 0; o < g->output.n; o++)
			if (g->output.data[o].writes == (int32_t)k)
				return error(s, "it is assigned a second time");
		if (node_type_id(g, to).i != node_type_id(g, state).i)
			return ctx_error(s->t->w->ctx, s->t->name, "%s is %s and is assigned %s", in->name,
					 arena_strdup(g->ir->ctx->scratch, type_str(g->ir, node_type_id(g, state))),
					 node_type_id(g, to).i ? type_str(g->ir, node_type_id(g, to)) : "nothing");
		graph_add_output(g, in->name, to, (int32_t)k);
		return true;
	}
	return error(s, "it takes a variable or a buffer");
}

void weft_trace_assign(WeftTrace *t, WeftValue state, WeftValue to)
{
	TraceStep s = {.t = t, .name = "weft_trace_assign", .value = state, .to = to};
	if (t)
		perform(&s, add_assign);
}

/* ---- calls ---- */

static bool take_values(const TraceStep *s, const WeftArg *a, TraceArg *out)
{
	uint32_t n = a->kind == WEFT_ARG_VALUES ? a->n : 1;
	Node *value = ARENA_ARRAY(s->t->w->ctx->scratch, Node, n);
	for (uint32_t k = 0; k < n; k++)
		TRY(node_of(s, a->kind == WEFT_ARG_VALUES ? a->u.values[k] : a->u.value, &value[k]));
	out->is_values = true;
	out->is_list = a->kind == WEFT_ARG_VALUES;
	out->value = value;
	out->n = n;
	return true;
}

static Attr attr_of(Ir *ir, const WeftArg *a)
{
	Sym *v;
	switch (a->kind) {
	case WEFT_ARG_BOOL:
		return attr_bool(a->u.b);
	case WEFT_ARG_INT:
		return attr_int(ir, a->u.i);
	case WEFT_ARG_FLOAT:
		return attr_float(a->u.f);
	case WEFT_ARG_TEXT:
		return attr_str(ir, a->u.text);
	case WEFT_ARG_INTS:
		v = ARENA_ARRAY(ir->ctx->scratch, Sym, a->n);
		for (uint32_t k = 0; k < a->n; k++)
			v[k] = sym_int(ir->syms, a->u.ints[k]);
		return attr_ints(v, a->n);
	case WEFT_ARG_FLOATS:
		return (Attr){ATTR_floats, a->n, {.floats = a->u.floats}};
	case WEFT_ARG_BOOLS:
		return (Attr){ATTR_bools, a->n, {.bools = a->u.bools}};
	default:
		return attr_none();
	}
}

/* What an argument points to is there. */
static bool is_whole(const TraceStep *s, uint32_t k)
{
	const WeftArg *a = &s->arg[k];
	const void *list = a->kind == WEFT_ARG_VALUES   ? (const void *)a->u.values
			   : a->kind == WEFT_ARG_TEXT   ? (const void *)a->u.text
			   : a->kind == WEFT_ARG_INTS   ? (const void *)a->u.ints
			   : a->kind == WEFT_ARG_FLOATS ? (const void *)a->u.floats
							: (const void *)a->u.bools;
	bool points = a->kind == WEFT_ARG_TEXT || (a->n && (a->kind == WEFT_ARG_VALUES || a->kind >= WEFT_ARG_INTS));
	if ((unsigned)a->kind > WEFT_ARG_BOOLS)
		return ctx_error(s->t->w->ctx, s->t->name, "%s: argument %u is of kind %d, which there is not", s->name, k, (int)a->kind);
	return !points || list || ctx_error(s->t->w->ctx, s->t->name, "%s: argument %u is missing: NULL", s->name, k);
}

static bool add_call(void *arg)
{
	TraceStep *s = arg;
	WeftTrace *t = s->t;
	Arena *scratch = t->w->ctx->scratch;
	TRY(ready_named(s) && given_list(t->w, s->name, "arguments", s->arg, s->n));
	if (s->n > MAX_ARGS)
		return error(s, "more arguments than any operator has");
	TraceArg *a = arena_calloc(scratch, s->n, sizeof *a);
	Build b = {.g = t->g, .where = arena_printf(scratch, "%s: call %u (%s)", t->name, ++t->ncall, s->name)};
	for (uint32_t k = 0; k < s->n; k++) {
		const WeftArg *from = &s->arg[k];
		a[k].name = from->name;
		TRY(is_whole(s, k));
		if (from->kind == WEFT_ARG_VALUE || from->kind == WEFT_ARG_VALUES)
			TRY(take_values(s, from, &a[k]));
		else
			a[k].attr = attr_of(t->g->ir, from);
	}
	Node n = trace_call(&b, s->name, a, s->n);
	s->value = value_of(t, n);
	return n.i != 0;
}

WeftValue weft_trace_call(WeftTrace *t, const char *op, const WeftArg *arg, uint32_t n)
{
	TraceStep s = {.t = t, .function = "weft_trace_call", .name = op, .arg = arg, .n = n};
	return t && perform(&s, add_call) ? s.value : (WeftValue){0};
}

static bool get_result(void *arg)
{
	TraceStep *s = arg;
	Node n;
	TRY(ready(s) && node_of(s, s->value, &n));
	TypeId id = node_type_id(s->t->g, n);
	const Type *type = id.i ? ir_type_of(s->t->g->ir, id) : NULL;
	if (!type || type->dtype != DT_none || s->n >= type->n)
		return error(s, "there is no such result");
	s->value = value_of(s->t, b_get(&(Build){.g = s->t->g}, n, s->n));
	return true;
}

WeftValue weft_trace_result(WeftTrace *t, WeftValue several, uint32_t k)
{
	TraceStep s = {.t = t, .name = "weft_trace_result", .value = several, .n = k};
	return t && perform(&s, get_result) ? s.value : (WeftValue){0};
}

static bool get_shape(void *arg)
{
	TraceStep *s = arg;
	const Graph *g = s->t->g;
	Node n;
	TRY(ready(s) && given(s->t->w, s->name, "room for the extents", s->shape) && node_of(s, s->value, &n) && is_tensor(s, n));
	s->rank = (int32_t)node_rank(g, n);
	for (uint32_t k = 0; k < node_rank(g, n); k++)
		if (!sym_is_const(g->ir->syms, node_dim(g, n, k), &s->shape[k]))
			s->shape[k] = -1;
	return true;
}

int32_t weft_trace_shape(WeftTrace *t, WeftValue v, int64_t shape[12])
{
	TraceStep s = {.t = t, .name = "weft_trace_shape", .value = v, .shape = shape};
	return t && perform(&s, get_shape) ? s.rank : -1;
}

/* ---- blocks with an inverse ---- */

/* What its inverse computes becomes a graph of its own: nodes from handle `first` on, those that
 * stand for the results first. */
typedef struct {
	TraceStep step; /* the first, for perform */
	const WeftValue *x;
	WeftValue *in, *y, *back, *stand; /* what forward takes and gives, and the inverse gives and
	                                     takes */
	uint32_t nx, ny, call, first;
	bool has_functions;
	ARRAY(Node) capture; /* what else the inverse reads */
	Graph *body;
	Node *map; /* by node from `first` on: in the body */
} Block;

static bool block_error(const Block *k, const char *what)
{
	return ctx_error(k->step.t->w->ctx, k->step.t->name, "call %u (weft_invertible): block \"%s\": %s", k->call, k->step.name, what);
}

static bool block_value(const Block *k, WeftValue v, const char *of, uint32_t number, Node *out)
{
	const WeftTrace *t = k->step.t;
	*out = (Node){v.node};
	if (!v.node)
		return block_error(k, arena_printf(t->w->ctx->scratch, "%s gives no value %u", of, number));
	TRY(node_of(&k->step, v, out));
	return is_tensor(&k->step, *out);
}

static Build block_build(const Block *k)
{
	const WeftTrace *t = k->step.t;
	return (Build){.g = t->g, .where = arena_printf(t->w->ctx->scratch, "%s: call %u (weft_invertible)", t->name, k->call)};
}

/* The region that it is begins. */
static bool begin_block(void *arg)
{
	Block *k = arg;
	WeftTrace *t = k->step.t;
	Arena *arena = weft_arena(t->w);
	TRY(ready_named(&k->step));
	k->call = ++t->ncall;
	if (!k->x || !k->y || !k->has_functions)
		return block_error(k, "it takes values, room for values, and two functions, not NULL");
	if (!k->nx || !k->ny)
		return block_error(k, "it takes and gives one value at least");
	k->in = ARENA_ARRAY(arena, WeftValue, k->nx);
	k->back = ARENA_ARRAY(arena, WeftValue, k->nx);
	k->stand = ARENA_ARRAY(arena, WeftValue, k->ny);
	Build b = block_build(k);
	for (uint32_t j = 0; j < k->nx; j++) {
		Node n;
		TRY(node_of(&k->step, k->x[j], &n) && is_tensor(&k->step, n));
		n = b_node(&b, OP_checkpoint, &n, 1, (Attr[]){attr_none(), attr_str(t->g->ir, "begin")}, 2);
		k->in[j] = value_of(t, n);
	}
	return true;
}

/* Values for the inverse, which nothing that is built of them sees through. */
static bool begin_inverse(void *arg)
{
	Block *k = arg;
	WeftTrace *t = k->step.t;
	TRY(ready(&k->step));
	Build b = block_build(k);
	k->first = t->g->node.n;
	for (uint32_t j = 0; j < k->ny; j++) {
		Node n;
		TRY(block_value(k, k->y[j], "forward", j, &n));
		k->stand[j] = value_of(t, b_node(&b, OP_barrier, &n, 1, NULL, 0));
	}
	return true;
}

static bool of_inverse(const Block *k, Node n)
{
	Op op = node_op(k->step.t->g, n);
	return n.i >= k->first && op != OP_input && op != OP_constant;
}

static Node body_value(Block *k, Node n)
{
	const Graph *g = k->step.t->g;
	if (!n.i)
		return n;
	if (of_inverse(k, n))
		return k->map[n.i - k->first];
	for (uint32_t j = 0; j < k->capture.n; j++)
		if (k->capture.data[j].i == n.i)
			return k->body->input.data[k->ny + j].node;
	array_push(g->ir->ctx->scratch, &k->capture, n);
	return graph_add_input(k->body, "", INPUT_USER, node_type_id(g, n));
}

static void copy_node(Block *k, Node n)
{
	const Graph *g = k->step.t->g;
	const NodeData d = *node_data(g, n);
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, d.nin);
	for (uint32_t j = 0; j < d.nin; j++)
		in[j] = body_value(k, node_in(g, n, j));
	k->map[n.i - k->first] = graph_add(k->body, (Node){0}, d.op, in, d.nin, d.attr, d.type, d.loc);
}

static bool make_inverse(Block *k)
{
	Graph *g = k->step.t->g;
	Arena *scratch = g->ir->ctx->scratch;
	Node from = {k->stand[0].node}, *back = ARENA_ARRAY(scratch, Node, k->nx);
	bool *needed = ARENA_ARRAY(scratch, bool, g->node.n - k->first);
	k->map = ARENA_ARRAY(scratch, Node, g->node.n - k->first);
	k->body = graph_new(g->ir, "inverse");
	k->body->scope = g->scope;
	for (uint32_t j = 0; j < k->nx; j++) {
		TRY(block_value(k, k->back[j], "the inverse", j, &back[j]));
		if (of_inverse(k, back[j]))
			needed[back[j].i - k->first] = true;
	}
	for (Node n = g->last; n.i != from.i; n = node_prev(g, n))
		for (uint32_t j = 0; of_inverse(k, n) && needed[n.i - k->first] && j < node_nin(g, n); j++)
			if (of_inverse(k, node_in(g, n, j)))
				needed[node_in(g, n, j).i - k->first] = true;
	for (uint32_t j = 0; j < k->ny; j++) {
		Node stand = {k->stand[j].node};
		k->map[stand.i - k->first] = graph_add_input(k->body, "", INPUT_USER, node_type_id(g, stand));
	}
	for (Node n = from; n.i; n = node_next(g, n))
		if (of_inverse(k, n) && needed[n.i - k->first] && !k->map[n.i - k->first].i)
			copy_node(k, n);
	for (uint32_t j = 0; j < k->nx; j++)
		graph_add_output(k->body, arena_printf(weft_arena(k->step.t->w), "x%u", j), body_value(k, back[j]), -1);
	return true;
}

/* What the inverse computes is gone from the model. */
static bool erase_inverse(const Block *k)
{
	Graph *g = k->step.t->g;
	bool read = false;
	for (uint32_t j = 0; j < g->output.n; j++)
		read |= of_inverse(k, g->output.data[j].node);
	for (Node n = g->last, prev; n.i && n.i >= k->first && !read; n = prev) {
		prev = node_prev(g, n);
		if (!of_inverse(k, n))
			continue;
		read = node_nuses(g, n) != 0;
		if (!read)
			graph_erase(g, n);
	}
	return !read || block_error(k, "what its inverse computes is read outside of it");
}

static bool end_block(void *arg)
{
	Block *k = arg;
	Graph *g = k->step.t->g;
	TRY(ready(&k->step) && make_inverse(k) && erase_inverse(k));
	uint32_t n = 0;
	Build b = block_build(k);
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, k->ny + k->nx + k->capture.n);
	for (uint32_t j = 0; j < k->ny; j++)
		in[n++] = (Node){k->y[j].node};
	for (uint32_t j = 0; j < k->nx; j++)
		in[n++] = (Node){k->in[j].node};
	for (uint32_t j = 0; j < k->capture.n; j++)
		in[n++] = k->capture.data[j];
	const Attr attr[] = {attr_int(g->ir, k->ny), attr_int(g->ir, k->nx), attr_int(g->ir, k->capture.n), attr_graph(k->body),
			     attr_str(g->ir, k->step.name)};
	Node block = b_node(&b, OP_invertible, in, n, attr, 5);
	TRY(block.i);
	for (uint32_t j = 0; j < k->ny; j++)
		k->y[j] = value_of(k->step.t, b_get(&b, block, j));
	return true;
}

void weft_invertible(WeftTrace *t, const char *name, const WeftValue *x, uint32_t nx, WeftValue *y, uint32_t ny, WeftBlockFn forward,
		     WeftBlockFn inverse, void *user)
{
	Block k = {.step = {.t = t, .function = "weft_invertible", .name = name}, .x = x, .y = y, .nx = nx, .ny = ny, .has_functions = forward && inverse};
	bool ok = t && perform(&k.step, begin_block);
	if (!y)
		return;
	memset(y, 0, ny * sizeof *y); /* which x may be */
	if (ok)
		forward(t, k.in, y, user);
	ok = ok && perform(&k.step, begin_inverse);
	if (ok)
		inverse(t, k.stand, k.back, user);
	if (!ok || !perform(&k.step, end_block))
		memset(y, 0, ny * sizeof *y);
}
