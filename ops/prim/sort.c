/* sort along one dim: values and where they came from; and where values stand among sorted ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/prim/priv.h"
#include "ops/prim/rules_priv.h"
#include "ops/rules/batch.h"

static const Sym *shape_with(Infer *f, Type x, uint32_t at, Sym extent)
{
	Sym *dim = ARENA_ARRAY(f->g->ir->ctx->scratch, Sym, x.n);
	memcpy(dim, x.dim, x.n * sizeof *dim);
	dim[at] = extent;
	return dim;
}

static bool shape_sort(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t at;
	TRY(infer_dim(f, "dim", x.n, &at));
	if (dtype_is_complex(x.dtype))
		return infer_fail(f, "%s has no order", dtype_name(x.dtype));
	Ir *ir = f->g->ir;
	TypeId elem[2];
	if (infer_attr(f, "first")->kind != ATTR_none) {
		Sym first;
		TRY(infer_sym(f, "first", &first));
		if (sym_le(f->syms, sym_int(f->syms, 0), first) == NO ||
		    sym_le(f->syms, first, x.dim[at]) == NO)
			return infer_fail(f, "argument first: expected 0 to %s, got %s",
					  sym_str(f->syms, x.dim[at]), sym_str(f->syms, first));
		TRY(infer_at_least(f, "argument first", first, 0) &&
		    infer_le(f, "argument first", first, x.dim[at]));
		x.dim = shape_with(f, x, at, first);
	}
	elem[0] = ir_type(ir, x.dtype, x.n, x.dim);
	elem[1] = ir_type(ir, DT_i64, x.n, x.dim);
	f->type = ir_tuple(ir, 2, elem);
	return true;
}
INFER(sort)

/* A key whose integer order is the sort order, ascending. */
typedef struct {
	int64_t key, index;
} SortItem;

static int compare_items(const void *a, const void *b)
{
	const SortItem *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Returns an integer that orders doubles: -0 equals 0 and every NaN comes last. */
static int64_t key_of_f64(double v)
{
	if (isnan(v))
		return INT64_MAX;
	if (v == 0)
		return 0;
	int64_t bits;
	memcpy(&bits, &v, sizeof bits);
	return bits < 0 ? INT64_MIN - bits : bits;
}

static void read_keys(const Tensor *x, int64_t first, int64_t n, bool descending, SortItem *item)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t key;
		if (eval_as_float(x->dtype))
			key = key_of_f64(tensor_f64(x, first + i));
		else
			key = tensor_i64(x, first + i);
		if (x->dtype == DT_u64)
			key ^= INT64_MIN;
		item[i] = (SortItem){descending ? ~key : key, i};
	}
}

/* Sorts. Ties keep their order always, so `stable` needs nothing more. */
static bool eval_sort(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	bool descending = node_bool(g, n, "descending");
	int64_t dim;
	uint32_t perm[MAX_RANK], inverse[MAX_RANK];
	TRY(eval_int(e, g, n, "dim", &dim));
	perm_dim_last(in->rank, (uint32_t)dim, perm);
	perm_inverse(in->rank, perm, inverse);
	Tensor x = eval_permuted(e, in, perm), values = x, index;
	int64_t count = in->dim[dim], total = tensor_numel(in), first = out[0].dim[dim];
	size_t size = dtype_size(in->dtype);
	if (first > count)
		return eval_error(e, g, n, "the first %lld of %lld elements", (long long)first,
				  (long long)count);
	values.dim[x.rank - 1] = first;
	index = values;
	index.dtype = DT_i64;
	values.data = arena_alloc(e->arena, tensor_bytes(&values));
	index.data = arena_alloc(e->arena, tensor_bytes(&index));
	SortItem *item = EVAL_ARRAY(e, SortItem, count);
	for (int64_t at = 0, to = 0; at < total; at += count, to += first) {
		read_keys(&x, at, count, descending, item);
		qsort(item, (size_t)count, sizeof *item, compare_items);
		for (int64_t i = 0; i < first; i++) {
			memcpy(elem_at(&values, to + i), elem_at(&x, at + item[i].index), size);
			tensor_set_i64(&index, to + i, item[i].index);
		}
	}
	values = eval_permuted(e, &values, inverse);
	index = eval_permuted(e, &index, inverse);
	copy_elems(&out[0], &values);
	copy_elems(&out[1], &index);
	return true;
}

/* Puts the cotangents back to where each value came from. */
static bool adjoint_sort(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node x = node_in(b->g, n, 0);
	(void)want;
	if (!ct[0].i)
		return true;
	Node from = b_get(b, n, 1);
	g[0] = rule_scatter_along(b, b_zeros_like(b, x), from, ct[0],
				  (uint32_t)node_int(b->g, n, "dim"), "set", true);
	return g[0].i;
}

