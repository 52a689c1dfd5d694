/* Private to schedules: axes taken apart by an access become two. */
#ifndef WEFT_CODEGEN_SPLIT_H
#define WEFT_CODEGEN_SPLIT_H

#include "ir/kernel/kernel.h"

/* Edits the kernel, a copy; layouts of its buffers are final. */
void kernel_split_axes(const Lowered *, Kernel *);

#endif
