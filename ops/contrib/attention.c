/* What the operators of attention share, Attention and QAttention, and rotary embedding. */
#include "ops/contrib/priv.h"

#include <math.h>

/* ---- shared ---- */

Node contrib_heads(Build *b, Node x, int64_t heads)
{
	if (x.i && (node_rank(b->g, x) != 3 || heads < 1))
		return b_error(b, "an operand of rank %u in %lld heads, expected rank 3",
			       node_rank(b->g, x), (long long)heads);
	return onnx_heads(b, x, heads);
}

Node contrib_scale(Build *b, Node n, Node q)
{
	double scale = node_float(b->g, n, "scale");
	return scale != 0 ? b_scalar(b, DT_f32, scale)
			  : b_un(b, OP_rsqrt, aten_size(b, b_dim(b, q, -1), DT_f32));
}

Node contrib_mask(Build *b, Node mask, Sym batch, Sym keys, double filter)
{
	SymTab *t = b_syms(b);
	uint32_t rank = aten_rank(b, mask);
	if (!mask.i)
		return mask;
	Node out;
	if (rank == 1) {
		Node key = b_iota(b, DT_i64, keys), end = b_convert(b, mask, DT_i64), begin = {0};
		Sym n = b_dim(b, mask, 0);
		bool both =
			sym_eq(t, n, batch) != YES && sym_eq(t, n, sym_muli(t, batch, 2)) == YES;
		if (!both)
			aten_require_equal(b, n, batch,
					   "the ends of masks are not one for each batch element");
		if (both) {
			begin = b_slice(b, end, 0, batch, n, b_int(b, 1));
			end = b_slice(b, end, 0, b_int(b, 0), batch, b_int(b, 1));
		}
		out = b_bin(b, OP_ge, key, b_unsqueeze(b, end, 1));
		if (both)
			out = b_bin(b, OP_bit_or, out,
				    b_bin(b, OP_lt, key, b_unsqueeze(b, begin, 1)));
		rank = 2;
	} else if (rank == 2 || rank == 3) {
		out = b_bin_scalar(b, OP_eq, mask, 0);
	} else {
		return b_error(b, "a mask of rank %u, expected 1, 2 or 3", rank);
	}
	out = b_unsqueeze(b, rank == 2 ? b_unsqueeze(b, out, 1) : out, 1); /* [B, 1, S, T] */
	return b_select(b, out, b_scalar(b, DT_f32, filter), b_scalar(b, DT_f32, 0));
}

Node contrib_causal(Build *b, Sym queries, Sym keys, Sym past, double filter)
{
	Node place = b_bin(b, OP_add, b_unsqueeze(b, b_iota(b, DT_i64, queries), 1),
			   aten_size(b, past, DT_i64));
	return b_select(b, b_bin(b, OP_gt, b_iota(b, DT_i64, keys), place),
			b_scalar(b, DT_f32, filter), b_scalar(b, DT_f32, 0));
}

Node contrib_attend(Build *b, const ContribAttention *a, Node *score)
{
	if (!a->q.i || !a->k.i || !a->v.i)
		return (Node){0};
	DType d = node_dtype(b->g, a->q);
	Node s = b_bin(b, OP_mul, b_matmul_wide(b, a->q, b_transpose(b, a->k, 2, 3)), a->scale);
	if (a->softcap > 0)
		s = b_bin_scalar(b, OP_mul,
				 b_un(b, OP_tanh, b_bin_scalar(b, OP_div, s, a->softcap)),
				 a->softcap);
	if (a->bias.i)
		s = b_bin(b, OP_add, s, aten_wide(b, a->bias));
	Sym keys = b_dim(b, a->k, 2);
	if (a->sink.i) {
		Shape one = aten_shape(b, s);
		one.dim[3] = b_int(b, 1);
		Node sink = b_unsqueeze(b, b_unsqueeze(b, aten_wide(b, a->sink), -1), -1);
		s = b_concat(b, (Node[]){s, aten_expand_shape(b, sink, &one)}, 2, 3);
	}
	s = aten_softmax(b, s, 3);
	if (a->sink.i)
		s = b_slice(b, s, 3, b_int(b, 0), keys, b_int(b, 1));
	s = b_convert(b, s, d);
	if (score)
		*score = s;
	return b_matmul(b, s, a->v);
}

/* ---- Attention ---- */

