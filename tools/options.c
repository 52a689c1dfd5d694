/* Command lines and messages. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif

#include "tool.h"

void die_with_parent(void)
{
#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* not SIGKILL: it removes its temporary files first */
#endif
}

/* Prints a message of the command. id: the number of the kind of refusal, or NULL. */
static void say(const char *id, const char *fmt, va_list ap)
{
	progress_clear();
	fputs("weft: ", stderr);
	vfprintf(stderr, fmt, ap);
	if (id)
		fprintf(stderr, " [%s]", id);
	fputc('\n', stderr);
}

int fail(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(NULL, fmt, ap);
	va_end(ap);
	return 1;
}

int fail_id(const char *id, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(id, fmt, ap);
	va_end(ap);
	return 1;
}

static bool misused;

int fail_usage(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(NULL, fmt, ap);
	va_end(ap);
	misused = true;
	return USAGE;
}

int status_of(int code)
{
	return code && misused ? USAGE : code;
}

int fail_open(const char *path)
{
	const int why = errno;
	progress_clear();
	fprintf(stderr, "%s: error: cannot open: %s [W0010]\n", path, strerror(why));
	return 1;
}

static uint32_t count_lines(const char *text)
{
	uint32_t n = 0;
	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

/* Prints the messages. A message is a line, but for one that repeats what another program has
 * printed. */
static void print_messages(Weft *w)
{
	const char *text = weft_messages(w);
	const bool lines = count_lines(text) == weft_nmessages(w);
	for (uint32_t k = 0; lines && *text; k++) {
		const size_t n = strcspn(text, "\n");
		const char *id = weft_message_id(w, k);
		fprintf(stderr, "%.*s%s%s%s\n", (int)n, text, *id ? " [" : "", id, *id ? "]" : "");
		text += n + (text[n] == '\n');
	}
	fputs(text, stderr);
}

int fail_messages(Weft *w)
{
	progress_clear();
	if (w)
		print_messages(w);
	else
		fputs("weft: out of memory\n", stderr);
	return 1;
}

int fail_status(const char *path, int code, const char *message)
{
	const char *id = code == WEFT_ERR_INPUT    ? "W0008"
			 : code == WEFT_ERR_CHECK  ? "W0009"
			 : code == WEFT_ERR_FILE   ? "W0003"
			 : code == WEFT_ERR_CPU    ? "W0011"
			 : code == WEFT_ERR_DEVICE ? "W0012"
			 : code == WEFT_ERR_ABI    ? "W0014"
						   : NULL;
	return fail_id(id, "%s%s%s", path ? path : "", path ? ": " : "", message);
}

bool same_file(const char *a, const char *b)
{
	struct stat x, y;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool keep_input(const char *output, const char *input)
{
	struct stat st;
	bool spared = !input || !same_file(output, input) ||
		      (stat(input, &st) == 0 && !S_ISREG(st.st_mode));
	return spared ||
	       (fail("%s: cannot write: this file is an input, and would be overwritten", output),
		false);
}

static bool parse_int(const char *text, int *out)
{
	char *end;
	errno = 0;
	long v = strtol(text, &end, 10);
	*out = (int)v;
	return end != text && !*end && !errno && v >= 1 && v <= MOST_THREADS;
}

static const Opt *find(const Opt *opt, const char *arg, const char **value)
{
	const char *eq = strchr(arg, '=');
	size_t n = eq ? (size_t)(eq - arg) : strlen(arg);
	for (; opt->name; opt++) {
		if (strlen(opt->name) == n && !strncmp(opt->name, arg, n)) {
			*value = eq ? eq + 1 : NULL;
			return opt;
		}
		/* -j4 */
		if (opt->name[1] != '-' && !strncmp(opt->name, arg, 2) && arg[2]) {
			*value = arg + 2;
			return opt;
		}
	}
	return NULL;
}

static bool store(const Opt *opt, const char *value)
{
	StringList *list = opt->to;
	if (!value[strspn(value, " ")])
		return fail_usage("%s: the value is empty", opt->name), false;
	if (opt->kind == OPT_STRING || opt->kind == OPT_MAYBE)
		*(const char **)opt->to = value;
	else if (opt->kind == OPT_LIST && list->n == MAX_LIST)
		return fail_usage("%s is given more than %d times", opt->name, MAX_LIST), false;
	else if (opt->kind == OPT_LIST)
		list->item[list->n++] = value;
	else if (!parse_int(value, opt->to))
		return fail_usage("%s takes a number from 1 to %d, not %s", opt->name, MOST_THREADS,
			    value),
		       false;
	return true;
}

static bool unknown(const Command *c, const Opt *opt, const char *arg)
{
	char word[64];
	Guess g = {.word = word};
	snprintf(word, sizeof word, "%.*s", (int)strcspn(arg, "="), arg);
	for (; opt->name; opt++)
		guess_offer(&g, opt->name, opt->name);
	guess_offer(&g, "--help", "--help");
	guess_offer(&g, "--help-all", "--help-all");
	if (g.name)
		return fail_usage("%s: no option %s%s", c->name, word, guess_text(&g)), false;
	return fail_usage("%s: no option %s; see weft %s --help-all", c->name, arg, c->name), false;
}

/* Stores the value of an option. That of a flag is true; OPT_MAYBE has "" without one. given:
 * the bits of the options so far. */
static bool put(const Command *c, const Opt *o, const char *value, uint64_t bit, uint64_t *given)
{
	bool again = *given & bit;
	*given |= bit;
	if (o->kind == OPT_FLAG)
		return *(bool *)o->to = true;
	if (again && o->kind != OPT_LIST && (!value || *value))
		return fail_usage("%s: %s is given twice", c->name, o->name), false;
	if (o->kind == OPT_MAYBE && !value)
		return *(const char **)o->to = "", true;
	return store(o, value);
}

/* Takes the option at argv[*k], and its value. */
static bool take(const Command *c, const Opt *opt, int argc, char **argv, int *k, uint64_t *given)
{
	const char *value = NULL;
	const Opt *o = find(opt, argv[*k], &value);
	if (!o)
		return unknown(c, opt, argv[*k]);
	if (o->kind == OPT_FLAG && value)
		return fail_usage("%s: %s takes no value", c->name, o->name), false;
	bool next = !value && o->kind != OPT_FLAG && o->kind != OPT_MAYBE;
	if (next && *k + 1 == argc)
		return fail_usage("%s: %s takes a value", c->name, o->name), false;
	return put(c, o, next ? argv[++*k] : value, UINT64_C(1) << (o - opt), given);
}

bool options_parse(const Command *c, const Opt *opt, int *argc, char **argv)
{
	int n = 1;
	bool literal = false;
	uint64_t given = 0;
	for (int k = 1; k < *argc; k++) {
		if (literal || argv[k][0] != '-' || !argv[k][1]) {
			argv[n++] = argv[k];
			continue;
		}
		if (!strcmp(argv[k], "--")) {
			literal = true;
			continue;
		}
		const bool all = !strcmp(argv[k], "--help-all");
		if (all || !strcmp(argv[k], "--help") || !strcmp(argv[k], "-h")) {
			command_help(c, all);
			*argc = -1;
			return false;
		}
		if (!take(c, opt, *argc, argv, &k, &given))
			return false;
	}
	*argc = n;
	return true;
}

bool options_used(const Command *c, const OptUse *u, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (u[k].given && !u[k].used)
			return fail_usage("%s: %s is for %s", c->name, u[k].option, u[k].of), false;
	return true;
}

int parse_list(const char *what, const char *text, int *out, int max)
{
	int n = 0;
	for (const char *p = text;; p++) {
		char item[16];
		size_t len = strcspn(p, ",");
		if (n == max || len >= sizeof item)
			return fail_usage("%s: too many or too long: %s", what, text), 0;
		memcpy(item, p, len);
		item[len] = 0;
		if (!parse_int(item, &out[n]))
			return fail_usage("%s: %s is not a list of numbers from 1 to %d", what,
					  text, MOST_THREADS),
			       0;
		n++;
		p += len;
		if (!*p)
			return n;
	}
}
