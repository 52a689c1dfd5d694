/* Are two extents the same? Where that cannot be proved, points that the conditions of the graph
 * admit may tell that they are not. */
#include "ir/graph/graph.h"

enum { SAMPLES = 16 };

/* Returns a pseudo-random number that depends on its arguments only. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = a * 0x9e3779b97f4a7c15u + b;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	return h ^ h >> 32;
}

/* Returns the value of variable k at a sample point. Point 0 is the hints, point 1 the least
 * values, the others lie within range. torch.export takes sizes to be 2 at least when it writes
 * types, whatever their range. */
static int64_t sample(const SymTab *t, Sym var, uint32_t k, uint32_t point)
{
	int64_t lo, hi;
	sym_range(t, var, &lo, &hi);
	if (sym_var_kind(t, var) == SYMVAR_SIZE && lo < 2)
		lo = hi < 2 ? hi : 2;
	if (point == 0)
		return sym_hint(t, var);
	if (point == 1 && lo > -SYM_INF)
		return lo;
	lo = lo > -SYM_INF ? lo : 0;
	uint64_t span = hi - lo < 64 ? (uint64_t)(hi - lo) + 1 : 65;
	return lo + (int64_t)(mix(point, k) % span);
}

/* Whether the guards hold at the point. Unless they do, the point says nothing. */
static bool admissible(const Graph *g, const Sym *var, const int64_t *value, uint32_t n)
{
	for (uint32_t k = 0; k < g->guard.n; k++) {
		const GraphGuard *d = &g->guard.data[k];
		int64_t a, b;
		if (!sym_eval(graph_syms(g), d->a, var, value, n, &a) ||
		    !sym_eval(graph_syms(g), d->b, var, value, n, &b))
			continue;
		if ((d->kind == GUARD_EQ && a != b) || (d->kind == GUARD_NE && a == b) ||
		    (d->kind == GUARD_LE && a > b))
			return false;
	}
	return true;
}

Truth graph_same_extent(const Graph *g, Sym x, Sym y)
{
	SymTab *t = graph_syms(g);
	Truth eq = sym_eq(t, x, y);
	if (eq != MAYBE)
		return eq;
	uint32_t n = sym_nvars(t);
	Sym *var = arena_calloc(g->ir->ctx->scratch, n, sizeof *var);
	int64_t *value = arena_calloc(g->ir->ctx->scratch, n, sizeof *value);
	for (uint32_t k = 0; k < n; k++)
		var[k] = sym_var_at(t, k);
	for (uint32_t p = 0; p <= SAMPLES; p++) {
		int64_t a, b;
		for (uint32_t k = 0; k < n; k++)
			value[k] = sample(t, var[k], k, p);
		if (admissible(g, var, value, n) && sym_eval(t, x, var, value, n, &a) &&
		    sym_eval(t, y, var, value, n, &b) && a != b)
			return NO;
	}
	return MAYBE;
}
