/* Canonical floordiv, mod, min and max.
 *
 * floordiv(e, d): multiples of d leave the quotient, common factors of e and d cancel, and where
 * e = g*a + r with d = g*b and 0 <= r < g provably, it is floordiv(a, b). mod(e, d) follows the
 * same steps, so that d*floordiv(e, d) + mod(e, d) find each other in a sum. A floordiv of a mod
 * becomes a mod of a floordiv; a floordiv of a floordiv has one divisor. */
#include "ir/sym/priv.h"

/* e = quot * d + rest, for every value of the variables. */
typedef struct {
	Sym quot, rest;
} Split;

static bool split_done(Split *s, Poly *quot, Poly *rest)
{
	s->quot = poly_done(quot);
	s->rest = poly_done(rest);
	return s->quot.i && s->rest.i;
}

/* Divides e by the term d, d.coef > 0, term by term. Only the constant is rounded down,
 * coefficients towards 0. Returns false after an overflow. */
static bool split_by_term(SymTab *t, Sym e, SymTerm d, Split *s)
{
	Poly quot, rest;
	poly_init(&quot, t);
	poly_init(&rest, t);
	uint32_t n = sym_nterms(t, e);
	for (uint32_t k = 0; k < n; k++) {
		SymTerm term = sym_term(t, e, k);
		Sym mono = mono_div(t, term.mono, d.mono);
		bool constant = sym_same(term.mono, t->one);
		int64_t q = constant ? sym_floor(term.coef, d.coef) : term.coef / d.coef;
		if (!mono.i)
			q = 0;
		else
			poly_add_term(&quot, mono, q);
		poly_add_term(&rest, term.mono, term.coef - q * d.coef);
	}
	return split_done(s, &quot, &rest);
}

/* Returns the term of the highest degree; of several the last one. */
static SymTerm leading_term(const SymTab *t, Sym d)
{
	uint32_t n = sym_nterms(t, d);
	SymTerm last = sym_term(t, d, n - 1);
	return n > 1 && sym_same(last.mono, t->one) ? sym_term(t, d, n - 2) : last;
}

/* Takes one multiple of the sum d out of s->rest. Returns false, and changes nothing, if no
 * multiple makes it shorter. */
static bool split_step(SymTab *t, Sym d, SymTerm lead, Split *s)
{
	uint32_t n = sym_nterms(t, s->rest);
	for (uint32_t k = n; k-- > 0;) {
		SymTerm term = sym_term(t, s->rest, k);
		Sym mono = mono_div(t, term.mono, lead.mono);
		int64_t q = term.coef / lead.coef;
		if (!mono.i || !q)
			continue;
		Poly rest, quot;
		poly_init(&rest, t);
		poly_init(&quot, t);
		poly_add(&rest, s->rest, (SymTerm){t->one, 1});
		poly_add(&rest, d, (SymTerm){mono, -q});
		poly_add(&quot, s->quot, (SymTerm){t->one, 1});
		poly_add_term(&quot, mono, q);
		Split next;
		if (!split_done(&next, &quot, &rest) || sym_nterms(t, next.rest) >= n)
			continue;
		*s = next;
		return true;
	}
	return false;
}

/* Divides e by d, whose leading coefficient is positive. Returns false after an overflow. */
static bool split(SymTab *t, Sym e, Sym d, Split *s)
{
	if (sym_nterms(t, d) == 1)
		return split_by_term(t, e, sym_term(t, d, 0), s);
	*s = (Split){t->zero, e};
	SymTerm lead = leading_term(t, d);
	while (split_step(t, d, lead, s))
		;
	return true;
}

/* Returns e / d if d divides e, else none. */
static Sym divide_exactly(SymTab *t, Sym e, Sym d)
{
	if (!e.i || !d.i || sym_same(d, t->zero) || leading_term(t, d).coef < 0)
		return (Sym){0};
	Split s;
	return split(t, e, d, &s) && sym_same(s.rest, t->zero) ? s.quot : (Sym){0};
}

