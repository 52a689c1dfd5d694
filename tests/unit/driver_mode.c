/* Training and evaluation (weft_set_mode): the graph of one export becomes that of the other;
 * what a file does not say is refused. tests/make/make_mode_fixtures.py makes the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/api/driver_priv.h"
#include "weft_trace.h"

static WeftGraph *load(Weft *w, const char *name, const char *mode)
{
	char path[500];
	snprintf(path, sizeof path, TEST_DATA "/mode/%s_%s.pt2", name, mode);
	WeftGraph *g = weft_load(w, path);
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

static void set(Weft *w, WeftGraph *g, WeftMode mode)
{
	if (!weft_set_mode(w, g, mode))
		fail_msg("%s", weft_messages(w));
}

/* Without dead nodes, and without names, in which torch.export counts what it sees. */
static const char *text_of(Weft *w, WeftGraph *g)
{
	WeftGraph *copy = weft_copy_graph(w, g);
	assert_true(copy && weft_transform(w, copy, "dce"));
	for (uint32_t k = 0; k < copy->g->node_name.n; k++)
		copy->g->node_name.data[k] = NULL;
	copy->g->numbered = false;
	return weft_graph_text(w, copy, NULL);
}

static void expect_equal(const char *name, const char *want, const char *got)
{
	size_t at = 0;
	while (want[at] && want[at] == got[at])
		at++;
	if (want[at] || got[at])
		fail_msg("%s: at %zu expected %.200s ... got %.200s", name, at, want + at,
			 got + at);
}

static void compare(const char *name)
{
	Weft *w[2] = {weft_new(), weft_new()};
	WeftGraph *train = load(w[0], name, "train"), *eval = load(w[1], name, "eval");
	const char *text[] = {text_of(w[1], eval), text_of(w[0], train)};
	set(w[0], train, WEFT_TRAIN); /* as it is */
	expect_equal(name, text[1], text_of(w[0], train));
	set(w[0], train, WEFT_EVAL);
	expect_equal(name, text[0], text_of(w[0], train));
	set(w[1], eval, WEFT_EVAL);
	expect_equal(name, text[0], text_of(w[1], eval));
	assert_int_equal(weft_nmessages(w[1]), 0);
	set(w[1], eval, WEFT_TRAIN);
	expect_equal(name, text[1], text_of(w[1], eval));
	assert_int_equal(weft_nmessages(w[1]), 1);
	assert_int_equal(weft_message(w[1], 0).severity, WEFT_NOTE);
	assert_string_equal(weft_message(w[1], 0).text,
			    "what Python decided by self.training is not in this file");
	set(w[1], eval, WEFT_EVAL); /* there and back */
	expect_equal(name, text[0], text_of(w[1], eval));
	set(w[0], train, WEFT_TRAIN);
	expect_equal(name, text[1], text_of(w[0], train));
	weft_free(w[0]);
	weft_free(w[1]);
}

static void test_both(void **state)
{
	static const char *const name[] = {"net", "other", "recurrent", "counted", "tied"};
	(void)state;
	for (size_t k = 0; k < sizeof name / sizeof *name; k++)
		compare(name[k]);
	Weft *w[2] = {weft_new(), weft_new()}; /* which only evaluation can be told of */
	WeftGraph *train = load(w[0], "both", "train"), *eval = load(w[1], "both", "eval");
	set(w[0], train, WEFT_EVAL);
	expect_equal("both", text_of(w[1], eval), text_of(w[0], train));
	weft_free(w[0]);
	weft_free(w[1]);
}

/* Lines in bodies are numbers that torch.export counts. */
static const char *without_lines(const char *text)
{
	char *copy = strdup(text), *to = copy;
	for (const char *p = text; *p; p++) {
		if (!strncmp(p, "  ; ", 4))
			p += strcspn(p, "\n");
		*to++ = *p;
	}
	*to = 0;
	return copy;
}

