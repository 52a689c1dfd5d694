/* Private to lowering: which nodes form one kernel (fusion). A group is a root, whose value its
 * kernel stores in a buffer, and the nodes that are computed inside of that kernel. */
#ifndef WEFT_LOWER_GROUP_H
#define WEFT_LOWER_GROUP_H

#include "ir/op/op.h"
#include "ir/target/target.h"

/* The role of a node in kernels. */
typedef enum {
	ROLE_NONE,    /* dead, or has no value */
	ROLE_LEAF,    /* in memory already (an input, a constant, a result of a node with several),
	                 or a number or index that needs no operand: each kernel that reads the node
	                 loads or computes it */
	ROLE_VIRTUAL, /* an index map, or as cheap: computed in every kernel that reads it */
	ROLE_INLINE,  /* computed inside of its group's kernel */
	ROLE_ROOT     /* has a kernel and a buffer of its own */
} Role;

typedef struct {
	Role role;
	uint32_t root; /* the root of its group, for roots the node itself; 0: in several groups, or
	                  in none */
	const char *why; /* a root: why it is stored and not computed in its readers' kernel */
	const struct FoundAttention *attention; /* find_attentions (lower/attention.h) */
	bool decoded;    /* computed of constants where contractions multiply it, whatever they
			    repeat: integers that a kernel of the contraction takes out of what is
			    stored */
	bool narrow;     /* decoded of what is stored in fewer bytes, where attention of few rows
			    multiplies it (FoundAttention.narrow) */
} NodeGroup;

/* Decides the role and group of each node. Returns an array by node, in the arena. stored: an
 * array by node, not NULL; stored[n] says why n must be a root, NULL if n need not be one. The
 * texts are kept in NodeGroup.why, as pointers. no_fusion: every node that computes, but no index
 * map, is a root. */
const NodeGroup *group_nodes(const Graph *, const Target *, const char *const *stored,
			     bool no_fusion, Arena *);

/* Returns the node behind the index maps from n on; n itself if it is none. */
Node group_source(const Graph *, Node n);

/* Whether n puts two computed values together as pairs: a concat of two operands, each an
 * element-wise operation or in memory, behind index maps or not, along the last dimension, where
 * each has extent 1. As a root n has one kernel, which stores a pair at each point, and its
 * operands are not computed in n's buffer by kernels of their own. */
bool group_makes_pairs(const Graph *, Node n);

/* Returns the node whose value is stored as output k: the output's node, or its operand if the
 * node has role LOWER_NOTHING (a complex view of pairs of real numbers). */
Node lower_output(const Graph *, uint32_t k);

#endif
