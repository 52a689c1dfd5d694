/* Strided walks and attribute values for the evaluation of structural primitives. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ops/prim/priv.h"

/* memcpy of a constant size is one move, and says nothing about the element type. */
#define STRIP(bytes)                                                                               \
	for (int64_t i = 0; i < n; i++)                                                            \
		memcpy(d + i * ds * (bytes), s + i * ss * (bytes), (bytes));

/* Repeats the element at s, n > 0 times: what is there is doubled. */
static void repeat(char *d, const char *s, int64_t n, size_t size)
{
	size_t all = (size_t)n * size, have = size;
	memcpy(d, s, size);
	for (; have < all; have += have)
		memcpy(d + have, d, have < all - have ? have : all - have);
}

static void copy_strip(char *d, int64_t ds, const char *s, int64_t ss, int64_t n, size_t size)
{
	if (ds == 1 && ss == 1) {
		memcpy(d, s, (size_t)n * size);
		return;
	}
	if (ds == 1 && ss == 0 && n > 0) {
		repeat(d, s, n, size);
		return;
	}
	switch (size) {
	case 1: STRIP(1) break;
	case 2: STRIP(2) break;
	case 4: STRIP(4) break;
	case 8: STRIP(8) break;
	default: STRIP(16) break;
	}
}

/* Returns the same walk by as few dimensions as can be: neighbours that are one in both arrays
 * are one, and strips become long. */
static Walk merged(const Walk *w)
{
	Walk m = {0};
	for (uint32_t k = 0; k < w->rank; k++) {
		const uint32_t last = m.rank - 1;
		if (w->dim[k] == 1)
			continue;
		if (m.rank && m.dst[last] == w->dst[k] * w->dim[k] &&
		    m.src[last] == w->src[k] * w->dim[k]) {
			m.dim[last] *= w->dim[k];
			m.dst[last] = w->dst[k];
			m.src[last] = w->src[k];
			continue;
		}
		m.dim[m.rank] = w->dim[k];
		m.dst[m.rank] = w->dst[k];
		m.src[m.rank++] = w->src[k];
	}
	return m;
}

void walk_copy(const Walk *whole, void *dst, const void *src, size_t size)
{
	for (uint32_t k = 0; k < whole->rank; k++) {
		if (whole->dim[k] == 0)
			return;
	}
	const Walk m = merged(whole), *w = &m;
	char *d = dst;
	const char *s = src;
	if (w->rank == 0) {
		memcpy(d, s, size);
		return;
	}
	uint32_t last = w->rank - 1, k;
	int64_t at[MAX_RANK + 1] = {0}, bytes = (int64_t)size;
	do {
		copy_strip(d, w->dst[last], s, w->src[last], w->dim[last], size);
		for (k = last; k > 0; k--) {
			d += w->dst[k - 1] * bytes;
			s += w->src[k - 1] * bytes;
			if (++at[k - 1] < w->dim[k - 1])
				break;
			at[k - 1] = 0;
			d -= w->dst[k - 1] * w->dim[k - 1] * bytes;
			s -= w->src[k - 1] * w->dim[k - 1] * bytes;
		}
	} while (k > 0);
}

void walk_strides(uint32_t rank, const int64_t *dim, int64_t *stride)
{
	int64_t step = 1;
	for (uint32_t k = rank; k-- > 0;) {
		stride[k] = step;
		step *= dim[k];
	}
}

Tensor eval_permuted(EvalCtx *e, const Tensor *t, const uint32_t *perm)
{
	Walk w = {.rank = t->rank};
	int64_t stride[MAX_RANK];
	Tensor r = {.dtype = t->dtype, .rank = t->rank};
	walk_strides(t->rank, t->dim, stride);
	for (uint32_t k = 0; k < t->rank; k++) {
		r.dim[k] = w.dim[k] = t->dim[perm[k]];
		w.src[k] = stride[perm[k]];
	}
	walk_strides(r.rank, r.dim, w.dst);
	r.data = arena_alloc(e->arena, tensor_bytes(t));
	walk_copy(&w, r.data, t->data, dtype_size(t->dtype));
	return r;
}

void perm_dim_last(uint32_t rank, uint32_t dim, uint32_t *perm)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < rank; k++) {
		if (k != dim)
			perm[n++] = k;
	}
	perm[n] = dim;
}

void perm_inverse(uint32_t rank, const uint32_t *perm, uint32_t *inverse)
{
	for (uint32_t k = 0; k < rank; k++)
		inverse[perm[k]] = k;
}

void copy_elems(Tensor *dst, const Tensor *src)
{
	memcpy(dst->data, src->data, tensor_bytes(src));
}

bool eval_ints(EvalCtx *e, Graph *g, Node n, const char *name, int64_t *v, uint32_t *count)
{
	const Sym *s = node_ints(g, n, name, count);
	return eval_syms(e, s, *count, v);
}

bool eval_int(EvalCtx *e, Graph *g, Node n, const char *name, int64_t *v)
{
	return eval_sym(e, node_sym(g, n, name), v);
}

bool eval_error(EvalCtx *e, Graph *g, Node n, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return ctx_error(e->ctx, node_where(g, n), "%s: %s", op_name(node_op(g, n)), text);
}
