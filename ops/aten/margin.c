/* ATen losses of distances and of margins. */
#include "ops/aten/priv.h"

static Node distance(Build *b, Node n, Node x, Node y)
{
	return aten_row_distance(b, x, y, node_float(b->g, n, "p"), node_float(b->g, n, "eps"),
				 false);
}

static Node build_triplet(Build *b, Node n)
{
	Node a = arg(b, n, "anchor"), p = arg(b, n, "positive"), q = arg(b, n, "negative");
	Node near = distance(b, n, a, p), far = distance(b, n, a, q);
	if (node_bool(b->g, n, "swap"))
		far = b_bin(b, OP_minimum, far, distance(b, n, p, q));
	Node l =
		b_bin_scalar(b, OP_add, b_bin(b, OP_sub, near, far), node_float(b->g, n, "margin"));
	return aten_reduce_loss(b, n, aten_hinge(b, l));
}
OP(aten_triplet_margin_loss){
	.schema = "aten.triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, "
		  "float margin=1.0, float p=2.0, float eps=1e-06, bool swap=False, int "
		  "reduction=1) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_triplet,
	.sample = "f32[n=3, 4], f32[n, 4], f32[n, 4]; f32[n=3, 4], f32[n, 4], f32[n, 4], "
		  "margin=2.5, p=1.0, swap=true, reduction=0; f32[n=3, 4], f32[n, 4], f32[n, 4], "
		  "margin=4.5, eps=0.25, reduction=2",
};

static Node build_cosine_embedding(Build *b, Node n)
{
	Node x = aten_to_float(b, arg(b, n, "input1")), y = aten_to_float(b, arg(b, n, "input2"));
	Node target = arg(b, n, "target");
	uint32_t rank = aten_rank(b, x);
	double margin = node_float(b->g, n, "margin"), eps = 1e-12;
	if (rank == 0)
		return b_error(b, "cosine_embedding_loss of tensors without dims");
	uint32_t dims = 1u << (rank - 1);
	Node xy = aten_sum(b, b_bin(b, OP_mul, x, y), dims, false);
	Node xx = b_bin_scalar(b, OP_add, aten_sum(b, b_bin(b, OP_mul, x, x), dims, false), eps);
	Node yy = b_bin_scalar(b, OP_add, aten_sum(b, b_bin(b, OP_mul, y, y), dims, false), eps);
	Node cos = b_bin(b, OP_div, xy, b_un(b, OP_sqrt, b_bin(b, OP_mul, xx, yy)));
	Node pos = b_bin(b, OP_sub, aten_like(b, cos, 1), cos);
	Node neg = aten_hinge(b, b_bin_scalar(b, OP_sub, cos, margin));
	Node zero = aten_like(b, cos, 0);
	Node l = b_select(b, b_bin_scalar(b, OP_eq, target, -1), neg, zero);
	return aten_reduce_loss(b, n, b_select(b, b_bin_scalar(b, OP_eq, target, 1), pos, l));
}
OP(aten_cosine_embedding_loss){
	.schema = "aten.cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float "
		  "margin=0.0, int reduction=1) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_cosine_embedding,
	.sample = "f32[n=3, 4], f32[n, 4], f32[n] of -1 1, reduction=0; "
		  "f32[n=3, 4], f32[n, 4], f32[n] of -1 1, reduction=1; "
		  "f32[n=3, 4], f32[n, 4], f32[n] of -1 1, reduction=2; "
		  "f32[n=3, 4], f32[n, 4], f32[n] of -1 1, margin=0.25, reduction=0",
};

/* Adds, as ATen, a margin only where it is greater than 0, so NaN counts as 0. */
static Node counted_hinge(Build *b, Node z)
{
	Node zero = aten_like(b, z, 0);
	return b_select(b, b_bin(b, OP_gt, z, zero), z, zero);
}

