/* Private to lowering: which nodes share a kernel. */
#ifndef WEFT_LOWER_GROUP_H
#define WEFT_LOWER_GROUP_H

#include "ir/ops/op.h"
#include "ir/target/target.h"

/* How a node relates to kernels. */
typedef enum {
	ROLE_NONE,    /* dead, or without a value */
	ROLE_LEAF,    /* read or recomputed wherever it is used */
	ROLE_VIRTUAL, /* an index map, or as cheap: always inlined */
	ROLE_INLINE,  /* computed inside the kernel of its group */
	ROLE_ROOT     /* has a kernel and a buffer of its own */
} Role;

typedef struct {
	Role role;
	uint32_t root; /* the node whose kernel it is part of, itself for roots; 0: of several, or
	                  of none */
	const char *why; /* a root: why it is stored, and not computed where it is read */
} NodeGroup;

/* By node. Those for which `stored` says why are roots, whatever the rules say; so are all that
 * compute something without fusion. */
const NodeGroup *group_nodes(const Graph *, const Target *, const char *const *stored, bool no_fusion, Arena *);

/* The value stored as output k: complex numbers as pairs of real ones. */
Node lower_output(const Graph *, uint32_t k);

#endif
