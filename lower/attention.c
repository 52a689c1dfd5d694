/* Attention: found among the nodes of a graph, and traced as one kernel. */
#include "lower/attention.h"

#include <math.h>
#include <string.h>

#include "ir/scalar/scalar.h"

enum {
	MOST_INSIDE = 96,  /* nodes */
	MOST_VISITS = 256, /* of nodes of logits: bounds what a result is asked */
	MOST_WIDTH = 512,  /* of a row of queries, keys or values: bounds the local arrays */
	FEW_ROWS = 4 /* of queries: less are vectors times matrices, which read each key once */
};

/* ---- finding ---- */

typedef struct {
	const Graph *g;
	const char *const *stored;
	const AttentionNodes **of; /* by node */
	bool *output;              /* by node */
	ARRAY(Node) inside;        /* of the attention at hand */
	uint32_t visits;           /* of find_scores, for it */
	Arena *arena;
} Find;

static bool is_inside(const Find *f, Node n)
{
	for (uint32_t i = 0; i < f->inside.n; i++)
		if (f->inside.data[i].i == n.i)
			return true;
	return false;
}

/* Adds a node, unless it is there. Returns false if there are too many, or the node cannot be
 * inside. */
static bool add_inside(Find *f, Node n)
{
	if (is_inside(f, n))
		return true;
	TRY(!f->stored[n.i] && !f->output[n.i] && !f->of[n.i] && f->inside.n < MOST_INSIDE &&
	    node_is_tensor(f->g, n) && node_dtype(f->g, n) != DT_none);
	array_push(f->arena, &f->inside, n);
	return true;
}

/* Whether n converts floats to floats: no other operator of one operand changes their dtype. */
static bool is_conversion(const Graph *g, Node n)
{
	if (op_lower(node_op(g, n))->role != LOWER_MAP || node_nin(g, n) != 1 ||
	    !node_in(g, n, 0).i)
		return false;
	const DType from = node_dtype(g, node_in(g, n, 0)), to = node_dtype(g, n);
	return from != to && dtype_is_float(from) && dtype_is_float(to);
}

/* Returns the node behind index maps and conversions, which are added; none if one cannot be
 * inside. */
static Node behind_maps(Find *f, Node n)
{
	while (lower_is_map(op_lower(node_op(f->g, n))) || is_conversion(f->g, n)) {
		if (!add_inside(f, n))
			return (Node){0};
		n = node_in(f->g, n, 0);
	}
	return n;
}

/* Returns the scalar function of an element-wise node; NULL of another. */
static const ScFn *scalar_of(const Graph *g, Node n)
{
	DType in[4];
	const uint32_t nin = node_nin(g, n);
	if (op_lower(node_op(g, n))->role != LOWER_MAP || nin > 4)
		return NULL;
	for (uint32_t k = 0; k < nin; k++) {
		if (!node_in(g, n, k).i)
			return NULL;
		in[k] = dtype_compute(node_dtype(g, node_in(g, n, k)));
	}
	return scalar_fn(node_op(g, n), in, nin);
}

static bool is_basic(const Graph *g, Node n, ScOp op)
{
	return scalar_single(scalar_of(g, n)).op == op;
}

static bool is_exp(const Graph *g, Node n)
{
	const ScFn *fn = scalar_of(g, n);
	return fn && fn == scalar_lib("exp", DT_f32);
}

static bool is_full_of(const Graph *g, Node n, double value)
{
	n = group_source(g, n);
	if (op_lower(node_op(g, n))->role != LOWER_LEAF || op_arg_index(node_op(g, n), "value") < 0)
		return false;
	const Attr *a = node_attr(g, n, "value");
	return a->kind == ATTR_float && a->f == value;
}

