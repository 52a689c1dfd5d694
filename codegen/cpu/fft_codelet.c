/* Transforms of a few elements, whose roots of unity are numbers in the code, and the factors of
 * lengths. */
#include <math.h>

#include "codegen/cpu/fft.h"

/* ---- complex arithmetic ---- */

Cx fft_let(Fft *t, const char *name, Cx x)
{
	return (Cx){lx_var(t->f, ls_let(t->f, name, x.re)), lx_var(t->f, ls_let(t->f, name, x.im))};
}

Lx fft_let_index(Fft *t, const char *name, Lx x)
{
	return eval_let(&t->s->e, name, x);
}

static Cx add(Fft *t, Cx a, Cx b)
{
	return fft_let(t, "c", (Cx){lx_add(t->f, a.re, b.re), lx_add(t->f, a.im, b.im)});
}

static Cx sub(Fft *t, Cx a, Cx b)
{
	return fft_let(t, "c", (Cx){lx_sub(t->f, a.re, b.re), lx_sub(t->f, a.im, b.im)});
}

static Lx negative(Fft *t, Lx x)
{
	return lx_sc(t->f, SC_neg, lx_type(t->f, x), &x, 1);
}

static Cx times_minus_i(Fft *t, Cx a)
{
	return (Cx){a.im, negative(t, a.re)};
}

Lx fft_number(Fft *t, double v)
{
	return lx_float(t->f, t->type, v);
}

Cx fft_mul_add(Fft *t, Cx a, Cx b, Cx acc)
{
	Lx re = code_fma(&t->s->code, a.re, b.re, acc.re),
	   im = code_fma(&t->s->code, a.re, b.im, acc.im);
	return (Cx){code_fma(&t->s->code, negative(t, a.im), b.im, re),
		    code_fma(&t->s->code, a.im, b.re, im)};
}

Cx fft_mul(Fft *t, Cx a, Cx b)
{
	Lx re = negative(t, lx_mul(t->f, a.im, b.im)), im = lx_mul(t->f, a.im, b.re);
	return fft_let(
		t, "c",
		(Cx){code_fma(&t->s->code, a.re, b.re, re), code_fma(&t->s->code, a.re, b.im, im)});
}

/* ---- transforms of a few elements ---- */

static void transform_2(Fft *t, Cx *a)
{
	Cx b = a[0];
	a[0] = add(t, b, a[1]);
	a[1] = sub(t, b, a[1]);
}

static void transform_4(Fft *t, Cx *a)
{
	Cx even[2] = {a[0], a[2]}, odd[2] = {a[1], a[3]};
	transform_2(t, even);
	transform_2(t, odd);
	odd[1] = times_minus_i(t, odd[1]);
	for (uint32_t k = 0; k < 2; k++) {
		a[k] = add(t, even[k], odd[k]);
		a[k + 2] = sub(t, even[k], odd[k]);
	}
}

static void transform_8(Fft *t, Cx *a)
{
	Cx even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
	Lx h = fft_number(t, 0.70710678118654752440);
	transform_4(t, even);
	transform_4(t, odd);
	Cx b = odd[1], c = odd[3];
	odd[1] = (Cx){lx_mul(t->f, lx_add(t->f, b.re, b.im), h),
		      lx_mul(t->f, lx_sub(t->f, b.im, b.re), h)};
	odd[2] = times_minus_i(t, odd[2]);
	odd[3] = (Cx){lx_mul(t->f, lx_sub(t->f, c.im, c.re), h),
		      negative(t, lx_mul(t->f, lx_add(t->f, c.re, c.im), h))};
	for (uint32_t k = 0; k < 4; k++) {
		a[k] = add(t, even[k], odd[k]);
		a[k + 4] = sub(t, even[k], odd[k]);
	}
}

/* Sets *c and *s to the cosine and the sine of 2 pi k / r. */
static void root_numbers(uint32_t k, uint32_t r, double *c, double *s)
{
	const double angle = 6.28318530717958647693 * k / r;
	*c = cos(angle);
	*s = sin(angle);
}

