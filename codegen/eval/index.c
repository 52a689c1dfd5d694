/* Index arithmetic: sizes are parameters, axes and value variables have values at the point. */
#include "codegen/eval/priv.h"

/* ---- sizes ---- */

Lx eval_let(Eval *e, const char *name, Lx x)
{
	int64_t v;
	return lx_is_int(e->f, x, &v) ? x : lx_var(e->f, ls_let(e->f, name, x));
}

/* Returns the function's parameter for a size that is not negative and no constant; adds it if it
 * is new. */
static Lx parameter(Eval *e, Sym sym)
{
	for (uint32_t i = 0; i < e->args.param.n; i++)
		if (e->args.param.data[i].i == sym.i)
			return lx_param(e->f, i);
	array_push(e->arena, &e->args.param, sym);
	return lx_param(e->f, loop_param(e->f, "n"));
}

/* Returns the value of a size from the parameters of the function. Parameters are never negative,
 * which index arithmetic relies on: a size that may be negative (an offset from a symbolic pad) is
 * the difference of two parameters. */
Lx eval_size(Eval *e, Sym sym)
{
	int64_t lo, hi;
	sym_range(e->syms, sym, &lo, &hi);
	if (lo >= 0 || lo == hi)
		return lo == hi ? lx_int(e->f, lo) : parameter(e, sym);
	Sym zero = sym_int(e->syms, 0), minus = sym_muli(e->syms, sym, -1);
	Lx below = parameter(e, hi <= 0 ? minus : sym_max(e->syms, minus, zero));
	return lx_sub(e->f, hi <= 0 ? lx_int(e->f, 0) : parameter(e, sym_max(e->syms, sym, zero)),
		      below);
}

/* ---- expressions of axes ---- */

static Lx lower_sym(Eval *e, Sym sym, bool lanes);

static Lx fold_args(Eval *e, Sym sym, bool lanes, Lx (*op)(LoopFn *, Lx, Lx))
{
	Lx x = lower_sym(e, sym_arg(e->syms, sym, 0), lanes);
	for (uint32_t i = 1; i < sym_nargs(e->syms, sym); i++)
		x = op(e->f, x, lower_sym(e, sym_arg(e->syms, sym, i), lanes));
	return x;
}

/* Divides by a divisor that may be 0, then by 1 instead: nothing is indexed along an extent of 0,
 * but code beside a guard computes the index all the same. */
static Lx divide(Eval *e, Sym sym, bool lanes, Lx (*op)(LoopFn *, Lx, Lx))
{
	Sym by = sym_arg(e->syms, sym, 1);
	Lx x = lower_sym(e, sym_arg(e->syms, sym, 0), lanes), d = lower_sym(e, by, lanes);
	int64_t lo, hi;
	sym_range(e->syms, by, &lo, &hi);
	if (lo <= 0 && hi >= 0)
		d = lx_select(e->f, lx_cmp(e->f, SC_eq, d, lx_int(e->f, 0)), lx_int(e->f, 1), d);
	return op(e->f, x, d);
}

Lx eval_place(Eval *e, uint32_t i)
{
	const ValueVar *v = &e->k->vvar.data[i];
	uint32_t number = e->k->kx.n + i;
	Lx known = eval_recall(e, number, v->value);
	if (known.i)
		return known;
	Lx lane = e->index.lane; /* of the caller's arithmetic, not of the value */
	e->index.lane = (Lx){0};
	Lx x = eval_value(e, v->value);
	Lx size = eval_size(e, v->extent);
	Lx zero = lx_int(e->f, 0);
	if (v->check)
		eval_check_index(e, i, x);
	Lx last = lx_sub(e->f, size, lx_int(e->f, 1));
	Lv at = ls_let(e->f, "at", lx_max(e->f, lx_min(e->f, x, last), zero));
	e->index.lane = lane;
	return eval_remember(e, number, v->value, lx_var(e->f, at));
}

static Lx lower_var(Eval *e, Sym sym, bool lanes)
{
	for (uint32_t i = 0; i < e->nest->n; i++) {
		if (e->nest->var[i].i != sym.i)
			continue;
		if (!e->at[i].i)
			ctx_bug(e->l->ir->ctx, "kernel %s: axis %u has no value here", e->k->name,
				i);
		if (i == e->lanes.axis && e->index.lane.i)
			return lx_add(e->f, e->at[i], e->index.lane);
		return lanes && i == e->lanes.axis
			       ? lx_ramp(e->f, e->at[i], lx_int(e->f, 1), e->lanes.n)
			       : e->at[i];
	}
	for (uint32_t i = 0; i < e->k->vvar.n; i++)
		if (e->k->vvar.data[i].var.i == sym.i)
			return eval_lane(e, eval_place(e, i));
	return eval_size(e, sym);
}

