/* tsan_weights MODEL.so: threads run the digits model, compiled with --replaceable-weights, without
 * a pause while one sets its last layer's bias: no run is refused, and each has all of one set. Run
 * under the thread sanitizer. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_model.h"

enum { RUNNERS = 3, LEAST = 10, CLASSES = 10, PIXELS = 64 };

static const WeftModel *model;
static WeftInstance *instance;
static _Atomic int stop, runs[RUNNERS];
static float first[CLASSES]; /* results with a bias of 0 */

static _Noreturn void die(const char *what, const char *text)
{
	fprintf(stderr, "%s: %s\n", what, text);
	exit(1);
}

static WeftTensor tensor(float *data, int32_t rank, int64_t *shape)
{
	return (WeftTensor){.data = data,
			    .device = {WEFT_CPU, 0},
			    .ndim = rank,
			    .dtype = {WEFT_FLOAT, 32, 1},
			    .shape = shape};
}

static void run(WeftSizes *sizes, void *work, const WeftThreads *t, float *y)
{
	static float pixels[PIXELS];
	int64_t in[4] = {1, 1, 8, 8}, out[2] = {1, CLASSES};
	WeftTensor x = tensor(pixels, 4, in), result = tensor(y, 2, out);
	const WeftContext c = {
		.size = sizeof c, .flags = WEFT_SHARE_ALL, .threads = t, .nthreads = t ? 2 : 1};
	WeftStatus status;
	if (model->run(instance, sizes, &x, &result, work, &c, &status))
		die("run", status.message);
}

static WeftSizes *make_sizes(void **work)
{
	int64_t in[4] = {1, 1, 8, 8};
	WeftTensor x = tensor(NULL, 4, in);
	WeftSizes *sizes = malloc(weft_entry(model, 0)->sizes_bytes);
	WeftStatus status;
	if (!sizes || model->sizes(instance, 0, &x, sizes, &status))
		die("sizes", status.message);
	*work = malloc(sizes->workspace_bytes);
	return sizes;
}

/* The bias is one number ten times: every result differs from the first by the same. */
static void *run_on(void *arg)
{
	_Atomic int *mine = arg;
	void *work;
	WeftSizes *sizes = make_sizes(&work);
	WeftThreads *t = mine == &runs[0] ? model->threads_new(WEFT_THREADS_POOL, 2, NULL) : NULL;
	while (!stop) {
		float y[CLASSES];
		run(sizes, work, t, y);
		for (int k = 1; k < CLASSES; k++)
			if (y[k] - first[k] - (y[0] - first[0]) > 1e-3f ||
			    y[k] - first[k] - (y[0] - first[0]) < -1e-3f)
				die("a run has some of one set and some of another", "");
		++*mine;
	}
	model->threads_free(t);
	free(sizes);
	free(work);
	return NULL;
}

static int set(const WeftParamInfo *bias, float value)
{
	float b[CLASSES];
	for (int k = 0; k < CLASSES; k++)
		b[k] = value;
	WeftTensor t = tensor(b, 1, (int64_t *)(uintptr_t)bias->dim);
	WeftStatus status;
	int code = model->set_weights(instance, 1, &bias->name, &t, NULL, &status);
	if (code && code != WEFT_ERR_BUSY)
		die("set_weights", status.message);
	return code == WEFT_OK;
}

static int all_ran(void)
{
	for (int k = 0; k < RUNNERS; k++)
		if (runs[k] < LEAST)
			return 0;
	return 1;
}

int main(int argc, char **argv)
{
	pthread_t thread[RUNNERS];
	const WeftParamInfo *bias = NULL;
	WeftStatus status;
	void *so = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL, *work;
	const WeftModel *(*get)(void);
	if (!so)
		die("usage: tsan_weights MODEL.so", argc > 1 ? dlerror() : "");
	*(void **)&get = dlsym(so, "weft_model");
	model = get();
	if (model->open(model, NULL, &instance, &status))
		die("open", status.message);
	for (uint32_t k = 0; k < model->nsource; k++)
		if (weft_source(model, k)->rank == 1 && weft_source(model, k)->dim[0] == CLASSES)
			bias = weft_source(model, k);
	if (!bias || !set(bias, 0))
		die("the model has no such bias", "");
	WeftSizes *sizes = make_sizes(&work);
	run(sizes, work, NULL, first);
	for (int k = 0; k < RUNNERS; k++)
		pthread_create(&thread[k], NULL, run_on, &runs[k]);
	int done = 0, busy = 0;
	for (int k = 0; done < 100 || !all_ran(); k++) {
		int ok = set(bias, (float)(k % 100));
		done += ok;
		busy += !ok;
	}
	stop = 1;
	for (int k = 0; k < RUNNERS; k++)
		pthread_join(thread[k], NULL);
	printf("%d sets of weights, %d refused, beside %d runs\n", done, busy,
	       runs[0] + runs[1] + runs[2]);
	model->close(instance);
	free(sizes);
	free(work);
	return 0;
}
