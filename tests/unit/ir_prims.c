/* Every structural primitive on hand-checked cases: "op", attributes, operands, expected values.
 * Tensors are written "f32[2,3] 1 2 3 4 5 6". */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/build/build.h"
#include "ir/interp/interp.h"
#include "ir/op/op.h"

enum { MAX_OPERANDS = 8 };

typedef struct {
	Ctx *ctx;
	Ir *ir;
	Graph *g;
	Build b;
} Fixture;

static Fixture f;

static void fresh_graph(void)
{
	f.g = graph_new(f.ir, "test");
	f.b = (Build){.g = f.g, .where = "test"};
}

static void fail_with_diags(const char *what)
{
	Text t;
	text_init(&t, f.ctx->scratch);
	ctx_print(f.ctx, &t);
	fail_msg("%s:\n%s", what, t.data);
}

/* ---- the notation ---- */

/* "f32[2,3] 1 2 ..." as a tensor in the arena; *s moves behind it. Missing values
 * repeat the last. */
static Tensor parse_tensor(const char **s)
{
	Tensor t = {0};
	const char *p = *s + strspn(*s, " ;");
	size_t n = strcspn(p, "[");
	t.dtype = dtype_parse(p, (uint32_t)n);
	assert_int_not_equal(t.dtype, DT_none);
	for (p += n + 1; *p != ']'; p += *p == ',')
		t.dim[t.rank++] = strtoll(p, (char **)&p, 10);
	t.data = arena_alloc(f.ctx->arena, tensor_bytes(&t));
	Tensor flat = tensor_flat_real(&t);
	double v = 0;
	p++;
	for (int64_t i = 0; i < flat.dim[0]; i++) {
		char *end;
		p += strspn(p, " ");
		double next = strtod(p, &end);
		v = end == p ? v : next;
		p = end;
		if (dtype_is_float(flat.dtype))
			tensor_set_f64(&flat, i, v);
		else
			tensor_set_i64(&flat, i, (int64_t)v);
	}
	*s = p + strspn(p, " ");
	return t;
}

static Node constant(const Tensor *t)
{
	Const c = {.name = "", .dtype = t->dtype, .rank = t->rank, .data = t->data};
	c.dim = arena_dup(f.ctx->arena, t->dim, sizeof t->dim);
	c.bytes = tensor_bytes(t);
	return b_const(&f.b, ir_const(f.ir, c));
}

static uint32_t parse_operands(const char *s, Node *in)
{
	uint32_t n = 0;
	while (*s) {
		Tensor t = parse_tensor(&s);
		assert_true(n < MAX_OPERANDS);
		in[n++] = constant(&t);
	}
	return n;
}

static Attr parse_ints(const char *p)
{
	Sym *v = ARENA_ARRAY(f.ctx->arena, Sym, 16);
	uint32_t n = 0;
	for (p++; *p != ']'; p += *p == ',')
		v[n++] = sym_int(f.ir->syms, strtoll(p, (char **)&p, 10));
	return attr_ints(v, n);
}

static Attr parse_attr(const Arg *arg, const char *p, size_t n)
{
	switch (arg->kind) {
	case ARG_ints: return parse_ints(p);
	case ARG_int: return attr_int(f.ir, strtoll(p, NULL, 10));
	case ARG_bool: return attr_bool(*p == 'T');
	case ARG_dtype: return attr_dtype(dtype_parse(p, (uint32_t)n));
	case ARG_str: return attr_str(f.ir, arena_strndup(f.ctx->arena, p, n));
	case ARG_scalar:
		return memchr(p, '.', n) || !strncmp(p, "nan", 3)
		               ? attr_float(strtod(p, NULL))
		               : attr_int(f.ir, strtoll(p, NULL, 10));
	default: fail_msg("no notation for argument %s", arg->name); return attr_none();
	}
}

/* "name=value name=value" by the op's schema. */
static void parse_attrs(Op op, const char *s, Attr *attr)
{
	while (*s) {
		s += strspn(s, " ");
		size_t n = strcspn(s, "=");
		int k = op_arg_index(op, arena_strndup(f.ctx->arena, s, n));
		assert_true(k >= 0);
		s += n + 1;
		n = strcspn(s, " ");
		attr[k] = parse_attr(&op_schema(op)->arg[k], s, n);
		s += n;
	}
}

static Node build(const char *name, const char *attrs, const char *operands)
{
	fresh_graph();
	Op op = op_find(name);
	assert_int_not_equal(op, OP_none);
	Attr attr[16] = {{0}};
	Node in[MAX_OPERANDS];
	uint32_t n = parse_operands(operands, in);
	parse_attrs(op, attrs, attr);
	return b_node(&f.b, op, in, n, attr, op_schema(op)->narg);
}

