/* Operators of the user: what definitions are refused and why, what a call must fit, how it is
 * executed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"
#include "weft_graph.h"
#include "weft_op.h"
#include "weft_trace.h"

/* y = x + n * the sum of list, by way of the workspace; fails below 0. */
static int shift(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
		 void *work, uint64_t work_bytes, WeftStatus *status)
{
	const float *x = in[0].data;
	const int64_t *n = in[1].data, *list = in[2].data;
	const bool *off = in[3].data;
	const double *scale = in[4].data;
	float *y = out[0].data, *kept = work, add = 0;
	int64_t count = in[0].shape[0];
	(void)context;
	if (in[0].ndim != 1 || in[1].ndim || in[2].ndim != 1 || in[3].dtype.code != WEFT_BOOL ||
	    in[4].dtype.bits != 64)
		return weft_op_fail(status, "other arguments");
	if (work_bytes != (uint64_t)count * 4 || (count && (uintptr_t)work % 64))
		return weft_op_fail(status, "other workspace");
	for (int64_t k = 0; k < in[2].shape[0]; k++)
		add += (float)list[k];
	for (int64_t k = 0; k < count; k++) {
		if (x[k] < 0)
			return weft_op_fail(status, "x[%lld] is %g", (long long)k, (double)x[k]);
		kept[k] = x[k] + (*off ? 0 : (float)*scale * (float)*n * add);
	}
	memcpy(y, kept, (size_t)count * 4);
	return 0;
}

static const WeftOpDef good = {
	.size = sizeof good,
	.flags = WEFT_OP_THREAD_SAFE,
	.schema = "test::shift(Tensor x, int n, int[] list, bool off=False, float scale=1.0) -> "
		  "Tensor",
	.types = "f32[a] -> f32[a]",
	.work_bytes = "4*a",
	.symbol = "test_shift",
	.fn = shift,
};

/* ---- definitions ---- */

static void refused(WeftOpDef def, const char *why)
{
	Weft *w = weft_new();
	if (weft_op_register(w, &def))
		fail_msg("%s, %s: registered with %s, %s", def.schema, def.types,
			 def.vjp ? def.vjp : "", def.jvp ? def.jvp : "");
	if (weft_nmessages(w) != 1 || !strstr(weft_message(w, 0).text, why))
		fail_msg("%s, %s: expected \"%s\", got %s", def.schema, def.types, why,
			 weft_messages(w));
	weft_free(w);
}

static void refused_schema(const char *schema, const char *why)
{
	WeftOpDef def = good;
	def.schema = schema;
	def.types = "f32[a] -> f32[a]";
	def.work_bytes = NULL;
	refused(def, why);
}

static void refused_default(const char *arg, const char *why)
{
	char schema[100];
	snprintf(schema, sizeof schema, "a::b(Tensor x, %s) -> Tensor", arg);
	refused_schema(schema, why);
}

static void refused_types(const char *types, const char *why)
{
	WeftOpDef def = good;
	def.types = types;
	refused(def, why);
}

static void refused_rule(const char *vjp, const char *jvp, const char *why)
{
	WeftOpDef def = good;
	def.vjp = vjp;
	def.jvp = jvp;
	refused(def, why);
}

static void test_rules(void **state)
{
	(void)state;
	refused_rule("[g", NULL, "test::shift: .vjp: expected \",\" or \"]\" at \"\"");
	refused_rule(
		"g", NULL,
		"test::shift: .vjp: expected a list of 1, one for each tensor among the arguments");
	refused_rule("[g, none]", NULL, "expected a list of 1");
	refused_rule("[t_x]", NULL, ".vjp: unknown name at \"]\"");
	refused_rule("[g0]", NULL, ".vjp: unknown name");
	refused_rule("[test::unshift(g)]", NULL, ".vjp: no such op");
	refused_rule("[input(g)]", NULL, ".vjp: no such op");
	refused_rule("[test::shift(g)]", NULL, ".vjp: an argument of the op is missing");
	refused_rule("[test::shift(g, n, list, size=3)]", NULL, "the op has no such argument");
	refused_rule("[mul(g)]", NULL, "an argument of the op is missing");
	refused_rule("a = g [a]", NULL, "expected \";\"");
	refused_rule(NULL, "g", "test::shift: .jvp: unknown name");
	refused_rule(NULL, "[t_x, t_x]", ".jvp: expected a list of 1, one for each result");
	refused_rule(NULL, "t_n", ".jvp: unknown name");
	Weft *w = weft_new();
	WeftOpDef def = good;
	def.vjp = "a = scale * g; [a + 0 * test::shift(g, n=n, list=[1, 2], off=true)]";
	def.jvp = "[t_x]";
	assert_true(weft_op_register(w, &def));
	def = good;
	def.schema = "a::b(Tensor x, int n = -9223372036854775808 , int[] l=[ 1, -2 ], int[] m=[], "
		     "int[2] k=3, float s=1e-5, float t=-inf, float u = 2, "
		     "bool b = True ) -> Tensor";
	if (!weft_op_register(w, &def))
		fail_msg("%s", weft_messages(w));
	weft_free(w);
}

