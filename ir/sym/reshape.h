/* Reshapes: the same elements in row-major order under another shape. */
#ifndef WEFT_IR_RESHAPE_H
#define WEFT_IR_RESHAPE_H

#include "ir/sym/sym.h"

/* Dimensions [from, from_end) of one shape and [to, to_end) of another with equally many elements;
 * as few dimensions as can be proven. */
typedef struct {
	uint32_t from, from_end, to, to_end;
} ReshapeGroup;

/* Advances to the next group; begin with {0}. Returns false at the end. */
MUST_LOOK bool reshape_group(SymTab *, const Sym *from, uint32_t nfrom, const Sym *to, uint32_t nto,
			     ReshapeGroup *);

/* Sets out[] to the index, in shape `to`, of the element with index idx in shape `from`. Both
 * shapes have equally many elements. */
void reshape_index(SymTab *, const Sym *from, const Sym *idx, uint32_t nfrom, const Sym *to, Sym *out, uint32_t nto);

#endif
