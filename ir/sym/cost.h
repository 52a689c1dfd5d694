/* Costs (operations, bytes) as functions of the size symbols: expressions that are evaluated in
 * double when the sizes are known. They are not Sym, because a product of a kernel's extents may
 * leave 64 bits, which is no error here. */
#ifndef WEFT_IR_COST_H
#define WEFT_IR_COST_H

#include "ir/sym/sym.h"

typedef struct Cost Cost; /* immutable; in the arena */

/* Return a number, the value of a symbolic integer (0 where it is negative), the sum, product or
 * smaller one of two costs. The result refers to its operands. */
Cost *cost_number(Arena *, double);
Cost *cost_sym(Arena *, Sym);
Cost *cost_add(Arena *, const Cost *, const Cost *);
Cost *cost_mul(Arena *, const Cost *, const Cost *);
Cost *cost_min(Arena *, const Cost *, const Cost *);

/* Returns the value with var[k] = value[k] for k < n. A symbolic integer in it that contains other
 * variables has its value at the hints (sym_hint). */
double cost_at(const SymTab *, const Cost *, const Sym *var, const int64_t *value, uint32_t n);

#endif
