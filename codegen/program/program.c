/* Building the Program: schedule every distinct kernel, lay out the weights, emit the launches.
 *
 *   if @p { .. } else { .. }         read p; if p { .. } else { .. }
 *   while @p { test } do { body }    n = 0; go = true; while go { test; read p; go = p; if go {
 *                                    body; n = n + 1 } }
 *
 * Long step lists are cut; the pieces are outlined, which makes them functions of their own. */
#include "codegen/program/legalise.h"
#include "codegen/program/program_priv.h"
#include "codegen/program/distinct.h"
#include "codegen/program/plan.h"

#include <string.h>

/* Where a carried buffer is: at `odd` after an odd number of iterations, else at `even`. */
typedef struct {
	Sym even, odd;
	uint32_t loop;  /* the number is the index of this loop of those around (1: the outermost);
	                   0: it is the next */
	uint32_t ended; /* that of this while (index into Builder.ended + 1); 0: it is `count` */
	Sym count;
} CarryPlace;

/* A loop around what is emitted, and its index in the function at hand; of a WHILE, how many
 * iterations were done. */
typedef struct {
	const Step *step;
	Lx index;
} Around;

/* A WHILE that ended before, in a list around: how many iterations it did, in a function that knows
 * it. */
typedef struct {
	const LoopFn *f;
	Lx count;
} Ended;

/* A size that depends on data, where it is known: of its own function a variable, of one that is
 * outlined from it a parameter. */
typedef struct {
	Sym var;
	uint32_t room; /* that was made when it was found out, or 0 */
} BornSize;

/* What another function knew of it, before the function at hand got a parameter. */
typedef struct {
	uint32_t ended;
	Ended before;
} Asked;

/* Where everything lies. */
typedef struct {
	MemoryPlan plan;
	CarryPlace *place; /* by buffer: byte offset in its region, when it differs from the plan's;
	                      else even is none */
	uint32_t *owner;   /* by buffer: itself, or the one that it swaps with in a loop; 0:
	                      itself */
	bool *has_room;    /* by output: its memory is there, or the caller's */
} BuilderMemory;

/* What is known of sizes. */
typedef struct {
	SymLower sizes;       /* in the function at hand */
	ARRAY(BornSize) born; /* in the lists around */
	uint32_t nsize;       /* STEP_SIZEs so far */
	const Graph *guarded; /* whose guards are checked when their sizes are known */
	SizeBounds *bounds;   /* of the same graph */
} BuilderSizes;

/* The loops and outlined functions around what is emitted now. */
typedef struct {
	ARRAY(Around) around;
	ARRAY(Ended) ended;
	ARRAY(Asked) asked; /* by outlined functions that are being emitted */
	const Cost *times;  /* how often it runs: iterations of the loops around it; of a WHILE one
	                       is counted */
	bool tight;         /* lists are cut however short they are */
} BuilderNest;

typedef struct {
	Lowered *l;
	Program *p;
	ProgramEntry *e;  /* the last one of p */
	Arena *arena;
	SymTab *syms;
	DistinctKernels kernels;
	uint32_t next;    /* of kernels.kernel: the next to be launched */
	uint32_t ninput, noutput;
	uint32_t *state; /* by state of the entry: which of the program */
	Section section; /* of p */
	LoopFn *f;        /* at hand: `run` or one that is outlined from it */
	BuilderMemory memory;
	BuilderSizes known;
	BuilderNest nest;
} Builder;

/* Which state of the program the entry's are, and how it uses them. */
static void use_state(Builder *b)
{
	const Lowered *l = b->l;
	b->state = ARENA_ARRAY(b->arena, uint32_t, l->state.n);
	for (uint32_t k = 0; k < b->p->state.n; k++)
		array_push(b->arena, &b->e->state_use, 0);
	for (uint32_t k = 0; k < l->state.n; k++) {
		b->state[k] = section_state(&b->section, &l->state.data[k]);
		b->e->state_use.data[b->state[k]] |= PROGRAM_READS | (l->state.data[k].written ? PROGRAM_WRITES : 0);
	}
}

/* ---- addresses ---- */

/* Of a while: an outlined function gets it as a parameter, when it first needs it. */
static Lx count_of(Builder *b, uint32_t ended)
{
	Ended *e = &b->nest.ended.data[ended];
	if (e->f != b->f) {
		array_push(b->arena, &b->nest.asked, (Asked){ended, *e});
		*e = (Ended){b->f, lx_param(b->f, loop_param(b->f, "n"))};
	}
	return e->count;
}

static Lx place_offset(Builder *b, const CarryPlace *p)
{
	LoopFn *f = b->f;
	Lx n = p->loop    ? b->nest.around.data[p->loop - 1].index
	       : p->ended ? count_of(b, p->ended - 1)
			  : sym_lower(&b->known.sizes, p->count);
	Lx odd = lx_cmp(f, SC_eq, lx_mod(f, n, lx_int(f, 2)), lx_int(f, 1));
	return lx_select(f, odd, sym_lower(&b->known.sizes, p->odd), sym_lower(&b->known.sizes, p->even));
}

/* Byte `at` of a room, or of the workspace. */
static Lx room_address(Builder *b, uint32_t room, Lx at)
{
	return lx_addr(b->f, b->ninput + b->noutput + (room ? 2 + room : 1), at);
}

