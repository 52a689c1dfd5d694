/* Private to frontend/pt2/srepr*.c: values of the expressions of torch.export, and the arithmetic
 * on them. Functions that return bool set *out to the result, or return false after expr_fail: an
 * operand of another kind, or arithmetic that is not supported. */
#ifndef WEFT_FRONTEND_PT2_SREPR_PRIV_H
#define WEFT_FRONTEND_PT2_SREPR_PRIV_H

#include "base/array.h"
#include "frontend/pt2/srepr.h"

/* A value: an integer or fraction of sizes (NUM), a double computed from sizes (REAL), a power
 * whose exponent depends on sizes, which can only be compared (POWER), or a condition (COND).
 *
 * The fraction of a NUM is exact. One that Python computes by a division is `rounded`: in Python it
 * is the nearest double. Rounding to an integer and comparing are done on the exact fraction, which
 * gives the same for sizes below 2^50; other arithmetic makes a REAL of it, as Python does. */
typedef struct Val {
	enum { VAL_NUM, VAL_REAL, VAL_POWER, VAL_COND } kind;
	Sym num, den; /* NUM: num / den, den no size: 1. REAL: num is a double (ir/sym/sym.h).
			 POWER: den ** num */
	bool rounded;
	const Cond *cond; /* COND: the conjunction of cond[ncond]; none: true */
	uint32_t ncond;
} Val;

typedef struct {
	ExprEnv *env;
	const char *s;            /* the text that is left */
	uint32_t depth, products; /* counts that bound the work for one text */
	ARRAY(Cond) need;         /* conditions: divisors are not zero */
} Parser;

/* Sets env->error to the reason and the place in the text, unless an earlier one is set. Returns
 * false. */
bool expr_fail(Parser *, const char *why);

/* The value of an integer; of a constant double; of a constant condition. */
Val val_num(Sym);
Val val_double(Parser *, double);
Val val_fixed(Parser *, bool truth);
/* Checks that a value is an integer, no fraction. */
bool val_is_int(Parser *, const Val *);

/* a + b, a - b, ... of numbers, as Python and SymPy compute them. */
bool val_add(Parser *, Val, Val, Val *out);
bool val_sub(Parser *, Val, Val, Val *out);
bool val_mul(Parser *, Val, Val, Val *out);
bool val_neg(Parser *, Val, Val *out);
bool val_div(Parser *, Val, Val, Val *out);      /* rounded, as Python's / */
bool val_rational(Parser *, Val, Val, Val *out); /* exact, as SymPy's Rational */
/* a ** b. b: a small constant integer, 1/2, or (if a is a constant >= 2) an integer >= 0. */
bool val_pow(Parser *, Val a, Val b, Val *out);
bool val_sqrt(Parser *, Val, Val *out);
/* Of integers: floor(a / b), ceil(a / b), and a - b * floor(a / b), as Python's // and %; and a <<
 * b and a >> b. */
bool val_floordiv(Parser *, Val, Val, Val *out);
bool val_ceildiv(Parser *, Val, Val, Val *out);
bool val_mod(Parser *, Val, Val, Val *out);
bool val_shift_left(Parser *, Val, Val, Val *out);
bool val_shift_right(Parser *, Val, Val, Val *out);
/* Of integers: the lesser, the greater, and |a|. */
bool val_min(Parser *, Val, Val, Val *out);
bool val_max(Parser *, Val, Val, Val *out);
bool val_abs(Parser *, Val, Val *out);
/* a & b of integers, of which one is a constant below 2^32; or of conditions. */
bool val_bit_and(Parser *, Val, Val, Val *out);
/* A number rounded to an integer. */
bool val_floor(Parser *, Val, Val *out);
bool val_ceil(Parser *, Val, Val *out);
bool val_trunc(Parser *, Val, Val *out);
bool val_round(Parser *, Val, Val *out); /* to nearest, ties to even */
/* The condition a op b of numbers. op: "==", "!=", "<", "<=", ">" or ">=". */
bool val_compare(Parser *, const char *op, Val, Val, Val *out);
/* Of conditions. */
bool val_and(Parser *, Val, Val, Val *out);
bool val_or(Parser *, Val, Val, Val *out);
bool val_not(Parser *, Val, Val *out);
/* The integer `yes` if cond holds, else the integer `no`. */
bool val_choose(Parser *, Val cond, Val yes, Val no, Val *out);

#endif
