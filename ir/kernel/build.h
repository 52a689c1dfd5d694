/* Expressions of kernels, in the pieces of which lowering puts them together. */
#ifndef WEFT_IR_KERNEL_BUILD_H
#define WEFT_IR_KERNEL_BUILD_H

#include "ir/kernel/kernel.h"

Kx kx_zero(Kernel *, Arena *, DType compute);
Kx kx_and(Kernel *, Arena *, Kx a, Kx b); /* none is true */
Kx kx_select(Kernel *, Arena *, Kx cond, Kx yes, Kx no);
Kx kx_product(Kernel *, Arena *, DType compute, const Kx in[2]);
/* Converted to a dtype of arithmetic; itself where it has that. */
Kx kx_to(Kernel *, Arena *, DType compute, Kx);
/* A value of that dtype: rounded if it is a storage dtype. */
Kx kx_as(Kernel *, Arena *, DType, Kx);

/* What was converted, where x is a conversion; else x. */
Kx kx_unconverted(const Kernel *, Kx);

/* Of an i64 that data gave: counted from the end where it is negative. */
Kx kx_wrap(Kernel *, Arena *, Kx v, Sym extent);
/* cond and 0 <= v < extent */
Kx kx_below(Kernel *, Arena *, Kx cond, Kx v, Sym extent);

/* An element-wise operator, of operands whose elements have the dtype `from` and a result that has
 * `to`. */
Kx kx_map(const Lowered *, Kernel *, Op, DType from, DType to, const Kx *in, uint32_t nin);

#endif