/* Of a buffer; `layout`: in which a constant is read. */
static Lx address(Builder *b, BufId id, const Layout *layout)
{
	LoopFn *f = b->f;
	const Buffer *buf = buf_of(b->l, id);
	switch (buf->kind) {
	case BUF_INPUT:
		return lx_addr(f, buf->k, lx_int(f, 0));
	case BUF_OUTPUT:
		return lx_addr(f, b->ninput + buf->k, lx_int(f, 0));
	case BUF_CONST: {
		uint32_t w = section_constant(&b->section, buf, layout);
		return lx_addr(f, b->ninput + b->noutput,
		               lx_int(f, (int64_t)b->p->constant.data[w].offset));
	}
	case BUF_STATE:
		return lx_addr(f, b->ninput + b->noutput + 2, lx_int(f, (int64_t)b->p->state.data[b->state[buf->k]].offset));
	default: {
		Lx at = b->memory.place[id.i].even.i ? place_offset(b, &b->memory.place[id.i]) : sym_lower(&b->known.sizes, b->memory.plan.offset[id.i]);
		return room_address(b, b->memory.plan.room[id.i], at);
	}
	}
}

/* ---- kernels ---- */

/* Of a call with all its iterations. */
static ProgramCost count(const Builder *b, KernelCost once)
{
	return (ProgramCost){.flops = cost_mul(b->arena, b->nest.times, once.flops),
	                     .bytes = cost_mul(b->arena, b->nest.times, once.bytes), .launches = b->nest.times};
}

static uint32_t owner_of(const Builder *b, uint32_t buf)
{
	while (b->memory.owner[buf])
		buf = b->memory.owner[buf];
	return buf;
}

/* An output that may be an input's memory: for those that share phases they are one. */
static void join_donated(Builder *b)
{
	const Lowered *l = b->l;
	for (uint32_t i = 1; i < l->buf.n; i++)
		for (uint32_t k = 1; l->buf.data[i].donated && l->buf.data[i].kind == BUF_OUTPUT && k < l->buf.n; k++) {
			const Buffer *in = &l->buf.data[k];
			if (in->donated && in->kind == BUF_INPUT && (int32_t)in->k == l->donates.data[l->buf.data[i].k])
				b->memory.owner[i] = k;
		}
}

static void join_carried(Builder *b, const StepList *list)
{
	for (uint32_t i = 0; i < list->step.n; i++) {
		const Step *s = &list->step.data[i];
		StepList *inner[MAX_STEP_LISTS];
		for (uint32_t c = 0; c < s->ncarry; c++) {
			uint32_t from = owner_of(b, s->carry[c].from.i), to = owner_of(b, s->carry[c].to.i);
			if (from != to)
				b->memory.owner[to] = from;
		}
		for (uint32_t k = 0, n = step_lists(s, inner); k < n; k++)
			join_carried(b, inner[k]);
	}
}

static const Layout *layout_of(const Builder *b, const Scheduled *k, const SchedArg *a)
{
	return a->packed ? a->packed : &buf_of(b->l, k->buf[a->k])->layout;
}

/* The bytes of so many elements; of what differs between the rounds of a loop, the most. */
static Sym bytes_of(const Builder *b, Sym numel, DType d)
{
	Sym bytes = sym_muli(b->syms, numel, dtype_size(d));
	return sym_uses_kind(b->syms, bytes, SYMVAR_AXIS) ? sym_most(b->syms, bytes) : bytes;
}

/* For the interpreter of loop IR: which buffers the arguments are. */
static ProgramArg describe_arg(const Builder *b, const Scheduled *k, const SchedArg *a)
{
	if (a->kind == ARG_TEMP) {
		const SchedTemp *t = &k->schedule->temp.data[a->k];
		return (ProgramArg){.name = t->name, .bytes = bytes_of(b, t->numel, t->dtype),
		                    .owner = b->l->buf.n + k->temp + a->k};
	}
	BufId id = k->buf[a->k];
	const Buffer *buf = buf_of(b->l, id);
	const Layout *layout = layout_of(b, k, a);
	Sym bytes = bytes_of(b, layout_numel(b->l->ir, layout), buf->dtype);
	if (!bytes.i)
		bytes = sym_muli(b->syms, layout_most(b->l->ir, layout), dtype_size(buf->dtype));
	return (ProgramArg){.name = buf->name, .bytes = bytes, .owner = owner_of(b, id.i)};
}

static Lx address_of(Builder *b, const Scheduled *k, const SchedArg *a)
{
	if (a->kind == ARG_TEMP)
		return room_address(b, b->memory.plan.room[b->l->buf.n + k->temp + a->k], sym_lower(&b->known.sizes, b->memory.plan.temp[k->temp + a->k]));
	return address(b, k->buf[a->k], layout_of(b, k, a));
}

static GpuTime part_of(GpuTime t, double n)
{
	return (GpuTime){t.all / n, t.start / n, t.memory / n, t.units / n, t.waits / n, t.library / n};
}

