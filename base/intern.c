#include "base/intern.h"

#include <string.h>

#include "base/hash.h"

enum { FIRST_SLOTS = 64 };

void intern_init(Intern *t, Arena *arena)
{
	*t = (Intern){.arena = arena};
}

/* Returns the slot that holds the key, or the empty slot where the key belongs. */
static uint32_t *probe(const Intern *t, const void *key, size_t len, uint64_t hash)
{
	uint32_t mask = t->nslot - 1;
	for (uint32_t at = (uint32_t)hash & mask;; at = (at + 1) & mask) {
		uint32_t id = t->slot[at];
		if (!id)
			return &t->slot[at];
		const InternEntry *e = &t->entry.data[id - 1];
		if (e->hash == hash && e->len == len && (!len || !memcmp(e->key, key, len)))
			return &t->slot[at];
	}
}

static void rehash(Intern *t)
{
	uint32_t nslot = t->nslot ? t->nslot * 2 : FIRST_SLOTS;
	uint32_t *slot = ARENA_ARRAY(t->arena, uint32_t, nslot);
	for (uint32_t id = 1; id <= t->entry.n; id++) {
		uint32_t at = (uint32_t)t->entry.data[id - 1].hash & (nslot - 1);
		while (slot[at])
			at = (at + 1) & (nslot - 1);
		slot[at] = id;
	}
	t->slot = slot;
	t->nslot = nslot;
}

uint32_t intern(Intern *t, const void *key, size_t len, bool *fresh)
{
	if (t->entry.n >= t->nslot / 2)
		rehash(t);
	uint64_t hash = hash_bytes(key, len, 0);
	uint32_t *slot = probe(t, key, len, hash);
	if (fresh)
		*fresh = !*slot;
	if (*slot)
		return *slot;
	const void *copy = arena_dup(t->arena, key, len);
	array_push(t->arena, &t->entry, (InternEntry){copy, (uint32_t)len, hash});
	return *slot = t->entry.n;
}

uint32_t intern_find(const Intern *t, const void *key, size_t len)
{
	return t->nslot ? *probe(t, key, len, hash_bytes(key, len, 0)) : 0;
}

const char *intern_str(Intern *t, const char *s)
{
	return intern_key(t, intern(t, s, strlen(s) + 1, NULL));
}

const void *intern_key(const Intern *t, uint32_t id)
{
	return id ? t->entry.data[id - 1].key : NULL;
}
