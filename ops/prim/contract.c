/* General dot product over pairs of axes. */
#include <string.h>

#include "ops/prim/priv.h"
#include "ops/rules/batch.h"

/* ---- inference ---- */

/* Finds pairs of axes: dims[0] of x, dims[1] of y. */
static bool axis_pairs(Infer *f, const char *xs, const char *ys, uint32_t (*dims)[MAX_RANK],
                       uint32_t *n)
{
	Type t[2] = {infer_in(f, 0), infer_in(f, 1)};
	uint32_t ny;
	TRY(infer_dims(f, xs, t[0].n, dims[0], n));
	TRY(infer_dims(f, ys, t[1].n, dims[1], &ny));
	if (*n != ny)
		return infer_fail(f, "%s has %u axes, %s has %u", xs, *n, ys, ny);
	for (uint32_t k = 0; k < ny; k++)
		TRY(infer_same(f, "paired extent", t[0].dim[dims[0][k]], t[1].dim[dims[1][k]]));
	return true;
}

static bool mark_dims(Infer *f, uint32_t *mask, const uint32_t *dim, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		if (*mask >> dim[k] & 1)
			return infer_fail(f, "axis %u is both batch and summed", dim[k]);
		*mask |= 1u << dim[k];
	}
	return true;
}

/* Whether integers of 8 bits are converted, as where they meet f32. */
static bool converts_bytes(DType x, DType y)
{
	return x == DT_f32 && (y == DT_i8 || y == DT_u8);
}

static bool shape_contract(Infer *f)
{
	uint32_t batch[2][MAX_RANK], sum[2][MAX_RANK], nbatch, nsum, rank = 0;
	Sym dim[2 * MAX_RANK];
	DType x = infer_in(f, 0).dtype, y = infer_in(f, 1).dtype, result;
	if (!(dtype_is_int(x) && dtype_is_int(y)) && !converts_bytes(x, y) && !converts_bytes(y, x))
		TRY(infer_same_dtype(f, 0, 1));
	TRY(infer_acc(f, dtype_is_int(x) ? y : x, &result));
	TRY(axis_pairs(f, "batch_x", "batch_y", batch, &nbatch));
	TRY(axis_pairs(f, "sum_x", "sum_y", sum, &nsum));
	for (uint32_t k = 0; k < nbatch; k++)
		dim[rank++] = infer_in(f, 0).dim[batch[0][k]];
	for (uint32_t side = 0; side < 2; side++) {
		Type t = infer_in(f, side);
		uint32_t taken = 0;
		TRY(mark_dims(f, &taken, batch[side], nbatch));
		TRY(mark_dims(f, &taken, sum[side], nsum));
		for (uint32_t k = 0; k < t.n; k++) {
			if (!(taken >> k & 1))
				dim[rank++] = t.dim[k];
		}
	}
	return infer_result(f, result, rank, dim);
}
INFER(contract)

/* Adds the batch. Of two batches it is one more pair of axes. That of one operand is the first
 * of its free axes, so of x it stands behind those of pairs in the result, and of y behind x's
 * as well. */
static Node batch_contract(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	static const char *const axes[2][2] = {{"batch_x", "sum_x"}, {"batch_y", "sum_y"}};
	Attr *attr = batch_attrs(b, n);
	uint32_t npair, nsum, at;
	(void)size;
	node_ints(b->g, n, "batch_x", &npair);
	node_ints(b->g, n, "sum_x", &nsum);
	for (uint32_t side = 0; side < 2; side++) {
		if (!batched[side])
			continue;
		batch_next(b, n, attr, axes[side][0]);
		batch_next(b, n, attr, axes[side][1]);
		if (batched[!side])
			batch_first_int(b, n, attr, axes[side][0], 0);
	}
	Node y = batch_again(b, n, in, attr);
	at = batched[0] ? npair : node_rank(b->g, in[0]) - nsum;
	return batched[0] && batched[1] ? y : batch_from(b, y, at);
}

/* ---- evaluation ---- */

/* One operand seen as [batch, free, sum]: offsets of each index in its array. */
typedef struct {
	int64_t nbatch, nfree, nsum;
	int64_t *batch, *free, *sum;
} OperandSide;

