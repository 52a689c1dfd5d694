/* Python programs of the command's own, run by an environment of the user; references that one of
 * them makes (--against). */
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

extern char **environ;
extern const char against_py[]; /* tools/against.py, embedded at build time */

enum { MAX_ARGS = 8 };

const char *python_default(void)
{
	const char *env = getenv("WEFT_PYTHON");
	return env && *env ? env : NULL;
}

bool python_find(const char *env, char path[4096])
{
	struct stat st;
	const char *within = "/bin/python";
	snprintf(path, 4096, "%s%s", env, within);
	if (access(path, X_OK))
		path[strlen(path) - strlen(within)] = 0;
	/* A name without a folder is looked up in PATH when it is run. */
	return !strchr(path, '/') ||
	       (access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode));
}

static bool run_file(const char *env, const char *what, const char *file, const char *const *arg,
		     int n, FILE *out)
{
	char python[4096];
	posix_spawn_file_actions_t fa;
	pid_t pid;
	int status;
	python_find(env, python);
	const char *argv[MAX_ARGS + 3] = {python, file};
	memcpy(argv + 2, arg, (size_t)n * sizeof *arg);
	if (posix_spawn_file_actions_init(&fa))
		return fail("%s: out of memory", what), false;
	posix_spawn_file_actions_adddup2(&fa, fileno(out), 1);
	int err = posix_spawnp(&pid, python, &fa, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	if (err)
		return fail_id("W0012", "cannot run %s: %s", python, strerror(err)), false;
	if (waitpid(pid, &status, 0) != pid)
		return fail("lost the process of %s", what), false;
	if (WIFSIGNALED(status))
		return fail("%s was ended by signal %d", what, WTERMSIG(status)), false;
	if (WEXITSTATUS(status) > 1)
		return fail_id("W0012", "%s failed with status %d", what, WEXITSTATUS(status)),
		       false;
	return WEXITSTATUS(status) == 0; /* after 1 the program has said why */
}

/* Python looks for modules beside its script first, which is a folder where anyone may write. */
static const char own_modules[] =
	"import sys\nif sys.path[:1] == [__file__.rpartition('/')[0]]:\n    del sys.path[0]\n";

bool python_run(const char *env, const char *what, const char *script, const char *const *arg,
		int n, FILE *out)
{
	const char *base = getenv("TMPDIR");
	char file[4096];
	snprintf(file, sizeof file, "%s/weft-python-XXXXXX", base && *base ? base : "/tmp");
	int fd = mkstemp(file);
	weft_temporary(file);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	bool ok = f && n <= MAX_ARGS && fputs(own_modules, f) >= 0 && fputs(script, f) >= 0;
	ok = f && fclose(f) == 0 && ok;
	if (!ok)
		fail_id("W0010", "%s: cannot write a temporary file", what);
	ok = ok && run_file(env, what, file, arg, n, out);
	unlink(file);
	weft_not_temporary(file);
	return ok;
}

/* ---- references of another system ---- */

/* Makes a temporary file for the results; sets `path` to its name. */
static bool new_file(char path[256])
{
	const char *base = getenv("TMPDIR");
	int n = snprintf(path, 256, "%s/weft-against-XXXXXX.safetensors",
			 base && *base ? base : "/tmp");
	int fd = n < 256 ? mkstemps(path, (int)strlen(".safetensors")) : -1;
	if (fd < 0)
		return fail("cannot make a temporary file %s", path), false;
	weft_temporary(path);
	close(fd);
	return true;
}

/* Reads what the program says of inputs that it made up: its last line. */
static void read_made(FILE *out, char made[300])
{
	char line[300];
	rewind(out);
	while (fgets(line, sizeof line, out)) {
		line[strcspn(line, "\n")] = 0;
		memcpy(made, line, sizeof line);
	}
}

/* Makes the reference. Inputs that decide shapes are those of the reference that is named, or
 * made up. */
static bool make_reference(CheckCase *cs, const CheckOptions *o, const char *inputs, char path[256])
{
	if (inputs && !has_suffix(inputs, ".safetensors"))
		return fail("%s: with --against inputs are a .safetensors file", inputs), false;
	char *bounds = inputs ? NULL : bounds_of_inputs(cs->model);
	const char *arg[] = {cs->model, o->against, path, inputs ? "given" : "made up",
			     inputs   ? inputs
			     : bounds ? bounds
				      : ""};
	FILE *out = tmpfile();
	bool ok =
		out && new_file(path) && python_run(o->python, o->against, against_py, arg, 5, out);
	if (ok && !inputs)
		read_made(out, cs->made);
	if (out)
		fclose(out);
	free(bounds);
	return ok;
}

bool against_begin(CheckCase *cs, const CheckOptions *o, AgainstFiles *made)
{
	*made = (AgainstFiles){cs->ref, NULL, cs->nref};
	if (!o->against)
		return true;
	if (!has_suffix(cs->model, ".onnx"))
		return fail("%s: --against is for models of ONNX", cs->model), false;
	int n = cs->nref ? cs->nref : 1;
	made->path = calloc((size_t)n, sizeof *made->path);
	char **ref = calloc((size_t)n, sizeof *ref);
	cs->ref = ref;
	cs->nref = 0;
	for (int k = 0; ref && made->path && k < n; k++) {
		ref[k] = made->path[k];
		if (!make_reference(cs, o, made->nown ? made->own[k] : NULL, made->path[k]))
			return false;
		cs->nref++;
	}
	return ref && made->path;
}

void against_end(CheckCase *cs, AgainstFiles *made)
{
	if (!made->path)
		return;
	for (int k = 0; k < (made->nown ? made->nown : 1); k++) {
		if (!*made->path[k])
			continue;
		unlink(made->path[k]);
		weft_not_temporary(made->path[k]);
	}
	free(cs->ref);
	free(made->path);
	cs->ref = made->own;
	cs->nref = made->nown;
}
