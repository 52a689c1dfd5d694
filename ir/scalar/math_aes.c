/* AES-128 (FIPS 197) of one block, in bit planes: no table is read, so the time does not depend on
 * the key.
 *
 * A block is lo, hi; byte k of it is bits 8 k .. 8 k + 7 of lo, from byte 8 on of hi. Bit k of
 * plane s<i> is bit i of byte k; planes k<i> hold the round key. Bits 16 to 19 of the planes go
 * through the S-box for the key: they are the last four bytes of the round key.
 *
 * The S-box inverts in GF(2^8) over GF(2^4) over GF(2^2), each with a normal basis whose elements
 * have trace 1: (W, W^2), (Z, Z^4), (Y, Y^16) with W = 0xbc, Z = 0x5c, Y = 0xfe in AES's
 * polynomial basis. Of an element of GF(2^8) a is the part of Y, b that of Y^16; h is the part of Z
 * of these, l that of Z^4; 1 is the part of W of those, 0 that of W^2. With A = a Y + b Y^16:
 *
 *   1 / A = (b Y + a Y^16) / N,   N = A^17 = (a + b)^2 Y^17 + a b
 *
 * and so for GF(2^4), where Z^5 = W; in GF(2^2) 1 / x = x^2, which exchanges its parts. */
#include "ir/scalar/math_priv.h"

#define XOR(a, b) "xor(" a "," b ")"
#define AND(a, b) "and(" a "," b ")"
/* GF(2^2): r = x + y, r = x y. */
#define ADD2(r, x, y) r "1 = " XOR(x "1", y "1") "; " r "0 = " XOR(x "0", y "0") "; "
#define MUL2(r, x, y)                                                                              \
	"t = " AND(XOR(x "1", x "0"), XOR(y "1", y "0")) "; " r "1 = " XOR(                        \
		"t", AND(x "1", y "1")) "; " r "0 = " XOR("t", AND(x "0", y "0")) "; "
/* GF(2^4): r = x y. */
#define MUL4(r, x, y)                                                                              \
	ADD2("p", x "h", x "l")                                                                    \
	ADD2("q", y "h", y "l") MUL2("n", "p", "q") MUL2("p", x "h", y "h")                        \
		MUL2("q", x "l", y "l") "n1 = xor(n1, n0); " r "h1 = xor(p1, n0); " r              \
					"h0 = xor(p0, n1); " r "l1 = xor(q1, n0); " r              \
					"l0 = xor(q0, n1); "
/* GF(2^4): d = 1 / n. */
#define INVERSE4                                                                                   \
	MUL2("p", "nh", "nl")                                                                      \
	ADD2("q", "nh", "nl") "e0 = xor(p1, q1); e1 = xor(p0, xor(q0, q1)); " MUL2(                \
		"dh", "nl", "e") MUL2("dl", "nh", "e")
/* s<i> = the S-box of x<i>. */
#define SBOX                                                                                       \
	"v0 = xor(x0, x6); bh1 = xor(x5, v0); v2 = xor(x1, x2); ah0 = xor(x7, bh1); v4 = xor(x0, " \
	"x1); "                                                                                    \
	"ah1 = xor(x1, bh1); al0 = xor(x4, bh1); al1 = xor(v2, ah0); bh0 = xor(v2, xor(x3, v0)); " \
	"bl1 = xor(xor(x3, x4), xor(x7, v4)); bl0 = x0; " MUL4("m", "a", "b")                      \
		ADD2("h", "ah", "bh")                                                              \
			ADD2("l", "al",                                                            \
			     "bl") "nh1 = xor(mh1, xor(h1, h0)); nh0 = xor(mh0, h0); nl1 = "       \
				   "xor(ml1, xor(h0, l0)); "                                       \
				   "nl0 = xor(ml0, xor(h1, l1)); " INVERSE4 MUL4("m", "d", "b")    \
					   MUL4("w", "d",                                          \
						"a") "s7 = xor(mh1, wl1); v1 = xor(mh0, ml0); s4 " \
						     "= xor(ml1, s7); s5 = not(xor(ml0, wh0)); "   \
						     "s6 = not(xor(ml1, wl1)); s0 = not(xor(wh1, " \
						     "v1)); s1 = not(xor(wh1, xor(mh1, mh0))); "   \
						     "s3 = xor(v1, s4); s2 = xor(xor(ml0, wh0), "  \
						     "xor(wl0, s7)); "
#define PLANES(X)                                                                                  \
	X("0", "0")                                                                                \
	X("1", "8") X("2", "16") X("3", "24") X("4", "32") X("5", "40") X("6", "48") X("7", "56")
