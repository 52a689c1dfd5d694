/* ATen sampling of images at given places. */
#include "ops/aten/priv.h"

#include <math.h>

typedef enum { SAMPLE_BILINEAR, SAMPLE_NEAREST, SAMPLE_BICUBIC } Sampling;
typedef enum { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } Padding;

typedef struct {
	Sampling how;
	Padding pad;
	bool align;
	uint32_t ns;
	Node x; /* [N, C, *in] */
	Sym in[3];
	Node at[3]; /* unnormalised place per spatial dim, [N, *out] */
} Sampler;

static Node extent(Build *b, const Sampler *s, uint32_t k, int64_t add)
{
	return aten_size(b, sym_addi(b_syms(b), s->in[k], add), aten_dtype(b, s->at[k]));
}

/* Converts -1..1 to pixels. Of images PyTorch rounds the product with half the extent, less 0.5,
 * once: that decides whether the place is at the border. */
static Node unnormalise(Build *b, const Sampler *s, uint32_t k, Node g)
{
	Node one = b_bin_scalar(b, OP_add, g, 1);
	if (s->align) {
		Node last = aten_size(b, sym_addi(b_syms(b), s->in[k], -1), aten_dtype(b, g));
		return b_bin(b, OP_mul, b_bin_scalar(b, OP_mul, one, 0.5), last);
	}
	Node size = aten_size(b, s->in[k], aten_dtype(b, g));
	if (s->ns == 2)
		return b_pointwise(b, OP_fma,
				   (Node[]){one, b_bin_scalar(b, OP_mul, size, 0.5),
					    b_scalar(b, aten_dtype(b, g), -0.5)},
				   3);
	Node y = b_bin(b, OP_mul, one, size);
	return b_bin_scalar(b, OP_mul, b_bin_scalar(b, OP_sub, y, 1), 0.5);
}

/* Mirrors at low and low + span (span may be 0). */
static Node reflect(Build *b, Node x, double low, Node span)
{
	x = b_un(b, OP_abs, b_bin_scalar(b, OP_sub, x, low));
	Node safe = b_bin_scalar(b, OP_maximum, span, 1e-30);
	Node extra = b_bin(b, OP_fmod, x, safe);
	Node flips = b_un(b, OP_floor, b_bin(b, OP_div, x, safe));
	Node even = b_bin_scalar(b, OP_eq, b_bin_scalar(b, OP_remainder, flips, 2), 0);
	Node back = b_bin(b, OP_sub, span, extra);
	Node y = b_bin_scalar(b, OP_add, b_select(b, even, extra, back), low);
	Node none = b_bin_scalar(b, OP_eq, span, 0);
	return b_select(b, none, aten_like(b, y, 0), y);
}

/* Clamps into 0 .. last. The place is one that is computed with only strictly between them, so
 * the derivative is 0 at both ends. NaN is the first in images and the last in volumes. */
static Node clip(Build *b, const Sampler *s, uint32_t k, Node x)
{
	Node last = extent(b, s, k, -1), none = aten_like(b, x, 0);
	Node below = b_select(b, b_bin(b, OP_lt, x, last), x, last);
	if (s->ns == 3)
		return b_select(b, b_bin(b, OP_le, x, none), none, below);
	return b_select(b, b_bin(b, OP_gt, x, none), below, none);
}

/* Returns a place of the image, for numbers that have no derivative. */
static Node inner(Build *b, const Sampler *s, uint32_t k, Node x)
{
	x = b_bin_scalar(b, OP_maximum, x, 0);
	return b_bin(b, OP_minimum, x, extent(b, s, k, -1));
}

/* Applies the padding mode to the place. What is not finite is outside of a volume; in images
 * its weights are NaN. */
static Node settle(Build *b, const Sampler *s, uint32_t k, Node x)
{
	if (s->pad == PAD_ZEROS && s->ns < 3)
		return x;
	if (s->pad == PAD_ZEROS) {
		Node finite = b_bin_scalar(b, OP_lt, b_un(b, OP_abs, x), HUGE_VAL);
		return b_select(b, finite, x, aten_like(b, x, -100));
	}
	if (s->pad == PAD_REFLECTION)
		x = reflect(b, x, s->align ? 0 : -0.5, extent(b, s, k, s->align ? -1 : 0));
	return clip(b, s, k, x);
}

