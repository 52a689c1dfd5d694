/* ATen normalisation. */
#include "ir/ops/aten_priv.h"

/* ---- batch norm: statistics of channel dim 1 ---- */

/* x * scale[c] + shift[c], where scale and shift depend on the statistics and parameters alone, so
 * that constant folding reduces them to two vectors. */
static Node per_channel(Build *b, Node x, Node w, Node bias, Node mean, Node invstd)
{
	DType d = aten_dtype(b, x);
	Node scale =
		w.i ? b_bin(b, OP_mul, b_convert(b, w, aten_dtype(b, invstd)), invstd) : invstd;
	Node shift = b_bin(b, OP_mul, b_convert(b, mean, aten_dtype(b, scale)), scale);
	shift = bias.i ? b_bin(b, OP_sub, b_convert(b, bias, aten_dtype(b, scale)), shift)
		       : b_un(b, OP_neg, shift);
	Node y = aten_wide(b, x);
	scale = aten_per_dim(b, b_convert(b, scale, aten_dtype(b, y)), y, 1);
	y = b_bin(b, OP_mul, y, scale);
	shift = aten_per_dim(b, b_convert(b, shift, aten_dtype(b, y)), y, 1);
	y = b_bin(b, OP_add, y, shift);
	return y.i ? b_convert(b, y, d) : y;
}

static Node inverse_std(Build *b, Node var, double eps)
{
	return b_un(b, OP_rsqrt, b_bin_scalar(b, OP_add, aten_wide(b, var), eps));
}

/* Everything batch norm can yield. */
typedef struct {
	Node y, mean, invstd, new_mean, new_var;
} BatchNorm;

/* running + momentum * (seen - running) */
static Node blend(Build *b, Node running, Node seen, double momentum)
{
	if (!running.i || !seen.i)
		return running;
	Node keep = b_bin_scalar(b, OP_mul, running, 1 - momentum);
	Node add = b_bin_scalar(b, OP_mul, seen, momentum);
	return b_convert(b, b_bin(b, OP_add, keep, add), node_dtype(b->g, running));
}

/* Normalised by the batch: centred first, so that the variance does not cancel. */
static BatchNorm train(Build *b, Node x, Node w, Node bias, Node mean, Node var, double momentum,
		       double eps)
{
	uint32_t rank = aten_rank(b, x), dims = ((1u << rank) - 1) & ~2u;
	DType d = aten_dtype(b, x);
	BatchNorm r = {0};
	Node wide = aten_wide(b, x), m;
	Node v = aten_var(b, wide, dims, 0, &m);
	Node invstd = inverse_std(b, v, eps);
	Node c = b_bin(b, OP_sub, wide, m);
	r.y = b_bin(b, OP_mul, c, invstd);
	if (w.i)
		r.y = b_bin(b, OP_mul, r.y,
			    aten_per_dim(b, b_convert(b, w, aten_dtype(b, wide)), wide, 1));
	if (bias.i)
		r.y = b_bin(b, OP_add, r.y,
			    aten_per_dim(b, b_convert(b, bias, aten_dtype(b, wide)), wide, 1));
	if (!r.y.i)
		return r;
	r.y = b_convert(b, r.y, d);
	r.mean = aten_squeeze_mask(b, m, dims);
	r.invstd = aten_squeeze_mask(b, invstd, dims);
	if (!mean.i)
		return r;
	v = aten_squeeze_mask(b, v, dims);
	Node count = aten_size(b, aten_count(b, wide, dims), aten_dtype(b, v));
	Node less = b_bin_scalar(b, OP_sub, count, 1);
	Node unbiased = b_bin(b, OP_mul, v, b_bin(b, OP_div, count, less));
	r.new_mean = blend(b, mean, r.mean, momentum);
	r.new_var = blend(b, var, unbiased, momentum);
	return r;
}

static Node empty(Build *b, DType d)
{
	return b_full(b, d, 0, 1, (Sym[]){b_int(b, 0)});
}

static BatchNorm batch_norm(Build *b, Node n, bool training)
{
	bool named = op_arg_index(node_op(b->g, n), "running_mean") >= 0;
	Node x = arg(b, n, "input"), w = arg(b, n, "weight"), bias = arg(b, n, "bias"), none = {0};
	Node mean = named ? arg(b, n, "running_mean") : none;
	Node var = named ? arg(b, n, "running_var") : none;
	double eps = node_float(b->g, n, "eps"), momentum = node_float(b->g, n, "momentum");
	BatchNorm r = {0};
	if (!x.i || node_rank(b->g, x) < 2) {
		b_error(b, "batch norm of rank %u, expected at least 2", aten_rank(b, x));
		return r;
	}
	if (training || (!mean.i && !var.i))
		return train(b, x, w, bias, mean, var, momentum, eps);
	if (!mean.i || !var.i) {
		b_error(b, "batch norm in evaluation mode needs running_mean and running_var");
		return r;
	}
	r.y = per_channel(b, x, w, bias, mean, inverse_std(b, var, eps));
	r.new_mean = mean;
	r.new_var = var;
	return r;
}

