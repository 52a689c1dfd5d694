/* Models written in C. A trace records calls of operators on values. weft_trace_end makes a graph
 * of the trace, which is compiled, interpreted and transformed like the graph of a model file.
 *
 *     WeftTrace *t = weft_trace_new(w, "classify");
 *     WeftValue x = weft_trace_input(t, "x", "f32[B, 64]");
 *     WeftValue weight = weft_trace_param(t, "weight", "f32[10, 64]", weights);
 *     WeftValue bias = weft_trace_param(t, "bias", "f32[10]", biases);
 *     weft_trace_output(t, "y", weft_softmax(t, weft_linear(t, x, weight, bias), -1));
 *     WeftGraph *g = weft_trace_end(t);
 *     if (!g) fputs(weft_messages(w), stderr);
 *
 * Operators are PyTorch's (aten.conv2d, aten.add.Tensor, ...), with PyTorch's names of arguments,
 * defaults, type promotion and broadcasting. weft_trace_call calls any operator; the functions at
 * the end of this header call the usual ones. Layers are functions of explicit parameters and hold
 * nothing.
 *
 * Errors: the first error records a message that names the call. After an error all functions do
 * nothing and return a value with node 0, and weft_trace_end returns NULL. So a program needs to
 * check weft_trace_end only.
 *
 * A trace belongs to its Weft, a value to its trace. Names here begin with weft_trace_ because
 * weft_model.h has weft_input, weft_output, weft_param and weft_call of compiled models. */
#ifndef WEFT_TRACE_H
#define WEFT_TRACE_H

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct WeftTrace WeftTrace;
/* A value of a trace: a tensor, or the results of an operator with several. Copied like a number.
 */
typedef struct {
	uint32_t node, trace; /* node 0: no value, as for an absent argument. trace: private */
} WeftValue;

/* Begins a trace; messages and the model call it `name`. Returns NULL after an error; all functions
 * take NULL as a trace with an error. */
WeftTrace *weft_trace_new(Weft *, const char *name);
/* Ends the trace; a later call with the trace is an error. Returns the graph, or NULL after an
 * error: a call of the trace had an error, a body has not ended, or the model has neither an output
 * nor an assignment. */
WeftGraph *weft_trace_end(WeftTrace *);

/* ---- what a model takes ---- */

/* Names are not empty. Inputs, parameters and state have different names; outputs have different
 * names.
 *
 * Declares a size between lo and hi, which types may name: 0 <= lo <= hi. The name is a C
 * identifier that no size has yet. Names in types that are not declared are sizes from 0 on. */
void weft_trace_symbol(WeftTrace *, const char *name, int64_t lo, int64_t hi);
/* An input. type: a dtype (bool, i32, i64, f16, bf16, f32, f64, c64, c128, ...) and extents:
 * numbers or expressions of sizes. "f32[B, 3, 224, 224]", "i64[]". */
WeftValue weft_trace_input(WeftTrace *, const char *name, const char *type);
/* A parameter, which is a constant of the model. data: row-major contents, which are not copied and
 * must stay valid and unchanged until weft_free; NULL: zeros. The type has no sizes by name. */
WeftValue weft_trace_param(WeftTrace *, const char *name, const char *type, const void *data);
/* State: each instance of the compiled model has its own. A variable is a parameter that a training
 * step updates. A buffer, such as a running mean, does not belong to the "params" of weft_vjp.
 * data: the initial contents, as for weft_trace_param. */
WeftValue weft_trace_variable(WeftTrace *, const char *name, const char *type, const void *data);
/* A buffer: state such as a running mean; the arguments are those of weft_trace_variable. */
WeftValue weft_trace_buffer(WeftTrace *, const char *name, const char *type, const void *data);

/* Makes the value of an integer (i64[], such as an input) a size `name`, which types and
 * weft_arg_size may name in the calls behind this one: -INT64_MAX <= lo <= hi, and a run with a
 * negative extent fails. The name is as for weft_trace_symbol. A run with a value below lo or above
 * hi fails. */
