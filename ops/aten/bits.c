/* Views of a tensor's bits as another dtype. */
#include "ops/aten/priv.h"

/* Returns integers of as many bits as dtype d has; those of a byte have no sign. */
static DType bits_of(DType d)
{
	uint32_t size = dtype_size(d);
	return size == 1 ? DT_u8 : size == 2 ? DT_i16 : size == 4 ? DT_i32 : DT_i64;
}

Node aten_bitcast(Build *b, Node x, DType d)
{
	Attr attr[] = {attr_none(), attr_dtype(d)};
	return x.i && node_dtype(b->g, x) != d ? b_node(b, OP_bitcast, &x, 1, attr, 2) : x;
}

/* Returns 0, w, 2 w, ... for `parts` of w bits. */
static Node bit_offsets(Build *b, DType wide, int64_t parts, DType narrow)
{
	return b_bin_scalar(b, OP_mul, b_iota(b, wide, b_int(b, parts)), 8 * dtype_size(narrow));
}

/* Makes [.., n * parts] of [.., n]: the lowest bits come first. */
static Node split_bits(Build *b, Node x, DType narrow, int64_t parts)
{
	Shape s = aten_shape(b, x);
	DType wide = aten_dtype(b, x);
	s.dim[s.rank - 1] = sym_muli(b_syms(b), s.dim[s.rank - 1], parts);
	Node at = bit_offsets(b, wide, parts, narrow);
	Node y = b_bin(b, OP_shift_right, b_unsqueeze(b, x, -1), at);
	return aten_reshape(b, b_convert(b, y, narrow), &s);
}

/* Makes [.., n] of [.., n * parts]. */
static Node join_bits(Build *b, Node x, DType wide, int64_t parts)
{
	Shape s = aten_shape(b, x);
	DType narrow = aten_dtype(b, x);
	Sym last = s.dim[s.rank - 1];
	aten_require_multiple(b, last, parts,
			      arena_printf(b->g->ir->ctx->arena,
					   "a view of %s has whole elements of %s",
					   dtype_name(narrow), dtype_name(wide)));
	s.dim[s.rank - 1] = sym_divi(b_syms(b), last, parts);
	s = shape_insert(s, s.rank, b_int(b, parts));
	Node y = b_convert(b, aten_reshape(b, x, &s), wide);
	Node mask = b_full_int(b, wide, ((int64_t)1 << (8 * dtype_size(narrow))) - 1, 0, NULL);
	y = b_bin(b, OP_shift_left, b_bin(b, OP_bit_and, y, mask),
		  bit_offsets(b, wide, parts, narrow));
	return b_reduce(b, REDUCE_SUM, y, 1u << (s.rank - 1), wide);
}

/* Views real numbers of any size as others. */
static Node view_real(Build *b, Node x, DType to)
{
	DType from = aten_dtype(b, x);
	uint32_t a = dtype_size(from), c = dtype_size(to);
	if (a == c)
		return aten_bitcast(b, x, to);
	x = aten_bitcast(b, x, bits_of(from));
	x = a > c ? split_bits(b, x, bits_of(to), a / c) : join_bits(b, x, bits_of(to), c / a);
	return aten_bitcast(b, x, to);
}

/* Returns [.., n] of complex numbers as [.., 2 n] parts; join_parts the other way. */
static Node parts_along(Build *b, Node x)
{
	x = b_node(b, OP_view_real, &x, 1, NULL, 0);
	uint32_t rank = aten_rank(b, x);
	return aten_flatten(b, x, rank - 2, rank - 1);
}

static Node join_parts(Build *b, Node x)
{
	Shape s = aten_shape(b, x);
	Sym last = s.dim[s.rank - 1];
	aten_require_multiple(b, last, 2, "the last extent is the pairs of complex numbers");
	s.dim[s.rank - 1] = sym_divi(b_syms(b), last, 2);
	s = shape_insert(s, s.rank, b_int(b, 2));
	x = aten_reshape(b, x, &s);
	return b_node(b, OP_view_complex, &x, 1, NULL, 0);
}

/* Builds the same bits as another dtype; the last dim grows or shrinks with the size of an
 * element. PyTorch has no derivative, of floats neither. */
