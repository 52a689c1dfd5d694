/* Eigenvalues, singular values and factorisations of symmetric indefinite matrices, as functions of
 * operators (weft_op.h) that the compiler defines itself (ops/user/builtin.c). LAPACK's Fortran
 * interface computes them. The library is loaded when the model is opened, or else at the first
 * call; eigenvalues of symmetric matrices and singular values have functions of our own besides
 * (runtime/jacobi.c), for small matrices and where no library is found.
 *
 * Matrices are column-major: the tensor [.., n, m] is a batch of matrices of m rows and n columns.
 * Complex numbers are pairs along a last dimension of two. The operands after the tensors are
 * integers:
 *
 *   part, parts   the call computes matrices count * part / parts .. count * (part + 1) / parts
 *   count         the number of matrices
 *   pairs         1: the numbers are complex
 *   flag          see the function; of functions that have none it is not there
 *
 * The workspace belongs to the part alone. A call that fails says so as PyTorch does. */
#ifndef WEFT_LAPACK_H
#define WEFT_LAPACK_H

#include "weft_model.h"

#define WEFT_LAPACK_FUNCTION(name)                                                                 \
	int name(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,        \
		 void *work, uint64_t work_bytes, WeftStatus *status)

/* a -> values [.., n], ascending, and vectors [.., n, n], or values alone. Of a Hermitian matrix of
 * which the lower triangle is read, with flag 1 the upper one. */
WEFT_LAPACK_FUNCTION(weft_lapack_eigh);
WEFT_LAPACK_FUNCTION(weft_lapack_eigvalsh);
/* a -> values [.., n, 2] and vectors [.., n, n, 2], or values alone: pairs always. */
WEFT_LAPACK_FUNCTION(weft_lapack_eig);
WEFT_LAPACK_FUNCTION(weft_lapack_eigvals);
/* a [.., n, m] -> values [.., k], descending, k = min(m, n), and U and V^H, thin or square; or
 * values alone. */
WEFT_LAPACK_FUNCTION(weft_lapack_svd);
WEFT_LAPACK_FUNCTION(weft_lapack_svdvals);
/* a -> L and D in one matrix, pivots i32 [.., n], info i32 [..]; flag 1: Hermitian, else
 * symmetric. */
WEFT_LAPACK_FUNCTION(weft_lapack_ldl_factor);
/* factor, pivots, b [.., m, n] -> x of the factored matrix times x = b; flag as above. */
WEFT_LAPACK_FUNCTION(weft_lapack_ldl_solve);

/* ---- Jacobi's method (jacobi.c), which needs no library ---- */

/* Matrices of at most so many rows and columns are always computed by it, LANES at a time: for
 * larger ones LAPACK is faster. */
enum { WEFT_JACOBI_MOST = 6, WEFT_JACOBI_LANES = 8 };

/* What the matrices of a call are. */
typedef struct {
	int64_t m, n;          /* rows and columns */
	int64_t columns, rows; /* of U, of V^H */
	size_t real;           /* bytes of a real number: 4 or 8 */
	int pairs, upper;
	void *work;            /* doubles; for the bytes see ops/user/builtin.c */
} WeftJacobi;

/* Computes `count` matrices, one behind the other, as the functions above. count is 1, or at most
 * WEFT_JACOBI_LANES matrices of at most WEFT_JACOBI_MOST rows and columns. v, u and vt may be
 * NULL: no vectors. Returns 0, or 1: the numbers are not finite. */
int weft_jacobi_eigh(const WeftJacobi *, int count, const void *a, void *w, void *v);
int weft_jacobi_svd(const WeftJacobi *, int count, const void *a, void *s, void *u, void *vt);

/* Loads the library. Returns WEFT_OK, or WEFT_ERR_FILE with a message: there is none. */
int weft_lapack_load(WeftStatus *);

#endif
