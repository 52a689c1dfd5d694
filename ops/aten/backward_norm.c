/* Gradients of softmax, of normalisations and of operators that move elements. */
#include "ops/aten/priv.h"
#include "ops/prim/rules_priv.h"

#include <math.h>

/* ---- softmax ---- */

static Node build_softmax_backward(Build *b, Node n)
{
	Node g = aten_wide(b, arg(b, n, "grad_output")), y = aten_wide(b, arg(b, n, "output"));
	if (!g.i || !y.i)
		return (Node){0};
	uint32_t dim = 1u << b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, y));
	bool any = node_rank(b->g, y) > 0;
	Node gy = b_bin(b, OP_mul, g, y), sum = any ? aten_sum(b, gy, dim, true) : gy;
	y = b_bin(b, OP_mul, b_bin(b, OP_sub, g, sum), y);
	return y.i ? b_convert(b, y, aten_dtype_or(b, n, "input_dtype", DT_f32)) : y;
}
OP(aten__softmax_backward_data){
	.schema = "aten._softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
		  "ScalarType input_dtype) -> Tensor",
	.build = build_softmax_backward,
	.sample = "f32[n=3, 4], f32[n, 4] in 0.1..0.9, dim=1, input_dtype=f32; "
		  "f32[n=3, 4], f32[n, 4] in 0.1..0.9, dim=0, input_dtype=f32",
};

static Node build_log_softmax_backward(Build *b, Node n)
{
	Node g = aten_wide(b, arg(b, n, "grad_output")), y = aten_wide(b, arg(b, n, "output"));
	if (!g.i || !y.i)
		return (Node){0};
	uint32_t dim = 1u << b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, y));
	Node sum = node_rank(b->g, y) > 0 ? aten_sum(b, g, dim, true) : g;
	y = b_bin(b, OP_sub, g, b_bin(b, OP_mul, b_un(b, OP_exp, y), sum));
	return y.i ? b_convert(b, y, aten_dtype_or(b, n, "input_dtype", DT_f32)) : y;
}
OP(aten__log_softmax_backward_data){
	.schema = "aten._log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
		  "ScalarType input_dtype) -> Tensor",
	.build = build_log_softmax_backward,
	.sample = "f32[n=3, 4], f32[n, 4] in -3..-0.1, dim=1, input_dtype=f32; "
		  "f32[n=3, 4], f32[n, 4] in -3..-0.1, dim=0, input_dtype=f32",
};

/* ---- normalisations ---- */

/* x normalised is (x - mean) * rstd over `dims`; g is the gradient of that. */
typedef struct {
	Node x, g;     /* wide; x is normalised already */
	uint32_t dims; /* over which mean and rstd were taken */
	bool centred;  /* there was a mean */
} Normalised;

/* Returns rstd * (g - mean(g) - x * mean(g * x)); mean(g) only where x was centred. */
static Node norm_input(Build *b, const Normalised *r, Node rstd)
{
	Node along = aten_mean(b, b_bin(b, OP_mul, r->g, r->x), r->dims, true);
	Node y = b_bin(b, OP_sub, r->g, b_bin(b, OP_mul, r->x, along));
	if (r->centred)
		y = b_bin(b, OP_sub, y, aten_mean(b, r->g, r->dims, true));
	return b_bin(b, OP_mul, y, rstd);
}

/* Returns what output_mask[k] asks for, else nothing: no elements. */
static Node masked(Build *b, Node n, uint32_t k, const char *like, Node y)
{
	const Attr *mask = node_attr(b->g, n, "output_mask");
	Node of = arg(b, n, like);
	if (mask->kind != ATTR_bools || k >= mask->n || !mask->bools[k])
		return b_full(b, DT_f32, 0, 1, (Sym[]){b_int(b, 0)});
	return y.i ? b_convert(b, y, aten_dtype(b, of.i ? of : arg(b, n, "grad_out"))) : y;
}