/* ---- rules that are no derivatives ---- */

/* Of f32[a, b], f32[b] -> f32[a, b], i64[a] with scalars of every kind. */
static WeftOpDef two_operands(const char *vjp, const char *jvp)
{
	WeftOpDef def = good;
	def.schema = "test::two(Tensor x, Tensor w, int n=2, int[] dims=[0], bool flag=False, "
		     "float s=0.0) -> (Tensor, Tensor)";
	def.types = "f32[a, b], f32[b] -> f32[a, b], i64[a]";
	def.work_bytes = NULL;
	def.vjp = vjp;
	def.jvp = jvp;
	return def;
}

static void nonlinear(const char *vjp, const char *jvp, const char *why)
{
	refused(two_operands(vjp, jvp), why);
}

static void linear(const char *vjp, const char *jvp)
{
	WeftOpDef def = two_operands(vjp, jvp);
	Weft *w = weft_new();
	if (!weft_op_register(w, &def))
		fail_msg("%s / %s: %s", vjp ? vjp : "", jvp ? jvp : "", weft_messages(w));
	weft_free(w);
}

static void test_nonlinear(void **state)
{
	(void)state;
	nonlinear("[g0 * g0, none]", NULL,
		  "test::two: .vjp: \"g0 * g0\" is not linear in cotangents");
	nonlinear("[x, none]", NULL,
		  "test::two: .vjp: \"x\" does not depend on, and so is not linear in, cotangents");
	nonlinear("[none, w]", NULL, "\"w\" does not depend on");
	nonlinear("[g0 + 1, none]", NULL, "\"g0 + 1\" is not linear in cotangents");
	nonlinear("[g0 * x - x, none]", NULL, "\"g0 * x - x\" is not linear");
	nonlinear("[x / g0, none]", NULL, "\"x / g0\" is not linear");
	nonlinear("[1 / (g0 + x * g0), none]", NULL, "\"1 / (g0 + x * g0)\" is not linear");
	nonlinear("[-exp( g0 ), none]", NULL, "\"exp( g0 )\" is not linear");
	nonlinear("[relu(g0), none]", NULL, "\"relu(g0)\" is not linear");
	nonlinear("[remainder(g0, 2), none]", NULL, "is not linear");
	nonlinear("[where.self(g0 > 0, x, y0), none]", NULL, "\"g0 > 0\" is not linear");
	nonlinear("[select(x > 0, g0, 1), none]", NULL, "is not linear");
	nonlinear("[clamp(g0, 0, 1), none]", NULL, "is not linear");
	nonlinear("h = g0 * y0; [mul(h, h), none]", NULL, "\"mul(h, h)\" is not linear");
	nonlinear("[matmul(g0, matmul(permute(x, [1, 0]), g0)), none]", NULL, "is not linear");
	nonlinear("[g0, amax(g0, [0])]", NULL, "\"amax(g0, [0])\" is not linear");
	nonlinear("[softmax.int(g0, 1), none]", NULL, "\"softmax.int(g0, 1)\" is not linear");
	nonlinear("[test::two(g0 * g0, w, n, dims, flag, s), none]", NULL,
		  "\"g0 * g0\" is not linear");
	nonlinear("[0, g0]", NULL, "expected tensors only in a list");
	nonlinear("[0, 1]", NULL, "\"0\" is a number: expected a tensor or none");
	nonlinear("[ones_like(x), none]", NULL, "\"ones_like(x)\" does not depend on");
	nonlinear(NULL, "[t_x * t_w, none]",
		  "test::two: .jvp: \"t_x * t_w\" is not linear in tangents");
	nonlinear(NULL, "[t_x * w + x, none]", "\"t_x * w + x\" is not linear in tangents");
	nonlinear(NULL, "[y0, none]", "\"y0\" does not depend on");
	WeftOpDef one = good;
	one.vjp = "[g * g]";
	refused(one, "test::shift: .vjp: \"g * g\" is not linear in the cotangent g");
	one.vjp = "[x]";
	refused(one, "\"x\" does not depend on, and so is not linear in, the cotangent g");
	one.vjp = NULL;
	one.jvp = "abs(t_x)";
	refused(one, "test::shift: .jvp: \"abs(t_x)\" is not linear in tangents");
	one.jvp = "x";
	refused(one, "test::shift: .jvp: \"x\" does not depend on");
	one.jvp = "1";
	refused(one, "test::shift: .jvp: \"1\" is a number");
}

