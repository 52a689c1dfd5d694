#include "transform/step/spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/scan.h"

typedef struct {
	Ctx *ctx;
	const char *what, *text, *s;
	uint32_t depth;
} Reading;

enum { MAX_NESTED = 3 };

static bool unexpected(const Reading *r, const char *expected)
{
	return ctx_error(r->ctx, r->what, "\"%s\": expected %s %s%s%s", r->text, expected,
			 *r->s ? "at \"" : "at the end", r->s, *r->s ? "\"" : "");
}

static bool read_args(Reading *, Spec *, const char *end);

static bool read_word(Reading *r, Spec *out)
{
	scan_blanks(&r->s);
	const size_t n = scan_word(r->s);
	if (!n)
		return unexpected(r, "a name");
	if (r->depth++ == MAX_NESTED)
		return unexpected(r, "less in brackets");
	*out = (Spec){.name = arena_strndup(r->ctx->arena, r->s, n)};
	r->s += n;
	TRY(!scan_accept(&r->s, "(") || read_args(r, out, ")"));
	r->depth--;
	return true;
}

static bool read_value(Reading *r, SpecArg *out)
{
	char *end;
	scan_blanks(&r->s);
	if (scan_word(r->s)) {
		Spec *word = ARENA_NEW(r->ctx->arena, Spec);
		out->word = word;
		return read_word(r, word);
	}
	out->number = strtod(r->s, &end);
	if (end == r->s)
		return unexpected(r, "a number or a word");
	r->s = end;
	return true;
}

/* Reads "key=value" or "value". */
static bool read_arg(Reading *r, SpecArg *out)
{
	scan_blanks(&r->s);
	const char *begin = r->s;
	const size_t n = scan_word(begin);
	r->s += n;
	if (n && scan_accept(&r->s, "="))
		out->key = arena_strndup(r->ctx->arena, begin, n);
	else
		r->s = begin;
	return read_value(r, out);
}

static bool read_args(Reading *r, Spec *out, const char *end)
{
	if (scan_accept(&r->s, end))
		return true;
	do {
		if (out->narg == SPEC_MAX_ARGS)
			return unexpected(r, "fewer arguments");
		SpecArg *a = &out->arg[out->narg++];
		TRY(read_arg(r, a));
		for (uint32_t k = 0; a->key && k + 1 < out->narg; k++)
			if (out->arg[k].key && !strcmp(out->arg[k].key, a->key))
				return ctx_error(r->ctx, r->what, "\"%s\": %s is given twice",
						 r->text, a->key);
	} while (scan_accept(&r->s, ","));
	return scan_accept(&r->s, end) ||
	       unexpected(r, arena_printf(r->ctx->scratch, "a comma or \"%s\"", end));
}

static bool at_end(Reading *r)
{
	scan_blanks(&r->s);
	return !*r->s || unexpected(r, "nothing more");
}

const Spec *spec_read(Ctx *ctx, const char *what, const char *text)
{
	Reading r = {ctx, what, text, text, 0};
	Spec *out = ARENA_NEW(ctx->arena, Spec);
	return read_word(&r, out) && at_end(&r) ? out : NULL;
}

Spec *spec_read_args(Ctx *ctx, const char *what, const char *text)
{
	Reading r = {ctx, what, text, text, 0};
	Spec *out = ARENA_NEW(ctx->arena, Spec);
	*out = (Spec){.name = ""};
	do {
		if (out->narg == SPEC_MAX_ARGS)
			return unexpected(&r, "fewer arguments"), NULL;
		SpecArg *a = &out->arg[out->narg++];
		if (!read_arg(&r, a))
			return NULL;
		if (!a->key)
			return unexpected(&r, "KEY=VALUE, not a value alone,"), NULL;
	} while (scan_accept(&r.s, ","));
	return at_end(&r) ? out : NULL;
}

bool spec_read_value(Ctx *ctx, const char *what, const char *text, SpecArg *out)
{
	Reading r = {ctx, what, text, text, 0};
	*out = (SpecArg){0};
	return read_value(&r, out) && at_end(&r);
}

/* ---- names ---- */

const char *const *spec_list(Arena *a, const char *text, size_t length, uint32_t *n)
{
	const char **out = ARENA_ARRAY(a, const char *, length + 1);
	*n = 0;
	for (size_t at = 0; at < length;) {
		size_t end = at;
		while (end < length && text[end] != ',')
			end++;
		size_t from = at, to = end;
		while (from < to && strchr(" \t\n", text[from]))
			from++;
		while (to > from && strchr(" \t\n", text[to - 1]))
			to--;
		if (to > from)
			out[(*n)++] = arena_strndup(a, text + from, to - from);
		at = end + 1;
	}
	return out;
}

bool spec_matches(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL; /* behind the last *, and what it stands for */
	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
