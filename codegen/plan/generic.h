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
	uint32_t abreast;      /* vectors of neighbouring points that are reduced together; without
				  vectors: points of the last axis of the grid's order whose rows
				  are combined element after element together */
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
	const uint32_t *part; /* by load: 1 and 2 of the first and the second of pairs that are
				 contiguous along `across`, 0 of other loads */
	uint32_t n;
	bool simple; /* few instructions follow the loads */
	uint32_t neighbours; /* not 0: nothing is turned; `across` has so many results, which lie
				beside each other, and vectors of them are interleaved */
} Turned;

#define NO_STAGE UINT32_MAX

/* The axis that runs over vector lanes, or NO_AXIS. */
typedef struct {
	uint32_t axis, n;
} PlanLanes;

enum {
	MOST_NEIGHBOURS = 4,
	MAX_ABREAST = 4,       /* vectors of points that are reduced together */
	COLUMN_BLOCK = 128,    /* columns that have their sums in local memory */
	STREAM_PART = 1 << 17, /* elements of a part whose halves are computed in turn, at most */
	MAX_CHAINS = 4         /* results that are combined at once, if one would wait for itself */
};

typedef struct GenericPlan {
	const Nest *nest; /* axes are merged, stages share rows */
	PlanLanes lanes;
	bool streams; /* lanes are so many as fill what the machine streams by: memory takes longest
		       */
	Turned turned;
	Turned running;     /* loads of running rows (STAGE_RUNNING), of which tiles are transposed,
	                       as the results are; across: the axis of the rows, or NO_AXIS */
	uint32_t blocked;   /* the reduction that runs over blocks of columns, or NO_STAGE */
	const Parts *parts; /* NULL: the kernel is one phase, of whole stages */
	ARRAY(GenericPhase) phase;
} GenericPlan;

/* Whether vector lanes are neighbouring outer points, and not neighbouring elements of a row. */
static inline bool generic_outer_vector(const GenericPlan *p)
{
	return p->lanes.axis != NO_AXIS && nest_is_outer(p->nest, p->lanes.axis);
}

/* Whether the value of x differs from lane to lane. False without vectors. */
static inline bool generic_varies(const GenericPlan *p, Kx x)
{
	return p->lanes.axis != NO_AXIS && p->nest->deps[x.i] >> p->lanes.axis & 1;
}

/* In these functions the nest of the input, or the nest given, is the plan's. */

/* Whether vectors of the first and of the second half of each part of the lanes' axis are computed
 * in turn: where memory is read and written at twice as many places, more of it is fetched ahead.
 */
bool generic_halves(const GenericPlan *, const TaskGrid *);

/* Chooses which axes of grid->order are tasks, and fills in ntask, cut, per, npart, ntasks: whole
 * axes until there are enough tasks, then perhaps parts of the next axis; if `order` has no further
 * one, of the axis of outer lanes, or of transposed tiles of the longer of that axis and
 * turned.across. Of a
 * target of blocks of threads (Isa.of_block) every point is a task. If no axis is cut, cut is
 * NO_AXIS, and per and npart stay as they are. Filled in before: grid->order and n, and lanes,
 * turned and blocked of the plan. work: of each outer point, in simple operations at hint sizes. */
void generic_choose_tasks(const PlanInput *, const GenericPlan *, TaskGrid *, double work);
/* Fills in ntasks, when all other fields are. */
void generic_count_tasks(const Nest *, TaskGrid *);
/* Returns the work at each outer point of the stages in the bit set: elements that are computed or
 * combined, at hint sizes. Stages from number 64 on always count. */
double generic_work_per_point(const Nest *, uint64_t stages);

/* Whether a stage combines elements along the axis into MAX_CHAINS results at once, which are
 * combined at the end: the stage is a reduction by one basic operation, the axis is the vector
 * axis, and it has at least 2 * MAX_CHAINS vectors at hint sizes. */
bool generic_has_chains(const GenericPlan *, const Stage *, uint32_t axis);

/* parts.c: plans phases in which tasks reduce parts of long rows, and later ones combine the
 * results. The plan's lanes, turned and blocked are filled in; the nest is the plan's, to change.
 * grid: of the kernel as one phase. before: the nest before axes were merged, which costs are
 * counted of. Fills in phase and parts of the plan, adds the axis of parts to the nest and returns
 * taken(); or refuses and changes nothing: the kernel has other stages than reductions of the same
 * rows and stores, has enough tasks as it is, rows are short, or the nest has MAX_AXES axes. */
MUST_LOOK Refusal parts_plan(const PlanInput *, GenericPlan *, Nest *, const TaskGrid *,
			     const Nest *before);

/* abreast.c. These need lanes and turned of the plan. */

/* Returns the one reduction that runs over blocks of COLUMN_BLOCK columns with its sums in local
 * memory. Returns NO_STAGE if none does: rows are short or stay in the caches, or the kernel has
 * another form. */
uint32_t abreast_blocked(const PlanInput *, const GenericPlan *);
/* Returns how many vectors of neighbouring points a phase reduces together (unroll-and-jam), 1 to
 * MAX_ABREAST, so that several loads, or dependent results, are under way; 1 without vectors. role:
 * what the phase does with each stage; NULL: all stages are whole. */
uint32_t abreast_points(const PlanInput *, const GenericPlan *, const StageRole *role);
/* Returns how many points of an outer axis have their rows combined element after element
 * (STAGE_RUNNING) in one loop (unroll-and-jam): 1 or MAX_ABREAST. Returns 1 with vectors, and if
 * the kernel has other stages. */
uint32_t abreast_rows(const PlanInput *, const GenericPlan *, uint32_t axis);
/* Returns the number of points along the vector axis of which each task but the last gets a
 * multiple, if that axis is divided among tasks. Needs plan->blocked, too. */
int64_t abreast_columns(const GenericPlan *);

/* transpose.c: finds the outer axis `along` which results are stored contiguously and the outer
 * axis `across` along which most loads are, so that tiles of *lanes by *lanes elements of these
 * loads are transposed in registers. Fills in *turned, *along and *lanes and returns taken(). If
 * there are no such loads, stages do more than store a value of each outer point, or the target has
 * no vectors, the result is taken(), too, with turned->across NO_AXIS, and *along and *lanes mean
 * nothing. Refuses, with turned->across NO_AXIS, if there are such loads but tiles would be mostly
 * empty. */
MUST_LOOK Refusal transpose_find(const PlanInput *, Turned *, uint32_t *along, uint32_t *lanes);
/* transpose.c: whether rows of running results are transposed in registers, so that lanes are
 * neighbouring rows. If so fills in *running, *along, the axis of the lanes, and *lanes. Rows are
 * read and written along themselves, are longer than two tiles, and there are as many as lanes. */
MUST_LOOK bool transpose_running(const PlanInput *, Turned *running, uint32_t *along,
				 uint32_t *lanes);
/* transpose.c: whether each point of an axis has 2 or 4 results that lie beside each other, and
 * every load goes along that axis or stays, so that vectors of points are interleaved. If so fills
 * in *turned, *along, the axis of the points, and *lanes. */
MUST_LOOK bool transpose_neighbours(const PlanInput *, Turned *, uint32_t *along, uint32_t *lanes);

#endif
