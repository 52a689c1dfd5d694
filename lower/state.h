/* Private to lowering: state that a graph replaces.
 *
 * A value that is to lie where state lies is a *version* of it. While steps are made each version
 * has a buffer of its own, so that it is seen which one a step reads. lower_order_steps puts the
 * steps into an order in which every version is read before the next one is written, and makes one
 * buffer of all of them. Where there is no such order, a value is computed apart and copied, in
 * another attempt.
 *
 * An input of the caller's that the graph replaces is an output, too, for which the caller may pass
 * the same memory. The input is the version that the call finds, the output the next ones; they
 * stay two buffers. Where there is no order, the output does not take the input's memory. */
#ifndef WEFT_LOWER_STATE_H
#define WEFT_LOWER_STATE_H

#include "lower/priv.h"

/* A version: the value of `node`, computed in its place, or that of an output, copied there at the
 * end (node none). */
typedef struct {
	BufId buf, before; /* before: the version that it replaces; none: what a call finds */
	Node node;
	uint32_t output, root; /* root: number of the version that a call finds there */
} StateVersion;

/* Indices that are checked already: of operand `index`, below the extents of these variables. */
typedef struct {
	uint32_t index;
	const ValueVar *var;
	uint32_t n;
} StateChecked;

typedef struct LowerState {
	uint32_t *of_input;   /* by input of the graph: 1 + which state; 0: a user's */
	bool *apart;          /* by node: not computed in the place of state */
	bool *apart_output;   /* by output: not copied from where it is at the end, but from a
	                         buffer of its own */
	bool *donates;        /* by output: replaces an input of the caller's, and may have its
	                         memory */
	bool *copied;         /* by root, a donated input: parts of it are the output's */
	uint32_t nroot;
	const char **stored;  /* by node: why, or NULL; kept from one attempt to the next */
	bool again;           /* the attempt failed: one of these grew */
	ARRAY(StateVersion) version; /* of this attempt; first what a call finds, by state */
	ARRAY(uint32_t) of_buf;      /* by buffer: 1 + its version, unless that is gone */
	uint32_t *root_of;    /* by output that donates: its root */
	ARRAY(StateChecked) checked;
} LowerState;

/* What is kept over attempts, and the start of one: buffers of inputs that are state. */
LowerState *lower_state_new(Graph *, Arena *);
void lower_state_begin(Lower *);
/* Output k replaces state, or an input whose memory it may have. */
bool lower_replaces(const Lower *, uint32_t k);
/* A place for its value; out: that of an output of the caller's. */
NodePlace lower_state_output(Lower *, uint32_t k, NodePlace out);
/* Node n, which has a place, is computed in one of state: what it replaces parts of is, too, and
 * what it puts there. */
void lower_state_extend(Lower *, Node n);
/* State stays as it is: every element that the kernel stores is there. */
bool lower_state_keeps(const Lower *, const Kernel *);
/* Checks of a kernel that replaces state become a step of their own, which may come before others
 * replace any; those of equal indices are made once. index: where they come from. */
void lower_state_check(Lower *, Kernel *, Node index);
/* Copies of outputs at the end: what replaces state, after everything that is read for it. */
void lower_state_copy(Lower *, const NodePlace *out);
/* All steps are there: orders them, saves what a failure has to put back, joins versions. False:
 * another attempt. */
bool lower_order_steps(Lower *);
/* lower/undo.c: adds steps that save state before it is replaced, where a later step may fail. */
void lower_save_state(Lower *);
/* A check in it may end the call. */
bool lower_step_fails(const Step *);
/* It keeps its place among others that do. */
bool lower_step_has_effect(const Step *);

#endif
