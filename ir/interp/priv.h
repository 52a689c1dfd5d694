/* Between the files of the interpreter and the ops that run subgraphs. */
#ifndef WEFT_IR_INTERP_PRIV_H
#define WEFT_IR_INTERP_PRIV_H

#include "ir/interp/interp.h"

/* Runs a subgraph: as interp_run, but writes the values of the outputs to out[], tensors with data
 * that the caller has allocated in the shapes of the outputs' types. Allocates nothing in
 * e->arena. False after ctx_error. */
bool interp_call(EvalCtx *, Graph *, const Tensor *in, uint32_t nin, Tensor *out, uint32_t nout);
/* Checks the guards of g from index `first` on, but not those that contain an unbacked size without
 * a value. Returns false after ctx_error if one does not hold. */
bool interp_guards(EvalCtx *, const Graph *g, uint32_t first);
/* Gives the unbacked size `var` the value that node n of g has computed. Then checks the extents of
 * inputs, and the guards of g, that contain it. Returns false after ctx_error if one does not hold,
 * or if e->sym has no room. */
bool interp_born(EvalCtx *, Graph *g, Node n, Sym var, int64_t value);
/* Moves e->sym and e->value to e->arena, with room for all symbols of the current scope besides
 * those that have a value. */
void interp_grow_symbols(EvalCtx *);
/* Runs a node of a scalar operator: writes the elements of *out, whose data is allocated. Returns
 * false after ctx_error if the operands do not have its extents, or the operator is not defined for
 * their dtypes. */
bool interp_scalar(EvalCtx *, Graph *, Node, const Tensor *in, Tensor *out);

#endif
