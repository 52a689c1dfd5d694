/* Lifetimes and offsets of temporaries; see plan.h.
 *
 * Phases are numbered through steps, loops and branches, one branch after the other. A buffer lives
 * from its first to its last phase; one that lives across the border of a loop, or is carried,
 * lives for the whole loop. Temporaries between phases are numbered after buffers. */
#include "codegen/program/plan.h"

#include <stdlib.h>
#include <string.h>

enum {
	ALIGN = 64,
	NEAR = 64 /* blocks that live at the same time as another, on average: more are not searched
	             for the best place */
};

typedef struct {
	uint32_t first, last;
	bool used;
} Life;

typedef struct {
	const Lowered *l;
	const DistinctKernels *kernels;
	Life *life; /* by buffer */
	uint32_t kernel; /* the next one */
	uint32_t now, depth; /* of loops around */
	bool extended;
	ARRAY(uint32_t) touched; /* in the loops around */
	ARRAY(const StepSave *) saved; /* what they hold is there until the end */
	ARRAY(uint32_t) at;            /* by call: the phase in which it is launched */
	ARRAY(Sym) born;         /* sizes that depend on data, in order; a number: known before */
} Planner;

/* Whether a size depends on data, so that only a step of the entry finds it out. */
static bool finds(const Planner *p, Sym size)
{
	const Program *program = p->kernels->p;
	if (!sym_uses_kind(p->l->ir->syms, size, SYMVAR_UNBACKED))
		return false;
	return !program->entry.n || program_finds(&program->entry.data[program->entry.n - 1], size);
}

static void touch(Planner *p, uint32_t buf)
{
	Life *life = &p->life[buf];
	if (!life->used)
		*life = (Life){p->now, p->now, true};
	if (p->now < life->first)
		life->first = p->now;
	if (p->now > life->last) { /* perhaps beyond a loop that was walked already */
		life->last = p->now;
		p->extended = true;
	}
	if (p->depth)
		array_push(p->l->ir->ctx->arena, &p->touched, buf);
}

