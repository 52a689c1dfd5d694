#include "frontend/files/out_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/temp.h"
#include "frontend/files/file.h"

/* ---- where it goes ---- */

/* Returns a number for that in which process numbers are unique: a machine, or a container of
 * it. */
static unsigned process_space(void)
{
	char text[320] = "", *end = text;
	if (gethostname(text, 256) == 0)
		end += strnlen(text, 255);
	ssize_t n = readlink("/proc/self/ns/pid", end, 60);
	return (unsigned)hash_bytes(text, (size_t)(end - text) + (n > 0 ? (size_t)n : 0), 0);
}

const char *path_temp(Ctx *ctx, const char *path)
{
	static _Atomic unsigned serial; /* only makes names differ */
	return arena_printf(ctx->arena, "%s.tmp-%08x-%ld-%u", path, process_space(), (long)getpid(),
			    serial++);
}

/* Whether the file is of a process that is no more. Of other machines nobody here knows. */
static bool is_stale(const char *suffix)
{
	unsigned space;
	long pid;
	return sscanf(suffix, ".tmp-%8x-%ld-", &space, &pid) == 2 && space == process_space() &&
	       pid > 0 && kill((pid_t)pid, 0) && errno == ESRCH;
}

void path_sweep(Ctx *ctx, const char *path)
{
	const char *base = file_base(path);
	const char *folder =
		base == path ? "." : arena_strndup(ctx->arena, path, (size_t)(base - path));
	size_t n = strlen(base);
	DIR *d = opendir(folder);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));)
		if (!strncmp(e->d_name, base, n) && is_stale(e->d_name + n)) {
			char stale[PATH_MAX];
			if (snprintf(stale, sizeof stale, "%s/%s", folder, e->d_name) <
			    (int)sizeof stale)
				temp_remove(stale);
		}
	closedir(d);
}

const char *folder_temp(Ctx *ctx)
{
	const char *set = getenv("TMPDIR"), *base = set && *set ? set : "/tmp";
	size_t n = strlen(base) + sizeof "/weft-01234567";
	char *path = arena_alloc(ctx->arena, n);
	/* Not mkdtemp: the name must be known before there is a folder of that name. */
	for (int k = 0; k < 100; k++) {
		uint32_t random;
		if (getrandom(&random, sizeof random, 0) != sizeof random)
			random = (uint32_t)getpid() * 101 + (uint32_t)k;
		snprintf(path, n, "%s/weft-%08x", base, random);
		temp_begin(path);
		if (mkdir(path, 0700) == 0)
			return path;
		temp_end(path);
		if (errno != EEXIST)
			break;
	}
	ctx_error(ctx, path, "cannot make a temporary folder: %s", strerror(errno));
	return NULL;
}

/* Follows one link on the way: returns its target, relative to its folder. NULL if the path is
 * no link. */
static const char *follow(Ctx *ctx, const char *path)
{
	char to[PATH_MAX];
	ssize_t n = readlink(path, to, sizeof to - 1);
	if (n <= 0)
		return NULL;
	to[n] = 0;
	const char *slash = strrchr(path, '/');
	return arena_printf(ctx->arena, "%.*s%s", slash && *to != '/' ? (int)(slash + 1 - path) : 0,
			    path, to);
}

/* Returns the descriptor of this process that a path names, or -1. It is written where it
 * stands, which opening it anew would not do. */
static int named_descriptor(const char *path)
{
	static const char *const folder[] = {"/proc/self/fd/", "/dev/fd/"};
	for (size_t k = 0; k < sizeof folder / sizeof *folder; k++) {
		const char *digits = path + strlen(folder[k]);
		size_t n = strncmp(path, folder[k], strlen(folder[k]))
				   ? 0
				   : strspn(digits, "0123456789");
		if (n && n < 6 && !digits[n])
			return atoi(digits);
	}
	return -1;
}

