/* Attention: the stages of its kernels. */
#include "lower/attention.h"

#include <math.h>
#include <string.h>

/* Sets to[] to the index in `end` of element at[] of n, from which index maps and element-wise
 * operators on the way through operand `through` lead to `end`. False: an index is not always in
 * range. */
static bool follow(Trace *t, Node n, Node end, const Sym *at, Sym *to)
{
	const Graph *g = t->s->g;
	memcpy(to, at, node_rank(g, n) * sizeof *at);
	while (n.i != end.i) {
		const bool map = lower_is_map(op_lower(node_op(g, n)));
		if (map) {
			TraceMap m = trace_map(t, n, to, (Kx){0}, NULL);
			trace_ask(&m);
			n = node_in(g, n, 0);
			memcpy(to, m.map.in[0], node_rank(g, n) * sizeof *to);
			TRY(!m.cond.i);
		} else { /* find_reduced went through no other operator */
			n = node_in(g, n, attention_is(g, n, SC_select) ? 2 : 0);
		}
	}
	return true;
}

/* Sets at[] to the index in the weights of element idx[] of the result's operand, and *factor to
 * the product of what weights are multiplied by on the way; none: nothing. False as for `follow`.
 */
static bool follow_weights(Trace *t, const AttentionNodes *a, const Sym *idx, Sym *at, Kx *factor)
{
	const Graph *g = t->s->g;
	Node n = node_in(g, a->result, a->operand);
	Sym here[MAX_RANK];
	memcpy(here, idx, node_rank(g, n) * sizeof *here);
	*factor = (Kx){0};
	for (uint32_t i = 0; i < a->nfactor; i++) {
		const WeightFactor *w = &a->factor[i];
		Sym to[MAX_RANK];
		TRY(follow(t, n, w->product, here, to));
		memcpy(here, to, node_rank(g, w->product) * sizeof *here);
		const Kx x = trace_value(t, node_in(g, w->product, w->other), here, (Kx){0});
		*factor = factor->i ? kx_product(t->k, t->s->arena, DT_f32, (Kx[]){*factor, x}) : x;
		n = node_in(g, w->product, 1 - w->other);
	}
	return follow(t, n, a->weights, here, at);
}

/* Whether following n from here[] leads to the row of `end`, a reduction, that has the logits'
 * element at[]. */
static bool is_of_row(Trace *t, const AttentionNodes *a, Node n, Node end, const Sym *here,
		      const Sym *at)
{
	Sym to[MAX_RANK];
	uint32_t o = 0;
	TRY(follow(t, n, end, here, to));
	for (uint32_t k = 0; k < node_rank(t->s->g, a->logits); k++)
		TRY(k == a->keys || to[o++].i == at[k].i);
	return true;
}

/* Whether the condition of the selection behind n, which is read at at[], is that of the row. */
static bool chooses_by_row(Trace *t, const AttentionNodes *a, Node n, const Sym *at)
{
	const Graph *g = t->s->g;
	Node chosen = n;
	Sym here[MAX_RANK];
	while (!attention_is(g, chosen, SC_select))
		chosen = node_in(g, chosen, 0);
	return follow(t, n, chosen, at, here) &&
	       is_of_row(t, a, node_in(g, chosen, 0), a->high, here, at);
}

/* Whether the maximum and the sum that elements of the logits meet are those of their row. */
static bool rows_agree(Trace *t, const AttentionNodes *a, const Sym *at)
{
	const Graph *g = t->s->g;
	const Node reference = node_in(g, node_in(g, a->exp, 0), 1),
		   sum = node_in(g, a->weights, 1);
	TRY(is_of_row(t, a, reference, a->high, at, at) && is_of_row(t, a, sum, a->sum, at, at));
	TRY(!a->hidden_where.i || is_of_row(t, a, a->hidden_where, a->high, at, at));
	return !a->is_selected ||
	       (chooses_by_row(t, a, reference, at) && chooses_by_row(t, a, sum, at));
}

/* Returns the root axes on which an index depends, as bits; *plain becomes false if one of its
 * elements that depends on axes is no axis of its own. */
