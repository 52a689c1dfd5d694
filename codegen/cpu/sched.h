/* Private to schedules: lowering the body of a kernel at a point of its axes.
 *
 * A Sched holds the loop function under construction, the current scalar value of every axis, and
 * the axis that runs over vector lanes. sched_value evaluates an expression there: a scalar when it
 * does not depend on the vector axis, else `lanes` values. Values are remembered, so what was
 * evaluated before a loop was opened is not computed again inside; what was evaluated in a loop or
 * branch is not known behind it. Within one block, whoever gives an axis another value forgets what
 * depends on it (sched_mark, sched_forget). */
#ifndef WEFT_CODEGEN_CPU_SCHED_H
#define WEFT_CODEGEN_CPU_SCHED_H

#include "codegen/program/schedule.h"
#include "ir/kernel/shape.h"
#include "ir/ops/op.h"

enum { MAX_AXES = 2 * MAX_KERNEL_AXES }; /* those of the kernel, and what they are merged into */

#define NO_AXIS UINT32_MAX

/* Where a stage's result can be read. */
typedef struct {
	bool done;
	Lx value;   /* RESULT_REGISTER: scalar or vector */
	LMem local; /* RESULT_LOCAL: as many lanes for each element where the vector axis is an outer one */
	uint32_t nmap;
	uint32_t map[MAX_RANK];  /* axes of `local`, slowest first: the lane axis, if it is one, is last */
	uint32_t from[MAX_RANK]; /* map[i] is axis from[i] of the stage */
} StageValue;

/* A value that has been computed: it is there in the block in which it was, and in the blocks
 * inside. */
typedef struct {
	Lx value;
	uint32_t depth; /* of the block, among those that were open */
	Lb block;
} SchedMemo;

typedef struct Sched {
	const Lowered *l;
	Ir *ir;
	SymTab *syms;
	Arena *arena;
	Kernel *k;      /* the schedule's own copy */
	KernelShape shape; /* before axes are merged */
	KernelCost cost;   /* of all stages */
	Schedule *out;
	LoopFn *f;      /* of the phase at hand */
	const Target *target;

	uint32_t naxis;
	Sym var[MAX_AXES], extent[MAX_AXES]; /* the kernel's axes, then those made by merging */
	Lx at[MAX_AXES];                     /* current value; of the vector axis: of lane 0 */
	Lx start[MAX_AXES], limit[MAX_AXES]; /* of axes of which the task has a part; none: all of it */
	uint64_t outer;                      /* the outer axes, by bit */
	uint32_t vaxis, lanes;
	Lx mask; /* active lanes, none: all */
	bool streamed; /* this phase wrote past the caches */

	uint64_t *deps;   /* by Kx: axes it depends on */
	Sym *offset;      /* by Kx: element offset of a KX_LOAD */
	Sym *store;       /* by stage: element offset of a RESULT_GLOBAL */
	const Layout **packed; /* by Kx: the layout of its own in which a constant is read; NULL: as it is */
	StageValue *stage;

	uint32_t *last_stage;     /* by Kx: number of the last stage it reads + 1, or 0 */
	uint32_t *visited, visit; /* by Kx: the last call of sched_hoist that met it */
	SchedMemo *memo;          /* by Kx, then by value variable */
	const Sym **position;     /* by value variable: ValueVar.at, in terms of var[] */
	Lx lane;                  /* none, or the lane of which index arithmetic is wanted */
	ARRAY(uint32_t) memo_log; /* to forget at the end of a scope */
	Intern part;              /* {call, Sym}: what index arithmetic met in the calls of sched_sym */
	ARRAY(Lx) part_value;
	uint32_t ncall, call;     /* how many there were, the one at hand */
	ARRAY(SchedArg) arg;      /* buffers of the function, by argument number */
	ARRAY(Sym) param;         /* what each parameter stands for */
} Sched;

/* Offsets and dependences of everything; layouts of l are final. The kernel is the schedule's own. */
void sched_init(Sched *, const Lowered *, Kernel *, const Target *);
/* Recompute deps after axes or offsets were rewritten. */
void sched_find_deps(Sched *);

uint64_t sched_axes(const Sched *, Sym);
/* Coefficient of an axis in an offset; false when the offset is not linear in it. */
MUST_LOOK bool sched_coef(const Sched *, Sym offset, uint32_t axis, Sym *coef);
MUST_LOOK bool sched_coef_is(const Sched *, Sym offset, uint32_t axis, int64_t value);

/* A buffer as an argument of the function: a new one when it is not among them yet. */
LMem sched_memory(Sched *, BufId);
/* What a load reads. */
LMem sched_load_memory(Sched *, Kx load);
/* A load may read its constant in that layout: nobody has chosen another one for all kernels. */
MUST_LOOK bool sched_may_repack(const Sched *, Kx load, const Layout *);
/* Let a load read its constant in another layout; the load's offset is then up to the caller. */
void sched_repack(Sched *, Kx load, const Layout *);
Lx sched_let(Sched *, const char *name, Lx); /* the value as a variable; a literal is itself */
Lx sched_size(Sched *, Sym);        /* no axes inside: a literal or a parameter */
Lx sched_sym(Sched *, Sym);         /* scalar, at the current point (lane 0 of the vector axis) */
Lx sched_sym_lanes(Sched *, Sym);   /* i64 lanes */
Lx sched_value(Sched *, Kx);        /* scalar or vector, compute dtype */
Lx sched_vector(Sched *, Kx);       /* splat when uniform */
Lx sched_known(
	const Sched *,
	Kx); /* its value where it has been computed; none: nowhere that can be seen from here */