static uint32_t add_call(Builder *b, const Scheduled *k, uint32_t phase)
{
	const Schedule *s = k->schedule;
	const SchedPhase *p = &s->phase.data[phase];
	ProgramArg *arg = ARENA_ARRAY(b->arena, ProgramArg, p->narg);
	for (uint32_t i = 0; i < p->narg; i++)
		arg[i] = describe_arg(b, k, &p->arg[i]);
	const char *algorithm = s->algorithm;
	if (s->phase.n > 1)
		algorithm = arena_printf(b->arena, "%s, phase %u of %u", algorithm, phase + 1, s->phase.n);
	return program_add_call(b->e, &(ProgramCall){.fn = k->fn[phase],
						     .name = k->name,
						     .algorithm = algorithm,
						     .why = s->why,
						     .plan = s->plan,
						     .stored = k->stored,
						     .lines = k->lines,
						     .nrefused = s->refused.n,
						     .refused = s->refused.data,
						     .cost = count(b, p->cost),
						     .time = part_of(s->time, s->phase.n),
						     .arg = arg,
						     .alone = p->alone});
}

/* The extents of what an argument is: *n of them. */
static const Sym *extents_of(const Builder *b, const Scheduled *k, const SchedArg *a, uint32_t *n)
{
	*n = a->kind == ARG_TEMP ? 1 : buf_of(b->l, k->buf[a->k])->rank;
	return a->kind == ARG_TEMP ? &k->schedule->temp.data[a->k].numel : buf_of(b->l, k->buf[a->k])->dim;
}

/* There are no tasks where it is 0. */
static bool counts_tasks(const Builder *b, const SchedPhase *p, Sym extent)
{
	Sym zero = sym_int(b->syms, 0);
	return sym_kind(b->syms, extent) == SYM_VAR && sym_is(b->syms, sym_subst(b->syms, p->ntasks, &extent, &zero, 1), 0);
}

/* Some extent is 0 but those that count tasks, or none can be: then none. */
static Lx is_empty(Builder *b, const SchedPhase *p, const Sym *dim, uint32_t n)
{
	Lx least = {0};
	int64_t lo, hi;
	for (uint32_t d = 0; d < n; d++) {
		sym_range(b->syms, dim[d], &lo, &hi);
		if (lo > 0 || counts_tasks(b, p, dim[d]))
			continue;
		Lx x = sym_lower(&b->known.sizes, dim[d]);
		least = least.i ? lx_min(b->f, least, x) : x;
	}
	return least.i ? lx_cmp(b->f, SC_le, least, lx_int(b->f, 0)) : least;
}

/* Nothing is executed where all that a phase writes has no elements, unless it checks something
 * besides: its loops may go over other extents than the one that is 0. */
static Lx task_count(Builder *b, const Scheduled *k, const SchedPhase *p)
{
	LoopFn *f = b->f;
	Lx n = sym_lower(&b->known.sizes, p->ntasks), empty = {0};
	bool written = !phase_fails(p);
	for (uint32_t i = 0; i < p->narg && written; i++) {
		uint32_t rank;
		const Sym *dim = extents_of(b, k, &p->arg[i], &rank);
		if (!p->f->buf.data[i].written)
			continue;
		Lx x = is_empty(b, p, dim, rank);
		written = x.i;
		empty = empty.i && x.i ? lx_and(f, empty, x) : x;
	}
	return written && empty.i ? lx_select(f, empty, lx_int(f, 0), n) : n;
}

static void launch(Builder *b, const Scheduled *k)
{
	for (uint32_t i = 0; i < k->schedule->phase.n; i++) {
		const SchedPhase *p = &k->schedule->phase.data[i];
		uint32_t narg = 0;
		if (k->continues[i])
			ls_same_phase(b->f);
		Lx *arg = ARENA_ARRAY(b->arena, Lx, p->narg + p->nparam + p->nliteral);
		for (uint32_t j = 0; j < p->narg; j++)
			arg[narg++] = address_of(b, k, &p->arg[j]);
		for (uint32_t j = 0; j < p->nparam; j++)
			arg[narg++] = sym_lower(&b->known.sizes, p->param[j]);
		for (uint32_t j = 0; j < p->nliteral; j++)
			arg[narg++] = lx_int(b->f, p->literal[j]);
		uint32_t call = add_call(b, k, i);
		note_launch(b->syms, b->e->program->fn.data[k->fn[i]], p);
		ls_launch(b->f, call, task_count(b, k, p), arg, p->narg, narg);
	}
}

/* ---- steps ---- */

static void emit_steps(Builder *b, const StepList *list);

/* ---- sizes that depend on data ---- */

/* Input k has the extents that its type says, of those that were not known before. */
static void check_input(Builder *b, uint32_t k, const Type *type, Sym var)
{
	const ProgramTensor *t = &b->e->input.data[k];
	for (uint32_t d = 0; d < t->rank; d++) {
		Sym want = type->dim[d];
		if (want.i == t->dim[d].i || !sym_uses(b->syms, want, var) || !sym_lower_can(&b->known.sizes, want))
			continue;
		Text text;
		text_init(&text, b->arena);
		text_add(&text, "input \"");
		text_format(&text, t->name);
		text_printf(&text, "\" dimension %u: expected %s = %%lld, got %%lld", d, sym_str(b->syms, want));
		Lx arg[2] = {sym_lower(&b->known.sizes, want), sym_lower(&b->known.sizes, t->dim[d])};
		ls_assert(b->f, lx_cmp(b->f, SC_eq, arg[0], arg[1]), program_message(b->p, text.data), arg, 2);
	}
}

