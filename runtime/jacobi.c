/* Eigenvalues of Hermitian matrices and singular values by Jacobi's method, in double precision:
 * rotations of two rows and columns (or of two columns) until what they make 0 is small. Small
 * matrices are computed LANES at a time, their elements beside each other, so that loops over the
 * lanes are vectors; larger ones, for which LAPACK is faster, one at a time where there is no
 * library. The result of a matrix depends on that matrix alone.
 *
 * With p < q, e = a[p][q] / |a[p][q]| and a real rotation by the cosine c and the sine s:
 *
 *   column p <- c * column p - s * conj(e) * column q
 *   column q <- s * column p + c * conj(e) * column q        rows as their conjugates
 */
#include "lapack.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LANES = WEFT_JACOBI_LANES, MOST_SWEEPS = 64 };

/* Matrices in lanes: element i of column j of lane l is re[(j * rows + i) * lanes + l]; im is NULL
 * of real ones. */
typedef struct {
	double *re, *im;
	int64_t rows, columns;
} Planes;

/* The rotations of all lanes: cosines, sines, e. */
typedef struct {
	double c[LANES], s[LANES], re[LANES], im[LANES];
} Rotation;

#define INLINE static inline __attribute__((always_inline))

/* x and y: n elements that lie `step` apart. sign: -1 where conj(e) stands, 1 where e does. */
INLINE void rotate(int lanes, Planes a, int64_t x, int64_t y, int64_t n, int64_t step,
		   const Rotation *r, double sign)
{
	double *restrict xr = a.re + x * lanes, *restrict yr = a.re + y * lanes;
	double *restrict xi = a.im ? a.im + x * lanes : NULL, *restrict yi = a.im ? a.im + y * lanes
										  : NULL;
	for (int64_t i = 0; i < n * step; i += step) {
		if (!xi) {
			for (int l = 0; l < lanes; l++) {
				const double p = xr[i * lanes + l],
					     q = yr[i * lanes + l] * r->re[l];
				xr[i * lanes + l] = r->c[l] * p - r->s[l] * q;
				yr[i * lanes + l] = r->s[l] * p + r->c[l] * q;
			}
			continue;
		}
		for (int l = 0; l < lanes; l++) {
			const int64_t k = i * lanes + l;
			const double er = r->re[l], ei = sign * r->im[l], p = xr[k], pi = xi[k];
			const double q = yr[k] * er - yi[k] * ei, qi = yr[k] * ei + yi[k] * er;
			xr[k] = r->c[l] * p - r->s[l] * q;
			xi[k] = r->c[l] * pi - r->s[l] * qi;
			yr[k] = r->s[l] * p + r->c[l] * q;
			yi[k] = r->s[l] * pi + r->c[l] * qi;
		}
	}
}

/* The rotation that makes g = re + i im zero beside the diagonal x, y; none where |g| is at most
 * `least`. Returns whether there is one. */
INLINE int rotation_of(Rotation *r, int l, double x, double y, double re, double im, double least)
{
	const double size = im == 0 ? fabs(re) : sqrt(re * re + im * im);
	r->c[l] = r->re[l] = 1;
	r->s[l] = r->im[l] = 0;
	if (!(size > least))
		return 0;
	const double tau = (y - x) / (2 * size),
		     t = (tau < 0 ? -1 : 1) / (fabs(tau) + sqrt(1 + tau * tau));
	r->c[l] = 1 / sqrt(1 + t * t);
	r->s[l] = t * r->c[l];
	r->re[l] = re / size;
	r->im[l] = im / size;
	return 1;
}

static void identity(int lanes, Planes v)
{
	const size_t bytes = (size_t)(v.rows * v.columns * lanes) * sizeof *v.re;
	memset(v.re, 0, bytes);
	if (v.im)
		memset(v.im, 0, bytes);
	for (int64_t j = 0; j < v.columns; j++)
		for (int l = 0; l < lanes; l++)
			v.re[(j * v.rows + j) * lanes + l] = 1;
}

/* ---- Hermitian matrices ---- */

/* The sum of squares of lane l. */
INLINE double squares(int lanes, Planes a, int l)
{
	double sum = 0;
	for (int64_t k = l; k < a.rows * a.columns * lanes; k += lanes)
		sum += a.re[k] * a.re[k] + (a.im ? a.im[k] * a.im[k] : 0);
	return sum;
}

