/* Normalisations with what stands before them. */
#include "ops/contrib/priv.h"

Node contrib_layer_norm(Build *b, Node x, Node gamma, Node beta, double epsilon, bool simple,
			Node *mean, Node *inverse)
{
	uint32_t rank = aten_rank(b, x), last = 1u << (rank - 1);
	if (!x.i || !rank)
		return b_error(b, "an operand without dimensions");
	Node wide = aten_wide(b, x), m = {0}, var;
	if (simple)
		var = aten_mean(b, b_bin(b, OP_mul, wide, wide), last, true);
	else
		var = aten_var(b, wide, last, 0, &m);
	Node inv = b_un(b, OP_rsqrt, b_bin_scalar(b, OP_add, var, epsilon));
	Node y = b_bin(b, OP_mul, simple ? wide : b_bin(b, OP_sub, wide, m), inv);
	y = b_bin(b, OP_mul, y, aten_wide(b, gamma));
	if (beta.i)
		y = b_bin(b, OP_add, y, aten_wide(b, beta));
	if (mean)
		*mean = m.i ? m : b_bin_scalar(b, OP_mul, inv, 0);
	if (inverse)
		*inverse = inv;
	return y.i ? b_convert(b, y, node_dtype(b->g, x)) : y;
}

/* ---- in ai.onnx, of ONNX Runtime ---- */

static Node build_simplified(Build *b, Node n)
{
	Node x = arg(b, n, "X"), inverse;
	int64_t axis = aten_int(b, n, "axis"), rank = aten_rank(b, x);
	axis += axis < 0 ? rank : 0;
	if (axis != rank - 1)
		return b_error(b, "axis %lld of a tensor of rank %lld, expected the last one",
			       (long long)axis, (long long)rank);
	Node y = contrib_layer_norm(b, x, arg(b, n, "scale"), (Node){0},
				    node_float(b->g, n, "epsilon"), true, NULL, &inverse);
	return y.i ? b_tuple(b, (Node[]){y, inverse}, 2) : y;
}

OP(onnx_SimplifiedLayerNormalization_1){
	.schema = "onnx.SimplifiedLayerNormalization.1(Tensor X, Tensor scale, *, int axis=-1, "
		  "float epsilon=1e-05, int stash_type=1) -> (Tensor, Tensor)",
	.autocast = AUTOCAST_FIRST,
	.build = build_simplified,
	.no_sample = CONTRIB_CASES,
};

/* ---- sums that are normalised ---- */

/* Returns the normalised sum, its mean and inverse deviation, the sum. */
static Node skip_norm(Build *b, Node n, int simple)
{
	Node sum = b_bin(b, OP_add, arg(b, n, "input"), arg(b, n, "skip")),
	     bias = arg(b, n, "bias"), mean, inverse;
	if (bias.i)
		sum = b_bin(b, OP_add, sum, bias);
	Node beta = simple ? (Node){0} : arg(b, n, "beta");
	Node y = contrib_layer_norm(b, sum, arg(b, n, "gamma"), beta,
				    node_float(b->g, n, "epsilon"), simple, &mean, &inverse);
	return y.i ? b_tuple(b, (Node[]){y, mean, inverse, sum}, 4) : y;
}

OP(com_microsoft_SkipLayerNormalization_1){
	.schema = "com_microsoft.SkipLayerNormalization.1(Tensor input, Tensor skip, Tensor gamma, "
		  "Tensor? beta, Tensor? bias, *, float epsilon=1e-12) -> (Tensor, Tensor, Tensor, "
		  "Tensor)",
	.autocast = AUTOCAST_FIRST,
	.build_as = {skip_norm, false},
	.no_sample = CONTRIB_CASES,
};
OP(com_microsoft_SkipSimplifiedLayerNormalization_1){
	.schema = "com_microsoft.SkipSimplifiedLayerNormalization.1(Tensor input, Tensor skip, "
		  "Tensor gamma, Tensor? bias, *, float epsilon=1e-12) -> (Tensor, Tensor, Tensor, "
		  "Tensor)",
	.autocast = AUTOCAST_FIRST,
	.build_as = {skip_norm, true},
	.no_sample = CONTRIB_CASES,
};

/* Adds words, places and segments; the mask becomes its number of ones in each row. */
static Node build_embed(Build *b, Node n)
{
	Node ids = arg(b, n, "input_ids"), segment = arg(b, n, "segment_ids"),
	     mask = arg(b, n, "mask"), at = arg(b, n, "position_ids");
	if (aten_rank(b, ids) != 2)
		return b_error(b, "input_ids of rank %u, expected 2", aten_rank(b, ids));
	at = at.i ? at : b_unsqueeze(b, b_iota(b, DT_i64, b_dim(b, ids, 1)), 0);
	Node sum = aten_take_dim(b, arg(b, n, "word_embedding"), 0, aten_index(b, ids), "check");
	sum = b_bin(
		b, OP_add, sum,
		aten_take_dim(b, arg(b, n, "position_embedding"), 0, aten_index(b, at), "check"));
	if (segment.i)
		sum = b_bin(b, OP_add, sum,
			    aten_take_dim(b, arg(b, n, "segment_embedding"), 0,
					  aten_index(b, segment), "check"));
	Node y = contrib_layer_norm(b, sum, arg(b, n, "gamma"), arg(b, n, "beta"),
				    node_float(b->g, n, "epsilon"), false, NULL, NULL);
	Node count =
		mask.i ? b_convert(b, aten_sum(b, b_convert(b, mask, DT_i32), 2, false), DT_i32)
		       : b_full_int(b, DT_i32, 0, 1, (Sym[]){b_dim(b, ids, 0)});
	return y.i ? b_tuple(b, (Node[]){y, count, sum}, 3) : y;
}

OP(com_microsoft_EmbedLayerNormalization_1){
	.schema = "com_microsoft.EmbedLayerNormalization.1(Tensor input_ids, Tensor? segment_ids, "
		  "Tensor word_embedding, Tensor position_embedding, "
		  "Tensor? segment_embedding, Tensor gamma, Tensor beta, Tensor? mask, "
		  "Tensor? position_ids, *, float epsilon=1e-12, "
		  "int mask_index_type=0) -> (Tensor, Tensor, Tensor)",
	.build = build_embed,
	.no_sample = CONTRIB_CASES,
};
