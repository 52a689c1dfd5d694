/* Graphs in two: together they give what the joint one gives, bit for bit, under every budget; what
 * is saved, and what marks ask for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "ir/build/text.h"
#include "ir/interp/interp.h"
#include "ir/target/target.h"
#include "passes/pass.h"
#include "transform/partition/partition.h"
#include "transform/transform.h"
#include "tests/unit/ir_fixture.h"

enum { MOST = 64 };

typedef struct {
	Graph *whole, *part[2];
	uint32_t nin, nout;
} Split;

/* Makes the graph's row sums those that partitioning makes, which are rounded differently; all else
 * keeps its bits. */
static void sum_rows(Graph *g)
{
	static bool (*const passes[])(Graph *, PassCtx *) = {pass_decompose, pass_simplify,
							     pass_cse, pass_row_sums};
	PassCtx c = {.target = target_find("generic-c")};
	for (size_t k = 0; k < sizeof passes / sizeof *passes; k++)
		passes[k](g, &c);
	assert_false(c.failed);
}

static Split split(const char *text, double budget)
{
	Graph *g = parsed(text);
	Split s = {.whole = transform_vjp(g, &(Wrt){0}), .nin = g->input.n, .nout = g->output.n};
	if (!s.whole || !transform_partition(graph_clone(s.whole), s.nin, s.nout, budget, s.part))
		fail_msg("%s", ctx->last ? ctx->last->text : "");
	sum_rows(s.whole);
	return s;
}

static uint32_t nsaved(const Split *s)
{
	return s->part[0]->output.n - s->nout - 1;
}

static double bytes_saved(const Split *s)
{
	double sum = 0;
	for (uint32_t k = s->nout + 1; k < s->part[0]->output.n; k++) {
		int64_t n;
		Node out = s->part[0]->output.data[k].node;
		assert_true(
			sym_is_const(ir->syms, type_numel(ir, node_type_id(s->part[0], out)), &n));
		sum += (double)n * dtype_size(node_dtype(s->part[0], out));
	}
	return sum;
}

static void run(Graph *g, const Tensor *in, uint32_t nin, Tensor *out)
{
	if (!interp(ctx, g, in, nin, out, g->output.n, ctx->arena))
		fail_msg("%s", ctx->last ? ctx->last->text : "");
}

static Tensor input_of(const Graph *g, uint32_t k)
{
	Node n = g->input.data[k].node;
	Tensor t = {.dtype = node_dtype(g, n), .rank = node_rank(g, n)};
	for (uint32_t d = 0; d < t.rank; d++)
		assert_true(sym_is_const(ir->syms, node_dim(g, n, d), &t.dim[d]));
	t.data = arena_alloc(ctx->arena, tensor_bytes(&t));
	for (int64_t i = 0; i < tensor_numel(&t); i++)
		tensor_set_f64(&t, i, (double)((i * 7 + k * 5) % 23) / 16 - 0.7);
	return t;
}

static void check_equal(const Tensor *a, const Tensor *b)
{
	assert_int_equal(tensor_bytes(a), tensor_bytes(b));
	assert_memory_equal(a->data, b->data, tensor_bytes(a));
}

/* Both parts, one after the other, against the graph that they were. */
static void check_values(const Split *s)
{
	Tensor in[MOST], all[MOST], first[MOST], second[MOST], given[2 * MOST];
	uint32_t n = s->whole->input.n, saved = nsaved(s) + 1, ngiven = 0;
	for (uint32_t k = 0; k < n; k++)
		in[k] = input_of(s->whole, k);
	run(s->whole, in, n, all);
	run(s->part[0], in, s->nin, first);
	for (uint32_t k = 0; k < s->nin; k++)
		given[ngiven++] = in[k];
	for (uint32_t k = 0; k < saved; k++)
		given[ngiven++] = first[s->nout + k];
	for (uint32_t k = s->nin; k < n; k++)
		given[ngiven++] = in[k];
	run(s->part[1], given, ngiven, second);
	for (uint32_t k = 0; k < s->nout; k++)
		check_equal(&first[k], &all[k]);
	for (uint32_t k = s->nout; k < s->whole->output.n; k++)
		check_equal(&second[k - s->nout], &all[k]);
}

/* ---- random graphs ---- */

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* Functions, products, norms of rows and transposes of values before them; each is read by some
 * later one. */
