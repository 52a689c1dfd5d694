/* The graph builder: what each call puts into the graph, as text, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/build/build.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/op/op.h"

static Ctx *ctx;
static Ir *ir;
static Graph *g;
static Build b;

static int setup(void **state)
{
	(void)state;
	ctx = ctx_new();
	assert_non_null(ctx);
	ir = ir_new(ctx);
	g = graph_new(ir, "test");
	b = (Build){.g = g, .where = "test"};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(ctx);
	return 0;
}

static Sym size(const char *name)
{
	Sym s = sym_find(ir->syms, name, (uint32_t)strlen(name));
	return s.i ? s : sym_var(ir->syms, name, SYMVAR_SIZE, 1, 64);
}

/* "f32[s, 2, 3]" as an input; letters are symbols in 1..64. */
static Node in(const char *name, const char *type)
{
	Sym dim[MAX_RANK];
	uint32_t rank = 0;
	const char *p = type + strcspn(type, "[") + 1;
	DType d = dtype_parse(type, (uint32_t)(p - 1 - type));
	while (*p != ']') {
		char word[16];
		int used = 0;
		assert_int_equal(sscanf(p, "%15[a-z0-9]%n", word, &used), 1);
		bool digits = strspn(word, "0123456789") == strlen(word);
		int64_t v = 0;
		for (const char *c = word; digits && *c; c++)
			v = v * 10 + (*c - '0');
		dim[rank++] = digits ? sym_int(ir->syms, v) : size(word);
		p += used;
		p += strspn(p, ", ");
	}
	return graph_add_input(g, name, INPUT_USER, ir_type(ir, d, rank, dim));
}

/* The graph is valid, n has this type, and the statements print like this. */
static void expect(Node n, const char *type, const char *body)
{
	if (!n.i)
		fail_msg("no node: %s", ctx->last ? ctx->last->text : "");
	assert_string_equal(type_str(ir, node_type_id(g, n)), type);
	if (!graph_verify(g))
		fail_msg("%s: %s", ctx->last->where, ctx->last->text);
	Text t;
	text_init(&t, ctx->arena);
	graph_print(g, &t);
	const char *from = strstr(t.data, "{\n") + 2, *to = strstr(from, "  return");
	assert_string_equal(arena_strndup(ctx->arena, from, (size_t)(to - from)), body);
}

static void expect_error(Node n, const char *text)
{
	assert_int_equal(n.i, 0);
	assert_int_equal(ctx->nerror, 1);
	if (!strstr(ctx->last->text, text))
		fail_msg("expected \"%s\" in \"%s\"", text, ctx->last->text);
	assert_string_equal(ctx->last->where, "test");
	assert_int_equal(b_un(&b, OP_neg, n).i, 0); /* passed on silently */
	assert_int_equal(b_bin(&b, OP_add, n, n).i, 0);
	assert_int_equal(ctx->nerror, 1);
}

static void test_promote(void **state)
{
	(void)state;
	Node x = in("x", "i32[2, 3]"), y = in("y", "f16[3]");
	Node z = b_bin(&b, OP_add, x, y);
	expect(z, "f16[2, 3]",
	       "  %1 = convert(%x, dtype=f16) : f16[2, 3]\n"
	       "  %2 = broadcast(%y, shape=[2, 3], map=[1]) : f16[2, 3]\n"
	       "  %3 = add(%1, %2) : f16[2, 3]\n");
}

static void test_weak(void **state)
{
	(void)state;
	Node x = in("x", "bf16[2]"), s = in("s", "f32[]"), c = in("c", "bool[2]");
	expect(b_select(&b, c, x, s), "bf16[2]",
	       "  %1 = convert(%s, dtype=bf16) : bf16[]\n"
	       "  %2 = broadcast(%1, shape=[2], map=[]) : bf16[2]\n"
	       "  %3 = select(%c, %x, %2) : bf16[2]\n");
}

static void test_bool_result(void **state)
{
	(void)state;
	Node x = in("x", "i64[2]");
	expect(b_bin_scalar(&b, OP_lt, x, 3), "bool[2]",
	       "  %1 = full(dtype=i64, shape=[], value=3) : i64[]\n"
	       "  %2 = full(dtype=i64, shape=[2], value=3) : i64[2]\n"
	       "  %3 = lt(%x, %2) : bool[2]\n");
}

static void test_float_only(void **state)
{
	(void)state;
	expect(b_un(&b, OP_exp, in("x", "i64[2]")), "f32[2]",
	       "  %1 = convert(%x, dtype=f32) : f32[2]\n"
	       "  %2 = exp(%1) : f32[2]\n");
}

