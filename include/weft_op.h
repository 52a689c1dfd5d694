/* User operators: C functions that models call. A library exports its operators by weft_ops:
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
 * `weft compile M --ops libmylib.so --link libmylib.so -o M.so` uses the library. A program that
 * uses weft.h calls weft_op_load or weft_op_register. The operator is torch.ops.mylib.decay in
 * PyTorch, and call([%x, %rate], op="mylib::decay", ints=[], floats=[1.0]) in the text form of
 * graphs. A compiled model calls the function by its name, `symbol`, and is linked with a library
 * that has the function; the JIT and the interpreters call `fn`. See docs/user-operators.md and
 * examples/userop. */
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
	/* The operator has effects besides its results. A call is never removed, calls are executed
	 * in the order of the graph, and after the assertions in front of them. (An index out of
	 * range is found when the selected element is computed, perhaps after the call.) Without
	 * the flag the results depend on the arguments only: an unused call is removed, and equal
	 * calls become one. */
	WEFT_OP_EFFECT = 1,
	/* A leading dimension of all operands is a leading dimension of all results: vmap may call
	 * the operator once for the whole batch. */
	WEFT_OP_BATCH_LEADING = 2,
	/* Several calls may run at the same time, as tasks of one phase. Without the flag the
	 * thread that called `run` executes them one after the other; two calls of `run` at the
	 * same time may still call the operator at the same time. */
	WEFT_OP_THREAD_SAFE = 4,
	/* In a model for a GPU the function is given tensors and workspace in the memory of the
	 * device (WeftTensor.device, WeftOpContext.device), and gives its work to
	 * WeftOpContext.stream; the device's primary context is current. Int, float, bool and int[]
	 * arguments are the processor's still. In other models the function is given the
	 * processor's memory, as without the flag. Without the flag `run` copies operands to the
	 * processor, waits, calls the function there, and copies results back. */
	WEFT_OP_DEVICE = 8
};

/* The function of an operator.
 *
 * context: of this call; see WeftOpContext in weft_model.h. Valid until the return.
 *
 * in[k]: argument k of the schema. int, float and bool are tensors without dimensions, of i64, f64
 * and bool; int[] is a tensor with one dimension. Operands may overlap each other; do not write
 * them. out[k]: result k, uninitialised. Results overlap nothing. Tensors are row-major (strides
 * NULL), in the processor's memory (but see WEFT_OP_DEVICE), of the dtypes and extents that `types`
 * says. They are aligned to 64 bytes; tensors of the caller of `run` only to an element. work:
 * work_bytes bytes, aligned to 64; NULL if the operator asks for none. Keep no pointer after the
 * return.
 *
 * Returns 0 after success. Any other value makes `run` fail with status->code (WEFT_ERR_CHECK,
 * unless the function sets another code) and status->message (weft_op_fail), preceded by
 * "mylib::decay: ". If several calls of a phase fail, the first in the graph is reported. Later
 * phases are not executed. */
typedef int (*WeftOpFn)(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
			void *work, uint64_t work_bytes, WeftStatus *status);

/* The definition of an operator. */
typedef struct {
	uint32_t size;          /* of this structure */
	uint32_t flags;         /* WEFT_OP_EFFECT, ... */
	/* The signature, as for torch.library. Arguments: Tensor, int, float, bool, int[]. Results:
	 * Tensor. */
	const char *schema;
	/* Dtypes and extents of the tensors, operands -> results: "T[..., a] -> T[..., 2*a + 1]".
	 * A dtype is f32, i64, bool, ..., or a name in capitals: any dtype, the same everywhere.
	 * A dimension is an expression of integers and names with + - *, / and % by a positive
	 * number, min(a, b), max(a, b). A name is an int argument of the schema, or an extent: some
	 * operand must have the name as a dimension of its own. Equal names are equal extents.
	 * "..." in front of the dimensions: any number of dimensions, the same everywhere. */
	const char *types;
	const char *work_bytes; /* an expression of the names in `types`; NULL: 0 */
	const char *symbol;     /* the name of fn for the linker */
	/* The cotangents of the tensor arguments, in the order of the schema:
	 * "d = mylib::decay_backward(g, x, rate, scale); [get(d, 0), get(d, 1)]". The text may use
	 * the arguments, the result y (y0, y1, ...), its cotangent g (g0, ...), and operators of
	 * Weft and of the user. It must be linear in g. NULL: the operator has no gradient. With a
	 * rule, no argument may be called y, g, y0, g0, ... or t_... */
	const char *vjp;
	/* The tangent of the result, by the arguments, y, and the tangents t_NAME, linear in these.
	 * NULL: the transpose of vjp. */
	const char *jvp;
	/* The function in this process; NULL: models can be compiled, but neither interpreted nor
	 * run by the JIT. */
	WeftOpFn fn;
	/* WeftOpContext.op_user of the calls of `fn` in this process: the JIT and the
	 * interpreters. */
	void *user;
	/* The name for the linker of the object that `user` points to. A compiled model is linked
	 * with it as with `symbol`, and its calls get its address. NULL: they get NULL, since an
	 * address of this process means nothing in another one. */
	const char *user_symbol;
} WeftOpDef;

/* The type of weft_ops, which a library of operators exports: a list that ends with NULL. */
typedef const WeftOpDef *const *(*WeftOpsFn)(void);

typedef struct Weft Weft;
/* Registers an operator for all graphs that this Weft loads afterwards. Copies the definition and
 * its texts (not what `user` points to). Returns false after a message if `size` is wrong, the name
 * or a symbol is taken or refused, `schema` or `types` do not parse or do not agree, or a rule is
 * not linear. */
bool weft_op_register(Weft *, const WeftOpDef *);

/* For the function of an operator: sets code (WEFT_ERR_CHECK) and message, formatted as by printf,
 * of its status. Returns WEFT_ERR_CHECK: return weft_op_fail(status, "rate %d is negative", i); */
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
