/* Private to driver/api/join*.c: graphs on their way into one model. */
#ifndef WEFT_DRIVER_API_JOIN_H
#define WEFT_DRIVER_API_JOIN_H

#include "driver/api/driver_priv.h"

typedef struct {
	Weft *w;
	uint32_t n;
	const GraphEntry *entry;  /* copies of the graphs, in one Ir */
	const Graph *const *from; /* the graphs, each in the Ir of its file */
	const uint32_t *first;    /* n + 1: constants of that Ir from first[k] to first[k + 1] are
	                             those of graph k */
	WeftGraph *out;           /* gets `joined` */
} Joining;

/* What one graph writes becomes state of all that have a tensor of its name. False after
 * ctx_error. */
bool join_state(const Joining *, const WeftJoinOptions *);

#endif
