#include "base/nearest.h"

#include <string.h>

enum { MAX_WORD = 96 };

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Returns the number of letters inserted, removed, replaced or exchanged with a neighbour that
 * make b of a. Both are shorter than MAX_WORD. */
static uint32_t edits_between(const char *a, const char *b)
{
	uint32_t row[3][MAX_WORD + 1], n = (uint32_t)strlen(b);
	for (uint32_t j = 0; j <= n; j++)
		row[0][j] = j;
	for (uint32_t i = 1; a[i - 1]; i++) {
		uint32_t *to = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
		to[0] = i;
		for (uint32_t j = 1; j <= n; j++) {
			to[j] = least(least(to[j - 1], last[j]) + 1,
				      last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				to[j] = least(to[j], before[j - 2] + 1);
		}
	}
	return row[strlen(a) % 3][n];
}

void nearest_offer(Nearest *n, const char *word)
{
	const size_t a = strlen(n->word), b = strlen(word);
	if (a >= MAX_WORD || b >= MAX_WORD || a > b + n->most || b > a + n->most)
		return;
	const uint32_t edits = edits_between(n->word, word);
	if (edits > n->most || (n->found && edits >= n->edits))
		return;
	n->found = word;
	n->edits = edits;
}

uint32_t nearest_most(size_t letters)
{
	return letters < 3 ? 0 : letters < 6 ? 1 : 2;
}

const char *nearest_hint(Arena *a, const Nearest *n)
{
	return n->found ? arena_printf(a, "; did you mean %s?", n->found) : "";
}

const char *nearest_of_list(Arena *a, const char *word, const char *list)
{
	Nearest near = {.word = word, .most = nearest_most(strlen(word))};
	for (size_t n; *list; list += n + strspn(list + n, ", ")) {
		n = strcspn(list, ",");
		nearest_offer(&near, arena_strndup(a, list, n));
	}
	return nearest_hint(a, &near);
}
