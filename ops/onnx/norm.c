/* Normalisations. */
#include "ops/onnx/priv.h"

/* Sets *dims to the dimensions from the argument axis on. */
static bool normalised(Build *b, Node n, Node x, uint32_t *dims)
{
	uint32_t axis = onnx_axis(b, n, "axis", x), rank = aten_rank(b, x);
	*dims = ((1u << rank) - 1) & ~((1u << axis) - 1);
	return x.i != 0;
}

/* ---- over the last dimensions ---- */

/* Returns the mean and the inverse deviation, too. Statistics have the dtype of stash_type. */
static Node build_layer_norm(Build *b, Node n)
{
	Node x = arg(b, n, "X"), scale = arg(b, n, "Scale"), bias = arg(b, n, "B");
	uint32_t dims;
	if (!normalised(b, n, x, &dims))
		return (Node){0};
	DType d = node_dtype(b->g, x),
	      stash = node_int(b->g, n, "stash_type") == 1 && d != DT_f64 ? DT_f32 : d;
	Node wide = b_convert(b, x, dtype_compute(stash)), mean;
	Node var = aten_var(b, wide, dims, 0, &mean);
	Node inverse =
		b_un(b, OP_rsqrt, b_bin_scalar(b, OP_add, var, node_float(b->g, n, "epsilon")));
	Node y = b_bin(b, OP_mul, b_bin(b, OP_sub, wide, mean), inverse);
	y = b_bin(b, OP_mul, y, b_convert(b, scale, node_dtype(b->g, wide)));
	if (bias.i)
		y = b_bin(b, OP_add, y, b_convert(b, bias, node_dtype(b->g, wide)));
	y = b_convert(b, y, d);
	if (aten_int(b, n, "outputs") < 2)
		return b_tuple(b, &y, 1);
	return b_tuple(b, (Node[]){y, b_convert(b, mean, stash), b_convert(b, inverse, stash)}, 3);
}

OP(onnx_LayerNormalization_17){
	.schema = "onnx.LayerNormalization.17(Tensor X, Tensor Scale, Tensor? B, *, int axis=-1, "
		  "float epsilon=1e-05, int stash_type=1, int outputs) -> Tensor[]",
	.autocast = AUTOCAST_FIRST,
	.build = build_layer_norm,
	.no_sample = NODE_TESTS,
};

static Node build_rms_norm(Build *b, Node n)
{
	Node x = arg(b, n, "X"), scale = arg(b, n, "scale");
	uint32_t dims;
	if (!normalised(b, n, x, &dims))
		return (Node){0};
	DType d = node_dtype(b->g, x);
	Node wide = aten_wide(b, x);
	Node square = aten_mean(b, b_bin(b, OP_mul, wide, wide), dims, true);
	Node inverse =
		b_un(b, OP_rsqrt, b_bin_scalar(b, OP_add, square, node_float(b->g, n, "epsilon")));
	Node y = b_convert(b, b_bin(b, OP_mul, wide, inverse), d);
	return b_convert(b, b_bin(b, OP_mul, y, scale), d);
}

OP(onnx_RMSNormalization_23){
	.schema = "onnx.RMSNormalization.23(Tensor X, Tensor scale, *, int axis=-1, float "
		  "epsilon=1e-05, int stash_type=1) -> Tensor",
	.autocast = AUTOCAST_FIRST,
	.build = build_rms_norm,
	.no_sample = NODE_TESTS,
};

/* ---- over channels ---- */

static Node build_instance_norm(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	uint32_t dims = aten_dims_from(b, x, 2);
	if (!x.i || !dims)
		return b_error(b, "an operand of rank %u, expected 3 or more", aten_rank(b, x));
	DType d = node_dtype(b->g, x);
	Node wide = aten_wide(b, x), mean, var = aten_var(b, wide, dims, 0, &mean);
	Node y = b_bin(
		b, OP_mul, b_bin(b, OP_sub, wide, mean),
		b_un(b, OP_rsqrt, b_bin_scalar(b, OP_add, var, node_float(b->g, n, "epsilon"))));
	y = b_bin(b, OP_mul, y, aten_per_dim(b, aten_wide(b, arg(b, n, "scale")), wide, 1));
	return b_convert(
		b, b_bin(b, OP_add, y, aten_per_dim(b, aten_wide(b, arg(b, n, "B")), wide, 1)), d);
}

