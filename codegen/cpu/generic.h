/* Private to schedules: the stages of a kernel at each outer point, over a grid of tasks. */
#ifndef WEFT_CODEGEN_CPU_GENERIC_H
#define WEFT_CODEGEN_CPU_GENERIC_H

#include "codegen/cpu/sums.h"

/* What a phase does with a stage. */
typedef enum {
	RUN_WHOLE,
	RUN_NOT,
	RUN_PART,      /* reduces the task's part of the axis that is cut, and leaves the result in a temporary */
	RUN_FROM_PARTS /* combines such results, in order */
} StageRole;

/* Reductions in parts; see parts.c. */
typedef struct {
	const StageRole *role; /* by stage, of the phase at hand */
	const uint32_t *temp;  /* by stage: its temporary */
	uint32_t number;       /* axis: which part */
	Sym slot;              /* element of a temporary: of the part and the outer point */
} Parts;

/* Loads that are contiguous along another axis than results are; see transpose.c. */
typedef struct {
	uint32_t across; /* that axis, or NO_AXIS */
	const Kx *load;
	uint32_t n;
	bool simple;     /* what becomes of them is a few instructions */
} Turned;

typedef struct {
	Sched *s;
	uint32_t order[MAX_AXES], norder; /* outer axes without the vector axis, and without turned.across */
	uint32_t ntask;                   /* the first ntask of them are the task grid */
	uint32_t cut;                     /* an axis of which each task has a part, or NO_AXIS */
	Sym per, npart;                   /* its elements; how many parts */
	const Parts *parts;               /* NULL: the kernel is one phase, of whole stages */
	Turned turned;
} Generic;

/* A stage that runs at an outer point. */
typedef struct {
	Generic *g;
	uint32_t stage;
	uint32_t axes[MAX_RANK], n, next; /* loops still to open */
	SumPlan sums;                     /* by loop; of a reduction in registers */
	Lv acc, arg;
	Lv best;
	Kx value; /* what each point of a reduction gives */
} StageRun;

/* Whether the loop over axes[next] goes by chunks, and how, for n accumulators. */
MUST_LOOK bool generic_sums(const StageRun *, uint32_t n, SumLoop *);

/* Statements of a reduction that are executed where its value may be another than the reduction's identity. */
typedef struct {
	Kx where; /* none: everywhere */
	Lx condition;
	uint32_t mark;
} Branch;

StageRole generic_role(const Generic *, uint32_t stage);
/* Axes that have a value at the point at hand. */
uint64_t generic_known_axes(const Sched *);
/* A stage at an outer point; of a reduction its beginning, what each point of its row does, and its end. */
void generic_stage(Generic *, uint32_t stage);
StageRun generic_start(Generic *, uint32_t stage);
Branch generic_branch(StageRun *); /* before the steps of one point, or of several that differ in the vector axis */
void generic_reduce_step(StageRun *);
void generic_branch_end(Sched *, const Branch *);
void generic_finish(StageRun *);

/* Whole axes are tasks until there are enough of them; then the next axis is cut. `work` for each outer point. Returns the
 * number of tasks. */
Sym generic_choose_tasks(Generic *, double work);
Sym generic_ntasks(const Generic *);
/* The body of the function: the task's outer points. */
void generic_run(Generic *);
/* Of some stages, by bit. */
double generic_work_per_point(const Sched *, uint64_t stages);

/* parts.c: tasks reduce parts of long rows, later phases combine them. `ntasks`: of the kernel as one phase, with `whole` of
 * its grid; before: the kernel before axes were merged. As a ScheduleFn. */
MUST_LOOK Refusal schedule_parts(const Generic *whole, Sym ntasks, Kernel *before);

/* abreast.c: reductions of long rows, or of such that are found by arithmetic, at several vectors of neighbouring points of [lo, hi)
 * together, or at blocks of them, where the kernel is of that kind. Returns where the rest begins. */
Lx abreast_run(Generic *, Lx lo, Lx hi);
/* Points that a task has at least, along the vector axis. */
int64_t abreast_columns(const Generic *);

/* transpose.c: whether results are stored along an axis `along` and loads are contiguous `across` it, in tiles of `lanes`.
 * Returns why not where there are such loads; across is NO_AXIS where nothing is to be transposed. */
MUST_LOOK Refusal transpose_find(Sched *, Turned *, uint32_t *along, uint32_t *lanes);
/* The loops over both axes; the vector axis is that of the results. */
void transpose_tiles(Sched *, const Turned *);

#endif