#define ENTER(i, bits) "x" i " = aes_enter(s" i ", k" i "); "
#define LEAVE(i, bits)                                                                             \
	"k" i " = aes_key(k" i ", s" i ", shr(c, " i ")); m" i " = aes_rows(s" i "); u" i          \
	" = aes_pair(m" i "); "
#define MIX(i, twice) "s" i " = aes_mix(m" i ", u" i ", " twice "); "
#define ROUNDS                                                                                     \
	"c = convert[u64](1); repeat 10 { " PLANES(ENTER) SBOX PLANES(LEAVE) MIX("0", "u7")        \
		MIX("1", "xor(u0, u7)") MIX("2", "u1") MIX("3", "xor(u2, u7)")                     \
			MIX("4", "xor(u3, u7)") MIX("5", "u4") MIX("6", "u5")                      \
				MIX("7", "u6") "c = xor(shl(c, 1), shr(c, 7) * 0x11b); } "
#define TAKE(i, bits) "s" i " = aes_plane(a, b, " bits "); k" i " = aes_plane(p, q, " bits "); "
#define LOW(i, bits) "z = aes_lower(z, m" i ", k" i ", " bits "); "
#define HIGH(i, bits) "z = aes_upper(z, m" i ", k" i ", " bits "); "
#define AES(GIVE)                                                                                  \
	"a = aes_turn(lo); b = aes_turn(hi); p = aes_turn(key0); q = aes_turn(key1); " PLANES(     \
		TAKE) ROUNDS "z = convert[u64](0); " PLANES(GIVE) "aes_turn(z)"

const LibDef lib_aes[] = {
	/* The bits of the eight bytes as eight bytes, and back. */
	{"aes_turn", LIB_UINT, "w", EXPAND,
		"x = convert[u64](w); t = and(xor(x, shr(x, 7)), 0xaa00aa00aa00aa); "
		"y = xor(x, xor(t, shl(t, 7))); u = and(xor(y, shr(y, 14)), 0xcccc0000cccc); "
		"z = xor(y, xor(u, shl(u, 14))); "
		"v = and(xor(z, shr(z, 28)), 0xf0f0f0f0); xor(z, xor(v, shl(v, 28)))"},
	{"aes_plane", LIB_UINT, "low, high, by", EXPAND, "or(and(shr(low, by), 0xff), "
							 "shl(and(shr(high, by), 0xff), 8))"},
	/* ShiftRows: byte 4 c + r is what byte 4 (c + r) + r was. */
	{"aes_rows", LIB_UINT, "s", EXPAND,
		"x = and(s, 0xffff); y = or(x, shl(x, 16)); "
		"or(or(and(y, 0x1111), and(shr(y, 4), 0x2222)), or(and(shr(y, 8), 0x4444), "
		"and(shr(y, 12), 0x8888)))"},
	/* Bytes one and two rows below, of each column. */
	{"aes_below", LIB_UINT, "x", EXPAND, "or(and(shr(x, 1), 0x7777), and(shl(x, 3), 0x8888))"},
	{"aes_below2", LIB_UINT, "x", EXPAND, "or(and(shr(x, 2), 0x3333), and(shl(x, 2), 0xcccc))"},
	{"aes_pair", LIB_UINT, "m", EXPAND, "xor(m, aes_below(m))"},
	/* MixColumns: 2 (a + b) + b + (c + d) of the bytes a, b, c, d from a row on. */
	{"aes_mix", LIB_UINT, "m, pair, twice", EXPAND, "xor(twice, xor(aes_below(m), "
							"aes_below2(pair)))"},
	{"aes_enter", LIB_UINT, "s, k", EXPAND, "or(xor(s, k), shl(and(k, 0xf000), 4))"},
	/* The next round key: the substituted bytes, rotated, and the constant into the first word;
	 * then each word is the sum of those up to it. */
	{"aes_key", LIB_UINT, "k, s, c", EXPAND,
		"r = or(and(shr(s, 17), 7), and(shr(s, 13), 8)); x = xor(xor(k, r), and(c, 1)); "
		"y = xor(x, shl(x, 4)); and(xor(y, shl(y, 8)), 0xffff)"},
	/* The bytes 0 to 7, or 8 to 15, of the last round key's sum with m, as 8 bits of z. */
	{"aes_lower", LIB_UINT, "z, m, k, by", EXPAND, "or(z, shl(and(xor(m, k), 0xff), by))"},
	{"aes_upper", LIB_UINT, "z, m, k, by", EXPAND, "or(z, shl(shr(xor(m, k), 8), by))"},
	{"aes_low", LIB_UINT, "lo, hi, key0, key1", 0, AES(LOW)},
	{"aes_high", LIB_UINT, "lo, hi, key0, key1", 0, AES(HIGH)},
	{NULL, 0, NULL, 0, NULL},
};
