/* Private to ops/aten, and to the rooms whose operators are built like its own: functions that
 * read the arguments of an ATen composite, and functions that build the nodes of its expansion.
 *
 * Terms. b is where nodes are added and errors are recorded (ir/build/build.h). n is the composite
 * node that is expanded or derived; `name` is one of the arguments of its schema; any other name is
 * an internal error (ctx_bug). dims is a set of dimensions: bit k is dimension k. keep: reduced
 * dimensions stay with extent 1; else they are removed. A size is symbolic (Sym): constant, or
 * known at run time. A guard is a condition on sizes that the compiled model checks at each call.
 * Wide means converted to the dtype of arithmetic: f32 for f16, bf16 and f8, else unchanged.
 *
 * Errors. A function that meets an error records it (b_error) and returns false, 0 or no node.
 * Every function takes no node as an operand (the result of an earlier error) and then returns no
 * node. */
#ifndef WEFT_OPS_ATEN_PRIV_H
#define WEFT_OPS_ATEN_PRIV_H

#include "ops/rules/common.h"

/* ---- arguments ---- */

/* Copies the tensors of a Tensor[] argument to out[], at most `max` of them; no node for a tensor
 * that is None. Returns how many tensors the argument has, which may be more than `max`. */
uint32_t aten_list(const Build *, Node n, const char *name, Node *out, uint32_t max);
/* Whether an argument that is no tensor has a value, not None. Returns false for a Tensor argument,
 * and true for a Tensor[] argument. */
bool aten_has(const Build *, Node n, const char *name);
/* Returns the number of dimensions that is the end of a word of the operator's name: 2 of
 * aten.conv2d and of aten.max_pool2d_with_indices. Returns 0 if no word ends with 1d, 2d or 3d. */
uint32_t aten_named_dims(const Build *, Node n);
/* Returns the value of an int argument; `otherwise` if the argument is None. A symbolic size is an
 * error, which returns 0. */
int64_t aten_int_or(Build *, Node n, const char *name, int64_t otherwise);
/* Fills in out[want] from an int[] argument. A list of one integer stands for all `want` elements.
 * If the argument is None, or empty where the schema's default is the empty list, all elements are
 * `fill`. Returns false after an error: another length, or a symbolic size. */
bool aten_ints(Build *, Node n, const char *name, uint32_t want, int64_t fill, int64_t *out);
/* Fills in out[want] from an int[] argument as aten_ints does, but accepts symbolic sizes. Returns
 * false after an error. */
bool aten_syms(Build *, Node n, const char *name, uint32_t want, int64_t fill, Sym *out);
/* Returns the value of a ScalarType argument; `otherwise` if the argument is None or no
 * ScalarType. */
DType aten_dtype_or(const Build *, Node n, const char *name, DType otherwise);
/* Returns the set of dimensions that an int or int[] argument names, of a tensor of that rank;
 * negative ones count from the end. None or an empty list: all dimensions. Errors, after which the
 * set has no meaning: a dimension that stands twice, is out of range or is symbolic. */
uint32_t aten_dims(Build *, Node n, const char *name, uint32_t rank);
/* Returns whether x has no elements at any sizes. */
bool aten_is_empty(const Build *, Node x);
/* Returns n's argument "keepdim"; false if n's operator has none. */
bool aten_keepdim(const Build *, Node n);
/* Whether a str argument is `text`. Returns false for None. */
bool aten_is(const Build *, Node n, const char *name, const char *text);
/* Checks that a str argument is None or one of `words`, a text of words with one blank between.
 * Returns false after an error. */
bool aten_check_word(Build *, Node n, const char *name, const char *words);
/* Checks that lo <= v <= hi; NaN is an error. what: the name of v in the message. Returns false
 * after an error. */
bool aten_check_within(Build *, const char *what, double v, double lo, double hi);
/* Checks a float or Scalar argument, which is not None, as aten_check_within does. Returns false
 * after an error. */
bool aten_check_arg_within(Build *, Node n, const char *name, double lo, double hi);

