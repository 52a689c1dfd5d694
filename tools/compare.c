#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sets the tolerances of torch.testing.assert_close, times ten for f32 and f64 (and the complex
 * types made of them). */
static void tolerances(WeftDType t, double *rtol, double *atol)
{
	uint8_t bits = t.code == WEFT_COMPLEX ? t.bits / 2 : t.bits;
	*rtol = *atol = 0;
	if (t.code == WEFT_BFLOAT)
		*rtol = 1.6e-2, *atol = 1e-5;
	else if ((t.code == WEFT_FLOAT || t.code == WEFT_COMPLEX) && bits == 16)
		*rtol = 1e-3, *atol = 1e-5;
	else if ((t.code == WEFT_FLOAT || t.code == WEFT_COMPLEX) && bits == 32)
		*rtol = 1.3e-5, *atol = 1e-4;
	else if (t.code == WEFT_FLOAT || t.code == WEFT_COMPLEX)
		*rtol = 1e-6, *atol = 1e-6;
}

static bool same_type(const WeftTensor *a, const WeftTensor *b, Comparison *c)
{
	char x[16], y[16];
	if (a->dtype.code != b->dtype.code || a->dtype.bits != b->dtype.bits) {
		snprintf(c->why, sizeof c->why, "dtype %s, expected %s", dtype_text(a->dtype, x),
			 dtype_text(b->dtype, y));
		return false;
	}
	bool same = a->ndim == b->ndim;
	for (int32_t k = 0; same && k < a->ndim; k++)
		same = a->shape[k] == b->shape[k];
	if (same)
		return true;
	size_t n = (size_t)snprintf(c->why, sizeof c->why, "shape");
	for (int side = 0; side < 2; side++) {
		const WeftTensor *t = side ? b : a;
		for (int32_t k = 0; k < t->ndim && n < sizeof c->why - 30; k++)
			n += (size_t)snprintf(c->why + n, sizeof c->why - n, "%s%lld",
					      k ? "x" : " ", (long long)t->shape[k]);
		if (!side)
			n += (size_t)snprintf(c->why + n, sizeof c->why - n, ", expected");
	}
	return false;
}

/* Sets the mantissa bits behind the point and the exponent of the smallest normal number, by
 * dtype. */
static void precision(WeftDType t, int *mantissa, int *lowest)
{
	const FloatKind *k = float_kind(t);
	*mantissa = k ? k->mantissa : 10; /* of integers something */
	*lowest = k ? 1 - k->bias : -14;
}

/* Returns the unit in the last place of dtype t at x, which is finite. */
static double ulp_of(WeftDType t, double x)
{
	int mantissa, lowest, e;
	precision(t, &mantissa, &lowest);
	frexp(x, &e); /* |x| in [2^(e-1), 2^e) */
	return ldexp(1, (x == 0 || e - 1 < lowest ? lowest : e - 1) - mantissa);
}

/* Returns what would stand in place of an infinity were there one more exponent: so that the
 * largest number is one unit in the last place off. */
static double past_largest(WeftDType t, double x)
{
	int mantissa, lowest;
	precision(t, &mantissa, &lowest);
	return isinf(x) ? copysign(ldexp(1, 2 - lowest), x) : x;
}

/* Returns |a - b|. NaN equals NaN, infinities equal themselves. */
static double difference(double a, double b)
{
	if (a == b || (isnan(a) && isnan(b)))
		return 0;
	double d = fabs(a - b);
	return isnan(d) ? (double)INFINITY : d;
}

/* Whether both integers of 64 bits, which doubles do not hold, are the same. */
static bool same_integer(const WeftTensor *a, const WeftTensor *b, int64_t i)
{
	const char *x = (const char *)a->data + a->byte_offset,
		   *y = (const char *)b->data + b->byte_offset;
	return memcmp(x + 8 * i, y + 8 * i, 8) == 0;
}

static double error_at(const WeftTensor *result, const WeftTensor *reference, int64_t i,
		       double ulps)
{
	WeftDType t = reference->dtype;
	double got = value_at(result, i), want = value_at(reference, i);
	if ((t.code == WEFT_INT || t.code == WEFT_UINT) && t.bits == 64 && got == want)
		return same_integer(result, reference, i) ? 0 : 1;
	if (ulps > 0 && isinf(got) != isinf(want) && t.bits < 64)
		return difference(past_largest(t, got), past_largest(t, want));
	return difference(got, want);
}

static double largest(const WeftTensor *t, int64_t n)
{
	double m = 0;
	for (int64_t i = 0; i < n; i++) {
		double v = fabs(value_at(t, i));
		if (v > m && isfinite(v))
			m = v;
	}
	return m;
}

