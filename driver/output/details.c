/* What the last compilation made of each node: weft_details, weft_kernel_source. */
#include <stdlib.h>
#include <string.h>

#include "codegen/print/c/emit.h"
#include "codegen/print/names.h"
#include "driver/api/given.h"
#include "driver/artifact/compile.h"
#include "ir/op/node.h"
#include "ir/op/op.h"
#include "ops/user/userop.h"

/* ---- values of symbols ---- */

typedef struct {
	Weft *w;
	const WeftGraph *g;
	uint32_t entry, kernel;
	const int64_t *value; /* NULL: those seen while exporting */
	uint32_t nvalue;
	Arena *arena;
	const ProgramEntry *e;
	WeftDetails *out;
	const char *text;
} Asking;

/* Returns the value of a size; 0 for none and for one that is not known. */
static double value_of(const Asking *a, Sym size)
{
	const SymTab *syms = a->e->program->ir->syms;
	int64_t v = 0;
	if (!size.i)
		return 0;
	if (!a->value || !sym_eval(syms, size, a->e->symbol.data, a->value, a->e->symbol.n, &v))
		v = sym_hint(syms, size);
	return v > 0 ? (double)v : 0;
}

static double bytes_of_type(const Asking *a, const Ir *ir, TypeId id)
{
	const Type *t = ir_type_of(ir, id);
	double bytes = 0;
	if (!id.i)
		return 0;
	if (t->dtype != DT_none)
		return value_of(a, type_numel(ir, id)) * dtype_size(t->dtype);
	const TypeId *elem = t->elem;
	for (uint32_t k = 0, n = t->n; k < n; k++)
		bytes += bytes_of_type(a, ir, elem[k]);
	return bytes;
}

/* ---- nodes ---- */

static const char *lasting_type(Arena *a, const Ir *ir, TypeId id)
{
	Text t;
	text_init(&t, a);
	type_print(ir, id, &t);
	return t.data;
}

static const char *op_of(const Graph *g, Node n)
{
	const UserOp *user = userop_called(g, n);
	return user ? user->name : op_name(node_op(g, n));
}

/* What is known while the nodes are visited. */
typedef struct {
	const Asking *a;
	WeftNodeDetails *node;
	uint32_t n;
	ARRAY(const Graph *) graph; /* those that are being visited, the innermost last */
	ARRAY(uint32_t *) number;   /* of each of them, by Node */
} Visiting;

/* Returns the numbers of the nodes of a graph that is being visited. */
static uint32_t *numbers_of(Visiting *v, const Graph *g)
{
	Arena *a = v->a->arena;
	for (uint32_t k = v->graph.n; k-- > 0;)
		if (v->graph.data[k] == g) {
			v->graph.n = v->number.n = k + 1; /* bodies behind it are complete */
			return v->number.data[k];
		}
	array_push(a, &v->graph, g);
	array_push(a, &v->number, ARENA_ARRAY(a, uint32_t, g->node.n));
	return v->number.data[v->number.n - 1];
}

static void describe_kind(const Graph *g, Node n, WeftNodeDetails *d)
{
	const ConstId c = node_const(g, n);
	d->kind = c.i ? "constant" : "call";
	d->user_name = c.i ? ir_const_of(g->ir, c)->name : "";
	for (uint32_t k = 0; !c.i && !node_nin(g, n) && k < g->input.n; k++)
		if (g->input.data[k].node.i == n.i) {
			d->kind = g->input.data[k].kind == INPUT_USER ? "input" : "state";
			d->user_name = g->input.data[k].name;
		}
}

static void describe_node(void *user, Graph *g, Node n, uint32_t around)
{
	Visiting *v = user;
	Arena *a = v->a->arena;
	uint32_t *number = numbers_of(v, g), *operand = ARENA_ARRAY(a, uint32_t, node_nin(g, n));
	WeftNodeDetails *d = &v->node[v->n++];
	number[n.i] = v->n;
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		operand[k] = number[node_in(g, n, k).i];
	*d = (WeftNodeDetails){.name = arena_strdup(a, graph_name(g, n)),
			       .op = op_of(g, n),
			       .type = lasting_type(a, g->ir, node_type_id(g, n)),
			       .line = ir_loc_text(g->ir, node_data(g, n)->loc),
			       .bytes = bytes_of_type(v->a, g->ir, node_type_id(g, n)),
			       .around = around,
			       .noperand = node_nin(g, n),
			       .operand = operand};
	describe_kind(g, n, d);
}

static void count_node(void *user, Graph *g, Node n, uint32_t around)
{
	(void)user;
	(void)g;
	(void)n;
	(void)around;
}