static void expect_tensor(const Tensor *got, const char **expected)
{
	Tensor want = parse_tensor(expected);
	assert_string_equal(dtype_name(got->dtype), dtype_name(want.dtype));
	assert_int_equal(got->rank, want.rank);
	for (uint32_t k = 0; k < got->rank; k++)
		assert_int_equal(got->dim[k], want.dim[k]);
	Tensor a = tensor_flat_real(got), b = tensor_flat_real(&want);
	for (int64_t i = 0; i < a.dim[0]; i++) {
		double x = tensor_f64(&a, i), y = tensor_f64(&b, i);
		bool same = isnan(y) ? isnan(x) : x == y || fabs(x - y) <= 1e-6 * fabs(y);
		if (!same || tensor_i64(&a, i) != tensor_i64(&b, i))
			fail_msg("element %lld: expected %g, got %g", (long long)i, y, x);
	}
}

/* Run the graph with the elements of `n` as outputs. */
static bool run(Node n, Tensor *out, uint32_t *nout)
{
	const Type t = *node_type(f.g, n);
	*nout = t.dtype == DT_none ? t.n : 1;
	for (uint32_t k = 0; k < *nout; k++)
		graph_add_output(f.g, "y", t.dtype == DT_none ? b_get(&f.b, n, k) : n, -1);
	return interp(f.ctx, f.g, NULL, 0, out, *nout, f.ctx->arena);
}

static void check(const char *name, const char *attrs, const char *operands, const char *expected)
{
	Tensor out[4];
	uint32_t nout = 0;
	Node n = build(name, attrs, operands);
	if (!n.i || !run(n, out, &nout))
		fail_with_diags(name);
	for (uint32_t k = 0; k < nout; k++)
		expect_tensor(&out[k], &expected);
	assert_string_equal(expected, "");
}

/* Inference or evaluation fails with one error that has this text. */
static void check_error(const char *name, const char *attrs, const char *operands, const char *text)
{
	Tensor out[4];
	uint32_t nout = 0, before = f.ctx->nerror;
	Node n = build(name, attrs, operands);
	if (n.i && run(n, out, &nout))
		fail_msg("%s did not fail: expected \"%s\"", name, text);
	assert_int_equal(f.ctx->nerror, before + 1);
	if (!strstr(f.ctx->last->text, text))
		fail_msg("%s: expected \"%s\" in \"%s\"", name, text, f.ctx->last->text);
}

/* ---- index maps ---- */

static void test_broadcast(void **state)
{
	(void)state;
	check("broadcast", "shape=[2,2,3] map=[1,2]", "f32[2,1] 1 2",
	      "f32[2,2,3] 1 1 1 2 2 2 1 1 1 2 2 2");
	check("broadcast", "shape=[3,2] map=[0]", "i64[3] 1 2 3", "i64[3,2] 1 1 2 2 3 3");
	check("broadcast", "shape=[3] map=[]", "c64[] 1 -2", "c64[3] 1 -2 1 -2 1 -2");
	check("broadcast", "shape=[0,2] map=[1]", "f16[2] 1 2", "f16[0,2]");
	check_error("broadcast", "shape=[4] map=[0]", "f32[3] 0", "3 differs from 4");
	check_error("broadcast", "shape=[3,3] map=[1,0]", "f32[3,3] 0", "increasing");
}

static void test_reshape(void **state)
{
	(void)state;
	check("reshape", "shape=[3,2]", "i32[2,3] 1 2 3 4 5 6", "i32[3,2] 1 2 3 4 5 6");
	check("reshape", "shape=[]", "i32[1,1] 7", "i32[] 7");
	check("reshape", "shape=[4,0]", "f32[0,3]", "f32[4,0]");
	check_error("reshape", "shape=[4]", "i32[2,3] 0", "6 differs from 4");
}

static void test_permute(void **state)
{
	(void)state;
	check("permute", "perm=[1,0]", "i8[2,3] 1 2 3 4 5 6", "i8[3,2] 1 4 2 5 3 6");
	check("permute", "perm=[2,0,1]", "f64[2,1,3] 1 2 3 4 5 6", "f64[3,2,1] 1 4 2 5 3 6");
	check("permute", "perm=[]", "bool[] 1", "bool[] 1");
	check_error("permute", "perm=[0,0]", "i8[2,3] 0", "twice");
	check_error("permute", "perm=[0]", "i8[2,3] 0", "expected 2 dimensions");
}

static void test_slice(void **state)
{
	(void)state;
	check("slice", "start=[1] end=[6] step=[2]", "i64[6] 0 1 2 3 4 5", "i64[3] 1 3 5");
	check("slice", "start=[0,1] end=[2,3] step=[1,1]", "i64[2,3] 1 2 3 4 5 6",
	      "i64[2,2] 2 3 5 6");
	check("slice", "start=[2] end=[2] step=[1]", "f32[4] 1", "f32[0]");
	check_error("slice", "start=[0] end=[5] step=[1]", "f32[4] 1", "slice end: 5 exceeds 4");
	check_error("slice", "start=[3] end=[2] step=[1]", "f32[4] 1", "slice start");
	check_error("slice", "start=[0] end=[2] step=[0]", "f32[4] 1", "step");
}

