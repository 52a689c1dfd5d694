/* Drawing variants of graphs. An edit is: one operand of one node through one or two maps, a
 * contraction with its operands exchanged, an output through a map, an output that is left out when
 * a failure is reduced. */
#include "draw.h"

#include "ir/op/op.h"

uint32_t draw_below(uint64_t *state, uint32_t n)
{
	*state += 0x9e3779b97f4a7c15u;
	uint64_t x = *state;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((x ^ (x >> 31)) >> 32) % n;
}

/* ---- maps: of the operand's shape, along dimension d ---- */

typedef Node Map(Build *, Node x, uint32_t d);

static Node reversed(Build *b, Node x, uint32_t d)
{
	return b_reverse(b, x, (int)d);
}

/* All elements in another order, taken for rows of the same lengths. */
static Node reordered(Build *b, Node x, uint32_t d)
{
	uint32_t perm[MAX_RANK], rank = node_rank(b->g, x);
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = (rank - 1 - k + d) % rank;
	return b_reshape(b, b_permute(b, x, perm), rank, node_type(b->g, x)->dim);
}

/* Dimension d twice as long: all of it again, or each element again. */
static Node doubled(Build *b, Node x, uint32_t d, bool each)
{
	uint32_t rank = node_rank(b->g, x), map[MAX_RANK];
	Sym wide[MAX_RANK + 1], dim[MAX_RANK];
	for (uint32_t k = 0, n = 0; k < rank; k++) {
		if (k == d && !each)
			wide[n++] = b_int(b, 2);
		map[k] = n;
		wide[n++] = dim[k] = node_dim(b->g, x, k);
		if (k == d && each)
			wide[n++] = b_int(b, 2);
	}
	dim[d] = sym_muli(b_syms(b), dim[d], 2);
	return b_reshape(b, b_broadcast_in_dim(b, x, rank + 1, wide, map), rank, dim);
}

static Node part_of(Build *b, Node twice, uint32_t d, Sym n)
{
	Sym start = sym_divi(b_syms(b), n, 2);
	return b_slice(b, twice, (int)d, start, sym_add(b_syms(b), start, n), b_int(b, 1));
}

static Node repeated(Build *b, Node x, uint32_t d)
{
	return part_of(b, doubled(b, x, d, false), d, node_dim(b->g, x, d));
}

static Node repeated_each(Build *b, Node x, uint32_t d)
{
	return part_of(b, doubled(b, x, d, true), d, node_dim(b->g, x, d));
}

static Node every_second(Build *b, Node x, uint32_t d)
{
	Sym twice = sym_muli(b_syms(b), node_dim(b->g, x, d), 2);
	return b_slice(b, doubled(b, x, d, false), (int)d, b_int(b, 0), twice, b_int(b, 2));
}

/* The first of the dimension, everywhere; x itself where there may be none. */
static Node expanded(Build *b, Node x, uint32_t d)
{
	const Type *t = node_type(b->g, x);
	if (sym_le(b_syms(b), b_int(b, 1), t->dim[d]) != YES)
		return x;
	return b_broadcast(b, b_slice(b, x, (int)d, b_int(b, 0), b_int(b, 1), b_int(b, 1)), t->n, t->dim);
}

/* Zero, and then all but the last. */
static Node shifted(Build *b, Node x, uint32_t d)
{
	const Type *t = node_type(b->g, x);
	Sym low[MAX_RANK], high[MAX_RANK];
	for (uint32_t k = 0; k < t->n; k++)
		low[k] = high[k] = b_int(b, 0);
	low[d] = b_int(b, 1);
	high[d] = b_int(b, -1);
	if (t->dtype == DT_bool || dtype_is_complex(t->dtype) || sym_le(b_syms(b), low[d], t->dim[d]) != YES)
		return x;
	return b_pad(b, x, low, high, b_scalar(b, t->dtype, 0));
}

static bool is_real(Build *b, Node x)
{
	DType d = node_dtype(b->g, x);
	return d == DT_f32 || d == DT_f64;
}

/* A function that is not 0 at 0, so that a value where there is none shows. */
static Node computed(Build *b, Node x, uint32_t d)
{
	(void)d;
	return is_real(b, x) ? b_un(b, OP_cos, x) : x;
}

static Node with_ones(Build *b, Node x)
{
	const Type *t = node_type(b->g, x);
	Sym dim[MAX_RANK];
	for (uint32_t k = 0; k < t->n; k++)
		dim[k] = t->dim[k];
	dim[t->n] = b_int(b, 1);
	return b_reshape(b, x, t->n + 1, dim);
}

/* Every second place of a dimension twice as long, of which the first half is left: a window of one
 * element. */
static Node with_gaps(Build *b, Node x, uint32_t d)
{
	Sym n = node_dim(b->g, x, d), one = b_int(b, 1);
	if (!is_real(b, x))
		return x;
	const Attr attr[] = {attr_none(), attr_int(b->g->ir, d), attr_sym(sym_muli(b_syms(b), n, 2)), attr_int(b->g->ir, 2),
			     attr_int(b->g->ir, 1), attr_int(b->g->ir, 0)};
	Node y = b_node(b, OP_fold, (Node[]){with_ones(b, x)}, 1, attr, 6);
	return b_slice(b, y, (int)d, b_int(b, 0), n, one);
}

