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

/* Makes the table empty: call it first. The table's memory comes from the arena. */
void intern_init(Intern *, Arena *);
/* Returns the id of the key of len < 2^32 bytes. A new key gets the next id, and the table keeps a
 * copy of it. Sets *fresh to whether the key is new; fresh may be NULL. */
uint32_t intern(Intern *, const void *key, size_t len, bool *fresh);
/* Returns the id of the key of len bytes, or 0 if the key is not in the table. */
uint32_t intern_find(const Intern *, const void *key, size_t len);
/* Returns the table's copy of the NUL-terminated string s, and adds s if it is new: equal strings
 * have equal pointers. The key of a string includes its NUL. */
const char *intern_str(Intern *, const char *s);
/* Returns the table's copy of the key with this id, or NULL for id 0. */
const void *intern_key(const Intern *, uint32_t id);

#endif