/* Returns row-major offsets over the chosen dims of t, in the given order. */
static int64_t *offsets(EvalCtx *e, const Tensor *t, const int64_t *dim, uint32_t n, int64_t *count)
{
	int64_t stride[MAX_RANK];
	walk_strides(t->rank, t->dim, stride);
	*count = 1;
	for (uint32_t k = 0; k < n; k++)
		*count *= t->dim[dim[k]];
	int64_t *at = EVAL_ARRAY(e, int64_t, *count), done = 1;
	for (uint32_t k = *count ? n : 0; k-- > 0; done *= t->dim[dim[k]])
		for (int64_t i = done; i < done * t->dim[dim[k]]; i++)
			at[i] = at[i - done] + stride[dim[k]];
	return at;
}

static bool split_operand(EvalCtx *e, Graph *g, Node n, bool is_y, const Tensor *t, OperandSide *s)
{
	int64_t batch[MAX_RANK], sum[MAX_RANK], left[MAX_RANK];
	uint32_t nbatch, nsum, nfree = 0, taken = 0;
	TRY(eval_ints(e, g, n, is_y ? "batch_y" : "batch_x", batch, &nbatch));
	TRY(eval_ints(e, g, n, is_y ? "sum_y" : "sum_x", sum, &nsum));
	for (uint32_t k = 0; k < nbatch; k++)
		taken |= 1u << batch[k];
	for (uint32_t k = 0; k < nsum; k++)
		taken |= 1u << sum[k];
	for (uint32_t k = 0; k < t->rank; k++) {
		if (!(taken >> k & 1))
			left[nfree++] = k;
	}
	s->batch = offsets(e, t, batch, nbatch, &s->nbatch);
	s->sum = offsets(e, t, sum, nsum, &s->nsum);
	s->free = offsets(e, t, left, nfree, &s->nfree);
	return true;
}

/* Computes c[b, i, j] += sum over k of x[b, i, k] * y[b, j, k]. */
static void contract_f64(EvalCtx *e, const OperandSide *x, const double *dx, const OperandSide *y,
			 const double *dy, double *c)
{
	double *work = EVAL_ARRAY(e, double, GEMM_WORK);
	for (int64_t b = 0; b < x->nbatch; b++) {
		MatF64 a = {dx + x->batch[b], x->free, x->sum},
		       w = {dy + y->batch[b], y->sum, y->free};
		gemm_f64(x->nfree, y->nfree, x->nsum, a, w, c + b * x->nfree * y->nfree, work);
	}
}

static void contract_i64(const OperandSide *x, const int64_t *dx, const OperandSide *y,
			 const int64_t *dy, int64_t *c)
{
	for (int64_t b = 0; b < x->nbatch; b++) {
		MatI64 a = {dx + x->batch[b], x->free, x->sum},
		       w = {dy + y->batch[b], y->sum, y->free};
		gemm_i64(x->nfree, y->nfree, x->nsum, a, w, c + b * x->nfree * y->nfree);
	}
}

/* Returns the real (part 0) or imaginary (part 1) plane, negated if asked. */
static double *plane(EvalCtx *e, const Tensor *t, int part, double sign)
{
	Tensor flat = tensor_flat_real(t);
	int64_t n = tensor_numel(t);
	double *p = EVAL_ARRAY(e, double, n);
	for (int64_t i = 0; i < n; i++)
		p[i] = sign * tensor_f64(&flat, 2 * i + part);
	return p;
}

static void contract_complex(EvalCtx *e, const OperandSide *x, const OperandSide *y,
			     const Tensor *in, Tensor *out)
{
	int64_t n = tensor_numel(out);
	double *re = EVAL_ARRAY(e, double, n), *im = EVAL_ARRAY(e, double, n);
	double *yr = plane(e, &in[1], 0, 1), *yi = plane(e, &in[1], 1, 1);
	contract_f64(e, x, plane(e, &in[0], 0, 1), y, yr, re);
	contract_f64(e, x, plane(e, &in[0], 1, -1), y, yi, re);
	contract_f64(e, x, plane(e, &in[0], 0, 1), y, yi, im);
	contract_f64(e, x, plane(e, &in[0], 1, 1), y, yr, im);
	Tensor flat = tensor_flat_real(out);
	for (int64_t i = 0; i < n; i++) {
		tensor_set_f64(&flat, 2 * i, re[i]);
		tensor_set_f64(&flat, 2 * i + 1, im[i]);
	}
}

static const double *as_f64(EvalCtx *e, const Tensor *t)
{
	int64_t n = tensor_numel(t);
	double *p = t->dtype == DT_f64 ? t->data : EVAL_ARRAY(e, double, n);
	if (t->dtype != DT_f64)
		tensor_read_f64(t, 0, n, p);
	return p;
}

