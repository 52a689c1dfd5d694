/* A stand-in for cuBLASLt, libcublasLt.so.13, on this CPU, for memory and streams of the stand-in
 * for the driver (standin.c): the functions that runtime/cublas.c uses, of f32, f16 and bf16. What
 * a program must not do with the library is an error; so is a workspace that is not the one that
 * was promised, or an operand that is aligned to less. The environment says what there is:
 *
 *   STANDIN_LT=refuse    the heuristics find nothing
 *   STANDIN_LT_COUNT=1   each product that is executed is told on standard error */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { OK = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { F32 = 0, F16 = 2, BF16 = 14, COMPUTE_32F = 68 };
enum { RELU = 2, BIAS = 4, GELU = 32 };

typedef struct {
	int compute, scale, trans_a, trans_b, epilogue, bias_type;
	uint64_t bias;
} Desc;
typedef struct {
	int type;
	uint64_t rows, cols;
	int64_t ld, member;
	int32_t batch;
} Layout;
typedef struct {
	uint64_t work;
	uint32_t scheme, align[4];
} Want;
typedef struct {
	uint64_t algorithm[8];
	size_t work;
	int state;
	float waves;
	int reserved[4];
} Found;

static int (*give)(int (*)(int64_t *), const int64_t *, size_t, void *);
static void *(*real)(uint64_t, uint64_t);

EXPORT int cublasLtCreate(void **out)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	*(void **)&give = driver ? dlsym(driver, "standin_call") : NULL;
	*(void **)&real = driver ? dlsym(driver, "standin_real") : NULL;
	*out = malloc(1);
	return give && real ? OK : NOT_INITIALIZED;
}

EXPORT int cublasLtDestroy(void *handle)
{
	free(handle);
	return OK;
}

EXPORT int cublasLtMatmulDescCreate(Desc **out, int compute, int scale)
{
	*out = malloc(sizeof **out);
	**out = (Desc){.compute = compute, .scale = scale, .epilogue = 1};
	return compute == COMPUTE_32F && scale == F32 ? OK : NOT_SUPPORTED;
}

EXPORT int cublasLtMatmulDescSetAttribute(Desc *d, int which, const void *value, size_t bytes)
{
	if (bytes != (which == 8 ? 8 : 4))
		return INVALID_VALUE;
	switch (which) {
	case 3: memcpy(&d->trans_a, value, bytes); return OK;
	case 4: memcpy(&d->trans_b, value, bytes); return OK;
	case 7: memcpy(&d->epilogue, value, bytes); return OK;
	case 8: memcpy(&d->bias, value, bytes); return OK;
	case 26: memcpy(&d->bias_type, value, bytes); return OK;
	default: return INVALID_VALUE;
	}
}

EXPORT int cublasLtMatmulDescDestroy(Desc *d)
{
	free(d);
	return OK;
}

EXPORT int cublasLtMatrixLayoutCreate(Layout **out, int type, uint64_t rows, uint64_t cols,
				      int64_t ld)
{
	*out = malloc(sizeof **out);
	**out = (Layout){.type = type, .rows = rows, .cols = cols, .ld = ld, .batch = 1};
	return (type == F32 || type == F16 || type == BF16) && rows && cols && ld >= (int64_t)rows
		       ? OK
		       : INVALID_VALUE;
}

EXPORT int cublasLtMatrixLayoutSetAttribute(Layout *l, int which, const void *value, size_t bytes)
{
	if (which == 5 && bytes == 4)
		memcpy(&l->batch, value, 4);
	else if (which == 6 && bytes == 8)
		memcpy(&l->member, value, 8);
	else
		return INVALID_VALUE;
	return OK;
}

EXPORT int cublasLtMatrixLayoutDestroy(Layout *l)
{
	free(l);
	return OK;
}

EXPORT int cublasLtMatmulPreferenceCreate(Want **out)
{
	*out = calloc(1, sizeof **out);
	return OK;
}

EXPORT int cublasLtMatmulPreferenceSetAttribute(Want *w, int which, const void *value, size_t bytes)
{
	if (which == 1 && bytes == 8)
		memcpy(&w->work, value, 8);
	else if (which == 3 && bytes == 4)
		memcpy(&w->scheme, value, 4);
	else if (which >= 5 && which <= 8 && bytes == 4)
		memcpy(&w->align[which - 5], value, 4);
	else
		return INVALID_VALUE;
	return OK;
}

EXPORT int cublasLtMatmulPreferenceDestroy(Want *w)
{
	free(w);
	return OK;
}

static int fits(const Desc *d, const Layout *a, const Layout *b, const Layout *c)
{
	const uint64_t m = d->trans_a ? a->cols : a->rows, k = d->trans_a ? a->rows : a->cols;
	return m == c->rows && k == (d->trans_b ? b->cols : b->rows) &&
	       (d->trans_b ? b->rows : b->cols) == c->cols && a->type == b->type &&
	       (c->type == a->type || c->type == F32) && a->batch == b->batch &&
	       a->batch == c->batch && (!(d->epilogue & BIAS) || d->bias_type == c->type);
}

EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, const Desc *d, const Layout *a,
					  const Layout *b, const Layout *c, const Layout *e,
					  const Want *w, int wanted, Found *found, int *n)
{
	const char *mode = getenv("STANDIN_LT");
	(void)handle;
	*n = 0;
	if (wanted != 1 || e != c || !fits(d, a, b, c) || w->scheme & ~2u)
		return INVALID_VALUE;
	if (mode && !strcmp(mode, "refuse"))
		return NOT_SUPPORTED;
	memset(found, 0, sizeof *found);
	found->algorithm[0] = w->work;
	for (int k = 0; k < 3; k++)
		found->algorithm[1 + k] = w->align[k];
	found->work = w->work;
	*n = 1;
	return OK;
}

/* ---- numbers ---- */

static float load(const char *p, int type, int64_t i)
{
	uint32_t bits = 0;
	float f;
	if (type == F32)
		memcpy(&f, p + 4 * i, 4);
	else if (type == BF16) {
		memcpy((char *)&bits + 2, p + 2 * i, 2);
		memcpy(&f, &bits, 4);
	} else {
		_Float16 h;
		memcpy(&h, p + 2 * i, 2);
		f = (float)h;
	}
	return f;
}

static void store(char *p, int type, int64_t i, float f)
{
	uint32_t bits;
	if (type == F32)
		memcpy(p + 4 * i, &f, 4);
	else if (type == BF16) {
		memcpy(&bits, &f, 4);
		bits = f != f ? 0x7fc00000 : bits + 0x7fff + (bits >> 16 & 1);
		memcpy(p + 2 * i, (char *)&bits + 2, 2);
	} else {
		const _Float16 h = (_Float16)f;
		memcpy(p + 2 * i, &h, 2);
	}
}

static uint64_t size_of(const Layout *l)
{
	const int64_t last = (int64_t)(l->batch - 1) * l->member + (int64_t)(l->cols - 1) * l->ld +
			     (int64_t)l->rows;
	return (uint64_t)last * (l->type == F32 ? 4 : 2);
}

typedef struct {
	Desc d;
	Layout a, b, c;
	uint64_t at[3];
} Product;

static float finish(float x, const Product *p, const char *bias, int64_t row)
{
	if (bias)
		x += load(bias, p->c.type, row);
	if (p->d.epilogue & RELU)
		x = x < 0 ? 0 : x;
	if (p->d.epilogue & GELU)
		x = 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
	return x;
}

static int multiply(int64_t *arg)
{
	Product p;
	memcpy(&p, arg, sizeof p);
	const Desc *d = &p.d;
	const char *a = real(p.at[0], size_of(&p.a)), *b = real(p.at[1], size_of(&p.b));
	char *c = real(p.at[2], size_of(&p.c));
	const char *bias =
		d->epilogue & BIAS ? real(d->bias, p.c.rows * (p.c.type == F32 ? 4 : 2)) : NULL;
	const int64_t m = (int64_t)p.c.rows, n = (int64_t)p.c.cols,
		      k = (int64_t)(d->trans_a ? p.a.rows : p.a.cols);
	if (!a || !b || !c || (d->epilogue & BIAS && !bias))
		return 700;
	if (getenv("STANDIN_LT_COUNT"))
		fprintf(stderr, "standin_lt: product %lld x %lld x %lld\n", (long long)m,
			(long long)n, (long long)k);
	for (int64_t t = 0; t < p.c.batch; t++)
		for (int64_t j = 0; j < n; j++)
			for (int64_t i = 0; i < m; i++) {
				float sum = 0;
				for (int64_t s = 0; s < k; s++)
					sum += load(a, p.a.type,
						    t * p.a.member + (d->trans_a
									      ? s + i * p.a.ld
									      : i + s * p.a.ld)) *
					       load(b, p.b.type,
						    t * p.b.member + (d->trans_b ? j + s * p.b.ld
										 : s + j * p.b.ld));
				store(c, p.c.type, t * p.c.member + i + j * p.c.ld,
				      finish(sum, &p, bias, i));
			}
	return 0;
}

EXPORT int cublasLtMatmul(void *handle, const Desc *d, const float *alpha, const void *a,
			  const Layout *la, const void *b, const Layout *lb, const float *beta,
			  const void *c, const Layout *lc, void *e, const Layout *le,
			  const uint64_t *algorithm, void *work, size_t work_bytes, void *stream)
{
	Product p = {*d, *la, *lb, *lc, {(uintptr_t)a, (uintptr_t)b, (uintptr_t)c}};
	int64_t arg[(sizeof p + 7) / 8];
	(void)handle;
	if (*alpha != 1 || *beta != 0 || c != e || lc != le || !fits(d, la, lb, lc) ||
	    work_bytes < algorithm[0] || (work_bytes && !real((uintptr_t)work, work_bytes)))
		return INVALID_VALUE;
	for (int k = 0; k < 3; k++)
		if (!algorithm[1 + k] || p.at[k] % algorithm[1 + k])
			return INVALID_VALUE;
	if (d->epilogue & BIAS && d->bias % 16)
		return INVALID_VALUE;
	memcpy(arg, &p, sizeof p);
	return give(multiply, arg, sizeof arg / sizeof *arg, stream) ? INVALID_VALUE : OK;
}
