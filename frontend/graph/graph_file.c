#include "frontend/graph/graph_file.h"

#include <string.h>

#include "frontend/files/json.h"
#include "frontend/files/out_file.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/op/node.h"

#define VERSION "1"
enum { ALIGN = 64 };

/* Flags of constants, by their names in files. */
static const struct {
	const char *name;
	size_t at; /* of the bool in Const */
} flags[] = {
	{"param", offsetof(Const, is_param)},      {"buffer", offsetof(Const, is_buffer)},
	{"frozen", offsetof(Const, frozen)},       {"in_blocks", offsetof(Const, in_blocks)},
	{"transient", offsetof(Const, transient)},
};
enum { NFLAG = sizeof flags / sizeof *flags };
/* Other constants that one names. */
static const struct {
	const char *name;
	size_t at; /* of the ConstId in Const */
} links[] = {
	{"same_as", offsetof(Const, same_as)},
	{"holder", offsetof(Const, holder)},
	{"view_of", offsetof(Const, view_of)},
};
enum { NLINK = sizeof links / sizeof *links };

static bool *flag_of(Const *c, size_t k)
{
	return (bool *)((char *)c + flags[k].at);
}

static ConstId *link_of(Const *c, size_t k)
{
	return (ConstId *)((char *)c + links[k].at);
}

/* ---- writing ---- */

typedef struct {
	Ir *ir;
	Ctx *ctx;
	const char *path;
	bool *needed;      /* by ConstId */
	const char **name; /* by ConstId: of the tensor; NULL: none */
	NamedTensor *tensor;
	uint32_t ntensor;
} GraphWriter;

static void need(GraphWriter *w, ConstId id)
{
	if (!id.i || w->needed[id.i])
		return;
	w->needed[id.i] = true;
	for (size_t k = 0; k < NLINK; k++)
		need(w, *link_of(&w->ir->constant.data[id.i], k));
}

static void need_of(GraphWriter *w, const Graph *g)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		need(w, g->input.data[k].init);
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		const Graph *body;
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			need_of(w, body);
		need(w, node_const(g, n));
	}
}

/* Chooses the constants of the file: those that the graph reads, and all parameters, which have
 * names. */
static void choose(GraphWriter *w, const Graph *g)
{
	need_of(w, g);
	for (uint32_t k = 1; k < w->ir->constant.n; k++) {
		const Const *c = &w->ir->constant.data[k];
		if ((c->is_param || c->in_blocks) && !c->view_of.i)
			need(w, (ConstId){k});
	}
}

/* Whether the constant has contents of its own in the file. */
static bool is_stored(const GraphWriter *w, uint32_t k)
{
	const Const *c = &w->ir->constant.data[k];
	return w->needed[k] && !c->in_blocks && !c->same_as.i && !c->view_of.i;
}

static bool check(const GraphWriter *w)
{
	for (uint32_t k = 1; k < w->ir->constant.n; k++) {
		const Const *c = &w->ir->constant.data[k];
		if (!is_stored(w, k))
			continue;
		if (c->recipe)
			return ctx_error(w->ctx, w->path,
					 "constant #%u is computed of replaceable weights: such a "
					 "graph is not written",
					 k);
		if (c->absent || (!c->data && c->bytes))
			return ctx_error(w->ctx, w->path, "weight %s has no values", c->name);
	}
	return true;
}

/* Returns how a constant lies in the file: in a dtype that the format has. */
static Tensor as_tensor(const Const *c)
{
	Tensor t = {.dtype = c->dtype, .rank = c->rank, .data = (void *)(uintptr_t)c->data};
	memcpy(t.dim, c->dim, sizeof *c->dim * c->rank);
	return c->dtype == DT_c128 ? tensor_flat_real(&t) : t;
}

/* Adds tensors whose bytes are a multiple of the alignment, or others: only behind the former is
 * all that follows aligned. */
static void add_tensors(GraphWriter *w, Intern *names, bool aligned)
{
	for (uint32_t k = 1; k < w->ir->constant.n; k++) {
		const Const *c = &w->ir->constant.data[k];
		if (!is_stored(w, k) || (c->bytes % ALIGN == 0) != aligned)
			continue;
		bool fresh = false;
		if (*c->name)
			intern(names, c->name, strlen(c->name), &fresh);
		w->name[k] = fresh ? c->name
				   : arena_printf(w->ctx->arena, "%s#%u", c->name, (unsigned)k);
		w->tensor[w->ntensor++] = (NamedTensor){w->name[k], as_tensor(c)};
	}
}

/* Appends a text as JSON. */
static void add_quoted(Text *t, const char *s)
{
	text_char(t, '"');
	for (; *s; s++) {
		const unsigned char ch = (unsigned char)*s;
		if (ch == '"' || ch == '\\')
			text_printf(t, "\\%c", ch);
		else if (ch < ' ')
			text_printf(t, "\\u%04x", ch);
		else
			text_char(t, *s);
	}
	text_char(t, '"');
}

static void add_member(Text *t, const char *key, const char *value)
{
	text_printf(t, ",\"%s\":", key);
	add_quoted(t, value);
}

