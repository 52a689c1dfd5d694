/* Is a result right? The rules of `weft check`. */
#ifndef WEFT_TOOLS_COMPARE_H
#define WEFT_TOOLS_COMPARE_H

#include "tool.h"

typedef struct {
	bool ok;
	double error;      /* |result - reference| where it exceeds what is allowed most; infinite
	                      when one is not finite and the other is */
	double allowed;    /* at that element */
	double ratio;      /* error / eager_err, or -1. PyTorch's error counts as half a unit in the
	                      last place of the largest value at least: below, it is the luck of one
	                      rounding */
	int64_t at, wrong; /* that element; values out of tolerance */
	char why[160];     /* dtype or shape differ; "" otherwise */
} Comparison;

/* How far a result may be off; what its reference file says about it. */
typedef struct {
	double eager_err; /* PyTorch's own error, 8 times which is allowed; < 0: not known */
	bool stated;      /* rtol, atol, ulps hold: the file has allow.<i> */
	double rtol, atol;
	double ulps; /* units in the last place of the reference's dtype, at its value */
} Tolerance;

/* What the file's metadata says: of y.<k> `eager_err.<k>` "E" or `allow.<k>` "RTOL ATOL ULPS", of
 * gradients `eager_grad_err` or `allow.g.<k>`, `allow.gp.NAME`. */
Tolerance tolerance_of(const WeftTensors *, const TensorKey *);

/* Values of dtype `as` (the reference's may be wider). Where nothing is known of the tolerance,
 * torch.testing.assert_close's applies. Integers are compared exactly, beyond 2^53 too. */
Comparison compare(const WeftTensor *result, const WeftTensor *reference, WeftDType as,
		   const Tolerance *);
/* The results of op that are fixed only up to phase: copy to *out, in double
 * precision, the data freed by the caller, with the phase
 * chosen by one rule. False when output k of op is no such result. The rule: every vector is
 * multiplied by a unit so that its largest component (the first of the largest) becomes positive.
 */
bool normalise_phase(const char *op, uint32_t k, const WeftTensor *t, WeftTensor *out);

#endif
