/* weft: the command. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

static const Command *const commands[] = {
	&command_compile, &command_run, &command_check, &command_bench, &command_show, &command_ops,
};
enum { NCOMMAND = sizeof commands / sizeof(Command *) };

static void help(FILE *f)
{
	fputs("usage: weft COMMAND ...\n\n", f);
	for (int k = 0; k < NCOMMAND; k++)
		fprintf(f, "  %-8s %s\n", commands[k]->name, commands[k]->summary);
	fputs("\nweft COMMAND --help describes a command; weft --version prints the version.\n", f);
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
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		help(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("weft " WEFT_VERSION);
		return 0;
	}
	for (int k = 0; k < NCOMMAND; k++)
		if (!strcmp(argv[1], commands[k]->name)) {
			int code = commands[k]->run(argc - 1, argv + 1);
			if (fflush(stdout) || ferror(stdout))
				return fail("cannot write to standard output: %s", strerror(errno));
			return status_of(code);
		}
	fail("no command %s", argv[1]);
	help(stderr);
	return USAGE;
}
