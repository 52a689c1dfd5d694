/* Private to the evaluation of kernels. */
#ifndef WEFT_CODEGEN_EVAL_PRIV_H
#define WEFT_CODEGEN_EVAL_PRIV_H

#include "codegen/eval/eval.h"

/* The remembered value of an expression (number x.i), or of the value variable that x is the value
 * of (numbers behind those of expressions); none: there is none here. */
Lx eval_recall(Eval *, uint32_t number, Kx x);
/* Remembers a value. Returns it. */
Lx eval_remember(Eval *, uint32_t number, Kx x, Lx);
/* A value variable, checked and clamped once at a point. */
Lx eval_place(Eval *, uint32_t vvar);
/* An offset that depends on the lane axis. */
EvalAddress eval_vector_address(Eval *, Sym offset);
/* check.c */
/* Records a failure unless 0 <= x < the variable's extent, with the index and its position. */
void eval_check_index(Eval *, uint32_t vvar, Lx x);
/* The value of lane index.lane of a vector, if that is set. */
Lx eval_lane(Eval *, Lx);

#endif
