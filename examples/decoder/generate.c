/* Greedy tokens from a decoder of two entries (decoder.py; docs/c-api.md):
 *
 *     weft compile prefill=prefill.pt2 decode=decode.pt2 -o decoder.so
 *     generate decoder.so THREADS COUNT LOGITS|- TOKEN...
 *
 * prints COUNT tokens that follow TOKEN..., then the median time of a call of `decode`. The prompt
 * is one call of `prefill`, each token one of `decode`; the cache is state of the instance, which
 * both entries share. LOGITS receives the logits of all calls, as the model gives them. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft_model.h"

enum { MAX_OUTPUT_RANK = 8 };

typedef struct {
	const WeftModel *model;
	WeftInstance *instance;
	const WeftContext *context;
	int64_t start;   /* of the next token */
	float *logits;   /* of the last call */
	int64_t nlogits; /* 0: none yet */
} Decoder;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static void *new_bytes(size_t n)
{
	void *p = aligned_alloc(64, (n + 64) / 64 * 64);
	if (!p)
		die("generate", "out of memory");
	return p;
}

static const WeftModel *load(const char *path)
{
	const WeftModel *(*model)(void);
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		die(path, dlerror());
	*(void **)&model = dlsym(so, "weft_model");
	if (!model)
		die(path, "not a compiled model");
	const char *wrong = weft_model_check(model());
	if (wrong)
		die(path, wrong);
	return model();
}

static uint32_t find_entry(const WeftModel *m, const char *name)
{
	for (uint32_t k = 0; k < m->nentry; k++)
		if (!strcmp(weft_entry(m, k)->name, name))
			return k;
	die("the model has no entry", name);
	return 0;
}

static void make_room(Decoder *d, const int64_t *shape, uint32_t rank)
{
	int64_t n = 1;
	for (uint32_t k = 0; k < rank; k++)
		n *= shape[k];
	if (d->nlogits == n)
		return;
	free(d->logits);
	d->logits = new_bytes((size_t)n * sizeof *d->logits);
	d->nlogits = n;
}

/* The token that follows; d->logits are its. Buffers are kept by a program that cares; here every
 * call gets its own. */
static int64_t step(Decoder *d, const char *entry, int64_t *tokens, int64_t n)
{
	const WeftModel *m = d->model;
	uint32_t at = find_entry(m, entry);
	const WeftEntry *e = weft_entry(m, at);
	const WeftDType i64 = {WEFT_INT, 64, 1};
	int64_t shape[2] = {1, n}, one = 1, best = 0;
	WeftTensor in[2] = {{tokens, {WEFT_CPU, 0}, 2, i64, shape, NULL, 0},
			    {&d->start, {WEFT_CPU, 0}, 1, i64, &one, NULL, 0}};
	WeftStatus status = {0};
	if (e->ninput != 2 || e->noutput != 1 || weft_output(m, e, 0)->dtype.bits != 32)
		die(entry, "expected tokens and a position in, logits out");
	WeftSizes *sizes = new_bytes(e->sizes_bytes);
	if (m->sizes(d->instance, at, in, sizes, &status))
		die(entry, status.message);
	int64_t extent[MAX_OUTPUT_RANK];
	uint32_t rank = weft_output(m, e, 0)->rank;
	if (rank > MAX_OUTPUT_RANK)
		die(entry, "expected logits of a smaller rank");
	memcpy(extent, weft_output_shape(m, e, sizes, 0), rank * sizeof *extent);
	make_room(d, extent, rank);
	WeftTensor out = {
		d->logits, {WEFT_CPU, 0}, (int32_t)rank, weft_output(m, e, 0)->dtype, extent, NULL,
		0};
	void *work = new_bytes(sizes->workspace_bytes);
	if (m->run(d->instance, sizes, in, &out, work, d->context, &status))
		die(entry, status.message);
	free(work);
	free(sizes);
	d->start += n;
	for (int64_t k = 1; k < d->nlogits; k++)
		best = d->logits[k] > d->logits[best] ? k : best;
	return best;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	if (argc < 6 || atoi(argv[3]) < 1)
		die("usage", "generate MODEL.so THREADS COUNT LOGITS|- TOKEN...");
	WeftContext context = {.size = sizeof context, .nthreads = atoi(argv[2])};
	Decoder d = {.model = load(argv[1]), .context = &context};
	WeftStatus status = {0};
	if (d.model->open(d.model, NULL, &d.instance, &status))
		die(argv[1], status.message);
	FILE *to = strcmp(argv[4], "-") ? fopen(argv[4], "wb") : NULL;
	int n = argc - 5, count = atoi(argv[3]);
	int64_t *prompt = new_bytes((size_t)n * sizeof *prompt), token = 0;
	double *seconds = new_bytes((size_t)count * sizeof *seconds);
	for (int k = 0; k < n; k++)
		prompt[k] = atoll(argv[5 + k]);
	for (int k = 0; k < count; k++) {
		double begin = now();
		token = k ? step(&d, "decode", &token, 1) : step(&d, "prefill", prompt, n);
		seconds[k] = now() - begin;
		printf("%lld%s", (long long)token, k + 1 < count ? " " : "\n");
		if (to)
			fwrite(d.logits, sizeof *d.logits, (size_t)d.nlogits, to);
	}
	qsort(seconds + 1, (size_t)count - 1, sizeof *seconds, by_value);
	if (count > 1)
		printf("median of decode: %.3f ms\n", 1e3 * seconds[1 + (count - 1) / 2]);
	if (to && fclose(to))
		die(argv[4], "cannot write");
	d.model->close(d.instance);
	free(prompt);
	free(seconds);
	free(d.logits);
	return 0;
}
