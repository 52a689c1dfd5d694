/* The one growable array: elements live in an arena, so a pointer to one dies at the next push. */
#ifndef WEFT_BASE_ARRAY_H
#define WEFT_BASE_ARRAY_H

#include <stdint.h>

#include "base/arena.h"

#define ARRAY(T)                                                                                   \
	struct {                                                                                   \
		T *data;                                                                           \
		uint32_t n, cap;                                                                   \
	}

/* Make room for one more element of `size` bytes; returns the (possibly moved) data. */
void *array_grow(Arena *, void *data, uint32_t n, uint32_t *cap, size_t size);

#define array_push(arena, a, ...)                                                                  \
	((a)->data = array_grow((arena), (a)->data, (a)->n, &(a)->cap,                             \
				sizeof(__typeof__(*(a)->data))),                                   \
	 (a)->data[(a)->n++] = (__VA_ARGS__))

#endif
