/* Derivatives through loops and branches: of graphs in f64, against differences, in two orders;
 * what is kept; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "transform/transform.h"
#include "tests/oracle/derivative.h"
#include "tests/unit/ir_fixture.h"

static void failed(void *user, const char *what)
{
	(void)user;
	fail_msg("%s", what);
}

/* Inputs of the extents in dim[], one after the other, where the graph has symbols; ints and bools
 * are `number`. */
static void check(const char *text, const int64_t *size, int64_t number)
{
	if (setjmp(ctx->unwind))
		fail_msg("%s", ctx->bug_text);
	Graph *g = parsed(text);
	Tensor in[8];
	uint32_t at = 0;
	Derivative d = {.ctx = ctx, .rng = 7, .failed = failed};
	for (uint32_t k = 0; k < g->input.n; k++) {
		Type t = *node_type(g, g->input.data[k].node);
		Tensor *x = &in[k];
		*x = (Tensor){.dtype = t.dtype, .rank = t.n};
		for (uint32_t j = 0; j < t.n; j++)
			if (!sym_is_const(ir->syms, t.dim[j], &x->dim[j]))
				x->dim[j] = size[at++];
		x->data = arena_calloc(ctx->arena, tensor_bytes(x) + 1, 1);
		for (int64_t i = 0; i < tensor_numel(x); i++)
			if (dtype_is_float(t.dtype))
				tensor_set_f64(x, i, 0.3 + 0.1 * (double)((i * 7 + k * 3) % 11));
			else
				tensor_set_i64(x, i, number);
	}
	Point p;
	assert_true(point_of(g, in, g->input.n, ctx->arena, &p));
	assert_true(derivative_check_twice(&d, p));
	assert_true(d.checked > 0 || size);
}

/* ---- scan ---- */

#define CELL(reverse)                                                                              \
	"graph @main(%h: f64[2, 3], %xs: f64[T, 2, 3], %w: f64[3, 3], %b: f64[3]) {\n"             \
	"  %r = scan([%h], [%xs], [%w, %b], body=graph @cell(%h: f64[2, 3], %x: f64[2, 3], %w: "   \
	"f64[3, 3], %b: f64[3]) {\n"                                                               \
	"    %p = contract(%h, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f64)\n"       \
	"    %c = broadcast(%b, shape=[2, 3], map=[1])\n"                                          \
	"    %q = add(%p, %c)\n    %s = add(%q, %x)\n    %y = tanh(%s)\n    %z = mul(%y, %h)\n"    \
	"    return %y, %z\n  }, length=T, reverse=" reverse ")\n"                                 \
	"  %y = get(%r, index=0)\n  %z = get(%r, index=1)\n  return %y, %z\n}\n"

static void test_cell(void **state)
{
	(void)state;
	for (int64_t t = 0; t < 4; t++) {
		check(CELL("false"), (int64_t[]){t}, 0);
		check(CELL("true"), (int64_t[]){t}, 0);
	}
}

/* A scan in a scan, a carry without derivative, a result that is an operand, one that nothing
 * reaches. */
static void test_nested(void **state)
{
	(void)state;
	check("graph @main(%h: f64[2], %i: i64[], %xs: f64[3, 2], %w: f64[2]) {\n"
	      "  %r = scan([%h, %i], [%xs], [%w], body=graph @outer(%h: f64[2], %i: i64[], %x: "
	      "f64[2], %w: f64[2]) {\n"
	      "    %in = scan([%h], [], [%w, %x], body=graph @inner(%h: f64[2], %w: f64[2], %x: "
	      "f64[2]) {\n"
	      "      %a = mul(%h, %w)\n      %s = sin(%a)\n      %y = add(%s, %x)\n      return "
	      "%y, %a\n"
	      "    }, length=2, reverse=false)\n"
	      "    %y = get(%in, index=0)\n    %a = get(%in, index=1)\n"
	      "    %s = reduce(%a, kind=\"sum\", dims=[0], acc=f64)\n"
	      "    %one = full(value=1, shape=[], dtype=i64)\n    %j = add(%i, %one)\n"
	      "    %f = convert(%j, dtype=f64)\n    %ff = broadcast(%f, shape=[2], map=[])\n    %z "
	      "= mul(%s, %ff)\n"
	      "    return %y, %j, %z, %x\n  }, length=3, reverse=true)\n"
	      "  %y = get(%r, index=0)\n  %z = get(%r, index=2)\n  %x = get(%r, index=3)\n  return "
	      "%y, %z, %x\n}\n",
	      NULL, 2);
}

/* ---- cond ---- */

