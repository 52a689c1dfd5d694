/* What nobody reads is not computed: cuts (slices, and gathers along one dimension) move towards
 * the inputs, in front of products, reductions and what is element-wise.
 *
 *   %y = contract(%x, %w, sum_x=[2], sum_y=[1]) : f32[B, L, N]
 *   %z = slice(%y, start=[0, L-1, 0], end=[B, L, N], step=[1, 1, 1]) : f32[B, 1, N]
 * becomes
 *   %s = slice(%x, start=[0, L-1, 0], end=[B, L, K], step=[1, 1, 1])
 *   %z = contract(%s, %w, sum_x=[2], sum_y=[1]) : f32[B, 1, N]
 *
 * One sweep from the outputs to the inputs asks of every node which parts of it are read (Need):
 * the cuts of its readers, or all of it. A cut passes a node if each dimension that it cuts is, in
 * each operand, one dimension of the same extent or none (Straight). A node of which a part is read
 * is then made again for that part, and its readers read that; so nothing is computed twice.
 * Several parts of one node are read together, or they are few and small.
 *
 * A cut moves only if a product or a reduction becomes smaller by it: in front of anything else,
 * kernels read no more than they need anyway. Nodes that check something, have effects or draw
 * numbers stay whole, and so does what they read. A gather that checks its indices checks the same
 * indices against the same extent where it comes to stand.
 *
 * Ends because each cut that moves stands in front of nodes behind which it stood. */
#include <string.h>

#include "ir/sym/reshape.h"
#include "passes/common/questions.h"
#include "passes/pass.h"

enum { MAX_DIMS = 4, MAX_PARTS = 3, MAX_ROUNDS = 8 };

/* One dimension of a cut: elements start, start + step, ... before end; or those at an index. */
typedef struct {
	uint32_t dim;
	Sym start, end, step, count; /* count: how many they are */
	Node index;                  /* i64[count, 1], or i64[1]; none: a slice */
	Node gather;                 /* that has the index */
} Along;

/* Sorted by dimension, zeros behind the last. */
typedef struct {
	uint32_t n;
	Along at[MAX_DIMS];
} RowsCut;

/* A part of a node's value that is read. */
typedef struct {
	RowsCut cut;
	uint32_t place; /* of the first cut, in program order, that leads to it */
	bool gains;     /* a product or a reduction becomes smaller */
	Node made;
} ReadPart;

typedef struct {
	bool all; /* the value is read, or must be computed, as a whole */
	uint32_t n;
	ReadPart part[MAX_PARTS];
} Need;

typedef struct {
	Graph *g;
	Arena *arena;
	uint32_t nold;    /* nodes with a smaller number are those that the pass has found */
	Need **need;      /* by node; NULL: nobody reads it */
	uint32_t *place;  /* by node: its place in the program */
	Node *order;      /* by place */
	bool *stays;      /* by node: a cut that does not move */
	Sym at[MAX_RANK]; /* an index of a result, for .index; and an axis, a start */
	Sym axis;
} RowsPass;

/* Dimension d of a result is dimension to[k][d] of operand k, from the first element to the last;
 * -1: operand k is read without regard to it; -2: in another way. */
typedef int8_t Straight[MAX_RANK];
enum { APART = -1, BENT = -2 };

/* ---- how cuts pass a node ---- */

typedef struct {
	IndexMap map;
	const RowsPass *r;
	bool by_value; /* the index depends on elements */
} AskedIndex;

static Sym ask_axis(IndexMap *m, const char *name, Sym extent)
{
	(void)name;
	(void)extent;
	return ((AskedIndex *)m)->r->axis;
}

static Sym ask_value(IndexMap *m, uint32_t k, const Sym *at, Sym extent, IndexMode mode)
{
	(void)k;
	(void)at;
	(void)extent;
	(void)mode;
	((AskedIndex *)m)->by_value = true;
	return ((AskedIndex *)m)->r->axis;
}

/* Notes that dimension d of n is dimension k of operand x, if both have the same extent. */
static void join_dims(const Graph *g, Node n, uint32_t d, Node x, uint32_t k, int8_t *to)
{
	to[d] = to[d] == APART && node_dim(g, n, d).i == node_dim(g, x, k).i ? (int8_t)k : BENT;
}

