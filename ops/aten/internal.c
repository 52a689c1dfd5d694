/* Operators that ATen's own code calls, or that PyTorch has under a second name, and that are short
 * formulas of others. */
#include "ops/aten/priv.h"

#include <string.h>

/* ---- conversions ---- */

OP(aten__cast_Float){
	.schema = "aten._cast_Float(Tensor self, bool non_blocking=False) -> Tensor",
	.expand = "to.dtype(self, f32)",
	.sample = "i32[n=3, 4] in -9..9",
	.overloads = (const Overload[]){
		{.schema = "aten._cast_Double(Tensor self, bool non_blocking=False) -> Tensor",
		 .expand = "to.dtype(self, f64)"},
		{.schema = "aten._cast_Half(Tensor self, bool non_blocking=False) -> Tensor",
		 .expand = "to.dtype(self, f16)"},
		{.schema = "aten._cast_Byte(Tensor self, bool non_blocking=False) -> Tensor",
		 .expand = "to.dtype(self, u8)"},
		{.schema = "aten._cast_Char(Tensor self, bool non_blocking=False) -> Tensor",
		 .expand = "to.dtype(self, i8)"},
		{.schema = "aten._cast_Short(Tensor self, bool non_blocking=False) -> Tensor",
		 .expand = "to.dtype(self, i16)"},
		{.schema = "aten._cast_Int(Tensor self, bool non_blocking=False) -> Tensor",
		 .expand = "to.dtype(self, i32)"},
		{.schema = "aten._cast_Long(Tensor self, bool non_blocking=False) -> Tensor",
		 .expand = "to.dtype(self, i64)"},
	},
};

/* Converts f16 and bf16 to f32, where the flag of the processor says so. */
static Node build_full_precision(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	DType d = aten_dtype(b, x);
	return node_bool(b->g, n, "cpu_enabled") && (d == DT_f16 || d == DT_bf16)
		       ? b_convert(b, x, DT_f32)
		       : x;
}

static Node build_reduced_precision(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	bool on = node_bool(b->g, n, "cpu_enabled") && aten_dtype(b, x) == DT_f32;
	return on ? b_convert(b, x, aten_dtype_or(b, n, "cpu_dtype", DT_bf16)) : x;
}
OP(aten__autocast_to_full_precision){
	.schema = "aten._autocast_to_full_precision(Tensor(a) self, bool cuda_enabled, bool "
		  "cpu_enabled) -> Tensor(a)",
	.view = VIEW_SAME,
	.view_if = VIEW_IF_UNCHANGED,
	.build = build_full_precision,
	.no_sample = "its flags are of machines: tests/data/ops/named.pt2 has it",
	.overloads = (const Overload[]){
		{.schema = "aten._autocast_to_reduced_precision(Tensor(a) self, bool cuda_enabled, "
			   "bool cpu_enabled, ScalarType cuda_dtype, "
			   "ScalarType cpu_dtype) -> Tensor(a)",
		 .build = build_reduced_precision,
		 .no_sample = "its flags are of machines"},
	},
};

OP(aten__saturate_weight_to_fp16){
	.schema = "aten._saturate_weight_to_fp16(Tensor weight) -> Tensor",
	.expand = "clamp(weight, -65504, 65504)",
	.sample = "f32[n=3, 4] in -99999..99999",
};

/* ---- second names ---- */

static Node build_negative(Build *b, Node n)
{
	return b_un(b, OP_neg, arg(b, n, "self"));
}
OP(aten__neg_view){
	.schema = "aten._neg_view(Tensor(a) self) -> Tensor(a)",
	.view = VIEW_BITS,
	.view_undo = "aten._neg_view",
	.build = build_negative,
	.no_sample = "a view that negates is made of complex conjugates inside of PyTorch only",
	.overloads = (const Overload[]){
		{.schema = "aten._neg_view_copy(Tensor self) -> Tensor"},
	},
};

static Node build_zero(Build *b, Node n)
{
	return b_zeros_like(b, arg(b, n, "self"));
}
OP(aten_zero){
	.schema = "aten.zero(Tensor self) -> Tensor",
	.build = build_zero,
	.sample = "f32[n=3, 4]",
};

static Node build_dim_arange(Build *b, Node n)
{
	Node x = arg(b, n, "like");
	return b_iota(b, DT_i64, b_dim(b, x, (int)aten_int(b, n, "dim")));
}
OP(aten__dim_arange){
	.schema = "aten._dim_arange(Tensor like, int dim) -> Tensor",
	.build = build_dim_arange,
	.sample = "f32[n=3, 4], dim=0; f32[3, 4], dim=-1",
};

