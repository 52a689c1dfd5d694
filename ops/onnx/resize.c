/* Interpolation: separable, each axis by taps at positions in f64. */
#include "ops/onnx/priv.h"

#include <math.h>

enum { MAX_TAPS = 512 };

typedef struct {
	Node n; /* the call, for its attributes */
	uint32_t dim;
	Sym in, out;
	double scale;     /* 0: not constant, out / in */
	double from, to;  /* the region, in units of the extent */
	const char *mode; /* nearest, linear, cubic */
	bool antialias, exclude;
	double cubic;
} ResizedAxis;

static bool is(Build *b, Node n, const char *name, const char *text)
{
	return aten_is(b, n, name, text);
}

static Node number(Build *b, double v)
{
	return b_scalar(b, DT_f64, v);
}

static Node scale_of(Build *b, const ResizedAxis *a)
{
	return a->scale > 0 ? number(b, a->scale)
			    : b_bin(b, OP_div, aten_size(b, a->out, DT_f64),
				    aten_size(b, a->in, DT_f64));
}

/* Returns the distance of the corners of that many elements. */
static Node corners(Build *b, Node v)
{
	return b_bin_scalar(b, OP_sub, v, 1);
}

/* Returns the position in the operand of each output, f64[out]. */
static Node source(Build *b, const ResizedAxis *a)
{
	Node o = b_iota(b, DT_f64, a->out), scale = scale_of(b, a),
	     in = aten_size(b, a->in, DT_f64);
	Node width = b_bin(b, OP_mul, scale, in), one = b_bin_scalar(b, OP_eq, width, 1),
	     half = b_bin_scalar(b, OP_add, o, 0.5);
	const char *name = "coordinate_transformation_mode";
	if (is(b, a->n, name, "asymmetric"))
		return b_bin(b, OP_div, o, scale);
	if (is(b, a->n, name, "align_corners")) {
		Node x = b_bin(b, OP_div, b_bin(b, OP_mul, o, corners(b, in)),
			       b_select(b, one, number(b, 1), corners(b, width)));
		return b_select(b, one, number(b, 0), x);
	}
	if (is(b, a->n, name, "tf_crop_and_resize")) {
		Node region = b_bin_scalar(b, OP_mul, corners(b, in), a->to - a->from);
		Node x = b_bin(b, OP_div, b_bin(b, OP_mul, o, region),
			       b_select(b, one, number(b, 1), corners(b, width)));
		x = b_select(b, one, b_bin_scalar(b, OP_mul, region, 0.5), x);
		return b_bin(b, OP_add, x, b_bin_scalar(b, OP_mul, corners(b, in), a->from));
	}
	if (is(b, a->n, name, "tf_half_pixel_for_nn"))
		return b_bin(b, OP_div, half, scale);
	Node x = b_bin_scalar(b, OP_sub, b_bin(b, OP_div, half, scale), 0.5);
	if (is(b, a->n, name, "pytorch_half_pixel"))
		return b_select(b, one, number(b, -0.5), x);
	if (!is(b, a->n, name, "half_pixel_symmetric"))
		return x;
	Node adjust = b_bin(b, OP_div, aten_size(b, a->out, DT_f64), width);
	Node offset = b_bin(b, OP_mul, b_bin_scalar(b, OP_mul, in, 0.5),
			    b_bin(b, OP_sub, number(b, 1), adjust));
	return b_bin(b, OP_add, offset, x);
}

/* Reads x along the axis at index, f64[out], which is clamped. */
static Node tap(Build *b, Node x, const ResizedAxis *a, Node index)
{
	Node last = aten_size(b, sym_addi(b_syms(b), a->in, -1), DT_i64);
	index = b_bin_scalar(b, OP_maximum, b_convert(b, index, DT_i64), 0);
	return aten_take_dim(b, x, a->dim, b_bin(b, OP_minimum, index, last), "within");
}

