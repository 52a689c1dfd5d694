/* Reshapes: the same elements in row-major order under another shape. An element that has index i
 * in the one shape has index j in the other if both are at the same place in that order. */
#ifndef WEFT_IR_RESHAPE_H
#define WEFT_IR_RESHAPE_H

#include "ir/sym/sym.h"

/* Dimensions [from, from_end) of one shape that together have as many elements as dimensions [to,
 * to_end) of the other: those dimensions of the index depend on these alone. A group ends where
 * both numbers are provably equal, the last group where no dimension is left. */
typedef struct {
	uint32_t from, from_end, to, to_end;
} ReshapeGroup;

/* Replaces *g by the next group, which begins where *g ends, and returns true. Returns false, with
 * *g unchanged, if no dimension of either shape is left. Begin with a group of zeros. Both shapes
 * have equally many elements, which need not be provable. */
MUST_LOOK bool reshape_group(SymTab *, const Sym *from, uint32_t nfrom, const Sym *to, uint32_t nto,
			     ReshapeGroup *g);

/* Sets the nto elements of out[] to the index, in shape `to`, of the element with the index idx[],
 * of nfrom elements, in shape `from`. Both shapes have equally many elements. Along an extent that
 * is the constant 0 or 1, out[] is 0. */
void reshape_index(SymTab *, const Sym *from, const Sym *idx, uint32_t nfrom, const Sym *to,
		   Sym *out, uint32_t nto);

#endif
