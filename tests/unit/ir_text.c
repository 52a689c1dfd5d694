/* The text form: what is printed is parsed back to an equal graph and prints the same; bad text
 * gives one message with line and column; no text does harm (mutations of good texts). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/build/build.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/op/op.h"
#include "tests/unit/ir_fixture.h"

static const char *print(const Graph *g)
{
	Text t;
	text_init(&t, ctx->arena);
	graph_print(g, &t);
	return t.data;
}

static Graph *parse(const char *text)
{
	Graph *g = graph_parse(ir, text, "t");
	if (!g)
		fail_msg("%s: %s\n%s", ctx->last->where, ctx->last->text, text);
	return g;
}

/* Printing and parsing again changes nothing. */
static Graph *round_trip(const char *text)
{
	Graph *g = parse(text);
	const char *once = print(g);
	Graph *h = parse(once);
	assert_true(graph_equal(g, h));
	assert_string_equal(once, print(h));
	return g;
}

/* What is printed exactly as it stands here. */
static const char *const canonical[] = {
	"graph @silu(%x: f32[B, 64]) -> f32[B, 64] where 1 <= B {\n"
	"  %1 = sigmoid(%x) : f32[B, 64]  ; model.py:12\n"
	"  %2 = mul(%x, %1) : f32[B, 64]\n"
	"  return %2\n"
	"}\n",
	"graph @empty() {\n"
	"  return\n"
	"}\n",
	"graph @state(%x: f32[4] \"images\", %m: f32[4] buffer \"bn.mean\", %w: f32[4] param) -> "
	"f32[4], f32[4] {\n"
	"  %sum = add(%x, %m) : f32[4]  ; a ; b\n"
	"  %y = mul(%sum, %w) : f32[4]\n"
	"  return %y \"logits\", %sum \"new\" -> \"bn.mean\"\n"
	"}\n",
	"graph @sizes(%x: f32[s0, 2*s1]) -> f32[s0, 2*s1], none where 2 <= s0 <= 64 ~ 8, 0 <= s1, "
	"unbacked 0 <= u0 <= 9, require s0 <= 2*s1 \"why \\\"so\\\"\", require s1 != u0 {\n"
	"  return %x, none\n"
	"}\n",
	"graph @attrs(%x: i64[2, 3]) -> i64[2, 3] {\n"
	"  %a = reverse(%x, dims=[0, 1]) : i64[2, 3]\n"
	"  %b = slice(%a, start=[0, 0], end=[1, 3], step=[1, 1]) : i64[1, 3]\n"
	"  %c = reshape(%b, shape=[3]) : i64[3]\n"
	"  %f = full(dtype=f16, shape=[], value=-0.0) : f16[]\n"
	"  %i = full(dtype=f32, shape=[2], value=-inf) : f32[2]\n"
	"  %b_1 = full(dtype=bool, shape=[2], value=true) : bool[2]\n"
	"  %t = tuple([%c, %a]) : (i64[3], i64[2, 3])\n"
	"  %g = get(%t, index=1) : i64[2, 3]\n"
	"  return %g\n"
	"}\n",
	"graph @loop(%i: f32[], %xs: f32[5, 2]) -> f32[5, 2] {\n"
	"  %s = scan([%i], [%xs], [], body=graph @body(%c: f32[], %x: f32[2]) -> f32[], f32[2] {\n"
	"    %y = neg(%x) : f32[2]\n"
	"    return %c, %y\n"
	"  }, length=5, reverse=false) : (f32[], f32[5, 2])\n"
	"  %ys = get(%s, index=1) : f32[5, 2]\n"
	"  return %ys\n"
	"}\n",
	"graph @many(\n"
	"    %a: f32[],\n"
	"    %b: f32[],\n"
	"    %c: f32[],\n"
	"    %d: f32[],\n"
	"    %where: f32[]) -> f32[] {\n"
	"  %return = add(%a, %where) : f32[]\n"
	"  return %return\n"
	"}\n",
	"graph @\"odd name\"(%1: f32[2]) -> f32[2] {\n"
	"  %2 = abs(%1) : f32[2]\n"
	"  return %2\n"
	"}\n",
};

