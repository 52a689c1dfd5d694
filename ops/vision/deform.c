/* Convolution of torchvision whose kernel's places are moved, each by an offset of its own. */
#include "ops/aten/priv.h"

#include <math.h>

typedef struct {
	Node x, weight; /* [N, C, H, W], [O, C / groups, KH, KW], wide */
	int64_t groups, parts; /* of weights; of offsets: channels / parts share them */
	Sym n, channels, each, out[2], kernel[2], taps; /* each: channels of a part */
} Deform;

static const char *const stride[] = {"stride_h", "stride_w"}, *const pad[] = {"pad_h", "pad_w"};
static const char *const dilation[] = {"dilation_h", "dilation_w"};

/* Returns v[N, parts * k, OH, OW], k = taps (* 2), as [N * parts, k, OH, OW]. */
static Node by_part(Build *b, const Deform *c, Node v, int64_t k)
{
	SymTab *t = b_syms(b);
	Sym rows = sym_mul(t, c->n, b_int(b, c->parts)), many = sym_mul(t, c->taps, b_int(b, k));
	aten_require_equal(b, b_dim(b, v, 0), c->n, "offsets and mask are of each image");
	aten_require_equal(b, b_dim(b, v, 1), sym_mul(t, many, b_int(b, c->parts)),
			   "offsets and mask are of each tap");
	for (int a = 0; a < 2; a++)
		aten_require_equal(b, b_dim(b, v, 2 + a), c->out[a],
				   "offsets and mask are of each place of the result");
	return b_reshape(b, v, 4, (Sym[]){rows, many, c->out[0], c->out[1]});
}

/* Returns where each tap is along an axis: [N * parts, taps, OH, OW]. */
static Node place_of_taps(Build *b, Node n, const Deform *c, Node offset, uint32_t a)
{
	Shape s = shape_of(4, (Sym[]){c->kernel[0], c->kernel[1], c->out[0], c->out[1]});
	Shape flat = shape_of(3, (Sym[]){c->taps, c->out[0], c->out[1]});
	Node tap = b_bin_scalar(b, OP_mul, aten_iota_dim(b, &s, a, DT_i64),
				(double)aten_int(b, n, dilation[a]));
	Node at = b_bin_scalar(b, OP_mul, aten_iota_dim(b, &s, 2 + a, DT_i64),
			       (double)aten_int(b, n, stride[a]));
	at = b_bin(b, OP_add, b_bin_scalar(b, OP_sub, at, (double)aten_int(b, n, pad[a])), tap);
	at = b_convert(b, aten_reshape(b, at, &flat), aten_dtype(b, offset));
	/* of each tap the offset in rows, then that in columns */
	Sym rows = b_dim(b, offset, 0);
	Node pair =
		b_reshape(b, offset, 5, (Sym[]){rows, c->taps, b_int(b, 2), c->out[0], c->out[1]});
	return b_bin(b, OP_add, at, b_select_dim(b, pair, 2, b_int(b, a)));
}

/* Multiplies [N, groups, (C / groups) * taps, OH * OW] with the weights: [N, O, OH, OW]. */
static Node multiply(Build *b, const Deform *c, Node columns)
{
	static const uint32_t batch[1][2] = {{0, 1}}, sum[1][2] = {{2, 2}};
	SymTab *t = b_syms(b);
	Sym groups = b_int(b, c->groups), o = b_dim(b, c->weight, 0), own = b_dim(b, c->weight, 1);
	Sym inner = sym_mul(t, own, c->taps), of_group = sym_floordiv(t, o, groups);
	aten_require_equal(b, sym_mul(t, own, groups), c->channels,
			   "weights are of each channel of their group");
	aten_require_equal(b, sym_mul(t, of_group, groups), o, "results are divided among groups");
	Node w = b_reshape(b, c->weight, 3, (Sym[]){groups, of_group, inner});
	columns = b_reshape(b, columns, 4,
			    (Sym[]){c->n, groups, inner, sym_mul(t, c->out[0], c->out[1])});
	Node y = b_contract(b, w, columns, batch, 1, sum, 1); /* [groups, O / groups, N, places] */
	if (!y.i)
		return y;
	y = b_permute(b, y, (const uint32_t[]){2, 0, 1, 3});
	return b_reshape(b, y, 4, (Sym[]){c->n, o, c->out[0], c->out[1]});
}

/* Checks that the offsets are of as many places along an axis as the convolution has. */
static bool places_fit(Build *b, Node n, const Deform *c, Sym in, uint32_t a)
{
	SymTab *t = b_syms(b);
	uint32_t errors = b->g->ir->ctx->nerror;
	int64_t step = aten_int(b, n, stride[a]), wide = aten_int(b, n, dilation[a]),
		outside = aten_int(b, n, pad[a]);
	TRY(aten_check_within(b, stride[a], (double)step, 1, INFINITY) &&
	    aten_check_within(b, dilation[a], (double)wide, 1, INFINITY));
	TRY(aten_check_within(b, pad[a], (double)outside, 0, INFINITY));
	Sym reach = sym_addi(t, sym_muli(t, sym_addi(t, c->kernel[a], -1), wide), 1);
	Sym out = aten_window_count(b, sym_addi(t, in, 2 * outside), reach, step);
	aten_require_equal(b, c->out[a], out, "offsets are of each place of the result");
	return b->g->ir->ctx->nerror == errors;
}

