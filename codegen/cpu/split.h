/* Private to schedules: axes taken apart by an access become two. */
#ifndef WEFT_CODEGEN_CPU_SPLIT_H
#define WEFT_CODEGEN_CPU_SPLIT_H

#include "ir/kernel/kernel.h"

/* Edits the kernel, a copy; layouts of its buffers are final. packs: constants are about to be read in panels, whose pieces
 * of an axis are no reason to split it. */
void kernel_split_axes(const Lowered *, Kernel *, bool packs);

#endif
