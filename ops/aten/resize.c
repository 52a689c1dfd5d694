/* ATen interpolation: separable, each axis by gathered taps with weights computed in f64. */
#include <math.h>

#include "ops/aten/resize_priv.h"

enum { MAX_SPACE = 3 };

/* Returns the input distance between two outputs, 0-d f64. */
static Node step(Build *b, const Axis *a)
{
	SymTab *t = b_syms(b);
	Sym in = a->in, out = a->out;
	if (a->align_corners) {
		in = sym_addi(t, in, -1);
		out = sym_max(t, b_int(b, 1), sym_addi(t, out, -1));
	} else if (a->scale > 0) {
		return b_scalar(b, DT_f64, 1 / a->scale);
	}
	Node num = aten_size(b, in, DT_f64);
	return b_bin(b, OP_div, num, aten_size(b, out, DT_f64));
}

Node resize_source(Build *b, const Axis *a, bool clamped)
{
	Node o = b_iota(b, DT_f64, a->out), by = step(b, a);
	if (a->align_corners)
		return b_bin(b, OP_mul, o, by);
	Node x = b_bin(b, OP_mul, b_bin_scalar(b, OP_add, o, 0.5), by);
	x = b_bin_scalar(b, OP_sub, x, 0.5);
	return clamped ? b_bin_scalar(b, OP_maximum, x, 0) : x;
}

static Node last_index(Build *b, const Axis *a)
{
	return aten_size(b, sym_addi(b_syms(b), a->in, -1), DT_i64);
}

/* Reads x along the axis at index [out]. */
static Node tap(Build *b, Node x, const Axis *a, Node index)
{
	return aten_take_dim(b, x, a->dim, index, "clamp");
}

/* Finds the element that is copied as in ATen, since it decides: with a distance of f32. */
static Node nearest(Build *b, Node x, const Axis *a, bool exact)
{
	if (sym_eq(b_syms(b), a->in, a->out) == YES && a->scale == 0)
		return x;
	Node by = a->scale > 0 ? b_scalar(b, DT_f32, 1 / a->scale)
			       : b_bin(b, OP_div, aten_size(b, a->in, DT_f32),
				       aten_size(b, a->out, DT_f32));
	Node at = b_iota(b, exact ? DT_f64 : DT_f32, a->out);
	if (exact)
		at = b_bin_scalar(b, OP_add, at, 0.5);
	at = b_bin(b, OP_mul, at, b_convert(b, by, exact ? DT_f64 : DT_f32));
	at = b_un(b, OP_floor, b_convert(b, at, DT_f32));
	at = b_convert(b, at, DT_i64);
	return tap(b, x, a, b_bin(b, OP_minimum, at, last_index(b, a)));
}

/* Sums both taps by weights, as ATen: x0 + w * (x1 - x0) would round twice near x1. */
static Node linear(Build *b, Node x, const Axis *a)
{
	if (sym_eq(b_syms(b), a->in, a->out) == YES && a->scale == 0)
		return x;
	DType d = aten_dtype(b, x);
	Node src = resize_source(b, a, true);
	Node low = b_un(b, OP_floor, src);
	Node frac = b_bin(b, OP_sub, src, low), last = last_index(b, a);
	Node i0 = b_bin(b, OP_minimum, b_convert(b, low, DT_i64), last);
	Node i1 = b_bin(b, OP_minimum, b_bin_scalar(b, OP_add, i0, 1), last);
	Node rest = b_bin(b, OP_sub, b_scalar(b, DT_f64, 1), frac);
	Node y0 = tap(b, x, a, i0), y1 = tap(b, x, a, i1);
	if (!y0.i || !y1.i)
		return (Node){0};
	rest = aten_per_dim(b, b_convert(b, rest, d), y0, a->dim);
	y0 = b_bin(b, OP_mul, y0, rest);
	frac = aten_per_dim(b, b_convert(b, frac, d), y1, a->dim);
	return b_bin(b, OP_add, y0, b_bin(b, OP_mul, y1, frac));
}

Node resize_cubic_near(Build *b, Node t, double a)
{
	Node p = b_bin_scalar(b, OP_sub, b_bin_scalar(b, OP_mul, t, a + 2), a + 3);
	p = b_bin(b, OP_mul, b_bin(b, OP_mul, p, t), t);
	return b_bin_scalar(b, OP_add, p, 1);
}

