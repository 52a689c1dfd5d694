/* Arithmetic of sizes stays within 64 bits: what a graph computes from sizes, and the bytes of its
 * values, have bounds that the program asserts before it relies on them.
 *
 *   f32[B, S, 4096]     16384 * B * S <= INT64_MAX      as   B <= INT64_MAX / 16384 / max(S, 1)
 *   2*B*S - B + 5       2 * B * S + B + 5 <= INT64_MAX  term by term
 *
 * A sum has the absolute values of its terms, so that none of its partial sums leaves 64 bits
 * either; a factor counts as 1 where it is 0, so that a bound holds for part of its factors, too.
 * Divisors that may be 0 are asserted not to be, before anything is divided.
 * What another bound implies is left out: most models have one bound, that of the bytes of their
 * largest value. */
#include "codegen/program/program_priv.h"
#include "ir/op/op.h"

typedef struct {
	int64_t coef; /* > 0; INT64_MAX: that or more */
	uint32_t n;
	const Sym *factor; /* sorted; neither constants nor products */
} Product;

/* The sum of products and `rest` is at most INT64_MAX; or `real` lies within 64 bits; or `divisor`
 * is not 0. */
typedef struct {
	Sym e;       /* that it is of; none: of the bytes of type, or of the workspace */
	TypeId type;
	Sym real, divisor;
	const Product *term;
	uint32_t n;
	int64_t rest;
	bool asserted;
} Bound;

struct SizeBounds {
	Ir *ir;
	const SizeBounds *outer;
	Intern seen, divided; /* expressions */
	ARRAY(Bound) bound;
};

/* ---- products ---- */

static bool has_factors(const Product *p, const Product *of)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < p->n && k < of->n; i++)
		k += p->factor[i].i == of->factor[k].i;
	return k == of->n;
}

static int64_t magnitude_of(int64_t v)
{
	return v >= 0 ? v : v == INT64_MIN ? INT64_MAX : -v;
}

static int64_t plus(int64_t a, int64_t b)
{
	return __builtin_add_overflow(a, b, &a) ? INT64_MAX : a;
}

static int64_t times(int64_t a, int64_t b)
{
	return __builtin_mul_overflow(a, b, &a) ? INT64_MAX : a;
}

/* Multiplies two products that are both at least 1. The factors stay sorted. */
static Product multiply(const SizeBounds *s, const Product *a, const Product *b)
{
	Sym *factor = ARENA_ARRAY(s->ir->ctx->arena, Sym, a->n + b->n);
	uint32_t n = 0;
	for (uint32_t i = 0, k = 0; i < a->n || k < b->n;)
		factor[n++] = k == b->n || (i < a->n && a->factor[i].i < b->factor[k].i)
				      ? a->factor[i++]
				      : b->factor[k++];
	return (Product){times(a->coef, b->coef), n, factor};
}

/* Replaces *sum by a product that is not less than the sum of the two. Returns false unless one of
 * them has all factors of the other. */
static bool add_to(Product *sum, const Product *p)
{
	int64_t coef = plus(sum->coef, p->coef);
	if (has_factors(p, sum))
		*sum = *p;
	else if (!has_factors(sum, p))
		return false;
	sum->coef = coef;
	return true;
}

static Product constant(int64_t c)
{
	return (Product){.coef = magnitude_of(c)};
}

static Product factor(const SizeBounds *s, Sym e)
{
	return (Product){1, 1, arena_dup(s->ir->ctx->arena, &e, sizeof e)};
}

/* Whether e is the smaller of an expression and a constant, neither of them negative. Sets *of to
 * the expression. */
static bool is_clamped(const SymTab *t, Sym e, Sym *of)
{
	int64_t lo, hi;
	sym_range(t, e, &lo, &hi);
	if (sym_kind(t, e) != SYM_MIN || lo < 0)
		return false;
	bool first = sym_is_const(t, sym_arg(t, e, 0), NULL);
	*of = sym_arg(t, e, first);
	return first || sym_is_const(t, sym_arg(t, e, 1), NULL);
}

static bool cover(const SizeBounds *s, Sym e, Product *out);

