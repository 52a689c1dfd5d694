/* Building the Program: schedule every kernel, share equal code, lay out the weights, emit the launches.
 *
 * Long step lists are cut into parts: functions of their own.
 * Equal kernels share one function: integer literals of index arithmetic become parameters, then functions
 * are compared by their text. */
#include "codegen/schedule/program_priv.h"
#include "codegen/schedule/cost.h"
#include "codegen/schedule/plan.h"
#include "codegen/schedule/sched.h"
#include "codegen/schedule/split.h"

#include <string.h>

enum { KEEP_LITERALS = 16, WEIGHT_ALIGN = 64 };

/* Schedules may add buffers: constants in a layout of their own. At most this many. */
enum { MAX_SCHEDULE_BUFFERS = 4096 };

/* Where a carried buffer is: at `odd` after an odd number of iterations, else at `even`. */
typedef struct {
	Sym even, odd;
	uint32_t loop; /* the number is the index of this loop of those around (1: the outermost); 0: it is `count` */
	Sym count;
} CarryPlace;

/* A loop around what is emitted, and its index in the function at hand. */
typedef struct {
	const Step *step;
	Lx index;
} Around;

typedef struct {
	Lowered *l;
	Program *p;
	Arena *arena;
	SymTab *syms;
	const Target *target;
	MemoryPlan plan;
	Intern fn_text;
	uint32_t ninput, noutput;
	CarryPlace *place;     /* by buffer: byte offset in its region, when it differs from the plan's; else even is none */
	uint32_t *weight; /* by buffer: index into Program.constant + 1 */
	uint32_t *owner;  /* by buffer: itself, or the one that it swaps with in a loop; 0: itself */
	LoopFn *f;        /* at hand: `run` or a part of it */
	SymLower sizes;   /* in f */
	ARRAY(Around) around;
	const Cost *times; /* that what is emitted now runs: iterations of the loops around it */
} Builder;

/* ---- weights ---- */

static bool same_layout(const Layout *a, const Layout *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->dim[i].axis != b->dim[i].axis || a->dim[i].divisor != b->dim[i].divisor ||
		    a->dim[i].extent.i != b->dim[i].extent.i || a->dim[i].padded.i != b->dim[i].padded.i)
			return false;
	return true;
}

static void share_weights(Builder *b, const Program *with)
{
	for (uint32_t i = 0; i < with->constant.n; i++)
		array_push(b->arena, &b->p->constant, with->constant.data[i]);
	b->p->weight_bytes = with->weight_bytes;
}

static uint32_t weight_of(Builder *b, BufId buf)
{
	if (b->weight[buf.i])
		return b->weight[buf.i] - 1;
	const Buffer *w = buf_of(b->l, buf);
	Program *p = b->p;
	for (uint32_t i = 0; i < p->constant.n; i++) {
		const ProgramConst *c = &p->constant.data[i];
		if (c->source.i == w->k && c->dtype == w->dtype && same_layout(&c->layout, &w->layout)) {
			b->weight[buf.i] = i + 1;
			return i;
		}
	}
	int64_t numel = 0;
	sym_is_const(b->syms, layout_numel(b->l->ir, &w->layout), &numel);
	uint64_t bytes = (uint64_t)numel * dtype_size(w->dtype);
	array_push(b->arena, &p->constant,
	           (ProgramConst){.source = {w->k}, .layout = w->layout, .dtype = w->dtype,
	                          .offset = p->weight_bytes, .bytes = bytes, .name = w->name});
	p->weight_bytes += (bytes + WEIGHT_ALIGN - 1) / WEIGHT_ALIGN * WEIGHT_ALIGN;
	b->weight[buf.i] = p->constant.n;
	return p->constant.n - 1;
}

/* ---- addresses ---- */

static Lx place_offset(Builder *b, const CarryPlace *p)
{
	LoopFn *f = b->f;
	Lx n = p->loop ? b->around.data[p->loop - 1].index : sym_lower(&b->sizes, p->count);
	Lx odd = lx_cmp(f, SC_eq, lx_mod(f, n, lx_int(f, 2)), lx_int(f, 1));
	return lx_select(f, odd, sym_lower(&b->sizes, p->odd), sym_lower(&b->sizes, p->even));
}

