/* Segments of a dimension: runs of elements, one behind the other, whose bounds are data. Rows of a
 * sparse matrix are segments of its values; the edges of a node, of sorted edges.
 *
 *   offset  0 2 2 5          segment 0: elements 0, 1; segment 1: none; segment 2: elements 2, 3, 4
 *   id      0 0 2 2 2        the segment of each element
 *
 * segment_reduce reads the offsets, segment_spread the ids. Each is the other's adjoint. */
#include <string.h>

#include "ops/prim/priv.h"
#include "ops/prim/rules_priv.h"
#include "ops/rules/batch.h"
#include "ops/rules/common.h"

/* Reads the attribute `batch`: how many leading dimensions x and the operand k have in common. That
 * operand is of integers and has one dimension more; x has at least one more. */
static bool segment_batch(Infer *f, uint32_t k, const char *name, int64_t *batch)
{
	Type x = infer_in(f, 0), at = infer_in(f, k);
	TRY(infer_const(f, "batch", batch));
	if (at.dtype != DT_i64)
		return infer_fail(f, "operand %s: expected i64, got %s", name,
				  dtype_name(at.dtype));
	if (*batch < 0 || *batch + 1 != at.n || *batch + 1 > x.n)
		return infer_fail(f, "argument batch: %lld axes of operands of rank %u and %u",
				  (long long)*batch, x.n, at.n);
	for (uint32_t i = 0; i < *batch; i++)
		TRY(infer_same(f, "batch extent", x.dim[i], at.dim[i]));
	return true;
}

/* Gives x's type, with another extent behind the batch. */
static bool segment_result(Infer *f, int64_t batch, Sym extent)
{
	Type x = infer_in(f, 0);
	Sym dim[MAX_RANK];
	memcpy(dim, x.dim, x.n * sizeof *dim);
	dim[batch] = extent;
	return infer_result(f, x.dtype, x.n, dim);
}

static int64_t clamped(int64_t at, int64_t most)
{
	return at < 0 ? 0 : at > most ? most : at;
}

/* The extents of x [batch, n, rest]. */
typedef struct {
	int64_t batch, n, rest;
} Extents;

static Extents extents_of(const Tensor *x, int64_t batch)
{
	Extents s = {1, x->dim[batch], 1};
	for (uint32_t k = 0; k < x->rank; k++)
		if (k != batch)
			*(k < batch ? &s.batch : &s.rest) *= x->dim[k];
	return s;
}

/* Returns the batch rule's operands: x and what lies beside it with the batch in front of both, or
 * none of it beside, and x's batch where elements are taken whole. */
static Node batch_segments(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	uint32_t nin = node_nin(b->g, n), nbatch = (uint32_t)node_int(b->g, n, "batch");
	bool beside = batched[1] || (nin > 2 && batched[2]);
	Attr *attr = batch_attrs(b, n);
	Node all[3] = {in[0], in[1], nin > 2 ? in[2] : (Node){0}};
	if (!beside) {
		all[0] = batch_to(b, in[0], nbatch + 1);
		return batch_from(b, batch_again(b, n, all, attr), nbatch + 1);
	}
	for (uint32_t k = 0; k < nin; k++)
		all[k] = batch_wide(b, in[k], batched[k], size);
	attr[op_arg_index(node_op(b->g, n), "batch")] = attr_int(b->g->ir, nbatch + 1);
	return batch_again(b, n, all, attr);
}

/* ---- segment_reduce ---- */

static bool shape_segment_reduce(Infer *f)
{
	Type x = infer_in(f, 0), offset = infer_in(f, 1);
	ReduceKind kind;
	int64_t batch;
	TRY(infer_combiner(f, "kind", COMBINES_DIMS, x.dtype, &kind));
	TRY(segment_batch(f, 1, "offset", &batch));
	TRY(infer_at_least(f, "the number of offsets", offset.dim[batch], 1));
	return segment_result(f, batch, sym_addi(f->syms, offset.dim[batch], -1));
}
INFER(segment_reduce)

/* Reduces the elements [lo, hi) of a column of x, `step` apart. */
static void reduce_segment(ReduceKind kind, const Tensor *x, int64_t first, int64_t step, int64_t n,
			   Tensor *out, int64_t to)
{
	const bool floats = eval_as_float(x->dtype);
	ScVal acc = reduce_identity(kind, x->dtype);
	for (int64_t i = 0; i < n; i++) {
		if (floats)
			acc.f = reduce_f64(kind, acc.f, tensor_f64(x, first + i * step));
		else
			acc.i = reduce_i64(kind, x->dtype, acc.i, tensor_i64(x, first + i * step));
	}
	if (floats)
		tensor_set_f64(out, to, acc.f);
	else
		tensor_set_i64(out, to, acc.i);
}

