/* Private to ops: factorisations of matrices (prim/factor.c), for the expansions of ATen's
 * operators. A matrix is the last two dimensions of a float tensor, or, if `pairs`, the two
 * dimensions in front of a last dimension of two, which holds the real and imaginary parts.
 * Dimensions in front are batches. A function takes no node for an operand, and then returns no
 * node, as do all after an error. */
#ifndef WEFT_OPS_PRIM_FACTOR_H
#define WEFT_OPS_PRIM_FACTOR_H

#include "ops/rules/common.h"

/* Which triangle of a matrix is read, and that its diagonal counts as ones. */
typedef struct {
	bool upper, unit;
} Triangle;

/* Adds the node `cholesky`: a tuple (factor, info). */
Node factor_cholesky(Build *, Node x, bool pairs);
/* Adds the node `lu`: a tuple (factors, pivots, order, info). */
Node factor_lu(Build *, Node x, bool pairs);
/* Returns the tuple (a, tau) of the node `geqrf`, of x of any magnitude: that node itself
 * squares elements of x. */
Node factor_geqrf(Build *, Node x, bool pairs);
/* Adds the node `triangular_solve`: the X of A X = B. A and B have the same batches. */
Node factor_solve(Build *, Node a, Node b, Triangle, bool pairs);
/* Returns x[B.., index[B.., i..], ...], with `batch` dimensions B; the index (i64) is in range,
 * which nothing checks. */
Node factor_take(Build *, Node x, Node index, uint32_t batch);
/* Returns x with part[B.., i.., ...] in place of what factor_take of that index takes. The index
 * is in range and does not occur twice; nothing checks either. */
Node factor_place(Build *, Node x, Node index, Node part, uint32_t batch);
/* Returns x[.., order[.., i], :] for order i64 [.., k]: rows of matrices in another order. */
Node factor_rows(Build *, Node x, Node order, bool pairs);
/* Returns Q C, or Q^H C, for Q = H_1 H_2 ... H_k with H_i = I - tau_i v_i v_i^H, where v_i is 0
 * above the diagonal of column i of a [.., m, n], n >= k, 1 on it, and what a has below it. tau:
 * [.., k]. c no node: the first `columns` columns of Q, without adjoint. */
Node factor_reflect(Build *, Node a, Node tau, Node c, Sym columns, bool adjoint, bool pairs);
/* Does as factor_reflect without C: by it, or by the node `orgqr`, whichever is faster. */
Node factor_columns(Build *, Node a, Node tau, Sym columns, bool pairs);

#endif
