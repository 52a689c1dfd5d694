/* Private to ir/ops/aten, and to the rooms whose operators are built like its own: reading
 * arguments of a composite and building what many of them share. Everything accepts a missing node
 * (after an error) and passes it on. */
#ifndef WEFT_IR_OPS_ATEN_PRIV_H
#define WEFT_IR_OPS_ATEN_PRIV_H

#include "ir/ops/common.h"

/* ---- arguments ---- */

/* The k-th element of a Tensor[] argument; *n receives the count when k is 0 and n is given. */
uint32_t aten_list(const Build *, Node n, const char *name, Node *out, uint32_t max);
bool aten_has(const Build *, Node n, const char *name); /* an attribute that is not None */
uint32_t aten_named_dims(const Build *, Node n); /* as the operator's name says: 2 of conv2d; 0 if
                                                    the name does not say it */
int64_t aten_int_or(Build *, Node n, const char *name, int64_t otherwise);
/* The list repeated or cut to `want` elements (a lone int stands for all); an absent list gives
 * `fill`, as does an empty one where the schema's default is one. */
bool aten_ints(Build *, Node n, const char *name, uint32_t want, int64_t fill, int64_t *out);
/* the same, of symbols too */
bool aten_syms(Build *, Node n, const char *name, uint32_t want, int64_t fill, Sym *out);
DType aten_dtype_or(const Build *, Node n, const char *name, DType otherwise);
/* Dims as a bit set; None or an empty list: all of them. b_error where one is there twice. */
uint32_t aten_dims(Build *, Node n, const char *name, uint32_t rank);
bool aten_is(const Build *, Node n, const char *name, const char *text); /* a string argument */
/* None, or one of these words, blanks between: else b_error. */
bool aten_word(Build *, Node n, const char *name, const char *words);
/* A number is within bounds: else b_error. NaN is not. */
bool aten_within(Build *, const char *what, double v, double lo, double hi);
/* The same of a named float or Scalar argument. */
bool aten_arg_within(Build *, Node n, const char *name, double lo, double hi);

/* ---- shapes and dtypes ---- */

/* What the file says of result k of the call; `otherwise` where no file does. Statistics of f16 and
 * bf16 are f32 or rounded, depending on the device that exported. */
DType aten_result_dtype(const Build *, Node n, uint32_t k, DType otherwise);
Shape shape_remove(Shape, uint32_t dim);
Shape shape_insert(Shape, uint32_t dim, Sym);
bool aten_same_shape(const Build *, Node, Node); /* provably */
/* The common shape; false after b_error. */
bool aten_broadcast_shape(Build *, const Shape *, const Shape *, Shape *out);
/* The least and the greatest value of an integer dtype (of u64: up to INT64_MAX). */
void dtype_limits(DType, int64_t *low, int64_t *high);
/* floats unchanged, bool and ints to f32 (ATen's default dtype) */
DType dtype_to_float(DType);
/* Entry guard a <= b unless proven. */
void aten_require_le(Build *, Sym a, Sym b, const char *why);
/* These dims of x have an element each: what has no value of nothing, and PyTorch refuses then,
 * even where the result has no element. */
void aten_require_some(Build *, Node x, uint32_t dims, const char *why);
uint32_t aten_dims_from(const Build *, Node x,
			uint32_t first); /* the set of first and those behind it */
void aten_require_equal(Build *, Sym a, Sym b, const char *why);
void aten_require_multiple(Build *, Sym a, int64_t of, const char *why); /* of > 0 */
/* x has that shape: false after b_error where it provably has not; a guard where that is not known.
 */
bool aten_require_shape(Build *, Node x, const Shape *, const char *why);
/* The list has that many elements, or it is a lone integer, which stands for that many: else
 * b_error. */
bool aten_has_length(Build *, Node n, const char *name, uint32_t want);
/* `size` and `stride` are as long as each other, and nothing in them is negative: else b_error. */
bool aten_strides_fit(Build *, Node n);
/* Where a kernel of that reach (dilation * (extent - 1) + 1) fits into room, every stride: how many
 * times. */
Sym aten_places(const Build *, Sym room, Sym reach, int64_t stride);

