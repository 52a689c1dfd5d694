/* Lifetimes and offsets of temporaries; see plan.h.
 *
 * Steps are numbered through loops. A buffer lives from its first to its last step; one that lives across
 * the border of a loop, or is carried, lives for the whole loop. */
#include "codegen/schedule/plan.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

typedef struct {
	uint32_t first, last;
	bool used;
} Life;

typedef struct {
	Lowered *l;
	Life *life; /* by buffer */
	uint32_t now;
	bool extended;
} Planner;

static void touch(Planner *p, BufId b)
{
	Life *life = &p->life[b.i];
	if (!life->used)
		*life = (Life){p->now, p->now, true};
	if (p->now < life->first)
		life->first = p->now;
	if (p->now > life->last)
		life->last = p->now;
}

static void touch_kernel(Planner *p, const Kernel *k)
{
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (k->kx.data[i].kind == KX_LOAD)
			touch(p, k->kx.data[i].buf);
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (k->stage.data[i].place == PLACE_GLOBAL)
			touch(p, k->stage.data[i].buf);
}

static void stretch(Planner *p, Life *life, uint32_t first, uint32_t last)
{
	if (life->first > first) {
		life->first = first;
		p->extended = true;
	}
	if (life->last < last) {
		life->last = last;
		p->extended = true;
	}
}

static void walk(Planner *p, const StepList *list)
{
	for (uint32_t i = 0; i < list->step.n; i++) {
		const Step *s = &list->step.data[i];
		p->now++;
		if (s->kind == STEP_KERNEL) {
			touch_kernel(p, s->kernel);
			continue;
		}
		uint32_t first = p->now;
		walk(p, s->body);
		uint32_t last = ++p->now;
		for (uint32_t c = 0; c < s->ncarry; c++) {
			Life *from = &p->life[s->carry[c].from.i], *to = &p->life[s->carry[c].to.i];
			touch(p, s->carry[c].from);
			touch(p, s->carry[c].to);
			stretch(p, from, first, last);
			stretch(p, to, first, last);
			/* the two halves swap: both live as long as either */
			stretch(p, from, to->first, to->last);
			stretch(p, to, from->first, from->last);
		}
		for (uint32_t b = 1; b < p->l->buf.n; b++) {
			Life *life = &p->life[b];
			bool meets = life->used && life->first <= last && life->last >= first;
			if (meets && (life->first < first || life->last > last))
				stretch(p, life, first, last);
		}
	}
}

/* Readers after a loop are met later than the loop: walk again until nothing grows. */
static void find_lives(Planner *p)
{
	do {
		p->extended = false;
		p->now = 0;
		walk(p, &p->l->steps);
	} while (p->extended);
}

static Sym byte_size(Lowered *l, BufId b)
{
	SymTab *syms = l->ir->syms;
	const Buffer *buf = buf_of(l, b);
	Sym bytes = sym_muli(syms, layout_numel(l->ir, &buf->layout), dtype_size(buf->dtype));
	return sym_muli(syms, sym_ceildiv(syms, bytes, sym_int(syms, ALIGN)), ALIGN);
}

typedef struct {
	BufId buf;
	int64_t size, offset;
	Life life;
} Block;

static int by_size(const void *a, const void *b)
{
	const Block *x = a, *y = b;
	if (x->size != y->size)
		return x->size < y->size ? 1 : -1;
	return x->buf.i < y->buf.i ? -1 : 1;
}

static int by_offset(const void *a, const void *b)
{
	const Block *x = *(Block *const *)a, *y = *(Block *const *)b;
	return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1) : 0;
}

static bool overlap(Life a, Life b)
{
	return a.first <= b.last && b.first <= a.last;
}

/* Largest first, each at the lowest offset that is free during its life. */
static int64_t place_blocks(Arena *arena, Block *block, uint32_t n, bool share)
{
	int64_t total = 0;
	Block **near = ARENA_ARRAY(arena, Block *, n);
	qsort(block, n, sizeof *block, by_size);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t m = 0;
		for (uint32_t j = 0; j < i; j++)
			if (!share || overlap(block[i].life, block[j].life))
				near[m++] = &block[j];
		qsort(near, m, sizeof(Block *), by_offset);
		int64_t at = 0;
		for (uint32_t j = 0; j < m; j++) {
			if (near[j]->offset >= at + block[i].size)
				break;
			int64_t end = near[j]->offset + near[j]->size;
			at = end > at ? end : at;
		}
		block[i].offset = at;
		total = at + block[i].size > total ? at + block[i].size : total;
	}
	return total;
}

typedef struct {
	Sym size, offset;
	ARRAY(Life) life;
} Slot;

typedef struct {
	ARRAY(Slot) slot;
} Slots;

static bool slot_free(const Slot *s, Life life, bool share)
{
	for (uint32_t i = 0; i < s->life.n; i++)
		if (!share || overlap(s->life.data[i], life))
			return false;
	return true;
}

static uint32_t find_slot(Lowered *l, Slots *all, Sym size, Life life, bool share)
{
	Arena *arena = l->ir->ctx->arena;
	for (uint32_t i = 0; i < all->slot.n; i++) {
		Slot *s = &all->slot.data[i];
		if (!slot_free(s, life, share))
			continue;
		bool larger = sym_le(l->ir->syms, s->size, size) == YES;
		if (sym_le(l->ir->syms, size, s->size) != YES && !larger)
			continue;
		if (larger)
			s->size = size;
		array_push(arena, &s->life, life);
		return i;
	}
	Slot fresh = {.size = size};
	array_push(arena, &fresh.life, life);
	array_push(arena, &all->slot, fresh);
	return all->slot.n - 1;
}

MemoryPlan plan_memory(Lowered *l, bool share)
{
	Arena *arena = l->ir->ctx->arena;
	SymTab *syms = l->ir->syms;
	Planner p = {.l = l, .life = ARENA_ARRAY(arena, Life, l->buf.n)};
	find_lives(&p);
	MemoryPlan plan = {.offset = ARENA_ARRAY(arena, Sym, l->buf.n)};
	Block *block = ARENA_ARRAY(arena, Block, l->buf.n);
	uint32_t *slot_of = ARENA_ARRAY(arena, uint32_t, l->buf.n), n = 0;
	Slots slots = {0};
	for (uint32_t i = 1; i < l->buf.n; i++) {
		if (l->buf.data[i].kind != BUF_TEMP || !p.life[i].used)
			continue;
		Sym size = byte_size(l, (BufId){i});
		int64_t fixed;
		if (sym_is_const(syms, size, &fixed))
			block[n++] = (Block){.buf = {i}, .size = fixed, .life = p.life[i]};
		else
			slot_of[i] = 1 + find_slot(l, &slots, size, p.life[i], share);
	}
	plan.total = sym_int(syms, place_blocks(arena, block, n, share));
	for (uint32_t i = 0; i < n; i++)
		plan.offset[block[i].buf.i] = sym_int(syms, block[i].offset);
	for (uint32_t i = 0; i < slots.slot.n; i++) {
		slots.slot.data[i].offset = plan.total;
		plan.total = sym_add(syms, plan.total, slots.slot.data[i].size);
	}
	for (uint32_t i = 1; slots.slot.n && i < l->buf.n; i++)
		if (slot_of[i])
			plan.offset[i] = slots.slot.data[slot_of[i] - 1].offset;
	return plan;
}
