/* Function transforms behind the API: what is chosen, what the graphs take and give, what is saved
 * for gradients, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "weft_trace.h"

static const WeftValue none = {0, 0};

static void names_of(const WeftTensorInfo *t, uint32_t n, char *out, size_t size)
{
	size_t length = 0;
	*out = 0;
	for (uint32_t k = 0; k < n && length < size; k++)
		length += (size_t)snprintf(out + length, size - length, "%s%s", k ? " " : "",
					   t[k].name);
}

/* "x ct.y -> y g.x" */
static void takes(Weft *w, WeftGraph *g, const char *want)
{
	char in[500], out[500], both[1020];
	uint32_t n;
	if (!g)
		fail_msg("%s", weft_messages(w));
	const WeftTensorInfo *t = weft_inputs(w, g, &n);
	names_of(t, n, in, sizeof in);
	t = weft_outputs(w, g, &n);
	names_of(t, n, out, sizeof out);
	snprintf(both, sizeof both, "%s -> %s", in, out);
	assert_string_equal(both, want);
}

static void refused(Weft *w, const void *graph, const char *text)
{
	const char *all = weft_messages(w);
	assert_null(graph);
	if (!strstr(all, text))
		fail_msg("expected \"%s\", got: %s", text, all);
}

/* y = x w, z = sum y, and the number i as it is */
static WeftGraph *product(Weft *w)
{
	static const float values[12];
	WeftTrace *t = weft_trace_new(w, "product");
	WeftValue x = weft_trace_input(t, "x", "f32[B, 3]"), i = weft_trace_input(t, "i", "i64[]"),
		  u = weft_trace_input(t, "u", "f32[4]");
	WeftValue p = weft_trace_param(t, "w", "f32[4, 3]", values),
		  b = weft_trace_buffer(t, "b", "f32[4]", NULL);
	WeftValue y = weft_add(t, weft_linear(t, x, p, u), b);
	weft_trace_output(t, "y", y);
	weft_trace_output(t, "z", weft_sum(t, y));
	weft_trace_output(t, "i", i);
	weft_trace_assign(t, b, u);
	WeftGraph *g = weft_trace_end(t);
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

static void test_choices(void **state)
{
	(void)state;
	const char *const params[] = {"params"}, *const both[] = {"w", "inputs"},
			  *const buffer[] = {"b"};
	const uint32_t second[] = {2}, output[] = {1};
	Weft *w = weft_new();
	WeftGraph *g = product(w);
	takes(w, weft_vjp(w, g, NULL), "x i u ct.y ct.z -> y z i g.x g.u");
	takes(w,
	      weft_vjp(w, g,
		       &(WeftGradOptions){
			       .size = sizeof(WeftGradOptions), .nwrt = 1, .wrt = params}),
	      "x i u ct.y ct.z -> y z i g.w");
	takes(w,
	      weft_vjp(w, g,
		       &(WeftGradOptions){.size = sizeof(WeftGradOptions), .nwrt = 2, .wrt = both}),
	      "x i u ct.y ct.z -> y z i g.x g.u g.w");
	takes(w,
	      weft_vjp(w, g,
		       &(WeftGradOptions){
			       .size = sizeof(WeftGradOptions), .nwrt = 1, .wrt = buffer}),
	      "x i u ct.y ct.z -> y z i g.b");
	takes(w,
	      weft_vjp(w, g,
		       &(WeftGradOptions){.size = sizeof(WeftGradOptions),
					  .ninput = 1,
					  .input = second,
					  .noutput = 1,
					  .output = output}),
	      "x i u ct.z -> y z i g.u");
	takes(w,
	      weft_jvp(w, g,
		       &(WeftGradOptions){
			       .size = sizeof(WeftGradOptions), .nwrt = 1, .wrt = params}),
	      "x i u t.w -> y z i jy.y jy.z");
	weft_free(w);
}

static void test_batches(void **state)
{
	(void)state;
	const char *const x[] = {"x"};
	Weft *w = weft_new();
	WeftGraph *g = product(w);
	WeftGraph *b = weft_vmap(w, g,
				 &(WeftVmapOptions){.size = sizeof(WeftVmapOptions),
						    .nbatched = 1,
						    .batched = x,
						    .symbol = "B"});
	takes(w, b, "x i u -> y z i");
	uint32_t n;
	const WeftTensorInfo *t = weft_inputs(w, b, &n);
	assert_true(t[0].rank == 3 && !strcmp(t[0].dim[0].text, "B1") && t[1].rank == 0 &&
		    t[2].rank == 1);
	t = weft_outputs(w, b, &n);
	assert_true(t[0].rank == 3 && t[1].rank == 1 && t[2].rank == 1);
	/* in any order and depth */
	WeftGraph *grad = weft_vjp(w, b, NULL);
	takes(w, grad, "x i u ct.y ct.z -> y z i g.x g.u");
	takes(w,
	      weft_vmap(w, grad,
			&(WeftVmapOptions){.size = sizeof(WeftVmapOptions),
					   .nbatched = 1,
					   .batched = x,
					   .extent = 5}),
	      "x i u ct.y ct.z -> y z i g.x g.u");
	weft_free(w);
}

/* x of B x 3, i and u with a batch where they are told, and results: "x[3, n] i[n] ..." */
static void test_dims(void **state)
{
	(void)state;
	const char *const x[] = {"x"};
	const int32_t last[] = {-1}, each[] = {1, WEFT_NO_BATCH, 1}, out[] = {2, 0, WEFT_NO_BATCH},
		      one[] = {1}, two[] = {1, 1};
	const int32_t shared[] = {WEFT_NO_BATCH}, far[] = {0, 0, 2}, near[] = {0, 0, -2};
	Weft *w = weft_new();
	WeftGraph *g = product(w);
	WeftVmapOptions o = {.size = sizeof o,
			     .extent = 5,
			     .nin_dim = 3,
			     .in_dim = each,
			     .nout_dim = 3,
			     .out_dim = out};
	uint32_t n;
	WeftGraph *b = weft_vmap(w, g,
				 &(WeftVmapOptions){.size = sizeof o,
						    .extent = 5,
						    .nbatched = 1,
						    .batched = x,
						    .nin_dim = 3,
						    .in_dim = each,
						    .nout_dim = 3,
						    .out_dim = out});
	takes(w, b, "x i u -> y z i");
	const WeftTensorInfo *t = weft_inputs(w, b, &n);
	assert_true(t[0].rank == 3 && t[0].dim[1].value == 5 && t[1].rank == 0 && t[2].rank == 1 &&
		    t[2].dim[0].value == 4);
	t = weft_outputs(w, b, &n);
	assert_true(t[0].rank == 3 && t[0].dim[2].value == 5 && t[1].dim[0].value == 5 &&
		    t[2].rank == 0);
	/* one for all, of those that are chosen; twice */
	b = weft_vmap(w, g,
		      &(WeftVmapOptions){.size = sizeof o,
					 .extent = 5,
					 .nbatched = 1,
					 .batched = x,
					 .nin_dim = 1,
					 .in_dim = last});
	b = weft_vmap(w, b,
		      &(WeftVmapOptions){.size = sizeof o,
					 .extent = 7,
					 .nbatched = 1,
					 .batched = x,
					 .nin_dim = 1,
					 .in_dim = one});
	t = weft_inputs(w, b, &n);
	assert_true(t[0].rank == 4 && t[0].dim[1].value == 7 && t[0].dim[3].value == 5 &&
		    t[2].rank == 1);
	t = weft_outputs(w, b, &n);
	assert_true(t[0].dim[0].value == 7 && t[0].dim[1].value == 5);
	/* u is state's new value */
	refused(w, weft_vmap(w, g, &o), "the value that is written to \"b\" differs");
	refused(w,
		weft_vmap(w, g, &(WeftVmapOptions){.size = sizeof o, .nin_dim = 3, .in_dim = far}),
		"input \"u\" has 2 dimensions with a batch: it cannot be dimension 2, expected -2 "
		"to 1");
	refused(w,
		weft_vmap(w, g,
			  &(WeftVmapOptions){.size = sizeof o,
					     .nin_dim = 3,
					     .in_dim = near,
					     .nout_dim = 3,
					     .out_dim = far}),
		"the value that is written to \"b\" differs");
	refused(w,
		weft_vmap(w, g,
			  &(WeftVmapOptions){.size = sizeof o,
					     .nbatched = 1,
					     .batched = x,
					     .nout_dim = 1,
					     .out_dim = two}),
		"output \"z\" has 1 dimensions with a batch: it cannot be dimension 1, expected -1 "
		"to 0");
	refused(w,
		weft_vmap(w, g, &(WeftVmapOptions){.size = sizeof o, .nin_dim = 2, .in_dim = two}),
		"dimensions of the batch are given for 2 inputs: the model has 3");
	refused(w,
		weft_vmap(w, g,
			  &(WeftVmapOptions){.size = sizeof o,
					     .nbatched = 1,
					     .batched = x,
					     .nin_dim = 1,
					     .in_dim = shared}),
		"input x is to have a batch and is given no dimension for it");
	refused(w,
		weft_vmap(w, g,
			  &(WeftVmapOptions){.size = sizeof o, .nin_dim = 1, .in_dim = shared}),
		"no input that could be batched");
	refused(w,
		weft_vmap(w, g,
			  &(WeftVmapOptions){.size = sizeof o,
					     .nbatched = 1,
					     .batched = x,
					     .nout_dim = 1,
					     .out_dim = shared}),
		"output \"y\" differs between the members of the batch: it needs a dimension for "
		"it");
	weft_free(w);
}

static void test_refused(void **state)
{
	(void)state;
	const char *const i[] = {"i"}, *const nobody[] = {"nobody"}, *const b[] = {"b"};
	const uint32_t ninth[] = {9}, integer[] = {2};
	Weft *w = weft_new();
	WeftGraph *g = product(w);
	refused(w,
		weft_vjp(w, g,
			 &(WeftGradOptions){.size = sizeof(WeftGradOptions), .nwrt = 1, .wrt = i}),
		"no derivative by a value of dtype i64");
	refused(w,
		weft_vjp(w, g,
			 &(WeftGradOptions){
				 .size = sizeof(WeftGradOptions), .nwrt = 1, .wrt = nobody}),
		"no input or parameter is called nobody; the inputs are x, i, u");
	refused(w,
		weft_jvp(w, g,
			 &(WeftGradOptions){
				 .size = sizeof(WeftGradOptions), .ninput = 1, .input = ninth}),
		"there is no input 9: the model has 3");
	refused(w,
		weft_vjp(w, g,
			 &(WeftGradOptions){
				 .size = sizeof(WeftGradOptions), .noutput = 1, .output = ninth}),
		"there is no output 9");
	refused(w,
		weft_vjp(w, g,
			 &(WeftGradOptions){
				 .size = sizeof(WeftGradOptions), .noutput = 1, .output = integer}),
		"output i is i64 and takes no cotangent");
	refused(w,
		weft_vmap(w, g,
			  &(WeftVmapOptions){
				  .size = sizeof(WeftVmapOptions), .nbatched = 1, .batched = b}),
		"b is state");
	refused(w,
		weft_vmap(w, g, &(WeftVmapOptions){.size = sizeof(WeftVmapOptions), .extent = -1}),
		"a batch of -1");
	refused(w, weft_vmap(w, g, &(WeftVmapOptions){.size = 1000}), "options of a newer version");
	refused(w, weft_vjp(w, g, &(WeftGradOptions){.size = 1000}), "options of a newer version");
	weft_free(w);
}

/* ---- two entries ---- */

static void split(Weft *w, WeftGraph *g, const char *forward, const char *backward,
		  const WeftTensorInfo **outputs)
{
	WeftGraph *part[2];
	uint32_t n;
	if (!weft_vjp_split(w, g, NULL, &part[0], &part[1]))
		fail_msg("%s", weft_messages(w));
	takes(w, part[0], forward);
	takes(w, part[1], backward);
	*outputs = weft_outputs(w, part[0], &n);
}

/* The old value of state, which is not there any more. */
static void test_state_is_saved(void **state)
{
	(void)state;
	const WeftTensorInfo *out;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "counter");
	WeftValue x = weft_trace_input(t, "x", "f32[3]"),
		  v = weft_trace_variable(t, "v", "f32[3]", NULL);
	weft_trace_output(t, "y", weft_mul(t, x, v));
	weft_trace_assign(t, v, weft_add(t, v, x));
	split(w, weft_trace_end(t), "x -> y saved.0 saved.1", "x saved.0 saved.1 ct.y -> g.x",
	      &out);
	assert_true(out[1].dtype.bits == 64 && out[1].rank == 0 && out[2].rank == 1);
	weft_free(w);
}

