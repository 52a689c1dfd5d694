/* One rule of summation. A sum of n terms is a nest of chains of additions.
 * No chain is longer than a limit that follows from the dtypes; its result is one term of the next
 * chain. So the rounding error grows with the limit, not with n. Vector lanes, unrolled chains and
 * tasks only make chains shorter.
 *
 *     for (chunk = 0; chunk < n; chunk += 256) {
 *             acc = 0;
 *             for (i = chunk; i < min(chunk + 256, n); i++)
 *                     acc += x[i];
 *             sum += acc;
 *     }
 *
 * Where loops are cut depends on the bounds of extents, never on hints. */
#ifndef WEFT_CODEGEN_PLAN_SUMS_H
#define WEFT_CODEGEN_PLAN_SUMS_H

#include "codegen/plan/plan.h"

enum { MAX_LOOP_CUTS = 2, MAX_SUM_CUTS = 6, MAX_SUMS = 8 /* accumulators at once */ };

/* A loop in chunks of so many rounds. */
typedef struct {
	uint32_t loop;
	int64_t rounds;
} SumCut;

/* The outermost cut first. */
typedef struct {
	uint32_t n;
	SumCut cut[MAX_SUM_CUTS];
} SumPlan;

/* Additions in a chain; a chain is at most half as long again where that saves a cut. INT64_MAX:
 * nothing rounds. `acc` is the dtype of the accumulator, `result` that of the memory where the sum
 * is stored. */
int64_t sum_limit(ReduceKind, DType acc, DType result);
/* Which loops of a nest are cut. `most`: the most rounds of each loop, outermost first, INT64_MAX
 * if there is no bound; a round of the innermost loop is one addition. At most two cuts per loop,
 * and MAX_SUM_CUTS in all: the outermost chain has the rest. Pure. */
SumPlan sum_plan(const int64_t *most, uint32_t nloop, int64_t limit);
/* The cuts of one loop: how many, and the first of them. */
uint32_t sum_cuts(const SumPlan *, uint32_t loop, const SumCut **first);
/* The largest value of an extent; INT64_MAX: no bound. */
int64_t sum_most(const SymTab *, Sym extent);

#endif
