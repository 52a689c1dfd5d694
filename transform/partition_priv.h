/* Private to partitioning: what each value costs to save and to compute again, and the graphs that
 * are made of the choice. */
#ifndef WEFT_TRANSFORM_PARTITION_PRIV_H
#define WEFT_TRANSFORM_PARTITION_PRIV_H

#include "transform/derive_priv.h"

/* By node, of those that are not late. Cycles of a typical machine, not of the target, so that what
 * is saved does not depend on it; at the sizes that the file hints at. */
typedef struct {
	double bytes; /* of the value */
	double save;  /* writing it, where that is not done anyway, and reading it */
	double hold;  /* what memory costs, at a price of 1 */
	double again; /* computing it from its operands, in the kernels that read it or in one of
	                 its own */
	bool fixed;   /* not again: its effect happens once, or how often it is computed is not
	                 known */
	bool heavy;   /* not again unless memory is short: contractions, reductions of many
	                 elements, kernels of their own */
} SaveCost;

/* A value that is `from` where gradients are computed. */
typedef struct {
	Node value, from;
} Same;

/* Of blocks with an inverse, in program order. */
typedef struct {
	uint32_t first;   /* nodes with handles from it on compute inverses, only where gradients
	                     are computed */
	ARRAY(Same) same; /* where a value is there several times, the last counts */
	ARRAY(Node) result, constant; /* of blocks; what their inverses read besides */
} Undo;

typedef struct {
	Graph *g;
	uint32_t ninput, noutput; /* of the model */
	/* By node. */
	bool *late;       /* it depends on a cotangent */
	bool *given;      /* whoever computes gradients has it: an input that callers pass again, a
	                     constant, a number */
	bool *wanted;     /* of those that are not late: one that is late reads it, or it is a
	                     gradient */
	uint32_t *region; /* how many regions deep it is that are computed again */
	Undo undo;
	Node *again;      /* of those that are not saved: what they are in the second graph; none:
	                     made of their operands */
	bool *kept;       /* never computed again from its operands */
	const SaveCost *cost;
	bool *saved;
	ARRAY(Node) list; /* saved, in program order */
	const uint8_t *space; /* see partition_space */
} Parting;

/* ---- blocks with an inverse (partition_undo.c) ---- */

/* Behind the graph, what computes the inputs of its blocks from their results. */
Undo partition_undo(Graph *, uint32_t ninput);
/* again[] and kept[], from `given`. */
void partition_find_again(Parting *);
/* Another node whose value it has in the second graph, unless it is saved; none: it is computed
 * from its operands. */
Node partition_same(const Parting *, Node);

/* ---- costs (partition_cost.c) ---- */

SaveCost *partition_costs(const Parting *);

/* ---- what is saved (partition.c) ---- */

/* saved[], by the minimal cut: budget as in transform.h. False after ctx_error. */
bool partition_choose(Parting *, double budget);

/* ---- in which order values are saved (partition_order.c) ---- */

/* By node: how many dimensions of space an image has, its last ones; 0 where it is none. */
const uint8_t *partition_space(const Parting *);
/* perm[rank]: dimension k of what is saved is dimension perm[k] of the value. Of an image the
 * channels are last. */
void partition_order(uint32_t rank, uint32_t space, uint32_t *perm);

/* ---- two graphs (partition_build.c) ---- */

void partition_build(const Parting *, Graph *part[2]);

#endif
