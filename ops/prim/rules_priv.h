/* What rules of transforms for primitives share. */
#ifndef WEFT_OPS_PRIM_RULES_PRIV_H
#define WEFT_OPS_PRIM_RULES_PRIV_H

#include "ops/rules/parts.h"

/* Returns x with each update[..., i, ...] combined into x[..., index[..., i, ...], ...] along dim.
 * update and index (i64) have one shape, which agrees with x's but along dim; each index must be in
 * range, which nothing checks. combine: "set", "add", "mul", "max" or "min". unique: the indices
 * along dim are different. */
Node rule_scatter_along(Build *, Node x, Node index, Node update, uint32_t dim, const char *combine,
			bool unique);

/* Rules (ir/op/op.h has the contracts) of the primitives reduce and cumulative, in
 * reduce_rules.c. */

/* The .adjoint of reduce of kind "sum", "prod", "max" or "min"; another kind is an error. Elements
 * that are equal to the extremum share the cotangent. Returns false after errors. */
bool adjoint_reduce(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* The .tangent of reduce of kind "max" or "min". Returns false after errors. */
bool tangent_extremum(Build *, Node n, const Node *t, Node *ty);
/* The .adjoint of cumulative, of every kind that b_cumulative names. For "max" and "min" the latest
 * of equal elements gets the cotangent. Returns false after errors. */
bool adjoint_cumulative(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* The .tangent of cumulative of kind "logaddexp". Returns false after errors. */
bool tangent_cumulative(Build *, Node n, const Node *t, Node *ty);
/* Whether the attribute `kind` of a reduce or cumulative is "sum". */
bool is_sum(const Graph *, Node);
/* Whether the attribute `kind` of a reduce is "max" or "min". */
bool is_extremum(const Graph *, Node);
/* Whether the attribute `kind` of a reduce or cumulative is "logaddexp". */
bool is_logaddexp(const Graph *, Node);
/* The .parts of reduce of kind "sum", and of kind "prod" over dimensions with constant extents of
 * at most 64. Returns false for others: their parts are not known. */
bool parts_reduce(Build *, Node n, const Parts *in, Parts *out);

/* Returns the cotangent of x from the cotangent ct of b_cumulative(b, "prod", x, dim, reverse);
 * exact also if elements are zero. Its dtype is the one of arithmetic: f32 if x is f16, bf16 or
 * f8. */
Node b_cumprod_backward(Build *, Node ct, Node x, uint32_t dim, bool reverse);

#endif