/* Each with the one before it. */
static Node in_pairs(Build *b, Node x, uint32_t d)
{
	if (!is_real(b, x))
		return x;
	const Attr attr[] = {attr_none(), attr_int(b->g->ir, d), attr_int(b->g->ir, 2), attr_int(b->g->ir, 1), attr_int(b->g->ir, 1),
			     attr_int(b->g->ir, 1), attr_sym(node_dim(b->g, x, d))};
	Node y = b_node(b, OP_window, &x, 1, attr, 7);
	return y.i ? b_reduce(b, REDUCE_SUM, y, 1u << node_rank(b->g, x), DT_none) : y;
}

static Map *const maps[] = {reversed, reordered, repeated, repeated_each, every_second, expanded, shifted, computed, with_gaps, in_pairs};

static Node map_some(Build *b, uint64_t *rng, Node x)
{
	uint32_t rank = node_rank(b->g, x), n = 1 + draw_below(rng, 2);
	for (uint32_t k = 0; k < 2; k++) {
		Map *map = maps[draw_below(rng, sizeof maps / sizeof *maps)];
		uint32_t d = draw_below(rng, rank);
		if (k < n && rank < MAX_RANK - 1)
			x = map(b, x, d);
	}
	return x;
}

/* ---- edits ---- */

typedef struct {
	Graph *g;
	Draw *d;
	uint64_t rng;
	Build b;
} Editor;

/* One of `of`, and not left out. */
static bool wants(Editor *e, uint32_t of)
{
	if (draw_below(&e->rng, of) || e->d->n == MAX_EDITS)
		return false;
	return !e->d->left_out[e->d->n++];
}

static bool is_tensor(const Graph *g, Node n)
{
	const Type *t = n.i ? node_type(g, n) : NULL;
	return t && t->n > 0 && t->dtype != DT_none;
}

/* What is drawn does not depend on whether it is done. */
static void map_operands(Editor *e, Node n)
{
	for (uint32_t k = 0; k < node_nin(e->g, n); k++) {
		Node x = node_in(e->g, n, k);
		if (!is_tensor(e->g, x) || node_op(e->g, x) != OP_input)
			continue;
		bool does = wants(e, 2);
		uint64_t rng = e->rng ^ 0x5851f42d4c957f2du;
		if (does)
			graph_set_operand(e->g, n, k, map_some(&e->b, &rng, x));
	}
}

/* batch, free of y, free of x: back to batch, free of x, free of y */
static Node free_swapped(Build *b, Node y, Node old)
{
	uint32_t nbatch, nsum, perm[MAX_RANK], rank = node_rank(b->g, y);
	node_ints(b->g, old, "batch_x", &nbatch);
	node_ints(b->g, old, "sum_x", &nsum);
	uint32_t nx = node_rank(b->g, node_in(b->g, old, 0)) - nbatch - nsum, ny = rank - nbatch - nx;
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = k < nbatch ? k : k < nbatch + nx ? k + ny : k - nx;
	return b_permute(b, y, perm);
}

static void exchange(Editor *e, Node n)
{
	if (node_op(e->g, n) != OP_contract || !wants(e, 3))
		return;
	const char *const of[] = {"batch_y", "batch_x", "sum_y", "sum_x", "acc", "out"};
	Attr attr[8] = {attr_none(), attr_none()};
	for (uint32_t k = 0; k < 6; k++)
		attr[2 + k] = *node_attr(e->g, n, of[k]);
	Node y = b_node(&e->b, OP_contract, (Node[]){node_in(e->g, n, 1), node_in(e->g, n, 0)}, 2, attr, 8);
	graph_replace(e->g, n, free_swapped(&e->b, y, n));
}

static void edit_outputs(Editor *e)
{
	e->b.before = (Node){0};
	for (uint32_t k = 0; k < e->g->output.n; k++) {
		Node x = e->g->output.data[k].node;
		bool does = is_tensor(e->g, x) && wants(e, 4);
		uint64_t rng = e->rng ^ 0x5851f42d4c957f2du;
		if (does)
			graph_set_output(e->g, k, map_some(&e->b, &rng, x));
	}
}

void draw_graph(Graph *g, Draw *d)
{
	Editor e = {.g = g, .d = d, .rng = d->seed};
	Node last = g->last;
	d->n = 0;
	for (Node n = g->first, next; n.i; n = next) {
		next = n.i == last.i ? (Node){0} : node_next(g, n);
		e.b = (Build){.g = g, .before = n, .loc = node_data(g, n)->loc};
		if (node_op(g, n) == OP_input)
			continue;
		map_operands(&e, n);
		exchange(&e, n);
	}
	edit_outputs(&e);
	if (!d->only)
		return;
	GraphOutput one = g->output.data[d->only - 1];
	graph_clear_outputs(g);
	graph_add_output(g, one.name, one.node, -1);
	graph_dce(g);
}