/* ---- shapes and dtypes ---- */

/* Returns the bits of x as dtype d, which has as many. */
Node aten_bitcast(Build *, Node x, DType d);

/* Returns the dtype of result k that the model file states for this call; `otherwise` if no file
 * states it, or n has no result k. (PyTorch gives statistics of f16 and bf16 as f32 or rounded,
 * depending on the device that exported.) */
DType aten_result_dtype(const Build *, Node n, uint32_t k, DType otherwise);
/* Returns the shape without dimension dim; the shape as it is if it has no such dimension. */
Shape shape_remove(Shape, uint32_t dim);
/* Returns the shape with one more dimension, of that extent, in front of dimension dim <= rank; the
 * shape as it is if its rank is MAX_RANK. */
Shape shape_insert(Shape, uint32_t dim, Sym extent);
/* Whether the shapes of two nodes are provably equal. No node and a tuple have rank 0. */
bool aten_same_shape(const Build *, Node, Node);
/* Sets *out to the common shape of broadcasting. Extents that may be equal count as equal, and no
 * guard is added. Returns false after an error: extents that are never equal; *out then has no
 * meaning. */
bool aten_broadcast_shape(Build *, const Shape *, const Shape *, Shape *out);
/* Sets *low and *high to the least and the greatest value of an integer dtype; the greatest of u64
 * is INT64_MAX. */
void dtype_limits(DType, int64_t *low, int64_t *high);
/* Returns f32 for bool and integers; float and complex dtypes and DT_none as they are. */
DType dtype_to_float(DType);
/* States a condition on sizes. If the condition provably holds, nothing happens. If it provably
 * does not hold, an error that begins with `why` is recorded. Else a guard with the text `why` is
 * added. */
void aten_require_le(Build *, Sym a, Sym b, const char *why); /* a <= b */
void aten_require_equal(Build *, Sym a, Sym b, const char *why); /* a == b */
void aten_require_multiple(Build *, Sym a, int64_t of, const char *why); /* a % of == 0; of > 0 */
/* States, as aten_require_le does, that each of these dimensions of x has at least one element. For
 * reductions that have no value without elements; PyTorch refuses them even if the result has no
 * elements either. */
void aten_require_elements(Build *, Node x, uint32_t dims, const char *why);
/* States, as aten_require_equal does, that x has that shape. Returns false after an error: also if
 * x has another rank; and for no node. */
bool aten_require_shape(Build *, Node x, const Shape *, const char *why);
/* Returns the set of dimensions first, first + 1, ..., up to the last dimension of x; empty if x
 * has no more than `first` dimensions. */
uint32_t aten_dims_from(const Build *, Node x, uint32_t first);
/* Checks that an int[] argument has `want` elements; None has 0. Returns false after an error. */
bool aten_check_length(Build *, Node n, const char *name, uint32_t want);
/* Checks the arguments "size" and "stride" of n: equal lengths, no negative element. Returns false
 * after an error. */
bool aten_check_strides(Build *, Node n);
/* Returns the number of positions of a window that moves by `stride` > 0 within `room` elements and
 * covers `reach` of them, dilation * (window - 1) + 1: floor((room - reach) / stride) + 1. */
Sym aten_window_count(const Build *, Sym room, Sym reach, int64_t stride);

/* ---- Python scalars ---- */

/* Returns the dtype in which ATen computes with a tensor of dtype d and a Python scalar: d, unless
 * the scalar's category (bool < int < float < complex) is higher. Then an int gives i64 and a float
 * gives f32; a complex number gives c128 if d is f64, c32 if d is f16, else c64. d if the scalar is
 * None. */
DType aten_scalar_dtype(DType d, const Attr *);
/* The next functions return a Python scalar as a node without dimensions; None is an error. They
 * differ in values that the dtype does not have. */

/* Returns a Python scalar as an operand of arithmetic and comparisons beside x, in the dtype that
 * aten_scalar_dtype gives for x's dtype: an integer out of range wraps. None is an error. */