Node resize_cubic_far(Build *b, Node t, double a)
{
	Node p = b_bin_scalar(b, OP_sub, b_bin_scalar(b, OP_mul, t, a), 5 * a);
	p = b_bin_scalar(b, OP_add, b_bin(b, OP_mul, p, t), 8 * a);
	return b_bin_scalar(b, OP_sub, b_bin(b, OP_mul, p, t), 4 * a);
}

static Node cubic(Build *b, Node x, const Axis *a)
{
	DType d = aten_dtype(b, x);
	Node src = resize_source(b, a, false), low = b_un(b, OP_floor, src), y = {0};
	Node t = b_bin(b, OP_sub, src, low), base = b_convert(b, low, DT_i64),
	     last = last_index(b, a);
	for (int k = -1; k <= 2; k++) {
		/* distance of tap k: t + 1, t, 1 - t, 2 - t */
		Node dist = k <= 0 ? b_bin_scalar(b, OP_add, t, -k)
				   : b_bin(b, OP_sub, b_scalar(b, DT_f64, k), t);
		Node w = k == 0 || k == 1 ? resize_cubic_near(b, dist, -0.75)
					  : resize_cubic_far(b, dist, -0.75);
		Node i = b_bin_scalar(b, OP_maximum, b_bin_scalar(b, OP_add, base, k), 0);
		Node v = tap(b, x, a, b_bin(b, OP_minimum, i, last));
		if (!v.i)
			return v;
		v = b_bin(b, OP_mul, v, aten_per_dim(b, b_convert(b, w, d), v, a->dim));
		y = y.i ? b_bin(b, OP_add, y, v) : v;
	}
	return y;
}

/* ---- antialiased: a filter as wide as the input is denser than the output ---- */

typedef enum {
	BY_NEAREST,
	BY_NEAREST_EXACT,
	BY_LINEAR,
	BY_CUBIC,
	SMOOTH_LINEAR,
	SMOOTH_CUBIC,
	SMOOTH_LANCZOS
} Method;

/* Returns how far the filter reaches, in its own unit. */
static int64_t reach_of(Method how)
{
	return how == SMOOTH_LINEAR ? 1 : how == SMOOTH_CUBIC ? 2 : 3;
}

/* Does as step, but an output of one element aligned at the corners is the input's first. */
static Node smooth_step(Build *b, const Axis *a)
{
	Node by = step(b, a);
	if (!a->align_corners)
		return by;
	Node several = b_bin_scalar(b, OP_gt, aten_size(b, a->out, DT_i64), 1);
	return b_bin(b, OP_mul, by, b_convert(b, several, DT_f64));
}

/* Returns the taps that any output needs: 2 * ceil(reach * max(step, 1)) + 1. */
static Sym tap_count(Build *b, const Axis *a, int64_t reach)
{
	SymTab *t = b_syms(b);
	Sym in = a->in, out = a->out, half;
	if (a->align_corners) {
		in = sym_addi(t, in, -1);
		out = sym_max(t, b_int(b, 1), sym_addi(t, out, -1));
	}
	if (!a->align_corners && a->scale > 0)
		half = b_int(b, (int64_t)ceil((double)reach * fmax(1 / a->scale, 1)));
	else
		half = sym_max(t, b_int(b, reach), sym_ceildiv(t, sym_muli(t, in, reach), out));
	return sym_addi(t, sym_muli(t, half, 2), 1);
}

/* Returns sin(pi x) / (pi x). */
static Node sinc(Build *b, Node x)
{
	Node t = b_bin_scalar(b, OP_mul, x, 3.141592653589793);
	Node y = b_bin(b, OP_div, b_un(b, OP_sin, t), t);
	return b_select(b, b_bin_scalar(b, OP_eq, x, 0), b_scalar(b, DT_f64, 1), y);
}

/* Returns the filter's value at distance x >= 0, 0 beyond its reach. */
static Node filter(Build *b, Method how, Node x)
{
	Node zero = b_scalar(b, DT_f64, 0), y;
	if (how == SMOOTH_LINEAR)
		return b_bin(b, OP_maximum, zero, b_bin(b, OP_sub, b_scalar(b, DT_f64, 1), x));
	if (how == SMOOTH_CUBIC)
		y = b_select(b, b_bin_scalar(b, OP_lt, x, 1), resize_cubic_near(b, x, -0.5),
			     resize_cubic_far(b, x, -0.5));
	else
		y = b_bin(b, OP_mul, sinc(b, x), sinc(b, b_bin_scalar(b, OP_div, x, 3)));
	return b_select(b, b_bin_scalar(b, OP_lt, x, (double)reach_of(how)), y, zero);
}

