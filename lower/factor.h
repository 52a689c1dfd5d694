/* Private to lowering: the steps of factorisations (ir/ops/prim/factor.c). Each adds the steps of
 * one node, whose operands are stored, and makes its results known to their readers. */
#ifndef WEFT_LOWER_FACTOR_H
#define WEFT_LOWER_FACTOR_H

#include "lower/priv.h"

void lower_cholesky(Lower *, Node);
void lower_lu(Lower *, Node);
void lower_geqrf(Lower *, Node);
void lower_triangular_solve(Lower *, Node);

#endif
