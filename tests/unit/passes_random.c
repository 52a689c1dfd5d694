/* Which key and stream every node that draws gets, in branches and loops too: all numbers against
 * docs/random.md, computed here. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/interp/interp.h"
#include "ops/prim/random.h"
#include "passes/random.h"
#include "tests/unit/ir_fixture.h"

enum { MOST = 16, SEED = 11 };

/* ---- the definition ---- */

typedef struct {
	uint64_t word[2];
} Key;

static void philox(uint32_t x[4], uint32_t k, uint32_t l)
{
	for (int round = 0; round < 10; round++) {
		uint64_t p = (uint64_t)x[0] * 0xd2511f53u, q = (uint64_t)x[2] * 0xcd9e8d57u;
		uint32_t next[4] = {(uint32_t)(q >> 32) ^ x[1] ^ k, (uint32_t)q,
				    (uint32_t)(p >> 32) ^ x[3] ^ l, (uint32_t)p};
		memcpy(x, next, sizeof next);
		k += 0x9e3779b9u;
		l += 0xbb67ae85u;
	}
}

static Key words(Key key, uint32_t stream_and_part, uint64_t i)
{
	uint32_t x[4] = {(uint32_t)i, (uint32_t)(i >> 32), (uint32_t)key.word[1],
			 (uint32_t)(key.word[1] >> 32) ^ stream_and_part};
	philox(x, (uint32_t)key.word[0], (uint32_t)(key.word[0] >> 32));
	return (Key){{x[0] | (uint64_t)x[1] << 32, x[2] | (uint64_t)x[3] << 32}};
}

static Key fold(Key key, uint64_t k)
{
	return words(key, UINT32_MAX, k);
}

/* What aten.rand of f64 has as element i. */
static double uniform(Key key, uint32_t stream, uint64_t i)
{
	return (double)(words(key, stream << 8, i).word[0] >> 11) * 0x1p-53;
}

static const Key first = {{SEED, 0}};

/* ---- graphs ---- */

static Graph *attached(const char *text, const RandomSource *source)
{
	Graph *g = parsed(text);
	if (!random_attach(g, source))
		fail_msg("%s", ctx->last ? ctx->last->text : "");
	return g;
}

/* Inputs: numbers from 0.25 on, a counter from 0 on, the state as it is at first. */
static Tensor input_of(const Graph *g, uint32_t k)
{
	Node n = g->input.data[k].node;
	const Const *init =
		g->input.data[k].kind == INPUT_USER ? NULL : ir_const_of(ir, g->input.data[k].init);
	Tensor t = {.dtype = node_dtype(g, n), .rank = node_rank(g, n)};
	for (uint32_t d = 0; d < t.rank; d++)
		assert_true(sym_is_const(ir->syms, node_dim(g, n, d), &t.dim[d]));
	t.data = arena_alloc(ctx->arena, tensor_bytes(&t));
	for (int64_t i = 0; i < tensor_numel(&t); i++)
		tensor_set_f64(&t, i, t.dtype == DT_f64 ? 0.25 + (double)i : 0);
	if (init)
		memcpy(t.data, init->data, tensor_bytes(&t));
	return t;
}

/* The results of a call, as it is and with the key in place of an input called weft.rng. */
static void results(Graph *g, const Key *key, Tensor *out)
{
	Tensor in[MOST];
	for (uint32_t k = 0; k < g->input.n; k++) {
		in[k] = input_of(g, k);
		if (key && !strcmp(g->input.data[k].name, RANDOM_STATE))
			memcpy(in[k].data, key->word, sizeof key->word);
	}
	if (!interp(ctx, g, in, g->input.n, out, g->output.n, ctx->arena))
		fail_msg("%s", ctx->last ? ctx->last->text : "");
}

static void run(const char *text, Tensor *out)
{
	results(attached(text, &(RandomSource){.seed = SEED}), NULL, out);
}

