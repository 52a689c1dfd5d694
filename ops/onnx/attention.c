/* Attention and what stands around it in language models. */
#include "ops/onnx/priv.h"

#include <math.h>

static int64_t int_arg(Build *b, Node n, const char *name)
{
	return aten_int_or(b, n, name, 0);
}

Node onnx_heads(Build *b, Node x, int64_t count)
{
	if (!x.i || node_rank(b->g, x) == 4)
		return x;
	if (node_rank(b->g, x) != 3 || count < 1)
		return b_error(b, "an operand of rank %u in %lld heads, expected rank 3 or 4",
			       node_rank(b->g, x), (long long)count);
	aten_require_multiple(b, b_dim(b, x, 2), count,
			      "the hidden size is no multiple of the number of heads");
	Sym dim[] = {b_dim(b, x, 0), b_dim(b, x, 1), b_int(b, count),
		     sym_divi(b_syms(b), b_dim(b, x, 2), count)};
	return b_transpose(b, b_reshape(b, x, 4, dim), 1, 2);
}

Node onnx_merged_heads(Build *b, Node y)
{
	y = b_transpose(b, y, 1, 2);
	return aten_flatten(b, y, 2, 3);
}

Node onnx_repeated_heads(Build *b, Node x, int64_t times)
{
	if (!x.i || times == 1)
		return x;
	Shape s = shape_insert(aten_shape(b, x), 2, b_int(b, times));
	return aten_flatten(b, aten_expand_shape(b, b_unsqueeze(b, x, 2), &s), 1, 2);
}

/* ---- masks ---- */

static Node minus_infinity(Build *b, Node allowed, DType d)
{
	return b_select(b, allowed, b_scalar(b, d, 0), b_scalar(b, d, -(double)INFINITY));
}

/* Turns a bool mask into one that is added; one for fewer keys is filled up. */
static Node mask_bias(Build *b, Node mask, Sym keys, DType d)
{
	uint32_t rank = aten_rank(b, mask);
	Sym low[MAX_RANK], high[MAX_RANK];
	if (!mask.i)
		return mask;
	if (!rank)
		return b_error(b, "attn_mask has no dimensions");
	if (node_dtype(b->g, mask) == DT_bool)
		mask = minus_infinity(b, mask, d);
	for (uint32_t k = 0; k < rank; k++)
		low[k] = high[k] = b_int(b, 0);
	high[rank - 1] = sym_sub(b_syms(b), keys, b_dim(b, mask, -1));
	if (sym_is(b_syms(b), b_dim(b, mask, -1), 1) || sym_is(b_syms(b), high[rank - 1], 0))
		return b_convert(b, mask, d);
	return b_convert(b, b_pad(b, mask, low, high, b_scalar(b, d, -(double)INFINITY)), d);
}

/* Returns the place of each query among the keys, i64 [S, 1] or [B, 1, S, 1]. */
static Node query_places(Build *b, Node n, Sym queries, Sym past)
{
	Node place = b_unsqueeze(b, b_iota(b, DT_i64, queries), 1),
	     filled = arg(b, n, "nonpad_kv_seqlen");
	if (!filled.i || arg(b, n, "past_key").i)
		return b_bin(b, OP_add, place, aten_size(b, past, DT_i64));
	Node first = b_bin(b, OP_sub, b_convert(b, filled, DT_i64), aten_size(b, queries, DT_i64));
	first = b_reshape(b, first, 4,
			  (Sym[]){type_numel(b->g->ir, node_type_id(b->g, first)), b_int(b, 1),
				  b_int(b, 1), b_int(b, 1)});
	return b_bin(b, OP_add, place, first);
}

static Node both(Build *b, Node x, Node y)
{
	return x.i && y.i ? onnx_call(b, "aten.logical_and", (Node[]){x, y}, 2, NULL, 0)
	       : x.i      ? x
			  : y;
}

/* Tells which keys each query may see; no node: all. */
static Node allowed_keys(Build *b, Node n, Sym queries, Sym keys, Sym past)
{
	Node place = query_places(b, n, queries, past), key = b_iota(b, DT_i64, keys), ok = {0},
	     filled = arg(b, n, "nonpad_kv_seqlen");
	bool windows = op_arg_index(node_op(b->g, n), "left_window_size") >= 0;
	int64_t left = windows ? aten_int(b, n, "left_window_size") : -1,
		right = windows ? aten_int(b, n, "right_window_size") : -1;
	Node ahead = b_bin(b, OP_sub, key, place); /* of the query */
	if (node_bool(b->g, n, "is_causal"))
		ok = b_bin_scalar(b, OP_le, ahead, 0);
	if (left >= 0)
		ok = both(b, ok, b_bin_scalar(b, OP_ge, ahead, -(double)left));
	if (right >= 0)
		ok = both(b, ok, b_bin_scalar(b, OP_le, ahead, (double)right));
	if (filled.i) {
		Sym dim[] = {type_numel(b->g->ir, node_type_id(b->g, filled)), b_int(b, 1),
			     b_int(b, 1), b_int(b, 1)};
		ok = both(b, ok,
			  b_bin(b, OP_lt, key, b_reshape(b, b_convert(b, filled, DT_i64), 4, dim)));
	}
	return ok;
}

