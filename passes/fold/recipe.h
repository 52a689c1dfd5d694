/* Private to fold: constants that are computed from replaceable parameters. A recipe is the graph
 * that computes such a constant (Const.recipe). */
#ifndef WEFT_PASSES_FOLD_RECIPE_H
#define WEFT_PASSES_FOLD_RECIPE_H

#include "passes/common/pass_ctx.h"

/* Replaces each of the n nodes root[], which depend on constants only, have constant shapes and are
 * in program order, by a new constant whose recipe is a copy of the node and of all that it depends
 * on; sets made[k] to the node of the new constant, unless made is NULL. */
void fold_recipes(Graph *, const Node *root, uint32_t n, Node *made);
/* Whether a gather of constants cannot fail with the current weights: its mode does not check, or
 * its index operand is a constant (perhaps of a recipe, which is interpreted) with all indices in
 * range. False if the index operand is no constant. */
bool gather_is_in_range(const Graph *, Node gather);

#endif
