/* The door to LAPACK (lapack.h). Its functions have names with an underscore at the end, integers
 * of 32 bits, arguments by address, and the lengths of texts as hidden arguments at the end
 * (gfortran since version 7). Linkers leave this file out of models that do not call it.
 *
 * Threads. The reference library may be called from several threads at the same time. OpenBLAS and
 * MKL have threads of their own: calls wait for each other then. The number of their threads is the
 * program's to choose. */
#include "lapack.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef WEFT_SERIAL
#else
#include <dlfcn.h>
#include <pthread.h>
#endif

#include "runtime.h"

/* ---- the library ---- */

/* By type: real of 32 and 64 bits, complex of twice 32 and 64. */
enum { REAL_32, REAL_64, PAIR_32, PAIR_64, TYPES };

/* The functions: eigenvalues of symmetric and of other matrices, singular values, factors of
 * symmetric and of Hermitian matrices, and systems by these factors. */
enum { EIGH, EIG, SVD, SYTRF, HETRF, SYTRS, HETRS, FUNCTIONS };

typedef void (*Fortran)(void);

#ifdef WEFT_SERIAL

#define DECLARE(name) extern void name(void);
#define ALL(name) DECLARE(s##name) DECLARE(d##name) DECLARE(c##name) DECLARE(z##name)
DECLARE(ssyevd_) DECLARE(dsyevd_) DECLARE(cheevd_) DECLARE(zheevd_)
ALL(geev_) ALL(gesdd_) ALL(sytrf_) ALL(sytrs_)
DECLARE(chetrf_) DECLARE(zhetrf_) DECLARE(chetrs_) DECLARE(zhetrs_)

static Fortran const table[FUNCTIONS][TYPES] = {
	{ssyevd_, dsyevd_, cheevd_, zheevd_}, {sgeev_, dgeev_, cgeev_, zgeev_},
	{sgesdd_, dgesdd_, cgesdd_, zgesdd_}, {ssytrf_, dsytrf_, csytrf_, zsytrf_},
	{ssytrf_, dsytrf_, chetrf_, zhetrf_}, {ssytrs_, dsytrs_, csytrs_, zsytrs_},
	{ssytrs_, dsytrs_, chetrs_, zhetrs_}};

int weft_lapack_load(WeftStatus *status)
{
	(void)status;
	return WEFT_OK;
}

static int begin(void) { return 0; }
static void end(int locked) { (void)locked; }

#else

#ifndef WEFT_LAPACK_LIBRARIES
#define WEFT_LAPACK_LIBRARIES "liblapack.so.3", "libopenblas.so.0"
#endif

static Fortran table[FUNCTIONS][TYPES];
static int loaded, has_threads;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int find_functions(void *library)
{
	static const char *const stem[FUNCTIONS] = {"syevd_", "geev_",  "gesdd_", "sytrf_",
						    "sytrf_", "sytrs_", "sytrs_"};
	for (int f = 0; f < FUNCTIONS; f++)
		for (int t = 0; t < TYPES; t++) {
			char name[16];
			int hermitian = t >= PAIR_32 && (f == EIGH || f == HETRF || f == HETRS);
			snprintf(name, sizeof name, "%c%s%s", "sdcz"[t], hermitian ? "he" : "",
				 stem[f] + (hermitian ? 2 : 0));
			*(void **)&table[f][t] = dlsym(library, name);
			if (!table[f][t])
				return 0;
		}
	return 1;
}

static void load(void)
{
	static const char *const name[] = {WEFT_LAPACK_LIBRARIES};
	static const char *const threaded[] = {"openblas_get_config", "MKL_Get_Version",
					       "mkl_get_version", "bli_thread_set_num_threads"};
	for (size_t k = 0; k < sizeof name / sizeof *name && !loaded; k++) {
		void *library = dlopen(name[k], RTLD_NOW | RTLD_LOCAL);
		loaded = library && find_functions(library);
		for (size_t i = 0; loaded && i < sizeof threaded / sizeof *threaded; i++)
			has_threads |= dlsym(library, threaded[i]) != NULL;
	}
}

