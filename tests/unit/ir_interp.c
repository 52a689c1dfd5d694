/* The interpreter around the ops: binding symbols, guards, element-wise nodes, tuples,
 * composites. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/build/build.h"
#include "ir/interp/interp.h"
#include "ir/op/op.h"

typedef struct {
	Ctx *ctx;
	Ir *ir;
	Graph *g;
	Build b;
	SymTab *syms;
} Fixture;

static Fixture f;

static int setup(void **state)
{
	(void)state;
	f.ctx = ctx_new();
	if (!f.ctx)
		return -1;
	f.ir = ir_new(f.ctx);
	f.syms = f.ir->syms;
	f.g = graph_new(f.ir, "test");
	f.b = (Build){.g = f.g, .where = "test"};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(f.ctx);
	return 0;
}

static Node input(const char *name, DType d, uint32_t rank, const Sym *dim)
{
	return graph_add_input(f.g, name, INPUT_USER, ir_type(f.ir, d, rank, dim));
}

static Tensor tensor(DType d, uint32_t rank, const int64_t *dim)
{
	Tensor t = {.dtype = d, .rank = rank};
	memcpy(t.dim, dim, rank * sizeof *dim);
	t.data = arena_alloc(f.ctx->arena, tensor_bytes(&t));
	return t;
}

static Tensor vector(DType d, int64_t n, const double *v)
{
	Tensor t = tensor(d, 1, &n);
	for (int64_t i = 0; i < n && v; i++)
		tensor_set_f64(&t, i, v[i]);
	return t;
}

static void expect_error(const char *text)
{
	assert_int_equal(f.ctx->nerror, 1);
	assert_string_equal(f.ctx->last->text, text);
}

static bool bind(const Tensor *in, uint32_t n)
{
	EvalCtx e = {.ctx = f.ctx, .arena = f.ctx->arena};
	return interp_bind(&e, f.g, in, n);
}

/* ---- binding ---- */

static void test_bind_solves(void **state)
{
	(void)state;
	Sym s0 = sym_var(f.syms, "s0", SYMVAR_SIZE, 1, 64),
	    s1 = sym_var(f.syms, "s1", SYMVAR_SIZE, 0, 9);
	Sym a[] = {sym_addi(f.syms, sym_muli(f.syms, s0, 32), 1), sym_add(f.syms, s0, s1)};
	Sym c[] = {sym_mul(f.syms, s0, s1)};
	input("a", DT_f32, 2, a);
	input("c", DT_f32, 1, c);
	Tensor in[] = {tensor(DT_f32, 2, (int64_t[]){97, 7}), tensor(DT_f32, 1, (int64_t[]){12})};
	EvalCtx e = {.ctx = f.ctx, .arena = f.ctx->arena};
	assert_true(interp_bind(&e, f.g, in, 2));
	int64_t v;
	assert_true(eval_sym(&e, s0, &v));
	assert_int_equal(v, 3);
	assert_true(eval_sym(&e, sym_muli(f.syms, s1, 5), &v));
	assert_int_equal(v, 20);
}

static void test_bind_range(void **state)
{
	(void)state;
	Sym dim[] = {sym_int(f.syms, 1), sym_var(f.syms, "s70", SYMVAR_SIZE, 2, 512)};
	input("input_ids", DT_i64, 2, dim);
	Tensor in = tensor(DT_i64, 2, (int64_t[]){1, 600});
	assert_false(bind(&in, 1));
	expect_error("input \"input_ids\" dimension 1: expected s70 <= 512, got 600");
}

static void test_bind_low(void **state)
{
	(void)state;
	Sym dim[] = {sym_var(f.syms, "s0", SYMVAR_SIZE, 2, 512)};
	input("x", DT_i64, 1, dim);
	Tensor in = tensor(DT_i64, 1, (int64_t[]){1});
	assert_false(bind(&in, 1));
	expect_error("input \"x\" dimension 0: expected s0 >= 2, got 1");
}

static void test_bind_multiple(void **state)
{
	(void)state;
	Sym dim[] = {sym_muli(f.syms, sym_var(f.syms, "s0", SYMVAR_SIZE, 1, 8), 32)};
	input("x", DT_f32, 1, dim);
	Tensor in = tensor(DT_f32, 1, (int64_t[]){65});
	assert_false(bind(&in, 1));
	expect_error("input \"x\" dimension 0: expected 32*s0 for an integer s0, got 65");
}

