/* Expansions of composites in storage types: arithmetic of several steps, or with a constant that
 * the type does not hold, is done in f32 and rounded once at the end, as PyTorch's kernels do. Some
 * of those (a sum, not a product) make a scalar a value of the storage type first: .narrow_scalars
 * in the table. */
#ifndef WEFT_IR_EXPAND_WIDE_H
#define WEFT_IR_EXPAND_WIDE_H

#include "ir/ops/op.h"

/* Node n was expanded in its own types: y, with new nodes behind `prev` up to b->before. Would more
 * than its result be rounded to a storage type? Not with a contraction among the new nodes: kernels
 * read its operands in their storage type, accumulate in f32 and round once by themselves. */
bool expand_rounds_often(const Build *b, Node n, Node prev, Node y);

/* A copy of n, at b->before, of which operands and type are f32 where those of n are a storage
 * type. */
Node expand_widen(Build *b, Node n);
/* Result y with the dtypes of `type`. */
Node expand_narrow(Build *b, Node y, TypeId type);

#endif
