/* Scaled dot-product attention. Kept as one node until decompose, so that it can have a schedule.
 */
#include "ir/ops/random.h"

#include <math.h>

/* [.., H, S, D] to [.., H * times, S, D], each head repeated. */
static Node repeat_heads(Build *b, Node x, Sym times)
{
	Shape s = aten_shape(b, x);
	uint32_t h = s.rank - 3, map[MAX_RANK];
	if (!x.i || sym_is(b_syms(b), times, 1) || s.rank == MAX_RANK)
		return x;
	Shape wide = shape_insert(s, h + 1, times);
	for (uint32_t k = 0; k < s.rank; k++)
		map[k] = k <= h ? k : k + 1;
	s.dim[h] = sym_mul(b_syms(b), s.dim[h], times);
	return aten_reshape(b, b_broadcast_in_dim(b, x, wide.rank, wide.dim, map), &s);
}

/* Scores with what must not be seen at -inf. */
static Node masked(Build *b, Node scores, Node mask, bool causal)
{
	Node low = aten_like(b, scores, -(double)INFINITY);
	Shape s = aten_shape(b, scores);
	if (causal) {
		Node i = aten_iota_dim(b, &s, s.rank - 2, DT_i64);
		Node seen = b_bin(b, OP_le, aten_iota_dim(b, &s, s.rank - 1, DT_i64), i);
		scores = b_select(b, seen, scores, low);
	}
	if (!mask.i)
		return scores;
	if (node_dtype(b->g, mask) == DT_bool)
		return b_select(b, mask, scores, low);
	return b_bin(b, OP_add, scores, b_convert(b, mask, aten_dtype(b, scores)));
}

/* Softmax over the last dim; a row without any finite score gives 0. *lse: log of the sum. */
static Node safe_softmax(Build *b, Node x, bool maskable, Node *lse)
{
	uint32_t dims = 1u << (aten_rank(b, x) - 1);
	Node high = aten_reduce(b, REDUCE_MAX, x, dims, true), none = {0};
	if (maskable) {
		none = b_bin_scalar(b, OP_eq, high, -(double)INFINITY);
		high = b_select(b, none, aten_like(b, high, 0), high);
	}
	Node e = b_un(b, OP_exp, b_bin(b, OP_sub, x, high));
	Node sum = aten_sum(b, e, dims, true);
	if (lse) {
		*lse = b_bin(b, OP_add, b_un(b, OP_log, sum), high);
		*lse = aten_squeeze_mask(b, *lse, dims);
	}
	/* An all-masked row is 0 / 1. */
	if (maskable)
		sum = b_select(b, none, aten_like(b, sum, 1), sum);
	return b_bin(b, OP_div, e, sum);
}

static bool drops(const Graph *g, Node n)
{
	return node_float(g, n, "dropout_p") != 0;
}

static Node attention(Build *b, Node n, Node mask, bool gqa, Node *lse)
{
	Node q = arg(b, n, "query"), k = arg(b, n, "key"), v = arg(b, n, "value");
	bool causal = node_bool(b->g, n, "is_causal");
	uint32_t rank = aten_rank(b, q);
	if (!q.i || !k.i || !v.i)
		return (Node){0};
	if (rank < 2 || node_rank(b->g, k) < 2 || node_rank(b->g, v) < 2)
		return b_error(b, "attention of operands of rank %u, %u and %u", rank,
			       node_rank(b->g, k), node_rank(b->g, v));
	Draw draw = {0};
	double dropout = node_float(b->g, n, "dropout_p");
	if (dropout != 0 && !draw_begin(b, n, &draw))
		return (Node){0};
	if (gqa && rank >= 3) {
		Sym heads = b_dim(b, q, (int)rank - 3);
		k = repeat_heads(b, k, sym_floordiv(b_syms(b), heads, b_dim(b, k, (int)rank - 3)));
		v = repeat_heads(b, v, sym_floordiv(b_syms(b), heads, b_dim(b, v, (int)rank - 3)));
	}
	DType d = node_dtype(b->g, q);
	/* Scores of f16 may be larger than its numbers. */
	Node scores = b_matmul_wide(b, q, b_transpose(b, k, -2, -1));
	if (aten_has(b, n, "scale")) {
		double scale = node_float(b->g, n, "scale");
		scores = scale == 1 ? scores : b_bin_scalar(b, OP_mul, scores, scale);
	} else {
		int64_t width;
		Sym dim = b_dim(b, q, -1);
		if (sym_is_const(b_syms(b), dim, &width))
			scores = b_bin_scalar(b, OP_mul, scores, 1 / sqrt((double)width));
		else
			scores = b_bin(b, OP_mul, scores,
				       b_un(b, OP_rsqrt, aten_size(b, dim, DT_f32)));
	}
	scores = masked(b, scores, mask, causal);
	Node p = safe_softmax(b, scores, mask.i != 0, lse);
	if (dropout != 0)
		p = draw_dropout(b, &draw, p, dropout, 0);
	return p.i ? b_matmul(b, b_convert(b, p, d), v) : p;
}

static Node build_sdpa(Build *b, Node n)
{
	return attention(b, n, arg(b, n, "attn_mask"), node_bool(b->g, n, "enable_gqa"), NULL);
}
OP(aten_scaled_dot_product_attention){
	.schema = "aten.scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
		  "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? "
		  "scale=None, bool enable_gqa=False, " RANDOM_ARGS ") -> Tensor",
	.draws = drops,
	.build = build_sdpa,
	.level = LEVEL_DECOMPOSE,
	.sample = "f32[n=2, 2, m=3, 4], f32[n, 2, k=5, 4], f32[n, 2, k, 3]; "
		  "f32[1, 2, m=4, 4], f32[1, 2, m, 4], f32[1, 2, m, 3], is_causal=true, scale=0.75; "
		  "f32[1, 2, 3, 4], f32[1, 2, 5, 4], f32[1, 2, 5, 3], bool[3, 5] of 1 0 1 1 0 0 1; "
		  "f32[1, 4, 3, 4], f32[1, 2, 5, 4], f32[1, 2, 5, 3], f32[3, 5], enable_gqa=true",
};

/* (output, logsumexp) */
static Node build_sdpa_flash(Build *b, Node n)
{
	Node lse, y = attention(b, n, arg(b, n, "attn_mask"), false, &lse);
	return y.i ? b_tuple(b, (Node[]){y, lse}, 2) : y;
}
OP(aten__scaled_dot_product_flash_attention_for_cpu){
	.schema = "aten._scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, "
		  "Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? "
		  "attn_mask=None, float? scale=None, " RANDOM_ARGS ") -> (Tensor output, Tensor logsumexp)",
	.draws = drops,
	.build = build_sdpa_flash,
	.sample = "f32[n=2, 2, m=3, 4], f32[n, 2, k=5, 4], f32[n, 2, k, 4]; "
		  "f32[1, 2, 4, 4], f32[1, 2, 4, 4], f32[1, 2, 4, 4], is_causal=true; "
		  "f32[1, 2, 3, 4], f32[1, 2, 5, 4], f32[1, 2, 5, 4], f32[3, 5], scale=0.75",
};
