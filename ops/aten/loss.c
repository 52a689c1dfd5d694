/* ATen losses. */
#include "ops/aten/priv.h"
#include "ops/rules/batch.h"

static Node build_mse_loss(Build *b, Node n)
{
	Node d = b_bin(b, OP_sub, arg(b, n, "self"), arg(b, n, "target"));
	return aten_reduce_loss(b, n, b_bin(b, OP_mul, d, d));
}
OP(aten_mse_loss){
	.schema = "aten.mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_mse_loss,
	.sample = "f32[n=3, 4], f32[n, 4] in -2..2, reduction=0; f32[n=3, 4], f32[n, 4] in -2..2, "
		  "reduction=1; f32[n=3, 4], f32[n, 4] in -2..2, reduction=2",
};

static Node build_l1_loss(Build *b, Node n)
{
	Node d = b_bin(b, OP_sub, arg(b, n, "self"), arg(b, n, "target"));
	return aten_reduce_loss(b, n, aten_abs(b, d));
}
OP(aten_l1_loss){
	.schema = "aten.l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_l1_loss,
	.sample = "f32[n=3, 4], f32[n, 4] in -2..2, reduction=0; f32[n=3, 4], f32[n, 4] in -2..2, "
		  "reduction=1; f32[n=3, 4], f32[n, 4] in -2..2, reduction=2",
};

/* Returns d * d, and 0 where the loss is linear: nothing infinite comes into the derivative of
 * the arm that is not taken. Of d, not of its magnitude, whose second derivative at 0 is that of
 * a kink. */
static Node near_square(Build *b, Node d, Node far)
{
	Node near = b_select(b, far, aten_like(b, d, 0), d);
	return b_bin(b, OP_mul, near, near);
}

/* Takes NaN as near, where its slope is NaN; so is that of PyTorch. */
static Node build_smooth_l1_loss(Build *b, Node n)
{
	Node signed_d = b_bin(b, OP_sub, arg(b, n, "self"), arg(b, n, "target")),
	     d = b_un(b, OP_abs, signed_d);
	double beta = node_float(b->g, n, "beta");
	if (beta == 0)
		return aten_reduce_loss(b, n, d);
	Node far = b_bin_scalar(b, OP_ge, d, beta);
	Node square = b_bin_scalar(b, OP_mul, near_square(b, signed_d, far), 0.5 / beta);
	Node line = b_bin_scalar(b, OP_sub, d, 0.5 * beta);
	return aten_reduce_loss(b, n, b_select(b, far, line, square));
}
OP(aten_smooth_l1_loss){
	.schema = "aten.smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float "
		  "beta=1.0) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_smooth_l1_loss,
	.sample = "f32[n=3, 4], f32[n, 4] in -2..2, reduction=0, beta=1.5; "
		  "f32[n=3, 4], f32[n, 4] in -2..2, reduction=1, beta=1.5; "
		  "f32[n=3, 4], f32[n, 4] in -2..2, reduction=2, beta=1.5; "
		  "f32[n=3, 4], f32[n, 4] in -2..2, beta=0.0",
};

static Node build_huber_loss(Build *b, Node n)
{
	Node signed_d = b_bin(b, OP_sub, arg(b, n, "self"), arg(b, n, "target")),
	     d = b_un(b, OP_abs, signed_d);
	double delta = node_float(b->g, n, "delta");
	Node far = b_bin_scalar(b, OP_ge, d, delta); /* at delta the slope is constant */
	Node square = b_bin_scalar(b, OP_mul, near_square(b, signed_d, far), 0.5);
	Node line = b_bin_scalar(b, OP_mul, b_bin_scalar(b, OP_sub, d, 0.5 * delta), delta);
	return aten_reduce_loss(b, n, b_select(b, far, line, square));
}
OP(aten_huber_loss){
	.schema = "aten.huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) "
		  "-> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_huber_loss,
	.sample = "f32[n=3, 4], f32[n, 4] in -2..2, reduction=0, delta=1.5; "
		  "f32[n=3, 4], f32[n, 4] in -2..2, reduction=1, delta=1.5; "
		  "f32[n=3, 4], f32[n, 4] in -2..2, reduction=2, delta=1.5",
};

