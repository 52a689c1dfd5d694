/* ai.onnx.preview.FlexAttention: attention whose scores and probabilities two graphs of the node
 * may change. */
#include <math.h>

#include "frontend/onnx/priv.h"

/* Returns x as the graph of that attribute changes it, in x's dtype; x itself without the
 * attribute. */
static Node modified(const Item *it, const char *name, Node x)
{
	const OnnxAttr *a = onnx_item_attr(it, name);
	const OnnxGraph *g = a ? a->g : NULL;
	Build *b = &it->s->b;
	Scope s;
	if (!a || !x.i)
		return x;
	if (!g || g->in.n != 1 || g->out.n != 1 || !g->in.data[0].name || !g->out.data[0].name)
		return b_error(b, "%s: expected a graph of one input and one result", name);
	onnx_scope_init(&s, it->s->im, b->g, it->s, it->s->opset);
	if (!onnx_scope_bind(&s, g->in.data[0].name, onnx_value_of(it->s, x)) ||
	    !onnx_scope_graph(&s, g))
		return (Node){0};
	Value *v = onnx_scope_find(&s, g->out.data[0].name);
	if (!v)
		return b_error(b, "%s: no node gives its result", name);
	Node y = onnx_value_node(it->s, v);
	return y.i ? b_convert(b, y, node_dtype(b->g, x)) : y;
}

/* Repeats each head `times` times in turn. */
static Node repeated(Build *b, Node x, int64_t times)
{
	Type t = *node_type(b->g, x);
	Sym dim[] = {t.dim[0], t.dim[1], b_int(b, times), t.dim[2], t.dim[3]},
	    joined[] = {t.dim[0], sym_muli(b_syms(b), t.dim[1], times), t.dim[2], t.dim[3]};
	return times == 1 ? x
			  : b_reshape(b, b_broadcast(b, b_unsqueeze(b, x, 2), 5, dim), 4, joined);
}

static bool operands(const Item *it, Node *x)
{
	Build *b = &it->s->b;
	int64_t heads[3];
	for (uint32_t k = 0; k < 3; k++) {
		Value *v = onnx_item_in(it, k);
		if (!v)
			return onnx_item_error(it, "input %u is missing", k);
		x[k] = onnx_value_node(it->s, v);
		TRY(x[k].i);
		if (node_rank(b->g, x[k]) != 4 || !dtype_is_float(node_dtype(b->g, x[k])) ||
		    !sym_is_const(b_syms(b), node_dim(b->g, x[k], 1), &heads[k]))
			return onnx_item_error(it,
					       "input %u is %s, expected floats [batch, heads, "
					       "length, size] with a constant number of heads",
					       k, type_str(b->g->ir, node_type_id(b->g, x[k])));
	}
	if (heads[1] < 1 || heads[0] % heads[1] || heads[1] != heads[2])
		return onnx_item_error(it,
				       "%lld heads of Q, %lld of K and %lld of V: expected a "
				       "multiple of K's, which are V's",
				       (long long)heads[0], (long long)heads[1],
				       (long long)heads[2]);
	for (uint32_t k = 1; k < 3; k++)
		x[k] = repeated(b, x[k], heads[0] / heads[1]);
	return true;
}

bool onnx_import_flex_attention(const Item *it)
{
	Build *b = &it->s->b;
	Node x[3];
	const OnnxAttr *scale = onnx_item_attr(it, "scale");
	int64_t size, precision = onnx_item_int(it, "softmax_precision", 0);
	TRY(operands(it, x));
	DType d = node_dtype(b->g, x[0]),
	      wide = precision ? onnx_dtype(precision) : dtype_compute(d);
	if (!dtype_is_float(wide))
		return onnx_item_error(it, "softmax_precision is %s, expected a type of floats",
				       onnx_dtype_name(it->s->im->ctx, precision));
	if (!scale && !sym_is_const(b_syms(b), node_dim(b->g, x[0], 3), &size))
		return onnx_item_error(it, "without scale the size of heads must be a constant");
	Node score = b_bin_scalar(b, OP_mul, b_matmul_wide(b, x[0], b_transpose(b, x[1], 2, 3)),
				  scale ? (double)scale->f : 1 / sqrt((double)size));
	score = modified(it, "score_mod", b_convert(b, score, wide));
	TRY(score.i);
	Node p = b_node(b, op_find("onnx.Softmax.13"), &score, 1, NULL, 0);
	p = modified(it, "prob_mod", p);
	Node y = b_convert(b, b_matmul(b, p, b_convert(b, x[2], wide)), node_dtype(b->g, x[2]));
	return y.i && onnx_item_bind(it, 0, onnx_value_of(it->s, y));
}
