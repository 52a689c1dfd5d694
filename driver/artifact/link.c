#include "driver/artifact/link.h"

#include <elf.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/artifact/ar.h"
#include "driver/targets/embed.h"
#include "driver/artifact/jobs.h"
#include "driver/artifact/user_links.h"
#include "driver/elf/elf_link.h"
#include "frontend/files/file.h"

/* What linkers, and Debian, call a machine. */
typedef struct {
	const char *triple, *emulation, *debian;
	uint16_t elf; /* e_machine */
} Linking;

static const Linking machines[] = {
	{"x86_64-linux-gnu", "elf_x86_64", "amd64", EM_X86_64},
	{"aarch64-linux-gnu", "aarch64linux", "arm64", EM_AARCH64},
	{"riscv64-linux-gnu", "elf64lriscv", "riscv64", EM_RISCV},
};

#if defined(__x86_64__)
#define HOST 0
#elif defined(__aarch64__)
#define HOST 1
#else
#define HOST 2
#endif

static const Linking *machine_for(Ctx *ctx, const Target *t)
{
	for (size_t k = 0; k < sizeof machines / sizeof *machines; k++)
		if (t->isa.triple ? !strcmp(t->isa.triple, machines[k].triple) : k == HOST)
			return &machines[k];
	ctx_error(ctx, NULL, "no linker is known for %s: use --backend c and a C compiler for it",
		  t->isa.triple);
	return NULL;
}

/* ---- finding ---- */

bool on_path(const char *name, char path[PATH_MAX])
{
	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && access(path, X_OK) == 0;
	for (const char *p = getenv("PATH"); p && *p; p += *p == ':') {
		int n = (int)strcspn(p, ":");
		if (snprintf(path, PATH_MAX, "%.*s/%s", n, p, name) < PATH_MAX &&
		    access(path, X_OK) == 0)
			return true;
		p += n;
	}
	return false;
}

/* Returns a linker for the machine; NULL if there is none. lld serves every machine; the
 * system's own linker one. */
static const char *linker_on_path(Arena *a, const Linking *m)
{
	const char *name[] = {"ld.lld", "ld.lld-19", arena_printf(a, "%s-ld", m->triple),
			      m == &machines[HOST] ? "ld" : NULL};
	char path[PATH_MAX];
	for (size_t k = 0; k < sizeof name / sizeof *name; k++)
		if (name[k] && on_path(name[k], path))
			return name[k];
	return NULL;
}

static const char *find_linker(Ctx *ctx, const Linking *m)
{
	const char *found = linker_on_path(ctx->arena, m);
	if (!found)
		ctx_error(ctx, NULL,
			  "no linker on PATH for %s: install lld, or binutils for that machine "
			  "(looked for ld.lld, ld.lld-19, %s-ld%s)",
			  m->triple, m->triple, m == &machines[HOST] ? ", ld" : "");
	return found;
}

/* Folders of shared libraries; of another machine's below its own name only. */
static const char *const folders[] = {"/lib/%s", "/usr/lib/%s", "/usr/%s/lib", "/usr/lib/gcc/%s/*",
				      "/usr/lib/gcc-cross/%s/*"};
static const char *const host_folders[] = {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};

/* Returns the last file that matches the pattern; NULL if none does. The copy for the arena,
 * which may unwind, is made when glob's memory is free. */
static const char *last_match(Arena *a, const char *pattern)
{
	glob_t g = {0};
	char found[PATH_MAX] = "";
	if (glob(pattern, 0, NULL, &g) == 0 && g.gl_pathc)
		snprintf(found, sizeof found, "%s", g.gl_pathv[g.gl_pathc - 1]);
	globfree(&g);
	return *found ? arena_strdup(a, found) : NULL;
}

/* What link_shared names, and Debian's package of it. */
typedef struct {
	const char *file, *package;
} Library;

static const Library c_libraries[] = {
	{"libm.so.6", "libc6"}, {"libgcc_s.so.1", "libgcc-s1"}, {"libc.so.6", "libc6"}};