static Node build_shape_as_tensor(Build *b, Node n)
{
	Shape s = aten_shape(b, arg(b, n, "self"));
	Node x[MAX_RANK];
	Sym none = b_int(b, 0);
	for (uint32_t k = 0; k < s.rank; k++)
		x[k] = aten_size(b, s.dim[k], DT_i64);
	return s.rank ? aten_stack(b, x, s.rank, 0) : b_full_int(b, DT_i64, 0, 1, &none);
}
OP(aten__shape_as_tensor){
	.schema = "aten._shape_as_tensor(Tensor self) -> Tensor",
	.build = build_shape_as_tensor,
	.sample = "f32[n=3, 4]; f32[]",
};

/* ---- assertions that return a token ---- */

static Node build_assert_token(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Node holds = x.i ? b_reshape(b, aten_truth(b, x), 0, NULL) : x;
	if (!holds.i)
		return holds;
	b_node(b, OP_assert, &holds, 1,
	       (Attr[]){attr_none(), attr_str(b->g->ir, node_str(b->g, n, "assert_msg"))}, 2);
	return arg(b, n, "dep_token");
}
OP(aten__functional_assert_async_msg){
	.schema = "aten._functional_assert_async.msg(Tensor self, str assert_msg, Tensor "
		  "dep_token) -> Tensor",
	.effect = true,
	.build = build_assert_token,
	.sample = "bool[] of 1, assert_msg=\"holds\", f32[]",
};

/* ---- arithmetic ---- */

OP(aten__add_relu_Tensor){
	.schema = "aten._add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
	.expand = "relu(add.Tensor(self, other, alpha=alpha))",
	.sample = "f32[n=3, 4], f32[4]; f32[3], f32[3], alpha=2",
	.overloads = (const Overload[]){
		{.schema = "aten._add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> "
			   "Tensor",
		 .expand = "relu(add.Scalar(self, other, alpha))",
		 .sample = "f32[n=3, 4], other=0.5, alpha=2"},
	},
};

static Node build_addmm_activation(Build *b, Node n)
{
	Node in[] = {arg(b, n, "self"), arg(b, n, "mat1"), arg(b, n, "mat2")};
	Attr attr[] = {attr_none(), attr_none(), attr_none(), *node_attr(b->g, n, "beta"),
		       *node_attr(b->g, n, "alpha")};
	Node y = b_node(b, OP_aten_addmm, in, 3, attr, 5);
	if (!node_bool(b->g, n, "use_gelu"))
		return y.i ? b_node(b, OP_aten_relu, &y, 1, NULL, 0) : y;
	return y.i ? b_node(b, OP_aten_gelu, &y, 1,
			    (Attr[]){attr_none(), attr_str(b->g->ir, "none")}, 2)
		   : y;
}
OP(aten__addmm_activation){
	.schema = "aten._addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, "
		  "Scalar alpha=1, bool use_gelu=False) -> Tensor",
	.build = build_addmm_activation,
	.sample = "f32[4], f32[n=3, 2], f32[2, 4]; f32[n=3, 4], f32[n, 2], f32[2, 4], alpha=0.5, "
		  "beta=2, use_gelu=true",
};

OP(aten__masked_scale){
	.schema = "aten._masked_scale(Tensor self, Tensor mask, float scale) -> Tensor",
	.expand = "mul(mul(self, type_as(mask, self)), scale)",
	.sample = "f32[n=3, 4], u8[n, 4] of 0 1 1, scale=2.0",
};

OP(aten__euclidean_dist){
	.schema = "aten._euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
	.expand = "a = sum.dim_IntList(x1 * x1, [-1], true); b = sum.dim_IntList(x2 * x2, [-1], "
		  "true); sqrt(clamp_min((a + mT(b)) - 2 * matmul(x1, mT(x2)), 0))",
	.vjp = "r = masked_fill.Scalar(g / y, eq.Scalar(y, 0), 0); "
	       "[x1 * sum.dim_IntList(r, [-1], true) - matmul(r, x2), "
	       "x2 * mT(sum.dim_IntList(r, [-2], true)) - matmul(mT(r), x1)]",
	.sample = "f32[n=3, 4], f32[m=2, 4]",
};

OP(aten_frobenius_norm_dim){
	.schema = "aten.frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.expand = "linalg_vector_norm(self, 2, dim, keepdim)",
	.sample = "f32[n=3, 4], dim=[0, 1]; f32[n=3, 4], dim=[1], keepdim=true",
};

