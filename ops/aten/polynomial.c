/* ATen's orthogonal polynomials of order n, which is a tensor too: Chebyshev's by angle, the others
 * by recurrence. */
#include "ops/aten/priv.h"

#include <math.h>

static Node constant(Build *b, double v)
{
	return b_scalar(b, DT_f64, v);
}

/* Returns an operand that is a tensor or, in some overloads, a Python scalar beside the other
 * one. */
static Node operand(Build *b, Node n, const char *name, const char *other)
{
	Op op = node_op(b->g, n);
	if (op_schema(op)->arg[op_arg_index(op, name)].kind == ARG_tensor)
		return arg(b, n, name);
	Node beside = arg(b, n, other);
	return beside.i ? aten_scalar_arg(b, n, name, beside) : beside;
}

/* Reads x and the order truncated, in the result's dtype *d: as f32 where that is a half. */
static bool polynomial_operands(Build *b, Node n, Node *x, Node *k, DType *d)
{
	*x = operand(b, n, "x", "n");
	*k = operand(b, n, "n", "x");
	if (!x->i || !k->i)
		return false;
	*d = dtype_to_float(b_promote(b, (Node[]){*x, *k}, 2));
	*x = b_convert(b, *x, dtype_compute(*d));
	*k = b_convert(b, *k, dtype_compute(*d));
	Attr v;
	bool known = b_splat(b, *k, &v) && aten_rank(b, *k) == 0;
	*k = known ? aten_like(b, *k, trunc(v.f)) : b_un(b, OP_trunc, *k);
	return true;
}

/* Returns y from order 1 on; 1 for order 0, whatever x is; 0 below, and for NaN. */
static Node from_order_zero(Build *b, Node k, Node y)
{
	y = b_select(b, b_bin_scalar(b, OP_gt, k, 0), y, aten_like(b, y, 0));
	return b_select(b, b_bin_scalar(b, OP_eq, k, 0), aten_like(b, y, 1), y);
}

/* ---- Chebyshev polynomials by angle: x = cos t inside -1..1, +-cosh t outside ---- */

typedef enum { FIRST, SECOND, THIRD, FOURTH } Kind;
enum { SHIFTED = 4 }; /* of 2 x - 1 */

/* Returns num / den, and the limit where den is 0. */
static Node ratio(Build *b, Node num, Node den, Node limit)
{
	Node zero = b_bin_scalar(b, OP_eq, den, 0);
	return b_select(b, zero, limit, b_bin(b, OP_div, num, den));
}

/* Returns cos or cosh, sin or sinh of k * t. */
static Node wave(Build *b, bool inside, bool odd, Node k, Node t)
{
	Op op = inside ? (odd ? OP_sin : OP_cos) : (odd ? OP_sinh : OP_cosh);
	return b_un(b, op, b_bin(b, OP_mul, k, t));
}

/* Computes it for x = cos t or cosh t, t >= 0; n is a whole number >= 0. */
static Node by_angle(Build *b, Kind kind, Node t, Node n, bool inside)
{
	Node half = constant(b, 0.5), one = constant(b, 1);
	Node mid = b_bin_scalar(b, OP_add, n, 0.5), next = b_bin_scalar(b, OP_add, n, 1);
	Node num;
	switch (kind) {
	case FIRST:
		return wave(b, inside, false, n, t);
	case SECOND:
		num = wave(b, inside, true, next, t);
		return ratio(b, num, wave(b, inside, true, one, t), next);
	case THIRD:
		num = wave(b, inside, false, mid, t);
		return ratio(b, num, wave(b, inside, false, half, t), one);
	default:
		num = wave(b, inside, true, mid, t);
		mid = b_bin_scalar(b, OP_mul, mid, 2);
		return ratio(b, num, wave(b, inside, true, half, t), mid);
	}
}

/* Builds P by P_n(-x) = (-1)^n Q_n(x), where Q is P but for third and fourth, which change
 * places. */
