/* Pattern rewriting for users: each place in a graph that matches a pattern graph is replaced by a
 * replacement graph. weft_replace_pattern (weft_graph.h) says what matches. */
#ifndef WEFT_TRANSFORM_PATTERN_PATTERN_H
#define WEFT_TRANSFORM_PATTERN_PATTERN_H

#include "ir/graph/graph.h"

enum { MAX_PATTERN = 4096 }; /* the most nodes of a pattern; more are an error */

/* Replaces every place in g that matches the pattern by the replacement, in place, and sets *places
 * to their number (0: none). Of places that have an operator's node in common only the first is
 * replaced. All three graphs are of one Ir and verified; the sizes of pattern and replacement may
 * be of other scopes than g's. Returns false after an error, a pattern or replacement that is not
 * allowed or does not fit; then g and *places are unchanged. */
bool pattern_replace(Graph *g, Graph *pattern, Graph *replacement, uint32_t *places);

#endif
