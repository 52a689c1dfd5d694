/* Evaluation of a kernel's expressions (Kx, ir/kernel/kernel.h) at a point, as loop IR (Lx,
 * ir/loop/loop.h).
 *
 * An Eval holds the loop function under construction and the point: the current scalar value of
 * every axis of the nest, and the axis that runs over vector lanes (the lane axis). eval_value
 * evaluates an expression there: to a scalar if the expression does not depend on the lane axis,
 * else to a vector. Evaluation adds statements at the end of the innermost open block of the
 * function. Values are remembered by all that they depend on (memo.h): a value that was computed
 * before a loop was opened is not computed again inside; one that was computed in a loop or branch
 * is not known behind it. The caller says what the point is, and the nest says what loads read
 * (codegen/plan/nest.h). */
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
	uint32_t run; /* the number of the computation that made it; 0: none has */
	Lx value;     /* of stage_keeps_value: scalar or vector */
	LMem local; /* of stage_keeps_row; with `lanes` values for each element if the lane axis is
		       an outer axis */
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

/* Makes *e ready for eval_start. made: the schedule whose temporaries (Schedule.temp) can be read;
 * there may be none yet. */
void eval_init(Eval *e, const Lowered *, const Schedule *made);
/* Begins the function f, which evaluates the nest: no axis and no stage has a value, values are
 * scalars, and the function has no arguments yet. */
void eval_start(Eval *, LoopFn *f, const Nest *);

/* ---- the point ---- */

/* Sets the value of an axis, of the lane axis that of lane 0; none: the axis has no value here. */
void eval_at(Eval *, uint32_t axis, Lx);
/* Sets the lane axis and the number of lanes; NO_AXIS and 1: values are scalars. Leaves the mask as
 * it is. */
void eval_lanes(Eval *, uint32_t axis, uint32_t lanes);
/* Sets the mask of the active lanes, a value with as many lanes; none: all lanes. */
void eval_mask(Eval *, Lx);
/* Opens a loop whose variable, from lo to hi - 1 by step, is the value of the axis. */
void eval_for(Eval *, uint32_t axis, Lx lo, Lx hi, int64_t step);
/* Closes the innermost loop that eval_for opened. Its axis has the value again that it had
 * before. */
void eval_end(Eval *);
/* Makes `value`, of x's compute dtype, and a vector if x varies with the lane axis, the value of x
 * at the current point and in the active lanes, until the innermost open block is closed. Has no
 * effect if x depends on an axis whose value reads a mutable variable: x is then evaluated as
 * usual, so `value` must be equal to x. */
void eval_assume(Eval *, Kx x, Lx value);

/* ---- values at the point ---- */

/* Puts a value into a new immutable variable of that name and returns the variable's value. Returns
 * an integer literal as it is, and adds nothing. */
Lx eval_let(Eval *, const char *name, Lx);
/* Returns the value of an expression of sizes, without axes: a literal; a parameter of the function
 * (added if it is new); or, because parameters are not negative, 0 or a parameter minus a
 * parameter. */
Lx eval_size(Eval *, Sym);
/* Returns the value of an index, an expression of axes, value variables and sizes, as an i64
 * scalar: that of lane 0. No value variable in the index may depend on the lane axis. An axis
 * without a value is an internal error. */
Lx eval_index(Eval *, Sym);
/* Returns the value of an index as a vector of i64 with the value of each lane; as a scalar if
 * e->lanes.n is 1. */
Lx eval_index_lanes(Eval *, Sym);
/* Returns the value of an expression in its compute dtype: a vector if it depends on the lane axis,
 * else a scalar. A stage that the expression reads and that has no result is an internal error. */
Lx eval_value(Eval *, Kx);
/* Returns the value of an expression in its compute dtype as a vector of e->lanes.n lanes: a value
 * that does not depend on the lane axis is in all lanes. A scalar if e->lanes.n is 1. */
Lx eval_vector(Eval *, Kx);
/* Returns the value of an expression, as eval_value has it, if it was computed or assumed and is
 * known at this point; else none, and computes nothing. */
Lx eval_known(Eval *, Kx);
/* Returns a value converted to a compute dtype, the value itself if it has the dtype. For a storage
 * dtype, the value is an f32: returns it rounded to that dtype, as an f32. */
