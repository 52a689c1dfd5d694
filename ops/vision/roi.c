/* Operators of torchvision that pool regions of images: bins of each region, and places or pixels
 * in each bin. */
#include <float.h>
#include <math.h>

#include "ops/aten/priv.h"
#include "ops/prim/data_size.h"

typedef enum { ROW, COLUMN } Axis;

/* K regions [K, 5]: number of the image, x1, y1, x2, y2. A bin's points are indexed [K, PH, PW,
 * row, column]. */
typedef struct {
	Node x;               /* [N, C, H, W]; where each bin has channels of its own [N, C, PH, PW,
	                         H, W] */
	bool own_channels;
	Node image;           /* i64[K] */
	Node from[2], to[2];  /* [K]: in pixels of x */
	Sym size[2], bins[2]; /* H, W; PH, PW */
	Sym k;
	DType dtype;
} Rois;

/* The points of bins along one axis: [K, bins, n] each. */
typedef struct {
	Sym n;
	Node pixel; /* i64, within the image */
	Node used;  /* bool */
} Points;

static void require_images(Build *b, const Rois *r)
{
	Node known = b_bin(b, OP_lt, r->image, aten_size(b, b_dim(b, r->x, 0), DT_i64));
	Node legal = b_bin(b, OP_bit_and, b_bin_scalar(b, OP_ge, r->image, 0), known);
	Attr attr[] = {attr_none(),
		       attr_str(b->g->ir, "a region is of an image that the batch does not have")};
	if (legal.i)
		b_node(b, OP_assert, &legal, 1, attr, 2);
}

/* Reads the regions: coordinates times spatial_scale, less `offset`. They have no derivative, as
 * in torchvision. */
static bool read_rois(Build *b, Node n, double offset, bool own_channels, Rois *r)
{
	Node x = arg(b, n, "input"), rois = arg(b, n, "rois");
	*r = (Rois){
		.own_channels = own_channels,
		.bins = {node_sym(b->g, n, "pooled_height"), node_sym(b->g, n, "pooled_width")}};
	DType d = aten_dtype(b, x);
	if (!x.i || !rois.i)
		return false;
	if (node_rank(b->g, x) != 4 || node_rank(b->g, rois) != 2 ||
	    !sym_is(b_syms(b), b_dim(b, rois, 1), 5) || !dtype_is_float(d) ||
	    node_dtype(b->g, rois) != d)
		return b_error(b,
			       "%s of an image of rank %u and regions of rank %u, expected [n, c, "
			       "h, w] and [k, 5] of one float dtype",
			       op_name(node_op(b->g, n)), node_rank(b->g, x), node_rank(b->g, rois))
			.i;
	r->x = aten_wide(b, x);
	rois = aten_wide(b, aten_detached(b, rois));
	r->dtype = node_dtype(b->g, r->x);
	r->k = b_dim(b, rois, 0);
	for (uint32_t a = 0; a < 2; a++) {
		Node from = b_select_dim(b, rois, 1, b_int(b, 2 - a)),
		     to = b_select_dim(b, rois, 1, b_int(b, 4 - a));
		double scale = node_float(b->g, n, "spatial_scale");
		r->from[a] = b_bin_scalar(b, OP_sub, b_bin_scalar(b, OP_mul, from, scale), offset);
		r->to[a] = b_bin_scalar(b, OP_sub, b_bin_scalar(b, OP_mul, to, scale), offset);
		r->size[a] = b_dim(b, x, 2 + (int)a);
		aten_require_le(b, b_int(b, 1), r->size[a], "an image of regions has pixels");
	}
	r->image = b_convert(b, b_select_dim(b, rois, 1, b_int(b, 0)), DT_i64);
	require_images(b, r);
	if (!own_channels)
		return true;
	SymTab *t = b_syms(b);
	Sym each = sym_mul(t, r->bins[ROW], r->bins[COLUMN]),
	    channels = sym_floordiv(t, b_dim(b, x, 1), each);
	aten_require_equal(b, b_dim(b, x, 1), sym_mul(t, channels, each),
			   "channels are divided among bins");
	Sym dim[] = {b_dim(b, x, 0),  channels,     r->bins[ROW],
		     r->bins[COLUMN], r->size[ROW], r->size[COLUMN]};
	r->x = b_reshape(b, r->x, 6, dim);
	return r->x.i;
}

