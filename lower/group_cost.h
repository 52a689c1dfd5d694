/* What a kernel costs, and how much of it one kernel may have.
 *
 * A group of nodes grows from its root towards the inputs. Its cost is what makes a kernel slow to
 * compile and to run: evaluations of nodes, values read from memory, reductions, axes. Work below
 * the graph grows up to quadratically in these, so bounds on them keep the time to compile a model
 * linear in its length. */
#ifndef WEFT_LOWER_GROUP_COST_H
#define WEFT_LOWER_GROUP_COST_H

#include "base/intern.h"
#include "ir/ops/op.h"

/* The ways in which a kernel indexes a node, one id per sequence of index maps between root and
 * node. However often an element-wise function is used, it is evaluated once per way. */
typedef ARRAY(uint32_t) ViewSet;

typedef struct {
	Arena *arena;
	Intern table;
	ARRAY(uint32_t) weight; /* by view: see map_weight */
} Views;

typedef struct {
	uint32_t evaluations; /* of nodes, once per way of indexing */
	uint32_t loads;       /* values that the group reads and does not hold */
	uint32_t reductions;
	uint32_t anchors;     /* contractions: one, since others are read as they are stored */
	uint32_t axes;
	uint32_t chain; /* the weight of the longest sequence of index maps from the root */
	double again;   /* operations on elements that are computed already: those of its nodes that
	                   have fewer than the root */
} GroupCost;

void views_init(Views *, Arena *);
void views_add(Views *, ViewSet *, uint32_t view);
/* Add the ways in which operand k of n is indexed where n itself is indexed in the ways `from`. */
void views_through(Views *, const Graph *, Node n, uint32_t k, const ViewSet *from, ViewSet *to);

/* Operations for one element of a node that is computed element by element. */
uint32_t element_cost(const Graph *, Node);

/* What a node adds to the kernel of `root`, which indexes it in these ways. Its loads are not
 * counted, nor what is repeated. */
GroupCost group_cost_of(const Graph *, Node, Node root, const Views *, const ViewSet *);
GroupCost group_cost_sum(GroupCost, GroupCost);
/* NULL: one kernel may cost that much; else why not. */
const char *group_refuses(GroupCost, Arena *);

/* By node: an index map at the end of so long a chain of them that it is better stored. */
bool *find_long_maps(const Graph *, Arena *);

#endif