static void missing_library(Ctx *ctx, const Linking *m, const Library *library)
{
	const char *cross =
		m == &machines[HOST] ? "" : arena_printf(ctx->arena, "-%s-cross", m->debian);
	ctx_error(ctx, NULL, "no %s for %s: install it (Debian: %s%s), or use --backend c",
		  library->file, m->triple, library->package, cross);
}

/* Returns the path of a library; NULL if it is not there. */
static const char *library_path(Arena *a, const Linking *m, const Library *library)
{
	const char *found = NULL;
	for (size_t k = 0; !found && k < sizeof folders / sizeof *folders; k++) {
		const char *slash = strchr(folders[k], '%');
		found = last_match(a,
				   arena_printf(a, "%.*s%s%s/%s", (int)(slash - folders[k]),
						folders[k], m->triple, slash + 2, library->file));
	}
	for (size_t k = 0;
	     !found && m == &machines[HOST] && k < sizeof host_folders / sizeof *host_folders; k++)
		found = last_match(a, arena_printf(a, "%s/%s", host_folders[k], library->file));
	return found;
}

/* Returns the path of a library; NULL after ctx_error. */
static const char *find_library(Ctx *ctx, const Linking *m, const Library *library)
{
	const char *found = library_path(ctx->arena, m, library);
	if (!found)
		missing_library(ctx, m, library);
	return found;
}

/* ---- running the linker ---- */

static bool run(Compilation *c, const char *folder, const char *out, Words *w)
{
	Arena *a = weft_arena(c->w);
	Jobs one = {.limit = 1, .folder = folder};
	uint32_t nmissing;
	const JobMissing *missing = user_missing(c, &nmissing);
	array_push(a, &one.job,
		   (Job){.argv = words_argv(a, w),
			 .missing = missing,
			 .nmissing = nmissing,
			 .what = "linking",
			 .makes = out,
			 .output = c->out_path,
			 .log = arena_printf(a, "%s/link.log", folder)});
	return jobs_run(c->ctx, &one);
}

static bool begin(Compilation *c, Words *w, const char *mode, const char *out)
{
	Arena *a = weft_arena(c->w);
	const Linking *m = machine_for(c->ctx, c->target);
	TRY(m);
	const char *linker = find_linker(c->ctx, m);
	TRY(linker);
	words_add(a, w, linker);
	words_add(a, w, "-m");
	words_add(a, w, m->emulation);
	if (strstr(linker, "lld"))
		words_add(a, w, "--no-mmap-output-file"); /* a full disk is an error then, not a
		                                             signal */
	words_split(a, w, mode);
	words_add(a, w, "-o");
	words_add(a, w, out);
	return true;
}

static void add_objects(Compilation *c, Words *w, const LinkInput *in)
{
	for (uint32_t k = 0; k < in->object.n; k++)
		words_add(weft_arena(c->w), w, in->object.data[k]);
}

static const EmbeddedFile *runtime_of(Compilation *c)
{
	const EmbeddedFile *f = runtime_object_for(c->target->isa.triple);
	if (!f)
		ctx_error(c->ctx, NULL, "%s",
			  runtime_object_missing(c->ctx->arena, c->target->isa.triple));
	return f;
}

static bool add_library(Compilation *c, Words *w, const Linking *m, const Library *library)
{
	const char *path = find_library(c->ctx, m, library);
	TRY(path);
	words_add(weft_arena(c->w), w, path);
	return true;
}

/* Adds the libraries of C. --as-needed drops what is not used. */
static bool add_libraries(Compilation *c, Words *w)
{
	const Linking *m = machine_for(c->ctx, c->target);
	TRY(m);
	words_add(weft_arena(c->w), w, "--as-needed");
	for (size_t k = 0; k < sizeof c_libraries / sizeof *c_libraries; k++)
		TRY(add_library(c, w, m, &c_libraries[k]));
	return true;
}

/* Adds the libraries of the user, and folders for them: the linker knows no folders of the
 * system by itself. */
