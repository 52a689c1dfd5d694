/* Index maps: results whose elements are elements of the operands. */
#include <string.h>

#include "ir/sym/reshape.h"
#include "ops/prim/priv.h"
#include "ops/rules/batch.h"

/* Returns entry k of a list of dimensions, which are numbers. */
static uint32_t node_dim_at(const Graph *g, const Sym *list, uint32_t k)
{
	return (uint32_t)sym_const(graph_syms(g), list[k]);
}

static uint32_t dim_at(const IndexMap *m, const Sym *list, uint32_t k)
{
	return node_dim_at(m->g, list, k);
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

static Node batch_broadcast(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Attr *attr = batch_attrs(b, n);
	(void)batched;
	batch_first(b, n, attr, "shape", size);
	batch_next(b, n, attr, "map");
	batch_first_int(b, n, attr, "map", 0);
	return batch_again(b, n, in, attr);
}

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
	SymTab *syms = graph_syms(m->g);
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
		uint32_t to = node_dim_at(graph, map, k);
		if (!sym_is(b_syms(b), t.dim[k], 1) || sym_is(b_syms(b), node_dim(graph, n, to), 1))
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
	.folds = FOLDS_INSIDE,
	.moves = true,
	.infer = infer_broadcast,
	.eval = eval_broadcast,
	.batch = batch_broadcast,
	.lower = {.role = LOWER_INDEX, .fuses = FUSE_ALWAYS, .index = index_broadcast},
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

static Node batch_reshape(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Attr *attr = batch_attrs(b, n);
	(void)batched;
	batch_first(b, n, attr, "shape", size);
	return batch_again(b, n, in, attr);
}

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
	reshape_index(graph_syms(m->g), to->dim, m->at, to->n, from->dim, m->in[0], from->n);
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
	.folds = FOLDS,
	.moves = true,
	.dims = DIMS_REGROUPED,
	.infer = infer_reshape,
	.eval = eval_reshape,
	.batch = batch_reshape,
	.lower = {.role = LOWER_INDEX, .fuses = FUSE_ALWAYS, .keeps = KEEPS_ORDER, .index = index_reshape},
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

static Node batch_permute(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Attr *attr = batch_attrs(b, n);
	(void)batched, (void)size;
	batch_next(b, n, attr, "perm");
	batch_first_int(b, n, attr, "perm", 0);
	return batch_again(b, n, in, attr);
}

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

static bool adjoint_permute(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	uint32_t rank, inverse[MAX_RANK] = {0};
	const Sym *perm = node_ints(b->g, n, "perm", &rank);
	(void)want;
	for (uint32_t k = 0; k < rank; k++)
		inverse[node_dim_at(b->g, perm, k)] = k;
	g[0] = b_permute(b, ct[0], inverse);
	return g[0].i;
}

OP(permute) {
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_permute,
	.schema = "permute(Tensor x, *, int[] perm) -> Tensor",
	.view = VIEW_PERMUTE,
	.doc = "result dim k is operand dim perm[k]",
	.folds = FOLDS,
	.moves = true,
	.infer = infer_permute,
	.eval = eval_permute,
	.batch = batch_permute,
	.lower = {.role = LOWER_INDEX, .fuses = FUSE_ALWAYS, .keeps = KEEPS_ELEMENTS, .index = index_permute},
	.sample = "f32[2, 3, 4], perm=[2, 0, 1]",
};

/* ---- slice ---- */

/* Returns the extent of so many elements with as many gaps between each two. */
static Sym dilated(SymTab *syms, Sym extent, Sym gaps)
{
	if (sym_is(syms, gaps, 0))
		return extent;
	Sym wide = sym_add(syms, extent, sym_mul(syms, sym_addi(syms, extent, -1), gaps)),
	    zero = sym_int(syms, 0);
	return sym_le(syms, zero, wide) == YES ? wide : sym_max(syms, wide, zero);
}

/* Returns x with `value` around and between; x itself where that is nothing. */
static Node padded(Build *b, Node x, Node value, const Sym *low, const Sym *high,
		   const Sym *interior)
{
	uint32_t rank = node_rank(b->g, x);
	bool same = true;
	for (uint32_t k = 0; k < rank; k++)
		same = same && sym_is(b_syms(b), low[k], 0) && sym_is(b_syms(b), high[k], 0) &&
		       sym_is(b_syms(b), interior[k], 0);
	if (same)
		return x;
	Attr attr[] = {attr_none(), attr_none(), attr_ints(low, rank), attr_ints(high, rank),
		       attr_ints(interior, rank)};
	return b_node(b, OP_pad, (Node[]){x, value}, 2, attr, 5);
}

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

static Node batch_slice(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Attr *attr = batch_attrs(b, n);
	(void)batched;
	batch_first_int(b, n, attr, "start", 0);
	batch_first(b, n, attr, "end", size);
	batch_first_int(b, n, attr, "step", 1);
	return batch_again(b, n, in, attr);
}

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
	SymTab *syms = graph_syms(m->g);
	uint32_t rank;
	const Sym *start = node_ints(m->g, m->n, "start", &rank),
		  *step = node_ints(m->g, m->n, "step", &rank);
	for (uint32_t k = 0; k < rank; k++)
		m->in[0][k] = sym_add(syms, start[k], sym_mul(syms, m->at[k], step[k]));
}

