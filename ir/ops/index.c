/* Index maps: results whose elements are elements of the operands. */
#include <string.h>

#include "ir/ops/prim_priv.h"
#include "ir/sym/reshape.h"

/* Entry k of a list of dimensions, which are numbers. */
static uint32_t dim_at(const IndexMap *m, const Sym *list, uint32_t k)
{
	int64_t d = 0;
	sym_is_const(m->g->ir->syms, list[k], &d);
	return (uint32_t)d;
}

/* ---- broadcast ---- */

static bool shape_broadcast(Infer *f)
{
	Type x = infer_in(f, 0);
	const Sym *shape, *map;
	uint32_t rank, dim[MAX_RANK], n;
	TRY(infer_ints(f, "shape", &shape, &rank));
	TRY(infer_ints_n(f, "map", x.n, &map));
	TRY(infer_dims(f, "map", rank, dim, &n));
	for (uint32_t k = 0; k < n; k++) {
		if (k > 0 && dim[k] <= dim[k - 1])
			return infer_fail(f, "argument map: expected increasing dimensions");
		if (!sym_is(f->syms, x.dim[k], 1))
			TRY(infer_same(f, "broadcast extent", x.dim[k], shape[dim[k]]));
	}
	return infer_result(f, x.dtype, rank, shape);
}
INFER(broadcast)

static bool eval_broadcast(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t map[MAX_RANK], stride[MAX_RANK];
	uint32_t rank;
	TRY(eval_ints(e, g, n, "map", map, &rank));
	Walk w = {.rank = out->rank};
	walk_strides(in->rank, in->dim, stride);
	memcpy(w.dim, out->dim, sizeof out->dim);
	walk_strides(out->rank, out->dim, w.dst);
	for (uint32_t k = 0; k < rank; k++) {
		int64_t extent = in->dim[k];
		if (extent != 1 && extent != out->dim[map[k]])
			return eval_error(e, g, n, "extent %lld of dimension %u cannot become %lld",
			                  (long long)extent, k, (long long)out->dim[map[k]]);
		w.src[map[k]] = extent == 1 ? 0 : stride[k];
	}
	walk_copy(&w, out->data, in->data, dtype_size(out->dtype));
	return true;
}

static void index_broadcast(IndexMap *m)
{
	SymTab *syms = m->g->ir->syms;
	Node x = node_in(m->g, m->n, 0);
	uint32_t n;
	const Sym *map = node_ints(m->g, m->n, "map", &n);
	for (uint32_t k = 0; k < n; k++) {
		bool one = sym_is(syms, node_dim(m->g, x, k), 1);
		m->in[0][k] = one ? sym_int(syms, 0) : m->at[dim_at(m, map, k)];
	}
}

/* Sums over what is repeated; its one element stays where the operand has an extent of 1. */
static bool adjoint_broadcast(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Graph *graph = b->g;
	Node x = node_in(graph, n, 0);
	uint32_t rank, dims = (1u << node_rank(graph, n)) - 1;
	const Sym *map = node_ints(graph, n, "map", &rank);
	const Type t = *node_type(graph, x);
	(void)want;
	for (uint32_t k = 0; k < rank; k++) {
		int64_t to = 0;
		sym_is_const(b_syms(b), map[k], &to);
		if (!sym_is(b_syms(b), t.dim[k], 1) || sym_is(b_syms(b), node_dim(graph, n, (uint32_t)to), 1))
			dims &= ~(1u << to);
	}
	g[0] = b_reshape(b, b_reduce(b, REDUCE_SUM, ct[0], dims, DT_none), t.n, t.dim);
	return g[0].i;
}

OP(broadcast) {
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_broadcast,
	.schema = "broadcast(Tensor x, *, int[] shape, int[] map) -> Tensor",
	.doc = "operand dim k is result dim map[k] (increasing); an operand extent of 1 repeats",
	.infer = infer_broadcast,
	.eval = eval_broadcast,
	.lower = {.role = LOWER_INDEX, .joins = JOIN_ALWAYS, .index = index_broadcast},
	.sample = "f32[3, 1], shape=[2, 3, 4], map=[1, 2]; i64[], shape=[5], map=[]",
};

