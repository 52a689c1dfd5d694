/* What rules of transforms for primitives share. */
#ifndef WEFT_IR_OPS_PRIM_RULES_PRIV_H
#define WEFT_IR_OPS_PRIM_RULES_PRIV_H

#include "ir/ops/parts.h"

/* update[.., i, ..] combined with x[.., index[.., i, ..], ..] along dim; update and index have one
 * shape, the indices are valid. */
Node rule_scatter_along(Build *, Node x, Node index, Node update, uint32_t dim, const char *combine, bool unique);

/* reduce and cumulative (reduce_rules.c) */
bool adjoint_reduce(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool adjoint_cumulative(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool tangent_cumulative(Build *, Node n, const Node *t, Node *ty); /* of kind logaddexp */
bool is_sum(const Graph *, Node);                                  /* their kind */
bool is_logaddexp(const Graph *, Node);
/* Of sums, and of products over dimensions of few elements. */
bool parts_reduce(Build *, Node n, const Parts *in, Parts *out);

/* The rule is no function of numbers in the table, but a graph (aten/special.c). */
bool adjoint_trigamma(Build *, Node n, const Node *ct, const bool *want, Node *g);

#endif
