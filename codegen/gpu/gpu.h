/* Schedules for GPUs: kernels become functions that blocks of threads execute. All decisions about
 * threads, blocks and shared memory are in plans (codegen/plan/gpu/); code is written of a plan. */
#ifndef WEFT_CODEGEN_GPU_H
#define WEFT_CODEGEN_GPU_H

#include "codegen/schedule/schedule.h"

/* Returns the schedule of a kernel for a GPU (Target.gpu), with the contract of ScheduleKernel.
 * for_thread: schedules a kernel for the scalar target that a thread is. */
Schedule *gpu_schedule_kernel(const Lowered *, const Kernel *, const Target *,
			      ScheduleKernel *for_thread);
/* Packs no constant: returns load 0. */
ScheduleWants gpu_schedule_wants;

#endif
