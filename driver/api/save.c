/* Graphs become files. */
#include "driver/api/given.h"
#include "frontend/graph/graph_file.h"

typedef struct {
	Weft *w;
	const WeftGraph *g;
	const char *path;
} Saving;

static bool save(void *arg)
{
	static const char here[] = "weft_save_graph";
	const Saving *s = arg;
	TRY(given_graph(s->w, here, s->g) && graph_is_one(s->w, s->g) &&
	    given_text(s->w, here, "the path", s->path));
	return graph_file_save(s->g->g, s->path, s->g->transformed);
}

bool weft_save_graph(Weft *w, const WeftGraph *g, const char *path)
{
	Saving s = {.w = w, .g = g, .path = path};
	return boundary(w, save, &s);
}
