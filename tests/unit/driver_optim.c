/* Optimisers of the table in traces: every one under all of its flags, a step in numbers, and what
 * is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "weft_call.h"
#include "weft_trace.h"

enum { MOST = 16 };

/* The names of a list of the table, "lr = 0.001; beta1 = 0.9 : betas.0", in room of the caller. */
static uint32_t names(const char *list, char name[][32])
{
	uint32_t n = 0;
	for (const char *s = list; *s; s += strcspn(s, ";"), s += *s == ';') {
		s += strspn(s, " ");
		size_t len = strcspn(s, " ;[");
		assert_true(n < MOST && len > 0 && len < 32);
		snprintf(name[n++], 32, "%.*s", (int)len, s);
	}
	return n;
}

/* Traces a step of two parameters of the optimiser; values: scalars are inputs. */
static void traced(const WeftOptimizer *o, uint32_t flags, bool values, bool one)
{
	static const char *const any[2] = {"f32[3, 4]", "f64[]"}, *const matrix[2] = {"f32[3, 4]",
										      "f64[4, 3]"};
	const char *const *type = strcmp(o->name, "muon") != 0 ? any : matrix;
	char scalar[MOST][32], flag[MOST][32], text[64];
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, o->name);
	WeftArg option[2 * MOST];
	WeftValue p[2], g[2], state[2 * MOST], out[2 + 2 * MOST];
	uint32_t n = 0, nstate = 0, nscalar = names(o->scalars, scalar),
		 nflag = names(o->flags, flag);
	for (uint32_t k = 0; k < nscalar && values; k++)
		option[n++] = weft_arg_named(scalar[k],
					     weft_arg(weft_trace_input(t, scalar[k], "f64[]")));
	for (uint32_t k = 0; k < nflag; k++)
		option[n++] = weft_arg_named(flag[k], weft_arg_bool(flags >> k & 1));
	for (int k = 0; k < 2; k++) {
		snprintf(text, sizeof text, "p%d", k);
		p[k] = weft_trace_variable(t, text, type[k], NULL);
		snprintf(text, sizeof text, "g%d", k);
		g[k] = weft_trace_input(t, text, type[k]);
	}
	WeftOptimizerState s = {.size = sizeof s};
	for (uint32_t k = 0; weft_optimizer_state(w, o->name, option, n, k, &s); k++)
		for (int i = 0; i < (s.number ? 1 : 2); i++) {
			snprintf(text, sizeof text, "%s%d", s.name, i);
			state[nstate++] = weft_trace_buffer(t, text,
							    !s.number ? type[i]
							    : one     ? "f32[1]"
								      : "f32[2]",
							    NULL);
		}
	weft_optimizer_step(t, o->name, option, n, p, g, 2, state, nstate, out);
	for (int k = 0; k < 2; k++)
		weft_trace_assign(t, p[k], out[k]);
	for (uint32_t k = 0; k < nstate; k++)
		weft_trace_assign(t, state[k], out[2 + k]);
	if (!weft_trace_end(t))
		fail_msg("%s, flags %x: %s", o->name, flags, weft_messages(w));
	weft_free(w);
}

static void test_all(void **state)
{
	(void)state;
	char flag[MOST][32];
	uint32_t k = 0;
	WeftOptimizer o = {.size = sizeof o};
	for (; weft_table_optimizer(k, &o); k++)
		for (uint32_t flags = 0; flags < 1u << names(o.flags, flag); flags++)
			for (int how = 0; how < 4; how++)
				traced(&o, flags, how & 1, how & 2);
	assert_true(k > 5);
	assert_string_equal(o.name, "");
}

