/* Distributions whose exact methods need an unbounded number of draws: gamma and Dirichlet,
 * Poisson, binomial. A loop of the graph draws for all elements until the last one has its number;
 * an element keeps the number of its own round, so a batch, which takes as many rounds as its
 * slowest member, changes nothing. Everything is f64, as in PyTorch's kernels for CPUs. */
#include "ops/aten/priv.h"
#include "ops/prim/random.h"

#include <math.h>

#define KEY "u64[2] of 1 2"

/* ---- rounds ---- */

enum { MAX_STATE = 3, MAX_PARAM = 8 };

/* What a loop carries: tensors of one shape. */
typedef struct {
	uint32_t nstate, nparam;
	Node state[MAX_STATE]; /* f64; state[0] is the result */
	Node param[MAX_PARAM]; /* f64, the same in all rounds */
	Node open;             /* bool: the elements that have no number yet */
	Draw draw;             /* no key: rounds draw nothing */
	Shape shape;           /* of one member of a batch */
} Rounds;

/* One round: new states, and which elements are still open. */
typedef void RoundFn(Build *b, Rounds *r);

/* Adds inputs to a body like the operands of the loop, in the order of its schema: carries, then
 * parameters. */
static Build rounds_body(const Build *b, const char *name, const Rounds *r, Rounds *in)
{
	Build body = {.g = graph_beside(b->g, name), .loc = b->loc, .where = b->where};
	*in = *r;
	for (uint32_t k = 0; k < r->nstate; k++)
		in->state[k] = graph_add_input(body.g, "state", INPUT_USER,
					       node_type_id(b->g, r->state[k]));
	in->open = graph_add_input(body.g, "open", INPUT_USER, node_type_id(b->g, r->open));
	if (r->draw.key.i)
		in->draw.key =
			graph_add_input(body.g, "rng", INPUT_USER, node_type_id(b->g, r->draw.key));
	for (uint32_t k = 0; k < r->nparam; k++)
		in->param[k] = graph_add_input(body.g, "param", INPUT_USER,
					       node_type_id(b->g, r->param[k]));
	return body;
}

static Graph *rounds_test(const Build *b, const Rounds *r)
{
	Rounds in;
	Build body = rounds_body(b, "open", r, &in);
	Node any =
		b_reduce(&body, REDUCE_OR, in.open, (1u << aten_rank(&body, in.open)) - 1, DT_none);
	graph_add_output(body.g, "more", any, -1);
	return body.g;
}

static Graph *rounds_step(const Build *b, const Rounds *r, RoundFn *fn)
{
	Rounds in;
	Build body = rounds_body(b, "draw", r, &in);
	Node key = in.draw.key, open = in.open;
	Rounds out = in;
	fn(&body, &out);
	for (uint32_t k = 0; k < r->nstate; k++)
		graph_add_output(body.g, "state", b_select(&body, open, out.state[k], in.state[k]),
				 -1);
	graph_add_output(body.g, "open", b_bin(&body, OP_bit_and, open, out.open), -1);
	if (key.i)
		graph_add_output(body.g, "rng",
				 b_random_fold(&body, r->draw.cipher, key,
					       b_full_int(&body, DT_u64, 0, 0, NULL)),
				 -1);
	return body.g;
}

/* Runs the rounds and returns state 0 when no element is open any more. The keys of the rounds
 * are folded from one of this node's own, so that they are no keys of a loop around it. */
static Node rounds(Build *b, Rounds *r, RoundFn *fn)
{
	Node in[MAX_STATE + MAX_PARAM + 2];
	uint32_t n = 0;
	Ir *ir = b->g->ir;
	if (r->draw.key.i) {
		Node own = b_full_int(
			b, DT_u64, (int64_t)1 << 48 | (int64_t)r->draw.stream << 8 | r->draw.part++,
			0, NULL);
		r->draw.key = b_random_fold(b, r->draw.cipher, r->draw.key, own);
	}
	for (uint32_t k = 0; k < r->nstate; k++)
		in[n++] = r->state[k];
	in[n++] = r->open;
	if (r->draw.key.i)
		in[n++] = r->draw.key;
	uint32_t carries = n;
	for (uint32_t k = 0; k < r->nparam; k++)
		in[n++] = r->param[k];
	for (uint32_t k = 0; k < n; k++)
		if (!in[k].i)
			return (Node){0};
	Rounds begin = *r;
	begin.draw.part = 0;
	Attr attr[] = {attr_int(ir, carries), attr_int(ir, r->nparam),
		       attr_graph(rounds_test(b, &begin)), attr_graph(rounds_step(b, &begin, fn))};
	return b_get(b, b_node(b, OP_while, in, n, attr, 4), 0);
}

/* ---- helpers ---- */

static Node all(Build *b, Node x, double v)
{
	return aten_like(b, x, v);
}

#define both(b, x, y)  b_bin(b, OP_bit_and, x, y)
#define mul(b, x, y)   b_bin(b, OP_mul, x, y)
#define minus(b, x, y) b_bin(b, OP_sub, x, y)
#define over(b, x, y)  b_bin(b, OP_div, x, y)

static Node plus(Build *b, Node x, double v)
{
	return b_bin_scalar(b, OP_add, x, v);
}