static bool eval_contract(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	OperandSide x, y;
	TRY(split_operand(e, g, n, false, &in[0], &x));
	TRY(split_operand(e, g, n, true, &in[1], &y));
	int64_t nx = tensor_numel(&in[0]), ny = tensor_numel(&in[1]), nz = tensor_numel(out);
	if (x.nbatch != y.nbatch || x.nsum != y.nsum || nz != x.nbatch * x.nfree * y.nfree)
		return eval_error(
			e, g, n,
			"the paired extents differ: batch %lld and %lld, sum %lld and %lld",
			(long long)x.nbatch, (long long)y.nbatch, (long long)x.nsum,
			(long long)y.nsum);
	if (dtype_is_complex(out->dtype)) {
		contract_complex(e, &x, &y, in, out);
	} else if (eval_as_float(out->dtype)) {
		double *c = out->dtype == DT_f64 ? out->data : EVAL_ARRAY(e, double, nz);
		contract_f64(e, &x, as_f64(e, &in[0]), &y, as_f64(e, &in[1]), c);
		if (out->dtype != DT_f64)
			tensor_write_f64(out, 0, nz, c);
	} else {
		int64_t *dx = EVAL_ARRAY(e, int64_t, nx), *dy = EVAL_ARRAY(e, int64_t, ny);
		int64_t *c = EVAL_ARRAY(e, int64_t, nz);
		tensor_read_i64(&in[0], 0, nx, dx);
		tensor_read_i64(&in[1], 0, ny, dy);
		contract_i64(&x, dx, &y, dy, c);
		tensor_write_i64(out, 0, nz, c);
	}
	return true;
}

static void index_contract(IndexMap *m)
{
	const Graph *g = m->g;
	SymTab *syms = graph_syms(g);
	Node x = node_in(g, m->n, 0), y = node_in(g, m->n, 1);
	uint32_t nbatch, nsum, n, o = 0;
	const Sym *bx = node_ints(g, m->n, "batch_x", &nbatch),
		  *by = node_ints(g, m->n, "batch_y", &n);
	const Sym *sx = node_ints(g, m->n, "sum_x", &nsum), *sy = node_ints(g, m->n, "sum_y", &n);
	Sym *ix = m->in[0], *iy = m->in[1];
	for (uint32_t k = 0; k < nbatch; k++, o++)
		ix[sym_hint(syms, bx[k])] = iy[sym_hint(syms, by[k])] = m->at[o];
	for (uint32_t k = 0; k < nsum; k++) {
		int64_t d = sym_hint(syms, sx[k]);
		ix[d] = iy[sym_hint(syms, sy[k])] = m->axis(m, "k", node_dim(g, x, (uint32_t)d));
	}
	for (uint32_t k = 0; k < node_rank(g, x); k++)
		if (!ix[k].i)
			ix[k] = m->at[o++];
	for (uint32_t k = 0; k < node_rank(g, y); k++)
		if (!iy[k].i)
			iy[k] = m->at[o++];
}

/* ---- derivatives ---- */

/* The axes of one operand: those that the node pairs, and the others in order. */
typedef struct {
	uint32_t nbatch, nsum, nfree, batch[MAX_RANK], sum[MAX_RANK], free[MAX_RANK];
} OperandAxes;

static uint32_t read_axes(const Graph *g, Node n, const char *name, uint32_t *dim, uint32_t *taken)
{
	uint32_t count;
	const Sym *list = node_ints(g, n, name, &count);
	for (uint32_t k = 0; k < count; k++) {
		dim[k] = (uint32_t)sym_hint(graph_syms(g), list[k]);
		*taken |= 1u << dim[k];
	}
	return count;
}

static OperandAxes axes_of(const Graph *g, Node n, uint32_t side)
{
	OperandAxes a = {0};
	uint32_t taken = 0;
	a.nbatch = read_axes(g, n, side ? "batch_y" : "batch_x", a.batch, &taken);
	a.nsum = read_axes(g, n, side ? "sum_y" : "sum_x", a.sum, &taken);
	for (uint32_t k = 0; k < node_rank(g, node_in(g, n, side)); k++)
		if (!(taken >> k & 1))
			a.free[a.nfree++] = k;
	return a;
}

/* Returns the cotangent of one operand: of the result's, [batch, free x, free y], and the other
 * operand the sum over what only that one has; [batch, free, what was summed in the order of the
 * other's axes], so permuted. */
