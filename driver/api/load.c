/* Model files become graphs. */
#include "driver/api/given.h"
#include "driver/api/user_ops.h"

#include <stdio.h>
#include <string.h>

#include "frontend/files/file.h"
#include "frontend/files/file_kind.h"
#include "frontend/files/out_file.h"
#include "frontend/graph/graph_file.h"
#include "frontend/onnx/onnx.h"
#include "frontend/pt2/pt2.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "passes/pipeline.h"
#include "passes/random.h"
#include "transform/transform.h"
#include "weft_graph.h"

typedef struct {
	Weft *w;
	const char *path, *text;
	const WeftMemory *memory; /* instead of the file `path` */
	WeftLoadOptions options;
	const WeftGraph *like; /* of weft_parse_like */
	WeftGraph *out;
} Load;

WeftGraph *graph_wrap(Weft *w, Graph *g, const char *path)
{
	WeftGraph *out = ARENA_NEW(weft_arena(w), WeftGraph);
	GraphEntry *entry = ARENA_NEW(weft_arena(w), GraphEntry);
	*entry = (GraphEntry){"run", g, arena_strdup(weft_arena(w), path)};
	*out = (WeftGraph){.w = w, .g = g, .path = entry->path, .nentry = 1, .entry = entry};
	return out;
}

static bool loaded(Load *l, Graph *g)
{
	RandomSource source = {.seed = l->options.seed, .input = l->options.rng_input};
	cipher_find(l->options.rng_cipher, &source.cipher);
	l->out = graph_wrap(l->w, g, l->path);
	l->out->seed = source.seed;
	l->out->rng_input = source.input;
	l->out->rng_cipher = cipher_name(source.cipher);
	return random_attach(g, &source);
}

static bool parse(void *arg)
{
	Load *l = arg;
	TRY(given(l->w, "weft_parse", "the text", l->text) &&
	    given_text(l->w, "weft_parse", "the name", l->path));
	Graph *g = graph_parse(user_ir(l->w), l->text, l->path);
	TRY(g && graph_verify(g));
	return loaded(l, g);
}

static bool no_model(Ctx *ctx, const void *data, size_t size)
{
	const char *what = file_kind(data, size);
	return ctx_error(ctx, NULL,
			 "no model: %s; weft reads .pt2 archives of torch.export.save, ONNX models "
			 "(.onnx), graphs of weft quantize (.weft) and the text "
			 "form of graphs (graph @name...)",
			 what ? what : "it is text that does not begin with \"graph\"") ||
	       ctx_kind(ctx, REFUSAL_FILE);
}

/* ---- torch.vmap and torch.func.jvp in models ---- */

static Graph *member_batch(const Graph *g, const bool *batched, Sym size, Pt2Randomness r,
			   const int32_t *in, const int32_t *out)
{
	const BatchDims dims = {in, out};
	return transform_vmap_at(g, batched, size,
				 r == PT2_SAME        ? RANDOM_SAME
				 : r == PT2_DIFFERENT ? RANDOM_DIFFERENT
						      : RANDOM_ERROR,
				 &dims);
}

static Graph *with_tangents(const Graph *g, const bool *wrt)
{
	return transform_jvp(g, &(Wrt){.input = wrt});
}

static bool attach_philox(Graph *g)
{
	return random_attach(g, &(RandomSource){.input = true});
}

static bool attach_aes(Graph *g)
{
	return random_attach(g, &(RandomSource){.input = true, .cipher = CIPHER_AES});
}

static const Pt2Transforms transforms[] = {
	[CIPHER_PHILOX] = {member_batch, with_tangents, attach_philox},
	[CIPHER_AES] = {member_batch, with_tangents, attach_aes},
};

/* Loads a model of bytes, which stay as long as the Weft. */
static bool load_bytes(Load *l, const void *data, size_t size)
{
	Ctx *ctx = l->w->ctx;
	if (text_ends(l->path, ".onnx") || is_onnx(data, size)) {
		OnnxOptions options = {0};
		options.value = tensors_list(l->options.values, &options.nvalue);
		Graph *g = onnx_load_bytes(user_ir(l->w), l->path, data, size, &options);
		return g && loaded(l, g);
	}
	if (l->options.values)
		return ctx_error(ctx, NULL,
				 "values of inputs (--values) are for ONNX models: this is none");
	if (text_ends(l->path, ".pt2") || (size >= 2 && !memcmp(data, "PK", 2))) {
		Cipher cipher = CIPHER_PHILOX;
		cipher_find(l->options.rng_cipher, &cipher);
		Pt2Options options = {.ignore_guard = l->options.ignore_guard,
				      .nignore = l->options.nignore_guard,
				      .transforms = &transforms[cipher]};
		Graph *g = pt2_load_bytes(user_ir(l->w), l->path, data, size, &options);
		return g && loaded(l, g);
	}
	if (is_graph_file(data, size)) {
		bool transformed;
		Graph *g = graph_file_load(user_ir(l->w), l->path, (void *)(uintptr_t)data, size,
					   &transformed);
		TRY(g && loaded(l, g));
		l->out->transformed = transformed;
		return true;
	}
	if (!is_graph_text(data, size))
		return no_model(ctx, data, size);
	l->text = arena_strndup(ctx->arena, data, size);
	return parse(l);
}

