/* The growable array. Elements live in an arena; a pointer to an element is invalid after the next
 * push. An array of zeros is empty. Nothing is freed before the arena is. */
#ifndef WEFT_BASE_ARRAY_H
#define WEFT_BASE_ARRAY_H

#include <stdint.h>

#include "base/arena.h"

#define ARRAY(T)                                                                                   \
	struct {                                                                                   \
		T *data;                                                                           \
		uint32_t n, cap;                                                                   \
	}

/* Makes room for one more element, whose contents are unspecified, behind the n elements at
 * `data` (of `size` bytes each, room for *cap of them; NULL if *cap is 0). Returns the data:
 * `data`, or a larger copy in the arena, whose room *cap then is. For array_push. */
void *array_grow(Arena *, void *data, uint32_t n, uint32_t *cap, size_t size);

/* Appends an element: array_push(arena, &list, value). The list must always grow in the same
 * arena. */
#define array_push(arena, a, ...)                                                                  \
	((a)->data = array_grow((arena), (a)->data, (a)->n, &(a)->cap,                             \
				sizeof(__typeof__(*(a)->data))),                                   \
	 (a)->data[(a)->n++] = (__VA_ARGS__))

#endif