static Lx address(Builder *b, BufId id)
{
	LoopFn *f = b->f;
	const Buffer *buf = buf_of(b->l, id);
	switch (buf->kind) {
	case BUF_INPUT:
		return lx_addr(f, buf->k, lx_int(f, 0));
	case BUF_OUTPUT:
		return lx_addr(f, b->ninput + buf->k, lx_int(f, 0));
	case BUF_CONST: {
		uint32_t w = weight_of(b, id);
		return lx_addr(f, b->ninput + b->noutput,
		               lx_int(f, (int64_t)b->p->constant.data[w].offset));
	}
	case BUF_STATE:
		ctx_bug(b->l->ir->ctx, "state is not supported here");
	default: {
		Lx at = b->place[id.i].even.i ? place_offset(b, &b->place[id.i]) : sym_lower(&b->sizes, b->plan.offset[id.i]);
		return lx_addr(f, b->ninput + b->noutput + 1, at);
	}
	}
}

/* ---- kernels ---- */

static uint32_t add_function(Builder *b, LoopFn *f)
{
	Text key;
	text_init(&key, b->arena);
	loop_print(f, &key, true);
	bool fresh;
	uint32_t id = intern(&b->fn_text, key.data, key.n, &fresh);
	if (fresh)
		array_push(b->arena, &b->p->fn, f);
	return id - 1;
}

/* Of a call with all its iterations. */
static ProgramCost count(const Builder *b, const Sched *s)
{
	KernelCost once = kernel_cost(s);
	return (ProgramCost){.flops = cost_mul(b->arena, b->times, once.flops),
	                     .bytes = cost_mul(b->arena, b->times, once.bytes), .launches = b->times};
}

static uint32_t owner_of(const Builder *b, uint32_t buf)
{
	while (b->owner[buf])
		buf = b->owner[buf];
	return buf;
}

static void join_carried(Builder *b, const StepList *list)
{
	for (uint32_t i = 0; i < list->step.n; i++) {
		const Step *s = &list->step.data[i];
		if (s->kind != STEP_LOOP)
			continue;
		for (uint32_t c = 0; c < s->ncarry; c++) {
			uint32_t from = owner_of(b, s->carry[c].from.i), to = owner_of(b, s->carry[c].to.i);
			if (from != to)
				b->owner[to] = from;
		}
		join_carried(b, s->body);
	}
}

/* For the interpreter of loop IR: which buffers the arguments are. */
static const ProgramArg *describe_args(Builder *b, const Sched *s)
{
	ProgramArg *arg = ARENA_ARRAY(b->arena, ProgramArg, s->arg.n);
	for (uint32_t i = 0; i < s->arg.n; i++) {
		BufId id = s->arg.data[i];
		const Buffer *buf = buf_of(b->l, id);
		Sym bytes = sym_muli(b->syms, layout_numel(b->l->ir, &buf->layout), dtype_size(buf->dtype));
		arg[i] = (ProgramArg){.name = buf->name, .bytes = bytes, .owner = owner_of(b, id.i)};
	}
	return arg;
}

static void launch(Builder *b, Kernel *k)
{
	Sched s;
	Sym ntasks = {0};
	kernel_split_axes(b->l, k);
	sched_init(&s, b->l, k, b->target);
	ProgramCost cost = count(b, &s);
	if (!schedule_depthwise(&s, &ntasks) && !schedule_contract(&s, &ntasks))
		schedule_generic(&s, &ntasks);
	loop_simplify(s.f);
	const int64_t *literal;
	uint32_t nliteral = loop_parametrise(s.f, KEEP_LITERALS, &literal);
	uint32_t nbuf = s.arg.n, narg = 0;
	Lx *arg = ARENA_ARRAY(b->arena, Lx, nbuf + s.param.n + nliteral);
	for (uint32_t i = 0; i < nbuf; i++)
		arg[narg++] = address(b, s.arg.data[i]);
	for (uint32_t i = 0; i < s.param.n; i++)
		arg[narg++] = sym_lower(&b->sizes, s.param.data[i]);
	for (uint32_t i = 0; i < nliteral; i++)
		arg[narg++] = lx_int(b->f, literal[i]);
	uint32_t fn = add_function(b, s.f);
	array_push(b->arena, &b->p->call,
	           (ProgramCall){.fn = fn, .name = k->name,
	                         .algorithm = k->algorithm ? k->algorithm : "generic",
	                         .cost = cost, .arg = describe_args(b, &s)});
	ls_launch(b->f, b->p->call.n - 1, sym_lower(&b->sizes, ntasks), arg, nbuf, narg);
}

