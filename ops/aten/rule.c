/* Rules for cotangents (.adjoint) that several blocks share, and four pieces of expansions that
 * stay whole until decompose because PyTorch's derivative of them is not that of their parts. */
#include <math.h>
#include <string.h>

#include "ops/aten/priv.h"
#include "ops/prim/priv.h"
#include "ops/rules/batch.h"

/* Returns v, which lacks these dims, with extents of one in their places. */
static Node with_dims(Build *b, Node v, uint32_t dims)
{
	for (uint32_t k = 0; k < 32 && v.i; k++)
		if (dims >> k & 1)
			v = b_unsqueeze(b, v, (int)k);
	return v;
}

static bool keeps_dims(const Build *b, Node n)
{
	return op_arg_index(node_op(b->g, n), "keepdim") >= 0 && node_bool(b->g, n, "keepdim");
}

/* Returns the dims that n reduces of an operand of that rank: all where it has no argument for
 * them. */
static uint32_t reduced_dims(Build *b, Node n, uint32_t rank)
{
	return op_arg_index(node_op(b->g, n), "dim") >= 0 ? aten_dims(b, n, "dim", rank)
							  : (1u << rank) - 1;
}

/* ---- elements of the operand ---- */

bool aten_adjoint_picked(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node x = node_in(b->g, n, 0), index = b_get(b, n, 1), from = ct[0];
	const Type t = *node_type(b->g, x);
	if (!from.i)
		return true;
	if (t.n == 0)
		g[0] = b_reshape(b, from, 0, NULL);
	else {
		int dim = (int)b_wrap_dim(b, aten_int(b, n, "dim"), t.n);
		if (node_rank(b->g, from) < t.n) {
			from = b_unsqueeze(b, from, dim);
			index = b_unsqueeze(b, index, dim);
		}
		Node in[] = {b_full(b, node_dtype(b->g, from), 0, t.n, t.dim), index, from};
		g[0] = b_node(
			b, OP_aten_scatter_add, in, 3,
			(Attr[]){attr_none(), attr_int(b->g->ir, dim), attr_none(), attr_none()},
			4);
	}
	return g[0].i;
}

/* Shares the cotangent of the result y, which keeps the reduced dims and is an element of x,
 * among all that are equal to it. */
static Node shared(Build *b, Node x, Node y, uint32_t dims, Node ct)
{
	Node nan = b_bin(b, OP_bit_and, b_un(b, OP_isnan, x), b_un(b, OP_isnan, y));
	Node hit = b_bin(b, OP_bit_or, b_bin(b, OP_eq, x, y), nan);
	Node count = aten_sum(b, b_convert(b, hit, aten_dtype(b, ct)), dims, true);
	return b_select(b, hit, b_bin(b, OP_div, ct, count), aten_like(b, ct, 0));
}

bool aten_adjoint_shared(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node x = node_in(b->g, n, 0);
	uint32_t all = (1u << aten_rank(b, x)) - 1;
	Node by = with_dims(b, ct[0], all);
	g[0] = shared(b, x, with_dims(b, n, all), all, by);
	return g[0].i;
}

/* ---- bounds ---- */

/* Passes, with scalars, nothing where x is not strictly within. */
bool aten_adjoint_clamp(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node x = node_in(b->g, n, 0), within = {0};
	static const char *const bound[] = {"min", "max"};
	for (uint32_t k = 0; k < 2; k++) {
		if (!aten_has(b, n, bound[k]))
			continue;
		Node side = b_bin(b, k ? OP_lt : OP_gt, x, aten_scalar_arg(b, n, bound[k], x));
		within = within.i ? b_bin(b, OP_bit_and, within, side) : side;
	}
	g[0] = within.i ? b_select(b, within, ct[0], aten_like(b, ct[0], 0)) : ct[0];
	return g[0].i;
}

