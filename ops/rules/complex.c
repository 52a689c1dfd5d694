/* Element-wise functions of complex numbers, by their blocks' texts (.complex). */
#include <string.h>

#include "ops/rules/expand_priv.h"

Node b_part(Build *b, Node x, bool imaginary)
{
	if (!x.i)
		return x;
	Node pairs = b_node(b, OP_view_real, &x, 1, NULL, 0);
	return b_select_dim(b, pairs, -1, b_int(b, imaginary));
}

Node b_complex_of_operands(Build *b)
{
	Node part[2];
	b_operands(b, part, 2);
	for (uint32_t k = 0; k < 2; k++)
		part[k] = b_unsqueeze(b, part[k], -1);
	Node pairs = b_concat(b, part, 2, -1);
	return pairs.i ? b_node(b, OP_view_complex, &pairs, 1, NULL, 0) : pairs;
}

/* Binds the operands and, where the text asks for them, their parts. */
static void bind(Eval *e, Build *b, Node n, const Node *in, const char *text)
{
	const NodeData d = *node_data(b->g, n);
	const Schema *s = op_schema(d.op);
	*e = (Eval){.b = b, .p = text};
	expand_bind(e, d.op, in, d.nin, d.attr);
	for (uint32_t k = 0; k < 2 * d.nin; k++) {
		const char *name = arena_printf(b->g->ir->ctx->scratch, "%s_%s", s->arg[k / 2].name,
						k % 2 ? "im" : "re");
		if (strstr(text, name))
			expand_let(e, name,
				   (Val){.kind = VAL_node, .node = b_part(b, in[k / 2], k % 2)});
	}
}

Node ops_complex(Build *outer, Node n)
{
	Graph *g = outer->g;
	Build *b = &(Build){g, outer->before, node_data(g, n)->loc, node_near(g, n)};
	const char *text = op_info(node_op(g, n))->complex;
	uint32_t errors = g->ir->ctx->nerror, nin = node_nin(g, n);
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, nin + 1);
	Eval e;
	/* Complex numbers of a storage type are widened, and the value is rounded once. */
	const DType given = node_dtype(g, n);
	for (uint32_t k = 0; k < nin; k++) {
		in[k] = node_in(g, n, k);
		if (in[k].i && dtype_is_complex(node_dtype(g, in[k])))
			in[k] = b_convert(b, in[k], dtype_compute(node_dtype(g, in[k])));
	}
	bind(&e, b, n, in, text);
	Val v = expand_program(&e);
	if (e.err && g->ir->ctx->nerror == errors)
		ctx_bug(g->ir->ctx, ".complex of %s: %s at \"%.32s\"", op_name(node_op(g, n)),
			e.err, e.errp);
	if (g->ir->ctx->nerror != errors)
		return (Node){0};
	Node y = v.kind == VAL_nodes && v.n == 2 ? b_complex(b, v.nodes[0], v.nodes[1])
						 : expand_operand(&e, &v, dtype_compute(given));
	return b_convert(b, y, given);
}
