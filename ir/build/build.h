/* Building graphs: for expansions, importers and passes.
 *
 * Every function that returns a Node adds nodes in front of b->before, with the location b->loc,
 * and returns the node of the result, or an existing node that already has the value. Functions
 * that take operands of several dtypes or shapes add the conversions and broadcasts themselves, so
 * that the nodes they make need none.
 *
 * Errors: a function that cannot build its node records an error (b_error) and returns the handle
 * 0, "none". A function that gets none for an operand returns none without another error; so a
 * caller checks only the last node. Operands are tensors (node_is_tensor) or none, unless said.
 *
 * Terms: the attributes and the schema of an operator stand in ir/op/op.h; a composite is an
 * operator that is defined by other operators, its expansion; a splat is a tensor whose elements
 * are all one number or size (OP_full); a guard is a condition on sizes that each call of the model
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
	bool keep; /* b_node keeps composites for which op_is_kept (ir/op/op.h) instead of
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
/* Adds a Python scalar as operand. Its dtype is DT_bool, DT_i64, any float dtype (which counts as
 * f32), any complex one (which counts as c64), or DT_none (which adds nothing). */
void promote_weak(Promotion *, DType);
/* Returns the promoted dtype; DT_none if no operand was added. */
DType promote_result(const Promotion *);
/* Returns the promoted dtype of n tensors; absent ones (0) are skipped. DT_none if all are
 * absent. */
DType b_promote(const Build *, const Node *x, uint32_t n);

/* Adds a node of any operator and infers its type. in[]: the nin operands in the schema's order, 0
 * for an absent optional tensor; missing ones at the end count as absent. attr[k] belongs to
 * argument k of the schema: ATTR_none for a tensor, the number of tensors (ATTR_int) for Tensor[]
 * (which may be missing if there is one such argument). A missing attribute takes the schema's
 * default, and so does ATTR_none unless the argument is optional. More attributes than the schema
 * has arguments are an internal error. Attributes are converted as Python accepts them (int for
 * float). A composite without .infer is expanded instead, and the result is the node of its value,
 * unless b->keep keeps it. Returns none after an error; a composite that is expanded and has no
 * result gives an empty tuple. */
Node b_node(Build *, Op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr);

/* Does as b_node, but expands no composite: adds a node of the composite itself, with the type
 * that its expansion would have, and returns that node. The pass canon expands it later. */
Node b_call(Build *, Op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr);

/* Returns the type of the node that b_call would add. in[] has one operand for each tensor of the
 * arguments, 0 for an absent one, and the attributes are complete. Returns 0 after an error, and
 * for an operator without result. The nodes of the graph are as before; guards may be added, and
 * NodeData pointers are invalid. */
TypeId b_type(Build *, Op, const Node *in, uint32_t nin, AttrId);

/* ---- constants and sizes ---- */

/* Returns a tensor of this dtype and shape whose elements are all v, converted to the dtype:
 * rounded to a float; towards zero to an integer; v != 0 for bool. */
Node b_full(Build *, DType, double v, uint32_t rank, const Sym *dim);
/* Returns a tensor of this dtype and shape whose elements are all v, converted to the dtype:
 * rounded to a float; integers wrap around; v != 0 for bool. */
Node b_full_int(Build *, DType, int64_t v, uint32_t rank, const Sym *dim);
/* Returns a tensor of this dtype and shape whose elements are all a Python scalar: ATTR_bool,
 * ATTR_int (which may be symbolic), ATTR_float, or ATTR_complex, of which an integer or float
 * dtype takes the real part, and bool whether it is not 0. Converts as b_full and b_full_int do. */
Node b_full_attr(Build *, DType, Attr v, uint32_t rank, const Sym *dim);
/* Returns zeros of a tensor type. */
Node b_zeros(Build *, TypeId);
/* Returns the tensor of this dtype without dimensions whose element is v, converted as by
 * b_full. */