static Node results(Build *b, Node x, Node w, Node bias)
{
	return x.i && w.i && bias.i ? b_tuple(b, (Node[]){x, w, bias}, 3) : (Node){0};
}

static Node build_native_layer_norm_backward(Build *b, Node n)
{
	Node x = aten_wide(b, arg(b, n, "input")), g = aten_wide(b, arg(b, n, "grad_out"));
	Node mean = aten_wide(b, arg(b, n, "mean")), rstd = aten_wide(b, arg(b, n, "rstd"));
	Node w = aten_wide(b, arg(b, n, "weight"));
	uint32_t inner = aten_normalised_dims(b, n), outer = ((1u << aten_rank(b, x)) - 1) & ~inner;
	if (!inner)
		return (Node){0};
	x = b_bin(b, OP_mul, b_bin(b, OP_sub, x, mean), rstd);
	Normalised r = {x, w.i ? b_bin(b, OP_mul, g, w) : g, inner, true};
	Node gw = aten_sum(b, b_bin(b, OP_mul, g, x), outer, false);
	Node by_bias = masked(b, n, 2, "bias", aten_sum(b, g, outer, false));
	Node by_weight = masked(b, n, 1, "weight", gw);
	return results(b, masked(b, n, 0, "input", norm_input(b, &r, rstd)), by_weight, by_bias);
}
OP(aten_native_layer_norm_backward){
	.schema = "aten.native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] "
		  "normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, "
		  "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
	.build = build_native_layer_norm_backward,
	.sample = "f32[n=3, 4], f32[n, 4] in -2..2, normalized_shape=[4], f32[n, 1] in -1..1, "
		  "f32[n, 1] in 0.5..2, f32[4] in 0.5..2, f32[4], output_mask=[true, true, true]; "
		  "f32[2, 2, 3], f32[2, 2, 3] in -2..2, normalized_shape=[2, 3], "
		  "f32[2, 1, 1] in -1..1, f32[2, 1, 1] in 0.5..2, none, none, "
		  "output_mask=[true, false, false]",
};

static Node build_fused_rms_norm_backward(Build *b, Node n)
{
	Node x = aten_wide(b, arg(b, n, "input")), g = aten_wide(b, arg(b, n, "grad_out"));
	Node rstd = aten_wide(b, arg(b, n, "rstd")), w = aten_wide(b, arg(b, n, "weight"));
	uint32_t len, rank = aten_rank(b, x);
	node_ints(b->g, n, "normalized_shape",
		  &len); /* PyTorch looks at nothing but how many there are */
	if (!x.i || len == 0 || len > rank)
		return b_error(b, "normalized_shape of %u dims for an operand of rank %u", len,
			       rank);
	uint32_t outer = (1u << (rank - len)) - 1, inner = ((1u << rank) - 1) & ~outer;
	x = b_bin(b, OP_mul, x, rstd);
	Normalised r = {x, w.i ? b_bin(b, OP_mul, g, w) : g, inner, false};
	Node gw = aten_sum(b, b_bin(b, OP_mul, g, x), outer, false);
	Node out[] = {masked(b, n, 0, "input", norm_input(b, &r, rstd)),
		      masked(b, n, 1, "weight", gw)};
	return out[0].i && out[1].i ? b_tuple(b, out, 2) : (Node){0};
}
OP(aten__fused_rms_norm_backward){
	.schema = "aten._fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] "
		  "normalized_shape, Tensor rstd, Tensor? weight, bool[2] output_mask) -> "
		  "(Tensor, Tensor)",
	.build = build_fused_rms_norm_backward,
	.sample = "f32[n=3, 4], f32[n, 4] in -2..2, normalized_shape=[4], f32[n, 1] in 0.5..2, "
		  "f32[4] in 0.5..2, output_mask=[true, true]; f32[3, 4], f32[3, 4] in -2..2, "
		  "normalized_shape=[4], f32[3, "
		  "1] in 0.5..2, none, output_mask=[true, false]",
};