/* Whether n is a reduction of that kind of x along one dimension, which the result lacks. */
static bool reduces(const Graph *g, Node n, const char *kind, Node x, uint32_t *dim)
{
	uint32_t count;
	int64_t d;
	if (op_lower(node_op(g, n))->role != LOWER_REDUCE || node_in(g, n, 0).i != x.i ||
	    strcmp(node_str(g, n, "kind"), kind) != 0)
		return false;
	const Sym *dims = node_ints(g, n, "dims", &count);
	TRY(count == 1 && sym_is_const(graph_syms(g), dims[0], &d));
	*dim = (uint32_t)d;
	return true;
}

/* Whether n is a sum of products of elements of two operands, along and beside dimensions. */
static bool is_product(const Graph *g, Node n)
{
	return op_lower(node_op(g, n))->role == LOWER_ANCHOR &&
	       op_arg_index(node_op(g, n), "batch_x") >= 0;
}

/* Whether `cond` is that the row's maximum is -inf; `high` becomes the maximum. */
static bool is_row_masked(Find *f, Node cond, Node *high)
{
	const Graph *g = f->g;
	TRY(is_basic(g, cond, SC_eq) && is_full_of(g, node_in(g, cond, 1), -(double)INFINITY) &&
	    add_inside(f, cond));
	*high = behind_maps(f, node_in(g, cond, 0));
	return high->i != 0;
}

/* Sets *of to the reduction of which n is a broadcast. If n is `none` where the row is masked
 * wholly, sets *high to the row's maximum. */
static bool find_reduced(Find *f, Node n, double none, Node *of, Node *high)
{
	const Graph *g = f->g;
	*high = (Node){0};
	n = behind_maps(f, n);
	if (n.i && is_basic(g, n, SC_select) && is_full_of(g, node_in(g, n, 1), none)) {
		TRY(is_row_masked(f, node_in(g, n, 0), high) && add_inside(f, n));
		n = behind_maps(f, node_in(g, n, 2));
	}
	*of = n;
	return n.i && add_inside(f, n);
}

/* Whether n, a node of the logits' elements, is a function of scores, which it then adds with all
 * on the way. The first scores found are those of the attention. */
static bool find_scores(Find *f, AttentionNodes *a, Node n)
{
	const Graph *g = f->g;
	const OpLower *l = op_lower(node_op(g, n));
	bool found = false;
	if (f->visits++ >= MOST_VISITS || !node_is_tensor(g, n) || f->inside.n >= MOST_INSIDE ||
	    type_numel(g->ir, node_type_id(g, n)).i !=
		    type_numel(g->ir, node_type_id(g, a->logits)).i)
		return false;
	if (is_product(g, n)) {
		if (a->scores.i)
			return a->scores.i == n.i;
		a->scores = n;
		return add_inside(f, n);
	}
	if (is_inside(f, n))
		return true;
	if (l->role != LOWER_MAP && !(lower_is_map(l) && l->keeps != KEEPS_NOTHING))
		return false;
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		found |= find_scores(f, a, node_in(g, n, k));
	return found && add_inside(f, n);
}

/* Whether nodes inside are read by each other and the result alone. */
static bool is_closed(const Find *f, Node result)
{
	const Graph *g = f->g;
	for (uint32_t i = 0; i < f->inside.n; i++) {
		Node n = f->inside.data[i];
		for (Use u = node_data(g, n)->first_use; u.i; u = g->use.data[u.i].next) {
			Node user = g->use.data[u.i].user;
			TRY(user.i && (user.i == result.i || is_inside(f, user)));
		}
	}
	return true;
}

/* Whether the dimensions in the set that have more than one element are one, of a constant extent
 * that local arrays hold. */
static bool is_row(const Graph *g, Node x, uint32_t dims)
{
	uint32_t count = 0;
	int64_t extent;
	for (uint32_t k = 0; k < node_rank(g, x); k++) {
		if (!(dims >> k & 1) || sym_is(graph_syms(g), node_dim(g, x, k), 1))
			continue;
		TRY(sym_is_const(graph_syms(g), node_dim(g, x, k), &extent) && extent > 0 &&
		    extent <= MOST_WIDTH);
		count++;
	}
	return count == 1;
}

