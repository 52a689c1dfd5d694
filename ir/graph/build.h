/* Building graphs: what expansions, importers and passes call. Functions insert before b->before
 * and give the new node the location b->loc. Element-wise helpers promote and broadcast explicitly,
 * so what they build is canonical. After an error every function returns none and accepts none. */
#ifndef WEFT_IR_BUILD_H
#define WEFT_IR_BUILD_H

#include "ir/graph/graph.h"
#include "ir/scalar/reduce.h"

typedef struct Build {
	Graph *g;
	Node before; /* none: append */
	LocId loc;
	const char *where; /* for diagnostics */
	bool keep; /* b_node leaves composites that have a rule or a schedule of their own whole: in
	              expansions, whose caller visits them next */
} Build;

/* ATen's type promotion: tensors with dims outrank 0-d ones, and those Python scalars, except that
 * a higher category (bool < int < float < complex) always wins. Start from zeros. */
typedef struct {
	DType dim, zero, weak;
} Promotion;
void promote_tensor(Promotion *, DType, uint32_t rank);
void promote_weak(Promotion *, DType); /* a Python scalar: DT_bool, DT_i64 or any float (f32
                                          then) */
DType promote_result(const Promotion *);
DType b_promote(const Build *, const Node *x, uint32_t n); /* of nodes, none skipped */

/* Any op, attributes given per schema argument in order (tensor slots are ATTR_none, a Tensor[]
 * slot an int with the count). Infers the type of primitives and scalar ops; composites are
 * expanded at once when they have no .infer, unless `keep` says otherwise. */
Node b_node(Build *, Op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr);

/* The same, but that a composite stays, for canon to expand: its type is what its expansion has. */
Node b_call(Build *, Op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr);

/* Constants. */
Node b_full(Build *, DType, double v, uint32_t rank, const Sym *dim); /* a splat */
Node b_zeros(Build *, TypeId);
Node b_full_int(Build *, DType, int64_t v, uint32_t rank, const Sym *dim);
/* v: a Python scalar (integers symbolic too), converted to the dtype, as convert does: of a complex
 * number the real part. */
Node b_full_attr(Build *, DType, Attr v, uint32_t rank, const Sym *dim);
/* The value of a splat (looks through nothing else); false for other nodes. */
bool b_splat(const Build *, Node, Attr *v);
bool node_splat(const Graph *, Node, Attr *v); /* v: or NULL */
Node b_scalar(Build *, DType, double v); /* 0-d */
Node b_iota(Build *, DType, Sym n);      /* [n]: 0, 1, ... */
Node b_const(Build *, ConstId);
Node b_from_size(Build *, Sym);          /* 0-d i64 */
/* An index as Python counts, from the end where it is negative. Not of a size that depends on data:
 * its sign is a guard unless known. */
Sym b_index_from_end(Build *, Sym index, Sym size);
/* From here on `size` is the value of x (0-d i64), at most `most` (none: not known): see
 * OP_to_size. */
void b_to_size(Build *, Node x, Sym size, Sym most, const char *what);

/* Element-wise scalar primitive: broadcasts operands to one shape and converts them to their
 * promoted dtype (0-d operands weakly, as ATen). */
Node b_pointwise(Build *, Op, const Node *in, uint32_t nin);
Node b_un(Build *, Op, Node x);
Node b_bin(Build *, Op, Node x, Node y);
Node b_select(Build *, Node cond, Node yes, Node no);
/* v takes x's dtype; beside a fraction integers become f32, as beside a Python float. */
Node b_bin_scalar(Build *, Op, Node x, double v);
Node b_convert(Build *, Node x, DType); /* x itself when equal */

/* The broadcast shape of several nodes (none skipped). Extents that may or may not be equal are
 * made equal by a guard of the graph. False after an error. dim has room for MAX_RANK. */
bool b_common_shape(Build *, const Node *x, uint32_t n, uint32_t *rank, Sym *dim);

/* Index maps. Dims may be negative where a dim is an int. */
/* aligned at the right, like expand */
Node b_broadcast(Build *, Node x, uint32_t rank, const Sym *dim);
/* Operand dim k becomes result dim map[k]; the others are new. */
Node b_broadcast_in_dim(Build *, Node x, uint32_t rank, const Sym *dim, const uint32_t *map);
Node b_reshape(Build *, Node x, uint32_t rank, const Sym *dim); /* element counts must agree */
Node b_permute(Build *, Node x, const uint32_t *perm); /* result dim k is operand dim perm[k] */
Node b_transpose(Build *, Node x, int d0, int d1);
Node b_unsqueeze(Build *, Node x, int dim);
Node b_squeeze(Build *, Node x, int dim);
/* 0 <= start <= end <= size */
Node b_slice(Build *, Node x, int dim, Sym start, Sym end, Sym step);
Node b_select_dim(Build *, Node x, int dim, Sym index); /* slice of one, squeezed */
Node b_pad(Build *, Node x, const Sym *low, const Sym *high, Node value); /* signed; value 0-d */
Node b_concat(Build *, const Node *x, uint32_t n, int dim);
Node b_reverse(Build *, Node x, int dim);

/* Reductions over dims (bit set), dims removed; acc is the accumulation dtype (DT_none: f32 for
 * f16/bf16, else the operand's). */
Node b_reduce(Build *, ReduceKind, Node x, uint32_t dims, DType acc);
Node b_reduce_keep(Build *, ReduceKind, Node x, uint32_t dims, DType acc);
/* [batch..., m..., k...] x [batch..., n..., k...]: general dot. Pairs of axes (dim of x, dim of y).
 * The result has the batch axes, then the free axes of x, then those of y, each in order. */
Node b_contract(Build *, Node x, Node y, const uint32_t (*batch)[2], uint32_t nbatch,
                const uint32_t (*sum)[2], uint32_t nsum);
Node b_matmul(Build *, Node x, Node y); /* ATen's matmul, all ranks */
/* The same with the sums of storage types as they are accumulated, for an epilogue that rounds
 * once; no batch. */
Node b_contract_wide(Build *, Node x, Node y, const uint32_t (*sum)[2], uint32_t nsum);
Node b_matmul_wide(Build *, Node x, Node y);

/* Tuples. */
Node b_tuple(Build *, const Node *x, uint32_t n);
Node b_get(Build *, Node tuple, uint32_t k); /* looks through b_tuple */

/* Symbolic helpers. */
Sym b_dim(const Build *, Node x, int dim);
Sym b_int(const Build *, int64_t);
/* negative dims; rank 0 counts as 1 */
uint32_t b_wrap_dim(const Build *, int64_t dim, uint32_t rank);
SymTab *b_syms(const Build *);
/* Record bad input at this node; returns none. */
Node b_error(Build *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* So that callers are compiled, and analyzed, knowing which value comes back. */
static inline Node b_none(Node none)
{
	(void)none;
	return (Node){0};
}
#define b_error(...) b_none(b_error(__VA_ARGS__))

#endif
