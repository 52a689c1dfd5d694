/* weft ops */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static int run(int argc, char **argv);

static const HelpRow rows[] = {
	{NULL, "What is printed", false},
	{"--long", "schema, other names, dtypes, definition, what deviates from PyTorch", true},
	{"--deviating", "those whose results are not PyTorch's on purpose, and how", true},
	{"--json", "all of that as JSON", true},
	{0}};

const Command command_ops = {
	.name = "ops",
	.summary = "list the operators there are",
	.usage = "[PATTERN...] [options]",
	.about = "Print the operators that models may contain, sorted by name. For each, print how "
		 "it is defined (scalar: a function of single elements; primitive: computed by "
		 "kernels directly; expansion: a formula of other operators; code: a C function "
		 "that adds other operators), and how its derivative and its batched form are "
		 "computed (rule: by its own rule; expansion: by the rules of the other "
		 "operators). A PATTERN is a name or a part of a name; with * or ? it must match "
		 "the whole name, as a shell matches names of files.",
	.more = "",
	.row = rows,
	.run = run};

static bool matches(const WeftOperator *o, int n, char **pattern)
{
	bool any = !n;
	for (int k = 0; k < n && !any; k++)
		any = strpbrk(pattern[k], "*?[") ? !fnmatch(pattern[k], o->name, 0) : strstr(o->name, pattern[k]) || strstr(o->aliases, pattern[k]);
	return any;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const WeftOperator *)a)->name, ((const WeftOperator *)b)->name);
}

static void line(const char *label, const char *text)
{
	if (*text)
		printf("    %-12s %s\n", label, text);
}

static void print_long(const WeftOperator *o)
{
	printf("%s\n", o->schema);
	line("other names", o->aliases);
	line("meaning", o->doc);
	line("dtypes", o->dtypes);
	line(o->kind, *o->definition ? o->definition : "by C code");
	line("derivative", o->derivative);
	line("batch", o->batch);
	line("deviates", o->deviates);
}

static void print_json(Json *j, const WeftOperator *o)
{
	json_open(j, NULL, '{');
	json_put_string(j, "name", o->name);
	json_put_string(j, "schema", o->schema);
	json_put_string(j, "aliases", o->aliases);
	json_put_string(j, "doc", o->doc);
	json_put_string(j, "kind", o->kind);
	json_put_string(j, "definition", o->definition);
	json_put_string(j, "dtypes", o->dtypes);
	json_put_string(j, "derivative", o->derivative);
	json_put_string(j, "batch", o->batch);
	json_put_string(j, "deviates", o->deviates);
	json_close(j, '}');
}

/* Offers a name, and each part of it behind a dot: aten.add.Tensor as add.Tensor, and as add. */
static void offer(Guess *g, const char *name)
{
	char word[64];
	guess_offer(g, name, name);
	for (const char *p = name; (p = strchr(p, '.'));) {
		p++;
		guess_offer(g, p, name);
		snprintf(word, sizeof word, "%.*s", (int)strcspn(p, "."), p);
		guess_offer(g, word, name);
	}
}

static int none_like(const char *pattern)
{
	WeftOperator o = {.size = sizeof o};
	Guess g = {.word = pattern};
	for (uint32_t k = 0; weft_table_operator(k, &o); k++)
		offer(&g, o.name);
	return fail("no operator has a name like %s%s", pattern, guess_text(&g));
}

static int run(int argc, char **argv)
{
	bool all = false, json = false, deviating = false;
	const Opt opt[] = {{"--long", OPT_FLAG, &all},
			   {"--deviating", OPT_FLAG, &deviating},
			   {"--json", OPT_FLAG, &json},
			   {NULL, 0, NULL}};
	if (!options_parse(&command_ops, opt, &argc, argv))
		return argc < 0 ? 0 : 1;
	uint32_t n = 0, found = 0;
	for (WeftOperator o = {.size = sizeof o}; weft_table_operator(n, &o); n++)
		;
	WeftOperator *list = calloc(n + 1, sizeof *list);
	if (!list)
		return fail("out of memory");
	for (uint32_t k = 0; k < n; k++) {
		list[found].size = sizeof *list;
		found += weft_table_operator(k, &list[found]) &&
			 matches(&list[found], argc - 1, argv + 1);
	}
	qsort(list, found, sizeof *list, by_name);
	Json j = {.f = json ? stdout : NULL};
	if (json)
		json_open(&j, NULL, '[');
	for (uint32_t k = 0; k < found; k++) {
		const WeftOperator *o = &list[k];
		if (deviating && !*o->deviates)
			continue;
		if (json)
			print_json(&j, o);
		else if (all)
			print_long(o);
		else if (deviating)
			printf("%s\n    %s\n", o->name, o->deviates);
		else
			printf("%-56s %-9s  derivative: %-9s  batch: %s\n", o->name, o->kind,
			       o->derivative, o->batch);
	}
	if (json)
		json_close(&j, ']');
	free(list);
	return found || argc < 2 ? 0 : none_like(argv[1]);
}
