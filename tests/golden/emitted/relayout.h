/* A row-major tensor in the layout that kernels read, part by part. */
#ifndef WEFT_RUNTIME_RELAYOUT_H
#define WEFT_RUNTIME_RELAYOUT_H

#include <stddef.h>

#include "weft_model.h"

enum { WEFT_MAX_RANK = 12, WEFT_MAX_LAYOUT = 2 * WEFT_MAX_RANK };

typedef struct {
	const char *from;
	size_t elem;
	uint32_t rank, n; /* n: physical dimensions, slowest first; 0: the tensor's own order */
	uint32_t box;     /* of dimensions box to n - 2 all coordinates lie inside the tensor */
	int64_t dim[WEFT_MAX_RANK];
	WeftLayoutDim layout[WEFT_MAX_LAYOUT];
	int64_t stride[WEFT_MAX_LAYOUT]; /* source elements per coordinate of physical dimension
	                                    d */
	int64_t block[WEFT_MAX_LAYOUT];  /* elements of the result, for the same */
	uint64_t count;                  /* elements of the result */
} WeftPacking;

/* At most WEFT_MAX_LAYOUT dimensions; elements of 1, 2, 4, 8 or 16 bytes. */
WeftPacking weft_packing(const void *from, size_t elem, uint32_t rank, const int64_t *dim, uint32_t nlayout, const WeftLayoutDim *);
/* Elements first to first + n of the result; padding is zero. Any thread may. */
void weft_pack_part(const WeftPacking *, uint64_t first, uint64_t n, void *to);

#endif
