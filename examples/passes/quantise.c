#include <math.h>
#include <stdlib.h>

#include "passes.h"

/* The rows of f32 weights as integers and scales. */
static void quantise(const WeftTensor *t, int8_t *q, float *scale)
{
	const float *w = t->data;
	for (int64_t o = 0; o < t->shape[0]; o++, w += t->shape[1], q += t->shape[1]) {
		float most = 0;
		for (int64_t i = 0; i < t->shape[1]; i++)
			most = fmaxf(most, fabsf(w[i]));
		scale[o] = most > 0 ? most / 127 : 1;
		for (int64_t i = 0; i < t->shape[1]; i++)
			q[i] = (int8_t)rintf(w[i] / scale[o]);
	}
}

/* A call with two operands, behind `at`. */
static WeftNode binary(Weft *w, WeftNode at, const char *op, WeftNode x, WeftNode y)
{
	const WeftAttr a[] = {weft_attr_node(x), weft_attr_node(y)};
	return weft_node_insert_after(w, at, op, a, 2);
}

static bool replace(Weft *w, WeftNode n, const WeftTensor *weight, int8_t *q, float *scale)
{
	WeftTensor rows = *weight, scales = *weight;
	quantise(weight, q, scale);
	rows.data = q;
	rows.dtype = (WeftDType){WEFT_INT, 8, 1};
	scales.data = scale;
	scales.ndim = 1;
	WeftNode stored = weft_graph_constant(w, n.graph, NULL, &rows),
		 by = weft_graph_constant(w, n.graph, NULL, &scales);
	const WeftAttr as[] = {weft_attr_node(stored), weft_attr_text("f32")};
	WeftNode wide = weft_node_insert_before(w, n, "aten.to.dtype", as, 2);
	WeftNode y = binary(w, n, "aten.linear", weft_node_arg(w, n, "input"), wide);
	WeftNode bias = weft_node_arg(w, n, "bias");
	y = binary(w, y, "aten.mul.Tensor", y, by);
	if (bias.index)
		y = binary(w, y, "aten.add.Tensor", y, bias);
	return weft_node_replace(w, n, y) && weft_node_erase(w, n);
}

/* The constant weight of a linear layer of f32. */
static bool weight_of(Weft *w, WeftNode n, WeftTensor *out)
{
	if (!weft_node_is(w, n, "aten.linear"))
		return false;
	WeftNode weight = weft_node_arg(w, n, "weight");
	return weft_node_kind(w, weight) == WEFT_NODE_CONSTANT &&
	       weft_node_tensor(w, weight, out) && out->ndim == 2 &&
	       out->dtype.code == WEFT_FLOAT && out->dtype.bits == 32;
}

int quantise_linears(Weft *w, WeftGraph *g)
{
	int count = 0;
	for (WeftNode n = weft_node_last(w, g), prev; n.index; n = prev) { /* not the new layers */
		WeftTensor weight;
		prev = weft_node_prev(w, n);
		if (!weight_of(w, n, &weight))
			continue;
		int8_t *q = malloc((size_t)(weight.shape[0] * weight.shape[1]) + 1);
		float *scale = malloc((size_t)weight.shape[0] * sizeof *scale + 1);
		bool ok = q && scale && replace(w, n, &weight, q, scale);
		free(q);
		free(scale);
		if (!ok)
			return -1;
		count++;
	}
	weft_graph_sweep(w, g);
	return weft_graph_verify(w, g) ? count : -1;
}
