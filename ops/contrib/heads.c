/* MultiHeadAttention, DecoderMaskedMultiHeadAttention and GroupQueryAttention. */
#include "ops/contrib/priv.h"

#include <math.h>

/* ---- MultiHeadAttention ---- */

typedef struct {
	Node part[3]; /* Q, K, V: [B, heads, length, size] */
} HeadParts;

/* Returns a part of merged ones, x[B, S, heads, count, D]. */
static Node of_merged(Build *b, Node x, int64_t k)
{
	return b_transpose(b, b_select_dim(b, x, 3, b_int(b, k)), 1, 2);
}

/* Returns a part in heads, with its share of the bias. */
static Node in_heads(Build *b, Node x, Node bias, Sym from, int64_t heads)
{
	if (!x.i || node_rank(b->g, x) == 4)
		return x;
	if (bias.i)
		x = b_bin(b, OP_add, x,
			  b_slice(b, bias, 0, from, sym_add(b_syms(b), from, b_dim(b, x, -1)),
				  b_int(b, 1)));
	return contrib_heads(b, x, heads);
}

static bool read_parts(Build *b, Node n, int64_t heads, HeadParts *p)
{
	Node q = arg(b, n, "query"), k = arg(b, n, "key"), v = arg(b, n, "value"),
	     bias = arg(b, n, "bias");
	bool ok = q.i && (k.i || node_rank(b->g, q) != 4) && (!bias.i || node_rank(b->g, q) == 3);
	if (!ok) {
		b_error(b, "query of rank %u with the other operands is not supported",
			aten_rank(b, q));
		return false;
	}
	if (node_rank(b->g, q) == 5) {
		for (int64_t j = 0; j < 3; j++)
			p->part[j] = of_merged(b, q, j);
	} else if (!k.i) { /* one behind the other */
		Sym third = sym_divi(b_syms(b), b_dim(b, q, 2), 3), from = b_int(b, 0);
		for (int j = 0; j < 3; j++, from = sym_add(b_syms(b), from, third))
			p->part[j] = in_heads(b,
					      b_slice(b, q, 2, from,
						      sym_add(b_syms(b), from, third), b_int(b, 1)),
					      bias, from, heads);
	} else {
		Sym size = b_dim(b, q, 2);
		p->part[0] = in_heads(b, q, bias, b_int(b, 0), heads);
		p->part[1] = node_rank(b->g, k) == 5 ? of_merged(b, k, 0)
						     : in_heads(b, k, bias, size, heads);
		p->part[2] = node_rank(b->g, k) == 5
				     ? of_merged(b, k, 1)
				     : in_heads(b, v, bias, sym_muli(b_syms(b), size, 2), heads);
	}
	return p->part[0].i && p->part[1].i && p->part[2].i;
}

static Node multi_head(Build *b, Node n, const char *mask_name, bool causal)
{
	int64_t heads = aten_int(b, n, "num_heads");
	Node past[2] = {arg(b, n, "past_key"), arg(b, n, "past_value")},
	     mask = arg(b, n, mask_name), bias = arg(b, n, "attention_bias"), score;
	double filter = node_float(b->g, n, "mask_filter_value");
	HeadParts p;
	if (arg(b, n, "past_sequence_length").i || arg(b, n, "cache_indirection").i)
		return b_error(b, "buffers that past and present share are not supported");
	if (!read_parts(b, n, heads, &p))
		return (Node){0};
	Sym before = past[0].i ? b_dim(b, past[0], 2) : b_int(b, 0);
	for (int k = 0; k < 2; k++)
		if (past[k].i)
			p.part[k + 1] = b_concat(b, (Node[]){past[k], p.part[k + 1]}, 2, 2);
	Sym keys = b_dim(b, p.part[1], 2);
	mask = contrib_mask(b, mask, b_dim(b, p.part[0], 0), keys, filter);
	if (mask.i)
		bias = bias.i ? b_bin(b, OP_add, mask, bias) : mask;
	if (causal) {
		Node c = contrib_causal(b, b_dim(b, p.part[0], 2), keys, before, filter);
		bias = bias.i ? b_bin(b, OP_add, bias, c) : c;
	}
	ContribAttention a = {.q = p.part[0],
			      .k = p.part[1],
			      .v = p.part[2],
			      .bias = bias,
			      .scale = contrib_scale(b, n, p.part[0])};
	Node y = onnx_merged_heads(b, contrib_attend(b, &a, &score));
	return y.i ? b_tuple(b, (Node[]){y, p.part[1], p.part[2], score}, 4) : y;
}

