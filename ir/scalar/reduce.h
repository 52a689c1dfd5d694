/* The ways in which several values become one: of reductions, running reductions and scatters, in the graph and below.
 * One table says what each of them is. */
#ifndef WEFT_IR_REDUCE_H
#define WEFT_IR_REDUCE_H

#include "ir/scalar/scalar.h"

typedef enum {
	REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_AND, REDUCE_OR, REDUCE_XOR,
	REDUCE_LOGADDEXP, /* running only */
	REDUCE_SET        /* scatter only: the last one */
} ReduceKind;         /* stored in attributes by name: "sum", "prod", ..., "xor", "logaddexp", "set" */

const char *reduce_name(ReduceKind);
bool reduce_parse(const char *, ReduceKind *);
/* The same for values of that dtype: of bools, sums and maxima are "or", products and minima "and". */
ReduceKind reduce_of(ReduceKind, DType);
/* The operation that combines two values, with NaN winning in min and max; SC_const: none does, the kind is LOGADDEXP
 * or SET. */
ScOp reduce_op(ReduceKind);
/* What changes nothing, as scalar_eval gives values of that dtype (f, or i); 0 for SET. */
ScVal reduce_identity(ReduceKind, DType);

#endif
