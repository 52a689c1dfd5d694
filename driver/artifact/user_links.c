#include "driver/artifact/user_links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ir/op/userop.h"

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

uint32_t user_ops_of_user(const Compilation *c)
{
	const UserOps ops = user_ops(c);
	uint32_t n = 0;
	for (uint32_t k = 0; k < ops.n; k++)
		n += !ops.data[k]->own;
	return n;
}

bool user_ops_of_runtime(const Compilation *c, bool collective)
{
	const UserOps ops = user_ops(c);
	for (uint32_t k = 0; k < ops.n; k++)
		if (ops.data[k]->own && ops.data[k]->collective == collective)
			return true;
	return false;
}

/* ---- linking ---- */

/* Whether a link is a file, not the name of a library. */
static bool is_path(const char *link)
{
	size_t n = strlen(link);
	return strchr(link, '/') || strstr(link, ".so") ||
	       (n > 2 && (!strcmp(link + n - 2, ".a") || !strcmp(link + n - 2, ".o")));
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
			return ctx_error(
				c->ctx, NULL,
				"--link %s: expected a file, or a library as mylib for libmylib.so",
				link);
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
	JobMissing *m = ARENA_ARRAY(a, JobMissing, 2 * ops.n + c->o.nlink);
	*n = 0;
	for (uint32_t k = 0; k < c->o.nlink; k++)
		if (!is_path(c->o.link[k]))
			m[(*n)++] = (JobMissing){
				arena_printf(a, "-l%s", c->o.link[k]),
				arena_printf(a,
					     "--link %s: the linker finds no lib%s.so or lib%s.a "
					     "(LIBRARY_PATH may name folders)",
					     c->o.link[k], c->o.link[k], c->o.link[k])};
	for (uint32_t k = 0; k < ops.n; k++) {
		if (ops.data[k]->own)
			continue;
		const char *symbol = ops.data[k]->def.symbol,
			   *object = ops.data[k]->def.user_symbol;
		if (object)
			m[(*n)++] = (JobMissing){
				object, arena_printf(a,
						     "%s is not defined, the user_symbol of the "
						     "operator %s: name the library that "
						     "has it with --link",
						     object, ops.data[k]->name)};
		m[(*n)++] = (JobMissing){symbol,
					 arena_printf(a,
						      "%s is not defined, the function of the "
						      "operator %s: name the library that has it "
						      "with --link",
						      symbol, ops.data[k]->name)};
	}
	return m;
}
