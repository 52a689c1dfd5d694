/* Convolution with explicit group axis, dilations of both operands, and result size; and the two
 * transforms of Winograd's convolutions (ir/target/winograd_matrices.h) around a batched product,
 * which passes/winograd.c makes of a convolution, and of which lower/winograd.c makes kernels. */
#include <string.h>

#include "ir/target/winograd_matrices.h"
#include "ops/prim/priv.h"
#include "ops/rules/batch.h"

/* ---- inference ---- */

static bool shape_conv(Infer *f)
{
	Type x = infer_in(f, 0), w = infer_in(f, 1);
	const Sym *stride, *dilation, *dilation_in, *pad, *size;
	DType result;
	Sym dim[MAX_RANK];
	if (!dtype_is_int(x.dtype) || !dtype_is_int(w.dtype))
		TRY(infer_same_dtype(f, 0, 1));
	TRY(infer_acc(f, x.dtype, &result));
	if (dtype_is_complex(x.dtype))
		return infer_fail(f, "complex operands are not supported");
	if (x.n < 3 || w.n != x.n)
		return infer_fail(
			f, "expected x[N, G, C, ...] and w[G, O, C, ...], got ranks %u and %u", x.n,
			w.n);
	uint32_t n = x.n - 3;
	TRY(infer_ints_n(f, "stride", n, &stride));
	TRY(infer_ints_n(f, "dilation", n, &dilation));
	TRY(infer_ints_n(f, "dilation_in", n, &dilation_in));
	TRY(infer_ints_n(f, "pad", n, &pad));
	TRY(infer_ints_n(f, "size", n, &size));
	TRY(infer_same(f, "group extent", x.dim[1], w.dim[0]));
	TRY(infer_same(f, "channel extent", x.dim[2], w.dim[2]));
	dim[0] = x.dim[0];
	dim[1] = x.dim[1];
	dim[2] = w.dim[1];
	for (uint32_t k = 0; k < n; k++) {
		TRY(infer_at_least(f, "stride", stride[k], 1));
		TRY(infer_at_least(f, "dilation", dilation[k], 1));
		TRY(infer_at_least(f, "dilation_in", dilation_in[k], 1));
		dim[k + 3] = size[k];
	}
	return infer_result(f, result, x.n, dim);
}
INFER(conv)

/* Adds the batch. Batches of x are more images, those of w more channels of the result, those of
 * both more groups. */
static Node batch_conv(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Graph *g = b->g;
	Sym batch = node_dim(g, n, 0), groups = node_dim(g, n, 1), channels = node_dim(g, n, 2);
	const Attr *attr = batch_attrs(b, n);
	Node x = in[0], w = in[1];
	if (batched[0] && batched[1]) {
		x = batch_merge(b, batch_to(b, x, 1), 2);
		Node y = batch_again(b, n, (Node[]){x, batch_merge(b, w, 1)}, attr);
		return batch_from(b, batch_split(b, y, 1, size, groups), 1);
	}
	if (batched[0]) {
		Node y = batch_again(b, n, (Node[]){batch_merge(b, x, 1), w}, attr);
		return batch_split(b, y, 0, size, batch);
	}
	w = batch_merge(b, batch_to(b, w, 1), 2);
	Node y = batch_again(b, n, (Node[]){x, w}, attr);
	return batch_from(b, batch_split(b, y, 2, size, channels), 2);
}

/* ---- evaluation ---- */

/* Everything reads from a plane per channel that holds the dilated, padded input: so each tap and
 * each position is an offset, and the convolution is a product of matrices inside arrays. */
typedef struct {
	uint32_t n; /* spatial dims */
	int64_t batch, groups, in_channels, out_channels;
	int64_t stride[MAX_RANK], dilation[MAX_RANK], dilation_in[MAX_RANK], pad[MAX_RANK];
	int64_t extent[MAX_RANK], taps[MAX_RANK], size[MAX_RANK], padded[MAX_RANK];
	int64_t nextent, ntaps, nsize, nplane;
	int64_t *plane_at; /* [nextent]: place of input element in the plane, -1 when never read */
	int64_t *w_row, *w_col; /* of w[O, C*taps] */
	int64_t *x_row, *x_col; /* of the planes[C*taps, size] */
} Conv;

