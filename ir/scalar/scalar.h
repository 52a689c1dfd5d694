/* Scalar functions: the meaning of element-wise operators, as small SSA functions, parsed once from
 * text. Interpreter, folder, range analysis and code generation read them.
 *
 * Text: an expression over parameters, with let-bindings separated by ';', e.g.
 *   "t = abs(x); select(gt(x, 0.0), x, mul(t, 0.5))"   or infix  "1/(1 + exp(-x))".
 * "repeat 3 { t = t * t; } t" has the lets between the braces three times.
 * Names are basic operations (ScOp) or scalar functions: operators with .scalar, and library
 * functions of ir/scalar/math.c (exp, log, ... by polynomials, one version for each compute dtype).
 * Literals take the dtype of the other operand. "T" stands for the compute dtype of the
 * instance. */
#ifndef WEFT_IR_SCALAR_H
#define WEFT_IR_SCALAR_H

#include "ir/graph/graph.h"

/* Basic operations: a target must provide them. docs/numerics.md defines them. Integer arithmetic
 * wraps. Comparisons give bool. min and max propagate NaN. */
#define SC_OPS(X) /* name, operands */                                                             \
	X(const, 0)                                                                                \
	X(param, 0)                                                                                \
	X(let, 1) X(add, 2) X(sub, 2) X(mul, 2) X(div, 2) X(neg, 1) X(abs, 1) X(fma, 3) X(         \
		min, 2) X(max, 2)                                                                  \
		X(sqrt, 1) /* floats: a < b ? a : b and a > b ? a : b, whatever is NaN or zero */  \
		X(lesser, 2) X(greater, 2) /* floats: a * 2**n, rounded once; b is n + 1.5 * 2**23 \
					    * (f64: 2**52), n is small enough to halve */          \
		X(scale, 2) X(floor, 1) X(ceil, 1) X(trunc, 1)                                     \
			X(rint, 1) /* to nearest even */ /* ints: quotient towards -inf; remainder \
							    with the sign of the dividend */       \
		X(floordiv, 2) X(rem, 2) /* bool or int; shr is arithmetic for signed types */     \
		X(and, 2) X(or, 2) X(xor, 2) X(not, 1) X(shl, 2)                                   \
			X(shr, 2) /* legal loop IR only, as instructions compute them: quotient    \
				   * towards zero and remainder by neither 0 nor -1; shifts by     \
				   * less than the width; i32 or i64 from a float that fits */     \
		X(quot, 2) X(mod, 2) X(left, 2) X(right, 2) X(fit, 1) X(eq, 2) X(ne, 2) X(lt, 2)   \
			X(le, 2) X(gt, 2) X(ge, 2) X(                                              \
				select,                                                            \
				3) /* (bool, a, b) */ /* numeric; float to i32, i64 only: the      \
							 smallest for NaN and what does not fit */ \
		X(convert, 1) X(bitcast, 1)           /* same size */                              \
		X(from_f16, 1)                                                                     \
			X(to_f16, 1) /* legal loop IR only: between the bits as u16 and f32 */     \
		X(nearest,                                                                         \
		  1) /* legal loop IR only: convert(rint(a)), i32 of f32 */ /* loop IR only: c +   \
									     * the products of     \
									     * groups of 4 bytes,  \
									     * a and b as u32, c   \
									     * f32 or i32          \
									     * (scalar_dot) */     \
		X(dot2_bf16, 3) X(dot2_s16, 3) X(pairs_u8s8, 3) X(pairs_s8s8, 3)                   \
		X(dot4_u8s8, 3) X(dot4_s8s8, 3)                                                    \
		/* loop IR only, of u32: each byte of a, which is below 16, becomes that one of    \
		 * the eight bytes of b and c, from the lowest of b on; 0 if it is 8 or more. b    \
		 * and c are constants, or scalars in all lanes */                                 \
		X(lookup8, 3)                                                                      \
		/* loop IR only: the bits as u16 of the nearest bf16 of an f32; 0 of one below     \
		 * 2**-126, as products of bf16 take their operands */                             \
		X(flush_bf16, 1)                                                                   \
			X(call, 0) /* another function, not inlined: emitted once per module and   \
				      lane count */                                                \
		X(table, 1)        /* table look-up: constant array, i32 index already in range */

typedef enum {
#define X(n, operands) SC_##n,
	SC_OPS(X)
#undef X
	SC_COUNT
} ScOp;

/* Returns the number of operands of a basic operation; 0: none, no fixed number (call), or out of
 * range. */
uint32_t sc_arity(ScOp);
/* Returns the name of a basic operation, "add"; "?" if out of range. */
const char *sc_name(ScOp);

/* One instruction of an SSA function; operands are indices of earlier instructions. */
typedef struct {
	ScOp op;
	DType dtype;     /* the dtype of the result */
	uint32_t in[3];
	uint32_t nin;
	union {
		double f;    /* SC_const, float dtypes */
		int64_t i;   /* SC_const, int and bool dtypes */
		uint32_t k;  /* SC_param: its number */
		const struct ScFn *fn; /* SC_call */
		const struct ScTable *table; /* SC_table */
	};
} ScIns;