static uint64_t axes_of_index(const Trace *t, const Sym *idx, uint32_t rank, bool *plain)
{
	uint64_t all = 0;
	for (uint32_t k = 0; k < rank; k++) {
		uint64_t own = 0;
		for (uint32_t i = 0; i < t->k->axis.n; i++)
			if (sym_uses(t->s->ir->syms, idx[k], t->k->axis.data[i].var))
				own |= UINT64_C(1) << i;
		*plain = *plain && (!own || (trace_axis_number(t, idx[k]) >= 0 && !(own & all)));
		all |= own;
	}
	return all;
}

bool trace_is_score(const Trace *t, Node n)
{
	for (uint32_t k = 0; k < t->attention.nscore; k++)
		if (t->attention.score[k].i == n.i)
			return true;
	return false;
}

Kx trace_scores(Trace *t, Node n, const Sym *idx, Kx guard)
{
	bool plain = true;
	const uint64_t at = t->attention.at,
		       axes = axes_of_index(t, idx, node_rank(t->s->g, n), &plain);
	if (guard.i || !plain || (axes & at) != at || (axes & ~at) >> t->nroot)
		return trace_store_first(t, n, "its scores are not read one by one");
	const uint64_t outer = t->outer;
	const Kx x = trace_contraction(t, n, idx, at);
	t->outer = outer;
	return x;
}

/* Adds a reduction of x along the keys. Returns its value. level: StageReduce.level. */
static Kx reduce_keys(Trace *t, ReduceKind kind, Kx x, uint32_t level)
{
	Stage st = {.kind = STAGE_REDUCE,
		    .dtype = DT_f32,
		    .nred = 1,
		    .red = {(uint8_t)t->attention.along},
		    .value = x,
		    .reduce = {.combine = reduce_of(kind, DT_f32), .acc = DT_f32, .level = level}};
	return trace_stage_value(t, trace_push_stage(t, st));
}

static Kx equal_to(Trace *t, Kx x, double value)
{
	Kx in[2] = {x, kx_const(t->k, t->s->arena, DT_f32, value)};
	return kx_op(t->k, t->s->arena, OP_eq, DT_bool, in, 2);
}

static Kx unless(Trace *t, Kx cond, double value, Kx x)
{
	return kx_select(t->k, t->s->arena, cond, kx_const(t->k, t->s->arena, DT_f32, value), x);
}

/* Returns `products` divided by the sum; 0 for rows without a key. none: that the row is one. */
static Kx divided(Trace *t, const AttentionNodes *a, Kx products, Kx sum, Kx none)
{
	Arena *arena = t->s->arena;
	const Kx zero = kx_const(t->k, arena, DT_f32, 0);
	Kx some = {0};
	if (a->masked) /* a sum that is not of masked scores alone is at least 1 */
		sum = unless(t, equal_to(t, sum, 0), 1, sum);
	if (a->nan_is_none)
		some = kx_op(t->k, arena, OP_gt, DT_bool, (Kx[]){sum, zero}, 2);
	Kx x = kx_op(t->k, arena, OP_div, DT_f32, (Kx[]){products, sum}, 2);
	if (some.i)
		x = kx_select(t->k, arena, some, x, zero);
	x = none.i ? unless(t, none, 0, x) : x;
	const Sym keys = node_dim(t->s->g, a->logits, a->keys);
	int64_t least, most;
	sym_range(t->s->ir->syms, keys, &least, &most);
	if (least < 1) { /* a sum of nothing is 0 */
		Kx in[2] = {kx_index(t->k, arena, keys), kx_const_int(t->k, arena, DT_i64, 0)};
		x = unless(t, kx_op(t->k, arena, OP_eq, DT_bool, in, 2), 0, x);
	}
	return kx_as(t->k, arena, node_dtype(t->s->g, a->result), x);
}

