#include "driver/api/given.h"

#include <string.h>

#include "ir/build/verify.h"
#include "ir/op/op.h"

bool given(Weft *w, const char *function, const char *what, const void *p)
{
	return p || ctx_error(w->ctx, function, "%s is missing: NULL", what);
}

bool given_list(Weft *w, const char *function, const char *what, const void *list, uint32_t n)
{
	return list || !n ||
	       ctx_error(w->ctx, function, "%s are missing: NULL in place of %u", what, n);
}

bool given_text(Weft *w, const char *function, const char *what, const char *text)
{
	TRY(given(w, function, what, text));
	return *text || ctx_error(w->ctx, function, "%s is empty", what);
}

bool given_texts(Weft *w, const char *function, const char *what, const char *const *text,
		 uint32_t n)
{
	TRY(given_list(w, function, what, text, n));
	for (uint32_t k = 0; k < n; k++)
		if (!text[k] || !*text[k])
			return ctx_error(w->ctx, function, "%s: number %u is %s", what, k,
					 text[k] ? "empty" : "NULL");
	return true;
}

bool given_graph(Weft *w, const char *function, const WeftGraph *g)
{
	TRY(given(w, function, "the graph", g));
	if (g->w != w)
		return ctx_error(w->ctx, function, "the graph belongs to another Weft");
	if (g->owner)
		return ctx_error(
			w->ctx, function,
			"the graph is the body of a node, expected the graph that it is in");
	return graph_is_sound(g);
}

WeftGraph *graph_root(WeftGraph *g)
{
	while (g->owner)
		g = g->owner;
	return g;
}

static bool node_has_body(const Graph *g, Node n, const Graph *body)
{
	if (n.i >= g->node.n || node_op(g, n) == OP_none)
		return false;
	const Graph *own;
	for (uint32_t k = 0; (own = node_next_body(g, n, &k));)
		if (own == body)
			return true;
	return false;
}

bool body_is_there(const WeftGraph *g)
{
	for (; g->owner; g = g->owner)
		if (!node_has_body(g->owner->g, g->owner_node, g->g))
			return false;
	return true;
}

bool given_graph_or_body(Weft *w, const char *function, WeftGraph *g)
{
	if (!g || g->w != w || !g->owner)
		return given_graph(w, function, g);
	return (body_is_there(g) ||
		ctx_error(w->ctx, function, "the graph is the body of a node that was erased")) &&
	       graph_is_sound(graph_root(g));
}

bool graph_is_sound(const WeftGraph *g)
{
	WeftGraph *changed = (WeftGraph *)(uintptr_t)g;
	if (!g->changed)
		return true;
	g->w->ctx->file = g->path;
	TRY(graph_verify(g->g));
	changed->changed = false;
	return true;
}

enum { NOT_SET = 1 };

void options_copy(void *to, size_t n, const void *options)
{
	uint32_t size;
	if (!options)
		return;
	memcpy(&size, options, sizeof size);
	memcpy(to, options, size < n ? size : n);
	if (size < sizeof size) /* not that of NULL */
		memcpy(to, &(uint32_t){NOT_SET}, sizeof size);
}

bool options_fit(Weft *w, uint32_t size, size_t n)
{
	if (size == NOT_SET)
		return ctx_error(
			w->ctx, NULL,
			"the size of the options is not set: expected %zu, as sizeof gives", n);
	return size <= n || ctx_error(w->ctx, NULL, "options of a newer version of the library");
}
