/* ATen reductions, scans and sorting. */
#include "ir/ops/aten_priv.h"

#include <math.h>

static uint32_t all_dims(const Build *b, Node x)
{
	return (1u << aten_rank(b, x)) - 1;
}

static bool keepdim(const Build *b, Node n)
{
	return op_arg_index(node_op(b->g, n), "keepdim") >= 0 && node_bool(b->g, n, "keepdim");
}

/* Operand in the dtype a sum or product is taken in: bool and ints count in i64. */
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
OP(aten_sum){
	.schema = "aten.sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
	.build = build_sum,
};

static Node build_sum_dim(Build *b, Node n)
{
	Node x = summand(b, n, arg(b, n, "self"));
	return aten_sum(b, x, aten_dims(b, n, "dim", aten_rank(b, x)), keepdim(b, n));
}
OP(aten_sum_dim_IntList){
	.schema = "aten.sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, "
		  "ScalarType? dtype=None) -> Tensor",
	.build = build_sum_dim,
};

/* Elements that are NaN count as 0 (or 1 for a count of the others). */
static Node build_nansum(Build *b, Node n)
{
	Node x = summand(b, n, arg(b, n, "self"));
	if (dtype_is_float(aten_dtype(b, x))) {
		Node nan = b_un(b, OP_isnan, x);
		x = b_select(b, nan, aten_like(b, x, 0), x);
	}
	return aten_sum(b, x, aten_dims(b, n, "dim", aten_rank(b, x)), keepdim(b, n));
}
OP(aten_nansum){
	.schema = "aten.nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
		  "dtype=None) -> Tensor",
	.build = build_nansum,
};

static Node build_prod(Build *b, Node n)
{
	Node x = summand(b, n, arg(b, n, "self"));
	return aten_reduce(b, REDUCE_PROD, x, all_dims(b, x), false);
}
OP(aten_prod){
	.schema = "aten.prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
	.build = build_prod,
};

static Node build_prod_dim(Build *b, Node n)
{
	Node x = summand(b, n, arg(b, n, "self"));
	return aten_reduce(b, REDUCE_PROD, x, aten_dims(b, n, "dim", aten_rank(b, x)),
			   keepdim(b, n));
}
OP(aten_prod_dim_int){
	.schema = "aten.prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? "
		  "dtype=None) -> Tensor",
	.build = build_prod_dim,
};

static Node mean(Build *b, Node n, uint32_t dims)
{
	Node x = arg(b, n, "self");
	DType d = aten_dtype_or(b, n, "dtype", aten_dtype(b, x));
	if (!x.i)
		return x;
	if (!dtype_is_float(d))
		return b_error(b, "mean of dtype %s, expected a floating-point dtype",
			       dtype_name(d));
	return aten_mean(b, b_convert(b, x, d), dims, keepdim(b, n));
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
};
OP(aten_mean_dim){
	.schema = "aten.mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? "
		  "dtype=None) -> Tensor",
	.build = build_mean_dim,
};

static Node build_nanmean(Build *b, Node n)
{
	Node x = summand(b, n, arg(b, n, "self"));
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, x));
	DType d = aten_dtype(b, x);
	x = aten_wide(b, x);
	Node nan = b_un(b, OP_isnan, x);
	Node zero = aten_like(b, x, 0), one = b_select(b, nan, zero, aten_like(b, x, 1));
	Node sum = aten_sum(b, b_select(b, nan, zero, x), dims, keepdim(b, n));
	Node y = b_bin(b, OP_div, sum, aten_sum(b, one, dims, keepdim(b, n)));
	return y.i ? b_convert(b, y, d) : y;
}
OP(aten_nanmean){
	.schema = "aten.nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, "
		  "ScalarType? dtype=None) -> Tensor",
	.build = build_nanmean,
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
};
OP(aten_count_nonzero){
	.schema = "aten.count_nonzero(Tensor self, int? dim=None) -> Tensor",
	.build = build_count_nonzero,
};

/* ---- and, or ---- */

