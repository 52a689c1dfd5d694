/* Mixtures of experts. */
#include "ops/contrib/priv.h"

#include <math.h>

/* Computes what stands between the two layers of an expert; x[..., width]. fused: gates and
 * values lie in turn (1), or one behind the other (2). */
static Node activated(Build *b, Node n, Node x)
{
	int64_t fused = aten_int(b, n, "swiglu_fusion");
	if (!x.i || !aten_check_word(b, n, "activation_type", "relu gelu silu swiglu identity"))
		return (Node){0};
	if (aten_is(b, n, "activation_type", "identity"))
		return x;
	if (aten_is(b, n, "activation_type", "gelu"))
		return onnx_call(b, "aten.gelu", &x, 1,
				 (Attr[]){attr_none(), attr_str(b->g->ir, "tanh")}, 2);
	if (!aten_is(b, n, "activation_type", "swiglu"))
		return onnx_call(
			b, aten_is(b, n, "activation_type", "relu") ? "aten.relu" : "aten.silu", &x,
			1, NULL, 0);
	if (fused != 1 && fused != 2)
		return b_error(b, "swiglu_fusion %lld is not supported", (long long)fused);
	double alpha = node_float(b->g, n, "activation_alpha"),
	       beta = node_float(b->g, n, "activation_beta");
	double limit =
		aten_has(b, n, "swiglu_limit") ? node_float(b->g, n, "swiglu_limit") : INFINITY;
	Sym all = b_dim(b, x, -1), half = sym_divi(b_syms(b), all, 2), zero = b_int(b, 0),
	    one = b_int(b, 1), two = b_int(b, 2);
	Node gate =
		fused == 1 ? b_slice(b, x, -1, zero, all, two) : b_slice(b, x, -1, zero, half, one);
	Node value =
		fused == 1 ? b_slice(b, x, -1, one, all, two) : b_slice(b, x, -1, half, all, one);
	if (isfinite(limit)) {
		gate = onnx_clamp(b, gate, -(double)INFINITY, limit);
		value = onnx_clamp(b, value, -limit, limit);
	}
	gate = b_bin(b, OP_mul, gate, b_un(b, OP_sigmoid, b_bin_scalar(b, OP_mul, gate, alpha)));
	return b_bin(b, OP_mul, gate, b_bin_scalar(b, OP_add, value, beta));
}

/* Returns, by token and expert, the weight of the expert: 0 of those that are not among the
 * first k. */
static Node routing(Build *b, Node n, Node router)
{
	int64_t k = aten_int(b, n, "k");
	Node p = aten_softmax(b, router, 1), first = b_sort_first(b, router, 1, true, b_int(b, k));
	if (!p.i || !first.i)
		return (Node){0};
	Node index = b_get(b, first, 1), expert = b_iota(b, DT_i64, b_dim(b, router, 1));
	Node taken = b_bin(b, OP_eq, b_unsqueeze(b, index, -1), expert); /* [tokens, k, experts] */
	taken = aten_reduce(b, REDUCE_OR, taken, 2, false);
	p = b_select(b, taken, p, aten_like(b, p, 0));
	return node_bool(b->g, n, "normalize_routing_weights")
		       ? b_bin(b, OP_div, p, aten_sum(b, p, 2, true))
		       : p;
}

/* Lets all experts compute all tokens: x[tokens, in] and w[experts, out, in] give [experts,
 * tokens, out]. */
static Node layer(Build *b, Node x, Node w, Node bias)
{
	Node y = b_matmul(b, x, b_transpose(b, w, 1, 2));
	return bias.i ? b_bin(b, OP_add, y, b_unsqueeze(b, bias, 1)) : y;
}

