/* Minimal cuts of networks: the set of edges, of least total capacity, that separates a source from
 * a sink. */
#ifndef WEFT_TRANSFORM_PARTITION_MIN_CUT_H
#define WEFT_TRANSFORM_PARTITION_MIN_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* The capacity of an edge that is not cut if there is a cut without it. The sum of all other
 * capacities must be far below. */
#define CUT_NEVER (INT64_C(1) << 62)

typedef struct Network Network;

/* Returns a network with vertices 0 .. nvertex - 1 and no edge, in the arena. */
Network *network_new(Arena *, uint32_t nvertex);
/* Adds an edge from vertex `from` to vertex `to`, of capacity >= 0. Edges are numbered from 0 in
 * the order of adding. */
void network_edge(Network *, uint32_t from, uint32_t to, int64_t capacity);
/* Changes the capacity of edge k, for another cut. */
void network_set_capacity(Network *, uint32_t k, int64_t capacity);
/* Sets below[v], for each vertex, to whether vertex v is on the sink's side of a minimal cut; of
 * several minimal cuts, the one nearest to the sink. The cut consists of the edges that lead from
 * the other side to this one. The result does not depend on the order in which edges were added.
 * May be called again after network_set_capacity. source and sink differ. */
void network_cut(Network *, uint32_t source, uint32_t sink, bool *below);

#endif
