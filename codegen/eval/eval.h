/* Evaluation of a kernel's expressions at a point, as loop IR.
 *
 * An Eval holds the loop function under construction, the current scalar value of every axis, and
 * the axis that runs over vector lanes. eval_value evaluates an expression there: a scalar if it
 * does not depend on the lane axis, else a vector. Values are remembered by all that they depend on
 * (memo.h): what was evaluated before a loop was opened is not computed again inside; what was
 * evaluated in a loop or branch is not known behind it. Whoever evaluates says where: which axes
 * have which value, which lanes there are, where loads read. */
#ifndef WEFT_CODEGEN_EVAL_EVAL_H
#define WEFT_CODEGEN_EVAL_EVAL_H

#include "codegen/eval/memo.h"
#include "codegen/program/schedule.h"

enum { MAX_AXES = 2 * MAX_KERNEL_AXES }; /* the kernel's axes, and those made by merging */

#define NO_AXIS UINT32_MAX

typedef struct {
	uint32_t n;
	Sym var[MAX_AXES], extent[MAX_AXES]; /* var none: the axis was merged into another */
	Lx at[MAX_AXES];                     /* the current value; of the lane axis: the value of
	                                        lane 0; none: no value here */
	uint64_t outer;                      /* the outer axes, by bit */
} EvalAxes;

typedef struct {
	uint32_t axis, n; /* NO_AXIS: values are scalars */
	Lx mask;          /* the active lanes; none: all */
} EvalLanes;

/* The result of a stage, for later stages. */
typedef struct {
	uint32_t run; /* which computation made it; 0: none has */
	Lx value;   /* RESULT_REGISTER: scalar or vector */
	LMem local; /* RESULT_LOCAL; with `lanes` values for each element if the lane axis is an
	               outer axis */
	uint32_t nmap;
	uint32_t map[MAX_RANK];  /* the axes of `local`, slowest first; the lane axis is last */
	uint32_t from[MAX_RANK]; /* map[i] is axis from[i] of the stage */
} StageValue;

/* Arguments of the function. */
typedef struct {
	ARRAY(SchedArg) arg;    /* buffers, by argument number */
	ARRAY(Sym) param;       /* the meaning of each parameter */
	const Schedule *made;   /* has the temporaries */
} EvalArgs;

/* An open loop over an axis. */
typedef struct {
	uint32_t axis;
	Lx before; /* the axis's value outside the loop */
} EvalLoop;

/* Private to this room. */
typedef struct {
	Memo memo;
	uint32_t *key;            /* room for one of the memo */
	uint32_t nrun;            /* computations of stages so far */
	ARRAY(EvalLoop) loop;     /* that are open, of eval_for */
	uint32_t *visited, visit; /* by Kx: the last call of eval_hoist that met it */
	const Sym **position;     /* by value variable: ValueVar.at, in terms of axes.var */
} EvalState;

/* Private to this room: index arithmetic. */
typedef struct {
	Lx lane;              /* the lane that is wanted; none: all */
	Intern part;          /* {call, Sym}: what was met in the calls of eval_index */
	ARRAY(Lx) value;      /* by part */
	uint32_t ncall, call; /* how many calls there were, the one at hand */
} EvalIndex;

/* Others read the fields, and set them by the functions below. */
typedef struct Eval {
	const Lowered *l;
	Kernel *k;        /* an own copy */
	SymTab *syms;
	Arena *arena;
	LoopFn *f;        /* the function under construction */
	EvalAxes axes;
	EvalLanes lanes;
	uint64_t *deps;   /* by Kx: the axes it depends on */
	uint64_t *reads;  /* by Kx: stages that it reads, as many bits as there are stages, in whole
	                     words */
	Sym *offset;      /* by Kx: the offset of a KX_LOAD, in elements */
	SchedArg *from;   /* by Kx: what a KX_LOAD reads */
	Sym *store;       /* by stage: the offset of a RESULT_GLOBAL, in elements */
	StageValue *stage;
	EvalArgs args;
	EvalState state;
	EvalIndex index;
} Eval;

/* Computes offsets and dependences. Layouts of l are final. The kernel belongs to the Eval, which
 * changes it. `made`: whose temporaries can be read; it may have none yet. */
void eval_init(Eval *, const Lowered *, Kernel *, const Schedule *made);
/* Begins a function: nothing has a value, and it has no arguments yet. */
void eval_start(Eval *, LoopFn *);

/* ---- axes and loads, before anything is evaluated ---- */

/* A new axis, its number. */
uint32_t eval_add_axis(Eval *, const char *name, Sym extent);
/* Replaces axes a and b, which are contiguous in every access, by a new axis that runs over both.
 * Returns its number. */
uint32_t eval_merge_axes(Eval *, uint32_t a, uint32_t b);
/* Axis `to` stands for `from`, in the kernel too. The caller calls eval_find_deps after the last
 * one. */