/* What a size was waited for: extents of inputs, conditions of the model, memory of outputs. */
static void after_size(Builder *b, Sym var)
{
	const Graph *main = b->l->graph;
	while (size_divisors_assert(b->known.bounds, &b->known.sizes, b->p, main, var))
		;
	for (uint32_t i = 0, k = 0; i < main->input.n; i++)
		if (main->input.data[i].kind == INPUT_USER)
			check_input(b, k++, node_type(main, main->input.data[i].node), var);
	for (uint32_t k = 0; k < b->known.guarded->guard.n; k++) {
		const GraphGuard *g = &b->known.guarded->guard.data[k];
		bool uses = sym_uses(b->syms, g->a, var) || sym_uses(b->syms, g->b, var);
		if (uses && sym_lower_can(&b->known.sizes, g->a) && sym_lower_can(&b->known.sizes, g->b))
			program_guard(b->p, &b->known.sizes, b->l->graph, g);
	}
	while (size_bounds_assert(b->known.bounds, &b->known.sizes, b->p, main, var))
		;
	for (uint32_t k = 0; k < b->noutput; k++) {
		const ProgramTensor *t = &b->e->output.data[k];
		bool known = true;
		for (uint32_t d = 0; d < t->rank && known; d++)
			known = sym_lower_can(&b->known.sizes, t->dim[d]);
		if (!known || b->memory.has_room[k])
			continue;
		Lx dim[MAX_RANK];
		for (uint32_t d = 0; d < t->rank; d++)
			dim[d] = sym_lower(&b->known.sizes, t->dim[d]);
		ls_room(b->f, b->ninput + k, dim, t->rank);
		b->memory.has_room[k] = true;
	}
}

/* Memory for what has no bound. */
static uint32_t make_room(Builder *b)
{
	uint32_t room = b->memory.plan.room_of[b->known.nsize++];
	Lx bytes = room ? sym_lower(&b->known.sizes, b->memory.plan.room_bytes[room]) : (Lx){0};
	if (room)
		ls_room(b->f, b->ninput + b->noutput + 2 + room, &bytes, 1);
	return room;
}

/* The value at hand is that of a symbol from now on: its range was checked. */
static void give_size(Builder *b, const Step *s, Lx value, int64_t lo)
{
	LoopFn *f = b->f;
	/* so that all see that it is not negative */
	value = lo >= 0 ? lx_max(f, value, lx_int(f, 0)) : value;
	sym_lower_set(&b->known.sizes, s->size, lx_var(f, ls_let(f, sym_name(b->syms, s->size), value)));
	array_push(b->arena, &b->known.born, (BornSize){.var = s->size});
	uint32_t at = b->known.born.n - 1;
	b->known.born.data[at].room = make_room(b);
	after_size(b, s->size);
}

static void emit_size(Builder *b, const Step *s)
{
	LoopFn *f = b->f;
	const Buffer *buf = buf_of(b->l, s->pred);
	int64_t lo, hi;
	Lx value = lx_var(f, ls_read(f, "size", DT_i64, address(b, s->pred, &buf->layout), owner_of(b, s->pred.i)));
	sym_range(b->syms, s->size, &lo, &hi);
	if (sym_lower_can(&b->known.sizes, s->size)) {
		Lx known = sym_lower(&b->known.sizes, s->size);
		ls_assert(f, lx_cmp(f, SC_eq, value, known), program_message(b->p, s->differs), (Lx[]){value, known}, 2);
		b->known.nsize++;
		return;
	}
	if (sym_kind(b->syms, s->size) != SYM_VAR) {
		ctx_error(b->l->ir->ctx, NULL, "the size %s depends on data, and its symbols have no values", sym_str(b->syms, s->size));
		return;
	}
	uint32_t message = program_message(b->p, s->message);
	ls_reads_size(f, s->size);
	Lx ok = lo > -SYM_INF ? lx_cmp(f, SC_ge, value, lx_int(f, lo)) : (Lx){0};
	if (hi < SYM_INF) {
		Lx less = lx_cmp(f, SC_le, value, lx_int(f, hi));
		ok = ok.i ? lx_and(f, ok, less) : less;
	}
	if (ok.i)
		ls_assert(f, ok, message, &value, 1);
	give_size(b, s, value, lo);
}

/* Those of a list that ends: their rooms are given back. */
static void forget_sizes(Builder *b, uint32_t n)
{
	for (uint32_t k = b->known.born.n; k-- > n;)
		if (b->known.born.data[k].room)
			ls_room(b->f, b->ninput + b->noutput + 2 + b->known.born.data[k].room, NULL, 0);
	b->known.born.n = n;
}

/* What its body demands of sizes that are known. */
static void enter_graph(Builder *b, const Graph *g)
{
	b->known.guarded = g;
	b->known.bounds = size_bounds_new(b->l->ir, b->known.bounds);
	size_bounds_add_graph(b->known.bounds, g);
	while (size_bounds_assert(b->known.bounds, &b->known.sizes, b->p, b->l->graph, (Sym){0}))
		;
	for (uint32_t k = 0; k < g->guard.n; k++) {
		const GraphGuard *w = &g->guard.data[k];
		if (sym_lower_can(&b->known.sizes, w->a) && sym_lower_can(&b->known.sizes, w->b))
			program_guard(b->p, &b->known.sizes, b->l->graph, w);
	}
}

