/* Tokens, symbolic integers, types and attribute values of the text form. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build/parse_priv.h"

/* ---- tokens ---- */

const char *parse_position(Parser *r)
{
	if (!r->line || r->line > r->p) {
		r->line = r->text;
		r->line_number = 1;
	}
	for (const char *s = r->line; s < r->p; s++) {
		if (*s == '\n') {
			r->line = s + 1;
			r->line_number++;
		}
	}
	unsigned col = (unsigned)(r->p - r->line) + 1;
	return arena_printf(r->ir->ctx->scratch, "%s:%u:%u", r->name, r->line_number, col);
}

bool(parse_fail)(Parser *r, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	if (r->failed)
		return false;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	r->failed = true;
	return ctx_error(r->ir->ctx, parse_position(r), "%s", text);
}

void parse_skip(Parser *r)
{
	for (;;) {
		r->p += strspn(r->p, " \t\r\n");
		if (*r->p != ';')
			return;
		r->p += strcspn(r->p, "\n");
	}
}

bool parse_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$';
}

static bool word_start(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

bool parse_at(Parser *r, const char *s)
{
	size_t n = strlen(s);
	parse_skip(r);
	if (r->failed || strncmp(r->p, s, n) != 0)
		return false;
	return !word_start(*s) || !parse_word_char(r->p[n]);
}

bool parse_accept(Parser *r, const char *s)
{
	if (!parse_at(r, s))
		return false;
	r->p += strlen(s);
	return true;
}

bool parse_expect(Parser *r, const char *s)
{
	return parse_accept(r, s) || parse_fail(r, "expected \"%s\"", s);
}

const char *parse_name(Parser *r)
{
	const char *s = r->p;
	while (parse_word_char(*r->p))
		r->p++;
	return arena_strndup(r->ir->ctx->scratch, s, (size_t)(r->p - s));
}

const char *parse_word(Parser *r)
{
	parse_skip(r);
	return word_start(*r->p) ? parse_name(r) : NULL;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool parse_string(Parser *r, const char **out)
{
	Text t;
	text_init(&t, r->ir->ctx->scratch);
	TRY(parse_expect(r, "\""));
	for (; *r->p != '"'; r->p++) {
		if (!*r->p || *r->p == '\n')
			return parse_fail(r, "expected \"\\\"\" at the end of a string");
		if (*r->p != '\\') {
			text_char(&t, *r->p);
			continue;
		}
		r->p++;
		if (*r->p == '"' || *r->p == '\\') {
			text_char(&t, *r->p);
			continue;
		}
		int hi = *r->p == 'x' ? hex_digit(r->p[1]) : -1;
		int lo = hi >= 0 ? hex_digit(r->p[2]) : -1;
		if (lo < 0 || hi * 16 + lo == 0)
			return parse_fail(r, "expected \\\\, \\\" or \\xNN in a string");
		text_char(&t, (char)(hi * 16 + lo));
		r->p += 2;
	}
	r->p++;
	*out = intern_str(&r->ir->strings, t.data);
	return true;
}

bool parse_i64(Parser *r, int64_t *out)
{
	parse_skip(r);
	const char *digits = r->p + (*r->p == '-');
	char *end;
	if (!isdigit((unsigned char)*digits))
		return parse_fail(r, "expected an integer");
	errno = 0;
	*out = strtoll(r->p, &end, 10);
	if (errno)
		return parse_fail(r, "expected an integer of 64 bits");
	r->p = end;
	return true;
}

/* ---- symbolic integers ---- */

enum { SYM_TEXT = 4096, SYM_DEPTH = 32 };

/* Returns the length of the expression at p: it ends before a comma or bracket of the outside, a
 * relation, a hint, a string, a brace, or the end of the line. 0: too long or too deep. */
static size_t sym_length(const char *p)
{
	int depth = 0;
	size_t n = 0;
	for (; p[n] && !strchr("[]{}=!<>\"~;\n", p[n]); n++) {
		if ((p[n] == ',' || p[n] == ')') && depth == 0)
			break;
		depth += (p[n] == '(') - (p[n] == ')');
		if (depth > SYM_DEPTH || n > SYM_TEXT)
			return 0;
	}
	return n;
}

/* Makes the symbols of the expression, unless all have been declared, and checks that numbers
 * fit 64 bits. */
static bool sym_prepare(Parser *r, const char *s)
{
	while (*s) {
		size_t n = 1;
		if (s[0] == '0' && s[1] == 'x') { /* a double: 0x1.8p+1 */
			char *end;
			strtod(s, &end);
			n = (size_t)(end - s);
		} else if (isdigit((unsigned char)*s)) {
			errno = 0;
			uint64_t v = strtoull(s, NULL, 10);
			n = strspn(s, "0123456789");
			if (errno || v > (uint64_t)INT64_MAX + 1) /* which may stand behind a "-" */
				return parse_fail(r, "expected an integer of 64 bits");
		} else if (word_start(*s)) {
			while (parse_word_char(s[n]))
				n++;
			bool call = s[n + strspn(s + n, " ")] == '(';
			const char *name = arena_strndup(r->ir->ctx->scratch, s, n);
			if (!call && !sym_find(r->ir->syms, s, (uint32_t)n).i) {
				if (r->in_body)
					return parse_fail(r, "expected a size of an input, got %s",
							  name);
				sym_var(r->ir->syms, name, SYMVAR_SIZE, 0, SYM_INF);
			}
		} else if (!strchr("+-*(), \t", *s)) {
			return parse_fail(r, "expected a size");
		}
		s += n;
	}
	return true;
}

bool parse_sym(Parser *r, Sym *out)
{
	parse_skip(r);
	size_t n = sym_length(r->p);
	const char *text = arena_strndup(r->ir->ctx->scratch, r->p, n), *s = text;
	if (!text[strspn(text, " \t")])
		return parse_fail(r, "expected a size");
	TRY(sym_prepare(r, text));
	*out = sym_parse(r->ir->syms, &s);
	s += strspn(s, " \t");
	r->p += s - text;
	return (out->i && !*s) || parse_fail(r, "expected a size");
}

/* ---- types ---- */

static bool parse_tuple_type(Parser *r, TypeId *out)
{
	ARRAY(TypeId) elem = {0};
	if (++r->depth > PARSE_DEPTH)
		return parse_fail(r, "expected fewer nested tuples");
	for (bool more = !parse_accept(r, ")"); more; more = !parse_accept(r, ")")) {
		TypeId t;
		TRY(!elem.n || parse_expect(r, ","));
		TRY(parse_type(r, &t));
		array_push(r->ir->ctx->scratch, &elem, t);
	}
	r->depth--;
	*out = ir_tuple(r->ir, elem.n, elem.data);
	return true;
}

bool parse_type(Parser *r, TypeId *out)
{
	Sym dim[MAX_RANK];
	uint32_t n = 0;
	int64_t v;
	if (parse_accept(r, "("))
		return parse_tuple_type(r, out);
	parse_skip(r);
	const char *start = r->p, *word = parse_word(r);
	DType d = word ? dtype_parse(word, (uint32_t)strlen(word)) : DT_none;
	if (!d) {
		r->p = start;
		return parse_fail(r, "expected a type");
	}
	TRY(parse_expect(r, "["));
	for (bool more = !parse_accept(r, "]"); more; more = !parse_accept(r, "]")) {
		TRY(!n || parse_expect(r, ","));
		if (n == MAX_RANK)
			return parse_fail(r, "expected at most %d dimensions", MAX_RANK);
		TRY(parse_sym(r, &dim[n]));
		if (sym_is_const(r->ir->syms, dim[n++], &v) && v < 0)
			return parse_fail(r, "expected a size of at least 0");
	}
	*out = ir_type(r->ir, d, n, dim);
	return true;
}

/* ---- attribute values ---- */

/* Whether a float stands here: digits with a point or exponent, inf, nan. */
static bool at_float(Parser *r)
{
	parse_skip(r);
	const char *s = r->p + (*r->p == '-');
	if (strncmp(s, "inf", 3) == 0 || strncmp(s, "nan", 3) == 0)
		return !parse_word_char(s[3]);
	size_t n = strspn(s, "0123456789");
	return n && (s[n] == '.' || s[n] == 'e' || s[n] == 'E');
}

static bool parse_float(Parser *r, double *out)
{
	int64_t v;
	if (!at_float(r)) {
		TRY(parse_i64(r, &v));
		*out = (double)v;
		return true;
	}
	char *end;
	*out = strtod(r->p, &end);
	if (parse_word_char(*end))
		return parse_fail(r, "expected a number");
	r->p = end;
	return true;
}

static bool parse_bool(Parser *r, bool *out)
{
	*out = parse_accept(r, "true");
	return *out || parse_accept(r, "false") || parse_fail(r, "expected true or false");
}

static bool parse_list(Parser *r, ArgKind kind, Attr *out)
{
	ARRAY(Sym) ints = {0};
	ARRAY(double) floats = {0};
	ARRAY(bool) bools = {0};
	Arena *a = r->ir->ctx->scratch;
	uint32_t n = 0;
	TRY(parse_expect(r, "["));
	for (bool more = !parse_accept(r, "]"); more; more = !parse_accept(r, "]"), n++) {
		Sym s = {0};
		double f = 0;
		bool b = false;
		TRY(!n || parse_expect(r, ","));
		TRY(kind == ARG_ints     ? parse_sym(r, &s)
		    : kind == ARG_floats ? parse_float(r, &f)
					 : parse_bool(r, &b));
		array_push(a, &ints, s);
		array_push(a, &floats, f);
		array_push(a, &bools, b);
	}
	if (kind == ARG_ints)
		*out = attr_ints(ints.data, n);
	else if (kind == ARG_floats)
		*out = (Attr){ATTR_floats, n, {.floats = floats.data}};
	else
		*out = (Attr){ATTR_bools, n, {.bools = bools.data}};
	return true;
}

static bool parse_const_ref(Parser *r, Attr *out)
{
	int64_t id;
	TRY(parse_expect(r, "#"));
	TRY(parse_i64(r, &id));
	if (id <= 0 || id >= (int64_t)r->ir->constant.n)
		return parse_fail(r, "expected a constant that exists, got #%lld", (long long)id);
	*out = attr_const((ConstId){(uint32_t)id});
	return true;
}

static bool parse_dtype(Parser *r, Attr *out)
{
	const char *word = parse_word(r);
	DType d = word ? dtype_parse(word, (uint32_t)strlen(word)) : DT_none;
	*out = attr_dtype(d);
	return d || parse_fail(r, "expected an element type");
}

/* Parses "(" re "," im ")". */
static bool parse_complex(Parser *r, Attr *out)
{
	*out = attr_complex(0, 0);
	return parse_expect(r, "(") && parse_float(r, &out->z.re) && parse_expect(r, ",") &&
	       parse_float(r, &out->z.im) && parse_expect(r, ")");
}

static bool parse_scalar(Parser *r, Attr *out)
{
	if (parse_accept(r, "complex"))
		return parse_complex(r, out);
	if (parse_at(r, "true") || parse_at(r, "false")) {
		*out = attr_bool(parse_at(r, "true"));
		return parse_bool(r, &(bool){0});
	}
	if (!at_float(r)) {
		*out = attr_sym((Sym){0});
		return parse_sym(r, &out->s);
	}
	*out = attr_float(0);
	return parse_float(r, &out->f);
}

bool parse_attr(Parser *r, const Arg *arg, Attr *out)
{
	*out = attr_none();
	if (parse_accept(r, "none"))
		return true;
	switch (arg->kind) {
	case ARG_int:
		*out = attr_sym((Sym){0});
		return parse_sym(r, &out->s);
	case ARG_float:
		*out = attr_float(0);
		return parse_float(r, &out->f);
	case ARG_bool:
		*out = attr_bool(false);
		return parse_bool(r, &out->b);
	case ARG_str:
		*out = (Attr){ATTR_str, 0, {.str = ""}};
		return parse_string(r, &out->str);
	case ARG_scalar:
		return parse_scalar(r, out);
	case ARG_dtype:
		return parse_dtype(r, out);
	case ARG_const:
		return parse_const_ref(r, out);
	case ARG_ints:
	case ARG_floats:
	case ARG_bools:
		return parse_list(r, arg->kind, out);
	default:
		return parse_fail(r, "expected no attribute \"%s\"", arg->name);
	}
}

/* ---- where ---- */

static bool parse_bound(Parser *r, int64_t *out)
{
	if (parse_accept(r, "-inf"))
		return *out = -SYM_INF, true;
	return parse_i64(r, out);
}

/* Parses ["unbacked"] [lo "<="] name ["<=" hi] ["~" hint]. */
static bool parse_range(Parser *r)
{
	int64_t lo = 0, hi = SYM_INF, hint = 0;
	SymTab *t = r->ir->syms;
	bool unbacked = parse_accept(r, "unbacked");
	parse_skip(r);
	if (isdigit((unsigned char)*r->p) || *r->p == '-') {
		TRY(parse_bound(r, &lo));
		TRY(parse_expect(r, "<="));
	}
	const char *name = parse_word(r);
	if (!name)
		return parse_fail(r, "expected the name of a size");
	if (parse_accept(r, "<="))
		TRY(parse_bound(r, &hi));
	if (parse_accept(r, "~"))
		TRY(parse_i64(r, &hint));
	Sym s = sym_find(t, name, (uint32_t)strlen(name));
	if (lo > hi || (s.i && !sym_bound(t, s, lo, hi)))
		return parse_fail(r, "expected a range of %s that is not empty", name);
	if (!s.i)
		s = sym_var(t, name, unbacked ? SYMVAR_UNBACKED : SYMVAR_SIZE, lo, hi);
	if (hint > 0)
		sym_set_hint(t, s, hint);
	return true;
}

static bool parse_guard(Parser *r, Graph *g)
{
	struct GraphGuard o = {.why = ""};
	TRY(parse_sym(r, &o.a));
	if (parse_accept(r, "=="))
		o.kind = GUARD_EQ;
	else if (parse_accept(r, "!="))
		o.kind = GUARD_NE;
	else if (parse_accept(r, "<="))
		o.kind = GUARD_LE;
	else
		return parse_fail(r, "expected ==, != or <=");
	TRY(parse_sym(r, &o.b));
	if (parse_at(r, "\""))
		TRY(parse_string(r, &o.why));
	array_push(r->ir->ctx->arena, &g->guard, o);
	return true;
}

/* Skips a guard without looking at it: its symbols may have no range yet. */
static void skip_guard(Parser *r)
{
	int depth = 0;
	for (; *r->p && *r->p != '{'; r->p++) {
		if (*r->p == '"') {
			for (r->p++; *r->p && *r->p != '"'; r->p++)
				r->p += *r->p == '\\' && r->p[1];
			if (!*r->p)
				return;
			continue;
		}
		if (*r->p == ',' && depth == 0)
			return;
		depth += (*r->p == '(') - (*r->p == ')');
	}
}

bool parse_where(Parser *r, Graph *guards)
{
	do {
		bool guard = parse_accept(r, "require");
		if (guard && guards)
			TRY(parse_guard(r, guards));
		else if (guard)
			skip_guard(r);
		else
			TRY(parse_range(r));
	} while (parse_accept(r, ","));
	return !r->failed;
}
