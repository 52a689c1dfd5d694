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

/* Computes the cotangents of reduce of kind "sum", "prod", "max" or "min" (.adjoint); another
 * kind is an error. Elements that are equal to the extremum share the cotangent. Returns false
 * after errors. */
bool adjoint_reduce(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Computes the tangents of reduce of kind "max" or "min" (.tangent). Returns false after errors. */
bool tangent_extremum(Build *, Node n, const Node *t, Node *ty);
/* Computes the cotangents of cumulative, of every kind that b_cumulative names (.adjoint). For
 * "max" and "min" the latest of equal elements gets the cotangent. Returns false after errors. */
bool adjoint_cumulative(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Computes the tangents of cumulative of kind "logaddexp" (.tangent). Returns false after
 * errors. */
bool tangent_cumulative(Build *, Node n, const Node *t, Node *ty);
/* Whether the attribute `kind` of a reduce or cumulative is "sum". */
bool is_sum(const Graph *, Node);
/* Whether the attribute `kind` of a reduce is "max" or "min". */
bool is_extremum(const Graph *, Node);
/* Whether the attribute `kind` of a reduce or cumulative is "logaddexp". */
bool is_logaddexp(const Graph *, Node);
/* Computes the parts of reduce of kind "sum", and of kind "prod" over dimensions with constant
 * extents of at most 64 (.parts). Returns false for others: their parts are not known. */
bool parts_reduce(Build *, Node n, const Parts *in, Parts *out);

/* Returns the cotangent of x from the cotangent ct of b_cumulative(b, "prod", x, dim, reverse);
 * exact also if elements are zero. Its dtype is the one of arithmetic: f32 if x is f16, bf16 or
 * f8. */
Node b_cumprod_backward(Build *, Node ct, Node x, uint32_t dim, bool reverse);

#endif
