/* Several forward calls under way at once, each with what it saved in one block, and backward calls
 * in another order, of a model whose batch size is a symbol: the gradients are those of one entry
 * that computes both. steps [loops|jit|c|llvm] (c, llvm: by a shared object in the current folder).
 * The exit status is 1 where something differs. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_saved.h"
#include "weft_trace.h"

enum { IN = 5, HIDDEN = 7, MOST = 40, NPARAM = 2 };
static float weight1[HIDDEN * IN], weight2[HIDDEN];
static const char *backend;

static void give_up(const char *text)
{
	fprintf(stderr, "%s\n", text);
	exit(1);
}

static WeftGraph *model(Weft *w)
{
	const WeftValue none = {0, 0};
	WeftTrace *t = weft_trace_new(w, "steps");
	weft_trace_symbol(t, "B", 1, MOST);
	WeftValue x = weft_trace_input(t, "x", "f32[B, 5]"),
		  w1 = weft_trace_param(t, "w1", "f32[7, 5]", weight1),
		  w2 = weft_trace_param(t, "w2", "f32[1, 7]", weight2),
		  mask = weft_with_number(t, "aten.gt.Scalar", x, 0);
	const WeftArg where[] = {weft_arg(mask), weft_arg(x), weft_arg(weft_exp(t, x))};
	x = weft_trace_call(t, "aten.where.self", where, 3);
	weft_trace_output(t, "y",
			  weft_linear(t, weft_sigmoid(t, weft_linear(t, x, w1, none)), w2, none));
	return weft_trace_end(t);
}

static const WeftModel *compiled(Weft *w, WeftGraph *g)
{
	WeftOptions o = {.size = sizeof o,
			 .backend = strcmp(backend, "c") ? WEFT_BACKEND_LLVM : WEFT_BACKEND_C,
			 .name = "steps"};
	const WeftModel *m = NULL;
	char path[100];
	snprintf(path, sizeof path, "./steps_%s.so", backend);
	if (!strcmp(backend, "jit"))
		m = weft_jit(w, g, &o);
	else if (!strcmp(backend, "loops"))
		m = weft_loops(w, g, &o);
	else if (weft_compile(w, g, &o, path)) {
		void *library = dlopen(path, RTLD_NOW);
		const WeftModel *(*table)(void) = NULL;
		void *symbol = library ? dlsym(library, "weft_model") : NULL;
		memcpy(&table, &symbol, sizeof table);
		m = table ? table() : NULL;
		remove(path);
	}
	if (!m || weft_model_check(m))
		give_up(m ? weft_model_check(m) : weft_messages(w));
	return m;
}

/* ---- calls ---- */

typedef struct {
	const WeftModel *m;
	WeftInstance *instance;
} Running;

static WeftTensor tensor(float *data, int64_t *shape, int32_t rank)
{
	return (WeftTensor){.data = data,
			    .device = {WEFT_CPU, 0},
			    .ndim = rank,
			    .dtype = {WEFT_FLOAT, 32, 1},
			    .shape = shape};
}

static WeftSizes *sizes_of(const Running *r, uint32_t entry, const WeftTensor *x)
{
	WeftStatus status = {0};
	WeftSizes *s = malloc(weft_entry(r->m, entry)->sizes_bytes);
	if (!s || r->m->sizes(r->instance, entry, x, s, &status) != WEFT_OK)
		give_up(status.message);
	return s;
}

static void run(const Running *r, WeftSizes *s, const WeftTensor *x, WeftTensor *y)
{
	WeftStatus status = {0};
	void *work = malloc(s->workspace_bytes + 1);
	if (!work || r->m->run(r->instance, s, x, y, work, NULL, &status) != WEFT_OK)
		give_up(status.message);
	free(work);
	free(s);
}

/* One call of the model: what goes in, and what comes out of which entry. */
typedef struct {
	int64_t x_shape[2], y_shape[2];
	float x[MOST * IN], ct[MOST], y[MOST], want_y[MOST];
	float g[1 + NPARAM][MOST * IN], want[1 + NPARAM][MOST * IN];
	void *block;
	uint64_t bytes;
} Step;

static void set_gradients(float (*g)[MOST * IN], int64_t *x_shape, WeftTensor *out)
{
	static int64_t w1[2] = {HIDDEN, IN}, w2[2] = {1, HIDDEN};
	out[0] = tensor(g[0], x_shape, 2);
	out[1] = tensor(g[1], w1, 2);
	out[2] = tensor(g[2], w2, 2);
}

static void begin(Step *p, int64_t rows)
{
	p->x_shape[0] = p->y_shape[0] = rows;
	p->x_shape[1] = IN;
	p->y_shape[1] = 1;
	for (int k = 0; k < (int)rows * IN; k++)
		p->x[k] = sinf((float)(k + rows));
	for (int k = 0; k < rows; k++)
		p->ct[k] = cosf((float)(2 * k + rows));
}

static void forward(const Running *r, Step *p)
{
	const WeftEntry *e = weft_entry(r->m, 1);
	WeftTensor x = tensor(p->x, p->x_shape, 2), y[20] = {{0}};
	WeftSizes *s = sizes_of(r, 1, &x);
	p->bytes = weft_saved_bytes(r->m, e, s);
	p->block = p->bytes ? aligned_alloc(WEFT_SAVED_ALIGN, p->bytes) : NULL;
	const char *wrong = weft_saved_outputs(r->m, e, s, p->block, p->bytes, y);
	if (wrong || e->noutput > 20)
		give_up(wrong ? wrong : "more is saved than expected");
	if (!weft_saved_outputs(r->m, e, s, p->block, p->bytes - 1, y))
		give_up("a block that is too small is taken");
	y[0] = tensor(p->y, p->y_shape, 2);
	run(r, s, &x, y);
}