Node aten_scalar(Build *, Node x, const Attr *);
/* Returns aten_scalar, beside x, of a Scalar argument of n. */
Node aten_scalar_arg(Build *, Node n, const char *name, Node x);
/* Whether the argument of n's operator is a Tensor, and no Scalar as in another overload. */
bool aten_is_tensor(const Build *, Node n, const char *name);
/* Returns a Tensor argument of n; of another one aten_scalar_arg. */
Node aten_arg_beside(Build *, Node n, const char *name, Node x);
/* Returns a Python scalar as a value of fills and bounds, in the given dtype. A value out of range
 * is an error, but a negative integer that an unsigned dtype has with the other sign wraps, and a
 * symbolic integer is not checked. An integer dtype takes the integer part of a float; a real dtype
 * takes no complex number with an imaginary part (an error). None is an error. */
Node aten_scalar_as(Build *, const Attr *, DType);
/* Returns a Python scalar as a factor (alpha, beta, value of addcmul), in the given dtype: of an
 * integer dtype as aten_scalar_as; a value out of range of a float dtype becomes infinity. None is
 * an error. */
Node aten_scalar_factor(Build *, const Attr *, DType);
/* Whether a Scalar argument is the constant v. Returns false for None and for a symbolic size. */
bool aten_scalar_is(const Build *, Node n, const char *name, double v);
/* Returns x times a Scalar argument, which is converted to x's dtype as by aten_scalar_factor; x
 * itself if the argument is 1. */
Node aten_scaled(Build *, Node x, Node n, const char *name);

/* ---- nodes ---- */

/* Returns x != 0, of dtype bool; x itself if it is bool. */
Node aten_truth(Build *, Node x);
/* Returns x in the dtype of arithmetic (dtype_compute): f16, bf16 and f8 become f32, c32 becomes
 * c64, others stay. */
Node aten_wide(Build *, Node x);
/* Returns the complex conjugate of x; x itself if it is real. */
Node aten_conj(Build *, Node x);
/* Returns |x|, of a complex x real; x itself for bool and unsigned integers. */
Node aten_abs(Build *, Node x);
/* Returns x converted to f32 if it is bool or of integers, else x itself. */
Node aten_to_float(Build *, Node x);
/* Returns x broadcast to the shape, as b_broadcast: dimensions are aligned at the end. */
Node aten_expand_shape(Build *, Node x, const Shape *);
/* Returns x in another shape with as many elements, in row-major order, as b_reshape. */
Node aten_reshape(Build *, Node x, const Shape *);
/* Returns v[C] (or without dimensions) broadcast to the shape of `like`, C along dimension dim of
 * `like`. A v of rank 2 or more is an error. */
Node aten_per_dim(Build *, Node v, Node like, uint32_t dim);
/* Returns x without these dimensions, which must have extent 1. */
Node aten_squeeze_dims(Build *, Node x, uint32_t dims);
/* Returns x with its dimensions first .. last merged into one. */
Node aten_flatten(Build *, Node x, uint32_t first, uint32_t last);
/* Returns x converted to dtype d, then clamped to [low, high], where an Attr of kind ATTR_none is
 * no bound; where low is above high, the result is high. Bounds become values as by aten_scalar_as.
 * A constant integer bound beyond the range of an integer dtype has no effect if all
 * values are within it, and is an error if no value is. */
Node aten_clamp(Build *, Node x, DType d, const Attr *low, const Attr *high);
/* Returns the elements start .. end - 1 of x along dim. Negative bounds count from the end and are
 * clamped to the extent; INT64_MAX is the end. Other bounds must be at most the extent, and start
 * at most end. */
Node aten_slice(Build *, Node x, uint32_t dim, int64_t start, int64_t end);
/* Returns x + y with promotion and broadcasting; of two bools the "or". */
Node aten_add(Build *, Node x, Node y);
/* Returns x * y with promotion and broadcasting; of two bools the "and". */
Node aten_mul(Build *, Node x, Node y);
/* Returns a constant i64[n] with a copy of these values. */
Node aten_const_ints(Build *, const int64_t *v, int64_t n);

