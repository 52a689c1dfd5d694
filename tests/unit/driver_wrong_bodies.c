/* Wrong calls of weft_trace.h that make branches, loops, sizes and copies of graphs: each is
 * refused with one error, fills out[] with no values, and leaves no graph. So do right calls after
 * an error, after the end and without a trace. Other calls of a trace: driver_wrong.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "weft_trace.h"

static const char plain[] =
	"graph @f(%x: f32[B, 3]) where 1 <= B {\n  %y = neg(%x)\n  return %y\n}\n";

enum { ROOM = 4 };

/* What wrong calls are made with. */
typedef struct {
	Weft *w;
	WeftTrace *t;
	WeftGraph *g, *foreign, *joined;  /* g: one input f32[B, 3], one output */
	WeftValue x, i, c, s, few, other; /* f32[4, 3], i64[], bool[], f32[], f32[2, 3], one of
					     another trace */
	WeftValue both, out[ROOM];        /* both: what an operator with two results gave */
	bool fills;                       /* the wrong call was to fill in out[0] */
} Place;

#define NO ((WeftValue){0, 0})

/* ---- bodies: user is the Place ---- */

#define BODY(name, gives)                                                                          \
	static void name(WeftTrace *t, const WeftValue *in, WeftValue *out, void *user)            \
	{                                                                                          \
		const Place *p = user;                                                             \
		(void)t, (void)in, (void)out, (void)p;                                             \
		gives;                                                                             \
	}
BODY(nothing, (void)0)
BODY(of_x, out[0] = p->x)
BODY(of_i, out[0] = p->i)
BODY(of_c, out[0] = p->c)
BODY(of_few, out[0] = p->few)
BODY(of_both, out[0] = p->both)
BODY(of_other, out[0] = p->other)
BODY(wild, out[0] = ((WeftValue){12345, p->x.trace}))
BODY(negative, out[0] = weft_neg(t, in[0]))
BODY(twice, out[0] = weft_neg(t, in[0]); out[1] = out[0])
BODY(wrong, out[0] = weft_unary(t, "aten.nonsense", p->x))
BODY(bad_symbol, weft_trace_symbol(t, "1", 0, 1); out[0] = p->x)
BODY(inside, weft_cond(t, p->c, wrong, wrong, user, out, 1))

/* ---- wrong calls ---- */

#define COND(c, yes, no) (p->fills = true, weft_cond(p->t, c, yes, no, p, p->out, 1))
#define WHILE(x, test, body)                                                                       \
	(p->fills = true, weft_while_loop(p->t, &(x), 1, test, body, 0, p, p->out))
#define SCAN(x, ninit, nxs, ny)                                                                    \
	(p->fills = true, weft_scan(p->t, x, ninit, nxs, ny, false, twice, p, p->out))
#define LIST(...)             ((const WeftValue[]){__VA_ARGS__})
#define GRAPH(g, in, n, nout) (p->fills = true, weft_trace_graph(p->t, g, in, n, p->out, nout))
#define CALL(op, ...)                                                                              \
	weft_trace_call(p->t, op, (const WeftArg[]){__VA_ARGS__},                                  \
			sizeof((const WeftArg[]){__VA_ARGS__}) / sizeof(WeftArg))
