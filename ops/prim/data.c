/* Values from nothing, conversions, and slices at run-time places. */
#include <string.h>

#include "ir/scalar/scalar.h"
#include "ops/prim/priv.h"
#include "ops/rules/batch.h"
#include "ops/rules/parts.h"

/* ---- full ---- */

static bool shape_full(Infer *f)
{
	DType d;
	const Sym *shape;
	uint32_t rank;
	TRY(infer_dtype(f, "dtype", &d));
	TRY(infer_ints(f, "shape", &shape, &rank));
	DType value = attr_weak_dtype(infer_attr(f, "value"));
	if (value == DT_none)
		return infer_fail(f, "argument value: expected a number");
	if (dtype_is_complex(value) && !dtype_is_complex(d))
		return infer_fail(f, "argument value: expected a real number for %s",
				  dtype_name(d));
	return infer_result(f, d, rank, shape);
}
INFER(full)

static bool eval_full(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	(void)in;
	int64_t count = tensor_numel(out), v = 0;
	const Attr *a = node_attr(g, n, "value");
	if (count == 0)
		return true;
	if (a->kind == ATTR_float) {
		tensor_set_f64(out, 0, a->f);
	} else if (a->kind == ATTR_complex) {
		Tensor parts = tensor_flat_real(out);
		tensor_set_f64(&parts, 0, a->z.re);
		tensor_set_f64(&parts, 1, a->z.im);
	} else {
		if (a->kind == ATTR_bool)
			v = a->b;
		else
			TRY(eval_sym(e, a->s, &v));
		tensor_set_i64(out, 0, v);
	}
	Walk w = {.rank = 1, .dim = {count - 1}, .dst = {1}, .src = {0}};
	walk_copy(&w, elem_at(out, 1), out->data, dtype_size(out->dtype));
	return true;
}

static bool parts_full(Build *b, Node n, const Parts *in, Parts *out)
{
	const Type t = *node_type(b->g, n);
	const Attr v = *node_attr(b->g, n, "value");
	(void)in;
	out->re = b_full_attr(b, dtype_real(t.dtype), v, t.n, t.dim);
	out->im = b_full(b, dtype_real(t.dtype), v.kind == ATTR_complex ? v.z.im : 0, t.n, t.dim);
	return out->re.i && out->im.i;
}

static Sym integer_full(const Graph *g, Node n, const Sym *in)
{
	const Attr *v = node_attr(g, n, "value");
	(void)in;
	return v->kind == ATTR_int
		       ? v->s
		       : sym_int(graph_syms(g), v->kind == ATTR_bool ? v->b : (int64_t)v->f);
}

OP(full) {
	.parts = parts_full,
	.schema = "full(*, ScalarType dtype, int[] shape, Scalar value) -> Tensor",
	.doc = "one number everywhere",
	.folds = FOLDS_INSIDE,
	.rounded = true,
	.integer = integer_full,
	.infer = infer_full,
	.eval = eval_full,
	.lower = {.role = LOWER_LEAF},
	.sample = "dtype=f32, shape=[2, 3], value=1.5; dtype=i64, shape=[2], value=-3; "
		  "dtype=c64, shape=[3], value=complex(1.5, -2)",
};

/* ---- iota ---- */

static bool shape_iota(Infer *f)
{
	DType d;
	Sym n;
	TRY(infer_dtype(f, "dtype", &d));
	TRY(infer_sym(f, "n", &n));
	if (d == DT_bool || dtype_is_complex(d))
		return infer_fail(f, "expected a real number type, got %s", dtype_name(d));
	return infer_result(f, d, 1, &n);
}
INFER(iota)

static bool eval_iota(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	(void)e, (void)g, (void)n, (void)in;
	for (int64_t i = 0; i < out->dim[0]; i++)
		tensor_set_i64(out, i, i);
	return true;
}

static void index_iota(IndexMap *m)
{
	m->in[0][0] = m->at[0];
}

