/* Derivatives of every primitive and scalar function, from its samples in f64 (the language: ir/ops/op.h), at the values of the
 * sample and near them, with sizes as numbers and as symbols; first and second derivatives (tests/derivative.h).
 * OP=name in the environment: that op alone, composites too, its graphs printed; OP=all: all of them, composites too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "tests/derivative.h"
#include "tests/sample.h"

typedef struct {
	Op op;
	uint32_t k; /* which sample */
	bool symbolic, near;
	uint32_t failures, checked;
} Case;

static void failed(void *user, const char *what)
{
	Case *c = user;
	print_error("%s %u%s%s, %s", op_name(c->op), c->k, c->symbolic ? " symbolic" : "", c->near ? " near" : "", what);
	c->failures++;
}

/* Float to float, and yet without a second derivative. */
static bool has_one(Op op)
{
	return op == OP_digamma || op == OP_trigamma; /* polygamma functions of higher order are not in the table */
}

static bool chosen(Op op)
{
	const char *only = getenv("OP");
	if (only)
		return strcmp(only, op_name(op)) == 0 || strcmp(only, "all") == 0;
	return op_kind(op) != OP_COMPOSITE && !op_info(op)->no_deriv && !has_one(op);
}

/* Differences can be taken of it. */
static bool is_fit(const Tensor *t)
{
	Tensor x = tensor_flat_real(t);
	bool fit = x.dtype == DT_f64;
	for (int64_t i = 0; fit && i < tensor_numel(&x); i++)
		fit = fabs(tensor_f64(&x, i)) < 100;
	return fit;
}

static bool all_fit(const Point *p)
{
	for (uint32_t k = 0; k < p->nin; k++)
		if (p->wrt[k] && !is_fit(&p->in[k]))
			return false;
	return true;
}

static void run_case(Case *c)
{
	Sample s;
	Point p;
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	Derivative d = {.ctx = ctx, .rng = c->op * 977u + c->k, .failed = failed, .user = c, .print = getenv("OP") && strcmp(getenv("OP"), "all") != 0};
	/* PyTorch has no derivative by the exponent of what is 0 where the exponent is */
	d.no_differences = c->op == OP_pow && !c->near;
	if (setjmp(ctx->unwind)) {
		failed(c, ctx->bug_text);
		ctx_free(ctx);
		return;
	}
	SampleForm form = {.symbolic = c->symbolic, .real = DT_f64};
	if (sample_build(ir_new(ctx), c->op, sample_text(ctx->arena, c->op, c->k), form, &s) &&
	    point_of(s.g, s.in, s.nin, ctx->arena, &p) && all_fit(&p))
		derivative_check_twice(&d, c->near ? point_near(&d, p) : p);
	c->checked += d.checked;
	ctx_free(ctx);
}

static void samples(void **state)
{
	(void)state;
	Case c = {0};
	for (c.op = 1; c.op < OP_COUNT; c.op++)
		for (uint32_t k = 0, n = chosen(c.op) ? sample_count(c.op) : 0; k < n; k++)
			for (uint32_t form = 0; form < 4; form++) {
				c.k = k;
				c.symbolic = form & 1;
				c.near = form >> 1;
				run_case(&c);
			}
	print_message("%u tangents are differences of values\n", c.checked);
	assert_int_equal(c.failures, 0);
}

int main(void)
{
	op_init();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