/* Keys that go into bodies stay there in evaluation. */
static void test_body(void **state)
{
	(void)state;
	Weft *w[2] = {weft_new(), weft_new()};
	WeftGraph *train = load(w[0], "branch", "train"), *eval = load(w[1], "branch", "eval");
	const char *text = without_lines(text_of(w[0], train));
	uint32_t n;
	set(w[1], eval, WEFT_TRAIN);
	const char *got = without_lines(text_of(w[1], eval));
	expect_equal("branch", text, got);
	free((char *)(uintptr_t)text);
	free((char *)(uintptr_t)got);
	set(w[1], eval, WEFT_EVAL);
	weft_states(w[1], eval, &n);
	assert_int_equal(n, 1);
	float x[64] = {1, 2, 3};
	int64_t shape = 64;
	WeftTensor in = {x, {WEFT_CPU, 0}, 1, {WEFT_FLOAT, 32, 1}, &shape, NULL, 0}, out;
	assert_true(weft_interpret(w[1], eval, &in, 1, &out));
	assert_memory_equal(out.data, x, sizeof x);
	assert_false(weft_set_mode(w[1], eval, WEFT_TRAIN));
	assert_non_null(strstr(weft_messages(w[1]), "load the model again"));
	weft_free(w[0]);
	weft_free(w[1]);
}

/* The seed and the place of weft.rng are those of the options. */
static void test_random(void **state)
{
	(void)state;
	Weft *w = weft_new();
	const WeftLoadOptions o = {.size = sizeof o, .rng_input = true};
	uint32_t n, ninput;
	WeftGraph *g = weft_load_with(w, TEST_DATA "/mode/net_eval.pt2", &o);
	assert_non_null(g);
	weft_inputs(w, g, &ninput);
	set(w, g, WEFT_TRAIN);
	const WeftTensorInfo *in = weft_inputs(w, g, &n);
	assert_int_equal(n, ninput + 1);
	assert_string_equal(in[n - 1].name, "weft.rng");
	weft_states(w, g, &n);
	assert_int_equal(n, 3);
	set(w, g, WEFT_EVAL);
	weft_inputs(w, g, &n);
	assert_int_equal(n, ninput);
	weft_free(w);
}

static void refused(const char *name, const char *file_mode, WeftMode mode, const char *why)
{
	Weft *w = weft_new();
	WeftGraph *g = load(w, name, file_mode);
	const char *before = text_of(w, g);
	assert_false(weft_set_mode(w, g, mode));
	assert_int_equal(weft_nmessages(w), 1);
	if (!strstr(weft_messages(w), why))
		fail_msg("%s: %s", name, weft_messages(w));
	expect_equal(name, before, text_of(w, g));
	weft_free(w);
}

static void test_limits(void **state)
{
	(void)state;
	refused("random", "train", WEFT_EVAL,
		"node bernoulli (make_mode_fixtures.py:107): error: aten.bernoulli draws random "
		"numbers and does not "
		"say whether only in training: export the model in evaluation mode");
	refused("net", "decomposed", WEFT_TRAIN, "the file is decomposed (run_decompositions)");
	refused("net", "decomposed", WEFT_EVAL, "the file is decomposed (run_decompositions)");
	refused("shared", "train", WEFT_EVAL,
		"writes memory that dropout shares in evaluation mode only");
	refused("both", "eval", WEFT_TRAIN,
		"which of a.num_batches_tracked and b.num_batches_tracked counts this call");
	refused("average", "eval", WEFT_TRAIN, "momentum is 0, which may stand for momentum=None");
}

/* In evaluation a dropout's operand and result are one tensor to torch.export. */
static void test_unclear(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = load(w, "residual", "eval");
	set(w, g, WEFT_TRAIN);
	assert_int_equal(weft_nmessages(w), 2);
	assert_int_equal(weft_message(w, 1).severity, WEFT_WARNING);
	assert_non_null(strstr(weft_messages(w), "node dropout (make_mode_fixtures.py:"));
	assert_non_null(strstr(weft_messages(w), "all read what is dropped (2 such dropouts)"));
	weft_free(w);
}

