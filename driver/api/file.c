/* Files and folders. */
#include "driver/api/driver_priv.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_write(Ctx *ctx, const char *path, const void *data, size_t n)
{
	OutFile *o = out_begin(ctx, path);
	TRY(o && out_open(ctx, o));
	out_write(o, data, n);
	return out_commit(ctx, o);
}

char *file_read(Arena *a, const char *path, size_t *n)
{
	struct stat st;
	bool regular = stat(path, &st) == 0 && S_ISREG(st.st_mode);
	char *data = arena_alloc(a, regular ? (size_t)st.st_size
					    : 0); /* may unwind: before the file is open */
	FILE *f = regular ? fopen(path, "rbe") : NULL;
	if (!f)
		return NULL;
	*n = fread(data, 1, (size_t)st.st_size, f);
	bool ok = !ferror(f);
	fclose(f);
	return ok ? data : NULL;
}

bool folder_make(Ctx *ctx, const char *path)
{
	char *p = arena_strdup(ctx->arena, path);
	for (char *s = p + 1; *p; s++) {
		if (*s && *s != '/')
			continue;
		char c = *s;
		*s = 0;
		if (mkdir(p, 0777) && errno != EEXIST)
			return ctx_error(ctx, p, "cannot make the folder: %s", strerror(errno));
		*s = c;
		if (!c)
			break;
	}
	struct stat st;
	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return ctx_error(ctx, path, "is not a folder");
	return true;
}

const char *path_stem(Arena *a, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *dot = strrchr(base, '.');
	char *s = arena_printf(a, "%s%.*s", isdigit((unsigned char)*base) ? "_" : "",
			       (int)(dot && dot > base ? dot - base : (long)strlen(base)), base);
	for (char *p = s; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	return s;
}
