/* Building graphs: for expansions, importers and passes. Functions add nodes in front of b->before,
 * with the location b->loc. Element-wise helpers promote and broadcast explicitly, so their nodes
 * are canonical. After an error every function returns none and accepts none. */
#ifndef WEFT_IR_BUILD_H
#define WEFT_IR_BUILD_H

#include "ir/graph/graph.h"
#include "ir/scalar/reduce.h"

typedef struct Build {
	Graph *g;
	Node before; /* none: at the end */
	LocId loc;
	const char *where; /* the place for diagnostics */
	bool keep; /* b_node does not expand composites with a rule or a schedule of their own: for
	              expansions, whose caller visits the composites next */
} Build;

/* ATen's type promotion. Tensors with dimensions outrank those without, and these Python scalars;
 * but a higher category (bool < int < float < complex) always wins. Start with all zeros. */
typedef struct {
	DType dim, zero, weak;
} Promotion;
void promote_tensor(Promotion *, DType, uint32_t rank);
void promote_weak(Promotion *, DType); /* a Python scalar: DT_bool, DT_i64, or any float dtype,
                                          which counts as f32 */
DType promote_result(const Promotion *);
DType b_promote(const Build *, const Node *x, uint32_t n); /* the promoted dtype of nodes; absent
                                                              ones are skipped */

/* Adds a node of any operator. attr[]: by argument of the schema; ATTR_none for tensors, an int
 * with the number of tensors for Tensor[]. Infers the type of primitives and scalar operators.
 * Expands composites without .infer at once, unless `keep`. */
Node b_node(Build *, Op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr);

/* b_node that never expands a composite; its type is that of its expansion. canon expands it. */
Node b_call(Build *, Op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr);

/* The type of such a node: of a composite that of its expansion, which is not kept. 0 after
 * ctx_error, and for an operator without result. The operands must be as the schema says. */
TypeId b_type(Build *, Op, const Node *in, uint32_t nin, AttrId);

/* Constants. */
Node b_full(Build *, DType, double v, uint32_t rank, const Sym *dim); /* all elements are v */
Node b_zeros(Build *, TypeId);
Node b_full_int(Build *, DType, int64_t v, uint32_t rank, const Sym *dim);
/* All elements are the Python scalar v (integers may be symbolic), converted to the dtype; of a
 * complex number the real part. */
Node b_full_attr(Build *, DType, Attr v, uint32_t rank, const Sym *dim);
/* Sets *v to the value of a splat and returns true; returns false for other nodes. */
bool b_splat(const Build *, Node, Attr *v);
bool node_splat(const Graph *, Node, Attr *v); /* v may be NULL */
Node b_scalar(Build *, DType, double v); /* 0-d */
Node b_iota(Build *, DType, Sym n);      /* 0, 1, ..., n - 1 */
Node b_const(Build *, ConstId);
Node b_from_size(Build *, Sym);          /* an i64 without dimensions */
/* An index as Python counts: a negative one from the end. If the sign is unknown, it becomes a
 * guard; so the index must not depend on data. */
Sym b_index_from_end(Build *, Sym index, Sym size);
/* States that the symbol `size` is the value of x, an i64 without dimensions, from here on; at most
 * `most` (none: unknown). See OP_to_size. */
void b_to_size(Build *, Node x, Sym size, Sym most, const char *what);

/* Adds an element-wise operator: broadcasts operands to one shape and converts them to the promoted
 * dtype (operands without dimensions count weakly, as in ATen). */
Node b_pointwise(Build *, Op, const Node *in, uint32_t nin);
Node b_un(Build *, Op, Node x);
Node b_bin(Build *, Op, Node x, Node y);
Node b_select(Build *, Node cond, Node yes, Node no);
/* x op v. v takes x's dtype; if v is a fraction, integers become f32, as with a Python float. */
Node b_bin_scalar(Build *, Op, Node x, double v);
Node b_convert(Build *, Node x, DType); /* returns x if it has the dtype */

/* Sets dim[] (room for MAX_RANK) to the broadcast shape of n nodes; absent ones are skipped.
 * Extents that may be equal are made equal by a guard. Returns false after an error. */
bool b_common_shape(Build *, const Node *x, uint32_t n, uint32_t *rank, Sym *dim);

/* Index maps. Dimensions of type int may be negative: from the end. */
/* broadcasts to a shape; dimensions are aligned at the end, as by expand */
Node b_broadcast(Build *, Node x, uint32_t rank, const Sym *dim);
/* Dimension k of x becomes dimension map[k] of the result; others are new. */
Node b_broadcast_in_dim(Build *, Node x, uint32_t rank, const Sym *dim, const uint32_t *map);
/* the number of elements must stay the same */
Node b_reshape(Build *, Node x, uint32_t rank, const Sym *dim);
Node b_permute(Build *, Node x, const uint32_t *perm); /* dimension k of the result is dimension
                                                          perm[k] of x */
Node b_transpose(Build *, Node x, int d0, int d1);
Node b_unsqueeze(Build *, Node x, int dim);
Node b_squeeze(Build *, Node x, int dim);
/* requires 0 <= start <= end <= extent */
Node b_slice(Build *, Node x, int dim, Sym start, Sym end, Sym step);
Node b_select_dim(Build *, Node x, int dim, Sym index); /* removes the dimension */
/* low and high may be negative; value has no dimensions */
Node b_pad(Build *, Node x, const Sym *low, const Sym *high, Node value);
Node b_concat(Build *, const Node *x, uint32_t n, int dim);
Node b_reverse(Build *, Node x, int dim);

/* Reductions over dims (a bit set), which are removed (b_reduce) or keep extent 1 (b_reduce_keep).
 * acc: the accumulation dtype; DT_none: f32 for f16 and bf16, else x's. */
Node b_reduce(Build *, ReduceKind, Node x, uint32_t dims, DType acc);
Node b_reduce_keep(Build *, ReduceKind, Node x, uint32_t dims, DType acc);
/* A contraction of x and y. batch[], sum[]: pairs (dimension of x, dimension of y). The result has
 * the batch dimensions, then the other dimensions of x, then those of y, each in order. */
Node b_contract(Build *, Node x, Node y, const uint32_t (*batch)[2], uint32_t nbatch,
                const uint32_t (*sum)[2], uint32_t nsum);
Node b_matmul(Build *, Node x, Node y); /* ATen's matmul, for all ranks */
/* b_contract without batch dimensions, but the result has the accumulation dtype: for an epilogue
 * that rounds once. */
Node b_contract_wide(Build *, Node x, Node y, const uint32_t (*sum)[2], uint32_t nsum);
/* b_matmul, for all ranks, but the result has the accumulation dtype. */
Node b_matmul_wide(Build *, Node x, Node y);

/* Tuples. */
Node b_tuple(Build *, const Node *x, uint32_t n);
Node b_get(Build *, Node tuple, uint32_t k); /* result k of a tuple; of a b_tuple the element
                                                itself */

/* Symbolic helpers. */
Sym b_dim(const Build *, Node x, int dim);
Sym b_int(const Build *, int64_t);
/* makes a negative dimension positive; rank 0 counts as 1 */
uint32_t b_wrap_dim(const Build *, int64_t dim, uint32_t rank);
SymTab *b_syms(const Build *);
/* Records an error at this node. Returns none. */
Node b_error(Build *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* So that compilers and analysers know that b_error returns none. */
static inline Node b_none(Node none)
{
	(void)none;
	return (Node){0};
}
#define b_error(...) b_none(b_error(__VA_ARGS__))

#endif