/* Transforms an odd number r of elements: sums and differences of a[j] and a[r - j] give the
 * results k and r - k. */
static void transform_odd(Fft *t, Cx *a, uint32_t r)
{
	Cx sum[MAX_CODELET], diff[MAX_CODELET], first = a[0];
	for (uint32_t j = 1; j <= r / 2; j++) {
		sum[j] = add(t, a[j], a[r - j]);
		diff[j] = sub(t, a[j], a[r - j]);
	}
	for (uint32_t j = 1; j <= r / 2; j++)
		a[0] = add(t, a[0], sum[j]);
	for (uint32_t k = 1; k <= r / 2; k++) {
		Cx c = first, s = {{0}, {0}};
		for (uint32_t j = 1; j <= r / 2; j++) {
			double cosine, sine;
			root_numbers(j * k % r, r, &cosine, &sine);
			Lx cj = fft_number(t, cosine), sj = fft_number(t, sine);
			c = (Cx){code_fma(&t->s->code, sum[j].re, cj, c.re),
				 code_fma(&t->s->code, sum[j].im, cj, c.im)};
			if (j == 1)
				s = (Cx){lx_mul(t->f, diff[j].re, sj),
					 lx_mul(t->f, diff[j].im, sj)};
			else
				s = (Cx){code_fma(&t->s->code, diff[j].re, sj, s.re),
					 code_fma(&t->s->code, diff[j].im, sj, s.im)};
		}
		c = fft_let(t, "c", c);
		s = fft_let(t, "s", times_minus_i(t, s));
		a[k] = add(t, c, s);
		a[r - k] = sub(t, c, s);
	}
}

/* Returns a * exp(-2 pi i k / 16). */
static Cx turn_16(Fft *t, Cx a, uint32_t k)
{
	double c, s;
	if (k == 4)
		return times_minus_i(t, a);
	root_numbers(k, 16, &c, &s);
	return fft_mul(t, a, (Cx){fft_number(t, c), fft_number(t, -s)});
}

/* Transforms 16 elements as 4 rows of 4 (a step of fft.c for each direction). */
static void transform_16(Fft *t, Cx *a)
{
	Cx row[4][4];
	for (uint32_t i = 0; i < 4; i++) {
		for (uint32_t j = 0; j < 4; j++)
			row[i][j] = a[i + 4 * j];
		transform_4(t, row[i]);
		for (uint32_t k = 1; k < 4 && i; k++)
			row[i][k] = turn_16(t, row[i][k], i * k);
	}
	for (uint32_t k = 0; k < 4; k++) {
		Cx column[4] = {row[0][k], row[1][k], row[2][k], row[3][k]};
		transform_4(t, column);
		for (uint32_t i = 0; i < 4; i++)
			a[k + 4 * i] = column[i];
	}
}

void fft_transform(Fft *t, Cx *a, uint32_t r)
{
	switch (r) {
	case 2:
		transform_2(t, a);
		break;
	case 4:
		transform_4(t, a);
		break;
	case 8:
		transform_8(t, a);
		break;
	case 16:
		transform_16(t, a);
		break;
	default:
		transform_odd(t, a, r);
	}
}

/* ---- factors ---- */

bool fft_has_codelet(int64_t r)
{
	return r == 2 || r == 3 || r == 4 || r == 5 || r == 7 || r == 8 || r == 11 || r == 13 ||
	       r == 16;
}

uint32_t fft_factors(int64_t n, int64_t *factor)
{
	uint32_t count = 0, twos = 0;
	for (; n % 2 == 0; n /= 2)
		twos++;
	for (uint32_t left = (twos + 3) / 4; left; left--) {
		const uint32_t part = (twos + left - 1) / left;
		factor[count++] = INT64_C(1) << part;
		twos -= part;
	}
	for (int64_t p = 3; n > 1; p += 2) {
		if (p * p > n)
			p = n;
		for (; n % p == 0; n /= p)
			factor[count++] = p;
	}
	return count;
}