OP(iota) {
	.schema = "iota(*, ScalarType dtype, int n) -> Tensor",
	.doc = "0, 1, ... n - 1",
	.folds = FOLDS_INSIDE,
	.infer = infer_iota,
	.eval = eval_iota,
	.lower = {.role = LOWER_LEAF, .index = index_iota},
	.sample = "dtype=i64, n=5; dtype=f16, n=3",
};

/* ---- from_size ---- */

static bool shape_from_size(Infer *f)
{
	Sym v;
	TRY(infer_sym(f, "value", &v));
	return infer_result(f, DT_i64, 0, NULL);
}
INFER(from_size)

static bool eval_from_size(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	(void)in;
	int64_t v;
	TRY(eval_int(e, g, n, "value", &v));
	tensor_set_i64(out, 0, v);
	return true;
}

static void index_from_size(IndexMap *m)
{
	m->in[0][0] = node_sym(m->g, m->n, "value");
}

static Sym integer_from_size(const Graph *g, Node n, const Sym *in)
{
	(void)in;
	return node_sym(g, n, "value");
}

OP(from_size) {
	.schema = "from_size(*, int value) -> Tensor",
	.doc = "a symbolic integer as a 0-d tensor",
	.folds = FOLDS,
	.integer = integer_from_size,
	.infer = infer_from_size,
	.eval = eval_from_size,
	.lower = {.role = LOWER_LEAF, .index = index_from_size},
	.sample = "value=7",
};

/* ---- convert ---- */

static bool shape_convert(Infer *f)
{
	Type x = infer_in(f, 0);
	DType d;
	TRY(infer_dtype(f, "dtype", &d));
	return infer_result(f, d, x.n, x.dim);
}
INFER(convert)

enum { BLOCK = 1024 };

/* Converts real numbers to real numbers, by the scalar function that kernels use; storing rounds
 * to a storage dtype. */
static void convert_flat(const Tensor *from, Tensor *to)
{
	const ScFn *fn = scalar_convert(dtype_compute(from->dtype), dtype_compute(to->dtype));
	ScVal in[BLOCK], out[BLOCK];
	const ScVal *arg[] = {in};
	int64_t n = from->dim[0];
	for (int64_t i = 0; i < n; i += BLOCK) {
		int64_t count = n - i < BLOCK ? n - i : BLOCK;
		if (dtype_is_float(from->dtype))
			tensor_read_f64(from, i, count, &in->f);
		else
			tensor_read_i64(from, i, count, &in->i);
		scalar_eval_n(fn, arg, out, (uint32_t)count);
		if (dtype_is_float(to->dtype))
			tensor_write_f64(to, i, count, &out->f);
		else
			tensor_write_i64(to, i, count, &out->i);
	}
}

/* Converts the real part only (complex to real), or with imaginary part zero (real to complex). */
static void convert_real_part(const Tensor *from, Tensor *to)
{
	int64_t n = tensor_numel(from);
	double block[BLOCK];
	for (int64_t i = 0; i < n; i += BLOCK) {
		int64_t count = n - i < BLOCK ? n - i : BLOCK;
		tensor_read_f64(from, i, count, block);
		tensor_write_f64(to, i, count, block);
	}
}

static bool eval_convert(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	(void)e, (void)g, (void)n;
	bool from = dtype_is_complex(in->dtype), to = dtype_is_complex(out->dtype);
	if (from && out->dtype == DT_bool) {
		for (int64_t i = 0; i < tensor_numel(in); i++) {
			Tensor flat = tensor_flat_real(in);
			bool v = tensor_f64(&flat, 2 * i) != 0 || tensor_f64(&flat, 2 * i + 1) != 0;
			tensor_set_i64(out, i, v);
		}
	} else if (from == to) {
		Tensor x = tensor_flat_real(in), y = tensor_flat_real(out);
		convert_flat(&x, &y);
	} else {
		convert_real_part(in, out);
	}
	return true;
}

static bool keeps_fractions(const Graph *g, Node n)
{
	DType to = node_dtype(g, n), from = node_dtype(g, node_in(g, n, 0));
	return dtype_is_inexact(to) && dtype_is_inexact(from);
}

static bool adjoint_convert(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	g[0] = b_convert(b, ct[0], node_dtype(b->g, node_in(b->g, n, 0)));
	return g[0].i;
}

