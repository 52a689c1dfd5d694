/* C files to a shared object: compiler processes in parallel, a cache of objects, one link. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/artifact/cache.h"
#include "driver/artifact/compile.h"
#include "driver/targets/embed.h"
#include "driver/artifact/jobs.h"
#include "driver/artifact/user_links.h"

typedef struct {
	Compilation *c;
	Arena *a;
	const char *folder, *cache, *cc;
	Words link; /* objects */
	Jobs jobs;
	const char *made[64 + 2][2]; /* temporary object, where it belongs in the cache */
	uint32_t nmade;
} ArtifactBuild;

static bool write_embedded(Ctx *ctx, const char *folder, const EmbeddedFile *f)
{
	return file_write(ctx, arena_printf(ctx->arena, "%s/%s", folder, f->name), f->data,
			  f->size);
}

/* Adds the words of a compiler's command line. flags: of the target. */
static void compile_words(ArtifactBuild *b, Words *w, const char *flags, const char *opt, bool cpp)
{
	words_split(b->a, w, b->cc);
	words_split(b->a, w, opt);
	words_split(b->a, w, target_common_flags());
	words_split(b->a, w, flags); /* a unit's own come after what is meant for all */
	words_split(b->a, w, cpp ? "-std=c++17 -fno-exceptions -fno-rtti" : "-std=c11");
	words_split(b->a, w, "-fPIC -fvisibility=hidden");
}

static bool is_header(const char *name)
{
	size_t n = strlen(name);
	return n > 2 && !strcmp(name + n - 2, ".h");
}

static const EmbeddedFile *embedded_files(const Compilation *c)
{
	return c->images ? runtime_cuda_headers : runtime_files;
}

/* Everything a unit includes is part of its key. The runtime includes nothing of the model. */
static const char *const *key_texts(ArtifactBuild *b, const char *source, bool runtime)
{
	ARRAY(const char *) list = {0};
	array_push(b->a, &list, source);
	array_push(b->a, &list, cache_compiler(b->c->ctx, b->cc));
	for (uint32_t k = 0; !runtime && k < b->c->files.file.n; k++)
		if (b->c->files.file.data[k].is_header)
			array_push(b->a, &list, b->c->files.file.data[k].text.data);
	for (const EmbeddedFile *f = embedded_files(b->c); f->name; f++)
		if (is_header(f->name))
			array_push(b->a, &list, (const char *)f->data);
	array_push(b->a, &list, NULL);
	return list.data;
}

typedef struct {
	const char *name, *text, *flags, *opt;
	bool cpp, runtime;
} Unit;

/* Compiles folder/name unless the cache has the object. */
static void add_unit(ArtifactBuild *b, const Unit *u)
{
	Ctx *ctx = b->c->ctx;
	Words w = {0};
	compile_words(b, &w, u->flags, u->opt, u->cpp);
	Words key = {0};
	for (uint32_t k = 0; k < w.word.n; k++)
		words_add(b->a, &key, w.word.data[k]);
	const char *object = arena_printf(b->a, "%s/%s.o", b->folder, u->name);
	b->c->w->report.objects++;
	if (b->cache) {
		const char *kept = cache_path(ctx, b->cache, words_argv(b->a, &key),
					      key_texts(b, u->text, u->runtime));
		if (cache_take(ctx, kept, object)) {
			b->c->w->report.cached++;
			words_add(b->a, &b->link, object);
			return;
		}
		if (b->nmade < sizeof b->made / sizeof *b->made) {
			b->made[b->nmade][0] = object;
			b->made[b->nmade++][1] = kept;
		}
	}
	words_add(b->a, &w, arena_printf(b->a, "-I%s", b->folder));
	words_add(b->a, &w, "-c");
	words_add(b->a, &w, arena_printf(b->a, "%s/%s", b->folder, u->name));
	words_add(b->a, &w, "-o");
	words_add(b->a, &w, object);
	words_add(b->a, &b->link, object);
	array_push(b->a, &b->jobs.job,
		   (Job){.argv = words_argv(b->a, &w),
			 .what = u->name,
			 .makes = object,
			 .log = arena_printf(b->a, "%s/%s.log", b->folder, u->name)});
}

static int by_cost(const void *pa, const void *pb)
{
	const EmitFile *const *a = pa, *const *b = pb;
	if ((*a)->cost != (*b)->cost)
		return (*a)->cost < (*b)->cost ? 1 : -1;
	return strcmp((*a)->name, (*b)->name);
}