static Node times(Build *b, Node x, double v)
{
	return b_bin_scalar(b, OP_mul, x, v);
}

static Node from(Build *b, double v, Node x)
{
	return b_bin(b, OP_sub, aten_like(b, x, v), x);
}

static Node is_finite(Build *b, Node x)
{
	return b_bin_scalar(b, OP_lt, b_un(b, OP_abs, x), (double)INFINITY);
}

static double smallest(DType d)
{
	return d == DT_f64 ? 0x1p-1022 : d == DT_f16 ? 0x1p-14 : 0x1p-126;
}

/* Reads the operands of a draw: f64 of the shape that they have together, and of a batch of
 * keys. */
static bool operands(Build *b, Node n, Draw *d, Shape *own, const char *const *name, Node *x,
		     uint32_t nx)
{
	Node given[2];
	*own = (Shape){0};
	TRY(draw_begin(b, n, d));
	for (uint32_t k = 0; k < nx; k++) {
		given[k] = arg(b, n, name[k]);
		if (!given[k].i || !dtype_is_float(aten_dtype(b, given[k])))
			return b_error(b,
				       "random numbers by parameters of %s, expected a float dtype",
				       dtype_name(aten_dtype(b, given[k])))
				.i;
	}
	TRY(b_common_shape(b, given, nx, &own->rank, own->dim));
	Shape wide = aten_shape(b, d->key);
	if (!wide.rank || aten_dtype(b, d->key) != DT_u64)
		return b_error(b, "a key of random numbers is u64[2], got %s",
			       type_str(b->g->ir, node_type_id(b->g, d->key)))
			.i;
	if (wide.rank - 1 + own->rank > MAX_RANK)
		return b_error(b, "random numbers of %u dimensions", wide.rank - 1 + own->rank).i;
	wide.rank--;
	for (uint32_t k = 0; k < own->rank; k++)
		wide.dim[wide.rank++] = own->dim[k];
	for (uint32_t k = 0; k < nx; k++) {
		x[k] = b_broadcast(b, b_convert(b, aten_detached(b, given[k]), DT_f64), wide.rank,
				   wide.dim);
		TRY(x[k].i);
	}
	return true;
}

static void require_all(Build *b, Node holds, const char *message)
{
	Node ok = b_un(b, OP_bit_not,
		       b_reduce(b, REDUCE_OR, b_un(b, OP_bit_not, holds),
				(1u << aten_rank(b, holds)) - 1, DT_none));
	if (ok.i)
		b_node(b, OP_assert, &ok, 1, (Attr[]){attr_none(), attr_str(b->g->ir, message)}, 2);
}

/* ---- gamma ---- */

enum { GAMMA_D, GAMMA_C };

/* Draws by G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", 2000,
 * without the test that only saves logarithms. */
static void gamma_round(Build *b, Rounds *r)
{
	Node d = r->param[GAMMA_D], x = draw_normal(b, &r->draw, DT_f64, &r->shape),
	     u = draw_open(b, &r->draw, DT_f64, &r->shape);
	Node y = plus(b, mul(b, r->param[GAMMA_C], x), 1), v = mul(b, y, mul(b, y, y));
	Node bound = b_bin(b, OP_add, times(b, mul(b, x, x), 0.5),
			   mul(b, d, b_bin(b, OP_add, from(b, 1, v), b_un(b, OP_log, v))));
	Node accepted =
		both(b, b_bin_scalar(b, OP_gt, y, 0), b_bin(b, OP_lt, b_un(b, OP_log, u), bound));
	r->state[0] = mul(b, d, v);
	r->open = b_un(b, OP_bit_not, accepted);
}

/* Draws gamma numbers of shape parameter alpha, f64. Of 0 and infinity these, of a negative one
 * NaN. Below 1, those of alpha + 1 times u^(1/alpha). */
static Node gamma_numbers(Build *b, Draw *draw, const Shape *shape, Node alpha)
{
	Node small = b_bin_scalar(b, OP_lt, alpha, 1),
	     open = both(b, b_bin_scalar(b, OP_gt, alpha, 0), is_finite(b, alpha));
	Node d = plus(
		b,
		b_select(b, open, b_select(b, small, plus(b, alpha, 1), alpha), all(b, alpha, 1)),
		-1.0 / 3);
	Node fixed =
		b_select(b, b_bin_scalar(b, OP_lt, alpha, 0), all(b, alpha, (double)NAN), alpha);
	Node u = draw_open(b, draw, DT_f64, shape);
	Rounds r = {.nstate = 1,
		    .nparam = 2,
		    .state = {fixed},
		    .open = open,
		    .draw = *draw,
		    .shape = *shape};
	r.param[GAMMA_D] = d;
	r.param[GAMMA_C] = b_un(b, OP_reciprocal, b_un(b, OP_sqrt, times(b, d, 9)));
	Node g = rounds(b, &r, gamma_round);
	Node scale = b_un(b, OP_exp,
			  over(b, b_un(b, OP_log, u),
			       b_select(b, both(b, small, open), alpha, all(b, alpha, 1))));
	return b_select(b, both(b, small, open), mul(b, g, scale), g);
}

