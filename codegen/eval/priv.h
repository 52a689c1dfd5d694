/* Private to the evaluation of kernels. */
#ifndef WEFT_CODEGEN_EVAL_PRIV_H
#define WEFT_CODEGEN_EVAL_PRIV_H

#include "codegen/eval/eval.h"

/* Returns the remembered value of an expression x (number: x.i), or of value variable i whose value
 * is x (number: the number of expressions + i); none if there is none at this point. */
Lx eval_recall(Eval *, uint32_t number, Kx x);
/* Remembers a value under that number, unless an axis on which x depends has a value that changes.
 * Returns the value. */
Lx eval_remember(Eval *, uint32_t number, Kx x, Lx);
/* Returns the value of value variable `vvar` (index in Kernel.vvar) at the point, checked if
 * ValueVar.check says so, and clamped: a vector if the value depends on the lane axis. Done once at
 * a point. */
Lx eval_place(Eval *, uint32_t vvar);
/* Returns the address of an offset that depends on the lane axis. */
EvalAddress eval_vector_address(Eval *, Sym offset);

/* check.c: */
/* Adds the check that x, the value of a value variable, is within [0, extent); the failure has the
 * index and its position. */
void eval_check_index(Eval *, uint32_t vvar, Lx x);
/* Returns lane e->index.lane of a vector as a scalar; x itself if no lane is set, or x is one. */
Lx eval_lane(Eval *, Lx);

#endif