void eval_rename_axis(Eval *, uint32_t from, uint32_t to);
void eval_find_deps(Eval *);
/* Makes a load read elsewhere, at an offset that is an expression of axes, in elements. */
void eval_read(Eval *, Kx load, SchedArg from, Sym offset);
/* The load's constant in a layout of its own. */
SchedArg eval_packed(const Eval *, Kx load, const Layout *);
/* Whether a load may read its constant in the layout: no layout was chosen for all kernels. */
MUST_LOOK bool eval_may_repack(const Eval *, Kx load, const Layout *);

uint64_t eval_axes(const Eval *, Sym);
/* Sets *coef to the stride of an axis in an offset. Returns false if the offset is not linear in
 * the axis. */
MUST_LOOK bool eval_coef(const Eval *, Sym offset, uint32_t axis, Sym *coef);
MUST_LOOK bool eval_coef_is(const Eval *, Sym offset, uint32_t axis, int64_t value);
/* Whether every stage that x reads is one of the first n. */
bool eval_reads_below(const Eval *, Kx x, uint32_t n);

/* ---- the point ---- */

/* Sets the value of an axis; none: it has no value here. Of the lane axis it is lane 0's. */
void eval_at(Eval *, uint32_t axis, Lx);
/* Sets the lane axis (NO_AXIS: values are scalars) and the number of lanes. */
void eval_lanes(Eval *, uint32_t axis, uint32_t lanes);
/* Sets the active lanes; none: all. */
void eval_mask(Eval *, Lx);
/* Opens the loop for at[axis] in [lo, hi) by step. eval_end closes the innermost such loop and
 * restores the axis's value before it. */
void eval_for(Eval *, uint32_t axis, Lx lo, Lx hi, int64_t step);
void eval_end(Eval *);
/* Sets the value of x at the current point, until the innermost open block is closed. */
void eval_assume(Eval *, Kx x, Lx value);

/* ---- values at the point ---- */

Lx eval_let(Eval *, const char *name, Lx); /* the value in a variable; a literal stays a
                                              literal */
Lx eval_size(Eval *, Sym);        /* an expression of sizes, without axes: a literal, a parameter,
                                     or the difference of two if it may be negative */
Lx eval_index(Eval *, Sym);         /* a scalar (lane 0 of the lane axis) */
Lx eval_index_lanes(Eval *, Sym);   /* a vector of i64 */
Lx eval_value(Eval *, Kx);        /* a scalar or a vector of the compute dtype */
Lx eval_vector(Eval *, Kx);       /* always a vector */
Lx eval_known(Eval *, Kx);        /* the value if it was computed and is known here; else none */
Lx eval_convert(Eval *, Lx, DType); /* converts to a compute dtype, or rounds an f32 to a storage
                                       dtype */
Lx eval_splat(Eval *, Lx);        /* splats a scalar to all lanes */
bool eval_varies(const Eval *, Kx); /* whether the value depends on the lane axis */
bool eval_outer_vector(const Eval *); /* whether lanes are neighbouring points */
/* Hoists: evaluates now the subexpressions of x that depend on `axes` only. */
void eval_hoist(Eval *, Kx x, uint64_t axes);
/* A STAGE_CHECK. */
void eval_check(Eval *, uint32_t stage);

/* ---- results of stages ---- */

/* Sets the result of a stage; `stored`: the result is in memory. */
void eval_stage_value(Eval *, uint32_t stage, Lx);
void eval_stage_stored(Eval *, uint32_t stage);
/* The result of the stage is not known any more. */
void eval_stage_over(Eval *, uint32_t stage);
/* Gives a RESULT_LOCAL stage an array of so many elements; each has all lanes if the lane axis is
 * an outer axis. eval_store_local stores a value at the current point of the stage's axes. */
void eval_stage_local(Eval *, uint32_t stage, uint64_t elements);
void eval_store_local(Eval *, uint32_t stage, Lx value);
/* Results of stages are those from now on: one by stage. */
void eval_stages(Eval *, StageValue *);

/* ---- memory ---- */

/* The buffer as an argument of the function; added if it is not an argument yet. */
LMem eval_memory(Eval *, BufId);
/* The memory of a load, of a temporary. */
LMem eval_load_memory(Eval *, Kx load);
LMem eval_temp_memory(Eval *, uint32_t temp);
/* Loads and stores one element, or consecutive ones, of a temporary. */
Lx eval_load_temp(Eval *, uint32_t temp, Sym offset);
void eval_store_temp(Eval *, uint32_t temp, Sym offset, Lx value);

/* An access at the current point: one element, consecutive elements, or an offset plus index
 * lanes. */
typedef struct {
	Lx offset, index; /* index none: one element or consecutive elements */
	bool vector;
} EvalAddress;

/* The address of a stage's result; computed, and checked at run time, once. */
EvalAddress eval_address(Eval *, uint32_t stage);
Lx eval_load_at(Eval *, uint32_t stage, EvalAddress); /* the stored value, in the compute dtype */
void eval_store_at(Eval *, uint32_t stage, EvalAddress, Lx value);

#endif
