/* A graph run in all ways there are. */
#include "graph_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "tests/help/model.h"
#include "passes/pipeline.h"

/* What the header says of one output. */
typedef struct {
	double absolute, relative, mean;
} Near;

static Near near_of(const GraphCheck *c, uint32_t k, const Tensor *want)
{
	Arena *a = c->w->ctx->arena;
	const char *list = header_find(a, c->test->text, "tolerances:", NULL),
		   *relative = header_find(a, c->test->text, "tolerance:", NULL);
	Near n = {.relative = relative ? strtod(relative, NULL) : 0};
	char *end;
	for (double v; list && (v = strtod(list, &end), end != list); list = end) {
		n.absolute = 2 * v;
		if (k-- == 0)
			break;
	}
	Tensor y = tensor_flat_real(want);
	for (int64_t i = 0, m = tensor_numel(&y);
	     i < m && n.relative > 0 && dtype_is_float(y.dtype); i++)
		n.mean += isfinite(tensor_f64(&y, i)) ? fabs(tensor_f64(&y, i)) / (double)m : 0;
	return n;
}

static bool close_enough(const Tensor *x, const Tensor *y, int64_t i, const Near *near)
{
	if (!dtype_is_float(y->dtype))
		return tensor_i64(x, i) == tensor_i64(y, i);
	double a = tensor_f64(x, i), c = tensor_f64(y, i);
	return a == c || (isnan(a) && isnan(c)) ||
	       fabs(a - c) <= near->absolute + near->relative * (fabs(c) + near->mean);
}

