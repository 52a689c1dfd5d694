#include "driver/artifact/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/temp.h"

extern char **environ;

void words_add(Arena *a, Words *w, const char *word)
{
	array_push(a, &w->word, arena_strdup(a, word));
}

void words_split(Arena *a, Words *w, const char *text)
{
	for (const char *p = text ? text : ""; *(p += strspn(p, " ")); p += strcspn(p, " "))
		array_push(a, &w->word, arena_strndup(a, p, strcspn(p, " ")));
}

const char *const *words_argv(Arena *a, Words *w)
{
	array_push(a, &w->word, NULL);
	return w->word.data;
}

uint32_t jobs_default(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
		return (uint32_t)CPU_COUNT(&set);
	return 1;
}

/* Starts a program. No signal comes between its start and its place in the list of those to be
 * ended. */
static int spawn(Job *j, const posix_spawn_file_actions_t *fa, char *const *argv, char *const *env)
{
	posix_spawnattr_t attr;
	sigset_t all, before;
	int err = posix_spawnattr_init(&attr);
	if (err)
		return err;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &before);
	err = posix_spawnp(&j->pid, j->argv[0], fa, &attr, argv, env);
	if (!err)
		temp_begin_program(j->pid);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	posix_spawnattr_destroy(&attr);
	return err;
}

static bool start(Ctx *ctx, Job *j, char *const *env)
{
	posix_spawn_file_actions_t fa;
	if (posix_spawn_file_actions_init(&fa))
		return ctx_error(ctx, j->what, "cannot start a process");
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&fa, 1, j->log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	posix_spawn_file_actions_adddup2(&fa, 1, 2);
	/* posix_spawn does not write to argv: the const is lost for historical reasons only. */
	union {
		const char *const *in;
		char *const *out;
	} argv = {j->argv};
	int err = spawn(j, &fa, argv.out, env);
	posix_spawn_file_actions_destroy(&fa);
	if (err)
		return ctx_error(ctx, j->what, "cannot run %s: %s", j->argv[0], strerror(err)) ||
		       ctx_kind(ctx, REFUSAL_TOOL);
	j->started = true;
	return true;
}

/* Returns the bytes of the objects that a command line names: about what linking them takes. */
static uint64_t object_bytes(const char *const *argv)
{
	struct stat st;
	uint64_t sum = 0;
	for (; *argv; argv++) {
		size_t n = strlen(*argv);
		if (n > 2 && !strcmp(*argv + n - 2, ".o") && stat(*argv, &st) == 0)
			sum += (uint64_t)st.st_size;
	}
	return sum;
}

/* Returns why a program could not write, as errno; 0 for some other reason. Programs that cannot
 * write may say so among much else, or crash. */
static int no_room(const Job *j, int status, const char *said)
{
	enum { LITTLE = 16 << 10 };
	static const int reasons[] = {ENOSPC, EDQUOT, EFBIG};
	struct statvfs fs;
	for (size_t k = 0; k < sizeof reasons / sizeof *reasons; k++)
		if (strstr(said, strerror(reasons[k])))
			return reasons[k];
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
		return EFBIG;
	if (!j->makes)
		return 0;
	temp_remove_all(j->makes); /* what there is of it takes room */
	const char *slash = strrchr(j->makes, '/');
	char folder[4096];
	int n = snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - j->makes) : 1,
			 slash ? j->makes : ".");
	if (n >= (int)sizeof folder || statvfs(n ? folder : "/", &fs) || !fs.f_blocks)
		return 0;
	uint64_t need = object_bytes(j->argv), room = (uint64_t)fs.f_bavail * fs.f_frsize;
	return room < (need > LITTLE ? need : LITTLE) ? ENOSPC : 0;
}

static bool report(Ctx *ctx, const Job *j, int status)
{
	char text[1500];
	FILE *f = fopen(j->log, "r");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = 0;
	int why = no_room(j, status, text);
	if (why)
		return ctx_error(ctx, j->output ? j->output : j->makes, "cannot write: %s",
				 strerror(why)) ||
		       ctx_kind(ctx, REFUSAL_PATH);
	for (uint32_t k = 0; k < j->nmissing; k++)
		if (strstr(text, j->missing[k].word))
			return ctx_error(ctx, j->what, "%s", j->missing[k].text) ||
			       ctx_kind(ctx, REFUSAL_TOOL);
	if (WIFSIGNALED(status))
		return ctx_error(ctx, j->what, "%s was killed by signal %d: %s", j->argv[0],
				 WTERMSIG(status), text) ||
		       ctx_kind(ctx, REFUSAL_TOOL);
	return ctx_error(ctx, j->what, "%s failed with status %d: %s", j->argv[0],
			 WEXITSTATUS(status), text) ||
	       ctx_kind(ctx, REFUSAL_TOOL);
}

/* Checks that a job made its object. A program that is no compiler may succeed at nothing. */
static bool has_made(Ctx *ctx, const Job *j)
{
	struct stat st;
	return !j->makes || (stat(j->makes, &st) == 0 && st.st_size > 0) ||
	       ctx_error(ctx, j->what, "%s succeeded, but made no object", j->argv[0]);
}

/* Looks after the running jobs. Returns false when one failed. */
static bool reap(Ctx *ctx, Jobs *js, uint32_t *running, uint32_t *done)
{
	bool ok = true;
	for (uint32_t k = 0; k < js->job.n; k++) {
		Job *j = &js->job.data[k];
		int status;
		if (!j->started || j->finished)
			continue;
		pid_t got = waitpid(j->pid, &status, WNOHANG);
		if (got == 0 || (got < 0 && errno == EINTR))
			continue;
		j->finished = true;
		temp_end_program(j->pid);
		--*running;
		++*done;
		if (got < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
			ok = got < 0 ? ctx_error(ctx, j->what, "lost a child process")
				     : report(ctx, j, status);
		else
			ok &= has_made(ctx, j);
		if (js->progress)
			js->progress(js->progress_user, "cc", *done, js->job.n);
	}
	return ok;
}

/* This process's environment with another folder for temporary files. */
static char *const *environment(Arena *a, const char *folder)
{
	uint32_t n = 0, kept = 0;
	while (environ[n])
		n++;
	char **env = ARENA_ARRAY(a, char *, n + 2);
	for (uint32_t k = 0; k < n; k++)
		if (strncmp(environ[k], "TMPDIR=", 7))
			env[kept++] = environ[k];
	env[kept] = arena_printf(a, "TMPDIR=%s", folder);
	return env;
}

bool jobs_run(Ctx *ctx, Jobs *js)
{
	char *const *env = environment(ctx->arena, js->folder);
	uint32_t limit = js->limit ? js->limit : jobs_default(), running = 0, done = 0, next = 0;
	bool ok = true;
	if (js->progress)
		js->progress(js->progress_user, "cc", 0, js->job.n);
	while (running || (ok && next < js->job.n)) {
		while (ok && running < limit && next < js->job.n) {
			ok = start(ctx, &js->job.data[next++], env);
			running += ok;
		}
		uint32_t before = done;
		ok &= reap(ctx, js, &running, &done);
		if (running && before == done)
			nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	return ok;
}
