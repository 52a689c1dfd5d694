/* Private to the evaluation of kernels. */
#ifndef WEFT_CODEGEN_EVAL_PRIV_H
#define WEFT_CODEGEN_EVAL_PRIV_H

#include "codegen/eval/eval.h"

/* Returns the remembered value of an expression x (number: x.i), or of value variable i whose value
 * is x (number: the number of expressions + i); none if no value is known at this point and in the
 * active lanes. */
Lx eval_recall(Eval *, uint32_t number, Kx x);
/* Remembers a value of x under a number of eval_recall, unless x depends on an axis whose value
 * reads a mutable variable (memo_changes). Returns the value in both cases. */
Lx eval_remember(Eval *, uint32_t number, Kx x, Lx);
/* Returns the value of value variable `vvar` (index in Kernel.vvar) at the point, checked if
 * ValueVar.check says so, and clamped to its extent: a vector if the value depends on the lane
 * axis. A value that is remembered at the point is returned without another check. */
Lx eval_place(Eval *, uint32_t vvar);
/* Returns the address of an offset that depends on the lane axis: consecutive elements, an offset
 * plus index lanes at a distance, or index lanes alone if the offset is not linear in the axis. */
EvalAddress eval_vector_address(Eval *, Sym offset);

/* check.c: */
/* Adds the check that x, the value of value variable `vvar`, is within [0, extent) in all active
 * lanes; the failure has the index (of the first lane that fails) and its position. */
void eval_check_index(Eval *, uint32_t vvar, Lx x);
/* Returns lane e->index.lane of a vector x as a scalar; x itself if e->index.lane is none or x is a
 * scalar. */
Lx eval_lane(Eval *, Lx);

#endif
