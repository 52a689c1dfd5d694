/* Models traced in C: every layer of weft_trace.h once, state, generic calls, and what is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft_trace.h"

static const WeftValue none = {0, 0};

static WeftGraph *ended(Weft *w, WeftTrace *t)
{
	WeftGraph *g = weft_trace_end(t);
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

/* Its rank and extents. */
static void has_shape(WeftTrace *t, WeftValue v, int32_t rank, int64_t a, int64_t b, int64_t c,
		      int64_t d)
{
	const int64_t want[4] = {a, b, c, d};
	int64_t shape[12];
	assert_int_equal(weft_trace_shape(t, v, shape), rank);
	for (int32_t k = 0; k < rank; k++)
		assert_int_equal(shape[k], want[k]);
}

/* ---- layers ---- */

static WeftValue images(WeftTrace *t, WeftValue x)
{
	const WeftConv2d how = {.stride = {2, 2}, .padding = {1, 1}};
	WeftValue scale = weft_trace_param(t, "bn.weight", "f32[8]", NULL),
		  mean = weft_trace_buffer(t, "bn.mean", "f32[8]", NULL),
		  variance = weft_trace_param(t, "bn.var", "f32[8]", NULL);
	WeftValue y =
		weft_conv2d(t, x, weft_trace_param(t, "conv", "f32[8, 3, 3, 3]", NULL), none, &how);
	has_shape(t, y, 4, -1, 8, 16, 16);
	y = weft_relu(t, weft_batch_norm(t, y, scale, none, mean, variance, 1e-5));
	y = weft_max_pool2d(t, y, 2, 0, 0);
	has_shape(t, y, 4, -1, 8, 8, 8);
	y = weft_avg_pool2d(t, weft_gelu(t, y), 2, 2, 0);
	return weft_flatten(t, y, 1, -1);
}

static void test_layers(void **state)
{
	(void)state;
	const int64_t heads[4] = {-1, 2, 4, 16}, back[4] = {0, 2, 1, 3}, all[1] = {1};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "layers");
	weft_trace_symbol(t, "B", 1, 64);
	WeftValue x = images(t, weft_trace_input(t, "x", "f32[B, 3, 32, 32]"));
	has_shape(t, x, 2, -1, 128, 0, 0);
	WeftValue token = weft_embedding(t, weft_trace_param(t, "table", "f32[10, 128]", NULL),
					 weft_trace_input(t, "i", "i64[B]"));
	x = weft_add(t, x, weft_scale(t, token, 0.5));
	x = weft_layer_norm(t, x, weft_trace_param(t, "ln", "f32[128]", NULL), none, 1e-5);
	WeftValue q = weft_permute(t, weft_reshape(t, x, heads, 4), back, 4);
	has_shape(t, q, 4, -1, 4, 2, 16);
	x = weft_flatten(t, weft_attention(t, q, q, q, none, true), 1, 3);
	const WeftValue both[2] = {x, weft_mean_over(t, x, all, 1, true)};
	x = weft_concat(t, both, 2, 1);
	has_shape(t, x, 2, -1, 129, 0, 0);
	WeftValue logits = weft_linear(t, x, weft_trace_param(t, "fc", "f32[10, 129]", NULL),
				       weft_trace_param(t, "fc.bias", "f32[10]", NULL));
	weft_trace_output(t, "loss",
			  weft_cross_entropy(t, logits, weft_trace_input(t, "target", "i64[B]")));
	weft_trace_output(t, "p", weft_softmax(t, logits, -1));
	WeftGraph *g = ended(w, t);
	/* operators stay as they are called */
	assert_non_null(strstr(weft_graph_text(w, g, NULL), "aten.scaled_dot_product_attention"));
	const char *const by[] = {"params"};
	const WeftGradOptions o = {.size = sizeof o, .nwrt = 1, .wrt = by};
	uint32_t n;
	WeftGraph *grad = weft_vjp(w, g, &o);
	if (!grad)
		fail_msg("%s", weft_messages(w));
	weft_outputs(w, grad, &n);
	assert_int_equal(n, 2 + 7); /* bn.mean is a buffer */
	weft_free(w);
}

/* ---- state ---- */

static void interpret(Weft *w, WeftGraph *g, const WeftTensor *state, float x, float *y)
{
	int64_t shape[1] = {1};
	const WeftTensor in = {&x, {WEFT_CPU, 0}, 1, {WEFT_FLOAT, 32, 1}, shape, NULL, 0};
	WeftTensor out;
	if (!weft_interpret_on(w, g, state, &in, 1, &out))
		fail_msg("%s", weft_messages(w));
	*y = *(const float *)out.data;
}