static Node either(Build *b, Node x, Node y)
{
	return x.i && y.i ? b_bin(b, OP_bit_or, x, y) : x.i ? x : y;
}

static Node but_not(Build *b, Node x, Node y)
{
	return x.i && y.i ? b_bin(b, OP_bit_and, x, b_un(b, OP_bit_not, y)) : x;
}

/* Shares, with tensors, between an operand and the one of two different bounds that it is equal
 * to; where they are equal they take nothing of it, and where they are crossed the upper one
 * takes all. */
bool aten_adjoint_clamp_tensor(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node x = arg(b, n, "self"), low = arg(b, n, "min"), high = arg(b, n, "max"), both = {0},
	     crossed = {0};
	Node below = low.i ? b_bin(b, OP_lt, x, low) : low,
	     above = high.i ? b_bin(b, OP_gt, x, high) : high;
	Node at_low = low.i ? b_bin(b, OP_eq, x, low) : low,
	     at_high = high.i ? b_bin(b, OP_eq, x, high) : high;
	Node zero = aten_like(b, ct[0], 0), half = b_bin_scalar(b, OP_mul, ct[0], 0.5);
	if (low.i && high.i) {
		both = b_bin(b, OP_eq, low, high);
		crossed = b_bin(b, OP_gt, low, high);
		at_low = but_not(b, but_not(b, at_low, both), crossed);
		at_high = but_not(b, at_high, both);
	}
	Node tie = either(b, at_low, at_high), out = either(b, either(b, below, above), crossed);
	g[0] = out.i ? b_select(b, out, zero, b_select(b, tie, half, ct[0])) : ct[0];
	if (want[1])
		g[1] = b_select(b, but_not(b, below, crossed), ct[0],
				b_select(b, at_low, half, zero));
	if (want[2])
		g[2] = b_select(b, either(b, above, crossed), ct[0],
				b_select(b, at_high, half, zero));
	return g[0].i;
}

/* ---- variance, deviation and mean ---- */

/* Returns 2 (x - mean) / free. Where there are fewer elements than the correction the variance
 * is infinite; then PyTorch has a slope of the other sign where dims are named, and none
 * otherwise. No elements have no slope, and tangents along none add up to 0. */
static Node slope_of_var(Build *b, Node n, Node x, uint32_t dims, Node free)
{
	Node away = b_bin(b, OP_sub, x, aten_mean(b, x, dims, true));
	bool named = op_arg_index(node_op(b->g, n), "dim") >= 0 && aten_has(b, n, "dim") &&
		     aten_rank(b, x);
	Node two = aten_like(b, x, 2), none = b_bin_scalar(b, OP_le, free, 0);
	if (named)
		return b_bin(b, OP_mul, away, b_bin(b, OP_div, two, free));
	Node slope = b_bin(b, OP_mul, away,
			   b_bin(b, OP_div, two, b_select(b, none, aten_like(b, x, 1), free)));
	Node lost = b_select(b, b_bin_scalar(b, OP_eq, away, 0), aten_like(b, x, (double)NAN),
			     aten_like(b, x, (double)INFINITY));
	return b_select(b, none, lost, slope);
}

