/* Rows of a table that is dequantised are taken first, and then dequantised.
 *
 *   gather(mul(convert(%q), broadcast(%s)), %i)
 * becomes
 *   mul(convert(gather(%q, %i)), gather(broadcast(%s), %i))
 *
 * so that no kernel makes floats of the whole table. Of constants of 8 bits, and of floats of two
 * bytes. Ends because the reader is below the functions then. */
#include "ops/rules/rules.h"
#include "passes/common/questions.h"
#include "passes/quantize/priv.h"

/* Returns what the functions of constants x are computed of, read by n; none if that has another
 * form. */
static Node rows_of(Build *b, Node n, Node x)
{
	const Graph *g = b->g;
	const OpLower *lower = op_lower(node_op(g, x));
	Node in[MAX_ARGS];
	Attr v;
	if (node_splat(g, x, &v)) {
		const Type t = *node_type(g, n);
		return b_full_attr(b, node_dtype(g, x), v, t.n, t.dim);
	}
	if (lower->role == LOWER_MAP) {
		for (uint32_t k = 0; k < node_nin(g, x); k++)
			if (!(in[k] = rows_of(b, n, node_in(g, x, k))).i)
				return in[k];
		return b_again(b, x, in);
	}
	if (lower->keeps == KEEPS_INDEX && op_info(node_op(g, x))->moves)
		return rows_of(b, n, node_in(g, x, 0));
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		in[k] = k ? node_in(g, n, k) : x;
	return b_again(b, n, in);
}

/* Whether x is computed of a constant of its shape that has at most half of its bytes. */
static bool is_of_narrow(const Graph *g, Node x)
{
	enum { MOST_STEPS = 12 };
	const Node all = x;
	for (uint32_t step = 0; step < MOST_STEPS; step++) {
		if (node_const(g, x).i)
			return 2 * dtype_size(node_dtype(g, x)) <= dtype_size(node_dtype(g, all)) &&
			       same_shape(g, x, all);
		const OpLower *lower = op_lower(node_op(g, x));
		const bool keeps = lower->keeps == KEEPS_INDEX && op_info(node_op(g, x))->moves;
		if (lower->role != LOWER_MAP && !keeps)
			return false;
		/* (q - zero) * scale: the integers stand first, as graphs have them */
		x = node_in(g, x, 0);
	}
	return false;
}

Node quant_rows(Build *b, Node n)
{
	const Graph *g = b->g;
	const OpLower *lower = op_lower(node_op(g, n));
	if (lower->role != LOWER_INDEX || lower_is_map(lower) || !lower_reads(lower, 0) ||
	    node_const(g, node_in(g, n, 0)).i || !quant_is_of_constants(g, node_in(g, n, 0)) ||
	    !is_of_narrow(g, node_in(g, n, 0)))
		return (Node){0};
	return rows_of(b, n, node_in(g, n, 0));
}
