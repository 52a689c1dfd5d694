/* ATen normalisation. */
#include "ops/aten/priv.h"

/* ---- batch norm: statistics of channel dim 1 ---- */

/* Returns x * scale[c] + shift[c], where scale and shift depend on the statistics and parameters
 * alone, so that constant folding reduces them to two vectors. */
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

/* Returns running + momentum * (seen - running). */
static Node blend(Build *b, Node running, Node seen, double momentum)
{
	if (!running.i || !seen.i)
		return running;
	Node keep = b_bin_scalar(b, OP_mul, running, 1 - momentum);
	Node add = b_bin_scalar(b, OP_mul, seen, momentum);
	return b_convert(b, b_bin(b, OP_add, keep, add), node_dtype(b->g, running));
}

/* Normalises by the batch: centred first, so that the variance does not cancel. */
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
	r.mean = aten_squeeze_dims(b, m, dims);
	r.invstd = aten_squeeze_dims(b, invstd, dims);
	if (!mean.i)
		return r;
	v = aten_squeeze_dims(b, v, dims);
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

/* Tells whether x is a vector without elements, of which PyTorch asks for no channels. */
static bool is_nothing(const Build *b, Node x)
{
	return aten_rank(b, x) == 1 && sym_is(b_syms(b), b_dim(b, x, 0), 0);
}

static BatchNorm batch_norm(Build *b, Node n, bool training)
{
	bool named = op_arg_index(node_op(b->g, n), "running_mean") >= 0;
	Node x = arg(b, n, "input"), w = arg(b, n, "weight"), bias = arg(b, n, "bias"), none = {0};
	Node mean = named ? arg(b, n, "running_mean") : none;
	Node var = named ? arg(b, n, "running_var") : none;
	double eps = node_float(b->g, n, "eps"), momentum = node_float(b->g, n, "momentum");
	BatchNorm r = {.new_mean = mean, .new_var = var};
	if (is_nothing(b, x)) {
		r.y = x;
		return r;
	}
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
	return r;
}

/* Takes the cotangents that a backward operator gives for operands 0 to 2, as far as they are
 * wanted. */
static void take_wanted(Build *b, Node all, const bool *want, Node *g)
{
	for (uint32_t k = 0; k < 3 && all.i; k++)
		if (want[k])
			g[k] = b_get(b, all, k);
}

/* Differentiates in evaluation mode, by the running statistics: y = (x - mean) * w / sqrt(var +
 * eps) + bias. */
static void adjoint_running(Build *b, Node n, Node ct, const bool *want, Node *g)
{
	Node x = arg(b, n, "input"), w = arg(b, n, "weight"), mean = arg(b, n, "running_mean");
	Node rstd = inverse_std(b, arg(b, n, "running_var"), node_float(b->g, n, "eps")),
	     wide = aten_wide(b, ct);
	uint32_t dims = ((1u << aten_rank(b, x)) - 1) & ~2u;
	Node scale = w.i ? b_bin(b, OP_mul, rstd, aten_wide(b, w)) : rstd;
	if (want[3])
		g[3] = b_bin(b, OP_mul, b_un(b, OP_neg, scale), aten_sum(b, wide, dims, false));
	if (!want[4])
		return;
	Node centred = b_bin(b, OP_sub, aten_wide(b, x), aten_per_dim(b, aten_wide(b, mean), x, 1));
	Node sum = aten_sum(b, b_bin(b, OP_mul, wide, centred), dims, false);
	scale = b_bin_scalar(b, OP_mul, b_bin(b, OP_mul, scale, b_bin(b, OP_mul, rstd, rstd)),
			     -0.5);
	g[4] = b_bin(b, OP_mul, scale, sum);
}

/* Computes it from x and the statistics, which the expansion has too. Through its derivative
 * there were the centred operand, its square and several sums. The statistics have none, as in
 * PyTorch. */
