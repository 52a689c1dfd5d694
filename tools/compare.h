/* Is a result right? The rules of `weft check`. */
#ifndef WEFT_TOOLS_COMPARE_H
#define WEFT_TOOLS_COMPARE_H

#include "tool.h"

typedef struct {
	bool ok;
	double error; /* largest |result - reference|; infinite when one is not finite and the other
			 is */
	double allowed;    /* at that element */
	double ratio;      /* error / eager_err, or -1 */
	int64_t at, wrong; /* where the error is largest; values out of tolerance */
	char why[160];     /* dtype or shape differ; "" otherwise */
} Comparison;

/* Tolerances are those of dtype `as`; eager_err < 0: none known, torch.testing.assert_close's
 * apply. */
Comparison compare(const WeftTensor *result, const WeftTensor *reference, WeftDType as,
		   double eager_err);
/* The results of op that are fixed only up to phase: copy to *out, in double
 * precision, the data freed by the caller, with the phase
 * chosen by one rule. False when output k of op is no such result. The rule: every vector is
 * multiplied by a unit so that its largest component (the first of the largest) becomes positive.
 */
bool normalise_phase(const char *op, uint32_t k, const WeftTensor *t, WeftTensor *out);

#endif
