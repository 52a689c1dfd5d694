/* Gradients of activations and losses, as training graphs of ATen hold them. f16 and bf16 are
 * computed in f32 and rounded once, as PyTorch's kernels do: a difference such as 1 - y * y would
 * not survive rounding in between. */
#include <math.h>

#include "ops/aten/priv.h"

/* The operands, wide, and the dtype of the result. */
typedef struct {
	Build *b;
	Node g, x;
	DType d;
} Grad;

static Grad grad_of(Build *b, Node n, const char *grad, const char *operand)
{
	Node g = arg(b, n, grad), x = arg(b, n, operand);
	DType d = g.i && x.i ? b_promote(b, (Node[]){g, x}, 2) : DT_none;
	return (Grad){b, aten_wide(b, g), aten_wide(b, x), d};
}

static Node rounded(const Grad *r, Node y)
{
	return y.i ? b_convert(r->b, y, r->d) : y;
}

#define mul(r, x, y) b_bin((r)->b, OP_mul, x, y)

static Node times(const Grad *r, Node x, double v)
{
	return b_bin_scalar(r->b, OP_mul, x, v);
}

static Node plus(const Grad *r, Node x, double v)
{
	return b_bin_scalar(r->b, OP_add, x, v);
}

/* Returns v - x. */
static Node from(const Grad *r, double v, Node x)
{
	return b_bin(r->b, OP_sub, aten_like(r->b, x, v), x);
}

/* Returns the gradient where the condition holds, else nothing. */
static Node pass_if(const Grad *r, Node condition)
{
	return rounded(r, b_select(r->b, condition, r->g, aten_like(r->b, r->g, 0)));
}

static Node block_if(const Grad *r, Node condition)
{
	return rounded(r, b_select(r->b, condition, aten_like(r->b, r->g, 0), r->g));
}

/* Returns a Scalar argument beside the wide operand. */
static Node scalar(const Grad *r, Node n, const char *name)
{
	return aten_scalar_as(r->b, node_attr(r->b->g, n, name), aten_dtype(r->b, r->x));
}

/* ---- of the result ---- */

static Node build_tanh_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "output");
	return rounded(&r, mul(&r, r.g, from(&r, 1, mul(&r, r.x, r.x))));
}
OP(aten_tanh_backward){
	.schema = "aten.tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
	.build = build_tanh_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] in -0.9..0.9",
};

static Node build_sigmoid_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "output");
	return rounded(&r, mul(&r, r.g, mul(&r, from(&r, 1, r.x), r.x)));
}
OP(aten_sigmoid_backward){
	.schema = "aten.sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
	.build = build_sigmoid_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] in 0.1..0.9",
};

/* ---- pieces of lines ---- */

static Node build_threshold_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node limit = aten_scalar(b, r.x, node_attr(b->g, n, "threshold"));
	return block_if(&r, b_bin(b, OP_le, r.x, limit));
}
OP(aten_threshold_backward){
	.schema = "aten.threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> "
		  "Tensor",
	.build = build_threshold_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, "
		  "threshold=0.5",
};

static Node shrink(Build *b, Node n, const char *grad)
{
	Grad r = grad_of(b, n, grad, "self");
	return block_if(&r, b_bin(b, OP_le, b_un(b, OP_abs, r.x), scalar(&r, n, "lambd")));
}
static Node build_hardshrink_backward(Build *b, Node n)
{
	return shrink(b, n, "grad_out");
}
static Node build_softshrink_backward(Build *b, Node n)
{
	return shrink(b, n, "grad_output");
}
OP(aten_hardshrink_backward){
	.schema = "aten.hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> "
		  "Tensor",
	.build = build_hardshrink_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, "
		  "lambd=0.5",
};
OP(aten_softshrink_backward){
	.schema = "aten.softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> "
		  "Tensor",
	.build = build_softshrink_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, "
		  "lambd=0.5",
};

static Node build_hardtanh_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node low = b_bin(b, OP_le, r.x, scalar(&r, n, "min_val"));
	Node high = b_bin(b, OP_ge, r.x, scalar(&r, n, "max_val"));
	return block_if(&r, b_bin(b, OP_bit_or, low, high));
}
OP(aten_hardtanh_backward){
	.schema = "aten.hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, "
		  "Scalar max_val) -> Tensor",
	.build = build_hardtanh_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, "
		  "min_val=-1.5, max_val=1.5",
};