static Node chebyshev(Build *b, Node n, int how)
{
	const Kind kind = (Kind)(how & ~SHIFTED);
	Node x, k;
	DType d;
	if (!polynomial_operands(b, n, &x, &k, &d))
		return (Node){0};
	x = b_convert(b, x, DT_f64);
	k = b_convert(b, k, DT_f64);
	if (how & SHIFTED)
		x = b_bin_scalar(b, OP_sub, b_bin_scalar(b, OP_mul, x, 2), 1);
	Node a = b_un(b, OP_abs, x), neg = b_bin_scalar(b, OP_lt, x, 0);
	/* what is not taken is of another argument, so that its derivative is finite */
	Node in = b_bin_scalar(b, OP_le, a, 1);
	Node inner = b_un(b, OP_acos, b_select(b, in, a, aten_like(b, a, 0)));
	Node outer = b_un(b, OP_acosh, b_select(b, in, aten_like(b, a, 2), a));
	Kind other = kind == THIRD ? FOURTH : kind == FOURTH ? THIRD : kind;
	Node y = by_angle(b, kind, inner, k, true);
	y = b_select(b, in, y, by_angle(b, kind, outer, k, false));
	Node z = by_angle(b, other, inner, k, true);
	z = b_select(b, in, z, by_angle(b, other, outer, k, false));
	Node odd = b_bin_scalar(b, OP_eq, b_bin_scalar(b, OP_remainder, k, 2), 1);
	z = b_select(b, odd, b_un(b, OP_neg, z), z);
	y = b_select(b, neg, z, y);
	y = b_select(b, b_un(b, OP_isnan, x), constant(b, (double)NAN), y);
	return b_convert(b, from_order_zero(b, k, y), d);
}
/* ---- Hermite's, Laguerre's, Legendre's: p(k + 1) from p(k) and p(k - 1), in PyTorch's order of
 * operations ---- */

typedef enum { HERMITE_H, HERMITE_HE, LAGUERRE, LEGENDRE } Family;

/* Beyond these orders PyTorch's Hermite polynomials are NaN. The others have no such end; ours take
 * as many steps as a known order has, else so many. */
enum { HERMITE_F32 = 128, HERMITE_F64 = 512, STEPS = 1024, MOST_STEPS = 1 << 20 };

static bool is_hermite(Family f)
{
	return f == HERMITE_H || f == HERMITE_HE;
}

static Node order_one(Build *b, Family f, Node x)
{
	switch (f) {
	case HERMITE_H:
		return b_bin(b, OP_add, x, x);
	case LAGUERRE:
		return b_bin(b, OP_sub, aten_like(b, x, 1), x);
	default:
		return x;
	}
}

/* Computes order k + 1 from q of order k and p of order k - 1. */
static Node next_order(Build *b, Family f, Node x, Node k, Node q, Node p)
{
	Node twice = b_bin(b, OP_add, k, k), up = b_bin_scalar(b, OP_add, k, 1), y;
	switch (f) {
	case HERMITE_H:
		y = b_bin(b, OP_mul, b_bin(b, OP_add, x, x), q);
		return b_bin(b, OP_sub, y, b_bin(b, OP_mul, twice, p));
	case HERMITE_HE:
		return b_bin(b, OP_sub, b_bin(b, OP_mul, x, q), b_bin(b, OP_mul, k, p));
	case LAGUERRE:
		y = b_bin(b, OP_add, twice, b_bin(b, OP_sub, aten_like(b, x, 1), x));
		y = b_bin(b, OP_mul, y, q);
		break;
	default:
		y = b_bin(b, OP_mul, b_bin(b, OP_mul, b_bin_scalar(b, OP_add, twice, 1), x), q);
	}
	return b_bin(b, OP_div, b_bin(b, OP_sub, y, b_bin(b, OP_mul, k, p)), up);
}

/* Makes the body of the scan: (p, q), k, (x, n) to the next (p, q) where k < n. */
static Graph *step_body(Build *b, Family f, Node x, Node n)
{
	Graph *g = graph_beside(b->g, "recurrence");
	Build in = {.g = g, .loc = b->loc, .where = b->where};
	TypeId many = node_type_id(b->g, x), one = ir_type(g->ir, node_dtype(b->g, x), 0, NULL);
	Node p = graph_add_input(g, "p", INPUT_USER, many),
	     q = graph_add_input(g, "q", INPUT_USER, many);
	Node k = graph_add_input(g, "k", INPUT_USER, one);
	Node xs = graph_add_input(g, "x", INPUT_USER, many);
	Node order = graph_add_input(g, "n", INPUT_USER, node_type_id(b->g, n));
	Node more = b_bin(&in, OP_lt, k, order);
	Node next = next_order(&in, f, xs, k, q, p);
	graph_add_output(g, "p", b_select(&in, more, q, p), -1);
	graph_add_output(g, "q", b_select(&in, more, next, q), -1);
	return g;
}

