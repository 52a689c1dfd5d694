/* Pooling. */
#include "ops/onnx/common/window.h"
#include "ops/onnx/priv.h"

#include <math.h>

/* Reads the window, its size from the argument kernel_shape. Returns false after b_error. */
static bool read_window(Build *b, Node n, Node x, Window *w)
{
	int64_t kernel[MAX_SPACE];
	uint32_t ns = 0;
	(void)node_ints(b->g, n, "kernel_shape", &ns);
	bool ok = ns >= 1 && ns <= MAX_SPACE;
	if (!ok)
		b_error(b, "kernel_shape has %u numbers, expected 1 to %d", ns, MAX_SPACE);
	return ok && window_ints(b, n, "kernel_shape", ns, 1, 1, kernel) &&
	       window_read(b, n, x, kernel, ns, w);
}

static uint32_t window_dims(const Window *w)
{
	return ((1u << w->ns) - 1) << (w->ns + 2);
}

/* Returns the element of the operand, along dimension k, that each element of a window is:
 * i64[out, kernel], negative in the border in front. */
static Node places(Build *b, const Window *w, uint32_t k)
{
	Node first = b_bin_scalar(b, OP_mul, b_iota(b, DT_i64, w->out[k]), (double)w->stride[k]);
	first = b_bin(b, OP_sub, first, aten_size(b, w->low[k], DT_i64));
	Node step = b_bin_scalar(b, OP_mul, b_iota(b, DT_i64, b_int(b, w->kernel[k])),
				 (double)w->dilation[k]);
	return b_bin(b, OP_add, b_unsqueeze(b, first, 1), step);
}

/* ---- averages ---- */

/* Counts the elements of each window along dimension k that count: f32[out]. */
static Node counts(Build *b, const Window *w, uint32_t k, bool borders)
{
	SymTab *t = b_syms(b);
	Node p = places(b, w, k);
	Sym low = borders ? sym_muli(t, w->low[k], -1) : b_int(b, 0),
	    high = borders ? sym_add(t, w->in[k], w->high[k]) : w->in[k];
	Node in = onnx_call(b, "aten.logical_and",
			    (Node[]){b_bin(b, OP_ge, p, aten_size(b, low, DT_i64)),
				     b_bin(b, OP_lt, p, aten_size(b, high, DT_i64))},
			    2, NULL, 0);
	return aten_sum(b, b_convert(b, in, DT_f32), 1u << 1, false);
}

static Node build_average_pool(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	Window w;
	if (!read_window(b, n, x, &w))
		return (Node){0};
	bool borders = node_bool(b->g, n, "count_include_pad");
	Node sum = aten_sum(b, aten_wide(b, window_elements(b, x, &w, aten_like(b, x, 0))),
			    window_dims(&w), false),
	     count = {0};
	for (uint32_t k = 0; k < w.ns; k++) {
		Node c = aten_per_dim(b, counts(b, &w, k, borders), sum, k + 2);
		count = k ? b_bin(b, OP_mul, count, c) : c;
	}
	Node y = b_bin(b, OP_div, sum, b_convert(b, count, aten_dtype(b, sum)));
	return y.i ? b_convert(b, y, node_dtype(b->g, x)) : y;
}

OP(onnx_AveragePool_1){
	.schema = "onnx.AveragePool.1(Tensor X, *, int[] kernel_shape, str auto_pad=\"NOTSET\", "
		  "bool ceil_mode=False, bool count_include_pad=False, int[]? dilations=None, "
		  "int[]? pads=None, int[]? strides=None) -> Tensor",
	.build = build_average_pool,
	.no_sample = NODE_TESTS,
};

/* ---- maxima ---- */

static Node lowest(Build *b, Node x)
{
	DType d = aten_dtype(b, x);
	int64_t low, high;
	if (!dtype_is_int(d))
		return aten_like(b, x, -(double)INFINITY);
	dtype_limits(d, &low, &high);
	return b_full_int(b, d, low, 0, NULL);
}

