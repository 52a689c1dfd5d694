/* One kernel: the first schedule that takes it. */
#include "codegen/schedule/sched.h"
#include "codegen/schedule/split.h"

static const struct {
	const char *name;
	ScheduleFn *take;
} schedules[] = {
	{"depthwise", schedule_depthwise},
	{"contract", schedule_contract},
	{"generic", schedule_generic}, /* takes every kernel */
};

Schedule *schedule_kernel(const Lowered *l, const Kernel *kernel, const Target *target)
{
	Sched s;
	Arena *arena = l->ir->ctx->arena;
	Kernel *k = kernel_copy(arena, kernel);
	kernel_split_axes(l, k);
	sched_init(&s, l, k, target);
	const char *why;
	for (uint32_t i = 0; (why = schedules[i].take(&s)); i++)
		array_push(arena, &s.out->refused, (Refusal){schedules[i].name, why});
	return s.out;
}
