/* New weights through the C interface, where the answer is known: set_weights MODEL.so, compiled
 * from examples/digits with --replaceable-weights. With the last layer's bias 0 and its weight 2^j
 * * (k == column), output j is exactly 2^j times feature `column`: a value in the wrong place of
 * the packed weight shows. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_model.h"

enum { BATCH = 3, CLASSES = 10, FEATURES = 64, PIXELS = 64 };

typedef struct {
	const WeftModel *m;
	WeftInstance *in;
	WeftSizes *sizes;
	void *work;
	WeftStatus status;
	float x[BATCH * PIXELS], y[BATCH * CLASSES];
} Model;

static WeftTensor tensor(void *data, int64_t *shape, int32_t rank)
{
	return (WeftTensor){.data = data,
			    .device = {WEFT_CPU, 0},
			    .ndim = rank,
			    .dtype = {WEFT_FLOAT, 32, 1},
			    .shape = shape};
}

static int run(Model *t)
{
	int64_t in[4] = {BATCH, 1, 8, 8}, out[2] = {BATCH, CLASSES};
	WeftTensor x = tensor(t->x, in, 4), y = tensor(t->y, out, 2);
	if (!t->sizes) {
		t->sizes = malloc(weft_entry(t->m, 0)->sizes_bytes);
		if (!t->sizes || t->m->sizes(t->in, 0, &x, t->sizes, &t->status))
			return 0;
		t->work = malloc(t->sizes->workspace_bytes + 1);
	}
	return t->m->run(t->in, t->sizes, &x, &y, t->work, NULL, &t->status) == WEFT_OK;
}

static const WeftParamInfo *param(const Model *t, uint32_t rank, int64_t first, int64_t last)
{
	for (uint32_t k = 0; k < t->m->nparam; k++) {
		const WeftParamInfo *p = weft_param(t->m, k);
		if (*p->name && p->rank == rank && p->dim[0] == first && p->dim[rank - 1] == last)
			return p;
	}
	return NULL;
}

static int set(Model *t, const WeftParamInfo *p, float *data)
{
	WeftTensor v = tensor(data, (int64_t *)(uintptr_t)p->dim, (int32_t)p->rank);
	return t->m->set_weights(t->in, 1, &p->name, &v, NULL, &t->status) == WEFT_OK;
}

static int column_shows(Model *t, const WeftParamInfo *weight, int column, float *sum)
{
	float w[CLASSES * FEATURES] = {0};
	for (int j = 0; j < CLASSES; j++)
		w[j * FEATURES + column] = (float)(1 << j);
	if (!set(t, weight, w) || !run(t))
		return 0;
	for (int b = 0; b < BATCH; b++)
		for (int j = 0; j < CLASSES; j++)
			if (t->y[b * CLASSES + j] != (float)(1 << j) * t->y[b * CLASSES])
				return 0;
	for (int b = 0; b < BATCH; b++)
		*sum += t->y[b * CLASSES] < 0 ? -t->y[b * CLASSES] : t->y[b * CLASSES];
	return 1;
}

static int check(Model *t)
{
	const WeftParamInfo *weight = param(t, 2, CLASSES, FEATURES),
			    *bias = param(t, 1, CLASSES, CLASSES);
	float zero[CLASSES] = {0}, sum = 0;
	if (!weight || !bias || !t->m->replaceable || !set(t, bias, zero))
		return fprintf(stderr, "no replaceable last layer: %s\n", t->status.message), 0;
	for (int k = 0; k < FEATURES; k++)
		if (!column_shows(t, weight, k, &sum))
			return fprintf(stderr, "column %d: wrong output; %s\n", k,
				       t->status.message),
			       0;
	if (!(sum > 0))
		return fprintf(stderr, "all features are 0: nothing was tested\n"), 0;
	return 1;
}

int main(int argc, char **argv)
{
	Model t = {0};
	const WeftModel *(*get)(void);
	void *so = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!so)
		return fprintf(stderr, "usage: set_weights MODEL.so\n"), 1;
	*(void **)&get = dlsym(so, "weft_model");
	t.m = get();
	for (int k = 0; k < BATCH * PIXELS; k++)
		t.x[k] = (float)(k * 7 % 17) / 16;
	if (weft_model_check(t.m))
		return fprintf(stderr, "%s\n", weft_model_check(t.m)), 1;
	if (t.m->open(t.m, NULL, &t.in, &t.status))
		return fprintf(stderr, "%s\n", t.status.message), 1;
	int ok = check(&t);
	t.m->close(t.in);
	free(t.sizes);
	free(t.work);
	return !ok;
}