/* A list inside a step: what is found out in it is not known after it. */
static void emit_list(Builder *b, const StepList *list)
{
	uint32_t scope = b->known.sizes.log.n, ended = b->nest.ended.n, born = b->known.born.n;
	const Graph *guarded = b->known.guarded;
	SizeBounds *bounds = b->known.bounds;
	if (list->graph)
		enter_graph(b, list->graph);
	emit_steps(b, list);
	forget_sizes(b, born);
	b->known.guarded = guarded;
	b->known.bounds = bounds;
	sym_lower_forget(&b->known.sizes, scope);
	b->nest.ended.n = ended;
}

static void enter(Builder *b, const Step *step, Lx index)
{
	LoopFn *f = b->f;
	array_push(b->arena, &b->nest.around, (Around){step, index});
	if (step->kind == STEP_WHILE)
		return;
	const Lx last = lx_sub(f, sym_lower(&b->known.sizes, step->extent), lx_int(f, 1)), down = lx_sub(f, last, index);
	sym_lower_set(&b->known.sizes, step->var, step->reverse ? down : index);
	for (uint32_t k = 0; k < step->nalso; k++)
		sym_lower_set(&b->known.sizes, step->also[k].var, step->also[k].reverse ? down : index);
}

/* Even iterations read `from` and write `to`, odd ones the other way round. */
static void swap_inside(Builder *b, const Step *step)
{
	for (uint32_t c = 0; c < step->ncarry; c++) {
		Sym from = b->memory.plan.offset[step->carry[c].from.i], to = b->memory.plan.offset[step->carry[c].to.i];
		b->memory.place[step->carry[c].from.i] = (CarryPlace){.even = from, .odd = to, .loop = b->nest.around.n};
		b->memory.place[step->carry[c].to.i] = (CarryPlace){.even = to, .odd = from, .loop = b->nest.around.n};
	}
}

static void swap_after(Builder *b, const Step *step, Sym count, uint32_t ended)
{
	for (uint32_t c = 0; c < step->ncarry; c++) {
		Sym from = b->memory.plan.offset[step->carry[c].from.i], to = b->memory.plan.offset[step->carry[c].to.i];
		b->memory.place[step->carry[c].from.i] = (CarryPlace){0};
		b->memory.place[step->carry[c].to.i] = (CarryPlace){.even = from, .odd = to, .count = count, .ended = ended};
	}
}

static void emit_loop(Builder *b, const Step *step)
{
	LoopFn *f = b->f;
	uint32_t scope = b->known.sizes.log.n;
	Lx n = sym_lower(&b->known.sizes, step->extent);
	enter(b, step, lx_var(f, ls_for(f, "i", lx_int(f, 0), n, 1)));
	swap_inside(b, step);
	const Cost *times = b->nest.times;
	b->nest.times = cost_mul(b->arena, times, cost_sym(b->arena, step->extent));
	emit_list(b, step->body);
	b->nest.times = times;
	sym_lower_forget(&b->known.sizes, scope);
	b->nest.around.n--;
	ls_end(f);
	swap_after(b, step, step->extent, 0);
}

static Lx read_pred(Builder *b, BufId pred)
{
	const Buffer *buf = buf_of(b->l, pred);
	Lx at = address(b, pred, &buf->layout);
	return lx_var(b->f, ls_read(b->f, "holds", DT_bool, at, owner_of(b, pred.i)));
}

static void emit_if(Builder *b, const Step *step)
{
	LoopFn *f = b->f;
	ls_if(f, read_pred(b, step->pred));
	emit_list(b, step->body);
	ls_else(f);
	emit_list(b, step->other);
	ls_end(f);
}

static void emit_while(Builder *b, const Step *step)
{
	LoopFn *f = b->f;
	uint32_t scope = b->known.sizes.log.n;
	Lv n = ls_var(f, "n", lx_int(f, 0)), go = ls_var(f, "go", lx_int_of(f, (LType){DT_bool, 1}, 1));
	ls_while(f, lx_var(f, go));
	enter(b, step, lx_var(f, n));
	swap_inside(b, step);
	emit_list(b, step->test);
	ls_set(f, go, read_pred(b, step->pred));
	ls_if(f, lx_var(f, go));
	emit_list(b, step->body);
	ls_set(f, n, lx_add(f, lx_var(f, n), lx_int(f, 1)));
	ls_end(f);
	sym_lower_forget(&b->known.sizes, scope);
	b->nest.around.n--;
	ls_end(f);
	array_push(b->arena, &b->nest.ended, (Ended){f, lx_var(f, n)});
	swap_after(b, step, (Sym){0}, b->nest.ended.n);
}

/* In the order in which they are launched. */
static void schedule_steps(Builder *b, const StepList *list)
{
	for (uint32_t i = 0; i < list->step.n; i++) {
		const Step *s = &list->step.data[i];
		StepList *inner[MAX_STEP_LISTS];
		if (s->kind == STEP_KERNEL)
			distinct_kernel(&b->kernels, s->kernel);
		if (s->kind == STEP_CALL)
			distinct_call(&b->kernels, s->call);
		for (uint32_t k = 0, n = step_lists(s, inner); k < n; k++)
			schedule_steps(b, inner[k]);
	}
}