/* Puts the cotangents back to where the elements were, among zeros. */
static bool adjoint_slice(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	SymTab *syms = b_syms(b);
	Node x = node_in(b->g, n, 0);
	uint32_t rank;
	const Sym *start = node_ints(b->g, n, "start", &rank),
		  *step = node_ints(b->g, n, "step", &rank);
	Sym high[MAX_RANK], interior[MAX_RANK];
	(void)want;
	for (uint32_t k = 0; k < rank; k++) {
		interior[k] = sym_addi(syms, step[k], -1);
		Sym used =
			sym_add(syms, start[k], dilated(syms, node_dim(b->g, n, k), interior[k]));
		high[k] = sym_sub(syms, node_dim(b->g, x, k), used);
	}
	g[0] = padded(b, ct[0], b_scalar(b, node_dtype(b->g, n), 0), start, high, interior);
	return g[0].i;
}

OP(slice) {
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_slice,
	.schema = "slice(Tensor x, *, int[] start, int[] end, int[] step) -> Tensor",
	.doc = "elements start, start + step, ... below end, for every dim",
	.folds = FOLDS,
	.moves = true,
	.infer = infer_slice,
	.eval = eval_slice,
	.batch = batch_slice,
	.lower = {.role = LOWER_INDEX, .fuses = FUSE_ALWAYS, .index = index_slice},
	.sample = "f32[5, 6], start=[1, 0], end=[5, 6], step=[2, 1]; f32[4], start=[2], end=[2], "
		  "step=[1]",
};

/* ---- pad ---- */

static bool shape_pad(Infer *f)
{
	Type x = infer_in(f, 0);
	const Sym *low, *high, *interior;
	Sym dim[MAX_RANK];
	if (infer_in(f, 1).n != 0)
		return infer_fail(f, "operand value: expected a 0-d tensor");
	TRY(infer_same_dtype(f, 0, 1));
	TRY(infer_ints_n(f, "low", x.n, &low));
	TRY(infer_ints_n(f, "high", x.n, &high));
	TRY(infer_ints_n(f, "interior", x.n, &interior));
	for (uint32_t k = 0; k < x.n; k++) {
		TRY(infer_at_least(f, "interior", interior[k], 0));
		Sym extent = dilated(f->syms, x.dim[k], interior[k]);
		dim[k] = sym_add(f->syms, extent, sym_add(f->syms, low[k], high[k]));
	}
	return infer_result(f, x.dtype, x.n, dim);
}
INFER(pad)

/* Adds the batch. Values that differ are selected where none of the elements is. */
static Node batch_pad(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Attr *attr = batch_attrs(b, n);
	const Type t = *node_type(b->g, n), from = *node_type(b->g, node_in(b->g, n, 0));
	Node mask = {0}, x = in[0];
	if (batched[1]) {
		Node part[] = {b_full_int(b, DT_bool, 1, from.n, from.dim),
			       b_full_int(b, DT_bool, 0, 0, NULL)};
		mask = batch_again(b, n, part, attr);
	}
	if (batched[0]) {
		batch_first_int(b, n, attr, "low", 0);
		batch_first_int(b, n, attr, "high", 0);
		batch_first_int(b, n, attr, "interior", 0);
	}
	x = batch_again(b, n, (Node[]){x, batched[1] ? b_full(b, t.dtype, 0, 0, NULL) : in[1]},
			attr);
	if (!batched[1] || !x.i)
		return x;
	Sym dim[MAX_RANK] = {size};
	memcpy(dim + 1, t.dim, t.n * sizeof *dim);
	Node value = b_broadcast_in_dim(b, in[1], t.n + 1, dim, (uint32_t[]){0});
	return b_select(b, batch_wide(b, mask, false, size), batch_wide(b, x, batched[0], size),
			value);
}

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
	SymTab *syms = graph_syms(m->g);
	Node x = node_in(m->g, m->n, 0);
	uint32_t rank, n;
	const Sym *low = node_ints(m->g, m->n, "low", &rank),
		  *interior = node_ints(m->g, m->n, "interior", &n);
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

