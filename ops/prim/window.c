/* Overlapping windows of one dim, and the sum that is their adjoint. */
#include <string.h>

#include "ops/prim/priv.h"
#include "ops/rules/batch.h"

typedef struct {
	int64_t dim, size, stride, dilation, low, count, extent;
} WindowDim;

static bool check_window(Infer *f, bool has_size)
{
	Sym s;
	TRY(infer_sym(f, "low", &s));
	TRY(infer_sym(f, "stride", &s));
	TRY(infer_at_least(f, "stride", s, 1));
	TRY(infer_sym(f, "dilation", &s));
	TRY(infer_at_least(f, "dilation", s, 1));
	if (has_size) {
		TRY(infer_sym(f, "size", &s));
		TRY(infer_at_least(f, "size", s, 0));
	}
	return true;
}

/* Finds the positions p for which 0 <= p * stride + shift < extent, as [*first, *end) within [0,
 * count). */
static void valid_positions(const WindowDim *w, int64_t shift, int64_t *first, int64_t *end)
{
	*first = shift < 0 ? (-shift + w->stride - 1) / w->stride : 0;
	*end = w->extent > shift ? (w->extent - shift + w->stride - 1) / w->stride : 0;
	*end = *end < w->count ? *end : w->count;
	*end = *end > *first ? *end : *first;
}

static bool read_window(EvalCtx *e, Graph *g, Node n, WindowDim *w)
{
	TRY(eval_int(e, g, n, "dim", &w->dim));
	TRY(eval_int(e, g, n, "stride", &w->stride));
	TRY(eval_int(e, g, n, "dilation", &w->dilation));
	TRY(eval_int(e, g, n, "low", &w->low));
	if (w->stride < 1 || w->dilation < 1)
		return eval_error(e, g, n, "expected a positive stride and dilation");
	return true;
}

static bool shape_window(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t at;
	Sym dim[MAX_RANK + 1], size, count;
	TRY(infer_dim(f, "dim", x.n, &at));
	TRY(check_window(f, true));
	TRY(infer_sym(f, "size", &size));
	TRY(infer_sym(f, "count", &count));
	memcpy(dim, x.dim, x.n * sizeof *dim);
	dim[at] = count;
	dim[x.n] = size;
	return infer_result(f, x.dtype, x.n + 1, dim);
}
INFER(window)

static bool eval_window(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	WindowDim v;
	TRY(read_window(e, g, n, &v));
	v.size = out->dim[in->rank];
	v.count = out->dim[v.dim];
	v.extent = in->dim[v.dim];
	Walk w = {.rank = in->rank};
	int64_t from[MAX_RANK], to[MAX_RANK];
	walk_strides(in->rank, in->dim, from);
	walk_strides(out->rank, out->dim, to);
	memcpy(w.dim, in->dim, sizeof in->dim);
	memcpy(w.src, from, sizeof from);
	memcpy(w.dst, to, sizeof to);
	w.src[v.dim] = from[v.dim] * v.stride;
	for (int64_t k = 0; k < v.size; k++) {
		int64_t shift = k * v.dilation - v.low, first, end;
		valid_positions(&v, shift, &first, &end);
		w.dim[v.dim] = end - first;
		if (end == first)
			continue;
		const char *src = elem_at(in, (first * v.stride + shift) * from[v.dim]);
		walk_copy(&w, elem_at(out, first * to[v.dim] + k), src, dtype_size(out->dtype));
	}
	return true;
}

static void index_window(IndexMap *m)
{
	const Graph *g = m->g;
	SymTab *syms = graph_syms(g);
	Node x = node_in(g, m->n, 0);
	uint32_t rank = node_rank(g, x), dim = (uint32_t)node_int(g, m->n, "dim");
	memcpy(m->in[0], m->at, rank * sizeof *m->at);
	Sym start = sym_mul(syms, m->at[dim], node_sym(g, m->n, "stride"));
	Sym place = sym_add(syms, start, sym_mul(syms, m->at[rank], node_sym(g, m->n, "dilation")));
	m->in[0][dim] = sym_sub(syms, place, node_sym(g, m->n, "low"));
	index_range(m, m->in[0][dim], sym_int(syms, 0), node_dim(g, x, dim));
}

static Attr attr_of(const Graph *g, Node n, const char *name)
{
	return *node_attr(g, n, name);
}

static bool adjoint_window(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	const Graph *graph = b->g;
	Sym extent = node_dim(graph, node_in(graph, n, 0), (uint32_t)node_int(graph, n, "dim"));
	Attr attr[] = {attr_none(),
		       attr_of(graph, n, "dim"),
		       attr_sym(extent),
		       attr_of(graph, n, "stride"),
		       attr_of(graph, n, "dilation"),
		       attr_of(graph, n, "low")};
	(void)want;
	g[0] = b_node(b, OP_fold, ct, 1, attr, 6);
	return g[0].i;
}

OP(window) {
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_window,
	.schema = "window(Tensor x, *, int dim, int size, int stride, int dilation, int low, "
		  "int count) -> Tensor",
	.doc = "element (p, k) of dim and a new last axis reads index p*stride + k*dilation - low, "
	       "or 0",
	.dims = DIMS_APPENDED,
	.infer = infer_window,
	.eval = eval_window,
	.batch = batch_dim,
	.lower = {.role = LOWER_INDEX, .fuses = FUSE_ALWAYS, .index = index_window},
	.sample = "f32[2, 7], dim=1, size=3, stride=2, dilation=1, low=1, count=4",
};

