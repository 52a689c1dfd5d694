/* Reversible residual blocks, y0 = x0 + F(x1), y1 = x1 + G(y0): a network of them is trained with
 * memory that does not depend on how many there are, since backward computes what went into a block
 * from what came out. reversible [interp|loops|jit]
 *
 * Prints what forward saves with 2 and with 16 blocks, declared to be invertible or not, and how
 * far the gradients are from those of the graph that saves everything; the exit status is 1 where
 * they differ, or where more blocks save more. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_trace.h"

enum { ROWS = 8, WIDTH = 16, MOST = 16, SIZE = ROWS * WIDTH };
static double weights[MOST][2][WIDTH][WIDTH];
static const char *backend;

static void give_up(Weft *w, const char *text)
{
	fputs(w ? weft_messages(w) : text, stderr);
	exit(1);
}

/* ---- the model ---- */

typedef struct {
	WeftValue w[2]; /* of F and G */
} Layers;

static WeftValue layer(WeftTrace *t, WeftValue x, WeftValue w)
{
	const WeftValue none = {0, 0};
	return weft_tanh(t, weft_linear(t, x, w, none));
}

static void couple(WeftTrace *t, const WeftValue *x, WeftValue *y, void *user)
{
	const Layers *l = user;
	y[0] = weft_add(t, x[0], layer(t, x[1], l->w[0]));
	y[1] = weft_add(t, x[1], layer(t, y[0], l->w[1]));
}

static void uncouple(WeftTrace *t, const WeftValue *y, WeftValue *x, void *user)
{
	const Layers *l = user;
	x[1] = weft_sub(t, y[1], layer(t, y[0], l->w[1]));
	x[0] = weft_sub(t, y[0], layer(t, x[1], l->w[0]));
}

static WeftGraph *network(Weft *w, int blocks, int invertible)
{
	WeftTrace *t = weft_trace_new(w, "network");
	WeftValue x = weft_trace_input(t, "x", "f64[8, 16]"),
		  v[2] = {weft_sin(t, x), weft_exp(t, x)}, y[2];
	for (int k = 0; k < blocks; k++) {
		char name[2][20];
		Layers l;
		for (int i = 0; i < 2; i++) {
			snprintf(name[i], sizeof name[i], "block%d.%c", k, "FG"[i]);
			l.w[i] = weft_trace_param(t, name[i], "f64[16, 16]", weights[k][i]);
		}
		snprintf(name[0], sizeof name[0], "block%d", k);
		if (invertible)
			weft_invertible(t, name[0], v, 2, y, 2, couple, uncouple, &l);
		else
			couple(t, v, y, &l);
		v[0] = y[0];
		v[1] = y[1];
	}
	weft_trace_output(t, "y", weft_mul(t, v[0], v[1]));
	return weft_trace_end(t);
}

/* ---- running ---- */

/* All tensors are f64 or i64 of constant shapes; what is in y[] is the caller's to free. */
static void interpret(Weft *w, WeftGraph *g, const WeftTensor *x, uint32_t nx, WeftTensor *y,
		      uint32_t ny)
{
	if (!weft_interpret(w, g, x, nx, y))
		give_up(w, "");
	for (uint32_t k = 0; k < ny; k++) {
		size_t n = 8;
		int64_t *shape = malloc((size_t)y[k].ndim * 8 + 8);
		for (int32_t d = 0; shape && d < y[k].ndim; d++) {
			n *= (size_t)y[k].shape[d];
			shape[d] = y[k].shape[d];
		}
		void *data = malloc(n);
		if (!shape || !data)
			give_up(NULL, "out of memory\n");
		memcpy(data, y[k].data, n);
		y[k].data = data;
		y[k].shape = shape;
	}
}

static void compiled(Weft *w, WeftGraph *g, const WeftTensor *x, WeftTensor *y)
{
	WeftStatus status = {0};
	WeftOptions o = {.size = sizeof o};
	WeftInstance *instance = NULL;
	const WeftModel *m = strcmp(backend, "jit") ? weft_loops(w, g, &o) : weft_jit(w, g, &o);
	if (!m)
		give_up(w, "");
	const WeftEntry *e = weft_entry(m, 0);
	WeftSizes *sizes = malloc(e->sizes_bytes);
	for (uint32_t k = 0; k < e->noutput; k++) {
		const WeftTensorInfo *info = weft_output(m, e, k);
		size_t n = 8;
		y[k] = (WeftTensor){.device = {WEFT_CPU, 0},
				    .ndim = (int32_t)info->rank,
				    .dtype = info->dtype,
				    .shape = malloc(info->rank * 8 + 8)};
		for (uint32_t d = 0; y[k].shape && d < info->rank; d++)
			n *= (size_t)(y[k].shape[d] = weft_dim(m, info, d)->value);
		y[k].data = malloc(n);
	}
	if (!sizes || m->open(m, NULL, &instance, &status) != WEFT_OK ||
	    m->sizes(instance, 0, x, sizes, &status) != WEFT_OK)
		give_up(NULL, status.message);
	void *work = aligned_alloc(64, (sizes->workspace_bytes + 127) / 64 * 64);
	if (m->run(instance, sizes, x, y, work, NULL, &status) != WEFT_OK)
		give_up(NULL, status.message);
	m->close(instance);
	free(work);
	free(sizes);
}

