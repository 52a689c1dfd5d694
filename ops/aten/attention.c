/* Scaled dot-product attention. Kept as one node until decompose, so that it can have a schedule.
 */
#include "ops/aten/priv.h"
#include "ops/prim/random.h"
#include "ops/rules/batch.h"

#include <math.h>

/* Makes [.., H * times, S, D] of [.., H, S, D], each head repeated. */
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

/* Returns how many heads of q share one of k. */
static Sym heads_shared(Build *b, Node q, Node k)
{
	if (!q.i || !k.i || node_rank(b->g, q) < 3 || node_rank(b->g, k) < 3)
		return b_int(b, 1);
	return sym_floordiv(b_syms(b), b_dim(b, q, -3), b_dim(b, k, -3));
}

/* Returns scores with what must not be seen at -inf. */
static Node masked(Build *b, Node scores, Node mask, bool causal)
{
	if (!scores.i)
		return scores;
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

/* What an attention is made of: the operands, of as many heads; scores, their rows' maxima and sums
 * of exponentials, and probabilities. */
typedef struct {
	Node q, k, v, mask, scores, high, sum, p;
	Sym times, times_v; /* heads of q for one of k, and of v */
	double dropout;
	Node keep; /* what dropout leaves of p; none: all */
} Attention;

/* Computes the softmax over the last dim; with a mask, a row of -inf gives 0. */
static void attention_softmax(Build *b, Attention *a)
{
	const uint32_t rank = aten_rank(b, a->scores); /* 0 after an error */
	const SoftmaxParts y =
		aten_softmax_parts(b, a->scores, rank ? 1u << (rank - 1) : 0, a->mask.i != 0);
	a->high = y.high;
	a->sum = y.sum;
	a->p = y.p;
}

/* Returns log of the sum of exp(scores) of each row, with the last dimension of extent 1; -inf if
 * there is no finite score. */
static Node log_sum(Build *b, const Attention *a)
{
	return b_bin(b, OP_add, b_un(b, OP_log, a->sum), a->high);
}

/* Returns exp(scores - lse), which are the probabilities; 0 in a row of which lse is -inf. A
 * gradient that computes them so needs a number a row of what attention has computed. */
static Node probabilities(Build *b, Node scores, Node lse)
{
	Node none = b_bin_scalar(b, OP_eq, lse, -(double)INFINITY);
	return b_select(b, none, aten_like(b, scores, 0),
			b_un(b, OP_exp, b_bin(b, OP_sub, scores, lse)));
}

static bool drops(const Graph *g, Node n)
{
	return node_float(g, n, "dropout_p") != 0;
}

/* Returns scores / sqrt(width), or as the call says. */
static Node scaled(Build *b, Node n, Node scores)
{
	int64_t width;
	if (aten_has(b, n, "scale")) {
		double scale = node_float(b->g, n, "scale");
		return scale == 1 ? scores : b_bin_scalar(b, OP_mul, scores, scale);
	}
	Sym dim = b_dim(b, arg(b, n, "query"), -1);
	if (sym_is_const(b_syms(b), dim, &width))
		return b_bin_scalar(b, OP_mul, scores, 1 / sqrt((double)width));
	return b_bin(b, OP_mul, scores, b_un(b, OP_rsqrt, aten_size(b, dim, DT_f32)));
}

/* Computes all of it. p is none after b_error. */
static Attention attention_of(Build *b, Node n)
{
	Attention a = {.q = arg(b, n, "query"),
		       .k = arg(b, n, "key"),
		       .v = arg(b, n, "value"),
		       .mask = arg(b, n, "attn_mask"),
		       .times = b_int(b, 1),
		       .times_v = b_int(b, 1)};
	bool gqa = op_arg_index(node_op(b->g, n), "enable_gqa") < 0 ||
		   node_bool(b->g, n, "enable_gqa");
	uint32_t rank = aten_rank(b, a.q);
	if (!a.q.i || !a.k.i || !a.v.i)
		return a;
	if (rank < 2 || node_rank(b->g, a.k) < 2 || node_rank(b->g, a.v) < 2) {
		b_error(b, "attention of operands of rank %u, %u and %u", rank,
			node_rank(b->g, a.k), node_rank(b->g, a.v));
		return a;
	}
	Draw draw = {0};
	a.dropout = node_float(b->g, n, "dropout_p");
	if (a.dropout != 0 && !draw_begin(b, n, &draw))
		return a;
	if (gqa) {
		a.times = heads_shared(b, a.q, a.k);
		a.k = repeat_heads(b, a.k, a.times);
		a.times_v = heads_shared(b, a.q, a.v);
		a.v = repeat_heads(b, a.v, a.times_v);
	}
	/* Scores of f16 may be larger than its numbers. */
	Node scores = scaled(b, n, b_matmul_wide(b, a.q, b_transpose(b, a.k, -2, -1)));
	a.scores = masked(b, scores, a.mask, node_bool(b->g, n, "is_causal"));
	attention_softmax(b, &a);
	if (a.dropout != 0)
		a.keep = draw_keep(b, &draw, a.p, a.dropout, 0);
	return a;
}

static Node dropped(Build *b, const Attention *a, Node x)
{
	return a->keep.i ? dropout_of(b, x, a->keep, a->dropout) : x;
}

static Node attended(Build *b, const Attention *a)
{
	return a->p.i ? b_matmul(b, b_convert(b, dropped(b, a, a->p), node_dtype(b->g, a->q)), a->v)
		      : a->p;
}

/* Sums over the heads of q that share one of `like`, which may have as many. */
static Node sum_heads(Build *b, Node g, Node like, Sym times)
{
	Shape s = aten_shape(b, g);
	uint32_t h = s.rank - 3;
	if (sym_is(b_syms(b), times, 1) || s.rank < 3 || s.rank == MAX_RANK)
		return g;
	s.dim[h] = b_dim(b, like, -3);
	s = shape_insert(s, h + 1, times);
	return aten_sum(b, aten_reshape(b, g, &s), 1u << (h + 1), false);
}

/* Computes, with P of the scores and gP = g v': gS = P (gP - rowsum(P gP)), from which all the
 * others follow. rowsum(P gP) is rowsum(g y), as y = P v: so P is needed element by element alone,
 * and attention's kernels compute it again of a number a row (lower/attention.h). The
 * maximum that the scores are measured from has no part in it. A row that sees nothing has P = 0.
 * Sums over heads come last: what is before them is one kernel. */
static bool adjoint_attention(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	bool pair = node_dtype(b->g, n) == DT_none;
	Attention a = attention_of(b, n);
	Node gs = {0}, gv = {0};
	if (!a.p.i)
		return false;
	DType d = node_dtype(b->g, a.q);
	int last = (int)aten_rank(b, a.p) - 1;
	Node p = probabilities(b, a.scores, log_sum(b, &a));
	if (ct[0].i) {
		Node y = pair ? b_get(b, n, 0) : n,
		     along = b_bin(b, OP_mul, aten_wide(b, ct[0]), aten_wide(b, y));
		gs = dropped(b, &a, b_matmul_wide(b, ct[0], b_transpose(b, a.v, -2, -1)));
		gs = b_bin(b, OP_sub, gs, aten_sum(b, along, 1u << last, true));
		if (want[2])
			gv = b_matmul(b, b_transpose(b, b_convert(b, dropped(b, &a, p), d), -2, -1),
				      ct[0]);
	}
	if (pair && ct[1].i) {
		Node sum = b_convert(b, b_unsqueeze(b, ct[1], -1), aten_dtype(b, a.p));
		gs = gs.i ? b_bin(b, OP_add, gs, sum) : sum;
	}
	gs = b_bin(b, OP_mul, p, gs);
	if (want[3])
		g[3] = gs;
	Node from = b_convert(b, scaled(b, n, gs), d);
	if (want[1])
		g[1] = b_matmul(b, b_transpose(b, from, -2, -1), a.q);
	if (want[0])
		g[0] = b_matmul(b, from, a.k);
	if (want[1])
		g[1] = sum_heads(b, g[1], arg(b, n, "key"), a.times);
	if (gv.i)
		g[2] = sum_heads(b, gv, arg(b, n, "value"), a.times);
	return gs.i;
}

/* Takes dimensions in front of the heads as a batch; a mask, which may have fewer, is spread
 * under it. */
static Node batch_attention(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	if (drops(b->g, n))
		return batch_by_scan(b, n, in, batched, size);
	Node all[5] = {{0}}, mask = node_in(b->g, n, 3); /* the last: of random numbers, which it
	                                                    does not draw */
	uint32_t rank = aten_rank(b, node_in(b->g, n, 0));
	for (uint32_t k = 1; k < 3; k++)
		rank = aten_rank(b, node_in(b->g, n, k)) > rank ? aten_rank(b, node_in(b->g, n, k))
								: rank;
	for (uint32_t k = 0; k < 4; k++) {
		if (!node_in(b->g, n, k).i)
			continue;
		all[k] = k < 3 ? batch_wide(b, in[k], batched[k], size) : in[k];
		for (uint32_t r = aten_rank(b, node_in(b->g, n, k));
		     r < rank && (k < 3 || batched[k]); r++)
			all[k] = b_unsqueeze(b, all[k], 1);
	}
	if (mask.i && aten_rank(b, mask) > rank)
		return batch_by_scan(b, n, in, batched, size);
	const NodeData d = *node_data(b->g, n); /* it stays whole */
	return graph_add(b->g, b->before, d.op, all, d.nin, d.attr,
			 batch_type(b->g->ir, d.type, size), b->loc);
}

/* Returns the tangent of the scores; none if nothing of which they are computed has one. */
static Node tangent_scores(Build *b, Node n, const Attention *a, const Node *t)
{
	Node of_q = {0}, of_k = {0};
	if (t[0].i)
		of_q = b_matmul_wide(b, t[0], b_transpose(b, a->k, -2, -1));
	if (t[1].i)
		of_k = b_matmul_wide(b, a->q,
				     b_transpose(b, repeat_heads(b, t[1], a->times), -2, -1));
	Node ts = of_q.i && of_k.i ? b_bin(b, OP_add, of_q, of_k) : of_q.i ? of_q : of_k;
	if (ts.i)
		ts = scaled(b, n, ts);
	if (!t[3].i)
		return ts;
	Node of_mask = b_convert(b, t[3], aten_dtype(b, a->scores));
	return ts.i ? b_bin(b, OP_add, ts, of_mask) : of_mask;
}

/* Computes P' v + P v' with P' = P (S' - rowsum(P S')) of the scores' tangent S'. The transpose of
 * adjoint_attention would subtract y rowsum(P S') from (P S') v: a difference of rounded numbers.
 */
static bool tangent_attention(Build *b, Node n, const Node *t, Node *ty)
{
	Attention a = attention_of(b, n);
	if (!a.p.i)
		return false;
	DType d = node_dtype(b->g, a.q);
	uint32_t dims = 1u << (node_rank(b->g, a.p) - 1);
	Node ts = tangent_scores(b, n, &a, t), y = {0};
	if (ts.i) {
		Node sum = aten_sum(b, b_bin(b, OP_mul, a.p, ts), dims, true);
		Node tp = b_bin(b, OP_mul, a.p, b_bin(b, OP_sub, ts, sum));
		y = b_matmul(b, b_convert(b, dropped(b, &a, tp), d), a.v);
		if (node_dtype(b->g, n) == DT_none)
			ty[1] = aten_squeeze_dims(b, sum, dims);
	}
	if (t[2].i) {
		Node tv = repeat_heads(b, t[2], a.times_v);
		Node of_v = b_matmul(b, b_convert(b, dropped(b, &a, a.p), d), tv);
		y = y.i ? b_bin(b, OP_add, y, of_v) : of_v;
	}
	ty[0] = y;
	return true;
}

static Node build_sdpa(Build *b, Node n)
{
	Attention a = attention_of(b, n);
	return attended(b, &a);
}
OP(aten_scaled_dot_product_attention){
	.schema = "aten.scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
		  "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? "
		  "scale=None, bool enable_gqa=False, " RANDOM_ARGS ") -> Tensor",
	.autocast = AUTOCAST_LOW,
	.draws = drops,
	.build = build_sdpa,
	.adjoint = adjoint_attention,
	.tangent = tangent_attention,
	.batch = batch_attention,
	.expands = EXPANDS_IN_DECOMPOSE,
	.sample = "f32[n=2, 2, m=3, 4], f32[n, 2, k=5, 4], f32[n, 2, k, 3]; "
		  "f32[1, 2, m=4, 4], f32[1, 2, m, 4], f32[1, 2, m, 3], is_causal=true, "
		  "scale=0.75; f32[1, 2, 3, 4], f32[1, 2, 5, 4], f32[1, 2, 5, 3], "
		  "bool[3, 5] of 1 0 1 1 0 0 1; "
		  "f32[1, 4, 3, 4], f32[1, 2, 5, 4], f32[1, 2, 5, 3], f32[3, 5], enable_gqa=true",
};

/* Returns (output, logsumexp). */
static Node build_sdpa_flash(Build *b, Node n)
{
	Attention a = attention_of(b, n);
	Node y = attended(b, &a);
	if (!y.i)
		return y;
	Node lse = aten_squeeze_dims(b, log_sum(b, &a), 1u << (node_rank(b->g, a.p) - 1));
	return b_tuple(b, (Node[]){y, lse}, 2);
}
OP(aten__scaled_dot_product_flash_attention_for_cpu){
	.schema = "aten._scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, "
		  "Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? "
		  "attn_mask=None, float? scale=None, " RANDOM_ARGS ") -> (Tensor output, "
		  "Tensor logsumexp)",
	.autocast = AUTOCAST_LOW,
	.draws = drops,
	.build = build_sdpa_flash,
	.adjoint = adjoint_attention,
	.tangent = tangent_attention,
	.batch = batch_attention,
	.sample = "f32[n=2, 2, m=3, 4], f32[n, 2, k=5, 4], f32[n, 2, k, 4]; "
		  "f32[1, 2, 4, 4], f32[1, 2, 4, 4], f32[1, 2, 4, 4], is_causal=true; "
		  "f32[1, 2, 3, 4], f32[1, 2, 5, 4], f32[1, 2, 5, 4], f32[3, 5], scale=0.75; "
		  "f32[1, 4, 3, 4], f32[1, 2, 3, 4], f32[1, 2, 3, 4], is_causal=true",
};

/* Computes with P = exp(S - logsumexp) of the forward pass: a row that saw nothing has none.
 * What dropout left is not known here. */
static Node build_flash_backward(Build *b, Node n)
{
	Node g = arg(b, n, "grad_out"), q = arg(b, n, "query"), k = arg(b, n, "key"),
	     v = arg(b, n, "value"), y = arg(b, n, "out");
	Node lse = arg(b, n, "logsumexp"), mask = arg(b, n, "attn_mask");
	if (drops(b->g, n))
		return b_error(b, "the derivative of an attention with dropout %g",
			       node_float(b->g, n, "dropout_p"));
	if (!g.i || !q.i || !k.i || !v.i || !y.i || !lse.i)
		return (Node){0};
	DType d = node_dtype(b->g, q);
	Sym times = heads_shared(b, q, k);
	k = repeat_heads(b, k, times);
	v = repeat_heads(b, v, times);
	Node scores = masked(b, scaled(b, n, b_matmul_wide(b, q, b_transpose(b, k, -2, -1))), mask,
			     node_bool(b->g, n, "is_causal"));
	if (!scores.i)
		return scores;
	uint32_t last = 1u << (node_rank(b->g, scores) - 1);
	lse = b_unsqueeze(b, b_convert(b, lse, node_dtype(b->g, scores)), -1);
	Node p = probabilities(b, scores, lse);
	Node along = aten_sum(b, b_bin(b, OP_mul, aten_wide(b, g), aten_wide(b, y)), last, true);
	Node gs = b_bin(b, OP_sub, b_matmul_wide(b, g, b_transpose(b, v, -2, -1)), along);
	Node from = b_convert(b, scaled(b, n, b_bin(b, OP_mul, p, gs)), d);
	Node r[3];
	r[2] = b_matmul(b, b_transpose(b, b_convert(b, p, d), -2, -1), g);
	r[1] = b_matmul(b, b_transpose(b, from, -2, -1), q);
	r[0] = b_matmul(b, from, k);
	r[1] = sum_heads(b, r[1], arg(b, n, "key"), times);
	r[2] = sum_heads(b, r[2], arg(b, n, "value"), times);
	return b_tuple(b, r, 3);
}
OP(aten__scaled_dot_product_flash_attention_for_cpu_backward){
	.schema = "aten._scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, "
		  "Tensor query, Tensor key, Tensor value, Tensor "
		  "out, Tensor logsumexp, float dropout_p, bool is_causal, *, "
		  "Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, "
		  "Tensor grad_key, Tensor grad_value)",
	.build = build_flash_backward,
	.sample = "f32[2, 2, 3, 4], f32[2, 2, 3, 4], f32[2, 2, 5, 4], f32[2, 2, 5, 4], "
		  "f32[2, 2, 3, 4], f32[2, 2, 3] in 2..9, dropout_p=0.0, "
		  "is_causal=false; f32[1, 2, 4, 4], f32[1, 2, 4, 4], f32[1, 2, 4, 4], "
		  "f32[1, 2, 4, 4], f32[1, 2, 4, 4], f32[1, 2, 4] in "
		  "2..9, dropout_p=0.0, is_causal=true; f32[1, 2, 3, 4], f32[1, 2, 3, 4], "
		  "f32[1, 2, 5, 4], f32[1, 2, 5, 4], f32[1, 2, 3, 4], f32[1, 2, 3] in 2..9, "
		  "dropout_p=0.0, is_causal=false, f32[3, 5], scale=0.75",
};
