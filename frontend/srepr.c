/* Recursive descent over   or: and ('or' and)*   and: not ('and' not)*   cmp: sum (op sum)*
 * sum: product (+|- product)*   product: unary (*|//|/|% unary)*   unary: -unary | power
 * power: primary [** unary]   primary: number | name | name(args) | L['x'].size()[d] | (or).
 * A number is a ratio of two symbolic integers, so that true division under ceil or floor is exact.
 */
#include "frontend/srepr.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 100, MAX_CALL_ARGS = 64, MAX_PRODUCTS = 12, MAX_POWER = 8, MAX_TEXT = 1 << 16 };

typedef struct Val {
	enum { VAL_NUM, VAL_COND, VAL_REAL } kind;
	Sym num, den;         /* VAL_NUM; den is none for 1 */
	double real;          /* VAL_REAL: a constant that is no small ratio */
	uint32_t cond, ncond; /* VAL_COND: range of the parser's conjuncts */
} Val;

typedef struct {
	ExprEnv *env;
	const char *s;
	uint32_t depth, products;
	ARRAY(Cond) cond;
} Parser;

static bool parse_or(Parser *, Val *);
static bool parse_unary(Parser *, Val *);

static bool fail(Parser *p, const char *why)
{
	if (!p->env->error)
		p->env->error = arena_printf(p->env->ctx->scratch, "%s at \"%.24s\"", why, p->s);
	return false;
}

/* ---- values ---- */

static Val val_num(Sym s)
{
	return (Val){.kind = VAL_NUM, .num = s};
}

static bool is_num(Parser *p, const Val *v)
{
	return v->kind == VAL_NUM || fail(p, "expected an integer expression");
}

static bool is_int(Parser *p, const Val *v)
{
	TRY(is_num(p, v));
	return !v->den.i || fail(p, "expected an integer, this is a fraction");
}

/* Divide out what is provably divisible. */
static Val val_ratio(Parser *p, Sym num, Sym den)
{
	SymTab *t = p->env->syms;
	int64_t d;
	if (den.i && sym_is_const(t, den, &d) && d > 0 && sym_divides(t, d, num))
		return val_num(d == 1 ? num : sym_divi(t, num, d));
	return (Val){.kind = VAL_NUM, .num = num, .den = den};
}

/* Distributing sums over sums grows exponentially; honest files hold a few such products. */
static bool mul(Parser *p, Sym a, Sym b, Sym *out)
{
	SymTab *t = p->env->syms;
	if (sym_kind(t, a) == SYM_SUM && sym_kind(t, b) == SYM_SUM && ++p->products > MAX_PRODUCTS)
		return fail(p, "expression too large");
	*out = sym_mul(t, a, b);
	return true;
}

static bool val_mul(Parser *p, Val a, Val b, Val *out)
{
	TRY(is_num(p, &a) && is_num(p, &b));
	Sym num = a.num, den = a.den.i ? a.den : b.den;
	TRY(mul(p, a.num, b.num, &num));
	if (a.den.i && b.den.i)
		TRY(mul(p, a.den, b.den, &den));
	*out = val_ratio(p, num, den);
	return true;
}

static bool val_add(Parser *p, Val a, Val b, int sign, Val *out)
{
	SymTab *t = p->env->syms;
	TRY(is_num(p, &a) && is_num(p, &b));
	Sym x = a.num, y = b.num, den = a.den;
	if (a.den.i != b.den.i) {
		if (b.den.i)
			TRY(mul(p, x, b.den, &x));
		if (a.den.i)
			TRY(mul(p, y, a.den, &y));
		if (a.den.i && b.den.i)
			TRY(mul(p, a.den, b.den, &den));
		else
			den = a.den.i ? a.den : b.den;
	}
	*out = val_ratio(p, sign > 0 ? sym_add(t, x, y) : sym_sub(t, x, y), den);
	return true;
}

static bool not_zero(Parser *p, Sym d)
{
	int64_t lo, hi;
	sym_range(p->env->syms, d, &lo, &hi);
	return !(lo == 0 && hi == 0) || fail(p, "division by zero");
}

