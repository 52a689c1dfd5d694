/* ATen reductions and scans. */
#include "ops/aten/priv.h"
#include "ops/rules/batch.h"

#include <math.h>

static uint32_t all_dims(const Build *b, Node x)
{
	return (1u << aten_rank(b, x)) - 1;
}

/* Returns the operand in the dtype a sum or product is taken in: bool and ints count in i64. */
static Node summand(Build *b, Node n, Node x)
{
	DType d = aten_dtype(b, x);
	if (!x.i)
		return x;
	return b_convert(
		b, x, aten_dtype_or(b, n, "dtype", dtype_is_int(d) || d == DT_bool ? DT_i64 : d));
}

/* ---- sums, products, means ---- */

static Node build_sum(Build *b, Node n)
{
	Node x = summand(b, n, arg(b, n, "self"));
	return aten_sum(b, x, all_dims(b, x), false);
}

static Node build_sum_dim(Build *b, Node n)
{
	Node x = summand(b, n, arg(b, n, "self"));
	return aten_sum(b, x, aten_dims(b, n, "dim", aten_rank(b, x)), aten_keepdim(b, n));
}
OP(aten_sum){
	.schema = "aten.sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_sum,
	.sample = "f32[n=3, 4]; i32[5] in -9..9; f32[3, 4], dtype=f64; bool[5]",
	.overloads = (const Overload[]){
		{.schema = "aten.sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, "
			   "ScalarType? dtype=None) -> Tensor",
		 .build = build_sum_dim,
		 .sample = "f32[n=3, 4], dim=[1]; f32[2, 3, 4], dim=[0, -1], keepdim=true; "
			   "i32[3, 4] in -9..9, dim=[0]; f32[2, 3], dim=[]; "
			   "f32[2, 3], dim=none, dtype=f64"},
	},
};

/* Counts elements that are NaN as 0. */
static Node build_nansum(Build *b, Node n)
{
	Node x = summand(b, n, arg(b, n, "self"));
	if (dtype_is_float(aten_dtype(b, x))) {
		Node nan = b_un(b, OP_isnan, x);
		x = b_select(b, nan, aten_like(b, x, 0), x);
	}
	return aten_sum(b, x, aten_dims(b, n, "dim", aten_rank(b, x)), aten_keepdim(b, n));
}
OP(aten_nansum){
	.schema = "aten.nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
		  "dtype=None) -> Tensor",
	.build = build_nansum,
	.sample = "f32[n=2, 4] of 1 nan 2 -3 4 0.5; f32[2, 4] of 1 nan 2 -3 4 0.5, dim=[0], "
		  "keepdim=true",
};

static Node build_prod(Build *b, Node n)
{
	Node x = summand(b, n, arg(b, n, "self"));
	return aten_reduce(b, REDUCE_PROD, x, all_dims(b, x), false);
}

static Node build_prod_dim(Build *b, Node n)
{
	Node x = summand(b, n, arg(b, n, "self"));
	return aten_reduce(b, REDUCE_PROD, x, aten_dims(b, n, "dim", aten_rank(b, x)),
			   aten_keepdim(b, n));
}
OP(aten_prod){
	.schema = "aten.prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_prod,
	.sample = "f32[n=2, 3] in -2..2; i32[5] of 1 2 -3 4 5",
	.overloads = (const Overload[]){
		{.schema = "aten.prod.dim_int(Tensor self, int dim, bool keepdim=False, *, "
			   "ScalarType? dtype=None) -> Tensor",
		 .build = build_prod_dim,
		 .sample = "f32[n=2, 3] in -2..2, dim=1; i32[2, 3] in -3..3, dim=0, keepdim=true"},
	},
};

static Node mean(Build *b, Node n, uint32_t dims)
{
	Node x = arg(b, n, "self");
	DType d = aten_dtype_or(b, n, "dtype", aten_dtype(b, x));
	if (!x.i)
		return x;
	if (!dtype_is_float(d) && !dtype_is_complex(d))
		return b_error(b, "mean of dtype %s, expected a floating-point dtype",
			       dtype_name(d));
	return aten_mean(b, b_convert(b, x, d), dims, aten_keepdim(b, n));
}

