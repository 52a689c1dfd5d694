/* Proofs that an expression is never negative.
 *
 * Where its interval does not say so, an atom that it is linear in gives way to a bound of that
 * atom: C*v + R >= C*bound + R. Bounds may be symbolic (an axis by its extent, mod by its divisor,
 * d*floordiv(e, d) by e). The latest atom goes first, since bounds are made of earlier ones; so
 * this ends. A budget keeps failing proofs cheap, and both outcomes are remembered. */
#include "ir/sym/priv.h"

enum { BUDGET = 64 };

typedef struct {
	SymTab *t;
	int budget;
} Prover;

/* coef * atom + rest; coef and rest do not have the atom as a factor. */
typedef struct {
	Sym coef, rest;
} Linear;

static bool prove(Prover *p, Sym e);

/* Sets *l to e as a linear form in the atom. Returns false if the atom occurs squared, or after
 * an overflow. */
static bool isolate(SymTab *t, Sym e, Sym atom, Linear *l)
{
	Poly coef, rest;
	poly_init(&coef, t);
	poly_init(&rest, t);
	uint32_t n = sym_nterms(t, e);
	for (uint32_t k = 0; k < n; k++) {
		SymTerm term = sym_term(t, e, k);
		Sym others = mono_div(t, term.mono, atom);
		if (!others.i)
			poly_add_term(&rest, term.mono, term.coef);
		else if (mono_div(t, others, atom).i)
			return false;
		else
			poly_add_term(&coef, others, term.coef);
	}
	*l = (Linear){poly_done(&coef), poly_done(&rest)};
	return l->coef.i && l->rest.i;
}

/* Returns 1 if e is never negative, -1 if e is never positive, 0 if neither is known, as of none
 * (an overflow). */
static int sign_of(Prover *p, Sym e)
{
	if (!e.i)
		return 0;
	const SymNode *n = sym_node(p->t, e);
	if (n->lo >= 0)
		return 1;
	if (n->hi <= 0)
		return -1;
	if (prove(p, e))
		return 1;
	return prove(p, scale_quiet(p->t, e, -1)) ? -1 : 0;
}

/* Proves that the form is at least 0 where its atom is `bound`. A bound of none is unknown and
 * proves nothing. */
static bool prove_at(Prover *p, Linear l, Sym bound)
{
	return bound.i && prove(p, add_quiet(p->t, mul_quiet(p->t, l.coef, bound), l.rest));
}

/* Proves that the form is at least 0 where its atom is between the bounds: at one of them, which
 * `sign`, that of the coefficient, says; at both if the sign is not known (0). */
static bool prove_between(Prover *p, Linear l, int sign, Sym lower, Sym upper)
{
	return (sign > 0 || prove_at(p, l, upper)) && (sign < 0 || prove_at(p, l, lower));
}

static Sym end_sym(SymTab *t, int64_t end)
{
	return end <= -SYM_INF || end >= SYM_INF ? (Sym){0} : sym_int(t, end);
}

static bool by_interval(Prover *p, Linear l, int sign, Sym atom)
{
	const SymNode *n = sym_node(p->t, atom);
	int64_t lo = n->lo, hi = n->hi;
	return prove_between(p, l, sign, end_sym(p->t, lo), end_sym(p->t, hi));
}

static bool by_extent(Prover *p, Linear l, int sign, Sym atom)
{
	SymTab *t = p->t;
	const SymVar *v = &t->var.data[sym_node(t, atom)->value];
	if (!v->extent.i)
		return false;
	Sym lower = end_sym(t, sym_node(t, atom)->lo);
	return prove_between(p, l, sign, lower, addi_quiet(t, v->extent, -1));
}

static bool by_divisor(Prover *p, Linear l, int sign, Sym atom)
{
	SymTab *t = p->t;
	Sym e = sym_node(t, atom)->args[0], d = sym_node(t, atom)->args[1];
	if (sign_of(p, addi_quiet(t, d, -1)) <= 0)
		return false;
	if (prove_between(p, l, sign, t->zero, addi_quiet(t, d, -1)))
		return true;
	return sign < 0 && sign_of(p, e) > 0 && prove_at(p, l, e);
}

/* Proves C*q + R >= 0, where q = floordiv(e, d) is the atom and d > 0: it follows from C*(d*q) +
 * R*d > -d, where e-d+1 <= d*q <= e. */
static bool by_quotient(Prover *p, Linear l, int sign, Sym atom)
{
	SymTab *t = p->t;
	Sym e = sym_node(t, atom)->args[0], d = sym_node(t, atom)->args[1];
	if (!sign || sign_of(p, addi_quiet(t, d, -1)) <= 0)
		return false;
	Sym slack = addi_quiet(t, d, -1);
	Sym bound = sign > 0 ? sub_quiet(t, e, slack) : e;
	l.rest = add_quiet(t, mul_quiet(t, l.rest, d), slack);
	return bound.i && l.rest.i && prove_at(p, l, bound);
}

static bool by_choice(Prover *p, Linear l, int sign, Sym atom)
{
	SymKind kind = (SymKind)sym_node(p->t, atom)->kind;
	Sym a = sym_node(p->t, atom)->args[0], b = sym_node(p->t, atom)->args[1];
	bool either = kind == SYM_MIN ? sign < 0 : sign > 0;
	if (either)
		return prove_at(p, l, a) || prove_at(p, l, b);
	return prove_at(p, l, a) && prove_at(p, l, b);
}