static Node build_hardsigmoid_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node in = b_bin_scalar(b, OP_lt, b_un(b, OP_abs, r.x), 3);
	r.g = times(&r, r.g, 1.0 / 6);
	return pass_if(&r, in);
}
OP(aten_hardsigmoid_backward){
	.schema = "aten.hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
	.build = build_hardsigmoid_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5",
};

static Node build_hardswish_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node slope = plus(&r, b_bin_scalar(b, OP_div, r.x, 3), 0.5);
	Node above = b_bin_scalar(b, OP_ge, r.x, 3), below = b_bin_scalar(b, OP_le, r.x, -3);
	r.g = b_select(b, above, r.g, mul(&r, r.g, slope));
	return block_if(&r, below);
}
OP(aten_hardswish_backward){
	.schema = "aten.hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
	.build = build_hardswish_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5",
};

static Node leaky(const Grad *r, Node slope)
{
	Node positive = b_bin_scalar(r->b, OP_gt, r->x, 0);
	return rounded(r, b_select(r->b, positive, r->g, mul(r, r->g, slope)));
}
static Node build_leaky_relu_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	return leaky(&r, scalar(&r, n, "negative_slope"));
}
OP(aten_leaky_relu_backward){
	.schema = "aten.leaky_relu_backward(Tensor grad_output, Tensor self, Scalar "
		  "negative_slope, bool self_is_result) -> Tensor",
	.build = build_leaky_relu_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, "
		  "negative_slope=0.25, self_is_result=false; f32[n=2, 6] in 1..2, f32[n, "
		  "6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, negative_slope=0.125, "
		  "self_is_result=true",
};

/* Multiplies in training by the noise of the forward pass, in evaluation by the middle slope. */
static Node build_rrelu_with_noise_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node low = scalar(&r, n, "lower"), high = scalar(&r, n, "upper"), noise;
	noise = aten_wide(b, arg(b, n, "noise"));
	Attr l, h;
	bool known = b_splat(b, low, &l) && b_splat(b, high, &h);
	if (known && node_bool(b->g, n, "training") && h.f - l.f > 1e-6)
		return rounded(&r, mul(&r, r.g, noise));
	return leaky(&r, times(&r, b_bin(b, OP_add, low, high), 0.5));
}
OP(aten_rrelu_with_noise_backward){
	.schema = "aten.rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, "
		  "Scalar lower, Scalar upper, bool training, bool self_is_result) -> Tensor",
	.build = build_rrelu_with_noise_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, "
		  "f32[n, 6] in 0.1..0.9, lower=0.125, upper=0.5, training=false, "
		  "self_is_result=false; "
		  "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, "
		  "f32[n, 6] in 0.1..0.9, lower=0.125, upper=0.5, training=true, "
		  "self_is_result=false",
};

static Node build_prelu_kernel_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node w = aten_wide(b, arg(b, n, "weight")), zero = aten_like(b, r.x, 0);
	Node positive = b_bin_scalar(b, OP_gt, r.x, 0);
	Node gx = rounded(&r, b_select(b, positive, r.g, mul(&r, w, r.g)));
	Node gw = rounded(&r, b_select(b, positive, zero, mul(&r, r.x, r.g)));
	return gx.i && gw.i ? b_tuple(b, (Node[]){gx, gw}, 2) : (Node){0};
}
OP(aten__prelu_kernel_backward){
	.schema = "aten._prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) "
		  "-> (Tensor, Tensor)",
	.build = build_prelu_kernel_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, "
		  "f32[n, 6] in 0.1..0.9",
};

/* ---- exponentials ---- */

/* Takes alpha, scale and input_scale in one: with the result known, its distance from the limit
 * is the slope. */
static Node build_elu_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self_or_result");
	Node scale = scalar(&r, n, "scale"), in = scalar(&r, n, "input_scale");
	Node limit = mul(&r, scalar(&r, n, "alpha"), scale), slope;
	if (node_bool(b->g, n, "is_result"))
		slope = mul(&r, in, b_bin(b, OP_add, r.x, limit));
	else
		slope = mul(&r, mul(&r, in, limit), b_un(b, OP_exp, mul(&r, r.x, in)));
	Node low = b_bin_scalar(b, OP_le, r.x, 0);
	return rounded(&r, mul(&r, r.g, b_select(b, low, slope, scale)));
}
OP(aten_elu_backward){
	.schema = "aten.elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar "
		  "input_scale, bool is_result, Tensor self_or_result) -> Tensor",
	.build = build_elu_backward,
	.sample = "f32[n=2, 6] in 1..2, alpha=1.5, scale=1.25, input_scale=0.75, is_result=false, "
		  "f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5; "
		  "f32[n=2, 6] in 1..2, alpha=1.5, scale=1.25, input_scale=0.75, is_result=true, "
		  "f32[n, 6] in -1.2..3",
};