static Node build_mean(Build *b, Node n)
{
	return mean(b, n, all_dims(b, arg(b, n, "self")));
}
static Node build_mean_dim(Build *b, Node n)
{
	return mean(b, n, aten_dims(b, n, "dim", aten_rank(b, arg(b, n, "self"))));
}
OP(aten_mean){
	.schema = "aten.mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
	.build = build_mean,
	.sample = "f32[n=3, 4]; f32[3], dtype=f64",
	.overloads = (const Overload[]){
		{.schema = "aten.mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, "
			   "ScalarType? dtype=None) -> Tensor",
		 .build = build_mean_dim,
		 .sample = "f32[n=3, 4], dim=[1]; f32[2, 3, 4], dim=[0, -1], keepdim=true; "
			   "f32[3, 2], dim=[]"},
	},
};

static Node build_nanmean(Build *b, Node n)
{
	Node x = summand(b, n, arg(b, n, "self"));
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, x));
	DType d = aten_dtype(b, x);
	x = aten_wide(b, x);
	Node nan = b_un(b, OP_isnan, x);
	Node zero = aten_like(b, x, 0), one = b_select(b, nan, zero, aten_like(b, x, 1));
	Node sum = aten_sum(b, b_select(b, nan, zero, x), dims, aten_keepdim(b, n));
	Node y = b_bin(b, OP_div, sum, aten_sum(b, one, dims, aten_keepdim(b, n)));
	return y.i ? b_convert(b, y, d) : y;
}
OP(aten_nanmean){
	.schema = "aten.nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, "
		  "ScalarType? dtype=None) -> Tensor",
	.build = build_nanmean,
	.sample = "f32[n=2, 4] of 1 nan 2 -3 4 0.5; f32[2, 4] of 1 nan 2 -3 4 0.5, dim=[0], "
		  "keepdim=true",
};

static Node build_count_nonzero(Build *b, Node n)
{
	Node x = aten_truth(b, arg(b, n, "self"));
	bool list = node_op(b->g, n) == OP_aten_count_nonzero_dim_IntList;
	const char *dim = "dim";
	uint32_t dims = list || aten_has(b, n, dim) ? aten_dims(b, n, dim, aten_rank(b, x))
						    : all_dims(b, x);
	return x.i ? aten_sum(b, b_convert(b, x, DT_i64), dims, false) : x;
}
OP(aten_count_nonzero_dim_IntList){
	.schema = "aten.count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
	.build = build_count_nonzero,
	.sample = "f32[n=3, 4] of 0 1 0 2 3 0 0, dim=[1]; f32[3, 4] of 0 1 0 2 3 0 0, dim=[0, 1]",
	.overloads = (const Overload[]){
		{.schema = "aten.count_nonzero(Tensor self, int? dim=None) -> Tensor",
		 .sample = "f32[n=3, 4] of 0 1 0 2 3 0 0; i32[4, 2] of 0 1 0 2 3 0 0, dim=0"},
	},
};

/* ---- and, or ---- */

/* Keeps the dtype of u8, as ATen. */
static Node truth_reduce(Build *b, Node n, ReduceKind kind, uint32_t dims)
{
	Node x = arg(b, n, "self");
	Node y = aten_reduce(b, kind, aten_truth(b, x), dims, aten_keepdim(b, n));
	return aten_dtype(b, x) == DT_u8 ? b_convert(b, y, DT_u8) : y;
}

