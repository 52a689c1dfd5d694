/* Building graphs: for expansions, importers and passes.
 *
 * Every function that returns a Node adds nodes in front of b->before, with the location b->loc,
 * and returns the node of the result, or an existing node that already has the value. Functions
 * that take operands of several dtypes or shapes add the conversions and broadcasts themselves, so
 * that the nodes they make need none.
 *
 * Errors: a function that cannot build its node records an error (b_error) and returns the handle
 * 0, "none". A function that gets none for an operand returns none without another error; so a
 * caller checks only the last node.
 *
 * Terms: the attributes and the schema of an operator stand in ir/ops/op.h; a composite is an
 * operator that is defined by other operators, its expansion; a splat is a tensor whose elements
 * are all the same constant (OP_full); a guard is a condition on sizes that each call of the model
 * checks first (graph_guard); a size is unbacked if it depends on data (ir/sym/sym.h). */
#ifndef WEFT_IR_BUILD_H
#define WEFT_IR_BUILD_H

#include "ir/graph/graph.h"
#include "ir/scalar/reduce.h"

typedef struct Build {
	Graph *g;
	Node before; /* none: at the end */
	LocId loc;
	const char *where; /* the place for diagnostics; NULL: the file that is read */
	bool keep; /* b_node keeps composites for which op_is_kept (ir/ops/op.h) instead of
	              expanding them: for expansions, whose caller visits the composites next */
} Build;

/* ATen's type promotion. Tensors with dimensions outrank those without, and these Python scalars;
 * but a higher category (bool < int < float < complex) always wins. Start with all zeros, add each
 * operand by promote_tensor or promote_weak, then ask promote_result. */
typedef struct {
	DType dim, zero, weak;
} Promotion;
/* Adds a tensor as operand. */
void promote_tensor(Promotion *, DType, uint32_t rank);
/* Adds a Python scalar as operand, of dtype DT_bool, DT_i64, any float dtype (which counts as f32),
 * or any complex one (c64). */
void promote_weak(Promotion *, DType);
/* Returns the promoted dtype; DT_none if no operand was added. */
DType promote_result(const Promotion *);
/* Returns the promoted dtype of n tensors; absent ones (0) are skipped. DT_none if all are. */
DType b_promote(const Build *, const Node *x, uint32_t n);

/* Adds a node of any operator and infers its type. in[]: the nin operands in the schema's order, 0
 * for an absent optional tensor; missing ones at the end count as absent. attr[]: attribute k of
 * the schema's argument k: ATTR_none for a tensor, the number of tensors (ATTR_int) for Tensor[];
 * missing and ATTR_none ones take the schema's default. More attributes than the schema has
 * arguments are an internal error. Attributes are converted as Python accepts them (int for float).
 * A composite without .infer is expanded instead, and the result is the node of its value, unless
 * b->keep keeps it. Returns none after an error, and for a composite without result. */
Node b_node(Build *, Op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr);

/* As b_node, but adds a node of the composite itself, with the type that its expansion would have.
 * The pass canon expands it later. */
Node b_call(Build *, Op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr);

/* Returns the type that such a node would have; the graph is as before. in[] has one operand for
 * each tensor argument of the schema, and the attributes are complete. Returns 0 after an error,
 * and for an operator without result. */
TypeId b_type(Build *, Op, const Node *in, uint32_t nin, AttrId);

/* ---- constants and sizes ---- */

/* A tensor of this dtype and shape whose elements are all v, rounded to the dtype. */
Node b_full(Build *, DType, double v, uint32_t rank, const Sym *dim);
/* A tensor of this dtype and shape whose elements are all v, converted to the dtype: integers wrap
 * around. */
Node b_full_int(Build *, DType, int64_t v, uint32_t rank, const Sym *dim);
/* A tensor of this dtype and shape whose elements are all a Python scalar: ATTR_bool, ATTR_int
 * (which may be symbolic), ATTR_float, or ATTR_complex, of which a real dtype takes the real
 * part. */