static int64_t product(const int64_t *dim, uint32_t n)
{
	int64_t p = 1;
	for (uint32_t k = 0; k < n; k++)
		p *= dim[k];
	return p;
}

static bool read_conv(EvalCtx *e, Graph *g, Node n, const Tensor *in, Conv *c)
{
	const Tensor *x = &in[0], *w = &in[1];
	TRY(eval_ints(e, g, n, "stride", c->stride, &c->n));
	TRY(eval_ints(e, g, n, "dilation", c->dilation, &c->n));
	TRY(eval_ints(e, g, n, "dilation_in", c->dilation_in, &c->n));
	TRY(eval_ints(e, g, n, "pad", c->pad, &c->n));
	TRY(eval_ints(e, g, n, "size", c->size, &c->n));
	if (x->dim[1] != w->dim[0] || x->dim[2] != w->dim[2])
		return eval_error(e, g, n,
		                  "expected w[%lld, O, %lld, ...], got w[%lld, O, %lld, ...]",
		                  (long long)x->dim[1], (long long)x->dim[2], (long long)w->dim[0],
		                  (long long)w->dim[2]);
	c->batch = x->dim[0];
	c->groups = x->dim[1];
	c->in_channels = x->dim[2];
	c->out_channels = w->dim[1];
	for (uint32_t k = 0; k < c->n; k++) {
		if (c->stride[k] < 1 || c->dilation[k] < 1 || c->dilation_in[k] < 1)
			return eval_error(e, g, n, "expected positive strides and dilations");
		c->extent[k] = x->dim[k + 3];
		c->taps[k] = w->dim[k + 3];
		c->padded[k] = c->size[k] == 0 || c->taps[k] == 0
		                       ? 0
		                       : (c->size[k] - 1) * c->stride[k] +
		                                 (c->taps[k] - 1) * c->dilation[k] + 1;
	}
	c->nextent = product(c->extent, c->n);
	c->ntaps = product(c->taps, c->n);
	c->nsize = product(c->size, c->n);
	c->nplane = product(c->padded, c->n);
	return true;
}

/* Returns at[i], the place in the plane of point i of a grid, index * step + shift in every dim;
 * -1 outside. */
static int64_t *grid_places(EvalCtx *e, const Conv *c, const int64_t *dim, const int64_t *step,
                            const int64_t *shift)
{
	int64_t n = product(dim, c->n), stride[MAX_RANK];
	int64_t *at = EVAL_ARRAY(e, int64_t, n);
	walk_strides(c->n, c->padded, stride);
	for (int64_t i = 0; i < n; i++) {
		int64_t rest = i;
		for (uint32_t k = c->n; k-- > 0;) {
			int64_t p = rest % dim[k] * step[k] + (shift ? shift[k] : 0);
			rest /= dim[k];
			if (p < 0 || p >= c->padded[k] || at[i] < 0)
				at[i] = -1;
			else
				at[i] += p * stride[k];
		}
	}
	return at;
}

static void build_tables(EvalCtx *e, Conv *c)
{
	int64_t depth = c->in_channels * c->ntaps;
	c->plane_at = grid_places(e, c, c->extent, c->dilation_in, c->pad);
	c->x_col = grid_places(e, c, c->size, c->stride, NULL);
	int64_t *tap = grid_places(e, c, c->taps, c->dilation, NULL);
	c->x_row = EVAL_ARRAY(e, int64_t, depth);
	c->w_col = EVAL_ARRAY(e, int64_t, depth);
	c->w_row = EVAL_ARRAY(e, int64_t, c->out_channels);
	for (int64_t i = 0; i < depth; i++) {
		c->x_row[i] = i / c->ntaps * c->nplane + tap[i % c->ntaps];
		c->w_col[i] = i;
	}
	for (int64_t o = 0; o < c->out_channels; o++)
		c->w_row[o] = o * depth;
}

/* Fills in the channel planes of image and group ng (of batch * groups); the rest of `planes`
 * stays 0. */