static const char *random_graph(uint32_t nodes)
{
	static const char *const one[] = {"sin(%%%s)",
					  "tanh(%%%s)",
					  "permute(%%%s, perm=[1, 0])",
					  "aten.softmax.int(%%%s, dim=1)",
					  "exp(%%%s)",
					  "checkpoint(%%%s, at=\"begin\")",
					  "checkpoint(%%%s, at=\"end\")",
					  "checkpoint(%%%s, at=\"keep\")"};
	static const char *const two[] = {
		"mul(%%%s, %%%s)", "add(%%%s, %%%s)",
		"contract(%%%s, %%%s, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f64)"};
	Text t;
	text_init(&t, ctx->arena);
	text_printf(&t, "graph @r(%%x: f64[4, 4], %%y: f64[4, 4]) {\n");
	for (uint32_t k = 0; k < nodes; k++) {
		char name[2][12];
		for (uint32_t j = 0; j < 2; j++) {
			uint32_t from = k - (k < 4 ? below(k + 1) : below(4));
			if (from == 0)
				snprintf(name[j], sizeof name[j], "%s", below(2) ? "x" : "y");
			else
				snprintf(name[j], sizeof name[j], "v%u", from - 1);
		}
		text_printf(&t, "  %%v%u = ", k);
		bool unary = below(3) == 0;
		if (unary)
			text_printf(&t, one[below(8)], name[0]);
		else
			text_printf(&t, two[below(3)], name[0], name[1]);
		text_printf(&t, " : f64[4, 4]\n");
	}
	text_printf(&t, "  return %%v%u\n}\n", nodes - 1);
	return t.data;
}

static void test_random(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 150; round++) {
		const char *text = random_graph(3 + below(14));
		double before = -1;
		for (int k = 4; k >= -1; k--) {
			Split s = split(text, k < 0 ? -1 : k / 4.0);
			check_values(&s);
			double bytes = bytes_saved(&s);
			if (k == 4)
				before = bytes;
			assert_true(k < 1 || bytes <= before);
			if (k == -1)
				assert_true(bytes == before);
		}
	}
}

/* ---- what is saved ---- */

static const char layers[] = "graph @main(%x: f32[64, 64], %w: f32[64, 64]) {\n"
			     "  %a = contract(%x, %w, batch_x=[], batch_y=[], sum_x=[1], "
			     "sum_y=[0], acc=f32) : f32[64, 64]\n"
			     "  %b = sin(%a) : f32[64, 64]\n"
			     "  %c = contract(%b, %w, batch_x=[], batch_y=[], sum_x=[1], "
			     "sum_y=[0], acc=f32) : f32[64, 64]\n"
			     "  %d = sin(%c) : f32[64, 64]\n"
			     "  return %d\n}\n";

static bool refuses(const char *text, double budget, const char *why)
{
	Graph *g = parsed(text), *part[2], *joint = transform_vjp(g, &(Wrt){0});
	return !transform_partition(joint, g->input.n, g->output.n, budget, part) &&
	       strstr(ctx->last->text, why);
}

static void test_budget(void **state)
{
	(void)state;
	enum { ONE = 64 * 64 * 4 };
	Split s = split(layers, -1);
	assert_true(bytes_saved(&s) >= 2 * ONE);
	for (int k = 3; k >= 0; k--) {
		s = split(layers, k > 1 ? (double)k * ONE : (double)k / 3); /* bytes and parts */
		check_values(&s);
		assert_true(bytes_saved(&s) <= k * ONE);
	}
	assert_int_equal(nsaved(&s), 0);
	assert_true(refuses("graph @main(%x: f32[4, 4]) {\n  %a = sin(%x) : f32[4, 4]\n  %k = "
			    "checkpoint(%a, at=\"keep\") : f32[4, 4]\n"
			    "  %y = sin(%k) : f32[4, 4]\n  return %y\n}\n",
			    32, "no less than 64 can be saved"));
}

/* Bytes are counted at sizes that are the hint, or without one neither small nor large. */
static void test_sizes(void **state)
{
	(void)state;
	static const struct {
		const char *range;
		int64_t size;
	} sizes[] = {{"1 <= n ~ 30", 30}, {"1 <= n", 64},         {"1 <= n <= 20", 20},
		     {"100 <= n", 100},   {"1 <= n <= 1000", 64}, {"7 <= n <= 7", 7}};
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		char text[300], why[160];
		if (k) { /* symbols of its own */
			teardown(state);
			setup(state);
		}
		snprintf(text, sizeof text,
			 "graph @main(%%x: f32[n, 4]) where %s {\n  %%a = sin(%%x) : f32[n, 4]\n"
			 "  %%k = checkpoint(%%a, at=\"keep\") : f32[n, 4]\n  %%y = sin(%%k) : "
			 "f32[n, 4]\n  return %%y\n}\n",
			 sizes[k].range);
		snprintf(why, sizeof why,
			 "a memory budget of 32 bytes: at the sizes that the model hints at no "
			 "less than %lld can be saved",
			 (long long)sizes[k].size * 16);
		if (!refuses(text, 32, why))
			fail_msg("%s: %s", sizes[k].range,
				 ctx->last ? ctx->last->text : "not refused");
	}
}

