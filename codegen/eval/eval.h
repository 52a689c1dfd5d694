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
#include "codegen/plan/nest.h"

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
	SymTab *syms;
	Arena *arena;
	const Nest *nest; /* of the function under construction */
	const Kernel *k;  /* nest->k */
	LoopFn *f;        /* the function under construction */
	Lx at[MAX_AXES];  /* the current value of an axis; of the lane axis: the value of lane 0;
			     none: no value here */
	EvalLanes lanes;
	StageValue *stage;
	EvalArgs args;
	EvalState state;
	EvalIndex index;
} Eval;

/* `made`: whose temporaries can be read; it may have none yet. */
void eval_init(Eval *, const Lowered *, const Schedule *made);
/* Begins a function, which evaluates the nest: nothing has a value, there are no lanes, and the
 * function has no arguments yet. */
void eval_start(Eval *, LoopFn *, const Nest *);

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