static void test_canonical(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof canonical / sizeof *canonical; k++) {
		setup(NULL);
		Graph *g = round_trip(canonical[k]);
		assert_string_equal(print(g), canonical[k]);
		if (!graph_verify(g))
			fail_msg("%s: %s", ctx->last->where, ctx->last->text);
		teardown(NULL);
	}
}

/* Written freely: comments, missing types, numbers in any order. */
static void test_free_form(void **state)
{
	(void)state;
	Graph *g = round_trip("; a comment\n"
			      "graph @f (%x : f32[ n+0 , 4 ]) ; more\n"
			      "  where n <= 10 {\n"
			      "; nothing\n"
			      "%9 = neg(%x) ; net.py:1\n"
			      "%4 = abs(%9) : f32[n, 4] ; net.py:2\n"
			      "  return %4 }");
	assert_string_equal(print(g), "graph @f(%x: f32[n, 4]) -> f32[n, 4] where 0 <= n <= 10 {\n"
				      "  %1 = neg(%x) : f32[n, 4]  ; net.py:1\n"
				      "  %2 = abs(%1) : f32[n, 4]  ; net.py:2\n"
				      "  return %2\n"
				      "}\n");
}

static void test_constant(void **state)
{
	(void)state;
	float data[] = {1, 2};
	int64_t dim[] = {2};
	Const c = {.name = "w", .dtype = DT_f32, .rank = 1, .dim = dim, .data = data, .bytes = 8};
	Graph *g = graph_new(ir, "c");
	Build b = {.g = g};
	Node n = b_const(&b, ir_const(ir, c));
	graph_set_name(g, n, "w");
	graph_add_output(g, "w", n, -1);
	const char *text = print(g);
	assert_non_null(strstr(text, "  %w = const #1 f32[2] sha="));
	assert_true(graph_equal(g, round_trip(text)));
	char *wrong = arena_strdup(ctx->arena, text), *sha = strstr(wrong, "sha=") + 4;
	*sha = *sha == '0' ? '1' : '0';
	assert_null(graph_parse(ir, wrong, "t"));
	assert_non_null(strstr(ctx->last->text, "expected sha="));
}

static const struct {
	const char *text, *where, *message;
} errors[] = {
	{"", "t:1:1", "expected \"graph\""},
	{"graph f()", "t:1:7", "expected \"@\""},
	{"graph @f(%x f32[]) { return }", "t:1:13", "expected \":\""},
	{"graph @f(%x: g32[]) { return }", "t:1:14", "expected a type"},
	{"graph @f(%x: f32[-2]) { return }", "t:1:20", "expected a size of at least 0"},
	{"graph @f(%x: f32[1,,2]) { return }", "t:1:20", "expected a size"},
	{"graph @f(%x: f32[9999999999999999999]) { return }", "t:1:18",
	 "expected an integer of 64"},
	{"graph @f(%x: f32[2], %x: f32[2]) { return }", "t:1:32", "%x is defined already"},
	{"graph @f(%x: f32[2]) {\n  %y = foo(%x)\n  return }", "t:2:8", "got foo"},
	{"graph @f(%x: f32[2]) {\n  %y = neg(%z)\n  return }", "t:2:14", "got %z"},
	{"graph @f(%x: f32[2]) {\n  %y = neg()\n  return }", "t:2:13", "operand \"x\""},
	{"graph @f(%x: f32[2]) {\n  %y = neg(%x, %x)\n  return }", "t:2:16", "no more operands"},
	{"graph @f(%x: f32[2]) {\n  %y = neg(none)\n  return }", "t:2:16", "operand \"x\""},
	{"graph @f(%x: f32[2]) {\n  %y = neg(%x, foo=1)\n  return }", "t:2:16", "new attribute"},
	{"graph @f(%x: f32[2]) {\n  %y = convert(%x)\n  return }", "t:2:19", "attribute \"dtype\""},
	{"graph @f(%x: f32[2]) {\n  %y = convert(%x, dtype=3)\n return }", "t:2:26",
	 "element type"},
	{"graph @f(%x: f32[2]) { return %x -> 7 }", "t:1:38", "expected an input"},
	{"graph @f(%x: f32[2]) { return %x -> \"y\" }", "t:1:40", "got \"y\""},
	{"graph @f(%x: f32[2]) -> f32[3] { return %x }", "t:1:44", "types after \"->\""},
	{"graph @f(%x: f32[s]) where 5 <= s <= 4 { return %x }", "t:1:40", "not empty"},
	{"graph @f(%x: f32[s]) where require s < 4 { return %x }", "t:1:38", "==, != or <="},
	{"graph @f(%x: f32[2]) { return %x } x", "t:1:36", "expected the end"},
	{"graph @f(%x: (f32[2])) { return %x }", "t:1:22", "expected a tensor"},
	{"graph @f() { %c = const #3 f32[] return %c }", "t:1:27", "got #3"},
	{"graph @f(%x: f32[2] \"a", "t:1:23", "at the end of a string"},
};

