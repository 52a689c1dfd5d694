/* Private to ops/contrib. The blocks of this room are the operators of the domain com.microsoft,
 * which exporters and ONNX Runtime's optimiser leave in models, and those that they leave in
 * ai.onnx although ONNX does not have them. They are named as those of ops/onnx are
 * ("com_microsoft.NAME.1"), and their arguments come from a node as theirs do
 * (frontend/onnx/call.c). What they mean is what ONNX Runtime computes on a processor.
 *
 * Functions take no node as an operand (the result of an earlier error) and then return no node. */
#ifndef WEFT_OPS_CONTRIB_PRIV_H
#define WEFT_OPS_CONTRIB_PRIV_H

#include "ops/onnx/common/window.h"
#include "ops/onnx/priv.h"

/* .no_sample: PyTorch, with which samples are compared, has no such operator. */
#define CONTRIB_CASES "tests/data/contrib.tar.xz has cases that ONNX Runtime computed"

/* Returns x after the activation that a str argument names, none for "": Relu, Sigmoid, Tanh,
 * LeakyRelu, HardSigmoid or Clip, with the numbers alpha and beta where they have such. */
Node contrib_activation(Build *, Node n, const char *name, Node x, double alpha, double beta);
/* Returns (x - mean) / sqrt(var + epsilon) * gamma + beta over the last dimension, computed wide,
 * in x's dtype. simple: without the mean. beta may be absent. *mean, *inverse (may be NULL): with
 * extent 1. */
Node contrib_layer_norm(Build *, Node x, Node gamma, Node beta, double epsilon, bool simple,
			Node *mean, Node *inverse);
/* Returns (x - zero) * scale as f32. zero: absent, one number, or as scale. */
Node contrib_dequantised(Build *, Node x, Node scale, Node zero);
/* Returns round(v / scale) + zero within the bounds of a dtype; zero may be absent. */
Node contrib_quantised(Build *, Node v, Node scale, Node zero, DType);
/* Returns x[..., n] of bytes as [..., n * 8 / bits] numbers (u8) of 2, 4 or 8 bits: low ones
 * first. */
Node contrib_unpacked(Build *, Node x, int64_t bits);
/* Returns numbers of weights[..., k] (u8) with one scale for each block of them: (w - zero) *
 * scale, of scale's dtype. scale, zero: [..., k / block]; zero may be absent: then it is
 * `otherwise`. The last block may be short. */
Node contrib_blocks(Build *, Node w, Node scale, Node zero, int64_t block, double otherwise);
/* Returns a * b: products of integers, with scales and zero points for all or for each column (or
 * row of a), as f32; bias may be absent. */
Node contrib_integer_product(Build *, Node a, Node a_scale, Node a_zero, Node b, Node b_scale,
			     Node b_zero, Node bias);

/* An attention. */
typedef struct {
	Node q, k, v;     /* [B, H, S, D], [B, H, T, D], [B, H, T, D of v] */
	Node bias;        /* is added to the products; may be absent */
	Node sink;        /* [H]: a further product for each query, whose value is zeros; may be
	                     absent */
	Node scale;       /* without dimensions */
	double softcap;   /* 0: none */
} ContribAttention;

/* Returns softmax(q k^T scale + bias) v, [B, H, S, D of v]. *score: the products after softmax; may
 * be NULL. */
Node contrib_attend(Build *, const ContribAttention *, Node *score);
/* Returns onnx_heads of x[B, S, H * D]; another rank is an error. */
Node contrib_heads(Build *, Node x, int64_t heads);
/* Returns the mask of keys of Attention and MultiHeadAttention as a bias: [B, T] and [B, S, T] of 0
 * and 1, or the ends [B], or the ends and starts [2 B]; masked ones get `filter`. */
Node contrib_mask(Build *, Node mask, Sym batch, Sym keys, double filter);
/* Returns a bias [S, T] that is `filter` for keys behind a query's own, whose place is `past` more
 * than its index. */
Node contrib_causal(Build *, Sym queries, Sym keys, Sym past, double filter);
/* Returns the scale of an attention: the argument `scale`, if it is not 0, or 1 / sqrt(size). */
Node contrib_scale(Build *, Node n, Node q);

#endif
