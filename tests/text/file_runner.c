/* file_runner [--bless | --show] [--loops TARGET] [--draw SEED] [--part K N] FILE-OR-FOLDER...
 *
 * Runs file tests, each in a process of its own, and compares what they print with what the files
 * expect. --bless makes the files expect what was printed, unless that is an error that was not
 * expected and the folder is not one of errors; --show only prints it. With --loops nothing is
 * compiled: the interpreter of loop IR does what the target would, and what is printed is to be the
 * same; of tests that differ in the target they name alone the first one runs. --draw: variants of
 * families of kernels (file_kernels.h), which are to show no difference.
 * --part: every Nth test, from number K on. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file_test.h"

static const char separator[] = "\n; ----\n";
static char drawn[] = "no difference\n";

typedef struct {
	const char *path;
	char *text;     /* of the file up to the separator, its line break included */
	char *expected; /* NULL: none given yet */
	pid_t child;
	FILE *from; /* what the child prints */
} Job;

typedef ARRAY(Job) Jobs;

/* ---- files ---- */

static char *read_all(Arena *a, FILE *f)
{
	Text t;
	char chunk[4096];
	size_t n;
	text_init(&t, a);
	while ((n = fread(chunk, 1, sizeof chunk, f)))
		text_addn(&t, chunk, n);
	return t.data;
}

static void add_file(Arena *a, Jobs *jobs, const char *path)
{
	FILE *f = fopen(path, "r");
	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	Job j = {.path = arena_strdup(a, path), .text = read_all(a, f)};
	fclose(f);
	char *end = strstr(j.text, separator);
	if (end) {
		j.expected = end + sizeof separator - 1;
		end[1] = 0;
	}
	array_push(a, jobs, j);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_test(const struct dirent *e)
{
	size_t n = strlen(e->d_name);
	return n > 4 && !strcmp(e->d_name + n - 4, ".txt");
}

static void add_path(Arena *a, Jobs *jobs, const char *path)
{
	struct stat st;
	if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
		add_file(a, jobs, path);
		return;
	}
	struct dirent **list;
	int n = scandir(path, &list, is_test, by_name);
	for (int k = 0; k < n; k++) {
		add_file(a, jobs, arena_printf(a, "%s/%s", path, list[k]->d_name));
		free(list[k]);
	}
	if (n >= 0)
		free(list);
}

/* Whether the test names a target in its first line, and an earlier one has the same graph. */
static bool is_variant(const Jobs *jobs, uint32_t k)
{
	const char *text = jobs->data[k].text, *named = strstr(text, "compiled "),
		   *graph = strstr(text, "graph @");
	bool found = false;
	if (!graph || !named || named > text + strcspn(text, "\n"))
		return false;
	for (uint32_t i = 0; i < k && !found; i++) {
		const char *other = strstr(jobs->data[i].text, "graph @");
		found = other && !strcmp(other, graph);
	}
	return found;
}

static void drop_variants(Jobs *jobs)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < jobs->n; k++)
		if (!is_variant(jobs, k))
			jobs->data[n++] = jobs->data[k];
	jobs->n = n;
}

/* Every `parts`th of them, from number `part` on. */
static void keep_part(Jobs *jobs, uint32_t part, uint32_t parts)
{
	uint32_t n = 0;
	for (uint32_t k = part; parts && k < jobs->n; k += parts)
		jobs->data[n++] = jobs->data[k];
	jobs->n = n;
}

/* ---- processes ---- */

static const char *test_name(Arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *s = slash ? slash + 1 : path;
	return arena_strndup(a, s, strcspn(s, "."));
}

/* A test that runs away ends before the machine does. Sanitizers reserve more address space than
 * that. */
static void limit(void)
{
#ifndef __SANITIZE_ADDRESS__
	struct rlimit memory = {(rlim_t)4 << 30, (rlim_t)4 << 30};
	setrlimit(RLIMIT_AS, &memory);
#endif
	struct rlimit seconds = {100, 110};
	setrlimit(RLIMIT_CPU, &seconds);
	alarm(3600); /* that much only where it waits for ever */
}

/* For all tests. */
typedef struct {
	const char *loops, *draw;
} How;

static _Noreturn void child(Arena *a, const Job *j, How how, int to)
{
	limit();
	FileTest t = {test_name(a, j->path), j->text, how.loops, how.draw};
	Text out;
	text_init(&out, a);
	file_test_run(&t, &out);
	FILE *f = fdopen(to, "w");
	bool ok = f && fwrite(out.data, 1, out.n, f) == out.n && fclose(f) == 0;
	_exit(!ok);
}

static void start(Arena *a, Job *j, How how)
{
	int fd[2];
	fflush(NULL);
	if (pipe(fd) || (j->child = fork()) < 0) {
		perror("file_runner");
		exit(1);
	}
	if (!j->child) {
		close(fd[0]);
		child(a, j, how, fd[1]);
	}
	close(fd[1]);
	j->from = fdopen(fd[0], "r");
}

