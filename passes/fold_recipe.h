/* Private to fold: constants that are computed from replaceable parameters. */
#ifndef WEFT_PASSES_FOLD_RECIPE_H
#define WEFT_PASSES_FOLD_RECIPE_H

#include "passes/pass.h"

/* Replaces each of the n nodes, which depend on constants only and are in program order, by a
 * constant with a recipe. */
void fold_recipes(Graph *, const Node *root, uint32_t n);
/* Whether the indices of a gather are a constant, and in range for the current weights. */
bool gather_is_in_range(const Graph *, Node gather);

#endif