/* Two steps of SGD with momentum, as PyTorch computes them: the first takes the gradient whole. */
static void test_numbers(void **unused)
{
	(void)unused;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "sgd");
	WeftValue p = weft_trace_variable(t, "p", "f32[1]", NULL),
		  lr = weft_trace_input(t, "lr", "f32[]"), g = weft_trace_input(t, "g", "f32[1]"),
		  out[3];
	WeftValue state[2] = {weft_trace_buffer(t, "started", "f32[1]", NULL),
			      weft_trace_buffer(t, "momentum_buffer", "f32[1]", NULL)};
	const WeftArg option[] = {weft_arg_named("lr", weft_arg(lr)),
				  weft_arg_named("momentum", weft_arg_float(0.5)),
				  weft_arg_named("dampening", weft_arg_float(0.25))};
	weft_optimizer_step(t, "sgd", option, 3, &p, &g, 1, state, 2, out);
	weft_trace_assign(t, p, out[0]);
	weft_trace_assign(t, state[0], out[1]);
	weft_trace_assign(t, state[1], out[2]);
	WeftGraph *graph = weft_trace_end(t);
	if (!graph)
		fail_msg("%s", weft_messages(w));
	float memory[3] = {1, 0, 0}, rate = 0.5f, gradient = 2;
	int64_t dim[1] = {1};
	const WeftTensor in[2] = {weft_tensor(&rate, WEFT_F32, 0, NULL),
				  weft_tensor(&gradient, WEFT_F32, 1, dim)};
	WeftTensor kept[3];
	for (int k = 0; k < 3; k++)
		kept[k] = weft_tensor(&memory[k], WEFT_F32, 1, dim);
	for (int step = 0; step < 2; step++, gradient = -4)
		if (!weft_interpret_on(w, graph, kept, in, 2, NULL))
			fail_msg("%s", weft_messages(w));
	/* buffers 2, then 0.5 * 2 + 0.75 * -4 = -2; parameters 1 - 0.5 * 2, then + 0.5 * 2 */
	assert_float_equal(memory[0], 1, 0);
	assert_float_equal(memory[1], 1, 0);
	assert_float_equal(memory[2], -2, 0);
	weft_free(w);
}

/* Expects that a step with this option and these types is refused with the message. */
static void refused(const char *optimizer, WeftArg option, const char *p, const char *g,
		    uint32_t nstate, const char *message)
{
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "wrong");
	WeftValue pv = weft_trace_input(t, "p", p), gv = weft_trace_input(t, "g", g), out[5];
	const WeftValue state[] = {weft_trace_input(t, "step", "f32[1]"),
				   weft_trace_input(t, "m", "f32[4]"),
				   weft_trace_input(t, "v", "f32[4]")};
	weft_optimizer_step(t, optimizer, &option, option.name != NULL, &pv, &gv, 1, state, nstate,
			    out);
	for (uint32_t k = 0; k < 1 + nstate; k++)
		assert_int_equal(out[k].node, 0);
	assert_null(weft_trace_end(t));
	if (!strstr(weft_messages(w), message))
		fail_msg("expected \"%s\": %s", message, weft_messages(w));
	weft_free(w);
}

static void test_refused(void **state)
{
	(void)state;
	const WeftArg nothing = weft_arg_none();
	refused("adamw2", nothing, "f32[4]", "f32[4]", 3, "there is no optimiser of that name");
	refused("adamw", nothing, "f32[4]", "f32[4]", 2, "has 2 states, expected 3");
	refused("adamw", nothing, "f32[4]", "f32[5]", 3, "the gradient of parameter 0");
	refused("adamw", nothing, "i32[4]", "f32[4]", 3, "the dtype of parameter 0");
	refused("adamw", nothing, "f32[5]", "f32[5]", 3, "exp_avg of parameter 0");
	refused("adamw", weft_arg_named("momentum", weft_arg_float(1)), "f32[4]", "f32[4]", 3,
		"adamw has no such option");
	refused("adamw", weft_arg_named("lr", weft_arg_bool(true)), "f32[4]", "f32[4]", 3,
		"lr: expected a number");
	refused("adamw", weft_arg_named("amsgrad", weft_arg_float(1)), "f32[4]", "f32[4]", 3,
		"amsgrad: expected a bool");
	refused(NULL, nothing, "f32[4]", "f32[4]", 3, "the name of an optimiser");
	weft_optimizer_step(NULL, "sgd", NULL, 0, NULL, NULL, 0, NULL, 0, NULL);
	Weft *w = weft_new();
	WeftOptimizerState s = {.size = sizeof s};
	assert_false(weft_optimizer_state(w, "typo", NULL, 0, 0, &s));
	assert_non_null(strstr(weft_messages(w), "typo"));
	assert_false(weft_optimizer_state(NULL, "sgd", NULL, 0, 0, &s));
	assert_false(weft_table_optimizer(0, NULL));
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
