/* Traces with branches, loops, other graphs, sizes from data and integers as results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "weft_trace.h"

static const WeftDType F32 = {WEFT_FLOAT, 32, 1}, I64 = {WEFT_INT, 64, 1};

static WeftGraph *ended(Weft *w, WeftTrace *t)
{
	WeftGraph *g = weft_trace_end(t);
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

static void fails(Weft *w, WeftTrace *t, const char *message)
{
	assert_null(weft_trace_end(t));
	const char *said = weft_messages(w);
	if (!strstr(said, message))
		fail_msg("expected \"%s\", got: %s", message, said);
}

static WeftTensor tensor(void *data, WeftDType dtype, int32_t rank, int64_t *shape)
{
	return (WeftTensor){data, {WEFT_CPU, 0}, rank, dtype, shape, NULL, 0};
}

/* Output 0 of the graph, by the interpreter; the same by loop IR, to within a rounding. */
static const float *results(Weft *w, WeftGraph *g, const WeftTensor *in, uint32_t nin,
			    WeftTensor *out)
{
	uint32_t nout;
	weft_outputs(w, g, &nout);
	if (!weft_interpret(w, g, in, nin, out))
		fail_msg("%s", weft_messages(w));
	const WeftOptions o = {.size = sizeof o};
	const WeftModel *m = weft_loops(w, g, &o);
	WeftInstance *instance;
	WeftStatus status = {0};
	if (!m || m->open(m, NULL, &instance, &status) != WEFT_OK)
		fail_msg("%s%s", weft_messages(w), status.message);
	const WeftEntry *e = weft_entry(m, 0);
	WeftSizes *sizes = malloc(e->sizes_bytes);
	if (m->sizes(instance, 0, in, sizes, &status) != WEFT_OK)
		fail_msg("%s", status.message);
	char *work = malloc(sizes->workspace_bytes + 1);
	WeftTensor have[4];
	int64_t shape[4][12];
	for (uint32_t k = 0; k < nout; k++) {
		int64_t numel = 1;
		for (int32_t d = 0; d < out[k].ndim; d++)
			numel *= shape[k][d] = out[k].shape[d];
		have[k] = out[k];
		have[k].shape = shape[k];
		have[k].data = calloc((size_t)numel + 1, 8);
	}
	if (m->run(instance, sizes, in, have, work, NULL, &status) != WEFT_OK)
		fail_msg("%s", status.message);
	for (uint32_t k = 0; k < nout; k++) {
		int64_t numel = 1;
		for (int32_t d = 0; d < out[k].ndim; d++)
			numel *= out[k].shape[d];
		for (int64_t i = 0; i < numel && out[k].dtype.code == WEFT_FLOAT; i++)
			assert_float_equal(((const float *)have[k].data)[i],
					   ((const float *)out[k].data)[i], 1e-5);
		if (out[k].dtype.code == WEFT_INT)
			assert_memory_equal(have[k].data, out[k].data, (size_t)numel * 8);
		free(have[k].data);
	}
	m->close(instance);
	free(work);
	free(sizes);
	return out[0].data;
}

static void gives(Weft *w, WeftGraph *g, const WeftTensor *in, uint32_t nin, const float *want,
		  uint32_t n)
{
	WeftTensor out[4];
	const float *y = results(w, g, in, nin, out);
	for (uint32_t k = 0; k < n; k++)
		assert_float_equal(y[k], want[k], 1e-5);
}

/* ---- branches ---- */

typedef struct {
	WeftValue x, weight;
} Outside;

static void twice(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	(void)in;
	out[0] = weft_scale(t, ((const Outside *)user)->x, 2);
}

static void less_weight(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	const Outside *o = user;
	(void)in;
	out[0] = weft_sub(t, o->x, o->weight);
}

static WeftValue branch(WeftTrace *t, Outside *o)
{
	WeftValue y;
	weft_cond(t, weft_with_number(t, "aten.gt.Scalar", weft_sum(t, o->x), 0), twice,
		  less_weight, o, &y, 1);
	return y;
}

