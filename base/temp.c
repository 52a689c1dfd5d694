#include "base/temp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* More at once are not remembered: what is left then is no worse than without a list. */
enum { PATHS = 256, PROGRAMS = 256 };

/* A place is taken by the process that stands in owner; after a fork those of the parent are not
 * the child's. */
static struct {
	_Atomic pid_t owner;
	const char *_Atomic path;
} paths[PATHS];
static struct {
	_Atomic pid_t owner;
	_Atomic pid_t pid;
} programs[PROGRAMS];
static atomic_bool abandoned;

static bool take(_Atomic pid_t *owner)
{
	pid_t free_place = 0;
	return atomic_compare_exchange_strong(owner, &free_place, getpid());
}

static void stop_when_abandoned(void)
{
	while (atomic_load(&abandoned))
		pause();
}

void temp_begin(const char *path)
{
	stop_when_abandoned();
	for (int k = 0; k < PATHS; k++)
		if (take(&paths[k].owner)) {
			atomic_store(&paths[k].path, path);
			return;
		}
}

void temp_end(const char *path)
{
	for (int k = 0; path && k < PATHS; k++)
		if (atomic_load(&paths[k].path) == path) {
			atomic_store(&paths[k].path, NULL);
			atomic_store(&paths[k].owner, 0);
		}
}

void temp_begin_program(pid_t pid)
{
	for (int k = 0; k < PROGRAMS; k++)
		if (take(&programs[k].owner)) {
			atomic_store(&programs[k].pid, pid);
			return;
		}
}

void temp_end_program(pid_t pid)
{
	for (int k = 0; k < PROGRAMS; k++)
		if (atomic_load(&programs[k].pid) == pid) {
			atomic_store(&programs[k].pid, 0);
			atomic_store(&programs[k].owner, 0);
		}
}

/* ---- removing ---- */

enum { DEPTH = 16 };

static void remove_below(int folder, int depth);

static void remove_at(int folder, const char *name, int depth)
{
	if (!unlinkat(folder, name, 0) || (errno != EISDIR && errno != EPERM) || depth == DEPTH)
		return;
	int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	for (int k = 0; k < 10; k++) { /* somebody may be writing into it */
		remove_below(fd, depth + 1);
		if (!unlinkat(folder, name, AT_REMOVEDIR) ||
		    (errno != ENOTEMPTY && errno != EEXIST))
			break;
		lseek(fd, 0, SEEK_SET);
	}
	close(fd);
}

/* Removes what the folder has whose name begins with the prefix. Does not call opendir, which
 * allocates memory: a signal handler must not. */
static void remove_prefixed(int folder, const char *prefix, int depth)
{
	_Alignas(struct dirent64) char entries[2048];
	for (ssize_t n; (n = getdents64(folder, entries, sizeof entries)) > 0;)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *e = (const struct dirent64 *)(entries + at);
			if (!strncmp(e->d_name, prefix, strlen(prefix)) && strcmp(e->d_name, ".") &&
			    strcmp(e->d_name, ".."))
				remove_at(folder, e->d_name, depth);
			at += e->d_reclen;
		}
}

static void remove_below(int folder, int depth)
{
	remove_prefixed(folder, "", depth);
}

/* Removes the files path.tmp..., which a linker that is ended early may leave, where nobody else
 * has such names: beside the files of out_file.h, whose names contain ".tmp-". */
static void remove_siblings(const char *path)
{
	char text[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) + 1 : 0, len = strlen(path);
	if (!strstr(path + n, ".tmp-") || len + sizeof ".tmp" > sizeof text)
		return;
	memcpy(text, path, n);
	text[n] = 0;
	int fd = open(n ? text : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	memcpy(text, path + n, len - n);
	memcpy(text + len - n, ".tmp", sizeof ".tmp");
	remove_prefixed(fd, text, 0);
	close(fd);
}

void temp_remove(const char *path)
{
	remove_at(AT_FDCWD, path, 0);
}

void temp_remove_all(const char *path)
{
	temp_remove(path);
	remove_siblings(path);
}

/* Asks the programs that process `self` started to end, so that a compiler removes its temporary
 * files, and kills those that do not end within a second. */
static void end_programs(pid_t self)
{
	for (int k = 0; k < PROGRAMS; k++)
		if (atomic_load(&programs[k].owner) == self && atomic_load(&programs[k].pid) > 0)
			kill(atomic_load(&programs[k].pid), SIGTERM);
	for (int k = 0; k < PROGRAMS; k++) {
		pid_t pid = atomic_load(&programs[k].pid);
		if (atomic_load(&programs[k].owner) != self || pid <= 0)
			continue;
		for (int wait = 0; wait < 100 && waitpid(pid, NULL, WNOHANG) == 0; wait++) {
			nanosleep(&(struct timespec){0, 10000000}, NULL);
			if (wait == 98)
				kill(pid, SIGKILL);
		}
	}
}

void temp_abandon(void)
{
	int saved = errno;
	pid_t self = getpid();
	atomic_store(&abandoned, true);
	end_programs(self);
	for (int k = 0; k < PATHS; k++) {
		const char *path = atomic_load(&paths[k].path);
		if (path && atomic_load(&paths[k].owner) == self)
			temp_remove_all(path);
	}
	errno = saved;
}