static void test_linear(void **state)
{
	(void)state;
	linear("[none, none]", "[none, none]");
	linear("[g0, sum.dim_IntList(g0, [0])]", "[t_x, none]");
	linear("[g0 * exp(x) / (y0 * y0 + 1), sum.dim_IntList(g0 * x, dims)]",
	       "[t_x * w + x * t_w, none]");
	linear("[s * g0 + n * (g0 - 2 * g0), none]", "[s * (t_x - x * t_w), none]");
	linear("[select(x > 0, g0, 0), zeros_like(w)]",
	       "[where.self(x > 0, t_x, zeros_like(x)), none]");
	linear("[select(x > 0, g0 * x, 0.5 * g0), none]", NULL);
	linear("[permute(permute(g0, [1, 0]) * 2, [1, 0]), mean.dim(g0, [0])]", NULL);
	linear("[matmul(matmul(g0, permute(x, [1, 0])), x), none]", NULL);
	linear("[cumsum(flip(g0, [0]), 0), sum(g0) * w]", NULL);
	linear("[masked_fill.Scalar(g0, x > 1, 0), none]", NULL);
	linear("[roll(g0, [1], [0]) + cat([g0, g0 * 0], 0) * 0 + g0, none]", NULL);
	linear("[index_select(g0, 0, argsort(sum.dim_IntList(x, [1]), 0)), none]", NULL);
	linear("[g0 - g0, none]",
	       "[linalg_solve_triangular(matmul(x, permute(x, [1, 0])), t_x, upper=true), none]");
	linear("[linalg_solve(matmul(x, permute(x, [1, 0])), g0), none]", NULL);
	linear("h = test::two(g0, w, n, dims, flag, s); [get(h, 0) * x, none]", NULL);
}

/* What can be told of a call only, here of one with three dimensions, is told there. */
static void test_nonlinear_call(void **state)
{
	(void)state;
	WeftOpDef def = good;
	def.schema = "test::any(Tensor x) -> Tensor";
	def.types = "f32[...] -> f32[...]";
	def.work_bytes = NULL;
	def.vjp = "h = permute(g, [2, 1, 0]); [permute(h * h, [2, 1, 0])]";
	def.jvp = "h = permute(t_x, [2, 1, 0]); permute(h + 1, [2, 1, 0])";
	Weft *w = weft_new();
	assert_true(weft_op_register(w, &def));
	WeftGraph *g = weft_parse(w,
				  "graph @f(%x: f32[2, 3, 4]) {\n  %c = call([%x], "
				  "op=\"test::any\", ints=[], floats=[])\n  %y = get(%c, "
				  "index=0)\n  return %y\n}\n",
				  "f");
	assert_non_null(g);
	assert_null(weft_vjp(w, g, NULL));
	assert_int_equal(weft_nmessages(w), 1);
	assert_non_null(strstr(weft_messages(w),
			       "test::any: .vjp: \"h * h\" is not linear in the cotangent g"));
	assert_null(weft_jvp(w, g, NULL));
	assert_int_equal(weft_nmessages(w), 2);
	assert_non_null(
		strstr(weft_messages(w), "test::any: .jvp: \"h + 1\" is not linear in tangents"));
	weft_free(w);
}

/* Derivatives of an operator with this rule, by x of B elements. why NULL: there are. */
static void other_extent(const char *vjp, const char *jvp, const char *why)
{
	WeftOpDef def = good;
	def.schema = "test::any(Tensor x) -> Tensor";
	def.work_bytes = NULL;
	def.vjp = vjp;
	def.jvp = jvp;
	Weft *w = weft_new();
	assert_true(weft_op_register(w, &def));
	WeftGraph *g = weft_parse(w,
				  "graph @f(%x: f32[B]) where 0 <= B {\n  %c = call([%x], "
				  "op=\"test::any\", ints=[], floats=[])\n"
				  "  %y = get(%c, index=0)\n  return %y\n}\n",
				  "f");
	assert_non_null(g);
	const WeftGraph *d = vjp ? weft_vjp(w, g, NULL) : weft_jvp(w, g, NULL);
	if (!d != (why != NULL) || (why && !strstr(weft_messages(w), why)))
		fail_msg("%s: expected \"%s\", got %s", vjp ? vjp : jvp, why ? why : "a graph",
			 weft_messages(w));
	weft_free(w);
}

/* 2 B is B where there is nothing, 1 is B where there is one: neither makes a rule right. */
static void test_symbolic_extents(void **state)
{
	(void)state;
	other_extent("[cat([g, g])]", NULL,
		     "test::any: .vjp gives f32[2*B] where f32[B] is expected");
	other_extent("[sum.dim_IntList(g, [0], true)]", NULL,
		     ".vjp gives f32[1] where f32[B] is expected");
	other_extent("[constant_pad_nd(g, [1, 1])]", NULL,
		     ".vjp gives f32[B + 2] where f32[B] is expected");
	other_extent(NULL, "cat([t_x, t_x])", ".jvp gives f32[2*B] where f32[B] is expected");
	other_extent("[flip(g, [0])]", NULL, NULL);
	other_extent(NULL, "roll(t_x, [1], [0])", NULL);
}

