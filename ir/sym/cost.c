#include "ir/sym/cost.h"

typedef enum { COST_NUMBER, COST_SYM, COST_ADD, COST_MUL, COST_MIN } CostKind;

struct Cost {
	CostKind kind;
	double number;
	Sym sym;
	const Cost *a, *b;
};

static Cost *cost_new(Arena *arena, Cost c)
{
	Cost *out = ARENA_NEW(arena, Cost);
	*out = c;
	return out;
}

Cost *cost_number(Arena *arena, double v)
{
	return cost_new(arena, (Cost){.kind = COST_NUMBER, .number = v});
}

Cost *cost_sym(Arena *arena, Sym s)
{
	return cost_new(arena, (Cost){.kind = COST_SYM, .sym = s});
}

Cost *cost_add(Arena *arena, const Cost *a, const Cost *b)
{
	return cost_new(arena, (Cost){.kind = COST_ADD, .a = a, .b = b});
}

Cost *cost_mul(Arena *arena, const Cost *a, const Cost *b)
{
	return cost_new(arena, (Cost){.kind = COST_MUL, .a = a, .b = b});
}

Cost *cost_min(Arena *arena, const Cost *a, const Cost *b)
{
	return cost_new(arena, (Cost){.kind = COST_MIN, .a = a, .b = b});
}

double cost_at(const SymTab *t, const Cost *c, const Sym *var, const int64_t *value, uint32_t n)
{
	int64_t v;
	if (c->kind == COST_NUMBER)
		return c->number;
	if (c->kind == COST_SYM) {
		if (!sym_eval(t, c->sym, var, value, n, &v))
			v = sym_hint(t, c->sym);
		return v < 0 ? 0 : (double)v;
	}
	double a = cost_at(t, c->a, var, value, n), b = cost_at(t, c->b, var, value, n);
	return c->kind == COST_ADD ? a + b : c->kind == COST_MUL ? a * b : a < b ? a : b;
}
