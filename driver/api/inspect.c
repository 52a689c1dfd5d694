/* Questions about a graph, answered in the API's terms. */
#include "driver/api/given.h"

#include <stdlib.h>
#include <string.h>

#include "ir/op/op.h"

typedef struct {
	Weft *w;
	const char *function; /* of the API */
	const WeftGraph *g;
	bool (*answer)(void *ask);
	uint32_t n;
	const void *out;
} Inspection;

static bool answer(void *arg)
{
	Inspection *a = arg;
	return given_graph(a->w, a->function, a->g) && graph_is_one(a->w, a->g) && a->answer(a);
}

const char *graph_name_owner(const Graph *g, const char *name)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		if (!strcmp(g->input.data[k].name, name))
			return g->input.data[k].kind == INPUT_USER ? "an input" : "a parameter";
	for (uint32_t k = 1; k < g->ir->constant.n; k++)
		if (g->ir->constant.data[k].is_param && !strcmp(g->ir->constant.data[k].name, name))
			return "a parameter";
	return NULL;
}

bool graph_is_one(Weft *w, const WeftGraph *g)
{
	return g->g || ctx_error(w->ctx, NULL, "several graphs were joined: ask each of them");
}

static const void *ask(Weft *w, const char *function, const WeftGraph *g, bool (*f)(void *),
		       uint32_t *n)
{
	Inspection a = {.w = w, .function = function, .g = g, .answer = f};
	bool ok = boundary(w, answer, &a);
	if (n)
		*n = ok ? a.n : 0;
	return ok ? a.out : NULL;
}

/* Returns the size symbols that the graph's input types mention, in order of creation. */
static const Sym *size_symbols(Weft *w, const Graph *g, uint32_t *n)
{
	SymTab *t = graph_syms(g);
	ARRAY(Sym) list = {0};
	for (uint32_t k = 0; k < sym_nvars(t); k++) {
		Sym v = sym_var_at(t, k);
		bool used = false;
		for (uint32_t i = 0; i < g->input.n && !used; i++)
			for (uint32_t d = 0; d < node_rank(g, g->input.data[i].node) && !used; d++)
				used = sym_uses(t, node_dim(g, g->input.data[i].node, d), v);
		if (used)
			array_push(weft_arena(w), &list, v);
	}
	*n = list.n;
	return list.data;
}

static WeftTensorInfo describe(Inspection *a, const char *name, const char *role, Node node)
{
	const Graph *g = a->g->g;
	Arena *arena = weft_arena(a->w);
	uint32_t nsym, rank = node_rank(g, node);
	const Sym *symbol = size_symbols(a->w, g, &nsym);
	WeftDim *dim = ARENA_ARRAY(arena, WeftDim, rank);
	for (uint32_t k = 0; k < rank; k++) {
		Sym s = node_dim(g, node, k);
		dim[k].text = arena_strdup(arena, sym_str(graph_syms(g), s));
		if (!sym_is_const(graph_syms(g), s, &dim[k].value))
			dim[k].value = -1;
		dim[k].symbol = -1;
		for (uint32_t i = 0; i < nsym; i++)
			if (symbol[i].i == s.i)
				dim[k].symbol = (int32_t)i;
	}
	return (WeftTensorInfo){.name = arena_strdup(arena, name),
				.role = role,
				.dtype = dtype_to_api(node_dtype(g, node)),
				.rank = rank,
				.dim = dim,
				.donates = -1};
}

static const char *role_of(const Inspection *a, const GraphInput *in)
{
	const Graph *g = a->g->g;
	return input_role(weft_arena(a->w), in->kind, in->name, node_dtype(g, in->node),
			  node_rank(g, in->node));
}

static bool ask_inputs(void *arg)
{
	Inspection *a = arg;
	const Graph *g = a->g->g;
	WeftTensorInfo *list = ARENA_ARRAY(weft_arena(a->w), WeftTensorInfo, g->input.n);
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].kind == INPUT_USER)
			list[a->n++] =
				describe(a, g->input.data[k].name, role_of(a, &g->input.data[k]),
					 g->input.data[k].node);
	a->out = list;
	return true;
}

static bool ask_states(void *arg)
{
	Inspection *a = arg;
	const Graph *g = a->g->g;
	const char **aliases = ir_const_aliases(g->ir, weft_arena(a->w));
	WeftTensorInfo *list = ARENA_ARRAY(weft_arena(a->w), WeftTensorInfo, g->input.n);
	for (uint32_t k = 0; k < g->input.n; k++) {
		const GraphInput *in = &g->input.data[k];
		if (in->kind == INPUT_USER)
			continue;
		WeftTensorInfo *info = &list[a->n++];
		*info = describe(a, in->name, role_of(a, in), in->node);
		info->aliases = aliases ? aliases[in->init.i] : NULL;
		info->holder = const_holder(g->ir, in->init);
		info->requires_grad =
			in->kind == INPUT_PARAM && const_requires_grad(g->ir, in->init);
	}
	a->out = list;
	return true;
}

/* Lists the model's own outputs, and with `all` those that are new values of inputs. */
static bool list_outputs(Inspection *a, bool all)
{
	const Graph *g = a->g->g;
	WeftTensorInfo *list = ARENA_ARRAY(weft_arena(a->w), WeftTensorInfo, g->output.n);
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].writes < 0 || (all && !graph_output_is_state(g, k)))
			list[a->n++] = describe(a, g->output.data[k].name,
						output_role(g->output.data[k].name),
						g->output.data[k].node);
	a->out = list;
	return true;
}