static Node build_any(Build *b, Node n)
{
	return truth_reduce(b, n, REDUCE_OR, all_dims(b, arg(b, n, "self")));
}
static Node build_any_dim(Build *b, Node n)
{
	return truth_reduce(b, n, REDUCE_OR,
			    aten_dims(b, n, "dim", aten_rank(b, arg(b, n, "self"))));
}
static Node build_all(Build *b, Node n)
{
	return truth_reduce(b, n, REDUCE_AND, all_dims(b, arg(b, n, "self")));
}
static Node build_all_dim(Build *b, Node n)
{
	return truth_reduce(b, n, REDUCE_AND,
			    aten_dims(b, n, "dim", aten_rank(b, arg(b, n, "self"))));
}
static Node bool_only(Build *b, Node n, int all)
{
	const DType d = aten_dtype(b, arg(b, n, "self"));
	if (d != DT_bool)
		return b_error(b, "expected bool, got %s", dtype_name(d));
	return all ? build_all(b, n) : build_any(b, n);
}
OP(aten_any){
	.schema = "aten.any(Tensor self) -> Tensor",
	.build = build_any,
	.sample = "f32[n=3, 4] of 0 0 0 0 1 -2 nan 1 0 0 1 1; bool[3] of 0 1 1; i32[2] of 2 3; "
		  "u8[3] of 0 2 1",
	.overloads = (const Overload[]){
		{.schema = "aten._is_any_true(Tensor self) -> Tensor",
		 .build_as = {bool_only, false},
		 .sample = "bool[n=3, 2] of 1 1 1 1 0 1; bool[2] of 1; bool[0]; bool[2] of 0"},
		{.schema = "aten.any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
		 .build = build_any_dim,
		 .sample = "f32[n=3, 4] of 0 0 0 0 1 -2 nan 1 0 0 1 1, dim=1; "
			   "bool[2, 2] of 0 1 1 1, dim=0, keepdim=true"},
		{.schema = "aten.any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> "
			   "Tensor",
		 .build = build_any_dim,
		 .sample = "f32[n=3, 4] of 0 0 0 0 1 -2 nan 1 0 0 1 1, dim=[1]; "
			   "f32[n=3, 4] of 0 0 0 0 1 -2 nan 1 0 0 1 1, dim=[0, 1], keepdim=true; "
			   "bool[2, 2] of 1 1 0 1, dim=none"},
	},
};
OP(aten_all){
	.schema = "aten.all(Tensor self) -> Tensor",
	.build = build_all,
	.sample = "f32[n=3, 4] of 0 0 0 0 1 -2 nan 1 0 0 1 1; bool[3] of 0 1 1; i32[2] of 2 3; "
		  "u8[3] of 0 2 1",
	.overloads = (const Overload[]){
		{.schema = "aten._is_all_true(Tensor self) -> Tensor",
		 .build_as = {bool_only, true},
		 .sample = "bool[n=3, 2] of 1 1 1 1 0 1; bool[2] of 1; bool[0]; bool[2] of 0"},
		{.schema = "aten.all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
		 .build = build_all_dim,
		 .sample = "f32[n=3, 4] of 0 0 0 0 1 -2 nan 1 0 0 1 1, dim=1; "
			   "bool[2, 2] of 0 1 1 1, dim=0, keepdim=true"},
		{.schema = "aten.all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> "
			   "Tensor",
		 .build = build_all_dim,
		 .sample = "f32[n=3, 4] of 0 0 0 0 1 -2 nan 1 0 0 1 1, dim=[1]; "
			   "f32[n=3, 4] of 0 0 0 0 1 -2 nan 1 0 0 1 1, dim=[0, 1], keepdim=true; "
			   "bool[2, 2] of 1 1 0 1, dim=none"},
	},
};

/* ---- extremes ---- */

/* Returns the greatest or least along dims: of nothing there is none. */
static Node extreme(Build *b, Node n, bool max, uint32_t dims)
{
	Node x = arg(b, n, "self");
	aten_require_elements(b, x, dims,
			      max ? "a maximum has an element" : "a minimum has an element");
	return aten_reduce(b, max ? REDUCE_MAX : REDUCE_MIN, x, dims, aten_keepdim(b, n));
}

static uint32_t dims_arg(Build *b, Node n)
{
	return aten_dims(b, n, "dim", aten_rank(b, arg(b, n, "self")));
}
static Node build_amax(Build *b, Node n)
{
	return extreme(b, n, true, dims_arg(b, n));
}
static Node build_amin(Build *b, Node n)
{
	return extreme(b, n, false, dims_arg(b, n));
}
static Node build_max(Build *b, Node n)
{
	return aten_extreme(b, arg(b, n, "self"), true);
}
static Node build_min(Build *b, Node n)
{
	return aten_extreme(b, arg(b, n, "self"), false);
}
static Node build_aminmax(Build *b, Node n)
{
	uint32_t dims = dims_arg(b, n);
	Node r[] = {extreme(b, n, false, dims), extreme(b, n, true, dims)};
	return b_tuple(b, r, 2);
}

