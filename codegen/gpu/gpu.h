/* Schedules for GPUs: kernels become functions that blocks of threads execute. All decisions about
 * threads, blocks and shared memory are in plans (codegen/plan/gpu/); code is written of a plan. */
#ifndef WEFT_CODEGEN_GPU_H
#define WEFT_CODEGEN_GPU_H

#include "codegen/program/schedule.h"

/* Returns the schedule of a kernel for a GPU (Target.gpu), with the contract of schedule_kernel. */
Schedule *gpu_schedule_kernel(const Lowered *, const Kernel *, const Target *);
/* Returns the constant that this schedule packs, with the contract of schedule_wants. */
LayoutWant gpu_schedule_wants(const Lowered *, const Kernel *, const Target *);

#endif
