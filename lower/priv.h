/* Private to lowering: grouping, tracing, layout. */
#ifndef WEFT_LOWER_PRIV_H
#define WEFT_LOWER_PRIV_H

#include "ir/ops/op.h"
#include "ir/target/target.h"
#include "lower/lower.h"
#include "lower/group.h"

/* Where a materialised node lives: element idx is at buf[t?, idx + off]. */
typedef struct {
	BufId buf;
	Sym t; /* leading index inside a loop, or none */
	Sym off[MAX_RANK];
} NodePlace;

typedef struct NodeInfo {
	NodeGroup is;
	ARRAY(NodePlace) place; /* [0] is read; all are written */
} NodeInfo;

typedef struct Lower {
	Graph *g;
	Ir *ir;
	Lowered *l;
	const LowerOptions *opt;
	const Target *target;
	Arena *arena;
	StepList *steps;
	struct Lower *parent; /* of a body */
	ARRAY(NodeInfo) info; /* by node */
	const char **stored; /* by node: why it has been a root, and stays one, or NULL */
	Node at;             /* the root whose steps are being made, or none */
	bool dry; /* finding out what must be stored: nodes that hold graphs have no results yet */
	bool read_loop;  /* a kernel read one of those */
	Kernel **kernel; /* by root: built while finding that out; NULL: to be built again */
	struct LowerState *state; /* lower/state.h; NULL: a body, or a graph that replaces none */
	Node *member, *next_member; /* by root: the first node of its kernel; by node: the next one,
	                               in program order */
} Lower;

/* A node that must be stored before a kernel can be built, and why. */
typedef struct {
	Node node;
	const char *why;
} StoredFirst;

/* lower/stage.c: one kernel for a root; false when *first must become a root before. */
MUST_LOOK bool lower_build_kernel(Lower *, Node root, Kernel **out, StoredFirst *first);

/* lower/control.c: nodes that hold graphs. */
MUST_LOOK bool lower_scan(Lower *, Node);
MUST_LOOK bool lower_while(Lower *, Node);
MUST_LOOK bool lower_cond(Lower *, Node);
/* A size that depends on data gets its value. */
MUST_LOOK bool lower_to_size(Lower *, Node);
/* lower/call.c: user operators. */
MUST_LOOK bool lower_call(Lower *, Node);
/* lower.c: groups, places and kernels of a whole graph whose input places are set; out[k]: where
 * output k goes. */
void lower_init(Lower *, Graph *, Lower *parent, Lowered *, StepList *);
void lower_place_constants(Lower *);
MUST_LOOK bool lower_body_to(Lower *, NodePlace *out);
/* The value read from an input: complex numbers as pairs of real ones. */
Node lower_input(const Graph *, Node);
void lower_push_kernel(Lower *, Kernel *);

/* lower/source.c: the lines of what the kernel of a root computes; that of a copy of n. */
SourceLines lower_lines(const Lower *, Node root);
SourceLines lower_line(const Lower *, Node n);

/* lower/place.c: places of nodes. A new buffer, by which others know the node. */
NodePlace lower_new_place(Lower *, Node, BufKind, uint32_t k);
void lower_add_place(Lower *, Node, NodePlace);
/* Places of all roots that have none yet. */
void lower_choose_places(Lower *);
bool lower_has_place(const Lower *, Node); /* stored by a kernel; results of several belong to their
                                              `get` nodes */
/* A root that operands are computed into; the steps that are left then. */
bool lower_is_parent(const Lower *, Node);
void lower_parent(Lower *, Node);
/* Where in the place of n, which replaces parts of operand 0, operand 1 lies. False where data says
 * it. */
MUST_LOOK bool lower_update_place(Lower *, Node n, NodePlace *);
/* n is it with a dimension of 1 before the others; none. Its place, from that of n, which is not
 * within a loop. */
Node lower_one_of(const Lower *, Node n);
NodePlace lower_place_of_one(const Lower *, NodePlace);
/* The first place of an operand is this one. */
bool lower_lives_in(const Lower *, Node operand, NodePlace);
/* An output may be computed in its place, which it is given before. */
bool lower_can_be_computed_in(const Lower *, Node);
/* Where result k of a root is computed: a place that a reader chose, else a buffer of its own. */
NodePlace lower_result_place(Lower *, Node, uint32_t k);
/* It is there: readers find it, other places that they want receive copies. */
void lower_publish_result(Lower *, Node, uint32_t k, const NodePlace *);

/* lower/layout.c */
void lower_choose_layouts(Lowered *);
/* lower/merge.c: after that. */
void lower_merge_results(Lowered *);

static inline NodeInfo *info_of(const Lower *s, Node n)
{
	return &s->info.data[n.i];
}

#endif
