/* Private to fold: constants that are computed from replaceable parameters. */
#ifndef WEFT_PASSES_FOLD_RECIPE_H
#define WEFT_PASSES_FOLD_RECIPE_H

#include "passes/pass.h"

/* Each of the nodes, whose values depend on constants alone and which stand in the order of the
 * graph, becomes a constant with a recipe. */
void fold_recipes(Graph *, const Node *root, uint32_t n);
/* The gather finds something at every index: its indices are a constant, and as weights are now
 * they are in range. */
bool gather_is_in_range(const Graph *, Node gather);

#endif