static bool adjoint_batch_norm_as(Build *b, Node n, const Node *ct, const bool *want, bool training,
				  Node *g)
{
	bool named = op_arg_index(node_op(b->g, n), "running_mean") >= 0;
	Node x = arg(b, n, "input"), w = arg(b, n, "weight"), none = {0};
	Node running = named ? arg(b, n, "running_mean") : none,
	     var = named ? arg(b, n, "running_var") : none;
	double eps = node_float(b->g, n, "eps");
	Node mean = none, invstd = none;
	if (!ct[0].i)
		return true;
	if (is_nothing(b, x)) {
		g[0] = ct[0];
		return true;
	}
	training |= !running.i && !var.i;
	if (training) {
		BatchNorm r = train(b, x, none, none, none, none, 0, eps);
		mean = r.mean;
		invstd = r.invstd;
	} else if (want[3] || want[4])
		adjoint_running(b, n, ct[0], want, g);
	Attr attr[10] = {[7] = attr_bool(training), attr_float(eps), attr_bools(want, 3)};
	Node in[] = {ct[0], x, w, running, var, mean, invstd};
	Node all = b_node(b, OP_aten_native_batch_norm_backward, in, 7, attr, 10);
	take_wanted(b, all, want, g);
	return all.i;
}

static bool adjoint_batch_norm(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	return adjoint_batch_norm_as(b, n, ct, want, node_bool(b->g, n, "training"), g);
}
static bool adjoint_batch_norm_training(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	return adjoint_batch_norm_as(b, n, ct, want, true, g);
}
static bool adjoint_batch_norm_no_training(Build *b, Node n, const Node *ct, const bool *want,
					   Node *g)
{
	return adjoint_batch_norm_as(b, n, ct, want, false, g);
}

static Node build_batch_norm(Build *b, Node n)
{
	return batch_norm(b, n, node_bool(b->g, n, "training")).y;
}

/* Returns (y, mean, invstd): the statistics are empty in evaluation mode. With a reserve, which
 * is empty on CPUs, and the new running statistics where the operator has them. */
