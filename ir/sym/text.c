/* Printing and parsing. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scan.h"
#include "ir/sym/priv.h"

static const char *function_name(SymKind kind)
{
	switch (kind) {
	case SYM_FLOORDIV: return "floordiv";
	case SYM_MOD: return "mod";
	case SYM_MIN: return "min";
	case SYM_MAX: return "max";
	default: return sym_real_name(kind);
	}
}

static void print_atom(const SymTab *t, Sym e, Text *out)
{
	const SymNode *n = sym_node(t, e);
	if (n->kind == SYM_VAR) {
		text_add(out, t->var.data[n->value].name);
		return;
	}
	double real;
	if (sym_real_is_const(t, e, &real)) {
		text_printf(out, "%a", real);
		return;
	}
	text_printf(out, "%s(", function_name((SymKind)n->kind));
	for (uint32_t k = 0; k < n->nargs; k++) {
		text_add(out, k ? ", " : "");
		sym_print(t, n->args[k], out);
	}
	text_char(out, ')');
}

/* Prints a term without its sign. */
static void print_term(const SymTab *t, SymTerm term, Text *out)
{
	uint64_t coef = term.coef < 0 ? 0 - (uint64_t)term.coef : (uint64_t)term.coef;
	uint32_t n = mono_degree(t, term.mono);
	if (coef != 1 || !n)
		text_printf(out, "%" PRIu64 "%s", coef, n ? "*" : "");
	for (uint32_t k = 0; k < n; k++) {
		text_add(out, k ? "*" : "");
		print_atom(t, mono_factor(t, term.mono, k), out);
	}
}

void sym_print(const SymTab *t, Sym e, Text *out)
{
	sym_check(t, e);
	uint32_t n = sym_nterms(t, e);
	if (!n)
		text_char(out, '0');
	for (uint32_t k = 0; k < n; k++) {
		SymTerm term = sym_term(t, e, k);
		if (k)
			text_add(out, term.coef < 0 ? " - " : " + ");
		else if (term.coef < 0)
			text_char(out, '-');
		print_term(t, term, out);
	}
}

const char *sym_str(const SymTab *t, Sym e)
{
	Text text;
	text_init(&text, t->ctx->scratch);
	sym_print(t, e, &text);
	return text.data;
}

enum { MAX_DEPTH = 100 };

typedef struct {
	SymTab *t;
	const char *at;
	int depth;
} SymParser;

static Sym parse_sum(SymParser *p);

/* Parses an unsigned number, and negates it or not. Returns none if the result leaves int64. */
static Sym parse_int(SymParser *p, bool negative)
{
	uint64_t v;
	if (!scan_number(&p->at, (uint64_t)INT64_MAX + negative, &v))
		return (Sym){0};
	return sym_int(p->t, (int64_t)(negative ? 0 - v : v));
}

static Sym parse_real_call(SymParser *p, SymKind kind);

/* Returns the kind of the function called at p->at, and moves p->at to its "("; SYM_CONST if
 * none is called. */
static SymKind called(SymParser *p)
{
	const size_t n = scan_word(p->at);
	const char *end = p->at + n;
	for (SymKind kind = SYM_FLOORDIV; *end == '(' && kind <= SYM_REAL_EQUAL; kind++) {
		const char *name = kind == SYM_REAL_CONST ? "" : function_name(kind);
		if (strlen(name) == n && !memcmp(name, p->at, n)) {
			p->at = end;
			return kind;
		}
	}
	return SYM_CONST;
}

/* Parses a constant in hexadecimal, or a function that gives a double. */
static Sym parse_real(SymParser *p)
{
	scan_blanks(&p->at);
	if (scan_is_digit(*p->at) || *p->at == '-') {
		char *end;
		double v = strtod(p->at, &end);
		if (end == p->at || !isfinite(v))
			return (Sym){0};
		p->at = end;
		return sym_real_const(p->t, v);
	}
	bool of_reals, gives_real = false;
	SymKind kind = called(p);
	if (!sym_real_signature(kind, &of_reals, &gives_real) || !gives_real)
		return (Sym){0};
	return parse_real_call(p, kind);
}