/* Elements from `from` on are what the key and the stream say. */
static void check(const char *what, const Tensor *t, int64_t from, uint32_t n, Key key,
		  uint32_t stream)
{
	for (uint32_t i = 0; i < n; i++)
		if (tensor_f64(t, from + i) != uniform(key, stream, i))
			fail_msg("%s: element %u is %.17g, expected %.17g", what, i,
				 tensor_f64(t, from + i), uniform(key, stream, i));
}

#define DRAW(name, n) "  %" name " = aten.rand(size=[" n "], dtype=f64) : f64[" n "]\n"

/* In program order, and the state counts calls. */
static void test_streams(void **state)
{
	(void)state;
	Tensor out[MOST];
	run("graph @f(%x: f64[2]) {\n" DRAW("a", "5") DRAW("b", "3")
		    DRAW("c", "4") "  return %a, %b, %c\n}\n",
	    out);
	check("a", &out[0], 0, 5, first, 0);
	check("b", &out[1], 0, 3, first, 1);
	check("c", &out[2], 0, 4, first, 2);
	const uint64_t *next = out[3].data;
	assert_int_equal(next[0], SEED);
	assert_int_equal(next[1], 1);
}

static const char twice[] =
	"graph @f(%x: f64[2]) {\n" DRAW("a", "5") DRAW("b", "3") "  return %a, %b\n}\n";

/* Another call, another key; the key as an input, which nothing counts. */
static void test_sources(void **state)
{
	(void)state;
	Tensor out[MOST];
	const Key later = {{UINT64_C(0x123456789abcdef), UINT64_C(0xfedcba9876543210)}};
	Graph *g = attached(twice, &(RandomSource){.seed = SEED});
	assert_int_equal(g->input.n, 2);
	assert_int_equal(g->output.n, 3);
	assert_int_equal(g->output.data[2].writes, 1);
	assert_string_equal(g->input.data[1].name, RANDOM_STATE);
	assert_true(g->input.data[1].kind == INPUT_BUFFER);
	results(g, &later, out);
	check("a of a later call", &out[0], 0, 5, later, 0);
	check("b of a later call", &out[1], 0, 3, later, 1);
	const uint64_t *next = out[2].data;
	assert_true(next[0] == later.word[0] && next[1] == later.word[1] + 1);
	g = attached(twice, &(RandomSource){.seed = SEED, .input = true});
	assert_int_equal(g->output.n, 2);
	assert_true(g->input.data[1].kind == INPUT_USER);
	results(g, &later, out);
	check("a of a key that is given", &out[0], 0, 5, later, 0);
	check("b of a key that is given", &out[1], 0, 3, later, 1);
}

/* What a graph has of all this stays: a key that a node reads, an input of that name; all of one
 * without random numbers. */
static void test_present(void **state)
{
	(void)state;
	Tensor out[MOST];
	Graph *g = parsed("graph @f(%x: f64[2]) {\n  %y = neg(%x)\n  return %y\n}\n"),
	      *same = graph_clone(g);
	assert_true(random_attach(g, &(RandomSource){.seed = SEED}));
	assert_true(graph_equal(g, same));
	const Key own = {{3, 4}};
	g = attached("graph @f(%k: u64[2], %x: f64[2]) {\n  %a = aten.rand(%k, size=[5], "
		     "dtype=f64, stream=9) : f64[5]\n" DRAW("b", "3") "  return %a, %b\n}\n",
		     &(RandomSource){.seed = SEED});
	Tensor in[3] = {input_of(g, 0), input_of(g, 1), input_of(g, 2)};
	memcpy(in[0].data, own.word, sizeof own.word);
	assert_true(interp(ctx, g, in, 3, out, g->output.n, ctx->arena));
	check("a key of its own", &out[0], 0, 5, own, 9);
	check("the graph's, behind that stream", &out[1], 0, 3, first, 10);
	g = parsed(twice);
	assert_true(random_attach(g, &(RandomSource){.input = true}));
	uint32_t inputs = g->input.n;
	assert_true(random_attach(g, &(RandomSource){.seed = SEED}));
	assert_int_equal(g->input.n, inputs);
	assert_int_equal(g->output.n, 2);
}

