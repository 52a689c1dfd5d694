/* Arithmetic on the values of expressions: integers, fractions, doubles, conditions. */
#include <math.h>
#include <string.h>

#include "frontend/pt2/srepr/priv.h"

enum { MAX_PRODUCTS = 12, MAX_POWER = 8, MAX_CONDS = 256 };

bool expr_fail(Parser *p, const char *why)
{
	if (!p->env->error)
		p->env->error = arena_printf(p->env->ctx->scratch, "%s at \"%.24s\"", why, p->s);
	return false;
}

Val val_num(Sym s)
{
	return (Val){.kind = VAL_NUM, .num = s};
}

static Val val_real(Sym s)
{
	return (Val){.kind = VAL_REAL, .num = s};
}

static bool is_number(Parser *p, const Val *v)
{
	return v->kind == VAL_NUM || v->kind == VAL_REAL || expr_fail(p, "expected a number");
}

bool val_is_int(Parser *p, const Val *v)
{
	if (v->kind != VAL_NUM)
		return expr_fail(p, "expected an integer expression");
	return !v->den.i || expr_fail(p, "expected an integer, this is a fraction");
}

/* Returns the value of a double: small binary fractions are exact ratios, others doubles. */
Val val_double(Parser *p, double v)
{
	SymTab *t = p->env->syms;
	for (int64_t den = 1; den <= 1 << 20; den *= 2) {
		double n = v * (double)den;
		if (fabs(n) < 9e15 && n == floor(n))
			return (Val){.kind = VAL_NUM,
				     .num = sym_int(t, (int64_t)n),
				     .den = den == 1 ? (Sym){0} : sym_int(t, den)};
	}
	return val_real(sym_real_const(t, v));
}

/* ---- fractions and doubles ---- */

/* Returns num / den, with what is provably divisible divided out. */
static Val ratio(Parser *p, Sym num, Sym den, bool rounded)
{
	SymTab *t = p->env->syms;
	int64_t d;
	if (den.i && sym_is_const(t, den, &d) && d > 0 && sym_divides(t, d, num))
		return val_num(d == 1 ? num : sym_divi(t, num, d));
	return (Val){.kind = VAL_NUM, .num = num, .den = den, .rounded = den.i && rounded};
}

/* Whether a double holds the fraction exactly. */
static bool is_dyadic(Parser *p, const Val *v)
{
	int64_t d;
	return !v->den.i || (sym_is_const(p->env->syms, v->den, &d) && d > 0 && !(d & (d - 1)));
}

/* Whether Python has rounded the value to a double already, and computes with that. */
static bool is_inexact(Parser *p, const Val *v)
{
	return v->kind == VAL_REAL || (v->rounded && !is_dyadic(p, v));
}

static Sym as_real(Parser *p, Val v)
{
	SymTab *t = p->env->syms;
	if (v.kind == VAL_REAL)
		return v.num;
	Sym num = sym_real_op(t, SYM_REAL, v.num, (Sym){0});
	return v.den.i ? sym_real_op(t, SYM_REAL_DIV, num,
				     sym_real_op(t, SYM_REAL, v.den, (Sym){0}))
		       : num;
}

static bool real_op(Parser *p, SymKind kind, Val a, Val b, Val *out)
{
	*out = val_real(sym_real_op(p->env->syms, kind, as_real(p, a), as_real(p, b)));
	return true;
}

/* Multiplies. Distributing sums over sums grows exponentially; honest files hold a few such
 * products. */
static bool mul(Parser *p, Sym a, Sym b, Sym *out)
{
	SymTab *t = p->env->syms;
	if (sym_kind(t, a) == SYM_SUM && sym_kind(t, b) == SYM_SUM && ++p->products > MAX_PRODUCTS)
		return expr_fail(p, "expression too large");
	*out = sym_mul(t, a, b);
	return true;
}

bool val_mul(Parser *p, Val a, Val b, Val *out)
{
	TRY(is_number(p, &a) && is_number(p, &b));
	if (is_inexact(p, &a) || is_inexact(p, &b))
		return real_op(p, SYM_REAL_MUL, a, b, out);
	Sym num = a.num, den = a.den.i ? a.den : b.den;
	TRY(mul(p, a.num, b.num, &num));
	if (a.den.i && b.den.i)
		TRY(mul(p, a.den, b.den, &den));
	*out = ratio(p, num, den, a.rounded || b.rounded);
	return true;
}