/* Follows the dimensions of n to x, by the indices in[] that an operator reads. */
static void follow(const RowsPass *r, Node n, Node x, const Sym *in, Straight to)
{
	const SymTab *syms = graph_syms(r->g);
	for (uint32_t d = 0; d < node_rank(r->g, n); d++)
		for (uint32_t k = 0; k < node_rank(r->g, x); k++) {
			if (in[k].i == r->at[d].i)
				join_dims(r->g, n, d, x, k, to);
			else if (in[k].i && sym_uses(syms, in[k], r->at[d]))
				to[d] = BENT;
		}
}

/* Follows the dimensions of a reduction: those that are left, in order. */
static void follow_reduce(const Graph *g, Node n, Straight to)
{
	uint32_t ndim, reduced = 0, d = 0;
	const Sym *dim = node_ints(g, n, "dims", &ndim);
	for (uint32_t k = 0; k < ndim; k++)
		reduced |= 1u << (uint32_t)sym_const(graph_syms(g), dim[k]);
	for (uint32_t k = 0; k < node_rank(g, node_in(g, n, 0)); k++)
		if (!(reduced >> k & 1))
			join_dims(g, n, d++, node_in(g, n, 0), k, to);
}

/* Follows the dimensions of an index map or a sum of products. Returns false if operands are
 * read at places that depend on data. */
static bool follow_index(const RowsPass *r, Node n, uint32_t k, Straight to)
{
	const Graph *g = r->g;
	const OpLower *l = op_lower(node_op(g, n));
	bool holds = l->holds == HOLDS_OPERANDS;
	AskedIndex a = {.map = {.g = g,
				.n = n,
				.operand = k,
				.start = r->axis,
				.at = r->at,
				.axis = ask_axis,
				.value = ask_value},
			.r = r};
	if (!l->index || (l->role == LOWER_INDEX && k && !holds && node_rank(g, node_in(g, n, k))))
		return false;
	l->index(&a.map);
	if (!a.by_value && (k == 0 || holds || l->role == LOWER_ANCHOR))
		follow(r, n, node_in(g, n, k), a.map.in[holds ? 0 : k], to);
	return !a.by_value;
}

/* Sets to[] for operand k. False: nothing passes n. */
static bool straight(const RowsPass *r, Node n, uint32_t k, Straight to)
{
	const Graph *g = r->g;
	const Node x = node_in(g, n, k);
	memset(to, APART, MAX_RANK);
	if (!node_is_tensor(g, x))
		return false;
	switch (op_lower(node_op(g, n))->role) {
	case LOWER_MAP:
		TRY(node_rank(g, x) == node_rank(g, n));
		for (uint32_t d = 0; d < node_rank(g, n); d++)
			join_dims(g, n, d, x, d, to);
		return true;
	case LOWER_REDUCE:
		follow_reduce(g, n, to);
		return true;
	case LOWER_INDEX:
	case LOWER_ANCHOR:
		/* where a window's padding is still to be made explicit, it has no index */
		return !op_lower(node_op(g, n))->bordered && follow_index(r, n, k, to);
	default:
		return false;
	}
}

/* Returns the product of the extents [from, end), but for that of `without`. */
static Sym product(const Graph *g, Node x, uint32_t from, uint32_t end, uint32_t without)
{
	Sym all = sym_int(graph_syms(g), 1);
	for (uint32_t k = from; k < end; k++)
		if (k != without)
			all = sym_mul(graph_syms(g), all, node_dim(g, x, k));
	return all;
}

/* Returns the end of `count` elements from start on, one in `every`. */
static Sym end_of(SymTab *syms, Sym start, Sym count, Sym every)
{
	const Sym last = sym_add(syms, start, sym_mul(syms, sym_addi(syms, count, -1), every));
	return sym_addi(syms, last, 1);
}

/* Makes one row of each matrix every L-th row of all: n[B, L] of x[B * L]. Returns false where
 * that is not provable. */