static Node plus(Build *b, Node x, Node y)
{
	return x.i && y.i ? b_bin(b, OP_add, x, y) : x.i ? x : y;
}

/* Computes, from the product of the input and the merged weights, x[B, S, sum of size], the
 * result and, where keys and values are of the same size, the state of both [2, B, H, T, D]. */
static Node attention_of(Build *b, Node n, Node x, const int64_t *size, Node bias)
{
	SymTab *t = b_syms(b);
	int64_t heads = aten_int(b, n, "num_heads"), at = 0;
	Node part[3], past = arg(b, n, "past"), mask = arg(b, n, "mask_index");
	double filter = node_float(b->g, n, "mask_filter_value");
	for (int k = 0; k < 3; at += size[k++])
		part[k] = contrib_heads(
			b, b_slice(b, x, 2, b_int(b, at), b_int(b, at + size[k]), b_int(b, 1)),
			heads);
	if (!part[0].i || !part[1].i || !part[2].i)
		return (Node){0};
	Sym before = past.i ? b_dim(b, past, 3) : b_int(b, 0);
	for (int k = 1; k < 3 && past.i; k++)
		part[k] = b_concat(b, (Node[]){b_select_dim(b, past, 0, b_int(b, k - 1)), part[k]},
				   2, 2);
	Sym keys = b_dim(b, part[1], 2), queries = b_dim(b, part[0], 2);
	bias = plus(b, bias, contrib_mask(b, mask, b_dim(b, x, 0), keys, filter));
	if (node_bool(b->g, n, "unidirectional"))
		bias = plus(b, bias, contrib_causal(b, queries, keys, before, filter));
	ContribAttention a = {.q = part[0],
			      .k = part[1],
			      .v = part[2],
			      .bias = bias,
			      .scale = contrib_scale(b, n, part[0])};
	Node y = onnx_merged_heads(b, contrib_attend(b, &a, NULL));
	bool same = sym_eq(t, b_dim(b, part[1], 3), b_dim(b, part[2], 3)) == YES;
	return !y.i   ? y
	       : same ? b_tuple(b, (Node[]){y, aten_stack(b, part + 1, 2, 0)}, 2)
		      : b_tuple(b, &y, 1);
}

/* Reads the sizes of Q, K and V: thirds of the columns, unless the node says them. Returns false
 * after b_error. */
static bool hidden_sizes(Build *b, Node n, Node w, int64_t size[3])
{
	int64_t all;
	TRY(aten_const(b, b_dim(b, w, -1), &all));
	for (int k = 0; k < 3; k++)
		size[k] = all / 3;
	if (op_arg_index(node_op(b->g, n), "qkv_hidden_sizes") >= 0 &&
	    aten_has(b, n, "qkv_hidden_sizes"))
		TRY(aten_ints(b, n, "qkv_hidden_sizes", 3, 0, size));
	bool ok = size[0] > 0 && size[1] == size[0] && size[2] > 0 &&
		  size[0] + size[1] + size[2] == all;
	if (!ok)
		b_error(b, "Q, K and V of %lld, %lld and %lld columns, of %lld", (long long)size[0],
			(long long)size[1], (long long)size[2], (long long)all);
	return ok;
}

static Node build_attention(Build *b, Node n)
{
	Node x = arg(b, n, "input"), w = arg(b, n, "weights"), bias = arg(b, n, "bias");
	int64_t size[3];
	if (aten_int(b, n, "do_rotary") || aten_int(b, n, "past_present_share_buffer") ||
	    arg(b, n, "past_sequence_length").i)
		return b_error(b, "do_rotary and past_present_share_buffer are not supported");
	if (aten_rank(b, x) != 3 || aten_rank(b, w) != 2)
		return b_error(b, "operands of rank %u and %u, expected 3 and 2", aten_rank(b, x),
			       aten_rank(b, w));
	if (!hidden_sizes(b, n, w, size))
		return (Node){0};
	Node qkv = b_matmul(b, x, w);
	return attention_of(b, n, bias.i ? b_bin(b, OP_add, qkv, bias) : qkv, size,
			    arg(b, n, "attention_bias"));
}

