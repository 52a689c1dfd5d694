/* Schedules: kernels (ir/kernel/kernel.h) become loop functions (ir/loop/loop.h), and a Program
 * around them (ir/loop/program.h). All decisions are taken here and in codegen/cpu/. A schedule
 * cuts the work of a kernel into phases, and a phase into tasks, which threads execute in any
 * order. */
#ifndef WEFT_CODEGEN_PROGRAM_SCHEDULE_H
#define WEFT_CODEGEN_PROGRAM_SCHEDULE_H

#include "ir/target/target.h"
#include "ir/loop/program.h"

/* ---- one kernel ---- */

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

/* Returns the schedule of a kernel, in the arena of the Ir's context; every kernel has one. The
 * result depends only on the kernel, on its buffers' shapes and layouts, and on the target. The
 * functions are new and simplified, but not legal yet (legalise.h); the kernel stays unchanged. */
Schedule *schedule_kernel(const Lowered *, const Kernel *, const Target *);

/* ---- constants ---- */

/* The layout in which a kernel would read a constant, by a load of it; load 0: the kernel packs no
 * constant. */
typedef struct {
	Kx load;
	Layout layout;
} LayoutWant;

/* Returns the load of the constant that the kernel's schedule would pack, and its layout, if no
 * layout was chosen for all kernels before; load 0 if the schedule would pack none, and always for
 * a GPU. */
LayoutWant schedule_wants(const Lowered *, const Kernel *, const Target *);

/* A graph lowered for one level of a family of targets. */
typedef struct {
	Lowered *lowered;
	const Target *target;
} ScheduleLevel;

/* Chooses one layout for each large constant that kernels of the n > 0 levels want in different
 * layouts: the one with the least predicted time of all these kernels. A file then holds the
 * constant once. Sets and fixes the layouts of the constant's buffers; other constants stay
 * unchanged. Call it before scheduling any of the levels. */
void choose_const_layouts(const ScheduleLevel *, uint32_t n);

/* ---- programs ---- */

typedef struct {
	bool no_plan; /* no two buffers have memory in common (plan_memory) */
	const Program *weights; /* the weight section begins with this program's section, and equal
	                           constants are stored once; NULL: a section of its own */
	bool plain; /* nothing is legalised */
	const char *name; /* the program's name; NULL: that of the first graph */
} ScheduleOptions;

/* An entry of a program: a graph lowered for the program's target, after the graph of the entry
 * before (LowerOptions.after). */
typedef struct {
	const char *name; /* an identifier; the entry "run" has the functions `run` and `sizes`,
	                     others `entry_NAME_run` and the like */
	Lowered *lowered;
} ScheduleEntry;

/* Returns the program of n > 0 lowered graphs, one an entry, for a target, in the arena of the Ir's
 * context; legal unless `plain`. The options are not NULL. Returns NULL after an error: a size that
 * cannot be computed from the inputs, or the size of an output that is known within a branch or
 * loop only. */
Program *schedule_program(const ScheduleEntry *, uint32_t n, const Target *,
			  const ScheduleOptions *);

#endif
