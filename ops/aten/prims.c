/* PyTorch's prims that decompositions leave. Those that ATen has by another name or with
 * other arguments are aliases and overloads there. */
#include "ops/aten/priv.h"

OP(prims_cbrt){
	.schema = "prims.cbrt(Tensor self) -> Tensor",
	.doc = "the real cube root, as PyTorch's reference has it",
	.expand = "type_as(copysign.Tensor(pow.Tensor_Scalar(abs(self), 0.3333333333333333), "
		  "self), self)",
	.sample = "f32[n=3, 4] in -8..8; f32[4] of 0.125 27 -64 1e-6",
};
OP(prims_spherical_bessel_j0){
	.schema = "prims.spherical_bessel_j0(Tensor self) -> Tensor",
	.expand = "type_as(special_spherical_bessel_j0(self), self)",
	.sample = "f32[n=3, 4] in -6..6; f32[4] of 0.4375 0.5 0 -0.25",
};
OP(prims_copy_strided){
	.schema = "prims.copy_strided(Tensor a, SymInt[] stride) -> Tensor",
	.expand = "clone(a)",
	.sample = "f32[2, 3], stride=[1, 2]",
};
OP(prims_view_of_dtype){
	.schema = "prims.view_of_dtype(Tensor(a) a, ScalarType dtype) -> Tensor(a)",
	.view = VIEW_BITS,
	.view_undo = "prims.view_of_dtype",
	.expand = "view.dtype(a, dtype)",
	.sample = "f32[n=3, 4], dtype=i32; i16[n=3, 4] in -99..99, dtype=f16",
};

OP(prims_view_of){
	.schema = "prims.view_of(Tensor(a) a) -> Tensor(a)",
	.view = VIEW_SAME,
	.expand = "a",
	.sample = "f32[n=3, 4]",
	.overloads = (const Overload[]){
		{.schema = "prims.device_put(Tensor a, Device device, bool non_blocking=False) -> "
			   "Tensor",
		 .no_sample = "devices are not written in samples"},
	},
};

static Node build_broadcast_in_dim(Build *b, Node n)
{
	Node x = arg(b, n, "a");
	uint32_t rank, len, map[MAX_RANK];
	const Sym *shape = node_ints(b->g, n, "shape", &rank),
		  *dims = node_ints(b->g, n, "broadcast_dimensions", &len);
	if (!x.i || rank > MAX_RANK || len != node_rank(b->g, x))
		return b_error(b, "%u dimensions for an operand of rank %u, of a result of rank %u",
			       len, aten_rank(b, x), rank);
	for (uint32_t k = 0; k < len; k++) {
		int64_t d;
		if (!sym_is_const(b_syms(b), dims[k], &d) ||
		    d < (k ? (int64_t)map[k - 1] + 1 : 0) || d >= rank)
			return b_error(b, "broadcast_dimensions do not rise from 0 to %u", rank);
		map[k] = (uint32_t)d;
	}
	return b_broadcast_in_dim(b, x, rank, shape, map);
}
OP(prims_broadcast_in_dim){
	.schema = "prims.broadcast_in_dim(Tensor(a) a, SymInt[] shape, int[] broadcast_dimensions) "
		  "-> Tensor(a)",
	.view = VIEW_OTHER,
	.build = build_broadcast_in_dim,
	.sample = "f32[n=3], shape=[2, n, 4], broadcast_dimensions=[1]; f32[n=3, 1], shape=[n, 2, "
		  "5], broadcast_dimensions=[0, 2]; f32[], shape=[2], "
		  "broadcast_dimensions=[]",
};