static void test_state(void **state)
{
	(void)state;
	static const float first[1] = {2};
	float held[1] = {2}, y;
	int64_t shape[1] = {1};
	const WeftTensor s = {held, {WEFT_CPU, 0}, 1, {WEFT_FLOAT, 32, 1}, shape, NULL, 0};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "state");
	WeftValue x = weft_trace_input(t, "x", "f32[1]"),
		  v = weft_trace_variable(t, "v", "f32[1]", first);
	weft_trace_output(t, "y", weft_mul(t, x, v));
	weft_trace_assign(t, v, weft_add(t, v, x));
	WeftGraph *g = ended(w, t);
	interpret(w, g, &s, 3, &y);
	assert_true(y == 6 && held[0] == 5);
	interpret(w, g, &s, 1, &y);
	assert_true(y == 5 && held[0] == 6);
	weft_free(w);
}

/* ---- calls ---- */

static void test_calls(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "calls");
	WeftValue x = weft_trace_input(t, "x", "f32[4, 6]");
	const WeftArg max[] = {weft_arg(x), weft_arg_named("keepdim", weft_arg_bool(true)),
			       weft_arg_named("dim", weft_arg_int(1))};
	WeftValue both = weft_trace_call(t, "aten.max.dim", max, 3);
	has_shape(t, weft_trace_result(t, both, 0), 2, 4, 1, 0, 0);
	const WeftArg to[] = {weft_arg(x), weft_arg_named("dtype", weft_arg_text("f64"))};
	WeftValue wide = weft_trace_call(t, "aten._to_copy", to, 2);
	/* a number where the schema has a tensor, and a name of an input of its own */
	weft_trace_output(t, "y", weft_with_number(t, "aten.add.Tensor", wide, 1));
	weft_trace_output(t, "i", weft_trace_result(t, both, 1));
	/* x[:, j]: the first index is absent */
	const WeftValue index[] = {none, weft_trace_input(t, "j", "i64[3]")};
	const WeftArg columns[] = {weft_arg(x), weft_arg_values(index, 2)};
	has_shape(t, weft_trace_call(t, "aten.index.Tensor", columns, 2), 2, 4, 3, 0, 0);
	uint32_t n;
	WeftGraph *g = ended(w, t);
	const WeftTensorInfo *out = weft_outputs(w, g, &n);
	assert_true(n == 2 && out[0].dtype.bits == 64 && out[1].dtype.code == WEFT_INT);
	assert_non_null(strstr(weft_graph_text(w, g, NULL), "aten.add.Scalar"));
	weft_free(w);
}

/* ---- regions that are computed again ---- */

/* How many values forward gives beside y: a mark and what is saved. */
static uint32_t saved_by(bool region, bool keep)
{
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "region");
	WeftValue x = weft_trace_input(t, "x", "f32[64, 64]"),
		  weight = weft_trace_param(t, "w", "f32[64, 64]", NULL);
	WeftValue y = region ? weft_checkpoint(t, weft_sin(t, x), "begin") : weft_sin(t, x);
	for (int k = 0; k < 4; k++) {
		y = weft_sin(t, weft_linear(t, y, weight, none));
		if (keep && k == 1)
			y = weft_checkpoint(t, y, "keep");
	}
	weft_trace_output(t, "y", region ? weft_checkpoint(t, y, "end") : y);
	WeftGraph *g = ended(w, t), *forward, *backward;
	assert_true(weft_vjp_split(w, g, NULL, &forward, &backward));
	uint32_t n;
	weft_outputs(w, forward, &n);
	assert_non_null(weft_vjp(w, g, NULL));
	weft_free(w);
	return n - 1;
}

static void test_regions(void **state)
{
	(void)state;
	assert_true(saved_by(false, false) >= 4);
	assert_true(saved_by(true, false) <= 1);
	assert_int_equal(saved_by(true, true), 2);
}

static void bad_mark(WeftTrace *t, WeftValue x)
{
	weft_trace_output(t, "y", weft_checkpoint(t, x, "middle"));
}

/* ---- blocks with an inverse ---- */

/* y = x scale + shift, of which the shift is made by forward. */
typedef struct {
	WeftValue scale, bias, shift, kept;
	int what; /* is wrong */
} Affine;

