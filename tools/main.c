/* weft: the command. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

static const Command *const commands[] = {
	&command_compile, &command_run,    &command_check,  &command_bench, &command_train,
	&command_show,    &command_report, &command_bisect, &command_ops,   &command_doctor,
	&command_quantize, &command_state,
};
enum { NCOMMAND = sizeof commands / sizeof(Command *) };

static void help(FILE *f)
{
	fputs("usage: weft COMMAND ...\n\n", f);
	for (int k = 0; k < NCOMMAND; k++)
		fprintf(f, "  %-8s %s\n", commands[k]->name, commands[k]->summary);
	fputs("\nweft help COMMAND, or weft COMMAND --help, describes a command with its most\n"
	      "important options; weft COMMAND --help-all has all of them.\n"
	      "weft help W0001 explains the number of a refusal, weft help refusals lists them.\n"
	      "weft --version prints the version.\n",
	      f);
}

/* Checks that what was printed is there, or an error says that it is not. */
static int finish(int code)
{
	progress_end();
	if (fflush(stdout) || ferror(stdout))
		return fail("cannot write to standard output: %s", strerror(errno));
	return status_of(code);
}

static const Command *find(const char *name)
{
	Guess g = {.word = name};
	for (int k = 0; k < NCOMMAND; k++) {
		if (!strcmp(name, commands[k]->name))
			return commands[k];
		guess_offer(&g, commands[k]->name, commands[k]->name);
	}
	fail_usage("no command %s%s", name, guess_text(&g));
	if (!g.name)
		help(stderr);
	return NULL;
}

static int unexpected(const char *arg)
{
	return fail_usage("unexpected argument %s; see weft --help", arg);
}

/* Answers weft help W0001, weft help refusals. */
static bool explained(const char *what)
{
	const WeftExplanation e = weft_explain(what);
	if (*e.id)
		printf("%s: %s\n\n%s\n", e.id, e.title, e.text);
	if (*e.id || strcmp(what, "refusals") != 0)
		return *e.id;
	for (uint32_t k = 0; *weft_explanation(k).id; k++)
		printf("%s  %s\n", weft_explanation(k).id, weft_explanation(k).title);
	return true;
}

/* Answers weft help COMMAND; alone, as weft --help, the commands. */
static int answer(int argc, char **argv)
{
	static const char *const same[] = {"--help", "-h", "help"}; /* weft help --help */
	for (size_t k = 0; argc == 3 && k < sizeof same / sizeof *same; k++)
		argc -= !strcmp(argv[2], same[k]);
	if (argc == 3 && !strcmp(argv[1], "help") && explained(argv[2]))
		return 0;
	const Command *c = argc > 2 && !strcmp(argv[1], "help") ? find(argv[2]) : NULL;
	if (argc > 2 + (c != NULL))
		return c || strcmp(argv[1], "help") ? unexpected(argv[2 + (c != NULL)]) : USAGE;
	if (c)
		command_help(c, false);
	else
		help(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	signals_init();
	/* A limit on the size of files is an error of write, not the end. */
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		help(stderr);
		return USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return finish(answer(argc, argv));
	if (!strcmp(argv[1], "--version")) {
		if (argc > 2)
			return unexpected(argv[2]);
		puts("weft " WEFT_VERSION);
		return finish(0);
	}
	const Command *c = find(argv[1]);
	return c ? finish(c->run(argc - 1, argv + 1)) : USAGE;
}