/* ---- loops and branches ---- */

/* A scan with operands of every list, or none; upwards and downwards. Draws around it keep their
 * places. */
static const char *scan_of(uint32_t ninit, uint32_t nxs, uint32_t nconst, bool reverse)
{
	static const char *const lists[] = {"", "%c", "%x", "%w"};
	static const char *const inputs[] = {"", "%c: f64[]", "%x: f64[]", "%w: f64[4]"};
	Text t;
	text_init(&t, ctx->arena);
	text_printf(&t, "graph @f(%%c: f64[], %%x: f64[4], %%w: f64[4]) {\n" DRAW("%before", "3"));
	text_printf(&t, "  %%s = scan([%s], [%s], [%s], body=graph @b(", lists[ninit],
		    lists[2 * nxs], lists[3 * nconst]);
	const char *in[3] = {inputs[ninit], inputs[2 * nxs], inputs[3 * nconst]};
	for (uint32_t k = 0, n = 0; k < 3; k++)
		if (*in[k])
			text_printf(&t, "%s%s", n++ ? ", " : "", in[k]);
	text_printf(&t, ") {\n" DRAW("%p", "2") DRAW("%q", "3"));
	if (ninit)
		text_printf(
			&t,
			"  %%one = full(value=1, shape=[], dtype=f64)\n  %%d = add(%%c, %%one)\n");
	if (nxs)
		text_printf(&t, "  %%y = add(%%x, %%x)\n");
	if (nconst)
		text_printf(&t, "  %%z = add(%%w, %%w)\n");
	text_printf(&t, "  return %s%%p, %%q%s%s\n  }, length=4, reverse=%s)\n",
		    ninit ? "%d, " : "", nxs ? ", %y" : "", nconst ? ", %z" : "",
		    reverse ? "true" : "false");
	uint32_t n = ninit + 2 + nxs + nconst;
	for (uint32_t k = 0; k < n; k++)
		text_printf(&t, "  %%r%u = get(%%s, index=%u)\n", k, k);
	text_printf(&t, DRAW("%after", "3") "  return %%before");
	for (uint32_t k = 0; k < n; k++)
		text_printf(&t, ", %%r%u", k);
	text_printf(&t, ", %%after\n}\n");
	return t.data;
}

static void test_scans(void **state)
{
	(void)state;
	for (uint32_t mask = 0; mask < 16; mask++) {
		Tensor out[MOST];
		char what[60];
		uint32_t ninit = mask & 1, nxs = mask >> 1 & 1, nconst = mask >> 2 & 1, at = 1;
		bool reverse = mask >> 3;
		snprintf(what, sizeof what, "scan of %u %u %u%s", ninit, nxs, nconst,
			 reverse ? ", downwards" : "");
		run(scan_of(ninit, nxs, nconst, reverse), out);
		check(what, &out[0], 0, 3, first, 0);
		if (ninit)
			assert_true(tensor_f64(&out[at++], 0) == 4.25);
		for (uint32_t k = 0; k < 4; k++) {
			check(what, &out[at], 2 * k, 2, fold(first, k), 1);
			check(what, &out[at + 1], 3 * k, 3, fold(first, k), 2);
		}
		at += 2;
		for (uint32_t k = 0; nxs && k < 4; k++)
			assert_true(tensor_f64(&out[at], k) == 2 * (0.25 + k));
		at += nxs;
		for (uint32_t k = 0; nconst && k < 16; k++)
			assert_true(tensor_f64(&out[at], k) == 2 * (0.25 + k % 4));
		at += nconst;
		check(what, &out[at], 0, 3, first, 3);
	}
}