bool val_neg(Parser *p, Val a, Val *out)
{
	TRY(is_number(p, &a));
	if (a.kind == VAL_REAL)
		return real_op(p, SYM_REAL_MUL, a, val_num(sym_int(p->env->syms, -1)), out);
	*out = a;
	out->num = sym_muli(p->env->syms, a.num, -1);
	return true;
}

bool val_add(Parser *p, Val a, Val b, Val *out)
{
	TRY(is_number(p, &a) && is_number(p, &b));
	if (is_inexact(p, &a) || is_inexact(p, &b))
		return real_op(p, SYM_REAL_ADD, a, b, out);
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
	*out = ratio(p, sym_add(p->env->syms, x, y), den, a.rounded || b.rounded);
	return true;
}

bool val_sub(Parser *p, Val a, Val b, Val *out)
{
	Val minus;
	return val_neg(p, b, &minus) && val_add(p, a, minus, out);
}

/* ---- division ---- */

static bool not_zero(Parser *p, Sym d)
{
	int64_t lo, hi;
	sym_range(p->env->syms, d, &lo, &hi);
	if (lo == 0 && hi == 0)
		return expr_fail(p, "division by zero");
	if (lo <= 0 && hi >= 0) {
		Cond c = {.kind = GUARD_NE, .a = d, .b = sym_int(p->env->syms, 0)};
		array_push(p->env->ctx->scratch, &p->need, c);
	}
	return true;
}

static bool real_not_zero(Parser *p, Sym d)
{
	SymTab *t = p->env->syms;
	double v;
	if (sym_real_is_const(t, d, &v))
		return v != 0 || expr_fail(p, "division by zero");
	Cond c = {.kind = GUARD_EQ,
		  .a = sym_real_op(t, SYM_REAL_EQUAL, d, sym_real_const(t, 0)),
		  .b = sym_int(t, 0)};
	array_push(p->env->ctx->scratch, &p->need, c);
	return true;
}

static bool divide(Parser *p, Val a, Val b, bool rounded, Val *out)
{
	TRY(is_number(p, &a) && is_number(p, &b));
	TRY(b.kind == VAL_REAL ? real_not_zero(p, b.num) : not_zero(p, b.num));
	if (is_inexact(p, &a) || is_inexact(p, &b))
		return real_op(p, SYM_REAL_DIV, a, b, out);
	SymTab *t = p->env->syms;
	int64_t d;
	if (sym_is_const(t, b.num, &d) && d < 0) { /* denominators stay positive where known */
		b.num = sym_muli(t, b.num, -1);
		a.num = sym_muli(t, a.num, -1);
	}
	Sym num = a.num, den = b.num;
	if (b.den.i)
		TRY(mul(p, num, b.den, &num));
	if (a.den.i)
		TRY(mul(p, den, a.den, &den));
	*out = ratio(p, num, den, rounded);
	return true;
}

bool val_div(Parser *p, Val a, Val b, Val *out)
{
	return divide(p, a, b, true, out);
}

bool val_rational(Parser *p, Val a, Val b, Val *out)
{
	return divide(p, a, b, false, out);
}

typedef Sym (*SymFn)(SymTab *, Sym, Sym);

static bool int_fn(Parser *p, SymFn fn, bool divides, Val a, Val b, Val *out)
{
	TRY(val_is_int(p, &a) && val_is_int(p, &b));
	if (divides)
		TRY(not_zero(p, b.num));
	*out = val_num(fn(p->env->syms, a.num, b.num));
	return true;
}

bool val_floordiv(Parser *p, Val a, Val b, Val *out)
{
	return int_fn(p, sym_floordiv, true, a, b, out);
}

bool val_ceildiv(Parser *p, Val a, Val b, Val *out)
{
	return int_fn(p, sym_ceildiv, true, a, b, out);
}

bool val_mod(Parser *p, Val a, Val b, Val *out)
{
	return int_fn(p, sym_mod, true, a, b, out);
}

bool val_min(Parser *p, Val a, Val b, Val *out)
{
	return int_fn(p, sym_min, false, a, b, out);
}