Node b_scalar(Build *, DType, double v);
/* Does as node_splat, of a node of b->g. */
bool b_splat(const Build *, Node, Attr *v);
/* Returns true, and sets *v to the value of the elements (ATTR_bool, ATTR_int, ATTR_float or
 * ATTR_complex), if the node is a splat. Returns false for other nodes and none, with *v unchanged.
 * v may be NULL. */
bool node_splat(const Graph *, Node, Attr *v);
/* Returns the tensor [n] of 0, 1, ..., n - 1 in this dtype. */
Node b_iota(Build *, DType, Sym n);
/* Returns the node that reads a constant of the Ir (OP_constant). */
Node b_const(Build *, ConstId);
/* Returns the value of the size as an i64 without dimensions. */
Node b_from_size(Build *, Sym);
/* Returns the index counted from 0, of an index as Python counts: a negative index counts from the
 * end, so `size` is added. If the sign of the index is unknown, the sign is computed at run time
 * where the index is unbacked; else a guard requires index >= 0, or index < 0 if the index is known
 * to be at most 0 and is not -size. */
Sym b_index_from_end(Build *, Sym index, Sym size);
/* States that the symbol `size` has from here on the value of x, an i64 without dimensions, which
 * is at most `most` (none: no bound is known). Adds OP_to_size, which checks at run time that the
 * value is within the symbol's range; `what`, which is copied, names the size in its message. Does
 * nothing if x is none. */
void b_to_size(Build *, Node x, Sym size, Sym most, const char *what);

/* ---- the order of operands ----
 * C leaves open which argument of a call is evaluated first; nodes stand in the order in which they
 * are added, so graphs would depend on the compiler that built Weft. Where several operands of a
 * call add nodes, the order is stated: the call is a macro that puts its operands on a stack of the
 * Ir, from the last to the first, or the operands are variables. The macros evaluate `b` several
 * times. tests/tree/order.py finds other calls. */

/* Puts an operand on the stack. */
void b_operand(Build *, Node);
/* Takes the n operands that were put there last off the stack; in[0] is the very last one. */
void b_operands(Build *, Node *in, uint32_t n);

/* ---- element-wise operators ---- */

/* Adds a scalar operator (op_kind OP_SCALAR) of 1 to 4 operands (another number is an internal
 * error): broadcasts them to one shape and converts them to the promoted dtype (b_promote). Where
 * that is bool or an integer, an operator that is defined on floats only (PROMOTE_FLOAT: exp)
 * converts to f32; where that is bool, PROMOTE_INT converts to i64. A condition (operand 0 of
 * OP_select) is converted to bool. */
Node b_pointwise(Build *, Op, const Node *in, uint32_t nin);
/* Does as b_pointwise, of one operand. */
Node b_un(Build *, Op, Node x);
/* Does as b_pointwise, of two operands: Node b_bin(Build *, Op, Node x, Node y). */
#define b_bin(b, op, x, y) (b_operand(b, y), b_operand(b, x), b_bin_of_operands(b, op))
Node b_bin_of_operands(Build *, Op);
/* Returns cond ? yes : no, by element, broadcast to one shape: Node b_select(Build *, Node cond,
 * Node yes, Node no). cond is converted to bool and takes no part in the promotion. */
#define b_select(b, cond, yes, no)                                                                 \
	(b_operand(b, no), b_operand(b, yes), b_operand(b, cond), b_select_of_operands(b))
Node b_select_of_operands(Build *);
/* Returns x to the power e, which is at least 1, by products of squares. */
Node b_power(Build *, Node x, int64_t e);
/* Returns x op v. v takes x's dtype; if v is a fraction, an x of bools or integers is converted
 * to f32 first, as with a Python float. v is finite unless x is of a float or complex dtype. */
Node b_bin_scalar(Build *, Op, Node x, double v);
/* Returns x converted to the dtype; x itself if x has the dtype. A tuple is an error. */
Node b_convert(Build *, Node x, DType);

