/* The code of a schedule's phases, whatever executes it: phases, steps of reductions, sums in
 * chunks. */
#ifndef WEFT_CODEGEN_EVAL_CODE_H
#define WEFT_CODEGEN_EVAL_CODE_H

#include "codegen/eval/eval.h"
#include "codegen/plan/sums.h"

typedef struct Code {
	Eval e; /* of the current phase */
	const Target *target;
	Schedule *out;
} Code;

/* Makes *s ready for code_begin_phase, with a new schedule s->out without phases, in the arena of
 * the Ir's context. */
void code_init(Code *s, const Lowered *, const Target *);
/* Begins the function of the next phase, which evaluates the nest, by eval_start; the nest must
 * live until code_finish_phase. The function is for a CPU unless loop_block makes it one for blocks
 * of threads. */
void code_begin_phase(Code *, const Nest *);
/* Ends the current function, simplifies it (loop_simplify), and adds it to the schedule as a phase
 * with ntasks tasks. Adds its flops and bytes (`cost` at the hints of symbols), predicted cycles
 * and number of statements to those of the schedule. */
void code_finish_phase(Code *, Sym ntasks, KernelCost);
/* Adds a temporary to the schedule: memory that phases SchedTemp.first to SchedTemp.last use.
 * Returns its index in Schedule.temp. */
uint32_t code_temp(Code *, SchedTemp);
/* Sets the numbers of tasks of all phases to 0 if the kernel stores nothing
 * (kernel_stores_nothing), because code ahead of a loop without rounds would read operands without
 * elements. Leaves the schedule as it is if the kernel stores something, or if it checks an index
 * and no operand is without elements: indices are checked then. */
void code_leave_out_empty(const Lowered *, const Kernel *, Schedule *);

/* Returns a constant with the identity of a reduction (reduce_identity) in all lanes of the
 * type. */
Lx code_identity(Code *, ReduceKind, LType);
/* Returns acc combined with x, lane by lane; both have one type. The kind is not REDUCE_SET. */
Lx code_combine(Code *, ReduceKind, Lx acc, Lx x);
/* Returns a * b + c, of floats of one type: with one rounding if the target has ISA_FMA, else with
 * two. */
Lx code_fma(Code *, Lx a, Lx b, Lx c);
/* Returns acc combined with the value of an expression at the current point, by the stage's
 * reduction, in acc's type. A product of floats that a sum adds, and that is not known yet
 * (eval_known), becomes a code_fma. */
Lx code_accumulate(Code *, const Stage *, Lx acc, Kx value);

/* ---- loops in chunks, see plan/sums.h ---- */

/* Opens the loop over the chunks of [*lo, *hi), of `step` elements each (the last may be shorter),
 * and sets *lo and *hi to the ends of the chunk at hand. ls_end closes the loop. For sums in
 * memory. */
void sum_chunks(Code *, int64_t step, Lx *lo, Lx *hi);

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

/* Opens the loop over the innermost chunks of [*lo, *hi), and sets *lo and *hi to the ends of the
 * chunk at hand. The caller has set `kind` to `width` of the SumLoop: the reduction, the cuts of
 * the loop (ncut > 0), the number of accumulators, the elements of a round. Replaces the n
 * accumulators in acc[] by new ones, which begin with the identity in each chunk. Where all is one
 * chunk, that costs a branch and an addition per cut. */
void sum_open(Code *, SumLoop *, Lx *lo, Lx *hi, Lv *acc);
/* Closes the loop of sum_open with the same SumLoop: combines the accumulators of all chunks with
 * those that acc[] had before sum_open, and sets acc[] to these again. */
void sum_close(Code *, SumLoop *, Lv *acc);

#endif
