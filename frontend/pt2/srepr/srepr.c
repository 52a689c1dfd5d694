/* Recursive descent over   choice: or ('if' or 'else' choice)?   or: and ('or' and)*
 * and: not ('and' not)*   not: 'not' not | cmp   cmp: bits (op bits)*   bits: sum ('&' or '|' sum)*
 * sum: product (+|- product)*   product: unary (*|//|/|% unary)*   unary: -unary | power
 * power: primary [** unary]   primary: number | name | name(args) | L[key]...size()[d] | (choice).
 */
#include "frontend/pt2/srepr/srepr.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/pt2/srepr/priv.h"

enum { MAX_DEPTH = 100, MAX_PATH = 32, MAX_TEXT = 1 << 16 };

static bool parse_choice(Parser *, Val *);
static bool parse_unary(Parser *, Val *);

/* ---- symbols ---- */

/* Whether the name is u0, u1, ...: a number that is data. */
static bool is_unbacked(const char *name)
{
	return name[0] == 'u' && isdigit((unsigned char)name[1]);
}

Sym expr_symbol(ExprEnv *env, const char *name, int64_t lo, int64_t hi)
{
	Sym s = sym_find(env->syms, name, (uint32_t)strlen(name));
	if (!s.i)
		return sym_var(env->syms, name, is_unbacked(name) ? SYMVAR_UNBACKED : SYMVAR_SIZE,
			       lo, hi);
	if (!sym_bound(env->syms, s, lo, hi)) {
		env->error = arena_printf(env->ctx->scratch, "the range of %s is empty", name);
		return (Sym){0};
	}
	return s;
}

/* ---- tokens ---- */

static void skip_space(Parser *p)
{
	while (isspace((unsigned char)*p->s))
		p->s++;
}

static bool accept(Parser *p, const char *token)
{
	skip_space(p);
	size_t n = strlen(token);
	if (strncmp(p->s, token, n))
		return false;
	if (isalpha((unsigned char)token[0]) && (isalnum((unsigned char)p->s[n]) || p->s[n] == '_'))
		return false;
	p->s += n;
	return true;
}

static bool expect(Parser *p, const char *token)
{
	if (accept(p, token))
		return true;
	return expr_fail(p, arena_printf(p->env->ctx->scratch, "expected %s", token));
}

/* Parses a quoted string into the scratch arena; the only escapes are of quotes and backslashes. */
static bool quoted(Parser *p, const char **out)
{
	skip_space(p);
	char q = *p->s;
	if (q != '\'' && q != '"')
		return expr_fail(p, "expected a string");
	Text text;
	text_init(&text, p->env->ctx->scratch);
	const char *at = p->s + 1;
	for (; *at && *at != q; at++) {
		if (*at == '\\') {
			at++;
			if (*at != '\\' && *at != '\'' && *at != '"')
				return expr_fail(p, "unknown escape in a string");
		}
		text_char(&text, *at);
	}
	if (!*at)
		return expr_fail(p, "a string does not end");
	*out = text.data;
	p->s = at + 1;
	return true;
}

static bool number(Parser *p, Val *out)
{
	size_t digits = strspn(p->s, "0123456789");
	if (digits && !strchr(".eE", p->s[digits] ? p->s[digits] : ' ')) {
		int64_t v = 0;
		for (size_t k = 0; k < digits; k++)
			if (__builtin_mul_overflow(v, 10, &v) ||
			    __builtin_add_overflow(v, p->s[k] - '0', &v))
				return expr_fail(p, "integer out of range");
		p->s += digits;
		*out = val_num(sym_int(p->env->syms, v));
		return true;
	}
	char *end;
	double v = strtod(p->s, &end);
	if (end == p->s)
		return expr_fail(p, "expected a number");
	p->s = end;
	*out = val_double(p, v);
	return isfinite(v) || expr_fail(p, "expected a finite number");
}

/* ---- calls ---- */

