/* Operators of the user: C functions that models call. A library exports its operators,
 *
 *     static const WeftOpDef decay = {
 *             .size = sizeof(WeftOpDef),
 *             .schema = "mylib::decay(Tensor x, Tensor rate, float scale=1.0) -> Tensor",
 *             .types = "f32[a, b], f32[b] -> f32[a, b]",
 *             .symbol = "mylib_decay", .fn = mylib_decay, .flags = WEFT_OP_THREAD_SAFE};
 *     const WeftOpDef *const *weft_ops(void)
 *     {
 *             static const WeftOpDef *const ops[] = {&decay, NULL};
 *             return ops;
 *     }
 *
 * and is named by `weft compile M --ops libmylib.so --link libmylib.so -o M.so`; or a program that
 * uses weft.h calls weft_op_register. In PyTorch it is torch.ops.mylib.decay, in the text form of
 * graphs call([%x, %rate], op="mylib::decay", ints=[], floats=[1.0]). A compiled model declares
 * `symbol` and is linked with a library that has it; the JIT and the interpreters call `fn`.
 * docs/user-operators.md has the whole story, examples/userop a library and a model. */
#ifndef WEFT_OP_H
#define WEFT_OP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "weft_model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	WEFT_OP_EFFECT = 1,        /* it does more than fill its results: never removed, in the
	                              order of the graph's effects, and of these assertions ahead of
	                              it have passed (an index that is out of range is found when
	                              what it selects is computed, perhaps later). Others are
	                              functions of their arguments: a call whose results nobody
	                              reads goes, two equal ones become one */
	WEFT_OP_BATCH_LEADING = 2, /* a leading dimension of all operands is one of all results:
	                              vmap may call it once */
	WEFT_OP_THREAD_SAFE = 4    /* several calls of it may run at once: it is a task among others
	                              of its phase. Else one call of a model makes its calls one at
	                              a time, from the thread that called `run`; two calls of `run`
	                              at once are the caller's affair */
};

/* in[k] is argument k of the schema: a tensor; int, float and bool as tensors without dimensions of
 * i64, f64, bool; int[] as a tensor of one. out[k] is result k. All are row-major (strides NULL),
 * of the dtypes and extents that `types` says, in the processor's memory; results are uninitialised
 * and overlap nothing, operands may be one another's memory and are only read. Operands and results
 * are aligned to 64 bytes, but for those that are the caller's tensors: these to an element. work:
 * the bytes asked for, aligned to 64; NULL where none were. Nothing of it may be kept after the
 * return. 0: done. Anything else: `run` fails with status->code (WEFT_ERR_CHECK unless the function
 * sets another) and status->message, which the function writes (weft_op_fail), after "mylib::decay:
 * ". Of several calls that fail at once the first of the graph is told of, and what comes after is
 * not executed. */
typedef int (*WeftOpFn)(const WeftTensor *in, const WeftTensor *out, void *work, uint64_t work_bytes, WeftStatus *status);

typedef struct {
	uint32_t size;          /* of this structure */
	uint32_t flags;
	const char *schema;     /* as torch.library's, with Tensor, int, float, bool and int[]
	                           arguments, and results that are Tensors */
	const char *types;      /* of the tensors, operands -> results. A dimension is an expression
	                           of integers and names with + - *, /, % (by a positive number),
	                           min(a, b), max(a, b): a name that is no int argument's is an
	                           extent, which an operand has as a dimension of its own; equal
	                           names equal extents. Dtypes are f32, i64, bool, ..., or a name in
	                           capitals, any one dtype but the same everywhere; "..." ahead of
	                           the dimensions: any number of them, the same everywhere. "T[...,
	                           a] -> T[..., 2*a + 1]" */
	const char *work_bytes; /* an expression of the names in `types`; NULL: none */
	const char *symbol;     /* of fn, for the linker */
	const char *vjp;        /* cotangents of the tensors among the arguments: "d =
	                           mylib::decay_backward(g, x, rate, scale); [get(d, 0), get(d,
	                           1)]", in terms of the arguments, the result y (y0, y1, ...) and
	                           its cotangent g (g0, ...), in which it must be linear; operators
	                           of Weft and of the user. NULL: it has no gradient. With rules, no
	                           argument may be called y, g, y0, g0, ... or t_... */
	const char *jvp;        /* the tangent of the result, in terms of the arguments, y and
	                           t_NAME, linear in these. NULL: vjp, transposed */
	WeftOpFn fn;            /* NULL: models can be compiled, but neither interpreted nor run by
	                           the JIT */
} WeftOpDef;

/* What a library of operators exports as weft_ops: NULL after the last. */
typedef const WeftOpDef *const *(*WeftOpsFn)(void);

typedef struct Weft Weft;
/* For all graphs of this Weft that are loaded afterwards. The definition is copied; its texts are
 * checked now. False after a message: another size, a name that is taken, a schema or types that do
 * not parse or do not fit each other, rules that are not linear. */
bool weft_op_register(Weft *, const WeftOpDef *);

/* The message of a call that fails, as printf's: return weft_op_fail(status, "rate %d is negative",
 * i); */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static inline int weft_op_fail(WeftStatus *status, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(status->message, sizeof status->message, fmt, ap);
	va_end(ap);
	return status->code = WEFT_ERR_CHECK;
}

#ifdef __cplusplus
}
#endif
#endif