/* Computes order n, up to `highest`. */
static Node recurrence(Build *b, Family f, Node x, Node n, int64_t highest)
{
	Shape s;
	Shape sx = aten_shape(b, x), sn = aten_shape(b, n);
	if (!aten_broadcast_shape(b, &sx, &sn, &s))
		return (Node){0};
	x = aten_expand_shape(b, x, &s);
	n = aten_expand_shape(b, n, &s);
	DType d = node_dtype(b->g, x);
	if (highest < 2)
		return order_one(b, f, x);
	Node in[] = {b_full(b, d, 1, s.rank, s.dim), order_one(b, f, x),
		     b_bin_scalar(b, OP_add, b_iota(b, d, b_int(b, highest - 1)), 1), x, n};
	Ir *ir = b->g->ir;
	Attr attr[] = {attr_int(ir, 2),           attr_int(ir, 1),
		       attr_int(ir, 2),           attr_graph(step_body(b, f, x, n)),
		       attr_int(ir, highest - 1), attr_bool(false)};
	return b_get(b, b_node(b, OP_scan, in, 5, attr, 6), 1);
}

/* Returns the highest order that is computed. */
static int64_t highest_order(Build *b, Family f, Node k)
{
	Attr v;
	bool known = b_splat(b, k, &v);
	int64_t end = known ? MOST_STEPS : STEPS;
	if (is_hermite(f))
		end = node_dtype(b->g, k) == DT_f64 ? HERMITE_F64 : HERMITE_F32;
	return known && v.f < (double)end ? (int64_t)fmax(v.f, 0) : end;
}

static void require_all(Build *b, Node cond, const char *message)
{
	uint32_t dims = (1u << aten_rank(b, cond)) - 1;
	cond = aten_reduce(b, REDUCE_AND, cond, dims, false);
	Attr attr[] = {attr_none(), attr_str(b->g->ir, message)};
	b_node(b, OP_assert, &cond, 1, attr, 2);
}

static Node polynomial(Build *b, Node n, int f)
{
	Node x, k;
	DType d;
	Attr v;
	if (!polynomial_operands(b, n, &x, &k, &d))
		return (Node){0};
	int64_t highest = highest_order(b, f, k);
	Node y = recurrence(b, f, x, k, highest);
	if (!y.i)
		return y;
	Node within = b_un(b, OP_bit_not, b_bin_scalar(b, OP_gt, k, (double)highest));
	if (is_hermite(f))
		y = b_select(b, within, y, aten_like(b, y, (double)NAN));
	else if (!b_splat(b, k, &v))
		require_all(b, within, "order of a polynomial above 1024");
	else if (v.f > (double)highest)
		return b_error(b, "polynomial of order %g, expected at most %d", v.f, MOST_STEPS);
	return b_convert(b, from_order_zero(b, k, y), d);
}

