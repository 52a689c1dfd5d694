/* Where a model's random numbers come from (ir/ops/prim/random.h). */
#ifndef WEFT_PASSES_RANDOM_H
#define WEFT_PASSES_RANDOM_H

#include "passes/pass.h"

typedef struct {
	uint64_t seed; /* the first value of the state */
	bool input;    /* the key is an input of the model, not state */
} RandomSource;

/* Nodes that draw and have no key yet get the graph's, and streams in program order, bodies of
 * branches and loops included; in a loop's body the key is that of its round. A graph without such
 * nodes stays as it is. The state "weft.rng" is added, or the input of that name; a graph that has
 * it keeps it. False after ctx_error. */
bool random_attach(Graph *, const RandomSource *);

#endif
