/* A model with replaceable weights becomes another: replace A.so B.so A.values B.values [ROUNDS]. B
 * is a fresh compilation of the same graph with other weights, the files hold both models' by name
 * (tests/system/replace.py writes them). With B's weights A gives B's results, bit for bit, and its
 * own again with its own; what is refused changes nothing. ROUNDS: how long set_weights takes, the
 * least of so many, and a memcpy of the weights. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft_model.h"

enum { MOST = 4096, MOST_OUT = 64 };

/* ---- files of values ---- */

typedef struct {
	uint32_t n;
	char *name[MOST];
	WeftTensor value[MOST];
	uint64_t bytes;
} Values;

static void *take(FILE *f, size_t bytes)
{
	char *p = malloc(bytes + 1);
	if (!p || fread(p, 1, bytes, f) != bytes)
		fprintf(stderr, "a file of values is cut off\n"), exit(1);
	p[bytes] = 0;
	return p;
}

static uint64_t number(FILE *f)
{
	uint64_t *p = take(f, sizeof *p), v = *p;
	free(p);
	return v;
}

static Values *read_values(const char *path)
{
	Values *v = calloc(1, sizeof *v);
	FILE *f = fopen(path, "rb");
	if (!f || !v)
		fprintf(stderr, "cannot read %s\n", path), exit(1);
	for (v->n = 0, v->bytes = 0; v->n < MOST; v->n++) {
		uint64_t length = number(f);
		if (!length)
			break;
		v->name[v->n] = take(f, length);
		WeftTensor *t = &v->value[v->n];
		*t = (WeftTensor){.device = {WEFT_CPU, 0}};
		t->dtype = (WeftDType){(uint8_t)number(f), (uint8_t)number(f), 1};
		t->ndim = (int32_t)number(f);
		t->shape = take(f, 8 * (size_t)t->ndim);
		uint64_t bytes = number(f);
		t->data = take(f, bytes);
		v->bytes += bytes;
	}
	fclose(f);
	return v;
}

/* ---- models ---- */

typedef struct {
	const WeftModel *m;
	WeftInstance *in;
	WeftStatus status;
	void *x[MOST_OUT], *y[MOST_OUT];
	uint64_t bytes[MOST_OUT];
} Model;

static void must(const Model *t, const char *what, int code)
{
	if (code != WEFT_OK)
		fprintf(stderr, "%s: %s\n", what, t->status.message), exit(1);
}

static Model load(const char *path)
{
	Model t = {0};
	const WeftModel *(*get)(void);
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		fprintf(stderr, "%s\n", dlerror()), exit(1);
	*(void **)&get = dlsym(so, "weft_model");
	t.m = get();
	if (weft_model_check(t.m) || !WEFT_HAS(t.m->size, WeftModel, recipes))
		fprintf(stderr, "%s: an old model\n", path), exit(1);
	must(&t, path, t.m->open(t.m, NULL, &t.in, &t.status));
	return t;
}

static uint64_t elements(const WeftTensor *t)
{
	uint64_t n = 1;
	for (int32_t d = 0; d < t->ndim; d++)
		n *= (uint64_t)t->shape[d];
	return n;
}

static void fill(WeftTensor *t)
{
	for (uint64_t i = 0, n = elements(t); i < n; i++)
		if (t->dtype.code == WEFT_FLOAT && t->dtype.bits == 32)
			((float *)t->data)[i] = (float)(i * 7919 % 1999) / 1000 - 1;
		else if (t->dtype.bits == 64)
			((int64_t *)t->data)[i] = (int64_t)(i * 31 % 7);
		else
			((uint8_t *)t->data)[i * (t->dtype.bits / 8)] = (uint8_t)(i % 2);
}

