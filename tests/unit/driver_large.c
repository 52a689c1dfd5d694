/* Programs that are cut into functions: none has more than so many launches or checks, whatever is
 * in whatever, and what is computed and refused is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/program/program_priv.h"
#include "ir/build/text.h"
#include "ir/interp/interp.h"
#include "lower/graph/graph.h"
#include "passes/pipeline.h"
#include "tests/text/file_test.h"
#include "tests/help/model.h"

enum { INPUTS = 400 };

/* ---- graphs ---- */

/* Products with a permutation, one after the other, and a number added to each: `name`0 is the
 * first operand, the last result is `name`n. All are whole numbers, so that nothing is rounded, and
 * each step shows in the result. */
static void chain(Text *t, const char *name, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		text_printf(t,
			    "  %%%sp%u = contract(%%%s%u, %%w, batch_x=[], batch_y=[], sum_x=[1], "
			    "sum_y=[0], acc=f32)\n"
			    "  %%%sc%u = full(dtype=f32, shape=[S, 3], value=%u.0)\n  %%%s%u = "
			    "add(%%%sp%u, %%%sc%u)\n",
			    name, k, name, k, name, k, k % 5, name, k + 1, name, k, name, k);
}

#define OF "(%%%s0: f32[S, 3], %%w: f32[3, 3]) {\n"

static void begin(Text *t)
{
	text_add(t, "graph @large(%a0: f32[S, 3], %w: f32[3, 3], %yes: bool[]) where 1 <= S {\n");
}

static void straight(Text *t)
{
	begin(t);
	chain(t, "a", 700);
	text_add(t, "  return %a700\n}\n");
}

/* A loop of two rounds, or with another in it; `after`: what is done with its result. */
static void loop(Text *t, const char *name, const char *from, uint32_t n, bool nested)
{
	text_printf(t, "  %%%s = scan([%%%s], [], [%%w], body=graph @%s" OF, name, from, name,
		    name);
	chain(t, name, n);
	if (nested) {
		text_printf(t, "  %%in0 = neg(%%%s%u)\n", name, n);
		loop(t, "in", "in0", 300, false);
		text_printf(t, "  %%out = get(%%in, index=0)\n  return %%out\n  }, length=2, "
			       "reverse=false)\n");
		return;
	}
	text_printf(t, "  return %%%s%u\n  }, length=2, reverse=false)\n", name, n);
}

static void in_a_loop(Text *t)
{
	begin(t);
	loop(t, "a", "a0", 600, false);
	text_add(t, "  %b0 = get(%a, index=0)\n");
	chain(t, "b", 10);
	text_add(t, "  return %b10\n}\n");
}

static void in_nested_loops(Text *t)
{
	begin(t);
	chain(t, "a", 200);
	loop(t, "b", "a200", 100, true);
	text_add(t, "  %c0 = get(%b, index=0)\n");
	chain(t, "c", 100);
	text_add(t, "  return %c100\n}\n");
}

static void in_branches(Text *t)
{
	begin(t);
	text_printf(t, "  %%c = cond(%%yes, [%%a0, %%w], yes=graph @b" OF, "b");
	chain(t, "b", 300);
	text_printf(t, "  return %%b300\n  }, no=graph @d" OF, "d");
	chain(t, "d", 290);
	text_add(t, "  return %d290\n  })\n  %e0 = get(%c, index=0)\n");
	chain(t, "e", 20);
	text_add(t, "  return %e20\n}\n");
}

static void in_a_while(Text *t)
{
	begin(t);
	text_add(t, "  %i = full(value=0, shape=[], dtype=i64)\n  %h = while([%i, %a0], [%w], "
		    "cond=graph @more(%i: i64[], %f0: f32[S, 3], %w: f32[3, 3]) {\n"
		    "  %l = full(value=3, shape=[], dtype=i64)\n  %m = lt(%i, %l)\n  return %m\n  "
		    "}, body=graph @step(%i: i64[], %f0: f32[S, 3], %w: f32[3, 3]) {\n"
		    "  %one = full(value=1, shape=[], dtype=i64)\n  %j = add(%i, %one)\n");
	chain(t, "f", 300);
	text_add(t,
		 "  return %j, %f300\n  })\n  %g0 = get(%h, index=1)\n  %n = get(%h, index=0)\n");
	chain(t, "g", 260);
	text_add(t, "  return %g260, %n\n}\n");
}

