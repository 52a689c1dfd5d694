/* Private to transform_partition (partition.h): the costs of saving a value and of computing it
 * again, the choice, and the two graphs that are built. A node is late if it depends on a
 * cotangent: only the second graph (backward) computes it. Of the other nodes, those that late
 * nodes read are saved by the first graph (forward), or computed again in the second. */
#ifndef WEFT_TRANSFORM_PARTITION_PRIV_H
#define WEFT_TRANSFORM_PARTITION_PRIV_H

#include "transform/derive_priv.h"
#include "transform/partition/partition.h"

/* The costs of a node that is not late: cycles of x86-64-v3 at hint sizes, whatever the target, so
 * that the choice does not depend on it. */
typedef struct {
	double bytes; /* the bytes of the value */
	double save;  /* writing it, unless it is written anyway, and reading it */
	double hold;  /* holding it in memory, at a price of 1 */
	double again; /* computing it again from its operands, in the kernels that read it or in one
	                 of its own */
	bool fixed;   /* never computed again: an input, a value marked "keep", a node with an
	                 effect or with a size that depends on data */
	bool heavy;   /* computed again only if memory is short: contractions, reductions of many
	                 elements, operators with kernels of their own */
} SaveCost;

/* Backward can read the node `from`, which computes an inverse, instead of `value`. */
typedef struct {
	Node value, from;
} Same;

/* The blocks with an inverse (OP_invertible), in program order. */
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
	bool *wanted;     /* neither late nor given, and a late node reads it, or it is a
	                     gradient */
	uint32_t *region; /* the depth of the checkpointed blocks in which the node is; 0: none */
	Undo undo;
	Node *again;      /* the node that backward reads instead if this one is not saved; none:
	                     backward computes it from its operands */
	bool *kept;       /* never computed again from its operands */
	const SaveCost *cost;
	bool *saved;
	ARRAY(Node) list; /* the saved nodes, in program order */
	const uint8_t *space; /* see partition_space */
} Parting;

/* ---- blocks with an inverse (undo.c) ---- */

/* Adds, behind all nodes of the graph, the nodes that compute the inputs of each block that is not
 * late from its results, by its inverse, and returns what was added. ninput: the number of the
 * model's inputs. */
Undo partition_undo(Graph *, uint32_t ninput);
/* Sets p->again[] and p->kept[], from p->undo and p->given[]: what an inverse gives is read from
 * there, unless backward has it anyway; results of blocks, and further values that depend on what
 * an inverse gives, are kept. */
void partition_find_again(Parting *p);
/* Returns the node whose value backward reads instead of n's, unless n is saved: p->again[n], or
 * the operand of a node that only marks it (node_marked). Returns none if backward computes n from
 * its operands. */
Node partition_same(const Parting *p, Node n);

/* ---- costs (cost.c) ---- */

/* Returns the costs by node, in the scratch arena; those of late nodes are 0. Needs p->late. */
SaveCost *partition_costs(const Parting *p);

/* ---- which values are saved (partition.c) ---- */

/* Decides by a minimal cut which values are saved. p has g, ninput, noutput and undo, an empty
 * list, and zeroed arrays with an element for each node of g after partition_undo: late, given,
 * wanted, region, again, kept, saved. Fills in these arrays and p->list, and sets p->cost. budget
 * as in partition.h. Returns false after an error: the budget in bytes is too small; the size of a
 * gradient, or of a value that has to be saved or computed by an inverse, depends on data; a value
 * that has to be saved is a tuple. */
bool partition_choose(Parting *p, double budget);

/* ---- the order of dimensions in which values are saved (order.c) ---- */

/* Returns an array by node, in the scratch arena: the number of spatial dimensions of an image,
 * which are its last ones; 0: no image. An image is what a convolution reads or writes, and what
 * element-wise operators, borders and pooling make of it or it of them. */
const uint8_t *partition_space(const Parting *);
/* Sets perm[0 .. rank - 1] for a value of that rank with `space` spatial dimensions
 * (partition_space): dimension k of the saved tensor is dimension perm[k] of the value. Images
 * (space > 0) are saved channels-last, other values as they are. */
void partition_order(uint32_t rank, uint32_t space, uint32_t *perm);

/* ---- two graphs (build.c) ---- */

/* Sets part[] to the two graphs of transform_partition, after partition_choose and with
 * p->space. */
void partition_build(const Parting *p, Graph *part[2]);

#endif