static Node build_batch_norm(Build *b, Node n)
{
	return batch_norm(b, n, node_bool(b->g, n, "training")).y;
}
OP(aten_batch_norm){
	.schema = "aten.batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
		  "running_mean, Tensor? running_var, bool training, float momentum, float eps, "
		  "bool cudnn_enabled) -> Tensor",
	.build = build_batch_norm,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, training=false, momentum=0.125, "
		  "eps=0.001, cudnn_enabled=false; f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], none, none, "
		  "training=true, momentum=0.125, eps=0.001, cudnn_enabled=false; "
		  "f32[n=3, 2], none, none, f32[2], f32[2] in 0.5..2, training=false, momentum=0.125, eps=0.25, "
		  "cudnn_enabled=false",
};

/* (y, mean, invstd): the statistics are empty in evaluation mode. With a reserve, which is empty on
 * CPUs, and the new running statistics where the operator has them. */
static Node with_statistics(Build *b, Node n, BatchNorm r)
{
	uint32_t nresult = op_schema(node_op(b->g, n))->nresult, at = 3;
	DType d = dtype_compute(aten_dtype(b, arg(b, n, "input")));
	DType mean = aten_result_dtype(b, n, 1, d), invstd = aten_result_dtype(b, n, 2, d);
	if (!r.y.i)
		return r.y;
	Node result[6] = {r.y};
	result[1] = r.mean.i ? b_convert(b, r.mean, mean) : empty(b, mean);
	result[2] = r.invstd.i ? b_convert(b, r.invstd, invstd) : empty(b, invstd);
	if (nresult == 4 || nresult == 6)
		result[at++] = empty(b, DT_u8);
	Node renewed[2] = {r.new_mean, r.new_var};
	for (uint32_t k = 0; k < 2 && nresult > 4; k++, at++) /* of bf16 some exporters say f32 and round later */
		result[at] = b_convert(b, renewed[k], aten_result_dtype(b, n, at, aten_dtype(b, renewed[k])));
	return b_tuple(b, result, at);
}

static Node build_native_batch_norm(Build *b, Node n)
{
	return with_statistics(b, n, batch_norm(b, n, node_bool(b->g, n, "training")));
}
static Node build_batch_norm_no_training(Build *b, Node n)
{
	return with_statistics(b, n, batch_norm(b, n, false));
}
OP(aten_native_batch_norm){
	.schema = "aten.native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
		  "running_mean, Tensor? running_var, bool training, float momentum, float eps) "
		  "-> (Tensor, Tensor, Tensor)",
	.build = build_native_batch_norm,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, training=false, momentum=0.125, "
		  "eps=0.001; f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], none, none, training=true, momentum=0.125, "
		  "eps=0.25",
};
OP(aten__native_batch_norm_legit){
	.schema = "aten._native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, "
		  "Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float "
		  "momentum, float eps) -> (Tensor, Tensor, Tensor)",
	.build = build_native_batch_norm,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, training=false, momentum=0.125, "
		  "eps=0.001; f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, training=true, "
		  "momentum=0.125, eps=0.25",
};
OP(aten__native_batch_norm_legit_no_stats){
	.schema = "aten._native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? "
		  "bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
	.build = build_native_batch_norm,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], training=true, momentum=0.125, eps=0.25",
};
OP(aten__native_batch_norm_legit_no_training){
	.schema = "aten._native_batch_norm_legit_no_training(Tensor input, Tensor? weight, "
		  "Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float "
		  "eps) -> (Tensor, Tensor, Tensor)",
	.build = build_batch_norm_no_training,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, momentum=0.125, eps=0.25",
};

/* Forms that yield the new running statistics, or write them: the importer sees to that. */
static Node build_batch_norm_training(Build *b, Node n)
{
	return with_statistics(b, n, batch_norm(b, n, true));
}
OP(aten__batch_norm_with_update){
	.schema = "aten._batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, "
		  "Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> "
		  "(Tensor, Tensor, Tensor, Tensor)",
	.build = build_batch_norm_training,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, momentum=0.125, eps=0.25",
};
OP(aten__batch_norm_with_update_functional){
	.schema = "aten._batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? "
		  "bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> "
		  "(Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor "
		  "running_var_out)",
	.build = build_batch_norm_training,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, momentum=0.125, eps=0.25",
};
OP(aten__batch_norm_no_update){
	.schema = "aten._batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
		  "running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, "
		  "Tensor, Tensor, Tensor)",
	.build = build_batch_norm_no_training,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, momentum=0.125, eps=0.25",
};
OP(aten__native_batch_norm_legit_functional){
	.schema = "aten._native_batch_norm_legit_functional(Tensor input, Tensor? weight, "
		  "Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float "
		  "momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, "
		  "Tensor running_var_out)",
	.build = build_native_batch_norm,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, training=false, momentum=0.125, "
		  "eps=0.001; f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, training=true, "
		  "momentum=0.125, eps=0.25",
};