void weft_trace_size(WeftTrace *, const char *name, WeftValue integer, int64_t lo, int64_t hi);
/* An expression of sizes, "2*B + 1", as an integer (i64[]), such as an output. */
WeftValue weft_trace_integer(WeftTrace *, const char *size);

/* ---- what it gives ---- */

/* Makes a value, which is one tensor, an output of the model. Outputs are in the order of the
 * calls. An error inside of a body. */
void weft_trace_output(WeftTrace *, const char *name, WeftValue);
/* Sets a variable or buffer to a value of the same type, from the end of a call of the model on.
 * All operators of the trace that read the state, also behind weft_trace_assign, read the old
 * value. A second assignment of one state is an error, and so is one inside of a body. Of an input:
 * its new value is a further output of the input's name, for which a caller may pass the input's
 * memory (WeftTensorInfo.donates). */
void weft_trace_assign(WeftTrace *, WeftValue state, WeftValue to);

/* ---- operators ---- */

typedef enum {
	WEFT_ARG_NONE, /* the optional argument is absent */
	WEFT_ARG_VALUE,
	WEFT_ARG_VALUES,
	WEFT_ARG_BOOL,
	WEFT_ARG_INT,
	WEFT_ARG_FLOAT,
	WEFT_ARG_TEXT, /* a text or the name of a dtype */
	WEFT_ARG_INTS,
	WEFT_ARG_FLOATS,
	WEFT_ARG_BOOLS,
	WEFT_ARG_SIZE, /* an integer that is an expression of sizes: "2*B + 1" */
	WEFT_ARG_SIZES,
	WEFT_ARG_COMPLEX /* two floats: the real and the imaginary part */
} WeftArgKind;
typedef struct {
	const char *name; /* NULL: a positional argument */
	WeftArgKind kind;
	uint32_t n; /* length of a list */
	union {
		WeftValue value;
		const WeftValue *values;
		bool b;
		int64_t i;
		double f;
		const char *text;
		const int64_t *ints;
		const double *floats;
		const bool *bools;
		const char *const *texts;
	} u;
} WeftArg;

/* Sets the line of the model's source that the next calls come from, "model.py:31 in encoder.0",
 * for messages and profiles (docs/c-api.md, Lines). NULL: unknown, as at first. */
void weft_trace_line(WeftTrace *, const char *line);
/* Whether weft_trace_call can call an operator of that name with n tensors of these dtypes, in
 * order: the operator is in the table, writes no argument, takes n tensors or more, and the dtypes
 * are ones that Weft has. Ranks, extents and other arguments may still be refused. Returns false
 * without a message if not; with a message if the name is NULL or empty. */
bool weft_trace_supports(Weft *, const char *op, const WeftDType *dtypes, uint32_t n);

/* Calls the operator of that name, "aten.add.Tensor", "aten.relu" or "aten.relu.default", or one of
 * the user, "mylib::decay" (weft_op.h), with n arguments: positional ones in the order of its
 * schema, then named ones; the others have their defaults. Returns its result; of several results a
 * value for weft_trace_result. Operators that write their arguments (aten.add_, out=) are
 * errors. */
WeftValue weft_trace_call(WeftTrace *, const char *op, const WeftArg *, uint32_t n);
/* Returns result k of the value `several`, which weft_trace_call returned for an operator with
 * several results. */
WeftValue weft_trace_result(WeftTrace *, WeftValue several, uint32_t k);
/* Returns the number of results of a value of several, which may be 0 or 1 too; -1 of one tensor,
 * and after an error. */
int32_t weft_trace_nresult(WeftTrace *, WeftValue);
/* Returns the rank of a tensor, and fills in shape: the extents, -1 for an extent that is not
 * constant. Returns -1 after an error; a value of several results, a value with node 0, and shape
 * NULL are errors, which end the trace. */
int32_t weft_trace_shape(WeftTrace *, WeftValue, int64_t shape[12]);
/* Returns the extent of a tensor along a dimension, as an expression of sizes that types and
 * weft_arg_size take: "3", "2*B + 1". Of the result of an operator such as aten.nonzero, this is
 * the name of a size that depends on data. The text is valid until weft_free. Returns NULL after an
 * error; a dimension that the tensor does not have is one. */