static bool add_model(ArtifactBuild *b)
{
	const EmitFiles *f = &b->c->files;
	Ctx *ctx = b->c->ctx;
	const EmitFile **order = ARENA_ARRAY(b->a, const EmitFile *, f->file.n);
	uint32_t n = 0;
	b->c->w->report.objects = 0; /* those that computed weights in this process do not count */
	for (uint32_t k = 0; k < f->file.n; k++) {
		const EmitFile *e = &f->file.data[k];
		TRY(file_write(ctx, arena_printf(b->a, "%s/%s", b->folder, e->name), e->text.data,
			       e->text.n));
		if (!e->is_header)
			order[n++] = e;
	}
	qsort(order, n, sizeof(EmitFile *), by_cost);
	for (uint32_t k = 0; k < n; k++)
		add_unit(b, &(Unit){.name = order[k]->name,
				    .text = order[k]->text.data,
				    .flags = order[k]->flags,
				    .opt = "-O2",
				    .cpp = order[k]->is_cpp});
	return true;
}

static bool is_cross(const Target *t)
{
	return t->isa.triple && runtime_object_for(t->isa.triple) != runtime_object;
}

/* Adds the runtime: the embedded object, or compiled from its text where that does not fit. */
static bool add_runtime(ArtifactBuild *b)
{
	Ctx *ctx = b->c->ctx;
	const Target *least = b->c->level.data[0].target;
	const char *triple = least->isa.triple;
	const EmbeddedFile *object = b->c->images ? runtime_cuda_object
				     : triple     ? runtime_object_for(triple)
						  : NULL;
	for (const EmbeddedFile *f = embedded_files(b->c); f->name; f++) {
		if (object && !is_header(f->name))
			continue;
		TRY(write_embedded(ctx, b->folder, f));
		if (!is_header(f->name))
			add_unit(b, &(Unit){.name = f->name,
					    .text = (const char *)f->data,
					    .flags = least->isa.flags,
					    .opt = "-O2 -pthread",
					    .runtime = true});
	}
	if (!object)
		return true;
	TRY(write_embedded(ctx, b->folder, object));
	words_add(b->a, &b->link, arena_printf(b->a, "%s/%s", b->folder, object->name));
	return true;
}

static void fill_cache(ArtifactBuild *b)
{
	for (uint32_t k = 0; k < b->nmade; k++)
		cache_keep(b->c->ctx, b->made[k][0], b->made[k][1]);
}

static bool link_all(ArtifactBuild *b, const char *weights_object, const char *out)
{
	Words w = {0};
	words_split(b->a, &w, b->cc);
	words_split(b->a, &w,
		    "-shared -Wl,--gc-sections -Wl,-s -Wl,--build-id=none -Wl,-z,noexecstack "
		    "-Wl,-z,defs -Wl,--as-needed");
	words_add(b->a, &w, "-o");
	words_add(b->a, &w, out);
	for (uint32_t k = 0; k < b->link.word.n; k++)
		words_add(b->a, &w, b->link.word.data[k]);
	if (b->c->images)
		words_add(b->a, &w, b->c->images);
	if (weights_object)
		words_add(b->a, &w, weights_object);
	user_links(b->c, &w);
	words_split(b->a, &w, "-pthread -lm");
	Jobs one = {.limit = 1, .folder = b->folder};
	uint32_t nmissing;
	const JobMissing *missing = user_missing(b->c, &nmissing);
	array_push(b->a, &one.job,
		   (Job){.argv = words_argv(b->a, &w),
			 .missing = missing,
			 .nmissing = nmissing,
			 .what = "linking",
			 .makes = out,
			 .output = b->c->out_path,
			 .log = arena_printf(b->a, "%s/link.log", b->folder)});
	return jobs_run(b->c->ctx, &one);
}

/* Returns the compiler to call where none is named: for another machine gcc by its usual name,
 * since $CC is this machine's. */
static const char *default_compiler(const Compilation *c)
{
	const char *env = getenv("CC");
	if (is_cross(c->target))
		return arena_printf(weft_arena(c->w), "%s-gcc", c->target->isa.triple);
	return env && *env ? env : "cc";
}

