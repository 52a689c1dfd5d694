/* Schedules: kernels become loop IR, and a Program around them. All decisions are taken here. */
#ifndef WEFT_CODEGEN_PROGRAM_SCHEDULE_H
#define WEFT_CODEGEN_PROGRAM_SCHEDULE_H

#include "ir/target/target.h"
#include "ir/loop/program.h"

/* ---- one kernel ---- */

/* Of one launch. Operations: two for each product that joins a sum, one for each element of any
 * other stage that computes; moves, checks, random bits and sorting have none. Bytes: the elements
 * that are read, each once, however often, and those that are written, the same: what is replaced
 * in place counts as both; of a table the rows that indices select, no more than it has. */
typedef struct {
	const Cost *flops, *bytes;
} KernelCost;

/* What a launch of a phase passes for a buffer. */
typedef struct {
	enum { ARG_BUF, ARG_TEMP } kind;
	uint32_t k;           /* ARG_BUF: which buffer (BufId.i); ARG_TEMP: index into
	                         Schedule.temp */
	const Layout *packed; /* of a constant that is read in a layout of its own; NULL: as it
	                         is */
} SchedArg;

/* One function over tasks; all of them have ended when the next phase begins. */
typedef struct {
	LoopFn *f;
	Sym ntasks;
	KernelCost cost;
	uint32_t narg, nparam, nliteral;
	const SchedArg *arg;    /* by buffer of the function */
	const Sym *param;       /* parameters: these, then the literals */
	const int64_t *literal;
	bool opens; /* not in one phase of the program with launches before it: what fails in them
	               keeps it from happening */
	bool alone; /* opens, nothing shares its phase, and its task is executed by the thread that
	               called `run` */
} SchedPhase;

/* Memory that one phase leaves for later ones; it holds nothing before the first of them. */
typedef struct {
	const char *name;
	DType dtype;
	Sym numel;
	uint32_t first, last; /* phases that use it */
} SchedTemp;

typedef struct {
	const char *algorithm, *why;
	ARRAY(SchedPhase) phase; /* at least one */
	ARRAY(SchedTemp) temp;
	ARRAY(Refusal) refused; /* the schedules asked before, in order */
	double flops, bytes;    /* of one run at hint sizes, all phases */
	double cycles;          /* predicted, by one core of the target's machine; at hint sizes,
	                           all phases */
	uint32_t code;          /* statements of all phases */
} Schedule;

/* How a kernel runs on a target: a function of the kernel, of its buffers' shapes and layouts, and
 * of the target, and nothing else. The kernel is only read; functions are as simple as they get,
 * and new. */
Schedule *schedule_kernel(const Lowered *, const Kernel *, const Target *);

/* ---- constants ---- */

/* A load of a constant that a kernel would read in another layout than the constant is given in;
 * load 0: none. */
typedef struct {
	Kx load;
	Layout layout;
} LayoutWant;

/* What the schedule that takes the kernel packs where nothing is chosen yet. */
LayoutWant schedule_wants(const Lowered *, const Kernel *, const Target *);

/* A graph lowered for one target of several of a family. */
typedef struct {
	Lowered *lowered;
	const Target *target;
} ScheduleLevel;

/* Gives large constants that kernels want in different layouts the one in which all kernels of all
 * levels together take least time: a file holds each of them once. Others stay as they are. Before
 * any of the levels is scheduled. */
void choose_const_layouts(const ScheduleLevel *, uint32_t n);

/* ---- programs ---- */

typedef struct {
	bool no_plan; /* every buffer gets memory of its own */
	const Program *weights; /* the weight section begins with this program's: what both store
	                           the same way, they share. NULL: it is this program's own */
	bool plain; /* functions stay as schedules made them: nothing is legalised */
	const char *name; /* of the program; NULL: the first graph's */
} ScheduleOptions;

/* What an entry executes. Lowered for the program's target, each after the one before
 * (LowerOptions.after). */
typedef struct {
	const char *name; /* an identifier; the functions of "run" are `run` and `sizes`, those of
	                     others `entry_NAME_run`, .. */
	Lowered *lowered;
} ScheduleEntry;

/* The program of lowered graphs for a target, legal unless `plain`. NULL after ctx_error. */
Program *schedule_program(const ScheduleEntry *, uint32_t n, const Target *, const ScheduleOptions *);

#endif