static bool eval_segment_reduce(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	ReduceKind kind;
	const int64_t batch = node_int(g, n, "batch");
	Extents s = extents_of(in, batch);
	Tensor x = in[0], y = *out;
	if (!reduce_parse(node_str(g, n, "kind"), &kind))
		return eval_error(e, g, n, "unknown kind");
	if (dtype_is_complex(x.dtype)) { /* sums: of the parts */
		x = tensor_flat_real(in);
		y = tensor_flat_real(out);
		s.rest *= 2;
	}
	const int64_t nseg = out->dim[batch];
	for (int64_t b = 0; b < s.batch; b++)
		for (int64_t k = 0; k < nseg; k++) {
			const int64_t at = b * (nseg + 1) + k,
				      lo = clamped(tensor_i64(&in[1], at), s.n),
				      hi = clamped(tensor_i64(&in[1], at + 1), s.n);
			for (int64_t r = 0; r < s.rest; r++)
				reduce_segment(kind, &x, (b * s.n + lo) * s.rest + r, s.rest,
					       hi - lo, &y, (b * nseg + k) * s.rest + r);
		}
	return true;
}

/* Returns the segment of each of the n elements along dimension `batch` of x: -1 before the first
 * segment, the number of segments behind the last one. */
static Node segment_ids(Build *b, Node offset, Sym n, uint32_t batch)
{
	Graph *g = b->g;
	const Type t = *node_type(g, offset);
	const Sym last = sym_addi(b_syms(b), n, 1), axis = b_int(b, batch);
	Sym dim[MAX_RANK];
	memcpy(dim, t.dim, t.n * sizeof *dim);
	Node one = b_full_int(b, DT_i64, 1, t.n, dim);
	dim[batch] = last;
	Node none = b_full_int(b, DT_i64, 0, t.n, dim);
	Node at = b_bin_scalar(b, OP_maximum, b_bin(b, OP_minimum, offset, b_from_size(b, n)), 0);
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_none(),
		       attr_int(g->ir, batch),
		       attr_ints(&axis, 1),
		       attr_str(g->ir, "add"),
		       attr_str(g->ir, "promise"),
		       attr_bool(false),
		       attr_bool(false)};
	Node begins =
		b_node(b, OP_scatter, (Node[]){none, b_unsqueeze(b, at, -1), one}, 3, attr, 9);
	Node begun = b_cumulative(b, "sum", begins, batch, false);
	begun = b_slice(b, begun, (int)batch, b_int(b, 0), n, b_int(b, 1));
	return b_bin_scalar(b, OP_sub, begun, 1);
}

/* Adds a reduction of x by n's offsets. */
static Node reduce_as(Build *b, Node n, Node x, const char *kind)
{
	Attr attr[] = {attr_none(), attr_none(), attr_str(b->g->ir, kind),
		       *node_attr(b->g, n, "batch")};
	return b_node(b, OP_segment_reduce, (Node[]){x, node_in(b->g, n, 1)}, 2, attr, 4);
}

/* Reads y, which has a value for each of n's segments, at the segment of each element. */
static Node spread(Build *b, Node n, Node y, Node id)
{
	Attr attr[] = {attr_none(), attr_none(), attr_none(), *node_attr(b->g, n, "batch")};
	return b_node(b, OP_segment_spread, (Node[]){y, node_in(b->g, n, 1), id}, 3, attr, 4);
}

/* Returns the derivative of the product: what the other factors give, also if one of them is 0.
 * (Its own derivative lacks what passes through elements that are 0.) */
static Node products_of_others(Build *b, Node n, Node ct, Node id)
{
	Node x = node_in(b->g, n, 0);
	DType d = node_dtype(b->g, x);
	Node zero = b_scalar(b, d, 0), one = b_scalar(b, d, 1);
	Node is_zero = b_bin_scalar(b, OP_eq, x, 0), factor = b_select(b, is_zero, one, x);
	Node zeros = reduce_as(b, n, b_convert(b, is_zero, d), "sum"),
	     product = reduce_as(b, n, factor, "prod");
	Node all = b_bin(b, OP_mul, ct, product);
	Node one_zero = b_select(b, b_bin_scalar(b, OP_eq, zeros, 1), all, zero),
	     no_zero = b_select(b, b_bin_scalar(b, OP_eq, zeros, 0), all, zero);
	Node if_zero = spread(b, n, one_zero, id), else_all = spread(b, n, no_zero, id);
	return b_select(b, is_zero, if_zero, b_bin(b, OP_div, else_all, factor));
}

/* Shares the cotangent evenly among all elements that are the extremum, as PyTorch does. */
static Node share_of_extremum(Build *b, Node n, Node ct, Node id)
{
	Node x = node_in(b->g, n, 0);
	DType d = node_dtype(b->g, x);
	Node is = b_bin(b, OP_eq, x, spread(b, n, n, id));
	Node count = reduce_as(b, n, b_convert(b, is, d), "sum");
	Node share = spread(b, n, b_bin(b, OP_div, ct, count), id);
	return b_select(b, is, share, b_scalar(b, d, 0));
}

