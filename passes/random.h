/* The source of a model's random numbers (ops/prim/random.h). */
#ifndef WEFT_PASSES_RANDOM_H
#define WEFT_PASSES_RANDOM_H

#include "ops/prim/random.h"
#include "passes/pass.h"

typedef struct {
	uint64_t seed; /* the initial value of the state */
	bool input;    /* the key is an input of the model, not state */
	Cipher cipher; /* what makes random bits of it */
} RandomSource;

/* Gives each node that draws random numbers (node_draws) and has no key yet the graph's key, the
 * source's cipher and a stream of its own, numbered in program order from the first number behind
 * the streams of nodes that have a key, bodies of branches and loops included. In a loop's body the
 * key differs from round to round: it is derived from the key outside of the loop. The graph's key
 * is made of the state "weft.rng" with the initial value [seed, 0], which each call of the model
 * changes, or of the input of that name; the state or input is added behind the inputs unless the
 * graph has one of that name. Changes nothing, and returns true, if there are no such nodes.
 * Returns false after an error: a loop whose condition draws, or an input or state "weft.rng" that
 * is no key (u64[2]); the graph must not be used then. The graph's scope becomes the current one in
 * any case. */
bool random_attach(Graph *, const RandomSource *);
/* Removes the keys that loops and branches have and do not read, where the graph has the state
 * "weft.rng", and the state if nothing reads it then but what counts its calls, and the graph
 * has another output. Returns true if it removed something. */
bool random_release(Graph *);

#endif