/* Sets *rank and dim[] (room for MAX_RANK) to the shape that n tensors broadcast to; absent ones
 * (0) are skipped. A guard requires that extents are equal where that is not proved. Returns false
 * after an error, extents that differ or a tuple; *rank and dim[] then have no meaning. */
bool b_common_shape(Build *, const Node *x, uint32_t n, uint32_t *rank, Sym *dim);

/* ---- index maps: the elements of x, moved ----
 * A dimension of type int may be negative, which counts from the end. A dimension out of range is
 * an error, after which the function goes on with dimension 0 and may return a node. A parameter
 * `dim` of type Sym is the shape of the result. */

/* Broadcasts x to the shape, with dimensions aligned at the end, as torch.broadcast_to. An extent
 * of x that does not broadcast (b_extent_broadcasts) equals that of the result: a guard requires
 * that where it is not proved. */
Node b_broadcast(Build *, Node x, uint32_t rank, const Sym *dim);
/* Whether extent x broadcasts to extent `to` at all sizes: x is 1, or another expression than `to`
 * that is min(to, 1), as the extent of a[:1]. */
bool b_extent_broadcasts(Build *, Sym x, Sym to);
/* Broadcasts x to the shape so that dimension k of x becomes dimension map[k] of the result; map[]
 * increases. The other dimensions of the result are new. An extent of x that does not broadcast
 * (b_extent_broadcasts) equals that of the result: a guard requires that where it is not proved. */
Node b_broadcast_in_dim(Build *, Node x, uint32_t rank, const Sym *dim, const uint32_t *map);
/* Returns x with another shape and the same elements in row-major order. A guard requires that
 * the numbers of elements are equal where that is not proved. */
Node b_reshape(Build *, Node x, uint32_t rank, const Sym *dim);
/* Returns x as one dimension of all its elements in row-major order. */
Node b_ravel(Build *, Node x);
/* Returns x with its dimensions in another order: dimension k of the result is dimension perm[k]
 * of x. It is an error if perm[] is no permutation. */
Node b_permute(Build *, Node x, const uint32_t *perm);
/* Exchanges dimensions d0 and d1 of x; returns x itself if x has rank 0. */
Node b_transpose(Build *, Node x, int d0, int d1);
/* Inserts a dimension of extent 1, which is dimension `dim` of the result (-1: the last). */
Node b_unsqueeze(Build *, Node x, int dim);
/* Removes the dimension if its extent is the constant 1; else returns x, also if x has rank 0. */
Node b_squeeze(Build *, Node x, int dim);
/* Returns the elements start, start + step, ... before end along the dimension; an x of rank 0
 * is an error. The caller sees to it that 0 <= start <= end <= extent and step >= 1. */
Node b_slice(Build *, Node x, int dim, Sym start, Sym end, Sym step);
/* Returns x with the box at start[] (a 0-d integer for each dimension, clamped so that the box
 * fits) replaced by `update`, which has x's rank and dtype. */
Node b_update_slice(Build *, Node x, Node update, const Node *start);
/* Returns element `index` along the dimension, which the result lacks; an x of rank 0 is an
 * error. A constant negative index counts from the end; otherwise the caller sees to it that 0
 * <= index < extent. */
Node b_select_dim(Build *, Node x, int dim, Sym index);
/* Puts low[k] elements in front of, and high[k] behind, those of x along each dimension k; a
 * negative number removes elements. The new elements are `value`, a tensor without dimensions,
 * which is converted to x's dtype. A result with an extent that is provably negative is an error;
 * where that is not known, graph_require (ir/op/op.h) adds a guard later. */
Node b_pad(Build *, Node x, const Sym *low, const Sym *high, Node value);
/* Returns the n >= 1 tensors one behind the other along the dimension, in their promoted dtype;
 * x[0] itself if n is 1. Tensors of rank 0 are an error if n is more. */
Node b_concat(Build *, const Node *x, uint32_t n, int dim);
/* Returns x with the order of elements along the dimension reversed; x itself if it has rank 0. */
Node b_reverse(Build *, Node x, int dim);

/* ---- reductions and contractions ---- */

