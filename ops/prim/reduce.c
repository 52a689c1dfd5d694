/* Reductions, their index form, and running reductions. */
#include <math.h>
#include <string.h>

#include "ops/prim/priv.h"
#include "ops/prim/rules_priv.h"
#include "ops/rules/batch.h"

enum { BLOCK = 1024 };

static bool less_i64(DType d, int64_t a, int64_t b)
{
	return d == DT_u64 ? (uint64_t)a < (uint64_t)b : a < b;
}

/* ---- reduce ---- */

static bool shape_reduce(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t dim[MAX_RANK], n, gone = 0, rank = 0;
	ReduceKind kind;
	Sym left[MAX_RANK];
	DType result;
	TRY(infer_combiner(f, "kind", COMBINES_DIMS, x.dtype, &kind));
	TRY(infer_dims(f, "dims", x.n, dim, &n));
	TRY(infer_acc(f, x.dtype, &result));
	for (uint32_t k = 0; k < n; k++)
		gone |= 1u << dim[k];
	for (uint32_t k = 0; k < x.n; k++) {
		if (!(gone >> k & 1))
			left[rank++] = x.dim[k];
	}
	return infer_result(f, result, rank, left);
}
INFER(reduce)

/* Returns the operand with the reduced dims last; *n is the product of their extents. */
static Tensor reduced_last(EvalCtx *e, const Tensor *x, const int64_t *dim, uint32_t count,
                           int64_t *n)
{
	uint32_t perm[MAX_RANK], at = 0, gone = 0;
	*n = 1;
	for (uint32_t k = 0; k < count; k++) {
		gone |= 1u << dim[k];
		*n *= x->dim[dim[k]];
	}
	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t k = 0; k < x->rank; k++) {
			if ((gone >> k & 1) == pass)
				perm[at++] = k;
		}
	}
	for (uint32_t k = 0; k < x->rank; k++) {
		if (perm[k] != k)
			return eval_permuted(e, x, perm);
	}
	return *x;
}

static void reduce_rows_f64(ReduceKind kind, const Tensor *x, int64_t n, Tensor *out)
{
	double block[BLOCK];
	for (int64_t r = 0; r < tensor_numel(out); r++) {
		double acc = reduce_identity(kind, out->dtype).f;
		for (int64_t i = 0; i < n; i += BLOCK) {
			int64_t count = n - i < BLOCK ? n - i : BLOCK;
			tensor_read_f64(x, r * n + i, count, block);
			for (int64_t j = 0; j < count; j++)
				acc = reduce_f64(kind, acc, block[j]);
		}
		tensor_set_f64(out, r, acc);
	}
}

static void reduce_rows_i64(ReduceKind kind, const Tensor *x, int64_t n, Tensor *out)
{
	int64_t block[BLOCK];
	for (int64_t r = 0; r < tensor_numel(out); r++) {
		int64_t acc = reduce_identity(kind, out->dtype).i;
		for (int64_t i = 0; i < n; i += BLOCK) {
			int64_t count = n - i < BLOCK ? n - i : BLOCK;
			tensor_read_i64(x, r * n + i, count, block);
			for (int64_t j = 0; j < count; j++)
				acc = reduce_i64(kind, x->dtype, acc, block[j]);
		}
		tensor_set_i64(out, r, acc);
	}
}

/* Reduces complex rows to their sum or product. */
static void reduce_rows_complex(ReduceKind kind, const Tensor *x, int64_t n, Tensor *out)
{
	Tensor from = tensor_flat_real(x), to = tensor_flat_real(out);
	for (int64_t r = 0; r < tensor_numel(out); r++) {
		double re = kind == REDUCE_PROD, im = 0;
		for (int64_t i = r * n; i < (r + 1) * n; i++) {
			double a = tensor_f64(&from, 2 * i), b = tensor_f64(&from, 2 * i + 1);
			if (kind == REDUCE_SUM) {
				re += a;
				im += b;
				continue;
			}
			double t = re * a - im * b;
			im = re * b + im * a;
			re = t;
		}
		tensor_set_f64(&to, 2 * r, re);
		tensor_set_f64(&to, 2 * r + 1, im);
	}
}