/* Gives y, which was drawn, the derivatives of `linear`, which is linear in the parameters: its
 * factors are the derivatives of y at their values, as constants. So all transforms have them,
 * in any order. */
static Node with_slope(Build *b, Node y, Node linear)
{
	if (!y.i || !linear.i)
		return (Node){0};
	const Type t = *node_type(b->g, y);
	linear = b_broadcast(b, b_convert(b, linear, t.dtype), t.n, t.dim);
	return linear.i ? b_node(b, OP_straight_through, (Node[]){y, linear}, 2, NULL, 0) : linear;
}

static const char *const self_only[] = {"self"};

static Node build_standard_gamma(Build *b, Node n)
{
	Draw d;
	Shape s;
	Node alpha;
	if (!operands(b, n, &d, &s, self_only, &alpha, 1))
		return (Node){0};
	Node x = arg(b, n, "self");
	DType t = aten_dtype(b, x);
	Node g = gamma_numbers(b, &d, &s, alpha);
	Node y = aten_detached(b, b_convert(b, b_bin_scalar(b, OP_maximum, g, smallest(t)), t));
	Node slope = b_node(b, OP_aten__standard_gamma_grad, (Node[]){aten_detached(b, x), y}, 2,
			    NULL, 0);
	return with_slope(b, y, mul(b, slope, x));
}
OP(aten__standard_gamma){
	.schema = "aten._standard_gamma(Tensor self, Generator? generator=None, *, " RANDOM_ARGS ") -> Tensor",
	.deviates = "the distribution is that of PyTorch, the numbers of a seed are others "
		    "(docs/random.md)",
	.doc = "gamma numbers of shape parameters self and scale 1",
	.build = build_standard_gamma,
	.sample = "f32[n=3, 4] in 0.25..9, " KEY "; f64[5] of 0 0.01 1 50 1000, " KEY,
};

static Node build_dirichlet(Build *b, Node n)
{
	Draw d;
	Shape s;
	Node alpha;
	if (!operands(b, n, &d, &s, self_only, &alpha, 1))
		return (Node){0};
	if (!s.rank)
		return b_error(b,
			       "a Dirichlet distribution without dimensions, expected at least 1");
	DType t = aten_dtype(b, arg(b, n, "self"));
	Node g = gamma_numbers(b, &d, &s, alpha);
	Node p = over(b, g, b_reduce_keep(b, REDUCE_SUM, g, 1u << (aten_rank(b, g) - 1), DT_f64));
	double most = 1 - ldexp(1, t == DT_f64 ? -53 : t == DT_f32 ? -24 : t == DT_f16 ? -11 : -8);
	Node y = aten_detached(
		b, b_convert(b,
			     b_bin_scalar(b, OP_minimum,
					  b_bin_scalar(b, OP_maximum, p, smallest(t)), most),
			     t));
	/* the derivative of y[i] by x[j] is slope[j] ((i == j) - y[i]) */
	Node x = arg(b, n, "self"), fixed = aten_detached(b, x),
	     total = aten_sum(b, fixed, 1u << (aten_rank(b, x) - 1), true);
	Node slope = b_node(b, OP_aten__dirichlet_grad, (Node[]){y, fixed, total}, 3, NULL, 0);
	Node part = mul(b, slope, x);
	return with_slope(
		b, y,
		minus(b, part, mul(b, y, aten_sum(b, part, 1u << (aten_rank(b, part) - 1), true))));
}
OP(aten__sample_dirichlet){
	.schema = "aten._sample_dirichlet(Tensor self, Generator? generator=None, *, " RANDOM_ARGS ") -> Tensor",
	.deviates = "the distribution is that of PyTorch, the numbers of a seed are others; "
		    "its derivative is that of torch.distributions",
	.doc = "gamma numbers of shape parameters self, divided by their sum over the last "
	       "dimension",
	.build = build_dirichlet,
	.sample = "f32[n=3, 4] in 0.25..9, " KEY,
};

/* ---- derivatives of numbers that are held at their probability ---- */

/* PyTorch's approximations (ATen/native/Distributions.h): where x is small, terms of the series of
 * the incomplete gamma function; for large alpha, Rice's saddle point; elsewhere a rational
 * function of logarithms. */
