#include "driver/api/user_ops.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/print/names.h"
#include "driver/api/given.h"
#include "ir/ops/user/userop.h"

/* ---- registering ---- */

Ir *user_ir(Weft *w)
{
	Ir *ir = ir_new(w->ctx);
	for (uint32_t k = 0; k < w->userop.n; k++)
		array_push(w->ctx->arena, &ir->userop, w->userop.data[k]);
	return ir;
}

/* Emitted code has names of its own. */
static const char *symbol_refused(const char *symbol)
{
	if (!strncmp(symbol, "weft_", 5) || !strncmp(symbol, "k_", 2))
		return "names that begin with weft_ or k_ are Weft's";
	return c_export_refused(symbol);
}

typedef struct {
	Weft *w;
	const WeftOpDef *def;
	const char *path; /* of the library; NULL: of none */
} Registering;

static bool register_op(void *arg)
{
	const Registering *r = arg;
	Weft *w = r->w;
	Ctx *ctx = w->ctx;
	const char *where = r->path ? r->path : "user operator";
	if (!r->def)
		return ctx_error(ctx, where, "no definition");
	const UserOp *op = userop_new(ctx, where, r->def);
	TRY(op);
	const char *why = symbol_refused(op->def.symbol);
	if (why)
		return ctx_error(ctx, where, "%s: the symbol cannot be %s: %s", op->name, op->def.symbol, why);
	for (uint32_t k = 0; k < w->userop.n; k++) {
		const UserOp *other = w->userop.data[k];
		if (!strcmp(other->name, op->name))
			return ctx_error(ctx, where, "%s: there is one of that name already", op->name);
		if (!strcmp(other->def.symbol, op->def.symbol) && other->def.fn != op->def.fn)
			return ctx_error(ctx, where, "%s: %s has the symbol %s, too", op->name, other->name, op->def.symbol);
	}
	array_push(weft_arena(w), &w->userop, op);
	return true;
}

/* Of the operators from `first` on, which rules may call whatever their order: all of them are
 * there, or none. */
static bool check_rules(Weft *w, uint32_t first)
{
	for (uint32_t k = first; k < w->userop.n; k++)
		if (!userop_check_rules(w->ctx, w->userop.data[k], w->userop.data, w->userop.n)) {
			w->userop.n = first;
			return false;
		}
	return true;
}

static bool register_one(void *arg)
{
	Registering *r = arg;
	uint32_t first = r->w->userop.n;
	return register_op(r) && check_rules(r->w, first);
}

bool weft_op_register(Weft *w, const WeftOpDef *def)
{
	Registering r = {.w = w, .def = def};
	return boundary(w, register_one, &r);
}

static void close_library(void *handle)
{
	dlclose(*(void **)handle);
}

static bool load_library(void *arg)
{
	Registering *r = arg;
	Ctx *ctx = r->w->ctx;
	WeftOpsFn ops;
	TRY(given_text(r->w, "weft_op_load", "the path", r->path));
	/* a name without a slash is a file here, not one of the system's libraries */
	const char *path = strchr(r->path, '/') ? r->path : arena_printf(ctx->arena, "./%s", r->path);
	if (access(path, R_OK))
		return ctx_error(ctx, r->path, "cannot open: %s", strerror(errno));
	void **handle = ARENA_NEW(ctx->arena, void *);
	*handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*handle)
		return ctx_error(ctx, NULL, "cannot load a library of operators: %s", dlerror());
	ctx_defer(ctx, close_library, handle);
	*(void **)&ops = dlsym(*handle, "weft_ops");
	if (!ops)
		return ctx_error(ctx, r->path, "no library of operators: it has no function weft_ops");
	const WeftOpDef *const *def = ops();
	if (!def || !*def)
		return ctx_error(ctx, r->path, "a library of operators that has none");
	uint32_t first = r->w->userop.n;
	for (; *def; def++) {
		Registering one = {.w = r->w, .def = *def, .path = r->path};
		TRY(register_op(&one));
	}
	return check_rules(r->w, first);
}

bool weft_op_load(Weft *w, const char *path)
{
	Registering r = {.w = w, .path = path};
	return boundary(w, load_library, &r);
}

/* ---- what a compilation calls ---- */

UserOps user_ops(const Compilation *c)
{
	UserOps ops = {0};
	for (uint32_t l = 0; l < c->level.n; l++) {
		const UserOp **op;
		uint32_t n = program_user_ops(c->level.data[l].program, &op);
		for (uint32_t k = 0; k < n; k++) {
			uint32_t j = 0;
			while (j < ops.n && strcmp(ops.data[j]->def.symbol, op[k]->def.symbol) != 0)
				j++;
			if (j == ops.n)
				array_push(c->ctx->arena, &ops, op[k]);
		}
	}
	return ops;
}

/* ---- linking ---- */

/* A file, not the name of a library. */
static bool is_path(const char *link)
{
	size_t n = strlen(link);
	return strchr(link, '/') || strstr(link, ".so") || (n > 2 && (!strcmp(link + n - 2, ".a") || !strcmp(link + n - 2, ".o")));
}

static const char *real_path(Arena *a, const char *path)
{
	char *real = realpath(path, NULL);
	const char *copy = real ? arena_strdup(a, real) : NULL;
	free(real);
	return copy;
}

bool user_links_check(const Compilation *c)
{
	for (uint32_t k = 0; k < c->o.nlink; k++) {
		const char *link = c->o.link[k];
		if (!*link || *link == '-')
			return ctx_error(c->ctx, NULL, "--link %s: expected a file, or a library as mylib for libmylib.so", link);
		if (is_path(link) && !real_path(c->ctx->arena, link))
			return ctx_error(c->ctx, link, "cannot open: %s", strerror(errno));
	}
	return true;
}

void user_links(const Compilation *c, Words *w)
{
	Arena *a = c->ctx->arena;
	for (uint32_t k = 0; k < c->o.nlink; k++) {
		const char *real = is_path(c->o.link[k]) ? real_path(a, c->o.link[k]) : NULL;
		words_add(a, w, real ? real : arena_printf(a, "-l%s", c->o.link[k]));
	}
}

const JobMissing *user_missing(const Compilation *c, uint32_t *n)
{
	Arena *a = c->ctx->arena;
	UserOps ops = user_ops(c);
	JobMissing *m = ARENA_ARRAY(a, JobMissing, ops.n + c->o.nlink);
	*n = 0;
	for (uint32_t k = 0; k < c->o.nlink; k++)
		if (!is_path(c->o.link[k]))
			m[(*n)++] = (JobMissing){arena_printf(a, "-l%s", c->o.link[k]),
			                         arena_printf(a, "--link %s: the linker finds no lib%s.so or lib%s.a (LIBRARY_PATH may name folders)",
			                                      c->o.link[k], c->o.link[k], c->o.link[k])};
	for (uint32_t k = 0; k < ops.n; k++) {
		const char *symbol = ops.data[k]->def.symbol;
		m[(*n)++] = (JobMissing){symbol, arena_printf(a, "%s is not defined, the function of the operator %s: name the library that has it "
		                                                 "with --link", symbol, ops.data[k]->name)};
	}
	return m;
}