static void test_cond(void **state)
{
	(void)state;
	static const float weight[3] = {10, 20, 30};
	float up[3] = {1, 2, 3}, down[3] = {-1, -2, -3};
	int64_t shape[1] = {3};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "branch");
	Outside o = {weft_trace_input(t, "x", "f32[3]"),
		     weft_trace_param(t, "weight", "f32[3]", weight)};
	weft_trace_output(t, "y", branch(t, &o));
	WeftGraph *g = ended(w, t);
	const WeftTensor in[2] = {tensor(up, F32, 1, shape), tensor(down, F32, 1, shape)};
	gives(w, g, &in[0], 1, (float[]){2, 4, 6}, 3);
	gives(w, g, &in[1], 1, (float[]){-11, -22, -33}, 3);
	weft_free(w);
}

/* ---- loops ---- */

static void below_n(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	out[0] = weft_binary(t, "aten.lt.Tensor", in[0], *(const WeftValue *)user);
}

static void times_x(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	const WeftArg next[] = {weft_arg(in[0]), weft_arg_int(1)};
	out[0] = weft_trace_call(t, "aten.add.Tensor", next, 2);
	out[1] = weft_mul(t, in[1], ((const WeftValue *)user)[1]);
}

static void test_while(void **state)
{
	(void)state;
	float x[2] = {2, 3};
	int64_t n = 5, shape[1] = {2};
	static const int64_t zero[1] = {0};
	static const float one[2] = {1, 1};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "power");
	WeftValue outside[2] = {weft_trace_input(t, "n", "i64[]"),
				weft_trace_input(t, "x", "f32[2]")};
	WeftValue v[2] = {weft_trace_param(t, "zero", "i64[]", zero),
			  weft_trace_param(t, "one", "f32[2]", one)};
	weft_while_loop(t, v, 2, below_n, times_x, 8, outside, v);
	weft_trace_output(t, "y", v[1]);
	weft_trace_output(t, "rounds", v[0]);
	WeftGraph *g = ended(w, t);
	const WeftTensor in[2] = {tensor(&n, I64, 0, NULL), tensor(x, F32, 1, shape)};
	WeftTensor out[2];
	const float *y = results(w, g, in, 2, out);
	assert_true(y[0] == 32 && y[1] == 243 && *(const int64_t *)out[1].data == 5);
	n = 0;
	gives(w, g, in, 2, (float[]){1, 1}, 2);
	/* `most` lets the derivative save its values */
	const char *const by[] = {"x"};
	const WeftGradOptions o = {.size = sizeof o, .nwrt = 1, .wrt = by};
	if (!weft_vjp(w, g, &o))
		fail_msg("%s", weft_messages(w));
	weft_free(w);
}

/* h = h / 2 + x, or -x where the sum of x is not above 0; a branch within a loop. */
static void step(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	Outside o = {in[1], *(const WeftValue *)user};
	out[0] = weft_add(t, weft_scale(t, in[0], 0.5), branch(t, &o));
	out[1] = weft_neg(t, out[0]);
}

static void test_scan(void **state)
{
	(void)state;
	static const float zero[1] = {0}, weight[1] = {1};
	float x[3] = {1, -2, 3};
	int64_t shape[2] = {3, 1};
	for (int reverse = 0; reverse < 2; reverse++) {
		Weft *w = weft_new();
		WeftTrace *t = weft_trace_new(w, "recurrence");
		weft_trace_symbol(t, "T", 1, 100);
		WeftValue c = weft_trace_param(t, "weight", "f32[1]", weight), out[2];
		const WeftValue in[2] = {weft_trace_param(t, "h", "f32[1]", zero),
					 weft_trace_input(t, "x", "f32[T, 1]")};
		weft_scan(t, in, 1, 1, 1, reverse, step, &c, out);
		weft_trace_output(t, "ys", out[1]);
		weft_trace_output(t, "h", out[0]);
		WeftGraph *g = ended(w, t);
		const WeftTensor given = tensor(x, F32, 2, shape);
		/* branches give 2, -3, 6 */
		gives(w, g, &given, 1, reverse ? (float[]){-2 - 0, -0, -6} : (float[]){-2, 2, -5},
		      3);
		weft_free(w);
	}
}

/* ---- graphs in graphs ---- */

static const float matrix[4] = {1, 2, 3, 4}, offset[2] = {0.5f, -0.5f};