static void affine(WeftTrace *t, const WeftValue *x, WeftValue *y, void *user)
{
	Affine *a = user;
	a->shift = weft_tanh(t, a->bias);
	if (a->what == 1)
		return;
	y[0] = weft_add(t, weft_mul(t, x[0], a->scale), a->shift);
}

static void affine_inverse(WeftTrace *t, const WeftValue *y, WeftValue *x, void *user)
{
	Affine *a = user;
	const int64_t dims[1] = {0};
	WeftValue by = a->what == 5 ? weft_trace_param(t, "late", "f32[6]", NULL) : a->scale;
	x[0] = weft_div(t, weft_sub(t, y[0], a->shift), by);
	a->kept = x[0];
	if (a->what == 2)
		x[0] = none;
	if (a->what == 3)
		x[0] = weft_mean_over(t, x[0], dims, 1, false);
	if (a->what == 4)
		weft_trace_output(t, "inside", x[0]);
	if (a->what == 6)
		weft_unary(t, "aten.nonsense", x[0]);
}

static WeftValue affine_block(WeftTrace *t, WeftValue x, int what)
{
	WeftValue v[1] = {x};
	Affine a = {.scale = weft_trace_param(t, "scale", "f32[6]", NULL),
		    .bias = weft_trace_param(t, "bias", "f32[6]", NULL),
		    .what = what};
	weft_invertible(t, "affine", v, 1, v, 1, affine, affine_inverse, &a);
	return what == 7 ? weft_relu(t, a.kept) : v[0];
}

static void test_invertible(void **state)
{
	(void)state;
	const char *const by[] = {"inputs", "params"};
	const WeftGradOptions o = {.size = sizeof o, .nwrt = 2, .wrt = by};
	for (int what = 0; what <= 5; what += 5) { /* a parameter that is made in the inverse is one
	                                              of the model */
		Weft *w = weft_new();
		WeftTrace *t = weft_trace_new(w, "flow");
		WeftValue x = weft_sin(t, weft_trace_input(t, "x", "f32[4, 6]"));
		weft_trace_output(t, "y", weft_sin(t, affine_block(t, x, what)));
		WeftGraph *g = ended(w, t), *forward, *backward;
		const char *text = weft_graph_text(w, g, NULL);
		assert_non_null(strstr(text, "invertible(["));
		assert_non_null(strstr(text, "name=\"affine\""));
		if (!weft_vjp_split(w, g, &o, &forward, &backward))
			fail_msg("%s", weft_messages(w));
		assert_null(strstr(weft_graph_text(w, forward, NULL), "div("));
		assert_non_null(strstr(weft_graph_text(w, backward, NULL), "div("));
		uint32_t n;
		weft_outputs(w, weft_check_inverses(w, g), &n);
		assert_int_equal(n, 2);
		weft_free(w);
	}
}

static void no_result(WeftTrace *t, WeftValue x)
{
	affine_block(t, x, 1);
}

static void no_input(WeftTrace *t, WeftValue x)
{
	affine_block(t, x, 2);
}

static void other_type(WeftTrace *t, WeftValue x)
{
	affine_block(t, x, 3);
}

static void read_outside(WeftTrace *t, WeftValue x)
{
	affine_block(t, x, 4);
}

static void wrong_inverse(WeftTrace *t, WeftValue x)
{
	affine_block(t, x, 6);
}

static void used_afterwards(WeftTrace *t, WeftValue x)
{
	affine_block(t, x, 7);
}

static void no_values(WeftTrace *t, WeftValue x)
{
	WeftValue y[1];
	weft_invertible(t, "empty", &x, 0, y, 1, affine, affine_inverse, NULL);
	assert_int_equal(y[0].node, 0);
}

static void refused(void (*build)(WeftTrace *, WeftValue x), const char *text);

static void test_wrong_blocks(void **state)
{
	(void)state;
	refused(no_result, "block \"affine\": forward gives no value 0");
	refused(no_input, "block \"affine\": the inverse gives no value 0");
	refused(other_type, "block \"affine\": result 0 of its inverse is f32[6], and operand 0 of "
			    "the block f32[4, 6]");
	refused(read_outside, "block \"affine\": what its inverse computes is read outside of it");
	refused(wrong_inverse, "there is no operator aten.nonsense");
	refused(used_afterwards, "a value of an inverse, which is there in that only");
	refused(no_values, "block \"empty\": it takes and gives one value at least");
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "plain");
	weft_trace_output(t, "y", weft_sin(t, weft_trace_input(t, "x", "f32[4]")));
	assert_null(weft_check_inverses(w, ended(w, t)));
	assert_non_null(
		strstr(weft_messages(w), "plain: error: the model has no block with an inverse"));
	weft_free(w);
}