/* ---- outlining ---- */

static bool may_be_negative(const Builder *b, uint32_t born)
{
	int64_t lo, hi;
	sym_range(b->syms, b->known.born.data[born].var, &lo, &hi);
	return lo < 0;
}

/* A function with values of the symbols and of the loops around. */
static void start_function(Builder *b, LoopFn *f)
{
	b->f = f;
	sym_lower_init(&b->known.sizes, b->l->ir->ctx, b->syms, f);
	for (uint32_t i = 0; i < b->e->symbol.n; i++) {
		uint32_t k = loop_param(f, sym_name(b->syms, b->e->symbol.data[i]));
		sym_lower_set(&b->known.sizes, b->e->symbol.data[i], lx_param(f, k));
	}
	uint32_t n = b->nest.around.n;
	b->nest.around.n = 0;
	for (uint32_t i = 0; i < n; i++)
		enter(b, b->nest.around.data[i].step, lx_param(f, loop_param(f, "i")));
	for (uint32_t i = 0; i < b->known.born.n; i++) {
		const char *name = sym_name(b->syms, b->known.born.data[i].var);
		Lx value = lx_param(f, loop_param(f, name));
		if (may_be_negative(b, i)) /* the difference of two that are not */
			value = lx_sub(f, value, lx_param(f, loop_param(f, name)));
		sym_lower_set(&b->known.sizes, b->known.born.data[i].var, value);
	}
}

static void emit_copy(Builder *b, const Step *s)
{
	const Buffer *from = buf_of(b->l, s->from), *to = buf_of(b->l, s->to);
	Sym bytes = sym_muli(b->syms, layout_numel(b->l->ir, &from->layout), dtype_size(from->dtype));
	Lx source = address(b, s->from, &from->layout);
	ls_copy(b->f, address(b, s->to, &to->layout), source, sym_lower(&b->known.sizes, bytes));
}

/* Values that a step before has read are noted; others are copied here. */
static void emit_save(Builder *b, const StepSave *s)
{
	LoopFn *f = b->f;
	const Buffer *state = buf_of(b->l, s->state), *at = buf_of(b->l, s->at);
	uint32_t size = dtype_size(state->dtype), n = 0;
	Lx items = sym_lower(&b->known.sizes, s->n), arg[6];
	arg[n++] = address(b, s->record, &buf_of(b->l, s->record)->layout);
	arg[n++] = address(b, s->state, &state->layout);
	arg[n++] = address(b, s->values, &buf_of(b->l, s->values)->layout);
	if (s->at.i)
		arg[n++] = address(b, s->at, &at->layout);
	else
		ls_copy(f, arg[2], arg[1], lx_mul(f, items, lx_int(f, size)));
	arg[n] = items;
	arg[n + 1] = lx_int(f, size);
	ls_save(f, arg, n, n + 2, owner_of(b, s->values.i), s->at.i ? owner_of(b, s->at.i) : 0);
	uint64_t each = size + (s->at.i ? sizeof(int64_t) : 0);
	b->e->saved_hint += SAVE_RECORD + (uint64_t)sym_hint(b->syms, s->n) * each;
}

static void emit_step(Builder *b, const Step *s)
{
	switch (s->kind) {
	case STEP_KERNEL: case STEP_CALL: launch(b, &b->kernels.kernel.data[b->next++]); break;
	case STEP_COPY: emit_copy(b, s); break;
	case STEP_SAVE: emit_save(b, s->save); break;
	case STEP_LOOP: emit_loop(b, s); break;
	case STEP_IF: emit_if(b, s); break;
	case STEP_WHILE: emit_while(b, s); break;
	case STEP_SIZE: emit_size(b, s); break;
	}
}

/* What an outlined function is given where it needs more than its caller has: the symbols, the
 * indices around, the counts it asked for. */
static void call_outlined(Builder *b, uint32_t number, uint32_t first_asked)
{
	uint32_t n = 0, nasked = b->nest.asked.n - first_asked, nsymbol = b->e->symbol.n;
	Asked *asked = nasked ? arena_dup(b->arena, b->nest.asked.data + first_asked, nasked * sizeof *asked) : NULL;
	Lx *arg = ARENA_ARRAY(b->arena, Lx, nsymbol + b->nest.around.n + 2 * b->known.born.n + nasked);
	b->nest.asked.n = first_asked;
	for (uint32_t k = 0; k < nasked; k++)
		b->nest.ended.data[asked[k].ended] = asked[k].before;
	for (uint32_t k = 0; (nasked || b->nest.around.n || b->known.born.n) && k < nsymbol; k++)
		arg[n++] = lx_param(b->f, k);
	for (uint32_t k = 0; k < b->nest.around.n; k++)
		arg[n++] = b->nest.around.data[k].index;
	for (uint32_t k = 0; k < b->known.born.n; k++) {
		Lx value = sym_lower(&b->known.sizes, b->known.born.data[k].var), zero = lx_int(b->f, 0);
		arg[n++] = may_be_negative(b, k) ? lx_max(b->f, value, zero) : value;
		if (may_be_negative(b, k))
			arg[n++] = lx_max(b->f, lx_sub(b->f, zero, value), zero);
	}
	for (uint32_t k = 0; k < nasked; k++)
		arg[n++] = count_of(b, asked[k].ended);
	ls_outlined(b->f, number, 0, arg, n);
}

