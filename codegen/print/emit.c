#include "codegen/print/emit.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/print/names.h"

/* ---- cost ---- */

/* Estimates the cost of compiling a kernel, in statements: for dividing kernels into units of equal
 * cost. */
static double loop_cost(const LoopFn *f)
{
	double cost = 20;
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		cost += loop_statements(f, loop_top(f, k));
	for (uint32_t k = 1; k < f->lx.n; k++)
		if (f->lx.data[k].kind == LX_FN)
			cost += 0.5 * f->lx.data[k].fn->cost;
	return cost;
}

/* ---- grouping ---- */

typedef struct {
	double cost;
	uint32_t fn;
} Weight;

static int heavier(const void *a, const void *b)
{
	const Weight *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	return x->fn < y->fn ? -1 : 1;
}

/* Gives each kernel, the heaviest first, to the unit that is lightest so far. */
const uint32_t *kernel_units(const Program *p, uint32_t nunits, double *load)
{
	Arena *arena = p->ir->ctx->arena;
	uint32_t *unit = ARENA_ARRAY(arena, uint32_t, p->fn.n);
	Weight *w = ARENA_ARRAY(arena, Weight, p->fn.n);
	for (uint32_t k = 0; k < p->fn.n; k++)
		w[k] = (Weight){loop_cost(p->fn.data[k]), k};
	qsort(w, p->fn.n, sizeof *w, heavier);
	for (uint32_t k = 0; k < p->fn.n; k++) {
		uint32_t best = 0;
		for (uint32_t j = 1; j < nunits; j++)
			if (load[j] < load[best])
				best = j;
		unit[w[k].fn] = best;
		load[best] += w[k].cost;
	}
	return unit;
}

/* ---- names ---- */

const char *const *kernel_names(const Program *p, const char *suffix)
{
	Arena *arena = p->ir->ctx->arena;
	const char **name = ARENA_ARRAY(arena, const char *, p->fn.n);
	Names names;
	names_init(&names, arena);
	for (uint32_t k = 0; k < p->fn.n; k++)
		name[k] = names_add(&names, arena_printf(arena, "k_%s%s", p->fn.data[k]->name,
		                                         suffix ? suffix : ""));
	return name;
}
