/* Interpreter of loop IR: executes a Program as a compiled model would, statement by statement, to
 * the same bits, and reports errors that compiled code would make silently (findings). It is the
 * oracle between schedules and emitters: a result that is wrong here was scheduled wrong; one that
 * is right here and wrong in compiled code was emitted wrong.
 *
 * Arithmetic is the scalar evaluator's; vectors are computed lane by lane, horizontal reductions in
 * the emitters' tree. Phases run in order, each with its tasks in a permuted order that depends on
 * the seed, some of them in lockstep: every value exists once for each of these threads, and
 * control flow splits a mask of active ones.
 *
 * Every byte of the outputs, workspace, state and rooms remembers which phase, which task and which
 * buffer wrote it last, and who read it. Findings (the first one ends the run):
 *  - an access beyond its buffer, a buffer beyond its region, an input or a weight that is written;
 *  - a byte that is read, or belongs to an output at the end, and was never written;
 *  - a workspace byte that is read after another buffer took it: outside its buffer's life;
 *  - a byte that two tasks of a phase touch and one of them writes; two buffers of a launch that
 *    overlap, one written, though one of them is declared restrict;
 *  - a parameter, a number of tasks, a variable or an expression that is negative although code
 *    relies on the contrary;
 *  - index arithmetic that overflows or divides by zero;
 *  - a buffer that is not aligned as its argument promises.
 *
 * Of a kernel with blocks of threads a task is a block, whose threads are in lockstep. Every byte
 * that they have in common remembers which thread wrote it last and which read it, and the number
 * of barriers before. Further findings, which name the thread:
 *  - a byte that a thread touches and another one touched since the last barrier, one of them
 *    writing, whatever the order of threads;
 *  - a barrier that not all threads of the block reach, an exchange that not all of a warp reach;
 *  - a byte of shared memory that is read and was never written, or that is touched while a copy to
 *    it is under way; a copy that is not awaited before the end; more shared memory than there is;
 *  - an access of several lanes, or a copy, whose address is no multiple of its bytes. */
#ifndef WEFT_IR_LOOP_INTERP_INTERP_H
#define WEFT_IR_LOOP_INTERP_INTERP_H

#include "ir/loop/program.h"

/* LOOP_INTERP_STATEMENTS: the most statements that a call executes; a statement counts once for
 * each task that executes it. Programs with blocks of threads execute LOOP_INTERP_OF_BLOCKS times
 * as many at most, counted for each thread: tiles compute beyond the operands, and threads in
 * lockstep are fast. LOOP_INTERP_BYTES: the most bytes of an output, the workspace, the state, a
 * room. */
enum {
	LOOP_INTERP_STATEMENTS = 100000000,
	LOOP_INTERP_OF_BLOCKS = 4,
	LOOP_INTERP_BYTES = 256 << 20
};

typedef enum {
	LOOP_DONE,
	LOOP_FAILED,  /* a check or an assertion of the model failed; the message is that of the
	                 compiled model */
	LOOP_FINDING, /* the program is wrong */
	LOOP_NO_ROOM, /* LoopReport.room returned false */
	LOOP_LIMIT    /* more statements or bytes than the limits allow */
} LoopOutcome;

typedef struct {
	uint64_t seed;       /* seed of the order of tasks */
	uint64_t limit;      /* the most statements; 0: as above */
	uint64_t statements; /* result: the number of executed statements */
	char message[480];   /* result: "" if LOOP_DONE */
	/* With `depths`, results: the longest chain of additions through which a stored float of
	 * `run` went (at most 65,535), and the call that stored it. A run changes them only for a
	 * longer chain: the caller zeroes them first. */
	bool depths;
	uint16_t depth;
	char deepest[64];
	/* For LS_ROOM: allocates buffer k of `run` and sets buf[k]; p: the extents of an output,
	 * else the bytes; p NULL: frees the buffer. Returns false after a failure that it has
	 * reported. room NULL: a program with rooms ends with LOOP_NO_ROOM. */
	bool (*room)(void *user, uint32_t k, const int64_t *p);
	void *user; /* the first argument of `room` */
	const struct WeftOpContext *context; /* of calls of user operators; NULL: what a caller
	                                        without a context has */
} LoopReport;

/* Executes `sizes` of an entry: reads extent[] (program_nextent values) and sets slot[]
 * (program_nslot values). Returns how the call ended, with the message and the number of statements
 * in the report; unless LOOP_DONE some slots may not be set. Memory comes from the arena, which the
 * caller frees. */
LoopOutcome loop_interp_sizes(const ProgramEntry *, Arena *, const int64_t *extent, int64_t *slot,
			      LoopReport *);
/* Executes `run` of an entry on buf[], whose order ProgramEntry.run gives, with the slots that
 * loop_interp_sizes has set. Inputs and outputs have the sizes in the slots and are aligned to
 * their elements, of a program with blocks of threads to SHARED_ALIGN bytes; weights, workspace and
 * state are aligned to 64 bytes. buf[k] of a room is not read before LoopReport.room has set it.
 * Returns how the call ended, with the message and the number of statements in the report; after
 * LOOP_FAILED the old state was put back. Memory comes from the arena, which the caller frees. */
LoopOutcome loop_interp_run(const ProgramEntry *, Arena *, void *const *buf, const int64_t *slot,
			    LoopReport *);

#endif