bool val_max(Parser *p, Val a, Val b, Val *out)
{
	return int_fn(p, sym_max, false, a, b, out);
}

bool val_abs(Parser *p, Val a, Val *out)
{
	Val minus;
	return val_neg(p, a, &minus) && val_max(p, a, minus, out);
}

/* ---- powers, roots, bits ---- */

bool val_sqrt(Parser *p, Val a, Val *out)
{
	TRY(is_number(p, &a));
	*out = val_real(sym_real_op(p->env->syms, SYM_REAL_SQRT, as_real(p, a), (Sym){0}));
	return true;
}

static bool is_half(Parser *p, const Val *v)
{
	return v->kind == VAL_NUM && v->den.i && sym_is(p->env->syms, v->num, 1) &&
	       sym_is(p->env->syms, v->den, 2);
}

bool val_pow(Parser *p, Val a, Val b, Val *out)
{
	SymTab *t = p->env->syms;
	int64_t n, base, lo, hi;
	if (is_half(p, &b))
		return val_sqrt(p, a, out);
	TRY(is_number(p, &a) && val_is_int(p, &b));
	sym_range(t, b.num, &lo, &hi);
	if (!sym_is_const(t, b.num, &n)) {
		if (a.kind != VAL_NUM || a.den.i || !sym_is_const(t, a.num, &base) || base < 2 ||
		    lo < 0)
			return expr_fail(p, "expected a constant exponent");
		*out = (Val){.kind = VAL_POWER, .num = b.num, .den = a.num};
		return true;
	}
	int64_t most =
		is_inexact(p, &a) ? 2 : MAX_POWER; /* a third factor would be rounded twice */
	if (n < -most || n > most)
		return expr_fail(p, "expected a small constant exponent");
	Val r = val_num(sym_int(t, 1));
	for (int64_t k = 0; k < (n < 0 ? -n : n); k++)
		TRY(k ? val_mul(p, r, a, &r) : (r = a, true));
	if (n < 0)
		return val_div(p, val_num(sym_int(t, 1)), r, out);
	*out = r;
	return true;
}

static bool shift(Parser *p, Val a, Val b, SymFn fn, Val *out)
{
	int64_t n;
	TRY(val_is_int(p, &a) && val_is_int(p, &b));
	if (!sym_is_const(p->env->syms, b.num, &n) || n < 0 || n > 62)
		return expr_fail(p, "expected a constant shift");
	return int_fn(p, fn, false, a, val_num(sym_int(p->env->syms, (int64_t)1 << n)), out);
}

bool val_shift_left(Parser *p, Val a, Val b, Val *out)
{
	return shift(p, a, b, sym_mul, out);
}

bool val_shift_right(Parser *p, Val a, Val b, Val *out)
{
	return shift(p, a, b, sym_floordiv, out);
}

/* Computes a & b: x & 5 = x % 2 + 4 * (x // 4 % 2). */
bool val_bit_and(Parser *p, Val a, Val b, Val *out)
{
	SymTab *t = p->env->syms;
	int64_t mask;
	if (a.kind == VAL_COND)
		return val_and(p, a, b, out);
	TRY(val_is_int(p, &a) && val_is_int(p, &b));
	if (sym_is_const(t, a.num, &mask)) {
		Val other = a;
		a = b;
		b = other;
	}
	if (!sym_is_const(t, b.num, &mask) || mask < 0 || mask >= (int64_t)1 << 32)
		return expr_fail(p, "expected a constant mask");
	Sym sum = sym_int(t, 0);
	for (int k = 0; k < 32; k++)
		if (mask >> k & 1) {
			Sym bit = sym_modi(t, sym_divi(t, a.num, (int64_t)1 << k), 2);
			sum = sym_add(t, sum, sym_muli(t, bit, (int64_t)1 << k));
		}
	*out = val_num(sum);
	return true;
}

/* ---- rounding ---- */

static bool round_real(Parser *p, SymKind kind, Val a, Val *out)
{
	*out = val_num(sym_real_op(p->env->syms, kind, as_real(p, a), (Sym){0}));
	return true;
}

static bool round_to(Parser *p, SymKind kind, SymFn exact, Val a, Val *out)
{
	TRY(is_number(p, &a));
	if (a.kind == VAL_REAL || (a.den.i && !exact))
		return round_real(p, kind, a, out);
	if (a.den.i)
		return int_fn(p, exact, true, val_num(a.num), val_num(a.den), out);
	*out = a;
	return true;
}