static void describe_nodes(Asking *a, Graph *g)
{
	Visiting v = {.a = a};
	a->out->nnode = graph_visit(g, count_node, NULL);
	v.node = ARENA_ARRAY(a->arena, WeftNodeDetails, a->out->nnode);
	graph_visit(g, describe_node, &v);
	a->out->node = v.node;
}

/* ---- kernels ---- */

typedef struct {
	const Graph *graph;
	uintptr_t node;
} ValueKey;

/* Which kernel computed a value first; the order of the nodes of the graph that was asked last. */
typedef struct {
	Intern value;
	ARRAY(const Kernel *) first; /* by id - 1 */
	const Graph *graph;
	uint32_t *place;
} Computed;

static const uint32_t *places_of(Arena *a, Computed *c, const Graph *g)
{
	if (c->graph == g)
		return c->place;
	uint32_t at = 0;
	c->graph = g;
	c->place = ARENA_ARRAY(a, uint32_t, g->node.n);
	for (Node n = g->first; n.i; n = node_next(g, n))
		c->place[n.i] = ++at;
	return c->place;
}

static bool computed_before(Arena *a, Computed *c, const Kernel *k, Node n)
{
	bool fresh;
	const ValueKey key = {k->graph, n.i};
	const uint32_t id = intern(&c->value, &key, sizeof key, &fresh);
	if (fresh)
		array_push(a, &c->first, k);
	return c->first.data[id - 1] != k;
}

static void describe_ops(const Asking *a, Computed *c, const Kernel *k, WeftKernelDetails *out)
{
	Graph *g = (Graph *)(uintptr_t)k->graph; /* naming a node numbers others */
	if (!g)
		return;
	uint32_t nop;
	const Node *all = kernel_evaluated(k, places_of(a->arena, c, g), a->arena, &nop);
	WeftKernelOp *op = ARENA_ARRAY(a->arena, WeftKernelOp, nop);
	for (uint32_t i = 0; i < nop; i++) {
		const Node n = all[i];
		op[i] = (WeftKernelOp){.name = arena_strdup(a->arena, graph_name(g, n)),
				       .op = op_of(g, n),
				       .type = lasting_type(a->arena, g->ir, node_type_id(g, n)),
				       .node = ir_loc_node(g->ir, node_data(g, n)->loc),
				       .again = computed_before(a->arena, c, k, n) &&
						op_lower(node_op(g, n))->role != LOWER_INDEX};
	}
	out->op = op;
	out->nop = nop;
}

static const char *buffer_kind(const ProgramArg *a)
{
	static const char *const kind[] = {[BUF_INPUT] = "input",
					   [BUF_OUTPUT] = "output",
					   [BUF_CONST] = "weights",
					   [BUF_STATE] = "state"};
	return a->kind != BUF_TEMP ? kind[a->kind] : a->offset.i ? "workspace" : "room";
}

static void describe_buffer(const Asking *a, const ProgramArg *arg, WeftBufferDetails *out)
{
	const double bytes = value_of(a, arg->bytes), own = value_of(a, arg->own);
	const bool temp = arg->kind == BUF_TEMP;
	*out = (WeftBufferDetails){.name = arg->name ? arg->name : "",
				   .kind = buffer_kind(arg),
				   .dtype = dtype_to_api(arg->dtype),
				   .bytes = bytes,
				   .padding = own > 0 && own < bytes ? bytes - own : 0,
				   .offset = arg->offset.i ? value_of(a, arg->offset) : -1,
				   .first = temp ? arg->first + 1 : 0,
				   .last = temp ? arg->last + 1 : 0};
}

/* Describes what a kernel reads and writes. number: by buffer of the entry, the number that the
 * details give it; 0: none yet. */
static void describe_access(const Asking *a, const ProgramCall *c, uint32_t *number,
			    WeftBufferDetails *buffer, WeftKernelDetails *out)
{
	const LoopFn *f = a->e->program->fn.data[c->fn];
	const uint32_t n = c->arg ? f->buf.n : 0;
	WeftKernelAccess *access = ARENA_ARRAY(a->arena, WeftKernelAccess, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *to = &number[c->arg[i].buffer];
		if (!*to) {
			*to = ++a->out->nbuffer;
			describe_buffer(a, &c->arg[i], &buffer[*to - 1]);
		}
		access[i] = (WeftKernelAccess){*to, f->buf.data[i].read, f->buf.data[i].written};
	}
	out->access = access;
	out->naccess = n;
}

