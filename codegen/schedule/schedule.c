/* One kernel: the first schedule that takes it. */
#include "codegen/schedule/sched.h"
#include "codegen/schedule/split.h"

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

static void start(Sched *s, const Lowered *l, const Kernel *kernel, const Target *target, bool packs)
{
	Kernel *k = kernel_copy(l->ir->ctx->arena, kernel);
	kernel_split_axes(l, k, packs);
	sched_init(s, l, k, target);
}

/* The first `n` schedules are asked. */
static bool taken(Sched *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const char *why = schedules[i].take(s);
		if (!why)
			return true;
		array_push(s->arena, &s->out->refused, (Refusal){schedules[i].name, why});
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

/* A schedule that reads panels as such knows axes by what they do; others know them by strides, of which pieces of an axis
 * have one each. */
Schedule *schedule_kernel(const Lowered *l, const Kernel *kernel, const Target *target)
{
	Sched s;
	bool panels = reads_panels(l, kernel);
	start(&s, l, kernel, target, true);
	if (!taken(&s, panels ? PACKING : SCHEDULES)) {
		start(&s, l, kernel, target, false);
		taken(&s, SCHEDULES);
	}
	return s.out;
}

LayoutWant schedule_wants(const Lowered *l, const Kernel *kernel, const Target *target)
{
	Sched s;
	LayoutWant want = {0};
	start(&s, l, kernel, target, true);
	for (uint32_t i = 0; i < SCHEDULES; i++)
		if (!schedules[i].wants || !schedules[i].wants(&s, &want))
			break;
	return want;
}
