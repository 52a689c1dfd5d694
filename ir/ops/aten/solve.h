/* Private to operators on matrices that work column by column (aten/solve.c, aten/factor.c). b and
 * n: as in ir/ops/aten/priv.h. */
#ifndef WEFT_IR_OPS_ATEN_SOLVE_H
#define WEFT_IR_OPS_ATEN_SOLVE_H

#include "ir/ops/aten/priv.h"

/* Returns the elements of x at position `index` along dim, which is removed. index (i64) has the
 * dimensions of x in front of dim, or none. An index out of range gives 0. */
Node solve_picked(Build *, Node x, uint32_t dim, Node index);
/* Checks that x is [..., n, n] of f32, f64, c64 or c128. Extents that may be equal count as equal,
 * and no guard is added. `name` begins the message. Returns false after an error, and for no
 * node. */
bool solve_takes(Build *, Node x, const char *name);
/* Returns identity matrices of the shape [..., m, n] and dtype of x. */
Node solve_identity(Build *, Node x);
/* Adds a check: the call of the model fails with that message unless all elements of `good` (bool)
 * are true. */
void solve_require(Build *, Node good, const char *message);
/* Returns the tuple (y, info) that operators with the suffix _ex return. good: bool [steps,
 * batch...], whether each step succeeded. info: i32 [batch...], the number of the first step that
 * failed, from 1 on, or 0. y [batch..., ...] is NaN in matrices with a failed step. If n's argument
 * check_errors is true, the call of the model fails with the message after a failed step. */
Node solve_checked(Build *, Node n, Node y, Node good, const char *message);
/* .batch (ir/ops/op.h) of an operator whose one operand is a batch of matrices: n's operator,
 * applied to in[0], which has one more dimension in front. */
Node solve_batch_matrices(Build *, Node n, const Node *in, const bool *batched, Sym size);

#endif
