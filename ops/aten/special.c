/* ATen special functions that are short formulas. Those that lose digits on the way run in f64. */
#include "ops/aten/priv.h"
#include "ops/prim/rules_priv.h"
#include "ops/rules/batch.h"

#include <math.h>

OP(aten_special_ndtr){
	.schema = "aten.special_ndtr(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "mul(erfc(mul(self, -0.7071067811865476)), 0.5)",
	.sample = "f32[n=3, 4] in -4..4",
};

OP(aten_special_i0e){
	.schema = "aten.special_i0e(Tensor self) -> Tensor",
	.aliases = "prims.bessel_i0e",
	.promote = PROMOTE_FLOAT,
	.expand = "i0e(self)",
	.sample = "f32[n=3, 4] in -12..12",
};
OP(aten_special_i1e){
	.schema = "aten.special_i1e(Tensor self) -> Tensor",
	.aliases = "prims.bessel_i1e",
	.promote = PROMOTE_FLOAT,
	.expand = "i1e(self)",
	.sample = "f32[n=3, 4] in -12..12",
};
OP(aten_i0){
	.schema = "aten.i0(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "i0(self)",
	.sample = "f32[n=3, 4] in -12..12",
	.overloads = (const Overload[]){
		{.schema = "aten.special_i0(Tensor self) -> Tensor",
		 .aliases = "prims.bessel_i0"},
		{.schema = "aten.special_modified_bessel_i0(Tensor self) -> Tensor"},
	},
};
OP(aten_special_i1){
	.schema = "aten.special_i1(Tensor self) -> Tensor",
	.aliases = "prims.bessel_i1",
	.promote = PROMOTE_FLOAT,
	.expand = "i1(self)",
	.sample = "f32[n=3, 4] in -12..12",
	.overloads = (const Overload[]){
		{.schema = "aten.special_modified_bessel_i1(Tensor self) -> Tensor"},
	},
};
OP(aten_igamma){
	.schema = "aten.igamma(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.igamma",
	.promote = PROMOTE_FLOAT,
	.expand = "igamma(self, other)",
	.sample = "f32[n=3, 4] in 0.125..12, f32[4] in 0.25..12; f32[5] of 0 1 0 30 2, "
		  "f32[5] of 1 0 0 28 inf",
	.overloads = (const Overload[]){
		{.schema = "aten.special_gammainc(Tensor self, Tensor other) -> Tensor"},
	},
};
OP(aten_igammac){
	.schema = "aten.igammac(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.igammac",
	.promote = PROMOTE_FLOAT,
	.expand = "igammac(self, other)",
	.sample = "f32[n=3, 4] in 0.125..12, f32[4] in 0.25..12; f32[5] of 0 1 0 30 2, "
		  "f32[5] of 1 0 0 28 inf",
	.overloads = (const Overload[]){
		{.schema = "aten.special_gammaincc(Tensor self, Tensor other) -> Tensor"},
	},
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

/* Converts the operand to f64. */
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

/* Builds p (p - 1) / 4 log(pi) + sum of lgamma(x - j / 2) for j < p. */
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

/* An exponent s in f64; `whole` where it is known to be that and small. */
typedef struct {
	Node s, minus;
	uint32_t whole;
} Exponent;

static Exponent exponent(Build *b, Node s, int64_t whole)
{
	return (Exponent){s, b_un(b, OP_neg, s), whole > 0 && whole <= 8 ? (uint32_t)whole : 0};
}

/* Returns x^-s. */
static Node inverse_power(Build *b, Node x, const Exponent *e)
{
	Node y = {0};
	if (!e->whole)
		return b_bin(b, OP_pow, x, e->minus);
	for (uint32_t n = e->whole; n; n >>= 1) {
		if (n & 1)
			y = y.i ? b_bin(b, OP_mul, y, x) : x;
		if (n > 1)
			x = b_bin(b, OP_mul, x, x);
	}
	return b_bin(b, OP_div, constant(b, 1), y);
}

/* Returns the sum of (q + k)^-s over k >= 0, for q >= 0, in f64. */
static Node zeta_above(Build *b, const Exponent *e, Node q)
{
	enum { TERMS = 32 };
	/* B(2j) / (2j)! */
	static const double tail[] = {1.0 / 12,         -1.0 / 720,     1.0 / 30240,
				      -1.0 / 1209600,   1.0 / 47900160, -691.0 / 1307674368000,
				      1.0 / 74724249600};
	Node sum = inverse_power(b, q, e);
	for (int k = 1; k < TERMS; k++)
		sum = b_bin(b, OP_add, sum, inverse_power(b, b_bin_scalar(b, OP_add, q, k), e));
	Node w = b_bin_scalar(b, OP_add, q, TERMS), power = inverse_power(b, w, e);
	/* w^(1-s) / (s-1) + w^-s / 2 */
	Node first = b_bin(b, OP_mul, power, w);
	first = b_bin(b, OP_div, first, b_bin_scalar(b, OP_sub, e->s, 1));
	sum = b_bin(b, OP_add, sum, first);
	sum = b_bin(b, OP_add, sum, b_bin_scalar(b, OP_mul, power, 0.5));
	/* sum over j of B(2j)/(2j)! * s (s+1) ... (s+2j-2) * w^(-s-2j+1) */
	Node square = b_bin(b, OP_mul, w, w),
	     factor = b_bin(b, OP_mul, e->s, b_bin(b, OP_div, power, w));
	for (int j = 0; j < 7; j++) {
		sum = b_bin(b, OP_add, sum, b_bin_scalar(b, OP_mul, factor, tail[j]));
		Node up = b_bin_scalar(b, OP_add, e->s, 2 * j + 1);
		up = b_bin(b, OP_mul, up, b_bin_scalar(b, OP_add, e->s, 2 * j + 2));
		factor = b_bin(b, OP_div, b_bin(b, OP_mul, factor, up), square);
	}
	return sum;
}

/* Returns the same for all q, where s is a whole number if q < 0. There the sum over all
 * integers k, of which only the distance a of q from the nearest one matters, loses the terms k
 * < 0. By pairs, so that what cancels at a = 1/2 cancels to the bit. */
static Node zeta(Build *b, const Exponent *e, Node q)
{
	Node below = b_bin_scalar(b, OP_lt, q, 0), f = b_bin(b, OP_sub, q, b_un(b, OP_round, q));
	/* no poles where it is not used, nor in derivatives */
	Node a = b_select(b, below, b_un(b, OP_abs, f), constant(b, 0.5));
	Node one = constant(b, 1), other = b_bin(b, OP_sub, one, a);
	Node half = b_bin_scalar(b, OP_mul, e->s, 0.5),
	     whole = b_bin_scalar(b, OP_mul, b_un(b, OP_floor, half), 2);
	/* (-1)^s */
	Node sign =
		b_bin(b, OP_sub, one, b_bin_scalar(b, OP_mul, b_bin(b, OP_sub, e->s, whole), 2));
	Node above = zeta_above(b, e, b_select(b, below, b_bin(b, OP_sub, one, q), q));
	Node heads = b_bin(b, OP_add, inverse_power(b, a, e),
			   b_bin(b, OP_mul, sign, inverse_power(b, other, e)));
	Node left = zeta_above(b, e, b_bin_scalar(b, OP_add, a, 1)),
	     right = zeta_above(b, e, b_bin_scalar(b, OP_add, other, 1));
	Node all = b_bin(b, OP_add, heads, b_bin(b, OP_add, left, b_bin(b, OP_mul, sign, right)));
	all = b_bin(b, OP_mul, b_select(b, b_bin_scalar(b, OP_lt, f, 0), sign, one), all);
	return b_select(b, below, b_bin(b, OP_sub, all, b_bin(b, OP_mul, sign, above)), above);
}

/* Returns the argument in f64: a tensor or a scalar. */
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
	Exponent e = exponent(b, s, 0);
	Node y = zeta(b, &e, q), nan = constant(b, (double)NAN),
	     inf = constant(b, (double)INFINITY);
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
	.aliases = "prims.zeta",
	.promote = PROMOTE_FLOAT,
	.build = build_zeta,
	.sample = "f32[n=3, 4] in 1.125..8, f32[4] in 0.25..6; f32[4] of 1 0.5 2 3, "
		  "f32[4] of 2 2 -1.5 0; "
		  "f64[6] of 1.0625 2 3.5 12 2 40, f64[6] of 0.25 1 2.5 0.75 30 3; "
		  "f64[4] of 2 3 4 5, f64[4] of -0.375 -40.25 -8.5 -33",
	.overloads = (const Overload[]){
		{.schema = "aten.special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=2, 3] in 1.125..8, other=1.5"},
		{.schema = "aten.special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor",
		 .sample = "self=2.5, f32[n=2, 3] in 0.25..6"},
	},
};

