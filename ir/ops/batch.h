/* What rules for batches (.batch, ir/ops/op.h) are made of. A batched operand has the batch as its
 * first dimension, so what counts dimensions counts one more. */
#ifndef WEFT_IR_OPS_BATCH_H
#define WEFT_IR_OPS_BATCH_H

#include "ir/ops/op.h"

/* n's attributes, one for each argument of its schema, to be changed by these. */
Attr *batch_attrs(Build *b, Node n);
/* The dimension of that name, or each of a list of them, moves one on. */
void batch_next(Build *b, Node n, Attr *attr, const char *name);
/* A list of that name gets another first element. */
void batch_first(Build *b, Node n, Attr *attr, const char *name, Sym first);
void batch_first_int(Build *b, Node n, Attr *attr, const char *name, int64_t first);
/* n of other operands and attributes. */
Node batch_again(Build *b, Node n, const Node *in, const Attr *attr);

/* The type, or each of a tuple, with the batch. */
TypeId batch_type(Ir *, TypeId, Sym size);
/* x with the batch; one that has none is repeated. */
Node batch_wide(Build *b, Node x, bool batched, Sym size);
/* Every operand. */
Node *batch_all_wide(Build *b, Node n, const Node *in, const bool *batched, Sym size);
/* The first dimension becomes dimension `to`, and back. */
Node batch_to(Build *b, Node x, uint32_t to);
Node batch_from(Build *b, Node x, uint32_t from);
/* Dimension k and the one before become one; dimension k becomes two. */
Node batch_merge(Build *b, Node x, uint32_t k);
Node batch_split(Build *b, Node x, uint32_t k, Sym first, Sym second);

/* n for one member of the batch after the other: what may always be done. */
Node batch_by_scan(Build *b, Node n, const Node *in, const bool *batched, Sym size);

/* Rules. Each operand that has no batch is repeated, and n's attribute "dim", or each of "dims",
 * moves one on. */
Node batch_dim(Build *b, Node n, const Node *in, const bool *batched, Sym size);
Node batch_dims(Build *b, Node n, const Node *in, const bool *batched, Sym size);
/* Composites that stay whole, with the type of n and the batch: of operands that are broadcast, or
 * of one that may have more dimensions in front; of one operand along one dimension, the argument
 * dim; of one whose first dimension counts members. */
Node batch_element_wise(Build *, Node n, const Node *in, const bool *batched, Sym size);
Node batch_along(Build *, Node n, const Node *in, const bool *batched, Sym size);
Node batch_members(Build *, Node n, const Node *in, const bool *batched, Sym size);

#endif