OP(aten__standard_gamma_grad){
	.schema = "aten._standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
	.doc = "the derivative by its shape parameter of a gamma number whose probability is kept",
	.promote = PROMOTE_FLOAT,
	.expand = "a = convert(self, dtype=f64); x = convert(output, dtype=f64); "
		  /* small x */
		  "n1 = -x; n2 = n1 * x / -2; n3 = n2 * x / -3; n4 = n3 * x / -4; "
		  "n5 = n4 * x / -5; b1 = a + 1; b2 = a + 2; b3 = a + 3; b4 = a + 4; b5 = a + 5; "
		  "one = 1 / a + n1 / b1 + n2 / b2 + n3 / b3 + n4 / b4 + n5 / b5; "
		  "two = 1 / (a * a) + n1 / (b1 * b1) + n2 / (b2 * b2) + n3 / (b3 * b3) + n4 / (b4 "
		  "* b4) + n5 / (b5 * b5); power = pow(x, a); "
		  "series = (power * two - (log(x) - digamma(a)) * (power * one)) / (pow(x, a - 1) "
		  "* exp(-x)); small = select(isnan(series), 0, series); "
		  /* large alpha, near it and elsewhere */
		  "aa = a * a; l = log(x / a); apart = a - x; "
		  "near = (1 + 24 * a * (1 + 12 * a)) * (1440 * aa + 6 * x * (53 - 120 * x) - 65 * "
		  "x * x / a + a * (107 + 3600 * x)) / (1244160 * aa * aa); "
		  "root = sqrt(8 * a); t2 = root / apart; t3 = pow(x - a - a * l, -1.5); "
		  "t23 = select(lt(x, a), t2 - t3, t2 + t3); t1 = l * t23 - sqrt(2 / a) * (a + x) "
		  "/ (apart * apart); "
		  "far = -(1 + 1 / (12 * a) * (1 + 1 / (24 * a))) * x * t1 / root; "
		  "large = select(bit_and(le(0.9 * a, x), le(x, 1.1 * a)), near, far); "
		  /* elsewhere */
		  "v = log(a); "
		  "p0 = 0.16009398 + l * (0.53487893 + l * 0.040121004); "
		  "p1 = -0.094634809 + l * (0.1298071 - l * 0.0065914022); "
		  "p2 = 0.025146376 + l * (0.065735949 - l * 0.0026286047); "
		  "p3 = -0.0030648343 - l * (0.0015649758 + l * 0.0013441777); "
		  "q0 = 1 + l * (0.16639465 + l * 0.017050642); q1 = 0.32668115 + l * (0.020070113 "
		  "- l * 0.0021309326); q2 = 0.10406089 - l * (0.0035938915 - l * 0.00085092367); "
		  "q3 = 0.0014179084 - l * (0.00058392623 + l * 1.5247877e-07); "
		  "middle = exp((p0 + v * (p1 + v * (p2 + v * p3))) / (q0 + v * (q1 + v * (q2 + v "
		  "* q3)))); type_as(select(lt(x, 0.800000011920929), small, select(gt(a, 8), "
		  "large, middle)), output)",
	.sample = "f64[n=3, 5] in 0.125..20, f64[n, 5] in 0.0625..20; "
		  "f32[6] of 0.25 2 9 20 30 1000, f32[6] of 0.001 0.5 9.125 25 29 990",
};

/* The rational function that corrects x (digamma(total) - digamma(alpha)) / beta where none of the
 * other approximations holds. */
OP(beta_grad_rational){
	.schema = "beta_grad_rational(Tensor z, Tensor a, Tensor t) -> Tensor",
	.doc = "part of _dirichlet_grad",
	.expand = "u = log(z); v = log(a) - u; r = log(t) - v; v2 = v * v; "
		  "p0 = (1.003668233 + r * (-0.01061107488 + r * (-0.0657888334 + r * "
		  "0.01201642863))) + v * (0.6336835991 + r * (-0.3557432599 + r * (0.05486251648 "
		  "- r * 0.001465281033))) + "
		  "v2 * (-0.03276231906 + r * (0.004474107445 + r * (0.002429354597 - r * "
		  "0.0001557569013))); p1 = (0.221950385 + r * (-0.3187676331 + r * (0.01799915743 "
		  "+ r * 0.01074823814))) + "
		  "v * (-0.2951249643 + r * (0.06219954479 + r * (0.01535556598 + r * "
		  "0.001550077057))) + v2 * (0.02155310298 + r * (0.004170831599 + r * "
		  "(0.001292462449 + r * 6.976601077e-05))); "
		  "p2 = (-0.05980841433 + r * (0.008441916499 + r * (0.01085618172 + r * "
		  "0.002319392565))) + v * (0.02911413504 + r * (0.01400243777 + r * "
		  "(-0.002721828457 + r * 0.000751041181))) + "
		  "v2 * (0.005900514878 + r * (-0.001936558688 + r * (-9.495446725e-06 + r * "
		  "5.385558597e-05))); q0 = (1 + r * (-0.02924021934 + r * (-0.04438342661 + r * "
		  "0.007285809825))) + "
		  "v * (0.6357567472 + r * (-0.3473456711 + r * (0.05454656494 - r * "
		  "0.002407477521))) + v2 * (-0.03301322327 + r * (0.004845219414 + r * "
		  "(0.00231480583 - r * 0.0002307248149))); "
		  "q1 = (0.5925320577 + r * (-0.1757678135 + r * (0.01505928619 + r * "
		  "0.000564515273))) + v * (0.1014815858 + r * (-0.06589186703 + r * "
		  "(0.01272886114 - r * 0.0007316646956))) + "
		  "v2 * (-0.007258481865 + r * (0.001096195486 + r * (0.0003934994223 - r * "
		  "4.12701925e-05))); q2 = (0.06469649321 + r * (-0.0236701437 + r * "
		  "(0.002902096474 - r * 5.896963079e-05))) + "
		  "v * (0.001925008108 + r * (-0.002869809258 + r * (0.0008000589141 - r * "
		  "6.063713228e-05))) + v2 * (-0.0003477407336 + r * (6.959756487e-05 + r * "
		  "(1.097287507e-05 - r * 1.650964693e-06))); "
		  "(p0 + u * p1 + u * u * p2) / (q0 + u * q1 + u * u * q2) * (z * (digamma(t) - "
		  "digamma(a)) / (t - a))",
	.sample = "f64[n=3, 5] in 0.0625..0.9375, f64[n, 5] in 0.25..9, f64[n, 5] in 9.5..20",
};

