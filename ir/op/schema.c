/* The schema language: ATen's, as PyTorch writes it, and two types of our own (graph, const). */
#include "ir/op/op.h"

#include <string.h>

#include "base/scan.h"

typedef struct {
	Arena *arena;
	const char *text, *p, *err;
} SchemaReader;

static bool fail(SchemaReader *r, const char *expected)
{
	if (!r->err)
		r->err = arena_printf(r->arena, "expected %s at \"%.24s\" in \"%s\"", expected,
				      r->p, r->text);
	return false;
}

/* Returns the word that begins here, and moves behind it; sets *n to its length, 0 if none
 * begins. */
static const char *word(SchemaReader *r, size_t *n)
{
	scan_blanks(&r->p);
	*n = scan_word(r->p);
	r->p += *n;
	return r->p - *n;
}

static const struct {
	const char *name;
	ArgKind one, many;
} types[] = {
	{"Tensor", ARG_tensor, ARG_tensors},
	{"int", ARG_int, ARG_ints},
	{"SymInt", ARG_int, ARG_ints},
	{"float", ARG_float, ARG_floats},
	{"SymFloat", ARG_float, ARG_floats},
	{"bool", ARG_bool, ARG_bools},
	{"SymBool", ARG_bool, ARG_bools},
	{"Scalar", ARG_scalar, ARG_floats},
	{"str", ARG_str, ARG_ignored},
	{"ScalarType", ARG_dtype, ARG_ignored},
	{"graph", ARG_graph, ARG_ignored},
	{"const", ARG_const, ARG_ignored},
	{"Layout", ARG_ignored, ARG_ignored},
	{"Device", ARG_ignored, ARG_ignored},
	{"MemoryFormat", ARG_ignored, ARG_ignored},
	{"Generator", ARG_ignored, ARG_ignored},
	{"Dimname", ARG_ignored, ARG_ignored},
	{"Storage", ARG_ignored, ARG_ignored},
	{"Stream", ARG_ignored, ARG_ignored},
	{"QScheme", ARG_ignored, ARG_ignored},
};

/* Reads (a), (a!), (a -> *), or nothing. */
static bool alias(SchemaReader *r, Arg *a)
{
	if (!scan_accept(&r->p, "("))
		return true;
	a->shares = true;
	while (*r->p && *r->p != ')')
		a->writes |= *r->p++ == '!';
	return scan_accept(&r->p, ")") || fail(r, "\")\"");
}

/* Reads Tensor, Tensor(a!), Tensor?, Tensor(a!)[], Tensor?[], int[2]?, ... */
static bool type(SchemaReader *r, Arg *a)
{
	size_t n, k = 0, ntype = sizeof types / sizeof *types;
	const char *start = r->p, *name = word(r, &n);
	while (k < ntype && (strncmp(types[k].name, name, n) != 0 || types[k].name[n]))
		k++;
	if (k == ntype) {
		r->p = start;
		return fail(r, "a type");
	}
	a->kind = types[k].one;
	TRY(alias(r, a));
	a->optional = scan_accept(&r->p, "?");
	if (scan_accept(&r->p, "[")) {
		a->kind = types[k].many;
		while (*r->p >= '0' && *r->p <= '9' && a->size < 1000)
			a->size = a->size * 10 + (uint32_t)(*r->p++ - '0');
		if (!scan_accept(&r->p, "]"))
			return fail(r, "\"]\"");
		TRY(alias(r, a));
		a->optional |= scan_accept(&r->p, "?");
	}
	return true;
}

static bool default_text(SchemaReader *r, Arg *a)
{
	if (!scan_accept(&r->p, "="))
		return true;
	scan_blanks(&r->p);
	const char *s = r->p;
	int depth = 0;
	for (char quote = 0; *r->p; r->p++) {
		char c = *r->p;
		if (quote) {
			quote = c == quote ? 0 : quote;
			continue;
		}
		if (c == '"' || c == '\'')
			quote = c;
		if (depth == 0 && (c == ',' || c == ')'))
			break;
		depth += (c == '[' || c == '(') - (c == ']' || c == ')');
	}
	if (r->p == s)
		return fail(r, "a default");
	size_t n = (size_t)(r->p - s);
	while (n && s[n - 1] == ' ')
		n--;
	a->text = arena_strndup(r->arena, s, n);
	a->has_default = true;
	return true;
}

static bool arguments(SchemaReader *r, Schema *s)
{
	Arg arg[MAX_ARGS] = {0};
	bool kw_only = false;
	for (bool more = !scan_accept(&r->p, ")"); more; more = !scan_accept(&r->p, ")")) {
		if (s->narg && !scan_accept(&r->p, ","))
			return fail(r, "\",\" or \")\"");
		if (scan_accept(&r->p, "*")) {
			kw_only = true;
			TRY(scan_accept(&r->p, ",") || fail(r, "\",\""));
		}
		if (s->narg == MAX_ARGS)
			return fail(r, "fewer arguments");
		Arg *a = &arg[s->narg];
		a->text = "";
		a->kw_only = kw_only;
		scan_blanks(&r->p);
		TRY(type(r, a));
		size_t n;
		const char *name = word(r, &n);
		if (!n)
			return fail(r, "a name");
		a->name = arena_strndup(r->arena, name, n);
		TRY(default_text(r, a));
		if (strcmp(a->name, "pin_memory") == 0)
			a->kind = ARG_ignored;
		s->narg++;
	}
	s->arg = arena_dup(r->arena, arg, s->narg * sizeof *arg);
	return true;
}

static bool one_result(SchemaReader *r, Schema *s)
{
	Arg a = {0};
	scan_blanks(&r->p);
	TRY(type(r, &a));
	size_t n;
	word(r, &n); /* its name has no meaning here */
	s->view |= a.shares && !a.writes;
	s->tensor_results &= a.kind == ARG_tensor && !a.optional;
	s->nresult = a.kind == ARG_tensors ? UINT32_MAX : s->nresult + 1;
	return true;
}

static bool results(SchemaReader *r, Schema *s)
{
	scan_blanks(&r->p);
	if (!scan_accept(&r->p, "->"))
		return fail(r, "\"->\"");
	if (!scan_accept(&r->p, "("))
		return one_result(r, s);
	for (bool more = !scan_accept(&r->p, ")"); more; more = !scan_accept(&r->p, ")")) {
		if (s->nresult && !scan_accept(&r->p, ","))
			return fail(r, "\",\" or \")\"");
		TRY(one_result(r, s));
	}
	return true;
}

bool schema_parse(Arena *arena, const char *text, Schema *s, const char **err)
{
	SchemaReader r = {arena, text, text, NULL};
	*s = (Schema){.tensor_results = true};
	size_t n = strcspn(text, "(");
	s->name = arena_strndup(arena, text, n);
	r.p = text + n;
	bool ok = n ? scan_accept(&r.p, "(") || fail(&r, "\"(\"") : fail(&r, "a name");
	ok = ok && arguments(&r, s) && results(&r, s);
	scan_blanks(&r.p);
	if (ok && *r.p)
		ok = fail(&r, "the end");
	*err = r.err;
	return ok;
}
