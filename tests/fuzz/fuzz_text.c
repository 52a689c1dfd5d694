/* libFuzzer: the bytes are the text form of a graph. What parses must verify or be refused with a
 * message; what verifies must print and parse back to the same, and then goes the way of a model:
 * passes, kernels, program, each verified. Seeds: the graphs of tests/text/ir, tests/text/passes,
 * tests/text/lower, tests/text/run and tests/errors. */
#include <stdlib.h>
#include <string.h>

#include "codegen/program/schedule.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/op/op.h"
#include "lower/graph/graph.h"
#include "passes/pipeline.h"
#include "tests/fuzz/mutate.h"

static const char *printed(Ctx *ctx, const Graph *g)
{
	Text t;
	text_init(&t, ctx->arena);
	graph_print(g, &t);
	return t.data;
}

static void compile(Ctx *ctx, Graph *g)
{
	PipelineOptions passes = {0};
	LowerOptions lower = {0};
	ScheduleOptions schedule = {0};
	const Target *target = target_find("x86-64-v3");
	uint32_t errors = ctx->nerror;
	if (!pipeline_run(g, &passes) && ctx->nerror == errors)
		abort(); /* refused without saying why */
	if (ctx->nerror != errors)
		return;
	Lowered *l = lower_graph(g, &lower);
	if (l && ctx->nerror == errors) {
		choose_const_layouts(&(ScheduleLevel){l, target}, 1);
		schedule_program(&(ScheduleEntry){"run", l}, 1, target, &schedule);
	} else if (ctx->nerror == errors) {
		abort();
	}
}

static void read_all(Ctx *ctx, uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	(void)size;
	Ir *ir = ir_new(ctx);
	Graph *g = graph_parse(ir, text, "fuzz");
	bool loaded = g && graph_verify(g) && !ctx->nerror;
	fuzz_count(loaded);
	if (!loaded) {
		if (!ctx->nerror)
			abort();
		return;
	}
	if (fuzz_only_reads)
		return;
	const char *once = printed(ctx, g);
	Graph *again = graph_parse(ir, once, "printed");
	if (!again || strcmp(once, printed(ctx, again)))
		abort();
	compile(ctx, g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_run(data, size, 1, read_all);
}
