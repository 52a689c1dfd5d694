/* Polynomials over atoms: the canonical form of sums and products. */
#include <string.h>

#include "ir/sym/priv.h"

enum { MAX_TERMS = 4096 };

uint32_t mono_degree(const SymTab *t, Sym mono)
{
	const SymNode *n = sym_node(t, mono);
	return n->kind == SYM_CONST ? 0 : n->kind == SYM_PRODUCT ? n->nargs : 1;
}

Sym mono_factor(const SymTab *t, Sym mono, uint32_t k)
{
	const SymNode *n = sym_node(t, mono);
	return n->kind == SYM_PRODUCT ? n->args[k] : mono;
}

uint32_t sym_nterms(const SymTab *t, Sym e)
{
	const SymNode *n = sym_node(t, e);
	return n->kind == SYM_SUM ? n->nargs : !sym_same(e, t->zero);
}

SymTerm sym_term(const SymTab *t, Sym e, uint32_t k)
{
	const SymNode *n = sym_node(t, e);
	if (n->kind == SYM_SUM)
		n = sym_node(t, n->args[k]);
	bool scaled = n->kind == SYM_PRODUCT || n->kind == SYM_CONST;
	return (SymTerm){n->mono, scaled ? n->value : 1};
}

static int compare_atoms(const SymTab *t, Sym a, Sym b)
{
	if (sym_same(a, b))
		return 0;
	const SymNode *x = sym_node(t, a), *y = sym_node(t, b);
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->kind == SYM_VAR)
		return a.i < b.i ? -1 : 1;
	if (x->kind == SYM_REAL_CONST)
		return x->value < y->value ? -1 : 1;
	int c = 0;
	for (uint32_t k = 0; k < x->nargs && !c; k++)
		c = sym_compare(t, x->args[k], y->args[k]);
	return c;
}

/* Compares monomials by degree, then by factors: an order that multiplication preserves. The
 * constant 1 is last. */
static int compare_monos(const SymTab *t, Sym a, Sym b)
{
	if (sym_same(a, b))
		return 0;
	uint32_t m = mono_degree(t, a), n = mono_degree(t, b);
	if (m != n)
		return !m ? 1 : !n ? -1 : m < n ? -1 : 1;
	for (uint32_t k = 0; k < n; k++) {
		int c = compare_atoms(t, mono_factor(t, a, k), mono_factor(t, b, k));
		if (c)
			return c;
	}
	return 0;
}

int sym_compare(const SymTab *t, Sym a, Sym b)
{
	if (sym_same(a, b))
		return 0;
	uint32_t m = sym_nterms(t, a), n = sym_nterms(t, b);
	for (uint32_t k = 0; k < m && k < n; k++) {
		SymTerm x = sym_term(t, a, k), y = sym_term(t, b, k);
		int c = compare_monos(t, x.mono, y.mono);
		if (c)
			return c;
		if (x.coef != y.coef)
			return x.coef < y.coef ? -1 : 1;
	}
	return m < n ? -1 : m > n;
}

/* Returns the product of atoms that are in order already. */
static Sym mono_make(SymTab *t, const Sym *factor, uint32_t n)
{
	return !n ? t->one : n == 1 ? factor[0] : sym_make(t, SYM_PRODUCT, factor, n);
}

typedef struct {
	Sym *factor, local[24];
} Factors;

static Sym *factors_for(Factors *f, SymTab *t, uint32_t n)
{
	f->factor = n <= 24 ? f->local : ARENA_ARRAY(t->ctx->arena, Sym, n);
	return f->factor;
}

Sym mono_mul(SymTab *t, Sym a, Sym b)
{
	uint32_t m = mono_degree(t, a), n = mono_degree(t, b), i = 0, j = 0, k = 0;
	if (!m || !n)
		return m ? a : b;
	Factors f;
	Sym *out = factors_for(&f, t, m + n);
	while (i < m || j < n) {
		bool left = j == n || (i < m && compare_atoms(t, mono_factor(t, a, i),
		        mono_factor(t, b, j)) <= 0);
		out[k++] = left ? mono_factor(t, a, i++) : mono_factor(t, b, j++);
	}
	return mono_make(t, out, k);
}

