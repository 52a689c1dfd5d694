/* The driver of the passes: which run, in which order, what is dumped, left out and kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/op/op.h"
#include "passes/pipeline.h"
#include "tests/unit/ir_fixture.h"

static const char model[] =
	"graph @f(%x: f32[2, 1, 3, 8], %w: f32[1, 4, 3, 3]) {\n"
	"  %one = full(value=1, shape=[2, 1, 3, 8], dtype=f32)\n"
	"  %m = mul(%x, %one)\n"
	"  %s = aten.silu(%m) : f32[2, 1, 3, 8]\n"
	"  %t = aten.softmax.int(%s, dim=3) : f32[2, 1, 3, 8]\n"
	"  %c = conv(%t, %w, stride=[1], dilation=[1], dilation_in=[1], pad=[1], size=[8], "
	"acc=f32) : f32[2, 1, 4, 8]\n"
	"  %e = sin(%c)\n  %f = sin(%c)\n  %y = add(%e, %f)\n  %dead = exp(%x)\n  return %y\n}\n";

static uint32_t count(const Graph *g, Op op)
{
	uint32_t k = 0;
	for (Node n = g->first; n.i; n = node_next(g, n))
		k += node_op(g, n) == op;
	return k;
}

typedef struct {
	uint32_t n, changed;
	char name[200][16];
	const Graph *g;
} Seen;

static void note(void *user, const char *pass, const Graph *g, bool changed)
{
	Seen *s = user;
	assert_true(s->n < 200);
	snprintf(s->name[s->n++], sizeof s->name[0], "%s", pass);
	s->changed += changed;
	s->g = g;
}

static const char *const cleaning[] = {"sink", "branch", "simplify",   "cse", "row_sums",
				       "rows", "fold",   "fold_scale", "dce", "state"};
static const char *const closing[] = {"sum_products", "winograd", "pad"};
enum { CLEANING = sizeof cleaning / sizeof *cleaning, CLOSING = sizeof closing / sizeof *closing };

/* First what expands, once; then what cleans, all of it until nothing changes; then what lowering
 * wants, once. */
static void test_order(void **state)
{
	(void)state;
	Seen s = {0};
	Graph *g = parsed(model);
	assert_true(pipeline_run(g, &(PipelineOptions){.after = note, .user = &s}));
	assert_true(s.g == g && s.n > 4 && (s.n - 4 - CLOSING) % CLEANING == 0 &&
		    s.n >= 4 + 2 * CLEANING + CLOSING);
	for (uint32_t k = 0; k < s.n; k++)
		assert_string_equal(s.name[k], k < 4                ? pipeline_names()[k]
					       : k + CLOSING >= s.n ? closing[k + CLOSING - s.n]
								    : cleaning[(k - 4) % CLEANING]);
	/* silu's product; the padding's zero */
	assert_int_equal(count(g, OP_mul) + count(g, OP_full), 1 + 1);
	assert_int_equal(count(g, OP_sin), 1); /* of two that are equal */
	assert_int_equal(count(g, OP_pad), 1);
	uint32_t rounds = s.n;
	s = (Seen){0};
	assert_true(pipeline_run(g, &(PipelineOptions){.after = note, .user = &s}));
	assert_int_equal(s.changed, 0); /* nothing is left to do */
	assert_true(s.n == 4 + CLEANING + CLOSING && s.n < rounds);
	s = (Seen){0};
	g = parsed(model);
	pipeline_clean(g, &(PipelineOptions){.after = note, .user = &s});
	assert_int_equal(s.n % CLEANING, 0);
	assert_string_equal(s.name[0], "sink");
	assert_int_equal(count(g, OP_aten_silu), 1);
	assert_int_equal(count(g, OP_pad), 0);
}

static void test_names(void **state)
{
	(void)state;
	static const char *const all[] = {
		"canon",    "decompose", "split_complex", "quantize", "sink", "branch",
		"simplify", "cse",       "row_sums",      "rows",     "fold", "fold_scale",
		"dce",      "state",     "sum_products",  "winograd", "pad"};
	const char *const *names = pipeline_names();
	for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
		assert_string_equal(names[k], all[k]);
		Graph *g = parsed(model);
		assert_true(pipeline_run_one(g, all[k]));
		assert_int_equal(count(g, OP_pad), !strcmp(all[k], "pad"));
		/* it has a rule: canon keeps it */
		assert_int_equal(count(g, OP_aten_silu), strcmp(all[k], "decompose") != 0);
		assert_int_equal(count(g, OP_sin), !strcmp(all[k], "cse") ? 1 : 2);
		assert_int_equal(count(g, OP_exp) != 0,
				 strcmp(all[k], "dce") && strcmp(all[k], "pad"));
	}
	assert_null(names[sizeof all / sizeof *all]);
	assert_false(pipeline_run_one(parsed(model), "simplif"));
	assert_string_equal(ctx->last->text, "no pass simplif");
}