static void test_bind_multiple_range(void **state)
{
	(void)state;
	Sym dim[] = {sym_muli(f.syms, sym_var(f.syms, "s0", SYMVAR_SIZE, 1, 8), 32)};
	input("x", DT_f32, 1, dim);
	Tensor in = tensor(DT_f32, 1, (int64_t[]){320});
	assert_false(bind(&in, 1));
	expect_error("input \"x\" dimension 0: expected 32*s0 with 1 <= s0 <= 8, got 320");
}

static void test_bind_disagree(void **state)
{
	(void)state;
	Sym dim[] = {sym_var(f.syms, "s0", SYMVAR_SIZE, 1, 8)};
	input("x", DT_f32, 1, dim);
	input("y", DT_f32, 1, dim);
	Tensor in[] = {tensor(DT_f32, 1, (int64_t[]){4}), tensor(DT_f32, 1, (int64_t[]){5})};
	assert_false(bind(in, 2));
	expect_error("input \"y\" dimension 0: expected s0 = 4, got 5");
}

static void test_bind_constant(void **state)
{
	(void)state;
	Sym dim[] = {sym_int(f.syms, 3)};
	input("x", DT_f32, 1, dim);
	Tensor in = tensor(DT_f32, 1, (int64_t[]){4});
	assert_false(bind(&in, 1));
	expect_error("input \"x\" dimension 0: expected 3, got 4");
}

static void test_bind_rank(void **state)
{
	(void)state;
	Sym dim[] = {sym_int(f.syms, 3)};
	input("x", DT_f32, 1, dim);
	Tensor in = tensor(DT_f32, 2, (int64_t[]){3, 1});
	assert_false(bind(&in, 1));
	expect_error("input \"x\": expected 1 dimensions, got 2");
}

static void test_bind_dtype(void **state)
{
	(void)state;
	Sym dim[] = {sym_int(f.syms, 3)};
	input("x", DT_f32, 1, dim);
	Tensor in = tensor(DT_f64, 1, (int64_t[]){3});
	assert_false(bind(&in, 1));
	expect_error("input \"x\": expected dtype f32, got f64");
}

static void test_bind_count(void **state)
{
	(void)state;
	Sym dim[] = {sym_int(f.syms, 3)};
	input("x", DT_f32, 1, dim);
	assert_false(bind(NULL, 0));
	expect_error("expected 1 inputs, got 0");
}

static void test_bind_unsolvable(void **state)
{
	(void)state;
	Sym s0 = sym_var(f.syms, "s0", SYMVAR_SIZE, 1, 8);
	Sym dim[] = {sym_divi(f.syms, s0, 2)};
	input("x", DT_f32, 1, dim);
	Tensor in = tensor(DT_f32, 1, (int64_t[]){3});
	assert_false(bind(&in, 1));
	assert_int_equal(f.ctx->nerror, 1);
	assert_non_null(strstr(f.ctx->last->text, "input \"x\" dimension 0: "));
	assert_non_null(strstr(f.ctx->last->text, "cannot be solved"));
}

static void test_guard(void **state)
{
	(void)state;
	Sym s0 = sym_var(f.syms, "s0", SYMVAR_SIZE, 1, 8),
	    s1 = sym_var(f.syms, "s1", SYMVAR_SIZE, 1, 8);
	Sym dim[] = {s0, s1};
	input("x", DT_f32, 2, dim);
	graph_guard(f.g, GUARD_LE, s0, s1, "seen while exporting");
	Tensor good = tensor(DT_f32, 2, (int64_t[]){2, 2}),
	       bad = tensor(DT_f32, 2, (int64_t[]){3, 2});
	assert_true(bind(&good, 1));
	assert_false(bind(&bad, 1));
	expect_error("expected s0 <= s1, got 3 and 2 for s0 = 3 (input \"x\" dimension 0), s1 = 2 "
		     "(input \"x\" "
		     "dimension 1): seen while exporting");
}

/* ---- running ---- */

