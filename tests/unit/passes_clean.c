/* The cleaning passes on small graphs: what they leave, as text, and that it computes the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/interp/interp.h"
#include "ir/op/op.h"
#include "passes/pipeline.h"

static Ctx *ctx;
static Ir *ir;

static int setup(void **state)
{
	(void)state;
	ctx = ctx_new();
	assert_non_null(ctx);
	int unwound = setjmp(ctx->unwind);
	if (unwound) {
		print_error("bug: %s\n", ctx->bug_text);
		abort();
	}
	ir = ir_new(ctx);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(ctx);
	return 0;
}

/* ---- graphs ---- */

/* Constant #n of this shape: 1, 1.5, 2, ... */
static void constant(uint32_t rank, const int64_t *dim)
{
	int64_t n = 1;
	for (uint32_t k = 0; k < rank; k++)
		n *= dim[k];
	float *v = ARENA_ARRAY(ctx->arena, float, n);
	for (int64_t k = 0; k < n; k++)
		v[k] = 1 + 0.5f * (float)k;
	ir_const(ir, (Const){.name = "",
			     .dtype = DT_f32,
			     .rank = rank,
			     .dim = arena_dup(ctx->arena, dim, rank * sizeof *dim),
			     .data = v,
			     .bytes = (uint64_t)n * sizeof *v});
}

static const char *first_error(void)
{
	return ctx->last ? ctx->last->text : "";
}

static Graph *parse(const char *text)
{
	Graph *g = graph_parse(ir, text, "test");
	if (!g)
		fail_msg("%s", first_error());
	if (!graph_verify(g))
		fail_msg("%s", first_error());
	return g;
}

/* The statements as printed. */
static const char *body(const Graph *g)
{
	Text t;
	text_init(&t, ctx->arena);
	graph_print(g, &t);
	const char *from = strstr(t.data, "{\n") + 2;
	return arena_strndup(ctx->arena, from, strlen(from) - 2);
}

static Tensor input(EvalCtx *e, Graph *g, Node n, uint64_t seed)
{
	Tensor t;
	assert_true(eval_alloc(e, node_type_id(g, n), g, &t));
	for (int64_t i = 0; i < tensor_numel(&t); i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		double v = (double)(seed >> 40) / (double)(1 << 24) * 8 - 4;
		if (dtype_is_float(t.dtype))
			tensor_set_f64(&t, i, v);
		else
			tensor_set_i64(&t, i, t.dtype == DT_bool ? v > 0 : (int64_t)v);
	}
	return t;
}

/* Both graphs give the same outputs, within a relative tolerance (0: the same numbers). */
static void assert_computes(Graph *g, Graph *h, double tolerance)
{
	Tensor in[4], want[4], got[4];
	EvalCtx e = {.ctx = ctx, .arena = ctx->arena, .syms = ir->syms};
	uint32_t n = sym_nvars(ir->syms);
	e.nsym = n;
	e.sym = ARENA_ARRAY(ctx->arena, Sym, n);
	e.value = ARENA_ARRAY(ctx->arena, int64_t, n);
	for (uint32_t k = 0; k < n; k++) {
		e.sym[k] = sym_var_at(ir->syms, k);
		e.value[k] = 3;
	}
	for (uint32_t k = 0; k < g->input.n; k++)
		in[k] = input(&e, g, g->input.data[k].node, 7 + k);
	if (!interp(ctx, g, in, g->input.n, want, g->output.n, ctx->arena) ||
	    !interp(ctx, h, in, g->input.n, got, g->output.n, ctx->arena))
		fail_msg("%s", first_error());
	for (uint32_t k = 0; k < g->output.n; k++) {
		assert_int_equal(tensor_numel(&want[k]), tensor_numel(&got[k]));
		for (int64_t i = 0; i < tensor_numel(&want[k]); i++) {
			double a = tensor_f64(&want[k], i), b = tensor_f64(&got[k], i);
			if (a != b && !(isnan(a) && isnan(b)) &&
			    !(fabs(a - b) <= tolerance * fabs(a)))
				fail_msg("output %u[%lld] is %g, was %g", k, (long long)i, b, a);
		}
	}
}

/* ---- one pass, then dce ---- */