static bool val_div(Parser *p, Val a, Val b, Val *out)
{
	TRY(is_num(p, &a) && is_num(p, &b) && not_zero(p, b.num));
	SymTab *t = p->env->syms;
	int64_t d;
	if (sym_is_const(t, b.num, &d) && d < 0) { /* denominators stay positive where known */
		b.num = sym_muli(t, b.num, -1);
		a.num = sym_muli(t, a.num, -1);
	}
	Val inverse = {.kind = VAL_NUM, .num = b.den.i ? b.den : sym_int(t, 1), .den = b.num};
	return val_mul(p, a, inverse, out);
}

typedef Sym (*SymFn)(SymTab *, Sym, Sym);

static bool val_int_fn(Parser *p, SymFn fn, bool divides, Val a, Val b, Val *out)
{
	TRY(is_int(p, &a) && is_int(p, &b));
	if (divides)
		TRY(not_zero(p, b.num));
	*out = val_num(fn(p->env->syms, a.num, b.num));
	return true;
}

static bool val_round(Parser *p, SymFn fn, Val a, Val *out)
{
	TRY(is_num(p, &a));
	if (a.den.i)
		return val_int_fn(p, fn, true, val_num(a.num), val_num(a.den), out);
	*out = a;
	return true;
}

/* Truncation is floor where the value cannot be negative. */
static bool val_trunc(Parser *p, Val a, Val *out)
{
	TRY(is_num(p, &a));
	int64_t lo, hi, dlo = 1, dhi;
	sym_range(p->env->syms, a.num, &lo, &hi);
	if (a.den.i)
		sym_range(p->env->syms, a.den, &dlo, &dhi);
	if (a.den.i && (lo < 0 || dlo <= 0))
		return fail(p, "truncation of a value that may be negative");
	return val_round(p, sym_floordiv, a, out);
}

static bool val_pow(Parser *p, Val a, Val b, Val *out)
{
	int64_t n;
	TRY(is_num(p, &a) && is_int(p, &b));
	if (!sym_is_const(p->env->syms, b.num, &n) || n < -MAX_POWER || n > MAX_POWER)
		return fail(p, "expected a small constant exponent");
	Val r = val_num(sym_int(p->env->syms, 1));
	for (int64_t k = 0; k < (n < 0 ? -n : n); k++)
		TRY(val_mul(p, r, a, &r));
	if (n < 0)
		return val_div(p, val_num(sym_int(p->env->syms, 1)), r, out);
	*out = r;
	return true;
}

static Val val_fixed(Parser *p, bool truth)
{
	Val v = {.kind = VAL_COND, .cond = p->cond.n, .ncond = 1};
	array_push(p->env->ctx->scratch, &p->cond, (Cond){.fixed = true, .truth = truth});
	return v;
}

/* Does every factor of a denominator have a known sign? Only then may a comparison be
 * cross-multiplied. */
static bool positive(const SymTab *t, Sym s)
{
	int64_t lo, hi;
	sym_range(t, s, &lo, &hi);
	return lo > 0;
}

static bool val_compare(Parser *p, const char *op, Val a, Val b, Val *out)
{
	SymTab *t = p->env->syms;
	TRY(is_num(p, &a) && is_num(p, &b));
	Sym x = a.num, y = b.num;
	if ((a.den.i && !positive(t, a.den)) || (b.den.i && !positive(t, b.den)))
		return fail(p, "comparison of fractions");
	if (b.den.i)
		TRY(mul(p, x, b.den, &x));
	if (a.den.i)
		TRY(mul(p, y, a.den, &y));
	Cond c = {.kind = GUARD_LE, .a = x, .b = y};
	if (!strcmp(op, "=="))
		c.kind = GUARD_EQ;
	else if (!strcmp(op, "!="))
		c.kind = GUARD_NE;
	else if (!strcmp(op, "<"))
		c.a = sym_addi(t, x, 1);
	else if (!strcmp(op, ">"))
		c.a = sym_addi(t, y, 1), c.b = x;
	else if (!strcmp(op, ">="))
		c.a = y, c.b = x;
	*out = (Val){.kind = VAL_COND, .cond = p->cond.n, .ncond = 1};
	array_push(p->env->ctx->scratch, &p->cond, c);
	return true;
}