int weft_lapack_load(WeftStatus *status)
{
	pthread_once(&once, load);
	return loaded ? WEFT_OK
		      : weft_fail(status, WEFT_ERR_FILE,
				  "LAPACK is needed, but this machine has no liblapack.so.3: "
				  "install Debian's package "
				  "liblapack3 or libopenblas0");
}

static int begin(void)
{
	if (has_threads)
		pthread_mutex_lock(&lock);
	return has_threads;
}

static void end(int locked)
{
	if (locked)
		pthread_mutex_unlock(&lock);
}

int weft_rt_open_lapack(const WeftModel *m, const WeftOpen *o, WeftInstance **out,
			WeftStatus *status)
{
	if (out)
		*out = NULL;
	int code = weft_lapack_load(status);
	return code == WEFT_OK ? weft_rt_open(m, o, out, status) : code;
}

#endif

/* ---- a call ---- */

/* What a call computes: matrices first .. last - 1, of the type. */
typedef struct {
	const WeftTensor *in, *out;
	int64_t first, last;
	int64_t flag;
	int type, batched;
	size_t real, number; /* bytes */
	char *work, *end;
	WeftStatus *status;
} Call;

static int64_t integer(const WeftTensor *t)
{
	return *(const int64_t *)t->data;
}

/* Returns a call for these operands, of which ntensor are tensors, with its part of the matrices
 * and of the workspace. */
static Call call_of(const WeftTensor *in, uint32_t ntensor, const WeftTensor *out, void *work,
		    uint64_t bytes, int has_flag, WeftStatus *status)
{
	Call c;
	const WeftTensor *with = in + ntensor;
	const int64_t part = integer(&with[0]), parts = integer(&with[1]),
		      count = integer(&with[2]), pairs = integer(&with[3]);
	memset(&c, 0, sizeof c);
	c.in = in;
	c.out = out;
	c.first = count * part / parts;
	c.last = count * (part + 1) / parts;
	c.flag = has_flag ? integer(&with[4]) : 0;
	c.type = (in->dtype.bits == 64) + (pairs ? PAIR_32 : REAL_32);
	c.batched = in->ndim > 2 + pairs;
	c.real = in->dtype.bits / 8u;
	c.number = c.real * (pairs ? 2 : 1);
	c.status = status;
	const uint64_t each = bytes / (uint64_t)parts / 64 * 64;
	c.work = work ? (char *)work + (uint64_t)part * each : NULL;
	c.end = c.work ? c.work + each : NULL;
	return c;
}

/* Returns dimension k from the end of tensor t, without pairs. */
static int64_t extent(const Call *c, const WeftTensor *t, int32_t k)
{
	return t->shape[t->ndim - k - (c->type >= PAIR_32)];
}

static void *take(Call *c, size_t bytes)
{
	char *p = c->work;
	c->work += (bytes + 15) / 16 * 16;
	return p;
}

/* Returns what is left of the workspace, in numbers. */
static int32_t rest(const Call *c)
{
	const size_t n = (size_t)(c->end - c->work) / c->number;
	return n > INT32_MAX ? INT32_MAX : (int32_t)n;
}

__attribute__((format(printf, 3, 4))) static int failed(const Call *c, int64_t matrix,
							const char *fmt, ...)
{
	char batch[48] = "", text[300];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (c->batched && matrix >= 0)
		snprintf(batch, sizeof batch, "(Batch element %lld): ", (long long)matrix);
	snprintf(c->status->message, sizeof c->status->message, "%s%s", batch, text);
	return c->status->code = WEFT_ERR_CHECK;
}

static int is_long(const Call *c, int64_t m, int64_t n)
{
	return m > INT32_MAX || n > INT32_MAX
		       ? failed(c, -1, "matrices of more than 2147483647 rows or columns")
		       : 0;
}