/* Reduces x over the dimensions in the bit set dims (bit k: dimension k), which the result lacks.
 * acc: the dtype in which elements are accumulated; DT_none: dtype_compute of x's. The result has
 * x's dtype if that is a float or complex one, else acc. If dims is 0, returns x. */
Node b_reduce(Build *, ReduceKind, Node x, uint32_t dims, DType acc);
/* Does as b_reduce, but the result has the reduced dimensions, with extent 1. */
Node b_reduce_keep(Build *, ReduceKind, Node x, uint32_t dims, DType acc);
/* Returns the contraction (general matrix product) of x and y: the sum of x * y over the pairs
 * in sum[]. batch[], sum[]: pairs (dimension of x, dimension of y); those in sum[] are summed
 * over; a pair in batch[] is one dimension of the result. The result has the batch dimensions,
 * then the other dimensions of x, then those of y, each in order. x and y are converted to their
 * promoted dtype, which the result has; sums are accumulated in its dtype_compute. A guard
 * requires that paired extents are equal where that is not proved. */
Node b_contract(Build *, Node x, Node y, const uint32_t (*batch)[2], uint32_t nbatch,
                const uint32_t (*sum)[2], uint32_t nsum);
/* Does as b_contract, of integers that are not converted. The result is i32. most: the caller knows
 * that the magnitudes of x's and y's elements do not exceed them. */
Node b_contract_integers(Build *, Node x, Node y, const uint32_t (*batch)[2], uint32_t nbatch,
			 const uint32_t (*sum)[2], uint32_t nsum, const int64_t most[2]);
/* Returns torch.matmul of x and y, of ranks from 1 on, in their promoted dtype; rank 0 is an
 * error: Node b_matmul(Build *, Node x, Node y). */
#define b_matmul(b, x, y) (b_operand(b, y), b_operand(b, x), b_matmul_of_operands(b))
Node b_matmul_of_operands(Build *);
/* Does as b_contract without batch dimensions, but the result has the dtype of accumulation
 * (dtype_compute of the promoted dtype): for operators that follow and round once. */
Node b_contract_wide(Build *, Node x, Node y, const uint32_t (*sum)[2], uint32_t nsum);
/* Does as b_matmul, but the result has the dtype of accumulation (dtype_compute of the promoted
 * dtype). */
Node b_matmul_wide(Build *, Node x, Node y);

/* ---- tuples ---- */

/* Returns the tuple of n tensors (OP_tuple). */
Node b_tuple(Build *, const Node *x, uint32_t n);
/* Returns element k of a tuple (OP_get); of an OP_tuple the operand itself. It is an error if
 * the tuple has no element k. */
Node b_get(Build *, Node tuple, uint32_t k);

/* ---- symbolic helpers ---- */

/* Returns the extent of dimension `dim` of x, a negative one counted from the end; 1 if x is
 * none or has no dimensions. A dimension out of range is an error, which returns the extent of
 * dimension 0. */
Sym b_dim(const Build *, Node x, int dim);
/* Returns the constant as a symbolic integer. */
Sym b_int(const Build *, int64_t);
/* Returns the dimension counted from 0: a negative one counts from the end. rank 0 counts as 1. A
 * dimension out of range is an error, which returns 0. */
uint32_t b_wrap_dim(const Build *, int64_t dim, uint32_t rank);
/* Returns the table of the graph's symbols. */
SymTab *b_syms(const Build *);
/* Records an error at b->where (ctx_error). Returns none. */
Node b_error(Build *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns none: with it compilers and analysers know that b_error returns none. */
static inline Node b_none(Node none)
{
	(void)none;
	return (Node){0};
}
#define b_error(...) b_none(b_error(__VA_ARGS__))
/* Returns the type of the result of a call of a scalar function, or of an operator with .infer;
 * adds no node to the graph. Returns 0 after errors, which the context has recorded, for operators
 * without a result, and for composites without .infer. */
TypeId op_infer(Build *, Op, const Node *in, uint32_t nin, AttrId);

#endif
