/* Makes expressions of kernels, for lowering. */
#ifndef WEFT_IR_KERNEL_BUILD_H
#define WEFT_IR_KERNEL_BUILD_H

#include "ir/kernel/kernel.h"

Kx kx_zero(Kernel *, Arena *, DType compute);
Kx kx_and(Kernel *, Arena *, Kx a, Kx b); /* none means true */
Kx kx_select(Kernel *, Arena *, Kx cond, Kx yes, Kx no);
Kx kx_product(Kernel *, Arena *, DType compute, const Kx in[2]);
/* x converted to a compute dtype; x itself if it has the dtype. */
Kx kx_to(Kernel *, Arena *, DType compute, Kx);
/* x as a value of the dtype: rounded if it is a storage dtype. */
Kx kx_as(Kernel *, Arena *, DType, Kx);

/* The operand of a conversion; x if it is none. */
Kx kx_unconverted(const Kernel *, Kx);

/* v, plus extent if v is negative; v is an i64 that depends on data. */
Kx kx_wrap(Kernel *, Arena *, Kx v, Sym extent);
/* cond and 0 <= v < extent */
Kx kx_below(Kernel *, Arena *, Kx cond, Kx v, Sym extent);

/* An element-wise operator: operands of dtype `from`, the result of dtype `to`. */
Kx kx_map(const Lowered *, Kernel *, Op, DType from, DType to, const Kx *in, uint32_t nin);

#endif
