/* Private to transform/pattern: finding the places that match (find.c) and replacing
 * them (pattern.c). A call is a node that computes: neither input nor constant. */
#ifndef WEFT_TRANSFORM_PATTERN_PRIV_H
#define WEFT_TRANSFORM_PATTERN_PRIV_H

#include "ir/op/op.h"
#include "transform/pattern/pattern.h"

/* The values that sizes of a pattern have at one place: size var[k] is by[k], an expression of the
 * graph's sizes. */
typedef struct {
	ARRAY(Sym) var, by;
	const Sym *all; /* the sizes that may get values, for sizes_solve */
	uint32_t nall;
} Sizes;

/* A place that matches. */
typedef struct {
	Node *node;  /* by node of the pattern: the node of the graph */
	Node before; /* new nodes are added in front of this node */
	Node *made;  /* by output of the pattern: the new node that replaces it */
} PatternPlace;

typedef struct {
	Graph *g, *pattern, *replacement;
	ARRAY(PatternPlace) place;
	uint32_t *order; /* by node of g before any is added: twice its position, from 2 on */
	uint32_t
		*owner; /* by node of g: 1 + the number of the place to which the call belongs; 0:
		           none */
	Node *call;     /* by node of g, while one place is sought: the call of the pattern that it
	                   matches */
	uint32_t nnode; /* the number of nodes of g before any is added */
	ARRAY(Sym) size, new_size; /* of the pattern, of the replacement */
	bool moves;     /* the places want nodes of g in another order: pattern_order */
} Patterns;

/* Matches `type`, of the pattern or replacement, with `actual`, of the graph: a size that is an
 * extent by itself, and has no value yet, gets the actual extent, if that is within its range.
 * Returns false if dtype or rank differ, or if such an extent is not within the range; other
 * extents are compared later, when all sizes have values. */
bool sizes_unify(Ir *, Sizes *, TypeId type, TypeId actual);
/* Matches `type` with `actual` after sizes_unify, for sizes that occur in expressions only: an
 * extent that is linear in its one size without a value gives that size the value with which the
 * extent equals the actual one. Returns false if there is no such value, or if it is not within the
 * size's range. */
bool sizes_solve(Ir *, Sizes *, TypeId type, TypeId actual);
/* Returns the first of the n sizes of the pattern to which neither sizes_unify nor sizes_solve can
 * give a value, from the types of the pattern's nodes; none: all get one. */
Sym sizes_unknown(const Graph *pattern, const Sym *size, uint32_t n);
/* Returns an extent of the pattern or replacement with the sizes' values put in. Sizes without a
 * value stay. */
Sym sizes_put(Ir *, const Sizes *, Sym);
/* Fills in x->place with the places that match, in the program order of output 0; of places that
 * have a call in common only the first. Needs x->g, x->pattern and x->size; sets x->order,
 * x->owner, x->call and x->moves. */
void pattern_find(Patterns *x);
/* Whether the place, which is sought (node[] by node of the pattern, x->call by node of g), may
 * become one step: no value that it reads depends on a reader of one of its outputs, where those
 * in x->place are one step each. Takes O(nodes of g). */
bool pattern_is_one_step(const Patterns *x, const Node *node);
/* Moves nodes up, in front of what depends on them; other nodes keep their order. */
void pattern_order(Graph *g);
/* Whether n (which may be none) is a call. */
bool pattern_is_call(const Graph *, Node n);

#endif
