/* Which word was meant. */
#include "tools/tool.h"

enum { MAX_WORD = 64 };

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Returns the number of edits that make b of a: letters inserted, removed, replaced, and
 * neighbours exchanged. The words are shorter than MAX_WORD. */
static uint32_t distance(const char *a, const char *b)
{
	uint32_t row[3][MAX_WORD + 1], n = (uint32_t)strlen(b);
	for (uint32_t j = 0; j <= n; j++)
		row[0][j] = j;
	for (uint32_t i = 1; a[i - 1]; i++) {
		uint32_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
		now[0] = i;
		for (uint32_t j = 1; j <= n; j++) {
			now[j] = least(least(now[j - 1], last[j]) + 1,
				       last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
	}
	return row[strlen(a) % 3][n];
}

void guess_offer(Guess *g, const char *word, const char *name)
{
	size_t n = strlen(g->word);
	if (n >= MAX_WORD || strlen(word) >= MAX_WORD)
		return;
	uint32_t d = distance(g->word, word), most = n < 3 ? 0 : n < 6 ? 1 : (uint32_t)n / 3;
	if (d > most || (g->name && d >= g->distance))
		return;
	g->name = name;
	g->distance = d;
}

const char *guess_text(Guess *g)
{
	if (!g->name)
		return "";
	snprintf(g->text, sizeof g->text, "; did you mean %s?", g->name);
	return g->text;
}