static bool ask_outputs(void *arg)
{
	return list_outputs(arg, false);
}

static bool ask_results(void *arg)
{
	return list_outputs(arg, true);
}

static bool ask_symbols(void *arg)
{
	Inspection *a = arg;
	SymTab *t = graph_syms(a->g->g);
	const Sym *s = size_symbols(a->w, a->g->g, &a->n);
	WeftSymbolInfo *list = ARENA_ARRAY(weft_arena(a->w), WeftSymbolInfo, a->n);
	for (uint32_t k = 0; k < a->n; k++) {
		list[k].name = arena_strdup(weft_arena(a->w), sym_name(t, s[k]));
		sym_range(t, s[k], &list[k].lo, &list[k].hi);
	}
	a->out = list;
	return true;
}

static bool ask_guards(void *arg)
{
	static const char *const sign[] = {"==", "!=", "<="};
	Inspection *a = arg;
	const Graph *g = a->g->g;
	Arena *arena = weft_arena(a->w);
	const char **list = ARENA_ARRAY(arena, const char *, g->guard.n);
	for (uint32_t k = 0; k < g->guard.n; k++) {
		const struct GraphGuard *c = &g->guard.data[k];
		char *left = arena_strdup(arena, sym_str(graph_syms(g), c->a));
		list[k] = arena_printf(arena, "%s %s %s", left, sign[c->kind],
				       sym_str(graph_syms(g), c->b));
	}
	a->n = g->guard.n;
	a->out = list;
	return true;
}

static int by_count(const void *pa, const void *pb)
{
	const WeftOpCount *a = pa, *b = pb;
	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	return strcmp(a->name, b->name);
}

static bool ask_operators(void *arg)
{
	Inspection *a = arg;
	const Graph *g = a->g->g;
	Arena *arena = weft_arena(a->w);
	WeftOpCount *count = ARENA_ARRAY(arena, WeftOpCount, op_count()),
		    *list = ARENA_ARRAY(arena, WeftOpCount, op_count());
	for (Node n = g->first; n.i; n = node_next(g, n))
		count[node_op(g, n)].count++;
	for (uint32_t op = 1; op < op_count(); op++)
		if (count[op].count && op != OP_input && op != OP_constant)
			list[a->n++] = (WeftOpCount){op_name((Op)op), count[op].count};
	qsort(list, a->n, sizeof *list, by_count);
	a->out = list;
	return true;
}

const WeftTensorInfo *weft_inputs(Weft *w, const WeftGraph *g, uint32_t *n)
{
	return ask(w, "weft_inputs", g, ask_inputs, n);
}

const WeftTensorInfo *weft_states(Weft *w, const WeftGraph *g, uint32_t *n)
{
	return ask(w, "weft_states", g, ask_states, n);
}

const WeftTensorInfo *weft_outputs(Weft *w, const WeftGraph *g, uint32_t *n)
{
	return ask(w, "weft_outputs", g, ask_outputs, n);
}

const WeftTensorInfo *weft_results(Weft *w, const WeftGraph *g, uint32_t *n)
{
	return ask(w, "weft_results", g, ask_results, n);
}

const WeftSymbolInfo *weft_symbols(Weft *w, const WeftGraph *g, uint32_t *n)
{
	return ask(w, "weft_symbols", g, ask_symbols, n);
}

const char *const *weft_guards(Weft *w, const WeftGraph *g, uint32_t *n)
{
	return ask(w, "weft_guards", g, ask_guards, n);
}

const WeftOpCount *weft_operators(Weft *w, const WeftGraph *g, uint32_t *n)
{
	return ask(w, "weft_operators", g, ask_operators, n);
}

typedef struct {
	Weft *w;
	const WeftGraph *from;
	uint32_t k;
	const int64_t *symbol;
	int64_t *shape;
} Shape;

static bool input_shape(void *arg)
{
	Shape *s = arg;
	TRY(given_graph(s->w, "weft_input_shape", s->from) &&
	    given(s->w, "weft_input_shape", "the shape", s->shape));
	TRY(graph_is_one(s->w, s->from));
	const Graph *g = s->from->g;
	uint32_t nsym, user = 0;
	const Sym *symbol = size_symbols(s->w, g, &nsym);
	TRY(given_list(s->w, "weft_input_shape", "values of symbols", s->symbol, nsym));
	for (uint32_t i = 0; i < g->input.n; i++) {
		Node node = g->input.data[i].node;
		if (g->input.data[i].kind != INPUT_USER || user++ != s->k)
			continue;
		for (uint32_t d = 0; d < node_rank(g, node); d++)
			if (!sym_eval(graph_syms(g), node_dim(g, node, d), symbol, s->symbol, nsym,
				      &s->shape[d]))
				return ctx_error(s->w->ctx, NULL,
						 "input %s: dimension %u has no value",
						 g->input.data[i].name, d);
		return true;
	}
	return ctx_error(s->w->ctx, NULL, "no input %u", s->k);
}

bool weft_input_shape(Weft *w, const WeftGraph *g, uint32_t k, const int64_t *symbol,
		      int64_t *shape)
{
	Shape s = {w, g, k, symbol, shape};
	return boundary(w, input_shape, &s);
}

uint64_t weft_weight_bytes(const WeftGraph *wg)
{
	if (!wg)
		return 0;
	const Ir *ir = wg->entry[0].g->ir;
	uint64_t bytes = 0;
	for (uint32_t k = 0; k < ir->constant.n; k++)
		if (ir->constant.data[k].is_param)
			bytes += ir->constant.data[k].bytes;
	return bytes;
}
