/* One kernel: of the plans that take it, the one that is predicted to take the least time. */
#include <math.h>

#include "codegen/cpu/cpu.h"
#include "codegen/gpu/gpu.h"
#include "codegen/plan/plan.h"
#include "codegen/plan/split.h"

typedef struct {
	const char *name;
	PlanFn *plan;
	EmitFn *emit;
	PrintFn *print;
	bool reads_panels; /* knows axes by what they do, and packs constants; others know them by
			      strides, of which pieces of an axis have one each */
} ScheduleRow;

static const ScheduleRow rows[] = {
	{"depthwise", plan_depthwise, emit_depthwise, print_depthwise, true},
	{"contract", plan_contract, emit_contract, print_contract, true},
	{"generic", plan_generic, emit_generic, print_generic, false}, /* takes every kernel */
};
enum { ROWS = sizeof rows / sizeof *rows };

static PlanInput input(const Lowered *l, const Kernel *kernel, const Target *target, bool packs)
{
	Kernel *k = kernel_copy(l->ir->ctx->arena, kernel);
	kernel_split_axes(l, k, packs);
	PlanInput in = {
		.nest = nest_new(l, k), .shape = kernel_shape(l->ir->syms, k), .target = target};
	in.cost = kernel_cost(in.nest, UINT64_MAX);
	in.larger = plan_larger_sizes(in.nest);
	return in;
}

/* The plans that take a kernel, and who refused it. */
typedef struct {
	const ScheduleRow *row; /* of the plan at hand; NULL: no row has taken the kernel */
	PlanInput in;
	Plan plan;
	ARRAY(Refusal) refused;
} Choice;

static void refuse_row(Choice *c, const ScheduleRow *row, Refusal no)
{
	no.schedule = row->name;
	array_push(c->in.nest->arena, &c->refused, no);
}

/* Near if the plan takes less than twice as long as that of the row. */
static Refusal slower(Arena *a, const Plan *p, const ScheduleRow *row, const Plan *best)
{
	const bool larger = p->larger / best->larger > p->cycles / best->cycles;
	const double of_plan = larger ? p->larger : p->cycles,
		     of_best = larger ? best->larger : best->cycles;
	const char *why = arena_printf(a, "%.2g cycles are predicted%s, and %.2g of %s", of_plan,
				       larger ? " at larger sizes" : "", of_best, row->name);
	return (Refusal){.why = why, .near = of_plan < 2 * of_best};
}

/* How many times longer than another plan a plan takes, at the hints or at larger sizes, whichever
 * is worse; at least 1. */
static double worst(const Plan *p, const Plan *other)
{
	return fmax(1, fmax(p->cycles / other->cycles, p->larger / other->larger));
}

/* Whether a plan of a row further down is taken instead. Predictions that are close do not decide.
 */
static bool is_faster(const Plan *p, const Plan *than)
{
	return worst(p, than) < 0.9 * worst(than, p);
}

static void consider(Choice *c, const ScheduleRow *row, const PlanInput *in)
{
	Plan p = {0};
	Arena *a = in->nest->arena;
	const Refusal no = row->plan(in, &p);
	if (no.why) {
		refuse_row(c, row, no);
		return;
	}
	if (c->row && !is_faster(&p, &c->plan)) {
		refuse_row(c, row, slower(a, &p, c->row, &c->plan));
		return;
	}
	if (c->row)
		refuse_row(c, c->row, slower(a, &c->plan, row, &p));
	c->row = row;
	c->in = *in;
	c->plan = p;
}

static void consider_all(Choice *c, const PlanInput *in, bool panels, bool strides)
{
	for (uint32_t i = 0; i < ROWS; i++)
		if (rows[i].reads_panels ? panels && !in->target->isa.of_block : strides)
			consider(c, &rows[i], in);
}

/* Of a constant in a layout that was chosen for other kernels, too. */
static bool reads_panels(const Lowered *l, const Kernel *k)
{
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *x = &k->kx.data[i];
		if (x->kind != KX_LOAD)
			continue;
		const Buffer *b = buf_of(l, x->buf);
		if (b->kind == BUF_CONST && !layout_is_row_major(&b->layout, b->rank))
			return true;
	}
	return false;
}

static Schedule *emit(const Choice *c)
{
	Arena *a = c->in.nest->arena;
	Cpu s = {0};
	code_init(&s.code, c->in.nest->l, c->in.target);
	s.out->algorithm = c->plan.algorithm;
	s.out->why = c->plan.why;
	Text text;
	text_init(&text, a);
	c->row->print(&c->plan, &text);
	s.out->plan = text.data;
	for (uint32_t i = 0; i < c->refused.n; i++)
		array_push(a, &s.out->refused, c->refused.data[i]);
	for (uint32_t i = 0; i < c->plan.nrefused; i++)
		array_push(a, &s.out->refused, c->plan.refused[i]);
	c->row->emit(&s, &c->plan);
	return s.out;
}

Schedule *schedule_kernel(const Lowered *l, const Kernel *kernel, const Target *target)
{
	if (target->gpu)
		return gpu_schedule_kernel(l, kernel, target);
	const bool panels = reads_panels(l, kernel);
	const PlanInput packed = input(l, kernel, target, true);
	Choice c = {.in = packed};
	consider_all(&c, &packed, true, !panels);
	if (panels) {
		const PlanInput plain = input(l, kernel, target, false);
		c.refused.n = c.row ? c.refused.n : 0;
		consider_all(&c, &plain, !c.row, true);
	}
	Schedule *s = emit(&c);
	code_leave_out_empty(l, kernel, s);
	return s;
}

LayoutWant schedule_wants(const Lowered *l, const Kernel *kernel, const Target *target)
{
	if (target->gpu)
		return (LayoutWant){0};
	const PlanInput in = input(l, kernel, target, true);
	Choice c = {.in = in};
	consider_all(&c, &in, true, true);
	return c.plan.want;
}