static WeftGraph *layer(Weft *w)
{
	WeftTrace *t = weft_trace_new(w, "layer");
	weft_trace_symbol(t, "B", 1, 8);
	WeftValue x = weft_trace_input(t, "x", "f32[B, 2]");
	weft_trace_output(t, "y",
			  weft_linear(t, x, weft_trace_param(t, "w", "f32[2, 2]", matrix),
				      weft_trace_param(t, "b", "f32[2]", offset)));
	weft_trace_output(t, "extent", weft_trace_integer(t, "2*B + 1"));
	return ended(w, t);
}

static void apply(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	WeftValue y[2], x = weft_add(t, in[0], in[1]);
	weft_trace_graph(t, user, &x, 1, y, 2);
	out[0] = y[0];
}

static void test_graph(void **state)
{
	(void)state;
	float x[8] = {1, 0, 0, 1, 1, 1, 2, -1};
	int64_t shape[3] = {2, 2, 2};
	static const float zero[4] = {0};
	Weft *w = weft_new();
	WeftGraph *inner = layer(w);
	WeftTrace *t = weft_trace_new(w, "outer");
	weft_trace_symbol(t, "B", 1, 100); /* another one than the layer's */
	WeftValue in = weft_trace_input(t, "x", "f32[T, 2, 2]"), flat, y[2],
		  h[2] = {weft_trace_param(t, "h", "f32[2, 2]", zero), in};
	weft_scan(t, h, 1, 1, 0, false, apply, inner, h);
	const int64_t rows[2] = {-1, 2};
	flat = weft_reshape(t, in, rows, 2);
	weft_trace_graph(t, inner, &flat, 1, y, 2);
	weft_trace_output(t, "h", h[0]);
	weft_trace_output(t, "y", y[0]);
	weft_trace_output(t, "extent", y[1]);
	WeftGraph *g = ended(w, t);
	assert_null(strstr(weft_graph_text(w, g, NULL), "w_1")); /* parameters are there once */
	const WeftTensor given = tensor(x, F32, 3, shape);
	WeftTensor out[3];
	const float *last = results(w, g, &given, 1, out);
	/* h1 = [[1.5, 2.5], [2.5, 3.5]]; h2 = ([[1, 1], [2, -1]] + h1) m^T + b */
	assert_float_equal(last[0], (1.5 + 1) * 1 + (2.5 + 1) * 2 + 0.5, 1e-5);
	assert_float_equal(last[3], (2.5 + 2) * 3 + (3.5 - 1) * 4 - 0.5, 1e-5);
	const float *all = out[1].data;
	assert_float_equal(all[0], 1 + 0.5, 1e-6);
	assert_float_equal(all[7], 2 * 3 - 4 - 0.5, 1e-6);
	assert_int_equal(*(const int64_t *)out[2].data, 2 * 4 + 1);
	weft_free(w);
}

static void test_graph_refused(void **state)
{
	(void)state;
	static const float other[4] = {9, 9, 9, 9};
	Weft *w = weft_new(), *w2 = weft_new();
	WeftGraph *inner = layer(w), *foreign = layer(w2);
	WeftValue y[2];
	WeftTrace *t = weft_trace_new(w, "range");
	WeftValue x = weft_trace_input(t, "x", "f32[9, 2]");
	weft_trace_graph(t, inner, &x, 1, y, 2);
	fails(w, t, "B is 9, out of range");
	t = weft_trace_new(w, "rank");
	x = weft_trace_input(t, "x", "f32[9]");
	weft_trace_graph(t, inner, &x, 1, y, 2);
	assert_int_equal(y[0].node, 0);
	fails(w, t, "expected f32 of rank 2, got f32 of rank 1");
	t = weft_trace_new(w, "extent");
	x = weft_trace_input(t, "x", "f32[2, 3]");
	weft_trace_graph(t, inner, &x, 1, y, 2);
	fails(w, t, "dimension 1 is 3, expected 2");
	t = weft_trace_new(w, "number");
	x = weft_trace_input(t, "x", "f32[2, 2]");
	weft_trace_graph(t, inner, &x, 1, y, 1);
	fails(w, t, "it gives more values");
	t = weft_trace_new(w, "parameter");
	weft_trace_param(t, "w", "f32[2, 2]", other);
	x = weft_trace_input(t, "x", "f32[2, 2]");
	weft_trace_graph(t, inner, &x, 1, y, 2);
	fails(w, t, "its parameter w is another one");
	t = weft_trace_new(w, "foreign");
	x = weft_trace_input(t, "x", "f32[2, 2]");
	weft_trace_graph(t, foreign, &x, 1, y, 2);
	fails(w, t, "another Weft");
	t = weft_trace_new(w, "null");
	weft_trace_graph(t, NULL, NULL, 1, NULL, 2);
	fails(w, t, "the graph");
	t = weft_trace_new(w, "null values");
	weft_trace_graph(t, inner, NULL, 1, NULL, 2);
	fails(w, t, "NULL");
	weft_trace_graph(NULL, inner, &x, 1, y, 2);
	weft_free(w);
	weft_free(w2);
}