bool build_shared(Compilation *c, const char *folder, const char *weights_object, const char *out)
{
	ArtifactBuild b = {.c = c, .a = weft_arena(c->w), .folder = folder};
	b.cc = c->o.cc ? c->o.cc : default_compiler(c);
	b.cache = c->o.no_cache ? NULL : cache_folder(c->ctx);
	b.jobs.limit = c->o.jobs;
	b.jobs.folder = folder;
	b.jobs.progress = c->o.progress;
	b.jobs.progress_user = c->o.progress_user;
	TRY(add_model(&b));
	TRY(add_runtime(&b));
	TRY(jobs_run(c->ctx, &b.jobs));
	fill_cache(&b);
	phase_end(c, "cc");
	phase_begin(c, "link");
	TRY(link_all(&b, weights_object, out));
	phase_end(c, "link");
	return true;
}

/* ---- the folder of sources ---- */

static void makefile_head(const Compilation *c, const Target *least, Text *t)
{
	text_printf(t, "# %s, compiled by weft %s for %s", c->name, WEFT_VERSION, least->isa.name);
	for (uint32_t k = 1; k < c->level.n; k++)
		text_printf(t, ", %s", c->level.data[k].target->isa.name);
	text_printf(t, ". `make` builds %s.so.\nCC = cc\nCFLAGS = -O2\nTARGET = %s\n", c->name,
		    least->isa.flags);
	text_printf(t, "FLAGS = -std=c11 -fPIC -fvisibility=hidden -pthread %s $(TARGET)\n",
		    target_common_flags());
}

static void makefile_object(const char *source, Text *t)
{
	if (!is_header(source))
		text_printf(t, " %.*s.o", (int)strlen(source) - 2, source);
}

/* Writes the flags of units of other levels than the least, which have their own. */
static void makefile_flags(const Compilation *c, const Target *least, Text *t)
{
	for (uint32_t k = 0; k < c->files.file.n; k++) {
		const EmitFile *e = &c->files.file.data[k];
		if (!e->is_header && strcmp(e->flags, least->isa.flags) != 0)
			text_printf(t, "%.*s.o: TARGET = %s\n", (int)strlen(e->name) - 2, e->name,
				    e->flags);
	}
}

/* Writes the libraries of the user's operators. */
static void makefile_link(const Compilation *c, Text *t)
{
	Words w = {0};
	user_links(c, &w);
	text_add(t, "LINK =");
	for (uint32_t k = 0; k < w.word.n; k++)
		text_printf(t, " %s", w.word.data[k]);
	text_char(t, '\n');
}

/* Whether the model needs the file. Models without user operators, state, or replaceable weights
 * go without some files. */
static bool is_needed(const Compilation *c, const EmbeddedFile *f)
{
	if (strcmp(f->name, "op_call.c") == 0)
		return user_ops(c).n;
	if (strncmp(f->name, "lapack.", 7) == 0 || strcmp(f->name, "jacobi.c") == 0)
		return user_ops_of_runtime(c, false);
	if (strncmp(f->name, "comm.", 5) == 0)
		return user_ops_of_runtime(c, true);
	if (strcmp(f->name, "state.c") == 0 || strcmp(f->name, "stored.c") == 0 ||
	    strcmp(f->name, "replace.c") == 0 || strncmp(f->name, "relayout.", 9) == 0)
		return c->program->state_bytes || c->o.replaceable;
	return true;
}

static bool write_makefile(Compilation *c, const char *folder)
{
	Text t;
	Ctx *ctx = c->ctx;
	const Target *least = c->level.data[0].target;
	bool weights = c->program->weight_bytes > 0;
	text_init(&t, ctx->arena);
	makefile_head(c, least, &t);
	if (user_ops_of_user(c))
		makefile_link(c, &t);
	text_add(&t, "OBJECTS =");
	for (uint32_t k = 0; k < c->files.file.n; k++)
		makefile_object(c->files.file.data[k].name, &t);
	for (const EmbeddedFile *f = runtime_files; f->name; f++)
		if (is_needed(c, f))
			makefile_object(f->name, &t);
	text_printf(&t, "%s\n\n", weights ? " weights.o" : "");
	text_printf(&t, "%s.so: $(OBJECTS)\n\t$(CC) -shared -o $@ $(OBJECTS)%s -pthread -lm\n\n",
		    c->name, user_ops_of_user(c) ? " $(LINK)" : "");
	text_add(&t, "%.o: %.c\n\t$(CC) $(CFLAGS) $(FLAGS) -c -o $@ $<\n\n");
	if (weights)
		text_add(&t, "weights.o: weights.S weights.bin\n\t$(CC) -c -o $@ $<\n\n");
	makefile_flags(c, least, &t);
	text_printf(&t, "clean:\n\trm -f $(OBJECTS) %s.so\n", c->name);
	return file_write(ctx, arena_printf(ctx->arena, "%s/Makefile", folder), t.data, t.n);
}