static const char branches[] =
	"graph @main(%p: bool[], %x: f64[2, 3], %w: f64[3, 3], %v: f64[2, 3]) {\n"
	"  %r = cond(%p, [%x, %w, %v], yes=graph @yes(%x: f64[2, 3], %w: f64[3, 3], %v: f64[2, 3]) "
	"{\n"
	"    %p = contract(%x, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f64)\n"
	"    %y = tanh(%p)\n    %s = reduce(%y, kind=\"sum\", dims=[0, 1], acc=f64)\n    return "
	"%y, %s\n"
	"  }, no=graph @no(%x: f64[2, 3], %w: f64[3, 3], %v: f64[2, 3]) {\n"
	"    %e = exp(%x)\n    %s = reduce(%e, kind=\"max\", dims=[0, 1], acc=f64)\n    %l = "
	"log(%s)\n    return %v, %l\n  })\n"
	"  %y = get(%r, index=0)\n  %s = get(%r, index=1)\n  %m = sin(%s)\n  return %y, %m\n}\n";

static void test_branches(void **state)
{
	(void)state;
	check(branches, NULL, 0);
	check(branches, NULL, 1);
}

/* A branch in each round, taken by the round's own condition. */
static void test_branch_in_scan(void **state)
{
	(void)state;
	check("graph @main(%h: f64[2], %xs: f64[4, 2], %w: f64[2]) {\n"
	      "  %r = scan([%h], [%xs], [%w], body=graph @step(%h: f64[2], %x: f64[2], %w: f64[2]) "
	      "{\n"
	      "    %s = reduce(%x, kind=\"sum\", dims=[0], acc=f64)\n    %t = full(value=1.5, "
	      "shape=[], dtype=f64)\n"
	      "    %p = gt(%s, %t)\n"
	      "    %c = cond(%p, [%h, %w], yes=graph @yes(%h: f64[2], %w: f64[2]) {\n"
	      "      %a = mul(%h, %w)\n      %y = exp(%a)\n      return %y\n"
	      "    }, no=graph @no(%h: f64[2], %w: f64[2]) {\n      %y = sin(%h)\n      return "
	      "%y\n    })\n"
	      "    %y = get(%c, index=0)\n    return %y\n  }, length=4, reverse=false)\n"
	      "  %y = get(%r, index=0)\n  return %y\n}\n",
	      NULL, 0);
}

/* ---- while ---- */

/* From `start` while `test` holds: r = sin(r w), the counter up by 2. */
#define ROUNDS(start, test, most)                                                                  \
	"graph @main(%r: f64[3], %w: f64[3]) {\n  %i = full(value=" start                          \
	", shape=[], dtype=i64)\n"                                                                 \
	"  %o = while([%i, %r], [%w], cond=graph @more(%i: i64[], %r: f64[3], %w: f64[3]) "        \
	"{\n" test "    return %c\n"                                                               \
	"  }, body=graph @step(%i: i64[], %r: f64[3], %w: f64[3]) {\n"                             \
	"    %two = full(value=2, shape=[], dtype=i64)\n    %j = add(%i, %two)\n    %a = mul(%r, " \
	"%w)\n"                                                                                    \
	"    %s = reduce(%a, kind=\"sum\", dims=[0], acc=f64)\n    %b = broadcast(%s, shape=[3], " \
	"map=[])\n    %t = mul(%b, %w)\n"                                                          \
	"    %y = sin(%t)\n    return %j, %y\n  }" most ")\n"                                      \
	"  %y = get(%o, index=1)\n  return %y\n}\n"
#define LIMIT(n) "    %n = full(value=" n ", shape=[], dtype=i64)\n"
#define SMALL                                                                                      \
	"    %s = reduce(%r, kind=\"sum\", dims=[0], acc=f64)\n    %t = full(value=9, shape=[], "  \
	"dtype=f64)\n    %d = lt(%s, %t)\n"

static void test_counted(void **state)
{
	(void)state;
	const char *text = ROUNDS("-1", LIMIT("5") "    %c = lt(%i, %n)\n", "");
	check(text, NULL, 0);
	check(ROUNDS("-1", LIMIT("5") "    %c = ge(%n, %i)\n", ""), NULL, 0);
	check(ROUNDS("7", LIMIT("5") "    %c = lt(%i, %n)\n", ""), NULL, 0);
	/* three rounds: a scan, whose backward scan reads what it kept */
	Graph *g = transform_vjp(parsed(text), &(Wrt){0});
	uint32_t scans = 0;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		assert_int_not_equal(node_op(g, n), OP_while);
		if (node_op(g, n) == OP_scan) {
			scans++;
			assert_true(sym_is(ir->syms, node_sym(g, n, "length"), 3));
		}
	}
	assert_int_equal(scans, 2);
}

/* A limit that is made from itself, 40 times: 2^40 ways lead to its beginning. */
static void test_deep_limit(void **state)
{
	(void)state;
	Text t;
	text_init(&t, ctx->arena);
	text_add(&t, LIMIT("5"));
	for (uint32_t k = 0; k < 40; k++)
		text_printf(&t,
			    "    %%a%u = add(%%n%.0u, %%n%.0u)\n    %%n%u = sub(%%a%u, %%n%.0u)\n",
			    k + 1, k, k, k + 1, k + 1, k);
	text_add(&t, "    %c = lt(%i, %n40)\n");
	Text all;
	text_init(&all, ctx->arena);
	static const char whole[] = ROUNDS("-1", "@", "");
	const char *at = strstr(whole, "@    return");
	text_printf(&all, "%.*s%s%s", (int)(at - whole), whole, t.data, at + 1);
	Graph *g = transform_vjp(parsed(all.data), &(Wrt){0});
	assert_non_null(g);
	for (Node n = g->first; n.i; n = node_next(g, n))
		assert_int_not_equal(node_op(g, n), OP_while);
}

