/* Use a compiled model from C: load it, run it from two threads at once, print the result.
 *
 *     cc -Iinclude examples/run_model.c -o run_model -pthread
 *     ./run_model model.so [CYCLES]
 *
 * Inputs are made up: a ramp for floats, small numbers for integers. With CYCLES the model is
 * loaded, run and unloaded that often. The threads use a pool of POSIX threads each. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_file.h"
#include "weft_model.h"

/* Everything one thread needs; nothing of it is shared but the instance and the sizes. */
typedef struct {
	const WeftModel *model;
	WeftInstance *instance;
	const WeftSizes *sizes;
	const WeftTensor *inputs;
	WeftTensor *outputs;
	WeftStatus status;
} Caller;

static void *xmalloc(size_t n)
{
	void *p = malloc(n ? n : 1);
	if (!p)
		exit((fputs("out of memory\n", stderr), 1));
	return p;
}

static void die(const char *what, const WeftStatus *status)
{
	fprintf(stderr, "%s: %s\n", what, status->message);
	exit(1);
}

static size_t fill(WeftTensor *t, const WeftTensorInfo *info, const int64_t *shape)
{
	size_t n = 1;
	memset(t, 0, sizeof *t);
	t->device.type = WEFT_CPU;
	t->dtype = info->dtype;
	t->ndim = (int32_t)info->rank;
	t->shape = xmalloc(info->rank * sizeof *shape);
	for (uint32_t d = 0; d < info->rank; d++)
		n *= (size_t)(t->shape[d] = shape[d]);
	t->data = xmalloc(n * info->dtype.bits / 8);
	memset(t->data, 0, n * info->dtype.bits / 8);
	return n;
}

static void make_input(WeftTensor *t, const WeftModel *m, const WeftEntry *e,
		       const WeftTensorInfo *info)
{
	int64_t shape[16];
	for (uint32_t d = 0; d < info->rank; d++) {
		/* A symbolic extent: the smallest one allowed, but at least 2. */
		const WeftDim *dim = weft_dim(m, info, d);
		int64_t lo = dim->symbol < 0 ? 1 : weft_symbol(m, e, (uint32_t)dim->symbol)->lo;
		shape[d] = dim->value >= 0 ? dim->value : lo < 2 ? 2 : lo;
	}
	size_t n = fill(t, info, shape);
	for (size_t i = 0; i < n; i++) {
		if (info->dtype.code == WEFT_FLOAT && info->dtype.bits == 32)
			((float *)t->data)[i] = (float)(i % 100) / 100;
		if (info->dtype.code == WEFT_INT && info->dtype.bits == 64)
			((int64_t *)t->data)[i] = (int64_t)(i % 7);
	}
}

static void *call(void *arg)
{
	Caller *c = arg;
	WeftStatus status = {0};
	WeftContext context = {.size = sizeof context, .nthreads = 2};
	WeftThreads *pool = c->model->threads_new(WEFT_THREADS_POOL, 2, &status);
	if (!pool)
		die("threads", &status);
	context.threads = pool;
	void *work = xmalloc(c->sizes->workspace_bytes);
	for (int k = 0; k < 10; k++)
		if (c->model->run(c->instance, c->sizes, c->inputs, c->outputs, work, &context,
				  &c->status))
			break;
	free(work);
	c->model->threads_free(pool);
	return NULL;
}

static void free_tensors(WeftTensor *t, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		free(t[k].data);
		free(t[k].shape);
	}
	free(t);
}

static void print_outputs(const WeftModel *m, const WeftEntry *e, const WeftTensor *t)
{
	for (uint32_t k = 0; k < e->noutput; k++) {
		printf("%s:", weft_output(m, e, k)->name);
		size_t n = 1;
		for (int32_t d = 0; d < t[k].ndim; d++)
			n *= (size_t)t[k].shape[d];
		for (size_t i = 0;
		     i < n && i < 10 && t[k].dtype.code == WEFT_FLOAT && t[k].dtype.bits == 32; i++)
			printf(" %.6g", (double)((float *)t[k].data)[i]);
		puts(n > 10 ? " ..." : "");
	}
}

static size_t bytes_of(const WeftTensor *t)
{
	size_t n = t->dtype.bits / 8;
	for (int32_t d = 0; d < t->ndim; d++)
		n *= (size_t)t->shape[d];
	return n;
}

/* Two threads run the model on the same inputs; their results must be equal. */
static void use(const WeftModel *m, int print)
{
	WeftStatus status = {0};
	WeftInstance *instance;
	const WeftEntry *e = weft_entry(m, 0);
	const char *wrong = weft_model_check(m);
	if (wrong)
		exit((fprintf(stderr, "%s\n", wrong), 1));
	if (m->open(m, NULL, &instance, &status))
		die("open", &status);
	WeftTensor *inputs = xmalloc(e->ninput * sizeof *inputs);
	for (uint32_t k = 0; k < e->ninput; k++)
		make_input(&inputs[k], m, e, weft_input(m, e, k));
	WeftSizes *sizes = xmalloc(e->sizes_bytes);
	if (m->sizes(instance, 0, inputs, sizes, &status))
		die("sizes", &status);
	Caller c[2];
	pthread_t thread[2];
	for (int i = 0; i < 2; i++) {
		memset(&c[i], 0, sizeof c[i]);
		c[i].model = m, c[i].instance = instance, c[i].sizes = sizes, c[i].inputs = inputs;
		c[i].outputs = xmalloc(e->noutput * sizeof *inputs);
		for (uint32_t k = 0; k < e->noutput; k++)
			fill(&c[i].outputs[k], weft_output(m, e, k),
			     weft_output_shape(m, e, sizes, k));
		if (pthread_create(&thread[i], NULL, call, &c[i]))
			exit((fputs("cannot start a thread\n", stderr), 1));
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		if (c[i].status.code)
			die("run", &c[i].status);
	}
	if (print)
		print_outputs(m, e, c[0].outputs);
	for (uint32_t k = 0; k < e->noutput; k++)
		if (memcmp(c[0].outputs[k].data, c[1].outputs[k].data, bytes_of(&c[0].outputs[k])))
			exit((fputs("the threads disagree\n", stderr), 1));
	for (int i = 0; i < 2; i++)
		free_tensors(c[i].outputs, e->noutput);
	free_tensors(inputs, e->ninput);
	free(sizes);
	m->close(instance);
}

int main(int argc, char **argv)
{
	int cycles = argc > 2 ? atoi(argv[2]) : 1;
	if (argc < 2)
		return fputs("usage: run_model MODEL.so [CYCLES]\n", stderr), 1;
	for (int k = 0; k < cycles; k++) {
		const WeftModel *(*get)(void);
		WeftStatus status;
		if (weft_file_check(argv[1], &status)) /* a copy that is not whole */
			return fprintf(stderr, "%s\n", status.message), 1;
		void *so = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		if (!so)
			return fprintf(stderr, "%s\n", dlerror()), 1;
		*(void **)&get = dlsym(so, "weft_model");
		if (!get)
			return fputs("not a compiled model\n", stderr), 1;
		use(get(), k == 0);
		dlclose(so);
	}
	return 0;
}
