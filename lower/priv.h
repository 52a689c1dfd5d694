/* Private to lowering: the state of lowering one graph, and what its files call of each other.
 *
 * For each graph: group_nodes chooses the roots (group.h); each root gets a place, and its kernel
 * is built by tracing (trace.h). If a kernel cannot be built before another node is stored, that
 * node becomes a root too, and grouping begins again (an attempt). Kernels and other steps are
 * added to s->steps. Nodes with graphs (scan, while, cond) lower their bodies in the same way, with
 * a Lower of their own. */
#ifndef WEFT_LOWER_PRIV_H
#define WEFT_LOWER_PRIV_H

#include "ir/op/op.h"
#include "ir/target/target.h"
#include "lower/lower.h"
#include "lower/group.h"

/* The place of a node's value in memory: element idx is at index idx + off of the buffer, behind
 * the index t in the first dimension if there is a t. */
typedef struct {
	BufId buf;
	Sym t; /* the round of a loop whose results are stacked; none: the buffer has no such
	          dimension */
	Sym off[MAX_RANK]; /* none: 0 */
} NodePlace;

typedef struct NodeInfo {
	NodeGroup is;
	ARRAY(NodePlace) place; /* readers read place[0]; the kernel of the node writes all */
} NodeInfo;

typedef struct Lower {
	Graph *g;
	Ir *ir;
	Lowered *l;
	const LowerOptions *opt;
	const struct RootFn *(*root_fn)(Op); /* lower/roots.h */
	const Target *target;
	Arena *arena;
	StepList *steps;
	struct Lower *parent; /* the lowering of the graph around this body; NULL: the outermost */
	ARRAY(NodeInfo) info; /* by node */
	const char **stored; /* by node: why it must be a root, or NULL; kept between attempts */
	Node at;             /* the root whose steps are being made, or none */
	bool dry; /* a dry run, which builds kernels to find nodes that must be stored, and adds no
	             steps; nodes with graphs have no results yet */
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

/* lower/stage.c: builds the kernel of a root, with stores to all its places, and sets *out; adds no
 * step. Returns false, and sets *first, if another node must be stored before. */
MUST_LOOK bool lower_build_kernel(Lower *, Node root, Kernel **out, StoredFirst *first);

/* The functions below add the steps of one node, whose operands are stored, at the end of s->steps.
 * They add the place from which readers read to each result (an OP_get node). */

/* control.c: for a scan, adds kernels that copy the initial values, and stacked operands without a
 * buffer of their own; then a STEP_LOOP with the steps of the body. Sets the places of the
 * results. */
void lower_scan(Lower *, Node);
/* control.c: for a while loop, adds kernels that copy the initial values; then a STEP_WHILE with
 * the steps of the condition and of the body. Sets the places of the results. */
void lower_while(Lower *, Node);
/* control.c: for a cond, adds a STEP_IF with the steps of both branches, which store the results
 * at the same places; then publishes these (lower_publish_result). */
void lower_cond(Lower *, Node);
/* control.c: for an OP_to_size, adds a STEP_SIZE, which reads the value of an unbacked size from
 * the operand's buffer. */
void lower_to_size(Lower *, Node);
/* call.c: for a call of a user operator, adds kernels that copy operands which are not whole
 * row-major buffers; then a STEP_CALL; then publishes the results (lower_publish_result). What the
 * operator demands of sizes, and is not known to hold, becomes guards of the graph. */
void lower_call(Lower *, Node);

/* lower/lower.c */
/* Makes *s the state for lowering a graph into `steps`. A body has the options, root_fn and target
 * of its parent. parent: NULL for the outermost graph, of which the caller then sets these and
 * s->state, which are NULL. */
void lower_init(Lower *s, Graph *, Lower *parent, Lowered *, StepList *steps);
/* Gives each constant of the graph a place: all of a new buffer BUF_CONST. */
void lower_place_constants(Lower *);
/* Lowers the whole graph of s: groups, places, kernels and other steps. The places of inputs and
 * constants must be set. out[k]: the place that output k is to be stored to; the function sets
 * out[k] for an output with lower_replaces. */
void lower_body_to(Lower *s, NodePlace *out);
/* Returns the node whose value lies in an input's memory: the input; of a complex input that is
 * read its reader, which views it as pairs of real numbers. */
Node lower_input(const Graph *, Node input);
/* Adds a step for the kernel, unless the kernel leaves state unchanged (lower_state_keeps). Sets
 * Kernel.stored, and Kernel.lines if they are not set, from the root s->at. */
void lower_push_kernel(Lower *, Kernel *);

/* lower/source.c: returns the lines of the model's source that the kernel of a root computes (the
 * line shown and the number of lines); if they are unknown, the line of the loop or branch around,
 * or none. */
SourceLines lower_lines(const Lower *, Node root);
/* lower/source.c: returns the same of the n nodes that a kernel computes; no line if none has
 * one. */
SourceLines lower_computed_lines(const Graph *, const Node *computes, uint32_t n);
/* lower/source.c: returns the line of a step that only moves the value of n: that of s->at; if it
 * is unknown, that of n; else that of the loop or branch around, or none. */
SourceLines lower_line(const Lower *, Node n);

/* ---- places of nodes (lower/place.c) ---- */

/* Returns a place at the start of a new buffer of n's type, named after n. k: as in Buffer. */
NodePlace lower_new_place(Lower *, Node n, BufKind, uint32_t k);
/* Adds a place behind those that the node has: the node's kernel writes all of them. */
void lower_add_place(Lower *, Node, NodePlace);
/* Gives a new temporary buffer to every node with lower_has_place that has no place yet. Before
 * that, operands get a place in the buffer of a reader that contains them (lower_holds_operands) or
 * in state (lower_state_extend). */
void lower_choose_places(Lower *);
/* Whether the node has a kernel that stores its value: a root whose type is no tuple. (The results
 * of a tuple are stored for its OP_get nodes.) */
bool lower_has_place(const Lower *, Node);
/* Whether n is a root that contains its operands, so that they may be computed directly in its
 * buffer: a concat, or a padding around (not between) elements whose border is nowhere negative and
 * has few pieces. */
bool lower_holds_operands(const Lower *, Node n);
/* For a root n with lower_holds_operands: adds kernels that fill the border, that copy those
 * operands which are not computed in the buffer, and that copy the whole value to the other places
 * of n. */
void lower_copy_operands(Lower *, Node n);
/* For a node n that replaces a part of operand 0 by operand 1: sets *part to the place of that part
 * within n's place. Returns false, with *part unspecified, if the position of the part depends on
 * data or is not provably in range, or if n is no OP_update_slice. */
MUST_LOOK bool lower_update_place(Lower *, Node n, NodePlace *part);
/* If n is x with a dimension of extent 1 added in front, returns x; else none. */
Node lower_without_leading_one(const Lower *, Node n);
/* Returns the place of the node that lower_without_leading_one returns for n, given the place of n,
 * which must have no t. */
NodePlace lower_place_without_leading_one(const Lower *, NodePlace);
/* Whether the node is a root whose first place is this one. */
bool lower_lives_in(const Lower *, Node, NodePlace);
/* Whether the node's value can be computed directly in a place that its reader chooses: the node
 * has lower_has_place, or is a result (OP_get) of a node that does not say where its results lie
 * (OpLower.own_results). */
bool lower_can_be_computed_in(const Lower *, Node);
/* Returns the place in which the steps of root n are to store its result k: if n is no tuple, its
 * first place; else the first place of an OP_get node of result k, or a new buffer. */
NodePlace lower_result_place(Lower *, Node n, uint32_t k);
/* For a root n whose steps have stored result k at *at: makes *at the place from which readers read
 * the result, and adds kernels that copy it to the other places of its OP_get nodes. If n is no
 * tuple, its first place stays the one that is read, copies go to its other places, and *at is not
 * used. */
void lower_publish_result(Lower *, Node n, uint32_t k, const NodePlace *at);

/* ---- after all steps ---- */

/* lower/layout.c: Chooses the order of dimensions of each temporary buffer whose layout is not
 * fixed; buffers without a reason for another order stay row-major. Fixes the layouts of what loops
 * carry. */
void lower_choose_layouts(Lowered *);
/* lower/merge.c: Removes kernels that copy all of a temporary buffer to an output which has the
 * same bytes in memory (another shape, a permutation), if nothing else writes or reads the output;
 * the temporary buffer becomes the output. Call it after lower_choose_layouts. */
void lower_merge_results(Lowered *);

/* lower/updates.c: Joins a kernel with a later one that reads, element by element, what the kernel
 * stores: the later one stores both. rows: also a kernel that stores values of rows with a later
 * one of the same rows. Call it after lower_merge_results. */
void lower_join_updates(Lowered *, bool rows);

/* lower/loops.c: Makes one loop of two that do not depend on each other, and have as many
 * rounds. The graph replaces neither state nor inputs. */
void lower_join_loops(Lowered *, const Target *);

/* Returns the record of a node, which may be changed. */
static inline NodeInfo *node_info(const Lower *s, Node n)
{
	return &s->info.data[n.i];
}

#endif