/* Computes the taps of output o, the mean of the inputs near step * (o + 1/2), weighted by the
 * filter; inputs outside of the image have no weight. Weights [out, taps] are computed in f64. */
static Taps smooth_taps(Build *b, Method how, const Axis *a)
{
	Node by = smooth_step(b, a), one = b_scalar(b, DT_f64, 1);
	Node widening = b_bin(b, OP_maximum, by, one);
	Node reach = b_bin_scalar(b, OP_mul, widening, (double)reach_of(how));
	Node center = b_bin_scalar(b, OP_add, b_iota(b, DT_f64, a->out), 0.5);
	center = b_unsqueeze(b, b_bin(b, OP_mul, center, by), -1);
	Node middle = b_bin_scalar(b, OP_add, center, 0.5), size = aten_size(b, a->in, DT_f64);
	Node first = b_un(b, OP_floor, b_bin(b, OP_sub, middle, reach));
	first = b_bin_scalar(b, OP_maximum, first, 0);
	Node end = b_bin(b, OP_minimum, b_un(b, OP_floor, b_bin(b, OP_add, middle, reach)), size);
	Node at = b_bin(b, OP_add, first, b_iota(b, DT_f64, tap_count(b, a, reach_of(how))));
	Node dist = b_bin(b, OP_sub, b_bin_scalar(b, OP_add, at, 0.5), center);
	Node w = filter(b, how, b_bin(b, OP_div, b_un(b, OP_abs, dist), widening));
	Node inside = b_bin(b, OP_lt, at, end);
	w = b_select(b, inside, w, b_scalar(b, DT_f64, 0));
	w = b_bin(b, OP_div, w, aten_sum(b, w, 2, true));
	/* What has no weight is not read: it may be infinite. */
	Node index =
		b_select(b, inside, b_convert(b, at, DT_i64), b_full_int(b, DT_i64, -1, 0, NULL));
	return (Taps){.index = index, .weight = w};
}

static Node smooth(Build *b, Node x, Method how, const Axis *a)
{
	if (sym_eq(b_syms(b), a->in, a->out) == YES && a->scale == 0)
		return x;
	Taps t = smooth_taps(b, how, a);
	Node taps = aten_take_dim(b, x, a->dim, t.index, "fill"); /* [.., out, taps, ..] */
	if (!taps.i)
		return taps;
	Node w = b_convert(b, t.weight, node_dtype(b->g, taps));
	for (uint32_t k = a->dim + 2; k < node_rank(b->g, taps); k++)
		w = b_unsqueeze(b, w, -1);
	return aten_sum(b, b_bin(b, OP_mul, taps, w), 1u << (a->dim + 1), false);
}

static double scale_of(const Build *b, Node n, uint32_t k, uint32_t ns)
{
	static const char *const name[] = {"scales_d", "scales_h", "scales_w"};
	Op op = node_op(b->g, n);
	if (op_arg_index(op, "scale_factors") >= 0) {
		const Attr *a = node_attr(b->g, n, "scale_factors");
		return a->kind == ATTR_floats && k < a->n ? a->floats[k] : 0;
	}
	if (op_arg_index(op, "scales") >= 0)
		return aten_has(b, n, "scales") ? node_float(b->g, n, "scales") : 0;
	const char *s = name[MAX_SPACE - ns + k];
	return aten_has(b, n, s) ? node_float(b->g, n, s) : 0;
}

