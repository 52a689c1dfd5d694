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

static double error_of(const Winograd *w, int64_t channels)
{
	const double direct = fmin(WINOGRAD_TAPS * WINOGRAD_TAPS * (double)channels, CHAIN) / 2;
	return grown(w) * sqrt((fmin((double)channels, SHORT) / 2 + ROUNDINGS) / direct);
}

/* ---- cycles ---- */

typedef struct {
	double units, loads, stores; /* vectors */
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
	const double bytes = p->elements * dtype_size(DT_f32), compute = fmax(units, moves);
	const double memory = machine_memory_cycles(m, bytes, bytes);
	return m->phase / 8.0 + fmax(compute, memory) + fmin(compute, memory) / 4;
}

static double vectors(const Target *t, int64_t channels)
{
	return ceil((double)channels / target_width(t));
}

static double direct_cycles(const Target *t, const WinogradLayer *l)
{
	const double points = (double)l->images * (double)l->rows * (double)l->cols,
		     taps = WINOGRAD_TAPS * WINOGRAD_TAPS;
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

static double tile_cycles(const Target *t, const WinogradLayer *l, const Winograd *w)
{
	const double n = w->n, m = w->m, in = (double)l->in, out = (double)l->out;
	const double points = (double)l->images * (double)l->rows * (double)l->cols;
	const double tiles =
		(double)l->images * ceil((double)l->rows / m) * ceil((double)l->cols / m);
	double in_line = 0, out_line = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		const bool pair = i > 0 && i + 1 < w->n;
		in_line += pair ? line_operations(w->b[i], w->n) / 2 + 1
				: line_operations(w->b[i], w->n);
	}
	for (uint32_t r = 0; r < w->m; r++)
		out_line += line_operations(w->a[r], w->n) - (m - 2) / 2 + m / 2;
	const double in_vectors = tiles * vectors(t, l->in),
		     out_vectors = tiles * vectors(t, l->out);
	const Phase phase[] = {
		{.units = in_vectors * 2 * n * in_line,
		 .loads = in_vectors * n * n,
		 .stores = in_vectors * n * n,
		 .elements = points * in + tiles * n * n * in},
		{.products = n * n * in * out_vectors,
		 .elements = n * n * (tiles * (in + out) + in * out)},
		{.units = out_vectors * (n + m) * out_line,
		 .loads = out_vectors * n * n,
		 .stores = out_vectors * m * m,
		 .elements = tiles * n * n * out + points * out},
	};
	return phase_cycles(t, &phase[0]) + phase_cycles(t, &phase[1]) + phase_cycles(t, &phase[2]);
}

WinogradChoice winograd_choose(const Target *t, const WinogradLayer *l)
{
	static const uint32_t size[] = {2, 4};
	const double clearly = 0.9; /* predictions within a tenth do not decide */
	WinogradChoice c = {.direct = direct_cycles(t, l)};
	for (uint32_t i = 0; i < sizeof size / sizeof *size; i++) {
		const Winograd w = winograd_matrices(size[i]);
		const double cycles = tile_cycles(t, l, &w), error = error_of(&w, l->in);
		if (error > MOST_ERROR || (c.cycles > 0 && cycles >= c.cycles))
			continue;
		c.cycles = cycles;
		c.error = error;
		c.tile = cycles < clearly * c.direct ? w.m : 0;
	}
	return c;
}