/* ---- reshape ---- */

static bool shape_reshape(Infer *f)
{
	Type x = infer_in(f, 0);
	const Sym *shape;
	uint32_t rank;
	TRY(infer_ints(f, "shape", &shape, &rank));
	Sym have = sym_int(f->syms, 1), want = have;
	for (uint32_t k = 0; k < x.n; k++)
		have = sym_mul(f->syms, have, x.dim[k]);
	for (uint32_t k = 0; k < rank; k++)
		want = sym_mul(f->syms, want, shape[k]);
	TRY(infer_same(f, "number of elements", have, want));
	return infer_result(f, x.dtype, rank, shape);
}
INFER(reshape)

static bool eval_reshape(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	if (tensor_numel(in) != tensor_numel(out))
		return eval_error(e, g, n, "%lld elements cannot take a shape of %lld",
		                  (long long)tensor_numel(in), (long long)tensor_numel(out));
	copy_elems(out, in);
	return true;
}

static void index_reshape(IndexMap *m)
{
	const Type *to = node_type(m->g, m->n), *from = node_type(m->g, node_in(m->g, m->n, 0));
	reshape_index(m->g->ir->syms, to->dim, m->at, to->n, from->dim, m->in[0], from->n);
}

static bool adjoint_reshape(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	const Type t = *node_type(b->g, node_in(b->g, n, 0));
	(void)want;
	g[0] = b_reshape(b, ct[0], t.n, t.dim);
	return g[0].i;
}

OP(reshape) {
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_reshape,
	.schema = "reshape(Tensor x, *, int[] shape) -> Tensor",
	.view = VIEW_RESHAPE,
	.doc = "the same elements in row-major order under another shape",
	.infer = infer_reshape,
	.eval = eval_reshape,
	.lower = {.role = LOWER_INDEX, .joins = JOIN_ALWAYS, .keeps = KEEPS_ORDER, .index = index_reshape},
	.sample = "f32[2, 6], shape=[3, 4]; f32[0, 3], shape=[3, 0]",
};

/* ---- permute ---- */

static bool shape_permute(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t perm[MAX_RANK], n;
	Sym dim[MAX_RANK];
	TRY(infer_dims(f, "perm", x.n, perm, &n));
	if (n != x.n)
		return infer_fail(f, "argument perm: expected %u dimensions, got %u", x.n, n);
	for (uint32_t k = 0; k < n; k++)
		dim[k] = x.dim[perm[k]];
	return infer_result(f, x.dtype, n, dim);
}
INFER(permute)

static bool eval_permute(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t perm[MAX_RANK], stride[MAX_RANK];
	uint32_t rank;
	TRY(eval_ints(e, g, n, "perm", perm, &rank));
	Walk w = {.rank = rank};
	walk_strides(rank, in->dim, stride);
	memcpy(w.dim, out->dim, sizeof out->dim);
	walk_strides(rank, out->dim, w.dst);
	for (uint32_t k = 0; k < rank; k++)
		w.src[k] = stride[perm[k]];
	walk_copy(&w, out->data, in->data, dtype_size(out->dtype));
	return true;
}

static void index_permute(IndexMap *m)
{
	uint32_t rank;
	const Sym *perm = node_ints(m->g, m->n, "perm", &rank);
	for (uint32_t k = 0; k < rank; k++)
		m->in[0][dim_at(m, perm, k)] = m->at[k];
}

OP(permute) {
	.schema = "permute(Tensor x, *, int[] perm) -> Tensor",
	.view = VIEW_PERMUTE,
	.doc = "result dim k is operand dim perm[k]",
	.infer = infer_permute,
	.eval = eval_permute,
	.lower = {.role = LOWER_INDEX, .joins = JOIN_ALWAYS, .keeps = KEEPS_ELEMENTS, .index = index_permute},
	.sample = "f32[2, 3, 4], perm=[2, 0, 1]",
};

