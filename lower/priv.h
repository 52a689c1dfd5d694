/* Private to lowering: grouping, tracing, layout. */
#ifndef WEFT_LOWER_PRIV_H
#define WEFT_LOWER_PRIV_H

#include "ir/ops/op.h"
#include "ir/target/target.h"
#include "lower/lower.h"
#include "lower/group.h"

/* The place of a stored node: element idx is at buf[t?, idx + off]. */
typedef struct {
	BufId buf;
	Sym t; /* the leading index in a loop, or none */
	Sym off[MAX_RANK];
} NodePlace;

typedef struct NodeInfo {
	NodeGroup is;
	ARRAY(NodePlace) place; /* readers use place[0]; the kernel writes all */
} NodeInfo;

typedef struct Lower {
	Graph *g;
	Ir *ir;
	Lowered *l;
	const LowerOptions *opt;
	const Target *target;
	Arena *arena;
	StepList *steps;
	struct Lower *parent; /* the graph around this body */
	ARRAY(NodeInfo) info; /* by node */
	const char **stored; /* by node: why it must be a root, or NULL; kept between attempts */
	Node at;             /* the root whose steps are being made, or none */
	bool dry; /* a dry run that finds nodes which must be stored; nodes with graphs have no
	             results yet */
	bool read_loop;  /* in a dry run: a kernel read a result of a node with graphs */
	Kernel **kernel; /* by root: the kernel of the dry run; NULL: it must be built again */
	struct LowerState *state; /* lower/state.h; NULL: a body, or the graph writes no state */
	Node *member, *next_member; /* by root: the first node of its kernel; by node: the next node
	                               of that kernel, in program order */
} Lower;

/* A node that must be stored before a kernel can be built, and the reason. */
typedef struct {
	Node node;
	const char *why;
} StoredFirst;

/* lower/stage.c: builds the kernel of a root. Returns false if *first must be stored before. */
MUST_LOOK bool lower_build_kernel(Lower *, Node root, Kernel **out, StoredFirst *first);

/* lower/control.c: make steps of nodes with graphs. Return false after errors. */
MUST_LOOK bool lower_scan(Lower *, Node);
MUST_LOOK bool lower_while(Lower *, Node);
MUST_LOOK bool lower_cond(Lower *, Node);
/* Makes the step that gives a size that depends on data its value. */
MUST_LOOK bool lower_to_size(Lower *, Node);
/* lower/call.c: user operators. */
MUST_LOOK bool lower_call(Lower *, Node);
/* lower.c: lower_body_to makes groups, places and kernels of a whole graph. The places of inputs
 * must be set; out[k]: the place of output k. */
void lower_init(Lower *, Graph *, Lower *parent, Lowered *, StepList *);
void lower_place_constants(Lower *);
MUST_LOOK bool lower_body_to(Lower *, NodePlace *out);
/* The node that stands for an input's value; complex numbers are pairs of real ones. */
Node lower_input(const Graph *, Node);
void lower_push_kernel(Lower *, Kernel *);

/* lower/source.c: the source lines of a root's kernel; of a copy of n. */
SourceLines lower_lines(const Lower *, Node root);
SourceLines lower_line(const Lower *, Node n);

/* lower/place.c: places of nodes. lower_new_place makes a buffer for a node, named after it. */
NodePlace lower_new_place(Lower *, Node, BufKind, uint32_t k);
void lower_add_place(Lower *, Node, NodePlace);
/* Chooses the places of all roots that have none yet. */
void lower_choose_places(Lower *);
bool lower_has_place(const Lower *, Node); /* whether a kernel stores the node; several results
                                              belong to their `get` nodes */
/* lower_is_parent: whether operands are computed into the root's buffer. lower_parent makes the
 * steps that remain. */
bool lower_is_parent(const Lower *, Node);
void lower_parent(Lower *, Node);
/* Sets the place of operand 1 in the place of n, if n replaces a part of operand 0 by operand 1.
 * Returns false if the position depends on data. */
MUST_LOOK bool lower_update_place(Lower *, Node n, NodePlace *);
/* If n is a node with a leading dimension of 1 added: returns that node, else none.
 * lower_place_of_one: its place, from that of n. */
Node lower_one_of(const Lower *, Node n);
NodePlace lower_place_of_one(const Lower *, NodePlace);
/* Whether an operand's first place is this one. */
bool lower_lives_in(const Lower *, Node operand, NodePlace);
/* Whether an output's node can be computed in the place that the output has. */
bool lower_can_be_computed_in(const Lower *, Node);
/* The place in which result k of a root is computed: one that a reader chose, else a new buffer. */
NodePlace lower_result_place(Lower *, Node, uint32_t k);
/* Makes a result known to readers; other places that readers want receive copies. */
void lower_publish_result(Lower *, Node, uint32_t k, const NodePlace *);

/* lower/layout.c */
/* Chooses the layouts of all buffers. */
void lower_choose_layouts(Lowered *);
/* lower/merge.c: after that. */
void lower_merge_results(Lowered *);

static inline NodeInfo *info_of(const Lower *s, Node n)
{
	return &s->info.data[n.i];
}

#endif