static Node weighted(Build *b, Node n, Node loss)
{
	Node w = arg(b, n, "weight");
	return aten_reduce_loss(b, n, w.i ? b_bin(b, OP_mul, loss, w) : loss);
}

/* Keeps the logarithms from -100 on, as ATen does. */
static Node build_bce(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "target");
	Node lx = b_bin_scalar(b, OP_maximum, b_un(b, OP_log, x), -100);
	Node l1 = b_un(b, OP_log1p, b_un(b, OP_neg, x));
	l1 = b_bin_scalar(b, OP_maximum, l1, -100);
	Node rest = b_bin_scalar(b, OP_sub, y, 1);
	rest = b_bin(b, OP_mul, rest, l1);
	return weighted(b, n, b_bin(b, OP_sub, rest, b_bin(b, OP_mul, y, lx)));
}

/* Differentiates: by the input the slope is bounded, by the target it is not. */
static bool adjoint_bce(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "target"), w = arg(b, n, "weight");
	Attr attr[] = {attr_none(), attr_none(), attr_none(), attr_none(),
		       *node_attr(b->g, n, "reduction")};
	g[0] = b_node(b, OP_aten_binary_cross_entropy_backward, (Node[]){ct[0], x, y, w}, 4, attr,
		      5);
	if (!want[1])
		return g[0].i;
	Node wide = aten_wide(b, x),
	     slope = b_bin(b, OP_sub, b_un(b, OP_log1p, b_un(b, OP_neg, wide)),
			   b_un(b, OP_log, wide));
	slope = b_bin(b, OP_mul, w.i ? b_bin(b, OP_mul, slope, aten_wide(b, w)) : slope, ct[0]);
	if (aten_int(b, n, "reduction") == 1)
		slope = b_bin(b, OP_div, slope,
			      aten_size(b, type_numel(b->g->ir, node_type_id(b->g, y)),
					aten_dtype(b, slope)));
	g[1] = slope;
	return g[0].i && g[1].i;
}

/* Computes element by element, and then over all but the batch. */
static Node batch_bce(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	int64_t how = aten_int(b, n, "reduction");
	if (how == 0)
		return batch_element_wise(b, n, in, batched, size);
	Node own[3], each, x = arg(b, n, "self");
	for (uint32_t k = 0; k < 3; k++)
		own[k] = node_in(b->g, n, k);
	Attr attr[] = {attr_none(), attr_none(), attr_none(), attr_int(b->g->ir, 0)};
	each = graph_add(b->g, b->before, node_op(b->g, n), own, 3, ir_attrs(b->g->ir, 4, attr),
			 node_type_id(b->g, x), b->loc);
	Node y = batch_element_wise(b, each, in, batched, size);
	graph_erase(b->g, each);
	uint32_t dims = (1u << aten_rank(b, y)) - 2;
	return how == 1 ? aten_mean(b, y, dims, false) : aten_sum(b, y, dims, false);
}
OP(aten_binary_cross_entropy){
	.schema = "aten.binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, "
		  "int reduction=1) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_bce,
	.adjoint = adjoint_bce,
	.batch = batch_bce,
	.sample = "f32[n=3, 4] in 0.1..0.9, f32[n, 4] in 0..1, reduction=0; "
		  "f32[n=3, 4] in 0.1..0.9, f32[n, 4] in 0..1, reduction=1; "
		  "f32[n=3, 4] in 0.1..0.9, f32[n, 4] in 0..1, reduction=2; "
		  "f32[n=2, 3] of 0 1 0.5 0.25, f32[n, 3] in 0..1, f32[3] in 0.5..2",
};

/* Builds (1 - y) x - (1 + (pos - 1) y) log(sigmoid(x)). */
static Node build_bce_logits(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "target"), pos = arg(b, n, "pos_weight");
	Node tail =
		b_un(b, OP_neg, b_node(b, OP_aten_log_sigmoid, &x, 1, (Attr[]){attr_none()}, 1));
	if (pos.i) {
		Node more = b_bin(b, OP_mul, b_bin_scalar(b, OP_sub, pos, 1), y);
		tail = b_bin(b, OP_mul, b_bin_scalar(b, OP_add, more, 1), tail);
	}
	Node rest = b_bin(b, OP_sub, aten_like(b, y, 1), y);
	return weighted(b, n, b_bin(b, OP_add, b_bin(b, OP_mul, rest, x), tail));
}
OP(aten_binary_cross_entropy_with_logits){
	.schema = "aten.binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? "
		  "weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_bce_logits,
	.sample = "f32[n=3, 4], f32[n, 4] in 0..1, reduction=0; f32[n=3, 4], f32[n, 4] in 0..1, "
		  "reduction=1; f32[n=3, 4], f32[n, 4] in 0..1, reduction=2; "
		  "f32[n=3, 4], f32[n, 4] in 0..1, f32[4] in 0.5..2, f32[4] in 0.5..2, reduction=0",
};