OP(aten_linalg__powsum){
	.schema = "aten.linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool "
		  "keepdim=False, *, ScalarType? dtype=None) -> Tensor",
	.expand = "sum.dim_IntList(pow.Tensor_Scalar(abs(self), ord), dim, keepdim, dtype=dtype)",
	.sample = "f32[n=3, 4] in 0.5..4, dim=[1]; f32[3, 4] in 0.5..4, ord=3, keepdim=true",
};

/* Returns the norm of each slice along dim, which stays; -1: of everything. */
static Node build_norm_except_dim(Build *b, Node n)
{
	Node v = arg(b, n, "v");
	int64_t dim = aten_int(b, n, "dim");
	uint32_t all = (1u << aten_rank(b, v)) - 1;
	if (dim < 0)
		return aten_vector_norm(b, v, (double)aten_int(b, n, "pow"), all, false);
	return aten_vector_norm(b, v, (double)aten_int(b, n, "pow"),
				all & ~(1u << b_wrap_dim(b, dim, aten_rank(b, v))), true);
}
OP(aten_norm_except_dim){
	.schema = "aten.norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
	.build = build_norm_except_dim,
	.sample = "f32[n=3, 4] in 0.5..4; f32[2, 3, 4] in 0.5..4, pow=1, dim=1; "
		  "f32[2, 3] in 0.5..4, dim=-1",
};

/* Returns an operand with new dimensions in the places that the node lists. */
static Node unsqueezed(Build *b, Node n, const char *tensor, const char *places)
{
	uint32_t count;
	const Sym *at = node_ints(b->g, n, places, &count);
	Node x = arg(b, n, tensor);
	for (uint32_t k = 0; k < count; k++)
		x = b_unsqueeze(b, x, (int)sym_const_or(b_syms(b), at[k], 0));
	return x;
}

static Node build_trilinear(Build *b, Node n)
{
	Node x = b_bin(b, OP_mul, unsqueezed(b, n, "i1", "expand1"),
		       unsqueezed(b, n, "i2", "expand2"));
	x = b_bin(b, OP_mul, x, unsqueezed(b, n, "i3", "expand3"));
	uint32_t count, dims = 0;
	const Sym *at = node_ints(b->g, n, "sumdim", &count);
	for (uint32_t k = 0; k < count; k++)
		dims |= 1u << b_wrap_dim(b, sym_const_or(b_syms(b), at[k], 0), aten_rank(b, x));
	return aten_sum(b, x, dims, false);
}
OP(aten__trilinear){
	.schema = "aten._trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, "
		  "int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor",
	.build = build_trilinear,
	.sample = "f32[n=2, 3], f32[4, 3, 5], f32[n, 5], expand1=[1, 3], expand2=[0], "
		  "expand3=[1, 2], sumdim=[2, 3]",
};

/* ---- products of other dtypes ---- */

OP(aten_mm_dtype){
	.schema = "aten.mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.expand = "matmul(to.dtype(self, out_dtype), to.dtype(mat2, out_dtype))",
	.sample = "f16[n=3, 4], f16[4, 2], out_dtype=f32",
	.overloads = (const Overload[]){
		{.schema = "aten.bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> "
			   "Tensor",
		 .sample = "f16[n=2, 3, 4], f16[n, 4, 2], out_dtype=f32"},
		{.schema = "aten.addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType "
			   "out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
		 .expand = "addmm(to.dtype(self, out_dtype), to.dtype(mat1, out_dtype), "
			   "to.dtype(mat2, out_dtype), beta=beta, alpha=alpha)",
		 .sample = "f16[2], f16[n=3, 4], f16[4, 2], out_dtype=f32, alpha=2"},
		{.schema = "aten.baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, "
			   "ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
		 .expand = "baddbmm(to.dtype(self, out_dtype), to.dtype(batch1, out_dtype), "
			   "to.dtype(batch2, out_dtype), beta=beta, alpha=alpha)",
		 .sample = "f16[n=2, 3, 2], f16[n, 3, 4], f16[n, 4, 2], out_dtype=f32, beta=2"},
	},
};

OP(aten__weight_int8pack_mm){
	.schema = "aten._weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
	.expand = "type_as(mul(matmul(to.dtype(self, f32), t(to.dtype(mat2, f32))), scales), self)",
	.sample = "bf16[n=3, 16], i8[5, 16] in -9..9, bf16[5] in 0.5..2",
};