static Node build_transpose(Build *b, Node n)
{
	Node x = arg(b, n, "a");
	uint32_t len, perm[MAX_RANK], seen = 0, rank = aten_rank(b, x);
	const Sym *list = node_ints(b->g, n, "permutation", &len);
	for (uint32_t k = 0; k < len && k < MAX_RANK; k++) {
		int64_t d;
		if (!sym_is_const(b_syms(b), list[k], &d) || d < 0 || d >= rank)
			return b_error(b, "no permutation of %u dimensions", rank);
		perm[k] = (uint32_t)d;
		seen |= 1u << d;
	}
	if (len != rank || seen != (1u << rank) - 1)
		return b_error(b, "no permutation of %u dimensions", rank);
	return b_permute(b, x, perm);
}
OP(prims_transpose){
	.schema = "prims.transpose(Tensor(a) a, int[] permutation) -> Tensor(a)",
	.view = VIEW_OTHER,
	.build = build_transpose,
	.sample = "f32[n=3, 4, 2], permutation=[2, 0, 1]",
};

static Node build_collapse(Build *b, Node n)
{
	Node x = arg(b, n, "a");
	int64_t start = aten_int(b, n, "start"), end = aten_int(b, n, "end"),
		rank = aten_rank(b, x);
	if (start < 0 || end < start || end >= rank)
		return b_error(b, "dimensions %lld to %lld of %lld", (long long)start,
			       (long long)end, (long long)rank);
	return aten_flatten(b, x, (uint32_t)start, (uint32_t)end);
}
OP(prims_collapse_view){
	.schema = "prims.collapse_view(Tensor(a) a, int start, int end) -> Tensor(a)",
	.view = VIEW_RESHAPE,
	.build = build_collapse,
	.sample = "f32[n=3, 4, 2], start=1, end=2; f32[n=3, 4, 2], start=0, end=1",
	.overloads = (const Overload[]){
		{.schema = "prims.collapse(Tensor a, int start, int end) -> Tensor"},
	},
};

static Node build_split_dim(Build *b, Node n)
{
	Node x = arg(b, n, "a");
	Shape s = aten_shape(b, x);
	int64_t dim = aten_int(b, n, "dim"), outer;
	if (!x.i || dim < 0 || dim >= s.rank || s.rank == MAX_RANK)
		return b_error(b, "dimension %lld of %u", (long long)dim, s.rank);
	Sym first = node_sym(b->g, n, "outer_length"), own = s.dim[dim];
	if (!aten_const(b, first, &outer) || outer < 1)
		return b_error(b, "an outer length of %s, expected a positive number",
			       sym_str(b_syms(b), first));
	aten_require_multiple(b, own, outer, "the dimension is split evenly");
	s.dim[dim] = first;
	s = shape_insert(s, (uint32_t)dim + 1, sym_divi(b_syms(b), own, outer));
	return aten_reshape(b, x, &s);
}
OP(prims_split_dim){
	.schema = "prims.split_dim(Tensor(a) a, int dim, SymInt outer_length) -> Tensor(a)",
	.view = VIEW_RESHAPE,
	.build = build_split_dim,
	.sample = "f32[n=3, 6], dim=1, outer_length=2",
};

OP(prims_pow){
	.schema = "prims.pow(Tensor self, Tensor other) -> Tensor",
	.expand = "pow(self, other)",
	.sample = "f32[n=3, 4] in 0.5..4, f32[n, 4]",
};

/* Divides. The quotient of integers is cut off. */
static Node build_div(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "other");
	if (x.i && y.i && node_dtype(b->g, x) == DT_bool)
		return b_bin(b, OP_bit_and, x, y);
	if (!x.i || !y.i || !dtype_is_int(node_dtype(b->g, x)))
		return b_bin(b, OP_div, x, y);
	return b_bin(b, OP_floordiv, b_bin(b, OP_sub, x, b_bin(b, OP_fmod, x, y)), y);
}
OP(prims_div){
	.schema = "prims.div(Tensor self, Tensor other) -> Tensor",
	.build = build_div,
	.sample = "f32[n=3, 4], f32[n, 4] in 1..4; i32[4] of -7 7 -9 3, i32[4] of 2 -2 4 5",
};

