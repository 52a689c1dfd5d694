/* Cotangents where PyTorch's derivative is not that of the values in one direction only: losses
 * have none by their class weights forwards, so that passes_derive_samples, which compares both
 * directions, leaves them out. Backwards they are those of the values: here against central
 * differences, in f64, by every operand of real numbers; of the first result, as a total weight is
 * none that has a derivative. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "transform/transform.h"
#include "tests/help/sample.h"

enum { MAX_RESULTS = 8 };

static const char *const names[] = {"aten.nll_loss",           "aten.nll_loss_nd",
				    "aten.nll_loss2d",         "aten.nll_loss_forward",
				    "aten.nll_loss2d_forward", "aten.cross_entropy_loss"};

typedef struct {
	Ctx *ctx;
	Sample s;
	Graph *g; /* with gradients */
	Tensor in[2 * SAMPLE_INPUTS];
	const char *what;
} Case;

static void run(Case *c, Graph *g, uint32_t nin, Tensor *out)
{
	if (g->output.n > MAX_RESULTS + SAMPLE_INPUTS ||
	    !interp(c->ctx, g, c->in, nin, out, g->output.n, c->ctx->arena))
		fail_msg("%s: %s", c->what, c->ctx->last ? c->ctx->last->text : "too many results");
}

/* The sum of all results that have cotangents, times those. */
static double weighed(Case *c)
{
	Tensor out[MAX_RESULTS + SAMPLE_INPUTS];
	double sum = 0;
	run(c, c->s.g, c->s.nin, out);
	for (uint32_t k = 0, ct = c->s.nin; k < c->s.g->output.n; k++) {
		if (!dtype_is_inexact(out[k].dtype))
			continue;
		for (int64_t i = 0; i < tensor_numel(&out[k]); i++)
			sum += tensor_f64(&out[k], i) * tensor_f64(&c->in[ct], i);
		ct++;
	}
	return sum;
}

static void compare(Case *c, uint32_t k, const Tensor *gradient)
{
	const double step = 1e-5;
	Tensor *x = &c->in[k];
	for (int64_t i = 0; i < tensor_numel(x); i++) {
		double at = tensor_f64(x, i), up, down;
		tensor_set_f64(x, i, at + step);
		up = weighed(c);
		tensor_set_f64(x, i, at - step);
		down = weighed(c);
		tensor_set_f64(x, i, at);
		double want = (up - down) / (2 * step), got = tensor_f64(gradient, i);
		if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want))))
			fail_msg("%s: by operand %u, element %lld: %g, differences give %g",
				 c->what, k, (long long)i, got, want);
	}
}

static void check(Op op, uint32_t sample)
{
	Case c = {.ctx = ctx_new()};
	assert_non_null(c.ctx);
	if (setjmp(c.ctx->unwind))
		fail_msg("%s", c.ctx->bug_text);
	Ir *ir = ir_new(c.ctx);
	c.what = arena_printf(c.ctx->arena, "%s %u", op_name(op), sample);
	const char *text = sample_text(c.ctx->arena, op, sample);
	assert_true(sample_build(ir, op, text, (SampleForm){.real = DT_f64}, &c.s));
	Tensor out[MAX_RESULTS + SAMPLE_INPUTS];
	bool wrt[SAMPLE_INPUTS] = {false};
	uint32_t nct = 0, nout = c.s.g->output.n;
	memcpy(c.in, c.s.in, c.s.nin * sizeof *c.in);
	for (uint32_t k = 0; k < c.s.nin; k++)
		wrt[k] = dtype_is_float(c.s.in[k].dtype);
	run(&c, c.s.g, c.s.nin, out);
	for (uint32_t k = 0; k < nout; k++) {
		if (!dtype_is_inexact(out[k].dtype))
			continue;
		Tensor *ct = &c.in[c.s.nin + nct++];
		*ct = out[k];
		ct->data = arena_alloc(c.ctx->arena, tensor_bytes(ct) + 64);
		for (int64_t i = 0; i < tensor_numel(ct); i++)
			tensor_set_f64(ct, i, k ? 0 : 0.5 + (double)(i % 5) / 4);
	}
	c.g = transform_vjp(c.s.g, &(Wrt){.input = wrt});
	if (!c.g)
		fail_msg("%s: %s", c.what, c.ctx->last->text);
	run(&c, c.g, c.s.nin + nct, out);
	for (uint32_t k = 0, at = nout; k < c.s.nin; k++)
		if (wrt[k])
			compare(&c, k, &out[at++]);
	ctx_free(c.ctx);
}

static void test_losses(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		Op op = op_find(names[k]);
		assert_true(op != OP_none);
		for (uint32_t i = 0, n = sample_count(op); i < n; i++)
			check(op, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_losses)};
	op_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
