/* Derivatives and batches in C: models are traced (or loaded, where a folder of .pt2 files is
 * named), transformed, compiled in this process and run. transforms [FOLDER]
 *
 * Every result is compared with a number from the formula or with a loop, of a folder also with
 * what torch.func gives (make.py); the exit status is 1 if one differs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_trace.h"

static const char *folder; /* NULL: models are traced */
static int bad;

static void give_up(Weft *w, const char *text)
{
	fputs(w ? weft_messages(w) : text, stderr);
	exit(1);
}

static int near(const float *got, const float *want, int n)
{
	int ok = 1;
	for (int k = 0; k < n; k++)
		ok &= fabsf(got[k] - want[k]) <= 1e-4f * fmaxf(1, fabsf(want[k]));
	return ok;
}

static int is_torch(Weft *w, const char *name, const float *got, int n)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/expected.safetensors", folder);
	const WeftTensors *file = weft_tensors_read(w, path);
	const WeftTensor *want = file ? weft_tensors_find(file, name) : NULL;
	if (!want)
		give_up(w, "");
	return near(got, want->data, n);
}

/* name: of the tensor in the file. */
static void check(Weft *w, const char *name, const char *what, const float *got, const float *want,
		  int n)
{
	int ok = near(got, want, n) && (!folder || is_torch(w, name, got, n));
	printf("%s:", what);
	for (int k = 0; k < n; k++)
		printf(" %.4f", (double)got[k]);
	puts(ok ? "" : "  WRONG");
	bad |= !ok;
}

/* ---- running ---- */

/* All tensors are of f32 or c64, row-major; shapes are those of inputs with `batch` in place of
 * symbols. The last outputs that are asked for by name are copied to out[]. */
typedef struct {
	const char *name;
	const float *in;
	float *out;
} Named;

static int64_t *shape_of(const WeftModel *m, const WeftTensorInfo *t, int64_t batch)
{
	int64_t *shape = calloc(t->rank + 1, sizeof *shape);
	for (uint32_t k = 0; shape && k < t->rank; k++)
		shape[k] = weft_dim(m, t, k)->value < 0 ? batch : weft_dim(m, t, k)->value;
	return shape;
}

static WeftTensor tensor(const WeftModel *m, const WeftTensorInfo *t, int64_t batch)
{
	int64_t *shape = shape_of(m, t, batch), n = t->dtype.bits / 8;
	if (!shape)
		give_up(NULL, "out of memory\n");
	for (uint32_t k = 0; k < t->rank; k++)
		n *= shape[k];
	WeftTensor out = {.data = calloc(1, (size_t)n + 1),
			  .device = {WEFT_CPU, 0},
			  .ndim = (int32_t)t->rank,
			  .dtype = t->dtype,
			  .shape = shape};
	return out;
}

static size_t bytes_of(const WeftTensor *t)
{
	size_t n = t->dtype.bits / 8;
	for (int32_t k = 0; k < t->ndim; k++)
		n *= (size_t)t->shape[k];
	return n;
}

static const Named *find(const Named *named, int n, const char *name)
{
	for (int k = 0; k < n; k++)
		if (!strcmp(named[k].name, name))
			return &named[k];
	return NULL;
}

static void run(Weft *w, WeftGraph *g, int64_t batch, const Named *named, int n)
{
	WeftStatus status = {0};
	WeftOptions o = {.size = sizeof o};
	WeftInstance *instance;
	const WeftModel *m = !g                ? NULL
			     : weft_has_llvm() ? weft_jit(w, g, &o)
					       : weft_loops(w, g, &o);
	if (!m)
		give_up(w, "");
	const WeftEntry *e = weft_entry(m, 0);
	WeftTensor *x = calloc(e->ninput + e->noutput, sizeof *x), *y = x + e->ninput;
	WeftSizes *sizes = malloc(e->sizes_bytes);
	if (!x || !sizes || m->open(m, NULL, &instance, &status) != WEFT_OK)
		give_up(NULL, "out of memory\n");
	for (uint32_t k = 0; k < e->ninput; k++) {
		const WeftTensorInfo *info = weft_input(m, e, k);
		const Named *from = find(named, n, info->name);
		x[k] = tensor(m, info, batch);
		if (!from || !from->in)
			give_up(NULL, "an input is missing\n");
		memcpy(x[k].data, from->in, bytes_of(&x[k]));
	}
	for (uint32_t k = 0; k < e->noutput; k++)
		y[k] = tensor(m, weft_output(m, e, k), batch);
	if (m->sizes(instance, 0, x, sizes, &status) != WEFT_OK)
		give_up(NULL, status.message);
	void *work = aligned_alloc(64, (sizes->workspace_bytes + 127) / 64 * 64);
	if (m->run(instance, sizes, x, y, work, NULL, &status) != WEFT_OK)
		give_up(NULL, status.message);
	for (uint32_t k = 0; k < e->noutput; k++) {
		const Named *to = find(named, n, weft_output(m, e, k)->name);
		if (to && to->out)
			memcpy(to->out, y[k].data, bytes_of(&y[k]));
	}
	for (uint32_t k = 0; k < e->ninput + e->noutput; k++) {
		free(x[k].data);
		free(x[k].shape);
	}
	m->close(instance);
	free(work);
	free(sizes);
	free(x);
}