static Node build_silu_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node s = b_un(b, OP_sigmoid, r.x);
	Node slope = mul(&r, s, plus(&r, mul(&r, r.x, from(&r, 1, s)), 1));
	return rounded(&r, mul(&r, r.g, slope));
}
OP(aten_silu_backward){
	.schema = "aten.silu_backward(Tensor grad_output, Tensor self) -> Tensor",
	.build = build_silu_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5",
};

static Node build_mish_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node t = b_un(b, OP_tanh, b_un(b, OP_log1p, b_un(b, OP_exp, r.x)));
	Node bend = mul(&r, mul(&r, r.x, b_un(b, OP_sigmoid, r.x)), from(&r, 1, mul(&r, t, t)));
	return rounded(&r, mul(&r, r.g, b_bin(b, OP_add, t, bend)));
}
OP(aten_mish_backward){
	.schema = "aten.mish_backward(Tensor grad_output, Tensor self) -> Tensor",
	.build = build_mish_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5",
};

static Node build_softplus_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node in = mul(&r, r.x, scalar(&r, n, "beta")), z = b_un(b, OP_exp, in);
	Node linear = b_bin(b, OP_gt, in, scalar(&r, n, "threshold"));
	Node bent = mul(&r, r.g, b_bin(b, OP_div, z, plus(&r, z, 1)));
	return rounded(&r, b_select(b, linear, r.g, bent));
}
OP(aten_softplus_backward){
	.schema = "aten.softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar "
		  "threshold) -> Tensor",
	.build = build_softplus_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -9 -1 0 1 9.5 10 10.5 4 2 3 -4 0.5, beta=2, "
		  "threshold=20",
};

/* Computes exp(-|x|), which the buffer holds, anew: that is as soon done. */
static Node build_log_sigmoid_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node z = b_un(b, OP_exp, b_un(b, OP_neg, b_un(b, OP_abs, r.x)));
	Node t = b_bin(b, OP_div, z, plus(&r, z, 1));
	Node slope = b_select(b, b_bin_scalar(b, OP_lt, r.x, 0), from(&r, 1, t), t);
	return rounded(&r, mul(&r, r.g, slope));
}
OP(aten_log_sigmoid_backward){
	.schema = "aten.log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> "
		  "Tensor",
	.build = build_log_sigmoid_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, "
		  "f32[n, 6] of 0.018315639 0.049787068 0.22313016 0.60653066 0.77880078 1 "
		  "0.77880078 0.60653066 0.22313016 "
		  "0.049787068 0.018315639 0.0015034392",
};
OP(aten_log_sigmoid_forward){
	.schema = "aten.log_sigmoid_forward(Tensor self) -> (Tensor, Tensor)",
	.expand = "z = exp(neg(abs(self))); tuple([sub(minimum(self, 0), log1p(z)), z])",
	.sample = "f32[n=2, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5",
};

/* Passes, with eps, nothing of what was clamped; without, there is no slope outside of 0 .. 1. */
static Node build_logit_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	double eps = aten_has(b, n, "eps") ? node_float(b->g, n, "eps") : -1;
	bool clamped = !(eps < 0); /* which is none */
	double low = clamped ? eps : 0;
	Node below = b_bin_scalar(b, OP_lt, r.x, low);
	Node out = b_bin(b, OP_bit_or, below, b_bin_scalar(b, OP_gt, r.x, 1 - low));
	/* nothing is divided by 0 that is not selected */
	Node x = b_select(b, out, aten_like(b, r.x, 0.5), r.x);
	Node size = b_un(b, OP_abs, x); /* of -0 0, as PyTorch's scalar code has it */
	Node y = b_bin(b, OP_div, r.g, mul(&r, size, from(&r, 1, x)));
	return rounded(&r, b_select(b, out, aten_like(b, y, clamped ? 0 : (double)NAN), y));
}
OP(aten_logit_backward){
	.schema = "aten.logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> "
		  "Tensor",
	.build = build_logit_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] in 0.1..0.9; "
		  "f32[n=2, 6] in 1..2, f32[n, 6] of 0 0.05 0.1 0.5 0.75 0.9 0.95 1 0.25 0.3 0.8 "
		  "0.6, eps=0.1",
};

