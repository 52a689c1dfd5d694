/* Training and evaluation of a graph that was imported. */
#ifndef WEFT_TRANSFORM_MODEL_MODE_H
#define WEFT_TRANSFORM_MODEL_MODE_H

#include "passes/random.h"

/* Operators that return their operand in evaluation, and whose result and operand have several
 * readers in the file: the file does not say which of these read the result. */
typedef struct {
	const char *first; /* where the first of them is; NULL: there are none */
	uint32_t n;
} Unclear;

/* Makes a graph of composites one that trains or evaluates, in place: sets the argument OpInfo.mode
 * of its operators and makes running statistics state or constants. Attaches random numbers anew
 * (random_attach), unless a body has keys already. In training every reader of an unclear value
 * reads the result. Returns false, and changes nothing, after an error: statistics in a body, or
 * that are computed; a random number that does not say whether only training draws it. The graph
 * was not decomposed and has no other_mode. The graph's scope becomes the current one. */
bool transform_mode(Graph *, bool train, const RandomSource *, Unclear *);

#endif
