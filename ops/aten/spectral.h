/* Private to operators by eigenvalues and singular values (aten/eigen.c, svd.c, pseudo.c, ldl.c):
 * calls of the compiler's own operators (ops/user/builtin.c), whose matrices are column-major,
 * and what their rules share. b: as in ops/aten/priv.h; a function that gets no node for an
 * operand returns no node. */
#ifndef WEFT_OPS_ATEN_SPECTRAL_H
#define WEFT_OPS_ATEN_SPECTRAL_H

#include "ops/aten/solve.h"

/* Checks that x is [..., m, n] of f32, f64, c64 or c128. `name` begins the message. Returns false
 * after an error, and for no node. */
bool spectral_takes(Build *, Node x, const char *name);
/* Returns x [..., m, n] as an operand of a call: [..., n, m], of complex numbers pairs. */
Node spectral_columns(Build *, Node x);
/* Returns a result of a call as [..., m, n]. complex: it is pairs. */
Node spectral_matrix(Build *, Node columns, bool complex);
/* Calls weft::STEM_s, _d, _c or _z, by the dtype of `like`, whose leading dimensions are the batch.
 * flag: the last argument of the operator; -1: it has none. Returns the tuple of its results. */
Node spectral_call(Build *, const char *stem, const Node *in, uint32_t nin, Node like, int flag);

/* Returns (x + x^H) / 2. */
Node spectral_hermitian(Build *, Node x);
/* Returns the diagonal [..., n] of x [..., n, n]. */
Node spectral_diagonal(Build *, Node x);
/* Returns x [..., n, n] with another diagonal: d [..., n], or without dimensions. */
Node spectral_with_diagonal(Build *, Node x, Node d);
/* Multiplies x [..., m, n] by d [..., n] along columns, or by d [..., m] along rows. */
Node spectral_scale_columns(Build *, Node x, Node d);
Node spectral_scale_rows(Build *, Node x, Node d);
/* Returns [..., n, n]: element i, j is d[j] - d[i], and 1 on the diagonal. */
Node spectral_gaps(Build *, Node d);
/* Returns the imaginary part i * Im(x) of a complex x; x of a real one is an internal error. */
Node spectral_imaginary(Build *, Node x);
/* Returns a norm of matrices by their singular values: the greatest (p 2), the least (p -2) or
 * the sum of all (p 1, the nuclear norm) of those of x with the rows along dimension `row` and
 * the columns along `column`. keep: the dimensions stay with extent 1; else they are removed. */
Node spectral_norm(Build *, Node x, uint32_t row, uint32_t column, int p, bool keep);
/* Adds a check: the call of the model fails with that message if an element of the real x is above
 * 1 / 100 in magnitude: a loss depends on the phase of vectors. */
void spectral_require_gauge(Build *, Node x, const char *message);

#endif
