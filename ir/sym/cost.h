/* Costs (operations, bytes) as functions of the size symbols: trees that are evaluated in double
 * when the sizes are known. They are not Sym, because a product of a kernel's extents may leave 64
 * bits, which is no error here. */
#ifndef WEFT_IR_COST_H
#define WEFT_IR_COST_H

#include "ir/sym/sym.h"

typedef struct Cost Cost; /* immutable; in the arena */

Cost *cost_number(Arena *, double);
Cost *cost_sym(Arena *, Sym);
Cost *cost_add(Arena *, const Cost *, const Cost *);
Cost *cost_mul(Arena *, const Cost *, const Cost *);
Cost *cost_min(Arena *, const Cost *, const Cost *);

/* The value with var[k] = value[k]; other variables have their hints. */
double cost_at(const SymTab *, const Cost *, const Sym *var, const int64_t *value, uint32_t n);

#endif