/* Returns the place in the whole operand of the greatest element of each window. */
static Node greatest_places(Build *b, Node n, Node x, Node elements, const Window *w)
{
	uint32_t rank = w->ns + 2;
	SymTab *t = b_syms(b);
	Node at = b_arg_reduce(b, true, aten_flatten(b, elements, rank, rank + w->ns - 1), rank),
	     place = {0};
	Sym step[MAX_SPACE], each = b_int(b, 1);
	bool column = node_int(b->g, n, "storage_order") != 0;
	for (uint32_t i = 0; i < w->ns; i++) {
		uint32_t k = column ? i : w->ns - 1 - i;
		step[k] = each;
		each = sym_mul(t, each, w->in[k]);
	}
	for (uint32_t k = w->ns; k-- > 0;) {
		/* the position in the window along k, then in the operand */
		Node in = b_bin_scalar(b, OP_remainder, at, (double)w->kernel[k]);
		at = b_bin_scalar(b, OP_floordiv, at, (double)w->kernel[k]);
		Node first =
			b_bin_scalar(b, OP_mul, b_iota(b, DT_i64, w->out[k]), (double)w->stride[k]);
		first = aten_per_dim(b, b_bin(b, OP_sub, first, aten_size(b, w->low[k], DT_i64)),
				     in, k + 2);
		Node p = b_bin(b, OP_add, first,
			       b_bin_scalar(b, OP_mul, in, (double)w->dilation[k]));
		p = b_bin(b, OP_mul, p, aten_size(b, step[k], DT_i64));
		place = place.i ? b_bin(b, OP_add, place, p) : p;
	}
	if (!place.i)
		return place;
	Shape s = aten_shape(b, place);
	Node image = b_bin(b, OP_mul, aten_iota_dim(b, &s, 0, DT_i64),
			   aten_size(b, b_dim(b, x, 1), DT_i64));
	image = b_bin(b, OP_mul, b_bin(b, OP_add, image, aten_iota_dim(b, &s, 1, DT_i64)),
		      aten_size(b, each, DT_i64));
	return b_bin(b, OP_add, image, place);
}

/* Computes it by PyTorch's operator, whose derivative goes to the first of equal elements; with
 * borders of its own if it has such ones. */
static Node aten_max_pool(Build *b, Node n, Node x, const Window *w)
{
	static const char *const name[] = {"aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d"};
	Sym v[4][MAX_SPACE];
	int64_t pad[MAX_SPACE] = {0};
	bool own = !node_bool(b->g, n, "ceil_mode") && window_is_even(b, w, pad);
	for (uint32_t k = 0; k < w->ns; k++)
		own = own && 2 * pad[k] <= w->kernel[k];
	for (uint32_t k = 0; k < w->ns; k++) {
		v[0][k] = b_int(b, w->kernel[k]);
		v[1][k] = b_int(b, w->stride[k]);
		v[2][k] = b_int(b, own ? pad[k] : 0);
		v[3][k] = b_int(b, w->dilation[k]);
	}
	if (!own)
		x = window_pad(b, x, w, lowest(b, x));
	const Attr attr[] = {attr_none(), attr_ints(v[0], w->ns), attr_ints(v[1], w->ns),
			     attr_ints(v[2], w->ns), attr_ints(v[3], w->ns)};
	return onnx_call(b, name[w->ns - 1], &x, 1, attr, 5);
}

static Node build_max_pool(Build *b, Node n)
{
	enum { MOST = 3 }; /* PyTorch's spatial dimensions */
	Node x = arg(b, n, "X");
	Window w;
	if (!read_window(b, n, x, &w))
		return (Node){0};
	const bool both = aten_int(b, n, "outputs") > 1;
	Node e = both || w.ns > MOST ? window_elements(b, x, &w, lowest(b, x)) : x;
	Node y = w.ns > MOST ? aten_reduce(b, REDUCE_MAX, e, window_dims(&w), false)
			     : aten_max_pool(b, n, x, &w);
	if (!both)
		return y;
	return b_tuple(b, (Node[]){y, greatest_places(b, n, x, e, &w)}, 2);
}

OP(onnx_MaxPool_1){
	.schema = "onnx.MaxPool.1(Tensor X, *, int[] kernel_shape, str auto_pad=\"NOTSET\", bool "
		  "ceil_mode=False, int[]? dilations=None, int[]? pads=None, int storage_order=0, "
		  "int[]? strides=None, int outputs) -> Tensor[]",
	.build = build_max_pool,
	.no_sample = NODE_TESTS,
};