/* The same of a Beta number x, divided by 1 - x, where total = alpha + beta. */
OP(aten__dirichlet_grad){
	.schema = "aten._dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
	.doc = "the derivative by alpha of a number of a Beta distribution whose probability is "
	       "kept, divided by 1 - x",
	.promote = PROMOTE_FLOAT,
	.expand = "z = convert(x, dtype=f64); a = convert(alpha, dtype=f64); "
		  "t = convert(total, dtype=f64); b = t - a; w = 1 - z; edge = t * z * w; "
		  "da = digamma(a); db = digamma(b); dt = digamma(t); "
		  /* near 0 */
		  "f = da - dt - log(z); "
		  "n1 = (1 - b) * z; n2 = n1 * (2 - b) * z / 2; n3 = n2 * (3 - b) * z / 3; "
		  "n4 = n3 * (4 - b) * z / 4; "
		  "n5 = n4 * (5 - b) * z / 5; n6 = n5 * (6 - b) * z / 6; "
		  "n7 = n6 * (7 - b) * z / 7; n8 = n7 * (8 - b) * z / 8; "
		  "n9 = n8 * (9 - b) * z / 9; n10 = n9 * (10 - b) * z / 10; "
		  "s0 = 1 / a * (f + 1 / a) + n1 / (a + 1) * (f + 1 / (a + 1)) + n2 / (a + 2) * (f "
		  "+ 1 / (a + 2)) + n3 / (a + 3) * (f + 1 / (a + 3)) + n4 / (a + 4) * (f + 1 / (a "
		  "+ 4)) + n5 / (a + 5) * (f + 1 / (a + 5)) + "
		  "n6 / (a + 6) * (f + 1 / (a + 6)) + n7 / (a + 7) * (f + 1 / (a + 7)) + n8 / (a + "
		  "8) * (f + 1 / (a + 8)) + n9 / (a + 9) * (f + 1 / (a + 9)) + n10 / (a + 10) * (f "
		  "+ 1 / (a + 10)); "
		  "y0 = z * pow(w, -b) * s0; low = select(isnan(y0), 0, y0); "
		  /* near 1, which is near 0 of w by its other parameter */
		  "h = dt - da; "
		  "m1 = -w; m2 = m1 * w / -2; m3 = m2 * w / -3; m4 = m3 * w / -4; "
		  "m5 = m4 * w / -5; m6 = m5 * w / -6; m7 = m6 * w / -7; m8 = m7 * w / -8; "
		  "k1 = a - 1; k2 = k1 * (a - 2); k3 = k2 * (a - 3); k4 = k3 * (a - 4); "
		  "k5 = k4 * (a - 5); k6 = k5 * (a - 6); k7 = k6 * (a - 7); k8 = k7 * (a - 8); "
		  "j2 = (a - 2) + k1; j3 = j2 * (a - 3) + k2; j4 = j3 * (a - 4) + k3; "
		  "j5 = j4 * (a - 5) + k4; j6 = j5 * (a - 6) + k5; j7 = j6 * (a - 7) + k6; "
		  "j8 = j7 * (a - 8) + k7; "
		  "s1 = h / b + m1 / (b + 1) * (1 + h * k1) + m2 / (b + 2) * (j2 + h * k2) + m3 / "
		  "(b + 3) * (j3 + h * k3) + m4 / (b + 4) * (j4 + h * k4) + m5 / (b + 5) * (j5 + h "
		  "* k5) + m6 / (b + 6) * (j6 + h * k6) + "
		  "m7 / (b + 7) * (j7 + h * k7) + m8 / (b + 8) * (j8 + h * k8); "
		  "y1 = pow(z, 1 - a) * s1; high = select(isnan(y1), 0, y1); "
		  /* both parameters large, near the mean and elsewhere */
		  "mean = a / t; std = sqrt(a * b / (t + 1)) / t; b2 = b * b; "
		  "poly = 47 * z * b2 * b2 + a * ((43 + 20 * (16 + 27 * b) * z) * b2 * b + a * (3 "
		  "* (59 + 180 * b - 90 * z) * b2 + a * ((453 + 1620 * b * w - 455 * z) * b + a * "
		  "(8 * w * (135 * b - 11))))); "
		  "near = (1 + 12 * a) * (1 + 12 * b) / (t * t) / w * poly / (12960 * a * a * a * "
		  "b2 * (1 + 12 * t)); factor = -z / sqrt(2 * a * b / t); "
		  "stirling = (1 + 1 / (12 * a) + 1 / (288 * a * a)) * (1 + 1 / (12 * b) + 1 / "
		  "(288 * b2)) / (1 + 1 / (12 * t) + 1 / (288 * t * t)); "
		  "c = b * z - a * w; "
		  "t1 = (-2 * a * a * w - a * b * w - z * b2) / (sqrt(2 * a / b) * pow(t, 1.5) * c "
		  "* c); t2 = 0.5 * log(a / (t * z)); t3 = sqrt(8 * a * b / t) / c; "
		  "t4 = pow(b * log(b / (t * w)) + a * log(a / (t * z)), -1.5); "
		  "far = stirling * factor * (t1 + t2 * (t3 + select(lt(z, mean), t4, -t4))); "
		  "large = select(bit_and(le(mean - 0.1 * std, z), le(z, mean + 0.1 * std)), near, "
		  "far); middle = beta_grad_rational(z, a, t); "
		  "type_as(select(bit_and(le(z, 0.5), lt(edge, 2.5)), low, select(bit_and(ge(z, "
		  "0.5), lt(edge, 0.75)), high, select(bit_and(gt(a, 6), gt(b, 6)), large, "
		  "middle))), x)",
	.sample = "f64[n=3, 5] in 0.0625..0.9375, f64[n, 5] in 0.25..9, f64[n, 5] in 9.5..20; "
		  "f32[6] of 0.001 0.999 0.5 0.3 0.25 0.125, f32[6] of 0.25 2 9 20 30 1, "
		  "f32[6] of 0.5 2.25 18 60 90 2",
};