static uint32_t run(Weft *w, WeftGraph *g, const WeftTensor *x, uint32_t nx, WeftTensor *y)
{
	uint32_t ny;
	weft_outputs(w, g, &ny);
	if (strcmp(backend, "interp"))
		compiled(w, g, x, y);
	else
		interpret(w, g, x, nx, y, ny);
	return ny;
}

/* ---- gradients ---- */

enum { GRADIENTS = 1 + 2 * MOST, TENSORS = GRADIENTS + 8 * MOST };

static WeftTensor tensor(double *data)
{
	static int64_t shape[2] = {ROWS, WIDTH};
	return (WeftTensor){.data = data,
			    .device = {WEFT_CPU, 0},
			    .ndim = 2,
			    .dtype = {WEFT_FLOAT, 64, 1},
			    .shape = shape};
}

static size_t elements(const WeftTensor *t)
{
	size_t n = 1;
	for (int32_t d = 0; d < t->ndim; d++)
		n *= (size_t)t->shape[d];
	return n;
}

/* By the input and all parameters; returns how many bytes forward saved. */
static size_t train(int blocks, int invertible, WeftTensor *g)
{
	const char *const by[] = {"inputs", "params"};
	const WeftGradOptions o = {.size = sizeof o, .nwrt = 2, .wrt = by};
	double x[SIZE], ct[SIZE];
	WeftTensor in[TENSORS], y[TENSORS];
	WeftGraph *forward, *backward;
	Weft *w = weft_new();
	if (!w || !weft_vjp_split(w, network(w, blocks, invertible), &o, &forward, &backward))
		give_up(w, "out of memory\n");
	for (int k = 0; k < SIZE; k++) {
		x[k] = sin(k);
		ct[k] = cos(3 * k);
	}
	in[0] = tensor(x);
	uint32_t n = run(w, forward, in, 1, y), nin = 1;
	size_t saved = 0;
	for (uint32_t k = 1; k < n; k++) { /* y[0] is the result */
		saved += 8 * elements(&y[k]);
		in[nin++] = y[k];
	}
	in[nin++] = tensor(ct);
	run(w, backward, in, nin, g);
	for (uint32_t k = 0; k < n; k++) {
		free(y[k].data);
		free(y[k].shape);
	}
	weft_free(w);
	return saved;
}

static double compare(int blocks, size_t saved[2])
{
	WeftTensor g[2][GRADIENTS];
	double most = 0;
	for (int k = 0; k < 2; k++)
		saved[k] = train(blocks, k, g[k]);
	for (int k = 0; k < 1 + 2 * blocks; k++) {
		const double *a = g[0][k].data, *b = g[1][k].data;
		for (size_t i = 0; i < elements(&g[0][k]); i++)
			most = fmax(most, fabs(a[i] - b[i]) / fmax(1, fabs(a[i])));
		for (int j = 0; j < 2; j++) {
			free(g[j][k].data);
			free(g[j][k].shape);
		}
	}
	printf("%2d blocks: %6zu bytes saved, %5zu by invertible ones; gradients differ by %.1e\n",
	       blocks, saved[0], saved[1], most);
	return most;
}

/* Is the inverse one? It is tried at an input. */
static double distance(void)
{
	double x[SIZE] = {0.5, -1}, most = 0;
	Weft *w = weft_new();
	WeftGraph *g = w ? weft_check_inverses(w, network(w, MOST, 1)) : NULL;
	WeftTensor in = tensor(x), out[1 + 2 * MOST];
	uint32_t n;
	if (!g || !weft_interpret(w, g, &in, 1, out))
		give_up(w, "out of memory\n");
	weft_outputs(w, g, &n);
	for (uint32_t k = 1; k < n; k++)
		most = fmax(most, *(double *)out[k].data);
	weft_free(w);
	printf("inverses are off by %.1e\n", most);
	return most;
}

int main(int argc, char **argv)
{
	size_t few[2], many[2];
	backend = argc > 1 ? argv[1] : weft_has_llvm() ? "jit" : "loops";
	for (int k = 0; k < MOST * 2 * WIDTH * WIDTH; k++)
		(&weights[0][0][0][0])[k] = sin(k * k) / WIDTH;
	double least = compare(2, few), most = compare(MOST, many);
	return !(least < 1e-11 && most < 1e-11 && distance() < 1e-12 && few[1] == many[1] &&
		 many[0] > 4 * few[0]);
}
