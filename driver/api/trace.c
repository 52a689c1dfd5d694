/* The tracing API: weft_trace.h's calls become nodes. */
#include "driver/api/trace.h"

#include <string.h>

#include "driver/api/user_ops.h"
#include "frontend/trace.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/op/userop.h"

bool tracing_error(const TraceStep *s, const char *what)
{
	return ctx_error(s->t->w->ctx, s->t->name, "%s: %s", s->name, what);
}

bool tracing_perform(TraceStep *s, bool (*f)(void *))
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

bool tracing_ready(const TraceStep *s)
{
	return !s->t->ended || ctx_error(s->t->w->ctx, s->t->name, "%s: the trace has ended",
					 s->name ? s->name : s->function);
}

/* Does as tracing_ready, and checks that the caller gives a name. */
bool tracing_ready_named(const TraceStep *s)
{
	TRY(tracing_ready(s));
	if (s->name && *s->name)
		return true;
	return ctx_error(s->t->w->ctx, s->t->name, "%s: the name is %s", s->function,
			 s->name ? "empty" : "missing: NULL");
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
	*t = (WeftTrace){.w = b->w, .name = arena_strdup(arena, b->name), .gives = NOT_SAID};
	t->scope = &t->model;
	t->model = (TraceScope){.g = graph_new(user_ir(b->w), "main"), .id = ++b->w->ntrace};
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
	TRY(tracing_ready(s));
	s->t->ended = true;
	if (s->t->scope->outer)
		return tracing_error(s, "a body has not ended");
	if (!s->t->model.g->output.n)
		return ctx_error(s->t->w->ctx, s->t->name, "the model has no output");
	TRY(graph_verify(s->t->model.g));
	s->graph = graph_wrap(s->t->w, s->t->model.g, s->t->name);
	return true;
}

WeftGraph *weft_trace_end(WeftTrace *t)
{
	TraceStep s = {.t = t, .name = "weft_trace_end"};
	return t && tracing_perform(&s, end) ? s.graph : NULL;
}

/* ---- inputs ---- */

WeftValue tracing_value(const WeftTrace *t, Node n)
{
	return (WeftValue){n.i, t->scope->id};
}

/* Returns the value that names a node of the model's own graph, whatever the scope is. */
static WeftValue model_value(const WeftTrace *t, Node n)
{
	return (WeftValue){n.i, t->model.id};
}

bool tracing_owner(const TraceStep *s, WeftValue v, TraceScope **scope, Node *out)
{
	TraceScope *at = s->t->scope;
	*out = (Node){v.node};
	if (!v.node)
		return tracing_error(s, "no value");
	while (at && at->id != v.trace)
		at = at->outer;
	if (!at || v.node >= at->g->node.n)
		return tracing_error(s, "a value of another trace, or of a body that has ended");
	*scope = at;
	return node_op(at->g, *out) != OP_none ||
	       tracing_error(s, "a value of an inverse, which is there in that only");
}

/* Returns what is node n of `owner` in scope `at`: an input of each body between them. */
static Node captured(const TraceStep *s, TraceScope *at, const TraceScope *owner, Node n)
{
	if (at == owner)
		return n;
	Node outside = captured(s, at->outer, owner, n);
	Captured *c = at->captured;
	for (uint32_t k = 0; k < c->value.n; k++)
		if (c->value.data[k].i == outside.i)
			return at->g->input.data[at->nin + k].node;
	array_push(weft_arena(s->t->w), &c->value, outside);
	return graph_add_input(at->g, "", INPUT_USER, node_type_id(at->outer->g, outside));
}

bool tracing_node(const TraceStep *s, WeftValue v, Node *out)
{
	TraceScope *owner;
	TRY(tracing_owner(s, v, &owner, out));
	if (owner == s->t->scope)
		return true;
	TRY(tracing_is_tensor(s, owner, *out));
	*out = captured(s, s->t->scope, owner, *out);
	return true;
}

bool tracing_is_tensor(const TraceStep *s, const TraceScope *scope, Node n)
{
	TypeId t = node_type_id(scope->g, n);
	return (t.i && ir_type_of(scope->g->ir, t)->dtype != DT_none) ||
	       tracing_error(s, "it is no tensor, but several or none");
}