static Node build_instance_norm(Build *b, Node n)
{
	Node x = arg(b, n, "input"), w = arg(b, n, "weight"), bias = arg(b, n, "bias");
	uint32_t rank = aten_rank(b, x);
	double eps = node_float(b->g, n, "eps");
	if (rank < 2)
		return b_error(b, "instance norm of rank %u, expected at least 2", rank);
	if (!node_bool(b->g, n, "use_input_stats"))
		return per_channel(b, x, w, bias, arg(b, n, "running_mean"),
				   inverse_std(b, arg(b, n, "running_var"), eps));
	uint32_t dims = ((1u << rank) - 1) & ~3u;
	DType d = node_dtype(b->g, x);
	Node wide = aten_wide(b, x), m, v = aten_var(b, wide, dims, 0, &m);
	Node c = b_bin(b, OP_sub, wide, m);
	Node y = b_bin(b, OP_mul, c, inverse_std(b, v, eps));
	if (w.i)
		y = b_bin(b, OP_mul, y, aten_per_dim(b, b_convert(b, w, aten_dtype(b, y)), y, 1));
	if (bias.i)
		y = b_bin(b, OP_add, y,
			  aten_per_dim(b, b_convert(b, bias, aten_dtype(b, y)), y, 1));
	return y.i ? b_convert(b, y, d) : y;
}
OP(aten_instance_norm){
	.schema = "aten.instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
		  "running_mean, Tensor? running_var, bool use_input_stats, float momentum, "
		  "float eps, bool cudnn_enabled) -> Tensor",
	.build = build_instance_norm,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], none, none, use_input_stats=true, momentum=0.125, "
		  "eps=0.25, cudnn_enabled=false; f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], "
		  "f32[3] in 0.5..2, use_input_stats=false, momentum=0.125, eps=0.25, cudnn_enabled=false",
};

/* ---- norms over the last dims ---- */

typedef struct {
	Node y, mean, rstd; /* statistics keep the dims, wide */
} Norm;

static Norm layer_norm(Build *b, Node n)
{
	Node x = arg(b, n, "input"), w = arg(b, n, "weight"), bias = arg(b, n, "bias");
	uint32_t len, rank = aten_rank(b, x), dims = 0;
	Norm r = {0};
	node_ints(b->g, n, "normalized_shape", &len);
	if (!x.i || len == 0 || len > rank) {
		b_error(b, "normalized_shape of %u dims for an operand of rank %u", len, rank);
		return r;
	}
	for (uint32_t k = rank - len; k < rank; k++)
		dims |= 1u << k;
	DType d = node_dtype(b->g, x);
	Node wide = aten_wide(b, x);
	Node v = aten_var(b, wide, dims, 0, &r.mean);
	r.rstd = inverse_std(b, v, node_float(b->g, n, "eps"));
	Node c = b_bin(b, OP_sub, wide, r.mean);
	r.y = b_bin(b, OP_mul, c, r.rstd);
	if (w.i)
		r.y = b_bin(b, OP_mul, r.y, aten_wide(b, w));
	if (bias.i)
		r.y = b_bin(b, OP_add, r.y, aten_wide(b, bias));
	if (r.y.i)
		r.y = b_convert(b, r.y, d);
	return r;
}

static Node build_layer_norm(Build *b, Node n)
{
	return layer_norm(b, n).y;
}
OP(aten_layer_norm){
	.schema = "aten.layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, "
		  "Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
	.build = build_layer_norm,
	.sample = "f32[n=3, 4], normalized_shape=[4], f32[4] in 0.5..2, f32[4]; "
		  "f32[2, 2, 3], normalized_shape=[2, 3], eps=0.25",
};

static Node norm_with_statistics(Build *b, Node n, Norm r)
{
	if (!r.y.i)
		return r.y;
	DType d = aten_result_dtype(b, n, 1, node_dtype(b->g, r.mean));
	return b_tuple(b, (Node[]){r.y, b_convert(b, r.mean, d), b_convert(b, r.rstd, d)}, 3);
}

