/* What the user knows of a loop on data and the model does not say: how many rounds it has at
 * most. */
#include <string.h>

#include "driver/api/given.h"
#include "ir/op/op.h"

typedef struct {
	Weft *w;
	WeftGraph *g;
	const char *node;
	int64_t rounds;
	uint32_t found;
} Bounding;

/* Bodies, too: a loop in a loop. */
static void bound_all(Bounding *b, Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Graph *body;
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			bound_all(b, body);
		if (node_op(g, n) == OP_while && !strcmp(graph_name(g, n), b->node)) {
			graph_set_attr(g, n, "most", attr_int(g->ir, b->rounds));
			b->found++;
		}
	}
}

static void list_loops(Graph *g, Text *names)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Graph *body;
		if (node_op(g, n) == OP_while)
			text_printf(names, "%s%s", names->n ? ", " : "", graph_name(g, n));
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			list_loops(body, names);
	}
}

static bool bound_loop(void *arg)
{
	Bounding *b = arg;
	Ctx *ctx = b->w->ctx;
	TRY(given_graph(b->w, "weft_bound_loop", b->g) &&
	    given_text(b->w, "weft_bound_loop", "the name of the loop", b->node));
	TRY(graph_is_one(b->w, b->g));
	if (b->rounds < 0)
		return ctx_error(ctx, b->g->path, "a loop of at most %lld rounds",
				 (long long)b->rounds);
	graph_enter(b->g->g);
	bound_all(b, b->g->g);
	if (b->found)
		return true;
	Text names;
	text_init(&names, ctx->arena);
	list_loops(b->g->g, &names);
	return ctx_error(ctx, b->g->path, "no loop on data is called %s: %s%s", b->node,
			 names.n ? "there are " : "there is none", names.n ? names.data : "");
}

bool weft_bound_loop(Weft *w, WeftGraph *g, const char *node, int64_t rounds)
{
	Bounding b = {.w = w, .g = g, .node = node, .rounds = rounds};
	return boundary(w, bound_loop, &b);
}
