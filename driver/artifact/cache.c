#include "driver/artifact/cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/temp.h"
#include "driver/api/driver_priv.h"

/* Whether the folder is there, after an attempt to make it. */
static bool make(Ctx *ctx, const char *path)
{
	struct stat st;
	if (mkdir(path, 0700) == 0)
		return true;
	if (errno != EEXIST)
		ctx_warn(ctx, path, "no cache of objects: the folder cannot be made: %s",
			 strerror(errno));
	else if (stat(path, &st) || !S_ISDIR(st.st_mode))
		ctx_warn(ctx, path, "no cache of objects: it is not a folder");
	else
		return true;
	return false;
}

/* Whether nobody but this user can put an object into the folder: what lies there is executed. */
static bool is_private(Ctx *ctx, const char *path)
{
	struct stat st;
	if (stat(path, &st))
		ctx_warn(ctx, path, "no cache of objects: %s", strerror(errno));
	else if (st.st_uid != geteuid())
		ctx_warn(ctx, path,
			 "no cache of objects: the folder belongs to another user (%ld), whose "
			 "objects would be executed",
			 (long)st.st_uid);
	else if (st.st_mode & (S_IWGRP | S_IWOTH))
		ctx_warn(ctx, path,
			 "no cache of objects: other users may write into the folder, and their "
			 "objects would be executed; chmod go-w");
	else
		return true;
	return false;
}

const char *cache_folder(Ctx *ctx)
{
	const char *set = getenv("WEFT_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME"), *path = set;
	if (!set || !*set) {
		const char *base = xdg && *xdg     ? xdg
				   : home && *home ? arena_printf(ctx->arena, "%s/.cache", home)
						   : NULL;
		if (!base || !make(ctx, base))
			return NULL;
		path = arena_printf(ctx->arena, "%s/weft", base);
	}
	return make(ctx, path) && is_private(ctx, path) ? arena_strdup(ctx->arena, path) : NULL;
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
	return arena_printf(ctx->arena, "%s/%016llx%016llx.entry", folder, (unsigned long long)a,
			    (unsigned long long)b);
}

/* What an entry begins with; the object follows. */
typedef struct {
	char magic[16];
	uint64_t bytes, sum[2]; /* of the object */
} EntryHeader;

static EntryHeader header_of(const char *object, size_t n)
{
	return (EntryHeader){
		"weft object 1", n, {hash_bytes(object, n, 21), hash_bytes(object, n, 22)}};
}

/* Whether the object within the entry of n bytes is what was put there. */
static bool entry_is_whole(const char *entry, size_t n)
{
	EntryHeader h;
	if (n < sizeof h)
		return false;
	h = header_of(entry + sizeof h, n - sizeof h);
	return !memcmp(&h, entry, sizeof h);
}

bool cache_read(Arena *a, const char *entry, const char **data, size_t *n)
{
	const char *all = file_read(a, entry, n);
	bool whole = all && entry_is_whole(all, *n);
	if (all && !whole)
		unlink(entry);
	if (!whole)
		return false;
	*data = all + sizeof(EntryHeader);
	*n -= sizeof(EntryHeader);
	return true;
}

bool cache_take(Ctx *ctx, const char *entry, const char *object)
{
	size_t n;
	const char *data;
	ArenaMark mark = arena_mark(ctx->scratch);
	bool ok = cache_read(ctx->scratch, entry, &data, &n) && file_write(ctx, object, data, n);
	arena_release(ctx->scratch, mark);
	return ok;
}

void cache_write(Ctx *ctx, const char *data, size_t n, const char *entry)
{
	const char *temp = path_temp(ctx, entry);
	temp_begin(temp);
	FILE *f = fopen(temp, "wbe");
	if (f) {
		EntryHeader h = header_of(data, n);
		bool ok = fwrite(&h, sizeof h, 1, f) == 1 && fwrite(data, 1, n, f) == n;
		ok = fclose(f) == 0 && ok;
		if (!ok || rename(temp, entry))
			unlink(temp);
	}
	temp_end(temp);
}

void cache_keep(Ctx *ctx, const char *object, const char *entry)
{
	size_t n;
	ArenaMark mark = arena_mark(ctx->scratch);
	const char *data = file_read(ctx->scratch, object, &n);
	if (data)
		cache_write(ctx, data, n, entry);
	arena_release(ctx->scratch, mark);
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
