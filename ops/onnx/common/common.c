#include "ops/onnx/common/common.h"

#include <math.h>

uint32_t onnx_axis(Build *b, Node n, const char *name, Node x)
{
	int64_t axis = aten_int(b, n, name);
	uint32_t rank = aten_rank(b, x);
	if (!rank || axis < -(int64_t)rank || axis >= (int64_t)rank) {
		b_error(b, "%s is %lld, of a tensor of rank %u", name, (long long)axis, rank);
		return 0;
	}
	return (uint32_t)(axis < 0 ? axis + rank : axis);
}

Node *onnx_list(const Build *b, Node n, const char *name, uint32_t *count)
{
	*count = aten_list(b, n, name, NULL, 0);
	Node *x = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, *count);
	aten_list(b, n, name, x, *count);
	return x;
}

Node onnx_call(Build *b, const char *name, const Node *in, uint32_t nin, const Attr *attr,
	       uint32_t nattr)
{
	Op op = op_find(name);
	if (!op)
		ctx_bug(b->g->ir->ctx, "no operator %s", name);
	return b_node(b, op, in, nin, attr, nattr);
}

Node onnx_clamp(Build *b, Node x, double low, double high)
{
	Attr attr[] = {attr_none(), isinf(low) ? attr_none() : attr_float(low),
		       isinf(high) ? attr_none() : attr_float(high)};
	return onnx_call(b, "aten.clamp", &x, 1, attr, 3);
}

bool onnx_axes(Build *b, Node n, const char *name, uint32_t rank, uint32_t *axes, uint32_t *count)
{
	uint32_t seen = 0;
	const Sym *v = aten_has(b, n, name) ? node_ints(b->g, n, name, count) : NULL;
	if (!aten_has(b, n, name)) {
		for (*count = 0; *count < rank; (*count)++)
			axes[*count] = *count;
		return true;
	}
	for (uint32_t k = 0; k < *count; k++) {
		int64_t axis;
		TRY(aten_const(b, v[k], &axis));
		axis += axis < 0 ? rank : 0;
		bool ok = axis >= 0 && axis < (int64_t)rank && !(seen & 1u << axis);
		if (!ok)
			b_error(b,
				"%s: %lld is no dimension of a tensor of rank %u, or stands twice",
				name, (long long)axis, rank);
		TRY(ok);
		seen |= 1u << axis;
		axes[k] = (uint32_t)axis;
	}
	return true;
}
