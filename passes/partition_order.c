/* In which order of dimensions a value is saved.
 *
 * Saved values are results and inputs, which lie in memory in the order of their dimensions, while lowering gives what convolutions read
 * and write another one (passes/lower_layout.c): channels last. So images are saved as that; else the first graph would convert what
 * it saves, and the second all that it reads. An image is what a convolution reads or writes, and what is equal to that but for
 * element-wise operators, borders and groups of channels. */
#include <string.h>

#include "passes/partition_priv.h"

/* Dimensions of space of the image y, where x, from which it is made or which is made of it, is one with `space` of them; 0: it is none. */
static uint32_t same_image(const Graph *g, Node n, Node x, Node y, uint32_t space)
{
	if (!space || !node_type_id(g, x).i || !node_type_id(g, y).i)
		return 0;
	Type from = *node_type(g, x), to = *node_type(g, y);
	Op op = node_op(g, n);
	if (from.dtype == DT_none || to.dtype == DT_none || to.n < space + 2)
		return 0;
	if (op == OP_pad)
		return space;
	if (op != OP_reshape && (op_lower(op)->role != LOWER_MAP || from.n != to.n))
		return 0;
	bool same = from.dim[0].i == to.dim[0].i;
	for (uint32_t k = 1; k <= space; k++)
		same &= from.dim[from.n - k].i == to.dim[to.n - k].i;
	return same ? space : 0;
}

static void to_results(const Graph *g, uint8_t *space)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		for (uint32_t k = 0; k < node_nin(g, n) && !space[n.i]; k++)
			space[n.i] = (uint8_t)same_image(g, n, node_in(g, n, k), n, space[node_in(g, n, k).i]);
}

static void to_operands(const Graph *g, uint8_t *space)
{
	for (Node n = g->last; n.i; n = node_prev(g, n))
		for (uint32_t k = 0; k < node_nin(g, n); k++)
			if (!space[node_in(g, n, k).i])
				space[node_in(g, n, k).i] = (uint8_t)same_image(g, n, n, node_in(g, n, k), space[n.i]);
}

const uint8_t *partition_space(const Parting *p)
{
	const Graph *g = p->g;
	uint8_t *space = ZEROED(g, uint8_t, g->node.n);
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_op(g, n) == OP_conv)
			space[n.i] = space[node_in(g, n, 0).i] = (uint8_t)(node_rank(g, n) - 3);
	to_results(g, space);
	to_operands(g, space);
	to_results(g, space);
	return space;
}

void partition_order(uint32_t rank, uint32_t space, uint32_t *perm)
{
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = !space || k == 0 ? k : k <= space ? rank - space + k - 1 : k - space;
}