static bool cover_parts(const SizeBounds *s, Sym e, Product *out)
{
	const SymTab *t = s->ir->syms;
	const SymKind kind = sym_kind(t, e);
	Product part;
	*out = constant(kind == SYM_PRODUCT ? 1 : 0);
	for (uint32_t k = 0; k < sym_nargs(t, e); k++) {
		TRY(cover(s, sym_arg(t, e, k), &part));
		if (kind == SYM_PRODUCT)
			*out = multiply(s, out, &part);
		else
			TRY(add_to(out, &part));
	}
	return out->coef < INT64_MAX;
}

/* Finds a product that is not less than e, nor than any value that is computed for e. Returns false
 * if none is known. */
static bool cover(const SizeBounds *s, Sym e, Product *out)
{
	const SymTab *t = s->ir->syms;
	int64_t c;
	Sym of;
	if (sym_is_const(t, e, &c))
		return *out = constant(c), true;
	if (sym_kind(t, e) == SYM_VAR)
		return *out = factor(s, e), true;
	if (is_clamped(t, e, &of))
		return cover(s, of, out);
	return sym_kind(t, e) <= SYM_MAX && cover_parts(s, e, out);
}

enum { LITTLE = 32 }; /* 64 bits have room for so much more of each extent of what fits memory */

/* Returns a product that is not less than an extent, nor much more. With `ranges` the greatest
 * value stands for an extent that has one, which may be much more. Values that are computed for the
 * extent may exceed the product. */
static Product extent(const SizeBounds *s, Sym e, bool ranges)
{
	const SymTab *t = s->ir->syms;
	SymKind kind = sym_kind(t, e);
	int64_t lo, hi;
	Product part, out;
	sym_range(t, e, &lo, &hi);
	if (hi < SYM_INF && (ranges || lo == hi))
		return constant(hi > 1 ? hi : 1);
	if (kind == SYM_PRODUCT) {
		out = constant(1);
		for (uint32_t k = 0; k < sym_nargs(t, e); k++) {
			part = sym_is_const(t, sym_arg(t, e, k), &lo)
				       ? constant(lo)
				       : extent(s, sym_arg(t, e, k), ranges);
			out = multiply(s, &out, &part);
		}
		return out;
	}
	bool divides = kind == SYM_FLOORDIV && sym_is_const(t, sym_arg(t, e, 1), &lo) && lo > 0 &&
		       lo <= LITTLE;
	if ((kind == SYM_SUM || kind == SYM_MAX || divides) && cover(s, e, &out))
		return out;
	return factor(s, e);
}

/* ---- which are implied ---- */

/* Whether the sum of all terms of b is at most `term`. */
static bool is_within(const Product *term, const Bound *b)
{
	int64_t coef = b->rest;
	for (uint32_t k = 0; k < b->n; k++) {
		coef = plus(coef, b->term[k].coef);
		if (!has_factors(term, &b->term[k]))
			return false;
	}
	return coef <= term->coef && coef < INT64_MAX;
}

static bool has_term(const Bound *b, const Product *term)
{
	for (uint32_t k = 0; k < b->n; k++)
		if (b->term[k].n == term->n && has_factors(&b->term[k], term) &&
		    b->term[k].coef >= term->coef)
			return true;
	return false;
}

static bool implies(const Bound *b, const Bound *weaker)
{
	bool found = b->rest >= weaker->rest;
	if (b->real.i || weaker->real.i || b->divisor.i || weaker->divisor.i)
		return false;
	for (uint32_t k = 0; k < b->n; k++)
		if (is_within(&b->term[k], weaker))
			return true;
	for (uint32_t k = 0; k < weaker->n && found; k++)
		found = has_term(b, &weaker->term[k]); /* no two terms of a sum have the same
		                                          factors */
	return found;
}

static bool is_implied(const SizeBounds *s, const Bound *b)
{
	for (; s; s = s->outer)
		for (uint32_t k = 0; k < s->bound.n; k++)
			if (implies(&s->bound.data[k], b))
				return true;
	return false;
}

/* Returns the largest value of a product that the ranges of its factors allow; INT64_MAX stands for
 * that or more. */