static void fill_planes_f64(const Conv *c, const Tensor *x, int64_t ng, double *row, double *planes)
{
	for (int64_t ch = 0; ch < c->in_channels; ch++) {
		tensor_read_f64(x, (ng * c->in_channels + ch) * c->nextent, c->nextent, row);
		for (int64_t i = 0; i < c->nextent; i++) {
			if (c->plane_at[i] >= 0)
				planes[ch * c->nplane + c->plane_at[i]] = row[i];
		}
	}
}

static void fill_planes_i64(const Conv *c, const Tensor *x, int64_t ng, int64_t *row,
                            int64_t *planes)
{
	for (int64_t ch = 0; ch < c->in_channels; ch++) {
		tensor_read_i64(x, (ng * c->in_channels + ch) * c->nextent, c->nextent, row);
		for (int64_t i = 0; i < c->nextent; i++) {
			if (c->plane_at[i] >= 0)
				planes[ch * c->nplane + c->plane_at[i]] = row[i];
		}
	}
}

static void conv_f64(EvalCtx *e, const Conv *c, const Tensor *in, Tensor *out)
{
	int64_t depth = c->in_channels * c->ntaps, nw = tensor_numel(&in[1]);
	int64_t cells = c->out_channels * c->nsize;
	double *w = EVAL_ARRAY(e, double, nw),
	       *planes = EVAL_ARRAY(e, double, c->in_channels * c->nplane);
	double *row = EVAL_ARRAY(e, double, c->nextent), *y = EVAL_ARRAY(e, double, cells);
	double *work = EVAL_ARRAY(e, double, GEMM_WORK);
	tensor_read_f64(&in[1], 0, nw, w);
	for (int64_t ng = 0; ng < c->batch * c->groups; ng++) {
		fill_planes_f64(c, &in[0], ng, row, planes);
		memset(y, 0, (size_t)cells * sizeof *y);
		MatF64 a = {w + ng % c->groups * c->out_channels * depth, c->w_row, c->w_col};
		MatF64 b = {planes, c->x_row, c->x_col};
		gemm_f64(c->out_channels, c->nsize, depth, a, b, y, work);
		tensor_write_f64(out, ng * cells, cells, y);
	}
}

static void conv_i64(EvalCtx *e, const Conv *c, const Tensor *in, Tensor *out)
{
	int64_t depth = c->in_channels * c->ntaps, nw = tensor_numel(&in[1]);
	int64_t cells = c->out_channels * c->nsize, *w = EVAL_ARRAY(e, int64_t, nw);
	int64_t *planes = EVAL_ARRAY(e, int64_t, c->in_channels * c->nplane);
	int64_t *row = EVAL_ARRAY(e, int64_t, c->nextent), *y = EVAL_ARRAY(e, int64_t, cells);
	tensor_read_i64(&in[1], 0, nw, w);
	for (int64_t ng = 0; ng < c->batch * c->groups; ng++) {
		fill_planes_i64(c, &in[0], ng, row, planes);
		memset(y, 0, (size_t)cells * sizeof *y);
		MatI64 a = {w + ng % c->groups * c->out_channels * depth, c->w_row, c->w_col};
		MatI64 b = {planes, c->x_row, c->x_col};
		gemm_i64(c->out_channels, c->nsize, depth, a, b, y);
		tensor_write_i64(out, ng * cells, cells, y);
	}
}

static bool eval_conv(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	Conv c;
	TRY(read_conv(e, g, n, in, &c));
	if (tensor_numel(out) == 0 || c.ntaps == 0)
		return true; /* out comes zeroed */
	build_tables(e, &c);
	if (eval_as_float(out->dtype))
		conv_f64(e, &c, in, out);
	else
		conv_i64(e, &c, in, out);
	return true;
}

/* Maps to x[n, g, c, i*stride + k*dilation - pad] and w[g, o, c, k], over c and k. Neither is
 * outside nor between elements of x any more: padding and dilation of the operand are an
 * operator of their own by then (passes/pad.c). */
