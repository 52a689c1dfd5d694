/* Models written in C: a trace records operators on values, and becomes a graph that is
 * transformed, interpreted and compiled like one of a model file.
 *
 *     WeftTrace *t = weft_trace_new(w, "classify");
 *     WeftValue x = weft_trace_input(t, "x", "f32[B, 64]");
 *     WeftValue weight = weft_trace_param(t, "weight", "f32[10, 64]", weights);
 *     WeftValue bias = weft_trace_param(t, "bias", "f32[10]", biases);
 *     weft_trace_output(t, "y", weft_softmax(t, weft_linear(t, x, weight, bias), -1));
 *     WeftGraph *g = weft_trace_end(t);
 *     if (!g) fputs(weft_messages(w), stderr);
 *
 * Operators are PyTorch's (aten.conv2d, aten.add.Tensor, ...), with its names of arguments,
 * defaults, promotion and broadcasting; `weft_trace_call` reaches all of them, and the functions at
 * the end of this header are calls of the usual ones. Layers are functions of explicit parameters:
 * they hold nothing.
 *
 * After the first error, whose message names the call, all functions do nothing and give no value,
 * and weft_trace_end gives NULL: so only that needs to be checked. What a trace is made of is
 * called weft_trace_..., since weft_model.h has weft_input, weft_output, weft_param and weft_call,
 * of compiled models. A trace belongs to its Weft, and values to their trace. */
#ifndef WEFT_TRACE_H
#define WEFT_TRACE_H

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct WeftTrace WeftTrace;
typedef struct {
	uint32_t node, trace; /* 0: none, for arguments that may be absent */
} WeftValue;

/* The name is used in messages. NULL: no memory. */
WeftTrace *weft_trace_new(Weft *, const char *name);
/* The graph; the trace takes no more calls. */
WeftGraph *weft_trace_end(WeftTrace *);

/* ---- what a model takes ---- */

/* Names are not empty; inputs, parameters and state have different ones, and so have outputs.
 *
 * A size that types may name, of this range. Names that types use without are sizes from 0 on. */
void weft_trace_symbol(WeftTrace *, const char *name, int64_t lo, int64_t hi);
/* An input. type: a dtype (bool, i32, i64, f16, bf16, f32, f64, c64, c128, ...) and extents,
 * numbers or expressions of sizes: "f32[B, 3, 224, 224]", "i64[]". */
WeftValue weft_trace_input(WeftTrace *, const char *name, const char *type);
/* A parameter, a constant of the model: row-major contents that stay as they are until weft_free,
 * which are not copied; NULL: zeros. The type has no symbols. */
WeftValue weft_trace_param(WeftTrace *, const char *name, const char *type, const void *data);
/* The same as state that the model replaces, which compiled instances own: a parameter that a
 * training step updates, or a buffer such as a running mean, which is none of the "params" of
 * weft_vjp. `data` is what it holds at first. */
WeftValue weft_trace_variable(WeftTrace *, const char *name, const char *type, const void *data);
WeftValue weft_trace_buffer(WeftTrace *, const char *name, const char *type, const void *data);

/* ---- what it gives ---- */

void weft_trace_output(WeftTrace *, const char *name, WeftValue);
/* A variable or buffer has this value after the call. What read it before reads what it was. */
void weft_trace_assign(WeftTrace *, WeftValue state, WeftValue to);

/* ---- operators ---- */

typedef enum {
	WEFT_ARG_NONE, /* absent: the same as not given where the argument is optional */
	WEFT_ARG_VALUE, WEFT_ARG_VALUES, WEFT_ARG_BOOL, WEFT_ARG_INT, WEFT_ARG_FLOAT,
	WEFT_ARG_TEXT, /* also the name of a dtype */
	WEFT_ARG_INTS, WEFT_ARG_FLOATS, WEFT_ARG_BOOLS
} WeftArgKind;
typedef struct {
	const char *name; /* of the argument; NULL: the first that is not given yet by its place */
	WeftArgKind kind;
	uint32_t n; /* of a list */
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
	} u;
} WeftArg;