/* Loads the library; returns a failure where there is none. */
static int needs_library(const Call *c)
{
	return weft_lapack_load(c->status) == WEFT_OK ? 0 : 1;
}

static char *matrix(const WeftTensor *t, int64_t k, size_t bytes)
{
	return (char *)t->data + (size_t)k * bytes;
}

static double real_at(const void *p, size_t real, int64_t k)
{
	return real == 8 ? ((const double *)p)[k] : (double)((const float *)p)[k];
}

static void real_set(void *p, size_t real, int64_t k, double v)
{
	if (real == 8)
		((double *)p)[k] = v;
	else
		((float *)p)[k] = (float)v;
}

static int32_t at_least_1(int64_t n)
{
	return n > 1 ? (int32_t)n : 1;
}

#define NO_CONVERGENCE                                                                             \
	"The algorithm failed to converge because the input matrix is ill-conditioned or has too " \
	"many repeated "

/* Whether Jacobi's method computes a matrix: a small one, or there is no library. */
static int is_own(int64_t m, int64_t n)
{
	return (m <= WEFT_JACOBI_MOST && n <= WEFT_JACOBI_MOST) ||
	       weft_lapack_load(NULL) != WEFT_OK;
}

/* Returns how many of the matrices from k on are computed together. */
static int together(const Call *c, int64_t k, int64_t m, int64_t n)
{
	const int64_t left = c->last - k,
		      most = m <= WEFT_JACOBI_MOST && n <= WEFT_JACOBI_MOST ? WEFT_JACOBI_LANES : 1;
	return (int)(left < most ? left : most);
}

static WeftJacobi jacobi_of(const Call *c, int64_t m, int64_t n)
{
	WeftJacobi j = {.m = m,
			.n = n,
			.real = c->real,
			.pairs = c->type >= PAIR_32,
			.upper = c->flag != 0,
			.work = c->work};
	return j;
}

/* ---- symmetric and Hermitian eigenvalues ---- */

typedef void (*Syevd)(const char *jobz, const char *uplo, const int32_t *n, void *a,
		      const int32_t *lda, void *w, void *work, const int32_t *lwork, int32_t *iwork,
		      const int32_t *liwork, int32_t *info, size_t, size_t);
typedef void (*Heevd)(const char *jobz, const char *uplo, const int32_t *n, void *a,
		      const int32_t *lda, void *w, void *work, const int32_t *lwork, void *rwork,
		      const int32_t *lrwork, int32_t *iwork, const int32_t *liwork, int32_t *info,
		      size_t, size_t);

/* Computes the eigenvalues of one matrix a, which is overwritten: with the vectors, if they are
 * wanted. Returns what the library says. */
static int32_t eigh_one(Call c, int32_t n, int vectors, void *a, void *w)
{
	const char *jobz = vectors ? "V" : "N", *uplo = c.flag ? "U" : "L";
	const int32_t liwork = vectors ? 3 + 5 * n : 1,
		      lrwork = vectors ? 1 + 5 * n + 2 * n * n : n + 1;
	int32_t info = 0, *iwork = take(&c, 4 * (size_t)liwork);
	void *rwork = c.type >= PAIR_32 ? take(&c, c.real * (size_t)lrwork) : NULL;
	const int32_t lwork = rest(&c);
	if (c.type >= PAIR_32)
		((Heevd)table[EIGH][c.type])(jobz, uplo, &n, a, &n, w, c.work, &lwork, rwork,
					     &lrwork, iwork, &liwork, &info, 1, 1);
	else
		((Syevd)table[EIGH][c.type])(jobz, uplo, &n, a, &n, w, c.work, &lwork, iwork,
					     &liwork, &info, 1, 1);
	return info;
}

