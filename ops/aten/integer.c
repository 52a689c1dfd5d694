/* Greatest common divisors and least common multiples of integers. */
#include "ops/aten/priv.h"

OP(gcd) {
	.schema = "gcd(Tensor a, Tensor b) -> Tensor",
	.doc = "greatest common divisor of integers; of 0 and 0 it is 0",
	.scalar = "gcd(a, b)",
	.sample = "i32[n=3, 4] in -99..99, i32[n, 4] in -99..99; "
		  "i64[9] of 0 0 5 -12 4660046610375530309 7540113804746346429 30 "
		  "-4660046610375530309 -9223372036854775808, "
		  "i64[9] of 0 7 0 18 7540113804746346429 4660046610375530309 -30 "
		  "7540113804746346429 6; u8[4] of 200 255 17 96, u8[4] of 120 34 17 0; "
		  "i8[4] of -128 127 -6 96, i8[4] of 6 -128 -4 -128",
};
OP(lcm) {
	.schema = "lcm(Tensor a, Tensor b) -> Tensor",
	.doc = "least common multiple of integers; with 0 it is 0, and it wraps",
	.scalar = "lcm(a, b)",
	.sample = "i32[n=3, 4] in -99..99, i32[n, 4] in -99..99; "
		  "i64[6] of 0 0 5 -12 4611686018427387904 3037000500, i64[6] of 0 7 0 18 6 "
		  "3037000499; i32[4] of 65536 -65536 46341 2147483647, "
		  "i32[4] of 65537 65539 46340 2",
};

OP(aten_gcd){
	.schema = "aten.gcd(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.gcd",
	.promote = PROMOTE_DEFAULT,
	.expand = "gcd(self, other)",
	.sample = "i32[n=3, 4] in -99..99, i32[4] in -99..99; u8[4] of 200 255 17 96, "
		  "i64[4] of -120 34 17 0",
};

/* Multiplies narrow integers as i32, as PyTorch does: the low bits of the multiple's magnitude
 * stay. */
static Node build_lcm(Build *b, Node n)
{
	Node in[] = {arg(b, n, "self"), arg(b, n, "other")};
	DType d = in[0].i && in[1].i ? b_promote(b, in, 2) : DT_none;
	DType wide = dtype_is_int(d) && dtype_size(d) < 4 ? DT_i32 : d;
	if (d == DT_none)
		return in[0];
	return b_convert(b, b_bin(b, OP_lcm, b_convert(b, in[0], wide), b_convert(b, in[1], wide)),
			 d);
}
OP(aten_lcm){
	.schema = "aten.lcm(Tensor self, Tensor other) -> Tensor",
	.build = build_lcm,
	.sample = "i32[n=3, 4] in -99..99, i32[4] in -99..99; u8[4] of 200 255 17 96, "
		  "u8[4] of 201 34 17 0; i8[5] of 100 -100 -128 127 -128, "
		  "i8[5] of 99 99 127 126 6; i16[2] of 32767 -32768, i16[2] of 32766 32767",
};