/* The result of an operator, or several in one. Operators that write their arguments (aten.add_,
 * out=) are refused. */
WeftValue weft_trace_call(WeftTrace *, const char *op, const WeftArg *, uint32_t n);
/* Result k of an operator that has several. */
WeftValue weft_trace_result(WeftTrace *, WeftValue several, uint32_t k);
/* A tensor's rank, and its extents, -1 where they are not constant. -1 after an error, or for
 * several results. */
int32_t weft_trace_shape(WeftTrace *, WeftValue, int64_t shape[12]);

static inline WeftArg weft_arg(WeftValue v)
{
	WeftArg a = {NULL, v.node ? WEFT_ARG_VALUE : WEFT_ARG_NONE, 1, {v}};
	return a;
}
static inline WeftArg weft_arg_none(void)
{
	WeftArg a = {NULL, WEFT_ARG_NONE, 0, {{0, 0}}};
	return a;
}
static inline WeftArg weft_arg_values(const WeftValue *v, uint32_t n)
{
	WeftArg a = {NULL, WEFT_ARG_VALUES, n, {{0, 0}}};
	a.u.values = v;
	return a;
}
static inline WeftArg weft_arg_bool(bool b)
{
	WeftArg a = {NULL, WEFT_ARG_BOOL, 1, {{0, 0}}};
	a.u.b = b;
	return a;
}
static inline WeftArg weft_arg_int(int64_t i)
{
	WeftArg a = {NULL, WEFT_ARG_INT, 1, {{0, 0}}};
	a.u.i = i;
	return a;
}
static inline WeftArg weft_arg_float(double f)
{
	WeftArg a = {NULL, WEFT_ARG_FLOAT, 1, {{0, 0}}};
	a.u.f = f;
	return a;
}
static inline WeftArg weft_arg_text(const char *text)
{
	WeftArg a = {NULL, WEFT_ARG_TEXT, 1, {{0, 0}}};
	a.u.text = text;
	return a;
}
static inline WeftArg weft_arg_ints(const int64_t *v, uint32_t n)
{
	WeftArg a = {NULL, WEFT_ARG_INTS, n, {{0, 0}}};
	a.u.ints = v;
	return a;
}
/* weft_arg_named("dim", weft_arg_int(1)) */
static inline WeftArg weft_arg_named(const char *name, WeftArg a)
{
	a.name = name;
	return a;
}

/* ---- the usual operators ---- */

static inline WeftValue weft_unary(WeftTrace *t, const char *op, WeftValue x)
{
	const WeftArg a[] = {weft_arg(x)};
	return weft_trace_call(t, op, a, 1);
}
static inline WeftValue weft_binary(WeftTrace *t, const char *op, WeftValue x, WeftValue y)
{
	const WeftArg a[] = {weft_arg(x), weft_arg(y)};
	return weft_trace_call(t, op, a, 2);
}
/* With a number, which takes the tensor's dtype as PyTorch's do: weft_with_number(t,
 * "aten.add.Tensor", x, 1). */
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

/* x times a number. */
static inline WeftValue weft_scale(WeftTrace *t, WeftValue x, double by)
{
	return weft_with_number(t, "aten.mul.Tensor", x, by);
}
/* Over some dimensions, which go unless they are kept. */
static inline WeftValue weft_sum_over(WeftTrace *t, WeftValue x, const int64_t *dims, uint32_t n, bool keep)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(dims, n), weft_arg_bool(keep)};
	return weft_trace_call(t, "aten.sum.dim_IntList", a, 3);
}
static inline WeftValue weft_mean_over(WeftTrace *t, WeftValue x, const int64_t *dims, uint32_t n, bool keep)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(dims, n), weft_arg_bool(keep)};
	return weft_trace_call(t, "aten.mean.dim", a, 3);
}
/* One extent may be -1. */
static inline WeftValue weft_reshape(WeftTrace *t, WeftValue x, const int64_t *shape, uint32_t rank)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(shape, rank)};
	return weft_trace_call(t, "aten.reshape", a, 2);
}
/* Dimensions from `start` to `end` become one. */
static inline WeftValue weft_flatten(WeftTrace *t, WeftValue x, int64_t start, int64_t end)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(start), weft_arg_int(end)};
	return weft_trace_call(t, "aten.flatten.using_ints", a, 3);
}
static inline WeftValue weft_transpose(WeftTrace *t, WeftValue x, int64_t dim0, int64_t dim1)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(dim0), weft_arg_int(dim1)};
	return weft_trace_call(t, "aten.transpose.int", a, 3);
}
static inline WeftValue weft_permute(WeftTrace *t, WeftValue x, const int64_t *dims, uint32_t n)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(dims, n)};
	return weft_trace_call(t, "aten.permute", a, 2);
}
static inline WeftValue weft_select(WeftTrace *t, WeftValue x, int64_t dim, int64_t index)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(dim), weft_arg_int(index)};
	return weft_trace_call(t, "aten.select.int", a, 3);
}
static inline WeftValue weft_concat(WeftTrace *t, const WeftValue *x, uint32_t n, int64_t dim)
{
	const WeftArg a[] = {weft_arg_values(x, n), weft_arg_int(dim)};
	return weft_trace_call(t, "aten.cat", a, 2);
}

