/* tsan_control MODEL.so: 10,000 calls of the model that tsan.sh makes, on pools of 1, 2, 3 and 8
 * threads: branches, loops on data and checks that fail in them do the same every time. Run under
 * the thread sanitizer. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_model.h"

enum { RUNS = 10000, N = 1000, ROUNDS = 6, VARIANTS = 3 * ROUNDS, FAIL = 4 + 3 };

/* What one call is given, and what it gave on one thread. */
typedef struct {
	float x[N];
	int64_t rounds, at[1];
	int32_t code;
	char message[508];
	float y[N];
	int64_t done;
} Case;

static const WeftModel *model;
static WeftInstance *instance;
static WeftSizes *sizes;
static char *work;

static _Noreturn void die(const char *what, const char *text)
{
	fprintf(stderr, "%s: %s\n", what, text);
	exit(1);
}

/* Variant k: every third one has an index out of range in its second round, the next ones a
 * negative x in the third, where there are as many rounds. */
static void make_case(Case *c, int k)
{
	memset(c, 0, sizeof *c);
	c->rounds = k / 3;
	c->at[0] = k % 3 == 1 ? 7 : 3;
	for (int i = 0; i < N; i++)
		c->x[i] = (float)(i % 10);
	if (k % 3 == 2)
		c->x[617] = -2000;
}

static int call(const Case *c, const WeftThreads *t, int32_t n, float *y, int64_t *done,
		WeftStatus *status)
{
	static int64_t xs[] = {N}, ks[] = {1};
	const WeftDevice cpu = {WEFT_CPU, 0};
	const WeftDType f32 = {WEFT_FLOAT, 32, 1}, i64 = {WEFT_INT, 64, 1};
	WeftTensor in[3] = {{(void *)(uintptr_t)c->x, cpu, 1, f32, xs, NULL, 0},
			    {(void *)(uintptr_t)&c->rounds, cpu, 0, i64, NULL, NULL, 0},
			    {(void *)(uintptr_t)c->at, cpu, 1, i64, ks, NULL, 0}};
	WeftTensor out[2] = {{y, cpu, 1, f32, xs, NULL, 0}, {done, cpu, 0, i64, NULL, NULL, 0}};
	WeftContext ctx = {
		.size = sizeof ctx, .flags = WEFT_SHARE_ALL, .threads = t, .nthreads = n};
	if (!sizes) {
		sizes = malloc(weft_entry(model, 0)->sizes_bytes);
		if (!sizes || model->sizes(instance, 0, in, sizes, status))
			die("sizes", status->message);
		work = malloc(sizes->workspace_bytes);
	}
	return model->run(instance, sizes, in, out, work, &ctx, status);
}

static void check(const Case *c, const WeftThreads *t, int32_t n)
{
	static float y[N];
	int64_t done = -1;
	WeftStatus status = {0};
	int code = call(c, t, n, y, &done, &status);
	if (code != c->code || strcmp(status.message, c->message))
		die("another outcome", status.message);
	if (code == WEFT_OK && (done != c->done || memcmp(y, c->y, sizeof y)))
		die("another result", "");
}

int main(int argc, char **argv)
{
	static const int32_t threads[] = {1, 2, 3, 8};
	static Case cases[VARIANTS];
	WeftThreads *pool[4];
	WeftStatus status = {0};
	int failed = 0;
	void *so = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	const WeftModel *(*get)(void);
	if (!so)
		die("usage: tsan_control MODEL.so", argc > 1 ? dlerror() : "");
	*(void **)&get = dlsym(so, "weft_model");
	model = get();
	if (model->open(model, NULL, &instance, &status))
		die("open", status.message);
	for (int k = 0; k < 4; k++)
		pool[k] = model->threads_new(WEFT_THREADS_POOL, threads[k], NULL);
	for (int k = 0; k < VARIANTS; k++) {
		Case *c = &cases[k];
		make_case(c, k);
		c->code = call(c, pool[0], 1, c->y, &c->done, &status);
		memcpy(c->message, status.message, sizeof c->message);
		failed += c->code != WEFT_OK;
	}
	if (failed != FAIL)
		die("another number of kinds fails", status.message);
	for (int k = 0; k < RUNS; k++)
		check(&cases[k % VARIANTS], pool[k / VARIANTS % 4], threads[k / VARIANTS % 4]);
	printf("%d calls, %d of %d kinds fail\n", RUNS, failed, VARIANTS);
	for (int k = 0; k < 4; k++)
		model->threads_free(pool[k]);
	model->close(instance);
	free(sizes);
	free(work);
	return 0;
}
