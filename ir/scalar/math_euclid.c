/* Greatest common divisors by Euclid's remainders. A remainder by 0 is the dividend, so once 0 is
 * reached remainders alternate between 0 and the divisor: more steps than are needed change
 * nothing. Numbers of 64 bits need 92 at most; each function takes sixteen, and calls the next
 * where some lane has not ended. */
#include "ir/scalar/math_priv.h"

#define R(n, dividend, divisor) "r" n " = rem(r" dividend ", r" divisor "); "
#define SIXTEEN                                                                                    \
	"r0 = a; r1 = b; " R("2", "0", "1") R("3", "1", "2") R("4", "2", "3") R("5", "3", "4")     \
		R("6", "4", "5") R("7", "5", "6") R("8", "6", "7") R("9", "7", "8")                \
			R("10", "8", "9") R("11", "9", "10") R("12", "10", "11")                   \
				R("13", "11", "12") R("14", "12", "13") R("15", "13", "14")        \
					R("16", "14", "15") R("17", "15", "16")
#define OR_ELSE(next)                                                                              \
	SIXTEEN "ended = or(eq(r16, 0), eq(r17, 0)); select(ended, or(r16, r17), " next            \
		"(r16, r17))"

const LibDef lib_euclid[] = {
	{"gcd_steps6", LIB_INT, "a, b", 0, SIXTEEN "or(r16, r17)"},
	{"gcd_steps5", LIB_INT, "a, b", 0, OR_ELSE("gcd_steps6")},
	{"gcd_steps4", LIB_INT, "a, b", 0, OR_ELSE("gcd_steps5")},
	{"gcd_steps3", LIB_INT, "a, b", 0, OR_ELSE("gcd_steps4")},
	{"gcd_steps2", LIB_INT, "a, b", 0, OR_ELSE("gcd_steps3")},
	{"gcd_steps", LIB_INT, "a, b", 0, OR_ELSE("gcd_steps2")},
	/* PyTorch's order, which decides the sign where the smallest number has no absolute
	 * value. */
	{"gcd", LIB_SINT, "a, b", 0, "gcd_steps(abs(b), abs(a))"},
	{"gcd", LIB_UINT, "a, b", 0, "gcd_steps(b, a)"},
	{"lcm_of", LIB_INT, "a, b, g", EXPAND, "select(eq(g, 0), 0, floordiv(a, g) * b)"},
	{"lcm", LIB_SINT, "a, b", 0, "abs(lcm_of(a, b, gcd(a, b)))"},
	{"lcm", LIB_UINT, "a, b", 0, "lcm_of(a, b, gcd(a, b))"},
	{NULL, 0, NULL, 0, NULL},
};
