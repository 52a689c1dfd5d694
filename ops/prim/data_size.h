/* Private to ops: results whose size depends on data (aten.nonzero). The count becomes the value
 * of a symbol (b_to_size, ir/build/build.h); later nodes treat it like any other symbolic size. b
 * and n: as in ops/rules/common.h. */
#ifndef WEFT_OPS_PRIM_DATA_SIZE_H
#define WEFT_OPS_PRIM_DATA_SIZE_H

#include "ops/rules/common.h"

/* Returns the extent of dimension dim of result k of n: the one of the type that the model file
 * gives n, else a new symbol (data_size_new). */
Sym data_size(Build *, Node n, uint32_t k, uint32_t dim);
/* Returns a new SYMVAR_UNBACKED symbol, in 0..SYM_INF, in the scope of b's graph: a size that
 * depends on data. */
Sym data_size_new(Build *);
/* Whether the result of n has a size that depends on data: .has_effect (ir/op/op.h) of operators
 * with such results. n gives the size its value, so n stays even if nobody reads it. */
bool data_size_effect(const Graph *, Node);

/* The true elements of a mask in row-major order. Positions are row-major in the flat mask. */
typedef struct {
	Node place;  /* i64[size]: the position of each true element */
	Node before; /* i64[elements of the mask]: the number of true elements up to and including
			this position, minus 1 */
} TrueElements;

/* Returns all true elements of a bool mask. From here on `size` is their number: a symbol of
 * data_size(), or a size that their number must have, else the call ends with an error that names
 * `what`. Both nodes are none if mask is no node. */
TrueElements true_elements(Build *, Node mask, Sym size, const char *what);
/* Returns the first `size` true elements of a bool mask; `before` covers the whole mask. If the
 * mask has fewer, the remaining elements of place are `absent`. Checks nothing at run time. Both
 * nodes are none if mask is no node. */
TrueElements first_true_elements(Build *, Node mask, Sym size, int64_t absent);
/* Returns the indices along dimension k of row-major positions i64[...] in a tensor of that
 * shape. */
Node place_along(Build *, Node place, const Shape *, uint32_t k);

#endif