static bool split_along(const Graph *g, Node n, const Along *a, const ReshapeGroup *group,
			Along *to)
{
	SymTab *syms = graph_syms(g);
	const Sym one = sym_int(syms, 1), every = node_dim(g, n, a->dim),
		  rest = product(g, n, group->to, group->to_end, a->dim),
		  end = end_of(syms, a->start, rest, every);
	*to = (Along){
		.dim = group->from, .start = a->start, .end = end, .step = every, .count = rest};
	return a->dim + 1 == group->to_end && is_one(g, a->count) && is_one(g, a->step) &&
	       sym_lt(syms, a->start, every) == YES && sym_le(syms, one, rest) == YES &&
	       sym_ceildiv(syms, sym_sub(syms, end, a->start), every).i == rest.i;
}

/* Does as split_along, the other way: n[B * L] of x[B, L]. */
static bool join_along(const Graph *g, Node n, const Along *a, const ReshapeGroup *group, Along *to)
{
	SymTab *syms = graph_syms(g);
	const Node x = node_in(g, n, 0);
	const uint32_t last = group->from_end - 1;
	const Sym one = sym_int(syms, 1);
	*to = (Along){.dim = last,
		      .start = a->start,
		      .end = sym_addi(syms, a->start, 1),
		      .step = one,
		      .count = one};
	return a->step.i == node_dim(g, x, last).i &&
	       a->end.i == end_of(syms, a->start, a->count, a->step).i &&
	       a->count.i == product(g, x, group->from, last, last).i &&
	       sym_lt(syms, a->start, a->step) == YES;
}

/* Sets *to to what *a reads of the operand of a reshape that joins or divides the dimension. */
static bool regroup(const Graph *g, Node n, const Along *a, Along *to)
{
	const Node x = node_in(g, n, 0);
	ReshapeGroup group = {0};
	TRY(op_lower(node_op(g, n))->keeps == KEEPS_ORDER && !a->index.i);
	while (reshape_group(graph_syms(g), node_type(g, x)->dim, node_rank(g, x),
			     node_type(g, n)->dim, node_rank(g, n), &group)) {
		if (a->dim < group.to || a->dim >= group.to_end)
			continue;
		if (group.from_end == group.from + 1)
			return split_along(g, n, a, &group, to);
		return group.to_end == group.to + 1 && group.from_end > group.from &&
		       join_along(g, n, a, &group, to);
	}
	return false;
}

static void add_along(RowsCut *c, Along a)
{
	uint32_t at = c->n++;
	for (; at > 0 && c->at[at - 1].dim > a.dim; at--)
		c->at[at] = c->at[at - 1];
	c->at[at] = a;
}

/* Sets *to to the part of the operand that the part `from` of n reads: nothing but zeros if that is
 * all of it. False: the cut does not pass. */
static bool pass_cut(const Graph *g, Node n, const RowsCut *from, const Straight dim, RowsCut *to)
{
	const bool reshapes = op_lower(node_op(g, n))->keeps == KEEPS_ORDER;
	uint32_t regrouped = 0;
	*to = (RowsCut){0};
	for (uint32_t k = 0; k < from->n; k++) {
		Along a = from->at[k], own = a;
		if (dim[a.dim] == APART) {
			/* a reshape repeats nothing: 0 or 2 of its extent 1 are no part of it */
			TRY(!reshapes || is_one(g, a.count));
			continue;
		}
		if (dim[a.dim] == BENT)
			TRY(regrouped++ == 0 && regroup(g, n, &own, &a));
		else
			a.dim = (uint32_t)dim[a.dim];
		add_along(to, a);
	}
	return true;
}

/* Whether n is a node of elements that have nothing to do with each other, or of sums of them. */
static bool may_pass(const Graph *g, Node n)
{
	const OpInfo *info = op_info(node_op(g, n));
	const OpLower *l = op_lower(node_op(g, n));
	return node_is_tensor(g, n) && node_nin(g, n) && !info->apart && !info->foreign &&
	       !node_has_effect(g, n) && !node_has_graph(g, n) &&
	       node_checks(g, n) == CHECKS_NOTHING && !l->updates;
}

/* Whether n, if a reshape, provably has as many elements as its operand: another one gets
 * another condition on sizes when it is made again. */
static bool is_provable(const Graph *g, Node n)
{
	if (op_lower(node_op(g, n))->keeps != KEEPS_ORDER)
		return true;
	SymTab *syms = graph_syms(g);
	return sym_eq(syms, type_numel(g->ir, node_type_id(g, n)),
		      type_numel(g->ir, node_type_id(g, node_in(g, n, 0)))) == YES;
}

