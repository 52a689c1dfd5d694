/* Train a compiled network by gradient descent:
 *
 *     weft compile loss.pt2 --grad=params --replaceable-weights -o loss.so
 *     cc train.c -Iinclude ./loss.so -o train && ./train
 *
 * The network learns which of x[0], x[1], x[2] is the largest, from random weights. Prints the loss
 * of every 50th step. */
#include <stdio.h>
#include <stdlib.h>

#include "weft_saved.h"

enum { ROWS = 64, STEPS = 300 };
static const float RATE = 0.5f;

const WeftModel *weft_model(void); /* loss.so */
static const WeftModel *m;
static WeftInstance *net;

static void check(int code, const WeftStatus *status)
{
	if (code)
		exit((fprintf(stderr, "%s\n", status->message), 1));
}

static void check_text(const char *why)
{
	if (why)
		exit((fprintf(stderr, "%s\n", why), 1));
}

/* Row-major tensors of the type that the model says; the caller frees what it points at. */
static WeftTensor tensor(const WeftTensorInfo *t, void *data, const int64_t *shape)
{
	WeftTensor r = {
		.data = data, .device = {WEFT_CPU, 0}, .ndim = (int32_t)t->rank, .dtype = t->dtype};
	r.shape = malloc(t->rank * sizeof *shape + 1);
	for (uint32_t d = 0; d < t->rank; d++)
		r.shape[d] = shape ? shape[d] : weft_dim(m, t, d)->value;
	return r;
}

static size_t count(const WeftTensor *t)
{
	size_t n = 1;
	for (int32_t d = 0; d < t->ndim; d++)
		n *= (size_t)t->shape[d];
	return n;
}

static WeftSizes *sizes_of(uint32_t entry, const WeftTensor *in)
{
	WeftStatus status = {0};
	WeftSizes *sizes = malloc(weft_entry(m, entry)->sizes_bytes);
	check(m->sizes(net, entry, in, sizes, &status), &status);
	return sizes;
}

static void run(WeftSizes *sizes, const WeftTensor *in, WeftTensor *out)
{
	WeftStatus status = {0};
	void *work = malloc(sizes->workspace_bytes + 1);
	check(m->run(net, sizes, in, out, work, NULL, &status), &status);
	free(work);
	free(sizes);
}

static float uniform(void)
{
	static uint32_t state = 1;
	state = state * 1664525u + 1013904223u;
	return (float)(state >> 8) / (1 << 23) - 1;
}

static void draw(float *x, int64_t *label)
{
	for (int r = 0; r < ROWS; r++, x += 4) {
		for (int k = 0; k < 4; k++)
			x[k] = uniform();
		label[r] = x[0] > x[1] ? (x[0] > x[2] ? 0 : 2) : x[1] > x[2] ? 1 : 2;
	}
}

/* One step: the loss, and weight k -= RATE * gradient k. names: of the weights, in the order of the
 * gradients. */
static float step(WeftTensor *weight, WeftTensor *gradient, const char *const *names, uint32_t n)
{
	static float x[ROWS * 4], loss, one = 1;
	static int64_t label[ROWS];
	const WeftEntry *forward = weft_entry(m, 1), *backward = weft_entry(m, 2);
	const uint32_t most =
		forward->ninput > backward->ninput ? forward->ninput : backward->ninput;
	WeftTensor *in = calloc(most, sizeof *in), *out = calloc(forward->noutput, sizeof *out);
	WeftStatus status = {0};
	draw(x, label);
	in[0] = tensor(weft_input(m, forward, 0), x, (int64_t[]){ROWS, 4});
	in[1] = tensor(weft_input(m, forward, 1), label, (int64_t[]){ROWS});
	out[0] = tensor(weft_output(m, forward, 0), &loss, NULL);
	WeftSizes *sizes = sizes_of(1, in);
	uint64_t bytes = weft_saved_bytes(m, forward, sizes);
	void *saved = aligned_alloc(WEFT_SAVED_ALIGN, bytes);
	check_text(weft_saved_outputs(m, forward, sizes, saved, bytes, out));
	run(sizes, in, out);
	check_text(weft_saved_inputs(m, backward, saved, bytes, in));
	uint32_t ct = backward->ninput - 1; /* the inputs, what was saved, the cotangent of the
	                                       loss */
	in[ct] = tensor(weft_input(m, backward, ct), &one, NULL);
	run(sizes_of(2, in), in, gradient);
	for (uint32_t k = 0; k < n; k++)
		for (size_t i = 0, count_k = count(&weight[k]); i < count_k; i++)
			((float *)weight[k].data)[i] -= RATE * ((float *)gradient[k].data)[i];
	check(m->set_weights(net, n, names, weight, NULL, &status), &status);
	free(in[0].shape), free(in[1].shape), free(in[ct].shape), free(out[0].shape), free(saved);
	free(in), free(out);
	return loss;
}

int main(void)
{
	m = weft_model();
	WeftStatus status = {0};
	check_text(weft_model_check(m));
	check(m->open(m, NULL, &net, &status), &status);
	const WeftEntry *backward = weft_entry(m, 2);
	const uint32_t n = backward->noutput;
	WeftTensor *weight = calloc(n, sizeof *weight), *gradient = calloc(n, sizeof *gradient);
	const char **names = calloc(n, sizeof *names);
	for (uint32_t k = 0; k < n; k++) { /* output k is g.NAME */
		const WeftTensorInfo *t = weft_output(m, backward, k);
		names[k] = t->name + 2;
		weight[k] = tensor(t, NULL, NULL);
		gradient[k] = tensor(t, NULL, NULL);
		weight[k].data = malloc(count(&weight[k]) * sizeof(float));
		gradient[k].data = malloc(count(&weight[k]) * sizeof(float));
		for (size_t i = 0; i < count(&weight[k]); i++)
			((float *)weight[k].data)[i] = uniform() / 2;
	}
	check(m->set_weights(net, n, names, weight, NULL, &status), &status);
	for (int k = 0; k <= STEPS; k++) {
		float loss = step(weight, gradient, names, n);
		if (k % 50 == 0)
			printf("%3d  %.3f\n", k, (double)loss);
	}
	for (uint32_t k = 0; k < n; k++)
		free(weight[k].data), free(weight[k].shape), free(gradient[k].data),
			free(gradient[k].shape);
	free(weight), free(gradient), free(names);
	m->close(net);
}