/* a becomes diagonal, v the vectors, unless v.re is NULL. Returns whether the rotations ended. */
INLINE int diagonalise(int lanes, Planes a, Planes v)
{
	const int64_t n = a.rows;
	double least[LANES];
	for (int l = 0; l < lanes; l++) {
		const double sum = squares(lanes, a, l);
		least[l] = sqrt(sum) * DBL_EPSILON / 8 / (double)n;
		if (!(sum <= DBL_MAX))
			return 0;
	}
	for (int sweep = 0, any = 1; any; sweep++) {
		if (sweep == MOST_SWEEPS)
			return 0;
		any = 0;
		for (int64_t p = 0; p < n - 1; p++)
			for (int64_t q = p + 1; q < n; q++) {
				Rotation r;
				int some = 0;
				for (int l = 0; l < lanes; l++) {
					const int64_t g = (q * n + p) * lanes + l;
					some |= rotation_of(&r, l, a.re[(p * n + p) * lanes + l],
							    a.re[(q * n + q) * lanes + l], a.re[g],
							    a.im ? a.im[g] : 0, least[l]);
				}
				if (!some)
					continue;
				any = 1;
				rotate(lanes, a, p * n, q * n, n, 1, &r, -1);
				rotate(lanes, a, p, q, n, n, &r, 1);
				if (v.re)
					rotate(lanes, v, p * n, q * n, n, 1, &r, -1);
			}
	}
	return 1;
}

/* ---- singular values ---- */

/* The columns of a become orthogonal, v the rotations. Returns whether they ended. What is left of
 * columns that are combinations of others is rounding, which no rotation ends: it counts as 0. */
INLINE int orthogonalise(int lanes, Planes a, Planes v)
{
	const int64_t m = a.rows, n = a.columns;
	double zero[LANES];
	for (int l = 0; l < lanes; l++) {
		const double sum = squares(lanes, a, l);
		zero[l] = sum * DBL_EPSILON * DBL_EPSILON * (double)m;
		if (!(sum <= DBL_MAX))
			return 0;
	}
	for (int sweep = 0, any = 1; any; sweep++) {
		if (sweep == MOST_SWEEPS)
			return 0;
		any = 0;
		for (int64_t p = 0; p < n - 1; p++)
			for (int64_t q = p + 1; q < n; q++) {
				double x[LANES] = {0}, y[LANES] = {0}, re[LANES] = {0},
				       im[LANES] = {0};
				Rotation r;
				int some = 0;
				for (int64_t i = 0; i < m; i++)
					for (int l = 0; l < lanes; l++) {
						const int64_t kp = (p * m + i) * lanes + l,
							      kq = (q * m + i) * lanes + l;
						const double pr = a.re[kp], qr = a.re[kq],
							     pi = a.im ? a.im[kp] : 0,
							     qi = a.im ? a.im[kq] : 0;
						x[l] += pr * pr + pi * pi;
						y[l] += qr * qr + qi * qi;
						re[l] += pr * qr + pi * qi;
						im[l] += pr * qi - pi * qr;
					}
				for (int l = 0; l < lanes; l++) {
					const double least = DBL_EPSILON * sqrt(x[l]) * sqrt(y[l]) *
							     sqrt((double)m);
					some |= rotation_of(&r, l, x[l], y[l], re[l], im[l],
							    least > zero[l] ? least : zero[l]);
				}
				if (!some)
					continue;
				any = 1;
				rotate(lanes, a, p * m, q * m, m, 1, &r, -1);
				if (v.re)
					rotate(lanes, v, p * n, q * n, n, 1, &r, -1);
			}
	}
	return 1;
}

/* ---- in numbers of the caller ---- */

static double get(const WeftJacobi *j, const void *from, int64_t k)
{
	return j->real == 8 ? ((const double *)from)[k] : (double)((const float *)from)[k];
}

static void put(const WeftJacobi *j, void *to, int64_t k, double v)
{
	if (j->real == 8)
		((double *)to)[k] = v;
	else
		((float *)to)[k] = (float)v;
}

/* Returns the matrix of lane l; `step` numbers lie between the matrices of two lanes. */
static void *member(const WeftJacobi *j, const void *a, int64_t step, int l)
{
	return (char *)(uintptr_t)a + (size_t)(step * l) * j->real;
}

static Planes planes(const WeftJacobi *j, int lanes, double **room, int64_t rows, int64_t columns)
{
	Planes a = {*room, NULL, rows, columns};
	*room += rows * columns * lanes;
	if (j->pairs) {
		a.im = *room;
		*room += rows * columns * lanes;
	}
	return a;
}

/* Returns a number to multiply by, so that squares neither overflow nor vanish; finite, too, of
 * numbers whose reciprocals are not. */
static double scale_of(const WeftJacobi *j, const void *from, int64_t numbers)
{
	double most = 0;
	for (int64_t k = 0; k < numbers * (j->pairs ? 2 : 1); k++) {
		const double x = fabs(get(j, from, k));
		most = x > most ? x : most;
	}
	if (most > 1e100 || (most < 1e-100 && most > 0))
		return most < 0x1p-1000 ? 0x1p1000 : 1 / most;
	return 1;
}