/* ---- steps ---- */

static void emit_steps(Builder *b, const StepList *list);

static void enter(Builder *b, const Step *step, Lx index)
{
	LoopFn *f = b->f;
	array_push(b->arena, &b->around, (Around){step, index});
	Lx last = lx_sub(f, sym_lower(&b->sizes, step->extent), lx_int(f, 1));
	sym_lower_set(&b->sizes, step->var, step->reverse ? lx_sub(f, last, index) : index);
}

/* Even iterations read `from` and write `to`, odd ones the other way round. */
static void emit_loop(Builder *b, const Step *step)
{
	LoopFn *f = b->f;
	uint32_t scope = b->sizes.n;
	Lx n = sym_lower(&b->sizes, step->extent);
	enter(b, step, lx_var(f, ls_for(f, "i", lx_int(f, 0), n, 1, FOR_SERIAL)));
	for (uint32_t c = 0; c < step->ncarry; c++) {
		Sym from = b->plan.offset[step->carry[c].from.i], to = b->plan.offset[step->carry[c].to.i];
		b->place[step->carry[c].from.i] = (CarryPlace){.even = from, .odd = to, .loop = b->around.n};
		b->place[step->carry[c].to.i] = (CarryPlace){.even = to, .odd = from, .loop = b->around.n};
	}
	const Cost *times = b->times;
	b->times = cost_mul(b->arena, times, cost_sym(b->arena, step->extent));
	emit_steps(b, step->body);
	b->times = times;
	b->sizes.n = scope;
	b->around.n--;
	ls_end(f);
	for (uint32_t c = 0; c < step->ncarry; c++) {
		Sym from = b->plan.offset[step->carry[c].from.i], to = b->plan.offset[step->carry[c].to.i];
		b->place[step->carry[c].from.i] = (CarryPlace){0};
		b->place[step->carry[c].to.i] = (CarryPlace){.even = from, .odd = to, .count = step->extent};
	}
}

/* ---- parts ---- */

/* A function with values of the symbols and of the loops around. */
static void start_function(Builder *b, LoopFn *f)
{
	b->f = f;
	b->sizes = (SymLower){.ctx = b->l->ir->ctx, .syms = b->syms, .f = f};
	for (uint32_t i = 0; i < b->p->symbol.n; i++) {
		uint32_t k = loop_param(f, sym_name(b->syms, b->p->symbol.data[i]));
		sym_lower_set(&b->sizes, b->p->symbol.data[i], lx_param(f, k));
	}
	uint32_t n = b->around.n;
	b->around.n = 0;
	for (uint32_t i = 0; i < n; i++)
		enter(b, b->around.data[i].step, lx_param(f, loop_param(f, "i")));
}

static void emit_step(Builder *b, const Step *s)
{
	if (s->kind == STEP_LOOP)
		emit_loop(b, s);
	else
		launch(b, s->kernel);
}

static void emit_part(Builder *b, const Step *step, uint32_t n)
{
	Program *p = b->p;
	LoopFn *outer = b->f, *f = loop_new(p->ir, "");
	SymLower *sizes = ARENA_NEW(b->arena, SymLower);
	uint32_t narg = 0;
	Lx *arg = ARENA_ARRAY(b->arena, Lx, p->symbol.n + b->around.n);
	Lx *index = ARENA_ARRAY(b->arena, Lx, b->around.n);
	*sizes = b->sizes;
	for (uint32_t k = 0; b->around.n && k < p->symbol.n; k++)
		arg[narg++] = lx_param(outer, k);
	for (uint32_t k = 0; k < b->around.n; k++)
		arg[narg++] = index[k] = b->around.data[k].index;
	f->buf.data = p->run->buf.data; /* of the same buffers, read only */
	f->buf.n = f->buf.cap = p->run->buf.n;
	start_function(b, f);
	for (uint32_t k = 0; k < n; k++)
		emit_step(b, &step[k]);
	b->f = outer;
	b->sizes = *sizes;
	for (uint32_t k = 0; k < b->around.n; k++)
		b->around.data[k].index = index[k];
	array_push(b->arena, &p->run_part, f);
	f->name = arena_printf(b->arena, "run_part_%u", p->run_part.n);
	ls_part(outer, p->run_part.n - 1, 0, arg, narg);
}

