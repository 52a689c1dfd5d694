/* How several values become one: for reductions, running reductions and scatters, in the graph and
 * below. One table (reduce.c) defines each way. */
#ifndef WEFT_IR_REDUCE_H
#define WEFT_IR_REDUCE_H

#include "ir/scalar/scalar.h"

typedef enum {
	REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_AND, REDUCE_OR, REDUCE_XOR,
	REDUCE_LOGADDEXP,
	REDUCE_SET        /* the last value */
} ReduceKind;         /* attributes have the name: "sum", "prod", ..., "xor", "logaddexp", "set";
                         those of scatters "add", "mul" */

/* The operators that may combine in a way. */
typedef enum {
	COMBINES_DIMS = 1,   /* reduce */
	COMBINES_PLACES = 2, /* arg_reduce */
	COMBINES_RUNS = 4,   /* cumulative */
	COMBINES_WRITES = 8  /* scatter */
} ReduceUse;

const char *reduce_name(ReduceKind);
const char *reduce_name_for(ReduceKind, ReduceUse); /* the name in attributes of such operators */
MUST_LOOK bool reduce_parse(const char *, ReduceKind *);
bool reduce_serves(ReduceKind, ReduceUse);
/* Whether values of that dtype can be combined so. */
bool reduce_takes(ReduceKind, DType);
/* The equivalent kind for values of that dtype: of bools, sums and maxima are "or", products and
 * minima "and". */
ReduceKind reduce_of(ReduceKind, DType);
/* The basic operation that combines two values; in min and max, NaN wins. SC_const: there is none
 * (LOGADDEXP, SET). */
ScOp reduce_op(ReduceKind);
/* Combines two values as the interpreter holds them. Integers wrap; d decides how they compare. */
double reduce_f64(ReduceKind, double a, double b);
int64_t reduce_i64(ReduceKind, DType d, int64_t a, int64_t b);
/* Whether each step rounds a float result; long chains then use a wider dtype. */
bool reduce_rounds(ReduceKind);
/* The identity, as scalar_eval holds values of that dtype; 0 for SET. */
ScVal reduce_identity(ReduceKind, DType);

#endif