static void test_elementwise(void **state)
{
	(void)state;
	Sym n = sym_var(f.syms, "n", SYMVAR_SIZE, 0, 4096);
	Node x = input("x", DT_f32, 1, &n), y = input("y", DT_f32, 1, &n);
	Node less = b_bin(&f.b, OP_lt, x, y);
	graph_add_output(f.g, "least", b_select(&f.b, less, x, y), -1);
	graph_add_output(f.g, "less", less, -1);
	Tensor in[2], out[2];
	int64_t count = 1300; /* more than one block */
	for (int k = 0; k < 2; k++)
		in[k] = tensor(DT_f32, 1, &count);
	for (int64_t i = 0; i < count; i++) {
		tensor_set_i64(&in[0], i, i);
		tensor_set_i64(&in[1], i, 1299 - i);
	}
	assert_true(interp(f.ctx, f.g, in, 2, out, 2, f.ctx->arena));
	assert_int_equal(out[1].dtype, DT_bool);
	for (int64_t i = 0; i < count; i++) {
		assert_int_equal(tensor_i64(&out[0], i), i < 1299 - i ? i : 1299 - i);
		assert_int_equal(tensor_i64(&out[1], i), i < 1299 - i);
	}
}

/* 1 + 2^-11 is not an f16: each node rounds, and no node keeps f32 bits. */
static void test_rounds_per_node(void **state)
{
	(void)state;
	Sym n = sym_int(f.syms, 1);
	Node x = input("x", DT_f16, 1, &n);
	Node y = b_bin(&f.b, OP_add, x, b_scalar(&f.b, DT_f16, 1));
	graph_add_output(f.g, "y", b_bin(&f.b, OP_sub, y, b_scalar(&f.b, DT_f16, 1)), -1);
	Tensor in = vector(DT_f16, 1, (double[]){0x1p-11}), out;
	assert_true(interp(f.ctx, f.g, &in, 1, &out, 1, f.ctx->arena));
	assert_true(tensor_f64(&out, 0) == 0);
}

static void test_tuple_and_alias(void **state)
{
	(void)state;
	Sym n = sym_int(f.syms, 2);
	Node x = input("x", DT_i64, 1, &n);
	Node twice = b_bin(&f.b, OP_add, x, x), elems[] = {twice, x, twice};
	Node t = b_node(&f.b, OP_tuple, elems, 3, NULL, 0);
	Attr attr[] = {attr_none(), attr_int(f.ir, 2)};
	Node third = b_node(&f.b, OP_get, &t, 1, attr, 2);
	graph_add_output(f.g, "a", third, -1);
	graph_add_output(f.g, "b", third, -1);
	graph_add_output(f.g, "x", x, -1);
	Tensor in = vector(DT_i64, 2, (double[]){3, 4}), out[3];
	assert_true(interp(f.ctx, f.g, &in, 1, out, 3, f.ctx->arena));
	assert_int_equal(tensor_i64(&out[0], 1), 8);
	assert_int_equal(tensor_i64(&out[1], 0), 6);
	assert_int_equal(tensor_i64(&out[2], 1), 4);
	assert_ptr_not_equal(out[2].data, in.data);
}

static void test_unaligned_constant(void **state)
{
	(void)state;
	static const int64_t dim[] = {2};
	char *bytes = arena_alloc(f.ctx->arena, 32);
	float v[] = {1.5f, -2};
	memcpy(bytes + 1, v, sizeof v);
	Const c = {
		.name = "w", .dtype = DT_f32, .rank = 1, .dim = dim, .data = bytes + 1, .bytes = 8};
	graph_add_output(f.g, "y", b_un(&f.b, OP_neg, b_const(&f.b, ir_const(f.ir, c))), -1);
	Tensor out;
	assert_true(interp(f.ctx, f.g, NULL, 0, &out, 1, f.ctx->arena));
	assert_true(tensor_f64(&out, 0) == -1.5 && tensor_f64(&out, 1) == 2);
}

static void test_short_constant(void **state)
{
	(void)state;
	static const int64_t dim[] = {4};
	static const float v[2];
	Const c = {.name = "w", .dtype = DT_f32, .rank = 1, .dim = dim, .data = v, .bytes = 8};
	graph_add_output(f.g, "y", b_const(&f.b, ir_const(f.ir, c)), -1);
	Tensor out;
	assert_false(interp(f.ctx, f.g, NULL, 0, &out, 1, f.ctx->arena));
	expect_error("constant \"w\": expected 16 bytes, got 8");
}