typedef struct {
	const char *pass, *from, *to; /* to NULL: the pass changes nothing */
} Case;

static void check(const Case *c, double tolerance)
{
	char text[1024];
	snprintf(text, sizeof text, "graph @f%s", c->from);
	Graph *g = parse(text), *h = graph_clone(g);
	assert_true(pipeline_run_one(h, c->pass));
	bool changed = !graph_equal(g, h);
	if (changed != (c->to != NULL))
		fail_msg("%s %s: %s", c->pass, changed ? "changed" : "did not change", c->from);
	pipeline_run_one(h, "dce");
	if (!graph_verify(h))
		fail_msg("%s", first_error());
	if (c->to)
		assert_string_equal(body(h), c->to);
	assert_computes(g, h, tolerance);
}

static void check_all(const Case *c, size_t n, double tolerance)
{
	for (size_t k = 0; k < n; k++)
		check(&c[k], tolerance);
}

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void test_scalar_rules(void **state)
{
	(void)state;
	static const Case cases[] = {
		{"simplify", /* x + 0 is x for integers ... */
		 "(%x: i64[3]) -> i64[3] {\n"
		 "  %z = full(dtype=i64, shape=[3], value=0) : i64[3]\n"
		 "  %y = add(%z, %x) : i64[3]\n  return %y\n}\n",
		 "  return %x \"y\"\n"},
		{"simplify", /* ... but -0 + 0 is 0 */
		 "(%x: f32[3]) -> f32[3] {\n"
		 "  %z = full(dtype=f32, shape=[3], value=0.0) : f32[3]\n"
		 "  %y = add(%x, %z) : f32[3]\n  return %y\n}\n",
		 NULL},
		{"simplify", /* mul_one, sub_zero, neg_neg */
		 "(%x: f32[3]) -> f32[3] {\n"
		 "  %o = full(dtype=f32, shape=[3], value=1.0) : f32[3]\n"
		 "  %z = full(dtype=f32, shape=[3], value=0.0) : f32[3]\n"
		 "  %a = mul(%o, %x) : f32[3]\n"
		 "  %b = sub(%a, %z) : f32[3]\n"
		 "  %c = neg(%b) : f32[3]\n"
		 "  %d = neg(%c) : f32[3]\n  return %d\n}\n",
		 "  return %x \"d\"\n"},
		{"simplify", /* div_power is exact, division by 3 stays */
		 "(%x: f32[3]) -> f32[3], f32[3] {\n"
		 "  %k = full(dtype=f32, shape=[3], value=4.0) : f32[3]\n"
		 "  %l = full(dtype=f32, shape=[3], value=3.0) : f32[3]\n"
		 "  %a = div(%x, %k) : f32[3]\n"
		 "  %b = div(%x, %l) : f32[3]\n  return %a, %b\n}\n",
		 "  %l = full(dtype=f32, shape=[3], value=3.0) : f32[3]\n"
		 "  %1 = full(dtype=f32, shape=[3], value=0.25) : f32[3]\n"
		 "  %a = mul(%x, %1) : f32[3]\n"
		 "  %b = div(%x, %l) : f32[3]\n  return %a, %b\n"},
		{"simplify", /* bool to i64 keeps every value, f32 to i64 does not */
		 "(%x: bool[3], %y: f32[3]) -> f32[3], f32[3] {\n"
		 "  %a = convert(%x, dtype=i64) : i64[3]\n"
		 "  %b = convert(%a, dtype=f32) : f32[3]\n"
		 "  %c = convert(%y, dtype=i64) : i64[3]\n"
		 "  %d = convert(%c, dtype=f32) : f32[3]\n  return %b, %d\n}\n",
		 "  %b = convert(%x, dtype=f32) : f32[3]\n"
		 "  %c = convert(%y, dtype=i64) : i64[3]\n"
		 "  %d = convert(%c, dtype=f32) : f32[3]\n  return %b, %d\n"},
		{"simplify", /* select_constant, and_constant, op_of_splats */
		 "(%x: f32[3], %y: f32[3], %c: bool[3]) -> f32[3] {\n"
		 "  %t = full(dtype=bool, shape=[3], value=true) : bool[3]\n"
		 "  %k = full(dtype=f32, shape=[3], value=2.0) : f32[3]\n"
		 "  %s = sqrt(%k) : f32[3]\n"
		 "  %u = lt(%s, %k) : bool[3]\n"
		 "  %a = bit_and(%u, %c) : bool[3]\n"
		 "  %b = bit_not(%a) : bool[3]\n"
		 "  %d = select(%b, %x, %y) : f32[3]\n"
		 "  %e = select(%t, %d, %x) : f32[3]\n  return %e\n}\n",
		 "  %d = select(%c, %y, %x) : f32[3]\n  return %d \"e\"\n"},
	};
	check_all(cases, COUNT(cases), 0);
}

