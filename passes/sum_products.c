/* A sum of products of matrices of one size becomes a product of all their terms:
 *
 *   %p = contract(%a, %b, sum_x=[0], sum_y=[0])
 *   %q = contract(%c, %d, sum_x=[0], sum_y=[0])
 *   %s = add(%p, %q)                            ->  %s = contract(concat(%a, %c), concat(%b, %d))
 *
 * The gradient of weights that a network uses several times, as a recurrent layer does at each
 * step, is such a sum: of results as large as the weights, each of few terms. The terms are added
 * in another order, so this is no rule of simplify. Once, on what is otherwise done. */
#include <string.h>

#include "passes/common/questions.h"
#include "passes/pass.h"

/* ---- what is added ---- */

/* Whether n adds numbers of f32 or f64: these sums are rounded as those in a product. */
static bool adds(const Graph *g, Node n)
{
	const OpInfo *op = op_info(node_op(g, n));
	const DType d = node_dtype(g, n);
	return op->commutes && op->linear == LINEAR_TOGETHER && (d == DT_f32 || d == DT_f64);
}

/* Whether n adds, and only one node that adds reads it: that one is the sum. */
static bool is_part(const Graph *g, Node n)
{
	if (!adds(g, n) || node_nuses(g, n) != 1)
		return false;
	const Node user = node_first_user(g, n);
	return user.i && adds(g, user) && same_shape(g, n, user);
}

typedef ARRAY(Node) Nodes;

/* Appends the operands of a sum, and of sums that are its operands, in their order. */
static void collect(const Graph *g, Arena *arena, Node sum, Nodes *out)
{
	Nodes open = {0};
	array_push(arena, &open, sum);
	while (open.n) {
		const Node n = open.data[--open.n];
		if (n.i != sum.i && !is_part(g, n)) {
			array_push(arena, out, n);
			continue;
		}
		array_push(arena, &open, node_in(g, n, 1));
		array_push(arena, &open, node_in(g, n, 0));
	}
}

/* ---- products ---- */

static double elements(const Graph *g, Node n)
{
	double product = 1;
	for (uint32_t k = 0; k < node_rank(g, n); k++)
		product *= (double)sym_hint(graph_syms(g), node_dim(g, n, k));
	return product;
}

/* Sets dim[] to the dimensions of both operands along which their terms are put side by side.
 * Returns false if the product is none of floats without rounding, has other readers, or has so
 * many terms that putting them side by side may take longer than storing the result. */
static bool has_few_terms(const Graph *g, Node n, uint32_t dim[2])
{
	static const char *const list[] = {"sum_x", "sum_y"};
	TRY(node_is_contraction(g, n) && node_nuses(g, n) == 1);
	const Node x = node_in(g, n, 0), y = node_in(g, n, 1);
	TRY(node_dtype(g, x) == node_dtype(g, n) && node_dtype(g, y) == node_dtype(g, n));
	for (uint32_t k = 0; k < 2; k++) {
		int64_t sum[MAX_RANK];
		uint32_t count;
		TRY(const_list(g, n, list[k], sum, &count) && count);
		dim[k] = (uint32_t)sum[0];
	}
	return 2 * (elements(g, x) + elements(g, y)) <= elements(g, n);
}

/* Whether x and y have one shape but for that dimension. */
static bool same_but(const Graph *g, Node x, Node y, uint32_t dim)
{
	TRY(node_rank(g, x) == node_rank(g, y));
	for (uint32_t k = 0; k < node_rank(g, x); k++)
		TRY(k == dim ||
		    sym_eq(graph_syms(g), node_dim(g, x, k), node_dim(g, y, k)) == YES);
	return true;
}

/* Whether two products multiply in the same way, and differ in how many terms they have. */
static bool same_products(const Graph *g, Node x, Node y, const uint32_t dim[2])
{
	TRY(node_op(g, x) == node_op(g, y) && node_data(g, x)->attr.i == node_data(g, y)->attr.i);
	for (uint32_t k = 0; k < 2; k++)
		TRY(same_but(g, node_in(g, x, k), node_in(g, y, k), dim[k]));
	return true;
}

/* Moves products like the first one that has few terms from *all to *like, in their order. Returns
 * false if there are none to join. */
static bool take_products(const Graph *g, Arena *arena, Nodes *all, Nodes *like, uint32_t dim[2])
{
	uint32_t of[2];
	Nodes others = {0};
	*like = (Nodes){0};
	for (uint32_t k = 0; k < all->n; k++) {
		const Node n = all->data[k];
		const bool product = has_few_terms(g, n, of);
		if (product && !like->n)
			memcpy(dim, of, sizeof of);
		const bool is = product && (!like->n || same_products(g, like->data[0], n, dim));
		array_push(arena, is ? like : &others, n);
	}
	if (like->n < 2)
		return false;
	*all = others;
	return true;
}

/* ---- the pass ---- */

/* Returns the product, in front of the sum, of the terms of all products, which stand side by
 * side. */
static Node joined(Build *b, Node sum, const Nodes *like, const uint32_t dim[2])
{
	Graph *g = b->g;
	const NodeData *first = node_data(g, like->data[0]);
	const TypeId type = first->type;
	const LocId loc = first->loc;
	const AttrId attr = first->attr;
	const Op op = node_op(g, like->data[0]);
	Node side[2], *part = ARENA_ARRAY(g->ir->ctx->scratch, Node, like->n);
	for (uint32_t k = 0; k < 2; k++) {
		for (uint32_t i = 0; i < like->n; i++)
			part[i] = node_in(g, like->data[i], k);
		side[k] = b_concat(b, part, like->n, (int)dim[k]);
	}
	return graph_add(g, sum, op, side, 2, attr, type, loc);
}

static bool join_products(Graph *g, Node sum)
{
	enum { MOST_KINDS = 4 };
	Arena *arena = g->ir->ctx->scratch;
	Nodes all = {0}, like;
	uint32_t dim[2], kinds = 0;
	collect(g, arena, sum, &all);
	Build b = pass_build(g, sum);
	for (; kinds < MOST_KINDS && take_products(g, arena, &all, &like, dim); kinds++)
		array_push(arena, &all, joined(&b, sum, &like, dim));
	if (!kinds)
		return false;
	Node total = all.data[0];
	for (uint32_t k = 1; k < all.n; k++)
		total = b_bin(&b, OP_add, total, all.data[k]);
	graph_set_name(g, total, g->node_name.data[sum.i]);
	pass_replace(g, sum, total);
	return true;
}

bool pass_sum_products(Graph *g, PassCtx *c)
{
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		if (adds(g, n) && !is_part(g, n))
			changed |= join_products(g, n);
	}
	if (changed)
		graph_dce(g);
	return pass_subgraphs(g, c, pass_sum_products) || changed;
}