/* Sums over all but the channels, dim 1. */
static Node channel_sum(Build *b, Node x)
{
	return aten_sum(b, x, ((1u << aten_rank(b, x)) - 1) & ~2u, false);
}

/* Requires that N, C and HxW are what the operand has. */
static bool group_sizes_fit(Build *b, Node n, const Shape *x)
{
	static const char *const name[] = {"N", "C", "HxW"};
	uint32_t errors = b->g->ir->ctx->nerror;
	if (x->rank < 2)
		return b_error(b, "group norm of an operand of rank %u, expected at least 2",
			       x->rank)
			.i;
	Shape space = shape_of(x->rank - 2, x->dim + 2);
	Sym has[] = {x->dim[0], x->dim[1], shape_numel(b, &space)};
	for (uint32_t k = 0; k < 3 && b->g->ir->ctx->nerror == errors; k++)
		aten_require_equal(b, node_sym(b->g, n, name[k]), has[k], name[k]);
	return b->g->ir->ctx->nerror == errors;
}

static Node build_native_group_norm_backward(Build *b, Node n)
{
	Node x = aten_wide(b, arg(b, n, "input")), g = aten_wide(b, arg(b, n, "grad_out"));
	Node mean = aten_wide(b, arg(b, n, "mean")), rstd = aten_wide(b, arg(b, n, "rstd"));
	Node w = aten_wide(b, arg(b, n, "weight"));
	Shape s = aten_shape(b, x);
	const int64_t groups = aten_int(b, n, "group");
	if (!group_sizes_fit(b, n, &s))
		return (Node){0};
	Node grouped = aten_grouped(b, x, groups),
	     gx = w.i ? b_bin(b, OP_mul, g, aten_per_dim(b, w, x, 1)) : g;
	if (!grouped.i || !mean.i || !rstd.i)
		return (Node){0};
	rstd = aten_per_group(b, rstd, grouped);
	x = b_bin(b, OP_mul, b_bin(b, OP_sub, grouped, aten_per_group(b, mean, grouped)), rstd);
	Normalised r = {x, aten_grouped(b, gx, groups), aten_within_groups(b, grouped), true};
	gx = aten_reshape(b, norm_input(b, &r, rstd), &s);
	Node gw = channel_sum(b, b_bin(b, OP_mul, g, aten_reshape(b, x, &s)));
	Node by_bias = masked(b, n, 2, "weight", channel_sum(b, g));
	Node by_weight = masked(b, n, 1, "weight", gw);
	return results(b, masked(b, n, 0, "input", gx), by_weight, by_bias);
}
OP(aten_native_group_norm_backward){
	.schema = "aten.native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, "
		  "Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, "
		  "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
	.build = build_native_group_norm_backward,
	.sample = "f32[n=2, 4, 3], f32[n, 4, 3] in -2..2, f32[n, 2] in -1..1, f32[n, 2] in 0.5..2, "
		  "f32[4] in 0.5..2, N=n, C=4, HxW=3, group=2, output_mask=[true, true, true]; "
		  "f32[2, 4, 3], f32[2, 4, 3] in -2..2, f32[2, 2] in -1..1, f32[2, 2] in 0.5..2, "
		  "none, N=2, C=4, HxW=3, group=2, output_mask=[true, false, true]",
};

