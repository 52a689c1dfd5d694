/* Graphs in the hands of users (weft_graph.h): what nodes say, changes, bodies, constants, many
 * nodes. Patterns: driver_pattern.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft_call.h"
#include "weft_graph.h"
#include "weft_trace.h"

static const WeftNode none = {NULL, 0};

static WeftGraph *parsed(Weft *w, const char *text)
{
	WeftGraph *g = weft_parse(w, text, "f");
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

/* Whether a trace takes the graph, which has one input and one output. */
static bool is_traced(Weft *w, WeftGraph *g)
{
	WeftTrace *t = weft_trace_new(w, "outer");
	WeftValue x = weft_trace_input(t, "x", "f32[2, 3]"), y;
	weft_trace_graph(t, g, &x, 1, &y, 1);
	weft_trace_output(t, "y", y);
	return weft_trace_end(t);
}

static void silent(Weft *w)
{
	if (weft_nmessages(w))
		fail_msg("%s", weft_messages(w));
}

/* The node of the name. */
static WeftNode named(Weft *w, WeftGraph *g, const char *name)
{
	WeftNode n = weft_node_find(w, g, name);
	if (!n.index)
		fail_msg("no node %s\n%s", name, weft_messages(w));
	return n;
}

/* Interprets a graph with one input and output of 6 f32. */
static void run(Weft *w, WeftGraph *g, const float *in, float *out)
{
	int64_t shape[2] = {2, 3};
	WeftTensor x = {.data = (void *)(uintptr_t)in,
			.device = {WEFT_CPU, 0},
			.ndim = 2,
			.dtype = {WEFT_FLOAT, 32, 1},
			.shape = shape},
		   y;
	if (!weft_interpret(w, g, &x, 1, &y))
		fail_msg("%s", weft_messages(w));
	memcpy(out, y.data, 6 * sizeof *out);
}

/* ---- asking ---- */

static const char mixed[] =
	"graph @f(%x: f32[B, 3], %w: f32[3]) where 1 <= B {\n"
	"  %a = aten.add.Tensor(%x, %w, alpha=2) : f32[B, 3]  ; net.py:12 in layer.0\n"
	"  %m = aten.max.dim(%a, dim=1) : (f32[B], i64[B])\n"
	"  %v = get(%m, index=0)\n"
	"  %r = aten.reshape(%a, shape=[3, B]) : f32[3, B]\n"
	"  %t = aten.transpose.int(%r, dim0=0, dim1=1) : f32[B, 3]\n"
	"  return %t, %v\n}\n";

static void test_visit(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, mixed);
	const char *const names[] = {"x", "w", "a", "m", "v", "r", "t"};
	uint32_t k = 0;
	for (WeftNode n = weft_node_first(w, g); n.index; n = weft_node_next(w, n))
		assert_string_equal(weft_node_name(w, n), names[k++]);
	assert_int_equal(k, 7);
	for (WeftNode n = weft_node_last(w, g); n.index; n = weft_node_prev(w, n))
		assert_string_equal(weft_node_name(w, n), names[--k]);
	assert_true(weft_node_same(weft_node_of_input(w, g, 1), named(w, g, "w")));
	assert_true(weft_node_same(weft_node_of_output(w, g, 1), named(w, g, "v")));
	assert_int_equal(weft_node_find(w, g, "nobody").index, 0);
	silent(w);
	weft_free(w);
}

