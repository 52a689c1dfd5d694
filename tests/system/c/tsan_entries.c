/* tsan_entries MODEL.so: the two entries of tests/golden/graphs, compiled with
 * --replaceable-weights. Threads step one instance, peek at its state, replace its weights, put the
 * state back, and step clones, all at the same time. A call is refused (busy) or right: it sees all
 * of one state and all of one set of weights. Run under the thread sanitizer. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_call.h"

enum { LEAST = 60, STEP = 0, PEEK = 1, UNIT = 32768 };

static const WeftModel *model;
static WeftInstance *instance;
static _Atomic int stop, steps[2], peeks[2], sets, resets, clones;

static _Noreturn void die(const char *what, const char *text)
{
	fprintf(stderr, "%s: %s\n", what, text);
	exit(1);
}

/* Of one thread, for one entry. */
typedef struct {
	WeftSizes *sizes;
	void *work;
} Room;

static WeftTensor vector(float *x, int32_t rank, const int64_t *shape)
{
	return weft_tensor(x, WEFT_F32, rank, shape);
}

static Room room(uint32_t entry, const WeftTensor *x)
{
	WeftStatus status;
	Room r = {.sizes = malloc(weft_entry(model, entry)->sizes_bytes)};
	if (!r.sizes || model->sizes(instance, entry, x, r.sizes, &status))
		die("sizes", status.message);
	r.work = malloc(r.sizes->workspace_bytes);
	return r;
}

static int run(WeftInstance *in, const Room *r, const WeftTensor *x, WeftTensor *y)
{
	const WeftContext c = {.size = sizeof c, .flags = WEFT_SHARE_ALL, .nthreads = 2};
	WeftStatus status;
	int code = model->run(in, r->sizes, x, y, r->work, &c, &status);
	if (code && code != WEFT_ERR_BUSY)
		die("run", status.message);
	return code == WEFT_OK;
}

/* After n steps `total` is n and the first contents; all weights are one multiple of UNIT. */
static int one_step(WeftInstance *in, const Room *r)
{
	static float ones[3] = {1, 1, 1};
	const int64_t row[2] = {1, 3};
	const WeftTensor x = vector(ones, 2, row);
	float y[3];
	int64_t twice;
	WeftTensor out[2] = {vector(y, 2, row), weft_tensor(&twice, WEFT_I64, 0, NULL)};
	if (!run(in, r, &x, out))
		return 0;
	if (y[0] - y[1] != 0.25f || y[1] - y[2] != 0.125f)
		die("a step has some of one state and some of another", "");
	if ((int64_t)(y[0] - 0.5f) % UNIT != twice / 2)
		die("a step has the sum of one state and the number of another", "");
	return 1;
}

static Room step_room(void)
{
	static float ones[3] = {1, 1, 1};
	const int64_t row[2] = {1, 3};
	const WeftTensor x = vector(ones, 2, row);
	return room(STEP, &x);
}

static void leave(const Room *r)
{
	free(r->sizes);
	free(r->work);
}

static void *stepper(void *arg)
{
	_Atomic int *mine = arg;
	const Room r = step_room();
	while (!stop)
		*mine += one_step(instance, &r);
	leave(&r);
	return NULL;
}

static void *peeker(void *arg)
{
	_Atomic int *mine = arg;
	float scale[3] = {1, 2, 4}, y[3], z[3];
	const int64_t three = 3;
	const WeftTensor x = vector(scale, 1, &three);
	const Room r = room(PEEK, &x);
	WeftTensor out[2] = {vector(y, 1, &three), vector(z, 1, &three)};
	while (!stop) {
		if (!run(instance, &r, &x, out))
			continue;
		if (y[0] - 0.5f != y[1] / 2 - 0.25f || y[0] - 0.5f != y[2] / 4 - 0.125f)
			die("a peek has some of one state and some of another", "");
		if (z[0] != z[1] || z[1] != z[2])
			die("a peek has some of one set of weights and some of another", "");
		++*mine;
	}
	leave(&r);
	return NULL;
}

static void set(int k)
{
	float w[9];
	const int64_t shape[2] = {3, 3};
	const WeftTensor t = vector(w, 2, shape);
	const char *name = weft_source(model, 0)->name;
	WeftStatus status;
	for (int i = 0; i < 9; i++)
		w[i] = (float)(k % 4 * UNIT);
	int code = model->set_weights(instance, 1, &name, &t, NULL, &status);
	if (code && code != WEFT_ERR_BUSY)
		die("set_weights", status.message);
	sets += code == WEFT_OK;
}

static void *setter(void *arg)
{
	(void)arg;
	for (int k = 0; !stop; k++)
		set(k);
	return NULL;
}

/* Begins anew, looks at the state, and steps a clone. */
static void *keeper(void *arg)
{
	const Room r = step_room();
	WeftStatus status;
	(void)arg;
	while (!stop) {
		int64_t calls;
		const WeftTensor t = weft_tensor(&calls, WEFT_I64, 0, NULL);
		WeftInstance *copy;
		int code = model->state_reset(instance, &status);
		if (code && code != WEFT_ERR_BUSY)
			die("state_reset", status.message);
		resets += code == WEFT_OK;
		code = model->state_get(instance, (uint32_t)weft_state_index(model, "calls"), &t,
					&status);
		if (code && code != WEFT_ERR_BUSY)
			die("state_get", status.message);
		if (!code && (calls < 0 || calls >= UNIT))
			die("the number of steps is none", "");
		if (model->clone(instance, &copy, &status)) {
			if (status.code != WEFT_ERR_BUSY)
				die("clone", status.message);
			continue;
		}
		if (!one_step(copy, &r))
			die("a clone that nobody else uses is busy", "");
		model->close(copy);
		clones++;
	}
	leave(&r);
	return NULL;
}

static int enough(void)
{
	return steps[0] + steps[1] >= LEAST && peeks[0] >= LEAST && peeks[1] >= LEAST &&
	       sets >= LEAST && resets >= LEAST && clones >= LEAST;
}

int main(int argc, char **argv)
{
	WeftStatus status;
	void *so = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	const WeftModel *(*get)(void);
	if (!so)
		die("usage: tsan_entries MODEL.so", argc > 1 ? dlerror() : "");
	*(void **)&get = dlsym(so, "weft_model");
	model = get();
	if (model->nentry != 2 || model->nsource != 1 || weft_state_index(model, "calls") < 0)
		die("another model", argv[1]);
	if (model->open(model, NULL, &instance, &status))
		die("open", status.message);
	set(1);
	pthread_t t[6];
	void *(*const what[6])(void *) = {stepper, stepper, peeker, peeker, setter, keeper};
	_Atomic int *const count[6] = {&steps[0], &steps[1], &peeks[0], &peeks[1], NULL, NULL};
	for (int k = 0; k < 6; k++)
		pthread_create(&t[k], NULL, what[k], (void *)count[k]);
	while (!enough())
		sched_yield();
	stop = 1;
	for (int k = 0; k < 6; k++)
		pthread_join(t[k], NULL);
	model->close(instance);
	printf("%d steps, %d peeks, %d sets, %d resets, %d clones\n", steps[0] + steps[1],
	       peeks[0] + peeks[1], sets, resets, clones);
	return 0;
}