static bool shape_fold(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t at;
	Sym dim[MAX_RANK], extent;
	if (x.n < 2)
		return infer_fail(f, "expected rank 2 or more, got %u", x.n);
	TRY(infer_dim(f, "dim", x.n - 1, &at));
	TRY(check_window(f, false));
	TRY(infer_sym(f, "extent", &extent));
	memcpy(dim, x.dim, (x.n - 1) * sizeof *dim);
	dim[at] = extent;
	return infer_result(f, x.dtype, x.n - 1, dim);
}
INFER(fold)

/* acc[i] += x[p, k] for i = p * stride + k * dilation - low; the operand is [outer, count, inner,
 * size], the result [outer, extent, inner]. Integers add unsigned, which wraps. */
#define FOLD                                                                                       \
	for (int64_t o = 0; o < outer; o++) {                                                      \
		for (int64_t p = 0; p < v->count; p++) {                                           \
			for (int64_t i = 0; i < inner; i++) {                                      \
				for (int64_t k = 0; k < v->size; k++, x++) {                       \
					int64_t at = p * v->stride + k * v->dilation - v->low;     \
					if (at >= 0 && at < v->extent)                             \
						acc[(o * v->extent + at) * inner + i] += *x;       \
				}                                                                  \
			}                                                                          \
		}                                                                                  \
	}

static void fold_f64(const WindowDim *v, int64_t outer, int64_t inner, const double *x, double *acc)
{
	FOLD
}

static void fold_u64(const WindowDim *v, int64_t outer, int64_t inner, const uint64_t *x,
		     uint64_t *acc)
{
	FOLD
}

static bool eval_fold(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	WindowDim v;
	TRY(read_window(e, g, n, &v));
	v.size = in->dim[out->rank];
	v.count = in->dim[v.dim];
	v.extent = out->dim[v.dim];
	int64_t outer = 1, inner = 1;
	for (int64_t k = 0; k < v.dim; k++)
		outer *= in->dim[k];
	for (uint32_t k = (uint32_t)v.dim + 1; k < out->rank; k++)
		inner *= in->dim[k];
	if (dtype_is_complex(in->dtype))
		return eval_error(e, g, n, "complex operands are not supported");
	int64_t nx = tensor_numel(in), ny = tensor_numel(out);
	if (eval_as_float(in->dtype)) {
		double *x = EVAL_ARRAY(e, double, nx), *acc = EVAL_ARRAY(e, double, ny);
		tensor_read_f64(in, 0, nx, x);
		fold_f64(&v, outer, inner, x, acc);
		tensor_write_f64(out, 0, ny, acc);
	} else {
		int64_t *x = EVAL_ARRAY(e, int64_t, nx), *acc = EVAL_ARRAY(e, int64_t, ny);
		tensor_read_i64(in, 0, nx, x);
		fold_u64(&v, outer, inner, (const uint64_t *)x, (uint64_t *)acc);
		tensor_write_i64(out, 0, ny, acc);
	}
	return true;
}

/* Maps an index to the elements (p, k) of the windows with p * stride + k * dilation - low == i,
 * over all k. */
static void index_fold(IndexMap *m)
{
	const Graph *g = m->g;
	SymTab *syms = graph_syms(g);
	Node x = node_in(g, m->n, 0);
	uint32_t rank = node_rank(g, m->n), dim = (uint32_t)node_int(g, m->n, "dim");
	Sym *in = m->in[0], zero = sym_int(syms, 0), stride = node_sym(g, m->n, "stride");
	memcpy(in, m->at, rank * sizeof *in);
	in[rank] = m->axis(m, "k", node_dim(g, x, rank));
	Sym from = sym_sub(syms, sym_add(syms, m->at[dim], node_sym(g, m->n, "low")),
	                   sym_mul(syms, in[rank], node_sym(g, m->n, "dilation")));
	in[dim] = sym_floordiv(syms, from, stride);
	index_range(m, in[dim], zero, node_dim(g, x, dim));
	index_range(m, sym_mod(syms, from, stride), zero, sym_int(syms, 1));
}

static bool adjoint_fold(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	const Graph *graph = b->g;
	Node x = node_in(graph, n, 0);
	Sym count = node_dim(graph, x, (uint32_t)node_int(graph, n, "dim")),
	    size = node_dim(graph, x, node_rank(graph, n));
	Attr attr[] = {attr_none(),
		       attr_of(graph, n, "dim"),
		       attr_sym(size),
		       attr_of(graph, n, "stride"),
		       attr_of(graph, n, "dilation"),
		       attr_of(graph, n, "low"),
		       attr_sym(count)};
	(void)want;
	g[0] = b_node(b, OP_window, ct, 1, attr, 7);
	return g[0].i;
}

OP(fold) {
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_fold,
	.schema = "fold(Tensor x, *, int dim, int extent, int stride, int dilation, int low) -> "
		  "Tensor",
	.doc = "adjoint of window: sums the elements (p, k) that read an index",
	.dims = DIMS_ABSORBED,
	.infer = infer_fold,
	.eval = eval_fold,
	.batch = batch_dim,
	.lower = {.role = LOWER_ROOT, .axes = 1, .index = index_fold},
	.accumulates = true,
	.sample = "f32[2, 4, 3], dim=1, extent=7, stride=2, dilation=1, low=1",
};