static void index_conv(IndexMap *m)
{
	const Graph *g = m->g;
	SymTab *syms = graph_syms(g);
	Node x = node_in(g, m->n, 0), w = node_in(g, m->n, 1);
	uint32_t n;
	const Sym *stride = node_ints(g, m->n, "stride", &n),
		  *dilation = node_ints(g, m->n, "dilation", &n);
	const Sym *pad = node_ints(g, m->n, "pad", &n);
	const Sym *dilation_in = node_ints(g, m->n, "dilation_in", &n);
	Sym *ix = m->in[0], *iw = m->in[1];
	for (uint32_t k = 0; k < n; k++)
		if (!sym_is(syms, dilation_in[k], 1) ||
		    sym_le(syms, pad[k], sym_int(syms, 0)) == NO)
			ctx_bug(g->ir->ctx, "the padding of a convolution is not explicit");
	ix[0] = m->at[0];
	ix[1] = iw[0] = m->at[1];
	iw[1] = m->at[2];
	for (uint32_t k = 0; k < n; k++) {
		iw[3 + k] = m->axis(m, "k", node_dim(g, w, 3 + k));
		Sym at = sym_add(syms, sym_mul(syms, m->at[3 + k], stride[k]),
				 sym_mul(syms, iw[3 + k], dilation[k]));
		ix[3 + k] = sym_sub(syms, at, pad[k]);
	}
	ix[2] = iw[2] = m->axis(m, "c", node_dim(g, x, 2));
}

/* ---- derivatives ----
 *
 * y[n, g, o, q] = sum over c, k of x[n, g, c, i] w[g, o, c, k] with i e = q s + k d - p: stride s,
 * dilation d, of the input e, pad p. The cotangents are convolutions of the same kind, so all
 * orders of derivatives are. */

static Node convolve(Build *b, Node x, Node w, const Sym *stride, const Sym *dilation,
		     const Sym *dilation_in, const Sym *pad, const Sym *size)
{
	uint32_t n = node_rank(b->g, x) - 3;
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_ints(stride, n),
		       attr_ints(dilation, n),
		       attr_ints(dilation_in, n),
		       attr_ints(pad, n),
		       attr_ints(size, n),
		       attr_dtype(dtype_compute(node_dtype(b->g, x))),
		       attr_none()};
	return b_node(b, OP_conv, (Node[]){x, w}, 2, attr, 9);
}

/* Returns x with its first three dimensions in another order. */
static Node permute_head(Build *b, Node x, uint32_t d0, uint32_t d1, uint32_t d2)
{
	uint32_t perm[MAX_RANK] = {d0, d1, d2};
	for (uint32_t k = 3; k < MAX_RANK; k++)
		perm[k] = k;
	return x.i ? b_permute(b, x, perm) : x;
}

/* Computes gx[n, g, c, i] = sum over o, k of gy[n, g, o, q] w[g, o, c, K - 1 - k] with q s = i e
 * + k d - ((K - 1) d - p). */
static Node cotangent_x(Build *b, Node n, Node ct)
{
	SymTab *syms = b_syms(b);
	Node x = node_in(b->g, n, 0), w = node_in(b->g, n, 1);
	uint32_t rank, dims[MAX_RANK];
	const Sym *stride = node_ints(b->g, n, "stride", &rank),
		  *dilation = node_ints(b->g, n, "dilation", &rank);
	const Sym *dilation_in = node_ints(b->g, n, "dilation_in", &rank),
		  *pad = node_ints(b->g, n, "pad", &rank);
	Sym low[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++) {
		Sym last = sym_addi(syms, node_dim(b->g, w, 3 + k), -1);
		low[k] = sym_sub(syms, sym_mul(syms, last, dilation[k]), pad[k]);
		dims[k] = 3 + k;
	}
	Node turned = permute_head(b, w, 0, 2, 1);
	for (uint32_t k = 0; k < rank && turned.i; k++)
		turned = b_reverse(b, turned, (int)dims[k]);
	return turned.i ? convolve(b, ct, turned, dilation_in, dilation, stride, low,
				   node_type(b->g, x)->dim + 3)
			: turned;
}

/* Computes gw[g, o, c, k] = sum over n, q of x[n, g, c, i] gy[n, g, o, q] with i e = k d + q s -
 * p. */