/* Whether the dimensions in the set have elements enough for tiles; sizes that are not known may
 * have. */
static bool has_rows(const Graph *g, Node x, uint32_t dims)
{
	int64_t n = 1, extent;
	for (uint32_t k = 0; k < node_rank(g, x); k++) {
		if (!(dims >> k & 1))
			continue;
		if (!sym_is_const(graph_syms(g), node_dim(g, x, k), &extent))
			return true;
		n *= extent;
	}
	return n >= FEW_ROWS;
}

static uint32_t all_dims(const Graph *g, Node n)
{
	return (1u << node_rank(g, n)) - 1;
}

static const char *batch_of(uint32_t operand)
{
	return operand ? "batch_y" : "batch_x";
}

static const char *sum_of(uint32_t operand)
{
	return operand ? "sum_y" : "sum_x";
}

/* Whether n is a product, summed in f32, of operands of one dtype, which is no wider. */
static bool is_f32_product(const Graph *g, Node n)
{
	const DType d = node_dtype(g, node_in(g, n, 0)), acc = node_attr(g, n, "acc")->dtype;
	return is_product(g, n) && dtype_is_float(d) && dtype_compute(d) == DT_f32 &&
	       d == node_dtype(g, node_in(g, n, 1)) && (acc ? acc : node_dtype(g, n)) == DT_f32;
}

/* Whether x is a constant, whose panels are packed before. */
static bool is_packed(const Graph *g, Node x)
{
	return node_const(g, group_source(g, x)).i != 0;
}

/* Whether rows of queries, keys and values fit local arrays, there are rows enough, and no operand
 * is a constant. */
static bool has_form(const Graph *g, const AttentionNodes *a)
{
	const uint32_t other = 1 - a->operand;
	const Node v = node_in(g, a->result, other);
	const uint32_t taken = node_dim_bits(g, a->result, batch_of(other)) |
			       node_dim_bits(g, a->result, sum_of(other));
	TRY(is_f32_product(g, a->result) && is_f32_product(g, a->scores) &&
	    node_dtype(g, a->logits) == DT_f32 && node_dtype(g, a->exp) == DT_f32 &&
	    node_dtype(g, v) == node_dtype(g, node_in(g, a->scores, 0)));
	TRY(!is_packed(g, v) && is_row(g, v, all_dims(g, v) & ~taken) &&
	    !sym_is(graph_syms(g), node_dim(g, a->logits, a->keys), 0));
	TRY(is_row(g, node_in(g, a->scores, 0), node_dim_bits(g, a->scores, "sum_x")));
	for (uint32_t k = 0; k < 2; k++) {
		const Node x = node_in(g, a->scores, k);
		const uint32_t fixed = node_dim_bits(g, a->scores, batch_of(k)) |
				       node_dim_bits(g, a->scores, sum_of(k));
		TRY(!is_packed(g, x) && has_rows(g, x, all_dims(g, x) & ~fixed));
	}
	return true;
}

/* Whether n is true where its operand is no number. */
static bool is_nan(const Graph *g, Node n)
{
	const ScFn *fn = scalar_of(g, n);
	return fn && fn->nparam == 1 && fn->nins == 2 && fn->ins[1].op == SC_ne &&
	       fn->ins[1].in[0] == fn->ins[1].in[1];
}

/* Finds out where a selection takes 0 for a row: where all is -inf, or some other condition. */
static bool find_condition(Find *f, AttentionNodes *a, Node where)
{
	const uint32_t before = f->inside.n;
	const Node cond = behind_maps(f, where);
	if (cond.i && is_row_masked(f, cond, &a->high)) {
		a->hidden_where = where;
		a->masked = true;
		return true;
	}
	f->inside.n = before;
	a->none_where = where;
	return true;
}