/* ---- points ---- */

/* Returns v[K] beside [K, bins, n]. */
static Node of_roi(Build *b, const Rois *r, Node v)
{
	return b_reshape(b, v, 3, (Sym[]){r->k, b_int(b, 1), b_int(b, 1)});
}

/* Returns 0, 1, ... of the bins beside [K, bins, n]. */
static Node bin_number(Build *b, const Rois *r, Axis a, DType d)
{
	return b_reshape(b, b_iota(b, d, r->bins[a]), 2, (Sym[]){r->bins[a], b_int(b, 1)});
}

/* Returns v[K, bins, n] of an axis as [K, PH, PW, rows, columns]. */
static Node spread(Build *b, const Rois *r, const Points *p, Axis a, Node v)
{
	uint32_t map[] = {0, 1 + (uint32_t)a, 3 + (uint32_t)a};
	Sym dim[] = {r->k, r->bins[ROW], r->bins[COLUMN], p[ROW].n, p[COLUMN].n};
	return b_broadcast_in_dim(b, v, 5, dim, map);
}

/* Returns the numbers along one dimension of the points' shape. */
static Node numbers(Build *b, const Rois *r, const Points *p, uint32_t dim)
{
	Shape s = shape_of(5, (Sym[]){r->k, r->bins[ROW], r->bins[COLUMN], p[ROW].n, p[COLUMN].n});
	return aten_iota_dim(b, &s, dim, DT_i64);
}

/* Returns pixels of x: [K, PH, PW, rows, columns, C]. */
static Node pixels(Build *b, const Rois *r, const Points *p, Node row, Node column)
{
	static const uint32_t images[] = {0, 2, 3}, bins[] = {0, 2, 3, 4, 5};
	Sym dim[] = {r->k, r->bins[ROW], r->bins[COLUMN], p[ROW].n, p[COLUMN].n};
	uint32_t first = 0, n = 0;
	Node part[5];
	part[n++] = b_broadcast_in_dim(b, r->image, 5, dim, &first);
	for (uint32_t k = 1; r->own_channels && k < 3; k++)
		part[n++] = numbers(b, r, p, k);
	part[n++] = spread(b, r, p, ROW, row);
	part[n++] = spread(b, r, p, COLUMN, column);
	return b_gather(b, r->x, aten_stack(b, part, n, 5), 0, r->own_channels ? bins : images, n,
			"promise");
}

/* Returns [K, PH, PW, C] as [K, C, PH, PW], in the input's dtype. */
static Node pooled(Build *b, Node n, Node y)
{
	y = aten_move_dim(b, y, 3, 1);
	return y.i ? b_convert(b, y, aten_dtype(b, arg(b, n, "input"))) : y;
}

/* Returns which channel each bin of the result is made of: i32[K, C, PH, PW]. */
static Node channel_of(Build *b, const Rois *r)
{
	Sym c = b_dim(b, r->x, 1);
	Shape s = shape_of(3, (Sym[]){c, r->bins[ROW], r->bins[COLUMN]}),
	      all = shape_insert(s, 0, r->k);
	Sym n = shape_numel(b, &s);
	return aten_expand_shape(b, aten_reshape(b, b_iota(b, DT_i32, n), &s), &all);
}

/* ---- roi_align ---- */

/* Between which pixels the points of an axis lie, and how much each of both counts: 0 outside of
 * the image. */
typedef struct {
	Node pixel[2], weight[2]; /* [K, bins, n] */
} Between;

/* Returns how many points the bins of each region have along an axis; *most: of all regions. */
static Node adaptive_count(Build *b, const Rois *r, Axis a, Node len, const char *what, Sym *most)
{
	Node count = b_un(b, OP_ceil, b_bin(b, OP_div, len, aten_size(b, r->bins[a], r->dtype)));
	Node none = b_full_int(b, DT_i64, 0, 1, (Sym[]){b_int(b, 1)});
	Node all = b_concat(b, (Node[]){b_convert(b, count, DT_i64), none}, 2, 0);
	*most = data_size_new(b);
	b_to_size(b, aten_reduce(b, REDUCE_MAX, all, 1, false), *most, (Sym){0}, what);
	return count;
}