static void test_shape_rules(void **state)
{
	(void)state;
	static const Case cases[] = {
		{"simplify", /* two permutations that cancel, two reshapes that do */
		 "(%x: f32[2, 3]) -> f32[2, 3] {\n"
		 "  %a = permute(%x, perm=[1, 0]) : f32[3, 2]\n"
		 "  %b = permute(%a, perm=[1, 0]) : f32[2, 3]\n"
		 "  %c = reshape(%b, shape=[6]) : f32[6]\n"
		 "  %d = reshape(%c, shape=[2, 3]) : f32[2, 3]\n  return %d\n}\n",
		 "  return %x \"d\"\n"},
		{"simplify", /* permute_trivial: the extent of 1 moves */
		 "(%x: f32[n, 1, 3]) -> f32[1, n, 3] where 1 <= n {\n"
		 "  %a = permute(%x, perm=[1, 0, 2]) : f32[1, n, 3]\n  return %a\n}\n",
		 "  %a = reshape(%x, shape=[1, n, 3]) : f32[1, n, 3]\n  return %a\n"},
		{"simplify", /* broadcast_unsqueezed, broadcast_outside */
		 "(%x: f32[3]) -> f32[2, 3, 4] {\n"
		 "  %a = reshape(%x, shape=[3, 1]) : f32[3, 1]\n"
		 "  %b = broadcast(%a, shape=[2, 3, 4], map=[1, 2]) : f32[2, 3, 4]\n"
		 "  %c = exp(%b) : f32[2, 3, 4]\n  return %c\n}\n",
		 "  %1 = exp(%x) : f32[3]\n"
		 "  %c = broadcast(%1, shape=[2, 3, 4], map=[1]) : f32[2, 3, 4]\n  return %c\n"},
		{"simplify", /* slice_twice with steps */
		 "(%x: f32[20]) -> f32[3] {\n"
		 "  %a = slice(%x, start=[1], end=[20], step=[2]) : f32[10]\n"
		 "  %b = slice(%a, start=[2], end=[9], step=[3]) : f32[3]\n  return %b\n}\n",
		 "  %b = slice(%x, start=[5], end=[18], step=[6]) : f32[3]\n  return %b\n"},
		{"simplify", /* slice_of_concat */
		 "(%x: f32[2, n], %y: f32[2, 3]) -> f32[2, 2] where 1 <= n {\n"
		 "  %a = concat([%x, %y], dim=1) : f32[2, n + 3]\n"
		 "  %b = slice(%a, start=[0, n + 1], end=[2, n + 3], step=[1, 1]) : f32[2, 2]\n"
		 "  return %b\n}\n",
		 "  %b = slice(%y, start=[0, 1], end=[2, 3], step=[1, 1]) : f32[2, 2]\n"
		 "  return %b\n"},
		{"simplify", /* concat_parts: nested, and parts without elements */
		 "(%x: f32[2], %y: f32[0], %z: f32[3]) -> f32[7] {\n"
		 "  %a = concat([%x, %y, %z], dim=0) : f32[5]\n"
		 "  %b = concat([%a, %x], dim=0) : f32[7]\n  return %b\n}\n",
		 "  %b = concat([%x, %z, %x], dim=0) : f32[7]\n  return %b\n"},
		{"simplify", /* reverse_twice; reduce_ones; window_trivial */
		 "(%x: f32[1, 3]) -> f32[3, 1] {\n"
		 "  %a = reverse(%x, dims=[1]) : f32[1, 3]\n"
		 "  %b = reverse(%a, dims=[1]) : f32[1, 3]\n"
		 "  %c = reduce(%b, kind=\"sum\", dims=[0], acc=f32) : f32[3]\n"
		 "  %d = window(%c, dim=0, size=1, stride=1, dilation=1, low=0, count=3) : f32[3, "
		 "1]\n"
		 "  return %d\n}\n",
		 "  %d = reshape(%x, shape=[3, 1]) : f32[3, 1]\n  return %d\n"},
		{"simplify", /* contract_permuted, where the free axes keep their order */
		 "(%x: f32[2, 5, 3, 4], %y: f32[2, 3, 6, 4]) -> f32[2, 3, 5, 6] {\n"
		 "  %a = permute(%x, perm=[0, 2, 1, 3]) : f32[2, 3, 5, 4]\n"
		 "  %c = contract(%a, %y, batch_x=[0, 1], batch_y=[0, 1], sum_x=[3], sum_y=[3], "
		 "acc=f32)"
		 " : f32[2, 3, 5, 6]\n  return %c\n}\n",
		 "  %c = contract(%x, %y, batch_x=[0, 2], batch_y=[0, 1], sum_x=[3], sum_y=[3], "
		 "acc=f32)"
		 " : f32[2, 3, 5, 6]\n  return %c\n"},
		{"simplify", /* ... and where they do not */
		 "(%x: f32[2, 5, 4], %y: f32[6, 4]) -> f32[5, 2, 6] {\n"
		 "  %a = permute(%x, perm=[1, 0, 2]) : f32[5, 2, 4]\n"
		 "  %c = contract(%a, %y, batch_x=[], batch_y=[], sum_x=[2], sum_y=[1], acc=f32)"
		 " : f32[5, 2, 6]\n  return %c\n}\n",
		 NULL},
	};
	check_all(cases, COUNT(cases), 0);
}