static Node gelu_slope(const Grad *r)
{
	Node x = r->x;
	Node cdf = times(r, plus(r, b_un(r->b, OP_erf, times(r, x, 0.7071067811865476)), 1), 0.5);
	Node pdf = b_un(r->b, OP_exp, times(r, mul(r, x, x), -0.5));
	return b_bin(r->b, OP_add, cdf, mul(r, x, times(r, pdf, 0.3989422804014327)));
}

static Node gelu_tanh_slope(const Grad *r)
{
	Node square = mul(r, r->x, r->x);
	Node in =
		times(r, mul(r, r->x, plus(r, times(r, square, 0.044715), 1)), 0.7978845608028654);
	Node t = b_un(r->b, OP_tanh, in);
	Node in_slope = times(r, plus(r, times(r, square, 3 * 0.044715), 1), 0.7978845608028654);
	Node bend = mul(r, mul(r, times(r, r->x, 0.5), from(r, 1, mul(r, t, t))), in_slope);
	return b_bin(r->b, OP_add, times(r, plus(r, t, 1), 0.5), bend);
}

static Node build_gelu_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	if (aten_is(b, n, "approximate", "tanh"))
		return rounded(&r, mul(&r, r.g, gelu_tanh_slope(&r)));
	if (!aten_is(b, n, "approximate", "none"))
		return b_error(b, "unknown approximation of gelu");
	return rounded(&r, mul(&r, r.g, gelu_slope(&r)));
}

static Node build_infinitely_differentiable_gelu_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad", "self");
	return rounded(&r, mul(&r, r.g, gelu_slope(&r)));
}
OP(aten_gelu_backward){
	.schema = "aten.gelu_backward(Tensor grad_output, Tensor self, *, str "
		  "approximate=\"none\") -> Tensor",
	.build = build_gelu_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5; "
		  "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 3 4 6.5, "
		  "approximate=\"tanh\"",
	.overloads = (const Overload[]){
		{.schema = "aten.infinitely_differentiable_gelu_backward(Tensor grad, Tensor self) "
			   "-> Tensor",
		 .build = build_infinitely_differentiable_gelu_backward,
		 .sample = "f32[n=2, 6] in 1..2, f32[n, 6] of -4 -3 -1.5 -0.5 -0.25 0 0.25 0.5 1.5 "
			   "3 4 6.5"},
	},
};

static Node build_glu_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	if (!r.g.i || !r.x.i || node_rank(b->g, r.x) == 0)
		return b_error(b, "glu of a tensor without dims");
	int dim = (int)b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, r.x));
	Sym size = b_dim(b, r.x, dim), half = sym_divi(b_syms(b), size, 2), one = b_int(b, 1);
	Node x = b_slice(b, r.x, dim, b_int(b, 0), half, one);
	Node s = b_un(b, OP_sigmoid, b_slice(b, r.x, dim, half, size, one));
	Node gx = mul(&r, r.g, s);
	Node gs = mul(&r, mul(&r, gx, from(&r, 1, s)), x);
	return rounded(&r, b_concat(b, (Node[]){gx, gs}, 2, dim));
}
OP(aten_glu_backward){
	.schema = "aten.glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
	.build = build_glu_backward,
	.sample = "f32[n=2, 3] in 1..2, f32[n, 6], dim=1; f32[2, n=3] in 1..2, f32[4, n], dim=0",
};

/* ---- masks of what quantisation clamped ---- */

OP(aten_fake_quantize_per_tensor_affine_cachemask_backward){
	.schema = "aten.fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor "
		  "mask) -> Tensor",
	.expand = "mul(grad, mask)",
	.sample = "f32[n=2, 6] in 1..2, bool[n, 6]",
	.overloads = (const Overload[]){
		{.schema = "aten.fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, "
			   "Tensor mask) -> Tensor"},
	},
};

/* ---- losses ---- */

/* Reads a loss of self - target into r.x, from which the slope comes that is multiplied by the
 * gradient and averaged if the loss was. */
static Grad difference(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	r.x = b_bin(b, OP_sub, r.x, aten_wide(b, arg(b, n, "target")));
	return r;
}