/* ---- by a running sum of probabilities ---- */

/* Counts k whose probabilities are p(k + 1) = p(k) (a / (k + 1) + b): the first whose running sum
 * exceeds u, at most `limit`. */
enum { SUM_COUNT, SUM_REST, SUM_P };
enum { SUM_A, SUM_B, SUM_LIMIT };

static void sum_round(Build *b, Rounds *r)
{
	Node k = r->state[SUM_COUNT], p = r->state[SUM_P], rest = r->state[SUM_REST],
	     next = plus(b, k, 1);
	Node found = b_bin(b, OP_bit_or, b_bin(b, OP_lt, rest, p),
			   b_bin(b, OP_ge, k, r->param[SUM_LIMIT]));
	r->state[SUM_COUNT] = b_select(b, found, k, next);
	r->state[SUM_REST] = minus(b, rest, p);
	r->state[SUM_P] =
		mul(b, p, b_bin(b, OP_add, over(b, r->param[SUM_A], next), r->param[SUM_B]));
	r->open = b_un(b, OP_bit_not, found);
}

typedef struct {
	Node p0, a, b, limit;
} Recurrence;

static Node by_sums(Build *b, Draw *draw, const Shape *shape, const Recurrence *c, Node open)
{
	Rounds r = {.nstate = 3, .nparam = 3, .open = open, .shape = *shape};
	r.state[SUM_COUNT] = b_zeros_like(b, c->p0);
	r.state[SUM_REST] = draw_uniform(b, draw, DT_f64, shape);
	r.state[SUM_P] = c->p0;
	r.param[SUM_A] = c->a;
	r.param[SUM_B] = c->b;
	r.param[SUM_LIMIT] = c->limit;
	return rounds(b, &r, sum_round);
}

/* ---- by transformed rejection ---- */

/* W. Hoermann, "The transformed rejection method for generating Poisson random variables" (PTRS),
 * and "The generation of binomial random variates" (BTRS), both 1993. A pair of uniform numbers
 * gives a count k, and v to compare with the ratio of k's probability. */
enum { HAT_A, HAT_B, HAT_C, HAT_V };

typedef struct {
	Node k, v, sure; /* sure: the pair lies in the box where every k is accepted */
	Node possible;   /* us is not so small that v must be refused */
} Pair;

static Pair draw_pair(Build *b, Rounds *r)
{
	Node u = plus(b, draw_open(b, &r->draw, DT_f64, &r->shape), -0.5),
	     v = draw_open(b, &r->draw, DT_f64, &r->shape);
	Node us = from(b, 0.5, b_un(b, OP_abs, u)), slope = over(b, r->param[HAT_A], us);
	Pair p = {.k = b_un(b, OP_floor,
			    b_bin(b, OP_add,
				  mul(b, b_bin(b, OP_add, times(b, slope, 2), r->param[HAT_B]), u),
				  r->param[HAT_C]))};
	p.sure = both(b, b_bin_scalar(b, OP_ge, us, 0.07), b_bin(b, OP_le, v, r->param[HAT_V]));
	p.possible = b_bin(b, OP_bit_or, b_bin_scalar(b, OP_ge, us, 0.013), b_bin(b, OP_le, v, us));
	p.v = over(b, v, b_bin(b, OP_add, over(b, slope, us), r->param[HAT_B]));
	return p;
}

enum { POISSON_MEAN = HAT_V + 1, POISSON_LOG, POISSON_SCALE, POISSON_PARAMS };

static void poisson_round(Build *b, Rounds *r)
{
	Pair p = draw_pair(b, r);
	Node bound = minus(b, mul(b, p.k, r->param[POISSON_LOG]), r->param[POISSON_MEAN]);
	bound = minus(b, bound, b_un(b, OP_lgamma, plus(b, p.k, 1)));
	Node ratio = b_bin(b, OP_le, b_un(b, OP_log, mul(b, p.v, r->param[POISSON_SCALE])), bound);
	Node legal = both(b, b_bin_scalar(b, OP_ge, p.k, 0), p.possible);
	r->open = b_un(b, OP_bit_not,
		       b_bin(b, OP_bit_or, both(b, p.sure, b_bin_scalar(b, OP_ge, p.k, 0)),
			     both(b, legal, ratio)));
	r->state[0] = p.k;
}