/* ---- nodes ---- */

/* The dtype of a Python scalar beside a tensor: the tensor's unless the scalar's category is
 * higher. */
DType aten_scalar_dtype(DType, const Attr *);
/* A Python scalar beside tensor x as 0-d of that dtype. It is an operand as ATen's arithmetic and
 * comparisons take it: an integer that the dtype lacks wraps. */
Node aten_scalar(Build *, Node x, const Attr *);
/* The same of a named argument. */
Node aten_scalar_arg(Build *, Node n, const char *name, Node x);
/* 0-d of the dtype. It is a value as ATen's fills and bounds take it: b_error if the dtype lacks
 * it. */
Node aten_scalar_as(Build *, const Attr *, DType);
/* The same as selections and factors (alpha, beta, value) take it: a float type may round it to
 * inf. */
Node aten_scalar_factor(Build *, const Attr *, DType);
bool aten_scalar_is(const Build *, Node n, const char *name, double v);
Node aten_truth(Build *, Node x);                       /* bool: x != 0 */
Node aten_wide(Build *, Node x);                        /* f16, bf16, f8 to f32 */
Node aten_conj(Build *, Node x);                        /* of real numbers: x */
Node aten_abs(Build *, Node x);                         /* complex: how long; unsigned and bool:
                                                           x */
Node aten_to_float(Build *, Node x);                    /* bool and ints to f32 */
Node aten_expand_shape(Build *, Node x, const Shape *); /* aligned at the right */
Node aten_reshape(Build *, Node x, const Shape *);
Node aten_per_dim(Build *, Node v, Node like, uint32_t dim); /* v[C] along one dim of `like` */
Node aten_squeeze_mask(Build *, Node x, uint32_t dims);      /* remove these dims of extent 1 */
Node aten_flatten(Build *, Node x, uint32_t first, uint32_t last);
/* x clamped to scalar bounds (ATTR_none: none) in dtype d, to which x is converted. What an integer
 * dtype lacks on the harmless side bounds nothing; on the other side it is an error. */
Node aten_clamp(Build *, Node x, DType d, const Attr *low, const Attr *high);
/* Negative bounds count from the end; INT64_MAX is the end. */
Node aten_slice(Build *, Node x, uint32_t dim, int64_t start, int64_t end);
/* x times a Python scalar, which takes x's dtype, unless it is 1 */
Node aten_scaled(Build *, Node x, Node n, const char *name);

Node aten_add(Build *, Node, Node);
Node aten_mul(Build *, Node, Node); /* and of bools */

/* Indices as i64; b_error where they are fractions. */
Node aten_index(Build *, Node);
/* x[..., index[...], ...] along one dim: index [I...] of i64; result has I in the place of dim. */
Node aten_take_dim(Build *, Node x, uint32_t dim, Node index, const char *mode);
Node b_gather(Build *, Node x, Node index, uint32_t batch, const uint32_t *axes, uint32_t naxes,
	      const char *mode);
Node b_scatter(Build *, Node x, Node index, Node update, uint32_t batch, const uint32_t *axes,
	       uint32_t naxes, const char *combine);
/* x with the elements under a mask, which covers dims first, first + 1, ..., set to (or increased
 * by) the values: one for all, or one row for each true element in order. */
Node aten_mask_put(Build *, Node x, Node mask, uint32_t first, Node values, bool accumulate);
/* The same, of a mode: b_scatter's is "check". */
Node b_scatter_as(Build *, Node x, Node index, Node update, uint32_t batch, const uint32_t *axes, uint32_t naxes, const char *combine,
	          const char *mode);
/* A constant vector of i64. */
Node aten_const_ints(Build *, const int64_t *v, int64_t n);
/* aten.gather: index has x's rank, elements along dim. Negative indices are errors. */
Node aten_gather_dim(Build *, Node x, uint32_t dim, Node index);
Node b_window(Build *, Node x, uint32_t dim, int64_t size, int64_t stride, int64_t dilation,
	      int64_t low, Sym count);
Node b_arg_reduce(Build *, bool max, Node x, uint32_t dim);
Node b_sort(Build *, Node x, uint32_t dim, bool descending, bool stable); /* tuple */
/* the first of these, ties in order */
Node b_sort_first(Build *, Node x, uint32_t dim, bool descending, Sym first);