static bool eval_reduce(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	ReduceKind kind;
	int64_t dim[MAX_RANK], count;
	uint32_t ndim;
	if (!reduce_parse(node_str(g, n, "kind"), &kind))
		return eval_error(e, g, n, "unknown kind");
	TRY(eval_ints(e, g, n, "dims", dim, &ndim));
	Tensor x = reduced_last(e, in, dim, ndim, &count);
	if (dtype_is_complex(x.dtype))
		reduce_rows_complex(kind, &x, count, out);
	else if (eval_as_float(x.dtype))
		reduce_rows_f64(kind, &x, count, out);
	else
		reduce_rows_i64(kind, &x, count, out);
	return true;
}

OP(reduce) {
	.parts = parts_reduce,
	.linear = LINEAR_TOGETHER,
	.linear_if = is_sum,
	.adjoint = adjoint_reduce,
	.tangent = tangent_extremum,
	.tangent_if = is_extremum,
	.schema = "reduce(Tensor x, *, str kind, int[] dims, ScalarType acc) -> Tensor",
	.doc = "dims combined by sum, prod, max, min (NaN wins), and, or, xor; ints and bool give "
	       "acc",
	.folds = FOLDS,
	.dims = DIMS_REDUCED,
	.infer = infer_reduce,
	.eval = eval_reduce,
	.batch = batch_dims,
	.lower = {.role = LOWER_REDUCE, .fuses = FUSE_ROW},
	.accumulates = true,
	.sample = "f32[2, 3, 4], kind=\"sum\", dims=[0, 2], acc=f32; "
		  "f16[3, 4], kind=\"max\", dims=[1], acc=f32; i32[3, 4] in -8..8, kind=\"sum\", "
		  "dims=[0], acc=i64; "
		  "f32[0, 2], kind=\"prod\", dims=[0], acc=f32",
};

/* ---- arg_reduce ---- */

static bool shape_arg_reduce(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t at, rank = 0;
	ReduceKind kind;
	Sym dim[MAX_RANK];
	TRY(infer_combiner(f, "kind", COMBINES_PLACES, x.dtype, &kind));
	TRY(infer_dim(f, "dim", x.n, &at));
	TRY(infer_at_least(f, "the reduced extent", x.dim[at], 1));
	for (uint32_t k = 0; k < x.n; k++) {
		if (k != at)
			dim[rank++] = x.dim[k];
	}
	return infer_result(f, DT_i64, rank, dim);
}
INFER(arg_reduce)

static int64_t arg_f64(bool max, const double *x, int64_t n)
{
	int64_t best = 0;
	for (int64_t i = 0; i < n; i++) {
		if (isnan(x[i]))
			return i;
		if (max ? x[i] > x[best] : x[i] < x[best])
			best = i;
	}
	return best;
}

static int64_t arg_i64(bool max, DType d, const int64_t *x, int64_t n)
{
	int64_t best = 0;
	for (int64_t i = 1; i < n; i++) {
		if (max ? less_i64(d, x[best], x[i]) : less_i64(d, x[i], x[best]))
			best = i;
	}
	return best;
}

static bool eval_arg_reduce(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	bool max = strcmp(node_str(g, n, "kind"), "max") == 0;
	int64_t dim, count;
	TRY(eval_int(e, g, n, "dim", &dim));
	Tensor x = reduced_last(e, in, &dim, 1, &count);
	int64_t rows = tensor_numel(out);
	if (count == 0 && rows > 0)
		return eval_error(e, g, n, "dimension %lld is empty", (long long)dim);
	double *floats = EVAL_ARRAY(e, double, count);
	int64_t *ints = EVAL_ARRAY(e, int64_t, count);
	for (int64_t r = 0; r < rows; r++) {
		int64_t best;
		if (eval_as_float(x.dtype)) {
			tensor_read_f64(&x, r * count, count, floats);
			best = arg_f64(max, floats, count);
		} else {
			tensor_read_i64(&x, r * count, count, ints);
			best = arg_i64(max, x.dtype, ints, count);
		}
		tensor_set_i64(out, r, best);
	}
	return true;
}

