/* Places in a graph that are like a pattern, and what takes their place: the contract is that of
 * weft_replace_pattern (weft_graph.h). */
#ifndef WEFT_TRANSFORM_PATTERN_H
#define WEFT_TRANSFORM_PATTERN_H

#include "ir/graph/graph.h"

enum { MAX_PATTERN = 4096 }; /* nodes of a pattern */

/* All three graphs are of one Ir and verified; the pattern and the replacement may name sizes of
 * other scopes. *places is the number of places. Returns false after ctx_error; then g is
 * unchanged. */
bool pattern_replace(Graph *g, Graph *pattern, Graph *replacement, uint32_t *places);

#endif