bool val_floor(Parser *p, Val a, Val *out)
{
	return round_to(p, SYM_FLOOR, sym_floordiv, a, out);
}

bool val_ceil(Parser *p, Val a, Val *out)
{
	return round_to(p, SYM_CEIL, sym_ceildiv, a, out);
}

bool val_round(Parser *p, Val a, Val *out)
{
	return round_to(p, SYM_RINT, NULL, a, out);
}

/* Truncates, which is floor where the value cannot be negative. */
bool val_trunc(Parser *p, Val a, Val *out)
{
	int64_t lo = 0, hi, dlo = 1, dhi;
	if (a.kind == VAL_NUM)
		sym_range(p->env->syms, a.num, &lo, &hi);
	if (a.kind == VAL_NUM && a.den.i)
		sym_range(p->env->syms, a.den, &dlo, &dhi);
	return round_to(p, SYM_TRUNC, lo < 0 || dlo <= 0 ? NULL : sym_floordiv, a, out);
}

/* ---- conditions ---- */

static Val val_cond(Parser *p, Cond c)
{
	Cond *one = ARENA_NEW(p->env->ctx->scratch, Cond);
	*one = c;
	return (Val){.kind = VAL_COND, .cond = one, .ncond = 1};
}

Val val_fixed(Parser *p, bool truth)
{
	return val_cond(p, (Cond){.fixed = true, .truth = truth});
}

static bool is_cond(Parser *p, const Val *v)
{
	return v->kind == VAL_COND || expr_fail(p, "expected a condition");
}

static const char *mirrored(const char *op)
{
	return op[0] == '<' ? (op[1] ? ">=" : ">") : op[0] == '>' ? (op[1] ? "<=" : "<") : op;
}

static Cond int_compare(SymTab *t, const char *op, Sym x, Sym y)
{
	if (op[0] == '=')
		return (Cond){.kind = GUARD_EQ, .a = x, .b = y};
	if (op[0] == '!')
		return (Cond){.kind = GUARD_NE, .a = x, .b = y};
	if (op[0] == '>') {
		Sym swap = x;
		x = y;
		y = swap;
	}
	return (Cond){.kind = GUARD_LE, .a = op[1] ? x : sym_addi(t, x, 1), .b = y};
}

static Cond real_compare(SymTab *t, const char *op, Sym x, Sym y)
{
	bool equal = op[0] == '=' || op[0] == '!', negated = !equal && op[1];
	if (op[0] == '!')
		negated = true;
	bool swap = !equal && (op[0] == '>') != negated; /* x <= y is not y < x */
	Sym truth =
		sym_real_op(t, equal ? SYM_REAL_EQUAL : SYM_REAL_LESS, swap ? y : x, swap ? x : y);
	return (Cond){.kind = GUARD_EQ, .a = truth, .b = sym_int(t, !negated)};
}

/* Compares base ** n with a constant: n with its logarithm. */
static bool power_compare(Parser *p, const char *op, Val a, Val b, Val *out)
{
	SymTab *t = p->env->syms;
	int64_t c, base, power = 1, n = 0;
	TRY(val_is_int(p, &b));
	if (!sym_is_const(t, b.num, &c) || !sym_is_const(t, a.den, &base))
		return expr_fail(p, "expected a constant to compare a power with");
	while (c >= 1 && power <= c / base) {
		power *= base;
		n++;
	}
	/* base ** n <= c < base ** (n + 1), or c < 1 */
	bool exact = c >= 1 && power == c;
	if ((op[0] == '=' || op[0] == '!') && !exact)
		*out = val_fixed(p, op[0] == '!');
	else if (c < 1)
		*out = val_fixed(p, op[0] == '>');
	else if (!exact) /* between two powers */
		*out = val_cond(p, int_compare(t, op[0] == '<' ? "<=" : ">", a.num, sym_int(t, n)));
	else
		*out = val_cond(p, int_compare(t, op, a.num, sym_int(t, n)));
	return true;
}

static bool positive(const SymTab *t, Sym s)
{
	int64_t lo, hi;
	sym_range(t, s, &lo, &hi);
	return lo > 0;
}