static void test_symbolic_broadcast(void **state)
{
	(void)state;
	Node x = in("x", "f32[s, 1]"), y = in("y", "f32[t]"), z = in("z", "f32[4, 1]");
	Node w = b_bin(&b, OP_add, b_bin(&b, OP_mul, x, y), z);
	expect(w, "f32[4, t]",
	       "  %1 = broadcast(%x, shape=[s, t], map=[0, 1]) : f32[s, t]\n"
	       "  %2 = broadcast(%y, shape=[s, t], map=[1]) : f32[s, t]\n"
	       "  %3 = mul(%1, %2) : f32[s, t]\n"
	       "  %4 = broadcast(%3, shape=[4, t], map=[0, 1]) : f32[4, t]\n"
	       "  %5 = broadcast(%z, shape=[4, t], map=[0, 1]) : f32[4, t]\n"
	       "  %6 = add(%4, %5) : f32[4, t]\n");
	assert_int_equal(g->guard.n, 1);
	assert_int_equal(g->guard.data[0].kind, GUARD_EQ);
	assert_int_equal(g->guard.data[0].a.i, size("s").i);
}

static void test_no_broadcast(void **state)
{
	(void)state;
	expect_error(b_bin(&b, OP_add, in("x", "f32[2]"), in("y", "f32[3]")),
		     "sizes 2 and 3 cannot be broadcast");
}

static void test_splats(void **state)
{
	(void)state;
	Sym dim[] = {sym_int(ir->syms, 2), sym_int(ir->syms, 3)};
	Node x = b_full(&b, DT_f32, 0.1, 0, NULL);
	Attr v;
	x = b_convert(&b, b_broadcast(&b, x, 2, dim), DT_f64);
	assert_true(b_splat(&b, x, &v) && v.f == (double)0.1f);
	Node i = b_convert(&b, b_full(&b, DT_f32, 1e30, 1, dim), DT_i64);
	assert_true(b_splat(&b, i, &v) && sym_is(ir->syms, v.s, INT64_MIN));
	i = b_convert(&b, b_full_int(&b, DT_i64, 300, 1, dim), DT_u8);
	assert_true(b_splat(&b, i, &v) && sym_is(ir->syms, v.s, 44));
	i = b_convert(&b, b_full(&b, DT_f64, -2.5, 1, dim), DT_u8);
	assert_true(b_splat(&b, i, &v) && sym_is(ir->syms, v.s, 254));
	i = b_full_attr(&b, DT_bool, attr_float(0.5), 1, dim);
	assert_true(b_splat(&b, i, &v) && v.kind == ATTR_bool && v.b);
	i = b_full(&b, DT_f16, 1e6, 1, dim);
	assert_true(b_splat(&b, i, &v) && v.f > 1e300);
	graph_dce(g);
	assert_int_equal(g->first.i, 0);
	expect(b_full_attr(&b, DT_f32, attr_sym(size("s")), 1, dim), "f32[2]",
	       "  %1 = from_size(value=s) : i64[]\n"
	       "  %2 = convert(%1, dtype=f32) : f32[]\n"
	       "  %3 = broadcast(%2, shape=[2], map=[]) : f32[2]\n");
}

static void test_index_maps(void **state)
{
	(void)state;
	Node x = in("x", "f32[s, 4, 1]");
	const uint32_t same[] = {0, 1, 2}, turn[] = {2, 0, 1}, twice[] = {0, 0, 1};
	Sym zero = b_int(&b, 0), one = b_int(&b, 1), low[] = {zero, one, zero},
	    none[] = {zero, zero, zero};
	assert_int_equal(b_permute(&b, x, same).i, x.i);
	assert_int_equal(b_slice(&b, x, 1, zero, b_int(&b, 4), one).i, x.i);
	assert_int_equal(b_reshape(&b, x, 3, node_type(g, x)->dim).i, x.i);
	assert_int_equal(b_squeeze(&b, x, 1).i, x.i);
	assert_int_equal(b_squeeze(&b, b_unsqueeze(&b, x, -1), -1).i, x.i);
	assert_int_equal(b_pad(&b, x, none, none, b_scalar(&b, DT_f32, 0)).i, x.i);
	assert_int_equal(b_convert(&b, x, DT_f32).i, x.i);
	assert_int_equal(b_reverse(&b, x, 2).i, x.i);
	assert_int_equal(b_concat(&b, &x, 1, 0).i, x.i);
	graph_dce(g);
	Node y = b_permute(&b, x, turn);
	y = b_select_dim(&b, b_transpose(&b, y, 0, -1), 1, b_int(&b, -1));
	y = b_unsqueeze(&b, y, 0);
	y = b_pad(&b, y, low, none, b_scalar(&b, DT_f64, 0.5));
	Node pair[] = {y, y};
	y = b_reverse(&b, b_concat(&b, pair, 2, -1), 1);
	expect(y, "f32[1, 5, 2]",
	       "  %1 = permute(%x, perm=[2, 0, 1]) : f32[1, s, 4]\n"
	       "  %2 = permute(%1, perm=[2, 1, 0]) : f32[4, s, 1]\n"
	       "  %3 = slice(%2, start=[0, s - 1, 0], end=[4, s, 1], step=[1, 1, 1]) : f32[4, 1, "
	       "1]\n"
	       "  %4 = reshape(%3, shape=[4, 1]) : f32[4, 1]\n"
	       "  %5 = reshape(%3, shape=[1, 4, 1]) : f32[1, 4, 1]\n"
	       "  %6 = full(dtype=f64, shape=[], value=0.5) : f64[]\n"
	       "  %7 = full(dtype=f32, shape=[], value=0.5) : f32[]\n"
	       "  %8 = pad(%5, %7, low=[0, 1, 0], high=[0, 0, 0], interior=[0, 0, 0]) : f32[1, 5, "
	       "1]\n"
	       "  %9 = concat([%8, %8], dim=2) : f32[1, 5, 2]\n"
	       "  %10 = reverse(%9, dims=[1]) : f32[1, 5, 2]\n");
	assert_int_equal(g->guard.n, 0);
	expect_error(b_permute(&b, x, twice), "permutation");
}

