/* Private to lowering: whole kernels. */
#ifndef WEFT_PASSES_LOWER_STAGE_H
#define WEFT_PASSES_LOWER_STAGE_H

#include "passes/lower_trace.h"

/* Copy the value of n (stored or an index map of stored values) to a place. */
Kernel *lower_copy_kernel(Lower *, Node n, const NodePlace *to);
/* Store the 0-d `value` in the box [start, start + extent) of the parent's buffer. */
Kernel *lower_fill_kernel(Lower *, Node parent, Node value, const Sym *start, const Sym *extent);
/* lower_share.c: expensive values of the row that several stages read get a stage of their own. */
void kernel_share_values(Lower *, Kernel *);

#endif