static void refused_name(const char *name, const char *why)
{
	char schema[200];
	WeftOpDef def = good;
	snprintf(schema, sizeof schema, "a::b(Tensor x, Tensor %s) -> Tensor", name);
	def.schema = schema;
	def.types = "f32[a], f32[a] -> f32[a]";
	def.work_bytes = NULL;
	Weft *w = weft_new();
	if (!weft_op_register(w, &def)) /* without rules nothing is shadowed */
		fail_msg("%s: %s", name, weft_messages(w));
	weft_free(w);
	def.vjp = "[none, none]";
	refused(def, why);
	def.vjp = NULL;
	def.jvp = "none";
	refused(def, why);
}

static void test_names(void **state)
{
	(void)state;
	refused_name("y", "a::b: an argument of an operator with rules of derivatives cannot be "
			  "called y: rules of derivatives call a result so");
	refused_name("y0", "cannot be called y0: rules of derivatives call a result so");
	refused_name("y17", "cannot be called y17");
	refused_name("g", "cannot be called g: rules of derivatives call a cotangent so");
	refused_name("g1", "cannot be called g1");
	refused_name("t_x", "cannot be called t_x: rules of derivatives call tangents so");
	refused_name("t_", "cannot be called t_: rules of derivatives call tangents so");
	refused_name("inf", "cannot be called inf: it is a word of the language of rules");
	refused_name("none", "cannot be called none");
	refused_name("f32", "cannot be called f32: rules of derivatives call a dtype so");
	WeftOpDef def = good;
	def.schema = "a::b(Tensor yes, Tensor g_, int t, float gain) -> Tensor";
	def.types = "f32[a], f32[a] -> f32[a]";
	def.work_bytes = NULL;
	def.vjp = "[g, gain * g]";
	Weft *w = weft_new();
	assert_true(weft_op_register(w, &def));
	weft_free(w);
}

static void test_definitions(void **state)
{
	(void)state;
	WeftOpDef def = good;
	def.size--;
	refused(def, "it was compiled with another weft_op.h");
	def = good;
	def.user_symbol = "test_shift";
	refused(def, "test::shift: test_shift cannot be a function and an object");
	def.user_symbol = "weft_user";
	refused(def,
		"the symbol cannot be weft_user: names that begin with weft_ or k_ are Weft's");
	def.user_symbol = "";
	refused(def, "the symbol cannot be : it is no identifier of C");
	def = good;
	def.types = NULL;
	refused(def, "has no types");
	def = good;
	def.symbol = "test shift";
	refused(def, "the symbol cannot be");
	def.symbol = "weft_phase";
	refused(def, "the symbol cannot be weft_phase");
	def = good;
	def.flags = 64;
	refused(def, "flags of a later version");
	def = good;
	def.work_bytes = "4*b";
	refused(def, "work_bytes: b is neither");
	def.work_bytes = "4*";
	refused(def, "expected a number or a name");
	def.work_bytes = "4 a";
	refused(def, "expected the end");
	refused_schema("shift(Tensor x) -> Tensor", "expected a name as mylib::decay");
	refused_schema("a::b::c(Tensor x) -> Tensor", "expected a name as mylib::decay");
	refused_schema("a::b(Tensor? x) -> Tensor", "argument x is no Tensor");
	refused_schema("a::b(Tensor[] x) -> Tensor", "argument x is no Tensor");
	refused_schema("a::b(str x) -> Tensor", "argument x is no Tensor");
	refused_schema("a::b(Tensor(a!) x) -> Tensor", "argument x is written");
	refused_schema("a::b(Tensor(a) x) -> Tensor(a)", "argument x is a view");
	refused_schema("a::b(Tensor x, int x) -> Tensor", "two arguments are called x");
	refused_default("int n=3.5", "the default of n is \"3.5\", expected an integer of 64 bits");
	refused_default("int n=9223372036854775808", "expected an integer of 64 bits");
	refused_default("int n=1e3", "expected an integer of 64 bits");
	refused_default("int n=True", "expected an integer of 64 bits");
	refused_default("int n=None", "expected an integer of 64 bits");
	refused_default("int n=\"7\"", "expected an integer of 64 bits");
	refused_default("float s=fast", "the default of s is \"fast\", expected a number");
	refused_default("float s=1.5.5", "expected a number");
	refused_default("float s=1e999", "expected a number");
	refused_default("bool b=1", "the default of b is \"1\", expected True or False");
	refused_default("bool b=true", "expected True or False");
	refused_default("int[] l=[1, 2.5]",
			"the default of l is \"[1, 2.5]\", expected a list of integers of 64 bits");
	refused_default("int[] l=3", "expected a list of integers of 64 bits");
	refused_default("int[] l=[1,]", "expected a list of integers of 64 bits");
	refused_default("int[] l=[-9223372036854775809]", "expected a list of integers of 64 bits");
	refused_default("int[] l=[[1]]", "expected a list of integers of 64 bits");
	refused_schema("a::b(Tensor x) -> int", "results are Tensors");
	refused_schema("a::b(Tensor x) -> Tensor[]", "results are Tensors");
	refused_schema("a::b(Tensor x) -> ()", "without WEFT_OP_EFFECT it would never be called");
	refused_schema("a::b(Tensor x) Tensor", "expected \"->\"");
	refused_schema("a::b(Tensor x, Tensor y) -> Tensor", "1 operands, the schema has 2");
	refused_schema("a::b() -> Tensor", "more operands than the schema has");
	refused_schema("a::b(Tensor x) -> (Tensor, Tensor)", "1 results, the schema has 2");
	refused_types("f32[a]", "expected \",\" or \"->\"");
	refused_types("f33[a] -> f32[a]", "no dtype f33");
	refused_types("c64[a] -> f32[a]", "complex numbers");
	refused_types("f32[a] -> T[a]", "the dtype T is no operand's");
	refused_types("f32[a -> f32[a]", "expected \",\" or \"]\"");
	refused_types("f32[2*a] -> f32[a]", "a is neither a dimension of its own");
	refused_types("f32[a] -> f32[a / n]", "expected a positive number to divide by");
	refused_types("f32[a] -> f32[..., a]",
		      "the dimensions \"...\" of a result are no operand's");
	refused_types("f32[a] -> f32[99999999999999999999]", "a number of 63 bits");
	refused_types("f32[a,a,a,a,a,a,a,a,a,a,a,a,a] -> f32[a]", "more than 12 dimensions");
	refused_types("f32[((((((((((((((((((((((((((((((((((a))))))))))))))))))))))))))))))))))] "
		      "-> f32[a]",
		      "brackets in each other");
}