/* ---- elements by index ---- */

/* Returns indices, of integers or bool, converted to i64. Float and complex dtypes are errors. */
Node aten_index(Build *, Node index);
/* Returns the node `gather`: the elements or slices of x that an index names. x[B..., axes and
 * others], with `batch` dimensions B in front; index: i64[B..., I..., naxes], whose last dimension
 * holds one position for each of axes[naxes] (dimensions of x behind B). Result: [B..., I..., the
 * other dimensions of x]. mode says what an index out of range does, as IndexMode (ir/op/lower.h):
 * "check", "fill", "clamp", "promise" or "within". */
Node b_gather(Build *, Node x, Node index, uint32_t batch, const uint32_t *axes, uint32_t naxes,
	      const char *mode);
/* Returns the node `scatter`: x, where the elements that b_gather with these arguments reads are
 * combined with `update`, of b_gather's shape and x's dtype, in row-major order of update. combine:
 * "set", "add", "mul", "max" or "min". The mode of indices is "check". */
Node b_scatter(Build *, Node x, Node index, Node update, uint32_t batch, const uint32_t *axes,
	       uint32_t naxes, const char *combine);
/* Does as b_scatter with a mode of indices, as for b_gather. */
Node b_scatter_as(Build *, Node x, Node index, Node update, uint32_t batch, const uint32_t *axes,
		  uint32_t naxes, const char *combine, const char *mode);
/* Returns x[..., index, ...] along dim, as torch.take: x[P..., D, Q...] and integers index[I...]
 * give [P..., I..., Q...]. mode: as for b_gather. */
Node aten_take_dim(Build *, Node x, uint32_t dim, Node index, const char *mode);
/* Builds torch.gather: returns a tensor of the shape of index, whose element at i is that of x
 * at i with index[i] as the position along dim. index has x's rank and extents of at most x's in
 * the other dimensions. An index out of range, also a negative one, is an error at run time. */
Node aten_gather_dim(Build *, Node x, uint32_t dim, Node index);
/* Does as aten_gather_dim with a mode of indices, as for b_gather. */
Node aten_gather_dim_as(Build *, Node x, uint32_t dim, Node index, const char *mode);
/* Where a scatter writes: its operand `index` and its arguments `batch` and `axes`. */
typedef struct {
	Node index;
	uint32_t batch, axes[MAX_RANK], naxes;
} Places;
/* Sets *p to the places of torch.scatter: element (.., j, ..) of what is written goes to (..,
 * index[.., j, ..], ..) along dim of x. Returns false after an error: an index of another rank than
 * x, or of no integers. */
bool aten_places_along(Build *, Node x, Node index, uint32_t dim, Places *p);
/* Returns the node `scatter` of v into these places of x; mode "within". */
Node aten_scatter_at(Build *, Node x, const Places *p, Node v, const char *combine);
/* Returns x with the elements under a mask replaced by values, or (accumulate) increased by them.
 * mask: bool [M...], whose dimensions are the dimensions first, first + 1, ... of x. values,
 * converted to x's dtype, broadcast to x with one dimension, of the true elements in row-major
 * order, in the place of the mask's. Where that dimension of values is not the constant 1, the call
 * fails if its extent is not the number of true elements. */
Node aten_mask_put(Build *, Node x, Node mask, uint32_t first, Node values, bool accumulate);
/* Returns the node `window`: the windows of x along dim. dim gets the extent `count`, the number of
 * windows, and a new last dimension the extent `size`. Element k of window p is element p * stride
 * + k * dilation - low of x, or 0 if x has no such element. */
Node b_window(Build *, Node x, uint32_t dim, int64_t size, int64_t stride, int64_t dilation,
	      int64_t low, Sym count);
/* Returns the index (i64) of the greatest (max) or least element along dim, which is removed; the
 * first one of equal elements. NaN is both the greatest and the least. */
