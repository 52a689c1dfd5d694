/* Costs (operations, bytes) as functions of the size symbols: expressions that are evaluated in
 * double when the sizes are known. They are not Sym, because a product of a kernel's extents may
 * leave 64 bits, which is no error here. */
#ifndef WEFT_IR_COST_H
#define WEFT_IR_COST_H

#include "ir/sym/sym.h"

typedef struct Cost Cost; /* immutable; in the arena */

/* The next functions return a new cost, in the given arena, which refers to its operands. */

/* Returns a constant cost. */
Cost *cost_number(Arena *, double);
/* Returns the cost that is the value of a symbolic integer; 0 where that is negative. */
Cost *cost_sym(Arena *, Sym);
/* Returns a + b. */
Cost *cost_add(Arena *, const Cost *a, const Cost *b);
/* Returns a * b. */
Cost *cost_mul(Arena *, const Cost *a, const Cost *b);
/* Returns the smaller of a and b. */
Cost *cost_min(Arena *, const Cost *a, const Cost *b);

/* Returns the value of a cost with var[k] = value[k] for k < n. A symbolic integer in the cost that
 * sym_eval cannot evaluate (it contains other variables, or leaves int64) counts with its value at
 * the hints (sym_hint). */
double cost_at(const SymTab *, const Cost *, const Sym *var, const int64_t *value, uint32_t n);

#endif
