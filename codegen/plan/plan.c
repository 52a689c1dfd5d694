#include "codegen/plan/plan.h"

enum { LARGER = 16, MAX_SIZES = 32 };

int64_t plan_size(const PlanInput *in, Sym e)
{
	int64_t v;
	if (in->at.n && sym_eval(in->nest->syms, e, in->at.var, in->at.value, in->at.n, &v))
		return v;
	return sym_hint(in->nest->syms, e);
}

int64_t plan_extent(const PlanInput *in, uint32_t axis)
{
	return plan_size(in, in->nest->extent[axis]);
}

static void add_size(const SymTab *syms, Sym var, Sym *list, uint32_t *n)
{
	for (uint32_t i = 0; i < *n; i++)
		if (list[i].i == var.i)
			return;
	if (*n < MAX_SIZES && sym_var_kind(syms, var) != SYMVAR_AXIS)
		list[(*n)++] = var;
}

static void find_sizes(const SymTab *syms, Sym e, Sym *list, uint32_t *n)
{
	if (sym_kind(syms, e) == SYM_VAR)
		add_size(syms, e, list, n);
	for (uint32_t i = 0; i < sym_nargs(syms, e); i++)
		find_sizes(syms, sym_arg(syms, e, i), list, n);
}

static int64_t larger(const SymTab *syms, Sym var)
{
	int64_t lo, hi, hint = sym_hint(syms, var);
	sym_range(syms, var, &lo, &hi);
	const int64_t want = LARGER * (hint > 0 ? hint : 1);
	return want < hi ? want : hi;
}

PlanSizes plan_larger_sizes(const Nest *nest)
{
	Sym list[MAX_SIZES];
	uint32_t n = 0;
	for (uint32_t a = 0; a < nest->n; a++)
		find_sizes(nest->syms, nest->extent[a], list, &n);
	int64_t *value = ARENA_ARRAY(nest->arena, int64_t, n);
	for (uint32_t i = 0; i < n; i++)
		value[i] = larger(nest->syms, list[i]);
	return (PlanSizes){n, arena_dup(nest->arena, list, n * sizeof *list), value};
}