/* Finds the points: point s of n in bin p lies at from + p * bin + (s + 0.5) * bin / n, as
 * torchvision rounds it. */
static Between between(Build *b, const Rois *r, Axis a, Node len, Node count, Points *p)
{
	Node bin = of_roi(b, r, b_bin(b, OP_div, len, aten_size(b, r->bins[a], r->dtype)));
	Node n = count.i ? of_roi(b, r, count) : aten_size(b, p->n, r->dtype),
	     s = b_iota(b, r->dtype, p->n);
	Node start = b_bin(b, OP_add, of_roi(b, r, r->from[a]),
			   b_bin(b, OP_mul, bin_number(b, r, a, r->dtype), bin));
	Node at =
		b_bin(b, OP_add, start,
		      b_bin(b, OP_div, b_bin(b, OP_mul, b_bin_scalar(b, OP_add, s, 0.5), bin), n));
	Node last = aten_size(b, sym_addi(b_syms(b), r->size[a], -1), DT_i64),
	     size = aten_size(b, r->size[a], r->dtype);
	p->used = b_bin(b, OP_bit_and, b_bin_scalar(b, OP_ge, at, -1), b_bin(b, OP_le, at, size));
	if (count.i)
		p->used = b_bin(b, OP_bit_and, p->used, b_bin(b, OP_lt, s, n));
	at = b_bin(b, OP_minimum,
		   b_bin_scalar(b, OP_maximum, b_select(b, p->used, at, aten_like(b, at, 0)), 0),
		   b_convert(b, last, r->dtype));
	Node low = b_convert(b, at, DT_i64),
	     more = b_bin(b, OP_sub, at, b_convert(b, low, r->dtype)), none = aten_like(b, at, 0);
	return (Between){
		.pixel = {low, b_bin(b, OP_minimum, b_bin_scalar(b, OP_add, low, 1), last)},
		.weight = {b_select(b, p->used, b_bin(b, OP_sub, aten_like(b, at, 1), more), none),
			   b_select(b, p->used, more, none)}};
}

/* The points of all bins: count[] is how many each region has along an axis, no node where that is
 * sampling_ratio. */
typedef struct {
	Points p[2];
	Between at[2];
	Node count[2];
} Grid;

static Grid grid_of(Build *b, Node n, const Rois *r, const Node *len)
{
	int64_t each = aten_int(b, n, "sampling_ratio");
	Grid g = {0};
	for (uint32_t a = 0; a < 2; a++) {
		g.p[a].n = b_int(b, each);
		if (each <= 0)
			g.count[a] = adaptive_count(b, r, (Axis)a, len[a],
						    op_name(node_op(b->g, n)), &g.p[a].n);
		g.at[a] = between(b, r, (Axis)a, len[a], g.count[a], &g.p[a]);
	}
	return g;
}

/* Joins the pixels around the points, times their weights, by `op`: [K, PH, PW, rows, columns,
 * C]. */
static Node join_corners(Build *b, const Rois *r, const Grid *g, Op op)
{
	Node all = {0};
	for (uint32_t corner = 0; corner < 4; corner++) {
		Node weight =
			b_bin(b, OP_mul, spread(b, r, g->p, ROW, g->at[ROW].weight[corner >> 1]),
			      spread(b, r, g->p, COLUMN, g->at[COLUMN].weight[corner & 1]));
		Node v = pixels(b, r, g->p, g->at[ROW].pixel[corner >> 1],
				g->at[COLUMN].pixel[corner & 1]);
		v = b_bin(b, OP_mul, v, b_unsqueeze(b, weight, -1));
		all = all.i ? b_bin(b, op, all, v) : v;
	}
	return all;
}

/* Returns [K, PH, PW, C]: the sum over the points of each bin, divided by their number; at least
 * 1 where least_one. */
