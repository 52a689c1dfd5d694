/* How many rounds loops on data have at most, where the model does not say so. */
#ifndef WEFT_TRANSFORM_MODEL_LOOP_BOUND_H
#define WEFT_TRANSFORM_MODEL_LOOP_BOUND_H

#include "ir/graph/graph.h"

/* Sets the most rounds of each loop on data (OpInfo.endless) of that name, in the graph and its
 * bodies. Returns the number of these loops. */
uint32_t transform_bound_loops(Graph *, const char *name, int64_t most);
/* Appends the names of all loops on data of the graph and its bodies, with commas between them. */
void transform_list_loops(Graph *, Text *);

#endif