/* Multiplies f8 by scales of all, of rows of the first or of columns of the second operand. */
static Node build_scaled_mm(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "mat2"), bias = arg(b, n, "bias"),
	     scale = arg(b, n, "scale_result");
	DType out = aten_dtype_or(b, n, "out_dtype", aten_dtype(b, x));
	Node p = b_matmul(b, b_convert(b, x, DT_f32), b_convert(b, y, DT_f32));
	p = b_bin(b, OP_mul, b_bin(b, OP_mul, p, arg(b, n, "scale_a")), arg(b, n, "scale_b"));
	if (bias.i)
		p = b_bin(b, OP_add, p, b_convert(b, bias, DT_f32));
	if (scale.i)
		p = b_bin(b, OP_mul, p, scale);
	return p.i ? b_convert(b, p, out) : p;
}
OP(aten__scaled_mm){
	.schema = "aten._scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, "
		  "Tensor? bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, "
		  "bool use_fast_accum=False) -> Tensor",
	.build = build_scaled_mm,
	.sample = "f8e4m3[n=3, 16], f8e4m3[16, 16], f32[] of 0.5, f32[] of 2, none, none, "
		  "out_dtype=f32",
};

/* ---- convolutions by a given method ---- */

OP(aten_thnn_conv2d){
	.schema = "aten.thnn_conv2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? "
		  "bias=None, SymInt[2] stride=1, SymInt[2] padding=0) -> Tensor",
	.expand = "conv2d(self, weight, bias, stride, padding)",
	.sample = "f32[n=2, 2, 5, 4], f32[3, 2, 3, 2], kernel_size=[3, 2], f32[3], stride=[2, 1], "
		  "padding=[1, 0]",
	.overloads = (const Overload[]){
		{.schema = "aten._slow_conv2d_forward(Tensor self, Tensor weight, SymInt[2] "
			   "kernel_size, Tensor? bias, SymInt[2] stride, "
			   "SymInt[2] padding) -> Tensor"},
		{.schema = "aten.slow_conv3d(Tensor self, Tensor weight, SymInt[3] kernel_size, "
			   "Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0) -> Tensor",
		 .aliases = "aten.slow_conv3d_forward",
		 .expand = "conv3d(self, weight, bias, stride, padding)",
		 .sample = "f32[n=2, 2, 3, 3, 4], f32[2, 2, 2, 2, 3], kernel_size=[2, 2, 3], "
			   "f32[2], stride=[1, 1, 1], padding=[1, 0, 1]"},
		{.schema = "aten.slow_conv_dilated2d(Tensor self, Tensor weight, SymInt[2] "
			   "kernel_size, Tensor? bias=None, SymInt[2] stride=1, "
			   "SymInt[2] padding=0, SymInt[2] dilation=1) -> Tensor",
		 .expand = "conv2d(self, weight, bias, stride, padding, dilation)",
		 .sample = "f32[n=2, 2, 7, 6], f32[3, 2, 3, 2], kernel_size=[3, 2], f32[3], "
			   "stride=[2, 1], padding=[1, 0], dilation=[2, 1]"},
		{.schema = "aten.slow_conv_dilated3d(Tensor self, Tensor weight, SymInt[3] "
			   "kernel_size, Tensor? bias=None, SymInt[3] stride=1, "
			   "SymInt[3] padding=0, SymInt[3] dilation=1) -> Tensor",
		 .expand = "conv3d(self, weight, bias, stride, padding, dilation)",
		 .sample = "f32[n=2, 2, 3, 3, 4], f32[2, 2, 2, 2, 3], kernel_size=[2, 2, 3], "
			   "f32[2], stride=[1, 1, 1], padding=[1, 0, 1], dilation=[1, 2, 1]"},
		{.schema = "aten.slow_conv_transpose2d(Tensor self, Tensor weight, SymInt[2] "
			   "kernel_size, Tensor? bias=None, SymInt[2] "
			   "stride=1, SymInt[2] padding=0, SymInt[2] output_padding=0, "
			   "SymInt[2] dilation=1) -> Tensor",
		 .expand = "conv_transpose2d.input(self, weight, bias, stride, padding, "
			   "output_padding, 1, dilation)",
		 .sample = "f32[n=2, 2, 3, 4], f32[2, 3, 3, 2], kernel_size=[3, 2], f32[3], "
			   "stride=[2, 1], padding=[1, 0]"},
		{.schema = "aten.slow_conv_transpose3d(Tensor self, Tensor weight, SymInt[3] "
			   "kernel_size, Tensor? bias=None, SymInt[3] "
			   "stride=1, SymInt[3] padding=0, SymInt[3] output_padding=0, "
			   "SymInt[3] dilation=1) -> Tensor",
		 .expand = "conv_transpose3d.input(self, weight, bias, stride, padding, "
			   "output_padding, 1, dilation)",
		 .sample = "f32[n=2, 2, 3, 2, 2], f32[2, 3, 2, 2, 2], kernel_size=[2, 2, 2], "
			   "f32[3], stride=[2, 1, 1]"},
	},
};

