/* Blocks of threads: what they exchange in warps, shared memory, barriers and copies that go on
 * while the thread does. */
#include "ir/loop/interp/priv.h"

#include <string.h>

/* ---- warps ---- */

bool block_lane(WarpOp op, uint32_t lane, int64_t by, uint32_t *out)
{
	if (by < 0 || by >= WARP)
		return false;
	uint32_t n = (uint32_t)by;
	switch (op) {
	case WARP_XOR: *out = lane ^ n; break;
	case WARP_UP: *out = lane < n ? lane : lane - n; break;
	case WARP_DOWN: *out = lane + n < WARP ? lane + n : lane; break;
	default: *out = n; break;
	}
	return true;
}

static uint32_t vote(const uint8_t *of)
{
	uint32_t votes = 0;
	for (uint32_t k = 0; k < WARP; k++)
		votes |= (uint32_t)(of[k] != 0) << k;
	return votes;
}

/* Checks that all threads of a warp are here, or none. */
static bool is_whole(Exec *e, const Active *a, uint32_t first, WarpOp op)
{
	uint32_t n = 0, missing = first;
	for (uint32_t t = first; t < first + WARP; t++)
		n += a->on[t];
	if (n == 0 || n == WARP)
		return true;
	while (a->on[missing])
		missing++;
	exec_locate(e, missing);
	return loop_finding(&e->at, "%s without this thread, and with %u others of the warp",
			    warp_name(op), n);
}

static bool exchange(Exec *e, const Active *a, const LxData *d, uint32_t first,
		     const void *const *in, char *out)
{
	uint32_t size = d->type.lanes * dtype_size(d->type.dtype), from;
	const int64_t *by = in[1];
	for (uint32_t t = first; t < first + WARP; t++) {
		if (block_lane((WarpOp)d->u.k, t % WARP, by[t], &from)) {
			memcpy(out + (size_t)t * size,
			       (const char *)in[0] + (size_t)(first + from) * size, size);
		} else if (a->on[t]) {
			exec_locate(e, t);
			return loop_finding(&e->at, "%s of %lld, expected 0 to %d",
					    warp_name((WarpOp)d->u.k), (long long)by[t], WARP - 1);
		}
	}
	return true;
}

bool block_exchange(Exec *e, const Active *a, const LxData *d, const void *const *in, char *out)
{
	WarpOp op = (WarpOp)d->u.k;
	if (!e->block)
		return loop_finding(&e->at, "%s outside a block of threads", warp_name(op));
	for (uint32_t first = 0; first < e->n; first += WARP) {
		TRY(is_whole(e, a, first, op));
		if (!warp_is_vote(op)) {
			TRY(exchange(e, a, d, first, in, out));
			continue;
		}
		uint32_t votes = vote((const uint8_t *)in[0] + first);
		for (uint32_t t = first; t < first + WARP; t++)
			if (op == WARP_BALLOT)
				((uint32_t *)(void *)out)[t] = votes;
			else
				out[t] = op == WARP_ANY ? votes != 0 : votes == UINT32_MAX;
	}
	return true;
}

/* ---- shared memory ---- */

/* Checks that n bytes from byte `at` of the array are there; sets *to to where in shared memory. */
static bool has(const Exec *e, Lv v, int64_t at, uint64_t n, bool write, uint64_t *to)
{
	uint64_t bytes = e->plan->bytes[v.i], from = (uint64_t)at;
	*to = e->plan->shared[v.i] + from;
	if (at < 0 || from > bytes || n > bytes - from)
		return loop_finding(
			&e->at, "%s %llu bytes at byte %lld of the shared array %s, which has %llu",
			write ? "writes" : "reads", (unsigned long long)n, (long long)at,
			e->f->lv.data[v.i].name, (unsigned long long)bytes);
	return true;
}