static bool adjoint_moments(Build *b, Node n, const Node *ct, bool root, Node *g)
{
	Node x = node_in(b->g, n, 0), wide = aten_wide(b, x);
	bool pair = node_dtype(b->g, n) == DT_none;
	uint32_t dims = reduced_dims(b, n, aten_rank(b, x)), lost = keeps_dims(b, n) ? 0 : dims;
	DType d = aten_dtype(b, wide);
	Node count = aten_size(b, aten_count(b, x, dims), d);
	if (ct[0].i) {
		double correction = op_arg_index(node_op(b->g, n), "unbiased") >= 0
					    ? node_bool(b->g, n, "unbiased")
				    : aten_has(b, n, "correction")
					    ? node_float(b->g, n, "correction")
					    : 1;
		Node by = b_convert(b, with_dims(b, ct[0], lost), d), y = pair ? b_get(b, n, 0) : n;
		if (root) {
			y = b_convert(b, with_dims(b, y, lost), d);
			/* transposed, for tangents, the quotient is what the selected value goes
			 * through */
			Node none = b_bin_scalar(b, OP_eq, y, 0),
			     twice = b_bin_scalar(b, OP_mul,
						  b_select(b, none, aten_like(b, y, 1), y), 2);
			by = b_select(b, none, aten_like(b, by, 0), b_bin(b, OP_div, by, twice));
		}
		g[0] = b_bin(
			b, OP_mul, by,
			slope_of_var(b, n, wide, dims, b_bin_scalar(b, OP_sub, count, correction)));
	}
	if (pair && ct[1].i) {
		Node share = b_bin(b, OP_div, b_convert(b, with_dims(b, ct[1], lost), d), count);
		Shape s = aten_shape(b, x);
		g[0] = g[0].i ? b_bin(b, OP_add, g[0], share) : aten_expand_shape(b, share, &s);
	}
	return g[0].i;
}

bool aten_adjoint_var(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	return adjoint_moments(b, n, ct, false, g);
}

bool aten_adjoint_std(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	return adjoint_moments(b, n, ct, true, g);
}

static Attr dims_attr(Build *b, uint32_t dims)
{
	Sym *dim = ARENA_ARRAY(b->g->ir->ctx->scratch, Sym, MAX_RANK);
	uint32_t n = 0;
	for (uint32_t k = 0; k < MAX_RANK; k++)
		if (dims >> k & 1)
			dim[n++] = b_int(b, k);
	return attr_ints(dim, n);
}

/* Returns the overload of a moment over all dims that names them. */
static Op over_dims(Op op)
{
	switch (op) {
	case OP_aten_var: return OP_aten_var_dim;
	case OP_aten_std: return OP_aten_std_dim;
	case OP_aten_var_mean: return OP_aten_var_mean_dim;
	case OP_aten_std_mean: return OP_aten_std_mean_dim;
	default: return op;
	}
}

/* Builds the same over the dims behind the batch, by name. */
Node aten_batch_moments(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Graph *g = b->g;
	uint32_t rank = node_rank(g, node_in(g, n, 0));
	if (rank == 0) /* no list of dims is none of them */
		return batch_by_scan(b, n, in, batched, size);
	const NodeData d = *node_data(g, n);
	Op op = over_dims(d.op);
	Attr attr[4] = {[3] = attr_bool(false)};
	if (op == d.op)
		memcpy(attr, batch_attrs(b, n), op_schema(op)->narg * sizeof *attr);
	else
		attr[2] = *node_attr(g, n, "unbiased");
	attr[op_arg_index(op, "dim")] = dims_attr(b, reduced_dims(b, n, rank) << 1);
	return graph_add(g, b->before, op, in, 1, ir_attrs(g->ir, op_schema(op)->narg, attr),
			 batch_type(g->ir, d.type, size), b->loc);
}

/* ---- log(sum(exp)) ---- */

bool aten_adjoint_logsumexp(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node x = aten_wide(b, node_in(b->g, n, 0));
	uint32_t dims = reduced_dims(b, n, aten_rank(b, x)), lost = keeps_dims(b, n) ? 0 : dims;
	Node y = b_convert(b, with_dims(b, n, lost), aten_dtype(b, x));
	Node share = b_un(b, OP_exp, b_bin(b, OP_sub, x, y));
	g[0] = b_bin(b, OP_mul, share, b_convert(b, with_dims(b, ct[0], lost), aten_dtype(b, x)));
	return g[0].i;
}

/* ---- pieces of expansions ---- */

static bool shape_hinge(Infer *f)
{
	Type x = infer_in(f, 0);
	return infer_result(f, x.dtype, x.n, x.dim);
}
INFER(hinge)