static Node large_poisson(Build *b, Draw *draw, const Shape *shape, Node mean, Node open)
{
	Node root = b_un(b, OP_sqrt, mean), hat = plus(b, times(b, root, 2.53), 0.931);
	Rounds r = {.nstate = 1,
		    .nparam = POISSON_PARAMS,
		    .state = {mean},
		    .open = open,
		    .draw = *draw,
		    .shape = *shape};
	r.param[HAT_A] = plus(b, times(b, hat, 0.02483), -0.059);
	r.param[HAT_B] = hat;
	r.param[HAT_C] = plus(b, mean, 0.43);
	r.param[HAT_V] = from(b, 0.9277, over(b, all(b, hat, 3.6224), plus(b, hat, -2)));
	r.param[POISSON_MEAN] = mean;
	r.param[POISSON_LOG] = b_un(b, OP_log, mean);
	r.param[POISSON_SCALE] = plus(b, over(b, all(b, hat, 1.1328), plus(b, hat, -3.4)), 1.1239);
	return rounds(b, &r, poisson_round);
}

enum { FEW = 10, LIMIT = 100 }; /* the mean up to which probabilities are added; the chance of LIMIT
                                   is below 1e-60 there */

static Node build_poisson(Build *b, Node n)
{
	Draw d;
	Shape s;
	Node mean;
	if (!operands(b, n, &d, &s, self_only, &mean, 1))
		return (Node){0};
	require_all(b, b_bin_scalar(b, OP_ge, mean, 0),
		    "invalid Poisson rate, expected rate to be non-negative");
	Node few = b_bin_scalar(b, OP_lt, mean, FEW), zero = all(b, mean, 0),
	     low = b_select(b, few, mean, zero);
	Recurrence c = {b_un(b, OP_exp, b_un(b, OP_neg, low)), low, b_zeros_like(b, low),
			b_broadcast(b, all(b, mean, LIMIT), aten_rank(b, mean),
				    node_type(b->g, mean)->dim)};
	Node small = by_sums(b, &d, &s, &c, few);
	Node many = both(b, b_un(b, OP_bit_not, few), is_finite(b, mean));
	Node large = large_poisson(b, &d, &s, b_select(b, few, all(b, mean, FEW), mean), many);
	return aten_detached(
		b, b_convert(b, b_select(b, few, small, large), aten_dtype(b, arg(b, n, "self"))));
}
OP(aten_poisson){
	.schema = "aten.poisson(Tensor self, Generator? generator=None, *, " RANDOM_ARGS ") -> Tensor",
	.deviates = "the distribution is that of PyTorch, the numbers of a seed are others "
		    "(docs/random.md)",
	.doc = "counts of mean self",
	.build = build_poisson,
	.sample = "f32[n=3, 4] in 2..19, " KEY "; f64[4] of 1.5 2 10 19, " KEY,
};

enum { BINOMIAL_N = HAT_V + 1, BINOMIAL_M, BINOMIAL_ODDS, BINOMIAL_ALPHA, BINOMIAL_PARAMS };

/* Returns log(k!) minus Stirling's formula, (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2. */
static Node stirling_tail(Build *b, Node k)
{
	Node x = plus(b, k, 1), few = b_bin_scalar(b, OP_lt, k, 10),
	     y = b_select(b, few, x, all(b, x, 1)), square = mul(b, x, x);
	Node exact = minus(b, b_un(b, OP_lgamma, y), mul(b, plus(b, y, -0.5), b_un(b, OP_log, y)));
	exact = plus(b, b_bin(b, OP_add, exact, y), -0.91893853320467274178);
	Node series = from(b, 1.0 / 360, over(b, all(b, x, 1.0 / 1260), square));
	series = over(b, from(b, 1.0 / 12, over(b, series, square)), x);
	return b_select(b, few, exact, series);
}

static Node log_of_ratio(Build *b, Node x, Node y)
{
	return b_un(b, OP_log, over(b, x, y));
}

static void binomial_round(Build *b, Rounds *r)
{
	Pair p = draw_pair(b, r);
	Node n = r->param[BINOMIAL_N], m = r->param[BINOMIAL_M], odds = r->param[BINOMIAL_ODDS];
	Node legal = both(b, b_bin_scalar(b, OP_ge, p.k, 0), b_bin(b, OP_le, p.k, n));
	Node k = b_select(b, legal, p.k, m), k1 = plus(b, k, 1), m1 = plus(b, m, 1);
	Node nk = plus(b, minus(b, n, k), 1), nm = plus(b, minus(b, n, m), 1);
	Node bound = mul(b, plus(b, m, 0.5), log_of_ratio(b, m1, mul(b, odds, nm)));
	bound = b_bin(b, OP_add, bound, mul(b, plus(b, n, 1), log_of_ratio(b, nm, nk)));
	bound = b_bin(b, OP_add, bound,
		      mul(b, plus(b, k, 0.5), log_of_ratio(b, mul(b, odds, nk), k1)));
	bound = b_bin(b, OP_add, bound,
		      b_bin(b, OP_add, stirling_tail(b, m), stirling_tail(b, minus(b, n, m))));
	bound = minus(b, bound,
		      b_bin(b, OP_add, stirling_tail(b, k), stirling_tail(b, minus(b, n, k))));
	Node ratio = b_bin(b, OP_le, b_un(b, OP_log, mul(b, p.v, r->param[BINOMIAL_ALPHA])), bound);
	r->open = b_un(b, OP_bit_not, both(b, legal, b_bin(b, OP_bit_or, p.sure, ratio)));
	r->state[0] = k;
}