static Node mean_of_points(Build *b, Node n, const Rois *r, const Node *len, bool least_one)
{
	int64_t each = aten_int(b, n, "sampling_ratio");
	Grid g = grid_of(b, n, r, len);
	Node sum = aten_sum(b, join_corners(b, r, &g, OP_add), 3u << 3, false);
	if (!sum.i)
		return sum;
	if (each > 0)
		return b_bin_scalar(b, OP_div, sum, (double)each * (double)each);
	Node all = b_bin(b, OP_mul, g.count[ROW], g.count[COLUMN]);
	return b_bin(
		b, OP_div, sum,
		aten_per_dim(b, least_one ? b_bin_scalar(b, OP_maximum, all, 1) : all, sum, 0));
}

/* Returns [K, PH, PW, C]: the greatest over the points of each bin; 0 of a bin without points. */
static Node greatest_of_points(Build *b, Node n, const Rois *r, const Node *len)
{
	Grid g = grid_of(b, n, r, len);
	Node v = join_corners(b, r, &g, OP_maximum), used[2];
	if (!v.i || !g.count[ROW].i)
		return aten_reduce(b, REDUCE_MAX, v, 3u << 3, false);
	for (uint32_t a = 0; a < 2; a++) {
		Node has = b_bin(b, OP_lt, b_iota(b, r->dtype, g.p[a].n), of_roi(b, r, g.count[a]));
		has = b_broadcast(b, has, 3, (Sym[]){r->k, r->bins[a], g.p[a].n});
		used[a] = spread(b, r, g.p, (Axis)a, has);
	}
	Node all = b_unsqueeze(b, b_bin(b, OP_bit_and, used[ROW], used[COLUMN]), -1),
	     zero = aten_like(b, v, 0);
	Node most =
		aten_reduce(b, REDUCE_MAX, b_select(b, all, v, aten_like(b, v, -(double)INFINITY)),
			    3u << 3, false);
	return b_select(b, aten_reduce(b, REDUCE_OR, all, 3u << 3, false), most, zero);
}

/* Reads the regions and the extents of theirs; aligned: a pixel's centre is half a pixel from
 * its edge, and regions may be smaller than a pixel. */
static bool read_aligned(Build *b, Node n, Rois *r, Node *len)
{
	bool aligned = node_bool(b->g, n, "aligned");
	TRY(read_rois(b, n, aligned ? 0.5 : 0, false, r));
	for (uint32_t a = 0; a < 2; a++) {
		len[a] = b_bin(b, OP_sub, r->to[a], r->from[a]);
		if (!aligned)
			len[a] = b_bin_scalar(b, OP_maximum, len[a], 1);
	}
	return true;
}

static Node build_roi_align(Build *b, Node n)
{
	Rois r;
	Node len[2];
	return read_aligned(b, n, &r, len) ? pooled(b, n, mean_of_points(b, n, &r, len, true))
					   : (Node){0};
}

/* Builds ONNX's mode max. */
static Node build_roi_align_max(Build *b, Node n)
{
	Rois r;
	Node len[2];
	return read_aligned(b, n, &r, len) ? pooled(b, n, greatest_of_points(b, n, &r, len))
					   : (Node){0};
}
OP(roi_align_max){
	.schema = "roi_align_max(Tensor input, Tensor rois, float spatial_scale, SymInt "
		  "pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
	.doc = "the greatest weighted pixel in each bin of regions of images, "
	       "as of ONNX's RoiAlign",
	.build = build_roi_align_max,
	.sample = "f32[n=2, 2, 6, 5], f32[3, 5] of 0 1 0.5 9 7 1 -4 -3 2.5 4 0 3 3 12 16, "
		  "spatial_scale=0.5, pooled_height=3, pooled_width=2, sampling_ratio=2, "
		  "aligned=false; "
		  "f32[2, 2, 6, 5], f32[k=3, 5] of 0 1 0.5 9 7 1 -4 -3 2.5 4 0 3 3 12 60, "
		  "spatial_scale=0.5, pooled_height=3, pooled_width=2, sampling_ratio=0, "
		  "aligned=true",
};