static int eigh_own(const Call *c, int64_t n, int vectors)
{
	const size_t bytes = (size_t)(n * n) * c->number, values = (size_t)n * c->real;
	const WeftJacobi j = jacobi_of(c, n, n);
	int again = 0; /* one by one: which of them is it? */
	for (int64_t k = c->first, count; k < c->last && n; k += count) {
		count = again ? 1 : together(c, k, n, n);
		if (!weft_jacobi_eigh(&j, (int)count, matrix(c->in, k, bytes),
				      matrix(&c->out[0], k, values),
				      vectors ? matrix(&c->out[1], k, bytes) : NULL))
			continue;
		if (count == 1)
			return failed(c, k, NO_CONVERGENCE "eigenvalues (error code: %d)", 1);
		again = 1;
		count = 0;
	}
	return 0;
}

static int eigh(Call c, int vectors)
{
	const int64_t n = extent(&c, c.in, 1);
	const size_t bytes = (size_t)(n * n) * c.number;
	int code = is_long(&c, n, n);
	if (!code && is_own(n, n))
		return eigh_own(&c, n, vectors);
	void *copy = vectors ? NULL : take(&c, bytes);
	for (int64_t k = c.first; k < c.last && !code; k++) {
		void *a = vectors ? matrix(&c.out[1], k, bytes) : copy;
		memcpy(a, matrix(c.in, k, bytes), bytes);
		int locked = begin();
		int32_t info = eigh_one(c, (int32_t)n, vectors, a,
					matrix(&c.out[0], k, (size_t)n * c.real));
		end(locked);
		if (info)
			code = failed(&c, k, NO_CONVERGENCE "eigenvalues (error code: %d)",
				      (int)info);
	}
	return code;
}

WEFT_LAPACK_FUNCTION(weft_lapack_eigh)
{
	(void)context;
	return eigh(call_of(in, 1, out, work, work_bytes, 1, status), 1);
}

WEFT_LAPACK_FUNCTION(weft_lapack_eigvalsh)
{
	(void)context;
	return eigh(call_of(in, 1, out, work, work_bytes, 1, status), 0);
}

/* ---- eigenvalues of other matrices ---- */

typedef void (*Geev)(const char *jobvl, const char *jobvr, const int32_t *n, void *a,
		     const int32_t *lda, void *wr, void *wi, void *vl, const int32_t *ldvl,
		     void *vr, const int32_t *ldvr, void *work, const int32_t *lwork, int32_t *info,
		     size_t, size_t);
typedef void (*GeevPairs)(const char *jobvl, const char *jobvr, const int32_t *n, void *a,
			  const int32_t *lda, void *w, void *vl, const int32_t *ldvl, void *vr,
			  const int32_t *ldvr, void *work, const int32_t *lwork, void *rwork,
			  int32_t *info, size_t, size_t);

/* Puts the vectors of a real matrix. It has eigenvalues in conjugate pairs, whose vectors are
 * columns k and k + 1: the real and the imaginary part of the first one's. */
static void put_vectors(const Call *c, int64_t n, const void *wi, const void *vr, void *v)
{
	for (int64_t k = 0; k < n; k++) {
		const double im = real_at(wi, c->real, k);
		const int64_t first = im < 0 ? k - 1 : k;
		for (int64_t i = 0; i < n; i++) {
			const double y = im != 0 ? real_at(vr, c->real, (first + 1) * n + i) : 0;
			real_set(v, c->real, 2 * (k * n + i), real_at(vr, c->real, first * n + i));
			real_set(v, c->real, 2 * (k * n + i) + 1, im < 0 ? -y : y);
		}
	}
}