static Node build_native_layer_norm(Build *b, Node n)
{
	return norm_with_statistics(b, n, layer_norm(b, n));
}
OP(aten_native_layer_norm){
	.schema = "aten.native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? "
		  "weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
	.build = build_native_layer_norm,
	.sample = "f32[n=3, 4], normalized_shape=[4], f32[4] in 0.5..2, f32[4], eps=0.001; "
		  "f32[2, 2, 3], normalized_shape=[2, 3], none, none, eps=0.25",
};

static Node build_rms_norm(Build *b, Node n)
{
	Node x = arg(b, n, "input"), w = arg(b, n, "weight");
	uint32_t len, rank = aten_rank(b, x), dims = 0;
	node_ints(b->g, n, "normalized_shape", &len);
	if (!x.i || len == 0 || len > rank)
		return b_error(b, "normalized_shape of %u dims for an operand of rank %u", len,
			       rank);
	for (uint32_t k = rank - len; k < rank; k++)
		dims |= 1u << k;
	DType d = node_dtype(b->g, x);
	double eps = d == DT_f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
	if (aten_has(b, n, "eps"))
		eps = node_float(b->g, n, "eps");
	Node wide = aten_wide(b, x);
	Node sq = aten_mean(b, b_bin(b, OP_mul, wide, wide), dims, true);
	Node y = b_bin(b, OP_mul, wide, inverse_std(b, sq, eps));
	if (w.i)
		y = b_bin(b, OP_mul, y, aten_wide(b, w));
	return y.i ? b_convert(b, y, d) : y;
}
OP(aten_rms_norm){
	.schema = "aten.rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, "
		  "float? eps=None) -> Tensor",
	.build = build_rms_norm,
	.sample = "f32[n=3, 4], normalized_shape=[4], f32[4] in 0.5..2; f32[2, 2, 3], normalized_shape=[2, 3], eps=0.25",
};

/* ---- group norm ---- */

/* [N, C, ...] normalised over each of `groups` groups of channels; mean and rstd are [N, groups].
 */
static Norm group_norm(Build *b, Node n, Node x, int64_t groups)
{
	Node w = arg(b, n, "weight"), bias = arg(b, n, "bias");
	Shape s = aten_shape(b, x), g = {.rank = 3};
	DType d = aten_dtype(b, x);
	Norm r = {0};
	if (s.rank < 2 || groups < 1 || !sym_divides(b_syms(b), groups, s.dim[1])) {
		b_error(b, "group norm of rank %u in %lld groups", s.rank, (long long)groups);
		return r;
	}
	g.dim[0] = s.dim[0];
	g.dim[1] = b_int(b, groups);
	g.dim[2] = sym_divi(b_syms(b), s.dim[1], groups);
	for (uint32_t k = 2; k < s.rank; k++)
		g.dim[2] = sym_mul(b_syms(b), g.dim[2], s.dim[k]);
	Node wide = aten_reshape(b, aten_wide(b, x), &g);
	Node v = aten_var(b, wide, 4, 0, &r.mean);
	r.rstd = inverse_std(b, v, node_float(b->g, n, "eps"));
	Node c = b_bin(b, OP_sub, wide, r.mean);
	r.y = aten_reshape(b, b_bin(b, OP_mul, c, r.rstd), &s);
	if (w.i)
		r.y = b_bin(b, OP_mul, r.y, aten_per_dim(b, aten_wide(b, w), r.y, 1));
	if (bias.i)
		r.y = b_bin(b, OP_add, r.y, aten_per_dim(b, aten_wide(b, bias), r.y, 1));
	if (r.y.i)
		r.y = b_convert(b, r.y, d);
	return r;
}

static Node build_group_norm(Build *b, Node n)
{
	return group_norm(b, n, arg(b, n, "input"), aten_int(b, n, "num_groups")).y;
}
OP(aten_group_norm){
	.schema = "aten.group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? "
		  "bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
	.build = build_group_norm,
	.sample = "f32[n=2, 4, 3], num_groups=2, f32[4] in 0.5..2, f32[4]; f32[n=2, 4], num_groups=1, eps=0.25",
};

static Node build_native_group_norm(Build *b, Node n)
{
	Norm r = group_norm(b, n, arg(b, n, "input"), aten_int(b, n, "group"));
	if (!r.y.i)
		return r.y;
	r.mean = aten_squeeze_mask(b, r.mean, 4);
	r.rstd = aten_squeeze_mask(b, r.rstd, 4);
	return norm_with_statistics(b, n, r);
}
OP(aten_native_group_norm){
	.schema = "aten.native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, "
		  "SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
	.build = build_native_group_norm,
	.sample = "f32[n=2, 4, 3], f32[4] in 0.5..2, f32[4], N=n, C=4, HxW=3, group=2, eps=0.001; "
		  "f32[2, 4, 3], none, none, N=2, C=4, HxW=3, group=4, eps=0.25",
};
