/* Private to ops/rules/expand.c: expansions of composites in storage types (f16, bf16, f8).
 * Arithmetic of several steps, or with a constant that the type does not hold, is done in f32 and
 * rounded once at the end, as PyTorch's kernels do. Operators for which PyTorch rounds a scalar
 * argument to the storage type first have .narrow_scalars (ir/op/op.h). Of two tensors, one without
 * dimensions is rounded to the storage type first, unless the operator has .unrounded_other;
 * operands of another dtype are where the operator promotes (.promote). */
#ifndef WEFT_OPS_RULES_EXPAND_WIDE_H
#define WEFT_OPS_RULES_EXPAND_WIDE_H

#include "ir/op/op.h"

/* Returns whether the expansion of n to y rounds more often than PyTorch does: then it is done
 * again with expand_widen. y is in the types of n; the new nodes stand behind `prev` (no node:
 * from the first node of the graph on), in front of b->before. Returns false if n has no operand
 * of a storage type, or a new node is a contraction, whose kernel accumulates in f32 and rounds
 * once by itself. */
bool expand_rounds_often(const Build *b, Node n, Node prev, Node y);

/* Adds a copy of n, whose result has that type, in which operands of a storage type are converted
 * to f32 and results of one are f32. Returns the copy, which the caller erases. */
Node expand_widen(Build *b, Node n, TypeId result);
/* Returns y converted to the dtype of `type`, which y's type may differ from in dtypes only; of a
 * tuple each element. */
Node expand_narrow(Build *b, Node y, TypeId type);

#endif
