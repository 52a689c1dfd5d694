/* Rearranging a row-major tensor into a stored layout: the physical dimensions are walked from
 * slowest to fastest, so the result is written once, in order. For replaceable weights; the compiler has parts of the same (driver/pack.h). */
#include "runtime.h"

#include <string.h>

enum { MAX_DIMS = 64 };

typedef struct {
	size_t elem;
	uint32_t n;
	const WeftLayoutDim *layout;
	const int64_t *dim;
	int64_t stride[MAX_DIMS]; /* source elements per coordinate of physical dimension d */
	size_t block[MAX_DIMS];   /* bytes of one coordinate of physical dimension d */
	int64_t index[MAX_DIMS];  /* logical index so far */
} Plan;

#define GATHER(T)                                                                                  \
	for (int64_t i = 0; i < n; i++)                                                            \
	((T *)to)[i] = ((const T *)from)[i * stride]

static void gather_row(char *to, const char *from, size_t elem, int64_t n, int64_t stride)
{
	if (stride == 1)
		memcpy(to, from, (size_t)n * elem);
	else if (elem == 4)
		GATHER(uint32_t);
	else if (elem == 2)
		GATHER(uint16_t);
	else if (elem == 1)
		GATHER(uint8_t);
	else if (elem == 8)
		GATHER(uint64_t);
	else
		for (int64_t i = 0; i < n; i++)
			memcpy(to + (size_t)i * elem, from + (size_t)(i * stride) * elem, elem);
}

/* Coordinates of physical dimension d that lie inside the tensor. */
static int64_t valid(const Plan *p, uint32_t d)
{
	const WeftLayoutDim *l = &p->layout[d];
	int64_t left = p->dim[l->axis] - p->index[l->axis];
	int64_t n = left <= 0 ? 0 : (left + l->divisor - 1) / l->divisor;
	return n < l->extent ? n : l->extent;
}

static void place(Plan *p, uint32_t d, char *to, const char *from)
{
	const WeftLayoutDim *l = &p->layout[d];
	int64_t n = valid(p, d);
	if (d + 1 == p->n) {
		gather_row(to, from, p->elem, n, p->stride[d]);
	} else {
		for (int64_t c = 0; c < n; c++) {
			place(p, d + 1, to + (size_t)c * p->block[d],
			      from + (size_t)(c * p->stride[d]) * p->elem);
			p->index[l->axis] += l->divisor;
		}
		p->index[l->axis] -= n * l->divisor;
	}
	memset(to + (size_t)n * p->block[d], 0, (size_t)(l->padded - n) * p->block[d]);
}

void weft_relayout(void *to, const void *from, size_t elem, uint32_t rank, const int64_t *dim,
		   uint32_t nlayout, const WeftLayoutDim *layout)
{
	Plan p = {.elem = elem, .n = nlayout, .layout = layout, .dim = dim};
	int64_t stride[MAX_DIMS], numel = 1;
	if (rank > MAX_DIMS || nlayout > MAX_DIMS)
		return;
	for (uint32_t k = rank; k-- > 0; numel *= dim[k])
		stride[k] = numel;
	if (nlayout == 0) {
		memcpy(to, from, (size_t)numel * elem);
		return;
	}
	size_t block = elem;
	for (uint32_t d = nlayout; d-- > 0; block *= (size_t)layout[d].padded) {
		p.stride[d] = layout[d].divisor * stride[layout[d].axis];
		p.block[d] = block;
	}
	place(&p, 0, to, from);
}
