/* weft_bound_loop. */
#include "transform/model/loop_bound.h"

#include "driver/api/given.h"

typedef struct {
	Weft *w;
	WeftGraph *g;
	const char *node;
	int64_t rounds;
} Bounding;

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
	if (transform_bound_loops(b->g->g, b->node, b->rounds))
		return true;
	Text names;
	text_init(&names, ctx->arena);
	transform_list_loops(b->g->g, &names);
	return ctx_error(ctx, b->g->path, "no loop on data is called %s: %s%s", b->node,
			 names.n ? "there are " : "there is none", names.n ? names.data : "");
}

bool weft_bound_loop(Weft *w, WeftGraph *g, const char *node, int64_t rounds)
{
	Bounding b = {.w = w, .g = g, .node = node, .rounds = rounds};
	return boundary(w, bound_loop, &b);
}
