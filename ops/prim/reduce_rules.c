/* Derivatives of reductions and running reductions. No rule divides by an element: with zeros the
 * products of the others are what they are. */
#include <math.h>
#include <string.h>

#include "ops/prim/rules_priv.h"
#include "ops/rules/common.h"

static ReduceKind kind_of(const Graph *g, Node n)
{
	ReduceKind kind;
	return reduce_parse(node_str(g, n, "kind"), &kind) ? kind : REDUCE_SUM;
}

bool is_sum(const Graph *g, Node n)
{
	return kind_of(g, n) == REDUCE_SUM;
}

bool is_logaddexp(const Graph *g, Node n)
{
	return kind_of(g, n) == REDUCE_LOGADDEXP;
}

/* Returns x in the precision in which sums and products are computed. */
static Node wide(Build *b, Node x)
{
	return b_convert(b, x, dtype_compute(node_dtype(b->g, x)));
}

/* Returns x one place later along dim, or earlier; `first` comes in. */
static Node shifted(Build *b, Node x, uint32_t dim, bool later, Node first)
{
	Sym low[MAX_RANK], high[MAX_RANK], none[MAX_RANK];
	uint32_t rank = x.i ? node_rank(b->g, x) : 0;
	for (uint32_t k = 0; k < rank; k++) {
		none[k] = b_int(b, 0);
		low[k] = b_int(b, k != dim ? 0 : later ? 1 : -1);
		high[k] = b_int(b, k != dim ? 0 : later ? -1 : 1);
	}
	Attr attr[] = {attr_none(), attr_none(), attr_ints(low, rank), attr_ints(high, rank),
		       attr_ints(none, rank)};
	return x.i && first.i ? b_node(b, OP_pad, (Node[]){x, first}, 2, attr, 5) : (Node){0};
}

/* Returns the product of the elements before each along dim; of those behind it where reverse. */
static Node product_of_others(Build *b, Node x, uint32_t dim, bool reverse)
{
	return b_cumulative(b, "prod",
			    shifted(b, x, dim, !reverse, b_scalar(b, node_dtype(b->g, x), 1)), dim,
			    reverse);
}

/* ---- reduce ---- */

/* Repeats a value of the result's shape over the dimensions that were reduced. */
static Node over_dims(Build *b, Node n, Node y)
{
	const Type t = *node_type(b->g, node_in(b->g, n, 0));
	uint32_t map[MAX_RANK], rank = 0, reduced = node_dim_bits(b->g, n, "dims");
	for (uint32_t k = 0; k < t.n; k++)
		if (!(reduced >> k & 1))
			map[rank++] = k;
	return b_broadcast_in_dim(b, y, t.n, t.dim, map);
}

/* Returns, for each element, the product of all others that are reduced with it. */
static Node products(Build *b, Node n)
{
	Node x = wide(b, node_in(b->g, n, 0));
	const Type t = *node_type(b->g, x);
	uint32_t reduced = node_dim_bits(b->g, n, "dims");
	uint32_t perm[MAX_RANK], inverse[MAX_RANK], at = 0, kept = 0;
	for (uint32_t k = 0; k < t.n; k++)
		if (!(reduced >> k & 1))
			perm[at++] = k;
	kept = at;
	for (uint32_t k = 0; k < t.n; k++)
		if (reduced >> k & 1)
			perm[at++] = k;
	Sym dim[MAX_RANK], flat[MAX_RANK];
	for (uint32_t k = 0; k < t.n; k++) {
		inverse[perm[k]] = k;
		flat[k] = dim[k] = t.dim[perm[k]];
		if (k > kept)
			flat[kept] = sym_mul(b_syms(b), flat[kept], dim[k]);
	}
	if (kept == t.n)
		return b_full(b, t.dtype, 1, t.n, t.dim);
	Node rows = b_reshape(b, b_permute(b, x, perm), kept + 1, flat);
	Node others = b_bin(b, OP_mul, product_of_others(b, rows, kept, false),
			    product_of_others(b, rows, kept, true));
	return b_permute(b, b_reshape(b, others, t.n, dim), inverse);
}

/* The elements that are the extremum, and how many they are, as numbers to compute with. Beside NaN
 * there are none, because it is equal to nothing. */
typedef struct {
	Node is_it, count; /* like the operand, like the result */
	DType acc;
} Extrema;

static Extrema find_extrema(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	DType acc = dtype_compute(node_dtype(b->g, x));
	Node is_it = b_bin(b, OP_eq, x, over_dims(b, n, n));
	return (Extrema){
		is_it,
		b_reduce(b, REDUCE_SUM, b_convert(b, is_it, acc), node_dim_bits(b->g, n, "dims"),
			 DT_none),
		acc};
}

