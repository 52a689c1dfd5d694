/* Two passes outside of Weft, written with its public headers only. They change the graph in place;
 * after an error, which the Weft records, some places may be changed already. */
#ifndef PASSES_H
#define PASSES_H

#include "weft_graph.h"

/* Folds each batch norm of inference behind a convolution into the convolution's weight and bias,
 * if both have constant parameters and nothing else reads the convolution. Returns how many were
 * folded, or -1 after an error.
 *
 *     scale = weight / sqrt(variance + eps)
 *     batch_norm(conv(x, w, b)) = conv(x, w * scale, (b - mean) * scale + bias) */
int fold_batch_norms(Weft *, WeftGraph *);

/* Stores the constant weight [out, in] of each linear layer as 8-bit integers with one scale for
 * each row. Returns how many layers were changed, or -1 after an error.
 *
 *     scale[o] = max over i of |w[o, i]| / 127        (1 for a row of zeros)
 *     q[o, i] = round(w[o, i] / scale[o])             (ties to even)
 *     linear(x, w, b) becomes linear(x, float(q)) * scale + b */
int quantise_linears(Weft *, WeftGraph *);

#endif