/* Reads the list of dims as a bit set, of which none is negative. False after b_error. */
static bool dims_of(Build *b, Node n, const char *name, uint32_t rank, uint32_t *bits)
{
	const Attr *a = node_attr(b->g, n, name);
	uint32_t len = 0;
	*bits = 0;
	if (a->kind != ATTR_ints)
		return b_error(b, "%s is missing, expected a list of dimensions", name).i;
	const Sym *v = node_ints(b->g, n, name, &len);
	for (uint32_t k = 0; k < len; k++) {
		int64_t d;
		if (!aten_const(b, v[k], &d))
			return false;
		if (d < 0 || d >= rank || *bits >> d & 1)
			return b_error(b,
				       "%s has %lld, expected each of %u dimensions at most once",
				       name, (long long)d, rank)
				.i;
		*bits |= 1u << d;
	}
	return true;
}

static ReduceKind reduction(Op op)
{
	switch (op) {
	case OP_prims_sum: return REDUCE_SUM;
	case OP_prims_prod: return REDUCE_PROD;
	case OP_prims_amax: return REDUCE_MAX;
	case OP_prims_amin: return REDUCE_MIN;
	default: return REDUCE_XOR;
	}
}

/* Builds what several elements over dims become. No dims are all of them, but for products, as
 * in PyTorch. */
static Node build_reduction(Build *b, Node n)
{
	Node x = arg(b, n, "inp");
	ReduceKind kind = reduction(node_op(b->g, n));
	uint32_t rank = aten_rank(b, x), dims;
	if (!x.i || !dims_of(b, n, "dims", rank, &dims))
		return (Node){0};
	if (!dims && kind != REDUCE_PROD)
		dims = (1u << rank) - 1;
	DType d = aten_dtype_or(b, n, "output_dtype", node_dtype(b->g, x));
	if (!dims)
		return b_convert(b, x, d);
	return b_convert(b,
			 kind == REDUCE_SUM ? aten_sum(b, aten_wide(b, x), dims, false)
					    : aten_reduce(b, kind, x, dims, false),
			 d);
}

OP(prims_sum){
	.schema = "prims.sum(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor",
	.build = build_reduction,
	.sample = "f32[n=3, 4], dims=[1]; f32[n=3, 4], dims=[0, 1]",
	.overloads = (const Overload[]){
		{.schema = "prims.prod(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) "
			   "-> Tensor"},
		{.schema = "prims.amax(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) "
			   "-> Tensor",
		 .sample = "f32[n=3, 4] distinct -4..7, dims=[1]; "
			   "f32[n=3, 4] distinct -4..7, dims=[0, 1]"},
		{.schema = "prims.amin(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) "
			   "-> Tensor",
		 .sample = "f32[n=3, 4] distinct -4..7, dims=[1]; "
			   "f32[n=3, 4] distinct -4..7, dims=[0, 1]"},
	},
};
static Node build_xor_sum(Build *b, Node n)
{
	Node x = arg(b, n, "inp");
	if (x.i && !dtype_is_int(node_dtype(b->g, x)) && node_dtype(b->g, x) != DT_bool)
		return b_error(b, "xor_sum of %s, expected integers",
			       dtype_name(node_dtype(b->g, x)));
	return build_reduction(b, n);
}
OP(prims_xor_sum){
	.schema = "prims.xor_sum(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> "
		  "Tensor",
	.build = build_xor_sum,
	.no_sample = "PyTorch has no kernel for it but Inductor's; tests/text/run/prims.txt",
};
static Node build_var(Build *b, Node n)
{
	Node x = arg(b, n, "inp");
	uint32_t dims;
	if (!x.i || !dims_of(b, n, "dims", aten_rank(b, x), &dims))
		return (Node){0};
	Attr attr[] = {attr_none(), *node_attr(b->g, n, "dims"), *node_attr(b->g, n, "correction"),
		       attr_bool(false)};
	return b_call(b, OP_aten_var_correction, &x, 1, attr, 4);
}
OP(prims_var){
	.schema = "prims.var(Tensor inp, int[]? dims, float? correction=1, *, ScalarType? "
		  "output_dtype=None) -> Tensor",
	.build = build_var,
	.sample = "f32[n=3, 4], dims=[1], correction=1.0; f32[n=3, 4], dims=[0, 1], correction=0.0",
};