static Node experts(Build *b, Node n, Node fc1, Node fc2)
{
	Node x = arg(b, n, "input"), router = arg(b, n, "router_probs");
	int64_t k = aten_int(b, n, "k");
	if (!x.i || node_rank(b->g, x) < 2 || node_rank(b->g, x) > 3 || aten_rank(b, router) != 2 ||
	    k < 1)
		return b_error(b, "operands of rank %u and %u, and the first %lld experts",
			       aten_rank(b, x), aten_rank(b, router), (long long)k);
	if (aten_int(b, n, "use_sparse_mixer") || arg(b, n, "fc3_experts_weights").i)
		return b_error(b, "use_sparse_mixer and fc3_experts_weights are not supported");
	aten_require_le(b, b_int(b, k), b_dim(b, router, 1), "k is more than the experts");
	Shape s = aten_shape(b, x);
	x = s.rank == 3 ? aten_flatten(b, x, 0, 1) : x;
	Node h = activated(b, n, layer(b, x, fc1, arg(b, n, "fc1_experts_bias")));
	Node y = layer(b, h, fc2, arg(b, n, "fc2_experts_bias"));
	Node weight = b_unsqueeze(b, b_transpose(b, routing(b, n, router), 0, 1), -1);
	y = aten_sum(b, b_bin(b, OP_mul, y, weight), 1, false);
	return aten_reshape(b, y, &s);
}

static Node build_moe(Build *b, Node n)
{
	return experts(b, n, arg(b, n, "fc1_experts_weights"), arg(b, n, "fc2_experts_weights"));
}

OP(com_microsoft_MoE_1){
	.schema = "com_microsoft.MoE.1(Tensor input, Tensor router_probs, Tensor "
		  "fc1_experts_weights, Tensor? fc1_experts_bias, Tensor fc2_experts_weights, "
		  "Tensor? fc2_experts_bias, Tensor? fc3_experts_weights, "
		  "Tensor? fc3_experts_bias, *, float activation_alpha=1.0, "
		  "float activation_beta=0.0, "
		  "str activation_type=\"relu\", int k=1, bool normalize_routing_weights=False, "
		  "int swiglu_fusion=0, float? swiglu_limit=None, "
		  "int use_sparse_mixer=0) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_moe,
	.no_sample = CONTRIB_CASES,
};

/* Reads weights w[experts, out, in] of few bits, with a scale for each output or for each block
 * of inputs. */
static Node weights(Build *b, Node n, const char *w_name, const char *scale_name,
		    const char *zero_name)
{
	int64_t bits = aten_int(b, n, "expert_weight_bits"), block = aten_int(b, n, "block_size"),
		in;
	Node w = contrib_unpacked(b, arg(b, n, w_name), bits), scale = arg(b, n, scale_name);
	if (!w.i || !scale.i || arg(b, n, zero_name).i)
		return w.i ? b_error(b, "%s is not supported, or scales are missing", zero_name)
			   : w;
	if (!aten_const(b, b_dim(b, w, -1), &in))
		return (Node){0};
	scale = node_rank(b->g, scale) == 2 ? b_unsqueeze(b, scale, -1) : scale;
	return contrib_blocks(b, w, scale, (Node){0}, block > 0 ? block : in,
			      (double)(1 << (bits - 1)));
}

static Node build_qmoe(Build *b, Node n)
{
	if (!aten_is(b, n, "quant_type", "int"))
		return b_error(b, "quant_type %s is not supported",
			       node_str(b->g, n, "quant_type"));
	Node fc1 = weights(b, n, "fc1_experts_weights", "fc1_scales", "fc1_zero_points"),
	     fc2 = weights(b, n, "fc2_experts_weights", "fc2_scales", "fc2_zero_points");
	return fc1.i && fc2.i ? experts(b, n, fc1, fc2) : (Node){0};
}

OP(com_microsoft_QMoE_1){
	.schema = "com_microsoft.QMoE.1(Tensor input, Tensor router_probs, Tensor "
		  "fc1_experts_weights, Tensor? fc1_scales, Tensor? fc1_experts_bias, "
		  "Tensor fc2_experts_weights, Tensor? fc2_scales, Tensor? fc2_experts_bias, "
		  "Tensor? fc3_experts_weights, Tensor? fc3_scales, "
		  "Tensor? fc3_experts_bias, Tensor? fc1_zero_points, Tensor? fc2_zero_points, "
		  "Tensor? fc3_zero_points, *, float activation_alpha=1.0, "
		  "float activation_beta=0.0, str activation_type=\"relu\", int accuracy_level=0, "
		  "int block_size=0, int expert_weight_bits=4, int k=1, "
		  "bool normalize_routing_weights=False, str quant_type=\"int\", "
		  "int swiglu_fusion=0, float? swiglu_limit=None, "
		  "int use_sparse_mixer=0) -> Tensor",
	.build = build_qmoe,
	.no_sample = CONTRIB_CASES,
};
