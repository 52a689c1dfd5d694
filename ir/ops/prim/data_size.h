/* Private to ir/ops: results whose size depends on data. A count becomes a symbol (OP_to_size);
 * what stands behind is ordinary code of symbolic sizes. */
#ifndef WEFT_IR_OPS_PRIM_DATA_SIZE_H
#define WEFT_IR_OPS_PRIM_DATA_SIZE_H

#include "ir/ops/common.h"

/* The extent of dimension dim of result k as the file says; a new symbol where no file does. */
Sym data_size(Build *, Node n, uint32_t k, uint32_t dim);
Sym data_size_new(Build *);
/* .has_effect: a node that gives such a size its value stays although nobody reads it. */
bool data_size_effect(const Graph *, Node);

/* The true elements of a mask, in row-major order. */
typedef struct {
	Node place;  /* i64[size]: where they stand in the flat mask, itself flat */
	Node before; /* i64[n]: of each element of it, how many true ones stand up to it, less
	                one */
} TrueElements;

/* All of size: data_size(), or what the count has to be. */
TrueElements true_elements(Build *, Node mask, Sym size, const char *what);
/* The same of the first `size` of them; where there are fewer, `absent` is the place of the
 * others. */
TrueElements first_true_elements(Build *, Node mask, Sym size, int64_t absent);
/* i64[size] row-major places in a tensor of that shape: the index along dimension k. */
Node place_along(Build *, Node place, const Shape *, uint32_t k);

#endif