static Node build_aminmax_all(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return b_tuple(b, (Node[]){aten_extreme(b, x, false), aten_extreme(b, x, true)}, 2);
}
OP(aten_amax){
	.schema = "aten.amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
	.build = build_amax,
	.sample = "f32[n=3, 4] distinct -4..5, dim=[1]; f32[2, 3, 4], dim=[0, -1], keepdim=true; "
		  "i32[4] in -9..9",
};
OP(aten_amin){
	.schema = "aten.amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
	.build = build_amin,
	.sample = "f32[n=3, 4] distinct -4..5, dim=[1]; f32[2, 3, 4], dim=[0, -1], keepdim=true; "
		  "i32[4] in -9..9",
};
OP(aten_max){
	.schema = "aten.max(Tensor self) -> Tensor",
	.build = build_max,
	.sample = "f32[n=3, 4] distinct -4..5; i32[5] in -9..9; f32[3] of 1 nan 2; bool[2] of 0 1",
};
OP(aten_min){
	.schema = "aten.min(Tensor self) -> Tensor",
	.build = build_min,
	.sample = "f32[n=3, 4] distinct -4..5; i32[5] in -9..9; f32[3] of 1 nan 2; bool[2] of 0 1",
};
OP(aten_aminmax){
	.schema = "aten.aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor "
		  "min, Tensor max)",
	.build = build_aminmax,
	.sample = "f32[n=3, 4] distinct -4..5; f32[n=3, 4] distinct -4..5, dim=1, keepdim=true",
	.overloads = (const Overload[]){
		{.schema = "aten._aminmax(Tensor self) -> (Tensor, Tensor)",
		 .build = build_aminmax_all,
		 .sample = "f32[n=3, 4] distinct -4..5; i32[5] in -9..9"},
		{.schema = "aten._aminmax.dim(Tensor self, int dim, bool keepdim=False) -> "
			   "(Tensor, Tensor)",
		 .sample = "f32[n=3, 4] distinct -4..5, dim=1, keepdim=true; "
			   "f32[n=3, 4] distinct -4..5, dim=0"},
	},
};

static Node arg_of(Build *b, Node x, bool max, uint32_t dim, bool keep)
{
	if (aten_rank(b, x) == 0)
		return x.i ? b_full_int(b, DT_i64, 0, 0, NULL) : x;
	if (aten_dtype(b, x) == DT_bool)
		x = b_convert(b, x, DT_u8);
	aten_require_elements(b, x, 1u << dim,
			      max ? "a maximum has an element" : "a minimum has an element");
	Node y = b_arg_reduce(b, max, x, dim);
	return keep ? b_unsqueeze(b, y, (int)dim) : y;
}

static Node extreme_dim(Build *b, Node n, int max)
{
	Node x = arg(b, n, "self"), r[2];
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	r[0] = aten_rank(b, x) ? extreme(b, n, max, 1u << dim) : x;
	r[1] = arg_of(b, x, max, dim, aten_keepdim(b, n));
	return b_tuple(b, r, 2);
}
OP(aten_max_dim){
	.schema = "aten.max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, "
		  "Tensor indices)",
	.build_as = {extreme_dim, true},
	.adjoint = aten_adjoint_picked,
	.batch = batch_along,
	.sample = "f32[n=3, 4] distinct -4..5, dim=1; i32[3, 4] in -2..2, dim=0, keepdim=true; "
		  "f32[2, 3] of 1 nan 2 nan nan 0, dim=1",
};
OP(aten_min_dim){
	.schema = "aten.min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, "
		  "Tensor indices)",
	.build_as = {extreme_dim, false},
	.adjoint = aten_adjoint_picked,
	.batch = batch_along,
	.sample = "f32[n=3, 4] distinct -4..5, dim=1; i32[3, 4] in -2..2, dim=0, keepdim=true; "
		  "f32[2, 3] of 1 nan 2 nan nan 0, dim=1",
};

static Node arg_extreme(Build *b, Node n, int max)
{
	Node x = arg(b, n, "self");
	Shape s = aten_shape(b, x);
	if (aten_has(b, n, "dim"))
		return arg_of(b, x, max, b_wrap_dim(b, aten_int(b, n, "dim"), s.rank),
			      aten_keepdim(b, n));
	Node flat = b_ravel(b, x);
	Node y = arg_of(b, flat, max, 0, false);
	if (!aten_keepdim(b, n))
		return y;
	for (uint32_t k = 0; k < s.rank; k++)
		s.dim[k] = b_int(b, 1);
	return aten_reshape(b, y, &s);
}
OP(aten_argmax){
	.schema = "aten.argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
	.build_as = {arg_extreme, true},
	.sample = "f32[n=3, 4] distinct -4..5; f32[n=3, 4] distinct -4..5, dim=1; "
		  "i32[3, 4] in -2..2, dim=0, keepdim=true; f32[2, 3] of 1 nan 2 nan nan 0, dim=1",
	.overloads = (const Overload[]){
		{.schema = "aten.argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
		 .build_as = {arg_extreme, false}},
	},
};