/* Shares the cotangent evenly among the elements that are the extremum, as PyTorch's amax does;
 * beside NaN 0 / 0. */
static Node shared(Build *b, Node n, Node ct)
{
	Extrema e = find_extrema(b, n);
	Node part = b_bin(b, OP_div,
			  b_select(b, e.is_it, over_dims(b, n, b_convert(b, ct, e.acc)),
				   b_scalar(b, e.acc, 0)),
			  over_dims(b, n, e.count));
	return b_convert(b, part, node_dtype(b->g, n));
}

/* Computes the mean of the tangents of the elements that are the extremum. The transpose of
 * `shared` would be 0 beside NaN, where it is NaN. */
bool tangent_extremum(Build *b, Node n, const Node *t, Node *ty)
{
	Extrema e = find_extrema(b, n);
	Node own = b_select(b, e.is_it, b_convert(b, t[0], e.acc), b_scalar(b, e.acc, 0));
	Node sum = b_reduce(b, REDUCE_SUM, own, node_dim_bits(b->g, n, "dims"), DT_none);
	ty[0] = b_convert(b, b_bin(b, OP_div, sum, e.count), node_dtype(b->g, n));
	return ty[0].i;
}

bool is_extremum(const Graph *g, Node n)
{
	return kind_of(g, n) == REDUCE_MAX || kind_of(g, n) == REDUCE_MIN;
}

bool adjoint_reduce(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	switch (kind_of(b->g, n)) {
	case REDUCE_SUM:
		g[0] = over_dims(b, n, ct[0]);
		break;
	case REDUCE_PROD:
		g[0] = b_bin(b, OP_mul, products(b, n), over_dims(b, n, wide(b, ct[0])));
		break;
	case REDUCE_MAX:
	case REDUCE_MIN:
		g[0] = shared(b, n, ct[0]);
		break;
	default:
		return b_error(b, "reduce of kind %s has no derivative", node_str(b->g, n, "kind"))
			.i;
	}
	return g[0].i;
}

/* ---- cumulative ---- */

/* Returns the body r = g + carry; the next carry is a * r. */
static Graph *recurrence_body(Build *b, TypeId type)
{
	Graph *g = graph_beside(b->g, "recurrence");
	Build in = {.g = g, .loc = b->loc, .where = b->where};
	Node carry = graph_add_input(g, "carry", INPUT_USER, type),
	     own = graph_add_input(g, "g", INPUT_USER, type);
	Node a = graph_add_input(g, "a", INPUT_USER, type), r = b_bin(&in, OP_add, own, carry);
	graph_add_output(g, "carry", b_bin(&in, OP_mul, a, r), -1);
	graph_add_output(g, "r", r, -1);
	return g;
}

/* Computes r[i] = own[i] + a[i + 1] r[i + 1] along dim, from the last element on; from the first
 * on where reverse (i - 1). Linear in `own`. */
static Node recurrence(Build *b, Node own, Node a, uint32_t dim, bool reverse)
{
	if (!own.i || !a.i)
		return (Node){0};
	Ir *ir = b->g->ir;
	const Type t = *node_type(b->g, own);
	Node x = aten_move_dim(b, own, dim, 0), y = aten_move_dim(b, a, dim, 0);
	const Sym *dims = node_type(b->g, x)->dim;
	TypeId one = ir_type(ir, t.dtype, t.n - 1, dims + 1);
	Node in[] = {b_full(b, t.dtype, 0, t.n - 1, dims + 1), x, y};
	Attr attr[] = {attr_int(ir, 1),      attr_int(ir, 2),
		       attr_int(ir, 0),      attr_graph(recurrence_body(b, one)),
		       attr_sym(t.dim[dim]), attr_bool(!reverse)};
	return aten_move_dim(b, b_get(b, b_node(b, OP_scan, in, 3, attr, 6), 1), 0, dim);
}

/* Computes the cotangents of y[i] = x[0] ... x[i]: what is before x[i], times the cotangents of
 * all later ones with what lies between. */
Node b_cumprod_backward(Build *b, Node ct, Node x, uint32_t dim, bool reverse)
{
	Node wide_x = wide(b, x);
	return b_bin(b, OP_mul, product_of_others(b, wide_x, dim, reverse),
		     recurrence(b, wide(b, ct), wide_x, dim, reverse));
}

/* Returns exp(v[j - 1] - v[j]), at j where later, else at j - 1; 1 at the edge and between equal
 * elements, which may be infinite. v grows along dim, from the end if reverse. */