/* A training step inside another graph: state is the trace's, and is changed once. */
static void test_graph_state(void **state)
{
	(void)state;
	static const float first[1] = {2};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "counter");
	WeftValue x = weft_trace_input(t, "x", "f32[1]"),
		  v = weft_trace_variable(t, "v", "f32[1]", first), y;
	weft_trace_output(t, "y", weft_mul(t, x, v));
	weft_trace_assign(t, v, weft_add(t, v, x));
	WeftGraph *inner = ended(w, t);
	t = weft_trace_new(w, "outer");
	x = weft_trace_input(t, "x", "f32[1]");
	weft_trace_graph(t, inner, &x, 1, &y, 1);
	weft_trace_output(t, "y", weft_neg(t, y));
	WeftGraph *g = ended(w, t);
	uint32_t n;
	assert_string_equal(weft_states(w, g, &n)[0].name, "v");
	assert_int_equal(n, 1);
	float held[1] = {2}, in[1] = {3};
	int64_t shape[1] = {1};
	const WeftTensor s = tensor(held, F32, 1, shape), given = tensor(in, F32, 1, shape);
	WeftTensor out;
	assert_true(weft_interpret_on(w, g, &s, &given, 1, &out));
	assert_true(*(const float *)out.data == -6 && held[0] == 5);
	t = weft_trace_new(w, "again");
	x = weft_trace_input(t, "x", "f32[1]");
	weft_trace_graph(t, inner, &x, 1, &y, 1);
	weft_trace_graph(t, inner, &y, 1, &y, 1);
	fails(w, t, "changed a second time");
	weft_free(w);
}

/* ---- sizes ---- */

/* The length of an argument that is one size does not count. */
static void test_one_size(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "size");
	weft_trace_symbol(t, "B", 1, 9);
	WeftValue x = weft_trace_input(t, "x", "f32[B]");
	WeftArg a[2] = {weft_arg(x), weft_arg_size("2*B")};
	a[1].n = 0;
	weft_trace_output(t, "y", weft_trace_call(t, "aten.mul.Scalar", a, 2));
	ended(w, t);
	weft_free(w);
}

static void test_sizes(void **state)
{
	(void)state;
	int64_t n = 3, shape[1] = {2};
	double scale = 2;
	float x[2] = {1, 2};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "sizes");
	WeftValue many = weft_trace_input(t, "n", "i64[]"),
		  by = weft_trace_input(t, "scale", "f64[]"),
		  v = weft_trace_input(t, "x", "f32[2]");
	weft_trace_size(t, "n", many, 0, 5);
	const char *const dims[] = {"n", "2"};
	const WeftArg expand[] = {weft_arg(v), weft_arg_sizes(dims, 2)};
	WeftValue y = weft_trace_call(t, "aten.expand", expand, 2);
	weft_trace_output(
		t, "y",
		weft_mul(t, y,
			 weft_trace_call(t, "aten._to_copy",
					 (WeftArg[]){weft_arg(by),
						     weft_arg_named("dtype", weft_arg_text("f32"))},
					 2)));
	weft_trace_output(t, "count", weft_trace_integer(t, "2*n + 1"));
	WeftGraph *g = ended(w, t);
	const WeftTensor in[3] = {tensor(&n, I64, 0, NULL),
				  tensor(&scale, (WeftDType){WEFT_FLOAT, 64, 1}, 0, NULL),
				  tensor(x, F32, 1, shape)};
	WeftTensor out[2];
	for (n = 0; n <= 5; n += 5, scale += 1) {
		assert_true(weft_interpret(w, g, in, 3, out));
		assert_true(out[0].ndim == 2 && out[0].shape[0] == n &&
			    *(const int64_t *)out[1].data == 2 * n + 1);
		for (int64_t k = 0; k < 2 * n; k++)
			assert_float_equal(((const float *)out[0].data)[k], scale * x[k % 2], 1e-6);
	}
	n = 6;
	assert_false(weft_interpret(w, g, in, 3, out));
	weft_free(w);
}

