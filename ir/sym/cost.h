/* Counts (operations, bytes) as functions of the size symbols: trees that are evaluated in double
 * once the sizes are known. Not Sym: a product of all extents of a kernel may leave 64 bits where
 * no index does, and that is no error. */
#ifndef WEFT_IR_COST_H
#define WEFT_IR_COST_H

#include "ir/sym/sym.h"

typedef struct Cost Cost; /* immutable, shared freely; lives in the arena */

Cost *cost_number(Arena *, double);
Cost *cost_sym(Arena *, Sym);
Cost *cost_add(Arena *, const Cost *, const Cost *);
Cost *cost_mul(Arena *, const Cost *, const Cost *);
Cost *cost_min(Arena *, const Cost *, const Cost *);

/* At value[k] for var[k]; other variables have their hints. */
double cost_at(const SymTab *, const Cost *, const Sym *var, const int64_t *value, uint32_t n);

#endif
