/* Replacing variables in expressions: small loops become copies of their bodies, and names for
 * literals and other names go. */
#include "ir/loop/loop.h"

#include <string.h>

typedef ARRAY(uint32_t) StmtList;

static Arena *arena_of(const LoopFn *f)
{
	return f->ir->ctx->arena;
}

Lx lx_rebuild(LoopFn *f, Lx x, const Lx *in)
{
	LxData d = f->lx.data[x.i];
	switch (d.kind) {
	case LX_SC: return lx_sc(f, d.sc, d.type, in, d.nin);
	case LX_FN: return lx_fn(f, d.fn, d.type.lanes, in, d.nin);
	case LX_SPLAT: return lx_splat(f, in[0], d.type.lanes);
	case LX_RAMP: return lx_ramp(f, in[0], in[1], d.type.lanes);
	case LX_MASK: return lx_mask(f, in[0], d.type.lanes);
	case LX_HREDUCE: return lx_hreduce(f, d.sc, in[0]);
	case LX_ANY: return lx_any(f, in[0]);
	case LX_LANE: return lx_lane(f, in[0], d.u.k);
	case LX_PACK: return lx_pack(f, in, d.nin);
	case LX_SHUFFLE: case LX_TABLE: case LX_WARP: return lx_with(f, x, in);
	case LX_ADDR: return lx_addr(f, d.u.k, in[0]);
	default: return x;
	}
}

/* ---- unrolling ---- */

/* What the variables of the copied body stand for in this copy. */
typedef struct {
	LoopFn *f;
	Lx *by;       /* replacement by variable, none: itself */
	uint32_t nby;
	Lx *memo;     /* by expression, valid in one statement */
	uint32_t *stamp;
	uint32_t nmemo, now;
} BodyCopy;

static void copy_reserve(BodyCopy *c)
{
	Arena *arena = arena_of(c->f);
	if (!c->by || c->nby < c->f->lv.n) {
		Lx *by = ARENA_ARRAY(arena, Lx, c->f->lv.n * 2);
		if (c->by)
			memcpy(by, c->by, c->nby * sizeof *by);
		c->by = by;
		c->nby = c->f->lv.n * 2;
	}
	if (c->nmemo < c->f->lx.n) {
		c->nmemo = c->f->lx.n * 2;
		c->memo = ARENA_ARRAY(arena, Lx, c->nmemo);
		c->stamp = ARENA_ARRAY(arena, uint32_t, c->nmemo);
	}
	c->now++;
}

/* Copies an expression. Expressions made while copying are new, so they are not met again in the
 * same statement. */
static Lx copy_expr(BodyCopy *c, Lx x)
{
	if (!x.i)
		return x;
	if (x.i < c->nmemo && c->stamp[x.i] == c->now)
		return c->memo[x.i];
	LxData d = c->f->lx.data[x.i];
	Lx r = x;
	if (d.kind == LX_VAR) {
		if (d.u.v.i < c->nby && c->by[d.u.v.i].i)
			r = c->by[d.u.v.i];
	} else if (d.nin) {
		Lx in[4];
		bool same = true;
		for (uint32_t k = 0; k < d.nin; k++) {
			in[k] = copy_expr(c, d.in[k]);
			same = same && in[k].i == d.in[k].i;
		}
		r = same ? x : lx_rebuild(c->f, x, in);
	}
	if (x.i < c->nmemo) {
		c->memo[x.i] = r;
		c->stamp[x.i] = c->now;
	}
	return r;
}

static Lx copy_of(void *copy, Lx x)
{
	return copy_expr(copy, x);
}

static Lb copy_block(BodyCopy *c, Lb b);

static uint32_t copy_stmt(BodyCopy *c, uint32_t at)
{
	LoopFn *f = c->f;
	LsData s = f->ls.data[at];
	copy_reserve(c);
	ls_map(c->f, &s, copy_of, c);
	const LsRow *row = ls_row(s.kind);
	if (row->mem != MEM_NONE && lmem_is_array(s.mem) && c->by[s.mem.k].i)
		s.mem.k = f->lx.data[c->by[s.mem.k].i].u.v.i;
	if (row->v == V_SET) {
		if (c->by[s.v.i].i)
			s.v = f->lx.data[c->by[s.v.i].i].u.v;
	} else if (row->v != V_NONE) {
		LvData d = f->lv.data[s.v.i];
		array_push(arena_of(f), &f->lv, d);
		Lv v = {f->lv.n - 1};
		c->by[s.v.i] = lx_var(f, v);
		s.v = v;
	}
	s.body = copy_block(c, s.body);
	s.other = copy_block(c, s.other);
	array_push(arena_of(f), &f->ls, s);
	return f->ls.n - 1;
}

