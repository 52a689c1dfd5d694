/* A Program: everything an emitter needs for one compiled model. Kernels are interned loop
 * functions, which its entries share like constants and messages; `sizes` and `run` of an entry are
 * loop IR that checks guards, solves symbols, and launches kernels in phases. */
#ifndef WEFT_IR_PROGRAM_H
#define WEFT_IR_PROGRAM_H

#include "ir/sym/cost.h"
#include "ir/kernel/kernel.h"
#include "ir/loop/loop.h"

/* A constant as the artifact stores it: packed into its layout. */
typedef struct {
	ConstId source;
	Layout layout;
	DType dtype;
	uint64_t offset, bytes; /* within the weight section, 64-byte aligned */
	const char *name;
} ProgramConst;

typedef struct {
	const char *name;
	DType dtype;
	uint32_t rank;
	const Sym *dim;
	int32_t donates; /* of an output: the input whose memory it may have, or -1 */
} ProgramTensor;

/* What lives from call to call, row-major. `first`: where its first contents are in the weight
 * section, or PROGRAM_ZEROS. */
typedef struct {
	const char *name;
	DType dtype;
	uint32_t rank;
	const int64_t *dim;
	uint64_t offset, bytes; /* within the state section, 64-byte aligned */
	ConstId init;
	uint64_t first;
} ProgramState;

#define PROGRAM_ZEROS UINT64_MAX

enum { PROGRAM_READS = 1, PROGRAM_WRITES = 2 }; /* ProgramEntry.state_use */

/* All launches of a call in one run: of a loop, every iteration; of a while one, and of a branch as
 * if it were taken. */
typedef struct {
	const Cost *flops, *bytes, *launches;
} ProgramCost;

typedef struct {
	double flops, bytes, launches;
} ProgramCount;

/* What a call passes for a buffer. For the interpreter of loop IR only: no code depends on it. */
typedef struct {
	const char *name; /* of the graph value */
	Sym bytes;        /* from the address that is passed; over the size symbols */
	uint32_t owner;   /* which buffer, from 1; those that swap in a loop are one */
} ProgramArg;

/* A schedule that did not take a kernel, and the reason. The refusal is near if the kernel has the
 * form that the schedule computes, and only an index, a size or a predicted cost spoke against the
 * schedule. */
typedef struct {
	const char *schedule, *why;
	bool near;
} Refusal;

/* One kernel call site, for profiles and `weft show`. A kernel of several phases has one for
 * each. */
typedef struct {
	uint32_t fn;        /* index into Program.fn */
	const char *name;   /* of the kernel instance */
	const char *algorithm, *why;
	const char *stored; /* why its result is not computed where it is read; NULL: it only
	                       copies, or is an operator of the user's */
	SourceLines lines;
	uint32_t nrefused;
	const Refusal *refused; /* before the one that took it */
	ProgramCost cost;
	const ProgramArg *arg; /* by buffer of the kernel; NULL: not known */
	bool alone;         /* its task belongs to the thread that called `run` */
} ProgramCall;

/* What a caller can run. */
typedef struct ProgramEntry {
	struct Program *program; /* that it belongs to */
	const char *name;
	ARRAY(ProgramTensor) input, output;
	ARRAY(Sym) symbol;           /* the size symbols, in slot order of the sizes block */
	/* sizes: parameters are the input extents in order (all dims of input 0, of input 1, ...).
	 * LS_RESULT slots: the symbols, then all output extents in order, then the workspace
	 * bytes. */
	LoopFn *sizes;
	/* run: parameters are the sizes' result slots. Buffers (LX_VAR of pointer type are not
	 * used): argument buffers 0.. are the inputs, then the outputs, then one weight section,
	 * one workspace, one state, then rooms. */
	LoopFn *run;
	/* Long functions are cut into parts that LS_PART statements call, parts of parts first.
	 * Parameters of a part of `sizes`: the symbols, whose result slots have their values by
	 * then, then as many extents as it uses; of a part of `run`: the symbols, then the indices
	 * of the loops around its call, outermost first, then the sizes that data has given by
	 * then, one that may be negative as the difference of two, then the counts of whiles that
	 * ended before it, as far as it needs them. Buffers are those of `run`. */
	ARRAY(LoopFn *) sizes_part, run_part;
	uint32_t first_call, ncall; /* its calls in Program.call; LS_LAUNCH statements count from
	                               first_call */
	uint64_t workspace_hint;    /* bytes at hint sizes */
	uint64_t saved_hint;        /* of these, what a call that fails puts back into state */
	ARRAY(uint8_t) state_use;   /* by state: PROGRAM_READS, PROGRAM_WRITES */
	uint32_t nroom;             /* buffers of `run` after the state: memory that LS_ROOM
	                               statements ask for */
} ProgramEntry;

