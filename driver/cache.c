#include "driver/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"

static bool make(const char *path)
{
	struct stat st;
	return mkdir(path, 0777) == 0 || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

const char *cache_folder(Ctx *ctx)
{
	const char *set = getenv("WEFT_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	if (set && *set)
		return make(set) ? arena_strdup(ctx->arena, set) : NULL;
	const char *base = xdg && *xdg     ? xdg
			   : home && *home ? arena_printf(ctx->arena, "%s/.cache", home)
					   : NULL;
	if (!base || !make(base))
		return NULL;
	const char *path = arena_printf(ctx->arena, "%s/weft", base);
	return make(path) ? path : NULL;
}

const char *cache_path(Ctx *ctx, const char *folder, const char *const *argv,
		       const char *const *text)
{
	uint64_t a = 1, b = 2;
	for (; *argv; argv++) {
		a = hash_bytes(*argv, strlen(*argv) + 1, a);
		b = hash_bytes(*argv, strlen(*argv) + 1, b);
	}
	for (; *text; text++) {
		a = hash_bytes(*text, strlen(*text) + 1, a);
		b = hash_bytes(*text, strlen(*text) + 1, b);
	}
	return arena_printf(ctx->arena, "%s/%016llx%016llx.o", folder, (unsigned long long)a,
			    (unsigned long long)b);
}

static char *identity(Ctx *ctx, const char *path, size_t n, const char *name)
{
	struct stat st;
	char *full = arena_printf(ctx->arena, "%.*s%s%s", (int)n, path, n ? "/" : "", name);
	if (stat(full, &st) || !S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return NULL;
	return arena_printf(ctx->arena, "%s %lld %lld", full, (long long)st.st_size,
			    (long long)st.st_mtime);
}

const char *cache_compiler(Ctx *ctx, const char *cc)
{
	char *found = strchr(cc, '/') ? identity(ctx, "", 0, cc) : NULL;
	for (const char *p = getenv("PATH"); p && *p && !found; p += *p == ':') {
		size_t n = strcspn(p, ":");
		found = identity(ctx, p, n, cc);
		p += n;
	}
	return found ? found : cc;
}
