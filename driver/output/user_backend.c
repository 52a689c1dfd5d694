/* Back ends of the user: rows whose functions are a definition's (weft_backend.h). */
#include "weft_backend.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/api/given.h"
#include "driver/artifact/backend.h"
#include "driver/output/user_program.h"

/* ---- what it made ---- */

typedef struct {
	char *name; /* NULL: the only one */
	char *data;
	size_t n, cap;
} MadeFile;

/* Memory is malloc's: the library's frames cannot be unwound. */
typedef struct {
	WeftBackendOutput out; /* first */
	bool folder, no_memory;
	char wrong[300];
	MadeFile *file;
	size_t n;
} Made;

static void free_made(void *arg)
{
	Made *m = arg;
	for (size_t k = 0; k < m->n; k++) {
		free(m->file[k].name);
		free(m->file[k].data);
	}
	free(m->file);
	m->file = NULL;
	m->n = 0;
}

static bool is_file_name(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

static bool fits(Made *m, const char *name)
{
	if (m->folder && !name)
		snprintf(m->wrong, sizeof m->wrong,
			 "makes a folder, and adds a file without a name");
	else if (!m->folder && name)
		snprintf(m->wrong, sizeof m->wrong, "makes one file, and adds %.200s to a folder",
			 name);
	else if (name && !is_file_name(name))
		snprintf(m->wrong, sizeof m->wrong, "adds a file that cannot be called \"%.200s\"",
			 name);
	return !*m->wrong;
}

/* Returns the file of that name, perhaps a new one; NULL if there is no memory. */
static MadeFile *made_file(Made *m, const char *name)
{
	for (size_t k = 0; k < m->n; k++)
		if (!name || !strcmp(m->file[k].name, name))
			return &m->file[k];
	MadeFile *all = realloc(m->file, (m->n + 1) * sizeof *all);
	m->file = all ? all : m->file;
	char *copy = all && name ? strdup(name) : NULL;
	if (!all || (name && !copy))
		return NULL;
	all[m->n] = (MadeFile){.name = copy};
	return &all[m->n++];
}

static bool append(MadeFile *f, const void *data, size_t n)
{
	if (n > f->cap - f->n) {
		size_t cap = 2 * f->cap + n;
		char *more = realloc(f->data, cap);
		if (!more)
			return false;
		f->data = more;
		f->cap = cap;
	}
	if (n)
		memcpy(f->data + f->n, data, n);
	f->n += n;
	return true;
}

static bool add(WeftBackendOutput *out, const char *name, const void *data, size_t n)
{
	Made *m = (Made *)(void *)out;
	if (*m->wrong || !fits(m, name))
		return false;
	MadeFile *f = made_file(m, name);
	m->no_memory |= !f || !append(f, data, n);
	return !m->no_memory;
}

/* ---- the row ---- */

static const WeftBackendDef *def_of(const Compilation *c)
{
	return c->backend->user;
}

static const char *refuses(const Compilation *c)
{
	const WeftBackendDef *d = def_of(c);
	Arena *a = c->ctx->arena;
	const char *why = c->level.n > 1     ? "takes one target, not several levels"
			  : c->o.replaceable ? "knows no replaceable weights"
			  : c->o.weights == WEFT_WEIGHTS_FILE
				  ? "has no file of weights beside what it makes"
				  : NULL;
	if (!why && d->refuses) {
		WeftTargetInfo t = target_info(c->target);
		why = d->refuses(d->user, &t);
	}
	return why ? arena_printf(a, "back end %s: %s %s", d->name, c->target->isa.name, why)
		   : NULL;
}

static uint32_t units(uint32_t kernels)
{
	(void)kernels;
	return 1;
}

/* Checks what the back end's function emit made. */
static bool check(Compilation *c, Made *m, int code)
{
	const char *name = def_of(c)->name;
	m->out.message[sizeof m->out.message - 1] = 0;
	if (m->no_memory)
		ctx_out_of_memory(c->ctx);
	if (*m->wrong)
		return ctx_error(c->ctx, NULL, "back end %s: it %s", name, m->wrong);
	if (code)
		return ctx_error(c->ctx, NULL, "back end %s: %s", name,
				 *m->out.message ? m->out.message
						 : "it failed and does not say why");
	return m->n || ctx_error(c->ctx, NULL, "back end %s: it made nothing", name);
}

static bool emit(Compilation *c, WeftEmit kind, const Place *p)
{
	(void)kind;
	const WeftBackendDef *d = def_of(c);
	WeftBackendProgram program;
	TRY(user_program(c, &program));
	Made *m = ARENA_NEW(c->ctx->arena, Made);
	m->out.size = sizeof m->out;
	m->out.add = add;
	m->folder = d->folder;
	ctx_defer(c->ctx, free_made, m);
	bool ok = check(c, m, d->emit(d->user, &program, &m->out));
	phase_end(c, d->name);
	TRY(ok && (!d->folder || folder_make(c->ctx, p->out)));
	for (size_t k = 0; ok && k < m->n; k++) {
		const MadeFile *f = &m->file[k];
		const char *path =
			d->folder ? arena_printf(c->ctx->arena, "%s/%s", p->out, f->name) : p->out;
		ok = file_write(c->ctx, path, f->data ? f->data : "", f->n);
	}
	free_made(m);
	return ok;
}

/* ---- registering ---- */

typedef struct {
	Weft *w;
	const WeftBackendDef *def;
	const char *path; /* of the library; NULL: of none */
} Registering;

static bool is_name(const char *s)
{
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '-' && *s != '_')
			return false;
	return true;
}