static Node with_statistics(Build *b, Node n, BatchNorm r)
{
	uint32_t nresult = op_schema(node_op(b->g, n))->nresult, at = 3;
	DType d = dtype_compute(aten_dtype(b, arg(b, n, "input")));
	DType mean = aten_result_dtype(b, n, 1, d), invstd = aten_result_dtype(b, n, 2, d);
	if (!r.y.i)
		return r.y;
	Node result[6] = {r.y};
	result[1] = r.mean.i ? aten_detached(b, b_convert(b, r.mean, mean)) : empty(b, mean);
	result[2] =
		r.invstd.i ? aten_detached(b, b_convert(b, r.invstd, invstd)) : empty(b, invstd);
	if (nresult == 4 || nresult == 6)
		result[at++] = empty(b, DT_u8);
	Node renewed[2] = {r.new_mean, r.new_var};
	/* of bf16 some exporters say f32 and round later */
	for (uint32_t k = 0; k < 2 && nresult > 4; k++, at++)
		result[at] = aten_detached(
			b, b_convert(b, renewed[k],
				     aten_result_dtype(b, n, at, aten_dtype(b, renewed[k]))));
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

/* Forms that yield the new running statistics, or write them: the importer sees to that. */
static Node build_batch_norm_training(Build *b, Node n)
{
	return with_statistics(b, n, batch_norm(b, n, true));
}
OP(aten__batch_norm_with_update){
	.schema = "aten._batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, "
		  "Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> "
		  "(Tensor, Tensor, Tensor, Tensor)",
	.autocast = AUTOCAST_FIRST,
	.build = build_batch_norm_training,
	.adjoint = adjoint_batch_norm_training,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, "
		  "momentum=0.125, eps=0.25",
	.overloads = (const Overload[]){
		{.schema = "aten._batch_norm_with_update_functional(Tensor input, Tensor? weight, "
			   "Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, "
			   "float eps) -> "
			   "(Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor "
			   "running_var_out)"},
	},
};
OP(aten__native_batch_norm_legit_no_training){
	.schema = "aten._native_batch_norm_legit_no_training(Tensor input, Tensor? weight, "
		  "Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float "
		  "eps) -> (Tensor, Tensor, Tensor)",
	.autocast = AUTOCAST_FIRST,
	.build = build_batch_norm_no_training,
	.adjoint = adjoint_batch_norm_no_training,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, "
		  "momentum=0.125, eps=0.25",
	.overloads = (const Overload[]){
		{.schema = "aten._batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, "
			   "Tensor? running_mean, Tensor? running_var, float momentum, "
			   "float eps) -> (Tensor, "
			   "Tensor, Tensor, Tensor)"},
	},
};
OP(aten_batch_norm){
	.schema = "aten.batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
		  "running_mean, Tensor? running_var, bool training, float momentum, float eps, "
		  "bool cudnn_enabled) -> Tensor",
	.autocast = AUTOCAST_FIRST,
	.mode = "training",
	.build = build_batch_norm,
	.adjoint = adjoint_batch_norm,
	.sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in 0.5..2, "
		  "training=false, momentum=0.125, "
		  "eps=0.001, cudnn_enabled=false; f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], none, "
		  "none, "
		  "training=true, momentum=0.125, eps=0.001, cudnn_enabled=false; "
		  "f32[n=3, 2], none, none, f32[2], f32[2] in 0.5..2, training=false, "
		  "momentum=0.125, eps=0.25, "
		  "cudnn_enabled=false",
	.overloads =
		(const Overload[]){
			{.schema = "aten.native_batch_norm(Tensor input, Tensor? weight, Tensor? "
				   "bias, Tensor? "
				   "running_mean, Tensor? running_var, bool training, float "
				   "momentum, float eps) "
				   "-> (Tensor, Tensor, Tensor)",
			 .build = build_native_batch_norm,
			 .sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in "
				   "0.5..2, training=false, momentum=0.125, "
				   "eps=0.001; f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], none, "
				   "none, training=true, momentum=0.125, "
				   "eps=0.25"},
			{.schema = "aten._native_batch_norm_legit(Tensor input, Tensor? weight, "
				   "Tensor? bias, "
				   "Tensor(a!) running_mean, Tensor(b!) running_var, bool "
				   "training, float "
				   "momentum, float eps) -> (Tensor, Tensor, Tensor)",
			 .build = build_native_batch_norm,
			 .sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in "
				   "0.5..2, training=false, momentum=0.125, "
				   "eps=0.001; f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], "
				   "f32[3] in 0.5..2, training=true, "
				   "momentum=0.125, eps=0.25"},
			{.schema = "aten._native_batch_norm_legit.no_stats(Tensor input, Tensor? "
				   "weight, Tensor? "
				   "bias, bool training, float momentum, float eps) -> (Tensor, "
				   "Tensor, Tensor)",
			 .build = build_native_batch_norm,
			 .sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], training=true, "
				   "momentum=0.125, eps=0.25"},
			{.schema = "aten._native_batch_norm_legit_functional(Tensor input, Tensor? "
				   "weight, "
				   "Tensor? bias, Tensor running_mean, Tensor running_var, bool "
				   "training, float "
				   "momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor "
				   "running_mean_out, "
				   "Tensor running_var_out)",
			 .build = build_native_batch_norm,
			 .sample = "f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], f32[3] in "
				   "0.5..2, training=false, momentum=0.125, "
				   "eps=0.001; f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], "
				   "f32[3] in 0.5..2, training=true, "
				   "momentum=0.125, eps=0.25"},
		},
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
	.autocast = AUTOCAST_FIRST,
	.mode = "use_input_stats",
	.build = build_instance_norm,
	.sample =
		"f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], none, none, use_input_stats=true, "
		"momentum=0.125, "
		"eps=0.25, cudnn_enabled=false; f32[n=2, 3, 4], f32[3] in 0.5..2, f32[3], f32[3], "
		"f32[3] in 0.5..2, use_input_stats=false, momentum=0.125, eps=0.25, "
		"cudnn_enabled=false",
};

/* ---- norms over the last dims ---- */

typedef struct {
	Node y, mean, rstd; /* statistics keep the dims, wide */
} Norm;