Node b_arg_reduce(Build *, bool max, Node x, uint32_t dim);
/* Returns x sorted along dim: a tuple of the values and their i64 indices in x. NaN counts as the
 * greatest value. stable: equal elements keep their order. */
Node b_sort(Build *, Node x, uint32_t dim, bool descending, bool stable);
/* Returns the first `first` elements (at most the extent) along dim of the values and the indices
 * of a stable b_sort. */
Node b_sort_first(Build *, Node x, uint32_t dim, bool descending, Sym first);

/* ---- reductions and what is built on them ---- */

/* Returns the sum over dims, in x's dtype; integers wrap. */
Node aten_sum(Build *, Node x, uint32_t dims, bool keep);
/* Returns x as the operand of torch.sum: bool and integers become i64, others stay. */
Node aten_sum_operand(Build *, Node x);
/* Returns the mean of a float or complex x over dims: computed wide, rounded to x's dtype. */
Node aten_mean(Build *, Node x, uint32_t dims, bool keep);
/* Returns the number of elements over which a reduction of x over dims runs: the product of the
 * extents of these dimensions; 1 if dims is 0, or x is no node. */
Sym aten_count(const Build *, Node x, uint32_t dims);
/* Returns the variance over dims, which stay with extent 1: sum |x - mean|^2 / max(count -
 * correction, 0); real, also of a complex x. x must be wide. *mean (mean may be NULL) receives the
 * mean, with extents 1, too. */
Node aten_var(Build *, Node x, uint32_t dims, double correction, Node *mean);
/* Returns aten_var about a given mean, of extent 1 along dims. */
Node aten_var_about(Build *, Node x, Node mean, uint32_t dims, double correction);
/* Returns x, in which an infinite element is NaN, unless it is the last one along all dims. For the
 * mean that PyTorch returns beside a variance: it is updated element by element, and an infinite
 * mean becomes NaN at the next update. */
Node aten_nan_for_infinite(Build *, Node x, uint32_t dims);
/* Returns (sum |x|^p)^(1/p) over dims, real; p may be 0 (the number of elements other than 0), inf
 * and -inf (the greatest and the least |x|), as in torch.linalg.vector_norm. An infinite or
 * negative p requires an element (aten_require_elements). x: float or complex. */
Node aten_vector_norm(Build *, Node x, double p, uint32_t dims, bool keep);
/* Returns aten_vector_norm of x - y + eps over the last dimension. Integers are subtracted as
 * integers, with wrapping, then converted to f32. Without dimensions: an error. */
Node aten_row_distance(Build *, Node x, Node y, double p, double eps, bool keep);
/* Returns (sum |x|^p)^(1/p) over dims, p other than 0 and 1; the derivative at 0 is 0. |x| of each
 * element if dims is 0. x: float. */
Node aten_length(Build *, Node x, double p, uint32_t dims, bool keep);
/* Returns the greatest (max) or least of all elements of x, without dimensions; requires an element
 * (aten_require_elements). In the derivative equal elements share the cotangent. */
Node aten_extreme(Build *, Node x, bool max);
/* Returns max(x, 0); the derivative at 0 is 0. */
Node aten_hinge(Build *, Node x);
/* Returns x[N, C, *space] as [N, groups, C / groups, *space], for group norm. If that exceeds
 * MAX_RANK, the last dimensions are merged. An error if `groups` does not provably divide C. */
Node aten_grouped(Build *, Node x, int64_t groups);
/* Returns the set of the dimensions behind N and groups, of a result of aten_grouped. */
uint32_t aten_within_groups(const Build *, Node grouped);
/* Returns v[N, groups] with dimensions of extent 1 appended, to broadcast with a result of
 * aten_grouped. */
Node aten_per_group(Build *, Node v, Node grouped);
/* Returns the set of the dimensions of n's operand "input" over which its argument
 * "normalized_shape" normalises: the last ones. Requires their extents to be normalized_shape
 * (aten_require_equal). Returns 0 after an error. */
