/* Private to schedules: the operations and bytes of a kernel, as functions of the size symbols. */
#ifndef WEFT_CODEGEN_CPU_COST_H
#define WEFT_CODEGEN_CPU_COST_H

#include "codegen/eval/eval.h"

/* The cost of the stages in the bit set. Call after eval_init and before axes are merged. */
KernelCost kernel_cost(const Eval *, uint64_t stages);

#endif
