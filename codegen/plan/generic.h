/* Plans of kernels without a schedule of their own: stages run at each outer point, over a grid of
 * tasks. */
#ifndef WEFT_CODEGEN_PLAN_GENERIC_H
#define WEFT_CODEGEN_PLAN_GENERIC_H

#include "codegen/plan/axes.h"
#include "codegen/plan/sums.h"

/* How a phase executes a stage. */
typedef enum {
	RUN_WHOLE,
	RUN_NOT,
	RUN_PART,      /* reduces the task's part of the axis that is cut; the result goes into a
			  temporary */
	RUN_FROM_PARTS /* combines the results of all parts, in order */
} StageRole;

/* The tasks of a phase. */
typedef struct {
	uint32_t order[MAX_AXES], n; /* the outer axes without the vector axis and turned.across */
	uint32_t ntask;              /* the first ntask axes of `order` are tasks */
	uint32_t cut;                /* an axis that is divided among tasks, or NO_AXIS */
	Sym per, npart;              /* the elements of a part; the number of parts */
	Sym ntasks;
} TaskGrid;

typedef struct {
	TaskGrid grid;
	const StageRole *role; /* by stage; NULL: all are whole */
	uint32_t abreast;      /* vectors of neighbouring points that are reduced together */
	KernelCost cost;
} GenericPhase;

/* Reductions in parts over tasks; see parts.c. */
typedef struct {
	const uint32_t *temp; /* by stage: its temporary */
	ARRAY(SchedTemp) temps;
	uint32_t number; /* the axis that numbers the parts */
	Sym slot;        /* the element of a temporary for the part and the outer point */
} Parts;

/* Loads that are contiguous along another axis than the results; see transpose.c. */
typedef struct {
	uint32_t across; /* that axis, or NO_AXIS */
	const Kx *load;
	uint32_t n;
	bool simple; /* few instructions follow the loads */
} Turned;

#define NO_STAGE UINT32_MAX

/* The axis that runs over vector lanes, or NO_AXIS. */
typedef struct {
	uint32_t axis, n;
} PlanLanes;

enum {
	MAX_ABREAST = 4,    /* vectors of points that are reduced together */
	COLUMN_BLOCK = 128, /* columns that have their sums in local memory */
	MAX_CHAINS = 4      /* results that are combined at once, if one would wait for itself */
};

typedef struct GenericPlan {
	const Nest *nest; /* axes are merged, stages share rows */
	PlanLanes lanes;
	Turned turned;
	uint32_t blocked;   /* the reduction that runs over blocks of columns, or NO_STAGE */
	const Parts *parts; /* NULL: the kernel is one phase, of whole stages */
	ARRAY(GenericPhase) phase;
} GenericPlan;

/* Lanes are neighbouring points; the value differs from lane to lane. */
static inline bool generic_outer_vector(const GenericPlan *p)
{
	return p->lanes.axis != NO_AXIS && nest_is_outer(p->nest, p->lanes.axis);
}

static inline bool generic_varies(const GenericPlan *p, Kx x)
{
	return p->lanes.axis != NO_AXIS && p->nest->deps[x.i] >> p->lanes.axis & 1;
}

/* In these functions the input has the plan's nest. */

/* Chooses the task grid: whole axes until there are enough tasks, then a part of the next axis.
 * work: of each outer point. */
void generic_choose_tasks(const PlanInput *, const GenericPlan *, TaskGrid *, double work);
/* Fills in ntasks. */
void generic_count_tasks(const Nest *, TaskGrid *);
/* The work of the stages in the bit set, for each outer point. */
double generic_work_per_point(const Nest *, uint64_t stages);

/* Whether a stage combines the axis, the vector axis of its rows, into several results. */
bool generic_has_chains(const GenericPlan *, const Stage *, uint32_t axis);

/* parts.c: tasks reduce parts of long rows, later phases combine the results. grid: of the kernel
 * as one phase. before: the nest before axes were merged. Fills in phases and parts, and adds the
 * axis of parts to the nest; or refuses and changes nothing. */
MUST_LOOK Refusal parts_plan(const PlanInput *, GenericPlan *, Nest *, const TaskGrid *,
			     const Nest *before);

/* abreast.c: which reduction runs over blocks of columns; how many vectors of points a phase
 * reduces together; the least number of points of a task along the vector axis. */
uint32_t abreast_blocked(const PlanInput *, const GenericPlan *);
uint32_t abreast_points(const PlanInput *, const GenericPlan *, const StageRole *role);
int64_t abreast_columns(const GenericPlan *);

/* transpose.c: finds loads that are contiguous `across` the axis `along` which results are stored,
 * for tiles of `lanes`. Refuses if there are such loads but tiles do not pay; turned->across is
 * NO_AXIS if nothing is transposed. */
MUST_LOOK Refusal transpose_find(const PlanInput *, Turned *, uint32_t *along, uint32_t *lanes);

#endif
