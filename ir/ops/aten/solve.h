/* Private to operators on matrices that work column by column (aten/solve.c, aten/factor.c). */
#ifndef WEFT_IR_OPS_ATEN_SOLVE_H
#define WEFT_IR_OPS_ATEN_SOLVE_H

#include "ir/ops/aten/priv.h"

/* Element `index` of x along dim, the dim dropped: the index has the dims of x before it, or
 * none. */
Node solve_picked(Build *, Node x, uint32_t dim, Node index);
/* Is x a batch of square matrices of f32, f64 or complex ones of these? False after b_error, which
 * says what `name` expects. */
bool solve_takes(Build *, Node x, const char *name);
Node solve_identity(Build *, Node x); /* of the shape and dtype of x */
/* The call ends with that message unless all of `good` (bool) is true. */
void solve_require(Build *, Node good, const char *message);
/* What the _ex forms return: y, NaN where a step was not good, and the number of the first of
 * those, from 1 on, or 0. good is [n, ..], a row for each step. With check_errors they fail
 * instead. */
Node solve_checked(Build *, Node n, Node y, Node good, const char *message);
/* `.batch` of an operator whose one operand is a batch of matrices: the same operator with a
 * dimension more in front. */
Node solve_batch_matrices(Build *, Node n, const Node *in, const bool *batched, Sym size);

#endif