static void test_pad(void **state)
{
	(void)state;
	check("pad", "low=[1] high=[2] interior=[0]", "i32[2] 5 6;i32[] 9", "i32[5] 9 5 6 9 9");
	check("pad", "low=[0] high=[0] interior=[2]", "i32[3] 5 6 7;i32[] 0",
	      "i32[7] 5 0 0 6 0 0 7");
	check("pad", "low=[-1] high=[-1] interior=[0]", "i32[4] 1 2 3 4;i32[] 0", "i32[2] 2 3");
	check("pad", "low=[-1] high=[1] interior=[1]", "i32[3] 1 2 3;i32[] 8", "i32[5] 8 2 8 3 8");
	check("pad", "low=[2] high=[0] interior=[3]", "i32[0];i32[] 4", "i32[2] 4 4");
	check("pad", "low=[1,0] high=[0,-2] interior=[0,0]", "i32[2,3] 1 2 3 4 5 6;i32[] 0",
	      "i32[3,1] 0 1 4");
	check("pad", "low=[-3] high=[5] interior=[0]", "i32[2] 1 2;i32[] 7", "i32[4] 7 7 7 7");
	check_error("pad", "low=[-3] high=[0] interior=[0]", "i32[2] 1 2;i32[] 7", "at least 0");
	check_error("pad", "low=[0] high=[0] interior=[0]", "i32[2] 1;f32[] 7", "differ");
}

static void test_concat(void **state)
{
	(void)state;
	check("concat", "dim=1", "i64[2,2] 1 2 3 4;i64[2,0];i64[2,1] 5 6", "i64[2,3] 1 2 5 3 4 6");
	check("concat", "dim=0", "f32[1] 1;f32[2] 2 3", "f32[3] 1 2 3");
	check_error("concat", "dim=0", "f32[1,2] 1;f32[1,3] 2", "2 differs from 3");
	check_error("concat", "dim=2", "f32[1,2] 1", "dimension below 2");
}

static void test_reverse(void **state)
{
	(void)state;
	check("reverse", "dims=[1]", "i64[2,3] 1 2 3 4 5 6", "i64[2,3] 3 2 1 6 5 4");
	check("reverse", "dims=[0,1]", "i64[2,3] 1 2 3 4 5 6", "i64[2,3] 6 5 4 3 2 1");
	check("reverse", "dims=[0]", "i64[0,3]", "i64[0,3]");
	check("fields", "dim=1, bits=4", "u8[2,1] 18 240", "u8[2,2,1] 2 1 0 15");
	check("fields", "dim=0, bits=2", "u8[2] 228 1", "u8[4,2] 0 1 1 0 2 0 3 0");
	check("fields", "dim=1, bits=4", "u8[0]", "u8[0,2]");
}

static void test_window(void **state)
{
	(void)state;
	check("window", "dim=0 size=3 stride=1 dilation=1 low=1 count=4", "i32[4] 1 2 3 4",
	      "i32[4,3] 0 1 2 1 2 3 2 3 4 3 4 0");
	check("window", "dim=0 size=2 stride=2 dilation=3 low=0 count=2", "i32[6] 1 2 3 4 5 6",
	      "i32[2,2] 1 4 3 6");
	check("window", "dim=0 size=2 stride=1 dilation=1 low=0 count=2", "i32[3,2] 1 2 3 4 5 6",
	      "i32[2,2,2] 1 3 2 4 3 5 4 6");
	check("window", "dim=0 size=2 stride=1 dilation=1 low=-1 count=3", "i32[3] 1 2 3",
	      "i32[3,2] 2 3 3 0 0 0");
	check("window", "dim=0 size=2 stride=1 dilation=1 low=9 count=1", "i32[3] 1 2 3",
	      "i32[1,2] 0 0");
	check_error("window", "dim=0 size=2 stride=0 dilation=1 low=9 count=1", "i32[3] 1",
	            "stride");
}

static void test_fold(void **state)
{
	(void)state;
	check("fold", "dim=0 extent=4 stride=1 dilation=1 low=1",
	      "i32[4,3] 1 2 3 4 5 6 7 8 9 10 11 12", "i32[4] 6 15 24 20");
	check("fold", "dim=0 extent=3 stride=1 dilation=1 low=0", "f32[2,2,2] 1 2 3 4 5 6 7 8",
	      "f32[3,2] 1 3 7 11 6 8");
	check("fold", "dim=1 extent=6 stride=2 dilation=3 low=0", "f16[1,2,2] 1 2 3 4",
	      "f16[1,6] 1 0 3 2 0 4");
}

/* ---- data ---- */

static void test_data(void **state)
{
	(void)state;
	check("full", "dtype=f32 shape=[2,2] value=1.5", "", "f32[2,2] 1.5");
	check("full", "dtype=i64 shape=[3] value=-7", "", "i64[3] -7");
	check("full", "dtype=bf16 shape=[0] value=1", "", "bf16[0]");
	check("full", "dtype=c64 shape=[1] value=2.5", "", "c64[1] 2.5 0");
	check("iota", "dtype=i64 n=4", "", "i64[4] 0 1 2 3");
	check("iota", "dtype=f16 n=3", "", "f16[3] 0 1 2");
	check("iota", "dtype=f32 n=0", "", "f32[0]");
	check("from_size", "value=12", "", "i64[] 12");
}