static Node loss(const Grad *r, Node n, Node slope)
{
	Node y = mul(r, slope, r->g);
	if (y.i && aten_int(r->b, n, "reduction") == 1) {
		Sym count = type_numel(r->b->g->ir, node_type_id(r->b->g, r->x));
		y = b_bin(r->b, OP_div, y, aten_size(r->b, count, node_dtype(r->b->g, y)));
	}
	return rounded(r, y);
}

static Node build_mse_loss_backward(Build *b, Node n)
{
	Grad r = difference(b, n);
	return loss(&r, n, times(&r, r.x, 2));
}
OP(aten_mse_loss_backward){
	.schema = "aten.mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int "
		  "reduction) -> Tensor",
	.build = build_mse_loss_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6], f32[n, 6] in -2..2, reduction=0; "
		  "f32[] of 1.5, f32[n=2, 6], f32[n, 6] in -2..2, reduction=1; "
		  "f32[] of 1.5, f32[n=2, 6], f32[n, 6] in -2..2, reduction=2",
};

/* Returns x between the limits, times the factor. */
static Node limited(const Grad *r, double limit, double factor)
{
	Node y = b_bin_scalar(r->b, OP_maximum, r->x, -limit);
	return times(r, b_bin_scalar(r->b, OP_minimum, y, limit), factor);
}

static Node build_smooth_l1_loss_backward(Build *b, Node n)
{
	Grad r = difference(b, n);
	double beta = node_float(b->g, n, "beta");
	if (beta == 0)
		return loss(&r, n, b_un(b, OP_sign, r.x));
	return loss(&r, n, limited(&r, beta, 1 / beta));
}
OP(aten_smooth_l1_loss_backward){
	.schema = "aten.smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, "
		  "int reduction, float beta) -> Tensor",
	.build = build_smooth_l1_loss_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6], f32[n, 6] in -2..2, reduction=0, beta=1.5; "
		  "f32[] of 1.5, f32[n=2, 6], f32[n, 6] in -2..2, reduction=1, beta=1.5; "
		  "f32[] of 1.5, f32[n=2, 6], f32[n, 6] in -2..2, reduction=2, beta=1.5",
};

static Node build_huber_loss_backward(Build *b, Node n)
{
	Grad r = difference(b, n);
	return loss(&r, n, limited(&r, node_float(b->g, n, "delta"), 1));
}
OP(aten_huber_loss_backward){
	.schema = "aten.huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int "
		  "reduction, float delta) -> Tensor",
	.build = build_huber_loss_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6], f32[n, 6] in -2..2, reduction=0, delta=1.5; "
		  "f32[] of 1.5, f32[n=2, 6], f32[n, 6] in -2..2, reduction=1, delta=1.5; "
		  "f32[] of 1.5, f32[n=2, 6], f32[n, 6] in -2..2, reduction=2, delta=1.5",
};

/* Keeps the spread from 1e-12 on, as f32 has it. */
static Node build_binary_cross_entropy_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node w = aten_wide(b, arg(b, n, "weight"));
	Node spread =
		b_bin_scalar(b, OP_maximum, mul(&r, from(&r, 1, r.x), r.x), 9.999999960041972e-13);
	Node slope = b_bin(b, OP_sub, r.x, aten_wide(b, arg(b, n, "target")));
	slope = b_bin(b, OP_div, slope, spread);
	return loss(&r, n, w.i ? mul(&r, slope, w) : slope);
}
OP(aten_binary_cross_entropy_backward){
	.schema = "aten.binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor "
		  "target, Tensor? weight=None, int reduction=Mean) -> Tensor",
	.build = build_binary_cross_entropy_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6] in 0.1..0.9, f32[n, 6] in 0..1, reduction=0; "
		  "f32[] of 1.5, f32[n=2, 6] in 0.1..0.9, f32[n, 6] in 0..1, f32[6] in 0.5..1.5, "
		  "reduction=1; f32[] of 1.5, f32[3] of 0 1 0.5, f32[3] of 1 0.5 0, reduction=2",
};