static bool val_and(Parser *p, Val a, Val b, Val *out)
{
	if (a.kind != VAL_COND || b.kind != VAL_COND || a.cond + a.ncond != b.cond)
		return fail(p, "expected a condition");
	*out = (Val){.kind = VAL_COND, .cond = a.cond, .ncond = a.ncond + b.ncond};
	return true;
}

static bool val_not(Parser *p, Val a, Val *out)
{
	if (a.kind != VAL_COND || a.ncond != 1)
		return fail(p, "cannot negate this");
	Cond *c = &p->cond.data[a.cond];
	if (c->fixed) {
		c->truth = !c->truth;
	} else if (c->kind == GUARD_LE) { /* not a <= b: b + 1 <= a */
		Sym x = c->a;
		c->a = sym_addi(p->env->syms, c->b, 1);
		c->b = x;
	} else {
		c->kind = c->kind == GUARD_EQ ? GUARD_NE : GUARD_EQ;
	}
	*out = a;
	return true;
}

/* ---- symbols ---- */

Sym expr_symbol(ExprEnv *env, const char *name, int64_t lo, int64_t hi)
{
	Sym s = sym_find(env->syms, name, (uint32_t)strlen(name));
	if (!s.i) {
		bool unbacked = name[0] == 'u' && isdigit((unsigned char)name[1]);
		return sym_var(env->syms, name, unbacked ? SYMVAR_UNBACKED : SYMVAR_SIZE, lo, hi);
	}
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
	return fail(p, arena_printf(p->env->ctx->scratch, "expected %s", token));
}

/* A quoted string without escapes, in the scratch arena. */
static bool quoted(Parser *p, const char **out)
{
	skip_space(p);
	char q = *p->s;
	const char *end = q == '\'' || q == '"' ? strchr(p->s + 1, q) : NULL;
	if (!end)
		return fail(p, "expected a string");
	*out = arena_strndup(p->env->ctx->scratch, p->s + 1, (size_t)(end - p->s - 1));
	p->s = end + 1;
	return true;
}

/* A decimal constant; small binary fractions are exact ratios. */
static bool real_value(Parser *p, double v, Val *out)
{
	SymTab *t = p->env->syms;
	for (int64_t den = 1; den <= 1 << 20; den *= 2) {
		double n = v * (double)den;
		if (fabs(n) < 9e15 && n == floor(n)) {
			*out = val_ratio(p, sym_int(t, (int64_t)n),
					 den == 1 ? (Sym){0} : sym_int(t, den));
			return true;
		}
	}
	*out = (Val){.kind = VAL_REAL, .real = v};
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
				return fail(p, "integer out of range");
		p->s += digits;
		*out = val_num(sym_int(p->env->syms, v));
		return true;
	}
	char *end;
	double v = strtod(p->s, &end);
	if (end == p->s)
		return fail(p, "expected a number");
	p->s = end;
	return real_value(p, v, out);
}

/* ---- calls ---- */

/* Symbol('s77', positive=True, integer=True) */
static bool symbol_call(Parser *p, Val *out)
{
	const char *name;
	int64_t lo = -SYM_INF;
	TRY(quoted(p, &name));
	while (accept(p, ",")) {
		bool positive_kw = accept(p, "positive"), nonnegative = accept(p, "nonnegative");
		if (!positive_kw && !nonnegative && !accept(p, "integer") && !accept(p, "zero"))
			return fail(p, "unknown property of a symbol");
		TRY(expect(p, "="));
		bool yes = accept(p, "True");
		if (!yes)
			TRY(expect(p, "False"));
		if (yes && (positive_kw || nonnegative))
			lo = positive_kw ? 1 : 0;
	}
	TRY(expect(p, ")"));
	if (lo < 0 && name[0] != 'u')
		lo = 0;
	Sym s = expr_symbol(p->env, name, lo, SYM_INF);
	*out = val_num(s);
	return s.i || fail(p, "bad symbol");
}