static Sym parse_real_call(SymParser *p, SymKind kind)
{
	bool of_reals, gives_real;
	uint32_t n = sym_real_signature(kind, &of_reals, &gives_real);
	Sym arg[2] = {{0}, {0}};
	if (++p->depth > MAX_DEPTH)
		return (Sym){0};
	p->at++;
	for (uint32_t k = 0; k < n; k++) {
		if (k && !scan_accept(&p->at, ","))
			return (Sym){0};
		arg[k] = of_reals ? parse_real(p) : parse_sum(p);
		if (!arg[k].i)
			return (Sym){0};
	}
	p->depth--;
	return scan_accept(&p->at, ")") ? sym_real_op(p->t, kind, arg[0], arg[1]) : (Sym){0};
}

static Sym parse_call(SymParser *p, SymKind kind)
{
	bool of_reals, gives_real;
	if (sym_real_signature(kind, &of_reals, &gives_real))
		return gives_real ? (Sym){0} : parse_real_call(p, kind);
	p->at++;
	Sym a = parse_sum(p);
	if (!a.i || !scan_accept(&p->at, ","))
		return (Sym){0};
	Sym b = parse_sum(p);
	if (!b.i || !scan_accept(&p->at, ")"))
		return (Sym){0};
	if ((kind == SYM_FLOORDIV || kind == SYM_MOD) && sym_is(p->t, b, 0))
		return (Sym){0};
	switch (kind) {
	case SYM_FLOORDIV: return sym_floordiv(p->t, a, b);
	case SYM_MOD: return sym_mod(p->t, a, b);
	case SYM_MIN: return sym_min(p->t, a, b);
	default: return sym_max(p->t, a, b);
	}
}

static Sym parse_name(SymParser *p)
{
	SymKind kind = called(p);
	if (kind != SYM_CONST)
		return parse_call(p, kind);
	const size_t n = scan_word(p->at);
	Sym var = sym_find(p->t, p->at, (uint32_t)n);
	p->at += var.i ? n : 0;
	return var;
}

/* Parses a factor, which takes the minus sign of its term. */
static bool parse_factor(void *reader, void *value)
{
	SymParser *p = reader;
	Sym *e = value;
	const bool negative = scan_accept(&p->at, "-");
	scan_blanks(&p->at);
	if (scan_is_digit(*p->at)) {
		*e = parse_int(p, negative);
		return e->i;
	}
	if (scan_accept(&p->at, "(")) {
		*e = parse_sum(p);
		if (!e->i || !scan_accept(&p->at, ")"))
			return false;
	} else {
		*e = scan_word(p->at) ? parse_name(p) : (Sym){0};
	}
	if (e->i && negative)
		*e = sym_muli(p->t, *e, -1);
	return e->i;
}

static bool join(void *reader, int op, const char *from, void *left, const void *right)
{
	const SymParser *p = reader;
	Sym *e = left;
	(void)from;
	*e = (op == '*' ? sym_mul : sym_add)(p->t, *e, *(const Sym *)right);
	return e->i;
}

static Sym parse_sum(SymParser *p)
{
	static const ScanInfix infix[] = {
		{"*", 2, '*'}, {"+", 1, '+'}, {"-", 1, '+', .stays = true}, {NULL}};
	static const ScanGrammar sums = {infix, sizeof(Sym), parse_factor, join};
	Sym e;
	if (++p->depth > MAX_DEPTH || !scan_expression(&sums, &p->at, p, &e))
		return (Sym){0};
	p->depth--;
	return e;
}

Sym sym_parse(SymTab *t, const char **s)
{
	SymParser p = {t, *s, 0};
	Sym e = parse_sum(&p);
	*s = p.at;
	return e;
}
