/* What the structural primitives share: reading operands and attributes while inferring, and
 * strided walks over concrete tensors while evaluating. */
#ifndef WEFT_IR_OPS_PRIM_PRIV_H
#define WEFT_IR_OPS_PRIM_PRIV_H

#include "ir/interp/interp.h"
#include "ir/ops/op.h"

/* ---- inference ---- */

/* One call of .infer. Functions return false after recording an error, so that TRY chains them. */
typedef struct Infer {
	Graph *g;
	SymTab *syms;
	Op op;
	const Node *in;
	uint32_t nin;
	const Attr *attr; /* by schema argument */
	const char *where;
	TypeId type; /* the result */
} Infer;

typedef bool InferFn(Infer *);

/* Checks that the operands are tensors and as many as the schema says, then calls fn. */
TypeId infer_with(InferFn *fn, Graph *, Op, const Node *in, uint32_t nin, AttrId,
                  const char *where);

/* Defines infer_NAME, for the op table, from shape_NAME. */
#define INFER(name)                                                                                \
	static TypeId infer_##name(Graph *g, Op op, const Node *in, uint32_t nin, AttrId attr,     \
	                           const char *where)                                              \
	{                                                                                          \
		return infer_with(shape_##name, g, op, in, nin, attr, where);                      \
	}

bool infer_fail(Infer *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define infer_fail(...) ctx_false(infer_fail(__VA_ARGS__))
Type infer_in(const Infer *, uint32_t k); /* type of operand k; stays valid */
/* Operands of a Tensor[] argument. */
uint32_t infer_args(const Infer *, const char *name, uint32_t *first);

const Attr *infer_attr(const Infer *, const char *name); /* ATTR_none when absent */
bool infer_ints(Infer *, const char *name, const Sym **v, uint32_t *n);
bool infer_ints_n(Infer *, const char *name, uint32_t n, const Sym **v); /* exactly n */
bool infer_sym(Infer *, const char *name, Sym *);
bool infer_const(Infer *, const char *name, int64_t *); /* an integer known now */
bool infer_dim(Infer *, const char *name, uint32_t rank, uint32_t *dim);
bool infer_dims(Infer *, const char *name, uint32_t rank, uint32_t *dim,
                uint32_t *n); /* distinct */
/* Index in a NULL-terminated list of what is allowed. */
bool infer_choice(Infer *, const char *name, const char *const *allowed, uint32_t *which);
/* A way to combine values of that dtype, by an attribute that names it. */
bool infer_combiner(Infer *, const char *name, ReduceUse, DType, ReduceKind *);
bool infer_dtype(Infer *, const char *name, DType *);
/* Result dtype of an accumulating op. Floats: the operand's, acc is the precision, and the result's
 * dtype as well where `out` says so: an epilogue reads it before anything is rounded. Ints and
 * bool: acc, since accumulating modulo 2^n in less than the result has no other meaning. */
bool infer_acc(Infer *, DType x, DType *result);

/* Provable violations fail; MAYBE passes. */
bool infer_at_least(Infer *, const char *what, Sym v, int64_t lo);
bool infer_le(Infer *, const char *what, Sym a, Sym b);
bool infer_same(Infer *, const char *what, Sym a, Sym b);
bool infer_same_dtype(Infer *, uint32_t k, uint32_t l);
bool infer_index_scalars(Infer *, uint32_t first, uint32_t n); /* operands are 0-d i64 */

bool infer_result(Infer *, DType, uint32_t rank, const Sym *dim);

/* ---- evaluation ---- */

/* Loop nest over two strided arrays; strides in elements, of any sign. */
typedef struct Walk {
	uint32_t rank;
	int64_t dim[MAX_RANK + 1];
	int64_t dst[MAX_RANK + 1], src[MAX_RANK + 1];
} Walk;

/* Copy elements of `size` bytes (1, 2, 4, 8 or 16). */
void walk_copy(const Walk *, void *dst, const void *src, size_t size);
/* Row-major strides in elements. */
void walk_strides(uint32_t rank, const int64_t *dim, int64_t *stride);
/* walk_copy of t with its dims permuted, into a temporary. */
Tensor eval_permuted(EvalCtx *, const Tensor *t, const uint32_t *perm);
/* Move dim to the end (or back). */
void perm_dim_last(uint32_t rank, uint32_t dim, uint32_t *perm);
void perm_inverse(uint32_t rank, const uint32_t *perm, uint32_t *inverse);
static inline char *elem_at(const Tensor *t, int64_t i)
{
	return (char *)t->data + i * (int64_t)dtype_size(t->dtype);
}
void copy_elems(Tensor *dst, const Tensor *src); /* same numel and dtype */

bool eval_ints(EvalCtx *, Graph *, Node, const char *name, int64_t *v, uint32_t *n);
bool eval_int(EvalCtx *, Graph *, Node, const char *name, int64_t *v);
bool eval_error(EvalCtx *, Graph *, Node, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Temporaries of one evaluation. */
#define EVAL_ARRAY(e, T, n) ARENA_ARRAY((e)->arena, T, (size_t)(n))

/* Whether values are computed as double (true) or int64; complex is neither. */
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

enum { GEMM_WORK = 64 * 256 + 256 * 256 + 64 }; /* doubles of work space */
/* c[m, n] += a[m, k] * b[k, n], c row-major. */
void gemm_f64(int64_t m, int64_t n, int64_t k, MatF64 a, MatF64 b, double *c, double *work);
void gemm_i64(int64_t m, int64_t n, int64_t k, MatI64 a, MatI64 b, int64_t *c);

#endif