static void follow_all(Ctx *ctx, OutFile *o)
{
	enum { MOST = 40 }; /* as the kernel */
	const char *next = o->path;
	for (int k = 0; k < MOST && next && o->descriptor < 0; k++) {
		o->to = next;
		o->descriptor = named_descriptor(o->to);
		next = follow(ctx, o->to);
	}
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

void out_spare(Ctx *ctx, const char *path)
{
	struct stat st;
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		ctx_input(ctx, (uint64_t)st.st_dev, (uint64_t)st.st_ino);
}

static bool cannot_write(Ctx *ctx, const char *path, int why)
{
	return ctx_error(ctx, path, "cannot write: %s", strerror(why)) ||
	       ctx_kind(ctx, REFUSAL_PATH);
}

static bool refuse_input(Ctx *ctx, const char *path, const struct stat *st)
{
	return !ctx_is_input(ctx, (uint64_t)st->st_dev, (uint64_t)st->st_ino) ||
	       ctx_error(ctx, path,
			 "cannot write: this file is an input, and would be overwritten");
}

/* Sets `to`; NULL where there is something that no file may replace, or that no name leads to. */
static bool find_target(Ctx *ctx, OutFile *o)
{
	struct stat named, found;
	o->descriptor = -1;
	follow_all(ctx, o);
	if (stat(o->path, &named))
		return (errno == ENOENT && o->descriptor < 0) || cannot_write(ctx, o->path, errno);
	if (S_ISDIR(named.st_mode))
		return ctx_error(ctx, o->path, "cannot write: is a folder") ||
		       ctx_kind(ctx, REFUSAL_PATH);
	TRY(refuse_input(ctx, o->path, &named));
	if (o->descriptor < 0 && S_ISREG(named.st_mode) && stat(o->to, &found) == 0 &&
	    same_file(&named, &found))
		return true;
	o->to = NULL;
	return access(o->path, W_OK) == 0 || cannot_write(ctx, o->path, errno);
}

/* ---- the temporary file ---- */

static bool probe(Ctx *ctx, const OutFile *o)
{
	int fd = open(o->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return cannot_write(ctx, o->path, errno);
	close(fd);
	unlink(o->tmp);
	return true;
}

static bool temp_elsewhere(Ctx *ctx, OutFile *o)
{
	TRY((o->folder = folder_temp(ctx)));
	o->tmp = arena_printf(ctx->arena, "%s/output", o->folder);
	return true;
}

static void drop(void *arg)
{
	out_drop(arg);
}

OutFile *out_begin(Ctx *ctx, const char *path)
{
	OutFile *o = ARENA_NEW(ctx->arena, OutFile);
	o->path = arena_strdup(ctx->arena, path);
	if (!*path)
		return ctx_error(ctx, NULL, "cannot write: the name of the output is empty"), NULL;
	ctx_defer(ctx, drop, o);
	if (!find_target(ctx, o))
		return NULL;
	if (!o->to)
		return temp_elsewhere(ctx, o) ? o : NULL;
	path_sweep(ctx, o->to);
	o->tmp = path_temp(ctx, o->to);
	temp_begin(o->tmp);
	return probe(ctx, o) ? o : NULL;
}

void out_drop(OutFile *o)
{
	if (o->f)
		fclose(o->f);
	if (o->tmp)
		temp_remove_all(o->tmp);
	if (o->folder)
		rmdir(o->folder);
	temp_end(o->tmp);
	temp_end(o->folder);
	o->f = NULL;
	o->tmp = o->folder = NULL;
}

/* ---- writing ---- */

/* Returns, for messages, the name that a file in a temporary folder would have got. */
static const char *final_path(Ctx *ctx, const char *path)
{
	unsigned space, number;
	long pid;
	int n = 0;
	const char *at = strstr(path, ".tmp-");
	if (!at || sscanf(at, ".tmp-%8x-%ld-%u%n", &space, &pid, &number, &n) != 3 || !n)
		return path;
	return arena_printf(ctx->arena, "%.*s%s", (int)(at - path), path, at + n);
}

bool out_open(Ctx *ctx, OutFile *o)
{
	o->f = fopen(o->tmp, "wbe");
	return o->f || cannot_write(ctx, final_path(ctx, o->path), errno);
}

void out_write(OutFile *o, const void *data, size_t n)
{
	errno = 0;
	if (!o->why && n && fwrite(data, 1, n, o->f) != n)
		o->why = errno ? errno : EIO;
}

/* Copies tmp into what cannot be replaced. Returns 0 or errno. */
static int pour(const OutFile *o)
{
	char buf[65536];
	int in = open(o->tmp, O_RDONLY | O_CLOEXEC);
	int out = o->descriptor < 0 ? open(o->path, O_WRONLY | O_CLOEXEC) : dup(o->descriptor);
	int why = in < 0 || out < 0 ? errno : 0;
	for (ssize_t n; !why && (n = read(in, buf, sizeof buf)) != 0;) {
		if (n < 0)
			why = errno;
		for (ssize_t at = 0, k; !why && at < n; at += k)
			if ((k = write(out, buf + at, (size_t)(n - at))) < 0)
				why = errno;
	}
	if (in >= 0)
		close(in);
	if (out >= 0 && close(out) && !why)
		why = errno;
	return why;
}

/* Makes what was written to o->f last. Returns 0 or errno. A file system that cannot do that is no
 * reason to fail. */
static int settle(const OutFile *o)
{
	if (fflush(o->f))
		return errno;
	return !o->lasting || fsync(fileno(o->f)) == 0 || errno == EINVAL || errno == EROFS ? 0
											    : errno;
}

bool out_commit(Ctx *ctx, OutFile *o)
{
	if (o->f && !o->why)
		o->why = settle(o);
	if (o->f && fclose(o->f) && !o->why)
		o->why = errno;
	o->f = NULL;
	if (!o->why && !o->to)
		o->why = pour(o);
	else if (!o->why && rename(o->tmp, o->to))
		o->why = errno;
	else if (!o->why) { /* nothing is left to remove */
		temp_end(o->tmp);
		o->tmp = NULL;
	}
	out_drop(o); /* first the file: the message may find no memory */
	return !o->why || cannot_write(ctx, final_path(ctx, o->path), o->why);
}
