/* Rearranging a row-major tensor into a stored layout, in parts where several threads write: the
 * physical dimensions are walked from slowest to fastest, or, where all their coordinates lie
 * inside the tensor, in the tensor's order. For replaceable weights, and the compiler. */
#include "relayout.h"

#include <stdbool.h>
#include <string.h>

/* Whether all coordinates of physical dimension d lie inside the tensor, whatever the others
 * are. */
static bool is_whole(const WeftPacking *p, uint32_t d)
{
	int64_t last = 0;
	for (uint32_t k = 0; k < p->n; k++)
		if (p->layout[k].axis == p->layout[d].axis)
			last += (p->layout[k].extent - 1) * p->layout[k].divisor;
	return last < p->dim[p->layout[d].axis] && p->layout[d].padded == p->layout[d].extent;
}

WeftPacking weft_packing(const void *from, size_t elem, uint32_t rank, const int64_t *dim,
			 uint32_t nlayout, const WeftLayoutDim *layout)
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
	for (p.box = nlayout ? nlayout - 1 : 0; p.box && is_whole(&p, p.box - 1);)
		p.box--;
	return p;
}

/* Makes the last dimension's elements one where they lie together, as many as a wider element has
 * (pairs of halves, fours of bytes): elements first to first + *n are then those of the result,
 * counted anew. */
static void widen(WeftPacking *p, uint64_t *first, uint64_t *n)
{
	const uint32_t last = p->n - 1;
	const int64_t m = p->layout[last].extent;
	const size_t wide = p->elem * (size_t)m;
	if (last == 0 || p->stride[last] != 1 || (wide != 2 && wide != 4 && wide != 8) ||
	    (uintptr_t)p->from % wide || !is_whole(p, last) || (*first | *n) % (uint64_t)m)
		return;
	for (uint32_t d = 0; d < last; d++)
		if (p->stride[d] % m)
			return;
	for (uint32_t d = 0; d < last; d++) {
		p->stride[d] /= m;
		p->block[d] /= m;
	}
	p->elem = wide;
	p->n = last;
	p->box = p->box < last ? p->box : last - 1;
	while (p->box && is_whole(p, p->box - 1))
		p->box--;
	*first /= (uint64_t)m;
	*n /= (uint64_t)m;
}

/* ---- copying ---- */

static void copy(char *to, const char *from, size_t bytes)
{
	for (; bytes >= 16 && bytes <= 64; bytes -= 16, to += 16, from += 16)
		memcpy(to, from, 16); /* a short row is not worth a call */
	memcpy(to, from, bytes);
}

/* to[i] = from[i * stride] */
#define GATHER(T)                                                                                  \
	for (int64_t i = 0; i < n; i++)                                                            \
	((T *)to)[i] = ((const T *)from)[i * stride]

static void gather(char *to, const char *from, size_t elem, int64_t n, int64_t stride)
{
	if (stride == 1)
		copy(to, from, (size_t)n * elem);
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

/* ---- lines: rows of the last dimension ---- */

enum { LINES = 16 };

/* to[j][i] = from[j][i * far]; behind each padding elements that are zero. */
typedef struct {
	size_t elem;
	int64_t n, far, padding;
	uint32_t count;
	const char *from[LINES];
	char *to[LINES];
} Lines;

#if defined __GNUC__ && !defined __clang__ && __GNUC__ < 12
#define PICK(a, b, ...) __builtin_shuffle(a, b, (Four){__VA_ARGS__})
#else
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif

/* How many bytes before they are read the tensor's are asked for: there are more streams of them
 * than hardware follows. */
enum { AHEAD = 128 };

/* Neighbours in the tensor are elements of different lines: four of each of four lines are
 * exchanged in registers. Lines that are no neighbours, and what is left of n, element by element.
 * A line of a cache is used up before the next is read. */
#define WRITE_LINES(T)                                                                             \
	static void write_##T(const Lines *l)                                                      \
	{                                                                                          \
		typedef T Four __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)),      \
					      may_alias));                                         \
		const int64_t far = l->far;                                                        \
		for (int64_t i = 0; i < l->n; i += 4) {                                            \
			for (int64_t k = i; k < i + 4 && k < l->n; k++)                            \
				__builtin_prefetch(l->from[0] + k * far * (int64_t)sizeof(T) +     \
						   AHEAD);                                         \
			for (uint32_t j = 0; j < l->count; j += 4) {                               \
				const char *const *const from = l->from + j;                       \
				char *const *const to = l->to + j;                                 \
				if (i + 4 <= l->n &&                                               \
				    are_neighbours(from, l->count - j, sizeof(T))) {               \
					const T *f = (const T *)(const void *)from[0] + i * far;   \
					const Four a = *(const Four *)f,                           \
						   b = *(const Four *)(f + far);                   \
					const Four c = *(const Four *)(f + 2 * far),               \
						   d = *(const Four *)(f + 3 * far);               \
					const Four p = PICK(a, b, 0, 4, 1, 5),                     \
						   q = PICK(c, d, 0, 4, 1, 5);                     \
					const Four r = PICK(a, b, 2, 6, 3, 7),                     \
						   s = PICK(c, d, 2, 6, 3, 7);                     \
					*(Four *)((T *)(void *)to[0] + i) =                        \
						PICK(p, q, 0, 1, 4, 5);                            \
					*(Four *)((T *)(void *)to[1] + i) =                        \
						PICK(p, q, 2, 3, 6, 7);                            \
					*(Four *)((T *)(void *)to[2] + i) =                        \
						PICK(r, s, 0, 1, 4, 5);                            \
					*(Four *)((T *)(void *)to[3] + i) =                        \
						PICK(r, s, 2, 3, 6, 7);                            \
					continue;                                                  \
				}                                                                  \
				for (uint32_t c = 0; c < 4 && j + c < l->count; c++)               \
					for (int64_t k = i; k < i + 4 && k < l->n; k++)            \
						((T *)(void *)to[c])[k] = ((                       \
							const T *)(const void *)from[c])[k * far]; \
			}                                                                          \
		}                                                                                  \
	}

