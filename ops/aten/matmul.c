/* ATen matrix products. */
#include "ops/aten/priv.h"

static Node build_linear(Build *b, Node n)
{
	Node x = arg(b, n, "input"), w = arg(b, n, "weight");
	return aten_linear(b, x, w, arg(b, n, "bias"));
}
OP(aten_linear){
	.schema = "aten.linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_linear,
	.sample = "f32[n=2, 3, 4], f32[5, 4], f32[5]; f32[4], f32[5, 4]",
};

static Node build_matmul(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return b_matmul(b, x, arg(b, n, "other"));
}

/* Returns the product of the operands after `self`, both of the given rank; wide: not rounded to
 * a storage type. */
static Node product_of(Build *b, Node n, bool wide, const char *left, const char *right,
		       uint32_t r0, uint32_t r1)
{
	Node x = arg(b, n, left), y = arg(b, n, right);
	if (!x.i || !y.i)
		return (Node){0};
	if (node_rank(b->g, x) != r0 || node_rank(b->g, y) != r1)
		return b_error(b, "operands of rank %u and %u, expected %u and %u",
			       node_rank(b->g, x), node_rank(b->g, y), r0, r1);
	return wide ? b_matmul_wide(b, x, y) : b_matmul(b, x, y);
}

static Node product(Build *b, Node n, const char *left, const char *right, uint32_t r0, uint32_t r1)
{
	return product_of(b, n, false, left, right, r0, r1);
}

static Node build_mm(Build *b, Node n)
{
	return product(b, n, "self", "mat2", 2, 2);
}
static Node build_bmm(Build *b, Node n)
{
	return product(b, n, "self", "mat2", 3, 3);
}
static Node build_mv(Build *b, Node n)
{
	return product(b, n, "self", "vec", 2, 1);
}
static Node build_dot(Build *b, Node n)
{
	return product(b, n, "self", "tensor", 1, 1);
}
static Node build_vdot(Build *b, Node n)
{
	Node y = arg(b, n, "other");
	if (!dtype_is_complex(aten_dtype(b, arg(b, n, "self"))))
		return product(b, n, "self", "other", 1, 1);
	return y.i && node_rank(b->g, y) == 1 ? b_matmul(b, aten_conj(b, arg(b, n, "self")), y)
					      : product(b, n, "self", "other", 1, 1);
}
OP(aten_matmul){
	.schema = "aten.matmul(Tensor self, Tensor other) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.aliases = "aten.linalg_matmul",
	.build = build_matmul,
	.sample = "f32[n=2, 3, 4], f32[n, 4, 2]; f32[4], f32[4]; f32[n=3, 4], f32[4]; "
		  "f32[4], f32[2, 4, 3]; f32[2, 1, 3, 4], f32[3, 4, 2]; "
		  "i64[2, 3] in -9..9, i64[3, 2] in -9..9",
	.overloads = (const Overload[]){
		{.schema = "aten.mm(Tensor self, Tensor mat2) -> Tensor",
		 .build = build_mm,
		 .sample = "f32[n=3, 4], f32[4, m=5]"},
		{.schema = "aten.bmm(Tensor self, Tensor mat2) -> Tensor",
		 .build = build_bmm,
		 .sample = "f32[n=2, 3, 4], f32[n, 4, m=5]"},
		{.schema = "aten.mv(Tensor self, Tensor vec) -> Tensor",
		 .build = build_mv,
		 .sample = "f32[n=3, 4], f32[4]"},
		{.schema = "aten.dot(Tensor self, Tensor tensor) -> Tensor",
		 .build = build_dot,
		 .sample = "f32[n=5], f32[n]"},
	},
};
OP(aten_vdot){
	.schema = "aten.vdot(Tensor self, Tensor other) -> Tensor",
	.autocast_gpu = AUTOCAST_WIDEST,
	.build = build_vdot,
	.sample = "f32[n=5], f32[n]",
};