void sched_give(Sched *, Kx, Lx);   /* its value in this scope */
Lx sched_convert(Sched *, Lx, DType); /* to a compute dtype, or f32 rounded to a storage dtype */
Lx sched_splat(Sched *, Lx);        /* to s->lanes unless it is a vector already */
bool sched_varies(const Sched *, Kx); /* depends on the vector axis */
bool sched_outer_vector(const Sched *); /* lanes are neighbouring points */

/* Evaluate now what is needed of x and depends on `axes` only. */
void sched_hoist(Sched *, Kx x, uint64_t axes);

/* Scopes: forget values computed since the mark. */
uint32_t sched_mark(const Sched *);
void sched_forget(Sched *, uint32_t mark);

/* An access at the current point: one element, consecutive ones, or index lanes added to an offset. */
typedef struct {
	Lx offset, index; /* index none: one element or consecutive ones */
	bool vector;
} SchedAddress;

/* One element or consecutive ones of a temporary. */
Lx sched_load_temp(Sched *, uint32_t temp, Sym offset);
void sched_store_temp(Sched *, uint32_t temp, Sym offset, Lx value);

/* Where a stage's result goes; the address is computed, and run-time checks are made, once. */
SchedAddress sched_address(Sched *, uint32_t stage);
Lx sched_load_at(Sched *, uint32_t stage, SchedAddress); /* what is there, compute dtype */
void sched_store_at(Sched *, uint32_t stage, SchedAddress, Lx value);
/* Store a value of the stage's dtype at the current point. */
void sched_store(Sched *, uint32_t stage, Lx value);
/* Identity and combination of a reduction; a value that is a product joins a sum by fma. */
Lx sched_identity(Sched *, ReduceKind, LType);
Lx sched_combine(Sched *, ReduceKind, Lx acc, Lx x);
Lx sched_fma(Sched *, Lx a, Lx b, Lx c); /* a * b + c, in two roundings without hardware fma */
Lx sched_accumulate(Sched *, const Stage *, Lx acc, Kx value);

/* Where the task's part of an axis begins and ends. */
Lx sched_start(Sched *, uint32_t axis);
Lx sched_limit(Sched *, uint32_t axis);
/* for at[axis] in [lo, hi) step; sched_end forgets values of the body. Returns the mark for sched_end. */
uint32_t sched_for(Sched *, uint32_t axis, Lx lo, Lx hi, int64_t step);
void sched_end(Sched *, uint32_t mark);
/* The loop over lanes of axis `vaxis` in [lo, hi): a main loop and a masked tail, each running
 * body(s, data) with s->mask set. A provably divisible extent has no tail. */
void sched_vector_loop(Sched *, uint32_t axis, Lx lo, Lx hi, bool divisible,
                       void (*body)(Sched *, void *), void *data);

/* check.c */
/* Fail unless 0 <= x < the variable's extent, with the index and where it stands. */
void sched_check_index(Sched *, uint32_t vvar, Lx x);
/* Of lanes that of s->lane, where there is one. */
Lx sched_lane(Sched *, Lx);
void sched_check(Sched *, uint32_t stage);
/* Axes a and b have become m. */
void sched_merge_positions(Sched *, uint32_t a, uint32_t b, uint32_t m);

/* serial.c: stages that run one after the other at an outer point. */
void sched_scatter(Sched *, uint32_t stage); /* one update */
void sched_sort(Sched *, uint32_t stage);    /* a row; the first of the four stages */

/* transpose.c: s->lanes vectors, the rows of a square, become its columns. */
void transpose_lanes(Sched *, Lx *row);

/* Phases: the function at hand is the next phase of the schedule, over that many tasks, and a new one begins. */
void sched_finish_phase(Sched *, Sym ntasks, KernelCost);
/* Memory that phases `first` to `last` share. Returns its number. */
uint32_t sched_temp(Sched *, SchedTemp);
LMem sched_temp_memory(Sched *, uint32_t temp);

/* What a schedule answers (Refusal; whoever asks fills in the schedule's name). */
static inline Refusal taken(void) { return (Refusal){.why = NULL}; }
/* The kernel has another form. */
static inline Refusal refuse(const char *why) { return (Refusal){.why = why}; }
/* The kernel has the schedule's form; an index, a size or a predicted cost decided. */
static inline Refusal refuse_near(const char *why) { return (Refusal){.why = why, .near = true}; }

/* Schedules. Each makes all phases and returns taken(), or refuses and changes nothing: the next schedule is asked with the
 * same Sched. */
typedef Refusal ScheduleFn(Sched *);
ScheduleFn schedule_depthwise, schedule_contract, schedule_generic;

/* Sets the constant that the schedule would pack, and the layout, if the schedule would take the kernel. Returns what the
 * schedule would answer. Changes nothing else. */
typedef Refusal WantsFn(const Sched *, LayoutWant *);
WantsFn depthwise_wants, contract_wants;

#endif