Build tracing_build(WeftTrace *t, const char *where)
{
	return (Build){.g = t->scope->g, .loc = t->loc, .where = where};
}

/* Makes a size between lo and hi, by the name that the caller gave; a SIZE is an extent and not
 * negative. Returns none after ctx_error. */
static Sym new_size(const TraceStep *s, SymVarKind kind)
{
	SymTab *syms = graph_syms(s->t->model.g);
	const char *wrong = NULL;
	if (!text_is_identifier(s->name))
		wrong = "a size's name must be an identifier";
	else if (sym_find(syms, s->name, (uint32_t)strlen(s->name)).i)
		wrong = "there is a size of that name already";
	else if (s->lo == INT64_MIN || s->hi < s->lo)
		wrong = "a size's range begins at -INT64_MAX or more and is not empty";
	else if (kind == SYMVAR_SIZE && s->lo < 0)
		wrong = "the range of an extent begins at 0 or more";
	if (wrong) {
		tracing_error(s, wrong);
		return (Sym){0};
	}
	return sym_var(syms, arena_strdup(weft_arena(s->t->w), s->name), kind, s->lo, s->hi);
}

static bool add_symbol(void *arg)
{
	TraceStep *s = arg;
	return tracing_ready_named(s) && new_size(s, SYMVAR_SIZE).i;
}

void weft_trace_symbol(WeftTrace *t, const char *name, int64_t lo, int64_t hi)
{
	TraceStep s = {.t = t, .function = "weft_trace_symbol", .name = name, .lo = lo, .hi = hi};
	if (t)
		tracing_perform(&s, add_symbol);
}

/* Checks that the name is free. Inputs, parameters and state have names of one kind: gradients
 * go by them. */
static bool is_free(const TraceStep *s)
{
	const char *owner = graph_name_owner(s->t->model.g, s->name);
	return !owner || ctx_error(s->t->w->ctx, s->t->name, "%s: there is %s of that name already",
				   s->name, owner);
}

static bool read_type(const TraceStep *s, TypeId *out)
{
	const Graph *g = s->t->model.g;
	Ir *ir = g->ir;
	if (!s->type)
		return tracing_error(s, "its type is missing: NULL");
	*out = type_parse(g, s->type,
			  arena_printf(ir->ctx->scratch, "%s: type of %s", s->t->name, s->name));
	return out->i &&
	       (ir_type_of(ir, *out)->dtype != DT_none || tracing_error(s, "its type is several"));
}

static bool add_input(void *arg)
{
	TraceStep *s = arg;
	Graph *g = s->t->model.g;
	TypeId type;
	TRY(tracing_ready_named(s) && is_free(s) && read_type(s, &type));
	Node n = graph_add_input(g, arena_strdup(weft_arena(s->t->w), s->name), INPUT_USER, type);
	s->value = model_value(s->t, n);
	return true;
}

WeftValue weft_trace_input(WeftTrace *t, const char *name, const char *type)
{
	TraceStep s = {.t = t, .function = "weft_trace_input", .name = name, .type = type};
	return t && tracing_perform(&s, add_input) ? s.value : (WeftValue){0};
}

static bool make_constant(const TraceStep *s, ConstId *out)
{
	Ir *ir = s->t->model.g->ir;
	Arena *arena = weft_arena(s->t->w);
	TypeId id;
	TRY(read_type(s, &id));
	const Type t = *ir_type_of(ir, id);
	int64_t *dim = ARENA_ARRAY(arena, int64_t, t.n), numel;
	for (uint32_t k = 0; k < t.n; k++)
		if (!sym_is_const(ir->syms, t.dim[k], &dim[k]))
			return tracing_error(s, "its extents must be numbers");
	if (!sym_is_const(ir->syms, type_numel(ir, id), &numel) || numel > INT64_MAX / 16)
		return tracing_error(s, "it is too large");
	uint64_t bytes = (uint64_t)numel * dtype_size(t.dtype);
	*out = ir_const(ir, (Const){.name = arena_strdup(arena, s->name),
				    .dtype = t.dtype,
				    .rank = t.n,
				    .dim = dim,
				    .bytes = bytes,
				    .data = s->data ? s->data : arena_calloc(arena, bytes + 1, 1),
				    .is_param = true,
				    .is_buffer = s->kind == INPUT_BUFFER});
	return true;
}