static void test_cse(void **state)
{
	(void)state;
	static const Case cases[] = {
		{"cse",
		 "(%x: f32[3]) -> f32[3] {\n"
		 "  %a = exp(%x) : f32[3]\n"
		 "  %b = exp(%x) : f32[3]\n"
		 "  %c = neg(%a) : f32[3]\n"
		 "  %d = neg(%b) : f32[3]\n"
		 "  %e = mul(%c, %d) : f32[3]\n  return %e\n}\n",
		 "  %a = exp(%x) : f32[3]\n"
		 "  %c = neg(%a) : f32[3]\n"
		 "  %e = mul(%c, %c) : f32[3]\n  return %e\n"},
		{"cse", /* behind a barrier a value is computed again */
		 "(%x: f32[3]) -> f32[3], f32[3] {\n"
		 "  %a = barrier(%x) : f32[3]\n"
		 "  %b = barrier(%x) : f32[3]\n  return %a, %b\n}\n",
		 NULL},
	};
	check_all(cases, COUNT(cases), 0);
}

/* ---- constants ---- */

static void test_fold(void **state)
{
	(void)state;
	constant(1, (int64_t[]){4});
	Graph *g = parse("graph @f(%x: f32[4]) -> f32[4] {\n"
			 "  %c = const #1 f32[4]\n"
			 "  %k = full(dtype=f32, shape=[4], value=2.0) : f32[4]\n"
			 "  %a = mul(%c, %k) : f32[4]\n"
			 "  %b = sqrt(%a) : f32[4]\n"
			 "  %y = mul(%x, %b) : f32[4]\n  return %y\n}\n");
	Graph *h = graph_clone(g);
	assert_true(pipeline_run_one(h, "fold") && pipeline_run_one(h, "dce"));
	assert_int_equal(ir->constant.n, 3);
	const float *v = ir_const_of(ir, (ConstId){2})->data;
	assert_true(v[0] == sqrtf(2) && v[3] == sqrtf(5));
	assert_computes(g, h, 0);
	/* Replaceable parameters are not looked at: what to compute is kept. */
	ir->constant.data[1].is_param = true;
	Graph *kept = graph_clone(g);
	PipelineOptions o = {.keep_params = true};
	pipeline_clean(kept, &o);
	assert_int_equal(ir->constant.n, 4);
	assert_true(!ir_const_of(ir, (ConstId){3})->data && const_is_replaceable(ir, (ConstId){3}));
	assert_false(const_is_replaceable(ir, (ConstId){2}));
	assert_computes(h, kept, 0);
}