static void test_says(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, mixed);
	WeftNode x = named(w, g, "x"), a = named(w, g, "a"), m = named(w, g, "m"),
		 r = named(w, g, "r");
	WeftDType dtype;
	int64_t shape[12];
	assert_int_equal(weft_node_kind(w, x), WEFT_NODE_INPUT);
	assert_int_equal(weft_node_kind(w, a), WEFT_NODE_CALL);
	assert_string_equal(weft_node_op(w, a), "aten.add.Tensor");
	assert_string_equal(weft_node_overload(w, a), "Tensor");
	assert_string_equal(weft_node_overload(w, r), "");
	assert_true(weft_node_is(w, a, "aten.add.Tensor"));
	assert_false(weft_node_is(w, a, "aten.sub.Tensor"));
	assert_string_equal(weft_node_line(w, a), "net.py:12 in layer.0");
	assert_string_equal(weft_node_line(w, m), "");
	assert_string_equal(weft_node_user_name(w, x), "x");
	assert_string_equal(weft_node_user_name(w, a), "");
	assert_string_equal(weft_node_type(w, a, 0), "f32[B, 3]");
	assert_string_equal(weft_node_extent(w, a, 0, 0), "B");
	assert_int_equal(weft_node_nresult(w, m), 2);
	assert_string_equal(weft_node_type(w, m, 1), "i64[B]");
	assert_int_equal(weft_node_shape(w, r, 0, &dtype, shape), 2);
	assert_int_equal(dtype.code, WEFT_FLOAT);
	assert_int_equal(dtype.bits, 32);
	assert_int_equal(shape[0], 3);
	assert_int_equal(shape[1], -1);
	assert_string_equal(weft_node_text(w, r),
			    "%r = aten.reshape(%a, shape=[3, B]) : f32[3, B]");
	silent(w);
	weft_free(w);
}

static void test_arguments(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, mixed);
	WeftNode a = named(w, g, "a"), r = named(w, g, "r"), m = named(w, g, "m");
	WeftAttr at;
	uint32_t n;
	double v;
	assert_int_equal(weft_node_nattr(w, a), 3);
	assert_true(weft_node_attr_at(w, a, 0, &at));
	assert_string_equal(at.name, "self");
	assert_true(at.kind == WEFT_ATTR_NODE && weft_node_same(at.u.node, named(w, g, "x")));
	assert_true(weft_node_number(w, a, "alpha", &v) && v == 2);
	assert_true(weft_node_same(weft_node_arg(w, a, "other"), named(w, g, "w")));
	assert_true(weft_node_attr(w, m, "keepdim", &at) && at.kind == WEFT_ATTR_BOOL && !at.u.b);
	assert_true(weft_node_attr(w, r, "shape", &at));
	assert_int_equal(at.kind, WEFT_ATTR_SIZES);
	assert_int_equal(at.n, 2);
	assert_string_equal(at.u.texts[0], "3");
	assert_string_equal(at.u.texts[1], "B");
	assert_int_equal(weft_node_noperand(w, a), 2);
	assert_true(weft_node_same(weft_node_operand(w, a, 1), named(w, g, "w")));
	const WeftNode *users = weft_node_users(w, a, &n);
	assert_int_equal(n, 2);
	assert_true(weft_node_same(users[0], m) && weft_node_same(users[1], r));
	assert_int_equal(weft_node_nread(w, a), 2);
	assert_int_equal(weft_node_nread(w, named(w, g, "t")), 1);
	silent(w);
	weft_free(w);
}

/* What weft_node_attr_at gives makes an equal node. */
static void test_copied_node(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, mixed);
	for (WeftNode n = weft_node_first(w, g), next; n.index; n = next) {
		next = weft_node_next(w, n);
		if (weft_node_kind(w, n) != WEFT_NODE_CALL)
			continue;
		WeftAttr a[8];
		uint32_t count = weft_node_nattr(w, n);
		for (uint32_t k = 0; k < count; k++)
			assert_true(weft_node_attr_at(w, n, k, &a[k]));
		WeftNode copy = weft_node_insert_after(w, n, weft_node_op(w, n), a, count);
		silent(w);
		char *text = strdup(weft_node_text(w, n)), *eq = strchr(text, '=');
		assert_true(weft_node_replace(w, n, copy) && weft_node_erase(w, n));
		assert_string_equal(strchr(weft_node_text(w, copy), '='), eq);
		free(text);
	}
	assert_string_equal(weft_graph_text(w, g, NULL),
			    weft_graph_text(w, parsed(w, mixed), NULL));
	silent(w);
	weft_free(w);
}

/* ---- changes ---- */

static const char chain[] = "graph @f(%x: f32[2, 3]) -> f32[2, 3] {\n  %r = aten.relu(%x) : f32[2, "
			    "3]\n  %s = aten.neg(%r) : f32[2, 3]\n"
			    "  return %s\n}\n";