static SymTerm term_gcd(SymTab *t, SymTerm a, SymTerm b)
{
	return (SymTerm){mono_gcd(t, a.mono, b.mono), sym_gcd(a.coef, b.coef)};
}

static bool term_is_one(const SymTab *t, SymTerm term)
{
	return term.coef == 1 && sym_same(term.mono, t->one);
}

/* Returns the greatest term that divides every term of a and b. */
static SymTerm common_factor(SymTab *t, Sym a, Sym b)
{
	SymTerm g = sym_term(t, a, 0);
	for (uint32_t k = 0; k < sym_nterms(t, a); k++)
		g = term_gcd(t, g, sym_term(t, a, k));
	for (uint32_t k = 0; k < sym_nterms(t, b) && !term_is_one(t, g); k++)
		g = term_gcd(t, g, sym_term(t, b, k));
	return g;
}

static Sym term_sym(SymTab *t, SymTerm term)
{
	Poly p;
	poly_init(&p, t);
	poly_add_term(&p, term.mono, term.coef);
	return poly_done(&p);
}

/* Returns true if floor(e / g), g > 0, is proved to be the same number for all values, and sets
 * *q to that number. */
static bool quotient_is_fixed(SymTab *t, Sym e, SymTerm g, int64_t *q)
{
	const SymNode *n = sym_node(t, e);
	*q = 0;
	if (sym_same(g.mono, t->one) && n->lo > -SYM_INF && n->hi < SYM_INF) {
		*q = sym_floor(n->lo, g.coef);
		if (*q == sym_floor(n->hi, g.coef))
			return true;
		*q = 0;
	}
	Sym room = sub_quiet(t, term_sym(t, g), addi_quiet(t, e, 1));
	return room.i && sym_nonneg(t, e) && sym_nonneg(t, room);
}

/* Divides e by g so that quot takes the whole multiples of g and 0 <= rest < g. Returns false if
 * that cannot be proved. */
static bool split_off_small(SymTab *t, Sym e, SymTerm g, Split *s)
{
	Poly quot, rest;
	poly_init(&quot, t);
	poly_init(&rest, t);
	uint32_t n = sym_nterms(t, e);
	for (uint32_t k = 0; k < n; k++) {
		SymTerm term = sym_term(t, e, k);
		Sym mono = mono_div(t, term.mono, g.mono);
		bool constant = sym_same(term.mono, t->one);
		int64_t q = constant ? sym_floor(term.coef, g.coef) : term.coef / g.coef;
		if (!mono.i || (!constant && term.coef % g.coef))
			q = 0;
		else
			poly_add_term(&quot, mono, q);
		poly_add_term(&rest, term.mono, term.coef - q * g.coef);
	}
	int64_t q;
	if (!split_done(s, &quot, &rest) || !quotient_is_fixed(t, s->rest, g, &q))
		return false;
	s->quot = addi_quiet(t, s->quot, q);
	s->rest = sub_quiet(t, s->rest, scale_quiet(t, term_sym(t, g), q));
	return s->quot.i && s->rest.i;
}

/* Divides e by d, of which e has no multiples, as split_off_small does. Returns false if 0 <=
 * rest < d cannot be proved. */
static bool rest_is_small(SymTab *t, Sym e, Sym d, Split *s)
{
	if (sym_nterms(t, d) == 1)
		return split_off_small(t, e, sym_term(t, d, 0), s);
	*s = (Split){t->zero, e};
	Sym room = sub_quiet(t, d, addi_quiet(t, e, 1));
	return room.i && sym_nonneg(t, e) && sym_nonneg(t, room);
}

/* Whether -d <= e < 0: the quotient is -1. */
static bool is_just_below(SymTab *t, Sym e, Sym d, Split *s)
{
	if (sym_node(t, e)->hi >= 0)
		return false;
	*s = (Split){sym_int(t, -1), add_quiet(t, e, d)};
	return s->rest.i && sym_nonneg(t, s->rest);
}

/* Finds a proper factor g of the monomial d by which e = g*quot + rest with 0 <= rest < g.
 * Returns false if there is none. */
