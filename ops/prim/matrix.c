/* Matrices of real or complex numbers, as parts. */
#include "ops/prim/matrix.h"

Parts mat_of(Build *b, Node x, bool pairs)
{
	return pairs && x.i ? parts_of_pairs(b, x) : (Parts){.re = x};
}

Node mat_node(Build *b, Parts x)
{
	return !x.re.i ? x.re : x.im.i ? parts_to_pairs(b, &(Parts){x.re, x.im, {0}}) : x.re;
}

Parts mat_add(Build *b, Parts x, Parts y)
{
	if (!x.re.i || !y.re.i)
		return x.re.i ? x : y;
	return (Parts){.re = b_bin(b, OP_add, x.re, y.re),
		       .im = x.im.i ? b_bin(b, OP_add, x.im, y.im) : x.im};
}

Parts mat_neg(Build *b, Parts x)
{
	return (Parts){.re = b_un(b, OP_neg, x.re), .im = x.im.i ? b_un(b, OP_neg, x.im) : x.im};
}

Parts mat_sub(Build *b, Parts x, Parts y)
{
	return y.re.i ? mat_add(b, x, mat_neg(b, y)) : x;
}

Parts mat_times(Build *b, Parts x, Parts y)
{
	Parts z = {.re = b_matmul(b, x.re, y.re)};
	if (!x.im.i)
		return z;
	z.re = b_bin(b, OP_sub, z.re, b_matmul(b, x.im, y.im));
	z.im = b_bin(b, OP_add, b_matmul(b, x.re, y.im), b_matmul(b, x.im, y.re));
	return z;
}

Parts mat_adjoint(Build *b, Parts x)
{
	Parts z = {.re = b_transpose(b, x.re, -1, -2)};
	if (x.im.i)
		z.im = b_un(b, OP_neg, b_transpose(b, x.im, -1, -2));
	return z;
}

static Node triangle_of(Build *b, Node x, bool upper, int64_t above)
{
	if (!x.i)
		return x;
	Shape s = aten_shape(b, x);
	Node i = b_unsqueeze(b, b_iota(b, DT_i64, s.dim[s.rank - 2]), -1),
	     j = b_iota(b, DT_i64, s.dim[s.rank - 1]);
	if (above)
		i = b_bin_scalar(b, OP_add, i, (double)above);
	return b_select(b, b_bin(b, upper ? OP_ge : OP_le, j, i), x, aten_like(b, x, 0));
}

Parts mat_upper(Build *b, Parts x, int64_t above)
{
	return (Parts){.re = triangle_of(b, x.re, true, above),
		       .im = triangle_of(b, x.im, true, above)};
}

Parts mat_lower(Build *b, Parts x, int64_t above)
{
	return (Parts){.re = triangle_of(b, x.re, false, above),
		       .im = triangle_of(b, x.im, false, above)};
}

Parts mat_with_ones(Build *b, Parts x)
{
	Shape s = aten_shape(b, x.re);
	Node i = b_unsqueeze(b, b_iota(b, DT_i64, s.dim[s.rank - 2]), -1),
	     j = b_iota(b, DT_i64, s.dim[s.rank - 1]);
	Node on = b_bin(b, OP_eq, i, j);
	Parts z = {.re = b_select(b, on, aten_like(b, x.re, 1), x.re)};
	if (x.im.i)
		z.im = b_select(b, on, aten_like(b, x.im, 0), x.im);
	return z;
}

Parts mat_rows(Build *b, Parts x, Sym first, Sym end)
{
	Parts z = {.re = b_slice(b, x.re, -2, first, end, b_int(b, 1))};
	if (x.im.i)
		z.im = b_slice(b, x.im, -2, first, end, b_int(b, 1));
	return z;
}

Parts mat_columns(Build *b, Parts x, Sym first, Sym end)
{
	Parts z = {.re = b_slice(b, x.re, -1, first, end, b_int(b, 1))};
	if (x.im.i)
		z.im = b_slice(b, x.im, -1, first, end, b_int(b, 1));
	return z;
}

Parts mat_join(Build *b, Parts x, Parts y, int dim)
{
	Parts z = {.re = b_concat(b, (Node[]){x.re, y.re}, 2, dim)};
	if (x.im.i)
		z.im = b_concat(b, (Node[]){x.im, y.im}, 2, dim);
	return z;
}

Parts mat_select(Build *b, Node cond, Parts x, Parts y)
{
	Parts z = {.re = b_select(b, cond, x.re, y.re)};
	if (x.im.i)
		z.im = b_select(b, cond, x.im, y.im);
	return z;
}

Parts mat_number(Build *b, Parts like, double v)
{
	return (Parts){.re = aten_like(b, like.re, v),
		       .im = like.im.i ? aten_like(b, like.im, 0) : like.im};
}

Parts mat_multiply(Build *b, Parts x, Parts y)
{
	return x.im.i ? parts_multiply(b, x, y) : (Parts){.re = b_bin(b, OP_mul, x.re, y.re)};
}

Parts mat_conj(Build *b, Parts x)
{
	return (Parts){.re = x.re, .im = x.im.i ? b_un(b, OP_neg, x.im) : x.im};
}

/* Returns x / y = x * conj(y / s) / (|y / s|^2 s), with s the larger part, so that no square
 * overflows. */
Parts mat_divide(Build *b, Parts x, Parts y)
{
	if (!x.im.i)
		return (Parts){.re = b_bin(b, OP_div, x.re, y.re)};
	Node s = b_bin(b, OP_maximum, b_un(b, OP_abs, y.re), b_un(b, OP_abs, y.im));
	Node re = b_bin(b, OP_div, y.re, s), im = b_bin(b, OP_div, y.im, s);
	Node size = b_bin(b, OP_mul,
			  b_bin(b, OP_add, b_bin(b, OP_mul, re, re), b_bin(b, OP_mul, im, im)), s);
	Parts by = {.re = b_bin(b, OP_div, re, size),
		    .im = b_un(b, OP_neg, b_bin(b, OP_div, im, size))};
	return parts_multiply(b, x, by);
}

Parts mat_sum(Build *b, Parts x, uint32_t dims)
{
	Parts z = {.re = b_reduce(b, REDUCE_SUM, x.re, dims, DT_none)};
	if (x.im.i)
		z.im = b_reduce(b, REDUCE_SUM, x.im, dims, DT_none);
	return z;
}

Parts mat_unsqueeze(Build *b, Parts x, int dim)
{
	return (Parts){.re = b_unsqueeze(b, x.re, dim),
		       .im = x.im.i ? b_unsqueeze(b, x.im, dim) : x.im};
}

Parts mat_select_dim(Build *b, Parts x, int dim, Sym index)
{
	return (Parts){.re = b_select_dim(b, x.re, dim, index),
		       .im = x.im.i ? b_select_dim(b, x.im, dim, index) : x.im};
}
