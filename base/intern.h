/* The one open-addressing table: byte strings to dense ids 1, 2, ... in order of first
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
/* The id of the key; copies it into the arena when new. *fresh (may be NULL) says whether it
 * was. */
uint32_t intern(Intern *, const void *key, size_t len, bool *fresh);
/* The id, or 0 when absent. */
uint32_t intern_find(const Intern *, const void *key, size_t len);
/* The canonical copy of a NUL-terminated string (interned with its NUL). */
const char *intern_str(Intern *, const char *s);
const void *intern_key(const Intern *, uint32_t id);

#endif
