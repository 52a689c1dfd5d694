/* Losses. */
#include "ops/onnx/priv.h"

/* Returns -x[n, target, ...] times the weight of the target, where that is not ignored; then
 * reduced. x holds logarithms of probabilities [N, C, ...]. */
static Node negative_log(Build *b, Node n, Node x, Node target, Node weight)
{
	if (!x.i || !target.i || node_rank(b->g, x) < 2)
		return b_error(b, "an operand of rank %u, expected 2 or more", aten_rank(b, x));
	if (!aten_check_word(b, n, "reduction", "none mean sum"))
		return (Node){0};
	DType d = node_dtype(b->g, x);
	target = b_convert(b, target, DT_i64);
	bool ignores = aten_has(b, n, "ignore_index");
	Node ignored = {0}, at = target;
	if (ignores) {
		ignored = b_bin(b, OP_eq, target,
				b_full_int(b, DT_i64, aten_int(b, n, "ignore_index"), 0, NULL));
		at = b_select(b, ignored, b_full_int(b, DT_i64, 0, 0, NULL), target);
	}
	Node column = b_unsqueeze(b, at, 1);
	Node loss = b_select_dim(b, aten_gather_dim(b, aten_wide(b, x), 1, column), 1, b_int(b, 0));
	loss = b_un(b, OP_neg, loss);
	Node w = weight.i ? aten_take_dim(b, aten_wide(b, weight), 0, at, "check") : (Node){0};
	if (ignores) {
		Node zero = aten_like(b, loss, 0);
		w = b_select(b, ignored, zero, w.i ? w : aten_like(b, loss, 1));
		loss = b_select(b, ignored, zero, loss);
	}
	if (w.i)
		loss = b_bin(b, OP_mul, loss, w);
	uint32_t dims = (1u << aten_rank(b, loss)) - 1;
	if (aten_is(b, n, "reduction", "none"))
		return b_convert(b, loss, d);
	Node sum = aten_sum(b, loss, dims, false);
	if (aten_is(b, n, "reduction", "mean"))
		sum = b_bin(b, OP_div, sum,
			    w.i ? aten_sum(b, w, dims, false)
				: aten_size(b, aten_count(b, loss, dims), aten_dtype(b, sum)));
	return sum.i ? b_convert(b, sum, d) : sum;
}

static Node build_negative_log(Build *b, Node n)
{
	return negative_log(b, n, arg(b, n, "input"), arg(b, n, "target"), arg(b, n, "weight"));
}

OP(onnx_NegativeLogLikelihoodLoss_12){
	.schema = "onnx.NegativeLogLikelihoodLoss.12(Tensor input, Tensor target, Tensor? weight, "
		  "*, int? ignore_index=None, str reduction=\"mean\") -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_negative_log,
	.no_sample = NODE_TESTS,
};

static Node build_softmax_cross_entropy(Build *b, Node n)
{
	Node x = arg(b, n, "scores");
	if (!x.i || node_rank(b->g, x) < 2)
		return b_error(b, "an operand of rank %u, expected 2 or more", aten_rank(b, x));
	Node log = aten_log_softmax(b, x, 1);
	return b_tuple(
		b,
		(Node[]){negative_log(b, n, log, arg(b, n, "labels"), arg(b, n, "weights")), log},
		2);
}

OP(onnx_SoftmaxCrossEntropyLoss_12){
	.schema = "onnx.SoftmaxCrossEntropyLoss.12(Tensor scores, Tensor labels, Tensor? weights, "
		  "*, int? ignore_index=None, str reduction=\"mean\") -> (Tensor, Tensor)",
	.autocast = AUTOCAST_F32,
	.build = build_softmax_cross_entropy,
	.no_sample = NODE_TESTS,
};