bool block_touch(Exec *e, Lv v, int64_t at, uint32_t n, bool write, char **out)
{
	uint64_t to;
	const Block *b = e->block;
	const char *name = e->f->lv.data[v.i].name;
	TRY(has(e, v, at, n, write, &to));
	*out = b->data + to;
	for (uint32_t k = 0; k < n && !write; k++)
		if (b->cell[to + k].write < b->first)
			return loop_finding(
				&e->at,
				"reads byte %lld of the shared array %s, which was never written",
				(long long)at + k, name);
	return cells_touch(&e->at, b->cell + to, name, (uint64_t)at, n, write);
}

bool block_aligned(Exec *e, LMem m, int64_t at, uint64_t n)
{
	int64_t byte, most = n < SHARED_ALIGN ? (int64_t)n : SHARED_ALIGN;
	if (m.kind == MEM_LOCAL || n <= dtype_size(m.dtype) ||
	    __builtin_mul_overflow(at, (int64_t)dtype_size(m.dtype), &byte))
		return true;
	const char *name =
		m.kind == MEM_SHARED ? e->f->lv.data[m.k].name : e->f->buf.data[m.k].name;
	if (m.kind == MEM_BUFFER && e->f->buf.data[m.k].align % (uint32_t)most)
		return loop_finding(&e->at, "moves %lld bytes of buffer %s, whose alignment is %u",
				    (long long)most, name, e->f->buf.data[m.k].align);
	if (byte % most)
		return loop_finding(&e->at,
				    "moves %lld bytes at byte %lld of %s, which is no multiple",
				    (long long)most, (long long)byte, name);
	return true;
}

static bool shared(Exec *e, const LsData *s)
{
	uint64_t end = e->plan->shared[s->v.i] + e->plan->bytes[s->v.i];
	if (end > e->f->shared_most)
		return loop_finding(&e->at,
				    "%llu bytes of shared memory, and a block has at most %llu",
				    (unsigned long long)end, (unsigned long long)e->f->shared_most);
	return true;
}

static bool sync(Exec *e, const Active *a)
{
	uint32_t missing = 0;
	e->at.in->epoch++;
	if (a->n == e->n)
		return true;
	while (a->on[missing])
		missing++;
	exec_locate(e, missing);
	return loop_finding(&e->at, "this thread does not reach the barrier, and %u others do",
			    a->n);
}

/* ---- copies ---- */

static void source_depths(const View *v, const char *from, BlockCopy *c)
{
	if (v->region->depth)
		memcpy(c->depth, v->region->depth + (from - v->region->data),
		       c->n * sizeof *c->depth);
}

/* Begins a copy. What is copied is read now, and written when the thread has waited. */
static bool begin_copy(Exec *e, const LsData *s, uint32_t thread, int64_t to, int64_t from, bool on)
{
	Block *b = e->block;
	uint32_t size = dtype_size(s->mem.dtype), n = (uint32_t)s->count;
	const char *name = e->f->lv.data[s->mem.k].name;
	BlockCopy c = {.s = s, .thread = thread, .group = b->committed[thread], .n = n};
	char *p;
	exec_locate(e, thread);
	if (__builtin_mul_overflow(to, (int64_t)size, &to) ||
	    __builtin_mul_overflow(from, (int64_t)size, &from))
		return loop_finding(&e->at, "an element is beyond all memory");
	TRY(block_aligned(e, s->mem, to / size, n) && has(e, (Lv){s->mem.k}, to, n, true, &c.to));
	if (on) {
		TRY(block_aligned(e, s->from, from / size, n) &&
		    view_touch(&e->at, &e->view[s->from.k], from, n, false, &p));
		c.from = p;
		memcpy(c.data, p, n);
		source_depths(&e->view[s->from.k], p, &c);
	}
	TRY(cells_touch(&e->at, b->cell + c.to, name, (uint64_t)to, n, true));
	for (uint32_t k = 0; k < n; k++)
		b->cell[c.to + k].write = UNDER_WAY;
	array_push(e->at.in->arena, &b->copy, c);
	return true;
}

