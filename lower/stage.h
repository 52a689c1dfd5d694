/* Private to lowering: kernels that copy and fill. */
#ifndef WEFT_LOWER_STAGE_H
#define WEFT_LOWER_STAGE_H

#include "lower/trace.h"

/* A kernel that copies the value of n, which is stored or an index map of stored values, to a
 * place. */
Kernel *lower_copy_kernel(Lower *, Node n, const NodePlace *to);
/* A kernel that copies a value of n's type from one place to another. */
Kernel *lower_copy_place(Lower *, Node n, const NodePlace *from, const NodePlace *to);
/* A kernel that fills the border of a padded buffer. */
Kernel *lower_border_kernel(Lower *, Node pad);
/* lower/share.c: gives an expensive value of a row that several stages read a stage of its own. */
void kernel_share_values(Lower *, Kernel *);

#endif
