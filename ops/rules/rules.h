/* What transforms, passes and other blocks ask of rules: derivatives, batches, complex parts, and
 * nodes that they are made of. b is a Build (ir/build/build.h); n is a node of b->g, before
 * b->before. */
#ifndef WEFT_OPS_RULES_RULES_H
#define WEFT_OPS_RULES_RULES_H

#include "ir/build/build.h"
#include "ir/op/op.h"

/* Does as op_expand, op_expand_node and op_complex (ir/op/op.h) say, which call this. */
Node ops_expand(Build *, Op, const Node *in, uint32_t nin, AttrId);
Node ops_expand_node(Build *, Node);
Node ops_complex(Build *, Node);

/* Adds the cotangents of n's operands. ct[r]: the cotangent of result r; no node means zero, and
 * one at least is a node. Sets g[k] for each operand k: to the cotangent, of operand k's type, if
 * want[k], where no node means zero; else to no node. Returns false after an error, also if no
 * derivative is known. */
bool op_vjp(Build *, Node n, const Node *ct, const bool *want, Node *g);
/* Adds the tangents of n's results. t[k]: the tangent of operand k; no node means zero. Sets ty[r]
 * of result r that is not zero to the tangent, of the result's type; the caller has set ty[] to no
 * nodes. node_has_jvp must hold.
 * Returns false after an error. */
bool op_jvp(Build *, Node n, const Node *t, Node *ty);
/* Returns zeros of x's type. x is a tensor. */
Node b_zeros_like(Build *, Node x);
/* Returns x + y, broadcast and promoted as by b_bin. If one of them is no node: the other one; no
 * node if both are. */
Node b_add(Build *, Node x, Node y);
/* Returns a call of n's operator with n's attributes and the operands in[], as many as n has, whose
 * types may differ from n's. The operator is no composite without .infer. Returns no node after an
 * error, and for an operator without a result, of which it adds no node. */
Node b_again(Build *, Node n, const Node *in);
/* Adds n for a batch of `size` members. in[k]: operand k, with the batch as new first dimension if
 * batched[k]; at least one is batched. Returns the result, a tuple if n is one; all results have
 * the batch dimension. Without a rule, a scan executes n for one member after the other. Returns no
 * node after errors. If n has no result, returns a node without results, or no node. */
Node op_batch(Build *, Node n, const Node *in, const bool *batched, Sym size);
/* Returns the sum of x over the dimensions that broadcasting `like` to x's shape repeats, of the
 * shape and dtype of `like`: the reverse of broadcasting. x that is no node is returned. */
Node b_sum_to(Build *, Node x, Node like);

/* ---- complex numbers ---- */

/* Returns the real part of a complex x, or the imaginary part. A real x is an error, which returns
 * no node; no node is returned for no node. */
Node b_part(Build *, Node x, bool imaginary);
/* Returns the complex tensor whose parts are two real tensors of one shape and dtype; no node if
 * one of them is no node: Node b_complex(Build *, Node re, Node im). */
#define b_complex(b, re, im) (b_operand(b, im), b_operand(b, re), b_complex_of_operands(b))
Node b_complex_of_operands(Build *);

/* ---- checks ---- */

/* Appends the message of an assert_zero: `{place}` becomes "(Batch element PLACE): ", or nothing
 * where place is NULL, and `{code}` becomes the text `code`. Returns the number of the latter. */
uint32_t assert_zero_message(Text *, const char *message, const char *place, const char *code);

/* Checks the texts of .expand, .vjp and .jvp, and of composites .deriv: names and calls are
 * known, numbers of arguments right. Returns NULL, or what is wrong: a static text. For the test
 * of the table. */
const char *op_expand_check(Op);

#endif