uint32_t aten_normalised_dims(Build *, Node n);
/* Returns exp(x) / sum exp(x) along dim: computed wide, rounded to x's dtype. x: float. 1 without
 * dimensions. */
Node aten_softmax(Build *, Node x, uint32_t dim);
/* A softmax, and the maxima and the sums of exponentials that it divides by, with extent 1 along
 * the dimensions of the softmax. */
typedef struct {
	Node high, sum, p;
} SoftmaxParts;
/* Returns the softmax of x, of a dtype of accumulation, along the dimensions in the bit set.
 * maskable: where all elements are -inf, `high` and `p` are 0, not -inf and NaN. */
SoftmaxParts aten_softmax_parts(Build *, Node x, uint32_t dims, bool maskable);
/* Returns the logarithm of aten_softmax; 0 without dimensions. */
Node aten_log_softmax(Build *, Node x, uint32_t dim);
/* Returns x[N, C, *in] interpolated linearly at fractional positions: at[k] [N, *out] is the
 * position along dimension 2 + k, for k < n <= 3. All at[k] have one shape. Elements outside of x
 * are 0. x and at[k] are wide: this function computes in their promoted dtype and widens nothing.
 * Result: [N, C, *out], in that dtype. */
Node aten_sample_linear(Build *, Node x, const Node *at, uint32_t n);
/* Returns the loss of the elements x, by n's argument "reduction": 0 x itself, 1 the mean of all, 2
 * the sum of all. Another value is an error. */
Node aten_reduce_loss(Build *, Node n, Node x);
/* Builds torch.nn.functional.linear: returns x w^T + bias, of x [..., in], w [out, in] or [in],
 * bias no node or [out]; rounded once, after the bias. Other ranks are errors. */
Node aten_linear(Build *, Node x, Node w, Node bias);
/* Returns the cotangent of x[..., *in] that was pooled over its last nd dimensions: zeros, to which
 * each g [..., *out] is added at the position index [..., *out], row-major within *in. An index out
 * of range is an error at run time. */
Node aten_pool_backward(Build *, Node x, Node index, Node g, uint32_t nd);
/* Returns x, whose tangent is taken as zero, while cotangents pass: as PyTorch treats class
 * weights. */
Node aten_without_tangent(Build *, Node x);

/* ---- rules for cotangents (.adjoint of ir/op/op.h, which has the contract); aten/rule.c ---- */

/* Differentiates (.adjoint) operators with results (values, indices): values are the elements of
 * operand 0 along the argument "dim" that indices name, as of max.dim, kthvalue and mode.
 * Returns false after errors. */
bool aten_adjoint_picked(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Differentiates (.adjoint) operators with a result without dimensions that is an element of
 * operand 0, as of median: all elements equal to it (or, of NaN, all NaN) share the cotangent.
 * Returns false after errors. */
bool aten_adjoint_shared(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Differentiates (.adjoint) clamp with Scalar bounds: the cotangent passes where x is strictly
 * within. Returns false after errors. */
bool aten_adjoint_clamp(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Differentiates (.adjoint) clamp with tensors as bounds: x and a bound that is equal to x share
 * the cotangent. If both bounds are equal, none of the cotangent goes to the bounds for such an
 * x; if the lower bound is above the upper one, the upper one gets all of it. Returns false
 * after errors. */
bool aten_adjoint_clamp_tensor(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Differentiates (.adjoint) a variance, with or without the mean as result 1. Returns false
 * after errors. */
bool aten_adjoint_var(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Differentiates (.adjoint) a standard deviation, with or without the mean as result 1. The
 * derivative of a deviation of 0 is 0. Returns false after errors. */
bool aten_adjoint_std(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Differentiates (.adjoint) logsumexp: exp(x - result) times the cotangent. Returns false after
 * errors. */
bool aten_adjoint_logsumexp(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Batches (.batch) var, std, var_mean and std_mean in all overloads: over the same dimensions
 * behind the batch. */
Node aten_batch_moments(Build *, Node n, const Node *in, const bool *batched, Sym size);

#endif