/* Float('0.5', precision=53) */
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
		return fail(p, "expected a number");
	return real_value(p, v, out);
}

static bool min_call(Parser *p, Val a, Val b, Val *out)
{
	return val_int_fn(p, sym_min, false, a, b, out);
}

static bool max_call(Parser *p, Val a, Val b, Val *out)
{
	return val_int_fn(p, sym_max, false, a, b, out);
}

static bool add_call(Parser *p, Val a, Val b, Val *out)
{
	return val_add(p, a, b, 1, out);
}

static bool mod_call(Parser *p, Val a, Val b, Val *out)
{
	return val_int_fn(p, sym_mod, true, a, b, out);
}

static bool floordiv_call(Parser *p, Val a, Val b, Val *out)
{
	return val_int_fn(p, sym_floordiv, true, a, b, out);
}

static bool ceildiv_call(Parser *p, Val a, Val b, Val *out)
{
	return val_int_fn(p, sym_ceildiv, true, a, b, out);
}

static bool shift_call(Parser *p, Val a, Val b, bool left, Val *out)
{
	int64_t n;
	TRY(is_int(p, &a) && is_int(p, &b));
	if (!sym_is_const(p->env->syms, b.num, &n) || n < 0 || n > 62)
		return fail(p, "expected a constant shift");
	Sym by = sym_int(p->env->syms, (int64_t)1 << n);
	return val_int_fn(p, left ? sym_mul : sym_floordiv, !left, a, val_num(by), out);
}

static bool lshift_call(Parser *p, Val a, Val b, Val *out)
{
	return shift_call(p, a, b, true, out);
}

static bool rshift_call(Parser *p, Val a, Val b, Val *out)
{
	return shift_call(p, a, b, false, out);
}

static bool abs_call(Parser *p, Val a, Val *out)
{
	SymTab *t = p->env->syms;
	TRY(is_int(p, &a));
	*out = val_num(sym_max(t, a.num, sym_muli(t, a.num, -1)));
	return true;
}

static bool same_call(Parser *p, Val a, Val *out)
{
	(void)p;
	*out = a;
	return true;
}

static bool ceil_call(Parser *p, Val a, Val *out)
{
	return val_round(p, sym_ceildiv, a, out);
}

static bool floor_call(Parser *p, Val a, Val *out)
{
	return val_round(p, sym_floordiv, a, out);
}

static const struct {
	const char *name;
	bool (*one)(Parser *, Val, Val *);
	bool (*two)(Parser *, Val, Val, Val *);
	bool fold; /* takes two or more */
	const char *compare;
} calls[] = {
	{"Add", NULL, add_call, true, NULL},
	{"Mul", NULL, val_mul, true, NULL},
	{"Pow", NULL, val_pow, false, NULL},
	{"PowByNatural", NULL, val_pow, false, NULL},
	{"Max", NULL, max_call, true, NULL},
	{"max", NULL, max_call, true, NULL},
	{"sym_max", NULL, max_call, true, NULL},
	{"Min", NULL, min_call, true, NULL},
	{"min", NULL, min_call, true, NULL},
	{"sym_min", NULL, min_call, true, NULL},
	{"And", NULL, val_and, true, NULL},
	{"sym_not", val_not, NULL, false, NULL},
	{"Not", val_not, NULL, false, NULL},
	{"Mod", NULL, mod_call, false, NULL},
	{"PythonMod", NULL, mod_call, false, NULL},
	{"FloorDiv", NULL, floordiv_call, false, NULL},
	{"CleanDiv", NULL, floordiv_call, false, NULL},
	{"CeilDiv", NULL, ceildiv_call, false, NULL},
	{"LShift", NULL, lshift_call, false, NULL},
	{"RShift", NULL, rshift_call, false, NULL},
	{"IntTrueDiv", NULL, val_div, false, NULL},
	{"FloatTrueDiv", NULL, val_div, false, NULL},
	{"Rational", NULL, val_div, false, NULL},
	{"CeilToInt", ceil_call, NULL, false, NULL},
	{"ceil", ceil_call, NULL, false, NULL},
	{"ceiling", ceil_call, NULL, false, NULL},
	{"FloorToInt", floor_call, NULL, false, NULL},
	{"floor", floor_call, NULL, false, NULL},
	{"TruncToInt", val_trunc, NULL, false, NULL},
	{"trunc", val_trunc, NULL, false, NULL},
	{"sym_float", same_call, NULL, false, NULL},
	{"float", same_call, NULL, false, NULL},
	{"ToFloat", same_call, NULL, false, NULL},
	{"Identity", same_call, NULL, false, NULL},
	{"Integer", same_call, NULL, false, NULL},
	{"int", same_call, NULL, false, NULL},
	{"Abs", abs_call, NULL, false, NULL},
	{"Equality", NULL, NULL, false, "=="},
	{"Eq", NULL, NULL, false, "=="},
	{"Unequality", NULL, NULL, false, "!="},
	{"Ne", NULL, NULL, false, "!="},
	{"GreaterThan", NULL, NULL, false, ">="},
	{"StrictGreaterThan", NULL, NULL, false, ">"},
	{"LessThan", NULL, NULL, false, "<="},
	{"StrictLessThan", NULL, NULL, false, "<"},
};