/* Converts complex numbers. A complex number is true where one of its parts is; a real number is
 * its real part. */
static bool parts_convert(Build *b, Node n, const Parts *in, Parts *out)
{
	const Parts x = in[0];
	DType to = node_dtype(b->g, n), d = dtype_real(to);
	if (to == DT_bool) {
		Node im = b_convert(b, x.im, d), re = b_convert(b, x.re, d);
		out->re = b_bin(b, OP_bit_or, re, im);
		return out->re.i;
	}
	out->re = b_convert(b, x.re, d);
	if (dtype_is_complex(to))
		out->im = x.im.i ? b_convert(b, x.im, d) : b_zeros_like(b, out->re);
	return out->re.i;
}

static Sym integer_convert(const Graph *g, Node n, const Sym *in)
{
	(void)g, (void)n;
	return in[0];
}

OP(convert) {
	.parts = parts_convert,
	.linear = LINEAR_TOGETHER,
	.linear_if = keeps_fractions,
	.adjoint = adjoint_convert,
	.schema = "convert(Tensor x, *, ScalarType dtype) -> Tensor",
	.doc = "numeric conversion, defined in docs/numerics.md; int to int wraps",
	.folds = FOLDS,
	.rounded = true,
	.integer = integer_convert,
	.infer = infer_convert,
	.eval = eval_convert,
	.batch_leading = true,
	.lower = {.role = LOWER_MAP, .fuses = FUSE_CHEAP, .keeps = KEEPS_INDEX},
	.sample = "f32[3, 4] in -8..8, dtype=i32; i64[5] in -8..8, dtype=f16; f32[4], dtype=bool",
};

/* ---- bitcast ---- */

static bool shape_bitcast(Infer *f)
{
	Type x = infer_in(f, 0);
	DType d;
	TRY(infer_dtype(f, "dtype", &d));
	if (dtype_size(d) != dtype_size(x.dtype))
		return infer_fail(f, "%s and %s have different sizes", dtype_name(x.dtype),
		                  dtype_name(d));
	return infer_result(f, d, x.n, x.dim);
}
INFER(bitcast)

static bool eval_bitcast(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	(void)e, (void)g, (void)n;
	copy_elems(out, in);
	if (out->dtype == DT_bool) {
		uint8_t *byte = out->data;
		for (int64_t i = 0, count = tensor_numel(out); i < count; i++)
			byte[i] = byte[i] != 0;
	}
	return true;
}

/* Gives no cotangent: nothing flows through bits, as in PyTorch's view of another dtype. */
static bool adjoint_bitcast(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)b, (void)n, (void)ct, (void)want, (void)g;
	return true;
}

OP(bitcast) {
	.adjoint = adjoint_bitcast,
	.schema = "bitcast(Tensor x, *, ScalarType dtype) -> Tensor",
	.doc = "the same bits as another dtype of the same size; as bool, whether a byte is not 0",
	.folds = FOLDS,
	.rounded = true,
	.infer = infer_bitcast,
	.eval = eval_bitcast,
	.batch_leading = true,
	.lower = {.role = LOWER_MAP, .fuses = FUSE_CHEAP, .keeps = KEEPS_INDEX},
	.sample = "f32[3, 4], dtype=i32; f16[7], dtype=u16; i16[5] in 0..999, dtype=bf16; "
		  "u8[5], dtype=bool",
};

/* ---- batches of slice_at, update_slice ---- */

/* Finds the axes along which a box is smaller than x: where the box begins along others is 0. */
static uint32_t partial_axes(Build *b, Node x, const Sym *size, uint32_t *axis)
{
	uint32_t count = 0;
	for (uint32_t k = 0; k < node_rank(b->g, x); k++)
		if (sym_eq(b_syms(b), size[k], node_dim(b->g, x, k)) != YES)
			axis[count++] = k;
	return count;
}

/* Returns the places in x, one for each member of the batch and element of its box along those
 * axes: [B, extents..., axes]. */