static bool has_index(const RowsCut *c)
{
	for (uint32_t k = 0; k < c->n; k++)
		if (c->at[k].index.i)
			return true;
	return false;
}

/* Sets operand[k] to what the part `cut` of n reads of operand k. */
static bool pass(const RowsPass *r, Node n, const RowsCut *cut, RowsCut *operand)
{
	const Graph *g = r->g;
	Straight dim;
	bool whole = true;
	TRY(may_pass(g, n) && is_provable(g, n));
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		TRY(straight(r, n, k, dim) && pass_cut(g, n, cut, dim, &operand[k]));
		whole &= operand[k].n < cut->n;
	}
	/* an index that nothing reads any more would not be checked */
	return !whole || !has_index(cut);
}

/* ---- what is read ---- */

static Need *need_of(RowsPass *r, Node x)
{
	if (!r->need[x.i])
		r->need[x.i] = arena_calloc(r->arena, 1, sizeof(Need));
	return r->need[x.i];
}

static ReadPart *find_part(const RowsPass *r, Node x, const RowsCut *c)
{
	Need *need = x.i < r->nold ? r->need[x.i] : NULL;
	for (uint32_t k = 0; need && !need->all && k < need->n; k++)
		if (memcmp(&need->part[k].cut, c, sizeof *c) == 0)
			return &need->part[k];
	return NULL;
}

static void need_part(RowsPass *r, Node x, const RowsCut *c, uint32_t place)
{
	Need *need = need_of(r, x);
	ReadPart *part = find_part(r, x, c);
	if (part)
		part->place = place < part->place ? place : part->place;
	else if (c->n == 0 || need->n == MAX_PARTS)
		need->all = true;
	else if (!need->all)
		need->part[need->n++] = (ReadPart){.cut = *c, .place = place};
}

static void need_operands(RowsPass *r, Node n)
{
	for (uint32_t k = 0; k < node_nin(r->g, n); k++)
		if (node_in(r->g, n, k).i)
			need_of(r, node_in(r->g, n, k))->all = true;
}

/* Whether n has some elements of the operand along its dimensions, from `start` to `end`. */
static bool is_slice(const Graph *g, Node n)
{
	const Op op = node_op(g, n);
	return op_info(op)->moves && op_arg_index(op, "start") > 0 && op_arg_index(op, "step") > 0;
}

/* Whether n has elements of operand 0 where operand 1 says. */
static bool is_gather(const Graph *g, Node n)
{
	const Op op = node_op(g, n);
	return op_lower(op)->role == LOWER_INDEX && op_info(op)->checks == CHECKS_INDEX;
}

/* Sets *c to the cut that the slice n is. Returns false if it cuts nothing, or more dimensions
 * than a cut has. */
static bool slice_cut(const Graph *g, Node n, RowsCut *c)
{
	uint32_t rank;
	const Sym *start = node_ints(g, n, "start", &rank), *end = node_ints(g, n, "end", &rank),
		  *step = node_ints(g, n, "step", &rank);
	for (uint32_t d = 0; d < rank; d++) {
		if (node_dim(g, n, d).i == node_dim(g, node_in(g, n, 0), d).i)
			continue;
		TRY(c->n < MAX_DIMS);
		c->at[c->n++] = (Along){.dim = d,
					.start = start[d],
					.end = end[d],
					.step = step[d],
					.count = node_dim(g, n, d)};
	}
	return c->n;
}

/* Sets *c to the cut that the gather n is: of one dimension, at places in one dimension or at
 * one place. Returns false for another gather. */
static bool gather_cut(const Graph *g, Node n, RowsCut *c)
{
	uint32_t naxes;
	const Node index = node_in(g, n, 1);
	const Sym *axis = node_ints(g, n, "axes", &naxes);
	const uint32_t rank = node_rank(g, index);
	TRY(naxes == 1 && rank <= 2 && node_int(g, n, "batch") == 0);
	/* the element does not exist: zero is no function of it */
	TRY(node_index_mode(g, n) != INDEX_FILL);
	c->at[c->n++] =
		(Along){.dim = (uint32_t)sym_const(graph_syms(g), axis[0]),
			.count = rank == 2 ? node_dim(g, index, 0) : sym_int(graph_syms(g), 1),
			.index = index,
			.gather = n};
	return true;
}

