/* Private to schedules: lowering the body of a kernel at a point of its axes.
 *
 * A Sched holds the loop function under construction, the current scalar value of every axis, and
 * the axis that runs over vector lanes. sched_value evaluates an expression there: a scalar when it
 * does not depend on the vector axis, else `lanes` values. Values are remembered, so what was
 * evaluated before a loop was opened is not computed again inside; what was evaluated in a loop or
 * branch is not known behind it. */
#ifndef WEFT_CODEGEN_CPU_SCHED_H
#define WEFT_CODEGEN_CPU_SCHED_H

#include "codegen/eval/memo.h"
#include "codegen/program/schedule.h"
#include "ir/kernel/shape.h"
#include "ir/ops/op.h"

enum { MAX_AXES = 2 * MAX_KERNEL_AXES }; /* the kernel's axes, and those made by merging */

#define NO_AXIS UINT32_MAX

/* The result of a stage, for later stages. */
typedef struct {
	uint32_t run; /* which computation made it; 0: none has */
	Lx value;   /* RESULT_REGISTER: scalar or vector */
	LMem local; /* RESULT_LOCAL; with `lanes` values for each element if the vector axis is an
	               outer axis */
	uint32_t nmap;
	uint32_t map[MAX_RANK];  /* the axes of `local`, slowest first; the lane axis is last */
	uint32_t from[MAX_RANK]; /* map[i] is axis from[i] of the stage */
} StageValue;

/* An open loop over an axis. */
typedef struct {
	uint32_t axis;
	Lx before; /* the axis's value outside the loop */
} SchedLoop;

typedef struct Sched {
	const Lowered *l;
	Ir *ir;
	SymTab *syms;
	Arena *arena;
	Kernel *k;      /* the schedule's own copy */
	KernelShape shape; /* before axes are merged */
	KernelCost cost;   /* of all stages */
	Schedule *out;
	LoopFn *f;      /* the function of the current phase */
	const Target *target;

	uint32_t naxis;
	Sym var[MAX_AXES], extent[MAX_AXES]; /* the kernel's axes, then those made by merging */
	Lx at[MAX_AXES];                     /* the current value; of the vector axis: the value of
	                                        lane 0 */
	Lx start[MAX_AXES], limit[MAX_AXES]; /* the task's part of an axis; none: the whole axis */
	uint64_t outer;                      /* the outer axes, by bit */
	uint32_t vaxis, lanes;
	Lx mask; /* the active lanes; none: all */
	bool streamed; /* this phase has streaming stores */

	uint64_t *deps;   /* by Kx: the axes it depends on */
	Sym *offset;      /* by Kx: the offset of a KX_LOAD, in elements */
	Sym *store;       /* by stage: the offset of a RESULT_GLOBAL, in elements */
	SchedArg *from;   /* by Kx: what a KX_LOAD reads */
	StageValue *stage;

	uint64_t *reads; /* by Kx: stages that it reads, as many bits as there are stages, in whole
			    words */
	uint32_t nrun;   /* computations of stages so far */
	ARRAY(SchedLoop) loop;    /* that are open, of sched_for */
	uint32_t *visited, visit; /* by Kx: the last call of sched_hoist that met it */
	Memo memo;
	uint32_t *key;            /* room for one of the memo */
	const Sym **position;     /* by value variable: ValueVar.at, in terms of var[] */
	Lx lane;                  /* none, or the lane of which index arithmetic is wanted */
	Intern part;              /* {call, Sym}: what index arithmetic met in the calls of
	                             sched_sym */
	ARRAY(Lx) part_value;
	uint32_t ncall, call;     /* how many there were, the one at hand */
	ARRAY(SchedArg) arg;      /* buffers of the function, by argument number */
	ARRAY(Sym) param;         /* what each parameter stands for */
} Sched;

/* Begins a schedule of a kernel: fills in the Sched, computes offsets and dependences, and begins
 * the first function. Layouts of l are final. The kernel belongs to the schedule, which changes
 * it. */
void sched_init(Sched *, const Lowered *, Kernel *, const Target *);

/* ---- axes, before anything is evaluated ---- */

