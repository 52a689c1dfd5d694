/* tsan_userop MODEL.so: 10,000 calls of tests/data/userop/threads.ir with the operators of
 * tests/system/c/user_ops.c, on pools of 1, 2, 3 and 8 threads: calls that share a phase, calls by
 * the thread that called run, and failures of each do the same every time. Run under the thread
 * sanitizer. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_model.h"

enum { RUNS = 10000, N = 1000, VARIANTS = 8, FAIL = 6 };

/* What one call is given, and what it gave on one thread. */
typedef struct {
	float x, y; /* the first elements */
	const char *message; /* NULL: passes */
	float z[N];
} Case;

static Case cases[VARIANTS] = {
	{.x = 1, .y = 2},
	{.x = -1, .y = 2, .message = "test::check: -1 in check 1"},
	{.x = 1, .y = -2, .message = "test::check: -2 in check 2"},
	{.x = -3, .y = -2, .message = "test::check: -3 in check 1"},
	{.x = 300, .y = -2, .message = "test::check: failed with 7"},
	{.x = 99.5, .y = 2, .message = "test::check: too much"}, /* in check 3 */
	/* in check 4, which check 5 has a phase with */
	{.x = 50, .y = 0, .message = "test::check: failed with 7"},
	{.x = 3, .y = 5},
};

static const WeftModel *model;
static WeftInstance *instance;
static WeftSizes *sizes;
static char *work;

static _Noreturn void die(const char *what, const char *text)
{
	fprintf(stderr, "%s: %s\n", what, text);
	exit(1);
}

static void check(Case *c, const WeftThreads *t, int32_t n, int first)
{
	static int64_t shape[] = {N};
	static float x[N], y[N], z[N];
	int64_t seen = 0;
	const WeftDevice cpu = {WEFT_CPU, 0};
	const WeftDType f32 = {WEFT_FLOAT, 32, 1}, i64 = {WEFT_INT, 64, 1};
	WeftTensor in[2] = {{x, cpu, 1, f32, shape, NULL, 0}, {y, cpu, 1, f32, shape, NULL, 0}};
	WeftTensor out[2] = {{z, cpu, 1, f32, shape, NULL, 0}, {&seen, cpu, 0, i64, NULL, NULL, 0}};
	static int64_t calls[8 * 8]; /* by thread: the sanitizer sees two calls with one number */
	WeftContext ctx = {.size = sizeof ctx,
			   .flags = WEFT_SHARE_ALL,
			   .threads = t,
			   .nthreads = n,
			   .user = calls};
	int64_t all = 0;
	memset(calls, 0, sizeof calls);
	WeftStatus status = {0};
	for (int i = 0; i < N; i++)
		x[i] = y[i] = (float)(i % 10);
	x[0] = c->x;
	y[0] = c->y;
	if (!sizes) {
		sizes = malloc(weft_entry(model, 0)->sizes_bytes);
		if (!sizes || model->sizes(instance, 0, in, sizes, &status))
			die("sizes", status.message);
		work = malloc(sizes->workspace_bytes);
	}
	int code = model->run(instance, sizes, in, out, work, &ctx, &status);
	if ((code != WEFT_OK) != (c->message != NULL) || code != status.code ||
	    strcmp(status.message, c->message ? c->message : ""))
		die("another outcome", status.message);
	for (int k = 0; k < 8; k++)
		all += calls[8 * k];
	for (int k = n; k < 8; k++)
		if (calls[8 * k])
			die("a thread of a higher number", "");
	if (code != WEFT_OK)
		return;
	if (all != 5)
		die("another number of calls", "");
	if (first)
		memcpy(c->z, z, sizeof z);
	if (seen != 123 || memcmp(z, c->z, sizeof z))
		die("another result", "");
}

int main(int argc, char **argv)
{
	static const int32_t threads[] = {1, 2, 3, 8};
	WeftThreads *pool[4];
	WeftStatus status = {0};
	void *so = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	const WeftModel *(*get)(void);
	if (!so)
		die("usage: tsan_userop MODEL.so", argc > 1 ? dlerror() : "");
	*(void **)&get = dlsym(so, "weft_model");
	model = get();
	if (model->open(model, NULL, &instance, &status))
		die("open", status.message);
	for (int k = 0; k < 4; k++)
		pool[k] = model->threads_new(WEFT_THREADS_POOL, threads[k], NULL);
	for (int k = 0; k < VARIANTS; k++)
		check(&cases[k], pool[0], 1, 1);
	for (int k = 0; k < RUNS; k++)
		check(&cases[k % VARIANTS], pool[k / VARIANTS % 4], threads[k / VARIANTS % 4], 0);
	printf("%d calls, %d of %d kinds fail\n", RUNS, FAIL, VARIANTS);
	for (int k = 0; k < 4; k++)
		model->threads_free(pool[k]);
	model->close(instance);
	free(sizes);
	free(work);
	return 0;
}
