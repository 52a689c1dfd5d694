/* A plan depends on its input only, and leaves the input as it was, whether the schedule takes the
 * kernel or refuses it. Scheduling a kernel leaves the kernel as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/plan/plan.h"
#include "codegen/plan/split.h"
#include "codegen/program/schedule.h"
#include "ir/build/text.h"
#include "lower/graph/graph.h"
#include "passes/pipeline.h"

static const struct {
	const char *name;
	PlanFn *plan;
} schedules[] = {
	{"depthwise", plan_depthwise}, {"contract", plan_contract}, {"generic", plan_generic}};
enum { SCHEDULES = 2 /* that may refuse */, ALL };

/* Graphs of one kernel each, and who refuses it for x86-64-v3 and for generic-c. */
typedef struct {
	const char *what, *graph;
	bool refused[2][SCHEDULES];
} Case;

static const Case cases[] = {
	{"no sum",
	 "graph @f(%x: f32[s, 8]) where 1 <= s {\n  %1 = tanh(%x)\n  return %1\n}\n",
	 {{true, true}, {true, true}}},
	{"another sum beside it",
	 "graph @f(%x: f32[8, 8]) {\n  %1 = reduce(%x, kind=\"sum\", dims=[1], acc=f32)\n  return "
	 "%1\n}\n",
	 {{true, true}, {true, true}}},
	{"a sum of long integers",
	 "graph @f(%x: i64[8, 8], %y: i64[8, 8]) {\n"
	 "  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=i64)\n  return "
	 "%1\n}\n",
	 {{true, true}, {true, true}}},
	{"no column in either operand",
	 "graph @f(%x: f32[64], %y: f32[64]) {\n"
	 "  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[0], sum_y=[0], acc=f32)\n  return "
	 "%1\n}\n",
	 {{true, true}, {true, true}}},
	{"columns apart, and as many terms as there may be",
	 "graph @f(%x: f32[8, k], %y: f32[48, k]) where 1 <= k {\n"
	 "  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f32)\n  return "
	 "%1\n}\n",
	 {{true, false}, {true, true}}},
	{"columns apart, and one row",
	 "graph @f(%x: f32[500], %y: f32[48, 500]) {\n"
	 "  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[0], sum_y=[1], acc=f32)\n  return "
	 "%1\n}\n",
	 {{true, false}, {true, false}}},
	{"channels, and no row of pixels",
	 "graph @f(%x: f32[9, 32], %y: f32[9, 32]) {\n"
	 "  %1 = contract(%x, %y, batch_x=[1], batch_y=[1], sum_x=[0], sum_y=[0], acc=f32)\n  "
	 "return %1\n}\n",
	 {{true, true}, {true, true}}},
	{"channels and pixels",
	 "graph @f(%x: f32[9, 40, 32], %y: f32[9, 32]) {\n"
	 "  %1 = contract(%x, %y, batch_x=[2], batch_y=[1], sum_x=[0], sum_y=[0], acc=f32)\n"
	 "  %2 = permute(%1, perm=[1, 0])\n  return %2\n}\n",
	 {{false, false}, {true, false}}},
	{"a product of matrices",
	 "graph @f(%x: f32[40, 64], %y: f32[64, 48]) {\n"
	 "  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n  return "
	 "%1\n}\n",
	 {{true, false}, {true, false}}},
};

/* ---- what a plan must not change ---- */

typedef struct {
	const PlanInput *in; /* a copy, byte by byte */
	Nest *nest;          /* with arrays of its own */
	const char *kernel;
	uint32_t nbuf;
} Snapshot;

static const char *printed(const Lowered *l, const Kernel *k)
{
	Text t;
	text_init(&t, l->ir->ctx->arena);
	kernel_print(l, k, &t);
	return t.data;
}