/* Builds (-1)^(n+1) n! zeta(n + 1, x). */
static Node build_polygamma(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t order = aten_int(b, n, "n");
	DType d = aten_dtype(b, x);
	if (!x.i || order < 0 || order > 168) /* 170! is finite */
		return b_error(b, "polygamma of order %lld, expected 0 to 168", (long long)order);
	if (order <= 1)
		return b_un(b, order ? OP_trigamma : OP_digamma, aten_to_float(b, x));
	double factor = order % 2 ? 1 : -1;
	for (int64_t k = 2; k <= order; k++)
		factor *= (double)k;
	Exponent e = exponent(b, constant(b, (double)(order + 1)), order + 1);
	Node q = wide(b, x), y = zeta(b, &e, q);
	Node pole = b_bin(b, OP_eq, q, b_un(b, OP_floor, q));
	pole = b_bin(b, OP_bit_and, pole, b_bin_scalar(b, OP_le, q, 0));
	y = b_select(b, pole, constant(b, (double)INFINITY), y);
	return narrow(b, b_bin_scalar(b, OP_mul, y, factor), d);
}
/* Returns the polygamma of the next order. */
static Node next_order(Build *b, Node x, int64_t order)
{
	Node in[] = {aten_to_float(b, x)};
	return b_call(b, OP_aten_polygamma, in, 1,
		      (Attr[]){attr_int(b->g->ir, order + 1), attr_none()}, 2);
}

