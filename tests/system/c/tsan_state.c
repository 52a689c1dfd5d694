/* tsan_state MODEL.so: calls of tests/data/state/checked.pt2 on pools of 1, 2, 3 and 8 threads, of
 * which every third fails after it wrote state: then all of it is as it was. Eight threads step
 * eight clones at the same time; two threads step one instance, where a call is refused rather than
 * that they meet. Run under the thread sanitizer. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_model.h"

enum { STEPS = 1200, N = 32, STATES = 3, MOST = 64 * 32, CLONES = 8 };

static const WeftModel *model;

static _Noreturn void die(const char *what, const char *text)
{
	fprintf(stderr, "%s: %s\n", what, text);
	exit(1);
}

/* What a caller has for one call at a time. */
typedef struct {
	WeftInstance *in;
	WeftSizes *sizes;
	char *work;
	float x[N], limit[2], y[N];
	char state[STATES][4 * MOST];
} Caller;

static const WeftDevice cpu = {WEFT_CPU, 0};
static const WeftDType f32 = {WEFT_FLOAT, 32, 1};

static int step(Caller *c, uint32_t k, const WeftThreads *t, int32_t n, WeftStatus *status)
{
	int64_t xs[] = {1, N}, ls[] = {2}, ys[] = {N};
	WeftTensor in[2] = {{c->x, cpu, 2, f32, xs, NULL, 0}, {c->limit, cpu, 1, f32, ls, NULL, 0}};
	WeftTensor out = {c->y, cpu, 1, f32, ys, NULL, 0};
	WeftContext ctx = {
		.size = sizeof ctx, .flags = WEFT_SHARE_ALL, .threads = t, .nthreads = n};
	for (uint32_t i = 0; i < N; i++)
		c->x[i] = (float)((k * 7 + i * 3) % 11) - 5;
	c->limit[0] = k % 6 == 2 ? 0 : 1e6f;
	c->limit[1] = k % 6 == 5 ? 0 : 1e6f;
	if (!c->sizes) {
		c->sizes = malloc(weft_entry(model, 0)->sizes_bytes);
		if (!c->sizes || model->sizes(c->in, 0, in, c->sizes, status))
			die("sizes", status->message);
		c->work = malloc(c->sizes->workspace_bytes);
	}
	return model->run(c->in, c->sizes, in, &out, c->work, &ctx, status);
}

static void get_state(Caller *c, char to[STATES][4 * MOST])
{
	WeftStatus status;
	for (uint32_t k = 0; k < STATES; k++) {
		const WeftTensorInfo *s = weft_state_info(model, k);
		int64_t dim[2];
		for (uint32_t d = 0; d < s->rank; d++)
			dim[d] = weft_dim(model, s, d)->value;
		WeftTensor t = {to[k], cpu, (int32_t)s->rank, s->dtype, dim, NULL, 0};
		if (s->bytes > sizeof to[k] || model->state_get(c->in, k, &t, &status))
			die("state_get", status.message);
	}
}

static void open_caller(Caller *c)
{
	WeftStatus status;
	memset(c, 0, sizeof *c);
	if (model->open(model, NULL, &c->in, &status))
		die("open", status.message);
}

static void close_caller(Caller *c)
{
	model->close(c->in);
	free(c->sizes);
	free(c->work);
}

/* All steps; a call that fails leaves state alone. */
static void all_steps(Caller *c, const WeftThreads *t, int32_t n)
{
	static __thread char before[STATES][4 * MOST];
	WeftStatus status;
	get_state(c, c->state);
	for (uint32_t k = 0; k < STEPS; k++) {
		memcpy(before, c->state, sizeof before);
		int code = step(c, k, t, n, &status);
		get_state(c, c->state);
		if (code != (k % 3 == 2 ? WEFT_ERR_CHECK : WEFT_OK))
			die("another outcome", status.message);
		if (code && memcmp(before, c->state, sizeof before))
			die("a call that failed changed state", status.message);
		if (!code && !memcmp(before, c->state, sizeof before))
			die("a call changed no state", "");
	}
}

static Caller clones[CLONES];

static void *step_clone(void *arg)
{
	WeftStatus status;
	WeftThreads *t = model->threads_new(WEFT_THREADS_SERIAL, 1, &status);
	all_steps(arg, t, 1);
	model->threads_free(t);
	return NULL;
}

/* Two callers, one instance: how many calls did something. */
static void *step_shared(void *arg)
{
	static int64_t done[2];
	Caller *c = arg;
	WeftStatus status;
	WeftThreads *t = model->threads_new(WEFT_THREADS_SERIAL, 1, &status);
	int64_t *mine = &done[c == &clones[1]];
	for (uint32_t k = 0; k < STEPS; k++) {
		int code = step(c, 6, t, 1, &status);
		if (code != WEFT_OK && code != WEFT_ERR_BUSY)
			die("shared", status.message);
		*mine += code == WEFT_OK;
	}
	model->threads_free(t);
	return mine;
}

int main(int argc, char **argv)
{
	static const int32_t threads[] = {1, 2, 3, 8};
	static Caller first, other;
	static WeftStatus status;
	pthread_t thread[CLONES];
	void *so = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	const WeftModel *(*get)(void);
	if (!so)
		die("usage: tsan_state MODEL.so", argc > 1 ? dlerror() : "");
	*(void **)&get = dlsym(so, "weft_model");
	model = get();
	if (weft_model_check(model) || model->nstate != STATES)
		die("another model", "");
	for (int k = 0; k < 4; k++) {
		Caller *c = k ? &other : &first;
		WeftThreads *pool = model->threads_new(WEFT_THREADS_POOL, threads[k], &status);
		open_caller(c);
		all_steps(c, pool, threads[k]);
		if (memcmp(c->state, first.state, sizeof first.state))
			die("another state with more threads", "");
		model->threads_free(pool);
		if (k)
			close_caller(c);
	}
	if (model->state_reset(first.in, &status))
		die("reset", status.message);
	for (int k = 0; k < CLONES; k++) {
		memset(&clones[k], 0, sizeof clones[k]);
		if (model->clone(first.in, &clones[k].in, &status))
			die("clone", status.message);
		pthread_create(&thread[k], NULL, step_clone, &clones[k]);
	}
	for (int k = 0; k < CLONES; k++) {
		pthread_join(thread[k], NULL);
		if (memcmp(clones[k].state, first.state, sizeof first.state))
			die("another state of a clone", "");
	}
	WeftInstance *own = clones[1].in;
	int64_t before, after, all = 0;
	get_state(&clones[0], clones[0].state);
	memcpy(&before, clones[0].state[2], sizeof before);
	clones[1].in = clones[0].in;
	for (int k = 0; k < 2; k++)
		pthread_create(&thread[k], NULL, step_shared, &clones[k]);
	for (int k = 0; k < 2; k++) {
		void *n;
		pthread_join(thread[k], &n);
		all += *(int64_t *)n;
	}
	get_state(&clones[0], clones[0].state);
	memcpy(&after, clones[0].state[2], sizeof after);
	if (after - before != all)
		die("two threads on one instance", "lost a step");
	clones[1].in = own;
	for (int k = 0; k < CLONES; k++)
		close_caller(&clones[k]);
	close_caller(&first);
	printf("%d steps on 1, 2, 3 and 8 threads and on %d clones; of %d on a shared instance "
	       "%lld\n",
	       STEPS, CLONES, 2 * STEPS, (long long)all);
	return 0;
}