static Node build_kl_div(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "target"), l;
	if (node_bool(b->g, n, "log_target")) {
		l = b_bin(b, OP_sub, y, x);
		l = b_bin(b, OP_mul, b_un(b, OP_exp, y), l);
	} else {
		Node ylogy = b_node(b, OP_aten_xlogy_Tensor, (Node[]){y, y}, 2, NULL, 0);
		l = b_bin(b, OP_sub, ylogy, b_bin(b, OP_mul, y, x));
	}
	return aten_reduce_loss(b, n, l);
}
OP(aten_kl_div){
	.schema = "aten.kl_div(Tensor self, Tensor target, int reduction=1, *, bool "
		  "log_target=False) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_kl_div,
	.sample = "f32[n=3, 4] in -3..0, f32[n, 4] of 0 0.25 0.5 1 0.75, reduction=0; "
		  "f32[n=3, 4] in -3..0, f32[n, 4] of 0 0.25 0.5 1 0.75, reduction=1; "
		  "f32[n=3, 4] in -3..0, f32[n, 4] of 0 0.25 0.5 1 0.75, reduction=2; "
		  "f32[n=3, 4] in -3..0, f32[n, 4] in -3..0, reduction=0, log_target=true",
};

static Node build_soft_margin_loss(Build *b, Node n)
{
	Node p = b_bin(b, OP_mul, arg(b, n, "self"), arg(b, n, "target"));
	return aten_reduce_loss(b, n, b_un(b, OP_log1p, b_un(b, OP_exp, b_un(b, OP_neg, p))));
}
OP(aten_soft_margin_loss){
	.schema = "aten.soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_soft_margin_loss,
	.sample = "f32[n=3, 4], f32[n, 4] of -1 1 1, reduction=0; f32[n=3, 4], "
		  "f32[n, 4] of -1 1 1, reduction=1; f32[n=3, 4], f32[n, 4] of -1 1 1, reduction=2",
};

static Node build_hinge_embedding_loss(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "target");
	Node gap = b_bin(b, OP_sub, aten_like(b, x, node_float(b->g, n, "margin")), x);
	gap = aten_hinge(b, gap);
	Node zero = aten_like(b, x, 0);
	Node is_plus = b_bin_scalar(b, OP_eq, y, 1), is_minus = b_bin_scalar(b, OP_eq, y, -1);
	/* ATen adds the margin branch where the target is not 1, and x where it is not -1. */
	Node low = b_select(b, is_plus, zero, gap);
	Node high = b_select(b, is_minus, zero, x);
	return aten_reduce_loss(b, n, b_bin(b, OP_add, low, high));
}
OP(aten_hinge_embedding_loss){
	.schema = "aten.hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int "
		  "reduction=1) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_hinge_embedding_loss,
	.sample = "f32[n=3, 4], f32[n, 4] of -1 1 1, reduction=0; f32[n=3, 4], "
		  "f32[n, 4] of -1 1 1, reduction=1; f32[n=3, 4], f32[n, 4] of -1 1 1, "
		  "reduction=2; "
		  "f32[n=3, 4], f32[n, 4] of -1 1 1, margin=2.5, reduction=0",
};

