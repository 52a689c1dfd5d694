/* Blocks with an inverse (OP_invertible): what goes into one is not saved, and not computed
 * forwards again, but by the inverse from what comes out, which is saved unless a later block's
 * inverse gives it.
 *
 *   %a = checkpoint(%x, at="begin")                       %z (saved, or what a later block's
 *                                                         inverse gives)
 *   %y = add(%a, f(%c, %w))                               %v = checkpoint(%z, at="begin")
 *   %z = invertible([%y], [%a], [%c, %w], inverse)   ->   %u = inverse(%v, %c, %w)
 *   %p = invertible ..(%z)                                backwards, %u is read for %x and %a, %z
 *                                                         for %y
 *
 * So of a chain of blocks the last one's results are saved. What else an inverse reads is computed
 * forwards: where that depends on what some block's inverse gives, it is saved, or the two would be
 * made of each other. With that nothing is: from a value that is given by the inverse of block m
 * one gets to the results of block m and, forwards, to what the inverse gives of later blocks
 * only. */
#include <string.h>

#include "transform/partition/priv.h"

/* Marks what depends on the inputs from `ninput` on. */
static bool *late_nodes(const Graph *g, uint32_t ninput)
{
	bool *late = ZEROED(g, bool, g->node.n);
	for (uint32_t k = ninput; k < g->input.n; k++)
		late[g->input.data[k].node.i] = true;
	for (Node n = g->first; n.i; n = node_next(g, n))
		for (uint32_t k = 0; k < node_nin(g, n); k++)
			late[n.i] |= late[node_in(g, n, k).i];
	return late;
}

/* Finds a node for each result of n, once: behind these nodes the graph is as it was for all
 * that is computed forwards. */
static void find_results(Undo *u, Graph *g, Node n)
{
	Build b = {.g = g,
		   .before = node_next(g, n),
		   .loc = node_data(g, n)->loc,
		   .where = node_near(g, n)};
	for (uint32_t k = 0; k < node_nresult(g, n); k++) {
		Use use = node_data(g, n)->first_use;
		Node get = node_next_get(g, &use, k);
		array_push(g->ir->ctx->scratch, &u->result, get.i ? get : b_get(&b, n, k));
	}
}

static Node begin(Build *b, Node x)
{
	return b_node(b, OP_checkpoint, &x, 1, (Attr[]){attr_none(), attr_str(b->g->ir, "begin")},
		      2);
}

static void add(Undo *u, const Graph *g, Node value, Node from)
{
	array_push(g->ir->ctx->scratch, &u->same, ((Same){value, from}));
}

/* Whether n marks one value. */
static bool is_mark(const Graph *g, Node n)
{
	return op_info(node_op(g, n))->marks && node_dtype(g, n) != DT_none;
}

/* Adds the value, and, while the value is a mark, what it marks. */
static void add_with_operands(Undo *u, const Graph *g, Node value, Node from)
{
	add(u, g, value, from);
	while (is_mark(g, value)) {
		value = node_marked(g, value);
		add(u, g, value, from);
	}
}

static void undo_block(Undo *u, Graph *g, Node n, const Node *result)
{
	uint32_t first, ny = node_args(g, n, "ys", &first), first_x,
			nx = node_args(g, n, "xs", &first_x), first_const,
			nconst = node_args(g, n, "consts", &first_const);
	Arena *scratch = g->ir->ctx->scratch;
	Node *arg = ARENA_ARRAY(scratch, Node, ny + nconst), *out = ARENA_ARRAY(scratch, Node, nx);
	Build b = {.g = g, .loc = node_data(g, n)->loc, .where = node_near(g, n)};
	for (uint32_t k = 0; k < ny; k++)
		arg[k] = begin(&b, result[k]);
	for (uint32_t k = 0; k < nconst; k++) {
		arg[ny + k] = node_in(g, n, first_const + k);
		array_push(scratch, &u->constant, arg[ny + k]);
	}
	graph_inline(g, (Node){0}, node_attr(g, n, "inverse")->graph, arg, out);
	for (uint32_t k = 0; k < nx; k++)
		add_with_operands(u, g, node_in(g, n, first_x + k), out[k]);
	for (uint32_t k = 0; k < ny; k++)
		add(u, g, node_in(g, n, k), result[k]);
}

Undo partition_undo(Graph *g, uint32_t ninput)
{
	Undo u = {0};
	bool *late = late_nodes(g, ninput);
	ARRAY(Node) block = {0};
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_op(g, n) == OP_invertible && !late[n.i])
			array_push(g->ir->ctx->scratch, &block, n);
	for (uint32_t k = 0; k < block.n; k++)
		find_results(&u, g, block.data[k]);
	u.first = g->node.n;
	for (uint32_t k = 0, result = 0; k < block.n; k++) {
		undo_block(&u, g, block.data[k], u.result.data + result);
		result += node_nresult(g, block.data[k]);
	}
	return u;
}

/* ---- in the choice ---- */

static Node unmarked(const Graph *g, Node n)
{
	while (is_mark(g, n))
		n = node_marked(g, n);
	return n;
}

/* Finds what the inverses give. What is given backwards needs no inverse. */
static void find_undone(Parting *p)
{
	for (uint32_t k = 0; k < p->undo.same.n; k++) {
		Same s = p->undo.same.data[k];
		if (!p->given[unmarked(p->g, s.value).i])
			p->again[s.value.i] = s.from;
	}
	for (uint32_t k = 0; k < p->undo.result.n; k++)
		p->kept[p->undo.result.data[k].i] = true;
}

/* Keeps those constants of inverses that depend on what is undone. */
static void keep_constants(Parting *p)
{
	const Graph *g = p->g;
	bool *depends = ZEROED(g, bool, g->node.n);
	for (Node n = g->first; n.i && n.i < p->undo.first; n = node_next(g, n)) {
		depends[n.i] = p->again[n.i].i;
		for (uint32_t k = 0; k < node_nin(g, n); k++)
			depends[n.i] |= depends[node_in(g, n, k).i];
	}
	for (uint32_t k = 0; k < p->undo.constant.n; k++) {
		Node c = p->undo.constant.data[k];
		if (!depends[c.i])
			continue;
		p->kept[c.i] = true;
		p->again[c.i] = (Node){0};
	}
}

void partition_find_again(Parting *p)
{
	find_undone(p);
	if (p->undo.constant.n)
		keep_constants(p);
}

Node partition_same(const Parting *p, Node n)
{
	return p->again[n.i].i ? p->again[n.i] : node_marked(p->g, n);
}
