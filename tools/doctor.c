/* weft doctor */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

extern char **environ;
static int run(int argc, char **argv);

static const HelpRow rows[] = {
	{NULL, "Options", false},
	{"--python ENV",
	 "the Python whose packages are looked for: a program, or a folder with bin/python "
	 "(default $WEFT_PYTHON, else python3)",
	 true},
	{"--json", "print it as JSON", true},
	{0}};

const Command command_doctor = {
	.name = "doctor",
	.summary = "what this machine has of what Weft uses",
	.usage = "[options]",
	.about = "Print which programs and libraries that Weft can use are on this machine, one "
		 "per line: ok, or missing and how to install it. Every model needs only a "
		 "processor that Weft knows, and LLVM with a linker or a C compiler; if one of "
		 "these is missing, the exit status is 1.",
	.more = "",
	.row = rows,
	.run = run};

typedef struct {
	Json json;
	bool llvm, linker, cc, target;
} Doctor;

static void put(Doctor *d, const WeftFinding *f)
{
	if (!d->json.f) {
		printf("%-8s %-14s %s\n", f->found ? "ok" : "missing", f->name, f->what);
		if (!f->found)
			printf("%-24s%s\n", "", f->advice);
		return;
	}
	json_open(&d->json, NULL, '{');
	json_put_string(&d->json, "name", f->name);
	json_put_bool(&d->json, "found", f->found);
	json_put_string(&d->json, "what", f->what);
	json_put_string(&d->json, "advice", f->advice);
	json_close(&d->json, '}');
}

static void note(Doctor *d, const WeftFinding *f)
{
	d->target |= f->found && !strcmp(f->name, "processor");
	d->llvm |= f->found && !strcmp(f->name, "back end llvm");
	d->linker |= f->found && !strcmp(f->name, "linker");
	d->cc |= f->found && !strcmp(f->name, "C compiler");
	put(d, f);
}

/* ---- Python ---- */

static bool start(const char *const *argv, int out, int other, pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	if (posix_spawn_file_actions_init(&fa))
		return false;
	posix_spawn_file_actions_adddup2(&fa, out, 1);
	posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addclose(&fa, out);
	posix_spawn_file_actions_addclose(&fa, other);
	int err = posix_spawnp(pid, argv[0], &fa, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	return !err;
}

/* Asks for the version of a package, or of Python itself; false if it is not there. Nothing is
 * imported. */
static bool version_of(const char *python, const char *package, char version[64])
{
	static const char script[] =
		"import sys\n"
		"from importlib.metadata import version\n"
		"print(version(sys.argv[1]) if sys.argv[1] else sys.version.split()[0])\n";
	const char *argv[] = {python, "-c", script, package, NULL};
	char more[256];
	pid_t pid = 0;
	int status, made[2];
	if (pipe(made))
		return false;
	bool ok = start(argv, made[1], made[0], &pid);
	close(made[1]);
	FILE *f = fdopen(made[0], "r");
	*version = 0;
	if (f && fgets(version, 64, f))
		version[strcspn(version, "\n")] = 0;
	while (f && fgets(more, sizeof more, f))
		; /* to its end */
	if (f)
		fclose(f);
	return ok && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void find_python(Doctor *d, const char *env)
{
	static const struct {
		const char *name, *package, *advice;
	} wanted[] = {
		{"Python", "", "install python3, or name one with --python"},
		{"weft", "weft-compiler",
		 "pip install . in Weft's folder: weft.compile, torch.compile"},
		{"PyTorch", "torch", "pip install torch: torch.compile, and making .pt2 files"},
		{"ONNX", "onnx", "pip install onnx: making .onnx files"},
		{"ONNX Runtime", "onnxruntime",
		 "pip install onnxruntime: weft check --against onnxruntime"},
	};
	char python[4096];
	bool there = python_find(env, python);
	for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
		char version[64] = "", what[4200];
		bool found = there && version_of(python, wanted[k].package, version);
		there &= k > 0 || found;
		snprintf(what, sizeof what, found ? (k ? "%s" : "%s, %s") : "not in %s",
			 found ? version : python, python);
		put(d, &(WeftFinding){.name = wanted[k].name,
				      .what = what,
				      .advice = wanted[k].advice,
				      .found = found});
		if (!there)
			return;
	}
}

/* ---- the command ---- */

static bool examine(Doctor *d, Weft *w, const char *python)
{
	uint32_t n;
	const WeftFinding *f = weft_findings(w, &n);
	if (!f)
		return fail_messages(w), false;
	if (d->json.f) {
		json_open(&d->json, NULL, '{');
		json_put_string(&d->json, "version", WEFT_VERSION);
		json_open(&d->json, "findings", '[');
	}
	for (uint32_t k = 0; k < n; k++)
		note(d, &f[k]);
	find_python(d, python);
	if (d->json.f) {
		json_close(&d->json, ']');
		json_close(&d->json, '}');
	}
	fflush(stdout);
	return (d->target && ((d->llvm && d->linker) || d->cc)) ||
	       (fail("nothing can be compiled here: see what is missing"), false);
}

static int run(int argc, char **argv)
{
	const char *python = python_default() ? python_default() : "python3";
	bool json = false;
	const Opt opt[] = {{"--python", OPT_STRING, &python}, {"--json", OPT_FLAG, &json}, {0}};
	if (!options_parse(&command_doctor, opt, &argc, argv))
		return argc < 0 ? 0 : 1;
	if (argc > 1)
		return fail_usage("doctor: unexpected argument %s; see weft doctor --help",
				  argv[1]);
	Doctor d = {.json = {.f = json ? stdout : NULL}};
	Weft *w = weft_new();
	bool ok = w ? examine(&d, w, python) : (fail_messages(w), false);
	weft_free(w);
	return ok ? 0 : 1;
}
