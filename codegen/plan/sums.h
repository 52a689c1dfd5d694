/* Blocked summation, the one rule by which all sums are cut into chunks. A sum of n terms is a nest
 * of chains of additions. No chain is longer than a limit that follows from the dtypes; its result
 * is one term of the next chain. So the rounding error grows with the limit, not with n. Vector
 * lanes, unrolled chains and tasks only make chains shorter.
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

enum { MAX_LOOP_CUTS = 2, MAX_SUM_CUTS = 6, MAX_SUMS = 32 /* accumulators at once */ };

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

enum { SUM_ENLARGED = 4 /* divides the limit where errors are enlarged (Stage.enlarged) */ };

/* Returns how many combinations of this kind may form one chain; a chain is at most half as long
 * again where that saves a cut. Returns INT64_MAX if the combination does not round, so that
 * nothing needs a cut. acc: the dtype of the accumulator; result: that of the memory where the sum
 * is stored. */
int64_t sum_limit(ReduceKind, DType acc, DType result);
/* Returns which of nloop loops around a sum are cut, and how. most[i]: the most rounds of loop i,
 * outermost first; INT64_MAX: no bound. A round of the innermost loop is one addition. limit: of a
 * chain, see sum_limit; INT64_MAX: nothing is cut. A loop has at most MAX_LOOP_CUTS cuts, a nest
 * MAX_SUM_CUTS: what is more is in the outermost chain, which may be longer then. Pure. */
SumPlan sum_plan(const int64_t *most, uint32_t nloop, int64_t limit);
/* Returns the number of cuts of one loop, and sets *first to the outermost one; the others follow
 * it in the plan. Leaves *first unchanged if there are none. */
uint32_t sum_cuts(const SumPlan *, uint32_t loop, const SumCut **first);
/* Returns the largest value of an extent, by its range; INT64_MAX if there is no bound. */
int64_t sum_most(const SymTab *, Sym extent);

#endif