static uint32_t most_buffers(const ProgramEntry *e)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < e->ncall; i++) {
		const ProgramCall *c = program_call(e, i);
		for (uint32_t k = 0; c->arg && k < e->program->fn.data[c->fn]->buf.n; k++)
			most = c->arg[k].buffer > most ? c->arg[k].buffer : most;
	}
	return most;
}

static void describe_kernels(Asking *a)
{
	const ProgramEntry *e = a->e;
	const uint32_t most = most_buffers(e);
	WeftKernelDetails *kernel = ARENA_ARRAY(a->arena, WeftKernelDetails, e->ncall);
	WeftBufferDetails *buffer = ARENA_ARRAY(a->arena, WeftBufferDetails, most);
	uint32_t *number = ARENA_ARRAY(a->arena, uint32_t, most + 1);
	Computed computed = {0};
	intern_init(&computed.value, a->arena);
	for (uint32_t i = 0; i < e->ncall; i++) {
		const ProgramCall *c = program_call(e, i);
		kernel[i] = (WeftKernelDetails){.node = ir_loc_node(e->program->ir, c->lines.at),
						.joins = c->joins,
						.user = !c->kernel};
		if (c->kernel)
			describe_ops(a, &computed, c->kernel, &kernel[i]);
		describe_access(a, c, number, buffer, &kernel[i]);
	}
	a->out->kernel = kernel;
	a->out->nkernel = e->ncall;
	a->out->buffer = buffer;
}

/* ---- the calls ---- */

static bool find_entry(Asking *a, const char *function)
{
	Weft *w = a->w;
	if (!w->have_report)
		return ctx_error(w->ctx, function, "nothing was compiled");
	if (a->entry >= w->program->entry.n)
		return ctx_error(w->ctx, function, "there is no entry %u", a->entry);
	a->e = &w->program->entry.data[a->entry];
	a->arena = weft_arena(w);
	return true;
}

static bool check_value(const Asking *a, uint32_t k)
{
	const SymTab *syms = a->e->program->ir->syms;
	int64_t lo, hi;
	sym_range(syms, a->e->symbol.data[k], &lo, &hi);
	return (a->value[k] >= lo && a->value[k] <= hi) ||
	       ctx_error(a->w->ctx, NULL, "%s cannot be %lld", sym_name(syms, a->e->symbol.data[k]),
			 (long long)a->value[k]);
}

static bool find_details(void *arg)
{
	Asking *a = arg;
	Ctx *ctx = a->w->ctx;
	TRY(given_graph(a->w, "weft_details", a->g) && find_entry(a, "weft_details"));
	if (a->g != a->w->compiled)
		return ctx_error(ctx, "weft_details",
				 "the last compilation was one of another graph");
	if (a->nvalue && a->nvalue != a->e->symbol.n)
		return ctx_error(ctx, "weft_details", "values of %u symbols, expected %u",
				 a->nvalue, a->e->symbol.n);
	TRY(given_list(a->w, "weft_details", "values of symbols", a->value, a->nvalue));
	for (uint32_t k = 0; k < a->nvalue; k++)
		TRY(check_value(a, k));
	if (!a->nvalue)
		a->value = NULL;
	a->out = ARENA_NEW(a->arena, WeftDetails);
	a->out->target = a->w->target->isa.name;
	describe_nodes(a, a->g->entry[a->entry].g);
	describe_kernels(a);
	return true;
}

const WeftDetails *weft_details(Weft *w, const WeftGraph *g, uint32_t entry, const int64_t *symbol,
				uint32_t n)
{
	Asking a = {.w = w, .g = g, .entry = entry, .value = symbol, .nvalue = n};
	return boundary(w, find_details, &a) ? a.out : NULL;
}

static bool find_source(void *arg)
{
	Asking *a = arg;
	Text t;
	TRY(find_entry(a, "weft_kernel_source"));
	if (a->kernel >= a->e->ncall)
		return ctx_error(a->w->ctx, "weft_kernel_source", "there is no kernel %u",
				 a->kernel);
	const LoopFn *f = a->e->program->fn.data[program_call(a->e, a->kernel)->fn];
	text_init(&t, a->arena);
	if (a->w->target->gpu)
		loop_print(f, &t, false);
	else
		emit_c_function(f, a->w->target, c_identifier(a->arena, f->name), &t);
	a->text = t.data;
	return true;
}

const char *weft_kernel_source(Weft *w, uint32_t entry, uint32_t kernel)
{
	Asking a = {.w = w, .entry = entry, .kernel = kernel};
	return boundary(w, find_source, &a) ? a.text : NULL;
}