/* Returns every stride-th element of dim from `first` on, count of them; zeros outside. */
static Node every(Build *b, Node x, uint32_t dim, Sym stride, Sym first, Sym count)
{
	Sym one = b_int(b, 1);
	Attr attr[] = {attr_none(),    attr_int(b->g->ir, dim),
		       attr_sym(one),  attr_sym(stride),
		       attr_sym(one),  attr_sym(sym_muli(b_syms(b), first, -1)),
		       attr_sym(count)};
	return b_squeeze(b, b_node(b, OP_window, &x, 1, attr, 7), -1);
}

/* Drops what was put between and around; what was cropped gets zeros. */
static Node unpadded(Build *b, Node n, Node ct)
{
	SymTab *syms = b_syms(b);
	Node x = node_in(b->g, n, 0);
	uint32_t rank;
	const Sym *low = node_ints(b->g, n, "low", &rank),
		  *high = node_ints(b->g, n, "high", &rank);
	const Sym *interior = node_ints(b->g, n, "interior", &rank);
	Sym less_low[MAX_RANK], less_high[MAX_RANK], none[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++) {
		bool gaps = !sym_is(syms, interior[k], 0);
		none[k] = sym_int(syms, 0);
		less_low[k] = gaps ? none[k] : sym_muli(syms, low[k], -1);
		less_high[k] = gaps ? none[k] : sym_muli(syms, high[k], -1);
	}
	Node y = padded(b, ct, b_scalar(b, node_dtype(b->g, n), 0), less_low, less_high, none);
	for (uint32_t k = 0; k < rank; k++)
		if (y.i && !sym_is(syms, interior[k], 0))
			y = every(b, y, k, sym_addi(syms, interior[k], 1), low[k],
				  node_dim(b->g, x, k));
	return y;
}

static bool adjoint_pad(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	const Type t = *node_type(b->g, node_in(b->g, n, 0));
	DType d = t.dtype;
	if (want[0])
		g[0] = unpadded(b, n, ct[0]);
	if (want[1]) {
		uint32_t rank;
		Node no = b_full_int(b, DT_bool, 0, 0, NULL),
		     yes = b_full_int(b, DT_bool, 1, t.n, t.dim);
		Node is_x = padded(b, yes, no, node_ints(b->g, n, "low", &rank),
				   node_ints(b->g, n, "high", &rank),
				   node_ints(b->g, n, "interior", &rank));
		Node of_value = b_select(b, is_x, b_scalar(b, d, 0), ct[0]);
		g[1] = b_reduce(b, REDUCE_SUM, of_value, (1u << rank) - 1, DT_none);
	}
	return (g[0].i || !want[0]) && (g[1].i || !want[1]);
}

OP(pad) {
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_pad,
	.schema = "pad(Tensor x, Tensor value, *, int[] low, int[] high, int[] interior) -> Tensor",
	.doc = "value around (negative: crop) and between the elements",
	.folds = FOLDS,
	.dims = DIMS_RESIZED,
	.infer = infer_pad,
	.eval = eval_pad,
	.batch = batch_pad,
	.lower = {.role = LOWER_INDEX, .fuses = FUSE_ALWAYS, .holds = HOLDS_INTERIOR, .other = 1, .index = index_pad},
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
	SymTab *syms = graph_syms(m->g);
	uint32_t dim = (uint32_t)node_int(m->g, m->n, "dim");
	Sym extent = node_dim(m->g, node_in(m->g, m->n, m->operand), dim);
	memcpy(m->in[0], m->at, node_rank(m->g, m->n) * sizeof *m->at);
	m->in[0][dim] = sym_sub(syms, m->at[dim], m->start);
	index_range(m, m->at[dim], m->start, sym_add(syms, m->start, extent));
}

static bool adjoint_concat(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	uint32_t dim = (uint32_t)node_int(b->g, n, "dim");
	Sym from = b_int(b, 0), one = b_int(b, 1);
	for (uint32_t k = 0; k < node_nin(b->g, n); k++) {
		Sym to = sym_add(b_syms(b), from, node_dim(b->g, node_in(b->g, n, k), dim));
		if (want[k])
			TRY((g[k] = b_slice(b, ct[0], (int)dim, from, to, one)).i);
		from = to;
	}
	return true;
}

OP(concat) {
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_concat,
	.schema = "concat(Tensor[] xs, *, int dim) -> Tensor",
	.doc = "the operands one after the other along dim",
	.folds = FOLDS,
	.infer = infer_concat,
	.eval = eval_concat,
	.batch = batch_dim,
	.lower = {.role = LOWER_INDEX, .fuses = FUSE_FEW, .holds = HOLDS_OPERANDS, .index = index_concat},
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
	SymTab *syms = graph_syms(m->g);
	uint32_t n;
	const Sym *dims = node_ints(m->g, m->n, "dims", &n);
	memcpy(m->in[0], m->at, node_rank(m->g, m->n) * sizeof *m->at);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t d = dim_at(m, dims, k);
		m->in[0][d] = sym_addi(syms, sym_sub(syms, node_dim(m->g, m->n, d), m->at[d]), -1);
	}
}

