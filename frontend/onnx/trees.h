/* Ensembles of decision trees of ai.onnx.ml: read from the attributes of a node (trees_read.c);
 * trees.c imports the operators. */
#ifndef WEFT_FRONTEND_ONNX_TREES_H
#define WEFT_FRONTEND_ONNX_TREES_H

#include "frontend/onnx/priv.h"
#include "ops/ml/trees.h"

/* Reads the trees of a TreeEnsembleClassifier ("class"), a TreeEnsembleRegressor ("target") or a
 * TreeEnsemble (NULL): the prefix of the attributes with weights. f->ntarget and f->dtype must be
 * set. Returns false after an error: attributes that do not fit together, a cycle. */
bool trees_read(const Item *, const char *prefix, Forest *);

/* Sets *out and *n to the numbers of an attribute of floats, or of the tensor NAME_as_tensor; *out
 * is NULL if there is neither. Returns false after an error. */
bool trees_numbers(const Item *, const char *name, const double **out, uint32_t *n);

#endif