/* u8 keeps its dtype, as ATen. */
static Node truth_reduce(Build *b, Node n, ReduceKind kind, uint32_t dims)
{
	Node x = arg(b, n, "self");
	Node y = aten_reduce(b, kind, aten_truth(b, x), dims, keepdim(b, n));
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
OP(aten_any){
	.schema = "aten.any(Tensor self) -> Tensor",
	.build = build_any,
};
OP(aten_any_dim){
	.schema = "aten.any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
	.build = build_any_dim,
};
OP(aten_any_dims){
	.schema = "aten.any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
	.build = build_any_dim,
};
OP(aten_all){
	.schema = "aten.all(Tensor self) -> Tensor",
	.build = build_all,
};
OP(aten_all_dim){
	.schema = "aten.all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
	.build = build_all_dim,
};
OP(aten_all_dims){
	.schema = "aten.all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
	.build = build_all_dim,
};

/* ---- extremes ---- */

static Node build_amax(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return aten_reduce(b, REDUCE_MAX, x, aten_dims(b, n, "dim", aten_rank(b, x)),
			   keepdim(b, n));
}
static Node build_amin(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return aten_reduce(b, REDUCE_MIN, x, aten_dims(b, n, "dim", aten_rank(b, x)),
			   keepdim(b, n));
}
static Node build_max(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return aten_reduce(b, REDUCE_MAX, x, all_dims(b, x), false);
}
static Node build_min(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return aten_reduce(b, REDUCE_MIN, x, all_dims(b, x), false);
}
static Node build_aminmax(Build *b, Node n)
{
	Node x = arg(b, n, "self"), r[2];
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, x));
	r[0] = aten_reduce(b, REDUCE_MIN, x, dims, keepdim(b, n));
	r[1] = aten_reduce(b, REDUCE_MAX, x, dims, keepdim(b, n));
	return b_tuple(b, r, 2);
}
OP(aten_amax){
	.schema = "aten.amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
	.build = build_amax,
};
OP(aten_amin){
	.schema = "aten.amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
	.build = build_amin,
};
OP(aten_max){
	.schema = "aten.max(Tensor self) -> Tensor",
	.build = build_max,
};
OP(aten_min){
	.schema = "aten.min(Tensor self) -> Tensor",
	.build = build_min,
};
OP(aten_aminmax){
	.schema = "aten.aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor "
		  "min, Tensor max)",
	.build = build_aminmax,
};

static Node arg_of(Build *b, Node x, bool max, uint32_t dim, bool keep)
{
	if (aten_rank(b, x) == 0)
		return x.i ? b_full_int(b, DT_i64, 0, 0, NULL) : x;
	if (aten_dtype(b, x) == DT_bool)
		x = b_convert(b, x, DT_u8);
	Node y = b_arg_reduce(b, max, x, dim);
	return keep ? b_unsqueeze(b, y, (int)dim) : y;
}

static Node extreme_dim(Build *b, Node n, bool max)
{
	Node x = arg(b, n, "self"), r[2];
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	r[0] = aten_rank(b, x)
		       ? aten_reduce(b, max ? REDUCE_MAX : REDUCE_MIN, x, 1u << dim, keepdim(b, n))
		       : x;
	r[1] = arg_of(b, x, max, dim, keepdim(b, n));
	return b_tuple(b, r, 2);
}
static Node build_max_dim(Build *b, Node n)
{
	return extreme_dim(b, n, true);
}
static Node build_min_dim(Build *b, Node n)
{
	return extreme_dim(b, n, false);
}
OP(aten_max_dim){
	.schema = "aten.max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, "
		  "Tensor indices)",
	.build = build_max_dim,
};
OP(aten_min_dim){
	.schema = "aten.min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, "
		  "Tensor indices)",
	.build = build_min_dim,
};

static Node arg_extreme(Build *b, Node n, bool max)
{
	Node x = arg(b, n, "self");
	Shape s = aten_shape(b, x);
	if (aten_has(b, n, "dim"))
		return arg_of(b, x, max, b_wrap_dim(b, aten_int(b, n, "dim"), s.rank),
			      keepdim(b, n));
	Node flat = x.i ? b_reshape(b, x, 1, (Sym[]){shape_numel(b, &s)}) : x;
	Node y = arg_of(b, flat, max, 0, false);
	if (!keepdim(b, n))
		return y;
	for (uint32_t k = 0; k < s.rank; k++)
		s.dim[k] = b_int(b, 1);
	return aten_reshape(b, y, &s);
}
static Node build_argmax(Build *b, Node n)
{
	return arg_extreme(b, n, true);
}
static Node build_argmin(Build *b, Node n)
{
	return arg_extreme(b, n, false);
}
OP(aten_argmax){
	.schema = "aten.argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
	.build = build_argmax,
};
OP(aten_argmin){
	.schema = "aten.argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
	.build = build_argmin,
};

