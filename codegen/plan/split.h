/* Private to schedules: an axis that an access takes apart (i / 64, i % 64) becomes two axes. */
#ifndef WEFT_CODEGEN_PLAN_SPLIT_H
#define WEFT_CODEGEN_PLAN_SPLIT_H

#include "ir/kernel/kernel.h"

/* Splits axes of a kernel until every access is linear in all axes, or no axis is left that can be
 * split. An axis can be split if its extent is a known multiple of the divisor, the kernel has less
 * than MAX_KERNEL_AXES axes, the lists of axes of all stages have room, no stage but reductions
 * (STAGE_REDUCE) has the axis in its `red`, and no stage that keeps a row maps it. Changes the
 * kernel, which the caller has copied (kernel_copy). Layouts of its buffers are final. packs: the
 * schedule will pack constants into panels: accesses to constants count as in row-major layout,
 * whatever layout they have. */
void kernel_split_axes(const Lowered *, Kernel *, bool packs);

#endif