/* ---- models ---- */

static WeftGraph *load(Weft *w, const char *name)
{
	static const char *const y[] = {"y"};
	const WeftLoadOptions o = {.size = sizeof o, .noutput_name = 1, .output_name = y};
	char path[4096];
	snprintf(path, sizeof path, "%s/%s.pt2", folder, name);
	return weft_load_with(w, path, &o);
}

/* y = log(x0 x1) sin(x1) */
static WeftGraph *function(Weft *w)
{
	if (folder)
		return load(w, "function");
	WeftTrace *t = weft_trace_new(w, "function");
	WeftValue x = weft_trace_input(t, "x", "f32[2]");
	WeftValue x0 = weft_select(t, x, 0, 0), x1 = weft_select(t, x, 0, 1);
	weft_trace_output(t, "y", weft_mul(t, weft_log(t, weft_mul(t, x0, x1)), weft_sin(t, x1)));
	return weft_trace_end(t);
}

enum { IN = 3, HIDDEN = 4, OUT = 2 };
static const float weight1[HIDDEN * IN] = {0.5f,  -0.25f, 0.75f,  1,     0.5f,   -1,
					   -0.5f, 0.25f,  0.125f, 0.75f, -0.75f, 0.5f};
static const float weight2[OUT * HIDDEN] = {1, -0.5f, 0.25f, 0.75f, -1, 0.5f, 0.5f, -0.25f};

/* y = weight2 tanh(weight1 x) */
static WeftGraph *network(Weft *w)
{
	if (folder)
		return load(w, "network");
	WeftTrace *t = weft_trace_new(w, "network");
	const WeftValue none = {0, 0};
	WeftValue x = weft_trace_input(t, "x", "f32[3]");
	WeftValue w1 = weft_trace_param(t, "w1", "f32[4, 3]", weight1),
		  w2 = weft_trace_param(t, "w2", "f32[2, 4]", weight2);
	weft_trace_output(t, "y",
			  weft_linear(t, weft_tanh(t, weft_linear(t, x, w1, none)), w2, none));
	return weft_trace_end(t);
}

/* y = z * z, of complex numbers */
static WeftGraph *square(Weft *w)
{
	if (folder)
		return load(w, "square");
	WeftTrace *t = weft_trace_new(w, "square");
	WeftValue z = weft_trace_input(t, "x", "c64[2]");
	weft_trace_output(t, "y", weft_mul(t, z, z));
	return weft_trace_end(t);
}

/* ---- transforms ---- */

static void gradient(Weft *w)
{
	const float x[2] = {0.5f, 0.75f}, one = 1, want[2] = {1.3633f, 0.1912f};
	float g[2];
	run(w, weft_vjp(w, function(w), NULL), 1,
	    (Named[]){{"x", x, NULL}, {"ct.y", &one, NULL}, {"g.x", NULL, g}}, 3);
	check(w, "gradient", "gradient of log(x0 x1) sin(x1)", g, want, 2);
}

/* Forward over reverse: the derivative of the gradient along v. */
static void hessian_vector(Weft *w)
{
	const char *const by[] = {"x"};
	const WeftGradOptions along = {.size = sizeof along, .nwrt = 1, .wrt = by};
	const float x[2] = {0.5f, 0.75f}, one = 1, v[2] = {1, 0};
	const float want[2] = {-sinf(0.75f) / 0.25f, cosf(0.75f) / 0.5f};
	float hv[2];
	WeftGraph *gradient = weft_vjp(w, function(w), NULL),
		  *g = gradient ? weft_jvp(w, gradient, &along) : NULL;
	run(w, g, 1,
	    (Named[]){{"x", x, NULL}, {"ct.y", &one, NULL}, {"t.x", v, NULL}, {"jy.g.x", NULL, hv}},
	    4);
	check(w, "hessian_vector", "Hessian times (1, 0)", hv, want, 2);
}