Node b_full_attr(Build *, DType, Attr v, uint32_t rank, const Sym *dim);
/* Zeros of a tensor type. */
Node b_zeros(Build *, TypeId);
/* The tensor without dimensions whose element is v. */
Node b_scalar(Build *, DType, double v);
/* Returns true, and the value in *v, if the node is a splat; false for other nodes and none, with
 * *v unchanged. v may be NULL. */
bool b_splat(const Build *, Node, Attr *v);
/* b_splat of a node of a graph. */
bool node_splat(const Graph *, Node, Attr *v);
/* The tensor [n] of 0, 1, ..., n - 1. */
Node b_iota(Build *, DType, Sym n);
/* The node that reads a constant of the Ir (OP_constant). */
Node b_const(Build *, ConstId);
/* The value of the size as an i64 without dimensions. */
Node b_from_size(Build *, Sym);
/* Returns the index counted from 0, of an index as Python counts: a negative index counts from the
 * end, so `size` is added. If the sign of the index is unknown, the sign is computed at run time
 * where the index is unbacked; else a guard requires index >= 0. */
Sym b_index_from_end(Build *, Sym index, Sym size);
/* States that the symbol `size` has from here on the value of x, an i64 without dimensions, which
 * is at most `most` (none: no bound is known). Adds OP_to_size, which checks at run time that the
 * value is within the symbol's range; `what` names the size in its message. Does nothing if x is
 * none. */
void b_to_size(Build *, Node x, Sym size, Sym most, const char *what);

/* ---- element-wise operators ---- */

/* Adds a scalar operator (op_kind OP_SCALAR) of 1 to 4 operands (another number is an internal
 * error): broadcasts them to one shape and converts them to the promoted dtype (operands without
 * dimensions count weakly, as in ATen). Operators that are defined on floats only (exp) convert
 * bool and integers to f32. */
Node b_pointwise(Build *, Op, const Node *in, uint32_t nin);
/* b_pointwise of one operand. */
Node b_un(Build *, Op, Node x);
/* b_pointwise of two operands. */
Node b_bin(Build *, Op, Node x, Node y);
/* cond ? yes : no, by element. cond is converted to bool and takes no part in the promotion. */
Node b_select(Build *, Node cond, Node yes, Node no);
/* x op v. v takes x's dtype; if v is a fraction, an x of integers is converted to f32 first, as
 * with a Python float. */
Node b_bin_scalar(Build *, Op, Node x, double v);
/* x converted to the dtype; x itself if it has the dtype. */
Node b_convert(Build *, Node x, DType);

/* Sets *rank and dim[] (room for MAX_RANK) to the shape that n tensors broadcast to; absent ones
 * (0) are skipped. A guard requires that extents are equal where that is not proved. Returns false
 * after an error, extents that differ or a tuple; *rank and dim[] then have no meaning. */
bool b_common_shape(Build *, const Node *x, uint32_t n, uint32_t *rank, Sym *dim);

/* ---- index maps: the elements of x, moved ----
 * A dimension of type int may be negative, which counts from the end. A parameter `dim` of type Sym
 * is the shape of the result. */

/* Broadcasts x to the shape, with dimensions aligned at the end, as PyTorch's expand. A guard
 * requires that extents are equal where that is not proved. */
Node b_broadcast(Build *, Node x, uint32_t rank, const Sym *dim);
/* Broadcasts x so that dimension k of x becomes dimension map[k] of the result; map[] increases.
 * The other dimensions of the result are new. */
Node b_broadcast_in_dim(Build *, Node x, uint32_t rank, const Sym *dim, const uint32_t *map);
/* x with another shape, row-major. A guard requires that the numbers of elements are equal where
 * that is not proved. */
Node b_reshape(Build *, Node x, uint32_t rank, const Sym *dim);
/* Dimension k of the result is dimension perm[k] of x. */
Node b_permute(Build *, Node x, const uint32_t *perm);
/* Exchanges two dimensions; returns x itself if x has rank 0. */
Node b_transpose(Build *, Node x, int d0, int d1);
/* Inserts a dimension of extent 1, which is dimension `dim` of the result. */
Node b_unsqueeze(Build *, Node x, int dim);
/* Removes the dimension if its extent is provably 1; else returns x, as ATen does. */
Node b_squeeze(Build *, Node x, int dim);
/* Elements start, start + step, ... before end along the dimension. The caller sees to it that
 * 0 <= start <= end <= extent and step >= 1. */
