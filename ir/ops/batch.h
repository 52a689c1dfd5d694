/* Functions for rules of batches (.batch, ir/ops/op.h). A batched operand has the batch as first
 * dimension, so its other dimensions have numbers greater by one. */
#ifndef WEFT_IR_OPS_BATCH_H
#define WEFT_IR_OPS_BATCH_H

#include "ir/ops/op.h"

/* A copy of n's attributes, one for each argument of its schema, which the next functions
 * change. */
Attr *batch_attrs(Build *b, Node n);
/* Adds 1 to the dimension of that name, or to each of a list. */
void batch_next(Build *b, Node n, Attr *attr, const char *name);
/* Adds an element in front of the list of that name. */
void batch_first(Build *b, Node n, Attr *attr, const char *name, Sym first);
void batch_first_int(Build *b, Node n, Attr *attr, const char *name, int64_t first);
/* n with other operands and attributes. */
Node batch_again(Build *b, Node n, const Node *in, const Attr *attr);

/* The type with the batch dimension; of a tuple, each of its types. */
TypeId batch_type(Ir *, TypeId, Sym size);
/* x with the batch dimension; repeats x if it has none. */
Node batch_wide(Build *b, Node x, bool batched, Sym size);
/* The same for every operand. */
Node *batch_all_wide(Build *b, Node n, const Node *in, const bool *batched, Sym size);
/* batch_to moves the first dimension to position `to`; batch_from moves it back. */
Node batch_to(Build *b, Node x, uint32_t to);
Node batch_from(Build *b, Node x, uint32_t from);
/* batch_merge merges dimension k into the one before; batch_split splits dimension k in two. */
Node batch_merge(Build *b, Node x, uint32_t k);
Node batch_split(Build *b, Node x, uint32_t k, Sym first, Sym second);

/* Executes n for one member of the batch after the other, which is always possible. */
Node batch_by_scan(Build *b, Node n, const Node *in, const bool *batched, Sym size);

/* Rules: repeat each operand without a batch, and add 1 to n's attribute "dim", or to each of
 * "dims". */
Node batch_dim(Build *b, Node n, const Node *in, const bool *batched, Sym size);
Node batch_dims(Build *b, Node n, const Node *in, const bool *batched, Sym size);
/* Rules of composites that are batched as a whole; the result has n's type with the batch.
 * batch_element_wise: broadcast operands, or one operand that may have more leading dimensions.
 * batch_along: one operand, along the dimension `dim`. batch_members: an operand whose first
 * dimension counts members. */
Node batch_element_wise(Build *, Node n, const Node *in, const bool *batched, Sym size);
Node batch_along(Build *, Node n, const Node *in, const bool *batched, Sym size);
Node batch_members(Build *, Node n, const Node *in, const bool *batched, Sym size);

#endif