/* Rounds are counted by what is carried; the key of a round is made of the last one's. */
static void test_while(void **state)
{
	(void)state;
	Tensor out[MOST];
	run("graph @f(%n: i64[], %x: f64[2], %w: f64[2]) {\n" DRAW(
		    "before",
		    "3") "  %s = while([%n, %x], [%w], cond=graph @more(%n: i64[], %x: f64[2], %w: "
			 "f64[2]) {\n"
			 "    %three = full(value=3, shape=[], dtype=i64)\n    %m = lt(%n, "
			 "%three)\n    return %m\n"
			 "  }, body=graph @body(%n: i64[], %x: f64[2], %w: f64[2]) {\n" DRAW("p",
											     "2")
				 DRAW("q",
				      "2") "    %one = full(value=1, shape=[], dtype=i64)\n    %m "
					   "= add(%n, %one)\n    %pq = sub(%p, %q)\n    %a = "
					   "add(%x, %pq)\n"
					   "    %b = add(%a, %w)\n    return %m, %b\n  })\n"
					   "  %m = get(%s, index=0)\n  %y = get(%s, "
					   "index=1)\n" DRAW(
						   "after",
						   "3") "  return %before, %m, %y, %after\n}\n",
	    out);
	double y[2] = {0.25, 1.25};
	Key key = fold(first, 3); /* its number is that behind the draws inside */
	for (int round = 0; round < 3; round++, key = fold(key, 0))
		for (uint32_t i = 0; i < 2; i++)
			y[i] = y[i] + (uniform(key, 1, i) - uniform(key, 2, i)) + (0.25 + i);
	check("before a while", &out[0], 0, 3, first, 0);
	assert_true(tensor_f64(&out[1], 0) == 3);
	for (uint32_t i = 0; i < 2; i++)
		if (tensor_f64(&out[2], i) != y[i])
			fail_msg("while: element %u is %.17g, expected %.17g", i,
				 tensor_f64(&out[2], i), y[i]);
	check("after a while", &out[3], 0, 3, first, 4);
}

/* Both branches have the key; one draws, or both, with operands or without. */
static void test_cond(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 8; k++) {
		Tensor out[MOST];
		Text t;
		bool operand = k & 1, both = k >> 1 & 1, taken = k >> 2;
		text_init(&t, ctx->arena);
		text_printf(
			&t,
			"graph @f(%%x: f64[2]) {\n  %%p = full(value=%s, shape=[], dtype=bool)\n",
			taken ? "true" : "false");
		text_printf(&t, operand ? "  %%c = cond(%%p, [%%x], yes=graph @yes(%%x: f64[2]) {\n"
					: "  %%c = cond(%%p, [], yes=graph @yes() {\n");
		text_printf(&t, DRAW("%a", "2") "    return %%a\n");
		text_printf(&t, operand ? "  }, no=graph @no(%%x: f64[2]) {\n"
					: "  }, no=graph @no() {\n");
		text_printf(&t, both ? DRAW("%b", "2")
				     : "    %%b = full(value=5, shape=[2], dtype=f64)\n");
		text_printf(&t, "    return %%b\n  })\n  %%y = get(%%c, index=0)\n" DRAW(
					"%after", "3") "  return %%y, %%after\n}\n");
		run(t.data, out);
		if (taken || both)
			check("a branch", &out[0], 0, 2, first, taken ? 0 : 1);
		else
			assert_true(tensor_f64(&out[0], 1) == 5);
		check("behind a branch", &out[1], 0, 3, first, both ? 2 : 1);
	}
}