static Node cotangent(Build *b, Node n, Node ct, uint32_t side)
{
	OperandAxes own = axes_of(b->g, n, side), other = axes_of(b->g, n, !side);
	uint32_t batch[MAX_RANK][2], sum[MAX_RANK][2], perm[MAX_RANK] = {0};
	uint32_t first = own.nbatch + (side ? 0 : own.nfree);
	for (uint32_t k = 0; k < own.nbatch; k++) {
		batch[k][0] = k;
		batch[k][1] = other.batch[k];
		perm[own.batch[k]] = k;
	}
	for (uint32_t k = 0; k < other.nfree; k++) {
		sum[k][0] = first + k;
		sum[k][1] = other.free[k];
	}
	for (uint32_t k = 0; k < own.nfree; k++)
		perm[own.free[k]] = own.nbatch + k;
	for (uint32_t k = 0; k < own.nsum; k++) {
		uint32_t before = 0;
		for (uint32_t j = 0; j < own.nsum; j++)
			before += other.sum[j] < other.sum[k];
		perm[own.sum[k]] = own.nbatch + own.nfree + before;
	}
	/* of storage types the sums that an epilogue was to read are rounded, as if there had been
	 * none */
	Node narrow = b_convert(b, ct, node_dtype(b->g, node_in(b->g, n, side)));
	Node z = b_contract(b, narrow, node_in(b->g, n, !side), (const uint32_t(*)[2])batch,
			    own.nbatch, (const uint32_t(*)[2])sum, other.nfree);
	return z.i ? b_permute(b, z, perm) : z;
}

static bool adjoint_contract(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	for (uint32_t side = 0; side < 2; side++)
		if (want[side])
			TRY((g[side] = cotangent(b, n, ct[0], side)).i);
	return true;
}

/* Sets from[] for the batch dimensions, then the free ones of x, then those of y. */
static void along_contract(const Graph *g, Node n, int from[MAX_RANK])
{
	const SymTab *syms = graph_syms(g);
	Node x = node_in(g, n, 0), y = node_in(g, n, 1);
	uint32_t nbatch, nsum, used = 0, at = 0;
	const Sym *batch = node_ints(g, n, "batch_y", &nbatch),
		  *sum = node_ints(g, n, "sum_y", &nsum);
	for (uint32_t k = 0; k < nsum; k++)
		used |= 1u << sym_const(syms, sum[k]);
	for (uint32_t k = 0; k < nbatch; k++) {
		from[at++] = (int)sym_const(syms, batch[k]);
		used |= 1u << sym_const(syms, batch[k]);
	}
	for (uint32_t k = nbatch + nsum; k < node_rank(g, x); k++)
		from[at++] = -1;
	for (uint32_t k = 0; k < node_rank(g, y); k++)
		if (!(used >> k & 1))
			from[at++] = (int)k;
}

OP(contract) {
	.linear = LINEAR_ALONE,
	.adjoint = adjoint_contract,
	.schema = "contract(Tensor x, Tensor y, *, int[] batch_x, int[] batch_y, int[] sum_x, "
		  "int[] sum_y, ScalarType acc, ScalarType? out=None, int[]? most=None) -> Tensor",
	.doc = "sum of products over paired axes: result [batch, free x axes, free y axes]; "
	       "ints give acc, floats out, which is acc or their own dtype; "
	       "i8 and u8 beside f32 are converted; most: two bounds, which the magnitudes of x's "
	       "and of y's elements do not exceed",
	.along = along_contract,
	.infer = infer_contract,
	.eval = eval_contract,
	.batch = batch_contract,
	.lower = {.role = LOWER_ANCHOR, .fuses = FUSE_ONCE, .reads = ALL_OPERANDS,
		  .index = index_contract},
	.accumulates = true,
	.sample = "f32[2, 3, 4], f32[5, 4, 2], batch_x=[0], batch_y=[2], sum_x=[2], sum_y=[1], "
		  "acc=f32; "
		  "i8[3, 4] in -8..8, i8[5, 4] in -8..8, batch_x=[], batch_y=[], sum_x=[1], "
		  "sum_y=[1], acc=i32; "
		  "f16[3, 4], f16[5, 4], batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f32, "
		  "out=f32; f32[3, 4], i8[5, 4] in -8..8, batch_x=[], batch_y=[], sum_x=[1], "
		  "sum_y=[1], acc=f32; "
		  "f32[2, 0], f32[0, 3], batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32",
};
