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

/* Returns a new LowerState in the arena, for a graph that has state or replaces inputs of the
 * caller, with the fields that are kept between attempts; lower_state_begin sets the others. */
LowerState *lower_state_new(Graph *, Arena *);
/* Begins an attempt: forgets the versions of the last one, and makes the buffers and first versions
 * of all state. */
void lower_state_begin(Lower *);
/* Whether output k replaces state, or an input whose memory it may have. */
bool lower_replaces(const Lower *, uint32_t k);
/* Adds the version of an output with lower_replaces, and returns the place where the value of
 * output k is stored: a new buffer of the state, or `out`, the place of the output of the
 * caller. */
NodePlace lower_state_output(Lower *, uint32_t k, NodePlace out);
/* Gives places in state, if node n has one there, also to the value of which n replaces parts
 * (which becomes the version before), and to these parts. */
void lower_state_extend(Lower *, Node n);
/* Whether the kernel leaves state unchanged, because it only copies every element to where it is
 * already. If that is an input of the caller, notes that the output contains parts of it
 * (LowerState.copied). */
bool lower_state_keeps(const Lower *, const Kernel *);
/* Moves the checks of a kernel that replaces state into a kernel and step of their own, which can
 * come before all writes. Indices that were checked already are not checked again. index: the node
 * of the indices. */
void lower_state_check(Lower *, Kernel *, Node index);
/* Adds, behind all other steps, kernels that copy values to state and replaced outputs which are
 * not computed there; values that read old state are copied to temporary buffers first. out: as for
 * lower_body_to. */
void lower_state_copy(Lower *, const NodePlace *out);
/* Orders all steps, adds steps that save old state, and makes one buffer of all versions of a
 * state. Returns false if there is no such order; state->again then says that another attempt, with
 * more values computed apart, is to be made. */
bool lower_order_steps(Lower *);
/* Adds, in front of each step that writes state, steps that save the old contents, if that step or
 * one behind it may fail (undo.c). */
void lower_save_state(Lower *);
/* Whether the step, or a step inside, may end the call with an error: a check, a call of a user
 * operator, a size read from data, a guard of a body. */
bool lower_step_fails(const Step *);
/* Whether the step, or a step inside, must keep its order among such steps: a call of a user
 * operator, a check of the model. */
bool lower_step_has_effect(const Step *);

#endif