uint32_t aten_normalised_dims(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	uint32_t len, rank = aten_rank(b, x), errors = b->g->ir->ctx->nerror;
	const Sym *shape = node_ints(b->g, n, "normalized_shape", &len);
	if (len == 0 || len > rank)
		return b_error(b, "normalized_shape of %u dims for an operand of rank %u", len,
			       rank)
			.i;
	for (uint32_t k = 0; k < len && b->g->ir->ctx->nerror == errors; k++)
		aten_require_equal(b, shape[k], node_dim(b->g, x, rank - len + k),
				   "normalized_shape is that of the last dimensions");
	if (b->g->ir->ctx->nerror != errors)
		return 0;
	return ((1u << rank) - 1) & ~((1u << (rank - len)) - 1);
}

static Norm layer_norm_statistics(Build *b, Node n)
{
	uint32_t dims = aten_normalised_dims(b, n);
	Norm r = {0};
	if (!dims)
		return r;
	Node v = aten_var(b, aten_wide(b, arg(b, n, "input")), dims, 0, &r.mean);
	r.rstd = inverse_std(b, v, node_float(b->g, n, "eps"));
	return r;
}

static Norm layer_norm(Build *b, Node n)
{
	Node x = arg(b, n, "input"), w = arg(b, n, "weight"), bias = arg(b, n, "bias");
	Norm r = layer_norm_statistics(b, n);
	if (!r.rstd.i)
		return r;
	DType d = node_dtype(b->g, x);
	Node c = b_bin(b, OP_sub, aten_wide(b, x), r.mean);
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

/* Differentiates as that of batch norm does. */
static bool adjoint_layer_norm(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	if (!ct[0].i)
		return true;
	Norm r = layer_norm_statistics(b, n);
	Attr attr[8] = {[2] = *node_attr(b->g, n, "normalized_shape"), [7] = attr_bools(want, 3)};
	Node in[] = {ct[0],  arg(b, n, "input"),  r.mean,
		     r.rstd, arg(b, n, "weight"), arg(b, n, "bias")};
	Node all =
		r.rstd.i ? b_node(b, OP_aten_native_layer_norm_backward, in, 6, attr, 8) : r.rstd;
	take_wanted(b, all, want, g);
	return all.i;
}

static Node norm_with_statistics(Build *b, Node n, Norm r)
{
	if (!r.y.i)
		return r.y;
	DType d = aten_result_dtype(b, n, 1, node_dtype(b->g, r.mean));
	return b_tuple(b, (Node[]){r.y, b_convert(b, r.mean, d), b_convert(b, r.rstd, d)}, 3);
}

static Node build_native_layer_norm(Build *b, Node n)
{
	Norm r = layer_norm(b, n);
	r.mean = aten_detached(b, r.mean);
	r.rstd = aten_detached(b, r.rstd);
	return norm_with_statistics(b, n, r);
}
OP(aten_layer_norm){
	.schema = "aten.layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, "
		  "Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
	.autocast = AUTOCAST_FIRST,
	.autocast_gpu = AUTOCAST_F32,
	.build = build_layer_norm,
	.adjoint = adjoint_layer_norm,
	.sample = "f32[n=3, 4], normalized_shape=[4], f32[4] in 0.5..2, f32[4]; "
		  "f32[2, 2, 3], normalized_shape=[2, 3], eps=0.25",
	.overloads = (const Overload[]){
		{.schema = "aten.native_layer_norm(Tensor input, SymInt[] normalized_shape, "
			   "Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
		 .build = build_native_layer_norm,
		 .sample = "f32[n=3, 4], normalized_shape=[4], f32[4] in 0.5..2, f32[4], "
			   "eps=0.001; f32[2, 2, 3], normalized_shape=[2, 3], none, none, "
			   "eps=0.25"},
	},
};

/* Returns 1 / sqrt(mean(x * x) + eps), which keeps the dims. */
static Node rms_norm_statistic(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	uint32_t dims = aten_normalised_dims(b, n);
	if (!dims)
		return (Node){0};
	double eps = node_dtype(b->g, x) == DT_f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
	if (aten_has(b, n, "eps"))
		eps = node_float(b->g, n, "eps");
	Node wide = aten_wide(b, x);
	return inverse_std(b, aten_mean(b, b_bin(b, OP_mul, wide, wide), dims, true), eps);
}

static Node build_rms_norm(Build *b, Node n)
{
	Node x = arg(b, n, "input"), w = arg(b, n, "weight"), rstd = rms_norm_statistic(b, n);
	Node y = b_bin(b, OP_mul, aten_wide(b, x), rstd);
	if (w.i)
		y = b_bin(b, OP_mul, y, aten_wide(b, w));
	return y.i ? b_convert(b, y, node_dtype(b->g, x)) : y;
}

static Node build_fused_rms_norm(Build *b, Node n)
{
	return b_tuple(b, (Node[]){build_rms_norm(b, n), rms_norm_statistic(b, n)}, 2);
}

static bool adjoint_rms_norm(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Attr attr[6] = {[2] = *node_attr(b->g, n, "normalized_shape"), [5] = attr_bools(want, 2)};
	Node in[] = {ct[0], arg(b, n, "input"), rms_norm_statistic(b, n), arg(b, n, "weight")};
	Node all = in[2].i ? b_node(b, OP_aten__fused_rms_norm_backward, in, 4, attr, 6) : in[2];
	for (uint32_t k = 0; k < 2 && all.i; k++)
		if (want[k])
			g[k] = b_get(b, all, k);
	return all.i;
}
OP(aten_rms_norm){
	.schema = "aten.rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, "
		  "float? eps=None) -> Tensor",
	.autocast = AUTOCAST_FIRST,
	.build = build_rms_norm,
	.adjoint = adjoint_rms_norm,
	.sample = "f32[n=3, 4], normalized_shape=[4], f32[4] in 0.5..2; "
		  "f32[2, 2, 3], normalized_shape=[2, 3], eps=0.25",
};

OP(aten__fused_rms_norm){
	.schema = "aten._fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, "
		  "float? eps) -> (Tensor, Tensor)",
	.autocast = AUTOCAST_FIRST,
	.build = build_fused_rms_norm,
	.sample = "f32[n=3, 4], normalized_shape=[4], f32[4] in 0.5..2, eps=none; "
		  "f32[2, 2, 3], normalized_shape=[2, 3], none, eps=0.25",
};

/* ---- group norm ---- */

/* Computes mean and rstd, which keep the dims. */
static Norm group_norm_statistics(Build *b, Node n, Node x, int64_t groups, Node *wide)
{
	Norm r = {0};
	aten_require_elements(b, x, aten_dims_from(b, x, 2),
			      "a group that is normalised has elements");
	*wide = aten_grouped(b, aten_wide(b, x), groups);
	if (!wide->i)
		return r;
	Node v = aten_var(b, *wide, aten_within_groups(b, *wide), 0, &r.mean);
	r.rstd = inverse_std(b, v, node_float(b->g, n, "eps"));
	return r;
}

/* Returns x as [N, groups]. */
static Node of_groups(Build *b, Node x)
{
	return aten_squeeze_dims(b, x, aten_within_groups(b, x));
}

static Norm group_norm(Build *b, Node n, Node x, int64_t groups)
{
	Node w = arg(b, n, "weight"), bias = arg(b, n, "bias"), wide = {0};
	Shape s = aten_shape(b, x);
	DType d = aten_dtype(b, x);
	Norm r = group_norm_statistics(b, n, x, groups, &wide);
	if (!r.rstd.i)
		return r;
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

/* Differentiates by the mean and by rstd, each of which [N, groups] elements of x share; these
 * PyTorch differentiates. */
static Node group_statistics_cotangent(Build *b, Node x, Node wide, const Norm *r, const Node *ct)
{
	DType d = aten_dtype(b, wide);
	const uint32_t within = aten_within_groups(b, wide);
	Node count = aten_size(b, aten_count(b, wide, within), d), sum = {0};
	Shape s = aten_shape(b, wide), own = aten_shape(b, x);
	if (ct[1].i)
		sum = aten_expand_shape(b, aten_per_group(b, b_convert(b, ct[1], d), wide), &s);
	if (ct[2].i) {
		Node cube = b_bin(b, OP_mul, b_bin(b, OP_mul, r->rstd, r->rstd), r->rstd);
		Node by = b_bin(b, OP_mul, aten_per_group(b, b_convert(b, ct[2], d), wide),
				b_un(b, OP_neg, cube));
		sum = b_add(b, sum, b_bin(b, OP_mul, b_bin(b, OP_sub, wide, r->mean), by));
	}
	return aten_reshape(b, b_bin(b, OP_div, sum, count), &own);
}

static bool adjoint_group_norm_in(Build *b, Node n, const Node *ct, const bool *want,
				  int64_t groups, Node *g)
{
	Node x = arg(b, n, "input"), wide = {0};
	Norm r = group_norm_statistics(b, n, x, groups, &wide);
	if (!r.rstd.i)
		return false;
	if (ct[0].i) {
		Shape s = aten_shape(b, x), space = shape_of(s.rank - 2, s.dim + 2);
		Attr attr[10] = {[5] = attr_sym(s.dim[0]),
				 attr_sym(s.dim[1]),
				 attr_sym(shape_numel(b, &space)),
				 attr_int(b->g->ir, groups),
				 attr_bools(want, 3)};
		Node in[] = {ct[0], x, of_groups(b, r.mean), of_groups(b, r.rstd),
			     arg(b, n, "weight")};
		Node all = b_node(b, OP_aten_native_group_norm_backward, in, 5, attr, 10);
		if (!all.i)
			return false;
		take_wanted(b, all, want, g);
	}
	bool statistics = node_dtype(b->g, n) == DT_none && (ct[1].i || ct[2].i);
	if (want[0] && statistics)
		g[0] = b_add(b, g[0],
			     b_convert(b, group_statistics_cotangent(b, x, wide, &r, ct),
				       node_dtype(b->g, x)));
	return true;
}

static bool adjoint_group_norm(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	return adjoint_group_norm_in(b, n, ct, want, aten_int(b, n, "num_groups"), g);
}
static bool adjoint_native_group_norm(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	return adjoint_group_norm_in(b, n, ct, want, aten_int(b, n, "group"), g);
}

static Node build_group_norm(Build *b, Node n)
{
	return group_norm(b, n, arg(b, n, "input"), aten_int(b, n, "num_groups")).y;
}
OP(aten_group_norm){
	.schema = "aten.group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? "
		  "bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
	.autocast = AUTOCAST_FIRST,
	.autocast_gpu = AUTOCAST_F32,
	.build = build_group_norm,
	.adjoint = adjoint_group_norm,
	.sample = "f32[n=2, 4, 3], num_groups=2, f32[4] in 0.5..2, f32[4]; "
		  "f32[n=2, 4], num_groups=1, eps=0.25",
};

static Node build_native_group_norm(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	static const char *const name[] = {"N", "C", "HxW"};
	Sym size[3] = {b_int(b, 1), b_int(b, 1), b_int(b, 1)};
	for (uint32_t k = 0; k < aten_rank(b, x); k++)
		size[k < 2 ? k : 2] = sym_mul(b_syms(b), size[k < 2 ? k : 2], node_dim(b->g, x, k));
	for (uint32_t k = 0; k < 3; k++)
		aten_require_equal(b, node_sym(b->g, n, name[k]), size[k], name[k]);
	Norm r = group_norm(b, n, x, aten_int(b, n, "group"));
	if (!r.y.i)
		return r.y;
	r.mean = of_groups(b, r.mean);
	r.rstd = of_groups(b, r.rstd);
	return norm_with_statistics(b, n, r);
}
OP(aten_native_group_norm){
	.schema = "aten.native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, "
		  "SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
	.autocast = AUTOCAST_FIRST,
	.build = build_native_group_norm,
	.adjoint = adjoint_native_group_norm,
	.sample = "f32[n=2, 4, 3], f32[4] in 0.5..2, f32[4], N=n, C=4, HxW=3, group=2, eps=0.001; "
		  "f32[2, 4, 3], none, none, N=2, C=4, HxW=3, group=4, eps=0.25",
};
