/* A context for each test: cmocka_unit_test_setup_teardown(test, setup, teardown). */
#ifndef WEFT_TESTS_CTX_FIXTURE_H
#define WEFT_TESTS_CTX_FIXTURE_H

#include "base/ctx.h"

static Ctx *ctx;

static int setup(void **state)
{
	(void)state;
	ctx = ctx_new();
	return ctx ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(ctx);
	return 0;
}

#endif
