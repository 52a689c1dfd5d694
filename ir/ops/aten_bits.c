/* Views of a tensor's bits as another dtype. */
#include "ir/ops/aten_priv.h"

/* Integers of as many bits as dtype d has; those of a byte have no sign. */
static DType bits_of(DType d)
{
	uint32_t size = dtype_size(d);
	return size == 1 ? DT_u8 : size == 2 ? DT_i16 : size == 4 ? DT_i32 : DT_i64;
}

static Node bitcast(Build *b, Node x, DType d)
{
	Attr attr[] = {attr_none(), attr_dtype(d)};
	return x.i && node_dtype(b->g, x) != d ? b_node(b, OP_bitcast, &x, 1, attr, 2) : x;
}

/* 0, w, 2 w, ... for `parts` of w bits */
static Node bit_offsets(Build *b, DType wide, int64_t parts, DType narrow)
{
	return b_bin_scalar(b, OP_mul, b_iota(b, wide, b_int(b, parts)), 8 * dtype_size(narrow));
}

/* [.., n] to [.., n * parts]: the lowest bits come first. */
static Node split_bits(Build *b, Node x, DType narrow, int64_t parts)
{
	Shape s = aten_shape(b, x);
	DType wide = aten_dtype(b, x);
	s.dim[s.rank - 1] = sym_muli(b_syms(b), s.dim[s.rank - 1], parts);
	Node at = bit_offsets(b, wide, parts, narrow);
	Node y = b_bin(b, OP_shift_right, b_unsqueeze(b, x, -1), at);
	return aten_reshape(b, b_convert(b, y, narrow), &s);
}

/* [.., n * parts] to [.., n] */
static Node join_bits(Build *b, Node x, DType wide, int64_t parts)
{
	Shape s = aten_shape(b, x);
	DType narrow = aten_dtype(b, x);
	Sym last = s.dim[s.rank - 1];
	if (!sym_divides(b_syms(b), parts, last))
		return b_error(b, "view of %s elements of %s as %s", sym_str(b_syms(b), last),
			       dtype_name(narrow), dtype_name(wide));
	s.dim[s.rank - 1] = sym_divi(b_syms(b), last, parts);
	s = shape_insert(s, s.rank, b_int(b, parts));
	Node y = b_convert(b, aten_reshape(b, x, &s), wide);
	Node mask = b_full_int(b, wide, ((int64_t)1 << (8 * dtype_size(narrow))) - 1, 0, NULL);
	y = b_bin(b, OP_shift_left, b_bin(b, OP_bit_and, y, mask), bit_offsets(b, wide, parts, narrow));
	return b_reduce(b, REDUCE_SUM, y, 1u << (s.rank - 1), wide);
}

/* The same bits as another dtype; the last dim grows or shrinks with the size of an element. */
static Node build_view_dtype(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	DType from = aten_dtype(b, x), to = node_attr(b->g, n, "dtype")->dtype;
	uint32_t a = dtype_size(from), c = dtype_size(to);
	if (dtype_is_complex(from) || dtype_is_complex(to))
		return b_error(b, "view of %s as %s is not supported", dtype_name(from), dtype_name(to));
	if (from == to || !x.i)
		return x;
	if (a != c && aten_rank(b, x) == 0)
		return b_error(b, "view of a tensor without dims as another size of elements");
	if (a == c)
		return bitcast(b, x, to);
	x = bitcast(b, x, bits_of(from));
	x = a > c ? split_bits(b, x, bits_of(to), a / c) : join_bits(b, x, bits_of(to), c / a);
	return bitcast(b, x, to);
}
OP(aten_view_dtype){
	.schema = "aten.view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
	.view = VIEW_BITS,
	.view_undo = "bitcast",
	.build = build_view_dtype,
	.sample = "f32[n=3, 4], dtype=i32; i16[n=3, 4] in -99..99, dtype=f16",
};
