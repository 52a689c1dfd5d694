/* In which order of dimensions a value is saved.
 *
 * Saved values are results and inputs, which lie in memory in the order of their dimensions, while
 * lowering gives what convolutions read and write another one (lower/layout.c): channels last. So
 * images are saved as that; else the first graph would convert what it saves, and the second all
 * that it reads. An image is what a convolution reads or writes, and what is equal to that but for
 * element-wise operators, borders, groups of channels, and windows that pooling takes from it: of
 * those the dimensions within a window come last, until something is chosen in each or its sum is
 * taken. */
#include <string.h>

#include "transform/partition/priv.h"

typedef struct {
	uint8_t space, tail; /* dimensions of space (0: no image), and how many are behind them */
} Image;

/* Returns how many dimensions a reduction takes, if they are the last ones of its operand; else
 * 0. */
static uint32_t taken_from_end(const Graph *g, Node n)
{
	const uint32_t rank = node_rank(g, node_in(g, n, 0));
	if (op_arg_index(node_op(g, n), "dim") >= 0)
		return node_int(g, n, "dim") == rank - 1 ? 1 : 0;
	uint32_t count;
	const Sym *dim = node_ints(g, n, "dims", &count);
	for (uint32_t k = 0; k < count; k++)
		if (!sym_is(graph_syms(g), dim[k], rank - count + k))
			return 0;
	return count;
}

/* Returns the image y with `tail` dimensions behind space, where x is the image `of`; none where
 * their extents differ. */
static Image with_tail(const Graph *g, Node x, Node y, Image of, uint32_t tail)
{
	const Type *from = node_type(g, x), *to = node_type(g, y);
	bool same = to->n >= of.space + tail + 2 && from->dim[0].i == to->dim[0].i;
	for (uint32_t k = 1; same && k <= of.space; k++)
		same = from->dim[from->n - of.tail - k].i == to->dim[to->n - tail - k].i;
	return same ? (Image){of.space, (uint8_t)tail} : (Image){0};
}

static Image regrouped(const Graph *g, Node x, Node y, Image of)
{
	Image found = with_tail(g, x, y, of, of.tail);
	for (uint32_t tail = 1; !found.space && of.tail && tail < of.tail + 3u; tail++)
		found = with_tail(g, x, y, of, tail);
	return found;
}

static Dims dims_of(const Graph *g, Node n)
{
	return op_lower(node_op(g, n))->role == LOWER_MAP ? DIMS_SAME
							  : op_info(node_op(g, n))->dims;
}

/* Sets *longer to by how many dimensions the tail of n's result is longer than that of operand
 * 0. Returns false if the result is no image. */
static bool tail_grows(const Graph *g, Node n, int32_t *longer)
{
	switch (dims_of(g, n)) {
	case DIMS_SAME:
	case DIMS_RESIZED:
		*longer = 0;
		return true;
	case DIMS_APPENDED:
		*longer = 1;
		return true;
	case DIMS_ABSORBED:
		*longer = -1;
		return true;
	case DIMS_REDUCED:
		*longer = -(int32_t)taken_from_end(g, n);
		return *longer != 0;
	default:
		return false;
	}
}

/* Returns the image that y is, an operand or result of n, where x, the other one, is `of`. */
static Image same_image(const Graph *g, Node n, Node x, Node y, Image of)
{
	if (!of.space || !node_type_id(g, x).i || !node_type_id(g, y).i ||
	    node_type(g, x)->dtype == DT_none || node_type(g, y)->dtype == DT_none)
		return (Image){0};
	const Dims dims = dims_of(g, n);
	int32_t longer;
	if (dims == DIMS_REGROUPED)
		return regrouped(g, x, y, of);
	if (!tail_grows(g, n, &longer))
		return (Image){0};
	const int32_t tail = of.tail + (y.i == n.i ? longer : -longer);
	if (tail < 0 || node_rank(g, y) < (uint32_t)(of.space + tail + 2))
		return (Image){0};
	bool resized = dims != DIMS_SAME && dims != DIMS_REDUCED;
	return resized ? (Image){of.space, (uint8_t)tail} : with_tail(g, x, y, of, (uint32_t)tail);
}

static void to_results(const Graph *g, Image *image)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		for (uint32_t k = 0; k < node_nin(g, n) && !image[n.i].space; k++)
			image[n.i] =
				same_image(g, n, node_in(g, n, k), n, image[node_in(g, n, k).i]);
}

static void to_operands(const Graph *g, Image *image)
{
	for (Node n = g->last; n.i; n = node_prev(g, n))
		for (uint32_t k = 0; k < node_nin(g, n); k++)
			if (!image[node_in(g, n, k).i].space)
				image[node_in(g, n, k).i] =
					same_image(g, n, n, node_in(g, n, k), image[n.i]);
}

const uint8_t *partition_space(const Parting *p)
{
	const Graph *g = p->g;
	uint8_t *space = ZEROED(g, uint8_t, g->node.n);
	Image *image = ZEROED(g, Image, g->node.n);
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_op(g, n) == OP_conv)
			image[n.i].space = image[node_in(g, n, 0).i].space =
				(uint8_t)(node_rank(g, n) - 3);
	to_results(g, image);
	to_operands(g, image);
	to_results(g, image);
	for (uint32_t k = 0; k < g->node.n; k++)
		space[k] = image[k].tail ? 0 : image[k].space;
	return space;
}

void partition_order(uint32_t rank, uint32_t space, uint32_t *perm)
{
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = !space || k == 0 ? k : k <= space ? rank - space + k - 1 : k - space;
}