static void test_insert(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, chain);
	WeftNode x = named(w, g, "x"), r = named(w, g, "r");
	const WeftAttr add[] = {weft_attr_node(x), weft_attr_int(1)};
	WeftNode y = weft_node_insert_after(w, x, "aten.add.Tensor", add, 2);
	assert_string_equal(weft_node_op(w, y), "aten.add.Scalar");
	assert_true(weft_node_same(weft_node_next(w, x), y));
	assert_true(weft_node_set_operand(w, r, 0, y));
	const WeftAttr half[] = {weft_attr_node(r), weft_attr_named("other", weft_attr_float(0.5))};
	WeftNode z = weft_node_insert_after(w, r, "aten.mul.Scalar", half, 2);
	assert_true(weft_node_replace(w, r, z));
	assert_true(weft_node_same(weft_node_operand(w, z, 0), r));
	assert_true(weft_graph_verify(w, g));
	float out[6];
	run(w, g, (const float[]){-3, -1, 0, 1, 2, 3}, out);
	const float want[] = {0, 0, -0.5f, -1, -1.5f, -2};
	for (int k = 0; k < 6; k++)
		assert_true(out[k] == want[k]);
	weft_free(w);
}

static void test_set_attr(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, mixed);
	WeftNode a = named(w, g, "a"), t = named(w, g, "t");
	WeftAttr alpha = weft_attr_named("alpha", weft_attr_int(5)),
		 dim = weft_attr_named("dim0", weft_attr_int(-1));
	WeftAttr other = weft_attr_named("other", weft_attr_node(named(w, g, "x")));
	assert_true(weft_node_set_attr(w, a, &alpha));
	assert_true(weft_node_set_attr(w, a, &other));
	assert_string_equal(
		strchr(weft_node_text(w, a), '='),
		"= aten.add.Tensor(%x, %x, alpha=5) : f32[B, 3]  ; net.py:12 in layer.0");
	silent(w);
	assert_false(weft_node_set_attr(w, t, &dim)); /* would be f32[3, B] */
	assert_int_equal(weft_nmessages(w), 1);
	assert_non_null(
		strstr(weft_messages(w), "would be f32[3, B], expected f32[B, 3] as before"));
	assert_string_equal(weft_node_text(w, t),
			    "%t = aten.transpose.int(%r, dim0=0, dim1=1) : f32[B, 3]");
	assert_true(weft_graph_verify(w, g));
	weft_free(w);
}

/* An operand that comes later: the change is possible, the graph is refused, and mended. */
static void test_order(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, chain);
	WeftNode r = named(w, g, "r"), s = named(w, g, "s");
	assert_true(weft_node_set_operand(w, r, 0, s));
	assert_false(weft_graph_verify(w, g));
	assert_non_null(strstr(weft_messages(w), "reads a node that comes later"));
	assert_null(weft_graph_text(w, g, NULL));
	assert_false(weft_transform(w, g, "cse"));
	assert_null(weft_copy_graph(w, g));
	assert_null(weft_vjp(w, g, NULL));
	assert_null(weft_jvp(w, g, NULL));
	assert_null(weft_vmap(w, g, NULL));
	assert_false(weft_plan(w, g, NULL));
	assert_null(weft_loops(w, g, NULL));
	assert_false(weft_interpret(w, g, NULL, 0, NULL));
	assert_null(weft_inputs(w, g, NULL));
	assert_false(is_traced(w, g));
	assert_null(weft_join(w, 1, (const char *const[]){"f"}, &g));
	assert_int_equal(weft_replace_pattern(w, g, parsed(w, chain), parsed(w, chain)), -1);
	assert_true(weft_node_set_operand(w, r, 0, named(w, g, "x")));
	assert_true(weft_graph_verify(w, g));
	assert_string_equal(weft_graph_text(w, g, NULL),
			    weft_graph_text(w, parsed(w, chain), NULL));
	weft_free(w);
}

