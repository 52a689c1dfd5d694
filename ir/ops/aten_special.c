/* ATen special functions that are short formulas. Those that lose digits on the way run in f64. */
#include "ir/ops/aten_priv.h"

#include <math.h>

OP(aten_special_ndtr){
	.schema = "aten.special_ndtr(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "mul(erfc(mul(self, -0.7071067811865476)), 0.5)",
	.sample = "f32[n=3, 4] in -4..4",
};

OP(aten_i0){
	.schema = "aten.i0(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "i0(self)",
	.sample = "f32[n=3, 4] in -12..12",
};
OP(aten_special_i0){
	.schema = "aten.special_i0(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "i0(self)",
	.sample = "f32[n=3, 4] in -12..12",
};
OP(aten_special_i0e){
	.schema = "aten.special_i0e(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "i0e(self)",
	.sample = "f32[n=3, 4] in -12..12",
};
OP(aten_special_i1){
	.schema = "aten.special_i1(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "i1(self)",
	.sample = "f32[n=3, 4] in -12..12",
};
OP(aten_special_i1e){
	.schema = "aten.special_i1e(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "i1e(self)",
	.sample = "f32[n=3, 4] in -12..12",
};
OP(aten_special_modified_bessel_i0){
	.schema = "aten.special_modified_bessel_i0(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "i0(self)",
	.sample = "f32[n=3, 4] in -12..12",
};
OP(aten_special_modified_bessel_i1){
	.schema = "aten.special_modified_bessel_i1(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "i1(self)",
	.sample = "f32[n=3, 4] in -12..12",
};
OP(aten_igamma){
	.schema = "aten.igamma(Tensor self, Tensor other) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "igamma(self, other)",
	.sample = "f32[n=3, 4] in 0.125..12, f32[4] in 0.25..12; f32[5] of 0 1 0 30 2, f32[5] of 1 0 0 28 inf",
};
OP(aten_special_gammainc){
	.schema = "aten.special_gammainc(Tensor self, Tensor other) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "igamma(self, other)",
	.sample = "f32[n=3, 4] in 0.125..12, f32[4] in 0.25..12; f32[5] of 0 1 0 30 2, f32[5] of 1 0 0 28 inf",
};
OP(aten_igammac){
	.schema = "aten.igammac(Tensor self, Tensor other) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "igammac(self, other)",
	.sample = "f32[n=3, 4] in 0.125..12, f32[4] in 0.25..12; f32[5] of 0 1 0 30 2, f32[5] of 1 0 0 28 inf",
};
OP(aten_special_gammaincc){
	.schema = "aten.special_gammaincc(Tensor self, Tensor other) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "igammac(self, other)",
	.sample = "f32[n=3, 4] in 0.125..12, f32[4] in 0.25..12; f32[5] of 0 1 0 30 2, f32[5] of 1 0 0 28 inf",
};

static Node build_heaviside(Build *b, Node n)
{
	Node x = arg(b, n, "self"), v = arg(b, n, "values");
	if (!x.i || !v.i)
		return (Node){0};
	Node zero = b_bin_scalar(b, OP_eq, x, 0), positive = b_bin_scalar(b, OP_gt, x, 0);
	return b_select(b, zero, v, b_convert(b, positive, node_dtype(b->g, x)));
}
OP(aten_heaviside){
	.schema = "aten.heaviside(Tensor self, Tensor values) -> Tensor",
	.build = build_heaviside,
	.sample = "f32[n=2, 4] of 0 -1 1 0 nan 2 -0 0, f32[4] of 0.25 7 7 -3",
};

/* Run `f` on the operand in f64. */
static Node wide(Build *b, Node x)
{
	return x.i ? b_convert(b, x, DT_f64) : x;
}

static Node narrow(Build *b, Node y, DType d)
{
	return y.i ? b_convert(b, y, dtype_to_float(d)) : y;
}