static void test_bad_reshape(void **state)
{
	(void)state;
	Sym dim[] = {b_int(&b, 5)};
	expect_error(b_reshape(&b, in("x", "f32[2, 3]"), 1, dim), "cannot reshape 6 elements to 5");
}

static void test_reduce(void **state)
{
	(void)state;
	Node x = in("x", "f16[2, s, 4]");
	assert_int_equal(b_reduce(&b, REDUCE_SUM, x, 0, DT_none).i, x.i);
	expect(b_reduce_keep(&b, REDUCE_MAX, x, 5, DT_none), "f16[1, s, 1]",
	       "  %1 = reduce(%x, kind=\"max\", dims=[0, 2], acc=f32) : f16[s]\n"
	       "  %2 = reshape(%1, shape=[1, s, 1]) : f16[1, s, 1]\n");
}

static void test_matmul(void **state)
{
	(void)state;
	static const struct {
		const char *x, *y, *type;
	} cases[] = {
		{"f32[3]", "f32[3]", "f32[]"},
		{"f32[2, 3]", "f32[3]", "f32[2]"},
		{"f32[3]", "f32[3, 4]", "f32[4]"},
		{"f32[2, 3]", "f32[3, 4]", "f32[2, 4]"},
		{"f32[5, 2, 3]", "f32[3, 4]", "f32[5, 2, 4]"},
		{"f32[2, 3]", "f32[5, 3, 4]", "f32[5, 2, 4]"},
		{"f32[5, 2, 3]", "f32[5, 3, 4]", "f32[5, 2, 4]"},
		{"f32[5, 1, 2, 3]", "f32[6, 3, 4]", "f32[5, 6, 2, 4]"},
		{"f32[1, 6, 2, 3]", "f32[5, 1, 3, 4]", "f32[5, 6, 2, 4]"},
		{"f32[3]", "f32[5, 3, 4]", "f32[5, 4]"},
		{"f32[5, 2, 3]", "f32[3]", "f32[5, 2]"},
		{"f32[s, 2, 3]", "f32[1, 3, t]", "f32[s, 2, t]"},
		{"f32[1, 2, 3]", "f32[1, 3, 4]", "f32[1, 2, 4]"},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		Node z = b_matmul(&b, in("x", cases[k].x), in("y", cases[k].y));
		assert_true(z.i);
		assert_string_equal(type_str(ir, node_type_id(g, z)), cases[k].type);
		assert_true(graph_verify(g));
	}
	assert_int_equal(g->guard.n, 0);
	teardown(NULL);
	setup(NULL);
	expect(b_matmul(&b, in("x", "f32[2, 3]"), in("y", "f16[5, 3, 4]")), "f32[5, 2, 4]",
	       "  %1 = convert(%y, dtype=f32) : f32[5, 3, 4]\n"
	       "  %2 = contract(%x, %1, batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f32) : "
	       "f32[2, 5, 4]\n"
	       "  %3 = permute(%2, perm=[1, 0, 2]) : f32[5, 2, 4]\n");
	expect_error(b_matmul(&b, in("z", "f32[2, 3]"), in("w", "f32[2, 3]")), "3 and 2");
}