/* ---- bodies that say how many values they give ---- */

/* Values that each call gives, and what the functions below say of their number. */
typedef struct {
	WeftValue x;
	uint32_t gives[2];
	int at;
} Given;

static void some(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	Given *g = user;
	const uint32_t n = g->gives[g->at++];
	(void)in;
	for (uint32_t k = 0; k < n && k < 4; k++)
		out[k] = weft_scale(t, g->x, k + 1.0);
	weft_body_gives(t, n);
}

/* A branch with room for four values; returns how many there are. */
static uint32_t branch_of(Weft *w, uint32_t yes, uint32_t no, WeftGraph **graph)
{
	uint32_t n = 0;
	WeftValue out[4];
	WeftTrace *t = weft_trace_new(w, "counted");
	Given g = {weft_trace_input(t, "x", "f32[2]"), {yes, no}, 0};
	weft_cond(t, weft_trace_input(t, "p", "bool[]"), some, some, &g, out, 4);
	while (n < 4 && out[n].node)
		n++;
	for (uint32_t k = 0; k < n; k++)
		weft_trace_output(t, (const char *[]){"a", "b", "c", "d"}[k], out[k]);
	if (!n)
		weft_trace_output(t, "x", g.x);
	*graph = weft_trace_end(t);
	return n;
}

static void test_counted(void **state)
{
	(void)state;
	WeftGraph *g;
	for (uint32_t n = 0; n <= 4; n++) {
		Weft *w = weft_new();
		assert_int_equal(branch_of(w, n, n, &g), n);
		assert_non_null(g);
		weft_free(w);
	}
	static const struct {
		uint32_t yes, no;
		const char *why;
	} wrong[] = {{2, 3, "one branch gives 2 values, the other one 3"},
		     {3, 2, "one branch gives 3 values, the other one 2"},
		     {5, 5, "a body gives 5 values, expected 4 at most"}};
	for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
		Weft *w = weft_new();
		assert_int_equal(branch_of(w, wrong[k].yes, wrong[k].no, &g), 0);
		assert_null(g);
		if (!strstr(weft_messages(w), wrong[k].why))
			fail_msg("%s", weft_messages(w));
		assert_int_equal(weft_nmessages(w), 1);
		weft_free(w);
	}
}

/* The rows of nonzero, as a size that other calls read. */
static void test_data_extents(void **state)
{
	(void)state;
	float x[5] = {1, 0, 2, 3, 0};
	int64_t shape[1] = {5};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "extents");
	const WeftArg v = weft_arg(weft_trace_input(t, "x", "f32[B]"));
	assert_string_equal(weft_trace_extent(t, v.u.value, 0), "B");
	WeftValue found = weft_trace_call(t, "aten.nonzero", &v, 1);
	const char *n = weft_trace_extent(t, found, 0);
	assert_non_null(n);
	assert_string_equal(weft_trace_extent(t, found, 1), "1");
	assert_string_equal(weft_trace_dtype(t, v.u.value), "f32");
	assert_string_equal(weft_trace_dtype(t, found), "i64");
	const WeftArg flat[] = {weft_arg(found), weft_arg_sizes(&n, 1)};
	weft_trace_output(t, "y", weft_trace_call(t, "aten.reshape", flat, 2));
	weft_trace_output(t, "count", weft_trace_integer(t, n));
	WeftGraph *g = ended(w, t);
	const WeftTensor in[1] = {tensor(x, F32, 1, shape)};
	WeftTensor out[2];
	assert_true(weft_interpret(w, g, in, 1, out));
	assert_true(out[0].ndim == 1 && out[0].shape[0] == 3);
	assert_memory_equal(out[0].data, ((const int64_t[3]){0, 2, 3}), 24);
	assert_int_equal(*(const int64_t *)out[1].data, 3);
	weft_free(w);
}

