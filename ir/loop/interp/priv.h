/* Private to ir/loop/interp: memory with its shadow, and functions being executed. "Returns
 * false after a finding" or "after loop_stop": the call of `sizes` or `run` ends here, because of a
 * finding, a failure of the model, or too much work, which loop_stop has recorded. */
#ifndef WEFT_IR_LOOP_INTERP_PRIV_H
#define WEFT_IR_LOOP_INTERP_PRIV_H

#include "ir/loop/interp/interp.h"

/* ---- memory (memory.c) ---- */

/* Phases count from 1: 0 is never. */
typedef struct {
	uint32_t phase, task;
} Touch;

/* Of one byte. */
typedef struct {
	Touch write, read;
	uint32_t owner; /* ProgramArg.owner of the buffer through which it was written; 0: not
	                   known */
} Shadow;

/* Of one byte that threads of a block have in common: who touched it last, and in which epoch.
 * Epochs count the barriers of all blocks of a call from 1, so that a byte which a block never
 * wrote has an epoch before its first one. */
typedef struct {
	uint32_t write, read;    /* epochs; write: UNDER_WAY while a copy is */
	uint16_t writer, reader; /* threads; reader: SEVERAL_THREADS */
} Cell;

#define UNDER_WAY UINT32_MAX
#define SEVERAL_THREADS UINT16_MAX

#define SEVERAL_TASKS UINT32_MAX
#define BEFORE_THE_CALL UINT32_MAX /* Touch.phase: state has values */
#define FAILED_CALL   UINT32_MAX /* Failure.id: of an LS_CALL */

/* What LX_ADDR counts: an input, an output, the weights, the workspace, the state. */
typedef struct {
	const char *name;
	char *data;
	uint64_t bytes;
	uint32_t align;
	Shadow *shadow; /* NULL: holds its values from the start, and is not written */
	Cell *cell;     /* by byte, as `shadow`, if the program has blocks of threads */
	uint16_t *depth; /* of the float that begins at a byte; NULL: not asked for, or 0 */
} Region;

/* A buffer argument of a kernel. */
typedef struct {
	const char *name;
	Region *region;
	uint64_t first, bytes; /* within the region */
	uint32_t owner;
} View;

/* One call of `sizes` or `run`. */
typedef struct {
	const Program *program;
	const ProgramEntry *entry; /* of it */
	Arena *arena;
	LoopReport *report;
	LoopOutcome outcome;
	uint64_t left; /* statements */
	uint32_t epoch; /* of the block that is executed */
	bool blocks;    /* kernels have blocks of threads */
	uint32_t phase;
	bool same_phase;         /* the next launch is of this phase */
	uint32_t first_task; /* of a launch: tasks of a phase are counted through its launches */
	Region *region;
	uint32_t nregion;
	int64_t *slot;         /* of sizes, where results go */
	void *const *buf;      /* of run */
	uint32_t nsize;        /* symbols with values, and their values: the entry's, then those
	                          that LS_READ gave */
	Sym *size;
	int64_t *size_value;
	const int64_t *extent; /* of sizes; NULL: `run` is executed */
	const char *call; /* the kernel instance being executed; NULL: none */
	struct Failure {
		uint32_t task, thread, id; /* the first check that failed; id 0: none */
		int64_t arg[MAX_FAIL_ARGS];
		char told[480]; /* FAILED_CALL: the message */
	} failure;
	struct Saved *saved; /* the last one; put back if the call fails */
	struct FnPlan **plan; /* by index into Program.fn; of run */
} Interp;

/* Returns the most statements that the call may execute: LoopReport.limit or its default. */
uint64_t statement_limit(const Interp *);

/* Who accesses memory, for the shadow and for messages. */
typedef struct {
	Interp *in;
	const LoopFn *f;
	const LsData *s; /* NULL: around statements */
	uint32_t task, thread; /* thread: of a block */
} Access;

/* Records a finding by loop_stop, as "loop IR of CALL (kernel FUNCTION), task 3: load x: ...", for
 * blocks with the thread; outside of kernels as "loop IR of FUNCTION: load x: ...". Returns
 * false. */
