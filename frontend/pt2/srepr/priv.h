/* Private to frontend/pt2/srepr: values of the expressions of torch.export, and the arithmetic
 * on them. Functions that return bool set *out to the result, or return false after expr_fail: an
 * operand of another kind, or arithmetic that is not supported. */
#ifndef WEFT_FRONTEND_PT2_SREPR_PRIV_H
#define WEFT_FRONTEND_PT2_SREPR_PRIV_H

#include "base/array.h"
#include "frontend/pt2/srepr/srepr.h"

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

/* Returns the value of an integer expression of sizes: a NUM. */
Val val_num(Sym);
/* Returns the value of a constant double: a NUM if the double is a short binary fraction, else a
 * REAL. */
Val val_double(Parser *, double);
/* Returns the condition that always has this truth: a COND. */
Val val_fixed(Parser *, bool truth);
/* Checks that a value is an integer, no fraction. Returns false after expr_fail. */
bool val_is_int(Parser *, const Val *);

/* Arithmetic, as Python and SymPy compute it. Each function sets *out and returns true, or returns
 * false after expr_fail: an operand of another kind, or arithmetic that is not supported. Operands
 * are numbers (NUM and REAL), if nothing else is said. Where b must not be 0, that becomes one of
 * Parser.need. */

/* Sets *out to a + b. Returns false after expr_fail. */
bool val_add(Parser *, Val a, Val b, Val *out);
/* Sets *out to a - b. Returns false after expr_fail. */
bool val_sub(Parser *, Val a, Val b, Val *out);
/* Sets *out to a * b. Returns false after expr_fail. */
bool val_mul(Parser *, Val a, Val b, Val *out);
/* Sets *out to -a. Returns false after expr_fail. */
bool val_neg(Parser *, Val a, Val *out);
/* Sets *out to a / b, Python's division. Of two exact numbers the result is a NUM that is `rounded`
 * unless it is an integer. If an operand is a double (REAL, or a rounded fraction that no double
 * holds), the result is a REAL. Either way b != 0 is added to Parser.need, unless it is certain.
 * Returns false after expr_fail: also if b is provably 0. */
bool val_div(Parser *, Val a, Val b, Val *out);
/* Does as val_div, for SymPy's Rational: a NUM is not `rounded`. Returns false after expr_fail. */
bool val_rational(Parser *, Val a, Val b, Val *out);
/* Sets *out to a ** b. b: a small constant integer, 1/2, or (if a is a constant >= 2) an integer >=
 * 0. Returns false after expr_fail. */
bool val_pow(Parser *, Val a, Val b, Val *out);
/* Sets *out to the square root of a, a REAL. Returns false after expr_fail. */
bool val_sqrt(Parser *, Val a, Val *out);
/* Sets *out to floor(a / b) of integers, Python's //. b must not be 0. Returns false after
 * expr_fail. */
bool val_floordiv(Parser *, Val a, Val b, Val *out);
/* Sets *out to ceil(a / b) of integers. b must not be 0. Returns false after expr_fail. */
bool val_ceildiv(Parser *, Val a, Val b, Val *out);
/* Sets *out to a - b * floor(a / b) of integers, Python's %. b must not be 0. Returns false after
 * expr_fail. */
bool val_mod(Parser *, Val a, Val b, Val *out);
/* Sets *out to the lesser of two integers. Returns false after expr_fail. */
bool val_min(Parser *, Val a, Val b, Val *out);
/* Sets *out to the greater of two integers. Returns false after expr_fail. */
bool val_max(Parser *, Val a, Val b, Val *out);
/* Sets *out to |a| of an integer. Returns false after expr_fail. */
bool val_abs(Parser *, Val a, Val *out);
/* Sets *out to a << b of integers; b is a constant from 0 to 62. Returns false after expr_fail. */
bool val_shift_left(Parser *, Val a, Val b, Val *out);
/* Sets *out to a >> b of integers; b is a constant from 0 to 62. Returns false after expr_fail. */
bool val_shift_right(Parser *, Val a, Val b, Val *out);
/* Sets *out to a & b of integers, of which one is a constant below 2^32; or to `a and b` of
 * conditions. Returns false after expr_fail. */
bool val_bit_and(Parser *, Val a, Val b, Val *out);
/* Sets *out to the greatest integer <= a. Returns false after expr_fail. */
bool val_floor(Parser *, Val a, Val *out);
/* Sets *out to the least integer >= a. Returns false after expr_fail. */
bool val_ceil(Parser *, Val a, Val *out);
/* Sets *out to the integer part of a: rounded towards 0. Returns false after expr_fail. */
bool val_trunc(Parser *, Val a, Val *out);
/* Sets *out to the nearest integer to a, the even one of two. Returns false after expr_fail. */
bool val_round(Parser *, Val a, Val *out);
/* Sets *out to the condition a op b of numbers. op: "==", "!=", "<", "<=", ">" or ">=". Returns
 * false after expr_fail. */
bool val_compare(Parser *, const char *op, Val a, Val b, Val *out);
/* Sets *out to the condition `a and b` of two conditions. Returns false after expr_fail. */
bool val_and(Parser *, Val a, Val b, Val *out);
/* Sets *out to the condition `a or b` of two conditions. Returns false after expr_fail. */
bool val_or(Parser *, Val a, Val b, Val *out);
/* Sets *out to the condition `not a` of a condition. Returns false after expr_fail. */
bool val_not(Parser *, Val a, Val *out);
/* Sets *out to the integer `yes` if the condition holds, else to the integer `no`. Returns false
 * after expr_fail. */
bool val_choose(Parser *, Val cond, Val yes, Val no, Val *out);

#endif