typedef struct ScTable {
	const char *name;
	DType dtype; /* u32, f32, f64, i32 */
	uint32_t n;
	const void *data;
} ScTable;

typedef struct ScFn {
	const char *name; /* "exp_f32"; unique */
	uint32_t nparam;
	DType param[4];
	DType result;
	uint32_t nins;
	const ScIns *ins; /* the last instruction is the result */
	uint32_t cost;    /* an estimate of vector instructions, calls included */
} ScFn;

/* The functions below return a function that is made at the first call and lives as long as the
 * process, so that equal questions give equal pointers. Any thread may call them. Running out of
 * memory unwinds to the place of arena_catch (base/arena.h). */

/* Returns the function of a scalar operator for nin operands of compute dtypes in[]. The result's
 * dtype is .result in the op table, or that of the last operand. Returns NULL if the operator is no
 * scalar operator, does not take these dtypes or this number of operands, or if a dtype is complex
 * or a storage dtype. */
const ScFn *scalar_fn(Op op, const DType *in, uint32_t nin);
/* Returns the function that converts a value of one real dtype to another, storage dtypes included
 * (their values are held as f32); docs/numerics.md defines conversions. Returns NULL for complex
 * dtypes and DT_none. */
const ScFn *scalar_convert(DType from, DType to);
/* Returns the function that reinterprets the bits of a value of `from` as a value of `to`. Operand
 * and result are held in compute dtypes; an operand that is no value of `from` is rounded to one
 * first. A bool is a byte that is 1 or 0; a byte other than 0 becomes true. Returns NULL if the
 * sizes differ, and for complex dtypes and DT_none. */
const ScFn *scalar_bitcast(DType from, DType to);
/* Returns the function of f32 to f32 that rounds to the nearest value of storage dtype d (f16,
 * bf16, f8), ties to even; a value that is too large becomes the value that d would store. Returns
 * NULL for other dtypes. */
const ScFn *scalar_round(DType d);
/* Whether the operation is a dot product of groups (SC_dot2_bf16 to SC_dot4_s8s8). */
static inline bool sc_is_dot(ScOp op) { return op >= SC_dot2_bf16 && op <= SC_dot4_s8s8; }
/* Returns the definition of a dot product of groups, a function of (u32 a, u32 b, c); the result
 * has the dtype of c, sc_dot_acc. Integers are summed exactly and wrap. Of bf16 the sum is
 * fma(a.low, b.low, fma(a.high, b.high, c)), as vdpbf16ps computes it: operands and results below
 * the smallest normal number are zeros of their sign. */
const ScFn *scalar_dot(ScOp);
/* Returns the dtype of the sums of a dot product of groups: f32 or i32. */
DType sc_dot_acc(ScOp);
/* Returns the derivative of the operator's result by operand k < nin (its .deriv text) for operands
 * of compute dtypes in[], a function of nin + 1 parameters: the operands and, last, the result.
 * Returns NULL if the operator has no .deriv for operand k or does not take these dtypes, and for
 * more than 3 operands. For tests and for derivatives inside kernels; transforms read the text. */
const ScFn *scalar_deriv(Op op, uint32_t k, const DType *in, uint32_t nin);
/* Returns the function with that ScFn.name ("exp_f32") if one was made already, or NULL. Makes
 * none. */
const ScFn *scalar_by_name(const char *);
/* Returns the library function of that name whose operands all have that compute dtype ("exp",
 * DT_f32). Returns NULL if there is none; scalar operators do not count. */
const ScFn *scalar_lib(const char *name, DType);

/* Returns the instruction that a function applies to its parameters, in order, if it is that one
 * alone: a basic operation, or SC_call. Returns one of SC_const for another function, and for
 * NULL. */
ScIns scalar_single(const ScFn *);

/* Compilers of emitted code inline a function of at most this cost (LoopFn.is_inline), so that a
 * branch around a call of the function does not pay (scalar_guard). */
enum { SC_INLINE_COST = 64 };

/* A call on a slow path: only selects on instruction `cond` read the result of call k, as the
 * operand for cond == when. Compiled code skips the call if no lane has cond == when; the call's
 * value is arbitrary then. found is false if other instructions read the result of the call too, if
 * cond is computed behind the call, or if the callee costs at most SC_INLINE_COST; cond and when
 * then have no meaning. */
typedef struct {
	bool found, when;
	uint32_t cond;
} ScGuard;
/* Returns whether instruction k of the function may be skipped, and under which condition. The
 * instruction must be a call (SC_call), which is not checked. */
ScGuard scalar_guard(const ScFn *, uint32_t k);

/* A value of any real dtype: f for floats, i for integers and bool (u64: its bits). */
typedef union {
	double f;
	int64_t i;
	uint64_t u;
} ScVal;
/* Returns the value of the function, which a function of this header returned, for the arguments
 * arg[0 .. nparam - 1], exactly as compiled code computes it (f32 arithmetic rounds to f32; fma
 * rounds once). */
ScVal scalar_eval(const ScFn *, const ScVal *arg);
/* Evaluates the function as scalar_eval does, for n elements: arg[k][i] is argument k of element i;
 * sets out[i] to its value. */
void scalar_eval_n(const ScFn *, const ScVal *const *arg, ScVal *out, uint32_t n);

#endif
