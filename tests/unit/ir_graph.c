/* Graphs: interning, use lists, replacement, names, guards, clone, inline, dead code, and what the
 * verifier rejects. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/build/build.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/op/import.h"
#include "ir/op/op.h"

static Ctx *ctx;
static Ir *ir;
static Graph *g;

static int setup(void **state)
{
	(void)state;
	ctx = ctx_new();
	assert_non_null(ctx);
	ir = ir_new(ctx);
	g = graph_new(ir, "test");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(ctx);
	return 0;
}

static TypeId vec(int64_t n)
{
	return ir_type_ints(ir, DT_f32, 1, &n);
}

static Node unary(Op op, Node x)
{
	return graph_add(g, (Node){0}, op, &x, 1, (AttrId){0}, node_type_id(g, x), (LocId){0});
}

static Node binary(Op op, Node x, Node y)
{
	Node in[] = {x, y};
	return graph_add(g, (Node){0}, op, in, 2, (AttrId){0}, node_type_id(g, x), (LocId){0});
}

static void test_interning(void **state)
{
	(void)state;
	assert_int_equal(vec(3).i, vec(3).i);
	assert_int_not_equal(vec(3).i, vec(4).i);
	TypeId elem[] = {vec(3), vec(4)};
	TypeId t = ir_tuple(ir, 2, elem);
	assert_int_equal(t.i, ir_tuple(ir, 2, elem).i);
	assert_int_equal(ir_type_of(ir, t)->elem[1].i, vec(4).i);
	assert_int_not_equal(ir_tuple(ir, 0, NULL).i, 0);
	assert_true(sym_is(ir->syms, type_numel(ir, vec(7)), 7));

	Sym two[] = {sym_int(ir->syms, 1), sym_int(ir->syms, 2)};
	bool flags[] = {true, false, true};
	double reals[] = {0.5, -0.0};
	Attr a[] = {attr_none(),
		    attr_ints(two, 2),
		    attr_str(ir, "sum"),
		    attr_float(-0.0),
		    {ATTR_bools, 3, {.bools = flags}},
		    {ATTR_floats, 2, {.floats = reals}}};
	AttrId id = ir_attrs(ir, 6, a);
	two[0] = two[1];
	flags[1] = true; /* lists are copied */
	assert_true(sym_is(ir->syms, ir_attr(ir, id, 1)->ints[0], 1));
	assert_false(ir_attr(ir, id, 4)->bools[1]);
	assert_true(signbit(ir_attr(ir, id, 5)->floats[1]));
	assert_int_not_equal(ir_attrs(ir, 6, a).i, id.i);
	Attr zero = attr_float(0.0), minus = attr_float(-0.0), nan1 = attr_float(NAN);
	Attr nan2 = attr_float(-NAN);
	assert_int_not_equal(ir_attrs(ir, 1, &zero).i, ir_attrs(ir, 1, &minus).i);
	assert_int_equal(ir_attrs(ir, 1, &nan1).i, ir_attrs(ir, 1, &nan2).i);
	double some[] = {1, NAN}, other[] = {1, -NAN};
	Attr list = {ATTR_floats, 2, {.floats = some}}, same = {ATTR_floats, 2, {.floats = other}};
	assert_int_equal(ir_attrs(ir, 1, &list).i, ir_attrs(ir, 1, &same).i);
	Attr none[3] = {{0}};
	assert_int_equal(ir_attrs(ir, 3, none).i, 0);

	assert_int_equal(ir_loc(ir, NULL).i, 0);
	assert_int_equal(ir_loc(ir, " \n").i, 0);
	assert_string_equal(ir_loc_text(ir, ir_loc(ir, " net.py:12\n")), "net.py:12");
}

static void test_uses(void **state)
{
	(void)state;
	Node x = graph_add_input(g, "x", INPUT_USER, vec(3));
	Node y = unary(OP_neg, x), z = binary(OP_add, y, y), w = binary(OP_mul, y, z);
	graph_add_output(g, "w", w, -1);
	graph_add_output(g, "y", y, -1);
	assert_int_equal(node_nuses(g, y), 4);
	assert_true(node_is_output(g, y) && !node_is_output(g, z));
	assert_true(graph_verify(g));
	Node v = graph_add(g, y, OP_abs, &x, 1, (AttrId){0}, vec(3), (LocId){0});
	graph_set_name(g, y, "why");
	graph_replace(g, y, v);
	assert_int_equal(node_nuses(g, y), 0);
	assert_int_equal(node_nuses(g, v), 4);
	assert_string_equal(graph_name(g, v), "why");
	graph_erase(g, y);
	assert_int_equal(node_next(g, v).i, z.i);
	graph_set_operand(g, w, 0, x);
	assert_int_equal(node_in(g, w, 0).i, x.i);
	assert_int_equal(node_nuses(g, v), 3);
	assert_true(graph_verify(g));
	Node late = graph_add_input(g, "late", INPUT_USER, vec(3)); /* before every other node */
	graph_set_operand(g, z, 0, late);
	assert_true(graph_verify(g));
}

