/* Integers of 4 bits, eight in a word of 32:
 *
 *   %0 to %7 = every eighth of %q                                 each i8, -8 to 7, or u8, 0 to 15
 * becomes
 *   %w = (%0 + 8) | (%1 + 8) << 4 | ... (%7 + 8) << 28            a constant
 *   %0 = bitcast(%w & 15 | bits of 2^23) - (2^23 + 8)             f32
 *   %1 = bitcast(%w & 15 << 4 | bits of 2^19) - (2^19 + 8)        ...
 *   %4 = bitcast(%w >> 16 & 15 | bits of 2^23) - (2^23 + 8)       ...
 *
 * The bits of an integer in a float's mantissa are that float and the integer. Its zero point is
 * subtracted with the float. All numbers are integers below 2^24, so that nothing is rounded. */
#include "passes/quantize.h"
#include "passes/rules.h"

enum {
	FIELD_BITS = 4,
	FIELD_VALUES = 1 << FIELD_BITS,
	HALF_WORD = 16, /* a field of half a word lies within a mantissa */
	MANTISSA = 23,  /* bits of f32 */
	EXPONENT = 127, /* of 1.0 */
};

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

static bool has_four_bits(const Graph *g, Node q, bool keep_params, int64_t low)
{
	int64_t least, most;
	return quant_values(g, q, keep_params, &least, &most) && least >= low &&
	       most < low + FIELD_VALUES;
}

/* Packs neighbours of x along dimension 2 in words, each element `low` lower. */
static Node packed(Build *b, Node x, int64_t low)
{
	Node word = {0}, all = b_convert(b, x, DT_i32);
	for (uint32_t k = 0; k < QUANT_FIELDS; k++) {
		Node part = b_slice(b, all, 2, b_int(b, k), node_dim(b->g, all, 2),
				    b_int(b, QUANT_FIELDS));
		part = b_bin_scalar(b, OP_sub, part, (double)low);
		part = k ? b_bin_scalar(b, OP_shift_left, part, k * FIELD_BITS) : part;
		word = k ? b_bin(b, OP_bit_or, word, part) : part;
	}
	return word;
}

bool quant_fields(Build *b, Node q, bool keep_params, Node x, Node zero, Node field[QUANT_FIELDS])
{
	SymTab *t = b_syms(b);
	const int64_t low = node_dtype(b->g, q) == DT_i8 ? -FIELD_VALUES / 2 : 0;
	const Sym extent = node_dim(b->g, x, 2);
	const bool narrow =
		zero.i && dtype_size(node_dtype(b->g, quant_below_converts(b->g, zero))) == 1;
	if (!sym_divides(t, QUANT_FIELDS, extent) || !has_four_bits(b->g, q, keep_params, low))
		return false;
	/* each field alone is as large as all words: they are not folded */
	const Node words = packed(b, x, low), word = b_node(b, OP_barrier, &words, 1, NULL, 0);
	const Node upper = b_bin_scalar(b, OP_shift_right, word, HALF_WORD);
	zero = zero.i ? b_convert(b, zero, DT_f32) : zero;
	for (uint32_t k = 0; k < QUANT_FIELDS; k++) {
		const uint32_t bit = k * FIELD_BITS % HALF_WORD;
		const double above = (double)(1 << (MANTISSA - bit)) - (double)low;
		Node bits = b_bin_scalar(b, OP_bit_and, bit == k * FIELD_BITS ? word : upper,
					 (FIELD_VALUES - 1) << bit);
		bits = b_bin_scalar(b, OP_bit_or, bits,
				    (double)(((int64_t)EXPONENT + MANTISSA - bit) << MANTISSA));
		const Node value = b_node(b, OP_bitcast, &bits, 1,
					  (Attr[]){attr_none(), attr_dtype(DT_f32)}, 2);
		field[k] = narrow ? b_bin(b, OP_sub, value, b_bin_scalar(b, OP_add, zero, above))
				  : b_bin_scalar(b, OP_sub, value, above);
		field[k] = zero.i && !narrow ? b_bin(b, OP_sub, field[k], zero) : field[k];
	}
	return true;
}