static uint32_t count_launches(const StepList *list)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < list->step.n; i++)
		n += list->step.data[i].kind == STEP_LOOP ? count_launches(list->step.data[i].body) : 1;
	return n;
}

/* What a step adds to the function that it is in: long loops have bodies in parts of their own. */
static uint32_t step_size(const Step *s)
{
	uint32_t n = s->kind == STEP_LOOP ? count_launches(s->body) : 1;
	return n <= PART ? n : n / PART + 1;
}

static void emit_steps(Builder *b, const StepList *list)
{
	const Step *step = list->step.data;
	bool cut = count_launches(list) > PART;
	for (uint32_t i = 0, n; i < list->step.n; i += n) {
		uint32_t size = step_size(&step[i]);
		for (n = 1; cut && i + n < list->step.n && size + step_size(&step[i + n]) <= PART; n++)
			size += step_size(&step[i + n]);
		if (cut)
			emit_part(b, &step[i], n);
		else
			emit_step(b, &step[i]);
	}
}

/* ---- the whole ---- */

static void describe(Builder *b, const Graph *g)
{
	for (uint32_t i = 0; i < g->input.n; i++) {
		const Type *t = node_type(g, g->input.data[i].node);
		array_push(b->arena, &b->p->input,
		           (ProgramTensor){.name = g->input.data[i].name, .dtype = t->dtype, .rank = t->n,
		                           .dim = t->dim});
	}
	for (uint32_t i = 0; i < g->output.n; i++) {
		const Type *t = node_type(g, g->output.data[i].node);
		array_push(b->arena, &b->p->output,
		           (ProgramTensor){.name = g->output.data[i].name, .dtype = t->dtype, .rank = t->n,
		                           .dim = t->dim});
	}
}

static void start_run(Builder *b)
{
	Program *p = b->p;
	p->run = loop_new(p->ir, "run");
	for (uint32_t i = 0; i < p->input.n; i++)
		loop_buf(p->run, (LArg){.name = p->input.data[i].name, .dtype = DT_u8, .read = true, .align = 1});
	for (uint32_t i = 0; i < p->output.n; i++)
		loop_buf(p->run, (LArg){.name = p->output.data[i].name, .dtype = DT_u8, .written = true, .align = 1});
	loop_buf(p->run, (LArg){.name = "weights", .dtype = DT_u8, .read = true, .align = 64});
	loop_buf(p->run, (LArg){.name = "workspace", .dtype = DT_u8, .read = true, .written = true, .align = 64});
	loop_buf(p->run, (LArg){.name = "state", .dtype = DT_u8, .read = true, .written = true, .align = 64});
	start_function(b, p->run);
}

Program *schedule_program(Lowered *l, const Target *target, const ScheduleOptions *opt)
{
	uint32_t errors = l->ir->ctx->nerror;
	Program *p = program_new(l->ir, l->graph->name);
	Builder b = {.l = l, .p = p, .arena = l->ir->ctx->arena, .syms = l->ir->syms, .target = target,
	             .times = cost_number(l->ir->ctx->arena, 1), .ninput = l->graph->input.n, .noutput = l->graph->output.n};
	intern_init(&b.fn_text, b.arena);
	describe(&b, l->graph);
	for (uint32_t i = 1; i < l->check.n; i++)
		program_message(p, l->check.data[i]);
	program_find_symbols(p);
	if (opt->weights)
		share_weights(&b, opt->weights);
	b.plan = plan_memory(l, !opt->no_plan);
	b.place = ARENA_ARRAY(b.arena, CarryPlace, l->buf.n + MAX_SCHEDULE_BUFFERS);
	b.weight = ARENA_ARRAY(b.arena, uint32_t, l->buf.n + MAX_SCHEDULE_BUFFERS);
	b.owner = ARENA_ARRAY(b.arena, uint32_t, l->buf.n + MAX_SCHEDULE_BUFFERS);
	join_carried(&b, &l->steps);
	start_run(&b);
	emit_steps(&b, &l->steps);
	if (!program_sizes(p, l->graph, b.plan.total) || l->ir->ctx->nerror != errors)
		return NULL;
	p->workspace_hint = (uint64_t)sym_hint(b.syms, b.plan.total);
#ifndef NDEBUG
	if (!program_verify(p))
		ctx_bug_verify(l->ir->ctx, "scheduling");
#endif
	return p;
}
