/* Rearranging a row-major tensor into a stored layout: the physical dimensions are walked from slowest to fastest, so that the
 * result is written once, in order, in parts where several threads write. For replaceable weights, and the compiler. */
#include "relayout.h"

#include <stdbool.h>
#include <string.h>

WeftPacking weft_packing(const void *from, size_t elem, uint32_t rank, const int64_t *dim, uint32_t nlayout, const WeftLayoutDim *layout)
{
	WeftPacking p = {.from = from, .elem = elem, .rank = rank, .n = nlayout};
	int64_t stride[WEFT_MAX_RANK], numel = 1, block = 1;
	for (uint32_t k = rank; k-- > 0; numel *= dim[k]) {
		stride[k] = numel;
		p.dim[k] = dim[k];
	}
	for (uint32_t d = nlayout; d-- > 0; block *= layout[d].padded) {
		p.layout[d] = layout[d];
		p.stride[d] = layout[d].divisor * stride[layout[d].axis];
		p.block[d] = block;
	}
	p.count = (uint64_t)(nlayout ? block : numel);
	return p;
}

/* ---- copying ---- */

/* to[i] = from[i * stride]; a row of few elements is not worth a call of memcpy. */
#define GATHER(T)                                                                                                      \
	for (int64_t i = 0; i < n; i++)                                                                                \
	((T *)to)[i] = ((const T *)from)[i * stride]

