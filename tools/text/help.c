/* What --help and --help-all print: a paragraph, and options in two columns. */
#include "tools/tool.h"

enum { COLUMN = 26, WIDTH = 80 }; /* where texts begin; where lines end at the latest */

/* Prints words with line breaks, from column `at` on; further lines begin at `indent`. */
static void print_words(const char *text, size_t at, size_t indent)
{
	bool first = true;
	while (*text) {
		const size_t n = strcspn(text, " \n");
		if (!first && (at + 1 + n > WIDTH)) {
			printf("\n%*s", (int)indent, "");
			at = indent;
			first = true;
		}
		printf("%s%.*s", first ? "" : " ", (int)n, text);
		at += n + !first;
		first = false;
		text += n;
		if (*text == '\n') {
			printf("\n%*s", text[1] && text[1] != '\n' ? (int)indent : 0, "");
			at = indent;
			first = true;
		}
		text += *text != 0;
	}
}

static void print_row(const HelpRow *r)
{
	const int n = printf("  %s", r->option);
	if (n + 2 > COLUMN)
		printf("\n%*s", COLUMN, "");
	else
		printf("%*s", COLUMN - n, "");
	print_words(r->text, COLUMN, COLUMN);
	putchar('\n');
}

/* Prints the rows of one group behind its heading; returns the heading of the next. */
static const HelpRow *print_group(const HelpRow *heading, bool all)
{
	bool any = false;
	const HelpRow *r = heading + 1;
	for (; r->text && r->option; r++) {
		if (!all && !r->first)
			continue;
		if (!any)
			printf("\n%s\n", heading->text);
		any = true;
		print_row(r);
	}
	return r;
}

void command_help(const Command *c, bool all)
{
	printf("usage: weft %s ", c->name);
	print_words(c->usage, strlen("usage: weft ") + strlen(c->name) + 1, COLUMN);
	fputs("\n\n", stdout);
	print_words(c->about, 0, 0);
	putchar('\n');
	if (all && *c->more) {
		putchar('\n');
		print_words(c->more, 0, 0);
		putchar('\n');
	}
	bool hidden = *c->more;
	for (const HelpRow *r = c->row; r->text; r++)
		hidden |= r->option && !r->first;
	for (const HelpRow *r = c->row; r->text;)
		r = print_group(r, all);
	if (hidden && !all)
		printf("\nweft %s --help-all describes all options.\n", c->name);
}
