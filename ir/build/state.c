#include "ir/build/state.h"

#include <string.h>

#include "ir/build/build.h"
#include "ir/op/node.h"

void graph_remove_input(Graph *g, uint32_t k)
{
	GraphInput *in = g->input.data;
	int32_t writer = graph_writer(g, k);
	if (writer >= 0)
		graph_remove_output(g, (uint32_t)writer);
	graph_erase(g, in[k].node);
	memmove(in + k, in + k + 1, (g->input.n - 1 - k) * sizeof *in);
	g->input.n--;
	for (uint32_t o = 0; o < g->output.n; o++)
		if (g->output.data[o].writes > (int32_t)k)
			g->output.data[o].writes--;
}

void graph_freeze_input(Graph *g, uint32_t k)
{
	const GraphInput in = g->input.data[k];
	Node before = graph_behind_inputs(g);
	while (before.i && node_const(g, before).i && node_const(g, before).i < in.init.i)
		before = node_next(g, before);
	Build b = {.g = g, .before = before};
	Node c = b_const(&b, in.init);
	char *name = arena_printf(g->ir->ctx->scratch, "b_%s", in.name);
	for (char *p = name; *p; p++)
		*p = *p == '.' ? '_' : *p;
	graph_set_name(g, c, name);
	graph_replace(g, in.node, c);
	graph_remove_input(g, k);
}

/* Removes what is written to state k if that is the state itself and the graph has another output.
 */
static bool remove_own_write(Graph *g, uint32_t k)
{
	const GraphInput *in = &g->input.data[k];
	int32_t writer = graph_writer(g, k);
	if (in->kind == INPUT_USER || writer < 0 || g->output.n == 1 ||
	    g->output.data[writer].node.i != in->node.i)
		return false;
	graph_remove_output(g, (uint32_t)writer);
	return true;
}

bool graph_freeze_unchanged(Graph *g)
{
	bool any = false;
	for (uint32_t k = g->input.n; k-- > 0;) {
		Node n = g->input.data[k].node;
		if (!remove_own_write(g, k))
			continue;
		any = true;
		if (node_nuses(g, n) || node_is_output(g, n))
			graph_freeze_input(g, k);
		else
			graph_remove_input(g, k);
	}
	return any;
}

bool graph_keep_unchanged(Graph *g)
{
	bool any = false;
	for (uint32_t k = 0; k < g->input.n; k++)
		any |= remove_own_write(g, k);
	return any;
}
