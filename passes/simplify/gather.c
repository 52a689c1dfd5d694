/* A gather of functions of rows, of which it takes few elements, becomes those functions of what is
 * gathered. The loss of a classifier is an example, which takes of each row of logarithms of
 * probabilities the one of the target:
 *
 *   %high = reduce(%x, max)
 *   %c = sub(%x, broadcast(%high))          ->   %z = gather(%x, %i)
 *   %y = gather(%c, %i)                          %y = sub(%z, broadcast(%high))
 *
 * A function of a row reads a reduction of it, so the row is in memory anyway, or is computed again;
 * then %c need not be. Other functions stay in front of the gather: a bias that is added to a
 * product is part of the product's kernel. */
#include <string.h>

#include "ops/rules/rules.h"
#include "passes/simplify/rules.h"

enum {
	MOST_STEPS = 12,
	MOST_DEPTH = 8, /* of nodes between a reduction and what reads it by row */
	LESS = 8        /* times as many elements are gathered as there are */
};

/* A node on the way from a gather to what is gathered. */
typedef struct {
	Node n;
	uint32_t through;      /* its operand that is on the way */
	uint32_t at[MAX_RANK]; /* by dimension of the gather's operand: that of n */
} Step;

typedef struct {
	Node gather;
	uint32_t taken; /* the dimensions of its operand along which it gathers, as bits */
	uint32_t batch, places, rank; /* its batch dimensions, those of places, of its operand */
	uint32_t n, whole;            /* steps; those that the gather moves in front of */
	Step step[MOST_STEPS + 1];
} Way;

/* ---- values of rows ---- */

/* Returns the dimension of the gather's result that is dimension d of its operand. */
static uint32_t place_of(const Way *w, uint32_t d)
{
	uint32_t place = d < w->batch ? d : w->batch + w->places;
	for (uint32_t k = w->batch; k < d; k++)
		place += !(w->taken >> k & 1);
	return place;
}

/* Returns the dimension of the gather's operand that is dimension k of the step's node. */
static uint32_t origin_of(const Way *w, const Step *s, uint32_t k)
{
	uint32_t d = 0;
	while (d < w->rank && s->at[d] != k)
		d++;
	return d;
}

/* Sets map[] to the dimensions of the gather's result that are those of x, what a broadcast repeats
 * for the step's node, and *kept to those of x that have one, as bits. Returns false if x is no
 * value of rows, or its dimensions are in another order. */
static bool map_row(const Build *b, const Way *w, const Step *s, Node broadcast, uint32_t *map,
		    uint32_t *kept)
{
	const Node x = node_in(b->g, broadcast, 0);
	int64_t dim[MAX_RANK];
	uint32_t rank, n = 0;
	*kept = 0;
	TRY(const_list(b->g, broadcast, "map", dim, &rank));
	for (uint32_t k = 0; k < rank; k++) {
		const uint32_t d = origin_of(w, s, (uint32_t)dim[k]);
		if (w->taken >> d & 1) {
			TRY(is_one(b->g, node_dim(b->g, x, k)));
			continue;
		}
		map[n] = place_of(w, d);
		TRY(!n || map[n - 1] < map[n]);
		n++;
		*kept |= 1u << k;
	}
	return true;
}

/* Whether operand x of the step's node has one value for each row. */
static bool is_of_row(const Build *b, const Way *w, const Step *s, Node x)
{
	uint32_t map[MAX_RANK], kept;
	return node_splat(b->g, x, NULL) || (op_arg_index(node_op(b->g, x), "map") > 0 &&
					     map_row(b, w, s, x, map, &kept));
}

/* Returns what the gather would take of a value of rows. */
static Node take_row(Build *b, const Way *w, const Step *s, Node x)
{
	const Type t = *node_type(b->g, w->gather);
	Attr v;
	Sym dim[MAX_RANK];
	uint32_t map[MAX_RANK], kept, n = 0;
	if (b_splat(b, x, &v))
		return b_full_attr(b, node_dtype(b->g, x), v, t.n, t.dim);
	if (!map_row(b, w, s, x, map, &kept))
		ctx_bug(b->g->ir->ctx, "%s is no value of rows any more", node_where(b->g, x));
	const Node row = node_in(b->g, x, 0);
	for (uint32_t k = 0; k < node_rank(b->g, row); k++)
		if (kept >> k & 1)
			dim[n++] = node_dim(b->g, row, k);
	return b_broadcast_in_dim(b, b_reshape(b, row, n, dim), t.n, t.dim, map);
}

/* Whether x is a function of a reduction of so many elements. */
static bool is_of_reduction(const Graph *g, Node x, Sym elements, uint32_t depth)
{
	const OpLower *l = op_lower(node_op(g, x));
	if (l->role == LOWER_REDUCE)
		return type_numel(g->ir, node_type_id(g, node_in(g, x, 0))).i == elements.i;
	bool found = false;
	for (uint32_t k = 0; depth && !found && k < node_nin(g, x); k++)
		found = (l->role == LOWER_MAP || lower_is_map(l)) &&
			is_of_reduction(g, node_in(g, x, k), elements, depth - 1);
	return found;
}

/* ---- the way ---- */

/* Adds n, an element-wise node of one operand that has a value for each element, and others that
 * have one for each row. Sets *row if one of these is of a reduction of rows. */