static bool adjoint_segment_reduce(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node x = node_in(b->g, n, 0), offset = node_in(b->g, n, 1);
	const uint32_t batch = (uint32_t)node_int(b->g, n, "batch");
	const char *kind = node_str(b->g, n, "kind");
	(void)want;
	Node id = segment_ids(b, offset, node_dim(b->g, x, batch), batch);
	if (!strcmp(kind, "sum"))
		g[0] = spread(b, n, ct[0], id);
	else if (!strcmp(kind, "prod"))
		g[0] = products_of_others(b, n, ct[0], id);
	else if (!strcmp(kind, "max") || !strcmp(kind, "min"))
		g[0] = share_of_extremum(b, n, ct[0], id);
	else
		return b_error(b, "segment_reduce of kind %s has no derivative", kind).i;
	return g[0].i;
}

OP(segment_reduce) {
	.linear = LINEAR_TOGETHER,
	.linear_in = 1,
	.linear_if = is_sum,
	.adjoint = adjoint_segment_reduce,
	.schema = "segment_reduce(Tensor x, Tensor offset, *, str kind, int batch) -> Tensor",
	.doc = "the elements offset[s] to offset[s + 1] - 1 of x [B..., n, ...], in order, "
	       "combined "
	       "as in reduce: [B..., s, ...]; offsets are clamped to 0..n, and the segment of "
	       "decreasing ones is empty",
	.folds = FOLDS,
	.infer = infer_segment_reduce,
	.eval = eval_segment_reduce,
	.batch = batch_segments,
	.lower = {.role = LOWER_ROOT, .reads = 2, .axes = 1},
	.accumulates = true,
	.sample = "f32[e=5, 2], i64[s=4] of 0 2 2 5, kind=\"sum\", batch=0; "
		  "f32[2, e=4], i64[2, s=3] of 1 3 4 0 -1 9, kind=\"max\", batch=1; "
		  "f32[e=1, 3], i64[4] of 0 0 1 1, kind=\"sum\", batch=0; "
		  "f32[6] of 2 -1 3 0.5 4 -1.5, i64[5] of 0 3 5 6 6, kind=\"prod\", batch=0; "
		  "i32[6, 2], i64[3] of 1 3 6, kind=\"min\", batch=0; "
		  "f32[0, 2], i64[3] of 0 0 0, kind=\"sum\", batch=0",
};

/* ---- segment_spread ---- */

static bool shape_segment_spread(Infer *f)
{
	Type x = infer_in(f, 0), offset = infer_in(f, 1), id = infer_in(f, 2);
	int64_t batch;
	TRY(segment_batch(f, 1, "offset", &batch));
	TRY(segment_batch(f, 2, "id", &batch));
	TRY(infer_same(f, "the number of offsets", offset.dim[batch],
		       sym_addi(f->syms, x.dim[batch], 1)));
	return segment_result(f, batch, id.dim[batch]);
}
INFER(segment_spread)

static bool eval_segment_spread(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	const int64_t batch = node_int(g, n, "batch"), count = out->dim[batch];
	const Extents s = extents_of(in, batch);
	const size_t row = (size_t)s.rest * dtype_size(out->dtype);
	(void)e;
	for (int64_t i = 0; i < s.batch * count; i++) {
		const int64_t id = tensor_i64(&in[2], i);
		char *to = elem_at(out, i * s.rest);
		if (id >= 0 && id < s.n)
			memcpy(to, elem_at(in, (i / count * s.n + id) * s.rest), row);
		else
			memset(to, 0, row);
	}
	return true;
}

static void index_segment_spread(IndexMap *m)
{
	const uint32_t batch = (uint32_t)node_int(m->g, m->n, "batch");
	const Node x = node_in(m->g, m->n, 0);
	memcpy(m->in[0], m->at, node_rank(m->g, x) * sizeof *m->at);
	m->in[0][batch] = m->value(m, 2, m->at, node_dim(m->g, x, batch), INDEX_FILL);
}

static bool adjoint_segment_spread(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	g[0] = reduce_as(b, n, ct[0], "sum");
	return g[0].i;
}

OP(segment_spread) {
	.linear = LINEAR_TOGETHER,
	.linear_in = 1,
	.adjoint = adjoint_segment_spread,
	.schema = "segment_spread(Tensor x, Tensor offset, Tensor id, *, int batch) -> Tensor",
	.doc = "each element [B..., n, ...] gets the value in x [B..., s, ...] of its segment, "
	       "id; 0 if there is none; offset must say of the same segments where they begin, for "
	       "gradients",
	.folds = FOLDS,
	.infer = infer_segment_spread,
	.eval = eval_segment_spread,
	.batch = batch_segments,
	.lower = {.role = LOWER_INDEX,
		  .fuses = FUSE_CHEAP,
		  .reads = 1,
		  .cost = 8,
		  .index = index_segment_spread},
	.sample = "f32[3, 2], i64[4] of 0 2 2 5, i64[e=5] of 0 0 2 2 2, batch=0; "
		  "f32[2, 2], i64[2, 3] of 1 3 4 0 0 2, i64[2, e=5] of -1 0 0 1 2 1 1 2 2 2, "
		  "batch=1",
};
