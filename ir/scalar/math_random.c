/* Philox4x32-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): ten rounds
 * of two 32 by 32 bit multiplications each, from a counter of four words and a key of two. Here the
 * words of the counter are lo, lo >> 32, hi, hi >> 32, and lie in 64 bits each, so that a product
 * of two is one multiplication of lanes. */
#include "ir/scalar/math_priv.h"

/* Words a, b, c, d of round n become those of round m, the key k, l that of the next. */
#define WORD(x) "and(" x ", 0xffffffff)"
#define ROUND(n, m)                                                                                \
	"p" m " = a" n " * 0xd2511f53; q" m " = c" n " * 0xcd9e8d57; "                             \
	"a" m " = xor(xor(shr(q" m ", 32), b" n "), k" n "); b" m                                  \
	" = " WORD("q" m) "; "                                                                     \
			  "c" m " = xor(xor(shr(p" m ", 32), d" n "), l" n "); d" m                \
			  " = " WORD("p" m) "; "                                                   \
					    "k" m                                                  \
					    " = " WORD("k" n " + 0x9e3779b9") "; l" m " = " WORD(  \
						    "l" n " + 0xbb67ae85") "; "
#define PHILOX                                                                                     \
	"x = convert[u64](lo); y = convert[u64](hi); z = convert[u64](key); "                      \
	"a0 = " WORD("x") "; b0 = shr(x, 32); c0 = " WORD(                                         \
		"y") "; d0 = shr(y, 32); "                                                         \
		     "k0 = " WORD("z") "; l0 = shr(z, 32); " ROUND("0", "1") ROUND("1", "2")       \
			     ROUND("2", "3") ROUND("3", "4") ROUND("4", "5") ROUND("5", "6")       \
				     ROUND("6", "7") ROUND("7", "8") ROUND("8", "9")               \
					     ROUND("9", "10")

const LibDef lib_random[] = {
	{"philox_low", LIB_UINT, "lo, hi, key", 0, PHILOX "or(a10, shl(b10, 32))"},
	{"philox_high", LIB_UINT, "lo, hi, key", 0, PHILOX "or(c10, shl(d10, 32))"},
	{NULL, 0, NULL, 0, NULL},
};