/* ---- variance, norms ---- */

enum { ROOT = 1 /* the standard deviation */, PAIR = 2 /* with the mean */ };

static Node moments(Build *b, Node n, uint32_t dims, double correction, int how)
{
	const bool root = how & ROOT, pair = how & PAIR;
	Node x = arg(b, n, "self");
	DType d = aten_dtype(b, x);
	uint32_t drop = aten_keepdim(b, n) ? 0 : dims;
	if (!dtype_is_float(d) && !dtype_is_complex(d))
		return b_error(b, "variance of dtype %s, expected a floating-point dtype",
			       dtype_name(d));
	/* In f64 as ATen: squares of what f32 holds overflow it. Where x is infinite the variance
	 * is NaN, whatever the mean is. */
	Node wide = b_convert(b, x, dtype_is_complex(d) ? DT_c128 : DT_f64);
	Node m = aten_mean(
		b, pair && !dtype_is_complex(d) ? aten_nan_for_infinite(b, wide, dims) : wide, dims,
		true);
	Node v = aten_var_about(b, wide, m, dims, correction);
	if (root)
		v = b_un(b, OP_sqrt, v);
	v = aten_squeeze_dims(b, v, drop);
	v = v.i ? b_convert(b, v, dtype_is_complex(d) ? dtype_real(d) : d) : v;
	if (!pair)
		return v;
	m = aten_squeeze_dims(b, m, drop);
	m = m.i ? b_convert(b, m, d) : m;
	return b_tuple(b, (Node[]){v, m}, 2);
}

static Node moments_dim(Build *b, Node n, int how)
{
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, arg(b, n, "self")));
	return moments(b, n, dims, node_bool(b->g, n, "unbiased"), how);
}
static Node moments_correction(Build *b, Node n, int how)
{
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, arg(b, n, "self")));
	double c = aten_has(b, n, "correction") ? node_float(b->g, n, "correction") : 1;
	return moments(b, n, dims, c, how);
}
static Node moments_all(Build *b, Node n, int how)
{
	uint32_t dims = all_dims(b, arg(b, n, "self"));
	return moments(b, n, dims, node_bool(b->g, n, "unbiased"), how);
}
OP(aten_var){
	.schema = "aten.var(Tensor self, bool unbiased=True) -> Tensor",
	.build_as = {moments_all, 0},
	.adjoint = aten_adjoint_var,
	.batch = aten_batch_moments,
	.sample = "f32[n=3, 4]; f32[n=3, 4], unbiased=false",
	.overloads = (const Overload[]){
		{.schema = "aten.var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool "
			   "keepdim=False) -> Tensor",
		 .build_as = {moments_dim, 0},
		 .sample = "f32[n=3, 4], dim=[1]; f32[2, 3, 4], dim=[0, 2], unbiased=false, "
			   "keepdim=true"},
		{.schema = "aten.var.correction(Tensor self, int[1]? dim=None, *, Scalar? "
			   "correction=None, bool keepdim=False) -> Tensor",
		 .build_as = {moments_correction, 0},
		 .sample = "f32[n=3, 4], dim=[1]; f32[2, 3, 4], dim=[0, 2], correction=0, "
			   "keepdim=true; f32[n=3, 4], correction=2.5; f32[4], dim=[0]"},
		{.schema = "aten.var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
		 .build_as = {moments_all, PAIR}},
		{.schema = "aten.var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool "
			   "keepdim=False) -> (Tensor, Tensor)",
		 .build_as = {moments_dim, PAIR},
		 .sample = "f32[n=3, 4], dim=[1]; f32[2, 3, 4], dim=[0, 2], unbiased=false, "
			   "keepdim=true"},
		{.schema = "aten.var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? "
			   "correction=None, bool keepdim=False) -> (Tensor, Tensor)",
		 .build_as = {moments_correction, PAIR},
		 .sample = "f32[n=3, 4], dim=[1]; f32[2, 3, 4], dim=[0, 2], correction=0, "
			   "keepdim=true; f32[n=3, 4], correction=2.5; f32[4], dim=[0]; "
			   "f32[4, 3] of -inf -inf -inf 1 2 inf inf 1 2 1 -inf inf, dim=[1]"},
	},
};
OP(aten_std){
	.schema = "aten.std(Tensor self, bool unbiased=True) -> Tensor",
	.build_as = {moments_all, ROOT},
	.adjoint = aten_adjoint_std,
	.batch = aten_batch_moments,
	.sample = "f32[n=3, 4]; f32[n=3, 4], unbiased=false",
	.overloads = (const Overload[]){
		{.schema = "aten.std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool "
			   "keepdim=False) -> Tensor",
		 .build_as = {moments_dim, ROOT},
		 .sample = "f32[n=3, 4], dim=[1]; f32[2, 3, 4], dim=[0, 2], unbiased=false, "
			   "keepdim=true"},
		{.schema = "aten.std.correction(Tensor self, int[1]? dim=None, *, Scalar? "
			   "correction=None, bool keepdim=False) -> Tensor",
		 .build_as = {moments_correction, ROOT},
		 .sample = "f32[n=3, 4], dim=[1]; f32[2, 3, 4], dim=[0, 2], correction=0, "
			   "keepdim=true; f32[n=3, 4], correction=2.5; f32[4], dim=[0]"},
		{.schema = "aten.std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
		 .build_as = {moments_all, ROOT | PAIR}},
		{.schema = "aten.std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool "
			   "keepdim=False) -> (Tensor, Tensor)",
		 .build_as = {moments_dim, ROOT | PAIR},
		 .sample = "f32[n=3, 4], dim=[1]; f32[2, 3, 4], dim=[0, 2], unbiased=false, "
			   "keepdim=true"},
		{.schema = "aten.std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? "
			   "correction=None, bool keepdim=False) -> (Tensor, Tensor)",
		 .build_as = {moments_correction, ROOT | PAIR},
		 .sample = "f32[n=3, 4], dim=[1]; f32[2, 3, 4], dim=[0, 2], correction=0, "
			   "keepdim=true; f32[n=3, 4], correction=2.5; f32[4], dim=[0]; "
			   "f32[4, 3] of -inf -inf -inf 1 2 inf inf 1 2 1 -inf inf, dim=[1]"},
	},
};

