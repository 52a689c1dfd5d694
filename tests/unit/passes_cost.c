/* The machine decides what is computed where: the same graphs, with phases and stores that cost
 * nothing or very much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/build/text.h"
#include "ir/op/op.h"
#include "ir/target/work.h"
#include "lower/graph/graph.h"
#include "passes/pass.h"
#include "passes/pipeline.h"

typedef struct {
	const char *what, *graph;
	uint32_t phase; /* cycles */
	float stores;   /* a cycle */
	uint32_t steps; /* all in the program: kernels, branches */
	uint32_t stages; /* of the last kernel */
} Case;

#define REPEATED                                                                                   \
	"graph @f(%y: f32[64], %x: f32[256, 64]) {\n  %e = exp(%y)\n  %b = broadcast(%e, "         \
	"shape=[256, 64], map=[1])\n"                                                              \
	"  %r = add(%x, %b)\n  return %r\n}\n"
#define EPILOGUE                                                                                   \
	"graph @f(%y: f32[1, 32], %w: f32[32, 64], %x: f32[256, 64]) {\n"                          \
	"  %c = contract(%y, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n  %e = "  \
	"neg(%c)\n"                                                                                \
	"  %s = reshape(%e, shape=[64])\n  %b = broadcast(%s, shape=[256, 64], map=[1])\n  %r = "  \
	"add(%x, %b)\n  return %r\n}\n"
#define READ_TWICE                                                                                 \
	"graph @f(%x: f32[256, 64]) {\n  %e = exp(%x)\n  %s = reduce(%e, kind=\"sum\", dims=[1], " \
	"acc=f32)\n"                                                                               \
	"  %b = broadcast(%s, shape=[256, 64], map=[0])\n  %r = mul(%e, %b)\n  return %r\n}\n"
/* Each exponential repeats half a phase's worth. */
#define CHAIN                                                                                      \
	"graph @f(%y: f32[64], %x: f32[256, 64]) {\n  %a = exp(%y)\n  %b = exp(%a)\n  %c = "       \
	"exp(%b)\n  %e = exp(%c)\n"                                                                \
	"  %s = broadcast(%e, shape=[256, 64], map=[1])\n  %r = add(%x, %s)\n  return %r\n}\n"
#define BRANCH                                                                                     \
	"graph @f(%p: bool[], %x: f32[1000]) {\n  %c = cond(%p, [%x], yes=graph @yes(%x: "         \
	"f32[1000]) {\n    %n = neg(%x)\n"                                                         \
	"    return %n\n  }, no=graph @no(%x: f32[1000]) {\n    return %x\n  })\n  %r = get(%c, "  \
	"index=0)\n  return %r\n}\n"

static const Case cases[] = {
	{"an exponential that many rows read, phases cost nothing", REPEATED, 0, 1, 2, 1},
	{"an exponential that many rows read, phases cost much", REPEATED, 100000000, 1, 1, 1},
	{"exponentials of exponentials that many rows read, one phase pays for one of them", CHAIN, 20000, 1, 2, 1},
	{"an epilogue is stored with its contraction, whatever a phase costs", EPILOGUE, 0, 1, 2, 1},
	{"an epilogue is stored with its contraction, however much a phase costs", EPILOGUE, 100000000, 1, 2, 1},
	{"two stages read an exponential, stores are cheap", READ_TWICE, 5120, 1, 1, 3},
	{"two stages read an exponential, stores are slow", READ_TWICE, 5120, 0.001f, 1, 2},
	{"a branch that takes longer than a phase", BRANCH, 0, 1, 1, 0},
	{"a branch that takes less than a phase", BRANCH, 100000000, 1, 1, 1},
};

static void decide(const Case *c)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s: an internal error", c->what);
	Target t = *target_find("x86-64-v3");
	t.machine.phase = c->phase;
	t.machine.rate[MOP_store][0].issue = c->stores;
	Ir *ir = ir_new(ctx);
	Graph *g = graph_parse(ir, c->graph, c->what);
	PipelineOptions passes = {.target = &t};
	LowerOptions o = {.target = &t};
	assert_true(g && pipeline_run(g, &passes));
	Lowered *l = lower_graph(g, &o);
	assert_non_null(l);
	const Step *last = &l->steps.step.data[l->steps.step.n - 1];
	uint32_t stages = last->kind == STEP_KERNEL ? last->kernel->stage.n : 0;
	if (l->steps.step.n != c->steps || stages != c->stages)
		fail_msg("%s: %u steps, the last one of %u stages", c->what, l->steps.step.n,
			 stages);
	ctx_free(ctx);
}

static void machine_decides(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		decide(&cases[k]);
}

static Node branch_of(const Graph *g)
{
	Node n = g->first;
	while (n.i && node_op(g, n) != OP_cond)
		n = node_next(g, n);
	return n;
}

/* `body` demands something of a size (NULL: none does). */
static void check_branch(const char *body)
{
	static const char text[] = "graph @f(%p: bool[], %x: f32[4], %b: f32[B]) where 1 <= B {\n  "
				   "%c = cond(%p, [%x], yes=graph @yes(%x: f32[4]) {\n"
				   "    %n = neg(%x)\n    return %n\n  }, no=graph @no(%x: f32[4]) "
				   "{\n    return %x\n  })\n"
				   "  %r = get(%c, index=0)\n  return %r\n}\n";
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s", ctx->bug_text);
	Graph *g = graph_parse(ir_new(ctx), text, "f");
	assert_non_null(g);
	SymTab *syms = graph_syms(g);
	if (body)
		graph_guard(node_attr(g, branch_of(g), body)->graph, GUARD_EQ,
			    sym_find(syms, "B", 1), sym_int(syms, 7), body);
	PassCtx c = {.target = target_find("x86-64-v3")};
	assert_int_equal(pass_branch(g, &c), !body);
	assert_int_equal(branch_of(g).i != 0, body != NULL);
	ctx_free(ctx);
}

/* What only one branch demands of sizes, it demands where it is taken: it stays a branch. */
static void demands_stay(void **state)
{
	(void)state;
	check_branch(NULL);
	check_branch("yes");
	check_branch("no");
}

/* More of anything takes longer; wider vectors do more at once. */
static void cycles_grow(void **state)
{
	(void)state;
	const Target *narrow = target_find("x86-64-v2"), *wide = target_find("x86-64-v4");
	assert_true(target_cycles(wide, (Work){0}) == 0);
	assert_true(target_cycles(wide, (Work){.phases = 1}) == wide->machine.phase);
	assert_true(target_cycles(wide, (Work){.operations = 1e6}) <
		    target_cycles(narrow, (Work){.operations = 1e6}));
	assert_true(target_cycles(wide, (Work){.bytes = 1e4}) <
		    target_cycles(wide, (Work){.bytes = 1e5}) / 9);
	assert_true(target_cycles(wide, (Work){.bytes = 1e7}) >
		    20 * target_cycles(wide, (Work){.bytes = 1e6}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(machine_decides),
					   cmocka_unit_test(demands_stay),
					   cmocka_unit_test(cycles_grow)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
