/* ATen activations. */
#include "ops/aten/priv.h"
#include "ops/rules/batch.h"

#include <math.h>

OP(aten_relu){
	.schema = "aten.relu(Tensor self) -> Tensor",
	.expand = "maximum(self, 0)",
	.deriv = {"select(le(y, 0), 0, 1)"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5",
};
OP(aten_relu6){
	.schema = "aten.relu6(Tensor self) -> Tensor",
	.expand = "minimum(maximum(self, 0), 6)",
	.deriv = {"select(le(y, 0), 0, select(ge(y, 6), 0, 1))"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5",
};
OP(aten_silu){
	.schema = "aten.silu(Tensor self) -> Tensor",
	.expand = "mul(self, sigmoid(self))",
	.deriv = {"s = sigmoid(self); s * (1 + self * (1 - s))"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5; "
		  "f32[4] of -90 90 -0.125 2.25",
};
OP(aten_mish){
	.schema = "aten.mish(Tensor self) -> Tensor",
	.expand = "mul(self, tanh(select(gt(self, 20), self, log1p(exp(self)))))",
	.deriv = {"large = gt(self, 20); t = tanh(select(large, self, log1p(exp(select(large, 0, "
		  "self))))); t + self * sigmoid(self) * (1 - t * t)"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5; "
		  "f32[3] of 19.5 20.5 -19",
};
OP(aten_hardsigmoid){
	.schema = "aten.hardsigmoid(Tensor self) -> Tensor",
	.expand = "mul(minimum(maximum(add(self, 3), 0), 6), 0.16666666666666666)",
	/* a sixth in f32, as PyTorch has it */
	.deriv = {"select(gt(self, -3), select(lt(self, 3), 0.1666666716337204, 0), 0)"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5",
};
OP(aten_hardswish){
	.schema = "aten.hardswish(Tensor self) -> Tensor",
	.expand = "mul(mul(self, minimum(maximum(add(self, 3), 0), 6)), 0.16666666666666666)",
	.deriv = {"select(le(self, -3), 0, select(lt(self, 3), self / 3 + 0.5, 1))"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5",
};
/* Of the exponential units below: the slope at 0 is the one on the left; it changes neither there
 * nor above, where what is not selected must not be infinite. */
OP(aten_selu){
	.schema = "aten.selu(Tensor self) -> Tensor",
	.expand = "mul(select(gt(self, 0), self, mul(expm1(self), 1.6732632423543772)), "
		  "1.0507009873554805)",
	.deriv = {"select(gt(self, 0), 1.0507009873554805, 1.7580993408473766 * "
		  "exp(select(ge(self, 0), 0, self)))"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5",
};
OP(aten_log_sigmoid){
	.schema = "aten.log_sigmoid(Tensor self) -> Tensor",
	.expand = "sub(minimum(self, 0), log1p(exp(neg(abs(self)))))",
	.deriv = {"sigmoid(-self)"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5",
};
OP(aten_special_log_ndtr){
	.schema = "aten.special_log_ndtr(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "select(lt(self, -1), "
		  "sub(log(mul(erfcx(mul(self, -0.7071067811865476)), 0.5)), mul(mul(self, self), "
		  "0.5)), log1p(mul(erfc(mul(self, 0.7071067811865476)), -0.5)))",
	.deriv = {"0.3989422804014327 * exp(-(y + self * self * 0.5))"},
	.sample = "f32[n=2, 6] in -3..5; f32[6] of -300 -30 -14 -1 9 inf; "
		  "u8[4] of 0 1 5 200",
};

/* Reads a bound; that of integers is an integer. */
static Attr hardtanh_bound(Build *b, Node n, const char *name, DType d)
{
	Attr a = *node_attr(b->g, n, name);
	if (a.kind != ATTR_float || !dtype_is_int(d) || !(fabs(a.f) < 0x1p63))
		return a;
	return attr_int(b->g->ir, (int64_t)a.f);
}

static Node build_hardtanh(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	DType d = aten_dtype(b, x);
	Attr low = hardtanh_bound(b, n, "min_val", d), high = hardtanh_bound(b, n, "max_val", d);
	return aten_clamp(b, x, d, &low, &high);
}
OP(aten_hardtanh){
	.schema = "aten.hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
	.build = build_hardtanh,
	.deriv = {"select(le(self, min_val), 0, select(ge(self, max_val), 0, 1))"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5; "
		  "f32[n=2, 6] of -3 -2.5 -2 -1 0 1 1.5 2 3 4 5 0.25, min_val=-2.5, max_val=1.5",
};

static Node build_leaky_relu(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Node slope = aten_scalar_arg(b, n, "negative_slope", x);
	Node positive = b_bin_scalar(b, OP_gt, x, 0);
	return b_select(b, positive, x, b_bin(b, OP_mul, x, slope));
}
OP(aten_leaky_relu){
	.schema = "aten.leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
	.build = build_leaky_relu,
	.deriv = {"select(gt(self, 0), 1, negative_slope)"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5; "
		  "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, "
		  "negative_slope=0.25",
};

static Node build_prelu(Build *b, Node n)
{
	Node x = arg(b, n, "self"), w = arg(b, n, "weight");
	if (!x.i || !w.i)
		return (Node){0};
	uint32_t rank = node_rank(b->g, x);
	bool scalar = sym_is(b_syms(b), type_numel(b->g->ir, node_type_id(b->g, w)), 1);
	if (scalar)
		w = b_reshape(b, w, 0, NULL);
	else if (node_rank(b->g, w) == 1)
		w = aten_per_dim(b, w, x, rank > 1 ? 1 : 0);
	Shape s = aten_shape(b, x);
	return b_node(b, OP_aten__prelu_kernel, (Node[]){x, aten_expand_shape(b, w, &s)}, 2,
		      (Attr[]){attr_none(), attr_none()}, 2);
}
OP(aten_prelu){
	.schema = "aten.prelu(Tensor self, Tensor weight) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_prelu,
	.sample = "f32[n=2, 3, 2] in -4..4, f32[3] in 0..1; f32[n=6] in -4..4, f32[1] of 0.25",
};

OP(aten__prelu_kernel){
	.schema = "aten._prelu_kernel(Tensor self, Tensor weight) -> Tensor",
	.expand = "select(gt(self, 0), self, mul(self, weight))",
	/* PyTorch's at 0: backwards the slope is the weight, which second derivatives take for a
	 * constant; forwards it is 1 */
	.deriv = {"select(gt(self, 0), 1, select(eq(self, 0), detached(weight), weight))", "select(ge(self, 0), 0, self)"},
	.jvp = "select(ge(self, 0), t_self, add(mul(weight, t_self), mul(self, t_weight)))",
	.sample = "f32[n=2, 6] in -4..4, f32[n, 6] in 0..1",
};

static Node build_elu(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Node low = b_un(b, OP_expm1, aten_scaled(b, x, n, "input_scale"));
	low = aten_scaled(b, low, n, "alpha");
	Node positive = b_bin_scalar(b, OP_gt, x, 0);
	return aten_scaled(b, b_select(b, positive, x, low), n, "scale");
}
OP(aten_elu){
	.schema = "aten.elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) "
		  "-> Tensor",
	.build = build_elu,
	.deriv = {"select(gt(self, 0), scale, alpha * scale * input_scale * exp(select(ge(self, "
		  "0), 0, self) * input_scale))"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5; "
		  "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, alpha=1.5, "
		  "scale=1.25, input_scale=0.75",
};

static Node build_celu(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Node low = x;
	if (!aten_scalar_is(b, n, "alpha", 1))
		low = b_bin(b, OP_div, x, aten_scalar_arg(b, n, "alpha", x));
	low = aten_scaled(b, b_un(b, OP_expm1, low), n, "alpha");
	return b_select(b, b_bin_scalar(b, OP_gt, x, 0), x, low);
}
OP(aten_celu){
	.schema = "aten.celu(Tensor self, Scalar alpha=1.0) -> Tensor",
	.build = build_celu,
	.deriv = {"select(gt(self, 0), 1, exp(select(ge(self, 0), 0, self) / alpha))"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5; "
		  "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, alpha=1.75",
};

/* Builds x/2 * (1 + erf(x/sqrt 2)), or ATen's tanh approximation. */
static Node build_gelu(Build *b, Node n)
{
	Node x = arg(b, n, "self"), t;
	if (aten_is(b, n, "approximate", "tanh")) {
		Node cube = b_bin(b, OP_mul, b_bin(b, OP_mul, x, x), x);
		Node in = b_bin(b, OP_add, x, b_bin_scalar(b, OP_mul, cube, 0.044715));
		t = b_un(b, OP_tanh, b_bin_scalar(b, OP_mul, in, 0.7978845608028654));
	} else if (aten_is(b, n, "approximate", "none")) {
		t = b_un(b, OP_erf, b_bin_scalar(b, OP_mul, x, 0.7071067811865476));
	} else {
		return b_error(b, "unknown approximation of gelu");
	}
	Node half = b_bin_scalar(b, OP_mul, x, 0.5);
	return b_bin(b, OP_mul, half, b_bin_scalar(b, OP_add, t, 1));
}
OP(aten_gelu){
	.schema = "aten.gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
	.build = build_gelu,
	.vjp = "[gelu_backward(g, self, approximate=approximate)]",
	.batch = batch_element_wise,
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5; "
		  "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, "
		  "approximate=\"tanh\"",
};

static Node build_softplus(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Node scaled = aten_scaled(b, x, n, "beta");
	Node y = b_un(b, OP_log1p, b_un(b, OP_exp, scaled));
	if (!aten_scalar_is(b, n, "beta", 1))
		y = b_bin(b, OP_div, y, aten_scalar_arg(b, n, "beta", x));
	Node linear = b_bin(b, OP_gt, scaled, aten_scalar_arg(b, n, "threshold", x));
	return b_select(b, linear, x, y);
}
OP(aten_softplus){
	.schema = "aten.softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_softplus,
	/* does not change at the threshold, as the units above */
	.deriv = {"z = self * beta; select(gt(z, threshold), 1, sigmoid(select(ge(z, threshold), "
		  "threshold, z)))"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5; "
		  "f32[n=2, 4] of -9 -1 0 1 9.5 10 10.5 4, beta=2, threshold=20",
};

static Node build_hardshrink(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Node l = aten_scalar_arg(b, n, "lambd", x);
	Node in = b_bin(b, OP_le, b_un(b, OP_abs, x), l);
	return b_select(b, in, aten_like(b, x, 0), x);
}
OP(aten_hardshrink){
	.schema = "aten.hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
	.build = build_hardshrink,
	.deriv = {"select(le(abs(self), lambd), 0, 1)"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5; "
		  "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, lambd=1.5",
};

static Node build_softshrink(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Node l = aten_scalar_arg(b, n, "lambd", x);
	if (!aten_check_arg_within(b, n, "lambd", 0, INFINITY))
		return (Node){0};
	Node above = b_bin(b, OP_gt, x, l), below = b_bin(b, OP_lt, x, b_un(b, OP_neg, l));
	Node zero = b_bin_scalar(b, OP_mul, x, 0);
	Node y = b_select(b, below, b_bin(b, OP_add, x, l), zero);
	return b_select(b, above, b_bin(b, OP_sub, x, l), y);
}
OP(aten_softshrink){
	.schema = "aten.softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
	.build = build_softshrink,
	.deriv = {"select(le(abs(self), lambd), 0, 1)"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5; "
		  "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, lambd=1.5",
};

static Node build_threshold(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	DType d = aten_dtype(b, x);
	Node low = b_bin(b, OP_le, x, aten_scalar_factor(b, node_attr(b->g, n, "threshold"), d));
	return b_select(b, low, aten_scalar_as(b, node_attr(b->g, n, "value"), d), x);
}
OP(aten_threshold){
	.schema = "aten.threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
	.build = build_threshold,
	.deriv = {"select(le(self, threshold), 0, 1)"},
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, threshold=0.5, "
		  "value=-7.25",
};

static Node build_glu(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (!x.i)
		return x;
	int dim = (int)b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	Sym size = b_dim(b, x, dim), half = sym_divi(b_syms(b), size, 2);
	aten_require_multiple(b, size, 2, "glu halves an extent");
	Node y = b_slice(b, x, dim, b_int(b, 0), half, b_int(b, 1));
	Node gate = b_slice(b, x, dim, half, sym_muli(b_syms(b), half, 2), b_int(b, 1));
	return b_bin(b, OP_mul, y, b_un(b, OP_sigmoid, gate));
}
OP(aten_glu){
	.schema = "aten.glu(Tensor self, int dim=-1) -> Tensor",
	.build = build_glu,
	.sample = "f32[n=3, 4] in -4..4; f32[4, n=3] in -4..4, dim=0",
};

static Node build_logit(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "self"));
	double eps = aten_has(b, n, "eps") ? node_float(b->g, n, "eps") : -1;
	if (!(eps < 0)) { /* which is none */
		/* Not a clamp: with eps > 1/2 what is below eps becomes eps. */
		Node below = b_bin_scalar(b, OP_lt, x, eps);
		Node cut = b_bin_scalar(b, OP_minimum, x, 1 - eps);
		x = b_select(b, below, aten_like(b, x, eps), cut);
	}
	Node rest = b_bin(b, OP_sub, aten_like(b, x, 1), x);
	return b_un(b, OP_log, b_bin(b, OP_div, x, rest));
}
OP(aten_logit){
	.schema = "aten.logit(Tensor self, float? eps=None) -> Tensor",
	.aliases = "aten.special_logit",
	.build = build_logit,
	.vjp = "[logit_backward(g, self, eps)]",
	.jvp = "logit_backward(t_self, self, eps)", /* where the transposed one knows no NaN */
	.batch = batch_element_wise,
	.sample = "f32[n=3, 4] in 0.1..0.9; f32[n=2, 4] of 0 0.05 0.1 0.5 0.75 0.9 0.95 1, "
		  "eps=0.1; f32[4] of -0 0.25 0.5 1, eps=-0.5",
};