static bool find_factor(SymTab *t, Sym e, Sym d, SymTerm *g, Split *s)
{
	if (sym_nterms(t, d) != 1)
		return false;
	SymTerm whole = sym_term(t, d, 0), seen[8];
	uint32_t nseen = 0, n = sym_nterms(t, e);
	for (uint32_t k = 0; k < n && nseen < 8; k++) {
		*g = term_gcd(t, sym_term(t, e, k), whole);
		bool known = term_is_one(t, *g);
		for (uint32_t j = 0; j < nseen; j++)
			known |= sym_same(seen[j].mono, g->mono) && seen[j].coef == g->coef;
		if (known)
			continue;
		seen[nseen++] = *g;
		if (split_off_small(t, e, *g, s))
			return true;
	}
	return false;
}

static bool is_positive(SymTab *t, Sym e)
{
	return sym_node(t, e)->lo > 0 || sym_nonneg(t, addi_quiet(t, e, -1));
}

/* Returns floordiv(e, d) by floordiv(floordiv(x, a) + k, d) = floordiv(x + k*a, a*d), or by
 * floordiv(mod(x, d*b), d) = mod(floordiv(x, d), b). None if e has neither form. */
static Sym floordiv_nested(SymTab *t, Sym e, Sym d)
{
	const SymNode *n = sym_node(t, e);
	int64_t shift = 0;
	if (n->kind == SYM_SUM && n->nargs == 2 && sym_is_const(t, n->args[1], &shift))
		n = sym_node(t, n->args[0]);
	if (n->kind != SYM_FLOORDIV && (n->kind != SYM_MOD || shift))
		return (Sym){0};
	Sym x = n->args[0], a = n->args[1];
	if (n->kind == SYM_FLOORDIV) {
		if (!is_positive(t, d))
			return (Sym){0};
		Sym moved = add_quiet(t, x, scale_quiet(t, a, shift));
		return floordiv_quiet(t, moved, mul_quiet(t, a, d));
	}
	Sym b = divide_exactly(t, a, d);
	if (!b.i || !is_positive(t, b))
		return (Sym){0};
	return mod_quiet(t, floordiv_quiet(t, x, d), b);
}

