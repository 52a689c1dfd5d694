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

/* The value of an integer. */
Val val_num(Sym);
/* The value of a constant double: exact if it is a short binary fraction, else a REAL. */
Val val_double(Parser *, double);
/* The condition that is always true, or false. */
Val val_fixed(Parser *, bool truth);
/* Checks that a value is an integer, no fraction. */
bool val_is_int(Parser *, const Val *);

/* Arithmetic of numbers (NUM and REAL), as Python and SymPy compute it. a + b. */
bool val_add(Parser *, Val a, Val b, Val *out);
/* a - b. */
bool val_sub(Parser *, Val a, Val b, Val *out);
/* a * b. */
bool val_mul(Parser *, Val a, Val b, Val *out);
/* -a. */
bool val_neg(Parser *, Val a, Val *out);
/* a / b as Python's division. Of two exact numbers, a NUM that is `rounded` unless it is an
 * integer. If an operand is a double (REAL, or a rounded fraction that no double holds), a REAL.
 * Either way b != 0 is added to Parser.need, unless it is certain; a b that is provably 0 fails. */
bool val_div(Parser *, Val a, Val b, Val *out);
/* a / b as SymPy's Rational: the same, but the NUM is exact. */
bool val_rational(Parser *, Val a, Val b, Val *out);
/* a ** b. b: a small constant integer, 1/2, or (if a is a constant >= 2) an integer >= 0. */
bool val_pow(Parser *, Val a, Val b, Val *out);
/* The square root of a, a REAL. */
bool val_sqrt(Parser *, Val a, Val *out);
/* floor(a / b) of integers, as Python's //. b must not be 0 (Parser.need). */
bool val_floordiv(Parser *, Val a, Val b, Val *out);
/* ceil(a / b) of integers. b must not be 0 (Parser.need). */
bool val_ceildiv(Parser *, Val a, Val b, Val *out);
/* a - b * floor(a / b) of integers, as Python's %. b must not be 0 (Parser.need). */
bool val_mod(Parser *, Val a, Val b, Val *out);
/* The lesser of two integers. */
bool val_min(Parser *, Val a, Val b, Val *out);
/* The greater of two integers. */
bool val_max(Parser *, Val a, Val b, Val *out);
/* |a| of an integer. */
bool val_abs(Parser *, Val a, Val *out);
/* a << b of integers; b is a constant from 0 to 62. */
bool val_shift_left(Parser *, Val a, Val b, Val *out);
/* a >> b of integers; b is a constant from 0 to 62. */
bool val_shift_right(Parser *, Val a, Val b, Val *out);
/* a & b: of integers, of which one is a constant below 2^32; or of conditions. */
bool val_bit_and(Parser *, Val a, Val b, Val *out);
/* The greatest integer <= a. */
bool val_floor(Parser *, Val a, Val *out);
/* The least integer >= a. */
bool val_ceil(Parser *, Val a, Val *out);
/* The integer part of a: rounded towards 0. */
bool val_trunc(Parser *, Val a, Val *out);
/* The nearest integer to a, the even one of two. */
bool val_round(Parser *, Val a, Val *out);
/* The condition a op b of numbers. op: "==", "!=", "<", "<=", ">" or ">=". */
bool val_compare(Parser *, const char *op, Val a, Val b, Val *out);
/* Conditions: a and b. */
bool val_and(Parser *, Val a, Val b, Val *out);
/* a or b. */
bool val_or(Parser *, Val a, Val b, Val *out);
/* not a. */
bool val_not(Parser *, Val a, Val *out);
/* The integer `yes` if cond holds, else the integer `no`. */
bool val_choose(Parser *, Val cond, Val yes, Val no, Val *out);

#endif