static Node cotangent_w(Build *b, Node n, Node ct)
{
	Node x = permute_head(b, node_in(b->g, n, 0), 2, 1, 0), w = node_in(b->g, n, 1);
	uint32_t rank;
	const Sym *stride = node_ints(b->g, n, "stride", &rank),
		  *dilation = node_ints(b->g, n, "dilation", &rank);
	const Sym *dilation_in = node_ints(b->g, n, "dilation_in", &rank),
		  *pad = node_ints(b->g, n, "pad", &rank);
	Node y = permute_head(b, ct, 1, 2, 0);
	if (!x.i || !y.i)
		return (Node){0};
	Node z = convolve(b, x, y, dilation, stride, dilation_in, pad, node_type(b->g, w)->dim + 3);
	return permute_head(b, z, 1, 2, 0);
}

static bool adjoint_conv(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	/* as in contract */
	Node narrow = b_convert(b, ct[0], node_dtype(b->g, node_in(b->g, n, 0)));
	if (want[0])
		TRY((g[0] = cotangent_x(b, n, narrow)).i);
	if (want[1])
		TRY((g[1] = cotangent_w(b, n, narrow)).i);
	return true;
}

/* Sets from[] of [N, G, O, ...] to dimensions of [G, O, C, ...]. */
static void along_conv(const Graph *g, Node n, int from[MAX_RANK])
{
	for (uint32_t d = 0; d < node_rank(g, n); d++)
		from[d] = d == 1 ? 0 : d == 2 ? 1 : -1;
}

OP(conv) {
	.linear = LINEAR_ALONE,
	.adjoint = adjoint_conv,
	.schema = "conv(Tensor x, Tensor w, *, int[] stride, int[] dilation, int[] dilation_in, "
		  "int[] pad, int[] size, ScalarType acc, ScalarType? out=None) -> Tensor",
	.doc = "x[N, G, C, ...], w[G, O, C, ...] -> [N, G, O, size...]; x is dilated, then padded "
	       "low by pad; out as in contract",
	.along = along_conv,
	.infer = infer_conv,
	.eval = eval_conv,
	.batch = batch_conv,
	.lower = {.role = LOWER_ANCHOR, .fuses = FUSE_ONCE, .reads = ALL_OPERANDS, .bordered = 1 | 2, .index = index_conv},
	.accumulates = true,
	.sample = "f32[2, 1, 3, 5, 6], f32[1, 4, 3, 3, 3], stride=[1, 2], dilation=[1, 1], "
		  "dilation_in=[1, 1], pad=[1, 1], size=[5, 3], acc=f32; "
		  "f32[1, 2, 2, 4], f32[2, 3, 2, 3], stride=[1], dilation=[1], dilation_in=[2], "
		  "pad=[2], size=[9], acc=f32; "
		  "f32[1, 2, 3, 6], f32[2, 4, 3, 2], stride=[2], dilation=[2], dilation_in=[1], "
		  "pad=[0], size=[2], acc=f32; "
		  "f32[1, 3, 1, 7], f32[3, 1, 1, 3], stride=[2], dilation=[2], dilation_in=[1], "
		  "pad=[-1], size=[2], acc=f32",
};

/* ---- Winograd: types ---- */

static bool tile_of(Infer *f, int64_t *m)
{
	TRY(infer_const(f, "tile", m));
	return *m == 2 || *m == 4 ||
	       infer_fail(f, "expected tiles of 2 or 4, got %lld", (long long)*m);
}

/* Sets *part to what the attribute `part` names. */
static bool part_of(Infer *f, bool inputs, WinogradPart *part)
{
	const Attr *a = infer_attr(f, "part");
	const char *name = a->kind == ATTR_str ? a->str : "";
	return (winograd_part_named(name, part) && (inputs || *part != WINOGRAD_INPUTS)) ||
	       infer_fail(f, "expected part %sfilter or results, got '%s'",
			  inputs ? "inputs, " : "", name);
}

