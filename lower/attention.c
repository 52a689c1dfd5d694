/* Attention: found among the nodes of a graph.
 *
 * First all products whose operand has the form are candidates. Then those go whose nodes inside
 * others read, until none is left that has such a reader: what is inside of one kernel may be
 * inside of several, each of which computes it, as scores are that attention and its gradient
 * share. */
#include "lower/attention.h"

#include <math.h>
#include <string.h>

#include "ir/scalar/scalar.h"
#include "lower/group_cost.h"

enum {
	MOST_INSIDE = 96,  /* nodes */
	MOST_VISITS = 256, /* of nodes of logits: bounds what a result is asked */
	MOST_WIDTH = 512,  /* of a row of queries, keys or values: bounds the local arrays */
	FEW_ROWS = 4,  /* of what is multiplied for a gradient, and of keys: less are vectors times
			  matrices */
	MOST_FEW = 32, /* rows of which keys and values may be decoded where they are multiplied */
	MOST_COST =
		512,   /* of what is computed of less at each score, such as what dropout leaves */
	LARGE = 25600, /* pairs of a row and a key: the products of fewer take less time in memory
			  than computed again for the gradient of a bias */
	LESS = 8       /* times as many elements */
};

/* ---- finding ---- */

typedef ARRAY(Node) Nodes;

/* Whether a node is an output of the graph, perhaps one that replaces an input or state. */
typedef enum { NO_OUTPUT, IS_OUTPUT, REPLACES } IsOutput;

/* One of the two is not NULL. */
typedef struct {
	AttentionNodes *attention;
	WeightedNodes *weighted;
	Node result;
	uint32_t operand;
	Nodes inside;
	bool gone;
} Candidate;

/* The products of which a value is a function, and that value. */
typedef struct {
	Node of;
	Node score[MOST_SCORES];
	uint32_t n, most;
} Scores;

typedef struct {
	const Graph *g;
	const char *const *stored;
	IsOutput *output; /* by node */
	uint32_t *place;  /* by node: in program order */
	Nodes inside;     /* of the candidate at hand */
	uint32_t visits;  /* of find_scores, for it */
	ARRAY(Candidate) candidate;
	ARRAY(uint32_t) * in; /* by node: the candidates inside of which it is */
	FoundAttention *found;
	Arena *arena;
} Find;

static bool is_inside(const Find *f, Node n)
{
	for (uint32_t i = 0; i < f->inside.n; i++)
		if (f->inside.data[i].i == n.i)
			return true;
	return false;
}

static bool add_node(Find *f, Node n)
{
	if (is_inside(f, n))
		return true;
	TRY(!f->stored[n.i] && f->inside.n < MOST_INSIDE && node_is_tensor(f->g, n) &&
	    node_dtype(f->g, n) != DT_none);
	array_push(f->arena, &f->inside, n);
	return true;
}

/* Adds a node, unless it is there. Returns false if there are too many, or the node cannot be
 * inside. */
static bool add_inside(Find *f, Node n)
{
	return f->output[n.i] == NO_OUTPUT && add_node(f, n);
}

/* Adds, in the same way, a value of rows, which may be an output that replaces nothing. */
static bool add_row(Find *f, Node n)
{
	return f->output[n.i] != REPLACES && add_node(f, n);
}

/* Returns the node behind index maps and conversions, which are added; none if one cannot be
 * inside. */