/* Returns the output extent of axis k: given, or floor(in * scale). */
static Sym extent(Build *b, Node n, uint32_t k, Sym in, double scale)
{
	uint32_t len = 0;
	const Sym *size =
		aten_has(b, n, "output_size") ? node_ints(b->g, n, "output_size", &len) : NULL;
	if (k < len)
		return size[k];
	int64_t v;
	if (sym_is_const(b_syms(b), in, &v) && (double)v * scale >= 0 && (double)v * scale < 0x1p53)
		return b_int(b, (int64_t)((double)v * scale));
	/* A product with a fraction of this kind does not round. */
	for (int64_t below = 1; below <= 1 << 16 && scale * (double)below < 0x1p31; below *= 2)
		if (scale * (double)below == floor(scale * (double)below))
			return sym_divi(b_syms(b),
					sym_muli(b_syms(b), in, (int64_t)(scale * (double)below)),
					below);
	SymTab *t = b_syms(b);
	if (sym_is_const(t, in, NULL)) {
		b_error(b, "an extent %s times %g is not known", sym_str(t, in), scale);
		return in;
	}
	/* In f64 and cut off, as Python's int(in * scale) does. */
	Sym real = sym_real_op(t, SYM_REAL_MUL, sym_real_const(t, scale),
			       sym_real_op(t, SYM_REAL, in, (Sym){0}));
	return sym_real_op(t, SYM_TRUNC, real, (Sym){0});
}

static Node resize_axis(Build *b, Node x, Method how, const Axis *a)
{
	switch (how) {
	case BY_LINEAR:
		return linear(b, x, a);
	case BY_CUBIC:
		return cubic(b, x, a);
	case SMOOTH_LINEAR:
	case SMOOTH_CUBIC:
	case SMOOTH_LANCZOS:
		return smooth(b, x, how, a);
	default:
		return nearest(b, x, a, how == BY_NEAREST_EXACT);
	}
}

/* Orders the axes. The taps of the last axis are gathered lane by lane, those of the others are
 * whole rows: the last axis is resized while there are the fewest rows. So axes that shrink go
 * first, then the others from the last one on, as in ATen. What is only copied is not computed
 * before the copy: in order. */
static void order_axes(Build *b, const Axis *axis, uint32_t ns, Method how, uint32_t *order)
{
	bool in_order = how == BY_NEAREST || how == BY_NEAREST_EXACT;
	uint32_t n = 0;
	for (uint32_t k = 0; k < ns; k++)
		if (in_order || sym_le(b_syms(b), axis[k].out, axis[k].in) == YES)
			order[n++] = k;
	for (uint32_t k = ns; k-- > 0 && !in_order;)
		if (sym_le(b_syms(b), axis[k].out, axis[k].in) != YES)
			order[n++] = k;
}

/* Resizes 8 bits: the last axis first, as every pass rounds. */
static Node resize_bytes(Build *b, Node x, Method how, const Axis *axis)
{
	for (uint32_t k = 2; k-- > 0 && x.i;) {
		const Axis *a = &axis[k];
		if (sym_eq(b_syms(b), a->in, a->out) == YES)
			continue;
		bool near = how == BY_LINEAR || how == BY_CUBIC;
		Taps t = near ? resize_near_taps(b, a, how == BY_CUBIC) : smooth_taps(b, how, a);
		x = resize_fixed(b, x, a, &t);
	}
	return x;
}

static bool can_resize(Build *b, const Axis *a)
{
	SymTab *t = b_syms(b);
	Sym one = b_int(b, 1);
	bool empty = sym_lt(t, a->in, one) == YES || sym_lt(t, a->out, one) == YES;
	if (empty)
		b_error(b, "an extent of %s resized to %s: expected at least 1", sym_str(t, a->in),
			sym_str(t, a->out));
	else if (a->scale > 0 && a->scale < 0x1p-31) /* its inverse counts elements */
		b_error(b, "a scale of %g is too small", a->scale);
	else
		return true;
	return false;
}

/* Requires as many as there are dims to resize. */
static bool has_extents(Build *b, Node n, const char *name, uint32_t ns)
{
	if (op_arg_index(node_op(b->g, n), name) < 0 || !aten_has(b, n, name))
		return true;
	uint32_t len = node_attr(b->g, n, name)->n;
	return len == ns || b_error(b, "%s has %u elements, expected %u", name, len, ns).i;
}