static int32_t eig_real(Call c, int32_t n, const void *a, void *w, void *v)
{
	const size_t square = (size_t)n * (size_t)n * c.number;
	void *wr = take(&c, (size_t)n * c.real), *wi = take(&c, (size_t)n * c.real);
	void *copy = take(&c, square), *vr = take(&c, v ? square : 0);
	const int32_t lwork = rest(&c), one = 1;
	int32_t info = 0;
	memcpy(copy, a, square);
	((Geev)table[EIG][c.type])("N", v ? "V" : "N", &n, copy, &n, wr, wi, vr, &one, vr,
				   v ? &n : &one, c.work, &lwork, &info, 1, 1);
	for (int32_t k = 0; k < n; k++) {
		real_set(w, c.real, 2 * k, real_at(wr, c.real, k));
		real_set(w, c.real, 2 * k + 1, real_at(wi, c.real, k));
	}
	if (v)
		put_vectors(&c, n, wi, vr, v);
	return info;
}

static int32_t eig_pairs(Call c, int32_t n, const void *a, void *w, void *v)
{
	const size_t square = (size_t)n * (size_t)n * c.number;
	void *copy = take(&c, square), *rwork = take(&c, 2 * (size_t)n * c.real);
	const int32_t lwork = rest(&c), one = 1;
	int32_t info = 0;
	memcpy(copy, a, square);
	((GeevPairs)table[EIG][c.type])("N", v ? "V" : "N", &n, copy, &n, w, copy, &one,
					v ? v : copy, v ? &n : &one, c.work, &lwork, rwork, &info,
					1, 1);
	return info;
}

static int eig(Call c, int vectors)
{
	const int64_t n = extent(&c, c.in, 1);
	const size_t square = (size_t)(n * n);
	int code = is_long(&c, n, n);
	if (!code)
		code = needs_library(&c);
	for (int64_t k = c.first; k < c.last && n && !code; k++) {
		const void *a = matrix(c.in, k, square * c.number);
		void *w = matrix(&c.out[0], k, 2 * (size_t)n * c.real),
		     *v = vectors ? matrix(&c.out[1], k, 2 * square * c.real) : NULL;
		for (int64_t i = 0; i < n * n * (int64_t)(c.number / c.real) && !code; i++)
			if (real_at(a, c.real, i) - real_at(a, c.real, i) != 0)
				code = failed(&c, -1,
					      "input tensor should not contain infs or NaNs.");
		if (code)
			break;
		int locked = begin();
		int32_t info = (c.type >= PAIR_32 ? eig_pairs : eig_real)(c, (int32_t)n, a, w, v);
		end(locked);
		if (info)
			code = failed(&c, k, NO_CONVERGENCE "eigenvalues (error code: %d)",
				      (int)info);
	}
	return code;
}

WEFT_LAPACK_FUNCTION(weft_lapack_eig)
{
	(void)context;
	return eig(call_of(in, 1, out, work, work_bytes, 0, status), 1);
}

WEFT_LAPACK_FUNCTION(weft_lapack_eigvals)
{
	(void)context;
	return eig(call_of(in, 1, out, work, work_bytes, 0, status), 0);
}

/* ---- singular values ---- */

typedef void (*Gesdd)(const char *jobz, const int32_t *m, const int32_t *n, void *a,
		      const int32_t *lda, void *s, void *u, const int32_t *ldu, void *vt,
		      const int32_t *ldvt, void *work, const int32_t *lwork, int32_t *iwork,
		      int32_t *info, size_t);
typedef void (*GesddPairs)(const char *jobz, const int32_t *m, const int32_t *n, void *a,
			   const int32_t *lda, void *s, void *u, const int32_t *ldu, void *vt,
			   const int32_t *ldvt, void *work, const int32_t *lwork, void *rwork,
			   int32_t *iwork, int32_t *info, size_t);

typedef struct {
	int32_t m, n, columns, rows; /* columns of U, rows of V^H */
	int vectors;
} SvdShape;

/* Computes the singular values of one matrix a, which is overwritten, and the vectors, if they are
 * wanted. Returns what the library says. */