/* So many rounds of a product. */
static void some_rounds(Text *t, const char *name, const char *from, uint32_t rounds)
{
	text_printf(t,
		    "  %%%si = full(value=0, shape=[], dtype=i64)\n  %%%s = while([%%%si, %%%s], "
		    "[%%w], cond=graph @more(%%i: i64[], %%x0: f32[S, 3], %%w: f32[3, 3]) {\n"
		    "  %%l = full(value=%u, shape=[], dtype=i64)\n  %%m = lt(%%i, %%l)\n  return "
		    "%%m\n  }, body=graph @round(%%i: i64[], %%x0: f32[S, 3], %%w: f32[3, 3]) {\n"
		    "  %%one = full(value=1, shape=[], dtype=i64)\n  %%j = add(%%i, %%one)\n",
		    name, name, name, from, rounds);
	chain(t, "x", 1);
	text_printf(t, "  return %%j, %%x1\n  })\n  %%%s0 = get(%%%s, index=1)\n", name, name);
}

/* Which of its two places holds a result of a WHILE depends on how many rounds it did: outlined
 * functions that call others, several beside each other, and those that read several of them have
 * to know. */
static void after_whiles(Text *t)
{
	begin(t);
	some_rounds(t, "b", "a0", 2);
	some_rounds(t, "c", "b0", 3);
	text_printf(t, "  %%d = scan([%%c0], [], [%%b0, %%c0, %%w], body=graph @d(%%d0: f32[S, 3], "
		       "%%b: f32[S, 3], %%c: f32[S, 3], %%w: f32[3, 3]) {\n");
	chain(t, "d", 280);
	text_printf(t, "  %%e0 = sub(%%d280, %%b)\n");
	chain(t, "e", 280);
	text_printf(t, "  %%f = add(%%e280, %%c)\n  return %%f\n  }, length=3, reverse=false)\n  "
		       "%%g0 = get(%%d, index=0)\n");
	chain(t, "g", 280);
	text_printf(t, "  %%h0 = sub(%%g280, %%c0)\n");
	chain(t, "h", 280);
	text_printf(t, "  %%k = sub(%%h280, %%b0)\n  return %%k, %%c0\n}\n");
}

static void many_inputs(Text *t)
{
	text_add(t, "graph @large(");
	for (uint32_t k = 0; k < INPUTS; k++)
		text_printf(t, "%s%%x%u: f32[%sS + %u]", k ? ", " : "", k,
			    k % 3 == 0   ? ""
			    : k % 3 == 1 ? "2, "
					 : "T, 2, ",
			    k % 7);
	text_add(t, ") where 1 <= S, 1 <= T {\n");
	for (uint32_t k = 0; k < INPUTS; k++)
		text_printf(t, "  %%y%u = reduce(%%x%u, kind=\"sum\", dims=[%s], acc=f32)\n", k, k,
			    k % 3 == 0   ? "0"
			    : k % 3 == 1 ? "0, 1"
					 : "0, 1, 2");
	for (uint32_t k = 1; k < INPUTS; k++)
		text_printf(t, "  %%%s%u = add(%%%s%u, %%y%u)\n", "s", k, k == 1 ? "y" : "s", k - 1,
			    k);
	text_printf(t, "  return %%s%u\n}\n", INPUTS - 1);
}

/* ---- running ---- */

typedef struct {
	void (*make)(Text *);
	Weft *w;
	bool done;
} Large;

static void largest(const LoopFn *f, uint32_t *launches, uint32_t *checks)
{
	uint32_t n = 0, m = 0;
	for (uint32_t k = 0; k < f->ls.n; k++) {
		n += f->ls.data[k].kind == LS_LAUNCH;
		m += f->ls.data[k].kind == LS_ASSERT;
	}
	*launches = n > *launches ? n : *launches;
	*checks = m > *checks ? m : *checks;
}

