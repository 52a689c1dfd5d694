/* Products by cuBLASLt. Empty in other runtimes (cuda.h).
 *
 * Results are row-major, which is column-major of the transposed product: columns of ours are rows
 * of the library's, and its first operand is our b. Sums are of f32, without TF32, in an order that
 * does not change from call to call: reductions are by the type of the sums, in our workspace. */
#include "instance_priv.h"
#include "cuda.h"

#ifdef WEFT_WITH_CUDA
#include <dlfcn.h>
#include <pthread.h>

/* Numbers of cublasLt.h; every version has the same. */
enum {
	COMPUTE_F32 = 68, REAL_F32 = 0,
	DESC_TRANS_A = 3, DESC_TRANS_B = 4, DESC_EPILOGUE = 7, DESC_BIAS = 8, DESC_BIAS_TYPE = 26,
	LAYOUT_BATCH = 5, LAYOUT_MEMBER = 6,
	WANT_WORK = 1, WANT_REDUCTION = 3, WANT_ALIGN = 5, /* of a; then b, c, d */
	REDUCE_BY_SUM_TYPE = 2,
	PLAIN = 1, RELU = 2, BIAS = 4, GELU = 32
};
static const int real_type[] = {0, 2, 14}; /* by WeftCudaProduct's types */
static const int64_t type_bytes[] = {4, 2, 2};

typedef struct Handle Handle;
typedef struct Desc Desc;
typedef struct Layout Layout;
typedef struct Want Want;
typedef struct {
	uint64_t algorithm[8];
	size_t work;
	int state;
	float waves;
	int reserved[4];
} Found; /* cublasLtMatmulHeuristicResult_t */

static struct {
	int (*create)(Handle **), (*destroy)(Handle *);
	int (*desc)(Desc **, int, int), (*desc_set)(Desc *, int, const void *, size_t),
		(*desc_drop)(Desc *);
	int (*layout)(Layout **, int, uint64_t, uint64_t, int64_t),
		(*layout_set)(Layout *, int, const void *, size_t), (*layout_drop)(Layout *);
	int (*want)(Want **), (*want_set)(Want *, int, const void *, size_t), (*want_drop)(Want *);
	int (*find)(Handle *, Desc *, Layout *, Layout *, Layout *, Layout *, Want *, int, Found *,
		    int *);
	int (*multiply)(Handle *, Desc *, const void *, const void *, Layout *, const void *,
			Layout *, const void *, const void *, Layout *, void *, Layout *,
			const void *, void *, size_t, void *);
	bool there, always; /* always: for measuring, also where kernels are faster */
} lt;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_library(void)
{
	static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
	static const struct {
		const char *name;
		void *at;
	} wanted[] = {
		{"cublasLtCreate", &lt.create},
		{"cublasLtDestroy", &lt.destroy},
		{"cublasLtMatmulDescCreate", &lt.desc},
		{"cublasLtMatmulDescSetAttribute", &lt.desc_set},
		{"cublasLtMatmulDescDestroy", &lt.desc_drop},
		{"cublasLtMatrixLayoutCreate", &lt.layout},
		{"cublasLtMatrixLayoutSetAttribute", &lt.layout_set},
		{"cublasLtMatrixLayoutDestroy", &lt.layout_drop},
		{"cublasLtMatmulPreferenceCreate", &lt.want},
		{"cublasLtMatmulPreferenceSetAttribute", &lt.want_set},
		{"cublasLtMatmulPreferenceDestroy", &lt.want_drop},
		{"cublasLtMatmulAlgoGetHeuristic", &lt.find},
		{"cublasLtMatmul", &lt.multiply},
	};
	const char *path = getenv("WEFT_CUBLASLT");
	void *so = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	for (size_t k = 0; !(path && *path) && !so && k < sizeof names / sizeof *names; k++)
		so = dlopen(names[k], RTLD_NOW | RTLD_LOCAL);
	lt.there = so;
	lt.always = getenv("WEFT_CUBLASLT_ALWAYS");
	for (size_t k = 0; so && k < sizeof wanted / sizeof *wanted; k++) {
		void *fn = dlsym(so, wanted[k].name);
		memcpy(wanted[k].at, &fn, sizeof fn);
		lt.there = lt.there && fn;
	}
}

/* ---- what the library does with sizes ---- */

