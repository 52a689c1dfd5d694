#include "ir/ops/winograd.h"

/* The coefficients of the product of (x - p) over the n points but point `without` (n: over
 * all). */
static void polynomial(const double *point, uint32_t n, uint32_t without, double *coef)
{
	uint32_t degree = 0;
	coef[0] = 1;
	for (uint32_t i = 0; i < n; i++) {
		if (i == without)
			continue;
		coef[++degree] = 0;
		for (uint32_t k = degree; k > 0; k--)
			coef[k] = coef[k - 1] - point[i] * coef[k];
		coef[0] *= -point[i];
	}
}

Winograd winograd_matrices(uint32_t m)
{
	/* Of the pairs of short binary fractions these have the smallest errors: a third of those
	 * of 1 and 2. */
	static const double two[] = {0, 1, -1}, four[] = {0, 0.75, -0.75, 1.5, -1.5};
	const double *point = m == 2 ? two : four;
	Winograd w = {.m = m, .n = m + WINOGRAD_TAPS - 1};
	const uint32_t last = w.n - 1;
	for (uint32_t i = 0; i < last; i++) {
		double power = 1, divisor = 1;
		polynomial(point, last, i, w.b[i]);
		for (uint32_t k = 0; k < last; k++)
			divisor *= k == i ? 1 : point[i] - point[k];
		for (uint32_t k = 0; k < m || k < WINOGRAD_TAPS; k++, power *= point[i]) {
			if (k < m)
				w.a[k][i] = power;
			if (k < WINOGRAD_TAPS)
				w.g[i][k] = power / divisor;
		}
	}
	polynomial(point, last, last, w.b[last]);
	w.a[m - 1][last] = 1;
	w.g[last][WINOGRAD_TAPS - 1] = 1;
	return w;
}
