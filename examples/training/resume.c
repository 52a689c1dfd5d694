/* Trains a model, and goes on after it was stopped in any way, kill -9 included, with the same bits
 * as without a stop: resume STEP.so CHECKPOINT STEPS EVERY.
 *
 * STEP.so has the entry `step` of weft compile --train: a batch of f32 images of a fixed size,
 * labels of classes from 0 on, and lr. It links nothing of Weft. Data are a function of the number
 * of the step; a program with data in a file saves the place in it in the same way.
 *
 *     cc -O2 resume.c -I include -ldl -o resume */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "weft_call.h"
#include "weft_checkpoint.h"
#include "weft_file.h"

enum { CLASSES = 4, MOST = 1 << 16 };

static float image[MOST];
static int64_t label[MOST];

/* A number from 0 to below n that depends on the state alone. */
static uint32_t draw(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % n;
}

/* Draws a batch: waves across the image, of a frequency for each class, with noise. */
static void next_batch(int64_t step, const int64_t *shape)
{
	uint64_t state = (uint64_t)step + 1;
	const int64_t size = shape[1] * shape[2] * shape[3];
	for (int64_t n = 0; n < shape[0]; n++) {
		label[n] = draw(&state, CLASSES);
		for (int64_t k = 0; k < size; k++)
			image[n * size + k] = sinf((float)(label[n] + 1) * (float)k * 0.1f) +
					      (float)draw(&state, 1000) * 0.001f - 0.5f;
	}
}

/* Sets *step to the number of steps that the checkpoint has done: 0 if there is none. */
static int resume(WeftCall *c, const char *path, int64_t *step)
{
	char text[32];
	FILE *there = fopen(path, "rb");
	if (!there)
		return 0;
	fclose(there);
	if (weft_checkpoint_load(c->model, c->instance, path, &c->status) ||
	    weft_checkpoint_meta(path, "step", text, sizeof text, &c->status))
		return c->status.code;
	*step = strtoll(text, NULL, 10);
	return 0;
}

static int save(WeftCall *c, const char *path, int64_t step)
{
	char text[32];
	const char *const meta[] = {"step", text, NULL};
	snprintf(text, sizeof text, "%lld", (long long)step);
	return weft_checkpoint_save(c->model, c->instance, path, meta, &c->status);
}

/* Sets the shape of the images to that of the model. */
static int find_shape(WeftCall *c, int64_t shape[4])
{
	const WeftTensorInfo *x = weft_input(c->model, c->entry, 0);
	int64_t n = 1;
	for (uint32_t d = 0; x->rank == 4 && d < 4; d++)
		n *= shape[d] = weft_dim(c->model, x, d)->value;
	return x->rank == 4 && n > 0 && n <= MOST
		       ? 0
		       : weft_call_fail(c, WEFT_ERR_ARGUMENT, "expected images of a fixed size");
}

static int train(WeftCall *c, const char *path, int64_t steps, int64_t every)
{
	int64_t step = 0, shape[4];
	double lr = 0.01;
	if (find_shape(c, shape) || resume(c, path, &step))
		return c->status.code;
	const WeftTensor in[] = {weft_tensor(image, WEFT_F32, 4, shape),
				 weft_tensor(label, WEFT_I64, 1, shape),
				 weft_tensor(&lr, WEFT_F64, 0, NULL)};
	printf("from step %lld on\n", (long long)step);
	while (step < steps) {
		next_batch(step++, shape);
		if (weft_call_run(c, in))
			return c->status.code;
		if ((step == steps || step % every == 0) && save(c, path, step))
			return c->status.code;
	}
	if (c->output)
		printf("loss %.9g\n", (double)*(const float *)c->output[0].data);
	return 0;
}

int main(int argc, char **argv)
{
	WeftCall c;
	WeftStatus status;
	if (argc != 5)
		return fputs("usage: resume STEP.so CHECKPOINT STEPS EVERY\n", stderr), 1;
	if (weft_file_check(argv[1], &status))
		return fprintf(stderr, "%s\n", status.message), 1;
	void *so = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	void *found = so ? dlsym(so, "weft_model") : NULL;
	if (!found)
		return fprintf(stderr, "%s\n", dlerror()), 1;
	const WeftModel *(*get)(void);
	memcpy(&get, &found, sizeof get);
	if (weft_call_open(&c, get(), 0) ||
	    train(&c, argv[2], strtoll(argv[3], NULL, 10), strtoll(argv[4], NULL, 10))) {
		fprintf(stderr, "%s\n", c.status.message);
		weft_call_close(&c);
		return 1;
	}
	weft_call_close(&c);
	dlclose(so);
	return 0;
}
