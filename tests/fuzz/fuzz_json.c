/* libFuzzer: the bytes are models/model.json of an archive without weights, then, behind a NUL
 * byte, the weights config. A symbolic expression per line is tried too when the text is no object.
 */
#include <stdlib.h>
#include <string.h>

#include "frontend/pt2/priv.h"
#include "tests/fuzz/mutate.h"

static void add_member(Ctx *ctx, Archive *a, const char *name, const void *data, size_t size)
{
	Member m = {.name = name, .size = size, .ready = true, .contents = {data, size}};
	intern(&a->names, name, (uint32_t)strlen(name), NULL);
	array_push(ctx->arena, &a->member, m);
}

static void expressions(Ctx *ctx, const char *text)
{
	ExprEnv env = {.ctx = ctx, .syms = symtab_new(ctx)};
	const Cond *c;
	uint32_t n;
	double v;
	char *copy = arena_strdup(ctx->arena, text), *line;
	while ((line = strsep(&copy, "\n"))) {
		expr_int(&env, line);
		expr_cond(&env, line, &c, &n);
		expr_float(&env, line, &v);
	}
}

static void read_all(Ctx *ctx, uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	static const uint8_t zeros[1 << 12];
	size_t n = strlen(text);
	if (*text != '{') {
		expressions(ctx, text);
		return;
	}
	Archive a = {.path = "fuzz", .root = ""};
	intern_init(&a.names, ctx->arena);
	add_member(ctx, &a, "models/model.json", text, n);
	if (n < size)
		add_member(ctx, &a, "data/weights/model_weights_config.json", text + n + 1,
			   size - n - 1);
	add_member(ctx, &a, "data/weights/weight_0", zeros, sizeof zeros);
	add_member(ctx, &a, "data/weights/weight_1", zeros, 0);
	pt2_load_archive(ir_new(ctx), &a, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_run(data, size, 1, read_all);
}
