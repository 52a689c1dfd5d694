/* Intervals of expressions. An end of +-SYM_INF is unbounded; arithmetic saturates there. */
#include "ir/sym/priv.h"

typedef struct {
	int64_t lo, hi;
} SymRange;

static int64_t saturate(SymWide v)
{
	return v > SYM_INF ? SYM_INF : v < -SYM_INF ? -SYM_INF : (int64_t)v;
}

static bool is_inf(int64_t v)
{
	return v >= SYM_INF || v <= -SYM_INF;
}

static int64_t end_mul(int64_t a, int64_t b)
{
	if (!a || !b)
		return 0;
	if (is_inf(a) || is_inf(b))
		return (a < 0) == (b < 0) ? SYM_INF : -SYM_INF;
	return saturate((SymWide)a * b);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static SymRange range_add(SymRange a, SymRange b)
{
	bool no_lo = a.lo <= -SYM_INF || b.lo <= -SYM_INF;
	bool no_hi = a.hi >= SYM_INF || b.hi >= SYM_INF;
	return (SymRange){no_lo ? -SYM_INF : saturate((SymWide)a.lo + b.lo),
			  no_hi ? SYM_INF : saturate((SymWide)a.hi + b.hi)};
}

static SymRange range_mul(SymRange a, SymRange b)
{
	int64_t w = end_mul(a.lo, b.lo), x = end_mul(a.lo, b.hi);
	int64_t y = end_mul(a.hi, b.lo), z = end_mul(a.hi, b.hi);
	return (SymRange){least(least(w, x), least(y, z)), most(most(w, x), most(y, z))};
}

/* Returns the range of the square of a value in a. It is at least 0, whatever the sign of the
 * value. */
static SymRange range_square(SymRange a)
{
	SymRange r = range_mul(a, a);
	if (a.lo <= 0 && a.hi >= 0)
		r.lo = 0;
	r.lo = most(r.lo, 0);
	return r;
}

/* Returns a / b rounded down, where b > 0 is finite; an infinite a stays. */
static int64_t end_div(int64_t a, int64_t b)
{
	return is_inf(a) ? a : sym_floor(a, b);
}

static SymRange range_floordiv(SymRange e, SymRange d)
{
	if (d.lo <= 0) { /* of unknown sign: no larger in magnitude */
		int64_t far = most(e.hi, -e.lo);
		return (SymRange){-far, far};
	}
	SymRange r;
	if (e.lo >= 0)
		r.lo = is_inf(d.hi) ? 0 : end_div(e.lo, d.hi);
	else
		r.lo = end_div(e.lo, d.lo);
	if (e.hi >= 0)
		r.hi = end_div(e.hi, d.lo);
	else
		r.hi = is_inf(d.hi) ? -1 : end_div(e.hi, d.hi);
	return r;
}

static SymRange range_mod(SymRange e, SymRange d)
{
	SymRange r = {0, 0};
	if (d.hi > 0)
		r.hi = is_inf(d.hi) ? SYM_INF : d.hi - 1;
	if (d.lo < 0)
		r.lo = is_inf(d.lo) ? -SYM_INF : d.lo + 1;
	if (d.lo > 0 && e.lo >= 0)
		r.hi = least(r.hi, e.hi);
	return r;
}

static SymRange range_of(const SymTab *t, Sym e)
{
	const SymNode *n = sym_node(t, e);
	return (SymRange){n->lo, n->hi};
}

static SymRange range_product(const SymTab *t, const SymNode *n)
{
	SymRange r = {1, 1};
	for (uint32_t k = 0; k < n->nargs; k++) {
		SymRange arg = range_of(t, n->args[k]);
		if (k + 1 < n->nargs && sym_same(n->args[k], n->args[k + 1])) {
			arg = range_square(arg);
			k++;
		}
		r = range_mul(r, arg);
	}
	return r;
}

static SymRange range_var(const SymTab *t, const SymNode *n)
{
	const SymVar *v = &t->var.data[n->value];
	SymRange r = {v->lo, v->hi};
	if (v->extent.i) {
		int64_t extent = sym_node(t, v->extent)->hi;
		if (!is_inf(extent))
			r.hi = least(r.hi, most(extent - 1, r.lo));
	}
	return r;
}

void sym_set_range(const SymTab *t, Sym e)
{
	SymNode *n = sym_node(t, e);
	SymRange r = {0, 0};
	SymRange a = n->nargs ? range_of(t, n->args[0]) : r;
	SymRange b = n->nargs > 1 ? range_of(t, n->args[1]) : r;
	switch ((SymKind)n->kind) {
	case SYM_CONST: r.lo = r.hi = saturate(n->value); break;
	case SYM_VAR: r = range_var(t, n); break;
	case SYM_SUM:
		for (uint32_t k = 0; k < n->nargs; k++)
			r = range_add(r, range_of(t, n->args[k]));
		break;
	case SYM_PRODUCT: r = range_product(t, n); break;
	case SYM_FLOORDIV: r = range_floordiv(a, b); break;
	case SYM_MOD: r = range_mod(a, b); break;
	case SYM_MIN:
		r = (SymRange){least(a.lo, b.lo), least(a.hi, b.hi)};
		break;
	case SYM_MAX:
		r = (SymRange){most(a.lo, b.lo), most(a.hi, b.hi)};
		break;
	default: sym_real_range(t, e, &r.lo, &r.hi); break;
	}
	n->lo = r.lo;
	n->hi = r.hi;
}
