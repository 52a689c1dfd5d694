/* A Weft: its life, its messages, and the boundary where unwinding ends. */
#include "driver/api/driver_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/c_locale.h"
#include "base/temp.h"
#include "ir/op/op.h"

static void make_tables(void *arg)
{
	(void)arg;
	op_init();
}

Weft *weft_new(void)
{
	locale_t locale = c_locale_begin();
	Weft *w = arena_try(make_tables, NULL) ? calloc(1, sizeof *w) : NULL;
	c_locale_end(locale);
	if (!w)
		return NULL;
	w->ctx = ctx_new();
	w->results = w->ctx ? arena_new(&w->ctx->unwind) : NULL;
	if (w->results)
		return w;
	weft_free(w);
	return NULL;
}

void weft_free(Weft *w)
{
	if (!w)
		return;
	if (w->results)
		arena_free(w->results);
	if (w->ctx)
		ctx_free(w->ctx);
	release_held(w);
	free(w);
}

bool boundary(Weft *w, bool (*f)(void *arg), void *arg)
{
	if (!w || w->dead)
		return false;
	jmp_buf outer;
	const locale_t locale = c_locale_begin();
	memcpy(&outer, &w->ctx->unwind, sizeof outer);
	jmp_buf *before = arena_catch(&w->ctx->unwind);
	int why = setjmp(w->ctx->unwind);
	bool ok = false;
	if (why == 0)
		ok = f(arg);
	memcpy(&w->ctx->unwind, &outer, sizeof outer);
	arena_catch(before);
	c_locale_end(locale);
	if (why == 0)
		return ok;
	w->dead = true;
	snprintf(w->fatal, sizeof w->fatal, "%s",
		 why == UNWIND_OOM ? "out of memory" : w->ctx->bug_text);
	return false;
}

uint32_t weft_nmessages(const Weft *w)
{
	if (!w)
		return 0;
	uint32_t n = w->dead;
	for (const Diag *d = w->ctx->first; d; d = d->next)
		n++;
	return n;
}

WeftMessage weft_message(const Weft *w, uint32_t k)
{
	for (const Diag *d = w ? w->ctx->first : NULL; d; d = d->next)
		if (k-- == 0)
			return (WeftMessage){(WeftSeverity)d->severity, d->where ? d->where : "",
					     d->text};
	return (WeftMessage){WEFT_ERROR, "", w && w->dead ? w->fatal : ""};
}

const char *weft_message_id(const Weft *w, uint32_t k)
{
	for (const Diag *d = w ? w->ctx->first : NULL; d; d = d->next)
		if (k-- == 0)
			return refusal_info(d->kind) ? refusal_info(d->kind)->id : "";
	return "";
}

WeftExplanation weft_explanation(uint32_t k)
{
	const RefusalInfo *r = k < NREFUSAL ? refusal_info(k + 1) : NULL;
	return r ? (WeftExplanation){r->id, r->title, r->text} : (WeftExplanation){"", "", ""};
}

WeftExplanation weft_explain(const char *id)
{
	WeftExplanation e = {"", "", ""};
	for (uint32_t k = 0; id && *(e = weft_explanation(k)).id; k++)
		if (!strcasecmp(e.id, id))
			return e;
	return e;
}

/* Kept out of the arena, which may be the thing that ran out: built anew at each call. */
typedef struct {
	Weft *w;
	Text text;
} Messages;

static bool print_messages(void *arg)
{
	Messages *m = arg;
	text_init(&m->text, weft_arena(m->w));
	ctx_print(m->w->ctx, &m->text);
	return true;
}

const char *weft_messages(Weft *w)
{
	Messages m = {.w = w};
	if (!w)
		return "";
	if (boundary(w, print_messages, &m))
		return m.text.data;
	size_t n = strlen(w->fatal);
	if (n && w->fatal[n - 1] != '\n' && n + 2 < sizeof w->fatal)
		memcpy(w->fatal + n, "\n", 2);
	return w->fatal;
}

double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void weft_abandon(void)
{
	temp_abandon();
}

void weft_temporary(const char *path)
{
	temp_begin(path);
}

void weft_not_temporary(const char *path)
{
	temp_end(path);
}
