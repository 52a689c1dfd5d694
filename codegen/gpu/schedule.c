/* One kernel: of the plans that take it, the one that is predicted to take the least time. */
#include "codegen/gpu/block.h"
#include "codegen/gpu/gpu.h"

typedef struct {
	PlanRow row;
	BlockFn *emit; /* NULL: the schedule of threads */
} Row;

static const Row rows[] = {
	{{"points", plan_gpu_points, print_gpu_points}, emit_gpu_points},
	{{"pieces", plan_gpu_pieces, print_gpu_pieces}, emit_gpu_pieces},
	{{"contract", plan_gpu_contract, print_gpu_contract}, emit_gpu_contract},
	{{"rows", plan_gpu_rows, print_gpu_rows}, emit_gpu_rows},
	/* takes every kernel */
	{{"threads", plan_gpu_threads, print_gpu_threads, .bounded = true}, NULL},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *slower(Arena *a, const Plan *p, const PlanRow *row, const Plan *best)
{
	return arena_printf(a, "%.2g cycles are predicted, and %.2g of %s", p->cycles, best->cycles,
			    row->name);
}

static Schedule *emit(const Choice *c, BlockFn *write, const Kernel *k)
{
	Code code;
	code_init(&code, c->in.nest->l, c->in.target);
	choice_tell(c, code.out);
	write(&code, &c->plan);
	code_leave_out_empty(c->in.nest->l, k, code.out);
	return code.out;
}

static Choice choose(const PlanInput *in)
{
	Choice c = {.slower = slower};
	for (uint32_t i = 0; i < ROWS; i++)
		choice_consider(&c, &rows[i].row, in);
	return c;
}

LayoutWant gpu_schedule_wants(const Lowered *l, const Kernel *k, const Target *target)
{
	const PlanInput in = plan_input(l, k, target, false);
	return choose(&in).plan.want;
}

Schedule *gpu_schedule_kernel(const Lowered *l, const Kernel *k, const Target *target,
				 ScheduleKernel *for_thread)
{
	const PlanInput in = plan_input(l, k, target, false);
	Choice c = choose(&in);
	BlockFn *write = ((const Row *)c.row)->emit;
	Schedule *s = write ? emit(&c, write, k) : threads_schedule(l, k, target, for_thread);
	s->refused.n = 0; /* those of the scalar schedule */
	s->cycles = c.plan.cycles;
	s->time = c.plan.time;
	choice_tell_refused(&c, s);
	return s;
}