static bool eliminate(Prover *p, Sym e, Sym atom)
{
	Linear l;
	if (!isolate(p->t, e, atom, &l))
		return false;
	int sign = sign_of(p, l.coef);
	bool done = false;
	switch (sym_node(p->t, atom)->kind) {
	case SYM_VAR: done = by_extent(p, l, sign, atom); break;
	case SYM_MOD: done = by_divisor(p, l, sign, atom); break;
	case SYM_FLOORDIV: done = by_quotient(p, l, sign, atom); break;
	case SYM_MIN:
	case SYM_MAX: done = by_choice(p, l, sign, atom); break;
	default: break;
	}
	return done || by_interval(p, l, sign, atom);
}

/* Returns the latest atom of e before the given one; none if there is none. */
static Sym latest_atom(const SymTab *t, Sym e, uint32_t before)
{
	Sym found = {0};
	for (uint32_t k = 0; k < sym_nterms(t, e); k++) {
		Sym mono = sym_term(t, e, k).mono;
		for (uint32_t i = 0; i < mono_degree(t, mono); i++) {
			Sym atom = mono_factor(t, mono, i);
			if (atom.i < before && atom.i > found.i)
				found = atom;
		}
	}
	return found;
}

/* Whether e is a linear form in variables with constant bounds: then its interval is exact. */
static bool interval_is_exact(const SymTab *t, Sym e)
{
	for (uint32_t k = 0; k < sym_nterms(t, e); k++) {
		Sym mono = sym_term(t, e, k).mono;
		const SymNode *n = sym_node(t, mono);
		if (n->kind == SYM_CONST)
			continue;
		if (n->kind != SYM_VAR)
			return false;
		Sym extent = t->var.data[n->value].extent;
		if (extent.i && sym_node(t, extent)->kind != SYM_CONST)
			return false;
	}
	return true;
}

static bool search(Prover *p, Sym e)
{
	if (interval_is_exact(p->t, e))
		return false;
	Sym atom = latest_atom(p->t, e, UINT32_MAX);
	for (int tries = 0; atom.i && tries < 4; tries++) {
		if (eliminate(p, e, atom))
			return true;
		atom = latest_atom(p->t, e, atom.i);
	}
	return false;
}

static bool prove(Prover *p, Sym e)
{
	SymTab *t = p->t;
	if (!e.i)
		return false;
	const SymNode *n = sym_node(t, e);
	if (n->lo >= 0 || n->proved)
		return true;
	if (n->hi < 0 || n->failed == t->generation || p->budget <= 0)
		return false;
	p->budget--;
	bool ok = search(p, e);
	if (ok)
		sym_node(t, e)->proved = true;
	else if (p->budget > 0)
		sym_node(t, e)->failed = t->generation;
	return ok;
}

/* Returns an expression with the sign of e, without a divisor that all terms but the constant
 * share: 2x - 3 >= 0 where x - 2 >= 0. */
static Sym without_divisor(SymTab *t, Sym e)
{
	int64_t g = 0;
	for (uint32_t k = 0; e.i && k < sym_nterms(t, e); k++) {
		SymTerm term = sym_term(t, e, k);
		if (!sym_same(term.mono, t->one))
			g = sym_gcd(g, term.coef);
	}
	Sym smaller = g > 1 ? floordiv_quiet(t, e, sym_int(t, g)) : e;
	return smaller.i ? smaller : e;
}

bool sym_nonneg(SymTab *t, Sym e)
{
	Prover p = {t, BUDGET};
	bool ok = prove(&p, without_divisor(t, e));
	if (!ok && e.i)
		sym_node(t, e)->failed = t->generation;
	return ok;
}

Truth sym_le(const SymTab *table, Sym a, Sym b)
{
	SymTab *t = sym_mutable(table);
	sym_check(t, a);
	sym_check(t, b);
	Sym d = sub_quiet(t, b, a);
	if (!d.i)
		return MAYBE;
	if (sym_nonneg(t, d))
		return YES;
	return sym_nonneg(t, addi_quiet(t, scale_quiet(t, d, -1), -1)) ? NO : MAYBE;
}

Truth sym_lt(const SymTab *t, Sym a, Sym b)
{
	Truth le = sym_le(t, b, a);
	return le == YES ? NO : le == NO ? YES : MAYBE;
}

/* Whether the terms of the sum d share a divisor that its constant lacks: then d is never 0. */
static bool constant_excludes_zero(const SymTab *t, Sym d)
{
	int64_t g = 0, constant = 0;
	for (uint32_t k = 0; k < sym_nterms(t, d); k++) {
		SymTerm term = sym_term(t, d, k);
		if (sym_same(term.mono, t->one))
			constant = term.coef;
		else
			g = sym_gcd(g, term.coef);
	}
	return g > 1 && constant % g;
}

Truth sym_eq(const SymTab *table, Sym a, Sym b)
{
	SymTab *t = sym_mutable(table);
	sym_check(t, a);
	sym_check(t, b);
	if (sym_same(a, b))
		return YES;
	Sym d = sub_quiet(t, a, b), minus = sub_quiet(t, b, a);
	if (!d.i || !minus.i)
		return MAYBE;
	if (sym_same(d, t->zero))
		return YES;
	const SymNode *n = sym_node(t, d);
	if (n->lo > 0 || n->hi < 0 || constant_excludes_zero(t, d))
		return NO;
	if (sym_nonneg(t, d))
		return sym_nonneg(t, minus)                  ? YES
		       : sym_nonneg(t, addi_quiet(t, d, -1)) ? NO
							     : MAYBE;
	return sym_nonneg(t, addi_quiet(t, minus, -1)) ? NO : MAYBE;
}