static Node build_margin_ranking_loss(Build *b, Node n)
{
	Node d = b_bin(b, OP_sub, arg(b, n, "input1"), arg(b, n, "input2"));
	Node y = b_un(b, OP_neg, arg(b, n, "target"));
	Node l = aten_to_float(b, b_bin(b, OP_mul, y, d));
	l = b_bin_scalar(b, OP_add, l, node_float(b->g, n, "margin"));
	return aten_reduce_loss(b, n, aten_hinge(b, l));
}
OP(aten_margin_ranking_loss){
	.schema = "aten.margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float "
		  "margin=0.0, int reduction=1) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_margin_ranking_loss,
	.sample = "f32[n=4], f32[n], f32[n] of -1 1 1, reduction=0; f32[n=4], f32[n], "
		  "f32[n] of -1 1 1, reduction=1; f32[n=4], f32[n], f32[n] of -1 1 1, reduction=2; "
		  "f32[n=4], f32[n], f32[n] of -1 1, margin=1.5, reduction=0",
};

static Node build_poisson_nll(Build *b, Node n)
{
	Node x = arg(b, n, "input"), y = arg(b, n, "target"), l;
	double eps = node_float(b->g, n, "eps");
	if (node_bool(b->g, n, "log_input")) {
		Node e = b_un(b, OP_exp, x);
		l = b_bin(b, OP_sub, e, b_bin(b, OP_mul, y, x));
	} else {
		Node log = b_un(b, OP_log, b_bin_scalar(b, OP_add, x, eps));
		l = b_bin(b, OP_sub, x, b_bin(b, OP_mul, y, log));
	}
	if (node_bool(b->g, n, "full")) {
		/* Stirling's approximation of log(y!) for y > 1 */
		Node s = b_bin(b, OP_sub, b_bin(b, OP_mul, y, b_un(b, OP_log, y)), y);
		Node half = b_un(b, OP_log, b_bin_scalar(b, OP_mul, y, 6.283185307179586));
		s = b_bin(b, OP_add, s, b_bin_scalar(b, OP_mul, half, 0.5));
		Node big = b_bin_scalar(b, OP_gt, y, 1);
		l = b_bin(b, OP_add, l, b_select(b, big, s, aten_like(b, s, 0)));
	}
	return aten_reduce_loss(b, n, l);
}
OP(aten_poisson_nll_loss){
	.schema = "aten.poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, "
		  "float eps, int reduction) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_poisson_nll,
	.sample = "f32[n=3, 4] in -3..3, f32[n, 4] in 0..5, log_input=true, full=false, eps=0.001, "
		  "reduction=0; f32[n=3, 4] in 0..3, f32[n, 4] in 0..5, log_input=false, "
		  "full=false, eps=0.001, reduction=1; "
		  "f32[n=3, 4] in -3..3, f32[n, 4] in 0..5, log_input=true, full=true, eps=0.001, "
		  "reduction=2; f32[n=3, 4] in 0..3, f32[n, 4] in 0..5, log_input=false, "
		  "full=true, eps=0.001, reduction=0",
};

/* ---- classification ---- */

/* Returns per element: -w[t] * logp[t], 0 where t is ignored; *weight is w[t] or 0. The class
 * dim of logp is `dim`; the target has logp's shape without it; w may be absent. */
static Node nll(Build *b, Node n, Node logp, Node target, Node w, uint32_t dim, Node *weight)
{
	if (aten_rank(b, target) + 1 != aten_rank(b, logp))
		return b_error(b, "class indices of rank %u for scores of rank %u",
			       aten_rank(b, target), aten_rank(b, logp));
	target = b_convert(b, target, DT_i64);
	Node keep =
		b_bin(b, OP_ne, target, aten_size(b, node_sym(b->g, n, "ignore_index"), DT_i64));
	Node safe = b_select(b, keep, target, aten_like(b, target, 0));
	Node picked = aten_gather_dim(b, logp, dim, b_unsqueeze(b, safe, (int)dim));
	Node l = b_un(b, OP_neg, b_squeeze(b, picked, (int)dim));
	*weight = w.i ? aten_take_dim(b, w, 0, safe, "within") : aten_like(b, l, 1);
	*weight = b_select(b, keep, *weight, aten_like(b, *weight, 0));
	if (w.i)
		l = b_bin(b, OP_mul, l, *weight);
	return b_select(b, keep, l, aten_like(b, l, 0));
}

static Node sum_all(Build *b, Node x)
{
	return aten_sum(b, x, (1u << aten_rank(b, x)) - 1, false);
}

/* Reduces the losses; reduction 1 is the weighted mean; PyTorch leaves the weight 0 where
 * nothing is reduced. */
