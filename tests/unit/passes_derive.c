/* Derivatives of graphs: what stands in the result, and what it gives. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "ir/build/text.h"
#include "ir/interp/interp.h"
#include "transform/transform.h"
#include "tests/unit/ir_fixture.h"

static void expect(const Graph *g, const char *text)
{
	if (!g)
		fail_msg("%s", ctx->last ? ctx->last->text : "no graph");
	Text t;
	text_init(&t, ctx->arena);
	graph_print(g, &t);
	assert_string_equal(t.data, text);
}

static const char chain[] = "graph @main(%x: f32[2, 3], %w: f32[3]) {\n"
			    "  %a = aten.mul.Tensor(%x, %w) : f32[2, 3]\n"
			    "  %s = sin(%a) : f32[2, 3]\n"
			    "  %y = mul(%s, %a) : f32[2, 3]\n"
			    "  return %y\n}\n";

static void test_vjp(void **state)
{
	(void)state;
	expect(transform_vjp(parsed(chain), &(Wrt){0}),
	       "graph @main(%x: f32[2, 3], %w: f32[3], %ct.y: f32[2, 3]) -> f32[2, 3], f32[2, 3], "
	       "f32[3] {\n"
	       "  %1 = broadcast(%w, shape=[2, 3], map=[1]) : f32[2, 3]\n"
	       "  %a = mul(%x, %1) : f32[2, 3]\n"
	       "  %s = sin(%a) : f32[2, 3]\n"
	       "  %y = mul(%s, %a) : f32[2, 3]\n"
	       "  %2 = mul(%a, %ct.y) : f32[2, 3]\n"
	       "  %3 = mul(%s, %ct.y) : f32[2, 3]\n"
	       "  %4 = cos(%a) : f32[2, 3]\n"
	       "  %5 = mul(%4, %2) : f32[2, 3]\n"
	       "  %6 = add(%3, %5) : f32[2, 3]\n"
	       "  %7 = mul(%1, %6) : f32[2, 3]\n"
	       "  %8 = mul(%x, %6) : f32[2, 3]\n"
	       "  %9 = reduce(%8, kind=\"sum\", dims=[0], acc=f32) : f32[3]\n"
	       "  return %y, %7 \"g.x\", %9 \"g.w\"\n}\n");
}

static double interpret(Graph *g, const double *x, uint32_t n, uint32_t output)
{
	Tensor in[8], out[8];
	for (uint32_t k = 0; k < n; k++)
		in[k] = (Tensor){.dtype = DT_f64, .data = (void *)&x[k]};
	if (!interp(ctx, g, in, n, out, g->output.n, ctx->arena))
		fail_msg("%s", ctx->last ? ctx->last->text : "");
	return tensor_f64(&out[output], 0);
}

/* y = log(x0 x1) sin(x1) at (0.5, 0.75), and the second derivative by x1 twice: jvp of vjp, and vjp
 * of vjp. */
static void test_second_order(void **state)
{
	(void)state;
	Graph *g = parsed("graph @main(%a: f64[], %b: f64[]) {\n"
			 "  %p = mul(%a, %b) : f64[]\n"
			 "  %l = log(%p) : f64[]\n"
			 "  %s = sin(%b) : f64[]\n"
			 "  %y = mul(%l, %s) : f64[]\n"
			 "  return %y\n}\n");
	Graph *vjp = transform_vjp(g, &(Wrt){0});
	assert_non_null(vjp);
	const double x[] = {0.5, 0.75, 1, 0, 1};
	const double first = log(0.375) * cos(0.75) + sin(0.75) / 0.75;
	const double second =
		-log(0.375) * sin(0.75) + 2 * cos(0.75) / 0.75 - sin(0.75) / (0.75 * 0.75);
	assert_true(fabs(interpret(vjp, x, 3, 1) - sin(0.75) / 0.5) < 1e-14);
	assert_true(fabs(interpret(vjp, x, 3, 2) - first) < 1e-14);
	Graph *forward = transform_jvp(vjp, &(Wrt){.input = (bool[]){false, true, false}});
	assert_non_null(forward);
	assert_true(fabs(interpret(forward, (double[]){0.5, 0.75, 1, 1}, 4, 5) - second) < 1e-13);
	Graph *reverse = transform_vjp(vjp, &(Wrt){.input = (bool[]){false, true, false}});
	assert_non_null(reverse);
	assert_true(fabs(interpret(reverse, (double[]){0.5, 0.75, 1, 0, 0, 1}, 6, 3) - second) <
		    1e-13);
}

/* ---- cost ---- */

/* Element-wise, contractions with a parameter each, rows with their maximum, sorted rows. */
static Graph *chain_of(uint32_t n, ConstId *param)
{
	static const float value[64];
	static const int64_t dim[] = {8, 8};
	Graph *g = graph_new(ir, "chain");
	Build b = {.g = g};
	Sym rows[] = {sym_var(ir->syms, "B", SYMVAR_SIZE, 1, 1000), b_int(&b, 8)};
	Node first = graph_add_input(g, "x", INPUT_USER, ir_type(ir, DT_f32, 2, rows)), x = first;
	Attr sort[] = {attr_none(), attr_int(ir, 1), attr_bool(false), attr_bool(true)};
	for (uint32_t k = 0; k < n; k++) {
		param[k] = ir_const(ir, (Const){.name = "w",
						.dtype = DT_f32,
						.rank = 2,
						.dim = dim,
						.data = value,
						.bytes = sizeof value,
						.is_param = true});
		x = k % 4 == 0   ? b_matmul(&b, b_un(&b, OP_tanh, x), b_const(&b, param[k]))
		    : k % 4 == 1 ? b_bin(&b, OP_mul, x, b_un(&b, OP_sin, first))
		    : k % 4 == 2
			    ? b_bin(&b, OP_sub, x, b_reduce_keep(&b, REDUCE_MAX, x, 2, DT_none))
			    : b_get(&b, b_node(&b, OP_sort, &x, 1, sort, 4), 0);
	}
	graph_add_output(g, "y", x, -1);
	return g;
}

/* Processor time of both derivatives, and of the derivative of one, of a chain. */
static double time_of_chain(uint32_t n)
{
	ctx = ctx_new();
	assert_non_null(ctx);
	ir = ir_new(ctx);
	ConstId *param = ARENA_ARRAY(ctx->arena, ConstId, n);
	Graph *g = chain_of(n, param);
	Wrt by = {.nparam = n, .param = param};
	clock_t start = clock();
	Graph *vjp = transform_vjp(g, &by);
	assert_non_null(vjp);
	assert_non_null(transform_jvp(g, &by));
	assert_non_null(transform_vjp(vjp, &(Wrt){0}));
	double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	ctx_free(ctx);
	return seconds;
}

/* 16 times as long takes about 16 times as long. */
static void test_linear(void **state)
{
	(void)state;
	double few = time_of_chain(400), many = time_of_chain(6400);
	print_message("%.3f s and %.3f s\n", few, many);
	assert_true(many < 32 * few + 0.5);
}

int main(void)
{
	op_init();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_vjp, setup, teardown),
		cmocka_unit_test_setup_teardown(test_second_order, setup, teardown),
		cmocka_unit_test(test_linear),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