/* ---- slice ---- */

static bool shape_slice(Infer *f)
{
	Type x = infer_in(f, 0);
	const Sym *start, *end, *step;
	Sym dim[MAX_RANK], zero = sym_int(f->syms, 0);
	TRY(infer_ints_n(f, "start", x.n, &start));
	TRY(infer_ints_n(f, "end", x.n, &end));
	TRY(infer_ints_n(f, "step", x.n, &step));
	for (uint32_t k = 0; k < x.n; k++) {
		TRY(infer_at_least(f, "step", step[k], 1));
		TRY(infer_le(f, "slice start", zero, start[k]));
		TRY(infer_le(f, "slice start", start[k], end[k]));
		TRY(infer_le(f, "slice end", end[k], x.dim[k]));
		dim[k] = sym_ceildiv(f->syms, sym_sub(f->syms, end[k], start[k]), step[k]);
	}
	return infer_result(f, x.dtype, x.n, dim);
}
INFER(slice)

static bool eval_slice(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t start[MAX_RANK], end[MAX_RANK], step[MAX_RANK], stride[MAX_RANK], first = 0;
	uint32_t rank;
	TRY(eval_ints(e, g, n, "start", start, &rank));
	TRY(eval_ints(e, g, n, "end", end, &rank));
	TRY(eval_ints(e, g, n, "step", step, &rank));
	Walk w = {.rank = rank};
	walk_strides(rank, in->dim, stride);
	memcpy(w.dim, out->dim, sizeof out->dim);
	walk_strides(rank, out->dim, w.dst);
	for (uint32_t k = 0; k < rank; k++) {
		if (start[k] < 0 || start[k] > end[k] || end[k] > in->dim[k] || step[k] < 1)
			return eval_error(e, g, n,
			                  "slice %lld:%lld:%lld of dimension %u with extent %lld",
			                  (long long)start[k], (long long)end[k],
			                  (long long)step[k], k, (long long)in->dim[k]);
		w.src[k] = stride[k] * step[k];
		first += stride[k] * start[k];
	}
	walk_copy(&w, out->data, elem_at(in, first), dtype_size(out->dtype));
	return true;
}

static void index_slice(IndexMap *m)
{
	SymTab *syms = m->g->ir->syms;
	uint32_t rank;
	const Sym *start = node_ints(m->g, m->n, "start", &rank), *step = node_ints(m->g, m->n, "step", &rank);
	for (uint32_t k = 0; k < rank; k++)
		m->in[0][k] = sym_add(syms, start[k], sym_mul(syms, m->at[k], step[k]));
}

OP(slice) {
	.schema = "slice(Tensor x, *, int[] start, int[] end, int[] step) -> Tensor",
	.doc = "elements start, start + step, ... below end, for every dim",
	.infer = infer_slice,
	.eval = eval_slice,
	.lower = {.role = LOWER_INDEX, .joins = JOIN_ALWAYS, .index = index_slice},
	.sample = "f32[5, 6], start=[1, 0], end=[5, 6], step=[2, 1]; f32[4], start=[2], end=[2], "
		  "step=[1]",
};

/* ---- pad ---- */

static bool shape_pad(Infer *f)
{
	Type x = infer_in(f, 0);
	const Sym *low, *high, *interior;
	Sym dim[MAX_RANK], zero = sym_int(f->syms, 0);
	if (infer_in(f, 1).n != 0)
		return infer_fail(f, "operand value: expected a 0-d tensor");
	TRY(infer_same_dtype(f, 0, 1));
	TRY(infer_ints_n(f, "low", x.n, &low));
	TRY(infer_ints_n(f, "high", x.n, &high));
	TRY(infer_ints_n(f, "interior", x.n, &interior));
	for (uint32_t k = 0; k < x.n; k++) {
		TRY(infer_at_least(f, "interior", interior[k], 0));
		Sym extent = x.dim[k];
		if (!sym_is(f->syms, interior[k], 0)) {
			Sym gaps = sym_mul(f->syms, sym_addi(f->syms, extent, -1), interior[k]);
			extent = sym_add(f->syms, extent, gaps);
			if (sym_le(f->syms, zero, extent) != YES)
				extent = sym_max(f->syms, extent, zero);
		}
		dim[k] = sym_add(f->syms, extent, sym_add(f->syms, low[k], high[k]));
	}
	return infer_result(f, x.dtype, x.n, dim);
}
INFER(pad)