Sym mono_div(SymTab *t, Sym a, Sym b)
{
	uint32_t m = mono_degree(t, a), n = mono_degree(t, b), j = 0, k = 0;
	if (!n)
		return a;
	if (n > m)
		return (Sym){0};
	Factors f;
	Sym *out = factors_for(&f, t, m);
	for (uint32_t i = 0; i < m; i++) {
		Sym factor = mono_factor(t, a, i);
		if (j < n && sym_same(factor, mono_factor(t, b, j)))
			j++;
		else
			out[k++] = factor;
	}
	return j == n ? mono_make(t, out, k) : (Sym){0};
}

Sym mono_gcd(SymTab *t, Sym a, Sym b)
{
	uint32_t m = mono_degree(t, a), n = mono_degree(t, b), i = 0, j = 0, k = 0;
	if (sym_same(a, b))
		return a;
	Factors f;
	Sym *out = factors_for(&f, t, m);
	while (i < m && j < n) {
		int c = compare_atoms(t, mono_factor(t, a, i), mono_factor(t, b, j));
		if (!c)
			out[k++] = mono_factor(t, a, i);
		i += c <= 0;
		j += c >= 0;
	}
	return mono_make(t, out, k);
}

void poly_init(Poly *p, SymTab *t)
{
	p->t = t;
	p->term = p->local;
	p->n = 0;
	p->cap = sizeof p->local / sizeof p->local[0];
	p->failed = false;
}

static void poly_insert(Poly *p, uint32_t at, SymTerm term)
{
	if (p->n == MAX_TERMS) {
		p->failed = true;
		return;
	}
	p->term = array_grow(p->t->ctx->arena, p->term, p->n, &p->cap, sizeof *p->term);
	memmove(p->term + at + 1, p->term + at, (p->n - at) * sizeof *p->term);
	p->term[at] = term;
	p->n++;
}

static void poly_remove(Poly *p, uint32_t at)
{
	p->n--;
	memmove(p->term + at, p->term + at + 1, (p->n - at) * sizeof *p->term);
}