/* ---- variance, norms ---- */

/* ATen's mean beside a variance is updated element by element: once infinite, it is NaN after the next one. */
static Node running_mean(Build *b, Node x, uint32_t dims, Node m)
{
	Node last = x;
	for (uint32_t k = 0; k < aten_rank(b, x); k++) {
		if (!(dims >> k & 1))
			continue;
		if (sym_le(b_syms(b), b_int(b, 1), b_dim(b, x, (int)k)) != YES)
			return m;
		last = aten_slice(b, last, k, -1, INT64_MAX);
	}
	Node lost = b_bin(b, OP_bit_and, b_un(b, OP_isinf, m), b_un(b, OP_isfinite, last));
	return b_select(b, lost, aten_like(b, m, (double)NAN), m);
}

static Node moments(Build *b, Node n, uint32_t dims, double correction, bool root, bool pair)
{
	Node x = arg(b, n, "self"), m;
	DType d = aten_dtype(b, x);
	uint32_t drop = keepdim(b, n) ? 0 : dims;
	if (!dtype_is_float(d))
		return b_error(b, "variance of dtype %s, expected a floating-point dtype",
			       dtype_name(d));
	/* In f64 as ATen: squares of what f32 holds overflow it. */
	Node v = aten_var(b, b_convert(b, x, DT_f64), dims, correction, &m);
	if (root)
		v = b_un(b, OP_sqrt, v);
	v = aten_squeeze_mask(b, v, drop);
	if (!pair)
		return v.i ? b_convert(b, v, d) : v;
	m = aten_squeeze_mask(b, running_mean(b, x, dims, m), drop);
	v = v.i ? b_convert(b, v, d) : v;
	m = m.i ? b_convert(b, m, d) : m;
	return b_tuple(b, (Node[]){v, m}, 2);
}

static Node moments_dim(Build *b, Node n, bool root, bool pair)
{
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, arg(b, n, "self")));
	return moments(b, n, dims, node_bool(b->g, n, "unbiased"), root, pair);
}
static Node moments_correction(Build *b, Node n, bool root, bool pair)
{
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, arg(b, n, "self")));
	double c = aten_has(b, n, "correction") ? node_float(b->g, n, "correction") : 1;
	return moments(b, n, dims, c, root, pair);
}
static Node moments_all(Build *b, Node n, bool root, bool pair)
{
	uint32_t dims = all_dims(b, arg(b, n, "self"));
	return moments(b, n, dims, node_bool(b->g, n, "unbiased"), root, pair);
}
static Node build_var(Build *b, Node n)
{
	return moments_all(b, n, false, false);
}
static Node build_std(Build *b, Node n)
{
	return moments_all(b, n, true, false);
}
static Node build_var_dim(Build *b, Node n)
{
	return moments_dim(b, n, false, false);
}
static Node build_std_dim(Build *b, Node n)
{
	return moments_dim(b, n, true, false);
}
static Node build_var_c(Build *b, Node n)
{
	return moments_correction(b, n, false, false);
}
static Node build_std_c(Build *b, Node n)
{
	return moments_correction(b, n, true, false);
}
static Node build_var_mean(Build *b, Node n)
{
	return moments_all(b, n, false, true);
}
static Node build_std_mean(Build *b, Node n)
{
	return moments_all(b, n, true, true);
}
static Node build_var_mean_dim(Build *b, Node n)
{
	return moments_dim(b, n, false, true);
}
static Node build_std_mean_dim(Build *b, Node n)
{
	return moments_dim(b, n, true, true);
}
static Node build_var_mean_c(Build *b, Node n)
{
	return moments_correction(b, n, false, true);
}
static Node build_std_mean_c(Build *b, Node n)
{
	return moments_correction(b, n, true, true);
}
OP(aten_var){
	.schema = "aten.var(Tensor self, bool unbiased=True) -> Tensor",
	.build = build_var,
};
OP(aten_std){
	.schema = "aten.std(Tensor self, bool unbiased=True) -> Tensor",
	.build = build_std,
};
OP(aten_var_dim){
	.schema = "aten.var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool "
		  "keepdim=False) -> Tensor",
	.build = build_var_dim,
};
OP(aten_std_dim){
	.schema = "aten.std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool "
		  "keepdim=False) -> Tensor",
	.build = build_std_dim,
};
OP(aten_var_correction){
	.schema = "aten.var.correction(Tensor self, int[1]? dim=None, *, Scalar? "
		  "correction=None, bool keepdim=False) -> Tensor",
	.build = build_var_c,
};
OP(aten_std_correction){
	.schema = "aten.std.correction(Tensor self, int[1]? dim=None, *, Scalar? "
		  "correction=None, bool keepdim=False) -> Tensor",
	.build = build_std_c,
};
OP(aten_var_mean){
	.schema = "aten.var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
	.build = build_var_mean,
};
OP(aten_std_mean){
	.schema = "aten.std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
	.build = build_std_mean,
};
OP(aten_var_mean_dim){
	.schema = "aten.var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool "
		  "keepdim=False) -> (Tensor, Tensor)",
	.build = build_var_mean_dim,
};
OP(aten_std_mean_dim){
	.schema = "aten.std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool "
		  "keepdim=False) -> (Tensor, Tensor)",
	.build = build_std_mean_dim,
};
OP(aten_var_mean_correction){
	.schema = "aten.var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? "
		  "correction=None, bool keepdim=False) -> (Tensor, Tensor)",
	.build = build_var_mean_c,
};
OP(aten_std_mean_correction){
	.schema = "aten.std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? "
		  "correction=None, bool keepdim=False) -> (Tensor, Tensor)",
	.build = build_std_mean_c,
};