static void test_outputs(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, chain);
	WeftNode r = named(w, g, "r");
	uint32_t n;
	assert_true(weft_graph_add_output(w, g, "inner", r));
	const WeftTensorInfo *out = weft_outputs(w, g, &n);
	assert_int_equal(n, 2);
	assert_string_equal(out[1].name, "inner");
	assert_true(weft_graph_set_output(w, g, 0, r));
	assert_int_equal(weft_graph_sweep(w, g), 1); /* neg */
	assert_true(weft_graph_remove_output(w, g, 0));
	weft_outputs(w, g, &n);
	assert_int_equal(n, 1);
	WeftNode y = weft_graph_add_input(w, g, "y", "f32[N]");
	assert_true(weft_graph_add_output(w, g, "z", y));
	assert_string_equal(weft_inputs(w, g, &n)[1].name, "y");
	assert_int_equal(n, 2);
	silent(w);
	assert_false(weft_graph_add_output(w, g, "z", y));
	assert_int_equal(weft_graph_add_input(w, g, "x", "f32[N]").index, 0);
	assert_true(weft_graph_remove_output(w, g, 1));
	assert_false(weft_graph_remove_output(w, g, 0));
	assert_int_equal(weft_nmessages(w), 3);
	weft_free(w);
}

/* How many inputs and how many tensors of state the model has. */
static void check_sizes(Weft *w, WeftGraph *g, uint32_t inputs, uint32_t states)
{
	uint32_t n;
	weft_inputs(w, g, &n);
	assert_int_equal(n, inputs);
	weft_states(w, g, &n);
	assert_int_equal(n, states);
}

/* Whether a message was added that has the text. */
static void check_refused(Weft *w, bool done, const char *text)
{
	assert_false(done);
	if (!strstr(weft_messages(w), text))
		fail_msg("%s", weft_messages(w));
}

static void test_state(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "count");
	const float zero[3] = {1, 2, 3};
	WeftValue x = weft_trace_input(t, "x", "f32[3]"),
		  v = weft_trace_variable(t, "sum", "f32[3]", zero);
	weft_trace_assign(t, v, weft_add(t, v, x));
	weft_trace_output(t, "y", v);
	WeftGraph *g = weft_trace_end(t);
	WeftNode sum = weft_node_of_state(w, g, 0), to = weft_node_written(w, sum);
	WeftTensor first;
	assert_int_equal(weft_node_kind(w, sum), WEFT_NODE_STATE);
	assert_string_equal(weft_node_user_name(w, sum), "sum");
	assert_string_equal(weft_node_op(w, to), "aten.add.Tensor");
	assert_true(weft_node_tensor(w, sum, &first));
	assert_memory_equal(first.data, zero, sizeof zero);
	WeftNode twice = weft_node_insert_after(w, to, "aten.neg",
						(const WeftAttr[]){weft_attr_node(to)}, 1);
	assert_true(weft_graph_set_written(w, sum, twice));
	assert_true(weft_node_same(weft_node_written(w, sum), twice));
	assert_int_equal(weft_node_written(w, weft_node_of_input(w, g, 0)).index, 0);
	assert_true(weft_graph_verify(w, g));
	silent(w);
	assert_false(weft_graph_set_written(w, weft_node_of_input(w, g, 0), twice));
	assert_false(weft_node_erase(w, sum));
	/* written with itself it is a constant */
	assert_true(weft_graph_set_written(w, sum, sum));
	weft_graph_sweep(w, g);
	check_sizes(w, g, 1, 0);
	assert_true(weft_graph_verify(w, g));
	weft_free(w);
}

/* Inputs that nothing reads go, unless they alone say what a size is; sizes that are gone are not
 * required of anything. */
static void test_remove_inputs(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g =
		parsed(w, "graph @f(%x: f32[n, 3], %y: f32[m], %z: f32[n]) where 2 <= m {\n"
			  "  %a = aten.relu(%y) : f32[m]\n  %b = iota(dtype=i64, n=n) : i64[n]\n"
			  "  return %b\n}\n");
	check_refused(w, weft_node_erase(w, named(w, g, "y")), "is read by node a");
	assert_true(weft_node_erase(w, named(w, g, "a")));
	assert_true(weft_node_erase(w, named(w, g, "y")));
	assert_true(weft_node_erase(w, named(w, g, "x")));
	check_refused(w, weft_node_erase(w, named(w, g, "z")), "says what the size n is");
	check_sizes(w, g, 1, 0);
	assert_true(weft_graph_verify(w, g));
	weft_free(w);
}