static bool adjoint_reverse(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	g[0] = b_again(b, n, ct);
	return g[0].i;
}

OP(reverse) {
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_reverse,
	.schema = "reverse(Tensor x, *, int[] dims) -> Tensor",
	.doc = "the order along dims turned round",
	.folds = FOLDS,
	.moves = true,
	.infer = infer_reverse,
	.eval = eval_reverse,
	.batch = batch_dims,
	.lower = {.role = LOWER_INDEX, .fuses = FUSE_ALWAYS, .index = index_reverse},
	.sample = "f32[2, 3, 4], dims=[0, 2]",
};

/* ---- fields ---- */

enum { BYTE_BITS = 8, FIELD_TABLE_BITS = 4, FIELD_TABLE = 1 << FIELD_TABLE_BITS };

/* Whether the table, if there is one, has a byte for each value of a field of 4 bits. */
static bool has_table_of_bytes(Infer *f, int64_t bits)
{
	const Sym *byte;
	uint32_t n;
	int64_t v;
	if (infer_attr(f, "table")->kind == ATTR_none)
		return true;
	TRY(infer_ints(f, "table", &byte, &n));
	for (uint32_t k = 0; k < n; k++)
		if (!sym_is_const(f->syms, byte[k], &v) || v < 0 || v > UINT8_MAX)
			return infer_fail(f, "expected a table of numbers from 0 to 255");
	if (n != FIELD_TABLE || bits != FIELD_TABLE_BITS)
		return infer_fail(f, "expected a table of %d numbers, of fields of %d bits",
				  FIELD_TABLE, FIELD_TABLE_BITS);
	return true;
}

static bool shape_fields(Infer *f)
{
	const Type x = infer_in(f, 0);
	uint32_t dim;
	int64_t bits;
	Sym d[MAX_RANK];
	TRY(infer_dim(f, "dim", x.n + 1, &dim) && infer_const(f, "bits", &bits) &&
	    has_table_of_bytes(f, bits));
	if (x.dtype != DT_u8 || (bits != 2 && bits != 4) || x.n == MAX_RANK)
		return infer_fail(f, "expected u8 of less than %d dimensions, and 2 or 4 bits",
				  MAX_RANK);
	for (uint32_t k = 0; k <= x.n; k++)
		d[k] = k == dim ? sym_int(f->syms, BYTE_BITS / bits) : x.dim[k - (k > dim)];
	return infer_result(f, DT_u8, x.n + 1, d);
}
INFER(fields)

static bool eval_fields(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t dim, bits, inner = 1;
	TRY(eval_int(e, g, n, "dim", &dim) && eval_int(e, g, n, "bits", &bits));
	for (uint32_t k = (uint32_t)dim; k < in->rank; k++)
		inner *= in->dim[k];
	const int64_t count = BYTE_BITS / bits, numel = tensor_numel(in);
	const uint8_t *x = in->data;
	uint8_t *y = out->data;
	uint32_t ntable;
	int64_t value[FIELD_TABLE];
	TRY(eval_ints(e, g, n, "table", value, &ntable));
	for (uint32_t k = ntable; k < FIELD_TABLE; k++)
		value[k] = k;
	for (int64_t i = 0; i < numel; i++)
		for (int64_t k = 0; k < count; k++)
			y[(i / inner * count + k) * inner + i % inner] =
				(uint8_t)value[x[i] >> k * bits & ((1 << bits) - 1)];
	return true;
}

static void index_fields(IndexMap *m)
{
	const uint32_t dim = (uint32_t)node_int(m->g, m->n, "dim");
	for (uint32_t k = 0, at = 0; k < node_rank(m->g, m->n); k++)
		if (k != dim)
			m->in[0][at++] = m->at[k];
}

OP(fields) {
	.schema = "fields(Tensor x, *, int dim, int bits, int[]? table=None) -> Tensor",
	.doc = "the fields of `bits` bits of each u8, from the lowest on, along a new dimension "
	       "dim; with a table, its numbers at fields of 4 bits",
	.infer = infer_fields,
	.eval = eval_fields,
	.batch = batch_dim,
	.lower = {.role = LOWER_INDEX, .fuses = FUSE_ALWAYS, .fields = true, .index = index_fields},
	.sample =
		"u8[3, 4], dim=1, bits=4; u8[3, 4], dim=2, bits=4, table=[0, 1, 2, 3, 4, 6, 8, 12, "
		"24, 240, 255, 7, 5, 9, 11, 128]",
};
