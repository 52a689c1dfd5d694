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
Kx trace_stage(Trace *, Node n, const Sym *idx);
/* The kernel cannot be built unless n is stored: remembers n; returns a placeholder. */
Kx trace_block(Trace *, Node n);

/* Index into a tensor of shape `to` of the element at idx in shape `from` (equal element counts). */
void reshape_index(SymTab *, const Sym *from, const Sym *idx, uint32_t nfrom, const Sym *to, Sym *out,
                   uint32_t nto);

#endif
