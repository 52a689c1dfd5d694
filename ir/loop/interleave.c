/* Independent sequences of statements, in turn.
 *
 *   a = load, b = f(a), store b; c = load, d = f(c), store d      becomes
 *   a = load, c = load, b = f(a), d = f(c), store b, store d
 *
 * A processor looks at some hundred operations that wait: of long chains, one behind the other, it
 * sees few. */
#include "ir/loop/loop.h"

#include <string.h>

/* What waits: pending[v] says that variable v is still to be set. */
typedef struct {
	const LoopFn *f;
	bool *pending;
	uint32_t *met, number; /* met[e]: the number of the last statement whose look met e */
	bool waits;
} Waiting;

static void look(void *data, Lx x)
{
	Waiting *w = data;
	if (!x.i || w->waits || w->met[x.i] == w->number)
		return;
	w->met[x.i] = w->number;
	const LxData *d = &w->f->lx.data[x.i];
	w->waits = d->kind == LX_VAR && w->pending[d->u.v.i];
	for (uint32_t k = 0; k < d->nin; k++)
		look(w, d->in[k]);
}

static const LsData *at(const LoopFn *f, uint32_t stmt)
{
	return &f->ls.data[stmt];
}

static bool is_ready(Waiting *w, uint32_t stmt)
{
	w->waits = false;
	w->number++;
	ls_visit(w->f, at(w->f, stmt), look, w);
	return !w->waits;
}

static bool is_simple(const LsData *s)
{
	return s->kind == LS_LET || s->kind == LS_LOAD || s->kind == LS_STORE;
}

uint32_t ls_place(const LoopFn *f)
{
	return f->block.data[f->open.data[f->open.n - 1].i].stmt.n;
}

void ls_interleave(LoopFn *f, const uint32_t *from, uint32_t n)
{
	uint32_t *stmt = f->block.data[f->open.data[f->open.n - 1].i].stmt.data;
	Arena *arena = f->ir->ctx->scratch;
	const uint32_t count = from[n] - from[0];
	uint32_t *old = ARENA_ARRAY(arena, uint32_t, count + 1),
		 *next = ARENA_ARRAY(arena, uint32_t, n);
	Waiting w = {.f = f,
		     .pending = ARENA_ARRAY(arena, bool, f->lv.n),
		     .met = ARENA_ARRAY(arena, uint32_t, f->lx.n)};
	for (uint32_t k = 0; k < count; k++) {
		const LsData *s = at(f, stmt[from[0] + k]);
		if (!is_simple(s))
			return;
		old[k] = stmt[from[0] + k];
		w.pending[s->v.i] |= s->kind != LS_STORE;
	}
	memcpy(next, from, n * sizeof *next);
	for (uint32_t done = 0; done < count;) /* the first of the old order that is left is
	                                          ready */
		for (uint32_t k = 0; k < n; k++) {
			const uint32_t s = next[k] < from[k + 1] ? old[next[k] - from[0]] : 0;
			if (next[k] == from[k + 1] || !is_ready(&w, s))
				continue;
			if (at(f, s)->kind != LS_STORE)
				w.pending[at(f, s)->v.i] = false;
			stmt[from[0] + done++] = s;
			next[k]++;
		}
}
