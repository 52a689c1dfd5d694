/* Private to lowering: tracing one kernel, from its root backwards. */
#ifndef WEFT_LOWER_TRACE_H
#define WEFT_LOWER_TRACE_H

#include "ir/kernel/build.h"
#include "lower/priv.h"

typedef struct {
	Lower *s;
	Kernel *k;
	Node root;
	StoredFirst blocked; /* a node that must be stored before this kernel can be built; none:
	                        the kernel can be built */
	bool only_maps; /* tracing operands of an anchor: nothing may be computed */
	Sym root_axis[MAX_RANK];
	Sym root_extent[MAX_RANK];
	uint32_t nroot;
	uint64_t outer; /* the root axes on which reductions found so far depend */
	bool has_reduce;
	Intern memo;
	ARRAY(Kx) memo_value;
} Trace;

/* Returns the value of n at idx[] (one Sym per dimension), read only where guard holds. Equal
 * requests give the same expression. */
Kx trace_value(Trace *, Node n, const Sym *idx, Kx guard);
/* Whether the value of n is read from memory; else it is computed where it is read. */
bool trace_reads_stored(const Trace *, Node n);
/* lower/bent.c: for operand n of a contraction, read at idx: the index map that should be stored,
 * because the index into its operand is not linear in the kernel's axes. Returns none if the index
 * is linear, or if a copy would take longer than it saves. */
Node lower_bent_map(const Trace *, Node n, const Sym *idx);
/* lower/stage.c: makes a stage of a reduction or contraction and returns its value at idx. */
Kx trace_stage(Trace *, Node n, const Sym *idx, Kx guard);
/* Returns the value of n at idx where cond holds, `other` where cond fails. Memory is read only
 * where guard and cond hold. Where guard fails the value is unspecified. cond none: the same as
 * trace_value, and `other` is not used. */
Kx trace_guarded(Trace *, Node n, const Sym *idx, Kx guard, Kx cond, Kx other);
/* Records that n must be stored before the kernel can be built, and why. Returns a placeholder. */
Kx trace_block(Trace *, Node n, const char *why);

/* A call of an operator's .index (ir/ops/lower.h): values that it asks for are read where guard
 * holds; axes become axes of the stage. */
typedef struct {
	IndexMap map;
	Trace *t;
	Kx guard, cond; /* cond: the element exists; none: always */
	Stage *stage;
} TraceMap;

TraceMap trace_map(Trace *, Node, const Sym *at, Kx guard, Stage *);
void trace_ask(TraceMap *);

/* ---- pieces of expressions ---- */

/* How node n combines values of that dtype, by its attribute `attr`. */
ReduceKind lower_combiner(Lower *, Node n, const char *attr, DType);
/* The condition lo <= e < hi; none if it is proven. */
Kx trace_in_range(Trace *, Sym e, Sym lo, Sym hi);
/* Whether x depends on other axes than these (bits), or on data. */
bool trace_needs_more(const Trace *, Kx x, uint64_t axes);
/* A variable for an index that depends on data, clamped to [0, extent). */
Sym trace_value_var(Trace *, Kx value, Sym extent);

/* ---- kernels: start, axes, stages, end ---- */

/* A readable name for the kernel of a node: the node's name; or the operator and the name of the
 * first reader that has one. */
const char *lower_name(Lower *, Node);
void trace_start(Trace *, const char *name);
/* trace_start, with a root axis for each dimension of a node. */
void trace_start_over(Trace *, Node value_of);
/* Add axes; 0 for an extent of 1. Root axes come before all others. */
Sym trace_root_axis(Trace *, Sym extent);
Sym trace_inner_axis(Trace *, const char *name, Sym extent, Stage *reduced_by);
uint32_t trace_push_stage(Trace *, Stage);
Kx trace_stage_value(Trace *, uint32_t stage);
/* The number of an axis; -1: it is none. */
int trace_axis_number(const Trace *, Sym var);
/* Makes all root axes outer axes; reductions have axes of their own. */
void trace_all_outer(Trace *);
/* The index, in its buffer, of element at[] of a stored value. */
const Sym *trace_place_index(Trace *, const NodePlace *, const Sym *at, uint32_t rank);
/* The last step: puts outer axes first. */
void trace_order_axes(Trace *);

#endif
