/* Derivatives of nodes with graphs. */
#include "passes/derive_priv.h"

bool control_vjp(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)ct, (void)want, (void)g;
	return ctx_error(b->g->ir->ctx, node_near(b->g, n), "derivatives through %s are not supported", op_name(node_op(b->g, n)));
}

bool control_jvp(Build *b, Node n, const Node *t, Node *ty)
{
	(void)t, (void)ty;
	return ctx_error(b->g->ir->ctx, node_near(b->g, n), "derivatives through %s are not supported", op_name(node_op(b->g, n)));
}
