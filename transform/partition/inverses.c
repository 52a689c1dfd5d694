/* What blocks with an inverse take, compared with what the inverse makes of their results. */
#include <string.h>

#include "ir/build/verify.h"
#include "transform/derive_priv.h"
#include "transform/partition/partition.h"

/* Returns the largest of |x - y|, f64[]. */
static Node distance(Build *b, Node x, Node y)
{
	Node both[2] = {x, y};
	for (int k = 0; k < 2; k++) {
		if (dtype_is_complex(node_dtype(b->g, both[k])))
			both[k] = b_node(b, OP_view_real, &both[k], 1, NULL, 0);
		both[k] = b_convert(b, both[k], DT_f64);
	}
	Node far = b_un(b, OP_abs, b_bin(b, OP_sub, both[0], both[1]));
	return b_reduce(b, REDUCE_MAX, far, (1u << node_rank(b->g, far)) - 1, DT_f64);
}

static bool is_taken(const Graph *g, const char *name)
{
	for (uint32_t k = 0; k < g->output.n; k++)
		if (!strcmp(g->output.data[k].name, name))
			return true;
	return false;
}

static const char *name_of(const Graph *g, Node block, uint32_t input)
{
	Arena *arena = g->ir->ctx->arena;
	const char *base = arena_printf(arena, "inverse.%s.%u", node_str(g, block, "name"), input),
		   *name = base;
	for (uint32_t k = 2; is_taken(g, name); k++)
		name = arena_printf(arena, "%s.%u", base, k);
	return name;
}

static void check_block(Graph *g, Node n)
{
	uint32_t first, ny = node_args(g, n, "ys", &first), first_x,
			nx = node_args(g, n, "xs", &first_x), first_const,
			nconst = node_args(g, n, "consts", &first_const);
	Build b = {.g = g, .loc = node_data(g, n)->loc, .where = node_near(g, n)};
	Node *arg = ZEROED(g, Node, ny + nconst), *out = ZEROED(g, Node, nx);
	for (uint32_t k = 0; k < ny; k++)
		arg[k] = b_get(&b, n, k);
	for (uint32_t k = 0; k < nconst; k++)
		arg[ny + k] = node_in(g, n, first_const + k);
	graph_inline(g, (Node){0}, node_attr(g, n, "inverse")->graph, arg, out);
	for (uint32_t k = 0; k < nx; k++)
		graph_add_output(g, name_of(g, n, k),
				 distance(&b, node_in(g, n, first_x + k), out[k]), -1);
}

Graph *transform_check_inverses(const Graph *src)
{
	Graph *g = graph_clone(src);
	ARRAY(Node) block = {0};
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_op(g, n) == OP_invertible)
			array_push(g->ir->ctx->scratch, &block, n);
	for (uint32_t k = 0; k < block.n; k++)
		check_block(g, block.data[k]);
	if (!block.n) {
		ctx_error(g->ir->ctx, NULL, "the model has no block with an inverse");
		return NULL;
	}
	if (!graph_verify(g))
		ctx_bug_verify(g->ir->ctx, "the check of inverses");
	return g;
}