OP(aten_special_chebyshev_polynomial_t){
	.schema = "aten.special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
	.build_as = {chebyshev, FIRST},
	.sample = "f32[8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, f32[8, 1] of 0 1 2 3 4 5 7 -1",
	.overloads = (const Overload[]){
		{.schema = "aten.special_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> "
			   "Tensor",
		 .sample = "x=0.3, f32[n=8] of 0 1 2 3 4 5 7 -1; x=1.0, f32[4] of 0 1 4 7; "
			   "x=-1.0, f32[4] of 0 1 4 7"},
		{.schema = "aten.special_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> "
			   "Tensor",
		 .sample = "f32[n=8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, n=6; "
			   "f32[4] of -1.5 -1 0.25 1, n=1; f32[4] of -1.5 -1 0.25 1, n=2; "
			   "f32[3] of -1 0 1, n=0"},
		{.schema = "aten.special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
		 .build_as = {chebyshev, SECOND}},
		{.schema = "aten.special_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> "
			   "Tensor",
		 .build_as = {chebyshev, SECOND},
		 .sample = "x=0.3, f32[n=8] of 0 1 2 3 4 5 7 -1; x=1.0, f32[4] of 0 1 4 7; "
			   "x=-1.0, f32[4] of 0 1 4 7"},
		{.schema = "aten.special_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> "
			   "Tensor",
		 .build_as = {chebyshev, SECOND},
		 .sample = "f32[n=8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, n=6; "
			   "f32[4] of -1.5 -1 0.25 1, n=1; f32[4] of -1.5 -1 0.25 1, n=2; "
			   "f32[3] of -1 0 1, n=0"},
		{.schema = "aten.special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
		 .build_as = {chebyshev, THIRD}},
		{.schema = "aten.special_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> "
			   "Tensor",
		 .build_as = {chebyshev, THIRD},
		 .sample = "x=0.3, f32[n=8] of 0 1 2 3 4 5 7 -1; x=1.0, f32[4] of 0 1 4 7; "
			   "x=-1.0, f32[4] of 0 1 4 7"},
		{.schema = "aten.special_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> "
			   "Tensor",
		 .build_as = {chebyshev, THIRD},
		 .sample = "f32[n=8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, n=6; "
			   "f32[4] of -1.5 -1 0.25 1, n=1; f32[4] of -1.5 -1 0.25 1, n=2; "
			   "f32[3] of -1 0 1, n=0"},
		{.schema = "aten.special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
		 .build_as = {chebyshev, FOURTH}},
		{.schema = "aten.special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> "
			   "Tensor",
		 .build_as = {chebyshev, FOURTH},
		 .sample = "x=0.3, f32[n=8] of 0 1 2 3 4 5 7 -1; x=1.0, f32[4] of 0 1 4 7; "
			   "x=-1.0, f32[4] of 0 1 4 7"},
		{.schema = "aten.special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> "
			   "Tensor",
		 .build_as = {chebyshev, FOURTH},
		 .sample = "f32[n=8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, n=6; "
			   "f32[4] of -1.5 -1 0.25 1, n=1; f32[4] of -1.5 -1 0.25 1, n=2; "
			   "f32[3] of -1 0 1, n=0"},
	},
};
OP(aten_special_shifted_chebyshev_polynomial_t){
	.schema = "aten.special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
	.build_as = {chebyshev, FIRST | SHIFTED},
	.sample = "f32[8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, f32[8, 1] of 0 1 2 3 4 5 7 -1",
	.overloads = (const Overload[]){
		{.schema = "aten.special_shifted_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor "
			   "n) -> Tensor",
		 .sample = "x=0.3, f32[n=8] of 0 1 2 3 4 5 7 -1; x=1.0, f32[4] of 0 1 4 7; "
			   "x=-1.0, f32[4] of 0 1 4 7"},
		{.schema = "aten.special_shifted_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar "
			   "n) -> Tensor",
		 .sample = "f32[n=8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, n=6; "
			   "f32[4] of -1.5 -1 0.25 1, n=1; f32[4] of -1.5 -1 0.25 1, n=2; "
			   "f32[3] of -1 0 1, n=0"},
		{.schema = "aten.special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> "
			   "Tensor",
		 .build_as = {chebyshev, SECOND | SHIFTED}},
		{.schema = "aten.special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor "
			   "n) -> Tensor",
		 .build_as = {chebyshev, SECOND | SHIFTED},
		 .sample = "x=0.3, f32[n=8] of 0 1 2 3 4 5 7 -1; x=1.0, f32[4] of 0 1 4 7; "
			   "x=-1.0, f32[4] of 0 1 4 7"},
		{.schema = "aten.special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar "
			   "n) -> Tensor",
		 .build_as = {chebyshev, SECOND | SHIFTED},
		 .sample = "f32[n=8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, n=6; "
			   "f32[4] of -1.5 -1 0.25 1, n=1; f32[4] of -1.5 -1 0.25 1, n=2; "
			   "f32[3] of -1 0 1, n=0"},
		{.schema = "aten.special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> "
			   "Tensor",
		 .build_as = {chebyshev, THIRD | SHIFTED}},
		{.schema = "aten.special_shifted_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor "
			   "n) -> Tensor",
		 .build_as = {chebyshev, THIRD | SHIFTED},
		 .sample = "x=0.3, f32[n=8] of 0 1 2 3 4 5 7 -1; x=1.0, f32[4] of 0 1 4 7; "
			   "x=-1.0, f32[4] of 0 1 4 7"},
		{.schema = "aten.special_shifted_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar "
			   "n) -> Tensor",
		 .build_as = {chebyshev, THIRD | SHIFTED},
		 .sample = "f32[n=8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, n=6; "
			   "f32[4] of -1.5 -1 0.25 1, n=1; f32[4] of -1.5 -1 0.25 1, n=2; "
			   "f32[3] of -1 0 1, n=0"},
		{.schema = "aten.special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> "
			   "Tensor",
		 .build_as = {chebyshev, FOURTH | SHIFTED}},
		{.schema = "aten.special_shifted_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor "
			   "n) -> Tensor",
		 .build_as = {chebyshev, FOURTH | SHIFTED},
		 .sample = "x=0.3, f32[n=8] of 0 1 2 3 4 5 7 -1; x=1.0, f32[4] of 0 1 4 7; "
			   "x=-1.0, f32[4] of 0 1 4 7"},
		{.schema = "aten.special_shifted_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar "
			   "n) -> Tensor",
		 .build_as = {chebyshev, FOURTH | SHIFTED},
		 .sample = "f32[n=8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, n=6; "
			   "f32[4] of -1.5 -1 0.25 1, n=1; f32[4] of -1.5 -1 0.25 1, n=2; "
			   "f32[3] of -1 0 1, n=0"},
	},
};
OP(aten_special_hermite_polynomial_h){
	.schema = "aten.special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor",
	.build_as = {polynomial, HERMITE_H},
	.sample = "f32[8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, f32[8, 1] of 0 1 2 3 4 5 7 -1",
	.overloads = (const Overload[]){
		{.schema = "aten.special_hermite_polynomial_h.x_scalar(Scalar x, Tensor n) -> "
			   "Tensor",
		 .sample = "x=0.3, f32[n=8] of 0 1 2 3 4 5 7 -1; x=1.0, f32[4] of 0 1 4 7; "
			   "x=-1.0, f32[4] of 0 1 4 7"},
		{.schema = "aten.special_hermite_polynomial_h.n_scalar(Tensor x, Scalar n) -> "
			   "Tensor",
		 .sample = "f32[n=8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, n=6; "
			   "f32[4] of -1.5 -1 0.25 1, n=1; f32[4] of -1.5 -1 0.25 1, n=2; "
			   "f32[3] of -1 0 1, n=0"},
		{.schema = "aten.special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor",
		 .build_as = {polynomial, HERMITE_HE}},
		{.schema = "aten.special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> "
			   "Tensor",
		 .build_as = {polynomial, HERMITE_HE},
		 .sample = "x=0.3, f32[n=8] of 0 1 2 3 4 5 7 -1; x=1.0, f32[4] of 0 1 4 7; "
			   "x=-1.0, f32[4] of 0 1 4 7"},
		{.schema = "aten.special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> "
			   "Tensor",
		 .build_as = {polynomial, HERMITE_HE},
		 .sample = "f32[n=8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, n=6; "
			   "f32[4] of -1.5 -1 0.25 1, n=1; f32[4] of -1.5 -1 0.25 1, n=2; "
			   "f32[3] of -1 0 1, n=0"},
	},
};
OP(aten_special_laguerre_polynomial_l){
	.schema = "aten.special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor",
	.build_as = {polynomial, LAGUERRE},
	.sample = "f32[8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, f32[8, 1] of 0 1 2 3 4 5 7 -1",
	.overloads = (const Overload[]){
		{.schema = "aten.special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> "
			   "Tensor",
		 .sample = "x=0.3, f32[n=8] of 0 1 2 3 4 5 7 -1; x=1.0, f32[4] of 0 1 4 7; "
			   "x=-1.0, f32[4] of 0 1 4 7"},
		{.schema = "aten.special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> "
			   "Tensor",
		 .sample = "f32[n=8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, n=6; "
			   "f32[4] of -1.5 -1 0.25 1, n=1; f32[4] of -1.5 -1 0.25 1, n=2; "
			   "f32[3] of -1 0 1, n=0"},
	},
};
OP(aten_special_legendre_polynomial_p){
	.schema = "aten.special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor",
	.build_as = {polynomial, LEGENDRE},
	.sample = "f32[8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, f32[8, 1] of 0 1 2 3 4 5 7 -1",
	.overloads = (const Overload[]){
		{.schema = "aten.special_legendre_polynomial_p.x_scalar(Scalar x, Tensor n) -> "
			   "Tensor",
		 .sample = "x=0.3, f32[n=8] of 0 1 2 3 4 5 7 -1; x=1.0, f32[4] of 0 1 4 7; "
			   "x=-1.0, f32[4] of 0 1 4 7"},
		{.schema = "aten.special_legendre_polynomial_p.n_scalar(Tensor x, Scalar n) -> "
			   "Tensor",
		 .sample = "f32[n=8] of -1 -0.6 -0.25 0 0.3 0.75 1 1.5, n=6; "
			   "f32[4] of -1.5 -1 0.25 1, n=1; f32[4] of -1.5 -1 0.25 1, n=2; "
			   "f32[3] of -1 0 1, n=0"},
	},
};
