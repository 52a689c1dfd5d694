/* Which of many words was meant by one that is not among them. */
#ifndef WEFT_BASE_NEAREST_H
#define WEFT_BASE_NEAREST_H

#include <stdint.h>

#include "base/arena.h"

/* The nearest of the words that were offered. Begin with zeros but word and most. */
typedef struct {
	const char *word, *found; /* found NULL: none is near */
	uint32_t most;            /* edits at most */
	uint32_t edits;           /* that make the one of the other */
} Nearest;

/* Offers a word, which is not copied. An edit inserts, removes or replaces a letter, or exchanges
 * two neighbours. */
void nearest_offer(Nearest *, const char *word);
/* Returns what nearest_hint does of the words of a list, in which ", " stands between them. */
const char *nearest_of_list(Arena *, const char *word, const char *list);
/* Returns the edits that a word of that many letters may have: few where it is short. */
uint32_t nearest_most(size_t letters);
/* Returns "; did you mean WORD?", in the arena; "" if none is near. */
const char *nearest_hint(Arena *, const Nearest *);

#endif