static void test_twice(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftOpDef other = good;
	assert_true(weft_op_register(w, &good));
	assert_false(weft_op_register(w, &good));
	assert_non_null(strstr(weft_messages(w), "test::shift: there is one of that name already"));
	other.schema = "test::other(Tensor x, int n, int[] list, bool off=False, float scale=1.0) "
		       "-> Tensor";
	other.fn = NULL;
	assert_false(weft_op_register(w, &other));
	assert_non_null(strstr(weft_messages(w), "test::shift has the symbol test_shift, too"));
	assert_false(weft_op_load(w, "/nonexistent/lib.so"));
	assert_non_null(
		strstr(weft_messages(w),
		       "/nonexistent/lib.so: error: cannot open: No such file or directory"));
	weft_free(w);
}

/* A library is registered as a whole: USER_OPS has test::kept, and test::bare behind it. */
static void test_load_all(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftOpDef bare = good, kept = good;
	bare.schema = "test::bare(Tensor x, int n, int[] list, bool off=False, float scale=1.0) -> "
		      "Tensor";
	kept.schema = "test::kept(Tensor x, int n, int[] list, bool off=False, float scale=1.0) -> "
		      "Tensor";
	bare.symbol = "my_bare";
	kept.symbol = "my_kept";
	assert_true(weft_op_register(w, &bare));
	assert_false(weft_op_load(w, getenv("USER_OPS")));
	assert_non_null(strstr(weft_messages(w), "test::bare: there is one of that name already"));
	if (!weft_op_register(w, &kept))
		fail_msg("%s", weft_messages(w));
	weft_free(w);
}

/* ---- calls ---- */

static void misfit(const char *call, const char *why)
{
	char text[1000];
	Weft *w = weft_new();
	assert_true(weft_op_register(w, &good));
	snprintf(text, sizeof text,
		 "graph @f(%%x: f32[B], %%y: f32[2, 3], %%z: i64[4]) where 1 <= B {\n  %%c = %s\n  "
		 "%%r = get(%%c, index=0)\n"
		 "  return %%r\n}\n",
		 call);
	if (weft_parse(w, text, "f"))
		fail_msg("%s: accepted", call);
	if (weft_nmessages(w) != 1 || !strstr(weft_message(w, 0).text, why))
		fail_msg("%s: expected \"%s\", got %s", call, why, weft_messages(w));
	weft_free(w);
}

static void test_misfits(void **state)
{
	(void)state;
	misfit("call([%x], op=\"test::shft\", ints=[1, 0, 0], floats=[1.0])",
	       "no user operator test::shft is registered");
	misfit("call([%x, %x], op=\"test::shift\", ints=[1, 0, 0], floats=[1.0])",
	       "2 operands, expected 1");
	misfit("call([%y], op=\"test::shift\", ints=[1, 0, 0], floats=[1.0])",
	       "x has 2 dimensions, expected 1 by");
	misfit("call([%z], op=\"test::shift\", ints=[1, 0, 0], floats=[1.0])",
	       "x is i64, expected f32 by");
	misfit("call([%x], op=\"test::shift\", ints=[1], floats=[1.0])",
	       "argument list has no value");
	misfit("call([%x], op=\"test::shift\", ints=[1, 3, 0], floats=[1.0])",
	       "argument list has no length");
	misfit("call([%x], op=\"test::shift\", ints=[1, 0, 2], floats=[1.0])",
	       "argument off is 2, expected 0 or 1");
	misfit("call([%x], op=\"test::shift\", ints=[1, 0, 0], floats=[])", "expected 3 and 1");
	misfit("call([%x], op=\"test::shift\", ints=[1, 0, 0, 5], floats=[1.0])",
	       "4 integers and 1 floats, expected 3 and 1");
}

