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

int64_t tensor_numel(const Tensor *);
uint64_t tensor_bytes(const Tensor *);
/* Element i, converted to double or int64 as docs/numerics.md says. */
double tensor_f64(const Tensor *, int64_t i);
int64_t tensor_i64(const Tensor *, int64_t i);
void tensor_set_f64(Tensor *, int64_t i, double v); /* rounds to the dtype */
void tensor_set_i64(Tensor *, int64_t i, int64_t v);
/* Copies n elements from `first` on, converted. Complex numbers: reads the real part, writes an
 * imaginary part of 0. u64 keeps its bits in an int64. */
void tensor_read_f64(const Tensor *, int64_t first, int64_t n, double *dst);
void tensor_write_f64(Tensor *, int64_t first, int64_t n, const double *src);
void tensor_read_i64(const Tensor *, int64_t first, int64_t n, int64_t *dst);
void tensor_write_i64(Tensor *, int64_t first, int64_t n, const int64_t *src); /* wraps */
/* The same data as a flat tensor of the real dtype: [numel * 2] if complex, else [numel]. */
Tensor tensor_flat_real(const Tensor *);

#endif