static void test_convert(void **state)
{
	(void)state;
	check("convert", "dtype=i32", "f32[5] 1.9 -1.9 nan 1e10 -inf",
	      "i32[5] 1 -1 -2147483648 -2147483648 -2147483648");
	check("convert", "dtype=u8", "f32[5] -1 255.9 256 -300 nan", "u8[5] 255 255 0 212 0");
	check("convert", "dtype=u8", "i64[3] 257 -1 5", "u8[3] 1 255 5");
	check("convert", "dtype=bool", "f32[4] 0 -0.0 0.25 nan", "bool[4] 0 0 1 1");
	check("convert", "dtype=f16", "i64[2] 2049 -3", "f16[2] 2048 -3");
	check("convert", "dtype=bf16", "f32[2] 1.00390625 1.01171875", "bf16[2] 1 1.015625");
	check("convert", "dtype=c64", "f32[2] 1 2", "c64[2] 1 0 2 0");
	check("convert", "dtype=f32", "c64[2] 1 5 2 6", "f32[2] 1 2");
	check("convert", "dtype=bool", "c64[2] 0 5 0 0", "bool[2] 1 0");
	check("bitcast", "dtype=i32", "f32[2] 1 -2", "i32[2] 1065353216 -1073741824");
	check_error("bitcast", "dtype=i64", "f32[2] 1", "different sizes");
}

static void test_slice_at(void **state)
{
	(void)state;
	const char *x = "i64[3,3] 1 2 3 4 5 6 7 8 9;i64[] 1;i64[] 5";
	check("slice_at", "size=[2,2]", x, "i64[2,2] 5 6 8 9");
	check("slice_at", "size=[1]", "i64[3] 1 2 3;i64[] -4", "i64[1] 1");
	check("slice_at", "size=[0]", "i64[3] 1 2 3;i64[] 3", "i64[0]");
	check("update_slice", "", "i64[4] 1 2 3 4;i64[2] 8 9;i64[] 3", "i64[4] 1 2 8 9");
	check("update_slice", "", "i64[2,2] 1 2 3 4;i64[2,1] 8 9;i64[] 0;i64[] 1",
	      "i64[2,2] 1 8 3 9");
	check_error("slice_at", "size=[4]", "i64[3] 1;i64[] 0", "4 exceeds 3");
	check_error("update_slice", "", "i64[2] 1;i64[3] 1;i64[] 0", "3 exceeds 2");
	check_error("slice_at", "size=[1]", "i64[3] 1;i32[] 0", "0-d i64");
}

/* ---- gather and scatter ---- */

static void test_gather(void **state)
{
	(void)state;
	const char *rows = "f32[3,2] 1 2 3 4 5 6;i64[3,1] 2 0 -1";
	check("gather", "batch=0 axes=[0] mode=check", rows, "f32[3,2] 5 6 1 2 5 6");
	check("gather", "batch=0 axes=[0] mode=clamp", rows, "f32[3,2] 5 6 1 2 1 2");
	check("gather", "batch=0 axes=[0] mode=fill", rows, "f32[3,2] 5 6 1 2 0 0");
	check("gather", "batch=0 axes=[1] mode=check", "i32[2,3] 1 2 3 4 5 6;i64[2,1] 2 0",
	      "i32[2,2] 3 6 1 4");
	check("gather", "batch=0 axes=[0,1] mode=check", "i32[2,3] 1 2 3 4 5 6;i64[2,2] 1 0 0 2",
	      "i32[2] 4 3");
	check("gather", "batch=0 axes=[1,0] mode=check", "i32[2,3] 1 2 3 4 5 6;i64[1,2] 2 1",
	      "i32[1] 6");
	check("gather", "batch=1 axes=[1] mode=check", "i32[2,3] 1 2 3 4 5 6;i64[2,2,1] 0 2 1 1",
	      "i32[2,2] 1 3 5 5");
	check("gather", "batch=0 axes=[] mode=check", "i32[2] 1 2;i64[3,0]",
	      "i32[3,2] 1 2 1 2 1 2");
	check("gather", "batch=0 axes=[0] mode=check", "i32[0,2];i64[0,1]", "i32[0,2]");
	check("gather", "batch=0 axes=[0] mode=clamp", "i32[0,2];i64[1,1] 0", "i32[1,2] 0 0");
	check_error("gather", "batch=0 axes=[0] mode=check", "i32[3] 1;i64[1,1] 3",
	            "index 3 at position [0] is out of range for axis 0 of extent 3");
	check_error("gather", "batch=0 axes=[0] mode=check", "i32[3] 1;i64[1,1] -4", "index -4");
	check_error("gather", "batch=0 axes=[0] mode=promise", "i32[3] 1;i64[1,1] -1", "index -1");
	check_error("gather", "batch=0 axes=[0] mode=maybe", "i32[3] 1;i64[1,1] 0",
	            "unknown value");
	check_error("gather", "batch=0 axes=[0] mode=check", "i32[3] 1;i32[1,1] 0", "expected i64");
	check_error("gather", "batch=0 axes=[0] mode=check", "i32[3] 1;i64[1,2] 0",
	            "number of axes");
}

static void scatter_case(const char *combine, const char *mode, const char *in, const char *out)
{
	char attrs[128];
	snprintf(attrs, sizeof attrs,
	         "batch=0 axes=[0] combine=%s mode=%s unique=False sorted=False", combine, mode);
	check("scatter", attrs, in, out);
}

