/* The table of back ends, and which one a compilation uses. */
#include "driver/artifact/backend.h"

#include <string.h>

const Backend *const backends[] = {&backend_llvm, &backend_c, NULL};

const Backend *backend_of_kind(WeftEmit kind)
{
	const Backend *const *b = backends;
	while (*b && !(((*b)->texts | (*b)->objects) >> kind & 1))
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

bool backend_load(Compilation *c)
{
	return !c->backend->load || c->backend->load(c);
}

bool backend_available(const Backend *b, const Compilation *c)
{
	return !b->available || b->available(c);
}

/* The first that suits and is there. The last row always is. */
static void choose_default(Compilation *c)
{
	for (const Backend *const *b = backends; *b && !c->backend; b++)
		if ((*b)->suits && (*b)->suits(c)) {
			if (backend_available(*b, c))
				c->backend = *b;
			else
				c->fallback = (*b)->absent;
		}
}

/* By WeftOptions.backend. */
static const char *const names[] = {NULL, "c", "llvm"};

bool backend_choose(Compilation *c)
{
	if ((unsigned)c->o.backend >= sizeof names / sizeof *names)
		return ctx_error(c->ctx, NULL, "options with a back end %d that there is not", (int)c->o.backend);
	const char *name = names[c->o.backend];
	if (!name)
		return choose_default(c), true;
	const Backend *const *b = backends;
	while (*b && strcmp((*b)->name, name) != 0)
		b++;
	c->backend = *b;
	const char *why = c->backend->refuses ? c->backend->refuses(c) : NULL;
	return !why || ctx_error(c->ctx, NULL, "%s", why);
}