static void fill_elems(Tensor *t, const void *value)
{
	Walk w = {.rank = 1, .dim = {tensor_numel(t)}, .dst = {1}, .src = {0}};
	walk_copy(&w, t->data, value, dtype_size(t->dtype));
}

static bool eval_pad(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t low[MAX_RANK], interior[MAX_RANK], from[MAX_RANK], to[MAX_RANK], src = 0, dst = 0;
	uint32_t rank;
	TRY(eval_ints(e, g, n, "low", low, &rank));
	TRY(eval_ints(e, g, n, "interior", interior, &rank));
	Walk w = {.rank = rank};
	walk_strides(rank, in->dim, from);
	walk_strides(rank, out->dim, to);
	for (uint32_t k = 0; k < rank; k++) {
		int64_t step = interior[k] + 1, room = out->dim[k] - low[k];
		int64_t first =
			low[k] < 0 ? (-low[k] + step - 1) / step : 0; /* the first one inside */
		int64_t end = room > 0 ? (room + step - 1) / step : 0;
		end = end < in->dim[k] ? end : in->dim[k];
		w.dim[k] = end > first ? end - first : 0;
		w.src[k] = from[k];
		w.dst[k] = to[k] * step;
		src += first * from[k];
		dst += (low[k] + first * step) * to[k];
	}
	fill_elems(out, in[1].data);
	walk_copy(&w, elem_at(out, dst), elem_at(in, src), dtype_size(out->dtype));
	return true;
}

static void index_pad(IndexMap *m)
{
	SymTab *syms = m->g->ir->syms;
	Node x = node_in(m->g, m->n, 0);
	uint32_t rank, n;
	const Sym *low = node_ints(m->g, m->n, "low", &rank), *interior = node_ints(m->g, m->n, "interior", &n);
	Sym *in = m->in[0], zero = sym_int(syms, 0);
	for (uint32_t k = 0; k < rank; k++) {
		in[k] = sym_sub(syms, m->at[k], low[k]);
		if (!sym_is(syms, interior[k], 0)) {
			Sym every = sym_addi(syms, interior[k], 1);
			index_range(m, sym_mod(syms, in[k], every), zero, sym_int(syms, 1));
			in[k] = sym_floordiv(syms, in[k], every);
		}
		index_range(m, in[k], zero, node_dim(m->g, x, k));
	}
}

OP(pad) {
	.schema = "pad(Tensor x, Tensor value, *, int[] low, int[] high, int[] interior) -> Tensor",
	.doc = "value around (negative: crop) and between the elements",
	.infer = infer_pad,
	.eval = eval_pad,
	.lower = {.role = LOWER_INDEX, .joins = JOIN_ALWAYS, .holds = HOLDS_INTERIOR, .other = 1, .index = index_pad},
	.sample = "f32[3, 4], f32[], low=[1, -1], high=[0, 2], interior=[1, 0]",
};

/* ---- concat ---- */

static bool shape_concat(Infer *f)
{
	if (f->nin == 0)
		return infer_fail(f, "expected at least one operand");
	Type x = infer_in(f, 0);
	uint32_t at;
	Sym dim[MAX_RANK];
	TRY(infer_dim(f, "dim", x.n, &at));
	memcpy(dim, x.dim, x.n * sizeof *dim);
	for (uint32_t k = 1; k < f->nin; k++) {
		Type y = infer_in(f, k);
		TRY(infer_same_dtype(f, 0, k));
		if (y.n != x.n)
			return infer_fail(f, "operand ranks %u and %u differ", x.n, y.n);
		for (uint32_t d = 0; d < x.n; d++) {
			if (d != at)
				TRY(infer_same(f, "concat extent", dim[d], y.dim[d]));
		}
		dim[at] = sym_add(f->syms, dim[at], y.dim[at]);
	}
	return infer_result(f, x.dtype, x.n, dim);
}
INFER(concat)