static bool add_user_libraries(Compilation *c, Words *w)
{
	Arena *a = c->ctx->arena;
	const Linking *m = machine_for(c->ctx, c->target);
	TRY(m);
	const char *path = c->o.nlink ? getenv("LIBRARY_PATH") : NULL;
	for (const char *p = path ? path : ""; *p; p += strcspn(p, ":"), p += *p == ':')
		if (*p != ':')
			words_add(a, w, arena_printf(a, "-L%.*s", (int)strcspn(p, ":"), p));
	for (size_t k = 0; c->o.nlink && k < sizeof folders / sizeof *folders - 2; k++) {
		const char *slash = strchr(folders[k], '%');
		words_add(a, w,
			  arena_printf(a, "-L%.*s%s%s", (int)(slash - folders[k]), folders[k],
				       m->triple, slash + 2));
	}
	for (size_t k = 0;
	     c->o.nlink && m == &machines[HOST] && k < sizeof host_folders / sizeof *host_folders;
	     k++)
		words_add(a, w, arena_printf(a, "-L%s", host_folders[k]));
	user_links(c, w);
	return true;
}

/* Links without a linker. object: the runtime's. */
static bool link_here(Compilation *c, const Linking *m, const LinkInput *in, const char *object,
		      const char *out)
{
	enum { NLIBRARY = sizeof c_libraries / sizeof *c_libraries };
	const char *library[NLIBRARY];
	const char **all = ARENA_ARRAY(c->ctx->arena, const char *, in->object.n + 1);
	uint32_t n = 0;
	for (size_t k = 0; k < NLIBRARY; k++) /* few models need libgcc_s */
		if ((library[n] = library_path(c->ctx->arena, m, &c_libraries[k])))
			n++;
	for (uint32_t k = 0; k < in->object.n; k++)
		all[k] = in->object.data[k];
	all[in->object.n] = object;
	return elf_link(c->ctx, &(ElfLink){all, in->object.n + 1, library, n}, out);
}

bool link_shared(Compilation *c, const char *folder, const LinkInput *in, const char *out)
{
	Words w = {0};
	Arena *a = weft_arena(c->w);
	const EmbeddedFile *runtime = runtime_of(c);
	const Linking *m = machine_for(c->ctx, c->target);
	TRY(runtime && m);
	if (!c->o.nlink && elf_links_for(m->elf) && !linker_on_path(a, m)) {
		const char *path = arena_printf(a, "%s/%s", folder, runtime->name);
		return file_write(c->ctx, path, runtime->data, runtime->size) &&
		       link_here(c, m, in, path, out);
	}
	TRY(begin(c, &w,
		  "-shared --gc-sections -s --build-id=none --hash-style=gnu --eh-frame-hdr "
		  "-z noexecstack -z defs -z relro -z now",
		  out));
	const char *object = arena_printf(a, "%s/%s", folder, runtime->name);
	TRY(file_write(c->ctx, object, runtime->data, runtime->size));
	add_objects(c, &w, in);
	words_add(a, &w, object);
	TRY(add_user_libraries(c, &w));
	TRY(add_libraries(c, &w));
	return run(c, folder, out, &w);
}

bool link_object(Compilation *c, const char *folder, const LinkInput *in, const char *out)
{
	Words w = {0};
	TRY(begin(c, &w, "-r", out));
	add_objects(c, &w, in);
	return run(c, folder, out, &w);
}

bool link_archive(Compilation *c, const char *folder, const LinkInput *in, const char *out)
{
	const EmbeddedFile *runtime = runtime_of(c);
	const char *model = arena_printf(c->ctx->arena, "%s/all.o", folder);
	FileMap file;
	TRY(runtime && link_object(c, folder, in, model) && file_map(c->ctx, model, &file));
	const ArMember member[] = {
		{arena_printf(c->ctx->arena, "%.10s.o", c->name), file.data, file.size},
		{"weft_rt.o", runtime->data, runtime->size},
	};
	return ar_write(c->ctx, out, member, 2);
}