static Node nearest(Build *b, Node x, const ResizedAxis *a, Node at)
{
	if (is(b, a->n, "nearest_mode", "floor"))
		return tap(b, x, a, b_un(b, OP_floor, at));
	if (is(b, a->n, "nearest_mode", "ceil"))
		return tap(b, x, a, b_un(b, OP_ceil, at));
	if (is(b, a->n, "nearest_mode", "round_prefer_ceil"))
		return tap(b, x, a, b_un(b, OP_floor, b_bin_scalar(b, OP_add, at, 0.5)));
	return tap(b, x, a, b_un(b, OP_ceil, b_bin_scalar(b, OP_sub, at, 0.5)));
}

/* Returns the weight of a tap at a distance of 0 or more. */
static Node linear_weight(Build *b, Node d)
{
	return b_bin_scalar(b, OP_maximum, b_bin(b, OP_sub, number(b, 1), d), 0);
}

/* Returns c0 + d (c1 + d (c2 + d c3)). */
static Node polynomial(Build *b, Node d, const double c[4])
{
	Node p = b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_mul, d, c[3]), c[2]);
	p = b_bin_scalar(b, OP_add, b_bin(b, OP_mul, p, d), c[1]);
	return b_bin_scalar(b, OP_add, b_bin(b, OP_mul, p, d), c[0]);
}

static Node cubic_weight(Build *b, Node d, double a)
{
	Node near = polynomial(b, d, (double[]){1, 0, -(a + 3), a + 2});
	Node far = polynomial(b, d, (double[]){-4 * a, 8 * a, -5 * a, a});
	Node y = b_select(b, b_bin_scalar(b, OP_lt, d, 2), far, number(b, 0));
	return b_select(b, b_bin_scalar(b, OP_le, d, 1), near, y);
}

/* Returns the sum of weighted taps. With antialias the filter is as wide as the operand is
 * denser than the result. Weights that do not sum to 1 are divided by their sum. */
static Node weighted(Build *b, Node x, const ResizedAxis *a, Node at)
{
	bool cubic = a->mode[0] == 'c', smooth = a->antialias && a->scale < 1;
	double by = smooth ? a->scale : 1, reach = cubic ? 2 : 1;
	if (a->antialias && a->scale <= 0)
		return b_error(b, "antialias needs a constant scale");
	if (-2 * floor(-reach / by) > MAX_TAPS)
		return b_error(b, "a filter of %.0f taps, expected at most %d",
			       -2 * floor(-reach / by), MAX_TAPS);
	int64_t first = (int64_t)floor(-reach / by) + 1, count = 2 - 2 * first;
	/* of a whole position the element there is the tap behind, not the one in front */
	Node low = b_bin_scalar(b, OP_sub, b_un(b, OP_ceil, at), 1),
	     last = aten_size(b, a->in, DT_f64);
	Node *w = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, count), total = {0}, y = {0};
	for (int64_t k = 0; k < count; k++) {
		Node index = b_bin_scalar(b, OP_add, low, (double)(first + k));
		Node d = b_bin_scalar(b, OP_mul, b_un(b, OP_abs, b_bin(b, OP_sub, index, at)), by);
		w[k] = cubic ? cubic_weight(b, d, a->cubic) : linear_weight(b, d);
		if (a->exclude) {
			w[k] = b_select(b, b_bin_scalar(b, OP_lt, index, 0), number(b, 0), w[k]);
			w[k] = b_select(b, b_bin(b, OP_ge, index, last), number(b, 0), w[k]);
		}
		total = k ? b_bin(b, OP_add, total, w[k]) : w[k];
	}
	for (int64_t k = 0; k < count; k++) {
		Node weight = a->exclude || smooth ? b_bin(b, OP_div, w[k], total) : w[k];
		Node v = tap(b, x, a, b_bin_scalar(b, OP_add, low, (double)(first + k)));
		if (!v.i || !weight.i)
			return (Node){0};
		v = b_bin(b, OP_mul, v,
			  aten_per_dim(b, b_convert(b, weight, node_dtype(b->g, v)), v, a->dim));
		y = k ? b_bin(b, OP_add, y, v) : v;
	}
	return y;
}