static Node box_index(Build *b, Node x, const Node *start, Sym batch, const Sym *size,
		      const uint32_t *axis, uint32_t count)
{
	Sym dim[MAX_RANK + 1] = {batch};
	Node part[MAX_RANK];
	for (uint32_t k = 0; k < count; k++)
		dim[k + 1] = size[axis[k]];
	dim[count + 1] = b_int(b, 1);
	for (uint32_t k = 0; k < count; k++) {
		uint32_t a = axis[k];
		Sym room = sym_sub(b_syms(b), node_dim(b->g, x, a), size[a]);
		Node at = b_bin(b, OP_minimum, start[a], b_from_size(b, room));
		at = b_bin(b, OP_maximum, at, b_full_int(b, DT_i64, 0, 0, NULL));
		at = b_broadcast_in_dim(b, at, count + 2, dim, (uint32_t[]){0});
		Node within = b_broadcast_in_dim(b, b_iota(b, DT_i64, size[a]), count + 2, dim,
						 &(uint32_t){k + 1});
		part[k] = b_bin(b, OP_add, at, within);
	}
	return b_concat(b, part, count, (int)count + 1);
}

/* Sets to[k] to where axis k of x's box stands among [those axes..., the others...]. */
static void box_order(uint32_t rank, const uint32_t *axis, uint32_t count, uint32_t *to)
{
	uint32_t partial = 0, at = 0;
	for (uint32_t k = 0; k < count; k++) {
		partial |= 1u << axis[k];
		to[axis[k]] = at++;
	}
	for (uint32_t k = 0; k < rank; k++)
		if (!(partial >> k & 1))
			to[k] = at++;
}

/* Adds the batch as one more axis of boxes that begin at the same place. */
static Node shared_box(Build *b, Node n, const Node *in, const Node *x, uint32_t nx, Attr *attr)
{
	uint32_t nin = node_nin(b->g, n);
	Node *all = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, nin + 1);
	memcpy(all, x, nx * sizeof *x);
	all[nx] = b_full_int(b, DT_i64, 0, 0, NULL);
	memcpy(all + nx + 1, in + nx, (nin - nx) * sizeof *in);
	attr[op_arg_index(node_op(b->g, n), "start")] = attr_int(b->g->ir, nin - nx + 1);
	return b_node(b, node_op(b->g, n), all, nin + 1, attr, op_schema(node_op(b->g, n))->narg);
}

static bool any_batched(const bool *batched, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (batched[k])
			return true;
	return false;
}

static Node batch_slice_at(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Graph *g = b->g;
	Node x = node_in(g, n, 0);
	const Type t = *node_type(g, n);
	uint32_t axis[MAX_RANK], to[MAX_RANK], perm[MAX_RANK] = {0};
	if (!any_batched(batched + 1, t.n)) {
		Attr *attr = batch_attrs(b, n);
		batch_first(b, n, attr, "size", size);
		return shared_box(b, n, in, in, 1, attr);
	}
	uint32_t count = partial_axes(b, x, t.dim, axis);
	if (count + 2 > MAX_RANK)
		return batch_by_scan(b, n, in, batched, size);
	if (!count)
		return batch_wide(b, in[0], batched[0], size);
	Sym axes[MAX_RANK];
	for (uint32_t k = 0; k < count; k++)
		axes[k] = b_int(b, axis[k] + batched[0]);
	Node index = box_index(b, x, in + 1, size, t.dim, axis, count);
	Attr attr[] = {attr_none(), attr_none(), attr_int(g->ir, batched[0]),
		       attr_ints(axes, count), attr_str(g->ir, "promise")};
	Node y = b_node(b, OP_gather, (Node[]){in[0], index}, 2, attr, 5);
	box_order(t.n, axis, count, to);
	for (uint32_t k = 0; k < t.n; k++)
		perm[k + 1] = to[k] + 1;
	return b_permute(b, y, perm);
}