static const char text[] = "graph @f(%x: f32[B]) where 1 <= B {\n"
			   "  %c = call([%x], op=\"test::shift\", ints=[B - 5, 2, 10, -3, 0], "
			   "floats=[-0.5])  ; net.py:3 in a\n"
			   "  %y = get(%c, index=0)\n"
			   "  %d = call([%y], op=\"test::shift\", ints=[3, 0, 1], floats=[nan])\n"
			   "  %z = get(%d, index=0)\n"
			   "  return %y, %z\n}\n";

static int run(const WeftModel *m, const float *x, float *y, float *z, int64_t n,
	       WeftStatus *status)
{
	WeftInstance *in;
	const WeftDType f32 = {WEFT_FLOAT, 32, 1};
	WeftTensor input = {(void *)(uintptr_t)x, {WEFT_CPU, 0}, 1, f32, &n, NULL, 0},
		   output[2] = {input, input};
	WeftSizes *sizes = malloc(weft_entry(m, 0)->sizes_bytes);
	output[0].data = y;
	output[1].data = z;
	assert_int_equal(m->open(m, NULL, &in, status), WEFT_OK);
	assert_int_equal(m->sizes(in, 0, &input, sizes, status), WEFT_OK);
	void *work = malloc(sizes->workspace_bytes);
	int code = m->run(in, sizes, &input, output, work, NULL, status);
	free(work);
	free(sizes);
	m->close(in);
	return code;
}

/* Symbolic and negative scalars, a list, workspace; failure. */
static void check_model(const WeftModel *m)
{
	float x[] = {0, 1, 2}, y[3], z[3];
	WeftStatus status;
	assert_non_null(m);
	assert_int_equal(run(m, x, y, z, 3, &status), WEFT_OK);
	for (int k = 0; k < 3; k++) {
		assert_float_equal(y[k], x[k] + 7, 0); /* -0.5 * (3 - 5) * (10 - 3) */
		assert_float_equal(z[k], y[k], 0);
	}
	for (uint32_t k = 0; k < weft_entry(m, 0)->ncall; k++) { /* of n floats, n others */
		const WeftCallInfo *c = weft_call(m, weft_entry(m, 0), k);
		assert_string_equal(c->algorithm, "call");
		if (k == 0)
			assert_string_equal(c->line, "net.py:3 in a");
		assert_int_equal(c->nline, k == 0);
		assert_true(c->bytes >= 8 && fmod(c->bytes, 8) == 0);
	}
	x[1] = -4;
	assert_int_equal(run(m, x, y, z, 3, &status), WEFT_ERR_CHECK);
	assert_string_equal(status.message, "test::shift: x[1] is -4");
}

static void test_run(void **state)
{
	(void)state;
	Weft *w = weft_new();
	assert_true(weft_op_register(w, &good));
	WeftGraph *g = weft_parse(w, text, "f");
	if (!g)
		fail_msg("%s", weft_messages(w));
	assert_non_null(strstr(weft_graph_text(w, g, NULL),
			       "ints=[B - 5, 2, 10, -3, 0], floats=[-0.5]) : (f32[B])"));
	WeftOptions o = {.size = sizeof o};
	check_model(weft_loops(w, g, &o));
	if (weft_has_llvm())
		check_model(weft_jit(w, g, &o));
	int64_t n = 3;
	float x[] = {0, 1, 2};
	WeftTensor in = {x, {WEFT_CPU, 0}, 1, {WEFT_FLOAT, 32, 1}, &n, NULL, 0}, out[2];
	assert_true(weft_interpret(w, g, &in, 1, out));
	assert_float_equal(((float *)out[0].data)[2], 9, 0);
	weft_free(w);
}

/* Without a function a model can be compiled, and that it cannot be run here is said. */
static void test_no_function(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftOpDef def = good;
	def.fn = NULL;
	assert_true(weft_op_register(w, &def));
	WeftGraph *g = weft_parse(w, text, "f");
	assert_non_null(g);
	WeftOptions o = {.size = sizeof o};
	assert_true(weft_plan(w, g, &o));
	int64_t n = 3;
	float x[] = {0, 1, 2};
	WeftTensor in = {x, {WEFT_CPU, 0}, 1, {WEFT_FLOAT, 32, 1}, &n, NULL, 0}, out[2];
	assert_false(weft_interpret(w, g, &in, 1, out));
	assert_non_null(
		strstr(weft_messages(w), "test::shift: it has no function in this process"));
	if (weft_has_llvm()) {
		assert_null(weft_jit(w, g, &o));
		assert_non_null(strstr(weft_messages(w), "its definition's fn is NULL"));
	}
	weft_free(w);
}