/* The state of random numbers goes with the last operator that draws. */
static void test_remove_random(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g =
		parsed(w, "graph @f(%x: f32[4]) {\n"
			  "  %a = aten.dropout(%x, p=0.5, train=true) : f32[4]\n"
			  "  %b = aten.dropout(%a, p=0.5, train=true) : f32[4]\n  return %b\n}\n");
	check_sizes(w, g, 1, 1);
	assert_true(weft_node_replace(w, named(w, g, "b"), named(w, g, "a")));
	assert_true(weft_graph_sweep(w, g) > 0);
	check_sizes(w, g, 1, 1);
	assert_true(weft_node_replace(w, named(w, g, "a"), named(w, g, "x")));
	assert_true(weft_graph_sweep(w, g) > 0);
	check_sizes(w, g, 1, 0);
	assert_true(weft_graph_verify(w, g));
	weft_free(w);
}

static void test_constants(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, chain);
	float data[] = {1, 2, 3, 4, 5, 6};
	int64_t shape[2] = {2, 3}, turned[2] = {1, 2};
	WeftTensor t = {.data = data,
			.device = {WEFT_CPU, 0},
			.ndim = 2,
			.dtype = {WEFT_FLOAT, 32, 1},
			.shape = shape,
			.strides = turned},
		   back;
	WeftNode c = weft_graph_constant(w, g, "weight", &t), d;
	memset(data, 0, sizeof data);
	assert_int_equal(weft_node_kind(w, c), WEFT_NODE_CONSTANT);
	assert_string_equal(weft_node_user_name(w, c), "weight");
	assert_true(weft_node_tensor(w, c, &back));
	assert_memory_equal(back.data, ((float[]){1, 3, 5, 2, 4, 6}), sizeof data);
	assert_true(back.ndim == 2 && back.shape[0] == 2 && back.shape[1] == 3);
	WeftNode s = named(w, g, "s");
	WeftNode y =
		weft_node_insert_after(w, s, "aten.add.Tensor",
				       (const WeftAttr[]){weft_attr_node(s), weft_attr_node(c)}, 2);
	assert_true(weft_graph_set_output(w, g, 0, y));
	float out[6];
	run(w, g, (const float[]){1, 1, 1, 1, 1, 1}, out);
	assert_memory_equal(out, ((float[]){0, 2, 4, 1, 3, 5}), sizeof out);
	WeftGraph *again = weft_parse_like(w, g, weft_graph_text(w, g, NULL), "again");
	assert_non_null(again);
	assert_string_equal(weft_graph_text(w, again, NULL), weft_graph_text(w, g, NULL));
	run(w, again, (const float[]){1, 1, 1, 1, 1, 1}, out);
	assert_memory_equal(out, ((float[]){0, 2, 4, 1, 3, 5}), sizeof out);
	silent(w);
	assert_int_equal(weft_graph_constant(w, g, "weight", &t).index, 0);
	assert_int_equal(weft_graph_constant(w, g, "x", &t).index, 0);
	d = weft_graph_constant(w, g, NULL, &t);
	assert_string_equal(weft_node_user_name(w, d), "");
	assert_int_equal(weft_nmessages(w), 2);
	weft_free(w);
}

/* ---- bodies ---- */