static void hidden(const float *x, float h[HIDDEN])
{
	for (int k = 0; k < HIDDEN; k++) {
		h[k] = 0;
		for (int i = 0; i < IN; i++)
			h[k] += weight1[k * IN + i] * x[i];
		h[k] = tanhf(h[k]);
	}
}

/* A batch of cotangents, the rows of the identity: each gives a row. */
static void jacobian(Weft *w)
{
	const char *const batched[] = {"ct.y"};
	const WeftVmapOptions rows = {
		.size = sizeof rows, .nbatched = 1, .batched = batched, .extent = OUT};
	const float x[IN] = {0.5f, -1, 0.25f}, identity[OUT * OUT] = {1, 0, 0, 1};
	float got[OUT * IN], want[OUT * IN] = {0}, h[HIDDEN];
	WeftGraph *gradient = weft_vjp(w, network(w), NULL),
		  *g = gradient ? weft_vmap(w, gradient, &rows) : NULL;
	run(w, g, OUT, (Named[]){{"x", x, NULL}, {"ct.y", identity, NULL}, {"g.x", NULL, got}}, 3);
	hidden(x, h);
	for (int o = 0; o < OUT; o++)
		for (int i = 0; i < IN; i++)
			for (int k = 0; k < HIDDEN; k++)
				want[o * IN + i] += weight2[o * HIDDEN + k] * (1 - h[k] * h[k]) *
						    weight1[k * IN + i];
	check(w, "jacobian", "Jacobian of a network", got, want, OUT * IN);
}

/* By a parameter, of each sample of a batch whose size is a symbol. */
static void per_sample(Weft *w)
{
	enum { SAMPLES = 3, SIZE = OUT * HIDDEN };
	const char *const by[] = {folder ? "second.weight" : "w2"};
	const WeftGradOptions second = {.size = sizeof second, .nwrt = 1, .wrt = by};
	const float x[SAMPLES * IN] = {0.5f, -1, 0.25f, 1, 0, -0.5f, -0.75f, 0.5f, 2},
				ct[SAMPLES * OUT] = {1, 0, 0.5f, -1, 2, 1};
	float got[SAMPLES * SIZE], want[SAMPLES * SIZE], h[HIDDEN];
	char name[100];
	snprintf(name, sizeof name, "g.%s", by[0]);
	WeftGraph *gradient = weft_vjp(w, network(w), &second),
		  *g = gradient ? weft_vmap(w, gradient, NULL) : NULL;
	run(w, g, SAMPLES, (Named[]){{"x", x, NULL}, {"ct.y", ct, NULL}, {name, NULL, got}}, 3);
	for (int s = 0; s < SAMPLES; s++) {
		hidden(x + s * IN, h);
		for (int k = 0; k < SIZE; k++)
			want[s * SIZE + k] = ct[s * OUT + k / HIDDEN] * h[k % HIDDEN];
	}
	check(w, "per_sample", "gradients of samples", got, want, SAMPLES * SIZE);
}

/* PyTorch's convention: dL/d re + i dL/d im, here conj(2 z) ct. */
static void complex_gradient(Weft *w)
{
	const float z[4] = {1, 2, -0.5f, 0.25f}, ct[4] = {1, 0, 0, 1}, want[4] = {2, -4, 0.5f, -1};
	float g[4];
	run(w, weft_vjp(w, square(w), NULL), 1,
	    (Named[]){{"x", z, NULL}, {"ct.y", ct, NULL}, {"g.x", NULL, g}}, 3);
	check(w, "complex_gradient", "gradient of z * z", g, want, 4);
}

int main(int argc, char **argv)
{
	Weft *w = weft_new();
	folder = argc > 1 ? argv[1] : NULL;
	if (!w)
		give_up(NULL, "out of memory\n");
	gradient(w);
	hessian_vector(w);
	jacobian(w);
	per_sample(w);
	complex_gradient(w);
	weft_free(w);
	return bad;
}