/* Finds the weights behind n, and a selection of 0 for rows without a key. */
static bool find_weights(Find *f, AttentionNodes *a, Node n)
{
	const Graph *g = f->g;
	a->weights = behind_maps(f, n);
	if (a->weights.i && is_basic(g, a->weights, SC_select) &&
	    is_full_of(g, node_in(g, a->weights, 1), 0)) {
		const Node select = a->weights, where = node_in(g, select, 0);
		TRY(add_inside(f, select));
		a->weights = behind_maps(f, node_in(g, select, 2));
		a->nan_is_none = is_nan(g, where) && node_in(g, where, 0).i == a->weights.i;
		if (a->nan_is_none)
			TRY(add_inside(f, where));
		else
			TRY(node_in(g, select, 2).i == a->weights.i && find_condition(f, a, where));
	}
	return a->weights.i && is_basic(g, a->weights, SC_div) && add_inside(f, a->weights);
}

/* Fills in *a, and f->inside, if n is the result of an attention whose probabilities are that
 * operand. */
static bool find_of(Find *f, Node n, uint32_t operand, AttentionNodes *a)
{
	const Graph *g = f->g;
	Node high[2], hidden;
	uint32_t dim;
	f->inside.n = f->visits = 0;
	*a = (AttentionNodes){.result = n, .operand = operand};
	TRY(find_weights(f, a, node_in(g, n, operand)));
	hidden = a->high;
	a->exp = node_in(g, a->weights, 0);
	TRY(is_exp(g, a->exp) && add_inside(f, a->exp));
	const Node sub = node_in(g, a->exp, 0);
	TRY(is_basic(g, sub, SC_sub) && add_inside(f, sub));
	a->logits = node_in(g, sub, 0);
	TRY(find_reduced(f, node_in(g, sub, 1), 0, &a->high, &high[0]) &&
	    find_reduced(f, node_in(g, a->weights, 1), 1, &a->sum, &high[1]));
	TRY(high[0].i == high[1].i && (!high[0].i || high[0].i == a->high.i) &&
	    (!hidden.i || hidden.i == a->high.i));
	a->is_selected = high[0].i != 0;
	a->masked |= a->is_selected;
	TRY(reduces(g, a->high, "max", a->logits, &a->keys) &&
	    reduces(g, a->sum, "sum", a->exp, &dim) && dim == a->keys);
	return find_scores(f, a, a->logits) && a->scores.i && has_form(g, a) && is_closed(f, n);
}

const AttentionNodes **find_attentions(const Graph *g, const Target *t, const char *const *stored,
				       Arena *arena)
{
	Find f = {.g = g, .stored = stored, .arena = arena};
	f.of = ARENA_ARRAY(arena, const AttentionNodes *, g->node.n);
	if (t->gpu || t->isa.of_block)
		return f.of;
	f.output = ARENA_ARRAY(arena, bool, g->node.n);
	for (uint32_t k = 0; k < g->output.n; k++)
		f.output[lower_output(g, k).i] = f.output[g->output.data[k].node.i] = true;
	for (Node n = g->first; n.i; n = node_next(g, n))
		for (uint32_t k = 0; k < 2 && is_product(g, n); k++) {
			AttentionNodes a;
			if (f.of[n.i] || !find_of(&f, n, k, &a))
				continue;
			const AttentionNodes *kept = arena_dup(arena, &a, sizeof a);
			f.of[n.i] = kept;
			for (uint32_t i = 0; i < f.inside.n; i++)
				f.of[f.inside.data[i].i] = kept;
		}
	return f.of;
}

/* ---- tracing ---- */

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
			n = node_in(g, n, is_basic(g, n, SC_select) ? 2 : 0);
		}
	}
	return true;
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
	while (!is_basic(g, chosen, SC_select))
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

