#include "ir/target/winograd.h"

#include <math.h>

#include "ir/target/winograd_matrices.h"

/* ---- errors ----
 *
 * Of random inputs and weights. A chain of n additions has a relative error of sqrt(n / 2)
 * roundings. The products of a tile are larger than the results that are sums of them, by the
 * factor `grown`, and so are their errors; but chains are over channels alone. */

enum {
	CHAIN = 256,       /* additions in a chain of f32 (docs/numerics.md, Sums) */
	SHORT = 64,        /* of the products of tiles */
	MOST_ERROR = 4,    /* times that of the convolution: half of what docs/numerics.md allows
	                      for a model */
	ROUNDINGS = 4      /* of transformed inputs and weights */
};

static double square_sum(const double *v, uint32_t n)
{
	double sum = 0;
	for (uint32_t i = 0; i < n; i++)
		sum += v[i] * v[i];
	return sum;
}

/* Returns by how much rounding errors grow along a line, as the mean over its results: the
 * variance of what is added up, by that of the sum. */
static double grown(const Winograd *w)
{
	double sum = 0;
	for (uint32_t r = 0; r < w->m; r++)
		for (uint32_t i = 0; i < w->n; i++)
			sum += w->a[r][i] * w->a[r][i] * square_sum(w->b[i], w->n) *
			       square_sum(w->g[i], WINOGRAD_TAPS);
	return sum / w->m / WINOGRAD_TAPS;
}

static double points_of(const WinogradLayer *l)
{
	return (double)l->images * (double)l->rows * (double)l->cols;
}

static double tiles_of(const WinogradLayer *l, const Winograd *w)
{
	return (double)l->images * ceil((double)l->rows / w->m) * ceil((double)l->cols / w->m);
}

static double error_of(const Winograd *w, const WinogradLayer *l)
{
	const bool gradient = l->kind == WINOGRAD_TAPS_GRADIENT;
	const double terms =
		gradient ? points_of(l) : WINOGRAD_TAPS * WINOGRAD_TAPS * (double)l->in;
	const double products = gradient ? tiles_of(l, w) : (double)l->in;
	return grown(w) * sqrt((fmin(products, SHORT) / 2 + ROUNDINGS) / (fmin(terms, CHAIN) / 2));
}

/* ---- cycles ---- */

typedef struct {
	double units, loads, stores; /* vectors */
	double gathers;              /* vectors whose elements are read or written one by one */
	double products;             /* vectors that are multiplied and added */
	double elements;             /* read or written, each once */
} Phase;

static double phase_cycles(const Target *t, const Phase *p)
{
	const Machine *m = &t->machine;
	const uint32_t lanes = target_width(t);
	const double product = isa_has(&t->isa, ISA_FMA)
				       ? machine_cycles(m, MOP_fma, DT_f32, lanes)
				       : machine_cycles(m, MOP_mul, DT_f32, lanes) +
						 machine_cycles(m, MOP_add, DT_f32, lanes);
	const double units =
		p->units * machine_cycles(m, MOP_add, DT_f32, lanes) + p->products * product;
	const double moves = fmax(p->loads * machine_cycles(m, MOP_load, DT_f32, lanes),
				  p->stores * machine_cycles(m, MOP_store, DT_f32, lanes));
	const double gathers = p->gathers * machine_cycles(m, MOP_gather, DT_f32, lanes);
	const double bytes = p->elements * dtype_size(DT_f32),
		     compute = fmax(units, moves) + gathers;
	const double memory = machine_memory_cycles(m, bytes, bytes);
	return m->phase / 8.0 + fmax(compute, memory) + fmin(compute, memory) / 4;
}

static double vectors(const Target *t, int64_t channels)
{
	return ceil((double)channels / target_width(t));
}

static double direct_cycles(const Target *t, const WinogradLayer *l)
{
	const double points = points_of(l), taps = WINOGRAD_TAPS * WINOGRAD_TAPS;
	const double in = (double)l->in, out = (double)l->out;
	const Phase p = {.products = points * taps * in * vectors(t, l->out),
			 .elements = points * (in + out) + taps * in * out};
	return phase_cycles(t, &p);
}