static void test_scatter(void **state)
{
	(void)state;
	const char *twice = "f32[3] 10 20 30;i64[3,1] 1 1 -1;f32[3] 2 3 4";
	scatter_case("set", "check", twice, "f32[3] 10 3 4");
	scatter_case("add", "check", twice, "f32[3] 10 25 34");
	scatter_case("mul", "check", twice, "f32[3] 10 120 120");
	scatter_case("min", "check", twice, "f32[3] 10 2 4");
	scatter_case("max", "check", twice, "f32[3] 10 20 30");
	scatter_case("add", "fill", twice, "f32[3] 10 25 30");
	scatter_case("add", "clamp", twice, "f32[3] 14 25 30");
	scatter_case("max", "check", "f32[2] 1 2;i64[2,1] 0 1;f32[2] nan 1", "f32[2] nan 2");
	scatter_case("add", "check", "i8[1] 127;i64[1,1] 0;i8[1] 1", "i8[1] -128");
	scatter_case("set", "check", "i64[2,2] 1 2 3 4;i64[1,1] 1;i64[1,2] 8 9",
	             "i64[2,2] 1 2 8 9");
	check("scatter", "batch=0 axes=[1] combine=add mode=check unique=False sorted=False",
	      "i64[2,3] 0;i64[2,1] 2 2;i64[2,2] 1 2 3 4", "i64[2,3] 0 0 4 0 0 6");
	check("scatter", "batch=1 axes=[1] combine=set mode=check unique=False sorted=False",
	      "i64[2,2] 0;i64[2,1,1] 1 0;i64[2,1] 5 6", "i64[2,2] 0 5 6 0");
	check_error("scatter", "batch=0 axes=[0] combine=add mode=check unique=False sorted=False",
	            "f32[3] 1;i64[1,1] 3;f32[1] 1", "index 3");
	check_error("scatter", "batch=0 axes=[0] combine=add mode=check unique=False sorted=False",
	            "f32[3] 1;i64[1,1] 2;f32[2] 1", "2 differs from 1");
}

/* ---- reductions ---- */

static void test_reduce(void **state)
{
	(void)state;
	const char *x = "f32[2,3] 1 2 3 4 5 6";
	check("reduce", "kind=sum dims=[1] acc=f32", x, "f32[2] 6 15");
	check("reduce", "kind=sum dims=[0] acc=f32", x, "f32[3] 5 7 9");
	check("reduce", "kind=prod dims=[0,1] acc=f32", x, "f32[] 720");
	check("reduce", "kind=sum dims=[] acc=f32", x, "f32[2,3] 1 2 3 4 5 6");
	check("reduce", "kind=max dims=[0] acc=f32", "f32[2,2] 1 nan 3 4", "f32[2] 3 nan");
	check("reduce", "kind=min dims=[0] acc=f32", "f32[2,2] nan 2 3 4", "f32[2] nan 2");
	check("reduce", "kind=max dims=[0] acc=f32", "f32[0,2]", "f32[2] -inf -inf");
	check("reduce", "kind=prod dims=[0] acc=f32", "f32[0,2]", "f32[2] 1 1");
	check("reduce", "kind=max dims=[0] acc=i8", "i8[0]", "i8[] -128");
	check("reduce", "kind=min dims=[0] acc=u8", "u8[0]", "u8[] 255");
	check("reduce", "kind=sum dims=[0] acc=i64", "i32[2] 2147483647 1", "i64[] 2147483648");
	check("reduce", "kind=sum dims=[0] acc=i32", "i32[2] 2147483647 1", "i32[] -2147483648");
	check("reduce", "kind=sum dims=[0] acc=i64", "bool[3] 1 0 1", "i64[] 2");
	check("reduce", "kind=and dims=[0] acc=bool", "bool[3] 1 0 1", "bool[] 0");
	check("reduce", "kind=or dims=[0] acc=bool", "bool[3] 1 0 1", "bool[] 1");
	check("reduce", "kind=xor dims=[0] acc=i32", "i32[3] 1 2 7", "i32[] 4");
	check("reduce", "kind=sum dims=[0] acc=f32", "f16[3] 2048 1 1", "f16[] 2050");
	check("reduce", "kind=sum dims=[0] acc=f32", "c64[2] 1 2 3 4", "c64[] 4 6");
	check("reduce", "kind=prod dims=[0] acc=f32", "c64[2] 1 2 3 4", "c64[] -5 10");
	check_error("reduce", "kind=and dims=[0] acc=f32", "f32[3] 1", "and of f32");
	check_error("reduce", "kind=sum dims=[1] acc=f32", "f32[3] 1", "dimension below 1");
}

static void test_arg_reduce(void **state)
{
	(void)state;
	check("arg_reduce", "kind=max dim=1", "f32[2,3] 1 3 3 nan 9 nan", "i64[2] 1 0");
	check("arg_reduce", "kind=min dim=0", "i32[3,2] 5 1 2 1 2 0", "i64[2] 1 2");
	check("arg_reduce", "kind=max dim=0", "u64[2] 1 2", "i64[] 1");
	check("arg_reduce", "kind=max dim=1", "f32[0,3]", "i64[0]");
	check_error("arg_reduce", "kind=max dim=0", "f32[0]", "at least 1");
}