const char *weft_trace_extent(WeftTrace *, WeftValue, uint32_t dim);
/* Returns the name of a tensor's dtype as types write it, "bf16". Returns NULL after an error. */
const char *weft_trace_dtype(WeftTrace *, WeftValue);

/* Arguments of weft_trace_call, by kind, without a name (weft_arg_named). Lists and texts are
 * referred to: they must stay valid until the call.
 *
 * A tensor; of a value with node 0: the argument is absent. */
static inline WeftArg weft_arg(WeftValue v)
{
	WeftArg a = {NULL, v.node ? WEFT_ARG_VALUE : WEFT_ARG_NONE, 1, {v}};
	return a;
}
/* The optional argument is absent. */
static inline WeftArg weft_arg_none(void)
{
	WeftArg a = {NULL, WEFT_ARG_NONE, 0, {{0, 0}}};
	return a;
}
/* The argument is a list of n tensors; v[] is read by the call that gets the argument. {0, 0} is an
 * absent tensor, where the schema says Tensor?[]. */
static inline WeftArg weft_arg_values(const WeftValue *v, uint32_t n)
{
	WeftArg a = {NULL, WEFT_ARG_VALUES, n, {{0, 0}}};
	a.u.values = v;
	return a;
}
/* An argument that is a bool. */
static inline WeftArg weft_arg_bool(bool b)
{
	WeftArg a = {NULL, WEFT_ARG_BOOL, 1, {{0, 0}}};
	a.u.b = b;
	return a;
}
/* An argument that is an integer. */
static inline WeftArg weft_arg_int(int64_t i)
{
	WeftArg a = {NULL, WEFT_ARG_INT, 1, {{0, 0}}};
	a.u.i = i;
	return a;
}
/* An argument that is a float. */
static inline WeftArg weft_arg_float(double f)
{
	WeftArg a = {NULL, WEFT_ARG_FLOAT, 1, {{0, 0}}};
	a.u.f = f;
	return a;
}
/* An argument that is a complex number: its real and its imaginary part, which are referred to. */
static inline WeftArg weft_arg_complex(const double parts[2])
{
	WeftArg a = {NULL, WEFT_ARG_COMPLEX, 2, {{0, 0}}};
	a.u.floats = parts;
	return a;
}
/* A text, or the name of a dtype, "f32". */
static inline WeftArg weft_arg_text(const char *text)
{
	WeftArg a = {NULL, WEFT_ARG_TEXT, 1, {{0, 0}}};
	a.u.text = text;
	return a;
}
/* A list of n integers. */
static inline WeftArg weft_arg_ints(const int64_t *v, uint32_t n)
{
	WeftArg a = {NULL, WEFT_ARG_INTS, n, {{0, 0}}};
	a.u.ints = v;
	return a;
}
/* An integer that is an expression of sizes, "2*B + 1". */
static inline WeftArg weft_arg_size(const char *size)
{
	WeftArg a = {NULL, WEFT_ARG_SIZE, 1, {{0, 0}}};
	a.u.text = size;
	return a;
}
/* A list of n sizes, each an expression or a number as text: {"B", "3"}. */
static inline WeftArg weft_arg_sizes(const char *const *sizes, uint32_t n)
{
	WeftArg a = {NULL, WEFT_ARG_SIZES, n, {{0, 0}}};
	a.u.texts = sizes;
	return a;
}
/* Returns the argument a with a name, which is referred to: weft_arg_named("dim",
 * weft_arg_int(1)). */
static inline WeftArg weft_arg_named(const char *name, WeftArg a)
{
	a.name = name;
	return a;
}

/* ---- the usual operators ---- */

/* The functions below call the operator of ATen that stands in them. They return its result, or a
 * value with node 0 after an error. Dimensions may be negative: they count from the end.
 *
 * Calls the operator `op` on one tensor, and returns its result. */
static inline WeftValue weft_unary(WeftTrace *t, const char *op, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x)};
	return weft_trace_call(t, op, a, 1);
}
/* Calls the operator `op` on two tensors, which are promoted and broadcast, and returns its
 * result. */
