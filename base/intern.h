/* The hash table (open addressing): byte strings to ids 1, 2, ... in the order of first
 * insertion. */
#ifndef WEFT_BASE_INTERN_H
#define WEFT_BASE_INTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

typedef struct {
	const void *key; /* in the arena */
	uint32_t len;
	uint64_t hash;
} InternEntry;

typedef struct {
	Arena *arena;
	uint32_t *slot; /* id or 0 */
	uint32_t nslot;
	ARRAY(InternEntry) entry; /* entry.data[id - 1] */
} Intern;

void intern_init(Intern *, Arena *);
/* Returns the id of the key, and adds a copy of a new key. *fresh: whether the key is new; may be
 * NULL. */
uint32_t intern(Intern *, const void *key, size_t len, bool *fresh);
/* Returns the id, or 0 if the key was not added. */
uint32_t intern_find(const Intern *, const void *key, size_t len);
/* Returns the one copy of a NUL-terminated string in the table: equal strings have equal
 * pointers. */
const char *intern_str(Intern *, const char *s);
const void *intern_key(const Intern *, uint32_t id);

#endif