OP(onnx_InstanceNormalization_1){
	.schema = "onnx.InstanceNormalization.1(Tensor input, Tensor scale, Tensor B, *, float "
		  "epsilon=1e-05) -> Tensor",
	.autocast = AUTOCAST_FIRST,
	.build = build_instance_norm,
	.no_sample = NODE_TESTS,
};

/* Normalises within groups. Since opset 21 scale and bias are of channels; of groups before. */
static Node group_norm(Build *b, Node n, int of_groups)
{
	Node x = arg(b, n, "X"), scale = arg(b, n, "scale"), bias = arg(b, n, "bias");
	int64_t groups = aten_int(b, n, "num_groups");
	if (!x.i || node_rank(b->g, x) < 2 || groups < 1)
		return b_error(b, "an operand of rank %u in %lld groups", aten_rank(b, x),
			       (long long)groups);
	Shape s = aten_shape(b, x);
	DType d = node_dtype(b->g, x);
	Node g = aten_wide(b, aten_grouped(b, x, groups)), mean;
	if (!g.i)
		return g;
	Node var = aten_var(b, g, aten_within_groups(b, g), 0, &mean);
	g = b_bin(b, OP_mul, b_bin(b, OP_sub, g, mean),
		  b_un(b, OP_rsqrt, b_bin_scalar(b, OP_add, var, node_float(b->g, n, "epsilon"))));
	if (of_groups) {
		g = b_bin(b, OP_mul, g, aten_per_dim(b, aten_wide(b, scale), g, 1));
		g = b_bin(b, OP_add, g, aten_per_dim(b, aten_wide(b, bias), g, 1));
		return b_convert(b, aten_reshape(b, g, &s), d);
	}
	Node y = aten_reshape(b, g, &s);
	y = b_bin(b, OP_mul, y, aten_per_dim(b, aten_wide(b, scale), y, 1));
	return b_convert(b, b_bin(b, OP_add, y, aten_per_dim(b, aten_wide(b, bias), y, 1)), d);
}

OP(onnx_GroupNormalization_18){
	.schema = "onnx.GroupNormalization.18(Tensor X, Tensor scale, Tensor bias, *, float "
		  "epsilon=1e-05, int num_groups, int stash_type=1) -> Tensor",
	.autocast = AUTOCAST_FIRST,
	.build_as = {group_norm, true},
	.no_sample = NODE_TESTS,
};
OP(onnx_GroupNormalization_21){
	.schema = "onnx.GroupNormalization.21(Tensor X, Tensor scale, Tensor bias, *, float "
		  "epsilon=1e-05, int num_groups, int stash_type=1) -> Tensor",
	.autocast = AUTOCAST_FIRST,
	.build_as = {group_norm, false},
	.no_sample = NODE_TESTS,
};

/* Normalises, in training, by the statistics of the batch; the running ones are results then. */
static Node batch_norm(Build *b, Node n, bool training)
{
	Node x = arg(b, n, "X"), mean = arg(b, n, "input_mean"), var = arg(b, n, "input_var");
	if (!x.i || node_rank(b->g, x) < 2)
		return b_error(b, "an operand of rank %u, expected 2 or more", aten_rank(b, x));
	DType d = node_dtype(b->g, x);
	Node wide = aten_wide(b, x), m = aten_wide(b, mean), v = aten_wide(b, var),
	     running[2] = {mean, var};
	double momentum = node_float(b->g, n, "momentum");
	if (training) {
		uint32_t dims = aten_dims_from(b, x, 2) | 1;
		Node of_batch;
		v = aten_squeeze_dims(b, aten_var(b, wide, dims, 0, &of_batch), dims);
		Node old[2] = {m, aten_wide(b, var)};
		m = aten_squeeze_dims(b, of_batch, dims);
		for (int k = 0; k < 2; k++)
			running[k] = b_convert(
				b,
				b_bin(b, OP_add, b_bin_scalar(b, OP_mul, old[k], momentum),
				      b_bin_scalar(b, OP_mul, k ? v : m, 1 - momentum)),
				aten_dtype(b, k ? var : mean));
	}
	Node inverse =
		b_un(b, OP_rsqrt, b_bin_scalar(b, OP_add, v, node_float(b->g, n, "epsilon")));
	Node scale = b_bin(b, OP_mul, inverse, aten_wide(b, arg(b, n, "scale")));
	Node y = b_bin(b, OP_mul, b_bin(b, OP_sub, wide, aten_per_dim(b, m, wide, 1)),
		       aten_per_dim(b, scale, wide, 1));
	y = b_convert(
		b, b_bin(b, OP_add, y, aten_per_dim(b, aten_wide(b, arg(b, n, "B")), wide, 1)), d);
	return training ? b_tuple(b, (Node[]){y, running[0], running[1]}, 3) : b_tuple(b, &y, 1);
}