static uint32_t times(const char *text, const char *what)
{
	uint32_t n = 0;
	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static const char *dumped(const char *pass, const char *skip)
{
	Text t;
	text_init(&t, ctx->arena);
	assert_true(pipeline_run(parsed(model),
				 &(PipelineOptions){.dump = pass, .dump_to = &t, .skip = skip}));
	return t.data;
}

/* Of one pass the graph after each of its turns; of all of them those that changed it. */
static void test_dump(void **state)
{
	(void)state;
	const char *one = dumped("pad", NULL), *every = dumped("all", NULL),
		   *simplify = dumped("simplify", NULL);
	assert_true(strstr(one, "; after pad\ngraph @f(") == one);
	assert_int_equal(times(one, "; after "), 1);
	assert_int_equal(times(simplify, "; after simplify"), times(simplify, "; after "));
	/* changed or not */
	assert_int_equal(times(simplify, "graph @f("), times(simplify, "; after "));
	assert_true(times(simplify, "; after ") >= 2 &&
		    times(simplify, "; after simplify (unchanged)\n") == 1);
	assert_true(strstr(every, "; after canon (unchanged)\n; after decompose\ngraph @f(") ==
		    every);
	assert_non_null(strstr(every, "; after sink (unchanged)\n; after branch (unchanged)\n; "
				      "after simplify\ngraph @f("));
	assert_int_equal(times(every, "graph @f(") + times(every, " (unchanged)\n"),
			 times(every, "; after "));
	assert_int_equal(dumped(NULL, NULL)[0], 0);
}

static void test_skip(void **state)
{
	(void)state;
	const char *every = dumped("all", "cse");
	assert_int_equal(times(every, "; after cse"), 0);
	assert_true(times(every, "; after simplify") >= 2);
	Graph *g = parsed(model);
	assert_true(pipeline_run(g, &(PipelineOptions){.skip = "cse"}));
	assert_int_equal(count(g, OP_sin), 2);
	g = parsed(model);
	assert_true(pipeline_run(g, &(PipelineOptions){.skip = "pad"}));
	assert_int_equal(count(g, OP_pad), 0);
}

static void test_keep(void **state)
{
	(void)state;
	static const Op keep[] = {OP_aten_silu, OP_aten_softmax_int};
	Graph *g = parsed(model);
	assert_true(pipeline_run(g, &(PipelineOptions){.keep = keep, .nkeep = 2}));
	assert_int_equal(count(g, OP_aten_silu) + count(g, OP_aten_softmax_int), 2);
	g = parsed(model);
	assert_true(pipeline_run(g, &(PipelineOptions){.keep = keep, .nkeep = 1}));
	assert_int_equal(count(g, OP_aten_silu), 1);
	assert_int_equal(count(g, OP_aten_softmax_int), 0);
}

/* What fails ends it: the passes behind are not run. */
static void test_failure(void **state)
{
	(void)state;
	Seen s = {0};
	Graph *g = parsed("graph @f(%x: f32[2, 3]) {\n  %y = aten.t(%x) : f32[3, 3]\n  %one = "
			  "full(value=1, shape=[3, 3], dtype=f32)\n"
			  "  %z = mul(%y, %one)\n  return %z\n}\n");
	assert_false(pipeline_run(g, &(PipelineOptions){.after = note, .user = &s}));
	assert_int_equal(ctx->nerror, 1);
	assert_int_equal(s.n, 1);
	assert_string_equal(s.name[0], "canon");
	assert_false(pipeline_run_one(parsed("graph @f(%x: f32[2, 3]) {\n  %y = aten.t(%x) : "
					     "f32[3, 3]\n  return %y\n}\n"),
				      "canon"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dump, setup, teardown),
		cmocka_unit_test_setup_teardown(test_skip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failure, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