static Node resize_axis(Build *b, Node x, const ResizedAxis *a)
{
	Node at = source(b, a);
	Node y = a->mode[0] == 'n' ? nearest(b, x, a, at) : weighted(b, x, a, at);
	if (!y.i || !is(b, a->n, "coordinate_transformation_mode", "tf_crop_and_resize"))
		return y;
	Node last = aten_size(b, sym_addi(b_syms(b), a->in, -1), DT_f64),
	     value = aten_like(b, y, node_float(b->g, a->n, "extrapolation_value"));
	y = b_select(b, aten_per_dim(b, b_bin_scalar(b, OP_lt, at, 0), y, a->dim), value, y);
	return b_select(b, aten_per_dim(b, b_bin(b, OP_gt, at, last), y, a->dim), value, y);
}

static const double most_extent = 0x1p62; /* larger ones end as this one, which no memory has */

/* Returns floor(extent * scale), whose product is rounded to f32 as scales are. The product of a
 * symbolic extent is f64, with as much more as that rounding may add. */
static Sym scaled(Build *b, Sym extent, double scale)
{
	SymTab *t = b_syms(b);
	int64_t v;
	if (sym_is_const(t, extent, &v))
		return b_int(b,
			     (int64_t)fmin(floor((double)((float)v * (float)scale)), most_extent));
	if (scale == floor(scale) && scale < 1e9)
		return sym_muli(t, extent, (int64_t)scale);
	Sym real = sym_real_op(t, SYM_REAL, extent, (Sym){0});
	return sym_real_op(
		t, SYM_FLOOR,
		sym_real_op(t, SYM_REAL_MUL, real, sym_real_const(t, scale * (1 + 0x1p-24))),
		(Sym){0});
}

/* Chooses one scale for all axes, so that no extent is larger (or none smaller) than its size.
 * Returns false after b_error. */
static bool keep_aspect(Build *b, Node n, ResizedAxis *axis, uint32_t count)
{
	bool larger = is(b, n, "keep_aspect_ratio_policy", "not_smaller");
	double scale = 0;
	int64_t in, out;
	if (is(b, n, "keep_aspect_ratio_policy", "stretch"))
		return true;
	for (uint32_t k = 0; k < count; k++) {
		TRY(aten_const(b, axis[k].in, &in) && aten_const(b, axis[k].out, &out));
		if (in <= 0 || out < 0) {
			b_error(b, "keep_aspect_ratio_policy of an extent %lld and a size %lld",
				(long long)in, (long long)out);
			return false;
		}
		double s = (double)out / (double)in;
		scale = !k || (larger ? s > scale : s < scale) ? s : scale;
	}
	for (uint32_t k = 0; k < count; k++) {
		axis[k].scale = scale;
		TRY(aten_const(b, axis[k].in, &in));
		axis[k].out = b_int(b, (int64_t)fmin(floor(scale * (double)in + 0.5), most_extent));
	}
	return true;
}

/* Scales or sizes, one for each of the axes. */
static bool read_axes(Build *b, Node n, Node x, ResizedAxis *axis, uint32_t *count)
{
	uint32_t axes[MAX_RANK], nsizes = 0;
	const Attr *scales = node_attr(b->g, n, "scales"), *roi = node_attr(b->g, n, "roi");
	const Sym *sizes = aten_has(b, n, "sizes") ? node_ints(b->g, n, "sizes", &nsizes) : NULL;
	TRY(onnx_axes(b, n, "axes", aten_rank(b, x), axes, count));
	bool by_scales = scales->kind == ATTR_floats && scales->n,
	     region = roi->kind == ATTR_floats && roi->n == 2 * *count;
	if (by_scales ? scales->n != *count : nsizes != *count) {
		b_error(b, "%u scales, %u sizes, expected one for each of %u axes",
			by_scales ? scales->n : 0, nsizes, *count);
		return false;
	}
	for (uint32_t k = 0; k < *count; k++) {
		int64_t in, out;
		ResizedAxis *a = &axis[k];
		*a = (ResizedAxis){
			.n = n, .dim = axes[k], .in = b_dim(b, x, (int)axes[k]), .to = 1};
		a->from = region ? roi->floats[k] : 0;
		a->to = region ? roi->floats[*count + k] : 1;
		a->scale = by_scales ? scales->floats[k] : 0;
		if (by_scales && !(a->scale > 0 && a->scale < 1e9)) {
			b_error(b, "a scale of %g, expected a number above 0", a->scale);
			return false;
		}
		a->out = by_scales ? scaled(b, a->in, a->scale) : sizes[k];
		if (!by_scales && sym_is_const(b_syms(b), a->in, &in) &&
		    sym_is_const(b_syms(b), a->out, &out) && in)
			a->scale = (double)out / (double)in;
	}
	return by_scales || keep_aspect(b, n, axis, *count);
}