static inline WeftValue weft_binary(WeftTrace *t, const char *op, WeftValue x, WeftValue y)
{
	const WeftArg a[] = {weft_arg(x), weft_arg(y)};
	return weft_trace_call(t, op, a, 2);
}
/* Calls the operator `op` on a tensor and a number, and returns its result: weft_with_number(t,
 * "aten.add.Tensor", x, 1). `op` takes a number as its second operand: in this overload, or in the
 * overload .Scalar of the same name. The number takes the dtype of a float tensor; beside integers
 * the result is f32, as in PyTorch. (For an integer, call weft_trace_call with weft_arg_int.) */
static inline WeftValue weft_with_number(WeftTrace *t, const char *op, WeftValue x, double y)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_float(y)};
	return weft_trace_call(t, op, a, 2);
}

#define WEFT_UNARY_(name, op)                                                                      \
	static inline WeftValue weft_##name(WeftTrace *t, WeftValue x)                             \
	{                                                                                          \
		return weft_unary(t, op, x);                                                       \
	}
#define WEFT_BINARY_(name, op)                                                                     \
	static inline WeftValue weft_##name(WeftTrace *t, WeftValue x, WeftValue y)                \
	{                                                                                          \
		return weft_binary(t, op, x, y);                                                   \
	}
WEFT_BINARY_(add, "aten.add.Tensor")
WEFT_BINARY_(sub, "aten.sub.Tensor")
WEFT_BINARY_(mul, "aten.mul.Tensor")
WEFT_BINARY_(div, "aten.div.Tensor")
WEFT_BINARY_(pow, "aten.pow.Tensor_Tensor")
WEFT_BINARY_(maximum, "aten.maximum")
WEFT_BINARY_(minimum, "aten.minimum")
WEFT_BINARY_(matmul, "aten.matmul")
WEFT_BINARY_(embedding, "aten.embedding") /* rows of x (f32[N, C]) at y (i64[...]) */
WEFT_UNARY_(neg, "aten.neg")
WEFT_UNARY_(exp, "aten.exp")
WEFT_UNARY_(log, "aten.log")
WEFT_UNARY_(sin, "aten.sin")
WEFT_UNARY_(cos, "aten.cos")
WEFT_UNARY_(sqrt, "aten.sqrt")
WEFT_UNARY_(tanh, "aten.tanh")
WEFT_UNARY_(abs, "aten.abs")
WEFT_UNARY_(relu, "aten.relu")
WEFT_UNARY_(sigmoid, "aten.sigmoid")
WEFT_UNARY_(silu, "aten.silu")
WEFT_UNARY_(gelu, "aten.gelu")
WEFT_UNARY_(sum, "aten.sum")   /* of all elements */
WEFT_UNARY_(mean, "aten.mean")
#undef WEFT_UNARY_
#undef WEFT_BINARY_

/* Multiplies x by a number, as weft_with_number does. */
static inline WeftValue weft_scale(WeftTrace *t, WeftValue x, double by)
{
	return weft_with_number(t, "aten.mul.Tensor", x, by);
}
/* The sum over dims[n]; over all dimensions if n is 0, as in PyTorch. keep: these dimensions stay
 * with extent 1; else they are removed. */
static inline WeftValue weft_sum_over(WeftTrace *t, WeftValue x, const int64_t *dims, uint32_t n,
				      bool keep)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(dims, n), weft_arg_bool(keep)};
	return weft_trace_call(t, "aten.sum.dim_IntList", a, 3);
}
/* The mean over dims[n]; dims, n and keep are those of weft_sum_over. */
static inline WeftValue weft_mean_over(WeftTrace *t, WeftValue x, const int64_t *dims, uint32_t n,
				       bool keep)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(dims, n), weft_arg_bool(keep)};
	return weft_trace_call(t, "aten.mean.dim", a, 3);
}
/* x in another shape[rank] with as many elements, in row-major order. One extent may be -1: it
 * follows from the others. */