static int64_t most_of(const SymTab *t, const Product *p)
{
	int64_t most = p->coef, lo, hi;
	for (uint32_t k = 0; k < p->n; k++) {
		sym_range(t, p->factor[k], &lo, &hi);
		hi = lo < -hi ? -lo : hi > 1 ? hi : 1;
		if (hi >= SYM_INF || __builtin_mul_overflow(most, hi, &most))
			return INT64_MAX;
	}
	return most;
}

static bool always_holds(const SymTab *t, const Bound *b)
{
	int64_t sum = b->rest;
	for (uint32_t k = 0; k < b->n; k++)
		if (__builtin_add_overflow(sum, most_of(t, &b->term[k]), &sum))
			return false;
	return !b->real.i && sum < INT64_MAX;
}

static bool is_of_variables(const SymTab *t, const Bound *b)
{
	for (uint32_t k = 0; k < b->n; k++)
		for (uint32_t i = 0; i < b->term[k].n; i++)
			if (sym_kind(t, b->term[k].factor[i]) != SYM_VAR)
				return false;
	return !b->real.i;
}

/* Adds a bound, unless it always holds or another implies it. A bound of variables takes the place
 * of the bounds that it implies. Any other goes to the end, behind the bounds of what its factors
 * are made of. */
static void put(SizeBounds *s, const Bound *b)
{
	if (always_holds(s->ir->syms, b) || is_implied(s, b))
		return;
	uint32_t n = 0, first = s->bound.n;
	for (uint32_t k = 0; k < s->bound.n && is_of_variables(s->ir->syms, b); k++)
		if (!implies(b, &s->bound.data[k]))
			s->bound.data[n++] = s->bound.data[k];
		else if (first == s->bound.n)
			s->bound.data[first = n++] = *b;
	if (first < s->bound.n)
		s->bound.n = n;
	else
		array_push(s->ir->ctx->arena, &s->bound, *b);
}

/* ---- collecting ---- */

static Product product_of(const SizeBounds *s, Sym e)
{
	const SymTab *t = s->ir->syms;
	Product p = constant(1), part;
	int64_t c;
	if (sym_kind(t, e) != SYM_PRODUCT)
		return factor(s, e);
	for (uint32_t k = 0; k < sym_nargs(t, e); k++) {
		part = sym_is_const(t, sym_arg(t, e, k), &c) ? constant(c)
							     : factor(s, sym_arg(t, e, k));
		p = multiply(s, &p, &part);
	}
	return p;
}

static void add_factors(SizeBounds *s, const Product *p)
{
	for (uint32_t k = 0; k < p->n; k++)
		size_bounds_add(s, p->factor[k]);
}

static void add_sum(SizeBounds *s, Sym e)
{
	const SymTab *t = s->ir->syms;
	bool sum = sym_kind(t, e) == SYM_SUM;
	Bound b = {.e = e};
	Product *term = ARENA_ARRAY(s->ir->ctx->arena, Product, sum ? sym_nargs(t, e) : 1);
	for (uint32_t k = 0; k < (sum ? sym_nargs(t, e) : 1); k++) {
		Sym x = sum ? sym_arg(t, e, k) : e;
		if (sym_is_const(t, x, &b.rest))
			b.rest = magnitude_of(b.rest);
		else
			term[b.n++] = product_of(s, x);
	}
	b.term = term;
	for (uint32_t k = 0; k < b.n; k++)
		add_factors(s, &term[k]);
	put(s, &b);
}

void size_bounds_add(SizeBounds *s, Sym e)
{
	const SymTab *t = s->ir->syms;
	SymKind kind = sym_kind(t, e);
	bool fresh;
	Product all;
	intern(&s->seen, &e, sizeof e, &fresh);
	if (!fresh || kind == SYM_CONST || kind == SYM_VAR || kind == SYM_REAL_CONST)
		return;
	if (cover(s, e, &all) && is_implied(s, &(Bound){.term = &all, .n = 1}))
		return;
	if (kind == SYM_SUM || kind == SYM_PRODUCT) {
		add_sum(s, e);
		return;
	}
	for (uint32_t k = 0; k < sym_nargs(t, e); k++)
		size_bounds_add(s, sym_arg(t, e, k));
	if (kind == SYM_FLOOR || kind == SYM_CEIL || kind == SYM_TRUNC || kind == SYM_RINT)
		put(s, &(Bound){.e = e, .real = sym_arg(t, e, 0)});
}