/* Constants that are computed together from replaceable parameters, and which entry of
 * ProgramPrepare.program does it. Other groups have none of these parameters. */
typedef struct {
	uint32_t entry;
	ARRAY(ConstId) input;  /* by input of the entry: parameters, or what no weights change */
	ARRAY(ConstId) output; /* by output: constants with recipes */
} ProgramGroup;

/* What becomes of weights that replace others: they are rearranged, or go into groups. Groups that
 * do the same share an entry. */
typedef struct {
	struct Program *program; /* without weights of its own; NULL: there are no groups */
	ARRAY(ConstId) source;   /* what can be set: parameters as the file has them */
	ARRAY(ProgramGroup) group;
} ProgramPrepare;

typedef struct Program {
	Ir *ir;
	const char *name;
	ARRAY(LoopFn *) fn;          /* distinct kernels */
	ARRAY(ProgramCall) call;     /* of all entries, one after the other */
	ARRAY(ProgramConst) constant; /* the first ones are the first contents of state, where not
	                                 zeros */
	ARRAY(ProgramState) state;
	ARRAY(const char *) message; /* of checks and assertions; [0] unused */
	ARRAY(ProgramEntry) entry;   /* at least one, when it is complete */
	uint64_t weight_bytes;
	uint64_t state_bytes;
	const ProgramPrepare *prepare; /* NULL: weights are not replaceable */
} Program;

/* An empty program: message[0] exists. */
Program *program_new(Ir *, const char *name);
/* A new entry, whose calls are those added from now on. Pointers to other entries are invalid after
 * it. */
ProgramEntry *program_entry(Program *, const char *name);
/* Adds a call to the last entry; returns its number in the entry. */
uint32_t program_add_call(ProgramEntry *, const ProgramCall *);
/* Call k of the entry. */
const ProgramCall *program_call(const ProgramEntry *, uint32_t k);
/* Parameters and results of `sizes`. */
uint32_t program_nextent(const ProgramEntry *);
uint32_t program_nslot(const ProgramEntry *);
/* Counts of the entry's call k, value[] belonging to its symbols; NULL: at the sizes seen while
 * exporting (sym_hint). */
ProgramCount program_count(const ProgramEntry *, uint32_t k, const int64_t *value);
/* Of all its calls. */
ProgramCount program_total(const ProgramEntry *, const int64_t *value);
/* A size in it depends on data and is no input's: `run` finds it out. */
bool program_finds(const ProgramEntry *, Sym size);
/* Of a size of output k. */
bool program_is_found(const ProgramEntry *, uint32_t k);
/* Buffer k of `run` gets its memory while it runs. */
bool program_is_room(const ProgramEntry *, uint32_t buf);
/* Every function passes loop_verify. Checked of every program when it is complete, with the
 * target's instruction set where it is legal. */
MUST_LOOK bool program_verify(const Program *, const struct Isa *);
/* How many of the first parameters of `sizes`, or of one of its parts, are read from result
 * slots. */
uint32_t program_nslot_params(const ProgramEntry *, const LoopFn *);
/* Operators of the user that kernels call, each once, in order of appearance; returns how many. */
uint32_t program_user_ops(const Program *, const struct UserOp ***op);
/* Adds a message; returns its number. Texts of assertions may hold %lld for the statement's
 * arguments. */
uint32_t program_message(Program *, const char *text);

#endif
