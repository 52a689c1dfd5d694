/* Private to operators on matrices (aten/solve.c, factor.c, lu.c, qr.c). b and n: as in
 * ops/aten/priv.h. */
#ifndef WEFT_OPS_ATEN_SOLVE_H
#define WEFT_OPS_ATEN_SOLVE_H

#include "ops/aten/priv.h"
#include "ops/prim/factor.h"

/* Checks that x is [..., n, n] of f32, f64, c64 or c128. Extents that may be equal count as equal,
 * and no guard is added. `name` begins the message. Returns false after an error, and for no
 * node. */
bool solve_takes(Build *, Node x, const char *name);
/* Checks that x is [..., m, n] of one of these dtypes, as solve_takes does. */
bool solve_takes_matrices(Build *, Node x, const char *name);
/* Checks that the dtype is one of these. Returns false after an error. */
bool solve_takes_dtype(Build *, DType, const char *name);
/* Returns for each element of x [..., m, n] whether it is on the diagonal: bool, of x's shape. */
Node solve_on_diagonal(Build *, Node x);
/* Returns identity matrices of the shape [..., m, n] and dtype of x. */
Node solve_identity(Build *, Node x);
/* Adds a check: the call of the model fails with that message unless all elements of `good` (bool)
 * are true. */
void solve_require(Build *, Node good, const char *message);
/* Adds a check that info (i32 [batch...]) is 0, the node `assert_zero`. The message is PyTorch's
 * for the function of that name ("torch.linalg.solve"). Does nothing for no node. */
void solve_require_info(Build *, Node info, const char *name);
/* Returns the tuple (y, info) that operators with the suffix _ex return. info: i32 [batch...] of
 * A, 0 or the number of the step that failed. y [batch..., ...] is NaN in matrices with a failed
 * step. If n's argument check_errors is true, the call of the model fails as well
 * (solve_require_info). */
Node solve_checked(Build *, Node n, Node y, Node info, const char *name);

/* Whether the dtype is complex. */
bool solve_is_complex(const Build *, Node x);
/* Returns a complex x as pairs (OP_view_real); a real x itself. */
Node solve_pairs(Build *, Node x);
/* Returns x from pairs, if `pairs`; else x itself. */
Node solve_whole(Build *, Node x, bool pairs);
/* Returns the conjugate transpose of matrices; no node for no node. */
Node solve_adjoint(Build *, Node x);
/* Returns X of A X = B for a triangle of A; A and x have equal batches and one dtype. */
Node solve_triangle(Build *, Node a, Node x, Triangle);
/* Puts rows of matrices in another order (factor_rows). */
Node solve_rows(Build *, Node x, Node order);

/* The results of the primitive lu; no nodes after an error. */
typedef struct {
	Node factors, pivots, order, info;
} SolveLu;
SolveLu solve_lu(Build *, Node x);
/* Returns X of A X = B from the factors of A, of equal batches; only factors and order are read. */
Node solve_by_lu(Build *, SolveLu, Node x);
/* Broadcasts the batches of matrices a and x to each other. Returns false after an error. */
bool solve_broadcast(Build *, Node *a, Node *x);
/* Batches (.batch, ir/op/op.h) an operator whose one operand is a batch of matrices: n's
 * operator, applied to in[0], which has one more dimension in front. */
Node solve_batch_matrices(Build *, Node n, const Node *in, const bool *batched, Sym size);

#endif