/* Plain, so that launches are statements. */
static void check_parts(Graph *g)
{
	Lowered *l = lower_graph(g, &(LowerOptions){0});
	Program *p = schedule_program(&(ScheduleEntry){"run", l}, 1, target_find("x86-64-v3"),
				      &(ScheduleOptions){.plain = true});
	assert_non_null(p);
	const ProgramEntry *e = p->entry.data;
	uint32_t launches = 0, checks = 0;
	largest(e->run, &launches, &checks);
	largest(e->sizes, &launches, &checks);
	for (uint32_t k = 0; k < e->run_outlined.n; k++)
		largest(e->run_outlined.data[k], &launches, &checks);
	for (uint32_t k = 0; k < e->sizes_outlined.n; k++)
		largest(e->sizes_outlined.data[k], &launches, &checks);
	assert_in_range(launches, 1, OUTLINE_SIZE);
	assert_in_range(checks, 1, 2 * OUTLINE_SIZE);
	assert_true(e->run_outlined.n + e->sizes_outlined.n > 0);
}

static Tensor *make_inputs(Graph *g, int64_t s)
{
	Arena *a = g->ir->ctx->arena;
	Tensor *in = ARENA_ARRAY(a, Tensor, g->input.n);
	EvalCtx e = {.ctx = g->ir->ctx, .arena = a, .syms = graph_syms(g)};
	Sym sym[] = {sym_find(graph_syms(g), "S", 1), sym_find(graph_syms(g), "T", 1)};
	int64_t value[] = {s, 2};
	e.sym = sym;
	e.value = value;
	e.nsym = sym[1].i ? 2 : 1;
	for (uint32_t k = 0; k < g->input.n; k++) {
		assert_true(eval_alloc(&e, node_type_id(g, g->input.data[k].node), g, &in[k]));
		values_random(&in[k], -8, 8, k);
		for (int64_t i = 0; i < tensor_numel(&in[k]); i++) /* w: 0 1 0, 0 0 1, 1 0 0 */
			tensor_set_f64(&in[k], i,
				       k == 1 && g->input.n < INPUTS
					       ? i == 1 || i == 5 || i == 6
					       : floor(tensor_f64(&in[k], i)));
	}
	return in;
}

/* Sizes of inputs are compared in all outlined functions. */
static void check_sizes(Model *m, Tensor *in, int64_t s, Arena *a)
{
	for (uint32_t k = 1; k < INPUTS; k += k % 7 == 6 ? 36 : 1) {
		uint32_t last = in[k].rank - 1, add = k % 7;
		Tensor none;
		const char *want = arena_printf(a,
						"input \"x%u\" dimension %u: expected S + %u = %d "
						"as in the other inputs, got %d",
						k, last, add, (int)(s + add), (int)(s + add) + 1);
		in[k].dim[last]++;
		assert_int_not_equal(model_run(m, in, INPUTS, &none, 1, a), WEFT_OK);
		in[k].dim[last]--;
		if (add)
			assert_string_equal(m->status.message, want);
	}
}

static bool run(void *arg)
{
	Large *x = arg;
	Ctx *ctx = x->w->ctx;
	Text t;
	Model m;
	text_init(&t, ctx->arena);
	x->make(&t);
	Graph *g = graph_parse(ir_new(ctx), t.data, "large");
	WeftOptions o = {.size = sizeof o, .no_cache = true, .target = "x86-64-v3"};
	TRY(g);
	Graph *copy = graph_clone(g);
	TRY(pipeline_run(copy, &(PipelineOptions){0}));
	check_parts(copy);
	TRY(model_open_loops(&m, x->w, graph_wrap(x->w, g, "large"), &o));
	for (int64_t s = 1; s <= 6; s += 5) {
		Tensor *in = make_inputs(g, s), have[2], want[2];
		TRY(interp(ctx, g, in, g->input.n, want, g->output.n, ctx->arena));
		if (model_run(&m, in, g->input.n, have, 1, ctx->arena) != WEFT_OK)
			return ctx_error(ctx, NULL, "%s", m.status.message);
		for (uint32_t k = 0; k < g->output.n; k++)
			assert_true(values_other_bits(&have[k], &want[k]) < 0);
		if (g->input.n == INPUTS)
			check_sizes(&m, in, s, ctx->arena);
	}
	model_close(&m);
	return x->done = true;
}

