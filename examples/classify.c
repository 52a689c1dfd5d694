/* Classify the images of a file with compiled models, one after the other: accuracy, and time per
 * image set. Usage: classify IMAGES.safetensors MODEL.so... ; the file holds x.0, the images, and
 * label. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft.h"

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	return 1;
}

/* The share of rows of y whose largest element is at the label. */
static double accuracy(const float *y, const int64_t *label, int64_t rows, int64_t cols)
{
	int64_t right = 0;
	for (int64_t i = 0; i < rows; i++) {
		int64_t best = 0;
		for (int64_t k = 1; k < cols; k++)
			if (y[i * cols + k] > y[i * cols + best])
				best = k;
		right += best == label[i];
	}
	return (double)right / (double)rows;
}

/* The fastest of 200 runs, in seconds. */
static int run(const WeftModel *m, WeftInstance *instance, const WeftSizes *sizes,
	       const WeftTensor *x, WeftTensor *y, double *best, WeftStatus *status)
{
	void *work = malloc(sizes->workspace_bytes);
	WeftContext context = {.size = sizeof context, .nthreads = 1};
	int bad = 0;
	*best = 1e9;
	for (int k = 0; k < 200 && !bad; k++) {
		double start = now();
		bad = m->run(instance, sizes, x, y, work, &context, status);
		double t = now() - start;
		*best = t < *best ? t : *best;
	}
	free(work);
	return bad;
}

static int measure(const char *path, const WeftModel *m, WeftInstance *instance,
		   const WeftTensor *x, const int64_t *label, double *best)
{
	WeftStatus status = {0};
	const WeftEntry *e = weft_entry(m, 0);
	WeftSizes *sizes = malloc(e->sizes_bytes);
	float *data = NULL;
	int64_t shape[2];
	int bad = m->sizes(instance, 0, x, sizes, &status);
	if (!bad) {
		memcpy(shape, weft_output_shape(m, e, sizes, 0), sizeof shape);
		data = malloc((size_t)(shape[0] * shape[1]) * sizeof *data);
		WeftTensor y = {data,  {WEFT_CPU, 0}, 2, weft_output(m, e, 0)->dtype,
				shape, NULL,          0};
		bad = run(m, instance, sizes, x, &y, best, &status);
	}
	const char *slash = strrchr(path, '/');
	if (bad)
		fail(path, status.message);
	else
		printf("%-14s %5.1f %% of %lld images right, %8.3f ms\n", slash ? slash + 1 : path,
		       100 * accuracy(data, label, shape[0], shape[1]), (long long)shape[0],
		       1e3 * *best);
	free(data);
	free(sizes);
	return bad;
}

static int classify(const char *path, const WeftTensor *x, const int64_t *label, double *best)
{
	WeftStatus status = {0};
	WeftInstance *instance;
	const WeftModel *(*get)(void);
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		return fail(path, dlerror());
	*(void **)&get = dlsym(so, "weft_model");
	if (!get)
		return fail(path, "not a compiled model");
	const WeftModel *m = get();
	const char *wrong = weft_model_check(m);
	if (wrong)
		return fail(path, wrong);
	int bad = m->open(m, NULL, &instance, &status);
	if (bad)
		return fail(path, status.message);
	bad = measure(path, m, instance, x, label, best);
	m->close(instance);
	dlclose(so);
	return bad;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return fail("usage", "classify IMAGES.safetensors MODEL.so...");
	Weft *w = weft_new();
	const WeftTensors *t = w ? weft_tensors_read(w, argv[1]) : NULL;
	if (!t)
		return fail("error", w ? weft_messages(w) : "out of memory");
	const WeftTensor *x = weft_tensors_find(t, "x.0"), *label = weft_tensors_find(t, "label");
	if (!x || !label)
		return fail(argv[1], "no tensors x.0 and label");
	double first = 0, time = 0;
	for (int k = 2; k < argc; k++) {
		if (classify(argv[k], x, label->data, &time))
			return 1;
		first = k == 2 ? time : first;
	}
	if (argc > 3)
		printf("the first is %.1f times as fast as the last\n", time / first);
	weft_free(w);
	return 0;
}
