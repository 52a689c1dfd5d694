#include "transform/model/loop_bound.h"

#include <string.h>

#include "ir/op/op.h"

uint32_t transform_bound_loops(Graph *g, const char *name, int64_t most)
{
	uint32_t found = 0;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Graph *body;
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			found += transform_bound_loops(body, name, most);
		if (op_info(node_op(g, n))->endless && !strcmp(graph_name(g, n), name)) {
			graph_set_attr(g, n, "most", attr_int(g->ir, most));
			found++;
		}
	}
	return found;
}

void transform_list_loops(Graph *g, Text *names)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Graph *body;
		if (op_info(node_op(g, n))->endless)
			text_printf(names, "%s%s", names->n ? ", " : "", graph_name(g, n));
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			transform_list_loops(body, names);
	}
}
