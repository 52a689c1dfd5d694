/* The samples of the op table with one thing changed (an extent of 0 or 1, another dtype of one
 * operand, another value of an argument, an operand that is missing): results are PyTorch's,
 * recorded in tests/data/edges by tests/make/make_edges.py as one sum with weights each; behind
 * each operator's name a line for each sample, and one for each result of that. What is not
 * PyTorch's is marked there with a "?", and must still differ, so that none stays marked that is
 * right. OP=name in the environment: that op alone; EDGES=list: print the samples that differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "tests/help/digest.h"
#include "tests/help/records.h"
#include "tests/help/sample.h"

enum { MAX_RESULTS = 16, MAX_LINE = 4096 };

/* ---- one sample ---- */

/* Its name, its text, and the lines of its results with their marks. */
typedef struct {
	char head[2 * MAX_LINE], line[MAX_RESULTS][256];
	uint32_t n;
} Entry;

/* Why it is not what is recorded; NULL: it is. */
static const char *difference(Ctx *ctx, const Entry *e)
{
	size_t n = strcspn(e->head, " ");
	Op op = op_find(arena_strndup(ctx->arena, e->head, n));
	Ir *ir = ir_new(ctx);
	Sample s;
	Tensor out[MAX_RESULTS];
	if (!op)
		return "there is no such operator";
	if (!sample_build(ir, op, e->head + n + (e->head[n] == ' '), (SampleForm){0}, &s))
		return "is refused";
	uint32_t nout = s.g->output.n;
	if (nout != e->n)
		return "gives another number of results";
	if (!interp(ctx, s.g, s.in, s.nin, out, nout, ctx->arena))
		return "does not run";
	for (uint32_t k = 0; k < nout; k++)
		if (!digest_agrees(ctx, &out[k], e->line[k] + 2, 1e-30))
			return arena_printf(ctx->arena, "result %u is %s, PyTorch gives %s", k,
					    digest_text(ctx, &out[k]), e->line[k] + 2);
	return NULL;
}

static bool is_marked(const Entry *e)
{
	for (uint32_t k = 0; k < e->n; k++)
		if (e->line[k][0] == '?')
			return true;
	return false;
}

/* True unless it fails. */
static bool check(const Entry *e)
{
	Ctx *volatile ctx = ctx_new();
	assert_non_null(ctx);
	const char *volatile why;
	if (setjmp(ctx->unwind))
		why = ctx->bug_text;
	else
		why = difference(ctx, e);
	bool list = getenv("EDGES") != NULL, ok = list || !why == !is_marked(e);
	if (list && why)
		printf("%s\n", e->head);
	else if (!ok)
		print_error("%s: %s%s%s\n", e->head,
			    why ? why : "is PyTorch's now: its mark can go", ctx->first ? ": " : "",
			    ctx->first ? ctx->first->text : "");
	ctx_free(ctx);
	return ok;
}

static void edges(void **state)
{
	(void)state;
	const char *only = sample_only();
	uint32_t failures = 0, count = 0;
	static Entry e;
	static char line[MAX_LINE], op[MAX_LINE];
	FILE *f = records_open("edges");
	for (bool more = true; more;) {
		more = fgets(line, sizeof line, f) != NULL;
		line[strcspn(line, "\n")] = 0;
		if (more && (line[0] == '=' || line[0] == '?') && line[1] == ' ') {
			assert_true(e.n < MAX_RESULTS);
			assert_true(strlen(line) < sizeof e.line[0]);
			memcpy(e.line[e.n++], line, sizeof e.line[0]);
			continue;
		}
		if (e.n && (!only || strncmp(e.head, only, strlen(only)) == 0)) {
			failures += !check(&e);
			count++;
		}
		e.n = 0;
		if (line[0] == ' ')
			snprintf(e.head, sizeof e.head, "%s%s", op, line);
		else
			snprintf(op, sizeof op, "%s", line);
	}
	fclose(f);
	assert_true(count > 0);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(edges)};
	op_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