/* Returns the loss of each sample, or their mean or sum. Of one sample without a dimension for
 * samples that is a number; torch.export says one of rank 1 of it, which counts where a file
 * says so. `as_one`: PyTorch gives rank 1. */
static Node sample_losses(Build *b, Node n, Node loss, bool as_one)
{
	const bool file = node_type_id(b->g, n).i && node_type(b->g, n)->dtype != DT_none;
	const uint32_t rank = file ? node_rank(b->g, n) : as_one;
	if (aten_int(b, n, "reduction") == 0 && aten_rank(b, loss) == 0 && rank == 1)
		return b_unsqueeze(b, loss, 0);
	return aten_reduce_loss(b, n, loss);
}

/* Builds the mean over the classes of max(0, margin - x[y] + x[i])^p * w[y], i other than y. */
static Node build_multi_margin(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "target"), w = arg(b, n, "weight");
	if (aten_rank(b, x) == 0)
		x = b_unsqueeze(b, x, 0);
	uint32_t rank = aten_rank(b, x), dim = rank ? rank - 1 : 0;
	if (!x.i || !y.i || rank > 2 || (aten_rank(b, y) != rank - 1 && rank == 2) ||
	    aten_rank(b, y) > 1)
		return b_error(b, "multi_margin_loss of ranks %u and %u", rank, aten_rank(b, y));
	if (!aten_scalar_is(b, n, "p", 1) && !aten_scalar_is(b, n, "p", 2))
		return b_error(b, "p is %g, expected 1 or 2", node_float(b->g, n, "p"));
	const bool as_one = aten_rank(b, y) == 1;
	if (aten_rank(b, y) == rank)
		y = b_reshape(b, y, rank - 1, NULL);
	y = b_convert(b, y, DT_i64);
	Node at = b_unsqueeze(b, y, -1), score = aten_gather_dim(b, x, dim, at);
	Node margin = aten_scalar_as(b, node_attr(b->g, n, "margin"), node_dtype(b->g, x));
	Node l = b_bin(b, OP_add, b_bin(b, OP_sub, x, score), margin);
	l = counted_hinge(b, l);
	if (aten_scalar_is(b, n, "p", 2))
		l = b_bin(b, OP_mul, l, l);
	if (w.i)
		l = b_bin(b, OP_mul, l, aten_take_dim(b, w, 0, at, "within"));
	Shape s = aten_shape(b, x);
	Node own = b_bin(b, OP_eq, aten_iota_dim(b, &s, dim, DT_i64), at);
	l = b_select(b, own, aten_like(b, l, 0), l);
	return sample_losses(b, n, aten_mean(b, l, 1u << dim, false), as_one);
}
OP(aten_multi_margin_loss){
	.schema = "aten.multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar "
		  "margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
	.autocast = AUTOCAST_F32,
	.deviates = "of one sample without reduction the file says rank 1, "
		    "eager mode gives rank 0: the file counts",
	.build = build_multi_margin,
	.sample = "f32[n=3, 4], i64[n] of 0 3 2, reduction=0; "
		  "f32[n=3, 4], i64[n] of 0 3 2, reduction=1; "
		  "f32[n=3, 4], i64[n] of 0 3 2, reduction=2; "
		  "f32[n=3, 4], i64[n] of 0 3 2, p=2, margin=2.5, f32[4] in 0.5..1.5, reduction=0; "
		  "f32[2, 3] of nan 1 2 1 nan 0.5, i64[2] of 0 2, reduction=0; "
		  "f32[n=4], i64[1] of 2, reduction=0; f32[4], i64[] of 2, reduction=0",
};

/* Targets before the first -1 are labels: mean over pairs (label j, other class i) of
 * max(0, 1 - x[j] + x[i]), over the classes. */
/* Computes the loss. is_label, if not NULL: 1 where an element of x is one of a sample's labels,
 * else 0. */