static inline WeftValue weft_reshape(WeftTrace *t, WeftValue x, const int64_t *shape, uint32_t rank)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(shape, rank)};
	return weft_trace_call(t, "aten.reshape", a, 2);
}
/* Merges the dimensions from `start` to `end` (inclusive). */
static inline WeftValue weft_flatten(WeftTrace *t, WeftValue x, int64_t start, int64_t end)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(start), weft_arg_int(end)};
	return weft_trace_call(t, "aten.flatten.using_ints", a, 3);
}
/* x with dimensions dim0 and dim1 exchanged. */
static inline WeftValue weft_transpose(WeftTrace *t, WeftValue x, int64_t dim0, int64_t dim1)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(dim0), weft_arg_int(dim1)};
	return weft_trace_call(t, "aten.transpose.int", a, 3);
}
/* Permutes x: dimension k of the result is dimension dims[k] of x; n is the rank of x. */
static inline WeftValue weft_permute(WeftTrace *t, WeftValue x, const int64_t *dims, uint32_t n)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(dims, n)};
	return weft_trace_call(t, "aten.permute", a, 2);
}
/* The slice of x at an index along dim, which is removed; a negative index counts from the end. */
static inline WeftValue weft_select(WeftTrace *t, WeftValue x, int64_t dim, int64_t index)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(dim), weft_arg_int(index)};
	return weft_trace_call(t, "aten.select.int", a, 3);
}
/* n tensors joined along dim. */
static inline WeftValue weft_concat(WeftTrace *t, const WeftValue *x, uint32_t n, int64_t dim)
{
	const WeftArg a[] = {weft_arg_values(x, n), weft_arg_int(dim)};
	return weft_trace_call(t, "aten.cat", a, 2);
}

/* ---- layers ---- */

/* x weight^T + bias. x [..., in], weight [out, in], bias [out] or node 0. */
static inline WeftValue weft_linear(WeftTrace *t, WeftValue x, WeftValue weight, WeftValue bias)
{
	const WeftArg a[] = {weft_arg(x), weft_arg(weight), weft_arg(bias)};
	return weft_trace_call(t, "aten.linear", a, 3);
}
/* The options of weft_conv2d, [0] along H and [1] along W. stride, dilation, groups: 0 means 1. */
typedef struct {
	int64_t stride[2], padding[2], dilation[2], groups;
} WeftConv2d;
/* The two-dimensional convolution (in fact correlation) of PyTorch: x [N, C, H, W], weight [O, C /
 * groups, h, w], bias [O] or node 0. how NULL: all 0. */
static inline WeftValue weft_conv2d(WeftTrace *t, WeftValue x, WeftValue weight, WeftValue bias,
				    const WeftConv2d *how)
{
	int64_t stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1}, groups = 1;
	for (int k = 0; how && k < 2; k++) {
		stride[k] = how->stride[k] ? how->stride[k] : 1;
		padding[k] = how->padding[k];
		dilation[k] = how->dilation[k] ? how->dilation[k] : 1;
	}
	if (how && how->groups)
		groups = how->groups;
	const WeftArg a[] = {weft_arg(x),
			     weft_arg(weight),
			     weft_arg(bias),
			     weft_arg_ints(stride, 2),
			     weft_arg_ints(padding, 2),
			     weft_arg_ints(dilation, 2),
			     weft_arg_int(groups)};
	return weft_trace_call(t, "aten.conv2d", a, 7);
}
/* Normalises over the last dimensions of x, those of `weight`; bias may have node 0. */
static inline WeftValue weft_layer_norm(WeftTrace *t, WeftValue x, WeftValue weight, WeftValue bias,
					double eps)
{
	int64_t shape[12];
	int32_t rank = weft_trace_shape(t, weight, shape);
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(shape, rank < 0 ? 0 : (uint32_t)rank),
			     weft_arg(weight), weft_arg(bias), weft_arg_float(eps)};
	return weft_trace_call(t, "aten.layer_norm", a, 5);
}
/* Normalises x [N, C, ...] by given statistics, as in inference: (x - mean) / sqrt(variance + eps)
 * * weight + bias, where these are [C]. weight and bias may have node 0. */