#define SIZES(...)                                                                                 \
	CALL("aten.reshape", weft_arg(p->x),                                                       \
	     weft_arg_sizes((const char *const[]){__VA_ARGS__},                                    \
			    sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

static WeftArg no_list(int kind, uint32_t n)
{
	WeftArg a = {NULL, (WeftArgKind)kind, n, {{0, 0}}};
	a.u.texts = NULL;
	return a;
}

#define ALL(X)                                                                                     \
	X(cond_yes, COND(p->c, NULL, of_x))                                                        \
	X(cond_no, COND(p->c, of_x, NULL))                                                         \
	X(cond_none, COND(NO, of_x, of_x))                                                         \
	X(cond_other, COND(p->other, of_x, of_x))                                                  \
	X(cond_wild, COND(((WeftValue){12345, p->x.trace}), of_x, of_x))                           \
	X(cond_both, COND(p->both, of_x, of_x))                                                    \
	X(cond_float, COND(p->s, of_x, of_x))                                                      \
	X(cond_rank, COND(weft_unary(p->t, "aten.logical_not", p->x), of_x, of_x))                 \
	X(cond_room, weft_cond(p->t, p->c, of_x, of_x, p, NULL, 1))                                \
	X(cond_more, weft_cond(p->t, p->c, of_x, of_x, p, p->out, 2))                              \
	X(cond_nothing, COND(p->c, nothing, of_x))                                                 \
	X(cond_nothing_else, COND(p->c, of_x, nothing))                                            \
	X(cond_gives_other, COND(p->c, of_other, of_x))                                            \
	X(cond_gives_wild, COND(p->c, of_x, wild))                                                 \
	X(cond_gives_both, COND(p->c, of_both, of_x))                                              \
	X(cond_dtypes, COND(p->c, of_x, of_i))                                                     \
	X(cond_shapes, COND(p->c, of_x, of_few))                                                   \
	X(cond_wrong, COND(p->c, wrong, of_x))                                                     \
	X(cond_name, COND(p->c, of_x, bad_symbol))                                                 \
	X(cond_inside, COND(p->c, of_x, inside))                                                   \
	X(while_test, WHILE(p->x, NULL, negative))                                                 \
	X(while_body, WHILE(p->x, of_c, NULL))                                                     \
	X(while_values, weft_while_loop(p->t, NULL, 1, of_c, negative, 0, p, p->out))              \
	X(while_room, weft_while_loop(p->t, &p->x, 1, of_c, negative, 0, p, NULL))                 \
	X(while_most, weft_while_loop(p->t, &p->x, 1, of_c, negative, -1, p, p->out))              \
	X(while_least, weft_while_loop(p->t, &p->x, 1, of_c, negative, INT64_MIN, p, p->out))      \
	X(while_none, WHILE(NO, of_c, negative))                                                   \
	X(while_other, WHILE(p->other, of_c, negative))                                            \
	X(while_both, WHILE(p->both, of_c, negative))                                              \
	X(while_tests_nothing, WHILE(p->x, nothing, negative))                                     \
	X(while_tests_float, WHILE(p->x, of_x, negative))                                          \
	X(while_tests_integer, WHILE(p->x, of_i, negative))                                        \
	X(while_tests_other, WHILE(p->x, of_other, negative))                                      \
	X(while_nothing, WHILE(p->x, of_c, nothing))                                               \
	X(while_dtype, WHILE(p->x, of_c, of_i))                                                    \
	X(while_shape, WHILE(p->x, of_c, of_few))                                                  \
	X(while_gives_other, WHILE(p->x, of_c, of_other))                                          \
	X(scan_body, weft_scan(p->t, &p->x, 0, 1, 1, false, NULL, p, p->out))                      \
	X(scan_values, SCAN(NULL, 1, 1, 1))                                                        \
	X(scan_room, weft_scan(p->t, &p->x, 0, 1, 1, false, negative, p, NULL))                    \
	X(scan_over_nothing, SCAN(&p->s, 1, 0, 1))                                                 \
	X(scan_scalar, SCAN(LIST(p->s, p->s), 1, 1, 1))                                            \
	X(scan_extents, SCAN(LIST(p->x, p->few), 0, 2, 2))                                         \
	X(scan_none, SCAN(LIST(p->s, NO), 1, 1, 1))                                                \
	X(scan_other, SCAN(LIST(p->other, p->x), 1, 1, 1))                                         \
	X(scan_both, SCAN(&p->both, 0, 1, 1))                                                      \
	X(scan_nothing, weft_scan(p->t, &p->x, 0, 1, 1, false, nothing, p, p->out))                \
	X(scan_carry, weft_scan(p->t, LIST(p->x, p->x), 1, 1, 0, false, of_few, p, p->out))        \
	X(scan_more_results, weft_scan(p->t, &p->x, 0, 1, 3, true, twice, p, p->out))              \
	X(scan_many, weft_scan(p->t, LIST(p->x, p->x), UINT32_MAX, 2, 1, false, twice, p, p->out)) \
	X(scan_many_more,                                                                          \
	  weft_scan(p->t, LIST(p->x, p->x), UINT32_MAX, 1, 1, false, twice, p, p->out))            \
	X(scan_many_results,                                                                       \
	  weft_scan(p->t, LIST(p->x, p->x), 1, 1, UINT32_MAX, false, twice, p, p->out))            \
	X(graph_null, GRAPH(NULL, &p->x, 1, 1))                                                    \
	X(graph_foreign, GRAPH(p->foreign, &p->x, 1, 1))                                           \
	X(graph_joined, GRAPH(p->joined, &p->x, 1, 1))                                             \
	X(graph_values, GRAPH(p->g, NULL, 1, 1))                                                   \
	X(graph_room, weft_trace_graph(p->t, p->g, &p->x, 1, NULL, 1))                             \
	X(graph_few, GRAPH(p->g, NULL, 0, 1))                                                      \
	X(graph_many, GRAPH(p->g, LIST(p->x, p->x), 2, 1))                                         \
	X(graph_countless, GRAPH(p->g, &p->x, UINT32_MAX, 1))                                      \
	X(graph_no_results, weft_trace_graph(p->t, p->g, &p->x, 1, NULL, 0))                       \
	X(graph_results, GRAPH(p->g, &p->x, 1, 2))                                                 \
	X(graph_none, GRAPH(p->g, &NO, 1, 1))                                                      \
	X(graph_other, GRAPH(p->g, &p->other, 1, 1))                                               \
	X(graph_wild, GRAPH(p->g, LIST({12345, p->x.trace}), 1, 1))                                \
	X(graph_both, GRAPH(p->g, &p->both, 1, 1))                                                 \
	X(graph_dtype, GRAPH(p->g, &p->c, 1, 1))                                                   \
	X(graph_rank, GRAPH(p->g, &p->s, 1, 1))                                                    \
	X(graph_extent, GRAPH(p->g, LIST(weft_transpose(p->t, p->x, 0, 1)), 1, 1))                 \
	X(size_null, weft_trace_size(p->t, NULL, p->i, 0, 5))                                      \
	X(size_empty, weft_trace_size(p->t, "", p->i, 0, 5))                                       \
	X(size_bad, weft_trace_size(p->t, "n+1", p->i, 0, 5))                                      \
	X(size_twice, weft_trace_size(p->t, "n", p->i, 0, 5);                                      \
	  weft_trace_size(p->t, "n", p->i, 0, 5))                                                  \
	X(size_of_symbol, weft_trace_symbol(p->t, "n", 0, 5);                                      \
	  weft_trace_size(p->t, "n", p->i, 0, 5))                                                  \
	X(size_range, weft_trace_size(p->t, "n", p->i, 3, 2))                                      \
	X(size_least, weft_trace_size(p->t, "n", p->i, INT64_MIN, INT64_MAX))                      \
	X(size_none, weft_trace_size(p->t, "n", NO, 0, 5))                                         \
	X(size_other, weft_trace_size(p->t, "n", p->other, 0, 5))                                  \
	X(size_both, weft_trace_size(p->t, "n", p->both, 0, 5))                                    \
	X(size_float, weft_trace_size(p->t, "n", p->s, 0, 5))                                      \
	X(size_rank, weft_trace_size(p->t, "n", weft_trace_input(p->t, "k", "i64[1]"), 0, 5))      \
	X(integer_null, weft_trace_integer(p->t, NULL))                                            \
	X(integer_empty, weft_trace_integer(p->t, ""))                                             \
	X(integer_unknown, weft_trace_integer(p->t, "2*nobody"))                                   \
	X(integer_rest, weft_trace_integer(p->t, "2*B )"))                                         \
	X(integer_open, weft_trace_integer(p->t, "2*(B + "))                                       \
	X(integer_real, weft_trace_integer(p->t, "1.5"))                                           \
	X(integer_zero, weft_trace_integer(p->t, "floordiv(B, 0)"))                                \
	X(integer_huge,                                                                            \
	  weft_trace_integer(p->t, "9223372036854775807 * B + 9223372036854775807 * B"))           \
	X(integer_long, weft_trace_integer(p->t, "99999999999999999999999"))                       \
	X(arg_size_null,                                                                           \
	  CALL("aten.select.int", weft_arg(p->x), weft_arg_int(0), weft_arg_size(NULL)))           \
	X(arg_size_empty,                                                                          \
	  CALL("aten.select.int", weft_arg(p->x), weft_arg_int(0), weft_arg_size("")))             \
	X(arg_size_kind, CALL("aten.softmax.int", weft_arg(p->x), weft_arg_size("B")))             \
	X(arg_sizes_null, CALL("aten.reshape", weft_arg(p->x), no_list(WEFT_ARG_SIZES, 2)))        \
	X(arg_sizes_long,                                                                          \
	  CALL("aten.reshape", weft_arg(p->x), no_list(WEFT_ARG_SIZES, UINT32_MAX)))               \
	X(arg_sizes_none, SIZES(NULL))                                                             \
	X(arg_sizes_empty, SIZES(""))                                                              \
	X(arg_sizes_unknown, SIZES("4", "Q"))                                                      \
	X(arg_sizes_count, SIZES("4", "4"))                                                        \
	X(unary_null, weft_unary(p->t, NULL, p->x))                                                \
	X(unary_none, weft_unary(p->t, "aten.neg", NO))                                            \
	X(binary_empty, weft_binary(p->t, "", p->x, p->x))                                         \
	X(binary_none, weft_binary(p->t, "aten.add.Tensor", p->x, NO))                             \
	X(number_null, weft_with_number(p->t, NULL, p->x, 1))                                      \
	X(number_none, weft_with_number(p->t, "aten.add.Tensor", NO, 1))                           \
	X(number_unary, weft_with_number(p->t, "aten.neg", p->x, 1))                               \
	X(scale_other, weft_scale(p->t, p->other, 2))                                              \
	X(layer_norm_none, weft_layer_norm(p->t, p->x, NO, NO, 1e-5))                              \
	X(layer_norm_shape, weft_layer_norm(p->t, p->x, p->few, NO, 1e-5))                         \
	X(batch_norm_shape, weft_batch_norm(p->t, p->x, NO, NO, p->x, p->x, 1e-5))                 \
	X(attention_none, weft_attention(p->t, NO, p->x, p->x, NO, false))                         \
	X(attention_shape,                                                                         \
	  weft_attention(p->t, p->x, weft_transpose(p->t, p->x, 0, 1), p->x, NO, false))           \
	X(cross_entropy_none, weft_cross_entropy(p->t, p->x, NO))                                  \
	X(cross_entropy_shape, weft_cross_entropy(p->t, p->x, p->i))                               \
	X(mse_none, weft_mse_loss(p->t, NO, p->x))                                                 \
	X(mse_shape, weft_mse_loss(p->t, p->x, p->few))                                            \
	X(line_then_wrong, weft_trace_line(p->t, ""); weft_unary(p->t, "aten.nonsense", p->x))

typedef void WrongFn(Place *);
#define DEFINE(name, call)                                                                         \
	static void wrong_##name(Place *p)                                                         \
	{                                                                                          \
		call;                                                                              \
	}
#define ROW(name, call) {#name, wrong_##name},
ALL(DEFINE)
static const struct {
	const char *name;
	WrongFn *fn;
} wrong_call[] = {ALL(ROW)};

/* A trace with an output, to which nothing is wrong. */
static void fill(Place *p, Weft *other)
{
	*p = (Place){.w = weft_new(), .foreign = weft_parse(other, plain, "other")};
	p->g = weft_parse(p->w, plain, "f");
	p->joined =
		weft_join(p->w, 2, (const char *const[]){"a", "b"}, (WeftGraph *[]){p->g, p->g});
	p->other = weft_trace_input(weft_trace_new(p->w, "other"), "z", "f32[4, 3]");
	p->t = weft_trace_new(p->w, "model");
	p->x = weft_trace_input(p->t, "x", "f32[4, 3]");
	p->i = weft_trace_input(p->t, "i", "i64[]");
	p->c = weft_trace_input(p->t, "c", "bool[]");
	p->s = weft_trace_input(p->t, "s", "f32[]");
	p->few = weft_trace_input(p->t, "few", "f32[2, 3]");
	weft_trace_input(p->t, "b", "f32[B]");
	p->both = weft_trace_call(p->t, "aten.max.dim",
				  (const WeftArg[]){weft_arg(p->x), weft_arg_int(0)}, 2);
	weft_trace_output(p->t, "y", p->x);
	if (!p->g || !p->joined || !p->foreign || !p->both.node || weft_nmessages(p->w))
		fail_msg("%s", weft_messages(p->w));
	for (int k = 0; k < ROOM; k++)
		p->out[k] = p->x;
}

static void test_calls(void **state)
{
	(void)state;
	uint32_t failures = 0;
	for (size_t k = 0; k < sizeof wrong_call / sizeof *wrong_call; k++) {
		Weft *other = weft_new();
		Place p;
		fill(&p, other);
		wrong_call[k].fn(&p);
		bool taken = weft_trace_end(p.t),
		     one = weft_nmessages(p.w) == 1 &&
			   weft_message(p.w, 0).severity == WEFT_ERROR &&
			   weft_message(p.w, 0).text[0] &&
			   !strstr(weft_message(p.w, 0).text, "internal error");
		if (taken || !one || (p.fills && p.out[0].node)) {
			print_error("%s: %s, %u messages: %s\n", wrong_call[k].name,
				    taken ? "taken for right" : "refused", weft_nmessages(p.w),
				    weft_messages(p.w));
			failures++;
		}
		weft_free(p.w);
		weft_free(other);
	}
	print_message("%zu wrong calls\n", sizeof wrong_call / sizeof *wrong_call);
	assert_int_equal(failures, 0);
}

/* ---- right calls of a trace that takes no calls ---- */

#define RIGHT(X)                                                                                   \
	X(cond, COND(p->c, of_x, of_x))                                                            \
	X(while, WHILE(p->x, of_c, negative))                                                      \
	X(scan, SCAN(LIST(p->s, p->x), 1, 1, 1))                                                   \
	X(graph, GRAPH(p->g, &p->x, 1, 1))                                                         \
	X(integer, p->out[0] = weft_trace_integer(p->t, "2*B + 1"))                                \
	X(operator, p->out[0] = weft_scale(p->t, p->x, 2))                                         \
	X(layer, p->out[0] = weft_layer_norm(p->t, p->x, p->s, NO, 1e-5))                          \
	X(loss, p->out[0] = weft_mse_loss(p->t, p->x, p->x))                                       \
	X(size, weft_trace_size(p->t, "n", p->i, 0, 5); p->out[0] = NO)                            \
	X(line, weft_trace_line(p->t, "model.py:31"); p->out[0] = NO)

#undef DEFINE
#define DEFINE(name, call)                                                                         \
	static void right_##name(Place *p)                                                         \
	{                                                                                          \
		call;                                                                              \
	}
#undef ROW
#define ROW(name, call) {#name, right_##name},
RIGHT(DEFINE)
static const struct {
	const char *name;
	WrongFn *fn;
} right_call[] = {RIGHT(ROW)};

/* A trace that has failed, one that has ended, and none: the number of errors in all. */
static void test_refuses_all(void **state)
{
	(void)state;
	static const uint32_t errors[] = {1, 1, 0};
	uint32_t failures = 0;
	for (size_t k = 0; k < sizeof right_call / sizeof *right_call; k++)
		for (int i = 0; i < 3; i++) {
			Weft *other = weft_new();
			Place p;
			fill(&p, other);
			WeftTrace *t = p.t;
			if (i == 0)
				weft_trace_integer(t, NULL);
			else if (i == 1)
				assert_non_null(weft_trace_end(t));
			else
				p.t = NULL;
			right_call[k].fn(&p);
			if (p.out[0].node || weft_nmessages(p.w) != errors[i] ||
			    (i < 2 && weft_trace_end(t))) {
				print_error("%s, %d: value %u, %u messages: %s\n",
					    right_call[k].name, i, p.out[0].node,
					    weft_nmessages(p.w), weft_messages(p.w));
				failures++;
			}
			weft_free(p.w);
			weft_free(other);
		}
	assert_int_equal(failures, 0);
}

/* What is asked without a trace. */
static void test_supports(void **state)
{
	(void)state;
	Weft *w = weft_new();
	const WeftDType f32 = {WEFT_FLOAT, 32, 1}, wild[] = {{77, 3, 1},
							     {WEFT_FLOAT, 32, 0},
							     {WEFT_INT, 0, 1},
							     {WEFT_FLOAT, 32, 4}};
	assert_true(weft_trace_supports(w, "aten.neg", &f32, 1) &&
		    weft_trace_supports(w, "aten.neg", NULL, 0));
	assert_false(weft_trace_supports(NULL, "aten.neg", &f32, 1));
	assert_false(weft_trace_supports(w, "aten.nonsense", &f32, 1) ||
		     weft_trace_supports(w, "aten.neg", (const WeftDType[2]){f32, f32}, 2));
	for (size_t k = 0; k < sizeof wild / sizeof *wild; k++)
		assert_false(weft_trace_supports(w, "aten.neg", &wild[k], 1));
	assert_int_equal(weft_nmessages(w), 0);
	assert_false(weft_trace_supports(w, NULL, &f32, 1));
	assert_int_equal(weft_nmessages(w), 1);
	assert_false(weft_trace_supports(w, "", &f32, 1));
	assert_int_equal(weft_nmessages(w), 2);
	assert_false(weft_trace_supports(w, "aten.neg", NULL, 1) ||
		     weft_trace_supports(w, "aten.neg", NULL, UINT32_MAX));
	assert_int_equal(weft_nmessages(w), 4);
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls),
					   cmocka_unit_test(test_refuses_all),
					   cmocka_unit_test(test_supports)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