/* Extents that are not known to fit are checked when the model is run. */
static void test_sizes(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftOpDef def = good;
	def.schema = "test::cut(Tensor x, Tensor y, int n) -> Tensor";
	def.types = "f32[a], f32[a] -> f32[a - n]";
	assert_true(weft_op_register(w, &def));
	WeftGraph *g = weft_parse(w,
				  "graph @f(%x: f32[A], %y: f32[B]) where 1 <= A, 1 <= B {\n  %c = "
				  "call([%x, %y], op=\"test::cut\", ints=[4], "
				  "floats=[])\n  %z = get(%c, index=0)\n  return %z\n}\n",
				  "f");
	assert_non_null(g);
	WeftOptions o = {.size = sizeof o};
	const WeftModel *m = weft_loops(w, g, &o);
	assert_non_null(m);
	WeftInstance *in;
	WeftStatus status;
	WeftSizes *sizes = malloc(weft_entry(m, 0)->sizes_bytes);
	int64_t n[2] = {5, 6};
	WeftTensor x[2] = {{NULL, {WEFT_CPU, 0}, 1, {WEFT_FLOAT, 32, 1}, &n[0], NULL, 0},
			   {NULL, {WEFT_CPU, 0}, 1, {WEFT_FLOAT, 32, 1}, &n[1], NULL, 0}};
	assert_int_equal(m->open(m, NULL, &in, &status), WEFT_OK);
	assert_int_equal(m->sizes(in, 0, x, sizes, &status), WEFT_ERR_INPUT);
	assert_non_null(strstr(status.message, "test::cut: dimension 0 of y"));
	n[0] = n[1] = 3;
	assert_int_equal(m->sizes(in, 0, x, sizes, &status), WEFT_ERR_INPUT);
	assert_non_null(strstr(status.message, "test::cut: dimension 0 of result 0"));
	n[0] = n[1] = 9;
	assert_int_equal(m->sizes(in, 0, x, sizes, &status), WEFT_OK);
	assert_int_equal(weft_output_shape(m, weft_entry(m, 0), sizes, 0)[0], 5);
	free(sizes);
	m->close(in);
	weft_free(w);
}

/* ---- mutants of texts: accepted or refused with one message ---- */

static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void mutate(char *s, size_t max, uint32_t *state)
{
	static const char alphabet[] = "abT01239[](),->.*/%+-: f32i64minmaxTensorint?!=";
	size_t n = strlen(s), at = n ? next(state) % n : 0, from = n ? next(state) % n : 0,
	       len = next(state) % 12;
	len = len > n - from ? n - from : len;
	switch (next(state) % 4) {
	case 0:
		if (n)
			s[at] = alphabet[next(state) % (sizeof alphabet - 1)];
		break;
	case 1:
		memmove(s + at, s + (n - at > len ? at + len : n),
			n - (n - at > len ? at + len : n) + 1);
		break;
	default:
		if (n + len + 1 < max) {
			char piece[16];
			memcpy(piece, s + from, len);
			memmove(s + at + len, s + at, n - at + 1);
			memcpy(s + at, piece, len);
		}
	}
}

static void test_mutants(void **state)
{
	(void)state;
	enum { COUNT = 3000, MAX = 400 };
	static const char *const schema[] = {
		"t::a(Tensor x, Tensor y, int n, int[2] l=[1, 2], float f=1.5, bool b=True) -> "
		"(Tensor, Tensor)",
		"lib::op.over(Tensor x, Tensor y) -> (Tensor out, Tensor)"};
	static const char *const types[] = {
		"f32[a, b], T[..., b] -> f32[a + n, min(b, 2*a)], T[..., b / 2]",
		"T[a], i64[] -> bool[(a - 1) % 3], T[..., a]",
		"f32[..., a], f32[...] -> f32[...], f32[a]"};
	uint32_t seed = 1, accepted = 0;
	for (uint32_t k = 0; k < COUNT; k++) {
		char s[MAX], t[MAX], b[MAX] = "max(4*a, 1)";
		snprintf(s, sizeof s, "%s", schema[k % 2]);
		snprintf(t, sizeof t, "%s", types[k % 3]);
		for (uint32_t i = next(&seed) % 3; i > 0; i--)
			mutate(s, sizeof s, &seed);
		for (uint32_t i = next(&seed) % 4; i > 0; i--)
			mutate(t, sizeof t, &seed);
		mutate(b, sizeof b, &seed);
		WeftOpDef def = good;
		def.schema = s;
		def.types = t;
		def.work_bytes = k % 2 ? b : NULL;
		Weft *w = weft_new();
		bool ok = weft_op_register(w, &def);
		accepted += ok;
		if (weft_nmessages(w) != !ok)
			fail_msg("%s; %s: %u messages", s, t, weft_nmessages(w));
		weft_free(w);
	}
	assert_in_range(accepted, COUNT / 100, COUNT - COUNT / 10);
}

