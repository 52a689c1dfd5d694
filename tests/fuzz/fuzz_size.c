/* Symbolic integers of random graphs: extents, starts, pads. What primitives demand of them (a
 * slice ends behind its start) must hold at all sizes, not only at those that are run: a compiler
 * may rely on it. So what is drawn at random is tried at the values of its symbols and taken when
 * it fits everywhere. */
#include "fuzz.h"

const FuzzSymbol fuzz_symbol[FUZZ_SYMBOLS] = {{"B", 1, 40}, {"N", 3, 40}, {"Z", 0, 24}};

/* ---- ranges ---- */

typedef struct {
	Fuzz *f;
	Sym s, var[FUZZ_SYMBOLS];
	uint32_t id[FUZZ_SYMBOLS], nvar;
	int64_t value[FUZZ_SYMBOLS], lo, hi;
	bool undefined; /* somewhere */
} Scan;

/* All values; of three symbols those near borders: of the symbols, of vectors. */
static int64_t next_value(const Scan *c, int64_t v)
{
	return c->nvar < 3 || v < 5 ? v + 1 : v % 8 == 1 ? v + 6 : v + 1;
}

static void scan_from(Scan *c, uint32_t k)
{
	if (k == FUZZ_SYMBOLS || k == c->nvar) {
		int64_t v;
		if (!sym_eval(c->f->ir->syms, c->s, c->var, c->value, c->nvar, &v)) {
			c->undefined = true;
			return;
		}
		c->lo = v < c->lo ? v : c->lo;
		c->hi = v > c->hi ? v : c->hi;
		return;
	}
	const FuzzSymbol *s = &fuzz_symbol[c->id[k]];
	for (c->value[k] = s->lo; c->value[k] <= s->hi; c->value[k] = next_value(c, c->value[k]))
		scan_from(c, k + 1);
}

/* Of s at all sizes; as wide as can be where s has no value. */
static const FuzzRange *range_of(Fuzz *f, Sym s)
{
	FuzzRange *r = &f->range[s.i % (sizeof f->range / sizeof *f->range)];
	if (r->s.i == s.i)
		return r;
	Scan c = {.f = f, .s = s, .lo = INT64_MAX, .hi = INT64_MIN};
	for (uint32_t k = 0; k < FUZZ_SYMBOLS; k++)
		if (sym_uses(f->ir->syms, s, f->size[k])) {
			c.id[c.nvar] = k;
			c.var[c.nvar++] = f->size[k];
		}
	scan_from(&c, 0);
	*r = c.undefined ? (FuzzRange){s, INT64_MIN, INT64_MAX} : (FuzzRange){s, c.lo, c.hi};
	return r;
}

int64_t fuzz_min(Fuzz *f, Sym s)
{
	return range_of(f, s)->lo;
}

int64_t fuzz_max(Fuzz *f, Sym s)
{
	return range_of(f, s)->hi;
}

static bool between(Fuzz *f, int64_t lo, Sym s, Sym hi)
{
	return fuzz_min(f, s) >= lo && fuzz_max(f, s) < INT32_MAX &&
	       fuzz_min(f, sym_sub(f->ir->syms, hi, s)) >= 0;
}

/* ---- choices ---- */

static Sym symbol(Fuzz *f)
{
	return f->size[fuzz_below(f, FUZZ_SYMBOLS)];
}

/* Some expression; of 0..hi often enough. */
static Sym expression(Fuzz *f, Sym hi)
{
	SymTab *t = f->ir->syms;
	Sym v = symbol(f), zero = sym_int(t, 0);
	int64_t k = 2 + fuzz_below(f, 3);
	switch (fuzz_below(f, 12)) {
	case 0: return v;
	case 1: return sym_divi(t, v, k);
	case 2: return sym_divi(t, sym_addi(t, v, 1), k);
	case 3: return sym_modi(t, v, k);
	case 4: return sym_min(t, v, hi);
	case 5: return sym_sub(t, hi, sym_divi(t, hi, k));
	case 6: return sym_max(t, sym_addi(t, hi, -k), zero);
	case 7: return sym_max(t, sym_sub(t, hi, v), zero);
	case 8: return sym_addi(t, sym_muli(t, v, 2), -k);
	case 9: return sym_sub(t, v, sym_min(t, v, symbol(f)));
	case 10: return sym_modi(t, hi, k);
	default: return sym_min(t, sym_int(t, k), hi);
	}
}

Sym fuzz_amount(Fuzz *f, int64_t lo, Sym hi)
{
	SymTab *t = f->ir->syms;
	bool constant = fuzz_chance(f, 40);
	for (uint32_t tries = 0; tries < 6; tries++) {
		Sym s = sym_int(t, lo + fuzz_below(f, 4));
		if (!constant && tries < 5)
			s = expression(f, hi);
		if (between(f, lo, s, hi))
			return s;
	}
	return sym_int(t, lo);
}

Sym fuzz_extent(Fuzz *f)
{
	static const int64_t common[] = {1, 1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 33};
	if (fuzz_chance(f, 25))
		return symbol(f);
	if (fuzz_chance(f, 20))
		return fuzz_amount(f, 1, sym_int(f->ir->syms, 45));
	return sym_int(f->ir->syms, common[fuzz_below(f, sizeof common / sizeof *common)]);
}