/* Puts elements back at indices, which count over the whole operand that was pooled. */
static Node build_max_unpool(Build *b, Node n)
{
	Node x = arg(b, n, "X"), index = arg(b, n, "I");
	uint32_t rank = aten_rank(b, x), ns = rank - 2, count = 0;
	int64_t kernel[MAX_SPACE], stride[MAX_SPACE], pads[2 * MAX_SPACE];
	SymTab *t = b_syms(b);
	if (rank < 3 || ns > MAX_SPACE || !window_ints(b, n, "kernel_shape", ns, 1, 1, kernel) ||
	    !window_ints(b, n, "strides", ns, 1, 1, stride) ||
	    !window_ints(b, n, "pads", 2 * ns, 0, INT32_MIN, pads))
		return rank < 3 ? b_error(b, "an operand of rank %u", rank) : (Node){0};
	Shape small = aten_shape(b, x), want = small;
	for (uint32_t k = 0; k < ns; k++)
		small.dim[k + 2] =
			sym_addi(t, sym_muli(t, sym_addi(t, small.dim[k + 2], -1), stride[k]),
				 kernel[k] - pads[k] - pads[ns + k]);
	want = small;
	const Sym *given =
		aten_has(b, n, "output_shape") ? node_ints(b->g, n, "output_shape", &count) : NULL;
	if (given && count != rank)
		return b_error(b, "output_shape has %u extents, expected %u", count, rank);
	/* indices are of the image without output_shape; the larger one holds the image in its
	 * corner */
	Shape flat = {1, {shape_numel(b, &small)}},
	      all = {1, {type_numel(b->g->ir, node_type_id(b->g, x))}};
	Node zero = b_full(b, node_dtype(b->g, x), 0, 1, flat.dim);
	Node at = b_unsqueeze(b, aten_reshape(b, aten_index(b, index), &all), -1);
	Node y = aten_reshape(
		b, b_scatter(b, zero, at, aten_reshape(b, x, &all), 0, (uint32_t[]){0}, 1, "set"),
		&small);
	if (!given)
		return y;
	want = shape_of(rank, given);
	Sym low[MAX_RANK], high[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++) {
		low[k] = b_int(b, 0);
		high[k] = sym_sub(t, want.dim[k], small.dim[k]);
	}
	return b_pad(b, y, low, high, aten_like(b, x, 0));
}

OP(onnx_MaxUnpool_9){
	.schema = "onnx.MaxUnpool.9(Tensor X, Tensor I, SymInt[]? output_shape, *, int[] "
		  "kernel_shape, int[]? pads=None, int[]? strides=None) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_max_unpool,
	.no_sample = NODE_TESTS,
};

/* ---- norms ---- */

static Node build_lp_pool(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	Window w;
	if (!read_window(b, n, x, &w))
		return (Node){0};
	Node e = window_elements(b, x, &w, aten_like(b, x, 0));
	Node y = aten_vector_norm(b, aten_wide(b, e), (double)aten_int(b, n, "p"), window_dims(&w),
				  false);
	return y.i ? b_convert(b, y, node_dtype(b->g, x)) : y;
}

OP(onnx_LpPool_2){
	.schema = "onnx.LpPool.2(Tensor X, *, int[] kernel_shape, str auto_pad=\"NOTSET\", bool "
		  "ceil_mode=False, int[]? dilations=None, int p=2, int[]? pads=None, "
		  "int[]? strides=None) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_lp_pool,
	.no_sample = NODE_TESTS,
};

/* ---- over all of the image ---- */

static Node build_global_average(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	return x.i ? aten_mean(b, x, aten_dims_from(b, x, 2), true) : x;
}

static Node build_global_max(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	return x.i ? aten_reduce(b, REDUCE_MAX, x, aten_dims_from(b, x, 2), true) : x;
}

static Node build_global_lp(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	return x.i ? b_convert(b,
			       aten_vector_norm(b, aten_wide(b, x), (double)aten_int(b, n, "p"),
						aten_dims_from(b, x, 2), true),
			       node_dtype(b->g, x))
		   : x;
}

OP(onnx_GlobalAveragePool_1){
	.schema = "onnx.GlobalAveragePool.1(Tensor X) -> Tensor",
	.build = build_global_average,
	.no_sample = NODE_TESTS,
};
OP(onnx_GlobalMaxPool_1){
	.schema = "onnx.GlobalMaxPool.1(Tensor X) -> Tensor",
	.build = build_global_max,
	.no_sample = NODE_TESTS,
};
OP(onnx_GlobalLpPool_2){
	.schema = "onnx.GlobalLpPool.2(Tensor X, *, int p=2) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_global_lp,
	.no_sample = NODE_TESTS,
};