static void test_transformed(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = load(w, "other", "eval"), *part[2];
	WeftGraph *made[] = {weft_vjp(w, g, NULL), weft_jvp(w, g, NULL), weft_vmap(w, g, NULL),
			     NULL, NULL};
	assert_true(weft_vjp_split(w, g, NULL, &part[0], &part[1]));
	made[3] = part[0];
	made[4] = part[1];
	for (size_t k = 0; k < sizeof made / sizeof *made; k++) {
		assert_non_null(made[k]);
		assert_false(weft_set_mode(w, made[k], WEFT_TRAIN));
		assert_non_null(
			strstr(weft_message(w, (uint32_t)k).text, "the graph was transformed"));
	}
	set(w, g, WEFT_TRAIN);
	assert_non_null(weft_vjp(w, g, NULL));
	assert_true(weft_transform(w, g, "canon"));
	assert_false(weft_set_mode(w, g, WEFT_EVAL));
	weft_free(w);
}

/* Models written in C: parameters become state, and what reads them later reads the new ones. */
static void test_traced(void **state)
{
	(void)state;
	const float ones[2] = {1, 1};
	float x[4] = {1, 2, 3, 6}, want_mean[2] = {0.5f + 1, 0.5f + 2}, after[2];
	int64_t shape[2] = {2, 2}, two = 2;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "t");
	WeftValue in = weft_trace_input(t, "x", "f32[2, 2]"),
		  mean = weft_trace_param(t, "mean", "f32[2]", ones);
	WeftValue var = weft_trace_param(t, "var", "f32[2]", ones), none = {0, 0};
	const WeftArg a[] = {weft_arg(in),        weft_arg(none),       weft_arg(none),
			     weft_arg(mean),      weft_arg(var),        weft_arg_bool(false),
			     weft_arg_float(0.5), weft_arg_float(1e-5), weft_arg_bool(false)};
	weft_trace_output(t, "y", weft_trace_call(t, "aten.batch_norm", a, 9));
	weft_trace_output(t, "m", weft_neg(t, mean));
	WeftGraph *g = weft_trace_end(t);
	assert_non_null(g);
	set(w, g, WEFT_TRAIN);
	uint32_t n;
	const WeftTensorInfo *s = weft_states(w, g, &n);
	assert_int_equal(n, 2);
	assert_string_equal(s[0].name, "mean");
	float m[2] = {1, 1}, v[2] = {1, 1};
	WeftTensor st[2] = {{m, {WEFT_CPU, 0}, 1, {WEFT_FLOAT, 32, 1}, &two, NULL, 0},
			    {v, {WEFT_CPU, 0}, 1, {WEFT_FLOAT, 32, 1}, &two, NULL, 0}};
	WeftTensor xt = {x, {WEFT_CPU, 0}, 2, {WEFT_FLOAT, 32, 1}, shape, NULL, 0}, out[2];
	if (!weft_interpret_on(w, g, st, &xt, 1, out))
		fail_msg("%s", weft_messages(w));
	memcpy(after, out[1].data, sizeof after);
	for (int k = 0; k < 2; k++) {
		assert_float_equal(m[k], want_mean[k], 0);
		assert_float_equal(after[k], -want_mean[k], 0);
	}
	assert_float_equal(v[1], 0.5f + 0.5f * 8, 0);
	weft_free(w);
}

static void test_wrong(void **state)
{
	(void)state;
	Weft *w = weft_new(), *other = weft_new();
	WeftGraph *g = load(w, "other", "eval"),
		  *both = weft_join(w, 1, (const char *const[]){"a"}, &g);
	assert_false(weft_set_mode(NULL, g, WEFT_TRAIN));
	assert_false(weft_set_mode(w, NULL, WEFT_TRAIN));
	assert_false(weft_set_mode(other, g, WEFT_TRAIN));
	assert_false(weft_set_mode(w, both, WEFT_TRAIN));
	assert_false(weft_set_mode(w, g, (WeftMode)7));
	assert_false(weft_set_mode(w, g, (WeftMode)-1));
	assert_int_equal(weft_nmessages(w), 4);
	assert_int_equal(weft_nmessages(other), 1);
	set(w, g, WEFT_TRAIN);
	weft_free(w);
	weft_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both),        cmocka_unit_test(test_body),
		cmocka_unit_test(test_random),      cmocka_unit_test(test_limits),
		cmocka_unit_test(test_transformed), cmocka_unit_test(test_traced),
		cmocka_unit_test(test_wrong),       cmocka_unit_test(test_unclear),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