/* Reads x at whole places p[k], 0 outside: [N, C, *out]. */
static Node pixels(Build *b, const Sampler *s, const Node *p)
{
	Node inside = {0}, part[3];
	uint32_t axes[3];
	for (uint32_t k = 0; k < s->ns; k++) {
		Node in = b_bin_scalar(b, OP_ge, p[k], 0);
		in = b_bin(b, OP_bit_and, in, b_bin(b, OP_le, p[k], extent(b, s, k, -1)));
		inside = inside.i ? b_bin(b, OP_bit_and, inside, in) : in;
		part[k] = b_convert(b, inner(b, s, k, p[k]), DT_i64);
		axes[k] = 2 + k;
	}
	uint32_t rank = aten_rank(b, p[0]);
	Node index = aten_stack(b, part, s->ns, rank);
	/* [N, *out, C] */
	Node v = b_gather(b, s->x, index, 1, axes, s->ns, "clamp");
	if (!v.i || !inside.i)
		return (Node){0};
	v = aten_move_dim(b, v, rank, 1);
	inside = b_unsqueeze(b, inside, 1);
	return b_select(b, inside, v, aten_like(b, v, 0));
}

static Node sample_nearest(Build *b, const Sampler *s)
{
	Node p[3];
	for (uint32_t k = 0; k < s->ns; k++)
		p[k] = b_un(b, OP_round, settle(b, s, k, s->at[k]));
	return pixels(b, s, p);
}

/* Sums each of the 2^ns corners times the volume opposite to it. */
static Node sample_linear(Build *b, const Sampler *s)
{
	Node low[3], frac[3], sum = {0};
	for (uint32_t k = 0; k < s->ns; k++) {
		Node at = settle(b, s, k, s->at[k]);
		low[k] = b_un(b, OP_floor, at);
		frac[k] = b_bin(b, OP_sub, at, low[k]);
	}
	for (uint32_t corner = 0; corner < 1u << s->ns; corner++) {
		Node p[3], weight = {0};
		for (uint32_t k = 0; k < s->ns; k++) {
			bool high = corner >> k & 1;
			p[k] = high ? b_bin_scalar(b, OP_add, low[k], 1) : low[k];
			Node w = high ? frac[k]
				      : b_bin(b, OP_sub, aten_like(b, frac[k], 1), frac[k]);
			weight = weight.i ? b_bin(b, OP_mul, weight, w) : w;
		}
		Node v = pixels(b, s, p);
		v = b_bin(b, OP_mul, v, b_unsqueeze(b, weight, 1));
		sum = sum.i ? b_bin(b, OP_add, sum, v) : v;
	}
	return sum;
}

/* Returns Keys' cubic with A = -0.75 at distance t: |t| <= 1 (near), else |t| < 2. */
static Node cubic(Build *b, Node t, bool near)
{
	Node p = near ? b_bin_scalar(b, OP_sub, b_bin_scalar(b, OP_mul, t, 1.25), 2.25)
		      : b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_mul, t, -0.75), 3.75);
	p = b_bin(b, OP_mul, p, t);
	p = near ? b_bin(b, OP_mul, p, t) : b_bin(b, OP_mul, b_bin_scalar(b, OP_sub, p, 6), t);
	return b_bin_scalar(b, OP_add, p, near ? 1 : 3);
}

static Node sample_cubic(Build *b, const Sampler *s)
{
	Node low[2], weight[2][4], sum = {0};
	for (uint32_t k = 0; k < 2; k++) {
		low[k] = b_un(b, OP_floor, s->at[k]);
		Node t = b_bin(b, OP_sub, s->at[k], low[k]);
		Node back = b_bin(b, OP_sub, aten_like(b, t, 1), t);
		weight[k][0] = cubic(b, b_bin_scalar(b, OP_add, t, 1), false);
		weight[k][1] = cubic(b, t, true);
		weight[k][2] = cubic(b, back, true);
		weight[k][3] = cubic(b, b_bin_scalar(b, OP_add, back, 1), false);
	}
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++) {
			Node p[2] = {b_bin_scalar(b, OP_add, low[0], i - 1), {0}};
			p[1] = b_bin_scalar(b, OP_add, low[1], j - 1);
			for (uint32_t k = 0; k < 2; k++)
				p[k] = settle(b, s, k, p[k]);
			Node w = b_bin(b, OP_mul, weight[0][i], weight[1][j]);
			Node v = pixels(b, s, p);
			v = b_bin(b, OP_mul, v, b_unsqueeze(b, w, 1));
			sum = sum.i ? b_bin(b, OP_add, sum, v) : v;
		}
	return sum;
}

