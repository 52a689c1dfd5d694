/* The cost of a group, and bounds for it.
 *
 * A group grows from its root towards the inputs. Its cost is what makes a kernel slow to compile
 * and to run: evaluations of nodes, loads, reductions, axes. Work below the graph grows up to
 * quadratically with these, so bounds keep the compile time linear in the model's length. */
#ifndef WEFT_LOWER_GROUP_COST_H
#define WEFT_LOWER_GROUP_COST_H

#include "base/intern.h"
#include "ir/op/op.h"

/* A view of a node is the composition of the index maps between the root and the node, by which the
 * kernel indexes the node; equal ones have one id, and 0 is the root's own index. A node is
 * evaluated once for each of its views. */
typedef ARRAY(uint32_t) ViewSet;

/* The table of the views of one graph. */
typedef struct {
	Arena *arena;
	Intern table;
	ARRAY(uint32_t) weight; /* by view: the number of its index maps; a reshape that merges
	                           dimensions counts more, because its index has divisions */
} Views;

typedef struct {
	uint32_t evaluations; /* evaluations of nodes, one for each view */
	uint32_t loads;       /* values that the group reads but does not contain */
	uint32_t reductions;
	uint32_t anchors;     /* contractions */
	uint32_t axes;
	uint32_t chain; /* the greatest weight of a view */
	double again;   /* operations that are repeated: those of nodes with fewer elements than the
	                   root */
} GroupCost;

/* Makes a table with one view, number 0: that of the root, which is read through no index map. */
void views_init(Views *, Arena *);
/* Adds a view to the set, unless it is in the set, or the set has more views than a kernel may
 * evaluate. */
void views_add(Views *, ViewSet *, uint32_t view);
/* Adds to the set `to` the views of operand k of n, if n has the views `from`. */
void views_through(Views *, const Graph *, Node n, uint32_t k, const ViewSet *from, ViewSet *to);

/* Returns the operations for one element of a node's value: ScFn.cost of a scalar function, else
 * OpLower.cost, 1 if that is 0. */
uint32_t element_cost(const Graph *, Node);

/* Returns the cost that node n, with these views, adds to the group of `root`; loads and `again`
 * are 0. */
GroupCost group_cost_of(const Graph *, Node n, Node root, const Views *, const ViewSet *);
/* Returns the sum, field by field; of `chain` the greater one. */
GroupCost group_cost_sum(GroupCost, GroupCost);
/* Returns NULL if evaluations, loads, reductions, axes and chain are within the bounds of one
 * kernel; else a text that says which is not, in the arena. */
const char *group_refuses(GroupCost, Arena *);

/* Returns an array by node, in the arena: whether the node is an index map at the end of a chain of
 * index maps so long that the node must be stored. Behind such a node a new chain begins. */
bool *find_long_maps(const Graph *, Arena *);

/* Whether n is computed of constants alone, by a few operators, as scales that are stored as two
 * factors. False for constants themselves. */
bool is_of_constants(const Graph *, Node n);

#endif
