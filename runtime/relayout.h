/* Packing: rearranges a row-major tensor into the layout that kernels read, piece by piece. */
#ifndef WEFT_RUNTIME_RELAYOUT_H
#define WEFT_RUNTIME_RELAYOUT_H

#include <stddef.h>

#include "weft_model.h"

enum { WEFT_MAX_RANK = 12, WEFT_MAX_LAYOUT = 2 * WEFT_MAX_RANK };

typedef struct {
	const char *from;
	size_t elem;
	uint32_t rank, n; /* n: dimensions of the layout, slowest first; 0: row-major */
	uint32_t box;     /* coordinates of dimensions box to n - 2 are always inside of the
	                     tensor */
	int64_t dim[WEFT_MAX_RANK];
	WeftLayoutDim layout[WEFT_MAX_LAYOUT];
	int64_t stride[WEFT_MAX_LAYOUT]; /* source elements for a step of dimension d */
	int64_t block[WEFT_MAX_LAYOUT];  /* result elements for a step of dimension d */
	uint64_t count;                  /* elements of the result */
} WeftPacking;

/* Describes a packing: at most WEFT_MAX_LAYOUT dimensions, elements of 1, 2, 4, 8 or 16 bytes. */
WeftPacking weft_packing(const void *from, size_t elem, uint32_t rank, const int64_t *dim, uint32_t nlayout, const WeftLayoutDim *);
/* Writes the elements first .. first + n - 1 of the result; padding is zero. Any thread may
 * call. */
void weft_pack_part(const WeftPacking *, uint64_t first, uint64_t n, void *to);

#endif
