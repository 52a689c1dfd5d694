/* An Ir for each test: cmocka_unit_test_setup_teardown(test, setup, teardown). */
#ifndef WEFT_TESTS_IR_FIXTURE_H
#define WEFT_TESTS_IR_FIXTURE_H

#include "ir/build/text.h"
#include "ir/graph/graph.h"

static Ctx *ctx;
static Ir *ir;

static int setup(void **state)
{
	(void)state;
	ctx = ctx_new();
	assert_non_null(ctx);
	ir = ir_new(ctx);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(ctx);
	return 0;
}

static inline Graph *parsed(const char *text)
{
	Graph *g = graph_parse(ir, text, "test");
	if (!g)
		fail_msg("%s", ctx->last ? ctx->last->text : "");
	return g;
}

#endif