static bool eval_concat(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t at, first = 0, stride[MAX_RANK];
	TRY(eval_int(e, g, n, "dim", &at));
	walk_strides(out->rank, out->dim, stride);
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Walk w = {.rank = out->rank};
		memcpy(w.dim, in[k].dim, sizeof in[k].dim);
		memcpy(w.dst, stride, sizeof stride);
		walk_strides(out->rank, in[k].dim, w.src);
		for (uint32_t d = 0; d < out->rank; d++) {
			if (d != (uint32_t)at && in[k].dim[d] != out->dim[d])
				return eval_error(
					e, g, n,
					"operand %u has extent %lld in dimension %u, not %lld", k,
					(long long)in[k].dim[d], d, (long long)out->dim[d]);
		}
		walk_copy(&w, elem_at(out, first * stride[at]), in[k].data, dtype_size(out->dtype));
		first += in[k].dim[at];
	}
	return true;
}

static void index_concat(IndexMap *m)
{
	SymTab *syms = m->g->ir->syms;
	uint32_t dim = (uint32_t)node_int(m->g, m->n, "dim");
	Sym extent = node_dim(m->g, node_in(m->g, m->n, m->operand), dim);
	memcpy(m->in[0], m->at, node_rank(m->g, m->n) * sizeof *m->at);
	m->in[0][dim] = sym_sub(syms, m->at[dim], m->start);
	index_range(m, m->at[dim], m->start, sym_add(syms, m->start, extent));
}

OP(concat) {
	.schema = "concat(Tensor[] xs, *, int dim) -> Tensor",
	.doc = "the operands one after the other along dim",
	.infer = infer_concat,
	.eval = eval_concat,
	.lower = {.role = LOWER_INDEX, .joins = JOIN_FEW, .holds = HOLDS_OPERANDS, .index = index_concat},
	.sample = "[f32[2, 3], f32[2, 0], f32[2, 1]], dim=1",
};

/* ---- reverse ---- */

static bool shape_reverse(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t dim[MAX_RANK], n;
	TRY(infer_dims(f, "dims", x.n, dim, &n));
	return infer_result(f, x.dtype, x.n, x.dim);
}
INFER(reverse)

static bool eval_reverse(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t dim[MAX_RANK], first = 0;
	uint32_t count;
	TRY(eval_ints(e, g, n, "dims", dim, &count));
	if (tensor_numel(in) == 0)
		return true;
	Walk w = {.rank = in->rank};
	memcpy(w.dim, in->dim, sizeof in->dim);
	walk_strides(in->rank, in->dim, w.src);
	walk_strides(in->rank, in->dim, w.dst);
	for (uint32_t k = 0; k < count; k++) {
		first += w.src[dim[k]] * (in->dim[dim[k]] - 1);
		w.src[dim[k]] = -w.src[dim[k]];
	}
	walk_copy(&w, out->data, elem_at(in, first), dtype_size(out->dtype));
	return true;
}

static void index_reverse(IndexMap *m)
{
	SymTab *syms = m->g->ir->syms;
	uint32_t n;
	const Sym *dims = node_ints(m->g, m->n, "dims", &n);
	memcpy(m->in[0], m->at, node_rank(m->g, m->n) * sizeof *m->at);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t d = dim_at(m, dims, k);
		m->in[0][d] = sym_addi(syms, sym_sub(syms, node_dim(m->g, m->n, d), m->at[d]), -1);
	}
}

OP(reverse) {
	.schema = "reverse(Tensor x, *, int[] dims) -> Tensor",
	.doc = "the order along dims turned round",
	.infer = infer_reverse,
	.eval = eval_reverse,
	.lower = {.role = LOWER_INDEX, .joins = JOIN_ALWAYS, .index = index_reverse},
	.sample = "f32[2, 3, 4], dims=[0, 2]",
};