static Node step_of(Build *b, Node v, uint32_t dim, bool reverse, bool later)
{
	const Type t = *node_type(b->g, v);
	Node zero = b_scalar(b, t.dtype, 0), other = shifted(b, v, dim, later != reverse, zero);
	Node yes = b_full_int(b, DT_bool, 1, 0, NULL), no = b_full_int(b, DT_bool, 0, t.n, t.dim);
	Node edge = shifted(b, no, dim, later != reverse, yes);
	Node change = later ? b_bin(b, OP_sub, other, v) : b_bin(b, OP_sub, v, other);
	return b_un(
		b, OP_exp,
		b_select(b, b_bin(b, OP_bit_or, edge, b_bin(b, OP_eq, v, other)), zero, change));
}

/* dy[j] / dx[i] = exp(x[i] - m[j]) / s[j] for j >= i, where m is the greatest element so far and s
 * the sum of exp(x - m) up to there: y itself is rounded, at 10000 by a thousandth. In steps
 * exp(m[j - 1] - m[j]), so that nothing overflows. NaN where y[j] and x[i] are the same infinity.
 * The slope is the same for any m that bounds x, so further derivatives take m as constant. */
typedef struct {
	Node m, lost; /* and whether x is m and infinite */
	Node part, s; /* exp(x - m), 1 where x is lost */
} LogSum;

static LogSum log_sum(Build *b, Node x, uint32_t dim, bool reverse)
{
	Node m = b_cumulative(b, "max", aten_detached(b, x), dim, reverse),
	     size = b_un(b, OP_abs, m);
	Node lost =
		b_bin(b, OP_bit_and, b_bin_scalar(b, OP_eq, size, HUGE_VAL), b_bin(b, OP_eq, x, m));
	Node zero = b_scalar(b, node_dtype(b->g, x), 0);
	Node part = b_un(b, OP_exp, b_select(b, lost, zero, b_bin(b, OP_sub, x, m)));
	return (LogSum){m, lost, part,
			recurrence(b, part, step_of(b, m, dim, reverse, false), dim, !reverse)};
}

static Node cumulative_logaddexp(Build *b, Node n, Node ct, uint32_t dim, bool reverse)
{
	Node x = wide(b, node_in(b->g, n, 0));
	LogSum l = log_sum(b, x, dim, reverse);
	Node step = step_of(b, l.m, dim, reverse, true), by = b_bin(b, OP_div, wide(b, ct), l.s);
	Node sum = recurrence(b, by, step, dim, reverse);
	return b_select(b, l.lost, b_scalar(b, node_dtype(b->g, x), NAN),
			b_bin(b, OP_mul, l.part, sum));
}

bool tangent_cumulative(Build *b, Node n, const Node *t, Node *ty)
{
	bool reverse = node_bool(b->g, n, "reverse");
	uint32_t dim = (uint32_t)node_int(b->g, n, "dim");
	Node x = wide(b, node_in(b->g, n, 0));
	LogSum l = log_sum(b, x, dim, reverse);
	Node step = step_of(b, l.m, dim, reverse, false),
	     by = b_bin(b, OP_mul, l.part, wide(b, t[0]));
	Node u = recurrence(b, by, step, dim, !reverse);
	Node infinite = b_bin_scalar(b, OP_eq, b_un(b, OP_abs, l.m), HUGE_VAL);
	Node y = b_bin(b, OP_div, u,
		       b_select(b, infinite, b_scalar(b, node_dtype(b->g, x), NAN), l.s));
	ty[0] = b_convert(b, y, node_dtype(b->g, n));
	return ty[0].i;
}

/* Gives the cotangent of y[i] to the element that y[i] is: the latest of equal ones, and each
 * NaN, as in PyTorch's cummax. */
static Node cumulative_extremum(Build *b, Node n, Node ct, uint32_t dim, bool reverse)
{
	Node x = node_in(b->g, n, 0);
	const Type t = *node_type(b->g, x);
	Shape s = shape_of(t.n, t.dim);
	Node taken = b_bin(b, OP_bit_or, b_bin(b, OP_eq, x, n), b_un(b, OP_isnan, x));
	Node at = aten_iota_dim(b, &s, dim, DT_i64),
	     none = b_from_size(b, reverse ? sym_addi(b_syms(b), t.dim[dim], -1) : b_int(b, 0));
	Node index = b_cumulative(b, reverse ? "min" : "max", b_select(b, taken, at, none), dim,
				  reverse);
	return rule_scatter_along(b, b_zeros_like(b, x), index, ct, dim, "add", false);
}

