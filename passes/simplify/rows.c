/* Rules of values of rows.
 *
 * A gather of functions of rows, of which it takes few elements, becomes those functions of what is
 * gathered. The loss of a classifier is an example, which takes of each row of logarithms of
 * probabilities the one of the target:
 *
 *   %high = reduce(%x, max)
 *   %c = sub(%x, broadcast(%high))          ->   %z = gather(%x, %i)
 *   %y = gather(%c, %i)                          %y = sub(%z, broadcast(%high))
 *
 * A function of a row reads a reduction of it, so the row is in memory anyway, or is computed
 * again; then %c need not be. Other functions stay in front of the gather: a bias that is added to
 * a product is part of the product's kernel.
 *
 * The gradient of such a loss is 0 but at the targets, and the gradient of the logarithms of a
 * softmax sums it along rows:
 *
 *   %g = select(eq(iota, broadcast(%t)), broadcast(%v), 0)   ->   %s = select(0 <= %t < n, %v, 0)
 *   %s = reduce(%g, sum)
 */
#include <string.h>

#include "ops/rules/rules.h"
#include "passes/simplify/rules.h"

enum {
	MOST_STEPS = 12,
	MOST_DEPTH = 8, /* of nodes between a reduction and what reads it by row */
	LESS = 8,       /* times as many elements are gathered as there are */
	NO_PLACE = UINT8_MAX,
	MAX_CONDITIONS = 4
};

/* ---- values of rows ---- */

/* Sets map[] to the dimensions place[] of what x, a broadcast, repeats, and *kept to those of its
 * dimensions that have one, as bits. Returns false if x differs along a dimension without a place,
 * or its dimensions are in another order. */
static bool map_row(const Graph *g, Node x, const uint32_t *place, uint32_t *map, uint32_t *kept)
{
	int64_t dim[MAX_RANK];
	uint32_t rank, n = 0;
	*kept = 0;
	TRY(const_list(g, x, "map", dim, &rank));
	for (uint32_t k = 0; k < rank; k++) {
		if (place[dim[k]] == NO_PLACE) {
			TRY(is_one(g, node_dim(g, node_in(g, x, 0), k)));
			continue;
		}
		map[n] = place[dim[k]];
		TRY(!n || map[n - 1] < map[n]);
		n++;
		*kept |= 1u << k;
	}
	return true;
}

/* Whether x, a splat or a broadcast, has one value for each row: dimension k of x is dimension
 * place[k] of rows; NO_PLACE: x does not differ along it. */
static bool is_of_rows(const Graph *g, Node x, const uint32_t *place)
{
	uint32_t map[MAX_RANK], kept;
	return node_splat(g, x, NULL) ||
	       (op_arg_index(node_op(g, x), "map") > 0 && map_row(g, x, place, map, &kept));
}

/* Returns the values of rows that x has, of that many dimensions. */
static Node take_rows(Build *b, Node x, const uint32_t *place, uint32_t rank, const Sym *extent)
{
	Attr v;
	Sym dim[MAX_RANK];
	uint32_t map[MAX_RANK], kept, n = 0;
	if (b_splat(b, x, &v))
		return b_full_attr(b, node_dtype(b->g, x), v, rank, extent);
	if (!map_row(b->g, x, place, map, &kept))
		ctx_bug(b->g->ir->ctx, "%s is no value of rows any more", node_where(b->g, x));
	const Node row = node_in(b->g, x, 0);
	for (uint32_t k = 0; k < node_rank(b->g, row); k++)
		if (kept >> k & 1)
			dim[n++] = node_dim(b->g, row, k);
	return b_broadcast_in_dim(b, b_reshape(b, row, n, dim), rank, extent, map);
}

/* ---- gathers ---- */

/* A node on the way from a gather to what is gathered. */
typedef struct {
	Node n;
	uint32_t through;         /* its operand that is on the way */
	uint32_t at[MAX_RANK];    /* by dimension of the gather's operand: that of n */
	uint32_t place[MAX_RANK]; /* by dimension of n: that of the gather's result, or NO_PLACE */
} Step;

