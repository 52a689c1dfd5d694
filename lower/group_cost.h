/* The cost of a group, and bounds for it.
 *
 * A group grows from its root towards the inputs. Its cost is what makes a kernel slow to compile
 * and to run: evaluations of nodes, loads, reductions, axes. Work below the graph grows up to
 * quadratically with these, so bounds keep the compile time linear in the model's length. */
#ifndef WEFT_LOWER_GROUP_COST_H
#define WEFT_LOWER_GROUP_COST_H

#include "base/intern.h"
#include "ir/ops/op.h"

/* The ways in which a kernel indexes a node: an id for each sequence of index maps between root and
 * node. An element-wise function is evaluated once for each way. */
typedef ARRAY(uint32_t) ViewSet;

typedef struct {
	Arena *arena;
	Intern table;
	ARRAY(uint32_t) weight; /* by way: see map_weight */
} Views;

typedef struct {
	uint32_t evaluations; /* evaluations of nodes, once for each way of indexing */
	uint32_t loads;       /* values that the group reads but does not contain */
	uint32_t reductions;
	uint32_t anchors;     /* contractions */
	uint32_t axes;
	uint32_t chain; /* the weight of the longest chain of index maps from the root */
	double again;   /* operations that are repeated: those of nodes with fewer elements than the
	                   root */
} GroupCost;

void views_init(Views *, Arena *);
void views_add(Views *, ViewSet *, uint32_t view);
/* Adds to `to` the ways in which operand k of n is indexed, if n is indexed in the ways `from`. */
void views_through(Views *, const Graph *, Node n, uint32_t k, const ViewSet *from, ViewSet *to);

/* The operations for one element of an element-wise node. */
uint32_t element_cost(const Graph *, Node);

/* The cost that a node adds to the group of `root`, which indexes it in these ways; without loads
 * and repeated operations. */
GroupCost group_cost_of(const Graph *, Node, Node root, const Views *, const ViewSet *);
GroupCost group_cost_sum(GroupCost, GroupCost);
/* Returns NULL if the cost is within the bounds, else the reason why not. */
const char *group_refuses(GroupCost, Arena *);

/* By node: whether it is an index map at the end of a chain so long that it is better stored. */
bool *find_long_maps(const Graph *, Arena *);

#endif
