/* What a schedule makes of a kernel (ir/kernel/kernel.h): loop functions (ir/loop/loop.h), whose
 * work is cut into phases, and a phase into tasks, which threads execute in any order. Plans decide
 * on it (codegen/plan), codegen/cpu and codegen/gpu make it, codegen/program asks for it. */
#ifndef WEFT_CODEGEN_SCHEDULE_SCHEDULE_H
#define WEFT_CODEGEN_SCHEDULE_SCHEDULE_H

#include "ir/loop/program.h"
#include "ir/target/target.h"

/* The costs of one launch. flops: two for each product that is added to a sum, one for each element
 * of another stage that computes; moves, checks, random bits and sorting count 0. bytes: each
 * element that is read or written counts once; an element replaced in place counts twice; of an
 * embedding the selected rows, at most all. */
typedef struct {
	const Cost *flops, *bytes;
} KernelCost;

/* The argument that a launch of a phase passes for a buffer. */
typedef struct {
	enum { ARG_BUF, ARG_TEMP } kind;
	uint32_t k;           /* ARG_BUF: BufId.i; ARG_TEMP: index in Schedule.temp */
	const Layout *packed; /* for a constant that is read in a layout of its own; NULL: its
	                         layout is unchanged */
} SchedArg;

/* One function over tasks. All tasks end before the next phase begins. */
typedef struct {
	LoopFn *f;
	Sym ntasks;
	KernelCost cost;
	uint32_t narg, nparam, nliteral;
	const SchedArg *arg;    /* by buffer argument of the function */
	const Sym *param;       /* the parameters are `param`, then `literal` */
	const int64_t *literal;
	bool opens; /* begins a phase of the program: a failure in an earlier launch must keep this
	               one from running */
	bool alone; /* begins a phase, and is alone in it; the thread that called `run` executes the
	               task */
} SchedPhase;

/* Memory between phases. It holds nothing before its first phase. */
typedef struct {
	const char *name;
	DType dtype;
	Sym numel;
	uint32_t first, last; /* the first and last phase that use it */
} SchedTemp;

typedef struct {
	const char *plan;            /* see WeftKernelInfo.plan */
	const char *algorithm, *why; /* for reports: the name of the schedule, and its parameters */
	ARRAY(SchedPhase) phase; /* at least one */
	ARRAY(SchedTemp) temp;
	ARRAY(Refusal) refused; /* the refusals, in the order in which schedules were asked */
	double flops, bytes;    /* of one run at hint sizes; all phases together */
	GpuTime time;           /* of a GPU: estimated at hint sizes, all phases together */
	double cycles;          /* predicted, on one core of the target's machine, at hint sizes;
	                           all phases together */
	uint32_t code;          /* the number of statements; all phases together */
} Schedule;

/* The layout in which a kernel would read a constant, by a load of it; load 0: the kernel packs no
 * constant. */
typedef struct {
	Kx load;
	Layout layout;
} LayoutWant;

/* Makes the schedule of a kernel, in the arena of the Ir's context; every kernel has one. The
 * result depends only on the kernel, on its buffers' shapes and layouts, and on the target. The
 * functions are new and simplified, but not legal yet (codegen/legal/legalise.h); the kernel stays
 * unchanged. */
typedef Schedule *ScheduleKernel(const Lowered *, const Kernel *, const Target *);
/* Returns the load of the constant that the kernel's schedule would pack, and its layout, if no
 * layout was chosen for all kernels before; load 0 if the schedule would pack none. */
typedef LayoutWant ScheduleWants(const Lowered *, const Kernel *, const Target *);

#endif