static Node build_view_dtype(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	DType from = aten_dtype(b, x), to = node_attr(b->g, n, "dtype")->dtype;
	bool number = aten_rank(b, x) == 0;
	if (from == to || !x.i)
		return x;
	if (number && dtype_size(from) != dtype_size(to))
		return b_error(b, "view of a tensor without dims as another size of elements");
	x = aten_detached(b, x);
	if (number)
		x = b_unsqueeze(b, x, 0);
	if (dtype_is_complex(from))
		x = parts_along(b, x);
	x = view_real(b, x, dtype_is_complex(to) ? dtype_real(to) : to);
	if (dtype_is_complex(to) && x.i)
		x = join_parts(b, x);
	return number ? b_squeeze(b, x, 0) : x;
}
OP(aten_view_dtype){
	.schema = "aten.view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
	.view = VIEW_BITS,
	.view_undo = "aten.view.dtype",
	.build = build_view_dtype,
	.sample = "f32[n=3, 4], dtype=i32; i16[n=3, 4] in -99..99, dtype=f16; "
		  "i32[n=3] in -99999..99999, dtype=u8; u8[n=2, 8] in 0..99, dtype=i32; "
		  "f64[n=3, 2], dtype=f32; f32[n=3, 4], dtype=c64; c64[2, n=3], dtype=f32; "
		  "c64[n=3], dtype=f64; f64[3], dtype=c64; c64[], dtype=f64",
	.overloads = (const Overload[]){
		{.schema = "aten.view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor"},
	},
};

/* ---- mantissa and exponent ---- */

/* Returns 2^e for an integer that is the exponent of a normal number. */
static Node power_of_two(Build *b, Node e, bool wide)
{
	Node k = b_bin(b, OP_add, e, aten_like(b, e, wide ? 1023 : 127));
	k = b_bin(b, OP_shift_left, k, aten_like(b, k, wide ? 52 : 23));
	return aten_bitcast(b, k, wide ? DT_f64 : DT_f32);
}

/* Splits x = m * 2^e with 0.5 <= |m| < 1; what has no exponent is m. Small numbers are scaled
 * first. */
static Node build_frexp(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	DType d = aten_dtype(b, x);
	if (!x.i || !dtype_is_float(d))
		return b_error(b, "frexp of %s, expected a floating-point dtype", dtype_name(d));
	Node v = aten_wide(b, x);
	bool wide = node_dtype(b->g, v) == DT_f64;
	Node small = b_bin_scalar(b, OP_lt, b_un(b, OP_abs, v), wide ? 0x1p-1000 : 0x1p-100),
	     up = b_bin_scalar(b, OP_mul, v, 0x1p64);
	Node scaled = b_select(b, small, up, v);
	Node k = aten_bitcast(b, scaled, wide ? DT_i64 : DT_i32);
	k = b_bin(b, OP_bit_and, b_bin(b, OP_shift_right, k, aten_like(b, k, wide ? 52 : 23)),
		  aten_like(b, k, wide ? 2047 : 255));
	Node e = b_bin(b, OP_sub, k, aten_like(b, k, wide ? 1022 : 126));
	Node none = b_bin(b, OP_bit_or, b_bin_scalar(b, OP_eq, v, 0),
			  b_un(b, OP_bit_not, b_un(b, OP_isfinite, v)));
	e = b_select(b, none, aten_like(b, e, 0), e);
	Node first = b_bin(b, OP_shift_right, e, aten_like(b, e, 1)),
	     second = b_bin(b, OP_sub, e, first);
	Node m = b_bin(b, OP_mul, scaled, power_of_two(b, b_un(b, OP_neg, first), wide));
	m = b_bin(b, OP_mul, m, power_of_two(b, b_un(b, OP_neg, second), wide));
	e = b_bin(b, OP_sub, e,
		  b_select(b, b_bin(b, OP_bit_and, small, b_un(b, OP_bit_not, none)),
			   aten_like(b, e, 64), aten_like(b, e, 0)));
	m = b_select(b, none, v, m);
	return b_tuple(b, (Node[]){b_convert(b, m, d), b_convert(b, e, DT_i32)}, 2);
}
OP(aten_frexp_Tensor){
	.schema = "aten.frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
	.aliases = "prims.frexp aten.frexp",
	.build = build_frexp,
	.sample = "f32[n=3, 4] in -8..8; f32[10] of 0 1 -0.5 1e-40 -1e38 inf nan -inf 3 1e-30; "
		  "f64[4] of 1e-310 1e300 -1 0",
};