typedef struct {
	Node gather;
	uint32_t rank;            /* of its operand */
	uint32_t place[MAX_RANK]; /* by dimension of that: the result's, or NO_PLACE */
	uint32_t n, whole;        /* steps; those that the gather moves in front of */
	Step step[MOST_STEPS + 1];
} Way;

/* Sets the places of the dimensions of the gather's operand. */
static bool find_places(const Graph *g, Way *w)
{
	const uint32_t batch = (uint32_t)node_int(g, w->gather, "batch"),
		       places = node_rank(g, node_in(g, w->gather, 1)) - 1 - batch;
	int64_t axis[MAX_RANK];
	uint32_t naxes, taken = 0, next = batch + places;
	TRY(const_list(g, w->gather, "axes", axis, &naxes));
	for (uint32_t k = 0; k < naxes; k++)
		taken |= 1u << axis[k];
	for (uint32_t d = 0; d < w->rank; d++)
		w->place[d] = d < batch ? d : taken >> d & 1 ? NO_PLACE : next++;
	return true;
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
static bool add_function(const Graph *g, Way *w, Step *s, bool *row)
{
	const OpInfo *op = op_info(node_op(g, s->n));
	uint32_t varying = 0;
	TRY(op_lower(node_op(g, s->n))->role == LOWER_MAP && !op->apart && !op->foreign &&
	    !node_has_effect(g, s->n) && node_checks(g, s->n) == CHECKS_NOTHING &&
	    node_nin(g, s->n) <= 4);
	*row = false;
	for (uint32_t k = 0; k < node_nin(g, s->n); k++) {
		const Node x = node_in(g, s->n, k);
		if (!is_of_rows(g, x, s->place)) {
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

/* Adds n, a permutation; sets at[] to what the gather's dimensions are of its operand. */
static bool add_permutation(const Graph *g, Way *w, Step *s, uint32_t *at)
{
	int64_t perm[MAX_RANK];
	uint32_t rank;
	TRY(op_arg_index(node_op(g, s->n), "perm") > 0 && const_list(g, s->n, "perm", perm, &rank));
	for (uint32_t d = 0; d < w->rank; d++)
		at[d] = (uint32_t)perm[s->at[d]];
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
static bool find_way(const Graph *g, Way *w)
{
	Step *s = w->step;
	s->n = node_in(g, w->gather, 0);
	for (uint32_t d = 0; d < w->rank; d++)
		s->at[d] = d;
	while (w->n < MOST_STEPS && node_is_tensor(g, s->n)) {
		bool row = false;
		Step *next = s + 1;
		for (uint32_t d = 0; d < w->rank; d++)
			s->place[s->at[d]] = w->place[d];
		memcpy(next->at, s->at, sizeof s->at);
		if (!add_permutation(g, w, s, next->at) && !add_function(g, w, s, &row))
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
		      all = sym_hint(syms,
				     type_numel(g->ir, node_type_id(g, node_in(g, gather, 0))));
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
	const Type t = *node_type(g, n);
	Way w = {.gather = n, .rank = node_rank(g, node_in(g, n, 0))};
	/* an element that does not exist is 0, and no function of one */
	if (node_index_mode(g, n) == INDEX_FILL || !takes_few(g, n) || !find_places(g, &w) ||
	    !find_way(g, &w))
		return (Node){0};
	Node y = gather_end(b, &w);
	for (uint32_t i = w.whole; i-- > 0;) {
		const Step *s = &w.step[i];
		Node in[4];
		if (op_lower(node_op(g, s->n))->role != LOWER_MAP)
			continue;
		for (uint32_t k = 0; k < node_nin(g, s->n); k++)
			in[k] = k == s->through
					? y
					: take_rows(b, node_in(g, s->n, k), s->place, t.n, t.dim);
		y = b_again(b, s->n, in);
	}
	return y;
}

/* ---- sums of one element ---- */

/* A condition that holds for one element of each row: those operands of conjunctions that are
 * equalities of numbers counted along the row with a value of the row, and other such values. */
typedef struct {
	const uint32_t *place;
	uint32_t dim; /* along which rows run */
	Node at;      /* the row's value that the numbers are equal to; none: there is none yet */
	Node more[MAX_CONDITIONS];
	uint32_t nmore;
} OneHot;

/* Whether x counts from 0 along that dimension. */
static bool counts_along(const Graph *g, Node x, uint32_t dim)
{
	int64_t map[MAX_RANK];
	uint32_t rank;
	TRY(op_arg_index(node_op(g, x), "map") > 0 && const_list(g, x, "map", map, &rank));
	const Node n = node_in(g, x, 0);
	return rank == 1 && map[0] == dim && op_lower(node_op(g, n))->role == LOWER_LEAF &&
	       op_lower(node_op(g, n))->index && node_dim(g, n, 0).i == node_dim(g, x, dim).i;
}

static bool find_one(const Graph *g, OneHot *h, Node c)
{
	if (is_scalar(g, c, SC_and))
		return find_one(g, h, node_in(g, c, 0)) && find_one(g, h, node_in(g, c, 1));
	if (is_of_rows(g, c, h->place)) {
		TRY(h->nmore < MAX_CONDITIONS);
		h->more[h->nmore++] = c;
		return true;
	}
	TRY(is_scalar(g, c, SC_eq) && !h->at.i);
	for (uint32_t k = 0; k < 2; k++)
		if (counts_along(g, node_in(g, c, k), h->dim) &&
		    is_of_rows(g, node_in(g, c, 1 - k), h->place)) {
			h->at = node_in(g, c, 1 - k);
			return true;
		}
	return false;
}

/* Rewrites a sum of rows, of which all elements but one at most are 0, as that element. */
static Node sum_one(Build *b, Node n)
{
	const Graph *g = b->g;
	const Node x = node_in(g, n, 0);
	const Type t = *node_type(g, n);
	int64_t dim[MAX_RANK];
	uint32_t ndim, place[MAX_RANK];
	if (strcmp(node_str(g, n, "kind"), "sum") != 0 || !is_scalar(g, x, SC_select) ||
	    !const_list(g, n, "dims", dim, &ndim) || ndim != 1 || !dtype_is_float(t.dtype) ||
	    !is_splat(g, node_in(g, x, 2), 0))
		return (Node){0};
	for (uint32_t k = 0; k < node_rank(g, x); k++)
		place[k] = k == dim[0] ? NO_PLACE : k > dim[0] ? k - 1 : k;
	OneHot h = {.place = place, .dim = (uint32_t)dim[0]};
	if (!is_of_rows(g, node_in(g, x, 1), place) || !find_one(g, &h, node_in(g, x, 0)) ||
	    !h.at.i)
		return (Node){0};
	const Node at = take_rows(b, h.at, place, t.n, t.dim),
		   zero = b_full(b, node_dtype(g, at), 0, t.n, t.dim),
		   end = b_broadcast(
			   b,
			   b_convert(b, b_from_size(b, node_dim(g, x, h.dim)), node_dtype(g, at)),
			   t.n, t.dim);
	const Node low = b_bin(b, OP_ge, at, zero), high = b_bin(b, OP_lt, at, end);
	Node there = b_bin(b, OP_bit_and, low, high);
	for (uint32_t k = 0; k < h.nmore; k++) {
		const Node more = take_rows(b, h.more[k], place, t.n, t.dim);
		there = b_bin(b, OP_bit_and, there, more);
	}
	const Node one = take_rows(b, node_in(g, x, 1), place, t.n, t.dim),
		   none = b_full(b, t.dtype, 0, t.n, t.dim);
	const Node y = b_select(b, there, one, none);
	return b_bin(b, OP_add, y, none); /* a sum of -0 and 0 is 0 */
}

const Rule row_rules[] = {
	{"gather_rows", OP_gather, gather_rows},
	{"sum_one", OP_reduce, sum_one},
	{NULL, OP_none, NULL},
};
