/* The samples of the op table with one argument that PyTorch refuses (a dimension, a size, a bound,
 * a word), recorded in tests/data/refused by tests/make/make_refused.py: each gives one error
 * here. What is accepted is marked there with a "?", or with a "+" and the reason after " | " where
 * that is right, and must still be, so that none stays marked that is refused. OP=name in the
 * environment: that op alone; REFUSED=list: print the samples that are accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build/build.h"
#include "ir/interp/interp.h"
#include "tests/help/records.h"
#include "tests/help/sample.h"

enum { MAX_LINE = 4096, MAX_LEVEL = 12, MAX_NODES = 5000, MAX_RESULTS = 64 };

/* Down to primitives; false after ctx_error. */
static bool expand_all(Graph *g)
{
	const Ctx *ctx = g->ir->ctx;
	for (uint32_t level = 0; level < MAX_LEVEL && g->node.n < MAX_NODES; level++) {
		uint32_t last = g->node.n;
		for (Node n = g->first, next; n.i; n = next) {
			next = node_next(g, n);
			if (op_kind(node_op(g, n)) != OP_COMPOSITE || n.i >= last)
				continue;
			Node by = op_expand_node(
				&(Build){.g = g, .before = n, .where = node_where(g, n)}, n);
			if (ctx->nerror)
				return false;
			if (by.i)
				graph_replace(g, n, by);
			graph_erase(g, n);
		}
	}
	return true;
}

/* NULL: it is refused with one error; one that depends on values, as an index that is out of range,
 * when it is computed. */
static const char *accepted(Ctx *ctx, const char *op, const char *text)
{
	Sample s;
	if (!op_find(op))
		return "there is no such operator";
	Tensor out[MAX_RESULTS];
	if (sample_build(ir_new(ctx), op_find(op), text, (SampleForm){0}, &s) && expand_all(s.g) &&
	    interp(ctx, s.g, s.in, s.nin, out, s.g->output.n, ctx->arena))
		return "is accepted";
	return ctx->nerror == 1 ? NULL : arena_printf(ctx->arena, "has %u errors", ctx->nerror);
}

/* True unless it fails. */
static bool check(const char *op, const char *line)
{
	Ctx *volatile ctx = ctx_new();
	assert_non_null(ctx);
	const char *volatile why;
	const char *reason = strstr(line, " | ");
	assert_true((line[0] == '+') == (reason != NULL));
	line = arena_printf(ctx->arena, "%.*s", reason ? (int)(reason - line) : (int)strlen(line),
			    line);
	if (setjmp(ctx->unwind))
		why = ctx->bug_text;
	else
		why = accepted(ctx, op, line + 1);
	bool list = getenv("REFUSED") != NULL, ok = list || !why == (line[0] == ' ');
	if (list && why)
		printf("%s %s\n", op, line + 1);
	else if (!ok)
		print_error("%s %s: %s%s%s\n", op, line + 1,
			    why ? why : "is refused: its mark can go", ctx->first ? ": " : "",
			    ctx->first ? ctx->first->text : "");
	ctx_free(ctx);
	return ok;
}

static void refused(void **state)
{
	(void)state;
	const char *only = sample_only();
	uint32_t failures = 0, count = 0;
	static char line[MAX_LINE], op[MAX_LINE];
	FILE *f = records_open("refused");
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strchr(" ?+", line[0])) {
			memcpy(op, line, sizeof op);
			continue;
		}
		if (only && strcmp(op, only) != 0)
			continue;
		failures += !check(op, line);
		count++;
	}
	fclose(f);
	assert_true(count > 0);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(refused)};
	op_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
