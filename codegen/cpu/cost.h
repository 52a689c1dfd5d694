/* Private to schedules: what a kernel computes and moves, as functions of the size symbols. */
#ifndef WEFT_CODEGEN_CPU_COST_H
#define WEFT_CODEGEN_CPU_COST_H

#include "codegen/cpu/sched.h"

/* Of some of the stages, by bit; after sched_init and before axes are merged. */
KernelCost kernel_cost(const Sched *, uint64_t stages);

#endif