OP(com_microsoft_Attention_1){
	.schema = "com_microsoft.Attention.1(Tensor input, Tensor weights, Tensor? bias, Tensor? "
		  "mask_index, Tensor? past, Tensor? attention_bias, "
		  "Tensor? past_sequence_length, *, int num_heads, int do_rotary=0, "
		  "float mask_filter_value=-10000.0, int past_present_share_buffer=0, "
		  "int[]? qkv_hidden_sizes=None, int rotary_embedding_dim=0, float scale=0.0, "
		  "bool unidirectional=False) -> Tensor[]",
	.autocast = AUTOCAST_LOW,
	.build = build_attention,
	.no_sample = CONTRIB_CASES,
};

static Node build_qattention(Build *b, Node n)
{
	Node x = arg(b, n, "input"), w = arg(b, n, "weight");
	int64_t size[3];
	if (aten_int(b, n, "do_rotary") || aten_int(b, n, "past_present_share_buffer"))
		return b_error(b, "do_rotary and past_present_share_buffer are not supported");
	if (aten_rank(b, x) != 3 || aten_rank(b, w) != 2)
		return b_error(b, "operands of rank %u and %u, expected 3 and 2", aten_rank(b, x),
			       aten_rank(b, w));
	if (!hidden_sizes(b, n, w, size))
		return (Node){0};
	Node qkv = contrib_integer_product(
		b, x, arg(b, n, "input_scale"), arg(b, n, "input_zero_point"), w,
		arg(b, n, "weight_scale"), arg(b, n, "weight_zero_point"), arg(b, n, "bias"));
	return attention_of(b, n, qkv, size, (Node){0});
}

OP(com_microsoft_QAttention_1){
	.schema = "com_microsoft.QAttention.1(Tensor input, Tensor weight, Tensor bias, Tensor "
		  "input_scale, Tensor weight_scale, Tensor? mask_index, "
		  "Tensor? input_zero_point, Tensor? weight_zero_point, Tensor? past, *, "
		  "int num_heads, int do_rotary=0, float mask_filter_value=-10000.0, "
		  "int past_present_share_buffer=0, float scale=0.0, "
		  "bool unidirectional=False) -> Tensor[]",
	.build = build_qattention,
	.no_sample = CONTRIB_CASES,
};

/* ---- rotary embedding ---- */

/* Reads position_ids as [B, S], or as [1], the position of the first. */
static Node build_rotary(Build *b, Node n)
{
	Node x = arg(b, n, "input"), at = b_convert(b, arg(b, n, "position_ids"), DT_i64),
	     cos = arg(b, n, "cos_cache");
	int64_t heads = aten_int(b, n, "num_heads"),
		turned = aten_int(b, n, "rotary_embedding_dim"), half, hidden;
	uint32_t rank = aten_rank(b, x);
	if (node_float(b->g, n, "scale") != 1 || aten_int(b, n, "is_packed_batching"))
		return b_error(b, "scale and is_packed_batching are not supported");
	if (!x.i || !at.i || !cos.i || (rank != 3 && rank != 4))
		return x.i ? b_error(b, "an operand of rank %u, expected 3 or 4", rank) : x;
	Sym queries = b_dim(b, x, rank == 3 ? 1 : 2);
	if (node_rank(b->g, at) == 1) {
		at = b_unsqueeze(b, b_bin(b, OP_add, b_iota(b, DT_i64, queries), at), 0);
		Shape s = {2, {b_dim(b, x, 0), queries}};
		at = aten_expand_shape(b, at, &s);
	}
	if (rank == 3 && !heads) {
		if (!aten_const(b, b_dim(b, cos, 1), &half) ||
		    !aten_const(b, b_dim(b, x, 2), &hidden))
			return (Node){0};
		heads = half > 0 ? hidden / (2 * half) : 0;
	}
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_none(),
		       attr_none(),
		       *node_attr(b->g, n, "interleaved"),
		       attr_int(b->g->ir, heads),
		       attr_int(b->g->ir, turned)};
	return onnx_call(b, "onnx.RotaryEmbedding.23", (Node[]){x, cos, arg(b, n, "sin_cache"), at},
			 4, attr, 7);
}

OP(com_microsoft_RotaryEmbedding_1){
	.schema = "com_microsoft.RotaryEmbedding.1(Tensor input, Tensor position_ids, Tensor "
		  "cos_cache, Tensor sin_cache, *, bool interleaved=False, "
		  "int is_packed_batching=0, int num_heads=0, int rotary_embedding_dim=0, "
		  "float scale=1.0) -> Tensor",
	.build = build_rotary,
	.no_sample = CONTRIB_CASES,
};
