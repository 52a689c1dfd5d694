/* The pass that applies identities. */
#ifndef WEFT_PASSES_SIMPLIFY_SIMPLIFY_H
#define WEFT_PASSES_SIMPLIFY_SIMPLIFY_H

#include "passes/common/pass_ctx.h"

/* Applies the rules of rules.h to each node that has readers, and to each node that a rule adds.
 * Erases the nodes that it replaces; other nodes that lose their readers are left to dce. */
bool pass_simplify(Graph *, PassCtx *);

#endif