static bool call_args(Parser *p, Val *arg, uint32_t *n)
{
	*n = 0;
	if (accept(p, ")"))
		return true;
	do {
		if (*n == MAX_CALL_ARGS)
			return fail(p, "too many arguments");
		TRY(parse_or(p, &arg[(*n)++]));
	} while (accept(p, ","));
	return expect(p, ")");
}

static bool modular_indexing(Parser *p, const Val *arg, uint32_t n, Val *out)
{
	if (n != 3)
		return fail(p, "expected three arguments");
	TRY(floordiv_call(p, arg[0], arg[1], out));
	return mod_call(p, *out, arg[2], out);
}

static bool call(Parser *p, const char *name, Val *out)
{
	if (!strcmp(name, "Symbol"))
		return symbol_call(p, out);
	if (!strcmp(name, "Float"))
		return float_call(p, out);
	Val arg[MAX_CALL_ARGS];
	uint32_t n;
	TRY(call_args(p, arg, &n));
	if (!strcmp(name, "ModularIndexing"))
		return modular_indexing(p, arg, n, out);
	for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
		if (strcmp(name, calls[k].name))
			continue;
		uint32_t want = calls[k].one ? 1 : 2;
		if (calls[k].fold ? n < 1 : n != want)
			return fail(p, "wrong number of arguments");
		if (calls[k].one)
			return calls[k].one(p, arg[0], out);
		if (calls[k].compare)
			return val_compare(p, calls[k].compare, arg[0], arg[1], out);
		*out = arg[0];
		for (uint32_t j = 1; j < n; j++)
			TRY(calls[k].two(p, *out, arg[j], out));
		return true;
	}
	return fail(p, arena_printf(p->env->ctx->scratch, "unknown function %s", name));
}

/* ---- grammar ---- */

