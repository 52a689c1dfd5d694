/* Building the Program: schedule every distinct kernel, lay out the weights, emit the launches. */
#include "codegen/legal/legalise.h"
#include "codegen/program/builder.h"

#include <string.h>

/* Finds the program's number of each state of the entry, and notes which states the entry reads and
 * writes. */
static void use_state(Builder *b)
{
	const Lowered *l = b->l;
	b->state = ARENA_ARRAY(b->arena, uint32_t, l->state.n);
	for (uint32_t k = 0; k < b->p->state.n; k++)
		array_push(b->arena, &b->e->state_use, 0);
	for (uint32_t k = 0; k < l->state.n; k++) {
		b->state[k] = section_state(&b->section, &l->state.data[k]);
		b->e->state_use.data[b->state[k]] |=
			PROGRAM_READS | (l->state.data[k].written ? PROGRAM_WRITES : 0);
	}
}

/* ---- addresses ---- */

/* Adds the count as a parameter to an outlined function that asks for it the first time. */
Lx builder_count(Builder *b, uint32_t ended)
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
	       : p->ended ? builder_count(b, p->ended - 1)
			  : sym_lower(&b->known.sizes, p->count);
	Lx odd = lx_cmp(f, SC_eq, lx_mod(f, n, lx_int(f, 2)), lx_int(f, 1));
	return lx_select(f, odd, sym_lower(&b->known.sizes, p->odd),
			 sym_lower(&b->known.sizes, p->even));
}

/* Returns the address of byte `at` of a room; room 0 is the workspace. */
static Lx room_address(Builder *b, uint32_t room, Lx at)
{
	return lx_addr(b->f, b->ninput + b->noutput + (room ? 2 + room : 1), at);
}

Lx builder_address(Builder *b, BufId id, const Layout *layout)
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
		return lx_addr(f, b->ninput + b->noutput + 2,
			       lx_int(f, (int64_t)b->p->state.data[b->state[buf->k]].offset));
	default: {
		Lx at = b->memory.place[id.i].even.i
				? place_offset(b, &b->memory.place[id.i])
				: sym_lower(&b->known.sizes, b->memory.plan.offset[id.i]);
		return room_address(b, b->memory.plan.room[id.i], at);
	}
	}
}

/* ---- kernels ---- */

/* Multiplies the cost of one execution by the iterations of the loops around. */
static ProgramCost count(const Builder *b, KernelCost once)
{
	return (ProgramCost){.flops = cost_mul(b->arena, b->nest.times, once.flops),
			     .bytes = cost_mul(b->arena, b->nest.times, once.bytes),
			     .launches = b->nest.times};
}

uint32_t builder_owner(const Builder *b, uint32_t buf)
{
	while (b->memory.owner[buf])
		buf = b->memory.owner[buf];
	return buf;
}

/* Makes the input the owner of the memory of an output that may be the input's memory: for phases
 * the two are one. */
static void join_donated(Builder *b)
{
	const Lowered *l = b->l;
	for (uint32_t i = 1; i < l->buf.n; i++)
		for (uint32_t k = 1;
		     l->buf.data[i].donated && l->buf.data[i].kind == BUF_OUTPUT && k < l->buf.n;
		     k++) {
			const Buffer *in = &l->buf.data[k];
			if (in->donated && in->kind == BUF_INPUT &&
			    (int32_t)in->k == l->donates.data[l->buf.data[i].k])
				b->memory.owner[i] = k;
		}
}