Node aten_sample_linear(Build *b, Node x, const Node *at, uint32_t n)
{
	Sampler s = {.how = SAMPLE_BILINEAR, .pad = PAD_ZEROS, .ns = n, .x = x};
	for (uint32_t k = 0; x.i && k < n; k++) {
		s.in[k] = b_dim(b, x, 2 + (int)k);
		s.at[k] = at[k];
	}
	return x.i ? sample_linear(b, &s) : x;
}

static Node build_grid_sampler(Build *b, Node n)
{
	Node grid = arg(b, n, "grid");
	Sampler s = {.x = arg(b, n, "input"), .align = node_bool(b->g, n, "align_corners")};
	uint32_t rank = aten_rank(b, s.x);
	int64_t how = aten_int(b, n, "interpolation_mode"), pad = aten_int(b, n, "padding_mode");
	s.ns = rank - 2;
	if (!s.x.i || (rank != 4 && rank != 5) || aten_rank(b, grid) != rank || how < 0 ||
	    how > 2 || pad < 0 || pad > 2 || (how == 2 && rank != 4))
		return b_error(b, "grid_sampler of ranks %u and %u", rank, aten_rank(b, grid));
	if (!dtype_is_float(aten_dtype(b, grid)))
		return b_error(b, "a grid of %s, expected floats",
			       dtype_name(aten_dtype(b, grid)));
	aten_require_elements(b, s.x, aten_dims_from(b, s.x, 2),
			      "what a grid samples has elements");
	s.how = (Sampling)how;
	s.pad = (Padding)pad;
	DType d = node_dtype(b->g, s.x);
	s.x = aten_wide(b, s.x);
	grid = aten_wide(b, grid);
	for (uint32_t k = 0; k < s.ns; k++) {
		s.in[k] = b_dim(b, s.x, 2 + (int)k);
		/* The grid's last axis is (x, y[, z]): the last spatial dim first. */
		Node g = b_select_dim(b, grid, -1, b_int(b, s.ns - 1 - k));
		s.at[k] = unnormalise(b, &s, k, g);
	}
	Node y = s.how == SAMPLE_NEAREST   ? sample_nearest(b, &s)
		 : s.how == SAMPLE_BICUBIC ? sample_cubic(b, &s)
					   : sample_linear(b, &s);
	return y.i ? b_convert(b, y, d) : y;
}
OP(aten_grid_sampler){
	.schema = "aten.grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int "
		  "padding_mode, bool align_corners) -> Tensor",
	.autocast = AUTOCAST_F32,
	.aliases = "aten.grid_sampler_2d",
	.build = build_grid_sampler,
	.sample = "f32[n=2, 1, 3, 4], f32[n, 2, 3, 2] in -1.3..1.3, interpolation_mode=0, "
		  "padding_mode=0, align_corners=false; f32[n=2, 1, 3, 4], "
		  "f32[n, 2, 3, 2] in -1.3..1.3, interpolation_mode=0, "
		  "padding_mode=1, align_corners=true; f32[n=2, 1, 3, 4], "
		  "f32[n, 2, 3, 2] in -1.3..1.3, interpolation_mode=0, padding_mode=2, "
		  "align_corners=false; "
		  "f32[n=2, 1, 3, 4], f32[n, 2, 3, 2] in -1.3..1.3, interpolation_mode=1, "
		  "padding_mode=0, align_corners=true; f32[n=2, 1, 3, 4], "
		  "f32[n, 2, 3, 2] in -1.3..1.3, interpolation_mode=1, "
		  "padding_mode=2, align_corners=true; f32[n=2, 1, 3, 4], "
		  "f32[n, 2, 3, 2] in -1.3..1.3, interpolation_mode=2, padding_mode=0, "
		  "align_corners=false; "
		  "f32[n=2, 1, 3, 4], f32[n, 2, 3, 2] in -1.3..1.3, interpolation_mode=2, "
		  "padding_mode=1, align_corners=true; f32[n=2, 1, 3, 4], "
		  "f32[n, 2, 3, 2] in -1.3..1.3, interpolation_mode=2, "
		  "padding_mode=2, align_corners=false",
	.overloads = (const Overload[]){
		{.schema = "aten.grid_sampler_3d(Tensor input, Tensor grid, int "
			   "interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
		 .sample = "f32[n=2, 1, 2, 3, 4], f32[n, 2, 1, 3, 3] in -1.3..1.3, "
			   "interpolation_mode=0, padding_mode=0, "
			   "align_corners=false; f32[1, 1, 2, 3, 4], "
			   "f32[1, 2, 1, 3, 3] in -1.3..1.3, interpolation_mode=0, "
			   "padding_mode=1, align_corners=true; f32[1, 1, 2, 3, 4], "
			   "f32[1, 2, 1, 3, 3] in -1.3..1.3, interpolation_mode=0, padding_mode=2, "
			   "align_corners=true; "
			   "f32[1, 1, 2, 3, 4], f32[1, 2, 1, 3, 3] in -1.3..1.3, "
			   "interpolation_mode=1, padding_mode=0, "
			   "align_corners=true; f32[1, 1, 2, 3, 4], "
			   "f32[1, 2, 1, 3, 3] in -1.3..1.3, interpolation_mode=1, padding_mode=2, "
			   "align_corners=false"},
	},
};

