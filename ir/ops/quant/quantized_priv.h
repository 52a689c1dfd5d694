/* Private to quantized.c, fake_quantize.c and torchao.c. Everything accepts a missing node and
 * passes it on. */
#ifndef WEFT_IR_OPS_QUANT_QUANTIZED_PRIV_H
#define WEFT_IR_OPS_QUANT_QUANTIZED_PRIV_H

#include "ir/ops/aten/priv.h"

/* x op y, rounded to the dtype that PyTorch computes in: compiled code may keep more bits of f16
 * and bf16 than that, and here the next step rounds to integers. */
Node quant_step(Build *, Op, Node x, Node y);
Node quant_step_scalar(Build *, Op, Node x, double v);
Node quant_inverse(Build *, Node scale); /* 1 / scale */
/* The one element of n's scale or zero point: a number, or a tensor; 0-d of that dtype. */
Node quant_parameter(Build *, Node n, const char *name, DType);
/* The least and greatest value of a quantised dtype; false after an error: values cannot be of that
 * dtype. */
bool quant_bounds(Build *, DType, double *low, double *high);
/* round(x * inv_scale) + zero_point between n's quant_min and quant_max, as the dtype. */
Node quantize(Build *, Node n, Node x, Node inv_scale, Node zero_point, DType);
/* (x - zero_point) * scale; there may be no zero point. */
Node dequantize(Build *, Node x, Node scale, Node zero_point, DType);
/* The least and greatest value over dims, which are kept, and 0. */
void quant_range(Build *, Node x, uint32_t dims, Node *low, Node *high);

#endif