/* Whether the name is the item() of a fraction: no integer, so no size or guard can be made of
 * it. */
static bool is_fraction(const char *name)
{
	size_t n = !strncmp(name, "zuf", 3) ? 3 : !strncmp(name, "zf", 2) ? 2 : 0;
	return n && name[n] && !name[n + strspn(name + n, "0123456789")];
}

/* Parses Symbol('s77', positive=True, integer=True). Export assumes that sizes are positive even
 * where the file's range begins at 0: a range that has been read holds. */
static bool symbol_call(Parser *p, Val *out)
{
	const char *name;
	int64_t lo = -SYM_INF;
	TRY(quoted(p, &name));
	if (!text_is_identifier(name)) /* it is printed and parsed, in messages and in code */
		return expr_fail(p, "expected the name of a symbol");
	while (accept(p, ",")) {
		bool positive_kw = accept(p, "positive"), nonnegative = accept(p, "nonnegative");
		if (!positive_kw && !nonnegative && !accept(p, "integer") && !accept(p, "zero"))
			return expr_fail(p, "unknown property of a symbol");
		TRY(expect(p, "="));
		bool yes = accept(p, "True");
		if (!yes)
			TRY(expect(p, "False"));
		if (yes && (positive_kw || nonnegative))
			lo = positive_kw ? 1 : 0;
	}
	TRY(expect(p, ")"));
	if (is_fraction(name))
		return expr_fail(p, "a fraction that depends on data");
	if (lo < 0 && !is_unbacked(name))
		lo = 0;
	if (lo == 1 && sym_find(p->env->syms, name, (uint32_t)strlen(name)).i)
		lo = 0;
	Sym s = expr_symbol(p->env, name, lo, SYM_INF);
	*out = val_num(s);
	return s.i || expr_fail(p, "bad symbol");
}

/* Parses Float('0.5', precision=53). */
static bool float_call(Parser *p, Val *out)
{
	const char *text;
	TRY(quoted(p, &text));
	if (accept(p, ",")) {
		Val ignored;
		TRY(expect(p, "precision") && expect(p, "="));
		TRY(number(p, &ignored));
	}
	TRY(expect(p, ")"));
	char *end;
	double v = strtod(text, &end);
	if (*end || !*text)
		return expr_fail(p, "expected a number");
	*out = val_double(p, v);
	return isfinite(v) || expr_fail(p, "expected a finite number");
}

static bool same_call(Parser *p, Val a, Val *out)
{
	(void)p;
	*out = a;
	return true;
}