/* x * n of an integer n, which is negative, too; with `extent` also ones of that many elements. */
static void negative_size(bool extent, int64_t lo, int64_t hi)
{
	int64_t n, shape[1] = {2};
	float x[2] = {1, 2};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "negative");
	WeftValue many = weft_trace_input(t, "n", "i64[]"), v = weft_trace_input(t, "x", "f32[2]");
	const char *const dims[] = {"n"};
	weft_trace_size(t, "n", many, lo, hi);
	weft_trace_output(t, "y",
			  weft_trace_call(t, "aten.mul.Scalar",
					  (WeftArg[]){weft_arg(v), weft_arg_size("n")}, 2));
	if (extent)
		weft_trace_output(
			t, "ones",
			weft_trace_call(t, "aten.ones", (WeftArg[]){weft_arg_sizes(dims, 1)}, 1));
	WeftGraph *g = ended(w, t);
	const WeftTensor in[2] = {tensor(&n, I64, 0, NULL), tensor(x, F32, 1, shape)};
	WeftTensor out[2];
	for (n = -4; n <= 4; n += 4) {
		assert_int_equal(weft_interpret(w, g, in, 2, out), !extent || n >= 0);
		if (!extent || n >= 0)
			assert_float_equal(((const float *)out[0].data)[1], 2 * (float)n, 0);
	}
	n = lo - 1;
	assert_false(weft_interpret(w, g, in, 2, out));
	weft_free(w);
}

static void test_negative_sizes(void **state)
{
	(void)state;
	negative_size(false, -4, 4);
	negative_size(true, -4, 4);
	negative_size(false, -INT64_MAX, INT64_MAX);
	negative_size(true, -INT64_MAX, INT64_MAX);
}

/* ---- lines, what can be called, what is refused ---- */

static void test_lines(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "lines");
	WeftValue x = weft_trace_input(t, "x", "f32[3]");
	weft_trace_line(t, "model.py:31 in encoder.0");
	x = weft_exp(t, x);
	weft_trace_line(t, NULL);
	weft_trace_output(t, "y", x);
	WeftGraph *g = ended(w, t);
	const WeftOptions o = {.size = sizeof o};
	const WeftModel *m = weft_loops(w, g, &o);
	assert_non_null(m);
	assert_string_equal(weft_call(m, weft_entry(m, 0), 0)->line, "model.py:31 in encoder.0");
	const WeftDType two[3] = {F32, F32, {WEFT_FLOAT, 31, 1}};
	assert_true(weft_trace_supports(w, "aten.add.Tensor", two, 2));
	assert_false(weft_trace_supports(w, "aten.add.Tensor", two, 3));
	assert_true(weft_trace_supports(w, "aten.cat", two, 2));
	assert_false(weft_trace_supports(w, "aten.cat", two, 3)); /* no such dtype */
	assert_false(weft_trace_supports(w, "aten.add_.Tensor", two, 2));
	assert_false(weft_trace_supports(w, "aten.nothing", two, 2));
	assert_false(weft_trace_supports(w, NULL, two, 2));
	assert_false(weft_trace_supports(w, "aten.cat", NULL, 2));
	assert_false(weft_trace_supports(NULL, "aten.cat", two, 2));
	weft_free(w);
}

static WeftValue leaked;

static void leak(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	(void)in;
	leaked = out[0] = weft_exp(t, *(const WeftValue *)user);
}

static void nothing(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	(void)t, (void)in, (void)out, (void)user;
}

static void outputs(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	(void)in;
	out[0] = *(const WeftValue *)user;
	weft_trace_output(t, "inside", out[0]);
}

static void ends(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	(void)in;
	out[0] = *(const WeftValue *)user;
	assert_null(weft_trace_end(t));
}

static void refused(WeftBlockFn yes, WeftBlockFn no, const char *message)
{
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "refused");
	WeftValue c = weft_trace_input(t, "c", "bool[]"), x = weft_trace_input(t, "x", "f32[3]"),
		  y = x;
	weft_cond(t, c, yes, no, &x, &y, 1);
	weft_trace_output(t, "y", weft_add(t, y, leaked));
	fails(w, t, message);
	weft_free(w);
}

static void swap(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	(void)t, (void)user;
	out[0] = in[1];
	out[1] = in[0];
}

static void never(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	(void)in;
	out[0] = weft_with_number(t, "aten.gt.Scalar", weft_sum(t, *(const WeftValue *)user), 0);
}

static void add_slices(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	(void)user;
	out[0] = weft_add(t, in[0], in[2]);
}

static void find_slice(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	(void)user;
	out[0] = in[0];
	out[1] = weft_unary(t, "aten.nonzero", in[1]);
}