/* Messages, texts and users of the model see the new name. */
static void test_rename_size(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, "graph @f(%x: f32[B, 2*B], %y: f32[C]) where 1 <= B <= 8 {\n"
				 "  %r = aten.relu(%x)\n  return %r, %y\n}");
	assert_true(weft_graph_rename_size(w, g, "B", "batch"));
	assert_non_null(strstr(weft_graph_text(w, g, NULL), "%x: f32[batch, 2*batch]"));
	assert_non_null(strstr(weft_graph_text(w, g, NULL), "1 <= batch <= 8"));
	assert_true(weft_graph_add_input(w, g, "z", "f32[batch, C]").index);
	silent(w);
	assert_false(weft_graph_rename_size(w, g, "C", "batch"));
	assert_false(weft_graph_rename_size(w, g, "B", "b"));
	assert_false(weft_graph_rename_size(w, g, "C", "2*c"));
	assert_true(weft_graph_rename_size(w, g, "C", "B"));
	weft_free(w);
}

static const char loop[] = "graph @f(%x: f32[2, 3]) -> f32[2, 3] {\n"
			   "  %w = while([%x], [], cond=graph @test(%a: f32[2, 3]) {\n"
			   "    %m = reduce(%a, kind=\"max\", dims=[0, 1], acc=f32)\n"
			   "    %l = full(value=0.25, shape=[], dtype=f32)\n"
			   "    %c = gt(%m, %l)\n    return %c\n"
			   "  }, body=graph @half(%a: f32[2, 3]) {\n"
			   "    %h = full(value=0.5, shape=[2, 3], dtype=f32)\n"
			   "    %m = mul(%a, %h)\n    return %m\n  })\n"
			   "  %e = get(%w, index=0)\n  return %e\n}\n";

static void test_bodies(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, loop);
	WeftNode node = named(w, g, "w");
	WeftGraph *body = weft_node_body(w, node, "body"), *cond = weft_node_body(w, node, "cond");
	assert_ptr_equal(weft_node_body(w, node, "body"), body);
	assert_non_null(weft_graph_text(w, body, NULL));
	WeftNode m = named(w, body, "m"), a = weft_node_of_input(w, body, 0);
	float quarter = 0.125f;
	WeftTensor t = {.data = &quarter, .device = {WEFT_CPU, 0}, .dtype = {WEFT_FLOAT, 32, 1}};
	WeftNode c = weft_graph_constant(w, body, NULL, &t);
	WeftNode y =
		weft_node_insert_after(w, m, "aten.mul.Tensor",
				       (const WeftAttr[]){weft_attr_node(a), weft_attr_node(c)}, 2);
	assert_true(weft_graph_set_output(w, body, 0, y));
	assert_int_equal(weft_graph_sweep(w, body), 2);
	silent(w);
	float out[6];
	run(w, g, (const float[]){4, 0, 0, 0, 0, 1}, out);
	assert_memory_equal(out, ((float[]){0.0625f, 0, 0, 0, 0, 0.015625f}), sizeof out);
	assert_true(weft_plan(w, g, NULL));
	assert_null(weft_copy_graph(w, body)); /* no graph of its own */
	assert_null(weft_vjp(w, body, NULL));
	assert_false(weft_plan(w, body, NULL));
	assert_false(is_traced(w, body));
	assert_false(weft_graph_add_output(w, body, "more", y));
	assert_false(weft_node_replace(w, y, named(w, cond, "m")));
	assert_int_equal(weft_nmessages(w), 6);
	/* A wrong body makes the graph that it is in wrong. */
	WeftNode z =
		weft_node_insert_after(w, y, "aten.neg", (const WeftAttr[]){weft_attr_node(y)}, 1);
	assert_true(weft_node_set_operand(w, y, 0, z));
	assert_false(weft_graph_verify(w, g));
	assert_null(weft_graph_text(w, g, NULL));
	WeftNode x = weft_node_of_input(w, g, 0);
	assert_true(weft_node_replace(w, named(w, g, "e"), x) &&
		    weft_node_erase(w, named(w, g, "e")) && weft_node_erase(w, node));
	assert_true(weft_graph_verify(w, g));
	assert_int_equal(weft_node_first(w, body).index, 0);
	assert_null(weft_graph_text(w, body, NULL));
	weft_free(w);
}

/* ---- sizes that depend on data ---- */