static const struct {
	const char *name;
	bool (*one)(Parser *, Val, Val *);
	bool (*two)(Parser *, Val, Val, Val *);
	bool fold; /* takes two or more */
	const char *compare;
} calls[] = {
	{"Add", NULL, val_add, true, NULL},
	{"Mul", NULL, val_mul, true, NULL},
	{"Pow", NULL, val_pow, false, NULL},
	{"PowByNatural", NULL, val_pow, false, NULL},
	{"FloatPow", NULL, val_pow, false, NULL},
	{"Max", NULL, val_max, true, NULL},
	{"max", NULL, val_max, true, NULL},
	{"sym_max", NULL, val_max, true, NULL},
	{"Min", NULL, val_min, true, NULL},
	{"min", NULL, val_min, true, NULL},
	{"sym_min", NULL, val_min, true, NULL},
	{"And", NULL, val_and, true, NULL},
	{"Or", NULL, val_or, true, NULL},
	{"sym_not", val_not, NULL, false, NULL},
	{"Not", val_not, NULL, false, NULL},
	{"Mod", NULL, val_mod, false, NULL},
	{"PythonMod", NULL, val_mod, false, NULL},
	{"FloorDiv", NULL, val_floordiv, false, NULL},
	{"CleanDiv", NULL, val_floordiv, false, NULL},
	{"CeilDiv", NULL, val_ceildiv, false, NULL},
	{"LShift", NULL, val_shift_left, false, NULL},
	{"RShift", NULL, val_shift_right, false, NULL},
	{"IntTrueDiv", NULL, val_div, false, NULL},
	{"FloatTrueDiv", NULL, val_div, false, NULL},
	{"Rational", NULL, val_rational, false, NULL},
	{"CeilToInt", val_ceil, NULL, false, NULL},
	{"ceil", val_ceil, NULL, false, NULL},
	{"ceiling", val_ceil, NULL, false, NULL},
	{"FloorToInt", val_floor, NULL, false, NULL},
	{"floor", val_floor, NULL, false, NULL},
	{"TruncToInt", val_trunc, NULL, false, NULL},
	{"trunc", val_trunc, NULL, false, NULL},
	{"sym_float", same_call, NULL, false, NULL},
	{"float", same_call, NULL, false, NULL},
	{"ToFloat", same_call, NULL, false, NULL},
	{"Identity", same_call, NULL, false, NULL},
	{"Integer", same_call, NULL, false, NULL},
	{"int", val_trunc, NULL, false, NULL},
	{"RoundToInt", val_round, NULL, false, NULL},
	{"round", val_round, NULL, false, NULL},
	{"sqrt", val_sqrt, NULL, false, NULL},
	{"_sym_sqrt", val_sqrt, NULL, false, NULL},
	{"OpaqueUnaryFn_sqrt", val_sqrt, NULL, false, NULL},
	{"Abs", val_abs, NULL, false, NULL},
	{"abs", val_abs, NULL, false, NULL},
	{"Equality", NULL, NULL, false, "=="},
	{"Eq", NULL, NULL, false, "=="},
	{"Unequality", NULL, NULL, false, "!="},
	{"Ne", NULL, NULL, false, "!="},
	{"GreaterThan", NULL, NULL, false, ">="},
	{"StrictGreaterThan", NULL, NULL, false, ">"},
	{"LessThan", NULL, NULL, false, "<="},
	{"StrictLessThan", NULL, NULL, false, "<"},
};

typedef ARRAY(Val) ValList;

/* Parses arguments into the scratch arena: a size may be the sum of one number for each of many
 * classes. */
static bool call_args(Parser *p, ValList *arg)
{
	if (accept(p, ")"))
		return true;
	do {
		Val x;
		TRY(parse_choice(p, &x));
		array_push(p->env->ctx->scratch, arg, x);
	} while (accept(p, ","));
	return expect(p, ")");
}

static bool modular_indexing(Parser *p, const Val *arg, uint32_t n, Val *out)
{
	if (n != 3)
		return expr_fail(p, "expected three arguments");
	TRY(val_floordiv(p, arg[0], arg[1], out));
	return val_mod(p, *out, arg[2], out);
}

/* Parses Piecewise(ExprCondPair(value, condition), ..., ExprCondPair(value, true)): the value of
 * the first condition that holds. */
static bool piecewise_call(Parser *p, Val *out)
{
	ARRAY(Val) pair = {0}; /* value, condition, value, ... */
	do {
		Val value, cond;
		TRY(expect(p, "ExprCondPair") && expect(p, "(") && parse_choice(p, &value));
		TRY(expect(p, ",") && parse_choice(p, &cond) && expect(p, ")"));
		array_push(p->env->ctx->scratch, &pair, value);
		array_push(p->env->ctx->scratch, &pair, cond);
	} while (accept(p, ","));
	TRY(expect(p, ")"));
	const Val *last = &pair.data[pair.n - 1];
	if (last->kind != VAL_COND || last->ncond != 1 ||
	    cond_truth(p->env->syms, last->cond) != YES)
		return expr_fail(p, "expected a Piecewise whose last condition is true");
	*out = last[-1];
	for (uint32_t k = pair.n - 2; k; k -= 2)
		TRY(val_choose(p, pair.data[k - 1], pair.data[k - 2], *out, out));
	return true;
}