/* Returns the number of additions and multiplications of a sum of n numbers with coef[]. */
static double line_operations(const double *coef, uint32_t n)
{
	double operations = -1;
	for (uint32_t i = 0; i < n; i++)
		operations += coef[i] == 0 ? 0 : fabs(coef[i]) == 1 ? 1 : 2;
	return operations;
}

/* Returns the operations of a line of a matrix into products, whose pairs of rows share parts. */
static double into_operations(const WinogradMatrix *w)
{
	double sum = 0;
	for (uint32_t i = 0; i < w->rows; i++) {
		const bool pair = i > 0 && i + 1 < w->rows;
		sum += pair ? line_operations(w->c[i], w->cols) / 2 + 1
			    : line_operations(w->c[i], w->cols);
	}
	return sum;
}

/* Returns the operations of a line of a matrix from products, whose pairs of columns share sums and
 * differences. */
static double from_operations(const WinogradMatrix *w)
{
	double sum = 0;
	for (uint32_t r = 0; r < w->rows; r++)
		sum += line_operations(w->c[r], w->cols) + 1;
	return sum;
}

/* Returns the cycles of transforming so many channels of tiles, of each of which `elements` are
 * read and written. taps: tiles are filters, whose elements a vector gathers or scatters. */
static double transform_cycles(const Target *t, const WinogradMatrix *w, bool into, bool taps,
			       double tiles, int64_t channels, double elements)
{
	const double n = tiles * vectors(t, channels);
	const double read = (double)w->cols * w->cols, written = (double)w->rows * w->rows;
	const Phase p = {.units = n * (w->cols + w->rows) *
				  (into ? into_operations(w) : from_operations(w)),
			 .loads = taps && into ? 0 : n * read,
			 .stores = taps && !into ? 0 : n * written,
			 .gathers = taps ? n * (into ? read : written) : 0,
			 .elements = tiles * (double)channels * elements};
	return phase_cycles(t, &p);
}

static double tile_cycles(const Target *t, const WinogradLayer *l, const Winograd *w)
{
	const double products = (double)w->n * w->n, m = w->m, in = (double)l->in,
		     out = (double)l->out, taps = WINOGRAD_TAPS * WINOGRAD_TAPS;
	const double tiles = tiles_of(l, w), result = points_of(l) / tiles;
	const WinogradMatrix inputs = winograd_into(w, WINOGRAD_INPUTS),
			     filter = winograd_into(w, WINOGRAD_FILTER),
			     gradient = winograd_into(w, WINOGRAD_RESULTS),
			     results = winograd_from(w, WINOGRAD_RESULTS),
			     new_filter = winograd_from(w, WINOGRAD_FILTER);
	const Phase multiply = {.products = products * in * tiles * vectors(t, l->out),
				.elements = products * (tiles * (in + out) + in * out)};
	double sum = transform_cycles(t, &inputs, true, false, tiles, l->in, result + products) +
		     phase_cycles(t, &multiply);
	if (l->kind == WINOGRAD_TAPS_GRADIENT)
		return sum +
		       transform_cycles(t, &gradient, true, false, tiles, l->out,
					m * m + products) +
		       transform_cycles(t, &new_filter, false, true, in, l->out, products + taps);
	if (l->kind == WINOGRAD_NEW_TAPS)
		sum += transform_cycles(t, &filter, true, true, in, l->out, taps + products);
	return sum + transform_cycles(t, &results, false, false, tiles, l->out, products + result);
}

WinogradChoice winograd_choose(const Target *t, const WinogradLayer *l)
{
	static const uint32_t size[] = {2, 4};
	const double clearly = 0.9; /* predictions within a tenth do not decide */
	WinogradChoice c = {.direct = direct_cycles(t, l)};
	for (uint32_t i = 0; i < sizeof size / sizeof *size; i++) {
		const Winograd w = winograd_matrices(size[i]);
		const double cycles = tile_cycles(t, l, &w), error = error_of(&w, l);
		if (error > MOST_ERROR || (c.cycles > 0 && cycles >= c.cycles))
			continue;
		c.cycles = cycles;
		c.error = error;
		c.tile = cycles < clearly * c.direct ? w.m : 0;
	}
	return c;
}
