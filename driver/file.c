/* Files and folders: nothing half-written is ever left under its final name. */
#include "driver/driver_priv.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t k = write(fd, p, n < (1u << 30) ? n : 1u << 30);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

const char *path_temp(Ctx *ctx, const char *path)
{
	static _Atomic unsigned serial; /* only makes names differ */
	return arena_printf(ctx->arena, "%s.tmp%ld-%u", path, (long)getpid(), serial++);
}

bool file_write(Ctx *ctx, const char *path, const void *data, size_t n)
{
	const char *temp = path_temp(ctx, path);
	int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return ctx_error(ctx, path, "cannot write: %s", strerror(errno));
	bool ok = write_all(fd, data, n);
	ok &= close(fd) == 0;
	ok = ok && rename(temp, path) == 0;
	if (ok)
		return true;
	int why = errno; /* the message may find no memory: first the file */
	unlink(temp);
	return ctx_error(ctx, path, "cannot write: %s", strerror(why));
}

bool file_exists(const char *path)
{
	return access(path, R_OK) == 0;
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

const char *folder_temp(Ctx *ctx)
{
	const char *base = getenv("TMPDIR");
	char *path = arena_printf(ctx->arena, "%s/weft-XXXXXX", base && *base ? base : "/tmp");
	if (mkdtemp(path))
		return path;
	ctx_error(ctx, path, "cannot make a temporary folder: %s", strerror(errno));
	return NULL;
}

void folder_remove(const char *path)
{
	char sub[4096];
	DIR *d = opendir(path);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		int n = snprintf(sub, sizeof sub, "%s/%s", path, e->d_name);
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || n >= (int)sizeof sub)
			continue;
		if (unlink(sub) && (errno == EISDIR || errno == EPERM))
			folder_remove(sub);
	}
	closedir(d);
	rmdir(path);
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
