/* Model files become graphs. */
#include "driver/driver_priv.h"

#include <stdio.h>
#include <string.h>

#include "frontend/file.h"
#include "frontend/out_file.h"
#include "frontend/pt2.h"
#include "passes/pipeline.h"

typedef struct {
	Weft *w;
	const char *path, *text;
	WeftGraph *out;
} Load;

static WeftGraph *wrap(Weft *w, Graph *g, const char *path)
{
	WeftGraph *out = ARENA_NEW(weft_arena(w), WeftGraph);
	*out = (WeftGraph){w, g, arena_strdup(weft_arena(w), path)};
	return out;
}

static bool parse(void *arg)
{
	Load *l = arg;
	Graph *g = graph_parse(ir_new(l->w->ctx), l->text, l->path);
	TRY(g && graph_verify(g));
	l->out = wrap(l->w, g, l->path);
	return true;
}

static bool load(void *arg)
{
	Load *l = arg;
	Ctx *ctx = l->w->ctx;
	FileMap file;
	ctx->file = arena_strdup(ctx->arena, l->path);
	out_spare(ctx, l->path);
	size_t n = strlen(l->path);
	if (n < 4 || strcmp(l->path + n - 4, ".pt2")) {
		TRY(file_map(ctx, l->path, &file));
		if (file.size < 2 || memcmp(file.data, "PK", 2)) {
			l->text = arena_strndup(ctx->arena, (const char *)file.data, file.size);
			return parse(l);
		}
	}
	Graph *g = pt2_load(ir_new(ctx), l->path, NULL);
	TRY(g);
	l->out = wrap(l->w, g, l->path);
	return true;
}

WeftGraph *weft_load(Weft *w, const char *path)
{
	Load l = {.w = w, .path = path};
	return boundary(w, load, &l) ? l.out : NULL;
}

WeftGraph *weft_parse(Weft *w, const char *text, const char *name)
{
	Load l = {.w = w, .path = name, .text = text};
	return boundary(w, parse, &l) ? l.out : NULL;
}

typedef struct {
	Weft *w;
	const WeftGraph *from;
	WeftGraph *out;
} Copy;

static bool copy(void *arg)
{
	Copy *c = arg;
	c->out = wrap(c->w, graph_clone(c->from->g), c->from->path);
	return true;
}

WeftGraph *weft_copy_graph(Weft *w, const WeftGraph *g)
{
	Copy c = {.w = w, .from = g};
	return boundary(w, copy, &c) ? c.out : NULL;
}