static Node build_soft_margin_loss_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node t = b_un(b, OP_neg, aten_wide(b, arg(b, n, "target")));
	Node z = b_un(b, OP_exp, mul(&r, t, r.x));
	return loss(&r, n, b_bin(b, OP_div, mul(&r, t, z), plus(&r, z, 1)));
}
OP(aten_soft_margin_loss_backward){
	.schema = "aten.soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor "
		  "target, int reduction) -> Tensor",
	.build = build_soft_margin_loss_backward,
	.sample = "f32[n=2, 6] in 1..2, f32[n, 6], f32[n, 6] in -2..2, reduction=0; "
		  "f32[] of 1.5, f32[n=2, 6], f32[n, 6] in -2..2, reduction=1; "
		  "f32[] of 1.5, f32[n=2, 6], f32[n, 6] in -2..2, reduction=2",
};

/* Requires the gradient of each loss, or one of all of them, which becomes 0-d; that of a lone
 * one is of either kind. Returns false after b_error. */
static bool nll_gradient_fits(Build *b, Node n, Grad *r, Node target)
{
	Shape s = aten_shape(b, target),
	      one = {.rank = node_rank(b->g, r->g), .dim = {b_int(b, 1)}};
	if (aten_int(b, n, "reduction") == 0 && s.rank)
		return aten_require_shape(b, r->g, &s, "grad_output is of each target");
	if (one.rank > 1)
		return b_error(b, "grad_output of rank %u for one loss, expected 0 or 1", one.rank)
			.i;
	TRY(aten_require_shape(b, r->g, &one, "grad_output is of one loss"));
	r->g = b_reshape(b, r->g, 0, NULL);
	return r->g.i;
}

/* Puts -weight[target] at the target's class; self is [C], [N, C] or [N, C, ...]. */
static Node build_nll_loss_backward(Build *b, Node n)
{
	Grad r = grad_of(b, n, "grad_output", "self");
	Node target = arg(b, n, "target"), w = aten_wide(b, arg(b, n, "weight"));
	Shape s = aten_shape(b, r.x);
	if (!r.g.i || !target.i || s.rank == 0)
		return b_error(b, "nll_loss of a tensor without dims");
	uint32_t dim = s.rank > 1;
	if (!nll_gradient_fits(b, n, &r, target))
		return (Node){0};
	Sym ignore = node_sym(b->g, n, "ignore_index");
	Node seen = b_bin(b, OP_ne, target, aten_size(b, ignore, node_dtype(b->g, target)));
	Node at = b_bin(b, OP_eq, aten_iota_dim(b, &s, dim, node_dtype(b->g, target)),
			b_unsqueeze(b, target, (int)dim));
	at = b_bin(b, OP_bit_and, at, b_unsqueeze(b, seen, (int)dim));
	Node y = node_rank(b->g, r.g) ? b_unsqueeze(b, r.g, (int)dim) : r.g;
	if (w.i)
		y = mul(&r, y, aten_per_dim(b, w, r.x, dim));
	if (aten_int(b, n, "reduction") == 1)
		y = b_bin(b, OP_div, y,
			  b_reshape(b, aten_wide(b, arg(b, n, "total_weight")), 0, NULL));
	y = b_un(b, OP_neg, y);
	return rounded(&r, b_select(b, at, y, aten_like(b, r.x, 0)));
}
OP(aten_nll_loss_backward){
	.schema = "aten.nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, "
		  "Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> "
		  "Tensor",
	.build = build_nll_loss_backward,
	.sample = "f32[n=4] in 1..2, f32[n, 3], i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, "
		  "reduction=0, ignore_index=1, f32[] of 3; f32[] of 1.5, f32[n=4, 3], "
		  "i64[n] of 0 2 1 2, f32[3] in 0.5..1.5, reduction=1, "
		  "ignore_index=1, f32[] of 3; f32[] of 1.5, f32[n=4, 3], i64[n] of 0 2 1 2, none, "
		  "reduction=2, ignore_index=-100, f32[] of 4",
	.overloads = (const Overload[]){
		{.schema = "aten.nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor "
			   "target, Tensor? weight, int reduction, SymInt ignore_index, "
			   "Tensor total_weight) -> "
			   "Tensor",
		 .sample = "f32[n=2, 2, 2] in 1..2, f32[n, 3, 2, 2], i64[n, 2, 2] of 0 2 1 2 1, "
			   "f32[3] in 0.5..1.5, reduction=0, ignore_index=1, f32[] of 3; "
			   "f32[] of 1.5, f32[n=2, 3, 2, 2], i64[n, 2, 2] of 0 2 1 2 1, none, "
			   "reduction=1, ignore_index=-100, f32[] of 8"},
	},
};
