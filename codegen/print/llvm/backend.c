#include "codegen/print/llvm/backend.h"

#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include "codegen/print/llvm/priv.h"
#include "interface_id.h"

/* A call from the driver. This library has its own tables of operators and scalar functions, and so
 * its own place to unwind to. */
typedef struct {
	Program *program;
	const Target *target;
	const EmitOptions *options;
	const EmitSelect *select;
	LlvmKind kind;
	uint32_t jobs, nsymbol;
	LlvmFiles *out;
	const LlvmFiles *files;
	const JitSymbol *symbol;
	const char *name;
	Jit *jit;
	void *found;
} Call;

static bool guarded(Ctx *ctx, bool (*f)(Ctx *, Call *), Call *c)
{
	jmp_buf outer, *before = arena_catch(&ctx->unwind);
	memcpy(&outer, &ctx->unwind, sizeof outer);
	fatal_enter();
	bool ok = false;
	int why = setjmp(ctx->unwind);
	if (why == 0)
		ok = f(ctx, c);
	fatal_leave();
	memcpy(&ctx->unwind, &outer, sizeof outer);
	arena_catch(before);
	if (why)
		longjmp(ctx->unwind, why);
	return ok;
}

static bool call_emit(Ctx *ctx, Call *c)
{
	(void)ctx;
	return emit_llvm(c->program, c->target, c->options, c->kind, c->jobs, c->out);
}

static bool backend_emit(Program *p, const Target *t, const EmitOptions *o, LlvmKind kind,
			 uint32_t jobs, LlvmFiles *out)
{
	return guarded(p->ir->ctx, call_emit,
		       &(Call){.program = p,
			       .target = t,
			       .options = o,
			       .kind = kind,
			       .jobs = jobs,
			       .out = out});
}

static bool call_select(Ctx *ctx, Call *c)
{
	return emit_llvm_select(ctx, c->select, c->target, c->kind, c->out);
}

static bool backend_select(Ctx *ctx, const EmitSelect *s, const Target *least, LlvmKind kind,
			   LlvmFiles *out)
{
	return guarded(ctx, call_select,
		       &(Call){.select = s, .target = least, .kind = kind, .out = out});
}

static bool call_link(Ctx *ctx, Call *c)
{
	c->jit = jit_link(ctx, c->files, c->symbol, c->nsymbol);
	return c->jit;
}

static Jit *backend_link(Ctx *ctx, const LlvmFiles *files, const JitSymbol *symbol, uint32_t n)
{
	Call c = {.files = files, .symbol = symbol, .nsymbol = n};
	return guarded(ctx, call_link, &c) ? c.jit : NULL;
}

static bool call_find(Ctx *ctx, Call *c)
{
	c->found = jit_find(ctx, c->jit, c->name);
	return c->found;
}

static void *backend_find(Ctx *ctx, Jit *j, const char *name)
{
	Call c = {.jit = j, .name = name};
	return guarded(ctx, call_find, &c) ? c.found : NULL;
}

static void backend_free(Jit *j)
{
	fatal_enter();
	jit_free(j);
	fatal_leave();
}

const LlvmBackend weft_llvm_backend = {
	.emit = backend_emit,
	.select = backend_select,
	.version = llvm_version,
	.link = backend_link,
	.find = backend_find,
	.free = backend_free,
	.on_fatal = llvm_on_fatal,
};

/* Read from the file before it is loaded: a library of another build is refused. */
static const struct {
	uint32_t name_bytes, content_bytes, type;
	char name[(sizeof LLVM_BACKEND_NOTE + 3) / 4 * 4], content[sizeof WEFT_INTERFACE_ID - 1];
} note __attribute__((section(".note.weft"), used, aligned(4))) = {
	sizeof LLVM_BACKEND_NOTE, sizeof WEFT_INTERFACE_ID - 1, 1, LLVM_BACKEND_NOTE,
	WEFT_INTERFACE_ID,
};