static void emit_part(Builder *b, const Step *step, uint32_t n)
{
	ProgramEntry *e = b->e;
	LoopFn *outer = b->f, *f = loop_new(b->p->ir, "");
	SymLower sizes = b->known.sizes;
	uint32_t naround = b->nest.around.n, nended = b->nest.ended.n, first_asked = b->nest.asked.n;
	Around *around = arena_dup(b->arena, b->nest.around.data, naround * sizeof *around);
	bool tight = b->nest.tight;
	f->buf.data = e->run->buf.data; /* of the same buffers, read only */
	f->buf.n = f->buf.cap = e->run->buf.n;
	start_function(b, f);
	b->nest.tight = false;
	for (uint32_t k = 0; k < n; k++)
		emit_step(b, &step[k]);
	b->nest.tight = tight;
	b->f = outer;
	b->known.sizes = sizes;
	b->nest.ended.n = nended;
	for (uint32_t k = 0; k < naround; k++)
		b->nest.around.data[k] = around[k];
	array_push(b->arena, &e->run_outlined, f);
	f->name = program_outlined_name(e, "run", e->run_outlined.n);
	call_outlined(b, e->run_outlined.n - 1, first_asked);
}

/* Of a step whose first kernel is number *kernel, which advances. */
static uint32_t count_launches(const Builder *b, const Step *s, uint32_t *kernel)
{
	StepList *inner[MAX_STEP_LISTS];
	uint32_t n = 0, lists = step_lists(s, inner);
	if (step_is_launch(s))
		return b->kernels.kernel.data[(*kernel)++].schedule->phase.n;
	for (uint32_t k = 0; k < lists; k++)
		for (uint32_t i = 0; i < inner[k]->step.n; i++)
			n += count_launches(b, &inner[k]->step.data[i], kernel);
	return n;
}

/* What each step adds to the function that it is in: long lists inside it are outlined. Returns the
 * number of launches. */
static uint32_t find_sizes(const Builder *b, const StepList *list, uint32_t *size)
{
	uint32_t all = 0, kernel = b->next;
	for (uint32_t i = 0; i < list->step.n; i++) {
		uint32_t n = count_launches(b, &list->step.data[i], &kernel);
		size[i] = n <= OUTLINE_SIZE ? n : n / OUTLINE_SIZE + 1;
		all += n;
	}
	return all;
}

/* Of a list that is cut, a WHILE stays in the function at hand: what comes after it needs its
 * count. All that it holds is outlined. */
static void emit_whole_while(Builder *b, const Step *s)
{
	bool tight = b->nest.tight;
	b->nest.tight = true;
	emit_while(b, s);
	b->nest.tight = tight;
}

/* How many steps from the first on are outlined together. */
static uint32_t outline_length(const Step *step, const uint32_t *size, uint32_t n)
{
	uint32_t sum = size[0], k = 1;
	for (; k < n && step[k].kind != STEP_WHILE && step[k].kind != STEP_SIZE && sum + size[k] <= OUTLINE_SIZE; k++)
		sum += size[k];
	return k;
}

static void emit_steps(Builder *b, const StepList *list)
{
	const Step *step = list->step.data;
	uint32_t *size = ARENA_ARRAY(b->arena, uint32_t, list->step.n);
	bool cut = find_sizes(b, list, size) > (b->nest.tight ? 0 : OUTLINE_SIZE);
	for (uint32_t i = 0, n; i < list->step.n; i += n) {
		n = 1;
		if (!cut) {
			emit_step(b, &step[i]);
		} else if (step[i].kind == STEP_WHILE) {
			emit_whole_while(b, &step[i]);
		} else if (step[i].kind == STEP_SIZE) { /* what comes after it needs its value */
			emit_step(b, &step[i]);
		} else {
			n = outline_length(&step[i], &size[i], list->step.n - i);
			emit_part(b, &step[i], n);
		}
	}
}

/* ---- the whole ---- */

static void describe(Builder *b, const Graph *g)
{
	for (uint32_t i = 0; i < g->input.n; i++) {
		const Type *t = node_type(g, g->input.data[i].node);
		if (g->input.data[i].kind != INPUT_USER)
			continue;
		array_push(b->arena, &b->e->input,
		           (ProgramTensor){.name = g->input.data[i].name, .dtype = t->dtype, .rank = t->n,
		                           .dim = t->dim, .donates = -1});
	}
	for (uint32_t i = 0; i < g->output.n; i++) {
		const Type *t = node_type(g, g->output.data[i].node);
		if (graph_output_is_state(g, i))
			continue;
		int32_t donates = b->l->donates.n ? b->l->donates.data[b->e->output.n] : -1;
		array_push(b->arena, &b->e->output,
		           (ProgramTensor){.name = g->output.data[i].name, .dtype = t->dtype, .rank = t->n,
		                           .dim = t->dim, .donates = donates});
	}
}

