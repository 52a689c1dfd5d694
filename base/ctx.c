#include "base/ctx.h"
#include "base/visible.h"

#include <stdio.h>
#include <stdlib.h>

Ctx *ctx_new(void)
{
	Ctx *ctx = calloc(1, sizeof *ctx);
	if (!ctx)
		return NULL;
	ctx->arena = arena_new(&ctx->unwind);
	ctx->scratch = arena_new(&ctx->unwind);
	if (ctx->arena && ctx->scratch)
		return ctx;
	ctx_free(ctx);
	return NULL;
}

void ctx_free(Ctx *ctx)
{
	if (!ctx)
		return;
	for (const CtxCleanup *c = ctx->cleanup; c; c = c->next)
		c->run(c->arg);
	arena_free(ctx->arena);
	arena_free(ctx->scratch);
	free(ctx);
}

void ctx_defer(Ctx *ctx, void (*run)(void *), void *arg)
{
	CtxCleanup *c = ARENA_NEW(ctx->arena, CtxCleanup);
	*c = (CtxCleanup){run, arg, ctx->cleanup};
	ctx->cleanup = c;
}

struct CtxInput {
	uint64_t device, number;
	struct CtxInput *next;
};

void ctx_input(Ctx *ctx, uint64_t device, uint64_t number)
{
	if (ctx_is_input(ctx, device, number))
		return;
	struct CtxInput *i = ARENA_NEW(ctx->arena, struct CtxInput);
	*i = (struct CtxInput){device, number, ctx->input};
	ctx->input = i;
}

bool ctx_is_input(const Ctx *ctx, uint64_t device, uint64_t number)
{
	for (const struct CtxInput *i = ctx->input; i; i = i->next)
		if (i->device == device && i->number == number)
			return true;
	return false;
}

static void add_diag(Ctx *ctx, Severity severity, const char *where, const char *fmt, va_list args)
{
	Text raw, text, place;
	text_init(&raw, ctx->scratch);
	text_init(&text, ctx->arena);
	text_init(&place, ctx->arena);
	text_vprintf(&raw, fmt, args);
	text_visible(&text, raw.data, "\n\t");
	if (!where)
		where = ctx->file;
	if (where)
		text_visible(&place, where, "");
	Diag *d = ARENA_NEW(ctx->arena, Diag);
	*d = (Diag){severity, where ? place.data : NULL, text.data, NULL, REFUSAL_NONE};
	if (ctx->last)
		ctx->last->next = d;
	else
		ctx->first = d;
	ctx->last = d;
	ctx->nerror += severity == DIAG_ERROR;
}

bool(ctx_error)(Ctx *ctx, const char *where, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	add_diag(ctx, DIAG_ERROR, where, fmt, args);
	va_end(args);
	return false;
}

bool(ctx_kind)(Ctx *ctx, RefusalKind kind)
{
	Diag *d = ctx->last;
	if (d && d->severity == DIAG_ERROR && !d->kind)
		d->kind = kind;
	return false;
}

void ctx_warn(Ctx *ctx, const char *where, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	add_diag(ctx, DIAG_WARNING, where, fmt, args);
	va_end(args);
}

void ctx_note(Ctx *ctx, const char *where, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	add_diag(ctx, DIAG_NOTE, where, fmt, args);
	va_end(args);
}

CtxMark ctx_mark(const Ctx *ctx)
{
	return (CtxMark){ctx->last, ctx->nerror};
}

void ctx_rewind(Ctx *ctx, CtxMark mark)
{
	ctx->last = mark.last;
	ctx->nerror = mark.nerror;
	if (mark.last)
		mark.last->next = NULL;
	else
		ctx->first = NULL;
}

bool ctx_first_only(Ctx *ctx, CtxMark mark)
{
	Diag *d = mark.last ? mark.last->next : ctx->first;
	if (ctx->nerror == mark.nerror)
		return true;
	while (d->severity != DIAG_ERROR)
		d = d->next;
	d->next = NULL;
	ctx->last = d;
	ctx->nerror = mark.nerror + 1;
	return false;
}

void ctx_bug(Ctx *ctx, const char *fmt, ...)
{
	size_t size = sizeof ctx->bug_text;
	int n = snprintf(ctx->bug_text, size, "internal error%s%s: ", ctx->pass ? " in " : "",
	        ctx->pass ? ctx->pass : "");
	size_t at = n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
	va_list args;
	va_start(args, fmt);
	vsnprintf(ctx->bug_text + at, size - at, fmt, args);
	va_end(args);
	longjmp(ctx->unwind, UNWIND_BUG);
}

void ctx_bug_verify(Ctx *ctx, const char *stage)
{
	const Diag *d = ctx->last;
	ctx_bug(ctx, "after %s: %s: %s", stage, d && d->where ? d->where : "",
		d ? d->text : "the verifier failed");
}

void ctx_out_of_memory(Ctx *ctx)
{
	longjmp(ctx->unwind, UNWIND_OOM);
}

void ctx_print(const Ctx *ctx, Text *out)
{
	static const char *const word[] = {"error", "warning", "note"};
	for (const Diag *d = ctx->first; d; d = d->next) {
		if (d->where)
			text_printf(out, "%s: ", d->where);
		text_printf(out, "%s: %s\n", word[d->severity], d->text);
	}
}