/* ---- layers ---- */

/* x [..., in], weight [out, in], bias [out] or none. */
static inline WeftValue weft_linear(WeftTrace *t, WeftValue x, WeftValue weight, WeftValue bias)
{
	const WeftArg a[] = {weft_arg(x), weft_arg(weight), weft_arg(bias)};
	return weft_trace_call(t, "aten.linear", a, 3);
}
/* 0 stands for 1 but in padding. */
typedef struct {
	int64_t stride[2], padding[2], dilation[2], groups;
} WeftConv2d;
/* x [N, C, H, W], weight [O, C / groups, h, w], bias [O] or none; how: NULL is all 0. */
static inline WeftValue weft_conv2d(WeftTrace *t, WeftValue x, WeftValue weight, WeftValue bias, const WeftConv2d *how)
{
	int64_t stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1}, groups = 1;
	for (int k = 0; how && k < 2; k++) {
		stride[k] = how->stride[k] ? how->stride[k] : 1;
		padding[k] = how->padding[k];
		dilation[k] = how->dilation[k] ? how->dilation[k] : 1;
	}
	if (how && how->groups)
		groups = how->groups;
	const WeftArg a[] = {weft_arg(x), weft_arg(weight), weft_arg(bias), weft_arg_ints(stride, 2), weft_arg_ints(padding, 2),
			     weft_arg_ints(dilation, 2), weft_arg_int(groups)};
	return weft_trace_call(t, "aten.conv2d", a, 7);
}
/* Over the last dimensions of x, which are weight's; bias may be none. */
static inline WeftValue weft_layer_norm(WeftTrace *t, WeftValue x, WeftValue weight, WeftValue bias, double eps)
{
	int64_t shape[12];
	int32_t rank = weft_trace_shape(t, weight, shape);
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(shape, rank < 0 ? 0 : (uint32_t)rank), weft_arg(weight), weft_arg(bias),
			     weft_arg_float(eps)};
	return weft_trace_call(t, "aten.layer_norm", a, 5);
}
/* x [N, C, ...] with the statistics of C channels; weight and bias may be none. */
static inline WeftValue weft_batch_norm(WeftTrace *t, WeftValue x, WeftValue weight, WeftValue bias, WeftValue mean, WeftValue variance,
					double eps)
{
	const WeftArg a[] = {weft_arg(x), weft_arg(weight), weft_arg(bias), weft_arg(mean), weft_arg(variance), weft_arg_bool(false),
			     weft_arg_float(0.1), weft_arg_float(eps), weft_arg_bool(false)};
	return weft_trace_call(t, "aten.batch_norm", a, 9);
}
/* stride 0: size. */
static inline WeftValue weft_max_pool2d(WeftTrace *t, WeftValue x, int64_t size, int64_t stride, int64_t padding)
{
	const int64_t s[2] = {size, size}, by[2] = {stride ? stride : size, stride ? stride : size}, p[2] = {padding, padding};
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(s, 2), weft_arg_ints(by, 2), weft_arg_ints(p, 2)};
	return weft_trace_call(t, "aten.max_pool2d", a, 4);
}
static inline WeftValue weft_avg_pool2d(WeftTrace *t, WeftValue x, int64_t size, int64_t stride, int64_t padding)
{
	const int64_t s[2] = {size, size}, by[2] = {stride ? stride : size, stride ? stride : size}, p[2] = {padding, padding};
	const WeftArg a[] = {weft_arg(x), weft_arg_ints(s, 2), weft_arg_ints(by, 2), weft_arg_ints(p, 2)};
	return weft_trace_call(t, "aten.avg_pool2d", a, 4);
}
static inline WeftValue weft_softmax(WeftTrace *t, WeftValue x, int64_t dim)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(dim)};
	return weft_trace_call(t, "aten.softmax.int", a, 2);
}
static inline WeftValue weft_log_softmax(WeftTrace *t, WeftValue x, int64_t dim)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_int(dim)};
	return weft_trace_call(t, "aten.log_softmax.int", a, 2);
}
/* q [..., L, E], k [..., S, E], v [..., S, V]; mask, added or bool, or none. */
static inline WeftValue weft_attention(WeftTrace *t, WeftValue q, WeftValue k, WeftValue v, WeftValue mask, bool causal)
{
	const WeftArg a[] = {weft_arg(q), weft_arg(k), weft_arg(v), weft_arg(mask), weft_arg_float(0), weft_arg_bool(causal)};
	return weft_trace_call(t, "aten.scaled_dot_product_attention", a, 6);
}
/* The mean over samples of -log softmax(logits [N, C])[target [N] i64]. */
static inline WeftValue weft_cross_entropy(WeftTrace *t, WeftValue logits, WeftValue target)
{
	const WeftArg a[] = {weft_arg(logits), weft_arg(target)};
	return weft_trace_call(t, "aten.cross_entropy_loss", a, 2);
}
static inline WeftValue weft_mse_loss(WeftTrace *t, WeftValue x, WeftValue target)
{
	const WeftArg a[] = {weft_arg(x), weft_arg(target)};
	return weft_trace_call(t, "aten.mse_loss", a, 2);
}

