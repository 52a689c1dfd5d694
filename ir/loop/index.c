/* Which values of a loop function are index arithmetic, and what is known of their operands. */
#include <string.h>

#include "ir/loop/loop.h"

bool loop_is_index(LoopIndex *n, Lx x)
{
	const LxData *d = &n->f->lx.data[x.i];
	if (n->index[x.i])
		return n->index[x.i] == 1;
	bool ok = d->type.dtype == DT_i64 && d->type.lanes == 1;
	if (d->kind == LX_VAR)
		ok = ok && !n->data[d->u.v.i];
	else if (d->kind == LX_SC)
		for (uint32_t k = d->sc == SC_select ? 1 : 0; ok && k < d->nin; k++)
			ok = loop_is_index(n, d->in[k]);
	else
		ok = ok && (d->kind == LX_INT || d->kind == LX_PARAM || d->kind == LX_THREAD);
	n->index[x.i] = ok ? 1 : 2;
	return ok;
}

unsigned loop_known(LoopIndex *n, Lx x)
{
	const LxData *d = &n->f->lx.data[x.i];
	if (!loop_is_index(n, x))
		return 0;
	for (uint32_t k = 0; k < d->nin; k++)
		if (!lx_nonneg(n->f, d->in[k]))
			return KNOWN_INDEX;
	return KNOWN_INDEX | KNOWN_NONNEG;
}

static void mark_data(LoopIndex *n, uint32_t v, bool data)
{
	if (data && !n->data[v])
		n->data[v] = n->changed = true;
}

static void classify(LoopIndex *n, const LsData *s)
{
	const LsRow *row = ls_row(s->kind);
	if (row->mem == MEM_WRITE && lmem_is_array(s->mem))
		mark_data(n, s->mem.k, !loop_is_index(n, s->x));
	if (row->mem == MEM_COPY || (row->mem == MEM_WRITE_ROWS && lmem_is_array(s->mem)))
		mark_data(n, s->mem.k, true);
	switch (row->v) {
	case V_LET: case V_LOOP: mark_data(n, s->v.i, !loop_is_index(n, s->x)); break;
	case V_VAR: case V_DATA: mark_data(n, s->v.i, true); break;
	case V_LOADED: mark_data(n, s->v.i, !lmem_is_array(s->mem) || n->data[s->mem.k]); break;
	case V_ARRAY: mark_data(n, s->v.i, s->dtype != DT_i64); break;
	case V_NONE: case V_SET: break;
	}
}

static void classify_block(LoopIndex *n, Lb b)
{
	for (uint32_t k = 0; b.i && k < n->f->block.data[b.i].stmt.n; k++) {
		const LsData *s = &n->f->ls.data[n->f->block.data[b.i].stmt.data[k]];
		classify(n, s);
		classify_block(n, s->body);
		classify_block(n, s->other);
	}
}

/* Finds what holds indices: all variables and local arrays, until something shows that they do
 * not. */
void loop_index_init(LoopIndex *n, const LoopFn *f, Arena *a)
{
	*n = (LoopIndex){f, ARENA_ARRAY(a, bool, f->lv.n), ARENA_ARRAY(a, uint8_t, f->lx.n), false};
	do {
		n->changed = false;
		memset(n->index, 0, f->lx.n * sizeof *n->index);
		for (uint32_t k = 0; k < LOOP_TOPS; k++)
			classify_block(n, loop_top(f, k));
	} while (n->changed);
}

/* Finds the expressions that read a mutable variable. Operands come before what reads them. */
const bool *loop_find_mutable(const LoopFn *f, Arena *a)
{
	bool *reads = ARENA_ARRAY(a, bool, f->lx.n);
	for (uint32_t i = 1; i < f->lx.n; i++) {
		const LxData *d = &f->lx.data[i];
		reads[i] = d->kind == LX_VAR && f->lv.data[d->u.v.i].is_mutable;
		for (uint32_t k = 0; k < d->nin; k++)
			reads[i] |= reads[d->in[k].i];
	}
	return reads;
}