/* ---- attention ---- */

/* Returns the softmax of the scores; rows in which no key is allowed are zeros. */
static Node probabilities(Build *b, Node score, Node bias, DType precision)
{
	uint32_t last = aten_rank(b, score) - 1;
	DType d = aten_dtype(b, score);
	if (bias.i)
		score = b_bin(b, OP_add, score, bias);
	Node p = aten_softmax(b, precision ? b_convert(b, score, precision) : score, last);
	if (!bias.i)
		return b_convert(b, p, d);
	Node most = aten_reduce(b, REDUCE_MAX, bias, 1u << (aten_rank(b, bias) - 1), true);
	Node none = b_bin_scalar(b, OP_eq, most, -(double)INFINITY);
	return b_convert(b, b_select(b, none, aten_like(b, p, 0), p), d);
}

/* Scales the scores: by the attribute, or by 1 / sqrt(size of a head). */
static Node scaled(Build *b, Node n, Node score, Sym size)
{
	int64_t width;
	if (aten_has(b, n, "scale"))
		return b_bin_scalar(b, OP_mul, score, node_float(b->g, n, "scale"));
	if (sym_is_const(b_syms(b), size, &width))
		return b_bin_scalar(b, OP_mul, score, 1 / sqrt((double)width));
	return b_bin(b, OP_mul, score, b_un(b, OP_rsqrt, aten_size(b, size, aten_dtype(b, score))));
}

static Node build_attention(Build *b, Node n)
{
	Node q = arg(b, n, "Q"), k = arg(b, n, "K"), v = arg(b, n, "V"),
	     past_k = arg(b, n, "past_key"), past_v = arg(b, n, "past_value");
	bool flat = aten_rank(b, q) == 3;
	DType precision = aten_dtype_or(b, n, "softmax_precision", DT_none);
	int64_t nq, nkv;
	q = onnx_heads(b, q, int_arg(b, n, "q_num_heads"));
	k = onnx_heads(b, k, int_arg(b, n, "kv_num_heads"));
	v = onnx_heads(b, v, int_arg(b, n, "kv_num_heads"));
	if (!q.i || !k.i || !v.i)
		return (Node){0};
	DType d = node_dtype(b->g, q);
	if (past_k.i)
		k = b_concat(b, (Node[]){past_k, k}, 2, 2);
	if (past_v.i)
		v = b_concat(b, (Node[]){past_v, v}, 2, 2);
	Node present_k = k, present_v = v;
	if (!aten_const(b, b_dim(b, q, 1), &nq) || !aten_const(b, b_dim(b, k, 1), &nkv) || !nkv ||
	    nq % nkv)
		return b_error(b, "the number of heads of Q is no multiple of those of K and V");
	k = onnx_repeated_heads(b, k, nq / nkv);
	v = onnx_repeated_heads(b, v, nq / nkv);
	Sym keys = b_dim(b, k, 2), queries = b_dim(b, q, 2);
	Node score = scaled(b, n, b_matmul_wide(b, q, b_transpose(b, k, 2, 3)), b_dim(b, q, 3)),
	     raw = score;
	DType wide = aten_dtype(b, score);
	double cap = node_float(b->g, n, "softcap");
	if (cap > 0)
		score = b_bin_scalar(b, OP_mul,
				     b_un(b, OP_tanh, b_bin_scalar(b, OP_div, score, cap)), cap);
	Node capped = score, bias = mask_bias(b, arg(b, n, "attn_mask"), keys, wide);
	if (arg(b, n, "attn_mask").i && !bias.i)
		return bias;
	Node allowed =
		allowed_keys(b, n, queries, keys, past_k.i ? b_dim(b, past_k, 2) : b_int(b, 0));
	if (allowed.i) {
		allowed = minus_infinity(b, allowed, wide);
		bias = bias.i ? b_bin(b, OP_add, bias, allowed) : allowed;
	}
	Node p = probabilities(b, score, bias, precision), y = b_matmul(b, b_convert(b, p, d), v);
	if (flat)
		y = onnx_merged_heads(b, y);
	if (aten_int(b, n, "outputs") < 4)
		return b_tuple(b, (Node[]){y, present_k, present_v}, 3);
	int64_t mode = aten_int(b, n, "qk_matmul_output_mode");
	Node shown = mode == 0   ? raw
		     : mode == 1 ? capped
		     : mode == 2 ? (bias.i ? b_bin(b, OP_add, capped, bias) : capped)
				 : p;
	return b_tuple(b, (Node[]){y, present_k, present_v, b_convert(b, shown, d)}, 4);
}