static int32_t svd_one(Call c, const SvdShape *d, void *a, void *s, void *u, void *vt)
{
	const int64_t m = d->m, n = d->n, k = m < n ? m : n, most = m > n ? m : n;
	const int full = d->columns > k || d->rows > k;
	const char *jobz = !d->vectors ? "N" : full ? "A" : "S";
	const int32_t lda = at_least_1(m), ldu = lda, ldvt = at_least_1(d->rows), one = 1;
	int32_t info = 0, *iwork = take(&c, 4 * (size_t)(8 * k));
	const int64_t with = 5 * k * k + 5 * k, other = 2 * most * k + 2 * k * k + k,
		      lrwork = !d->vectors    ? 7 * k
			       : with > other ? with
					      : other;
	void *rwork = c.type >= PAIR_32 ? take(&c, (size_t)lrwork * c.real) : NULL;
	const int32_t lwork = rest(&c);
	if (!d->vectors)
		u = vt = c.work;
	if (c.type >= PAIR_32)
		((GesddPairs)table[SVD][c.type])(
			jobz, &d->m, &d->n, a, &lda, s, u, d->vectors ? &ldu : &one, vt,
			d->vectors ? &ldvt : &one, c.work, &lwork, rwork, iwork, &info, 1);
	else
		((Gesdd)table[SVD][c.type])(jobz, &d->m, &d->n, a, &lda, s, u,
					    d->vectors ? &ldu : &one, vt, d->vectors ? &ldvt : &one,
					    c.work, &lwork, iwork, &info, 1);
	return info;
}

/* Puts the identity: a square result beside a matrix without rows or columns. */
static void put_identity(const Call *c, void *a, int64_t n)
{
	memset(a, 0, (size_t)(n * n) * c->number);
	for (int64_t k = 0; k < n; k++)
		real_set(a, c->real, (n + 1) * k * (int64_t)(c->number / c->real), 1);
}

/* Says what PyTorch says of matrix k, which LAPACK could not compute with the error
 * `info`. */
static int svd_failed(const Call *c, int64_t k, size_t bytes, int32_t info)
{
	const char *x = matrix(c->in, k, bytes);
	for (size_t i = 0; i < bytes / c->real; i++)
		if (!isfinite(real_at(x, c->real, (int64_t)i)))
			return failed(c, k,
				      "The algorithm failed to converge because the input matrix "
				      "contained non-finite values.");
	return failed(c, k, NO_CONVERGENCE "singular values (error code: %d)", (int)info);
}

static int svd_own(const Call *c, const SvdShape *d)
{
	const int64_t m = d->m, n = d->n, least = m < n ? m : n;
	const size_t bytes = (size_t)(m * n) * c->number,
		     left = (size_t)(m * d->columns) * c->number,
		     right = (size_t)(n * d->rows) * c->number;
	WeftJacobi j = jacobi_of(c, m, n);
	int again = 0;
	j.columns = d->columns;
	j.rows = d->rows;
	for (int64_t k = c->first, count; k < c->last; k += count) {
		count = again ? 1 : together(c, k, m, n);
		if (!weft_jacobi_svd(&j, (int)count, matrix(c->in, k, bytes),
				     matrix(&c->out[0], k, (size_t)least * c->real),
				     d->vectors ? matrix(&c->out[1], k, left) : NULL,
				     d->vectors ? matrix(&c->out[2], k, right) : NULL))
			continue;
		if (count == 1)
			return svd_failed(c, k, bytes, 1);
		again = 1;
		count = 0;
	}
	return 0;
}

