/* Private to ir/ops: reading arguments and building nodes, as blocks of all of its rooms do.
 * Everything accepts a missing node (after an error) and passes it on. aten/priv.h adds what ATen's
 * operators share. */
#ifndef WEFT_IR_OPS_COMMON_H
#define WEFT_IR_OPS_COMMON_H

#include "ir/ops/op.h"

typedef struct {
	uint32_t rank;
	Sym dim[MAX_RANK];
} Shape;

/* ---- arguments ---- */

static inline Node arg(const Build *b, Node n, const char *name)
{
	return node_arg(b->g, n, name);
}
/* The symbol's value is constant: else b_error. */
bool aten_const(Build *, Sym, int64_t *out);
/* A constant integer; b_error and 0 when it is symbolic. */
int64_t aten_int(Build *, Node n, const char *name);

/* ---- shapes ---- */

Shape shape_of(uint32_t rank, const Sym *dim);
Shape aten_shape(const Build *, Node);
DType aten_dtype(const Build *, Node); /* DT_none of a missing node */
uint32_t aten_rank(const Build *, Node);
Sym shape_numel(const Build *, const Shape *);

/* ---- nodes ---- */

Node aten_size(Build *, Sym, DType);       /* 0-d */
Node aten_like(Build *, Node x, double v); /* 0-d splat of x's dtype */
Node aten_move_dim(Build *, Node x, uint32_t from, uint32_t to);
Node aten_stack(Build *, const Node *x, uint32_t n, uint32_t dim);
/* Iota along one dim of a shape, broadcast to it. */
Node aten_iota_dim(Build *, const Shape *, uint32_t dim, DType);
Node aten_reduce(Build *, ReduceKind, Node x, uint32_t dims, bool keep);
Node b_cumulative(Build *, const char *kind, Node x, uint32_t dim, bool reverse);
/* The cotangent of x, of that of its running product along dim; in the dtype that x is computed in.
 * Zeros are no exception. Defined in prim/reduce_rules.c. */
Node b_cumprod_backward(Build *, Node ct, Node x, uint32_t dim, bool reverse);
Node aten_detached(Build *, Node x); /* x, in derivatives a constant: results that PyTorch does not
                                        differentiate */

#endif