static inline WeftValue weft_batch_norm(WeftTrace *t, WeftValue x, WeftValue weight, WeftValue bias,
					WeftValue mean, WeftValue variance, double eps)
{
	const WeftArg a[] = {weft_arg(x),         weft_arg(weight),    weft_arg(bias),
			     weft_arg(mean),      weft_arg(variance),  weft_arg_bool(false),
			     weft_arg_float(0.1), weft_arg_float(eps), weft_arg_bool(false)};
	return weft_trace_call(t, "aten.batch_norm", a, 9);
}
/* The maximum over square windows of extent `size` of x [N, C, H, W]. stride 0: size. */
static inline WeftValue weft_max_pool2d(WeftTrace *t, WeftValue x, int64_t size, int64_t stride,
					int64_t padding)
{
	const int64_t s[2] = {size, size}, by[2] = {stride ? stride : size, stride ? stride : size},
		      p[2] = {padding, padding};
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(s, 2), weft_arg_ints(by, 2),
			     weft_arg_ints(p, 2)};
	return weft_trace_call(t, "aten.max_pool2d", a, 4);
}
/* The mean over the windows of weft_max_pool2d. Padding counts as zeros. */
static inline WeftValue weft_avg_pool2d(WeftTrace *t, WeftValue x, int64_t size, int64_t stride,
					int64_t padding)
{
	const int64_t s[2] = {size, size}, by[2] = {stride ? stride : size, stride ? stride : size},
		      p[2] = {padding, padding};
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(s, 2), weft_arg_ints(by, 2),
			     weft_arg_ints(p, 2)};
	return weft_trace_call(t, "aten.avg_pool2d", a, 4);
}
/* The softmax along dim. */
static inline WeftValue weft_softmax(WeftTrace *t, WeftValue x, int64_t dim)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(dim)};
	return weft_trace_call(t, "aten.softmax.int", a, 2);
}
/* The logarithm of the softmax along dim. */
static inline WeftValue weft_log_softmax(WeftTrace *t, WeftValue x, int64_t dim)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(dim)};
	return weft_trace_call(t, "aten.log_softmax.int", a, 2);
}
/* softmax(q k^T / sqrt(E)) v. q [..., L, E], k [..., S, E], v [..., S, V]. mask [..., L, S]: bool
 * (true: attend), or a float that is added to the scores, or node 0. causal: element l of L attends
 * to s <= l only. */
static inline WeftValue weft_attention(WeftTrace *t, WeftValue q, WeftValue k, WeftValue v,
				       WeftValue mask, bool causal)
{
	const WeftArg a[] = {weft_arg(q),    weft_arg(k),       weft_arg(v),
			     weft_arg(mask), weft_arg_float(0), weft_arg_bool(causal)};
	return weft_trace_call(t, "aten.scaled_dot_product_attention", a, 6);
}
/* The mean over samples of -log softmax(logits [N, C])[target [N] i64], without dimensions. */
static inline WeftValue weft_cross_entropy(WeftTrace *t, WeftValue logits, WeftValue target)
{
	const WeftArg a[] = {weft_arg(logits), weft_arg(target)};
	return weft_trace_call(t, "aten.cross_entropy_loss", a, 2);
}
/* The mean of (x - target)^2 over all elements, without dimensions. */
static inline WeftValue weft_mse_loss(WeftTrace *t, WeftValue x, WeftValue target)
{
	const WeftArg a[] = {weft_arg(x), weft_arg(target)};
	return weft_trace_call(t, "aten.mse_loss", a, 2);
}

/* ---- optimisers ---- */

/* An optimiser of the table. Texts are lists with ";" between items.
 *
 * scalars: numbers such as the learning rate, each with PyTorch's default and, behind ":", its name
 * in PyTorch's param_groups where that is another one: "lr = 0.001; beta1 = 0.9 : betas.0".
 * flags: what the code is made for: "amsgrad; maximize; buffered : momentum". A flag with a
 * scalar's name behind ":" is set where the scalar is not the number 0. states: names, initial
 * values, conditions: "step[] = 0; exp_avg = 0; max_exp_avg_sq = 0 if amsgrad"
 * (weft_optimizer_state). */
