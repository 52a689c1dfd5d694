/* Private to the structural primitives: functions that check arguments and infer types (.infer of
 * ir/op/op.h), and functions that read arguments and copy strided tensors while a node is
 * interpreted (.eval). Sizes (Sym) may be symbolic. An attribute is an argument of the schema that
 * is no tensor. */
#ifndef WEFT_OPS_PRIM_PRIV_H
#define WEFT_OPS_PRIM_PRIV_H

#include "ir/interp/interp.h"
#include "ir/op/op.h"
#include "ir/scalar/reduce.h"

/* ---- inference ---- */

/* One call of .infer. The functions that return bool return false after recording an error at
 * `where`; TRY (base/ctx.h) returns then. */
typedef struct Infer {
	Graph *g;
	SymTab *syms;
	Op op;
	const Node *in;
	uint32_t nin;
	const Attr *attr; /* by argument of the schema; NULL: there are none */
	const char *where;
	TypeId type; /* the type of the result, which the function sets (infer_result) */
} Infer;

typedef bool InferFn(Infer *);

/* Checks that the operands are tensors and as many as the schema says, then calls fn. An absent
 * operand is an error. Returns the type that fn set, or 0 after an error. */
TypeId infer_with(InferFn *fn, Graph *, Op, const Node *in, uint32_t nin, AttrId,
                  const char *where);