/* Adds stages that store a value of rows, which other kernels read as that of n. */
static void store_rows(Trace *t, const AttentionNodes *a, Node n, Kx value, const Sym *at)
{
	const Graph *g = t->s->g;
	const NodeInfo *info = node_info(t->s, n);
	uint64_t stored = 0;
	Sym row[MAX_RANK];
	uint32_t rank = 0;
	for (uint32_t k = 0; k < node_rank(g, a->logits); k++) {
		const int axis = trace_axis_number(t, at[k]);
		if (k == a->keys)
			continue;
		if (axis >= 0 && t->k->axis.data[axis].extent.i == node_dim(g, n, rank).i)
			stored |= UINT64_C(1) << axis;
		row[rank++] = at[k];
	}
	if (stored != t->outer) {
		trace_store_first(t, n, "its attention is computed several times");
		return;
	}
	for (uint32_t p = 0; p < info->place.n; p++) {
		Stage st = trace_global_stage(t, STAGE_MAP, &info->place.data[p], row, rank);
		st.value = value;
		trace_push_stage(t, st);
	}
}

/* Adds the stages: the scores (trace_scores), the maximum, the sum, and the sum of products with
 * the values, which v has. columns: the root axes of values. none: as for `divided`. factor: of the
 * weights in these products; none: 1. */
static Kx trace_stages(Trace *t, const AttentionNodes *a, const Sym *at, Kx v, uint64_t columns,
		       Kx none, Kx factor)
{
	Arena *arena = t->s->arena;
	const Kx x = trace_value(t, a->logits, at, (Kx){0}),
		 high = reduce_keys(t, REDUCE_MAX, x, 0);
	const uint32_t level = t->k->stage.n; /* that stage + 1 */
	const Kx from = a->masked ? unless(t, equal_to(t, high, -(double)INFINITY), 0, high) : high;
	const Kx above = kx_op(t->k, arena, OP_sub, DT_f32, (Kx[]){x, from}, 2),
		 e = kx_op(t->k, arena, OP_exp, DT_f32, &above, 1);
	const Kx sum = reduce_keys(t, REDUCE_SUM, e, level);
	const DType narrow = node_dtype(t->s->g, node_in(t->s->g, a->result, a->operand));
	const Kx kept = factor.i ? kx_product(t->k, arena, DT_f32, (Kx[]){e, factor}) : e,
		 rounded = narrow == DT_f32 ? kept : kx_round(t->k, arena, narrow, kept);
	Stage st = {.kind = STAGE_REDUCE,
		    .dtype = DT_f32,
		    .nred = 1,
		    .red = {(uint8_t)t->attention.along},
		    .value = kx_product(t->k, arena, DT_f32, (Kx[]){rounded, v}),
		    .reduce = {.combine = reduce_of(REDUCE_SUM, DT_f32),
			       .acc = DT_f32,
			       .contraction = true,
			       .level = level}};
	const Kx products = trace_read_at(t, trace_push_stage(t, st), columns);
	if (a->stores_rows) {
		store_rows(t, a, a->high, high, at);
		store_rows(t, a, a->sum, sum, at);
	}
	return divided(t, a, products, sum, none);
}

/* Returns an operand that is decoded of constants, of the products or of the sum of another one
 * with its operand k; none: there is none. */
static Node decoded_operand(const Trace *t, const Node *score, uint32_t nscore, Node sum,
			    uint32_t k)
{
	for (uint32_t i = 0; i < 2 * nscore; i++) {
		const Node x = trace_decoded_operand(t, score[i / 2], i % 2);
		if (x.i && !node_info(t->s, x)->is.narrow)
			return x;
	}
	const Node x = trace_decoded_operand(t, sum, k);
	return x.i && node_info(t->s, x)->is.narrow ? (Node){0} : x;
}