static void gather(char *to, const char *from, size_t elem, int64_t n, int64_t stride)
{
	if (stride == 1 && n > 16)
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

/* to[c * pitch + i] = from[c * near + i * far], i < n: what lies near is read together, else each element of a column costs a
 * cache line, and columns that are a power of two apart share a few. */
#define TRANSPOSE(T)                                                                                                   \
	for (int64_t i = 0; i < n; i++)                                                                                \
		for (int64_t c = 0; c < rows; c++)                                                                     \
	((T *)to)[c * pitch + i] = ((const T *)from)[c * near + i * far]

typedef struct {
	int64_t rows, n, pitch, near, far;
} Tile;

static void transpose_tile(char *to, const char *from, size_t elem, Tile t)
{
	const int64_t rows = t.rows, n = t.n, pitch = t.pitch, near = t.near, far = t.far;
	if (elem == 4)
		TRANSPOSE(uint32_t);
	else if (elem == 2)
		TRANSPOSE(uint16_t);
	else if (elem == 1)
		TRANSPOSE(uint8_t);
	else if (elem == 8)
		TRANSPOSE(uint64_t);
	else
		for (int64_t c = 0; c < rows; c++)
			gather(to + (size_t)(c * pitch) * elem, from + (size_t)(c * near) * elem, elem, n, far);
}

/* ---- walking ---- */

/* Where the walk is: from points at the element at the coordinates so far, index[axis] is the logical index of it. */
typedef struct {
	const WeftPacking *p;
	int64_t index[WEFT_MAX_RANK];
} Walk;

/* Coordinates of physical dimension d that lie inside the tensor. */
static int64_t valid(const Walk *w, uint32_t d)
{
	const WeftLayoutDim *l = &w->p->layout[d];
	int64_t left = w->p->dim[l->axis] - w->index[l->axis];
	int64_t n = left <= 0 ? 0 : (left + l->divisor - 1) / l->divisor;
	return n < l->extent ? n : l->extent;
}

static void clear(const WeftPacking *p, char *to, int64_t n)
{
	memset(to, 0, (size_t)n * p->elem);
}

static void rows(Walk *, uint32_t d, char *to, const char *from, int64_t begin, int64_t end);

/* Physical dimensions d and below, whole. */
static void place(Walk *w, uint32_t d, char *to, const char *from)
{
	const WeftPacking *p = w->p;
	int64_t n = valid(w, d);
	if (d + 1 == p->n)
		gather(to, from, p->elem, n, p->stride[d]);
	else
		rows(w, d, to, from, 0, n);
	clear(p, to + (size_t)(n * p->block[d]) * p->elem, (p->layout[d].padded - n) * p->block[d]);
}

/* The last but one dimension is near in memory, the last one far, and neither decides how much there is of the other. */
static bool is_transposed(const WeftPacking *p, uint32_t d)
{
	return d + 2 == p->n && p->stride[d] < p->stride[d + 1] && p->layout[d].axis != p->layout[d + 1].axis;
}

static void transpose(Walk *w, uint32_t d, char *to, const char *from, int64_t n)
{
	enum { ROWS = 32 };
	const WeftPacking *p = w->p;
	Tile t = {.n = valid(w, d + 1), .pitch = p->block[d], .near = p->stride[d], .far = p->stride[d + 1]};
	for (int64_t c = 0; c < n; c += ROWS) {
		char *row = to + (size_t)(c * t.pitch) * p->elem;
		t.rows = n - c < ROWS ? n - c : ROWS;
		transpose_tile(row, from + (size_t)(c * t.near) * p->elem, p->elem, t);
		for (int64_t k = 0; t.n < t.pitch && k < t.rows; k++)
			clear(p, row + (size_t)(k * t.pitch + t.n) * p->elem, t.pitch - t.n);
	}
}

/* Coordinates begin to end of dimension d, all of them valid; from and to are those of coordinate begin. */
static void rows(Walk *w, uint32_t d, char *to, const char *from, int64_t begin, int64_t end)
{
	const WeftPacking *p = w->p;
	const WeftLayoutDim *l = &p->layout[d];
	if (is_transposed(p, d)) {
		transpose(w, d, to, from, end - begin);
		return;
	}
	w->index[l->axis] += begin * l->divisor;
	for (int64_t c = begin; c < end; c++) {
		place(w, d + 1, to, from);
		w->index[l->axis] += l->divisor;
		from += (size_t)p->stride[d] * p->elem;
		to += (size_t)p->block[d] * p->elem;
	}
	w->index[l->axis] -= end * l->divisor;
}

static void place_part(Walk *w, uint32_t d, char *to, const char *from, int64_t first, int64_t n);

/* Elements first to first + n of coordinate c of dimension d. */
static void within_row(Walk *w, uint32_t d, char *to, const char *from, int64_t c, int64_t first, int64_t n)
{
	const WeftLayoutDim *l = &w->p->layout[d];
	if (c >= valid(w, d)) {
		clear(w->p, to, n);
		return;
	}
	w->index[l->axis] += c * l->divisor;
	place_part(w, d + 1, to, from + (size_t)(c * w->p->stride[d]) * w->p->elem, first, n);
	w->index[l->axis] -= c * l->divisor;
}

/* Elements first to first + n, n > 0, of what place writes: the end of a row, whole rows, the beginning of one. */
static void place_part(Walk *w, uint32_t d, char *to, const char *from, int64_t first, int64_t n)
{
	const WeftPacking *p = w->p;
	int64_t block = p->block[d], there = valid(w, d), c = first / block;
	if (first % block) {
		int64_t k = block - first % block < n ? block - first % block : n;
		within_row(w, d, to, from, c, first % block, k);
		to += (size_t)k * p->elem;
		n -= k;
		c++;
	}
	int64_t whole = n / block, inside = there - c < whole ? there - c : whole;
	inside = inside < 0 ? 0 : inside;
	const char *row = from + (size_t)(inside ? c * p->stride[d] : 0) * p->elem;
	if (d + 1 == p->n)
		gather(to, row, p->elem, inside, p->stride[d]);
	else
		rows(w, d, to, row, c, c + inside);
	clear(p, to + (size_t)(inside * block) * p->elem, (whole - inside) * block);
	to += (size_t)(whole * block) * p->elem;
	if (n % block)
		within_row(w, d, to, from, c + whole, 0, n % block);
}

void weft_pack_part(const WeftPacking *p, uint64_t first, uint64_t n, void *to)
{
	Walk w = {.p = p};
	if (!n)
		return;
	if (p->n)
		place_part(&w, 0, to, p->from, (int64_t)first, (int64_t)n);
	else
		memcpy(to, p->from + first * p->elem, n * p->elem);
}