/* What a gather of a replaceable table finds is folded where no table and no weights can make it
 * fail. */
static void test_recipe_of_gather(void **state)
{
	(void)state;
	static const struct {
		const char *index, *mode;
		bool folded;
	} cases[] = {{"2", "check", true},
		     {"-4", "check", true},
		     {"4", "check", false},
		     {"-5", "check", false},
		     {"9", "clamp", true}};
	constant(1, (int64_t[]){4});
	ir->constant.data[1].is_param = true;
	for (size_t k = 0; k < COUNT(cases); k++) {
		uint32_t first = ir->constant.n;
		char text[600];
		snprintf(text, sizeof text,
			 "graph @f(%%x: f32[2]) -> f32[2] {\n  %%c = const #1 f32[4]\n"
			 "  %%i = full(dtype=i64, shape=[2, 1], value=%s) : i64[2, 1]\n  %%o = "
			 "iota(dtype=i64, n=2) : i64[2]\n"
			 "  %%p = reshape(%%o, shape=[2, 1]) : i64[2, 1]\n  %%j = add(%%i, %%p) : "
			 "i64[2, 1]\n"
			 "  %%y = gather(%%c, %%j, batch=0, axes=[0], mode=\"%s\") : f32[2]\n"
			 "  %%z = mul(%%x, %%y) : f32[2]\n  return %%z\n}\n",
			 cases[k].index, cases[k].mode);
		Graph *g = parse(text);
		PipelineOptions o = {.keep_params = true};
		pipeline_clean(g, &o);
		bool found = false;
		for (uint32_t i = first; i < ir->constant.n; i++)
			found |= ir->constant.data[i].recipe != NULL;
		assert_int_equal(found, cases[k].folded);
	}
}

/* The hash of what is computed from replaceable weights names them by their values, not by their
 * numbers in this file. */
static void test_hash_of_recipe(void **state)
{
	static const uint32_t number[] = {1, 2, 9, 10, 11, 20, 99, 100, 101};
	uint64_t first = 0;
	for (size_t k = 0; k < COUNT(number); k++) {
		for (uint32_t i = 1; i <= number[k]; i++)
			constant(1, (int64_t[]){4});
		ir->constant.data[number[k]].is_param = true;
		char text[300];
		snprintf(text, sizeof text,
			 "graph @f(%%x: f32[4]) -> f32[4] {\n  %%c = const #%u f32[4]\n  %%s = "
			 "mul(%%c, %%c) : f32[4]\n"
			 "  %%z = add(%%x, %%s) : f32[4]\n  return %%z\n}\n",
			 number[k]);
		Graph *g = parse(text);
		uint32_t last = ir->constant.n - 1;
		PipelineOptions o = {.keep_params = true};
		pipeline_clean(g, &o);
		assert_int_equal(ir->constant.n, last + 2);
		const Const *made = &ir->constant.data[last + 1];
		assert_non_null(made->recipe);
		first = k ? first : made->hash;
		assert_true(made->hash == first);
		teardown(state);
		setup(state);
	}
}

static void test_fold_stays_small(void **state)
{
	(void)state;
	constant(1, (int64_t[]){4});
	Graph *g =
		parse("graph @f() -> f32[1000, 1000, 4] {\n"
		      "  %c = const #1 f32[4]\n"
		      "  %a = broadcast(%c, shape=[1000, 1000, 4], map=[2]) : f32[1000, 1000, 4]\n"
		      "  %b = reshape(%a, shape=[1000, 1000, 4]) : f32[1000, 1000, 4]\n"
		      "  %e = permute(%b, perm=[1, 0, 2]) : f32[1000, 1000, 4]\n  return %e\n}\n");
	PipelineOptions o = {0};
	pipeline_clean(g, &o);
	assert_int_equal(ir->constant.n, 2);
}

