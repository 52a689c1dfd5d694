/* Numbers rounded to types of ONNX that are kept in wider dtypes (frontend/onnx/model.h). */
#include "ops/onnx/common/common.h"

#include <math.h>

static Node bits_of(Build *b, Node x)
{
	return b_node(b, OP_bitcast, &x, 1, (Attr[]){attr_none(), attr_dtype(DT_i32)}, 2);
}

static Node from_bits(Build *b, Node bits)
{
	return b_node(b, OP_bitcast, &bits, 1, (Attr[]){attr_none(), attr_dtype(DT_f32)}, 2);
}

static Node shifted(Build *b, Op op, Node x, int64_t by)
{
	return b_bin(b, op, x, b_full_int(b, DT_i32, by, 0, NULL));
}

/* Returns the exponent of each |x|, i32: of zeros and subnormals -127. */
static Node exponents(Build *b, Node x)
{
	return b_bin_scalar(b, OP_sub,
			    shifted(b, OP_shift_right, bits_of(b, b_un(b, OP_abs, x)), 23), 127);
}

/* Rounds x, f32, to the nearest number of that many bits behind the point, even if there are
 * two; below 2^least such numbers have equal distances. */
static Node round_float(Build *b, Node x, int mantissa, int least)
{
	Node e = b_bin_scalar(b, OP_maximum, exponents(b, x), least);
	Node unit = from_bits(
		b, shifted(b, OP_shift_left, b_bin_scalar(b, OP_add, e, 127 - mantissa), 23));
	return b_bin(b, OP_mul, b_un(b, OP_round, b_bin(b, OP_div, x, unit)), unit);
}

/* Rounds to FLOAT4E2M1, which has no NaN and no infinity. */
static Node to_f4(Build *b, Node x)
{
	x = b_select(b, b_un(b, OP_isnan, x), aten_like(b, x, -0.0), x);
	Node y = b_bin_scalar(b, OP_minimum, round_float(b, x, 1, 0), 6);
	return b_bin_scalar(b, OP_maximum, y, -6);
}

/* Rounds to a power of two; mode: which of the two that x is between. Without saturate infinity
 * is NaN. */
static Node to_power(Build *b, Node x, bool saturate, const char *mode)
{
	Node bits = bits_of(b, b_un(b, OP_abs, x)), e = shifted(b, OP_shift_right, bits, 23);
	Node rest = b_bin(b, OP_sub, bits, shifted(b, OP_shift_left, e, 23));
	if (mode[0] != 'd')
		e = b_bin(b, OP_add, e,
			  b_convert(b,
				    b_bin_scalar(b, mode[0] == 'u' ? OP_gt : OP_ge, rest,
						 mode[0] == 'u' ? 0 : 0x400000),
				    DT_i32));
	e = b_bin_scalar(b, OP_minimum, e, 254);
	Node y = b_select(b, b_bin_scalar(b, OP_le, e, 0), aten_like(b, x, 0x1p-127),
			  from_bits(b, shifted(b, OP_shift_left, e, 23)));
	if (!saturate)
		y = b_select(b, b_bin_scalar(b, OP_eq, x, (double)INFINITY),
			     aten_like(b, x, (double)NAN), y);
	return b_select(b, b_un(b, OP_isnan, x), x, y);
}

/* Returns the low bits of an integer. */
static Node to_int(Build *b, Node x, int bits, bool is_signed)
{
	int64_t n = INT64_C(1) << bits;
	x = b_convert(b, x, DT_i32);
	Node y = b_bin_scalar(b, OP_remainder, x, (double)n);
	if (is_signed)
		y = b_select(b, b_bin_scalar(b, OP_ge, y, (double)(n / 2)),
			     b_bin_scalar(b, OP_sub, y, (double)n), y);
	return b_convert(b, y, is_signed ? DT_i8 : DT_u8);
}

Node onnx_to_stored(Build *b, Node x, int64_t type, bool saturate, const char *mode)
{
	Node wide = b_convert(b, x, DT_f32);
	if (!wide.i)
		return wide;
	switch (type) {
	case 23: /* FLOAT4E2M1 */
		return b_convert(b, to_f4(b, wide), DT_f8e4m3);
	case 24: /* FLOAT8E8M0 */
		return b_convert(b, to_power(b, wide, saturate, mode), DT_bf16);
	case 21: /* UINT4 */
	case 25: /* UINT2 */
		return to_int(b, x, type == 21 ? 4 : 2, false);
	case 22: /* INT4 */
	case 26: /* INT2 */
		return to_int(b, x, type == 22 ? 4 : 2, true);
	default:
		return b_error(b, "data type %lld is not supported", (long long)type);
	}
}
