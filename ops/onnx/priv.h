/* Private to ops/onnx. The blocks of this room are ONNX's operators. Their names are
 * "onnx.NAME.N", where N is the first opset in which the operator means what the block says: later
 * opsets that changed nothing but types, or moved an attribute to an input, have no block
 * (frontend/onnx/call.c says how a node's inputs and attributes become arguments). Operators of
 * other domains are "onnx_ml.NAME.N" and "com_microsoft.NAME.1".
 *
 * One file has one family. */
#ifndef WEFT_OPS_ONNX_PRIV_H
#define WEFT_OPS_ONNX_PRIV_H

#include "ops/aten/priv.h"

/* .no_sample: PyTorch, with which samples are compared, has no such operator. The node tests take
 * their place: for values tests/expected/onnx.txt, for derivatives
 * tests/oracle/onnx_derivatives.c. */
#define NODE_TESTS "ONNX's node tests have its cases (tests/expected/onnx.txt)"

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
/* Returns x converted to a dtype f8. saturate: what is too large becomes the greatest number; else
 * infinity in f8e5m2, NaN in the others. */
Node onnx_to_f8(Build *, Node x, DType, bool saturate);
/* Returns x minus its zero point, as i32. zero: one number, or one for each column of x, or with
 * `rows` for each row; absent: 0. */
Node onnx_centred(Build *, Node x, Node zero, bool rows);
/* Returns x[B, S, H * D] as [B, H, S, D]; x itself if it has rank 4. Another rank, and no positive
 * number of heads, are errors. */
Node onnx_heads(Build *, Node x, int64_t count);
/* Returns x[B, H, S, D] as [B, S, H * D]. */
Node onnx_merged_heads(Build *, Node x);
/* Returns x[B, H, S, D] with each head `times` times in turn, [B, H * times, S, D]. */
Node onnx_repeated_heads(Build *, Node x, int64_t times);

#endif