/* Computes the gradients; in evaluation mode the statistics are constants. */
static Node batch_norm_backward(Build *b, Node n, bool train, const char *saved)
{
	Node x = aten_wide(b, arg(b, n, "input")), g = aten_wide(b, arg(b, n, "grad_out"));
	Node w = aten_wide(b, arg(b, n, "weight"));
	Node mean = arg(b, n, train ? "save_mean" : "running_mean"), rstd;
	if (train)
		rstd = aten_wide(b, arg(b, n, saved));
	else
		rstd = b_un(b, OP_rsqrt,
			    b_bin_scalar(b, OP_add, aten_wide(b, arg(b, n, "running_var")),
					 node_float(b->g, n, "eps")));
	uint32_t rank = aten_rank(b, x);
	if (!mean.i || !rstd.i || rank < 2)
		return b_error(b, "batch norm of rank %u without its statistics", rank);
	mean = aten_per_dim(b, aten_wide(b, mean), x, 1);
	rstd = aten_per_dim(b, rstd, x, 1);
	x = b_bin(b, OP_mul, b_bin(b, OP_sub, x, mean), rstd);
	Node gx = w.i ? b_bin(b, OP_mul, g, aten_per_dim(b, w, x, 1)) : g;
	Normalised r = {x, gx, ((1u << rank) - 1) & ~2u, true};
	gx = train ? norm_input(b, &r, rstd) : b_bin(b, OP_mul, gx, rstd);
	Node gw = channel_sum(b, b_bin(b, OP_mul, g, x));
	Node by_bias = masked(b, n, 2, "weight", channel_sum(b, g));
	Node by_weight = masked(b, n, 1, "weight", gw);
	return results(b, masked(b, n, 0, "input", gx), by_weight, by_bias);
}
static Node build_native_batch_norm_backward(Build *b, Node n)
{
	return batch_norm_backward(b, n, node_bool(b->g, n, "train"), "save_invstd");
}
static Node build_batch_norm_backward(Build *b, Node n)
{
	return batch_norm_backward(b, n, node_bool(b->g, n, "update"), "save_var");
}
OP(aten_native_batch_norm_backward){
	.schema = "aten.native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? "
		  "weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? "
		  "save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, "
		  "Tensor)",
	.build = build_native_batch_norm_backward,
	.sample = "f32[n=2, 3, 4], f32[n, 3, 4] in -2..2, f32[3] in 0.5..2, f32[3] in -1..1, "
		  "f32[3] in 0.5..2, f32[3] in -1..1, f32[3] in 0.5..2, train=true, eps=0.001, "
		  "output_mask=[true, true, true]; "
		  "f32[n=2, 3, 4], f32[n, 3, 4] in -2..2, f32[3] in 0.5..2, f32[3] in -1..1, "
		  "f32[3] in 0.5..2, f32[3] in -1..1, f32[3] in 0.5..2, train=false, eps=0.125, "
		  "output_mask=[true, true, true]",
	.overloads = (const Overload[]){
		{.schema = "aten.batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, "
			   "Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? "
			   "save_var, bool update, float eps, bool[3] output_mask, "
			   "Tensor reserve) -> (Tensor, Tensor, Tensor)",
		 .build = build_batch_norm_backward,
		 .sample = "f32[n=2, 3, 4], f32[n, 3, 4] in -2..2, f32[3] in 0.5..2, "
			   "f32[3] in -1..1, f32[3] in 0.5..2, f32[3] in -1..1, f32[3] in 0.5..2, "
			   "update=true, eps=0.001, output_mask=[true, true, true], u8[0]; "
			   "f32[n=2, 3, 4], f32[n, 3, 4] in -2..2, f32[3] in 0.5..2, "
			   "f32[3] in -1..1, f32[3] in 0.5..2, f32[3] in -1..1, f32[3] in 0.5..2, "
			   "update=false, eps=0.125, output_mask=[true, true, true], u8[0]"},
	},
};

/* ---- weights as direction and length ---- */

/* Returns |v| over all dims but one, kept; dim -1: over all. */
static Node norm_except(Build *b, Node v, int64_t dim)
{
	uint32_t all = (1u << aten_rank(b, v)) - 1;
	uint32_t dims = dim == -1 ? all : all & ~(1u << b_wrap_dim(b, dim, aten_rank(b, v)));
	return b_un(b, OP_sqrt, aten_sum(b, b_bin(b, OP_mul, v, v), dims, true));
}

