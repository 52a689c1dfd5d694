/* Lower precision (passes/precision.h) of every operator, from its samples in f32: once as they
 * are, so that operators of class LOW convert, and once behind products of one operand, whose
 * results are low, so that every operator meets low operands. The result keeps its types, is one
 * that the passes and the interpreter accept, and does not change when it is lowered again. Sizes
 * are numbers, and symbols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/build/verify.h"
#include "ir/interp/interp.h"
#include "passes/pipeline.h"
#include "passes/precision.h"
#include "tests/help/sample.h"

enum { MOST_RESULTS = 64 };

/* Readers of f32 inputs read what a LOW operator that changes nothing makes of them. */
static void put_low_operators(Graph *g)
{
	for (uint32_t k = 0; k < g->input.n; k++) {
		Node x = g->input.data[k].node;
		if (node_dtype(g, x) != DT_f32 || !node_nuses(g, x))
			continue;
		Build b = {.g = g, .before = graph_behind_inputs(g), .keep = true};
		const Attr attr[] = {attr_str(g->ir, "...->..."), attr_int(g->ir, 1), attr_none()};
		Node y = graph_add(g, b.before, OP_aten_einsum, &x, 1, ir_attrs(g->ir, 3, attr),
				   node_type_id(g, x), (LocId){0});
		for (Use u = node_data(g, x)->first_use, next; u.i; u = next) {
			next = g->use.data[u.i].next;
			Node user = g->use.data[u.i].user;
			for (uint32_t i = 0; user.i != y.i && i < node_nin(g, user); i++)
				if (node_in(g, user, i).i == x.i)
					graph_set_operand(g, user, i, y);
		}
	}
}

static void check_types(const Graph *g, const Graph *low)
{
	for (uint32_t k = 0; k < g->output.n; k++)
		assert_int_equal(node_type_id(g, g->output.data[k].node).i,
				 node_type_id(low, low->output.data[k].node).i);
}

static void fail_sample(const Ctx *ctx, Op op, const char *text, const char *what)
{
	fail_msg("%s: %s: %s: %s", op_name(op), text, what, ctx->last ? ctx->last->text : "");
}

/* Whether a sample of the operator was changed. */
static bool check(Ctx *ctx, Op op, const char *text, DType to, SampleForm form, bool behind)
{
	Sample s;
	Ir *ir = ir_new(ctx);
	if (!sample_build(ir, op, text, form, &s)) /* its sizes are no symbols */
		return false;
	if (behind)
		put_low_operators(s.g);
	Graph *low = graph_clone(s.g);
	const bool changed = precision_lower(low, to);
	if (!graph_verify(low))
		fail_sample(ctx, op, text, "the graph is wrong");
	check_types(s.g, low);
	Graph *twice = graph_clone(low);
	precision_lower(twice, to);
	if (!graph_equal(low, twice))
		fail_sample(ctx, op, text, "lowered twice it is another graph");
	if (!pipeline_run(low, &(PipelineOptions){0}))
		fail_sample(ctx, op, text, "the passes refuse it");
	Tensor out[MOST_RESULTS];
	assert_true(low->output.n <= MOST_RESULTS);
	if (!form.symbolic && interp(ctx, s.g, s.in, s.nin, out, s.g->output.n, ctx->arena) &&
	    !interp(ctx, low, s.in, s.nin, out, low->output.n, ctx->arena))
		fail_sample(ctx, op, text, "the interpreter refuses it");
	return changed;
}

static uint32_t check_forms(Op op, uint32_t k)
{
	Ctx *ctx = ctx_new();
	uint32_t changed = 0;
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s: an internal error: %s", op_name(op), ctx->bug_text);
	const char *text = sample_text(ctx->arena, op, k);
	if (op_info(op)->autocast == AUTOCAST_LOW)
		changed += check(ctx, op, text, DT_bf16, (SampleForm){0}, false);
	changed += check(ctx, op, text, DT_bf16, (SampleForm){0}, true);
	changed += check(ctx, op, text, DT_f16, (SampleForm){.symbolic = true}, true);
	ctx_free(ctx);
	return changed;
}

static void test_samples(void **state)
{
	const char *only = sample_only();
	uint32_t changed = 0;
	(void)state;
	for (Op op = 1; op < op_count(); op++) {
		if (only && op != op_find(only))
			continue;
		for (uint32_t k = 0; k < sample_count(op); k++)
			changed += check_forms(op, k);
	}
	assert_true(changed || only);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
