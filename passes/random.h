/* The source of a model's random numbers (ir/ops/prim/random.h). */
#ifndef WEFT_PASSES_RANDOM_H
#define WEFT_PASSES_RANDOM_H

#include "passes/pass.h"

typedef struct {
	uint64_t seed; /* the initial value of the state */
	bool input;    /* the key is an input of the model, not state */
} RandomSource;

/* Gives nodes that draw random numbers, and have no key yet, the graph's key and a stream, in
 * program order, bodies of branches and loops included. In a loop's body the key is that of the
 * round. Adds the state "weft.rng", or the input of that name, unless the graph has it. A graph
 * without such nodes stays unchanged. Returns false after errors. */
bool random_attach(Graph *, const RandomSource *);

#endif