/* Each block has parameters of its own. */
static double deep(uint32_t n)
{
	const char *const by[] = {"params"};
	const WeftGradOptions o = {.size = sizeof o, .nwrt = 1, .wrt = by};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "deep");
	WeftValue v[1] = {weft_sin(t, weft_trace_input(t, "x", "f32[4, 6]"))};
	clock_t begin = clock();
	for (uint32_t k = 0; k < n; k++) {
		char name[2][20];
		snprintf(name[0], sizeof name[0], "scale%u", k);
		snprintf(name[1], sizeof name[1], "bias%u", k);
		Affine a = {.scale = weft_trace_param(t, name[0], "f32[6]", NULL),
			    .bias = weft_trace_param(t, name[1], "f32[6]", NULL)};
		weft_invertible(t, "affine", v, 1, v, 1, affine, affine_inverse, &a);
	}
	weft_trace_output(t, "y", weft_sin(t, v[0]));
	WeftGraph *g = ended(w, t), *forward, *backward;
	if (!weft_vjp_split(w, g, &o, &forward, &backward))
		fail_msg("%s", weft_messages(w));
	uint32_t nout;
	weft_outputs(w, forward, &nout);
	assert_int_equal(nout, 3);
	weft_free(w);
	double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
	print_message("%u blocks: %.2f s\n", n, seconds);
	return seconds;
}

static void test_deep(void **state)
{
	(void)state;
	double few = deep(800), many = deep(6400);
	assert_true(many < 24 * few + 1);
}

/* ---- what is refused ---- */

static void refused(void (*build)(WeftTrace *, WeftValue x), const char *text)
{
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "model");
	WeftValue x = weft_trace_input(t, "x", "f32[4, 6]");
	build(t, x);
	weft_trace_output(t, "y", weft_relu(t, x)); /* nothing more is said */
	assert_null(weft_trace_end(t));
	assert_int_equal(weft_nmessages(w), 1);
	const char *all = weft_messages(w);
	if (!strstr(all, text))
		fail_msg("expected \"%s\", got: %s", text, all);
	weft_free(w);
}

static void unknown_operator(WeftTrace *t, WeftValue x)
{
	weft_unary(t, "aten.nonsense", x);
}

static void unknown_argument(WeftTrace *t, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_named("axis", weft_arg_int(0))};
	weft_trace_call(t, "aten.softmax.int", a, 2);
}

static void missing_argument(WeftTrace *t, WeftValue x)
{
	weft_unary(t, "aten.softmax.int", x);
}

static void wrong_shape(WeftTrace *t, WeftValue x)
{
	weft_linear(t, x, weft_trace_param(t, "w", "f32[3, 5]", NULL), none);
}

/* ---- arguments of the wrong kind ---- */

static void list_for_a_value(WeftTrace *t, WeftValue x)
{
	const WeftArg a[] = {weft_arg_values(&x, 1)};
	weft_trace_call(t, "aten.relu", a, 1);
}

static void number_for_a_value(WeftTrace *t, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(3)};
	weft_trace_call(t, "aten.mm", a, 2);
}

static void nothing_for_a_value(WeftTrace *t, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_none()};
	weft_trace_call(t, "aten.mm", a, 2);
}

static void value_for_a_list(WeftTrace *t, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(0)};
	weft_trace_call(t, "aten.cat", a, 2);
}

static void number_for_a_list(WeftTrace *t, WeftValue x)
{
	(void)x;
	const WeftArg a[] = {weft_arg_int(0)};
	weft_trace_call(t, "aten.cat", a, 1);
}

static void value_for_a_number(WeftTrace *t, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x), weft_arg(x)};
	weft_trace_call(t, "aten.softmax.int", a, 2);
}

static void text_for_a_dtype(WeftTrace *t, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_named("dtype", weft_arg_text("f33"))};
	weft_trace_call(t, "aten._to_copy", a, 2);
}

static void text_for_a_graph(WeftTrace *t, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_values(&x, 1), weft_arg_text("yes"),
			     weft_arg_text("no")};
	weft_trace_call(t, "cond", a, 4);
}

static void no_graph(WeftTrace *t, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_values(&x, 1)};
	weft_trace_call(t, "cond", a, 2);
}

static void given_twice(WeftTrace *t, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(0), weft_arg_named("dim", weft_arg_int(1))};
	weft_trace_call(t, "aten.softmax.int", a, 3);
}