Node aten_vector_norm(Build *b, Node x, double p, uint32_t dims, bool keep)
{
	if (!x.i)
		return x;
	if (p == 2) {
		Node sq = b_bin(b, OP_mul, x, x);
		return b_un(b, OP_sqrt, aten_sum(b, sq, dims, keep));
	}
	Node a = b_un(b, OP_abs, x);
	if (isinf(p))
		return aten_reduce(b, p > 0 ? REDUCE_MAX : REDUCE_MIN, a, dims, keep);
	if (p == 1)
		return aten_sum(b, a, dims, keep);
	if (p == 0)
		return aten_sum(b, b_convert(b, b_bin_scalar(b, OP_ne, a, 0), aten_dtype(b, x)),
				dims, keep);
	a = aten_sum(b, b_bin_scalar(b, OP_pow, a, p), dims, keep);
	return b_bin_scalar(b, OP_pow, a, 1 / p);
}

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
	Node y = aten_vector_norm(b, aten_wide(b, b_convert(b, x, d)), p, dims, keep);
	return y.i ? b_convert(b, y, d) : y;
}

static Node build_vector_norm(Build *b, Node n)
{
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, arg(b, n, "self")));
	return norm(b, n, order(b, n, "ord"), dims, keepdim(b, n));
}
OP(aten_linalg_vector_norm){
	.schema = "aten.linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool "
		  "keepdim=False, *, ScalarType? dtype=None) -> Tensor",
	.build = build_vector_norm,
};

static Node build_norm(Build *b, Node n)
{
	return norm(b, n, order(b, n, "p"), all_dims(b, arg(b, n, "self")), false);
}
OP(aten_norm_Scalar){
	.schema = "aten.norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
	.build = build_norm,
};

static Node build_norm_dim(Build *b, Node n)
{
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, arg(b, n, "self")));
	return norm(b, n, order(b, n, "p"), dims, keepdim(b, n));
}
OP(aten_norm_ScalarOpt_dim){
	.schema = "aten.norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool "
		  "keepdim=False) -> Tensor",
	.build = build_norm_dim,
};
OP(aten_norm_ScalarOpt_dim_dtype){
	.schema = "aten.norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool "
		  "keepdim, *, ScalarType dtype) -> Tensor",
	.build = build_norm_dim,
};

static Node build_dist(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "self"));
	Node d = b_bin(b, OP_sub, x, aten_to_float(b, arg(b, n, "other")));
	return aten_vector_norm(b, d, order(b, n, "p"), all_dims(b, d), false);
}
OP(aten_dist){
	.schema = "aten.dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
	.build = build_dist,
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
	return aten_row_distance(b, arg(b, n, "x1"), arg(b, n, "x2"), p, eps, keepdim(b, n));
}
OP(aten_pairwise_distance){
	.schema = "aten.pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, "
		  "bool keepdim=False) -> Tensor",
	.build = build_pairwise_distance,
};