static Node resize(Build *b, Node n, int method)
{
	const Method how = (Method)method;
	const uint32_t ns = aten_named_dims(b, n);
	Node x = arg(b, n, op_arg_index(node_op(b->g, n), "self") >= 0 ? "self" : "input");
	DType d = aten_dtype(b, x);
	bool align = op_arg_index(node_op(b->g, n), "align_corners") >= 0 &&
		     node_bool(b->g, n, "align_corners");
	if (!has_extents(b, n, "output_size", ns) || !has_extents(b, n, "scale_factors", ns))
		return (Node){0};
	if (aten_rank(b, x) != ns + 2)
		return b_error(b, "interpolation over %u dims of an operand of rank %u", ns,
			       aten_rank(b, x));
	bool copied = how == BY_NEAREST || how == BY_NEAREST_EXACT, bytes = d == DT_u8 && ns == 2;
	if (!copied && !bytes && !dtype_is_float(d))
		return b_error(
			b, "interpolation over %u dims of %s, expected a floating-point dtype%s",
			ns, dtype_name(d), ns == 2 ? " or u8" : "");
	if (!copied && !bytes)
		x = aten_wide(b, x);
	Axis axis[MAX_SPACE];
	for (uint32_t k = 0; k < ns; k++) {
		Axis *a = &axis[k];
		*a = (Axis){.dim = 2 + k, .in = b_dim(b, x, 2 + (int)k), .align_corners = align};
		a->scale = scale_of(b, n, k, ns);
		a->out = extent(b, n, k, a->in, a->scale);
		if (!can_resize(b, a))
			return (Node){0};
		aten_require_le(b, b_int(b, 1), a->out, "what is resized gets elements");
	}
	aten_require_elements(b, x, aten_dims_from(b, x, 1), "what is resized has elements");
	if (!copied && bytes)
		return resize_bytes(b, x, how, axis);
	uint32_t order[MAX_SPACE] = {0};
	order_axes(b, axis, ns, how, order);
	for (uint32_t k = 0; k < ns && x.i; k++)
		x = resize_axis(b, x, how, &axis[order[k]]);
	return x.i ? b_convert(b, x, d) : x;
}