static Node behind_maps(Find *f, Node n)
{
	while (lower_is_map(op_lower(node_op(f->g, n))) || node_converts_floats(f->g, n)) {
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

bool attention_is(const Graph *g, Node n, ScOp op)
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

/* Whether `cond` is that the row's maximum is -inf; `high` becomes the maximum. */
static bool is_row_masked(Find *f, Node cond, Node *high)
{
	const Graph *g = f->g;
	TRY(attention_is(g, cond, SC_eq) && is_full_of(g, node_in(g, cond, 1), -(double)INFINITY) &&
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
	if (n.i && attention_is(g, n, SC_select) && is_full_of(g, node_in(g, n, 1), none)) {
		TRY(is_row_masked(f, node_in(g, n, 0), high) && add_inside(f, n));
		n = behind_maps(f, node_in(g, n, 2));
	}
	*of = n;
	return n.i && add_row(f, n);
}

/* Whether n, a node of as many elements as s->of, is a function of products, which it then adds
 * with all on the way. */
static bool find_scores(Find *f, Scores *s, Node n)
{
	const Graph *g = f->g;
	const OpLower *l = op_lower(node_op(g, n));
	bool found = false;
	if (f->visits++ >= MOST_VISITS || !node_is_tensor(g, n) || f->inside.n >= MOST_INSIDE ||
	    type_numel(g->ir, node_type_id(g, n)).i != type_numel(g->ir, node_type_id(g, s->of)).i)
		return false;
	if (node_is_contraction(g, n)) {
		for (uint32_t k = 0; k < s->n; k++)
			if (s->score[k].i == n.i)
				return true;
		if (s->n == s->most)
			return false;
		s->score[s->n++] = n;
		return add_inside(f, n);
	}
	if (is_inside(f, n))
		return true;
	if (l->role != LOWER_MAP && !(lower_is_map(l) && l->keeps != KEEPS_NOTHING))
		return false;
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		found |= find_scores(f, s, node_in(g, n, k));
	return found && add_inside(f, n);
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
	return node_is_contraction(g, n) && dtype_is_float(d) && dtype_compute(d) == DT_f32 &&
	       d == node_dtype(g, node_in(g, n, 1)) && (acc ? acc : node_dtype(g, n)) == DT_f32;
}

/* Whether x is a constant, whose panels are packed before. */
static bool is_packed(const Graph *g, Node x)
{
	return node_const(g, group_source(g, x)).i != 0;
}

/* Whether rows of what a product multiplies fit local arrays, and no operand is a constant. */
static bool has_score_form(const Graph *g, Node score)
{
	return is_f32_product(g, score) &&
	       is_row(g, node_in(g, score, 0), node_dim_bits(g, score, "sum_x")) &&
	       !is_packed(g, node_in(g, score, 0)) && !is_packed(g, node_in(g, score, 1));
}

/* Whether there are rows enough of what a product multiplies. */
static bool has_many_rows(const Graph *g, Node score)
{
	for (uint32_t k = 0; k < 2; k++) {
		const Node x = node_in(g, score, k);
		const uint32_t fixed =
			node_dim_bits(g, score, batch_of(k)) | node_dim_bits(g, score, sum_of(k));
		TRY(has_rows(g, x, all_dims(g, x) & ~fixed));
	}
	return true;
}

/* Whether rows of what the sum multiplies with its operand of that number fit local arrays, and it
 * is no constant. */
static bool has_values_form(const Graph *g, Node result, uint32_t operand)
{
	const uint32_t other = 1 - operand;
	const Node v = node_in(g, result, other);
	const uint32_t taken =
		node_dim_bits(g, result, batch_of(other)) | node_dim_bits(g, result, sum_of(other));
	return is_f32_product(g, result) && !is_packed(g, v) &&
	       is_row(g, v, all_dims(g, v) & ~taken);
}

static bool has_form(const Graph *g, const AttentionNodes *a)
{
	const Node v = node_in(g, a->result, 1 - a->operand);
	return has_values_form(g, a->result, a->operand) && has_score_form(g, a->scores) &&
	       node_dtype(g, a->logits) == DT_f32 && node_dtype(g, a->exp) == DT_f32 &&
	       node_dtype(g, v) == node_dtype(g, node_in(g, a->scores, 0)) &&
	       has_rows(g, a->logits, 1u << a->keys);
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

/* Whether index maps, conversions and products lead from n to a quotient, or to a selection, as
 * they do to weights. */
static bool leads_to_weights(const Find *f, Node n, uint32_t most)
{
	const Graph *g = f->g;
	while (lower_is_map(op_lower(node_op(g, n))) || node_converts_floats(g, n))
		n = node_in(g, n, 0);
	if (attention_is(g, n, SC_mul))
		return most && (leads_to_weights(f, node_in(g, n, 0), most - 1) ||
				leads_to_weights(f, node_in(g, n, 1), most - 1));
	return (attention_is(g, n, SC_div) && is_exp(g, node_in(g, n, 0))) ||
	       (attention_is(g, n, SC_select) && is_full_of(g, node_in(g, n, 1), 0));
}

/* Goes through products on the way to the weights. Returns the node behind them; none if one cannot
 * be inside. */
static Node behind_factors(Find *f, AttentionNodes *a, Node n)
{
	const Graph *g = f->g;
	n = behind_maps(f, n);
	while (n.i && attention_is(g, n, SC_mul) && a->nfactor < MOST_FACTORS) {
		const uint32_t most = MOST_FACTORS - 1 - a->nfactor,
			       other = leads_to_weights(f, node_in(g, n, 0), most);
		if (!add_inside(f, n))
			return (Node){0};
		a->factor[a->nfactor++] = (WeightFactor){n, other};
		n = behind_maps(f, node_in(g, n, 1 - other));
	}
	return n;
}

/* Finds the weights behind n, and a selection of 0 for rows without a key. */
static bool find_weights(Find *f, AttentionNodes *a, Node n)
{
	const Graph *g = f->g;
	a->weights = behind_factors(f, a, n);
	if (a->weights.i && attention_is(g, a->weights, SC_select) &&
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
	return a->weights.i && attention_is(g, a->weights, SC_div) && add_inside(f, a->weights);
}

/* Fills in *a, and f->inside, if n is the result of an attention whose probabilities are that
 * operand. */
static bool find_of(Find *f, Node n, uint32_t operand, AttentionNodes *a)
{
	const Graph *g = f->g;
	Node high[2], hidden;
	uint32_t dim;
	f->inside = (Nodes){0};
	f->visits = 0;
	*a = (AttentionNodes){.result = n, .operand = operand};
	TRY(find_weights(f, a, node_in(g, n, operand)));
	hidden = a->high;
	a->exp = node_in(g, a->weights, 0);
	TRY(is_exp(g, a->exp) && add_inside(f, a->exp));
	const Node sub = node_in(g, a->exp, 0);
	TRY(attention_is(g, sub, SC_sub) && add_inside(f, sub));
	a->logits = node_in(g, sub, 0);
	TRY(find_reduced(f, node_in(g, sub, 1), 0, &a->high, &high[0]) &&
	    find_reduced(f, node_in(g, a->weights, 1), 1, &a->sum, &high[1]));
	TRY(high[0].i == high[1].i && (!high[0].i || high[0].i == a->high.i) &&
	    (!hidden.i || hidden.i == a->high.i));
	a->is_selected = high[0].i != 0;
	a->masked |= a->is_selected;
	TRY(reduces(g, a->high, "max", a->logits, &a->keys) &&
	    reduces(g, a->sum, "sum", a->exp, &dim) && dim == a->keys);
	Scores s = {.of = a->logits, .most = 1};
	TRY(find_scores(f, &s, a->logits) && s.n);
	a->scores = s.score[0];
	return has_form(g, a);
}

/* Whether some node inside is an exponential of a difference: what weights are where rows' sums are
 * known, and products that follow one another in other networks are not. */
static bool has_exponential(const Find *f)
{
	for (uint32_t i = 0; i < f->inside.n; i++) {
		const Node n = f->inside.data[i];
		if (is_exp(f->g, n) && attention_is(f->g, node_in(f->g, n, 0), SC_sub))
			return true;
	}
	return false;
}

/* Fills in *w, and f->inside, if n is a sum with weights that are that operand. */
static bool find_weighted(Find *f, Node n, uint32_t operand, WeightedNodes *w)
{
	const Graph *g = f->g;
	f->inside = (Nodes){0};
	f->visits = 0;
	*w = (WeightedNodes){.result = n, .operand = operand};
	w->weights = behind_maps(f, node_in(g, n, operand));
	Scores s = {.of = w->weights, .most = MOST_SCORES};
	TRY(w->weights.i && find_scores(f, &s, w->weights) && has_exponential(f) &&
	    has_values_form(g, n, operand));
	for (uint32_t k = 0; k < s.n; k++)
		TRY(has_score_form(g, s.score[k]) && has_many_rows(g, s.score[k]));
	memcpy(w->score, s.score, sizeof w->score);
	w->nscore = s.n;
	return true;
}

/* Whether the scores of a member of the batch are many; sizes that are not known may be. */
static bool has_many_scores(const Graph *g, Node scores, uint32_t nbatch)
{
	Sym n = sym_int(g->ir->syms, 1);
	int64_t pairs;
	for (uint32_t k = nbatch; k < node_rank(g, scores); k++)
		n = sym_mul(g->ir->syms, n, node_dim(g, scores, k));
	return !sym_is_const(graph_syms(g), n, &pairs) || pairs >= LARGE;
}

/* Fills in *w, and f->inside, if n adds up weights over dimensions of the batch. */
static bool find_sum_of_weights(Find *f, Node n, WeightedNodes *w)
{
	const Graph *g = f->g;
	TRY(op_lower(node_op(g, n))->role == LOWER_REDUCE &&
	    strcmp(node_str(g, n, "kind"), "sum") == 0 && node_dtype(g, n) == DT_f32);
	const uint32_t dims = node_dim_bits(g, n, "dims");
	f->inside = (Nodes){0};
	f->visits = 0;
	*w = (WeightedNodes){.result = n, .weights = node_in(g, n, 0)};
	Scores s = {.of = w->weights, .most = MOST_SCORES};
	TRY(find_scores(f, &s, w->weights) && s.n > 1 && has_exponential(f));
	for (uint32_t k = 0; k < s.n; k++) {
		uint32_t nbatch;
		node_ints(g, s.score[k], "batch_x", &nbatch);
		TRY(!(dims >> nbatch) && has_many_scores(g, s.score[k], nbatch) &&
		    node_type_id(g, s.score[k]).i == node_type_id(g, w->weights).i &&
		    has_score_form(g, s.score[k]) && has_many_rows(g, s.score[k]));
	}
	memcpy(w->score, s.score, sizeof w->score);
	w->nscore = s.n;
	return true;
}

/* ---- which candidates stay ---- */

static void add_candidate(Find *f, Candidate c)
{
	c.inside = f->inside;
	array_push(f->arena, &f->candidate, c);
	for (uint32_t i = 0; i < c.inside.n; i++)
		array_push(f->arena, &f->in[c.inside.data[i].i], f->candidate.n - 1);
}

static bool is_in(const Find *f, uint32_t candidate, Node n)
{
	for (uint32_t i = 0; i < f->in[n.i].n; i++)
		if (f->in[n.i].data[i] == candidate)
			return true;
	return false;
}

/* Whether some kernel that computes n computes there what that reader wants of it, too. */
static bool is_read_inside(const Find *f, Node n, Node user, uint32_t operand)
{
	for (uint32_t i = 0; i < f->in[n.i].n; i++) {
		const uint32_t k = f->in[n.i].data[i];
		const Candidate *c = &f->candidate.data[k];
		if (!c->gone && ((is_in(f, k, user) && !node_is_contraction(f->g, user)) ||
				 (c->result.i == user.i && c->operand == operand)))
			return true;
	}
	return false;
}

/* Whether n, inside of an attention, is a value of a row of it, which is in memory if others read
 * the maxima and sums: one of these, or a selection of one. */
static bool is_of_row(const Find *f, const AttentionNodes *a, Node n)
{
	const Graph *g = f->g;
	while (n.i != a->high.i && n.i != a->sum.i) {
		const OpLower *l = op_lower(node_op(g, n));
		const bool selects = attention_is(g, n, SC_select);
		TRY((selects || lower_is_map(l)) &&
		    type_numel(g->ir, node_type_id(g, n)).i !=
			    type_numel(g->ir, node_type_id(g, a->logits)).i);
		n = node_in(g, n, selects ? 2 : 0);
	}
	return true;
}

/* Whether the node, and what reads it through index maps, comes behind another one. */
static bool is_later(const Find *f, Node user, Node than)
{
	const Graph *g = f->g;
	TRY(user.i && node_is_tensor(g, user));
	if (!lower_is_map(op_lower(node_op(g, user))))
		return f->place[user.i] > f->place[than.i];
	for (Use u = node_data(g, user)->first_use; u.i; u = g->use.data[u.i].next)
		TRY(is_later(f, g->use.data[u.i].user, than));
	return true;
}

/* Whether the kernel of the attention may store values of rows for a reader outside: what the graph
 * has is what the kernel computes, and the reader, if there is one, comes later. */
static bool may_store_rows(const Find *f, const AttentionNodes *a, Node n, Node user)
{
	return is_of_row(f, a, n) && (a->is_selected || !a->masked) &&
	       (!user.i || is_later(f, user, a->result)) && node_dtype(f->g, a->high) == DT_f32 &&
	       node_dtype(f->g, a->sum) == DT_f32;
}

/* Whether all readers of what is inside are inside, too, or may read values of rows; sets
 * stores_rows. */
static bool is_closed(const Find *f, Candidate *c)
{
	const Graph *g = f->g;
	for (uint32_t i = 0; i < c->inside.n; i++) {
		const Node n = c->inside.data[i];
		if (f->output[n.i] != NO_OUTPUT) {
			TRY(may_store_rows(f, c->attention, n, (Node){0}));
			c->attention->stores_rows = true;
		}
		for (Use u = node_data(g, n)->first_use; u.i; u = g->use.data[u.i].next) {
			const Node user = g->use.data[u.i].user;
			TRY(user.i);
			if (is_read_inside(f, n, user, u.i - node_data(g, user)->in))
				continue;
			TRY(c->attention && may_store_rows(f, c->attention, n, user));
			c->attention->stores_rows = true;
		}
	}
	return true;
}

/* Drops candidates until all are closed. */
static void close_all(Find *f)
{
	bool changed = true;
	while (changed) {
		changed = false;
		for (uint32_t k = 0; k < f->candidate.n; k++) {
			Candidate *c = &f->candidate.data[k];
			if (c->gone || is_closed(f, c))
				continue;
			c->gone = changed = true;
		}
	}
}

/* Whether the sum reads values of rows of the attention. */
static bool reads_rows(const Find *f, const Candidate *sum, const AttentionNodes *a)
{
	const Graph *g = f->g;
	for (uint32_t i = 0; i < sum->inside.n; i++)
		for (uint32_t k = 0; k < node_nin(g, sum->inside.data[i]); k++) {
			Node x = node_in(g, sum->inside.data[i], k);
			while (x.i && lower_is_map(op_lower(node_op(g, x))))
				x = node_in(g, x, 0);
			if (x.i && is_of_row(f, a, x))
				return true;
		}
	return false;
}

/* Makes attentions store rows' values for sums with weights that share nodes with them, so that
 * what these read of the values is the attention's own; or drops the sum. Returns false if one
 * went. */
static bool store_rows_for_sums(Find *f)
{
	bool all = true;
	for (uint32_t k = 0; k < f->candidate.n; k++)
		for (uint32_t i = 0; i < f->candidate.n; i++) {
			Candidate *sum = &f->candidate.data[i], *c = &f->candidate.data[k];
			if (sum->gone || c->gone || !sum->weighted || !c->attention ||
			    !reads_rows(f, sum, c->attention))
				continue;
			if (may_store_rows(f, c->attention, c->attention->high, sum->result))
				c->attention->stores_rows = true;
			else
				all = !(sum->gone = true) && all;
		}
	return all;
}

/* Notes a reader of values of rows, or what reads it if it is an index map before the result. */
static void note_reader(const Find *f, AttentionNodes *a, Node user)
{
	const Graph *g = f->g;
	if (!user.i)
		return;
	if (f->place[user.i] > f->place[a->result.i]) {
		if (!a->first_reader.i || f->place[user.i] < f->place[a->first_reader.i])
			a->first_reader = user;
		return;
	}
	for (Use u = node_data(g, user)->first_use; u.i; u = g->use.data[u.i].next)
		note_reader(f, a, g->use.data[u.i].user);
}

/* Sets the first node outside that reads values of rows from memory. */
static void find_first_reader(const Find *f, const Candidate *c)
{
	const Graph *g = f->g;
	for (uint32_t i = 0; i < c->inside.n; i++) {
		const Node n = c->inside.data[i];
		if (!is_of_row(f, c->attention, n))
			continue;
		for (Use u = node_data(g, n)->first_use; u.i; u = g->use.data[u.i].next) {
			const Node user = g->use.data[u.i].user;
			if (user.i && !is_read_inside(f, n, user, u.i - node_data(g, user)->in))
				note_reader(f, c->attention, user);
		}
	}
	for (uint32_t i = 0; i < f->candidate.n; i++) {
		const Candidate *sum = &f->candidate.data[i];
		if (!sum->gone && sum->weighted && reads_rows(f, sum, c->attention))
			note_reader(f, c->attention, sum->result);
	}
}

static void publish(Find *f, const Candidate *c)
{
	if (c->attention && c->attention->stores_rows)
		find_first_reader(f, c);
	if (c->attention)
		f->found[c->result.i].attention = c->attention;
	else
		f->found[c->result.i].weighted = c->weighted;
	for (uint32_t i = 0; i < c->inside.n; i++)
		f->found[c->inside.data[i].i].inside = true;
	if (c->attention && c->attention->stores_rows)
		f->found[c->attention->high.i].row = f->found[c->attention->sum.i].row = true;
}

/* Whether x is computed, in few operations, of indices and of values that are several times smaller
 * than `of`: at each score it costs less than memory as large as scores. */
static bool is_of_less(const Find *f, Node x, Node of, uint32_t *cost)
{
	const Graph *g = f->g;
	const SymTab *syms = graph_syms(g);
	const LowerRole role = op_lower(node_op(g, x))->role;
	TRY(node_is_tensor(g, x));
	if (role == LOWER_LEAF)
		return true;
	if (role == LOWER_MAP && !f->stored[x.i]) {
		*cost += element_cost(g, x);
		for (uint32_t k = 0; k < node_nin(g, x) && *cost <= MOST_COST; k++)
			TRY(node_in(g, x, k).i && is_of_less(f, node_in(g, x, k), of, cost));
		return *cost <= MOST_COST;
	}
	if (lower_is_map(op_lower(node_op(g, x))) && node_nin(g, x) == 1)
		return is_of_less(f, node_in(g, x, 0), of, cost);
	return LESS * sym_hint(syms, type_numel(g->ir, node_type_id(g, x))) <=
	       sym_hint(syms, type_numel(g->ir, node_type_id(g, of)));
}

static bool is_for_inside(const Find *f, Node n)
{
	const Graph *g = f->g;
	for (Use u = node_data(g, n)->first_use; u.i; u = g->use.data[u.i].next) {
		const Node user = g->use.data[u.i].user;
		TRY(user.i && f->found[user.i].inside && !node_is_contraction(g, user));
	}
	return f->output[n.i] == NO_OUTPUT && !f->stored[n.i];
}

/* Marks masks of indices that n reads, and what they are made of: they are computed inside, too,
 * where several kernels read them. */
static void spread(Find *f, Node n)
{
	const Graph *g = f->g;
	for (uint32_t k = 0; k < node_nin(g, n) && !node_is_contraction(g, n); k++) {
		const Node x = node_in(g, n, k);
		const bool map = x.i && lower_is_map(op_lower(node_op(g, x)));
		uint32_t cost = 0;
		if (!x.i || f->found[x.i].inside || !is_for_inside(f, x) ||
		    !(map || op_lower(node_op(g, x))->role == LOWER_MAP) ||
		    !is_of_less(f, x, x, &cost))
			continue;
		f->found[x.i].inside = true;
		spread(f, x);
	}
}

/* ---- keys and values that are stored in fewer bytes ---- */

/* Returns the product of the extents of an operand's dimensions that are neither of the batch nor
 * summed. */
static Sym free_extent(const Graph *g, Node product, uint32_t operand)
{
	const Node x = node_in(g, product, operand);
	const uint32_t fixed = node_dim_bits(g, product, batch_of(operand)) |
			       node_dim_bits(g, product, sum_of(operand));
	Sym n = sym_int(g->ir->syms, 1);
	for (uint32_t k = 0; k < node_rank(g, x); k++)
		if (!(fixed >> k & 1))
			n = sym_mul(g->ir->syms, n, node_dim(g, x, k));
	return n;
}

/* Sets *operand to that of the scores which has the keys, if few rows multiply each. */
static bool has_few_rows(const Find *f, const AttentionNodes *a, uint32_t *operand)
{
	const Graph *g = f->g;
	const Sym keys = node_dim(g, a->logits, a->keys);
	int64_t rows;
	for (uint32_t k = 0; k < 2; k++) {
		*operand = 1 - k;
		if (sym_is_const(graph_syms(g), free_extent(g, a->scores, k), &rows) && rows > 0 &&
		    rows <= MOST_FEW && free_extent(g, a->scores, 1 - k).i == keys.i &&
		    !sym_is(graph_syms(g), keys, rows))
			return true;
	}
	return false;
}

/* Whether all that read n, behind index maps, multiply it as keys or values of few rows, or decode
 * these of it. */
static bool feeds_few(const Find *f, const uint8_t *decodes, Node n)
{
	const Graph *g = f->g;
	TRY(f->output[n.i] == NO_OUTPUT && !f->stored[n.i]);
	for (Use u = node_data(g, n)->first_use; u.i; u = g->use.data[u.i].next) {
		const Node user = g->use.data[u.i].user;
		TRY(user.i);
		if (f->found[user.i].narrow ||
		    decodes[user.i] >> (u.i - node_data(g, user)->in) & 1)
			continue;
		TRY(lower_is_map(op_lower(node_op(g, user))) && feeds_few(f, decodes, user));
	}
	return true;
}

/* Returns the bytes of what n is computed of element by element; more than there can be if it takes
 * more than a few operations. */
static double bytes_below(const Find *f, Node n, uint32_t *left)
{
	const Graph *g = f->g;
	double bytes = 0;
	while (lower_is_map(op_lower(node_op(g, n))))
		n = node_in(g, n, 0);
	if (op_lower(node_op(g, n))->role == LOWER_LEAF)
		return 0;
	if (op_lower(node_op(g, n))->role != LOWER_MAP || f->stored[n.i])
		return (double)sym_hint(graph_syms(g), type_numel(g->ir, node_type_id(g, n))) *
		       (double)dtype_size(node_dtype(g, n));
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		if (!node_in(g, n, k).i || !*left)
			return INFINITY;
		--*left;
		bytes += bytes_below(f, node_in(g, n, k), left);
	}
	return bytes;
}

/* Marks what is decoded, from an operand downwards, unless others read it. */
static void mark_narrow(Find *f, const uint8_t *decodes, Node n)
{
	const Graph *g = f->g;
	while (lower_is_map(op_lower(node_op(g, n))))
		n = node_in(g, n, 0);
	if (op_lower(node_op(g, n))->role != LOWER_MAP || f->found[n.i].inside ||
	    !feeds_few(f, decodes, n))
		return;
	f->found[n.i].inside = f->found[n.i].narrow = true;
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		mark_narrow(f, decodes, node_in(g, n, k));
}

static void find_narrow(Find *f)
{
	enum { MOST_NARROW = 16 };
	const Graph *g = f->g;
	uint8_t *decodes =
		ARENA_ARRAY(f->arena, uint8_t, g->node.n); /* by node: operands, by bit */
	for (uint32_t pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < f->candidate.n; i++) {
			const AttentionNodes *a = f->candidate.data[i].attention;
			uint32_t key;
			if (f->candidate.data[i].gone || !a || !has_few_rows(f, a, &key))
				continue;
			const Node from[2] = {a->scores, a->result};
			const uint32_t operand[2] = {key, 1 - a->operand};
			for (uint32_t k = 0; k < 2; k++) {
				const Node x = node_in(g, from[k], operand[k]);
				uint32_t left = MOST_NARROW;
				if (!pass)
					decodes[from[k].i] |= (uint8_t)(1u << operand[k]);
				else if (bytes_below(f, x, &left) <
					 0.75 * 4 *
						 (double)sym_hint(
							 graph_syms(g),
							 type_numel(g->ir, node_type_id(g, x))))
					mark_narrow(f, decodes, x);
			}
		}
}

static void find_candidates(Find *f, Node n)
{
	AttentionNodes a;
	WeightedNodes w;
	for (uint32_t k = 0; k < 2; k++)
		if (find_of(f, n, k, &a)) {
			add_candidate(f, (Candidate){.attention = arena_dup(f->arena, &a, sizeof a),
						     .result = n,
						     .operand = k});
			return;
		}
	for (uint32_t k = 0; k < 2; k++)
		if (find_weighted(f, n, k, &w)) {
			add_candidate(f, (Candidate){.weighted = arena_dup(f->arena, &w, sizeof w),
						     .result = n,
						     .operand = k});
			return;
		}
}

const FoundAttention *find_attentions(const Graph *g, const Target *t, const char *const *stored,
				      Arena *arena)
{
	Find f = {.g = g, .stored = stored, .arena = arena};
	uint32_t place = 0;
	f.found = ARENA_ARRAY(arena, FoundAttention, g->node.n);
	if (t->gpu || t->isa.of_block)
		return f.found;
	f.output = ARENA_ARRAY(arena, IsOutput, g->node.n);
	f.place = ARENA_ARRAY(arena, uint32_t, g->node.n);
	f.in = arena_alloc(arena, g->node.n * sizeof *f.in);
	memset(f.in, 0, g->node.n * sizeof *f.in);
	for (uint32_t k = 0; k < g->output.n; k++) {
		const IsOutput is = g->output.data[k].writes >= 0 ? REPLACES : IS_OUTPUT;
		const Node n[2] = {lower_output(g, k), g->output.data[k].node};
		for (uint32_t i = 0; i < 2; i++)
			if (f.output[n[i].i] < is)
				f.output[n[i].i] = is;
	}
	for (Node n = g->first; n.i; n = node_next(g, n))
		f.place[n.i] = ++place;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		WeightedNodes w;
		if (node_is_contraction(g, n))
			find_candidates(&f, n);
		else if (find_sum_of_weights(&f, n, &w))
			add_candidate(&f, (Candidate){.weighted = arena_dup(arena, &w, sizeof w),
						      .result = n});
	}
	do
		close_all(&f);
	while (!store_rows_for_sums(&f));
	for (uint32_t k = 0; k < f.candidate.n; k++)
		if (!f.candidate.data[k].gone)
			publish(&f, &f.candidate.data[k]);
	if (t->isa.vector_bytes) /* decoding needs the form of few rows, whose arrays must fit */
		find_narrow(&f);
	for (Node n = g->last; n.i; n = node_prev(g, n))
		if (f.found[n.i].inside && !f.found[n.i].row && !f.found[n.i].narrow)
			spread(&f, n);
	return f.found;
}