static void test_errors(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof errors / sizeof *errors; k++) {
		setup(NULL);
		assert_null(graph_parse(ir, errors[k].text, "t"));
		assert_true(ctx->nerror > 0);
		if (!strstr(ctx->last->text, errors[k].message) ||
		    strcmp(ctx->last->where, errors[k].where) != 0)
			fail_msg("%s\nexpected %s: %s\ngot %s: %s", errors[k].text, errors[k].where,
				 errors[k].message, ctx->last->where, ctx->last->text);
		teardown(NULL);
	}
}

static void test_depth(void **state)
{
	(void)state;
	Text t;
	text_init(&t, ctx->arena);
	text_add(&t, "graph @f(%x: ");
	for (int k = 0; k < 100000; k++)
		text_char(&t, '(');
	assert_null(graph_parse(ir, t.data, "t"));
	text_init(&t, ctx->arena);
	text_add(&t, "graph @f(%x: f32[");
	for (int k = 0; k < 100000; k++)
		text_char(&t, '(');
	assert_null(graph_parse(ir, t.data, "t"));
	text_init(&t, ctx->arena);
	for (int k = 0; k < 1000; k++)
		text_add(&t, "graph @f() { %s = scan([], [], [], body=");
	assert_null(graph_parse(ir, t.data, "t"));
}

static uint32_t next(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	return *seed ^= *seed << 5;
}

/* Some bytes replaced, removed, or a piece repeated. */
static char *mutate(const char *text, uint32_t *seed)
{
	static const char bytes[] = "%@#()[]{}:;,=\"\\-<>~ \n0129xfsn_.+*\x01\xff";
	size_t n = strlen(text);
	char *s = arena_alloc(ctx->arena, 2 * n + 1);
	memcpy(s, text, n + 1);
	for (uint32_t k = next(seed) % 4 + 1; k > 0; k--) {
		size_t at = next(seed) % n, len = next(seed) % 12;
		if (len > n - at)
			len = n - at;
		switch (next(seed) % 3) {
		case 0:
			s[at] = bytes[next(seed) % (sizeof bytes - 1)];
			break;
		case 1:
			memmove(s + at, s + at + len, n - at - len + 1);
			break;
		default:
			memmove(s + at, text + next(seed) % (n - len + 1), len);
		}
		n = strlen(s);
		if (!n)
			break;
	}
	return s;
}

/* Parsing has no internal errors, whatever the text. */
static Graph *parse_any(const char *text)
{
	if (setjmp(ctx->unwind))
		fail_msg("internal error %s for\n%s", ctx->bug_text, text);
	return graph_parse(ir, text, "t");
}

/* The verifier may say no, or call a bug what no front end builds. */
static void verify_any(Graph *g)
{
	if (!setjmp(ctx->unwind))
		graph_verify(g);
}

/* Either an error with a place, or a graph that survives printing. */
static void test_mutations(void **state)
{
	(void)state;
	uint32_t seed = 12345, good = 0, bad = 0;
	for (uint32_t k = 0; k < 4000; k++) {
		setup(NULL);
		const char *from = canonical[k % (sizeof canonical / sizeof *canonical)];
		Graph *g = parse_any(mutate(from, &seed));
		if (g)
			round_trip(print(g));
		else
			assert_true(ctx->nerror > 0 && strncmp(ctx->last->where, "t:", 2) == 0);
		good += g != NULL;
		bad += g == NULL;
		if (g)
			verify_any(g);
		teardown(NULL);
	}
	assert_true(good > 100 && bad > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_canonical),
		cmocka_unit_test_setup_teardown(test_free_form, setup, teardown),
		cmocka_unit_test_setup_teardown(test_constant, setup, teardown),
		cmocka_unit_test(test_errors),
		cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
		cmocka_unit_test(test_mutations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