static void one_too_many(WeftTrace *t, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x), weft_arg(x)};
	weft_trace_call(t, "aten.relu", a, 2);
}

static void written_argument(WeftTrace *t, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_none(), weft_arg_none(), weft_arg(x),
			     weft_arg(x)};
	weft_trace_call(t, "aten._native_batch_norm_legit", a, 5);
}

static void test_wrong_kinds(void **state)
{
	(void)state;
	refused(list_for_a_value, "aten.relu: argument self: expected one value");
	refused(number_for_a_value, "aten.mm: argument mat2: expected one value");
	refused(nothing_for_a_value, "aten.mm: argument mat2: expected a value");
	refused(value_for_a_list, "aten.cat: argument tensors: expected a list of values");
	refused(number_for_a_list, "aten.cat: argument tensors: expected a list of values");
	refused(value_for_a_number, "aten.softmax.int: argument dim: expected no tensor");
	refused(text_for_a_dtype, "aten._to_copy: argument dtype: expected a dtype");
	refused(text_for_a_graph, "cond: argument yes: expected what calls cannot pass");
	refused(no_graph, "cond: argument yes: expected what calls cannot pass");
	refused(given_twice, "aten.softmax.int: argument dim is given twice");
	refused(one_too_many, "aten.relu has no argument at this position");
	refused(written_argument, "argument running_mean: expected nothing that is written: take "
				  "the operator that returns a new value");
}

static void in_place(WeftTrace *t, WeftValue x)
{
	weft_binary(t, "aten.add_.Tensor", x, x);
}

static void other_trace(WeftTrace *t, WeftValue x)
{
	x.trace++;
	weft_relu(t, x);
}

static void bad_type(WeftTrace *t, WeftValue x)
{
	(void)x;
	weft_trace_input(t, "z", "float[3]");
}

static void symbol_in_param(WeftTrace *t, WeftValue x)
{
	(void)x;
	weft_trace_param(t, "p", "f32[B]", NULL);
}

static void same_name(WeftTrace *t, WeftValue x)
{
	(void)x;
	weft_trace_input(t, "x", "f32[3]");
}

static void assigned_twice(WeftTrace *t, WeftValue x)
{
	WeftValue v = weft_trace_variable(t, "v", "f32[4, 6]", NULL);
	weft_trace_assign(t, v, x);
	weft_trace_assign(t, v, x);
}

static void assigned_value(WeftTrace *t, WeftValue x)
{
	weft_trace_assign(t, weft_relu(t, x), x);
}

static void test_refused(void **state)
{
	(void)state;
	refused(unknown_operator,
		"model: call 1 (aten.nonsense): error: there is no operator aten.nonsense");
	refused(unknown_argument, "aten.softmax.int has no argument axis");
	refused(missing_argument, "dim");
	refused(wrong_shape, "model: call 1 (aten.linear)");
	refused(in_place, "aten.add_.Tensor");
	refused(other_trace, "a value of another trace");
	refused(bad_type, "type of z");
	refused(symbol_in_param, "p: its extents must be numbers");
	refused(same_name, "x: there is an input of that name already");
	refused(assigned_twice, "v: it is assigned a second time");
	refused(assigned_value, "it takes a variable, a buffer or an input");
	refused(bad_mark, "\"middle\"");
}

/* One of several results has to be taken out, whatever the operator. */
static void test_several(void **state)
{
	(void)state;
	static const char *const op[] = {"aten.slice.Tensor",       "aten.matmul", "aten.amax",
					 "aten.unbind.int",         "aten.cross",  "aten.cummax",
					 "aten.searchsorted.Tensor"};
	for (size_t k = 0; k < sizeof op / sizeof *op; k++) {
		Weft *w = weft_new();
		WeftTrace *t = weft_trace_new(w, "several");
		const WeftArg x = weft_arg(weft_trace_input(t, "x", "f32[A, 3]"));
		const WeftValue both = weft_trace_call(t, "aten.sort", &x, 1);
		const WeftArg a[] = {k == 4 ? x : weft_arg(both),
				     k == 1 || k == 4 ? weft_arg(both) : weft_arg_int(0)};
		assert_int_equal(weft_trace_call(t, op[k], a, k != 0 && k != 2 ? 2 : 1).node, 0);
		assert_null(weft_trace_end(t));
		if (!strstr(weft_messages(w), "expected a tensor, got a tuple"))
			fail_msg("%s: %s", op[k], weft_messages(w));
		weft_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_invertible),
		cmocka_unit_test(test_wrong_blocks),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_wrong_kinds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