static void test_cumulative(void **state)
{
	(void)state;
	check("cumulative", "kind=sum dim=1 reverse=False", "f32[2,3] 1 2 3 4 5 6",
	      "f32[2,3] 1 3 6 4 9 15");
	check("cumulative", "kind=sum dim=0 reverse=True", "i64[3,2] 1 2 3 4 5 6",
	      "i64[3,2] 9 12 8 10 5 6");
	check("cumulative", "kind=prod dim=0 reverse=False", "f32[3] 2 3 4", "f32[3] 2 6 24");
	check("cumulative", "kind=max dim=0 reverse=False", "f32[4] 1 nan 3 9",
	      "f32[4] 1 nan nan nan");
	check("cumulative", "kind=min dim=0 reverse=False", "i32[4] 3 4 1 2", "i32[4] 3 3 1 1");
	check("cumulative", "kind=logaddexp dim=0 reverse=False", "f64[3] 0 0 -inf",
	      "f64[3] 0 0.693147180559945 0.693147180559945");
	check("cumulative", "kind=sum dim=0 reverse=False", "f32[0]", "f32[0]");
}

static void test_sort(void **state)
{
	(void)state;
	check("sort", "dim=0 descending=False stable=True", "f32[5] 2 nan -1 -inf 2",
	      "f32[5] -inf -1 2 2 nan;i64[5] 3 2 0 4 1");
	check("sort", "dim=0 descending=True stable=True", "f32[5] 2 nan -1 -inf 2",
	      "f32[5] nan 2 2 -1 -inf;i64[5] 1 0 4 2 3");
	check("sort", "dim=0 descending=False stable=True", "i32[2,2] 3 1 2 4",
	      "i32[2,2] 2 1 3 4;i64[2,2] 1 0 0 1");
	check("sort", "dim=1 descending=False stable=True", "u8[1,3] 200 3 100",
	      "u8[1,3] 3 100 200;i64[1,3] 1 2 0");
	check("sort", "dim=0 descending=False stable=True", "f32[0]", "f32[0];i64[0]");
	check("sort", "dim=0 descending=False stable=True", "f32[3] 0 -0.0 -1",
	      "f32[3] -1 0 0;i64[3] 2 0 1");
}

/* ---- products ---- */

static void test_contract(void **state)
{
	(void)state;
	const char *mm = "batch_x=[] batch_y=[] sum_x=[1] sum_y=[0] acc=f32";
	check("contract", mm, "f32[2,3] 1 2 3 4 5 6;f32[3,2] 1 0 0 1 1 1", "f32[2,2] 4 5 10 11");
	check("contract", mm, "f32[2,0];f32[0,3]", "f32[2,3] 0");
	check("contract", mm, "f32[0,2];f32[2,3]", "f32[0,3]");
	check("contract", mm, "c64[1,2] 1 1 0 2;c64[2,1] 1 -1 3 0", "c64[1,1] 2 6");
	check("contract", "batch_x=[] batch_y=[] sum_x=[1] sum_y=[1] acc=i32",
	      "i8[1,2] 100 100;i8[1,2] 100 100", "i32[1,1] 20000");
	check("contract", "batch_x=[] batch_y=[] sum_x=[0] sum_y=[0] acc=i32",
	      "u8[2] 255 1;i8[2] -1 4", "i32[] -251");
	check("contract", "batch_x=[0] batch_y=[1] sum_x=[2] sum_y=[0] acc=f32",
	      "f32[2,1,2] 1 2 3 4;f32[2,2,1] 1 2 3 4", "f32[2,1,1] 7 22");
	check("contract", "batch_x=[] batch_y=[] sum_x=[] sum_y=[] acc=f32",
	      "f32[2] 1 2;f32[2] 3 4", "f32[2,2] 3 4 6 8");
	check("contract", "batch_x=[] batch_y=[] sum_x=[0,1] sum_y=[1,0] acc=f32",
	      "f32[2,2] 1 2 3 4;f32[2,2] 1 2 3 4", "f32[] 29");
	check_error("contract", mm, "f32[2,3] 1;f32[2,2] 1", "3 differs from 2");
	check_error("contract", mm, "f32[2,3] 1;f64[3,2] 1", "differ");
}

/* Sizes around the blocks of the product against the definition. */
static void test_contract_blocks(void **state)
{
	(void)state;
	static const int64_t sizes[][3] = {
		{1, 1, 1}, {5, 7, 300}, {65, 258, 3}, {67, 5, 257}, {4, 4, 256}};
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		fresh_graph();
		int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
		Tensor x = {.dtype = DT_f32, .rank = 2, .dim = {m, k}},
		       y = {.dtype = DT_f32, .rank = 2, .dim = {k, n}};
		x.data = arena_alloc(f.ctx->arena, tensor_bytes(&x));
		y.data = arena_alloc(f.ctx->arena, tensor_bytes(&y));
		for (int64_t i = 0; i < m * k; i++)
			tensor_set_i64(&x, i, i % 13 - 6);
		for (int64_t i = 0; i < k * n; i++)
			tensor_set_i64(&y, i, i % 11 - 5);
		const uint32_t sum[1][2] = {{1, 0}};
		Tensor out;
		uint32_t nout;
		assert_true(run(b_contract(&f.b, constant(&x), constant(&y), NULL, 0, sum, 1), &out,
		                &nout));
		for (int64_t i = 0; i < m * n; i++) {
			double want = 0;
			for (int64_t l = 0; l < k; l++)
				want += tensor_f64(&x, i / n * k + l) *
				        tensor_f64(&y, l * n + i % n);
			assert_true(tensor_f64(&out, i) == want);
		}
	}
}

