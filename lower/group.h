/* Private to lowering: which nodes form one kernel (fusion). */
#ifndef WEFT_LOWER_GROUP_H
#define WEFT_LOWER_GROUP_H

#include "ir/ops/op.h"
#include "ir/target/target.h"

/* The role of a node in kernels. */
typedef enum {
	ROLE_NONE,    /* dead, or has no value */
	ROLE_LEAF,    /* read, or computed, wherever it is used */
	ROLE_VIRTUAL, /* an index map, or as cheap: always fused into its readers */
	ROLE_INLINE,  /* computed inside of its group's kernel */
	ROLE_ROOT     /* has a kernel and a buffer of its own */
} Role;

typedef struct {
	Role role;
	uint32_t root; /* the root of its group, for roots the node itself; 0: in several groups, or
	                  in none */
	const char *why; /* a root: why it is stored and not computed in its readers' kernel */
} NodeGroup;

/* Decides the role of each node; the result is by node. stored: by node, a reason to make it a root
 * in any case, or NULL. no_fusion: every node that computes is a root. */
const NodeGroup *group_nodes(const Graph *, const Target *, const char *const *stored, bool no_fusion, Arena *);

/* The node whose value is stored as output k; complex numbers are pairs of real ones. */
Node lower_output(const Graph *, uint32_t k);

#endif