static void add_constant(GraphWriter *w, Text *t, uint32_t k)
{
	Const c = w->ir->constant.data[k];
	text_add(t, k > 1 ? ",\n" : "\n");
	if (!w->needed[k]) {
		text_add(t, "null");
		return;
	}
	text_printf(t, "{\"dtype\":\"%s\",\"shape\":[", dtype_name(c.dtype));
	for (uint32_t d = 0; d < c.rank && !c.in_blocks; d++)
		text_printf(t, "%s%lld", d ? "," : "", (long long)c.dim[d]);
	text_add(t, c.in_blocks ? "0]" : "]");
	if (*c.name)
		add_member(t, "name", c.name);
	if (w->name[k])
		add_member(t, "tensor", w->name[k]);
	for (size_t i = 0; i < NFLAG; i++)
		if (*flag_of(&c, i))
			text_printf(t, ",\"%s\":true", flags[i].name);
	for (size_t i = 0; i < NLINK; i++)
		if (link_of(&c, i)->i)
			text_printf(t, ",\"%s\":%u", links[i].name, link_of(&c, i)->i);
	text_char(t, '}');
}

static void add_facts(const Graph *g, bool transformed, Text *t)
{
	text_printf(t, "{\"decomposed\":%s,\"exported\":%s,\"transformed\":%s",
		    g->decomposed ? "true" : "false", g->exported ? "true" : "false",
		    transformed ? "true" : "false");
	if (g->unrounded)
		add_member(t, "unrounded", dtype_name(g->unrounded));
	if (g->activations)
		add_member(t, "activations", dtype_name(g->activations));
	if (g->other_mode)
		add_member(t, "other_mode", g->other_mode);
	text_char(t, '}');
}

bool graph_file_save(const Graph *g, const char *path, bool transformed)
{
	Ir *ir = g->ir;
	Ctx *ctx = ir->ctx;
	Arena *arena = ctx->arena;
	Text text, constants, facts;
	GraphWriter w = {.ir = ir,
			 .ctx = ctx,
			 .path = path,
			 .needed = ARENA_ARRAY(arena, bool, ir->constant.n),
			 .name = ARENA_ARRAY(arena, const char *, ir->constant.n),
			 .tensor = ARENA_ARRAY(arena, NamedTensor, ir->constant.n)};
	Intern names;
	choose(&w, g);
	TRY(check(&w));
	intern_init(&names, arena);
	add_tensors(&w, &names, true);
	add_tensors(&w, &names, false);
	text_init(&text, arena);
	text_init(&constants, arena);
	text_init(&facts, arena);
	graph_print(g, &text);
	text_char(&constants, '[');
	uint32_t last = ir->constant.n - 1;
	while (last && !w.needed[last])
		last--;
	for (uint32_t k = 1; k <= last; k++)
		add_constant(&w, &constants, k);
	text_char(&constants, ']');
	add_facts(g, transformed, &facts);
	const StMeta meta[] = {{"weft.version", VERSION},
			       {"weft.graph", text.data},
			       {"weft.constants", constants.data},
			       {"weft.facts", facts.data}};
	return st_save(ctx, path, w.tensor, w.ntensor, meta, sizeof meta / sizeof *meta);
}

/* ---- reading ---- */

typedef struct {
	Ir *ir;
	Ctx *ctx;
	const char *path;
	StFile file;
} GraphReader;

bool is_graph_file(const void *data, size_t size)
{
	static const char first[] = "{\"__metadata__\":{\"weft.version\":";
	enum { LENGTH = 8 };
	return is_safetensors(data, size) && size >= LENGTH + sizeof first &&
	       !memcmp((const char *)data + LENGTH, first, sizeof first - 1);
}

static bool damaged(const GraphReader *r, const char *what)
{
	return ctx_error(r->ctx, r->path, "the file is damaged: %s", what) ||
	       ctx_kind(r->ctx, REFUSAL_FILE);
}

static bool read_shape(const GraphReader *r, const json_t *o, Const *c)
{
	const json_t *shape = json_object_get(o, "shape");
	const char *dtype = json_string_value(json_object_get(o, "dtype"));
	c->dtype = dtype ? dtype_parse(dtype, (uint32_t)strlen(dtype)) : DT_none;
	c->rank = (uint32_t)json_array_size(shape);
	if (!c->dtype || !json_is_array(shape) || c->rank > MAX_RANK)
		return damaged(r, "a constant has no type");
	int64_t *dim = ARENA_ARRAY(r->ctx->arena, int64_t, c->rank);
	c->dim = dim;
	c->bytes = dtype_size(c->dtype);
	for (uint32_t d = 0; d < c->rank; d++) {
		const json_t *extent = json_array_get(shape, d);
		dim[d] = json_integer_value(extent);
		if (!json_is_integer(extent) || dim[d] < 0 ||
		    __builtin_mul_overflow(c->bytes, (uint64_t)dim[d], &c->bytes))
			return damaged(r, "a constant has no shape");
	}
	return true;
}

/* Reads the numbers of other constants, of which those whose contents are this one's stand before
 * it. n: the number of constants. */
