#include "passes/common/questions.h"

#include <math.h>

#include "ir/build/build.h"

bool is_splat(const Graph *g, Node n, double v)
{
	int64_t i;
	double number;
	Attr a;
	if (!node_splat(g, n, &a))
		return false;
	switch (a.kind) {
	case ATTR_bool:
		number = a.b;
		break;
	case ATTR_int:
		TRY(sym_is_const(graph_syms(g), a.s, &i));
		number = (double)i;
		break;
	case ATTR_float:
		number = a.f;
		break;
	default:
		return false;
	}
	return number == v && signbit(number) == signbit(v);
}

bool is_scalar(const Graph *g, Node n, ScOp op)
{
	DType in[4];
	const uint32_t nin = n.i ? node_nin(g, n) : 0;
	TRY(nin && nin <= 4 && op_lower(node_op(g, n))->role == LOWER_MAP);
	for (uint32_t k = 0; k < nin; k++)
		in[k] = dtype_compute(node_dtype(g, node_in(g, n, k)));
	return scalar_single(scalar_fn(node_op(g, n), in, nin)).op == op;
}

bool is_one(const Graph *g, Sym s)
{
	return sym_is(graph_syms(g), s, 1);
}

bool const_list(const Graph *g, Node n, const char *name, int64_t *out, uint32_t *len)
{
	const Sym *v = node_ints(g, n, name, len);
	for (uint32_t k = 0; k < *len && k < MAX_RANK; k++)
		TRY(sym_is_const(graph_syms(g), v[k], &out[k]));
	return true;
}

Node below_reshape(const Graph *g, Node x, uint32_t nsp)
{
	while (node_op(g, x) == OP_reshape) {
		Node y = node_in(g, x, 0);
		uint32_t rx = node_rank(g, x), ry = node_rank(g, y);
		if (ry <= nsp)
			return x;
		for (uint32_t k = 1; k <= nsp; k++)
			if (sym_eq(graph_syms(g), node_dim(g, x, rx - k), node_dim(g, y, ry - k)) !=
			    YES)
				return x;
		x = y;
	}
	return x;
}

bool same_shape(const Graph *g, Node x, Node y)
{
	TRY(node_rank(g, x) == node_rank(g, y));
	for (uint32_t k = 0; k < node_rank(g, x); k++)
		TRY(node_dim(g, x, k).i == node_dim(g, y, k).i);
	return true;
}
