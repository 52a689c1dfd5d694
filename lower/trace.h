/* Private to lowering: tracing. The expressions of one kernel are built from its root backwards:
 * trace_value asks for the value of a node at an index, which asks for the values of its operands
 * at indices of their own, down to loads of stored values. A reduction or contraction on the way
 * becomes a stage (ir/kernel/kernel.h).
 *
 * Root axes run over the elements of the root; inner axes are those over which stages reduce or
 * map. An anchor is a contraction. A guard is a condition (Kx) without which memory must not be
 * read; none means true. */
#ifndef WEFT_LOWER_TRACE_H
#define WEFT_LOWER_TRACE_H

#include "ir/kernel/build.h"
#include "lower/priv.h"

/* The node of role LOWER_TILES in a kernel, whose root axes run over tiles of its result instead of
 * over the elements of two dimensions of the root (winograd.c). */
typedef struct {
	Node node;       /* none: no such node was met */
	uint32_t dim[2]; /* the dimensions of the root in which tiles lie */
	Sym at[2];       /* the tile, once root axes run over tiles; none before */
	uint32_t element[2]; /* of the tile, of which the value is asked */
} TracedTiles;

/* The attention, or sum with weights, whose stages are being traced (attention.h). */
typedef struct {
	const Node *score; /* its products, each of them a sum of its own at each point of: */
	uint32_t nscore;   /* 0: nothing of the kind is traced */
	uint32_t along;    /* the axis of keys; that which the sum with weights adds along */
	uint64_t at;       /* that axis, as a bit; for sums of weights all that they add along */
} TracedAttention;

typedef struct {
	Lower *s;
	Kernel *k;
	Node root;
	StoredFirst blocked; /* the first node that must be stored before this kernel can be built;
	                        none: the kernel can be built */
	bool only_maps; /* operands of an anchor are traced: they may be loads and index maps, and
			   what is decoded of constants (NodeGroup.decoded) */
	Sym root_axis[MAX_RANK]; /* by dimension of the root: its root axis, or 0 */
	Sym root_extent[MAX_RANK];
	uint32_t nroot; /* the number of root axes: the first of Kernel.axis */
	uint64_t outer; /* a bit set: the root axes on which reductions found so far depend */
	bool has_reduce;
	uint64_t summed; /* a bit set: the axes over which the first reduction adds floats, while
			    its operand is traced and no stage is there; else 0 */
	TracedTiles tiles;
	TracedAttention attention;
	Intern memo;    /* the requests of trace_value, and by their ids the answers */
	ARRAY(Kx) memo_value;
} Trace;

/* Returns the value of n at idx[] (one Sym per dimension; NULL if there are none), read only where
 * guard holds; where guard fails a load gives 0. Equal requests give the same expression. If a node
 * must be stored first (t->blocked), the result is a placeholder. */
Kx trace_value(Trace *t, Node n, const Sym *idx, Kx guard);
/* Whether trace_value loads the value of n from memory; else it computes the value. */
bool trace_reads_stored(const Trace *, Node n);
/* Returns, for operand n of a contraction, read at idx, the index map between n and a stored value
 * that should be stored itself, because the index into its operand is not linear in the kernel's
 * axes, or not always in range: *why says which. Returns none if the index is, or if a copy would
 * take longer than it saves (bent.c). */
Node lower_unfollowed_map(const Trace *, Node n, const Sym *idx, const char **why);
/* Adds a stage for a reduction or contraction n and returns its value at idx; or calls
 * trace_store_first if the kernel cannot contain it (stage.c). */
Kx trace_stage(Trace *, Node n, const Sym *idx, Kx guard);
/* Adds the stage of contraction n and returns its value at idx; or calls trace_store_first for an
 * operand that must be stored (lower/stage.c). inner: the inner axes at each of whose
 * points it is a sum of its own. */
Kx trace_contraction(Trace *, Node n, const Sym *idx, uint64_t inner);
/* Returns the value of operand k of contraction n at idx, which is stored, or behind index maps; or
 * calls trace_store_first (lower/stage.c). */
Kx trace_operand(Trace *, Node n, uint32_t k, const Sym *idx);
/* Returns what operand k of contraction n is computed of behind index maps, if that is of
 * constants, where products take it (NodeGroup.decoded); none if it is not (lower/stage.c). */
Node trace_decoded_operand(const Trace *, Node n, uint32_t k);
/* Makes the stage map the axes of a set. Returns its value at its own point (lower/stage.c). */
Kx trace_read_at(Trace *, uint32_t stage, uint64_t axes);
/* Returns the value of n, of role LOWER_TILES, at idx[]; or calls trace_store_first if tiles of n
 * are no tiles of the root (winograd.c). If the kernel does not run over tiles yet, sets
 * t->tiles.node, and the value is a placeholder: lower_build_tiles builds the kernel. */
Kx trace_tiles(Trace *, Node n, const Sym *idx);
/* Returns the value of n at idx where cond holds, `other` where cond fails. Memory is read only
 * where guard and cond hold. Where guard fails the value is unspecified. cond none: the result is
 * trace_value's, and `other` is not used. */