static Node batch_update_slice(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Graph *g = b->g;
	Node x = node_in(g, n, 0), update = node_in(g, n, 1);
	Node wide[] = {batch_wide(b, in[0], batched[0], size),
		       batch_wide(b, in[1], batched[1], size)};
	const Type t = *node_type(g, update);
	uint32_t axis[MAX_RANK], to[MAX_RANK], perm[MAX_RANK] = {0};
	if (!any_batched(batched + 2, t.n))
		return shared_box(b, n, in, wide, 2, batch_attrs(b, n));
	uint32_t count = partial_axes(b, x, t.dim, axis);
	if (count + 2 > MAX_RANK)
		return batch_by_scan(b, n, in, batched, size);
	if (!count)
		return wide[1];
	Sym axes[MAX_RANK];
	for (uint32_t k = 0; k < count; k++)
		axes[k] = b_int(b, axis[k] + 1);
	Node index = box_index(b, x, in + 2, size, t.dim, axis, count);
	box_order(t.n, axis, count, to);
	for (uint32_t k = 0; k < t.n; k++)
		perm[to[k] + 1] = k + 1;
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_none(),
		       attr_int(g->ir, 1),
		       attr_ints(axes, count),
		       attr_str(g->ir, "set"),
		       attr_str(g->ir, "promise"),
		       attr_bool(true),
		       attr_bool(false)};
	return b_node(b, OP_scatter, (Node[]){wide[0], index, b_permute(b, wide[1], perm)}, 3, attr,
		      9);
}

/* ---- slice_at, update_slice ---- */

/* Returns the row-major offset of a box of extents size[] in x, starts clamped so that it fits. */
static int64_t clamped_offset(const Tensor *x, const int64_t *size, const Tensor *start)
{
	int64_t stride[MAX_RANK], at = 0;
	walk_strides(x->rank, x->dim, stride);
	for (uint32_t k = 0; k < x->rank; k++) {
		int64_t s = tensor_i64(&start[k], 0), top = x->dim[k] - size[k];
		s = s > top ? top : s;
		at += (s < 0 ? 0 : s) * stride[k];
	}
	return at;
}

/* Whether the box fits at all. */
static bool check_fits(EvalCtx *e, Graph *g, Node n, const Tensor *x, const int64_t *size)
{
	for (uint32_t k = 0; k < x->rank; k++) {
		if (size[k] > x->dim[k])
			return eval_error(
				e, g, n, "a slice of %lld does not fit dimension %u of extent %lld",
				(long long)size[k], k, (long long)x->dim[k]);
	}
	return true;
}

static bool shape_slice_at(Infer *f)
{
	Type x = infer_in(f, 0);
	const Sym *size;
	uint32_t first, n = infer_args(f, "start", &first);
	TRY(infer_ints_n(f, "size", x.n, &size));
	if (n != x.n)
		return infer_fail(f, "expected %u starts, got %u", x.n, n);
	TRY(infer_index_scalars(f, first, n));
	for (uint32_t k = 0; k < x.n; k++)
		TRY(infer_le(f, "slice size", size[k], x.dim[k]));
	return infer_result(f, x.dtype, x.n, size);
}
INFER(slice_at)

static bool eval_slice_at(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	Walk w = {.rank = out->rank};
	TRY(check_fits(e, g, n, in, out->dim));
	if (tensor_numel(out) == 0)
		return true;
	memcpy(w.dim, out->dim, sizeof out->dim);
	walk_strides(in->rank, in->dim, w.src);
	walk_strides(out->rank, out->dim, w.dst);
	const char *src = elem_at(in, clamped_offset(in, out->dim, in + 1));
	walk_copy(&w, out->data, src, dtype_size(out->dtype));
	return true;
}

/* Maps an index of a box to x: operands from `first` on say where the box begins; at[] of it is
 * in[0][] of x. */
static void index_box(IndexMap *m, Node x, const Sym *size, uint32_t first)
{
	SymTab *syms = graph_syms(m->g);
	for (uint32_t k = 0; k < node_rank(m->g, x); k++) {
		Sym room = sym_sub(syms, node_dim(m->g, x, k), size[k]);
		Sym start = m->value(m, first + k, NULL, sym_addi(syms, room, 1), INDEX_FITS);
		m->in[0][k] = sym_add(syms, start, m->at[k]);
	}
}