static void test_conv(void **state)
{
	(void)state;
	check("conv", "stride=[1] dilation=[1] dilation_in=[1] pad=[1] size=[4] acc=f32",
	      "f32[1,1,1,4] 1 2 3 4;f32[1,1,1,3] 1 10 100", "f32[1,1,1,4] 210 321 432 43");
	check("conv", "stride=[2] dilation=[1] dilation_in=[1] pad=[0] size=[2] acc=f32",
	      "f32[1,1,1,4] 1 2 3 4;f32[1,1,1,2] 1 10", "f32[1,1,1,2] 21 43");
	check("conv", "stride=[1] dilation=[2] dilation_in=[1] pad=[0] size=[2] acc=f32",
	      "f32[1,1,1,4] 1 2 3 4;f32[1,1,1,2] 1 10", "f32[1,1,1,2] 31 42");
	check("conv", "stride=[1] dilation=[1] dilation_in=[2] pad=[1] size=[4] acc=f32",
	      "f32[1,1,1,2] 1 2;f32[1,1,1,2] 1 10", "f32[1,1,1,4] 10 1 20 2");
	check("conv", "stride=[1] dilation=[1] dilation_in=[1] pad=[-1] size=[2] acc=f32",
	      "f32[1,1,1,4] 1 2 3 4;f32[1,1,1,2] 1 10", "f32[1,1,1,2] 32 43");
	check("conv", "stride=[1] dilation=[1] dilation_in=[1] pad=[0] size=[1] acc=f32",
	      "f32[2,2,1,1] 1 2 3 4;f32[2,2,1,1] 1 2 3 4", "f32[2,2,2,1] 1 2 6 8 3 6 12 16");
	check("conv", "stride=[1,1] dilation=[1,1] dilation_in=[1,1] pad=[0,0] size=[1,2] acc=f32",
	      "f32[1,1,2,2,3] 1 2 3 4 5 6 1 1 1 1 1 1;f32[1,1,2,2,2] 1 0 0 1 1 1 1 1",
	      "f32[1,1,1,1,2] 10 12");
	check("conv", "stride=[] dilation=[] dilation_in=[] pad=[] size=[] acc=f32",
	      "f32[1,1,2] 3 4;f32[1,1,2] 5 6", "f32[1,1,1] 39");
	check("conv", "stride=[1] dilation=[1] dilation_in=[1] pad=[0] size=[2] acc=i32",
	      "i8[1,1,1,3] 100 100 1;i8[1,1,1,2] 100 1", "i32[1,1,1,2] 10100 10001");
	check("conv", "stride=[1] dilation=[1] dilation_in=[1] pad=[0] size=[3] acc=f32",
	      "f32[1,1,0,3];f32[1,2,0,1]", "f32[1,1,2,3] 0");
	check_error("conv", "stride=[1] dilation=[1] dilation_in=[1] pad=[0] size=[1] acc=f32",
	            "f32[1,1,2,3] 1;f32[1,1,3,1] 1", "channel extent: 2 differs from 3");
	check_error("conv", "stride=[1] dilation=[1] dilation_in=[0] pad=[0] size=[1] acc=f32",
	            "f32[1,1,2,3] 1;f32[1,1,2,1] 1", "dilation_in");
}

/* ---- control ---- */

/* carry' = carry + x, y = carry * c; i64. */
static Graph *scan_body(void)
{
	Graph *body = graph_new(f.ir, "body");
	Build b = {.g = body, .where = "body"};
	TypeId t = ir_type(f.ir, DT_i64, 0, NULL);
	Node carry = graph_add_input(body, "carry", INPUT_USER, t);
	Node x = graph_add_input(body, "x", INPUT_USER, t),
	     c = graph_add_input(body, "c", INPUT_USER, t);
	graph_add_output(body, "next", b_bin(&b, OP_add, carry, x), -1);
	graph_add_output(body, "y", b_bin(&b, OP_mul, carry, c), -1);
	return body;
}

static void scan_case(bool reverse, const char *xs, int64_t length, const char *expected)
{
	fresh_graph();
	Node in[3];
	char operands[128];
	snprintf(operands, sizeof operands, "i64[] 1;%s;i64[] 10", xs);
	assert_int_equal(parse_operands(operands, in), 3);
	Attr attr[] = {attr_int(f.ir, 1),       attr_int(f.ir, 1),      attr_int(f.ir, 1),
	               attr_graph(scan_body()), attr_int(f.ir, length), attr_bool(reverse)};
	Tensor out[2];
	uint32_t nout = 0;
	Node n = b_node(&f.b, OP_scan, in, 3, attr, 6);
	if (!n.i || !run(n, out, &nout))
		fail_with_diags("scan");
	assert_int_equal(nout, 2);
	for (uint32_t k = 0; k < nout; k++)
		expect_tensor(&out[k], &expected);
}