static Node build_rev(Build *b, Node n)
{
	Node x = arg(b, n, "a");
	uint32_t dims;
	if (!x.i || !dims_of(b, n, "dims", aten_rank(b, x), &dims))
		return (Node){0};
	for (uint32_t d = 0; dims >> d; d++)
		if (dims >> d & 1)
			x = b_reverse(b, x, (int)d);
	return x;
}
OP(prims_rev){
	.schema = "prims.rev(Tensor a, int[] dims) -> Tensor",
	.build = build_rev,
	.sample = "f32[n=3, 4], dims=[0]; f32[n=3, 4], dims=[1, 0]",
};
/* Joins tensors in the dtype of the first one. */
static Node build_cat(Build *b, Node n)
{
	uint32_t first, count = node_args(b->g, n, "tensors", &first);
	Node *x = arena_calloc(b->g->ir->ctx->scratch, count + 1, sizeof *x);
	aten_list(b, n, "tensors", x, count);
	int64_t dim = aten_int(b, n, "dim");
	if (count == 0 || dim < 0)
		return count ? b_error(b, "dim is %lld, expected one that is not negative",
				       (long long)dim)
			     : (Node){0};
	for (uint32_t k = 1; k < count; k++)
		x[k] = b_convert(b, x[k], node_dtype(b->g, x[0]));
	return b_call(b, OP_aten_cat, x, count,
		      (Attr[]){attr_int(b->g->ir, count), attr_int(b->g->ir, dim)}, 2);
}
OP(prims_cat){
	.schema = "prims.cat(Tensor[] tensors, int dim) -> Tensor",
	.build = build_cat,
	.sample = "[f32[n=3, 4], f32[n, 2]], dim=1; [f32[n=3, 4], f32[2, 4]], dim=0",
};
static Node build_squeeze(Build *b, Node n)
{
	Node x = arg(b, n, "a");
	uint32_t dims;
	if (!x.i || !dims_of(b, n, "dimensions", aten_rank(b, x), &dims))
		return (Node){0};
	for (uint32_t d = 0; dims >> d; d++)
		if (dims >> d & 1)
			aten_require_equal(b, b_dim(b, x, (int)d), b_int(b, 1),
					   "a dimension that is squeezed has one element");
	return aten_squeeze_dims(b, x, dims);
}
OP(prims_squeeze){
	.schema = "prims.squeeze(Tensor(a) a, int[] dimensions) -> Tensor(a)",
	.view = VIEW_RESHAPE,
	.build = build_squeeze,
	.sample = "f32[1, n=3, 1, 4], dimensions=[0, 2]; f32[1, n=3], dimensions=[0]",
};

static Node build_iota(Build *b, Node n)
{
	Node i = b_iota(b, DT_i64, node_sym(b->g, n, "length"));
	i = b_bin(b, OP_mul, i, aten_size(b, node_sym(b->g, n, "step"), DT_i64));
	return b_convert(b, b_bin(b, OP_add, i, aten_size(b, node_sym(b->g, n, "start"), DT_i64)),
			 node_attr(b->g, n, "dtype")->dtype);
}
OP(prims_iota){
	.schema = "prims.iota(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, "
		  "Device device, bool requires_grad) -> Tensor",
	.build = build_iota,
	.no_sample = "devices are not written in samples",
};

/* Transforms without a factor. */
OP(prims_fft_c2c){
	.schema = "prims.fft_c2c(Tensor self, *, int[] dim, bool forward) -> Tensor",
	.expand = "_fft_c2c(self, dim, 0, forward)",
	.sample = "c64[n=3, 4], dim=[0, 1], forward=true",
	.overloads = (const Overload[]){
		{.schema = "prims.fft_r2c(Tensor self, *, int[] dim, bool onesided) -> Tensor",
		 .expand = "_fft_r2c(self, dim, 0, onesided)",
		 .sample = "f32[n=3, 4], dim=[0, 1], onesided=true"},
		{.schema = "prims.fft_c2r(Tensor self, *, int[] dim, SymInt last_dim_size) -> "
			   "Tensor",
		 .expand = "_fft_c2r(self, dim, 0, last_dim_size)",
		 .sample = "c64[n=3, 4], dim=[0, 1], last_dim_size=6"},
	},
};