static bool say(GraphCheck *c, const char *what, const char *sizes, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static bool say(GraphCheck *c, const char *what, const char *sizes, const char *fmt, ...)
{
	va_list args;
	int n = snprintf(c->how, sizeof c->how, "%s%s%s: ", what, *sizes ? " at " : "", sizes);
	va_start(args, fmt);
	vsnprintf(c->how + n, sizeof c->how - (size_t)n, fmt, args);
	va_end(args);
	return false;
}

static bool agree(GraphCheck *c, const char *what, const char *sizes, uint32_t k, const Tensor *x,
		  const Tensor *y)
{
	if (x->dtype != y->dtype || x->rank != y->rank ||
	    memcmp(x->dim, y->dim, y->rank * sizeof *y->dim)) {
		c->failed = k + 1;
		return say(c, what, sizes, "%s differs in shape or dtype",
			   c->g->output.data[k].name);
	}
	Near near = near_of(c, k, y);
	Tensor a = tensor_flat_real(x), b = tensor_flat_real(y);
	for (int64_t i = 0; i < tensor_numel(&b); i++) {
		if (close_enough(&a, &b, i, &near))
			continue;
		Text at;
		text_init(&at, c->w->ctx->arena);
		values_index(&b, i, &at);
		c->failed = k + 1;
		return say(c, what, sizes, "%s at %s is %.9g, expected %.9g",
			   c->g->output.data[k].name, at.data, tensor_f64(&a, i),
			   tensor_f64(&b, i));
	}
	return true;
}

/* ---- compiled ---- */

/* The same model compiled by each emitter, and with its loop IR interpreted. */
enum { EMITTERS = 2 };
static const char *const emitter_name[EMITTERS] = {"llvm", "c"};
typedef struct {
	const char *what;
	Graph *g;                     /* interpreted, or ... */
	Model model[EMITTERS], loops; /* ... compiled; those that are open */
} Candidate;

static bool failed_call(GraphCheck *c, const Candidate *by, const char *which, const char *sizes,
			const Model *m)
{
	return say(c, by->what, sizes, "%s: %s", which, m->status.message);
}

static bool same_bits(GraphCheck *c, const Candidate *by, const char *which, const char *sizes,
		      const Tensor *x, const Tensor *y)
{
	for (uint32_t k = 0; k < c->g->output.n; k++)
		if (values_other_bits(&x[k], &y[k]) >= 0) {
			c->failed = k + 1;
			return say(c, by->what, sizes,
				   "%s has other bits than the interpreted loop IR in %s", which,
				   c->g->output.data[k].name);
		}
	return true;
}

/* One thread, three, both emitters and the interpreter of loop IR give the same bits. Nothing runs
 * where the interpreter gives up. */
static bool run_models(GraphCheck *c, Candidate *by, const char *sizes, const Tensor *in,
		       Tensor *out, Arena *a)
{
	uint32_t nin = c->g->input.n;
	Tensor *again = ARENA_ARRAY(a, Tensor, c->g->output.n);
	if (model_run(&by->loops, in, nin, out, 1, a) != WEFT_OK)
		return model_gave_up(&by->loops) || failed_call(c, by, "loops", sizes, &by->loops);
	for (uint32_t k = 0; k < EMITTERS; k++)
		for (int32_t nthreads = 1; by->model[k].instance && nthreads <= 3; nthreads += 2) {
			if (model_run(&by->model[k], in, nin, again, nthreads, a) != WEFT_OK)
				return failed_call(c, by, emitter_name[k], sizes, &by->model[k]);
			TRY(same_bits(
				c, by,
				arena_printf(a, "%s with %d threads", emitter_name[k], nthreads),
				sizes, again, out));
		}
	return true;
}

static bool compare_in(GraphCheck *c, const char *sizes, Candidate *by, Arena *a)
{
	Ctx *ctx = c->w->ctx;
	Graph *g = c->g;
	EvalCtx e;
	TRY(values_bind(ctx, graph_syms(g), sizes, &e));
	e.arena = a;
	Tensor *in = ARENA_ARRAY(a, Tensor, g->input.n),
	       *want = ARENA_ARRAY(a, Tensor, g->output.n),
	       *have = ARENA_ARRAY(a, Tensor, g->output.n);
	for (uint32_t k = 0; k < g->input.n; k++)
		TRY(values_input(c->test, &e, g, k, &in[k]));
	TRY(interp(ctx, g, in, g->input.n, want, g->output.n, a));
	if (by->g)
		TRY(interp(ctx, by->g, in, g->input.n, have, g->output.n, a));
	else
		TRY(run_models(c, by, sizes, in, have, a));
	if (!by->g && model_gave_up(&by->loops))
		return true;
	for (uint32_t k = 0; k < g->output.n; k++)
		TRY(agree(c, by->what, sizes, k, &have[k], &want[k]));
	return true;
}

/* At each word of "; sizes:"; without that line, at the hints. */
static bool compare(GraphCheck *c, Candidate *by)
{
	Arena *all = c->w->ctx->arena;
	const char *s = header_find(all, c->test->text, "sizes:", NULL);
	bool once = !s;
	for (s = s ? s + strspn(s, " ") : ""; once || *s; s += strspn(s, " ")) {
		size_t n = strcspn(s, " ");
		Arena *a = arena_new(&c->w->ctx->unwind);
		bool ok = compare_in(c, arena_strndup(all, s, n), by, a);
		arena_free(a);
		TRY(ok);
		s += n;
		once = false;
	}
	return true;
}

static bool open_models(GraphCheck *c, Candidate *by, bool fused)
{
	WeftGraph *wg = graph_wrap(c->w, c->g, "fuzz");
	WeftOptions o = {
		.size = sizeof o, .no_cache = true, .op_by_op = !fused, .target = c->target};
	if (c->jit && weft_has_llvm() && strcmp(o.target, "generic-c") != 0)
		TRY(model_open_jit(&by->model[0], c->w, wg, &o));
	o.backend = c->c[fused] ? WEFT_BACKEND_C : WEFT_BACKEND_DEFAULT;
	if (c->c[fused])
		TRY(model_open(&by->model[1], c->w, wg, &o));
	return model_open_loops(&by->loops, c->w, wg, &o);
}

static bool compare_compiled(GraphCheck *c)
{
	bool ok = true;
	for (uint32_t fused = 0; fused < 2 && ok; fused++) {
		Candidate by = {.what = fused ? "compiled" : "compiled op by op"};
		ok = open_models(c, &by, fused) && compare(c, &by);
		for (uint32_t k = 0; k < EMITTERS; k++)
			model_close(&by.model[k]);
		model_close(&by.loops);
	}
	return ok;
}

bool graph_check(GraphCheck *c)
{
	PipelineOptions o = {0};
	Candidate by = {.what = "after the passes", .g = graph_clone(c->g)};
	c->failed = 0;
	*c->how = 0;
	TRY(pipeline_run(by.g, &o) && compare(c, &by));
	return c->passes || compare_compiled(c);
}