/* What the test printed, and how it ended if not well. */
static char *finish(Arena *a, Job *j)
{
	int status;
	char *text = read_all(a, j->from);
	fclose(j->from);
	waitpid(j->child, &status, 0);
	if (WIFSIGNALED(status))
		return arena_printf(a, "%sstopped by signal %d (%s)\n", text, WTERMSIG(status),
				    strsignal(WTERMSIG(status)));
	return WEXITSTATUS(status) ? arena_printf(a, "%sfailed\n", text) : text;
}

/* ---- results ---- */

static void print_lines(const char *mark, const char *s)
{
	for (int k = 0; k < 6 && *s; k++) {
		int n = (int)strcspn(s, "\n");
		printf("%s%.*s\n", mark, n, s);
		s += n + (s[n] == '\n');
	}
}

static void print_difference(const Job *j, const char *have)
{
	const char *want = j->expected ? j->expected : "";
	size_t k = 0, line = 0;
	unsigned number = 1;
	for (; want[k] && want[k] == have[k]; k++)
		if (want[k] == '\n') {
			line = k + 1;
			number++;
		}
	printf("%s: line %u of the output\n", j->path, number);
	print_lines("  expected | ", want + line);
	print_lines("  printed  | ", have + line);
}

static void bless(Arena *a, const Job *j, const char *have)
{
	Text t;
	text_init(&t, a);
	text_printf(&t, "%s%s%s", j->text, separator + 1, have);
	if (!text_write_file(&t, j->path))
		perror(j->path);
}

/* The next line of s that tells an error, or how the test ended if not well; NULL: none. */
static const char *error_line(const char *s)
{
	static const char *const ends[] = {"stopped by signal ", "failed\n"};
	for (; *s; s += strcspn(s, "\n"), s += *s == '\n') {
		const char *at = strstr(s, "error: ");
		if (at && at < s + strcspn(s, "\n") && (at == s || at[-1] == ' '))
			return s;
		for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
			if (!strncmp(s, ends[k], strlen(ends[k])))
				return s;
	}
	return NULL;
}

static unsigned count_errors(const char *s)
{
	unsigned n = 0;
	while ((s = error_line(s)) != NULL) {
		n++;
		s += strcspn(s, "\n");
	}
	return n;
}

/* Whether the output may become what is expected. In tests of errors, which are those of a folder
 * `errors`, it may have them; in others no more than it had. How a test that crashed ended is never
 * expected. */
static bool may_bless(const Job *j, const char *have)
{
	const char *slash = strrchr(j->path, '/'), *error = error_line(have);
	size_t n = slash ? (size_t)(slash - j->path) : 0;
	bool of_errors = n >= 6 && !strncmp(slash - 6, "errors", 6) && (n == 6 || slash[-7] == '/');
	bool crashed = strstr(have, "stopped by signal ") || strstr(have, "\nfailed\n");
	unsigned before = j->expected ? count_errors(j->expected) : 0;
	if (!crashed && (of_errors || count_errors(have) <= before))
		return true;
	printf("%s: not blessed, since it prints %s: %.*s\n", j->path,
	       before ? "more errors than before" : "an error", (int)strcspn(error, "\n"), error);
	return false;
}

typedef enum { COMPARE, BLESS, SHOW } Mode;

static bool judge(Arena *a, const Job *j, const char *have, Mode mode)
{
	if (mode == SHOW) {
		printf("; %s\n%s", j->path, have);
		return true;
	}
	if (j->expected && strcmp(j->expected, have) == 0)
		return true;
	if (mode == BLESS && !may_bless(j, have))
		return false;
	if (mode == BLESS) {
		bless(a, j, have);
		printf("%s: blessed\n", j->path);
		return true;
	}
	print_difference(j, have);
	return false;
}

int main(int argc, char **argv)
{
	Arena *a = arena_new(NULL);
	Jobs jobs = {0};
	Mode mode = COMPARE;
	How how = {0};
	uint32_t part = 0, parts = 1;
	long width = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned failed = 0, started = 0;
	for (int k = 1; k < argc; k++)
		if (!strcmp(argv[k], "--bless"))
			mode = BLESS;
		else if (!strcmp(argv[k], "--show"))
			mode = SHOW;
		else if (!strcmp(argv[k], "--loops") && k + 1 < argc)
			how.loops = argv[++k];
		else if (!strcmp(argv[k], "--draw") && k + 1 < argc)
			how.draw = argv[++k];
		else if (!strcmp(argv[k], "--part") && k + 2 < argc) {
			part = (uint32_t)atoi(argv[++k]);
			parts = (uint32_t)atoi(argv[++k]);
		} else
			add_path(a, &jobs, argv[k]);
	if (how.loops && mode == COMPARE)
		drop_variants(&jobs);
	keep_part(&jobs, part, parts);
	for (uint32_t k = 0; how.draw && k < jobs.n; k++)
		jobs.data[k].expected = drawn;
	for (uint32_t k = 0; k < jobs.n; k++) {
		for (; started < jobs.n && started < k + width; started++)
			start(a, &jobs.data[started], how);
		failed += !judge(a, &jobs.data[k], finish(a, &jobs.data[k]), mode);
	}
	printf("%u passed, %u failed\n", jobs.n - failed, failed);
	arena_free(a);
	return failed || !jobs.n;
}
