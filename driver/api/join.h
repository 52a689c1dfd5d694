/* Private to driver/api/join*.c: joining graphs into one model. */
#ifndef WEFT_DRIVER_API_JOIN_H
#define WEFT_DRIVER_API_JOIN_H

#include "driver/api/driver_priv.h"

typedef struct {
	Weft *w;
	uint32_t n;
	const GraphEntry *entry;  /* copies of the graphs, in one Ir */
	const Graph *const *from; /* the graphs to join, each in its own Ir */
	const uint32_t *first;    /* n + 1 numbers: the constants of graph k are those from first[k]
	                             to first[k + 1] */
	WeftGraph *out;           /* its field `joined` is filled in */
} Joining;

/* Makes state shared: a parameter or buffer that one graph writes becomes state of all graphs that
 * have the name, or the name that the options say (weft_join_with). Changes the graphs of `entry`
 * in place. Returns false after an error: types or initial contents differ, an option names no
 * state, or another graph reads the tensor in a branch or a loop. */
bool join_state(const Joining *, const WeftJoinOptions *);

#endif