static Node weight_norm(Build *b, Node n, Node *norm)
{
	Node v = arg(b, n, "v"), g = aten_wide(b, arg(b, n, "g")), wide = aten_wide(b, v);
	*norm = norm_except(b, wide, aten_int(b, n, "dim"));
	Node w = b_bin(b, OP_mul, wide, b_bin(b, OP_div, g, *norm));
	return w.i ? b_convert(b, w, node_dtype(b->g, v)) : w;
}

static Node build_weight_norm(Build *b, Node n)
{
	Node norm;
	return weight_norm(b, n, &norm);
}

static Node build_weight_norm_interface(Build *b, Node n)
{
	Node norm, w = weight_norm(b, n, &norm);
	if (!w.i)
		return w;
	DType d = aten_result_dtype(b, n, 1, node_dtype(b->g, norm));
	return b_tuple(b, (Node[]){w, b_convert(b, norm, d)}, 2);
}
OP(aten__weight_norm){
	.schema = "aten._weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor",
	.build = build_weight_norm,
	.sample = "f32[n=3, 4], f32[n, 1] in 0.5..2; f32[3, n=4], f32[1, n] in 0.5..2, dim=1",
	.overloads = (const Overload[]){
		{.schema = "aten._weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, "
			   "Tensor)",
		 .build = build_weight_norm_interface},
	},
};

/* Differentiates w = v * g / |v|: what of the gradient lies along v changes the length alone. */
static Node build_weight_norm_backward(Build *b, Node n)
{
	Node gw = aten_wide(b, arg(b, n, "grad_w")), v = arg(b, n, "saved_v");
	Node g = arg(b, n, "saved_g"), norm = aten_wide(b, arg(b, n, "saved_norms"));
	if (!gw.i || !v.i || !g.i || !norm.i)
		return (Node){0};
	uint32_t rank = node_rank(b->g, v), all = (1u << rank) - 1;
	uint32_t dims = all & ~(1u << b_wrap_dim(b, aten_int(b, n, "dim"), rank));
	Node wide = aten_wide(b, v), dot = aten_sum(b, b_bin(b, OP_mul, gw, wide), dims, true);
	Node gg = b_bin(b, OP_div, dot, norm);
	Node along = b_bin(b, OP_div, b_bin(b, OP_mul, wide, dot), b_bin(b, OP_mul, norm, norm));
	Node gv = b_bin(b, OP_mul, b_bin(b, OP_div, aten_wide(b, g), norm),
			b_bin(b, OP_sub, gw, along));
	if (!gv.i || !gg.i)
		return (Node){0};
	return b_tuple(b,
		       (Node[]){b_convert(b, gv, node_dtype(b->g, v)),
				b_convert(b, gg, node_dtype(b->g, g))},
		       2);
}
OP(aten__weight_norm_interface_backward){
	.schema = "aten._weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor "
		  "saved_g, Tensor saved_norms, int dim) -> (Tensor, Tensor)",
	.aliases = "aten._weight_norm_differentiable_backward",
	.build = build_weight_norm_backward,
	.sample = "f32[n=3, 4], f32[n, 4] in 1..3, f32[n, 1] in 0.5..2, f32[n, 1] in 1..2, dim=0; "
		  "f32[3, n=4], f32[3, n] in 1..3, f32[1, n] in 0.5..2, f32[1, n] in 1..2, dim=1",
};

/* ---- operators that pick elements: the gradient goes where they came from ---- */