static bool find_cut(const RowsPass *r, Node n, RowsCut *c)
{
	*c = (RowsCut){0};
	if (r->stays[n.i])
		return false;
	return is_slice(r->g, n)    ? slice_cut(r->g, n, c)
	       : is_gather(r->g, n) ? gather_cut(r->g, n, c)
				    : false;
}

/* Returns the share of a part in the elements of the whole, at the hints. A few of a number that
 * is a symbol are a part, whatever its hint. */
static double share(const Graph *g, Node n, const RowsCut *c)
{
	const SymTab *syms = graph_syms(g);
	double part = 1;
	for (uint32_t k = 0; k < c->n; k++) {
		const Sym extent = node_dim(g, n, c->at[k].dim);
		double all = (double)sym_hint(syms, extent),
		       some = (double)sym_hint(syms, c->at[k].count);
		int64_t number;
		bool few = !sym_is_const(syms, extent, &number) &&
			   sym_is_const(syms, c->at[k].count, &number);
		if (few || (c->at[k].step.i && !sym_is_const(syms, c->at[k].step, &number)))
			all *= 16;
		part *= some < all ? some / all : 1;
	}
	return part;
}

/* Whether making the parts again pays: they are half of n at most; several parts, which read the
 * other operands each, an eighth. */
static bool pays(const Graph *g, Node n, const Need *need)
{
	double sum = 0;
	for (uint32_t k = 0; k < need->n; k++)
		sum += share(g, n, &need->part[k].cut);
	return sum <= (need->n > 1 ? 1.0 / 8 : 1.0 / 2);
}

/* Whether n is made again for each part that is read of it. */
static bool is_divided(RowsPass *r, Node n, Need *need)
{
	RowsCut in[MAX_PARTS][4];
	uint32_t nin = node_nin(r->g, n);
	TRY(need->n && !need->all && nin);
	RowsCut *big = nin > 4 ? ARENA_ARRAY(r->arena, RowsCut, (size_t)nin * need->n) : NULL;
	for (uint32_t p = 0; p < need->n; p++)
		TRY(pass(r, n, &need->part[p].cut, big ? big + p * nin : in[p]));
	TRY(pays(r->g, n, need));
	for (uint32_t p = 0; p < need->n; p++)
		for (uint32_t k = 0; k < nin; k++)
			need_part(r, node_in(r->g, n, k), big ? &big[p * nin + k] : &in[p][k],
				  need->part[p].place);
	return true;
}

static void visit(RowsPass *r, Node n)
{
	Need *need = r->need[n.i];
	RowsCut c;
	if (!need && !node_has_effect(r->g, n))
		return; /* dead */
	if (need && is_divided(r, n, need))
		return;
	if (need)
		need->all = true;
	if (!find_cut(r, n, &c)) {
		need_operands(r, n);
		return;
	}
	need_part(r, node_in(r->g, n, 0), &c, r->place[n.i]);
	for (uint32_t k = 1; k < node_nin(r->g, n); k++)
		need_of(r, node_in(r->g, n, k))->all = true;
}

static void find_needs(RowsPass *r)
{
	const Graph *g = r->g;
	memset(r->need, 0, r->nold * sizeof(Need *));
	for (uint32_t k = 0; k < g->output.n; k++)
		need_of(r, g->output.data[k].node)->all = true;
	for (Node n = g->last; n.i; n = node_prev(g, n))
		visit(r, n);
}

/* ---- what becomes smaller ---- */

static bool is_work(const Graph *g, Node n)
{
	LowerRole role = op_lower(node_op(g, n))->role;
	return role == LOWER_REDUCE || role == LOWER_ANCHOR;
}

static void find_gain(const RowsPass *r, Node n, ReadPart *part)
{
	const uint32_t nin = node_nin(r->g, n);
	RowsCut *in = ARENA_ARRAY(r->arena, RowsCut, nin);
	part->gains = is_work(r->g, n);
	if (part->gains || !pass(r, n, &part->cut, in))
		return;
	for (uint32_t k = 0; k < nin; k++) {
		const ReadPart *below = find_part(r, node_in(r->g, n, k), &in[k]);
		part->gains |= below && below->gains;
	}
}

