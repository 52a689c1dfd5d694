#include "driver/api/user_ops.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "codegen/print/names.h"
#include "driver/api/given.h"
#include "ops/user/userop.h"
#include "weft_file.h"

/* ---- registering ---- */

Ir *user_ir(Weft *w)
{
	Ir *ir = ir_new(w->ctx);
	for (uint32_t k = 0; k < w->userop.n; k++)
		array_push(w->ctx->arena, &ir->userop, w->userop.data[k]);
	*ir->ranks = w->ranks;
	return ir;
}

void weft_ranks(Weft *w, uint32_t ranks)
{
	if (w)
		w->ranks = ranks;
}

const UserOp *user_op(const Weft *w, const char *name)
{
	return userop_among(w->userop.data, w->userop.n, name);
}

/* Says why a user's function cannot have that symbol; NULL if it can. Emitted code has names of
 * its own. */
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

/* Returns a symbol that would stand for two things; NULL if none does. */
static const char *clash(const WeftOpDef *a, const WeftOpDef *b)
{
	if (!strcmp(a->symbol, b->symbol) && a->fn != b->fn)
		return a->symbol;
	if (a->user_symbol && !strcmp(a->user_symbol, b->symbol))
		return a->user_symbol;
	return b->user_symbol && !strcmp(b->user_symbol, a->symbol) ? b->user_symbol : NULL;
}

static bool check_symbols(Ctx *ctx, const UserOp *op)
{
	const char *symbol[] = {op->def.symbol, op->def.user_symbol};
	for (uint32_t k = 0; k < 2 && symbol[k]; k++) {
		const char *why = symbol_refused(symbol[k]);
		if (why)
			return ctx_error(ctx, op->where, "%s: the symbol cannot be %s: %s",
					 op->name, symbol[k], why);
	}
	return !clash(&op->def, &op->def) ||
	       ctx_error(ctx, op->where, "%s: %s cannot be a function and an object", op->name,
			 symbol[0]);
}

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
	TRY(check_symbols(ctx, op));
	for (uint32_t k = 0; k < w->userop.n; k++) {
		const UserOp *other = w->userop.data[k];
		if (!strcmp(other->name, op->name))
			return ctx_error(ctx, where, "%s: there is one of that name already",
					 op->name);
		const char *symbol = clash(&op->def, &other->def);
		if (symbol)
			return ctx_error(ctx, where, "%s: %s has the symbol %s, too", op->name,
					 other->name, symbol);
	}
	array_push(weft_arena(w), &w->userop, op);
	return true;
}

/* Checks the rules of the operators from `first` on, which may call each other whatever their
 * order: if one is wrong, none of these operators is there. */
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

bool library_open(Ctx *ctx, const char *name, const char *what, const char *symbol, void **function)
{
	/* a name without a slash is a file here, not one of the system's libraries */
	const char *path = strchr(name, '/') ? name : arena_printf(ctx->arena, "./%s", name);
	if (access(path, R_OK))
		return ctx_error(ctx, name, "cannot open: %s", strerror(errno));
	WeftStatus status;
	if (weft_file_check(path, &status))
		return ctx_error(ctx, NULL, "cannot load a library of %s: %s", what,
				 status.message);
	void **handle = ARENA_NEW(ctx->arena, void *);
	*handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*handle)
		return ctx_error(ctx, NULL, "cannot load a library of %s: %s", what, dlerror());
	ctx_defer(ctx, close_library, handle);
	*function = dlsym(*handle, symbol);
	return *function ||
	       ctx_error(ctx, name, "no library of %s: it has no function %s", what, symbol);
}

static bool load_library(void *arg)
{
	Registering *r = arg;
	Ctx *ctx = r->w->ctx;
	WeftOpsFn ops;
	TRY(given_text(r->w, "weft_op_load", "the path", r->path));
	TRY(library_open(ctx, r->path, "operators", "weft_ops", (void **)&ops));
	const WeftOpDef *const *def = ops();
	if (!def || !*def)
		return ctx_error(ctx, r->path, "a library of operators that has none");
	uint32_t first = r->w->userop.n;
	bool ok = true;
	for (; ok && *def; def++) {
		Registering one = {.w = r->w, .def = *def, .path = r->path};
		ok = register_op(&one);
	}
	if (!ok)
		r->w->userop.n = first;
	return ok && check_rules(r->w, first);
}

bool weft_op_load(Weft *w, const char *path)
{
	Registering r = {.w = w, .path = path};
	return boundary(w, load_library, &r);
}
