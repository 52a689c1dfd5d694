#include "base/array.h"

#include <string.h>

void *array_grow(Arena *arena, void *data, uint32_t n, uint32_t *cap, size_t size)
{
	if (n < *cap) {
		arena_found((char *)data + n * size, size);
		return data;
	}
	/* More than 2^32 elements: let the arena refuse it as out of memory. */
	size_t more = n ? (n > UINT32_MAX / 2 ? SIZE_MAX : (size_t)n * 2) : 8;
	void *grown = arena_calloc(arena, more, size);
	if (n)
		memcpy(grown, data, n * size);
	arena_lost((char *)grown + (n + 1) * size, (more - n - 1) * size);
	*cap = (uint32_t)more;
	return grown;
}