enum { ALIGNED = 4 }; /* of a, b, c, bias */
typedef struct {
	const WeftCudaProduct *of;
	WeftCudaSizes size;
	uint64_t work_bytes;
	uint32_t align[ALIGNED]; /* bytes, at most 256 */
} Key;

typedef struct Known {
	Key key;
	bool takes;
	Desc *desc;
	Layout *a, *b, *c; /* the library's order: a is our b */
	Found found;
	struct Known *next;
} Known;

struct WeftProducts {
	pthread_mutex_t lock;
	Handle *handle;
	Known *known; /* the newest first */
	uint32_t n;
};
enum { MOST = 256 };

WeftProducts *weft_products_open(void)
{
	pthread_once(&once, load_library);
	WeftProducts *w = lt.there ? calloc(1, sizeof *w) : NULL;
	if (w && lt.create(&w->handle)) {
		free(w);
		return NULL;
	}
	if (w)
		pthread_mutex_init(&w->lock, NULL);
	return w;
}

static void forget(Known *x)
{
	if (x->desc)
		lt.desc_drop(x->desc);
	for (Layout **l = (Layout *[]){x->a, x->b, x->c, NULL}, **end = l + 3; l < end; l++)
		if (*l)
			lt.layout_drop(*l);
	free(x);
}

static void forget_oldest(WeftProducts *w)
{
	Known **at = &w->known;
	while ((*at)->next)
		at = &(*at)->next;
	forget(*at);
	*at = NULL;
	w->n--;
}

