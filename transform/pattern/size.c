/* What the sizes of a pattern are at a place. */
#include "transform/pattern/priv.h"

Sym sizes_put(Ir *ir, const Sizes *s, Sym e)
{
	return s->var.n ? sym_subst(ir->syms, e, s->var.data, s->by.data, s->var.n) : e;
}

static bool is_given(const Sizes *s, Sym var)
{
	for (uint32_t k = 0; k < s->var.n; k++)
		if (s->var.data[k].i == var.i)
			return true;
	return false;
}

static bool give_size(Ir *ir, Sizes *s, Sym var, Sym by)
{
	int64_t lo, hi, least, most;
	sym_range(ir->syms, var, &lo, &hi);
	sym_range(ir->syms, by, &least, &most);
	if (sym_var_kind(ir->syms, var) == SYMVAR_SIZE && (least < lo || most > hi))
		return false;
	array_push(ir->ctx->scratch, &s->var, var);
	array_push(ir->ctx->scratch, &s->by, by);
	return true;
}

bool sizes_unify(Ir *ir, Sizes *s, TypeId type, TypeId actual)
{
	const Type t = *ir_type_of(ir, type), a = *ir_type_of(ir, actual);
	if (!type.i || !actual.i)
		return type.i == actual.i;
	if (t.dtype != a.dtype || t.n != a.n)
		return false;
	for (uint32_t k = 0; k < t.n; k++) {
		if (t.dtype == DT_none) {
			TRY(sizes_unify(ir, s, t.elem[k], a.elem[k]));
			continue;
		}
		if (sym_kind(ir->syms, t.dim[k]) == SYM_VAR && !is_given(s, t.dim[k]))
			TRY(give_size(ir, s, t.dim[k], a.dim[k]));
	}
	return true;
}

/* Returns the one size in e that has no value yet; none if there is none or several. */
static Sym unknown_in(const Ir *ir, const Sizes *s, Sym e)
{
	Sym unknown = {0};
	for (uint32_t k = 0; k < s->nall; k++) {
		if (!sym_uses(ir->syms, e, s->all[k]) || is_given(s, s->all[k]))
			continue;
		if (unknown.i)
			return (Sym){0};
		unknown = s->all[k];
	}
	return unknown;
}

/* Sets *coef, *var and *rest to those of an extent coef * var + rest with one size, var, that
 * has no value yet. Returns false for another extent. */
static bool is_solvable(Ir *ir, const Sizes *s, Sym e, Sym *var, int64_t *coef, Sym *rest)
{
	Sym c;
	*var = unknown_in(ir, s, e);
	return var->i && sym_linear(ir->syms, e, *var, &c, rest) &&
	       sym_is_const(ir->syms, c, coef) && *coef;
}

static bool solve(Ir *ir, Sizes *s, Sym e, Sym actual)
{
	Sym var, rest;
	int64_t coef;
	if (!is_solvable(ir, s, e, &var, &coef, &rest))
		return true;
	Sym left = sym_sub(ir->syms, actual, sizes_put(ir, s, rest));
	if (coef < 0)
		left = sym_sub(ir->syms, sym_int(ir->syms, 0), left);
	const int64_t by = coef < 0 ? -coef : coef;
	return sym_divides(ir->syms, by, left) &&
	       give_size(ir, s, var, sym_floordiv(ir->syms, left, sym_int(ir->syms, by)));
}

bool sizes_solve(Ir *ir, Sizes *s, TypeId type, TypeId actual)
{
	const Type t = *ir_type_of(ir, type), a = *ir_type_of(ir, actual);
	for (uint32_t k = 0; type.i && k < t.n; k++)
		TRY(t.dtype == DT_none ? sizes_solve(ir, s, t.elem[k], a.elem[k])
				       : solve(ir, s, t.dim[k], a.dim[k]));
	return true;
}

/* Notes the sizes that the type gives: a size is known where it is an extent, or the only
 * unknown one in an extent. */
static void know(Ir *ir, Sizes *s, TypeId type)
{
	const Type t = *ir_type_of(ir, type);
	int64_t coef;
	Sym var, rest;
	for (uint32_t k = 0; type.i && k < t.n; k++)
		if (t.dtype == DT_none)
			know(ir, s, t.elem[k]);
		else if (is_solvable(ir, s, t.dim[k], &var, &coef, &rest))
			array_push(ir->ctx->scratch, &s->var, var);
}

Sym sizes_unknown(const Graph *pattern, const Sym *size, uint32_t n)
{
	Sizes s = {.all = size, .nall = n};
	uint32_t before;
	do {
		before = s.var.n;
		for (Node q = pattern->first; q.i; q = node_next(pattern, q))
			know(pattern->ir, &s, node_type_id(pattern, q));
	} while (s.var.n > before);
	for (uint32_t k = 0; k < n; k++)
		if (!is_given(&s, size[k]))
			return size[k];
	return (Sym){0};
}