static bool shape_winograd_input(Infer *f)
{
	Type x = infer_in(f, 0);
	const Sym *tiles;
	WinogradPart part;
	int64_t m;
	TRY(tile_of(f, &m));
	TRY(part_of(f, true, &part));
	const Winograd w = winograd_matrices((uint32_t)m);
	const WinogradMatrix into = winograd_into(&w, part);
	TRY(infer_ints_n(f, "tiles", 2, &tiles));
	if (!dtype_is_float(x.dtype) || x.n != 4)
		return infer_fail(f, "expected float x[N, C, H, W], got %s of rank %u",
				  dtype_name(x.dtype), x.n);
	for (uint32_t k = 0; k < 2; k++)
		TRY(infer_same(f, "elements of all tiles", x.dim[2 + k],
			       sym_addi(f->syms, sym_muli(f->syms, tiles[k], into.step),
					into.cols - into.step)));
	const Sym dim[] = {sym_int(f->syms, (m + 2) * (m + 2)), x.dim[0], x.dim[1], tiles[0],
			   tiles[1]};
	return infer_result(f, x.dtype, 5, dim);
}
INFER(winograd_input)

static bool shape_winograd_output(Infer *f)
{
	Type x = infer_in(f, 0);
	const Sym *size;
	WinogradPart part;
	int64_t m;
	TRY(tile_of(f, &m));
	TRY(part_of(f, false, &part));
	const Winograd w = winograd_matrices((uint32_t)m);
	const WinogradMatrix from = winograd_from(&w, part);
	TRY(infer_ints_n(f, "size", 2, &size));
	if (!dtype_is_float(x.dtype) || x.n != 5)
		return infer_fail(f, "expected float x[n, N, H, W, C], got %s of rank %u",
				  dtype_name(x.dtype), x.n);
	TRY(infer_same(f, "products of a tile", x.dim[0], sym_int(f->syms, (m + 2) * (m + 2))));
	for (uint32_t k = 0; k < 2; k++)
		TRY(infer_same(f, "tiles of the result", x.dim[2 + k],
			       sym_ceildiv(f->syms, size[k], sym_int(f->syms, from.step))));
	const Sym dim[] = {x.dim[1], x.dim[4], size[0], size[1]};
	return infer_result(f, x.dtype, 4, dim);
}
INFER(winograd_output)

/* ---- Winograd: evaluation ---- */

/* Computes y = M x M' of a square x. */
static void two_sided(const WinogradMatrix *m, const double *x, double *y)
{
	double half[WINOGRAD_MAX][WINOGRAD_MAX];
	for (uint32_t i = 0; i < m->rows; i++)
		for (uint32_t j = 0; j < m->cols; j++) {
			half[i][j] = 0;
			for (uint32_t k = 0; k < m->cols; k++)
				half[i][j] += m->c[i][k] * x[k * m->cols + j];
		}
	for (uint32_t i = 0; i < m->rows; i++)
		for (uint32_t j = 0; j < m->rows; j++) {
			double sum = 0;
			for (uint32_t k = 0; k < m->cols; k++)
				sum += half[i][k] * m->c[j][k];
			y[i * m->rows + j] = sum;
		}
}

/* Returns the part that the attribute names: inference has checked the name. */
static WinogradPart evaluated_part(const Graph *g, Node n)
{
	WinogradPart part = WINOGRAD_INPUTS;
	winograd_part_named(node_str(g, n, "part"), &part);
	return part;
}

static bool eval_winograd_input(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t m, at = 0;
	TRY(eval_int(e, g, n, "tile", &m));
	const Winograd w = winograd_matrices((uint32_t)m);
	const WinogradMatrix into = winograd_into(&w, evaluated_part(g, n));
	const uint32_t cols = into.cols, step = into.step;
	const int64_t nx = tensor_numel(&in[0]), points = tensor_numel(out) / (w.n * w.n);
	const int64_t *dim = out->dim, width = in[0].dim[3], plane = in[0].dim[2] * width;
	double *x = EVAL_ARRAY(e, double, nx), d[WINOGRAD_MAX * WINOGRAD_MAX],
	       v[WINOGRAD_MAX * WINOGRAD_MAX];
	tensor_read_f64(&in[0], 0, nx, x);
	for (int64_t image = 0; image < dim[1] * dim[2]; image++)
		for (int64_t ty = 0; ty < dim[3]; ty++)
			for (int64_t tx = 0; tx < dim[4]; tx++, at++) {
				for (uint32_t i = 0; i < cols; i++)
					for (uint32_t j = 0; j < cols; j++)
						d[i * cols + j] =
							x[image * plane + (ty * step + i) * width +
							  tx * step + j];
				two_sided(&into, d, v);
				for (uint32_t k = 0; k < w.n * w.n; k++)
					tensor_set_f64(out, k * points + at, v[k]);
			}
	return true;
}

