/* Private to lowering: grouping, tracing, layout. */
#ifndef WEFT_PASSES_LOWER_PRIV_H
#define WEFT_PASSES_LOWER_PRIV_H

#include "ir/ops/op.h"
#include "passes/lower.h"

/* Where a materialised node lives: element idx is at buf[t?, idx + off]. */
typedef struct {
	BufId buf;
	Sym t; /* leading index inside a loop, or none */
	Sym off[MAX_RANK];
} NodePlace;

enum { MAX_KERNEL_AXES = 24 }; /* schedules handle as many */

/* How a node relates to kernels. */
typedef enum {
	ROLE_NONE,    /* dead, tuple, get */
	ROLE_LEAF,    /* input, constant, full, iota: read or recomputed wherever it is used */
	ROLE_VIRTUAL, /* an index map: always inlined */
	ROLE_INLINE,  /* computed inside the kernel of its group */
	ROLE_ROOT     /* has a kernel and a buffer of its own */
} Role;

typedef struct NodeInfo {
	Role role;
	uint32_t group;   /* node index of the group's root, 0: several groups or none */
	bool bijective;   /* reached from the root through element-wise ops, permute and reshape only */
	uint16_t cost;    /* operations per element, inlined operands included */
	ARRAY(NodePlace) place; /* [0] is read; all are written */
} NodeInfo;

typedef struct Lower {
	Graph *g;
	Ir *ir;
	Lowered *l;
	const LowerOptions *opt;
	Arena *arena;
	StepList *steps;
	struct Lower *parent; /* of a loop body */
	ARRAY(NodeInfo) info; /* by node */
	bool dry; /* finding out what must be stored: loops have no results yet */
	bool read_loop;  /* a kernel read one of those */
	Kernel **kernel; /* by root: built while finding that out; NULL: to be built again */
	Node *member, *next_member; /* by root: the first node of its kernel; by node: the next one, in program order */
} Lower;

/* lower_group.c: roles and groups. */
bool lower_assign_groups(Lower *);
bool node_is_index_map(Op);
bool node_is_anchor(Op);
bool node_is_elementwise(Op);

/* lower_kernel.c: dimensions [from, from_end) of one shape and [to, to_end) of another that hold equally many
 * elements, as few as can be told. */
typedef struct {
	uint32_t from, from_end, to, to_end;
} ReshapeGroup;

/* The next group of a reshape; the first after {0}. False at the end. */
bool reshape_group(SymTab *, const Sym *from, uint32_t nfrom, const Sym *to, uint32_t nto, ReshapeGroup *);

/* lower_kernel.c: one kernel for a root; false when `*blocked` must become a root first. */
bool lower_build_kernel(Lower *, Node root, Kernel **out, Node *blocked);

/* lower_loop.c: a scan node. */
bool lower_scan(Lower *, Node);
/* lower.c: groups, places and kernels of a whole graph whose input places are set; out[k]: where output k
 * goes. */
void lower_init(Lower *, Graph *, Lower *parent, Lowered *, StepList *);
void lower_place_constants(Lower *);
bool lower_body_to(Lower *, const NodePlace *out);
NodePlace lower_new_place(Lower *, Node, BufKind, uint32_t k);

/* The value stored as output k: complex numbers as pairs of real ones. */
Node lower_output(const Graph *, uint32_t k);

/* lower_pad.c: padding of convolutions becomes padded buffers. */
void lower_explicit_padding(Graph *);

/* lower_layout.c */
void lower_choose_layouts(Lowered *);

static inline NodeInfo *info_of(Lower *s, Node n)
{
	return &s->info.data[n.i];
}

#endif
