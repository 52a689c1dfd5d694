/* Values of the expressions of torch.export, and the arithmetic on them. Functions that return bool
 * give false after expr_fail. */
#ifndef WEFT_FRONTEND_PT2_SREPR_PRIV_H
#define WEFT_FRONTEND_PT2_SREPR_PRIV_H

#include "base/array.h"
#include "frontend/pt2/srepr.h"

/* A fraction is exact. One that Python computes by a division is `rounded`: its value there is the
 * nearest double. Rounding it (floor, ceil, ...) and comparing it are done on the exact fraction,
 * which gives the same for sizes below 2^50; any further arithmetic is done in doubles, as Python
 * does it. */
typedef struct Val {
	enum { VAL_NUM, VAL_REAL, VAL_POWER, VAL_COND } kind;
	Sym num, den; /* NUM: den is none for 1; REAL: num is a double; POWER: den ** num */
	bool rounded;
	const Cond *cond; /* COND: all of them hold */
	uint32_t ncond;
} Val;

typedef struct {
	ExprEnv *env;
	const char *s;
	uint32_t depth, products;
	ARRAY(Cond) need; /* divisors that must not be zero */
} Parser;

bool expr_fail(Parser *, const char *why);

Val val_num(Sym);
Val val_double(Parser *, double);
Val val_fixed(Parser *, bool truth);
bool val_is_int(Parser *, const Val *);
bool val_add(Parser *, Val, Val, Val *out);
bool val_sub(Parser *, Val, Val, Val *out);
bool val_mul(Parser *, Val, Val, Val *out);
bool val_neg(Parser *, Val, Val *out);
bool val_div(Parser *, Val, Val, Val *out);      /* rounded, as Python's / */
bool val_rational(Parser *, Val, Val, Val *out); /* exact, as SymPy's Rational */
bool val_pow(Parser *, Val, Val, Val *out);
bool val_sqrt(Parser *, Val, Val *out);
bool val_floordiv(Parser *, Val, Val, Val *out);
bool val_ceildiv(Parser *, Val, Val, Val *out);
bool val_mod(Parser *, Val, Val, Val *out);
bool val_min(Parser *, Val, Val, Val *out);
bool val_max(Parser *, Val, Val, Val *out);
bool val_abs(Parser *, Val, Val *out);
bool val_shift_left(Parser *, Val, Val, Val *out);
bool val_shift_right(Parser *, Val, Val, Val *out);
bool val_bit_and(Parser *, Val, Val, Val *out); /* of integers or of conditions */
bool val_floor(Parser *, Val, Val *out);
bool val_ceil(Parser *, Val, Val *out);
bool val_trunc(Parser *, Val, Val *out);
bool val_round(Parser *, Val, Val *out); /* to nearest, ties to even */
/* op: "==", "!=", "<", "<=", ">" or ">=". */
bool val_compare(Parser *, const char *op, Val, Val, Val *out);
bool val_and(Parser *, Val, Val, Val *out);
bool val_or(Parser *, Val, Val, Val *out);
bool val_not(Parser *, Val, Val *out);
/* yes if cond else no. */
bool val_choose(Parser *, Val cond, Val yes, Val no, Val *out);

#endif