/* The entry at the sizes seen while exporting; its outputs stay in t->y. */
static void run(Model *t, uint32_t entry, WeftInstance *in, int32_t nthreads)
{
	const WeftEntry *e = weft_entry(t->m, entry);
	static int64_t dim[2 * MOST_OUT][16];
	WeftTensor x[MOST_OUT] = {{0}}, y[MOST_OUT] = {{0}};
	const WeftContext context = {
		.size = sizeof context, .flags = WEFT_SHARE_ALL, .nthreads = nthreads};
	WeftSizes *sizes = malloc(e->sizes_bytes);
	for (uint32_t k = 0; k < e->ninput; k++) {
		const WeftTensorInfo *info = weft_input(t->m, e, k);
		x[k] = (WeftTensor){.device = {WEFT_CPU, 0},
				    .dtype = info->dtype,
				    .ndim = (int32_t)info->rank,
				    .shape = dim[k]};
		for (uint32_t d = 0; d < info->rank; d++) {
			const WeftDim *s = weft_dim(t->m, info, d);
			dim[k][d] = s->value >= 0    ? s->value
				    : s->symbol >= 0 ? e->seen[s->symbol]
				    : e->nsymbol     ? e->seen[0] * atoi(s->text)
						     : 1;
		}
		free(t->x[k]);
		t->x[k] = x[k].data = malloc(elements(&x[k]) * 16 + 1);
		fill(&x[k]);
	}
	must(t, "sizes", t->m->sizes(in, entry, x, sizes, &t->status));
	for (uint32_t k = 0; k < e->noutput; k++) {
		const WeftTensorInfo *info = weft_output(t->m, e, k);
		y[k] = (WeftTensor){.device = {WEFT_CPU, 0},
				    .dtype = info->dtype,
				    .ndim = (int32_t)info->rank,
				    .shape = dim[MOST_OUT + k]};
		memcpy(y[k].shape, weft_output_shape(t->m, e, sizes, k),
		       info->rank * sizeof(int64_t));
		t->bytes[k] = elements(&y[k]) * info->dtype.bits / 8;
		free(t->y[k]);
		t->y[k] = y[k].data = calloc(t->bytes[k] + 1, 1);
	}
	void *work = malloc(sizes->workspace_bytes + 1);
	must(t, "run", t->m->run(in, sizes, x, y, work, &context, &t->status));
	free(work);
	free(sizes);
}

static int equal(Model *a, Model *b, WeftInstance *in, int32_t nthreads)
{
	int same = 1;
	for (uint32_t e = 0; e < a->m->nentry; e++) {
		run(a, e, in, nthreads);
		run(b, e, b->in, 1);
		for (uint32_t k = 0; k < weft_entry(a->m, e)->noutput; k++)
			same &= a->bytes[k] == b->bytes[k] &&
				!memcmp(a->y[k], b->y[k], a->bytes[k]);
	}
	return same;
}

/* ---- setting ---- */

/* Of the values those that the model takes. */
static Values *wanted(const WeftModel *m, const Values *all)
{
	Values *v = calloc(1, sizeof *v);
	if (!v)
		exit(1);
	for (uint32_t s = 0; s < m->nsource; s++) {
		uint32_t k = 0;
		while (k < all->n && strcmp(all->name[k], weft_source(m, s)->name) != 0)
			k++;
		if (k == all->n)
			fprintf(stderr, "there are no values for %s\n", weft_source(m, s)->name),
				exit(1);
		v->name[v->n] = all->name[k];
		v->value[v->n++] = all->value[k];
		v->bytes += elements(&all->value[k]) * all->value[k].dtype.bits / 8;
	}
	return v;
}

static int set(Model *t, WeftInstance *in, const Values *v, int32_t nthreads)
{
	const WeftContext context = {
		.size = sizeof context, .flags = WEFT_SHARE_ALL, .nthreads = nthreads};
	return t->m->set_weights(in, v->n, (const char *const *)v->name, v->value, &context,
				 &t->status);
}

static void expect(int ok, const char *what)
{
	if (!ok)
		fprintf(stderr, "FAIL: %s\n", what), exit(1);
}

/* Each alone, of another shape, of another dtype: what fails changes nothing. Returns how many need
 * partners. */
