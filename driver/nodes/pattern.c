/* weft_replace_pattern: graphs that users made come into one Ir. */
#include "ir/op/import.h"
#include "transform/pattern/pattern.h"

#include "driver/nodes/nodes.h"

typedef struct {
	NodeStep step; /* the first, for step() */
	const WeftGraph *pattern, *replacement;
	uint32_t places;
} Replacing;

/* Brings a graph into the Ir of another one. Its constants are no parameters there. */
static Graph *bring(Ir *ir, const WeftGraph *from)
{
	uint32_t first = ir->constant.n;
	if (from->g->ir == ir)
		return from->g;
	Graph *g = graph_import(ir, from->g);
	for (uint32_t k = first; k < ir->constant.n; k++) {
		Const *c = &ir->constant.data[k];
		c->is_param = c->is_buffer = false;
		c->same_as = (ConstId){0};
		c->name = "";
	}
	return g;
}

static bool replace(NodeStep *s)
{
	Replacing *r = (Replacing *)s;
	TRY(step_graph(s) && graph_is_sound(graph_root(s->graph)));
	TRY(given_graph(s->w, s->function, r->pattern) && graph_is_one(s->w, r->pattern));
	TRY(given_graph(s->w, s->function, r->replacement) && graph_is_one(s->w, r->replacement));
	Graph *pattern = bring(s->g->ir, r->pattern),
	      *replacement = bring(s->g->ir, r->replacement);
	if (pattern == s->g || replacement == s->g)
		return step_error(s, "the graph itself is the %s",
				  pattern == s->g ? "pattern" : "replacement");
	s->w->ctx->file = s->graph->path;
	TRY(pattern_replace(s->g, pattern, replacement, &r->places));
	if (r->places)
		step_changed(s);
	return true;
}

int64_t weft_replace_pattern(Weft *w, WeftGraph *g, const WeftGraph *pattern,
			     const WeftGraph *replacement)
{
	Replacing r = {.step = {.w = w, .function = "weft_replace_pattern", .graph = g},
		       .pattern = pattern,
		       .replacement = replacement};
	return step(&r.step, replace) ? (int64_t)r.places : -1;
}