static Node multilabel_margin(Build *b, Node n, Node *is_label)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "target");
	Shape given = aten_shape(b, x);
	uint32_t rank = aten_rank(b, x), dim = rank ? rank - 1 : 0;
	if (!x.i || !y.i)
		return (Node){0};
	if (rank == 0) {
		x = b_unsqueeze(b, x, 0);
		y = b_unsqueeze(b, y, 0);
	}
	Shape s = aten_shape(b, x);
	Node ended = b_convert(b, b_bin_scalar(b, OP_lt, y, 0), DT_i64);
	Node label = b_bin_scalar(b, OP_eq, b_cumulative(b, "sum", ended, dim, false), 0);
	y = b_convert(b, y, DT_i64);
	Node safe = b_select(b, label, y, aten_like(b, y, 0));
	Node score = b_unsqueeze(b, aten_gather_dim(b, x, dim, safe), -1); /* [.., j, 1] */
	Node class = aten_iota_dim(b, &s, dim, DT_i64);
	Node hit = b_unsqueeze(b, safe, -1);
	hit = b_bin(b, OP_eq, hit, b_unsqueeze(b, class, (int)dim));
	hit = b_bin(b, OP_bit_and, hit, b_unsqueeze(b, label, -1)); /* [.., j, i] */
	Node taken = aten_reduce(b, REDUCE_OR, hit, 1u << dim, false);
	Node l = b_bin(b, OP_sub, b_unsqueeze(b, x, (int)dim), score);
	l = counted_hinge(b, b_bin_scalar(b, OP_add, l, 1));
	Node free = b_unsqueeze(b, b_un(b, OP_bit_not, taken), (int)dim);
	free = b_bin(b, OP_bit_and, free, b_unsqueeze(b, label, -1));
	l = b_select(b, free, l, aten_like(b, l, 0));
	l = aten_sum(b, l, 3u << dim, false);
	l = b_bin(b, OP_div, l, aten_size(b, s.dim[dim], node_dtype(b->g, x)));
	if (is_label)
		*is_label = b_reshape(b, b_convert(b, taken, node_dtype(b->g, x)), given.rank,
				      given.dim);
	return sample_losses(b, n, l, false);
}

static Node build_multilabel_margin(Build *b, Node n)
{
	return multilabel_margin(b, n, NULL);
}

static Node build_multilabel_margin_forward(Build *b, Node n)
{
	Node label = {0}, loss = multilabel_margin(b, n, &label);
	return b_tuple(b, (Node[]){loss, label}, 2);
}
OP(aten_multilabel_margin_loss){
	.schema = "aten.multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> "
		  "Tensor",
	.autocast = AUTOCAST_F32,
	.deviates = "of one sample without reduction the file says rank 1, "
		    "eager mode gives rank 0: the file counts",
	.build = build_multilabel_margin,
	.sample = "f32[n=2, 4], i64[n, 4] of 3 0 -1 1 2 -1 0 0, reduction=0; "
		  "f32[n=2, 4], i64[n, 4] of 3 0 -1 1 2 -1 0 0, reduction=1; "
		  "f32[n=2, 4], i64[n, 4] of 3 0 -1 1 2 -1 0 0, reduction=2; "
		  "f32[2, 3] of nan 1 2 1 nan 0.5, i64[2, 3] of 0 -1 0 2 -1 0, reduction=0; "
		  "f32[n=4], i64[n] of 3 0 -1 1, reduction=0",
	.overloads = (const Overload[]){
		{.schema = "aten.multilabel_margin_loss_forward(Tensor self, Tensor target, int "
			   "reduction) -> (Tensor, Tensor)",
		 .build = build_multilabel_margin_forward,
		 .sample = "f32[n=2, 4], i64[n, 4] of 3 0 -1 1 2 -1 0 0, reduction=1; "
			   "f32[n=2, 4], i64[n, 4] of 3 0 -1 1 2 -1 0 0, reduction=0"},
	},
};