static int64_t mod_int(int64_t a, int64_t b)
{
	int64_t rest = b == -1 ? 0 : a % b;
	return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* Whether floordiv(e, d), or mod(e, d) if want_mod, needs no division of polynomials: of none,
 * by 0, by a divisor whose leading coefficient is negative, of 0, by 1, of two constants. Sets
 * *out to the result, which may be none. */
static bool division_is_trivial(SymTab *t, Sym e, Sym d, bool want_mod, Sym *out)
{
	*out = (Sym){0};
	if (!e.i || !d.i || sym_same(d, t->zero))
		return true;
	int64_t a, b;
	if (leading_term(t, d).coef < 0) {
		Sym minus_e = scale_quiet(t, e, -1), minus_d = scale_quiet(t, d, -1);
		*out = want_mod ? scale_quiet(t, mod_quiet(t, minus_e, minus_d), -1)
		                : floordiv_quiet(t, minus_e, minus_d);
		return true;
	}
	if (sym_same(e, t->zero) || sym_same(d, t->one)) {
		*out = want_mod ? t->zero : e;
		return true;
	}
	if (!sym_is_const(t, e, &a) || !sym_is_const(t, d, &b))
		return false;
	*out = sym_int(t, want_mod ? mod_int(a, b) : sym_floor(a, b));
	return true;
}

static Sym floordiv_reduced(SymTab *t, Sym e, Sym d);

/* Cancels the common factor of d and of what is no multiple of d in e. */
Sym floordiv_quiet(SymTab *t, Sym e, Sym d)
{
	Sym trivial;
	if (division_is_trivial(t, e, d, false, &trivial))
		return trivial;
	Split s;
	if (!split(t, e, d, &s))
		return (Sym){0};
	if (sym_same(s.rest, t->zero))
		return s.quot;
	SymTerm g = common_factor(t, s.rest, d);
	Sym factor = term_sym(t, g);
	if (!term_is_one(t, g)) {
		s.rest = divide_exactly(t, s.rest, factor);
		d = divide_exactly(t, d, factor);
	}
	return add_quiet(t, s.quot, floordiv_reduced(t, s.rest, d));
}

static Sym floordiv_reduced(SymTab *t, Sym e, Sym d)
{
	Sym trivial;
	if (division_is_trivial(t, e, d, false, &trivial))
		return trivial;
	Split s;
	if (rest_is_small(t, e, d, &s) || is_just_below(t, e, d, &s))
		return s.quot;
	Sym nested = floordiv_nested(t, e, d);
	if (nested.i)
		return nested;
	SymTerm g;
	if (find_factor(t, e, d, &g, &s))
		return floordiv_quiet(t, s.quot, divide_exactly(t, d, term_sym(t, g)));
	return sym_make(t, SYM_FLOORDIV, (Sym[]){e, d}, 2);
}

/* Returns e with c*m*x in place of the terms c*m*mod(x, y) where d divides c*m*y. */
static Sym drop_inner_mods(SymTab *t, Sym e, Sym d)
{
	for (uint32_t k = 0; e.i && k < sym_nterms(t, e); k++) {
		SymTerm term = sym_term(t, e, k);
		for (uint32_t i = 0; i < mono_degree(t, term.mono); i++) {
			Sym f = mono_factor(t, term.mono, i);
			if (sym_node(t, f)->kind != SYM_MOD)
				continue;
			Sym x = sym_node(t, f)->args[0], y = sym_node(t, f)->args[1];
			SymTerm rest = {mono_div(t, term.mono, f), term.coef};
			Poly p;
			poly_init(&p, t);
			poly_add(&p, y, rest);
			if (!divide_exactly(t, poly_done(&p), d).i)
				continue;
			poly_init(&p, t);
			poly_add(&p, e, (SymTerm){t->one, 1});
			poly_add_term(&p, term.mono, -term.coef);
			poly_add(&p, x, rest);
			return drop_inner_mods(t, poly_done(&p), d);
		}
	}
	return e;
}

static Sym mod_reduced(SymTab *t, Sym e, Sym d);

Sym mod_quiet(SymTab *t, Sym e, Sym d)
{
	Sym trivial;
	if (division_is_trivial(t, e, d, true, &trivial))
		return trivial;
	Split s;
	e = drop_inner_mods(t, e, d);
	if (!e.i || !split(t, e, d, &s))
		return (Sym){0};
	if (sym_same(s.rest, t->zero))
		return t->zero;
	SymTerm g = common_factor(t, s.rest, d);
	if (term_is_one(t, g))
		return mod_reduced(t, s.rest, d);
	Sym factor = term_sym(t, g);
	s.rest = divide_exactly(t, s.rest, factor);
	d = divide_exactly(t, d, factor);
	return mul_quiet(t, factor, mod_reduced(t, s.rest, d));
}

static Sym mod_reduced(SymTab *t, Sym e, Sym d)
{
	Sym trivial;
	if (division_is_trivial(t, e, d, true, &trivial))
		return trivial;
	Split s;
	if (rest_is_small(t, e, d, &s) || is_just_below(t, e, d, &s))
		return s.rest;
	SymTerm g;
	if (find_factor(t, e, d, &g, &s)) {
		Sym factor = term_sym(t, g);
		Sym inner = mod_quiet(t, s.quot, divide_exactly(t, d, factor));
		return add_quiet(t, mul_quiet(t, factor, inner), s.rest);
	}
	uint32_t before = t->node.n;
	Sym made = sym_make(t, SYM_MOD, (Sym[]){e, d}, 2);
	if (made.i > before) {
		Sym whole = mul_quiet(t, d, floordiv_quiet(t, e, d));
		sym_node(t, made)->whole = whole;
	}
	return made;
}

Sym sym_floordiv(SymTab *t, Sym a, Sym b)
{
	sym_check(t, a);
	sym_check(t, b);
	Sym e = floordiv_quiet(t, a, b);
	return e.i ? e : sym_give_up(t, "floordiv", a, b);
}

Sym sym_mod(SymTab *t, Sym a, Sym b)
{
	sym_check(t, a);
	sym_check(t, b);
	Sym e = mod_quiet(t, a, b);
	return e.i ? e : sym_give_up(t, "mod", a, b);
}

Sym sym_ceildiv(SymTab *t, Sym a, Sym b)
{
	sym_check(t, a);
	sym_check(t, b);
	Sym e;
	if (is_positive(t, b))
		e = addi_quiet(t, floordiv_quiet(t, addi_quiet(t, a, -1), b), 1);
	else
		e = scale_quiet(t, floordiv_quiet(t, scale_quiet(t, a, -1), b), -1);
	return e.i ? e : sym_give_up(t, "ceildiv", a, b);
}

Sym sym_divi(SymTab *t, Sym a, int64_t b)
{
	return sym_floordiv(t, a, sym_int(t, b));
}

Sym sym_modi(SymTab *t, Sym a, int64_t b)
{
	return sym_mod(t, a, sym_int(t, b));
}

enum { MAX_CHOICES = 16 };

/* The operands of nested mins (or maxes), none of which another one makes superfluous. */
typedef struct {
	SymKind kind;
	Sym of[MAX_CHOICES];
	uint32_t n;
} Choices;

/* Whether a makes b superfluous as an operand of a minimum or maximum (kind). */
static bool wins(SymTab *t, SymKind kind, Sym a, Sym b)
{
	Sym margin = kind == SYM_MIN ? sub_quiet(t, b, a) : sub_quiet(t, a, b);
	return margin.i && sym_nonneg(t, margin);
}

/* Adds e, or the operands of e, to the choices, without those that others make superfluous.
 * Returns false if there are too many. */
static bool choices_add(SymTab *t, Choices *c, Sym e)
{
	const SymNode *n = sym_node(t, e);
	if (n->kind == c->kind) {
		Sym first = n->args[0], second = n->args[1];
		return choices_add(t, c, first) && choices_add(t, c, second);
	}
	uint32_t kept = 0;
	for (uint32_t k = 0; k < c->n; k++)
		if (wins(t, c->kind, c->of[k], e))
			return true;
	for (uint32_t k = 0; k < c->n; k++)
		if (!wins(t, c->kind, e, c->of[k]))
			c->of[kept++] = c->of[k];
	c->n = kept;
	if (c->n == MAX_CHOICES)
		return false;
	uint32_t at = c->n++;
	for (; at && sym_compare(t, e, c->of[at - 1]) < 0; at--)
		c->of[at] = c->of[at - 1];
	c->of[at] = e;
	return true;
}

/* Returns the minimum or maximum of a and b (kind). Positive factors common to all choices go
 * outside. */
static Sym choose(SymTab *t, SymKind kind, Sym a, Sym b)
{
	Choices c = {.kind = kind};
	if (!choices_add(t, &c, a) || !choices_add(t, &c, b))
		return sym_make(t, kind, sym_compare(t, a, b) < 0 ? (Sym[]){a, b} : (Sym[]){b, a},
				2);
	if (c.n == 1)
		return c.of[0];
	int64_t g = 0;
	for (uint32_t k = 0; k < c.n; k++)
		g = sym_gcd(g, sym_node(t, c.of[k])->div);
	Sym factor = sym_int(t, g);
	for (uint32_t k = 0; k < c.n && g > 1; k++)
		c.of[k] = divide_exactly(t, c.of[k], factor);
	Sym e = c.of[c.n - 1];
	for (uint32_t k = c.n - 1; k-- > 0;)
		e = sym_make(t, kind, (Sym[]){c.of[k], e}, 2);
	return scale_quiet(t, e, g);
}

Sym sym_min(SymTab *t, Sym a, Sym b)
{
	sym_check(t, a);
	sym_check(t, b);
	Sym e = choose(t, SYM_MIN, a, b);
	return e.i ? e : sym_give_up(t, "min", a, b);
}

Sym sym_max(SymTab *t, Sym a, Sym b)
{
	sym_check(t, a);
	sym_check(t, b);
	Sym e = choose(t, SYM_MAX, a, b);
	return e.i ? e : sym_give_up(t, "max", a, b);
}