static bool add_constant(void *arg)
{
	TraceStep *s = arg;
	Graph *g = s->t->model.g;
	ConstId c = {0};
	TRY(tracing_ready_named(s) && is_free(s) && make_constant(s, &c));
	if (s->kind == INPUT_USER) {
		s->value = model_value(s->t, b_const(&(Build){.g = g}, c));
		return true;
	}
	const Const *k = ir_const_of(g->ir, c);
	Node n = graph_add_input(g, k->name, s->kind,
				 ir_type_ints(g->ir, k->dtype, k->rank, k->dim));
	g->input.data[g->input.n - 1].init = c;
	s->value = model_value(s->t, n);
	return true;
}

static WeftValue constant(WeftTrace *t, const char *name, const char *type, const void *data,
			  InputKind kind)
{
	TraceStep s = {.t = t,
		       .function = "weft_trace_param",
		       .name = name,
		       .type = type,
		       .data = data,
		       .kind = kind};
	return t && tracing_perform(&s, add_constant) ? s.value : (WeftValue){0};
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

/* Checks that no body is traced: only the model gives outputs and has state. */
static bool outside(const TraceStep *s)
{
	return !s->t->scope->outer ||
	       tracing_error(s,
			     "not inside of a body: that gives what its function stores in out[]");
}

static bool add_output(void *arg)
{
	TraceStep *s = arg;
	Graph *g = s->t->model.g;
	Node n;
	TRY(tracing_ready_named(s) && outside(s) && tracing_node(s, s->value, &n) &&
	    tracing_is_tensor(s, s->t->scope, n));
	for (uint32_t k = 0; k < g->output.n; k++)
		if (!strcmp(g->output.data[k].name, s->name))
			return tracing_error(s, "there is an output of that name already");
	graph_add_output(g, arena_strdup(weft_arena(s->t->w), s->name), n, -1);
	return true;
}

void weft_trace_output(WeftTrace *t, const char *name, WeftValue v)
{
	TraceStep s = {.t = t, .function = "weft_trace_output", .name = name, .value = v};
	if (t)
		tracing_perform(&s, add_output);
}

static bool add_assign(void *arg)
{
	TraceStep *s = arg;
	Graph *g = s->t->model.g;
	Node state, to;
	TRY(tracing_ready(s) && outside(s) && tracing_node(s, s->value, &state) &&
	    tracing_node(s, s->to, &to));
	for (uint32_t k = 0; k < g->input.n; k++) {
		const GraphInput *in = &g->input.data[k];
		if (in->node.i != state.i)
			continue;
		s->name = in->name;
		if (graph_writer(g, k) >= 0)
			return tracing_error(s, "it is assigned a second time");
		if (node_type_id(g, to).i != node_type_id(g, state).i)
			return ctx_error(
				s->t->w->ctx, s->t->name, "%s is %s and is assigned %s", in->name,
				arena_strdup(g->ir->ctx->scratch,
					     type_str(g->ir, node_type_id(g, state))),
				node_type_id(g, to).i ? type_str(g->ir, node_type_id(g, to))
						      : "nothing");
		graph_add_output(g, in->name, to, (int32_t)k);
		return true;
	}
	return tracing_error(s, "it takes a variable, a buffer or an input");
}

void weft_trace_assign(WeftTrace *t, WeftValue state, WeftValue to)
{
	TraceStep s = {.t = t, .name = "weft_trace_assign", .value = state, .to = to};
	if (t)
		tracing_perform(&s, add_assign);
}

/* ---- calls ---- */

static bool take_values(const TraceStep *s, const WeftArg *a, TraceArg *out)
{
	uint32_t n = a->kind == WEFT_ARG_VALUES ? a->n : 1;
	Node *value = ARENA_ARRAY(s->t->w->ctx->scratch, Node, n);
	for (uint32_t k = 0; k < n; k++) {
		const WeftValue v = a->kind == WEFT_ARG_VALUES ? a->u.values[k] : a->u.value;
		bool absent = a->kind == WEFT_ARG_VALUES && !v.node && !v.trace;
		value[k] = (Node){0};
		TRY(absent || tracing_node(s, v, &value[k]));
	}
	out->is_values = true;
	out->is_list = a->kind == WEFT_ARG_VALUES;
	out->value = value;
	out->n = n;
	return true;
}

/* Parses an expression of sizes. Returns none after ctx_error. */
static Sym size_of(const TraceStep *s, const char *text)
{
	SymTab *syms = graph_syms(s->t->scope->g);
	const char *at = text;
	Sym e = text ? sym_parse(syms, &at) : (Sym){0};
	if (e.i && !*at)
		return e;
	ctx_error(s->t->w->ctx, s->t->name, "%s: \"%s\" is no expression of sizes", s->name,
		  text ? text : "(NULL)");
	return (Sym){0};
}

static bool attr_of_sizes(const TraceStep *s, const WeftArg *a, Attr *out)
{
	const uint32_t n = a->kind == WEFT_ARG_SIZE ? 1 : a->n;
	Sym *v = ARENA_ARRAY(s->t->w->ctx->scratch, Sym, n);
	for (uint32_t k = 0; k < n; k++) {
		v[k] = size_of(s, a->kind == WEFT_ARG_SIZE ? a->u.text : a->u.texts[k]);
		TRY(v[k].i);
	}
	*out = a->kind == WEFT_ARG_SIZE ? attr_sym(v[0]) : attr_ints(v, a->n);
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
	case WEFT_ARG_COMPLEX:
		return attr_complex(a->u.floats[0], a->u.floats[1]);
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

/* Checks that argument k is of a known kind, and that what it points to is there. */
static bool is_whole(const TraceStep *s, uint32_t k)
{
	const WeftArg *a = &s->arg[k];
	const void *list = a->kind == WEFT_ARG_VALUES    ? (const void *)a->u.values
			   : a->kind == WEFT_ARG_TEXT    ? (const void *)a->u.text
			   : a->kind == WEFT_ARG_INTS    ? (const void *)a->u.ints
			   : a->kind == WEFT_ARG_FLOATS  ? (const void *)a->u.floats
			   : a->kind == WEFT_ARG_COMPLEX ? (const void *)a->u.floats
			   : a->kind == WEFT_ARG_SIZE    ? (const void *)a->u.text
			   : a->kind == WEFT_ARG_SIZES   ? (const void *)a->u.texts
							 : (const void *)a->u.bools;
	bool points = a->kind == WEFT_ARG_TEXT || a->kind == WEFT_ARG_COMPLEX ||
		      (a->n && (a->kind == WEFT_ARG_VALUES || a->kind >= WEFT_ARG_INTS));
	if ((unsigned)a->kind > WEFT_ARG_COMPLEX)
		return ctx_error(s->t->w->ctx, s->t->name,
				 "%s: argument %u is of kind %d, which there is not", s->name, k,
				 (int)a->kind);
	return !points || list ||
	       ctx_error(s->t->w->ctx, s->t->name, "%s: argument %u is missing: NULL", s->name, k);
}

static bool add_call(void *arg)
{
	TraceStep *s = arg;
	WeftTrace *t = s->t;
	Arena *scratch = t->w->ctx->scratch;
	TRY(tracing_ready_named(s) && given_list(t->w, s->name, "arguments", s->arg, s->n));
	if (s->n > MAX_ARGS)
		return tracing_error(s, "more arguments than any operator has");
	TraceArg *a = arena_calloc(scratch, s->n, sizeof *a);
	Build b = tracing_build(
		t, arena_printf(scratch, "%s: call %u (%s)", t->name, ++t->ncall, s->name));
	for (uint32_t k = 0; k < s->n; k++) {
		const WeftArg *from = &s->arg[k];
		a[k].name = from->name;
		TRY(is_whole(s, k));
		if (from->kind == WEFT_ARG_VALUE || from->kind == WEFT_ARG_VALUES)
			TRY(take_values(s, from, &a[k]));
		else if (from->kind == WEFT_ARG_SIZE || from->kind == WEFT_ARG_SIZES)
			TRY(attr_of_sizes(s, from, &a[k].attr));
		else
			a[k].attr = attr_of(t->scope->g->ir, from);
	}
	Node n = trace_call(&b, s->name, a, s->n);
	s->value = tracing_value(t, n);
	return n.i != 0;
}

WeftValue weft_trace_call(WeftTrace *t, const char *op, const WeftArg *arg, uint32_t n)
{
	TraceStep s = {.t = t, .function = "weft_trace_call", .name = op, .arg = arg, .n = n};
	return t && tracing_perform(&s, add_call) ? s.value : (WeftValue){0};
}

/* Sets *type to that of the step's value, NULL if it has none: an assertion. */
static bool value_type(TraceStep *s, TraceScope **scope, Node *n, const Type **type)
{
	TRY(tracing_ready(s) && tracing_owner(s, s->value, scope, n));
	TypeId id = node_type_id((*scope)->g, *n);
	*type = id.i ? ir_type_of((*scope)->g->ir, id) : NULL;
	return true;
}

static bool get_result(void *arg)
{
	TraceStep *s = arg;
	TraceScope *scope;
	const Type *type;
	Node n;
	TRY(value_type(s, &scope, &n, &type));
	if (!type || type->dtype != DT_none || s->n >= type->n)
		return tracing_error(s, "there is no such result");
	s->value = (WeftValue){b_get(&(Build){.g = scope->g}, n, s->n).i, scope->id};
	return true;
}

WeftValue weft_trace_result(WeftTrace *t, WeftValue several, uint32_t k)
{
	TraceStep s = {.t = t, .name = "weft_trace_result", .value = several, .n = k};
	return t && tracing_perform(&s, get_result) ? s.value : (WeftValue){0};
}

static bool get_nresult(void *arg)
{
	TraceStep *s = arg;
	TraceScope *scope;
	const Type *type;
	Node n;
	TRY(value_type(s, &scope, &n, &type));
	s->rank = !type ? 0 : type->dtype == DT_none ? (int32_t)type->n : -1;
	return true;
}

int32_t weft_trace_nresult(WeftTrace *t, WeftValue v)
{
	TraceStep s = {.t = t, .name = "weft_trace_nresult", .value = v};
	return t && tracing_perform(&s, get_nresult) ? s.rank : -1;
}

static bool get_shape(void *arg)
{
	TraceStep *s = arg;
	TraceScope *scope;
	Node n;
	TRY(tracing_ready(s) && given(s->t->w, s->name, "room for the extents", s->shape) &&
	    tracing_owner(s, s->value, &scope, &n) && tracing_is_tensor(s, scope, n));
	const Graph *g = scope->g;
	s->rank = (int32_t)node_rank(g, n);
	for (uint32_t k = 0; k < node_rank(g, n); k++)
		if (!sym_is_const(graph_syms(g), node_dim(g, n, k), &s->shape[k]))
			s->shape[k] = -1;
	return true;
}

int32_t weft_trace_shape(WeftTrace *t, WeftValue v, int64_t shape[12])
{
	TraceStep s = {.t = t, .name = "weft_trace_shape", .value = v, .shape = shape};
	return t && tracing_perform(&s, get_shape) ? s.rank : -1;
}

static bool get_extent(void *arg)
{
	TraceStep *s = arg;
	TraceScope *scope;
	Node n;
	TRY(tracing_ready(s) && tracing_owner(s, s->value, &scope, &n) &&
	    tracing_is_tensor(s, scope, n));
	if (s->n >= node_rank(scope->g, n))
		return tracing_error(s, "there is no such dimension");
	s->type = arena_strdup(weft_arena(s->t->w),
			       sym_str(graph_syms(scope->g), node_dim(scope->g, n, s->n)));
	return true;
}

const char *weft_trace_extent(WeftTrace *t, WeftValue v, uint32_t dim)
{
	TraceStep s = {.t = t, .name = "weft_trace_extent", .value = v, .n = dim};
	return t && tracing_perform(&s, get_extent) ? s.type : NULL;
}

static bool get_dtype(void *arg)
{
	TraceStep *s = arg;
	TraceScope *scope;
	Node n;
	TRY(tracing_ready(s) && tracing_owner(s, s->value, &scope, &n) &&
	    tracing_is_tensor(s, scope, n));
	s->type = dtype_name(node_dtype(scope->g, n));
	return true;
}

const char *weft_trace_dtype(WeftTrace *t, WeftValue v)
{
	TraceStep s = {.t = t, .name = "weft_trace_dtype", .value = v};
	return t && tracing_perform(&s, get_dtype) ? s.type : NULL;
}

/* ---- integers and sizes ---- */

static bool add_size(void *arg)
{
	TraceStep *s = arg;
	const TraceScope *scope = s->t->scope;
	Node n;
	TRY(tracing_ready_named(s) && tracing_node(s, s->value, &n) &&
	    tracing_is_tensor(s, scope, n));
	if (node_dtype(scope->g, n) != DT_i64 || node_rank(scope->g, n))
		return tracing_error(s, "a size is the value of an i64[]");
	Sym size = new_size(s, SYMVAR_UNBACKED);
	TRY(size.i);
	Build b = tracing_build(s->t, s->name);
	b_to_size(&b, n, size, (Sym){0}, s->name);
	return true;
}

void weft_trace_size(WeftTrace *t, const char *name, WeftValue integer, int64_t lo, int64_t hi)
{
	TraceStep s = {.t = t,
		       .function = "weft_trace_size",
		       .name = name,
		       .value = integer,
		       .lo = lo,
		       .hi = hi};
	if (t)
		tracing_perform(&s, add_size);
}

static bool add_integer(void *arg)
{
	TraceStep *s = arg;
	TRY(tracing_ready(s));
	Sym size = size_of(s, s->type);
	TRY(size.i);
	Build b = tracing_build(s->t, s->name);
	s->value = tracing_value(s->t, b_from_size(&b, size));
	return true;
}

WeftValue weft_trace_integer(WeftTrace *t, const char *size)
{
	TraceStep s = {.t = t, .name = "weft_trace_integer", .type = size};
	return t && tracing_perform(&s, add_integer) ? s.value : (WeftValue){0};
}

/* ---- lines ---- */

static bool set_line(void *arg)
{
	TraceStep *s = arg;
	TRY(tracing_ready(s));
	s->t->loc = s->type ? ir_loc(s->t->model.g->ir, s->type) : (LocId){0};
	return true;
}

void weft_trace_line(WeftTrace *t, const char *line)
{
	TraceStep s = {.t = t, .name = "weft_trace_line", .type = line};
	if (t)
		tracing_perform(&s, set_line);
}

/* ---- what can be called ---- */

typedef struct {
	Weft *w;
	const char *op;
	const WeftDType *dtype;
	uint32_t n;
} Question;

static bool takes_tensors(const Schema *s, uint32_t n)
{
	uint32_t most = 0;
	for (uint32_t k = 0; k < s->narg; k++) {
		if (s->arg[k].writes)
			return false;
		if (s->arg[k].kind == ARG_tensors)
			most = UINT32_MAX;
		else if (s->arg[k].kind == ARG_tensor && most < UINT32_MAX)
			most++;
	}
	return n <= most;
}

static bool supports(void *arg)
{
	const Question *q = arg;
	TRY(given_text(q->w, "weft_trace_supports", "the operator", q->op) &&
	    given_list(q->w, "weft_trace_supports", "dtypes", q->dtype, q->n));
	Op op = op_find(q->op);
	const UserOp *user = op ? NULL : user_op(q->w, q->op);
	const Schema *schema = user ? &user->schema : op_schema(op);
	if ((!op && !user) || op == OP_input || op == OP_constant || !takes_tensors(schema, q->n))
		return false;
	for (uint32_t k = 0; k < q->n; k++)
		TRY(dtype_from_api(q->dtype[k]) != DT_none);
	return true;
}

bool weft_trace_supports(Weft *w, const char *op, const WeftDType *dtypes, uint32_t n)
{
	Question q = {w, op, dtypes, n};
	return w && boundary(w, supports, &q);
}