/* A new axis, its number. */
uint32_t sched_add_axis(Sched *, const char *name, Sym extent);
/* Replaces axes a and b, which are contiguous in every access, by a new axis that runs over both.
 * Returns its number. */
uint32_t sched_merge_axes(Sched *, uint32_t a, uint32_t b);
/* Axis `to` stands for `from`, in the kernel too. The caller calls sched_find_deps after the last
 * one. */
void sched_rename_axis(Sched *, uint32_t from, uint32_t to);
void sched_find_deps(Sched *);

/* ---- the point ---- */

/* Sets the value of an axis; none: it has no value here. Of the lane axis it is lane 0's. */
void sched_at(Sched *, uint32_t axis, Lx);
/* Sets the lane axis (NO_AXIS: values are scalars) and the number of lanes. */
void sched_lanes(Sched *, uint32_t axis, uint32_t lanes);
/* Sets the active lanes; none: all. */
void sched_mask(Sched *, Lx);
/* The task has [lo, hi) of an axis. */
void sched_part(Sched *, uint32_t axis, Lx lo, Lx hi);

uint64_t sched_axes(const Sched *, Sym);
/* Sets *coef to the stride of an axis in an offset. Returns false if the offset is not linear in
 * the axis. */
MUST_LOOK bool sched_coef(const Sched *, Sym offset, uint32_t axis, Sym *coef);
MUST_LOOK bool sched_coef_is(const Sched *, Sym offset, uint32_t axis, int64_t value);

/* The buffer as an argument of the function; added if it is not an argument yet. */
LMem sched_memory(Sched *, BufId);
/* The memory of a load. */
LMem sched_load_memory(Sched *, Kx load);
/* Whether a load may read its constant in the layout: no layout was chosen for all kernels. */
MUST_LOOK bool sched_may_repack(const Sched *, Kx load, const Layout *);
/* Makes a load read elsewhere, before anything is evaluated: at an offset that is an expression of
 * axes, in elements. The operand in a layout of its own: */
void sched_read(Sched *, Kx load, SchedArg from, Sym offset);
SchedArg sched_packed(const Sched *, Kx load, const Layout *);
Lx sched_let(Sched *, const char *name, Lx); /* the value in a variable; a literal stays a
                                                literal */
Lx sched_size(Sched *, Sym);        /* an expression of sizes, without axes: a literal, a parameter,
                                       or the difference of two if it may be negative */
Lx sched_sym(Sched *, Sym);         /* a scalar, at the current point (lane 0 of the vector axis) */
Lx sched_sym_lanes(Sched *, Sym);   /* a vector of i64 */
Lx sched_value(Sched *, Kx);        /* a scalar or a vector of the compute dtype */
Lx sched_vector(Sched *, Kx);       /* always a vector */
Lx sched_known(Sched *, Kx);        /* the value if it was computed and is known here; else none */
/* Sets the value at the current point, until the innermost open block is closed. */
void sched_assume(Sched *, Kx, Lx);
Lx sched_convert(Sched *, Lx, DType); /* converts to a compute dtype, or rounds an f32 to a storage
                                         dtype */
Lx sched_splat(Sched *, Lx);        /* splats a scalar to s->lanes */
bool sched_varies(const Sched *, Kx); /* whether the value depends on the vector axis */
bool sched_outer_vector(const Sched *); /* whether lanes are neighbouring points */

/* Hoists: evaluates now the subexpressions of x that depend on `axes` only. */
void sched_hoist(Sched *, Kx x, uint64_t axes);

/* Sets the result of a stage; `stored`: the result is in memory. */
void sched_stage_value(Sched *, uint32_t stage, Lx);
void sched_stage_stored(Sched *, uint32_t stage);
/* The result of the stage is not known any more. */
void sched_stage_over(Sched *, uint32_t stage);
/* Gives a RESULT_LOCAL stage an array of so many elements; each has all lanes if the vector axis is
 * an outer axis. sched_store_local stores a value at the current point of the stage's axes. */
void sched_stage_local(Sched *, uint32_t stage, uint64_t elements);
void sched_store_local(Sched *, uint32_t stage, Lx value);
/* Results of stages are those from now on: one by stage. */
void sched_stages(Sched *, StageValue *);
/* Whether every stage that x reads is one of the first n. */
bool sched_reads_below(const Sched *, Kx x, uint32_t n);