bool adjoint_cumulative(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	bool reverse = node_bool(b->g, n, "reverse");
	uint32_t dim = (uint32_t)node_int(b->g, n, "dim");
	(void)want;
	switch (kind_of(b->g, n)) {
	case REDUCE_SUM:
		g[0] = b_cumulative(b, "sum", ct[0], dim, !reverse);
		break;
	case REDUCE_PROD:
		g[0] = b_cumprod_backward(b, ct[0], node_in(b->g, n, 0), dim, reverse);
		break;
	case REDUCE_LOGADDEXP:
		g[0] = cumulative_logaddexp(b, n, ct[0], dim, reverse);
		break;
	case REDUCE_MAX:
	case REDUCE_MIN:
		g[0] = cumulative_extremum(b, n, ct[0], dim, reverse);
		break;
	default:
		return b_error(b, "cumulative of kind %s has no derivative",
			       node_str(b->g, n, "kind"))
			.i;
	}
	return g[0].i;
}

/* ---- parts of complex numbers ---- */

enum { MOST_FACTORS = 64 }; /* that are written one by one */

/* Returns the body carry * x. */
static Graph *product_body(Build *b, TypeId type)
{
	static const char *const name[] = {"carry_re", "carry_im", "x_re", "x_im"};
	Graph *g = graph_beside(b->g, "product");
	Build in = {.g = g, .loc = b->loc, .where = b->where};
	Node x[4];
	for (uint32_t k = 0; k < 4; k++)
		x[k] = graph_add_input(g, name[k], INPUT_USER, type);
	Parts y = parts_multiply(&in, (Parts){x[0], x[1], {0}}, (Parts){x[2], x[3], {0}});
	graph_add_output(g, "re", y.re, -1);
	graph_add_output(g, "im", y.im, -1);
	return g;
}

/* Returns the product along dimension k of any extent. */
static Parts product_by_scan(Build *b, Parts x, uint32_t k)
{
	Ir *ir = b->g->ir;
	Node re = aten_move_dim(b, x.re, k, 0), im = aten_move_dim(b, x.im, k, 0);
	if (!re.i || !im.i)
		return (Parts){0};
	const Type t = *node_type(b->g, re);
	Node in[] = {b_full(b, t.dtype, 1, t.n - 1, t.dim + 1),
		     b_full(b, t.dtype, 0, t.n - 1, t.dim + 1), re, im};
	Attr attr[] = {attr_int(ir, 2),
		       attr_int(ir, 2),
		       attr_int(ir, 0),
		       attr_graph(product_body(b, ir_type(ir, t.dtype, t.n - 1, t.dim + 1))),
		       attr_sym(t.dim[0]),
		       attr_bool(false)};
	Node y = b_node(b, OP_scan, in, 4, attr, 6);
	return (Parts){b_get(b, y, 0), b_get(b, y, 1), {0}};
}

/* Returns the product along dimension k, of one element after the other. */
static Parts product_along(Build *b, Parts x, uint32_t k)
{
	int64_t extent;
	if (!sym_is_const(b_syms(b), b_dim(b, x.re, (int)k), &extent) || extent > MOST_FACTORS)
		return product_by_scan(b, x, k);
	Node re = b_reduce(b, REDUCE_PROD, x.re, extent ? 0 : 1u << k, DT_none);
	Parts y = {re, extent ? re : b_zeros_like(b, re), {0}};
	for (int64_t i = 0; i < extent; i++) {
		Parts f = {0};
		f.re = b_select_dim(b, x.re, (int)k, b_int(b, i));
		f.im = b_select_dim(b, x.im, (int)k, b_int(b, i));
		y = i ? parts_multiply(b, y, f) : f;
	}
	return y;
}

bool parts_reduce(Build *b, Node n, const Parts *in, Parts *out)
{
	const Graph *g = b->g;
	DType acc = dtype_real(node_attr(g, n, "acc")->dtype), d = dtype_real(node_dtype(g, n));
	uint32_t reduced = 0, ndim;
	const Sym *dims = node_ints(g, n, "dims", &ndim);
	if (is_sum(g, n))
		return parts_each(b, n, in, out);
	for (uint32_t k = 0; k < ndim; k++)
		reduced |= 1u << sym_hint(graph_syms(g), dims[k]);
	Parts x = {0};
	x.re = b_convert(b, in[0].re, acc);
	x.im = b_convert(b, in[0].im, acc);
	for (uint32_t k = node_rank(g, node_in(g, n, 0)); k-- > 0;)
		if (reduced >> k & 1)
			x = product_along(b, x, k);
	out->re = b_convert(b, x.re, d);
	out->im = b_convert(b, x.im, d);
	return out->re.i && out->im.i;
}
