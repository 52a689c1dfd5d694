/* Bounds of expressions by sizes that are known before anything runs: what memory is planned
 * with. */
#include "ir/sym/priv.h"

static Sym bound(SymTab *, Sym e, bool upper);

/* Whether e is known before anything runs: e contains neither unbacked sizes nor axes. */
static bool is_planned(const SymTab *t, Sym e)
{
	return !sym_uses_kind(t, e, SYMVAR_UNBACKED) && !sym_uses_kind(t, e, SYMVAR_AXIS);
}

static Sym bound_number(SymTab *t, Sym e, bool upper)
{
	int64_t end = upper ? sym_node(t, e)->hi : sym_node(t, e)->lo;
	return end >= SYM_INF || end <= -SYM_INF ? (Sym){0} : sym_int(t, end);
}

static Sym bound_axis(SymTab *t, Sym extent, bool upper)
{
	Sym end = upper ? bound(t, extent, true) : t->zero;
	end = upper && end.i ? addi_quiet(t, end, -1) : end;
	return end.i ? sym_max(t, end, t->zero) : end; /* a loop without rounds needs no less */
}

static Sym bound_var(SymTab *t, Sym e, bool upper)
{
	const SymVar *v = &t->var.data[sym_node(t, e)->value];
	if (v->kind == SYMVAR_AXIS && v->extent.i)
		return bound_axis(t, v->extent, upper);
	Sym number = bound_number(t, e, upper), most = v->most;
	if (!upper || !most.i)
		return number;
	return number.i ? sym_min(t, most, number) : most;
}

/* Returns a bound of a minimum or maximum: of its operands' bounds; where not `all` are needed,
 * one that is known will do. None if nothing is known. */
static Sym bound_choice(SymTab *t, Sym e, bool upper, bool all)
{
	Sym a = bound(t, sym_node(t, e)->args[0], upper),
	    b = bound(t, sym_node(t, e)->args[1], upper);
	if (!a.i || !b.i)
		return all ? (Sym){0} : a.i ? a : b;
	return sym_node(t, e)->kind == SYM_MIN ? sym_min(t, a, b) : sym_max(t, a, b);
}

static bool is_natural(const SymTab *t, Sym e)
{
	return sym_node(t, e)->lo >= 0 || sym_le(t, t->zero, e) == YES;
}

static Sym bound_mono(SymTab *t, Sym mono, bool upper)
{
	uint32_t n = mono_degree(t, mono);
	Sym all = t->one;
	if (n == 1)
		return bound(t, mono, upper);
	for (uint32_t k = 0; k < n; k++) {
		Sym factor = mono_factor(t, mono, k),
		    b = is_natural(t, factor) ? bound(t, factor, upper) : (Sym){0};
		if (!b.i)
			return b;
		all = mul_quiet(t, all, upper ? b : sym_max(t, b, t->zero));
		if (!all.i)
			return all;
	}
	return all;
}

static Sym bound_sum(SymTab *t, Sym e, bool upper)
{
	Sym sum = t->zero;
	for (uint32_t k = 0; k < sym_nterms(t, e) && sum.i; k++) {
		SymTerm term = sym_term(t, e, k);
		if (sym_same(term.mono, t->one)) {
			sum = addi_quiet(t, sum, term.coef);
			continue;
		}
		Sym b = bound_mono(t, term.mono, term.coef > 0 ? upper : !upper);
		sum = b.i ? add_quiet(t, sum, scale_quiet(t, b, term.coef)) : b;
	}
	return sum;
}

static Sym bound_quotient(SymTab *t, Sym e, bool upper)
{
	Sym a = sym_node(t, e)->args[0], d = sym_node(t, e)->args[1];
	if (sym_node(t, d)->lo < 1)
		return (Sym){0};
	bool positive = sym_node(t, a)->lo >= 0;
	Sym by = is_planned(t, d) ? d : positive ? bound(t, d, !upper) : (Sym){0};
	Sym b = bound(t, a, upper);
	return b.i && by.i && sym_node(t, by)->lo >= 1 ? sym_floordiv(t, b, by) : (Sym){0};
}

static Sym bound_rest(SymTab *t, Sym e, bool upper)
{
	Sym d = sym_node(t, e)->args[1];
	if (sym_node(t, d)->lo < 1)
		return (Sym){0};
	Sym b = upper ? bound(t, d, true) : t->zero;
	return upper && b.i ? addi_quiet(t, b, -1) : b;
}

static Sym find_bound(SymTab *t, Sym e, bool upper)
{
	Sym b = {0};
	switch ((SymKind)sym_node(t, e)->kind) {
	case SYM_VAR: return bound_var(t, e, upper);
	case SYM_SUM: case SYM_PRODUCT: b = bound_sum(t, e, upper); break;
	case SYM_FLOORDIV: b = bound_quotient(t, e, upper); break;
	case SYM_MOD: b = bound_rest(t, e, upper); break;
	case SYM_MIN: b = bound_choice(t, e, upper, !upper); break;
	case SYM_MAX: b = bound_choice(t, e, upper, upper); break;
	default: break;
	}
	return b.i ? b : bound_number(t, e, upper);
}

/* Returns the bound of e, which find_bound computes once for each part of an expression, however
 * often the part stands there. */
static Sym bound(SymTab *t, Sym e, bool upper)
{
	if (is_planned(t, e))
		return e;
	if (sym_node(t, e)->bounded[upper] != t->generation) {
		Sym b = find_bound(t, e, upper);
		sym_node(t, e)->bound[upper] = b;
		sym_node(t, e)->bounded[upper] = t->generation;
	}
	return sym_node(t, e)->bound[upper];
}

Sym sym_most(SymTab *t, Sym e)
{
	sym_check(t, e);
	return bound(t, e, true);
}

bool sym_most_is_near(const SymTab *t, Sym e)
{
	for (uint32_t k = 0; k < sym_nterms(t, e); k++) {
		Sym mono = sym_term(t, e, k).mono;
		uint32_t unknown = 0;
		for (uint32_t i = 0; i < mono_degree(t, mono); i++)
			unknown += sym_uses_kind(t, mono_factor(t, mono, i), SYMVAR_UNBACKED);
		if (unknown > 1)
			return false;
	}
	return true;
}

void sym_set_most(SymTab *t, Sym var, Sym most)
{
	sym_check(t, var);
	SymVar *v = &t->var.data[sym_node(t, var)->value];
	Sym known = sym_most(t, most);
	if (v->most.i || v->extent.i || v->kind != SYMVAR_UNBACKED || sym_uses(t, most, var) ||
	    !known.i)
		return;
	Sym extent = addi_quiet(t, most, 1);
	int64_t hint = sym_hint(t, known);
	v = &t->var.data[sym_node(t, var)->value];
	v->most = known;
	v->extent = extent;
	if (!v->hint)
		v->hint = hint;
	/* Where no count of that range fits, running it will fail: proofs must not. */
	if (sym_node(t, known)->hi >= v->lo)
		sym_bound(t, var, v->lo, sym_node(t, known)->hi);
	t->generation++;
}
