/* One kernel: of the plans that take it, the one that is predicted to take the least time. */
#include <math.h>

#include "codegen/gpu/block.h"
#include "codegen/gpu/gpu.h"
#include "codegen/plan/split.h"

typedef struct {
	const char *name;
	PlanFn *plan;
	BlockFn *emit; /* NULL: the schedule of threads */
	PrintFn *print;
} Row;

static const Row rows[] = {
	{"points", plan_gpu_points, emit_gpu_points, print_gpu_points},
	{"contract", plan_gpu_contract, emit_gpu_contract, print_gpu_contract},
	{"rows", plan_gpu_rows, emit_gpu_rows, print_gpu_rows},
	{"threads", plan_gpu_threads, NULL, print_gpu_threads}, /* takes every kernel */
};
enum { ROWS = sizeof rows / sizeof *rows };

typedef struct {
	const Row *row;
	Plan plan;
	ARRAY(Refusal) refused;
} Choice;

/* At the hints or at larger sizes, whichever is worse. */
static double worst(const Plan *p, const Plan *other)
{
	return fmax(1, fmax(p->cycles / other->cycles, p->larger / other->larger));
}

static Refusal slower(Arena *a, const Plan *p, const Row *row, const Plan *best)
{
	const char *why = arena_printf(a, "%.2g cycles are predicted, and %.2g of %s", p->cycles, best->cycles, row->name);
	return (Refusal){.why = why, .near = worst(p, best) < 2};
}

static void refuse_row(Choice *c, Arena *a, const Row *row, Refusal no)
{
	no.schedule = row->name;
	array_push(a, &c->refused, no);
}

static void consider(Choice *c, const Row *row, const PlanInput *in)
{
	Plan p = {0};
	Arena *a = in->nest->arena;
	const Refusal no = row->plan(in, &p);
	if (no.why) {
		refuse_row(c, a, row, no);
	} else if (c->row && worst(&p, &c->plan) >= 0.9 * worst(&c->plan, &p)) {
		refuse_row(c, a, row, slower(a, &p, c->row, &c->plan));
	} else {
		if (c->row)
			refuse_row(c, a, c->row, slower(a, &c->plan, row, &p));
		c->row = row;
		c->plan = p;
	}
}

static PlanInput input(const Lowered *l, const Kernel *kernel, const Target *target)
{
	Kernel *k = kernel_copy(l->ir->ctx->arena, kernel);
	kernel_split_axes(l, k, false);
	PlanInput in = {.nest = nest_new(l, k), .shape = kernel_shape(l->ir->syms, k), .target = target};
	in.cost = kernel_cost(in.nest, UINT64_MAX);
	in.larger = plan_larger_sizes(in.nest);
	return in;
}

Schedule *gpu_schedule_kernel(const Lowered *l, const Kernel *k, const Target *target)
{
	const PlanInput in = input(l, k, target);
	Arena *arena = l->ir->ctx->arena;
	Choice c = {0};
	Schedule *s;
	for (uint32_t i = 0; i < ROWS; i++)
		consider(&c, &rows[i], &in);
	if (c.row->emit) {
		Code code;
		Text text;
		code_init(&code, l, target);
		code.out->algorithm = c.plan.algorithm;
		code.out->why = c.plan.why;
		text_init(&text, arena);
		c.row->print(&c.plan, &text);
		code.out->plan = text.data;
		c.row->emit(&code, &c.plan);
		code_leave_out_empty(l, k, code.out);
		s = code.out;
	} else {
		s = threads_schedule(l, k, target);
		s->refused.n = 0;
	}
	s->cycles = c.plan.cycles;
	for (uint32_t i = 0; i < c.refused.n; i++)
		array_push(arena, &s->refused, c.refused.data[i]);
	return s;
}