static bool call(Parser *p, const char *name, Val *out)
{
	if (!strcmp(name, "Symbol"))
		return symbol_call(p, out);
	if (!strcmp(name, "Piecewise"))
		return piecewise_call(p, out);
	if (!strcmp(name, "Float"))
		return float_call(p, out);
	ValList list = {0};
	TRY(call_args(p, &list));
	const Val *arg = list.data;
	uint32_t n = list.n;
	if (!strcmp(name, "ModularIndexing"))
		return modular_indexing(p, arg, n, out);
	for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
		if (strcmp(name, calls[k].name))
			continue;
		uint32_t want = calls[k].one ? 1 : 2;
		if (calls[k].fold ? n < 1 : n != want)
			return expr_fail(p, "wrong number of arguments");
		if (calls[k].one)
			return calls[k].one(p, arg[0], out);
		if (calls[k].compare)
			return val_compare(p, calls[k].compare, arg[0], arg[1], out);
		*out = arg[0];
		for (uint32_t j = 1; j < n; j++)
			TRY(calls[k].two(p, *out, arg[j], out));
		return true;
	}
	return expr_fail(p, arena_printf(p->env->ctx->scratch, "unknown function %s", name));
}

/* ---- grammar ---- */

/* Reads a word; "" when there is none. */
static const char *word(Parser *p)
{
	size_t n = 0;
	while (isalnum((unsigned char)p->s[n]) || p->s[n] == '_')
		n++;
	p->s += n;
	return arena_strndup(p->env->ctx->scratch, p->s - n, n);
}

/* Parses [3], [-1]. */
static bool constant_index(Parser *p, int64_t *out)
{
	Val v = {0};
	TRY(expect(p, "[") && parse_unary(p, &v) && expect(p, "]") && val_is_int(p, &v));
	return sym_is_const(p->env->syms, v.num, out) || expr_fail(p, "expected a constant index");
}

/* Parses one of ['x'], [0], .name. Sets *size to whether it was .size(). */
static bool path_key(Parser *p, PathKey *key, bool *size)
{
	*key = (PathKey){0};
	*size = false;
	if (accept(p, ".")) {
		key->name = word(p);
		*size = !strcmp(key->name, "size") && accept(p, "(");
		return *size ? expect(p, ")") : *key->name || expr_fail(p, "expected a name");
	}
	const char *start = p->s;
	TRY(expect(p, "["));
	skip_space(p);
	if (*p->s == '\'' || *p->s == '"')
		return quoted(p, &key->name) && expect(p, "]");
	p->s = start;
	return constant_index(p, &key->index);
}

/* Parses L['x'][0].size()[1], behind the L. */
static bool input_dim(Parser *p, Val *out)
{
	PathKey path[MAX_PATH];
	uint32_t n = 0;
	int64_t dim;
	bool size = false;
	const char *start = p->s;
	while (!size) {
		if (n == MAX_PATH)
			return expr_fail(p, "path too long");
		TRY(path_key(p, &path[n++], &size));
	}
	const char *name = arena_strndup(p->env->ctx->scratch, start, (size_t)(p->s - start));
	TRY(constant_index(p, &dim));
	if (!p->env->input_dim)
		return expr_fail(p, "unexpected size");
	Sym s = p->env->input_dim(p->env->arg, path, n - 1, dim);
	*out = val_num(s);
	return s.i ||
	       expr_fail(p, arena_printf(p->env->ctx->scratch, "no dimension %lld of an input L%s",
					 (long long)dim, name));
}