OP(onnx_Attention_23){
	.schema = "onnx.Attention.23(Tensor Q, Tensor K, Tensor V, Tensor? attn_mask, Tensor? "
		  "past_key, Tensor? past_value, Tensor? nonpad_kv_seqlen, *, "
		  "bool is_causal=False, int? kv_num_heads=None, int? q_num_heads=None, "
		  "int qk_matmul_output_mode=0, float? scale=None, "
		  "float softcap=0.0, ScalarType? softmax_precision=None, int left_window_size=-1, "
		  "int right_window_size=-1, int outputs) -> Tensor[]",
	.autocast = AUTOCAST_LOW,
	.build = build_attention,
	.no_sample = NODE_TESTS,
};

/* ---- rotary embedding ---- */

static Node build_rotary(Build *b, Node n)
{
	Node x = arg(b, n, "X"), cache[2] = {arg(b, n, "cos_cache"), arg(b, n, "sin_cache")},
	     at = arg(b, n, "position_ids");
	SymTab *t = b_syms(b);
	bool flat = aten_rank(b, x) == 3, pairs = node_bool(b->g, n, "interleaved");
	if (!x.i || !(x = onnx_heads(b, x, int_arg(b, n, "num_heads"))).i)
		return (Node){0};
	int64_t turned = int_arg(b, n, "rotary_embedding_dim");
	Sym size = b_dim(b, x, 3), n_turned = turned ? b_int(b, turned) : size,
	    half = sym_divi(t, n_turned, 2), zero = b_int(b, 0), one = b_int(b, 1);
	for (int k = 0; k < 2; k++) {
		if (at.i)
			cache[k] = aten_take_dim(b, cache[k], 0, at, "check");
		cache[k] = b_unsqueeze(b, cache[k], 1); /* [B, 1, S, half] */
	}
	Node r = b_slice(b, x, 3, zero, n_turned, one),
	     rest = b_slice(b, x, 3, n_turned, size, one), y;
	Node x1 = pairs ? b_slice(b, r, 3, zero, n_turned, b_int(b, 2))
			: b_slice(b, r, 3, zero, half, one);
	Node x2 = pairs ? b_slice(b, r, 3, one, n_turned, b_int(b, 2))
			: b_slice(b, r, 3, half, n_turned, one);
	Node re = b_bin(b, OP_sub, b_bin(b, OP_mul, cache[0], x1), b_bin(b, OP_mul, cache[1], x2));
	Node im = b_bin(b, OP_add, b_bin(b, OP_mul, cache[1], x1), b_bin(b, OP_mul, cache[0], x2));
	y = pairs ? aten_flatten(b, aten_stack(b, (Node[]){re, im}, 2, 4), 3, 4)
		  : b_concat(b, (Node[]){re, im}, 2, 3);
	if (turned)
		y = b_concat(b, (Node[]){y, rest}, 2, 3);
	return flat ? onnx_merged_heads(b, y) : y;
}

OP(onnx_RotaryEmbedding_23){
	.schema = "onnx.RotaryEmbedding.23(Tensor X, Tensor cos_cache, Tensor sin_cache, Tensor? "
		  "position_ids, *, bool interleaved=False, int num_heads=0, "
		  "int rotary_embedding_dim=0) -> Tensor",
	.build = build_rotary,
	.no_sample = NODE_TESTS,
};

/* ---- caches ---- */

/* Puts the update into the cache from write_indices of its batch on; circular: modulo the
 * length. */
static Node build_tensor_scatter(Build *b, Node n)
{
	Node cache = arg(b, n, "past_cache"), update = arg(b, n, "update"),
	     first = arg(b, n, "write_indices");
	uint32_t axis = onnx_axis(b, n, "axis", cache);
	if (!cache.i || !update.i || !axis || !aten_check_word(b, n, "mode", "linear circular"))
		return cache.i && !axis ? b_error(b, "axis 0 is the batch") : (Node){0};
	if (aten_rank(b, update) != aten_rank(b, cache))
		return b_error(b, "update has %u dimensions, and past_cache %u",
			       aten_rank(b, update), aten_rank(b, cache));
	Shape s = aten_shape(b, update);
	Node at = aten_iota_dim(b, &s, axis, DT_i64);
	if (first.i)
		at = b_bin(b, OP_add, at, aten_per_dim(b, b_convert(b, first, DT_i64), update, 0));
	if (aten_is(b, n, "mode", "circular"))
		at = b_bin(b, OP_remainder, at, aten_size(b, b_dim(b, cache, (int)axis), DT_i64));
	Attr attr[] = {attr_none(), attr_int(b->g->ir, axis), attr_none(), attr_none()};
	return onnx_call(b, "aten.scatter.src", (Node[]){cache, at, update}, 3, attr, 4);
}

OP(onnx_TensorScatter_24){
	.schema = "onnx.TensorScatter.24(Tensor past_cache, Tensor update, Tensor? write_indices, "
		  "*, int axis=-2, str mode=\"linear\") -> Tensor",
	.build = build_tensor_scatter,
	.no_sample = NODE_TESTS,
};

OP(onnx_SwiGLU_28){
	.schema = "onnx.SwiGLU.28(Tensor A, Tensor B, *, float alpha=1.0) -> Tensor",
	.expand = "A * sigmoid(A * alpha) * B",
	.no_sample = NODE_TESTS,
};