OP(arg_reduce) {
	.schema = "arg_reduce(Tensor x, *, str kind, int dim) -> Tensor",
	.doc = "smallest index of the max or min along dim; NaN wins",
	.dims = DIMS_REDUCED,
	.infer = infer_arg_reduce,
	.eval = eval_arg_reduce,
	.batch = batch_dim,
	.lower = {.role = LOWER_ROOT, .axes = 1},
	.sample = "f32[3, 4], kind=\"max\", dim=1; i32[3, 4] in -2..2, kind=\"min\", dim=0",
};

/* ---- cumulative ---- */

static bool shape_cumulative(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t at;
	ReduceKind kind;
	TRY(infer_combiner(f, "kind", COMBINES_RUNS, x.dtype, &kind));
	TRY(infer_dim(f, "dim", x.n, &at));
	if (dtype_is_complex(x.dtype))
		return infer_fail(f, "%s of %s", reduce_name(kind), dtype_name(x.dtype));
	return infer_result(f, x.dtype, x.n, x.dim);
}
INFER(cumulative)

/* Runs along one lane, front to back or back to front, in place. */
static void run_lane(ReduceKind kind, DType d, bool reverse, double *f, int64_t *v, int64_t n)
{
	int64_t step = reverse ? -1 : 1;
	for (int64_t i = reverse ? n - 2 : 1; i >= 0 && i < n; i += step) {
		if (f)
			f[i] = reduce_f64(kind, f[i - step], f[i]);
		else if (v)
			v[i] = reduce_i64(kind, d, v[i - step], v[i]);
	}
}

static bool eval_cumulative(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	bool reverse = node_bool(g, n, "reverse"), floats = eval_as_float(in->dtype);
	int64_t dim, count;
	uint32_t perm[MAX_RANK], inverse[MAX_RANK];
	ReduceKind kind;
	if (!reduce_parse(node_str(g, n, "kind"), &kind))
		return eval_error(e, g, n, "unknown kind");
	TRY(eval_int(e, g, n, "dim", &dim));
	Tensor x = reduced_last(e, in, &dim, 1, &count), y = x;
	y.data = arena_alloc(e->arena, tensor_bytes(&x));
	double *f = floats ? EVAL_ARRAY(e, double, count) : NULL;
	int64_t *v = floats ? NULL : EVAL_ARRAY(e, int64_t, count);
	for (int64_t at = 0; at < tensor_numel(&x); at += count) {
		if (floats)
			tensor_read_f64(&x, at, count, f);
		else
			tensor_read_i64(&x, at, count, v);
		run_lane(kind, x.dtype, reverse, f, v, count);
		if (floats)
			tensor_write_f64(&y, at, count, f);
		else
			tensor_write_i64(&y, at, count, v);
	}
	perm_dim_last(in->rank, (uint32_t)dim, perm);
	perm_inverse(in->rank, perm, inverse);
	Tensor back = eval_permuted(e, &y, inverse);
	copy_elems(out, &back);
	return true;
}

OP(cumulative) {
	.linear = LINEAR_TOGETHER,
	.linear_if = is_sum,
	.adjoint = adjoint_cumulative,
	.tangent = tangent_cumulative,
	.tangent_if = is_logaddexp,
	.schema = "cumulative(Tensor x, *, str kind, int dim, bool reverse) -> Tensor",
	.doc = "running sum, prod, max, min (NaN wins) or logaddexp along dim",
	.folds = FOLDS,
	.infer = infer_cumulative,
	.eval = eval_cumulative,
	.batch = batch_dim,
	.lower = {.role = LOWER_ROOT},
	.accumulates = true,
	.sample = "f32[3, 4], kind=\"sum\", dim=1, reverse=false; "
		  "f32[3, 4], kind=\"logaddexp\", dim=0, reverse=true; "
		  "i64[3, 4] in -8..8, kind=\"max\", dim=0, reverse=false",
};