OP(aten_select_backward){
	.schema = "aten.select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, "
		  "SymInt index) -> Tensor",
	.expand = "select_scatter(new_zeros(grad_output, input_sizes), grad_output, dim, index)",
	.sample = "f32[n=3], input_sizes=[n, 4], dim=1, index=2; "
		  "f32[4], input_sizes=[3, 4], dim=0, index=-1",
};
OP(aten_slice_backward){
	.schema = "aten.slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt "
		  "start, SymInt end, SymInt step) -> Tensor",
	.expand = "slice_scatter(new_zeros(grad_output, input_sizes), grad_output, dim, start, "
		  "end, step)",
	.sample = "f32[n=3, 2], input_sizes=[n, 5], dim=1, start=1, end=4, step=2; "
		  "f32[2, 3], input_sizes=[4, 3], dim=0, start=-2, end=9223372036854775807, step=1",
};
OP(aten_diagonal_backward){
	.schema = "aten.diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, "
		  "int dim1, int dim2) -> Tensor",
	.expand = "diagonal_scatter(new_zeros(grad_output, input_sizes), grad_output, offset, "
		  "dim1, dim2)",
	.sample = "f32[3], input_sizes=[3, 4], offset=1, dim1=0, dim2=1; "
		  "f32[n=2, 2], input_sizes=[n, 3, 3], offset=-1, dim1=1, dim2=2",
};
OP(aten_index_select_backward){
	.schema = "aten.index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor "
		  "index) -> Tensor",
	.expand = "index_add(new_zeros(grad, self_sizes), dim, index, grad)",
	.sample = "f32[n=2, 4], self_sizes=[n, 5], dim=1, i64[4] of 0 3 3 1",
};
OP(aten_gather_backward){
	.schema = "aten.gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool "
		  "sparse_grad) -> Tensor",
	.expand = "scatter_add(zeros_like(self), dim, index, grad)",
	.sample = "f32[n=2, 4], f32[n, 5], dim=1, i64[n, 4] of 0 3 3 1 4 2 0 1, sparse_grad=false",
	.overloads = (const Overload[]){
		{.schema = "aten.cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int "
			   "dim) -> Tensor",
		 .expand = "scatter_add(zeros_like(input), dim, indices, grad)",
		 .sample = "f32[n=2, 4], f32[n, 4], i64[n, 4] of 0 0 2 2 0 1 1 3, dim=1"},
	},
};

static Node build_cumprod_backward(Build *b, Node n)
{
	Node g = arg(b, n, "grad"), x = arg(b, n, "input");
	if (!g.i || !x.i || aten_rank(b, x) == 0)
		return g;
	if (aten_rank(b, g) != aten_rank(b, x))
		return b_error(b, "grad of rank %u: expected %u, as of input", aten_rank(b, g),
			       aten_rank(b, x));
	DType d = b_promote(b, (Node[]){g, x}, 2);
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	x = aten_wide(b, x);
	return b_convert(b, b_cumprod_backward(b, aten_wide(b, g), x, dim, false), d);
}
OP(aten_cumprod_backward){
	.schema = "aten.cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> "
		  "Tensor",
	.build = build_cumprod_backward,
	.sample = "f32[n=3, 4], f32[n, 4] of 1 0 2 3 0 0 1 2 1 2 3 -1, dim=1, "
		  "f32[n, 4] of 1 0 0 0 0 0 0 0 1 2 6 -6; f32[3], f32[3] of 0.5 -2 4, dim=-1, "
		  "f32[3] of 0.5 -1 -4",
};

