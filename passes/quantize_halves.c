/* Integers of 4 bits, two in a byte:
 *
 *   %1 = half 0 of %q, %2 = half 1 of %q            each i8, -8 to 7, or u8, 0 to 15
 * becomes
 *   %p = (half 0 & 15) | half 1 << 4                 a constant
 *   %1 = (%p << 28) >> 28, %2 = %p >> 4              of u8 %p & 15 and %p >> 4, in i32 */
#include "passes/quantize.h"
#include "passes/rules.h"

enum { HALF_BITS = 4, HALF_VALUES = 1 << HALF_BITS, ABOVE = 32 - HALF_BITS };

bool quant_values(const Graph *g, Node q, bool keep_params, int64_t *least, int64_t *most)
{
	while (op_info(node_op(g, q))->moves)
		q = node_in(g, q, 0);
	const ConstId id = node_const(g, q);
	if (!id.i || (keep_params && const_is_replaceable(g->ir, id)))
		return false;
	const Const *c = ir_const_of(g->ir, id);
	const unsigned char *data = c->data;
	if (!data || !c->bytes)
		return false;
	*least = INT64_MAX;
	*most = INT64_MIN;
	for (uint64_t k = 0; k < c->bytes; k++) {
		const int64_t v = c->dtype == DT_i8 ? (signed char)data[k] : data[k];
		*least = v < *least ? v : *least;
		*most = v > *most ? v : *most;
	}
	return true;
}

static bool has_four_bits(const Graph *g, Node q, bool keep_params)
{
	int64_t least, most, low = node_dtype(g, q) == DT_i8 ? -HALF_VALUES / 2 : 0;
	return quant_values(g, q, keep_params, &least, &most) && least >= low && most < low + HALF_VALUES;
}

bool quant_halves(Build *b, Node q, bool keep_params, Node half[2])
{
	SymTab *t = b_syms(b);
	const DType d = node_dtype(b->g, q);
	const Node all = b_convert(b, half[0], DT_i32);
	const Sym extent = node_dim(b->g, all, 2), middle = sym_divi(t, extent, 2), one = sym_int(t, 1);
	if (!sym_divides(t, 2, extent) || !has_four_bits(b->g, q, keep_params))
		return false;
	const Node low = b_bin_scalar(b, OP_bit_and, b_slice(b, all, 2, sym_int(t, 0), middle, one), HALF_VALUES - 1);
	const Node high = b_bin_scalar(b, OP_shift_left, b_slice(b, all, 2, middle, extent, one), HALF_BITS);
	const Node both = b_convert(b, b_convert(b, b_bin(b, OP_bit_or, low, high), d), DT_i32);
	half[1] = b_bin_scalar(b, OP_shift_right, both, HALF_BITS);
	half[0] = d == DT_i8 ? b_bin_scalar(b, OP_shift_right, b_bin_scalar(b, OP_shift_left, both, ABOVE), ABOVE) :
			       b_bin_scalar(b, OP_bit_and, both, HALF_VALUES - 1);
	return true;
}