static void check(void (*make)(Text *))
{
	Large x = {.make = make, .w = weft_new()};
	assert_non_null(x.w);
	boundary(x.w, run, &x);
	if (!x.done)
		fail_msg("%s", weft_messages(x.w));
	weft_free(x.w);
}

/* ---- many small tensors ---- */

enum { PARAMETERS = 1000 };

/* A step of SGD with momentum for so many parameters of different lengths. */
static void updates(Text *t)
{
	text_add(t, "graph @large(");
	for (uint32_t k = 0; k < PARAMETERS; k++)
		text_printf(t, "%s%%p%u: f32[%u], %%g%u: f32[%u], %%m%u: f32[%u]", k ? ", " : "",
			    k, k % 3 + 8, k, k % 3 + 8, k, k % 3 + 8);
	text_add(t, ") {\n");
	for (uint32_t k = 0; k < PARAMETERS; k++)
		text_printf(t,
			    "  %%a%u = full(dtype=f32, shape=[%u], value=0.5)\n"
			    "  %%b%u = mul(%%m%u, %%a%u)\n  %%n%u = add(%%b%u, %%g%u)\n"
			    "  %%q%u = sub(%%p%u, %%n%u)\n",
			    k, k % 3 + 8, k, k, k, k, k, k, k, k, k);
	text_add(t, "  return ");
	for (uint32_t k = 0; k < PARAMETERS; k++)
		text_printf(t, "%s%%q%u -> \"p%u\", %%n%u -> \"m%u\"", k ? ", " : "", k, k, k, k);
	text_add(t, "\n}\n");
}

/* Updates of parameters are a table of launches of few functions, and nobody waits between them:
 * each outlined function is one phase. */
static bool count_phases(void *arg)
{
	Large *x = arg;
	Ctx *ctx = x->w->ctx;
	Text t;
	text_init(&t, ctx->arena);
	updates(&t);
	Graph *g = graph_parse(ir_new(ctx), t.data, "updates");
	TRY(g && pipeline_run(g, &(PipelineOptions){0}));
	Lowered *l = lower_graph(g, &(LowerOptions){0});
	Program *p = schedule_program(&(ScheduleEntry){"run", l}, 1, target_find("x86-64-v3"),
				      &(ScheduleOptions){.plain = true});
	const ProgramEntry *e = p->entry.data;
	uint32_t launches = 0, phases = 0;
	for (uint32_t k = 0; k <= e->run_outlined.n; k++) {
		const LoopFn *f = k ? e->run_outlined.data[k - 1] : e->run;
		for (uint32_t i = 0; i < f->ls.n; i++) {
			launches += f->ls.data[i].kind == LS_LAUNCH;
			phases += f->ls.data[i].kind == LS_LAUNCH && !f->ls.data[i].same_phase;
		}
	}
	assert_int_equal(launches, PARAMETERS);
	assert_in_range(phases, 1, (PARAMETERS + OUTLINE_SIZE - 1) / OUTLINE_SIZE);
	assert_int_equal(p->fn.n, 3);
	return x->done = true;
}

static void test_many_updates(void **state)
{
	(void)state;
	Large x = {.w = weft_new()};
	assert_non_null(x.w);
	boundary(x.w, count_phases, &x);
	if (!x.done)
		fail_msg("%s", weft_messages(x.w));
	weft_free(x.w);
}

#define TEST(name)                       \
	static void test_##name(void **state) \
	{                                \
		(void)state;             \
		check(name);             \
	}
TEST(straight)
TEST(in_a_loop)
TEST(in_nested_loops)
TEST(in_branches)
TEST(in_a_while)
TEST(after_whiles)
TEST(many_inputs)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_straight),        cmocka_unit_test(test_in_a_loop),
		cmocka_unit_test(test_in_nested_loops), cmocka_unit_test(test_in_branches),
		cmocka_unit_test(test_in_a_while),      cmocka_unit_test(test_after_whiles),
		cmocka_unit_test(test_many_inputs),     cmocka_unit_test(test_many_updates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
