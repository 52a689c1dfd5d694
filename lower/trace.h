/* Private to lowering: the state of tracing one kernel. */
#ifndef WEFT_LOWER_TRACE_H
#define WEFT_LOWER_TRACE_H

#include "ir/kernel/build.h"
#include "lower/priv.h"

typedef struct {
	Lower *s;
	Kernel *k;
	Node root;
	StoredFirst blocked; /* must become a root before this kernel can be built; none: it can */
	bool only_maps; /* operands of an anchor: nothing may be computed */
	Sym root_axis[MAX_RANK];
	Sym root_extent[MAX_RANK];
	uint32_t nroot;
	uint64_t outer; /* root axes that the reductions found so far depend on */
	bool has_reduce;
	Intern memo;
	ARRAY(Kx) memo_value;
} Trace;

/* The value of n at idx (one Sym per dimension), where guard holds. Interns equal requests. */
Kx trace_value(Trace *, Node n, const Sym *idx, Kx guard);
/* Read from memory; else computed where it is read. */
bool trace_reads_stored(const Trace *, Node n);
/* lower/bent.c: of operand n of a contraction, read at idx in terms of the kernel's axes, the index
 * map that is to be stored: from there on the axes can be followed in equal steps, and what it
 * reads cannot. None: it is linear, or a copy takes longer than it saves. */
Node lower_bent_map(const Trace *, Node n, const Sym *idx);
/* lower/stage.c: a reduction or contraction becomes a stage; its value at idx. */
Kx trace_stage(Trace *, Node n, const Sym *idx, Kx guard);
/* The value of n where cond (none: always) holds as well, `other` elsewhere. */
Kx trace_guarded(Trace *, Node n, const Sym *idx, Kx guard, Kx cond, Kx other);
/* The kernel cannot be built unless n is stored: remembers n and why; returns a placeholder. */
Kx trace_block(Trace *, Node n, const char *why);

/* A question to an operator's .index (ir/ops/lower.h): values that it asks for are read where guard
 * holds, axes become those of the stage. */
typedef struct {
	IndexMap map;
	Trace *t;
	Kx guard, cond; /* cond: there is such an element; none: always */
	Stage *stage;
} TraceMap;

TraceMap trace_map(Trace *, Node, const Sym *at, Kx guard, Stage *);
void trace_ask(TraceMap *);

/* ---- pieces of expressions ---- */

/* How node n combines values of that dtype, by the attribute that says it. */
ReduceKind lower_combiner(Lower *, Node n, const char *attr, DType);
/* lo <= e < hi, none when that is proven. */
Kx trace_in_range(Trace *, Sym e, Sym lo, Sym hi);
/* Does x depend on other axes than these (bits), or on values of the data? */
bool trace_needs_more(const Trace *, Kx x, uint64_t axes);
/* A variable for a value of the data, clamped to [0, extent). */
Sym trace_value_var(Trace *, Kx value, Sym extent);

/* ---- kernels: start, axes, stages, end ---- */

/* A readable name for the kernel of a node: the node's, or that of the first reader that has one
 * and the operator. */
const char *lower_name(Lower *, Node);
void trace_start(Trace *, const char *name);
/* With root axes for all dimensions of a node. */
void trace_start_over(Trace *, Node value_of);
/* New axes; 0 for a dimension of extent 1. Root axes come before all others. */
Sym trace_root_axis(Trace *, Sym extent);
Sym trace_inner_axis(Trace *, const char *name, Sym extent, Stage *reduced_by);
uint32_t trace_push_stage(Trace *, Stage);
Kx trace_stage_value(Trace *, uint32_t stage);
/* The number of an axis, -1: none. */
int trace_axis_number(const Trace *, Sym var);
/* All root axes are outer: what is reduced has axes of its own. */
void trace_all_outer(Trace *);
/* The index of element at[] of a stored value within its buffer. */
const Sym *trace_place_index(Trace *, const NodePlace *, const Sym *at, uint32_t rank);
/* The last step: outer axes come first. */
void trace_order_axes(Trace *);

#endif
