/* Private to schedules: loops in chunks, see plan/sums.h. */
#ifndef WEFT_CODEGEN_CPU_SUMS_H
#define WEFT_CODEGEN_CPU_SUMS_H

#include "codegen/cpu/cpu.h"
#include "codegen/plan/sums.h"

/* Opens the loop over the chunks of [*lo, *hi), of `step` elements each, and sets both to the chunk
 * at hand. ls_end closes the loop. For sums in memory. */
void sum_chunks(Cpu *, int64_t step, Lx *lo, Lx *hi);

/* The chunks of a loop of which the accumulators are in registers. */
typedef struct {
	ReduceKind kind;
	const SumCut *cut;
	uint32_t ncut, n;
	int64_t width;
	Lx lo, hi, end;                  /* of the loop, and of the chunk */
	Lv outer[MAX_SUMS];              /* the accumulators outside */
	Lv sum[MAX_LOOP_CUTS][MAX_SUMS]; /* by cut: of the chunks before */
} SumLoop;

/* Opens the loop over the innermost chunks of [*lo, *hi), and sets both to the chunk at hand.
 * `kind` to `width` of the SumLoop are given: the reduction, the cuts of the loop, the number of
 * accumulators, the elements of a round. Replaces the accumulators acc[n] by new ones, which begin
 * with the identity in each chunk. Where all is one chunk, that costs a branch and an addition per
 * cut. */
void sum_open(Cpu *, SumLoop *, Lx *lo, Lx *hi, Lv *acc);
/* Closes what sum_open opened: adds the accumulators of all chunks to those outside, and sets acc[]
 * to these again. */
void sum_close(Cpu *, SumLoop *, Lv *acc);

#endif
