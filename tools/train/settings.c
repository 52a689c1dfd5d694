#include "tools/train/settings.h"

#include <stdlib.h>

/* The option that a training of a model file always records. */
static const char first_of_model[] = "--optimizer";

/* ---- writing ---- */

static uint32_t count(const Setting *s)
{
	return s->list ? s->list->n : *s->text != NULL;
}

static const char *value(const Setting *s, uint32_t k)
{
	return s->list ? s->list->item[k] : *s->text;
}

char *settings_text(const Settings *all)
{
	size_t room = 1;
	for (uint32_t i = 0; i < all->n; i++)
		for (uint32_t k = 0; k < count(&all->of[i]); k++)
			room += strlen(all->of[i].option) + strlen(value(&all->of[i], k)) + 2;
	char *out = calloc(room, 1), *p = out;
	if (!out)
		return fail("out of memory"), NULL;
	for (uint32_t i = 0; i < all->n; i++)
		for (uint32_t k = 0; k < count(&all->of[i]); k++) {
			const char *v = value(&all->of[i], k);
			if (strchr(v, '\n')) {
				free(out);
				return fail_usage("%s: the value has several lines",
						  all->of[i].option),
				       NULL;
			}
			p += sprintf(p, "%s %s\n", all->of[i].option, v);
		}
	return out;
}

/* ---- reading ---- */

/* Sets out to the values of an option in lines. */
static void find(char *const *line, uint32_t n, const char *option, StringList *out)
{
	const size_t length = strlen(option);
	out->n = 0;
	for (uint32_t k = 0; k < n && out->n < MAX_LIST; k++)
		if (!strncmp(line[k], option, length) && line[k][length] == ' ')
			out->item[out->n++] = line[k] + length + 1;
}

static bool same_text(const char *a, const char *b)
{
	char *end_a, *end_b;
	const double x = strtod(a, &end_a), y = strtod(b, &end_b);
	return !strcmp(a, b) || (end_a != a && end_b != b && !*end_a && !*end_b && x == y);
}

static bool is_same(const Setting *s, const StringList *there)
{
	bool same = count(s) == there->n;
	for (uint32_t k = 0; same && k < there->n; k++)
		same = same_text(value(s, k), there->item[k]);
	return same;
}

static void take(Setting *s, const StringList *there)
{
	if (s->list)
		*s->list = *there;
	else
		*s->text = there->n ? there->item[0] : NULL;
}

/* Compares an option that is given with the checkpoint's. */
static bool compare(const Setting *s, const StringList *there, const char *path)
{
	const char *now = value(s, 0), *then = there->n ? there->item[0] : NULL;
	for (uint32_t k = 0; k < there->n && k < count(s); k++)
		if (!same_text(value(s, k), there->item[k])) {
			now = value(s, k);
			then = there->item[k];
			break;
		}
	if (is_same(s, there))
		return true;
	if (s->may_change) {
		fprintf(stderr, "%s: note: was trained %s %s%s%s, goes on with %s\n", path,
			then ? "with" : "without", s->option, then ? " " : "", then ? then : "",
			now);
		return true;
	}
	if (then && same_text(now, then))
		return fail("%s was trained with %u values of %s, not %u", path, there->n,
			    s->option, count(s)),
		       false;
	return then ? fail("%s was trained with %s %s, not %s", path, s->option, then, now)
		    : fail("%s was trained without %s: leave it out", path, s->option),
	       false;
}

/* Cuts a text into lines. Returns their number. */
static uint32_t cut(char *text, char **line, uint32_t most)
{
	uint32_t n = 0;
	for (char *p = text, *end; n < most && (end = strchr(p, '\n')); p = end + 1) {
		*end = 0;
		line[n++] = p;
	}
	return n;
}

bool settings_resume(Settings *all, char *text, const char *path, bool of_model)
{
	enum { MOST = MOST_SETTINGS + 4 * MAX_LIST };
	char *line[MOST];
	StringList there;
	const uint32_t n = cut(text, line, MOST);
	free(all->read);
	all->read = text;
	find(line, n, first_of_model, &there);
	of_model &= there.n > 0; /* else it was a step in a shared object */
	for (uint32_t k = 0; k < all->n; k++) {
		Setting *s = &all->of[k];
		if (s->of_model && !of_model)
			continue;
		find(line, n, s->option, &there);
		if (!count(s))
			take(s, &there);
		else if (!compare(s, &there, path))
			return false;
	}
	return true;
}

void settings_free(Settings *all)
{
	free(all->read);
	all->read = NULL;
}