static Node large_binomial(Build *b, Draw *draw, const Shape *shape, Node n, Node p, Node open)
{
	Node mean = mul(b, n, p), std = b_un(b, OP_sqrt, mul(b, mean, from(b, 1, p))),
	     hat = plus(b, times(b, std, 2.53), 1.15);
	Rounds r = {.nstate = 1,
		    .nparam = BINOMIAL_PARAMS,
		    .state = {b_zeros_like(b, n)},
		    .open = open,
		    .draw = *draw,
		    .shape = *shape};
	r.param[HAT_A] =
		plus(b, b_bin(b, OP_add, times(b, hat, 0.0248), times(b, p, 0.01)), -0.0873);
	r.param[HAT_B] = hat;
	r.param[HAT_C] = plus(b, mean, 0.5);
	r.param[HAT_V] = from(b, 0.92, over(b, all(b, hat, 4.2), hat));
	r.param[BINOMIAL_N] = n;
	r.param[BINOMIAL_M] = b_un(b, OP_floor, mul(b, plus(b, n, 1), p));
	r.param[BINOMIAL_ODDS] = over(b, p, from(b, 1, p));
	r.param[BINOMIAL_ALPHA] = mul(b, std, plus(b, over(b, all(b, hat, 5.1), hat), 2.83));
	return rounds(b, &r, binomial_round);
}

/* Draws counts of at most n by chances p up to 1/2; the others are n less those by 1 - p. A
 * count that is no integer counts as the one below, as in PyTorch's method for few. */
static Node build_binomial(Build *b, Node node)
{
	static const char *const names[] = {"count", "prob"};
	Draw d;
	Shape s;
	Node x[2];
	if (!operands(b, node, &d, &s, names, x, 2))
		return (Node){0};
	Node n = b_un(b, OP_floor, x[0]), flips = b_bin_scalar(b, OP_gt, x[1], 0.5),
	     p = b_select(b, flips, from(b, 1, x[1]), x[1]);
	Node valid = both(b, both(b, b_bin_scalar(b, OP_ge, n, 1), is_finite(b, n)),
			  b_bin_scalar(b, OP_gt, p, 0));
	Node few = both(b, valid, b_bin_scalar(b, OP_lt, mul(b, n, p), FEW)),
	     many = both(b, valid, b_un(b, OP_bit_not, few));
	Node zero = b_zeros_like(b, n), ns = b_select(b, few, n, zero),
	     ps = b_select(b, few, p, zero), odds = over(b, ps, from(b, 1, ps));
	Node none = b_un(b, OP_exp, mul(b, ns, b_un(b, OP_log1p, b_un(b, OP_neg, ps))));
	Recurrence c = {none, mul(b, plus(b, ns, 1), odds), b_un(b, OP_neg, odds),
			b_bin_scalar(b, OP_minimum, ns, LIMIT)};
	Node small = by_sums(b, &d, &s, &c, few);
	Node chance = b_select(b, many, p, all(b, n, 0.5)),
	     trials = b_select(b, many, n, all(b, n, 100));
	Node large = large_binomial(b, &d, &s, trials, chance, many);
	Node k = b_select(b, few, small, b_select(b, many, large, zero));
	k = b_select(b, b_bin_scalar(b, OP_lt, n, 1), zero, b_select(b, flips, minus(b, n, k), k));
	k = b_select(b, both(b, b_bin_scalar(b, OP_ge, x[1], 1), b_bin_scalar(b, OP_gt, x[0], 0)),
		     x[0], k);
	Node unknown = b_bin(b, OP_bit_or, b_un(b, OP_isnan, x[0]), b_un(b, OP_isnan, x[1]));
	return aten_detached(b, b_convert(b, b_select(b, unknown, all(b, k, (double)NAN), k),
					  aten_dtype(b, arg(b, node, "count"))));
}
OP(aten_binomial){
	.schema = "aten.binomial(Tensor count, Tensor prob, Generator? generator=None, *, " RANDOM_ARGS ") -> Tensor",
	.deviates = "the distribution is that of PyTorch, the numbers of a seed are others "
		    "(docs/random.md)",
	.doc = "how many of `count` trials of chance `prob` succeed",
	.build = build_binomial,
	.sample = "f32[n=3, 4] in 0..20, f32[n, 4] in 0..1, " KEY "; f64[4] of 1000 100 3.5 7, f64[4] of 0.25 0.875 0.5 1, " KEY,
};
