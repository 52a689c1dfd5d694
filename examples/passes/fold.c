#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes.h"

/* A constant of f32 that is an argument; data NULL: the argument is absent. Returns false if it is
 * something else. */
static bool constant(Weft *w, WeftNode n, const char *name, WeftTensor *out)
{
	WeftNode arg = weft_node_arg(w, n, name);
	memset(out, 0, sizeof *out);
	if (!arg.index)
		return true;
	return weft_node_kind(w, arg) == WEFT_NODE_CONSTANT && weft_node_tensor(w, arg, out) &&
	       out->dtype.code == WEFT_FLOAT && out->dtype.bits == 32;
}

static float at(const WeftTensor *t, int64_t k, float otherwise)
{
	return t->data ? ((const float *)t->data)[k] : otherwise;
}

/* What both layers hold. */
typedef struct {
	WeftTensor weight, bias;                 /* of the convolution */
	WeftTensor scale, shift, mean, variance; /* of the batch norm */
	double eps;
} Layers;

static bool take(Weft *w, WeftNode conv, WeftNode norm, Layers *l)
{
	double training;
	return constant(w, conv, "weight", &l->weight) && constant(w, conv, "bias", &l->bias) &&
	       constant(w, norm, "weight", &l->scale) && constant(w, norm, "bias", &l->shift) &&
	       constant(w, norm, "running_mean", &l->mean) &&
	       constant(w, norm, "running_var", &l->variance) &&
	       weft_node_number(w, norm, "eps", &l->eps) &&
	       weft_node_number(w, norm, "training", &training) && training == 0 &&
	       l->weight.data && l->mean.data && l->variance.data;
}

/* Weight and bias in memory of the caller. */
static void compute(const Layers *l, float *weight, float *bias)
{
	int64_t rows = l->weight.shape[0], row = 1;
	for (int32_t d = 1; d < l->weight.ndim; d++)
		row *= l->weight.shape[d];
	for (int64_t o = 0; o < rows; o++) {
		double scale = at(&l->scale, o, 1) / sqrt(at(&l->variance, o, 0) + l->eps);
		for (int64_t i = 0; i < row; i++)
			weight[o * row + i] = (float)(at(&l->weight, o * row + i, 0) * scale);
		bias[o] = (float)(((double)at(&l->bias, o, 0) - at(&l->mean, o, 0)) * scale +
				  at(&l->shift, o, 0));
	}
}

static bool put(Weft *w, WeftNode conv, const Layers *l, float *weight, float *bias)
{
	WeftTensor filter = l->weight, offset = l->mean;
	compute(l, weight, bias);
	filter.data = weight;
	offset.data = bias;
	WeftAttr a = weft_attr_named(
		"weight", weft_attr_node(weft_graph_constant(w, conv.graph, NULL, &filter)));
	WeftAttr b = weft_attr_named(
		"bias", weft_attr_node(weft_graph_constant(w, conv.graph, NULL, &offset)));
	return weft_node_set_attr(w, conv, &a) && weft_node_set_attr(w, conv, &b);
}

static bool fold(Weft *w, WeftNode conv, WeftNode norm, const Layers *l)
{
	size_t n = 1;
	for (int32_t d = 0; d < l->weight.ndim; d++)
		n *= (size_t)l->weight.shape[d];
	float *weight = malloc((n + 1) * sizeof *weight),
	      *bias = malloc(((size_t)l->weight.shape[0] + 1) * sizeof *bias);
	bool ok = weight && bias && put(w, conv, l, weight, bias) &&
		  weft_node_replace(w, norm, conv) && weft_node_erase(w, norm);
	free(weight);
	free(bias);
	return ok;
}

static bool is_convolution(Weft *w, WeftNode n)
{
	return weft_node_is(w, n, "aten.conv1d") || weft_node_is(w, n, "aten.conv2d") ||
	       weft_node_is(w, n, "aten.conv3d");
}

int fold_batch_norms(Weft *w, WeftGraph *g)
{
	int count = 0;
	for (WeftNode n = weft_node_first(w, g), next; n.index; n = next) {
		Layers l;
		next = weft_node_next(w, n);
		if (!weft_node_is(w, n, "aten.batch_norm"))
			continue;
		WeftNode conv = weft_node_arg(w, n, "input");
		if (!is_convolution(w, conv) || weft_node_nread(w, conv) != 1 ||
		    !take(w, conv, n, &l))
			continue;
		if (!fold(w, conv, n, &l))
			return -1;
		count++;
	}
	weft_graph_sweep(w, g);
	return weft_graph_verify(w, g) ? count : -1;
}