/* A block of which the inverse is known, such as a reversible residual block: `forward` makes
 * y[0..ny) of x[0..nx), and `inverse` x of y, both by calls of this trace. They are called at once,
 * and fill in out[]; whatever else they read (parameters, other values, also what forward computed
 * and left in `user`) they take from where they like.
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
 * To everything but weft_vjp_split the block is what `forward` makes: the inverse costs nothing. In
 * the entries of weft_vjp_split, backward computes x again by the inverse, and from it all that it
 * needs of the block's inside; saved are the block's results, unless those are what the next block
 * takes, which its inverse gives. So a chain of blocks saves what the last one gives, however many
 * there are. What else an inverse reads is saved where it depends on what goes into a block.
 *
 * An inverse that is wrong makes wrong gradients, without an error; weft_check_inverses tells. It
 * computes nothing that is random: draw outside of the block. Values of the inside are not to be
 * read outside, but y; values that `inverse` made are not valid afterwards. y may be x. */
typedef void (*WeftBlockFn)(WeftTrace *, const WeftValue *in, WeftValue *out, void *user);
void weft_invertible(WeftTrace *, const char *name, const WeftValue *x, uint32_t nx, WeftValue *y, uint32_t ny, WeftBlockFn forward,
		     WeftBlockFn inverse, void *user);

/* Marks for weft_vjp_split: between weft_checkpoint(t, x, "begin") of each value that enters a
 * region, parameters excepted, and weft_checkpoint(t, y, "end") of each that leaves it nothing is
 * saved for gradients, but what "keep" names: it is computed again. Regions nest. To everything
 * else the result is x. */
static inline WeftValue weft_checkpoint(WeftTrace *t, WeftValue x, const char *at)
{
	const WeftArg a[] = {weft_arg(x), weft_arg_text(at)};
	return weft_trace_call(t, "checkpoint", a, 2);
}

#ifdef __cplusplus
}
#endif
#endif
