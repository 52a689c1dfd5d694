#include "ir/target/winograd_matrices.h"

#include <string.h>

/* Sets coef[] to the coefficients of the product of (x - p) over the n points but point
 * `without` (n: over all). */
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

/* ---- parts ---- */

const char *const winograd_part_name[] = {"inputs", "filter", "results"};

bool winograd_part_named(const char *name, WinogradPart *part)
{
	const uint32_t n = sizeof winograd_part_name / sizeof *winograd_part_name;
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(name, winograd_part_name[i])) {
			*part = (WinogradPart)i;
			return true;
		}
	return false;
}

WinogradMatrix winograd_from(const Winograd *w, WinogradPart part)
{
	const bool results = part == WINOGRAD_RESULTS;
	WinogradMatrix m = {.rows = results ? w->m : WINOGRAD_TAPS, .cols = w->n};
	m.step = m.rows;
	for (uint32_t r = 0; r < m.rows; r++)
		for (uint32_t i = 0; i < w->n; i++)
			m.c[r][i] = results ? w->a[r][i] : w->g[i][r];
	return m;
}

WinogradMatrix winograd_into(const Winograd *w, WinogradPart part)
{
	if (part != WINOGRAD_INPUTS) {
		const WinogradMatrix back = winograd_from(w, part);
		WinogradMatrix m = {.rows = w->n, .cols = back.rows, .step = back.step};
		for (uint32_t i = 0; i < m.rows; i++)
			for (uint32_t k = 0; k < m.cols; k++)
				m.c[i][k] = back.c[k][i];
		return m;
	}
	WinogradMatrix m = {.rows = w->n, .cols = w->n, .step = w->m};
	for (uint32_t i = 0; i < m.rows; i++)
		memcpy(m.c[i], w->b[i], sizeof w->b[i]);
	return m;
}

/* ---- filters ---- */

enum { FILTERS = 8, NTAPS = WINOGRAD_TAPS * WINOGRAD_TAPS };

/* A number of each of some filters, which are transformed together. */
typedef double Filters __attribute__((vector_size(FILTERS * sizeof(double))));

/* Computes u[i * n + j] of tap[3 * 3]. */
static void transform(const Winograd *w, const Filters *tap, Filters *u)
{
	for (uint32_t i = 0; i < w->n; i++) {
		const double *g = w->g[i];
		Filters half[WINOGRAD_TAPS]; /* row i of G w */
		for (uint32_t k = 0; k < WINOGRAD_TAPS; k++)
			half[k] = g[0] * tap[k] + g[1] * tap[WINOGRAD_TAPS + k] +
				  g[2] * tap[2 * WINOGRAD_TAPS + k];
		for (uint32_t j = 0; j < w->n; j++) /* not -0: sums begin with 0 */
			*u++ = w->g[j][0] * half[0] + w->g[j][1] * half[1] + w->g[j][2] * half[2] +
			       0.0;
	}
}

static void store(const Filters *u, size_t filters, float *to)
{
	for (uint32_t f = 0; filters == FILTERS && f < FILTERS; f++) /* as vectors */
		to[f] = (float)(*u)[f];
	for (uint32_t f = 0; filters != FILTERS && f < filters; f++)
		to[f] = (float)(*u)[f];
}

void winograd_filters(const Winograd *w, const float *taps, size_t out, size_t in, float *place)
{
	const size_t places = (size_t)w->n * w->n;
	Filters tap[NTAPS] = {{0}}, u[WINOGRAD_MAX * WINOGRAD_MAX];
	for (size_t o = 0; o < out; o += FILTERS) {
		const size_t filters = out - o < FILTERS ? out - o : FILTERS;
		for (size_t c = 0; c < in; c++) {
			for (size_t f = 0; f < filters; f++)
				for (size_t k = 0; k < NTAPS; k++)
					tap[k][f] = (double)taps[((o + f) * in + c) * NTAPS + k];
			transform(w, tap, u);
			for (size_t k = 0; k < places; k++)
				store(&u[k], filters, &place[(k * in + c) * out + o]);
		}
	}
}