Node b_slice(Build *, Node x, int dim, Sym start, Sym end, Sym step);
/* Element `index` along the dimension, which the result lacks. A constant negative index counts
 * from the end; otherwise the caller sees to it that 0 <= index < extent. */
Node b_select_dim(Build *, Node x, int dim, Sym index);
/* Puts low[k] elements in front of, and high[k] behind, those of x along each dimension k; a
 * negative number removes elements. The new elements are `value`, a tensor without dimensions,
 * which is converted to x's dtype. A result with an extent that is provably negative is an error;
 * where that is not known, a guard is added (graph_require, ir/ops/op.h). */
Node b_pad(Build *, Node x, const Sym *low, const Sym *high, Node value);
/* The n >= 1 tensors one behind the other along the dimension, in their promoted dtype. */
Node b_concat(Build *, const Node *x, uint32_t n, int dim);
/* x with the order of elements along the dimension reversed; x itself if it has rank 0. */
Node b_reverse(Build *, Node x, int dim);

/* ---- reductions and contractions ---- */

/* Reduces x over the dimensions in the bit set dims (bit k: dimension k), which the result lacks
 * (b_reduce) or has with extent 1 (b_reduce_keep). acc: the dtype in which elements are
 * accumulated; DT_none: dtype_compute of x's. The result has x's dtype. dims 0: returns x. */
Node b_reduce(Build *, ReduceKind, Node x, uint32_t dims, DType acc);
Node b_reduce_keep(Build *, ReduceKind, Node x, uint32_t dims, DType acc);
/* The contraction (general matrix product) of x and y: the sum of x * y over paired dimensions.
 * batch[], sum[]: pairs (dimension of x, dimension of y); those in sum[] are summed over, those in
 * batch[] are shared. The result has the batch dimensions, then the other dimensions of x, then
 * those of y, each in order. x and y are converted to their promoted dtype, which the result has;
 * sums are accumulated in its dtype_compute. A guard requires that paired extents are equal where
 * that is not proved. */
Node b_contract(Build *, Node x, Node y, const uint32_t (*batch)[2], uint32_t nbatch,
                const uint32_t (*sum)[2], uint32_t nsum);
/* torch.matmul for all ranks from 1 on. */
Node b_matmul(Build *, Node x, Node y);
/* b_contract without batch dimensions, but the result has the dtype of accumulation: for operators
 * that follow and round once. */
Node b_contract_wide(Build *, Node x, Node y, const uint32_t (*sum)[2], uint32_t nsum);
/* b_matmul whose result has the dtype of accumulation. */
Node b_matmul_wide(Build *, Node x, Node y);

/* ---- tuples ---- */

/* The tuple of n values (OP_tuple). */
Node b_tuple(Build *, const Node *x, uint32_t n);
/* Element k of a tuple (OP_get); of an OP_tuple the operand itself. */
Node b_get(Build *, Node tuple, uint32_t k);

/* ---- symbolic helpers ---- */

/* The extent of the dimension, which may be negative; 1 if x is none or has no dimensions. A
 * dimension out of range is an error, which returns the extent of dimension 0. */
Sym b_dim(const Build *, Node x, int dim);
/* The constant as a symbolic integer. */
Sym b_int(const Build *, int64_t);
/* Returns the dimension counted from 0: a negative one counts from the end. rank 0 counts as 1.
 * Returns 0 after an error: a dimension out of range. */
uint32_t b_wrap_dim(const Build *, int64_t dim, uint32_t rank);
/* The table of the graph's symbols. */
SymTab *b_syms(const Build *);
/* Records an error at b->where. Returns none. */
Node b_error(Build *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* So that compilers and analysers know that b_error returns none. */
static inline Node b_none(Node none)
{
	(void)none;
	return (Node){0};
}
#define b_error(...) b_none(b_error(__VA_ARGS__))

#endif