static Node accumulate_as(Build *b, Node n, Node x, Node p)
{
	p = aten_scaled(b, p, n, "alpha");
	Shape s = aten_shape(b, p);
	if (aten_scalar_is(b, n, "beta", 0))
		return p;
	x = aten_scaled(b, x, n, "beta");
	return aten_add(b, aten_expand_shape(b, x, &s), p);
}

/* Returns beta * self + alpha * product, rounded once; with beta 0 self is ignored, NaN
 * included. */
static Node accumulate(Build *b, Node n, Node p)
{
	Node x = arg(b, n, "self");
	if (!x.i || !p.i)
		return (Node){0};
	DType d = node_dtype(b->g, x), wide = dtype_compute(d);
	if (dtype_is_inexact(d) && d != wide && node_dtype(b->g, p) == wide) {
		p = accumulate_as(b, n, b_convert(b, x, wide), p);
		return p.i ? b_convert(b, p, d) : p;
	}
	return accumulate_as(b, n, x, p);
}

static Node build_addmm(Build *b, Node n)
{
	return accumulate(b, n, product_of(b, n, true, "mat1", "mat2", 2, 2));
}
static Node build_baddbmm(Build *b, Node n)
{
	return accumulate(b, n, product_of(b, n, true, "batch1", "batch2", 3, 3));
}
static Node build_addmv(Build *b, Node n)
{
	return accumulate(b, n, product_of(b, n, true, "mat", "vec", 2, 1));
}

static Node build_addbmm(Build *b, Node n)
{
	Node x = arg(b, n, "batch1"), y = arg(b, n, "batch2");
	if (aten_rank(b, x) != 3 || aten_rank(b, y) != 3)
		return b_error(b, "addbmm expects batches of rank 3");
	const uint32_t sum[2][2] = {{0, 0}, {2, 1}};
	return accumulate(b, n, b_contract_wide(b, x, y, sum, 2));
}

static Node outer(Build *b, Node x, Node y)
{
	if (aten_rank(b, x) != 1 || aten_rank(b, y) != 1)
		return b_error(b, "outer product of ranks %u and %u", aten_rank(b, x),
			       aten_rank(b, y));
	return aten_mul(b, b_unsqueeze(b, x, 1), y);
}

static Node build_outer(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return outer(b, x, arg(b, n, "vec2"));
}
OP(aten_outer){
	.schema = "aten.outer(Tensor self, Tensor vec2) -> Tensor",
	.aliases = "aten.ger",
	.build = build_outer,
	.sample = "f32[n=3], f32[m=4]",
};