static bool eval_winograd_output(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t m, at = 0;
	TRY(eval_int(e, g, n, "tile", &m));
	const Winograd w = winograd_matrices((uint32_t)m);
	const WinogradMatrix from = winograd_from(&w, evaluated_part(g, n));
	const int64_t nx = tensor_numel(&in[0]), points = nx / (w.n * w.n), *dim = in[0].dim;
	const int64_t channels = dim[4], height = out->dim[2], width = out->dim[3],
		      step = from.step;
	double *x = EVAL_ARRAY(e, double, nx), p[WINOGRAD_MAX * WINOGRAD_MAX],
	       y[WINOGRAD_MAX * WINOGRAD_MAX];
	tensor_read_f64(&in[0], 0, nx, x);
	for (int64_t image = 0; image < dim[1]; image++)
		for (int64_t ty = 0; ty < dim[2]; ty++)
			for (int64_t tx = 0; tx < dim[3]; tx++)
				for (int64_t c = 0; c < channels; c++, at++) {
					for (uint32_t k = 0; k < w.n * w.n; k++)
						p[k] = x[k * points + at];
					two_sided(&from, p, y);
					for (int64_t i = 0; i < step && ty * step + i < height; i++)
						for (int64_t j = 0;
						     j < step && tx * step + j < width; j++)
							tensor_set_f64(
								out,
								((image * channels + c) * height +
								 ty * step + i) *
										width +
									tx * step + j,
								y[i * step + j]);
				}
	return true;
}

OP(winograd_input) {
	.schema =
		"winograd_input(Tensor x, *, int tile, int[] tiles, str part=\"inputs\") -> Tensor",
	.doc = "x[N, C, H, W] -> [(tile + 2)^2, N, C, tiles...]: B' d B of each tile's inputs d; "
	       "part filter: G w G' of taps w, results: A y A' of the tile's results y "
	       "(ir/target/winograd_matrices.h)",
	.no_deriv = "convolutions are differentiated before they are transformed (Winograd)",
	.infer = infer_winograd_input,
	.eval = eval_winograd_input,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS, .bordered = 1},
	.accumulates = true,
	.sample = "f32[2, 3, 6, 4], tile=2, tiles=[2, 1]; f32[1, 2, 6, 10], tile=4, tiles=[1, 2]; "
		  "f32[2, 3, 3, 3], tile=4, tiles=[1, 1], part=\"filter\"; "
		  "f32[2, 1, 4, 2], tile=2, tiles=[2, 1], part=\"results\"",
};

OP(winograd_output) {
	.schema = "winograd_output(Tensor x, *, int tile, int[] size, str part=\"results\") -> "
		  "Tensor",
	.doc = "x[(tile + 2)^2, N, H, W, C] of H x W tiles -> [N, C, size...]: A' x A of each "
	       "tile; part filter: G' x G, the gradient of taps (ir/target/winograd_matrices.h)",
	.no_deriv = "convolutions are differentiated before they are transformed (Winograd)",
	.infer = infer_winograd_output,
	.eval = eval_winograd_output,
	.lower = {.role = LOWER_TILES, .fuses = FUSE_ONCE, .reads = ALL_OPERANDS},
	.accumulates = true,
	.sample = "f32[16, 2, 2, 1, 3], tile=2, size=[3, 2]; f32[36, 1, 1, 2, 2], tile=4, "
		  "size=[4, 5]; f32[36, 2, 1, 1, 3], tile=4, size=[3, 3], part=\"filter\"",
};
