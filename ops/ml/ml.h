/* The blocks of this room are the operators of ai.onnx.ml, named as those of ops/onnx are
 * ("onnx_ml.NAME.N"): features, and linear models. Ensembles of trees are not operators: trees.h
 * builds them, with what this header declares. */
#ifndef WEFT_OPS_ML_ML_H
#define WEFT_OPS_ML_ML_H

#include "ops/onnx/priv.h"

/* .no_sample, as NODE_TESTS */
#define ML_CASES "tests/data/contrib.tar.xz has cases that ONNX Runtime computed"

/* Returns the numbers of a float[] argument as f32[n], of an int[] argument as i64[n]; no node if
 * it is absent or empty. */
Node ml_numbers(Build *, Node n, const char *name);
Node ml_integers(Build *, Node n, const char *name);
/* Returns scores[N, k] after a post transform: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT.
 * Another text is an error. */
Node ml_post_transform(Build *, Node scores, const char *transform);
/* Returns the labels (i64[N]) of indices into a list of classes. */
Node ml_labels(Build *, Node index, const int64_t *label, uint32_t n);

#endif