static Node reduce_nll(Build *b, Node n, Node l, Node weight, Node *total)
{
	int64_t how = aten_int(b, n, "reduction");
	*total = sum_all(b, weight);
	if (how == 0) {
		*total = aten_like(b, *total, 0);
		return l;
	}
	Node sum = sum_all(b, l);
	return how == 1 ? b_bin(b, OP_div, sum, *total) : sum;
}

static uint32_t class_dim(const Build *b, Node x)
{
	return aten_rank(b, x) > 1 ? 1 : 0;
}

static Node nll_loss(Build *b, Node n, int pair)
{
	Node x = arg(b, n, "self"), weight, total;
	if (aten_rank(b, x) == 0)
		return b_error(b, "nll_loss of a tensor without dims");
	Node w = aten_without_tangent(b, arg(b, n, "weight"));
	Node l = nll(b, n, x, arg(b, n, "target"), w, class_dim(b, x), &weight);
	Node y = l.i ? reduce_nll(b, n, l, weight, &total) : l;
	return y.i && pair ? b_tuple(b, (Node[]){y, aten_detached(b, total)}, 2) : y;
}
/* Puts the cotangent at the class that is the target, nothing where it is ignored: selected,
 * since the mean over none is divided by 0. PyTorch has no derivative by the class weights:
 * cotangents are those of the function, but tangents pass them over. */
static bool adjoint_nll_loss(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node x = arg(b, n, "self"), target = b_convert(b, arg(b, n, "target"), DT_i64), weight,
	     total;
	Node w = aten_without_tangent(b, arg(b, n, "weight"));
	bool pair = node_dtype(b->g, n) == DT_none, mean = aten_int(b, n, "reduction") == 1;
	uint32_t dim = class_dim(b, x), all = (1u << aten_rank(b, x)) - 1;
	Shape s = aten_shape(b, x);
	if (!ct[0].i)
		return true;
	Node l = nll(b, n, x, target, w, dim, &weight), by = aten_wide(b, ct[0]),
	     wide = aten_wide(b, x);
	reduce_nll(b, n, l, weight, &total);
	if (mean)
		by = b_bin(b, OP_div, by, total);
	Node keep =
		b_bin(b, OP_ne, target, aten_size(b, node_sym(b->g, n, "ignore_index"), DT_i64));
	Node hit = b_bin(b, OP_eq, aten_iota_dim(b, &s, dim, DT_i64),
			 b_unsqueeze(b, target, (int)dim));
	hit = b_bin(b, OP_bit_and, hit, b_unsqueeze(b, keep, (int)dim));
	if (aten_rank(b, by))
		by = b_unsqueeze(b, by, (int)dim);
	Node slope = w.i ? b_bin(b, OP_mul, by, aten_per_dim(b, aten_wide(b, w), x, dim)) : by,
	     none = aten_like(b, by, 0);
	g[0] = b_select(b, hit, b_un(b, OP_neg, slope), none);
	if (want[2]) {
		Node loss = b_un(b, OP_neg, wide);
		if (mean)
			loss = b_bin(b, OP_sub, loss, aten_wide(b, pair ? b_get(b, n, 0) : n));
		g[2] = aten_sum(b, b_select(b, hit, b_bin(b, OP_mul, by, loss), none),
				all & ~(1u << dim), false);
	}
	return g[0].i;
}

