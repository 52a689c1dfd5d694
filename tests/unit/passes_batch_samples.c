/* Batches of graphs (vmap): of a sample of every op, with every choice of operands that have a batch, the results are those of one
 * call for each member; twice, with batches of nothing and of one, of sizes as numbers and as symbols; of branches and loops
 * in which members go different ways; and what is refused.
 * OP=name in the environment: that op alone, its graphs printed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/interp/interp.h"
#include "passes/transform.h"
#include "tests/sample.h"

enum { MAX_RESULTS = 16 };

/* ---- failures: all of them are told before the test fails ---- */

typedef struct {
	Op op;
	uint32_t k; /* which sample */
	SampleForm form;
	uint32_t choice;      /* of operands, a bit each */
	int64_t outer, inner; /* extents of the batches; outer < 0: one batch */
	Ctx *ctx;
	uint32_t *failures;
} Case;

static bool bad(const Case *c, const char *what)
{
	Text t;
	text_init(&t, c->ctx->arena);
	ctx_print(c->ctx, &t);
	print_error("%s %u%s, operands %x, batch %lld %lld: %s\n%s", op_name(c->op), c->k, c->form.symbolic ? " symbolic" : "", c->choice,
		    (long long)c->outer, (long long)c->inner, what, t.n ? t.data : "");
	++*c->failures;
	return false;
}

/* ---- values ---- */

/* Member j of a batch: t with its elements moved, so that they stay in range; conditions of branches differ. */
static void member(const Case *c, const Tensor *t, int64_t j, void *to)
{
	int64_t n = tensor_numel(t), size = dtype_size(t->dtype);
	for (int64_t i = 0; i < n; i++)
		memcpy((char *)to + i * size, (const char *)t->data + (i + j) % n * size, (size_t)size);
	if (c->op == OP_cond && t->dtype == DT_bool && j % 2)
		*(uint8_t *)to ^= 1;
}

static Tensor batch_of(const Case *c, const Tensor *t, int64_t extent, int64_t first)
{
	Tensor y = {.dtype = t->dtype, .rank = t->rank + 1, .dim = {extent}};
	memcpy(y.dim + 1, t->dim, t->rank * sizeof *t->dim);
	y.data = arena_alloc(c->ctx->arena, tensor_bytes(&y) + 64);
	for (int64_t j = 0; j < extent; j++)
		member(c, t, first + j, (char *)y.data + (size_t)j * tensor_bytes(t));
	return y;
}

static Tensor part_of(const Tensor *t, int64_t j)
{
	Tensor y = {.dtype = t->dtype, .rank = t->rank - 1};
	memcpy(y.dim, t->dim + 1, y.rank * sizeof *y.dim);
	y.data = (char *)t->data + (size_t)j * tensor_bytes(&y);
	return y;
}

static bool near(const Tensor *a, const Tensor *b)
{
	Tensor x = tensor_flat_real(a), y = tensor_flat_real(b);
	if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) != 0)
		return false;
	for (int64_t i = 0, n = tensor_numel(&x); i < n; i++) {
		double v = tensor_f64(&x, i), w = tensor_f64(&y, i);
		if (!(isnan(v) && isnan(w)) && v != w && !(fabs(v - w) <= 1e-6 * (fabs(v) + fabs(w))))
			return false;
	}
	return true;
}

/* ---- one choice of one sample ---- */

static Graph *batched(const Case *c, Graph *g, const Sample *s, int64_t extent, const char *name)
{
	bool in[SAMPLE_INPUTS];
	for (uint32_t k = 0; k < s->nin; k++)
		in[k] = c->choice >> k & 1;
	SymTab *t = g->ir->syms;
	Sym size = c->form.symbolic ? sym_var(t, name, SYMVAR_SIZE, 0, SYM_INF) : sym_int(t, extent);
	Graph *y = transform_vmap(g, in, size);
	Text text;
	text_init(&text, c->ctx->arena);
	if (y && getenv("OP")) {
		graph_print(y, &text);
		print_message("%s", text.data);
	}
	return y;
}

/* What one call refuses is not compared. Sizes that depend on data must be the same. */
typedef enum { EQUAL_SIZES, OTHER_SIZES, REFUSED } Loop;

static Loop loop_over(const Case *c, Graph *plain, const Tensor *in, uint32_t nin, int64_t extent)
{
	Tensor one[MAX_RESULTS], first[MAX_RESULTS], part[SAMPLE_INPUTS];
	Loop how = EQUAL_SIZES;
	for (int64_t j = 0; j < extent; j++) {
		for (uint32_t k = 0; k < nin; k++)
			part[k] = c->choice >> k & 1 ? part_of(&in[k], j) : in[k];
		if (!interp(c->ctx, plain, part, nin, one, plain->output.n, c->ctx->arena))
			return REFUSED;
		for (uint32_t k = 0; k < plain->output.n; k++) {
			if (j == 0)
				first[k] = one[k];
			if (memcmp(first[k].dim, one[k].dim, one[k].rank * sizeof *one[k].dim) != 0)
				how = OTHER_SIZES;
		}
	}
	return how;
}

