/* Private to lowering: the state of tracing one kernel. */
#ifndef WEFT_PASSES_LOWER_TRACE_H
#define WEFT_PASSES_LOWER_TRACE_H

#include "passes/lower_priv.h"

typedef struct {
	Lower *s;
	Kernel *k;
	Node root;
	Node blocked;   /* must become a root before this kernel can be built */
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
/* lower_stage.c: a reduction or contraction becomes a stage; its value at idx. */
Kx trace_stage(Trace *, Node n, const Sym *idx, Kx guard);
/* The value of n where cond (none: always) holds as well, `other` elsewhere. */
Kx trace_guarded(Trace *, Node n, const Sym *idx, Kx guard, Kx cond, Kx other);
/* The kernel cannot be built unless n is stored: remembers n; returns a placeholder. */
Kx trace_block(Trace *, Node n);

/* Index into a tensor of shape `to` of the element at idx in shape `from` (equal element counts). */
void reshape_index(SymTab *, const Sym *from, const Sym *idx, uint32_t nfrom, const Sym *to, Sym *out,
                   uint32_t nto);

/* ---- pieces of expressions ---- */

Kx trace_zero(Trace *, DType);
/* How node n combines values of that dtype; `name` is what its attribute holds. */
ReduceKind trace_kind(Trace *, Node n, const char *name, DType);
Kx trace_as_i64(Trace *, Kx);
/* lo <= e < hi, none when that is proven. */
Kx trace_in_range(Trace *, Sym e, Sym lo, Sym hi);
/* A variable for a value of the data, clamped to [0, extent). */
Sym trace_value_var(Trace *, Kx value, Sym extent);
/* in[]: the element of operand 0 that a gather or scatter names by its index at lead[] (the index's axes but
 * the last) and by rest[] (the axes taken whole). Where *cond is false there is none. */
void trace_places(Trace *, Node, const Sym *lead, const Sym *rest, Kx guard, Sym *in, Kx *cond);

/* ---- kernels: start, axes, stages, end ---- */

/* A readable name for the kernel of a node: the node's, or that of the first reader that has one and the operator. */
const char *lower_name(Lower *, Node);
void trace_start(Trace *, const char *name);
/* With root axes for all dimensions of a node. */
void trace_start_over(Trace *, Node value_of);
/* New axes; 0 for a dimension of extent 1. Root axes come before all others. */
Sym trace_root_axis(Trace *, Sym extent);
Sym trace_inner_axis(Trace *, const char *name, Sym extent, Stage *reduced_by);
uint32_t trace_push_stage(Trace *, Stage);
/* The index of element at[] of a stored value within its buffer. */
const Sym *trace_place_index(Trace *, const NodePlace *, const Sym *at, uint32_t rank);
/* The last step: outer axes come first. */
void trace_order_axes(Trace *);

#endif