static double order(Build *b, Node n, const char *name)
{
	return aten_has(b, n, name) ? node_float(b->g, n, name) : 2;
}

static Node norm(Build *b, Node n, double p, uint32_t dims, bool keep)
{
	Node x = arg(b, n, "self");
	bool typed = op_arg_index(node_op(b->g, n), "dtype") >= 0;
	DType d = dtype_to_float(typed ? aten_dtype_or(b, n, "dtype", aten_dtype(b, x))
				       : aten_dtype(b, x));
	if (!x.i)
		return x;
	x = b_convert(b, x, d);
	Node y = aten_vector_norm(b, aten_wide(b, x), p, dims, keep);
	return y.i ? b_convert(b, y, dtype_real(d)) : y;
}

static Node build_vector_norm(Build *b, Node n)
{
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, arg(b, n, "self")));
	return norm(b, n, order(b, n, "ord"), dims, aten_keepdim(b, n));
}

static Node build_norm(Build *b, Node n)
{
	return norm(b, n, order(b, n, "p"), all_dims(b, arg(b, n, "self")), false);
}

static Node build_norm_dim(Build *b, Node n)
{
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, arg(b, n, "self")));
	return norm(b, n, order(b, n, "p"), dims, aten_keepdim(b, n));
}
OP(aten_linalg_vector_norm){
	.schema = "aten.linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool "
		  "keepdim=False, *, ScalarType? dtype=None) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_vector_norm,
	.sample = "f32[n=3, 4] in 0.5..4, ord=2, dim=[1]; f32[n=3, 4] in 0.5..4, ord=1, dim=[1]; "
		  "f32[n=3, 4] in 0.5..4, ord=0, dim=[1]; f32[n=3, 4] in 0.5..4, ord=inf, dim=[1]; "
		  "f32[n=3, 4] in 0.5..4, ord=-inf, dim=[1]; "
		  "f32[n=3, 4] in 0.5..4, ord=3, dim=[1]; f32[n=3, 4] in 0.5..4, ord=0.5, dim=[1]; "
		  "f32[n=3, 4] in 0.5..4, ord=-1.5, dim=[1]; "
		  "f32[3, 4], dim=[0], keepdim=true, dtype=f64; f32[3, 4], ord=0; "
		  "f32[3, 4], ord=-inf; c64[3, 4], dim=[0]; c64[3, 4], ord=1",
	.overloads = (const Overload[]){
		{.schema = "aten.norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
		 .build = build_norm,
		 .sample = "f32[n=3, 4]; f32[n=3, 4], p=1; f32[n=3, 4], p=3.5"},
		{.schema = "aten.norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) "
			   "-> Tensor",
		 .build = build_norm,
		 .sample = "f32[n=3, 4], p=2, dtype=f64; f16[3], p=none, dtype=f32"},
		{.schema = "aten.norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool "
			   "keepdim=False) -> Tensor",
		 .build = build_norm_dim,
		 .sample = "f32[n=3, 4], p=none, dim=[1]; "
			   "f32[n=3, 4], p=inf, dim=[0], keepdim=true; f32[n=3, 4], p=0, dim=[1]"},
		{.schema = "aten.norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool "
			   "keepdim, *, ScalarType dtype) -> Tensor",
		 .build = build_norm_dim,
		 .sample = "f32[n=3, 4], p=3, dim=[1], keepdim=true, dtype=f64"},
	},
};