static void test_symbolic_shapes(void **state)
{
	(void)state;
	Sym n = sym_var(f.syms, "n", SYMVAR_SIZE, 0, 64);
	Node x = input("x", DT_f32, 1, &n);
	Sym twice = sym_muli(f.syms, n, 2);
	Node xx[] = {x, x};
	graph_add_output(f.g, "y", b_concat(&f.b, xx, 2, 0), -1);
	graph_add_output(f.g, "n", b_from_size(&f.b, twice), -1);
	Tensor in = vector(DT_f32, 3, (double[]){1, 2, 3}), out[2];
	assert_true(interp(f.ctx, f.g, &in, 1, out, 2, f.ctx->arena));
	assert_int_equal(out[0].dim[0], 6);
	assert_true(tensor_f64(&out[0], 5) == 3);
	assert_int_equal(tensor_i64(&out[1], 0), 6);
}

/* A composite that has no .eval runs as its expansion; the graph itself stays as it was. */
static void test_composite(void **state)
{
	(void)state;
	Sym n = sym_int(f.syms, 2);
	Node x = input("x", DT_f32, 1, &n);
	Op op = op_find("aten.relu");
	if (op == OP_none || op_kind(op) != OP_COMPOSITE)
		skip();
	Attr none = attr_none();
	TypeId type = node_type_id(f.g, x);
	Node y = graph_add(f.g, (Node){0}, op, &x, 1, ir_attrs(f.ir, 1, &none), type, (LocId){0});
	graph_add_output(f.g, "y", y, -1);
	Tensor in = vector(DT_f32, 2, (double[]){-1, 2}), out;
	assert_true(interp(f.ctx, f.g, &in, 1, &out, 1, f.ctx->arena));
	assert_true(tensor_f64(&out, 0) == 0 && tensor_f64(&out, 1) == 2);
	assert_int_equal(node_op(f.g, y), op);
}

/* An error in the middle leaves no memory behind and names the node. */
static void test_error_names_node(void **state)
{
	(void)state;
	Sym n = sym_int(f.syms, 1);
	Node x = input("x", DT_f32, 1, &n), i = input("i", DT_i64, 1, &n);
	Attr attr[] = {attr_none(), attr_none(), attr_int(f.ir, 0),
	               attr_ints((Sym[]){sym_int(f.syms, 0)}, 1), attr_str(f.ir, "check")};
	Sym index_dim[] = {n, n};
	Node in[] = {b_bin(&f.b, OP_add, x, x), b_reshape(&f.b, i, 2, index_dim)};
	Node y = b_node(&f.b, OP_gather, in, 2, attr, 5);
	graph_set_name(f.g, y, "lookup");
	graph_add_output(f.g, "y", y, -1);
	Tensor args[] = {vector(DT_f32, 1, NULL), vector(DT_i64, 1, (double[]){1})}, out;
	assert_false(interp(f.ctx, f.g, args, 2, &out, 1, f.ctx->arena));
	expect_error("gather: index 1 at position [0] is out of range for axis 0 of extent 1");
	assert_non_null(strstr(f.ctx->last->where, "lookup"));
}

static void test_wrong_shape_without_bind(void **state)
{
	(void)state;
	Sym n = sym_int(f.syms, 2);
	graph_add_output(f.g, "y", input("x", DT_f32, 1, &n), -1);
	EvalCtx e = {.ctx = f.ctx, .arena = f.ctx->arena};
	Tensor in = vector(DT_f32, 3, NULL), out;
	assert_false(interp_run(&e, f.g, &in, 1, &out, 1));
	expect_error("input \"x\": its dtype or shape is not the one bound");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_bind_solves),
		TEST(test_bind_range),
		TEST(test_bind_low),
		TEST(test_bind_multiple),
		TEST(test_bind_multiple_range),
		TEST(test_bind_disagree),
		TEST(test_bind_constant),
		TEST(test_bind_rank),
		TEST(test_bind_dtype),
		TEST(test_bind_count),
		TEST(test_bind_unsolvable),
		TEST(test_guard),
		TEST(test_elementwise),
		TEST(test_rounds_per_node),
		TEST(test_tuple_and_alias),
		TEST(test_unaligned_constant),
		TEST(test_short_constant),
		TEST(test_symbolic_shapes),
		TEST(test_composite),
		TEST(test_error_names_node),
		TEST(test_wrong_shape_without_bind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