static Node build_resize(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	ResizedAxis axis[MAX_RANK];
	uint32_t count;
	if (!aten_check_word(b, n, "mode", "nearest linear cubic") ||
	    !aten_check_word(b, n, "nearest_mode",
			     "round_prefer_floor round_prefer_ceil floor ceil") ||
	    !aten_check_word(b, n, "keep_aspect_ratio_policy", "stretch not_larger not_smaller") ||
	    !aten_check_word(b, n, "coordinate_transformation_mode",
			     "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners "
			     "asymmetric tf_crop_and_resize tf_half_pixel_for_nn") ||
	    !x.i || !read_axes(b, n, x, axis, &count))
		return (Node){0};
	DType d = node_dtype(b->g, x);
	bool copies = is(b, n, "mode", "nearest");
	x = copies ? x : aten_wide(b, aten_to_float(b, x));
	for (uint32_t k = 0; k < count && x.i; k++) {
		axis[k].mode = node_str(b->g, n, "mode");
		axis[k].antialias = node_bool(b->g, n, "antialias");
		axis[k].exclude = node_bool(b->g, n, "exclude_outside");
		axis[k].cubic = node_float(b->g, n, "cubic_coeff_a");
		bool same = axis[k].scale == 1 && axis[k].from == 0 && axis[k].to == 1;
		if (!same)
			x = resize_axis(b, x, &axis[k]);
	}
	return x.i ? b_convert(b, x, d) : x;
}

OP(onnx_Resize_11){
	.schema = "onnx.Resize.11(Tensor X, float[]? roi, float[]? scales, SymInt[]? sizes, *, str "
		  "mode=\"nearest\", int[]? axes=None, bool antialias=False, "
		  "str coordinate_transformation_mode=\"half_pixel\", float cubic_coeff_a=-0.75, "
		  "bool exclude_outside=False, "
		  "float extrapolation_value=0.0, str keep_aspect_ratio_policy=\"stretch\", "
		  "str nearest_mode=\"round_prefer_floor\") -> Tensor",
	.build = build_resize,
	.no_sample = NODE_TESTS,
};

/* Resizes as before opset 11: asymmetric, and the nearest element is the one in front. */
static Node build_upsample(Build *b, Node n)
{
	Node x = arg(b, n, "X");
	Ir *ir = b->g->ir;
	Attr attr[] = {attr_none(),
		       attr_none(),
		       *node_attr(b->g, n, "scales"),
		       attr_none(),
		       *node_attr(b->g, n, "mode"),
		       attr_none(),
		       attr_bool(false),
		       attr_str(ir, "asymmetric"),
		       attr_float(-0.75),
		       attr_bool(false),
		       attr_float(0),
		       attr_str(ir, "stretch"),
		       attr_str(ir, "floor")};
	return onnx_call(b, "onnx.Resize.11", &x, 1, attr, 13);
}

OP(onnx_Resize_10){
	.schema = "onnx.Resize.10(Tensor X, float[] scales, *, str mode=\"nearest\") -> Tensor",
	.build = build_upsample,
	.no_sample = NODE_TESTS,
	.overloads = (const Overload[]){
		{.schema = "onnx.Upsample.7(Tensor X, float[] scales, *, str mode=\"nearest\") -> "
			   "Tensor"},
	},
};
