/* libFuzzer: the bytes are the text form of a graph. What parses must verify or be refused with a
 * message, and what verifies must print, parse back to the same.
 * Seeds: the graphs of tests/ir, tests/passes, tests/lower, tests/run and tests/errors. */
#include <stdlib.h>
#include <string.h>

#include "ir/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *printed(Ctx *ctx, const Graph *g)
{
	Text t;
	text_init(&t, ctx->arena);
	graph_print(g, &t);
	return t.data;
}

static void read_all(Ctx *ctx, const char *text)
{
	Ir *ir = ir_new(ctx);
	Graph *g = graph_parse(ir, text, "fuzz");
	if (!g || !graph_verify(g)) {
		if (!ctx->nerror)
			abort(); /* refused without saying why */
		return;
	}
	const char *once = printed(ctx, g);
	Graph *again = graph_parse(ir, once, "printed");
	if (!again || strcmp(once, printed(ctx, again)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);
	memcpy(copy, data, size);
	copy[size] = 0;
	Ctx *ctx = ctx_new();
	int unwound = setjmp(ctx->unwind);
	if (!unwound)
		read_all(ctx, copy);
	if (unwound == UNWIND_BUG)
		abort();
	ctx_free(ctx);
	free(copy);
	return 0;
}
