#include "ir/scalar/priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scan.h"

/* body  = { let | 'repeat' number '{' { let } '}' } sum
 * let   = name '=' sum ';'
 * sum   = term { ('+' | '-') term }        term = unary { ('*' | '/') unary }
 * unary = '-' unary | atom
 * atom  = number | name [ '[' name ']' ] [ '(' args ')' ] | '(' sum ')' */
typedef struct {
	Arena *arena;
	const char *at;
	bool failed; /* at stays at the offending character */
} ScalarParser;

static bool accept(ScalarParser *p, const char *token)
{
	return !p->failed && scan_accept(&p->at, token);
}

static void expect(ScalarParser *p, const char *token)
{
	if (!accept(p, token))
		p->failed = true;
}

static const char *parse_name(ScalarParser *p)
{
	scan_blanks(&p->at);
	const size_t n = scan_word(p->at);
	p->failed |= !n;
	p->at += n;
	return arena_strndup(p->arena, p->at - n, n);
}

static Expr *new_expr(ScalarParser *p, ExprKind kind)
{
	Expr *e = ARENA_NEW(p->arena, Expr);
	e->kind = kind;
	return e;
}

static Expr *parse_sum(ScalarParser *p);

/* Parses a decimal or hexadecimal number; a point, an exponent or inf/nan (by name) makes it a
 * float. */
static Expr *parse_number(ScalarParser *p)
{
	const char *s = p->at;
	bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	size_t n = strspn(s, hex ? "xX0123456789abcdefABCDEF" : "0123456789");
	bool is_float = s[n] == '.' || s[n] == 'p' || (!hex && s[n] == 'e');
	Expr *e = new_expr(p, is_float ? EXPR_FLOAT : EXPR_INT);
	char *end;
	e->f = strtod(s, &end);
	if (!is_float) {
		uint64_t u = strtoull(s, &end, 0);
		e->i = (int64_t)u;
	}
	p->at = end;
	return e;
}

static Expr *parse_name_or_call(ScalarParser *p)
{
	Expr *e = new_expr(p, EXPR_NAME);
	e->name = parse_name(p);
	if (!strcmp(e->name, "inf") || !strcmp(e->name, "nan")) {
		e->kind = EXPR_FLOAT;
		e->f = e->name[0] == 'i' ? INFINITY : NAN;
		return e;
	}
	if (accept(p, "[")) {
		e->bracket = parse_name(p);
		expect(p, "]");
	}
	if (!accept(p, "("))
		return e;
	e->kind = EXPR_CALL;
	while (!p->failed && !accept(p, ")")) {
		array_push(p->arena, &e->arg, parse_sum(p));
		if (accept(p, ","))
			continue;
		expect(p, ")");
		break;
	}
	return e;
}

static Expr *parse_unary(ScalarParser *p)
{
	scan_blanks(&p->at);
	if (accept(p, "-")) {
		Expr *x = parse_unary(p);
		if (x->kind == EXPR_INT || x->kind == EXPR_FLOAT) {
			x->i = (int64_t)(0 - (uint64_t)x->i);
			x->f = -x->f;
			return x;
		}
		Expr *e = new_expr(p, EXPR_CALL);
		e->name = "neg";
		array_push(p->arena, &e->arg, x);
		return e;
	}
	if (accept(p, "(")) {
		Expr *e = parse_sum(p);
		expect(p, ")");
		return e;
	}
	return scan_is_digit(*p->at) ? parse_number(p) : parse_name_or_call(p);
}

static bool operand(void *reader, void *value)
{
	ScalarParser *p = reader;
	*(Expr **)value = parse_unary(p);
	return !p->failed;
}

static bool join(void *reader, int op, const char *from, void *left, const void *right)
{
	ScalarParser *p = reader;
	Expr **x = left, *e = new_expr(p, EXPR_CALL);
	(void)from;
	e->name = op == '+' ? "add" : op == '-' ? "sub" : op == '*' ? "mul" : "div";
	array_push(p->arena, &e->arg, *x);
	array_push(p->arena, &e->arg, *(Expr *const *)right);
	*x = e;
	return true;
}

static Expr *parse_sum(ScalarParser *p)
{
	static const ScanInfix infix[] = {
		{"*", 2, '*'}, {"/", 2, '/'}, {"+", 1, '+'}, {"-", 1, '-'}, {NULL}};
	static const ScanGrammar sums = {infix, sizeof(Expr *), operand, join};
	Expr *e = NULL;
	scan_expression(&sums, &p->at, p, &e);
	return e;
}

static void parse_let(ScalarParser *p, ScText *t, const char *name)
{
	array_push(p->arena, &t->let, ((ScLet){name, parse_sum(p)}));
	expect(p, ";");
}

/* Parses what stands behind the word "repeat". The lets between the braces stand there so many
 * times: each time names mean what was last given to them. */
static void parse_repeat(ScalarParser *p, ScText *t)
{
	scan_blanks(&p->at);
	int64_t n = scan_is_digit(*p->at) ? parse_number(p)->i : 0;
	expect(p, "{");
	const char *begin = p->at;
	p->failed = p->failed || n < 1;
	for (int64_t k = 0; k < n && !p->failed; k++) {
		p->at = begin;
		while (!p->failed && !accept(p, "}")) {
			const char *name = parse_name(p);
			expect(p, "=");
			parse_let(p, t, name);
		}
	}
}

const ScText *scalar_parse(Arena *arena, const char *text, const char **at)
{
	ScalarParser p = {arena, text, false};
	ScText *t = ARENA_NEW(arena, ScText);
	for (;;) {
		Expr *e = parse_sum(&p);
		if (p.failed)
			break;
		if (e->kind == EXPR_NAME && accept(&p, "=")) {
			parse_let(&p, t, e->name);
			continue;
		}
		if (e->kind == EXPR_NAME && !strcmp(e->name, "repeat")) {
			parse_repeat(&p, t);
			continue;
		}
		t->result = e;
		scan_blanks(&p.at);
		if (*p.at)
			p.failed = true;
		break;
	}
	if (at)
		*at = p.at;
	return p.failed ? NULL : t;
}
