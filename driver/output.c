/* What a compilation leaves behind: a shared object, a folder of C, texts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/compile.h"
#include "driver/jit.h"
#include "driver/native.h"
#include "driver/prepare.h"

typedef struct {
	Compilation c;
	Weft *w;
	const WeftGraph *g;
	const WeftOptions *o;
	WeftEmit emit;
	const char *path;
} Output;

/* The weight file's name beside the object: model.so -> model.weights. */
static const char *weights_path(Arena *a, const char *so)
{
	const char *slash = strrchr(so, '/'), *dot = strrchr(so, '.');
	size_t n = dot && (!slash || dot > slash) ? (size_t)(dot - so) : strlen(so);
	return arena_printf(a, "%.*s.weights", (int)n, so);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* What must not be left behind, however the compilation ends. */
typedef struct {
	const char *folder, *so, *weights; /* NULL: not there */
} Temporaries;

static void remove_temporaries(void *arg)
{
	Temporaries *t = arg;
	if (t->folder)
		folder_remove(t->folder);
	if (t->so)
		unlink(t->so);
	if (t->weights)
		unlink(t->weights);
	*t = (Temporaries){0};
}

static bool move(Ctx *ctx, const char *from, const char *to)
{
	return rename(from, to) == 0 || ctx_error(ctx, to, "cannot write: %s", strerror(errno));
}

/* The weights as an object; NULL in *object when there are none. */
static bool write_weights_object(Compilation *c, const char *folder, const char **object)
{
	*object = NULL;
	if (!c->program->weight_bytes)
		return true;
	if (c->program->weight_bytes > 1900u << 20)
		return ctx_error(c->ctx, NULL,
				 "%llu bytes of weights are too many to embed; use --weights file",
				 (unsigned long long)c->program->weight_bytes);
	*object = arena_printf(c->ctx->arena, "%s/weights.o", folder);
	return section_write(c->program, SECTION_OBJECT, c->weights_symbol, c->target->triple, "",
			     *object);
}

/* Link to a name beside the final one, so that the rename is atomic. */
static bool build(Output *x, const Temporaries *t, const char *weights_name)
{
	Compilation *c = &x->c;
	const char *object = NULL;
	TRY(t->weights ? section_write(c->program, SECTION_FILE, NULL, NULL, c->weights_hash, t->weights)
		       : write_weights_object(c, t->folder, &object));
	phase_end(c, "weights");
	TRY(c->llvm ? native_shared(c, t->folder, object, weights_name, t->so)
		    : build_shared(c, t->folder, object, t->so));
	struct stat st;
	if (stat(t->so, &st) == 0)
		c->w->report.code_bytes =
			(uint64_t)st.st_size - (object ? c->program->weight_bytes : 0);
	return true;
}

/* Before anything expensive: can the result be written at all? */
static bool check_writable(Ctx *ctx, const char *path)
{
	struct stat st;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return ctx_error(ctx, path, "cannot write: is a folder");
	const char *temp = path_temp(ctx, path);
	int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return ctx_error(ctx, path, "cannot write: %s", strerror(errno));
	close(fd);
	unlink(temp);
	return true;
}

static bool compile(void *arg)
{
	Output *x = arg;
	Compilation *c = &x->c;
	Ctx *ctx = x->w->ctx;
	bool separate = x->o && x->o->weights == WEFT_WEIGHTS_FILE;
	const char *weights = separate ? weights_path(ctx->arena, x->path) : NULL;
	TRY(compile_begin(c, x->w, x->g, x->o));
	TRY(check_writable(ctx, x->path));
	TRY(compile_lower(c));
	const char *name = weights ? base_name(weights) : NULL;
	TRY(c->llvm || compile_print(c, name));
	Temporaries *t = ARENA_NEW(ctx->arena, Temporaries);
	ctx_defer(ctx, remove_temporaries, t);
	TRY((t->folder = folder_temp(ctx)));
	t->so = path_temp(ctx, x->path);
	t->weights = weights ? path_temp(ctx, weights) : NULL;
	bool ok = build(x, t, name);
	if (ok)
		compile_report(c); /* may run out of memory: nothing after the moves does */
	ok = ok && (!weights || move(ctx, t->weights, weights)) && move(ctx, t->so, x->path);
	remove_temporaries(t);
	return ok;
}

bool weft_compile(Weft *w, const WeftGraph *g, const WeftOptions *o, const char *path)
{
	Output x = {.w = w, .g = g, .o = o, .path = path};
	return boundary(w, compile, &x);
}

static bool fill_folder(Output *x, const char *folder)
{
	Compilation *c = &x->c;
	TRY(write_sources(c, folder));
	if (!c->program->weight_bytes)
		return true;
	const char *path = arena_printf(c->ctx->arena, "%s/weights.bin", folder);
	const char *temp = path_temp(c->ctx, path);
	if (section_write(c->program, SECTION_RAW, NULL, NULL, "", temp) && move(c->ctx, temp, path))
		return true;
	unlink(temp);
	return false;
}

/* A new folder appears when it is complete; in one that exists files are replaced. */
static bool emit_folder(Output *x)
{
	Ctx *ctx = x->w->ctx;
	if (access(x->path, F_OK) == 0)
		return fill_folder(x, x->path);
	TRY(folder_make(ctx, x->path) &&
	    (rmdir(x->path) == 0 || ctx_error(ctx, x->path, "cannot write")));
	Temporaries *t = ARENA_NEW(ctx->arena, Temporaries);
	ctx_defer(ctx, remove_temporaries, t);
	t->folder = path_temp(ctx, x->path);
	bool ok = fill_folder(x, t->folder) && move(ctx, t->folder, x->path);
	remove_temporaries(t);
	return ok;
}

static void list_type(Output *x, Text *t, uint32_t k, const char *name, Node n)
{
	text_printf(t, " *   %u %s: ", k, strstr(name, "*/") ? "" : name);
	type_print(x->g->g->ir, node_type_id(x->g->g, n), t);
	text_char(t, '\n');
}

/* For whoever links the model: what goes in, what comes out, how to reach it. */
static void header_text(Output *x, Text *t)
{
	const Compilation *c = &x->c;
	const Graph *g = x->g->g;
	const char *symbol = c->o.symbol ? c->o.symbol : "weft_model";
	text_printf(t, "/* The compiled model %s.\n *\n * Inputs:\n", c->name);
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].kind == INPUT_USER)
			list_type(x, t, k, g->input.data[k].name, g->input.data[k].node);
	text_add(t, " * Outputs:\n");
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].node.i && g->output.data[k].writes < 0)
			list_type(x, t, k, g->output.data[k].name, g->output.data[k].node);
	text_printf(t, " */\n#ifndef WEFT_HEADER_%s\n#define WEFT_HEADER_%s\n\n", c->name, c->name);
	text_printf(t,
		    "#include \"weft_model.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
		    "const WeftModel *%s(void);\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n",
		    symbol);
}

