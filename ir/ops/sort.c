/* sort along one dim: values and where they came from. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ops/prim_priv.h"

static bool shape_sort(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t at;
	TRY(infer_dim(f, "dim", x.n, &at));
	if (dtype_is_complex(x.dtype))
		return infer_fail(f, "%s has no order", dtype_name(x.dtype));
	Ir *ir = f->g->ir;
	TypeId elem[2];
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

/* Order of doubles as integers: -0 equals 0 and every NaN comes last. */
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

/* Ties keep their order always, so `stable` needs nothing more. */
static bool eval_sort(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	bool descending = node_bool(g, n, "descending");
	int64_t dim;
	uint32_t perm[MAX_RANK], inverse[MAX_RANK];
	TRY(eval_int(e, g, n, "dim", &dim));
	perm_dim_last(in->rank, (uint32_t)dim, perm);
	perm_inverse(in->rank, perm, inverse);
	Tensor x = eval_permuted(e, in, perm), values = x, index = x;
	int64_t count = in->dim[dim], total = tensor_numel(in);
	size_t size = dtype_size(in->dtype);
	index.dtype = DT_i64;
	values.data = arena_alloc(e->arena, tensor_bytes(&values));
	index.data = arena_alloc(e->arena, tensor_bytes(&index));
	SortItem *item = EVAL_ARRAY(e, SortItem, count);
	for (int64_t at = 0; at < total; at += count) {
		read_keys(&x, at, count, descending, item);
		qsort(item, (size_t)count, sizeof *item, compare_items);
		for (int64_t i = 0; i < count; i++) {
			memcpy(elem_at(&values, at + i), elem_at(&x, at + item[i].index), size);
			tensor_set_i64(&index, at + i, item[i].index);
		}
	}
	values = eval_permuted(e, &values, inverse);
	index = eval_permuted(e, &index, inverse);
	copy_elems(&out[0], &values);
	copy_elems(&out[1], &index);
	return true;
}

OP(sort) {
	.schema = "sort(Tensor x, *, int dim, bool descending, bool stable) -> (Tensor values, "
		  "Tensor index)",
	.doc = "sorted along dim; NaN is the largest; ties keep their order when stable",
	.infer = infer_sort,
	.eval = eval_sort,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.sample = "f32[3, 5], dim=1, descending=false, stable=true; "
		  "i32[4, 3] in -2..2, dim=0, descending=true, stable=true",
};
