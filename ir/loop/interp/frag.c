/* Statements on fragments, by the definition of their operations (frag_dot). */
#include <string.h>

#include "ir/loop/interp/priv.h"

/* A fragment in one thread. */
typedef struct {
	const LsData *d; /* its declaration */
	uint32_t bytes, elements;
	char *value;
	uint16_t *depth; /* by element; NULL: not asked for */
} Frag;

static Frag fragment(Exec *e, LFrag r, uint32_t thread)
{
	const LsData *d = loop_frag(e->f, r);
	Frag g = {.d = d, .elements = d->rows * d->cols};
	const size_t at = (size_t)thread * d->count + r.k;
	g.bytes = g.elements * dtype_size(d->dtype);
	g.value = e->var[r.of.i] + at * g.bytes;
	if (e->depth)
		g.depth = depth_of_var(e, r.of, d->count * g.elements) + at * g.elements;
	return g;
}

static void zero(const Frag *g)
{
	memset(g->value, 0, g->bytes);
	if (g->depth)
		memset(g->depth, 0, g->elements * sizeof *g->depth);
}

static bool move(Exec *e, const LsData *s, const Frag *g, uint32_t thread, int64_t offset,
		 int64_t stride)
{
	const uint32_t n = g->d->cols, size = dtype_size(g->d->dtype);
	for (uint32_t k = 0; k < g->d->rows; k++) {
		int64_t at;
		if (__builtin_mul_overflow(stride, (int64_t)k, &at) ||
		    __builtin_add_overflow(at, offset, &at))
			return loop_finding(&e->at, "row %u is beyond all memory", k);
		TRY(exec_row(e, s, thread, at, n, g->value + (size_t)k * n * size,
			     g->depth ? g->depth + (size_t)k * n : NULL));
	}
	return true;
}

/* Computes the chains of bf16: through half of the steps, their sum, and the addition to c.
 * Integers are exact. */
static void deepen(FragOp op, const Frag *c, const Frag *a, const Frag *b)
{
	const uint32_t steps = a->d->cols, group = frag_row(op)->group, n = c->d->cols;
	for (uint32_t k = 0; op == FRAG_TILE_BF16 && k < c->elements; k++) {
		uint16_t most = 0;
		for (uint32_t i = 0; i < steps; i++) {
			uint16_t x = a->depth[k / n * steps + i],
				 y = b->depth[i / group * group * n + k % n * group + i % group];
			most = x > most ? x : most;
			most = y > most ? y : most;
		}
		most = (uint16_t)(most + steps / group + 1);
		c->depth[k] = (uint16_t)((c->depth[k] > most ? c->depth[k] : most) + 1);
	}
}

static void dot(Exec *e, const LsData *s, uint32_t thread)
{
	const FragOp op = (FragOp)s->k;
	const Frag c = fragment(e, s->frag[0], thread), a = fragment(e, s->frag[1], thread),
		   b = fragment(e, s->frag[2], thread);
	frag_dot(op, c.d->rows, c.d->cols, a.d->cols, c.value, a.value, b.value);
	if (c.depth)
		deepen(op, &c, &a, &b);
}

bool exec_frag(Exec *e, const Active *a, const LsData *s)
{
	const int64_t *offset = s->offset.i ? exec_value(e, a, s->offset) : NULL,
		      *stride = s->y.i ? exec_value(e, a, s->y) : NULL;
	if ((s->offset.i && !offset) || (s->y.i && !stride))
		return false;
	if (s->kind == LS_FRAG && !e->var[s->v.i])
		e->var[s->v.i] = arena_alloc(e->at.in->arena, e->n * e->plan->bytes[s->v.i]);
	for (uint32_t t = 0; s->kind != LS_FRAG && t < e->n; t++) {
		if (!a->on[t])
			continue;
		const Frag g = fragment(e, s->frag[0], t);
		exec_locate(e, t);
		if (s->kind == LS_FRAG_DOT)
			dot(e, s, t);
		else if (s->kind == LS_FRAG_ZERO)
			zero(&g);
		else
			TRY(move(e, s, &g, t, offset[t], stride[t]));
	}
	return true;
}
