/* Whether a result is right: the rules of `weft check`. */
#ifndef WEFT_TOOLS_COMPARE_H
#define WEFT_TOOLS_COMPARE_H

#include "tool.h"

typedef struct {
	bool ok;
	int64_t at;     /* the value (value_at) whose error exceeds what is allowed most */
	double error;   /* |result - reference| there; infinite if one is not finite and the other
			   is (with Tolerance.ulps an infinity counts as the number that would
			   follow the largest) */
	double allowed; /* the error that is allowed there */
	double ratio;   /* error / Tolerance.eager_err; -1 if that is not above 0. PyTorch's error
			   counts as half a unit in the last place of the largest value at least:
			   a smaller one is the luck of one rounding */
	double share;   /* the largest error beside what is allowed: error / allowed of the value
			   where that is largest; 0 without an error, infinite where none is
			   allowed */
	double largest, largest_allowed; /* the error of that value, and what is allowed there */
	int64_t wrong;  /* how many values are out of tolerance */
	char why[160];  /* how dtype or shape differ; "" if they do not */
} Comparison;

/* How far a result may be from its reference. */
typedef struct {
	double eager_err; /* the largest error of PyTorch itself: 8 times that, plus 1e-6 of the
			     largest reference, is allowed if none is stated; below 0: not known */
	bool stated;      /* rtol, atol and ulps are stated, and are what is allowed, added up */
	double rtol, atol;
	double ulps; /* units in the last place of the reference's dtype, at its value */
} Tolerance;

/* Returns the tolerance for a tensor that the file's metadata states: for y.<k> `eager_err.<k>`
 * "E" or `allow.<k>` "RTOL ATOL ULPS"; for gradients (g, gp) `eager_grad_err` or `allow.g.<k>`,
 * `allow.gp.NAME`. For other keys, and without metadata: eager_err -1 and not stated. */
Tolerance tolerance_of(const WeftTensors *, const TensorKey *);
/* Returns the tolerance for a tensor of a model that computes in the precision "bf16" or "f16", or
 * that rounds activations to 8 bits ("int8"), which is allowed as much as bf16,
 * against the file's reference in full precision: `autocast_err.bf16.<k>` (of gradients
 * `autocast_grad_err.bf16`) in the metadata is the largest error of torch.autocast, which is
 * taken as `eager_err` of tolerance_of is; else, and without a key (of state), 8 units in the
 * last place of that dtype at the largest reference are stated. Values that are no floats, and
 * NULL as the precision: as tolerance_of, of state without an error and not stated. */
Tolerance tolerance_in(const char *precision, const WeftTensors *, const TensorKey *,
		       const WeftTensor *reference);

/* Compares a result with its reference, both row-major. as: the dtype of which the values are; the
 * dtype of the tensors may be wider. If neither an error of PyTorch is known nor a tolerance
 * stated, that of torch.testing.assert_close for `as` applies, ten times that for f32, f64 and
 * their complex dtypes; other dtypes than floats are compared exactly, also beyond 2^53. NaN equals
 * NaN. If shapes or dtypes differ, ok is false, `why` is set, ratio is -1, and the other fields are
 * 0. */
Comparison compare(const WeftTensor *result, const WeftTensor *reference, WeftDType as,
		   const Tolerance *);
/* Does as compare, of dtypes and shapes only: ok with any values. */
Comparison compare_types(const WeftTensor *result, const WeftTensor *reference);
/* Sets *out to a copy of t, a row-major tensor, in double precision, if output k of the operator
 * op ("linalg.eigh") is defined only up to a phase (vectors of eig, eigh, svd, qr), so that two
 * such results can be compared: every vector is multiplied by a number of modulus 1 so that its
 * largest component (the first of about the same size) is positive. The shape is t's; the caller
 * frees out->data by free. Returns false, with *out unchanged, if the output is no such result
 * or there is no memory. */
bool normalise_phase(const char *op, uint32_t k, const WeftTensor *t, WeftTensor *out);
/* Turns z, a cotangent of y's, into that of x's, in data of its own that the caller frees. x and
 * y are output k of the operator, its vectors up to phase. Returns false, and z stays, if the
 * output has no such vectors or shapes differ. */
bool turn_phase(const char *op, uint32_t k, const WeftTensor *x, const WeftTensor *y,
		WeftTensor *z);

#endif
