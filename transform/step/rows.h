/* Private to transform/step: parameters of which a step reads few rows, such as tables of
 * embeddings. Their gradients are sums by row; only these rows are updated. */
#ifndef WEFT_TRANSFORM_STEP_ROWS_H
#define WEFT_TRANSFORM_STEP_ROWS_H

#include "ir/build/build.h"

/* The rows of a step; at.i == 0: it updates all rows. */
typedef struct {
	Node at; /* i64[N], sorted; some several times */
	Node to; /* the same, each once: behind the last row where it was there before */
} StepRows;

/* Whether the gradient is 0 but for rows that gathers of a parameter read. If so, sets *rows, and
 * *sum to the sums of gradients of rows `to`, [N, ...]. */
bool rows_find(Build *, Node gradient, StepRows *rows, Node *sum);
/* Returns these rows of a parameter or its state. */
Node rows_take(Build *, const StepRows *, Node x);
/* Returns x with new values of these rows. */
Node rows_put(Build *, const StepRows *, Node x, Node value);

#endif