/* Reads one triangle of a Hermitian matrix. Returns the scale of what a is then. */
static double load_hermitian(const WeftJacobi *j, int lanes, const void *from, int l, Planes a)
{
	const int64_t n = a.rows, w = j->pairs ? 2 : 1;
	const double scale = scale_of(j, from, n * n);
	for (int64_t c = 0; c < n; c++)
		for (int64_t i = 0; i < n; i++) {
			const int turned = j->upper ? i > c : i < c;
			const int64_t k = (turned ? i * n + c : c * n + i) * w,
				      at = (c * n + i) * lanes + l;
			a.re[at] = get(j, from, k) * scale;
			if (a.im)
				a.im[at] = i == c ? 0
						  : (turned ? -scale : scale) * get(j, from, k + 1);
		}
	return scale;
}

/* Where vectors go: element i of vector c is number c * apart + i * step, conjugated if sign is
 * -1. */
typedef struct {
	void *to;
	int64_t apart, step;
	double sign;
} Target;

static void put_at(const WeftJacobi *j, const Target *t, int64_t c, int64_t i, double re, double im)
{
	const int64_t k = c * t->apart + i * t->step;
	put(j, t->to, j->pairs ? 2 * k : k, re);
	if (j->pairs)
		put(j, t->to, 2 * k + 1, t->sign * im);
}

static void get_at(const WeftJacobi *j, const Target *t, int64_t c, int64_t i, double *re,
		   double *im)
{
	const int64_t k = c * t->apart + i * t->step;
	*re = get(j, t->to, j->pairs ? 2 * k : k);
	*im = j->pairs ? t->sign * get(j, t->to, 2 * k + 1) : 0;
}

/* Stores column `column` of lane l as vector c. */
static void store_column(const WeftJacobi *j, int lanes, Planes a, int64_t column, int l,
			 double scale, const Target *t, int64_t c)
{
	for (int64_t i = 0; i < a.rows; i++) {
		const int64_t k = (column * a.rows + i) * lanes + l;
		put_at(j, t, c, i, a.re[k] * scale, a.im ? a.im[k] * scale : 0);
	}
}

/* Sorts: sets order[k] to the index of the k-th value, ascending. */
static void sort(int64_t n, const double *value, int lanes, int64_t *order)
{
	for (int64_t k = 0; k < n; k++) {
		int64_t at = k;
		for (; at && value[order[at - 1] * lanes] > value[k * lanes]; at--)
			order[at] = order[at - 1];
		order[at] = k;
	}
}

/* Fills a lane that there is no matrix for. */
static void clear(int lanes, Planes a, int l)
{
	for (int64_t k = 0; k < a.rows * a.columns; k++) {
		a.re[k * lanes + l] = 0;
		if (a.im)
			a.im[k * lanes + l] = 0;
	}
}

INLINE int eigh_lanes(const WeftJacobi *j, int lanes, int count, const void *a, void *w, void *v)
{
	const int64_t n = j->n, square = n * n * (j->pairs ? 2 : 1);
	double *room = j->work, scale[LANES] = {0};
	Planes x = planes(j, lanes, &room, n, n), y = {0};
	double *value = room;
	int64_t *order = (int64_t *)(void *)(room += n * lanes);
	room += n;
	if (v) {
		y = planes(j, lanes, &room, n, n);
		identity(lanes, y);
	}
	for (int l = 0; l < lanes; l++)
		if (l < count)
			scale[l] = load_hermitian(j, lanes, member(j, a, square, l), l, x);
		else
			clear(lanes, x, l);
	if (!diagonalise(lanes, x, y))
		return 1;
	for (int l = 0; l < count; l++) {
		for (int64_t k = 0; k < n; k++)
			value[k * lanes + l] = x.re[(k * n + k) * lanes + l];
		sort(n, value + l, lanes, order);
		for (int64_t k = 0; k < n; k++) {
			const Target to = {v ? member(j, v, square, l) : NULL, n, 1, 1};
			put(j, member(j, w, n, l), k, value[order[k] * lanes + l] / scale[l]);
			if (v)
				store_column(j, lanes, y, order[k], l, 1, &to, k);
		}
	}
	return 0;
}

/* Makes vector c orthogonal to those before it, which have length 1: of the unit vectors the one
 * that they span least, less what they span of it. */