OP(aten_upsample_nearest1d){
	.schema = "aten.upsample_nearest1d(Tensor self, SymInt[1] output_size, float? "
		  "scales=None) -> Tensor",
	.build_as = {resize, BY_NEAREST},
	.sample = "f32[n=2, 1, 5], output_size=[7]; f32[n=2, 1, 5], output_size=[8], scales=1.7; "
		  "f32[n=2, 1, 5], output_size=[4]; f32[n=2, 1, 5], output_size=[5], scales=1.19; "
		  "f32[2, 1, 5], output_size=[5]",
	.overloads = (const Overload[]){
		{.schema = "aten.upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, "
			   "float[]? scale_factors) -> Tensor",
		 .sample = "f32[n=2, 1, 5], output_size=[7], scale_factors=none; "
			   "f32[n=2, 1, 5], output_size=none, scale_factors=[1.7]"},
		{.schema = "aten.upsample_nearest2d(Tensor self, SymInt[2] output_size, float? "
			   "scales_h=None, float? scales_w=None) -> Tensor",
		 .sample = "f32[n=2, 2, 3, 4], output_size=[5, 7]; "
			   "f32[1, 2, 3, 4], output_size=[5, 10], scales_h=1.7, scales_w=2.5; "
			   "f32[1, 2, 3, 4], output_size=[2, 3]"},
		{.schema = "aten.upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, "
			   "float[]? scale_factors) -> Tensor",
		 .sample = "f32[n=2, 2, 3, 4], output_size=[5, 7], scale_factors=none; "
			   "f32[1, 2, 3, 4], output_size=none, scale_factors=[1.7, 2.5]"},
		{.schema = "aten.upsample_nearest3d(Tensor self, SymInt[3] output_size, float? "
			   "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
		 .sample = "f32[n=2, 1, 2, 3, 2], output_size=[3, 5, 3]; "
			   "f32[1, 1, 2, 3, 2], output_size=[5, 5, 3], scales_d=2.5, scales_h=1.7, "
			   "scales_w=1.5; f32[1, 1, 2, 3, 2], output_size=[1, 2, 1]"},
		{.schema = "aten.upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, "
			   "float[]? scale_factors) -> Tensor",
		 .sample = "f32[n=2, 1, 2, 3, 2], output_size=[3, 5, 3], scale_factors=none; "
			   "f32[1, 1, 2, 3, 2], output_size=none, scale_factors=[2.5, 1.7, 1.5]"},
	},
};
OP(aten__upsample_nearest_exact1d){
	.schema = "aten._upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? "
		  "scales=None) -> Tensor",
	.build_as = {resize, BY_NEAREST_EXACT},
	.sample = "f32[n=2, 1, 5], output_size=[7]; f32[n=2, 1, 5], output_size=[8], scales=1.7; "
		  "f32[n=2, 1, 5], output_size=[4]",
	.overloads = (const Overload[]){
		{.schema = "aten._upsample_nearest_exact1d.vec(Tensor input, SymInt[]? "
			   "output_size, float[]? scale_factors) -> Tensor",
		 .sample = "f32[n=2, 1, 5], output_size=[7], scale_factors=none; "
			   "f32[n=2, 1, 5], output_size=none, scale_factors=[1.7]"},
		{.schema = "aten._upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, "
			   "float? scales_h=None, float? scales_w=None) -> Tensor",
		 .sample = "f32[n=2, 2, 3, 4], output_size=[5, 7]; "
			   "f32[1, 2, 3, 4], output_size=[5, 10], scales_h=1.7, scales_w=2.5; "
			   "f32[1, 2, 3, 4], output_size=[2, 3]"},
		{.schema = "aten._upsample_nearest_exact2d.vec(Tensor input, SymInt[]? "
			   "output_size, float[]? scale_factors) -> Tensor",
		 .sample = "f32[n=2, 2, 3, 4], output_size=[5, 7], scale_factors=none; "
			   "f32[1, 2, 3, 4], output_size=none, scale_factors=[1.7, 2.5]"},
		{.schema = "aten._upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, "
			   "float? scales_d=None, float? scales_h=None, "
			   "float? scales_w=None) -> Tensor",
		 .sample = "f32[n=2, 1, 2, 3, 2], output_size=[3, 5, 3]; "
			   "f32[1, 1, 2, 3, 2], output_size=[5, 5, 3], scales_d=2.5, scales_h=1.7, "
			   "scales_w=1.5; f32[1, 1, 2, 3, 2], output_size=[1, 2, 1]"},
		{.schema = "aten._upsample_nearest_exact3d.vec(Tensor input, SymInt[]? "
			   "output_size, float[]? scale_factors) -> Tensor",
		 .sample = "f32[n=2, 1, 2, 3, 2], output_size=[3, 5, 3], scale_factors=none; "
			   "f32[1, 1, 2, 3, 2], output_size=none, scale_factors=[2.5, 1.7, 1.5]"},
	},
};
OP(aten_upsample_linear1d){
	.schema = "aten.upsample_linear1d(Tensor self, SymInt[1] output_size, bool "
		  "align_corners, float? scales=None) -> Tensor",
	.build_as = {resize, BY_LINEAR},
	.sample = "f32[n=2, 1, 5], output_size=[7], align_corners=false; "
		  "f32[n=2, 1, 5], output_size=[7], align_corners=true; "
		  "f32[n=2, 1, 5], output_size=[8], align_corners=false, scales=1.7; "
		  "f32[n=2, 1, 5], output_size=[4], align_corners=false",
	.overloads = (const Overload[]){
		{.schema = "aten.upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool "
			   "align_corners, float[]? scale_factors) -> Tensor",
		 .sample = "f32[n=2, 1, 5], output_size=[7], align_corners=true, "
			   "scale_factors=none; f32[n=2, 1, 5], output_size=none, "
			   "align_corners=false, scale_factors=[1.7]"},
		{.schema = "aten.upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool "
			   "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
		 .sample = "f32[n=2, 1, 5, 4], output_size=[7, 3], align_corners=false; "
			   "f32[1, 1, 5, 4], output_size=[7, 3], align_corners=true; "
			   "f32[1, 1, 5, 4], output_size=[8, 10], align_corners=false, "
			   "scales_h=1.7, scales_w=2.5; f32[1, 1, 5, 4], output_size=[4, 3], "
			   "align_corners=false"},
		{.schema = "aten.upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool "
			   "align_corners, float[]? scale_factors) -> Tensor",
		 .sample = "f32[n=2, 1, 5, 4], output_size=[7, 3], align_corners=true, "
			   "scale_factors=none; f32[1, 1, 5, 4], output_size=none, "
			   "align_corners=false, scale_factors=[1.7, 2.5]"},
		{.schema = "aten.upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool "
			   "align_corners, float? scales_d=None, float? scales_h=None, float? "
			   "scales_w=None) -> Tensor",
		 .sample = "f32[n=2, 1, 2, 3, 2], output_size=[3, 5, 3], align_corners=false; "
			   "f32[1, 1, 2, 3, 2], output_size=[3, 5, 3], align_corners=true; "
			   "f32[1, 1, 2, 3, 2], output_size=[5, 5, 3], align_corners=false, "
			   "scales_d=2.5, scales_h=1.7, scales_w=1.5; "
			   "f32[1, 1, 2, 3, 2], output_size=[1, 2, 1], align_corners=false"},
		{.schema = "aten.upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, "
			   "bool align_corners, float[]? scale_factors) -> Tensor",
		 .sample = "f32[n=2, 1, 2, 3, 2], output_size=[3, 5, 3], align_corners=true, "
			   "scale_factors=none; f32[1, 1, 2, 3, 2], output_size=none, "
			   "align_corners=false, scale_factors=[2.5, 1.7, 1.5]"},
	},
};
OP(aten_upsample_bicubic2d){
	.schema = "aten.upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool "
		  "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
	.build_as = {resize, BY_CUBIC},
	.sample = "f32[n=2, 1, 5, 4], output_size=[7, 3], align_corners=false; "
		  "f32[1, 1, 5, 4], output_size=[7, 3], align_corners=true; "
		  "f32[1, 1, 5, 4], output_size=[8, 10], align_corners=false, scales_h=1.7, "
		  "scales_w=2.5; f32[1, 1, 5, 4], output_size=[4, 3], align_corners=false",
	.overloads = (const Overload[]){
		{.schema = "aten.upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool "
			   "align_corners, float[]? scale_factors) -> Tensor",
		 .sample = "f32[n=2, 1, 5, 4], output_size=[7, 3], align_corners=true, "
			   "scale_factors=none; f32[1, 1, 5, 4], output_size=none, "
			   "align_corners=false, scale_factors=[1.7, 2.5]"},
	},
};
OP(aten__upsample_bilinear2d_aa){
	.schema = "aten._upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool "
		  "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
	.build_as = {resize, SMOOTH_LINEAR},
	.sample = "f32[n=2, 1, 5, 4], output_size=[7, 3], align_corners=false; "
		  "f32[1, 1, 5, 4], output_size=[7, 3], align_corners=true; "
		  "f32[1, 1, 5, 4], output_size=[8, 10], align_corners=false, scales_h=1.7, "
		  "scales_w=2.5; f32[1, 1, 5, 4], output_size=[4, 3], align_corners=false",
	.overloads = (const Overload[]){
		{.schema = "aten._upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, "
			   "bool align_corners, float[]? scale_factors) -> Tensor",
		 .sample = "f32[n=2, 1, 5, 4], output_size=[7, 3], align_corners=true, "
			   "scale_factors=none; f32[1, 1, 5, 4], output_size=none, "
			   "align_corners=false, scale_factors=[1.7, 2.5]"},
		{.schema = "aten._upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool "
			   "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
		 .build_as = {resize, SMOOTH_CUBIC}},
		{.schema = "aten._upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, "
			   "bool align_corners, float[]? scale_factors) -> Tensor",
		 .build_as = {resize, SMOOTH_CUBIC},
		 .sample = "f32[n=2, 1, 5, 4], output_size=[7, 3], align_corners=true, "
			   "scale_factors=none; f32[1, 1, 5, 4], output_size=none, "
			   "align_corners=false, scale_factors=[1.7, 2.5]"},
		{.schema = "aten._upsample_lanczos2d_aa(Tensor self, SymInt[2] output_size, bool "
			   "align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
		 .build_as = {resize, SMOOTH_LANCZOS}},
		{.schema = "aten._upsample_lanczos2d_aa.vec(Tensor input, SymInt[]? output_size, "
			   "bool align_corners, float[]? scale_factors) -> Tensor",
		 .build_as = {resize, SMOOTH_LANCZOS},
		 .sample = "f32[n=2, 1, 5, 4], output_size=[7, 3], align_corners=true, "
			   "scale_factors=none; f32[1, 1, 5, 4], output_size=none, "
			   "align_corners=false, scale_factors=[1.7, 2.5]"},
	},
};