static Snapshot snapshot(const PlanInput *in)
{
	const Nest *n = in->nest;
	const uint32_t words = (n->k->stage.n + 63) / 64;
	Nest *copy = nest_copy(n, n->k);
	copy->reads = arena_dup(n->arena, n->reads, (size_t)n->k->kx.n * words * sizeof *n->reads);
	return (Snapshot){.in = arena_dup(n->arena, in, sizeof *in),
			  .nest = copy,
			  .kernel = printed(n->l, n->k),
			  .nbuf = n->l->buf.n};
}

#define SAME(a, b, n) assert_memory_equal(a, b, (n) * sizeof *(a))

static void assert_unchanged(const PlanInput *in, const Snapshot *old)
{
	const Nest *n = in->nest, *o = old->nest;
	const Kernel *k = n->k;
	SAME(in, old->in, 1);
	assert_ptr_equal(k, o->k);
	assert_string_equal(printed(n->l, k), old->kernel);
	assert_int_equal(n->l->buf.n, old->nbuf);
	assert_int_equal(n->n, o->n);
	assert_int_equal(n->outer, o->outer);
	SAME(n->var, o->var, MAX_AXES);
	SAME(n->extent, o->extent, MAX_AXES);
	SAME(n->deps, o->deps, k->kx.n);
	SAME(n->reads, o->reads, k->kx.n * ((k->stage.n + 63) / 64));
	SAME(n->offset, o->offset, k->kx.n);
	SAME(n->from, o->from, k->kx.n);
	SAME(n->store, o->store, k->stage.n);
	SAME(n->position, o->position, k->vvar.n);
}

/* ---- every schedule on every kernel ---- */

static const char *const names[] = {"x86-64-v3", "generic-c"};

/* A graph of one kernel, lowered. */
static Lowered *lowered(const Case *c, Ctx *ctx)
{
	Ir *ir = ir_new(ctx);
	if (strstr(c->graph, "buffer #1")) {
		static float zeros[70000];
		static int64_t dim = 70000;
		ir_const(ir, (Const){.name = "p",
				     .dtype = DT_f32,
				     .rank = 1,
				     .dim = &dim,
				     .data = zeros,
				     .bytes = sizeof zeros,
				     .is_param = true});
	}
	Graph *g = graph_parse(ir, c->graph, c->what);
	PipelineOptions passes = {0};
	LowerOptions o = {0};
	assert_true(g && pipeline_run(g, &passes));
	Lowered *l = lower_graph(g, &o);
	assert_true(l && l->steps.step.n == 1);
	return l;
}

/* The same twice. */
static void assert_same_plan(const Plan *a, const Plan *b)
{
	assert_string_equal(a->algorithm, b->algorithm);
	assert_string_equal(a->why, b->why);
	assert_int_equal(a->want.load.i, b->want.load.i);
	assert_true(layout_equal(&a->want.layout, &b->want.layout));
	assert_int_equal(a->nrefused, b->nrefused);
}

static void ask(const Case *c, uint32_t target, uint32_t schedule)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s: an internal error", c->what);
	Lowered *l = lowered(c, ctx);
	Kernel *k = kernel_copy(ctx->arena, l->steps.step.data[0].kernel);
	kernel_split_axes(l, k, false);
	PlanInput in = {.nest = nest_new(l, k), .target = target_find(names[target])};
	plan_find_contraction(&in);
	in.cost = kernel_cost(in.nest, UINT64_MAX);
	const Snapshot before = snapshot(&in);
	Plan once = {0}, again = {0};
	const Refusal no = schedules[schedule].plan(&in, &once);
	const bool refused = no.why != NULL;
	if (refused != (schedule < SCHEDULES && c->refused[target][schedule]))
		fail_msg("%s, %s, %s: %s", c->what, names[target], schedules[schedule].name,
			 refused ? no.why : "taken");
	assert_unchanged(&in, &before);
	assert_true(refused == (schedules[schedule].plan(&in, &again).why != NULL));
	if (!refused)
		assert_same_plan(&once, &again);
	ctx_free(ctx);
}

static void plans(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
		for (uint32_t target = 0; target < 2; target++)
			for (uint32_t schedule = 0; schedule < ALL; schedule++)
				ask(&cases[c], target, schedule);
}