/* Whether a comparison may be multiplied with the denominator, whose sign is known. */
static bool can_cross(Parser *p, const Val *v)
{
	return v->kind == VAL_NUM && (!v->den.i || positive(p->env->syms, v->den));
}

bool val_compare(Parser *p, const char *op, Val a, Val b, Val *out)
{
	SymTab *t = p->env->syms;
	if (a.kind == VAL_POWER)
		return power_compare(p, op, a, b, out);
	if (b.kind == VAL_POWER)
		return power_compare(p, mirrored(op), b, a, out);
	TRY(is_number(p, &a) && is_number(p, &b));
	if (!can_cross(p, &a) || !can_cross(p, &b)) {
		*out = val_cond(p, real_compare(t, op, as_real(p, a), as_real(p, b)));
		return true;
	}
	Sym x = a.num, y = b.num;
	if (b.den.i)
		TRY(mul(p, x, b.den, &x));
	if (a.den.i)
		TRY(mul(p, y, a.den, &y));
	*out = val_cond(p, int_compare(t, op, x, y));
	return true;
}

bool val_and(Parser *p, Val a, Val b, Val *out)
{
	TRY(is_cond(p, &a) && is_cond(p, &b));
	if (a.ncond + b.ncond > MAX_CONDS)
		return expr_fail(p, "too many conditions");
	Cond *all = ARENA_ARRAY(p->env->ctx->scratch, Cond, a.ncond + b.ncond);
	if (a.ncond) /* a true condition is an empty list without memory */
		memcpy(all, a.cond, a.ncond * sizeof *all);
	if (b.ncond)
		memcpy(all + a.ncond, b.cond, b.ncond * sizeof *all);
	*out = (Val){.kind = VAL_COND, .cond = all, .ncond = a.ncond + b.ncond};
	return true;
}

/* Returns 1 where the condition holds, else 0. */
static Sym cond_number(SymTab *t, const Cond *c)
{
	Sym zero = sym_int(t, 0), one = sym_int(t, 1);
	if (c->fixed)
		return c->truth ? one : zero;
	if (c->kind == GUARD_LE)
		return sym_max(t, sym_min(t, sym_addi(t, sym_sub(t, c->b, c->a), 1), one), zero);
	Sym d = sym_sub(t, c->a, c->b), differ = sym_min(t, sym_max(t, d, sym_muli(t, d, -1)), one);
	return c->kind == GUARD_NE ? differ : sym_sub(t, one, differ);
}

static Sym all_number(SymTab *t, const Val *v)
{
	Sym all = sym_int(t, 1);
	for (uint32_t k = 0; k < v->ncond; k++)
		all = sym_min(t, all, cond_number(t, &v->cond[k]));
	return all;
}

bool val_or(Parser *p, Val a, Val b, Val *out)
{
	SymTab *t = p->env->syms;
	TRY(is_cond(p, &a) && is_cond(p, &b));
	Sym any = sym_max(t, all_number(t, &a), all_number(t, &b));
	*out = val_cond(p, (Cond){.kind = GUARD_LE, .a = sym_int(t, 1), .b = any});
	return true;
}

bool val_not(Parser *p, Val a, Val *out)
{
	SymTab *t = p->env->syms;
	TRY(is_cond(p, &a));
	Cond c = a.cond[0];
	if (a.ncond != 1)
		c = (Cond){.kind = GUARD_EQ, .a = all_number(t, &a), .b = sym_int(t, 0)};
	else if (c.fixed)
		c.truth = !c.truth;
	else if (c.kind == GUARD_LE) /* not a <= b: b + 1 <= a */
		c = (Cond){.kind = GUARD_LE, .a = sym_addi(t, c.b, 1), .b = c.a};
	else
		c.kind = c.kind == GUARD_EQ ? GUARD_NE : GUARD_EQ;
	*out = val_cond(p, c);
	return true;
}

bool val_choose(Parser *p, Val cond, Val yes, Val no, Val *out)
{
	Val by;
	TRY(is_cond(p, &cond));
	TRY(val_is_int(p, &yes) && val_is_int(p, &no) && val_sub(p, yes, no, &by));
	return val_mul(p, by, val_num(all_number(p->env->syms, &cond)), &by) &&
	       val_add(p, no, by, out);
}
