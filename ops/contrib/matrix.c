/* Products of matrices and convolutions with what follows them. */
#include "ops/contrib/priv.h"

/* Returns the factor, transposed as the node says: `batch` moves the first dimension behind the
 * batch. */
static Node factor(Build *b, Node x, bool transposed, bool batch)
{
	uint32_t rank = aten_rank(b, x);
	if (!x.i || rank < 2)
		return x;
	if (batch && rank > 2)
		x = aten_move_dim(b, x, 0, rank - 2);
	return transposed ? b_transpose(b, x, -1, -2) : x;
}

static Node fused_matmul(Build *b, Node n, bool batch_a, bool batch_b)
{
	Node x = factor(b, arg(b, n, "A"), node_bool(b->g, n, "transA"), batch_a);
	Node y = factor(b, arg(b, n, "B"), node_bool(b->g, n, "transB"), batch_b);
	double alpha = node_float(b->g, n, "alpha");
	DType d = aten_dtype(b, x);
	Node r = b_matmul_wide(b, x, y);
	if (alpha != 1)
		r = b_bin_scalar(b, OP_mul, r, alpha);
	return r.i ? b_convert(b, r, d) : r;
}

static Node build_fused_matmul(Build *b, Node n)
{
	return fused_matmul(b, n, node_bool(b->g, n, "transBatchA"),
			    node_bool(b->g, n, "transBatchB"));
}

static Node build_transpose_matmul(Build *b, Node n)
{
	return fused_matmul(b, n, false, false);
}

OP(com_microsoft_FusedMatMul_1){
	.schema = "com_microsoft.FusedMatMul.1(Tensor A, Tensor B, *, float alpha=1.0, bool "
		  "transA=False, bool transB=False, bool transBatchA=False, "
		  "bool transBatchB=False) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_fused_matmul,
	.no_sample = CONTRIB_CASES,
};
OP(com_microsoft_TransposeMatMul_1){
	.schema = "com_microsoft.TransposeMatMul.1(Tensor A, Tensor B, *, float alpha=1.0, bool "
		  "transA=False, bool transB=False) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_transpose_matmul,
	.no_sample = CONTRIB_CASES,
};

static Node build_fused_gemm(Build *b, Node n)
{
	Node in[] = {arg(b, n, "A"), arg(b, n, "B"), arg(b, n, "C")};
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_none(),
		       *node_attr(b->g, n, "alpha"),
		       *node_attr(b->g, n, "beta"),
		       *node_attr(b->g, n, "transA"),
		       *node_attr(b->g, n, "transB")};
	Node y = onnx_call(b, "onnx.Gemm.1", in, 3, attr, 7);
	return contrib_activation(b, n, "activation", y, node_float(b->g, n, "activation_alpha"),
				  node_float(b->g, n, "activation_beta"));
}

OP(com_microsoft_FusedGemm_1){
	.schema = "com_microsoft.FusedGemm.1(Tensor A, Tensor B, Tensor? C, *, float alpha=1.0, "
		  "float beta=1.0, int transA=0, int transB=0, str? activation=None, "
		  "float activation_alpha=0.0, float activation_beta=0.0, "
		  "float activation_gamma=0.0) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_fused_gemm,
	.no_sample = CONTRIB_CASES,
};

/* Reads the numbers of an activation: alpha and beta, or the bounds. */
static Node build_fused_conv(Build *b, Node n)
{
	Node y = onnx_conv(b, n, arg(b, n, "X"), arg(b, n, "W"), arg(b, n, "B")),
	     z = arg(b, n, "Z");
	const Attr *params = node_attr(b->g, n, "activation_params");
	double v[2] = {0, 0};
	for (uint32_t k = 0; params->kind == ATTR_floats && k < params->n && k < 2; k++)
		v[k] = params->floats[k];
	if (z.i)
		y = b_bin(b, OP_add, y, z);
	return contrib_activation(b, n, "activation", y, v[0], v[1]);
}

OP(com_microsoft_FusedConv_1){
	.schema = "com_microsoft.FusedConv.1(Tensor X, Tensor W, Tensor? B, Tensor? Z, *, str? "
		  "activation=None, float[]? activation_params=None, "
		  "str auto_pad=\"NOTSET\", int[]? dilations=None, int group=1, "
		  "int[]? kernel_shape=None, int[]? pads=None, int[]? strides=None) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_fused_conv,
	.no_sample = CONTRIB_CASES,
};

/* Builds the distance of each row of A from each row of B, or its square. */
static Node build_cdist(Build *b, Node n)
{
	Node x = arg(b, n, "A"), y = arg(b, n, "B");
	if (aten_rank(b, x) != 2 || aten_rank(b, y) != 2)
		return b_error(b, "operands of rank %u and %u, expected matrices", aten_rank(b, x),
			       aten_rank(b, y));
	if (!aten_check_word(b, n, "metric", "sqeuclidean euclidean"))
		return (Node){0};
	Node d = b_bin(b, OP_sub, b_unsqueeze(b, x, 1), b_unsqueeze(b, y, 0));
	d = aten_sum(b, b_bin(b, OP_mul, d, d), 4, false);
	return aten_is(b, n, "metric", "euclidean") ? b_un(b, OP_sqrt, d) : d;
}

OP(com_microsoft_CDist_1){
	.schema = "com_microsoft.CDist.1(Tensor A, Tensor B, *, str metric=\"sqeuclidean\") -> "
		  "Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_cdist,
	.no_sample = CONTRIB_CASES,
};

OP(com_microsoft_Inverse_1){
	.schema = "com_microsoft.Inverse.1(Tensor X) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expand = "linalg_inv(X)",
	.no_sample = CONTRIB_CASES,
};

OP(com_microsoft_MatMulInteger16_1){
	.schema = "com_microsoft.MatMulInteger16.1(Tensor A, Tensor B) -> Tensor",
	.expand = "matmul(convert(A, dtype=i32), convert(B, dtype=i32))",
	.no_sample = CONTRIB_CASES,
};
