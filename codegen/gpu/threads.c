/* The schedule that takes every kernel: each task of the kernel's scalar schedule becomes a thread.
 * Tasks of a phase have no order and share nothing, which is what blocks of threads ask for; the
 * fastest axis of the results is the fastest in the number of the task, so neighbouring threads
 * access neighbouring elements. */
#include "codegen/gpu/block.h"

/* Returns the GPU as the scalar schedules see it: any number of processors. */
static const Target *thread_target(const Lowered *l, const Target *gpu)
{
	Target *t = ARENA_NEW(l->ir->ctx->arena, Target);
	*t = *gpu;
	t->machine = gpu_thread_machine(gpu->gpu);
	t->gpu = NULL;
	return t;
}

static void push_param(Arena *arena, SchedPhase *p, Sym value)
{
	Sym *param = ARENA_ARRAY(arena, Sym, p->nparam + 1);
	for (uint32_t k = 0; k < p->nparam; k++)
		param[k] = p->param[k];
	param[p->nparam++] = value;
	p->param = param;
}

static Lx number_of_tasks(Arena *arena, SymTab *syms, SchedPhase *p)
{
	int64_t n;
	if (sym_is_const(syms, p->ntasks, &n))
		return lx_int(p->f, n);
	push_param(arena, p, p->ntasks);
	return lx_param(p->f, loop_param(p->f, "tasks"));
}

/* Returns the threads of a block: fewer for a launch of few tasks, which has one block. */
static uint32_t threads_for(SymTab *syms, const SchedPhase *p, const Gpu *gpu)
{
	int64_t n, threads = gpu->threads;
	if (sym_is_const(syms, p->ntasks, &n) && n < threads)
		threads = (n + WARP - 1) / WARP * WARP;
	return threads ? (uint32_t)threads : WARP;
}

/* Returns a copy of l with some constants of the kernel in the layouts that threads want. */
static Lowered *with_layouts(const Lowered *l, const Nest *n, const LayoutWant *want,
			     uint32_t nwant)
{
	Arena *arena = l->ir->ctx->arena;
	Lowered *copy = arena_dup(arena, l, sizeof *l);
	copy->buf.data = arena_dup(arena, l->buf.data, l->buf.n * sizeof *l->buf.data);
	for (uint32_t i = 0; i < nwant; i++)
		copy->buf.data[n->k->kx.data[want[i].load.i].buf.i].layout = want[i].layout;
	return copy;
}

static void tell_layouts(const Nest *n, const LayoutWant *want, uint32_t nwant, SchedPhase *p)
{
	SchedArg *arg = arena_dup(n->arena, p->arg, p->narg * sizeof *arg);
	for (uint32_t k = 0; k < p->narg; k++)
		for (uint32_t i = 0; i < nwant; i++)
			if (arg[k].kind == ARG_BUF &&
			    arg[k].k == n->k->kx.data[want[i].load.i].buf.i)
				arg[k].packed = &want[i].layout;
	p->arg = arg;
}

Schedule *threads_schedule(const Lowered *l, const Kernel *k, const Target *target,
			   ScheduleKernel *for_thread)
{
	const Nest *n = plan_input(l, k, target, false).nest;
	LayoutWant *want = ARENA_ARRAY(n->arena, LayoutWant, n->k->kx.n);
	const uint32_t nwant = gpu_threads_wants(n, want);
	Schedule *s = for_thread(nwant ? with_layouts(l, n, want, nwant) : l, k,
				 thread_target(l, target));
	SymTab *syms = l->ir->syms;
	Arena *arena = l->ir->ctx->arena;
	for (uint32_t i = 0; i < s->phase.n && nwant; i++)
		tell_layouts(n, want, nwant, &s->phase.data[i]);
	for (uint32_t i = 0; i < s->phase.n; i++) {
		SchedPhase *p = &s->phase.data[i];
		const uint32_t threads = threads_for(syms, p, target->gpu);
		loop_tasks_to_threads(p->f, threads, target->gpu->shared,
				      number_of_tasks(arena, syms, p));
		p->ntasks = sym_ceildiv(syms, p->ntasks, sym_int(syms, threads));
	}
	s->why = arena_printf(arena, "a thread for each task: %s", s->why);
	return s;
}