static Node build_value_selecting_reduction_backward(Build *b, Node n)
{
	Node g = arg(b, n, "grad"), index = arg(b, n, "indices"), in[3];
	uint32_t rank;
	const Sym *size = node_ints(b->g, n, "sizes", &rank);
	if (!g.i || !index.i || rank > MAX_RANK)
		return b_error(b, "sizes of %u dims, expected at most %d", rank, MAX_RANK);
	int dim = (int)b_wrap_dim(b, aten_int(b, n, "dim"), rank);
	if (rank && !node_bool(b->g, n, "keepdim")) {
		g = b_unsqueeze(b, g, dim);
		index = b_unsqueeze(b, index, dim);
	}
	in[0] = b_full(b, aten_dtype(b, g), 0, rank, size);
	in[1] = index;
	in[2] = g;
	Attr attr[] = {attr_none(), attr_int(b->g->ir, dim), attr_none(), attr_none()};
	return b_node(b, OP_aten_scatter_add, in, 3, attr, 4);
}
OP(aten_value_selecting_reduction_backward){
	.schema = "aten.value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, "
		  "SymInt[] sizes, bool keepdim) -> Tensor",
	.build = build_value_selecting_reduction_backward,
	.sample = "f32[n=3], dim=1, i64[n] of 0 3 2, sizes=[n, 4], keepdim=false; "
		  "f32[1, 4], dim=0, i64[1, 4] of 0 2 1 1, sizes=[3, 4], keepdim=true",
};

static Node build_trace_backward(Build *b, Node n)
{
	Node g = arg(b, n, "grad");
	uint32_t rank;
	const Sym *size = node_ints(b->g, n, "sizes", &rank);
	if (!g.i || rank != 2)
		return b_error(b, "the trace of a tensor of rank %u, expected 2", rank);
	Shape s = shape_of(2, size);
	Node on = b_bin(b, OP_eq, aten_iota_dim(b, &s, 0, DT_i64), aten_iota_dim(b, &s, 1, DT_i64));
	return b_select(b, on, g, aten_like(b, g, 0));
}
OP(aten_trace_backward){
	.schema = "aten.trace_backward(Tensor grad, SymInt[] sizes) -> Tensor",
	.build = build_trace_backward,
	.sample = "f32[] of 2.5, sizes=[3, 4]; f32[] of 2.5, sizes=[3, 2]",
};

/* Requires that the gradient is of the windows that input_sizes has along dim. */
static bool windows_fit(Build *b, Node n, Node g, uint32_t dim)
{
	uint32_t rank;
	const Sym *in = node_ints(b->g, n, "input_sizes", &rank);
	int64_t step = aten_int(b, n, "step");
	Sym size = node_sym(b->g, n, "size");
	TRY(aten_check_within(b, "size", (double)aten_int(b, n, "size"), 0, INFINITY) &&
	    aten_check_within(b, "step", (double)step, 1, INFINITY));
	Shape want = shape_of(rank, in);
	want.dim[dim] = aten_window_count(b, in[dim], size, step);
	want = shape_insert(want, rank, size);
	return aten_require_shape(b, g, &want, "grad_in is of the windows of input_sizes");
}

/* Sums overlapping windows: window w, element k came from w * step + k. */
static Node build_unfold_backward(Build *b, Node n)
{
	Node g = arg(b, n, "grad_in");
	uint32_t rank, grank = aten_rank(b, g);
	const Sym *size = node_ints(b->g, n, "input_sizes", &rank);
	if (!g.i || rank == 0)
		return g; /* one window of one element */
	if (grank != rank + 1)
		return b_error(
			b, "a gradient of rank %u for input_sizes of %u dims, expected one more",
			grank, rank);
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), rank);
	if (!windows_fit(b, n, g, dim))
		return (Node){0};
	g = aten_move_dim(b, g, grank - 1, dim + 1);
	Shape s = aten_shape(b, g);
	Shape window = shape_of(2, s.dim + dim);
	Node at = b_bin_scalar(b, OP_mul, aten_iota_dim(b, &window, 0, DT_i64),
			       (double)aten_int(b, n, "step"));
	at = b_bin(b, OP_add, at, aten_iota_dim(b, &window, 1, DT_i64));
	at = b_unsqueeze(b, aten_flatten(b, at, 0, 1), -1);
	g = aten_move_dim(b, aten_flatten(b, g, dim, dim + 1), dim, 0);
	Shape zero = {.rank = 1, .dim = {size[dim]}};
	for (uint32_t k = 0; k < rank; k++)
		if (k != dim)
			zero.dim[zero.rank++] = size[k];
	uint32_t axis = 0;
	Node y = b_full(b, aten_dtype(b, g), 0, zero.rank, zero.dim);
	return aten_move_dim(b, b_scatter(b, y, at, g, 0, &axis, 1, "add"), 0, dim);
}
OP(aten_unfold_backward){
	.schema = "aten.unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, "
		  "int step) -> Tensor",
	.build = build_unfold_backward,
	.sample = "f32[n=2, 3, 2], input_sizes=[n, 6], dim=1, size=2, step=2; "
		  "f32[3, 2, 3], input_sizes=[5, 2], dim=0, size=3, step=1",
};

