/* What a compilation leaves behind: a shared object, a folder of C, texts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/temp.h"
#include "driver/artifact/backend.h"
#include "driver/artifact/compile.h"
#include "driver/api/given.h"
#include "driver/output/header.h"
#include "driver/jit/jit.h"
#include "driver/jit/loops.h"
#include "driver/artifact/section.h"
#include "driver/jit/compute.h"
#include "driver/artifact/shared_check.h"
#include "ir/build/text.h"

typedef struct {
	Compilation c;
	Weft *w;
	const WeftGraph *g;
	const WeftOptions *o;
	WeftEmit emit;
	const char *path;
} Output;

/* Returns the path of the weight file beside the object: model.so -> model.weights; no other
 * ending is taken off, so that m.v2 and m.v3 have each their own. */
static const char *weights_path(Arena *a, const char *so)
{
	size_t n = strlen(so);
	return arena_printf(a, "%.*s.weights",
			    (int)(n > 3 && !strcmp(so + n - 3, ".so") ? n - 3 : n), so);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Where a compilation writes. */
typedef struct {
	OutFile *so, *weights; /* NULL: not there */
	const char *folder;    /* of temporary files; removed at the latest with the context */
} OutputPlaces;

static void remove_folder(void *arg)
{
	OutputPlaces *p = arg;
	if (p->folder)
		temp_remove(p->folder);
	temp_end(p->folder);
	p->folder = NULL;
}

static OutputPlaces *places_new(Ctx *ctx)
{
	OutputPlaces *p = ARENA_NEW(ctx->arena, OutputPlaces);
	ctx_defer(ctx, remove_folder, p);
	return p;
}

/* Drops files and folder, however it went. */
static void places_drop(OutputPlaces *p)
{
	remove_folder(p);
	if (p->so)
		out_drop(p->so);
	if (p->weights)
		out_drop(p->weights);
}

static bool place_weights(Ctx *ctx, OutputPlaces *p)
{
	const OutFile *so = p->so;
	if (!so->to)
		return ctx_error(ctx, so->path,
				 "is no regular file: no file of weights can lie beside it");
	TRY((p->weights = out_begin(ctx, weights_path(ctx->arena, so->to))));
	return (p->weights->to && strcmp(p->weights->to, so->to) != 0) ||
	       ctx_error(ctx, p->weights->path, "the weights would be written to %s", so->path);
}

/* Writes the weights as an object; sets *object to NULL when there are none. */
static bool write_weights_object(Compilation *c, const char *folder, const char **object)
{
	*object = NULL;
	if (!c->program->weight_bytes)
		return true;
	TRY(recipes_compute(c));
	if (c->program->weight_bytes > 1900u << 20)
		return ctx_error(c->ctx, NULL,
				 "%llu bytes of weights are too many to embed; use --weights file",
				 (unsigned long long)c->program->weight_bytes);
	*object = arena_printf(c->ctx->arena, "%s/weights.o", folder);
	const SectionNames names = {.symbol = c->weights_symbol, .triple = c->target->isa.triple};
	int why = section_write(c->program, SECTION_OBJECT, &names, c->o.jobs, *object);
	return !why || ctx_error(c->ctx, *object, "cannot write: %s", strerror(why)) ||
	       ctx_kind(c->ctx, REFUSAL_PATH);
}

/* Writes the weights into the temporary file of w. */
static bool write_weights(Compilation *c, SectionKind kind, OutFile *w)
{
	const SectionNames names = {.hash = c->weights_hash};
	TRY(recipes_compute(c));
	w->why = section_write(c->program, kind, &names, c->o.jobs, w->tmp);
	return !w->why || ctx_error(c->ctx, w->path, "cannot write: %s", strerror(w->why)) ||
	       ctx_kind(c->ctx, REFUSAL_PATH);
}

/* Links to a name beside the final one, so that the rename is atomic. */
static bool build(Output *x, const OutputPlaces *p, const char *weights_name)
{
	Compilation *c = &x->c;
	const char *object = NULL;
	phase_begin(c, "weights");
	TRY(p->weights ? write_weights(c, SECTION_FILE, p->weights)
		       : write_weights_object(c, p->folder, &object));
	phase_end(c, "weights");
	const Place place = {p->folder, object, weights_name, p->so->tmp};
	TRY(c->backend->shared(c, &place));
	TRY(shared_check(c, p->so->tmp));
	phase_end(c, "check");
	struct stat st;
	if (stat(p->so->tmp, &st) == 0)
		c->w->report.code_bytes =
			(uint64_t)st.st_size - (object ? c->program->weight_bytes : 0);
	return true;
}

static bool compile_to(Output *x, OutputPlaces *p)
{
	Compilation *c = &x->c;
	Ctx *ctx = x->w->ctx;
	TRY(backend_load(c)); /* may end the process: before there are files */
	TRY((p->so = out_begin(ctx, x->path)));
	c->out_path = p->so->path;
	TRY(c->o.weights != WEFT_WEIGHTS_FILE || place_weights(ctx, p));
	if (c->fallback)
		ctx_note(ctx, NULL, "%s", c->fallback);
	TRY(compile_lower(c));
	const char *name = p->weights ? base_name(p->weights->to) : NULL;
	TRY((p->folder = folder_temp(ctx)));
	TRY(build(x, p, name));
	compile_report(c); /* may run out of memory: nothing after the moves does */
	return (!p->weights || out_commit(ctx, p->weights)) && out_commit(ctx, p->so);
}

static bool fill_folder(Output *x, const char *folder)
{
	Compilation *c = &x->c;
	Ctx *ctx = c->ctx;
	TRY(c->backend->emit(c, x->emit, &(Place){.out = folder}));
	if (!c->program->weight_bytes || x->emit == WEFT_EMIT_SHARED)
		return true;
	OutFile *weights = out_begin(ctx, arena_printf(ctx->arena, "%s/weights.bin", folder));
	return weights && write_weights(c, SECTION_RAW, weights) && out_commit(ctx, weights);
}

/* Writes a folder. A new one appears when it is complete; in one that exists files are replaced. */
static bool emit_folder(Output *x)
{
	Ctx *ctx = x->w->ctx;
	if (access(x->path, F_OK) == 0)
		return fill_folder(x, x->path);
	size_t n = strlen(x->path);
	while (n > 1 && x->path[n - 1] == '/')
		n--;
	const char *path = arena_strndup(ctx->arena, x->path, n);
	TRY(folder_make(ctx, path) && (rmdir(path) == 0 || ctx_error(ctx, path, "cannot write") ||
				       ctx_kind(ctx, REFUSAL_PATH)));
	OutputPlaces *p = places_new(ctx);
	path_sweep(ctx, path);
	p->folder = path_temp(ctx, path);
	temp_begin(p->folder);
	bool ok = fill_folder(x, p->folder) &&
		  (rename(p->folder, path) == 0 ||
		   ctx_error(ctx, path, "cannot write: %s", strerror(errno)) ||
		   ctx_kind(ctx, REFUSAL_PATH));
	places_drop(p);
	return ok;
}

/* Lists the calls of an entry: what the launches of `run` count. */
static void list_calls(const ProgramEntry *e, Text *t)
{
	for (uint32_t k = 0; k < e->ncall; k++) {
		const ProgramCall *c = program_call(e, k);
		text_printf(t, "# call %u: %s", k, c->name);
		if (c->lines.nline)
			text_printf(t, ", %s", ir_loc_text(e->program->ir, c->lines.at));
		if (c->lines.nline > 1)
			text_printf(t, " (+%u line%s)", c->lines.nline - 1,
				    c->lines.nline > 2 ? "s" : "");
		text_char(t, '\n');
	}
}

static void entry_text(const ProgramEntry *e, Text *t)
{
	for (uint32_t k = 0; k < e->sizes_outlined.n; k++)
		loop_print(e->sizes_outlined.data[k], t, false);
	loop_print(e->sizes, t, false);
	for (uint32_t k = 0; k < e->run_outlined.n; k++)
		loop_print(e->run_outlined.data[k], t, false);
	list_calls(e, t);
	loop_print(e->run, t, false);
}

static void level_text(const Output *x, const TargetLevel *level, Text *t)
{
	const Program *p = level->program;
	if (x->c.level.n > 1)
		text_printf(t, "# %s\n", level->target->isa.name);
	for (uint32_t k = 0; x->emit == WEFT_EMIT_PROGRAM && k < p->entry.n; k++)
		entry_text(&p->entry.data[k], t);
	for (uint32_t k = 0;
	     (x->emit == WEFT_EMIT_LOOPS || x->emit == WEFT_EMIT_SCHEDULES) && k < p->fn.n; k++)
		loop_print(p->fn.data[k], t, false);
}

static void print_graphs(const Compilation *c, Text *t)
{
	for (uint32_t k = 0; k < c->from->nentry; k++) {
		graph_print(c->g[k], t);
	}
}

static bool emit_text(Output *x, OutFile *out)
{
	Compilation *c = &x->c;
	Text t;
	text_init(&t, c->ctx->arena);
	if (x->emit == WEFT_EMIT_HEADER)
		header_text(c, x->g, &t);
	if (x->emit == WEFT_EMIT_IR)
		print_graphs(c, &t);
	bool of_level = x->emit == WEFT_EMIT_PROGRAM || x->emit == WEFT_EMIT_SCHEDULES ||
			x->emit == WEFT_EMIT_LOOPS;
	for (uint32_t k = 0; of_level && k < c->level.n; k++)
		level_text(x, &c->level.data[k], &t);
	TRY(out_open(c->ctx, out));
	out_write(out, t.data, t.n);
	return out_commit(c->ctx, out);
}

/* Writes a file that a back end makes. */
static bool emit_made(Output *x, OutputPlaces *p)
{
	Ctx *ctx = x->w->ctx;
	const Backend *b = x->c.backend;
	const char *object = NULL;
	TRY((p->folder = folder_temp(ctx)));
	TRY(!(b->objects >> x->emit & 1) || write_weights_object(&x->c, p->folder, &object));
	TRY(b->emit(&x->c, x->emit, &(Place){p->folder, object, NULL, p->so->tmp}));
	compile_report(&x->c); /* may run out of memory: before the move */
	return out_commit(ctx, p->so);
}

static bool emit_to(Output *x, OutputPlaces *p)
{
	const Backend *made_by =
		x->emit == WEFT_EMIT_SHARED ? x->c.backend : backend_of_kind(x->emit);
	x->c.backend = made_by ? made_by : x->c.backend;
	TRY(!made_by || backend_takes(made_by, &x->c));
	bool folder = made_by && made_by->folders >> x->emit & 1;
	x->c.plain = x->emit == WEFT_EMIT_SCHEDULES;
	TRY(!made_by || backend_load(&x->c));
	TRY(folder || (p->so = out_begin(x->w->ctx, x->path)));
	x->c.out_path = folder ? NULL : p->so->path;
	TRY(compile_lower(&x->c));
	if (made_by && !folder)
		return emit_made(x, p);
	compile_report(&x->c); /* may run out of memory: before there is a result */
	return folder ? emit_folder(x) : emit_text(x, p->so);
}

/* Makes a shared object, what a back end makes instead, or another form. */
static bool make_output(Output *x, OutputPlaces *p)
{
	return x->emit == WEFT_EMIT_SHARED && x->c.backend->shared ? compile_to(x, p)
								   : emit_to(x, p);
}

static bool compile(void *arg)
{
	Output *x = arg;
	TRY(given_text(x->w, "weft_compile", "the path", x->path));
	TRY(compile_begin(&x->c, x->w, x->g, x->o));
	OutputPlaces *p = places_new(x->w->ctx);
	bool ok = make_output(x, p);
	places_drop(p);
	return ok;
}

bool weft_compile(Weft *w, const WeftGraph *g, const WeftOptions *o, const char *path)
{
	Output x = {.w = w, .g = g, .o = o, .emit = WEFT_EMIT_SHARED, .path = path};
	return boundary(w, compile, &x);
}

static bool check_kind(const Output *x, const char *function)
{
	return (unsigned)x->emit <= WEFT_EMIT_HIP ||
	       ctx_error(x->w->ctx, function, "there is nothing of kind %d to write", (int)x->emit);
}

static bool emit(void *arg)
{
	Output *x = arg;
	TRY(given_text(x->w, "weft_emit", "the path", x->path));
	TRY(check_kind(x, "weft_emit"));
	TRY(compile_begin(&x->c, x->w, x->g, x->o));
	OutputPlaces *p = places_new(x->w->ctx);
	bool ok = make_output(x, p);
	places_drop(p);
	return ok;
}

bool weft_emit(Weft *w, const WeftGraph *g, const WeftOptions *o, WeftEmit kind, const char *path)
{
	Output x = {.w = w, .g = g, .o = o, .emit = kind, .path = path};
	return boundary(w, kind == WEFT_EMIT_SHARED ? compile : emit, &x);
}

/* ---- into memory ---- */

typedef struct {
	Output o;
	WeftMemory *out, *weights;
} Saving;

static void free_data(void *user, const void *data)
{
	(void)user;
	free((void *)(uintptr_t)data);
}

/* Reads all of a file, to an address that a weight section may have. */
static bool read_back(Ctx *ctx, const char *path, WeftMemory *out)
{
	enum { ALIGN = 64 };
	FILE *f = fopen(path, "rbe");
	struct stat st;
	if (!f || fstat(fileno(f), &st)) {
		if (f)
			fclose(f);
		return ctx_error(ctx, path, "cannot read: %s", strerror(errno));
	}
	size_t n = (size_t)st.st_size;
	char *data = aligned_alloc(ALIGN, (n / ALIGN + 1) * ALIGN);
	bool ok = data && fread(data, 1, n, f) == n;
	fclose(f);
	if (ok) {
		*out = (WeftMemory){data, n, free_data, NULL};
		return true;
	}
	free(data);
	return ctx_error(ctx, path, "cannot read %zu bytes into memory", n);
}

/* Writes the output into a folder and reads it back: a linker writes files, whatever the output
 * is. */
static bool save_to(Saving *s, const char *folder, OutputPlaces *p)
{
	Output *x = &s->o;
	Ctx *ctx = x->w->ctx;
	const bool shared = x->emit == WEFT_EMIT_SHARED;
	x->path = arena_printf(ctx->arena, "%s/%s%s", folder, x->c.name, shared ? ".so" : "");
	TRY(make_output(x, p));
	TRY(!p->weights || read_back(ctx, weights_path(ctx->arena, x->path), s->weights));
	return read_back(ctx, x->path, s->out);
}

static bool save(void *arg)
{
	Saving *s = arg;
	Output *x = &s->o;
	Ctx *ctx = x->w->ctx;
	TRY(given(x->w, "weft_save_memory", "the result", s->out) &&
	    check_kind(x, "weft_save_memory"));
	if (x->emit == WEFT_EMIT_C)
		return ctx_error(ctx, "weft_save_memory",
				 "C is a folder of files: expected a kind that is one file");
	TRY(compile_begin(&x->c, x->w, x->g, x->o));
	if (x->emit == WEFT_EMIT_SHARED && x->c.backend->folders >> x->emit & 1)
		return ctx_error(
			ctx, "weft_save_memory",
			"back end %s makes a folder of files: expected one that makes a file",
			x->c.backend->name);
	if (x->emit == WEFT_EMIT_SHARED && x->c.o.weights == WEFT_WEIGHTS_FILE)
		TRY(given(x->w, "weft_save_memory", "the result for weights that are not embedded",
			  s->weights));
	OutputPlaces *around = places_new(ctx), *p = places_new(ctx);
	bool ok = (around->folder = folder_temp(ctx)) && save_to(s, around->folder, p);
	places_drop(p);
	places_drop(around);
	return ok;
}

bool weft_save_memory(Weft *w, const WeftGraph *g, const WeftOptions *o, WeftEmit kind,
		      WeftMemory *out, WeftMemory *weights)
{
	WeftMemory none = {0};
	Saving s = {.o = {.w = w, .g = g, .o = o, .emit = kind}, .out = out, .weights = weights};
	if (out)
		*out = none;
	if (weights)
		*weights = none;
	bool ok = boundary(w, save, &s);
	if (!ok && weights && weights->data)
		free_data(NULL, weights->data);
	if (!ok && weights)
		*weights = none;
	return ok;
}

typedef struct {
	Weft *w;
	const char *path;
	const void *data;
	size_t n;
} Writing;

static bool write_file(void *arg)
{
	const Writing *x = arg;
	TRY(given_text(x->w, "weft_write_file", "the path", x->path));
	TRY(!x->n || given(x->w, "weft_write_file", "the data", x->data));
	return file_write(x->w->ctx, x->path, x->data, x->n);
}

bool weft_write_file(Weft *w, const char *path, const void *data, size_t n)
{
	Writing x = {w, path, data, n};
	return boundary(w, write_file, &x);
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
	bool keep;
} InProcess;

static bool jit(void *arg)
{
	InProcess *x = arg;
	Compilation *c = &x->o.c;
	TRY(compile_begin(c, x->o.w, x->o.g, x->o.o));
	TRY(compile_for_here(c));
	c->backend = backend_here();
	TRY(compile_lower(c));
	TRY((x->keep ? jit_keep : jit_model)(c, &x->model));
	compile_report(c);
	return true;
}

static bool loops(void *arg)
{
	InProcess *x = arg;
	Compilation *c = &x->o.c;
	TRY(compile_begin(c, x->o.w, x->o.g, x->o.o));
	if (c->level.n > 1)
		return ctx_error(c->ctx, NULL,
				 "loop IR is interpreted for one target, not for several");
	TRY(compile_lower(c));
	TRY(loops_model(c, &x->model));
	compile_report(c);
	return true;
}

const WeftModel *weft_loops(Weft *w, const WeftGraph *g, const WeftOptions *o)
{
	InProcess x = {.o = {.w = w, .g = g, .o = o}};
	return boundary(w, loops, &x) ? x.model : NULL;
}

const WeftModel *weft_jit(Weft *w, const WeftGraph *g, const WeftOptions *o)
{
	InProcess x = {.o = {.w = w, .g = g, .o = o}};
	return boundary(w, jit, &x) ? x.model : NULL;
}

const WeftModel *weft_jit_keep(Weft *w, const WeftGraph *g, const WeftOptions *o)
{
	InProcess x = {.o = {.w = w, .g = g, .o = o}, .keep = true};
	return boundary(w, jit, &x) ? x.model : NULL;
}