OP(torchvision_roi_align){
	.schema = "torchvision.roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt "
		  "pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
	.doc = "the mean of interpolated points in each bin of regions of images",
	.build = build_roi_align,
	.sample = "f32[n=2, 2, 6, 5], f32[3, 5] of 0 1 0.5 9 7 1 -4 -3 2.5 4 0 3 3 12 16, "
		  "spatial_scale=0.5, pooled_height=3, pooled_width=2, sampling_ratio=2, "
		  "aligned=false; "
		  "f32[n=2, 2, 6, 5], f32[3, 5] of 0 1 0.5 9 7 1 -4 -3 2.5 4 0 3 3 12 16, "
		  "spatial_scale=0.5, pooled_height=3, pooled_width=2, sampling_ratio=1, "
		  "aligned=true; "
		  "f32[2, 2, 6, 5], f32[k=3, 5] of 0 1 0.5 9 7 1 -4 -3 2.5 4 0 3 3 12 60, "
		  "spatial_scale=0.5, pooled_height=3, pooled_width=2, sampling_ratio=-1, "
		  "aligned=false; "
		  "f32[2, 2, 6, 5], f32[k=3, 5] of 0 1 0.5 9 7 1 2 3 1 1 0 3 3 12 16, "
		  "spatial_scale=0.5, pooled_height=2, pooled_width=2, sampling_ratio=0, "
		  "aligned=true",
};

static Node build_ps_roi_align(Build *b, Node n)
{
	Rois r;
	if (!read_rois(b, n, 0.5, true, &r))
		return (Node){0};
	Node len[2] = {b_bin(b, OP_sub, r.to[ROW], r.from[ROW]),
		       b_bin(b, OP_sub, r.to[COLUMN], r.from[COLUMN])};
	Node y = pooled(b, n, mean_of_points(b, n, &r, len, false));
	return y.i ? b_tuple(b, (Node[]){y, channel_of(b, &r)}, 2) : y;
}
OP(torchvision_ps_roi_align){
	.schema = "torchvision.ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt "
		  "pooled_height, SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)",
	.doc = "roi_align where each bin has channels of its own; and which",
	.build = build_ps_roi_align,
	.sample = "f32[n=2, 12, 6, 5], f32[2, 5] of 0 1 0.5 9 7 1 -4 -3 2.5 4, spatial_scale=0.5, "
		  "pooled_height=3, pooled_width=2, "
		  "sampling_ratio=2; f32[2, 12, 6, 5], f32[2, 5] of 0 1 0.5 9 7 1 -4 -3 2.5 4, "
		  "spatial_scale=0.5, pooled_height=3, pooled_width=2, sampling_ratio=0",
};

/* ---- roi_pool ---- */

/* Rounds as std::round: halves away from 0. */
static Node round_half_out(Build *b, Node x)
{
	Node whole = b_un(b, OP_trunc, x), rest = b_bin(b, OP_sub, x, whole);
	Node out = b_bin_scalar(b, OP_ge, b_un(b, OP_abs, rest), 0.5);
	Node up = b_bin_scalar(b, OP_ge, x, 0), one = aten_like(b, x, 1);
	Node next = b_bin(b, OP_add, whole, b_select(b, up, one, b_un(b, OP_neg, one)));
	return b_convert(b, b_select(b, out, next, whole), DT_i64);
}

/* The first pixel of each bin along an axis and how many it has, both [K, bins, 1]. Bins are parts
 * of the region's `len` pixels, rounded outwards, cut at pixel 0 and `end`. */
typedef struct {
	Node first, count;
} Bin;

static Bin bin_of(Build *b, const Rois *r, Axis a, Node from, Node len, Sym end)
{
	Node part = of_roi(
		b, r,
		b_bin(b, OP_div, b_convert(b, len, r->dtype), aten_size(b, r->bins[a], r->dtype)));
	Node p = bin_number(b, r, a, r->dtype), last = aten_size(b, end, DT_i64), side[2];
	for (uint32_t k = 0; k < 2; k++) {
		Node at = b_bin(b, OP_mul, k ? b_bin_scalar(b, OP_add, p, 1) : p, part);
		at = b_convert(b, b_un(b, k ? OP_ceil : OP_floor, at), DT_i64);
		at = b_bin(b, OP_add, at, of_roi(b, r, from));
		side[k] = b_bin(b, OP_minimum, b_bin_scalar(b, OP_maximum, at, 0), last);
	}
	return (Bin){side[0], b_bin_scalar(b, OP_maximum, b_bin(b, OP_sub, side[1], side[0]), 0)};
}

