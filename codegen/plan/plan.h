/* Plans. A plan says all that a schedule would do with a kernel. Making a
 * plan writes no code and changes nothing; code is written of a plan, and decides nothing. */
#ifndef WEFT_CODEGEN_PLAN_PLAN_H
#define WEFT_CODEGEN_PLAN_PLAN_H

#include "codegen/plan/nest.h"
#include "ir/op/op.h"
#include "ir/kernel/contraction.h"
#include "ir/target/micro.h"

/* Values of size symbols. */
typedef struct {
	uint32_t n;
	const Sym *var;
	const int64_t *value;
} PlanSizes;

/* What a plan follows from. */
typedef struct {
	const Nest *nest;
	Contraction contraction;    /* the kernel's one contraction; zeroed if there is none */
	const char *no_contraction; /* why there is none (kernel_no_contraction); NULL: there is. If
				       sums of blocks are added (Contraction.blocks), or an operand
				       is decoded (Contraction.decoded), it says that, too */
	uint32_t last_store;        /* kernel_last_store */
	KernelCost cost; /* of all stages */
	const Target *target;
	PlanSizes
		larger; /* sizes that are several times the hints; n 0: the kernel has no symbols */
	const MicroKernel *row; /* of a contraction: how it multiplies; NULL before it is chosen */
	PlanSizes at;   /* sizes for which cycles are predicted; n 0: hints */
} PlanInput;

/* Returns the value of an expression of sizes at the sizes in->at; at hint sizes if in->at does not
 * give all symbols of the expression. */
int64_t plan_size(const PlanInput *in, Sym);
/* Returns the extent of an axis at the sizes in->at, as plan_size does. */
int64_t plan_extent(const PlanInput *in, uint32_t axis);
/* Returns sizes for which plans have to be good, too: all symbols in the nest's extents (of more
 * than 32 the first ones) are 16 times their hints, or the end of their ranges if that is less. In
 * the nest's arena. */
PlanSizes plan_larger_sizes(const Nest *);

/* Returns the operations and bytes of the stages in the bit set, those from number 64 on always, as
 * functions of the size symbols, in the nest's arena. The nest is one of nest_new: its axes are not
 * merged, and every load reads its buffer. */
KernelCost kernel_cost(const Nest *, uint64_t stages);

enum { MAX_FORMS = 2 };

typedef struct Plan {
	const char *algorithm, *why;
	double cycles; /* predicted, on one core of the target's machine, at hint sizes; all phases
			  together */
	double larger; /* the same at the input's larger sizes */
	GpuTime time;  /* of a GPU: what makes up `cycles` */
	LayoutWant want; /* the constant that the plan packs */
	uint32_t nrefused;
	Refusal refused[MAX_FORMS]; /* forms of the schedule that were refused */
	union {
		const struct ContractPlan *contract;
		const struct AttentionPlan *attention;
		const struct WeightedPlan *weighted;
		const struct DepthwisePlan *depthwise;
		const struct GenericPlan *generic;
		const struct GpuPointsPlan *gpu_points;
		const struct GpuPiecesPlan *gpu_pieces;
		const struct GpuRowsPlan *gpu_rows;
		const struct GpuContractPlan *gpu_contract;
	} of;
} Plan;

/* Returns how many times longer than another plan a plan takes, at the hints or at larger sizes,
 * whichever is worse; at least 1. */
double plan_worst(const Plan *, const Plan *other);

/* Fills in the plan of a schedule for a kernel, which the caller has zeroed, and returns taken();
 * or refuses, and the plan means nothing. Pure: the plan depends on the input only, and nothing but
 * the arena of the nest changes. plan_generic takes every kernel. */
typedef Refusal PlanFn(const PlanInput *, Plan *);
PlanFn plan_depthwise, plan_contract, plan_generic;

/* Add to the text what a plan of that schedule decided: one line for each phase, with a
 * newline between. */
typedef void PrintFn(const Plan *, Text *);
PrintFn print_depthwise, print_contract, print_generic;

/* Add pieces of such a text: axes with their extents behind `what`, unless there are none; the
 * number of tasks; the phase that copies an operand. */
struct CopyPlan;
void plan_print_axes(const Nest *, const char *what, const uint32_t *axis, uint32_t count,
		     Text *out);
void plan_print_tasks(const Nest *, Sym ntasks, Text *out);
void plan_print_copy(const struct CopyPlan *, Text *out);

/* What a schedule answers. Whoever asks fills in Refusal.schedule. */

/* Returns the answer that the schedule takes the kernel. */
static inline Refusal taken(void)
{
	return (Refusal){.why = NULL};
}
/* Returns a refusal, because the kernel does not have the schedule's form. The pointer `why`, the
 * reason, is kept. */
static inline Refusal refuse(const char *why)
{
	return (Refusal){.why = why};
}
/* Returns a refusal of a kernel that has the schedule's form, because of an index, a size or a
 * predicted cost. The pointer `why`, the reason, is kept. */
static inline Refusal refuse_near(const char *why)
{
	return (Refusal){.why = why, .near = true};
}

/* ---- which plan takes a kernel: that with the least predicted cycles (plan.c) ---- */

/* A schedule, as the first member of a row of a table of schedules. */
typedef struct {
	const char *name;
	PlanFn *plan;
	PrintFn *print;
	bool bounded; /* whether it takes kernels with bounds of axes that depend on data */
} PlanRow;

/* Returns why a plan is refused that is slower than the best, which is that of `row`: a text in the
 * arena. */
typedef const char *SlowerFn(Arena *, const Plan *, const PlanRow *row, const Plan *best);

/* Zero a Choice, but for `slower`, before its first use. */
typedef struct {
	SlowerFn *slower;
	const PlanRow *row; /* of the plan at hand; NULL: no row has taken the kernel */
	PlanInput in;       /* of the plan */
	Plan plan;
	ARRAY(Refusal) refused; /* by whom, and why */
} Choice;

/* Returns what plans for a kernel follow from, with cycles predicted at hint sizes (`at` is empty).
 * The nest is that of a copy of the kernel whose axes kernel_split_axes has split; packs: as
 * there. */
PlanInput plan_input(const Lowered *, const Kernel *, const Target *, bool packs);
/* Sets the input's contraction, no_contraction and last_store to those of the nest's kernel. */
void plan_find_contraction(PlanInput *);
/* Returns the refusal of a kernel with an axis whose bounds depend on data (kernel_is_plain). */
Refusal plan_refuse_bounds(void);
/* Asks the schedule of a row for a plan. The plan becomes the choice if there is none yet, or if
 * the plan is predicted to be clearly faster; otherwise, and if the schedule refuses, a refusal is
 * added. A plan that is replaced becomes a refusal, too. */
void choice_consider(Choice *, const PlanRow *, const PlanInput *);
/* Sets the schedule's algorithm, why and plan to those of the choice, which has a row. */
void choice_tell(const Choice *, Schedule *);
/* Adds the refusals to those of the schedule: of rows, then of forms of the plan's schedule. */
void choice_tell_refused(const Choice *, Schedule *);

#endif