static bool check_def(Ctx *ctx, const char *where, const WeftBackendDef *d)
{
	if (d->size != sizeof *d)
		return ctx_error(ctx, where,
				 "its definition has %u bytes, expected %zu: it was compiled with "
				 "another weft_backend.h",
				 d->size, sizeof *d);
	if (!d->name || !*d->name || !is_name(d->name))
		return ctx_error(
			ctx, where,
			"a back end cannot be called \"%s\": expected letters, digits, - and _",
			d->name ? d->name : "");
	return d->emit || ctx_error(ctx, where, "back end %s has no function emit", d->name);
}

static bool register_backend(void *arg)
{
	const Registering *r = arg;
	Ctx *ctx = r->w->ctx;
	const char *where = r->path ? r->path : "back end";
	if (!r->def)
		return ctx_error(ctx, where, "no definition");
	TRY(check_def(ctx, where, r->def));
	if (backend_named(r->w, r->def->name))
		return ctx_error(ctx, where, "there is a back end %s already", r->def->name);
	Arena *a = weft_arena(r->w);
	WeftBackendDef *d = arena_dup(a, r->def, sizeof *d);
	Backend *b = ARENA_NEW(a, Backend);
	d->name = arena_strdup(a, d->name);
	*b = (Backend){
		.name = d->name,
		.about = arena_strdup(a, d->about ? d->about : ""),
		.refuses = refuses,
		.units = units,
		.texts = d->folder ? 0 : 1u << WEFT_EMIT_SHARED,
		.folders = d->folder ? 1u << WEFT_EMIT_SHARED : 0,
		.emit = emit,
		.user = d,
	};
	array_push(a, &r->w->backend, (const Backend *)b);
	return true;
}

bool weft_backend_register(Weft *w, const WeftBackendDef *def)
{
	Registering r = {.w = w, .def = def};
	return boundary(w, register_backend, &r);
}

static bool load_library(void *arg)
{
	const Registering *r = arg;
	Ctx *ctx = r->w->ctx;
	WeftBackendsFn get;
	TRY(given_text(r->w, "weft_backend_load", "the path", r->path));
	TRY(library_open(ctx, r->path, "back ends", "weft_backends_of", (void **)&get));
	const WeftBackendLibrary *l = get();
	if (l && l->version != WEFT_BACKEND_VERSION)
		return ctx_error(
			ctx, r->path,
			"a library of back ends for version %u of weft_backend.h, expected %u",
			l->version, WEFT_BACKEND_VERSION);
	if (!l || !l->backend || !*l->backend)
		return ctx_error(ctx, r->path, "a library of back ends that has none");
	for (uint32_t k = 0, first = r->w->backend.n; l->backend[k]; k++) {
		Registering one = {.w = r->w, .def = l->backend[k], .path = r->path};
		if (!register_backend(&one)) {
			r->w->backend.n = first; /* all of them or none */
			return false;
		}
	}
	return true;
}

bool weft_backend_load(Weft *w, const char *path)
{
	Registering r = {.w = w, .path = path};
	return boundary(w, load_library, &r);
}

/* ---- listing ---- */

typedef struct {
	Weft *w;
	ARRAY(WeftBackendInfo) list;
} BackendListing;

static void describe(BackendListing *a, const Backend *b)
{
	const Compilation none = {.w = a->w, .ctx = a->w->ctx};
	array_push(weft_arena(a->w), &a->list,
		   (WeftBackendInfo){b->name, b->about, backend_available(b, &none)});
}

static bool list(void *arg)
{
	BackendListing *a = arg;
	for (const Backend *const *b = backends; *b; b++)
		describe(a, *b);
	for (uint32_t k = 0; k < a->w->backend.n; k++)
		describe(a, a->w->backend.data[k]);
	return true;
}

const WeftBackendInfo *weft_backends(Weft *w, uint32_t *n)
{
	BackendListing a = {.w = w};
	bool ok = boundary(w, list, &a);
	if (n)
		*n = ok ? a.list.n : 0;
	return ok ? a.list.data : NULL;
}