static bool read_links(const GraphReader *r, const json_t *o, size_t n, Const *c)
{
	for (size_t k = 0; k < NLINK; k++) {
		const json_t *link = json_object_get(o, links[k].name);
		if (!link)
			continue;
		const int64_t to = json_integer_value(link);
		if (to < 1 || to > (int64_t)n)
			return damaged(r, "a constant names another one that is not there");
		*link_of(c, k) = (ConstId){(uint32_t)to};
	}
	return (c->same_as.i < r->ir->constant.n && c->view_of.i < r->ir->constant.n) ||
	       damaged(r, "a constant is another name of a later one");
}

/* Reads the contents, which are a tensor, or those of the constant of which this one is another
 * name or a view. One in blocks has none. */
static bool read_contents(const GraphReader *r, const json_t *o, Const *c)
{
	const char *tensor = json_string_value(json_object_get(o, "tensor"));
	const ConstId from = c->same_as.i ? c->same_as : c->view_of;
	if (c->in_blocks)
		return !c->bytes || damaged(r, "a constant in blocks has a value");
	if (from.i) {
		const Const *of = ir_const_of(r->ir, from);
		c->data = of->data;
		return of->bytes == c->bytes || damaged(r, "a constant is no view of another one");
	}
	const Tensor *t = tensor ? st_find(&r->file, tensor) : NULL;
	tensor = tensor ? tensor : "for a constant";
	if (!t || tensor_bytes(t) != c->bytes || dtype_real(t->dtype) != dtype_real(c->dtype))
		return damaged(r, arena_printf(r->ctx->scratch, "it has no tensor %s", tensor));
	c->data = t->data;
	return true;
}

static bool read_constant(const GraphReader *r, const json_t *o, size_t n)
{
	static const float nothing;
	Const c = {.name = "", .dtype = DT_f32, .data = &nothing, .bytes = sizeof nothing};
	if (json_is_null(o)) {
		ir_const(r->ir, c);
		return true;
	}
	const char *name = json_string_value(json_object_get(o, "name"));
	for (size_t k = 0; k < NFLAG; k++)
		*flag_of(&c, k) = json_is_true(json_object_get(o, flags[k].name));
	TRY(read_shape(r, o, &c) && read_links(r, o, n, &c) && read_contents(r, o, &c));
	c.name = name ? arena_strdup(r->ctx->arena, name) : "";
	ir_const(r->ir, c);
	return true;
}

static bool read_constants(const GraphReader *r)
{
	const char *text = st_meta(&r->file, "weft.constants");
	JsonDoc *doc = json_read(r->ctx, text ? text : "", text ? strlen(text) : 0, 0);
	bool ok = json_is_array(doc->root) || damaged(r, "it has no list of constants");
	const size_t n = json_array_size(doc->root);
	for (size_t k = 0; k < n && ok; k++)
		ok = json_is_null(json_array_get(doc->root, k)) ||
				     json_is_object(json_array_get(doc->root, k))
			     ? read_constant(r, json_array_get(doc->root, k), n)
			     : damaged(r, "its list of constants has something else in it");
	json_release(doc);
	return ok;
}

static DType dtype_in(const json_t *o, const char *key)
{
	const char *name = json_string_value(json_object_get(o, key));
	return name ? dtype_parse(name, (uint32_t)strlen(name)) : DT_none;
}

static void read_facts(const GraphReader *r, Graph *g, bool *transformed)
{
	const char *text = st_meta(&r->file, "weft.facts");
	JsonDoc *doc = json_read(r->ctx, text ? text : "{}", text ? strlen(text) : 2, 0);
	const json_t *o = doc->root;
	const char *mode = json_string_value(json_object_get(o, "other_mode"));
	g->decomposed = json_is_true(json_object_get(o, "decomposed"));
	g->exported = json_is_true(json_object_get(o, "exported"));
	g->unrounded = dtype_in(o, "unrounded");
	g->activations = dtype_in(o, "activations");
	g->other_mode = mode ? arena_strdup(r->ctx->arena, mode) : NULL;
	*transformed = json_is_true(json_object_get(o, "transformed"));
	json_release(doc);
}

Graph *graph_file_load(Ir *ir, const char *path, void *data, size_t size, bool *transformed)
{
	GraphReader r = {.ir = ir, .ctx = ir->ctx, .path = path};
	if (!st_open_bytes(ir->ctx, path, data, size, &r.file))
		return NULL;
	const char *version = st_meta(&r.file, "weft.version"),
		   *text = st_meta(&r.file, "weft.graph");
	if ((!version || strcmp(version, VERSION) != 0) &&
	    !(ctx_error(ir->ctx, path, "a graph of version %s, expected " VERSION,
			version ? version : "(none)") ||
	      ctx_kind(ir->ctx, REFUSAL_VERSION)))
		return NULL;
	if (!text)
		return damaged(&r, "it has no graph"), NULL;
	if (!read_constants(&r))
		return NULL;
	Graph *g = graph_parse(ir, text, path);
	if (!g || !graph_verify(g))
		return NULL;
	read_facts(&r, g, transformed);
	return g;
}
