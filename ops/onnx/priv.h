/* Private to ops/onnx. The blocks of this room are ONNX's operators. Their names are
 * "onnx.NAME.N", where N is the first opset in which the operator means what the block says: later
 * opsets that changed nothing but types, or moved an attribute to an input, have no block
 * (frontend/onnx/call.c says how a node's inputs and attributes become arguments). Operators of
 * other domains are "onnx_ml.NAME.N" and "com_microsoft.NAME.1".
 *
 * One file has one family. */
#ifndef WEFT_OPS_ONNX_PRIV_H
#define WEFT_OPS_ONNX_PRIV_H

#include "ops/onnx/common/common.h"

/* .no_sample: PyTorch, with which samples are compared, has no such operator. The node tests take
 * their place: for values tests/expected/onnx.txt, for derivatives
 * tests/oracle/onnx_derivatives.c. */
#define NODE_TESTS "ONNX's node tests have its cases (tests/expected/onnx.txt)"

/* Returns the convolution of x with the weights w, with the arguments of n that Conv has; bias: no
 * node, or one number for each channel. */
Node onnx_conv(Build *, Node n, Node x, Node w, Node bias);
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