typedef struct {
	uint32_t size;     /* sizeof(WeftOptimizer), set by the caller */
	const char *name;  /* "adamw" */
	const char *torch; /* the class in torch.optim, "AdamW"; "": there is none */
	const char *scalars, *flags, *states;
	const char *rows; /* scalars that must be 0 where rows of a parameter without a gradient
			     stay as they are: "momentum; weight_decay"; NULL: they never do */
	bool lazy;        /* only rows with a gradient are updated, whatever the scalars are */
} WeftOptimizer;
/* Sets *out to optimiser k of the table, from 0 on; fields behind out->size are not written.
 * Returns false, with all texts "", if there are not so many; also if out is NULL. */
bool weft_table_optimizer(uint32_t k, WeftOptimizer *out);

/* A state of an optimiser. */
typedef struct {
	uint32_t size;    /* sizeof(WeftOptimizerState), set by the caller */
	const char *name; /* "exp_avg" */
	const char *key;  /* its name in PyTorch's state; "-": PyTorch has none, and the value is 1
			     of a parameter that has had a step */
	double begins;    /* the value before the first step */
	bool number;      /* a number for each parameter, not a tensor of its shape */
} WeftOptimizerState;
/* Sets *out to state k, from 0 on, of an optimiser with these options (weft_optimizer_step). Texts
 * are valid until weft_free. Returns false if there are not so many, or after an error. */
bool weft_optimizer_state(Weft *, const char *optimizer, const WeftArg *option, uint32_t noption,
			  uint32_t k, WeftOptimizerState *out);

/* Calls one step of an optimiser of the table on n parameters p[] with gradients g[].
 *
 *     WeftArg options[] = {weft_arg_named("lr", weft_arg(lr)),
 *                          weft_arg_named("amsgrad", weft_arg_bool(true))};
 *     weft_optimizer_step(t, "adamw", options, 2, p, g, n, state, nstate, out);
 *     for (uint32_t k = 0; k < n; k++)
 *         weft_trace_assign(t, p[k], out[k]); // and state[k], out[n + k]
 *
 * option[]: scalars, as a number or as a value (a float without dimensions), and flags, as a bool;
 * the others have their defaults. state[nstate]: for each state that weft_optimizer_state names
 * under these options, in its order, n values; of a state that is a number, one value: f32[n], or
 * f32[1] for all parameters. out[n + nstate]: the new parameters, then the new states; after an
 * error all have node 0. The update is that of PyTorch, in the order of its operations. Gradients
 * flow through it, as through other calls. */
void weft_optimizer_step(WeftTrace *, const char *optimizer, const WeftArg *option,
			 uint32_t noption, const WeftValue *p, const WeftValue *g, uint32_t n,
			 const WeftValue *state, uint32_t nstate, WeftValue *out);

/* ---- graphs, branches, loops ---- */

/* Traces all of a graph, which was loaded or traced before: in[n] take the place of its inputs,
 * out[nout] are its outputs. Extents of its inputs that are sizes by name get the arguments'
 * extents. Its parameters, buffers and variables become the trace's; those of a graph that is
 * traced twice are there once. State that a graph changes can be changed once, and not inside of a
 * body. The graph stays as it is. n is the number of weft_inputs; nout is the number of
 * weft_outputs and of inputs that the graph writes. After an error all out[] have node 0. */
void weft_trace_graph(WeftTrace *, const WeftGraph *, const WeftValue *in, uint32_t n,
		      WeftValue *out, uint32_t nout);

/* A function that adds the calls of a body: from its inputs in[] it computes its results out[]. It
 * may read values from outside of the body, whose values nobody else may read. */
typedef void (*WeftBlockFn)(WeftTrace *, const WeftValue *in, WeftValue *out, void *user);

/* Within a function of weft_cond or weft_scan: the body gives n values, no more than there is room
 * for, where the caller does not know their number in advance; of a scan those that are carried on
 * are among them. out[] of weft_cond and weft_scan has node 0 behind these. Both branches must give
 * as many. */
