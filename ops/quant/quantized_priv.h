/* Private to ops/quant: steps of quantisation. A quantised value q stands for (q - zero_point) *
 * scale. b, n, dims and missing nodes: as in ops/aten/priv.h. */
#ifndef WEFT_OPS_QUANT_QUANTIZED_PRIV_H
#define WEFT_OPS_QUANT_QUANTIZED_PRIV_H

#include "ops/aten/priv.h"

/* Returns x op y, computed wide and rounded to the promoted dtype at once. (Elsewhere compiled code
 * may keep more bits of f16 and bf16; here the next step rounds to integers.) */
Node quant_step(Build *, Op, Node x, Node y);
/* Returns x op v, computed wide and rounded to x's dtype at once. */
Node quant_step_scalar(Build *, Op, Node x, double v);
/* Returns 1 / scale, rounded to the dtype of scale. */
Node quant_inverse(Build *, Node scale);
/* Returns n's argument `name` (a scale or a zero point), a Python scalar or a tensor of one
 * element, as a tensor without dimensions, of that dtype. A tensor that has not provably one
 * element is an error. */
Node quant_parameter(Build *, Node n, const char *name, DType);
/* Sets the least and the greatest value of a dtype of quantised values: an integer or f8. Returns
 * false after an error: another dtype. */
bool quant_bounds(Build *, DType, double *low, double *high);
/* Returns round(x * inv_scale) + zero_point (no node: 0), clamped to n's arguments quant_min and
 * quant_max, converted to the dtype. An absent quant_min or quant_max is the least or greatest
 * value of the dtype (quant_bounds). round: to nearest, ties to even. */
Node quantize(Build *, Node n, Node x, Node inv_scale, Node zero_point, DType);
/* Returns (x - zero_point) * scale, converted to the dtype; zero_point may be no node: 0. */
Node dequantize(Build *, Node x, Node scale, Node zero_point, DType);
/* Sets *low to the least value of x over dims, or to 0 if 0 is less, and *high to the greatest
 * value, or to 0 if 0 is greater. The dimensions stay with extent 1. Both are no node if x is no
 * node. */
void quant_range(Build *, Node x, uint32_t dims, Node *low, Node *high);

#endif
