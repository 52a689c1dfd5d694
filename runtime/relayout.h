/* Packing: rearranges a row-major tensor into a layout (WeftLayoutDim, weft_model.h), as kernels
 * read it, piece by piece. */
#ifndef WEFT_RUNTIME_RELAYOUT_H
#define WEFT_RUNTIME_RELAYOUT_H

#include <stddef.h>

#include "weft_model.h"

enum { WEFT_MAX_RANK = 12, WEFT_MAX_LAYOUT = 2 * WEFT_MAX_RANK };

/* A packing of one tensor; made by weft_packing. */
typedef struct {
	const char *from; /* the tensor */
	size_t elem;      /* bytes of an element */
	uint32_t rank, n; /* n: dimensions of the layout, slowest first; 0: row-major */
	uint32_t box;     /* coordinates of dimensions box to n - 2 are always inside of the
	                     tensor */
	int64_t dim[WEFT_MAX_RANK];
	WeftLayoutDim layout[WEFT_MAX_LAYOUT];
	int64_t stride[WEFT_MAX_LAYOUT]; /* source elements for a step of dimension d */
	int64_t block[WEFT_MAX_LAYOUT];  /* result elements for a step of dimension d */
	uint64_t count;                  /* elements of the result */
} WeftPacking;

/* Describes the packing of a row-major tensor `from` of extents dim[rank], with elements of `elem`
 * bytes (1, 2, 4, 8 or 16), into layout[nlayout]; nlayout 0: row-major. rank and nlayout are at
 * most WEFT_MAX_RANK and WEFT_MAX_LAYOUT. The packing refers to `from`, and copies the rest.
 * `count` of the result is the number of elements of the packed tensor, padding included. */
WeftPacking weft_packing(const void *from, size_t elem, uint32_t rank, const int64_t *dim,
			 uint32_t nlayout, const WeftLayoutDim *layout);
/* Writes the elements first .. first + n - 1 of the packed tensor, at most `count` of which there
 * are, to to[0], to[1], ...; padding is zero. Any thread may call, several at the same time. */
void weft_pack_part(const WeftPacking *, uint64_t first, uint64_t n, void *to);

#endif
