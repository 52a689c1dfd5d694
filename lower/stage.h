/* Private to lowering: whole kernels. */
#ifndef WEFT_LOWER_STAGE_H
#define WEFT_LOWER_STAGE_H

#include "lower/trace.h"

/* Copy the value of n (stored or an index map of stored values) to a place. */
Kernel *lower_copy_kernel(Lower *, Node n, const NodePlace *to);
/* Copy a value of n's type from one place to another. */
Kernel *lower_copy_place(Lower *, Node n, const NodePlace *from, const NodePlace *to);
/* Fill the border of a padded buffer. */
Kernel *lower_border_kernel(Lower *, Node pad);
/* lower/share.c: expensive values of the row that several stages read get a stage of their own. */
void kernel_share_values(Lower *, Kernel *);

#endif