/* Makes room for the points of the largest bin. */
static Points points_of(Build *b, const Rois *r, Axis a, const Bin *bin, const char *what)
{
	Points p = {.n = data_size_new(b)};
	Node none = b_full_int(b, DT_i64, 0, 1, (Sym[]){b_int(b, 1)}),
	     count = aten_flatten(b, bin->count, 0, 2);
	b_to_size(b, aten_reduce(b, REDUCE_MAX, b_concat(b, (Node[]){count, none}, 2, 0), 1, false),
		  p.n, r->size[a], what);
	Node s = b_iota(b, DT_i64, p.n),
	     last = aten_size(b, sym_addi(b_syms(b), r->size[a], -1), DT_i64);
	p.used = b_bin(b, OP_lt, s, bin->count);
	p.pixel = b_bin(b, OP_minimum, b_bin(b, OP_add, s, bin->first), last);
	return p;
}

/* Returns the pixels of bins [K, PH, PW, rows, columns, C]; *used: which of them are in the bin,
 * the same with 1 for C. */
static Node bin_pixels(Build *b, Node n, const Rois *r, const Bin *bin, Points *p, Node *used)
{
	for (uint32_t a = 0; a < 2; a++)
		p[a] = points_of(b, r, (Axis)a, &bin[a], op_name(node_op(b->g, n)));
	*used = b_bin(b, OP_bit_and, spread(b, r, p, ROW, p[ROW].used),
		      spread(b, r, p, COLUMN, p[COLUMN].used));
	*used = b_unsqueeze(b, *used, -1);
	return pixels(b, r, p, p[ROW].pixel, p[COLUMN].pixel);
}

static double lowest(DType d)
{
	return d == DT_f64 ? -DBL_MAX : -(double)FLT_MAX;
}

/* Returns [K, PH, PW, rows, columns, C] as [K, PH, PW, rows * columns, C]. */
static Node join_points(Build *b, const Rois *r, const Points *p, Node v)
{
	Sym dim[] = {r->k, r->bins[ROW], r->bins[COLUMN], sym_mul(b_syms(b), p[ROW].n, p[COLUMN].n),
		     b_dim(b, v, 5)};
	return b_reshape(b, v, 5, dim);
}

