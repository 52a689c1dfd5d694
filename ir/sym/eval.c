/* Values, substitution, and what an expression reads. */
#include "ir/sym/priv.h"

/* Returns the number of a new walk, whose results are kept in the nodes beside it. */
static uint32_t next_visit(const SymTab *t)
{
	return ++sym_mutable(t)->visit;
}

typedef struct {
	const SymTab *t;
	uint32_t visit;
	const Sym *var;
	const int64_t *value;
	uint32_t n;
	bool hints; /* variables have the values seen while exporting */
} SymEval;

static bool eval(const SymEval *v, Sym e, int64_t *out);

static bool eval_sum(const SymEval *v, Sym e, int64_t *out)
{
	SymWide sum = 0;
	for (uint32_t k = 0; k < sym_nterms(v->t, e); k++) {
		SymTerm term = sym_term(v->t, e, k);
		int64_t mono;
		TRY(eval(v, term.mono, &mono));
		TRY(!__builtin_add_overflow(sum, (SymWide)term.coef * mono, &sum));
	}
	*out = (int64_t)sum;
	return *out == sum;
}

static bool eval_product(const SymEval *v, Sym e, int64_t *out)
{
	const SymNode *n = sym_node(v->t, e);
	*out = 1;
	bool zero = false;
	for (uint32_t k = 0; k < n->nargs; k++) {
		int64_t factor;
		TRY(eval(v, n->args[k], &factor));
		zero |= !factor;
		TRY(zero || !__builtin_mul_overflow(*out, factor, out));
	}
	*out = zero ? 0 : *out;
	return true;
}

static bool eval_var(const SymEval *v, Sym e, int64_t *out)
{
	if (v->hints) {
		const SymVar *var = &v->t->var.data[sym_node(v->t, e)->value];
		*out = var->hint ? var->hint : var->lo <= -SYM_INF ? 0 : var->lo;
		return true;
	}
	for (uint32_t k = 0; k < v->n; k++)
		if (sym_same(v->var[k], e)) {
			*out = v->value[k];
			return true;
		}
	return false;
}

static bool eval_division(const SymEval *v, const SymNode *n, int64_t *out)
{
	int64_t a, b;
	TRY(eval(v, n->args[0], &a));
	TRY(eval(v, n->args[1], &b));
	TRY(b);
	if (b == -1) {
		*out = 0;
		return n->kind == SYM_MOD || !__builtin_sub_overflow((int64_t)0, a, out);
	}
	int64_t rest = a % b;
	bool down = rest && (rest < 0) != (b < 0);
	*out = n->kind == SYM_MOD ? rest + (down ? b : 0) : a / b - down;
	return true;
}

static bool eval_choice(const SymEval *v, const SymNode *n, int64_t *out)
{
	int64_t a, b;
	TRY(eval(v, n->args[0], &a));
	TRY(eval(v, n->args[1], &b));
	*out = (a < b) == (n->kind == SYM_MIN) ? a : b;
	return true;
}

static bool eval_real(const SymEval *v, const SymNode *n, int64_t *out)
{
	int64_t arg[2];
	if (n->kind == SYM_REAL_CONST) {
		*out = n->value;
		return true;
	}
	for (uint32_t k = 0; k < n->nargs; k++)
		TRY(eval(v, n->args[k], &arg[k]));
	return sym_real_eval((SymKind)n->kind, arg, out);
}

static bool eval_node(const SymEval *v, Sym e, int64_t *out)
{
	const SymNode *n = sym_node(v->t, e);
	switch ((SymKind)n->kind) {
	case SYM_CONST: *out = n->value; return true;
	case SYM_VAR: return eval_var(v, e, out);
	case SYM_SUM: return eval_sum(v, e, out);
	case SYM_PRODUCT: return eval_product(v, e, out);
	case SYM_FLOORDIV:
	case SYM_MOD: return eval_division(v, n, out);
	case SYM_MIN:
	case SYM_MAX: return eval_choice(v, n, out);
	default: return eval_real(v, n, out);
	}
}

static bool eval(const SymEval *v, Sym e, int64_t *out)
{
	SymNode *n = sym_node(v->t, e);
	if (n->visit == v->visit) {
		*out = n->memo;
		return true;
	}
	TRY(eval_node(v, e, out));
	n->visit = v->visit;
	n->memo = *out;
	return true;
}

bool sym_eval(const SymTab *t, Sym e, const Sym *var, const int64_t *value, uint32_t n,
        int64_t *out)
{
	sym_check(t, e);
	SymEval v = {t, next_visit(t), var, value, n, false};
	return eval(&v, e, out);
}

int64_t sym_hint(const SymTab *t, Sym e)
{
	sym_check(t, e);
	SymEval v = {.t = t, .visit = next_visit(t), .hints = true};
	int64_t out;
	return eval(&v, e, &out) ? out : 0;
}

typedef struct {
	SymTab *t;
	uint32_t visit;
	uint64_t vars; /* that change; all bits to rebuild everything */
	const Sym *var, *by;
	uint32_t n;
} Subst;

static Sym subst(const Subst *s, Sym e);

static Sym subst_sum(const Subst *s, Sym e)
{
	Poly p;
	poly_init(&p, s->t);
	uint32_t n = sym_node(s->t, e)->nargs;
	for (uint32_t k = 0; k < n; k++)
		poly_add(&p, subst(s, sym_node(s->t, e)->args[k]), (SymTerm){s->t->one, 1});
	Sym out = poly_done(&p);
	return out.i ? out : sym_give_up(s->t, "substitute", e, e);
}

