/* Private to the driver: a row-major tensor in the layout that kernels read, part by part. All parts together are what
 * weft_relayout (runtime/runtime.h) makes of it at once. */
#ifndef WEFT_DRIVER_PACK_H
#define WEFT_DRIVER_PACK_H

#include <stddef.h>

#include "ir/graph/graph.h"
#include "weft_model.h"

enum { MAX_LAYOUT = 2 * MAX_RANK };

typedef struct {
	const char *from;
	size_t elem;
	uint32_t rank, n; /* n: physical dimensions, slowest first; 0: the tensor's own order */
	int64_t dim[MAX_RANK];
	WeftLayoutDim layout[MAX_LAYOUT];
	int64_t stride[MAX_LAYOUT]; /* source elements per coordinate of physical dimension d */
	int64_t block[MAX_LAYOUT];  /* elements of the result, for the same */
	uint64_t count;             /* elements of the result */
} Packing;

/* The layout has at most MAX_LAYOUT dimensions, elements have 1, 2, 4, 8 or 16 bytes. */
Packing packing_of(const void *from, size_t elem, uint32_t rank, const int64_t *dim, uint32_t nlayout, const WeftLayoutDim *);
/* Elements first to first + n of the result. Any thread may. */
void pack_part(const Packing *, uint64_t first, uint64_t n, void *to);

#endif