static void test_data_sizes(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "some");
	WeftValue x = weft_trace_input(t, "x", "f32[N]");
	WeftValue at = weft_unary(t, "aten.nonzero", x);
	weft_trace_output(t, "y", weft_scale(t, at, 2));
	WeftGraph *g = weft_trace_end(t);
	WeftNode nonzero = weft_node_operand(w, weft_node_of_output(w, g, 0), 0),
		 in = weft_node_of_input(w, g, 0);
	const char *u = weft_node_extent(w, nonzero, 0, 0);
	const char *const size[] = {u, "1"};
	/* The size is known where an operand has it. */
	assert_int_equal(weft_node_insert_after(
				 w, nonzero, "aten.expand",
				 (const WeftAttr[]){weft_attr_node(in), weft_attr_sizes(size, 2)},
				 2)
				 .index,
			 0);
	assert_non_null(
		strstr(weft_messages(w), "is neither a size of an input nor of an operand"));
	WeftNode y = weft_node_insert_after(
		w, nonzero, "aten.reshape",
		(const WeftAttr[]){weft_attr_node(nonzero), weft_attr_sizes(size, 1)}, 2);
	assert_true(y.index);
	assert_int_equal(weft_nmessages(w), 1);
	WeftNode last = weft_node_of_output(w, g, 0);
	assert_true(weft_graph_set_output(w, g, 0, in));
	assert_true(weft_node_erase(w, last) && weft_node_erase(w, y) &&
		    weft_node_erase(w, nonzero));
	assert_true(weft_graph_verify(w, g));
	weft_free(w);
}

static void test_makes_size(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "some");
	WeftValue x = weft_trace_input(t, "x", "f32[N]");
	weft_trace_output(t, "y", weft_scale(t, weft_unary(t, "aten.nonzero", x), 2));
	WeftGraph *g = weft_trace_end(t);
	assert_true(weft_transform(w, g, "canon"));
	WeftNode n = weft_node_first(w, g);
	while (n.index && !weft_node_is(w, n, "to_size"))
		n = weft_node_next(w, n);
	assert_true(n.index);
	assert_false(weft_node_erase(w, n));
	assert_non_null(strstr(weft_messages(w), "which another node has"));
	weft_free(w);
}

/* A node that makes a size keeps its bound; what has one size does not become what has another. */
static void test_other_size(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "some");
	WeftValue x = weft_trace_input(t, "x", "f32[N]"), y = weft_trace_input(t, "y", "f32[M]"),
		  z = weft_trace_input(t, "z", "f32[N]");
	WeftValue of_x = weft_unary(t, "aten.nonzero", x), of_y = weft_unary(t, "aten.nonzero", y);
	weft_trace_output(t, "a", weft_neg(t, of_x));
	weft_trace_output(t, "b", of_y);
	weft_trace_output(t, "c", weft_add(t, x, z));
	WeftGraph *g = weft_trace_end(t);
	WeftNode a = weft_node_of_output(w, g, 0), make = weft_node_operand(w, a, 0);
	assert_true(weft_node_set_operand(w, make, 0, weft_node_of_input(w, g, 2)));
	assert_int_equal(weft_nmessages(w), 0);
	assert_false(weft_node_set_operand(w, a, 0, weft_node_of_output(w, g, 1)));
	assert_false(weft_node_set_operand(w, make, 0, weft_node_of_input(w, g, 1)));
	assert_false(weft_node_replace(w, make, weft_node_of_output(w, g, 1)));
	assert_int_equal(weft_nmessages(w), 3);
	assert_non_null(strstr(weft_messages(w), "operand 0 must keep its type"));
	assert_true(weft_graph_verify(w, g));
	weft_free(w);
}

/* An operand of another length: that the lengths are equal is asked of each call, whoever runs
 * it. */
