/* Products of matrices. */
#include "ops/onnx/priv.h"

#include <string.h>

OP(onnx_MatMul_1){
	.schema = "onnx.MatMul.1(Tensor A, Tensor B) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.expand = "matmul(A, B)",
	.no_sample = NODE_TESTS,
};

/* Builds alpha * A' * B' + beta * C, rounded once. Integers are computed as they are. */
static Node build_gemm(Build *b, Node n)
{
	Node x = arg(b, n, "A"), y = arg(b, n, "B"), c = arg(b, n, "C");
	double alpha = node_float(b->g, n, "alpha"), beta = node_float(b->g, n, "beta");
	DType d = aten_dtype(b, x);
	if (aten_rank(b, x) != 2 || aten_rank(b, y) != 2)
		return b_error(b, "operands of rank %u and %u, expected matrices", aten_rank(b, x),
			       aten_rank(b, y));
	x = node_bool(b->g, n, "transA") ? b_transpose(b, x, 0, 1) : x;
	y = node_bool(b->g, n, "transB") ? b_transpose(b, y, 0, 1) : y;
	Node r = b_matmul_wide(b, x, y);
	if (alpha != 1)
		r = b_bin_scalar(b, OP_mul, r, alpha);
	if (c.i && beta != 0)
		r = b_bin(b, OP_add, r,
			  beta == 1 ? aten_wide(b, c)
				    : b_bin_scalar(b, OP_mul, aten_wide(b, c), beta));
	return r.i ? b_convert(b, r, d) : r;
}

OP(onnx_Gemm_1){
	.schema = "onnx.Gemm.1(Tensor A, Tensor B, Tensor? C, *, float alpha=1.0, float beta=1.0, "
		  "int transA=0, int transB=0, bool broadcast=False) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_gemm,
	.no_sample = NODE_TESTS,
};

static Node build_einsum(Build *b, Node n)
{
	uint32_t count;
	Node *x = onnx_list(b, n, "Inputs", &count);
	return onnx_call(b, "aten.einsum", x, count,
			 (Attr[]){*node_attr(b->g, n, "equation"), attr_int(b->g->ir, count)}, 2);
}

OP(onnx_Einsum_12){
	.schema = "onnx.Einsum.12(Tensor[] Inputs, *, str equation) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_einsum,
	.no_sample = NODE_TESTS,
};

OP(onnx_Det_11){
	.schema = "onnx.Det.11(Tensor X) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expand = "linalg_det(X)",
	.no_sample = NODE_TESTS,
};