Node aten_hinge(Build *b, Node x)
{
	if (!dtype_is_float(aten_dtype(b, x)))
		return b_bin_scalar(b, OP_maximum, x, 0);
	return b_node(b, OP_hinge, &x, 1, NULL, 0);
}
OP(hinge){
	.schema = "hinge(Tensor x) -> Tensor",
	.doc = "the greater of x and 0, flat at 0",
	.infer = infer_hinge,
	.expand = "maximum(x, 0)",
	.deriv = {"select(gt(x, 0), 1, 0)"},
	.no_sample = "part of losses, whose samples reach it",
};

OP(magnitude){
	.schema = "magnitude(Tensor re, Tensor im) -> Tensor",
	.doc = "how long a complex number is, flat at 0",
	.infer = infer_hinge,
	.expand = "hypot(re, im)",
	.deriv = {"zero = eq(y, 0); select(zero, 0, re / select(zero, 1, y))", "zero = eq(y, 0); "
									       "select(zero, 0, im "
									       "/ select(zero, 1, "
									       "y))"},
	.no_sample = "part of functions of complex numbers, whose samples reach it",
};

static bool shape_extreme(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t dim[MAX_RANK], n, gone = 0, rank = 0;
	Sym left[MAX_RANK];
	TRY(infer_dims(f, "dims", x.n, dim, &n));
	for (uint32_t k = 0; k < n; k++)
		gone |= 1u << dim[k];
	for (uint32_t k = 0; k < x.n; k++)
		if (!(gone >> k & 1))
			left[rank++] = x.dim[k];
	return infer_result(f, x.dtype, rank, left);
}
INFER(extreme)

static Node build_extreme(Build *b, Node n)
{
	Node x = arg(b, n, "x");
	bool max = node_bool(b->g, n, "max");
	return aten_reduce(b, max ? REDUCE_MAX : REDUCE_MIN, x,
			   aten_dims(b, n, "dims", aten_rank(b, x)), false);
}

static bool adjoint_extreme(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node x = arg(b, n, "x");
	uint32_t dims = aten_dims(b, n, "dims", aten_rank(b, x));
	Node by = with_dims(b, ct[0], dims);
	g[0] = shared(b, x, with_dims(b, n, dims), dims, by);
	return g[0].i;
}

Node aten_extreme(Build *b, Node x, bool max)
{
	uint32_t all = (1u << aten_rank(b, x)) - 1;
	aten_require_elements(b, x, all,
			      max ? "a maximum has an element" : "a minimum has an element");
	if (!all || !dtype_is_float(aten_dtype(b, x)))
		return aten_reduce(b, max ? REDUCE_MAX : REDUCE_MIN, x, all, false);
	return b_node(b, OP_extreme, &x, 1,
		      (Attr[]){attr_none(), attr_bool(max), dims_attr(b, all)}, 3);
}
OP(extreme){
	.schema = "extreme(Tensor x, *, bool max, int[] dims) -> Tensor",
	.doc = "the greatest or least element, in the derivative shared by those that are equal to "
	       "it, or not a number as it",
	.infer = infer_extreme,
	.build = build_extreme,
	.adjoint = adjoint_extreme,
	.batch = batch_dims,
	.no_sample = "part of max and min, whose samples reach it",
};

static bool shape_length(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t dim[MAX_RANK], n, gone = 0, rank = 0;
	Sym left[MAX_RANK];
	bool keep = infer_attr(f, "keepdim")->b;
	TRY(infer_dims(f, "dim", x.n, dim, &n));
	for (uint32_t k = 0; k < n; k++)
		gone |= 1u << dim[k];
	for (uint32_t k = 0; k < x.n; k++)
		if (keep || !(gone >> k & 1))
			left[rank++] = gone >> k & 1 ? sym_int(f->syms, 1) : x.dim[k];
	return infer_result(f, x.dtype, rank, left);
}
INFER(length)

