/* Variants of a graph that have its inputs, outputs and their types: operands are read through
 * index maps, operands of contractions are exchanged, results are reordered. What a kernel reads,
 * and in which role, is another thing then. */
#ifndef WEFT_TESTS_TEXT_DRAW_H
#define WEFT_TESTS_TEXT_DRAW_H

#include "ir/build/build.h"

enum { MAX_EDITS = 192 };

/* Which of the edits that a seed gives are made: all but those that are left out. */
typedef struct {
	uint64_t seed;
	bool left_out[MAX_EDITS];
	uint32_t n; /* edits there were */
	uint32_t only; /* 1: the first output is the only one, ...; 0: all */
} Draw;

/* Edits the graph in place; the same ones for the same seed. Inputs keep their order. */
void draw_graph(Graph *, Draw *);
/* A number below n; advances the state. */
uint32_t draw_below(uint64_t *state, uint32_t n);

#endif