static Node constant(Build *b, double v)
{
	return b_scalar(b, DT_f64, v);
}

/* p (p - 1) / 4 log(pi) + sum of lgamma(x - j / 2) for j < p */
static Node build_mvlgamma(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "self"));
	int64_t p = aten_int(b, n, "p");
	if (p < 1 || p > 64)
		return b_error(b, "mvlgamma of order %lld", (long long)p);
	DType d = aten_dtype(b, x);
	Node w = wide(b, x), sum = constant(b, (double)(p * (p - 1)) * 0.25 * 1.1447298858494002);
	for (int64_t j = 0; j < p; j++) {
		Node shifted = j ? b_bin_scalar(b, OP_sub, w, 0.5 * (double)j) : w;
		sum = b_bin(b, OP_add, b_un(b, OP_lgamma, shifted), sum);
	}
	return narrow(b, sum, d);
}
OP(aten_mvlgamma){
	.schema = "aten.mvlgamma(Tensor self, int p) -> Tensor",
	.aliases = "aten.special_multigammaln",
	.build = build_mvlgamma,
	.sample = "f32[n=2, 3] in 2..8, p=3",
};

/* ---- Hurwitz zeta: TERMS terms of the sum, then Euler and Maclaurin's tail ---- */

/* sum of (q + k)^-s over k >= 0, for q > 0 or s a whole number, in f64 */
static Node zeta(Build *b, Node s, Node q)
{
	enum { TERMS = 32 };
	/* B(2j) / (2j)! */
	static const double tail[] = {1.0 / 12,         -1.0 / 720,     1.0 / 30240,
				      -1.0 / 1209600,   1.0 / 47900160, -691.0 / 1307674368000,
				      1.0 / 74724249600};
	Node minus = b_un(b, OP_neg, s), sum = b_bin(b, OP_pow, q, minus);
	for (int k = 1; k < TERMS; k++) {
		Node term = b_bin(b, OP_pow, b_bin_scalar(b, OP_add, q, k), minus);
		sum = b_bin(b, OP_add, sum, term);
	}
	Node w = b_bin_scalar(b, OP_add, q, TERMS), power = b_bin(b, OP_pow, w, minus);
	/* w^(1-s) / (s-1) + w^-s / 2 */
	Node first = b_bin(b, OP_mul, power, w);
	first = b_bin(b, OP_div, first, b_bin_scalar(b, OP_sub, s, 1));
	sum = b_bin(b, OP_add, sum, first);
	sum = b_bin(b, OP_add, sum, b_bin_scalar(b, OP_mul, power, 0.5));
	/* sum over j of B(2j)/(2j)! * s (s+1) ... (s+2j-2) * w^(-s-2j+1) */
	Node square = b_bin(b, OP_mul, w, w),
	     factor = b_bin(b, OP_mul, s, b_bin(b, OP_div, power, w));
	for (int j = 0; j < 7; j++) {
		sum = b_bin(b, OP_add, sum, b_bin_scalar(b, OP_mul, factor, tail[j]));
		Node up = b_bin_scalar(b, OP_add, s, 2 * j + 1);
		up = b_bin(b, OP_mul, up, b_bin_scalar(b, OP_add, s, 2 * j + 2));
		factor = b_bin(b, OP_div, b_bin(b, OP_mul, factor, up), square);
	}
	return sum;
}

/* The argument in f64: a tensor or a scalar. */
static Node zeta_argument(Build *b, Node n, const char *name, Node *tensor)
{
	uint32_t first;
	*tensor = node_args(b->g, n, name, &first) ? arg(b, n, name) : (Node){0};
	return tensor->i ? wide(b, *tensor) : aten_scalar_as(b, node_attr(b->g, n, name), DT_f64);
}

