/* Plans. A plan says all that a schedule would do with a kernel. Making a
 * plan writes no code and changes nothing; code is written of a plan, and decides nothing. */
#ifndef WEFT_CODEGEN_PLAN_PLAN_H
#define WEFT_CODEGEN_PLAN_PLAN_H

#include "codegen/plan/nest.h"
#include "ir/ops/op.h"
#include "ir/kernel/shape.h"

/* Values of size symbols. */
typedef struct {
	uint32_t n;
	const Sym *var;
	const int64_t *value;
} PlanSizes;

/* What a plan follows from. */
typedef struct {
	const Nest *nest;
	KernelShape shape;
	KernelCost cost; /* of all stages */
	const Target *target;
	PlanSizes
		larger; /* sizes that are several times the hints; n 0: the kernel has no symbols */
	PlanSizes at;   /* sizes for which cycles are predicted; n 0: hints */
} PlanInput;

/* The value of an expression of sizes at `in->at`. */
int64_t plan_size(const PlanInput *in, Sym);
int64_t plan_extent(const PlanInput *in, uint32_t axis);
/* Sizes for which plans have to be good, too: all symbols in the nest's extents are several times
 * their hints, within their ranges. */
PlanSizes plan_larger_sizes(const Nest *);

/* The operations and bytes of the stages in the bit set, as functions of the size symbols. The
 * axes of the nest are not merged. */
KernelCost kernel_cost(const Nest *, uint64_t stages);

enum { MAX_FORMS = 2 };

typedef struct Plan {
	const char *algorithm, *why;
	double cycles; /* predicted, on one core of the target's machine, at hint sizes; all phases
			  together */
	double larger; /* the same at the input's larger sizes */
	LayoutWant want; /* the constant that the plan packs */
	uint32_t nrefused;
	Refusal refused[MAX_FORMS]; /* forms of the schedule that were refused */
	union {
		const struct ContractPlan *contract;
		const struct DepthwisePlan *depthwise;
		const struct GenericPlan *generic;
		const struct GpuPointsPlan *gpu_points;
	} of;
} Plan;

/* Fills in the plan of a schedule for a kernel and returns taken(); or refuses. Pure: the plan
 * depends on the input only. */
typedef Refusal PlanFn(const PlanInput *, Plan *);
PlanFn plan_depthwise, plan_contract, plan_generic;

/* print.c: what a plan decides, in lines. */
typedef void PrintFn(const Plan *, Text *);
PrintFn print_depthwise, print_contract, print_generic;

/* What a schedule answers (Refusal; whoever asks fills in the schedule's name). */
static inline Refusal taken(void)
{
	return (Refusal){.why = NULL};
}
/* The kernel has another form. */
static inline Refusal refuse(const char *why)
{
	return (Refusal){.why = why};
}
/* The kernel has the schedule's form; an index, a size or a predicted cost decided. */
static inline Refusal refuse_near(const char *why)
{
	return (Refusal){.why = why, .near = true};
}

#endif