static bool adjoint_polygamma(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	g[0] = b_bin(b, OP_mul, ct[0], next_order(b, arg(b, n, "self"), node_int(b->g, n, "n")));
	return g[0].i;
}

OP(aten_polygamma){
	.schema = "aten.polygamma(int n, Tensor self) -> Tensor",
	.aliases = "aten.special_polygamma",
	.build = build_polygamma,
	.adjoint = adjoint_polygamma,
	.batch = batch_element_wise,
	.sample = "n=0, f32[2, 3] in 0.25..6; n=1, f32[2, 3] in 0.25..6; "
		  "n=2, f32[2, 3] in 0.25..6; n=3, f32[2, 3] in 0.25..6; "
		  "n=5, f64[4] of 0.25 1 3.5 12; n=100, f64[2] of 1.5 20; "
		  "n=1, f64[4] of -0.375 -40.25 -8.5 -33.375; n=2, "
		  "f64[4] of -0.375 -40.25 -8.5 -33.375; n=7, f64[4] of -0.375 -40.25 -8.5 -33.375",
};

OP(aten_special_spherical_bessel_j0){
	.schema = "aten.special_spherical_bessel_j0(Tensor x) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "select(lt(abs(x), 0.5), 1 + "
		  "x*x*(x*x*(x*x*(x*x*(x*x*(x*x/6227020800 - "
		  "1/39916800) + 1/362880) - 1/5040) + 1/120) - 1/6), sin(x) / x)",
	.sample = "f32[n=3, 4] in -6..6; f32[4] of 0.4375 0.5 0 -0.25",
};

/* ---- quantiles of the normal distribution ---- */

/* Evaluates a polynomial, the highest power first. */
static Node polynomial(Build *b, Node x, const double *c, uint32_t n)
{
	Node y = aten_like(b, x, c[0]);
	for (uint32_t k = 1; k < n; k++)
		y = b_bin_scalar(b, OP_add, b_bin(b, OP_mul, y, x), c[k]);
	return y;
}

/* Cephes' rational approximations: about 1/2, and of the tails by z = sqrt(-2 log p) below and
 * above 8. */
static const double middle_p[] = {-5.99633501014107895267E1, 9.80010754185999661536E1,
				  -5.66762857469070293439E1, 1.39312609387279679503E1,
				  -1.23916583867381258016E0};
static const double middle_q[] = {1,
				  1.95448858338141759834E0,
				  4.67627912898881538453E0,
				  8.63602421390890590575E1,
				  -2.25462687854119370527E2,
				  2.00260212380060660359E2,
				  -8.20372256168333339912E1,
				  1.59056225126211695515E1,
				  -1.18331621121330003142E0};
static const double near_p[] = {
	4.05544892305962419923E0,   3.15251094599893866154E1,   5.71628192246421288162E1,
	4.40805073893200834700E1,   1.46849561928858024014E1,   2.18663306850790267539E0,
	-1.40256079171354495875E-1, -3.50424626827848203418E-2, -8.57456785154685413611E-4};
static const double near_q[] = {1,
				1.57799883256466749731E1,
				4.53907635128879210584E1,
				4.13172038254672030440E1,
				1.50425385692907503408E1,
				2.50464946208309415979E0,
				-1.42182922854787788574E-1,
				-3.80806407691578277194E-2,
				-9.33259480895457427372E-4};
static const double far_p[] = {
	3.23774891776946035970E0,  6.91522889068984211695E0,  3.93881025292474443415E0,
	1.33303460815807542389E0,  2.01485389549179081538E-1, 1.23716634817820021358E-2,
	3.01581553508235416007E-4, 2.65806974686737550832E-6, 6.23974539184983293730E-9};
static const double far_q[] = {1,
			       6.02427039364743014255E0,
			       3.67983563856160859403E0,
			       1.37702099489081330271E0,
			       2.16236993594496635890E-1,
			       1.34204006088543189037E-2,
			       3.28014464682127739104E-4,
			       2.89247864745380683936E-6,
			       6.79019408009981274425E-9};

static Node ndtri(Build *b, Node p)
{
	const double edge = 0.13533528323661269189; /* exp(-2) */
	Node upper = b_bin_scalar(b, OP_gt, p, 1 - edge),
	     q = b_select(b, upper, b_bin(b, OP_sub, aten_like(b, p, 1), p), p);
	Node tail = b_bin_scalar(b, OP_le, q, edge),
	     half = b_bin_scalar(b, OP_sub, b_select(b, tail, aten_like(b, p, 0.5), q), 0.5);
	Node w = b_bin(b, OP_mul, half, half);
	Node r = b_bin(
		b, OP_mul, w,
		b_bin(b, OP_div, polynomial(b, w, middle_p, 5), polynomial(b, w, middle_q, 9)));
	Node middle = b_bin_scalar(b, OP_mul, b_bin(b, OP_add, half, b_bin(b, OP_mul, half, r)),
				   2.50662827463100050242);
	Node z = b_un(b, OP_sqrt,
		      b_bin_scalar(b, OP_mul,
				   b_un(b, OP_log, b_select(b, tail, q, aten_like(b, p, edge))),
				   -2));
	Node v = b_un(b, OP_reciprocal, z),
	     x0 = b_bin(b, OP_sub, z, b_bin(b, OP_div, b_un(b, OP_log, z), z));
	Node near = b_bin(b, OP_div, polynomial(b, v, near_p, 9), polynomial(b, v, near_q, 9));
	Node far = b_bin(b, OP_div, polynomial(b, v, far_p, 9), polynomial(b, v, far_q, 9));
	Node x = b_bin(b, OP_sub, x0,
		       b_bin(b, OP_mul, v, b_select(b, b_bin_scalar(b, OP_lt, z, 8), near, far)));
	Node y = b_select(b, tail, b_select(b, upper, x, b_un(b, OP_neg, x)), middle);
	y = b_select(b, b_bin_scalar(b, OP_eq, p, 0), aten_like(b, p, -(double)INFINITY), y);
	return b_select(b, b_bin_scalar(b, OP_eq, p, 1), aten_like(b, p, (double)INFINITY), y);
}

static Node build_ndtri(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "self"));
	DType d = aten_dtype(b, x);
	Node y = x.i ? ndtri(b, aten_wide(b, x)) : x;
	return y.i ? b_convert(b, y, d) : y;
}
OP(aten_special_ndtri){
	.schema = "aten.special_ndtri(Tensor self) -> Tensor",
	.aliases = "prims.ndtri",
	.build = build_ndtri,
	.deriv = {"2.5066282746310002 * exp(y * y * 0.5)"},
	.sample = "f32[n=3, 4] in 0..1; f32[8] of 0 1 0.00001 1e-30 0.99 0.5 2 -1",
};
