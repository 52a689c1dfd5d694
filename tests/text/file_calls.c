/* Several calls of a graph that replaces state: the interpreter, which is given what it replaced,
 * and every emitter on one, two and eight threads agree in outputs and state after each of them,
 * those that fail included: then state is as it was. */
#include "file_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "tests/help/model.h"

typedef struct {
	const FileTest *test;
	Weft *w;
	Graph *g;
	Text *out;
	uint32_t ncall, nuser, nout;
	Tensor *in;    /* by call and user's input */
	Tensor *want;  /* by call and user's output */
	Tensor *state; /* by call and state: after it */
	bool *fails;   /* by call */
	char (*message)[512]; /* by call: of the first compiled one that failed */
	double tolerance;
} Calls;

/* ---- the interpreter ---- */

static Tensor copy_of(Arena *a, const Tensor *t)
{
	Tensor copy = *t;
	copy.data = arena_dup(a, t->data, tensor_bytes(t));
	return copy;
}

/* Inputs of the call, and state as the call before left it. */
static bool interpret(Calls *c, EvalCtx *e, uint32_t call)
{
	Graph *g = c->g;
	Arena *a = c->w->ctx->arena;
	Tensor *in = ARENA_ARRAY(a, Tensor, g->input.n), *out = ARENA_ARRAY(a, Tensor, g->output.n);
	uint32_t nstate = g->input.n - c->nuser, user = 0, state = 0, result = 0;
	for (uint32_t k = 0; k < g->input.n; k++) {
		if (g->input.data[k].kind == INPUT_USER) {
			TRY(values_input_of(c->test, e, g, k, call, &in[k]));
			c->in[call * c->nuser + user++] = in[k];
			continue;
		}
		if (call)
			in[k] = c->state[(call - 1) * nstate + state];
		else
			TRY(values_input(c->test, e, g, k, &in[k]));
		c->state[call * nstate + state++] = in[k];
	}
	c->fails[call] = !interp(c->w->ctx, g, in, g->input.n, out, g->output.n, a);
	for (uint32_t k = 0; !c->fails[call] && k < g->output.n; k++) {
		uint32_t to = 0;
		if (!graph_output_is_state(g, k)) {
			c->want[call * c->nout + result++] = out[k];
			continue;
		}
		for (int32_t i = 0; i < g->output.data[k].writes; i++)
			to += g->input.data[i].kind != INPUT_USER;
		c->state[call * nstate + to] = copy_of(a, &out[k]);
	}
	return true;
}

/* ---- compiled ---- */

static bool differs(Calls *c, const char *what, uint32_t call, const char *name, const Tensor *have, const Tensor *want)
{
	int64_t i = values_differ(have, want, c->tolerance);
	if (i < 0)
		return false;
	text_printf(c->out, "%s: call %u: %s differs at ", what, call + 1, name);
	values_index(want, i, c->out);
	text_printf(c->out, ": compiled %.9g, expected %.9g\n", tensor_f64(have, i), tensor_f64(want, i));
	return true;
}

static bool compare_state(Calls *c, Model *m, const char *what, uint32_t call)
{
	Arena *a = c->w->ctx->arena;
	for (uint32_t k = 0; k < m->model->nstate; k++) {
		const Tensor *want = &c->state[call * m->model->nstate + k];
		Tensor have = copy_of(a, want);
		WeftTensor t = tensor_to_api(a, &have);
		if (m->model->state_get(m->instance, k, &t, &m->status) != WEFT_OK)
			return text_printf(c->out, "%s: %s\n", what, m->status.message), false;
		if (differs(c, what, call, weft_state_info(m->model, k)->name, &have, want))
			return false;
	}
	return true;
}

static bool donates(const Model *m)
{
	const WeftEntry *e = weft_entry(m->model, 0);
	bool any = false;
	for (uint32_t k = 0; k < e->noutput; k++)
		any |= weft_output(m->model, e, k)->donates >= 0;
	return any;
}

static bool run(Calls *c, Model *m, const char *what, int32_t nthreads, bool in_place)
{
	Arena *a = c->w->ctx->arena;
	Tensor *have = ARENA_ARRAY(a, Tensor, c->nout);
	TRY(!m->model->nstate || m->model->state_reset(m->instance, &m->status) == WEFT_OK);
	for (uint32_t call = 0; call < c->ncall; call++) {
		int code = (in_place ? model_run_in_place : model_run)(m, &c->in[call * c->nuser], c->nuser, have, nthreads, a);
		if ((code != WEFT_OK) != c->fails[call]) {
			text_printf(c->out, "%s: call %u: %s\n", what, call + 1, code ? m->status.message : "does not fail");
			return false;
		}
		if (code && !*c->message[call])
			snprintf(c->message[call], sizeof *c->message, "%s", m->status.message);
		for (uint32_t k = 0; !code && k < c->nout; k++)
			if (differs(c, what, call, weft_output(m->model, weft_entry(m->model, 0), k)->name, &have[k],
				    &c->want[call * c->nout + k]))
				return false;
		TRY(compare_state(c, m, what, call));
	}
	return true;
}

