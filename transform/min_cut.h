/* Minimal cuts of networks: which edges, of least capacity together, part a source from a sink. */
#ifndef WEFT_TRANSFORM_MIN_CUT_H
#define WEFT_TRANSFORM_MIN_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* Of an edge that is never cut, where there is a cut without it. Other capacities are far below:
 * the flow through a vertex, which is no more than what leaves it, is below this too. */
#define CUT_NEVER (INT64_C(1) << 62)

typedef struct Network Network;

/* Vertices are 0, 1, ... nvertex - 1. Everything lives in the arena. */
Network *network_new(Arena *, uint32_t nvertex);
/* capacity >= 0. Edges are numbered from 0 in the order in which they are added. */
void network_edge(Network *, uint32_t from, uint32_t to, int64_t capacity);
/* The capacity of edge k, for another cut of the same network. */
void network_set_capacity(Network *, uint32_t k, int64_t capacity);
/* below[v]: v is on the sink's side of a minimal cut; of several such cuts it is the one nearest to
 * the sink. What edges lead from the other side to this one are the cut. The same on every run, in
 * whatever order edges were added. */
void network_cut(Network *, uint32_t source, uint32_t sink, bool *below);

#endif
