/* A table of keys, and for each a list of values, the last one first. A closed block is not opened
 * again, so that a value at the head of a list that is not there now never will be. */
#include "codegen/eval/memo.h"

void memo_init(Memo *m, const LoopFn *f, Arena *arena)
{
	*m = (Memo){.f = f, .arena = arena};
	intern_init(&m->key, arena);
	array_push(arena, &m->entry, (MemoEntry){0});
	array_push(arena, &m->newest, 0);
}

static bool is_open(const Memo *m, const MemoEntry *e)
{
	return e->depth < m->f->open.n && m->f->open.data[e->depth].i == e->block.i;
}

/* Whether the mask `all` provably has every lane of `some`; all none: it has all lanes. */
static bool covers(const Memo *m, Lx all, Lx some)
{
	if (!all.i || all.i == some.i)
		return true;
	const LxData *d = &m->f->lx.data[some.i];
	return some.i && d->kind == LX_SC && d->sc == SC_and &&
	       (covers(m, all, d->in[0]) || covers(m, all, d->in[1]));
}

bool memo_changes(const LoopFn *f, Lx x)
{
	const LxData *d = &f->lx.data[x.i];
	bool found = d->kind == LX_VAR && f->lv.data[d->u.v.i].is_mutable;
	for (uint32_t i = 0; !found && i < d->nin; i++)
		found = memo_changes(f, d->in[i]);
	return found;
}

Lx memo_find(Memo *m, const uint32_t *key, uint32_t n, Lx mask)
{
	uint32_t id = intern_find(&m->key, key, n * sizeof *key), *newest = &m->newest.data[id];
	while (*newest && !is_open(m, &m->entry.data[*newest]))
		*newest = m->entry.data[*newest].older;
	for (uint32_t i = *newest; i; i = m->entry.data[i].older) {
		const MemoEntry *e = &m->entry.data[i];
		if (is_open(m, e) && covers(m, e->mask, mask))
			return e->value;
	}
	return (Lx){0};
}

void memo_add(Memo *m, const uint32_t *key, uint32_t n, Lx mask, Lx value)
{
	bool fresh;
	uint32_t id = intern(&m->key, key, n * sizeof *key, &fresh), depth = m->f->open.n - 1;
	if (fresh)
		array_push(m->arena, &m->newest, 0);
	array_push(m->arena, &m->entry,
		   (MemoEntry){value, mask, m->f->open.data[depth], depth, m->newest.data[id]});
	m->newest.data[id] = m->entry.n - 1;
}