/* ---- channels and space exchanged ---- */

static Node build_pixel_shuffle(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	SymTab *t = b_syms(b);
	int64_t r = aten_int(b, n, "upscale_factor");
	Shape s = aten_shape(b, x), wide, out = s;
	uint32_t c = s.rank - 3, perm[MAX_RANK];
	if (!x.i || s.rank < 3 || s.rank + 2 > MAX_RANK || r < 1 || r > 1 << 20)
		return b_error(b, "pixel_shuffle by %lld of an operand of rank %u", (long long)r,
			       s.rank);
	aten_require_multiple(b, s.dim[c], r * r, "pixel_shuffle divides the channels");
	/* [.., C, r, r, H, W] to [.., C, H, r, W, r] */
	wide = shape_insert(shape_insert(s, c + 1, b_int(b, r)), c + 1, b_int(b, r));
	wide.dim[c] = out.dim[c] = sym_divi(t, s.dim[c], r * r);
	for (uint32_t k = 0; k <= c; k++)
		perm[k] = k;
	perm[c + 1] = c + 3;
	perm[c + 2] = c + 1;
	perm[c + 3] = c + 4;
	perm[c + 4] = c + 2;
	out.dim[c + 1] = sym_muli(t, s.dim[c + 1], r);
	out.dim[c + 2] = sym_muli(t, s.dim[c + 2], r);
	return aten_reshape(b, b_permute(b, aten_reshape(b, x, &wide), perm), &out);
}
OP(aten_pixel_shuffle){
	.schema = "aten.pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
	.build = build_pixel_shuffle,
	.sample = "f32[n=2, 8, 2, 3], upscale_factor=2",
};