/* Its inputs: x, what was saved, ct.y. */
static void backward(const Running *r, Step *p)
{
	const WeftEntry *e = weft_entry(r->m, 2);
	WeftTensor x[22] = {{0}}, g[1 + NPARAM];
	const char *wrong = e->ninput > 22 ? "more is saved than expected"
					   : weft_saved_inputs(r->m, e, p->block, p->bytes, x);
	if (wrong)
		give_up(wrong);
	x[0] = tensor(p->x, p->x_shape, 2);
	x[e->ninput - 1] = tensor(p->ct, p->y_shape, 2);
	set_gradients(p->g, p->x_shape, g);
	run(r, sizes_of(r, 2, x), x, g);
}

static void whole(const Running *r, Step *p)
{
	WeftTensor x[2] = {tensor(p->x, p->x_shape, 2), tensor(p->ct, p->y_shape, 2)},
		   y[2 + NPARAM] = {tensor(p->want_y, p->y_shape, 2)};
	set_gradients(p->want, p->x_shape, y + 1);
	run(r, sizes_of(r, 0, x), x, y);
}

/* ---- what is compared ---- */

static int differs(const char *what, const float *a, const float *b, int64_t n)
{
	for (int64_t k = 0; k < n; k++)
		if (!(fabsf(a[k] - b[k]) <= 1e-5f * fmaxf(1, fabsf(b[k])))) {
			printf("%s: %g, expected %g\n", what, (double)a[k], (double)b[k]);
			return 1;
		}
	return 0;
}

static int compare(const Step *p)
{
	int64_t rows = p->x_shape[0];
	return differs("y", p->y, p->want_y, rows) |
	       differs("g.x", p->g[0], p->want[0], rows * IN) |
	       differs("g.w1", p->g[1], p->want[1], HIDDEN * IN) |
	       differs("g.w2", p->g[2], p->want[2], HIDDEN);
}

/* What is no block, or another call's. */
static int accepts_wrong(const Running *r, const Step *p, const Step *other)
{
	const WeftEntry *e = weft_entry(r->m, 2);
	WeftTensor x[22] = {{0}};
	WeftStatus status;
	int64_t *copy = malloc(p->bytes);
	int bad = !copy || !weft_saved_inputs(r->m, e, p->block, p->bytes - WEFT_SAVED_ALIGN, x) ||
		  !weft_saved_inputs(r->m, e, p->block, 16, x);
	for (int k = 0; copy && k < 5; k++) {
		memcpy(copy, p->block, p->bytes);
		copy[k] += k == 3 ? (int64_t)p->bytes : 1; /* magic, bytes, count, offset, type */
		bad |= !weft_saved_inputs(r->m, e, copy, p->bytes, x);
	}
	free(copy);
	/* of another size */
	WeftSizes *s = malloc(e->sizes_bytes);
	bad |= !s || weft_saved_inputs(r->m, e, other->block, other->bytes, x) != NULL;
	x[0] = tensor((float *)p->x, (int64_t *)p->x_shape, 2);
	x[e->ninput - 1] = tensor((float *)p->ct, (int64_t *)p->y_shape, 2);
	bad |= !s || r->m->sizes(r->instance, 2, x, s, &status) != WEFT_ERR_INPUT;
	free(s);
	return bad;
}

int main(int argc, char **argv)
{
	static const int64_t rows[3] = {1, MOST, 9};
	const char *const by[] = {"inputs", "params"}, *const names[] = {"run", "forward_saving",
									 "backward"};
	const WeftGradOptions o = {.size = sizeof o, .nwrt = 2, .wrt = by};
	WeftStatus status = {0};
	WeftGraph *part[3];
	Step *step = calloc(3, sizeof *step);
	Weft *w = weft_new();
	Running r;
	int bad = 0;
	backend = argc > 1 ? argv[1] : weft_has_llvm() ? "jit" : "loops";
	for (int k = 0; k < HIDDEN * IN; k++)
		weight1[k] = sinf((float)(k * k));
	for (int k = 0; k < HIDDEN; k++)
		weight2[k] = cosf((float)k);
	WeftGraph *g = w ? model(w) : NULL;
	part[0] = g ? weft_vjp(w, g, &o) : NULL;
	if (!step || !part[0] || !weft_vjp_split(w, g, &o, &part[1], &part[2]))
		give_up(w ? weft_messages(w) : "out of memory");
	WeftGraph *all = weft_join(w, 3, names, part);
	r.m = all ? compiled(w, all) : NULL;
	if (!r.m || r.m->open(r.m, NULL, &r.instance, &status) != WEFT_OK)
		give_up(r.m ? status.message : weft_messages(w));
	for (int k = 0; k < 3; k++) {
		begin(&step[k], rows[k]);
		forward(&r, &step[k]);
	}
	for (int k = 0; k < 3; k++)
		backward(&r, &step[(k + 1) % 3]);
	for (int k = 0; k < 3; k++) {
		whole(&r, &step[k]);
		printf("%2d rows: %llu bytes in one block\n", (int)rows[k],
		       (unsigned long long)step[k].bytes);
		bad |= compare(&step[k]) | accepts_wrong(&r, &step[k], &step[(k + 1) % 3]);
	}
	for (int k = 0; k < 3; k++)
		free(step[k].block);
	r.m->close(r.instance);
	weft_free(w);
	free(step);
	return bad;
}
