/* One kernel: the plan of the first schedule that takes it. */
#include "codegen/cpu/cpu.h"
#include "codegen/gpu/gpu.h"
#include "codegen/plan/plan.h"
#include "codegen/plan/split.h"

typedef struct {
	const char *name;
	PlanFn *plan;
	EmitFn *emit;
	bool reads_panels; /* knows axes by what they do, and packs constants; others know them by
			      strides, of which pieces of an axis have one each */
} ScheduleRow;

static const ScheduleRow rows[] = {
	{"depthwise", plan_depthwise, emit_depthwise, true},
	{"contract", plan_contract, emit_contract, true},
	{"generic", plan_generic, emit_generic, false}, /* takes every kernel */
};
enum { ROWS = sizeof rows / sizeof *rows };

static PlanInput input(const Lowered *l, const Kernel *kernel, const Target *target, bool packs)
{
	Kernel *k = kernel_copy(l->ir->ctx->arena, kernel);
	kernel_split_axes(l, k, packs);
	PlanInput in = {
		.nest = nest_new(l, k), .shape = kernel_shape(l->ir->syms, k), .target = target};
	in.cost = kernel_cost(in.nest, UINT64_MAX);
	return in;
}

typedef ARRAY(Refusal) RefusalList;

/* The first row that takes the kernel, of those that read panels, or of all; NULL: none. */
static const ScheduleRow *choose(const PlanInput *in, bool panels, Plan *plan, RefusalList *refused)
{
	for (uint32_t i = 0; i < ROWS; i++) {
		if (panels && !rows[i].reads_panels)
			continue;
		*plan = (Plan){0};
		Refusal no = rows[i].plan(in, plan);
		if (!no.why)
			return &rows[i];
		no.schedule = rows[i].name;
		array_push(in->nest->arena, refused, no);
	}
	return NULL;
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

/* ---- what is empty ---- */

static bool reads_nothing(const Lowered *l, const Kernel *k)
{
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (k->kx.data[i].kind == KX_LOAD &&
		    sym_is(l->ir->syms, layout_numel(l->ir, &buf_of(l, k->kx.data[i].buf)->layout),
			   0))
			return true;
	return false;
}

static bool checks(const Kernel *k)
{
	for (uint32_t i = 0; i < k->vvar.n; i++)
		if (k->vvar.data[i].check)
			return true;
	return false;
}

/* What is known ahead of a loop is evaluated there, even if the loop has no rounds: where there may
 * be nothing to read. Such a kernel has no tasks; indices are checked if there are any. */
static void leave_out_empty(const Lowered *l, const Kernel *k, Schedule *s)
{
	if (!kernel_stores_nothing(l, k) || (checks(k) && !reads_nothing(l, k)))
		return;
	for (uint32_t p = 0; p < s->phase.n; p++)
		s->phase.data[p].ntasks = sym_int(l->ir->syms, 0);
}

static Schedule *emit(const PlanInput *in, const ScheduleRow *row, const Plan *plan,
		      const RefusalList *refused)
{
	Cpu s;
	cpu_init(&s, in->nest->l, in->target);
	s.out->algorithm = plan->algorithm;
	s.out->why = plan->why;
	for (uint32_t i = 0; i < refused->n; i++)
		array_push(in->nest->arena, &s.out->refused, refused->data[i]);
	for (uint32_t i = 0; i < plan->nrefused; i++)
		array_push(in->nest->arena, &s.out->refused, plan->refused[i]);
	row->emit(&s, plan);
	return s.out;
}

Schedule *schedule_kernel(const Lowered *l, const Kernel *kernel, const Target *target)
{
	if (target->gpu)
		return gpu_schedule_kernel(l, kernel, target);
	const bool panels = reads_panels(l, kernel);
	PlanInput in = input(l, kernel, target, true);
	Plan plan;
	RefusalList refused = {0};
	const ScheduleRow *row = choose(&in, panels, &plan, &refused);
	if (!row) {
		refused.n = 0;
		in = input(l, kernel, target, false);
		row = choose(&in, false, &plan, &refused);
	}
	Schedule *s = emit(&in, row, &plan, &refused);
	leave_out_empty(l, kernel, s);
	return s;
}

LayoutWant schedule_wants(const Lowered *l, const Kernel *kernel, const Target *target)
{
	if (target->gpu)
		return (LayoutWant){0};
	const PlanInput in = input(l, kernel, target, true);
	Plan plan = {0};
	RefusalList refused = {0};
	choose(&in, true, &plan, &refused);
	return plan.want;
}