Tolerance tolerance_of(const WeftTensors *ref, const TensorKey *of)
{
	char key[300], name[280];
	Tolerance t = {.eager_err = -1};
	bool gradient = of->kind[0] == 'g';
	if (!gradient && strcmp(of->kind, "y") != 0)
		return t;
	key_text(of, -1, name, sizeof name);
	snprintf(key, sizeof key, gradient ? "eager_grad_err" : "eager_err.%u", (unsigned)of->k);
	const char *text = weft_tensors_meta(ref, key);
	if (text)
		t.eager_err = strtod(text, NULL);
	snprintf(key, sizeof key, "allow.%s", gradient ? name : name + 2);
	text = weft_tensors_meta(ref, key);
	t.stated = text && sscanf(text, "%lf %lf %lf", &t.rtol, &t.atol, &t.ulps) == 3;
	return t;
}

Tolerance tolerance_in(const char *precision, const WeftTensors *ref, const TensorKey *of,
		       const WeftTensor *reference)
{
	const WeftDType as = reference->dtype;
	if (!precision ||
	    (as.code != WEFT_FLOAT && as.code != WEFT_BFLOAT && as.code != WEFT_COMPLEX))
		return of ? tolerance_of(ref, of) : (Tolerance){.eager_err = -1};
	char key[64] = "";
	if (of && of->kind[0] == 'g')
		snprintf(key, sizeof key, "autocast_grad_err.%s", precision);
	else if (of)
		snprintf(key, sizeof key, "autocast_err.%s.%u", precision, (unsigned)of->k);
	const char *text = of ? weft_tensors_meta(ref, key) : NULL;
	if (text)
		return (Tolerance){.eager_err = strtod(text, NULL)};
	const double unit = strcmp(precision, "f16") ? 0x1p-7 : 0x1p-10;
	return (Tolerance){.eager_err = -1,
			   .stated = true,
			   .atol = 8 * unit * largest(reference, values_of(reference))};
}

/* Returns rtol and atol of one comparison; units in the last place come on top. */
static Tolerance chosen(const Tolerance *given, const WeftTensor *reference, WeftDType as)
{
	Tolerance t = *given;
	if (t.stated)
		return t;
	t.ulps = 0;
	tolerances(as, &t.rtol, &t.atol);
	if (t.eager_err >= 0 && as.code != WEFT_INT && as.code != WEFT_UINT &&
	    as.code != WEFT_BOOL) {
		t.rtol = 0;
		t.atol = 8 * t.eager_err + 1e-6 * largest(reference, values_of(reference));
	}
	return t;
}

Comparison compare_types(const WeftTensor *result, const WeftTensor *reference)
{
	Comparison c = {.ratio = -1};
	c.ok = same_type(result, reference, &c);
	return c;
}

static double share_of(double error, double allowed)
{
	return error == 0 ? 0 : allowed > 0 ? error / allowed : (double)INFINITY;
}

Comparison compare(const WeftTensor *result, const WeftTensor *reference, WeftDType as,
		   const Tolerance *given)
{
	Comparison c = {.ratio = -1};
	if (!same_type(result, reference, &c))
		return c;
	Tolerance t = chosen(given, reference, as);
	int64_t n = values_of(reference);
	double worst = -INFINITY;
	for (int64_t i = 0; i < n; i++) {
		double want = value_at(reference, i),
		       error = error_at(result, reference, i, t.ulps);
		double near = t.ulps > 0 ? past_largest(as, want) : want;
		double allowed = t.atol + (isfinite(want) ? t.rtol * fabs(want) : 0);
		if (t.ulps > 0 && isfinite(near))
			allowed += t.ulps * ulp_of(as, near);
		double excess = error - allowed, share = share_of(error, allowed);
		c.wrong += !(error <= allowed);
		if (excess > worst) {
			worst = excess;
			c.error = error;
			c.allowed = allowed;
			c.at = i;
		}
		if (share > c.share) {
			c.share = share;
			c.largest = error;
			c.largest_allowed = allowed;
		}
	}
	if (t.eager_err > 0)
		c.ratio = c.error / fmax(t.eager_err, ulp_of(as, largest(reference, n)) / 2);
	c.ok = c.wrong == 0;
	return c;
}

/* ---- results that are fixed up to phase ---- */

/* Vectors are columns (axis -2 runs along one) or rows. */
static const struct {
	const char *op;
	uint32_t output;
	bool rows;
} phase_free[] = {
	{"linalg.eig", 1, false}, {"linalg.eigh", 1, false}, {"linalg.svd", 0, false},
	{"linalg.svd", 2, true},  {"svd", 0, false},         {"svd", 2, false},
	{"linalg.qr", 0, false},  {"linalg.qr", 1, true},    {"qr", 0, false},
	{"qr", 1, true},
};

/* Fixes the phase of v[0], v[step], ...: n values of w doubles (1 real, 2 complex). */
static void fix_phase(double *v, int64_t n, int64_t step, int w)
{
	int64_t top = 0;
	double most = -1, re = 1, im = 0;
	for (int64_t i = 0; i < n; i++) {
		double a = hypot(v[i * step * w], w == 2 ? v[i * step * w + 1] : 0);
		if (a > most * 1.0001)
			most = a, top = i;
	}
	if (most > 0) {
		re = v[top * step * w] / most;
		im = w == 2 ? -v[top * step * w + 1] / most : 0;
	}
	for (int64_t i = 0; i < n; i++) {
		double *p = v + i * step * w, x = p[0], y = w == 2 ? p[1] : 0;
		p[0] = x * re - y * im;
		if (w == 2)
			p[1] = x * im + y * re;
	}
}