static void level_text(const Output *x, const Level *level, Text *t)
{
	const Program *p = level->program;
	if (x->c.level.n > 1)
		text_printf(t, "# %s\n", level->target->name);
	if (x->emit == WEFT_EMIT_PROGRAM) {
		loop_print(p->sizes, t, false);
		loop_print(p->run, t, false);
	}
	for (uint32_t k = 0; x->emit == WEFT_EMIT_LOOPS && k < p->fn.n; k++)
		loop_print(p->fn.data[k], t, false);
}

static bool emit_text(Output *x)
{
	Compilation *c = &x->c;
	Text t;
	text_init(&t, c->ctx->arena);
	if (x->emit == WEFT_EMIT_HEADER)
		header_text(x, &t);
	if (x->emit == WEFT_EMIT_IR)
		graph_print(c->g, &t);
	bool of_level = x->emit == WEFT_EMIT_PROGRAM || x->emit == WEFT_EMIT_LOOPS;
	for (uint32_t k = 0; of_level && k < c->level.n; k++)
		level_text(x, &c->level.data[k], &t);
	return file_write(c->ctx, x->path, t.data, t.n);
}

/* What LLVM makes: beside the final name first. */
static bool emit_native(Output *x)
{
	Ctx *ctx = x->w->ctx;
	const char *object = NULL;
	Temporaries *t = ARENA_NEW(ctx->arena, Temporaries);
	ctx_defer(ctx, remove_temporaries, t);
	TRY((t->folder = folder_temp(ctx)));
	t->so = path_temp(ctx, x->path);
	bool ok = (x->emit >= WEFT_EMIT_LLVM || write_weights_object(&x->c, t->folder, &object)) &&
		  native_emit(&x->c, x->emit, t->folder, object, t->so);
	if (ok)
		compile_report(&x->c); /* may run out of memory: before the move */
	ok = ok && move(ctx, t->so, x->path);
	remove_temporaries(t);
	return ok;
}

static bool emit(void *arg)
{
	Output *x = arg;
	TRY(compile_begin(&x->c, x->w, x->g, x->o));
	x->c.llvm = x->emit >= WEFT_EMIT_OBJECT;
	if (x->emit != WEFT_EMIT_C)
		TRY(check_writable(x->w->ctx, x->path));
	TRY(compile_lower(&x->c));
	TRY(x->emit != WEFT_EMIT_C || compile_print(&x->c, NULL));
	if (x->c.llvm)
		return emit_native(x);
	compile_report(&x->c); /* may run out of memory: before there is a result */
	return x->emit == WEFT_EMIT_C ? emit_folder(x) : emit_text(x);
}

bool weft_emit(Weft *w, const WeftGraph *g, const WeftOptions *o, WeftEmit kind, const char *path)
{
	Output x = {.w = w, .g = g, .o = o, .emit = kind, .path = path};
	return boundary(w, emit, &x);
}

static bool plan(void *arg)
{
	Output *x = arg;
	TRY(compile_begin(&x->c, x->w, x->g, x->o));
	TRY(compile_lower(&x->c));
	compile_report(&x->c);
	return true;
}

bool weft_plan(Weft *w, const WeftGraph *g, const WeftOptions *o)
{
	Output x = {.w = w, .g = g, .o = o};
	return boundary(w, plan, &x);
}

typedef struct {
	Output o;
	const WeftModel *model;
} InProcess;

static bool jit(void *arg)
{
	InProcess *x = arg;
	Compilation *c = &x->o.c;
	TRY(compile_begin(c, x->o.w, x->o.g, x->o.o));
	TRY(compile_for_here(c));
	c->llvm = true;
	TRY(compile_lower(c));
	TRY(jit_model(c, &x->model));
	compile_report(c);
	return true;
}

const WeftModel *weft_jit(Weft *w, const WeftGraph *g, const WeftOptions *o)
{
	InProcess x = {.o = {.w = w, .g = g, .o = o}};
	return boundary(w, jit, &x) ? x.model : NULL;
}