/* ---- the schedule as a value ---- */

/* The kernel, and what it became. */
static const char *text_of(const Lowered *l, const Kernel *k, const Schedule *s)
{
	Text t;
	text_init(&t, l->ir->ctx->arena);
	kernel_print(l, k, &t);
	text_printf(&t, "%s: %s\n", s->algorithm, s->why);
	for (uint32_t i = 0; i < s->refused.n; i++)
		text_printf(&t, "not %s: %s\n", s->refused.data[i].schedule,
			    s->refused.data[i].why);
	for (uint32_t i = 0; i < s->phase.n; i++)
		loop_print(s->phase.data[i].f, &t, true);
	return t.data;
}

static void schedule_twice(const Case *c, uint32_t target)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s: an internal error", c->what);
	const Lowered *l = lowered(c, ctx);
	const Kernel *k = l->steps.step.data[0].kernel;
	uint32_t nbuf = l->buf.n;
	const Schedule *once = schedule_kernel(l, k, target_find(names[target]));
	const char *first = text_of(l, k, once);
	const Schedule *again = schedule_kernel(l, k, target_find(names[target]));
	assert_string_equal(first, text_of(l, k, again));
	assert_int_equal(l->buf.n, nbuf);
	assert_true(once->code > 0 && once->bytes > 0);
	for (uint32_t i = 0; i < SCHEDULES && c->refused[target][i]; i++)
		assert_string_equal(once->refused.data[i].schedule, schedules[i].name);
	ctx_free(ctx);
}

static void is_a_function(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
		for (uint32_t target = 0; target < 2; target++)
			schedule_twice(&cases[c], target);
}

/* ---- phases ---- */

typedef struct {
	const char *what, *graph;
	uint32_t nphase, ntemp;
	SchedTemp temp[2];
	const char *ntasks[3];
} Phases;

static const Phases parts[] = {
	{"a sum", "graph @f(%x: f32[300000]) {\n  %1 = reduce(%x, kind=\"sum\", dims=[0], "
		  "acc=f32)\n  return %1\n}\n",
	 2, 1, {{.dtype = DT_f32, .first = 0, .last = 1}}, {"10", "1"}},
	{"a sum that is read along the row",
	 "graph @f(%x: f16[2, n]) where 1 <= n ~ 100000 {\n  %1 = reduce(%x, kind=\"max\", "
	 "dims=[1], acc=f16)\n  %2 = broadcast(%1, shape=[2, n], map=[0])\n  %3 = sub(%x, "
	 "%2)\n  return %3\n}\n",
	 2, 1, {{.dtype = DT_f32, .first = 0, .last = 1}}, {NULL}},
	{"sums that read each other",
	 "graph @f(%x: f64[200000]) {\n  %1 = reduce(%x, kind=\"sum\", dims=[0], acc=f64)\n"
	 "  %2 = broadcast(%1, shape=[200000], map=[])\n  %3 = sub(%x, %2)\n"
	 "  %4 = reduce(%3, kind=\"sum\", dims=[0], acc=f64)\n  return %4\n}\n",
	 3, 2, {{.dtype = DT_f64, .first = 0, .last = 1}, {.dtype = DT_f64, .first = 1, .last = 2}}, {"7", "7", "1"}},
	{"columns apart, copied before",
	 "graph @f(%x: f32[400, 500], %y: f32[48, 500]) {\n"
	 "  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f32)\n  return "
	 "%1\n}\n",
	 2, 1, {{.dtype = DT_f32, .first = 0, .last = 1}}, {NULL}},
	{"short rows", "graph @f(%x: f32[300]) {\n  %1 = reduce(%x, kind=\"sum\", dims=[0], "
		       "acc=f32)\n  return %1\n}\n", 1, 0, {{0}}, {"1"}},
	{"many rows",
	 "graph @f(%x: f32[400, 3000]) {\n  %1 = reduce(%x, kind=\"sum\", dims=[1], acc=f32)\n  "
	 "return %1\n}\n", 1, 0, {{0}}, {NULL}},
};

