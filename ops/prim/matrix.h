/* Private: matrices of real or complex numbers as parts (ops/rules/parts.h), for graphs that
 * factorise them. The last two dimensions of both parts are a matrix, the others batches. Real
 * numbers have no imaginary part: `im` is no node. All operands of a call are real, or all are
 * complex; `pairs` of operands and results is not used but by mat_node. Nodes are added at b
 * (ir/build/build.h); after an error a part of the result is no node. */
#ifndef WEFT_OPS_PRIM_MATRIX_H
#define WEFT_OPS_PRIM_MATRIX_H

#include "ops/rules/common.h"
#include "ops/rules/parts.h"

/* Returns the matrices of a node; pairs: the node has a last dimension of two, the parts. No
 * node gives no parts. */
Parts mat_of(Build *, Node x, bool pairs);
/* Returns the node that mat_of takes: the reverse. */
Node mat_node(Build *, Parts x);

/* Returns the sum; if one operand has no parts, the other one. */
Parts mat_add(Build *, Parts x, Parts y);
/* Returns x - y; x if y has no parts. */
Parts mat_sub(Build *, Parts x, Parts y);
/* Returns -x. */
Parts mat_neg(Build *, Parts x);
/* Returns the conjugate. */
Parts mat_conj(Build *, Parts x);
/* Returns the product of elements, broadcast. */
Parts mat_multiply(Build *, Parts x, Parts y);
/* Returns the quotient of elements, broadcast. */
Parts mat_divide(Build *, Parts x, Parts y);
/* Returns the product of matrices. */
Parts mat_times(Build *, Parts x, Parts y);
/* Returns the conjugate transpose. */
Parts mat_adjoint(Build *, Parts x);
/* Returns the number v, without dimensions, as an operand beside `like`: of its dtype, and with
 * an imaginary part 0 if `like` is complex. No parts if `like` has none. */
Parts mat_number(Build *, Parts like, double v);
/* Returns x where cond (bool) holds, y elsewhere, broadcast. */
Parts mat_select(Build *, Node cond, Parts x, Parts y);

/* Returns x where the column is at least (mat_upper) or at most (mat_lower) the row + above, 0
 * elsewhere. */
Parts mat_upper(Build *, Parts x, int64_t above);
Parts mat_lower(Build *, Parts x, int64_t above);
/* Returns x with ones on the diagonal. */
Parts mat_with_ones(Build *, Parts x);
/* Returns the rows, or columns, first .. end - 1. */
Parts mat_rows(Build *, Parts x, Sym first, Sym end);
Parts mat_columns(Build *, Parts x, Sym first, Sym end);
/* Returns x and y one behind the other along a dimension. */
Parts mat_join(Build *, Parts x, Parts y, int dim);

/* Returns the sum over a set of dimensions (bits), which the result lacks. */
Parts mat_sum(Build *, Parts x, uint32_t dims);
/* Does as b_unsqueeze and b_select_dim, of both parts. */
Parts mat_unsqueeze(Build *, Parts x, int dim);
Parts mat_select_dim(Build *, Parts x, int dim, Sym index);

#endif