static Node build_batch_norm(Build *b, Node n)
{
	return batch_norm(b, n, node_bool(b->g, n, "training_mode"));
}

OP(onnx_BatchNormalization_1){
	.schema = "onnx.BatchNormalization.1(Tensor X, Tensor scale, Tensor B, Tensor input_mean, "
		  "Tensor input_var, *, float epsilon=1e-05, float momentum=0.9, int spatial=1, "
		  "bool training_mode=False) -> Tensor[]",
	.autocast = AUTOCAST_FIRST,
	.build = build_batch_norm,
	.no_sample = NODE_TESTS,
};

/* ---- others ---- */

static Node build_lrn(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	int64_t size = aten_int(b, n, "size");
	if (!x.i || node_rank(b->g, x) < 2 || size < 1)
		return b_error(b, "an operand of rank %u and size %lld", aten_rank(b, x),
			       (long long)size);
	Node wide = aten_wide(b, x);
	Node w = b_window(b, b_bin(b, OP_mul, wide, wide), 1, size, 1, 1, (size - 1) / 2,
			  b_dim(b, x, 1));
	uint32_t rank = node_rank(b->g, x);
	Node sum = aten_sum(b, w, 1u << rank, false);
	sum = b_bin_scalar(b, OP_mul, sum, node_float(b->g, n, "alpha") / (double)size);
	sum = b_bin_scalar(b, OP_pow, b_bin_scalar(b, OP_add, sum, node_float(b->g, n, "bias")),
			   node_float(b->g, n, "beta"));
	return b_convert(b, b_bin(b, OP_div, wide, sum), node_dtype(b->g, x));
}

OP(onnx_LRN_1){
	.schema = "onnx.LRN.1(Tensor X, *, float alpha=0.0001, float beta=0.75, float bias=1.0, "
		  "int size) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_lrn,
	.no_sample = NODE_TESTS,
};

static Node build_lp_norm(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	uint32_t axis = onnx_axis(b, n, "axis", x);
	if (!x.i)
		return x;
	Node wide = aten_wide(b, x),
	     norm = aten_vector_norm(b, wide, (double)aten_int(b, n, "p"), 1u << axis, true);
	Node zero = b_bin_scalar(b, OP_eq, norm, 0);
	return b_convert(b, b_bin(b, OP_div, wide, b_select(b, zero, aten_like(b, norm, 1), norm)),
			 node_dtype(b->g, x));
}

OP(onnx_LpNormalization_1){
	.schema = "onnx.LpNormalization.1(Tensor input, *, int axis=-1, int p=2) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_lp_norm,
	.no_sample = NODE_TESTS,
};

/* Normalises, by default, over all but the channels. */
static Node build_mean_variance_norm(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	uint32_t axes[MAX_RANK] = {0, 2, 3}, count = 3, dims = 0;
	if (aten_has(b, n, "axes") && !onnx_axes(b, n, "axes", aten_rank(b, x), axes, &count))
		return (Node){0};
	for (uint32_t k = 0; k < count; k++)
		dims |= axes[k] < aten_rank(b, x) ? 1u << axes[k] : 0;
	if (!x.i)
		return x;
	Node wide = aten_wide(b, x), mean, var = aten_var(b, wide, dims, 0, &mean);
	Node y = b_bin(b, OP_div, b_bin(b, OP_sub, wide, mean),
		       b_bin_scalar(b, OP_add, b_un(b, OP_sqrt, var), 1e-9));
	return b_convert(b, y, node_dtype(b->g, x));
}

OP(onnx_MeanVarianceNormalization_9){
	.schema = "onnx.MeanVarianceNormalization.9(Tensor X, *, int[]? axes=None) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_mean_variance_norm,
	.no_sample = NODE_TESTS,
};