/* Terms of a sum that differ only in sizes. */
typedef struct {
	Sym axes, sizes; /* their factors: those that use axes, and the sum of the others */
} SumPart;

static SumPart split_term(Eval *e, Sym term)
{
	Sym one = sym_int(e->syms, 1);
	bool product = sym_kind(e->syms, term) == SYM_PRODUCT;
	SumPart p = {one, one};
	for (uint32_t i = 0, n = product ? sym_nargs(e->syms, term) : 1; i < n; i++) {
		Sym factor = product ? sym_arg(e->syms, term, i) : term;
		Sym *part = sym_uses_kind(e->syms, factor, SYMVAR_AXIS) ? &p.axes : &p.sizes;
		*part = sym_mul(e->syms, *part, factor);
	}
	return p;
}

/* Lowers a sum with one product for all terms that differ only in sizes. (n + 2) * c * i, a sum of
 * two products of sizes and i, becomes one parameter times i. */
static Lx lower_sum(Eval *e, Sym sym, bool lanes)
{
	uint32_t n = sym_nargs(e->syms, sym), nparts = 0;
	SumPart *part = ARENA_ARRAY(e->arena, SumPart, n);
	for (uint32_t i = 0; i < n; i++) {
		SumPart p = split_term(e, sym_arg(e->syms, sym, i));
		uint32_t k = 0;
		while (k < nparts && part[k].axes.i != p.axes.i)
			k++;
		part[k].sizes = k < nparts ? sym_add(e->syms, part[k].sizes, p.sizes) : p.sizes;
		part[k].axes = p.axes;
		nparts += k == nparts;
	}
	if (nparts == n)
		return fold_args(e, sym, lanes, lx_add);
	Lx x = {0};
	for (uint32_t k = 0; k < nparts; k++) {
		Lx sizes = eval_size(e, part[k].sizes);
		bool plain = sym_is(e->syms, part[k].axes, 1);
		Lx term = plain ? sizes : lx_mul(e->f, lower_sym(e, part[k].axes, lanes), sizes);
		x = x.i ? lx_add(e->f, x, term) : term;
	}
	return x;
}

static Lx lower_fresh(Eval *e, Sym sym, bool lanes)
{
	switch (sym_kind(e->syms, sym)) {
	case SYM_SUM:
		return lower_sum(e, sym, lanes);
	case SYM_PRODUCT:
		return fold_args(e, sym, lanes, lx_mul);
	case SYM_FLOORDIV:
		return divide(e, sym, lanes, lx_div);
	case SYM_MOD:
		return divide(e, sym, lanes, lx_mod);
	case SYM_MIN:
		return fold_args(e, sym, lanes, lx_min);
	case SYM_MAX:
		return fold_args(e, sym, lanes, lx_max);
	default:
		return eval_size(e, sym);
	}
}

/* Lowers an index expression, each part of it once, however often the expression has the part. */
static Lx lower_sym(Eval *e, Sym sym, bool lanes)
{
	if (!sym_uses_kind(e->syms, sym, SYMVAR_AXIS))
		return eval_size(e, sym);
	SymKind kind = sym_kind(e->syms, sym);
	if (kind == SYM_VAR || kind == SYM_PRODUCT)
		return kind == SYM_VAR ? lower_var(e, sym, lanes)
				       : fold_args(e, sym, lanes, lx_mul);
	uint32_t key[2] = {e->index.call, sym.i}, id = intern_find(&e->index.part, key, sizeof key);
	if (id)
		return e->index.value.data[id - 1];
	Lx x = lower_fresh(e, sym, lanes);
	intern(&e->index.part, key, sizeof key, NULL);
	array_push(e->arena, &e->index.value, x);
	return x;
}

/* Lowers an index expression in a call of its own: axes and lanes have other values in other calls,
 * so that parts of those do not serve. A value that the expression uses is evaluated in a call in
 * between. */
static Lx lower_whole(Eval *e, Sym sym, bool lanes)
{
	if (!sym_uses_kind(e->syms, sym, SYMVAR_AXIS))
		return eval_size(e, sym);
	uint32_t call = e->index.call;
	e->index.call = ++e->index.ncall;
	Lx x = sym_kind(e->syms, sym) == SYM_VAR ? lower_var(e, sym, lanes)
						 : lower_fresh(e, sym, lanes);
	e->index.call = call;
	return x;
}

Lx eval_index(Eval *e, Sym sym)
{
	return lower_whole(e, sym, false);
}

Lx eval_index_lanes(Eval *e, Sym sym)
{
	Lx x = lower_whole(e, sym, e->lanes.axis != NO_AXIS);
	return eval_splat(e, x);
}

Lx eval_splat(Eval *e, Lx x)
{
	return e->lanes.n == 1 || lx_type(e->f, x).lanes > 1 ? x : lx_splat(e->f, x, e->lanes.n);
}