static Node build_pixel_unshuffle(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	SymTab *t = b_syms(b);
	int64_t r = aten_int(b, n, "downscale_factor");
	Shape s = aten_shape(b, x), wide, out = s;
	uint32_t c = s.rank - 3, perm[MAX_RANK];
	if (!x.i || s.rank < 3 || s.rank + 2 > MAX_RANK || r < 1 || r > 1 << 20)
		return b_error(b, "pixel_unshuffle by %lld of an operand of rank %u", (long long)r,
			       s.rank);
	for (uint32_t k = c + 1; k < s.rank; k++)
		aten_require_multiple(b, s.dim[k], r, "pixel_unshuffle divides an extent");
	/* [.., C, H, r, W, r] to [.., C, r, r, H, W] */
	out.dim[c] = sym_muli(t, s.dim[c], r * r);
	out.dim[c + 1] = sym_divi(t, s.dim[c + 1], r);
	out.dim[c + 2] = sym_divi(t, s.dim[c + 2], r);
	wide = shape_insert(shape_insert(out, c + 3, b_int(b, r)), c + 2, b_int(b, r));
	wide.dim[c] = s.dim[c];
	for (uint32_t k = 0; k <= c; k++)
		perm[k] = k;
	perm[c + 1] = c + 2;
	perm[c + 2] = c + 4;
	perm[c + 3] = c + 1;
	perm[c + 4] = c + 3;
	return aten_reshape(b, b_permute(b, aten_reshape(b, x, &wide), perm), &out);
}
OP(aten_pixel_unshuffle){
	.schema = "aten.pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
	.build = build_pixel_unshuffle,
	.sample = "f32[n=2, 1, 4, 6], downscale_factor=2",
};

static Node build_channel_shuffle(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t groups = aten_int(b, n, "groups");
	Shape s = aten_shape(b, x), wide;
	if (!x.i || s.rank < 3 || s.rank == MAX_RANK || groups < 1 ||
	    !sym_divides(b_syms(b), groups, s.dim[1]))
		return b_error(b, "channel_shuffle of rank %u in %lld groups", s.rank,
			       (long long)groups);
	wide = shape_insert(s, 1, b_int(b, groups));
	wide.dim[2] = sym_divi(b_syms(b), s.dim[1], groups);
	return aten_reshape(b, b_transpose(b, aten_reshape(b, x, &wide), 1, 2), &s);
}
OP(aten_channel_shuffle){
	.schema = "aten.channel_shuffle(Tensor self, SymInt groups) -> Tensor",
	.aliases = "aten.native_channel_shuffle",
	.build = build_channel_shuffle,
	.sample = "f32[n=2, 6, 2, 1], groups=3",
};