static void start_run(Builder *b)
{
	ProgramEntry *e = b->e;
	e->run = loop_new(b->p->ir, program_fn_name(e, "run"));
	for (uint32_t i = 0; i < e->input.n; i++)
		loop_buf(e->run, (LArg){.name = e->input.data[i].name, .dtype = DT_u8, .read = true, .align = 1});
	for (uint32_t i = 0; i < e->output.n; i++)
		loop_buf(e->run, (LArg){.name = e->output.data[i].name, .dtype = DT_u8, .written = true, .align = 1});
	loop_buf(e->run, (LArg){.name = "weights", .dtype = DT_u8, .read = true, .align = 64});
	loop_buf(e->run, (LArg){.name = "workspace", .dtype = DT_u8, .read = true, .written = true, .align = 64});
	loop_buf(e->run, (LArg){.name = "state", .dtype = DT_u8, .read = true, .written = true, .align = 64});
	e->nroom = b->memory.plan.nroom;
	for (uint32_t i = 0; i < e->nroom; i++)
		loop_buf(e->run, (LArg){.name = "room", .dtype = DT_u8, .read = true, .written = true, .align = 64});
	start_function(b, e->run);
}

/* Memory of an output is asked for when its sizes are known. False after ctx_error: they never
 * are. */
static bool outputs_have_rooms(const Builder *b)
{
	for (uint32_t k = 0; k < b->noutput; k++)
		if (!b->memory.has_room[k])
			return ctx_error(b->l->ir->ctx, NULL, "the size of output \"%s\" is known within a branch or a loop only",
			                 b->e->output.data[k].name);
	return true;
}

/* No two functions have the same. */
const char *program_fn_name(const ProgramEntry *e, const char *role)
{
	bool plain = strcmp(e->name, "run") == 0;
	return plain ? role : arena_printf(e->program->ir->ctx->arena, "entry_%s_%s", e->name, role);
}

const char *program_outlined_name(const ProgramEntry *e, const char *role, uint32_t k)
{
	return arena_printf(e->program->ir->ctx->arena, "%s_outlined_%u", program_fn_name(e, role), k);
}

static bool build_entry(Builder *b, const ScheduleEntry *entry, const Target *target, const ScheduleOptions *opt)
{
	Lowered *l = entry->lowered;
	b->l = l;
	b->e = program_entry(b->p, entry->name);
	b->next = 0;
	graph_enter(l->graph);
	distinct_enter(&b->kernels, l);
	describe(b, l->graph);
	b->ninput = b->e->input.n;
	b->noutput = b->e->output.n;
	use_state(b);
	program_find_symbols(b->e, l);
	schedule_steps(b, &l->steps);
	b->memory.owner = ARENA_ARRAY(b->arena, uint32_t, l->buf.n);
	join_carried(b, &l->steps);
	join_donated(b);
	form_phases(&b->kernels, &l->steps, b->memory.owner);
	b->memory.plan = plan_memory(&b->kernels, !opt->no_plan);
	b->memory.place = ARENA_ARRAY(b->arena, CarryPlace, l->buf.n);
	b->known.nsize = 0;
	b->known.guarded = l->graph;
	b->known.bounds = size_bounds_new(l->ir, NULL);
	size_bounds_add_graph(b->known.bounds, l->graph);
	b->memory.has_room = ARENA_ARRAY(b->arena, bool, b->noutput);
	for (uint32_t k = 0; k < b->noutput; k++)
		b->memory.has_room[k] = !program_is_found(b->e, k);
	start_run(b);
	emit_steps(b, &l->steps);
	TRY(outputs_have_rooms(b));
	TRY(program_sizes(b->e, l->graph, b->known.bounds, b->memory.plan.total));
	b->e->workspace_hint = (uint64_t)sym_hint(b->syms, b->memory.plan.total);
	if (!opt->plain)
		entry_legalise(b->e, &target->isa);
	return true;
}

Program *schedule_program(const ScheduleEntry *entry, uint32_t n, const Target *target, const ScheduleOptions *opt)
{
	const Lowered *first = entry[0].lowered, *last = entry[n - 1].lowered;
	Ctx *ctx = first->ir->ctx;
	uint32_t errors = ctx->nerror;
	Program *p = program_new(first->ir, opt->name ? opt->name : first->graph->name);
	Builder b = {.p = p, .arena = ctx->arena, .syms = p->ir->syms, .nest.times = cost_number(ctx->arena, 1)};
	distinct_init(&b.kernels, first, p, target);
	b.kernels.plain = opt->plain;
	section_init(&b.section, p);
	for (uint32_t i = 1; i < last->check.n; i++)
		program_message(p, last->check.data[i]);
	for (uint32_t k = 0; k < n; k++) /* state comes first in the weight section */
		for (uint32_t i = 0; i < entry[k].lowered->state.n; i++)
			section_state(&b.section, &entry[k].lowered->state.data[i]);
	if (opt->weights)
		section_share(&b.section, opt->weights);
	for (uint32_t k = 0; k < n; k++)
		if (!build_entry(&b, &entry[k], target, opt) || ctx->nerror != errors)
			return NULL;
	if (!program_verify(p, opt->plain ? NULL : &target->isa))
		ctx_bug_verify(ctx, "scheduling");
	return p;
}
