/* weft_trace_graph: a graph becomes part of a trace. */
#include "driver/api/trace.h"
#include "ir/op/import.h"

#include <string.h>

typedef struct {
	TraceStep step; /* the first, for tracing_perform */
	const WeftGraph *from;
	const WeftValue *in;
	WeftValue *out;
	uint32_t nin, nout;
	const Graph *src;
	Graph *dst;
	Node *arg;       /* by input of src: in dst */
	ARRAY(Sym) size; /* symbols of src that extents of inputs are, and ... */
	ARRAY(Sym) by;   /* ... the extents of the arguments */
	ConstId *constant;
} Inlining;

static bool inline_error(const Inlining *k, const char *what)
{
	const WeftTrace *t = k->step.t;
	return ctx_error(t->w->ctx, t->name, "call %u (weft_trace_graph of %s): %s", t->ncall,
			 k->from->path, what);
}

static const char *scratch_text(const Inlining *k, const char *name, const char *what)
{
	return arena_printf(k->step.t->w->ctx->scratch, "input %s: %s", name, what);
}

/* ---- arguments ---- */

static bool is_bound(const Inlining *k, Sym size)
{
	for (uint32_t j = 0; j < k->size.n; j++)
		if (k->size.data[j].i == size.i)
			return true;
	return false;
}

/* Checks the type of an argument. Extents of the input that are a symbol give the symbol its
 * value. */
static bool bind_argument(Inlining *k, const GraphInput *in, Node arg)
{
	Arena *scratch = k->step.t->w->ctx->scratch;
	const Type *want = node_type(k->src, in->node), *have = node_type(k->dst, arg);
	if (have->dtype != want->dtype || have->n != want->n)
		return inline_error(
			k, scratch_text(k, in->name,
					arena_printf(scratch,
						     "expected %s of rank %u, got %s of rank %u",
						     dtype_name(want->dtype), want->n,
						     dtype_name(have->dtype), have->n)));
	for (uint32_t d = 0; d < want->n; d++)
		if (sym_kind(graph_syms(k->src), want->dim[d]) == SYM_VAR &&
		    !is_bound(k, want->dim[d])) {
			array_push(scratch, &k->size, want->dim[d]);
			array_push(scratch, &k->by, have->dim[d]);
		}
	return true;
}

/* ---- parameters and state ---- */

static bool same_data(const Const *a, const Const *b)
{
	return a->dtype == b->dtype && a->bytes == b->bytes && a->data == b->data;
}

/* Sets *out to the state of the trace that has the name already, if there is one: it must be
 * that of the same graph, traced before. */
static bool find_state(Inlining *k, const GraphInput *in, Node *out)
{
	const Graph *model = k->step.t->model.g;
	for (uint32_t j = 0; j < model->input.n; j++) {
		const GraphInput *have = &model->input.data[j];
		if (strcmp(have->name, in->name))
			continue;
		if (have->kind != in->kind || !have->init.i || !in->init.i ||
		    !same_data(ir_const_of(model->ir, have->init),
			       ir_const_of(k->src->ir, in->init)))
			return inline_error(k, scratch_text(k, in->name,
							    "the trace has another input, "
							    "parameter or buffer of that name"));
		*out = have->node;
	}
	return true;
}

/* Finds the constants that the trace has already: parameters of the same name must be the same
 * memory, and are one. */
static bool find_constants(Inlining *k)
{
	Ir *ir = k->dst->ir;
	const Ir *from = k->src->ir;
	Intern name;
	ARRAY(uint32_t) at = {0};
	Arena *scratch = ir->ctx->scratch;
	intern_init(&name, scratch);
	for (uint32_t c = 1; c < ir->constant.n; c++) {
		bool fresh;
		if (!ir->constant.data[c].is_param)
			continue;
		intern(&name, ir->constant.data[c].name, strlen(ir->constant.data[c].name), &fresh);
		if (fresh)
			array_push(scratch, &at, c);
	}
	k->constant = ARENA_ARRAY(weft_arena(k->step.t->w), ConstId, from->constant.n);
	for (uint32_t c = 1; c < from->constant.n; c++) {
		const Const *x = &from->constant.data[c];
		bool fresh;
		if (!x->is_param)
			continue;
		uint32_t id = intern(&name, x->name, strlen(x->name), &fresh);
		if (fresh) {
			array_push(scratch, &at, 0);
			continue;
		}
		if (!at.data[id - 1])
			continue;
		if (!same_data(x, ir_const_of(ir, (ConstId){at.data[id - 1]})))
			return inline_error(
				k, arena_printf(
					   scratch,
					   "its parameter %s is another one than that of the trace",
					   x->name));
		k->constant[c] = (ConstId){at.data[id - 1]};
	}
	return true;
}

/* Adds state to the model, unless it is there; a body reads it from there. */
static bool add_state(Inlining *k, uint32_t j, const Graph *imported)
{
	WeftTrace *t = k->step.t;
	const GraphInput *in = &k->src->input.data[j], *made = &imported->input.data[j];
	Node n = {0};
	TRY(find_state(k, in, &n));
	if (!n.i) {
		n = graph_add_input(t->model.g, made->name, made->kind,
				    node_type_id(imported, made->node));
		t->model.g->input.data[t->model.g->input.n - 1].init = made->init;
	}
	return tracing_node(&k->step, (WeftValue){n.i, t->model.id}, &k->arg[j]);
}

/* ---- sizes ---- */

