/* Private to schedules: the code of stages at an outer point. */
#ifndef WEFT_CODEGEN_CPU_GENERIC_H
#define WEFT_CODEGEN_CPU_GENERIC_H

#include "codegen/cpu/cpu.h"
#include "codegen/plan/generic.h"

typedef struct {
	Cpu *s;
	const GenericPlan *p;
	const GenericPhase *phase; /* at hand */
} Generic;

/* A stage in execution at an outer point. */
typedef struct {
	Generic *g;
	uint32_t stage;
	uint32_t axes[MAX_RANK], n, next; /* axes[next] is the next loop to open */
	SumPlan sums;                     /* by loop; of a reduction in registers */
	Lv acc;       /* the accumulator; none: a map, or STAGE_ARGREDUCE */
	Lv best, arg; /* STAGE_ARGREDUCE: the best value so far and its place */
	Kx value; /* the value of each point of a reduction */
} StageRun;

/* Whether the loop over axes[next] goes by chunks. If so, fills in the SumLoop for n accumulators,
 * for sum_open; else the SumLoop means nothing. */
MUST_LOOK bool generic_sums(const StageRun *, uint32_t n, SumLoop *);

/* Whether rows are expected to be one chunk, of `step` elements, and so short that opening chunks
 * would take a part of their time. */
bool generic_expects_one_chunk(const StageRun *, int64_t step);
/* Sets *lo and *hi to where the loop over an axis begins and ends at the current point: the part of
 * the task, or the bounds of an axis that has bounds. */
void generic_bounds(Cpu *, uint32_t axis, Lx *lo, Lx *hi);

/* A branch around the statements of a reduction: not executed where the value is provably the
 * reduction's identity. */
typedef struct {
	Kx where; /* none: everywhere */
} Branch;

/* Returns how the current phase executes the stage. */
StageRole generic_role(const Generic *, uint32_t stage);
/* Returns the axes with a value at the current point, by bit. */
uint64_t generic_known_axes(const Cpu *);
/* Writes the code of a stage at the current outer point, as the current phase executes it
 * (generic_role); nothing with RUN_NOT. */
void generic_stage(Generic *, uint32_t stage);
/* Begins a stage at the current outer point: sets its accumulators to the identity. (The functions
 * from here to generic_finish are the parts of generic_stage, for schedules that reduce several
 * points side by side.) */
StageRun generic_start(Generic *, uint32_t stage);
/* Opens the branch around the steps of one point, or of several points that differ in the vector
 * axis, if the stage has one (Branch). Sets r->value, which the steps combine. */
Branch generic_branch(StageRun *r);
/* Combines the value of one point with the accumulators. */
void generic_reduce_step(StageRun *);
/* Closes a branch that generic_branch opened; does nothing if it opened none. */
void generic_branch_end(Cpu *, const Branch *);
/* Opens the loop over an axis of a row in [start, end), backwards if the stage says so. */
void generic_open_row(Cpu *, const Stage *, uint32_t axis, Lx start, Lx end);
/* Combines one element of a running row, and stores the result so far. */
void generic_running_step(StageRun *);
/* Ends a stage after its loops are closed. Result in a register: combines the lanes of the
 * accumulator if the vector axis was reduced; the result, in the compute dtype, becomes the stage's
 * value, or with RUN_PART goes into the part's temporary. Result in memory: the steps have stored
 * it. */
void generic_finish(StageRun *);

/* Reduces several vectors of neighbouring points of [lo, hi) of the vector axis together
 * (unroll-and-jam, GenericPhase.abreast), or blocks of them (GenericPlan.blocked). Returns the
 * first point that is left: lo if the plan has neither, and then adds no code (abreast.c). */
Lx abreast_run(Generic *, Lx lo, Lx hi);

/* Combines the running rows (STAGE_RUNNING) of points in [lo, hi) of an outer axis,
 * GenericPhase.abreast rows in one loop. Returns the first point that is left (abreast.c). */
Lx abreast_run_rows(Generic *, uint32_t axis, Lx lo, Lx hi);

/* Writes the loops over tiles of both axes, and the stages at their points (transpose.c). The
 * vector axis is that of the results. */
void transpose_tiles(Cpu *, const Turned *);
/* Writes the loop over vectors of points whose results are interleaved (transpose.c). */
void transpose_interleave(Cpu *, const Turned *);
/* Computes the running results of as many rows as lanes at the current point, along their axis in
 * [lo, hi), as far as tiles are whole. Returns where the rest begins, counted in the order of the
 * steps (transpose.c). */
Lx transpose_running_rows(StageRun *, Lx lo, Lx hi);

#endif