void weft_body_gives(WeftTrace *, uint32_t n);

/* A branch that the data decides: condition is a bool[]. yes or no is executed, without inputs;
 * both give nout values, of the same types. As torch.cond. After an error all out[] have node 0,
 * also in weft_while_loop and weft_scan. */
void weft_cond(WeftTrace *, WeftValue condition, WeftBlockFn yes, WeftBlockFn no, void *user,
	       WeftValue *out, uint32_t nout);
/* As long as test(x) gives true (one bool[]), x becomes body(x), of the same types; out[n]: the
 * last x. `most`: more rounds never happen, which derivatives need to know; 0: not known. As
 * torch.while_loop. */
void weft_while_loop(WeftTrace *, const WeftValue *x, uint32_t n, WeftBlockFn test,
		     WeftBlockFn body, int64_t most, void *user, WeftValue *out);
/* A loop over the leading dimension of x[ninit], ..., x[ninit + nxs - 1] (nxs > 0, the same
 * extent). In each round body gets what is carried, x[0] to x[ninit - 1] at first, and a slice of
 * each of the others, and gives what is carried on and ny more values. out[ninit + ny]: what is
 * carried at the end, and the ny values of all rounds, stacked. reverse: from the last slice to the
 * first. */
void weft_scan(WeftTrace *, const WeftValue *x, uint32_t ninit, uint32_t nxs, uint32_t ny,
	       bool reverse, WeftBlockFn body, void *user, WeftValue *out);

/* A block with a known inverse, such as a reversible residual block. `forward` computes y[0..ny)
 * from x[0..nx), `inverse` computes x from y, both by calls of this trace. weft_invertible calls
 * both at once and fills in y. Both may read other values too: parameters, values that forward left
 * in `user`.
 *
 *     // y0 = x0 + F(x1), y1 = x1 + G(y0)
 *     static void couple(WeftTrace *t, const WeftValue *x, WeftValue *y, void *user)
 *     {
 *         y[0] = weft_add(t, x[0], layer(t, x[1], user, 0));
 *         y[1] = weft_add(t, x[1], layer(t, y[0], user, 1));
 *     }
 *     static void uncouple(WeftTrace *t, const WeftValue *y, WeftValue *x, void *user)
 *     {
 *         x[1] = weft_sub(t, y[1], layer(t, y[0], user, 1));
 *         x[0] = weft_sub(t, y[0], layer(t, x[1], user, 0));
 *     }
 *     weft_invertible(t, "block", x, 2, y, 2, couple, uncouple, &weights);
 *
 * weft_vjp_split uses the inverse: backward computes x again from y, and then the values inside the
 * block. Saved are the block's results, unless the next block's inverse gives them: a chain of
 * blocks saves the results of the last block, however long the chain is. Values that an inverse
 * reads besides are saved if they depend on the block's inputs. All other functions see the block
 * as the calls that `forward` made; the inverse then costs nothing.
 *
 * A wrong inverse makes wrong gradients without an error; weft_check_inverses finds it. `inverse`
 * draws no random numbers: draw them outside of the block. Outside of the block, use no value from
 * the inside but y, and no value that `inverse` made. y may be x. */
void weft_invertible(WeftTrace *, const char *name, const WeftValue *x, uint32_t nx, WeftValue *y,
		     uint32_t ny, WeftBlockFn forward, WeftBlockFn inverse, void *user);

/* Marks a part of the graph whose values weft_vjp_split does not save but computes again. Call
 * weft_checkpoint(t, x, "begin") for each value that enters the part (parameters excepted) and
 * weft_checkpoint(t, y, "end") for each value that leaves it; "keep" marks a value inside that is
 * saved all the same. Marked parts may be nested. The result has the value x; use it in place of
 * x. */
static inline WeftValue weft_checkpoint(WeftTrace *t, WeftValue x, const char *at)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_text(at)};
	return weft_trace_call(t, "checkpoint", a, 2);
}

#ifdef __cplusplus
}
#endif
#endif
