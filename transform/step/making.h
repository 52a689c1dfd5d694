/* Private to transform/step: a step that is made, its inputs, state and numbers. */
#ifndef WEFT_TRANSFORM_STEP_MAKING_H
#define WEFT_TRANSFORM_STEP_MAKING_H

#include "transform/step/rows.h"
#include "transform/step/step.h"

/* A new value of an input. */
typedef struct {
	uint32_t input;
	Node value;
	bool always; /* also of a step that is skipped */
} Write;

typedef struct {
	const Step *s;
	Ctx *ctx;
	Graph *g;
	Build b;       /* at the end of g */
	uint32_t nown; /* inputs of the model itself, which come first */
	Node scale;    /* of the loss, state; none: it has none */
	Node skip;     /* bool[], whether nothing is updated; none: something is */
	Node lost;     /* bool[], whether the loss is not finite; none: nobody asks */
	Node count;    /* the count of steps, f64[]; none: nobody has asked yet */
	const void *zeros;
	uint64_t nzeros; /* bytes */
	ARRAY(Write) write;
} Making;

/* The gradients of a step, in the order of groups. */
typedef struct {
	uint32_t n;
	Node *g;
	StepRows *rows; /* where g is the sums of gradients of rows */
} Gradients;

/* Returns the input of that name, or -1. */
int32_t making_input_named(const Graph *, const char *name);
/* Whether no input or state has the name; else there is an error. */
bool making_is_free(const Graph *, const char *name);
/* Returns the input that holds the constant as state, or -1. */
int32_t making_state_of(const Graph *, ConstId);
/* Returns the input that the node is. */
uint32_t making_input_of(const Graph *, Node);

/* Adds state of the step's own, with these contents, and sets *out to it. Returns false after an
 * error. */
bool making_add_state_of(Making *, const char *name, DType, uint32_t rank, const int64_t *dim,
			 const void *data, Node *out);
/* Does as making_add_state_of, with one number as contents. */
bool making_add_state(Making *, const char *name, DType, uint32_t rank, const int64_t *dim,
		      double begins, Node *out);
/* Sets the new value of an input. */
void making_set(Making *, uint32_t input, Node value);
/* Sets the new value of a state, also for a step that is skipped. */
void making_set_always(Making *, Node state, Node value);

/* Sets *out to the node of a number, f64 without dimensions; to none if the number is known.
 * Returns false after an error. */
bool making_number_node(Making *, const StepNumber *, Node *out);
/* Does as making_number_node, also of a number that is known. */
bool making_number(Making *, const StepNumber *, Node *out);

/* Adds the update of a group by its gradients, with states and averages. Returns false after an
 * error. */
bool making_update(Making *, const StepGroup *, const Node *gradient, const StepRows *rows);

#endif
