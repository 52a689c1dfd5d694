/* Private to schedules: an axis that an access takes apart (i / 64, i % 64) becomes two axes. */
#ifndef WEFT_CODEGEN_PLAN_SPLIT_H
#define WEFT_CODEGEN_PLAN_SPLIT_H

#include "ir/kernel/kernel.h"

/* Changes the kernel, which is a copy. Layouts of its buffers are final. packs: the schedule will
 * pack constants into panels; then an access to a constant is no reason to split. */
void kernel_split_axes(const Lowered *, Kernel *, bool packs);

#endif
