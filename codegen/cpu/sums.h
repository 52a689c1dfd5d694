/* Private to schedules: one rule of summation. A sum of n terms is a nest of chains of additions.
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
#ifndef WEFT_CODEGEN_CPU_SUMS_H
#define WEFT_CODEGEN_CPU_SUMS_H

#include "codegen/cpu/axes.h"

enum { MAX_SUM_CUTS = 3 };

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
/* The largest value of an extent; INT64_MAX: no bound. */
int64_t sum_most(const Sched *, Sym extent);

/* Opens the loop over the chunks of [*lo, *hi), each of `step` elements, and sets both to the chunk
 * at hand, in which the n accumulators acc[] are replaced: these begin with the identity. sum_close
 * adds them to those before, restores acc[], and closes the loop. outer[]: room for n variables,
 * for sum_close. n is 0 where accumulators lie in memory. */
void sum_open(Sched *, ReduceKind, int64_t step, Lx *lo, Lx *hi, Lv *acc, Lv *outer, uint32_t n);
void sum_close(Sched *, ReduceKind, Lv *acc, const Lv *outer, uint32_t n);

#endif
