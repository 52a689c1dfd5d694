/* Between the files of the interpreter and the ops that run subgraphs. */
#ifndef WEFT_IR_INTERP_PRIV_H
#define WEFT_IR_INTERP_PRIV_H

#include "ir/interp/interp.h"

/* As interp_run, but into tensors that the caller allocated; needs nothing of e->arena. */
bool interp_call(EvalCtx *, Graph *, const Tensor *in, uint32_t nin, Tensor *out, uint32_t nout);
/* Guards from index `first` on hold for the bound symbols; else false after ctx_error. */
bool interp_guards(EvalCtx *, const Graph *, uint32_t first);
/* A symbol gets its value from node n; guards of g that wait for it hold, else false after
 * ctx_error. */
bool interp_born(EvalCtx *, Graph *g, Node n, Sym var, int64_t value);
/* Room for as many symbols as there are, in e->arena. */
void interp_grow_symbols(EvalCtx *);
/* An element-wise node. */
bool interp_scalar(EvalCtx *, Graph *, Node, const Tensor *in, Tensor *out);

#endif