static Node build_multi_head(Build *b, Node n)
{
	return multi_head(b, n, "key_padding_mask", node_bool(b->g, n, "unidirectional"));
}

static Node build_decoder(Build *b, Node n)
{
	if (aten_int(b, n, "past_present_share_buffer") || arg(b, n, "beam_width").i)
		return b_error(b,
			       "buffers that past and present share, and beams, are not supported");
	return multi_head(b, n, "mask_index", false);
}

OP(com_microsoft_MultiHeadAttention_1){
	.schema = "com_microsoft.MultiHeadAttention.1(Tensor query, Tensor? key, Tensor? value, "
		  "Tensor? bias, Tensor? key_padding_mask, Tensor? attention_bias, "
		  "Tensor? past_key, Tensor? past_value, Tensor? past_sequence_length, "
		  "Tensor? cache_indirection, *, int num_heads, float mask_filter_value=-10000.0, "
		  "float scale=0.0, bool unidirectional=False) -> (Tensor, Tensor, Tensor, Tensor)",
	.autocast = AUTOCAST_LOW,
	.build = build_multi_head,
	.no_sample = CONTRIB_CASES,
};
OP(com_microsoft_DecoderMaskedMultiHeadAttention_1){
	.schema = "com_microsoft.DecoderMaskedMultiHeadAttention.1(Tensor query, Tensor? key, "
		  "Tensor? value, Tensor? mask_index, Tensor? attention_bias, "
		  "Tensor? past_key, Tensor? past_value, Tensor? past_sequence_length, "
		  "Tensor? beam_width, Tensor? cache_indirection, Tensor? bias, *, "
		  "int num_heads, float mask_filter_value=-10000.0, int output_qk=0, "
		  "int past_present_share_buffer=0, float scale=0.0) -> (Tensor, Tensor, Tensor, "
		  "Tensor)",
	.autocast = AUTOCAST_LOW,
	.build = build_decoder,
	.no_sample = CONTRIB_CASES,
};

/* ---- GroupQueryAttention ---- */

typedef struct {
	Node q, k, v;       /* [B, H, S, D], [B, KV heads, S, D] twice */
	Node before;        /* i64[B]: keys before the first new one */
	Sym queries, total; /* S, and the length of the state */
	int64_t heads, kv;
} Grouped;

static Node norm_heads(Build *b, Node x, Node weight, double epsilon)
{
	return weight.i ? contrib_layer_norm(b, x, weight, (Node){0}, epsilon, true, NULL, NULL)
			: x;
}

static double float_or(Build *b, Node n, const char *name, double otherwise)
{
	return aten_has(b, n, name) ? node_float(b->g, n, name) : otherwise;
}

/* Reads Q, K and V, [B, S, heads of Q and of K and V] one behind the other if there is no key.
 * Returns false after b_error. */
static bool read_grouped(Build *b, Node n, Grouped *a)
{
	Node q = arg(b, n, "query"), k = arg(b, n, "key"), v = arg(b, n, "value");
	a->heads = aten_int(b, n, "num_heads");
	a->kv = aten_int(b, n, "kv_num_heads");
	bool ok = aten_rank(b, q) == 3 && a->heads > 0 && a->kv > 0 && a->heads % a->kv == 0;
	if (!ok) {
		b_error(b, "query of rank %u with %lld heads, of %lld keys", aten_rank(b, q),
			(long long)a->heads, (long long)a->kv);
		return false;
	}
	if (!k.i) {
		SymTab *t = b_syms(b);
		Sym all = b_dim(b, q, 2), one = sym_divi(t, all, a->heads + 2 * a->kv),
		    to_k = sym_muli(t, one, a->heads), to_v = sym_muli(t, one, a->heads + a->kv);
		k = b_slice(b, q, 2, to_k, to_v, b_int(b, 1));
		v = b_slice(b, q, 2, to_v, all, b_int(b, 1));
		q = b_slice(b, q, 2, b_int(b, 0), to_k, b_int(b, 1));
	}
	double epsilon = node_float(b->g, n, "qk_norm_epsilon");
	a->q = norm_heads(b, contrib_heads(b, q, a->heads), arg(b, n, "q_norm_weight"),
			  float_or(b, n, "q_norm_epsilon", epsilon));
	a->k = norm_heads(b, contrib_heads(b, k, a->kv), arg(b, n, "k_norm_weight"),
			  float_or(b, n, "k_norm_epsilon", epsilon));
	a->v = contrib_heads(b, v, a->kv);
	return a->q.i && a->k.i && a->v.i;
}