Lx eval_convert(Eval *, Lx, DType);
/* Returns a vector with a scalar in all e->lanes.n lanes; a vector, and any value if e->lanes.n is
 * 1, as it is. */
Lx eval_splat(Eval *, Lx);
/* Whether the value of an expression depends on the lane axis; false if there is no lane axis. */
bool eval_varies(const Eval *, Kx);
/* Whether the lane axis is an outer axis: each lane has an outer point of its own. False if there
 * is no lane axis. */
bool eval_outer_vector(const Eval *);
/* Evaluates now those subexpressions of x, x included, that depend on no axis outside of the bit
 * set (bit k: axis k), so that a loop that is opened next does not evaluate them in each round.
 * The value variables in offsets of loads count as subexpressions, and are checked. Leaves out
 * constants, and a subexpression that reads a stage without a result, with all its parts. */
void eval_hoist(Eval *, Kx x, uint64_t axes);
/* Adds the check of a STAGE_CHECK stage: a failure unless its value is true in all active lanes. */
void eval_check(Eval *, uint32_t stage);

/* ---- results of stages ---- */

/* Says that a stage that keeps a value was computed, with this value as result. From now on
 * expressions that read the stage are evaluated anew. */
void eval_stage_value(Eval *, uint32_t stage, Lx);
/* Says that a stage was computed whose result is in memory (eval_store_local, eval_store_at). From
 * now on expressions that read the stage are evaluated anew. Adds no statement. */
void eval_stage_stored(Eval *, uint32_t stage);
/* Says that the result of the stage is not known any more: reading the stage is an internal error
 * until it is computed again. */
void eval_stage_over(Eval *, uint32_t stage);
/* Adds a task-local array of so many elements for a stage that keeps a row; each element
 * has all lanes if the lane axis is an outer axis. eval_store_local fills the array, and
 * eval_stage_stored says that it is filled. */
void eval_stage_local(Eval *, uint32_t stage, uint64_t elements);
/* Stores a value in the array of eval_stage_local, at the current point of the stage's axes, in the
 * active lanes; in all lanes if the lane axis is an outer axis. */
void eval_store_local(Eval *, uint32_t stage, Lx value);
/* Sets e->stage, the results by stage, to stage[], which has an element for each stage of the
 * kernel: for schedules that compute several points side by side. Keeps the pointer; the caller has
 * zeroed the elements of stages without a result. */
void eval_stages(Eval *, StageValue *stage);

/* ---- memory ---- */

/* Returns the memory of a buffer as an argument of the function, which is added if it is new. */
LMem eval_memory(Eval *, BufId);
/* Returns the memory of what a load reads (Nest.from: a buffer, a constant in a layout of its own,
 * or a temporary) as an argument of the function, which is added if it is new. */
LMem eval_load_memory(Eval *, Kx load);
/* Returns the memory of temporary `temp` of the schedule as an argument of the function, which is
 * added if it is new. */
LMem eval_temp_memory(Eval *, uint32_t temp);
/* Returns what temporary `temp` has at an offset in elements, in the compute dtype: one element, or
 * consecutive ones for the lanes if the offset depends on the lane axis. */
Lx eval_load_temp(Eval *, uint32_t temp, Sym offset);
/* Stores a value, of the compute dtype, in temporary `temp` at an offset in elements: a scalar in
 * one element; or, in the active lanes, consecutive elements if the offset depends on the lane
 * axis. */
void eval_store_temp(Eval *, uint32_t temp, Sym offset, Lx value);

/* An access at the current point: one element, consecutive elements, or an offset plus index
 * lanes. */
typedef struct {
	Lx offset, index; /* index none: one element or consecutive elements */
	bool vector;
} EvalAddress;

/* Returns the address at which a stage stores its result at the current point. An
 * index in the address that depends on data is clamped, and checked if ValueVar.check says so. */
EvalAddress eval_address(Eval *, uint32_t stage);
/* Returns the value that is stored at an address of the stage's buffer, in the compute dtype; of a
 * vector address, 0 in lanes that are not active. */
Lx eval_load_at(Eval *, uint32_t stage, EvalAddress);
/* Stores a value, converted to the buffer's dtype, at an address of the stage's buffer, in the
 * active lanes. */
void eval_store_at(Eval *, uint32_t stage, EvalAddress, Lx value);

#endif