/* An access at the current point: one element, consecutive elements, or an offset plus index
 * lanes. */
typedef struct {
	Lx offset, index; /* index none: one element or consecutive elements */
	bool vector;
} SchedAddress;

/* Loads and stores one element, or consecutive ones, of a temporary. */
Lx sched_load_temp(Sched *, uint32_t temp, Sym offset);
void sched_store_temp(Sched *, uint32_t temp, Sym offset, Lx value);

/* The address of a stage's result; computed, and checked at run time, once. */
SchedAddress sched_address(Sched *, uint32_t stage);
Lx sched_load_at(Sched *, uint32_t stage, SchedAddress); /* the stored value, in the compute
                                                            dtype */
void sched_store_at(Sched *, uint32_t stage, SchedAddress, Lx value);
/* Stores a value of the stage's dtype at the current point. */
void sched_store(Sched *, uint32_t stage, Lx value);
/* The identity of a reduction, and acc combined with x. sched_accumulate adds a product by fma. */
Lx sched_identity(Sched *, ReduceKind, LType);
Lx sched_combine(Sched *, ReduceKind, Lx acc, Lx x);
Lx sched_fma(Sched *, Lx a, Lx b, Lx c); /* a * b + c, in two roundings without hardware fma */
Lx sched_accumulate(Sched *, const Stage *, Lx acc, Kx value);

/* The first index, and the end, of the task's part of an axis. */
Lx sched_start(Sched *, uint32_t axis);
Lx sched_limit(Sched *, uint32_t axis);
/* Opens the loop for at[axis] in [lo, hi) by step. sched_end closes the innermost such loop and
 * restores the axis's value before it. */
void sched_for(Sched *, uint32_t axis, Lx lo, Lx hi, int64_t step);
void sched_end(Sched *);
/* The loop over axis in [lo, hi) by vectors: a main loop and a masked remainder. Calls body(s,
 * data) for each, with s->mask set. divisible: there is no remainder. */
void sched_vector_loop(Sched *, uint32_t axis, Lx lo, Lx hi, bool divisible,
                       void (*body)(Sched *, void *), void *data);

/* check.c */
/* Records a failure unless 0 <= x < the variable's extent, with the index and its position. */
void sched_check_index(Sched *, uint32_t vvar, Lx x);
/* The value of lane s->lane of a vector, if s->lane is set. */
Lx sched_lane(Sched *, Lx);
void sched_check(Sched *, uint32_t stage);

/* serial.c: stages that run one after the other at an outer point. */
void sched_scatter(Sched *, uint32_t stage); /* one update of a scatter */
void sched_sort(Sched *, uint32_t stage);    /* sorts a row; stage: the first of the four stages */

/* transpose.c: s->lanes vectors, the rows of a square, become its columns. */
void transpose_lanes(Sched *, Lx *row);

/* Ends the current function, which becomes the next phase of the schedule with ntasks tasks, and
 * begins a new function. */
void sched_finish_phase(Sched *, Sym ntasks, KernelCost);
/* Adds memory that phases `first` to `last` use. Returns its number. */
uint32_t sched_temp(Sched *, SchedTemp);
LMem sched_temp_memory(Sched *, uint32_t temp);

/* What a schedule answers (Refusal; whoever asks fills in the schedule's name). */
static inline Refusal taken(void) { return (Refusal){.why = NULL}; }
/* The kernel has another form. */
static inline Refusal refuse(const char *why) { return (Refusal){.why = why}; }
/* The kernel has the schedule's form; an index, a size or a predicted cost decided. */
static inline Refusal refuse_near(const char *why) { return (Refusal){.why = why, .near = true}; }

/* Schedules. Each makes all phases and returns taken(), or refuses and changes nothing: the next
 * schedule is asked with the same Sched. */
typedef Refusal ScheduleFn(Sched *);
ScheduleFn schedule_depthwise, schedule_contract, schedule_generic;

/* Sets the constant that the schedule would pack, and the layout, if the schedule would take the
 * kernel. Returns what the schedule would answer. Changes nothing else. */
typedef Refusal WantsFn(const Sched *, LayoutWant *);
WantsFn depthwise_wants, contract_wants;

#endif