static Node build_roi_pool(Build *b, Node n)
{
	Rois r;
	Bin bin[2];
	Points p[2];
	Node used, from[2];
	if (!read_rois(b, n, 0, false, &r))
		return (Node){0};
	for (uint32_t a = 0; a < 2; a++) {
		from[a] = round_half_out(b, r.from[a]);
		Node len = b_bin_scalar(b, OP_add,
					b_bin(b, OP_sub, round_half_out(b, r.to[a]), from[a]), 1);
		bin[a] = bin_of(b, &r, (Axis)a, from[a], b_bin_scalar(b, OP_maximum, len, 1),
				r.size[a]);
	}
	Node v = bin_pixels(b, n, &r, bin, p, &used);
	if (!v.i)
		return v;
	/* larger than the lowest number, which NaN is not */
	Node low = aten_like(b, v, lowest(r.dtype));
	v = b_select(b, b_bin(b, OP_bit_and, used, b_bin(b, OP_gt, v, low)), v, low);
	v = join_points(b, &r, p, v);
	/* one more, so that there is a first one */
	Shape s = aten_shape(b, v);
	s.dim[3] = b_int(b, 1);
	v = b_concat(b, (Node[]){v, b_broadcast(b, low, s.rank, s.dim)}, 2, 3);
	Node y = aten_reduce(b, REDUCE_MAX, v, 1u << 3, false), first = b_arg_reduce(b, true, v, 3);
	Node found = b_bin(b, OP_gt, y, low), empty[2];
	Node columns = b_bin_scalar(b, OP_maximum, aten_size(b, p[COLUMN].n, DT_i64), 1);
	Node at[] = {b_bin(b, OP_floordiv, first, columns), b_bin(b, OP_remainder, first, columns)};
	for (uint32_t a = 0; a < 2; a++) {
		Sym dim[] = {r.k, a == ROW ? r.bins[a] : b_int(b, 1),
			     a == COLUMN ? r.bins[a] : b_int(b, 1), b_int(b, 1)};
		at[a] = b_bin(b, OP_add, at[a], b_reshape(b, bin[a].first, 4, dim));
		empty[a] = b_bin_scalar(b, OP_eq, b_reshape(b, bin[a].count, 4, dim), 0);
	}
	Node place =
		b_bin(b, OP_add, b_bin(b, OP_mul, at[ROW], aten_size(b, r.size[COLUMN], DT_i64)),
		      at[COLUMN]);
	place = b_convert(b, b_select(b, found, place, aten_like(b, place, -1)), DT_i32);
	y = b_select(b, b_bin(b, OP_bit_or, empty[ROW], empty[COLUMN]), aten_like(b, y, 0), y);
	return b_tuple(b, (Node[]){pooled(b, n, y), aten_move_dim(b, place, 3, 1)}, 2);
}
OP(torchvision_roi_pool){
	.schema = "torchvision.roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt "
		  "pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
	.doc = "the largest pixel in each bin of regions of images, and where in the image it is",
	.build = build_roi_pool,
	.sample = "f32[n=2, 2, 6, 5], f32[3, 5] of 0 1 0.5 9 7 1 -4 -3 2.5 4 0 3 3 12 16, "
		  "spatial_scale=0.5, pooled_height=3, "
		  "pooled_width=2; f32[1, 2, 6, 5], f32[k=2, 5] of 0 20 20 30 30 0 1 3 1 2, "
		  "spatial_scale=1.0, pooled_height=2, pooled_width=3",
};

static Node build_ps_roi_pool(Build *b, Node n)
{
	Rois r;
	Bin bin[2];
	Points p[2];
	Node used, from[2];
	if (!read_rois(b, n, 0, true, &r))
		return (Node){0};
	for (uint32_t a = 0; a < 2; a++) {
		from[a] = round_half_out(b, r.from[a]);
		Node len = b_bin_scalar(b, OP_maximum,
					b_bin(b, OP_sub, round_half_out(b, r.to[a]), from[a]), 1);
		bin[a] = bin_of(b, &r, (Axis)a, from[a], len, sym_addi(b_syms(b), r.size[a], -1));
	}
	Node v = bin_pixels(b, n, &r, bin, p, &used);
	if (!v.i)
		return v;
	Node sum = aten_sum(b, b_select(b, used, v, aten_like(b, v, 0)), 3u << 3, false);
	Node area = b_bin(b, OP_mul,
			  b_reshape(b, bin[ROW].count, 4,
				    (Sym[]){r.k, r.bins[ROW], b_int(b, 1), b_int(b, 1)}),
			  b_reshape(b, bin[COLUMN].count, 4,
				    (Sym[]){r.k, b_int(b, 1), r.bins[COLUMN], b_int(b, 1)}));
	Node mean = b_bin(b, OP_div, sum, b_convert(b, area, r.dtype));
	Node y = b_select(b, b_bin_scalar(b, OP_eq, area, 0), aten_like(b, mean, 0), mean);
	return b_tuple(b, (Node[]){pooled(b, n, y), channel_of(b, &r)}, 2);
}
OP(torchvision_ps_roi_pool){
	.schema = "torchvision.ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt "
		  "pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
	.doc = "the mean of the pixels in each bin of regions of images, "
	       "where each bin has channels of its own; and which",
	.build = build_ps_roi_pool,
	.sample = "f32[n=2, 12, 6, 5], f32[3, 5] of 0 1 0.5 9 7 1 -4 -3 2.5 4 0 3 3 12 16, "
		  "spatial_scale=0.5, pooled_height=3, pooled_width=2",
};