/* [time, batch, channels] by a weight [width, in, out] */
OP(aten_conv_tbc){
	.schema = "aten.conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.expand = "permute(conv1d(permute(self, [1, 2, 0]), permute(weight, [2, 1, 0]), bias, [1], "
		  "[pad]), [2, 0, 1])",
	.sample = "f32[n=5, 2, 3], f32[3, 3, 4], f32[4], pad=1; f32[5, 2, 3], f32[2, 3, 4], f32[4]",
};

/* ---- lists ---- */

static Node build_flatten_dense(Build *b, Node n)
{
	uint32_t first, count = node_args(b->g, n, "tensors", &first);
	Node *x = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, count + 1);
	for (uint32_t k = 0; k < count; k++)
		x[k] = b_ravel(b, node_in(b->g, n, first + k));
	return count ? b_concat(b, x, count, 0) : b_error(b, "flatten_dense_tensors of no tensors");
}

/* Returns pieces of flat in the shapes of the tensors. */
static Node build_unflatten_dense(Build *b, Node n)
{
	uint32_t first, count = node_args(b->g, n, "tensors", &first);
	SymTab *t = b_syms(b);
	Node *x = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, count + 1), all = arg(b, n, "flat");
	Sym at = b_int(b, 0);
	for (uint32_t k = 0; k < count; k++) {
		Shape s = aten_shape(b, node_in(b->g, n, first + k));
		Sym end = sym_add(t, at, shape_numel(b, &s));
		aten_require_le(b, end, b_dim(b, all, 0), "unflatten_dense_tensors");
		x[k] = b_reshape(b, b_slice(b, all, 0, at, end, b_int(b, 1)), s.rank, s.dim);
		at = end;
	}
	return b_tuple(b, x, count);
}
OP(aten_flatten_dense_tensors){
	.schema = "aten.flatten_dense_tensors(Tensor[] tensors) -> Tensor",
	.build = build_flatten_dense,
	.sample = "[f32[n=2, 3], f32[2]]",
	.overloads = (const Overload[]){
		{.schema = "aten.unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> "
			   "Tensor[]",
		 .build = build_unflatten_dense,
		 .sample = "f32[8], [f32[2, 3], f32[2]]"},
	},
};

/* Makes [batch, time, *] or [time, batch, *] of sequences [time k, *], filled up behind, or in
 * front. */
static Node build_pad_sequence(Build *b, Node n)
{
	uint32_t first, count = node_args(b->g, n, "sequences", &first);
	SymTab *t = b_syms(b);
	const bool left = !strcmp(node_str(b->g, n, "padding_side"), "left");
	if (!count || (!left && strcmp(node_str(b->g, n, "padding_side"), "right")))
		return b_error(b, "pad_sequence of %u tensors, padded on the side \"%s\"", count,
			       node_str(b->g, n, "padding_side"));
	Node *x = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, count + 1);
	Sym most = b_dim(b, node_in(b->g, n, first), 0);
	for (uint32_t k = 0; k < count; k++) {
		x[k] = node_in(b->g, n, first + k);
		if (!aten_rank(b, x[k]))
			return b_error(b, "pad_sequence of a tensor without dimensions");
		most = sym_max(t, most, b_dim(b, x[k], 0));
	}
	for (uint32_t k = 0; k < count; k++) {
		Shape s = aten_shape(b, x[k]);
		Sym none[MAX_RANK], more[MAX_RANK];
		for (uint32_t d = 0; d < s.rank; d++)
			none[d] = more[d] = b_int(b, 0);
		more[0] = sym_sub(t, most, s.dim[0]);
		Node value = b_scalar(b, aten_dtype(b, x[k]), node_float(b->g, n, "padding_value"));
		x[k] = b_pad(b, x[k], left ? more : none, left ? none : more, value);
	}
	return aten_stack(b, x, count, !node_bool(b->g, n, "batch_first"));
}
OP(aten_pad_sequence){
	.schema = "aten.pad_sequence(Tensor[] sequences, bool batch_first=False, float "
		  "padding_value=0.0, str padding_side=\"right\") -> Tensor",
	.build = build_pad_sequence,
	.sample = "[f32[n=2, 3], f32[4, 3]]; [f32[2], f32[4], f32[1]], batch_first=true, "
		  "padding_value=1.5, padding_side=\"left\"",
};
