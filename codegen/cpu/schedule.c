/* One kernel: the first schedule that takes it. */
#include "codegen/cpu/cpu.h"
#include "codegen/cpu/split.h"

static const struct {
	const char *name;
	ScheduleFn *take;
	WantsFn *wants; /* NULL: constants as they are */
} schedules[] = {
	{"depthwise", schedule_depthwise, depthwise_wants},
	{"contract", schedule_contract, contract_wants},
	{"generic", schedule_generic, NULL}, /* takes every kernel */
};
enum { SCHEDULES = sizeof schedules / sizeof *schedules, PACKING = SCHEDULES - 1 };

static void start(Cpu *s, const Lowered *l, const Kernel *kernel, const Target *target, bool packs)
{
	Kernel *k = kernel_copy(l->ir->ctx->arena, kernel);
	kernel_split_axes(l, k, packs);
	cpu_init(s, l, k, target);
}

/* The first `n` schedules are asked. */
static bool take(Cpu *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		Refusal no = schedules[i].take(s);
		if (!no.why)
			return true;
		no.schedule = schedules[i].name;
		array_push(s->e.arena, &s->out->refused, no);
	}
	return false;
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

/* A schedule that reads panels as such knows axes by what they do; others know them by strides, of which pieces of an axis
 * have one each. */
Schedule *schedule_kernel(const Lowered *l, const Kernel *kernel, const Target *target)
{
	Cpu s;
	bool panels = reads_panels(l, kernel);
	start(&s, l, kernel, target, true);
	if (!take(&s, panels ? PACKING : SCHEDULES)) {
		start(&s, l, kernel, target, false);
		take(&s, SCHEDULES);
	}
	leave_out_empty(l, kernel, s.out);
	return s.out;
}

LayoutWant schedule_wants(const Lowered *l, const Kernel *kernel, const Target *target)
{
	Cpu s;
	LayoutWant want = {0};
	start(&s, l, kernel, target, true);
	for (uint32_t i = 0; i < SCHEDULES; i++)
		if (!schedules[i].wants || !schedules[i].wants(&s, &want).why)
			break;
	return want;
}