/* Defines infer_NAME, for the op table, from shape_NAME. */
#define INFER(name)                                                                                \
	static TypeId infer_##name(Graph *g, Op op, const Node *in, uint32_t nin, AttrId attr,     \
	                           const char *where)                                              \
	{                                                                                          \
		return infer_with(shape_##name, g, op, in, nin, attr, where);                      \
	}

/* Records the error "OPERATOR: text" at f->where, the text cut off behind 511 bytes. Returns
 * false. */
bool infer_fail(Infer *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define infer_fail(...) ctx_false(infer_fail(__VA_ARGS__))
/* Returns the type of operand k < nin. Its extents stay valid as long as the Ir. */
Type infer_in(const Infer *, uint32_t k);
/* Sets *first to the place of the first operand of a Tensor or Tensor[] argument: its operands are
 * in[*first], in[*first + 1], ... Returns their number: 1 for a Tensor argument, 0 for an argument
 * that is no tensor or that the schema lacks. */
uint32_t infer_args(const Infer *, const char *name, uint32_t *first);

/* Returns the attribute; one of kind ATTR_none if it is absent or the schema has no such
 * argument. */
const Attr *infer_attr(const Infer *, const char *name);
/* The next functions read the attribute `name`. An attribute that is absent or of another kind is
 * an error. */

/* Sets *v to a list of integers, valid as long as the Ir, and *n to its length. Returns false after
 * an error. */
bool infer_ints(Infer *, const char *name, const Sym **v, uint32_t *n);
/* Sets *v to a list of integers, valid as long as the Ir. A list that has not n elements is an
 * error. Returns false after an error. */
bool infer_ints_n(Infer *, const char *name, uint32_t n, const Sym **v);
/* Sets *v to an integer, which may be symbolic. Returns false after an error. */
bool infer_sym(Infer *, const char *name, Sym *v);
/* Sets *v to an integer that is constant. Returns false after an error. */
bool infer_const(Infer *, const char *name, int64_t *v);
/* Sets *dim to a constant dimension, 0 <= *dim < rank. Returns false after an error. */
bool infer_dim(Infer *, const char *name, uint32_t rank, uint32_t *dim);
/* Sets dim[], which has room for `rank` elements, to a list of different dimensions below `rank`,
 * and *n to the length of the list. Returns false after an error: also if a dimension is
 * symbolic. */
bool infer_dims(Infer *, const char *name, uint32_t rank, uint32_t *dim, uint32_t *n);
/* Sets *which to the position of a text in the list `allowed`, which ends with NULL. Returns false
 * after an error. */
bool infer_choice(Infer *, const char *name, const char *const *allowed, uint32_t *which);
/* Sets *kind to the way to combine values (ir/scalar/reduce.h) that a text names. Returns false
 * after an error: also if operators of kind `use` or values of dtype d do not have it. */
bool infer_combiner(Infer *, const char *name, ReduceUse use, DType d, ReduceKind *kind);
/* Sets *d to a dtype. Returns false after an error. */
bool infer_dtype(Infer *, const char *name, DType *d);
/* Sets the result's dtype of an operator that accumulates values of dtype x, from its attributes
 * `acc` (the dtype of the accumulator; absent: x) and `out`. Integers and bool give acc. Float and
 * complex x give x; a float x gives acc if `out` says acc, so that an epilogue reads the sum before
 * it is rounded. If `acc` is absent, `out` is not read. Returns false after an error: another
 * `out`, or an acc of floats for integers or the reverse. */
bool infer_acc(Infer *, DType x, DType *result);

/* Checks a condition on sizes. Returns false if the condition provably does not hold, after an
 * error that begins with `what`. A condition that is not decided before run time passes, and
 * becomes a guard by graph_require. */
bool infer_at_least(Infer *, const char *what, Sym v, int64_t lo); /* v >= lo */
bool infer_le(Infer *, const char *what, Sym a, Sym b);            /* a <= b */
bool infer_same(Infer *, const char *what, Sym a, Sym b);          /* a == b */
/* Checks that operands k and l have one dtype. Returns false after an error. */
bool infer_same_dtype(Infer *, uint32_t k, uint32_t l);
/* Checks that the n operands from `first` on are i64 without dimensions. Returns false after an
 * error. */
bool infer_index_scalars(Infer *, uint32_t first, uint32_t n);

/* Sets f->type. A rank above MAX_RANK and a provably negative extent are errors. Returns false
 * after an error. */
bool infer_result(Infer *f, DType, uint32_t rank, const Sym *dim);

/* ---- evaluation ---- */

/* A loop nest over two strided arrays of equal extents, the last dimension fastest. Strides are in
 * elements, of any sign. */
typedef struct Walk {
	uint32_t rank;
	int64_t dim[MAX_RANK + 1];
	int64_t dst[MAX_RANK + 1], src[MAX_RANK + 1]; /* strides of the target and the source */
} Walk;

/* Copies each element of src to dst, as the loop nest says; dst and src point to the elements of
 * index 0. size: bytes of an element, 1, 2, 4, 8 or 16. Rank 0 is one element; an extent of 0 means
 * no element. The arrays do not overlap. */
void walk_copy(const Walk *, void *dst, const void *src, size_t size);
/* Sets stride[0 .. rank - 1] to the row-major strides, in elements, of an array with the extents
 * dim[]. */
void walk_strides(uint32_t rank, const int64_t *dim, int64_t *stride);
/* Returns a row-major copy of t, whose dimension k is dimension perm[k] of t; valid until the
 * evaluation of the node ends. */
Tensor eval_permuted(EvalCtx *, const Tensor *t, const uint32_t *perm);
/* Sets perm[0 .. rank - 1] to the permutation that moves dimension dim to the end, and keeps the
 * order of the others. */
void perm_dim_last(uint32_t rank, uint32_t dim, uint32_t *perm);
/* Sets inverse[0 .. rank - 1] to the permutation that undoes perm. */
void perm_inverse(uint32_t rank, const uint32_t *perm, uint32_t *inverse);
/* Returns the address of element i, in row-major order, of a row-major tensor. */
static inline char *elem_at(const Tensor *t, int64_t i)
{
	return (char *)t->data + i * (int64_t)dtype_size(t->dtype);
}
/* Copies all elements of src to dst, in row-major order. Both have one dtype and as many
 * elements. */
void copy_elems(Tensor *dst, const Tensor *src);

/* Sets v[] to the elements of an int[] argument of the node that is evaluated, and *n to their
 * number; v must have room for the whole list. *n is 0 if the argument is absent. An argument of
 * another kind is an internal error. Returns false after an error: a size whose symbols have no
 * value. */
bool eval_ints(EvalCtx *, Graph *, Node, const char *name, int64_t *v, uint32_t *n);
/* Sets *v to the value of an int or bool argument of the node that is evaluated. An argument that
 * is absent or of another kind is an internal error. Returns false after an error: a size whose
 * symbols have no value. */
bool eval_int(EvalCtx *, Graph *, Node, const char *name, int64_t *v);
/* Records an error at the node, which begins with the name of its operator. Returns false. */
bool eval_error(EvalCtx *, Graph *, Node, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* n uninitialised elements of type T, valid until the evaluation of the node ends. */
#define EVAL_ARRAY(e, T, n) ARENA_ARRAY((e)->arena, T, (size_t)(n))

/* Whether values of a real dtype are computed as double (true) or as int64_t (false: integers and
 * bool). Do not ask of complex dtypes. */
static inline bool eval_as_float(DType d)
{
	return dtype_is_float(d);
}

/* ---- products (gemm.c) ---- */

/* A matrix inside an array: element (r, c) is data[row[r] + col[c]]. */
typedef struct {
	const double *data;
	const int64_t *row, *col;
} MatF64;
typedef struct {
	const int64_t *data;
	const int64_t *row, *col;
} MatI64;

enum { GEMM_WORK = 64 * 256 + 256 * 256 + 64 }; /* the number of doubles of gemm_f64's `work` */
/* Adds the product a[m, k] * b[k, n] to the row-major c[m, n]. work: room for GEMM_WORK doubles. */
void gemm_f64(int64_t m, int64_t n, int64_t k, MatF64 a, MatF64 b, double *c, double *work);
/* Adds the product a[m, k] * b[k, n] to the row-major c[m, n]. Integers wrap around. */
void gemm_i64(int64_t m, int64_t n, int64_t k, MatI64 a, MatI64 b, int64_t *c);

#endif