/* Temporaries live from the phase that leaves them to the last one that reads them, and are
 * arguments of these. */
static void check_phase(const Schedule *s, uint32_t i)
{
	const SchedPhase *phase = &s->phase.data[i];
	for (uint32_t a = 0; a < phase->narg; a++) {
		if (phase->arg[a].kind != ARG_TEMP)
			continue;
		const SchedTemp *t = &s->temp.data[phase->arg[a].k];
		assert_true(t->first <= i && i <= t->last);
		assert_int_equal(phase->f->buf.data[a].written, i == t->first);
	}
}

static void check_phases(const Phases *p)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s: an internal error", p->what);
	const Lowered *l = lowered(&(Case){.what = p->what, .graph = p->graph}, ctx);
	const Schedule *s =
		schedule_kernel(l, l->steps.step.data[0].kernel, target_find("x86-64-v3"));
	if (s->phase.n != p->nphase || s->temp.n != p->ntemp)
		fail_msg("%s: %u phases, %u temporaries", p->what, s->phase.n, s->temp.n);
	for (uint32_t t = 0; t < p->ntemp; t++) {
		const SchedTemp *have = &s->temp.data[t], *want = &p->temp[t];
		assert_true(have->dtype == want->dtype && have->first == want->first &&
			    have->last == want->last);
	}
	for (uint32_t i = 0; i < s->phase.n; i++) {
		if (p->ntasks[i])
			assert_string_equal(sym_str(l->ir->syms, s->phase.data[i].ntasks),
					    p->ntasks[i]);
		check_phase(s, i);
	}
	ctx_free(ctx);
}

static void has_phases(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof parts / sizeof *parts; c++)
		check_phases(&parts[c]);
}

/* ---- amounts ---- */

/* The same kernel of fixed sizes, and of symbols that are expected to be as large. */
typedef struct {
	const char *what, *fixed, *symbolic;
	double flops, bytes;
} Amount;

#define SUM_OF                                                                                     \
	"  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n  "       \
	"return %1\n}\n"
#define ROWS "  %1 = reduce(%x, kind=\"sum\", dims=[1], acc=f32)\n  return %1\n}\n"

#define IN_PLACE                                                                                   \
	"graph @f(%g: f32[70000], %p: f32[70000] buffer #1 \"p\") {\n  %1 = sub(%p, %g)\n  "       \
	"return %1 -> \"p\"\n}\n"

static const Amount amounts[] = {
	{"a product", "graph @f(%x: f32[40, 64], %y: f32[64, 48]) {\n" SUM_OF,
	 "graph @f(%x: f32[m, 64], %y: f32[64, 48]) where 1 <= m ~ 40 {\n" SUM_OF, 2 * 40 * 64 * 48, 4 * (40 * 64 + 64 * 48 + 40 * 48)},
	{"many rows", "graph @f(%x: f32[5000, 30]) {\n" ROWS, "graph @f(%x: f32[m, 30]) where 1 <= m ~ 5000 {\n" ROWS, 5000 * 30, 4 * 5000 * 31},
	{"one function of each", "graph @f(%x: f32[70000]) {\n  %1 = tanh(%x)\n  return %1\n}\n",
	 "graph @f(%x: f32[n]) where 1 <= n ~ 70000 {\n  %1 = tanh(%x)\n  return %1\n}\n", 0, 8 * 70000},
	{"what is read and replaced in place", IN_PLACE, IN_PLACE, 70000, 12 * 70000},
	{"parts of rows", "graph @f(%x: f32[300000]) {\n  %1 = reduce(%x, kind=\"sum\", dims=[0], "
			  "acc=f32)\n  return %1\n}\n",
	 "graph @f(%x: f32[n]) where 1 <= n ~ 300000 {\n  %1 = reduce(%x, kind=\"sum\", dims=[0], "
	 "acc=f32)\n  return %1\n}\n", 300000, 4 * 300000},
};