/* A tuple has no shape, however many elements it has: nothing is written behind dim[]. */
static void test_shape_of_tuple(void **state)
{
	(void)state;
	Node x = in("x", "f32[2]"), xs[MAX_RANK + 2];
	Sym dim[MAX_RANK + 2] = {{0}};
	uint32_t rank;
	for (uint32_t k = 0; k < MAX_RANK + 2; k++)
		xs[k] = x;
	Node t = b_tuple(&b, xs, MAX_RANK + 2);
	assert_false(b_common_shape(&b, &t, 1, &rank, dim));
	assert_int_equal(ctx->nerror, 1);
	assert_int_equal(dim[MAX_RANK].i, 0);
}

static void test_tuple(void **state)
{
	(void)state;
	Node xs[] = {in("x", "f32[2]"), in("y", "i64[]")};
	Node t = b_tuple(&b, xs, 2);
	assert_int_equal(b_get(&b, t, 1).i, xs[1].i);
	expect(t, "(f32[2], i64[])", "  %1 = tuple([%x, %y]) : (f32[2], i64[])\n");
	expect_error(b_un(&b, OP_neg, t), "got a tuple");
}

static void test_coerce(void **state)
{
	(void)state;
	Node x = in("x", "f32[2, 3]");
	Attr one = attr_int(ir, 1);
	Attr attr[] = {attr_none(), one};
	expect(b_node(&b, OP_reverse, &x, 1, attr, 2), "f32[2, 3]",
	       "  %1 = reverse(%x, dims=[1]) : f32[2, 3]\n");
	Attr wrong[] = {attr_none(), attr_bool(true)};
	expect_error(b_node(&b, OP_reverse, &x, 1, wrong, 2), "argument \"dims\"");
}

static void test_wrap_dim(void **state)
{
	(void)state;
	assert_int_equal(b_wrap_dim(&b, -1, 3), 2);
	assert_int_equal(b_wrap_dim(&b, -1, 0), 0);
	assert_int_equal(ctx->nerror, 0);
	b_wrap_dim(&b, 3, 3);
	assert_int_equal(ctx->nerror, 1);
}

/* ---- expansions ---- */

static Node composite(const char *name, const Node *x, uint32_t n, const Attr *attr, uint32_t nattr)
{
	Op op = op_find(name);
	if (!op)
		fail_msg("no op %s", name);
	return b_node(&b, op, x, n, attr, nattr);
}

static void test_expand(void **state)
{
	(void)state;
	Node x = in("x", "f32[2]");
	expect(composite("aten.silu", &x, 1, NULL, 0), "f32[2]",
	       "  %1 = sigmoid(%x) : f32[2]\n"
	       "  %2 = mul(%x, %1) : f32[2]\n");
}

static void test_expand_weak(void **state)
{
	(void)state;
	Node x = in("x", "f16[2]");
	expect(composite("aten.relu6", &x, 1, NULL, 0), "f16[2]",
	       "  %1 = full(dtype=f16, shape=[], value=0.0) : f16[]\n"
	       "  %2 = full(dtype=f16, shape=[2], value=0.0) : f16[2]\n"
	       "  %3 = maximum(%x, %2) : f16[2]\n"
	       "  %4 = full(dtype=f16, shape=[], value=6.0) : f16[]\n"
	       "  %5 = full(dtype=f16, shape=[2], value=6.0) : f16[2]\n"
	       "  %6 = minimum(%3, %5) : f16[2]\n");
}

/* A Scalar argument without default takes part in promotion. */
static void test_expand_scalar(void **state)
{
	(void)state;
	Node x = in("x", "i64[2]");
	Attr attr[] = {attr_none(), attr_float(0.5)};
	expect(composite("aten.eq.Scalar", &x, 1, attr, 2), "bool[2]",
	       "  %1 = convert(%x, dtype=f32) : f32[2]\n"
	       "  %2 = full(dtype=f32, shape=[], value=0.5) : f32[]\n"
	       "  %3 = full(dtype=f32, shape=[2], value=0.5) : f32[2]\n"
	       "  %4 = eq(%1, %3) : bool[2]\n");
}

static void test_expand_int(void **state)
{
	(void)state;
	Node x = in("x", "i32[2]");
	expect(composite("aten.exp", &x, 1, NULL, 0), "f32[2]",
	       "  %1 = convert(%x, dtype=f32) : f32[2]\n"
	       "  %2 = exp(%1) : f32[2]\n");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_promote),
		T(test_weak),
		T(test_bool_result),
		T(test_float_only),
		T(test_symbolic_broadcast),
		T(test_no_broadcast),
		T(test_splats),
		T(test_index_maps),
		T(test_bad_reshape),
		T(test_reduce),
		T(test_matmul),
		T(test_shape_of_tuple),
		T(test_tuple),
		T(test_coerce),
		T(test_wrap_dim),
		T(test_expand),
		T(test_expand_weak),
		T(test_expand_scalar),
		T(test_expand_int),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