static bool equals_loop(const Case *c, Graph *plain, Graph *vmapped, const Tensor *in, uint32_t nin, int64_t extent)
{
	Tensor out[MAX_RESULTS], one[MAX_RESULTS], part[SAMPLE_INPUTS];
	uint32_t n = plain->output.n;
	Loop how = loop_over(c, plain, in, nin, extent);
	if (how == REFUSED)
		return true;
	if (how == OTHER_SIZES)
		return (!interp(c->ctx, vmapped, in, nin, out, n, c->ctx->arena) && strstr(c->ctx->last->text, "results of different sizes")) ||
		       bad(c, "members have different sizes");
	if (!interp(c->ctx, vmapped, in, nin, out, n, c->ctx->arena))
		return bad(c, "does not run");
	for (int64_t j = 0; j < extent; j++) {
		for (uint32_t k = 0; k < nin; k++)
			part[k] = c->choice >> k & 1 ? part_of(&in[k], j) : in[k];
		if (!interp(c->ctx, plain, part, nin, one, n, c->ctx->arena))
			return bad(c, "does not run alone");
		for (uint32_t k = 0; k < n; k++) {
			if (out[k].rank == 0 || out[k].dim[0] != extent)
				return bad(c, "a result without its batch");
			Tensor got = part_of(&out[k], j);
			if (!near(&got, &one[k]))
				return bad(c, arena_printf(c->ctx->arena, "result %u of member %lld differs", k, (long long)j));
		}
	}
	return true;
}

static bool check(Case *c, const Sample *s)
{
	Tensor in[SAMPLE_INPUTS];
	Graph *inner = batched(c, s->g, s, c->inner, "inner");
	if (!inner)
		return bad(c, "is refused");
	for (uint32_t k = 0; k < s->nin; k++)
		in[k] = c->choice >> k & 1 ? batch_of(c, &s->in[k], c->inner, 0) : s->in[k];
	if (c->outer < 0)
		return equals_loop(c, s->g, inner, in, s->nin, c->inner);
	Graph *outer = batched(c, inner, s, c->outer, "outer");
	if (!outer)
		return bad(c, "is refused a second time");
	for (uint32_t k = 0; k < s->nin; k++)
		in[k] = c->choice >> k & 1 ? batch_of(c, &in[k], c->outer, 0) : s->in[k];
	return equals_loop(c, inner, outer, in, s->nin, c->outer);
}

static void run(Case c)
{
	c.ctx = ctx_new();
	assert_non_null(c.ctx);
	if (setjmp(c.ctx->unwind)) {
		bad(&c, c.ctx->bug_text);
		ctx_free(c.ctx);
		return;
	}
	Ir *ir = ir_new(c.ctx);
	Sample s;
	const char *text = sample_text(c.ctx->arena, c.op, c.k);
	if (!sample_build(ir, c.op, text, c.form, &s))
		bad(&c, "does not build");
	else
		check(&c, &s);
	ctx_free(c.ctx);
}

/* ---- every op ---- */

static uint32_t count_inputs(Op op, uint32_t k)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	Sample s = {0};
	if (setjmp(ctx->unwind) == 0)
		sample_build(ir_new(ctx), op, sample_text(ctx->arena, op, k), (SampleForm){0}, &s);
	ctx_free(ctx);
	return s.nin;
}

static uint32_t count_samples(Op op)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	uint32_t n = 0;
	while (sample_text(ctx->arena, op, n))
		n++;
	ctx_free(ctx);
	return n;
}

static void run_sample(Op op, uint32_t k, uint32_t *failures)
{
	uint32_t nin = count_inputs(op, k), all = (UINT32_C(1) << nin) - 1;
	for (uint32_t choice = 1; choice <= all; choice++) {
		bool single = !(choice & (choice - 1));
		if (nin > 4 && !single && choice != all)
			continue;
		Case c = {.op = op, .k = k, .choice = choice, .outer = -1, .inner = 3, .failures = failures};
		run(c);
		c.form.symbolic = true;
		c.inner = 2;
		run(c);
		if (choice != all && !single)
			continue;
		c.outer = 3;
		run(c);
		c.form.symbolic = false;
		c.outer = 2;
		run(c);
		c.outer = -1;
		for (c.inner = 0; c.inner < 2; c.inner++)
			run(c);
	}
}

static void every_op(void **state)
{
	(void)state;
	uint32_t failures = 0;
	const char *only = getenv("OP");
	for (Op op = 1; op < OP_COUNT; op++)
		for (uint32_t k = 0, n = only && strcmp(only, op_name(op)) != 0 ? 0 : count_samples(op); k < n; k++)
			run_sample(op, k, &failures);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
