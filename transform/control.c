/* The operators that execute graphs. */
#include "transform/control.h"

static const Control rows[] = {
	{OP_scan, scan_vjp, scan_jvp, spread_scan, batch_scan},
	{OP_while, while_vjp, while_jvp, spread_while, batch_while},
	{OP_cond, cond_vjp, cond_jvp, spread_cond, batch_cond},
	{OP_invertible, NULL, NULL, spread_invertible, batch_invertible},
};

const Control *control_of(const Graph *g, Node n)
{
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
		if (rows[k].op == node_op(g, n))
			return &rows[k];
	return NULL;
}