/* Multiplies theta [N, 2, 3] by (x, y, 1) over the output: [N, H, W, 2]; likewise in three dims. */
static Node build_affine_grid(Build *b, Node n)
{
	Node theta = arg(b, n, "theta"), part[4];
	uint32_t len;
	const Sym *size = node_ints(b->g, n, "size", &len);
	bool align = node_bool(b->g, n, "align_corners");
	if (!theta.i || node_rank(b->g, theta) != 3 || (len != 4 && len != 5))
		return b_error(b, "affine_grid_generator for a size of %u dims", len);
	DType d = node_dtype(b->g, theta);
	aten_require_equal(b, size[0], b_dim(b, theta, 0), "a grid for each matrix");
	Shape s = shape_of(len - 2, size + 2);
	for (uint32_t k = 0; k < s.rank; k++) {
		Node i = aten_iota_dim(b, &s, s.rank - 1 - k, DT_f64);
		Sym count = s.dim[s.rank - 1 - k];
		Sym gaps = align ? sym_max(b_syms(b), b_int(b, 1), sym_addi(b_syms(b), count, -1))
				 : count;
		/* align: 2 i / (count - 1) - 1, else (2 i + 1) / count - 1 */
		i = b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_mul, i, 2), align ? 0 : 1);
		i = b_bin_scalar(b, OP_sub, b_bin(b, OP_div, i, aten_size(b, gaps, DT_f64)), 1);
		bool single = align && sym_is(b_syms(b), count, 1);
		part[k] = single ? b_full(b, d, 0, s.rank, s.dim) : b_convert(b, i, d);
	}
	part[s.rank] = b_full(b, d, 1, s.rank, s.dim);
	Node base = aten_stack(b, part, s.rank + 1, s.rank);
	const uint32_t sum[1][2] = {{2, s.rank}};
	/* [N, 2, *out] to [N, *out, 2] */
	return aten_move_dim(b, b_contract(b, theta, base, NULL, 0, sum, 1), 1, s.rank + 1);
}
OP(aten_affine_grid_generator){
	.schema = "aten.affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) "
		  "-> Tensor",
	.build = build_affine_grid,
	.sample = "f32[n=2, 2, 3], size=[n, 1, 3, 2], align_corners=false; "
		  "f32[2, 2, 3], size=[2, 1, 3, 2], align_corners=true; "
		  "f32[1, 3, 4], size=[1, 1, 2, 3, 2], align_corners=false",
};