void weft_products_close(WeftProducts *w)
{
	if (!w)
		return;
	for (Known *x; (x = w->known);) {
		w->known = x->next;
		forget(x);
	}
	lt.destroy(w->handle);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* Returns a matrix of the library, whose columns have a stride of at least `rows`; NULL if it
 * takes none such. */
static Layout *layout_of(uint32_t type, int64_t rows, int64_t cols, int64_t stride, int64_t batch,
			 int64_t member)
{
	Layout *l = NULL;
	const int32_t n = (int32_t)batch;
	if (stride < rows || lt.layout(&l, real_type[type], (uint64_t)rows, (uint64_t)cols, stride))
		return NULL;
	if (batch > 1 && (batch > INT32_MAX || lt.layout_set(l, LAYOUT_BATCH, &n, sizeof n) ||
			  lt.layout_set(l, LAYOUT_MEMBER, &member, sizeof member))) {
		lt.layout_drop(l);
		return NULL;
	}
	return l;
}

static bool describe(Known *x)
{
	const WeftCudaProduct *p = x->key.of;
	const WeftCudaSizes *s = &x->key.size;
	const int trans_a = p->b_rows != 0, trans_b = p->a_rows != 0,
		  bias_type = real_type[p->c_type];
	const int epilogue = p->relu || p->gelu || p->bias != UINT32_MAX
				     ? (p->relu   ? RELU
					: p->gelu ? GELU
						  : 0) |
					       (p->bias != UINT32_MAX ? BIAS : 0)
				     : PLAIN;
	x->a = trans_a ? layout_of(p->b_type, s->k, s->n, s->stride[1], s->batch, s->member[1])
		       : layout_of(p->b_type, s->n, s->k, s->stride[1], s->batch, s->member[1]);
	x->b = trans_b ? layout_of(p->a_type, s->m, s->k, s->stride[0], s->batch, s->member[0])
		       : layout_of(p->a_type, s->k, s->m, s->stride[0], s->batch, s->member[0]);
	x->c = layout_of(p->c_type, s->n, s->m, s->stride[2], s->batch, s->member[2]);
	if (!x->a || !x->b || !x->c || lt.desc(&x->desc, COMPUTE_F32, REAL_F32))
		return false;
	return !lt.desc_set(x->desc, DESC_TRANS_A, &trans_a, sizeof trans_a) &&
	       !lt.desc_set(x->desc, DESC_TRANS_B, &trans_b, sizeof trans_b) &&
	       !lt.desc_set(x->desc, DESC_EPILOGUE, &epilogue, sizeof epilogue) &&
	       (p->bias == UINT32_MAX ||
		!lt.desc_set(x->desc, DESC_BIAS_TYPE, &bias_type, sizeof bias_type));
}

static bool find(const WeftProducts *w, Known *x)
{
	Want *want = NULL;
	int n = 0;
	const uint32_t scheme = REDUCE_BY_SUM_TYPE, *align = x->key.align;
	if (lt.want(&want))
		return false;
	bool ok = !lt.want_set(want, WANT_WORK, &x->key.work_bytes, sizeof x->key.work_bytes) &&
		  !lt.want_set(want, WANT_REDUCTION, &scheme, sizeof scheme);
	for (int k = 0; k < 4; k++) /* the library's a, b, c, d */
		ok = ok && !lt.want_set(want, WANT_ALIGN + k,
					&align[k == 0   ? 1
					       : k == 1 ? 0
							: 2],
					sizeof *align);
	ok = ok && !lt.find(w->handle, x->desc, x->a, x->b, x->c, x->c, want, 1, &x->found, &n) &&
	     n > 0 && !x->found.state;
	lt.want_drop(want);
	return ok;
}

/* ---- addresses ---- */

typedef struct {
	uint64_t a, b, c, bias;
} Places;

static Places places_of(const WeftCudaProduct *p, const WeftCudaSizes *s, const uint64_t *buf)
{
	Places x = {buf[p->a] + (uint64_t)(s->first[0] * type_bytes[p->a_type]),
		    buf[p->b] + (uint64_t)(s->first[1] * type_bytes[p->b_type]),
		    buf[p->c] + (uint64_t)(s->first[2] * type_bytes[p->c_type]), 0};
	if (p->bias != UINT32_MAX)
		x.bias = buf[p->bias] + (uint64_t)(s->bias * type_bytes[p->c_type]);
	return x;
}

static uint32_t align_of(uint64_t address)
{
	const uint64_t bit = address & -address;
	return bit && bit < 256 ? (uint32_t)bit : 256;
}

/* Returns the library's answer for sizes and alignments, in which the pointer of the bias is not
 * set; NULL if there is no memory. The lock is held. */
static Known *known(WeftProducts *w, const Key *key)
{
	for (Known *x = w->known; x; x = x->next)
		if (!memcmp(&x->key, key, sizeof *key))
			return x;
	Known *x = calloc(1, sizeof *x);
	if (!x)
		return NULL;
	x->key = *key;
	if (++w->n > MOST)
		forget_oldest(w);
	x->takes = key->size.batch > 0 && key->align[3] >= 16 && describe(x) && find(w, x);
	x->next = w->known;
	return w->known = x;
}

static Known *lookup(WeftProducts *w, const WeftCudaProduct *p, const uint64_t *buf,
		     const int64_t *param, uint64_t work_bytes, Places *at)
{
	Key key;
	memset(&key, 0, sizeof key); /* compared as bytes */
	key.of = p;
	key.work_bytes = work_bytes;
	memcpy(&key.size, param + p->param, sizeof key.size);
	if (!lt.always &&
	    (key.size.m < p->least[0] || key.size.n < p->least[1] || key.size.k < p->least[2]))
		return NULL;
	*at = places_of(p, &key.size, buf);
	key.align[0] = align_of(at->a);
	key.align[1] = align_of(at->b);
	key.align[2] = align_of(at->c);
	key.align[3] = align_of(at->bias);
	return known(w, &key);
}

bool weft_product_takes(WeftProducts *w, const WeftCudaProduct *p, const uint64_t *buf,
			const int64_t *param, uint64_t work_bytes)
{
	Places at;
	pthread_mutex_lock(&w->lock);
	const Known *x = lookup(w, p, buf, param, work_bytes, &at);
	pthread_mutex_unlock(&w->lock);
	return x && x->takes;
}

bool weft_product(WeftProducts *w, const WeftCudaProduct *p, const uint64_t *buf,
		  const int64_t *param, uint64_t work, uint64_t work_bytes, void *stream)
{
	const float one = 1, zero = 0;
	Places at;
	pthread_mutex_lock(&w->lock); /* the pointer of the bias is the description's */
	Known *x = lookup(w, p, buf, param, work_bytes, &at);
	bool ok = x && x->takes &&
		  (!at.bias || !lt.desc_set(x->desc, DESC_BIAS, &at.bias, sizeof at.bias));
	ok = ok && !lt.multiply(w->handle, x->desc, &one, (void *)(uintptr_t)at.b, x->a,
				(void *)(uintptr_t)at.a, x->b, &zero, (void *)(uintptr_t)at.c, x->c,
				(void *)(uintptr_t)at.c, x->c, x->found.algorithm,
				(void *)(uintptr_t)work, (size_t)work_bytes, stream);
	pthread_mutex_unlock(&w->lock);
	return ok;
}
#endif