/* Every round finds another number of elements: nothing can be stacked. */
static void test_found_size(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "found");
	const WeftValue in[2] = {weft_trace_input(t, "c", "f32[]"),
				 weft_trace_input(t, "x", "f32[T, 4]")};
	WeftValue y[2] = {{1, 1}, {1, 1}};
	weft_scan(t, in, 1, 1, 1, false, find_slice, NULL, y);
	assert_true(!y[0].node && !y[1].node);
	fails(w, t, "scan: result 1 is i64[u1, 1], and the body finds u1 in data");
	weft_free(w);
}

static void widen(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)
{
	(void)user;
	out[0] = weft_with_number(t, "aten.add.Tensor", in[0], 0.5);
}

static void test_carry_type(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "carry");
	WeftValue x = weft_trace_input(t, "x", "i64[3]"), y;
	weft_while_loop(t, &x, 1, never, widen, 0, &x, &y);
	fails(w, t, "carry 0 is i64[3], and the body makes f32[3] of it");
	weft_free(w);
}

/* Rounds share memory: sizes by name that may differ are refused, or required to be equal. */
static void test_extents(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "swap");
	WeftValue v[2] = {weft_trace_input(t, "a", "f32[A]"), weft_trace_input(t, "b", "f32[B]")};
	weft_while_loop(t, v, 2, never, swap, 0, &v[0], v);
	fails(w, t, "extent of a carry: A and B may differ");
	t = weft_trace_new(w, "lengths");
	const WeftValue in[3] = {weft_trace_input(t, "c", "f32[]"),
				 weft_trace_input(t, "a", "f32[A]"),
				 weft_trace_input(t, "b", "f32[B]")};
	WeftValue sum;
	weft_scan(t, in, 1, 2, 0, false, add_slices, NULL, &sum);
	weft_trace_output(t, "y", sum);
	WeftGraph *g = ended(w, t);
	uint32_t n;
	weft_guards(w, g, &n);
	assert_int_equal(n, 1);
	float c = 1, a[3] = {1, 2, 3}, b[3] = {10, 20, 30};
	int64_t three[1] = {3}, two[1] = {2};
	WeftTensor given[3] = {tensor(&c, F32, 0, NULL), tensor(a, F32, 1, three),
			       tensor(b, F32, 1, three)},
		   out;
	gives(w, g, given, 3, (float[]){61}, 1);
	given[2].shape = two;
	assert_false(weft_interpret(w, g, given, 3, &out));
	weft_free(w);
}

static void test_refused(void **state)
{
	(void)state;
	refused(leak, leak, "a body that has ended");
	refused(leak, nothing, "body 2 gives no value 0");
	refused(NULL, leak, "a function is missing");
	refused(outputs, leak, "not inside of a body");
	refused(ends, leak, "a body has not ended");
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "scan");
	WeftValue x = weft_trace_input(t, "x", "f32[]"), y;
	weft_scan(t, &x, 0, 1, 1, false, leak, &x, &y);
	fails(w, t, "has no dimension");
	t = weft_trace_new(w, "nothing to scan");
	x = weft_trace_input(t, "x", "f32[2]");
	weft_scan(t, &x, 1, 0, 0, false, leak, &x, &y);
	fails(w, t, "nothing to scan over");
	t = weft_trace_new(w, "size");
	x = weft_trace_input(t, "x", "f32[2]");
	weft_trace_size(t, "n", x, 0, 5);
	fails(w, t, "a size is the value of an i64[]");
	t = weft_trace_new(w, "expression");
	weft_trace_integer(t, "2*nobody");
	fails(w, t, "no expression of sizes");
	weft_cond(NULL, x, leak, leak, NULL, &y, 1);
	assert_int_equal(y.node, 0);
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counted),     cmocka_unit_test(test_cond),
		cmocka_unit_test(test_while),       cmocka_unit_test(test_scan),
		cmocka_unit_test(test_graph),       cmocka_unit_test(test_graph_refused),
		cmocka_unit_test(test_graph_state), cmocka_unit_test(test_one_size),
		cmocka_unit_test(test_sizes),       cmocka_unit_test(test_negative_sizes),
		cmocka_unit_test(test_lines),       cmocka_unit_test(test_extents),
		cmocka_unit_test(test_found_size),  cmocka_unit_test(test_carry_type),
		cmocka_unit_test(test_refused),     cmocka_unit_test(test_data_extents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
