/* How several values become one: for reductions, running reductions and scatters, in the graph and
 * below. One table (reduce.c) defines each kind. */
#ifndef WEFT_IR_REDUCE_H
#define WEFT_IR_REDUCE_H

#include "ir/scalar/scalar.h"

typedef enum {
	REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_AND, REDUCE_OR, REDUCE_XOR,
	REDUCE_LOGADDEXP,
	REDUCE_SET        /* the last value */
} ReduceKind;         /* attributes have the name: "sum", "prod", ..., "xor", "logaddexp", "set";
                         those of scatters "add", "mul" */

/* The operators that combine values. */
typedef enum {
	COMBINES_DIMS = 1,   /* reduce */
	COMBINES_PLACES = 2, /* arg_reduce */
	COMBINES_RUNS = 4,   /* cumulative */
	COMBINES_WRITES = 8  /* scatter */
} ReduceUse;

/* Returns the kind's name in attributes: "sum", "prod", ... */
const char *reduce_name(ReduceKind);
/* Returns the kind's name in attributes of an operator of that use: for COMBINES_WRITES "add" of
 * SUM and "mul" of PROD; else as reduce_name. */
const char *reduce_name_for(ReduceKind, ReduceUse);
/* Sets *kind to the kind that has the name, as reduce_name or reduce_name_for gives it. Returns
 * false, with *kind unchanged, if no kind has it. */
MUST_LOOK bool reduce_parse(const char *name, ReduceKind *kind);
/* Whether operators of that use (reduce, cumulative, ...) may combine by this kind. */
bool reduce_serves(ReduceKind, ReduceUse);
/* Whether values of that dtype can be combined by this kind. bool counts as an integer dtype. */
bool reduce_takes(ReduceKind, DType);
/* Returns the equivalent kind for values of that dtype: for bools OR instead of SUM and MAX, AND
 * instead of PROD and MIN; for other dtypes the kind itself. */
ReduceKind reduce_of(ReduceKind, DType);
/* Returns the basic operation that combines two values; in min and max, NaN wins. SC_const: there
 * is none (LOGADDEXP, SET). */
ScOp reduce_op(ReduceKind);
/* Returns a combined with b, where b comes later (SET: b), for the kinds for which reduce_takes a
 * float dtype. */
double reduce_f64(ReduceKind, double a, double b);
/* Returns a combined with b, where b comes later (SET: b), for kinds other than LOGADDEXP, and for
 * bools only the kinds that reduce_of returns. Integers wrap around 64 bits; d, the dtype of the
 * values, decides how they compare. */
int64_t reduce_i64(ReduceKind, DType d, int64_t a, int64_t b);
/* Whether the kind is SUM or PROD, which round at every step; long chains of floats then use a
 * wider dtype. */
bool reduce_rounds(ReduceKind);
/* Returns the value that changes no other value when combined with it (0 for SET; a sum of it and
 * -0.0 is 0.0), for a real dtype that reduce_takes. */
ScVal reduce_identity(ReduceKind, DType);

#endif