static bool begin_copies(Exec *e, const Active *a, const LsData *s)
{
	const int64_t *to = exec_value(e, a, s->offset), *from = exec_value(e, a, s->x);
	const uint8_t *mask = s->mask.i ? exec_value(e, a, s->mask) : NULL;
	if (!to || !from || (s->mask.i && !mask))
		return false;
	if (s->mem.kind != MEM_SHARED || s->from.kind != MEM_BUFFER || s->count > SHARED_ALIGN)
		return loop_finding(&e->at,
				    "goes from a buffer to shared memory, 16 bytes at most");
	for (uint32_t t = 0; t < e->n; t++)
		if (a->on[t])
			TRY(begin_copy(e, s, t, to[t], from[t], !mask || mask[t]));
	return true;
}

static bool commit(Exec *e, const Active *a)
{
	for (uint32_t t = 0; t < e->n; t++)
		e->block->committed[t] += a->on[t];
	return true;
}

/* Ends a copy. Nobody says when it is read, so what is copied must have stayed as it is. */
static bool end_copy(Exec *e, const BlockCopy *c)
{
	Block *b = e->block;
	if (c->from && memcmp(c->from, c->data, c->n)) {
		e->at.s = c->s;
		exec_locate(e, c->thread);
		return loop_finding(&e->at, "buffer %s changed before the thread waited",
				    e->f->buf.data[c->s->from.k].name);
	}
	memcpy(b->data + c->to, c->data, c->n);
	if (b->depth)
		memcpy(b->depth + c->to, c->depth, c->n * sizeof *c->depth);
	for (uint32_t k = 0; k < c->n; k++)
		b->cell[c->to + k].write = e->at.in->epoch;
	return true;
}

static bool wait(Exec *e, const Active *a, uint32_t groups)
{
	Block *b = e->block;
	uint32_t left = 0;
	for (uint32_t k = 0; k < b->copy.n; k++) {
		const BlockCopy *c = &b->copy.data[k];
		if (a->on[c->thread] && (uint64_t)c->group + groups < b->committed[c->thread])
			TRY(end_copy(e, c));
		else
			b->copy.data[left++] = *c;
	}
	b->copy.n = left;
	return true;
}

bool block_statement(Exec *e, const Active *a, const LsData *s)
{
	if (!e->block)
		return loop_finding(&e->at, "outside a block of threads");
	switch (s->kind) {
	case LS_SHARED: return shared(e, s);
	case LS_SYNC: return sync(e, a);
	case LS_COPY_ASYNC: return begin_copies(e, a, s);
	case LS_COPY_COMMIT: return commit(e, a);
	default: return wait(e, a, s->k);
	}
}

/* ---- blocks ---- */

static Block *block_new(Exec *e)
{
	Arena *a = e->at.in->arena;
	Block *b = ARENA_NEW(a, Block);
	b->data = ARENA_ARRAY(a, char, e->plan->shared_bytes);
	b->cell = ARENA_ARRAY(a, Cell, e->plan->shared_bytes);
	b->committed = ARENA_ARRAY(a, uint32_t, e->n);
	if (e->depth)
		b->depth = ARENA_ARRAY(a, uint16_t, e->plan->shared_bytes);
	return b;
}

/* Starts a block. Shared memory of another block is as good as never written. */
static bool start(Exec *e, uint32_t task)
{
	if (e->plan->shared_bytes > LOOP_INTERP_BYTES)
		return loop_stop(
			e->at.in, LOOP_LIMIT,
			"%llu bytes of shared memory: too many for the interpreter of loop IR",
			(unsigned long long)e->plan->shared_bytes);
	if (!e->block)
		e->block = block_new(e);
	e->block->first = ++e->at.in->epoch;
	e->block->copy.n = 0;
	for (uint32_t t = 0; t < e->n; t++)
		e->task[t] = task;
	return true;
}

bool block_run(Exec *e, uint32_t task)
{
	bool on[MAX_THREADS];
	Active all = {on, e->n};
	memset(on, true, e->n);
	TRY(start(e, task) && exec_top(e, &all, e->f->enter) && exec_body(e, &all) &&
	    exec_top(e, &all, e->f->leave));
	if (!e->block->copy.n)
		return true;
	const BlockCopy *c = &e->block->copy.data[0];
	exec_locate(e, c->thread);
	e->at.s = c->s;
	return loop_finding(&e->at, "the thread ends and has not waited");
}
