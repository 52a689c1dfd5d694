/* Reshapes: the same elements in row-major order under another shape. */
#ifndef WEFT_IR_RESHAPE_H
#define WEFT_IR_RESHAPE_H

#include "ir/sym/sym.h"

/* Dimensions [from, from_end) of one shape and [to, to_end) of another that hold equally many
 * elements, as few as can be told. */
typedef struct {
	uint32_t from, from_end, to, to_end;
} ReshapeGroup;

/* The next group; the first after {0}. False at the end. */
MUST_LOOK bool reshape_group(SymTab *, const Sym *from, uint32_t nfrom, const Sym *to, uint32_t nto,
			     ReshapeGroup *);

/* Index into a tensor of shape `to` of the element at idx in shape `from` (equal element
 * counts). */
void reshape_index(SymTab *, const Sym *from, const Sym *idx, uint32_t nfrom, const Sym *to, Sym *out, uint32_t nto);

#endif