static void test_bounded(void **state)
{
	(void)state;
	check(ROUNDS("0", LIMIT("9") SMALL "    %e = lt(%i, %n)\n    %c = bit_and(%e, %d)\n", ""),
	      NULL, 0);
	check(ROUNDS("0", LIMIT("3") "    %k = add(%i, %i)\n    %c = lt(%k, %n)\n", ", most=7"),
	      NULL, 0);
	/* no round at all */
	check(ROUNDS("0", LIMIT("0") SMALL "    %e = lt(%i, %n)\n    %c = bit_and(%e, %d)\n", ""),
	      NULL, 0);
}

static void test_refused(void **state)
{
	(void)state;
	const char *unknown =
		ROUNDS("0", LIMIT("3") "    %k = add(%i, %i)\n    %c = lt(%k, %n)\n", "");
	assert_null(transform_vjp(parsed(unknown), &(Wrt){0}));
	assert_non_null(strstr(ctx->last->text, "number of rounds of this loop is not known"));
	assert_non_null(transform_jvp(parsed(unknown), &(Wrt){0}));
	/* more rounds than there is room for */
	Graph *g = transform_vjp(
		parsed(ROUNDS("0", LIMIT("9") "    %k = add(%i, %i)\n    %c = lt(%k, %n)\n",
			      ", most=2")),
		&(Wrt){0});
	assert_non_null(g);
	double v[3] = {1, 2, 3};
	Tensor x = {.dtype = DT_f64, .rank = 1, .dim = {3}, .data = v}, in[3] = {x, x, x}, out[3];
	assert_false(interp(ctx, g, in, 3, out, 3, ctx->arena));
	assert_non_null(strstr(ctx->last->text, "rounds, more than the 2 that its bound for "
						"derivatives says"));
}

/* A parameter that only bodies read, one of them within another, and one that the graph reads
 * too. */
static void test_constants(void **state)
{
	(void)state;
	static const double value[2] = {0.75, -0.5};
	static const int64_t dim[] = {2};
	ConstId c[2];
	for (uint32_t k = 0; k < 2; k++)
		c[k] = ir_const(ir, (Const){.name = k ? "v" : "w",
					    .dtype = DT_f64,
					    .rank = 1,
					    .dim = dim,
					    .data = value,
					    .bytes = 16,
					    .is_param = true});
	Graph *g = parsed(
		"graph @main(%p: bool[], %h: f64[2]) {\n"
		"  %r = scan([%h], [], [], body=graph @step(%h: f64[2]) {\n"
		"    %t = full(value=true, shape=[], dtype=bool)\n"
		"    %c = cond(%t, [%h], yes=graph @yes(%h: f64[2]) {\n"
		"      %w = constant(value=#1) : f64[2]\n      %a = mul(%h, %w)\n      return %a\n"
		"    }, no=graph @no(%h: f64[2]) {\n      return %h\n    })\n"
		"    %y = get(%c, index=0)\n    return %y\n  }, length=3, reverse=false)\n"
		"  %y = get(%r, index=0)\n  %v = constant(value=#2) : f64[2]\n  %w = "
		"constant(value=#1) : f64[2]\n"
		"  %z = mul(%y, %v)\n  %s = mul(%z, %w)\n  return %s\n}\n");
	Graph *vjp = transform_vjp(g, &(Wrt){.nparam = 2, .param = c});
	assert_non_null(vjp);
	uint8_t yes = 1;
	double h[2] = {2, 3}, ct[2] = {1, 1};
	Tensor in[] = {{.dtype = DT_bool, .data = &yes},
		       {.dtype = DT_f64, .rank = 1, .dim = {2}, .data = h},
		       {.dtype = DT_f64, .rank = 1, .dim = {2}, .data = ct}},
	       out[4];
	assert_true(interp(ctx, vjp, in, 3, out, 4, ctx->arena));
	for (uint32_t k = 0; k < 2; k++) { /* h w^3 v w: by w and by v */
		double w = value[k];
		assert_true(fabs(tensor_f64(&out[2], k) - 4 * h[k] * w * w * w * w) < 1e-12);
		assert_true(fabs(tensor_f64(&out[3], k) - h[k] * w * w * w * w) < 1e-12);
	}
}

int main(void)
{
	op_init();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cell, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nested, setup, teardown),
		cmocka_unit_test_setup_teardown(test_branches, setup, teardown),
		cmocka_unit_test_setup_teardown(test_branch_in_scan, setup, teardown),
		cmocka_unit_test_setup_teardown(test_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deep_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_constants, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
