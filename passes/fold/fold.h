/* The passes that compute constants while compiling. */
#ifndef WEFT_PASSES_FOLD_FOLD_H
#define WEFT_PASSES_FOLD_FOLD_H

#include "passes/common/pass_ctx.h"

/* Replaces nodes that depend on constants only, have constant shapes and whose operators fold
 * (OpInfo.folds) by constants: if the value has no more bytes than the constants that it comes
 * from, or at most 64 KB, and no value on the way has more than 64 MB and more than eight times the
 * bytes of its constants. Nodes whose evaluation fails (an index out of range) stay, and no error
 * is recorded. */
bool pass_fold(Graph *, PassCtx *);
/* Multiplies constant scales that follow convolutions and contractions into their constant weights,
 * and adds constant biases that follow each other. Floating-point results may round differently. */
bool pass_fold_scale(Graph *, PassCtx *);
/* Replaces a node that is computed of constants in a few steps, and has a constant shape, by a
 * constant, whatever its size: as pass_fold does, by its value or by a recipe. Returns the node
 * of the constant; n itself if its evaluation fails. For passes. */
Node fold_node(Graph *, PassCtx *, Node n);

#endif