/* An index out of range is an error at run time, not while compiling. */
static void test_fold_keeps_errors(void **state)
{
	(void)state;
	constant(1, (int64_t[]){4});
	Graph *g = parse("graph @f() -> f32[1] {\n"
			 "  %c = const #1 f32[4]\n"
			 "  %i = full(dtype=i64, shape=[1, 1], value=9) : i64[1, 1]\n"
			 "  %y = gather(%c, %i, batch=0, axes=[0], mode=\"check\") : f32[1]\n"
			 "  return %y\n}\n");
	PipelineOptions o = {0};
	Tensor out;
	pipeline_clean(g, &o);
	assert_int_equal(ctx->nerror, 0);
	assert_false(interp(ctx, g, NULL, 0, &out, 1, ctx->arena));
}

/* A convolution in groups with a bias, then a batch norm: one convolution and one bias remain. */
static void test_fold_scale_conv(void **state)
{
	(void)state;
	constant(5, (int64_t[]){2, 3, 2, 3, 3});
	constant(1, (int64_t[]){6});
	Graph *g = parse("graph @f(%x: f32[n, 2, 2, 5, 5]) -> f32[n, 6, 3, 3] where 1 <= n {\n"
			 "  %w = const #1 f32[2, 3, 2, 3, 3]\n"
			 "  %s = const #2 f32[6]\n"
			 "  %1 = conv(%x, %w, stride=[1, 1], dilation=[1, 1], dilation_in=[1, 1], "
			 "pad=[0, 0],"
			 " size=[3, 3], acc=f32) : f32[n, 2, 3, 3, 3]\n"
			 "  %2 = reshape(%1, shape=[n, 6, 3, 3]) : f32[n, 6, 3, 3]\n"
			 "  %3 = broadcast(%s, shape=[n, 6, 3, 3], map=[1]) : f32[n, 6, 3, 3]\n"
			 "  %4 = add(%2, %3) : f32[n, 6, 3, 3]\n"
			 "  %5 = mul(%4, %3) : f32[n, 6, 3, 3]\n"
			 "  %6 = add(%5, %3) : f32[n, 6, 3, 3]\n"
			 "  return %6\n}\n");
	Graph *h = graph_clone(g);
	PipelineOptions o = {0};
	pipeline_clean(h, &o);
	uint32_t count[3] = {0};
	for (Node n = h->first; n.i; n = node_next(h, n)) {
		count[0] += node_op(h, n) == OP_conv;
		count[1] += node_op(h, n) == OP_add;
		count[2] += node_op(h, n) == OP_mul;
	}
	assert_int_equal(count[0], 1);
	assert_int_equal(count[1], 1);
	assert_int_equal(count[2], 0);
	assert_computes(g, h, 1e-5);
}

/* A scale along the sum or behind a value that others read stays. */
static void test_fold_scale_refuses(void **state)
{
	(void)state;
	constant(2, (int64_t[]){3, 4});
	constant(1, (int64_t[]){2});
	static const Case cases[] = {
		{"fold_scale",
		 "(%x: f32[2, 4]) -> f32[2, 3] {\n"
		 "  %w = const #1 f32[3, 4]\n"
		 "  %s = const #2 f32[2]\n"
		 "  %1 = contract(%x, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f32)"
		 " : f32[2, 3]\n"
		 "  %2 = broadcast(%s, shape=[2, 3], map=[0]) : f32[2, 3]\n"
		 "  %3 = mul(%1, %2) : f32[2, 3]\n  return %3\n}\n",
		 NULL},
		{"fold_scale",
		 "(%x: f32[2, 4]) -> f32[2, 3], f32[2, 3] {\n"
		 "  %w = const #1 f32[3, 4]\n"
		 "  %1 = contract(%x, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f32)"
		 " : f32[2, 3]\n"
		 "  %2 = full(dtype=f32, shape=[2, 3], value=3.0) : f32[2, 3]\n"
		 "  %3 = mul(%1, %2) : f32[2, 3]\n  return %1, %3\n}\n",
		 NULL},
	};
	check_all(cases, COUNT(cases), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_scalar_rules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shape_rules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fold, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fold_stays_small, setup, teardown),
		cmocka_unit_test_setup_teardown(test_recipe_of_gather, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hash_of_recipe, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fold_keeps_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fold_scale_conv, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fold_scale_refuses, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