/* Cuts that make no product and no reduction smaller stay. True: there were some, so more may be
 * read as a whole. */
static bool find_gains(RowsPass *r, bool *any)
{
	const Graph *g = r->g;
	bool more = false;
	RowsCut c;
	*any = false;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Need *need = r->need[n.i];
		for (uint32_t k = 0; need && !need->all && k < need->n; k++)
			find_gain(r, n, &need->part[k]);
		if (!need || !need->all || !find_cut(r, n, &c))
			continue;
		const ReadPart *part = find_part(r, node_in(g, n, 0), &c);
		bool gains = part && part->gains;
		r->stays[n.i] = !gains;
		more |= !gains;
		*any |= gains;
	}
	return more;
}

/* ---- making parts ---- */

/* Gives the new node the name of the old one, of which what is left is dead, or goes by a
 * number. */
static void take_name(Graph *g, Node new, Node old)
{
	if (g->node_name.data[new.i])
		return;
	g->node_name.data[new.i] = g->node_name.data[old.i];
	g->node_name.data[old.i] = NULL;
}

/* Gathers x at an index along one dimension, which stays where it is. A message names the
 * gather. */
static Node gather_along(Build *b, Node x, const Along *a)
{
	Graph *g = b->g;
	const Sym dim = b_int(b, a->dim), column[] = {a->count, b_int(b, 1)};
	const Attr attr[] = {attr_none(), attr_none(), attr_int(g->ir, 0), attr_ints(&dim, 1),
			     *node_attr(g, a->gather, "mode")};
	uint32_t perm[MAX_RANK];
	const LocId loc = b->loc;
	b->loc = node_data(g, a->gather)->loc;
	const Node in[] = {x, b_reshape(b, a->index, 2, column)};
	const Node y = b_node(b, OP_gather, in, 2, attr, 5);
	b->loc = loc;
	take_name(g, y, a->gather);
	for (uint32_t k = 0; k < node_rank(g, x); k++)
		perm[k] = k < a->dim ? k + 1 : k == a->dim ? 0 : k;
	return b_permute(b, y, perm);
}

static Node cut_node(Build *b, Node x, const RowsCut *c)
{
	for (uint32_t k = 0; k < c->n; k++) {
		const Along *a = &c->at[k];
		x = a->index.i ? gather_along(b, x, a)
			       : b_slice(b, x, (int)a->dim, a->start, a->end, a->step);
	}
	return x;
}

/* Returns the type of a part of n. */
static TypeId part_type(const Graph *g, Node n, const RowsCut *c)
{
	Type t = *node_type(g, n);
	Sym dim[MAX_RANK];
	memcpy(dim, t.dim, t.n * sizeof *dim);
	for (uint32_t k = 0; k < c->n; k++)
		dim[c->at[k].dim] = c->at[k].count;
	return ir_type(g->ir, t.dtype, t.n, dim);
}

/* Returns the attributes of a part: those of n but for the extents of the result, `shape`, and
 * `end` of a slice. */
static AttrId part_attrs(Build *b, Node n, const RowsCut *c)
{
	static const char *const extents[] = {"shape", "end"};
	const Graph *g = b->g;
	const Schema *schema = op_schema(node_op(g, n));
	Attr attr[MAX_ARGS];
	Sym list[MAX_RANK];
	node_copy_attrs(g, n, attr);
	for (uint32_t k = 0; k < 2; k++) {
		const int at = op_arg_index(node_op(g, n), extents[k]);
		uint32_t rank;
		if (at < 0)
			continue;
		const Sym *old = node_ints(g, n, extents[k], &rank);
		memcpy(list, old, rank * sizeof *list);
		for (uint32_t d = 0; d < c->n; d++)
			list[c->at[d].dim] = c->at[d].count;
		attr[at] = attr_ints(list, rank);
	}
	return ir_attrs(g->ir, schema->narg, attr);
}

/* Makes a part in front of the first cut that leads to it: what the cut is of stands in front of
 * that. */