static void join_carried(Builder *b, const StepList *list)
{
	for (uint32_t i = 0; i < list->step.n; i++) {
		const Step *s = &list->step.data[i];
		StepList *inner[MAX_STEP_LISTS];
		for (uint32_t c = 0; c < s->ncarry; c++) {
			uint32_t from = builder_owner(b, s->carry[c].from.i),
				 to = builder_owner(b, s->carry[c].to.i);
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

/* Returns the bytes of so many elements; where they differ between the rounds of a loop, the most
 * of all rounds. */
static Sym bytes_of(const Builder *b, Sym numel, DType d)
{
	Sym bytes = sym_muli(b->syms, numel, dtype_size(d));
	return sym_uses_kind(b->syms, bytes, SYMVAR_AXIS) ? sym_most(b->syms, bytes) : bytes;
}

/* Adds to a description where the memory of a BUF_TEMP lies, and when. */
static ProgramArg describe_place(const Builder *b, ProgramArg a)
{
	const MemoryPlan *plan = &b->memory.plan;
	if (a.kind != BUF_TEMP)
		return a;
	if (!plan->room[a.buffer])
		a.offset = plan->offset[a.buffer];
	a.first = plan->first[a.buffer];
	a.last = plan->last[a.buffer];
	return a;
}

/* Returns the bytes of a buffer's elements, without padding. */
static Sym bytes_of_elements(const Builder *b, const Buffer *buf)
{
	Sym numel = sym_int(b->syms, 1);
	for (uint32_t d = 0; d < buf->rank; d++)
		numel = sym_mul(b->syms, numel, buf->dim[d]);
	return numel.i ? bytes_of(b, numel, buf->dtype) : numel;
}

/* Describes an argument to the interpreter of loop IR and to reports. */
static ProgramArg describe_arg(const Builder *b, const Scheduled *k, const SchedArg *a)
{
	if (a->kind == ARG_TEMP) {
		const SchedTemp *t = &k->schedule->temp.data[a->k];
		const uint32_t number = b->l->buf.n + k->temp + a->k;
		const Sym bytes = bytes_of(b, t->numel, t->dtype);
		return describe_place(b, (ProgramArg){.name = t->name,
						      .bytes = bytes,
						      .owner = number,
						      .buffer = number,
						      .kind = BUF_TEMP,
						      .dtype = t->dtype,
						      .own = bytes});
	}
	BufId id = k->buf[a->k];
	const Buffer *buf = buf_of(b->l, id);
	const Layout *layout = layout_of(b, k, a);
	Sym bytes = bytes_of(b, layout_numel(b->l->ir, layout), buf->dtype);
	if (!bytes.i)
		bytes = sym_muli(b->syms, layout_most(b->l->ir, layout), dtype_size(buf->dtype));
	return describe_place(b, (ProgramArg){.name = buf->name,
					      .bytes = bytes,
					      .owner = builder_owner(b, id.i),
					      .buffer = id.i,
					      .kind = buf->kind,
					      .dtype = buf->dtype,
					      .own = bytes_of_elements(b, buf)});
}

static Lx address_of(Builder *b, const Scheduled *k, const SchedArg *a)
{
	if (a->kind == ARG_TEMP)
		return room_address(
			b, b->memory.plan.room[b->l->buf.n + k->temp + a->k],
			sym_lower(&b->known.sizes, b->memory.plan.temp[k->temp + a->k]));
	return builder_address(b, k->buf[a->k], layout_of(b, k, a));
}

static GpuTime part_of(GpuTime t, double n)
{
	return (GpuTime){t.all / n,   t.start / n, t.memory / n,
			 t.units / n, t.waits / n, t.library / n};
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
		algorithm = arena_printf(b->arena, "%s, phase %u of %u", algorithm, phase + 1,
					 s->phase.n);
	return program_add_call(b->e, &(ProgramCall){.fn = k->fn[phase],
						     .name = k->name,
						     .algorithm = algorithm,
						     .why = s->why,
						     .plan = s->plan,
						     .stored = k->stored,
						     .lines = k->lines,
						     .kernel = k->kernel,
						     .joins = k->continues[phase],
						     .nrefused = s->refused.n,
						     .refused = s->refused.data,
						     .cost = count(b, p->cost),
						     .time = part_of(s->time, s->phase.n),
						     .arg = arg,
						     .alone = p->alone});
}

/* Returns the extents of the buffer or temporary that an argument is, and sets *n to their
 * number. */
static const Sym *extents_of(const Builder *b, const Scheduled *k, const SchedArg *a, uint32_t *n)
{
	*n = a->kind == ARG_TEMP ? 1 : buf_of(b->l, k->buf[a->k])->rank;
	return a->kind == ARG_TEMP ? &k->schedule->temp.data[a->k].numel
				   : buf_of(b->l, k->buf[a->k])->dim;
}

/* Whether the phase has no tasks where the extent, a variable, is 0. */
static bool counts_tasks(const Builder *b, const SchedPhase *p, Sym extent)
{
	Sym zero = sym_int(b->syms, 0);
	return sym_kind(b->syms, extent) == SYM_VAR &&
	       sym_is(b->syms, sym_subst(b->syms, p->ntasks, &extent, &zero, 1), 0);
}

/* Returns whether some extent is 0; none if no extent can be 0, but those with which the phase has
 * no tasks. */
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

/* Returns the number of tasks of a phase: 0 if everything that it writes has no elements, since its
 * loops may go over other extents than the one that is 0. A phase that also checks something is
 * executed all the same. */
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

void builder_launch(Builder *b, const Scheduled *k)
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

/* ---- the whole ---- */

/* Schedules the kernels and calls of a list in the order in which they are launched. */
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

static void describe(Builder *b, const Graph *g)
{
	for (uint32_t i = 0; i < g->input.n; i++) {
		const Type *t = node_type(g, g->input.data[i].node);
		if (g->input.data[i].kind != INPUT_USER)
			continue;
		array_push(b->arena, &b->e->input,
			   (ProgramTensor){.name = g->input.data[i].name,
					   .dtype = t->dtype,
					   .rank = t->n,
					   .dim = t->dim,
					   .donates = -1});
	}
	for (uint32_t i = 0; i < g->output.n; i++) {
		const Type *t = node_type(g, g->output.data[i].node);
		if (graph_output_is_state(g, i))
			continue;
		int32_t donates = b->l->donates.n ? b->l->donates.data[b->e->output.n] : -1;
		array_push(b->arena, &b->e->output,
			   (ProgramTensor){.name = g->output.data[i].name,
					   .dtype = t->dtype,
					   .rank = t->n,
					   .dim = t->dim,
					   .donates = donates});
	}
	b->e->half_updates = b->l->half_updates;
	b->e->cancellable = b->l->cancellable;
}

static void start_run(Builder *b)
{
	ProgramEntry *e = b->e;
	e->run = loop_new(b->p->ir, program_fn_name(e, "run"));
	for (uint32_t i = 0; i < e->input.n; i++)
		loop_buf(e->run, (LArg){.name = e->input.data[i].name,
					.dtype = DT_u8,
					.read = true,
					.align = 1});
	for (uint32_t i = 0; i < e->output.n; i++)
		loop_buf(e->run, (LArg){.name = e->output.data[i].name,
					.dtype = DT_u8,
					.written = true,
					.align = 1});
	loop_buf(e->run, (LArg){.name = "weights", .dtype = DT_u8, .read = true, .align = 64});
	loop_buf(e->run, (LArg){.name = "workspace",
				.dtype = DT_u8,
				.read = true,
				.written = true,
				.align = 64});
	loop_buf(e->run, (LArg){.name = "state",
				.dtype = DT_u8,
				.read = true,
				.written = true,
				.align = 64});
	e->nroom = b->memory.plan.nroom;
	for (uint32_t i = 0; i < e->nroom; i++)
		loop_buf(e->run, (LArg){.name = "room",
					.dtype = DT_u8,
					.read = true,
					.written = true,
					.align = 64});
	builder_start(b, e->run);
}

/* Checks that memory was asked for each output, which happens when the output's sizes are known.
 * Returns false after ctx_error: a size is known within a branch or a loop only. */
static bool outputs_have_rooms(const Builder *b)
{
	for (uint32_t k = 0; k < b->noutput; k++)
		if (!b->memory.has_room[k])
			return ctx_error(
				b->l->ir->ctx, NULL,
				"the size of output \"%s\" is known within a branch or a loop only",
				b->e->output.data[k].name);
	return true;
}

/* Gives no two functions of a program the same name. */
const char *program_fn_name(const ProgramEntry *e, const char *role)
{
	bool plain = strcmp(e->name, "run") == 0;
	return plain ? role
		     : arena_printf(e->program->ir->ctx->arena, "entry_%s_%s", e->name, role);
}

const char *program_outlined_name(const ProgramEntry *e, const char *role, uint32_t k)
{
	return arena_printf(e->program->ir->ctx->arena, "%s_outlined_%u", program_fn_name(e, role),
			    k);
}

static bool build_entry(Builder *b, const ScheduleEntry *entry, const Target *target,
			const ScheduleOptions *opt)
{
	Lowered *l = entry->lowered;
	b->l = l;
	b->e = program_entry(b->p, entry->name);
	b->next = 0;
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
	builder_steps(b, &l->steps);
	TRY(outputs_have_rooms(b));
	TRY(program_sizes(b->e, l->graph, b->known.bounds, b->memory.plan.total));
	b->e->workspace_hint = (uint64_t)sym_hint(b->syms, b->memory.plan.total);
	if (!opt->plain)
		entry_legalise(b->e, &target->isa);
	return true;
}

Program *schedule_program(const ScheduleEntry *entry, uint32_t n, const Target *target,
			  const ScheduleOptions *opt)
{
	const Lowered *first = entry[0].lowered, *last = entry[n - 1].lowered;
	Ctx *ctx = first->ir->ctx;
	uint32_t errors = ctx->nerror;
	Program *p = program_new(first->ir, opt->name ? opt->name : first->graph->name);
	Builder b = {.p = p,
		     .arena = ctx->arena,
		     .syms = p->ir->syms,
		     .nest.times = cost_number(ctx->arena, 1)};
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