static Node build_dist(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "self"));
	Node d = b_bin(b, OP_sub, x, aten_to_float(b, arg(b, n, "other")));
	return aten_vector_norm(b, d, order(b, n, "p"), all_dims(b, d), false);
}
OP(aten_dist){
	.schema = "aten.dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_dist,
	.sample = "f32[n=3, 4], f32[n, 4]; f32[n=3, 4], f32[4], p=1; "
		  "f32[n=3, 4], f32[n, 4], p=inf; f32[n=3, 4], f32[n, 4], p=0; "
		  "f32[n=3, 4], f32[n, 4], p=3",
};

Node aten_row_distance(Build *b, Node x, Node y, double p, double eps, bool keep)
{
	Node d = aten_to_float(b, b_bin(b, OP_sub, x, y));
	if (aten_rank(b, d) == 0)
		return b_error(b, "distance of tensors without dims");
	d = b_bin_scalar(b, OP_add, d, eps);
	return aten_vector_norm(b, d, p, 1u << (aten_rank(b, d) - 1), keep);
}

static Node build_pairwise_distance(Build *b, Node n)
{
	double p = order(b, n, "p"), eps = node_float(b->g, n, "eps");
	return aten_row_distance(b, arg(b, n, "x1"), arg(b, n, "x2"), p, eps, aten_keepdim(b, n));
}
OP(aten_pairwise_distance){
	.schema = "aten.pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, "
		  "bool keepdim=False) -> Tensor",
	.build = build_pairwise_distance,
	.sample = "f32[n=3, 4], f32[n, 4]; f32[3, 4], f32[4], p=1.0, eps=0.5, keepdim=true; "
		  "f32[3, 4], f32[3, 4], p=inf, eps=0.25",
};

static Node build_cosine_similarity(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "x1")), y = aten_to_float(b, arg(b, n, "x2"));
	Node xy = b_bin(b, OP_mul, x, y);
	uint32_t rank = aten_rank(b, xy);
	double eps = node_float(b->g, n, "eps");
	if (!aten_check_within(b, "eps", eps, 0, INFINITY))
		return (Node){0};
	uint32_t dims = rank ? 1u << b_wrap_dim(b, aten_int(b, n, "dim"), rank) : 0;
	Shape s = aten_shape(b, xy);
	x = aten_expand_shape(b, x, &s);
	y = aten_expand_shape(b, y, &s);
	Node nx = b_bin_scalar(b, OP_maximum, aten_vector_norm(b, x, 2, dims, true), eps);
	Node ny = b_bin_scalar(b, OP_maximum, aten_vector_norm(b, y, 2, dims, true), eps);
	x = b_bin(b, OP_div, x, nx);
	y = b_bin(b, OP_div, y, ny);
	return aten_sum(b, b_bin(b, OP_mul, x, y), dims, false);
}
OP(aten_cosine_similarity){
	.schema = "aten.cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> "
		  "Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_cosine_similarity,
	.sample = "f32[n=3, 4], f32[n, 4]; f32[3, 4], f32[3, 4], dim=0; "
		  "f32[2, 3] of 0.1 0.2 -0.1 0 0.25 0.125, f32[2, 3] in -0.5..0.5, dim=1, eps=0.25",
};

/* ---- scans ---- */