OP(aten_nll_loss){
	.schema = "aten.nll_loss(Tensor self, Tensor target, Tensor? weight=None, int "
		  "reduction=1, SymInt ignore_index=-100) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build_as = {nll_loss, false},
	.adjoint = adjoint_nll_loss,
	.jvp = "nll_loss(t_self, target, weight, reduction, ignore_index)",
	.sample = "f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, reduction=0, "
		  "ignore_index=1; f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, "
		  "reduction=1, ignore_index=1; "
		  "f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, reduction=2, "
		  "ignore_index=-100; f32[n=4, 3], i64[n] of 0 2 1 2, none, reduction=1, "
		  "ignore_index=0",
	.overloads = (const Overload[]){
		{.schema = "aten.nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int "
			   "reduction=1, SymInt ignore_index=-100) -> Tensor",
		 .sample = "f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, reduction=0, "
			   "ignore_index=1; f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, "
			   "reduction=1, ignore_index=1; "
			   "f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, reduction=2, "
			   "ignore_index=-100; f32[n=4, 3], i64[n] of 0 2 1 2, none, reduction=1, "
			   "ignore_index=0; "
			   "f32[n=2, 3, 2, 2], i64[n, 2, 2] of 0 2 1 2 1, f32[3] in 0.5..1.5, "
			   "reduction=1, ignore_index=2; f32[3], i64[] of 2"},
		{.schema = "aten.nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int "
			   "reduction=1, SymInt ignore_index=-100) -> Tensor",
		 .sample = "f32[n=2, 3, 2, 2], i64[n, 2, 2] of 0 2 1 2 1, f32[3] in 0.5..1.5, "
			   "reduction=0, ignore_index=1; "
			   "f32[n=2, 3, 2, 2], i64[n, 2, 2] of 0 2 1 2 1, f32[3] in 0.5..1.5, "
			   "reduction=1, ignore_index=2; f32[n=2, 3, 2, 2], "
			   "i64[n, 2, 2] of 0 2 1 2 1, none, reduction=2, ignore_index=-100"},
	},
};
OP(aten_nll_loss_forward){
	.schema = "aten.nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int "
		  "reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
	.autocast = AUTOCAST_F32,
	.build_as = {nll_loss, true},
	.adjoint = adjoint_nll_loss,
	.jvp = "[nll_loss(t_self, target, weight, reduction, ignore_index), none]",
	.sample = "f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, reduction=0, "
		  "ignore_index=1; f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, "
		  "reduction=1, ignore_index=1; "
		  "f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, reduction=2, "
		  "ignore_index=-100; f32[n=4, 3], i64[n] of 0 2 1 2, none, reduction=1, "
		  "ignore_index=0",
	.overloads = (const Overload[]){
		{.schema = "aten.nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, "
			   "int reduction, SymInt ignore_index) -> (Tensor output, "
			   "Tensor total_weight)",
		 .sample = "f32[n=2, 3, 2, 2], i64[n, 2, 2] of 0 2 1 2 1, f32[3] in 0.5..1.5, "
			   "reduction=0, ignore_index=1; "
			   "f32[n=2, 3, 2, 2], i64[n, 2, 2] of 0 2 1 2 1, f32[3] in 0.5..1.5, "
			   "reduction=1, ignore_index=2; f32[n=2, 3, 2, 2], "
			   "i64[n, 2, 2] of 0 2 1 2 1, none, reduction=2, ignore_index=-100"},
	},
};

/* Computes the loss of targets that are probabilities of x's shape. */
static Node soft_cross_entropy(Build *b, Node n, Node logp, Node target, uint32_t dim,
			       double smooth)
{
	Node w = arg(b, n, "weight");
	Sym classes = b_dim(b, logp, (int)dim);
	if (smooth > 0) {
		Node each = aten_size(b, classes, aten_dtype(b, target));
		Node add = b_bin(b, OP_div, aten_like(b, target, smooth), each);
		target = b_bin_scalar(b, OP_mul, target, 1 - smooth);
		target = b_bin(b, OP_add, target, add);
	}
	Node l = b_bin(b, OP_mul, logp, target);
	if (w.i)
		l = b_bin(b, OP_mul, l, aten_per_dim(b, w, l, dim));
	l = b_un(b, OP_neg, aten_sum(b, l, 1u << dim, false));
	if (aten_int(b, n, "reduction") != 1)
		return aten_reduce_loss(b, n, l);
	Node sum = sum_all(b, l);
	Sym count = aten_count(b, l, (1u << aten_rank(b, l)) - 1);
	return b_bin(b, OP_div, sum, aten_size(b, count, aten_dtype(b, sum)));
}