static int svd(Call c, int vectors)
{
	const int64_t m = extent(&c, c.in, 1), n = extent(&c, c.in, 2), least = m < n ? m : n;
	const size_t bytes = (size_t)(m * n) * c.number;
	int code = is_long(&c, m, n);
	SvdShape d = {(int32_t)m, (int32_t)n, 0, 0, vectors};
	if (!code && vectors) {
		d.columns = (int32_t)extent(&c, &c.out[1], 2);
		d.rows = (int32_t)extent(&c, &c.out[2], 1);
	}
	if (!code && least && is_own(m, n))
		return svd_own(&c, &d);
	void *copy = take(&c, bytes);
	for (int64_t k = c.first; k < c.last && !code; k++) {
		void *u = vectors ? matrix(&c.out[1], k, (size_t)m * (size_t)d.columns * c.number)
				  : NULL;
		void *vt = vectors ? matrix(&c.out[2], k, (size_t)n * (size_t)d.rows * c.number)
				   : NULL;
		if (!least) {
			if (vectors && d.columns == m)
				put_identity(&c, u, m);
			if (vectors && d.rows == n)
				put_identity(&c, vt, n);
			continue;
		}
		memcpy(copy, matrix(c.in, k, bytes), bytes);
		int locked = begin();
		int32_t info =
			svd_one(c, &d, copy, matrix(&c.out[0], k, (size_t)least * c.real), u, vt);
		end(locked);
		if (info)
			code = svd_failed(&c, k, bytes, info);
	}
	return code;
}

WEFT_LAPACK_FUNCTION(weft_lapack_svd)
{
	(void)context;
	return svd(call_of(in, 1, out, work, work_bytes, 0, status), 1);
}

WEFT_LAPACK_FUNCTION(weft_lapack_svdvals)
{
	(void)context;
	return svd(call_of(in, 1, out, work, work_bytes, 0, status), 0);
}

/* ---- symmetric indefinite matrices ---- */

typedef void (*Sytrf)(const char *uplo, const int32_t *n, void *a, const int32_t *lda,
		      int32_t *ipiv, void *work, const int32_t *lwork, int32_t *info, size_t);
typedef void (*Sytrs)(const char *uplo, const int32_t *n, const int32_t *nrhs, const void *a,
		      const int32_t *lda, const int32_t *ipiv, void *b, const int32_t *ldb,
		      int32_t *info, size_t);

WEFT_LAPACK_FUNCTION(weft_lapack_ldl_factor)
{
	Call c = call_of(in, 1, out, work, work_bytes, 1, status);
	const int64_t n = extent(&c, in, 1);
	const size_t bytes = (size_t)(n * n) * c.number;
	int code = is_long(&c, n, n);
	(void)context;
	if (!code)
		code = needs_library(&c);
	for (int64_t k = c.first; k < c.last && !code; k++) {
		void *a = matrix(&out[0], k, bytes);
		int32_t *pivot = (int32_t *)out[1].data + k * n, *info = (int32_t *)out[2].data + k;
		const int32_t size = (int32_t)n, lwork = rest(&c);
		memcpy(a, matrix(in, k, bytes), bytes);
		*info = 0;
		int locked = begin();
		if (n)
			((Sytrf)table[c.flag ? HETRF : SYTRF][c.type])("L", &size, a, &size, pivot,
								       c.work, &lwork, info, 1);
		end(locked);
	}
	return code;
}

WEFT_LAPACK_FUNCTION(weft_lapack_ldl_solve)
{
	Call c = call_of(in, 3, out, work, work_bytes, 1, status);
	const int64_t n = extent(&c, in, 1), m = extent(&c, &in[2], 2);
	const size_t square = (size_t)(n * n) * c.number, bytes = (size_t)(m * n) * c.number;
	int code = is_long(&c, n, m);
	(void)context;
	if (!code)
		code = needs_library(&c);
	for (int64_t k = c.first; k < c.last && n && m && !code; k++) {
		const int32_t size = (int32_t)n, nrhs = (int32_t)m;
		int32_t info = 0;
		void *x = matrix(&out[0], k, bytes);
		memcpy(x, matrix(&in[2], k, bytes), bytes);
		int locked = begin();
		((Sytrs)table[c.flag ? HETRS : SYTRS][c.type])(
			"L", &size, &nrhs, matrix(in, k, square), &size,
			(const int32_t *)in[1].data + k * n, x, &size, &info, 1);
		end(locked);
	}
	return code;
}