static uint32_t refused(Model *a, Model *same, const Values *v)
{
	uint32_t partners = 0;
	const char *unknown = "no such weight";
	expect(a->m->set_weights(a->in, 1, &unknown, v->value, NULL, &a->status) ==
			       WEFT_ERR_ARGUMENT &&
		       !strcmp(a->status.message, "the model has no weight no such weight"),
	       "an unknown name");
	for (uint32_t k = 0; k < v->n; k++) {
		WeftTensor t = v->value[k];
		const char *name = v->name[k];
		int64_t shape[16] = {1};
		WeftInstance *in;
		memcpy(shape + 1, t.shape, (size_t)t.ndim * sizeof *shape);
		t.shape = shape;
		t.ndim++;
		expect(a->m->set_weights(a->in, 1, &name, &t, NULL, &a->status) == WEFT_ERR_INPUT,
		       "another shape");
		t = v->value[k];
		t.dtype.bits = t.dtype.bits == 16 ? 8 : 16;
		expect(a->m->set_weights(a->in, 1, &name, &t, NULL, &a->status) == WEFT_ERR_INPUT,
		       "another dtype");
		must(a, "clone", a->m->clone(a->in, &in, &a->status));
		int code = a->m->set_weights(in, 1, &name, &v->value[k], NULL, &a->status);
		a->m->close(in);
		if (code == WEFT_OK)
			continue;
		expect(code == WEFT_ERR_ARGUMENT &&
			       strstr(a->status.message, "set it together with") &&
			       strstr(a->status.message, name),
		       a->status.message);
		if (!partners++)
			printf("%s\n", a->status.message);
	}
	expect(equal(a, same, a->in, 1), "what is refused changes nothing");
	return partners;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void time_it(Model *a, const Values *v, int rounds, int32_t nthreads)
{
	double copy = 1e9, fresh = 1e9, replace = 1e9;
	char *from = malloc(v->bytes), *to = malloc(v->bytes);
	if (!from || !to)
		exit(1);
	memset(from, 1, v->bytes);
	memset(to, 1, v->bytes);
	for (int k = 0; k < rounds; k++) {
		double t = now();
		memcpy(to, from, v->bytes);
		copy = now() - t < copy ? now() - t : copy;
		t = now();
		char *other = malloc(v->bytes);
		if (!other)
			exit(1);
		memcpy(other, from, v->bytes);
		expect(other[v->bytes - 1] == from[(uint64_t)k % v->bytes], "it was copied");
		free(other);
		fresh = now() - t < fresh ? now() - t : fresh;
		t = now();
		must(a, "set_weights", set(a, a->in, v, nthreads));
		replace = now() - t < replace ? now() - t : replace;
	}
	printf("%.1f MB: memcpy %.1f ms, into fresh memory %.1f ms; set_weights with %d threads "
	       "%.1f ms: %.2f times a memcpy\n",
	       1e-6 * (double)v->bytes, 1e3 * copy, 1e3 * fresh, nthreads, 1e3 * replace,
	       replace / copy);
	free(from);
	free(to);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return fprintf(stderr, "usage: replace A.so B.so A.values B.values [ROUNDS]\n"), 1;
	Model a = load(argv[1]), same = load(argv[1]), b = load(argv[2]);
	const Values *its = wanted(a.m, read_values(argv[3])),
		     *other = wanted(a.m, read_values(argv[4]));
	WeftInstance *clone;
	expect(a.m->replaceable && b.m->nsource == a.m->nsource, "weights are replaceable");
	expect(!equal(&a, &b, a.in, 1), "the two models differ");
	printf("%u weights, ", a.m->nsource);
	printf("%u of them with partners\n", refused(&a, &same, other));
	must(&a, "clone", a.m->clone(a.in, &clone, &a.status));
	for (int32_t n = 1; n <= 3; n += 2) {
		must(&a, "set_weights", set(&a, a.in, other, n));
		expect(equal(&a, &b, a.in, n), "results are those of a fresh compilation");
		expect(equal(&a, &same, clone, 1), "a clone keeps its weights");
		must(&a, "set_weights", set(&a, a.in, its, n));
		expect(equal(&a, &same, a.in, 1), "its own weights give its own results");
	}
	for (int32_t n = 1; argc > 5 && n <= 2; n++)
		time_it(&a, other, atoi(argv[5]), n);
	a.m->close(clone);
	a.m->close(a.in);
	return 0;
}