static Node build_addr(Build *b, Node n)
{
	Node x = arg(b, n, "vec1");
	return accumulate(b, n, outer(b, x, arg(b, n, "vec2")));
}
OP(aten_addmm){
	.schema = "aten.addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar "
		  "alpha=1) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_addmm,
	.sample = "f32[m=5], f32[n=3, 4], f32[4, m]; f32[m=5], f32[n=3, 4], f32[4, m], beta=0.5, "
		  "alpha=-1.5; f32[m=5], f32[n=3, 4], f32[4, m], beta=0; "
		  "c64[m=5], c64[n=3, 4], c64[4, m], beta=complex(0.5, 1), "
		  "alpha=complex(-1.5, 0.25)",
	.overloads = (const Overload[]){
		{.schema = "aten.baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar "
			   "beta=1, Scalar alpha=1) -> Tensor",
		 .build = build_baddbmm,
		 .sample = "f32[n=2, 3, 1], f32[n, 3, 4], f32[n, 4, 2]; "
			   "f32[n=2, 3, 1], f32[n, 3, 4], f32[n, 4, 2], beta=0.5, alpha=-1.5; "
			   "f32[n=2, 3, 1], f32[n, 3, 4], f32[n, 4, 2], beta=0"},
		{.schema = "aten.addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, "
			   "Scalar alpha=1) -> Tensor",
		 .build = build_addmv,
		 .sample = "f32[n=3], f32[n, 4], f32[4]; f32[n=3], f32[n, 4], f32[4], beta=0.5, "
			   "alpha=-1.5; f32[n=3], f32[n, 4], f32[4], beta=0; "
			   "i32[n=3], i32[n, 4], i32[4]; i64[3], "
			   "i64[3, 4], i64[4], beta=0.5, alpha=-1.5; "
			   "u8[3], u8[3, 4] in 0..99, u8[4], beta=2, alpha=-3; "
			   "i32[], i32[3, 4], i32[4], beta=0"},
		{.schema = "aten.addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar "
			   "beta=1, Scalar alpha=1) -> Tensor",
		 .build = build_addbmm,
		 .sample = "f32[3, 2], f32[n=2, 3, 4], f32[n, 4, 2]; "
			   "f32[3, 2], f32[n=2, 3, 4], f32[n, 4, 2], beta=0.5, "
			   "alpha=-1.5; f32[3, 2], f32[n=2, 3, 4], f32[n, 4, 2], beta=0; "
			   "c64[3, 2], c64[n=2, 3, 4], c64[n, 4, 2], beta=complex(0, -1), "
			   "alpha=complex(2, 0); "
			   "i32[3, 2], i32[n=2, 3, 4], i32[n, 4, 2]; "
			   "i64[3, 2], i64[2, 3, 4], i64[2, 4, 2], beta=0.5, alpha=-1.5; "
			   "u8[2], u8[2, 3, 4] in 0..99, u8[2, 4, 2], beta=2, alpha=-3; "
			   "i32[3, 2], i32[2, 3, 4], i32[2, 4, 2], beta=0"},
		{.schema = "aten.addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, "
			   "Scalar alpha=1) -> Tensor",
		 .build = build_addr,
		 .sample = "f32[n=3, 4], f32[n], f32[4]; f32[n=3, 4], f32[n], f32[4], beta=0.5, "
			   "alpha=-1.5; f32[n=3, 4], f32[n], f32[4], beta=0; "
			   "c64[n=3, 4], c64[n], c64[4], beta=complex(0.5, 1), "
			   "alpha=complex(0, 1)"},
	},
};

static Node build_inner(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "other");
	uint32_t rx = aten_rank(b, x), ry = aten_rank(b, y);
	if (rx == 0 || ry == 0)
		return aten_mul(b, x, y);
	const uint32_t sum[1][2] = {{rx - 1, ry - 1}};
	return b_contract(b, x, y, NULL, 0, sum, 1);
}
OP(aten_inner){
	.schema = "aten.inner(Tensor self, Tensor other) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_inner,
	.sample = "f32[n=3, 4], f32[m=2, 4]; f32[4], f32[4]; f32[3], f32[]",
};

static Node build_multi_dot(Build *b, Node n)
{
	const char *list = op_arg_index(node_op(b->g, n), "tensors") < 0 ? "matrices" : "tensors";
	uint32_t first, count = node_args(b->g, n, list, &first);
	Node y = count ? node_in(b->g, n, first) : b_error(b, "multi_dot of no tensors");
	for (uint32_t k = 1; k < count; k++)
		y = b_matmul(b, y, node_in(b->g, n, first + k));
	return y;
}
OP(aten_linalg_multi_dot){
	.schema = "aten.linalg_multi_dot(Tensor[] tensors) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_multi_dot,
	.sample = "[f32[n=2, 3], f32[3, 4], f32[4, m=2]]; [f32[3], f32[3, 4], f32[4]]",
	.overloads = (const Overload[]){
		{.schema = "aten.chain_matmul(Tensor[] matrices) -> Tensor",
		 .sample = "[f32[n=2, 3], f32[3, 4], f32[4, m=2]]; [f32[2, 3]]"},
	},
};
