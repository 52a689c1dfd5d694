/* Private to schedules: executes the stages of a kernel at each outer point, over a grid of
 * tasks. */
#ifndef WEFT_CODEGEN_CPU_GENERIC_H
#define WEFT_CODEGEN_CPU_GENERIC_H

#include "codegen/cpu/sums.h"

/* How a phase executes a stage. */
typedef enum {
	RUN_WHOLE,
	RUN_NOT,
	RUN_PART,      /* reduces the task's part of the axis that is cut; the result goes into a
	                  temporary */
	RUN_FROM_PARTS /* combines the results of all parts, in order */
} StageRole;

/* Reductions in parts over tasks; see parts.c. */
typedef struct {
	const StageRole *role; /* by stage, in the current phase */
	const uint32_t *temp;  /* by stage: its temporary */
	uint32_t number;       /* the axis that numbers the parts */
	Sym slot;              /* the element of a temporary for the part and the outer point */
} Parts;

/* Loads that are contiguous along another axis than the results; see transpose.c. */
typedef struct {
	uint32_t across; /* that axis, or NO_AXIS */
	const Kx *load;
	uint32_t n;
	bool simple;     /* few instructions follow the loads */
} Turned;

typedef struct {
	Cpu *s;
	uint32_t order[MAX_AXES], norder; /* the outer axes without the vector axis and
	                                     turned.across */
	uint32_t ntask;                   /* the first ntask axes of `order` are the task grid */
	uint32_t cut;                     /* an axis that is divided among tasks, or NO_AXIS */
	Sym per, npart;                   /* the elements of a part; the number of parts */
	const Parts *parts;               /* NULL: the kernel is one phase, of whole stages */
	Turned turned;
} Generic;

/* A stage in execution at an outer point. */
typedef struct {
	Generic *g;
	uint32_t stage;
	uint32_t axes[MAX_RANK], n, next; /* axes[next] is the next loop to open */
	SumPlan sums;                     /* by loop; of a reduction in registers */
	Lv acc, arg;
	Lv best;
	Kx value; /* the value of each point of a reduction */
} StageRun;

/* Whether the loop over axes[next] goes by chunks, and how, for n accumulators. */
MUST_LOOK bool generic_sums(const StageRun *, uint32_t n, SumLoop *);

/* A branch around the statements of a reduction: not executed where the value is provably the
 * reduction's identity. */
typedef struct {
	Kx where; /* none: everywhere */
} Branch;

StageRole generic_role(const Generic *, uint32_t stage);
/* The axes with a value at the current point, by bit. */
uint64_t generic_known_axes(const Cpu *);
/* generic_stage executes a stage at an outer point. For a reduction: generic_start, the step of
 * each point, generic_finish. */
void generic_stage(Generic *, uint32_t stage);
StageRun generic_start(Generic *, uint32_t stage);
Branch generic_branch(StageRun *); /* in front of the steps of one point, or of several points that
                                      differ in the vector axis */
void generic_reduce_step(StageRun *);
void generic_branch_end(Cpu *, const Branch *);
/* Ends a stage after its loops are closed. Result in a register: combines the lanes of the
 * accumulator if the vector axis was reduced; the result, in the compute dtype, becomes the stage's
 * value, or with RUN_PART goes into the part's temporary. Result in memory: the steps have stored
 * it. */
void generic_finish(StageRun *);

/* Chooses the task grid: whole axes until there are enough tasks, then a part of the next axis.
 * work: of each outer point. Returns the number of tasks. */
Sym generic_choose_tasks(Generic *, double work);
Sym generic_ntasks(const Generic *);
/* Makes the body of the function: the outer points of a task. */
void generic_run(Generic *);
/* The work of the stages in the bit set, for each outer point. */
double generic_work_per_point(const Cpu *, uint64_t stages);

/* parts.c: tasks reduce parts of long rows, later phases combine the results. ntasks: of the kernel
 * as one phase with the grid of `whole`; before: the kernel before axes were merged. Answers like a
 * ScheduleFn. */
MUST_LOOK Refusal schedule_parts(const Generic *whole, Sym ntasks, Kernel *before);

/* abreast.c: reduces several vectors of neighbouring points of [lo, hi) together, or blocks of
 * them, if rows are long or their elements take index arithmetic. Returns the first point that is
 * left. */
Lx abreast_run(Generic *, Lx lo, Lx hi);
/* The least number of points of a task along the vector axis. */
int64_t abreast_columns(const Generic *);

/* transpose.c: finds loads that are contiguous `across` the axis `along` which results are stored,
 * for tiles of `lanes`. Refuses if there are such loads but tiles do not pay; turned->across is
 * NO_AXIS if nothing is transposed. */
MUST_LOOK Refusal transpose_find(Cpu *, Turned *, uint32_t *along, uint32_t *lanes);
/* Makes the loops over both axes; the vector axis is that of the results. */
void transpose_tiles(Cpu *, const Turned *);

#endif