static Node build_cross_entropy(Build *b, Node n)
{
	Node x = arg(b, n, "self"), target = arg(b, n, "target"), w = arg(b, n, "weight");
	Node weight, total;
	double smooth = node_float(b->g, n, "label_smoothing");
	if (!aten_check_within(b, "label_smoothing", smooth, 0, 1) ||
	    !aten_check_arg_within(b, n, "reduction", 0, 2))
		return (Node){0};
	if (aten_rank(b, x) == 0 || !target.i)
		return b_error(b, "cross_entropy_loss of a tensor without dims");
	uint32_t dim = class_dim(b, x);
	Node logp = b_node(b, OP_aten__log_softmax, &x, 1,
			   (Attr[]){attr_none(), attr_int(b->g->ir, dim), attr_bool(false)}, 3);
	if (dtype_is_float(aten_dtype(b, target)))
		return soft_cross_entropy(b, n, logp, target, dim, smooth);
	Attr attr[] = {attr_none(), attr_none(), attr_none(), *node_attr(b->g, n, "reduction"),
		       *node_attr(b->g, n, "ignore_index")};
	Node y = b_node(b, OP_aten_nll_loss_nd, (Node[]){logp, target, w}, 3, attr, 5);
	if (smooth == 0 || !y.i)
		return y;
	nll(b, n, logp, target, w, dim, &weight);
	/* (1 - e) nll + e / classes * sum over classes of -w[c] logp[c], ignored elements left out
	 */
	Node all = w.i ? b_bin(b, OP_mul, logp, aten_per_dim(b, w, logp, dim)) : logp;
	all = b_un(b, OP_neg, aten_sum(b, all, 1u << dim, false));
	Node ignored = aten_size(b, node_sym(b->g, n, "ignore_index"), DT_i64);
	Node keep = b_bin(b, OP_ne, b_convert(b, target, DT_i64), ignored);
	all = b_select(b, keep, all, aten_like(b, all, 0));
	all = reduce_nll(b, n, all, weight, &total);
	Node classes = aten_size(b, b_dim(b, logp, (int)dim), aten_dtype(b, all));
	all = b_bin(b, OP_div, b_bin_scalar(b, OP_mul, all, smooth), classes);
	return b_bin(b, OP_add, b_bin_scalar(b, OP_mul, y, 1 - smooth), all);
}
OP(aten_cross_entropy_loss){
	.schema = "aten.cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int "
		  "reduction=1, SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_cross_entropy,
	.sample = "f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, reduction=0, "
		  "ignore_index=1; f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, "
		  "reduction=1, ignore_index=1; "
		  "f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, reduction=2, "
		  "ignore_index=-100; f32[n=4, 3], i64[n] of 0 2 1 2, none, reduction=1, "
		  "ignore_index=0; "
		  "f32[n=2, 3, 2, 2], i64[n, 2, 2] of 0 2 1 2 1, f32[3] in 0.5..1.5, reduction=1, "
		  "ignore_index=2; f32[n=4, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, "
		  "label_smoothing=0.25; "
		  "f32[n=4, 3], f32[n, 3] in 0..1; f32[4, 3], f32[4, 3] in 0..1, "
		  "f32[3] in 0.5..1.5, reduction=0, label_smoothing=0.25; f32[3], i64[] of 2; "
		  "f32[4, 3], i64[4] of 0 2 1 2, none, reduction=0, label_smoothing=0.25, "
		  "ignore_index=1",
};

/* Builds linear, then cross entropy. PyTorch goes through the batch in chunks, so that it never
 * holds all logits. */
static Node linear_cross_entropy(Build *b, Node n, int64_t reduction, double smooth)
{
	Node x = aten_wide(b, arg(b, n, "input")), w = arg(b, n, "linear_weight");
	Node bias = arg(b, n, "linear_bias"), target = arg(b, n, "target");
	if (!x.i || !w.i || !target.i)
		return (Node){0};
	DType d = aten_dtype(b, arg(b, n, "input"));
	bias = bias.i ? aten_wide(b, bias) : bias;
	Node y = aten_linear(b, x, aten_wide(b, w), bias);
	Ir *ir = b->g->ir;
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_none(),
		       attr_int(ir, reduction),
		       attr_sym(node_sym(b->g, n, "ignore_index")),
		       attr_float(smooth)};
	Node in[] = {y, target, arg(b, n, "weight")};
	y = y.i ? b_node(b, OP_aten_cross_entropy_loss, in, 3, attr, 6) : y;
	return y.i ? b_convert(b, y, d) : y;
}

/* Tells whether anything reads the gradients, which PyTorch computes beside the loss, for a
 * backward pass that may never come. */