static void test_scan(void **state)
{
	(void)state;
	scan_case(false, "i64[3] 5 6 7", 3, "i64[] 19;i64[3] 10 60 120");
	scan_case(true, "i64[3] 5 6 7", 3, "i64[] 19;i64[3] 140 80 10");
	scan_case(false, "i64[0]", 0, "i64[] 1;i64[0]");
}

static void test_effects(void **state)
{
	(void)state;
	check("barrier", "", "f32[2] 1 2", "f32[2] 1 2");
	fresh_graph();
	Tensor out;
	const char *text = "bool[2] 1 0";
	Tensor cond = parse_tensor(&text);
	Node c = constant(&cond);
	Attr attr[] = {attr_none(), attr_str(f.ir, "lengths agree")};
	uint32_t before = f.ctx->nerror, nout = 0;
	Node n = b_node(&f.b, OP_assert, &c, 1, attr, 2);
	assert_true(n.i);
	assert_false(run(c, &out, &nout));
	assert_int_equal(f.ctx->nerror, before + 1);
	assert_non_null(strstr(f.ctx->last->text, "lengths agree"));
}

/* ---- symbolic shapes ---- */

static void expect_dims(Node n, const char *const *dims)
{
	if (!n.i)
		fail_with_diags("inference");
	for (uint32_t k = 0; k < node_rank(f.g, n); k++)
		assert_string_equal(sym_str(f.ir->syms, node_dim(f.g, n, k)), dims[k]);
}

static void test_symbolic(void **state)
{
	(void)state;
	fresh_graph();
	SymTab *syms = f.ir->syms;
	Sym n = sym_var(syms, "n", SYMVAR_SIZE, 1, 100),
	    m = sym_var(syms, "m", SYMVAR_SIZE, 0, 100);
	Sym dim[] = {n, m}, zero = sym_int(syms, 0), one = sym_int(syms, 1),
	    three = sym_int(syms, 3);
	Node x = graph_add_input(f.g, "x", INPUT_USER, ir_type(f.ir, DT_f32, 2, dim));
	Node xx[] = {x, x, x}, value = b_scalar(&f.b, DT_f32, 0), padded[] = {x, value};
	expect_dims(b_concat(&f.b, xx, 3, 0), (const char *[]){"3*n", "m"});
	Attr at[] = {attr_none(), attr_ints((Sym[]){zero, zero}, 2), attr_ints(dim, 2),
	             attr_ints((Sym[]){three, one}, 2)};
	expect_dims(b_node(&f.b, OP_slice, &x, 1, at, 4),
	            (const char *[]){"floordiv(n + 2, 3)", "m"});
	Attr pads[] = {attr_none(), attr_none(), attr_ints((Sym[]){one, three}, 2),
	               attr_ints((Sym[]){zero, one}, 2), attr_ints((Sym[]){three, zero}, 2)};
	expect_dims(b_node(&f.b, OP_pad, padded, 2, pads, 5), (const char *[]){"4*n - 2", "m + 4"});
	expect_dims(b_reduce(&f.b, REDUCE_SUM, x, 1, DT_none), (const char *[]){"m"});
	const uint32_t sum[1][2] = {{0, 0}};
	expect_dims(b_contract(&f.b, x, x, NULL, 0, sum, 1), (const char *[]){"m", "m"});
	uint32_t before = f.ctx->nerror;
	Sym longer[] = {sym_addi(syms, n, 1), m};
	at[2] = attr_ints(longer, 2);
	assert_int_equal(b_node(&f.b, OP_slice, &x, 1, at, 4).i, 0);
	assert_int_equal(f.ctx->nerror, before + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_broadcast),  cmocka_unit_test(test_reshape),
		cmocka_unit_test(test_permute),    cmocka_unit_test(test_slice),
		cmocka_unit_test(test_pad),        cmocka_unit_test(test_concat),
		cmocka_unit_test(test_reverse),    cmocka_unit_test(test_window),
		cmocka_unit_test(test_fold),       cmocka_unit_test(test_data),
		cmocka_unit_test(test_convert),    cmocka_unit_test(test_slice_at),
		cmocka_unit_test(test_gather),     cmocka_unit_test(test_scatter),
		cmocka_unit_test(test_reduce),     cmocka_unit_test(test_arg_reduce),
		cmocka_unit_test(test_cumulative), cmocka_unit_test(test_sort),
		cmocka_unit_test(test_contract),   cmocka_unit_test(test_contract_blocks),
		cmocka_unit_test(test_conv),       cmocka_unit_test(test_scan),
		cmocka_unit_test(test_effects),    cmocka_unit_test(test_symbolic),
	};
	f.ctx = ctx_new();
	if (!f.ctx || setjmp(f.ctx->unwind)) {
		fprintf(stderr, "unwound: %s\n", f.ctx ? f.ctx->bug_text : "no memory");
		return 1;
	}
	f.ir = ir_new(f.ctx);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	ctx_free(f.ctx);
	return failed;
}
