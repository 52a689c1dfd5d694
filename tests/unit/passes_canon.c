/* Expansion of composites: types are compared with the file's, subgraphs are visited, kept ops
 * stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/build/verify.h"
#include "ir/op/op.h"
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

/* What the file says of a size, and where that differs from what is inferred. */
typedef struct {
	bool refused;
	const char *what, *where, *line; /* the graph's condition on its sizes, and the node: its
	                                    operand is %x of type f32[n] */
	GuardKind kind;                  /* of a guard between a and b, or NULL */
	const char *a, *b;
} Adopted;

static const Adopted adopted[] = {
	{true, "it differs at the hint", "1 <= n <= 99 ~ 9", "aten.slice.Tensor(%x, dim=0, start=0, end=8, step=1) : f32[n]", 0, NULL, NULL},
	{true, "it differs at the least value", "3 <= n <= 10000 ~ 5000", "aten.slice.Tensor(%x, dim=0, start=4, end=99999, step=1) : f32[n - 4]", 0, NULL, NULL},
	{false, "it differs nowhere in range", "4 <= n <= 10000 ~ 5000", "aten.slice.Tensor(%x, dim=0, start=4, end=99999, step=1) : f32[n - 4]", 0, NULL, NULL},
	{true, "it differs at points in between", "1 <= n <= 40 ~ 1", "aten.slice.Tensor(%x, dim=0, start=0, end=20, step=1) : f32[n]", 0, NULL, NULL},
	{false, "a guard excludes all points at which it differs", "1 <= n <= 40 ~ 30", "aten.slice.Tensor(%x, dim=0, start=0, end=20, step=1) : f32[n]",
	 GUARD_LE, "n", "20"},
	{true, "a guard admits its end, and there it differs", "1 <= n <= 40 ~ 20", "aten.slice.Tensor(%x, dim=0, start=0, end=19, step=1) : f32[n]",
	 GUARD_LE, "n", "20"},
	{true, "a guard admits more than its end, and there it differs", "1 <= n <= 40 ~ 19", "aten.slice.Tensor(%x, dim=0, start=0, end=15, step=1) : f32[n]",
	 GUARD_LE, "n", "20"},
	{false, "a guard says that sizes are equal", "1 <= n <= 40 ~ 7, 1 <= m <= 40 ~ 9", "aten.neg(%x) : f32[m]", GUARD_EQ, "n", "m"},
	{true, "a guard says that others are equal", "1 <= n <= 40 ~ 7, 1 <= m <= 40 ~ 7, 1 <= k <= 2 ~ 2", "aten.neg(%x) : f32[m]", GUARD_EQ, "k", "k"},
	{true, "a guard holds, and it differs", "1 <= n <= 40 ~ 7, 1 <= m <= 40 ~ 9", "aten.neg(%x) : f32[m]", GUARD_EQ, "n", "7"},
	{false, "a guard excludes the one point at which it differs", "4 <= n <= 5 ~ 4", "aten.neg(%x) : f32[5]", GUARD_NE, "n", "4"},
	{true, "a guard excludes a point at which it does not differ", "4 <= n <= 5 ~ 4", "aten.neg(%x) : f32[5]", GUARD_NE, "n", "5"},
	{false, "a result of several, each of which is undecided", "1 <= n <= 40 ~ 8, "
								   "1 <= m <= 40 ~ 8",
	 "aten.max.dim(%x2, dim=1) : (f32[m], i64[m])", GUARD_EQ, "n", "m"},
	{true, "a result of several, one of which differs", "1 <= n <= 40 ~ 8, 1 <= m <= 40 ~ 8", "aten.max.dim(%x2, dim=1) : (f32[n], i64[m])", 0, NULL, NULL},
	{true, "a result of several, one of which has another rank", "1 <= n <= 40 ~ 8", "aten.max.dim(%x2, dim=1) : (f32[n], i64[n, 1])", 0, NULL, NULL},
};

static Sym size(const char *text)
{
	bool number = *text >= '0' && *text <= '9';
	return number ? sym_int(ir->syms, atoll(text))
		      : sym_find(ir->syms, text, (uint32_t)strlen(text));
}

static void test_adopted(void **state)
{
	for (size_t k = 0; k < sizeof adopted / sizeof *adopted; k++) {
		const Adopted *c = &adopted[k];
		Text t;
		if (k) { /* symbols of its own */
			teardown(state);
			setup(state);
		}
		text_init(&t, ctx->arena);
		text_printf(&t,
			    "graph @f(%%x: f32[n], %%x2: f32[n, 3], %%o: f32[%s], %%p: f32[%s]) "
			    "where %s {\n  %%y = %s\n",
			    strstr(c->where, "m <") ? "m" : "n",
			    strstr(c->where, "k <") ? "k" : "n", c->where, c->line);
		text_printf(&t, strchr(c->line, '(') && strstr(c->line, ": (")
					? "  %%z = get(%%y, index=0)\n  return %%z\n}\n"
					: "  return %%y\n}\n");
		Graph *g = parsed(t.data);
		if (c->a)
			graph_guard(g, c->kind, size(c->a), size(c->b), "test");
		if ((pipeline_run_one(g, "canon") && pipeline_run_one(g, "decompose")) ==
		    c->refused)
			fail_msg("%s: %s", c->what, c->refused ? "is taken" : ctx->last->text);
		assert_true(c->refused || graph_verify(g));
	}
}

/* A composite without a result goes, and what it does stays. */
static void test_no_result(void **state)
{
	(void)state;
	Graph *g = parsed("graph @f(%x: f32[2]) {\n  %c = full(value=true, shape=[], dtype=bool)\n "
			  " aten._assert_async.msg(%c, assert_msg=\"no\")\n"
			  "  %y = neg(%x)\n  return %y\n}\n");
	assert_true(pipeline_run_one(g, "canon"));
	assert_int_equal(count(g, OP_assert), 1);
	assert_int_equal(count(g, OP_aten__assert_async_msg), 0);
	assert_false(pipeline_run_one(g, "cannon"));
	assert_string_equal(ctx->last->text, "no pass cannon");
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
		cmocka_unit_test_setup_teardown(test_adopted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_result, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several_results, setup, teardown),
		cmocka_unit_test_setup_teardown(test_levels, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