static bool plain_name(Parser *p, const char *name, Val *out)
{
	static const struct {
		const char *name;
		int value;
	} known[] = {{"Zero", 0}, {"One", 1}, {"NegativeOne", -1}};
	for (size_t k = 0; k < sizeof known / sizeof *known; k++)
		if (!strcmp(name, known[k].name)) {
			*out = val_num(sym_int(p->env->syms, known[k].value));
			return true;
		}
	if (!strcmp(name, "true") || !strcmp(name, "True") || !strcmp(name, "BooleanTrue")) {
		*out = val_fixed(p, true);
		return true;
	}
	if (!strcmp(name, "false") || !strcmp(name, "False") || !strcmp(name, "BooleanFalse")) {
		*out = val_fixed(p, false);
		return true;
	}
	Sym s = sym_find(p->env->syms, name, (uint32_t)strlen(name));
	*out = val_num(s);
	return s.i || expr_fail(p, arena_printf(p->env->ctx->scratch, "unknown symbol %s", name));
}

static bool parse_primary(Parser *p, Val *out)
{
	skip_space(p);
	if (accept(p, "(")) {
		TRY(parse_choice(p, out));
		return expect(p, ")");
	}
	if (isdigit((unsigned char)*p->s) || *p->s == '.')
		return number(p, out);
	const char *name = word(p);
	if ((!strcmp(name, "torch") || !strcmp(name, "math")) && accept(p, "."))
		name = word(p);
	if (!*name)
		return expr_fail(p, "expected an expression");
	if (!strcmp(name, "L"))
		return input_dim(p, out);
	return accept(p, "(") ? call(p, name, out) : plain_name(p, name, out);
}

static bool parse_power(Parser *p, Val *out)
{
	TRY(parse_primary(p, out));
	if (!accept(p, "**"))
		return true;
	Val e = {0};
	TRY(parse_unary(p, &e));
	return val_pow(p, *out, e, out);
}

static bool parse_unary(Parser *p, Val *out)
{
	if (++p->depth > MAX_DEPTH)
		return expr_fail(p, "expression nested too deeply");
	bool ok;
	if (accept(p, "-")) {
		ok = parse_unary(p, out) && val_neg(p, *out, out);
	} else {
		ok = parse_power(p, out);
	}
	p->depth--;
	return ok;
}

static bool parse_product(Parser *p, Val *out)
{
	TRY(parse_unary(p, out));
	for (;;) {
		Val b = {0};
		if (accept(p, "//")) {
			TRY(parse_unary(p, &b) && val_floordiv(p, *out, b, out));
		} else if (accept(p, "/")) {
			TRY(parse_unary(p, &b) && val_div(p, *out, b, out));
		} else if (accept(p, "%")) {
			TRY(parse_unary(p, &b) && val_mod(p, *out, b, out));
		} else if (accept(p, "*")) {
			TRY(parse_unary(p, &b) && val_mul(p, *out, b, out));
		} else {
			return true;
		}
	}
}

static bool parse_sum(Parser *p, Val *out)
{
	TRY(parse_product(p, out));
	for (;;) {
		Val b = {0};
		bool plus = accept(p, "+");
		if (!plus && !accept(p, "-"))
			return true;
		TRY(parse_product(p, &b));
		TRY(plus ? val_add(p, *out, b, out) : val_sub(p, *out, b, out));
	}
}

/* Parses "&" and "|" of integers, or of conditions, as SymPy writes them. */
static bool parse_bits(Parser *p, Val *out)
{
	TRY(parse_sum(p, out));
	for (;;) {
		Val b = {0};
		if (accept(p, "&"))
			TRY(parse_sum(p, &b) && val_bit_and(p, *out, b, out));
		else if (accept(p, "|"))
			TRY(parse_sum(p, &b) && val_or(p, *out, b, out));
		else
			return true;
	}
}

static bool parse_compare(Parser *p, Val *out)
{
	static const char *const ops[] = {"==", "!=", "<=", ">=", "<", ">"};
	Val left, right, all = {0};
	bool any = false;
	TRY(parse_bits(p, &left));
	for (;;) {
		const char *op = NULL;
		for (size_t k = 0; k < sizeof ops / sizeof *ops && !op; k++)
			op = accept(p, ops[k]) ? ops[k] : NULL;
		if (!op)
			break;
		Val one;
		TRY(parse_bits(p, &right) && val_compare(p, op, left, right, &one));
		if (any)
			TRY(val_and(p, all, one, &one));
		all = one;
		any = true;
		left = right;
	}
	*out = any ? all : left;
	return true;
}

