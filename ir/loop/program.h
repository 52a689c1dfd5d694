/* A Program: all that an emitter needs of one compiled model. Entries have kernels (distinct loop
 * functions), constants and messages in common. `sizes` and `run` of an entry are loop IR: they
 * check guards, solve symbols, and launch kernels in phases. */
#ifndef WEFT_IR_PROGRAM_H
#define WEFT_IR_PROGRAM_H

#include "ir/sym/cost.h"
#include "ir/kernel/kernel.h"
#include "ir/loop/loop.h"
#include "ir/target/gpu.h"

/* A constant as the artifact stores it: in its layout. */
typedef struct {
	ConstId source;
	Layout layout;
	DType dtype;
	uint64_t offset, bytes; /* in the weight section, 64-byte aligned */
	const char *name;
	bool first; /* initial contents of a state, which set_weights never changes */
} ProgramConst;

typedef struct {
	const char *name;
	DType dtype;
	uint32_t rank;
	const Sym *dim;
	int32_t donates; /* of an output: the input whose memory the caller may pass for it, or
	                    -1 */
} ProgramTensor;

/* State: keeps its value from call to call; row-major. first: the offset of the initial contents in
 * the weight section, or PROGRAM_ZEROS. */
typedef struct {
	const char *name;
	DType dtype;
	uint32_t rank;
	const int64_t *dim;
	uint64_t offset, bytes; /* in the state section, 64-byte aligned */
	ConstId init;
	InputKind kind;
	uint64_t first;
} ProgramState;

#define PROGRAM_ZEROS UINT64_MAX

enum { PROGRAM_READS = 1, PROGRAM_WRITES = 2 }; /* ProgramEntry.state_use */

/* Costs of all launches of a call in one run: in a loop, of every iteration; in a while loop of
 * one; in a branch as if the branch were taken. */
typedef struct {
	const Cost *flops, *bytes, *launches;
} ProgramCost;

typedef struct {
	double flops, bytes, launches;
} ProgramCount;

/* What a call passes for a buffer. For the interpreter of loop IR and for reports; no code depends
 * on it. */
typedef struct {
	const char *name; /* of the graph value */
	Sym bytes;        /* the bytes behind the passed address; an expression of size symbols */
	uint32_t owner;   /* the number of the buffer, from 1; buffers that a loop swaps have one
	                     number */
	uint32_t buffer;  /* the number of the buffer alone, from 1 */
	BufKind kind;     /* BUF_TEMP: of the workspace, or a room */
	DType dtype;
	Sym own;    /* the bytes of its elements, without padding */
	Sym offset; /* of a BUF_TEMP that has no room: its place in the workspace; else none */
	uint32_t first, last; /* of a BUF_TEMP: the calls of the entry from which and until which
				 its memory is its own */
} ProgramArg;

/* A schedule that did not take a kernel, and the reason. The refusal is near if the kernel has the
 * form that the schedule computes, and only an index, a size or a predicted cost spoke against the
 * schedule. */
typedef struct {
	const char *schedule, *why;
	bool near;
} Refusal;

/* One kernel call, for profiles and `weft show`. A kernel of several phases has a call for each. */
typedef struct {
	uint32_t fn;        /* index into Program.fn */
	const char *name;   /* the name of the kernel */
	const char *algorithm, *why; /* the schedule, and why it was chosen */
	const char *plan;   /* see WeftKernelInfo.plan */
	const char *stored; /* why the result is stored and not computed in the kernel that reads
	                       it; NULL: the kernel only copies, or is a user operator */
	SourceLines lines;
	const Kernel *kernel; /* what it computes; NULL for a user operator */
	bool joins;           /* runs in the phase of the call before, without waiting for it */
	uint32_t nrefused;
	const Refusal *refused; /* the schedules asked before the one that took the kernel */
	ProgramCost cost;
	GpuTime time;       /* of a GPU: of one launch, at hint sizes; of the phases of a kernel
	                       each has the same part. all 0: not known */
	const ProgramArg *arg; /* by buffer of the kernel; NULL: not known */
	bool alone;         /* the thread that called `run` executes the task */
} ProgramCall;

/* An entry: a function of the model that callers can run. */
typedef struct ProgramEntry {
	struct Program *program; /* the program of the entry */
	const char *name;
	ARRAY(ProgramTensor) input, output;
	ARRAY(Sym) symbol;           /* the size symbols, in the order of the slots */
	/* sizes: parameters are the extents of input 0, of input 1, ... LS_RESULT slots are the
	 * symbols, then all output extents in order, then the bytes of the workspace. */
	LoopFn *sizes;
	/* run: parameters are the result slots of sizes. Buffer arguments: the inputs, the outputs,
	 * the weight section, the workspace, the state, then rooms. */
	LoopFn *run;
	/* Pieces of long functions are outlined: they are functions of their own, which LS_OUTLINED
	 * statements call; a function comes behind those that it calls. Parameters of one of
	 * sizes: the symbols (their slots are set by then), then the extents that it uses.
	 * Parameters of one of run: the symbols; the indices of the loops around the call,
	 * outermost first; the sizes that depend on data and are known by then (one that may be
	 * negative as the difference of two); the counts of while loops that have ended, if needed.
	 * Buffers are those of run. */
	ARRAY(LoopFn *) sizes_outlined, run_outlined;
	uint32_t first_call, ncall; /* the entry's calls in Program.call; LS_LAUNCH counts from
	                               first_call */
	uint64_t workspace_hint;    /* bytes of the workspace at hint sizes */
	uint64_t saved_hint;        /* of these, the old state that is put back if a call fails */
	ARRAY(uint8_t) state_use;   /* by state: PROGRAM_READS, PROGRAM_WRITES */
	bool cancellable;           /* WEFT_ENTRY_CANCELLABLE */
	bool half_updates;          /* a call that fails may leave a donated input half updated */
	uint32_t nroom;             /* rooms: buffers of run after the state, which LS_ROOM
	                               allocates */
} ProgramEntry;