/* Returns the entry of phase_free for output k of the operator, whose vectors t holds; -1 if
 * there is none. */
static int phase_entry(const char *op, uint32_t k, const WeftTensor *t)
{
	const int count = sizeof phase_free / sizeof *phase_free;
	for (int e = 0; e < count && t->ndim >= 2; e++)
		if (!strcmp(phase_free[e].op, op) && phase_free[e].output == k)
			return e;
	return -1;
}

/* Vector i of matrix m: element j is number at + j * step of the batch's values. */
typedef struct {
	int64_t matrices, vectors, elements, step;
	bool rows;
} Vectors;

static Vectors vectors_of(int e, const WeftTensor *t)
{
	const int64_t rows = t->shape[t->ndim - 2], cols = t->shape[t->ndim - 1];
	const bool along = phase_free[e].rows;
	return (Vectors){rows && cols ? numel_of(t) / rows / cols : 0, along ? rows : cols,
			 along ? cols : rows, along ? 1 : cols, along};
}

static int64_t vector_at(const Vectors *v, int64_t m, int64_t i)
{
	return m * v->vectors * v->elements + (v->rows ? i * v->elements : i);
}

static int parts_of(const WeftTensor *t)
{
	return t->dtype.code == WEFT_COMPLEX ? 2 : 1;
}

bool normalise_phase(const char *op, uint32_t k, const WeftTensor *t, WeftTensor *out)
{
	const int e = phase_entry(op, k, t), w = parts_of(t);
	const int64_t n = values_of(t);
	double *x = e < 0 ? NULL : calloc((size_t)n + 1, sizeof *x);
	if (!x)
		return false;
	for (int64_t i = 0; i < n; i++)
		x[i] = value_at(t, i);
	const Vectors v = vectors_of(e, t);
	for (int64_t m = 0; m < v.matrices; m++)
		for (int64_t i = 0; i < v.vectors; i++)
			fix_phase(x + vector_at(&v, m, i) * w, v.elements, v.step, w);
	*out = *t;
	out->dtype = (WeftDType){w == 2 ? WEFT_COMPLEX : WEFT_FLOAT, (uint8_t)(64 * w), 1};
	out->data = x;
	out->byte_offset = 0;
	return true;
}

/* Multiplies z by the phase of the inner product of y and x, of n elements `step` apart from
 * `at` on. */
static void turn_vector(const WeftTensor *x, const WeftTensor *y, double *z, int64_t at, int64_t n,
			int64_t step)
{
	const int w = parts_of(x);
	double re = 0, im = 0;
	for (int64_t i = 0; i < n; i++) {
		const int64_t k = (at + i * step) * w;
		const double xr = value_at(x, k), xi = w == 2 ? value_at(x, k + 1) : 0,
			     yr = value_at(y, k), yi = w == 2 ? value_at(y, k + 1) : 0;
		re += yr * xr + yi * xi;
		im += yr * xi - yi * xr;
	}
	const double size = hypot(re, im);
	for (int64_t i = 0; size > 0 && i < n; i++) {
		double *p = z + (at + i * step) * w;
		const double zr = p[0], zi = w == 2 ? p[1] : 0;
		p[0] = (zr * re - zi * im) / size;
		if (w == 2)
			p[1] = (zr * im + zi * re) / size;
	}
}

bool turn_phase(const char *op, uint32_t k, const WeftTensor *x, const WeftTensor *y, WeftTensor *z)
{
	const int e = phase_entry(op, k, x);
	const int64_t n = values_of(z);
	if (e < 0 || values_of(x) != n || values_of(y) != n || parts_of(x) != parts_of(z) ||
	    parts_of(y) != parts_of(z))
		return false;
	double *turned = calloc((size_t)n + 1, sizeof *turned);
	void *data = calloc((size_t)n + 1, sizeof *turned);
	for (int64_t i = 0; turned && i < n; i++)
		turned[i] = value_at(z, i);
	const Vectors v = vectors_of(e, x);
	for (int64_t m = 0; turned && m < v.matrices; m++)
		for (int64_t i = 0; i < v.vectors; i++)
			turn_vector(x, y, turned, vector_at(&v, m, i), v.elements, v.step);
	const bool wide = z->dtype.bits == 64 * parts_of(z);
	for (int64_t i = 0; turned && data && i < n; i++)
		if (wide)
			((double *)data)[i] = turned[i];
		else
			((float *)data)[i] = (float)turned[i];
	const bool ok = turned && data;
	free(turned);
	if (!ok) {
		free(data);
		return false;
	}
	z->data = data;
	z->byte_offset = 0;
	z->strides = NULL;
	return true;
}