static Node build_cosine_similarity(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "x1")), y = aten_to_float(b, arg(b, n, "x2"));
	Node xy = b_bin(b, OP_mul, x, y);
	uint32_t rank = aten_rank(b, xy);
	double eps = node_float(b->g, n, "eps");
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
	.build = build_cosine_similarity,
};

/* ---- softmax and log-sum-exp ---- */

static Node softmax(Build *b, Node n, const char *self, bool log)
{
	Node x = arg(b, n, self);
	bool typed = op_arg_index(node_op(b->g, n), "dtype") >= 0;
	if (!x.i)
		return x;
	DType d = typed ? aten_dtype_or(b, n, "dtype", node_dtype(b->g, x)) : node_dtype(b->g, x);
	x = aten_to_float(b, b_convert(b, x, d));
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	return log ? aten_log_softmax(b, x, dim) : aten_softmax(b, x, dim);
}
static Node build_softmax(Build *b, Node n)
{
	return softmax(b, n, "self", false);
}
static Node build_log_softmax(Build *b, Node n)
{
	return softmax(b, n, "self", true);
}
OP(aten_softmax_int){
	.schema = "aten.softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
	.build = build_softmax,
};
OP(aten_special_softmax){
	.schema = "aten.special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
	.build = build_softmax,
};
OP(aten__softmax){
	.schema = "aten._softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
	.build = build_softmax,
};
OP(aten_log_softmax_int){
	.schema = "aten.log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
	.build = build_log_softmax,
};
OP(aten_special_log_softmax){
	.schema = "aten.special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> "
		  "Tensor",
	.build = build_log_softmax,
};
OP(aten__log_softmax){
	.schema = "aten._log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
	.build = build_log_softmax,
};

static Node build_safe_softmax(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (aten_rank(b, x) == 0)
		return build_softmax(b, n);
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	Node high = aten_reduce(b, REDUCE_MAX, x, 1u << dim, true);
	Node masked = b_bin_scalar(b, OP_eq, high, -(double)INFINITY);
	Node y = build_softmax(b, n);
	return b_select(b, masked, aten_like(b, y, 0), y);
}
OP(aten__safe_softmax){
	.schema = "aten._safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
	.build = build_safe_softmax,
};

static Node build_logsumexp(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "self"));
	uint32_t dims = aten_dims(b, n, "dim", aten_rank(b, x)), drop = keepdim(b, n) ? 0 : dims;
	DType d = aten_dtype(b, x);
	x = aten_wide(b, x);
	Node high = aten_reduce(b, REDUCE_MAX, x, dims, true);
	/* An infinite maximum would give inf - inf. */
	Node finite = b_un(b, OP_isfinite, high);
	high = b_select(b, finite, high, aten_like(b, x, 0));
	Node sum = aten_sum(b, b_un(b, OP_exp, b_bin(b, OP_sub, x, high)), dims, true);
	Node y = b_bin(b, OP_add, b_un(b, OP_log, sum), high);
	y = aten_squeeze_mask(b, y, drop);
	return y.i ? b_convert(b, y, d) : y;
}
OP(aten_logsumexp){
	.schema = "aten.logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
	.build = build_logsumexp,
};
OP(aten_special_logsumexp){
	.schema = "aten.special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
	.build = build_logsumexp,
};

/* ---- scans ---- */

static Node cumulative(Build *b, Node n, const char *kind)
{
	Node x = summand(b, n, arg(b, n, "self"));
	if (aten_rank(b, x) == 0)
		return x;
	return b_cumulative(b, kind, x, b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x)),
			    false);
}
static Node build_cumsum(Build *b, Node n)
{
	return cumulative(b, n, "sum");
}
static Node build_cumprod(Build *b, Node n)
{
	return cumulative(b, n, "prod");
}
OP(aten_cumsum){
	.schema = "aten.cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
	.build = build_cumsum,
};
OP(aten_cumprod){
	.schema = "aten.cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
	.build = build_cumprod,
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
	.build = build_logcumsumexp,
};