/* Of a chain that begins with an input nothing; of one behind a product the comparison, which is
 * smaller. */
static void test_what_is_saved(void **state)
{
	(void)state;
	const WeftTensorInfo *out;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "chain");
	WeftValue x = weft_trace_input(t, "x", "f32[64]");
	weft_trace_output(t, "y", weft_sin(t, weft_exp(t, weft_sin(t, x))));
	split(w, weft_trace_end(t), "x -> y saved.0", "x saved.0 ct.y -> g.x", &out);
	t = weft_trace_new(w, "network");
	x = weft_trace_input(t, "x", "f32[512, 64]");
	WeftValue h = weft_linear(t, x, weft_trace_param(t, "w", "f32[256, 64]", NULL), none);
	const WeftArg leaky[] = {weft_arg(weft_with_number(t, "aten.gt.Scalar", h, 0)), weft_arg(h),
				 weft_arg(weft_scale(t, h, 0.5))};
	weft_trace_output(t, "y", weft_trace_call(t, "aten.where.self", leaky, 3));
	split(w, weft_trace_end(t), "x -> y saved.0 saved.1", "x saved.0 saved.1 ct.y -> g.x",
	      &out);
	assert_true(out[2].dtype.code == WEFT_BOOL);
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_dims),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_state_is_saved),
		cmocka_unit_test(test_what_is_saved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