/* What a graph demands of its sizes both parts demand. */
static void test_guards(void **state)
{
	(void)state;
	Graph *g = parsed("graph @main(%x: f32[n, 4], %z: f32[m]) where 1 <= n <= 40, 1 <= m <= 40 "
			  "{\n  %y = sin(%x) : f32[n, 4]\n  return %y\n}\n");
	Graph *joint, *part[2];
	Sym n = sym_find(ir->syms, "n", 1), m = sym_find(ir->syms, "m", 1);
	graph_guard(g, GUARD_LE, n, m, "rows");
	joint = transform_vjp(g, &(Wrt){0});
	assert_non_null(joint);
	assert_true(transform_partition(joint, g->input.n, g->output.n, -1, part));
	for (int k = 0; k < 2; k++) {
		assert_int_equal(part[k]->guard.n, 1);
		const GraphGuard *d = part[k]->guard.data;
		assert_true(d->kind == GUARD_LE && d->a.i == n.i && d->b.i == m.i &&
			    !strcmp(d->why, "rows"));
	}
}

/* Inside nothing is saved, but where it says so. */
static void test_regions(void **state)
{
	(void)state;
	const char *inside = "graph @main(%x: f32[64, 64], %w: f32[64, 64]) {\n"
			     "  %p = checkpoint(%x, at=\"begin\") : f32[64, 64]\n"
			     "  %a = contract(%p, %w, batch_x=[], batch_y=[], sum_x=[1], "
			     "sum_y=[0], acc=f32) : f32[64, 64]\n"
			     "  %b = sin(%a) : f32[64, 64]\n"
			     "  %c = contract(%b, %w, batch_x=[], batch_y=[], sum_x=[1], "
			     "sum_y=[0], acc=f32) : f32[64, 64]\n"
			     "  %d = sin(%c) : f32[64, 64]\n"
			     "  %e = checkpoint(%d, at=\"end\") : f32[64, 64]\n"
			     "  %y = sin(%e) : f32[64, 64]\n"
			     "  return %y\n}\n";
	Split s = split(inside, -1);
	check_values(&s);
	assert_true(nsaved(&s) <= 1); /* what leaves the region, if that */
	Text t;
	text_init(&t, ctx->arena);
	graph_print(s.part[1], &t);
	assert_null(strstr(t.data, "checkpoint"));
	char kept[1200], *at;
	snprintf(kept, sizeof kept, "%s", inside);
	at = strstr(kept, "  %c =");
	char rest[1000];
	snprintf(rest, sizeof rest, "%s", at);
	snprintf(at, (size_t)(kept + sizeof kept - at),
		 "  %%k = checkpoint(%%b, at=\"keep\") : f32[64, 64]\n%s", rest);
	memcpy(strstr(kept, "contract(%b"), "contract(%k", 11);
	s = split(kept, -1);
	check_values(&s);
	assert_in_range(nsaved(&s), 1, 2);
}

/* Deep models: in time, and without recursion. */
static void test_deep(void **state)
{
	(void)state;
	for (uint32_t n = 100; n <= 6400; n *= 8) {
		Text t;
		text_init(&t, ctx->arena);
		text_printf(&t, "graph @deep(%%x: f32[64, 64], %%w: f32[64, 64]) {\n");
		for (uint32_t k = 0; k < n; k++) {
			text_printf(&t,
				    k ? "  %%c%u = contract(%%v%u, %%w, "
				      : "  %%c%u = contract(%%x, %%w, ",
				    k, k - 1);
			text_printf(&t,
				    "batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32) : "
				    "f32[64, 64]\n  %%v%u = sin(%%c%u) : f32[64, 64]\n",
				    k, k);
		}
		text_printf(&t, "  return %%v%u\n}\n", n - 1);
		for (int k = 1; k >= 0; k--) {
			clock_t begin = clock();
			Split s = split(t.data, k ? -1 : 0.5);
			print_message("%u layers%s: %u saved, %.2f s\n", n, k ? "" : ", half of it",
				      nsaved(&s), (double)(clock() - begin) / CLOCKS_PER_SEC);
			assert_true(nsaved(&s) > 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_guards, setup, teardown),
		cmocka_unit_test_setup_teardown(test_regions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deep, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