static bool load(Load *l)
{
	Ctx *ctx = l->w->ctx;
	FileMap file;
	ctx->file = arena_strdup(ctx->arena, l->path);
	if (l->memory)
		return load_bytes(l, l->memory->data, l->memory->bytes);
	out_spare(ctx, l->path);
	return file_map_full(ctx, l->path, &file) && load_bytes(l, file.data, file.size);
}

static bool is_taken(const Graph *g, uint32_t k, const char *name)
{
	for (uint32_t j = 0; j < k; j++)
		if (!strcmp(g->output.data[j].name, name))
			return true;
	return false;
}

/* Gives the outputs of the user, those that replace no state, the names of the options. */
static bool rename_outputs(Load *l)
{
	Graph *g = l->out->g;
	uint32_t n = 0, want = l->options.noutput_name;
	for (uint32_t k = 0; k < g->output.n; k++)
		n += g->output.data[k].writes < 0;
	if (n != want)
		return ctx_error(l->w->ctx, NULL,
				 "%u names for outputs were given, the model has %u", want, n);
	for (uint32_t k = 0, i = 0; k < g->output.n; k++) {
		if (g->output.data[k].writes >= 0)
			continue;
		const char *name = l->options.output_name[i++];
		if (!*name || is_taken(g, k, name))
			return ctx_error(l->w->ctx, NULL,
					 "\"%s\" cannot be the name of output %u: %s", name, i - 1,
					 *name ? "another one has it" : "it is empty");
		g->output.data[k].name = arena_strdup(l->w->ctx->arena, name);
	}
	return l->out->named = true;
}

static bool load_with(void *arg)
{
	Load *l = arg;
	const WeftLoadOptions *o = &l->options;
	TRY(options_fit(l->w, o->size, sizeof *o));
	TRY(l->memory ? given_text(l->w, "weft_load_memory", "the name", l->path)
		      : given_text(l->w, "weft_load", "the path", l->path));
	TRY(given_texts(l->w, "weft_load_with", "guards to ignore", o->ignore_guard,
			o->nignore_guard));
	TRY(given_list(l->w, "weft_load_with", "names of outputs", o->output_name,
		       o->noutput_name));
	for (uint32_t k = 0; k < o->noutput_name; k++)
		TRY(given(l->w, "weft_load_with", "a name of an output", o->output_name[k]));
	if (!cipher_find(o->rng_cipher, &(Cipher){0}))
		return ctx_error(l->w->ctx, NULL,
				 "there is no cipher \"%s\" of random bits (rng_cipher), expected "
				 "\"" CIPHER_AES_NAME "\" or none",
				 o->rng_cipher);
	return load(l) && (!l->options.output_name || rename_outputs(l));
}

static WeftGraph *begin(Load *l, const WeftLoadOptions *options)
{
	options_copy(&l->options, sizeof l->options, options);
	return boundary(l->w, load_with, l) ? l->out : NULL;
}

WeftGraph *weft_load_with(Weft *w, const char *path, const WeftLoadOptions *options)
{
	Load l = {.w = w, .path = path};
	return begin(&l, options);
}

WeftGraph *weft_load(Weft *w, const char *path)
{
	WeftLoadOptions none = {.size = sizeof none};
	return weft_load_with(w, path, &none);
}

WeftGraph *weft_load_memory_with(Weft *w, const WeftMemory *memory, const char *name,
				 const WeftLoadOptions *options)
{
	Load l = {.w = w, .path = name, .memory = memory};
	return weft_hold(w, memory) ? begin(&l, options) : NULL;
}

WeftGraph *weft_load_memory(Weft *w, const WeftMemory *memory, const char *name)
{
	return weft_load_memory_with(w, memory, name, NULL);
}

WeftGraph *weft_parse(Weft *w, const char *text, const char *name)
{
	Load l = {.w = w, .path = name, .text = text};
	return boundary(w, parse, &l) ? l.out : NULL;
}

/* Parses a graph whose constants are those of the other graph; its sizes are its own. */
static bool parse_like(void *arg)
{
	static const char here[] = "weft_parse_like";
	Load *l = arg;
	TRY(given_graph(l->w, here, l->like) && graph_is_one(l->w, l->like));
	TRY(given(l->w, here, "the text", l->text) && given_text(l->w, here, "the name", l->path));
	Ir *ir = l->like->g->ir;
	sym_scope_new(ir->syms);
	Graph *g = graph_parse(ir, l->text, l->path);
	TRY(g && graph_verify(g));
	return loaded(l, g);
}

WeftGraph *weft_parse_like(Weft *w, const WeftGraph *like, const char *text, const char *name)
{
	Load l = {.w = w, .path = name, .text = text, .like = like};
	return boundary(w, parse_like, &l) ? l.out : NULL;
}

typedef struct {
	Weft *w;
	const WeftGraph *from;
	WeftGraph *out;
} GraphCopy;

static bool copy(void *arg)
{
	GraphCopy *c = arg;
	TRY(given_graph(c->w, "weft_copy_graph", c->from) && graph_is_one(c->w, c->from));
	c->out = graph_wrap(c->w, graph_clone(c->from->g), c->from->path);
	c->out->transformed = c->from->transformed;
	c->out->named = c->from->named;
	c->out->seed = c->from->seed;
	c->out->rng_input = c->from->rng_input;
	c->out->rng_cipher = c->from->rng_cipher;
	return true;
}

WeftGraph *weft_copy_graph(Weft *w, const WeftGraph *g)
{
	GraphCopy c = {.w = w, .from = g};
	return boundary(w, copy, &c) ? c.out : NULL;
}
