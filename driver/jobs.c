#include "driver/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

static bool start(Ctx *ctx, Job *j)
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
	int err = posix_spawnp(&j->pid, j->argv[0], &fa, NULL, argv.out, environ);
	posix_spawn_file_actions_destroy(&fa);
	if (err)
		return ctx_error(ctx, j->what, "cannot run %s: %s", j->argv[0], strerror(err));
	j->started = true;
	return true;
}

static bool report(Ctx *ctx, const Job *j, int status)
{
	char text[1500];
	FILE *f = fopen(j->log, "r");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = 0;
	if (WIFSIGNALED(status))
		return ctx_error(ctx, j->what, "%s was killed by signal %d: %s", j->argv[0],
				 WTERMSIG(status), text);
	return ctx_error(ctx, j->what, "%s failed with status %d: %s", j->argv[0],
			 WEXITSTATUS(status), text);
}

/* A program that is no compiler may succeed at nothing. */
static bool has_made(Ctx *ctx, const Job *j)
{
	struct stat st;
	return !j->makes || (stat(j->makes, &st) == 0 && st.st_size > 0) ||
	       ctx_error(ctx, j->what, "%s succeeded, but made no object", j->argv[0]);
}

/* Look after the running ones. False when one failed. */
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

bool jobs_run(Ctx *ctx, Jobs *js)
{
	uint32_t limit = js->limit ? js->limit : jobs_default(), running = 0, done = 0, next = 0;
	bool ok = true;
	while (running || (ok && next < js->job.n)) {
		while (ok && running < limit && next < js->job.n) {
			ok = start(ctx, &js->job.data[next++]);
			running += ok;
		}
		uint32_t before = done;
		ok &= reap(ctx, js, &running, &done);
		if (running && before == done)
			nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	return ok;
}