OP(sort) {
	.adjoint = adjoint_sort,
	.schema = "sort(Tensor x, *, int dim, bool descending, bool stable, SymInt? first=None) -> "
		  "(Tensor values, Tensor index)",
	.doc = "sorted along dim, or the first elements of that; NaN is the largest; "
	       "ties keep their order when stable",
	.infer = infer_sort,
	.eval = eval_sort,
	.batch = batch_dim,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.sample = "f32[3, 5], dim=1, descending=false, stable=true; "
		  "i32[4, 3] in -2..2, dim=0, descending=true, stable=true; "
		  "f32[3, n=7] of 3 nan 1 -0 0 5 nan, dim=1, descending=true, stable=true, "
		  "first=3; f32[n=9, 2] in -2..2, dim=0, descending=false, stable=true, first=n",
};

/* ---- searchsorted ---- */

static bool shape_searchsorted(Infer *f)
{
	Type sorted = infer_in(f, 0), x = infer_in(f, 1);
	TRY(infer_same_dtype(f, 0, 1));
	if (dtype_is_complex(x.dtype))
		return infer_fail(f, "%s has no order", dtype_name(x.dtype));
	if (sorted.n == 0 || sorted.n - 1 > x.n)
		return infer_fail(f, "rows of rank %u for values of rank %u", sorted.n, x.n);
	for (uint32_t k = 0; k + 1 < sorted.n; k++)
		TRY(infer_same(f, "batch extent", sorted.dim[k], x.dim[k]));
	return infer_result(f, DT_i64, x.n, x.dim);
}
INFER(searchsorted)

/* Adds the batch. One row for all values stays one. */
static Node batch_searchsorted(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	bool one = !batched[0] && node_rank(b->g, in[0]) == 1;
	Node wide[] = {one ? in[0] : batch_wide(b, in[0], batched[0], size),
		       batch_wide(b, in[1], batched[1], size)};
	return batch_again(b, n, wide, batch_attrs(b, n));
}

/* Whether element i of the rows stands after element j of x. NaN of x stands behind all, as it
 * compares with none. */
static bool stands_after(const Tensor *sorted, int64_t i, const Tensor *x, int64_t j, bool right)
{
	if (eval_as_float(x->dtype)) {
		double a = tensor_f64(sorted, i), b = tensor_f64(x, j);
		return right ? a > b : a >= b;
	}
	int64_t a = tensor_i64(sorted, i), b = tensor_i64(x, j);
	if (x->dtype == DT_u64) {
		a ^= INT64_MIN;
		b ^= INT64_MIN;
	}
	return right ? a > b : a >= b;
}

/* Searches by PyTorch's bisection, step by step: where a row is not sorted it leads to the same
 * place. */
static bool eval_searchsorted(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	(void)e;
	bool right = node_bool(g, n, "right");
	int64_t length = in->dim[in->rank - 1], each = 1;
	for (uint32_t k = in->rank - 1; k < out->rank; k++)
		each *= out->dim[k];
	for (int64_t j = 0; j < tensor_numel(out); j++) {
		int64_t row = j / each * length, low = 0, high = length;
		while (low < high) {
			int64_t middle = low + (high - low) / 2;
			if (stands_after(&in[0], row + middle, &in[1], j, right))
				high = middle;
			else
				low = middle + 1;
		}
		tensor_set_i64(out, j, low);
	}
	return true;
}

OP(searchsorted) {
	.schema = "searchsorted(Tensor sorted, Tensor x, *, bool right) -> Tensor",
	.doc = "how many elements of the row of sorted [B..., n] stand before each element of x "
	       "[B..., ...]; equal ones do if right",
	.infer = infer_searchsorted,
	.eval = eval_searchsorted,
	.batch = batch_searchsorted,
	.lower = {.role = LOWER_ROOT, .reads = 1},
	.sample = "f32[5] of -2 0 1 1 3.5, f32[n=2, 4] of -3 0 1 2 3.5 4 nan -2, right=false; "
		  "f32[n=2, 3] of 0 1 2 1 3 5, f32[n=2, 2] of 1 1.5 3 0, right=true; "
		  "i32[40] of -9 -8 -8 -5 -4 -3 -1 0 0 2 3 4 6 7 8 9 9 9 10 12 13 15 15 15 15 16 "
		  "17 18 20 21 22 23 24 25 26 27 28 30 31 31, i32[3, 2, 4] in -10..33, "
		  "right=false; "
		  "f32[m=7] of 3 1 nan 2 0 nan 5, f32[6] of 1 1.5 3 0 nan 6, right=true; "
		  "f32[0], f32[3], right=false",
};