/* Constants with recipes (Const.recipe) that are computed together from replaceable parameters, by
 * one entry of ProgramRecipes.program. Constants in different groups depend on different
 * parameters. */
typedef struct {
	uint32_t entry;
	ARRAY(ConstId) input;  /* by input of the entry: a parameter, or a constant that no
	                          parameter changes */
	ARRAY(ConstId) output; /* by output of the entry: a constant with a recipe */
} ProgramGroup;

/* How set_weights makes stored constants of parameters: it rearranges them, or computes groups.
 * Groups with equal graphs have one entry in common. */
typedef struct {
	struct Program *program; /* has no weights of its own; NULL: there are no groups */
	ARRAY(ConstId) source;   /* the parameters that set_weights takes, as in the model's file */
	ARRAY(ProgramGroup) group;
} ProgramRecipes;

typedef struct Program {
	Ir *ir;
	const char *name;
	ARRAY(LoopFn *) fn;          /* distinct kernels */
	ARRAY(ProgramCall) call;     /* calls of all entries, one entry after the other */
	ARRAY(ProgramConst) constant; /* initial contents of state (unless zeros) come first */
	ARRAY(ProgramState) state;
	ARRAY(const char *) message; /* of checks and assertions; [0] unused */
	ARRAY(ProgramEntry) entry;   /* at least one in a complete program */
	uint64_t weight_bytes;
	uint64_t state_bytes;
	const ProgramRecipes *recipes; /* NULL: weights are not replaceable */
} Program;

/* Returns a program without entries in the arena of the Ir's context; message[0] exists. Keeps the
 * name, without copying it. */
Program *program_new(Ir *, const char *name);
/* Adds an entry and returns it. Calls that are added from now on belong to it. Invalidates pointers
 * to other entries. Keeps the name, without copying it. */
ProgramEntry *program_entry(Program *, const char *name);
/* Adds a copy of the call to the entry, which must be the last one of the program. Returns the
 * call's number in the entry, from 0. */
uint32_t program_add_call(ProgramEntry *, const ProgramCall *);
/* Returns call k of the entry, k < e->ncall; the pointer is valid until the next
 * program_add_call. */
const ProgramCall *program_call(const ProgramEntry *, uint32_t k);
/* Returns the number of parameters of `sizes`: the extents of all inputs. */
uint32_t program_nextent(const ProgramEntry *);
/* Returns the number of result slots of `sizes`: the symbols, all output extents, the bytes of the
 * workspace. */
uint32_t program_nslot(const ProgramEntry *);
/* Returns the costs of the entry's call k in one run, as numbers. value[i]: the value of
 * e->symbol[i]; value NULL: the hints. */
ProgramCount program_count(const ProgramEntry *e, uint32_t k, const int64_t *value);
/* Returns the sum of the costs of all calls of the entry; value: as for program_count. */
ProgramCount program_total(const ProgramEntry *, const int64_t *value);
/* Whether the size is known only when `run` has computed it: it contains an unbacked symbol that is
 * no symbol of the entry. */
bool program_finds(const ProgramEntry *, Sym size);
/* Whether program_finds is true for an extent of output k. */
bool program_is_found(const ProgramEntry *, uint32_t k);
/* Whether buffer argument buf of `run` is a room: LS_ROOM allocates it. Rooms are the buffers after
 * the state, and the outputs for which program_is_found is true. */
bool program_is_room(const ProgramEntry *, uint32_t buf);
/* Checks every function of the program, those of the entries included, by loop_verify; isa: as
 * there. The program of the recipes is not checked. Returns true if all is well; false after
 * errors, which the context has recorded. */
MUST_LOOK bool program_verify(const Program *, const struct Isa *isa);
/* Returns how many parameters of f, the first ones, are read from result slots; 0 for `sizes`
 * itself. f: `sizes` or a function outlined from it. */
uint32_t program_nslot_params(const ProgramEntry *, const LoopFn *f);
/* Sets *op to the user operators that kernels call, each once, in order of appearance, in the arena
 * of the Ir's context. Returns their number. */
uint32_t program_user_ops(const Program *, const struct UserOp ***op);
/* Adds a message and returns its number, >= 1. Does not copy the text, which must live as long as
 * the program. The text is a format of printf: a %lld for each argument of the LS_ASSERT or LS_FAIL
 * that names it, %% for a percent sign. */
uint32_t program_message(Program *, const char *text);

#endif