static Lb copy_block(BodyCopy *c, Lb b)
{
	if (!b.i)
		return b;
	LoopFn *f = c->f;
	StmtList list = {0};
	for (uint32_t k = 0; k < f->block.data[b.i].stmt.n; k++)
		array_push(arena_of(f), &list, copy_stmt(c, f->block.data[b.i].stmt.data[k]));
	array_push(arena_of(f), &f->block, (struct LBlock){{list.data, list.n, list.cap}});
	return (Lb){f->block.n - 1};
}

/* Whether a loop has a few rounds of a few statements: cheaper without the loop. */
static bool is_small(const LoopFn *f, const LsData *s, int64_t *lo, int64_t *hi)
{
	enum { ROUNDS = 4, STATEMENTS = 6 };
	const struct LBlock *body = &f->block.data[s->body.i];
	if (s->kind != LS_FOR || !lx_is_int(f, s->x, lo) || !lx_is_int(f, s->y, hi) || *hi <= *lo)
		return false;
	if ((*hi - *lo + s->step - 1) / s->step > ROUNDS || body->stmt.n > STATEMENTS)
		return false;
	for (uint32_t k = 0; k < body->stmt.n; k++)
		if (f->ls.data[body->stmt.data[k]].body.i)
			return false;
	return true;
}

static void unroll_loop(LoopFn *f, const LsData *s, int64_t lo, int64_t hi, StmtList *out)
{
	for (int64_t i = lo; i < hi; i += s->step) {
		BodyCopy c = {.f = f};
		copy_reserve(&c);
		c.by[s->v.i] = lx_int(f, i);
		for (uint32_t k = 0; k < f->block.data[s->body.i].stmt.n; k++)
			array_push(arena_of(f), out,
				   copy_stmt(&c, f->block.data[s->body.i].stmt.data[k]));
	}
}

static void unroll_block(LoopFn *f, Lb b);

static void unroll_stmt(LoopFn *f, uint32_t at, StmtList *out)
{
	LsData s = f->ls.data[at];
	int64_t lo, hi;
	if (is_small(f, &s, &lo, &hi)) {
		unroll_loop(f, &s, lo, hi, out);
		return;
	}
	unroll_block(f, s.body);
	unroll_block(f, s.other);
	array_push(arena_of(f), out, at);
}

static void unroll_block(LoopFn *f, Lb b)
{
	StmtList out = {0};
	for (uint32_t k = 0; b.i && k < f->block.data[b.i].stmt.n; k++)
		unroll_stmt(f, f->block.data[b.i].stmt.data[k], &out);
	if (!b.i)
		return;
	struct LBlock *block = &f->block.data[b.i];
	block->stmt.data = out.data;
	block->stmt.n = out.n;
	block->stmt.cap = out.cap;
}

void loop_unroll(LoopFn *f)
{
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		unroll_block(f, loop_top(f, k));
	loop_propagate(f);
}

/* ---- propagation ---- */

static bool is_trivial(const LoopFn *f, Lx x)
{
	const LxData *d = &f->lx.data[x.i];
	return d->kind == LX_INT || d->kind == LX_FLOAT || d->kind == LX_PARAM ||
	       d->kind == LX_THREAD || (d->kind == LX_VAR && !f->lv.data[d->u.v.i].is_mutable);
}

/* Whether the access is none: its mask is false. A load becomes a name for 0. A mask that is true
 * goes. */
static bool is_masked_off(LoopFn *f, LsData *s)
{
	const LsRow *row = ls_row(s->kind);
	int64_t holds;
	if (!row->masked || row->mem == MEM_COPY || !lx_is_int(f, s->mask, &holds))
		return false;
	s->mask = (Lx){0};
	if (holds || row->mem == MEM_WRITE)
		return !holds;
	const LType t = f->lv.data[s->v.i].type;
	*s = (LsData){.kind = LS_LET,
		      .v = s->v,
		      .x = dtype_is_float(t.dtype) ? lx_float(f, t, 0) : lx_int_of(f, t, 0)};
	return false;
}

static void propagate_block(BodyCopy *c, Lb b)
{
	LoopFn *f = c->f;
	StmtList out = {0};
	for (uint32_t k = 0; b.i && k < f->block.data[b.i].stmt.n; k++) {
		uint32_t at = f->block.data[b.i].stmt.data[k];
		copy_reserve(c);
		LsData s = f->ls.data[at];
		ls_map(c->f, &s, copy_of, c);
		if (is_masked_off(f, &s))
			continue;
		f->ls.data[at] = s;
		if (s.kind == LS_LET && is_trivial(f, s.x)) {
			c->by[s.v.i] = s.x;
			continue;
		}
		propagate_block(c, s.body);
		propagate_block(c, s.other);
		array_push(arena_of(f), &out, at);
	}
	if (!b.i)
		return;
	struct LBlock *block = &f->block.data[b.i];
	block->stmt.data = out.data;
	block->stmt.n = out.n;
	block->stmt.cap = out.cap;
}

void loop_propagate(LoopFn *f)
{
	BodyCopy c = {.f = f};
	for (uint32_t k = 0; k < LOOP_TOPS; k++)
		propagate_block(&c, loop_top(f, k));
}
