/* ATen's dropout. */
#include "ops/aten/priv.h"
#include "ops/prim/random.h"

#include <math.h>

/* Tells whether some elements are dropped. Else it is the identity, or with p 1 nothing is left. */
static bool drops(const Graph *g, Node n)
{
	const Attr *train = node_attr(g, n, "train");
	double p = node_float(g, n, "p");
	return (train->kind != ATTR_bool || train->b) && p != 0 && p != 1;
}

static Node dropped_operand(Build *b, Node n)
{
	return arg(b, n, op_arg_index(node_op(b->g, n), "self") >= 0 ? "self" : "input");
}

/* Drops elements of some dims together: of features, all behind batch and channel. */
static Node drop_shared(Build *b, Node n, int shared)
{
	Node x = dropped_operand(b, n);
	Draw draw;
	double p = node_float(b->g, n, "p");
	if (!(p >= 0 && p <= 1))
		return b_error(b, "p is %g, expected a number from 0 to 1", p);
	if (!drops(b->g, n))
		return p == 1 && node_bool(b->g, n, "train") ? b_bin_scalar(b, OP_mul, x, 0) : x;
	return draw_begin(b, n, &draw) ? draw_dropout(b, &draw, x, p, shared) : (Node){0};
}

static const uint32_t behind_channels = ~3u; /* dims whose elements are a feature */

static bool has_features(Build *b, Node n)
{
	uint32_t rank = aten_rank(b, dropped_operand(b, n));
	return !drops(b->g, n) || rank >= 2 ||
	       b_error(b, "dropout of features of rank %u, expected 2 at least", rank).i;
}

static Node build_feature_dropout(Build *b, Node n)
{
	return has_features(b, n) ? drop_shared(b, n, behind_channels) : (Node){0};
}
OP(aten_dropout){
	.schema = "aten.dropout(Tensor input, float p, bool train, *, " RANDOM_ARGS ") -> Tensor",
	.view = VIEW_SAME,
	.view_if = VIEW_IF_IDLE,
	.draws = drops,
	.mode = "train",
	.build_as = {drop_shared, 0},
	.sample = "f32[n=3, 4, 2], p=0.5, train=false; f32[n=3, 4], p=0.0, train=true; "
		  "f32[n=3, 4], u64[2] of 1 2, p=0.25, train=true; f32[n=3, 4], p=1.0, train=true",
	.overloads =
		(const Overload[]){
			{.schema = "aten.feature_dropout(Tensor input, float p, bool train, "
				   "*, " RANDOM_ARGS ") -> Tensor",
			 .build = build_feature_dropout,
			 .sample = "f32[n=3, 4, 2], p=0.5, train=false; f32[n=3, 4, 5], u64[2] of "
				   "1 2, p=0.25, train=true"},
		},
};

/* Makes what is dropped the value that SELU has at minus infinity; the rest is scaled and
 * shifted, so that mean and variance stay (G. Klambauer et al., "Self-normalizing neural
 * networks", 2017). */
static Node alpha_dropout(Build *b, Node n, int shared)
{
	static const double alpha = 1.7580993408473766;
	Node x = dropped_operand(b, n);
	Draw draw;
	double p = node_float(b->g, n, "p"), scale = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
	if (!drops(b->g, n) || p < 0 || p > 1)
		return drop_shared(b, n, shared);
	if (!draw_begin(b, n, &draw))
		return (Node){0};
	DType d = dtype_compute(aten_dtype(b, x));
	Node keep = draw_keep(b, &draw, x, p, shared);
	Node factor = b_select(b, keep, b_full(b, d, scale, 0, NULL), b_full(b, d, 0, 0, NULL));
	Node more = b_select(b, keep, b_full(b, d, alpha * scale * p, 0, NULL),
			     b_full(b, d, alpha * scale * (p - 1), 0, NULL));
	Node y = b_bin(b, OP_add, b_bin(b, OP_mul, b_convert(b, x, d), factor), more);
	return b_convert(b, y, aten_dtype(b, x));
}

static Node build_feature_alpha_dropout(Build *b, Node n)
{
	return has_features(b, n) ? alpha_dropout(b, n, behind_channels) : (Node){0};
}
OP(aten_alpha_dropout){
	.schema = "aten.alpha_dropout(Tensor input, float p, bool train, *, " RANDOM_ARGS
		  ") -> Tensor",
	.view = VIEW_SAME,
	.view_if = VIEW_IF_IDLE,
	.draws = drops,
	.mode = "train",
	.build_as = {alpha_dropout, 0},
	.sample = "f32[n=3, 4, 2], p=0.5, train=false; f32[n=3, 4], u64[2] of 1 2, p=0.25, "
		  "train=true",
	.overloads =
		(const Overload[]){
			{.schema = "aten.feature_alpha_dropout(Tensor input, float p, bool train, "
				   "*, " RANDOM_ARGS ") -> Tensor",
			 .build = build_feature_alpha_dropout,
			 .sample = "f32[n=3, 4, 2], p=0.5, train=false; f32[n=3, 4, 5], u64[2] of "
				   "1 2, p=0.25, train=true"},
		},
};

/* Returns (y, mask). */
static Node build_native_dropout(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	double p = node_float(b->g, n, "p");
	const Attr *train = node_attr(b->g, n, "train");
	Shape s = aten_shape(b, x);
	Draw draw;
	if (!x.i || !(p >= 0 && p <= 1))
		return x.i ? b_error(b, "p is %g, expected a number from 0 to 1", p) : x;
	if ((train->kind == ATTR_bool && !train->b) || p == 0)
		return b_tuple(b, (Node[]){x, b_full_int(b, DT_bool, 1, s.rank, s.dim)}, 2);
	if (p == 1)
		return b_tuple(b,
			       (Node[]){b_bin_scalar(b, OP_mul, x, 0),
					b_full_int(b, DT_bool, 0, s.rank, s.dim)},
			       2);
	if (!draw_begin(b, n, &draw))
		return (Node){0};
	Node keep = draw_keep(b, &draw, x, p, 0);
	return b_tuple(b, (Node[]){dropout_of(b, x, keep, p), keep}, 2);
}
OP(aten_native_dropout){
	.schema = "aten.native_dropout(Tensor input, float p, bool? train, *, " RANDOM_ARGS
		  ") -> (Tensor, Tensor)",
	.draws = drops,
	.mode = "train",
	.build = build_native_dropout,
	.sample = "f32[n=3, 4], p=0.5, train=false; f32[n=3, 4], p=0.0, train=true; "
		  "f32[n=3, 4], u64[2] of 1 2, p=0.25, train=true",
};

static Node build_native_dropout_backward(Build *b, Node n)
{
	Node g = aten_to_float(b, arg(b, n, "grad_output")), m = arg(b, n, "mask");
	double scale = node_float(b->g, n, "scale");
	if (!g.i || !m.i)
		return (Node){0};
	Node y = b_bin(b, OP_mul, g, b_convert(b, m, node_dtype(b->g, g)));
	return b_bin_scalar(b, OP_mul, y, scale);
}
OP(aten_native_dropout_backward){
	.schema = "aten.native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> "
		  "Tensor",
	.build = build_native_dropout_backward,
	.sample = "f32[n=3, 4], bool[n, 4], scale=1.5",
};
