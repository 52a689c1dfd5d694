/* Private to lowering: kernels that copy and fill. All return a new kernel; they add no step. */
#ifndef WEFT_LOWER_STAGE_H
#define WEFT_LOWER_STAGE_H

#include "lower/trace.h"

/* Returns a new kernel that copies the value of n to a place. n is stored, or computed from stored
 * values (an index map); it is an internal error if another node must be stored first. */
Kernel *lower_copy_kernel(Lower *, Node n, const NodePlace *to);
/* Returns a new kernel that copies a value of n's type from one place, which has no t, to
 * another. */
Kernel *lower_copy_place(Lower *, Node n, const NodePlace *from, const NodePlace *to);
/* Returns a new kernel that fills the border of the first place of an OP_pad node with
 * lower_holds_operands, whose interior other kernels store. */
Kernel *lower_border_kernel(Lower *, Node pad);
/* Makes each expensive expression of a kernel that several stages evaluate (the exponentials of a
 * softmax) a stage of its own with a task-local array, which they read (share.c). */
void kernel_share_values(Lower *, Kernel *);

#endif
