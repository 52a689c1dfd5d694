/* Functions that several families of ONNX's operators share. No block stands in this folder. */
#ifndef WEFT_OPS_ONNX_COMMON_COMMON_H
#define WEFT_OPS_ONNX_COMMON_COMMON_H

#include "ops/aten/priv.h"

/* Returns the dimension that an int argument names, of x: negative ones count from the end. An
 * error if x has no such dimension, which returns 0. */
uint32_t onnx_axis(Build *, Node n, const char *name, Node x);
/* Returns the operands of a Tensor[] argument, *count of them, in scratch memory. */
Node *onnx_list(const Build *, Node n, const char *name, uint32_t *count);
/* Returns x as the operand of a call of another operator of the op table, all other arguments as
 * their defaults but those given in attr (`nattr` of them, by argument). */
Node onnx_call(Build *, const char *op, const Node *in, uint32_t nin, const Attr *attr,
	       uint32_t nattr);
/* Returns min(max(x, low), high) with PyTorch's derivative, 0 at both bounds and beyond; a bound
 * that is infinite is none. */
Node onnx_clamp(Build *, Node x, double low, double high);
/* Sets axes[] to the dimensions that an int[] argument names, of a tensor of that rank, in its
 * order, and *n to their number; without the argument to the dimensions 0, 1, ..., rank - 1.
 * Returns false after an error. */
bool onnx_axes(Build *, Node n, const char *name, uint32_t rank, uint32_t *axes, uint32_t *count);
/* Returns x rounded to a data type of ONNX, by its number, that is kept in a wider dtype
 * (onnx_kept_type in frontend/onnx/priv.h). saturate: what is too large for FLOAT8E8M0 becomes the
 * greatest number, else NaN. mode: "up", "down" or "nearest", of FLOAT8E8M0. */
Node onnx_to_stored(Build *, Node x, int64_t type, bool saturate, const char *mode);

#endif