/* Returns the place of the first term that is not before mono. */
static uint32_t poly_place(const Poly *p, Sym mono)
{
	uint32_t lo = 0, hi = p->n;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		if (compare_monos(p->t, p->term[mid].mono, mono) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void poly_add_term(Poly *p, Sym mono, int64_t coef)
{
	if (!coef || p->failed)
		return;
	uint32_t at = poly_place(p, mono);
	if (at == p->n || !sym_same(p->term[at].mono, mono)) {
		poly_insert(p, at, (SymTerm){mono, coef});
		return;
	}
	if (__builtin_add_overflow(p->term[at].coef, coef, &p->term[at].coef))
		p->failed = true;
	else if (!p->term[at].coef)
		poly_remove(p, at);
}

void poly_add(Poly *p, Sym e, SymTerm times)
{
	if (!e.i || !times.mono.i) {
		p->failed = true;
		return;
	}
	uint32_t n = sym_nterms(p->t, e);
	for (uint32_t k = 0; k < n && !p->failed; k++) {
		SymTerm term = sym_term(p->t, e, k);
		int64_t coef;
		if (__builtin_mul_overflow(term.coef, times.coef, &coef))
			p->failed = true;
		else
			poly_add_term(p, mono_mul(p->t, term.mono, times.mono), coef);
	}
}

/* Puts c * m * e in place of term k, which is c * m * mod(e, d) with the factor f = mod(e, d),
 * and of c * m * d * floordiv(e, d). Returns false, and changes nothing, if the second is not
 * there with exactly that coefficient. */
static bool recombine_factor(Poly *p, uint32_t k, Sym f)
{
	SymTab *t = p->t;
	SymTerm rest = {mono_div(t, p->term[k].mono, f), p->term[k].coef};
	Sym whole = sym_node(t, f)->whole;
	if (!whole.i || sym_same(whole, t->zero))
		return false;
	Poly expect;
	poly_init(&expect, t);
	poly_add(&expect, whole, rest);
	if (expect.failed)
		return false;
	for (uint32_t j = 0; j < expect.n; j++) {
		uint32_t at = poly_place(p, expect.term[j].mono);
		if (at == p->n || !sym_same(p->term[at].mono, expect.term[j].mono) ||
		        p->term[at].coef != expect.term[j].coef)
			return false;
	}
	for (uint32_t j = 0; j < expect.n; j++)
		poly_remove(p, poly_place(p, expect.term[j].mono));
	poly_remove(p, poly_place(p, mono_mul(t, rest.mono, f)));
	poly_add(p, sym_node(t, f)->args[0], rest);
	return true;
}

static bool recombine(Poly *p)
{
	for (uint32_t k = 0; k < p->n && !p->failed; k++) {
		Sym mono = p->term[k].mono;
		if (!sym_node(p->t, mono)->has_mod || p->n == 1)
			continue;
		for (uint32_t i = 0; i < mono_degree(p->t, mono); i++) {
			Sym f = mono_factor(p->t, mono, i);
			if (sym_node(p->t, f)->kind == SYM_MOD && recombine_factor(p, k, f))
				return true;
		}
	}
	return false;
}

static Sym term_make(SymTab *t, SymTerm term)
{
	if (term.coef == 1)
		return term.mono;
	if (sym_same(term.mono, t->one))
		return sym_int(t, term.coef);
	uint32_t n = mono_degree(t, term.mono);
	Factors f;
	Sym *out = factors_for(&f, t, n + 1);
	out[0] = sym_int(t, term.coef);
	for (uint32_t k = 0; k < n; k++)
		out[k + 1] = mono_factor(t, term.mono, k);
	return sym_make(t, SYM_PRODUCT, out, n + 1);
}

Sym poly_done(Poly *p)
{
	while (recombine(p))
		;
	if (p->failed)
		return (Sym){0};
	if (p->n <= 1)
		return p->n ? term_make(p->t, p->term[0]) : p->t->zero;
	Factors f;
	Sym *out = factors_for(&f, p->t, p->n);
	for (uint32_t k = 0; k < p->n; k++)
		out[k] = term_make(p->t, p->term[k]);
	return sym_make(p->t, SYM_SUM, out, p->n);
}

static Sym add_scaled(SymTab *t, Sym a, Sym b, int64_t scale)
{
	int64_t x, y;
	if (a.i && b.i && sym_is_const(t, a, &x) && sym_is_const(t, b, &y)) /* most are */
		return __builtin_mul_overflow(y, scale, &y) || __builtin_add_overflow(x, y, &x)
			       ? (Sym){0}
			       : sym_int(t, x);
	Poly p;
	poly_init(&p, t);
	poly_add(&p, a, (SymTerm){t->one, 1});
	poly_add(&p, b, (SymTerm){t->one, scale});
	return poly_done(&p);
}

Sym add_quiet(SymTab *t, Sym a, Sym b)
{
	return add_scaled(t, a, b, 1);
}

Sym sub_quiet(SymTab *t, Sym a, Sym b)
{
	return add_scaled(t, a, b, -1);
}

Sym addi_quiet(SymTab *t, Sym a, int64_t b)
{
	return b ? add_scaled(t, a, t->one, b) : a;
}

Sym scale_quiet(SymTab *t, Sym a, int64_t scale)
{
	return scale == 1 ? a : add_scaled(t, t->zero, a, scale);
}

Sym mul_quiet(SymTab *t, Sym a, Sym b)
{
	if (!a.i || !b.i)
		return (Sym){0};
	int64_t x, y;
	if (sym_is_const(t, a, &x) && sym_is_const(t, b, &y))
		return __builtin_mul_overflow(x, y, &x) ? (Sym){0} : sym_int(t, x);
	Poly p;
	poly_init(&p, t);
	uint32_t n = sym_nterms(t, b);
	for (uint32_t k = 0; k < n; k++)
		poly_add(&p, a, sym_term(t, b, k));
	return poly_done(&p);
}

static Sym or_give_up(SymTab *t, Sym e, const char *op, Sym a, Sym b)
{
	return e.i ? e : sym_give_up(t, op, a, b);
}

Sym sym_add(SymTab *t, Sym a, Sym b)
{
	sym_check(t, a);
	sym_check(t, b);
	return or_give_up(t, add_quiet(t, a, b), "add", a, b);
}

Sym sym_sub(SymTab *t, Sym a, Sym b)
{
	sym_check(t, a);
	sym_check(t, b);
	return or_give_up(t, sub_quiet(t, a, b), "sub", a, b);
}

Sym sym_mul(SymTab *t, Sym a, Sym b)
{
	sym_check(t, a);
	sym_check(t, b);
	return or_give_up(t, mul_quiet(t, a, b), "mul", a, b);
}

Sym sym_addi(SymTab *t, Sym a, int64_t b)
{
	return sym_add(t, a, sym_int(t, b));
}

Sym sym_muli(SymTab *t, Sym a, int64_t b)
{
	return sym_mul(t, a, sym_int(t, b));
}
