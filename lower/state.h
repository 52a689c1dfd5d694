/* Private to lowering: state that a graph writes.
 *
 * A value that is computed in the memory of state is a *version* of the state. While steps are
 * made, each version has a buffer of its own, which shows the version that a step reads.
 * lower_order_steps orders the steps so that every version is read before the next one is written,
 * and makes one buffer of all versions. If there is no such order, another attempt computes a value
 * apart and copies it.
 *
 * An input of the caller that the graph replaces is also an output, for which the caller may pass
 * the same memory. The input is the first version, the output the later ones; they stay two
 * buffers. If there is no order, the output does not take the input's memory. */
#ifndef WEFT_LOWER_STATE_H
#define WEFT_LOWER_STATE_H

#include "lower/priv.h"

/* A version: the value of `node`, computed in the state's memory; or (node none) the value of an
 * output, copied there at the end. */
typedef struct {
	BufId buf, before; /* before: the version that this one replaces; none: this is the first */
	Node node;
	uint32_t output, root; /* root: the number of the first version */
} StateVersion;

/* Indices that were checked: of operand `index`, below the extents of these variables. */
typedef struct {
	uint32_t index;
	const ValueVar *var;
	uint32_t n;
} StateChecked;

typedef struct LowerState {
	uint32_t *of_input;   /* by input of the graph: 1 + the number of the state; 0: an input of
	                         the caller */
	bool *apart;          /* by node: computed apart, not in the memory of state */
	bool *apart_output;   /* by output: computed in a buffer of its own and copied at the end */
	bool *donates;        /* by output: replaces an input of the caller and may have its
	                         memory */
	bool *copied;         /* by root, a donated input: the output contains parts of it */
	uint32_t nroot;
	const char **stored;  /* by node: why it must be stored, or NULL; kept between attempts */
	bool again;           /* the attempt failed: one of the lists above grew */
	ARRAY(StateVersion) version; /* of this attempt; the first versions come first, by state */
	ARRAY(uint32_t) of_buf;      /* by buffer: 1 + its version; 0: none, or removed */
	uint32_t *root_of;    /* by output with `donates`: its root */
	ARRAY(StateChecked) checked;
} LowerState;

/* lower_state_new makes what is kept between attempts; lower_state_begin begins an attempt and
 * makes the buffers of state. */
LowerState *lower_state_new(Graph *, Arena *);
void lower_state_begin(Lower *);
/* Whether output k replaces state, or an input whose memory it may have. */
bool lower_replaces(const Lower *, uint32_t k);
/* The place of output k's value. out: the place of an output of the caller. */
NodePlace lower_state_output(Lower *, uint32_t k, NodePlace out);
/* Node n has a place in state: gives places there also to the value of which n replaces parts, and
 * to these parts. */
void lower_state_extend(Lower *, Node n);
/* Whether the kernel leaves state unchanged: every element that it stores is there already. */
bool lower_state_keeps(const Lower *, const Kernel *);
/* Moves the checks of a kernel that replaces state into a step of their own, which may come before
 * all writes. Equal indices are checked once. index: the node of the indices. */
void lower_state_check(Lower *, Kernel *, Node index);
/* Adds the copies of outputs at the end; state is written after everything that reads the old
 * value. */
void lower_state_copy(Lower *, const NodePlace *out);
/* Orders all steps, saves old state, makes one buffer of all versions. Returns false if another
 * attempt is needed. */
bool lower_order_steps(Lower *);
/* lower/undo.c: adds steps that save old state if a later step may fail. */
void lower_save_state(Lower *);
/* Whether a check in the step may end the call. */
bool lower_step_fails(const Step *);
/* Whether the step has an effect: it keeps its order among such steps. */
bool lower_step_has_effect(const Step *);

#endif