static bool has_divisor(const SizeBounds *s, Sym divisor)
{
	for (; s; s = s->outer)
		for (uint32_t k = 0; k < s->bound.n; k++)
			if (s->bound.data[k].divisor.i == divisor.i)
				return true;
	return false;
}

/* Adds a bound for each divisor in e that may be 0, inner divisions first. */
static void add_divisors(SizeBounds *s, Sym e)
{
	const SymTab *t = s->ir->syms;
	const SymKind kind = sym_kind(t, e);
	int64_t lo, hi;
	bool fresh;
	intern(&s->divided, &e, sizeof e, &fresh);
	for (uint32_t k = 0; fresh && k < sym_nargs(t, e); k++)
		add_divisors(s, sym_arg(t, e, k));
	if (!fresh || (kind != SYM_FLOORDIV && kind != SYM_MOD))
		return;
	Sym divisor = sym_arg(t, e, 1);
	sym_range(t, divisor, &lo, &hi);
	if (lo <= 0 && hi >= 0 && !has_divisor(s, divisor))
		array_push(s->ir->ctx->arena, &s->bound, (Bound){.e = e, .divisor = divisor});
}

static void add_type_divisors(SizeBounds *s, TypeId id)
{
	const Type *t = ir_type_of(s->ir, id);
	for (uint32_t k = 0; k < t->n; k++)
		if (t->dtype == DT_none)
			add_type_divisors(s, t->elem[k]);
		else
			add_divisors(s, t->dim[k]);
}

static Product bytes_of(const SizeBounds *s, const Type *t, bool ranges)
{
	Product p = constant(dtype_size(t->dtype)), part;
	for (uint32_t k = 0; k < t->n; k++) {
		part = extent(s, t->dim[k], ranges);
		p = multiply(s, &p, &part);
	}
	return p;
}

enum { MUCH = 1 << 24 }; /* of greatest values beside extents that have none */

/* Adds the bound for the bytes of a type, or of each element of a tuple. plain: only where all
 * factors are variables; else only where some are not. */
static void add_bytes(SizeBounds *s, TypeId id, bool plain)
{
	const Type *t = ir_type_of(s->ir, id);
	for (uint32_t k = 0; k < t->n && t->dtype == DT_none; k++)
		add_bytes(s, t->elem[k], plain);
	if (t->dtype == DT_none)
		return;
	Product p = bytes_of(s, t, true);
	if (p.coef > (p.n ? MUCH : INT64_MAX - 1))
		p = bytes_of(s, t, false);
	Bound b = {.type = id, .term = arena_dup(s->ir->ctx->arena, &p, sizeof p), .n = 1};
	if (p.n && is_of_variables(s->ir->syms, &b) == plain)
		put(s, &b);
}

static void add_extents(SizeBounds *s, TypeId id)
{
	const Type *t = ir_type_of(s->ir, id);
	for (uint32_t k = 0; k < t->n; k++)
		if (t->dtype == DT_none)
			add_extents(s, t->elem[k]);
		else
			size_bounds_add(s, t->dim[k]);
}

static void add_term(Bound *b, Product *term, const Product *p)
{
	uint32_t k = 0;
	while (k < b->n && (term[k].n != p->n || !has_factors(&term[k], p)))
		k++;
	if (!p->n)
		b->rest = plus(b->rest, p->coef);
	else if (k < b->n)
		term[k].coef = plus(term[k].coef, p->coef);
	else
		term[b->n++] = *p;
}

void size_bounds_add_bytes(SizeBounds *s, Sym e)
{
	const SymTab *t = s->ir->syms;
	const uint32_t n = sym_kind(t, e) == SYM_SUM ? sym_nargs(t, e) : 1;
	Bound b = {.term = NULL};
	Product *term = ARENA_ARRAY(s->ir->ctx->arena, Product, n), p;
	b.term = term;
	for (uint32_t k = 0; k < n; k++) {
		if (!cover(s, sym_kind(t, e) == SYM_SUM ? sym_arg(t, e, k) : e, &p)) {
			size_bounds_add(s, e);
			return;
		}
		add_term(&b, term, &p);
	}
	put(s, &b);
}