static void index_slice_at(IndexMap *m)
{
	index_box(m, node_in(m->g, m->n, 0), node_type(m->g, m->n)->dim, 1);
}

static bool adjoint_slice_at(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node start[MAX_RANK];
	(void)want;
	for (uint32_t k = 1; k < node_nin(b->g, n); k++)
		start[k - 1] = node_in(b->g, n, k);
	g[0] = b_update_slice(b, b_zeros_like(b, node_in(b->g, n, 0)), ct[0], start);
	return g[0].i;
}

OP(slice_at) {
	.linear = LINEAR_TOGETHER,
	.linear_in = 1,
	.adjoint = adjoint_slice_at,
	.schema = "slice_at(Tensor x, Tensor[] start, *, int[] size) -> Tensor",
	.doc = "a box of fixed size at a run-time place, clamped to fit",
	.infer = infer_slice_at,
	.eval = eval_slice_at,
	.batch = batch_slice_at,
	.lower = {.role = LOWER_INDEX, .fuses = FUSE_CHEAP, .reads = 1, .index = index_slice_at},
	.sample = "f32[5, 4], [i64[] in -1..6, i64[] in 0..2], size=[2, 3]",
};

static bool shape_update_slice(Infer *f)
{
	Type x = infer_in(f, 0), u = infer_in(f, 1);
	uint32_t first, n = infer_args(f, "start", &first);
	TRY(infer_same_dtype(f, 0, 1));
	if (u.n != x.n || n != x.n)
		return infer_fail(f, "expected an update of rank %u and as many starts", x.n);
	TRY(infer_index_scalars(f, first, n));
	for (uint32_t k = 0; k < x.n; k++)
		TRY(infer_le(f, "update extent", u.dim[k], x.dim[k]));
	return infer_result(f, x.dtype, x.n, x.dim);
}
INFER(update_slice)

static bool eval_update_slice(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	const Tensor *update = &in[1];
	Walk w = {.rank = out->rank};
	copy_elems(out, in);
	TRY(check_fits(e, g, n, in, update->dim));
	if (tensor_numel(update) == 0)
		return true;
	memcpy(w.dim, update->dim, sizeof update->dim);
	walk_strides(out->rank, update->dim, w.src);
	walk_strides(out->rank, out->dim, w.dst);
	char *dst = elem_at(out, clamped_offset(in, update->dim, in + 2));
	walk_copy(&w, dst, update->data, dtype_size(out->dtype));
	return true;
}

static void index_update_slice(IndexMap *m)
{
	index_box(m, node_in(m->g, m->n, 0), node_type(m->g, node_in(m->g, m->n, 1))->dim, 2);
}

static bool adjoint_update_slice(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Graph *graph = b->g;
	uint32_t nin = node_nin(graph, n);
	Node *in = ARENA_ARRAY(graph->ir->ctx->scratch, Node, nin), update = node_in(graph, n, 1);
	in[0] = ct[0];
	for (uint32_t k = 1; k < nin; k++)
		in[k] = node_in(graph, n, k);
	if (want[0]) {
		in[1] = b_zeros_like(b, update);
		TRY((g[0] = b_again(b, n, in)).i);
	}
	if (want[1]) {
		const Type t = *node_type(graph, update);
		in[1] = ct[0];
		Attr attr[] = {attr_none(), attr_int(graph->ir, nin - 2), attr_ints(t.dim, t.n)};
		TRY((g[1] = b_node(b, OP_slice_at, in + 1, nin - 1, attr, 3)).i);
	}
	return true;
}

OP(update_slice) {
	.linear = LINEAR_TOGETHER,
	.linear_in = 1 | 2,
	.adjoint = adjoint_update_slice,
	.schema = "update_slice(Tensor x, Tensor update, Tensor[] start) -> Tensor",
	.doc = "x with the box at start (clamped to fit) replaced by update",
	.infer = infer_update_slice,
	.eval = eval_update_slice,
	.batch = batch_update_slice,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS, .updates = true, .index = index_update_slice},
	.sample = "f32[5, 4], f32[2, 3], [i64[] in -1..6, i64[] in 0..2]",
};
