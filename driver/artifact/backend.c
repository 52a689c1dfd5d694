/* The table of back ends, and which one a compilation uses. */
#include "driver/artifact/backend.h"

#include <string.h>

const Backend *const backends[] = {&backend_llvm, &backend_c, &backend_cuda, &backend_gpu_host,
				   NULL};

const Backend *backend_of_kind(WeftEmit kind)
{
	const Backend *const *b = backends;
	while (*b && !(((*b)->texts | (*b)->objects | (*b)->folders) >> kind & 1))
		b++;
	return *b;
}

const Backend *backend_here(void)
{
	const Backend *const *b = backends;
	while (!(*b)->here)
		b++;
	return *b;
}

const Backend *backend_named(const Weft *w, const char *name)
{
	for (uint32_t k = 0; k < w->backend.n; k++)
		if (!strcmp(w->backend.data[k]->name, name))
			return w->backend.data[k];
	const Backend *const *b = backends;
	while (*b && strcmp((*b)->name, name) != 0)
		b++;
	return *b;
}

bool backend_load(Compilation *c)
{
	return !c->backend->load || c->backend->load(c);
}

bool backend_available(const Backend *b, const Compilation *c)
{
	return !b->available || b->available(c);
}

static bool is_gpu(const Compilation *c)
{
	return compile_gpus(c) > 0;
}

bool backend_takes(const Backend *b, const Compilation *c)
{
	const char *name = c->level.data[0].target->isa.name;
	if (b->gpus == is_gpu(c))
		return true;
	return ctx_error(c->ctx, NULL,
			 b->gpus ? "%s is a CPU: the back end %s is for GPUs"
				 : "%s is a GPU: the back end %s is for CPUs",
			 name, b->name);
}

/* Chooses the first back end that suits and is there. The last row of CPUs, and one of GPUs,
 * always is. */
static void choose_default(Compilation *c)
{
	for (const Backend *const *b = backends; *b && !c->backend; b++)
		if ((*b)->gpus == is_gpu(c) && (*b)->suits && (*b)->suits(c)) {
			if (backend_available(*b, c))
				c->backend = *b;
			else
				c->fallback = (*b)->absent;
		}
}

/* By WeftOptions.backend. */
static const char *const names[] = {NULL, "c", "llvm"};

/* Returns the names of all back ends: "llvm, c, toy". */
static const char *list_names(const Weft *w, Arena *a)
{
	Text t;
	text_init(&t, a);
	for (const Backend *const *b = backends; *b; b++)
		text_printf(&t, "%s%s", t.n ? ", " : "", (*b)->name);
	for (uint32_t k = 0; k < w->backend.n; k++)
		text_printf(&t, ", %s", w->backend.data[k]->name);
	return t.data;
}

bool backend_choose(Compilation *c)
{
	if ((unsigned)c->o.backend >= sizeof names / sizeof *names)
		return ctx_error(c->ctx, NULL, "options with a back end %d that there is not",
				 (int)c->o.backend);
	const char *by_number = names[c->o.backend],
		   *name = c->o.backend_name ? c->o.backend_name : by_number;
	if (!name)
		return choose_default(c), true;
	if (by_number && strcmp(by_number, name) != 0)
		return ctx_error(c->ctx, NULL, "options with the back end %s and with %s",
				 by_number, name);
	c->backend = backend_named(c->w, name);
	if (!c->backend)
		return ctx_error(c->ctx, NULL, "no back end %s: there are %s", name,
				 list_names(c->w, c->ctx->arena));
	TRY(backend_takes(c->backend, c));
	const char *why = c->backend->refuses ? c->backend->refuses(c) : NULL;
	return !why || ctx_error(c->ctx, NULL, "%s", why);
}