static void touch_kernel(Planner *p, const Scheduled *k)
{
	for (uint32_t i = 0; i < k->schedule->phase.n; i++) {
		const SchedPhase *phase = &k->schedule->phase.data[i];
		p->now += !k->continues[i];
		array_push(p->l->ir->ctx->arena, &p->at, p->now);
		for (uint32_t a = 0; a < phase->narg; a++)
			if (phase->arg[a].kind == ARG_BUF)
				touch(p, k->buf[phase->arg[a].k].i);
			else
				touch(p, p->l->buf.n + k->temp + phase->arg[a].k);
	}
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

static void walk(Planner *p, const StepList *list);

/* Makes both buffers of a carry live in the whole loop, and as long as either: they swap memory. */
static void touch_carry(Planner *p, const struct StepCarry *c, uint32_t first, uint32_t last)
{
	Life *from = &p->life[c->from.i], *to = &p->life[c->to.i];
	touch(p, c->from.i);
	touch(p, c->to.i);
	stretch(p, from, first, last);
	stretch(p, to, first, last);
	stretch(p, from, to->first, to->last);
	stretch(p, to, from->first, from->last);
}

/* Notes the lives of buffers in a loop: what lives beyond the loop, or is carried, lives in all of
 * it. The condition of a STEP_WHILE is read after the test has written it. */
static void walk_loop(Planner *p, const Step *s)
{
	uint32_t first = ++p->now, begin = p->touched.n;
	p->depth++;
	if (s->kind == STEP_WHILE) {
		walk(p, s->test);
		p->now++;
		touch(p, s->pred.i);
	}
	walk(p, s->body);
	uint32_t last = ++p->now;
	for (uint32_t c = 0; c < s->ncarry; c++)
		touch_carry(p, &s->carry[c], first, last);
	for (uint32_t k = begin; k < p->touched.n; k++) {
		Life *life = &p->life[p->touched.data[k]];
		if (life->first < first || life->last > last)
			stretch(p, life, first, last);
	}
	if (!--p->depth)
		p->touched.n = 0;
}

static void touch_saved(Planner *p, const StepSave *s)
{
	touch(p, s->values.i);
	touch(p, s->record.i);
	if (s->at.i)
		touch(p, s->at.i);
}

static void walk_step(Planner *p, const Step *s)
{
	switch (s->kind) {
	case STEP_KERNEL: case STEP_CALL:
		touch_kernel(p, &p->kernels->kernel.data[p->kernel++]);
		break;
	case STEP_COPY:
		p->now++;
		break;
	case STEP_SAVE:
		p->now++;
		touch_saved(p, s->save);
		array_push(p->l->ir->ctx->arena, &p->saved, s->save);
		break;
	case STEP_IF:
		p->now++;
		touch(p, s->pred.i);
		walk(p, s->body);
		walk(p, s->other);
		break;
	case STEP_LOOP: case STEP_WHILE:
		walk_loop(p, s);
		break;
	case STEP_SIZE:
		p->now++;
		touch(p, s->pred.i);
		array_push(p->l->ir->ctx->arena, &p->born,
			   finds(p, s->size) ? s->size : sym_int(p->l->ir->syms, 0));
		break;
	}
}

static void walk(Planner *p, const StepList *list)
{
	for (uint32_t i = 0; i < list->step.n; i++) {
		walk_step(p, &list->step.data[i]);
	}
}

/* Finds the life of each buffer and temporary. Walks again until no life grows, since a reader
 * behind a loop is met later than the loop. */
static void find_lives(Planner *p)
{
	do {
		p->extended = false;
		p->now = 0;
		p->kernel = p->saved.n = p->born.n = p->at.n = 0;
		walk(p, &p->l->steps);
		for (uint32_t k = 0; k < p->saved.n; k++)
			touch_saved(p, p->saved.data[k]);
	} while (p->extended);
}

static Sym byte_size(SymTab *syms, Sym numel, DType d)
{
	Sym bytes = sym_muli(syms, numel, dtype_size(d));
	return sym_muli(syms, sym_ceildiv(syms, bytes, sym_int(syms, ALIGN)), ALIGN);
}

typedef struct {
	uint32_t buf;
	int64_t size, offset;
	Life life;
	uint32_t rank; /* by first step; then the number of its piece of the heap */
} Block;

static int by_size(const void *a, const void *b)
{
	const Block *x = a, *y = b;
	if (x->size != y->size)
		return x->size < y->size ? 1 : -1;
	return x->buf < y->buf ? -1 : 1;
}

static int by_offset(const void *a, const void *b)
{
	const Block *x = *(Block *const *)a, *y = *(Block *const *)b;
	return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1) : 0;
}

/* ---- constant sizes, largest first ---- */

/* Blocks that have a place, found by their lives: a tree over all blocks in the order of their
 * first steps. A leaf is 1 + the last step of a block that has a place, else 0; an inner node the
 * maximum of its two. */
typedef struct {
	Block **block; /* by first step */
	uint32_t *last;
	uint32_t n, leaves;
	Block **near;  /* found */
	uint32_t nnear;
} Placed;