static void amount(const Amount *a, const char *graph, const char *target, double *cycles)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s: an internal error", a->what);
	const Lowered *l = lowered(&(Case){.what = a->what, .graph = graph}, ctx);
	const Schedule *s = schedule_kernel(l, l->steps.step.data[0].kernel, target_find(target));
	*cycles = s->cycles;
	bool few = a->flops == 0 || (s->flops >= a->flops && s->flops <= 1.01 * a->flops);
	if (!few || s->bytes < a->bytes || s->bytes > 1.01 * a->bytes)
		fail_msg("%s, %s: %.0f operations, %.0f bytes", a->what, target, s->flops,
			 s->bytes);
	ctx_free(ctx);
}

/* Predictions for symbols are those for the sizes that are expected. */
static void has_amounts(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof amounts / sizeof *amounts; k++)
		for (uint32_t target = 0; target < 2; target++) {
			double fixed, symbolic;
			amount(&amounts[k], amounts[k].fixed, names[target], &fixed);
			amount(&amounts[k], amounts[k].symbolic, names[target], &symbolic);
			if (!(symbolic > 0.7 * fixed && symbolic < 1.5 * fixed))
				fail_msg("%s, %s: %g and %g cycles", amounts[k].what, names[target],
					 fixed, symbolic);
		}
}

/* ---- constants ---- */

/* Graphs that read constant 1, of `dim`; how many copies there are in a file for several levels,
 * and after a choice. */
typedef struct {
	const char *what, *graph, *levels[3];
	int64_t dim[4];
	uint32_t rank, copies, chosen;
} Reads;

static const Reads reads[] = {
	{"rows, and a product",
	 "graph @f(%i: i64[B], %x: f32[B, 40]) where 1 <= B ~ 8 {\n  %t = const #1 f32[1000, 40]\n"
	 "  %1 = aten.embedding(%t, %i) : f32[B, 40]\n"
	 "  %2 = contract(%x, %t, batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f32)\n  return "
	 "%1, %2\n}\n",
	 {"x86-64-v4"}, {1000, 40}, 2, 2, 1},
	{"rows of a small table, and a product",
	 "graph @f(%i: i64[B], %x: f32[B, 40]) where 1 <= B ~ 8 {\n  %t = const #1 f32[100, 40]\n"
	 "  %1 = aten.embedding(%t, %i) : f32[B, 40]\n"
	 "  %2 = contract(%x, %t, batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f32)\n  return "
	 "%1, %2\n}\n",
	 {"x86-64-v4"}, {100, 40}, 2, 2, 2},
	{"products from both sides",
	 "graph @f(%x: f32[64, 160], %z: f32[64, 192]) {\n  %t = const #1 f32[192, 160]\n"
	 "  %1 = contract(%x, %t, batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f32)\n"
	 "  %2 = contract(%z, %t, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n  return "
	 "%1, %2\n}\n",
	 {"x86-64-v3"}, {192, 160}, 2, 2, 1},
	{"groups of 24 columns: panels of 8 for some levels, none for another",
	 "graph @f(%x: f32[1, 192, 9, 9]) {\n  %t = const #1 f32[192, 24, 3, 3]\n"
	 "  %1 = aten.conv2d(%x, %t, groups=8) : f32[1, 192, 7, 7]\n  return %1\n}\n",
	 {"x86-64-v2", "x86-64-v3", "x86-64-v4"}, {192, 24, 3, 3}, 4, 2, 1},
};

static Graph *read_graph(const Reads *r, Ctx *ctx)
{
	Ir *ir = ir_new(ctx);
	uint64_t bytes = 4;
	for (uint32_t k = 0; k < r->rank; k++)
		bytes *= (uint64_t)r->dim[k];
	ir_const(ir, (Const){.name = "t",
			     .dtype = DT_f32,
			     .rank = r->rank,
			     .dim = r->dim,
			     .data = ARENA_ARRAY(ctx->arena, char, bytes),
			     .bytes = bytes,
			     .is_param = true});
	Graph *g = graph_parse(ir, r->graph, r->what);
	PipelineOptions passes = {.skip = "fold"}; /* the constant stays as it is read */
	assert_true(g && pipeline_run(g, &passes));
	return g;
}