static Sym subst_product(const Subst *s, Sym e)
{
	Sym out = s->t->one;
	uint32_t n = sym_node(s->t, e)->nargs;
	for (uint32_t k = 0; k < n; k++)
		out = sym_mul(s->t, out, subst(s, sym_node(s->t, e)->args[k]));
	return out;
}

static Sym subst_operator(const Subst *s, Sym e)
{
	SymKind kind = (SymKind)sym_node(s->t, e)->kind;
	const Sym *args = sym_node(s->t, e)->args;
	bool two = sym_node(s->t, e)->nargs > 1;
	Sym a = subst(s, args[0]), b = two ? subst(s, args[1]) : (Sym){0};
	switch (kind) {
	case SYM_FLOORDIV: return sym_floordiv(s->t, a, b);
	case SYM_MOD: return sym_mod(s->t, a, b);
	case SYM_MIN: return sym_min(s->t, a, b);
	case SYM_MAX: return sym_max(s->t, a, b);
	default: return sym_real_op(s->t, kind, a, b);
	}
}

static Sym subst_var(const Subst *s, Sym e)
{
	for (uint32_t k = 0; k < s->n; k++)
		if (sym_same(s->var[k], e))
			return s->by[k];
	return e;
}

static Sym subst(const Subst *s, Sym e)
{
	const SymNode *n = sym_node(s->t, e);
	if (!(n->vars & s->vars))
		return e;
	if (n->visit == s->visit)
		return (Sym){(uint32_t)n->memo};
	Sym out;
	switch ((SymKind)n->kind) {
	case SYM_CONST:
	case SYM_REAL_CONST: return e;
	case SYM_VAR: out = subst_var(s, e); break;
	case SYM_SUM: out = subst_sum(s, e); break;
	case SYM_PRODUCT: out = subst_product(s, e); break;
	default: out = subst_operator(s, e); break;
	}
	SymNode *done = sym_node(s->t, e);
	done->visit = s->visit;
	done->memo = out.i;
	return out;
}

Sym sym_subst(SymTab *t, Sym e, const Sym *var, const Sym *by, uint32_t n)
{
	sym_check(t, e);
	Subst s = {t, next_visit(t), n ? 0 : UINT64_MAX, var, by, n};
	for (uint32_t k = 0; k < n; k++) {
		sym_check(t, by[k]);
		s.vars |= sym_node(t, var[k])->vars;
	}
	return subst(&s, e);
}

static bool uses(const SymTab *t, Sym e, Sym var, uint32_t visit)
{
	SymNode *n = sym_node(t, e);
	if (sym_same(e, var))
		return true;
	if (n->visit == visit || !(n->vars & sym_node(t, var)->vars))
		return false;
	n->visit = visit;
	for (uint32_t k = 0; k < n->nargs; k++)
		if (uses(t, n->args[k], var, visit))
			return true;
	return false;
}

bool sym_uses(const SymTab *t, Sym e, Sym var)
{
	sym_check(t, e);
	sym_check(t, var);
	return uses(t, e, var, next_visit(t));
}

static Sym divisor_of(const SymTab *t, Sym e, Sym var, uint32_t visit)
{
	SymNode *n = sym_node(t, e);
	if ((n->kind == SYM_FLOORDIV || n->kind == SYM_MOD) && sym_same(n->args[0], var))
		return n->args[1];
	if (n->visit == visit || !(n->vars & sym_node(t, var)->vars))
		return (Sym){0};
	n->visit = visit;
	for (uint32_t k = 0; k < n->nargs; k++) {
		Sym d = divisor_of(t, n->args[k], var, visit);
		if (d.i)
			return d;
	}
	return (Sym){0};
}

Sym sym_divisor_of(const SymTab *t, Sym e, Sym var)
{
	sym_check(t, e);
	sym_check(t, var);
	return divisor_of(t, e, var, next_visit(t));
}

bool sym_uses_kind(const SymTab *t, Sym e, SymVarKind kind)
{
	sym_check(t, e);
	return sym_node(t, e)->kinds >> kind & 1;
}

typedef struct {
	const SymTab *t;
	SymVarKind kind;
	const Sym *known;
	uint32_t n, visit;
} Others;

static bool uses_others(const Others *o, Sym e)
{
	SymNode *n = sym_node(o->t, e);
	if (n->visit == o->visit || !(n->kinds >> o->kind & 1))
		return false;
	n->visit = o->visit;
	for (uint32_t k = 0; k < n->nargs; k++)
		if (uses_others(o, n->args[k]))
			return true;
	if (n->kind != SYM_VAR)
		return false;
	for (uint32_t k = 0; k < o->n; k++)
		if (sym_same(o->known[k], e))
			return false;
	return true;
}

bool sym_uses_others(const SymTab *t, Sym e, SymVarKind kind, const Sym *known, uint32_t n)
{
	sym_check(t, e);
	return uses_others(&(Others){t, kind, known, n, next_visit(t)}, e);
}

bool sym_linear(SymTab *t, Sym e, Sym var, Sym *coef, Sym *rest)
{
	sym_check(t, e);
	sym_check(t, var);
	Poly c, r;
	poly_init(&c, t);
	poly_init(&r, t);
	uint32_t n = sym_nterms(t, e);
	for (uint32_t k = 0; k < n; k++) {
		SymTerm term = sym_term(t, e, k);
		Sym others = mono_div(t, term.mono, var);
		TRY(!sym_uses(t, others.i ? others : term.mono, var));
		if (others.i)
			poly_add_term(&c, others, term.coef);
		else if (rest)
			poly_add_term(&r, term.mono, term.coef);
	}
	*coef = poly_done(&c);
	if (rest)
		*rest = poly_done(&r);
	return coef->i && (!rest || rest->i);
}