/* L['x'].size()[0], behind the L. */
static bool input_dim(Parser *p, Val *out)
{
	const char *name;
	int64_t dim;
	Val v = {0};
	TRY(expect(p, "[") && quoted(p, &name) && expect(p, "]"));
	TRY(expect(p, ".") && expect(p, "size") && expect(p, "(") && expect(p, ")"));
	TRY(expect(p, "[") && parse_or(p, &v) && expect(p, "]") && is_int(p, &v));
	if (!p->env->input_dim || !sym_is_const(p->env->syms, v.num, &dim))
		return fail(p, "unexpected size");
	Sym s = p->env->input_dim(p->env->arg, name, dim);
	*out = val_num(s);
	return s.i || fail(p, arena_printf(p->env->ctx->scratch, "no dimension %lld of input %s",
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
	return s.i || fail(p, arena_printf(p->env->ctx->scratch, "unknown symbol %s", name));
}

/* "" when there is none. */
static const char *word(Parser *p)
{
	size_t n = 0;
	while (isalnum((unsigned char)p->s[n]) || p->s[n] == '_')
		n++;
	p->s += n;
	return arena_strndup(p->env->ctx->scratch, p->s - n, n);
}

static bool parse_primary(Parser *p, Val *out)
{
	skip_space(p);
	if (accept(p, "(")) {
		TRY(parse_or(p, out));
		return expect(p, ")");
	}
	if (isdigit((unsigned char)*p->s) || *p->s == '.')
		return number(p, out);
	const char *name = word(p);
	if ((!strcmp(name, "torch") || !strcmp(name, "math")) && accept(p, "."))
		name = word(p);
	if (!*name)
		return fail(p, "expected an expression");
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
		return fail(p, "expression nested too deeply");
	bool ok;
	if (accept(p, "-")) {
		ok = parse_unary(p, out);
		if (ok && out->kind == VAL_REAL)
			out->real = -out->real;
		else if (ok)
			ok = val_mul(p, *out, val_num(sym_int(p->env->syms, -1)), out);
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
			TRY(parse_unary(p, &b) && floordiv_call(p, *out, b, out));
		} else if (accept(p, "/")) {
			TRY(parse_unary(p, &b) && val_div(p, *out, b, out));
		} else if (accept(p, "%")) {
			TRY(parse_unary(p, &b) && mod_call(p, *out, b, out));
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
		int sign = accept(p, "+") ? 1 : accept(p, "-") ? -1 : 0;
		if (!sign)
			return true;
		TRY(parse_product(p, &b) && val_add(p, *out, b, sign, out));
	}
}

static bool parse_compare(Parser *p, Val *out)
{
	static const char *const ops[] = {"==", "!=", "<=", ">=", "<", ">"};
	Val left, right, all = {0};
	bool any = false;
	TRY(parse_sum(p, &left));
	for (;;) {
		const char *op = NULL;
		for (size_t k = 0; k < sizeof ops / sizeof *ops && !op; k++)
			op = accept(p, ops[k]) ? ops[k] : NULL;
		if (!op)
			break;
		Val one;
		TRY(parse_sum(p, &right) && val_compare(p, op, left, right, &one));
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
		return fail(p, "expression nested too deeply");
	bool ok = parse_not(p, out) && val_not(p, *out, out);
	p->depth--;
	return ok;
}

static bool parse_or(Parser *p, Val *out)
{
	TRY(parse_not(p, out));
	for (;;) {
		Val b = {0};
		if (accept(p, "and") || accept(p, "&")) {
			TRY(parse_not(p, &b) && val_and(p, *out, b, out));
		} else if (accept(p, "or") || accept(p, "|")) {
			return fail(p, "alternatives are not supported");
		} else {
			return true;
		}
	}
}

static bool parse(Parser *p, ExprEnv *env, const char *text, Val *out)
{
	*p = (Parser){.env = env, .s = text};
	env->error = NULL;
	if (strnlen(text, MAX_TEXT) == MAX_TEXT)
		return fail(p, "expression too long");
	TRY(parse_or(p, out));
	skip_space(p);
	return !*p->s || fail(p, "unexpected text");
}

Sym expr_int(ExprEnv *env, const char *text)
{
	Parser p;
	Val v = {0};
	if (!parse(&p, env, text, &v) || !is_int(&p, &v))
		return (Sym){0};
	return v.num;
}

bool expr_cond(ExprEnv *env, const char *text, const Cond **out, uint32_t *n)
{
	Parser p;
	Val v = {0};
	TRY(parse(&p, env, text, &v));
	if (v.kind != VAL_COND)
		return fail(&p, "expected a condition");
	*out = p.cond.data + v.cond;
	*n = v.ncond;
	return true;
}

bool expr_float(ExprEnv *env, const char *text, double *out)
{
	Parser p;
	Val v = {0};
	int64_t num, den = 1;
	TRY(parse(&p, env, text, &v));
	if (v.kind == VAL_REAL) {
		*out = v.real;
		return true;
	}
	TRY(is_num(&p, &v));
	if (!sym_is_const(env->syms, v.num, &num) ||
	    (v.den.i && !sym_is_const(env->syms, v.den, &den)))
		return fail(&p, "expected a constant number, this depends on sizes");
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