static Node cumulative(Build *b, Node n, int combine)
{
	const char *kind = combine == REDUCE_SUM ? "sum" : "prod";
	Node x = summand(b, n, arg(b, n, "self"));
	const DType d = aten_dtype(b, x);
	if (aten_rank(b, x) == 0)
		return x;
	/* products of complex numbers are a loop, which does not round what it carries */
	x = dtype_is_complex(d) ? aten_wide(b, x) : x;
	x = b_cumulative(b, kind, x, b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x)), false);
	return b_convert(b, x, d);
}
OP(aten_cumsum){
	.schema = "aten.cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build_as = {cumulative, REDUCE_SUM},
	.sample = "f32[n=3, 4] in -2..2, dim=1; i32[3, 4] in -3..3, dim=0; "
		  "f32[4] in -2..2, dim=0, dtype=f64",
};
OP(aten_cumprod){
	.schema = "aten.cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build_as = {cumulative, REDUCE_PROD},
	.sample = "f32[n=3, 4] in -2..2, dim=1; i32[3, 4] in -3..3, dim=0; "
		  "f32[4] in -2..2, dim=0, dtype=f64; c64[n=3, 4] in -2..2, dim=0; "
		  "c64[4] of 1 0 0 0 2 1 -1 3, dim=-1",
};

static Node build_logcumsumexp(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "self"));
	if (aten_rank(b, x) == 0)
		return x;
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	return b_cumulative(b, "logaddexp", x, dim, false);
}
OP(aten_logcumsumexp){
	.schema = "aten.logcumsumexp(Tensor self, int dim) -> Tensor",
	.aliases = "aten._logcumsumexp",
	.build = build_logcumsumexp,
	.sample = "f32[n=3, 4], dim=1; f32[4] of -inf 1 300 2, dim=0; c64[n=3, 4], dim=1; c64[4] "
		  "of 1 1 2 -3 800 2 2 1, dim=0",
};

static Node build_diff(Build *b, Node n)
{
	Node x = arg(b, n, "self"), before = arg(b, n, "prepend"), after = arg(b, n, "append");
	int64_t times = aten_int(b, n, "n");
	if (aten_rank(b, x) == 0)
		return b_error(b, "diff of a tensor without dims");
	if (times < 0)
		return b_error(b, "differences of order %lld: expected at least 0",
			       (long long)times);
	if (times == 0)
		return x;
	int dim = (int)b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	Node part[3];
	uint32_t parts = 0;
	if (before.i)
		part[parts++] = before;
	part[parts++] = x;
	if (after.i)
		part[parts++] = after;
	if (parts > 1)
		x = b_concat(b, part, parts, dim);
	for (; times > 0 && x.i; times--) {
		if (sym_is(b_syms(b), b_dim(b, x, dim), 0))
			return x;
		Node high = aten_slice(b, x, (uint32_t)dim, 1, INT64_MAX);
		Node low = aten_slice(b, x, (uint32_t)dim, 0, -1);
		DType d = aten_dtype(b, x);
		x = b_bin(b, d == DT_bool ? OP_bit_xor : OP_sub, aten_wide(b, high),
			  aten_wide(b, low));
		x = b_convert(b, x, d);
	}
	return x;
}
OP(aten_diff){
	.schema = "aten.diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? "
		  "append=None) -> Tensor",
	.build = build_diff,
	.rounds_each = true,
	.sample = "f32[n=3, 4]; f32[3, 4], n=2, dim=0; f32[n=3, 4], dim=1, f32[n, 2], f32[n, 1]; "
		  "bool[4] of 0 1 1 0",
};

/* Combines the bits of all elements, as f64 or i64, by xor. */
static Node build_hash_tensor(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (!x.i || dtype_is_complex(node_dtype(b->g, x)) || aten_int(b, n, "mode") != 0)
		return b_error(b, "hash_tensor of this dtype or in this mode");
	uint32_t dims = aten_dims(b, n, "dim", node_rank(b->g, x));
	x = b_convert(b, x, dtype_is_float(node_dtype(b->g, x)) ? DT_f64 : DT_i64);
	return aten_reduce(b, REDUCE_XOR, aten_bitcast(b, x, DT_u64), dims, aten_keepdim(b, n));
}
OP(aten_hash_tensor){
	.schema = "aten.hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) "
		  "-> Tensor",
	.build = build_hash_tensor,
	.sample = "f32[n=3, 4]; i32[3, 4] in -99..99, dim=[1], keepdim=true",
};