/* Requires the graph's conditions on its sizes, of the arguments' extents. */
static bool check_sizes(Inlining *k, const Graph *imported)
{
	SymTab *syms = graph_syms(k->dst);
	for (uint32_t j = 0; j < imported->input.n; j++) {
		const GraphInput *in = &imported->input.data[j];
		for (uint32_t d = 0; d < node_rank(imported, in->node); d++) {
			Sym want = node_dim(imported, in->node, d),
			    have = node_dim(k->dst, k->arg[j], d);
			if (sym_eq(syms, want, have) == NO)
				return inline_error(
					k,
					scratch_text(k, in->name,
						     arena_printf(k->dst->ir->ctx->scratch,
								  "dimension %u is %s, expected %s",
								  d, sym_str(syms, have),
								  sym_str(syms, want))));
			graph_guard(k->dst, GUARD_EQ, want, have, "weft_trace_graph");
		}
	}
	for (uint32_t j = 0; j < k->size.n; j++) {
		int64_t lo, hi, least, most;
		sym_range(graph_syms(k->src), k->size.data[j], &lo, &hi);
		sym_range(syms, k->by.data[j], &least, &most);
		if (most >= 0 && (most < lo || (hi >= 0 && least > hi)))
			return inline_error(
				k, arena_printf(k->dst->ir->ctx->scratch, "%s is %s, out of range",
						sym_str(graph_syms(k->src), k->size.data[j]),
						sym_str(syms, k->by.data[j])));
		if (least < lo)
			graph_guard(k->dst, GUARD_LE, sym_int(syms, lo), k->by.data[j],
				    "weft_trace_graph");
		if (hi < INT64_MAX && most > hi)
			graph_guard(k->dst, GUARD_LE, k->by.data[j], sym_int(syms, hi),
				    "weft_trace_graph");
	}
	return true;
}

/* ---- the call ---- */

static bool take_arguments(Inlining *k)
{
	uint32_t next = 0;
	for (uint32_t j = 0; j < k->src->input.n; j++) {
		const GraphInput *in = &k->src->input.data[j];
		if (in->kind != INPUT_USER)
			continue;
		if (next == k->nin)
			return inline_error(k, "it takes more values");
		TRY(tracing_node(&k->step, k->in[next++], &k->arg[j]) &&
		    tracing_is_tensor(&k->step, k->step.t->scope, k->arg[j]));
		TRY(bind_argument(k, in, k->arg[j]));
	}
	return next == k->nin || inline_error(k, "it takes fewer values");
}

/* Adds the outputs that are state to the model, and gives the caller the others. */
static bool give_outputs(Inlining *k, const Graph *imported, const Node *out)
{
	Graph *model = k->step.t->model.g;
	uint32_t next = 0;
	for (uint32_t j = 0; j < imported->output.n; j++) {
		const GraphOutput *o = &imported->output.data[j];
		if (!graph_output_is_state(imported, j)) {
			if (next == k->nout)
				return inline_error(k, "it gives more values");
			k->out[next++] = tracing_value(k->step.t, out[j]);
			continue;
		}
		if (k->step.t->scope->outer)
			return inline_error(k, "it changes state, which a body cannot");
		for (uint32_t i = 0; i < model->input.n; i++) {
			if (strcmp(model->input.data[i].name, imported->input.data[o->writes].name))
				continue;
			if (graph_writer(model, i) >= 0)
				return inline_error(k, "its state is changed a second time");
			graph_add_output(model, o->name, out[j], (int32_t)i);
		}
	}
	return next == k->nout || inline_error(k, "it gives fewer values");
}

static bool inline_graph(void *arg)
{
	Inlining *k = arg;
	WeftTrace *t = k->step.t;
	TRY(tracing_ready(&k->step));
	t->ncall++;
	TRY(given_graph(t->w, "weft_trace_graph", k->from) && graph_is_one(t->w, k->from));
	if ((k->nin && !k->in) || (k->nout && !k->out))
		return inline_error(k, "values, or room for values, are missing: NULL");
	k->src = k->from->g;
	k->dst = t->scope->g;
	k->arg = ARENA_ARRAY(t->w->ctx->scratch, Node, k->src->input.n);
	TRY(take_arguments(k) && find_constants(k));
	Graph *imported =
		graph_import_at(k->dst, k->src, k->size.data, k->by.data, k->size.n, k->constant);
	for (uint32_t j = 0; j < k->src->input.n; j++)
		TRY(k->src->input.data[j].kind == INPUT_USER || add_state(k, j, imported));
	TRY(check_sizes(k, imported));
	Node *out = ARENA_ARRAY(t->w->ctx->scratch, Node, imported->output.n);
	graph_inline(k->dst, (Node){0}, imported, k->arg, out);
	k->dst->decomposed |= k->src->decomposed;
	k->dst->exported |= k->src->exported;
	if (!k->dst->other_mode)
		k->dst->other_mode = k->src->other_mode;
	return give_outputs(k, imported, out);
}

void weft_trace_graph(WeftTrace *t, const WeftGraph *g, const WeftValue *in, uint32_t n,
		      WeftValue *out, uint32_t nout)
{
	Inlining k = {.step = {.t = t, .name = "weft_trace_graph"},
		      .from = g,
		      .in = in,
		      .nin = n,
		      .out = out,
		      .nout = nout};
	if (!(t && tracing_perform(&k.step, inline_graph)) && out)
		memset(out, 0, nout * sizeof *out);
}