Kx trace_scores(Trace *t, Node n, const Sym *idx, Kx guard)
{
	bool plain = true;
	const uint64_t key = UINT64_C(1) << t->attention.key,
		       axes = axes_of_index(t, idx, node_rank(t->s->g, n), &plain);
	if (guard.i || !plain || !(axes & key) || (axes & ~key) >> t->nroot)
		return trace_store_first(t, n, "its scores are not read one by one");
	const uint64_t outer = t->outer;
	const Kx x = trace_contraction(t, n, idx, key);
	t->outer = outer;
	return x;
}

/* Adds a reduction of x along the keys. Returns its value. level: StageReduce.level. */
static Kx reduce_keys(Trace *t, ReduceKind kind, Kx x, uint32_t level)
{
	Stage st = {.kind = STAGE_REDUCE,
		    .dtype = DT_f32,
		    .nred = 1,
		    .red = {(uint8_t)t->attention.key},
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

/* Adds the stages: the scores (trace_scores), the maximum, the sum, and the sum of products with
 * the values, which v has. columns: the root axes of values. none: as for `divided`. */
static Kx trace_stages(Trace *t, const AttentionNodes *a, const Sym *at, Kx v, uint64_t columns,
		       Kx none)
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
	const Kx rounded = narrow == DT_f32 ? e : kx_round(t->k, arena, narrow, e);
	Stage st = {.kind = STAGE_REDUCE,
		    .dtype = DT_f32,
		    .nred = 1,
		    .red = {(uint8_t)t->attention.key},
		    .value = kx_product(t->k, arena, DT_f32, (Kx[]){rounded, v}),
		    .reduce = {.combine = reduce_of(REDUCE_SUM, DT_f32),
			       .acc = DT_f32,
			       .contraction = true,
			       .level = level}};
	const Kx products = trace_read_at(t, trace_push_stage(t, st), columns);
	return divided(t, a, products, sum, none);
}

Kx trace_attention(Trace *t, const AttentionNodes *a, const Sym *idx)
{
	const Graph *g = t->s->g;
	const Node n = a->result;
	const uint32_t other = 1 - a->operand;
	bool plain = true;
	Stage st = {0};
	Sym at[MAX_RANK];
	const uint64_t roots = (UINT64_C(1) << t->nroot) - 1;
	for (uint32_t k = 0; k < 3; k++) {
		const Node x = k < 2 ? trace_decoded_operand(t, a->scores, k)
				     : trace_decoded_operand(t, n, other);
		if (x.i)
			return trace_store_first(t, x, "attention reads it");
	}
	axes_of_index(t, idx, node_rank(g, n), &plain);
	TraceMap m = trace_map(t, n, idx, (Kx){0}, &st);
	trace_ask(&m);
	if (!plain || st.nred != 1)
		return trace_store_first(t, n, "what reads it does not read its elements in place");
	t->attention = (TracedAttention){a, st.red[0]};
	const Sym key = t->k->axis.data[st.red[0]].var;
	const uint64_t rows = axes_of_index(t, m.map.in[a->operand],
					    node_rank(g, node_in(g, n, a->operand)), &plain),
		       columns = axes_of_index(t, m.map.in[other],
					       node_rank(g, node_in(g, n, other)), &plain) &
				 roots & ~rows;
	if (!follow(t, node_in(g, n, a->operand), a->weights, m.map.in[a->operand], at) ||
	    at[a->keys].i != key.i || /* all of them: not a slice of the weights */
	    sym_eq(t->s->ir->syms, node_dim(g, a->logits, a->keys),
		   t->k->axis.data[st.red[0]].extent) != YES ||
	    !rows_agree(t, a, at) || !columns)
		return trace_store_first(t, a->weights, "its rows are not those of its softmax");
	t->has_reduce = true;
	t->outer = roots & ~columns;
	const Kx v = trace_operand(t, n, other, m.map.in[other]);
	Kx none = {0};
	if (a->none_where.i) {
		none = trace_value(t, a->none_where, at, (Kx){0});
		if (trace_needs_more(t, none, roots))
			return trace_store_first(t, a->weights, "what selects weights is no row's");
	}
	return trace_stages(t, a, at, v, columns, none);
}
