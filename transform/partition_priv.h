/* Private to partitioning: the costs of saving a value and of computing it again, the choice, and
 * the graphs that follow. */
#ifndef WEFT_TRANSFORM_PARTITION_PRIV_H
#define WEFT_TRANSFORM_PARTITION_PRIV_H

#include "transform/derive_priv.h"

/* By node that is not late. Cycles of a typical machine at hint sizes, so that the choice does not
 * depend on the target. */
typedef struct {
	double bytes; /* the bytes of the value */
	double save;  /* writing it, unless it is written anyway, and reading it */
	double hold;  /* holding it in memory, at a price of 1 */
	double again; /* computing it again from its operands, in the kernels that read it or in one
	                 of its own */
	bool fixed;   /* never computed again: it has an effect, or the number of executions is
	                 unknown */
	bool heavy;   /* computed again only if memory is short: contractions, reductions of many
	                 elements, operators with kernels of their own */
} SaveCost;

/* A value that backward computes as `from`. */
typedef struct {
	Node value, from;
} Same;

/* Blocks with an inverse, in program order. */
typedef struct {
	uint32_t first;   /* nodes with handles from `first` on compute inverses; only backward has
	                     them */
	ARRAY(Same) same; /* if a value occurs several times, the last one counts */
	ARRAY(Node) result, constant; /* results of blocks; further values that inverses read */
} Undo;

typedef struct {
	Graph *g;
	uint32_t ninput, noutput; /* the model's */
	/* By node. */
	bool *late;       /* the node depends on a cotangent */
	bool *given;      /* backward has the value: an input that is passed again, a constant, a
	                     number */
	bool *wanted;     /* not late, but a late node reads it, or it is a gradient */
	uint32_t *region; /* the depth of checkpointed blocks around it */
	Undo undo;
	Node *again;      /* not saved: the node that backward has instead; none: computed from its
	                     operands */
	bool *kept;       /* never computed again from its operands */
	const SaveCost *cost;
	bool *saved;
	ARRAY(Node) list; /* the saved nodes, in program order */
	const uint8_t *space; /* see partition_space */
} Parting;

/* ---- blocks with an inverse (partition_undo.c) ---- */

/* Adds, behind the graph, the nodes that compute the inputs of blocks from their results. */
Undo partition_undo(Graph *, uint32_t ninput);
/* Fills in again[] and kept[], from given[]. */
void partition_find_again(Parting *);
/* The node whose value backward uses instead of n's, unless n is saved; none: n is computed from
 * its operands. */
Node partition_same(const Parting *, Node);

/* ---- costs (partition_cost.c) ---- */

SaveCost *partition_costs(const Parting *);

/* ---- what is saved (partition.c) ---- */

/* Fills in saved[] by the minimal cut; budget as in transform.h. Returns false after errors. */
bool partition_choose(Parting *, double budget);

/* ---- in which order values are saved (partition_order.c) ---- */

/* By node: the number of spatial dimensions of an image, its last ones; 0: no image. */
const uint8_t *partition_space(const Parting *);
/* Sets perm[rank]: dimension k of the saved tensor is dimension perm[k] of the value. Images are
 * saved channels-last. */
void partition_order(uint32_t rank, uint32_t space, uint32_t *perm);

/* ---- two graphs (partition_build.c) ---- */

void partition_build(const Parting *, Graph *part[2]);

#endif
