/* Concrete tensors of the interpreter and of constant folding: row-major; the data belongs to an
 * arena or to somebody else. */
#ifndef WEFT_IR_TENSOR_H
#define WEFT_IR_TENSOR_H

#include "base/ctx.h"
#include "ir/graph/dtype.h"
#include "ir/graph/graph.h"

typedef struct Tensor {
	DType dtype;
	uint32_t rank;
	int64_t dim[MAX_RANK];
	void *data; /* row-major; complex as (re, im) pairs of the real dtype */
} Tensor;

/* Returns the number of elements; 1 if the rank is 0. */
int64_t tensor_numel(const Tensor *);
/* Returns the number of bytes of the data. */
uint64_t tensor_bytes(const Tensor *);
/* Returns the type as text, in the arena: "f32[2, 3]". */
const char *tensor_type_str(Arena *, const Tensor *);

/* Elements are numbered in row-major order; element numbers are not checked. The functions below
 * convert between the tensor's dtype and double or int64 as docs/numerics.md says: floats are
 * rounded to the dtype, integers wrap around, a float that becomes an integer is truncated, bool is
 * whether a number is not 0. Of complex numbers the real part is read; writing sets the imaginary
 * part to 0. The int64 of a u64 has its bits. */

/* Returns element i as a double. */
double tensor_f64(const Tensor *, int64_t i);
/* Returns element i as an int64. */
int64_t tensor_i64(const Tensor *, int64_t i);
/* Sets element i to a double. */
void tensor_set_f64(Tensor *, int64_t i, double v);
/* Sets element i to an int64. */
void tensor_set_i64(Tensor *, int64_t i, int64_t v);
/* Copies the n elements from `first` on to dst[], as doubles. */
void tensor_read_f64(const Tensor *, int64_t first, int64_t n, double *dst);
/* Sets the n elements from `first` on to the doubles src[]. */
void tensor_write_f64(Tensor *, int64_t first, int64_t n, const double *src);
/* Copies the n elements from `first` on to dst[], as int64s. */
void tensor_read_i64(const Tensor *, int64_t first, int64_t n, int64_t *dst);
/* Sets the n elements from `first` on to the int64s src[]. */
void tensor_write_i64(Tensor *, int64_t first, int64_t n, const int64_t *src);
/* Returns a tensor of one dimension and of dtype_real of its dtype, over the same data: [numel *
 * 2] if the tensor is complex, else [numel]. */
Tensor tensor_flat_real(const Tensor *);

#endif