static void add_attrs(SizeBounds *s, Op op, AttrId id, void (*add)(SizeBounds *, Sym))
{
	for (uint32_t k = 0; k < op_schema(op)->narg; k++) {
		const Attr *a = ir_attr(s->ir, id, k);
		if (a->kind == ATTR_int)
			add(s, a->s);
		for (uint32_t j = 0; a->kind == ATTR_ints && j < a->n; j++)
			add(s, a->ints[j]);
	}
}

SizeBounds *size_bounds_new(Ir *ir, const SizeBounds *outer)
{
	SizeBounds *s = ARENA_NEW(ir->ctx->arena, SizeBounds);
	*s = (SizeBounds){.ir = ir, .outer = outer};
	intern_init(&s->seen, ir->ctx->arena);
	intern_init(&s->divided, ir->ctx->arena);
	return s;
}

/* Adds the divisors first. Then come the bytes of all types whose extents are variables, since
 * these bounds imply most others; then all expressions; then the other bytes. */
void size_bounds_add_graph(SizeBounds *s, const Graph *g)
{
	Arena *scratch = s->ir->ctx->scratch;
	const uint32_t ntype = s->ir->type.n, nattr = s->ir->attr.n;
	bool *type = ARENA_ARRAY(scratch, bool, ntype);
	Op *attr = ARENA_ARRAY(scratch, Op, nattr); /* of a node that has them */
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		const NodeData *d = node_data(g, n);
		type[d->type.i] = d->type.i;
		attr[d->attr.i] = d->op;
	}
	for (uint32_t k = 1; k < ntype; k++)
		if (type[k])
			add_type_divisors(s, (TypeId){k});
	for (uint32_t k = 1; k < nattr; k++)
		if (attr[k])
			add_attrs(s, attr[k], (AttrId){k}, add_divisors);
	for (uint32_t k = 0; k < g->guard.n; k++) {
		add_divisors(s, g->guard.data[k].a);
		add_divisors(s, g->guard.data[k].b);
	}
	for (uint32_t k = 1; k < ntype; k++)
		if (type[k])
			add_bytes(s, (TypeId){k}, true);
	for (uint32_t k = 1; k < ntype; k++)
		if (type[k])
			add_extents(s, (TypeId){k});
	for (uint32_t k = 1; k < nattr; k++)
		if (attr[k])
			add_attrs(s, attr[k], (AttrId){k}, size_bounds_add);
	for (uint32_t k = 0; k < g->guard.n; k++) {
		size_bounds_add(s, g->guard.data[k].a);
		size_bounds_add(s, g->guard.data[k].b);
	}
	for (uint32_t k = 1; k < ntype; k++)
		if (type[k])
			add_bytes(s, (TypeId){k}, false);
}

/* ---- asserting ---- */

/* Returns the absolute value of e, but at least 1: the factor of a product. */
static Lx magnitude(SymLower *s, Sym e)
{
	LoopFn *f = s->f;
	Lx x = sym_lower(s, e);
	int64_t lo, hi;
	sym_range(s->syms, e, &lo, &hi);
	if (lo < 0) {
		x = lx_max(f, x, lx_int(f, -INT64_MAX));
		x = lx_max(f, x, lx_sub(f, lx_int(f, 0), x));
	}
	return lo < 1 ? lx_max(f, x, lx_int(f, 1)) : x;
}

/* Returns whether a * b * .. <= *room, as a <= *room / b / .., which leaves 64 bits nowhere. Takes
 * the product off *room. */
static Lx product_fits(SymLower *s, const Product *p, Lx *room)
{
	LoopFn *f = s->f;
	Lx coef = lx_int(f, p->coef), most = lx_div(f, *room, coef),
	   first = magnitude(s, p->factor[0]);
	for (uint32_t k = 1; k < p->n; k++)
		most = lx_div(f, most, magnitude(s, p->factor[k]));
	Lx value = lx_mul(f, lx_min(f, first, most), coef);
	for (uint32_t k = 1; k < p->n; k++)
		value = lx_mul(f, value, magnitude(s, p->factor[k]));
	*room = lx_sub(f, *room, value);
	return lx_cmp(f, SC_le, first, most);
}