bool loop_finding(const Access *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Records outcome and message, unless an outcome was recorded before. Returns false. */
bool loop_stop(Interp *, LoopOutcome, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Checks that bytes at .. at + n - 1 of the buffer are within it, and records no access. write: for
 * the message. Returns false after a finding. */
bool view_has(const Access *, const View *, int64_t at, uint32_t n, bool write);
/* Checks an access to these bytes of the buffer as view_has, then by the shadow of their region,
 * and for blocks by its cells; records the access there, and sets *out to the address of the first
 * byte. Of a region without a shadow reading is allowed, and writing is a finding. Returns false
 * after a finding. */
bool view_touch(const Access *, const View *, int64_t at, uint32_t n, bool write, char **out);
/* Checks an access of a thread of a block to n bytes, by their n cells from `cell` on, and records
 * it there. The first is byte `at` of the memory `name`, for the message. Returns false after a
 * finding. */
bool cells_touch(const Access *, Cell *cell, const char *name, uint64_t at, uint32_t n, bool write);
/* Checks that every byte of an output's region was written. Returns false after a finding. */
bool region_complete(const Access *, const Region *);

/* ---- execution (exec.c) ---- */

/* What stays the same for all launches of a function. */
typedef struct FnPlan {
	LoopIndex index;
	bool *fixed; /* by expression: computed from literals, parameters and the thread only */
	uint64_t *bytes;  /* by variable: of a local or shared array */
	uint64_t *shared; /* by variable: where a shared array lies */
	uint64_t shared_bytes;
	uint32_t nest; /* the most loops and branches in one another */
} FnPlan;

enum { LOCKSTEP = 16 }; /* tasks at most; of a function with blocks the threads of one */

/* A copy to shared memory that a thread began. */
typedef struct {
	const LsData *s;
	uint32_t thread, group, n;
	uint64_t to; /* byte of shared memory */
	const char *from; /* NULL: zeros */
	char data[SHARED_ALIGN];
	uint16_t depth[SHARED_ALIGN];
} BlockCopy;

/* What the threads of a block have in common. */
typedef struct {
	char *data;      /* shared memory */
	Cell *cell;      /* by byte */
	uint16_t *depth; /* by byte, where an element begins; NULL: not asked for */
	uint32_t first;  /* epoch of the block that is executed */
	uint32_t *committed; /* by thread: groups of copies */
	ARRAY(BlockCopy) copy; /* under way */
} Block;

/* By thread, of a loop or branch that is executed. */
typedef struct {
	bool *on, *other;
	int64_t *end;
} Level;

/* A function in lockstep. Values lie thread by thread, lane by lane, in their natural
 * representation. */
typedef struct Exec {
	Access at;
	const LoopFn *f;
	FnPlan *plan;
	const int64_t *param;
	const View *view;
	uint32_t n;          /* threads */
	uint32_t *task;      /* by thread */
	Block *block;        /* NULL: threads are tasks */
	Level *level;        /* by loop and branch around the statement */
	uint32_t nest;       /* how many are around it */
	char **value;        /* by expression; NULL: no memory yet */
	uint32_t *stamp;     /* by expression: the statement that computed it */
	uint32_t now;        /* the statement */
	char **var;          /* by variable: its value; the elements of a local array */
	uint8_t **written;   /* by variable: of a local array's bytes */
	bool *streamed;          /* by thread: past the caches, without a fence so far */
	uint16_t **depth;        /* by expression, as `value`; NULL: not asked for */
	uint16_t **var_depth;    /* by variable */
	bool (*program)(struct Exec *, const LsData *); /* statements of programs; NULL in
	                                                   kernels */
} Exec;

/* The threads that execute a statement. */
typedef struct {
	const bool *on; /* by thread */
	uint32_t n;     /* how many are */
} Active;

/* Returns the plan of a function, in the arena. */
FnPlan *loop_plan(const LoopFn *, Arena *);
/* Makes *e ready to execute the function by n threads. The caller then sets param; for a kernel
 * view and, unless block_run executes it, task[]; for a program function `program`. Memory comes
 * from the arena of the call. */
void exec_init(Exec *e, Interp *, const LoopFn *, FnPlan *, uint32_t n);
/* Executes the body once, each active thread t for task e->task[t]. Returns false after
 * loop_stop. */
bool exec_body(Exec *e, const Active *);
/* Executes the top-level block b, `enter` or `leave`, by the active threads; nothing if b is none.
 * Returns false after loop_stop. */
bool exec_top(Exec *, const Active *, Lb b);
/* Makes messages from now on name this thread and its task. */
void exec_locate(Exec *, uint32_t thread);
/* Whether a failed check of this thread replaces the remembered one (Interp.failure): none is
 * remembered, or it is of a later task, or of a later thread of the same block. */
bool exec_fails_first(const Exec *, uint32_t thread);
/* Returns the values of an expression, thread by thread, lane by lane, in their natural
 * representation; those of threads that are not active are arbitrary. They are valid until the next
 * statement. Returns NULL after a finding. */
const void *exec_value(Exec *, const Active *, Lx);
/* Executes an LS_CALL (call.c) in each active thread. A failure of the operator is
 * remembered in Interp.failure, and true returned. Returns false after loop_stop. */
bool exec_call(Exec *, const Active *, const LsData *);
/* Sets a variable, a bool or i64 scalar, to this value in all threads. */
void exec_define(Exec *, Lv, int64_t);
/* For an Exec with one thread: sets *out to the value of an i64 scalar. Returns false after a
 * finding, with *out 0. */
MUST_LOOK bool exec_int(Exec *, Lx, int64_t *out);

/* ---- fragments (frag.c) ---- */

/* Executes a statement on fragments in the active threads. Returns false after loop_stop. */
bool exec_frag(Exec *, const Active *, const LsData *);
/* Moves n elements, as they lie in memory, between `value` and the memory of the statement, from
 * element `at` on, in thread `thread`: to memory if LsRow.mem is MEM_WRITE_ROWS. depth: the depths
 * of the elements of `value`; NULL: not asked for. Returns false after a finding. */
bool exec_row(Exec *, const LsData *, uint32_t thread, int64_t at, uint32_t n, char *value,
	      uint16_t *depth);

/* ---- blocks of threads (block.c) ---- */

/* Executes one task: enter, body and leave, by all e->n threads of a block. Makes e->block at the
 * first call. Returns false after loop_stop. */
bool block_run(Exec *, uint32_t task);
/* Evaluates an LX_WARP; in and out as for scalar_step (ir/scalar/priv.h), one element a thread.
 * Returns false after a finding. */
bool block_exchange(Exec *, const Active *, const LxData *, const void *const *in, char *out);
/* Sets *out to the lane from which lane `lane` reads in an exchange that is no vote, with
 * in[1] = by. Returns false, with *out as before, if `by` is not within 0 .. WARP - 1. */
bool block_lane(WarpOp, uint32_t lane, int64_t by, uint32_t *out);
/* Does as view_touch, for the n bytes from byte `at` of the shared array v; reading a byte that
 * the block has not written is a finding. Returns false after a finding. */
bool block_touch(Exec *, Lv v, int64_t at, uint32_t n, bool write, char **out);
/* Checks that an access that moves n bytes at once, from element `at` on, is aligned to n bytes, at
 * most SHARED_ALIGN. Accesses to local arrays and of one element are not checked. Returns false
 * after a finding. */
bool block_aligned(Exec *, LMem, int64_t at, uint64_t n);
/* Executes an LS_SHARED, LS_SYNC or LS_COPY_ASYNC, _COMMIT or _WAIT statement in the active
 * threads. Returns false after loop_stop. */
bool block_statement(Exec *, const Active *, const LsData *);

/* ---- chains of roundings (depth.c), if LoopReport.depths is set ----
 * The depth of a float is the length of the longest chain of additions of which it is the
 * result. */

/* Allocates e->depth and e->var_depth. */
void depth_init(Exec *e);
/* Computes the depths of an expression whose value was computed, from those of its operands. */
void depth_compute(Exec *, Lx);
/* Gives a variable the depths of the expression that it is set to, in the active threads. */
void depth_define(Exec *, const Active *, Lv, Lx);
/* Returns the depths of a variable of n lanes, or of a local array of n elements: n for each
 * thread. */
uint16_t *depth_of_var(Exec *, Lv, uint64_t n);
/* Returns the depths of an expression whose value was computed, of all lanes for each thread. */
uint16_t *depth_of(Exec *, Lx);
/* Raises LoopReport.depth to the depth of a float that is stored in a buffer; then the current call
 * becomes LoopReport.deepest. Does nothing if the depth is not larger. */
void depth_note(Interp *, uint16_t);

#endif
