/* Private to ops: reading arguments of a node and building nodes, as the blocks of all of its
 * rooms do. aten/priv.h adds what ATen's operators share.
 *
 * b is where nodes are added and errors are recorded (ir/build/build.h). n is the node that is
 * expanded or derived, `name` an argument of its schema. A size is symbolic (Sym): constant, or
 * known at run time. dims is a set of dimensions: bit k is dimension k. After an error (b_error) a
 * function returns no node; every function takes no node as an operand and then returns no node. */
#ifndef WEFT_OPS_RULES_COMMON_H
#define WEFT_OPS_RULES_COMMON_H

#include "ir/build/build.h"
#include "ops/rules/rules.h"

typedef struct {
	uint32_t rank;
	Sym dim[MAX_RANK];
} Shape;

/* ---- arguments ---- */

/* Returns the operand for a Tensor argument, or the first one of a Tensor[] argument: no node if
 * the optional argument is absent or the list is empty. A name that the schema lacks is an internal
 * error. */
static inline Node arg(const Build *b, Node n, const char *name)
{
	return node_arg(b->g, n, name);
}
/* Sets *out to the value of a constant size. Returns false after an error, with *out 0: the size is
 * symbolic. */
bool aten_const(Build *, Sym, int64_t *out);
/* Returns the value of an int argument. An argument that is absent or of another kind is an
 * internal error. A symbolic size is an error, which returns 0. */
int64_t aten_int(Build *, Node n, const char *name);

/* ---- shapes ---- */

/* Returns the shape of these extents, copied; rank <= MAX_RANK. */
Shape shape_of(uint32_t rank, const Sym *dim);
/* Returns the shape of a node; rank 0 of no node and of a tuple. */
Shape aten_shape(const Build *, Node);
/* Returns the dtype of a node; DT_none of no node and of a tuple. */
DType aten_dtype(const Build *, Node);
/* Returns the rank of a node; 0 of no node; of a tuple the number of its elements. */
uint32_t aten_rank(const Build *, Node);
/* Returns the number of elements: the product of the extents, 1 for rank 0. */
Sym shape_numel(const Build *, const Shape *);

/* ---- nodes ---- */

/* Returns the value of a size as a tensor without dimensions, of that dtype. */
Node aten_size(Build *, Sym, DType);
/* Returns the number v, rounded to x's dtype, as a constant of that dtype without dimensions. */
Node aten_like(Build *, Node x, double v);
/* Returns x with dimension `from` moved to position `to`; the others keep their order. */
Node aten_move_dim(Build *, Node x, uint32_t from, uint32_t to);
/* Returns n >= 1 tensors of one shape, one behind the other along a new dimension dim, in their
 * promoted dtype: torch.stack. No node if one of them is no node. */
Node aten_stack(Build *, const Node *x, uint32_t n, uint32_t dim);
/* Returns a tensor of that shape and dtype, each element of which is its own index along dim. */
Node aten_iota_dim(Build *, const Shape *, uint32_t dim, DType);
/* Returns the reduction of x over dims, in x's dtype, accumulated in dtype_compute of that dtype; x
 * itself if dims is 0. keep: the dimensions stay with extent 1; else they are removed. */
Node aten_reduce(Build *, ReduceKind, Node x, uint32_t dims, bool keep);
/* Returns the running reduction of x along dim: element i of the result combines the elements
 * 0 .. i, or with `reverse` the elements i, i + 1, ... to the end. kind: "sum", "prod", "max",
 * "min" (NaN wins) or "logaddexp"; of complex numbers "sum", "prod" or "logaddexp". */
Node b_cumulative(Build *, const char *kind, Node x, uint32_t dim, bool reverse);
/* Returns x as a constant of derivatives: no cotangent and no tangent passes. x itself if its dtype
 * is no float and not complex. */
Node aten_detached(Build *, Node x);

#endif
