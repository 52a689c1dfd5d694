/* The ways in which several values become one: of reductions, running reductions and scatters, in
 * the graph and below. One table says what each of them is. */
#ifndef WEFT_IR_REDUCE_H
#define WEFT_IR_REDUCE_H

#include "ir/scalar/scalar.h"

typedef enum {
	REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_AND, REDUCE_OR, REDUCE_XOR,
	REDUCE_LOGADDEXP,
	REDUCE_SET        /* the last one */
} ReduceKind;         /* stored in attributes by name: "sum", "prod", ..., "xor", "logaddexp",
                         "set"; of scatters "add", "mul" */

/* What operators may combine in each way. */
typedef enum {
	COMBINES_DIMS = 1,   /* reduce */
	COMBINES_PLACES = 2, /* arg_reduce */
	COMBINES_RUNS = 4,   /* cumulative */
	COMBINES_WRITES = 8  /* scatter */
} ReduceUse;

const char *reduce_name(ReduceKind);
const char *reduce_name_for(ReduceKind, ReduceUse); /* in the attributes of such operators */
MUST_LOOK bool reduce_parse(const char *, ReduceKind *);
bool reduce_serves(ReduceKind, ReduceUse);
/* There is such a combination of values of that dtype. */
bool reduce_takes(ReduceKind, DType);
/* The same for values of that dtype: of bools, sums and maxima are "or", products and minima
 * "and". */
ReduceKind reduce_of(ReduceKind, DType);
/* The operation that combines two values, with NaN winning in min and max; SC_const: none does, the
 * kind is LOGADDEXP or SET. */
ScOp reduce_op(ReduceKind);
/* The same of two values as the interpreter holds them; integers wrap, d says how they compare. */
double reduce_f64(ReduceKind, double a, double b);
int64_t reduce_i64(ReduceKind, DType d, int64_t a, int64_t b);
/* Each step rounds a float result: long chains of such steps are computed in a wider dtype. */
bool reduce_rounds(ReduceKind);
/* What changes nothing, as scalar_eval gives values of that dtype (f, or i); 0 for SET. */
ScVal reduce_identity(ReduceKind, DType);

#endif
