/* weft_join: graphs become the entries of one model, in one Ir. */
#include <string.h>

#include "driver/api/given.h"
#include "driver/api/user_ops.h"
#include "ir/op/import.h"

typedef struct {
	Weft *w;
	uint32_t n;
	const char *const *name;
	WeftGraph *const *graph;
	WeftJoinOptions options;
	WeftGraph *out;
} Join;

static bool check_entry(const Join *j, uint32_t k)
{
	Ctx *ctx = j->w->ctx;
	const char *path = j->graph[k]->path;
	if (j->graph[k]->w != j->w)
		return ctx_error(ctx, path, "the graph for the entry %s belongs to another Weft",
				 j->name[k]);
	TRY(given_graph(j->w, "weft_join", j->graph[k]) && graph_is_one(j->w, j->graph[k]));
	if (!text_is_identifier(j->name[k]))
		return ctx_error(ctx, path,
				 "an entry cannot be called \"%s\": it must be an identifier of C",
				 j->name[k]);
	for (uint32_t i = 0; i < k; i++)
		if (!strcmp(j->name[i], j->name[k]))
			return ctx_error(ctx, path, "a second entry %s: that of %s is called so",
					 j->name[k], j->graph[i]->path);
	return true;
}

/* Copies the graphs into one Ir. */
static Joining import_all(Join *j)
{
	Arena *arena = weft_arena(j->w);
	Ir *ir = user_ir(j->w);
	GraphEntry *entry = ARENA_ARRAY(arena, GraphEntry, j->n);
	const Graph **from = ARENA_ARRAY(arena, const Graph *, j->n);
	uint32_t *first = ARENA_ARRAY(arena, uint32_t, j->n + 1);
	first[0] = ir->constant.n;
	for (uint32_t k = 0; k < j->n; k++) {
		from[k] = j->graph[k]->g;
		entry[k] = (GraphEntry){arena_strdup(arena, j->name[k]), graph_import(ir, from[k]),
					j->graph[k]->path};
		entry[k].g->name = entry[k].name;
		first[k + 1] = ir->constant.n;
	}
	WeftGraph *out = j->out = ARENA_NEW(arena, WeftGraph);
	*out = (WeftGraph){.w = j->w, .path = entry[0].path, .nentry = j->n, .entry = entry};
	return (Joining){.n = j->n,
			 .entry = entry,
			 .from = from,
			 .first = first,
			 .joined = &out->joined,
			 .nprivate = j->options.nprivate,
			 .nsame = j->options.nsame,
			 .private = j->options.private_state,
			 .same = j->options.same_state};
}

static bool join(void *arg)
{
	Join *j = arg;
	TRY(options_fit(j->w, j->options.size, sizeof j->options));
	if (!j->n)
		return ctx_error(j->w->ctx, NULL, "no graphs to join");
	TRY(given_list(j->w, "weft_join", "graphs", j->graph, j->n) &&
	    given_list(j->w, "weft_join", "names of entries", j->name, j->n));
	for (uint32_t k = 0; k < j->n; k++)
		TRY(given(j->w, "weft_join", "a graph", j->graph[k]) &&
		    given(j->w, "weft_join", "the name of an entry", j->name[k]));
	TRY(given_texts(j->w, "weft_join_with", "names of private state", j->options.private_state,
			j->options.nprivate));
	TRY(given_texts(j->w, "weft_join_with", "names of shared state", j->options.same_state,
			j->options.nsame));
	for (uint32_t k = 0; k < j->n; k++)
		TRY(check_entry(j, k));
	const Joining all = import_all(j);
	return join_state(&all);
}

WeftGraph *weft_join_with(Weft *w, uint32_t n, const char *const *name, WeftGraph *const *graph,
			  const WeftJoinOptions *options)
{
	Join j = {.w = w, .n = n, .name = name, .graph = graph};
	options_copy(&j.options, sizeof j.options, options);
	return boundary(w, join, &j) ? j.out : NULL;
}

WeftGraph *weft_join(Weft *w, uint32_t n, const char *const *name, WeftGraph *const *graph)
{
	WeftJoinOptions none = {.size = sizeof none};
	return weft_join_with(w, n, name, graph, &none);
}