static Lx real_fits(SymLower *s, Sym real)
{
	LType f64 = {DT_f64, 1};
	LoopFn *f = s->f;
	Lx x = sym_lower(s, real);
	return lx_and(f, lx_cmp(f, SC_gt, x, lx_float(f, f64, -0x1p63)),
		      lx_cmp(f, SC_lt, x, lx_float(f, f64, 0x1p63)));
}

static Lx fits(SymLower *s, const Bound *b)
{
	LoopFn *f = s->f;
	if (b->divisor.i)
		return lx_cmp(f, SC_ne, sym_lower(s, b->divisor), lx_int(f, 0));
	if (b->real.i)
		return real_fits(s, b->real);
	Lx room = lx_int(f, INT64_MAX - b->rest), ok = product_fits(s, &b->term[0], &room);
	for (uint32_t k = 1; k < b->n; k++)
		ok = lx_and(f, ok, product_fits(s, &b->term[k], &room));
	return ok;
}

static bool is_known(SymLower *s, const Bound *b)
{
	bool known = (!b->real.i || sym_lower_can(s, b->real)) &&
		     (!b->divisor.i || sym_lower_can(s, b->divisor));
	for (uint32_t k = 0; k < b->n; k++)
		for (uint32_t i = 0; i < b->term[k].n && known; i++)
			known = sym_lower_can(s, b->term[k].factor[i]);
	return known;
}

static bool reads(const SymTab *t, const Bound *b, Sym var)
{
	bool found = (b->real.i && sym_uses(t, b->real, var)) ||
		     (b->divisor.i && sym_uses(t, b->divisor, var));
	for (uint32_t k = 0; k < b->n; k++)
		for (uint32_t i = 0; i < b->term[k].n && !found; i++)
			found = sym_uses(t, b->term[k].factor[i], var);
	return found;
}

static void assert_bound(SymLower *s, Program *p, const Graph *g, const Bound *b)
{
	const SymTab *syms = graph_syms(g);
	Arena *arena = p->ir->ctx->arena;
	Lx *arg = ARENA_ARRAY(arena, Lx, sym_nvars(syms));
	bool *used = ARENA_ARRAY(arena, bool, sym_nvars(syms));
	Text text;
	text_init(&text, arena);
	if (b->divisor.i)
		text_printf(&text, "the size %s divides by 0", sym_str(s->syms, b->e));
	else if (b->e.i)
		text_printf(&text, "the size %s leaves 64 bits", sym_str(s->syms, b->e));
	else
		text_printf(&text, "%s is too large to address",
			    b->type.i ? type_str(p->ir, b->type) : "the workspace");
	for (uint32_t k = 0; k < sym_nvars(syms); k++)
		used[k] = reads(syms, b, sym_var_at(syms, k));
	uint32_t n = program_say_symbols(s, g, used, &text, arg, 0);
	ls_assert(s->f, fits(s, b), program_message(p, text.data), arg, n);
}

static bool assert_next(SizeBounds *s, SymLower *at, Program *p, const Graph *g, Sym var,
			bool divisors)
{
	for (uint32_t k = 0; k < s->bound.n; k++) {
		Bound *b = &s->bound.data[k];
		if (b->asserted || (divisors && !b->divisor.i) ||
		    (var.i && !reads(s->ir->syms, b, var)) || !is_known(at, b))
			continue;
		b->asserted = true;
		assert_bound(at, p, g, b);
		return true;
	}
	return false;
}

bool size_bounds_assert(SizeBounds *s, SymLower *at, Program *p, const Graph *g, Sym var)
{
	return assert_next(s, at, p, g, var, false);
}

bool size_divisors_assert(SizeBounds *s, SymLower *at, Program *p, const Graph *g, Sym var)
{
	return assert_next(s, at, p, g, var, true);
}