static Node build_diff(Build *b, Node n)
{
	Node x = arg(b, n, "self"), before = arg(b, n, "prepend"), after = arg(b, n, "append");
	int64_t times = aten_int(b, n, "n");
	if (aten_rank(b, x) == 0)
		return b_error(b, "diff of a tensor without dims");
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
		x = b_bin(b, aten_dtype(b, x) == DT_bool ? OP_bit_xor : OP_sub, high, low);
	}
	return x;
}
OP(aten_diff){
	.schema = "aten.diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? "
		  "append=None) -> Tensor",
	.build = build_diff,
};

/* ---- sorting ---- */

static Node sort(Build *b, Node x, uint32_t dim, bool descending, bool stable)
{
	if (aten_rank(b, x) > 0)
		return b_sort(b, x, dim, descending, stable);
	return x.i ? b_tuple(b, (Node[]){x, b_full_int(b, DT_i64, 0, 0, NULL)}, 2) : x;
}

static Node build_sort(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	return sort(b, x, dim, node_bool(b->g, n, "descending"), true);
}
OP(aten_sort){
	.schema = "aten.sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, "
		  "Tensor indices)",
	.build = build_sort,
};
OP(aten_sort_stable){
	.schema = "aten.sort.stable(Tensor self, *, bool? stable, int dim=-1, bool "
		  "descending=False) -> (Tensor values, Tensor indices)",
	.build = build_sort,
};

static Node build_argsort(Build *b, Node n)
{
	return b_get(b, build_sort(b, n), 1);
}
OP(aten_argsort){
	.schema = "aten.argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
	.build = build_argsort,
};
OP(aten_argsort_stable){
	.schema = "aten.argsort.stable(Tensor self, *, bool stable, int dim=-1, bool "
		  "descending=False) -> Tensor",
	.build = build_argsort,
};

static Node build_msort(Build *b, Node n)
{
	return b_get(b, sort(b, arg(b, n, "self"), 0, false, true), 0);
}
OP(aten_msort){
	.schema = "aten.msort(Tensor self) -> Tensor",
	.build = build_msort,
};

static Node build_topk(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	Sym k = node_sym(b->g, n, "k");
	Node s = sort(b, x, dim, node_bool(b->g, n, "largest"), true), r[2];
	if (aten_rank(b, x) == 0)
		return s;
	aten_require_le(b, k, b_dim(b, x, (int)dim), "topk");
	for (uint32_t j = 0; j < 2; j++)
		r[j] = b_slice(b, b_get(b, s, j), (int)dim, b_int(b, 0), k, b_int(b, 1));
	return b_tuple(b, r, 2);
}
OP(aten_topk){
	.schema = "aten.topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool "
		  "sorted=True) -> (Tensor values, Tensor indices)",
	.build = build_topk,
};

/* The k-th smallest, 1-based. */
static Node kth(Build *b, Node n, Node x, uint32_t dim, Sym k)
{
	Node s = sort(b, x, dim, false, true), r[2];
	if (aten_rank(b, x) == 0)
		return s;
	for (uint32_t j = 0; j < 2; j++) {
		r[j] = b_select_dim(b, b_get(b, s, j), (int)dim, sym_addi(b_syms(b), k, -1));
		if (keepdim(b, n))
			r[j] = b_unsqueeze(b, r[j], (int)dim);
	}
	return b_tuple(b, r, 2);
}

static Node build_kthvalue(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	return kth(b, n, x, dim, node_sym(b->g, n, "k"));
}
OP(aten_kthvalue){
	.schema = "aten.kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> "
		  "(Tensor values, Tensor indices)",
	.build = build_kthvalue,
};

/* The bits of all elements, as f64 or i64, combined by xor. */
static Node build_hash_tensor(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (!x.i || dtype_is_complex(node_dtype(b->g, x)) || aten_int(b, n, "mode") != 0)
		return b_error(b, "hash_tensor of this dtype or in this mode");
	uint32_t dims = aten_dims(b, n, "dim", node_rank(b->g, x));
	x = b_convert(b, x, dtype_is_float(node_dtype(b->g, x)) ? DT_f64 : DT_i64);
	Attr attr[] = {attr_none(), attr_dtype(DT_u64)};
	return aten_reduce(b, REDUCE_XOR, b_node(b, OP_bitcast, &x, 1, attr, 2), dims,
			   keepdim(b, n));
}
OP(aten_hash_tensor){
	.schema = "aten.hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) "
		  "-> Tensor",
	.build = build_hash_tensor,
};