static void test_dce(void **state)
{
	(void)state;
	Node x = graph_add_input(g, "x", INPUT_USER, vec(3));
	Node y = unary(OP_neg, x), dead = unary(OP_abs, y);
	unary(OP_exp, dead);
	graph_add_output(g, "y", y, -1);
	assert_true(graph_dce(g));
	assert_int_equal(g->last.i, y.i);
	assert_false(graph_dce(g));
	assert_int_equal(node_nuses(g, x), 1);
	assert_true(graph_verify(g));
}

/* A size that is counted is found by the node that counts it, and not where it bounds another. */
static void test_found(void **state)
{
	(void)state;
	Sym u = sym_var(ir->syms, "u", SYMVAR_UNBACKED, 0, 9),
	    v = sym_var(ir->syms, "v", SYMVAR_UNBACKED, 0, 9);
	Node n = graph_add_input(g, "n", INPUT_USER, ir_type(ir, DT_i64, 0, NULL));
	Build b = {.g = g, .where = "test"};
	b_to_size(&b, n, u, (Sym){0}, "a count");
	Node first = g->last;
	b_to_size(&b, n, v, u, "a smaller count");
	assert_true(node_finds(g, first, u) && node_finds(g, g->last, v));
	assert_false(node_finds(g, first, v));
	assert_false(node_finds(g, g->last, u));
}

static void test_names(void **state)
{
	(void)state;
	Node x = graph_add_input(g, "x", INPUT_USER, vec(3));
	Node a = unary(OP_neg, x), b = unary(OP_neg, x), c = unary(OP_neg, x), d = unary(OP_neg, x);
	graph_set_name(g, a, "conv");
	graph_set_name(g, b, "conv");
	graph_set_name(g, c, "1/ weird");
	assert_string_equal(graph_name(g, a), "conv");
	assert_string_equal(graph_name(g, b), "conv_1");
	assert_string_equal(graph_name(g, c), "_1__weird");
	assert_string_equal(graph_name(g, d), "1");
	unary(OP_neg, x);
	graph_set_name(g, d, "named");
	assert_string_equal(graph_name(g, g->last), "1");
	ctx->file = "m.pt2";
	assert_string_equal(node_where(g, d), "m.pt2: node named");
}

static void test_guards(void **state)
{
	(void)state;
	Sym s = sym_var(ir->syms, "s", SYMVAR_SIZE, 1, 64), k = sym_int(ir->syms, 8);
	graph_guard(g, GUARD_EQ, s, k, "a");
	graph_guard(g, GUARD_EQ, k, s, "again");
	graph_guard(g, GUARD_LE, s, sym_int(ir->syms, 100), "proven");
	graph_guard(g, GUARD_EQ, k, k, "proven");
	assert_int_equal(g->guard.n, 1);
	graph_guard(g, GUARD_NE, s, k, "b");
	assert_int_equal(g->guard.n, 2);
}

static void test_clone_inline(void **state)
{
	(void)state;
	Node x = graph_add_input(g, "x", INPUT_USER, vec(3));
	Node y = unary(OP_neg, x);
	graph_set_name(g, y, "y");
	graph_add_output(g, "out", y, 0);
	graph_guard(g, GUARD_EQ, sym_var(ir->syms, "s", SYMVAR_SIZE, 1, 64), sym_int(ir->syms, 8),
		    "s");
	Graph *copy = graph_clone(g);
	assert_true(graph_verify(copy));
	assert_true(graph_equal(g, copy));
	graph_set_name(copy, copy->last, "z");
	assert_false(graph_equal(g, copy));

	Graph *outer = graph_new(ir, "outer");
	Node a = graph_add_input(outer, "a", INPUT_USER, vec(3)), out;
	graph_inline(outer, (Node){0}, g, &a, &out);
	graph_inline(outer, (Node){0}, g, &out, &out);
	graph_add_output(outer, "out", out, -1);
	assert_true(graph_verify(outer));
	assert_int_equal(node_op(outer, out), OP_neg);
	assert_int_equal(node_in(outer, node_in(outer, out, 0), 0).i, a.i);
	assert_string_equal(graph_name(outer, out), "y_1");
	assert_int_equal(outer->guard.n, 1);
}