static void make_part(RowsPass *r, Node n, ReadPart *part)
{
	Graph *g = r->g;
	Build b = pass_build(g, r->order[part->place]);
	const uint32_t nin = node_nin(g, n);
	Node *in = ARENA_ARRAY(r->arena, Node, nin);
	RowsCut *cut = ARENA_ARRAY(r->arena, RowsCut, nin);
	b.loc = node_data(g, n)->loc;
	if (!pass(r, n, &part->cut, cut))
		ctx_bug(g->ir->ctx, "a cut passes %s no more", node_where(g, n));
	for (uint32_t k = 0; k < nin; k++) {
		const Node x = node_in(g, n, k);
		const ReadPart *below = find_part(r, x, &cut[k]);
		in[k] = below ? below->made : cut_node(&b, x, &cut[k]);
	}
	const AttrId attrs = part_attrs(&b, n, &part->cut);
	const TypeId type = op_infer(&b, node_op(g, n), in, nin, attrs);
	const bool same = type.i == part_type(g, n, &part->cut).i;
	part->made = same ? graph_add(g, b.before, node_op(g, n), in, nin, attrs, type, b.loc)
			  : cut_node(&b, n, &part->cut);
	if (same)
		take_name(g, part->made, n);
}

/* Returns the value of the cut n, of a part of its operand that keeps all dimensions. */
static Node made_of(Build *b, Node n, Node part, const RowsCut *c)
{
	const Type t = *node_type(b->g, n);
	uint32_t perm[MAX_RANK], dim = c->at[0].dim;
	if (!c->at[0].index.i || t.n < node_rank(b->g, part))
		return c->at[0].index.i ? b_reshape(b, part, t.n, t.dim) : part;
	for (uint32_t k = 0; k < t.n; k++)
		perm[k] = k == 0 ? dim : k <= dim ? k - 1 : k;
	return b_permute(b, part, perm);
}

static bool move_cut(RowsPass *r, Node n)
{
	Graph *g = r->g;
	const Need *need = r->need[n.i];
	RowsCut c;
	if (!need || !need->all || !find_cut(r, n, &c))
		return false;
	const ReadPart *part = find_part(r, node_in(g, n, 0), &c);
	if (!part)
		return false;
	Build b = pass_build(g, n);
	const Node new = made_of(&b, n, part->made, &c);
	const bool is_same =
		node_op(g, new) == node_op(g, n) && node_in(g, new, 0).i == node_in(g, n, 0).i;
	if (is_same || node_type_id(g, new).i != node_type_id(g, n).i)
		return false;
	pass_replace(g, n, new);
	return true;
}

static bool move_cuts(RowsPass *r)
{
	Graph *g = r->g;
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		Need *need = n.i < r->nold ? r->need[n.i] : NULL;
		for (uint32_t k = 0; need && !need->all && k < need->n; k++)
			make_part(r, n, &need->part[k]);
		if (need)
			changed |= move_cut(r, n);
	}
	return changed;
}

/* ---- the pass ---- */

static bool has_cuts(const Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if ((is_slice(g, n) || is_gather(g, n)) && node_nuses(g, n))
			return true;
	return false;
}

static RowsPass rows_of(Graph *g)
{
	SymTab *syms = graph_syms(g);
	Arena *arena = g->ir->ctx->scratch;
	const Sym most = sym_int(syms, INT32_MAX);
	uint32_t place = 0;
	RowsPass r = {.g = g,
		      .arena = arena,
		      .nold = g->node.n,
		      .need = ARENA_ARRAY(arena, Need *, g->node.n),
		      .place = ARENA_ARRAY(arena, uint32_t, g->node.n),
		      .order = ARENA_ARRAY(arena, Node, g->node.n),
		      .stays = arena_calloc(arena, g->node.n, sizeof(bool)),
		      .axis = sym_axis(syms, "k", most)};
	for (uint32_t d = 0; d < MAX_RANK; d++)
		r.at[d] = sym_axis(syms, "i", most);
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		r.order[place] = n;
		r.place[n.i] = place++;
	}
	return r;
}

bool pass_rows(Graph *g, PassCtx *c)
{
	bool changed = false, any = false, more = has_cuts(g);
	if (more) {
		RowsPass r = rows_of(g);
		for (uint32_t round = 0; more && round < MAX_ROUNDS; round++) {
			find_needs(&r);
			more = find_gains(&r, &any);
		}
		changed = any && !more && move_cuts(&r);
	}
	return pass_subgraphs(g, c, pass_rows) || changed;
}