static Node build_zeta(Build *b, Node n)
{
	Node t[2], s = zeta_argument(b, n, "self", &t[0]), q = zeta_argument(b, n, "other", &t[1]);
	if (!s.i || !q.i)
		return (Node){0};
	const Attr *scalar = node_attr(b->g, n, t[0].i ? "other" : "self");
	DType d = dtype_to_float(aten_scalar_dtype(b_promote(b, t, 2), scalar));
	Node y = zeta(b, s, q), nan = constant(b, (double)NAN), inf = constant(b, (double)INFINITY);
	/* s < 1 is not defined, s = 1 is the pole; so are q = 0, -1, ..., and q < 0 needs a whole
	 * s. */
	Node whole_q = b_bin(b, OP_eq, q, b_un(b, OP_floor, q));
	Node whole_s = b_bin(b, OP_eq, s, b_un(b, OP_floor, s));
	Node low = b_bin_scalar(b, OP_le, q, 0);
	y = b_select(b, b_bin(b, OP_bit_and, low, b_un(b, OP_bit_not, whole_s)), nan, y);
	y = b_select(b, b_bin(b, OP_bit_and, low, whole_q), inf, y);
	y = b_select(b, b_bin_scalar(b, OP_lt, s, 1), nan, y);
	return narrow(b, b_select(b, b_bin_scalar(b, OP_eq, s, 1), inf, y), d);
}
OP(aten_special_zeta){
	.schema = "aten.special_zeta(Tensor self, Tensor other) -> Tensor",
	.build = build_zeta,
	.sample = "f32[n=3, 4] in 1.125..8, f32[4] in 0.25..6; f32[4] of 1 0.5 2 3, f32[4] of 2 2 -1.5 0",
};
OP(aten_special_zeta_other_scalar){
	.schema = "aten.special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor",
	.build = build_zeta,
	.sample = "f32[n=2, 3] in 1.125..8, other=1.5",
};
OP(aten_special_zeta_self_scalar){
	.schema = "aten.special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor",
	.build = build_zeta,
	.sample = "self=2.5, f32[n=2, 3] in 0.25..6",
};

/* (-1)^(n+1) n! zeta(n + 1, x) */
static Node build_polygamma(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t order = aten_int(b, n, "n");
	DType d = aten_dtype(b, x);
	if (!x.i || order < 0 || order > 100)
		return b_error(b, "polygamma of order %lld", (long long)order);
	if (order == 0)
		return b_un(b, OP_digamma, aten_to_float(b, x));
	double factor = order % 2 ? 1 : -1;
	for (int64_t k = 2; k <= order; k++)
		factor *= (double)k;
	Node q = wide(b, x), y = zeta(b, constant(b, (double)(order + 1)), q);
	Node pole = b_bin(b, OP_eq, q, b_un(b, OP_floor, q));
	pole = b_bin(b, OP_bit_and, pole, b_bin_scalar(b, OP_le, q, 0));
	y = b_select(b, pole, constant(b, (double)INFINITY), y);
	return narrow(b, b_bin_scalar(b, OP_mul, y, factor), d);
}
OP(aten_polygamma){
	.schema = "aten.polygamma(int n, Tensor self) -> Tensor",
	.aliases = "aten.special_polygamma",
	.build = build_polygamma,
	.sample = "n=0, f32[2, 3] in 0.25..6; n=1, f32[2, 3] in 0.25..6; n=2, f32[2, 3] in 0.25..6; "
		  "n=3, f32[2, 3] in 0.25..6",
};

OP(aten_special_spherical_bessel_j0){
	.schema = "aten.special_spherical_bessel_j0(Tensor x) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "select(lt(abs(x), 0.5), 1 + "
		  "x*x*(x*x*(x*x*(x*x*(x*x*(x*x/6227020800 - "
		  "1/39916800) + 1/362880) - 1/5040) + 1/120) - 1/6), sin(x) / x)",
	.sample = "f32[n=3, 4] in -6..6; f32[4] of 0.4375 0.5 0 -0.25",
};
