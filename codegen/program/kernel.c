/* The schedule of a kernel: by the family of its target. */
#include "codegen/cpu/choose/schedule.h"
#include "codegen/gpu/gpu.h"
#include "codegen/program/schedule.h"

Schedule *schedule_kernel(const Lowered *l, const Kernel *k, const Target *target)
{
	return target->gpu ? gpu_schedule_kernel(l, k, target, cpu_schedule_kernel)
			   : cpu_schedule_kernel(l, k, target);
}

LayoutWant schedule_wants(const Lowered *l, const Kernel *k, const Target *target)
{
	return target->gpu ? gpu_schedule_wants(l, k, target) : cpu_schedule_wants(l, k, target);
}