static bool add_function(const Build *b, Way *w, Step *s, bool *row)
{
	const Graph *g = b->g;
	const OpInfo *op = op_info(node_op(g, s->n));
	uint32_t varying = 0;
	TRY(op_lower(node_op(g, s->n))->role == LOWER_MAP && !op->apart && !op->foreign &&
	    !node_has_effect(g, s->n) && node_checks(g, s->n) == CHECKS_NOTHING &&
	    node_nin(g, s->n) <= 4);
	*row = false;
	for (uint32_t k = 0; k < node_nin(g, s->n); k++) {
		const Node x = node_in(g, s->n, k);
		if (!is_of_row(b, w, s, x)) {
			s->through = k;
			TRY(varying++ == 0);
		} else {
			*row |= is_of_reduction(g, x, type_numel(g->ir, node_type_id(g, s->n)),
						MOST_DEPTH);
		}
	}
	w->n++;
	return varying == 1;
}

/* Adds n, a permutation; sets to[] to what the gather's dimensions are of its operand. */
static bool add_permutation(const Build *b, Way *w, Step *s, uint32_t *to)
{
	int64_t perm[MAX_RANK];
	uint32_t rank;
	TRY(op_arg_index(node_op(b->g, s->n), "perm") > 0 &&
	    const_list(b->g, s->n, "perm", perm, &rank));
	for (uint32_t d = 0; d < w->rank; d++)
		to[d] = (uint32_t)perm[s->at[d]];
	s->through = 0;
	w->n++;
	return true;
}

/* Whether the operand of a conversion has no more bytes than its result: that is what is kept. */
static bool widens(const Graph *g, Node n)
{
	return node_converts_floats(g, n) &&
	       dtype_size(node_dtype(g, node_in(g, n, 0))) <= dtype_size(node_dtype(g, n));
}

/* Follows the way until something else is between; w->step[w->whole] is then what is gathered. */
static bool find_way(const Build *b, Way *w)
{
	const Graph *g = b->g;
	Step *s = w->step;
	s->n = node_in(g, w->gather, 0);
	for (uint32_t d = 0; d < w->rank; d++)
		s->at[d] = d;
	while (w->n < MOST_STEPS && node_is_tensor(g, s->n)) {
		bool row = false;
		Step *next = s + 1;
		memcpy(next->at, s->at, sizeof s->at);
		if (!add_permutation(b, w, s, next->at) && !add_function(b, w, s, &row))
			break;
		next->n = node_in(g, s->n, s->through);
		if (row || (w->whole && w->whole + 1 == w->n && widens(g, s->n)))
			w->whole = w->n;
		s = next;
	}
	return w->whole != 0;
}

/* Whether so few elements are gathered that computing them again takes no time. */
static bool takes_few(const Graph *g, Node gather)
{
	const SymTab *syms = graph_syms(g);
	const int64_t some = sym_hint(syms, type_numel(g->ir, node_type_id(g, gather))),
		      all = sym_hint(syms, type_numel(g->ir, node_type_id(g, node_in(g, gather, 0))));
	return some <= all / LESS;
}

/* Gathers what is at the end of the way; a message names the old gather. */
static Node gather_end(Build *b, const Way *w)
{
	Graph *g = b->g;
	const Step *end = &w->step[w->whole];
	Attr attr[MAX_ARGS];
	node_copy_attrs(g, w->gather, attr);
	const Node x = b_permute(b, end->n, end->at), index = node_in(g, w->gather, 1);
	const Node y = b_node(b, node_op(g, w->gather), (Node[]){x, index}, 2, attr,
			      op_schema(node_op(g, w->gather))->narg);
	g->node_name.data[y.i] = g->node_name.data[w->gather.i];
	g->node_name.data[w->gather.i] = NULL;
	return y;
}

static Node gather_rows(Build *b, Node n)
{
	const Graph *g = b->g;
	int64_t axis[MAX_RANK];
	uint32_t naxes;
	Way w = {.gather = n, .rank = node_rank(g, node_in(g, n, 0))};
	/* an element that does not exist is 0, and no function of one */
	if (node_index_mode(g, n) == INDEX_FILL || !takes_few(g, n) ||
	    !const_list(g, n, "axes", axis, &naxes))
		return (Node){0};
	for (uint32_t k = 0; k < naxes; k++)
		w.taken |= 1u << axis[k];
	w.batch = (uint32_t)node_int(g, n, "batch");
	w.places = node_rank(g, node_in(g, n, 1)) - 1 - w.batch;
	if (!find_way(b, &w))
		return (Node){0};
	Node y = gather_end(b, &w);
	for (uint32_t i = w.whole; i-- > 0;) {
		const Step *s = &w.step[i];
		Node in[4];
		if (op_lower(node_op(g, s->n))->role != LOWER_MAP)
			continue;
		for (uint32_t k = 0; k < node_nin(g, s->n); k++)
			in[k] = k == s->through ? y : take_row(b, &w, s, node_in(g, s->n, k));
		y = b_again(b, s->n, in);
	}
	return y;
}

const Rule gather_rules[] = {
	{"gather_rows", OP_gather, gather_rows},
	{NULL, OP_none, NULL},
};
