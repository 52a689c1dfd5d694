/* Between the files of the interpreter and the ops that run subgraphs. */
#ifndef WEFT_IR_INTERP_PRIV_H
#define WEFT_IR_INTERP_PRIV_H

#include "ir/interp/interp.h"

/* Runs a subgraph: as interp_run, but writes the values of the outputs to the data of out[], which
 * the caller has allocated in the shapes of the outputs' types. Does not check the guards of the
 * subgraph (interp_guards). Allocates nothing in e->arena. Returns false after ctx_error. */
bool interp_call(EvalCtx *, Graph *, const Tensor *in, uint32_t nin, Tensor *out, uint32_t nout);
/* Checks the guards of g from index `first` on, but not those that contain an unbacked size without
 * a value. Returns false after ctx_error if one does not hold. Sets e->syms. */
bool interp_guards(EvalCtx *, const Graph *g, uint32_t first);
/* Gives the unbacked size `var` the value that node n of g has computed; the caller has checked the
 * range. Then checks the extents of inputs, and the guards of g, that contain the size. Returns
 * false after ctx_error if one does not hold, if `var` is no variable, or if e->sym has no room. */
bool interp_born(EvalCtx *, Graph *g, Node n, Sym var, int64_t value);
/* Copies the elements of e->sym and e->value to new arrays in e->arena, which have room for all
 * symbols of the current scope besides those elements. */
void interp_grow_symbols(EvalCtx *);
/* Runs a node of a scalar operator on the operands in[]: writes the elements of *out, whose data is
 * allocated. Returns false after ctx_error if an operand does not have the extents of *out, or the
 * operator is not defined for the dtypes. */
bool interp_scalar(EvalCtx *, Graph *, Node, const Tensor *in, Tensor *out);

#endif