static void test_other_length(void **state)
{
	(void)state;
	float x[3] = {1, 2, 3};
	const int64_t three = 3, two = 2;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "lengths");
	WeftValue a = weft_trace_input(t, "x", "f32[N]"), b = weft_trace_input(t, "y", "f32[N]");
	weft_trace_input(t, "z", "f32[M]");
	weft_trace_output(t, "sum", weft_add(t, a, b));
	weft_trace_output(t, "dot", weft_binary(t, "aten.dot", a, b));
	WeftGraph *g = weft_trace_end(t);
	WeftNode z = weft_node_of_input(w, g, 2);
	uint32_t nguard;
	for (uint32_t k = 0; k < 2; k++)
		assert_true(weft_node_set_operand(w, weft_node_of_output(w, g, k), 1, z));
	assert_non_null(weft_guards(w, g, &nguard));
	assert_true(weft_graph_verify(w, g) && nguard == 1);
	const WeftTensor in[] = {weft_tensor(x, WEFT_F32, 1, &three),
				 weft_tensor(x, WEFT_F32, 1, &three),
				 weft_tensor(x, WEFT_F32, 1, &three)};
	const WeftTensor short_z[] = {in[0], in[1], weft_tensor(x, WEFT_F32, 1, &two)};
	WeftTensor out[2];
	WeftCall c;
	assert_true(weft_interpret(w, g, in, 3, out));
	assert_int_equal(weft_call_open(&c, weft_loops(w, g, NULL), 0), WEFT_OK);
	assert_int_equal(weft_call_run(&c, in), WEFT_OK);
	assert_true(((const float *)out[1].data)[0] == 14 &&
		    ((const float *)c.output[1].data)[0] == 14);
	assert_false(weft_interpret(w, g, short_z, 3, out));
	assert_int_equal(weft_call_run(&c, short_z), WEFT_ERR_INPUT);
	assert_non_null(strstr(c.status.message, "N = 3"));
	weft_call_close(&c);
	weft_free(w);
}

/* ---- many nodes ---- */

/* Visits, replaces and erases n nodes; the seconds that it takes. */
static double many(int n)
{
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "many");
	WeftValue x = weft_trace_input(t, "x", "f32[2, 3]");
	for (int k = 0; k < n; k++)
		x = weft_relu(t, x);
	weft_trace_output(t, "y", x);
	WeftGraph *g = weft_trace_end(t);
	clock_t begin = clock();
	int seen = 0;
	for (WeftNode k = weft_node_first(w, g), next; k.index; k = next, seen++) {
		next = weft_node_next(w, k);
		if (!weft_node_is(w, k, "aten.relu"))
			continue;
		assert_string_equal(weft_node_type(w, k, 0), "f32[2, 3]");
		const WeftAttr a[] = {weft_attr_node(weft_node_operand(w, k, 0)),
				      weft_attr_float(0.5)};
		WeftNode y = weft_node_insert_before(w, k, "aten.add.Scalar", a, 2);
		assert_true(weft_node_replace(w, k, y) && weft_node_erase(w, k));
	}
	assert_int_equal(seen, n + 1);
	assert_true(weft_graph_verify(w, g));
	double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
	float out[6];
	run(w, g, (const float[]){0, 1, 2, 3, 4, 5}, out);
	for (int k = 0; k < 6; k++)
		assert_true(out[k] == (float)k + 0.5f * (float)n);
	silent(w);
	weft_free(w);
	return seconds;
}

static void test_many(void **state)
{
	(void)state;
	double thousand = many(1000), ten = many(10000);
	print_message("1,000 nodes: %.1f ms; 10,000 nodes: %.1f ms\n", 1e3 * thousand, 1e3 * ten);
	assert_true(ten < 30 * thousand + 0.05); /* ten times as long, and noise */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_visit),         cmocka_unit_test(test_says),
		cmocka_unit_test(test_arguments),     cmocka_unit_test(test_copied_node),
		cmocka_unit_test(test_insert),        cmocka_unit_test(test_set_attr),
		cmocka_unit_test(test_order),         cmocka_unit_test(test_outputs),
		cmocka_unit_test(test_state),         cmocka_unit_test(test_constants),
		cmocka_unit_test(test_bodies),        cmocka_unit_test(test_data_sizes),
		cmocka_unit_test(test_makes_size),    cmocka_unit_test(test_other_size),
		cmocka_unit_test(test_other_length),  cmocka_unit_test(test_rename_size),
		cmocka_unit_test(test_remove_inputs), cmocka_unit_test(test_remove_random),
		cmocka_unit_test(test_many)};
	(void)none;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