static bool gradients_are_read(const Build *b, Node n)
{
	for (Use u = node_data(b->g, n)->first_use; u.i; u = b->g->use.data[u.i].next) {
		Node get = b->g->use.data[u.i].user;
		bool read = node_nuses(b->g, get) || node_is_output(b->g, get);
		if (node_op(b->g, get) != OP_get || (node_int(b->g, get, "index") && read))
			return true;
	}
	return false;
}

static Node build_linear_cross_entropy(Build *b, Node n)
{
	static const char *const grad[][2] = {{"compute_input_grad", "input"},
					      {"compute_linear_weight_grad", "linear_weight"},
					      {"compute_linear_bias_grad", "linear_bias"}};
	bool mean = aten_is(b, n, "reduction", "mean");
	if (!mean && !aten_is(b, n, "reduction", "sum"))
		return b_error(b, "unknown reduction");
	if (gradients_are_read(b, n))
		return b_error(b, "gradients of linear_cross_entropy are not supported");
	Node y = linear_cross_entropy(b, n, mean ? 1 : 2, node_float(b->g, n, "label_smoothing"));
	Node result[4] = {y};
	for (uint32_t k = 0; k < 3 && y.i; k++) {
		Node like = arg(b, n, grad[k][1]);
		Shape s = like.i ? aten_shape(b, like) : shape_of(1, (Sym[]){b_int(b, 0)});
		for (uint32_t d = 0; d < s.rank && !node_bool(b->g, n, grad[k][0]); d++)
			s.dim[d] = b_int(b, 0);
		result[k + 1] = b_full(b, node_dtype(b->g, like.i ? like : y), 0, s.rank, s.dim);
	}
	return y.i ? b_tuple(b, result, 4) : y;
}
static Node build_linear_cross_entropy_none(Build *b, Node n)
{
	return linear_cross_entropy(b, n, 0, 0);
}
OP(torch_nn__linear_cross_entropy_batch_chunked){
	.schema = "torch_nn._linear_cross_entropy_batch_chunked(Tensor input, Tensor "
		  "linear_weight, Tensor target, Tensor? linear_bias, Tensor? weight, str "
		  "reduction, SymInt ignore_index, float label_smoothing, SymInt "
		  "batch_chunk_size, str acc_policy, ScalarType acc_dtype, bool "
		  "allow_retain_graph, bool compute_input_grad, bool compute_linear_weight_grad, "
		  "bool compute_linear_bias_grad) -> (Tensor, Tensor, Tensor, Tensor)",
	.build = build_linear_cross_entropy,
	.sample = "f32[n=4, 3], f32[5, 3], i64[n] of 0 4 1 2, f32[5], f32[5] in 0.5..1.5, "
		  "reduction=\"mean\", ignore_index=2, label_smoothing=0.0, batch_chunk_size=2, "
		  "acc_policy=\"auto\", acc_dtype=f32, "
		  "allow_retain_graph=false, compute_input_grad=false, "
		  "compute_linear_weight_grad=false, compute_linear_bias_grad=false -> 0; "
		  "f32[n=4, 3], f32[5, 3], i64[n] of 0 4 1 2, f32[5], "
		  "f32[5] in 0.5..1.5, reduction=\"sum\", ignore_index=2, label_smoothing=0.25, "
		  "batch_chunk_size=2, acc_policy=\"auto\", acc_dtype=f32, "
		  "allow_retain_graph=false, compute_input_grad=false, "
		  "compute_linear_weight_grad=false, compute_linear_bias_grad=false -> 0",
	.overloads = (const Overload[]){
		{.schema = "torch_nn._linear_cross_entropy_batch_chunked_no_reduction(Tensor "
			   "input, Tensor linear_weight, Tensor target, Tensor? linear_bias, "
			   "Tensor? weight, SymInt "
			   "ignore_index, SymInt batch_chunk_size, str acc_policy, "
			   "ScalarType acc_dtype) -> Tensor",
		 .build = build_linear_cross_entropy_none,
		 .sample = "f32[n=4, 3], f32[5, 3], i64[n] of 0 4 1 2, f32[5], f32[5] in 0.5..1.5, "
			   "ignore_index=2, batch_chunk_size=2, acc_policy=\"auto\", "
			   "acc_dtype=f32"},
	},
};