/* ---- reductions and what is built on them ---- */

Node aten_sum(Build *, Node x, uint32_t dims, bool keep);
Node aten_sum_operand(Build *, Node); /* sums of bool and ints are i64 */
Node aten_mean(Build *, Node x, uint32_t dims, bool keep); /* floats; accumulates wide */
Sym aten_count(const Build *, Node x, uint32_t dims);
/* Variance over dims; *mean (may be NULL) is kept-dims. Result keeps dims. x is wide. */
Node aten_var(Build *, Node x, uint32_t dims, double correction, Node *mean);
/* About that mean, which keeps dims. */
Node aten_var_about(Build *, Node x, Node mean, uint32_t dims, double correction);
/* x, such that its mean is what ATen has beside a variance, which is updated element by element:
 * once infinite, it is NaN after the next one. So what is infinite is NaN unless it is the last one
 * of those that dims combine. */
Node aten_lose_infinite(Build *, Node x, uint32_t dims);
/* (sum |x|^p)^(1/p) with ATen's special orders 0, 1, 2, inf, -inf. */
Node aten_vector_norm(Build *, Node x, double p, uint32_t dims, bool keep);
/* The norm of x - y + eps over the last dim; integers are subtracted as such, so they wrap. */
Node aten_row_distance(Build *, Node x, Node y, double p, double eps, bool keep);
/* x[N, C, *space] as [N, groups, C / groups, *space]; the last two dimensions are one where the
 * rank has no room. What is merged has one order in memory, so the channels of images stay apart
 * from their space. */
Node aten_grouped(Build *, Node x, int64_t groups);
uint32_t aten_within_groups(const Build *, Node grouped);    /* the dimensions that are not over
                                                                groups */
Node aten_per_group(Build *, Node v, Node grouped);          /* v[N, groups] beside that */
/* The dims of `input` that normalized_shape names; 0 after b_error. */
uint32_t aten_normalised_dims(Build *, Node n);
Node aten_softmax(Build *, Node x, uint32_t dim);
Node aten_log_softmax(Build *, Node x, uint32_t dim);
/* x[N, C, *in] between its pixels, at places [N, *out] along each of n dims; 0 outside: [N, C,
 * *out]. */
Node aten_sample_linear(Build *, Node x, const Node *at, uint32_t n);
Node aten_reduce_loss(Build *, Node n, Node x); /* reduction: 0 none, 1 mean, 2 sum */
Node aten_linear(Build *, Node x, Node w, Node bias);
/* a norm of order p, not 0 or 1; in the derivative 0 at 0 */
Node aten_length(Build *, Node x, double p, uint32_t dims, bool keep);
Node aten_extreme(Build *, Node x, bool max); /* of all elements; those that are equal share the
                                                 cotangent */
Node aten_hinge(Build *, Node x); /* max(x, 0), in the derivative 0 at 0 */
/* g[..., *out] added up at the places of x that index[..., *out] names, counted over the last nd
 * dims: the cotangent of x where it was pooled. */
Node aten_pool_backward(Build *, Node x, Node index, Node g, uint32_t nd);
Node aten_without_tangent(Build *, Node x); /* x, whose tangents are passed over, as those of class
                                               weights are in PyTorch */

/* ---- rules for cotangents (.adjoint), aten/rule.c ---- */

/* Result 0 are the elements along dim that result 1 names. */
bool aten_adjoint_picked(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* The result is an element of the operand: all that are equal to it share the cotangent. */
bool aten_adjoint_shared(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool aten_adjoint_clamp(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool aten_adjoint_clamp_tensor(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Variance or deviation, and the mean as result 1 if there is one. */
bool aten_adjoint_var(Build *, Node n, const Node *ct, const bool *want, Node *g);
bool aten_adjoint_std(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* of these and of their means */
Node aten_batch_moments(Build *, Node n, const Node *in, const bool *batched, Sym size);
bool aten_adjoint_logsumexp(Build *, Node n, const Node *ct, const bool *want, Node *g);

#endif
