/* Private to lowering: the steps of factorisations (ops/prim/factor.c). Each adds the steps of
 * one node, whose operands are stored, and makes its results known to their readers. */
#ifndef WEFT_LOWER_FACTOR_H
#define WEFT_LOWER_FACTOR_H

#include "lower/priv.h"

/* Lowers a graph whose inputs and outputs are at these places, and adds its steps to a list
 * (members.c). */
void factor_lower_graph(Lower *, Graph *, const NodePlace *in, NodePlace *out, StepList *to);
/* Returns the place of operand k of n, which a kernel fills now if it has none. */
NodePlace factor_operand(Lower *, Node n, uint32_t k);
/* Does what lower_cholesky and so on do, if n has many small matrices; else does nothing and
 * returns false. By lower_small where that takes them, else by blocks of members. */
MUST_LOOK bool lower_members(Lower *, Node n);
/* Does as lower_members, by one kernel whose tasks factorise matrices in memory of their own
 * (small.c). Returns false, too, if the target is no CPU. */
MUST_LOOK bool lower_small(Lower *, Node n);

void lower_cholesky(Lower *, Node);
void lower_lu(Lower *, Node);
void lower_geqrf(Lower *, Node);
void lower_orgqr(Lower *, Node);
void lower_triangular_solve(Lower *, Node);

#endif
