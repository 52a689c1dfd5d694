/* Rules of batches (.batch, ir/op/op.h), and functions to write them. n is a node, of one member;
 * b is where the node for the whole batch is added (ir/build/build.h). A batched operand has the
 * batch as first dimension, so its other dimensions have numbers greater by one. An attribute name
 * that n's schema lacks is an internal error. A function takes no node for an operand x, and then
 * returns no node. */
#ifndef WEFT_OPS_RULES_BATCH_H
#define WEFT_OPS_RULES_BATCH_H

#include "ops/rules/rules.h"

/* Returns a copy of n's attributes in the scratch arena, one for each argument of its schema. The
 * next three functions change attributes in such a copy. */
Attr *batch_attrs(Build *b, Node n);
/* Adds 1 to a dimension in attr[], a copy of n's attributes (batch_attrs): to the int attribute
 * of that name, or to each dimension of an int[] attribute. Dimensions are not negative. An
 * absent attribute becomes the empty list. */
void batch_next(Build *b, Node n, Attr *attr, const char *name);
/* Adds the element `first` in front of the int[] attribute of that name in attr[], a copy of n's
 * attributes (batch_attrs); an absent one counts as empty. */
void batch_first(Build *b, Node n, Attr *attr, const char *name, Sym first);
/* Does as batch_first, with a constant. */
void batch_first_int(Build *b, Node n, Attr *attr, const char *name, int64_t first);
/* Returns a call of n's operator with the operands in[], as many as n has, and the attributes
 * attr[], one for each argument of the schema. Adds the call by b_node, so a composite without
 * .infer may be expanded. Returns no node after an error. */
Node batch_again(Build *b, Node n, const Node *in, const Attr *attr);

/* Returns the type with the extent `size` in front; of a tuple type, the tuple of its element types
 * so changed. A rank that would exceed MAX_RANK is an internal error. */
TypeId batch_type(Ir *, TypeId, Sym size);
/* Returns x with the batch dimension: x itself if batched, else x repeated `size` times along a new
 * first dimension. */
Node batch_wide(Build *b, Node x, bool batched, Sym size);
/* Returns batch_wide of every operand in[k] of n; the array is in the scratch arena. */
Node *batch_all_wide(Build *b, Node n, const Node *in, const bool *batched, Sym size);
/* Returns x with its first dimension moved to position `to`. The others keep their order. */
Node batch_to(Build *b, Node x, uint32_t to);
/* Returns x with its dimension `from` moved to the front. The others keep their order. */
Node batch_from(Build *b, Node x, uint32_t from);
/* Returns x with its dimension k >= 1 merged into dimension k - 1. */
Node batch_merge(Build *b, Node x, uint32_t k);
/* Returns x with its dimension k split into the dimensions k and k + 1, of the extents `first` and
 * `second`, whose product is the extent. */
Node batch_split(Build *b, Node x, uint32_t k, Sym first, Sym second);

/* Rules (.batch). in[k]: operand k, with the batch in front if batched[k]; no node for an optional
 * operand that n has not. size: the extent of the batch. Each returns n's result, a tuple if n is
 * one, with the batch dimension in front; no node after an error. */

/* Executes n for one member of the batch after the other, by a scan. The .batch of any operator. */
Node batch_by_scan(Build *b, Node n, const Node *in, const bool *batched, Sym size);
/* Adds n's operator on all operands with the batch (batch_wide), and "dim" + 1. The .batch of
 * operators that work along the dimension of the attribute "dim", which is not negative. */
Node batch_dim(Build *b, Node n, const Node *in, const bool *batched, Sym size);
/* Adds n's operator on all operands with the batch (batch_wide), and 1 added to every element of
 * "dims". The .batch of operators that work along each dimension of the attribute "dims", none
 * of them negative. */
Node batch_dims(Build *b, Node n, const Node *in, const bool *batched, Sym size);
/* Returns a call of n's operator, which is not expanded. Operands without a batch stay as they
 * are. The .batch of element-wise composites: operands broadcast, or there is one operand, which
 * may have any number of leading dimensions. */
Node batch_element_wise(Build *, Node n, const Node *in, const bool *batched, Sym size);
/* Returns a call of n's operator, which is not expanded; of an operand without dimensions as
 * batch_by_scan. The .batch of composites of one operand that work along its dimension "dim",
 * which may be negative. */
Node batch_along(Build *, Node n, const Node *in, const bool *batched, Sym size);
/* Calls n's operator, which is not expanded, on the operand with batch and first dimension
 * merged, and splits them in the results. The .batch of composites of one operand that treat
 * each index of its first dimension alone. */
Node batch_members(Build *, Node n, const Node *in, const bool *batched, Sym size);

#endif