/* In how many layouts the last level's program holds the constant. */
static uint32_t stored(const Reads *r, Graph *g, bool choose)
{
	ScheduleLevel level[3];
	LowerOptions o = {0};
	Program *p = NULL;
	uint32_t n = 0, copies = 0;
	for (; n < 3 && r->levels[n]; n++)
		level[n] = (ScheduleLevel){lower_graph(g, &o), target_find(r->levels[n])};
	if (choose)
		choose_const_layouts(level, n);
	for (uint32_t k = 0; k < n; k++)
		p = schedule_program(&(ScheduleEntry){"run", level[k].lowered}, 1, level[k].target,
				     &(ScheduleOptions){.weights = p});
	for (uint32_t k = 0; k < p->constant.n; k++)
		copies += p->constant.data[k].source.i == 1;
	return copies;
}

static void check_choice(const Reads *r)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s: an internal error", r->what);
	uint32_t copies = stored(r, read_graph(r, ctx), false);
	uint32_t chosen = stored(r, read_graph(r, ctx), true);
	if (copies != r->copies || chosen != r->chosen)
		fail_msg("%s: %u layouts, %u when one is chosen", r->what, copies, chosen);
	ctx_free(ctx);
}

static void chooses(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof reads / sizeof *reads; c++)
		check_choice(&reads[c]);
}

/* ---- which plan of several ---- */

/* A kernel that several rows take, and what the schedule for x86-64-v3 is called. */
typedef struct {
	const char *what, *graph, *algorithm;
} Compared;

static const Compared compared[] = {
	{"many rows",
	 "graph @f(%x: f32[64, 64], %y: f32[48, 64]) {\n"
	 "  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f32)\n  return "
	 "%1\n}\n",
	 "gemm"},
	{"one row, and columns apart: sums along k",
	 "graph @f(%x: f32[500], %y: f32[48, 500]) {\n"
	 "  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[0], sum_y=[1], acc=f32)\n  return "
	 "%1\n}\n",
	 "generic"},
	{"few rows, and columns apart: sums along k, each column read once for all rows",
	 "graph @f(%x: f32[3, 500], %y: f32[48, 500]) {\n"
	 "  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f32)\n  return "
	 "%1\n}\n",
	 "gemm, b along k"},
	{"small when exported, but of any size",
	 "graph @f(%x: f32[K, M], %y: f32[N, K]) where 1 <= K, 1 <= M, 1 <= N {\n"
	 "  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[0], sum_y=[1], acc=f32)\n  return "
	 "%1\n}\n",
	 "gemm"},
	{"small in any case: a phase that copies takes longer than the sums",
	 "graph @f(%x: f32[K, 2], %y: f32[2, K]) where 1 <= K {\n"
	 "  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[0], sum_y=[1], acc=f32)\n  return "
	 "%1\n}\n",
	 "generic"},
};

static void compare(const Compared *c)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s: an internal error", c->what);
	const Case graph = {.what = c->what, .graph = c->graph};
	const Lowered *l = lowered(&graph, ctx);
	const Schedule *s =
		schedule_kernel(l, l->steps.step.data[0].kernel, target_find("x86-64-v3"));
	if (strncmp(s->algorithm, c->algorithm, strlen(c->algorithm)) != 0)
		fail_msg("%s: %s", c->what, s->algorithm);
	ctx_free(ctx);
}

static void compares(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof compared / sizeof *compared; c++)
		compare(&compared[c]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans),      cmocka_unit_test(is_a_function),
		cmocka_unit_test(has_phases), cmocka_unit_test(has_amounts),
		cmocka_unit_test(chooses),    cmocka_unit_test(compares)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