/* Reads where new keys begin: behind the ones that the batch element has; at 0 if the call is
 * the first one, whose queries are all keys. */
static void read_lengths(Build *b, Node n, Grouped *a)
{
	SymTab *t = b_syms(b);
	Node past = arg(b, n, "past_key"), last = b_convert(b, arg(b, n, "seqlens_k"), DT_i64);
	Sym total = node_sym(b->g, n, "total_sequence_length");
	a->queries = b_dim(b, a->q, 2);
	a->total = past.i ? sym_max(t, b_dim(b, past, 2), total) : total;
	Node count = b_bin_scalar(b, OP_add, b_reshape(b, last, 1, (Sym[]){b_dim(b, a->q, 0)}), 1);
	a->before = b_bin(b, OP_sub, count, aten_size(b, a->queries, DT_i64));
	Node first = b_bin(b, OP_eq, aten_size(b, total, DT_i64), aten_size(b, a->queries, DT_i64));
	a->before = b_select(b, first, aten_like(b, a->before, 0), a->before);
}

/* Returns [B, S]: the places of the queries. */
static Node places(Build *b, const Grouped *a)
{
	return b_bin(b, OP_add, b_unsqueeze(b, a->before, 1), b_iota(b, DT_i64, a->queries));
}

static void turn(Build *b, Node n, Grouped *a)
{
	Node at = arg(b, n, "position_ids");
	if (!node_bool(b->g, n, "do_rotary"))
		return;
	Shape s = {2, {b_dim(b, a->q, 0), a->queries}};
	at = at.i ? aten_expand_shape(b, b_convert(b, at, DT_i64), &s)
		  : b_bin_scalar(b, OP_maximum, places(b, a), 0);
	Node cos = arg(b, n, "cos_cache"), sin = arg(b, n, "sin_cache"), *x[] = {&a->q, &a->k};
	int64_t half, size;
	bool part = cos.i && aten_const(b, b_dim(b, cos, 1), &half) &&
		    aten_const(b, b_dim(b, a->q, 3), &size) && 2 * half != size;
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_none(),
		       attr_none(),
		       *node_attr(b->g, n, "rotary_interleaved"),
		       attr_int(b->g->ir, 0),
		       attr_int(b->g->ir, part ? 2 * half : 0)};
	for (int k = 0; k < 2; k++)
		*x[k] = cos.i ? onnx_call(b, "onnx.RotaryEmbedding.23",
					  (Node[]){*x[k], cos, sin, at}, 4, attr, 7)
			      : b_error(b, "do_rotary without cos_cache");
}

/* Returns the state: new ones [B, heads, S, D] behind those before, and zeros behind these. */
static Node state(Build *b, const Grouped *a, Node past, Node fresh)
{
	/* among the new ones */
	Node at = b_bin(b, OP_sub, b_iota(b, DT_i64, a->total), b_unsqueeze(b, a->before, 1)),
	     zero = aten_like(b, at, 0);
	Node last = aten_size(b, sym_addi(b_syms(b), a->queries, -1), DT_i64);
	Node index = b_bin(b, OP_minimum, b_bin(b, OP_maximum, at, zero), last);
	Node is_new = b_bin(b, OP_ge, at, zero);
	/* [B, T, heads, D] */
	index = b_unsqueeze(b, index, -1);
	Node v = b_gather(b, b_transpose(b, fresh, 1, 2), index, 1, (uint32_t[]){1}, 1, "promise");
	v = b_transpose(b, v, 1, 2);
	Node old = aten_like(b, v, 0);
	if (past.i) {
		Sym high[] = {b_int(b, 0), b_int(b, 0),
			      sym_sub(b_syms(b), a->total, b_dim(b, past, 2)), b_int(b, 0)},
		    low[] = {b_int(b, 0), b_int(b, 0), b_int(b, 0), b_int(b, 0)};
		old = b_pad(b, past, low, high, b_scalar(b, node_dtype(b->g, past), 0));
	}
	Node behind = b_unsqueeze(b, b_unsqueeze(b, b_bin(b, OP_gt, at, last), 1), -1);
	v = b_select(b, b_unsqueeze(b, b_unsqueeze(b, is_new, 1), -1), v, old);
	return b_select(b, behind, aten_like(b, v, 0), v);
}

