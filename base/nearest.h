/* Which of many words was meant by one that is not among them. */
#ifndef WEFT_BASE_NEAREST_H
#define WEFT_BASE_NEAREST_H

#include <stdint.h>

/* The nearest of the words that were offered. Begin with zeros but word and most. */
typedef struct {
	const char *word, *found; /* found NULL: none is near */
	uint32_t most;            /* edits at most */
	uint32_t edits;           /* that make the one of the other */
} Nearest;

/* Offers a word, which is not copied. An edit inserts, removes or replaces a letter, or exchanges
 * two neighbours. */
void nearest_offer(Nearest *, const char *word);

#endif
