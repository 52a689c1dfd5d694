/* tests/expected/operators.txt: what becomes of every operator that PyTorch can leave in a file.
 * The list of names is PyTorch's (tests/make/make_operators.py), what stands behind a name is the
 * importer's answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/pt2/priv.h"
#include "tests/help/golden.h"

static const char path[] = TEST_DATA "/../expected/operators.txt";

/* Whether the importer takes nodes with this target: arithmetic of Python's by name, everything
 * else by the table. */
static bool is_imported(Import *im, const char *target)
{
	return target_of(im, target).kind != TARGET_UNKNOWN;
}

static void test_recorded(void **state)
{
	(void)state;
	Ctx *ctx = ctx_new();
	Import im = {.ctx = ctx, .ir = ir_new(ctx)};
	FILE *f = fopen(path, "r");
	Text t;
	char line[512], name[256];
	uint32_t unknown = 0;
	assert_non_null(f);
	text_init(&t, ctx->arena);
	while (fgets(line, sizeof line, f)) {
		if (line[0] == '#') {
			text_printf(&t, "%s", line);
			continue;
		}
		assert_int_equal(sscanf(line, "%255s", name), 1);
		const char *why = is_imported(&im, name) ? "" : target_refusal(name);
		unknown += !why;
		if (!why)
			print_error("%s is neither imported nor refused for a reason\n", name);
		text_printf(&t, "%s%s%s\n", name, why && *why ? "  " : "", why ? why : "  ?");
	}
	fclose(f);
	golden_check(path, t.data);
	assert_int_equal(unknown, 0);
	ctx_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
