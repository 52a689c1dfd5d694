/* Real numbers inside integers: sizes that Python computes in double precision, floor(0.7 * n), and
 * conditions on such values. A real expression is an atom for the integer algebra: it is evaluated
 * as written, one rounding per operation, so that the result is the one Python gets. Its interval
 * ends are rounded outwards to integers. */
#include <math.h>
#include <string.h>

#include "ir/sym/priv.h"

static const struct {
	const char *name;
	uint8_t narg;
	bool of_reals, gives_real;
} ops[] = {
	[SYM_REAL] = {"real", 1, false, true},     [SYM_REAL_ADD] = {"radd", 2, true, true},
	[SYM_REAL_MUL] = {"rmul", 2, true, true},  [SYM_REAL_DIV] = {"rdiv", 2, true, true},
	[SYM_REAL_SQRT] = {"rsqrt", 1, true, true}, [SYM_FLOOR] = {"floor", 1, true, false},
	[SYM_CEIL] = {"ceil", 1, true, false},     [SYM_TRUNC] = {"trunc", 1, true, false},
	[SYM_RINT] = {"rint", 1, true, false},     [SYM_REAL_LESS] = {"less", 2, true, false},
	[SYM_REAL_EQUAL] = {"equal", 2, true, false},
};

uint32_t sym_real_signature(SymKind kind, bool *of_reals, bool *gives_real)
{
	if (kind < SYM_REAL || kind > SYM_REAL_EQUAL)
		return 0;
	*of_reals = ops[kind].of_reals;
	*gives_real = ops[kind].gives_real;
	return ops[kind].narg;
}

const char *sym_real_name(SymKind kind)
{
	return ops[kind].name;
}

bool sym_is_real(const SymTab *t, Sym e)
{
	SymKind kind = sym_kind(t, e);
	return kind == SYM_REAL_CONST || (kind >= SYM_REAL && ops[kind].gives_real);
}

static double of_bits(int64_t bits)
{
	double v;
	memcpy(&v, &bits, sizeof v);
	return v;
}

static int64_t to_bits(double v)
{
	int64_t bits;
	memcpy(&bits, &v, sizeof bits);
	return bits;
}

bool sym_real_is_const(const SymTab *t, Sym e, double *value)
{
	const SymNode *n = sym_node(t, e);
	if (n->kind != SYM_REAL_CONST)
		return false;
	*value = of_bits(n->value);
	return true;
}

bool sym_real_eval(SymKind kind, const int64_t *arg, int64_t *out)
{
	static const double limit = 0x1p62;
	double x = of_bits(arg[0]), y = ops[kind].narg > 1 ? of_bits(arg[1]) : 0;
	switch (kind) {
	case SYM_REAL: *out = to_bits((double)arg[0]); return true;
	case SYM_REAL_ADD: *out = to_bits(x + y); return true;
	case SYM_REAL_MUL: *out = to_bits(x * y); return true;
	case SYM_REAL_DIV: *out = to_bits(x / y); return true;
	case SYM_REAL_SQRT: *out = to_bits(sqrt(x)); return true;
	case SYM_REAL_LESS: *out = x < y; return true;
	case SYM_REAL_EQUAL: *out = x == y; return true;
	case SYM_FLOOR: x = floor(x); break;
	case SYM_CEIL: x = ceil(x); break;
	case SYM_TRUNC: x = trunc(x); break;
	default: x = rint(x); break;
	}
	if (!(fabs(x) <= limit))
		return false;
	*out = (int64_t)x;
	return true;
}

/* ---- intervals ---- */

typedef struct {
	double lo, hi;
} Ends;

/* Returns the range of e in doubles. An end at 2^52 or beyond becomes infinite: doubles round
 * integers there. */
static Ends ends_of(const SymTab *t, Sym e)
{
	static const int64_t exact = (int64_t)1 << 52;
	const SymNode *n = sym_node(t, e);
	if (n->kind == SYM_REAL_CONST)
		return (Ends){of_bits(n->value), of_bits(n->value)};
	return (Ends){n->lo <= -exact ? (double)-INFINITY : (double)n->lo,
	              n->hi >= exact ? (double)INFINITY : (double)n->hi};
}

static double times(double a, double b)
{
	return a == 0 || b == 0 ? 0 : a * b;
}

static Ends ends_mul(Ends a, Ends b)
{
	double p[4] = {times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)};
	Ends r = {p[0], p[0]};
	for (int k = 1; k < 4; k++) {
		r.lo = fmin(r.lo, p[k]);
		r.hi = fmax(r.hi, p[k]);
	}
	return r;
}

static Ends ends_div(Ends a, Ends b)
{
	if (!(b.lo > 0))
		return (Ends){-(double)INFINITY, (double)INFINITY};
	return ends_mul(a, (Ends){1 / b.hi, 1 / b.lo});
}

void sym_real_range(const SymTab *t, Sym e, int64_t *lo, int64_t *hi)
{
	static const double exact = 0x1p52;
	const SymNode *n = sym_node(t, e);
	if (n->kind == SYM_REAL_LESS || n->kind == SYM_REAL_EQUAL) {
		*lo = 0;
		*hi = 1;
		return;
	}
	Ends a = n->nargs ? ends_of(t, n->args[0]) : ends_of(t, e);
	Ends b = n->nargs > 1 ? ends_of(t, n->args[1]) : a;
	double slack = 0;
	switch ((SymKind)n->kind) {
	case SYM_REAL_ADD: a = (Ends){a.lo + b.lo, a.hi + b.hi}; break;
	case SYM_REAL_MUL: a = ends_mul(a, b); break;
	case SYM_REAL_DIV: a = ends_div(a, b); slack = 1; break; /* the reciprocal is rounded too */
	case SYM_REAL_SQRT: a = (Ends){a.lo > 0 ? sqrt(a.lo) : 0, a.hi > 0 ? sqrt(a.hi) : 0}; break;
	default: break;
	}
	a.lo = floor(a.lo) - slack;
	a.hi = ceil(a.hi) + slack;
	*lo = a.lo > -exact && a.lo < exact ? (int64_t)a.lo : -SYM_INF;
	*hi = a.hi > -exact && a.hi < exact ? (int64_t)a.hi : SYM_INF;
}

/* ---- construction ---- */

Sym sym_real_const(SymTab *t, double v)
{
	return sym_make_real(t, to_bits(v));
}

static bool is_constant(const SymTab *t, Sym e)
{
	SymKind kind = sym_kind(t, e);
	return kind == SYM_CONST || kind == SYM_REAL_CONST;
}

Sym sym_real_op(SymTab *t, SymKind kind, Sym a, Sym b)
{
	Sym args[2] = {a, b};
	uint32_t n = ops[kind].narg;
	bool constant = true;
	int64_t value[2], out;
	for (uint32_t k = 0; k < n; k++) {
		sym_check(t, args[k]);
		if (sym_is_real(t, args[k]) != ops[kind].of_reals)
			ctx_bug(t->ctx, "sym: operand %u of %s is of the wrong kind", k,
				ops[kind].name);
		constant &= is_constant(t, args[k]);
		value[k] = sym_node(t, args[k])->value;
	}
	if (constant && sym_real_eval(kind, value, &out))
		return ops[kind].gives_real ? sym_make_real(t, out) : sym_int(t, out);
	bool rounds =
		kind == SYM_FLOOR || kind == SYM_CEIL || kind == SYM_TRUNC || kind == SYM_RINT;
	if (rounds && sym_kind(t, a) == SYM_REAL)
		return sym_node(t, a)->args[0];
	return sym_make(t, kind, args, n);
}
