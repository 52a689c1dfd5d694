/* Dropout. */
#include "ops/onnx/priv.h"
#include "ops/prim/random.h"

static double ratio_of(const Graph *g, Node n)
{
	const Attr *ratio = node_attr(g, n, "ratio");
	return ratio->kind == ATTR_none ? 0.5 : ratio->f;
}

static bool drops(const Graph *g, Node n)
{
	const Attr *training = node_attr(g, n, "training_mode");
	return training->kind == ATTR_bool && training->b && ratio_of(g, n) > 0;
}

/* Returns, without training and with ratio 0, the operand itself; the mask says what is kept. */
static Node build_dropout(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	Shape s = aten_shape(b, x);
	double ratio = ratio_of(b->g, n);
	Draw draw;
	/* all dropped would be 0 times infinity */
	if (!aten_check_within(b, "ratio", ratio, 0, 1) || (ratio == 1 && drops(b->g, n)))
		return ratio == 1 ? b_error(b, "ratio is 1 in training, expected a number below 1")
				  : (Node){0};
	if (!drops(b->g, n))
		return b_tuple(b, (Node[]){x, b_full(b, DT_bool, 1, s.rank, s.dim)}, 2);
	if (!draw_begin(b, n, &draw))
		return (Node){0};
	Node keep = draw_keep(b, &draw, x, ratio, 0);
	return b_tuple(b, (Node[]){dropout_of(b, x, keep, ratio), keep}, 2);
}

OP(onnx_Dropout_1){
	.schema = "onnx.Dropout.1(Tensor data, float? ratio, bool? training_mode, *, int? "
		  "seed=None, " RANDOM_ARGS ") -> (Tensor, Tensor)",
	.draws = drops,
	.build = build_dropout,
	.no_sample = NODE_TESTS,
};
