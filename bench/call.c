/* The cost of a call: call MODEL.so [ROUNDS [CALLS]] runs the model's first entry, whose inputs are
 * zeros of known shapes, on one thread, with memory that is made once, and prints the least mean of
 * a round's calls in nanoseconds. bench/call.py makes the model and compares builds. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "weft_model.h"

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void fail(const char *why)
{
	fprintf(stderr, "call: %s\n", why);
	exit(1);
}

/* A tensor of zeros; shape[] may change while no call is in progress. */
static WeftTensor tensor_of(const WeftModel *m, const WeftTensorInfo *info)
{
	int64_t *shape = calloc(info->rank + 1, sizeof *shape);
	uint64_t bytes = info->dtype.bits / 8;
	if (!shape)
		fail("out of memory");
	for (uint32_t d = 0; d < info->rank; d++) {
		shape[d] = weft_dim(m, info, d)->value;
		if (shape[d] < 0)
			fail("the model has symbolic sizes");
		bytes *= (uint64_t)shape[d];
	}
	WeftTensor t = {.device = {WEFT_CPU, 0},
			.ndim = (int32_t)info->rank,
			.dtype = info->dtype,
			.shape = shape};
	if (!(t.data = aligned_alloc(64, bytes / 64 * 64 + 64)))
		fail("out of memory");
	for (uint64_t k = 0; k < bytes; k++)
		((char *)t.data)[k] = 0;
	return t;
}

int main(int argc, char **argv)
{
	const int rounds = argc > 2 ? atoi(argv[2]) : 20, calls = argc > 3 ? atoi(argv[3]) : 100000;
	const WeftModel *(*get)(void);
	if (argc < 2 || rounds < 1 || calls < 1)
		fail("usage: call MODEL.so [ROUNDS [CALLS]]");
	void *library = dlopen(argv[1], RTLD_NOW);
	if (!library || !(*(void **)&get = dlsym(library, "weft_model")))
		fail(dlerror());
	const WeftModel *m = get();
	WeftStatus status = {0};
	WeftInstance *in;
	if (weft_model_check(m))
		fail(weft_model_check(m));
	if (m->open(m, NULL, &in, &status))
		fail(status.message);
	const WeftEntry *e = weft_entry(m, 0);
	WeftTensor *x = calloc(e->ninput + 1, sizeof *x), *y = calloc(e->noutput + 1, sizeof *y);
	WeftSizes *sizes = malloc(e->sizes_bytes);
	if (!x || !y || !sizes)
		fail("out of memory");
	for (uint32_t k = 0; k < e->ninput; k++)
		x[k] = tensor_of(m, weft_input(m, e, k));
	for (uint32_t k = 0; k < e->noutput; k++)
		y[k] = tensor_of(m, weft_output(m, e, k));
	if (m->sizes(in, 0, x, sizes, &status))
		fail(status.message);
	void *work = malloc(sizes->workspace_bytes + 1);
	const WeftContext context = {.size = sizeof context, .nthreads = 1};
	double least = 1e30;
	for (int r = 0; r < rounds; r++) {
		const double begin = now();
		for (int k = 0; k < calls; k++)
			if (m->run(in, sizes, x, y, work, &context, &status))
				fail(status.message);
		const double mean = (now() - begin) / calls;
		least = mean < least ? mean : least;
	}
	printf("%.2f\n", least);
	return 0;
}
