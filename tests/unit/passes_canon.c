/* Expansion of composites: types are compared with the file's, subgraphs are visited, kept ops
 * stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ops/op.h"
#include "passes/pipeline.h"
#include "tests/unit/ir_fixture.h"

static uint32_t count(const Graph *g, Op op)
{
	uint32_t k = 0;
	for (Node n = g->first; n.i; n = node_next(g, n))
		k += node_op(g, n) == op;
	return k;
}

static void expect_error(const char *text, const char *a, const char *b)
{
	Graph *g = parsed(text);
	assert_false(pipeline_run_one(g, "canon"));
	assert_int_equal(ctx->nerror, 1);
	if (!strstr(ctx->last->text, a) || !strstr(ctx->last->text, b))
		fail_msg("%s", ctx->last->text);
	assert_non_null(strstr(ctx->last->where, "node y"));
}

static void test_wrong_shape(void **state)
{
	(void)state;
	expect_error("graph @f(%x: f32[2, 3]) -> f32[3, 3] {\n"
		     "  %y = aten.t(%x) : f32[3, 3]\n  return %y\n}\n",
		     "gives f32[3, 2]", "f32[3, 3]");
}

static void test_wrong_dtype(void **state)
{
	(void)state;
	expect_error("graph @f(%x: i64[2]) -> i64[2] {\n"
		     "  %y = aten.exp(%x) : i64[2]\n  return %y\n}\n",
		     "gives f32[2]", "i64[2]");
}

/* Not provably different, but different for most sizes. */
static void test_wrong_at_a_sample(void **state)
{
	(void)state;
	expect_error(
		"graph @f(%x: f32[n, m]) -> f32[n, n] where 1 <= n <= 9 ~ 4, 1 <= m <= 9 ~ 4 {\n"
		"  %y = aten.neg(%x) : f32[n, n]\n  return %y\n}\n",
		"gives f32[n, m]", "f32[n, n]");
}

/* min(n, 8) is n for the sizes of the guard: undecided, so the file's type stands and is asserted.
 */
static void test_adopts_the_file(void **state)
{
	(void)state;
	Graph *g = parsed("graph @f(%x: f32[n]) -> f32[n] where 1 <= n <= 99 ~ 4 {\n"
			 "  %y = aten.slice.Tensor(%x, dim=0, start=0, end=8, step=1) : f32[n]\n"
			 "  %z = aten.neg(%y) : f32[n]\n  return %z\n}\n");
	Sym n = sym_find(ir->syms, "n", 1);
	graph_guard(g, GUARD_LE, n, sym_int(ir->syms, 8), "test");
	assert_true(pipeline_run_one(g, "canon"));
	assert_int_equal(g->guard.n, 2);
	assert_true(g->guard.data[1].kind == GUARD_EQ);
	assert_true(node_dim(g, g->output.data[0].node, 0).i == n.i);
	assert_true(graph_verify(g));
}

static void test_several_results(void **state)
{
	(void)state;
	Graph *g =
		parsed("graph @f(%x: f32[6, 2]) -> f32[4, 2], f32[2, 2] {\n"
		      "  %s = aten.split.Tensor(%x, split_size=4, dim=0) : (f32[4, 2], f32[2, 2])\n"
		      "  %a = get(%s, index=0) : f32[4, 2]\n"
		      "  %b = get(%s, index=1) : f32[2, 2]\n  return %a, %b\n}\n");
	assert_true(pipeline_run_one(g, "canon"));
	assert_int_equal(count(g, OP_get), 0);
	assert_int_equal(node_op(g, g->output.data[0].node), OP_slice);
}

static void test_levels(void **state)
{
	(void)state;
	const char *text = "graph @f(%q: f32[2, 4, 5, 8]) -> f32[2, 4, 5, 8] {\n"
			   "  %y = aten.scaled_dot_product_attention(%q, %q, %q, none)"
			   " : f32[2, 4, 5, 8]\n  return %y\n}\n";
	Graph *g = parsed(text), *h = parsed(text);
	pipeline_run_one(g, "canon");
	assert_int_equal(count(g, OP_aten_scaled_dot_product_attention), 1);
	pipeline_run_one(g, "decompose");
	assert_int_equal(count(g, OP_contract), 2);
	const Op keep[] = {OP_aten_scaled_dot_product_attention};
	PipelineOptions o = {.keep = keep, .nkeep = 1};
	assert_true(pipeline_run(h, &o));
	assert_int_equal(count(h, OP_aten_scaled_dot_product_attention), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_wrong_shape, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_dtype, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_at_a_sample, setup, teardown),
		cmocka_unit_test_setup_teardown(test_adopts_the_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several_results, setup, teardown),
		cmocka_unit_test_setup_teardown(test_levels, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