static bool read_deform(Build *b, Node n, Node offset, Deform *c)
{
	Node x = arg(b, n, "input"), w = arg(b, n, "weight");
	if (!x.i || !w.i || !offset.i)
		return false;
	DType d = node_dtype(b->g, x);
	if (node_rank(b->g, x) != 4 || node_rank(b->g, w) != 4 || node_rank(b->g, offset) != 4 ||
	    !dtype_is_float(d) || node_dtype(b->g, w) != d || node_dtype(b->g, offset) != d)
		return b_error(b,
			       "deform_conv2d of ranks %u, %u and %u, expected [n, c, h, w], [o, "
			       "c, kh, kw] and offsets of rank 4 of one "
			       "float dtype",
			       node_rank(b->g, x), node_rank(b->g, w), node_rank(b->g, offset))
			.i;
	*c = (Deform){.x = aten_wide(b, x),
		      .weight = aten_wide(b, w),
		      .groups = aten_int(b, n, "groups"),
		      .parts = aten_int(b, n, "offset_groups"),
		      .n = b_dim(b, x, 0),
		      .channels = b_dim(b, x, 1)};
	if (c->groups < 1 || c->parts < 1)
		return b_error(b, "deform_conv2d with %lld groups and %lld of offsets",
			       (long long)c->groups, (long long)c->parts)
			.i;
	for (uint32_t a = 0; a < 2; a++) {
		c->kernel[a] = b_dim(b, w, 2 + (int)a);
		c->out[a] = b_dim(b, offset, 2 + (int)a);
		TRY(places_fit(b, n, c, b_dim(b, x, 2 + (int)a), a));
	}
	SymTab *t = b_syms(b);
	c->taps = sym_mul(t, c->kernel[0], c->kernel[1]);
	c->each = sym_floordiv(t, c->channels, b_int(b, c->parts));
	aten_require_equal(b, sym_mul(t, c->each, b_int(b, c->parts)), c->channels,
			   "channels are divided among groups of offsets");
	return true;
}

static Node build_deform(Build *b, Node n)
{
	Node offset = arg(b, n, "offset"), bias = arg(b, n, "bias"), mask = arg(b, n, "mask"),
	     at[2];
	Deform c;
	if (!read_deform(b, n, offset, &c))
		return (Node){0};
	mask = node_bool(b->g, n, "use_mask") ? mask : (Node){0};
	if ((mask.i &&
	     (node_rank(b->g, mask) != 4 || node_dtype(b->g, mask) != node_dtype(b->g, offset))) ||
	    (bias.i &&
	     (node_rank(b->g, bias) != 1 || node_dtype(b->g, bias) != node_dtype(b->g, offset))))
		return b_error(b,
			       "deform_conv2d with a mask of rank %u and a bias of rank %u, "
			       "expected 4 and 1 and the dtype of the offsets",
			       aten_rank(b, mask), aten_rank(b, bias));
	offset = by_part(b, &c, aten_wide(b, offset), 2);
	for (uint32_t a = 0; a < 2; a++)
		at[a] = place_of_taps(b, n, &c, offset, a);
	Sym rows = b_dim(b, offset, 0);
	Node x = b_reshape(b, c.x, 4, (Sym[]){rows, c.each, b_dim(b, c.x, 2), b_dim(b, c.x, 3)});
	Node columns = aten_sample_linear(b, x, at, 2); /* [N * parts, C / parts, taps, OH, OW] */
	if (mask.i)
		columns = b_bin(b, OP_mul, columns,
				b_unsqueeze(b, by_part(b, &c, aten_wide(b, mask), 1), 1));
	Node y = multiply(b, &c, columns);
	if (y.i && bias.i)
		y = b_bin(b, OP_add, y, aten_per_dim(b, aten_wide(b, bias), y, 1));
	return y.i ? b_convert(b, y, aten_dtype(b, arg(b, n, "input"))) : y;
}
OP(torchvision_deform_conv2d){
	.schema = "torchvision.deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor "
		  "mask, Tensor bias, SymInt stride_h, "
		  "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, "
		  "SymInt dilation_w, SymInt groups, SymInt offset_groups, "
		  "bool use_mask) -> Tensor",
	.doc = "a convolution whose taps are interpolated at places moved by offsets, "
	       "and weighted by a mask",
	.build = build_deform,
	.sample = "f32[n=2, 4, 5, 6], f32[6, 2, 2, 3], f32[n, 24, 3, 3] in -2..2, "
		  "f32[n, 12, 3, 3] in 0..1, f32[6], stride_h=2, stride_w=2, pad_h=1, pad_w=1, "
		  "dilation_h=2, dilation_w=1, groups=2, offset_groups=2, use_mask=true; "
		  "f32[1, 2, 4, 4], f32[3, 2, 2, 2], f32[1, 8, 3, 3] in -6..6, f32[1, 1], f32[3], "
		  "stride_h=1, stride_w=1, pad_h=0, pad_w=0, dilation_h=1, dilation_w=1, groups=1, "
		  "offset_groups=1, use_mask=false",
};
