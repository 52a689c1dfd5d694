/* The samples of the op table below the graph: computed when all operands are constants, and
 * lowered, scheduled and run by the interpreter of loop IR. Both give what the reference
 * interpreter gives for the call itself; that its results are right is shown by ir_samples.c.
 * OP=name in the environment: that op alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build/build.h"
#include "ir/interp/interp.h"
#include "passes/pipeline.h"
#include "tests/help/model.h"
#include "tests/help/sample.h"

enum { MAX_RESULTS = 16 };

typedef struct {
	Op op;
	uint32_t k;
	bool symbolic;
	Weft *w;
	uint32_t *failures;
} Case;

/* A few roundings of the largest value: schedules add in another order than the interpreter, which
 * adds in f64. */
static bool close_to(double got, double want, double largest)
{
	if (isnan(want) || isinf(want))
		return isnan(want) ? isnan(got) : got == want;
	return fabs(got - want) <= 4e-6 * fabs(want) + 2e-6 * largest + (double)FLT_MIN;
}

static bool same_values(const Tensor *a, const Tensor *b)
{
	Tensor x = tensor_flat_real(a), y = tensor_flat_real(b);
	bool fraction = dtype_is_float(x.dtype);
	double largest = 0;
	if (a->dtype != b->dtype || a->rank != b->rank ||
	    memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) != 0)
		return false;
	for (int64_t i = 0, n = tensor_numel(&y); i < n; i++)
		largest = fraction && isfinite(tensor_f64(&y, i))
				  ? fmax(largest, fabs(tensor_f64(&y, i)))
				  : largest;
	for (int64_t i = 0, n = tensor_numel(&x); i < n; i++)
		if (fraction ? !close_to(tensor_f64(&x, i), tensor_f64(&y, i), largest)
			     : tensor_i64(&x, i) != tensor_i64(&y, i))
			return false;
	return true;
}

static bool bad(const Case *c, const char *what)
{
	print_error("%s %u%s: %s\n%s", op_name(c->op), c->k, c->symbolic ? " symbolic" : "", what,
		    weft_messages(c->w));
	++*c->failures;
	return false;
}

/* ---- folding ---- */

static void make_constants(Sample *s)
{
	Ir *ir = s->g->ir;
	for (uint32_t k = 0; k < s->nin; k++) {
		Node x = s->g->input.data[k].node;
		Tensor *t = &s->in[k];
		Const c = {.name = "",
			   .dtype = t->dtype,
			   .rank = t->rank,
			   .dim = t->dim,
			   .data = t->data};
		c.bytes = tensor_bytes(t);
		Build b = {.g = s->g, .before = node_next(s->g, x)};
		graph_replace(s->g, x, b_const(&b, ir_const(ir, c)));
	}
}

static bool folds(Case *c, Sample *s, const Tensor *want)
{
	Ctx *ctx = c->w->ctx;
	Tensor got[MAX_RESULTS];
	make_constants(s);
	if (!pipeline_run(s->g, &(PipelineOptions){0}))
		return bad(c, "the passes fail");
	if (!interp(ctx, s->g, s->in, s->nin, got, s->g->output.n, ctx->arena))
		return bad(c, "does not run after the passes");
	for (uint32_t k = 0; k < s->g->output.n; k++)
		if (!same_values(&got[k], &want[k]))
			return bad(c, "folded, the result is another");
	return true;
}

/* ---- loop IR ---- */

static bool runs(Case *c, Sample *s, const Tensor *want)
{
	Model m = {0};
	Tensor got[MAX_RESULTS];
	WeftOptions o = {.size = sizeof o, .no_cache = true, .target = "x86-64-v3"};
	WeftGraph *g = graph_wrap(c->w, s->g, "sample");
	if (!model_open_loops(&m, c->w, g, &o))
		return bad(c, "does not compile");
	bool ok = model_run(&m, s->in, s->nin, got, 1, c->w->ctx->arena) == WEFT_OK ||
		  bad(c, m.status.message);
	for (uint32_t k = 0; ok && k < s->g->output.n; k++)
		ok = same_values(&got[k], &want[k]) || bad(c, "loop IR gives another result");
	model_close(&m);
	return ok;
}

/* ---- every sample ---- */

typedef bool Check(Case *, Sample *, const Tensor *want);

typedef struct {
	Case *c;
	Check *check;
	bool found; /* there is such a sample */
} Call;

static bool call(void *arg)
{
	Call *x = arg;
	Case *c = x->c;
	Ctx *ctx = c->w->ctx;
	Sample s;
	Tensor want[MAX_RESULTS];
	const char *text = sample_text(ctx->arena, c->op, c->k);
	x->found = text;
	if (!text)
		return true;
	if (!sample_build(ir_new(ctx), c->op, text, (SampleForm){.symbolic = c->symbolic}, &s))
		return bad(c, "does not build");
	if (!s.g->output.n)
		return true;
	if (!interp(ctx, s.g, s.in, s.nin, want, s.g->output.n, ctx->arena))
		return bad(c, "does not run");
	return x->check(c, &s, want);
}

static void every_sample(Check *check, bool symbolic)
{
	uint32_t failures = 0;
	const char *only = sample_only();
	for (Op op = 1; op < op_count(); op++) {
		bool more = !only || strcmp(only, op_name(op)) == 0;
		for (uint32_t k = 0; more; k++) {
			Case c = {.op = op,
				  .k = k,
				  .symbolic = symbolic,
				  .w = weft_new(),
				  .failures = &failures};
			Call x = {.c = &c, .check = check};
			assert_non_null(c.w);
			uint32_t before = failures;
			if (!boundary(c.w, call, &x) && failures == before)
				bad(&c, c.w->fatal);
			more = x.found;
			weft_free(c.w);
		}
	}
	assert_int_equal(failures, 0);
}

static void constants_fold(void **state)
{
	(void)state;
	every_sample(folds, false);
}

static void loops_run(void **state)
{
	(void)state;
	every_sample(runs, false);
}

static void symbolic_loops_run(void **state)
{
	(void)state;
	every_sample(runs, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_fold),
		cmocka_unit_test(loops_run),
		cmocka_unit_test(symbolic_loops_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