static Node parts_of_length(Build *b, Node x, double p, uint32_t dims, bool keep)
{
	if (p == 2) {
		Node sq = b_bin(b, OP_mul, x, x);
		return b_un(b, OP_sqrt, aten_sum(b, sq, dims, keep));
	}
	Node a = b_un(b, OP_abs, x);
	if (isinf(p))
		return aten_reduce(b, p > 0 ? REDUCE_MAX : REDUCE_MIN, a, dims, keep);
	a = aten_sum(b, b_bin_scalar(b, OP_pow, a, p), dims, keep);
	return b_bin_scalar(b, OP_pow, a, 1 / p);
}

static Node build_length(Build *b, Node n)
{
	Node x = arg(b, n, "x");
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, x));
	return parts_of_length(b, x, node_float(b->g, n, "order"), dims,
			       node_bool(b->g, n, "keepdim"));
}

Node aten_length(Build *b, Node x, double p, uint32_t dims, bool keep)
{
	if (!dtype_is_float(aten_dtype(b, x)))
		return parts_of_length(b, x, p, dims, keep);
	if (!dims) /* of each number by itself */
		return b_un(b, OP_abs, x);
	return b_node(b, OP_length, &x, 1,
		      (Attr[]){attr_none(), attr_float(p), dims_attr(b, dims), attr_bool(keep)}, 4);
}

/* Returns the slope of a norm of order p at x times by, where the norm is y: 0 at 0. */
static Node length_slope(Build *b, Node x, Node y, double p, uint32_t dims, Node by)
{
	Node zero = aten_like(b, x, 0), one = aten_like(b, x, 1),
	     none = b_bin_scalar(b, OP_eq, y, 0);
	if (!isinf(p))
		y = b_select(b, none, one, y); /* so that what is not selected has numbers for
		                                  derivatives */
	if (p == 2)
		return b_select(b, none, zero, b_bin(b, OP_mul, b_bin(b, OP_div, x, y), by));
	Node a = b_un(b, OP_abs, x), sign = b_un(b, OP_sign, x);
	if (isinf(p)) {
		Node hit = b_bin(b, OP_eq, a, y);
		Node count = aten_sum(b, b_convert(b, hit, aten_dtype(b, x)), dims, true);
		return b_select(b, hit, b_bin(b, OP_mul, sign, b_bin(b, OP_div, by, count)), zero);
	}
	Node at_zero = b_bin_scalar(b, OP_eq, x, 0);
	if (p < 1)
		a = b_select(b, at_zero, one, a);
	Node power = b_bin(b, OP_mul, sign, b_bin_scalar(b, OP_pow, a, p - 1));
	if (p < 1) {
		power = b_select(b, at_zero, zero, power);
		return b_bin(b, OP_mul, power,
			     b_bin(b, OP_mul, by, b_bin_scalar(b, OP_pow, y, 1 - p)));
	}
	Node scale = b_bin(b, OP_div, by, b_bin_scalar(b, OP_pow, y, p - 1));
	return b_bin(b, OP_mul, power, b_select(b, none, zero, scale));
}

static bool adjoint_length(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node x = arg(b, n, "x");
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, x)),
		 lost = node_bool(b->g, n, "keepdim") ? 0 : dims;
	Node by = with_dims(b, ct[0], lost), y = with_dims(b, n, lost);
	g[0] = length_slope(b, x, y, node_float(b->g, n, "order"), dims, by);
	return g[0].i;
}
OP(length){
	.schema = "length(Tensor x, *, float order, int[] dim, bool keepdim) -> Tensor",
	.doc = "(sum |x|^order)^(1/order), flat at 0; not of orders 0 and 1",
	.infer = infer_length,
	.build = build_length,
	.adjoint = adjoint_length,
	.batch = batch_dim,
	.no_sample = "part of norms, whose samples reach it",
};
