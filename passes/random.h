/* The source of a model's random numbers (ir/ops/prim/random.h). */
#ifndef WEFT_PASSES_RANDOM_H
#define WEFT_PASSES_RANDOM_H

#include "passes/pass.h"

typedef struct {
	uint64_t seed; /* the initial value of the state */
	bool input;    /* the key is an input of the model, not state */
} RandomSource;

/* Gives each node that draws random numbers (node_draws) and has no key yet the graph's key and a
 * stream of its own, numbered in program order, bodies of branches and loops included. In a loop's
 * body the key is derived from the graph's key and the number of the round. The graph's key is the
 * state "weft.rng" with the initial value of `source`, or the input of that name; it is added
 * unless the graph has it. Changes nothing, and returns true, if there are no such nodes. Returns
 * false after errors. */
bool random_attach(Graph *, const RandomSource *);

#endif
