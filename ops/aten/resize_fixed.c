/* Resizing of 8-bit images as ATen's kernels do it, bit for bit: the weights of an axis are
 * integers of 16 bits, as precise as their greatest one allows, products are summed in 32 bits, and
 * every axis rounds to u8 (to nearest, halves up, clamped). Weights are those of the float
 * computation, in f64. */
#include "ops/aten/resize_priv.h"

/* Returns v[out] as a column. */
static Node column(Build *b, Node v)
{
	return b_unsqueeze(b, v, -1);
}

static Node filter(Build *b, Node dist, bool cubic)
{
	Node x = b_un(b, OP_abs, dist), zero = b_scalar(b, DT_f64, 0);
	if (!cubic)
		return b_bin(b, OP_maximum, zero, b_bin(b, OP_sub, b_scalar(b, DT_f64, 1), x));
	Node y = b_select(b, b_bin_scalar(b, OP_lt, x, 1), resize_cubic_near(b, x, -0.75),
			  resize_cubic_far(b, x, -0.75));
	return b_select(b, b_bin_scalar(b, OP_lt, x, 2), y, zero);
}

/* Makes taps of one output that read the same element one: the first of them. */
static Node merge_taps(Build *b, Node index, Node weight, int64_t taps)
{
	Node same = b_bin(b, OP_eq, b_unsqueeze(b, index, 2), b_unsqueeze(b, index, 1));
	Node w = b_select(b, same, b_unsqueeze(b, weight, 1), b_scalar(b, DT_f64, 0));
	Node k = b_iota(b, DT_i64, b_int(b, taps));
	Node earlier = b_bin(b, OP_lt, b_unsqueeze(b, k, 0), column(b, k));
	Node again = aten_reduce(b, REDUCE_OR, b_bin(b, OP_bit_and, same, earlier), 1u << 2, false);
	return b_select(b, again, b_scalar(b, DT_f64, 0), aten_sum(b, w, 1u << 2, false));
}

Taps resize_near_taps(Build *b, const Axis *a, bool cubic)
{
	int64_t taps = cubic ? 4 : 2, before = taps / 2 - 1;
	Node last = aten_size(b, sym_addi(b_syms(b), a->in, -1), DT_i64);
	Node src = resize_source(b, a, !cubic), low = b_un(b, OP_floor, src);
	low = b_bin(b, OP_minimum, low, b_convert(b, last, DT_f64));
	Node frac = b_bin(b, OP_sub, src, low);
	frac = b_bin_scalar(b, OP_minimum, b_bin_scalar(b, OP_maximum, frac, 0), 1);
	Node k = b_bin_scalar(b, OP_sub, b_iota(b, DT_i64, b_int(b, taps)), (double)before);
	Node at = b_bin(b, OP_add, column(b, b_convert(b, low, DT_i64)), k);
	Node index = b_bin(b, OP_minimum, b_bin_scalar(b, OP_maximum, at, 0), last);
	Node w = filter(b, b_bin(b, OP_sub, b_convert(b, k, DT_f64), column(b, frac)), cubic);
	return (Taps){.index = index, .weight = merge_taps(b, index, w, taps)};
}

/* Returns how many fraction bits (at most 22) the greatest weight leaves in 16 bits with sign,
 * 0-d i64. */
static Node fraction_bits(Build *b, Node weight)
{
	Node top = aten_reduce(b, REDUCE_MAX, weight, 3, false);
	Node k = b_bin_scalar(b, OP_add, b_iota(b, DT_i64, b_int(b, 22)), 1);
	Node power = b_bin(b, OP_shift_left, b_full_int(b, DT_i64, 1, 0, NULL), k);
	Node value = b_bin(b, OP_mul, b_convert(b, power, DT_f64), top);
	Node fits = b_bin_scalar(b, OP_lt, b_bin_scalar(b, OP_add, value, 0.5), 32768);
	return aten_sum(b, b_convert(b, fits, DT_i64), 1, false);
}

/* Returns weight * 2^bits, rounded to nearest, halves away from zero. */
static Node fixed_weight(Build *b, Node weight, Node bits)
{
	Node one = b_bin(b, OP_shift_left, b_full_int(b, DT_i64, 1, 0, NULL), bits);
	Node w = b_bin(b, OP_mul, weight, b_convert(b, one, DT_f64));
	Node half = b_bin(b, OP_copysign, b_scalar(b, DT_f64, 0.5), w);
	return b_convert(b, b_un(b, OP_trunc, b_bin(b, OP_add, w, half)), DT_i32);
}

Node resize_fixed(Build *b, Node x, const Axis *a, const Taps *t)
{
	Node bits = fraction_bits(b, t->weight), w = fixed_weight(b, t->weight, bits);
	Node taps = aten_take_dim(b, x, a->dim, t->index, "fill"); /* [.., out, taps, ..] */
	if (!taps.i || !w.i)
		return (Node){0};
	Shape s = aten_shape(b, taps);
	w = b_broadcast_in_dim(b, w, s.rank, s.dim, (uint32_t[]){a->dim, a->dim + 1});
	Node y = b_bin(b, OP_mul, b_convert(b, taps, DT_i32), w);
	y = b_reduce(b, REDUCE_SUM, y, 1u << (a->dim + 1), DT_i32);
	bits = b_convert(b, bits, DT_i32);
	Node half = b_bin(b, OP_shift_left, b_full_int(b, DT_i32, 1, 0, NULL),
			  b_bin_scalar(b, OP_sub, bits, 1));
	y = b_bin(b, OP_shift_right, b_bin(b, OP_add, y, half), bits);
	y = b_bin_scalar(b, OP_minimum, b_bin_scalar(b, OP_maximum, y, 0), 255);
	return y.i ? b_convert(b, y, DT_u8) : y;
}