static int by_first(const void *a, const void *b)
{
	const Block *x = *(Block *const *)a, *y = *(Block *const *)b;
	if (x->life.first != y->life.first)
		return x->life.first < y->life.first ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

static void placed_init(Placed *p, Arena *arena, Block *block, uint32_t n)
{
	*p = (Placed){.n = n,
		      .leaves = 1,
		      .block = ARENA_ARRAY(arena, Block *, n),
		      .near = ARENA_ARRAY(arena, Block *, n)};
	while (p->leaves < n)
		p->leaves *= 2;
	p->last = ARENA_ARRAY(arena, uint32_t, 2 * p->leaves);
	for (uint32_t i = 0; i < n; i++)
		p->block[i] = &block[i];
	qsort(p->block, n, sizeof *p->block, by_first);
	for (uint32_t i = 0; i < n; i++)
		p->block[i]->rank = i;
}

static void placed_add(Placed *p, const Block *b)
{
	uint32_t last = b->life.last + 1;
	for (uint32_t k = p->leaves + b->rank; k && p->last[k] < last; k /= 2)
		p->last[k] = last;
}

/* Adds to p->near the placed blocks below node k whose lives overlap `life`. The node spans `size`
 * blocks from number `from` on. */
static void placed_find(Placed *p, uint32_t k, uint32_t from, uint32_t size, Life life)
{
	if (p->last[k] <= life.first || p->block[from]->life.first > life.last)
		return;
	if (size == 1) {
		p->near[p->nnear++] = p->block[from];
		return;
	}
	placed_find(p, 2 * k, from, size / 2, life);
	if (from + size / 2 < p->n)
		placed_find(p, 2 * k + 1, from + size / 2, size / 2, life);
}

/* Places the largest block first, each at the lowest offset that is free during its life. Returns
 * the bytes of all; -1 if too many blocks live at once for this search. */
static int64_t place_by_size(Arena *arena, Block *block, uint32_t n)
{
	int64_t total = 0;
	uint64_t work = 0;
	Placed p;
	qsort(block, n, sizeof *block, by_size);
	placed_init(&p, arena, block, n);
	for (uint32_t i = 0; i < n; i++) {
		p.nnear = 0;
		placed_find(&p, 1, 0, p.leaves, block[i].life);
		work += p.nnear;
		if (work > (uint64_t)NEAR * n)
			return -1;
		qsort(p.near, p.nnear, sizeof(Block *), by_offset);
		int64_t at = 0;
		for (uint32_t j = 0; j < p.nnear; j++) {
			if (p.near[j]->offset >= at + block[i].size)
				break;
			int64_t end = p.near[j]->offset + p.near[j]->size;
			at = end > at ? end : at;
		}
		block[i].offset = at;
		total = at + block[i].size > total ? at + block[i].size : total;
		placed_add(&p, &block[i]);
	}
	return total;
}

/* ---- constant sizes, in the order of their lives ---- */

/* Memory in pieces, used or free, in the order of their addresses; two free ones are never
 * neighbours. */
typedef struct {
	int64_t offset, size;
	uint32_t before, after; /* piece numbers, 0: none */
	uint32_t prev, next;    /* of the free ones in its bin */
	bool is_free;
} Piece;

enum { BIN_BITS = 3, BINS = 64 << BIN_BITS };

typedef struct {
	Arena *arena;
	ARRAY(Piece) piece; /* [0] unused */
	uint32_t last;      /* by address */
	uint32_t bin[BINS]; /* the first free piece of at least its size and less than the next
	                       bin's */
	uint64_t filled[BINS / 64];
	int64_t total;
} Heap;

/* Returns the bin of a size: its highest bit and the BIN_BITS below. */
static uint32_t bin_of(int64_t size)
{
	uint64_t u = (uint64_t)size / ALIGN;
	if (u < 1 << BIN_BITS)
		return (uint32_t)u;
	uint32_t high = 63 - (uint32_t)__builtin_clzll(u);
	return high << BIN_BITS | (uint32_t)(u >> (high - BIN_BITS) & ((1 << BIN_BITS) - 1));
}

static void heap_unlink(Heap *h, uint32_t k)
{
	Piece *p = &h->piece.data[k];
	uint32_t bin = bin_of(p->size);
	if (p->prev)
		h->piece.data[p->prev].next = p->next;
	else
		h->bin[bin] = p->next;
	if (p->next)
		h->piece.data[p->next].prev = p->prev;
	if (!h->bin[bin])
		h->filled[bin / 64] &= ~(UINT64_C(1) << bin % 64);
	p->is_free = false;
}

static void heap_link(Heap *h, uint32_t k)
{
	Piece *p = &h->piece.data[k];
	uint32_t bin = bin_of(p->size);
	p->is_free = true;
	p->prev = 0;
	p->next = h->bin[bin];
	if (p->next)
		h->piece.data[p->next].prev = k;
	h->bin[bin] = k;
	h->filled[bin / 64] |= UINT64_C(1) << bin % 64;
}

/* Adds a piece behind piece `before`, which ends at `offset`, and returns its number. */
static uint32_t heap_piece(Heap *h, uint32_t before, int64_t offset, int64_t size)
{
	uint32_t after = before ? h->piece.data[before].after : 0;
	array_push(h->arena, &h->piece,
		   (Piece){.offset = offset, .size = size, .before = before, .after = after});
	uint32_t k = h->piece.n - 1;
	if (before)
		h->piece.data[before].after = k;
	if (after)
		h->piece.data[after].before = k;
	else
		h->last = k;
	return k;
}

/* Returns a free piece of exactly the size, else one of the first bin whose pieces are all large
 * enough; 0 if there is none. */
static uint32_t heap_best(const Heap *h, int64_t size)
{
	uint32_t bin = bin_of(size);
	for (uint32_t k = h->bin[bin]; k; k = h->piece.data[k].next)
		if (h->piece.data[k].size == size)
			return k;
	for (uint32_t w = ++bin / 64; w < BINS / 64; w++) {
		uint64_t set =
			h->filled[w] & (w == bin / 64 ? ~UINT64_C(0) << bin % 64 : ~UINT64_C(0));
		if (set)
			return h->bin[w * 64 + (uint32_t)__builtin_ctzll(set)];
	}
	return 0;
}

static uint32_t heap_take(Heap *h, int64_t size)
{
	uint32_t k = heap_best(h, size);
	if (k) {
		heap_unlink(h, k);
	} else if (h->last && h->piece.data[h->last].is_free) { /* the end grows */
		k = h->last;
		heap_unlink(h, k);
		h->total += size > h->piece.data[k].size ? size - h->piece.data[k].size : 0;
		h->piece.data[k].size = size > h->piece.data[k].size ? size : h->piece.data[k].size;
	} else {
		k = heap_piece(h, h->last, h->total, size);
		h->total += size;
	}
	int64_t rest = h->piece.data[k].size - size;
	if (rest) {
		h->piece.data[k].size = size;
		heap_link(h, heap_piece(h, k, h->piece.data[k].offset + size, rest));
	}
	return k;
}

/* Joins the free piece b to piece a, right before it. */
static void heap_join(Heap *h, uint32_t a, uint32_t b)
{
	Piece *p = h->piece.data;
	heap_unlink(h, b);
	p[a].size += p[b].size;
	p[a].after = p[b].after;
	if (p[b].after)
		p[p[b].after].before = a;
	else
		h->last = a;
}

static void heap_give(Heap *h, uint32_t k)
{
	uint32_t before = h->piece.data[k].before, after = h->piece.data[k].after;
	if (after && h->piece.data[after].is_free)
		heap_join(h, k, after);
	if (before && h->piece.data[before].is_free) {
		heap_link(h, k);
		heap_unlink(h, before);
		heap_join(h, before, k);
		k = before;
	}
	heap_link(h, k);
}

static int by_end(const void *a, const void *b)
{
	const Block *x = *(Block *const *)a, *y = *(Block *const *)b;
	if (x->life.last != y->life.last)
		return x->life.last < y->life.last ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

/* Places blocks in a sweep over the steps: a block takes the best free piece at its first step and
 * gives it back after its last. Returns the bytes of all. */
static int64_t place_by_life(Arena *arena, Block *block, uint32_t n)
{
	Heap *h = ARENA_NEW(arena, Heap);
	Block **first = ARENA_ARRAY(arena, Block *, n), **end = ARENA_ARRAY(arena, Block *, n);
	uint32_t gone = 0;
	h->arena = arena;
	array_push(arena, &h->piece, (Piece){0});
	for (uint32_t i = 0; i < n; i++)
		first[i] = end[i] = &block[i];
	qsort(first, n, sizeof *first, by_first);
	qsort(end, n, sizeof *end, by_end);
	for (uint32_t i = 0; i < n; i++) {
		for (; end[gone]->life.last < first[i]->life.first; gone++)
			if (end[gone]->size)
				heap_give(h, end[gone]->rank);
		if (!first[i]->size)
			continue;
		first[i]->rank = heap_take(h, first[i]->size);
		first[i]->offset = h->piece.data[first[i]->rank].offset;
	}
	return h->total;
}

static int64_t place_apart(Block *block, uint32_t n)
{
	int64_t total = 0;
	qsort(block, n, sizeof *block, by_size);
	for (uint32_t i = 0; i < n; i++) {
		block[i].offset = total;
		total += block[i].size;
	}
	return total;
}

static int64_t place_blocks(Arena *arena, Block *block, uint32_t n, bool share)
{
	if (!share)
		return place_apart(block, n);
	int64_t total = place_by_size(arena, block, n);
	return total >= 0 ? total : place_by_life(arena, block, n);
}

/* ---- symbolic sizes ---- */

/* Lives of a slot do not overlap; they are in order. */
typedef struct {
	Sym size, offset;
	ARRAY(Life) life;
} Slot;

typedef struct {
	ARRAY(Slot) slot;
} Slots;

/* Returns how many lives of the slot begin before this one ends. */
static uint32_t lives_before(const Slot *s, Life life)
{
	uint32_t lo = 0, hi = s->life.n;
	if (!hi || s->life.data[hi - 1].first <= life.last) /* most come in order */
		return hi;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		if (s->life.data[mid].first <= life.last)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool slot_free(const Slot *s, Life life)
{
	uint32_t k = lives_before(s, life);
	return !k || s->life.data[k - 1].last < life.first;
}

static void slot_add(Arena *arena, Slot *s, Life life)
{
	uint32_t k = lives_before(s, life);
	array_push(arena, &s->life, life);
	memmove(s->life.data + k + 1, s->life.data + k, (s->life.n - 1 - k) * sizeof life);
	s->life.data[k] = life;
}

static uint32_t find_slot(const Lowered *l, Slots *all, Sym size, Life life, bool share)
{
	Arena *arena = l->ir->ctx->arena;
	for (uint32_t i = 0; share && i < all->slot.n; i++) {
		Slot *s = &all->slot.data[i];
		if (!slot_free(s, life))
			continue;
		bool larger = sym_le(l->ir->syms, s->size, size) == YES;
		if (sym_le(l->ir->syms, size, s->size) != YES && !larger)
			continue;
		if (larger)
			s->size = size;
		slot_add(arena, s, life);
		return i;
	}
	Slot fresh = {.size = size};
	array_push(arena, &fresh.life, life);
	array_push(arena, &all->slot, fresh);
	return all->slot.n - 1;
}

/* Returns the bytes of each buffer and temporary to which the plan gives memory, by number; none
 * for others. */
static Sym *find_sizes(const Planner *p, uint32_t n)
{
	const Lowered *l = p->l;
	Sym *size = ARENA_ARRAY(l->ir->ctx->arena, Sym, n);
	for (uint32_t i = 1; i < l->buf.n; i++) {
		const Buffer *b = &l->buf.data[i];
		if (b->kind == BUF_TEMP && p->life[i].used)
			size[i] = byte_size(l->ir->syms, layout_numel(l->ir, &b->layout), b->dtype);
	}
	for (uint32_t i = 0; i < p->kernels->kernel.n; i++) {
		const Scheduled *k = &p->kernels->kernel.data[i];
		for (uint32_t t = 0; t < k->schedule->temp.n; t++) {
			const SchedTemp *temp = &k->schedule->temp.data[t];
			size[l->buf.n + k->temp + t] =
				byte_size(l->ir->syms, temp->numel, temp->dtype);
		}
	}
	return size;
}

/* ---- rooms ---- */

/* Returns the last STEP_SIZE, counted from 1, that a number of bytes waits for; 0 if it waits for
 * none, or has a bound that is near. */
static uint32_t waits_for(const Planner *p, Sym bytes)
{
	SymTab *syms = p->l->ir->syms;
	uint32_t last = 0;
	if (sym_most_is_near(syms, bytes) && sym_most(syms, bytes).i)
		return 0;
	for (uint32_t k = 0; k < p->born.n; k++)
		if (sym_kind(syms, p->born.data[k]) == SYM_VAR &&
		    sym_uses(syms, bytes, p->born.data[k]))
			last = k + 1;
	return last;
}

/* Returns a bound of a size in all rounds of a loop. Where none is known, that of buffer i is the
 * product of the bounds of its extents. */
static Sym size_of_rounds(const Planner *p, uint32_t i, Sym size)
{
	SymTab *syms = p->l->ir->syms;
	const Sym bound = sym_most(syms, size);
	if (bound.i || i >= p->l->buf.n)
		return bound;
	const Buffer *b = &p->l->buf.data[i];
	const Sym numel = layout_most(p->l->ir, &b->layout);
	return numel.i ? byte_size(syms, numel, b->dtype) : numel;
}

/* Gives what waits for a size a room of its own; sizes of the others become their bounds. */
static void find_rooms(const Planner *p, Sym *size, uint32_t n, MemoryPlan *plan)
{
	Arena *arena = p->l->ir->ctx->arena;
	uint32_t *room = ARENA_ARRAY(arena, uint32_t, n),
		 *room_of = ARENA_ARRAY(arena, uint32_t, p->born.n + 1);
	for (uint32_t i = 1; i < n; i++) {
		if (size[i].i && sym_uses_kind(p->l->ir->syms, size[i], SYMVAR_AXIS) &&
		    !finds(p, size[i]))
			size[i] = size_of_rounds(p, i, size[i]);
		if (!size[i].i || !finds(p, size[i]))
			continue;
		uint32_t after = waits_for(p, size[i]);
		if (!after) {
			size[i] = sym_most(p->l->ir->syms, size[i]);
			continue;
		}
		if (!room_of[after - 1])
			room_of[after - 1] = ++plan->nroom;
		room[i] = room_of[after - 1];
	}
	plan->room = room;
	plan->room_of = room_of;
}

/* Sets the offsets of slots, one behind the other from byte `at` on. Returns where they end. */
static Sym place_slots(SymTab *syms, Slots *slots, Sym at)
{
	for (uint32_t i = 0; i < slots->slot.n; i++) {
		slots->slot.data[i].offset = at;
		at = sym_add(syms, at, slots->slot.data[i].size);
	}
	return at;
}

/* Returns the number of calls that are launched before a phase. */
static uint32_t calls_before(const Planner *p, uint32_t phase)
{
	uint32_t lo = 0, hi = p->at.n;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		if (p->at.data[mid] < phase)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Sets the first and the last call of each lifetime. What lives between two calls only has the
 * first of them. */
static void find_calls(const Planner *p, uint32_t n, MemoryPlan *plan)
{
	Arena *arena = p->l->ir->ctx->arena;
	uint32_t *first = ARENA_ARRAY(arena, uint32_t, n), *last = ARENA_ARRAY(arena, uint32_t, n);
	for (uint32_t i = 1; i < n; i++) {
		if (!p->life[i].used)
			continue;
		const uint32_t behind = calls_before(p, p->life[i].last + 1);
		last[i] = behind ? behind - 1 : 0;
		first[i] = calls_before(p, p->life[i].first);
		first[i] = first[i] > last[i] ? last[i] : first[i];
	}
	plan->first = first;
	plan->last = last;
}

MemoryPlan plan_memory(const DistinctKernels *kernels, bool share)
{
	const Lowered *l = kernels->l;
	Arena *arena = l->ir->ctx->arena;
	SymTab *syms = l->ir->syms;
	uint32_t all = l->buf.n + kernels->ntemp, n = 0;
	Planner p = {.l = l, .kernels = kernels, .life = ARENA_ARRAY(arena, Life, all)};
	find_lives(&p);
	MemoryPlan plan = {.offset = ARENA_ARRAY(arena, Sym, all)};
	plan.temp = plan.offset + l->buf.n;
	Block *block = ARENA_ARRAY(arena, Block, all);
	uint32_t *slot_of = ARENA_ARRAY(arena, uint32_t, all);
	Sym *size = find_sizes(&p, all);
	find_rooms(&p, size, all, &plan);
	find_calls(&p, all, &plan);
	Slots *slots = ARENA_ARRAY(arena, Slots, plan.nroom + 1);
	Sym *total = ARENA_ARRAY(arena, Sym, plan.nroom + 1);
	for (uint32_t i = 1; i < all; i++) {
		int64_t fixed;
		if (!size[i].i)
			continue;
		if (sym_is_const(syms, size[i], &fixed))
			block[n++] = (Block){.buf = i, .size = fixed, .life = p.life[i]};
		else
			slot_of[i] =
				1 + find_slot(l, &slots[plan.room[i]], size[i], p.life[i], share);
	}
	plan.total = sym_int(syms, place_blocks(arena, block, n, share));
	for (uint32_t i = 0; i < n; i++)
		plan.offset[block[i].buf] = sym_int(syms, block[i].offset);
	for (uint32_t r = 0; r <= plan.nroom; r++)
		total[r] = place_slots(syms, &slots[r], r ? sym_int(syms, 0) : plan.total);
	plan.total = total[0];
	plan.room_bytes = total;
	for (uint32_t i = 1; i < all; i++)
		if (slot_of[i])
			plan.offset[i] = slots[plan.room[i]].slot.data[slot_of[i] - 1].offset;
	return plan;
}