static bool write_weights_stub(Compilation *c, const char *folder)
{
	Ctx *ctx = c->ctx;
	const char *s = c->weights_symbol;
	const char *text =
		arena_printf(ctx->arena,
			     "/* The weights, placed into the object by the assembler. */\n"
			     "\t.section .rodata.weights, \"a\"\n\t.globl %s\n\t.hidden %s\n"
			     "\t.balign 4096\n%s:\n\t.incbin \"weights.bin\"\n"
			     "\t.section .note.GNU-stack, \"\", %%progbits\n",
			     s, s, s);
	return file_write(ctx, arena_printf(ctx->arena, "%s/weights.S", folder), text,
			  strlen(text));
}

/* Says how the model goes without threads, memory allocation and system; nothing where it needs
 * them. */
static void readme_serial(const Compilation *c, Text *t)
{
	if (c->o.replaceable || c->level.n > 1)
		return;
	text_printf(t,
		    "Without threads, memory allocation and operating system: compile model.c, the "
		    "kernels, serial.c%s%s\nwith -DWEFT_SERIAL, leave out the other .c files, and "
		    "call weft_serial_run (runtime.h) with memory\nof your own.\n\n",
		    user_ops(c).n ? ", op_call.c" : "",
		    c->program->weight_bytes ? " and weights.S" : "");
}

static bool write_readme(Compilation *c, const char *folder)
{
	Text t;
	Ctx *ctx = c->ctx;
	const char *symbol = c->o.symbol ? c->o.symbol : "weft_model";
	text_init(&t, ctx->arena);
	text_printf(&t,
		    "The model %s as C, written by weft %s for %s.\n\n"
		    "`make` builds %s.so; it needs make and a C11 compiler that knows the flags in "
		    "the Makefile.\n"
		    "Another compiler: `make CC=clang`.\n\n",
		    c->name, WEFT_VERSION, c->o.target ? c->o.target : c->target->isa.name,
		    c->name);
	text_printf(&t,
		    "To make it part of a program instead, compile all .c files%s with those "
		    "flags, and call\n\n"
		    "    #include \"weft_model.h\"\n"
		    "    const WeftModel *%s(void);\n\n"
		    "weft_model.h says how a model is opened and run.\n\n",
		    c->program->weight_bytes ? " and weights.S" : "", symbol);
	readme_serial(c, &t);
	text_add(&t, "The files:\n\n");
	for (uint32_t k = 0; k < c->files.file.n; k++)
		text_printf(&t, "    %s\n", c->files.file.data[k].name);
	text_add(&t, "        the kernels, and the table that describes the model\n");
	for (const EmbeddedFile *f = runtime_files; f->name; f++)
		if (is_needed(c, f))
			text_printf(&t, "    %s\n", f->name);
	text_add(&t, "        the runtime: threads, checks of inputs, weights; the same for every "
		     "model. More comments\n        are in the sources of weft\n");
	if (c->program->weight_bytes)
		text_add(&t, "    weights.bin, weights.S\n        the weights, in the layout the "
			     "kernels read\n");
	return file_write(ctx, arena_printf(ctx->arena, "%s/README", folder), t.data, t.n);
}

bool write_sources(Compilation *c, const char *folder)
{
	Ctx *ctx = c->ctx;
	TRY(folder_make(ctx, folder));
	for (uint32_t k = 0; k < c->files.file.n; k++) {
		const EmitFile *e = &c->files.file.data[k];
		TRY(file_write(ctx, arena_printf(ctx->arena, "%s/%s", folder, e->name),
			       e->text.data, e->text.n));
	}
	for (const EmbeddedFile *f = runtime_files; f->name; f++)
		TRY(!is_needed(c, f) || write_embedded(ctx, folder, f));
	if (c->program->weight_bytes)
		TRY(write_weights_stub(c, folder));
	return write_readme(c, folder) && write_makefile(c, folder);
}