Kx trace_guarded(Trace *, Node n, const Sym *idx, Kx guard, Kx cond, Kx other);
/* Records that n must be stored before the kernel can be built, and why, unless such a node is
 * recorded. Returns a placeholder of n's compute dtype. */
Kx trace_store_first(Trace *, Node n, const char *why);

/* A call of an operator's .index (ir/op/lower.h) for a kernel: values that .index asks for are
 * read where guard holds; axes that it asks for are reduced by the stage. */
typedef struct {
	IndexMap map;   /* the question and, after trace_ask, the answer */
	Trace *t;
	Kx guard, cond; /* cond, after trace_ask: whether the element exists; none: always */
	Stage *stage;   /* NULL: .index asks for no axes */
} TraceMap;

/* Returns the question for element at[] of node n, which trace_ask asks. The other arguments are
 * the fields of TraceMap. */
TraceMap trace_map(Trace *, Node n, const Sym *at, Kx guard, Stage *);
/* Calls .index of the node's operator, and sets m->map and m->cond to the answers. */
void trace_ask(TraceMap *);

/* ---- pieces of expressions ---- */

/* Returns the ReduceKind that n's attribute `attr` names, for values of that dtype (reduce_of). A
 * text that names none is an internal error. */
ReduceKind lower_combiner(Lower *, Node n, const char *attr, DType);
/* Returns the condition lo <= e < hi; none if it is proven. */
Kx trace_in_range(Trace *, Sym e, Sym lo, Sym hi);
/* Whether x depends on an axis that is not in the bit set, or on an index that depends on data. */
bool trace_needs_more(const Trace *, Kx x, uint64_t axes);
/* Returns a new variable for an index that depends on data: the integer `value`, clamped to [0,
 * extent), without a check. */
Sym trace_value_var(Trace *, Kx value, Sym extent);

/* Returns a new variable for `value`, whose check is that it is 0. The message
 * gets `place`, unless that is none, and then the value `ncode` times. */
Sym trace_zero_var(Trace *, Kx value, uint32_t check, Sym place, uint32_t ncode);

/* ---- kernels: start, axes, stages, end ---- */

/* Returns a readable name for the kernel of a node: the node's name; else READER_OPERATOR, where
 * READER is the first named node on the way from reader to first reader of that, and so on; else
 * the operator's name. */
const char *lower_name(Lower *, Node);
/* Makes t->k a new kernel without axes, stages and expressions, of that name, which is kept. */
void trace_start(Trace *t, const char *name);
/* Does as trace_start, with a root axis for each dimension of n, and n's name. Sets t->root_axis
 * and t->nroot. */
void trace_start_over(Trace *, Node n);
/* Adds a root axis (before all inner axes are added) and returns its variable; the constant 0, and
 * no axis, for an extent of 1. The caller sets t->nroot when all root axes are added. */
Sym trace_root_axis(Trace *, Sym extent);
/* Adds an inner axis that the stage reduces and returns its variable; the constant 0, and no axis,
 * for an extent of 1. */
Sym trace_inner_axis(Trace *, const char *name, Sym extent, Stage *reduced_by);
/* Adds an inner axis with bounds (Axis.lo, Axis.hi), which the stage reduces, and returns its
 * variable. parts: how many such axes, of all outer points, the extent is divided among. */
Sym trace_bounded_axis(Trace *, const char *name, Sym extent, uint32_t lo, uint32_t hi, Sym parts,
		       Stage *reduced_by);
/* Adds a stage behind the others and returns its number. Until trace_order_axes, what a stage maps,
 * and the indices at which it is read, are those of inner axes alone. */
uint32_t trace_push_stage(Trace *, Stage);
/* Returns the result of a stage without inner map axes. */
Kx trace_stage_value(Trace *, uint32_t stage);
/* Returns the number in Kernel.axis of the axis with this variable; -1 if there is none. */
int trace_axis_number(const Trace *, Sym var);
/* Makes all axes so far root axes and outer axes: axes that are added later are inner axes. */
void trace_all_outer(Trace *);
/* Returns a stage that stores at[0 .. rank - 1] of a value of that rank at this place; the caller
 * sets its value. */
Stage trace_global_stage(Trace *, StageKind, const NodePlace *, const Sym *at, uint32_t rank);
/* Adds stages that store the value of the node at t->root_axis at so many places. value none: the
 * last stage has the value, and stores it. */
void trace_add_stores(Trace *, Node value_of, const NodePlace *, uint32_t nplace, Kx value);
/* Returns the index in its buffer, an array in the arena, of element at[0 .. rank - 1] of a value
 * of that rank at this place. */
const Sym *trace_place_index(Trace *, const NodePlace *, const Sym *at, uint32_t rank);
/* Ends a kernel: puts the outer axes first, in the kernel and in what each stage maps, and
 * renumbers the axes of stages. */
void trace_order_axes(Trace *);

#endif