static bool run_all(Calls *c, const WeftOptions *options, bool quick)
{
	static const struct {
		const char *name;
		WeftBackend backend;
		bool slow, (*open)(Model *, Weft *, const WeftGraph *, const WeftOptions *);
		int32_t nthreads[3];
	} way[] = {{"loops", 0, false, model_open_loops, {1}}, {"jit", 0, false, model_open_jit, {1, 2, 8}},
		   {"c", WEFT_BACKEND_C, true, model_open, {1, 3}}, {"llvm", WEFT_BACKEND_LLVM, true, model_open, {2}}};
	WeftGraph *g = graph_wrap(c->w, c->g, c->test->name);
	for (uint32_t k = 0; k < sizeof way / sizeof *way; k++) {
		Model m;
		WeftOptions o = *options;
		o.backend = way[k].backend;
		if ((quick && way[k].slow) || (c->test->loops && way[k].open != model_open_loops))
			continue;
		bool ok = way[k].open(&m, c->w, g, &o);
		for (uint32_t i = 0; ok && i < 3 && way[k].nthreads[i]; i++) {
			char what[40];
			snprintf(what, sizeof what, "%s, %d threads", way[k].name, (int)way[k].nthreads[i]);
			ok = run(c, &m, what, way[k].nthreads[i], false);
			snprintf(what, sizeof what, "%s, %d threads, in place", way[k].name, (int)way[k].nthreads[i]);
			ok = ok && (!donates(&m) || run(c, &m, what, way[k].nthreads[i], true));
		}
		model_close(&m);
		TRY(ok);
	}
	return true;
}

/* ---- a test ---- */

static void print_calls(Calls *c)
{
	uint32_t nstate = c->g->input.n - c->nuser, s = 0;
	for (uint32_t call = 0; call < c->ncall; call++) {
		if (c->fails[call])
			text_printf(c->out, "call %u fails: %s\n", call + 1, c->message[call]);
		for (uint32_t k = 0, i = 0; !c->fails[call] && k < c->g->output.n; k++) {
			if (graph_output_is_state(c->g, k))
				continue;
			text_printf(c->out, "call %u: %%%s: ", call + 1, c->g->output.data[k].name);
			values_print(&c->want[call * c->nout + i++], c->out);
		}
	}
	for (uint32_t k = 0; k < c->g->input.n; k++)
		if (c->g->input.data[k].kind != INPUT_USER) {
			text_printf(c->out, "%s: ", c->g->input.data[k].name);
			values_print(&c->state[(c->ncall - 1) * nstate + s++], c->out);
		}
}

bool file_calls(const FileTest *test, Weft *w, Graph *g, EvalCtx *e, const WeftOptions *o, bool quick, Text *out)
{
	Arena *a = w->ctx->arena;
	const char *s = header_find(a, test->text, "calls:", NULL), *t = header_find(a, test->text, "tolerance:", NULL);
	long n = s ? strtol(s, NULL, 10) : 3;
	Calls c = {.test = test, .w = w, .g = g, .out = out, .ncall = (uint32_t)n, .tolerance = t ? strtod(t, NULL) : 0};
	if (n < 1)
		return ctx_error(w->ctx, NULL, "expected a number of calls");
	for (uint32_t k = 0; k < g->input.n; k++)
		c.nuser += g->input.data[k].kind == INPUT_USER;
	for (uint32_t k = 0; k < g->output.n; k++)
		c.nout += !graph_output_is_state(g, k);
	c.in = ARENA_ARRAY(a, Tensor, c.ncall * c.nuser);
	c.want = ARENA_ARRAY(a, Tensor, c.ncall * c.nout);
	c.state = ARENA_ARRAY(a, Tensor, c.ncall * g->input.n);
	c.fails = ARENA_ARRAY(a, bool, c.ncall);
	c.message = arena_calloc(a, c.ncall, sizeof *c.message);
	for (uint32_t call = 0; call < c.ncall; call++)
		TRY(interpret(&c, e, call));
	bool ok = run_all(&c, o, quick);
	print_calls(&c);
	return ok;
}