static void expect_broken(const char *text)
{
	uint32_t before = ctx->nerror;
	assert_false(graph_verify(g));
	assert_true(ctx->nerror > before);
	if (!strstr(ctx->last->text, text))
		fail_msg("expected \"%s\" in \"%s\"", text, ctx->last->text);
}

/* Two files have a symbol s0 each: in one Ir, too. */
static void test_import(void **state)
{
	(void)state;
	static const char *const text[] = {
		"graph @a(%x: f32[2*s0 + 1, 3]) -> f32[2*s0 + 1, 3] where 2 <= s0 <= 9 ~ 5 {\n"
		"  %y = aten.relu(%x) : f32[2*s0 + 1, 3]\n  return %y\n}\n",
		"graph @b(%x: f32[s0]) -> f32[s0] where 0 <= s0 {\n"
		"  %y = aten.neg(%x) : f32[s0]\n  return %y\n}\n"};
	Ir *to = ir_new(ctx);
	Graph *copy[2];
	Sym s0[2];
	for (int k = 0; k < 2; k++) {
		Graph *one = graph_parse(ir_new(ctx), text[k], "file");
		assert_non_null(one);
		one->decomposed = one->exported = true;
		one->other_mode = "net.py:3";
		copy[k] = graph_import(to, one);
		assert_true(copy[k]->decomposed && copy[k]->exported);
		assert_string_equal(copy[k]->other_mode, "net.py:3");
		assert_true(graph_verify(copy[k]));
		s0[k] = sym_find(to->syms, "s0", 2);
		assert_int_equal(sym_nvars(to->syms), 1);
	}
	assert_int_not_equal(s0[0].i, s0[1].i);
	for (int k = 1; k >= 0; k--) {
		Text t;
		text_init(&t, ctx->arena);
		graph_print(copy[k], &t);
		assert_string_equal(t.data, text[k]);
		assert_int_equal(sym_find(to->syms, "s0", 2).i, s0[k].i);
		Graph *again = graph_parse(to, t.data, "again");
		assert_true(again && graph_equal(again, copy[k]));
	}
}

static void test_verifier(void **state)
{
	(void)state;
	Node x = graph_add_input(g, "x", INPUT_USER, vec(3));
	Node k = graph_add_input(g, "k", INPUT_USER, vec(4));
	Node y = unary(OP_neg, x), z = unary(OP_neg, y);
	graph_add_output(g, "z", z, -1);
	assert_true(graph_verify(g));

	graph_set_operand(g, y, 0, z);
	expect_broken("comes later");
	graph_set_operand(g, y, 0, (Node){0});
	expect_broken("missing");
	graph_set_operand(g, y, 0, k);
	expect_broken("has type");
	graph_set_operand(g, y, 0, x);
	g->node.data[y.i].type = vec(5);
	expect_broken("has type f32[5], expected f32[3]");
	g->node.data[y.i].type = (TypeId){0};
	expect_broken("without value");
	g->node.data[y.i].type = vec(3);
	assert_true(graph_verify(g));

	Attr wrong = attr_bool(true);
	g->node.data[y.i].attr = ir_attrs(ir, 1, &wrong);
	expect_broken("wrong kind");
	g->node.data[y.i].attr = (AttrId){0};
	Use saved = g->node.data[x.i].first_use;
	g->node.data[x.i].first_use = (Use){0};
	expect_broken("uses");
	g->node.data[x.i].first_use = saved;
	g->output.data[0].writes = 1;
	expect_broken("replaces");
	g->output.data[0].writes = 0;
	assert_true(graph_verify(g));
	Node bad[] = {x, k};
	Node sum = graph_add(g, (Node){0}, OP_add, bad, 2, (AttrId){0}, vec(3), (LocId){0});
	expect_broken("operand 1 is");
	graph_erase(g, sum);
	assert_true(graph_verify(g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_interning, setup, teardown),
		cmocka_unit_test_setup_teardown(test_uses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dce, setup, teardown),
		cmocka_unit_test_setup_teardown(test_found, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_guards, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clone_inline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_import, setup, teardown),
		cmocka_unit_test_setup_teardown(test_verifier, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
