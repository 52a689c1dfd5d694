/* One kernel: of the plans that take it, the one that is predicted to take the least time. */
#include "codegen/cpu/attention/attention.h"
#include "codegen/cpu/cpu.h"
#include "codegen/cpu/choose/schedule.h"
#include "codegen/plan/attention/attention.h"

typedef struct {
	PlanRow row;
	EmitFn *emit;
	bool reads_panels; /* knows axes by what they do, and packs constants; others know them by
			      strides, of which pieces of an axis have one each */
	bool (*is_asked)(const PlanInput *); /* whether the kernel is of a kind that the schedule
						alone is for; NULL: the schedule is asked about
						each */
} ScheduleRow;

static const ScheduleRow rows[] = {
	{{"depthwise", plan_depthwise, print_depthwise}, emit_depthwise, true},
	{{"contract", plan_contract, print_contract}, emit_contract, true},
	{{"attention", plan_attention, print_attention}, emit_attention, false, attention_is_asked},
	{{"weighted", plan_weighted, print_weighted}, emit_weighted, false, weighted_is_asked},
	/* takes every kernel */
	{{"generic", plan_generic, print_generic, .bounded = true}, emit_generic, false},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Names the cycles that decided. */
static const char *slower(Arena *a, const Plan *p, const PlanRow *row, const Plan *best)
{
	const bool larger = p->larger / best->larger > p->cycles / best->cycles;
	return arena_printf(a, "%.2g cycles are predicted%s, and %.2g of %s",
			    larger ? p->larger : p->cycles, larger ? " at larger sizes" : "",
			    larger ? best->larger : best->cycles, row->name);
}

static void consider_all(Choice *c, const PlanInput *in, bool panels, bool strides)
{
	for (uint32_t i = 0; i < ROWS; i++)
		if ((rows[i].reads_panels ? panels && !in->target->isa.of_block : strides) &&
		    (!rows[i].is_asked || rows[i].is_asked(in)))
			choice_consider(c, &rows[i].row, in);
}

/* Whether the kernel loads a constant in a layout that was chosen for other kernels, too. */
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
	Cpu s = {0};
	code_init(&s.code, c->in.nest->l, c->in.target);
	choice_tell(c, s.out);
	choice_tell_refused(c, s.out);
	((const ScheduleRow *)c->row)->emit(&s, &c->plan);
	return s.out;
}

Schedule *cpu_schedule_kernel(const Lowered *l, const Kernel *kernel, const Target *target)
{
	const bool panels = reads_panels(l, kernel);
	const PlanInput packed = plan_input(l, kernel, target, true);
	Choice c = {.slower = slower};
	consider_all(&c, &packed, true, !panels);
	if (panels) {
		const PlanInput plain = plan_input(l, kernel, target, false);
		c.refused.n = c.row ? c.refused.n : 0;
		consider_all(&c, &plain, !c.row, true);
	}
	Schedule *s = emit(&c);
	code_leave_out_empty(l, kernel, s);
	return s;
}

LayoutWant cpu_schedule_wants(const Lowered *l, const Kernel *kernel, const Target *target)
{
	const PlanInput in = plan_input(l, kernel, target, true);
	Choice c = {.slower = slower};
	consider_all(&c, &in, true, true);
	return c.plan.want;
}