Kx trace_attention(Trace *t, const AttentionNodes *a, const Sym *idx)
{
	const Graph *g = t->s->g;
	const Node n = a->result;
	const uint32_t other = 1 - a->operand;
	bool plain = true;
	Stage st = {0};
	Sym at[MAX_RANK];
	Kx factor;
	const uint64_t roots = (UINT64_C(1) << t->nroot) - 1;
	const Node decoded = decoded_operand(t, &a->scores, 1, n, other);
	if (decoded.i)
		return trace_store_first(t, decoded, "attention reads it");
	axes_of_index(t, idx, node_rank(g, n), &plain);
	TraceMap m = trace_map(t, n, idx, (Kx){0}, &st);
	trace_ask(&m);
	if (!plain)
		return trace_store_first(t, n, "what reads it does not read its elements in place");
	if (st.nred != 1)
		return trace_store_first(t, a->weights, "what is summed has one term");
	t->attention = (TracedAttention){&a->scores, 1, st.red[0], UINT64_C(1) << st.red[0]};
	const Sym key = t->k->axis.data[st.red[0]].var;
	const uint64_t rows = axes_of_index(t, m.map.in[a->operand],
					    node_rank(g, node_in(g, n, a->operand)), &plain),
		       columns = axes_of_index(t, m.map.in[other],
					       node_rank(g, node_in(g, n, other)), &plain) &
				 roots & ~rows;
	if (!follow_weights(t, a, m.map.in[a->operand], at, &factor) ||
	    at[a->keys].i != key.i || /* all of them: not a slice of the weights */
	    sym_eq(t->s->ir->syms, node_dim(g, a->logits, a->keys),
		   t->k->axis.data[st.red[0]].extent) != YES ||
	    !rows_agree(t, a, at) || !columns)
		return trace_store_first(t, a->weights, "its rows are not those of its softmax");
	t->has_reduce = true;
	t->outer = roots & ~columns;
	const Kx v = trace_operand(t, n, other, m.map.in[other]);
	if (trace_needs_more(t, factor, UINT64_MAX))
		return trace_store_first(t, node_in(g, a->factor[0].product, a->factor[0].other),
					 "its index depends on data");
	Kx none = {0};
	if (a->none_where.i) {
		none = trace_value(t, a->none_where, at, (Kx){0});
		if (trace_needs_more(t, none, roots))
			return trace_store_first(t, a->weights, "what selects weights is no row's");
	}
	return trace_stages(t, a, at, v, columns, none, factor);
}

Kx trace_weighted(Trace *t, const WeightedNodes *w, const Sym *idx)
{
	const Graph *g = t->s->g;
	const Node n = w->result;
	const uint32_t other = 1 - w->operand;
	const uint64_t roots = (UINT64_C(1) << t->nroot) - 1;
	bool plain = true;
	Stage st = {.kind = STAGE_REDUCE, .dtype = DT_f32};
	const Node decoded = decoded_operand(t, w->score, w->nscore, n, other);
	if (decoded.i)
		return trace_store_first(t, decoded, "a product of products reads it");
	axes_of_index(t, idx, node_rank(g, n), &plain);
	TraceMap m = trace_map(t, n, idx, (Kx){0}, &st);
	trace_ask(&m);
	if (!plain)
		return trace_store_first(t, n, "what reads it does not read its elements in place");
	if (st.nred != 1)
		return trace_store_first(t, w->weights, "what is summed has one term");
	t->attention = (TracedAttention){w->score, w->nscore, st.red[0], UINT64_C(1) << st.red[0]};
	const uint64_t rows = axes_of_index(t, m.map.in[w->operand],
					    node_rank(g, node_in(g, n, w->operand)), &plain),
		       columns = axes_of_index(t, m.map.in[other],
					       node_rank(g, node_in(g, n, other)), &plain) &
				 roots & ~rows;
	if (!columns)
		return trace_store_first(t, w->weights, "what it is multiplied by has no columns");
	t->has_reduce = true;
	t->outer = roots & ~columns;
	const Kx v = trace_operand(t, n, other, m.map.in[other]);
	const Kx x = trace_value(t, node_in(g, n, w->operand), m.map.in[w->operand], (Kx){0});
	if (t->blocked.node.i)
		return x;
	st.value = kx_product(t->k, t->s->arena, DT_f32, (Kx[]){x, v});
	st.reduce = (StageReduce){
		.combine = reduce_of(REDUCE_SUM, DT_f32), .acc = DT_f32, .contraction = true};
	const Kx sum = trace_read_at(t, trace_push_stage(t, st), columns);
	return kx_as(t->k, t->s->arena, node_dtype(g, n), sum);
}
