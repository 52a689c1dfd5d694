/* State and inputs of a graph that nothing needs any more. */
#ifndef WEFT_IR_BUILD_STATE_H
#define WEFT_IR_BUILD_STATE_H

#include "ir/graph/graph.h"

/* Removes input k, whose node has no readers and is no output's value but of what is written to the
 * input, and what is written to it. */
void graph_remove_input(Graph *, uint32_t k);
/* Makes a constant of state k, which nothing writes: of its initial contents, named as torch.export
 * names the constant of a buffer. */
void graph_freeze_input(Graph *, uint32_t k);
/* Makes constants of all state that is written with itself, or removes it if nothing reads it.
 * What is written to state stays if the graph has no other output. Returns true if there was any.
 */
bool graph_freeze_unchanged(Graph *);
/* Removes what is written to state that is written with itself: it stays state, which the graph
 * does not write any more. Returns true if there was any. */
bool graph_keep_unchanged(Graph *);

#endif