/* Returns [B, 1, S, T]: minus infinity for keys that a query does not see, else 0. */
static Node window(Build *b, Node n, const Grouped *a)
{
	int64_t size = aten_int(b, n, "local_window_size");
	Node key = b_iota(b, DT_i64, a->total), place = b_unsqueeze(b, places(b, a), -1), hidden;
	if (node_bool(b->g, n, "causal"))
		hidden = b_bin(b, OP_gt, key, place);
	else
		hidden = b_bin(b, OP_ge, key,
			       b_unsqueeze(b,
					   b_unsqueeze(b,
						       b_bin(b, OP_add, a->before,
							     aten_size(b, a->queries, DT_i64)),
						       1),
					   1));
	if (size >= 0)
		hidden = b_bin(b, OP_bit_or, hidden,
			       b_bin(b, OP_le, key, b_bin_scalar(b, OP_sub, place, (double)size)));
	return b_unsqueeze(
		b,
		b_select(b, hidden, b_scalar(b, DT_f32, -(double)INFINITY), b_scalar(b, DT_f32, 0)),
		1);
}

static bool check_grouped(Build *b, Node n)
{
	bool quantised = aten_int(b, n, "kv_cache_bit_width") ||
			 !aten_is(b, n, "k_quant_type", "NONE") ||
			 !aten_is(b, n, "v_quant_type", "NONE");
	bool other = aten_int(b, n, "qk_output") || aten_int(b, n, "sliding_window_cache") ||
		     arg(b, n, "query_seqlens").i;
	if (quantised || other)
		b_error(b, "%s is not supported",
			quantised ? "a quantised state"
				  : "qk_output, sliding_window_cache or query_seqlens");
	return !quantised && !other;
}

static Node build_grouped(Build *b, Node n)
{
	Grouped a;
	Node bias = arg(b, n, "attention_bias"), sink = arg(b, n, "head_sink");
	if (!check_grouped(b, n) || !read_grouped(b, n, &a))
		return (Node){0};
	read_lengths(b, n, &a);
	turn(b, n, &a);
	Node k = state(b, &a, arg(b, n, "past_key"), a.k),
	     v = state(b, &a, arg(b, n, "past_value"), a.v), mask = window(b, n, &a);
	if (aten_int(b, n, "smooth_softmax") == 1 && !sink.i)
		sink = b_full(b, DT_f32, 0, 1, (Sym[]){b_int(b, a.heads)});
	ContribAttention at = {.q = a.q,
			       .k = onnx_repeated_heads(b, k, a.heads / a.kv),
			       .v = onnx_repeated_heads(b, v, a.heads / a.kv),
			       .bias = bias.i ? b_bin(b, OP_add, mask, bias) : mask,
			       .sink = sink,
			       .scale = contrib_scale(b, n, a.q),
			       .softcap = node_float(b->g, n, "softcap")};
	Node y = onnx_merged_heads(b, contrib_attend(b, &at, NULL));
	return y.i ? b_tuple(b, (Node[]){y, k, v}, 3) : y;
}

OP(com_microsoft_GroupQueryAttention_1){
	.schema = "com_microsoft.GroupQueryAttention.1(Tensor query, Tensor? key, Tensor? value, "
		  "Tensor? past_key, Tensor? past_value, Tensor seqlens_k, "
		  "SymInt total_sequence_length, Tensor? cos_cache, Tensor? sin_cache, "
		  "Tensor? position_ids, Tensor? attention_bias, Tensor? head_sink, "
		  "Tensor? k_scale, Tensor? v_scale, Tensor? q_norm_weight, Tensor? k_norm_weight, "
		  "Tensor? query_seqlens, *, int num_heads, int kv_num_heads, "
		  "bool causal=True, bool do_rotary=False, float? k_norm_epsilon=None, "
		  "str k_quant_type=\"NONE\", int kv_cache_bit_width=0, "
		  "int local_window_size=-1, float? q_norm_epsilon=None, int qk_output=0, "
		  "float qk_norm_epsilon=1e-06, bool rotary_interleaved=False, "
		  "float scale=0.0, int sliding_window_cache=0, int smooth_softmax=-1, "
		  "float softcap=0.0, str v_quant_type=\"NONE\") -> (Tensor, Tensor, Tensor)",
	.autocast = AUTOCAST_LOW,
	.build = build_grouped,
	.no_sample = CONTRIB_CASES,
};
