/* Rules of batches (.batch, ir/ops/op.h), and functions to write them. n is a node, of one member;
 * b is where the node for the whole batch is added (ir/graph/build.h). A batched operand has the
 * batch as first dimension, so its other dimensions have numbers greater by one. An attribute name
 * that n's schema lacks is an internal error. A function takes no node for an operand x, and then
 * returns no node. */
#ifndef WEFT_IR_OPS_BATCH_H
#define WEFT_IR_OPS_BATCH_H

#include "ir/ops/op.h"

/* A copy of n's attributes in the scratch arena, one for each argument of its schema. The next
 * three functions change attributes in such a copy. */
Attr *batch_attrs(Build *b, Node n);
/* Adds 1 to a dimension, the int attribute of that name, or to each dimension of an int[]
 * attribute. Dimensions are not negative. An absent attribute becomes the empty list. */
void batch_next(Build *b, Node n, Attr *attr, const char *name);
/* Adds an element in front of an int[] attribute; an absent one counts as empty. */
void batch_first(Build *b, Node n, Attr *attr, const char *name, Sym first);
/* batch_first with a constant. */
void batch_first_int(Build *b, Node n, Attr *attr, const char *name, int64_t first);
/* A call of n's operator with as many other operands, and other attributes, one for each argument
 * of the schema. Adds the call by b_node, so a composite without .infer may be expanded. Returns no
 * node after an error. */
Node batch_again(Build *b, Node n, const Node *in, const Attr *attr);

/* The type with the extent `size` in front; of a tuple, the tuple of each of its types so. A rank
 * that would exceed MAX_RANK is an internal error. */
TypeId batch_type(Ir *, TypeId, Sym size);
/* x with the batch dimension: x itself if batched, else x repeated `size` times along a new first
 * dimension. */
Node batch_wide(Build *b, Node x, bool batched, Sym size);
/* batch_wide for every operand of n; the array is in the scratch arena. */
Node *batch_all_wide(Build *b, Node n, const Node *in, const bool *batched, Sym size);
/* Moves the first dimension of x to position `to`. The others keep their order. */
Node batch_to(Build *b, Node x, uint32_t to);
/* Moves dimension `from` of x to the front. The others keep their order. */
Node batch_from(Build *b, Node x, uint32_t from);
/* Merges dimension k >= 1 of x into dimension k - 1. */
Node batch_merge(Build *b, Node x, uint32_t k);
/* Splits dimension k of x into the dimensions k and k + 1, of the extents `first` and `second`,
 * whose product is the extent. */
Node batch_split(Build *b, Node x, uint32_t k, Sym first, Sym second);

/* Rules (.batch). in[k]: operand k, with the batch in front if batched[k]; size: the extent of the
 * batch. The result, a tuple if n is one, has the batch dimension; no node after an error.
 *
 * For any operator: executes n for one member of the batch after the other. */
Node batch_by_scan(Build *b, Node n, const Node *in, const bool *batched, Sym size);
/* For operators that work along the dimension of the attribute "dim", which is not negative:
 * repeats operands without a batch, and adds 1 to the attribute. */
Node batch_dim(Build *b, Node n, const Node *in, const bool *batched, Sym size);
/* As batch_dim for operators that work along each dimension of the attribute "dims": adds 1 to
 * every element of the list. */
Node batch_dims(Build *b, Node n, const Node *in, const bool *batched, Sym size);
/* For composites: the result is a call of n's operator, which is not expanded, of n's type with the
 * batch.
 *
 * For element-wise operators: operands broadcast, or there is one operand, which may have any
 * number of leading dimensions. Operands without a batch stay as they are. */
Node batch_element_wise(Build *, Node n, const Node *in, const bool *batched, Sym size);
/* For operators of one operand that work along its dimension "dim", which may be negative. Of an
 * operand without dimensions: batch_by_scan. */
Node batch_along(Build *, Node n, const Node *in, const bool *batched, Sym size);
/* For operators of one operand that treat each index of its first dimension alone: batch and first
 * dimension are merged, and split in the results. */
Node batch_members(Build *, Node n, const Node *in, const bool *batched, Sym size);

#endif
