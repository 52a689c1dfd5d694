/* Roundings that lower precision does not ask for. After precision_lower, a value of
 * Graph.unrounded that nobody stores and one reader widens stays f32:
 *
 *   %1 = conv(%x, %w, ..., acc=f32) : bf16          %1 = conv(%x, %w, ..., acc=f32, out=f32) : f32
 *   %2 = convert(%1, dtype=f32)                     %3 = mul(%1, %s) : f32
 *   %3 = mul(%2, %s) : f32                    ->    %5 = convert(%y, dtype=f32)
 *   %4 = convert(%3, dtype=bf16)                    %6 = add(%3, %5) : f32
 *   %6 = add(%4, %y) : bf16                         %7 = convert(%6, dtype=bf16)
 *
 * Roundings move towards the readers that want a low value (products, outputs, values with several
 * readers), or disappear: so this ends. Elsewhere a conversion rounds (docs/numerics.md). */
#include "passes/simplify/rules.h"

static DType low_of(const Build *b)
{
	return b->g->unrounded;
}

static bool is_low(const Build *b, Node x)
{
	return low_of(b) && node_is_tensor(b->g, x) && node_dtype(b->g, x) == low_of(b);
}

/* Whether x is a conversion of an f32 that nobody else reads. */
static bool is_rounding(const Build *b, Node x)
{
	const OpInfo *op = op_info(node_op(b->g, x));
	return is_low(b, x) && op->rounded && !op->moves && node_nin(b->g, x) == 1 &&
	       node_nuses(b->g, x) == 1 && node_dtype(b->g, node_in(b->g, x, 0)) == DT_f32;
}

/* Returns x with sums that are not rounded: elements of a product or convolution, of which
 * nobody else reads anything. None if x is no such value. */
static Node wide_product(Build *b, Node x)
{
	Graph *g = b->g;
	const NodeData d = *node_data(g, x);
	if (!is_low(b, x) || node_nuses(g, x) != 1)
		return (Node){0};
	const Type t = *node_type(g, x);
	const TypeId wide = ir_type(g->ir, DT_f32, t.n, t.dim);
	if (op_info(d.op)->moves && d.nin == 1) {
		Node y = wide_product(b, node_in(g, x, 0));
		return y.i ? graph_add(g, b->before, d.op, &y, 1, d.attr, wide, d.loc) : y;
	}
	if (op_lower(d.op)->role != LOWER_ANCHOR || d.nin != 2 ||
	    node_attr(g, x, "acc")->dtype != DT_f32 || node_attr(g, x, "out")->kind != ATTR_none)
		return (Node){0};
	Attr attr[MAX_ARGS];
	const uint32_t n = node_copy_attrs(g, x, attr);
	attr[op_arg_index(d.op, "out")] = attr_dtype(DT_f32);
	return graph_add(g, b->before, d.op, (Node[]){node_in(g, x, 0), node_in(g, x, 1)}, 2,
			 ir_attrs(g->ir, n, attr), wide, d.loc);
}

static Node convert_unrounded(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	if (node_dtype(b->g, n) != DT_f32 || !is_low(b, x))
		return (Node){0};
	return is_rounding(b, x) ? node_in(b->g, x, 0) : wide_product(b, x);
}

/* Makes an element-wise function of low values, one of them a rounding, round its result
 * instead. Of two roundings one may be stored, for a kernel has one product: narrow. */
static Node round_later(Build *b, Node n)
{
	Graph *g = b->g;
	const NodeData d = *node_data(g, n);
	Node in[4];
	uint32_t nrounding = 0;
	if (!low_of(b) || !op_is_scalar(d.op) || op_info(d.op)->rounded || d.nin > 4 ||
	    !is_low(b, n))
		return (Node){0};
	for (uint32_t k = 0; k < d.nin; k++) {
		in[k] = node_in(g, n, k);
		if (!is_low(b, in[k]))
			return (Node){0};
		nrounding += is_rounding(b, in[k]);
	}
	if (nrounding != 1)
		return (Node){0};
	for (uint32_t k = 0; k < d.nin; k++)
		in[k] = is_rounding(b, in[k]) ? node_in(g, in[k], 0) : b_convert(b, in[k], DT_f32);
	const Type t = *node_type(g, n);
	Node wide = graph_add(g, b->before, d.op, in, d.nin, d.attr,
			      ir_type(g->ir, DT_f32, t.n, t.dim), d.loc);
	return b_convert(b, wide, low_of(b));
}

const Rule low_rules[] = {
	{"convert_unrounded", OP_convert, convert_unrounded},
	{"round_later", OP_none, round_later},
	{NULL, OP_none, NULL},
};