/* A branch in a scan in a while: keys are made of keys. */
static void test_nested(void **state)
{
	(void)state;
	Tensor out[MOST];
	run("graph @f(%n: i64[], %x: f64[2]) {\n"
	    "  %s = while([%n, %x], [], cond=graph @more(%n: i64[], %x: f64[2]) {\n"
	    "    %two = full(value=2, shape=[], dtype=i64)\n    %m = lt(%n, %two)\n    return %m\n"
	    "  }, body=graph @body(%n: i64[], %x: f64[2]) {\n"
	    "    %r = scan([%x], [], [], body=graph @inner(%x: f64[2]) {\n"
	    "      %zero = full(value=0, shape=[2], dtype=f64)\n      %less = lt(%zero, %x)\n      "
	    "%p = reduce(%less, kind=\"and\", dims=[0], acc=bool)\n"
	    "      %c = cond(%p, [%x], yes=graph @yes(%x: f64[2]) {\n" DRAW(
		    "a", "2") "        %y = add(%x, %a)\n        return %y\n"
			      "      }, no=graph @no(%x: f64[2]) {\n        return %x\n      })\n  "
			      "    %y = get(%c, index=0)\n      return %y\n"
			      "    }, length=3, reverse=false)\n    %y = get(%r, index=0)\n"
			      "    %one = full(value=1, shape=[], dtype=i64)\n    %m = add(%n, "
			      "%one)\n    return %m, %y\n  })\n"
			      "  %y = get(%s, index=1)\n  return %y\n}\n",
	    out);
	double y[2] = {0.25, 1.25};
	Key key = fold(first, 1);
	for (int round = 0; round < 2; round++, key = fold(key, 0))
		for (uint32_t k = 0; k < 3; k++)
			for (uint32_t i = 0; i < 2; i++)
				y[i] += uniform(fold(key, k), 0, i);
	for (uint32_t i = 0; i < 2; i++)
		if (tensor_f64(&out[0], i) != y[i])
			fail_msg("nested: element %u is %.17g, expected %.17g", i,
				 tensor_f64(&out[0], i), y[i]);
}

/* Float dtypes draw as many bits as they have digits, so that each number k / 2^bits is exact and
 * less than 1: every k occurs. */
static void test_digits(void **state)
{
	(void)state;
	static const struct {
		const char *dtype;
		int digits;
	} of[] = {{"f8e5m2", 3},     {"f8e4m3", 4}, {"f8e5m2fnuz", 3}, {"f8e4m3fnuz", 4},
		  {"bf16", 8},      {"f16", 11},   {"f32", 24},       {"f64", 53}};
	enum { DRAWN = 32768, EACH_BELOW = 12 };
	for (uint32_t k = 0; k < sizeof of / sizeof of[0]; k++) {
		char text[160];
		Tensor out[MOST];
		static bool seen[1 << EACH_BELOW];
		memset(seen, 0, sizeof seen);
		snprintf(text, sizeof text,
			 "graph @f(%%x: f64[2]) {\n  %%a = aten.rand(size=[%d], dtype=%s) : "
			 "%s[%d]\n  return %%a\n}\n",
			 DRAWN, of[k].dtype, of[k].dtype, DRAWN);
		run(text, out);
		for (int64_t i = 0; i < DRAWN; i++) {
			uint64_t bits = words(first, 0, (uint64_t)i).word[0] >> (64 - of[k].digits);
			double want = ldexp((double)bits, -of[k].digits),
			       is = tensor_f64(&out[0], i);
			if (is != want || is >= 1)
				fail_msg("%s: element %d is %.17g, expected %.17g", of[k].dtype,
					 (int)i, is, want);
			if (of[k].digits < EACH_BELOW)
				seen[bits] = true;
		}
		for (uint32_t bits = 0; of[k].digits < EACH_BELOW && bits < 1u << of[k].digits;
		     bits++)
			if (!seen[bits])
				fail_msg("%s: the bits %u were not drawn", of[k].dtype, bits);
	}
}

static void test_refused(void **state)
{
	(void)state;
	Graph *g = parsed(
		"graph @f(%x: f64[]) {\n  %s = while([%x], [], cond=graph @more(%x: f64[]) {\n"
		"    %r = aten.rand(size=[], dtype=f64) : f64[]\n    %m = lt(%r, %x)\n    return "
		"%m\n  }, body=graph @body(%x: f64[]) {\n"
		"    %y = neg(%x)\n    return %y\n  })\n  %y = get(%s, index=0)\n  return %y\n}\n");
	assert_false(random_attach(g, &(RandomSource){.seed = SEED}));
	assert_string_equal(ctx->last->text,
			    "random numbers in the condition of a loop are not supported");
	assert_non_null(strstr(ctx->last->where, "node s"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_streams, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sources, setup, teardown),
		cmocka_unit_test_setup_teardown(test_present, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scans, setup, teardown),
		cmocka_unit_test_setup_teardown(test_while, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cond, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nested, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_digits, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
