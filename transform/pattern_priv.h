/* Private to transform/pattern*.c. */
#ifndef WEFT_TRANSFORM_PATTERN_PRIV_H
#define WEFT_TRANSFORM_PATTERN_PRIV_H

#include "ir/ops/op.h"
#include "transform/pattern.h"

/* What sizes of a pattern stand for in the graph. */
typedef struct {
	ARRAY(Sym) var, by;
} Sizes;

/* A place: for each node of the pattern the node of the graph. New nodes go in front of `before`.
 */
typedef struct {
	Node *node;
	Node before;
	Node *made; /* by output: what replaces it */
} Place;

typedef struct {
	Graph *g, *pattern, *replacement;
	ARRAY(Place) place;
	uint32_t *order; /* by node of g: its position, from 1 on; of new nodes 0 */
	uint32_t
		*owner; /* by node of g: the number of the place, from 1 on, that has the call; 0 */
	Node *call;     /* by node of g, while one place is sought: the pattern's call */
	uint32_t nnode; /* of g at the beginning */
} Patterns;

/* Makes the extents of `type`, of the pattern or replacement, those of `actual`: names of sizes
 * that stand alone get values, within their ranges, the first time. False if an extent is not
 * provably equal. */
bool sizes_unify(Ir *, Sizes *, TypeId type, TypeId actual);
/* An extent in terms of the graph's sizes. */
Sym sizes_put(Ir *, const Sizes *, Sym);
/* Finds all places, in order. */
void pattern_find(Patterns *);
bool pattern_is_call(const Graph *, Node);

#endif