/* Adds rows of the gradient to the rows they were read from. */
static Node embedding_backward(Build *b, Node n, const char *grad)
{
	Node g = arg(b, n, grad), index = arg(b, n, "indices");
	Sym rows = node_sym(b->g, n, "num_weights"), one = b_int(b, 1);
	Shape s = aten_shape(b, g);
	uint32_t axis = 0;
	if (!g.i || !index.i || s.rank == 0)
		return b_error(b, "the gradient of an embedding of rank %u", s.rank);
	Sym count = type_numel(b->g->ir, node_type_id(b->g, index)), width = s.dim[s.rank - 1];
	DType d = node_dtype(b->g, g);
	index = b_convert(b, b_reshape(b, index, 1, &count), DT_i64);
	Node wide = aten_wide(b, b_reshape(b, g, 2, (Sym[]){count, width}));
	Node at = b_unsqueeze(b, index, -1);
	Node skip = b_bin(b, OP_eq, at, aten_size(b, node_sym(b->g, n, "padding_idx"), DT_i64));
	wide = b_select(b, skip, aten_like(b, wide, 0), wide);
	if (node_bool(b->g, n, "scale_grad_by_freq")) {
		Node ones = b_full(b, node_dtype(b->g, wide), 1, 1, &count);
		Node seen = b_full(b, node_dtype(b->g, wide), 0, 1, &rows);
		seen = b_scatter_as(b, seen, at, ones, 0, &axis, 1, "add", "within");
		seen = aten_take_dim(b, seen, 0, index, "within");
		wide = b_bin(b, OP_div, wide, b_reshape(b, seen, 2, (Sym[]){count, one}));
	}
	Node zero = b_full(b, node_dtype(b->g, wide), 0, 2, (Sym[]){rows, width});
	Node y = b_scatter_as(b, zero, at, wide, 0, &axis, 1, "add", "within");
	return y.i ? b_convert(b, y, d) : y;
}
static Node build_embedding_dense_backward(Build *b, Node n)
{
	return embedding_backward(b, n, "grad_output");
}
static Node build_embedding_backward(Build *b, Node n)
{
	if (node_bool(b->g, n, "sparse"))
		return b_error(b, "sparse gradients are not supported");
	return embedding_backward(b, n, "grad");
}
OP(aten_embedding_dense_backward){
	.schema = "aten.embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt "
		  "num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
	.build = build_embedding_dense_backward,
	.sample = "f32[n=5, 2], i64[n] of 0 3 3 1 2, num_weights=5, padding_idx=2, "
		  "scale_grad_by_freq=false; f32[5, 2], i64[5] of 0 3 3 1 2, num_weights=5, "
		  "padding_idx=-1, scale_grad_by_freq=true",
	.overloads = (const Overload[]){
		{.schema = "aten.embedding_backward(Tensor grad, Tensor indices, SymInt "
			   "num_weights, SymInt padding_idx, bool scale_grad_by_freq, "
			   "bool sparse) -> Tensor",
		 .build = build_embedding_backward,
		 .sample = "f32[n=5, 2], i64[n] of 0 3 3 1 2, num_weights=5, padding_idx=2, "
			   "scale_grad_by_freq=false, sparse=false"},
	},
};