static inline bool are_neighbours(const char *const *from, uint32_t count, size_t elem)
{
	return count >= 4 && from[1] == from[0] + elem && from[2] == from[0] + 2 * elem &&
	       from[3] == from[0] + 3 * elem;
}

WRITE_LINES(uint8_t)
WRITE_LINES(uint16_t)
WRITE_LINES(uint32_t)
WRITE_LINES(uint64_t)
#undef WRITE_LINES

static void write_lines(Lines *l)
{
	if (l->far != 1 && l->elem == 4)
		write_uint32_t(l);
	else if (l->far != 1 && l->elem == 2)
		write_uint16_t(l);
	else if (l->far != 1 && l->elem == 1)
		write_uint8_t(l);
	else if (l->far != 1 && l->elem == 8)
		write_uint64_t(l);
	else
		for (uint32_t j = 0; j < l->count; j++)
			gather(l->to[j], l->from[j], l->elem, l->n, l->far);
	for (uint32_t j = 0; l->padding && j < l->count; j++)
		memset(l->to[j] + (size_t)l->n * l->elem, 0, (size_t)l->padding * l->elem);
	l->count = 0;
}

/* A dimension of a box: bytes from one coordinate to the next in the tensor and in the result. */
typedef struct {
	int64_t extent, from, to;
} Side;

/* Writes all lines of a box of n > 0 sides, the last one slowest; some are left in l. */
static void write_box(Lines *l, const Side *side, uint32_t n, const char *from, char *to)
{
	const Side s = side[n - 1];
	for (int64_t c = 0; c < s.extent; c++, from += s.from, to += s.to)
		if (n > 1) {
			write_box(l, side, n - 1, from, to);
		} else {
			l->from[l->count] = from;
			l->to[l->count++] = to;
			if (l->count == LINES)
				write_lines(l);
		}
}

/* ---- walking ---- */

/* Where the walk is: from points at the element at the coordinates so far, index[axis] is the
 * logical index of it. */
typedef struct {
	const WeftPacking *p;
	int64_t index[WEFT_MAX_RANK];
} Walk;

/* Returns the number of coordinates of physical dimension d that lie inside the tensor. */
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

/* Writes physical dimensions d and below, whole. */
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

/* Writes n coordinates of dimension d, which is one of the box. In the tensor's order: what lies
 * together is read together, else a line of a cache is fetched for each of its elements, and lines
 * that are a power of two apart share few places there. */
static void box(Walk *w, uint32_t d, char *to, const char *from, int64_t n)
{
	const WeftPacking *p = w->p;
	Side side[WEFT_MAX_LAYOUT];
	Lines l = {.elem = p->elem, .n = valid(w, p->n - 1), .far = p->stride[p->n - 1]};
	uint32_t sides = 0;
	for (uint32_t e = d; e + 1 < p->n; e++) {
		const Side s = {e == d ? n : p->layout[e].extent, p->stride[e] * (int64_t)p->elem,
				p->block[e] * (int64_t)p->elem};
		uint32_t k = sides++;
		for (; k && side[k - 1].from > s.from; k--)
			side[k] = side[k - 1];
		side[k] = s;
	}
	l.padding = p->layout[p->n - 1].padded - l.n;
	write_box(&l, side, sides, from, to);
	write_lines(&l);
}

/* Writes coordinates begin to end - 1 of dimension d, all of them valid; from and to are those of
 * coordinate begin. */
static void rows(Walk *w, uint32_t d, char *to, const char *from, int64_t begin, int64_t end)
{
	const WeftPacking *p = w->p;
	const WeftLayoutDim *l = &p->layout[d];
	if (d >= p->box) {
		box(w, d, to, from, end - begin);
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

/* Writes elements first to first + n - 1 of coordinate c of dimension d. */
static void within_row(Walk *w, uint32_t d, char *to, const char *from, int64_t c, int64_t first,
		       int64_t n)
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

/* Writes elements first to first + n - 1, n > 0, of what place writes: the end of a row, whole
 * rows, the beginning of one. */
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

void weft_pack_part(const WeftPacking *packing, uint64_t first, uint64_t n, void *to)
{
	WeftPacking p = *packing;
	if (!n)
		return;
	if (!p.n) {
		memcpy(to, p.from + first * p.elem, n * p.elem);
		return;
	}
	widen(&p, &first, &n);
	place_part(&(Walk){.p = &p}, 0, to, p.from, (int64_t)first, (int64_t)n);
}