/* ---- by name: in traces, and of nodes ---- */

/* shift(x, 2, [1, 3], scale=0.5) + x, by a trace. */
static WeftGraph *traced(Weft *w)
{
	WeftTrace *t = weft_trace_new(w, "traced");
	WeftValue x = weft_trace_input(t, "x", "f32[N]");
	const WeftArg a[] = {weft_arg(x), weft_arg_int(2), weft_arg_ints((int64_t[]){1, 3}, 2),
			     weft_arg_named("scale", weft_arg_float(0.5))};
	WeftValue y = weft_trace_call(t, "test::shift", a, 4);
	assert_int_equal(weft_trace_nresult(t, y), -1);
	WeftValue several =
		weft_trace_call(t, "aten.max.dim", (WeftArg[]){weft_arg(x), weft_arg_int(0)}, 2);
	assert_int_equal(weft_trace_nresult(t, several), 2);
	weft_trace_output(t, "y", weft_add(t, y, x));
	return weft_trace_end(t);
}

static void expect_first(Weft *w, WeftGraph *g, float want)
{
	float x[3] = {1, 2, 3};
	WeftTensor in = {.data = x,
			 .device = {WEFT_CPU, 0},
			 .ndim = 1,
			 .dtype = {WEFT_FLOAT, 32, 1},
			 .shape = (int64_t[]){3}};
	WeftTensor out;
	if (!weft_interpret(w, g, &in, 1, &out))
		fail_msg("%s", weft_messages(w));
	assert_float_equal(*(const float *)out.data, want, 1e-6);
}

static void test_by_name(void **state)
{
	(void)state;
	static const char *const names[] = {"test::shift", "test.shift", "test.shift.default"};
	static const WeftDType one[] = {{WEFT_FLOAT, 32, 1}, {WEFT_FLOAT, 32, 1}};
	Weft *w = weft_new();
	assert_true(weft_op_register(w, &good));
	for (size_t k = 0; k < 3; k++)
		assert_true(weft_trace_supports(w, names[k], one, 1));
	assert_false(weft_trace_supports(w, names[0], one, 2));
	assert_false(weft_trace_supports(w, "test::shifts", one, 1));
	assert_true(weft_trace_supports(w, "aten.relu.default", one, 1));
	WeftGraph *g = traced(w);
	assert_non_null(g);
	expect_first(w, g, 1 + 4 + 1);
	WeftNode n = weft_node_first(w, g);
	while (n.index && !weft_node_is(w, n, "test.shift"))
		n = weft_node_next(w, n);
	assert_string_equal(weft_node_op(w, n), "test::shift");
	assert_string_equal(weft_node_overload(w, n), "");
	assert_int_equal(weft_node_nattr(w, n), 5);
	double number;
	WeftAttr a;
	assert_true(weft_node_number(w, n, "n", &number) && number == 2);
	assert_true(weft_node_number(w, n, "scale", &number) && number == 0.5);
	assert_true(weft_node_attr(w, n, "list", &a) && a.kind == WEFT_ATTR_INTS && a.n == 2 &&
		    a.u.ints[1] == 3);
	assert_true(weft_node_attr(w, n, "off", &a) && a.kind == WEFT_ATTR_BOOL && !a.u.b);
	assert_true(weft_node_same(weft_node_arg(w, n, "x"), weft_node_of_input(w, g, 0)));
	/* changed, one by one */
	a = weft_attr_int(4);
	a.name = "n";
	assert_true(weft_node_set_attr(w, n, &a));
	expect_first(w, g, 1 + 8 + 1);
	a = weft_attr_bool(true);
	a.name = "off";
	assert_true(weft_node_set_attr(w, n, &a));
	expect_first(w, g, 2);
	a = weft_attr_float(1.5);
	a.name = "n";
	assert_false(weft_node_set_attr(w, n, &a));
	assert_non_null(strstr(weft_messages(w), "argument n: expected an integer for an int"));
	/* inserted, by each of the names */
	for (size_t k = 0; k < 3; k++) {
		const WeftAttr more[] = {weft_attr_node(weft_node_of_input(w, g, 0)),
					 weft_attr_int(1), weft_attr_ints((int64_t[]){1}, 1)};
		WeftNode made = weft_node_insert_before(w, n, names[k], more, 3);
		assert_string_equal(weft_node_op(w, made), "get");
		a = weft_attr_node(made);
		a.name = "x";
		assert_true(weft_node_set_attr(w, n, &a));
		expect_first(w, g, 3);
	}
	assert_true(weft_graph_verify(w, g));
	assert_false(weft_node_is(w, n, "test::none"));
	assert_non_null(strstr(weft_messages(w), "there is no operator test::none"));
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_name),
		cmocka_unit_test(test_definitions),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_load_all),
		cmocka_unit_test(test_misfits),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_no_function),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_mutants),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_nonlinear),
		cmocka_unit_test(test_linear),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_nonlinear_call),
		cmocka_unit_test(test_symbolic_extents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