static void complete(const WeftJacobi *j, const Target *t, int64_t n, int64_t c, double *room)
{
	double best = -1, sum = 0, re, im;
	int64_t axis = 0;
	for (int64_t i = 0; i < n; i++) {
		double left = 1;
		for (int64_t k = 0; k < c; k++) {
			get_at(j, t, k, i, &re, &im);
			left -= re * re + im * im;
		}
		if (left > best + 1e-3)
			best = left, axis = i;
	}
	memset(room, 0, (size_t)(2 * n) * sizeof *room);
	room[2 * axis] = 1;
	for (int64_t k = 0; k < 2 * c; k++) { /* twice: the first time leaves rounding */
		double dot = 0, turn = 0;
		for (int64_t i = 0; i < n; i++) {
			get_at(j, t, k % c, i, &re, &im);
			dot += re * room[2 * i] + im * room[2 * i + 1];
			turn += re * room[2 * i + 1] - im * room[2 * i];
		}
		for (int64_t i = 0; i < n; i++) {
			get_at(j, t, k % c, i, &re, &im);
			room[2 * i] -= re * dot - im * turn;
			room[2 * i + 1] -= re * turn + im * dot;
		}
	}
	for (int64_t i = 0; i < 2 * n; i++)
		sum += room[i] * room[i];
	for (int64_t i = 0; i < n; i++)
		put_at(j, t, c, i, room[2 * i] / sqrt(sum), room[2 * i + 1] / sqrt(sum));
}

/* Of a matrix with more columns than rows the adjoint is decomposed: A^H = U S V^H is A = V S
 * U^H. */
INLINE int svd_lanes(const WeftJacobi *j, int lanes, int count, const void *a, void *s, void *u,
		     void *vt)
{
	const int64_t m = j->m, n = j->n, wide = m < n, rows = wide ? n : m, columns = wide ? m : n,
		      w = j->pairs ? 2 : 1;
	const int64_t tall = wide ? j->rows : j->columns; /* the vectors of the longer side that are
	                                                     wanted */
	double *room = j->work, scale[LANES];
	Planes x = planes(j, lanes, &room, rows, columns), y = {0};
	double *value = room;
	int64_t *order = (int64_t *)(void *)(room += columns * lanes);
	room += columns;
	if (u) {
		y = planes(j, lanes, &room, columns, columns);
		identity(lanes, y);
	}
	for (int l = 0; l < lanes; l++) {
		const void *from = member(j, a, m * n * w, l);
		clear(lanes, x, l);
		scale[l] = l < count ? scale_of(j, from, m * n) : 1;
		for (int64_t c = 0; c < columns && l < count; c++)
			for (int64_t i = 0; i < rows; i++) {
				const int64_t k = (wide ? i * m + c : c * m + i) * w,
					      at = (c * rows + i) * lanes + l;
				x.re[at] = get(j, from, k) * scale[l];
				if (x.im)
					x.im[at] =
						(wide ? -scale[l] : scale[l]) * get(j, from, k + 1);
			}
	}
	if (!orthogonalise(lanes, x, y))
		return 1;
	for (int l = 0; l < count; l++) {
		double most = 0;
		for (int64_t c = 0; c < columns; c++) {
			double sum = 0;
			for (int64_t i = 0; i < rows; i++) {
				const int64_t k = (c * rows + i) * lanes + l;
				sum += x.re[k] * x.re[k] + (x.im ? x.im[k] * x.im[k] : 0);
			}
			value[c * lanes + l] = -sqrt(sum); /* the greatest comes first */
			most = sqrt(sum) > most ? sqrt(sum) : most;
		}
		sort(columns, value + l, lanes, order);
		/* the vectors of the longer side, and those of the shorter one */
		Target left = {NULL, rows, 1, 1}, right = {NULL, 1, columns, -1};
		if (u && wide) {
			left = (Target){member(j, vt, rows * tall * w, l), 1, tall, -1};
			right = (Target){member(j, u, columns * columns * w, l), columns, 1, 1};
		} else if (u) {
			left.to = member(j, u, rows * tall * w, l);
			right.to = member(j, vt, columns * columns * w, l);
		}
		for (int64_t k = 0; k < columns; k++) {
			const double size = -value[order[k] * lanes + l];
			put(j, member(j, s, columns, l), k, size / scale[l]);
			if (!u)
				continue;
			if (size > most * DBL_EPSILON * (double)rows)
				store_column(j, lanes, x, order[k], l, 1 / size, &left, k);
			else
				complete(j, &left, rows, k, room);
			store_column(j, lanes, y, order[k], l, 1, &right, k);
		}
		for (int64_t k = columns; u && k < tall; k++)
			complete(j, &left, rows, k, room);
	}
	return 0;
}

/* ---- the functions ---- */

int weft_jacobi_eigh(const WeftJacobi *j, int count, const void *a, void *w, void *v)
{
	return count > 1 ? eigh_lanes(j, LANES, count, a, w, v) : eigh_lanes(j, 1, count, a, w, v);
}

int weft_jacobi_svd(const WeftJacobi *j, int count, const void *a, void *s, void *u, void *vt)
{
	return count > 1 ? svd_lanes(j, LANES, count, a, s, u, vt)
			 : svd_lanes(j, 1, count, a, s, u, vt);
}
