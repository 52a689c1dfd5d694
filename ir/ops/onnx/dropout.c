/* Dropout. */
#include "ir/ops/onnx/priv.h"

/* Without training, and with ratio 0, the operand itself; the mask says what is kept. */
static Node dropout(Build *b, Node n, double ratio, bool training)
{
	Node x = arg(b, n, "data");
	Shape s = aten_shape(b, x);
	if (!aten_check_within(b, "ratio", ratio, 0, 1))
		return (Node){0};
	if (training && ratio > 0)
		return b_error(b, "training with a ratio above 0 draws random numbers: that is not supported");
	return b_tuple(b, (Node[]){x, b_full(b, DT_bool, 1, s.rank, s.dim)}, 2);
}

static Node build_dropout(Build *b, Node n)
{
	bool training = aten_has(b, n, "training_mode") && node_bool(b->g, n, "training_mode");
	return dropout(b, n, aten_has(b, n, "ratio") ? node_float(b->g, n, "ratio") : 0.5, training);
}

OP(onnx_Dropout_1){
	.schema = "onnx.Dropout.1(Tensor data, float? ratio, bool? training_mode, *, int? seed=None) -> (Tensor, Tensor)",
	.build = build_dropout,
	.no_sample = NODE_TESTS,
};