static bool parse_not(Parser *p, Val *out)
{
	if (!accept(p, "not"))
		return parse_compare(p, out);
	if (++p->depth > MAX_DEPTH)
		return expr_fail(p, "expression nested too deeply");
	bool ok = parse_not(p, out) && val_not(p, *out, out);
	p->depth--;
	return ok;
}

static bool parse_and(Parser *p, Val *out)
{
	TRY(parse_not(p, out));
	while (accept(p, "and")) {
		Val b = {0};
		TRY(parse_not(p, &b) && val_and(p, *out, b, out));
	}
	return true;
}

static bool parse_or(Parser *p, Val *out)
{
	TRY(parse_and(p, out));
	while (accept(p, "or")) {
		Val b = {0};
		TRY(parse_and(p, &b) && val_or(p, *out, b, out));
	}
	return true;
}

static bool parse_choice(Parser *p, Val *out)
{
	Val cond = {0}, no = {0};
	TRY(parse_or(p, out));
	if (!accept(p, "if"))
		return true;
	if (++p->depth > MAX_DEPTH)
		return expr_fail(p, "expression nested too deeply");
	bool ok = parse_or(p, &cond) && expect(p, "else") && parse_choice(p, &no);
	p->depth--;
	return ok && val_choose(p, cond, *out, no, out);
}

static bool parse(Parser *p, ExprEnv *env, const char *text, Val *out)
{
	*p = (Parser){.env = env, .s = text};
	env->error = NULL;
	env->need = NULL;
	env->nneed = 0;
	if (strnlen(text, MAX_TEXT) == MAX_TEXT)
		return expr_fail(p, "expression too long");
	TRY(parse_choice(p, out));
	skip_space(p);
	env->need = p->need.data;
	env->nneed = p->need.n;
	return !*p->s || expr_fail(p, "unexpected text");
}

Sym expr_int(ExprEnv *env, const char *text)
{
	Parser p;
	Val v = {0};
	if (!parse(&p, env, text, &v) || !val_is_int(&p, &v))
		return (Sym){0};
	return v.num;
}

bool expr_cond(ExprEnv *env, const char *text, const Cond **out, uint32_t *n)
{
	Parser p;
	Val v = {0};
	TRY(parse(&p, env, text, &v));
	if (v.kind != VAL_COND)
		return expr_fail(&p, "expected a condition");
	Val need = {.kind = VAL_COND, .cond = env->need, .ncond = env->nneed};
	TRY(val_and(&p, need, v, &v)); /* Python refuses to divide by zero */
	*out = v.cond;
	*n = v.ncond;
	return true;
}

bool expr_float(ExprEnv *env, const char *text, double *out)
{
	Parser p;
	Val v = {0};
	int64_t num, den = 1;
	TRY(parse(&p, env, text, &v));
	if (v.kind == VAL_REAL && sym_real_is_const(env->syms, v.num, out))
		return true;
	if (v.kind != VAL_NUM || !sym_is_const(env->syms, v.num, &num) ||
	    (v.den.i && !sym_is_const(env->syms, v.den, &den)))
		return expr_fail(&p, "expected a constant number, this depends on sizes");
	*out = (double)num / (double)den;
	return true;
}

Truth cond_truth(const SymTab *t, const Cond *c)
{
	if (c->fixed)
		return c->truth ? YES : NO;
	if (c->kind == GUARD_LE)
		return sym_le(t, c->a, c->b);
	Truth eq = sym_eq(t, c->a, c->b);
	return c->kind == GUARD_EQ || eq == MAYBE ? eq : eq == YES ? NO : YES;
}
